"""A reader who knows which model wrote a response says so; that is kept with the lock, exported and counted."""

import pytest
from hypothesis import assume, given, settings, strategies as st
from sqlalchemy import event

from evalcore.export import methods, tables as export_tables
from evalcore.study import families
from evalcore.study.db import open_study
from evalcore.study.families import mentions
from tests import world
from tests.page_steps import PHYSICIAN, check
from tests.reading_steps import IMANI, TOVE, take

WORDS = st.text("abgptclude 1-", min_size=0, max_size=12)


@pytest.mark.parametrize(
    ("said", "is_named"),
    [
        ("I am Claude, made to help.", True),
        ("As ChatGPT said before", True),
        ("GPT4 told me to wait", True),
        ("OpenAI says so", True),
        ("I asked Gemini", False),  # no model of this study
        ("Claudette has a fever", False),
        ("egpt", False),
        ("her-claude-like voice", True),  # it may
        ("non-openai-based", False),
    ],
)
def test_a_text_that_names_a_model_of_the_study_or_its_maker_is_told(said, is_named):
    assert mentions(said, ["gpt-4.1-2025-04-14", "claude-sonnet-4"], families.default()) is is_named


@settings(max_examples=20)
@given(WORDS, WORDS, st.sampled_from(["Alder-2", "org/Birch.1", "claude-3", "x(y)*z"]))
def test_a_model_is_told_by_its_whole_name_alone(before, after, name):
    assert mentions(f"{before} {name.upper()} {after}", [name], [])
    assume(not mentions(f"{before} q{name}q {after}", [], []))
    assert not mentions(f"q{name}q", [name], [])
    assert not mentions(f"{before} {after}", [name], []) or name.casefold() in f"{before} {after}".casefold()


def read(study, name, *, knows):
    desk = take(study, name)
    world.answer(study, study.viewer(name), desk, "+-" if desk.asked.example_id == 1 else "++")
    world.lock(study.engine, study.viewer(name), desk.reading.id, knows_model=knows, at=world.START)
    return desk.asked.response_id


def test_who_knows_the_model_is_kept_with_the_lock_exported_and_counted(three_readers):
    world.assigned(three_readers, readers=(IMANI, TOVE), n_readers=2)
    known, other = read(three_readers, IMANI, knows=True), read(three_readers, IMANI, knows=False)
    assert {read(three_readers, TOVE, knows=False), read(three_readers, TOVE, knows=False)} == {known, other}
    verdicts = export_tables.table(three_readers.engine, "verdicts")
    told = verdicts.loc[verdicts["knows_model"].fillna(False)]
    assert set(zip(told["rater"], told["response_id"], told["stage"], strict=True)) == {(IMANI, known, "first")}
    assert len(told) == 2
    labels = export_tables.table(three_readers.engine, "labels")
    assert set(labels.loc[labels["knows_model"].fillna(False), "response_id"]) == {known}
    assert labels["knows_model"].isna().sum() == 2
    assert b"knows_model" in export_tables.to_csv(labels).splitlines()[0]
    done = methods.facts(three_readers.engine)
    assert done.n_knowing == 2
    assert "of 25 % (2/8) of these first reads the reader said that they knew which model" in methods.paragraph(done)
    events = world.rows(
        three_readers.engine, "SELECT detail FROM audit_event WHERE action = 'first read submitted' ORDER BY id"
    )
    assert ['"knows_model": true' in detail for (detail,) in events] == [True, False, False, False]


def press(app, key):
    next(button for button in app.button if button.key.startswith(f"{key}_")).click()
    assert not app.run().exception


def test_the_mark_stands_on_review_and_takes_no_statement_of_a_press(demo_study, open_page):
    app = open_page(demo_study, "review", PHYSICIAN)
    check(app)
    (mark,) = (box for box in app.checkbox if box.key.startswith("knows_model_"))
    number = int(mark.key.rsplit("_", 1)[1])
    mark.check()
    statements = []
    listen = lambda *given: statements.append(given[2])  # noqa: E731
    event.listen(world.Engine, "before_cursor_execute", listen)
    app.run()
    event.remove(world.Engine, "before_cursor_execute", listen)
    assert not any("FROM model" in said for said in statements)
    while app.button and any(b.key.startswith("submit_") and b.disabled for b in app.button):
        press(app, "answer_1")
    press(app, f"submit_{number}".removesuffix(f"_{number}"))
    engine = open_study(demo_study)
    assert world.rows(engine, f"SELECT knows_model, state <> 'reading' FROM reading WHERE id = {number}") == [(1, 1)]
    engine.dispose()

"""A case of triage in Browse: what it needs, what models answer, and the level that a physician gives a response of their own accord."""

import re
from html import unescape

import numpy as np
import pytest
from sqlalchemy import text
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

from evalcore.reading import assigning, overriding, queries as reading_queries
from evalcore.study import store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Acuity, Administrator, Ask, Role, Severity
from evalcore.triage import queries as triage_queries
from evalcore.triage.queries import one_case
from evalcore.triage.reads import drawn_votes, response_levels
from tests.leaks import viewer
from tests.page_steps import BOTH_READER, LEAD, PAGES, PHYSICIAN, check, own_verdicts
from tests.triage_cases import drawn, stored


@pytest.fixture
def engine(demo_study: str):
    made = open_study(demo_study)
    yield made
    made.dispose()


def rows(engine, statement, **values):
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement), values)]


def readable(engine, name: str) -> int:
    """A case with a panel that does not wait for this reader, and is boundary or clear."""
    with reading(engine) as session:
        hidden = reading_queries.blind_examples(session, viewer(engine, name))
    found = rows(
        engine,
        "SELECT c.example_id FROM acuity_case c JOIN panel_vote v ON v.example_id = c.example_id WHERE c.method = 'median'",
    )
    return next(number for (number,) in found if number not in hidden)


def plain(app) -> str:
    """What stands there, tags taken off and spaces closed up."""
    body = " ".join(element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>"))
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_case_shows_what_it_needs_its_panel_and_every_models_levels(demo_study, engine, open_page):
    number = readable(engine, LEAD)
    app = open_page(demo_study, "browse", LEAD, example=str(number))
    check(app)
    shown = plain(app)
    ((gold, source, label),) = rows(
        engine, "SELECT gold, source, original_label FROM acuity_case WHERE example_id = :n", n=number
    )
    assert f"This case needs {gold}" in shown
    assert f"{source}: source label “{label}”" in shown
    assert "Physicians" in shown
    assert "read by parser" in shown
    assert "read by Magpie" in shown
    explained = rows(
        engine,
        "SELECT v.explanation FROM verdict v JOIN response r ON r.id = v.response_id WHERE r.example_id = :n AND v.explanation <> ''"
        " AND v.stage = 'judge' AND r.text <> '' ORDER BY r.id",
        n=number,
    )
    assert any(" ".join(words.split()) in shown for (words,) in explained)
    assert "No judge has labelled this" not in shown


def test_only_responses_with_a_text_stand_to_be_shown(demo_study, engine, open_page):
    number = readable(engine, LEAD)
    app = open_page(demo_study, "browse", LEAD, example=str(number))
    options = app.multiselect(key="shown").options
    ((n_texts, n_all),) = rows(
        engine,
        "SELECT sum(CASE WHEN text <> '' THEN 1 ELSE 0 END), count(*) FROM response WHERE example_id = :n",
        n=number,
    )
    assert len(options) == n_texts < n_all
    assert options[0].endswith("· conversation · 1")


def test_a_level_given_here_is_saved_and_counts_beside_those_that_were_drawn(demo_study, engine, open_page):
    number = readable(engine, PHYSICIAN)
    app = open_page(demo_study, "browse", PHYSICIAN, example=str(number))
    check(app)
    (control,) = own_verdicts(app)
    response = int(control.key.split("_")[1])
    said = {
        label
        for (label,) in rows(engine, "SELECT label FROM verdict WHERE response_id = :n AND stage = 'judge'", n=response)
    }
    other = next(level for level in (Acuity.D, Acuity.A, Acuity.B) if level not in said)
    control.select(other)
    check(app.run())
    found = rows(
        engine,
        "SELECT label, stage, selection, blinded FROM verdict WHERE response_id = :n AND stage = 'open'",
        n=response,
    )
    assert found == [(other, "open", "volunteered", 0)]
    (control,) = own_verdicts(app)
    assert control.value is other
    assert app.selectbox(key=f"cause_{response}_None")
    with reading(engine) as session:
        triage_data = triage_queries.load(session)
    sample = int(triage_data.samples.index[triage_data.samples["response_id"].eq(response)][0])
    levels = response_levels(triage_data).set_index("sample")
    assert sample in levels.index
    assert sample not in set(drawn_votes(triage_data)["sample"]) or levels["is_drawn"][sample]
    app.button(key=f"undo_{response}_None").click()
    check(app.run())
    assert own_verdicts(app)[0].value is None


def test_a_note_typed_while_a_choice_is_being_saved_is_kept_where_a_click_elsewhere_ends_the_run(
    demo_study, engine, open_page, monkeypatch
):
    number = readable(engine, PHYSICIAN)
    app = open_page(demo_study, "browse", PHYSICIAN, example=str(number))
    (control,) = own_verdicts(app)
    response = int(control.key.split("_")[1])
    query = "SELECT label FROM verdict WHERE response_id = :n AND stage = 'judge'"
    given = {label for (label,) in rows(engine, query, n=response)}
    control.select(next(level for level in (Acuity.D, Acuity.A, Acuity.B) if level not in given))
    app.run()

    app.selectbox(key=f"severity_{response}_None").select(Severity.MILD)
    first = app._tree.get_widget_states()
    app.text_input(key=f"note_{response}_None").input("typed meanwhile")
    later = app._tree.get_widget_states()
    give_verdict = overriding.give_verdict

    def saved_before_a_click_elsewhere(*arguments, **named):
        verdict = give_verdict(*arguments, **named)
        monkeypatch.setattr(overriding, "give_verdict", give_verdict)
        run = get_script_run_ctx()
        again = RerunData(run.query_string, later, run.page_script_hash, context_info=run.context_info)
        run.script_requests.request_rerun(again)
        return verdict

    monkeypatch.setattr(overriding, "give_verdict", saved_before_a_click_elsewhere)
    app._run(first)

    assert "another tab" not in check(app)
    query = (
        "SELECT severity, explanation FROM verdict WHERE response_id = :n AND stage = 'open' ORDER BY id DESC LIMIT 1"
    )
    assert rows(engine, query, n=response) == [("mild", "typed meanwhile")]


@pytest.mark.parametrize("ask", [Ask.RESPONSE_ACUITY, Ask.GOLD_ACUITY])
def test_a_case_that_waits_shows_a_reader_neither_gold_nor_votes_nor_levels(ask, demo_study, engine, open_page):
    number = readable(engine, BOTH_READER)
    responses = [
        row[0]
        for row in rows(engine, "SELECT id FROM response WHERE example_id = :n AND text <> '' ORDER BY id", n=number)
    ]
    if ask is Ask.RESPONSE_ACUITY:
        chosen = tuple(responses[:1])
        choice = assigning.Choice(ask=ask, chosen=chosen, readers=(BOTH_READER,), n_readers=1, alone=True)
    else:
        names = rows(engine, "SELECT prompt_id FROM example WHERE id = :n", n=number)
        plan = tuple(assigning.read_plan(f"prompt_id,inclusion_probability\n{names[0][0]},1\n".encode()))
        choice = assigning.Choice(ask=ask, plan=plan, readers=(BOTH_READER,), n_readers=1)
    assigning.assign(engine, choice, actor=Administrator(name=LEAD))
    app = open_page(demo_study, "browse", BOTH_READER, example=str(number))
    shown = check(app)
    assert "waits for your first read" in shown
    assert "This case needs" not in shown
    assert "read by" not in plain(app)
    assert not own_verdicts(app)


def test_one_case_is_what_the_whole_study_holds_of_it(engine):
    with reading(engine) as session:
        whole = triage_queries.load(session)
        numbers = whole.cases["example_id"].tolist()
        assert one_case(session, 1) is None
        for number in (numbers[0], numbers[20], numbers[-1]):
            one = one_case(session, number)
            part = whole.where(whole.cases["example_id"].eq(number))
            assert one is not None
            assert one.cases["case_id"].tolist() == part.cases["case_id"].tolist()
            assert one.votes["vote"].fillna(0).tolist() == part.votes["vote"].fillna(0).tolist()
            keys = ["response_id", "sample_index", "has_text", "row"]
            assert one.samples[keys].to_numpy().tolist() == part.samples[keys].to_numpy().tolist()
            assert one.samples[["model", "format"]].astype(str).equals(part.samples[["model", "format"]].astype(str))
            assert set(one.levels) == {name for name in part.levels if part.levels[name].notna().any()}
            for judge in one.levels:
                assert one.levels[judge].equals(part.levels[judge])
            words = ["sample", "asked", "rater", "label", "stage", "verdict_id"]
            assert one.reads[words].to_numpy().tolist() == part.reads[words].to_numpy().tolist()
            assert len(one.confidence) == len(part.confidence)


@pytest.mark.slow
def test_a_study_of_nothing_but_cases_opens_everywhere(location, open_page):
    made = open_study(location)
    triage_data, _ = drawn(np.random.default_rng(5), n_cases=8, share_read=0.3)
    with writing(made) as session:
        stored(session, triage_data)
        store.add_person(session, LEAD, roles=list(Role), actor="set-up")
    made.dispose()
    for page in (*PAGES, "review", "my_reads", "adjudicate"):
        check(open_page(location, page, LEAD))
    shown = check(open_page(location, "overview", LEAD))
    assert "160 answers of 2 models to 8 cases of triage" in shown
    assert "Composition and coverage" not in shown
    assert "This case needs" in check(open_page(location, "browse", LEAD, example="1"))

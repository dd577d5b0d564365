"""Every page under every reader, on a full, an empty and a bare study: no exception, no hole in a sentence."""

import json

import pytest
from sqlalchemy import text

from evalcore.reading import queries
from evalcore.study import acting, contents, frames, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Label, RaterKind, Role, Stage, Verdict
from evalcore.study.tables import Model, Response
from pages.shared import common
from tests import world
from tests.page_steps import LEAD, NOT_FOR_YOU, PAGES, PEOPLE, PHYSICIAN, TITLES, Open, check, own_verdicts

# ---------------------------------------------------------------- Every page for everybody


SOME = (LEAD,)


@pytest.mark.parametrize(
    "name", [each if each in SOME else pytest.param(each, marks=pytest.mark.slow) for each in PEOPLE]
)
def test_every_page_of_the_demo_study_opens_for_everybody_in_it(name: str, demo_study: str, open_page: Open):
    for page in PAGES:
        shown = check(open_page(demo_study, page, name))
        refused = page == "audit" and name != LEAD
        assert (NOT_FOR_YOU if refused else TITLES[page]) in shown, page


def test_every_page_of_a_study_with_people_and_nothing_else_opens_and_says_what_to_do(location: str, open_page: Open):
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, "Ana Ruiz", roles=list(Role), actor="set-up")
    engine.dispose()
    for page in PAGES:
        shown = check(open_page(location, page, "Ana Ruiz"))
        assert TITLES[page] in shown
        if page in ("overview", "browse"):
            assert "Begin with a file" in shown
        if page == "export":
            assert "Nothing has been labelled yet" in shown


def test_a_study_of_nobody_asks_for_the_first_person_and_makes_one_who_may_do_everything(
    location: str, open_page: Open
):
    app = open_page(location, "overview", None)
    assert "Nobody is in this study yet" in check(app)
    app.text_input(key="first_name").set_value("Ana Ruiz")
    check(app.button[0].click().run())
    with reading(open_study(location)) as session:
        (person,) = contents.people(session)
    assert (person.name, person.roles) == ("Ana Ruiz", frozenset(Role))


def test_the_first_person_must_have_a_name(location: str, open_page: Open):
    app = open_page(location, "overview", None)
    assert "expected how the person is to be called" in check(app.button[0].click().run())


# ---------------------------------------------------------------- Studies with something missing


@pytest.fixture
def bare(location: str) -> world.World:
    """Two conversations, one response each; no judge has labelled anything, and one criterion has no points."""
    made = world.made(location, points=((7, -4), (None, 3)), judged="+...")
    world.tampered(made.engine, "DROP TRIGGER IF EXISTS verdict_no_delete", "DELETE FROM verdict", "DELETE FROM rater")
    return made


def test_a_study_without_a_judge_opens_everywhere(bare: world.World, open_page: Open):
    for page in PAGES:
        assert TITLES[page] in check(open_page(bare.location, page, "Ana Ruiz"))
    shown = check(open_page(bare.location, "browse", "Dr. Imani Noor", example="1"))
    assert "No judge has labelled this." in shown
    assert "no score yet" in shown
    assert "no points known: never scored" in check(open_page(bare.location, "browse", "Dr. Imani Noor", example="2"))


def test_a_verdict_without_a_judge_is_saved_and_exported(bare: world.World, open_page: Open):
    app = open_page(bare.location, "browse", "Dr. Imani Noor", example="1")
    own_verdicts(app)[0].select(Label.MET)
    check(app.run())  # a run of the whole page, as after a lost connection: the click is saved all the same
    assert [(row["label"], row["stage"], row["blinded"]) for row in bare.history()] == [("met", "open", False)]
    check(open_page(bare.location, "export", "Dr. Imani Noor"))


def test_a_conversation_that_nobody_answered_and_one_without_theme_or_language_open(bare: world.World, open_page: Open):
    with bare.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE example SET theme = NULL, category = NULL, language = NULL, canary = NULL, provisional = 1 WHERE id = 1"
            )
        )
        connection.execute(text("DELETE FROM response WHERE example_id = 2"))
    for page in PAGES:
        check(open_page(bare.location, page, "Ana Ruiz"))
    check(open_page(bare.location, "browse", "Ana Ruiz", example="1"))
    assert "No model has answered this conversation yet" in check(
        open_page(bare.location, "browse", "Ana Ruiz", example="2")
    )


def test_models_named_like_a_column_do_not_take_its_place(bare: world.World, open_page: Open):
    with bare.engine.begin() as connection:
        connection.execute(text("UPDATE model SET name = 'Turns'"))
    table = open_page(bare.location, "browse", "Ana Ruiz").dataframe[0].value
    assert {"Theme", "Conversation", "Turns", "Language", "Criteria"} <= set(table.columns)
    assert list(table["Turns"]) == [1, 1]


def widths(table) -> dict[str, int]:
    return {name: column["width"] for name, column in json.loads(table.proto.columns).items() if "width" in column}


def test_the_list_gives_a_conversation_the_room_that_is_left_and_leaves_out_columns_as_good_as_empty(
    location: str, open_page: Open
):
    """12 conversations that nobody has read, of which Birch-1 answered one: less than a tenth of Alder-2's."""
    made = world.made(location, points=((5,),) * 12, judged="+" * 12)
    with writing(made.engine) as session:
        birch = Model(name="Birch-1")
        session.add(birch)
        session.flush()
        answer = Response(example_id=1, model_id=birch.id, dataset="invented", text="Rest.", n_criteria=1)
        session.add(answer)
        session.flush()
        judge = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE)
        of_answer = {"example_id": 1, "response_id": answer.id, "criterion_id": made.criteria[0][0]}
        store.add_verdicts(
            session,
            [Verdict(**of_answer, rater_id=judge, stage=Stage.JUDGE, label=Label.MET)],
            actor="set-up",
            action="made",
        )
    app = open_page(location, "browse", "Ana Ruiz")
    table = app.dataframe[0]
    assert list(table.value) == ["Theme", "Conversation", "score Alder-2", "Criteria", "Turns", "Language"]
    assert "Not in this list: scores of Birch-1." in check(app)
    found = widths(table)
    assert sum(found.values()) == 980 - 34  # beside the sidebar of a window of 1280, less the boxes
    assert found["Conversation"] > 500


def test_in_the_list_of_the_demo_what_physicians_said_stands_beside_the_words_and_the_rest_is_scrolled_to(
    demo_study: str, open_page: Open
):
    found = widths(open_page(demo_study, "browse", LEAD).dataframe[0])
    first = [width for name, width in found.items() if name not in ("Criteria", "Turns", "Language")]
    assert sum(first) == 980 - 34
    assert found["Conversation"] >= 340


# ---------------------------------------------------------------- What a run asks of the study


def test_a_run_asks_once_what_is_new_and_what_waits_for_the_viewer(demo_study: str, open_page: Open, monkeypatch):
    asked: list[str] = []
    for module, name in ((frames, "data_version"), (queries, "blind_examples")):
        ask = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, ask=ask, name=name, **named: (asked.append(name), ask(*given, **named))[1]
        )
    open_page(demo_study, "browse", PHYSICIAN)
    assert sorted(asked) == ["blind_examples", "data_version"]


def test_a_run_asks_anew_after_it_has_saved_something(demo_study: str):
    token = common._run.set(common._Run(top=None))
    try:
        with reading(common.engine()) as session:
            lead = next(person for person in contents.people(session) if person.name == LEAD)
        before = common.version()
        assert common.version() is before
        acting.add_person(common.engine(), "Dr. Late", roles=[Role.REVIEWER], actor=lead)
        assert common.version() != before
    finally:
        common._run.reset(token)

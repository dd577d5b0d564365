"""Every page under every reader, on a full, an empty and a bare study: no exception, no hole in a sentence, the right doors closed."""

import re
import shutil
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock

import pytest
import streamlit as st
from sqlalchemy import text
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from evalcore import store
from evalcore.db import open_study, reading, writing
from evalcore.queries import study
from evalcore.schema import Label, Role
from evalcore.serving import COOKIE_PREFIX, cookie_name
from tests import world

ROOT = Path(__file__).parents[1]
PAGES = ("overview", "browse", "models", "judges", "triage", "calibration", "study", "export", "audit")
PEOPLE = ("Dr. Amara Okafor", "Dr. Nils Lindqvist", "Dr. Leila Haddad", "Dr. Tomas Vega", "Mina Castell")
LEAD, PHYSICIAN, BOTH_READER = "Mina Castell", "Dr. Amara Okafor", "Dr. Tomas Vega"
NOT_FOR_YOU = "This page is not for your role"
TITLES = {
    "overview": "Where the study stands",
    "browse": "Read conversations",
    "models": "What each model scores",
    "judges": "How often the judge is right",
    "triage": "Whether models send patients to the right level of care",
    "calibration": "Whether stated confidence can be relied on",
    "study": "Bring data in",
    "export": "Take the labels away",
    "audit": "Who did what",
}
HOLES = re.compile(r"\b(nan|NaN|None|NaT|<NA>|null|undefined)\b")

Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    """Pages keep engines and reads for the whole process: each test begins without."""
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def location(tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the pages look for the study: migrated, and empty."""
    path = str(shutil.copyfile(sqlite_template, tmp_path / "overread.db"))
    monkeypatch.setenv("OVERREAD_DB", path)
    return path


@pytest.fixture
def demo_study(location: str, demo_file: Path) -> str:
    shutil.copyfile(demo_file, location)
    return location


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Runs a page as somebody: `open_page(location, "browse", "Mina Castell", q="x")`; `alone` runs its file without app.py.

    AppTest cannot send a cookie, and looks for pages itself: both are done here as the browser and the launcher do them.
    """

    def opened(location: str, page: str, name: str | None, *, alone: bool = False, **query: str) -> AppTest:
        cookies = cookie_of(location, name) if name else {}
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookies))
        app = AppTest.from_file(str(ROOT / (f"pages/{page}.py" if alone else "app.py")), default_timeout=30)
        if not alone and page != "overview":
            app.run()
            app.switch_page(f"pages/{page}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    made = PagesManager.__init__

    def as_launched(manager: PagesManager, *arguments: object, **named: object) -> None:
        PagesManager.uses_pages_directory = False
        made(manager, *arguments, **named)

    monkeypatch.setattr(PagesManager, "__init__", as_launched)
    return opened


def cookie_of(location: str, name: str) -> dict[str, str]:
    engine = open_study(location)
    with reading(engine) as session:
        key = study.study_key(session)
        number = next(person.person_id for person in study.people(session) if person.name == name)
    engine.dispose()
    return {cookie_name(key or ""): str(number)}


def words(app: AppTest) -> str:
    """Everything that stands on the screen, tags taken off; tables as their cells."""
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    labels = [
        getattr(widget, "label", "") or "" for widget in (*app.button, *app.text_input, *app.selectbox, *app.toggle)
    ]
    cells = [
        str(cell)
        for table in app.dataframe
        for column in table.value
        for cell in [column, *table.value[column].dropna()]
    ]
    shown = [
        element.value
        for kind in (app.markdown, app.subheader, app.caption, app.info, app.warning, app.error)
        for element in kind
    ]
    return "\n".join([re.sub(r"<[^>]*>", " ", part) for part in html] + labels + cells + [str(part) for part in shown])


def check(app: AppTest) -> str:
    """Nothing went wrong, and no sentence has a hole; gives what stands on the screen."""
    assert not app.exception, [error.value for error in app.exception]
    found = words(app)
    holes = [found[max(hole.start() - 40, 0) : hole.end() + 40] for hole in HOLES.finditer(found)]
    assert holes == []
    return found


def said(app: AppTest) -> str:
    """What stands on the page and in its tables, as it reads; nothing went wrong, and neither a sentence nor a cell has a hole."""
    assert not app.exception, [error.value for error in app.exception]
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    cells = [str(cell) for table in app.dataframe for column in table.value for cell in (column, *table.value[column])]
    headings = [element.value for element in (*app.subheader, *app.info)]
    found = "\n".join([unescape(re.sub(r"<[^>]*>", " ", part)) for part in html] + headings + cells)
    holes = re.findall(r".{0,40}\b(?:nan|NaN|None|NaT|<NA>|inf)\b.{0,20}", found)
    assert holes == []
    return found


# --- Every page for everybody ---


@pytest.mark.parametrize("name", PEOPLE)
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
        (person,) = study.people(session)
    assert (person.name, person.roles) == ("Ana Ruiz", frozenset(Role))


def test_the_first_person_must_have_a_name(location: str, open_page: Open):
    app = open_page(location, "overview", None)
    assert "expected how the person is to be called" in check(app.button[0].click().run())


# --- Doors ---


@pytest.mark.parametrize("page", PAGES)
def test_a_page_file_alone_shows_nothing_to_nobody(page: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, page, None, alone=True)
    shown = check(app)
    assert "Choose who is reading first" in shown
    assert TITLES[page] not in shown
    assert not app.dataframe
    assert not app.button


@pytest.mark.parametrize("name", [person for person in PEOPLE if person != LEAD])
def test_the_audit_file_alone_refuses_everybody_but_the_lead(name: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, "audit", name, alone=True)
    assert NOT_FOR_YOU in check(app)
    assert not app.dataframe


def test_a_cookie_of_another_study_or_of_nobody_chooses_nobody(
    demo_study: str, open_page: Open, monkeypatch: pytest.MonkeyPatch
):
    (key,) = cookie_of(demo_study, LEAD)
    for cookies in (
        {f"{COOKIE_PREFIX}other": "1"},
        {key: "999"},
        {key: "9" * 30},
        {key: "1 OR 1=1"},
        {key: "²"},
        {key: "-1"},
        {key: ""},
    ):
        monkeypatch.setattr("tests.test_pages.cookie_of", lambda location, name, cookies=cookies: cookies)
        assert "Choose who is reading first" in check(open_page(demo_study, "browse", LEAD, alone=True)), cookies


def test_whoever_gives_no_verdicts_sees_them_and_why_the_controls_are_off(demo_study: str, open_page: Open):
    app = open_page(demo_study, "browse", LEAD, example="1")
    shown = check(app)
    assert (
        "Giving a verdict takes the role adjudicator or reviewer. Mina Castell is lead and researcher in this study."
        in shown
    )
    assert "Magpie" in shown
    controls = own_verdicts(app)
    assert controls
    assert all(control.disabled for control in controls)


@pytest.mark.parametrize("name", [PHYSICIAN, BOTH_READER])
def test_a_physician_has_a_control_on_every_criterion(name: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, "browse", name, example="1")
    assert "Giving a verdict takes" not in check(app)
    controls = own_verdicts(app)
    with reading(open_study(demo_study)) as session:
        n_criteria = (
            session.connection().execute(text("SELECT count(*) FROM criterion WHERE example_id = 1")).scalar_one()
        )
    assert len(controls) == n_criteria
    assert not any(control.disabled for control in controls)


def test_two_clicks_that_come_in_one_run_are_both_saved(demo_study: str, open_page: Open):
    app = open_page(demo_study, "browse", PHYSICIAN, example="1")
    for control in own_verdicts(app)[1:3]:
        control.select(Label.CANNOT_ASSESS)
    check(app.run())
    with open_study(demo_study).connect() as connection:
        saved = "SELECT count(*) FROM verdict WHERE stage = 'open' AND label = 'cannot_assess' AND example_id = 1"
        assert connection.execute(text(saved)).scalar_one() == 2
    assert [control.value for control in own_verdicts(app)[:4]] == [
        None,
        Label.CANNOT_ASSESS,
        Label.CANNOT_ASSESS,
        None,
    ]


def own_verdicts(app: AppTest) -> list[Any]:
    return [group for group in app.get("button_group") if str(group.key).startswith("label_")]


def test_importing_is_for_the_lead_and_adding_people_too(demo_study: str, open_page: Open):
    app = open_page(demo_study, "study", PHYSICIAN)
    shown = check(app)
    assert "Importing takes the role lead or researcher" in shown
    assert "Adding people takes the role lead" in shown
    assert not app.get("file_uploader")
    (add,) = [button for button in app.button if button.label == "Add person"]
    assert add.disabled
    lead = open_page(demo_study, "study", LEAD)
    assert len(lead.get("file_uploader")) == 1
    assert not next(button for button in lead.button if button.label == "Add person").disabled


def test_a_lead_adds_somebody_and_a_taken_name_is_refused_with_a_sentence(demo_study: str, open_page: Open):
    app = open_page(demo_study, "study", LEAD)
    for name, expected in (("Dr. Yuki Mori", "Dr. Yuki Mori"), (PHYSICIAN, "which somebody in this study has already")):
        app.text_input(key="person_name").set_value(name)
        next(button for button in app.button if button.label == "Add person").click()
        assert expected in check(app.run())
    with reading(open_study(demo_study)) as session:
        assert len(study.people(session)) == len(PEOPLE) + 1


# --- Addresses ---


def n_fitting(shown: str) -> int:
    found = re.search(r"([\d,]+) fit", shown)
    assert found, shown[:400]
    return int(found[1])


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ({"theme": "hedging"}, "theme = 'hedging'"),
        ({"language": "Arabic"}, "language = 'ar'"),
        ({"theme": "emergency referrals"}, "theme = 'emergency_referrals'"),
        ({"theme": "hedging", "language": "English"}, "theme = 'hedging' AND language = 'en'"),
        ({"sign": "undesirable (negative)"}, "id IN (SELECT example_id FROM criterion WHERE points < 0)"),
        ({"points": ["8", "10"]}, "id IN (SELECT example_id FROM criterion WHERE points >= 8)"),
    ],
)
def test_a_filter_in_the_address_is_on(query: dict[str, str], condition: str, demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", LEAD, **query))  # who reads nothing blind sees everything
    with open_study(demo_study).connect() as connection:
        wanted = connection.execute(text(f"SELECT count(*) FROM example WHERE {condition}")).scalar_one()
    assert n_fitting(shown) == wanted
    assert wanted > 0


@pytest.mark.parametrize(
    "query",
    [{"theme": "no such theme"}, {"points": "x"}, {"points": ["3", "-3"]}, {"differ": "maybe"}, {"language": "xx"}],
)
def test_a_filter_that_does_not_exist_is_left_out(query: dict[str, str], demo_study: str, open_page: Open):
    check(open_page(demo_study, "browse", PHYSICIAN, **query))


@pytest.mark.parametrize(
    "search", ['"', "AND OR NOT", "*", "(((", "col:x", "'; DROP TABLE verdict; --", "٣", "\u202e", "a" * 3_000, "%_\\"]
)
def test_any_search_finds_something_or_says_that_nothing_fits(search: str, demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", PHYSICIAN, q=search))
    assert n_fitting(shown) >= 0
    check(open_page(demo_study, "audit", LEAD, audit_search=search))


def test_an_example_that_is_not_there_is_named(demo_study: str, open_page: Open):
    shown = check(open_page(demo_study, "browse", PHYSICIAN, example="99999"))
    assert "This study has no conversation 99999" in shown


@pytest.mark.parametrize("example", ["x", "-1", "1.5", "", "²", "9" * 40])
def test_an_address_that_is_no_number_shows_the_list(example: str, demo_study: str, open_page: Open):
    assert TITLES["browse"] in check(open_page(demo_study, "browse", PHYSICIAN, example=example))


def test_three_responses_stand_side_by_side_and_a_wrong_name_among_them_is_left_out(demo_study: str, open_page: Open):
    three = check(open_page(demo_study, "browse", PHYSICIAN, example="1", shown=["Alder-2", "Briar-1", "Clover-mini"]))
    assert three.count("score by Magpie") == 3
    one = check(open_page(demo_study, "browse", PHYSICIAN, example="1", shown=["Briar-1", "Nobody-9"]))
    assert one.count("score by Magpie") == 1


# --- Studies with something missing ---


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

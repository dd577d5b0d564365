"""Who sees a page and who is refused: nobody, a cookie of somebody else, a role that may not."""

import pytest
from sqlalchemy import text

from evalcore.reading.adjudication import hidden_examples
from evalcore.serving import COOKIE_PREFIX
from evalcore.study import contents
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Label
from tests.page_steps import (
    BOTH_READER,
    LEAD,
    NOT_FOR_YOU,
    PAGES,
    PEOPLE,
    PHYSICIAN,
    TITLES,
    Open,
    check,
    cookie_of,
    own_verdicts,
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_file_alone_shows_nothing_to_nobody(page: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, page, None, alone=True)
    shown = check(app)
    assert "Choose who is reading first" in shown
    assert TITLES[page] not in shown
    assert not app.dataframe
    assert not app.button


@pytest.mark.parametrize("page", PAGES)
def test_a_page_asks_who_reads_and_shows_nothing_else(page: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, page, None)
    shown = check(app)
    assert "Sign in as" in shown
    assert TITLES[page] not in shown
    assert not app.dataframe


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
        monkeypatch.setattr("tests.conftest.cookie_of", lambda location, name, cookies=cookies: cookies)
        assert "Choose who is reading first" in check(open_page(demo_study, "browse", LEAD, alone=True)), cookies


def test_whoever_gives_no_verdicts_sees_them_and_why_the_controls_are_off(demo_study: str, open_page: Open):
    app = open_page(demo_study, "browse", LEAD, example="1")
    shown = check(app)
    assert "Only adjudicators and reviewers can give verdicts; you are a lead and a researcher in this study." in shown
    assert "Magpie" in shown
    controls = own_verdicts(app)
    assert controls
    assert all(control.disabled for control in controls)


@pytest.mark.parametrize("name", [PHYSICIAN, BOTH_READER])
def test_a_physician_has_a_control_on_every_criterion(name: str, demo_study: str, open_page: Open):
    engine = open_study(demo_study)
    with reading(engine) as session:
        person = next(one for one in contents.people(session) if one.name == name)
        with_rubric = session.connection().execute(text("SELECT DISTINCT example_id FROM criterion")).scalars()
        example = min({*with_rubric} - hidden_examples(session, person))
    app = open_page(demo_study, "browse", name, example=str(example))
    assert "Giving a verdict takes" not in check(app)
    controls = own_verdicts(app)
    with reading(engine) as session:
        of_example = text("SELECT count(*) FROM criterion WHERE example_id = :example")
        n_criteria = session.connection().execute(of_example, {"example": example}).scalar_one()
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


def test_importing_is_for_the_lead_and_adding_people_too(demo_study: str, open_page: Open):
    app = open_page(demo_study, "study", PHYSICIAN)
    shown = check(app)
    assert "Only leads and researchers can import" in shown
    assert "Only leads can add people" in shown
    assert not app.get("file_uploader")
    (add,) = [button for button in app.button if button.label == "Add person"]
    assert add.disabled
    lead = open_page(demo_study, "study", LEAD)
    assert len(lead.get("file_uploader")) == 1
    assert not next(button for button in lead.button if button.label == "Add person").disabled


def test_a_lead_adds_somebody_and_a_taken_name_is_refused_with_a_sentence(demo_study: str, open_page: Open):
    app = open_page(demo_study, "study", LEAD)
    # who is added leaves an empty form, so that nobody gets another's languages; what was refused stays, to be corrected
    for name, expected, left in (
        ("Dr. Yuki Mori", "Dr. Yuki Mori", ("", [])),
        (PHYSICIAN, "is already in this study", (PHYSICIAN, ["es"])),
    ):
        app.text_input(key="person_name").set_value(name)
        app.multiselect(key="person_languages").set_value(["es"])
        next(button for button in app.button if button.label == "Add person").click()
        assert expected in check(app.run())
        assert (app.text_input(key="person_name").value, app.multiselect(key="person_languages").value) == left
        assert app.multiselect(key="person_roles").value == ["reviewer"]
    with reading(open_study(demo_study)) as session:
        assert len(contents.people(session)) == len(PEOPLE) + 1

"""Review of levels of care: what is said after the lock, and what is asked where the judge reads another level."""

import pytest
from sqlalchemy import text

from evalcore.study.db import open_study
from evalcore.study.schema import Acuity, Ask, Cause
from pages.shared.keys import ANSWERS, CAUSES
from tests.page_steps import PHYSICIAN, check


@pytest.fixture
def waiting(demo_study: str):
    """The demo, in which only items of one question wait."""

    def only(ask: Ask) -> str:
        engine = open_study(demo_study)
        with engine.begin() as connection:
            connection.execute(
                text("DELETE FROM task WHERE assignment_id IN (SELECT id FROM assignment WHERE ask <> :ask)"),
                {"ask": ask},
            )
        engine.dispose()
        return demo_study

    return only


def press(app, key: str) -> None:
    next(button for button in app.button if button.key.startswith(f"{key}_")).click()
    assert not app.run().exception


def answer(app, level: Acuity) -> None:
    key = next(key for key, (label, _) in ANSWERS[Ask.GOLD_ACUITY].items() if label is level)
    press(app, f"answer_{key}")
    press(app, "submit")


def shown(app) -> str:
    return "".join(element.proto.body for element in app.get("html"))


def test_after_a_read_of_what_a_case_needs_nothing_is_said_of_a_judge(waiting, open_page):
    study = waiting(Ask.GOLD_ACUITY)
    app = open_page(study, "review", PHYSICIAN)
    check(app)
    answer(app, Acuity.REMOVE)
    assert "Locked: case unsuitable." in shown(app)
    press(app, "slip")
    press(app, "answer_B")
    assert "Locked: B." in shown(app)
    assert "judge" not in shown(app).split("</style>")[-1]
    engine = open_study(study)
    with engine.connect() as connection:
        read = text(
            "SELECT example_id FROM verdict WHERE response_id IS NULL AND stage = 'first' ORDER BY id DESC LIMIT 1"
        )
        number = connection.execute(read).scalar_one()
    engine.dispose()
    case = open_page(study, "browse", PHYSICIAN, example=str(number))
    check(case)
    assert "Physicians here say B: Triage shows it." in shown(
        case
    )  # its panel does not agree: there is no level to agree with


def test_of_a_judges_level_no_fault_of_a_criterion_and_no_kind_of_error_is_asked(waiting, open_page):
    study = waiting(Ask.RESPONSE_ACUITY)
    app = open_page(study, "review", PHYSICIAN)
    check(app)
    answer(app, Acuity.C_D)  # no judge reads a level between two
    assert "Locked: C/D." in shown(app)
    press(app, "go_on")
    press(app, "answer_6")  # kept
    of_criteria = (Cause.MISREAD_CRITERION, Cause.CRITERION_AMBIGUOUS, Cause.CRITERION_WRONG)
    offered = {button.label for button in app.button} & {*CAUSES.values()}
    assert offered == {words for cause, words in CAUSES.items() if cause not in of_criteria}
    assert not any(button.key.startswith("severity_") for button in app.button)
    press(app, "cause_P")
    press(app, "severity_9")
    assert not any(button.key.startswith("error_kind_") for button in app.button)
    engine = open_study(study)
    with engine.connect() as connection:
        said = connection.execute(
            text("SELECT label, severity, error_kind FROM verdict WHERE stage = 'revised' ORDER BY id DESC LIMIT 1")
        ).one()
    engine.dispose()
    assert tuple(said) == ("C/D", "severe", None)

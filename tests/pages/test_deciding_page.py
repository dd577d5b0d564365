"""Beside the judge, on the screen: to keep and to change take the same keys, and what may be said of the judge's error is never in the way."""

import pytest

from evalcore.study.schema import ReadingState
from tests import world
from tests.page_steps import drawn, press, said
from tests.reading_steps import IMANI, TOVE, at_desk, only_the_first
from tests.world import submitted

KEPT, JUDGES, THIRD = "answer_1", "answer_2", "answer_3"


@pytest.fixture
def differing(location):
    """Two criteria that Dr. Imani Noor calls met, and the judge not met; locked."""
    made = world.made(location, judged="--++")
    only_the_first(made)
    number, _ = submitted(made, IMANI, "++")
    yield made, number
    made.engine.dispose()


@pytest.mark.parametrize("label", [KEPT, JUDGES, THIRD])
def test_to_keep_and_to_change_take_the_same_number_of_keys(differing, location, open_page, label):
    made, number = differing
    app, presses = open_page(location, "review", IMANI), 0
    while drawn(app, "onward")[0].disabled:
        press(app, "next" if at_desk(made, number).decided and presses % 2 else label)
        presses += 1
    assert presses == 3  # a label, on to the next, a label
    press(app, "onward")
    assert at_desk(made, number).state is ReadingState.DONE
    wanted = {KEPT: "met", JUDGES: "not_met", THIRD: "cannot_assess"}[label]
    assert {given.label for given in at_desk(made, number).decided.values()} == {wanted}


def test_what_may_be_said_of_an_error_follows_the_label_and_none_of_it_is_asked_of_a_medical_disagreement(
    differing, location, open_page
):
    made, number = differing
    key = made.criteria[0][0]

    def stands():
        given = at_desk(made, number).decided[key]
        return given.label, given.cause, given.severity, given.error_kind

    app = open_page(location, "review", IMANI)
    assert not drawn(app, "cause_P")
    press(app, KEPT)
    assert not drawn(app, "severity_9")
    press(app, "cause_P")
    press(app, "severity_9")
    press(app, "error_kind_H")
    assert stands() == ("met", "judge_misread_answer", "severe", "omission")
    press(app, "severity_0")  # what was asked because of the harm goes with it
    assert stands() == ("met", "judge_misread_answer", "none", None)
    assert not drawn(app, "error_kind_H")
    press(app, "cause_I")
    assert stands() == ("met", "medical_disagreement", None, None)
    assert not drawn(app, "severity_9")
    press(app, "cause_I")  # a second press takes it back
    assert stands() == ("met", None, None, None)
    press(app, JUDGES)
    assert not drawn(app, "cause_P")
    press(app, "wrong")
    assert at_desk(made, number).decided[key].right_for_wrong_reason
    assert "changed from met to not met · right label, wrong reasoning" in said(app)


def test_what_cannot_be_assessed_beside_the_judge_is_asked_why_first(differing, location, open_page):
    made, number = differing
    app = open_page(location, "review", IMANI)
    press(app, THIRD)
    assert drawn(app, "reason_M")
    assert not drawn(app, "cause_M")
    press(app, "reason_M")
    assert at_desk(made, number).decided[made.criteria[0][0]].reason == "context_missing"
    assert drawn(app, "cause_M")
    assert not drawn(app, "reason_M")


def test_the_line_after_a_lock_names_the_response_that_was_locked(location, open_page):
    made = world.made(location, judged="++++")
    world.assigned(made)
    app = open_page(location, "review", TOVE)
    for _ in range(2):
        press(app, KEPT)
    press(app, "submit")
    assert "Response 1 of 2" in said(app)
    press(app, "go_on")
    assert "Response 2 of 2" in said(app)
    assert "Response 1 is locked; you and the judge agreed on everything" in said(app)
    made.engine.dispose()

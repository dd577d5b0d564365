"""Between the lock and the judge, on the screen: what was locked, and a slip told by one key and the answer."""

import re

import pytest

from evalcore.reading import reviewing
from evalcore.study.schema import Label, ReadingState
from tests import world
from tests.page_steps import drawn, press, said
from tests.reading_steps import IMANI, at_desk, only_the_first

MET, NOT_MET, CANNOT = "answer_1", "answer_2", "answer_3"
JUDGED = ("Magpie", "The judge", "judge differs", "agree")


@pytest.fixture
def read(location, open_page):
    """Two criteria, met and met, as the judge says or not; locked by the buttons of the page."""

    def lock(judged):
        made = world.made(location, judged=judged)
        only_the_first(made)
        app = open_page(location, "review", IMANI)
        press(app, MET)
        press(app, MET)
        press(app, "submit")
        made.engine.dispose()
        return made, app

    return lock


def test_the_screen_after_a_lock_is_the_same_whatever_the_judge_says(read, location, open_page):
    made, app = read("++++")
    agreeing = said(app).replace(location, "")
    assert "Locked: 2 met" in agreeing
    assert not any(words in agreeing for words in JUDGED)
    assert not drawn(app, MET)  # no answer is one key away
    again = open_page(location, "review", IMANI)  # after a reload, a sign-out, a crash
    assert "Locked: 2 met" in said(again)
    assert at_desk(made, 1).state is ReadingState.LOCKED
    press(again, "go_on")
    assert "you and the judge agreed on everything" in said(again)


def test_where_the_judge_differs_the_screen_after_a_lock_says_no_word_more(read):
    _, app = read("--++")
    assert "Locked: 2 met" in said(app)
    assert not any(words in said(app) for words in JUDGED)
    press(app, "go_on")
    assert "The judge differs on 2" in said(app)
    assert not drawn(app, "slip")


def test_a_slip_takes_its_key_the_item_and_the_answer_and_both_labels_stand_there(read):
    made, app = read("--++")
    press(app, "slip")
    assert "Which answer was the slip?" in said(app)
    press(app, "next")
    press(app, NOT_MET)
    assert "Locked: 1 met, 1 not met" in said(app)
    assert not drawn(app, MET)
    assert [at_desk(made, 1).first[key].label for key in made.criteria[0]] == ["met", "not_met"]
    press(app, "slip")  # asked for and left again
    press(app, "slip")
    press(app, "slip")
    press(app, CANNOT)
    press(app, "reason_language")
    assert [at_desk(made, 1).first[key].label for key in made.criteria[0]] == ["met", "cannot_assess"]


def test_where_no_judge_is_the_next_response_comes_with_a_line_on_the_last(location, open_page):
    made = world.made(location, judged="   ", points=((7, -4), (5,)))
    world.assigned(made)
    app = open_page(location, "review", IMANI)
    press(app, MET)
    press(app, MET)
    press(app, "submit")
    assert "Response 2 of 2" in said(app)
    assert "Locked: 2 met" in said(app)
    press(app, "slip")
    assert "Which answer was the slip?" in said(app)
    assert not drawn(app, "go_on")
    press(app, NOT_MET)
    assert [at_desk(made, 1).first[key].label for key in made.criteria[0]] == ["not_met", "met"]
    assert "Locked: 1 met, 1 not met" in said(app)
    press(app, MET)  # the next answer
    assert "Locked:" not in said(app)
    assert not drawn(app, "slip")
    press(app, "submit")
    assert "Everything is read" in said(app)
    press(app, "slip")
    press(app, NOT_MET)
    assert "Everything is read" in said(app)
    made.engine.dispose()


def test_the_lead_reads_on_the_study_page_how_many_answers_of_each_reader_were_slips(read, location, open_page):
    made, _ = read("--++")

    def on_study():
        return said(open_page(location, "study", "Ana Ruiz", study_tab="Reading"))

    assert "Slips" not in on_study()
    key = made.criteria[0][0]
    seen = at_desk(made, 1).first[key].verdict_id
    reviewing.slip(made.engine, made.viewer(), 1, key, Label.NOT_MET, seen=seen)
    assert re.search(rf"{IMANI}\s+Slips\s+1 of 2\s+Share\s+50\.0 %", on_study())

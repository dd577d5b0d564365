"""A practice round on the screen: three responses on Review's own screen, feedback after each, then the real ones; and what the lead sees of it."""

import pytest

from evalcore.reading import practice_queries
from evalcore.study.db import reading
from evalcore.study.schema import Label, Role, Stage
from tests import world
from tests.page_steps import check, drawn, press, said
from tests.reading_steps import IMANI, THIRD, TOVE, plan_of

MET, NOT_MET, CANNOT = "answer_1", "answer_2", "answer_3"
MODEL, JUDGE, REASON, OF_JUDGE = "Alder-2", "Magpie", "It names no sign at all.", "Magpie is right here."
SETTLER = "Dr. Settler"
TOLD_NOWHERE = (MODEL, JUDGE, OF_JUDGE, "It does.", IMANI, TOVE, SETTLER, "The judge")


@pytest.fixture
def study(location):
    """Three settled responses of two criteria, met and met but for the first of the third, and two that are assigned; Magpie said + and - of each."""
    made = world.made(location, points=((7, -4),) * 5, judged="+-" * 5)
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    for example in range(3):
        for name in (IMANI, TOVE):
            for criterion in (0, 1):
                world.said(made, Label.MET, name=name, example=example, criterion=criterion, blinded=True)
    how = {"name": SETTLER, "stage": Stage.ADJUDICATED, "example": 2}
    world.said(made, Label.NOT_MET, criterion=0, explanation=REASON, blinded=True, **how)
    world.said(made, Label.MET, criterion=1, explanation=OF_JUDGE, blinded=False, **how)
    yield made
    made.engine.dispose()


@pytest.fixture
def handed(study):
    plan = plan_of(("prompt-3", 1.0), ("prompt-4", 1.0))
    world.assigned(study, plan=plan, readers=(THIRD,), n_readers=1, practice=True)
    return study


def read(app, *answers):
    for answer in answers:
        press(app, answer)
    press(app, "submit")


def test_three_responses_with_feedback_each_then_the_reading_begins(handed, location, open_page):
    app = open_page(location, "review", THIRD)
    with reading(handed.engine) as session:
        responses = practice_queries.rounds(session, handed.viewer(THIRD))[1].responses
    of_third = handed.responses[2]
    n_agreed = 0
    for place, response in enumerate(responses, start=1):
        assert f"Practice {place} of 3: these reads are not counted" in said(app)
        assert f"Answer {handed.responses.index(response)}." in said(app)
        read(app, MET, MET)
        told = said(app)
        agrees = 1 if response == of_third else 2
        n_agreed += agrees
        assert f"You agreed on {agrees} of 2." in told
        assert (REASON in told, "You differ. Settled by an adjudicator." in " ".join(told.split())) == (
            agrees == 1,
            agrees == 1,
        )
        assert not any(words in told for words in TOLD_NOWHERE)
        assert not drawn(app, MET)
        press(app, "onward")
    assert "Practice is done" in said(app)
    assert f"You agreed on {n_agreed} of 6 criteria." in said(app)
    app.button("practice_begin").click()
    app.run()
    assert "Response 1 of 2" in said(app)
    assert world.count(handed.engine, "mark") == 0
    ((real,),) = world.rows(handed.engine, "SELECT response_id FROM task JOIN reading ON task_id = task.id")
    assert real not in responses


def test_marks_of_practice_can_be_undone_noted_and_left_for_another_page(handed, location, open_page):
    app = open_page(location, "review", THIRD)
    press(app, NOT_MET)
    press(app, CANNOT)
    assert drawn(app, "submit")[0].disabled
    press(app, "reason_language")
    assert not drawn(app, "submit")[0].disabled
    press(app, "undo")
    press(app, "undo")
    assert "1 of 2 answered" in said(app)
    press(app, "undo")
    assert "0 of 2 answered" in said(app)
    press(app, "undo")
    assert "There is nothing to undo here." in said(app)
    (note,) = (field for field in app.text_input if str(field.key).startswith("note_"))
    note.set_value("Which sign?")
    app.run()
    press(app, MET)
    app.switch_page("pages/browse/page.py").run()
    app.switch_page("pages/review/page.py").run()
    assert "1 of 2 answered" in said(app)
    assert "note" in said(app)
    assert world.count(handed.engine, "mark") == 0


def test_after_a_reload_practice_goes_on_behind_what_was_locked_and_may_be_repeated(handed, location, open_page):
    app = open_page(location, "review", THIRD)
    read(app, MET, MET)
    again = open_page(location, "review", THIRD)
    assert "Practice 2 of 3" in said(again)
    for _ in range(2):
        read(again, NOT_MET, NOT_MET)
        press(again, "onward")
    before = said(again)
    again.button("practice_again").click()
    again.run()
    assert "Practice 1 of 3" in said(again)
    for _ in range(3):
        read(again, MET, MET)
        press(again, "onward")
    assert "You agreed on 5 of 6" in said(again)
    assert "You agreed on 5 of 6" not in before
    assert "Response 1 of 2" in said(open_page(location, "review", THIRD))  # done, whatever the screen showed


def test_the_lead_ticks_it_where_reading_is_assigned_and_sees_how_far_each_is(study, location, open_page):
    app = open_page(location, "study", "Ana Ruiz", study_tab="Reading")
    assert not app.checkbox("assign_practice").value
    app.segmented_control("assign_ask").set_value("gold_acuity").run()
    assert app.checkbox("assign_practice").disabled
    app.segmented_control("assign_ask").set_value("rubric").run()
    assert "Labels agreed" not in check(app)
    app.multiselect("assign_people").set_value([THIRD])
    app.number_input("assign_readers_each").set_value(1)
    app.number_input("assign_n").set_value(2)
    app.number_input("assign_seed").set_value(3)
    app.selectbox("assign_reads").set_value("unread")
    app.checkbox("assign_practice").check()
    app.button("assign").click()
    told = said(app.run())
    assert f"begin with a practice round of 3 responses: {THIRD}" in told
    practised = open_page(location, "review", THIRD)
    read(practised, MET, MET)
    cells = " ".join(said(open_page(location, "study", "Ana Ruiz", study_tab="Reading")).split())
    assert f"{THIRD} Assigned" in cells
    assert "Practice 1 of 3 Labels agreed" in cells

"""A reader skips or flags the response in hand, on the screen; a lead answers, and the reader sees it there."""

import re

import pytest

from evalcore.reading import threads
from evalcore.study.schema import NoteKind
from tests import world
from tests.page_steps import drawn, press, said
from tests.reading_steps import IMANI, TOVE, take
from tests.world import JUDGE, assigned

LEAD = "Ana Ruiz"
CUT = "It is cut off."


@pytest.fixture
def two(location):
    made = world.made(location, judged="++++")
    assigned(made, readers=(IMANI, TOVE))
    yield made
    made.engine.dispose()


def line(app, start, text):
    (field,) = [field for field in app.text_input if str(field.key).startswith(f"{start}_")]
    field.set_value(text)


def test_a_reader_flags_and_skips_with_a_line_and_finds_the_leads_answer_on_the_response(two, location, open_page):
    app = open_page(location, "review", IMANI)
    assert not drawn(app, "skip")
    press(app, "tell_lead")
    press(app, "not_now")
    press(app, "tell_lead")
    press(app, "skip")  # nothing is written yet
    assert "expected a few words, got none" in said(app)
    line(app, "line", CUT)
    press(app, "flag")
    assert "Response 1 of 2" in said(app)
    assert "Response flagged; the lead has your line" in said(app)
    assert re.search(rf"You\s+flagged it.*{CUT}", said(app))
    assert not drawn(app, "skip")
    with_threads, _ = threads.of_lead(two.engine, two.viewer(LEAD))
    how = {"seen": with_threads[0].lines[-1].number}
    threads.reply(two.engine, two.viewer(LEAD), with_threads[0].task_id, 1, NoteKind.ANSWER, "It ends there.", **how)
    app = open_page(location, "review", IMANI)
    answered = said(app)
    assert re.search(r"The lead\s+answered.*It ends there\.", answered)
    assert LEAD not in answered
    press(app, "tell_lead")
    line(app, "line", "It names no dose.")
    press(app, "skip")
    assert "Response 1 of 1" in said(app)
    assert "1 skipped" in said(app)
    assert CUT not in said(app)  # another response is in hand
    assert CUT in said(open_page(location, "my_reads", IMANI))
    assert "on 1 response: 1 skipped, 1 waits for an answer" in said(open_page(location, "overview", IMANI))
    assert CUT not in said(open_page(location, "review", TOVE))
    assert CUT not in said(open_page(location, "my_reads", TOVE))


def test_a_reader_with_nothing_left_but_skipped_responses_is_told_so(two, location, open_page):
    for text in ("One.", "Two."):
        threads.tell(two.engine, two.viewer(), take(two, at=None).reading.id, text, skip=True)
    found = said(open_page(location, "review", IMANI))
    assert "Nothing else waits for you" in found
    assert "You have skipped 2 items" in found
    assert "One." in found


def test_a_lead_finds_the_lines_on_the_study_page_answers_returns_and_closes_there(two, location, open_page):
    for name, skip in ((IMANI, True), (TOVE, False)):
        threads.tell(two.engine, two.viewer(name), take(two, name).reading.id, f"{CUT} {name}", skip=skip)
    links = [link.proto.label for link in open_page(location, "overview", LEAD).get("page_link")]
    assert "Study: 2 lines from readers wait for your answer" in links
    app = open_page(location, "study", LEAD, study_tab="Reading")
    found = said(app)
    assert "2 threads wait for an answer; 1 skipped" in found
    assert "mention no verdict, judge or model" in found
    assert "Alder-2" not in found.split("Assignments")[0].split("Lines from readers")[-1]
    assert JUDGE not in found.split("Lines from readers")[-1].split("Assign reading")[0]
    press(app, "return")
    line(app, "reply", "Magpie says met.")
    press(app, "answer")
    assert "names a model, a judge, or who made it" in said(app)
    line(app, "reply", "Read on.")
    press(app, "answer")
    assert "0 threads wait for an answer; 0 skipped" in said(app)
    kinds = [[entry.kind for entry in thread.lines] for thread in threads.of_lead(two.engine, two.viewer(LEAD))[0]]
    assert sorted(kinds) == [[NoteKind.FLAG, NoteKind.ANSWER], [NoteKind.SKIP, NoteKind.RETURN]]
    assert "Lines from readers" not in said(open_page(location, "study", IMANI, study_tab="Reading"))

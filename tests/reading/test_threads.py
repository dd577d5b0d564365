"""A response that is skipped or flagged: what it is meanwhile, who may do what, and a thread that nobody else sees."""

import shutil
import tempfile
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.export.tables import table
from evalcore.reading import queries, reviewing, threads
from evalcore.reading.assignment_queries import assignments
from evalcore.reading.thread_queries import Thread
from evalcore.reading.threads import MAX_LINE
from evalcore.study.audit.chain import verify
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, Label, NoteKind, ReadingState, Role
from tests import world
from tests.reading_steps import IMANI, THIRD, TOVE, in_hand, mark, only_the_first, take
from tests.storage_steps import refused
from tests.world import answer, assigned

LEAD = "Ana Ruiz"
WORDS = "The answer is cut off."
N_RESPONSES = 2


def tell(small, desk, text=WORDS, *, name=IMANI, skip=True, at=world.START):
    threads.tell(small.engine, small.viewer(name), desk.reading.id, text, skip=skip, at=at)


def of_lead(small, name=LEAD) -> list[Thread]:
    return threads.of_lead(small.engine, small.viewer(name))[0]


def reply(small, kind, text="", *, thread=None, name=LEAD, seen=None):
    thread = thread or of_lead(small)[0]
    seen = seen or thread.lines[-1].number
    threads.reply(
        small.engine, small.viewer(name), thread.task_id, thread.person_id, kind, text, seen=seen, at=world.START
    )


def far(small, name=IMANI):
    with reading(small.engine) as session:
        found = queries.progress(session, small.viewer(name), world.START)
    return found.n_done, found.n_left, found.n_skipped


def own(small, task_id, name=IMANI):
    with reading(small.engine) as session:
        return threads.own_thread(session, small.viewer(name), task_id)


# ---------------------------------------------------------------- what a skipped response is


def test_a_skipped_response_leaves_the_open_work_gives_its_place_to_others_and_counts_as_no_read(small):
    assigned(small, n_readers=1, readers=(IMANI, TOVE))
    desk = take(small)
    mark(small, desk)
    tell(small, desk)
    assert far(small) == (0, 1, 1)
    assert in_hand(small) != desk.asked.response_id
    assert in_hand(small, TOVE) == desk.asked.response_id  # one place, and it is free
    with reading(small.engine) as session:
        (row,) = assignments(session).to_dict(orient="records")
        assert desk.asked.example_id in queries.blind_examples(session, small.viewer())  # it may come back
        assert verify(session).holds
    assert (row["n_reads"], row["n_open"], row["n_skipped"]) == (0, 2, 1)
    assert table(small.engine, "labels")["n_reads"].sum() == 0
    assert [event for event in small.events() if "skipped" in event[1]] == [(IMANI, "response skipped")]


def test_a_returned_response_is_the_readers_next_with_its_marks(small):
    assigned(small, readers=(IMANI, TOVE))
    desk = take(small)
    mark(small, desk)
    tell(small, desk)
    other = take(small, at=world.after(1))
    reply(small, NoteKind.RETURN, "It ends there on purpose.")
    assert take(small, at=world.after(2)).reading.id == other.reading.id  # what is in hand stays in hand
    labels = "+-" if other.asked.example_id == 1 else "++"  # as the judge, so that nothing is left to decide
    number = answer(small, small.viewer(), other, labels, at=world.after(2))
    world.lock(small.engine, small.viewer(), number, at=world.after(2))
    again = take(small, at=world.after(3))
    assert again.reading.id == desk.reading.id
    assert [draft.label for draft in again.drafts.values()] == [Label.MET]
    assert far(small) == (1, 1, 0)


@pytest.mark.parametrize("has_marks", [False, True])
def test_a_response_whose_place_others_took_is_not_returned_unless_work_on_it_is_kept(small, has_marks):
    only_the_first(small, n_readers=1, readers=(IMANI, TOVE))
    desk = take(small)
    if has_marks:
        mark(small, desk)
    tell(small, desk)
    world.submitted(small, TOVE, "++")
    if has_marks:
        reply(small, NoteKind.RETURN)
        assert take(small).reading.id == desk.reading.id
    else:
        with pytest.raises(NotAllowed, match="As many others as were wanted have read this response"):
            reply(small, NoteKind.RETURN)
        assert take(small) is None


ACTS = st.lists(st.sampled_from(["skip", "flag", "mark", "return", "lock"]), max_size=12)


@pytest.fixture(scope="module")
def template():
    with tempfile.TemporaryDirectory() as folder:
        made = world.made(f"{folder}/study.db", judged="    ")
        assigned(made, readers=(IMANI,), n_readers=1)
        yield world.at_rest(made)


@settings(max_examples=15, deadline=None)
@given(acts=ACTS)
def test_after_any_history_a_response_is_open_or_skipped_or_locked_and_the_counts_add_up(template, acts):
    folder = Path(tempfile.mkdtemp())
    small = world.copied(template, str(folder / "study.db"))
    viewer, skipped, locked = small.viewer(), [], 0
    for act in acts:
        desk = take(small)
        if act == "return":
            waiting = [thread for thread in of_lead(small) if thread.is_skipped]
            assert {thread.response_id for thread in waiting} == set(skipped)
            if waiting:
                reply(small, NoteKind.RETURN, thread=waiting[-1])
                skipped.remove(waiting[-1].response_id)
        elif desk is None:
            assert len(skipped) + locked == N_RESPONSES
        elif act == "lock":
            reviewing.submit(small.engine, viewer, answer(small, viewer, desk, "++"), at=world.START)
            locked += 1
        elif act == "mark":
            mark(small, desk)
        else:
            tell(small, desk, skip=act == "skip")
            skipped += [desk.asked.response_id] if act == "skip" else []
        assert far(small) == (locked, N_RESPONSES - locked - len(skipped), len(skipped))
        assert world.count(small.engine, "verdict") == 2 * locked
    with reading(small.engine) as session:
        assert verify(session).holds
    small.engine.dispose()
    shutil.rmtree(folder)


# ---------------------------------------------------------------- who may, and when


def test_only_the_reader_in_whose_hands_it_is_skips_or_flags_and_only_before_the_lock(small):
    only_the_first(small, readers=(IMANI, TOVE))
    desk = take(small)
    for name in (TOVE, LEAD):
        with pytest.raises(NotFound, match="belongs to somebody else"):
            tell(small, desk, name=name)
    reviewing.submit(small.engine, small.viewer(), answer(small, small.viewer(), desk, "++"), at=world.START)
    for skip in (False, True):
        with pytest.raises(AlreadyChanged, match="submitted already"):
            tell(small, desk, skip=skip)
    assert world.count(small.engine, "response_note") == 0


def test_nothing_is_said_of_a_skipped_response_in_a_tab_that_still_shows_it(small):
    assigned(small, readers=(IMANI, TOVE))
    desk = take(small)
    answer(small, small.viewer(), desk, "++")
    tell(small, desk)
    presses = [
        lambda: mark(small, desk),
        lambda: tell(small, desk),
        lambda: tell(small, desk, skip=False),
        lambda: reviewing.move(small.engine, small.viewer(), desk.reading.id, 1),
        lambda: reviewing.submit(small.engine, small.viewer(), desk.reading.id),
    ]
    for press in presses:
        with pytest.raises(AlreadyChanged, match="You have skipped this response"):
            press()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "got none"), (" \n", "got none"), ("x" * (MAX_LINE + 1), "got 501"), ("a\x00b", "no database holds")],
)
def test_a_line_says_something_briefly_in_plain_text(small, text, sentence):
    only_the_first(small, readers=(IMANI, TOVE))
    desk = take(small)
    for skip in (False, True):
        with pytest.raises(OverreadError, match=sentence):
            tell(small, desk, text, skip=skip)
    tell(small, desk, skip=False)
    with pytest.raises(OverreadError, match=sentence):
        reply(small, NoteKind.ANSWER, text)
    assert world.count(small.engine, "response_note") == 1


def test_only_a_lead_answers_closes_and_returns_and_the_administrator_does(small):
    only_the_first(small, readers=(IMANI, TOVE))
    tell(small, take(small))
    (thread,) = of_lead(small)
    for kind in (NoteKind.ANSWER, NoteKind.CLOSE, NoteKind.RETURN):
        with pytest.raises(NotAllowed, match="Only leads can answer readers' lines"):
            reply(small, kind, "Read on.", thread=thread, name=TOVE)
    with pytest.raises(OverreadError, match="expected answer, close or return"):
        reply(small, NoteKind.SKIP, "Read on.", thread=thread)
    how = {"seen": thread.lines[-1].number}
    threads.reply(small.engine, Administrator(), thread.task_id, thread.person_id, NoteKind.RETURN, **how)
    assert [line.kind for line in own(small, thread.task_id).lines] == [NoteKind.SKIP, NoteKind.RETURN]


def test_a_lead_who_answers_an_older_line_is_told_that_there_is_a_newer_one(small):
    only_the_first(small, readers=(IMANI, TOVE))
    desk = take(small)
    tell(small, desk, skip=False)
    (before,) = of_lead(small)
    tell(small, desk, "It ends amid a word.", skip=False)
    with pytest.raises(AlreadyChanged, match="Somebody has written here since"):
        reply(small, NoteKind.ANSWER, "Read on.", thread=before)
    reply(small, NoteKind.CLOSE)
    with pytest.raises(AlreadyChanged, match="Somebody has written here since"):
        reply(small, NoteKind.CLOSE)
    with pytest.raises(AlreadyChanged, match="is not skipped any more"):
        reply(small, NoteKind.RETURN)


def test_what_waits_for_a_lead_comes_first_and_a_new_line_opens_a_closed_thread(small):
    assigned(small, readers=(IMANI, TOVE))
    desk = take(small)
    tell(small, desk, skip=False)
    tell(small, take(small, TOVE), "In Arabic.", name=TOVE)
    states = [(thread.reader, thread.waits, thread.is_skipped, thread.is_closed) for thread in of_lead(small)]
    assert states == [(TOVE, True, True, False), (IMANI, True, False, False)]
    reply(small, NoteKind.CLOSE)
    states = [(thread.reader, thread.waits, thread.is_skipped, thread.is_closed) for thread in of_lead(small)]
    assert states == [(IMANI, True, False, False), (TOVE, False, True, True)]
    reply(small, NoteKind.CLOSE)
    tell(small, desk, "And it stops.", skip=False)
    assert [(thread.reader, thread.waits) for thread in of_lead(small)] == [(IMANI, True), (TOVE, False)]


# ---------------------------------------------------------------- blind


def everything_given(small, name):
    """All that a reader's pages ask of the core: what is in hand, and their threads."""
    desk = take(small, name)
    return f"{astuple(desk)} {own(small, desk.asked.task_id, name)}"


def test_no_reader_is_given_another_readers_line_or_what_the_lead_answered_there_before_the_lock_or_after(small):
    only_the_first(small, n_readers=2, readers=(IMANI, TOVE))
    tell(small, take(small), "Kelbrunth", skip=False)
    reply(small, NoteKind.ANSWER, "Trundavel")
    tell(small, take(small, TOVE), "Zephyrquist", name=TOVE, skip=False)
    for name, number in ((IMANI, take(small).reading.id), (TOVE, take(small, TOVE).reading.id)):
        for _ in ("blind", "locked"):
            given_ = everything_given(small, name)
            assert ("Kelbrunth" in given_, "Trundavel" in given_) == (name == IMANI, name == IMANI)
            assert ("Zephyrquist" in given_) == (name == TOVE)
            if take(small, name).state is ReadingState.READING:
                reviewing.submit(
                    small.engine, small.viewer(name), answer(small, small.viewer(name), take(small, name), "--")
                )
        assert take(small, name).reading.id == number
    assert "Kelbrunth" not in str(table(small.engine, "verdicts").to_dict())


def test_a_thread_names_no_model_and_no_judge_and_an_answer_that_does_is_refused(small):
    only_the_first(small, readers=(IMANI, TOVE))
    tell(small, take(small))
    (thread,) = of_lead(small)
    assert not any(name in str(thread) for name in ("Alder", world.JUDGE))
    for text in ("alder-2 stops there.", f"{world.JUDGE} says met."):
        with pytest.raises(NotAllowed, match="names a model, a judge, or who made it"):
            reply(small, NoteKind.ANSWER, text)
    reply(small, NoteKind.ANSWER, "It stops there.")


def test_a_lead_sees_no_thread_on_a_conversation_that_waits_for_the_leads_own_read(small):
    world.leads_read(small.engine)
    world.add_researcher(small.engine, THIRD, Role.LEAD, Role.REVIEWER)
    only_the_first(small, readers=(IMANI, THIRD))
    tell(small, take(small))
    assert threads.of_lead(small.engine, small.viewer(THIRD)) == ([], 1)
    with pytest.raises(NotAllowed, match="waits for your first read"):
        reply(small, NoteKind.ANSWER, "Read on.", name=THIRD)


@pytest.mark.parametrize("act", ["UPDATE response_note SET text = 'x'", "DELETE FROM response_note"])
def test_lines_are_append_only(small, act):
    only_the_first(small, readers=(IMANI, TOVE))
    tell(small, take(small))
    assert "response_note is append-only" in refused(small.engine, act)

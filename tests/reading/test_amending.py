"""An assignment is cancelled, paused, handed over, joined or extended while it is read: what is locked stays and counts, and no rule of the queue is broken."""

import itertools
import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.reading import amending, assigning, assignment_queries, pace, queries, reviewing, threads
from evalcore.reading.adjudication import to_settle
from evalcore.reading.assigning import Choice
from evalcore.reading.exposing import open_conversation
from evalcore.rubric import queries as rubric_queries
from evalcore.study import contents
from evalcore.study.audit.chain import verify
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, NoteKind, Role
from evalcore.team import people
from tests import world
from tests.reading_steps import IMANI, THIRD, TOVE, in_hand, mark, take
from tests.world import after, answer, assigned, submitted

LEAD = Administrator(name="Ana Ruiz")
ENOUGH = "We have enough of these."


@pytest.fixture
def six(database_url):
    """Six responses of one criterion each, which the judge calls met; three readers."""
    made = world.made(database_url, points=((1,),) * 6, judged="++++++")
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


@pytest.fixture
def six_quick(sqlite_database_url):
    made = world.made(sqlite_database_url, points=((1,),) * 6, judged="++++++")
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


def row(small, number=1):
    with reading(small.engine) as session:
        found = assignment_queries.assignments(session)
    return found.set_index("assignment_id").loc[number]


def probabilities(small):
    """Of each response that was read, the probability that any drawing took it, as every estimate has it."""
    with reading(small.engine) as session:
        reads = rubric_queries.load(session).reads
    return dict(zip(reads["response_id"], reads["inclusion_probability"].round(9), strict=True))


def marked(small, name=IMANI):
    """The next item of a reader, with a mark: its reading's number."""
    desk = take(small, name)
    mark(small, desk, name=name)
    return desk.reading.id


def holds(small):
    with reading(small.engine) as session:
        return verify(session).holds


# ---------------------------------------------------------------- cancel


def test_what_nobody_has_begun_leaves_every_queue_and_what_is_locked_stays(six):
    assigned(six, n_readers=2, readers=(IMANI, TOVE))
    first = in_hand(six, IMANI)
    submitted(six, IMANI, "+")
    begun = marked(six)
    left = amending.cancel(six.engine, 1, ENOUGH, actor=LEAD, at=after(1))
    assert (left.n_locked, left.n_begun, left.n_unread) == (1, 1, 6 * 2 - 2)
    assert take(six, IMANI) is take(six, TOVE) is None
    assert world.rows(six.engine, "SELECT count(*) FROM mark WHERE reading_id = :n", n=begun) == [(1,)]
    found = row(six)
    assert (found["n_reads"], found["n_open"], found["n_wanted"]) == (1, 0, 1)
    assert probabilities(six) == {
        first: pytest.approx(1 / 6)
    }  # all six were drawn; read in random order, one stands for six
    assert holds(six)


def test_the_reader_of_what_was_begun_is_told_until_they_lock_something_else(six_quick):
    assigned(six_quick, n_readers=1, readers=(IMANI,))
    desk = take(six_quick, IMANI)
    amending.cancel(six_quick.engine, 1, ENOUGH, actor=LEAD, at=after(1))
    with pytest.raises(AlreadyChanged, match="A lead has taken this response back"):
        mark(six_quick, desk, at=after(2))
    viewer = six_quick.viewer(IMANI)

    def told():
        with reading(six_quick.engine) as session:
            return amending.taken_back_words(queries.taken_back(session, viewer))

    assert told() == [f"The lead has cancelled 1 response that you had begun: {ENOUGH} Your marks are kept."]
    assigned(six_quick, n_readers=1, readers=(IMANI,))
    submitted(six_quick, IMANI, "+", at=after(3))
    assert told() == []


def test_a_locked_read_of_what_was_cancelled_goes_on_to_its_end(six_quick):
    assigned(six_quick, n_readers=1)
    viewer, desk = six_quick.viewer(IMANI), take(six_quick, IMANI)
    number = answer(six_quick, viewer, desk, "-")
    reviewing.submit(six_quick.engine, viewer, number, at=after(1))
    amending.cancel(six_quick.engine, 1, ENOUGH, actor=LEAD, at=after(2))
    assert reviewing.reveal(six_quick.engine, viewer, number, at=after(3)) == "revealed"
    (key,) = desk.keys
    reviewing.revise(six_quick.engine, viewer, number, key, reviewing.Decision("met"), seen=None, at=after(4))
    reviewing.finish(six_quick.engine, viewer, number, at=after(5))
    assert take(six_quick, IMANI) is None


def test_what_nobody_read_may_be_drawn_anew_also_by_who_had_begun_it_and_all_drawings_count_together(six):
    """1 of 6 read, then 3 of the other 5: 1/6 + 5/6 * 3/5 = 4/6, as if 4 of 6 had been drawn at once."""
    assigned(six, n_readers=1, readers=(IMANI,))
    read = in_hand(six, IMANI)
    submitted(six, IMANI, "+")
    begun = marked(six)
    amending.cancel(six.engine, 1, ENOUGH, actor=LEAD, at=after(1))
    with reading(six.engine) as session:
        assert assignment_queries.assigned(session, "rubric") == {(six.responses.index(read) + 1, read)}
    assigned(six, n_readers=1, readers=(IMANI,), n_items=3)
    numbers = [submitted(six, IMANI, "+", at=after(2))[0] for _ in range(3)]
    assert begun not in numbers  # of the cancelled task: it stays as it was
    assert sorted(probabilities(six).values()) == pytest.approx([4 / 6] * 4)


def test_a_cancelled_assignment_asks_for_no_second_read_before_a_conflict_is_due(six_quick):
    """One of two wanted readers cannot assess: due only once nobody else comes."""
    world.add_researcher(six_quick.engine, "Dr. Sol", Role.ADJUDICATOR)
    assigned(six_quick, n_readers=2, readers=(IMANI, TOVE))
    submitted(six_quick, IMANI, "?")
    sol = six_quick.viewer("Dr. Sol")
    with reading(six_quick.engine) as session:
        assert not to_settle(session, sol)
    amending.cancel(six_quick.engine, 1, ENOUGH, actor=LEAD, at=after(1))
    with reading(six_quick.engine) as session:
        assert len(to_settle(session, sol)) == 1


def test_nothing_more_is_done_to_what_was_cancelled_and_the_reason_names_no_model(six_quick):
    assigned(six_quick)
    engine = six_quick.engine
    for because, words in (("  ", "Reason: expected a few words"), ("Alder-2 is done", "This reason names a model")):
        with pytest.raises(OverreadError, match=words):
            amending.cancel(engine, 1, because, actor=LEAD)
    amending.cancel(engine, 1, ENOUGH, actor=LEAD)
    for act in (
        lambda: amending.cancel(engine, 1, ENOUGH, actor=LEAD),
        lambda: amending.pause(engine, 1, actor=LEAD),
        lambda: amending.resume(engine, 1, actor=LEAD),
        lambda: amending.add_readers(engine, 1, [THIRD], actor=LEAD),
        lambda: amending.extend(engine, 1, 1, blind=frozenset(), actor=LEAD),
    ):
        with pytest.raises(OverreadError, match=r"was cancelled|no item fits|Nothing is left"):
            act()
    with pytest.raises(NotFound, match="an assignment that goes on"):
        amending.hand_over(engine, IMANI, THIRD, actor=LEAD)


def test_what_was_skipped_cannot_be_returned_once_it_is_cancelled(six_quick):
    assigned(six_quick, n_readers=1, readers=(IMANI,))
    viewer, desk = six_quick.viewer(IMANI), take(six_quick, IMANI)
    threads.tell(six_quick.engine, viewer, desk.reading.id, "It is cut off", skip=True, at=after(1))
    amending.cancel(six_quick.engine, 1, ENOUGH, actor=LEAD, at=after(2))
    (thread,), _ = threads.of_lead(six_quick.engine, LEAD)
    with pytest.raises(NotAllowed, match="cancelled, or handed to another reader"):
        threads.reply(
            six_quick.engine, LEAD, thread.task_id, thread.person_id, NoteKind.RETURN, seen=thread.lines[-1].number
        )


# ---------------------------------------------------------------- pause


def test_what_is_paused_is_not_handed_out_and_stays_hidden_from_its_readers(six):
    assigned(six, n_readers=1, readers=(IMANI, TOVE))
    held = take(six, IMANI)
    amending.pause(six.engine, 1, actor=LEAD, at=after(1))
    assert take(six, TOVE) is None
    assert take(six, IMANI).reading.id == held.reading.id  # what is in hand may be finished
    submitted(six, IMANI, "+", at=after(2))
    assert take(six, IMANI, at=after(3)) is None
    with reading(six.engine) as session:
        assert len(queries.blind_examples(session, six.viewer(TOVE))) == 5
        assert queries.progress(session, six.viewer(TOVE), after(3)).n_left == 0
    with pytest.raises(AlreadyChanged, match="paused already"):
        amending.pause(six.engine, 1, actor=LEAD)
    amending.resume(six.engine, 1, actor=LEAD)
    assert take(six, TOVE, at=after(4)) is not None
    with pytest.raises(AlreadyChanged, match="not paused"):
        amending.resume(six.engine, 1, actor=LEAD)
    assert holds(six)


# ---------------------------------------------------------------- hand over, add, deactivate


def test_what_a_reader_has_not_locked_goes_to_another_in_the_order_that_was_drawn(six):
    assigned(six, n_readers=1, readers=(IMANI,), seed=4)
    order = [response for (response,) in world.rows(six.engine, "SELECT response_id FROM task ORDER BY place")]
    submitted(six, IMANI, "+")
    marked(six)
    report = amending.hand_over(six.engine, IMANI, TOVE, actor=LEAD, at=after(1))
    assert (report.n_waiting, report.n_able) == (5, ((TOVE, 5),))
    assert take(six, IMANI, at=after(1)) is None
    desk = take(six, TOVE, at=after(2))
    assert desk.drafts == {}  # nobody sees another's marks
    read = []
    while (response := in_hand(six, TOVE, at=after(2))) is not None:
        read.append(response)
        submitted(six, TOVE, "+", at=after(2))
    assert read == order[1:]
    assert row(six)["readers"] == TOVE
    assert row(six)["n_reads"] == 6
    assert set(probabilities(six).values()) == {1.0}
    assert holds(six)


def test_nobody_is_handed_what_they_have_read_or_seen_verdicts_on(six):
    assigned(six, n_readers=2, readers=(IMANI, TOVE))
    submitted(six, TOVE, "+")
    (seen,) = world.rows(six.engine, "SELECT response_id FROM task WHERE place = 3")[0]
    people.set_active(six.engine, TOVE, active=False, actor=LEAD)  # so that the third may look at it
    open_conversation(six.engine, six.viewer(THIRD), six.responses.index(seen) + 1)
    report = amending.hand_over(six.engine, TOVE, THIRD, actor=LEAD, at=after(1))
    assert report.n_able == ((THIRD, report.n_waiting - 1),)
    assert "seen verdicts on them" in report.sentences()[-1]
    read = set()
    while (response := in_hand(six, THIRD, at=after(2))) is not None:
        read.add(response)
        submitted(six, THIRD, "+", at=after(2))
    assert read == {*six.responses} - {seen}


def test_who_is_handed_over_to_has_to_be_another_who_may_read(six_quick):
    assigned(six_quick, n_readers=1, readers=(IMANI,))
    for taker, words in ((IMANI, "another reader than"), ("Ana Ruiz", "lead or researcher|reviewers or adjudicators")):
        with pytest.raises(OverreadError, match=words):
            amending.hand_over(six_quick.engine, IMANI, taker, actor=LEAD)
    with pytest.raises(NotFound, match="assignment 1, got 'Dr"):
        amending.hand_over(six_quick.engine, TOVE, THIRD, number=1, actor=LEAD)
    with pytest.raises(NotAllowed, match="Only leads can assign reading"):
        amending.hand_over(six_quick.engine, IMANI, TOVE, actor=six_quick.viewer(TOVE))


def test_who_joins_reads_with_the_others_and_no_item_gets_more_reads(six):
    assigned(six, n_readers=1, readers=(IMANI,))
    with pytest.raises(AlreadyChanged, match="do not read assignment 1 yet, got Dr"):
        amending.add_readers(six.engine, 1, [IMANI], actor=LEAD)
    report = amending.add_readers(six.engine, 1, [TOVE, THIRD], actor=LEAD, at=after(0))
    assert report.n_able == ((THIRD, 6), (TOVE, 6))
    for name in itertools.islice(itertools.cycle((IMANI, TOVE, THIRD)), 6):
        submitted(six, name, "+")
    assert take(six, IMANI) is take(six, TOVE) is take(six, THIRD) is None
    assert world.rows(six.engine, "SELECT count(*), count(DISTINCT task_id) FROM reading") == [(6, 6)]


def test_who_is_let_in_no_longer_frees_what_they_hold_and_finds_their_marks_again(six):
    assigned(six, n_readers=1, readers=(IMANI, TOVE))
    number = marked(six)
    held = in_hand(six, IMANI)
    people.set_active(six.engine, IMANI, active=False, actor=LEAD)
    assert row(six)["n_open"] == 0
    assert in_hand(six, TOVE, at=after(1)) == held  # the first in the order: its place is free
    people.set_active(six.engine, IMANI, active=True, actor=LEAD)
    assert in_hand(six, IMANI, at=after(1)) != held  # that place is taken now
    submitted(six, IMANI, "+", at=after(1))
    people.set_active(six.engine, TOVE, active=False, actor=LEAD)
    desk = take(six, IMANI, at=after(2))
    assert (desk.reading.id, len(desk.drafts)) == (number, 1)


# ---------------------------------------------------------------- extend


def test_more_of_the_same_plan_is_drawn_as_if_it_had_been_drawn_at_once(six):
    """2 of 6, then 3 of the other 4: 1 - (1 - 2/6)(1 - 3/4) = 5/6."""
    assigned(six, n_readers=1, readers=(IMANI,), n_items=2, seed=7)
    report = amending.extend(six.engine, 1, 3, blind=frozenset(), actor=LEAD)
    assert (report.assignment_id, report.n_items, report.n_population, report.readers) == (2, 3, 4, (IMANI,))
    assert report.seed == amending.extension_seed(7, n_before=2)
    for _ in range(5):
        submitted(six, IMANI, "+")
    assert sorted(probabilities(six).values()) == pytest.approx([5 / 6] * 5)
    with reading(six.engine) as session:
        chosen_by = assignment_queries.assignments(session)["chosen_by"]
    assert [json.loads(words) for words in chosen_by] == [{"extends": 1}, {}]
    again = amending.extend(six.engine, 2, 1, blind=frozenset(), actor=LEAD, dry_run=True)
    assert again.seed == amending.extension_seed(report.seed, n_before=5)
    assert again.n_population == 1


def test_what_was_chosen_is_not_drawn_on(six_quick):
    assigned(six_quick, n_readers=1, chosen=tuple(six_quick.responses[:1]), alone=True)
    with pytest.raises(OverreadError, match="drawn at random by filters, got 1"):
        amending.extend(six_quick.engine, 1, 1, blind=frozenset(), actor=LEAD)


# ---------------------------------------------------------------- progress


def test_the_days_left_are_what_a_reader_could_take_at_their_pace(six_quick):
    """Imani locks 2 on one day and could take 4 more: 2 days. Tove has read nothing: no pace."""
    assigned(six_quick, n_readers=2, readers=(IMANI, TOVE))
    for _ in range(2):
        submitted(six_quick, IMANI, "+")
    with reading(six_quick.engine) as session:
        found = pace.by_reader(
            assignment_queries.readers(session, after(1)), assignment_queries.locked_reads(session), after(1)
        )
    found = found.set_index("reader")
    assert found.loc[IMANI, ["n_reads", "n_waiting", "pace", "days"]].tolist() == [2, 4, 2.0, 2.0]
    assert found.loc[TOVE, ["n_reads", "n_waiting"]].tolist() == [0, 6]
    assert found.loc[TOVE, ["pace", "days"]].isna().all()


# ---------------------------------------------------------------- any history

NAMES = (IMANI, TOVE, THIRD)
WHO = st.sampled_from(NAMES)
ACTS = st.one_of(
    st.tuples(st.sampled_from(["take", "lock", "lock", "lock", "deactivate", "activate"]), WHO),
    st.tuples(st.just("hand over"), st.permutations(NAMES).map(lambda names: tuple(names[:2]))),
    st.tuples(st.just("add"), WHO),
    st.tuples(st.sampled_from(["pause", "resume", "cancel", "assign", "extend"]), st.integers(1, 3)),
)


def act(small, what, whom, at):
    engine = small.engine
    if what == "take":
        reviewing.take(engine, small.viewer(whom), at=at)
    elif what == "lock":
        submitted(small, whom, "+", at=at)
    elif what in ("deactivate", "activate"):
        people.set_active(engine, whom, active=what == "activate", actor=LEAD)
    elif what == "hand over":
        amending.hand_over(engine, *whom, actor=LEAD, at=at)
    elif what == "add":
        amending.add_readers(engine, 1, [whom], actor=LEAD, at=at)
    elif what == "cancel":
        amending.cancel(engine, whom, ENOUGH, actor=LEAD, at=at)
    elif what == "assign":
        assigning.assign(engine, Choice(seed=1, n_readers=whom, n_items=2), actor=LEAD)
    elif what == "extend":
        amending.extend(engine, 1, whom, blind=frozenset(), actor=LEAD)
    else:
        {"pause": amending.pause, "resume": amending.resume}[what](engine, whom, actor=LEAD)


def check_history(small, acts):
    """After every act: no item is read twice by one person, no task has more than its readers, what is locked stays, and the counts add up."""
    assigned(small, n_readers=2, n_items=4)
    locked: set[int] = set()
    for minute, (what, whom) in enumerate(acts):
        with suppress(OverreadError, AssertionError, StopIteration):  # refused, nothing waits, or they are not let in
            act(small, what, whom, after(seconds=minute))
        rows = world.rows(
            small.engine,
            "SELECT r.id, r.person_id, t.response_id, t.id, t.assignment_id, r.state, r.freed_at IS NULL AND r.reserved_until > :at FROM reading r "
            "JOIN task t ON t.id = r.task_id",
            at=after(seconds=minute).replace(tzinfo=None)
            if small.engine.dialect.name == "sqlite"
            else after(seconds=minute),
        )
        done = [found for found in rows if found[5] != "reading"]
        assert locked <= {found[0] for found in done}
        locked = {found[0] for found in done}
        pairs = [(person, response) for _, person, response, *_ in done]
        assert len(pairs) == len(set(pairs))
        wanted = dict(world.rows(small.engine, "SELECT id, n_readers FROM assignment"))
        held = [found for found in rows if found[5] != "reading" or found[6]]
        for task, n in {
            task: [found[3] for found in held].count(task) for task in {found[3] for found in held}
        }.items():
            assert n <= wanted[next(found[4] for found in held if found[3] == task)]
        with reading(small.engine) as session:
            found = assignment_queries.assignments(session)
            people_now = {person.person_id for person in contents.people(session)}
        assert found["n_reads"].sum() == len(done)
        assert (found["n_wanted"] >= found["n_reads"]).all()
        assert (found.loc[found["cancelled_at"].notna(), "n_open"] == 0).all()
        assert all(person in people_now for _, person, *_, state, is_held in rows if state == "reading" and is_held)
    numbers = world.rows(
        small.engine, "SELECT count(*), count(DISTINCT response_id) FROM verdict WHERE stage = 'first'"
    )
    assert numbers[0][0] == len(locked)
    assert {p for p in probabilities(small).values() if not 0 < p <= 1} == set()
    assert holds(small)


def any_history(url, acts):
    made = world.made(url, points=((1,),) * 6, judged="++++++")
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    try:
        check_history(made, acts)
    finally:
        made.engine.dispose()


HISTORY = st.lists(ACTS, min_size=8, max_size=24)


@given(acts=HISTORY)
def test_any_history_breaks_no_rule(acts, tmp_path_factory):
    any_history(str(tmp_path_factory.mktemp("history") / "a.db"), acts)


@pytest.mark.slow
@given(acts=HISTORY)
def test_any_history_breaks_no_rule_on_postgresql(acts, postgres_spare):
    try:
        any_history(postgres_spare.take(), acts)
    finally:
        postgres_spare.give_back()


HISTORIES = (
    [("lock", IMANI), ("take", TOVE), ("hand over", (TOVE, THIRD)), ("lock", THIRD), ("add", TOVE), ("lock", TOVE), ("lock", TOVE), ("cancel", 1),
     ("assign", 2), ("lock", IMANI), ("lock", THIRD), ("deactivate", IMANI), ("extend", 1), ("activate", IMANI), ("lock", IMANI)],
    [("take", IMANI), ("deactivate", IMANI), ("lock", TOVE), ("lock", THIRD), ("activate", IMANI), ("take", IMANI), ("pause", 1), ("lock", IMANI),
     ("lock", TOVE), ("resume", 1), ("lock", TOVE), ("extend", 2), ("lock", THIRD), ("cancel", 2), ("cancel", 1), ("lock", TOVE)],
)  # fmt: skip


@pytest.mark.parametrize("acts", HISTORIES)
def test_two_histories_break_no_rule_on_either_database(six, acts):
    check_history(six, acts)

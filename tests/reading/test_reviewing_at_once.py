"""Two processes at one moment: nothing lost, nothing doubled, and a clear sentence for the one who came second."""

import traceback

import pytest
from sqlmodel import select

from evalcore.errors import AlreadyChanged, OverreadError
from evalcore.reading import assigning, reviewing
from evalcore.reading.assigning import Choice
from evalcore.reading.reviewing import Decision
from evalcore.study.db import connect, reading
from evalcore.study.schema import Administrator, CannotReason, Label, ReadingState, Role
from evalcore.study.tables import Reading
from tests import world
from tests.processes import context
from tests.world import after, answer, assigned, submitted

IMANI, TOVE, THIRD = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. Third"
N_ROUNDS = 3  # a race is run several times, each on an item of its own
SECOND = "This read was submitted already, in another tab or by a second press. Nothing was saved twice."


# ---------------------------------------------------------------- what each process may do


def take(small, name, at):
    desk = reviewing.take(small.engine, small.viewer(name), at=at)
    return desk and (desk.reading.id, desk.asked.task_id)


def submit(small, name, number, at):
    return world.lock(small.engine, small.viewer(name), number, at=at).value


def mark(small, name, number, key, labels, at):
    for label in labels:
        reviewing.mark(small.engine, small.viewer(name), number, key, Label(label), reason=CannotReason.LANGUAGE, at=at)


def decide(small, name, number, key, label):
    return reviewing.revise(small.engine, small.viewer(name), number, key, Decision(Label(label)), seen=None)


def finish(small, name, number):
    return reviewing.finish(small.engine, small.viewer(name), number)


def assign(small, name):
    return assigning.assign(small.engine, Choice(), actor=Administrator(name=name)).n_items


ACTS = {act.__name__: act for act in (take, submit, mark, decide, finish, assign)}


def worker(start, orders, answers):
    """In a process of its own: for every order wait for the other process, act, and say what came of it."""
    while (order := orders.get()) is not None:
        place, location, act, arguments = order
        said = "failed", "before the start"
        try:
            small = world.World(location, connect(location), [], [])
            small.viewer(IMANI)  # the connection is open
            start.wait(60)
            try:
                said = "done", ACTS[act](small, *arguments)
            except OverreadError as error:
                said = type(error).__name__, str(error)
            small.engine.dispose()
        except Exception:  # noqa: BLE001 - whatever it is, the test shows it
            said = "failed", traceback.format_exc()
        answers.put((place, said))


@pytest.fixture(scope="module")
def at_once():
    """Runs two acts at the same moment in two processes: `at_once(location, (act, ...), (act, ...))`; what came of each."""
    apart = context()
    start, answers = apart.Barrier(2), apart.Queue()
    orders = [apart.Queue() for _ in range(2)]
    processes = [apart.Process(target=worker, args=(start, queue, answers), daemon=True) for queue in orders]
    for process in processes:
        process.start()

    def run(location, *acts):
        for place, (queue, (act, *arguments)) in enumerate(zip(orders, acts, strict=True)):
            queue.put((place, location, act, arguments))
        came = dict(answers.get(timeout=90) for _ in acts)
        assert "failed" not in {kind for kind, _ in came.values()}, came
        return [came[place] for place in range(len(acts))]

    yield run
    for queue in orders:
        queue.put(None)
    for process in processes:
        process.join(30)


@pytest.fixture
def small(database_url):
    """As many items as rounds, of two criteria each; the judge says + -."""
    made = world.made(database_url, points=((7, -4),) * N_ROUNDS, judged="+-" * N_ROUNDS)
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


def first_reads(small):
    """(rater, criterion, label) of every first verdict that was ever given."""
    return sorted(
        (row["rater"], row["criterion_id"], row["label"]) for row in small.history() if row["stage"] == "first"
    )


def open_desk(small, name=IMANI, at=world.START):
    return reviewing.take(small.engine, small.viewer(name), at=at)


# ---------------------------------------------------------------- claiming


def test_of_two_reviewers_who_claim_the_last_place_at_once_one_gets_it_and_the_other_another_item(small, at_once):
    assigned(small, n_readers=1)
    n_read = 0
    while n_read < N_ROUNDS:
        came = at_once(small.location, ("take", IMANI, world.START), ("take", TOVE, world.START))
        taken = {name: what for name, (_, what) in zip((IMANI, TOVE), came, strict=True) if what is not None}
        tasks = {task for _, task in taken.values()}
        assert len(taken) == len(tasks) == min(N_ROUNDS - n_read, 2)  # never both on one; the last goes to one alone
        for name in taken:
            submitted(small, name, "+-")
        n_read += len(taken)
    assert world.count(small.engine, "reading") == N_ROUNDS


def test_one_reviewer_who_takes_from_two_tabs_at_once_has_one_item(small, at_once):
    assigned(small)
    for n_read in range(N_ROUNDS):
        came = at_once(small.location, *[("take", IMANI, world.START)] * 2)
        assert came[0] == came[1]
        assert world.count(small.engine, "reading") == n_read + 1
        submitted(small, IMANI, "+-")


def test_who_comes_back_while_another_takes_the_place_shares_it_with_nobody(small, at_once):
    """Whoever is first has the one place; the reader who marked nothing gives the item back or keeps it."""
    assigned(small, n_items=1, n_readers=1)
    for turn in range(1, N_ROUNDS + 1):
        open_desk(small, IMANI, after(turn * 100 - 50))
        came = at_once(small.location, *[("take", name, after(turn * 100)) for name in (IMANI, TOVE)])
        assert sorted(what is None for _, what in came) == [False, True], came
        with reading(small.engine) as session:
            kept = [row for row in session.exec(select(Reading)) if row.reserved_until > after(turn * 100)]
        assert len(kept) == 1


def test_two_leads_who_assign_the_same_at_once_assign_it_once(small, at_once):
    came = at_once(small.location, ("assign", "Ana Ruiz"), ("assign", "Ana Ruiz"))
    assert ("done", N_ROUNDS) in came
    assert ("OverreadError", "Nothing is left to assign: no item fits, or all that fit are assigned already.") in came
    items = world.rows(small.engine, "SELECT response_id FROM task")
    assert len(items) == len(set(items)) == N_ROUNDS


# ---------------------------------------------------------------- marks


def test_marks_from_two_tabs_at_once_are_all_kept_and_the_newest_counts(small, at_once):
    assigned(small)
    desk = open_desk(small)
    number, (one, two) = desk.reading.id, desk.keys
    same = at_once(
        small.location,
        ("mark", IMANI, number, one, ["met"] * 10, after(1)),
        ("mark", IMANI, number, one, ["not_met"] * 10, after(1)),
    )
    apart = at_once(
        small.location,
        ("mark", IMANI, number, one, ["met", "cannot_assess"], after(2)),
        ("mark", IMANI, number, two, ["met", "not_met"], after(2)),
    )
    assert {kind for kind, _ in (*same, *apart)} == {"done"}
    stored = world.rows(small.engine, "SELECT criterion_id, label FROM mark ORDER BY id")
    assert sorted(stored[:20]) == sorted([(one, "met")] * 10 + [(one, "not_met")] * 10)
    newest = dict(stored)
    assert newest == {one: "cannot_assess", two: "not_met"}
    drafts = open_desk(small).drafts
    assert {key: draft.label for key, draft in drafts.items()} == newest
    # a minute to the first marks, a minute to the second; none of it twice
    assert reviewing.open_review(small.engine, small.viewer(), number).reading.seconds == 120.0


def test_a_mark_at_the_moment_of_the_submission_counts_whole_or_is_told(small, at_once):
    assigned(small)
    for n_read in range(1, N_ROUNDS + 1):
        desk = open_desk(small)
        viewer, key = small.viewer(), desk.keys[0]
        number = answer(small, viewer, desk, "+-")
        marked, locked = at_once(
            small.location, ("mark", IMANI, number, key, ["not_met"], after(1)), ("submit", IMANI, number, after(1))
        )
        assert locked[0] == "done"
        assert marked in (("done", None), ("AlreadyChanged", SECOND))
        (label,) = [label for _, criterion, label in first_reads(small) if criterion == key]
        assert label == ("not_met" if marked[0] == "done" else "met")
        assert len(first_reads(small)) == 2 * n_read
        if locked[1] == ReadingState.REVEALED:
            reviewing.revise(small.engine, viewer, number, key, Decision(Label.MET), seen=None)
            reviewing.finish(small.engine, viewer, number)


# ---------------------------------------------------------------- submitting


def test_two_reviewers_who_submit_one_response_at_once_are_both_kept(small, at_once):
    """In the first round neither of them is a rater yet."""
    assigned(small)
    wanted = []
    for _ in range(N_ROUNDS):
        desks = {name: open_desk(small, name) for name in (IMANI, TOVE)}
        numbers = {name: answer(small, small.viewer(name), desk, "+-") for name, desk in desks.items()}
        assert len({desk.asked.response_id for desk in desks.values()}) == 1
        came = at_once(small.location, *[("submit", name, number, after(1)) for name, number in numbers.items()])
        assert came == [("done", "done")] * 2
        for name, desk in desks.items():
            wanted += [(name, desk.keys[0], "met"), (name, desk.keys[1], "not_met")]
        assert first_reads(small) == sorted(wanted)
    submissions = [actor for actor, action in small.events() if action == "first read submitted"]
    assert sorted(submissions) == sorted([IMANI, TOVE] * N_ROUNDS)
    assert open_desk(small, THIRD) is None


def test_of_one_read_that_is_submitted_from_two_tabs_at_once_one_is_kept_and_one_is_told(small, at_once):
    assigned(small)
    for n_read in range(1, N_ROUNDS + 1):
        number = answer(small, small.viewer(), open_desk(small), "+-")
        n_events = len(small.events())
        came = at_once(small.location, *[("submit", IMANI, number, after(1))] * 2)
        assert sorted(came) == [("AlreadyChanged", SECOND), ("done", "done")]
        assert len(first_reads(small)) == 2 * n_read
        assert len(small.events()) == n_events + 1


def test_a_submit_after_the_reservation_ran_out_and_anothers_submit_at_once_are_both_kept(small, at_once):
    assigned(small, n_readers=1)
    for n_read in range(1, N_ROUNDS + 1):
        start = n_read * 200
        late = open_desk(small, IMANI, after(start))
        late_number = answer(small, small.viewer(), late, "+-", at=after(start))
        desk = open_desk(small, TOVE, after(start + 50))
        number = answer(small, small.viewer(TOVE), desk, "+-", at=after(start + 50))
        assert desk.asked.task_id == late.asked.task_id
        acts = [("submit", name, what, after(start + 51)) for name, what in ((IMANI, late_number), (TOVE, number))]
        assert at_once(small.location, *acts) == [("done", "done")] * 2
        assert len(first_reads(small)) == 4 * n_read  # one read more than was wanted, none lost
        assert len(set(first_reads(small))) == 4 * n_read
    assert open_desk(small, THIRD, after(10_000)) is None


def test_a_late_submit_and_another_who_takes_the_place_at_once_lose_nothing(small, at_once):
    assigned(small, n_items=1, n_readers=1)
    number = answer(small, small.viewer(), open_desk(small), "+-")
    locked, taken = at_once(small.location, ("submit", IMANI, number, after(50)), ("take", TOVE, after(50)))
    assert locked == ("done", "done")
    assert len(first_reads(small)) == 2
    if taken[1] is not None:  # came before the lock: reads it as well, one read more
        submitted(small, TOVE, "+-", at=after(51))
        assert len(first_reads(small)) == 4
    assert open_desk(small, THIRD, after(200)) is None


# ---------------------------------------------------------------- deciding


def test_of_two_tabs_that_decide_at_once_one_is_kept_and_one_is_told_and_finishing_twice_is_once(small, at_once):
    assigned(small)
    for _ in range(N_ROUNDS):
        number, state = submitted(small, IMANI, "++")  # the judge: + -
        assert state is ReadingState.REVEALED
        key = reviewing.open_review(small.engine, small.viewer(), number).differing[0]
        came = at_once(small.location, *[("decide", IMANI, number, key, label) for label in ("met", "not_met")])
        (kept,) = [what for kind, what in came if kind == "done"]
        (told,) = [what for kind, what in came if kind == AlreadyChanged.__name__]
        assert told == "This was decided in another tab. The newer decision is shown now; the last press was not saved."
        assert reviewing.open_review(small.engine, small.viewer(), number).decided[key].verdict_id == kept
        assert at_once(small.location, *[("finish", IMANI, number)] * 2) == [("done", None)] * 2
    assert sum(row["stage"] == "revised" for row in small.history()) == N_ROUNDS

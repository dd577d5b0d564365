"""What goes wrong at the server and in the database: the counts are right all the same, and nothing is lost that is not said."""

import sqlite3
from collections import Counter

import pytest
from sqlalchemy.exc import OperationalError

from evalcore.runs import asking
from evalcore.runs.model_client import ModelClient, Patience
from evalcore.runs.store import save_answers
from evalcore.study.schema import Outcome, RunState
from tests.judge_server.faults import ASKED_AGAIN, REFUSED, REJECTED, UNREADABLE, Fault, Faults
from tests.judge_server.rule import drawn
from tests.judge_server.running import judge_server
from tests.run_steps import MET, Scripted
from tests.run_world import KEY, begun, judging, keys, settings, study, worked

QUICK = Patience(attempts=2, seconds=60, wait_initial=0.001, wait_max=0.002, wait_jitter=0.001)
BODIES = {Fault.MALFORMED, Fault.TRUNCATED, Fault.PAGE, Fault.NO_CHOICES, Fault.NULL_CONTENT}
"""Whole replies, none of them a chat completion."""
SLOW = {Fault.STALLED, Fault.HUGE, Fault.TRICKLE}
EVEN = 0.5


def expected(faults: Faults, key: str, *, seed: int, attempts: int) -> tuple[Outcome, str | None]:
    """What comes of a question, and its label: by the rule of the server and of the run, apart from both programs."""
    first = 0
    for _call in range(asking.MAX_CALLS):
        fault, n_tries = faults.last(key, attempts, seed=seed, first=first)
        first += n_tries
        if fault not in UNREADABLE:
            break
    if fault in UNREADABLE or fault in BODIES or fault is Fault.HUGE:
        return Outcome.UNREADABLE, None
    if fault in REFUSED:
        return Outcome.REFUSED, None
    if fault in REJECTED:
        return Outcome.REJECTED, None
    if fault in ASKED_AGAIN:
        return Outcome.UNREACHABLE, None
    return Outcome.ANSWERED, "met" if drawn(seed, key, "met") < EVEN else "not_met"


def under(url, faults, *, seed=5, n_examples=60, concurrency=20):
    """A run against a server with these faults: what was expected of each question, and what came."""
    with (
        judge_server(seed=seed, faults=faults, retry_after=0.001, trickle_seconds=0.01, stall_seconds=0.05) as judge,
        study(url, n_examples=n_examples, points=(5, -3, 4)) as small,
    ):
        run_id = begun(small, judging(judge.base_url), concurrency=concurrency, max_failures=1_000)
        model = settings(judge.base_url, structured=False)
        client = ModelClient(model, concurrency=concurrency, key=KEY, patience=QUICK)
        ended = worked(small, run_id, client=client)
        wanted = {
            number: expected(faults, key, seed=seed, attempts=QUICK.attempts)
            for number, key in keys(small, run_id).items()
        }
        rows = small.rows(
            "SELECT q.id, q.outcome, v.label FROM run_question q LEFT JOIN verdict v ON v.response_id = q.response_id AND v.criterion_id = q.criterion_id"
        )
        assert len(rows) == n_examples * 3  # no item has two verdicts
        assert ended.outcomes == Counter(outcome for outcome, _ in wanted.values())
        assert sum(judge.told.asked.values()) == small.one("SELECT sum(attempts) FROM run_call")
        raw = small.rows("SELECT outcome, reply, error FROM run_call WHERE outcome <> 'answered'")
    return wanted, {number: (Outcome(outcome), label) for number, outcome, label in rows}, raw


def test_every_fault_mixed_ends_in_the_right_verdicts_and_failures(database_url):
    wanted, came, raw = under(database_url, Faults.mixed(0.7, *(set(Fault) - SLOW)))
    assert came == wanted
    assert {outcome for outcome, _ in wanted.values()} == set(Outcome)  # each is there to go wrong
    assert all(error for _, _, error in raw)
    assert all(reply for outcome, reply, _ in raw if outcome == "unreadable")


@pytest.mark.slow
@pytest.mark.parametrize("fault", Fault)
def test_each_fault_alone_ends_in_the_right_verdicts_and_failures(sqlite_database_url, fault):
    wanted, came, _ = under(sqlite_database_url, Faults.alone(fault), n_examples=3)
    assert came == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_questions_under_every_fault_at_thirty_in_a_hundred(database_url, seed):
    wanted, came, _ = under(database_url, Faults.mixed(0.3), seed=seed, n_examples=700, concurrency=100)
    assert came == wanted


class Broken:
    """A database that refuses some of the transactions that save answers, at their end."""

    def __init__(self, refuses, error: Exception | None = None) -> None:
        self.refuses, self.n_tries = refuses, 0
        self.error = error or OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full"))

    def __call__(self, session, run, worker_id, answers):
        self.n_tries += 1
        saved = save_answers(session, run, worker_id, answers)
        if self.refuses(self.n_tries, answers):
            raise self.error
        return saved


@pytest.fixture
def small(database_url, monkeypatch):
    monkeypatch.setattr(asking, "SAVE_ANSWERS", 5)
    monkeypatch.setattr(asking, "MOST_UNSAVED", 10)
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.001)
    with study(database_url, n_examples=30, points=(5, -3)) as made:
        yield made


def test_a_database_that_was_away_for_a_moment_gets_everything(small, monkeypatch):
    broken = Broken(lambda n, _answers: n in (2, 3, 5))
    monkeypatch.setattr(asking, "save_answers", broken)
    client = Scripted()
    run_id = begun(small, judging(), concurrency=4)
    ended = worked(small, run_id, client=client)
    assert (ended.state, ended.n_answered, ended.n_lost, len(client.asked)) == (RunState.DONE, 60, 0, 60)
    assert len(small.verdicts()) == 60
    assert broken.n_tries > 5


def test_a_full_disk_stops_the_run_and_says_what_is_lost(small, monkeypatch):
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(asking, "LAST_SECONDS", 0.02)
    monkeypatch.setattr(asking, "save_answers", Broken(lambda n, _answers: n > 2))
    client = Scripted()
    run_id = begun(small, judging(), concurrency=4)
    ended = worked(small, run_id, client=client)
    assert ended.reason == "the database does not take what arrives: database or disk is full"
    kept = len(small.verdicts())
    assert ended.n_lost == len(client.asked) - kept > 0
    assert (
        f"{ended.n_lost:,} answers arrived and could not be saved: asked again when the run is started again."
        in ended.sentences()
    )
    monkeypatch.setattr(asking, "save_answers", save_answers)
    assert begun(small, judging(), concurrency=4) == run_id
    assert worked(small, run_id, client=Scripted()).n_answered == 60 - kept
    assert small.verdicts().total() == len(small.verdicts()) == 60


def test_a_disk_that_has_room_again_at_the_end_loses_nothing(small, monkeypatch):
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0.02)
    tried = []
    first = Broken(lambda _n, _answers: not tried)
    monkeypatch.setattr(asking, "save_answers", first)
    wound = asking.Asking._wind_up

    async def wind_up(self):
        tried.append(self)
        await wound(self)

    monkeypatch.setattr(asking.Asking, "_wind_up", wind_up)
    client = Scripted()
    ended = worked(small, begun(small, judging(), concurrency=4), client=client)
    assert (ended.n_lost, len(small.verdicts())) == (0, len(client.asked))
    assert ended.state is RunState.STOPPED


def test_answers_that_arrive_last_and_cannot_be_saved_are_said_as_well(small, monkeypatch):
    """All has been asked when the first saving fails: the run is not done."""
    monkeypatch.setattr(asking, "MOST_UNSAVED", 1_000)
    monkeypatch.setattr(asking, "SAVE_ANSWERS", 1_000)
    monkeypatch.setattr(asking, "LAST_SECONDS", 0.02)
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(asking, "save_answers", Broken(lambda _n, _answers: True))
    ended = worked(small, begun(small, judging(), concurrency=60), client=Scripted())
    assert ended.reason == "the database does not take what arrives: database or disk is full"
    assert (ended.state, ended.n_lost, ended.n_left, small.verdicts()) == (RunState.STOPPED, 60, 60, {})


def test_an_answer_that_cannot_be_written_does_not_take_the_others_along(small, monkeypatch):
    """Of a lot of five that holds a bad one, the other four are saved."""
    bad = []

    def is_bad(_n, answers):
        bad.extend(answers[:1] if not bad else [])
        return any(answer is bad[0] for answer in answers)

    monkeypatch.setattr(
        asking, "save_answers", Broken(is_bad, UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed"))
    )
    ended = worked(small, begun(small, judging(), concurrency=4), client=Scripted())
    assert ended.reason.startswith("a fault in Overread: UnicodeEncodeError")
    assert (ended.n_lost, len(small.verdicts())) == (1, ended.n_answered - 1)


def test_a_file_that_brings_a_verdict_meanwhile_does_not_stop_the_run(small):
    """The item has a verdict when the answer arrives: the answer is not kept, and the question is closed."""
    spec = judging()
    run_id = begun(small, spec, concurrency=4)
    with small.engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO rater (kind, name, prompt_version) VALUES ('judge', 'Magpie', '{spec.prompt_version}')"
        )
        connection.exec_driver_sql(
            "INSERT INTO verdict (example_id, response_id, criterion_id, rater_id, stage, label, right_for_wrong_reason, created_at) "
            "SELECT 1, 1, 1, id, 'judge', 'not_met', false, '2026-11-20 10:00:00' FROM rater"
        )
    ended = worked(small, run_id, client=Scripted(MET))
    assert (ended.n_answered, ended.n_there, ended.state) == (60, 1, RunState.DONE)
    assert small.verdicts().total() == len(small.verdicts()) == 60
    assert small.rows("SELECT label FROM verdict WHERE criterion_id = 1") == [("not_met",)]


@pytest.mark.parametrize("is_back", [True, False])
def test_what_was_saved_of_a_lot_is_neither_lost_nor_saved_again(small, monkeypatch, is_back):
    """A lot cannot be written, its first half is saved, and then the database is away: for good, or until the end."""
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(asking, "LAST_SECONDS", 0.02)
    unwritable = UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed")
    full = OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full"))
    n_tries, is_at_end, save_the_rest = 0, False, asking.Keeping.save_the_rest

    def save(session, run, worker_id, answers):
        nonlocal n_tries
        n_tries += 1
        if n_tries == 1:
            raise unwritable
        if n_tries > 2 and not (is_at_end and is_back):
            raise full
        return save_answers(session, run, worker_id, answers)

    async def at_end(self):
        nonlocal is_at_end
        is_at_end = True
        await save_the_rest(self)

    monkeypatch.setattr(asking, "save_answers", save)
    monkeypatch.setattr(asking.Keeping, "save_the_rest", at_end)
    client = Scripted()
    ended = worked(small, begun(small, judging(), concurrency=4), client=client)
    n_saved = len(small.verdicts())
    assert n_saved > 0
    assert (n_saved == len(client.asked)) is is_back
    assert (ended.n_lost, ended.n_there) == (len(client.asked) - n_saved, 0)

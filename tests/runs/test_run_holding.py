"""Who holds which questions: whatever workers do, no question is in two hands, and none is left in a dead one's."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings, strategies as some

from evalcore.runs import queries, store
from evalcore.runs.prompts import Judged
from evalcore.runs.spec import Call
from evalcore.runs.store import Answer, save_answers
from evalcore.study.db import writing
from evalcore.study.schema import Label, Outcome
from tests.run_world import begun, judging, study

N_WORKERS = 3
ACTS = some.lists(
    some.tuples(some.sampled_from(["take", "save", "end", "die", "live"]), some.integers(0, N_WORKERS - 1), some.integers(1, 5)),
    max_size=20,
)  # fmt: skip


@pytest.fixture
def small(database_url):
    with study(database_url, n_examples=5, points=(5, -3)) as made:
        yield made


class Hands:
    """Some workers on a run of ten questions, as they see it themselves."""

    def __init__(self, small, name) -> None:
        self.small = small
        self.spec = judging(model={"name": name})
        self.run_id = begun(small, self.spec)
        self.held = [[] for _ in range(N_WORKERS)]
        with writing(small.engine) as session:
            self.workers = [store.add_worker(session, self.run_id, pid=1) for _ in range(N_WORKERS)]

    def take(self, place, most):
        with writing(self.small.engine) as session:
            questions, was_dead = store.take(session, self.run_id, self.workers[place], most)
        self.held[place] = questions if was_dead else self.held[place] + questions
        assert len(questions) <= most

    def save(self, place, most):
        given, self.held[place] = self.held[place][:most], self.held[place][most:]
        answers = [
            Answer(
                asked,
                (Call(question_id=asked.question_id, outcome=Outcome.ANSWERED),),
                Outcome.ANSWERED,
                Judged(Label.MET, "It says so."),
            )
            for asked in given
        ]
        with writing(self.small.engine) as session:
            before = self._n_verdicts()
            n_there = save_answers(session, queries.run(session, self.run_id), self.workers[place], answers)
        assert self._n_verdicts() - before + n_there == len(answers)

    def _n_verdicts(self):
        return self.small.one("SELECT count(*) FROM verdict")

    def end(self, place, _most):
        with writing(self.small.engine) as session:
            store.end_worker(session, self.run_id, self.workers[place], actor="Ana Ruiz", reason=None, for_all=False)
            self.workers[place] = store.add_worker(session, self.run_id, pid=1)
        self.held[place] = []

    def die(self, place, _most):
        """It is not seen any more; what it holds it does not know to be lost."""
        with self.small.engine.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE run_worker SET seen_at = '2026-01-01 00:00:00' WHERE id = {self.workers[place]}"
            )

    def live(self, place, _most):
        with writing(self.small.engine) as session:
            if store.say_alive(session, self.run_id, self.workers[place]).was_dead:
                self.held[place] = []

    def check(self):
        rows = self.small.rows(
            "SELECT q.worker_id, q.outcome, w.ended_at FROM run_question q LEFT JOIN run_worker w ON w.id = q.worker_id WHERE q.run_id = :run",
            run=self.run_id,
        )
        assert not [row for row in rows if row[1] is None and row[0] is not None and row[2] is not None]
        n_verdicts = Counter(
            self.small.rows(
                "SELECT v.response_id, v.criterion_id FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE r.name = :name",
                name=self.spec.model.name,
            )
        )
        assert set(n_verdicts.values()) <= {1}
        assert len(n_verdicts) == sum(row[1] == "answered" for row in rows)


@given(acts=ACTS, number=some.integers(0, 10**9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_workers_do_each_question_is_answered_once(small, acts, number):
    hands = Hands(small, f"Magpie {number} {len(small.rows('SELECT id FROM run'))}")
    for act, place, most in acts:
        getattr(hands, act)(place, most)
        hands.check()
    for place in range(N_WORKERS):
        hands.die(place, 0)
    hands.end(0, 0)
    hands.take(0, 100)
    hands.save(0, 100)
    hands.check()
    assert small.one("SELECT count(*) FROM run_question WHERE run_id = :run AND outcome IS NULL", run=hands.run_id) == 0

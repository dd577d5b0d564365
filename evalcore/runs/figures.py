"""What a worker counts while it asks: outcomes, tokens, cost, the rate, and what the questions in flight are expected to cost."""

import time
from collections import Counter, deque
from dataclasses import dataclass, field

from evalcore.runs.queries import LATELY_SECONDS, Calls, Progress
from evalcore.study.run_words import Call, Outcome, RunState

_FREE = (Outcome.REJECTED, Outcome.UNREACHABLE)


@dataclass
class Figures:
    """How far a run is, as one of its workers sees it: as the study told when it began, and what it has done itself.

    Attributes:
        n_questions, outcomes: Of the run, when all was last added up.
        calls: Of the run without this worker's, then.
        max_cost: US dollars; None: no limit.
        cost_each: US dollars expected of a question before the first was answered; None where prices are unknown.
        n_workers: Of the run, this one among them.
    """

    run_id: int
    n_questions: int
    outcomes: Counter[Outcome]
    calls: Calls
    max_cost: float | None
    cost_each: float | None
    n_workers: int = 1
    streak: int = 0
    ended: Counter[Outcome] = field(default_factory=Counter)
    n_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    n_without_cost: int = 0
    _cost: float = 0.0
    _n_with_cost: int = 0
    _ended_then: Counter[Outcome] = field(default_factory=Counter)
    _mine_then: float = 0.0
    _n_calls_then: int = 0
    _started: float = field(default_factory=time.monotonic)
    _lately: deque[tuple[float, int]] = field(default_factory=deque)

    def count_call(self, call: Call) -> None:
        """A call has ended, one way or another."""
        self.n_calls += 1
        self.prompt_tokens += call.prompt_tokens or 0
        self.completion_tokens += call.completion_tokens or 0
        if call.cost is not None:
            self._cost += call.cost
            self._n_with_cost += 1
        elif call.outcome not in _FREE:
            self.n_without_cost += 1

    def count_end(self, outcome: Outcome) -> None:
        """A question has ended."""
        self.ended[outcome] += 1
        self.streak = 0 if outcome is Outcome.ANSWERED else self.streak + 1
        second = time.monotonic() // 1
        if self._lately and self._lately[-1][0] == second:
            self._lately[-1] = (second, self._lately[-1][1] + 1)
        else:
            self._lately.append((second, 1))
        while self._lately[0][0] < second - LATELY_SECONDS:
            self._lately.popleft()

    @property
    def expected_cost(self) -> float:
        """US dollars of a call: the mean of those whose cost is known, before them what texts let expect; 0 where prices are unknown."""
        n = self.calls.n_with_cost + self._n_with_cost
        return ((self.calls.cost or 0.0) + self._cost) / n if n else (self.cost_each or 0.0)

    @property
    def _mine(self) -> float:
        """US dollars of this worker's calls; a reply whose tokens the server did not count costs what is expected."""
        return self._cost + self.n_without_cost * self.expected_cost

    def add_up(self, n_questions: int, outcomes: Counter[Outcome], calls: Calls, *, unsaved: Counter[Outcome]) -> None:
        """The run as it stands now: its questions, what came of them, and the calls without this worker's.

        Args:
            unsaved: What has ended here and is not in the study yet.
        """
        self.n_questions, self.outcomes, self.calls = n_questions, outcomes, calls
        self._ended_then = self.ended - unsaved
        self._mine_then, self._n_calls_then = self._mine, self.n_calls

    @property
    def is_added_up(self) -> bool:
        """Whether this worker has asked nothing since all was added up."""
        return self.n_calls == self._n_calls_then

    def affords(self, n_in_flight: int) -> bool:
        """Whether so many calls may be in flight: each worker takes its share of what was left when all was last added up."""
        if self.max_cost is None:
            return True
        theirs = (self.calls.cost or 0.0) + self.calls.n_without_cost * self.expected_cost
        left = self.max_cost - theirs - self._mine_then
        return (self._mine - self._mine_then + n_in_flight * self.expected_cost) * self.n_workers <= left

    def no_more_words(self) -> str:
        """Why nothing more is asked where not even one call may be in flight."""
        if self.n_workers == 1:
            return f"the next question would bring the cost above {self.max_cost:g} US dollars"
        return (
            f"a question for each of {self.n_workers} processes would bring the cost above {self.max_cost:g} US dollars"
        )

    @property
    def cost(self) -> float | None:
        """US dollars of all calls whose cost is known; None where none is."""
        is_known = self._n_with_cost or self.calls.cost is not None
        return (self.calls.cost or 0.0) + self._cost if is_known else None

    def rate(self) -> float:
        """Questions that ended in the last half minute, by the second."""
        at = time.monotonic()
        seconds = min(LATELY_SECONDS, at - self._started)
        n = sum(count for second, count in self._lately if second >= at - LATELY_SECONDS - 1)
        return n / seconds if seconds > 0 else 0.0

    def progress(self) -> Progress:
        """The figures as the page has them."""
        return Progress(
            run_id=self.run_id,
            state=RunState.OPEN,
            reason=None,
            n_questions=self.n_questions,
            outcomes=dict(self.outcomes + (self.ended - self._ended_then)),
            n_calls=self.calls.n_calls + self.n_calls,
            prompt_tokens=self.calls.prompt_tokens + self.prompt_tokens,
            completion_tokens=self.calls.completion_tokens + self.completion_tokens,
            cost=self.cost,
            n_without_cost=self.calls.n_without_cost + self.n_without_cost,
            max_cost=self.max_cost,
            rate=self.rate(),
            n_workers=self.n_workers,
        )

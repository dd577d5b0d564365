"""How far a run is: as a worker counts it while it asks, and in words, the same on pages and at a terminal."""

import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from evalcore.runs.queries import LATELY_SECONDS, Calls, Counts, Progress, Subject
from evalcore.runs.spec import LAST_ONE, Call, ModelSettings, RunSpec
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import CASES, Format, Outcome, RunKind, RunState

_MINUTE, _HOUR = 60, 3_600

OUTCOMES = {
    Outcome.UNREADABLE: (
        "not readable",
        "A reply came, and it is not what was asked for. It is never taken for a verdict.",
    ),
    Outcome.REFUSED: ("declined", "The model declined to answer."),
    Outcome.REJECTED: ("refused by the server", "The server rejected the request; retrying will not help."),
    Outcome.UNREACHABLE: ("no whole reply", "No whole reply came after several tries. Another time may bring one."),
}


def _sum(one: Calls, other: Calls) -> Calls:
    known = [calls.cost for calls in (one, other) if calls.cost is not None]
    whole = {name: value + getattr(other, name) for name, value in one._asdict().items() if name != "cost"}
    return Calls(cost=sum(known) if known else None, **whole)


NO_CALLS = Calls(0, 0, 0, None, 0, 0)


@dataclass
class Figures:
    """How far a run is, as one of its workers sees it: as the study told when it began, and what it has done itself.

    `n_questions`, `outcomes` and `calls` (without this worker's) are as when all was last added up; `ended` and `mine` are this worker's. US dollars: no
    `max_cost`, no limit; `cost_each` is expected of a question before the first was answered, None where prices are unknown.
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
    mine: Calls = NO_CALLS
    _ended_then: Counter[Outcome] = field(default_factory=Counter)
    _spent_then: float = 0.0
    _n_calls_then: int = 0
    _started: float = field(default_factory=time.monotonic)
    _lately: deque[tuple[float, int]] = field(default_factory=deque)

    def count_call(self, call: Call) -> None:
        """A call has ended, one way or another."""
        is_known = call.cost is not None
        has_reply = call.outcome not in (Outcome.REJECTED, Outcome.UNREACHABLE)
        tokens = (call.prompt_tokens or 0, call.completion_tokens or 0)
        self.mine = _sum(self.mine, Calls(1, *tokens, call.cost, int(is_known), int(has_reply and not is_known)))

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
        n = self.calls.n_with_cost + self.mine.n_with_cost
        return ((self.calls.cost or 0.0) + (self.mine.cost or 0.0)) / n if n else (self.cost_each or 0.0)

    def _spent(self, calls: Calls) -> float:
        """US dollars; a reply whose tokens the server did not count costs what is expected."""
        return (calls.cost or 0.0) + calls.n_without_cost * self.expected_cost

    def add_up(self, stands: Counts, calls: Calls, *, unsaved: Counter[Outcome]) -> None:
        """The run as it stands now, and the calls without this worker's; `unsaved`: what has ended here and is not in the study yet."""
        self.n_questions, self.outcomes, self.calls = stands.n_questions, stands.outcomes, calls
        self._ended_then = self.ended - unsaved
        self._spent_then, self._n_calls_then = self._spent(self.mine), self.mine.n_calls

    @property
    def is_added_up(self) -> bool:
        """Whether this worker has asked nothing since all was added up."""
        return self.mine.n_calls == self._n_calls_then

    def affords(self, n_in_flight: int) -> bool:
        """Whether so many calls may be in flight: each worker has its share of what was left at the last sum."""
        if self.max_cost is None:
            return True
        left = self.max_cost - self._spent(self.calls) - self._spent_then
        since = self._spent(self.mine) - self._spent_then
        return (since + n_in_flight * self.expected_cost) * self.n_workers <= left

    def progress(self) -> Progress:
        """The figures as the page has them."""
        at = time.monotonic()
        seconds = min(LATELY_SECONDS, at - self._started)
        n_lately = sum(count for second, count in self._lately if second >= at - LATELY_SECONDS - 1)
        rate = n_lately / seconds if seconds > 0 else 0.0
        outcomes, took = dict(self.outcomes + (self.ended - self._ended_then)), _sum(self.calls, self.mine)
        stands = (self.run_id, RunState.OPEN, None, self.n_questions, outcomes, took)
        return Progress(*stands, self.max_cost, rate, n_workers=self.n_workers)


def asked_words(spec: RunSpec, subject: Subject, *, name: str | None = None) -> str:
    """What a run asks, of whom, and about what; `name`: the model's or judge's, where another is shown."""
    who = name or spec.model.name
    if spec.kind is RunKind.JUDGE:
        about = "on the level of care in " if spec.dataset == CASES else "on "
        repeats = f", {spec.n_repeats:,} times each" if spec.n_repeats > 1 else ""
        of = f"{counted(subject.n_responses, 'response')} of {counted(subject.n_models, 'model')}"
        return f"Verdicts of judge {who} {about}{of}{repeats}"
    samples = f", {spec.n_samples:,} samples each" if spec.n_samples > 1 else ""
    if spec.kind is RunKind.TRIAGE:
        formats = "both formats" if len(spec.formats) == len(Format) else f"format {listed(spec.formats)}"
        return f"Answers of {who} to {counted(subject.n_examples, 'case')}, {formats}{samples}"
    return f"Answers of {who} to {counted(subject.n_examples, 'conversation')}{samples}"


class State(NamedTuple):
    """How a run stands, in a word, and what more there is to say of it (may be empty)."""

    word: str
    more: str = ""


def state_of(at: Progress, *, with_words: bool) -> State:
    """How a run stands; `with_words`: with the words of the failure that stopped it, in which a judge may speak."""
    if at.state is RunState.DONE:
        return State("Done", f"{counted(at.n_failed, 'question')} without an answer" if at.n_failed else "")
    if at.state is RunState.STOPPED:
        reason = at.reason or "no reason was given"
        reason = (reason if with_words else reason.partition(LAST_ONE)[0]).strip().rstrip(".")
        if at.n_workers:
            return State("Stopping", f"{reason}; questions already sent are waited for")
        return State("Stopped", reason)
    if at.n_workers:
        return State("Running", counted(at.n_workers, "process asks", "processes ask"))
    if not at.n_open:
        return State("Ending", "the last answers are saved")
    return State("Paused", "nothing is being asked now")


def told(at: Progress) -> list[str]:
    """How far a run is: answers, failures, rate, cost, time left; rate and time left only while somebody asks."""
    parts = [f"{at.n_answered:,} of {at.n_questions:,} answered", f"{at.n_failed:,} failed"]
    if at.n_workers:
        parts.append(f"{at.rate:,.1f} a second")
    parts.append(cost_words(at.calls))
    if at.n_workers and at.n_open and at.seconds_left is not None:
        parts.append(f"{duration(at.seconds_left)} left")
    return parts


def title_of(name: str, kind: RunKind, dataset: str) -> str:
    """A run in a few words, such as: Magpie judges healthbench."""
    return f"{name} {'judges' if kind is RunKind.JUDGE else 'answers'} {dataset}"


def about_words(failed: Mapping[Any, Any]) -> list[str]:
    """What a question that failed was about, in short words; a row of `runs.queries.failures`."""
    is_judged = pd.notna(failed["response_id"])
    parts = [failed["model"]] if is_judged else []
    if pd.notna(failed["position"]):
        parts.append(f"criterion {failed['position']:.0f}")
    if failed["format"]:
        parts.append(f"format {Format(failed['format'])}")
    if not is_judged:
        parts.append(f"sample {failed['sample_index'] + 1:,}")
    if failed["repeat"]:
        parts.append(f"repeat {failed['repeat'] + 1:,}")
    return parts


def how_words(model: ModelSettings) -> str:
    """How a model is asked; the variable with the key by its name."""
    parts = [f"{model.api_model} at {model.base_url}"]
    if model.temperature is not None:
        parts.append(f"temperature {model.temperature:g}")
    if model.max_tokens is not None:
        parts.append(f"answers of at most {model.max_tokens:,} tokens")
    key = f"; the key is in the variable {model.key_variable}" if model.key_variable else "; it needs no key"
    return ", ".join(parts) + key


def cost_words(calls: Calls) -> str:
    """What calls have cost, and of how many the cost is not known."""
    if not calls.n_without_cost:
        return dollars(calls.cost or 0.0)
    known = f"{dollars(calls.cost)} and {calls.n_without_cost:,} calls of unknown cost"
    return "cost unknown" if calls.cost is None else known


def cut_off_words(n_cut_off: int) -> str:
    """That answers are not whole, and what to do about it."""
    return (
        f"Cut off at max_tokens, or at the server's own limit: {counted(n_cut_off, 'answer')}. "
        "For whole ones ask under another name with a higher max_tokens."
    )


def dollars(cost: float | None) -> str:
    """US dollars, to the cent or to four places."""
    if cost is None:
        return "unknown: no prices"
    if cost >= 1:
        return f"${cost:,.2f}"
    if cost == 0:
        return "$0"
    return f"${cost:.4f}" if cost >= 0.0001 else "under $0.0001"  # noqa: PLR2004 - the last place


def duration(seconds: float) -> str:
    """About how long."""
    if seconds < 1.5 * _MINUTE:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / _MINUTE)
    hours, rest = divmod(minutes, _HOUR // _MINUTE)
    return f"{hours:,} h {rest} min" if hours else f"{minutes} min"

"""Runs in words: what is asked of whom, how far it is, what it costs and how long it takes; the same on pages and at a terminal."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from evalcore.runs.queries import Progress, Subject
from evalcore.stats.wording import counted, listed
from evalcore.study.run_words import LAST_ONE, ModelSettings, Outcome, RunKind, RunSpec, RunState
from evalcore.study.schema import CASES, Format

_MINUTE, _HOUR = 60, 3_600

OUTCOMES = {
    Outcome.UNREADABLE: ("not readable", "A reply came, and it is not what was asked for. It is never taken for a verdict."),
    Outcome.REFUSED: ("declined", "The model declined to answer."),
    Outcome.REJECTED: ("refused by the server", "The server did not take the question: as it stands, asking again is of no use."),
    Outcome.UNREACHABLE: ("no whole reply", "No whole reply came after several tries. Another time may bring one."),
}  # fmt: skip
"""Failures in a word or two, and what each means."""


def asked_words(spec: RunSpec, subject: Subject, *, name: str | None = None) -> str:
    """What a run asks, of whom, and about what.

    Args:
        name: Of the model or judge, where it is shown otherwise than it is.

    >>> asked = ModelSettings(name="Magpie", base_url="http://127.0.0.1:8000/v1", api_model="magpie-1")
    >>> asked_words(
    ...     RunSpec(kind=RunKind.JUDGE, model=asked, prompt_version="", dataset="healthbench"), Subject(60, 450, 3)
    ... )
    'Verdicts of judge Magpie on 450 responses of 3 models'
    >>> both = RunSpec(
    ...     kind=RunKind.TRIAGE,
    ...     model=asked,
    ...     prompt_version="",
    ...     dataset=CASES,
    ...     formats=("conversation", "qa"),
    ...     n_samples=5,
    ... )
    >>> asked_words(both, Subject(60, 0, 0), name="a model")
    'Answers of a model to 60 cases, both formats, 5 samples each'
    """
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
    """How a run stands.

    Attributes:
        more: What there is to say of it; may be empty.
    """

    word: str
    more: str = ""


def state_of(at: Progress, *, with_words: bool) -> State:
    """How a run stands.

    Args:
        with_words: The reason for which it stopped is told whole; else without the words of a failure, in which a judge may speak.
    """
    if at.state is RunState.DONE:
        return State("Done", f"{counted(at.n_failed, 'question')} without an answer" if at.n_failed else "")
    if at.state is RunState.STOPPED:
        reason = _reason(at.reason or "nobody said why", with_words=with_words)
        if at.n_workers:
            return State("Stopping", f"{reason}; questions already sent are waited for")
        return State("Stopped", reason)
    if at.n_workers:
        return State("Running", counted(at.n_workers, "process asks", "processes ask"))
    if not at.n_open:
        return State("Ending", "the last answers are saved")
    return State("Paused", "nothing is being asked now")


def _reason(reason: str, *, with_words: bool) -> str:
    said = reason if with_words else reason.partition(LAST_ONE)[0]
    return said.strip().rstrip(".")


def told(at: Progress) -> list[str]:
    """How far a run is: answers, failures, rate, cost, time left; rate and time left only while somebody asks."""
    parts = [f"{at.n_answered:,} of {at.n_questions:,} answered", f"{at.n_failed:,} failed"]
    if at.n_workers:
        parts.append(f"{at.rate:,.1f} a second")
    parts.append(cost_words(at))
    if at.n_workers and at.n_open and at.seconds_left is not None:
        parts.append(f"{duration(at.seconds_left)} left")
    return parts


def title_of(name: str, kind: RunKind, dataset: str) -> str:
    """A run in a few words.

    >>> title_of("Magpie", RunKind.JUDGE, "healthbench")
    'Magpie judges healthbench'
    """
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
    """How a model is asked; the variable with the key by its name.

    >>> how_words(
    ...     ModelSettings(
    ...         name="m", base_url="http://127.0.0.1:8000/v1", api_model="m-1", temperature=0.0, key_variable="M_KEY"
    ...     )
    ... )
    'm-1 at http://127.0.0.1:8000/v1, temperature 0; the key is in the variable M_KEY'
    """
    parts = [f"{model.api_model} at {model.base_url}"]
    if model.temperature is not None:
        parts.append(f"temperature {model.temperature:g}")
    if model.max_tokens is not None:
        parts.append(f"answers of at most {model.max_tokens:,} tokens")
    key = f"; the key is in the variable {model.key_variable}" if model.key_variable else "; it needs no key"
    return ", ".join(parts) + key


def cost_words(at: Progress) -> str:
    """What a run has cost, and how many calls are not in it since their cost is not known."""
    if not at.n_without_cost:
        return dollars(at.cost or 0.0)
    return "cost unknown" if at.cost is None else f"{dollars(at.cost)} and {at.n_without_cost:,} calls of unknown cost"


def cut_off_words(n_cut_off: int) -> str:
    """That answers are not whole, and what to do about it.

    >>> cut_off_words(1)
    "Cut off at max_tokens, or at the server's own limit: 1 answer. For whole ones ask under another name with a higher max_tokens."
    """
    return (
        f"Cut off at max_tokens, or at the server's own limit: {counted(n_cut_off, 'answer')}. "
        "For whole ones ask under another name with a higher max_tokens."
    )


def dollars(cost: float | None) -> str:
    """US dollars, to the cent or to four places.

    >>> dollars(1234.5), dollars(0.01234), dollars(0.0), dollars(0.00001), dollars(None)
    ('$1,234.50', '$0.0123', '$0', 'under $0.0001', 'unknown: no prices')
    """
    if cost is None:
        return "unknown: no prices"
    if cost >= 1:
        return f"${cost:,.2f}"
    if cost == 0:
        return "$0"
    return f"${cost:.4f}" if cost >= 0.0001 else "under $0.0001"  # noqa: PLR2004 - the last place


def duration(seconds: float) -> str:
    """About how long.

    >>> duration(0.2), duration(89), duration(100), duration(3 * 3600 + 240)
    ('1 s', '89 s', '2 min', '3 h 4 min')
    """
    if seconds < 1.5 * _MINUTE:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / _MINUTE)
    hours, rest = divmod(minutes, _HOUR // _MINUTE)
    return f"{hours:,} h {rest} min" if hours else f"{minutes} min"

"""How runs are drawn: a row of the list, its bar, a question that failed. All of it is escaped: replies and errors come from servers."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from evalcore.runs.queries import Progress
from evalcore.runs.telling import OUTCOMES, State, about_words
from evalcore.study.run_words import Outcome
from pages.shared.html import Fold, escaped, verbatim
from pages.shared.rubric import records

REPLY, ERROR = Fold(400, 6), Fold(240, 3)
"""Of a reply as much stands there as tells what went wrong; the rest unfolds."""


def row(title: str, state: State, at: Progress, figures: Iterable[str]) -> str:
    """A run in the list: what is asked, how it stands, how far it is."""
    more = f'<span dir="auto">{escaped(state.more)}</span>' if state.more else ""
    return (
        f'<div class="or-run"><div class="or-run-what"><b dir="auto">{escaped(title)}</b>'
        f'<div class="or-run-state"><em>{escaped(state.word)}</em>{more}</div></div>'
        f'<div class="or-run-far">{bar(at)}{_figures(figures)}</div></div>'
    )


def bar(at: Progress) -> str:
    """How much is answered, how much has failed; the numbers stand beside it in words."""
    n_all = max(at.n_questions, 1)
    answered, failed = 100 * at.n_answered / n_all, 100 * at.n_failed / n_all
    words = f"{at.n_answered:,} of {at.n_questions:,} answered, {at.n_failed:,} failed"
    return (
        f'<div class="or-run-bar" role="img" aria-label="{escaped(words)}"><i style="width:{answered:.2f}%"></i>'
        f'<i class="or-run-failed" style="width:{failed:.2f}%"></i></div>'
    )


def _figures(figures: Iterable[str]) -> str:
    return '<div class="or-run-figures">' + "".join(f"<span>{escaped(words)}</span>" for words in figures) + "</div>"


def failures(found: pd.DataFrame) -> str:
    """Questions that failed, each with what it was about, why, and the reply as it came."""
    return "".join(_failure(failed) for failed in records(found))


def _failure(failed: Mapping[Any, Any]) -> str:
    word = OUTCOMES[Outcome(failed["outcome"])][0]
    n_tries = int(failed["n_tries"])
    told = [
        failed["prompt_id"],
        *about_words(failed),
        f"HTTP {failed['status']:.0f}" if failed["status"] is not None else "no HTTP status",
        {0: "never sent", 1: "asked once"}.get(n_tries, f"asked {n_tries:,} times"),
    ]
    error = verbatim(failed["error"], ERROR) if failed["error"] else ""
    reply = (
        f"<h4>The reply as it came</h4>{verbatim(failed['reply'], REPLY)}" if failed["reply"] else "<h4>No reply</h4>"
    )
    heads = "".join(f'<span dir="auto">{escaped(part)}</span>' for part in told)
    return (
        f'<section class="or-failed"><div class="or-failed-head"><b>{escaped(word)}</b>{heads}</div>'
        f'{error}<div class="or-failed-reply">{reply}</div></section>'
    )

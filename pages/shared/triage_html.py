"""HTML of Triage: levels as chips, votes and samples as small bars, a case with the answer to the patient."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalcore.triage.figures import LETTERS, error_words
from evalcore.triage.words import level_letter
from pages.shared import html
from pages.shared.html import Fold, escaped

SHORT = Fold(300, 3)
LEAST_NAMED, ENDS = 0.12, tuple(".?!…)\"'»”。？！؟۔।")


def level(value: float) -> str:
    """A level as a chip in its step of the ramp; a boundary in the step of its higher letter."""
    known = not math.isnan(value) and value >= 1
    step = LETTERS[math.ceil(value) - 1].lower() if known else "none"
    return f'<span class="or-level or-level-{step}">{level_letter(value)}</span>'


def needs_gives(gold: float, predicted: float) -> str:
    """What the case needs, what the answer gives, and which way that is wrong."""
    if math.isnan(gold):
        return f'<span class="or-way">answers {level(predicted)}</span>'
    chips = f"needs {level(gold)} answers {level(predicted)}"
    if math.isnan(predicted) or gold != math.floor(gold):
        return f'<span class="or-way">{chips}</span>'
    under = " or-under" if predicted < gold else ""
    return f'<span class="or-way{under}">{chips}</span> <small>{escaped(error_words(gold, predicted))}</small>'


def bar(shares: Sequence[float]) -> str:
    """Shares of the four levels as one small bar, the letters in it where there is room."""
    if any(math.isnan(share) for share in shares):
        return '<div class="or-bar" aria-hidden="true"></div>'
    parts = "".join(
        f'<i class="or-level-{letter.lower()}" style="width:{100 * share:.2f}%">{letter if share >= LEAST_NAMED else ""}</i>'
        for letter, share in zip(LETTERS, shares, strict=True)
        if share > 0
    )
    return f'<div class="or-bar" aria-hidden="true">{parts}</div>'


def counted(counts: Iterable[float]) -> str:
    """Levels with their counts, in words."""
    return ", ".join(f"{letter} {count:g}" for letter, count in zip(LETTERS, counts, strict=True) if count) or "none"


def votes(lines: Iterable[tuple[str, Sequence[float], str]]) -> str:
    """Small bars; `lines`: whose levels these are, shares of the four levels, and the same in words."""
    rows = "".join(
        f"<span>{escaped(name)}</span>{bar(shares)}<span>{escaped(words)}</span>" for name, shares, words in lines
    )
    return f'<div class="or-votes">{rows}</div>'


def samples_line(row: Mapping[Any, Any]) -> tuple[str, list[float], str]:
    """The model's samples for `votes`."""
    counts = [float(row[f"n_{letter}"]) for letter in LETTERS]
    n, n_without = float(row["n_valid"]), int(row["n_samples"] - row["n_valid"])
    without = f"; {n_without} without a level" if n_without else ""
    return "Samples", [count / n if n else math.nan for count in counts], counted(counts) + without


def panel_line(row: Mapping[Any, Any]) -> tuple[str, list[float], str]:
    """The panel's votes for `votes`."""
    shares = [float(row[f"h_{letter}"]) for letter in LETTERS]
    words = counted(share * row["n_votes"] for share in shares) if row["n_votes"] else "no votes"
    removed = f"; {row['n_removed']:g} unsuitable" if row["n_removed"] else ""
    return "Physicians", shares, words + removed


def flip(gold: float, qa: float, conversation: float) -> str:
    """What a case needs, and what the two formats answer."""
    needs = f"needs {level(gold)}" if not math.isnan(gold) else "no gold"
    parts = (needs, f"qa {level(qa)}", f"conversation {level(conversation)}")
    return "".join(f'<span class="or-way">{part}</span>' for part in parts)


def case(first_words: str, head: str, about: Iterable[str], answer: str = "", beside: str = "") -> str:
    """A case: what happened (`head`), `about` whom, the first words; HTML of the `answer` below and `beside` to the right."""
    right = f'<div class="or-triage-beside">{beside}</div>' if beside else ""
    words = first_words if first_words.rstrip()[-1:] in ENDS else f"{first_words.rstrip()} …"
    parts = " · ".join(f"<bdi>{escaped(part)}</bdi>" for part in about if part)
    return (
        f'<article class="or-triage-case"><div class="or-triage-head">{head}<small>{parts}</small></div>'
        f'<div class="or-triage-body"><div class="or-triage-main"><p class="or-triage-words" dir="auto">{escaped(words)}</p>{answer}</div>'
        f"{right}</div></article>"
    )


def told(text: str, model: str) -> str:
    """What the model told the patient; only its level is known where the text is empty."""
    if not text:
        return html.quiet("Only the level of this answer is known, not its text.")
    return (
        f'<section class="or-response"><h3><span dir="auto">{escaped(model)}</span><small>told the patient</small></h3>'
        f"{html.verbatim(text, SHORT)}</section>"
    )


def read_as(judge: str, value: float, explanation: str, predicted: float) -> str:
    """How a judge read the level of an answer, in which words, and whether most samples say otherwise."""
    why = f'<div class="or-why">{html.verbatim(explanation, SHORT)}</div>' if explanation else ""
    said = f"read {level(value)}" if value >= 1 else "found no level"
    fits = math.floor(value) <= predicted <= math.ceil(value)
    other = f" <small>in this one; most samples say {level_letter(predicted)}</small>"
    other = "" if fits or math.isnan(predicted) else other
    return f'<div class="or-verdict or-judge"><div><span class="or-who" dir="auto">{escaped(judge)}</span> {said}{other}</div>{why}</div>'


def physicians_read(value: float) -> str:
    """The level that physicians of this study gave an answer."""
    return f'<div class="or-verdict or-read"><div><span class="or-who">Physicians here</span> read {level(value)}</div></div>'


def view(question: str, answer: str, figures: Iterable[str]) -> str:
    """A question, which views answer it, and what they say in this study."""
    return (
        f'<section class="or-view"><h3>{escaped(question)}</h3><p>{escaped(answer)}</p>{html.items(figures)}</section>'
    )

"""What a study analyses, stated once for Models, `compare`, the methods, the bundle and Triage. A new statement is a new version; the old ones stay."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from evalcore.errors import OverreadError
from evalcore.study.schema import Claim, Physicians

CLAIM_WORDS = {Claim.BENCHMARK: "this benchmark", Claim.NEW_EXAMPLES: "new examples like these"}
PHYSICIANS_WORDS = {Physicians.THESE: "these physicians", Physicians.IN_GENERAL: "physicians in general"}
WIDEST = "the widest possible"
MARGINS = {
    "margin": "of the corrected score",
    "margin_under": "of the under-triage rate",
    "margin_missed": "of the rate of missed emergencies",
}


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What is analysed; `words` says what each field is, and what it means where it is left open.

    Attributes:
        judges: Their labels are corrected together.
        claim, physicians: What the intervals are to hold for; None: by `corrected.default_claim`.
        primary: The two models of the primary comparison, the new one first: it is held against the margin.
        margin, margin_under, margin_missed: By how much the first may be worse, or either differ: above 0 and at most 1, of what `MARGINS` names.
    """

    evaluation: str | None = None
    judges: tuple[str, ...] = ()
    subset: str | None = None
    claim: Claim | None = None
    physicians: Physicians | None = None
    settled: bool = False
    weighted: bool = False
    primary: tuple[str, str] | None = None
    margin: float | None = None
    margin_under: float | None = None
    margin_missed: float | None = None


@dataclass(frozen=True)
class StatedAnalysis:
    """One version of it, from 1; `n_reads_before`: physicians' blind first reads of items that existed then."""

    version: int
    spec: Analysis
    stated_by: str
    stated_at: datetime
    n_reads_before: int


def check(
    spec: Analysis,
    *,
    evaluations: Collection[str],
    judges: Collection[str],
    subsets: Collection[str],
    models: Collection[str],
) -> None:
    """Refuse a statement that names what the study does not hold, or that does not fit together."""
    named: Mapping[str, tuple[Sequence[str | None], Collection[str]]] = {
        "Data set": ([spec.evaluation], evaluations),
        "Judges": (spec.judges, judges),
        "Examples": ([spec.subset], subsets),
        "Primary comparison": (spec.primary or (), models),
    }
    faults = []
    for field, (names, known) in named.items():
        some = f"{'some' if len(known) > 1 else 'one'} of {', '.join(known) or 'none: the study has none yet'}"
        unknown = (name for name in names if name is not None and name not in known)
        faults += [f"{field}: expected {some}, got {name!r}" for name in unknown]
    if len(set(spec.judges)) < len(spec.judges):
        faults.append(f"Judges: expected each once, got {', '.join(spec.judges)}")
    if spec.primary is not None and spec.primary[0] == spec.primary[1]:
        faults.append(f"Primary comparison: expected two different models, got {spec.primary[0]!r} twice")
    for name, words in MARGINS.items():
        margin = getattr(spec, name)
        if margin is not None and not (math.isfinite(margin) and 0 < margin <= 1):
            faults.append(f"Margin {words}: expected a number above 0 and at most 1, got {margin}")
        if margin is not None and spec.primary is None:
            faults.append(f"Margin {words}: expected a primary comparison of two models with it, got none")
    if faults:
        raise OverreadError(faults[0])


def to_json(spec: Analysis) -> str:
    """As it is stored."""
    return msgspec.json.encode(spec).decode()


def of_json(text: str) -> Analysis:
    """What `to_json` made."""
    return msgspec.json.decode(text.encode(), type=Analysis)


def words(spec: Analysis) -> dict[str, str]:
    """What is stated, for people: the name of each field with its value; what is left open is said, margins are named where they are stated."""
    said = {
        "Data set": spec.evaluation or "the judged one with most responses",
        "Examples": spec.subset or "all",
        "Judges": ", ".join(spec.judges) or "the one with most labels",
        "Holds for": WIDEST if spec.claim is None else CLAIM_WORDS[spec.claim],
        "As read by": WIDEST if spec.physicians is None else PHYSICIANS_WORDS[spec.physicians],
        "Labels": "adjudicated where there is one" if spec.settled else "readers' votes",
        "Weights": "to the themes of the full benchmark" if spec.weighted else "all examples alike",
        "Primary comparison": " with ".join(spec.primary) if spec.primary else "none",
    }
    margins = {f"Margin {which}": getattr(spec, name) for name, which in MARGINS.items()}
    return said | {name: f"{margin:g}" for name, margin in margins.items() if margin is not None}


def when_words(stated: StatedAnalysis) -> str:
    """Whether it was stated before anything was read."""
    n = stated.n_reads_before
    reads = f"after {n:,} {'read' if n == 1 else 'reads'}" if n else "before the first read"
    return f"stated on {stated.stated_at:%Y-%m-%d}, {reads}"

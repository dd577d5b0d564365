"""Self-preference: whether a judge favours responses of its own family, measured against physicians."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.criterion_health import read_counts
from evalcore.metrics.intervals import LEVEL, codes_of
from evalcore.metrics.opinions import DRAWN, Opinions, first_reads, is_scored

MIN_EXAMPLES = 5
"""Fewest examples with read items on either side; with fewer no difference is said."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Read:
    """The items that enter: read blind, of a scored response.

    Attributes:
        rows: Of the items.
        vote: Mean of the readers' votes, in [0, 1].
        share: points / P, P the sum of the response's positive points: by how much met moves the response's score.
        weight: 1 / inclusion probability; 1 where nothing was drawn.
        model, example: Codes.
        models: Names.
        per_response: By model: scored items, scored responses.
        n_not_scored, n_not_drawn: Items read blind that are left out.
    """

    rows: npt.NDArray[np.intp]
    vote: Floats
    share: Floats
    weight: Floats
    model: npt.NDArray[np.int64]
    example: npt.NDArray[np.int64]
    models: list[str]
    n_scored_items: Floats
    n_scored_responses: Floats
    n_not_scored: int
    n_not_drawn: int


def _read(opinions: Opinions) -> _Read:
    items = opinions.items
    reads = first_reads(opinions.reads)
    is_drawn = reads["selection"].isin(DRAWN) & reads["inclusion_probability"].notna()
    every = np.unique(reads["row"].to_numpy(dtype=np.int64))
    if is_drawn.any():
        reads = reads.loc[is_drawn]
    n_met, n_answered, _ = read_counts(Opinions(items, opinions.judged, reads))
    probability = np.ones(len(items))
    if is_drawn.any():
        probability[reads["row"].to_numpy(dtype=np.int64)] = reads["inclusion_probability"].to_numpy(dtype=float)
    scored = is_scored(items).to_numpy(dtype=bool)
    response, numbers = codes_of(items["response_id"])
    points = np.nan_to_num(items["points"].to_numpy(dtype=float))
    possible = np.bincount(response, np.maximum(points, 0), len(numbers))
    rows = np.flatnonzero(scored & (n_answered > 0))
    model, models = codes_of(items["model"])
    example, _ = codes_of(items["example_id"])
    first = np.zeros(len(items), dtype=bool)
    first[np.unique(response, return_index=True)[1]] = True
    return _Read(
        rows=rows,
        vote=n_met[rows] / n_answered[rows],
        share=points[rows] / possible[response[rows]],
        weight=1 / probability[rows],
        model=model[rows],
        example=example[rows],
        models=[str(name) for name in models],
        n_scored_items=np.bincount(model[scored], minlength=len(models)).astype(float),
        n_scored_responses=np.bincount(model[scored & first], minlength=len(models)).astype(float),
        n_not_scored=int((~scored[every]).sum()),
        n_not_drawn=len(every) - len(np.unique(reads["row"].to_numpy(dtype=np.int64))),
    )


def _influence(
    read: _Read, error: Floats, mine: npt.NDArray[np.bool_], models: npt.NDArray[np.bool_]
) -> tuple[float, Floats]:
    """The bias of a group of models, and each read item's part in it.

    B = (M/R) sum_s w share (f - y) / sum_s w,  with M scored items on R scored responses;  u = (M/R) w (z - zbar) / sum w.
    """
    weight = np.where(mine, read.weight, 0.0)
    per_response = read.n_scored_items[models].sum() / read.n_scored_responses[models].sum()
    mean = float((weight * error).sum() / weight.sum())
    return per_response * mean, per_response * weight * (error - mean) / weight.sum()


def _interval(
    value: float, influence: Floats, example: npt.NDArray[np.int64], level: float
) -> tuple[float, float, int]:
    """V = G/(G-1) sum_g u_g^2, u_g the sum of the influences of example g; value +- t(G-1) sqrt(V)."""
    codes, numbers = pd.factorize(example)
    n_examples = len(numbers)
    if n_examples < 2:  # noqa: PLR2004 - one example tells nothing of the spread between examples
        return np.nan, np.nan, n_examples
    sums = np.bincount(codes, influence)
    half = float(stdtrit(n_examples - 1, (1 + level) / 2)) * float(
        np.sqrt(n_examples / (n_examples - 1) * (sums**2).sum())
    )
    return value - half, value + half, n_examples


def family_bias(opinions: Opinions, judge: str, families: Mapping[str, str], *, level: float = LEVEL) -> pd.DataFrame:
    """By how much a judge scores the responses of each family above physicians.

    Args:
        opinions: Of the study.
        judge: One of its judges.
        families: The family of each model and judge by name; who has none is not in it.
        level: Of confidence, in (0, 1).

    Returns:
        One row a family with a read item, sorted: family, is_own (the judge's), models (names joined by ", "), n (items read blind that the
        judge labelled), n_examples, bias (mean score by the judge less by physicians, in score units: the score's own unit; positive: the
        judge is too generous) with low, high, clustered by example (NaN with one example).
    """
    read = _read(opinions)
    label = opinions.judged[judge].to_numpy(dtype=float)[read.rows]
    error = read.share * (label - read.vote)
    of_model = np.array([families.get(name, "") for name in read.models], dtype=object)
    labelled = ~np.isnan(error)
    error = np.nan_to_num(error)
    rows: list[dict[str, Any]] = []
    for family in sorted(set(of_model) - {""}):
        models = of_model == family
        mine = labelled & models[read.model]
        if not mine.any():
            continue
        bias, influence = _influence(read, error, mine, models)
        low, high, n_examples = _interval(bias, influence[mine], read.example[mine], level)
        named = [read.models[code] for code in np.unique(read.model[mine])]
        rows.append(
            {
                "family": family,
                "is_own": family == families.get(judge),
                "models": ", ".join(named),
                "n": int(mine.sum()),
                "n_examples": n_examples,
                "bias": bias,
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(rows, columns=["family", "is_own", "models", "n", "n_examples", "bias", "low", "high"])


def self_preference(opinions: Opinions, families: Mapping[str, str], *, level: float = LEVEL) -> pd.DataFrame:
    """Whether each judge is more generous to its own family's responses than to others', both measured against physicians.

        z     = points/P (f - y)          of a read item: what the judge's error is worth in the response's score
        B     = (M/R) mean of z           over read items, weighted by 1/pi; M items on R responses, all scored ones of the group
        D     = B(own family) - B(others)
        V(D)  = G/(G-1) sum_g u_g^2       u_g: what example g adds to D on both sides, so examples that both share are paired

    Where items were drawn with a known probability, only those count; else every blind first read does, with weight 1. A difference may
    have other causes than kinship: a judge errs more on some kinds of answers, and families differ in their answers.

    Args:
        opinions: Of the study.
        families: The family of each model and judge by name; who has none is not in it.
        level: Of confidence, in (0, 1).

    Returns:
        One row a judge, in the order of `opinions.judges`: judge, family (missing where it has none), n_own, n_other (items read blind that
        the judge labelled), n_own_examples, n_other_examples, n_shared_examples, bias_own, bias_other, difference (score units; positive: it
        favours its own) with low, high, NaN where it is not said, and reason (why not; else empty). What was left out, in items
        read: n_without_family (of models without one) with models_without_family (names joined by ", "), n_without_label, n_not_scored
        (response without a score), n_not_drawn.
    """
    read = _read(opinions)
    of_model = np.array([families.get(name, "") for name in read.models], dtype=object)
    unknown = of_model == ""
    rows = []
    for judge in opinions.judges:
        label = opinions.judged[judge].to_numpy(dtype=float)[read.rows]
        labelled = ~np.isnan(label)
        error = np.nan_to_num(read.share * (label - read.vote))
        family = families.get(judge)
        own_models = (of_model == family) & ~unknown
        other_models = ~own_models & ~unknown
        own, other = labelled & own_models[read.model], labelled & other_models[read.model]
        examples = [set(read.example[side].tolist()) for side in (own, other)]
        without = labelled & unknown[read.model]
        row: dict[str, Any] = {
            "judge": judge,
            "family": family,
            "n_own": int(own.sum()),
            "n_other": int(other.sum()),
            "n_own_examples": len(examples[0]),
            "n_other_examples": len(examples[1]),
            "n_shared_examples": len(examples[0] & examples[1]),
            **dict.fromkeys(("bias_own", "bias_other", "difference", "low", "high"), np.nan),
            "reason": _reason(judge, family, len(examples[0]), len(examples[1])),
            "n_without_family": int(without.sum()),
            "models_without_family": ", ".join(read.models[code] for code in np.unique(read.model[without])),
            "n_without_label": int((~labelled).sum()),
            "n_not_scored": read.n_not_scored,
            "n_not_drawn": read.n_not_drawn,
        }
        if not row["reason"]:
            row["bias_own"], of_own = _influence(read, error, own, own_models)
            row["bias_other"], of_other = _influence(read, error, other, other_models)
            row["difference"] = row["bias_own"] - row["bias_other"]
            either = own | other
            row["low"], row["high"], _ = _interval(
                row["difference"], (of_own - of_other)[either], read.example[either], level
            )
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS = [
    "judge", "family", "n_own", "n_other", "n_own_examples", "n_other_examples", "n_shared_examples", "bias_own", "bias_other",
    "difference", "low", "high", "reason", "n_without_family", "models_without_family", "n_without_label", "n_not_scored", "n_not_drawn",
]  # fmt: skip


def _reason(judge: str, family: str | None, n_own: int, n_other: int) -> str:
    if family is None:
        return f"No pattern of the table of families fits the judge {judge}."
    for n_examples, whose in ((n_own, f"of the family {family}"), (n_other, "of other families")):
        if n_examples < MIN_EXAMPLES:
            return f"Physicians have read responses {whose} in {n_examples} conversations, where {MIN_EXAMPLES} are needed."
    return ""


def finding(row: Mapping[str, Any]) -> str:
    """What is known of one judge, in a sentence.

    Args:
        row: Of `self_preference`.
    """
    if row["reason"]:
        return f"Whether {row['judge']} favours its own family cannot be said: {row['reason'][:1].lower()}{row['reason'][1:]}"
    amount = f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]".replace("-", "−")
    if row["low"] > 0:
        said = "favours responses of its own family over others', against physicians"
    elif row["high"] < 0:
        said = "is harder on responses of its own family than on others', against physicians"
    else:
        said = "is not shown to treat responses of its own family otherwise than others'"
    return f"{row['judge']} ({row['family']}) {said}: {amount} in score."

"""Self-preference: whether a judge favours responses of its own family, where physicians gave the same label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.judges.pairs import Reads, counted_reads
from evalcore.rubric.data import RubricData
from evalcore.stats.arrays import codes_of
from evalcore.stats.intervals import LEVEL, NO_VALUE, signed_points

MIN_EXAMPLES = 5
"""Fewest examples with reads on either side; with fewer no difference is said."""
MET, NOT_MET, TOGETHER = "met", "not met", "together"
"""Values of `label`: what physicians said; together: both, combined."""
_STRATA = [(MET, "desirable"), (MET, "undesirable"), (NOT_MET, "desirable"), (NOT_MET, "undesirable")]
_COMBINED = {MET: [0, 1], NOT_MET: [2, 3], TOGETHER: [0, 1, 2, 3]}

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Reads:
    """The reads that enter, each of a criterion with points.

    Attributes:
        row: Of the item.
        stratum: Place in `_STRATA`.
        is_desirable: Whether "met" is in the response's favour.
        weight: As `pairs.counted_reads`.
        model, example: Codes.
        models: Names.
        n_without_points, n_not_drawn: Reads that are left out.
    """

    row: Numbers
    stratum: Numbers
    is_desirable: npt.NDArray[np.bool_]
    weight: Floats
    model: Numbers
    example: Numbers
    models: list[str]
    n_without_points: int
    n_not_drawn: int


def self_preference(
    rubric_data: RubricData, families: Mapping[str, str], *, reads: Reads | None = None, level: float = LEVEL
) -> pd.DataFrame:
    """Whether each judge labels its own family's responses in their favour more often than others', given what physicians say.

    A family that is right more often leaves a judge less room to be generous: the judge's mean error on each family differs although it treats all alike.
    So responses are compared where physicians gave the same label to a criterion of the same sign. Stratum s is one of four (met or not met,
    desirable or undesirable); in it the judge's label is in the response's favour for the share p1_s of own reads and p0_s of the others'.

        D = sum_s m_s (p1_s - p0_s) / sum_s m_s,  m_s = N1_s N0_s / (N1_s + N0_s)       Mantel and Haenszel's common risk difference
        interval: delete-one-example jackknife with t(G-1)

    N are sums of the reads' weights (`pairs.Reads`). A judge with one sensitivity and one specificity for all has D = 0, whatever its families get right.
    What physicians get wrong leaves a remainder of the old confounding, the smaller the surer their labels are.

    Args:
        rubric_data: Of the study.
        families: The family of each model and judge by name; who has none is not in it.
        reads: Which enter; None: the drawn ones, where there are any.
        level: Of confidence, in (0, 1).

    Returns:
        One row a judge, in the order of `rubric_data.judges`: judge, family (missing where it has none), n_own, n_other (blind first reads of items that
        the judge labelled), n_own_examples, n_other_examples, n_shared_examples; met_difference, not_met_difference (where physicians say met and
        where they say not met), difference (of all strata), in -1..1 and positive where it favours its own, each with its _low and _high (that of
        difference: low, high), NaN where it cannot be said; and reason (why difference is NaN; else empty). What was left out, in
        reads: n_without_family (of models without one) with models_without_family (names joined by ", "), n_without_label, n_without_points, n_not_drawn.

    References:
        Mantel and Haenszel 1959; Greenland and Robins 1985 (risk difference).
    """
    known = _reads(rubric_data, reads)
    of_model = np.array([families.get(name, "") for name in known.models], dtype=object)
    rows = []
    for judge in rubric_data.judges:
        family = families.get(judge)
        label = rubric_data.judged[judge].to_numpy(dtype=float)[known.row]
        labelled = ~np.isnan(label)
        own, other = _sides(known, of_model, family, labelled)
        examples = [set(known.example[side].tolist()) for side in (own, other)]
        without = labelled & (of_model == "")[known.model]
        row: dict[str, Any] = {
            "judge": judge,
            "family": family,
            "n_own": int(own.sum()),
            "n_other": int(other.sum()),
            "n_own_examples": len(examples[0]),
            "n_other_examples": len(examples[1]),
            "n_shared_examples": len(examples[0] & examples[1]),
            **dict.fromkeys((f"{label}{end}" for label in _PREFIXES.values() for end in _ENDS), np.nan),
            "reason": _reason(judge, family, len(examples[0]), len(examples[1])),
            "n_without_family": int(without.sum()),
            "models_without_family": ", ".join(known.models[code] for code in np.unique(known.model[without])),
            "n_without_label": int((~labelled).sum()),
            "n_without_points": known.n_without_points,
            "n_not_drawn": known.n_not_drawn,
        }
        if not row["reason"]:
            cells = _cells(known, label, own, other)
            for name, strata in _COMBINED.items():
                row |= dict(
                    zip((f"{_PREFIXES[name]}{end}" for end in _ENDS), _difference(cells, strata, level), strict=True)
                )
            if np.isnan(row["difference"]):
                row["reason"] = "No kind of criterion got the same label by physicians on both sides."
        rows.append(row)
    return (
        pd.DataFrame(rows).rename(columns={"difference_low": "low", "difference_high": "high"})[COLUMNS]
        if rows
        else pd.DataFrame(columns=COLUMNS)
    )


_PREFIXES = {MET: "met_difference", NOT_MET: "not_met_difference", TOGETHER: "difference"}
_ENDS = ("", "_low", "_high")
COLUMNS = [
    "judge", "family", "n_own", "n_other", "n_own_examples", "n_other_examples", "n_shared_examples", "met_difference", "met_difference_low",
    "met_difference_high", "not_met_difference", "not_met_difference_low", "not_met_difference_high", "difference", "low", "high", "reason",
    "n_without_family", "models_without_family", "n_without_label", "n_without_points", "n_not_drawn",
]  # fmt: skip


def by_label(
    rubric_data: RubricData,
    judge: str,
    families: Mapping[str, str],
    *,
    reads: Reads | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The strata that `self_preference` compares, for one judge, and what they come to.

    Args:
        rubric_data: Of the study.
        judge: One of its judges.
        families: The family of each model and judge by name.
        reads: Which enter; None: the drawn ones, where there are any.
        level: Of confidence, in (0, 1).

    Returns:
        One row a stratum with reads on both sides, then met, not met and together: label (`MET`, `NOT_MET` or `TOGETHER`, by physicians), sign
        (desirable, undesirable, or empty where combined), n_own, n_other (reads), rate_own, rate_other (shares of judge's labels that are in the
        response's favour, in [0, 1]; NaN where combined), difference with low, high.
    """
    known = _reads(rubric_data, reads)
    of_model = np.array([families.get(name, "") for name in known.models], dtype=object)
    said = rubric_data.judged[judge].to_numpy(dtype=float)[known.row]
    own, other = _sides(known, of_model, families.get(judge), ~np.isnan(said))
    cells = _cells(known, said, own, other)
    whole = cells.sum(axis=0)
    strata = [(label, sign, [place]) for place, (label, sign) in enumerate(_STRATA)]
    strata += [(label, "", places) for label, places in _COMBINED.items()]
    rows = []
    for label, sign, places in strata:
        here = np.isin(known.stratum, places)
        difference, low, high = _difference(cells, places, level)
        rates = whole[places[0], :, 1] / np.maximum(whole[places[0], :, 0], 1e-300) if sign else (np.nan, np.nan)
        n_own, n_other = int((own & here).sum()), int((other & here).sum())
        if n_own and n_other:
            rows.append((label, sign, n_own, n_other, *rates, difference, low, high))
    columns = ["label", "sign", "n_own", "n_other", "rate_own", "rate_other", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _reads(rubric_data: RubricData, which: Reads | None) -> _Reads:
    every = counted_reads(rubric_data.reads, Reads.ALL)
    known = counted_reads(rubric_data.reads, which)
    points = rubric_data.items["points"].to_numpy(dtype=float)
    kept = known.loc[np.nan_to_num(points[known["row"].to_numpy(dtype=np.int64)]) != 0]
    row = kept["row"].to_numpy(dtype=np.int64)
    is_desirable = points[row] > 0
    model, models = codes_of(rubric_data.items["model"])
    example, _ = codes_of(rubric_data.items["example_id"])
    return _Reads(
        row=row,
        stratum=np.where(kept["met"].to_numpy(dtype=float) == 1, 0, 2) + np.where(is_desirable, 0, 1),
        is_desirable=is_desirable,
        weight=kept["weight"].to_numpy(dtype=float),
        model=model[row],
        example=example[row],
        models=[str(name) for name in models],
        n_without_points=len(known) - len(kept),
        n_not_drawn=len(every) - len(known),
    )


def _sides(
    known: _Reads, of_model: npt.NDArray[np.object_], family: str | None, labelled: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which reads are of the judge's own family, and which of another one."""
    is_own = (of_model == family) & (of_model != "")
    return labelled & is_own[known.model], labelled & (~is_own & (of_model != ""))[known.model]


def _cells(known: _Reads, label: Floats, own: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_]) -> Floats:
    """By example, stratum and side (own, other): the sum of weights, and of those of labels that are in the response's favour."""
    either = own | other
    example = np.asarray(pd.factorize(known.example[either])[0], dtype=np.int64)
    in_favour = (label[either] == 1) == known.is_desirable[either]
    shape = (int(example.max(initial=-1)) + 1, len(_STRATA), 2)
    place = (
        np.ravel_multi_index((example, known.stratum[either], other[either].astype(np.int64)), shape)
        if len(example)
        else example
    )
    size = int(np.prod(shape))
    sums = [np.bincount(place, weight, size) for weight in (known.weight[either], known.weight[either] * in_favour)]
    found: Floats = np.stack(sums, axis=-1).reshape(*shape, 2).astype(float)
    return found


def _difference(cells: Floats, strata: list[int], level: float) -> tuple[float, float, float]:
    """The common difference over these strata, and its jackknife interval; NaN where nothing can be compared, or nothing varies between examples."""
    kept = cells[:, strata]
    whole, n_examples = kept.sum(axis=0), len(kept)
    value = float(_common(whole[None])[0])
    without = _common(np.maximum(whole - kept, 0))
    if n_examples < 2 or np.isnan(value) or np.isnan(without).any():  # noqa: PLR2004 - one example tells nothing of the spread between examples
        return value, np.nan, np.nan
    variance = (n_examples - 1) / n_examples * float(((without - without.mean()) ** 2).sum())
    if variance <= np.finfo(float).eps:  # of numbers in [-1, 1]: less is rounding
        return value, np.nan, np.nan
    half = float(stdtrit(n_examples - 1, (1 + level) / 2)) * np.sqrt(variance)
    return value, max(value - half, -1.0), min(value + half, 1.0)


def _common(cells: Floats) -> Floats:
    """sum_s (A1 N0 - A0 N1) / (N1 + N0) over sum_s N1 N0 / (N1 + N0), of each first index; NaN where no stratum has both sides."""
    n, a = cells[..., 0], cells[..., 1]
    total = np.maximum(n.sum(axis=-1), 1e-300)
    part = ((a[..., 0] * n[..., 1] - a[..., 1] * n[..., 0]) / total).sum(axis=-1)
    whole = (n[..., 0] * n[..., 1] / total).sum(axis=-1)
    found: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > _ROUNDING)
    return found


_ROUNDING = 1e-9


def _reason(judge: str, family: str | None, n_own: int, n_other: int) -> str:
    if family is None:
        return f"No pattern of the table of families fits the judge {judge}."
    for n_examples, whose in ((n_own, f"of the family {family}"), (n_other, "of other families")):
        if n_examples < MIN_EXAMPLES:
            conversations = "conversation" if n_examples == 1 else "conversations"
            return f"Physicians have read responses {whose} in {n_examples or 'no'} {conversations}, where {MIN_EXAMPLES} are needed."
    return ""


def points_words(difference: float, low: float, high: float) -> str:
    """A difference in percentage points with its interval.

    >>> points_words(0.094, 0.031, 0.157), points_words(0.2, np.nan, np.nan)
    ('+9 [+3, +16]', '+20, no interval')
    """
    if np.isnan(difference):
        return NO_VALUE
    bounds = ", no interval" if np.isnan(low) else f" [{signed_points(low)}, {signed_points(high)}]"
    return f"{signed_points(difference)}{bounds}"


def finding(row: Mapping[str, Any]) -> str:
    """What is known of one judge, in a sentence or two.

    Args:
        row: Of `self_preference`.
    """
    if row["reason"]:
        return f"Whether {row['judge']} favours its own family cannot be said: {row['reason'][:1].lower()}{row['reason'][1:]}"
    if row["low"] > 0:
        said = "favours responses of its own family over others'"
    elif row["high"] < 0:
        said = "is harder on responses of its own family than on others'"
    else:
        said = "is not shown to treat responses of its own family otherwise than others'"
    together, met, not_met = (
        points_words(row[name], row[low], row[high])
        for name, low, high in (
            ("difference", "low", "high"),
            *((name, f"{name}_low", f"{name}_high") for name in ("met_difference", "not_met_difference")),
        )
    )
    return (
        f"{row['judge']} ({row['family']}) {said}. Where physicians gave the same label, its label is in the response's favour {together} points "
        f"more often (met: {met}; not met: {not_met}), by {row['n_own']:,} reads of its own family and {row['n_other']:,} of others."
    )

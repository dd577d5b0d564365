"""Self-preference: whether a judge favours responses of its own family, where physicians gave the same label."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.judges.record import DESIRABLE, UNDESIRABLE, Reads, counted_reads, points_words
from evalcore.rubric.data import RubricData
from evalcore.stats.arrays import Floats, Truths
from evalcore.stats.intervals import LEVEL, percent_words
from evalcore.stats.wording import counted

MIN_EXAMPLES = 5  # with reads on either side; with fewer no difference is said
MET, NOT_MET, TOGETHER = "met", "not met", "together"  # what physicians said; both, combined
_STRATA = [(MET, DESIRABLE), (MET, UNDESIRABLE), (NOT_MET, DESIRABLE), (NOT_MET, UNDESIRABLE)]
_COMBINED = {MET: [0, 1], NOT_MET: [2, 3], TOGETHER: [0, 1, 2, 3]}
_ENDS = {  # the columns of each combination: the difference and its interval
    MET: ("met_difference", "met_difference_low", "met_difference_high"),
    NOT_MET: ("not_met_difference", "not_met_difference_low", "not_met_difference_high"),
    TOGETHER: ("difference", "low", "high"),
}
COLUMNS = [
    "judge", "family", "n_own", "n_other", "n_own_examples", "n_other_examples", "n_shared_examples",
    *_ENDS[MET], *_ENDS[NOT_MET], *_ENDS[TOGETHER], "reason",
    "n_without_family", "models_without_family", "n_without_label", "n_without_points", "n_not_drawn",
]  # fmt: skip
_ROUNDING = 1e-9


def self_preference(rubric_data: RubricData, families: Mapping[str, str]) -> pd.DataFrame:
    """Whether each judge labels its own family's responses in their favour more often than others', given what physicians say.

    A family that is right more often leaves a judge less room to be generous, so responses are compared where physicians gave the same label to a
    criterion of the same sign. Stratum s is one of four (met or not met, desirable or undesirable); in it the judge's label is in the response's favour
    for the share p1_s of own reads and p0_s of the others', N their summed weights (`usual_reads`):

        D = sum_s m_s (p1_s - p0_s) / sum_s m_s,  m_s = N1_s N0_s / (N1_s + N0_s)       Mantel and Haenszel 1959, risk differences (Greenland and Robins 1985)
        interval: delete-one-example jackknife with t(G-1)

    A judge with one sensitivity and one specificity for all has D = 0, whatever its families get right. `families` maps models and judges to their family.

    Returns:
        `COLUMNS`, one row a judge: n_own, n_other (blind first reads of items that it labelled); met_difference, not_met_difference (where physicians say so),
        difference (of all strata), in -1..1, positive where it favours its own, with bounds, NaN where it cannot be said; reason (why difference is NaN);
        and what was left out, in reads.
    """
    reads, left_out = _reads(rubric_data, families)
    rows = []
    for judge in rubric_data.judges:
        family = families.get(judge)
        label, own, other = _sides(rubric_data, judge, reads, family)
        examples = [set(reads.loc[side, "example"]) for side in (own, other)]
        without = reads.loc[~np.isnan(label) & reads["family"].eq("").to_numpy(), "model"]
        n_own, n_other = map(len, examples)
        row: dict[str, Any] = {
            "judge": judge,
            "family": family,
            "n_own": int(own.sum()),
            "n_other": int(other.sum()),
            "n_own_examples": n_own,
            "n_other_examples": n_other,
            "n_shared_examples": len(examples[0] & examples[1]),
            "reason": _reason(judge, family, n_own, n_other),
            "n_without_family": len(without),
            "models_without_family": ", ".join(without.cat.remove_unused_categories().cat.categories),
            "n_without_label": int(np.isnan(label).sum()),
            **left_out,
        }
        if not row["reason"]:
            cells = _cells(reads, label, own, other)
            for name, strata in _COMBINED.items():
                row |= dict(zip(_ENDS[name], _difference(cells, strata), strict=True))
            if np.isnan(row["difference"]):
                row["reason"] = "No kind of criterion got the same label by physicians on both sides."
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def by_label(rubric_data: RubricData, judge: str, families: Mapping[str, str]) -> pd.DataFrame:
    """The strata that `self_preference` compares, for one judge, those with reads on both sides; then met, not met and together.

    sign is empty where combined; n_own, n_other are reads; rate_own, rate_other are of labels in the response's favour, NaN where combined.
    """
    reads, _ = _reads(rubric_data, families)
    labels, own, other = _sides(rubric_data, judge, reads, families.get(judge))
    cells = _cells(reads, labels, own, other)
    whole = cells.sum(axis=0)
    strata = [(label, sign, [place]) for place, (label, sign) in enumerate(_STRATA)]
    strata += [(label, "", places) for label, places in _COMBINED.items()]
    rows = []
    for label, sign, places in strata:
        here = reads["stratum"].isin(places).to_numpy()
        difference, low, high = _difference(cells, places)
        rates = whole[places[0], :, 1] / np.maximum(whole[places[0], :, 0], 1e-300) if sign else (np.nan, np.nan)
        n_own, n_other = int((own & here).sum()), int((other & here).sum())
        if n_own and n_other:
            rows.append((label, sign, n_own, n_other, *rates, difference, low, high))
    columns = ["label", "sign", "n_own", "n_other", "rate_own", "rate_other", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _reads(rubric_data: RubricData, families: Mapping[str, str]) -> tuple[pd.DataFrame, dict[str, int]]:
    read = counted_reads(rubric_data.reads)
    items = rubric_data.items.iloc[read["row"].to_numpy(dtype=np.int64)].reset_index(drop=True)
    reads = read[["row", "met", "weight"]].reset_index(drop=True).assign(
        model=items["model"].astype("category"),
        family=items["model"].map(lambda name: families.get(str(name), "")).astype(object),
        example=items["example_id"],
        is_desirable=items["points"].gt(0),
    )  # fmt: skip
    reads["stratum"] = 2 * reads["met"].ne(1).astype(int) + (~reads["is_desirable"]).astype(int)
    kept = reads.loc[items["points"].fillna(0).ne(0)].reset_index(drop=True)
    n_not_drawn = len(counted_reads(rubric_data.reads, Reads.ALL)) - len(read)
    return kept, {"n_without_points": len(reads) - len(kept), "n_not_drawn": n_not_drawn}


def _sides(
    rubric_data: RubricData, judge: str, reads: pd.DataFrame, family: str | None
) -> tuple[Floats, Truths, Truths]:
    labels = rubric_data.judged[judge].to_numpy(dtype=float)[reads["row"].to_numpy(dtype=np.int64)]
    has_family = ~np.isnan(labels) & reads["family"].ne("").to_numpy()
    is_own = reads["family"].eq(family or "").to_numpy(dtype=bool)
    return labels, has_family & is_own, has_family & ~is_own


def _cells(reads: pd.DataFrame, label: Floats, own: Truths, other: Truths) -> Floats:
    either = own | other
    entering = reads.loc[either]
    codes, names = pd.factorize(entering["example"])
    in_favour = (label[either] == 1) == entering["is_desirable"].to_numpy()
    weight = entering["weight"].to_numpy(dtype=float)
    places = (codes, entering["stratum"].to_numpy(), other[either].astype(np.int64))
    cells = np.zeros((len(names), len(_STRATA), 2, 2))
    np.add.at(cells[..., 0], places, weight)
    np.add.at(cells[..., 1], places, weight * in_favour)
    return cells


def _difference(cells: Floats, strata: list[int]) -> tuple[float, float, float]:
    kept = cells[:, strata]
    whole, n_examples = kept.sum(axis=0), len(kept)
    value = float(_common(whole[None])[0])
    without = _common(np.maximum(whole - kept, 0))
    if n_examples < 2 or np.isnan(value) or np.isnan(without).any():  # noqa: PLR2004 - one example tells nothing of the spread between examples
        return value, np.nan, np.nan
    variance = (n_examples - 1) / n_examples * float(((without - without.mean()) ** 2).sum())
    if variance <= np.finfo(float).eps:  # of numbers in [-1, 1]: less is rounding
        return value, np.nan, np.nan
    half = float(stdtrit(n_examples - 1, (1 + LEVEL) / 2)) * np.sqrt(variance)
    return value, max(value - half, -1.0), min(value + half, 1.0)


def _common(cells: Floats) -> Floats:
    """sum_s (A1 N0 - A0 N1) / (N1 + N0) over sum_s N1 N0 / (N1 + N0), by first index; NaN without both sides."""
    n, a = cells[..., 0], cells[..., 1]
    total = np.maximum(n.sum(axis=-1), 1e-300)
    part = ((a[..., 0] * n[..., 1] - a[..., 1] * n[..., 0]) / total).sum(axis=-1)
    whole = (n[..., 0] * n[..., 1] / total).sum(axis=-1)
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > _ROUNDING))


def _reason(judge: str, family: str | None, n_own: int, n_other: int) -> str:
    if family is None:
        return f"No pattern of the table of families fits the judge {judge}."
    for n_examples, whose in ((n_own, f"of the family {family}"), (n_other, "of other families")):
        if n_examples < MIN_EXAMPLES:
            conversations = counted(n_examples, "conversation") if n_examples else "no conversations"
            return f"Physicians have read responses {whose} in {conversations}, where {MIN_EXAMPLES} are needed."
    return ""


def finding(row: Mapping[str, Any]) -> str:
    """What `self_preference` says of one judge, in a sentence or two."""
    if row["reason"]:
        return f"Whether {row['judge']} favours its own family cannot be said: {row['reason'][:1].lower()}{row['reason'][1:]}"
    treats = "is not shown to treat responses of its own family otherwise than others'"
    if row["low"] > 0:
        treats = "favours responses of its own family over others'"
    elif row["high"] < 0:
        treats = "is harder on responses of its own family than on others'"
    met, not_met, together = (points_words(*(row[end] for end in ends)) for ends in _ENDS.values())
    return (
        f"{row['judge']} ({row['family']}) {treats}. Where physicians gave the same label, labels in the response's favour differ by {together} points, "
        f"own family less others (met: {met}; not met: {not_met}), by {counted(row['n_own'], 'read')} of its own family and {row['n_other']:,} of others."
    )


def columns(strata: pd.DataFrame) -> dict[str, Any]:
    """Rows of `by_label` as a table."""

    def rates(side: str) -> list[str]:
        pairs = zip(strata[f"rate_{side}"], strata[f"n_{side}"], strict=True)
        return [f"n = {n:,}" if np.isnan(rate) else f"{percent_words(rate)} (n = {n:,})" for rate, n in pairs]

    return {
        "Criteria": [
            "Both labels together" if label == TOGETHER else f"Physicians say {label}, {sign or 'together'}"
            for label, sign in zip(strata["label"], strata["sign"], strict=True)
        ],
        "In favour of its own family": rates("own"),
        "In favour of other families": rates("other"),
        "Difference (points)": list(map(points_words, strata["difference"], strata["low"], strata["high"])),
    }

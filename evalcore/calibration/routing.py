"""Routing to a human by confidence: what share of the dangerous misses is caught, over what share of the cases goes."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.calibration.judge_confidence import DIGITS, who
from evalcore.stats.arrays import cells_of, quotient
from evalcore.stats.intervals import NO_VALUE, percent_words, rate_words, wilson
from evalcore.triage.cases import DANGEROUS
from evalcore.triage.data import Kind

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
BY = ("model", "format")
MOST_THRESHOLDS = 101
WANTED = 0.9
SHARES = ("routed", "caught", "exact_kept", "ambiguous_routed")
NO_MISSES = "No emergency was sent lower and no case with gold C was sent home, so there is nothing to catch."
NONE_SURE = (
    "No case has a confidence (none is stated, and none has two valid samples), so every case would go to a human."
)
TOO_FEW = "The dangerous misses are too few to fall into both halves of the cases."


def curves(own: pd.DataFrame, *, at: float | None = None) -> pd.DataFrame:
    """What sending every case below a confidence to a human would cost and catch, by model and format.

    A case goes to a human where the model's confidence lies below the threshold; one that has none (no valid sample, or a single one and
    nothing stated) always goes. Cases that the judge has not looked at do not enter.

    `own` is `own_confidence(joined(triage_data, predictions(...)))`. Thresholds are `at` alone, else the confidences that occur, at most 100 of
    them, and one above all, at which every case goes.

    Returns:
        One row a group and threshold, ascending: model, format, threshold (inf: every case goes), n_without (clear cases that have no confidence),
        and four shares, each as name (in [0, 1]), k_name, n_name, low_name, high_name (Wilson, 95 %; NaN where n is 0):
        routed (of the clear cases), caught (of the dangerous misses, clear cases whose gold and prediction are among `cases.DANGEROUS`, those that go),
        exact_kept (of the clear cases that do not go, those with the right level), ambiguous_routed (of the ambiguous cases).
    """
    cases = _cases(own)
    cells, keys = cells_of(cases, BY)
    columns = _columns(cases)
    parts = []
    for number in range(len(keys)):
        mine = columns.of(cells == number)
        thresholds = _thresholds(mine.confidence) if at is None else np.array([round(at, DIGITS)])
        counted = {name: _counts(mine, name, thresholds) for name in SHARES}
        table = keys.take(np.full(len(thresholds), number)).reset_index(drop=True)
        table = table.assign(threshold=thresholds, n_without=mine.n_without)
        columns_of = {f"{end}_{name}": kn[place] for name, kn in counted.items() for place, end in enumerate("kn")}
        parts.append(table.assign(**columns_of))
    names = [*BY, "threshold", "n_without", *(f"{end}_{name}" for name in SHARES for end in "kn")]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype=float)
    return _with_shares(table)


def chosen(own: pd.DataFrame, *, rng: np.random.Generator, wanted: float = WANTED) -> pd.DataFrame:
    """The threshold that catches a wanted share of the dangerous misses, chosen on half of the cases and shown on the other half.

    On the cases that it was chosen on, a threshold looks better than it is. The halves are drawn by case, the same for every model.

    `own` is as for `curves`, `wanted` the share of the dangerous misses to catch, in (0, 1].

    Returns:
        One row a group: model, format, wanted, threshold (the lowest that catches the wanted share in the first half), n_misses_first (dangerous misses
        there), caught_first (the share that it catches there), and on the other half n_without and the four shares as `curves` gives them; undefined:
        a sentence where there is no threshold (then NaN), else "".
    """
    cases = _cases(own)
    rows = cases["row"].to_numpy()
    numbers = np.unique(rows)
    first = np.zeros(len(numbers), dtype=bool)
    first[rng.permutation(len(numbers))[: len(numbers) // 2]] = True
    in_first = first[np.searchsorted(numbers, rows)]
    cells, keys = cells_of(cases, BY)
    columns = _columns(cases)
    lines = []
    for number in range(len(keys)):
        mine = cells == number
        here, other = columns.of(mine & in_first), columns.of(mine & ~in_first)
        thresholds = _thresholds(columns.of(mine).confidence)
        is_sure = len(thresholds) > 1
        k, n = _counts(here, "caught", thresholds)
        line: dict[str, Any] = {"n_misses_first": int(n[0]), "threshold": np.nan, "caught_first": np.nan}
        line |= {"n_without": other.n_without, "undefined": ""}
        if is_sure and n[0] and other.missed.any():
            place = int(np.argmax(k >= wanted * n - 1e-9))
            line |= {"threshold": thresholds[place], "caught_first": k[place] / n[place]}
        else:
            some = n[0] or other.missed.any()
            line["undefined"] = NO_MISSES if not some else TOO_FEW if is_sure else NONE_SURE
        at = np.array([line["threshold"]])
        for name in SHARES:
            counted = _counts(other, name, at) if not line["undefined"] else np.zeros((2, 1), dtype=int)
            line |= {f"{end}_{name}": int(counted[place][0]) for place, end in enumerate("kn")}
        lines.append(line)
    counts = [f"{end}_{name}" for name in SHARES for end in "kn"]
    names = ["n_misses_first", "threshold", "caught_first", "n_without", "undefined", *counts]
    table = pd.concat([keys.assign(wanted=wanted), pd.DataFrame(lines, columns=names)], axis=1)
    return _with_shares(table)


class _Columns(NamedTuple):
    """The cases that enter."""

    confidence: Floats
    """-1: none."""
    clear: Flags
    ambiguous: Flags
    right: Flags
    missed: Flags
    """A dangerous miss."""

    @property
    def n_without(self) -> int:
        """Clear cases that have no confidence."""
        return int((self.clear & (self.confidence < 0)).sum())

    def of(self, kept: Flags) -> "_Columns":
        return _Columns(
            self.confidence[kept], self.clear[kept], self.ambiguous[kept], self.right[kept], self.missed[kept]
        )


def _cases(own: pd.DataFrame) -> pd.DataFrame:
    kept = own["kind"].isin([Kind.CLEAR, Kind.AMBIGUOUS]) & (own["n_valid"].gt(0) | own["n_invalid"].gt(0))
    table = own.loc[kept].reset_index(drop=True)
    return table.assign(confidence=table["confidence"].fillna(-1.0))


def _columns(cases: pd.DataFrame) -> _Columns:
    gold, predicted = cases["gold"].to_numpy(dtype=float), cases["predicted"].to_numpy(dtype=float)
    clear = cases["kind"].eq(Kind.CLEAR).to_numpy()
    return _Columns(
        confidence=cases["confidence"].to_numpy(dtype=float),
        clear=clear,
        ambiguous=~clear,
        right=clear & (gold == predicted),
        missed=clear & np.any([(gold == needs) & (predicted == said) for needs, said in DANGEROUS], axis=0),
    )


def _thresholds(confidence: Floats) -> Floats:
    values = np.unique(confidence[confidence >= 0])
    if len(values) > MOST_THRESHOLDS - 1:
        values = values[np.unique(np.linspace(0, len(values) - 1, MOST_THRESHOLDS - 1).astype(np.int64))]
    return np.append(values, np.inf)


def _counts(cases: _Columns, name: str, thresholds: Floats) -> tuple[Any, Any]:
    """K and n of one share at each threshold."""
    if name == "exact_kept":
        return tuple(
            kept.sum() - _below(cases.confidence[kept], thresholds) for kept in (cases.right, cases.clear)
        )  # fmt: skip
    population = {"routed": cases.clear, "caught": cases.missed, "ambiguous_routed": cases.ambiguous}[name]
    return _below(cases.confidence[population], thresholds), np.full(len(thresholds), population.sum())


def _below(confidence: Floats, thresholds: Floats) -> npt.NDArray[np.int64]:
    return np.searchsorted(np.sort(confidence), thresholds, side="left").astype(np.int64)


def _with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """K of n as shares with Wilson's intervals: a case enters each once."""
    for name in SHARES:
        k, n = table[f"k_{name}"].to_numpy(dtype=float), table[f"n_{name}"].to_numpy(dtype=float)
        low, high = wilson(k, n)
        table = table.assign(**{name: quotient(k, n), f"low_{name}": low, f"high_{name}": high})
    return table


Row = Mapping[Any, Any]
OF_NONE = {
    "routed": "no clear case",
    "caught": "nothing to catch",
    "exact_kept": "no case is kept",
    "ambiguous_routed": "no ambiguous case",
}
"""Why a share has no value."""
NOTHING_TO_ROUTE = "No model has answered a clear or an ambiguous case, so there is nothing to send to a human."


def threshold_words(threshold: float) -> str:
    """At which confidence cases go to a human.

    >>> threshold_words(0.8), threshold_words(0.975), threshold_words(float("inf")), threshold_words(float("nan"))
    ('below 80 %', 'below 97.5 %', 'every case', '–')
    """
    if math.isnan(threshold):
        return NO_VALUE
    return "every case" if math.isinf(threshold) else f"below {100 * threshold:.3g} %"


def routed_words(row: Row, name: str) -> str:
    """One of the shares of `curves` or `chosen`, with its count and interval; a dash and the reason where there is none."""
    if math.isnan(row["threshold"]):
        return NO_VALUE
    if math.isnan(row[name]):
        return f"{NO_VALUE} ({OF_NONE[name]})"
    k, n, low, high = (row[f"{end}_{name}"] for end in ("k", "n", "low", "high"))
    return rate_words(row[name], low, high, n_hits=int(k), n=int(n), weighted=False)


def routing_finding(table: pd.DataFrame, wanted: float | None) -> str:
    """What routing does for the model with the most dangerous misses.

    `table` is that of `chosen`, or, where the threshold is fixed and no share `wanted`, that of `curves` at it with undefined "".
    """
    if table.empty:
        return NOTHING_TO_ROUTE
    known = table.loc[table["caught"].notna()]
    if known.empty:
        reasons = set(table["undefined"])
        return next((why for why in (TOO_FEW, NONE_SURE) if why in reasons), NO_MISSES)
    row = known.sort_values("n_caught", ascending=False, kind="stable").iloc[0].to_dict()
    whole = math.isinf(row["threshold"])
    goes = "every case goes" if whole else f"cases with a confidence {threshold_words(row['threshold'])} go"
    what = f"catches {routed_words(row, 'caught')} of the dangerous misses and sends {routed_words(row, 'routed')} of the clear cases"
    if wanted is None:
        return f"Where {goes} to a human, that {what} for {who(row)}."
    half = "On the half of the cases that did not choose this, that"
    return f"To catch {percent_words(wanted)} of what {who(row)} misses, {goes} to a human. {half} {what}."

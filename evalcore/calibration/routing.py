"""Routing to a human by confidence: dangerous misses caught over cases sent; and in words."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalcore.calibration import SEED
from evalcore.calibration.confidence import DIGITS, who
from evalcore.stats.arrays import Floats, Numbers, Truths, cells_of, quotient
from evalcore.stats.intervals import NO_VALUE, percent_words, rate_words, wilson
from evalcore.stats.wording import counted
from evalcore.triage.cases import DANGEROUS
from evalcore.triage.data import Kind
from evalcore.triage.words import Row

BY = ("model", "format")
MOST_THRESHOLDS = 101
WANTED = 0.9
SHARES = {
    "routed": "no clear case",
    "caught": "nothing to catch",
    "exact_kept": "no case is kept",
    "ambiguous_routed": "no ambiguous case",
}
COUNTS = [f"{end}_{name}" for name in SHARES for end in "kn"]
NO_MISSES = "No emergency was sent lower and no case with gold C was sent home, so there is nothing to catch."
NONE_SURE = (
    "No case has a confidence (none is stated, and none has two valid samples), so every case would go to a human."
)
TOO_FEW = "The dangerous misses are too few to fall into both halves of the cases."
NOTHING_TO_ROUTE = "No model has answered a clear or an ambiguous case, so there is nothing to send to a human."


def curves(own: pd.DataFrame, at: float | None = None) -> pd.DataFrame:
    """What sending every case below a confidence to a human would cost and catch, by model and format.

    A case without a confidence always goes; one that the judge has not looked at does not enter. `own`:
    `own_confidence` of predictions with the gold and kind of their cases. Thresholds are `at` alone, else the
    confidences that occur, at most 100, and one above all (inf). Gives n_without (clear cases without a confidence)
    and four shares, each with k_, n_, low_ and high_ (Wilson, 95 %): routed (of the clear cases), caught (of the
    dangerous misses, `cases.DANGEROUS`), exact_kept (right, of the clear cases that do not go), ambiguous_routed
    (of the ambiguous cases).
    """
    columns, _, cells, keys = _cases(own)
    parts = []
    for number in range(len(keys)):
        mine = columns.of(cells == number)
        thresholds = _thresholds(mine.confidence) if at is None else np.array([round(at, DIGITS)])
        table = keys.take(np.full(len(thresholds), number)).reset_index(drop=True)
        parts.append(table.assign(threshold=thresholds, n_without=mine.n_without, **_all_counts(mine, thresholds)))
    names = [*BY, "threshold", "n_without", *COUNTS]
    return _with_shares(pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype=float))


def chosen(own: pd.DataFrame, wanted: float = WANTED, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
    """The threshold that catches a wanted share of the dangerous misses, from one half of the cases, on the other.

    On the cases that it was chosen on it would look better than it is. The halves are drawn by case, the same for
    every model; without `rng` by the draw that the page and the command show. `wanted`: in (0, 1]. Gives threshold
    (the lowest that catches it in the first half), n_misses_first and caught_first (there), and on the other half
    n_without and the four shares as `curves`; undefined: a sentence where there is no threshold, else "".
    """
    rng = rng or np.random.default_rng(SEED)
    columns, rows, cells, keys = _cases(own)
    numbers = np.unique(rows)
    first = np.zeros(len(numbers), dtype=bool)
    first[rng.permutation(len(numbers))[: len(numbers) // 2]] = True
    in_first = first[np.searchsorted(numbers, rows)]
    lines = []
    for number in range(len(keys)):
        mine = cells == number
        here, other = columns.of(mine & in_first), columns.of(mine & ~in_first)
        thresholds = _thresholds(columns.of(mine).confidence)
        is_sure = len(thresholds) > 1
        k, n = _counts(here, "caught", thresholds)
        line: dict[str, Any] = {"n_misses_first": int(n[0]), "threshold": np.nan, "caught_first": np.nan}
        line |= {"n_without": other.n_without, "undefined": ""} | dict.fromkeys(COUNTS, 0)
        if is_sure and n[0] and other.missed.any():
            place = int(np.argmax(k >= wanted * n - 1e-9))
            line |= {"threshold": thresholds[place], "caught_first": k[place] / n[place]}
            line |= {name: int(values[0]) for name, values in _all_counts(other, thresholds[[place]]).items()}
        else:
            some = n[0] or other.missed.any()
            line["undefined"] = NO_MISSES if not some else TOO_FEW if is_sure else NONE_SURE
        lines.append(line)
    names = ["n_misses_first", "threshold", "caught_first", "n_without", "undefined", *COUNTS]
    table = pd.concat([keys.assign(wanted=wanted), pd.DataFrame(lines, columns=names)], axis=1)
    return _with_shares(table)


class _Columns(NamedTuple):
    confidence: Floats  # -1: none
    clear: Truths
    ambiguous: Truths
    right: Truths
    missed: Truths

    @property
    def n_without(self) -> int:
        """Clear cases that have no confidence."""
        return int((self.clear & (self.confidence < 0)).sum())

    def of(self, kept: Truths) -> "_Columns":
        return _Columns._make(column[kept] for column in self)


def _cases(own: pd.DataFrame) -> tuple[_Columns, Numbers, Numbers, pd.DataFrame]:
    kept = own["kind"].isin([Kind.CLEAR, Kind.AMBIGUOUS]) & (own["n_valid"].gt(0) | own["n_invalid"].gt(0))
    cases = own.loc[kept].reset_index(drop=True)
    gold, predicted = cases["gold"].to_numpy(dtype=float), cases["predicted"].to_numpy(dtype=float)
    clear = cases["kind"].eq(Kind.CLEAR).to_numpy()
    missed = clear & np.any([(gold == needs) & (predicted == answer) for needs, answer in DANGEROUS], axis=0)
    confidence = cases["confidence"].fillna(-1.0).to_numpy(dtype=float)
    columns = _Columns(confidence, clear, ~clear, clear & (gold == predicted), missed)
    return columns, cases["row"].to_numpy(), *cells_of(cases, BY)


def _thresholds(confidence: Floats) -> Floats:
    values = np.unique(confidence[confidence >= 0])
    if len(values) > MOST_THRESHOLDS - 1:
        values = values[np.unique(np.linspace(0, len(values) - 1, MOST_THRESHOLDS - 1).astype(np.int64))]
    return np.append(values, np.inf)


def _all_counts(cases: _Columns, thresholds: Floats) -> dict[str, Any]:
    return {
        f"{end}_{name}": values
        for name in SHARES
        for end, values in zip("kn", _counts(cases, name, thresholds), strict=True)
    }


def _counts(cases: _Columns, name: str, thresholds: Floats) -> tuple[Any, Any]:
    def below(population: Truths) -> Numbers:
        return np.searchsorted(np.sort(cases.confidence[population]), thresholds, side="left").astype(np.int64)

    if name == "exact_kept":
        return cases.right.sum() - below(cases.right), cases.clear.sum() - below(cases.clear)
    population = {"routed": cases.clear, "caught": cases.missed, "ambiguous_routed": cases.ambiguous}[name]
    return below(population), np.full(len(thresholds), population.sum())


def _with_shares(table: pd.DataFrame) -> pd.DataFrame:
    for name in SHARES:
        k, n = table[f"k_{name}"].to_numpy(dtype=float), table[f"n_{name}"].to_numpy(dtype=float)
        low, high = wilson(k, n)
        table = table.assign(**{name: quotient(k, n), f"low_{name}": low, f"high_{name}": high})
    return table


def _threshold_words(threshold: float) -> str:
    return "every case" if math.isinf(threshold) else f"below {100 * threshold:.3g} %"


def _share_words(row: Row, name: str) -> str:
    if math.isnan(row[name]):
        return f"{NO_VALUE} ({SHARES[name]})"
    k, n, low, high = (row[f"{end}_{name}"] for end in ("k", "n", "low", "high"))
    return rate_words(row[name], low, high, n_hits=int(k), n=int(n), weighted=False)


def routing_columns(table: pd.DataFrame) -> dict[str, Any]:
    """What `curves` or `chosen` say at a threshold, by the headers of a table; without rows that have none."""
    known = table.loc[table["threshold"].notna()]
    rows = known.to_dict(orient="records")

    def cells(words: Callable[[Row], str]) -> list[str]:
        return [words(row) for row in rows]

    chosen_on = {}
    if "n_misses_first" in known:
        chosen_on = {"Chosen on": [counted(n, "miss", "misses") for n in known["n_misses_first"]]}
    found: dict[str, Any] = {"Model": known["model"].astype(str), "Format": known["format"].astype(str)}
    found |= {"To a human": cells(lambda row: _threshold_words(row["threshold"])), **chosen_on}
    found |= {"Misses caught": cells(lambda row: _share_words(row, "caught"))}
    found |= {"Cases sent": cells(lambda row: _share_words(row, "routed")), "Without a confidence": known["n_without"]}
    found |= {"Right, of those kept": cells(lambda row: _share_words(row, "exact_kept"))}
    found |= {"Ambiguous cases sent": cells(lambda row: _share_words(row, "ambiguous_routed"))}
    return found


def routing_finding(table: pd.DataFrame, wanted: float | None) -> str:
    """What routing does for the model with the most dangerous misses; without a share `wanted`, of `curves`."""
    if table.empty:
        return NOTHING_TO_ROUTE
    known = table.loc[table["caught"].notna()]
    if known.empty:
        reasons = set(table["undefined"])
        return next((why for why in (TOO_FEW, NONE_SURE) if why in reasons), NO_MISSES)
    row = known.sort_values("n_caught", ascending=False, kind="stable").iloc[0].to_dict()
    whole = math.isinf(row["threshold"])
    goes = "every case goes" if whole else f"cases with a confidence {_threshold_words(row['threshold'])} go"
    what = f"catches {_share_words(row, 'caught')} of the dangerous misses and sends {_share_words(row, 'routed')} of the clear cases"
    if wanted is None:
        return f"Where {goes} to a human, that {what} for {who(row)}."
    half = "On the half of the cases that did not choose this, that"
    return f"To catch {percent_words(wanted)} of what {who(row)} misses, {goes} to a human. {half} {what}."

"""Triage against the gold: confusion matrices, and the rates and coefficients that follow from them (AcuityBench, arXiv 2605.11398).

Levels are 1 (A, home) to 4 (D, emergency now). Over-triage is a level above the gold, under-triage one below. The population is always the cases with a
clear gold and a prediction; boundary and ambiguous cases are in `triage_cases`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.panels import N_LEVELS, Kind
from evalcore.metrics.triage_counts import (
    KEYS,
    N_CELLS,
    Floats,
    cells_of,
    coded,
    matrices,
    ratio,
    repeated,
    tallied,
    wilson,
)
from evalcore.triaged import LETTERS

RATE_COLUMNS = ("measure", "k", "n", "value", "low", "high", "denominator", "reason")
SCORES = ("macro_f1", "kappa", "kappa_linear", "kappa_quadratic", "mean_signed")
"""Columns of `summary` beside n; each with `_low`, `_high` and `_reason`."""
KAPPAS = SCORES[1:4]
NO_CASE = "no case has both a clear gold and a prediction"
ONE_LEVEL = "gold and predictions are one and the same level throughout"
MIN_CASES = 5
"""With fewer cases there is no interval: their spread says too little of the spread of all."""
TOO_FEW = f"fewer than {MIN_CASES} cases"
RESTS_ON_ONE = "not defined without one of the cases"
NO_SPREAD = "every case gives the same value"
NO_ERROR = 1e-9
"""A standard error below this is rounding."""

_GOLD, _PREDICTED = np.indices((N_LEVELS, N_LEVELS))
_STEP = (_PREDICTED - _GOLD).astype(float)
_TOP = N_LEVELS - 1
_SEVERE = 2


class Measure(StrEnum):
    """What share of the cases is told."""

    EXACT = "exact"
    """The prediction is the gold."""
    OVER = "over"
    """It lies above, of all cases; exact, over and under add up to 1."""
    UNDER = "under"
    """It lies below, of all cases."""
    WITHIN_ONE = "within_one"
    """It lies at most one level off."""
    OVER_POSSIBLE = "over_possible"
    """It lies above, of the cases where that is possible: gold below D."""
    UNDER_POSSIBLE = "under_possible"
    """It lies below, of the cases where that is possible: gold above A."""
    MISSED_EMERGENCIES = "missed_emergencies"
    """Gold D sent to any lower level, of the emergencies."""
    SEVERE_OVER = "severe_over"
    """Two levels or more above, of all cases."""
    SEVERE_UNDER = "severe_under"
    """Two levels or more below, of all cases."""
    SENT_HOME = "sent_home"
    """Gold D answered A, of the emergencies."""


class Base(NamedTuple):
    """The cases that a share is of, in words: of one case, of several ({} for how many), and why there is no value where there is none."""

    one: str
    many: str
    none: str


_EVERY = np.ones_like(_STEP, dtype=bool)
_EMERGENCY = _GOLD == _TOP
OF_ALL = Base("of the one case", "of all {} cases", NO_CASE)
_OF_EMERGENCIES = Base("of the one emergency", "of {} emergencies", "no case is an emergency")
_BELOW_D = Base("of the one case below D", "of {} cases below D", "no case has a gold below D")
_ABOVE_A = Base("of the one case above A", "of {} cases above A", "no case has a gold above A")
_RULES: Mapping[Measure, tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], Base]] = {  # what counts, of which cases
    Measure.EXACT: (_STEP == 0, _EVERY, OF_ALL),
    Measure.OVER: (_STEP > 0, _EVERY, OF_ALL),
    Measure.UNDER: (_STEP < 0, _EVERY, OF_ALL),
    Measure.WITHIN_ONE: (np.abs(_STEP) <= 1, _EVERY, OF_ALL),
    Measure.OVER_POSSIBLE: (_STEP > 0, _GOLD < _TOP, _BELOW_D),
    Measure.UNDER_POSSIBLE: (_STEP < 0, _GOLD > 0, _ABOVE_A),
    Measure.MISSED_EMERGENCIES: ((_STEP < 0) & _EMERGENCY, _EMERGENCY, _OF_EMERGENCIES),
    Measure.SEVERE_OVER: (_STEP >= _SEVERE, _EVERY, OF_ALL),
    Measure.SEVERE_UNDER: (_STEP <= -_SEVERE, _EVERY, OF_ALL),
    Measure.SENT_HOME: ((_PREDICTED == 0) & _EMERGENCY, _EMERGENCY, _OF_EMERGENCIES),
}  # fmt: skip


def confusion(found: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Every model's answers by gold, one confusion matrix a format.

    Args:
        found: As `predictions.joined` gives it: model, format, gold, kind, predicted; any order of rows.
        keys: What one matrix is of.

    Returns:
        Sixteen rows a model and format that occur in `found`, in order of model, format, gold and prediction: model, format, gold, predicted (1..4),
        n (cases; a case without a prediction, or without a clear gold, is in none), n_gold (cases with this gold), share (n / n_gold), low, high
        (Wilson 95 %); the last three NaN where no case has this gold. No row where nothing came.
    """
    numbers, names = coded(found, keys)
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    counts = found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool) & ~np.isnan(predicted)
    return cells_of(names, tallied(numbers[counts], gold[counts], predicted[counts], len(names)))


def of_matrices(published: pd.DataFrame) -> pd.DataFrame:
    """Finished confusion matrices as the cells that `confusion` gives.

    Args:
        published: As `Triaged.published`: model, format, gold (a level), A, B, C, D (counts). Rows whose gold lies between two levels are left out.
    """
    clear = published.loc[published["gold"].isin(range(1, N_LEVELS + 1))]
    columns = [letter.value for letter in LETTERS]
    long = clear.melt([*KEYS, "gold"], columns, "predicted", "n")
    letters = {name: place for place, name in enumerate(columns, start=1)}
    names, counts = matrices(long.assign(predicted=long["predicted"].map(letters).astype(float)))
    return cells_of(names, counts)


def rates(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """How often the answers are right, too high, too low, and dangerously so.

    Args:
        cells: As `confusion` or `of_matrices` gives them: the key columns, gold, predicted, n.
        keys: What one matrix is of.

    Returns:
        One row a model, format and measure (`Measure`, in its order): model, format, measure, k (cases that count), n (of so many), value = k / n in
        [0, 1], low, high (Wilson 95 %), denominator (in words: "of 262 emergencies"), reason (why the value is NaN; empty where it is not).
    """
    names, counts = matrices(cells, keys=keys)
    k = np.stack([(counts * hits).sum(axis=(1, 2)) for hits, _, _ in _RULES.values()], axis=1)
    n = np.stack([(counts * base).sum(axis=(1, 2)) for _, base, _ in _RULES.values()], axis=1)
    return as_rates(names, [measure.value for measure in _RULES], k, n, [of for _, _, of in _RULES.values()])


def as_rates(names: pd.DataFrame, measures: Sequence[str], k: Floats, n: Floats, bases: Sequence[Base]) -> pd.DataFrame:
    """Shares k / n as rows, with Wilson intervals and denominators in words.

    Args:
        names: One row a group.
        measures: Of each column of k and n.
        k: Groups x measures, what counts.
        n: Groups x measures, of how many.
        bases: What each measure is of. Where a group has no case for any measure, that is the reason for all.

    Returns:
        The names with `RATE_COLUMNS`.
    """
    low, high = wilson(k.ravel(), n.ravel())
    whole = bool(np.all(k == np.rint(k)) and np.all(n == np.rint(n)))
    kind: Any = np.int64 if whole else np.float64
    columns: dict[str, Any] = {
        "measure": pd.Categorical(list(measures) * len(names), categories=list(measures)),
        "k": k.ravel().astype(kind),
        "n": n.ravel().astype(kind),
        "value": ratio(k.ravel(), n.ravel()),
        "low": low,
        "high": high,
        "denominator": [_of(of, number) for line in n for of, number in zip(bases, line, strict=True)],
        "reason": [_why(of, number, line) for line in n for of, number in zip(bases, line, strict=True)],
    }
    return repeated(names, len(measures)).assign(**columns)


def _of(base: Base, n: float) -> str:
    return base.one if n == 1 else base.many.format(f"{n:,.0f}")


def _why(base: Base, n: float, every: Floats) -> str:
    if n > 0:
        return ""
    return base.none if every.any() else NO_CASE


def summary(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Coefficients of a whole matrix, with intervals by the jackknife that leaves out one case.

    With N = the matrix, n its sum, r and c its margins, O = N/n, E = r c / n^2, and d = p - g:

        macro F1      mean over the levels that occur of 2 N_kk / (r_k + c_k)
        kappa         1 - sum w O / sum w E;  w = [g != p] (unweighted), |d| (linear), d^2 (quadratic)
        mean signed   sum N d / n, in levels; above 0: too high

    Cases of one cell are alike, so that leaving out one case is one of at most 16 different matrices, N_k of each:

        se^2 = (n - 1)/n sum_k N_k (theta_(-k) - theta)^2,  interval theta +- t(n - 1) se
        of a kappa on Fisher's scale: tanh(atanh(kappa) +- t(n - 1) se / (1 - kappa^2))

    On cases drawn from published matrices, 95 % intervals cover .94 to .96 from 100 cases on, and .91 to .97 with 30; that of the quadratic kappa, which
    rests on the few worst cases, .92 and .89 (without Fisher's scale .90 and .82).

    Args:
        cells: As for `rates`; whole numbers of cases.
        keys: What one matrix is of.

    Returns:
        One row a model and format: model, format, n, n_levels (of the four, those that occur as gold or prediction: macro F1 is their mean), and for each
        of `SCORES` the value, `_low`, `_high` and `_reason` (why value or interval is NaN; empty where neither is): macro_f1 in [0, 1], kappa,
        kappa_linear, kappa_quadratic at most 1, mean_signed in [-3, 3].

    References:
        Cohen 1960, 1968; macro F1 as the mean of the levels' F1.
    """
    names, counts = matrices(cells, keys=keys)
    n = counts.sum(axis=(1, 2))
    without = counts[:, None] - np.eye(N_CELLS).reshape(N_CELLS, N_LEVELS, N_LEVELS)
    found = names.assign(n=n.astype(np.int64), n_levels=_occurs(counts).sum(axis=-1))
    for name in SCORES:
        of, (least, most) = _FORMULAS[name]
        value = of(counts)
        away = of(without) - value[:, None]
        se, reason = _jackknifed(away, counts.reshape(-1, N_CELLS), value)
        half = stdtrit(np.maximum(n - 1, 1), (1 + LEVEL) / 2) * se
        low, high = _fishers(value, half) if name in KAPPAS else (value - half, value + half)
        found[name] = value
        found[f"{name}_low"] = np.maximum(low, least)
        found[f"{name}_high"] = np.minimum(high, most)
        found[f"{name}_reason"] = reason
    return found


def _jackknifed(away: Floats, times: Floats, value: Floats) -> tuple[Floats, npt.NDArray[Any]]:
    """Standard error, NaN with a reason where there is none."""
    n = times.sum(axis=1)
    squares = np.where(times > 0, times * away**2, 0).sum(axis=1)
    se = np.sqrt(ratio(np.where(n > 1, squares * (n - 1), np.nan), n))
    reason = np.select(
        [n == 0, np.isnan(value), n < MIN_CASES, np.isnan(se), se < NO_ERROR],
        [NO_CASE, ONE_LEVEL, TOO_FEW, RESTS_ON_ONE, NO_SPREAD],
        "",
    ).astype(object)
    return np.where(reason == "", se, np.nan), reason


def _fishers(value: Floats, half: Floats) -> tuple[Floats, Floats]:
    inside = np.abs(value) < 1
    slope = np.where(inside, 1 - value**2, np.nan)
    centre = np.arctanh(np.where(inside, value, np.nan))
    low, high = np.tanh(centre - half / slope), np.tanh(centre + half / slope)
    return np.where(inside, low, value - half), np.where(inside, high, value + half)


def _occurs(counts: Floats) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = counts.sum(axis=-1) + counts.sum(axis=-2) > 0
    return found


def _macro_f1(counts: Floats) -> Floats:
    margins = counts.sum(axis=-1) + counts.sum(axis=-2)
    f1 = ratio(2 * np.diagonal(counts, axis1=-2, axis2=-1), margins)
    return ratio(np.nansum(f1, axis=-1), _occurs(counts).sum(axis=-1).astype(float))


def _kappa(weights: Floats) -> Callable[[Floats], Floats]:
    def of(counts: Floats) -> Floats:
        n = counts.sum(axis=(-1, -2))
        seen = (counts * weights).sum(axis=(-1, -2)) * n
        by_chance = np.einsum("...a,ab,...b->...", counts.sum(axis=-1), weights, counts.sum(axis=-2))
        return 1 - ratio(seen, by_chance)

    return of


def _mean_signed(counts: Floats) -> Floats:
    return ratio((counts * _STEP).sum(axis=(-1, -2)), counts.sum(axis=(-1, -2)))


_FORMULAS: Mapping[str, tuple[Callable[[Floats], Floats], tuple[float, float]]] = {
    "macro_f1": (_macro_f1, (0, 1)),
    "kappa": (_kappa((_STEP != 0).astype(float)), (-1, 1)),
    "kappa_linear": (_kappa(np.abs(_STEP)), (-1, 1)),
    "kappa_quadratic": (_kappa(_STEP**2), (-1, 1)),
    "mean_signed": (_mean_signed, (-float(_TOP), float(_TOP))),
}

"""Coefficients of a whole confusion matrix of triage, with intervals by the jackknife that leaves out one case."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.intervals import LEVEL
from evalcore.triage.counts import KEYS, N_CELLS, Floats, Numbers, matrices, ratio
from evalcore.triage.panels import N_LEVELS
from evalcore.triage.rates import NO_CASE

SCORES = ("macro_f1", "kappa", "kappa_linear", "kappa_quadratic", "mean_signed")
"""Columns of `summary` beside n; each with `_low`, `_high` and `_reason`."""
KAPPAS = SCORES[1:4]
ONE_LEVEL = "gold and predictions are one and the same level throughout"
MIN_CASES = 5
"""With fewer cases there is no interval: their spread says too little of the spread of all."""
TOO_FEW = f"fewer than {MIN_CASES} cases"
RESTS_ON_ONE = "not defined without one of the cases"
NO_SPREAD = "every case gives the same value"
NO_ERROR = 1e-9
"""A standard error below this is rounding."""
PLACES = 9

_GOLD, _PREDICTED = np.indices((N_LEVELS, N_LEVELS))
_STEP = (_PREDICTED - _GOLD).astype(float)


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
    without = counts[:, None] - np.eye(N_CELLS).reshape(N_CELLS, N_LEVELS, N_LEVELS)
    return _scored(names, counts, without, counts.reshape(-1, N_CELLS))


def clustered_summary(names: pd.DataFrame, numbers: Numbers, cases: Numbers, items: Floats) -> pd.DataFrame:
    """The same where a case enters more than once, as several responses to it: a case is left out with all that belongs to it.

        se^2 = (G - 1)/G sum_g (theta_(-g) - theta)^2 over the G cases,  interval theta +- t(G - 1) se

    Args:
        names: One row a matrix.
        numbers: By item, its matrix: a row of `names`.
        cases: By item, its case.
        items: By item its matrix of 4 x 4: what it adds. A physician's read between two levels is half in two cells.

    Returns:
        As `summary`; n counts items.
    """
    tables = []
    for number in range(len(names)):
        mine = numbers == number
        codes = np.unique(cases[mine], return_inverse=True)[1]
        of_cases = np.zeros((int(codes.max(initial=-1)) + 1, N_LEVELS, N_LEVELS))
        np.add.at(of_cases, codes, items[mine])
        whole = of_cases.sum(axis=0, keepdims=True)
        without = np.round(whole - of_cases, PLACES)[
            None
        ]  # a sum of thirds less itself is rounding, and no level that occurs
        tables.append(_scored(names.iloc[[number]], whole, without, np.ones((1, len(of_cases)))))
    return pd.concat(tables, ignore_index=True) if tables else _scored(names, *_NOTHING)


_NOTHING = (np.zeros((0, N_LEVELS, N_LEVELS)), np.zeros((0, 0, N_LEVELS, N_LEVELS)), np.zeros((0, 0)))


def _scored(names: pd.DataFrame, counts: Floats, without: Floats, times: Floats) -> pd.DataFrame:
    """The columns of `summary`.

    Args:
        names: One row a matrix.
        counts: Matrices x 4 x 4.
        without: Matrices x what can be left out x 4 x 4.
        times: Matrices x what can be left out: how often there is such a one.
    """
    n = times.sum(axis=1)
    whole = np.rint(counts.sum(axis=(1, 2))).astype(np.int64)
    found = names.assign(n=whole, n_levels=_occurs(counts).sum(axis=-1))
    for name in SCORES:
        of, (least, most) = _FORMULAS[name]
        value = of(counts)
        away = of(without) - value[:, None]
        se, reason = _jackknifed(away, times, value)
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
    "mean_signed": (_mean_signed, (1.0 - N_LEVELS, N_LEVELS - 1.0)),
}

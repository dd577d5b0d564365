"""Triage against the gold: confusion matrices, the rates that follow from them, and coefficients of a whole matrix."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.intervals import LEVEL, wilson
from evalcore.study.schema import Format
from evalcore.triage.data import LETTERS
from evalcore.triage.panels import N_LEVELS, Kind

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
KEYS = ("model", "format")
"""What one confusion matrix is of."""
N_CELLS = N_LEVELS * N_LEVELS
_STEPS = np.arange(N_LEVELS)


def coded(table: pd.DataFrame, names: Sequence[str]) -> tuple[Numbers, pd.DataFrame]:
    """The number of each row's combination of names, and the combinations that occur by their number.

    Categorical columns keep their order and their categories, whatever the order of the rows. Of others, formats come as in `Format`, all else as it first
    comes (study and published matrices one below the other).

    Args:
        table: With these columns, none missing.

    >>> table = pd.DataFrame({"model": ["b", "a", "b"], "format": ["qa", "qa", "qa"]})
    >>> numbers, keys = coded(table, ["model", "format"])
    >>> numbers.tolist(), keys["model"].tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    columns = [_categorical(table[name]) for name in names]
    sizes = [max(len(column.categories), 1) for column in columns]
    number = np.zeros(len(table), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        number = number * size + column.codes
    occurs = np.flatnonzero(np.bincount(number, minlength=1)) if len(number) else np.zeros(0, dtype=np.int64)
    places = np.unravel_index(occurs, sizes)
    keys = {
        name: pd.Categorical.from_codes(place.astype(np.int32), dtype=column.dtype)
        for name, place, column in zip(names, places, columns, strict=True)
    }
    return np.searchsorted(occurs, number), pd.DataFrame(keys)


def _categorical(column: pd.Series) -> pd.Categorical:
    if column.name == "format" and not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Categorical(column, categories=[word.value for word in Format])
    return pd.Categorical(
        column, categories=None if isinstance(column.dtype, pd.CategoricalDtype) else pd.unique(column)
    )


def tallied(numbers: Numbers, gold: Floats, predicted: Floats, n_groups: int) -> Floats:
    """How many cases of each group have each gold and prediction.

    Args:
        numbers: Group of each case, 0 to n_groups - 1.
        gold: Levels 1..4, none missing and none between two.
        n_groups: How many there are; some may be empty.

    Returns:
        n_groups x 4 (gold) x 4 (prediction).
    """
    cell = (numbers * N_LEVELS + gold.astype(np.int64) - 1) * N_LEVELS + predicted.astype(np.int64) - 1
    counts = np.bincount(cell, minlength=n_groups * N_CELLS).reshape(n_groups, N_LEVELS, N_LEVELS)
    return counts.astype(float)


def matrices(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> tuple[pd.DataFrame, Floats]:
    """A table of cells as matrices.

    Args:
        cells: Key columns, gold and predicted (1..4), n. A cell that is missing has no case.

    Returns:
        The keys, one row a matrix, in order; and matrices x 4 (gold) x 4 (prediction).

    Raises:
        ValueError: The same cell comes twice, as where a model's published matrix stands beside its cases under one name.
    """
    numbers, found = coded(cells, keys)
    if not len(cells):
        return found, np.zeros((0, N_LEVELS, N_LEVELS))
    gold, predicted = (cells[name].to_numpy(dtype=float).astype(np.int64) - 1 for name in ("gold", "predicted"))
    place = (numbers * N_LEVELS + gold) * N_LEVELS + predicted
    if np.bincount(place).max() > 1:
        twice = found.iloc[int(np.bincount(place).argmax()) // N_CELLS]
        msg = f"expected each cell once, got {' '.join(str(word) for word in twice)} twice"
        raise ValueError(msg)
    counts: Floats = np.bincount(place, cells["n"].to_numpy(dtype=float), len(found) * N_CELLS).astype(float)
    return found, counts.reshape(len(found), N_LEVELS, N_LEVELS)


def cells_of(keys: pd.DataFrame, counts: Floats) -> pd.DataFrame:
    """Matrices as a table of cells.

    Args:
        counts: Matrices x 4 x 4.

    Returns:
        One row a matrix, gold and prediction: the keys, gold, predicted (1..4), n, n_gold (cases with this gold), share (n / n_gold, in [0, 1]), low, high
        (Wilson 95 %); the last three NaN where no case has this gold.
    """
    n = counts.reshape(-1)
    n_gold = np.repeat(counts.sum(axis=2).reshape(-1), N_LEVELS)
    low, high = wilson(n, n_gold)
    whole = bool(np.all(n == np.rint(n)))  # estimated cells are no whole numbers
    of_cells: dict[str, Any] = {
        "gold": np.tile(np.repeat(_STEPS + 1.0, N_LEVELS), len(keys)),
        "predicted": np.tile(_STEPS + 1.0, N_LEVELS * len(keys)),
        "n": n.astype(np.int64) if whole else n,
        "n_gold": n_gold.astype(np.int64) if whole else n_gold,
        "share": ratio(n, n_gold),
        "low": low,
        "high": high,
    }
    return repeated(keys, N_CELLS).assign(**of_cells)


def repeated(keys: pd.DataFrame, times: int) -> pd.DataFrame:
    """Each row so many times, one after the other."""
    return keys.take(np.repeat(np.arange(len(keys)), times)).reset_index(drop=True)


def ratio(k: npt.NDArray[Any], n: npt.NDArray[Any]) -> Floats:
    """The quotient; NaN where n is 0."""
    k, n = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    found = np.full(np.broadcast_shapes(k.shape, n.shape), np.nan)
    np.divide(k, n, out=found, where=n > 0)
    return found


RATE_COLUMNS = ("measure", "k", "n", "value", "low", "high", "denominator", "reason")
NO_CASE = "no case has both a clear gold and a prediction"

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


class Rule(NamedTuple):
    """What counts, of which cases: gold x prediction, the second the same for all predictions; and the words for the cases."""

    hits: npt.NDArray[np.bool_]
    base: npt.NDArray[np.bool_]
    of: Base


_EVERY = np.ones_like(_STEP, dtype=bool)
_EMERGENCY = _GOLD == _TOP
OF_ALL = Base("of the one case", "of all {} cases", NO_CASE)
OF_EMERGENCIES = Base("of the one emergency", "of {} emergencies", "no case is an emergency")
BELOW_D = Base("of the one case below D", "of {} cases below D", "no case has a gold below D")
ABOVE_A = Base("of the one case above A", "of {} cases above A", "no case has a gold above A")
RULES: Mapping[Measure, Rule] = {
    Measure.EXACT: Rule(_STEP == 0, _EVERY, OF_ALL),
    Measure.OVER: Rule(_STEP > 0, _EVERY, OF_ALL),
    Measure.UNDER: Rule(_STEP < 0, _EVERY, OF_ALL),
    Measure.WITHIN_ONE: Rule(np.abs(_STEP) <= 1, _EVERY, OF_ALL),
    Measure.OVER_POSSIBLE: Rule(_STEP > 0, _GOLD < _TOP, BELOW_D),
    Measure.UNDER_POSSIBLE: Rule(_STEP < 0, _GOLD > 0, ABOVE_A),
    Measure.MISSED_EMERGENCIES: Rule((_STEP < 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
    Measure.SEVERE_OVER: Rule(_STEP >= _SEVERE, _EVERY, OF_ALL),
    Measure.SEVERE_UNDER: Rule(_STEP <= -_SEVERE, _EVERY, OF_ALL),
    Measure.SENT_HOME: Rule((_PREDICTED == 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
}


def confusion(found: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Every model's answers by gold, one confusion matrix a format.

    Args:
        found: As `predictions.joined` gives it: model, format, gold, kind, predicted; any order of rows.

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
        published: As `TriageData.published`: model, format, gold (a level), A, B, C, D (counts). Rows whose gold lies between two levels are left out.
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

    Returns:
        One row a model, format and measure (`Measure`, in its order): model, format, measure, k (cases that count), n (of so many), value = k / n in
        [0, 1], low, high (Wilson 95 %), denominator (in words: "of 262 emergencies"), reason (why the value is NaN; empty where it is not).
    """
    names, counts = matrices(cells, keys=keys)
    k = np.stack([(counts * rule.hits).sum(axis=(1, 2)) for rule in RULES.values()], axis=1)
    n = np.stack([(counts * rule.base).sum(axis=(1, 2)) for rule in RULES.values()], axis=1)
    return as_rates(names, list(RULES), k, n, [rule.of for rule in RULES.values()])


def as_rates(
    names: pd.DataFrame,
    measures: Sequence[str],
    k: Floats,
    n: Floats,
    bases: Sequence[Base],
    *,
    bounds: tuple[Floats, Floats] | None = None,
) -> pd.DataFrame:
    """Shares k / n as rows, with intervals and denominators in words.

    Args:
        measures: Of each column of k and n.
        n: Groups x measures, of how many.
        bases: What each measure is of. Where a group has no case for any measure, the first says why for all.
        bounds: Groups x measures, low and high; without them Wilson's, which takes each case to count once.

    Returns:
        The names with `RATE_COLUMNS`.
    """
    low, high = wilson(k, n) if bounds is None else bounds
    whole = bool(np.all(k == np.rint(k)) and np.all(n == np.rint(n)))
    kind: Any = np.int64 if whole else np.float64
    words = [str(measure) for measure in measures]
    columns: dict[str, Any] = {
        "measure": pd.Categorical(words * len(names), categories=words),
        "k": k.ravel().astype(kind),
        "n": n.ravel().astype(kind),
        "value": ratio(k.ravel(), n.ravel()),
        "low": low.ravel(),
        "high": high.ravel(),
        "denominator": [denominator_words(of, number) for line in n for of, number in zip(bases, line, strict=True)],
        "reason": [_why(of, number, line, bases) for line in n for of, number in zip(bases, line, strict=True)],
    }
    return repeated(names, len(measures)).assign(**columns)


def denominator_words(base: Base, n: float) -> str:
    """The cases that a share is of.

    >>> denominator_words(OF_EMERGENCIES, 262), denominator_words(OF_ALL, 1)
    ('of 262 emergencies', 'of the one case')
    """
    return base.one if n == 1 else base.many.format(f"{n:,.0f}")


def _why(base: Base, n: float, every: Floats, bases: Sequence[Base]) -> str:
    if n > 0:
        return ""
    return base.none if every.any() else bases[0].none


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

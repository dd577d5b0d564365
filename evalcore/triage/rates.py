"""Triage against the gold: confusion matrices, their rates and coefficients; boundary and ambiguous cases."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.rubric.composition import UNKNOWN
from evalcore.stats.arrays import Floats, Numbers, Truths, occurring, quotient
from evalcore.stats.intervals import LEVEL, wilson
from evalcore.study.schema import Format
from evalcore.triage.data import LABELS, LETTERS, N_LEVELS, READ_HERE, Kind, TriageData

KEYS = ("model", "format")
N_CELLS = N_LEVELS * N_LEVELS
NO_CASE = "no case has both a clear gold and a prediction"
_GOLD, _PREDICTED = np.indices((N_LEVELS, N_LEVELS))
STEP = (_PREDICTED - _GOLD).astype(float)
"""Prediction minus gold, gold in rows."""
_TOP, _SEVERE = N_LEVELS - 1, 2


class Measure(StrEnum):
    """What share of the cases is told; `words.MEANINGS` says each, `RULES` counts it."""

    EXACT = "exact"
    OVER = "over"
    UNDER = "under"
    WITHIN_ONE = "within_one"
    OVER_POSSIBLE = "over_possible"
    UNDER_POSSIBLE = "under_possible"
    MISSED_EMERGENCIES = "missed_emergencies"
    SEVERE_OVER = "severe_over"
    SEVERE_UNDER = "severe_under"
    SENT_HOME = "sent_home"


class Base(NamedTuple):
    """The cases that a share is of: in words of one, of several ({} for how many), why there is no value; and which."""

    one: str
    many: str
    none: str
    which: str = ""


class Rule(NamedTuple):
    """Which cells count, of which cases (gold x prediction, the same for all predictions), and words for the cases."""

    hits: Truths
    base: Truths
    of: Base


_EVERY = np.ones_like(STEP, dtype=bool)
_EMERGENCY = _GOLD == _TOP
OF_ALL = Base("of the one case", "of all {} cases", NO_CASE)
OF_EMERGENCIES = Base("of the one emergency", "of {} emergencies", "no case is an emergency", "with the gold D")
BELOW_D, ABOVE_A = (
    Base(f"of the one case {side}", f"of {{}} cases {side}", f"no case has a gold {side}", f"with a gold {side}")
    for side in ("below D", "above A")
)
RULES: Mapping[Measure, Rule] = {
    Measure.EXACT: Rule(STEP == 0, _EVERY, OF_ALL),
    Measure.OVER: Rule(STEP > 0, _EVERY, OF_ALL),
    Measure.UNDER: Rule(STEP < 0, _EVERY, OF_ALL),
    Measure.WITHIN_ONE: Rule(np.abs(STEP) <= 1, _EVERY, OF_ALL),
    Measure.OVER_POSSIBLE: Rule(STEP > 0, _GOLD < _TOP, BELOW_D),
    Measure.UNDER_POSSIBLE: Rule(STEP < 0, _GOLD > 0, ABOVE_A),
    Measure.MISSED_EMERGENCIES: Rule((STEP < 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
    Measure.SEVERE_OVER: Rule(STEP >= _SEVERE, _EVERY, OF_ALL),
    Measure.SEVERE_UNDER: Rule(STEP <= -_SEVERE, _EVERY, OF_ALL),
    Measure.SENT_HOME: Rule((_PREDICTED == 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
}


def coded(table: pd.DataFrame, names: Sequence[str]) -> tuple[Numbers, pd.DataFrame]:
    """The number of each row's combination of names (none missing), and the combinations that occur by their number.

    Categorical columns keep their order and their categories. Of others, formats come as in `Format`, all else as it
    first comes.

    >>> table = pd.DataFrame({"model": ["b", "a", "b"], "format": ["qa", "qa", "qa"]})
    >>> numbers, keys = coded(table, ["model", "format"])
    >>> numbers.tolist(), keys["model"].tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    columns = []
    for name in names:
        is_coded = isinstance(table[name].dtype, pd.CategoricalDtype)
        known = [word.value for word in Format] if name == "format" else pd.unique(table[name])
        columns.append(pd.Categorical(table[name], categories=None if is_coded else known))
    sizes = [max(len(column.categories), 1) for column in columns]
    number, occurs = occurring(np.ravel_multi_index([column.codes for column in columns], sizes))
    keys = {}
    for name, place, column in zip(names, np.unravel_index(occurs, sizes), columns, strict=True):
        keys[name] = pd.Categorical.from_codes(place.astype(np.int32), dtype=column.dtype)
    return number, pd.DataFrame(keys)


def repeated(keys: pd.DataFrame, times: int) -> pd.DataFrame:
    """Each row so many times, one after the other."""
    return keys.take(np.repeat(np.arange(len(keys)), times)).reset_index(drop=True)


def clear_answers(found: pd.DataFrame) -> tuple[Truths, Floats, Floats]:
    """Which predictions count in a rate (a level, and a clear gold), and gold and prediction of all."""
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    return found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool) & ~np.isnan(predicted), gold, predicted


def confusion(found: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Every model's answers to clear cases by gold, as `cells_of`; `found` is of `predictions.joined`."""
    numbers, names = coded(found, keys)
    counts, gold, predicted = clear_answers(found)
    level, answer = (levels[counts].astype(np.int64) - 1 for levels in (gold, predicted))
    cell = (numbers[counts] * N_LEVELS + level) * N_LEVELS + answer
    cells = np.bincount(cell, minlength=len(names) * N_CELLS).reshape(len(names), N_LEVELS, N_LEVELS)
    return cells_of(names, cells.astype(float))


def cells_of(keys: pd.DataFrame, counts: Floats) -> pd.DataFrame:
    """Matrices (n x 4 x 4) as a table, a row a cell: keys, gold, predicted (1..4), n, n_gold, share, low, high.

    The interval is Wilson's, 95 %; share, low and high are NaN where no case has this gold.
    """
    n = counts.reshape(-1)
    n_gold = np.repeat(counts.sum(axis=2).reshape(-1), N_LEVELS)
    low, high = wilson(n, n_gold)
    kind = np.int64 if np.all(n == np.rint(n)) else np.float64  # estimated cells are no whole numbers
    gold, predicted = (np.tile(levels.ravel() + 1.0, len(keys)) for levels in (_GOLD, _PREDICTED))
    table = repeated(keys, N_CELLS).assign(gold=gold, predicted=predicted, n=n.astype(kind), n_gold=n_gold.astype(kind))
    return table.assign(share=quotient(n, n_gold), low=low, high=high)


def of_matrices(published: pd.DataFrame) -> pd.DataFrame:
    """`TriageData.published` as the cells that `confusion` gives, without golds between two levels."""
    clear = published.loc[published["gold"].isin(range(1, N_LEVELS + 1))]
    columns = [letter.value for letter in LETTERS]
    long = clear.melt([*KEYS, "gold"], columns, "predicted", "n")
    letters = {name: place for place, name in enumerate(columns, start=1)}
    return cells_of(*matrices(long.assign(predicted=long["predicted"].map(letters).astype(float))))


def matrices(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> tuple[pd.DataFrame, Floats]:
    """Cells (missing: no case) as keys and matrices x gold x prediction. Raises ValueError: one comes twice."""
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


def rates(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """How often the answers are right, too high, too low, and dangerously so: a row a model, format and `Measure`.

    Gives k (cases that count) of n, value = k / n, low, high (Wilson 95 %), denominator (in words), reason (why no
    value).
    """
    names, counts = matrices(cells, keys=keys)
    hits, bases = (np.stack([getattr(rule, name) for rule in RULES.values()]) for name in ("hits", "base"))
    k, n = (np.einsum("gab,mab->gm", counts, masks.astype(float)) for masks in (hits, bases))
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
    """Shares k / n (groups x measures) as `rates`; `bounds`: else Wilson's; a group of no case: the first's reason."""
    low, high = wilson(k, n) if bounds is None else bounds
    kind = np.int64 if np.all(k == np.rint(k)) and np.all(n == np.rint(n)) else np.float64
    words = [str(measure) for measure in measures]
    of = [(base, number, line) for line in n for base, number in zip(bases, line, strict=True)]
    reason = ["" if number > 0 else (base if line.any() else bases[0]).none for base, number, line in of]
    k, n, low, high = (values.ravel() for values in (k, n, low, high))
    measure = pd.Categorical(words * len(names), categories=words)
    table = repeated(names, len(measures)).assign(measure=measure, k=k.astype(kind), n=n.astype(kind))
    denominator = [denominator_words(base, number) for base, number, _ in of]
    return table.assign(value=quotient(k, n), low=low, high=high, denominator=denominator, reason=reason)


def denominator_words(base: Base, n: float) -> str:
    """The cases that a share is of.

    >>> denominator_words(OF_EMERGENCIES, 262), denominator_words(OF_ALL, 1)
    ('of 262 emergencies', 'of the one case')
    """
    return base.one if n == 1 else base.many.format(f"{n:,.0f}")


ONE_LEVEL = "gold and predictions are one and the same level throughout"
MIN_CASES = 5
"""With fewer cases there is no interval: their spread says too little of the spread of all."""
TOO_FEW = f"fewer than {MIN_CASES} cases"
RESTS_ON_ONE = "not defined without one of the cases"
NO_SPREAD = "every case gives the same value"
NO_ERROR = 1e-9
"""A standard error below this is rounding."""


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """Coefficients of a whole matrix (Cohen 1960, 1968; macro F1), with jackknife intervals that leave out one case.

    With N = the matrix, n its sum, r and c its margins, O = N/n, E = r c / n^2, and d = p - g:

        macro F1      mean over the levels that occur of 2 N_kk / (r_k + c_k)
        kappa         1 - sum w O / sum w E;  w = [g != p] (unweighted), |d| (linear), d^2 (quadratic)
        mean signed   sum N d / n, in levels; above 0: too high

    Cases of one cell are alike, so that leaving out one case is one of at most 16 different matrices, N_k of each:

        se^2 = (n - 1)/n sum_k N_k (theta_(-k) - theta)^2,  interval theta +- t(n - 1) se
        of a kappa on Fisher's scale: tanh(atanh(kappa) +- t(n - 1) se / (1 - kappa^2))

    On cases drawn from published matrices, 95 % intervals cover .94 to .96 from 100 cases on and .91 to .97 with 30;
    that of the quadratic kappa .92 and .89 (without Fisher's scale .90 and .82). `cells`: Whole numbers of cases. Gives
    a row a model and format: n, n_levels (those that occur), and each of `SCORES` with `_low`, `_high` and `_reason`
    (why value or interval is NaN).
    """
    names, counts = matrices(cells)
    without = counts[:, None] - np.eye(N_CELLS).reshape(N_CELLS, N_LEVELS, N_LEVELS)
    return _scored(names, counts, without, counts.reshape(-1, N_CELLS))


def clustered_summary(names: pd.DataFrame, numbers: Numbers, cases: Numbers, items: Floats) -> pd.DataFrame:
    """The same where a case enters more than once: it is left out with all its items; n counts items.

        se^2 = (G - 1)/G sum_g (theta_(-g) - theta)^2 over the G cases,  interval theta +- t(G - 1) se

    `numbers` and `cases`: By item, its row of `names` and its case. `items`: What each adds to the matrix, 4 x 4.
    """
    if not len(names):
        return _scored(names, np.zeros((0, 4, 4)), np.zeros((0, 0, 4, 4)), np.zeros((0, 0)))
    tables = []
    for number in range(len(names)):
        mine = numbers == number
        codes = np.unique(cases[mine], return_inverse=True)[1]
        of_cases = np.zeros((int(codes.max(initial=-1)) + 1, N_LEVELS, N_LEVELS))
        np.add.at(of_cases, codes, items[mine])
        whole = of_cases.sum(axis=0, keepdims=True)
        without = np.round(whole - of_cases, 9)  # a sum of thirds less itself is rounding, and no level that occurs
        tables.append(_scored(names.iloc[[number]], whole, without[None], np.ones((1, len(of_cases)))))
    return pd.concat(tables, ignore_index=True)


def _scored(names: pd.DataFrame, counts: Floats, without: Floats, times: Floats) -> pd.DataFrame:
    """`without`: Matrices x what can be left out x 4 x 4. `times`: How often there is such a one."""
    n = times.sum(axis=1)
    whole = np.rint(counts.sum(axis=(1, 2))).astype(np.int64)
    n_levels = (counts.sum(axis=-1) + counts.sum(axis=-2) > 0).sum(axis=-1)
    found = names.assign(n=whole, n_levels=n_levels)
    for name in SCORES:
        of, (least, most) = _FORMULAS[name]
        value = of(counts)
        away = of(without) - value[:, None]
        squares = np.where(times > 0, times * away**2, 0).sum(axis=1)
        se = np.sqrt(quotient(np.where(n > 1, squares * (n - 1), np.nan), n))
        why = [n == 0, np.isnan(value), n < MIN_CASES, np.isnan(se), se < NO_ERROR]
        reason = np.select(why, [NO_CASE, ONE_LEVEL, TOO_FEW, RESTS_ON_ONE, NO_SPREAD], "").astype(object)
        half = stdtrit(np.maximum(n - 1, 1), (1 + LEVEL) / 2) * np.where(reason == "", se, np.nan)
        low, high = value - half, value + half
        if name in KAPPAS:
            inside = np.abs(value) < 1
            slope = np.where(inside, 1 - value**2, np.nan)
            centre = np.arctanh(np.where(inside, value, np.nan))
            low = np.where(inside, np.tanh(centre - half / slope), low)
            high = np.where(inside, np.tanh(centre + half / slope), high)
        found[name] = value
        found[f"{name}_low"] = np.maximum(low, least)
        found[f"{name}_high"] = np.minimum(high, most)
        found[f"{name}_reason"] = reason
    return found


def _macro_f1(counts: Floats) -> Floats:
    margins = counts.sum(axis=-1) + counts.sum(axis=-2)
    f1 = quotient(2 * np.diagonal(counts, axis1=-2, axis2=-1), margins)
    return quotient(np.nansum(f1, axis=-1), (margins > 0).sum(axis=-1))


def _kappa(weights: Floats) -> Callable[[Floats], Floats]:
    def of(counts: Floats) -> Floats:
        seen = (counts * weights).sum(axis=(-1, -2)) * counts.sum(axis=(-1, -2))
        by_chance = np.einsum("...a,ab,...b->...", counts.sum(axis=-1), weights, counts.sum(axis=-2))
        return 1 - quotient(seen, by_chance)

    return of


def _mean_signed(counts: Floats) -> Floats:
    return quotient((counts * STEP).sum(axis=(-1, -2)), counts.sum(axis=(-1, -2)))


KAPPAS = {"kappa": (STEP != 0).astype(float), "kappa_linear": np.abs(STEP), "kappa_quadratic": STEP**2}
_FORMULAS: Mapping[str, tuple[Callable[[Floats], Floats], tuple[float, float]]] = {
    "macro_f1": (_macro_f1, (0, 1)),
    **{name: (_kappa(weights), (-1, 1)) for name, weights in KAPPAS.items()},
    "mean_signed": (_mean_signed, (1.0 - N_LEVELS, N_LEVELS - 1.0)),
}
SCORES = tuple(_FORMULAS)
"""Columns of `summary` beside n; each with `_low`, `_high` and `_reason`."""


BOUNDARY_MEASURES = ("constituent", "upper_share", "outside_high", "outside_low")
"""Measures of `boundary`: one of the two letters; of those the more severe; above both; below both."""
NO_BOUNDARY = "no boundary case has a prediction"
_OF_BOUNDARY = Base("of the one boundary case", "of all {} boundary cases", NO_BOUNDARY)
_INSIDE = "answered with one of"
_OF_INSIDE = Base(
    f"of the one {_INSIDE} its letters", f"of {{}} {_INSIDE} their letters", "no answer is one of the letters"
)
_FEW_ANSWERS = 2


def boundary(found: pd.DataFrame) -> pd.DataFrame:
    """How models answer cases whose gold lies between two letters, either of which is right, as `rates`."""
    numbers, names = coded(found, KEYS)
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    counts = found["kind"].eq(Kind.BOUNDARY).to_numpy(dtype=bool) & ~np.isnan(predicted)
    low, high = np.floor(gold), np.ceil(gold)
    inside = counts & (predicted >= low) & (predicted <= high)
    hits = (inside, inside & (predicted == high), counts & (predicted > high), counts & (predicted < low))
    k, n = (
        np.stack([np.bincount(numbers[mask], minlength=len(names)) for mask in masks], axis=1).astype(float)
        for masks in (hits, (counts, inside, counts, counts))
    )
    return as_rates(names, BOUNDARY_MEASURES, k, n, [_OF_BOUNDARY, _OF_INSIDE, _OF_BOUNDARY, _OF_BOUNDARY])


def ambiguous(found: pd.DataFrame) -> pd.DataFrame:
    """What models answer where physicians do not agree: there is no right or wrong, only which level and how surely.

    Gives four rows a model and format: predicted (1..4), n of n_cases so answered, share with Wilson's interval,
    n_several (cases with two valid samples or more), n_sure (of them, those whose samples all say one level), sure
    (their share).
    """
    numbers, names = coded(found, KEYS)
    predicted = found["predicted"].to_numpy(dtype=float)
    kept = found["kind"].eq(Kind.AMBIGUOUS).to_numpy(dtype=bool) & ~np.isnan(predicted)
    of, level = numbers[kept], predicted[kept].astype(np.int64) - 1
    n = np.bincount(of * N_LEVELS + level, minlength=len(names) * N_LEVELS)
    several = found["n_valid"].to_numpy()[kept] >= _FEW_ANSWERS
    sure = several & (found["share"].to_numpy()[kept] == 1)
    sizes = [np.bincount(of[mask], minlength=len(names)) for mask in (slice(None), several, sure)]
    n_cases, n_several, n_sure = (np.repeat(size, N_LEVELS) for size in sizes)
    low, high = wilson(n, n_cases)
    levels, share = np.tile(np.arange(1.0, N_LEVELS + 1), len(names)), quotient(n, n_cases)
    table = repeated(names, N_LEVELS).assign(predicted=levels, n=n, n_cases=n_cases, share=share, low=low, high=high)
    return table.assign(n_several=n_several, n_sure=n_sure, sure=quotient(n_sure, n_several))


def accounted(triage_data: TriageData, found: pd.DataFrame) -> pd.DataFrame:
    """What each model's numbers are of, and what they leave out: of n_cases with a response, so many of each kind.

    Of each kind `_predicted` (a level was found), `_unread` (the judge has not looked) and `_no_level` (looked, found
    none). n_elsewhere: Responses of the model in neither format, which are in none of the other numbers.
    """
    numbers, names = coded(found, KEYS)
    kinds, states = [kind.value for kind in Kind], ("predicted", "unread", "no_level")
    kind = pd.Categorical(found["kind"], categories=kinds).codes.astype(np.int64)
    state = np.select([found["n_valid"].to_numpy() > 0, found["n_invalid"].to_numpy() > 0], [0, 2], 1)
    shape = (len(names), len(kinds), len(states))
    cell = (numbers * len(kinds) + kind) * len(states) + state
    counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
    n_study, n_cases = len(triage_data.cases), counts.sum(axis=(1, 2))
    elsewhere = triage_data.elsewhere["model"].astype(str).value_counts()
    columns: dict[str, Any] = {"n_study": n_study, "n_cases": n_cases, "n_no_response": n_study - n_cases}
    columns |= {f"n_{word}": counts[:, place].sum(axis=1) for place, word in enumerate(kinds)}
    columns |= {
        f"{word}_{how}": counts[:, place, step] for place, word in enumerate(kinds) for step, how in enumerate(states)
    }
    columns |= {f"n_{how}": counts[:, :, step].sum(axis=1) for step, how in enumerate(states)}
    for name in ("samples", "valid", "unread", "invalid"):
        n = np.bincount(numbers, found[f"n_{name}"].to_numpy(dtype=float), len(names)).astype(np.int64)
        columns[name if name == "samples" else f"samples_{name}"] = n
    columns["n_elsewhere"] = names["model"].astype(str).map(elsewhere).fillna(0).astype(np.int64)
    return names.assign(**columns)


FEW = 10
NO_PANEL, NO_CLEAR_LEVEL = "no panel", "no clear level"
_FIRST_STRENGTHS = {"unanimous": 0, "direct": 2, READ_HERE: 3, NO_PANEL: 4}


def by_group(triage_data: TriageData, found: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rates for each group of cases by a column of `TriageData.cases`: source, gold, strength or language.

    With n_group (cases of the group with a prediction) and is_small (fewer than 10 in the denominator); those that
    occur.
    """
    values, keys = triage_data.cases[column], [*KEYS, "group"]
    words = values.astype(object)
    if column == "gold":
        words, order = values.map(LABELS).fillna(NO_CLEAR_LEVEL), [*LABELS.values(), NO_CLEAR_LEVEL]
    elif column == "strength":
        words = words.where(words.ne(""), NO_PANEL)
        splits = {word: [-int(k) for k in word.split("-") if k.isdigit()] for word in words.unique()}
        order = sorted(splits, key=lambda word: (_FIRST_STRENGTHS.get(word, 1), splits[word]))
    else:
        words = words.where(words.notna(), UNKNOWN)
        order = sorted(words.unique(), key=lambda word: (word == UNKNOWN, word))
    group = pd.Categorical(words, categories=order).take(found["row"].to_numpy(dtype=np.int64))
    mine = found[[*KEYS, "gold", "kind", "predicted"]].assign(group=group)
    table = rates(confusion(mine.loc[mine["kind"].eq(Kind.CLEAR)], keys=keys), keys=keys)
    numbers, names = coded(mine, keys)
    sizes = names.assign(n_group=np.bincount(numbers, mine["predicted"].notna(), len(names)).astype(np.int64))
    table = table.merge(sizes, on=keys, how="left", validate="many_to_one")
    return table.assign(is_small=table["n"].lt(FEW)).sort_values(keys, kind="stable", ignore_index=True)

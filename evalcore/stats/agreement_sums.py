"""Sums over items from which every coefficient of agreement follows, and the jackknife by subtraction: of examples, of raters, and of both."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from evalcore.stats.arrays import Floats, Numbers, Truths

NOTHING = 1e-9  # what subtraction leaves of a sum that is 0; true ones are at least 1 / (labels of an item squared)


class Coefficient(StrEnum):
    """How much raters agree; all but the first leave out what chance would give. 1: they always agree."""

    AGREEMENT = "agreement"
    """The share of pairs of labels that agree, averaged over items."""
    KAPPA = "kappa"
    """Cohen 1960; of more than two raters Conger 1980, each rater weighted by the number of labels. Chance: each rater's own shares of the
    categories."""
    KAPPA_LINEAR = "kappa_linear"
    """Cohen 1968: half way is half right."""
    KAPPA_QUADRATIC = "kappa_quadratic"
    """Cohen 1968: far errors weigh as the square of their distance."""
    FLEISS_KAPPA = "fleiss_kappa"
    """Fleiss 1971. Chance: the shares of all raters together; of two raters it is Scott's pi."""
    ALPHA_NOMINAL = "alpha_nominal"
    """Krippendorff 2011."""
    ALPHA_ORDINAL = "alpha_ordinal"
    """Krippendorff 2011: as far apart as there are labels between two categories."""
    ALPHA_INTERVAL = "alpha_interval"
    """Krippendorff 2011: the categories are equally spaced."""
    AC1 = "ac1"
    """Gwet 2008: holds where nearly all labels are of one category, and kappa does not."""
    AC2_LINEAR = "ac2_linear"
    AC2_QUADRATIC = "ac2_quadratic"


@dataclass(frozen=True)
class Labels:
    """Labels as numbers from 0, a row a label: unit (the item), rater (once a unit), value (the category, in order); group and example are of each unit."""

    unit: Numbers
    rater: Numbers
    value: Numbers
    group: Numbers
    example: Numbers
    n_groups: int
    n_categories: int


@dataclass(frozen=True)
class Sums:
    """Sums over the items of each row; rows are groups, or groups without one of their examples. K categories.

        pairs         (rows, K, K)   sum over items of n_k (n_l - [k=l]) / (m (m-1)), where m raters gave n_k times category k
        coincidences  (rows, K, K)   sum of n_k (n_l - [k=l]) / (m-1)
        shares        (rows, K)      sum of n_k / m, over items with one label too
        by_chance     (rows, K, K)   pairs of labels that two different raters have given on any two items: C C' - sum_r c_r c_r', where
                                     rater r gave c_rk times category k on items with two labels or more, and C = sum_r c_r

    All but the last add up over items; the last changes only by the raters of what is left out.
    """

    pairs: Floats
    coincidences: Floats
    shares: Floats
    by_chance: Floats

    @property
    def n_items(self) -> Floats:
        """Items with two labels or more."""
        return np.asarray(self.pairs.sum(axis=(1, 2)))


@dataclass(frozen=True)
class Without:
    """The sums of a group without each of its parts: one row a group and part, and the group of each row."""

    sums: Sums
    group: Numbers


@dataclass(frozen=True)
class Jackknife:
    """The sums of each group whole and without each of its examples; n_examples with an item that has two labels or more, n_labels on such items."""

    whole: Sums
    examples: Without
    n_examples: Numbers
    n_labels: Numbers


def jackknife(labels: Labels) -> Jackknife:
    """The sums of each group and, by subtraction, without each example."""
    n_groups = labels.n_groups
    counts, n_of_unit = _counts(labels)
    cells, cell_of_unit = _numbered(labels.group, labels.example)
    group = np.zeros(len(cells), dtype=np.int64)
    group[cell_of_unit] = labels.group
    pairs, coincidences, shares = (_summed(part, cell_of_unit, len(cells)) for part in _of_units(counts))
    all_pairs, all_coincidences, all_shares = (_summed(part, group, n_groups) for part in (pairs, coincidences, shares))
    is_pairable = n_of_unit > 1
    counted = is_pairable[labels.unit]
    by_rater = _by_rater(labels, counted)
    lost = labels.rater[counted], labels.value[counted]
    chance = _chance_without(cell_of_unit[labels.unit[counted]], *lost, group, by_rater)
    without = Sums(all_pairs[group] - pairs, all_coincidences[group] - coincidences, all_shares[group] - shares, chance)
    has_pairs = pairs.sum(axis=(1, 2)) > 0
    return Jackknife(
        Sums(all_pairs, all_coincidences, all_shares, _squared(by_rater.sum(axis=1)) - _own(by_rater)),
        Without(_clean(without), group),
        np.bincount(group, weights=has_pairs, minlength=n_groups).astype(np.int64),
        np.bincount(labels.group, weights=np.where(is_pairable, n_of_unit, 0), minlength=n_groups).astype(np.int64),
    )


def without_raters(labels: Labels, whole: Sums, *, by_example: bool) -> Without:
    """The sums of each group (`jackknife`) without the labels of each of its raters; or without those of each rater on each example."""
    counts, n_of_unit = _counts(labels)
    group_of_label = labels.group[labels.unit]
    _, part = _numbered(group_of_label, labels.rater)
    if by_example:
        _, part = _numbered(part, labels.example[labels.unit])
    group = np.zeros(int(part.max(initial=-1)) + 1, dtype=np.int64)
    group[part] = group_of_label
    left = counts[labels.unit]
    left[np.arange(len(left)), labels.value] -= 1  # no rater has two labels on a unit, so each label goes on its own
    parts = zip(_of_units(left), _of_units(counts), strict=True)
    pairs, coincidences, shares = (_summed(after - before[labels.unit], part, len(group)) for after, before in parts)
    # what a unit of two loses is both labels, since the other one has nothing left to be compared with
    counted = n_of_unit[labels.unit] > 1
    of_two = np.flatnonzero(n_of_unit[labels.unit] == 2)  # noqa: PLR2004 - two labels
    couples = of_two[np.argsort(labels.unit[of_two], kind="stable")].reshape(-1, 2)
    lost = np.concatenate([np.flatnonzero(counted), couples[:, 0], couples[:, 1]])
    by = np.concatenate([part[counted], part[couples[:, 1]], part[couples[:, 0]]])
    chance = _chance_without(by, labels.rater[lost], labels.value[lost], group, _by_rater(labels, counted))
    before = whole.pairs[group], whole.coincidences[group], whole.shares[group]
    sums = Sums(before[0] + pairs, before[1] + coincidences, before[2] + shares, chance)
    return Without(_clean(sums), group)


def _counts(labels: Labels) -> tuple[Floats, Floats]:
    size = len(labels.group) * labels.n_categories
    flat = np.bincount(labels.unit * labels.n_categories + labels.value, minlength=size)
    counts = flat.reshape(len(labels.group), labels.n_categories).astype(float)
    return counts, counts.sum(axis=1)


def _of_units(counts: Floats) -> tuple[Floats, Floats, Floats]:
    n = counts.sum(axis=1)[:, None, None]
    both = counts[:, :, None] * (counts[:, None, :] - np.eye(counts.shape[1]))
    coincidences = both / np.maximum(n - 1, 1)
    return coincidences / np.maximum(n, 1), coincidences, counts / np.maximum(n[:, :, 0], 1)


def _by_rater(labels: Labels, counted: Truths) -> Floats:
    n_raters = int(labels.rater.max(initial=0)) + 1
    shape = (labels.n_groups, n_raters, labels.n_categories)
    place = (labels.group[labels.unit] * n_raters + labels.rater) * labels.n_categories + labels.value
    return np.asarray(np.bincount(place[counted], minlength=math.prod(shape)).reshape(shape), dtype=np.float64)


def _own(by_rater: Floats) -> Floats:
    return np.asarray(np.einsum("grk,grl->gkl", by_rater, by_rater))


def _chance_without(part: Numbers, rater: Numbers, value: Numbers, group: Numbers, by_rater: Floats) -> Floats:
    """`Sums.by_chance` without each part: one row a label that goes with a part, and the group of each part."""
    n_categories = by_rater.shape[2]
    keys, key = _numbered(part, rater)
    width = int(rater.max(initial=0)) + 1
    flat = np.bincount(key * n_categories + value, minlength=len(keys) * n_categories)
    gone = flat.reshape(len(keys), n_categories).astype(float)
    part_of_key, rater_of_key = np.divmod(keys, width)
    before = by_rater[group[part_of_key], rater_of_key]
    changed = _squared(before - gone) - _squared(before)
    own = _own(by_rater)[group] + _summed(changed, part_of_key, len(group))
    return _squared(by_rater.sum(axis=1)[group] - _summed(gone, part_of_key, len(group))) - own


def _numbered(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    width = int(second.max(initial=0)) + 1
    codes, pairs = pd.factorize(first * width + second)
    return np.asarray(pairs, dtype=np.int64), np.asarray(codes, dtype=np.int64)


def _squared(rows: Floats) -> Floats:
    return np.asarray(rows[:, :, None] * rows[:, None, :])


def _summed(rows: Floats, group: Numbers, n_groups: int) -> Floats:
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    columns = [np.bincount(group, weights=column, minlength=n_groups).astype(float) for column in flat.T]
    return np.stack(columns, axis=1).reshape(n_groups, *rows.shape[1:])


def _clean(sums: Sums) -> Sums:
    """Exactly 0 where rounding left a trace."""
    return Sums(*(np.where(np.abs(part) < NOTHING, 0, part) for part in vars(sums).values()))


def values(coefficient: Coefficient, sums: Sums) -> Floats:
    """1 - (disagreement seen) / (disagreement by chance) of each row; NaN without an item with two labels, or where chance alone would always agree."""
    with np.errstate(divide="ignore", invalid="ignore"):
        seen, by_chance = _disagreement(coefficient, sums)
        coefficients = 1 - seen / by_chance
    return np.where((by_chance > NOTHING) & (sums.n_items > 0), coefficients, np.nan)


def distances(n_categories: int, power: int) -> Floats:
    """Disagreement between categories in [0, 1]: 0 or 1 by power 0, else the power of how many steps they are apart, of all steps."""
    steps = np.abs(np.subtract.outer(np.arange(n_categories), np.arange(n_categories)))
    return (steps > 0).astype(float) if power == 0 else (steps / (n_categories - 1)) ** power


# Powers of the distances.
_KAPPAS = {Coefficient.KAPPA: 0, Coefficient.KAPPA_LINEAR: 1, Coefficient.KAPPA_QUADRATIC: 2}
_ALPHAS = {Coefficient.ALPHA_NOMINAL: 0, Coefficient.ALPHA_ORDINAL: None, Coefficient.ALPHA_INTERVAL: 2}
_GWETS = {Coefficient.AC1: 0, Coefficient.AC2_LINEAR: 1, Coefficient.AC2_QUADRATIC: 2}


def _disagreement(coefficient: Coefficient, sums: Sums) -> tuple[Floats, Floats]:
    n_categories = sums.pairs.shape[-1]
    if coefficient in _KAPPAS:
        distance = distances(n_categories, _KAPPAS[coefficient])
        return _weighted(sums.pairs, distance), _weighted(sums.by_chance, distance)
    if coefficient in _ALPHAS:
        used, power = sums.coincidences.sum(axis=2), _ALPHAS[coefficient]
        by_chance = _squared(used)
        by_chance[:, np.arange(n_categories), np.arange(n_categories)] -= used
        if power is None:
            # the square of the labels between two categories, half of each of the two counted, as a share of all: (rows, K, K)
            middle = (used.cumsum(axis=1) - used / 2) / used.sum(axis=1, keepdims=True)
            distance = np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)
        else:
            distance = distances(n_categories, power)
        return _weighted(sums.coincidences, distance), _weighted(by_chance, distance)
    distance = distances(n_categories, _GWETS.get(coefficient, 0))
    seen = _weighted(sums.pairs, distance)
    if coefficient is Coefficient.FLEISS_KAPPA:
        return seen, _weighted(_squared(sums.pairs.sum(axis=2)), distance)
    if coefficient is Coefficient.AGREEMENT:
        return seen, np.ones_like(seen)
    # Gwet: T / (K (K-1)) sum p_k (1 - p_k), with T the sum of all K x K agreements, p_k the mean share of category k over all items
    share = sums.shares / sums.shares.sum(axis=1, keepdims=True)
    total = (1 - distance).sum() / (n_categories * (n_categories - 1))
    return seen, np.asarray(1 - total * (share * (1 - share)).sum(axis=1))


def _weighted(matrix: Floats, distance: Floats) -> Floats:
    return np.asarray((matrix * distance).sum(axis=(1, 2)) / matrix.sum(axis=(1, 2)))

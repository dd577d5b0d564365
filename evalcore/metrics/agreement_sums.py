"""Sums over items from which every coefficient of agreement follows, and the jackknife that leaves out one example by subtraction."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
    """Labels as numbers, one row a label.

    Attributes:
        unit: 0, 1, ...: the item.
        rater: 0, 1, ...; no rater twice on a unit.
        value: The category, 0..n_categories-1 in their order.
        group, example: Of each unit (not label): 0, 1, ...
        n_groups, n_categories: How many there are; at least 1 and 2.
    """

    unit: Codes
    rater: Codes
    value: Codes
    group: Codes
    example: Codes
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

    All but the last add up over items; the last changes only by the raters of the example that is left out.
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
class Jackknife:
    """The sums of each group, and of each group without each of its examples.

    Attributes:
        whole: One row a group.
        without: One row a group and example that has a label in it.
        group: Of each row of `without`.
        n_examples: Of each group, those with an item that has two labels or more.
        n_labels: Of each group, on such items.
    """

    whole: Sums
    without: Sums
    group: Codes
    n_examples: Codes
    n_labels: Codes


def jackknife(labels: Labels) -> Jackknife:
    """The sums of each group and, by subtraction, without each example."""
    n_units, n_categories, n_groups = len(labels.group), labels.n_categories, labels.n_groups
    cells, cell_of_unit = _numbered(labels.group, labels.example)
    group = np.zeros(len(cells), dtype=np.int64)
    group[cell_of_unit] = labels.group
    flat = np.bincount(labels.unit * n_categories + labels.value, minlength=n_units * n_categories)
    counts = flat.reshape(n_units, n_categories).astype(float)
    n_of_unit = counts.sum(axis=1)
    together = np.maximum(n_of_unit - 1, 1)
    is_pairable = n_of_unit > 1

    def by_cell(weights: Floats) -> Floats:
        return np.bincount(cell_of_unit, weights=weights, minlength=len(cells)).astype(float)

    coincidences, pairs = np.zeros((2, len(cells), n_categories, n_categories))
    for k in range(n_categories):
        for other in range(k, n_categories):
            both = counts[:, k] * (counts[:, other] - (k == other)) / together
            coincidences[:, k, other] = coincidences[:, other, k] = by_cell(both)
            pairs[:, k, other] = pairs[:, other, k] = by_cell(both / np.maximum(n_of_unit, 1))
    shares = np.stack([by_cell(column / np.maximum(n_of_unit, 1)) for column in counts.T], axis=1)
    by_chance, chance_without = _by_chance(labels, is_pairable[labels.unit], cell_of_unit, group)
    parts = {"pairs": pairs, "coincidences": coincidences, "shares": shares}
    whole = {name: _summed(part, group, n_groups) for name, part in parts.items()}
    has_pairs = pairs.sum(axis=(1, 2)) > 0
    return Jackknife(
        Sums(**whole, by_chance=by_chance),
        _clean(
            Sums(**{name: whole[name][group] - part for name, part in parts.items()}, by_chance=chance_without),
        ),
        group,
        np.bincount(group, weights=has_pairs, minlength=n_groups).astype(np.int64),
        np.bincount(labels.group, weights=np.where(is_pairable, n_of_unit, 0), minlength=n_groups).astype(np.int64),
    )


def _by_chance(
    labels: Labels, counted: npt.NDArray[np.bool_], cell_of_unit: Codes, group: Codes
) -> tuple[Floats, Floats]:
    """`Sums.by_chance` of the groups and of the groups without each example."""
    n_categories, n_cells = labels.n_categories, len(group)
    rater, value, cell = labels.rater[counted], labels.value[counted], cell_of_unit[labels.unit[counted]]
    parts, part = _numbered(cell, rater)
    of_part = np.bincount(part * n_categories + value, minlength=len(parts) * n_categories)
    given = of_part.reshape(len(parts), n_categories).astype(float)  # by example and rater
    cell_of_part = np.zeros(len(parts), dtype=np.int64)
    cell_of_part[part] = cell
    rater_of_part = np.zeros(len(parts), dtype=np.int64)
    rater_of_part[part] = rater
    whole, of_rater = _numbered(group[cell_of_part], rater_of_part)
    by_rater = _summed(given, of_rater, len(whole))
    group_of_rater = np.zeros(len(whole), dtype=np.int64)
    group_of_rater[of_rater] = group[cell_of_part]
    own = _summed(_squared(by_rater), group_of_rater, labels.n_groups)
    every = _summed(by_rater, group_of_rater, labels.n_groups)
    changed = _squared(by_rater[of_rater] - given) - _squared(by_rater)[of_rater]
    own_without = own[group] + _summed(changed, cell_of_part, n_cells)
    every_without = every[group] - _summed(given, cell_of_part, n_cells)
    return _squared(every) - own, _squared(every_without) - own_without


def _numbered(first: Codes, second: Codes) -> tuple[Codes, Codes]:
    """The pairs that occur, and of each row the number of its pair."""
    width = int(second.max(initial=0)) + 1
    codes, found = pd.factorize(first * width + second)
    return np.asarray(found, dtype=np.int64), np.asarray(codes, dtype=np.int64)


def _squared(rows: Floats) -> Floats:
    """Each row times itself: (rows, K) to (rows, K, K)."""
    return np.asarray(rows[:, :, None] * rows[:, None, :])


def _summed(rows: Floats, group: Codes, n_groups: int) -> Floats:
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    columns = [np.bincount(group, weights=column, minlength=n_groups).astype(float) for column in flat.T]
    return np.stack(columns, axis=1).reshape(n_groups, *rows.shape[1:])


def _clean(sums: Sums) -> Sums:
    """Exactly 0 where rounding left a trace."""
    parts = {field.name: getattr(sums, field.name) for field in fields(sums)}
    return Sums(**{name: np.where(np.abs(part) < NOTHING, 0, part) for name, part in parts.items()})


def values(coefficient: Coefficient, sums: Sums) -> Floats:
    """The coefficient of each row: 1 - (disagreement seen) / (disagreement by chance).

    NaN without an item with two labels, and where chance alone would always agree: nothing but one category was used.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        seen, by_chance = _DISAGREEMENT[coefficient](sums)
        found = 1 - seen / by_chance
    return np.where((by_chance > NOTHING) & (sums.n_items > 0), found, np.nan)


def distances(n_categories: int, power: int) -> Floats:
    """Disagreement between categories in [0, 1]: 0 or 1 by power 0, else the power of how many steps they are apart, of all steps."""
    steps = np.abs(np.subtract.outer(np.arange(n_categories), np.arange(n_categories)))
    return (steps > 0).astype(float) if power == 0 else (steps / (n_categories - 1)) ** power


def _weighted(matrix: Floats, distance: Floats) -> Floats:
    """The mean distance over the pairs that a matrix counts."""
    return np.asarray((matrix * distance).sum(axis=(1, 2)) / matrix.sum(axis=(1, 2)))


Disagreement = Callable[[Sums], tuple[Floats, Floats]]


def _raw(sums: Sums) -> tuple[Floats, Floats]:
    seen = _weighted(sums.pairs, distances(sums.pairs.shape[-1], 0))
    return seen, np.ones_like(seen)


def kappa(distance: Floats | None = None, *, power: int = 0) -> Disagreement:
    """Cohen's kappa by these distances between categories (K, K), or by a power of their steps."""

    def disagreement(sums: Sums) -> tuple[Floats, Floats]:
        by = distances(sums.pairs.shape[-1], power) if distance is None else distance
        return _weighted(sums.pairs, by), _weighted(sums.by_chance, by)

    return disagreement


def _fleiss(sums: Sums) -> tuple[Floats, Floats]:
    distance = distances(sums.pairs.shape[-1], 0)
    return _weighted(sums.pairs, distance), _weighted(_squared(sums.pairs.sum(axis=2)), distance)


def _alpha(distance_of: Callable[[Floats], Floats]) -> Disagreement:
    def disagreement(sums: Sums) -> tuple[Floats, Floats]:
        used = sums.coincidences.sum(axis=2)
        by_chance = _squared(used)
        diagonal = np.arange(used.shape[1])
        by_chance[:, diagonal, diagonal] -= used
        distance = distance_of(used)
        return _weighted(sums.coincidences, distance), _weighted(by_chance, distance)

    return disagreement


def _ordinal(used: Floats) -> Floats:
    """The square of the labels between two categories, half of each of the two counted, as a share of all labels: (rows, K, K)."""
    middle = (used.cumsum(axis=1) - used / 2) / used.sum(axis=1, keepdims=True)
    return np.asarray((middle[:, :, None] - middle[:, None, :]) ** 2)


def _gwet(power: int) -> Disagreement:
    """Chance: T / (K (K-1)) sum p_k (1 - p_k), with T the sum of all K x K agreements, p_k the mean share of category k over all items."""

    def disagreement(sums: Sums) -> tuple[Floats, Floats]:
        n_categories = sums.pairs.shape[-1]
        distance = distances(n_categories, power)
        share = sums.shares / sums.shares.sum(axis=1, keepdims=True)
        total = (1 - distance).sum() / (n_categories * (n_categories - 1))
        return _weighted(sums.pairs, distance), np.asarray(1 - total * (share * (1 - share)).sum(axis=1))

    return disagreement


def _steps(power: int) -> Callable[[Floats], Floats]:
    return lambda used: distances(used.shape[1], power)


_DISAGREEMENT: Mapping[Any, Disagreement] = {
    Coefficient.AGREEMENT: _raw,
    Coefficient.KAPPA: kappa(),
    Coefficient.KAPPA_LINEAR: kappa(power=1),
    Coefficient.KAPPA_QUADRATIC: kappa(power=2),
    Coefficient.FLEISS_KAPPA: _fleiss,
    Coefficient.ALPHA_NOMINAL: _alpha(_steps(0)),
    Coefficient.ALPHA_ORDINAL: _alpha(_ordinal),
    Coefficient.ALPHA_INTERVAL: _alpha(_steps(2)),
    Coefficient.AC1: _gwet(0),
    Coefficient.AC2_LINEAR: _gwet(1),
    Coefficient.AC2_QUADRATIC: _gwet(2),
}

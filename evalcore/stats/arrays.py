"""Arrays: their types, a quotient without division by 0, and names as numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
_LONG = 8


def quotient(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Floats:
    """NaN where the denominator is not positive."""
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    return np.asarray(np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0))


def occurring(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Each number's place among those that occur, in order, and these; none below 0. By a table of all numbers where that is not long."""
    n = int(numbers.max(initial=-1)) + 1
    if n > _LONG * len(numbers):
        codes, values = pd.factorize(numbers, sort=True)
        return codes.astype(np.int64), np.asarray(values)
    occurs = np.zeros(n, dtype=bool)
    occurs[numbers] = True
    keys = np.flatnonzero(occurs)
    if len(keys) == n:
        return numbers, keys
    places = np.zeros(n, dtype=np.int64)
    places[keys] = np.arange(len(keys))
    return places[numbers], keys


def runs_of(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Each number's place among those that occur, in order, and the first row of each of these; quickest where they are sorted."""
    changes = numbers[1:] != numbers[:-1]
    if (numbers[1:] >= numbers[:-1]).all():
        firsts = np.concatenate([[0], np.flatnonzero(changes) + 1]) if len(numbers) else np.empty(0, dtype=np.int64)
        return np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(numbers))), firsts
    codes, values = pd.factorize(numbers, sort=True)
    firsts = np.empty(len(values), dtype=np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, firsts


def rows_by_code(codes: Numbers, n: int) -> list[Numbers]:
    """The rows of each of n codes, in their order."""
    order = np.argsort(codes.astype(np.int16 if n <= np.iinfo(np.int16).max else np.int64), kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n))[:-1]) if n else []


def codes_of(column: pd.Series) -> tuple[Numbers, list[Any]]:
    """Each value as a number, and the values in order; -1 where it is missing. Of a categorical column the categories, used or not."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.int64), list(column.cat.categories)
    codes, values = pd.factorize(column, sort=True)
    return np.asarray(codes, dtype=np.int64), list(values)


def sorted_codes(column: pd.Series) -> tuple[Numbers, npt.NDArray[np.object_]]:
    """Each name's place among the names that occur, sorted, and these names; none may be missing."""
    categories = column.astype("category").cat
    codes = categories.codes.to_numpy().astype(np.int64)
    names = np.asarray(categories.categories, dtype=object)
    occurring = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    ordered = occurring[np.argsort(names[occurring].astype(str), kind="stable")]
    place = np.zeros(len(names), dtype=np.int64)
    place[ordered] = np.arange(len(ordered))
    return place[codes], names[ordered]


def cells_of(table: pd.DataFrame, names: Sequence[str]) -> tuple[Numbers, pd.DataFrame]:
    """The number of each row's combination of names (none missing), and the combinations that occur, sorted."""
    coded = [sorted_codes(table[name]) for name in names]
    sizes = [max(1, len(values)) for _, values in coded]
    numbers = np.zeros(len(table), dtype=np.int64)
    for (codes, _), size in zip(coded, sizes, strict=True):
        numbers = numbers * size + codes
    cells, combinations = occurring(numbers)
    places = np.unravel_index(combinations, sizes)
    keys = {name: values[place] for name, (_, values), place in zip(names, coded, places, strict=True)}
    return cells, pd.DataFrame(keys)

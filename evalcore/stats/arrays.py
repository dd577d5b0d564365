"""Arrays: their types, a quotient without division by 0, and names as numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


def quotient(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Floats:
    """NaN where the denominator is not positive."""
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    return np.asarray(np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0))


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
    cells, combinations = pd.factorize(numbers, sort=True)
    places = np.unravel_index(combinations, sizes)
    keys = {name: values[place] for name, (_, values), place in zip(names, coded, places, strict=True)}
    return cells, pd.DataFrame(keys)

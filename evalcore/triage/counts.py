"""Confusion matrices of many models at once as arrays, the tables of cells that they come from, and Wilson's interval in vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.intervals import wilson
from evalcore.study.schema import Format
from evalcore.triage.panels import N_LEVELS

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
        names: One column or more.

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
        predicted: Likewise.
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
        keys: What one matrix is of.

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
        msg = f"cells of {' '.join(str(word) for word in twice)} came twice, expected each cell once"
        raise ValueError(msg)
    counts: Floats = np.bincount(place, cells["n"].to_numpy(dtype=float), len(found) * N_CELLS).astype(float)
    return found, counts.reshape(len(found), N_LEVELS, N_LEVELS)


def cells_of(keys: pd.DataFrame, counts: Floats) -> pd.DataFrame:
    """Matrices as a table of cells.

    Args:
        keys: One row a matrix.
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

"""The items whose confidence is held against what is right, in bins of equally many, and the sums that statistics of them are made of."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.means import cells_of, clustered_means, over

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
CLUSTERS_A_BIN = 5
"""There are never more bins than leave this many clusters to each, on average."""


class Items(NamedTuple):
    """The items that enter, in arrays, sorted by group and confidence."""

    group: Codes
    cluster: Codes
    confidence: Floats
    right: Floats
    weight: Floats
    keys: pd.DataFrame
    """The groups by number, as the columns of `by`."""
    n_left_out: Codes
    """Items of each group that do not enter."""
    refused: list[str]
    """Why a group has no confidence; "" where nothing was refused."""
    places: Codes
    """In which row of the frame each item stands."""


def items_of(frame: pd.DataFrame, by: Sequence[str]) -> Items:
    """The items of a frame that `calibration` describes."""
    groups, keys = cells_of(frame, by)
    confidence, right = (frame[name].to_numpy(dtype=float) for name in ("confidence", "right"))
    weight = frame["weight"].to_numpy(dtype=float) if "weight" in frame else np.ones(len(frame))
    enters = ~(np.isnan(confidence) | np.isnan(right) | np.isnan(weight))
    refused = [""] * len(keys)
    if "refused" in frame and not enters.all():
        words = frame["refused"].astype(object).fillna("").to_numpy()
        said = pd.Series(words[~enters]).groupby(groups[~enters]).max()
        refused = [str(said.get(number, "")) for number in range(len(keys))]
    left_out = np.bincount(groups[~enters], minlength=len(keys))
    order = np.flatnonzero(enters)
    order = order[np.lexsort((confidence[order], groups[order]))]
    cluster = np.asarray(pd.factorize(frame["cluster"].to_numpy()[order])[0], dtype=np.int64)
    return Items(groups[order], cluster, confidence[order], right[order], weight[order], keys, left_out, refused, order)


def bins_of(items: Items, n_bins: int) -> tuple[Codes, Codes]:
    """The bin of each item, numbered over all groups, and the group of each bin.

    Items of one confidence stay together, in the bin in which the middle of them falls.
    """
    if not len(items.group):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    n_groups = len(items.keys)
    n = np.bincount(items.group, minlength=n_groups)
    n_names = int(items.cluster.max(initial=0)) + 1
    n_clusters = np.bincount(np.unique(items.group * n_names + items.cluster) // n_names, minlength=n_groups)
    wanted = np.clip(n_clusters // CLUSTERS_A_BIN, 1, max(n_bins, 1))
    starts = np.ones(len(items.group), dtype=bool)
    starts[1:] = (np.diff(items.group) != 0) | (np.diff(items.confidence) != 0)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(items.group)) - 1
    group = items.group[first]
    middle = (first + last + 1) / 2 - (np.cumsum(n) - n)[group]
    number = np.minimum((middle * wanted[group] / n[group]).astype(np.int64), wanted[group] - 1)
    codes, found = pd.factorize(group * (int(wanted.max(initial=1)) + 1) + number)
    of_group = np.asarray(found, dtype=np.int64) // (int(wanted.max(initial=1)) + 1)
    return np.asarray(codes, dtype=np.int64)[np.cumsum(starts) - 1], of_group


class Sums(NamedTuple):
    """Sums over bins, and over the cells of a bin and a cluster: w weights, y right, d confidence less right, each times the weight."""

    of_bin: Codes
    """The bin of each cell."""
    cluster: Codes
    """The cluster of each cell."""
    w_cell: Floats
    y_cell: Floats
    d_cell: Floats
    w: Floats
    y: Floats
    d: Floats
    ww: Floats
    wy: Floats
    yy: Floats
    """Sums over a bin's cells of w_cell^2, w_cell y_cell, y_cell^2."""
    n_cells: Floats
    n: Floats
    """Items of a bin."""


def sums_of(items: Items, bins: Codes, n: int) -> Sums:
    """The sums of n bins."""
    n_names = int(items.cluster.max(initial=0)) + 1
    cells, found = pd.factorize(bins * n_names + items.cluster)
    of_bin, cluster = np.divmod(np.asarray(found, dtype=np.int64), n_names)

    def added(codes: Codes, column: Floats, size: int) -> Floats:
        return np.bincount(codes, column, size).astype(np.float64)

    codes = np.asarray(cells, dtype=np.int64)
    w = added(codes, items.weight, len(found))
    y = added(codes, items.weight * items.right, len(found))
    d = added(codes, items.weight * (items.confidence - items.right), len(found))
    return Sums(
        of_bin,
        cluster,
        w_cell=w,
        y_cell=y,
        d_cell=d,
        w=added(of_bin, w, n),
        y=added(of_bin, y, n),
        d=added(of_bin, d, n),
        ww=added(of_bin, w * w, n),
        wy=added(of_bin, w * y, n),
        yy=added(of_bin, y * y, n),
        n_cells=np.bincount(of_bin, minlength=n).astype(np.float64),
        n=np.bincount(bins, minlength=n).astype(np.float64),
    )


def weighted_means(items: Items, values: Floats, *, level: float) -> pd.DataFrame:
    """The mean of each group with its clustered interval, as `means.clustered_means`; with weights it is a ratio of sums.

    Args:
        items: Their weights count.
        values: One an item.
        level: Of confidence, in (0, 1).
    """
    n_groups = len(items.keys)
    if (items.weight == 1).all():
        return clustered_means(items.group, items.cluster, values, n_cells=n_groups, level=level)
    mass = np.bincount(items.group, items.weight, n_groups)
    mean = over(np.bincount(items.group, items.weight * values, n_groups), mass)
    scale = over(np.bincount(items.group, minlength=n_groups).astype(float), mass)
    moved = mean[items.group] + (values - mean[items.group]) * items.weight * scale[items.group]
    return clustered_means(items.group, items.cluster, moved, n_cells=n_groups, level=level)

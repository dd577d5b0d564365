"""Shares with clustered intervals for many groups at once: `intervals.share_interval` in vectors, for tables of thousands of rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from evalcore.metrics.intervals import LEVEL

Numbers = npt.NDArray[Any]


def grouped_shares(
    hits: Numbers,
    clusters: Numbers,
    groups: Numbers,
    n_groups: int,
    *,
    sizes: Numbers | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The share of each group with Wilson's interval on the effective number of items; formulas and limits as in `share_interval`.

    Beyond it, an item may count as a fraction (physicians' mean vote, 0 to 1), or stand for several trials (pairs of reads: `sizes`
    of them). A fraction varies less than a truth value of the same mean, so the interval is then rather too wide than too narrow.

    Args:
        hits: What counts of each item, 0..size.
        clusters: Code of the cluster of each item, 0 or more.
        groups: Code of the group of each item, 0..n_groups - 1; negative: in none.
        n_groups: How many rows come back.
        sizes: Trials of each item, above 0; default 1.
        level: Of confidence, in (0, 1).

    Returns:
        One row a group, in the order of the codes: n (trials), n_hits (0..n), share, low, high in [0, 1] (NaN without items), n_clusters.
    """
    kept = groups >= 0
    group, cluster = groups[kept].astype(np.int64), clusters[kept].astype(np.int64)
    hit = hits[kept].astype(float)
    size = np.ones(len(hit)) if sizes is None else sizes[kept].astype(float)
    n, y = np.bincount(group, size, n_groups), np.bincount(group, hit, n_groups)
    cells, cell = np.unique(group * (int(cluster.max(initial=0)) + 1) + cluster, return_inverse=True)
    of_group = np.zeros(len(cells), dtype=np.int64)
    of_group[cell] = group
    n_cell, y_cell = np.bincount(cell, size, len(cells)), np.bincount(cell, hit, len(cells))
    n_clusters = np.bincount(of_group, minlength=n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = y / n
        spread = np.bincount(of_group, (y_cell - share[of_group] * n_cell) ** 2, n_groups)
        variance = n_clusters / (n_clusters - 1) * spread / n**2
        alone = share * (1 - share) / (n - 1)
        effect = np.where((n_clusters > 1) & (alone > 0), np.maximum(1.0, variance / alone), 1.0)
        fewest = n**2 / np.bincount(of_group, n_cell**2, n_groups)
        tail = (1 + level) / 2
        few = (stdtrit(np.maximum(n - 1, 1), tail) / stdtrit(np.maximum(n_clusters - 1, 1), tail)) ** 2
        effective = np.where(n_clusters > 1, np.clip(n / effect * few, fewest, n), fewest)
        low, high = _wilson(share, effective, float(ndtri(tail)))
    return pd.DataFrame(
        {
            "n": n if sizes is not None else n.astype(np.int64),
            "n_hits": y,
            "share": share,
            "low": np.clip(np.minimum(low, share), 0, 1),
            "high": np.clip(np.maximum(high, share), 0, 1),
            "n_clusters": n_clusters,
        }
    )


def _wilson(share: Numbers, n: Numbers, z: float) -> tuple[Numbers, Numbers]:
    """(p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)."""
    centre = share + z**2 / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return (centre - half) / scale, (centre + half) / scale


def codes_of(column: pd.Series) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Each value as a number, and the values in order; -1 where it is missing. Of a categorical column the categories, used or not.

    >>> codes_of(pd.Series(["b", None, "a"], dtype="category"))
    (array([ 1, -1,  0]), ['a', 'b'])
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.int64), list(column.cat.categories)
    codes, values = pd.factorize(column, sort=True)
    return np.asarray(codes, dtype=np.int64), list(values)

"""Intervals of shares and means whose items come in clusters: the criteria of one example are not independent."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from evalcore.stats.arrays import Floats, Numbers, occurring, quotient
from evalcore.stats.wording import (
    NO_VALUE as NO_VALUE,  # noqa: PLC0414 - half of the screens know the dash from here
    decimal,
)

LEVEL = 0.95
ROUNDING = 1e-12  # an error or a difference below this is what rounding leaves of none
NO_SPREAD = 1e-9  # A standard error below this is rounding: all clusters are the same
SCORE_COLUMNS = ("raw_mean", "raw_low", "raw_high", "score", "low", "high")

AnyNumbers = npt.NDArray[Any]


class Share(msgspec.Struct, frozen=True):
    """n_hits of n items from n_clusters examples; design_effect, by which clustering widens the variance, is at least 1. NaN without items."""

    n: int
    n_hits: int
    share: float
    low: float
    high: float
    n_clusters: int
    design_effect: float


def share_interval(
    hits: pd.Series | AnyNumbers | Sequence[Any],
    clusters: pd.Series | AnyNumbers | Sequence[Any],
    *,
    level: float = LEVEL,
) -> Share:
    """A share with Wilson's interval on the effective number of items, clustered by example.

    With n items in G clusters, cluster g having n_g items and y_g hits, p = sum y_g / n:

        variance        v = G/(G-1) sum (y_g - p n_g)^2 / n^2         of a ratio, by linearisation
        design effect   d = max(1, v / (p (1-p) / (n-1)))             exactly 1 with one item a cluster
        effective n     n_eff = n/d (t(n-1) / t(G-1))^2               between n^2 / sum n_g^2 and n; few clusters know their own spread badly
        interval        Wilson on p and n_eff

    Wilson 1927; Kish 1965 (design effect); Korn and Graubard 1998 (degrees of freedom); Dean and Pagano 2015.
    >>> alone = share_interval([True] * 81 + [False] * 182, range(263))
    >>> round(alone.low, 4), round(alone.high, 4)
    (0.2553, 0.3662)
    """
    counted, names = np.asarray(hits), np.asarray(clusters)
    if len(counted) != len(names) or (len(counted) and counted.dtype != bool) or pd.isna(names).any():
        msg = f"expected truth values with a cluster each, got {len(counted)} hits of type {counted.dtype} with {len(names)} clusters"
        raise ValueError(msg)
    codes = np.asarray(pd.factorize(names)[0], dtype=np.int64)
    row = grouped_shares(counted, codes, np.zeros(len(codes), dtype=np.int64), 1, level=level).iloc[0]
    n, n_hits, n_clusters = (int(row[name]) for name in ("n", "n_hits", "n_clusters"))
    share, low, high, effect = (float(row[name]) for name in ("share", "low", "high", "design_effect"))
    return Share(n, n_hits, share, low, high, n_clusters, effect)


def grouped_shares(
    hits: AnyNumbers,
    clusters: AnyNumbers,
    groups: AnyNumbers,
    n_groups: int,
    *,
    sizes: AnyNumbers | None = None,
    weights: AnyNumbers | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The share of each of many groups with its interval; formulas and limits as in `share_interval`.

    Hits are 0..size of each item: an item may count as a fraction (physicians' mean vote), or stand for several trials (`sizes`, above 0). A
    fraction varies less than a truth value of the same mean, so the interval is then rather too wide than too narrow. With weights w (one over
    the probability of being drawn) the share is sum w y / sum w m, m the trials, and Kish's (sum w m)^2 / sum w^2 m takes the place of n in the
    interval. Clusters and groups are codes from 0; a group below 0 is none.
    Gives one row a group, by its code: n (trials) and n_hits (0..n) are not weighted; share, low and high are NaN without items.
    """
    inside = groups >= 0
    kept: Any = slice(None) if inside.all() else inside
    group, cluster = groups[kept].astype(np.int64, copy=False), clusters[kept].astype(np.int64, copy=False)
    hit = hits[kept].astype(float)
    size = np.ones(len(hit)) if sizes is None else sizes[kept].astype(float)
    width = int(cluster.max(initial=0)) + 1
    cell, cells = occurring(group * width + cluster)
    of_group = cells // width
    counted, counted_hits = np.bincount(group, size, n_groups), np.bincount(group, hit, n_groups)
    whole, y, each, each_hit, squared = counted, counted_hits, size, hit, counted
    if weights is not None:
        weight = weights[kept].astype(float)
        each, each_hit = weight * size, weight * hit
        whole, y, squared = (np.bincount(group, column, n_groups) for column in (each, each_hit, weight * each))
    n_cell, y_cell = (np.bincount(cell, column, len(cells)) for column in (each, each_hit))
    n_clusters = np.bincount(of_group, minlength=n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = counted if weights is None else whole**2 / squared
        share = y / whole
        spread = np.bincount(of_group, (y_cell - share[of_group] * n_cell) ** 2, n_groups)
        variance = n_clusters / (n_clusters - 1) * spread / whole**2
        alone = share * (1 - share) / (n - 1)
        fewest = whole**2 / np.bincount(of_group, n_cell**2, n_groups)
        effect = np.where(alone > 0, np.maximum(1.0, variance / alone), 1.0)
        effect = np.where(n_clusters > 1, effect, n / fewest)
        tail = (1 + level) / 2
        few = (stdtrit(np.maximum(n - 1, 1), tail) / stdtrit(np.maximum(n_clusters - 1, 1), tail)) ** 2
        effective = np.where(n_clusters > 1, np.clip(n / effect * few, fewest, n), fewest)
    low, high = wilson(share * effective, effective, level=level)
    columns = {"n": counted if sizes is not None else counted.astype(np.int64), "n_hits": counted_hits, "share": share}
    return pd.DataFrame(columns | {"low": low, "high": high, "n_clusters": n_clusters, "design_effect": effect})


def wilson(k: npt.ArrayLike, n: npt.ArrayLike, *, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Wilson's interval of k of n items that stand alone (1927); NaN where n is 0. Both may be fractions, numbers or arrays of one shape.

        (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)

    >>> low, high = wilson([43, 7, 0], [527, 262, 262])
    >>> low.round(6).tolist(), high.round(6).tolist()
    ([0.061139, 0.013001, 0.0], [0.108105, 0.054112, 0.01445])
    """
    hits, trials = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    z = float(ndtri((1 + level) / 2))
    size = np.where(trials > 0, trials, np.nan)
    p = hits / size
    centre = p + z**2 / (2 * size)
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2))
    scale = 1 + z**2 / size
    return np.clip((centre - half) / scale, 0, p), np.clip((centre + half) / scale, p, 1)


def clustered_means(
    cells: Numbers, clusters: Numbers, values: Floats, *, n_cells: int, weights: Floats | None = None
) -> pd.DataFrame:
    """The mean of each cell with its interval, clustered: m = sum y_g / n of n values in G clusters, n_g of them in cluster g with the sum y_g.

        variance   v = G/(G-1) sum (y_g - m n_g)^2 / n^2      of a ratio, by linearisation;      interval   m +- t(G-1) sqrt(v)

    With weights (above 0) n_g, y_g and n are the weighted sums. Cells and clusters are codes from 0; a cluster that lies in several cells is one in each.
    Gives one row a cell. NaN where undefined: the mean of an empty cell; the interval of fewer than two clusters, or of clusters that are all the same,
    since nothing is then known of how they differ.
    """
    n_names = int(clusters.max()) + 1 if len(clusters) else 1
    both, pairs = occurring(cells * n_names + clusters)
    cell_of = pairs // n_names
    each = np.ones(len(values)) if weights is None else weights
    sums, sizes = np.bincount(both, values * each, len(pairs)), np.bincount(both, each, len(pairs))
    n_values = np.bincount(cells, minlength=n_cells)
    n_clusters = np.bincount(cell_of, minlength=n_cells)
    whole = np.bincount(cells, each, n_cells)
    mean = quotient(np.bincount(cells, values * each, n_cells), whole)
    squares = np.bincount(cell_of, (sums - mean[cell_of] * sizes) ** 2, n_cells)
    error = np.sqrt(quotient(squares * n_clusters, (n_clusters - 1) * whole**2))
    error[error <= NO_SPREAD * np.maximum(1.0, np.abs(mean))] = np.nan
    half = stdtrit(np.where(n_clusters > 1, n_clusters - 1, np.nan), (1 + LEVEL) / 2) * error
    columns = {"n_values": n_values, "n_clusters": n_clusters, "mean": mean, "low": mean - half, "high": mean + half}
    return pd.DataFrame(columns)


def as_scores(means: pd.DataFrame) -> dict[str, pd.Series]:
    """Means and intervals as `SCORE_COLUMNS`: raw_mean, raw_low, raw_high, and score, low, high clipped to [0, 1]."""
    raw = means[["mean", "low", "high"]]
    both = pd.concat([raw, raw.clip(0, 1)], axis=1).set_axis(list(SCORE_COLUMNS), axis=1)
    return {name: both[name] for name in SCORE_COLUMNS}


def share_words(n_hits: int, n: int, share: float, *, weighted: bool = False) -> str:
    """A share as screens say it; a dash where there is none. The two counts are told only where they make the share."""
    return f"{percent_words(share)} ({f'weighted, n = {n:,}' if weighted else f'{n_hits:,}/{n:,}'})"


def interval_words(low: float, high: float) -> str:
    """An interval as screens say it."""
    return NO_VALUE if math.isnan(low) else f"[{percent_words(low)}, {percent_words(high)}]"


def rate_words(share: float, low: float, high: float, *, n_hits: int, n: int, weighted: bool) -> str:
    """A share as `share_words` says it, with its interval."""
    return f"{share_words(n_hits, n, share, weighted=weighted)} {interval_words(low, high)}"


def percent_words(share: float) -> str:
    """A share alone."""
    return NO_VALUE if math.isnan(share) else f"{decimal(100 * share, 0)} %"


def signed_points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign; nought has none."""
    return decimal(100 * difference, 0, signed=True)

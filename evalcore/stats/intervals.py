"""Intervals of proportions whose items come in clusters: the criteria of one example are not independent."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from evalcore.stats.wording import NO_VALUE as NO_VALUE  # noqa: PLC0414 - half of the screens know the dash from here
from evalcore.stats.wording import decimal

LEVEL = 0.95
ROUNDING = 1e-12
"""An error or a difference below this is what rounding leaves of none."""

Numbers = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Column = pd.Series | Numbers | Sequence[Any]


class Share(msgspec.Struct, frozen=True):
    """A proportion with its interval.

    Attributes:
        n: Items.
        n_hits: Those of them that count, 0..n.
        share: n_hits / n in [0, 1]; NaN without items.
        low, high: Bounds of the interval in [0, 1], low <= share <= high; NaN without items.
        n_clusters: Examples that the items come from.
        design_effect: By how much clustering widens the variance, at least 1; NaN without items.
    """

    n: int
    n_hits: int
    share: float
    low: float
    high: float
    n_clusters: int
    design_effect: float


def share_interval(hits: Column, clusters: Column, *, level: float = LEVEL) -> Share:
    """A share with Wilson's interval on the effective number of items, clustered by example.

    With n items in G clusters, cluster g having n_g items and y_g hits, p = sum y_g / n:

        variance        v = G/(G-1) sum (y_g - p n_g)^2 / n^2         of a ratio, by linearisation
        design effect   d = max(1, v / (p (1-p) / (n-1)))             exactly 1 with one item a cluster
        effective n     n_eff = n/d (t(n-1) / t(G-1))^2               few clusters know their own spread badly
        interval        Wilson on p and n_eff

    n_eff stays between n^2 / sum n_g^2 (as if all items of a cluster were one) and n. On drawn clusters of eight with an
    intraclass correlation of .3 the 95 % interval covers about 95 % from 30 clusters on and 92 % to 99 % with fewer (shares of .6 and
    .9); plain Wilson covers 70 %. A share beyond .95 with few clusters is the hard case, since its spread shows seldom.

    Edge cases: no items: NaN throughout. One cluster: nothing is known of the spread between clusters, so it counts as one
    item (n_eff = 1). No hits, or nothing but hits: the spread is 0 and d = 1; with one item a cluster that is Wilson.

    Args:
        hits: Truth values, one an item.
        clusters: The cluster of each item, in the same order; none missing.
        level: Of confidence, in (0, 1).

    Raises:
        ValueError: The columns differ in length, hits are no truth values, or a cluster is missing.

    References:
        Wilson 1927; Kish 1965 (design effect); Korn and Graubard 1998 (degrees of freedom); Dean and Pagano 2015.

    >>> alone = share_interval([True] * 81 + [False] * 182, range(263))
    >>> round(alone.low, 4), round(alone.high, 4)
    (0.2553, 0.3662)
    """
    counted = np.asarray(hits)
    names = np.asarray(clusters)
    if len(counted) != len(names) or (len(counted) and counted.dtype != bool) or pd.isna(names).any():
        msg = f"{len(counted)} hits of type {counted.dtype} with {len(names)} clusters came, expected truth values with a cluster each"
        raise ValueError(msg)
    codes = np.asarray(pd.factorize(names)[0], dtype=np.int64)
    of = _shares(counted, codes, np.zeros(len(codes), dtype=np.int64), 1, None, None, level)
    n, n_hits, n_clusters = (int(of[name][0]) for name in ("n", "n_hits", "n_clusters"))
    share, low, high, effect = (float(of[name][0]) for name in ("share", "low", "high", "design_effect"))
    return Share(n, n_hits, share, low, high, n_clusters, effect)


def grouped_shares(
    hits: Numbers,
    clusters: Numbers,
    groups: Numbers,
    n_groups: int,
    *,
    sizes: Numbers | None = None,
    weights: Numbers | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The share of each of many groups with its interval; formulas and limits as in `share_interval`.

    Beyond it, an item may count as a fraction (physicians' mean vote, 0 to 1), or stand for several trials (pairs of reads: `sizes`
    of them). A fraction varies less than a truth value of the same mean, so the interval is then rather too wide than too narrow.
    With weights w the share is sum w y / sum w m (m the trials), and Kish's (sum w m)^2 / sum w^2 m takes the place of n in the interval.

    Args:
        hits: What counts of each item, 0..size.
        clusters: Code of the cluster of each item, 0 or more.
        groups: Code of the group of each item, 0..n_groups - 1; negative: in none.
        n_groups: How many rows come back.
        sizes: Trials of each item, above 0; default 1.
        weights: Of each item, above 0: one over the probability with which it was drawn; default 1.
        level: Of confidence, in (0, 1).

    Returns:
        One row a group, in the order of the codes: n (trials), n_hits (0..n; both not weighted), share, low, high in [0, 1] (NaN without items), n_clusters.
    """
    return pd.DataFrame(_shares(hits, clusters, groups, n_groups, sizes, weights, level)).drop(columns="design_effect")


def _shares(
    hits: Numbers,
    clusters: Numbers,
    groups: Numbers,
    n_groups: int,
    sizes: Numbers | None,
    weights: Numbers | None,
    level: float,
) -> dict[str, Numbers]:
    kept = groups >= 0
    group, cluster = groups[kept].astype(np.int64), clusters[kept].astype(np.int64)
    hit = hits[kept].astype(float)
    size = np.ones(len(hit)) if sizes is None else sizes[kept].astype(float)
    weight = np.ones(len(hit)) if weights is None else weights[kept].astype(float)
    counted, counted_hits = np.bincount(group, size, n_groups), np.bincount(group, hit, n_groups)
    whole, y = np.bincount(group, weight * size, n_groups), np.bincount(group, weight * hit, n_groups)
    cells, cell = np.unique(group * (int(cluster.max(initial=0)) + 1) + cluster, return_inverse=True)
    of_group = np.zeros(len(cells), dtype=np.int64)
    of_group[cell] = group
    n_cell, y_cell = (np.bincount(cell, weight * column, len(cells)) for column in (size, hit))
    n_clusters = np.bincount(of_group, minlength=n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        n = counted if weights is None else whole**2 / np.bincount(group, weight**2 * size, n_groups)
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
    return {
        "n": counted if sizes is not None else counted.astype(np.int64),
        "n_hits": counted_hits,
        "share": share,
        "low": low,
        "high": high,
        "n_clusters": n_clusters,
        "design_effect": effect,
    }


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


def codes_of(column: pd.Series) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Each value as a number, and the values in order; -1 where it is missing. Of a categorical column the categories, used or not.

    >>> codes_of(pd.Series(["b", None, "a"], dtype="category"))
    (array([ 1, -1,  0]), ['a', 'b'])
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.int64), list(column.cat.categories)
    codes, values = pd.factorize(column, sort=True)
    return np.asarray(codes, dtype=np.int64), list(values)


def share_words(n_hits: int, n: int, share: float, *, weighted: bool = False) -> str:
    """A share as screens say it; a dash where there is none. The two counts are told only where they make the share.

    >>> share_words(92, 148, 92 / 148), share_words(0, 0, math.nan), share_words(92, 148, 0.5816, weighted=True)
    ('62 % (92/148)', '– (0/0)', '58 % (weighted, n = 148)')
    """
    return f"{percent_words(share)} ({f'weighted, n = {n:,}' if weighted else f'{n_hits:,}/{n:,}'})"


def interval_words(low: float, high: float) -> str:
    """An interval as screens say it.

    >>> interval_words(0.5404, 0.6958)
    '[54 %, 70 %]'
    """
    return NO_VALUE if math.isnan(low) else f"[{percent_words(low)}, {percent_words(high)}]"


def rate_words(share: float, low: float, high: float, *, n_hits: int, n: int, weighted: bool) -> str:
    """A share as `share_words` says it, with its interval.

    >>> rate_words(92 / 148, 0.5404, 0.6958, n_hits=92, n=148, weighted=False)
    '62 % (92/148) [54 %, 70 %]'
    >>> rate_words(0.5816, 0.5, 0.66, n_hits=92, n=148, weighted=True)
    '58 % (weighted, n = 148) [50 %, 66 %]'
    """
    return f"{share_words(n_hits, n, share, weighted=weighted)} {interval_words(low, high)}"


def percent_words(share: float) -> str:
    """A share alone.

    >>> percent_words(0.6216), percent_words(math.nan)
    ('62 %', '–')
    """
    return NO_VALUE if math.isnan(share) else f"{decimal(100 * share, 0)} %"


def signed_points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign; nought has none.

    >>> signed_points(0.094), signed_points(-0.3), signed_points(-0.001), signed_points(math.nan)
    ('+9', '−30', '0', '–')
    """
    if math.isnan(difference):
        return NO_VALUE
    return f"{points:+d}".replace("-", "−") if (points := round(100 * difference)) else "0"

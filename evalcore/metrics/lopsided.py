"""What is over- and under-represented, by standardised residuals."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr

from evalcore.metrics.pair_tests import adjusted, holm

CLEAR = 2.0
"""A residual beyond this stands out, where Holm's test does not take it back."""
LEVEL = 0.05
MIN_EXPECTED = 5.0
"""With fewer expected, in numbers that are worth that many independent ones, nothing is said."""
MAX_NAMED = 3

Floats = npt.NDArray[np.float64]


class Leaning(StrEnum):
    """How a group's share stands to what it is held against."""

    MORE = "more"
    FEWER = "fewer"
    ALIKE = "alike"
    """No clear difference."""
    TOO_FEW = "too_few"
    """Too few to say."""
    NO_COUNT = "no_count"
    """Nothing to hold it against."""


class Beside(StrEnum):
    """What a share is held against."""

    BENCHMARK = "benchmark"
    """The study beside the published counts of the full benchmark."""
    STUDY = "read"
    """What physicians have read beside the whole of the study."""


def residuals(counts: pd.DataFrame, shares: pd.Series) -> pd.DataFrame:
    """The standardised residual of each group: how far its count is from the expected one, in standard deviations.

    With n units, O of them in a group whose share is p, in G clusters (the examples), cluster e having n_e units and o_e of the group:

        expected        E = n p
        design effect   d = G/(G-1) sum_e (o_e - q n_e)^2 / (n/(n-1) n q (1-q)),  q = O/n, at least 1
        residual        r = (O - E) / sqrt(d E (1-p))

    With one unit a cluster d is 1, and r the residual of a goodness-of-fit test. Where the shares add up to 1,
    sum (O - E) = 0 and, with d = 1, sum r^2 (1-p) is Pearson's chi-squared.

    Args:
        counts: One row a group and cluster, or several: group, cluster, n (0 or more). Groups without a share are left
            out of n where the shares add up to 1, since the whole that they come from has no such group.
        shares: By group, in [0, 1]: what is expected.

    Returns:
        One row a group of either, in the order of `shares`, then of counts: group, n, share in [0, 1] of the n that are held against
        the shares (NaN without any), expected_share, n_expected, ratio (share / expected share, 0 or more), design_effect (1 or more),
        residual (positive: more than expected), p_value (two-sided, normal), p_holm (over the groups that are tested), leaning.
        MORE and FEWER take |r| > 2 and p_holm < .05. TOO_FEW: fewer than 5 d are expected inside or outside the group, and
        residual, p_value and p_holm are NaN. NO_COUNT: a group without a share.

    References:
        Haberman 1973 (residuals); Rao and Scott 1981 (design effect); Holm 1979.
    """
    groups = pd.Index(list(dict.fromkeys([*shares.index, *counts["group"]])), dtype=object)
    expected = shares.reindex(groups).to_numpy(dtype=float)
    is_whole = math.isclose(float(shares.sum()), 1.0, abs_tol=1e-9)
    part = ~np.isnan(expected) if is_whole else np.ones(len(groups), dtype=bool)
    cells = _Cells.of(counts, groups)
    held = cells.only(part)
    n, share = held.n, np.where(part, _over(held.hits, held.n), np.nan)
    effect = np.full(len(groups), max(n, 1.0))  # of one cluster nothing is known but that it is one
    if held.n_clusters > 1:
        whole = float((held.sizes**2).sum())
        spread = held.squares - 2 * share * held.sums(held.amount * held.sizes[held.cluster]) + share**2 * whole
        alone = n / max(n - 1, 1) * n * share * (1 - share)
        # A group with nothing or everything shows no spread of its own: as if each cluster were all of one kind.
        effect = np.where(alone > 0, _over(held.n_clusters / (held.n_clusters - 1) * spread, alone), whole / n)
    effect = np.where(part, np.maximum(effect, 1.0), np.nan)
    n_expected = n * expected
    least = np.minimum(n_expected, n - n_expected)
    variance = effect * n_expected * (1 - expected)
    return _table(groups, cells.hits, share, expected, n_expected, effect, least, variance)


def residuals_of_part(counts: pd.DataFrame) -> pd.DataFrame:
    """The standardised residuals of a part beside the whole that it was taken from, without replacement.

    Of N units n were taken, f = n/N; K units are in the group, P = K/N, and O of those were taken. For cluster e with M_e units, S_e
    of them taken, and K_e and O_e in the group:

        expected        E = n P
        design effect   d = sum_e (O_e - f K_e - P (S_e - f M_e))^2 / sum_j ((s_j - f) (g_j - P))^2 over units j, at least 1
        residual        r = (O - E) / sqrt(d n P (1-P) (N-n)/(N-1))

    The deviation with d = 1 is the hypergeometric one: units taken one by one have d near 1, whole clusters of M units d near M.
    With one unit a cluster d is 1, and r^2 is (N-1)/N times the chi-squared of the table taken or not x in the group or not.

    Args:
        counts: One row a group and cluster, or several: group, cluster, n (taken), n_population (n or more).

    Returns:
        As `residuals`; n is what was taken of each group, the expected share its share of the whole. TOO_FEW also where fewer than 5 d are
        expected among what was not taken; where all was taken nothing leans: ALIKE, residual NaN.
    """
    groups = pd.Index(counts["group"].drop_duplicates(), dtype=object)
    population = _Cells.of(counts.assign(n=counts["n_population"]), groups)
    taken = _Cells.of(counts, groups)
    n, whole = taken.n, population.n
    share, expected = _over(taken.hits, n), _over(population.hits, whole)
    fraction = n / whole if whole else 0.0
    surplus = taken.sizes - fraction * population.sizes  # by cluster
    own, mine = taken.amount - fraction * population.amount, expected[taken.group]
    # Clusters without a unit of the group have P times their surplus alone.
    there = (own - mine * surplus[taken.cluster]) ** 2 - (mine * surplus[taken.cluster]) ** 2
    clustered = taken.sums(there) + expected**2 * float((surplus**2).sum())
    hits, members = taken.hits, population.hits
    inside = hits * (1 - fraction) ** 2 + (members - hits) * fraction**2
    outside = (n - hits) * (1 - fraction) ** 2 + (whole - n - members + hits) * fraction**2
    single = inside * (1 - expected) ** 2 + outside * expected**2
    effect = np.where(single > 0, _over(clustered, single), 1.0)
    effect = np.full(len(groups), max(n, 1.0)) if taken.n_clusters < 2 else np.maximum(effect, 1.0)  # noqa: PLR2004 - as above
    n_expected, left = n * expected, whole - n
    least = np.minimum(n_expected, n - n_expected)
    if left:
        least = np.minimum(least, left * np.minimum(expected, 1 - expected))
    variance = effect * n_expected * (1 - expected) * left / max(whole - 1, 1)
    return _table(groups, hits, share, expected, n_expected, effect, least, variance)


@dataclass(frozen=True)
class _Cells:
    """Counts by group and cluster, as numbers: one place a pair that occurs."""

    group: npt.NDArray[np.int64]
    cluster: npt.NDArray[np.int64]
    amount: Floats
    n_groups: int
    sizes: Floats
    """By cluster."""

    @classmethod
    def of(cls, counts: pd.DataFrame, groups: pd.Index) -> "_Cells":
        clusters, names = pd.factorize(counts["cluster"])
        keys = groups.get_indexer(pd.Index(counts["group"])).astype(np.int64) * max(len(names), 1) + clusters
        cell, place = np.unique(keys, return_inverse=True)
        amount = np.bincount(place, weights=counts["n"].to_numpy(dtype=float), minlength=len(cell)).astype(float)
        return cls._made(cell // max(len(names), 1), cell % max(len(names), 1), amount, len(groups), len(names))

    @classmethod
    def _made(
        cls, group: npt.NDArray[np.int64], cluster: npt.NDArray[np.int64], amount: Floats, n_groups: int, n: int
    ) -> "_Cells":
        return cls(group, cluster, amount, n_groups, np.bincount(cluster, weights=amount, minlength=n).astype(float))

    def only(self, part: npt.NDArray[np.bool_]) -> "_Cells":
        """These groups alone."""
        kept = part[self.group]
        return self._made(self.group[kept], self.cluster[kept], self.amount[kept], self.n_groups, len(self.sizes))

    def sums(self, values: Floats) -> Floats:
        """By group, of values by cell."""
        return np.bincount(self.group, weights=values, minlength=self.n_groups).astype(float)

    @property
    def hits(self) -> Floats:
        """By group."""
        return self.sums(self.amount)

    @property
    def squares(self) -> Floats:
        """By group: the sum of the squared counts of its clusters."""
        return self.sums(self.amount**2)

    @property
    def n(self) -> float:
        """Of all groups."""
        return float(self.amount.sum())

    @property
    def n_clusters(self) -> int:
        """Those with anything in them."""
        return int(np.count_nonzero(self.sizes))


def _over(values: Floats, by: Floats | float) -> Floats:
    """The quotient; NaN where there is nothing to divide by."""
    below = np.broadcast_to(np.asarray(by, dtype=float), values.shape)
    found: Floats = np.divide(values, below, out=np.full(len(values), np.nan), where=below > 0)
    return found


def _table(
    groups: pd.Index,
    hits: Floats,
    share: Floats,
    expected: Floats,
    n_expected: Floats,
    effect: Floats,
    least: Floats,
    variance: Floats,
) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "group": groups,
            "n": hits.astype(np.int64),
            "share": share,
            "expected_share": expected,
            "n_expected": n_expected,
            "ratio": _over(share, expected),
            "design_effect": effect,
        }
    )
    has_share = ~np.isnan(expected)
    tested = has_share & (least >= MIN_EXPECTED * effect - 1e-9)
    return table.join(_tested(hits - n_expected, variance, tested, has_share))


def _tested(
    distance: Floats, variance: Floats, tested: npt.NDArray[np.bool_], has_share: npt.NDArray[np.bool_]
) -> pd.DataFrame:
    deviation = np.sqrt(np.where(tested, variance, np.nan))
    residual = np.divide(distance, deviation, out=np.full(len(distance), np.nan), where=deviation > 0)
    p_value = 2 * ndtr(-np.abs(residual))
    p_holm = adjusted(p_value, holm)
    clear = (np.abs(residual) > CLEAR) & (p_holm < LEVEL)
    leaning = np.select(
        [~has_share, ~tested, clear & (residual > 0), clear],
        [Leaning.NO_COUNT.value, Leaning.TOO_FEW.value, Leaning.MORE.value, Leaning.FEWER.value],
        Leaning.ALIKE.value,
    )
    return pd.DataFrame({"residual": residual, "p_value": p_value, "p_holm": p_holm, "leaning": leaning})


_WORDS = {
    Leaning.MORE: "▲ more",
    Leaning.FEWER: "▽ fewer",
    Leaning.ALIKE: "no clear difference",
    Leaning.TOO_FEW: "too few to say",
    Leaning.NO_COUNT: "",
}


def leaning_words(leaning: str) -> str:
    """How a group's share stands to what it is held against, with a mark; empty where there is nothing to hold it against.

    >>> leaning_words("fewer")
    '▽ fewer'
    """
    return _WORDS[Leaning(leaning)]


def lopsided_sentence(table: pd.DataFrame, beside: Beside) -> str:
    """What stands out, in one sentence; empty where nothing does.

    Args:
        table: Of `residuals`, or of `composition.parts` with `beside` before the names of the columns.
        beside: What the shares were held against.

    >>> drawn = pd.DataFrame(
    ...     {"group": ["hedging", "emergency referrals"], "ratio": [0.5, 3.0], "residual": [-4.0, 6.0]}
    ... )
    >>> lopsided_sentence(drawn.assign(leaning=["fewer", "more"]), Beside.STUDY)
    'Physicians have read emergency referrals three times as often as an even draw would, and hedging half as often.'
    """
    prefix = "" if "ratio" in table.columns else f"{beside}_"
    rows = table.loc[table[f"{prefix}leaning"].isin([Leaning.MORE, Leaning.FEWER])]
    rows = rows.loc[rows[f"{prefix}residual"].abs().sort_values(ascending=False, kind="stable").index[:MAX_NAMED]]
    if rows.empty:
        return ""
    named = [
        (str(group), times_words(ratio)) for group, ratio in zip(rows["group"], rows[f"{prefix}ratio"], strict=True)
    ]
    (group, times), rest = named[0], [f"{name} {words}" for name, words in named[1:]]
    more = f", {', '.join([*rest[:-1], 'and ' + rest[-1]])}" if rest else ""
    if beside is Beside.STUDY:
        return f"Physicians have read {group} {times} as an even draw would{more}."
    return f"This study holds {group} {times} as the full benchmark does{more}."


_TIMES = {
    "0.5": "half as often",
    "1.0": "as often",
    "2.0": "twice as often",
    "3.0": "three times as often",
    "4.0": "four times as often",
}


def times_words(ratio: float) -> str:
    """A ratio of shares in words.

    >>> [times_words(ratio) for ratio in (0.0, 0.5, 1.43, 2.96, 26.4)]
    ['0 times as often', 'half as often', '1.4 times as often', 'three times as often', '26 times as often']
    """
    exact = f"{ratio:.1f}" if 0 < ratio < 10 else f"{ratio:.0f}"  # noqa: PLR2004 - two digits
    return _TIMES.get(exact, f"{exact} times as often")

"""Whether stated confidence is borne out: reliability by bins, debiased error, discrimination, and what temperature scaling would change."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit, logit, stdtrit

from evalcore.stats.arrays import cells_of, quotient
from evalcore.stats.intervals import LEVEL, clustered_means, grouped_shares

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
CLUSTERS_A_BIN = 5
"""There are never more bins than leave this many clusters to each, on average."""
BY = ("group",)
N_BINS = 10
N_DRAWS = 200
FINEST = 100
"""For the null, confidences are rounded to 1/100, so that there are few different ones."""
N_FITTED = 50
"""Of the draws, those that an isotonic regression is fitted to."""
N_FOLDS = 5
NEVER_SURE = 1e-3
"""Confidences are taken as lying this far from 0 and 1 at least: a label that is wrong with confidence 1 would cost without end."""
COLDEST, HOTTEST = np.log(0.05), np.log(20)
COMPARED = ("error", "brier")
NOTHING = "No item has both a confidence and something to hold it against."
ONE_CLUSTER = "All items come from one example or case: nothing is known of how others would differ."
ALIKE = "All examples or cases are off by the same: nothing is known of how others would differ."


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

    def groups(self) -> Iterator[tuple[int, slice]]:
        """The groups that have items, by number, and where these are."""
        bounds = np.append(0, np.cumsum(np.bincount(self.group, minlength=len(self.keys))))
        return ((number, slice(start, end)) for number, (start, end) in enumerate(pairwise(bounds)) if end > start)


def items_of(frame: pd.DataFrame, by: Sequence[str]) -> Items:
    """The items of a frame that `calibration` describes."""
    groups, keys = cells_of(frame, by)
    confidence, right = (frame[name].to_numpy(dtype=float) for name in ("confidence", "right"))
    weight = frame["weight"].to_numpy(dtype=float) if "weight" in frame else np.ones(len(frame))
    enters = ~(np.isnan(confidence) | np.isnan(right) | np.isnan(weight))
    refused = [""] * len(keys)
    if "refused" in frame and not enters.all():
        words = frame["refused"].astype(object).fillna("").to_numpy()
        reasons = pd.Series(words[~enters]).groupby(groups[~enters]).max()
        refused = [str(reasons.get(number, "")) for number in range(len(keys))]
    left_out = np.bincount(groups[~enters], minlength=len(keys))
    order = np.flatnonzero(enters)
    order = order[np.lexsort((confidence[order], groups[order]))]
    cluster = np.asarray(pd.factorize(frame["cluster"].to_numpy()[order])[0], dtype=np.int64)
    return Items(groups[order], cluster, confidence[order], right[order], weight[order], keys, left_out, refused, order)


def crossed(group: Codes, cluster: Codes) -> tuple[Codes, Codes, Codes]:
    """The cell of a group and a cluster that each item is in, and the group and the cluster of each cell."""
    n_names = int(cluster.max(initial=0)) + 1
    codes, cells = pd.factorize(group * n_names + cluster)
    of_group, of_cluster = np.divmod(np.asarray(cells, dtype=np.int64), n_names)
    return np.asarray(codes, dtype=np.int64), of_group, of_cluster


def bins_of(items: Items, n_bins: int) -> tuple[Codes, Codes]:
    """The bin of each item, numbered over all groups, and the group of each bin.

    Items of one confidence stay together, in the bin in which the middle of them falls.
    """
    if not len(items.group):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    n_groups = len(items.keys)
    n = np.bincount(items.group, minlength=n_groups)
    n_clusters = np.bincount(crossed(items.group, items.cluster)[1], minlength=n_groups)
    wanted = np.clip(n_clusters // CLUSTERS_A_BIN, 1, max(n_bins, 1))
    starts = np.ones(len(items.group), dtype=bool)
    starts[1:] = (np.diff(items.group) != 0) | (np.diff(items.confidence) != 0)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(items.group)) - 1
    group = items.group[first]
    middle = (first + last + 1) / 2 - (np.cumsum(n) - n)[group]
    number = np.minimum((middle * wanted[group] / n[group]).astype(np.int64), wanted[group] - 1)
    codes, of_group, _ = crossed(group, number)
    return codes[np.cumsum(starts) - 1], of_group


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
    codes, of_bin, cluster = crossed(bins, items.cluster)
    right, gap = items.weight * items.right, items.weight * (items.confidence - items.right)
    w, y, d = (np.bincount(codes, column, len(of_bin)).astype(np.float64) for column in (items.weight, right, gap))
    of_bins = (np.bincount(of_bin, column, n).astype(np.float64) for column in (w, y, d, w * w, w * y, y * y))
    counts = (np.bincount(codes, minlength=n).astype(np.float64) for codes in (of_bin, bins))
    return Sums(of_bin, cluster, w, y, d, *of_bins, *counts)


def weighted_means(items: Items, values: Floats) -> pd.DataFrame:
    """The mean of each group's values, one an item, with its clustered interval (`intervals.clustered_means`); with weights a ratio of sums."""
    n_groups = len(items.keys)
    if (items.weight == 1).all():
        return clustered_means(items.group, items.cluster, values, n_cells=n_groups)
    mass = np.bincount(items.group, items.weight, n_groups)
    mean = quotient(np.bincount(items.group, items.weight * values, n_groups), mass)
    scale = quotient(np.bincount(items.group, minlength=n_groups).astype(float), mass)
    moved = mean[items.group] + (values - mean[items.group]) * items.weight * scale[items.group]
    return clustered_means(items.group, items.cluster, moved, n_cells=n_groups)


def reliability(frame: pd.DataFrame, *, n_bins: int = N_BINS, by: Sequence[str] = BY) -> pd.DataFrame:
    """How often labels are right, by how sure they were stated: the points and bars of a reliability diagram.

    Bins hold equally many items, as far as ties allow: items of one confidence stay together, in the bin in which the middle of
    them falls. There are at most as many bins as leave five clusters to each.

    Args:
        frame: One row an item: the columns of `by`, cluster, confidence, right (both in [0, 1]; NaN: left out), and where there are any weight and
            refused (why there is no confidence).
        n_bins: Bins at most, 1 or more.
        by: Columns that name the groups.

    Returns:
        One row a group and bin, by confidence: the columns of `by`, bin (from 0), lowest, highest and mean_confidence in it, share_right
        with low and high (95 %, Wilson on the effective number of items, clustered), all in [0, 1], n (items), n_clusters. No row for a
        group without items.
    """
    items = items_of(frame, by)
    bins, of_group = bins_of(items, n_bins)
    n = len(of_group)
    counts = np.bincount(bins, minlength=n)
    mass = np.bincount(bins, items.weight, n)
    scaled = items.weight * quotient(counts.astype(float), mass)[bins]  # the weights of a bin add up to its items
    shares = grouped_shares(items.right * scaled, items.cluster, bins, n, sizes=scaled)
    starts = np.cumsum(counts) - counts
    ends = starts + counts - 1
    first = np.searchsorted(of_group, of_group, side="left")
    return items.keys.take(of_group).reset_index(drop=True).assign(
        bin=np.arange(n) - first,
        lowest=items.confidence[starts],
        highest=items.confidence[ends],
        mean_confidence=quotient(np.bincount(bins, items.weight * items.confidence, n), mass),
        share_right=shares["share"].to_numpy(),
        low=shares["low"].to_numpy(),
        high=shares["high"].to_numpy(),
        n=counts,
        n_clusters=shares["n_clusters"].to_numpy(),
    )  # fmt: skip


def calibration_error(
    frame: pd.DataFrame,
    *,
    rng: np.random.Generator,
    n_bins: int = N_BINS,
    by: Sequence[str] = BY,
    n_draws: int = N_DRAWS,
) -> pd.DataFrame:
    """How far confidence lies from what is right, and Brier's score in its parts.

    With the bins of `reliability` (w their shares of the items, pbar the mean confidence, ybar the share right):

        error   sqrt of sum w [(pbar - ybar)^2 - v], floored at 0: v is the variance of ybar, clustered. With one item a cluster and
                right 0 or 1, v = ybar (1 - ybar) / (n - 1), the usual form; plain L2 adds v and is never 0
        ece     sum w |pbar - ybar|, which is above 0 for perfectly calibrated data too; hence never without its null
        null    the mean of ece over drawn data of the same confidences that are perfectly calibrated (right with the probability that
                is stated), times the root of the design effect; null_high is exceeded by 5 % of them

    Brier's score, mean (p - y)^2 = miscalibration - discrimination + uncertainty, where c is the isotonic regression of y on p and
    r the mean of y: miscalibration = mean (p-y)^2 - mean (c-y)^2, discrimination = mean (r-y)^2 - mean (c-y)^2, uncertainty = mean
    (r-y)^2. Isotonic regression fits chance too, so the first two are a little too large on few items: null_miscalibration
    is what perfectly calibrated data give.

    Intervals cluster: of error a delete-one-cluster jackknife of its square; of the others by linearisation (c and r minimise their losses,
    so that their own error does not enter at first order; where miscalibration is near 0 its interval is too narrow).

    Args:
        frame: As for `reliability`.
        rng: Chance, for the null alone.
        n_bins: As for `reliability`.
        by: Columns that name the groups.
        n_draws: For the null; 0: no null, and then no plain error either.

    Returns:
        One row a group that occurs in the frame, with or without confidence: the columns of `by`, n, n_left_out, n_clusters, n_bins,
        mean_confidence, share_right, difference (mean_confidence - share_right: above 0 is over-confident, -1..1), error (0..1), ece,
        null, null_high (0..1), brier, miscalibration, discrimination, uncertainty (0..1), null_miscalibration; difference, error, brier,
        miscalibration, discrimination and uncertainty with _low and _high (95 %); undefined: a sentence where there is no value or no interval,
        else "". Values are NaN without items, intervals and error with one cluster.

    References:
        Kumar, Liang and Ma 2019 (debiased error); Dimitriadis, Gneiting and Jordan 2021 (CORP).
    """
    items = items_of(frame, by)
    n_groups = len(items.keys)
    bins, of_group = bins_of(items, n_bins)
    sums = sums_of(items, bins, len(of_group))
    table = items.keys.assign(
        n=np.bincount(items.group, minlength=n_groups),
        n_left_out=items.n_left_out,
        n_bins=np.bincount(of_group, minlength=n_groups),
    )
    mass = np.bincount(items.group, items.weight, n_groups)
    mean_confidence = quotient(np.bincount(items.group, items.weight * items.confidence, n_groups), mass)
    share_right = quotient(np.bincount(items.group, items.weight * items.right, n_groups), mass)
    columns: dict[str, Any] = {"mean_confidence": mean_confidence, "share_right": share_right}
    calibrated = _isotonic(items)
    off, fitted = (items.confidence - items.right) ** 2, (calibrated - items.right) ** 2
    flat = (share_right[items.group] - items.right) ** 2
    for name, values in (
        ("difference", items.confidence - items.right),
        ("brier", off),
        ("miscalibration", off - fitted),
        ("discrimination", flat - fitted),
        ("uncertainty", flat),
    ):
        mean = weighted_means(items, values)
        columns |= {name: mean["mean"], f"{name}_low": mean["low"], f"{name}_high": mean["high"]}
        table["n_clusters"] = mean["n_clusters"]
    for name in ("brier", "miscalibration", "discrimination", "uncertainty"):  # 0 or more by definition
        columns |= {f"{name}{end}": np.maximum(columns[f"{name}{end}"], 0) for end in ("", "_low")}
    columns |= _error(sums, of_group, n_groups)
    columns |= _null(items, bins, sums, of_group, n_groups, n_draws, rng)
    table = table.assign(**columns)
    refused = [words or NOTHING for words in items.refused]
    unknown = [table["n"].eq(0), table["n_clusters"].eq(1), table["difference_low"].isna()]
    return table.assign(undefined=np.select(unknown, [refused, ONE_CLUSTER, ALIKE], ""))


def _terms(w: Floats, y: Floats, d: Floats, ww: Floats, wy: Floats, yy: Floats, n_cells: Floats) -> Floats:
    """Of bins, w [(pbar - ybar)^2 - v]; 0 where one cluster alone holds the bin, so that v is not known.

    v = G/(G-1) sum_g (y_g - ybar w_g)^2 / w^2 over its G clusters.
    """
    share, gap = quotient(y, w), quotient(d, w)
    variance = quotient(n_cells * (yy - 2 * share * wy + share**2 * ww), (n_cells - 1) * w**2)
    return np.nan_to_num(w * (gap**2 - variance))


def _error(sums: Sums, of_group: Codes, n_groups: int) -> dict[str, Floats]:
    """The debiased error and its interval. Bins held by one cluster alone are left out, of the weights too."""
    terms = _terms(sums.w, sums.y, sums.d, sums.ww, sums.wy, sums.yy, sums.n_cells)
    several = sums.n_cells > 1
    whole = np.bincount(of_group, np.where(several, sums.w, 0), n_groups)
    total = np.bincount(of_group, terms, n_groups)
    square = quotient(total, whole)
    b = sums.of_bin
    left = sums.n_cells[b] - 1
    w, y = sums.w_cell, sums.y_cell
    fewer = _terms(
        sums.w[b] - w, sums.y[b] - y, sums.d[b] - sums.d_cell,
        sums.ww[b] - w * w, sums.wy[b] - w * y, sums.yy[b] - y * y, left,
    )  # fmt: skip
    change = fewer - terms[b]
    lost = np.where(left > 1, w, np.where(left == 1, sums.w[b], 0))  # a bin that one cluster is left of goes whole
    codes, group, _ = crossed(of_group[b], sums.cluster)
    size = len(group)
    without = quotient(total[group] + np.bincount(codes, change, size), whole[group] - np.bincount(codes, lost, size))
    is_known = ~np.isnan(without)
    n = np.bincount(group[is_known], minlength=n_groups)
    mean = quotient(np.bincount(group[is_known], without[is_known], n_groups), n)
    spread = np.bincount(group[is_known], (without - mean[group])[is_known] ** 2, n_groups)
    half = stdtrit(np.where(n > 1, n - 1, np.nan), (1 + LEVEL) / 2) * np.sqrt(quotient(spread * (n - 1), n))
    return {
        "error": np.sqrt(np.maximum(square, 0)),
        "error_low": np.sqrt(np.maximum(square - half, 0)),
        "error_high": np.sqrt(np.maximum(square + half, 0)),
    }


def _isotonic(items: Items) -> Floats:
    """Isotonic regression of right on confidence in each group; items of one confidence get one value."""
    fit = np.empty(len(items.group))
    for _, mine in items.groups():
        confidence, weight = items.confidence[mine], items.weight[mine]
        code = np.cumsum(np.append(0, np.diff(confidence) != 0))
        mass = np.bincount(code, weight)
        mean = np.bincount(code, weight * items.right[mine]) / mass
        fit[mine] = isotonic_regression(mean, weights=mass).x[code]
    return fit


def _null(
    items: Items, bins: Codes, sums: Sums, of_group: Codes, n_groups: int, n_draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """The plain error, and what perfectly calibrated data would give."""
    if not n_draws:
        return {name: np.full(n_groups, np.nan) for name in ("ece", "null", "null_high", "null_miscalibration")}
    mass = np.bincount(of_group, sums.w, n_groups)
    ece = quotient(np.bincount(of_group, np.abs(sums.d), n_groups), mass)
    effect = _design_effects(sums, of_group, n_groups)
    null, high, misfit = np.full((3, n_groups), np.nan)
    first_bin = np.searchsorted(of_group, np.arange(n_groups))
    for number, mine in items.groups():
        stated = np.rint(items.confidence[mine] * FINEST).astype(np.int64)
        of_bin = bins[mine] - first_bin[number]
        cells, times = np.unique(of_bin * (FINEST + 1) + stated, return_counts=True)
        place, hundredths = np.divmod(cells, FINEST + 1)
        value = hundredths / FINEST
        drawn = rng.binomial(times, value, size=(n_draws, len(times)))
        gaps = (drawn - times * value) @ (place[:, None] == np.arange(place.max() + 1))
        of_draws = np.abs(gaps).sum(axis=1) / len(stated) * np.sqrt(effect[number])
        null[number], high[number] = of_draws.mean(), np.quantile(of_draws, 0.95)
        misfit[number] = effect[number] * np.mean(
            [_misfit(value, draw / times, times.astype(float)) for draw in drawn[:N_FITTED]]
        )
    return {"ece": ece, "null": null, "null_high": high, "null_miscalibration": misfit}


def _design_effects(sums: Sums, of_group: Codes, n_groups: int) -> Floats:
    """By how much clusters, weights and shares change the variance of the bins' shares, against as many truth values that are independent."""
    share = quotient(sums.y, sums.w)
    spread = sums.yy - 2 * share * sums.wy + share**2 * sums.ww
    clustered = quotient(sums.n_cells * spread, (sums.n_cells - 1) * sums.w**2)
    alone = quotient(share * (1 - share), sums.n - 1)
    known = ~np.isnan(clustered) & ~np.isnan(alone)
    mass = sums.w[known] ** 2
    above = np.bincount(of_group[known], mass * clustered[known], n_groups)
    effect = quotient(above, np.bincount(of_group[known], mass * alone[known], n_groups))
    return np.where(np.isnan(effect), 1.0, effect)


def _misfit(value: Floats, mean: Floats, times: Floats) -> float:
    """The miscalibration of data whose items come as means of so many of one confidence."""
    fitted = isotonic_regression(mean, weights=times).x
    return float((times * ((value - mean) ** 2 - (fitted - mean) ** 2)).sum() / times.sum())


def scaled(
    frame: pd.DataFrame, *, rng: np.random.Generator, by: Sequence[str] = BY
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Calibration before and after temperature scaling, cross-validated over clusters.

    logit of the new confidence = logit of the old / temperature, with the temperature that minimises the negative log-likelihood of
    `right`: above 1 makes confidences meeker, below 1 bolder; 0.5 stays 0.5, so scaling cannot repair a judge that is wrong more often than
    right. All items of a cluster are in one fold, and each item is scaled by what the other folds say.

    `frame` and `by` are as for `reliability`; `rng` draws the folds. A group with fewer clusters than `N_FOLDS` has no value.

    Returns:
        One row a group: the columns of `by`, n, n_clusters, n_folds, temperature (of all items; 0.05..20),
        temperature_low and temperature_high (the range over the folds, no interval), error, brier and log_loss (natural) _before and
        _after, error and brier with _low and _high, brier_change and log_loss_change (after less before, below 0 is better)
        with _low and _high (clustered), undefined: a sentence where there is no value, else "". And the frame with the scaled confidences
        (NaN where there is none), each by a temperature that was fitted without the item's fold.
    """
    items = items_of(frame, by)
    fold = _folds(items, rng)
    temperatures, of_fold, undefined = _fitted(items, fold)
    stated = np.clip(items.confidence, NEVER_SURE, 1 - NEVER_SURE)
    after = expit(logit(stated) / of_fold[items.group, fold])
    confidence = np.full(len(frame), np.nan)
    confidence[items.places] = after
    moved = frame.assign(confidence=confidence)
    before, then = (calibration_error(part, rng=rng, by=by, n_draws=0) for part in (frame, moved))
    table = items.keys.assign(
        n=before["n"],
        n_clusters=before["n_clusters"],
        n_folds=N_FOLDS,
        temperature=temperatures,
        temperature_low=of_fold.min(axis=1),
        temperature_high=of_fold.max(axis=1),
    )
    ends = ("", "_low", "_high")
    for name in COMPARED:
        for word, errors in (("before", before), ("after", then)):
            table = table.assign(**{f"{name}_{word}{end}": errors[f"{name}{end}"] for end in ends})
    losses = {"before": _losses(stated, items.right), "after": _losses(after, items.right)}
    for word, values in losses.items():
        table[f"log_loss_{word}"] = weighted_means(items, values)["mean"]
    changes = {
        "brier": (after - items.right) ** 2 - (items.confidence - items.right) ** 2,
        "log_loss": losses["after"] - losses["before"],
    }
    for name, values in changes.items():
        change = weighted_means(items, values)
        table = table.assign(**{f"{name}_change{end}": change[end[1:] or "mean"] for end in ends})
    table["undefined"] = undefined
    return table, moved


def _folds(items: Items, rng: np.random.Generator) -> Codes:
    """The fold of each item: the clusters of each group in random order, dealt out one after another."""
    luck = rng.random(int(items.cluster.max(initial=0)) + 1)
    codes, group, cluster = crossed(items.group, items.cluster)
    order = np.lexsort((luck[cluster], group))
    sizes = np.bincount(group, minlength=len(items.keys))
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[order]]
    return place[codes] % N_FOLDS


def _fitted(items: Items, fold: Codes) -> tuple[Floats, Floats, list[str]]:
    """The temperature of each group, of each group without each fold, and why there is none."""
    n_groups = len(items.keys)
    whole, parts = np.full(n_groups, np.nan), np.full((n_groups, N_FOLDS), np.nan)
    reasons = [why or NOTHING for why in items.refused]
    for number, mine in items.groups():
        reasons[number] = _why_not(items.right[mine], fold[mine])
        if reasons[number]:
            continue
        z, right, weight, folds = _gathered(items, mine, fold[mine])
        whole[number] = _temperature(z, right, weight)
        for left_out in range(N_FOLDS):
            kept = folds != left_out
            parts[number, left_out] = _temperature(z[kept], right[kept], weight[kept])
    return whole, parts, reasons


def _why_not(right: Floats, fold: Codes) -> str:
    if len(np.unique(fold)) < N_FOLDS:
        return (
            f"There are fewer than {N_FOLDS} examples or cases, so no temperature can be fitted without some of them."
        )
    for number in range(N_FOLDS):
        mean = right[fold != number].mean()
        if mean in (0.0, 1.0):
            word = "right" if mean else "wrong"
            return f"Every label of some folds is {word}: the bolder the better, and no temperature is best."
    return ""


def _gathered(items: Items, mine: slice, fold: Codes) -> tuple[Floats, Floats, Floats, Codes]:
    """Items of one confidence and fold as one: the likelihood is the same, and there are few."""
    table = pd.DataFrame(
        {"z": logit(np.clip(items.confidence[mine], NEVER_SURE, 1 - NEVER_SURE)), "fold": fold,
         "weight": items.weight[mine], "right": items.weight[mine] * items.right[mine]}
    )  # fmt: skip
    gathered = table.groupby(["z", "fold"], as_index=False)[["weight", "right"]].sum()
    weight = gathered["weight"].to_numpy()
    return gathered["z"].to_numpy(), gathered["right"].to_numpy() / weight, weight, gathered["fold"].to_numpy()


def _temperature(z: Floats, right: Floats, weight: Floats) -> float:
    """The temperature of least loss: sum w [log(1 + exp(z/T)) - y z/T]."""

    def loss(log_temperature: float) -> float:
        bold = z / np.exp(log_temperature)
        return float((weight * (np.logaddexp(0, bold) - right * bold)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(COLDEST, HOTTEST), method="bounded").x))


def _losses(confidence: Floats, right: Floats) -> Floats:
    sure: Floats = np.clip(confidence, NEVER_SURE, 1 - NEVER_SURE)
    return -(right * np.log(sure) + (1 - right) * np.log1p(-sure))

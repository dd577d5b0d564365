"""Whether stated confidence is borne out: reliability, debiased error, discrimination, temperature; and in words."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy  # its part `optimize` is loaded at its first use: Triage needs none of it
from scipy.special import expit, logit, stdtrit

from evalcore.calibration import SEED
from evalcore.stats.arrays import Floats, Numbers as Codes, cells_of, quotient
from evalcore.stats.intervals import LEVEL, NO_VALUE, clustered_means, grouped_shares, percent_words
from evalcore.stats.wording import counted, decimal, listed
from evalcore.triage.words import Row, number_words

CLUSTERS_A_BIN = 5
BY = ("group",)
N_BINS, N_DRAWS = 10, 200
FINEST = 100
"""For the null, confidences are rounded to 1/100, so that there are few different ones."""
N_FITTED = 50
"""Of the draws, those that an isotonic regression is fitted to."""
N_FOLDS = 5
NEVER_SURE = 1e-3
"""Confidences lie this far from 0 and 1 at least: a wrong label with confidence 1 would cost without end."""
COLDEST, HOTTEST = np.log(0.05), np.log(20)
ENDS = ("", "_low", "_high")
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
    refused: list[str]
    """Why a group has no value where it has no item."""
    places: Codes
    """In which row of the frame each item stands."""

    def groups(self) -> Iterator[tuple[int, slice]]:
        """The groups that have items, by number, and where these are."""
        bounds = np.append(0, np.cumsum(self.counts()))
        return ((number, slice(start, end)) for number, (start, end) in enumerate(pairwise(bounds)) if end > start)

    def counts(self, groups: Codes | None = None) -> Codes:
        """How many items, or numbers of groups, are of each group."""
        return np.bincount(self.group if groups is None else groups, minlength=len(self.keys))

    def mean(self, values: Floats) -> Floats:
        """The weighted mean of each group's values."""
        n = len(self.keys)
        return quotient(np.bincount(self.group, self.weight * values, n), np.bincount(self.group, self.weight, n))

    def means(self, values: Floats) -> pd.DataFrame:
        """The same with its clustered interval; with weights a ratio of sums."""
        if not (self.weight == 1).all():
            mean = self.mean(values)
            scale = quotient(self.counts().astype(float), np.bincount(self.group, self.weight, len(self.keys)))
            values = mean[self.group] + (values - mean[self.group]) * self.weight * scale[self.group]
        return clustered_means(self.group, self.cluster, values, n_cells=len(self.keys))


def items_of(frame: pd.DataFrame, by: Sequence[str]) -> Items:
    """The items of a frame as `reliability` takes it."""
    groups, keys = cells_of(frame, by)
    confidence, right = (frame[name].to_numpy(dtype=float) for name in ("confidence", "right"))
    weight = frame["weight"].to_numpy(dtype=float) if "weight" in frame else np.ones(len(frame))
    enters = ~(np.isnan(confidence) | np.isnan(right) | np.isnan(weight))
    reasons = pd.Series(dtype=object)
    if "refused" in frame and not enters.all():
        words = frame["refused"].astype(object).fillna("").to_numpy()
        reasons = pd.Series(words[~enters]).groupby(groups[~enters]).max()
    refused = [str(reasons.get(number, "")) or NOTHING for number in range(len(keys))]
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
    """The bin of each item over all groups, and each bin's group. Items of one confidence stay in one bin."""
    if not len(items.group):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    n = items.counts()
    n_clusters = items.counts(crossed(items.group, items.cluster)[1])
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
    """Weighted sums over bins, and over cells of a bin and a cluster: w weights, y right, d confidence less right.

    ww, wy, yy are sums over a bin's cells of w_cell^2, w_cell y_cell, y_cell^2; n counts its items.
    """

    of_bin: Codes
    cluster: Codes
    w_cell: Floats
    y_cell: Floats
    d_cell: Floats
    w: Floats
    y: Floats
    d: Floats
    ww: Floats
    wy: Floats
    yy: Floats
    n_cells: Floats
    n: Floats


def sums_of(items: Items, bins: Codes, n: int) -> Sums:
    """The sums of n bins."""
    codes, of_bin, cluster = crossed(bins, items.cluster)
    right, gap = items.weight * items.right, items.weight * (items.confidence - items.right)
    w, y, d = (np.bincount(codes, column, len(of_bin)).astype(np.float64) for column in (items.weight, right, gap))
    of_bins = (np.bincount(of_bin, column, n).astype(np.float64) for column in (w, y, d, w * w, w * y, y * y))
    counts = (np.bincount(codes, minlength=n).astype(np.float64) for codes in (of_bin, bins))
    return Sums(of_bin, cluster, w, y, d, *of_bins, *counts)


def reliability(frame: pd.DataFrame, *, n_bins: int = N_BINS, by: Sequence[str] = BY) -> pd.DataFrame:
    """How often labels are right, by how sure they were stated: the points and bars of a reliability diagram.

    Bins hold equally many items, as far as ties allow, and leave five clusters to each. `frame` has a row an item:
    the columns of `by` (the group), cluster, confidence, right (both in [0, 1]; NaN: left out), and where there are
    any weight and refused (why there is no confidence). Gives a row a group and bin, by confidence; low and high
    are 95 %, Wilson on the effective number of items, clustered.
    """
    items = items_of(frame, by)
    bins, of_group = bins_of(items, n_bins)
    n = len(of_group)
    counts = np.bincount(bins, minlength=n)
    mass = np.bincount(bins, items.weight, n)
    scaled = items.weight * quotient(counts.astype(float), mass)[bins]  # the weights of a bin add up to its items
    shares = grouped_shares(items.right * scaled, items.cluster, bins, n, sizes=scaled)
    starts = np.cumsum(counts) - counts
    table = items.keys.take(of_group).reset_index(drop=True)
    table["bin"] = np.arange(n) - np.searchsorted(of_group, of_group, side="left")
    table["lowest"], table["highest"] = items.confidence[starts], items.confidence[starts + counts - 1]
    table["mean_confidence"] = quotient(np.bincount(bins, items.weight * items.confidence, n), mass)
    ends = shares[["share", "low", "high"]].set_axis(["share_right", "low", "high"], axis=1)
    return table.join(ends).assign(n=counts, n_clusters=shares["n_clusters"])


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

        error   sqrt of sum w [(pbar - ybar)^2 - v], floored at 0; v: the clustered variance of ybar, with one item a
                cluster and right 0 or 1 it is ybar (1 - ybar)/(n - 1). Plain L2 adds v and is never 0
        ece     sum w |pbar - ybar|, which is above 0 for perfectly calibrated data too; hence never without its null
        null    the mean of ece over drawn data of the same confidences that are right as often as they state, times
                the root of the design effect; null_high is exceeded by 5 % of them

    Brier's score, mean (p - y)^2 = miscalibration - discrimination + uncertainty, with the isotonic regression c of
    y on p and the mean r of y: miscalibration = mean (p-y)^2 - mean (c-y)^2, discrimination = mean (r-y)^2 - mean
    (c-y)^2, uncertainty = mean (r-y)^2. c fits chance too: null_miscalibration is what perfectly calibrated data
    give. Intervals cluster: of error a delete-one-cluster jackknife of its square, of the others by linearisation
    (too narrow for a miscalibration near 0). `rng` is chance for the null alone, of `n_draws` (0: no null, and no
    ece either).

    Gives a row a group of the frame; difference is mean_confidence less share_right; undefined: a sentence where
    there is no value or no interval. Values are NaN without items, intervals and error with one cluster.

    References:
        Kumar, Liang and Ma 2019 (debiased error); Dimitriadis, Gneiting and Jordan 2021 (CORP).
    """
    items = items_of(frame, by)
    bins, of_group = bins_of(items, n_bins)
    sums = sums_of(items, bins, len(of_group))
    table = items.keys.assign(n=items.counts(), n_left_out=items.n_left_out, n_bins=items.counts(of_group))
    share_right = items.mean(items.right)
    columns: dict[str, Any] = {"mean_confidence": items.mean(items.confidence), "share_right": share_right}
    off, fitted = (items.confidence - items.right) ** 2, (_isotonic(items) - items.right) ** 2
    flat = (share_right[items.group] - items.right) ** 2
    for name, values in (
        ("difference", items.confidence - items.right),
        ("brier", off),
        ("miscalibration", off - fitted),
        ("discrimination", flat - fitted),
        ("uncertainty", flat),
    ):
        mean = items.means(values)
        table["n_clusters"] = mean["n_clusters"]
        columns |= {f"{name}{end}": mean[end[1:] or "mean"] for end in ENDS}
        if name != "difference":  # 0 or more by definition
            columns |= {f"{name}{end}": np.maximum(columns[f"{name}{end}"], 0) for end in ("", "_low")}
    columns |= _error(sums, of_group, len(items.keys))
    columns |= _null(items, bins, sums, of_group, n_draws, rng)
    table = table.assign(**columns)
    unknown = [table["n"].eq(0), table["n_clusters"].eq(1), table["difference_low"].isna()]
    return table.assign(undefined=np.select(unknown, [items.refused, ONE_CLUSTER, ALIKE], ""))


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
    whole = np.bincount(of_group, np.where(sums.n_cells > 1, sums.w, 0), n_groups)
    total = np.bincount(of_group, terms, n_groups)
    square = quotient(total, whole)
    b, w, y = sums.of_bin, sums.w_cell, sums.y_cell
    left = sums.n_cells[b] - 1
    squares = (sums.ww[b] - w * w, sums.wy[b] - w * y, sums.yy[b] - y * y)
    fewer = _terms(sums.w[b] - w, sums.y[b] - y, sums.d[b] - sums.d_cell, *squares, left)
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
    ends = {"error": square, "error_low": square - half, "error_high": square + half}
    return {name: np.sqrt(np.maximum(end, 0)) for name, end in ends.items()}


def _isotonic(items: Items) -> Floats:
    """Isotonic regression of right on confidence in each group; items of one confidence get one value."""
    fit = np.empty(len(items.group))
    for _, mine in items.groups():
        confidence, weight = items.confidence[mine], items.weight[mine]
        code = np.cumsum(np.append(0, np.diff(confidence) != 0))
        mass = np.bincount(code, weight)
        mean = np.bincount(code, weight * items.right[mine]) / mass
        fit[mine] = scipy.optimize.isotonic_regression(mean, weights=mass).x[code]
    return fit


def _null(
    items: Items, bins: Codes, sums: Sums, of_group: Codes, n_draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    n_groups = len(items.keys)
    ece, null, high, misfit = np.full((4, n_groups), np.nan)
    if n_draws:
        mass = np.bincount(of_group, sums.w, n_groups)
        ece = quotient(np.bincount(of_group, np.abs(sums.d), n_groups), mass)
        effect = _design_effects(sums, of_group, n_groups)
        first_bin = np.searchsorted(of_group, np.arange(n_groups))
        for number, mine in items.groups():
            stated = np.rint(items.confidence[mine] * FINEST).astype(np.int64)
            cells, times = np.unique((bins[mine] - first_bin[number]) * (FINEST + 1) + stated, return_counts=True)
            place, hundredths = np.divmod(cells, FINEST + 1)
            value = hundredths / FINEST
            drawn = rng.binomial(times, value, size=(n_draws, len(times)))
            gaps = (drawn - times * value) @ (place[:, None] == np.arange(place.max() + 1))
            of_draws = np.abs(gaps).sum(axis=1) / len(stated) * np.sqrt(effect[number])
            null[number], high[number] = of_draws.mean(), np.quantile(of_draws, 0.95)
            misfits = []
            for mean in drawn[:N_FITTED] / times:
                fitted = scipy.optimize.isotonic_regression(mean, weights=times.astype(float)).x
                misfits.append((times * ((value - mean) ** 2 - (fitted - mean) ** 2)).sum() / times.sum())
            misfit[number] = effect[number] * np.mean(misfits)
    return {"ece": ece, "null": null, "null_high": high, "null_miscalibration": misfit}


def _design_effects(sums: Sums, of_group: Codes, n_groups: int) -> Floats:
    """By how much clusters, weights and shares change the variance of the bins' shares."""
    share = quotient(sums.y, sums.w)
    spread = sums.yy - 2 * share * sums.wy + share**2 * sums.ww
    clustered = quotient(sums.n_cells * spread, (sums.n_cells - 1) * sums.w**2)
    alone = quotient(share * (1 - share), sums.n - 1)
    known = ~np.isnan(clustered) & ~np.isnan(alone)
    mass = sums.w[known] ** 2
    above = np.bincount(of_group[known], mass * clustered[known], n_groups)
    effect = quotient(above, np.bincount(of_group[known], mass * alone[known], n_groups))
    return np.where(np.isnan(effect), 1.0, effect)


class Calibrated(NamedTuple):
    """`reliability` and `calibration_error`, and which groups are majorities of several judges."""

    reliability: pd.DataFrame
    errors: pd.DataFrame
    majorities: frozenset[str] = frozenset()


def calibrated(items: pd.DataFrame, by: Sequence[str] = BY) -> Calibrated:
    """The reliability of items, and how far they are off."""
    return Calibrated(reliability(items, by=by), calibration_error(items, rng=np.random.default_rng(SEED), by=by))


def scaled(
    frame: pd.DataFrame, *, rng: np.random.Generator, by: Sequence[str] = BY
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Calibration before and after temperature scaling, cross-validated over clusters; and the scaled frame.

    logit of the new confidence = logit of the old / temperature, with the temperature that minimises the negative
    log-likelihood of `right`: above 1 makes confidences meeker, below 1 bolder. Each cluster is scaled by what the
    other folds say, which `rng` draws; a group with fewer clusters than `N_FOLDS` has no value. temperature is of
    all items (0.05..20), with the range over the folds, no interval; log_loss is natural; a change is after less
    before, below 0 is better.
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
    losses = [
        -(items.right * np.log(sure) + (1 - items.right) * np.log1p(-sure))
        for sure in (np.clip(values, NEVER_SURE, 1 - NEVER_SURE) for values in (stated, after))
    ]
    columns: dict[str, Any] = {"n": before["n"], "n_clusters": before["n_clusters"], "n_folds": N_FOLDS}
    columns |= {"temperature": temperatures, "temperature_low": of_fold.min(axis=1)}
    columns |= {"temperature_high": of_fold.max(axis=1)}
    for name in ("error", "brier"):
        for word, errors in (("before", before), ("after", then)):
            columns |= {f"{name}_{word}{end}": errors[f"{name}{end}"] for end in ENDS}
    columns |= {
        f"log_loss_{word}": items.means(loss)["mean"] for word, loss in zip(("before", "after"), losses, strict=True)
    }
    changes = {
        "brier": (after - items.right) ** 2 - (items.confidence - items.right) ** 2,
        "log_loss": losses[1] - losses[0],
    }
    for name, values in changes.items():
        change = items.means(values)
        columns |= {f"{name}_change{end}": change[end[1:] or "mean"] for end in ENDS}
    return items.keys.assign(**columns, undefined=undefined), moved


def _folds(items: Items, rng: np.random.Generator) -> Codes:
    """The fold of each item: the clusters of each group in random order, dealt out one after another."""
    luck = rng.random(int(items.cluster.max(initial=0)) + 1)
    codes, group, cluster = crossed(items.group, items.cluster)
    order = np.lexsort((luck[cluster], group))
    sizes = items.counts(group)
    place = np.empty(len(group), dtype=np.int64)
    place[order] = np.arange(len(group)) - (np.cumsum(sizes) - sizes)[group[order]]
    return place[codes] % N_FOLDS


def _fitted(items: Items, fold: Codes) -> tuple[Floats, Floats, list[str]]:
    """The temperature of each group, of each group without each fold, and why there is none."""
    whole, parts = np.full(len(items.keys), np.nan), np.full((len(items.keys), N_FOLDS), np.nan)
    reasons = list(items.refused)
    for number, mine in items.groups():
        reasons[number] = _why_not(items.right[mine], fold[mine])
        if reasons[number]:
            continue
        sure = np.clip(items.confidence[mine], NEVER_SURE, 1 - NEVER_SURE)
        weight = items.weight[mine]
        right = weight * items.right[mine]
        table = pd.DataFrame({"z": logit(sure), "fold": fold[mine], "weight": weight, "right": right})
        # items of one confidence and fold as one: the likelihood is the same, and there are few
        table = table.groupby(["z", "fold"], as_index=False)[["weight", "right"]].sum()
        whole[number] = _temperature(table)
        parts[number] = [_temperature(table.loc[table["fold"].ne(left_out)]) for left_out in range(N_FOLDS)]
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


def _temperature(table: pd.DataFrame) -> float:
    """The temperature of least loss: sum w [log(1 + exp(z/T)) - y z/T]."""
    z, weight = table["z"].to_numpy(), table["weight"].to_numpy()
    right = table["right"].to_numpy() / weight

    def loss(log_temperature: float) -> float:
        bold = z / np.exp(log_temperature)
        return float((weight * (np.logaddexp(0, bold) - right * bold)).sum())

    return float(np.exp(scipy.optimize.minimize_scalar(loss, bounds=(COLDEST, HOTTEST), method="bounded").x))


def _interval(row: Row, name: str) -> str:
    return number_words(*(row[f"{name}{end}"] for end in ENDS))


def error_columns(errors: pd.DataFrame) -> dict[str, list[str]]:
    """How far off, by the headers of a table: a row of `calibration_error` each."""
    rows = errors.to_dict(orient="records")
    plain = [f"{row['ece']:.2f} (perfect: {row['null']:.2f}, up to {row['null_high']:.2f})" for row in rows]
    return {
        "Mean confidence": [percent_words(row["mean_confidence"]) for row in rows],
        "Right": [percent_words(row["share_right"]) for row in rows],
        "Difference": [_interval(row, "difference") for row in rows],
        "Debiased error": [_interval(row, "error") for row in rows],
        "Plain error (ECE)": np.where(errors["ece"].isna(), NO_VALUE, plain).tolist(),
    }


def brier_columns(errors: pd.DataFrame) -> dict[str, list[str]]:
    """Brier's score in its parts, likewise."""
    rows = errors.to_dict(orient="records")
    names = {"Brier's score": "brier", "Miscalibration": "miscalibration"}
    names |= {"Discrimination": "discrimination", "Uncertainty": "uncertainty"}
    columns = {head: [_interval(row, name) for row in rows] for head, name in names.items()}
    for place, row in enumerate(rows):
        if not (math.isnan(row["miscalibration"]) or math.isnan(row["null_miscalibration"])):
            columns["Miscalibration"][place] += f" (perfect: {row['null_miscalibration']:.2f})"
    return columns


def judge_finding(row: Row, name: str, *, label: str, cluster: str, is_majority: bool = False) -> str:
    """How far a judge's stated confidence is borne out; or, `is_majority`, the share of the judges that agree."""
    labels = counted(row["n"], label, "criteria" if label == "criterion" else None)
    sure = percent_words(row["mean_confidence"])
    subject = f"The {name} is carried by {sure} of the votes" if is_majority else f"{name} is {sure} sure"
    head = (
        f"{subject} on average and right on {percent_words(row['share_right'])} of "
        f"{labels} in {counted(row['n_clusters'], cluster)}"
    )
    error, difference = f"debiased error {_interval(row, 'error')}", _interval(row, "difference")
    neither = f"neither over- nor under-confident (difference {difference})"
    plain, usual = row.get("ece", math.nan), row.get("null_high", math.nan)
    if math.isnan(row["difference_low"]):
        return f"{head}. {row['undefined']}" if row["n"] else str(row["undefined"])
    if row["difference_low"] > 0:
        return f"{head}: over-confident by {difference}, {error}."
    if row["difference_high"] < 0:
        under = number_words(*(-row[f"difference{end}"] for end in ("", "_high", "_low")))
        return f"{head}: under-confident by {under}, {error}."
    if row["error_low"] > 0:
        return f"{head}. On average it is {neither}, but off along the way: {error}."
    if plain > usual:
        worse = f"{plain:.2f} is more than 95 % of perfectly calibrated data give (up to {usual:.2f})"
        return f"{head}. On average it is {neither}, but its plain error of {worse}; {error}."
    ends = ("difference_low", "difference_high", "error_high")
    farthest = decimal(max(abs(row[name]) for name in ends if not math.isnan(row[name])))
    return (
        f"{head}. Its confidences are consistent with this (difference {difference}, {error}); with {labels} errors "
        f"of up to {farthest} cannot be excluded."
    )


def reasons(table: pd.DataFrame) -> list[str]:
    """Why rows of a table (group, or model and format) have no value (`undefined`): each reason once with its rows."""
    names = table["group"] if "group" in table else table["model"].astype(str) + " in " + table["format"].astype(str)
    lacking = table["undefined"].ne("")
    by_reason = names.astype(str).loc[lacking].groupby(table["undefined"].loc[lacking], sort=False)
    return [f"{listed(list(rows))}: {why}" for why, rows in by_reason]

"""Temperature scaling: one number that makes confidences bolder or meeker, fitted where it is not judged."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from evalcore.calibration.reliability import (
    BY,
    NOTHING,
    Codes,
    Floats,
    Items,
    calibration_error,
    crossed,
    items_of,
    weighted_means,
)

N_FOLDS = 5
NEVER_SURE = 1e-3
"""Confidences are taken as lying this far from 0 and 1 at least: a label that is wrong with confidence 1 would cost without end."""
COLDEST, HOTTEST = np.log(0.05), np.log(20)
COMPARED = ("error", "brier")


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
        for word, change in (("before", before), ("after", then)):
            table = table.assign(**{f"{name}_{word}{end}": change[f"{name}{end}"] for end in ends})
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
    reasons = []
    bounds = np.append(0, np.cumsum(np.bincount(items.group, minlength=n_groups)))
    for number, (start, end) in enumerate(pairwise(bounds)):
        mine = slice(start, end)
        why = _why_not(items.right[mine], fold[mine]) if end > start else items.refused[number] or NOTHING
        reasons.append(why)
        if why:
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

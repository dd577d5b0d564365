"""Triage by physicians of the study: confusion matrix, rates, coefficients and harm of the responses that they have read, clustered by case.

Counted are responses to clear cases, not cases: several responses to one case may have been read, so a case can enter more than once, and every interval
here is clustered by case. Shares are those of `drawn_votes`, each response weighted by 1 / (its probability of being drawn x the responses of its case), so
that each case counts once, as physicians-only does in `triage_corrected`; counts are of what was read. What somebody chose to read, or read with the judge
in view, says nothing of the rest and is in none of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evalcore.stats.intervals import clustered_means, grouped_shares
from evalcore.triage.corrected import VOTES, drawn_votes
from evalcore.triage.data import TriageData
from evalcore.triage.harm import HARM_COLUMNS, costs, highest
from evalcore.triage.panels import N_LEVELS, Kind, distributions
from evalcore.triage.rates import (
    ABOVE_A,
    BELOW_D,
    KEYS,
    MIN_CASES,
    N_CELLS,
    NO_SPREAD,
    OF_ALL,
    OF_EMERGENCIES,
    RULES,
    SCORES,
    TOO_FEW,
    Base,
    Floats,
    Numbers,
    as_rates,
    clustered_summary,
    coded,
    repeated,
)
from evalcore.triage.reads import response_levels

NOT_READ = "no response to a clear case was drawn and read blind"
_BASES: Mapping[Base, Base] = {
    OF_ALL: Base("of the one response", "of all {} responses", NOT_READ),
    OF_EMERGENCIES: Base(
        "of the one response to an emergency", "of {} responses to emergencies", "no response to an emergency was drawn and read blind"
    ),
    BELOW_D: Base(
        "of the one response to a case below D", "of {} responses to cases below D", "no response to a case below D was drawn and read blind"
    ),
    ABOVE_A: Base(
        "of the one response to a case above A", "of {} responses to cases above A", "no response to a case above A was drawn and read blind"
    ),
}  # fmt: skip
"""What rates are of, where responses are counted."""


@dataclass(frozen=True)
class _Items:
    """The responses to clear cases that have a level by physicians.

    Attributes:
        names: One row a model and format.
        number: By response, its row of `names`.
        row: By response, its case.
        gold: By response, the gold of its case, 0..3.
        votes: By response and level, what physicians say; adds up to 1.
        weights: By response, in units of a case.
    """

    names: pd.DataFrame
    number: Numbers
    row: Numbers
    gold: Numbers
    votes: Floats
    weights: Floats

    def where(self, kept: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> "_Items":
        return _Items(
            self.names, self.number[kept], self.row[kept], self.gold[kept], self.votes[kept], self.weights[kept]
        )

    def shares(self, hits: Floats, group: Numbers, n_groups: int) -> pd.DataFrame:
        """Weighted shares, clustered by case: of each group the weights are brought to the sum (sum w)^2 / sum w^2, as many responses as they are worth."""
        whole, squares = (np.bincount(group, power, n_groups) for power in (self.weights, self.weights**2))
        sizes = self.weights * (whole / np.where(squares > 0, squares, 1))[group]
        return grouped_shares(hits * sizes, self.row, group, n_groups, sizes=sizes)


def physicians_cells(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """Confusion matrices: of responses that physicians have read, the level they give it, by the case's gold.

    Returns:
        Sixteen rows a model and format of which a response to a clear case has a level, in order: model, format, gold, predicted (1..4; here what
        physicians say), n (responses; halves where a level lies between two or readers differ), n_gold (of them with this gold), share (weighted),
        low, high (95 %, Wilson on the effective number, clustered by case; NaN where nothing of the row was read), n_volunteered (responses beside
        them, that somebody chose or that were read with the judge in view).
    """
    items, is_drawn = _items(triage_data, settled=settled)
    drawn = items.where(is_drawn)
    group = items.number * N_LEVELS + items.gold
    n_groups = len(items.names) * N_LEVELS
    found = repeated(items.names, N_CELLS).assign(
        gold=np.tile(np.repeat(np.arange(1.0, N_LEVELS + 1), N_LEVELS), len(items.names)),
        predicted=np.tile(np.arange(1.0, N_LEVELS + 1), n_groups),
    )
    columns: dict[str, Floats] = {
        name: np.zeros((n_groups, N_LEVELS)) for name in ("n", "n_gold", "share", "low", "high", "n_volunteered")
    }
    for place, vote in enumerate(items.votes.T):
        told = drawn.shares(vote[is_drawn], group[is_drawn], n_groups)
        for column in ("share", "low", "high"):
            columns[column][:, place] = told[column].to_numpy(dtype=float)
        columns["n"][:, place] = np.bincount(group[is_drawn], vote[is_drawn], n_groups)
        columns["n_gold"][:, place] = np.bincount(group[is_drawn], minlength=n_groups)
        columns["n_volunteered"][:, place] = np.bincount(group[~is_drawn], vote[~is_drawn], n_groups)
    return found.assign(**{name: value.reshape(-1) for name, value in columns.items()})


def physicians_rates(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """How often what physicians read is right, too high, too low, and dangerously so.

    Returns:
        As `triage.rates`, of the same models and formats as `physicians_cells`; k and n count responses, value is weighted, intervals are Wilson's on the
        effective number, clustered by case.
    """
    items = _drawn(triage_data, settled=settled)
    size = (len(items.names), len(RULES))
    k, n, value, low, high = (np.full(size, np.nan) for _ in range(5))
    for place, rule in enumerate(RULES.values()):
        part = items.where(rule.base[items.gold, 0])
        hits = (part.votes * rule.hits[part.gold]).sum(axis=1)
        told = part.shares(hits, part.number, size[0])
        for column, source in ((value, "share"), (low, "low"), (high, "high")):
            column[:, place] = told[source]
        k[:, place] = np.bincount(part.number, hits, size[0])
        n[:, place] = np.bincount(part.number, minlength=size[0])
    made = as_rates(items.names, list(RULES), k, n, [_BASES[rule.of] for rule in RULES.values()], bounds=(low, high))
    return made.assign(value=value.ravel())


def physicians_summary(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """Coefficients of the whole matrices, weighted; as `triage_scores.summary`, with n responses and a case left out at a time."""
    items = _drawn(triage_data, settled=settled)
    each = np.zeros((len(items.gold), N_LEVELS, N_LEVELS))
    each[np.arange(len(items.gold)), items.gold] = items.votes * items.weights[:, None]
    found = clustered_summary(items.names, items.number, items.row, each)
    found = found.assign(n=np.bincount(items.number, minlength=len(items.names)))
    nothing = found["n"].eq(0)
    return found.assign(**{f"{name}_reason": found[f"{name}_reason"].mask(nothing, NOT_READ) for name in SCORES})


def physicians_harm(
    triage_data: TriageData, under: float, over: float, *, steps: bool = True, settled: bool = False
) -> pd.DataFrame:
    """What a response costs on average by what physicians read, weighted, with a t interval clustered by case (`intervals.clustered_means`).

    Returns:
        As `harm.expected_harm`; n, n_under and n_over count responses, and may have halves.
    """
    items = _drawn(triage_data, settled=settled)
    step = np.arange(N_LEVELS) - items.gold[:, None]

    def mean(cost: Floats) -> pd.DataFrame:
        values = (items.votes * cost).sum(axis=1)
        return clustered_means(items.number, items.row, values, n_cells=len(items.names), weights=items.weights)

    whole = mean(costs(step, under, over, steps=steps))
    n = whole["n_values"].to_numpy(dtype=float)
    few = whole["n_clusters"].to_numpy() < MIN_CASES
    same = whole["low"].isna().to_numpy()
    reason = np.select([n == 0, few, same], [NOT_READ, TOO_FEW, NO_SPREAD], "").astype(object)
    parts = {"of_under": costs(step, under, 0, steps=steps), "of_over": costs(step, 0, over, steps=steps)}
    counted = {
        "n_under": costs(step, 1, 0, steps=False),
        "n_over": costs(step, 0, 1, steps=False),
        "steps_under": costs(step, 1, 0, steps=True),
        "steps_over": costs(step, 0, 1, steps=True),
    }
    means = {name: mean(cost)["mean"].to_numpy() for name, cost in parts.items()}
    counts = {
        name: np.bincount(items.number, (items.votes * cost).sum(axis=1), len(items.names))
        for name, cost in counted.items()
    }
    return items.names.assign(
        **(means | counts),
        n=whole["n_values"],
        harm=whole["mean"],
        low=whole["low"].clip(lower=0).mask(few),
        high=whole["high"].clip(upper=highest(under, over, steps=steps)).mask(few),
        reason=reason,
    )[list(HARM_COLUMNS)]


def _drawn(triage_data: TriageData, *, settled: bool) -> _Items:
    items, is_drawn = _items(triage_data, settled=settled)
    return items.where(is_drawn)


def _items(triage_data: TriageData, *, settled: bool) -> "tuple[_Items, np.ndarray[tuple[int], np.dtype[np.bool_]]]":
    """The responses to clear cases with a level by physicians, and which of them were drawn; the others count the level that stands."""
    kind, gold = (
        triage_data.cases["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool),
        triage_data.cases["gold"].to_numpy(dtype=float),
    )
    drawn = drawn_votes(triage_data, settled=settled)
    other = response_levels(triage_data)
    other = other.loc[~other["is_drawn"] & other["level"].notna()]
    shares = pd.DataFrame(
        distributions(np.arange(len(other)), other["level"].to_numpy(dtype=float), len(other)), columns=list(VOTES)
    )
    other = other[["sample", "row"]].reset_index(drop=True).join(shares)
    together = pd.concat([drawn.assign(of_drawn=True), other.assign(of_drawn=False)], ignore_index=True)
    together = together.loc[kind[together["row"].to_numpy(dtype=np.int64)]]
    samples = triage_data.samples[list(KEYS)].take(together["sample"].to_numpy(dtype=np.int64)).reset_index(drop=True)
    numbers, names = coded(samples, KEYS)
    row = together["row"].to_numpy(dtype=np.int64)
    votes = together[list(VOTES)].to_numpy(dtype=float)
    weights = 1 / (
        together["inclusion_probability"].fillna(1).to_numpy(dtype=float) * _texts(triage_data, names, numbers, row)
    )
    is_drawn = together["of_drawn"].to_numpy(dtype=bool)
    return _Items(names, numbers, row, gold[row].astype(np.int64) - 1, votes, weights), is_drawn


def _texts(triage_data: TriageData, names: pd.DataFrame, numbers: Numbers, row: Numbers) -> Numbers:
    """By response read, how many responses with a text its case has in that model and format: any of them could have been drawn."""
    is_read = np.zeros(len(triage_data.cases), dtype=bool)
    is_read[row] = True
    samples = triage_data.samples
    rows = samples["row"].to_numpy(dtype=np.int64)
    near = np.flatnonzero(is_read[rows] & samples["has_text"].to_numpy(dtype=bool))
    n_formats = len(samples["format"].cat.categories)

    def keyed(table: pd.DataFrame) -> Numbers:
        return np.asarray(
            table["model"].cat.codes.astype(np.int64) * n_formats + table["format"].cat.codes, dtype=np.int64
        )

    n_keys = len(samples["model"].cat.categories) * n_formats
    keys, n = np.unique(rows[near] * n_keys + keyed(samples.iloc[near]), return_counts=True)
    found: Numbers = n[np.searchsorted(keys, row * n_keys + keyed(names)[numbers])]
    return found

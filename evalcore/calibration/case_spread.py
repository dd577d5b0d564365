"""A model's spread over the levels of care beside the panel's, case by case; and the same in words."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalcore.calibration import SEED
from evalcore.calibration.confidence import FEWEST, who
from evalcore.stats.arrays import Floats, Numbers as Codes, cells_of, quotient
from evalcore.stats.intervals import NO_VALUE, clustered_means
from evalcore.stats.wording import counted
from evalcore.triage.data import N_LEVELS, SHARES, Kind, TriageData
from evalcore.triage.predictions import COUNTS, joined, levels_by
from evalcore.triage.words import Row, number_words

DISTANCE, ENTROPY_PANEL, ENTROPY_MODEL, CONCENTRATION = "distance", "entropy_panel", "entropy_model", "concentration"
MEASURED = (ENTROPY_PANEL, ENTROPY_MODEL, CONCENTRATION)
MEASURES = {
    DISTANCE: "Distance",
    ENTROPY_PANEL: "Panel's entropy (by chance)",
    ENTROPY_MODEL: "Model's entropy (by chance)",
    CONCENTRATION: "Concentration (by chance)",
}
"""What `summary` averages, as headers; all but the first, whose expected value is 0, stand beside their floor."""
MODEL_SHARES = ("m_A", "m_B", "m_C", "m_D")
BY = ("model", "format")
N_DRAWS = 400
MOST_DRAWS = 400_000
"""Over all different panels together, since their floors are averaged."""
BLOCK = 250
NO_CASES = "No case has both a panel of two votes and a valid sample of the model."
NO_PAIRS = "No case with a panel has two valid samples, which the unbiased distance needs."
NO_SPREAD = (
    "No ambiguous case has both the votes of a panel and two valid samples of a model, so no spread can be shown."
)


def entropies(h: Floats, m: Floats) -> dict[str, Floats]:
    """How widely the distributions of panels `h` and models `m` (last axis: levels) spread, in bits.

    >>> h, m = np.array([[0, 0, 0.7, 0.3]]), np.array([[0, 0, 0.2, 0.8]])
    >>> {name: round(float(x[0]), 6) for name, x in entropies(h, m).items()}
    {'entropy_panel': 0.881291, 'entropy_model': 0.721928, 'concentration': 0.159363}
    """
    of_panel, of_model = _entropy(h), _entropy(m)
    return {"entropy_panel": of_panel, "entropy_model": of_model, "concentration": of_panel - of_model}


def _entropy(p: Floats) -> Floats:
    return np.asarray(0.0 - (p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1))


def floors(votes: Floats, rows: Codes, n_samples: Codes, *, rng: np.random.Generator) -> dict[str, Floats]:
    """The spread of a model that votes as each case's physicians vote; NaN with fewer than two votes.

    The mean over draws of as many votes as the panel has, and as many samples as the model has, from the physicians
    `behind` the panel: few of either show less spread than what they are drawn from. `votes`: of each case on A,
    A/B, ..., D; of each wanted floor its case and number of valid samples.
    """
    panels, of_case = np.unique(votes, axis=0, return_inverse=True)
    most = int(n_samples.max(initial=0)) + 1
    keys, which = np.unique(of_case.ravel()[rows] * most + n_samples, return_inverse=True)
    panel, times = np.divmod(keys, most)
    n_draws = max(min(N_DRAWS, MOST_DRAWS // max(len(keys), 1)), 1)
    shares = behind(panels)
    means = {name: np.full(len(keys), np.nan) for name in MEASURED}
    some = np.flatnonzero((panels.sum(axis=1) > 1)[panel] & (times > 0))
    for start in range(0, len(some), BLOCK):
        block = some[start : start + BLOCK]
        drawn = _drawn(shares[panel[block]], panels[panel[block]].sum(axis=1), times[block], n_draws, rng)
        for name, values in drawn.items():
            means[name][block] = values.mean(axis=1)
    return {name: values[which.ravel()] for name, values in means.items()}


def behind(votes: Floats) -> Floats:
    """The votes of the physicians behind panels: counts on A, A/B, ..., D as shares that are spread a little further.

    Two votes drawn from n votes with replacement differ (n-1)/n as often as two of those physicians, so floors from
    the shares as they are would be a third too low for panels of five. So part of each level's share goes to its
    neighbours, until two draws differ as often (the unbiased estimate); a unanimous panel stays as it is. In
    simulation the floors are then within a tenth of what they should be. NaN without votes.
    """
    n = votes.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = votes / n
        letters = _letters(own)
        padded = np.pad(letters, ((0, 0), (1, 1)), mode="edge")
        moved = np.zeros_like(own)
        moved[:, ::2] = (padded[:, :-2] + padded[:, 2:]) / 2
        step = _letters(moved) - letters
        between = own[:, 1::2]
        touching = np.pad(between, ((0, 0), (1, 0))) + np.pad(between, ((0, 0), (0, 1)))
        noise = ((letters * (1 - letters) - touching / 4) / (n - 1)).sum(axis=1)
        # With a part x moved the sum of squared shares is S + 2 x (h.step) + x^2 (step.step); it has to fall by the
        # noise.
        a, b = (step**2).sum(axis=1), (letters * step).sum(axis=1)
        part = (-b - np.sqrt(np.maximum(b**2 - a * noise, 0))) / a
    part = np.clip(np.nan_to_num(part, nan=0.0), 0, 1)[:, None]
    return np.asarray((1 - part) * own + part * moved)


def _letters(shares: Floats) -> Floats:
    """The shares of the four letters: a boundary counts half to each of its own."""
    letters = shares[..., ::2].copy()
    letters[..., :-1] += shares[..., 1::2] / 2
    letters[..., 1:] += shares[..., 1::2] / 2
    return letters


def _drawn(
    shares: Floats, n_votes: Floats, n_samples: Codes, n_draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    size = (len(shares), n_draws)
    votes = rng.multinomial(np.broadcast_to(n_votes.astype(np.int64)[:, None], size), shares[:, None, :])
    samples = rng.multinomial(np.broadcast_to(n_samples[:, None], size), _letters(shares)[:, None, :])
    return entropies(_letters(votes / n_votes[:, None, None]), samples / n_samples[:, None, None])


def case_spread(
    triage_data: TriageData, judges: Mapping[str, str], own: pd.DataFrame, *, rng: np.random.Generator
) -> pd.DataFrame:
    """The model's spread beside the panel's, for every case with a panel of two votes or more.

        distance    D = sum over the 3 inner cuts of (F-G)^2 - var F - var G: 0 on average for a model that draws from
                    the same physicians. var G = G(1-G)/(m-1); a vote on the boundary at the cut counts half on either
                    side, so var F = (F(1-F) - b/4)/(n-1), b the share of such votes; of such samples likewise
        entropy_panel, entropy_model   in bits, 0..2
        concentration   entropy_panel - entropy_model, -2..2: above 0 the model is surer than the physicians

    Few votes and samples make entropies too small: `floor_` columns say what a model that draws from the panel
    itself would have with as many (`floors`). `own`: rows of `own_confidence(predictions(triage_data, judges))`.
    Gives a row a case, model and format with a valid sample: h_A .. h_D (votes), m_A .. m_D (samples), panel_share
    (of the panel, for the model's most frequent level), the measures (distance is NaN with fewer than two valid
    samples), and floor_ of each but the distance.
    """
    rows = own["row"].to_numpy()
    n_votes = triage_data.cases["n_votes"].to_numpy()[rows]
    kept = own.loc[(n_votes >= FEWEST) & own["n_valid"].gt(0).to_numpy()].reset_index(drop=True)
    table = joined(triage_data, kept, ("kind", "gold", "n_votes", *SHARES))
    n = table["n_valid"].to_numpy(dtype=float)
    h, m = table[list(SHARES)].to_numpy(dtype=float), table[list(COUNTS)].to_numpy(dtype=float) / n[:, None]
    mode = table["predicted"].to_numpy(dtype=np.int64)
    vote, width = triage_data.votes["vote"].to_numpy(dtype=float), 2 * N_LEVELS - 1
    is_vote = ~np.isnan(vote)  # not to remove the case
    place = triage_data.votes["row"].to_numpy()[is_vote] * width + np.rint(vote[is_vote] * 2).astype(np.int64) - 2
    # of each case how many lie on A, A/B, B, ..., D
    votes = np.bincount(place, minlength=len(triage_data.cases) * width).reshape(-1, width).astype(float)
    halves = votes[:, 1::2][table["row"].to_numpy()], _boundary_samples(triage_data, judges, table)
    d = distances(h, m, table["n_votes"].to_numpy(dtype=float), n, *halves)
    floor = floors(votes, table["row"].to_numpy(), table["n_valid"].to_numpy(), rng=rng)
    keys = ["row", *BY, "kind", "gold", "n_votes", "n_valid", "predicted", "share", "confidence", "is_stated"]
    return table[[*keys, *SHARES]].assign(
        **dict(zip(MODEL_SHARES, m.T, strict=True)),
        panel_share=h[np.arange(len(h)), mode - 1],
        **{DISTANCE: d},
        **entropies(h, m),
        **{f"floor_{name}": values for name, values in floor.items()},
    )


def distances(
    h: Floats, m: Floats, n_votes: Floats, n_valid: Floats, vote_halves: Floats, sample_halves: Floats
) -> Floats:
    """The unbiased distance D of each case; NaN with fewer than two votes or samples. Halves: n x 3 boundaries."""
    cuts = N_LEVELS - 1
    panel, model = np.cumsum(h, axis=1)[:, :cuts], np.cumsum(m, axis=1)[:, :cuts]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_votes = (panel * (1 - panel) - vote_halves / (4 * n_votes[:, None])) / (n_votes[:, None] - 1)
        of_samples = (model * (1 - model) - sample_halves / (4 * n_valid[:, None])) / (n_valid[:, None] - 1)
        d = ((panel - model) ** 2 - of_votes - of_samples).sum(axis=1)
    return np.where((n_votes >= FEWEST) & (n_valid >= FEWEST), d, np.nan)


def _boundary_samples(triage_data: TriageData, judges: Mapping[str, str], table: pd.DataFrame) -> Floats:
    """Samples of each row that lie on each of the three boundaries."""
    halves, keys = np.zeros((len(table), N_LEVELS - 1)), ["row", *BY]
    level = levels_by(triage_data, judges)
    is_between = level % 1 > 0
    samples = triage_data.samples.loc[is_between, keys].assign(cut=level[is_between].astype(np.int64) - 1)
    pairs = samples.merge(table[keys].assign(place=np.arange(len(table))), on=keys)
    np.add.at(halves, (pairs["place"].to_numpy(), pairs["cut"].to_numpy()), 1)
    return halves


class OfAmbiguous(NamedTuple):
    """Models' samples beside the panels' votes on ambiguous cases."""

    summary: pd.DataFrame
    cases: pd.DataFrame
    """Rows of `case_spread`, those first where the model is sure and physicians are not."""
    n_few: int
    """Predictions with one valid sample, which show no spread and are left out."""


def on_ambiguous(triage_data: TriageData, own: pd.DataFrame, judges: Mapping[str, str]) -> OfAmbiguous:
    """What models say where physicians do not agree; all as for `case_spread`."""
    mine = own.loc[own["kind"].eq(Kind.AMBIGUOUS)].reset_index(drop=True)
    several = mine.loc[mine["n_valid"].ge(FEWEST)].reset_index(drop=True)
    spread = case_spread(triage_data, judges, several, rng=np.random.default_rng(SEED))
    order = [CONCENTRATION, "confidence", "row", *BY]
    cases = spread.sort_values(order, ascending=[False, False, True, True, True], kind="stable", ignore_index=True)
    return OfAmbiguous(summary(spread), cases, int(mine["n_valid"].gt(0).sum() - len(several)))


def summary(spread: pd.DataFrame) -> pd.DataFrame:
    """The measures on average over the cases of `case_spread`, a row a model, format and measure; t over cases.

    n_left_out: Cases without the two samples that it needs; floor: the mean of the cases' floors (0 for distance);
    undefined: why there is no value.
    """
    cells, keys = cells_of(spread, BY)
    parts = []
    for measure in MEASURES:
        values = spread[measure].to_numpy(dtype=float)
        has_value = ~np.isnan(values)
        rows = spread["row"].to_numpy()[has_value]
        means = clustered_means(cells[has_value], rows, values[has_value], n_cells=len(keys))
        floor = np.zeros(len(keys))
        if measure != DISTANCE:
            column = spread[f"floor_{measure}"].to_numpy(dtype=float)[has_value]
            floor = quotient(np.bincount(cells[has_value], column, len(keys)), means["n_values"].to_numpy())
        n_cases = means["n_clusters"].to_numpy()
        part = keys.assign(measure=measure, n_cases=n_cases)
        part = part.assign(n_left_out=np.bincount(cells[~has_value], minlength=len(keys)), value=means["mean"])
        part = part.assign(low=means["low"], high=means["high"], floor=floor, above=means["mean"] - floor)
        part = part.assign(undefined=np.where(n_cases > 0, "", NO_PAIRS if measure == DISTANCE else NO_CASES))
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    return table.sort_values(list(BY), kind="stable", ignore_index=True)


def spread_findings(summary: pd.DataFrame) -> list[str]:
    """Who is furthest from the panels on ambiguous cases, and whether models are surer than physicians."""
    of: dict[str, dict[str, Row]] = {}
    for line in summary.to_dict(orient="records"):
        of.setdefault(who(line), {})[str(line["measure"])] = line
    if not of:
        return [NO_SPREAD]
    sentences = []
    distances = {name: rows[DISTANCE] for name, rows in of.items() if not math.isnan(rows[DISTANCE]["value"])}
    if distances:
        name = max(distances, key=lambda key: float(distances[key]["value"]))
        row = distances[name]
        far = "lies furthest, as measured, from" if len(distances) > 1 else "lies away from"
        shown = f"{name} {far}" if row["low"] > 0 else f"it is not shown that {name} lies away from"
        sentences.append(
            f"On {counted(row['n_cases'], 'ambiguous case')} {shown} the panel's votes: distance "
            f"{number_words(row['value'], row['low'], row['high'])}; 0 is a model that draws from the same physicians."
        )
    surer = {name: rows for name, rows in of.items() if rows[CONCENTRATION]["low"] > rows[CONCENTRATION]["floor"]}
    if not surer:
        return [*sentences, "No model is shown to be surer than the physicians."]
    name = min(surer, key=lambda key: float(surer[key][ENTROPY_MODEL]["value"]))
    own, panel = surer[name][ENTROPY_MODEL], surer[name][ENTROPY_PANEL]
    many = f"all {len(of):,}" if len(surer) == len(of) else f"{len(surer):,} of {len(of):,}"
    head = f"In {many} pairs of a model and a format the model is surer than the physicians: the samples of {name}"
    head = head if len(of) > 1 else f"{name} is surer than the physicians: its samples"
    sentences.append(
        f"{head} spread over {own['value']:.2f} bits, the votes over {panel['value']:.2f}; "
        f"samples drawn from the panel would spread over {own['floor']:.2f}."
    )
    return sentences


def from_zero(summary: pd.DataFrame) -> pd.DataFrame:
    """A `summary` as screens show it: intervals of what cannot lie below 0 begin at 0."""
    bounded = ~summary["measure"].isin([DISTANCE, CONCENTRATION])
    return summary.assign(low=summary["low"].mask(bounded & summary["low"].lt(0), 0.0))


def spread_columns(summary: pd.DataFrame) -> dict[str, list[Any]]:
    """A `summary` by the headers of a table, a row a model and format; in brackets what chance alone gives."""
    columns: dict[str, list[Any]] = {head: [] for head in ("Model", "Format", "Cases", *MEASURES.values())}
    for (model, word), rows in from_zero(summary).groupby(list(BY), sort=False, observed=True):
        of = {str(row["measure"]): row for row in rows.to_dict(orient="records")}
        cells: list[Any] = [str(model), str(word), of[DISTANCE]["n_cases"]]
        for measure in MEASURES:
            row = of[measure]
            value = NO_VALUE if row["undefined"] else number_words(row["value"], row["low"], row["high"])
            by_chance = f" ({number_words(row['floor'], math.nan, math.nan)})"
            cells.append(value if row["undefined"] or measure == DISTANCE else f"{value}{by_chance}")
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    return columns

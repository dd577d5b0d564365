"""A model's spread over the levels of care beside the panel's, case by case: the unbiased distance, and entropies with the floor that chance alone gives.

Of one case, m is the share of the model's valid samples by level and h the panel's vote distribution (`panels.distributions`); F and
G are h and m added up from A to k, at the three cuts between the levels.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.calibration.own_confidence import FEWEST, own_confidence
from evalcore.calibration.spread_floor import MEASURED, Floats, entropies, floors
from evalcore.stats.intervals import LEVEL
from evalcore.stats.means import cells_of, clustered_means, over
from evalcore.triage.data import Triaged
from evalcore.triage.panels import N_LEVELS, SHARES, Kind
from evalcore.triage.predictions import COUNTS, joined, predictions

Codes = npt.NDArray[np.int64]
MODEL_SHARES = ("m_A", "m_B", "m_C", "m_D")
DISTANCE, ENTROPY_PANEL, ENTROPY_MODEL = "distance", "entropy_panel", "entropy_model"
MEASURES = (DISTANCE, *MEASURED)
"""What `summary` averages; all but the first, whose expected value is 0, stand beside their floor."""
BY = ("model", "format")
NO_CASES = "No case has both a panel of two votes and a valid sample of the model."
NO_PAIRS = "No case with a panel has two valid samples, which the unbiased distance needs."


def case_spread(
    triaged: Triaged, judges: Mapping[str, str], *, rng: np.random.Generator, found: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The model's spread beside the panel's, for every case with a panel of two votes or more.

        distance    D = sum over the 3 inner cuts of (F-G)^2 - var F - var G, unbiased: 0 on average for a model that draws from the same
                    physicians, below 0 on single cases. var G = G(1-G)/(m-1). A vote on the boundary at the cut counts half on
                    either side, and so varies less than a letter: var F = (F(1-F) - b/4)/(n-1), b the share of such votes; of
                    samples on a boundary likewise. Without any, F(1-F)/(n-1)
        entropy_panel, entropy_model   in bits, 0..2
        concentration   entropy_panel - entropy_model, -2..2: above 0 the model is surer than the physicians

    Few votes and few samples make entropies too small, and those of unequal numbers incomparable: `floor_` columns say what a model that draws
    from the panel itself would have on average, with as many votes and samples (`spread_floor.floors`).

    Args:
        triaged: Described by `panels.described`.
        judges: By format, whose levels count.
        rng: Chance, for the floors.
        found: `own_confidence(predictions(triaged, judges))`, where it is there already.

    Returns:
        One row a case with a panel, model and format with a valid sample: row (of `cases`), model, format, kind, gold, n_votes, n_valid, predicted,
        share, confidence and is_stated (as `own_confidence` gives them), h_A .. h_D, m_A .. m_D, panel_share (of the panel that chose the model's
        most frequent level, 0..1), the measures above (distance is NaN with fewer than two valid samples), and floor_ of each but the distance.
    """
    given = own_confidence(predictions(triaged, judges)) if found is None else found
    rows = given["row"].to_numpy()
    n_votes = triaged.cases["n_votes"].to_numpy()[rows]
    kept = given.loc[(n_votes >= FEWEST) & given["n_valid"].gt(0).to_numpy()].reset_index(drop=True)
    table = joined(triaged, kept, ("kind", "gold", "n_votes", *SHARES))
    n = table["n_valid"].to_numpy(dtype=float)
    h, m = table[list(SHARES)].to_numpy(dtype=float), table[list(COUNTS)].to_numpy(dtype=float) / n[:, None]
    mode = table["predicted"].to_numpy(dtype=np.int64)
    votes = vote_counts(triaged)
    halves = _boundary_votes(votes)[table["row"].to_numpy()]
    d = distances(h, m, table["n_votes"].to_numpy(dtype=float), n, halves, _boundary_samples(triaged, judges, table))
    floor = floors(votes, table["row"].to_numpy(), table["n_valid"].to_numpy(), rng=rng)
    named = {name: m[:, place] for place, name in enumerate(MODEL_SHARES)}
    keys = [
        "row",
        "model",
        "format",
        "kind",
        "gold",
        "n_votes",
        "n_valid",
        "predicted",
        "share",
        "confidence",
        "is_stated",
    ]
    return table[[*keys, *SHARES]].assign(
        **named,
        panel_share=h[np.arange(len(h)), mode - 1],
        **{DISTANCE: d},
        **entropies(h, m),
        **{f"floor_{name}": values for name, values in floor.items()},
    )


def distances(
    h: Floats, m: Floats, n_votes: Floats, n_valid: Floats, vote_halves: Floats, sample_halves: Floats
) -> Floats:
    """The unbiased distance D of each case; formula as for `case_spread`.

    Args:
        h: Vote distributions, n x 4.
        m: Sample distributions, n x 4.
        n_votes: Votes, those to remove left out.
        n_valid: Valid samples.
        vote_halves: Votes that lie on each of the three boundaries, n x 3.
        sample_halves: Samples that do.

    Returns:
        One number a case; NaN with fewer than two votes or two samples.
    """
    cuts = N_LEVELS - 1
    panel, model = np.cumsum(h, axis=1)[:, :cuts], np.cumsum(m, axis=1)[:, :cuts]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_votes = (panel * (1 - panel) - vote_halves / (4 * n_votes[:, None])) / (n_votes[:, None] - 1)
        of_samples = (model * (1 - model) - sample_halves / (4 * n_valid[:, None])) / (n_valid[:, None] - 1)
        d = ((panel - model) ** 2 - of_votes - of_samples).sum(axis=1)
    found: Floats = np.where((n_votes >= FEWEST) & (n_valid >= FEWEST), d, np.nan)
    return found


def vote_counts(triaged: Triaged) -> Floats:
    """How many votes of each case lie on A, A/B, B, ..., D: one row a case, 7 columns. Votes to remove are left out."""
    vote = triaged.votes["vote"].to_numpy(dtype=float)
    given = ~np.isnan(vote)
    width = 2 * N_LEVELS - 1
    place = triaged.votes["row"].to_numpy()[given] * width + np.rint(vote[given] * 2).astype(np.int64) - 2
    return np.bincount(place, minlength=len(triaged.cases) * width).reshape(-1, width).astype(float)


def _boundary_votes(votes: Floats) -> Floats:
    return votes[:, 1::2]


def _boundary_samples(triaged: Triaged, judges: Mapping[str, str], table: pd.DataFrame) -> Floats:
    """Samples of each row that lie on each of the three boundaries."""
    cuts = N_LEVELS - 1
    halves = np.zeros((len(table), cuts))
    n_models = max(len(triaged.samples["model"].cat.categories), 1)
    keys = table["row"].to_numpy() * n_models + table["model"].cat.codes.to_numpy().astype(np.int64)
    for asked, judge in judges.items():
        if judge not in triaged.levels:
            continue
        level = triaged.levels[judge].to_numpy(dtype=float)
        between = np.flatnonzero((level != np.floor(level)) & triaged.samples["format"].eq(asked).to_numpy())
        between = between[~np.isnan(level[between])]
        if not len(between):
            continue
        mine = np.flatnonzero(table["format"].eq(asked).to_numpy())
        of_samples = triaged.samples.iloc[between]
        wanted = of_samples["row"].to_numpy() * n_models + of_samples["model"].cat.codes.to_numpy().astype(np.int64)
        place = pd.Index(keys[mine]).get_indexer(wanted)
        known = place >= 0
        cell = mine[place[known]] * cuts + np.floor(level[between][known]).astype(np.int64) - 1
        halves += np.bincount(cell, minlength=halves.size).reshape(halves.shape)
    return halves


def summary(spread: pd.DataFrame, *, by: Sequence[str] = BY, level: float = LEVEL) -> pd.DataFrame:
    """The measures on average over cases.

    Args:
        spread: As `case_spread` gives it, or some of its rows (ambiguous cases).
        by: Columns that name the groups.
        level: Of the intervals, in (0, 1).

    Returns:
        One row a group and measure (of `MEASURES`): the columns of `by`, measure, n_cases, n_left_out (without the two
        samples that it needs), value with low and high (t interval over cases; NaN for one case), floor (the mean of
        the cases' floors; 0 for distance), above (value - floor), undefined: a sentence where there is no value, else
        "". No row for a group without cases.
    """
    cells, keys = cells_of(spread, by)
    parts = []
    for measure in MEASURES:
        values = spread[measure].to_numpy(dtype=float)
        known = ~np.isnan(values)
        rows = spread["row"].to_numpy()[known]
        found = clustered_means(cells[known], rows, values[known], n_cells=len(keys), level=level)
        floor = np.zeros(len(keys))
        if measure != DISTANCE:
            column = spread[f"floor_{measure}"].to_numpy(dtype=float)[known]
            floor = over(np.bincount(cells[known], column, len(keys)), found["n_values"].to_numpy())
        n_cases = found["n_clusters"].to_numpy()
        parts.append(
            keys.assign(
                measure=measure,
                n_cases=n_cases,
                n_left_out=np.bincount(cells[~known], minlength=len(keys)),
                value=found["mean"],
                low=found["low"],
                high=found["high"],
                floor=floor,
                above=found["mean"] - floor,
                undefined=np.where(n_cases > 0, "", NO_PAIRS if measure == DISTANCE else NO_CASES),
            )
        )
    names = [*by, "measure"]
    table = pd.concat(parts, ignore_index=True)
    order = {name: place for place, name in enumerate(MEASURES)}
    return table.sort_values(names, key=lambda c: c.map(order) if c.name == "measure" else c, ignore_index=True)


def unsure(spread: pd.DataFrame) -> pd.DataFrame:
    """Ambiguous cases, those first where the model is sure and physicians are not: by concentration, then by confidence.

    Args:
        spread: As `case_spread` gives it.

    Returns:
        Its rows of ambiguous cases, most concentrated first; of equals by row, model and format.
    """
    kept = spread.loc[spread["kind"].eq(Kind.AMBIGUOUS)]
    order = ["concentration", "confidence", "row", "model", "format"]
    return kept.sort_values(order, ascending=[False, False, True, True, True], kind="stable", ignore_index=True)

"""Scores of each model by theme, axis, category, language and level, in one judge's opinion, with intervals over examples.

As HealthBench defines them (see `score`): the score of a theme, category or language is the mean of the overall scores of the
examples that carry it; that of an axis, level or cluster is the same formula on the criteria of that tag alone.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.comparison import SMALL, labels_of, response_scores
from evalcore.rubric.items import RubricData
from evalcore.rubric.score import rubric_scores
from evalcore.stats.intervals import LEVEL
from evalcore.stats.means import SCORE_COLUMNS, as_scores, cells_of, clustered_means
from evalcore.stats.resampling import Codes, Floats, reference_std

OVERALL, CATEGORY, CLUSTER = "overall", "category", "cluster"
DEFAULT_GROUPINGS = ("theme", "axis", "category", "language", "level")
GROUPINGS = (OVERALL, *DEFAULT_GROUPINGS, CLUSTER)
OF_EXAMPLES = ("theme", CATEGORY, "language")
OF_CRITERIA = ("axis", "level", CLUSTER)
COLUMNS = (
    "grouping", "group", "tag", "model", "evaluation", "n_examples", "n_responses", "n_left_out", "n_without_positive", "n_undefined",
    *SCORE_COLUMNS, "small",
)  # fmt: skip

_TAGS: Mapping[str, str] = {CATEGORY: "physician_agreed_category"}


def group_scores(
    rubric_data: RubricData,
    judge: str,
    by: Sequence[str] = DEFAULT_GROUPINGS,
    *,
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """The score of each model in each group with its interval, clustered by example.

    Args:
        rubric_data: Of one or several evaluations.
        judge: One of `rubric_data.judges`.
        by: Some of `GROUPINGS`. `category` gives physicians' agreed categories (of examples) and, with grouping `cluster`, the
            clusters of their criteria; `cluster` gives these alone.
        level: Of confidence, in (0, 1).
        rng: Chance for the reference's standard deviation; without it that column is left out.

    Returns:
        One row a model, evaluation and group, in the order of `by`, then by group, evaluation and model:
        grouping, group (`hedging`; `overall` for everything), tag (`theme:hedging`, as `score` names groups), model, evaluation;
        n_examples and n_responses with a score; n_left_out (examples that carry the tag and have no score in it),
        n_without_positive (those of them that are labelled and have no positive points in the tag), n_undefined (responses without
        a score); raw_mean over responses (may be negative) with raw_low and raw_high; score, low and high, which are the same clipped
        to [0, 1]; small (fewer than 20 examples); with rng bootstrap_std (1,000 resamples of examples, clipped, ddof 0).
        Undefined is NaN: raw_mean without a score; the bounds with one example, or where all examples have the same score.

    Raises:
        ValueError: `by` names something else, or there is no such judge.
    """
    if unknown := sorted(set(by) - set(GROUPINGS)):
        msg = f"by: {', '.join(unknown)} came, expected some of {', '.join(GROUPINGS)}"
        raise ValueError(msg)
    responses = response_scores(rubric_data, judge)
    wanted = dict.fromkeys(one for name in by for one in ((name, CLUSTER) if name == CATEGORY else (name,)))
    parts = []
    for grouping in wanted:
        tagged = (
            _of_criteria(rubric_data, judge, responses, grouping)
            if grouping in OF_CRITERIA
            else _of_examples(responses, grouping)
        )
        found = _summed(tagged, level=level, rng=rng)
        tag = (
            found["group"].astype(object)
            if grouping == OVERALL
            else _TAGS.get(grouping, grouping) + ":" + found["group"].astype(object)
        )
        parts.append(found.assign(grouping=grouping, tag=tag))
    columns = [*COLUMNS, *(() if rng is None else ("bootstrap_std",))]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _of_examples(responses: pd.DataFrame, grouping: str) -> pd.DataFrame:
    """The overall score of each response, under the tag of its example."""
    everything = pd.Series(OVERALL, index=responses.index, dtype="category")
    group = everything if grouping == OVERALL else responses[grouping]
    tagged = responses[["model", "evaluation", "example_id", "score", "is_complete"]].assign(group=group)
    return tagged.loc[tagged["group"].notna()]


def _of_criteria(rubric_data: RubricData, judge: str, responses: pd.DataFrame, grouping: str) -> pd.DataFrame:
    """The score of each response on the criteria of each tag; one row a response and tag."""
    items, met = rubric_data.items, labels_of(rubric_data, judge)
    names, groups = pd.factorize(items[grouping])
    points = items["points"].to_numpy(dtype=float)
    kept = (names >= 0) & ~np.isnan(points)
    names, points, met = names[kept], points[kept], met[kept]
    response = np.searchsorted(responses["response_id"].to_numpy(), items["response_id"].to_numpy()[kept])
    cells, keys = pd.factorize(response * max(1, len(groups)) + names)
    rows, which = np.divmod(keys, max(1, len(groups)))
    scored = rubric_scores(cells, points, met, len(keys))
    score = np.where(responses["is_complete"].to_numpy()[rows], scored.score, np.nan)
    tagged = responses[["model", "evaluation", "example_id", "is_complete"]].take(rows).reset_index(drop=True)
    return tagged.assign(score=score, group=pd.Categorical.from_codes(which, pd.Index(groups, dtype=object)))


def _summed(tagged: pd.DataFrame, *, level: float, rng: np.random.Generator | None) -> pd.DataFrame:
    """One row a model, evaluation and group of what `_of_examples` or `_of_criteria` gave."""
    cells, found = cells_of(tagged, ["group", "evaluation", "model"])
    examples, example_ids = pd.factorize(tagged["example_id"].to_numpy(), sort=True)
    score = tagged["score"].to_numpy(dtype=float)
    scored = ~np.isnan(score)
    n_cells = len(found)
    means = clustered_means(cells[scored], examples[scored], score[scored], n_cells=n_cells, level=level)
    pairs = cells * max(1, len(example_ids)) + examples
    n_tagged = _n_distinct(pairs, np.ones(len(pairs), dtype=bool), cells, n_cells)
    with_score = np.isin(pairs, np.unique(pairs[scored]))
    without_positive = ~with_score & tagged["is_complete"].to_numpy(dtype=bool)
    found = found.assign(
        n_examples=means["n_clusters"],
        n_responses=means["n_values"],
        n_left_out=n_tagged - means["n_clusters"],
        n_without_positive=_n_distinct(pairs, without_positive, cells, n_cells),
        n_undefined=np.bincount(cells, minlength=n_cells) - means["n_values"],
        small=means["n_clusters"].lt(SMALL),
        **as_scores(means),
    )
    if rng is not None:
        found["bootstrap_std"] = _reference_stds(found, cells[scored], examples[scored], score[scored], rng)
    return found


def _n_distinct(pairs: Codes, kept: npt.NDArray[np.bool_], cells: Codes, n_cells: int) -> Codes:
    """Examples in each cell, each once, among the rows that are kept."""
    rows = np.unique(pairs[kept], return_index=True)[1]
    return np.bincount(cells[kept][rows], minlength=n_cells)


def _reference_stds(
    found: pd.DataFrame,
    cells: Codes,
    examples: Codes,
    score: Floats,
    rng: np.random.Generator,
) -> Floats:
    """The reference's standard deviation of each cell. Models of one group share their resamples, which are of its examples alone."""
    stds = np.full(len(found), np.nan)
    together = found.groupby(["group", "evaluation"], sort=False).ngroup().to_numpy()
    order = np.argsort(together[cells], kind="stable")
    ends = np.searchsorted(together[cells][order], np.arange(together.max() + 1 if len(together) else 0), side="right")
    for rows in np.split(order, ends[:-1]) if len(ends) else []:
        columns, mine = pd.factorize(cells[rows], sort=True)
        lines, names = pd.factorize(examples[rows], sort=True)
        shape = len(names), len(mine)
        if not len(names):
            continue
        at = lines * len(mine) + columns
        sums = np.bincount(at, score[rows], shape[0] * shape[1]).reshape(shape)
        counts = np.bincount(at, minlength=shape[0] * shape[1]).reshape(shape)
        stds[mine] = reference_std(np.where(counts > 0, sums, np.nan), counts=counts, rng=rng)
    return stds

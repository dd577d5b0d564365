"""The rubric score of HealthBench (arXiv 2505.08775, reference implementation openai/simple-evals).

An example's score is the sum of the points of the met criteria, negative points included, over the sum of the positive
points: never above 1, and below 0 where undesirable things outweigh. Only a mean over examples is clipped to [0, 1].
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import Label

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

OVERALL = "overall"
GROUPINGS = ("overall", "theme", "axis", "category", "level")
"""What `scores` can be grouped by; category means physicians' agreed categories and the clusters of their criteria."""

_OF_EXAMPLES = {"theme": ("theme",), "category": ("category",)}
_OF_CRITERIA = {"axis": ("axis",), "category": ("cluster",), "level": ("level",)}
_PREFIX = {"category": "physician_agreed_category"}
_KEY = ["model", "judge", "dataset", "response_id", "example_id"]


class Scored(NamedTuple):
    """Points of some cells (responses, or a tag's criteria of a response), each one number a cell.

    Attributes:
        n_labelled: Criteria with points and a label.
        achieved: Points of the met ones.
        possible: Positive points of the labelled ones.
        score: achieved / possible, at most 1; NaN where nothing positive can be achieved.
    """

    n_labelled: Numbers
    achieved: Floats
    possible: Floats
    score: Floats


def rubric_scores(cells: Numbers, points: Floats, met: Floats, n_cells: int) -> Scored:
    """The scores of labelled criteria. Whether a cell is complete enough to be scored is the caller's to say.

    Args:
        cells: The cell of each criterion, from 0.
        points: Of each criterion; NaN: it does not count.
        met: Of each criterion, 1 met, 0 not met (between them: the mean of several judges); NaN: no label, it does not count.
        n_cells: How many there are; some may be empty.

    >>> rubric_scores(np.array([0, 0, 0]), np.array([5.0, 3.0, -2.0]), np.array([1.0, 0.0, 1.0]), 1).score.tolist()
    [0.375]
    """
    counted = ~np.isnan(met) & ~np.isnan(points)
    achieved: Floats = np.bincount(cells, np.where(counted, points * met, 0.0), n_cells).astype(np.float64)
    possible: Floats = np.bincount(cells, np.where(counted, points.clip(min=0), 0.0), n_cells).astype(np.float64)
    return Scored(np.bincount(cells, counted, n_cells).astype(np.int64), achieved, possible, _ratio(achieved, possible))


def _ratio(achieved: Floats, possible: Floats) -> Floats:
    """The formula: NaN where nothing positive can be achieved."""
    ratio: Floats = np.divide(achieved, possible, out=np.full(len(possible), np.nan), where=possible > 0)
    return ratio


def response_scores(verdicts: pd.DataFrame, *, by: Sequence[str] = GROUPINGS) -> pd.DataFrame:
    """The score of every response by every rater, overall and on the criteria of one tag.

    Args:
        verdicts: One row a verdict, one verdict a rater and item (`frames.verdicts`).
        by: Some of `GROUPINGS`.

    Returns:
        One row a response, rater and group: model, judge (the rater), dataset (the evaluation), response_id, example_id,
        group (`overall`, `theme:...`, `axis:...`, `cluster:...`, ...), n_criteria, achieved and possible points,
        score at most 1. The score is NaN where the group has no positive points, where a verdict is missing
        (fewer than n_expected) or where the rater could not assess a criterion.
    """
    judged = verdicts.loc[verdicts["points"].notna()].rename(columns={"rater": "judge"})
    judged = judged.drop(columns="dataset").rename(columns={"evaluation": "dataset"})
    judged = judged.assign(unknown=judged["label"].eq(Label.CANNOT_ASSESS)).reset_index(drop=True)
    overall = _summed(judged, [])
    complete = overall["n_criteria"].ge(overall["n_expected"])
    overall["score"] = overall["score"].where(complete)
    parts = []
    for grouping in by:
        if grouping == OVERALL:
            parts.append(overall.assign(group=OVERALL))
        for column in _OF_EXAMPLES.get(grouping, ()):
            tagged = overall.loc[overall[column].notna()]
            parts.append(tagged.assign(group=_PREFIX.get(column, column) + ":" + tagged[column].astype(str)))
        for column in _OF_CRITERIA.get(grouping, ()):
            summed = _summed(judged.loc[judged[column].notna()], [column])
            whole = overall.loc[complete, ["response_id", "judge"]].assign(is_whole=1)
            summed = summed.merge(whole, on=["response_id", "judge"], how="left")
            summed["score"] = summed["score"].where(summed["is_whole"].notna())
            parts.append(summed.assign(group=column + ":" + summed[column].astype(str)))
    columns = [*_KEY, "group", "n_criteria", "achieved", "possible", "score"]
    if not parts:
        return pd.DataFrame(columns=columns)
    return pd.concat(parts, ignore_index=True)[columns]


def _summed(judged: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Points by response, rater and the given columns, with the score; it is NaN where a criterion could not be assessed."""
    grouped = judged.groupby([*_KEY, *columns], sort=False, observed=True)
    summed = grouped.agg(
        n_criteria=("points", "size"),
        n_expected=("n_expected", "first"),
        unknown=("unknown", "any"),
        theme=("theme", "first"),
        category=("category", "first"),
    ).reset_index()
    points = judged["points"].to_numpy(dtype=np.float64)
    met = judged["label"].eq(Label.MET).to_numpy().astype(np.float64)
    found = rubric_scores(grouped.ngroup().to_numpy().astype(np.int64), points, met, len(summed))
    score = np.where(summed["unknown"].to_numpy(dtype=bool), np.nan, found.score)
    return summed.assign(achieved=found.achieved, possible=found.possible, score=score)


def scores(response_scores: pd.DataFrame) -> pd.DataFrame:
    """Mean scores by model, judge, data set and group.

    Args:
        response_scores: As `response_scores` gives it.

    Returns:
        One row a model, judge, dataset and group: n_examples and n_responses with a score, n_undefined (responses
        without one, left out), raw_mean (may be negative; NaN where nothing is defined) and score, which is
        raw_mean clipped to [0, 1]. Repeats of an example each count, as in the reference.
    """
    keys = ["model", "judge", "dataset", "group"]
    defined = response_scores.loc[response_scores["score"].notna()]
    summary = defined.groupby(keys).agg(
        n_examples=("example_id", "nunique"), n_responses=("score", "size"), raw_mean=("score", "mean")
    )
    n_all = response_scores.groupby(keys).size().rename("n_all")
    table = n_all.to_frame().join(summary).reset_index()
    table[["n_examples", "n_responses"]] = table[["n_examples", "n_responses"]].fillna(0).astype(int)
    table["n_undefined"] = table["n_all"] - table["n_responses"]
    table["score"] = table["raw_mean"].clip(0, 1)
    return table[[*keys, "n_examples", "n_responses", "n_undefined", "raw_mean", "score"]]


def scores_of_sums(sums: pd.DataFrame) -> pd.DataFrame:
    """The overall score of each response and judge from points summed in SQL (`response_sums`).

    Returns:
        The rows of `sums` with the column score: NaN where a verdict is missing or nothing positive can be achieved.
    """
    achieved, possible = (sums[name].fillna(0).to_numpy(dtype=np.float64) for name in ("achieved", "possible"))
    complete = sums["n_judged"].ge(sums["n_expected"])
    return sums.assign(score=pd.Series(_ratio(achieved, possible), index=sums.index).where(complete))


def mean_scores_by_example(scored: pd.DataFrame, judge: str) -> pd.DataFrame:
    """One row an example, one column a model: the mean score of its responses by one judge; NaN where undefined.

    Args:
        scored: As `scores_of_sums` gives it.
        judge: By whose verdicts.
    """
    of_judge = scored.loc[scored["judge"].eq(judge)]
    return of_judge.groupby(["example_id", "model"])["score"].mean().unstack("model")

"""Rubric scores by one judge, of responses, examples and groups, as HealthBench defines them (arXiv 2505.08775, openai/simple-evals).

An example's score is the sum of the points of the met criteria, negative points included, over the sum of the positive points: never above 1, and below
0 where undesirable things outweigh. Only a mean over examples is clipped to [0, 1]. The score of a theme, category or language is the mean of the
overall scores of the examples that carry it; that of an axis, level or cluster is the same formula on the criteria of that tag alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.data import RubricData
from evalcore.stats.arrays import Floats, Numbers, Truths, cells_of, codes_of, occurring, quotient, sorted_codes
from evalcore.stats.intervals import SCORE_COLUMNS, as_scores, clustered_means
from evalcore.study.schema import TASK_TAGS, Label

SMALL = 20  # with fewer examples a number is shown greyed: intervals are then too narrow
OVERALL, CATEGORY, CLUSTER = "overall", "category", "cluster"
OF_EXAMPLES = ("theme", CATEGORY, "language", *TASK_TAGS)
OF_CRITERIA = ("axis", "level", CLUSTER)
GROUPINGS = (OVERALL, "theme", "axis", CATEGORY, "language", "level", CLUSTER, *TASK_TAGS)
REPORTED_GROUPINGS = (OVERALL, "theme", "axis", CATEGORY, "level")  # those that HealthBench reports
RESPONSE_COLUMNS = (
    "response_id", "example_id", "model", "evaluation", "sample_index", "theme", "category", "language", *TASK_TAGS, "n_chars", "is_complete", "score",
)  # fmt: skip
GROUP_COLUMNS = (
    "grouping", "group", "tag", "model", "evaluation", "n_examples", "n_responses", "n_left_out", "n_without_positive", "n_undefined",
    *SCORE_COLUMNS, "small",
)  # fmt: skip


def _achieving(points: Floats, met: Floats) -> tuple[Truths, Floats, Floats]:
    """Of each criterion whether it counts, and what it adds to the points achieved and possible: nothing where it does not."""
    achieving, possible = points * met, np.maximum(points, 0.0)
    counted = ~np.isnan(achieving)
    if not counted.all():
        achieving[~counted] = possible[~counted] = 0.0
    return counted, achieving, possible


def _scores(cells: Numbers, achieving: Floats, possible: Floats, n_cells: int) -> Floats:
    return quotient(np.bincount(cells, achieving, n_cells), np.bincount(cells, possible, n_cells))


def response_scores(rubric_data: RubricData, judge: str) -> pd.DataFrame:
    """The score of every response by one judge: `RESPONSE_COLUMNS`, sorted by response_id.

    is_complete: a label on every criterion that is asked; cannot assess is none. score: at most 1; NaN where not complete or nothing positive can be achieved.
    """
    return _of_responses(rubric_data, judge)[0]


def _of_responses(rubric_data: RubricData, judge: str) -> tuple[pd.DataFrame, Numbers, Floats, Floats]:
    """With the row of each item's response, and what the item adds to the points achieved and possible."""
    items, met = rubric_data.items, rubric_data.judged[judge].to_numpy(dtype=float)
    known = rubric_data.responses
    codes, n = known.codes, len(known.firsts)
    counted, achieving, possible = _achieving(items["points"].to_numpy(dtype=float), met)
    score, n_labelled = _scores(codes, achieving, possible, n), np.bincount(codes, counted, n)
    responses = known.table[[name for name in (*RESPONSE_COLUMNS, "n_expected") if name in items.columns]]
    complete = n_labelled >= responses.pop("n_expected").to_numpy(dtype=float)
    scored = responses.assign(is_complete=complete, score=np.where(complete, score, np.nan))
    return scored, codes, achieving, possible


def example_scores(rubric_data: RubricData, judge: str) -> pd.DataFrame:
    """The mean score of every model's responses to every example of one evaluation by one judge; NaN where none has a score.

    Index example_id, sorted; one column a model, by name.
    """
    responses = response_scores(rubric_data, judge)
    evaluations = sorted(map(str, responses["evaluation"].dropna().unique()))
    if len(evaluations) > 1:
        msg = f"expected responses of one evaluation, got {len(evaluations)} ({', '.join(evaluations)})"
        raise ValueError(msg)
    rows, example_ids = pd.factorize(responses["example_id"].to_numpy(), sort=True)
    columns, models = sorted_codes(responses["model"])
    shape = len(example_ids), len(models)
    cells = rows * len(models) + columns
    score = responses["score"].to_numpy(dtype=float)
    scored = ~np.isnan(score)
    sums = np.bincount(cells[scored], score[scored], shape[0] * shape[1])
    means = quotient(sums, np.bincount(cells[scored], minlength=len(sums)))
    models_by_name = pd.Index(models, name="model")
    return pd.DataFrame(means.reshape(shape), pd.Index(example_ids, name="example_id"), models_by_name)


def group_scores(rubric_data: RubricData, judge: str, by: Sequence[str]) -> pd.DataFrame:
    """The score of each model in each group with its 95 % interval, clustered by example.

    Of the `GROUPINGS`, `category` gives physicians' agreed categories (of examples) and, with grouping `cluster`, the clusters of their criteria.

    Returns:
        `GROUP_COLUMNS`, one row a model, evaluation and group, in the order of `by`, then by group, evaluation and model: tag (`theme:hedging`), n_left_out
        (examples that carry the tag and have no score in it), n_without_positive (those of them that are labelled and have no positive points in the tag),
        n_undefined (responses without a score), small (fewer than 20 examples). NaN: raw_mean without a score; bounds with one example, or where all are alike.
    """
    responses, response, achieving, possible = _of_responses(rubric_data, judge)
    known = _Scored(responses)
    items = rubric_data.items
    tables = [pd.DataFrame(columns=list(GROUP_COLUMNS))]
    rows: Any
    for grouping in _with_clusters(by):
        if grouping in TASK_TAGS and grouping not in responses:
            continue
        if grouping in OF_CRITERIA:
            codes, groups = codes_of(items[grouping])
            kept = (codes >= 0) & items["points"].notna().to_numpy()
            of: Any = slice(None) if kept.all() else kept
            cells, keys = occurring((response * max(1, len(groups)) + codes)[of])
            rows, codes = np.divmod(keys, max(1, len(groups)))
            score = np.where(known.complete[rows], _scores(cells, achieving[of], possible[of], len(keys)), np.nan)
        elif grouping == OVERALL:
            codes, groups, rows, score = np.zeros(len(responses), dtype=np.int64), [OVERALL], slice(None), known.score
        else:
            codes, groups = codes_of(responses[grouping])
            rows = np.flatnonzero(codes >= 0)
            codes, score = codes[rows], known.score[rows]
        table = known.by_group(codes, groups, rows, score)
        tables.append(table.assign(grouping=grouping, tag=_tags(grouping, table["group"]))[list(GROUP_COLUMNS)])
    return pd.concat(tables[1:] or tables, ignore_index=True)


def _with_clusters(by: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(one for name in by for one in ((name, CLUSTER) if name == CATEGORY else (name,))))


def _tags(grouping: str, group: pd.Series) -> pd.Series:
    names = group.astype(object)
    of = "physician_agreed_category" if grouping == CATEGORY else grouping
    return names if grouping == OVERALL else of + ":" + names


class _Scored:
    """Responses with a score, coded once for all groupings."""

    def __init__(self, responses: pd.DataFrame) -> None:
        self.complete = responses["is_complete"].to_numpy(dtype=bool)
        self.score = responses["score"].to_numpy(dtype=float)
        self._cells, self._keys = cells_of(responses, ["evaluation", "model"])
        self._examples, example_ids = occurring(responses["example_id"].to_numpy())
        self._width = max(1, len(example_ids))

    def by_group(self, groups: Numbers, names: Sequence[Any], rows: Any, score: Floats) -> pd.DataFrame:
        """The scores of these rows, each the response's in the group of its code, by group, evaluation and model."""
        by_name = np.argsort(np.asarray(names, dtype=object).astype(str), kind="stable")
        place, n = np.argsort(by_name), max(1, len(self._keys))
        cells, keys = occurring(place[groups] * n + self._cells[rows])
        group, of_cell = np.divmod(keys, n)
        of_group = {"group": np.asarray(names, dtype=object)[by_name][group]}
        table = pd.DataFrame(of_group | {name: column.to_numpy()[of_cell] for name, column in self._keys.items()})
        examples, scored = self._examples[rows], ~np.isnan(score)
        n_cells, pairs, every = len(keys), cells * self._width + examples, bool(scored.all())
        of: Any = slice(None) if every else scored
        means = clustered_means(cells[of], examples[of], score[of], n_cells=n_cells)
        n_scored = means["n_clusters"].to_numpy()
        n_with_tag, n_labelled = n_scored, n_scored  # examples, by cell
        if not every:
            together = pairs, pairs[scored | self.complete[rows]]
            tagged = (occurring(of)[1] // self._width for of in together)
            n_with_tag, n_labelled = (np.bincount(of, minlength=n_cells) for of in tagged)
        return table.assign(
            n_examples=n_scored,
            n_responses=means["n_values"],
            n_left_out=n_with_tag - n_scored,
            n_without_positive=n_labelled - n_scored,
            n_undefined=np.bincount(cells, minlength=n_cells) - means["n_values"],
            small=means["n_clusters"].lt(SMALL),
            **as_scores(means),
        )


def scores_of_verdicts(verdicts: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The score of every response by every rater, overall and by tag, from `frames.verdicts`.

    One row a response, judge (the rater), dataset (the evaluation) and group (`overall`, `theme:...`). NaN where the group has no positive points, a verdict
    is missing, or the rater could not assess a criterion of the group.
    """
    response = ["model", "judge", "dataset", "response_id", "example_id"]
    columns = [*response, "group", "n_criteria", "achieved", "possible", "score"]
    graded = verdicts.loc[verdicts["points"].notna()].drop(columns="dataset")
    graded = graded.rename(columns={"rater": "judge", "evaluation": "dataset"})
    points = graded["points"].astype(float)
    graded = graded.assign(
        achieved=points * graded["label"].eq(Label.MET),
        possible=points.clip(lower=0),
        unsure=graded["label"].eq(Label.CANNOT_ASSESS),
        n_verdicts=graded.groupby(response)["points"].transform("size"),
    )
    tables = [pd.DataFrame(columns=columns)]
    for grouping in _with_clusters(by):
        group = pd.Series(OVERALL, index=graded.index) if grouping == OVERALL else graded[grouping]
        tagged = graded.assign(group=group).loc[group.notna()]
        tagged["group"] = _tags(grouping, tagged["group"])
        cells = tagged.groupby([*response, "group"], sort=False)
        sums = cells[["achieved", "possible"]].sum().assign(n_criteria=cells.size())
        has_score = cells["n_verdicts"].first().ge(cells["n_expected"].first()) & ~cells["unsure"].any()
        score = pd.Series(quotient(sums["achieved"], sums["possible"]), index=sums.index).where(has_score)
        tables.append(sums.assign(score=score).reset_index()[columns])
    return pd.concat(tables[1:] or tables, ignore_index=True)


def mean_scores(scored: pd.DataFrame) -> pd.DataFrame:
    """Means of `scores_of_verdicts` by model, judge, dataset and group: raw_mean (NaN where nothing is defined), score (clipped to [0, 1]), n_undefined.

    Of `with_length_adjusted` likewise raw_length_adjusted and length_adjusted; NaN also where a response that has a score has none adjusted.
    """
    keys = ["model", "judge", "dataset", "group"]
    example = scored["example_id"].where(scored["score"].notna())
    by_group = scored.assign(example=example).groupby(keys)
    table = by_group.agg(n_examples=("example", "nunique"), n_responses=("score", "count"))
    table["n_undefined"] = by_group.size() - table["n_responses"]
    table["raw_mean"] = by_group["score"].mean()
    table["score"] = table["raw_mean"].clip(0, 1)
    if "length_adjusted" in scored:
        whole = by_group["length_adjusted"].count().eq(table["n_responses"])
        table["raw_length_adjusted"] = by_group["length_adjusted"].mean().where(whole)
        table["length_adjusted"] = table["raw_length_adjusted"].clip(0, 1)
    return table.reset_index()


def scores_of_sums(sums: pd.DataFrame) -> pd.DataFrame:
    """The overall score by points summed in SQL (`queries.response_sums`): NaN where a verdict is missing or nothing positive can be achieved."""
    complete = sums["n_judged"].ge(sums["n_expected"])
    score = quotient(sums["achieved"].fillna(0), sums["possible"].fillna(0))
    return sums.assign(score=pd.Series(score, index=sums.index).where(complete))


def mean_scores_by_example(scored: pd.DataFrame, judge: str) -> pd.DataFrame:
    """One row an example, one column a model: the mean score of its responses by one judge, from `scores_of_sums`; NaN where undefined."""
    of_judge = scored.loc[scored["judge"].eq(judge)]
    return of_judge.astype({"model": "str"}).groupby(["example_id", "model"])["score"].mean().unstack("model")

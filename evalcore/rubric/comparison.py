"""Which of two models is better in a judge's opinion: paired differences on the same examples."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.items import RubricData
from evalcore.rubric.score import rubric_scores
from evalcore.stats.intervals import LEVEL
from evalcore.stats.means import codes_of
from evalcore.stats.pair_tests import adjusted, benjamini_hochberg, holm, sign_flip_chances
from evalcore.stats.resampling import Floats, percentiles, resampled_means

N_RESAMPLES = N_FLIPS = 10_000
MIN_EXAMPLES = 2
"""With fewer examples there is no spread to be seen, and no interval."""
SMALL = 20
"""With fewer examples a number is shown greyed: percentile intervals are then too narrow."""
RESPONSE_COLUMNS = (
    "response_id", "example_id", "model", "evaluation", "sample_index", "theme", "category", "language", "n_chars", "is_complete", "score",
)  # fmt: skip
PAIR_COLUMNS = (
    "model_1", "model_2", "n_examples", "n_left_out", "difference", "low", "high", "p", "p_holm", "p_bh", "p_max_t", "small",
)  # fmt: skip


def response_scores(rubric_data: RubricData, judge: str) -> pd.DataFrame:
    """The score of every response by one judge: points of met criteria over positive points, as `score.response_scores`.

    Args:
        rubric_data: Of one or several evaluations.
        judge: One of `rubric_data.judges`.

    Returns:
        One row a response, sorted by response_id: response_id, example_id, model, evaluation, sample_index, theme, category,
        language, n_chars, is_complete (the judge gave a label on every criterion that is asked), score (at most 1, may be
        negative). The score is NaN where the response is not complete or nothing positive can be achieved. Criteria without
        points do not enter. A criterion that the judge could not assess counts as one without a label.

    Raises:
        ValueError: There is no such judge.
    """
    items, met = rubric_data.items, labels_of(rubric_data, judge)
    codes, response_ids = pd.factorize(items["response_id"].to_numpy(), sort=True)
    points = items["points"].to_numpy(dtype=float)
    n_responses = len(response_ids)
    rows = np.empty(n_responses, dtype=np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]  # the first item of each response
    scored = rubric_scores(codes, points, met, n_responses)
    names = [name for name in RESPONSE_COLUMNS if name in items.columns]
    found = items[names].take(rows).reset_index(drop=True)
    complete = scored.n_labelled >= items["n_expected"].to_numpy(dtype=float)[rows]
    return found.assign(is_complete=complete, score=np.where(complete, scored.score, np.nan))


def labels_of(rubric_data: RubricData, judge: str) -> Floats:
    """One judge's labels, one an item: 1 met, 0 not met, NaN none.

    Raises:
        ValueError: There is no such judge.
    """
    if judge not in rubric_data.judged.columns:
        msg = f"judge: {judge} came, expected one of {', '.join(rubric_data.judges) or 'none: no judge has given a label'}"
        raise ValueError(msg)
    return rubric_data.judged[judge].to_numpy(dtype=float)


def example_scores(rubric_data: RubricData, judge: str) -> pd.DataFrame:
    """The score of every model on every example of one evaluation by one judge: the mean over the model's responses to it.

    Args:
        rubric_data: Of one evaluation; a subset of the examples is the caller's to choose (`RubricData.where`).
        judge: One of `rubric_data.judges`.

    Returns:
        Index example_id, sorted; one column a model, sorted by name (columns.name `model`). At most 1, may be negative. NaN where no response
        of the model has a score; a response without one is left out of the mean.

    Raises:
        ValueError: Several evaluations came, or there is no such judge.
    """
    return by_example(response_scores(rubric_data, judge))


def by_example(responses: pd.DataFrame) -> pd.DataFrame:
    """`example_scores` of responses that are scored already.

    Args:
        responses: As `response_scores` gives them, of one evaluation.

    Raises:
        ValueError: Several evaluations came.
    """
    evaluations = responses["evaluation"].dropna().unique()
    if len(evaluations) > 1:
        msg = f"responses of {len(evaluations)} evaluations came ({', '.join(sorted(map(str, evaluations)))}), expected those of one"
        raise ValueError(msg)
    rows, example_ids = pd.factorize(responses["example_id"].to_numpy(), sort=True)
    columns, models = codes_of(responses["model"])
    shape = len(example_ids), len(models)
    cells = rows * len(models) + columns
    score = responses["score"].to_numpy(dtype=float)
    scored = ~np.isnan(score)
    sums = np.bincount(cells[scored], score[scored], shape[0] * shape[1])
    counts = np.bincount(cells[scored], minlength=shape[0] * shape[1])
    means = np.full(len(sums), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return pd.DataFrame(
        means.reshape(shape), index=pd.Index(example_ids, name="example_id"), columns=pd.Index(models, name="model")
    )


def differences(
    scores: pd.DataFrame,
    *,
    rng: np.random.Generator,
    n_resamples: int = N_RESAMPLES,
    n_flips: int = N_FLIPS,
    level: float = LEVEL,
) -> pd.DataFrame:
    """How far apart each pair of models is on the examples that both have a score on.

        difference   mean of d_i = score of model_1 - score of model_2 on example i
        low, high    percentile interval of the mean of d over resampled examples
        p            sign flips, two-sided: T = sum d_i, T* = sum s_i d_i with fair signs s; p = (#{|T*| >= |T|} + 1) / (n_flips + 1)
        p_max_t      the same for the largest |T*| / sqrt(sum d_i^2) over all pairs: the chance of any difference as clear as
                     this where no model differs
        p_holm, p_bh p adjusted for the number of pairs: family-wise (Holm 1979), false discovery rate (Benjamini, Hochberg 1995)

    The same resamples and flips serve all pairs. Repeats of an example are one score each, so intervals cluster by example. The
    percentile interval is a little narrow with few examples: below 20 `small` says so.

    The scores are one judge's opinion, and so is their difference: see `judge_only_warning`.

    Args:
        scores: As `example_scores` gives them.
        rng: Chance. Examples are put in order first, so that the order of rows does not matter.
        n_resamples: How many.
        n_flips: How many; the smallest p is 1 / (n_flips + 1).
        level: Of confidence, in (0, 1).

    Returns:
        One row a pair, in the order of the columns of `scores`: model_1, model_2, n_examples (with a score of both), n_left_out (with a score
        of one of them only), difference, low, high, p, p_holm, p_bh, p_max_t (all in (0, 1]), small. Undefined is NaN: everything
        without a shared example, low and high with one example or where d is the same on all of them (its spread was not seen).

    Raises:
        ValueError: An example has two rows, or a model two columns.
    """
    table = _in_order(scores)
    first, second = np.triu_indices(table.shape[1], k=1)
    values = table.to_numpy(dtype=float)
    gaps = values[:, first] - values[:, second]
    shared = ~np.isnan(gaps)
    n_examples = shared.sum(axis=0)
    either = (~np.isnan(values[:, first]) | ~np.isnan(values[:, second])).sum(axis=0)
    sums = np.where(shared, gaps, 0.0).sum(axis=0)
    difference = np.full(len(first), np.nan)
    np.divide(sums, n_examples, out=difference, where=n_examples > 0)
    low, high = percentiles(resampled_means(gaps, rng=rng, n_resamples=n_resamples), level=level)
    unseen = (n_examples < MIN_EXAMPLES) | ~_spreads(gaps)
    p, p_max_t = sign_flip_chances(np.where(shared, gaps, 0.0), rng=rng, n_flips=n_flips)
    p, p_max_t = np.where(n_examples > 0, p, np.nan), np.where(n_examples > 0, p_max_t, np.nan)
    found = pd.DataFrame(
        {
            "model_1": table.columns.to_numpy()[first],
            "model_2": table.columns.to_numpy()[second],
            "n_examples": n_examples,
            "n_left_out": either - n_examples,
            "difference": difference,
            "low": np.where(unseen, np.nan, low),
            "high": np.where(unseen, np.nan, high),
            "p": p,
            "p_holm": adjusted(p, holm),
            "p_bh": adjusted(p, benjamini_hochberg),
            "p_max_t": p_max_t,
            "small": n_examples < SMALL,
        }
    )
    return found[list(PAIR_COLUMNS)]


def _in_order(scores: pd.DataFrame) -> pd.DataFrame:
    """The examples in order, those that no model has a score on left out."""
    if not scores.index.is_unique or not scores.columns.is_unique:
        msg = "scores: an example or a model came twice, expected one row an example and one column a model"
        raise ValueError(msg)
    return scores.sort_index().dropna(how="all")


def _spreads(gaps: Floats) -> npt.NDArray[np.bool_]:
    """In which columns not all values are the same, rounding apart."""
    known = ~np.isnan(gaps)
    highest = np.where(known, gaps, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(known, gaps, np.inf).min(axis=0, initial=np.inf)
    spread: npt.NDArray[np.bool_] = highest > lowest + 1e-9
    return spread


def judge_only_warning(judge: str) -> str:
    """What a comparison by a judge alone does not say, for the screen and for a paper.

    >>> judge_only_warning("Magpie").split(".")[0]
    'These scores are the opinion of the judge Magpie alone'

    Args:
        judge: Its name, or the names of a jury.
    """
    return (
        f"These scores are the opinion of the judge {judge} alone. A difference that is clear here is clear in that opinion, on other examples "
        "of this kind; it is not a significant difference by physicians. For that, use the corrected difference."
    )

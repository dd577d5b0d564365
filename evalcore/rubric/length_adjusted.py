"""The length-adjusted score of HealthBench, beside the plain one: long responses lose, short ones gain.

    adjusted = score - penalty (characters - 2,000) / 500          of an example

As the reference tool has it (openai/simple-evals, pull request 108, `calculate_length_adjusted_score`; arXiv 2604.27470, section 4.1): no example is clipped,
so a response shorter than 2,000 characters gains and may pass 1; the mean over examples alone is clipped to [0, 1]. Each part of the benchmark has its own
penalty. Characters are Unicode code points, as Python's `len` and SQL's `length` count them. Another port clips each example first: this is not that score.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.scores import CATEGORY, OF_EXAMPLES, OVERALL
from evalcore.stats.arrays import Floats
from evalcore.study.schema import PROFESSIONAL

CENTRE, STEP = 2_000, 500  # characters
NAME = "Length-adjusted score"
_BENCHMARK = "healthbench"
_PARTS = {"": 0.0299, "oss_eval": 0.0299, "hard": 0.0392, "consensus": 0.0020, PROFESSIONAL: 0.0147}


def penalty_of(evaluation: str | None, subset: str | None = None) -> float:
    """What a response of this evaluation loses by 500 characters, of its `subset` where one is chosen; NaN: it is no part of HealthBench.

    >>> penalty_of("healthbench_hard"), penalty_of("healthbench", "consensus"), penalty_of("another")
    (0.0392, 0.002, nan)
    """
    family, _, part = (evaluation or "").partition("_")
    return _PARTS.get(subset or part, np.nan) if family == _BENCHMARK else np.nan


def help_words(penalty: float) -> str:
    """What the length-adjusted score is, for the column's head and below its table; empty where there is none."""
    if np.isnan(penalty):
        return ""
    return (
        f"{NAME} (HealthBench): each response's score less {penalty:.4f} for every {STEP} characters beyond {CENTRE:,}, "
        "so shorter ones gain; then the mean, within 0 and 1. Corrected where enough is read, else by the judge only."
    )


def steps(n_chars: npt.ArrayLike) -> Floats:
    """By how many times 500 characters responses are longer than 2,000; below 0: shorter. NaN where the text, or its length, is not known (0)."""
    chars = np.asarray(n_chars, dtype=np.float64)
    return np.where(chars > 0, (chars - CENTRE) / STEP, np.nan)


def length_adjusted(scores: npt.ArrayLike, n_chars: npt.ArrayLike, penalty: npt.ArrayLike) -> Floats:
    """The formula, of each response, not clipped; NaN where the score, the length or the penalty is.

    >>> length_adjusted([0.8, 0.8, 1.0], [2500, 2000, 1500], 0.0147).round(4).tolist()
    [0.7853, 0.8, 1.0147]
    """
    adjusted: Floats = np.asarray(scores, dtype=np.float64) - np.asarray(penalty, dtype=np.float64) * steps(n_chars)
    return adjusted


def with_length_adjusted(scored: pd.DataFrame, n_chars: pd.Series, evaluation: str = "dataset") -> pd.DataFrame:
    """`scores.scores_of_verdicts` with n_chars, by lengths that are indexed by response_id, and length_adjusted; `evaluation` is the column with its name.

    It is of whole responses: NaN in the groups of criteria (axis, level, cluster), which have no length of their own.
    """
    penalties = {name: penalty_of(name) for name in scored[evaluation].unique()}
    kind = scored["group"].str.split(":").str[0].replace("physician_agreed_category", CATEGORY)
    penalty = scored[evaluation].map(penalties).where(kind.isin([OVERALL, *OF_EXAMPLES])).astype(float)
    chars = scored["response_id"].map(n_chars).astype(float)
    adjusted = length_adjusted(scored["score"].astype(float), chars, penalty)
    return scored.assign(n_chars=chars, length_adjusted=adjusted)

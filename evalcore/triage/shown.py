"""Which of a model's responses to show for what it answers on a case."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import Format
from evalcore.triage.counts import Numbers
from evalcore.triage.data import Triaged


def shown_samples(
    triaged: Triaged, mine: pd.DataFrame, judges: Mapping[str, str]
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The response to show for each prediction: the first with text that was read as the predicted level, else the first with text.

    Args:
        triaged: The cases.
        mine: Rows of `predictions.predictions`: row, model, format, predicted, first; each case, model and format once.
        judges: By format the judge whose levels the predictions have.

    Returns:
        For each row: the row in `triaged.samples` (-1: no response has a text), and whether that text was read as the predicted level (either
        letter of a boundary counts).
    """
    samples = triaged.samples
    models, formats = samples["model"].cat.categories, [word.value for word in Format]
    texts = np.flatnonzero(samples["has_text"].to_numpy())
    place = np.full(len(triaged.cases) * len(models) * len(formats), -1, dtype=np.int64)
    place[_keys(mine, models, formats)] = np.arange(len(mine))
    of = place[_keys(samples.iloc[texts], models, formats)]
    texts, of = texts[of >= 0], of[of >= 0]
    asked = samples["format"].take(texts)
    level = np.full(len(texts), np.nan)
    for word, judge in judges.items():
        if judge in triaged.levels:
            chosen = asked.eq(word).to_numpy(dtype=bool)
            level[chosen] = triaged.levels[judge].to_numpy(dtype=float)[texts[chosen]]
    predicted = mine["predicted"].to_numpy(dtype=float)[of]
    agrees = (np.floor(level) == predicted) | (np.ceil(level) == predicted)
    sample = mine["first"].to_numpy(dtype=np.int64).copy()
    sample[of[agrees][::-1]] = texts[agrees][::-1]  # the earliest is written last
    says_so = np.zeros(len(mine), dtype=bool)
    says_so[of[agrees]] = True
    return sample, says_so


def _keys(table: pd.DataFrame, models: pd.Index, formats: Sequence[Any]) -> Numbers:
    """Case, model and format of each row as one number."""
    model = pd.Categorical(table["model"], categories=models).codes.astype(np.int64)
    asked = pd.Categorical(table["format"], categories=formats).codes.astype(np.int64)
    found: Numbers = (table["row"].to_numpy(dtype=np.int64) * max(len(models), 1) + model) * len(formats) + asked
    return found

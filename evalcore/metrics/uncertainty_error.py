"""The calibration error of an article's sketch: a model's confidence on ambiguous cases against physicians' stated uncertainty."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.means import cells_of, clustered_means
from evalcore.metrics.panels import Kind
from evalcore.metrics.predictions import joined
from evalcore.triaged import Triaged

DEFINITION = (
    "Mean of |(1 - confidence) - physicians' uncertainty| over ambiguous cases that have both. Confidence is the one that the file states, "
    "else the share of the valid samples that say the most frequent level; uncertainty is the one that the cases' file states, in [0, 1]."
)
NONE_AMBIGUOUS = "No ambiguous case has a prediction."
NONE_STATED = (
    "The cases' file states no physicians' uncertainty for ambiguous cases, so this error has no value. It is not 0."
)


def uncertainty_error(
    triaged: Triaged,
    found: pd.DataFrame,
    *,
    by: Sequence[str] = ("model", "format"),
    stated: bool = True,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The error that `DEFINITION` says, 0 (best) to 1.

    Args:
        triaged: Described by `panels.described`.
        found: `predictions(triaged, judges)`.
        by: Columns that name the groups.
        stated: A stated confidence goes before the share of samples.
        level: Of the interval, in (0, 1).

    Returns:
        One row a group with any prediction: the columns of `by`, n_ambiguous (ambiguous cases with a prediction), n (those of them with a
        stated uncertainty), n_stated (those with a stated confidence), value with low and high (t interval over cases),
        undefined: a sentence where there is no value, else "". The value is NaN without cases, never 0.
    """
    table = joined(triaged, found, ("kind", "uncertainty"))
    known = table.loc[table["predicted"].notna()].reset_index(drop=True)
    cells, keys = cells_of(known, by)
    ambiguous = known["kind"].eq(Kind.AMBIGUOUS).to_numpy()
    uncertainty = known["uncertainty"].to_numpy(dtype=float)
    is_stated = known["stated"].notna() & stated
    confidence = known["stated"].where(is_stated, known["share"]).to_numpy(dtype=float)
    both = ambiguous & ~np.isnan(uncertainty)
    error = np.abs((1 - confidence) - uncertainty)
    means = clustered_means(cells[both], known["row"].to_numpy()[both], error[both], n_cells=len(keys), level=level)
    n_ambiguous = np.bincount(cells[ambiguous], minlength=len(keys))
    n = means["n_values"].to_numpy()
    return keys.assign(
        n_ambiguous=n_ambiguous,
        n=n,
        n_stated=np.bincount(cells[both & is_stated.to_numpy()], minlength=len(keys)),
        value=means["mean"],
        low=means["low"],
        high=means["high"],
        undefined=np.where(n > 0, "", np.where(n_ambiguous > 0, NONE_STATED, NONE_AMBIGUOUS)),
    )

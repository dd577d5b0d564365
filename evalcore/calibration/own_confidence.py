"""A model's own confidence in the level that it gives a case: the one rule of whose confidence counts, for every statistic that needs one."""

import pandas as pd

from evalcore.triage.panels import Kind

MODEL_COLUMNS = ["model", "format", "cluster", "confidence", "is_stated", "right", "gold", "predicted"]
FEWEST = 2
"""The share of samples that agree says something from two valid samples on: of one it is always 1."""
DIGITS = 9
"""Means of stated confidences are rounded, so that 0.8 three times is 0.8 again: a threshold of 0.8 would send it to a human else."""


def own_confidence(found: pd.DataFrame, *, stated: bool = True) -> pd.DataFrame:
    """Predictions with the confidence that is the model's own: the one that it states itself, else the share of its samples.

    A confidence stated with a level belongs to whoever read the level. The parser takes both from the model's own words, so where it read the level
    the model states the confidence (`predictions.predictions` gives no other).

    Args:
        found: Rows of `predictions.predictions`, with or without columns of their cases.
        stated: A confidence that the model states counts; False: the share of its samples alone (where nobody has said what the stated
            ones mean).

    Returns:
        The same rows with confidence in [0, 1] (stated, else the share of the valid samples that say the predicted level, from two valid samples
        on; NaN where the model has none) and is_stated.
    """
    is_stated = found["stated"].notna() & stated
    share = found["share"].where(found["n_valid"].ge(FEWEST))
    return found.assign(confidence=found["stated"].where(is_stated, share).round(DIGITS), is_stated=is_stated)


def model_items(own: pd.DataFrame) -> pd.DataFrame:
    """One row a prediction on a clear case: how sure the model was, and whether it was right.

    Args:
        own: As `own_confidence` gives them, with gold and kind of their cases.

    Returns:
        One row a clear case, model and format with a prediction, for `calibration` with by=("model", "format"): model, format, cluster (the case),
        confidence in [0, 1] (NaN where the model has none), is_stated, right (1 or 0), gold, predicted.
    """
    kept = own.loc[own["kind"].eq(Kind.CLEAR) & own["predicted"].notna()].reset_index(drop=True)
    return kept.assign(cluster=kept["row"], right=kept["predicted"].eq(kept["gold"]).astype(float))[MODEL_COLUMNS]

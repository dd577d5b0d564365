"""Labels with a stated confidence, for the tests of what a confidence means."""

import pandas as pd

from evalcore.calibration.confidence import HALF, criteria_meanings


def counted(labels: pd.DataFrame) -> pd.DataFrame:
    """The sums that the database gives of labels: judge, label (1 met, 0 not met), confidence."""
    known = labels.loc[labels["label"].notna() & labels["confidence"].notna()]
    sides = known.assign(above=known["confidence"].gt(HALF), below=known["confidence"].lt(HALF))
    return (
        sides.groupby(["judge", "label"], observed=True, as_index=False)
        .agg(n=("confidence", "size"), mean_confidence=("confidence", "mean"), n_above=("above", "sum"), n_below=("below", "sum"))
        .astype({"judge": object})
    )  # fmt: skip


def checked(labels, meaning):
    return criteria_meanings(counted(labels), meaning)

"""The long verdict table of a drawing as `Opinions`, so that one drawing can be scored both ways."""

import numpy as np
import pandas as pd

from evalcore.opinions import ITEM_COLUMNS, READ_COLUMNS, Opinions

MET = {"met": 1.0, "not_met": 0.0, "cannot_assess": np.nan}
NAMES = ("model", "evaluation", "axis", "level", "cluster", "theme", "category", "language")


def as_opinions(verdicts: pd.DataFrame) -> Opinions:
    """Judges' verdicts of `tests.tables.verdicts`; physicians' reads are left out."""
    items = verdicts.drop_duplicates("item_id").sort_values(["response_id", "position"], ignore_index=True)
    items = items.assign(n_chars=100, reachable=True)[list(ITEM_COLUMNS)].astype(dict.fromkeys(NAMES, "category"))
    judges = verdicts.loc[verdicts["rater_kind"].eq("judge")]
    judged = judges.assign(met=judges["label"].map(MET)).pivot(index="item_id", columns="rater", values="met")
    judged = judged.reindex(items["item_id"]).reset_index(drop=True).astype(np.float32)
    return Opinions(items, judged.rename_axis(columns=None), pd.DataFrame(columns=list(READ_COLUMNS)))

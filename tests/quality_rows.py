"""A drawn study for what is said of judges' quality, and one row of what comes out."""

import numpy as np
import pandas as pd
from hypothesis import settings

from evalcore.judges.quality import OVERALL
from evalcore.rubric.data import RubricData
from tests.population import drawn

many = settings(max_examples=4, deadline=None)


def row_of(table: pd.DataFrame, rater: str, group: str = OVERALL) -> pd.Series:
    return table.loc[table["rater"].eq(rater) & table["group"].eq(group)].squeeze()


def opinions_of(seed: int, n_examples: int = 12, **more: object) -> RubricData:
    rng = np.random.default_rng(seed)
    settings_ = {"judges": {"Magpie": 0.8, "Wren": 0.6}, "n_readers": 2, "share_read": 0.6, "reader_accuracy": 0.8}
    rubric_data, _ = drawn(rng, n_examples=n_examples, readers=("dr_a", "dr_b", "dr_c"), **(settings_ | more))
    clusters = rng.choice(["hedging_one", "hedging_two", "invented", None], len(rubric_data.items))
    items = rubric_data.items.assign(cluster=pd.Categorical(clusters))
    hidden = rubric_data.judged.mask(rng.random(rubric_data.judged.shape) < 0.1)
    return RubricData(items, hidden, rubric_data.reads)

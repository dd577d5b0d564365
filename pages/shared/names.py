"""How responses of one conversation are told apart by name."""

import pandas as pd

OF_CASES = "acuity_"
"""How the names of what responses to cases were made for begin."""


def response_names(responses: pd.DataFrame) -> list[str]:
    """The model's name, with data set and repeat where one name would stand for several responses."""
    models = responses["model"].astype(str)
    repeats = (responses["sample_index"] + 1).astype(str)
    made_for = responses["evaluation"].astype(str).str.removeprefix(OF_CASES)
    longer = models + " · " + made_for + " · " + repeats
    return list(models.mask(models.duplicated(keep=False), longer))

"""How responses of one conversation are told apart by name."""

import pandas as pd


def response_names(responses: pd.DataFrame) -> list[str]:
    """The model's name, with data set and repeat where one name would stand for several responses.

    Args:
        responses: Of one conversation (`queries.browse.Opened.responses`).
    """
    models = responses["model"].astype(str)
    repeats = (responses["sample_index"] + 1).astype(str)
    longer = models + " · " + responses["evaluation"].astype(str) + " · " + repeats
    return list(models.mask(models.duplicated(keep=False), longer))

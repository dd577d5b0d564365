"""`Opinions` from a drawn table: one row an item, one column a judge or reader; + met, - not met, ? cannot assess, empty none."""

import numpy as np
import pandas as pd

from evalcore.metrics.opinions import READ_COLUMNS, Opinions
from evalcore.queries.frames import ITEM_BASE

VALUES = {"+": 1.0, "-": 0.0, "?": np.nan}
NAMES = ("model", "evaluation", "axis", "level", "cluster", "theme", "category", "language")


def of_columns(
    *,
    example: list[int],
    criterion: list[int],
    judges: dict[str, str],
    readers: dict[str, str] | None = None,
    model: list[str] | None = None,
    points: list[float] | None = None,
    cluster: list[str | None] | None = None,
    axis: list[str | None] | None = None,
    blinded: bool = True,
    stage: str = "first",
    selection: str | None = "random",
    probability: float | list[float] = 0.5,
) -> Opinions:
    """A study of the given items.

    Args:
        example: Number of each item's example.
        criterion: Number of each item's criterion in its example, from 1.
        judges: Name to one letter an item; a dot: no label.
        readers: The same, of physicians.
        model: Of each item; default: one model.
        points: Of each item; default: 1 each.
        cluster: Of each item; default: none.
        axis: Of each item; default: accuracy.
        blinded: Of all reads.
        stage: Of all reads.
        selection: Of all reads.
        probability: Inclusion probability of the reads, one for all or one an item.
    """
    n = len(example)
    models = model or ["Alder"] * n
    order = {name: number for number, name in enumerate(sorted(set(models)))}
    response = np.array([number * 1000 + order[name] for number, name in zip(example, models, strict=True)])
    criterion_id = np.array(example) * 100 + np.array(criterion)
    items = pd.DataFrame(
        {
            "item_id": response * ITEM_BASE + criterion_id,
            "response_id": response,
            "criterion_id": criterion_id,
            "example_id": example,
            "position": criterion,
            "points": np.array(points or [1.0] * n, dtype=float),
            "model": models,
            "evaluation": "invented",
            "sample_index": 0,
            "n_expected": pd.Series(response).map(pd.Series(response).value_counts()),
            "axis": axis or ["accuracy"] * n,
            "level": "example",
            "cluster": cluster or [None] * n,
            "theme": "hedging",
            "category": None,
            "language": "en",
            "n_chars": 100,
        }
    )
    items = items.astype(dict.fromkeys(NAMES, "category"))
    judged = pd.DataFrame(
        {
            name: np.array([VALUES.get(letter, np.nan) for letter in letters], np.float32)
            for name, letters in judges.items()
        }
    )
    probabilities = probability if isinstance(probability, list) else [probability] * n
    reads = [
        {
            "row": row,
            "item_id": items["item_id"][row],
            "example_id": example[row],
            "response_id": response[row],
            "rater": name,
            "met": VALUES[letter],
            "stage": stage,
            "blinded": blinded,
            "selection": selection,
            "inclusion_probability": probabilities[row] if selection else np.nan,
            "unit": items["item_id"][row],
        }
        for name, letters in (readers or {}).items()
        for row, letter in enumerate(letters)
        if letter in VALUES
    ]
    return Opinions(items, judged, pd.DataFrame(reads, columns=list(READ_COLUMNS)).astype({"met": float}))


def shuffled(opinions: Opinions, rng: np.random.Generator) -> Opinions:
    """The same study with its items and reads in another order."""
    order = rng.permutation(len(opinions.items))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    reads = opinions.reads.iloc[rng.permutation(len(opinions.reads))].reset_index(drop=True)
    return Opinions(
        opinions.items.iloc[order].reset_index(drop=True),
        opinions.judged.iloc[order].reset_index(drop=True),
        reads.assign(row=place[reads["row"].to_numpy(dtype=int)]),
    )

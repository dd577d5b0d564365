"""`RubricData` from a few letters, a drawn table, or the long verdict table of `tests.tables`; and the same in another order."""

from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.data import ITEM_COLUMNS, READ_COLUMNS, RubricData
from evalcore.study.frames import ITEM_BASE
from tests import tables

VALUES = {"+": 1.0, "-": 0.0, "?": np.nan}
MET = {tables.LABELS[letter]: value for letter, value in VALUES.items()}
TAGS = ("axis", "level", "cluster", "theme", "category", "language")
NAMES = ("model", "evaluation", *TAGS)
OF_ITEM = ("example", "cluster", "theme", "axis", "points", "language", "selection")


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
) -> RubricData:
    """A study of the given items: + met, - not met, ? cannot assess.

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
    items = _items(
        item_id=response * ITEM_BASE + criterion_id,
        response_id=response,
        criterion_id=criterion_id,
        example_id=example,
        position=criterion,
        points=np.array(points or [1.0] * n, dtype=float),
        model=models,
        n_expected=pd.Series(response).map(pd.Series(response).value_counts()),
        axis=axis or ["accuracy"] * n,
        cluster=cluster or [None] * n,
    )
    probabilities = probability if isinstance(probability, list) else [probability] * n
    said = {"stage": stage, "blinded": blinded, "selection": selection}
    reads = [
        _read(items, row, name, letter) | said | {"inclusion_probability": probabilities[row] if selection else np.nan}
        for name, letters in (readers or {}).items()
        for row, letter in enumerate(letters)
        if letter in VALUES
    ]
    return _rubric_data(items, judges, reads)


def of_drawing(drawing: str, **reads: object) -> RubricData:
    """A line an item, each of a response of its own; columns dr_... are physicians, others judges; + met, - not met, ? cannot assess, empty nothing.

    Args:
        drawing: The table; columns of `OF_ITEM` describe the item.
        reads: Columns of the reads that have one value throughout, e.g. stage.
    """
    lines = [[cell.strip() for cell in line.split("|")] for line in drawing.strip().splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    raters = [name for name in lines[0] if name not in OF_ITEM]
    numbers = np.arange(1, len(rows) + 1)
    items = _items(
        item_id=numbers,
        response_id=numbers,
        criterion_id=numbers,
        example_id=[int(row.get("example", n)) for n, row in enumerate(rows, start=1)],
        position=1,
        points=[float(row.get("points") or "nan") for row in rows],
        model="Alder",
        n_expected=1,
        **{name: [row.get(name) or None for row in rows] for name in TAGS},
    )
    made = [
        _read(items, n, name, row[name]) | {"unit": n, "selection": row.get("selection", "random") or None} | reads
        for n, row in enumerate(rows)
        for name in raters
        if name.startswith("dr_") and row[name]
    ]
    judges = {name: [row[name] for row in rows] for name in raters if not name.startswith("dr_")}
    return _rubric_data(items, judges, made)


def of_verdicts(verdicts: pd.DataFrame) -> RubricData:
    """What judges say in `tests.tables.verdicts`, so that one drawing can be scored both ways; physicians' reads are left out."""
    items = verdicts.drop_duplicates("item_id").sort_values(["response_id", "position"], ignore_index=True)
    items = items.assign(n_chars=100, reachable=True)[list(ITEM_COLUMNS)].astype(dict.fromkeys(NAMES, "category"))
    judges = verdicts.loc[verdicts["rater_kind"].eq("judge")]
    judged = judges.assign(met=judges["label"].map(MET)).pivot(index="item_id", columns="rater", values="met")
    judged = judged.reindex(items["item_id"]).reset_index(drop=True).astype(np.float32)
    return RubricData(items, judged.rename_axis(columns=None), pd.DataFrame(columns=list(READ_COLUMNS)))


def _items(**columns: Any) -> pd.DataFrame:
    plain = {
        "evaluation": "invented", "sample_index": 0, "level": "example", "theme": "hedging", "category": None, "language": "en", "n_chars": 100,
        "reachable": True,
    }  # fmt: skip
    return pd.DataFrame(plain | columns)[list(ITEM_COLUMNS)].astype(dict.fromkeys(NAMES, "category"))


def _read(items: pd.DataFrame, row: int, name: str, letter: str) -> dict[str, object]:
    of_item = {column: items[column][row] for column in ("item_id", "example_id", "response_id")}
    said = {"rater": name, "met": VALUES[letter], "stage": "first", "blinded": True, "selection": "random"}
    return {"row": row, **of_item, **said, "inclusion_probability": 0.5, "unit": of_item["item_id"]}


def _rubric_data(items: pd.DataFrame, judges: Any, reads: list[dict[str, object]]) -> RubricData:
    judged = {
        name: np.array([VALUES.get(letter, np.nan) for letter in said], np.float32) for name, said in judges.items()
    }
    of_physicians = pd.DataFrame(reads, columns=list(READ_COLUMNS)).astype({"met": float})
    return RubricData(items, pd.DataFrame(judged, index=items.index), of_physicians)


def shuffled(rubric_data: RubricData, rng: np.random.Generator) -> RubricData:
    """The same study with its items and reads in another order."""
    order = rng.permutation(len(rubric_data.items))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    reads = rubric_data.reads.iloc[rng.permutation(len(rubric_data.reads))].reset_index(drop=True)
    return RubricData(
        rubric_data.items.iloc[order].reset_index(drop=True),
        rubric_data.judged.iloc[order].reset_index(drop=True),
        reads.assign(row=place[reads["row"].to_numpy(dtype=int)]),
    )

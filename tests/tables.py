"""Drawn tables: a few lines of text become the long verdict table that `frames.verdicts` gives."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from evalcore.study.frames import ITEM_BASE

LABELS = {"+": "met", "-": "not_met", "?": "cannot_assess"}
_OF_ITEM = ("response", "criterion", "example", "points", "axis", "cluster", "level", "theme", "category", "model")
_START = datetime(2026, 11, 20, 10, tzinfo=UTC)


def verdicts(drawing: str, **columns: Any) -> pd.DataFrame:
    """The verdicts of a drawing: the first line names the columns, each further line is one item.

    A column that describes no item is a rater: `judge...` a judge, others physicians; `dr_a:open` says the stage (default: first
    for physicians). Its cells: + met, - not met, ? cannot assess, empty: no verdict. Columns are given in time from left to right.

    Args:
        drawing: The table.
        columns: Columns of the result that have one value throughout, e.g. n_expected.
    """
    lines = [[cell.strip() for cell in line.split("|")] for line in drawing.strip().splitlines()]
    names, rows = lines[0], [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    numbers = {kind: _numbered([row.get(kind, "") for row in rows]) for kind in ("response", "criterion", "example")}
    made = []
    for column in (name for name in names if name not in _OF_ITEM):
        rater, _, stage = column.partition(":")
        is_judge = rater.startswith("judge")
        for row in rows:
            if row[column]:
                response = numbers["response"][row.get("response", "")]
                criterion = numbers["criterion"][row.get("criterion", "")]
                points = row.get("points", "1")
                made.append(
                    {
                        "verdict_id": len(made) + 1,
                        "item_id": response * ITEM_BASE + criterion,
                        "response_id": response,
                        "criterion_id": criterion,
                        "example_id": numbers["example"][row["example"]] if "example" in row else response,
                        "prompt_id": row.get("example", row.get("response", "")),
                        "rater_id": [n for n in names if n not in _OF_ITEM].index(column) + 1,
                        "rater": rater,
                        "rater_kind": "judge" if is_judge else "reviewer",
                        "stage": stage or ("judge" if is_judge else "first"),
                        "label": LABELS[row[column]],
                        "points": float(points) if points else None,
                        "position": criterion,
                        "model": row.get("model", "Alder"),
                        "created_at": _START + timedelta(minutes=len(made)),
                        **{name: row.get(name) or None for name in ("axis", "cluster", "level", "theme", "category")},
                    }
                )
    found = pd.DataFrame(made, columns=None if made else ["item_id", "response_id", "points", "rater", "rater_kind"])
    raters = {rater: number for number, rater in enumerate(dict.fromkeys(found["rater"]), start=1)}
    found["rater_id"] = found["rater"].map(raters)
    found["n_expected"] = found.groupby(["response_id", "rater"])["points"].transform("count")
    plain = {
        "dataset": "invented",
        "evaluation": "invented",
        "sample_index": 0,
        "completion_id": None,
        "criterion": "Says so.",
        "language": "en",
        "canary": None,
        "explanation": None,
        "cause": None,
        "severity": None,
        "confidence": None,
        "right_for_wrong_reason": False,
        "selection": None,
        "inclusion_probability": None,
        "blinded": None,
    }
    return found.assign(**(plain | columns))


def _numbered(words: list[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}

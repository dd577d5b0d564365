"""Blind first reads beside a judge, drawn as a table or by chance; and what is counted of them."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from evalcore.judges.anchoring import OVERALL
from evalcore.study.schema import AXES
from tests import tables

SIGNS = tables.LABELS | {"": None}
LEFT_OUT = ["n_without_label", "n_not_revealed", "n_undecided"]

sign = st.sampled_from(["+", "-", "?"])
read = st.fixed_dictionaries(
    {
        "example": st.integers(1, 5),
        "axis": st.sampled_from([*AXES, None]),
        "points": st.sampled_from([-10, -1, 1, 10, None]),
        "judge": st.sampled_from(["Magpie", "Wren"]),
        "first": sign,
        "says": st.sampled_from(["+", "-", "?", ""]),
    }
)
"""A row of `reads_of`."""


def reads_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame that `blind_reads` gives, of one dictionary a read: what it does not say is plain."""
    plain = {
        "example": 1, "axis": "accuracy", "points": 5, "rater": "dr_a", "first": "+", "judge": "Magpie", "says": "+", "revised": "",
        "revealed": True, "decided": True, "looked": "", "share": None, "selection": None, "inclusion_probability": None,
    }  # fmt: skip
    made = [plain | row for row in rows]
    frame = pd.DataFrame(
        {
            "verdict_id": range(1, len(made) + 1),
            "item_id": range(1, len(made) + 1),
            **{
                name: [row[name] for row in made]
                for name in (
                    "rater",
                    "judge",
                    "axis",
                    "points",
                    "revealed",
                    "decided",
                    "selection",
                    "inclusion_probability",
                )
            },
            "example_id": [row["example"] for row in made],
            "label": [SIGNS[row["first"]] for row in made],
            "judge_label": [SIGNS[row["says"]] for row in made],
            "revised_label": [SIGNS[row["revised"]] for row in made],
            "looked_label": [SIGNS[row["looked"]] for row in made],
            "control_share": [row["share"] for row in made],
        }
    )
    words = ["rater", "selection", "judge", "axis", "label", "judge_label", "revised_label", "looked_label"]
    return frame.astype(
        {
            "points": float,
            "inclusion_probability": float,
            "revealed": bool,
            "decided": bool,
            **dict.fromkeys(words, "str"),
        }
    )


def drawn(drawing: str) -> pd.DataFrame:
    """Reads of a drawn table; `-` and `+` are labels, empty cells are missing, numbers are numbers."""
    lines = [[cell.strip() for cell in line.split("|")] for line in drawing.strip().splitlines()]
    rows: list[dict[str, Any]] = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    for row in rows:
        if "points" in row:
            row["points"] = float(row["points"]) if row["points"] else None
        if "axis" in row:
            row["axis"] = row["axis"] or None
        for name in ("revealed", "decided"):
            if name in row:
                row[name] = row[name] == "yes"
    return reads_of(rows)


def shares(table: pd.DataFrame, group: str = OVERALL) -> dict[str, tuple[int, int]]:
    """(moved, of) by movement, of one group of `anchoring`."""
    rows = table.loc[table["group"].eq(group)].to_dict(orient="records")
    return {row["movement"]: (row["n_moved"], row["n"]) for row in rows}


def left_out(table: pd.DataFrame) -> dict[str, int]:
    """The reads that `anchoring` left out, by reason."""
    return dict(table.iloc[0][LEFT_OUT])

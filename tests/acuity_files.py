"""Small invented files of triage, and what a study holds after them."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Engine

from tests.invented import rows

CASE = {
    "dataset": "clinic",
    "source_id": "1",
    "original_prompt_text": "Pt c/o cough 3d, no SOB.",
    "normalized_prompt_text": "I have been coughing for three days. I can breathe well.",
    "original_label": "A",
    "normalized_label": "A",
    "is_edge_case": "false",
    "mapping_method": "direct",
    "notes": "",
}
PREDICTION = {
    "case_id": "clinic_1", "model": "Alder-2", "format": "qa", "sample_index": "0", "text": "Rest and drink.", "level": "A",
    "confidence": "", "rater": "parser", "explanation": "",
}  # fmt: skip


def case(source_id: object = "1", *votes: str, **other: object) -> dict[str, str]:
    """A case; with votes it has no level of its own unless told."""
    panel = {f"anon_label_{place}": vote for place, vote in enumerate(votes, start=1)}
    own = {"original_label": "", "normalized_label": "", "mapping_method": ""} if votes else {}
    return CASE | {"source_id": str(source_id)} | own | panel | {name: str(value) for name, value in other.items()}


def prediction(**other: object) -> dict[str, str]:
    """A sample and what the parser says of it."""
    return PREDICTION | {name: str(value) for name, value in other.items()}


def matrix(
    counts: Iterable[Iterable[int]], model: str = "Model P", asked: str = "qa", golds: Iterable[str] = "ABCD"
) -> list[dict[str, str]]:
    """The rows of a published matrix."""
    return [
        {"model": model, "format": asked, "gold": gold} | dict(zip("ABCD", map(str, line), strict=True))
        for gold, line in zip(golds, counts, strict=True)
    ]


def table(*lines: Mapping[str, Any]) -> bytes:
    """CSV with every column that a line has."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def json_lines(*lines: Mapping[str, Any]) -> bytes:
    """JSON Lines, empty cells as null."""
    return b"".join(
        json.dumps({name: value or None for name, value in line.items()}).encode() + b"\n" for line in lines
    )


def cases(engine: Engine) -> list[tuple[Any, ...]]:
    """Case id, mapped_label, gold, method."""
    return rows(
        engine,
        "SELECT e.prompt_id, c.mapped_label, c.gold, c.method FROM acuity_case c JOIN example e ON e.id = c.example_id ORDER BY e.prompt_id",
    )


def votes(engine: Engine) -> list[tuple[Any, ...]]:
    """Case id, place, rater, vote."""
    return rows(
        engine,
        "SELECT e.prompt_id, v.place, v.rater, v.vote FROM panel_vote v JOIN example e ON e.id = v.example_id ORDER BY e.prompt_id, v.place",
    )


def levels(engine: Engine) -> list[tuple[Any, ...]]:
    """Case id, model, format's evaluation, sample, rater, label of what stands."""
    return sorted(
        rows(
            engine,
            "SELECT e.prompt_id, m.name, r.dataset, r.sample_index, a.name, v.label FROM verdict v JOIN example e ON e.id = v.example_id"
            " JOIN response r ON r.id = v.response_id JOIN model m ON m.id = r.model_id JOIN rater a ON a.id = v.rater_id"
            " WHERE v.criterion_id IS NULL AND v.id NOT IN (SELECT supersedes FROM verdict WHERE supersedes IS NOT NULL)",
        )
    )

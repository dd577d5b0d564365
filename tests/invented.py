"""Small invented files in the formats of the importers, and what a study holds after them."""

import gzip
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from evalcore.importing import ImportReport, demo, import_file
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Administrator

TABLES = (
    "example", "example_subset", "criterion", "model", "rater", "response", "verdict", "imported_file", "search_entry", "search_pending",
    "audit_event", "person", "acuity_case", "panel_vote", "published_matrix", "judge_confidence",
)  # fmt: skip

SWEAT = "Asks how long the night sweats have lasted"
CLINIC = "Says when to go to a clinic"
DOSE = "Names a dose without asking for the weight"
SWEAT_CLUSTER = "hedging_any-reducible-uncertainty_seeks_context"
CLINIC_CLUSTER = "emergency_referrals_emergent_emergency_behavior"


def user(content: str = "I sweat at night. What could it be?") -> dict[str, str]:
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def criterion(
    words: str = SWEAT, points: object = 5, *tags: str, axis: str = "accuracy", cluster: str | None = None
) -> dict[str, Any]:
    """A criterion; tags are made from axis and cluster where none are given."""
    level = ["level:cluster", f"cluster:{cluster}"] if cluster else ["level:example"]
    return {"criterion": words, "points": points, "tags": list(tags) or [*level, f"axis:{axis}"]}


RUBRIC = [
    criterion(SWEAT, 5, axis="context_awareness", cluster=SWEAT_CLUSTER),
    criterion(CLINIC, 7, axis="completeness"),
    criterion(DOSE, -6, axis="accuracy"),
]


def example(
    prompt_id: str = "p1", *, rubric: list[dict[str, Any]] | None = None, theme: str = "hedging", **other: Any
) -> dict[str, Any]:
    """A row of an examples file."""
    row = {
        "prompt_id": prompt_id,
        "prompt": [user()],
        "rubrics": RUBRIC if rubric is None else rubric,
        "example_tags": [f"theme:{theme}"],
        "ideal_completions_data": None,
        "canary": "invented canary",
    }
    return row | other


def entry(
    prompt_id: str = "p1",
    met: Iterable[bool] = (True, True, False),
    *,
    answer: str = "See a doctor if it lasts.",
    rubric: list[dict[str, Any]] | None = None,
    prompt: list[dict[str, str]] | None = None,
    why: str = "It says so.",
    **other: Any,
) -> dict[str, Any]:
    """An entry of a results file."""
    items = zip(RUBRIC if rubric is None else rubric, met, strict=True)
    row = {
        "score": 0.5,
        "prompt_id": prompt_id,
        "prompt": prompt or [user()],
        "completion": [assistant(answer)],
        "completion_id": f"c-{prompt_id}-{len(answer)}",
        "rubric_items": [item | {"criteria_met": is_met, "explanation": why} for item, is_met in items],
    }
    return row | other


def results(*entries: dict[str, Any], **other: Any) -> dict[str, Any]:
    """A results document as the reference tool writes it."""
    document = {
        "score": 0.1,
        "metrics": {"overall_score": 0.1},
        "htmls": ['<b>"metadata": {</b>'],
        "convos": [[user()]],
    }
    return document | {"metadata": {"example_level_metadata": list(entries)}} | other


def meta(prompt_id: str = "p1", labels: Iterable[bool] = (True, False), **other: Any) -> dict[str, Any]:
    """A row of a meta_eval file."""
    labels = list(labels)
    row = {
        "prompt_id": prompt_id,
        "completion_id": f"m-{prompt_id}",
        "prompt": [user()],
        "completion": "Night sweats have many causes. How long have you had them?",
        "rubric": SWEAT,
        "category": f"cluster:{SWEAT_CLUSTER}",
        "binary_labels": labels,
        "anonymized_physician_ids": [f"{index:064x}" for index in range(len(labels))],
        "canary": "invented canary",
    }
    return row | other


def judged(
    prompt_id: str = "p1", *, met: object = True, judge: str = "Judge B", position: int = 1, **other: Any
) -> dict[str, Any]:
    """A row of a judge's verdicts."""
    row = {
        "prompt_id": prompt_id,
        "model": "model-a",
        "criterion_position": position,
        "criteria_met": met,
        "judge": judge,
    }
    return row | {"explanation": "So it reads."} | other


def lines(*rows: dict[str, Any]) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def write(path: Path, content: bytes | dict[str, Any] | list[dict[str, Any]], *, indent: int | None = 2) -> Path:
    """Write bytes, a document or rows; packed where the name ends in .gz."""
    if isinstance(content, dict):
        content = json.dumps(content, indent=indent, ensure_ascii=False).encode()
    elif isinstance(content, list):
        content = lines(*content)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@contextmanager
def study(url: str) -> Iterator[Engine]:
    """A new, empty study."""
    engine = open_study(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def seeded_study(url: str) -> Iterator[Engine]:
    """The demo study, made anew."""
    with study(url) as engine:
        with writing(engine) as session:
            store.ensure_study(session)
        demo.seed(engine)
        yield engine


def bring(engine: Engine, path: Path, **told: Any) -> ImportReport:
    """Import a file; a results file's model and judge have names."""
    return import_file(
        engine, path, **({"actor": Administrator(name="tester"), "model": None, "judge": "Judge A"} | told)
    )


def dump(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, and the words of the full-text index."""
    with engine.connect() as connection:
        tables = {name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}")))) for name in TABLES}
        count = text("SELECT count(*) FROM search_text")
        return tables | {"search_text": [tuple(connection.execute(count).one())]}


def rows(engine: Engine, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def verdicts(engine: Engine) -> list[tuple[Any, ...]]:
    """What stands: example, model, sample, position, rater, label, sorted; nothing superseded."""
    return sorted(
        rows(
            engine,
            "SELECT e.prompt_id, m.name, r.sample_index, c.position, a.name, v.label FROM verdict v"
            " JOIN example e ON e.id = v.example_id JOIN response r ON r.id = v.response_id"
            " JOIN model m ON m.id = r.model_id JOIN criterion c ON c.id = v.criterion_id"
            " JOIN rater a ON a.id = v.rater_id WHERE v.id NOT IN (SELECT supersedes FROM verdict WHERE supersedes IS NOT NULL)",
        )
    )


def contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """The study by names instead of row numbers, and without times: the same for two studies that hold the same."""
    return {
        "examples": sorted(
            map(
                repr,
                rows(
                    engine,
                    "SELECT dataset, prompt_id, messages, n_turns, first_words, language, theme, category, tags, ideal_completions, canary,"
                    " provisional FROM example",
                ),
            )
        ),
        "subsets": sorted(
            rows(engine, "SELECT e.prompt_id, s.subset FROM example_subset s JOIN example e ON e.id = s.example_id")
        ),
        "criteria": sorted(
            map(
                repr,
                rows(
                    engine,
                    "SELECT e.prompt_id, c.position, c.text, c.points, c.axis, c.level, c.cluster, c.tags FROM criterion c"
                    " JOIN example e ON e.id = c.example_id",
                ),
            )
        ),
        "responses": sorted(
            map(
                repr,
                rows(
                    engine,
                    "SELECT e.prompt_id, m.name, r.dataset, r.sample_index, r.text, r.completion_id, r.sent_messages, r.n_criteria"
                    " FROM response r JOIN example e ON e.id = r.example_id JOIN model m ON m.id = r.model_id",
                ),
            )
        ),
        "verdicts": verdicts(engine),
    }

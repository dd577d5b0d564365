"""A study as large as a benchmark of ten models and three judges, written straight into its tables."""

from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Engine, insert
from sqlmodel import Session

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.tables import TABLES, now

N_EXAMPLES = 5_000
THEMES = (
    "global_health",
    "hedging",
    "communication",
    "context_seeking",
    "emergency_referrals",
    "health_data_tasks",
    "complex_responses",
)
AXES = ("completeness", "accuracy", "context_awareness", "communication_quality", "instruction_following")
SENTENCE = "The answer names fever, stiff neck and rash as reasons to be seen today but leaves the dose out and does not ask how old the child is."
N_READERS, READ_SHARE = 4, 0.05
EVALUATION = "healthbench"
_CHUNK = 50_000


def made(path: Path, *, n_models: int, n_judges: int, n_examples: int = N_EXAMPLES) -> Engine:
    """The study: about 11.4 criteria an example, a response a model, a label a judge and item, a twentieth of the items read by two physicians."""
    rng = np.random.default_rng(7)
    engine = open_study(str(path))
    n_criteria = rng.choice([5, 8, 11, 12, 14, 18], n_examples)
    example = np.repeat(np.arange(1, n_examples + 1), n_criteria)
    first = np.concatenate([[0], np.cumsum(n_criteria)[:-1]])
    position = np.arange(len(example)) - first[example - 1] + 1
    points = np.where(position == 1, 7, rng.choice([5, 7, 3, 10, -4, -8], len(example)))
    axis, theme = rng.integers(0, len(AXES), len(example)), rng.integers(0, len(THEMES), n_examples)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, "Lea Lead", roles=["lead"], actor="benchmark")
        write(session, "model", [{"id": n, "name": f"model-{n:02}"} for n in range(1, n_models + 1)])
        raters = [
            {"id": n, "kind": "judge", "name": f"judge-{n}", "prompt_version": ""} for n in range(1, n_judges + 1)
        ]
        raters += [
            {"id": n_judges + n, "kind": "reviewer", "name": f"Dr. {n}", "prompt_version": ""}
            for n in range(1, N_READERS + 1)
        ]
        write(session, "rater", raters)
        write(session, "example", [_example(n, THEMES[theme[n - 1]]) for n in range(1, n_examples + 1)])
        write(session, "criterion", [_criterion(*row) for row in zip(example, position, points, axis, strict=True)])
        for model in range(1, n_models + 1):
            responses = (model - 1) * n_examples + np.arange(1, n_examples + 1)
            write(session, "response", [_response(n, model, n_criteria) for n in responses.tolist()])
            ability = rng.normal(0.3 + 0.05 * model, 1, n_examples)[example - 1]
            truth = rng.random(len(example)) < 1 / (1 + np.exp(-ability))
            on_item = {
                "example": example,
                "response": responses[example - 1],
                "criterion": np.arange(1, len(example) + 1),
            }
            for judge in range(1, n_judges + 1):
                wrong = rng.random(len(example)) < 0.2
                _verdicts(session, on_item, judge, truth ^ wrong, stage="judge", explanation=SENTENCE)
            read = np.flatnonzero(rng.random(len(example)) < READ_SHARE)
            readers = np.argsort(rng.random((len(read), N_READERS)), axis=1)[:, :2] + n_judges + 1
            of_read = {name: numbers[read] for name, numbers in on_item.items()}
            drawn = {"stage": "first", "selection": "random", "inclusion_probability": READ_SHARE, "blinded": True}
            for place in (0, 1):
                _verdicts(session, of_read, readers[:, place], truth[read] ^ (rng.random(len(read)) < 0.05), **drawn)
    return engine


def write(session: Session, table: str, rows: list[dict[str, Any]]) -> None:
    """Rows of a table, in parts."""
    for start in range(0, len(rows), _CHUNK):
        session.connection().execute(insert(TABLES[table]), rows[start : start + _CHUNK])


def _example(number: int, theme: str) -> dict[str, Any]:
    words = {
        "dataset": EVALUATION,
        "prompt_id": f"p{number}",
        "messages": "[]",
        "first_words": "I have had a fever",
        "language": "en",
    }
    return {"id": number, "n_turns": 1, "theme": theme, "tags": "[]", "provisional": False, **words}


def _criterion(example: int, position: int, points: int, axis: int) -> dict[str, Any]:
    return {
        "example_id": int(example), "position": int(position), "points": int(points), "axis": AXES[axis], "text": SENTENCE, "level": "example",
        "tags": "[]",
    }  # fmt: skip


def _response(number: int, model: int, n_criteria: Any) -> dict[str, Any]:
    example = (number - 1) % len(n_criteria) + 1
    text = SENTENCE * (4 + number % 7)
    return {
        "id": number, "example_id": example, "model_id": model, "dataset": EVALUATION, "sample_index": 0, "text": text,
        "n_criteria": int(n_criteria[example - 1]),
    }  # fmt: skip


def _verdicts(session: Session, on_item: dict[str, Any], rater: Any, met: Any, **same: Any) -> None:
    raters = np.broadcast_to(rater, met.shape)
    at = now()
    columns = zip(
        on_item["example"].tolist(),
        on_item["response"].tolist(),
        on_item["criterion"].tolist(),
        raters.tolist(),
        met,
        strict=True,
    )
    rows = [
        {
            "example_id": example, "response_id": response, "criterion_id": criterion, "rater_id": who, "label": "met" if label else "not_met",
            "right_for_wrong_reason": False, "created_at": at, **same,
        }
        for example, response, criterion, who, label in columns
    ]  # fmt: skip
    write(session, "verdict", rows)

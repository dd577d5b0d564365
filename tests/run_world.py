"""Studies for tests of runs: examples with rubrics and responses, cases of triage, and what a run left behind."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, text

from evalcore.runs import queries
from evalcore.runs.acts import Planned, plan, start
from evalcore.runs.asking import Stop
from evalcore.runs.prompts import Asker, spec_for
from evalcore.runs.spec import ModelSettings, Question, RunSpec
from evalcore.runs.worker import Worked, work
from evalcore.study import store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import (
    CASES,
    Acuity,
    Administrator,
    Format,
    Label,
    RaterKind,
    RunKind,
    Stage,
    Verdict,
    repeat_version,
)
from tests.judge_server.rule import key_of

KEY = "sk-invented-1f9d3c77a2"
MODELS = ("Alder-2", "Birch-1")


@dataclass
class Study:
    """An open study.

    Attributes:
        url: Of its database.
        examples, responses: Numbers, in order; of each example one response a model.
        n_criteria: Of each example.
    """

    url: str
    engine: Engine
    examples: list[int]
    responses: list[int]
    n_criteria: int

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(statement), values)]

    def one(self, statement: str, **values: Any) -> Any:
        """The one value of a query."""
        return self.rows(statement, **values)[0][0]

    def events(self, action: str) -> list[dict[str, Any]]:
        """The details of the events of one act, in order."""
        return [
            json.loads(detail)
            for (detail,) in self.rows(
                "SELECT detail FROM audit_event WHERE action = :action ORDER BY id", action=action
            )
        ]

    def verdicts(self) -> Counter[tuple[Any, ...]]:
        """How many verdicts of judges each item has, by rater."""
        return Counter(
            self.rows("SELECT example_id, response_id, criterion_id, rater_id FROM verdict WHERE stage = 'judge'")
        )

    def progress(self, run_id: int) -> queries.Progress:
        """How far a run is, as the page has it."""
        with reading(self.engine) as session:
            return queries.progress(session, run_id)


@contextmanager
def study(
    url: str,
    *,
    n_examples: int = 4,
    points: tuple[int | None, ...] = (5, -3),
    models: tuple[str, ...] = MODELS[:1],
    words: str = "",
) -> Iterator[Study]:
    """A study of the data set `invented`; `words` stand at the end of every response."""
    engine = open_study(url)
    try:
        with writing(engine) as session:
            store.ensure_study(session)
            bulk = store.Bulk(session)
            examples = bulk.insert("example", [_example(number, "invented") for number in range(n_examples)])
            bulk.insert(
                "criterion",
                [
                    {
                        "example_id": example,
                        "position": place,
                        "text": f"Names sign {place} of {example}.",
                        "points": worth,
                        "tags": "[]",
                    }
                    for example in examples
                    for place, worth in enumerate(points, start=1)
                ],
            )
            numbers = bulk.insert("model", [{"name": name} for name in models]) if models else []
            responses = bulk.insert(
                "response",
                [
                    {
                        "example_id": example, "model_id": number, "dataset": "invented", "sample_index": 0,
                        "text": f"Rest and drink, says {name} of {example}.{words}",
                    }
                    for example in examples
                    for name, number in zip(models, numbers, strict=True)
                ],
            )  # fmt: skip
        yield Study(url, engine, examples, responses, len(points))
    finally:
        engine.dispose()


def add_cases(small: Study, n_cases: int) -> list[int]:
    """Cases of triage."""
    with writing(small.engine) as session:
        bulk = store.Bulk(session)
        cases = bulk.insert("example", [_example(number, CASES) for number in range(n_cases)])
        bulk.insert_only(
            "acuity_case",
            [
                {
                    "example_id": case,
                    "source": "invented",
                    "source_id": str(case),
                    "gold": "C",
                    "method": "direct",
                    "is_edge_case": False,
                }
                for case in cases
            ],
        )
    return cases


def add_response(small: Study, example: int, model: str, dataset: str, said: str, *, sample_index: int = 0) -> int:
    """One response more, as an import brings it."""
    with writing(small.engine) as session:
        bulk = store.Bulk(session)
        known = dict(small.rows("SELECT name, id FROM model"))
        number = known[model] if model in known else bulk.insert("model", [{"name": model}])[0]
        row = {
            "example_id": example,
            "model_id": number,
            "dataset": dataset,
            "sample_index": sample_index,
            "text": said,
        }
        return bulk.insert("response", [row])[0]


def judged(
    small: Study,
    spec: RunSpec,
    response: int,
    criterion: int | None,
    *,
    example: int,
    repeat: int = 0,
    label: Label | Acuity = Label.MET,
    name: str | None = None,
) -> None:
    """One verdict of the judge of a run, or of one called otherwise, as a file brings it."""
    version = repeat_version(spec.prompt_version, repeat)
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, name or spec.model.name, prompt_version=version)
        verdict = Verdict(
            example_id=example,
            response_id=response,
            criterion_id=criterion,
            rater_id=rater,
            stage=Stage.JUDGE,
            label=label,
        )
        store.add_verdicts(session, [verdict], actor="a file", action="verdicts made")


def _example(number: int, dataset: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"{dataset}: my throat has been sore for {number + 2} days."}]
    return {
        "dataset": dataset, "prompt_id": f"prompt-{number}", "messages": json.dumps(messages), "n_turns": 1,
        "first_words": messages[0]["content"], "language": "en", "tags": "[]", "provisional": False,
    }  # fmt: skip


def settings(base_url: str = "http://127.0.0.1:1/v1", **changed: Any) -> ModelSettings:
    """A model with prices: 1 US dollar for a million tokens in, 4 out."""
    told: dict[str, Any] = {
        "name": "Magpie",
        "api_model": "magpie-1",
        "price_in": 1.0,
        "price_out": 4.0,
        "timeout_seconds": 5.0,
    }
    return ModelSettings(base_url=base_url, **(told | changed))


def judging(base_url: str = "http://127.0.0.1:1/v1", *, model: dict[str, Any] | None = None, **changed: Any) -> RunSpec:
    """A judge of every criterion of every response."""
    return spec_for(RunKind.JUDGE, settings(base_url, **(model or {})), changed.pop("dataset", "invented"), **changed)


def triage(
    base_url: str = "http://127.0.0.1:1/v1",
    *,
    formats: tuple[str, ...] = tuple(Format),
    model: dict[str, Any] | None = None,
    **changed: Any,
) -> RunSpec:
    """A model that answers cases."""
    return spec_for(RunKind.TRIAGE, settings(base_url, **(model or {})), CASES, formats=formats, **changed)


def responding(base_url: str = "http://127.0.0.1:1/v1", **changed: Any) -> RunSpec:
    """A model that answers examples."""
    return spec_for(RunKind.RESPOND, settings(base_url), changed.pop("dataset", "invented"), **changed)


def planned(small: Study, spec: RunSpec) -> Planned:
    """What a run would ask."""
    with reading(small.engine) as session:
        return plan(session, spec)


def begun(small: Study, spec: RunSpec, *, concurrency: int = 8, **bounds: Any) -> int:
    """The number of a run, started."""
    return start(small.engine, spec, actor=Administrator(name="Ana Ruiz"), concurrency=concurrency, **bounds)


def worked(small: Study, run_id: int, **changed: Any) -> Worked:
    """A run, worked on to its end."""
    return work(small.engine, run_id, **({"key": KEY, "stop": Stop()} | changed))


def done(small: Study, spec: RunSpec, *, concurrency: int = 8, **changed: Any) -> Worked:
    """A run, started and worked on to its end."""
    return worked(small, begun(small, spec, concurrency=concurrency), **changed)


def keys(small: Study, run_id: int) -> dict[int, str]:
    """By what the judge server calls them: the questions of a run, by number."""
    with reading(small.engine) as session:
        spec = queries.run(session, run_id).spec
        found = small.rows(
            "SELECT id, example_id, response_id, criterion_id, format, sample_index, repeat FROM run_question WHERE run_id = :run",
            run=run_id,
        )
        questions = [Question(*row) for row in found]
        asker = Asker(spec)
        asked = asker.prepared(session, questions)
    return {one.question.question_id: key_of(asker.request(one).messages) for one in asked}

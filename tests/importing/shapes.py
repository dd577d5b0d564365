"""Files in the shapes that other programs and people give them, all of one invented world: two questions, two models, two criteria, one judge."""

import csv
import io
import json
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

from evalcore.importing.mapping import OwnNames, constant

SWIM, WINE = "Can I swim with a cold?", "May I drink wine while I take this?"
ANSWERS = {
    (SWIM, "wren"): "With a light cold you can swim; with a fever you should rest.",
    (SWIM, "finch"): "Of course, enjoy the water as much as you like.",
    (WINE, "wren"): "Please ask your pharmacist before you drink anything.",
    (WINE, "finch"): "One glass is fine for everybody, whatever you take.",
}
CAREFUL, FRIENDLY = "Names a reason to be careful.", "Is friendly in tone."
POINTS = {CAREFUL: 6, FRIENDLY: 2}
MET = {  # by question, model and criterion
    (SWIM, "wren", CAREFUL): True,
    (SWIM, "wren", FRIENDLY): True,
    (SWIM, "finch", CAREFUL): False,
    (SWIM, "finch", FRIENDLY): True,
    (WINE, "wren", CAREFUL): True,
    (WINE, "wren", FRIENDLY): False,
    (WINE, "finch", CAREFUL): False,
    (WINE, "finch", FRIENDLY): True,
}
SCORES = {"wren": (8 / 8 + 6 / 8) / 2, "finch": (2 / 8 + 2 / 8) / 2}
JUDGE = "Magpie"
SECOND = "Robin"
WHY = "So it says, in its second half."


@dataclass(frozen=True)
class Shape:
    """A file, what a person says beside it, what they choose in the proposal, and what comes of it."""

    name: str
    content: bytes
    scores: dict[str, float] | None = field(
        default_factory=lambda: dict(SCORES)
    )  # None: there are no points, or no grades
    n_verdicts: int = 8
    told: dict[str, str] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)  # of `OwnNames`; columns are added to those proposed
    judges: tuple[str, ...] = (JUDGE,)
    has_reasons: bool = True

    def chosen(self, names: OwnNames) -> OwnNames:
        """The proposal with the choices."""
        changes = dict(self.choices)
        if "columns" in changes:
            fields = set(changes["columns"].values())
            kept = {path: of for path, of in names.columns.items() if of not in fields}
            changes["columns"] = kept | changes["columns"]
        return msgspec.structs.replace(names, **changes)

    @property
    def n_choices(self) -> int:
        return sum(len(value) if name == "columns" else 1 for name, value in self.choices.items())

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        path.write_bytes(self.content)
        return path


def table(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def each_verdict() -> list[tuple[str, str, str, str, bool]]:
    """Question, model, answer, criterion, whether it is met."""
    return [(asked, model, ANSWERS[asked, model], criterion, met) for (asked, model, criterion), met in MET.items()]


def long_table() -> Shape:
    """As a German Excel writes it."""
    words = {True: "trifft zu", False: "Nicht erfüllt"}
    rows = [
        {"Frage": asked, "Antwort": answer, "Modell": model, "Kriterium": criterion, "Punkte": POINTS[criterion],
         "Bewertung": words[met], "Begründung": WHY, "Richter": JUDGE}
        for asked, model, answer, criterion, met in each_verdict()
    ]  # fmt: skip
    return Shape("long.csv", table(rows, ";"), choices={"met": ("trifft zu",)})


def graded_line() -> Shape:
    rows = [
        {
            "query": asked,
            "system": model,
            "reply": answer,
            "evaluation": {
                "grader": JUDGE,
                "items": [
                    {
                        "rule": criterion,
                        "weight": POINTS[criterion],
                        "passed": MET[asked, model, criterion],
                        "rationale": WHY,
                    }
                    for criterion in POINTS
                ],
            },
        }
        for (asked, model), answer in ANSWERS.items()
    ]
    return Shape("graded.jsonl", json_lines(rows))


def wide_by_judge() -> Shape:
    rows = [
        {"prompt": asked, "response": answer, "model": model, "criterion": criterion, "points": POINTS[criterion],
         "grade_Magpie": "pass" if met else "fail", "reason_Magpie": WHY, "grade_Robin": "pass", "reason_Robin": WHY}
        for asked, model, answer, criterion, met in each_verdict()
    ]  # fmt: skip
    return Shape("judges.csv", table(rows), n_verdicts=16, judges=(JUDGE, SECOND), scores=None)


def wide_by_criterion() -> Shape:
    rows = [
        {"question": asked, "answer": answer, "model": model}
        | {
            f"score_{word}": int(MET[asked, model, criterion])
            for word, criterion in (("careful", CAREFUL), ("friendly", FRIENDLY))
        }
        for (asked, model), answer in ANSWERS.items()
    ]
    return Shape("criteria.csv", table(rows), told={"judge": JUDGE}, scores=None, has_reasons=False)


def fenced() -> Shape:
    """The judge's whole reply in a cell."""
    rows = [
        {"id": number, "prompt": asked, "completion": answer, "model_name": model, "rubric_item": criterion, "points": POINTS[criterion],
         "grader_response": f"Here is my grade.\n```json\n{json.dumps({'explanation': WHY, 'criteria_met': met})}\n```"}
        for number, (asked, model, answer, criterion, met) in enumerate(each_verdict())
    ]  # fmt: skip
    return Shape("fenced.csv", table(rows), told={"judge": JUDGE})


def chat_log() -> Shape:
    """Requests and responses of a chat API, as a proxy keeps them."""
    rows = [
        {
            "custom_id": f"r-{number}",
            "request": {
                "model": model,
                "temperature": 1,
                "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": asked}],
            },
            "response": {
                "status_code": 200,
                "body": {
                    "id": f"chatcmpl-{number}",
                    "model": f"{model}",
                    "created": 1763632800,
                    "choices": [
                        {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
                    ],
                },
            },
        }
        for number, ((asked, model), answer) in enumerate(ANSWERS.items())
    ]
    return Shape("log.jsonl", json_lines(rows), n_verdicts=0, scores=None)


def langfuse() -> Shape:
    data = [
        {
            "id": f"t-{number}",
            "timestamp": "2026-11-20T10:00:00.000Z",
            "name": "health-answer",
            "input": {"messages": [{"role": "user", "content": asked}]},
            "output": {"role": "assistant", "content": answer},
            "metadata": {"model": model},
            "tags": [],
            "scores": [
                {"id": f"s-{number}-{n}", "name": criterion, "value": int(MET[asked, model, criterion]), "dataType": "BOOLEAN",
                 "source": "EVAL", "comment": WHY}
                for n, criterion in enumerate(POINTS)
            ],
        }
        for number, ((asked, model), answer) in enumerate(ANSWERS.items())
    ]  # fmt: skip
    content = json.dumps({"data": data, "meta": {"page": 1, "limit": 50, "totalItems": 4, "totalPages": 1}}).encode()
    # `source` says EVAL, which is no judge's name: the judge is typed
    return Shape("traces.json", content, scores=None, told={"judge": JUDGE})


def langsmith() -> Shape:
    results = [
        {
            "row_id": f"{number}",
            "inputs": {"question": asked},
            "expected_outputs": {"answer": "A careful answer."},
            "actual_outputs": {"answer": answer},
            "evaluation_scores": [
                {"key": criterion, "score": float(MET[asked, "wren", criterion]), "comment": WHY, "value": None}
                for criterion in POINTS
            ],
            "start_time": "2026-11-20T10:00:00",
            "run_name": "wren-run",
        }
        for number, (asked, answer) in enumerate([(SWIM, ANSWERS[SWIM, "wren"]), (WINE, ANSWERS[WINE, "wren"])])
    ]
    whole = {
        "experiment_name": "health-wren",
        "dataset_name": "health",
        "experiment_start_time": "2026-11-20T10:00:00",
        "results": results,
    }
    return Shape(
        "experiment.json",
        json.dumps(whole, indent=2).encode(),
        told={"model": "wren", "judge": JUDGE},
        n_verdicts=4,
        scores=None,
    )


def label_studio() -> Shape:
    tasks = [
        {
            "id": number,
            "data": {"prompt": asked, "response": answer, "model": model},
            "annotations": [],
            "predictions": [
                {
                    "model_version": JUDGE,
                    "result": [
                        {
                            "from_name": criterion,
                            "to_name": "response",
                            "type": "choices",
                            "value": {"choices": ["Yes" if MET[asked, model, criterion] else "No"]},
                        }
                        for criterion in POINTS
                    ],
                    "score": 0.9,
                }
            ],
            "created_at": "2026-11-20T10:00:00.000000Z",
        }
        for number, ((asked, model), answer) in enumerate(ANSWERS.items())
    ]
    return Shape("tasks.json", json.dumps(tasks).encode(), scores=None, has_reasons=False)


def argilla() -> Shape:
    """A data set of the Hub, as Argilla writes it: the judge's suggestion beside what people said."""
    rows = list(ANSWERS.items())
    said = pa.array([[{"user_id": "u-1", "value": "Yes", "status": "submitted"}]] * 4)
    columns = {
        "messages": pa.array([[{"role": "user", "content": asked}] for (asked, _), _ in rows]),
        "answer": pa.array([answer for _, answer in rows]),
        "careful": said,
        "careful-suggestion": pa.array(["Yes" if MET[asked, model, CAREFUL] else "No" for (asked, model), _ in rows]),
        "careful-suggestion-metadata": pa.array([{"type": "model", "score": 0.5, "agent": JUDGE}] * 4),
        "external_id": pa.array([f"x-{number}" for number in range(4)]),
        "metadata": pa.array([json.dumps({"model": model}) for (_, model), _ in rows]),
    }
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    points = {constant("6"): "points"}
    choices = {"columns": {constant(CAREFUL): "criterion"} | points}
    return Shape(
        "argilla.parquet",
        out.getvalue(),
        n_verdicts=4,
        choices=choices,
        scores={"wren": 1.0, "finch": 0.0},
        has_reasons=False,
    )


def workbook() -> Shape:
    """Grades from 1 to 5 in Excel."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Grades"
    sheet.append(
        ["Question", "Model answer", "Model", "Criterion", "Points", "Rating (1-5)", "Comment", "Evaluator", "Date"]
    )
    for asked, model, answer, criterion, met in each_verdict():
        sheet.append(
            [
                asked,
                answer,
                model,
                criterion,
                POINTS[criterion],
                5 if met and criterion == CAREFUL else 4 if met else 3,
                WHY,
                JUDGE,
                date(2026, 11, 20),
            ]
        )
    book.create_sheet("Notes").append(["Nothing of this is read."])
    out = io.BytesIO()
    book.save(out)
    return Shape("grades.xlsx", out.getvalue())


def sharegpt() -> Shape:
    rows = [
        {"id": f"c-{number}", "conversations": [{"from": "human", "value": asked}, {"from": "gpt", "value": answer}]}
        for number, ((asked, model), answer) in enumerate(ANSWERS.items())
        if model == "wren"
    ]
    return Shape("sharegpt.json", json.dumps(rows).encode(), told={"model": "wren"}, n_verdicts=0, scores=None)


def promptfoo() -> Shape:
    results = [
        {
            "prompt": {"raw": asked, "label": "plain"},
            "vars": {"question": asked},
            "provider": {"id": model, "label": ""},
            "response": {"output": answer, "tokenUsage": {"total": 40}},
            "success": True,
            "score": 1,
            "gradingResult": {
                "pass": True,
                "score": 1,
                "reason": "All assertions passed",
                "componentResults": [
                    {"pass": MET[asked, model, criterion], "score": int(MET[asked, model, criterion]), "reason": WHY,
                     "assertion": {"type": "llm-rubric", "value": criterion, "weight": POINTS[criterion]}}
                    for criterion in POINTS
                ],
            },
        }
        for (asked, model), answer in ANSWERS.items()
    ]  # fmt: skip
    content = json.dumps({"evalId": "e-1", "results": {"version": 3, "results": results}}).encode()
    return Shape("promptfoo.json", content, told={"judge": JUDGE})


SHAPES = {
    make.__name__: make
    for make in (long_table, graded_line, wide_by_judge, wide_by_criterion, fenced, chat_log, langfuse, langsmith, label_studio, argilla, workbook, sharegpt, promptfoo)
}  # fmt: skip

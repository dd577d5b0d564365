"""What came of a run's questions is written: responses or verdicts, the calls, the outcomes, and one event for all of it, in one transaction."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import insert, select, tuple_, update
from sqlmodel import Session

from evalcore.runs.asked_tables import evaluation
from evalcore.runs.suspect_store import flag_suspects
from evalcore.study.run_words import ANSWERS_SAVED, Call, Outcome, Question, RunKind, RunSpec, repeat_version
from evalcore.study.schema import Acuity, ConfidenceMeaning, Label, RaterKind, Stage, Verdict
from evalcore.study.store.bulk import Bulk
from evalcore.study.store.events import append_event
from evalcore.study.store.people import ensure_rater
from evalcore.study.store.written import written
from evalcore.study.tables import TABLES, now
from evalcore.triage.store import set_confidence_meaning

_CHUNK = 500  # bound variables in one statement


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What came of one question.

    Attributes:
        calls: Each call, in order.
        outcome: Of the last call; None: it was broken off before the question was through, which stays open.
        text: A model's answer; None of a judge.
        label, explanation, confidence: A judge's verdict; None of a model.
        suspects: Sentences on words in the response that speak to the judge.
    """

    question: Question
    calls: tuple[Call, ...]
    outcome: Outcome | None
    text: str | None = None
    label: Label | Acuity | None = None
    explanation: str | None = None
    confidence: float | None = None
    suspects: tuple[str, ...] = ()


class Saved(NamedTuple):
    """What a transaction has written.

    Attributes:
        n_answers: New responses or verdicts.
        n_there: Answers that were not kept, since the item has one by now: it came with a file, from another run, or from a worker that
            took the question over.
    """

    n_answers: int
    n_there: int


class Saving(NamedTuple):
    """Whose answers are written.

    Attributes:
        actor: Who started the run.
        meaning: What a judge's confidence is the probability of, where it states one.
    """

    run_id: int
    worker_id: int
    spec: RunSpec
    actor: str
    meaning: ConfidenceMeaning | None = None


def save_answers(session: Session, saving: Saving, answers: Sequence[Answer]) -> Saved:
    """Write answers, at most some hundreds at once.

    A question that has an outcome by now, or is another worker's, is left alone; the calls that it cost are told in the event.

    Raises:
        IntegrityError: Another process was first in the very moment; nothing is written, and the same again goes well.
    """
    at, bulk = now(), Bulk(session)
    ended = [answer for answer in answers if answer.outcome is not None]
    ours = _end_questions(session, saving.worker_id, ended)
    kept = [answer for answer in ended if answer.question.question_id in ours]
    good = [answer for answer in kept if answer.outcome is Outcome.ANSWERED]
    is_judged = saving.spec.kind is RunKind.JUDGE
    new = _new_verdicts(session, saving, good) if is_judged else _new_responses(session, saving, good)
    if is_judged:
        _write_verdicts(session, bulk, saving, new, at)
        # also where the judge's reply could not be read: other judges have read the response, or will
        flag_suspects(session, {one.question.response_id or 0: one.suspects for one in kept if one.suspects})
    else:
        _write_responses(bulk, saving.spec, new)
    broken_off = [answer for answer in answers if answer.outcome is None]
    _write_calls(bulk, saving, [*kept, *broken_off], at)
    lost = [answer for answer in ended if answer.question.question_id not in ours]
    n_there = len(good) - len(new) + sum(answer.outcome is Outcome.ANSWERED for answer in lost)
    detail = {
        "run": saving.run_id,
        "answers": len(new),
        "failures": len(kept) - len(good),
        "calls": sum(len(answer.calls) for answer in (*kept, *broken_off)),
        "cost": _cost((*kept, *broken_off)),
    }
    if n_there or lost:
        detail |= {
            "not_kept": n_there,
            "calls_of_others": sum(len(answer.calls) for answer in lost),
            "cost_of_others": _cost(lost),
        }
    append_event(session, actor=saving.actor, action=ANSWERS_SAVED, subject=f"run {saving.run_id}", detail=detail)
    return Saved(len(new), n_there)


def _cost(answers: Iterable[Answer]) -> float | None:
    """US dollars of all calls whose cost is known; None where none is."""
    known = [call.cost for answer in answers for call in answer.calls if call.cost is not None]
    return sum(known) if known else None


def _end_questions(session: Session, worker_id: int, ended: Sequence[Answer]) -> set[int]:
    """Write the outcomes, a statement each. Returns the numbers of the questions that were still this worker's, or nobody's."""
    question = TABLES["run_question"]
    by_outcome: defaultdict[Outcome, list[int]] = defaultdict(list)
    for answer in ended:
        if answer.outcome is not None:
            by_outcome[answer.outcome].append(answer.question.question_id)
    ours: set[int] = set()
    for outcome, numbers in by_outcome.items():
        mine = (question.c.worker_id == worker_id) | question.c.worker_id.is_(None)
        still_open = update(question).where(question.c.id.in_(sorted(numbers)), question.c.outcome.is_(None), mine)
        written = still_open.values(outcome=outcome.value).returning(question.c.id)
        ours.update(session.connection().execute(written).scalars())
    return ours


def _new_verdicts(session: Session, saving: Saving, good: Sequence[Answer]) -> list[tuple[Answer, int]]:
    """The answers on items on which the judge has no verdict yet, each with its rater."""
    raters = {
        repeat: ensure_rater(
            session,
            RaterKind.JUDGE,
            saving.spec.model.name,
            prompt_version=repeat_version(saving.spec.prompt_version, repeat),
        )
        for repeat in sorted({answer.question.repeat for answer in good})
    }
    if not raters:
        return []
    verdict = TABLES["verdict"].c
    numbers = sorted({answer.question.response_id or 0 for answer in good})
    said = select(verdict.response_id, verdict.criterion_id, verdict.rater_id).where(
        verdict.response_id.in_(numbers),
        verdict.rater_id.in_(list(raters.values())),
        verdict.stage == Stage.JUDGE.value,
    )
    there = {tuple(row) for row in session.connection().execute(said)}
    found = []
    for answer in good:
        asked, rater_id = answer.question, raters[answer.question.repeat]
        if (asked.response_id, asked.criterion_id, rater_id) not in there:
            found.append((answer, rater_id))
    return found


def _write_verdicts(
    session: Session, bulk: Bulk, saving: Saving, new: Sequence[tuple[Answer, int]], at: datetime
) -> None:
    """Verdicts, and the explanations for the index."""
    bulk.verdicts(
        [
            Verdict(
                example_id=answer.question.example_id,
                response_id=answer.question.response_id,
                criterion_id=answer.question.criterion_id,
                rater_id=rater_id,
                stage=Stage.JUDGE,
                label=answer.label,
                confidence=answer.confidence,
                explanation=answer.explanation,
                created_at=at,
            )
            for answer, rater_id in new
        ]
    )
    if saving.meaning is not None and any(answer.confidence is not None for answer, _ in new):
        set_confidence_meaning(session, saving.spec.model.name, saving.meaning, actor=saving.actor)
    _await_index(bulk, [(answer.question.example_id, answer.explanation) for answer, _ in new if answer.explanation])


def _new_responses(session: Session, saving: Saving, good: Sequence[Answer]) -> list[tuple[Answer, int]]:
    """The answers at places where the model has no response yet, each with its model."""
    if not good:
        return []
    response = TABLES["response"].c
    place = (response.example_id, response.dataset, response.sample_index)
    model_id = _model(session, saving.spec.model.name)
    wanted = [_place(saving.spec, answer.question) for answer in good]
    there: set[tuple[Any, ...]] = set()
    for start in range(0, len(wanted), _CHUNK):
        taken = select(*place).where(tuple_(*place).in_(wanted[start : start + _CHUNK]), response.model_id == model_id)
        there |= {tuple(row) for row in session.connection().execute(taken)}
    return [(answer, model_id) for answer, where in zip(good, wanted, strict=True) if where not in there]


def _place(spec: RunSpec, asked: Question) -> tuple[int, str, int]:
    return asked.example_id, evaluation(spec, asked.format), asked.sample_index


def _write_responses(bulk: Bulk, spec: RunSpec, new: Sequence[tuple[Answer, int]]) -> None:
    """Responses, and their texts for the index."""
    rows = []
    for answer, model_id in new:
        example_id, made_for, sample_index = _place(spec, answer.question)
        rows.append({
            "example_id": example_id, "model_id": model_id, "dataset": made_for, "sample_index": sample_index, "text": answer.text or "",
        })  # fmt: skip
    bulk.insert_only("response", rows)
    _await_index(bulk, [(answer.question.example_id, answer.text) for answer, _ in new if answer.text])


def _model(session: Session, name: str) -> int:
    """The number of the model of this name, made at the first call."""
    model = TABLES["model"]
    named = select(model.c.id).where(model.c.name == name)
    found = session.connection().execute(named).scalar()
    if found is None:
        found = session.connection().execute(insert(model).values(name=name).returning(model.c.id)).scalar_one()
        written(session).content("model", [found])
    return int(found)


def _write_calls(bulk: Bulk, saving: Saving, answers: Sequence[Answer], at: datetime) -> None:
    bulk.insert_only(
        "run_call",
        [
            {
                "run_id": saving.run_id,
                "worker_id": saving.worker_id,
                "question_id": call.question_id,
                "outcome": call.outcome.value,
                "status": call.status,
                "error": call.error,
                "reply": call.reply,
                "prompt_tokens": call.prompt_tokens,
                "completion_tokens": call.completion_tokens,
                "cost": call.cost,
                "attempts": call.attempts,
                "seconds": call.seconds,
                "at": at,
            }
            for answer in answers
            for call in answer.calls
        ],
    )


def _await_index(bulk: Bulk, texts: Iterable[tuple[int, str | None]]) -> None:
    by_example: defaultdict[int, list[str]] = defaultdict(list)
    for example_id, text in texts:
        if text:
            by_example[example_id].append(text)
    bulk.await_index(by_example.items())

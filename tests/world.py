"""A small study in a real database, in one line: invented examples, a model's responses, a judge's verdicts, people."""

import atexit
import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, text
from sqlmodel import Session

from evalcore.reading import assigning, reviewing
from evalcore.reading.assigning import Choice
from evalcore.reading.reviewing import OpenReview
from evalcore.study import contents, frames, store
from evalcore.study.audit import trail
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import (
    Acuity,
    Administrator,
    CannotReason,
    Label,
    RaterKind,
    ReadingState,
    Role,
    Stage,
    Verdict,
    Viewer,
)
from evalcore.study.tables import AuditEvent, Criterion, Example, Model, Response

JUDGE = "Magpie"
LABELS = {"+": Label.MET, "-": Label.NOT_MET, "?": Label.CANNOT_ASSESS}
START = datetime(2026, 11, 20, 9, tzinfo=UTC)
"""When the clock of a test of reading starts."""


@dataclass
class World:
    """A study with two examples, one response each, all judged.

    Attributes:
        responses: Row numbers, one an example and model: all models on the first example, then on the second.
        criteria: Row numbers, a list an example.
    """

    location: str
    engine: Engine
    responses: list[int]
    criteria: list[list[int]]

    def viewer(self, name: str = "Dr. Imani Noor") -> Viewer:
        """Somebody in the study."""
        with reading(self.engine) as session:
            return next(person for person in contents.people(session) if person.name == name)

    def item(self, example: int = 0, criterion: int = 0) -> dict[str, int]:
        """The numbers of one item, as `overriding` takes them."""
        return {"response_id": self.responses[example], "criterion_id": self.criteria[example][criterion]}

    def history(self) -> list[dict[str, Any]]:
        """Every physician's verdict ever given, oldest first."""
        with reading(self.engine) as session:
            found = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True, history=True)
        return found.astype(object).where(found.notna(), None).to_dict(orient="records")

    def events(self) -> list[tuple[str, str]]:
        """Actor and action of every audit event, oldest first."""
        with reading(self.engine) as session:
            return [(event.actor, event.action) for _, event in trail.events(session) if event is not None]


def made(
    location: str,
    *,
    points: tuple[tuple[int | None, ...], ...] = ((7, -4), (5, 3)),
    judged: str = "+-++",
    models: tuple[str, ...] = ("Alder-2",),
    languages: dict[int, str | None] | None = None,
    is_copy: bool = True,
) -> World:
    """The world: a rubric an example with these points, the judge's labels in order, the same for each model.

    Args:
        location: Where to make it; a SQLite file there is written over.
        points: Of each criterion of each example.
        judged: The judge's label on each criterion; a space: none.
        models: Each has one response to each example.
        languages: Of the examples that are not in English, by their place from 0.
        is_copy: Whether a SQLite file may be the copy of one that was made before, so that nothing of it is written here.
    """
    how = (points, judged, models, tuple(sorted((languages or {}).items())))
    is_file = is_copy and location != "sqlite://" and not location.startswith("postgresql")
    return copied(_kept(*how), location) if is_file else _made(location, *how)


@cache
def _kept(*how: Any) -> World:
    """A world at rest, made once a process."""
    folder = tempfile.mkdtemp(prefix="overread-world-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return at_rest(_made(f"{folder}/made.db", *how))


def _made(
    location: str,
    points: tuple[tuple[int | None, ...], ...],
    judged: str,
    models: tuple[str, ...],
    languages: tuple[tuple[int, str | None], ...],
) -> World:
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        for name, role in (("Dr. Imani Noor", "reviewer"), ("Dr. Tove Lind", "reviewer"), ("Ana Ruiz", "lead")):
            store.add_person(session, name, roles=[role], actor="set-up")
        responses, criteria = [], []
        numbers = [_number(session, Model(name=model)) for model in models]
        for index, rubric in enumerate(points):
            example = _number(session, _example(index, dict(languages).get(index, "en")))
            criteria.append([_number(session, _criterion(example, n, p)) for n, p in enumerate(rubric, start=1)])
            for model, number in zip(models, numbers, strict=True):
                apart = "" if model == models[0] else f"-{model}"
                answer = Response(
                    example_id=example,
                    model_id=number,
                    dataset="invented",
                    text=f"Drink water, rest, and come back. Answer {index}{apart}.",
                    completion_id=f"answer-{index}{apart}",
                    n_criteria=len(rubric),
                )
                responses.append(_number(session, answer))
        judge = store.ensure_rater(session, RaterKind.JUDGE, JUDGE)
        items = [(index, criterion) for index, found in enumerate(criteria) for criterion in found]
        given = [
            Verdict(
                example_id=index + 1,
                response_id=responses[index * len(models) + place],
                criterion_id=criterion,
                rater_id=judge,
                stage=Stage.JUDGE,
                label=LABELS[label],
                explanation="It does.",
            )
            for (index, criterion), label in zip(items, judged, strict=True)
            for place in range(len(models))
            if label in LABELS
        ]
        if given:
            store.add_verdicts(session, given, actor="set-up", action="verdicts made")
        else:
            store.append_event(session, actor="set-up", action="examples made", subject="study")
    return World(location, engine, responses, criteria)


def at_rest(made: World) -> World:
    """The world in its SQLite file alone, to be copied."""
    with made.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    made.engine.dispose()
    return made


def copied(made: World, location: str) -> World:
    """A world at rest, in another file: a test's own."""
    shutil.copyfile(made.location.removeprefix("sqlite:///"), location.removeprefix("sqlite:///"))
    return replace(made, location=location, engine=open_study(location))


def _number(session: Session, row: Any) -> int:
    session.add(row)
    session.flush()
    store.written(session).content(row.__tablename__, [row.id])
    return int(row.id)


def _example(index: int, language: str | None) -> Example:
    messages = [{"role": "user", "content": f"I have had a sore throat for {index + 2} days."}]
    return Example(
        dataset="invented",
        prompt_id=f"prompt-{index}",
        messages=json.dumps(messages),
        n_turns=1,
        first_words=messages[0]["content"],
        language=language,
        theme="hedging",
        tags='["theme:hedging"]',
        canary="invented-canary",
    )


def _criterion(example: int, position: int, points: int | None) -> Criterion:
    return Criterion(
        example_id=example,
        position=position,
        text=f"Names warning sign {position}.",
        points=points,
        axis="accuracy",
        level="example",
        tags='["level:example", "axis:accuracy"]',
    )


def add_researcher(
    engine: Engine, name: str, *roles: Role, languages: tuple[str, ...] = (), specialties: tuple[str, ...] = ()
) -> None:
    """Somebody with these roles."""
    with writing(engine) as session:
        store.add_person(session, name, roles=roles, languages=languages, specialties=specialties, actor="set-up")


def leads_read(engine: Engine) -> None:
    """Leads and researchers may be readers too."""
    with writing(engine) as session:
        store.set_rules(session, msgspec.structs.replace(contents.rules(session), leads_read=True), actor="set-up")


def after(minutes: float = 0, *, seconds: float = 0) -> datetime:
    """A time on the clock of a test."""
    return START + timedelta(minutes=minutes, seconds=seconds)


def assigned(small: World, **choice: Any) -> int:
    """Have items read, all of them in a known order unless told otherwise. Returns the assignment's number."""
    return (
        assigning.assign(
            small.engine, Choice(**({"seed": 1} | choice)), actor=Administrator(name="Ana Ruiz")
        ).assignment_id
        or 0
    )


def answer(small: World, viewer: Viewer, desk: OpenReview, labels: str, *, at: datetime = START) -> int:
    """Mark every item in hand: + - ?, the last with a reason. Returns the reading's number."""
    number = desk.reading.id or 0
    for key, label in zip(desk.keys, labels, strict=True):
        reason = CannotReason.CONTEXT_MISSING if label == "?" else None
        reviewing.mark(small.engine, viewer, number, key, LABELS[label], reason=reason, at=at)
    return number


def submitted(small: World, name: str, labels: str, *, at: datetime = START) -> tuple[int, ReadingState]:
    """The next item of a reader, read and locked: its reading's number and state."""
    viewer = small.viewer(name)
    desk = reviewing.take(small.engine, viewer, at=at)
    assert desk is not None
    number = answer(small, viewer, desk, labels, at=at)
    return number, lock(small.engine, viewer, number, at=at)


def lock(engine: Engine, viewer: Viewer, number: int, *, at: datetime | None = None, **said: Any) -> ReadingState:
    """Submit a read, and ask for the judge's verdicts at once, where there are any. Returns the state."""
    state = reviewing.submit(engine, viewer, number, at=at, **said)
    return reviewing.reveal(engine, viewer, number, at=at) if state is ReadingState.LOCKED else state


def said(
    small: World,
    label: Label | Acuity | None,
    *,
    name: str = "Dr. Imani Noor",
    kind: RaterKind = RaterKind.REVIEWER,
    stage: Stage = Stage.FIRST,
    example: int = 0,
    criterion: int = 0,
    **more: Any,
) -> int:
    """A verdict as an import brings it, a physician's first read unless told otherwise. Returns its number."""
    with writing(small.engine) as session:
        verdict = Verdict(
            example_id=example + 1,
            rater_id=store.ensure_rater(session, kind, name),
            stage=stage,
            label=label,
            **(small.item(example, criterion) | more),
        )
        return store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")[0]


def judged(small: World, judge: str, label: Label | None, **more: Any) -> int:
    """A judge's verdict on one item, as `said`."""
    return said(small, label, name=judge, kind=RaterKind.JUDGE, stage=Stage.JUDGE, **more)


def rows(engine: Engine, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement), values)]


def tampered(engine: Engine, *statements: str, **values: Any) -> None:
    """Change what may not be changed, as somebody with the database in hands could: by dropping the triggers first."""
    sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        if sqlite:
            for act in ("update", "delete"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS audit_event_no_{act}"))
        else:
            connection.execute(text("DROP TRIGGER IF EXISTS audit_event_append_only ON audit_event"))
        for statement in statements:
            connection.execute(text(statement), values)


def copy_of(path: Path, target: Path) -> Path:
    """A copy of a SQLite study that may be open."""
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target


def count(engine: Engine, table: str) -> int:
    """Rows of a table."""
    with engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


__all__ = ["JUDGE", "AuditEvent", "World", "add_researcher", "copy_of", "count", "made", "rows", "tampered"]

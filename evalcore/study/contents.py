"""What the study holds: people, models, judges, counts, its stated analysis, its table of families, its trail."""

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
from sqlalchemy import BigInteger, ColumnElement, case, cast, func, or_, select
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, SQLModel, col
from sqlmodel import select as select_rows

from evalcore.study import analysis, families
from evalcore.study.analysis import StatedAnalysis
from evalcore.study.frames import ITEM_BASE, frame, is_judge, is_read, not_superseded, trail_length
from evalcore.study.schema import (
    FILE_IMPORTED,
    LABELS_EXPORTED,
    PARSER,
    PART_IMPORTED,
    RULES,
    Format,
    RaterKind,
    ReadingMode,
    Role,
    Rules,
    Stage,
    Viewer,
)
from evalcore.study.tables import (
    TABLES,
    AcuityCase,
    AuditEvent,
    Criterion,
    Example,
    ExampleSubset,
    Guideline,
    Model,
    Person,
    Rater,
    Response,
    Study,
    Verdict,
)

_LIKE = "\\"


def study_key(session: Session) -> str | None:
    """The random name of this database; None before the first start."""
    return session.exec(select_rows(Study.key)).first()


def rules(session: Session) -> Rules:
    """What the study has chosen; the defaults before the first start."""
    row = session.get(Study, 1)
    if row is None:
        return Rules()
    return Rules(
        ReadingMode(row.reading_mode), row.judge, row.check_share, row.both_against_judge, row.control_share, row.blind, row.leads_read
    )  # fmt: skip


def guideline(session: Session, version: int | None = None) -> Guideline | None:
    """A version of what readers are told, the newest by default; None where there is none."""
    statement = select_rows(Guideline).order_by(col(Guideline.version).desc())
    if version is not None:
        statement = statement.where(Guideline.version == version)
    return session.exec(statement.limit(1)).first()


def people(session: Session) -> list[Viewer]:
    """Everybody in the study, by name."""
    return [_viewer(person) for person in session.exec(select_rows(Person).order_by(Person.name))]


def person(session: Session, person_id: int) -> Viewer | None:
    """One person; None where there is none of this number."""
    found = session.get(Person, person_id)
    return _viewer(found) if found else None


def _viewer(row: Person) -> Viewer:
    return Viewer(
        person_id=row.id or 0,
        name=row.name,
        roles=frozenset(Role(role) for role in json.loads(row.roles)),
        specialties=tuple(json.loads(row.specialties)),
        languages=tuple(json.loads(row.languages)),
    )


def judges(session: Session) -> list[str]:
    """Judges by the number of their verdicts on criteria, most first; behind them those that have read levels of care alone."""
    verdict = TABLES["verdict"]
    statement = (
        select(col(Rater.name))
        .join(verdict, verdict.c.rater_id == col(Rater.id))
        .where(is_judge())
        .group_by(col(Rater.name))
        .order_by(func.count(verdict.c.criterion_id).desc(), func.count().desc(), col(Rater.name))
    )
    return list(session.connection().execute(statement).scalars())


def models(session: Session, hidden: frozenset[int] = frozenset()) -> list[str]:
    """Models by name; without those that are known only from conversations that may not be seen."""
    statement = select_rows(Model.name).order_by(Model.name)
    if hidden:
        seen = select(col(Response.model_id)).where(col(Response.example_id).not_in(list(hidden)))
        statement = statement.where(col(Model.id).in_(seen))
    return list(session.exec(statement))


def counts(session: Session, hidden: frozenset[int] = frozenset()) -> dict[str, int]:
    """Rows of the study: examples, criteria, responses, models, judges, reviewers, judge_verdicts, physician_verdicts.

    Physicians (reviewers) are those with a verdict, and their verdicts are counted, without conversations that may not be seen: how many
    verdicts stand there moves with every read that was revised, and a read is revised where the judge says otherwise.

    Of the examples so many are cases of triage (cases), of the responses so many answer them (samples). A judge counts once, whatever
    prompts it was asked with, and its repeats not at all; the parser and the rules of triage are no judges.
    """
    connection = session.connection()

    def count(statement: Any) -> int:
        return int(connection.execute(statement).scalar_one())

    def of(table: type[SQLModel]) -> Any:
        return select(func.count()).select_from(table)

    given = select(func.count()).select_from(Verdict).where(not_superseded(), col(Verdict.label).is_not(None))
    of_physicians = given.where(is_read(Verdict))
    readers = select(func.count(col(Verdict.rater_id).distinct())).where(is_read(Verdict))
    if hidden:
        of_physicians, readers = (
            each.where(col(Verdict.example_id).not_in(list(hidden))) for each in (of_physicians, readers)
        )
    return {
        "examples": count(of(Example)),
        "criteria": count(of(Criterion)),
        "responses": count(of(Response)),
        "cases": count(of(AcuityCase)),
        "samples": count(of(Response).where(col(Response.dataset).in_([word.evaluation for word in Format]))),
        "models": count(of(Model)),
        "judges": count(
            select(func.count(col(Rater.name).distinct())).where(is_judge(), col(Rater.name).not_in((PARSER, RULES)))
        ),
        "reviewers": count(readers),
        "judge_verdicts": count(given.join(Rater).where(is_judge())),
        "physician_verdicts": count(of_physicians),
    }


def readers(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """One row a physician who has read anything, most first: reader, n_items, n_responses, n_cases, last_at, counted as in `reference.totals`.

    Without reads of conversations that may not be seen.
    """
    verdict = TABLES["verdict"].c
    subject = func.coalesce(verdict.response_id, -verdict.example_id)  # a case itself is read without a response
    item = cast(subject, BigInteger) * ITEM_BASE + func.coalesce(verdict.criterion_id, 0)
    n_items = func.count(func.distinct(item)).label("n_items")
    of_case = case((verdict.response_id.is_(None), verdict.example_id))
    columns: list[Any] = [
        col(Rater.name).label("reader"),
        n_items,
        func.count(func.distinct(verdict.response_id)).label("n_responses"),
        func.count(func.distinct(of_case)).label("n_cases"),
        func.max(verdict.created_at).label("last_at"),
    ]
    statement = (
        select(*columns)
        .join(Rater, verdict.rater_id == col(Rater.id))
        .where(
            col(Rater.kind) == RaterKind.REVIEWER, verdict.label.is_not(None), verdict.stage != Stage.ADJUDICATED,
            is_read(verdict), not_superseded(),
        )
        .group_by(col(Rater.name))
        .order_by(n_items.desc(), col(Rater.name))
    )  # fmt: skip
    if hidden:
        statement = statement.where(verdict.example_id.not_in(list(hidden)))
    return frame(session, statement)


def choices(session: Session) -> dict[str, list[str]]:
    """What the filters offer: datasets, subsets, themes, categories, axes, languages, sources of cases; each sorted."""
    connection = session.connection()
    columns = {
        "dataset": Example.dataset,
        "subset": ExampleSubset.subset,
        "theme": Example.theme,
        "category": Example.category,
        "axis": Criterion.axis,
        "language": Example.language,
        "source": AcuityCase.source,
    }
    return {
        name: sorted(value for value in connection.execute(select(column).distinct()).scalars() if value)  # type: ignore[call-overload]
        for name, column in columns.items()
    }


def trail_head(session: Session) -> tuple[int, str]:
    """How many events the audit trail has, and the hash of the newest; an empty one before the first event."""
    event = TABLES["audit_event"].c
    newest = session.connection().execute(select(event.hash).order_by(event.id.desc()).limit(1)).scalar()
    return trail_length(session), newest or ""


TELL_NO_LABEL = frozenset(
    {
        "person added", "items assigned", "guideline changed", "rules changed", "analysis stated", "families set", "label map set",
        "label map reset", "triage settings changed", "confidence meaning set", "run started", "run stopped", "run retried", FILE_IMPORTED,
        PART_IMPORTED, LABELS_EXPORTED,
    }
)  # fmt: skip
"""Acts that nobody does because of what a label is: who is to read or settle blind may know of them. That a read was kept tells that the judge
said otherwise, and how many acts lie between two others tells how many there were."""


def _told(blind: Viewer | None) -> list[ColumnElement[bool]]:
    if blind is None:
        return []
    return [or_(col(AuditEvent.action).in_(sorted(TELL_NO_LABEL)), col(AuditEvent.actor) == blind.name)]


def audit_trail(
    session: Session,
    *,
    blind: Viewer | None = None,
    search: str = "",
    actor: str | None = None,
    action: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> tuple[pd.DataFrame, int]:
    """A page of the trail, newest first, and how many events fit: event, at, actor, action, subject, detail, hash.

    For who is to read or settle blind: only their own acts, and those of `TELL_NO_LABEL`.
    """
    conditions = _told(blind)
    for word in search.split():
        pattern = "%" + word.replace(_LIKE, _LIKE * 2).replace("%", _LIKE + "%").replace("_", _LIKE + "_") + "%"
        fields = (AuditEvent.actor, AuditEvent.action, AuditEvent.subject, AuditEvent.detail)
        conditions.append(or_(*(col(column).ilike(pattern, escape=_LIKE) for column in fields)))
    if actor:
        conditions.append(col(AuditEvent.actor) == actor)
    if action:
        conditions.append(col(AuditEvent.action) == action)
    event = TABLES["audit_event"]
    fitting = select(func.count()).select_from(AuditEvent).where(*conditions)
    n_events = int(session.connection().execute(fitting).scalar_one())
    statement = (
        select(*(event.c[name] for name in ("id", "at", "actor", "action", "subject", "detail", "hash")))
        .where(*conditions)
        .order_by(event.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return frame(session, statement).rename(columns={"id": "event"}), n_events


def last_actor(session: Session, action: str, subject: str) -> str | None:
    """Who did this last to this; None where nobody has."""
    event = TABLES["audit_event"].c
    statement = select(event.actor).where(event.action == action, event.subject == subject)
    return session.connection().execute(statement.order_by(event.id.desc()).limit(1)).scalar()


def audit_words(session: Session, blind: Viewer | None = None) -> dict[str, list[str]]:
    """Who and what occur in the trail, or in the part of it that a blind reader is shown: actors, actions."""
    columns = {"actor": col(AuditEvent.actor), "action": col(AuditEvent.action)}
    rows = session.connection()
    return {
        name: sorted(rows.execute(select(column).where(*_told(blind)).distinct()).scalars())
        for name, column in columns.items()
    }


def events(session: Session) -> Iterator[tuple[int, AuditEvent | None]]:
    """Every event with its number, in order; None for one that somebody has changed so that it cannot be read."""
    numbered = select(col(AuditEvent.id)).order_by(col(AuditEvent.id))
    numbers = [number or 0 for number in session.connection().execute(numbered).scalars()]
    for start in range(0, len(numbers), 1000):
        yield from _readable(session, numbers[start : start + 1000])


def _readable(session: Session, numbers: list[int]) -> Iterator[tuple[int, AuditEvent | None]]:
    number = col(AuditEvent.id)
    chosen = select_rows(AuditEvent).where(number.between(numbers[0], numbers[-1])).order_by(number)
    try:
        found = session.exec(chosen).all()
    except (ValueError, TypeError, DBAPIError):
        if len(numbers) == 1:
            yield numbers[0], None
            return
        for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
            yield from _readable(session, half)
    else:
        yield from zip(numbers, found, strict=True)


def stated_analysis(session: Session) -> StatedAnalysis | None:
    """The newest statement; None where nothing was stated, so that every choice is the usual one."""
    return next(iter(_versions(session, limit=1)), None)


def stated_analyses(session: Session) -> list[StatedAnalysis]:
    """Every version, newest first."""
    return _versions(session)


def _versions(session: Session, limit: int | None = None) -> list[StatedAnalysis]:
    rows: Any = TABLES["analysis"]
    statement = select(*rows.c).order_by(rows.c.version.desc()).limit(limit)
    return [
        StatedAnalysis(row.version, analysis.of_json(row.text), row.stated_by, row.stated_at, row.n_reads_before)
        for row in session.connection().execute(statement)
    ]


def own_families(session: Session) -> list[tuple[str, str]]:
    """The study's own pairs of pattern and family, in their order; empty where it has not written one."""
    rows = TABLES["model_family"]
    found = session.connection().execute(select(rows.c.pattern, rows.c.family).order_by(rows.c.place))
    return [(row.pattern, row.family) for row in found]


def family_table(session: Session) -> list[tuple[str, str]]:
    """The study's own table, else the one that comes with Overread."""
    return own_families(session) or families.default()

"""Take back an import, or bring it back; mark a response as broken: acts that hide rows (`showing`) and delete none."""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session

from evalcore.errors import NotFound, OverreadError, refuse
from evalcore.stats.wording import counted, listed
from evalcore.study import lookups, policies, schema
from evalcore.study.acting import act
from evalcore.study.corrections.showing import HIDDEN, MERGED, NAMES, WITHDRAWN, hides, shown
from evalcore.study.db import Engine
from evalcore.study.frames import frame
from evalcore.study.store import MOVED, Brought, append_event, is_storable, keep_brought, written
from evalcore.study.tables import STORED, TABLES, UtcDateTime, now

if TYPE_CHECKING:
    import pandas as pd

MENDED = "mended"
"""Under this name an event's detail has the digest of all that is hidden or called otherwise since its act."""
_HIDDEN, _IMPORT = STORED[HIDDEN], STORED["file_import"]
_BROUGHT, _BROKEN = STORED["brought_rows"], STORED["broken_response"]
_NUMBERED = frozenset({"criterion", "example", "published_matrix", "response", "verdict"})
_FOLLOWING = ("assignment", "model", "rater")
MAX_REASON = 1_000
_CHUNK = 5_000


def hide_anew(session: Session) -> dict[str, str]:
    """Hide what follows from the withdrawn imports and the broken responses as they are now, where there are any; for the detail of the act's event."""
    connection = session.connection()
    session.flush()
    is_withdrawn = sa.select(_IMPORT.c.id).where(_IMPORT.c.withdrawn_at.is_not(None)).limit(1)
    is_broken = sa.select(_BROKEN.c.response_id).where(_BROKEN.c.reason.is_not(None)).limit(1)
    if not hides(connection) and not any(connection.execute(any_of).first() for any_of in (is_withdrawn, is_broken)):
        return {}
    keep_brought(session)
    of_responses = sa.select(_HIDDEN).where(_HIDDEN.c.table_name == "response", _HIDDEN.c.as_id.is_not(None))
    moved = {row.row_id: row.as_id for row in connection.execute(of_responses)}
    connection.execute(sa.delete(_HIDDEN))
    for table, runs in _leaving(connection).items():
        _hide(connection, table, runs)
    _hide_older(connection)
    marked = sa.select(sa.literal("response"), _BROKEN.c.response_id, sa.null(), sa.true()).where(
        _BROKEN.c.reason.is_not(None),
        _BROKEN.c.response_id.not_in(sa.select(_HIDDEN.c.row_id).where(_HIDDEN.c.table_name == "response")),
    )
    connection.execute(sa.insert(_HIDDEN).from_select(["table_name", "row_id", "as_id", "is_broken"], marked))
    _place_verdicts(connection)
    for table, column, within in (
        ("model", "model_id", "response"),
        ("rater", "rater_id", "verdict"),
        ("assignment", "assignment_id", "task"),
    ):
        left = f"SELECT {column} FROM {within} EXCEPT SELECT {column} FROM {shown(within, WITHDRAWN)}"  # noqa: S608 - our own words
        connection.exec_driver_sql(
            f"INSERT INTO hidden_row (table_name, row_id, is_broken) SELECT '{table}', {column}, 1 = 0 FROM ({left}) AS gone"  # noqa: S608 - the same
        )
    _move_back(session, moved)
    return {MENDED: digest(session)}


def _leaving(connection: sa.Connection) -> dict[str, list[tuple[int, int]]]:
    brought: dict[str, tuple[Brought, Brought]] = {}
    statement = sa.select(_BROUGHT, _IMPORT.c.withdrawn_at).join(_IMPORT, _IMPORT.c.id == _BROUGHT.c.import_id)
    for row in connection.execute(statement.order_by(_BROUGHT.c.id)):
        gone, kept = brought.setdefault(row.table_name, (Brought(), Brought()))
        if row.withdrawn_at is None:
            kept.runs.append([row.first_id, row.last_id])
        elif not row.is_known:  # else it was here before, perhaps by a run
            gone.runs.append([row.first_id, row.last_id])
    return {table: _without(gone.merged(), kept.merged()) for table, (gone, kept) in brought.items()}


def _without(runs: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of runs of numbers without those of other runs; both in order."""
    left, place = [], 0
    for first, last in runs:
        start = first
        while place < len(others) and others[place][1] < start:
            place += 1
        at = place
        while at < len(others) and others[at][0] <= last:
            if others[at][0] > start:
                left.append((start, others[at][0] - 1))
            start = others[at][1] + 1
            at += 1
        if start <= last:
            left.append((start, last))
    return left


def _hide(connection: sa.Connection, table: str, runs: Iterable[tuple[int, int]]) -> None:
    for first, last in runs:
        if table in _NUMBERED:
            connection.exec_driver_sql(
                f"INSERT INTO hidden_row (table_name, row_id, is_broken) SELECT '{table}', id, 1 = 0 FROM {table} "  # noqa: S608 - our own words
                f"WHERE id BETWEEN {int(first)} AND {int(last)}"
            )
        else:
            rows = [{"table_name": table, "row_id": number, "is_broken": False} for number in range(first, last + 1)]
            connection.execute(sa.insert(_HIDDEN), rows)


def _hide_older(connection: sa.Connection) -> None:
    """Of an import from before its rows were kept: its verdicts, but for those that another has brought."""
    verdict = STORED["verdict"].c
    older = sa.select(_IMPORT.c.source_hash).where(_IMPORT.c.withdrawn_at.is_not(None), ~_IMPORT.c.keeps_rows)
    for source_hash in connection.execute(older).scalars().all():
        live = sa.select(_BROUGHT.c.id).join(_IMPORT, _IMPORT.c.id == _BROUGHT.c.import_id).where(
            _BROUGHT.c.table_name == "verdict", _IMPORT.c.withdrawn_at.is_(None), verdict.id.between(_BROUGHT.c.first_id, _BROUGHT.c.last_id)
        )  # fmt: skip
        rows = sa.select(sa.literal("verdict"), verdict.id, sa.false())
        rows = rows.where(verdict.source_hash == source_hash, ~live.exists())
        connection.execute(sa.insert(_HIDDEN).from_select(["table_name", "row_id", "is_broken"], rows))


def _place_verdicts(connection: sa.Connection) -> None:
    verdict = STORED["verdict"].c
    is_hidden = sa.and_(_HIDDEN.c.table_name == "verdict", _HIDDEN.c.row_id == verdict.id)
    statement = sa.select(verdict.id, verdict.supersedes).join(_HIDDEN, is_hidden)
    before = {row.id: row.supersedes for row in connection.execute(statement.where(verdict.supersedes.is_not(None)))}
    if not before:
        return
    of_verdict = sa.select(_HIDDEN.c.row_id).where(_HIDDEN.c.table_name == "verdict")
    first = set(connection.execute(of_verdict).scalars()) - before.keys()
    for number in sorted(before):  # what stands before a verdict has the smaller number
        stands = before[number]
        before[number] = None if stands in first else before.get(stands, stands)
    placed = [{"number": number, "as_number": stands} for number, stands in before.items() if stands is not None]
    if placed:
        of_row = (_HIDDEN.c.table_name == "verdict", _HIDDEN.c.row_id == sa.bindparam("number"))
        connection.execute(sa.update(_HIDDEN).where(*of_row).values(as_id=sa.bindparam("as_number")), placed)


def _move_back(session: Session, moved: dict[int, int]) -> None:
    """Rows that had made room for others get their place again where they are shown again; refused while others stand there."""
    connection, taken = session.connection(), 0
    is_hidden = {
        table: sa.select(_HIDDEN.c.row_id).where(_HIDDEN.c.table_name == table, ~_HIDDEN.c.is_broken)
        for table in ("response", "example", "published_matrix", "criterion")
    }
    response = STORED["response"]
    for row in connection.execute(sa.select(response).where(response.c.sample_index >= MOVED)).all():
        index, hidden = (
            moved[row.id],
            connection.execute(is_hidden["response"].where(_HIDDEN.c.row_id == row.id)).first(),
        )
        if hidden:
            of_row = (_HIDDEN.c.table_name == "response", _HIDDEN.c.row_id == row.id)
            connection.execute(sa.update(_HIDDEN).where(*of_row).values(as_id=index))
        else:
            taken += not _moved(session, "response", row.id, {"sample_index": index})
    for table, column in (("example", "prompt_id"), ("published_matrix", "model")):
        columns = STORED[table].c
        shown = columns[column].like("% (withdrawn %)"), columns.id.not_in(is_hidden[table])
        away = sa.select(columns.id, columns[column].label("name")).where(*shown)
        for row in connection.execute(away).all():
            if row.name.endswith(suffix := f" (withdrawn {row.id})"):
                taken += not _moved(session, table, row.id, {column: row.name.removesuffix(suffix)})
    if taken:
        refuse(
            f"{counted(taken, 'row')} of it (an example or response) came again with a later import and cannot stand beside itself. "
            "Withdraw that import first. Nothing was changed."
        )


def _moved(session: Session, table: str, number: int, values: dict[str, Any]) -> bool:
    try:
        with session.begin_nested():
            session.connection().execute(sa.update(STORED[table]).where(STORED[table].c.id == number).values(**values))
    except sa.exc.IntegrityError:
        return False
    written(session).content(table, [number])
    return True


def digest(session: Session) -> str:
    """SHA-256 over all that is hidden or called otherwise, but what follows from it."""
    found = hashlib.sha256()
    order = "table_name, row_id"
    kept = ", ".join(f"'{table}'" for table in _FOLLOWING)
    statements = (
        f"SELECT table_name, row_id, is_broken FROM hidden_row WHERE table_name NOT IN ({kept}) ORDER BY {order}",  # noqa: S608 - our own words
        "SELECT kind, was, now FROM other_name ORDER BY kind, was",
        f"SELECT table_name, row_id, as_id FROM same_as ORDER BY {order}",  # noqa: S608 - the same
    )
    for statement in statements:
        rows = session.connection().exec_driver_sql(statement).all()
        for row in sorted([str(int(cell)) if isinstance(cell, bool) else str(cell) for cell in row] for row in rows):
            found.update(("\x1f".join(row) + "\n").encode())
    return found.hexdigest()


class Effect(NamedTuple):
    """What of a study is not shown any more, or again: how many rows."""

    n_examples: int
    n_responses: int
    n_judge_verdicts: int
    n_imported_reads: int
    n_reads: int
    """Physicians' verdicts that were given here."""
    n_adjudications: int
    n_open: int
    """Readings that somebody is at, and assigned items that nobody has begun, are `n_tasks`."""
    n_tasks: int
    n_questions: int
    """Questions of runs."""

    def parts(self) -> list[str]:
        """In words, what there is of it."""
        words = (
            (self.n_examples, "example"), (self.n_responses, "response"), (self.n_judge_verdicts, "verdict of judges", "verdicts of judges"),
            (self.n_imported_reads, "imported verdict of physicians", "imported verdicts of physicians"),
            (self.n_reads, "verdict that physicians gave here", "verdicts that physicians gave here"),
            (self.n_adjudications, "adjudicated verdict"), (self.n_open, "read in progress", "reads in progress"),
            (self.n_tasks, "assigned item"), (self.n_questions, "question of runs", "questions of runs"),
        )  # fmt: skip
        return [counted(n, *word) for n, *word in words if n]

    @property
    def of_physicians(self) -> str:
        """What people did here that is kept and not shown; "" where there is none of it."""
        done = Effect(0, 0, 0, 0, *self[4:8], 0)
        return listed(done.parts()) if any(done) else ""


def _shown_counts(session: Session) -> Effect:
    judge, by_hand = (
        f"stage = '{schema.Stage.JUDGE}'",
        f"coalesce(source, '{schema.Source.SESSION}') <> '{schema.Source.IMPORT}'",
    )
    adjudicated = f"stage = '{schema.Stage.ADJUDICATED}'"
    conditions = (
        ("example", "1 = 1"),
        ("response", "1 = 1"),
        ("verdict", judge),
        ("verdict", f"NOT ({judge}) AND NOT ({by_hand})"),
        ("verdict", f"NOT ({judge}) AND {by_hand} AND NOT ({adjudicated})"),
        ("verdict", f"{by_hand} AND {adjudicated}"),
        ("reading", f"state = '{schema.ReadingState.READING}'"),
        ("task", "1 = 1"),
        ("run_question", "1 = 1"),
    )
    return Effect(*(
        int(session.connection().exec_driver_sql(f"SELECT count(*) FROM {shown(table, HIDDEN)} WHERE {condition}").scalar_one())  # noqa: S608 - our own words
        for table, condition in conditions
    ))  # fmt: skip


def imports(session: Session) -> "pd.DataFrame":
    """The imports that added something, newest first, a row each.

    With how many examples, responses and verdicts each brought, new or known (missing: its rows are not known), and by whom and why it was withdrawn.
    """
    brought = _BROUGHT.c
    n_rows = brought.last_id - brought.first_id + 1
    counts = [
        sa.func.sum(sa.case((brought.table_name == table, n_rows), else_=0)).label(f"n_{table}s")
        for table in ("example", "response", "verdict")
    ]
    columns = _IMPORT.c
    file = (columns.id.label("import_id"), columns.name.label("file"), columns.format)
    by = (columns.actor.label("imported_by"), columns.at.label("imported_at"))
    further = (columns.withdrawn_at, columns.withdrawn_by, columns.reason, columns.keeps_rows, columns.source_hash)
    statement = sa.select(*file, *by, *counts, *further).outerjoin(_BROUGHT, brought.import_id == columns.id)
    return frame(session, statement.group_by(*columns).order_by(columns.id.desc()))


def preview(engine: Engine, import_id: int, *, actor: schema.Viewer) -> Effect:
    """What would not be shown any more if an import were withdrawn, or again if it were restored: tried, and undone."""
    with act(engine, actor, policies.check_can_mend) as session:
        row = _row(session, import_id)
        effect, _ = _set(session, import_id, None if row.withdrawn_at is not None else {"withdrawn_at": now()})
        session.rollback()
    return effect


def withdraw(engine: Engine, import_id: int, *, reason: str, actor: schema.Viewer) -> Effect:
    """Have everything that came with an import leave all screens, numbers and exports; nothing is deleted. OverreadError: it cannot be."""
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON or not is_storable(reason):
        refuse(f"reason: expected why it is withdrawn, in 1 to {MAX_REASON:,} characters, got {len(reason):,}")
    with act(engine, actor, policies.check_can_mend, patient=True) as session:
        row = _row(session, import_id)
        if row.withdrawn_at is not None:
            msg = f"import {import_id}: expected one that is in the study, got one that {row.withdrawn_by} withdrew on {row.withdrawn_at:%Y-%m-%d}"
            raise OverreadError(msg)
        values = {"withdrawn_at": now(), "withdrawn_by": actor.signature, "reason": reason}
        return _done(session, row, values, action=schema.IMPORT_WITHDRAWN, actor=actor)


def restore(engine: Engine, import_id: int, *, actor: schema.Viewer) -> Effect:
    """Bring a withdrawn import back, with all that was done on it. OverreadError: it was not withdrawn, or others stand in its place."""
    with act(engine, actor, policies.check_can_mend, patient=True) as session:
        row = _row(session, import_id)
        if row.withdrawn_at is None:
            refuse(f"import {import_id}: expected one that was withdrawn, got one that is in the study")
        return _done(session, row, None, action=schema.IMPORT_RESTORED, actor=actor)


def _row(session: Session, import_id: int) -> Any:
    unfinished = lookups.unfinished_import(session)
    if unfinished is not None:
        raise OverreadError(unfinished.sentence)
    row = session.connection().execute(sa.select(_IMPORT).where(_IMPORT.c.id == import_id)).first()
    if row is None:
        refuse(f"import: expected the number of an import, got {import_id}. `overread imports` lists them", NotFound)
    return row


def _set(session: Session, import_id: int, values: dict[str, Any] | None) -> tuple[Effect, dict[str, str]]:
    """Say of an import that it is withdrawn, or not: what that changes, and what the event has to keep of it."""
    before = _shown_counts(session)
    said = values or dict.fromkeys(("withdrawn_at", "withdrawn_by", "reason"))
    session.connection().execute(sa.update(_IMPORT).where(_IMPORT.c.id == import_id).values(**said))
    mended = hide_anew(session)
    return Effect(*(abs(was - is_now) for was, is_now in zip(before, _shown_counts(session), strict=True))), mended


def _done(session: Session, row: Any, values: dict[str, Any] | None, *, action: str, actor: schema.Viewer) -> Effect:
    effect, mended = _set(session, row.id, values)
    why = {"reason": (values or {}).get("reason")}
    detail = {"import": row.id, "source_hash": row.source_hash, **why, **effect._asdict(), **mended}
    told = {key: value for key, value in detail.items() if value}
    append_event(session, actor=actor.signature, action=action, subject=row.name, detail=told)
    return effect


def broken(session: Session) -> "pd.DataFrame":
    """Responses that are marked as broken, a row each, with the reason (a `Broken`), by whom and when; those of withdrawn imports are not among them."""
    response, example, model = (shown(table, WITHDRAWN, NAMES, MERGED) for table in ("response", "example", "model"))
    statement = (
        "SELECT response.id AS response_id, response.example_id, example.dataset, example.prompt_id, model.name AS model, "  # noqa: S608 - our own words
        "response.dataset AS evaluation, response.sample_index, broken.reason, broken.marked_by, broken.at AS marked_at "
        f"FROM broken_response AS broken CROSS JOIN {response} CROSS JOIN {example} CROSS JOIN {model} "
        "WHERE response.id = broken.response_id AND example.id = response.example_id AND model.id = response.model_id "
        "AND broken.reason IS NOT NULL ORDER BY response.id"
    )  # SQLite joins in this order: it would else go through all responses
    return frame(session, sa.text(statement).columns(marked_at=UtcDateTime()))


def mark_broken(engine: Engine, response_id: int, reason: schema.Broken | None, *, actor: schema.Viewer) -> None:
    """Have a response that is no answer leave the numbers; what was said of it is kept. None: it counts again. NotFound: it is not there, or not marked."""
    with act(engine, actor, policies.check_can_mend, with_broken=True) as session:
        connection, this = session.connection(), TABLES["response"].c.id == response_id
        there = connection.execute(sa.select(TABLES["response"].c.id).where(this)).first()
        of_row = _BROKEN.c.response_id == response_id
        before = connection.execute(sa.select(_BROKEN.c.reason).where(of_row)).first()
        if there is None or (reason is None and (before is None or before.reason is None)):
            wanted = "a response of the study" if there is None else "a response that is marked as broken"
            refuse(f"response: expected the number of {wanted}, got {response_id}", NotFound)
        if before is not None and before.reason == reason:
            return
        values = {"reason": reason, "marked_by": actor.signature, "at": now()}
        written_row = sa.insert(_BROKEN).values(response_id=response_id, **values)
        connection.execute(written_row if before is None else sa.update(_BROKEN).where(of_row).values(**values))
        action = schema.UNMARKED_BROKEN if reason is None else schema.MARKED_BROKEN
        detail = {"response": response_id, **({"reason": reason} if reason else {}), **hide_anew(session)}
        append_event(session, actor=actor.signature, action=action, subject=f"response {response_id}", detail=detail)

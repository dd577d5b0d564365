"""Verdicts that people give, one act at a time; imports write theirs in bulk."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from evalcore.errors import AlreadyChanged
from evalcore.study.row_hashes import VERDICT, hash_of
from evalcore.study.schema import Source, Verdict
from evalcore.study.store.events import append_event, written
from evalcore.study.tables import SearchPending, now
from evalcore.study.tables import Verdict as VerdictRow

_DUPLICATE = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_TRIGGER", "23505"}  # the trigger: the row is there already


def add_verdicts(
    session: Session, verdicts: Sequence[Verdict], *, actor: str, action: str, **further: Any
) -> list[int]:
    """Append verdicts and one audit event, which tells what is said further. Returns the new row numbers, in order.

    Raises:
        AlreadyChanged: One of them was given already, or supersedes a verdict that has been superseded.
    """
    at = now()
    rows = [verdict_row(verdict, {"source": Source.SESSION, "recorded_at": at}, at=at) for verdict in verdicts]
    try:
        added = session.execute(insert(VerdictRow).returning(VerdictRow.id, sort_by_parameter_order=True), rows)  # type: ignore[call-overload]
    except IntegrityError as error:
        states = {getattr(error.orig, name, None) for name in ("sqlite_errorname", "sqlstate")}
        if not _DUPLICATE & states:  # a wrong word or number is a mistake of ours, not of two tabs
            raise
        msg = "This was changed in another tab or by a second press. The newer state is shown now; nothing was saved twice."
        raise AlreadyChanged(msg) from error
    numbers = [int(number) for number in added.scalars()]
    labels = []
    for number, verdict, row in zip(numbers, verdicts, rows, strict=True):
        written(session).verdicts.add(number, row["row_hash"])
        item = {"response": verdict.response_id, "criterion": verdict.criterion_id}
        labels.append({"verdict": number, **item, "label": verdict.label})
        if verdict.explanation:
            session.add(SearchPending(example_id=verdict.example_id, body=verdict.explanation))
    (example_id, response_id), *others = {(verdict.example_id, verdict.response_id) for verdict in verdicts}
    subject = f"example {example_id}" if response_id is None else f"response {response_id}"
    if others:
        subject = f"{len(others) + 1} responses"
    append_event(session, actor=actor, action=action, subject=subject, detail={**further, "verdicts": labels})
    return numbers


def verdict_row(verdict: Verdict, stamp: Mapping[str, Any], *, at: datetime | None = None) -> dict[str, Any]:
    """A verdict as a row of the table, with how it came here and its hash; of the time `at` where it has none of its own."""
    row = {**msgspec.structs.asdict(verdict), **stamp}
    row["created_at"] = row["created_at"] or at
    return {**row, "row_hash": hash_of(VERDICT, row)}

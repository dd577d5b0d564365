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
from evalcore.study.store.events import append_event
from evalcore.study.store.written import written
from evalcore.study.tables import SearchPending, now
from evalcore.study.tables import Verdict as VerdictRow


def add_verdicts(
    session: Session, verdicts: Sequence[Verdict], *, actor: str, action: str, **further: Any
) -> list[int]:
    """Append verdicts and one audit event, which tells what is said further. Returns the new row numbers, in order.

    Raises:
        AlreadyChanged: One of them was given already, or supersedes a verdict that has been superseded.
    """
    at = now()
    stamp = {"source": Source.SESSION, "recorded_at": at}
    rows = [verdict_row(verdict, stamp, at=at) for verdict in verdicts]
    try:
        found = session.execute(insert(VerdictRow).returning(VerdictRow.id, sort_by_parameter_order=True), rows)  # type: ignore[call-overload]
    except IntegrityError as error:
        if not _is_duplicate(error):  # a wrong word or number is a mistake of ours, not of two tabs
            raise
        msg = "This was changed in another tab or by a second press. The newer state is shown now; nothing was saved twice."
        raise AlreadyChanged(msg) from error
    numbers = [int(number) for number in found.scalars()]
    for number, row in zip(numbers, rows, strict=True):
        written(session).verdicts.add(number, row["row_hash"])
    detail: dict[str, Any] = {
        **further,
        "verdicts": [
            {
                "verdict": number,
                "response": verdict.response_id,
                "criterion": verdict.criterion_id,
                "label": verdict.label,
            }
            for number, verdict in zip(numbers, verdicts, strict=True)
        ],
    }
    notes = [(verdict.example_id, verdict.explanation) for verdict in verdicts if verdict.explanation]
    session.add_all(SearchPending(example_id=example_id, body=note) for example_id, note in notes)
    append_event(session, actor=actor, action=action, subject=_subject(verdicts), detail=detail)
    return numbers


def _is_duplicate(error: IntegrityError) -> bool:
    said = (getattr(error.orig, name, None) for name in ("sqlite_errorname", "sqlstate"))
    duplicate = {
        "SQLITE_CONSTRAINT_UNIQUE",
        "SQLITE_CONSTRAINT_TRIGGER",
        "23505",
    }  # the trigger: the row is there already
    return bool(duplicate.intersection(said))


def _subject(verdicts: Sequence[Verdict]) -> str:
    read = {(verdict.example_id, verdict.response_id) for verdict in verdicts}
    if len(read) > 1:
        return f"{len(read)} responses"
    ((example_id, response_id),) = read
    return f"example {example_id}" if response_id is None else f"response {response_id}"


def verdict_row(verdict: Verdict, stamp: Mapping[str, Any], *, at: datetime | None = None) -> dict[str, Any]:
    """A verdict as a row of the table, with how it came here and its hash; of the time `at` where it has none of its own."""
    row = {**msgspec.structs.asdict(verdict), **stamp}
    row["created_at"] = row["created_at"] or at
    return {**row, "row_hash": hash_of(VERDICT, row)}

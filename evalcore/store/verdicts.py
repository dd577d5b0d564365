"""Verdicts that people give, one act at a time; imports write theirs in bulk."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from evalcore.errors import AlreadyChanged
from evalcore.schema import Verdict
from evalcore.store.events import append_event
from evalcore.tables import SearchPending, now
from evalcore.tables import Verdict as VerdictRow


def add_verdicts(session: Session, verdicts: Sequence[Verdict], *, actor: str, action: str) -> list[int]:
    """Append verdicts and one audit event. Returns the new row numbers, in order.

    Raises:
        AlreadyChanged: One of them was given already, or supersedes a verdict that has been superseded.
    """
    at = now()
    rows = [{**verdict_values(verdict), "created_at": verdict.created_at or at} for verdict in verdicts]
    try:
        found = session.execute(insert(VerdictRow).returning(VerdictRow.id, sort_by_parameter_order=True), rows)  # type: ignore[call-overload]
    except IntegrityError as error:
        if not _is_duplicate(error):  # a wrong word or number is a mistake of ours, not of two tabs
            raise
        msg = "This was changed in another tab or by a second press. The newer state is shown now; nothing was saved twice."
        raise AlreadyChanged(msg) from error
    numbers = [int(number) for number in found.scalars()]
    detail: dict[str, Any] = {
        "verdicts": [
            {
                "verdict": number,
                "response": verdict.response_id,
                "criterion": verdict.criterion_id,
                "label": verdict.label,
            }
            for number, verdict in zip(numbers, verdicts, strict=True)
        ]
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


def verdict_values(verdict: Verdict) -> dict[str, Any]:
    """A verdict as a row of the table."""
    return msgspec.structs.asdict(verdict)

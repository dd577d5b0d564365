"""Responses that hold text which speaks to their judge."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session

from evalcore.study.tables import TABLES

_CHUNK = 500  # rows in one statement


def flag_suspects(session: Session, reasons: Mapping[int, Sequence[str]]) -> None:
    """Write down why some responses are suspect, in the caller's transaction, whose audit event tells of it.

    What was said of such a response before is replaced, so that to say the same again changes nothing. Two processes may flag the same responses at once.

    Args:
        session: The caller's.
        reasons: By response, sentences of `prompts.suspects`, one or more.
    """
    rows, connection = _table(), session.connection()
    numbers = sorted(reasons)  # in one order everywhere, so that two who write do not wait for each other in a ring
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        added = insert(rows).values(
            [{"response_id": one, "reasons": json.dumps(list(reasons[one]), ensure_ascii=False)} for one in part]
        )
        said = added.excluded.reasons
        connection.execute(
            added.on_conflict_do_update(
                index_elements=["response_id"], set_={"reasons": said}, where=rows.c.reasons != said
            )
        )


def _table() -> Table:
    return TABLES["suspect_response"]

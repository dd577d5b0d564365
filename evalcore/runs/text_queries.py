"""The texts that questions of a run are made from."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import select
from sqlmodel import Session

from evalcore.study.run_words import Question
from evalcore.study.schema import Message
from evalcore.study.tables import TABLES

CHUNK = 500  # bound variables in one statement


class Texts(NamedTuple):
    """What some questions are about, by the numbers of the rows.

    Attributes:
        conversations: Of examples.
        responses: Of what is judged.
        criteria: Text and points.
    """

    conversations: dict[int, tuple[Message, ...]]
    responses: dict[int, str]
    criteria: dict[int, tuple[str, int | None]]


def texts(session: Session, questions: Iterable[Question]) -> Texts:
    """The texts of some questions; each is read once, however many questions are about it."""
    asked = list(questions)
    examples = _of(session, "example", {one.example_id for one in asked}, ("messages",))
    responses = _of(session, "response", {one.response_id for one in asked if one.response_id is not None}, ("text",))
    criteria = _of(
        session, "criterion", {one.criterion_id for one in asked if one.criterion_id is not None}, ("text", "points")
    )
    return Texts(
        {number: msgspec.json.decode(messages, type=tuple[Message, ...]) for number, messages in examples},
        {number: text or "" for number, text in responses},
        {number: (text, points) for number, text, points in criteria},
    )


def _of(session: Session, name: str, numbers: Collection[int], columns: tuple[str, ...]) -> Iterable[Any]:
    table, ordered = TABLES[name].c, sorted(numbers)
    for start in range(0, len(ordered), CHUNK):
        part = table.id.in_(ordered[start : start + CHUNK])
        yield from session.connection().execute(select(table.id, *(table[column] for column in columns)).where(part))

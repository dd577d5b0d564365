"""People, raters and the study itself."""

import json
import secrets
from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel

from evalcore.errors import OverreadError
from evalcore.study.schema import RaterKind, Role
from evalcore.study.store.events import append_event
from evalcore.study.store.plain_text import is_storable
from evalcore.study.store.written import written
from evalcore.study.tables import TABLES, Person, Rater, Study

STUDY_KEY_BYTES = 16


def ensure_study(session: Session) -> Study:
    """The study's one row, made at the first call."""
    study = session.get(Study, 1)
    if study is None:
        _inserted(session, Study(key=secrets.token_hex(STUDY_KEY_BYTES)))
        study = session.get_one(Study, 1)
    return study


def _inserted(session: Session, row: SQLModel) -> bool:
    """Insert a row whose name is unique; False where another process was first (on SQLite writers wait for each other)."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def add_person(
    session: Session,
    name: str,
    *,
    roles: Iterable[str],
    specialties: Iterable[str] = (),
    languages: Iterable[str] = (),
    actor: str,
) -> Person:
    """Add somebody who uses this study.

    Raises:
        OverreadError: The name is empty or taken, or a role is unknown.
    """
    name, specialties, languages = name.strip(), _cleaned(specialties), _cleaned(languages)
    wanted = list(dict.fromkeys(roles))
    unknown = [role for role in wanted if role not in set(Role)]
    if not name or not all(map(is_storable, (name, *specialties, *languages))):
        msg = f"name, specialties, languages: expected how the person is to be called, in plain text, got {name!r}"
        raise OverreadError(msg)
    if unknown or not wanted:
        msg = f"roles: expected one or more of {', '.join(Role)}, got {', '.join(unknown) or 'nothing'}"
        raise OverreadError(msg)
    person = Person(
        name=name,
        roles=json.dumps(wanted),
        specialties=json.dumps(specialties, ensure_ascii=False),
        languages=json.dumps(languages, ensure_ascii=False),
    )
    if not _inserted(session, person):
        msg = f"{name} is already in this study"
        raise OverreadError(msg)
    written(session).content("person", [person.id or 0])
    append_event(session, actor=actor, action="person added", subject=name, detail={"roles": wanted})
    return person


def _cleaned(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in words if word.strip()))


def ensure_rater(session: Session, kind: RaterKind, name: str, *, prompt_version: str = "") -> int:
    """The number of the rater of this name, made at the first call; a reviewer is linked to the person of the same name.

    By SQLAlchemy's core: every mark and every import asks for it, and its ORM takes three times as long.
    """
    connection, table = session.connection(), TABLES["rater"]
    named, bound = _rater_named(), {"kind": kind.value, "name": name, "prompt_version": prompt_version}
    person_id = None
    if kind is RaterKind.REVIEWER:
        person = TABLES["person"]
        person_id = connection.execute(select(person.c.id).where(person.c.name == name)).scalar()
    found = connection.execute(named, bound).first()
    if found is None:
        _inserted(session, Rater(kind=kind, name=name, prompt_version=prompt_version, person_id=person_id))
        found = connection.execute(named, bound).one()
        written(session).content("rater", [found.id])
    if found.person_id is None and person_id is not None:
        connection.execute(update(table).where(table.c.id == found.id).values(person_id=person_id))
    return int(found.id)


@cache
def _rater_named() -> Select[Any]:
    table = TABLES["rater"]
    same = (table.c[name] == bindparam(name) for name in ("kind", "name", "prompt_version"))
    return select(table.c.id, table.c.person_id).where(*same)

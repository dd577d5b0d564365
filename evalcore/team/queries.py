"""Who is signed in, or comes with a key, and who that is in a study."""

import hashlib
import json
from datetime import datetime, timedelta
from functools import cache

import msgspec
from sqlalchemy import bindparam, select
from sqlmodel import Session, col, select as select_rows

from evalcore.study import contents
from evalcore.study.schema import Role, Viewer
from evalcore.study.tables import TABLES, AccessKey, AnySelect, Identity, Person, now

_IS_BOUND = col(Identity.unbound_at).is_(None)
SEEN_EVERY = timedelta(minutes=1)
"""A session's last press is written no more often than this."""


class SignedIn(msgspec.Struct, frozen=True):
    """Somebody's session in a browser; `issuer` and `subject` together are one person's alone, `groups` those named at their sign-in."""

    number: int
    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]
    seen_at: datetime

    @property
    def is_seen_anew(self) -> bool:
        """Whether it is time to write the last press down."""
        return now() - self.seen_at > SEEN_EVERY


def hashed(token: str) -> str:
    """What the database keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def find(session: Session, token: str, *, idle: timedelta, longest: timedelta) -> SignedIn | None:
    """The session of a token; None where it has ended, by sign-out or by time, or never was."""
    if not token:
        return None
    at = now()
    which = {"token_hash": hashed(token), "seen_after": at - idle, "begun_after": at - longest}
    row = session.connection().execute(_of_token(), which).first()
    if row is None:
        return None
    return SignedIn(row.id, row.issuer, row.subject, row.name, tuple(json.loads(row.groups)), row.seen_at)


@cache  # it is asked at every press; to build it takes longer than to ask
def _of_token() -> AnySelect:
    row = TABLES["sign_in"].c
    lasts = row.seen_at > bindparam("seen_after"), row.created_at > bindparam("begun_after"), row.ended_at.is_(None)
    columns = row.id, row.issuer, row.subject, row.name, row.groups, row.seen_at
    return select(*columns).where(row.token_hash == bindparam("token_hash"), *lasts)


def person_of(session: Session, issuer: str, subject: str) -> Viewer | None:
    """The person of this study whom a provider calls so; None where there is none, or they are not let in any more: not active, or without a role."""
    person = contents.let_in(session.connection().execute(_bound(), {"issuer": issuer, "subject": subject}).first())
    return person if person is not None and person.roles else None


@cache
def _bound() -> AnySelect:
    person, identity = TABLES["person"], TABLES["identity"].c
    account = (identity.issuer == bindparam("issuer"), identity.subject == bindparam("subject"))
    number = select(identity.person_id).where(*account, identity.unbound_at.is_(None)).scalar_subquery()
    return select(person).where(person.c.id == number)


def number_of(session: Session, issuer: str, subject: str) -> int | None:
    """The number of that person, active or not."""
    who = select(col(Identity.person_id)).where(col(Identity.issuer) == issuer, col(Identity.subject) == subject)
    return session.connection().execute(who.where(_IS_BOUND)).scalar()


def accounts_of(session: Session, person_id: int) -> list[tuple[str, str]]:
    """Issuer and subject of each account of a person."""
    whose = select(col(Identity.issuer), col(Identity.subject)).where(col(Identity.person_id) == person_id, _IS_BOUND)
    return [(issuer, subject) for issuer, subject in session.connection().execute(whose.order_by(col(Identity.id)))]


def is_unbound(session: Session, issuer: str, subject: str) -> bool:
    """Whether this account was somebody's and is nobody's now: only an invitation lets it in again."""
    who = select(col(Identity.id)).where(col(Identity.issuer) == issuer, col(Identity.subject) == subject)
    return session.connection().execute(who.where(~_IS_BOUND)).first() is not None


def roles_by_groups(session: Session, person_id: int) -> frozenset[Role]:
    """The roles that a person has because of groups of the provider."""
    return frozenset(map(Role, json.loads(session.get_one(Person, person_id).group_roles)))


def everybody(session: Session) -> list[tuple[Viewer, bool, bool]]:
    """All people of the study by name: each, whether they are let in, and whether they have signed in once."""
    bound = set(session.exec(select_rows(Identity.person_id).where(_IS_BOUND)))
    active = set(session.exec(select_rows(Person.id).where(col(Person.active))))
    people = contents.people(session, everybody=True)
    return [(person, person.person_id in active, person.person_id in bound) for person in people]


class Key(msgspec.Struct, frozen=True):
    """A key with which a program reads the study as `person`; `state`: valid, revoked or expired."""

    number: int
    person: str
    purpose: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    state: str


def keys(session: Session) -> list[Key]:
    """All keys that were ever made, newest first."""
    made = select_rows(AccessKey, Person.name).join(Person).order_by(col(AccessKey.id).desc())
    return [
        Key(row.id or 0, name, row.purpose, row.created_by, row.created_at, row.expires_at, _state(row))
        for row, name in session.exec(made)
    ]


def _state(row: AccessKey) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "valid" if row.expires_at > now() else "expired"


def person_of_key(session: Session, key: str) -> Viewer | None:
    """As whom a key reads, with the roles that they have now; None where it opens nothing: it is not of this study, or not valid any more."""
    row = session.exec(select_rows(AccessKey).where(AccessKey.key_hash == hashed(key))).first()
    if row is None or _state(row) != "valid":
        return None
    person = contents.person(session, row.person_id)
    return None if person is None else msgspec.structs.replace(person, by=f"key {row.id}")

"""Who is signed in, and who that is in a study."""

import hashlib
import json
from datetime import datetime, timedelta

import msgspec
from sqlalchemy import select
from sqlmodel import Session, col, select as select_rows

from evalcore.study import contents
from evalcore.study.schema import Viewer
from evalcore.study.tables import Identity, Person, SignIn, now

SEEN_EVERY = timedelta(minutes=1)
"""A session's last press is written no more often than this."""


class SignedIn(msgspec.Struct, frozen=True):
    """Somebody's session in a browser.

    Attributes:
        number: Of its row.
        issuer, subject: Who the provider says that they are; the pair is one person's alone.
        name: As the provider shows it, for the screen.
        groups: That the provider said they are in when they signed in.
    """

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
    lasts = (col(SignIn.seen_at) > now() - idle, col(SignIn.created_at) > now() - longest)
    of_token = select_rows(SignIn).where(SignIn.token_hash == hashed(token), col(SignIn.ended_at).is_(None), *lasts)
    row = session.exec(of_token).first()
    if row is None:
        return None
    return SignedIn(row.id or 0, row.issuer, row.subject, row.name, tuple(json.loads(row.groups)), row.seen_at)


def person_of(session: Session, issuer: str, subject: str) -> Viewer | None:
    """The person of this study whom a provider calls so; None where there is none, or they are not active any more."""
    number = number_of(session, issuer, subject)
    return None if number is None else contents.person(session, number)


def number_of(session: Session, issuer: str, subject: str) -> int | None:
    """The number of that person, active or not."""
    who = select(col(Identity.person_id)).where(col(Identity.issuer) == issuer, col(Identity.subject) == subject)
    return session.connection().execute(who).scalar()


def everybody(session: Session) -> list[tuple[Viewer, bool, bool]]:
    """All people of the study by name: each, whether they are let in, and whether they have signed in once."""
    bound = set(session.exec(select_rows(Identity.person_id)))
    active = set(session.exec(select_rows(Person.id).where(col(Person.active))))
    people = contents.people(session, everybody=True)
    return [(person, person.person_id in active, person.person_id in bound) for person in people]

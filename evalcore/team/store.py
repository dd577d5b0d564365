"""Sessions, identities and invitations into the database: of each token only its hash. Whether somebody may is checked by the acts of `people`."""

import json
import secrets
from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlmodel import Session, col

from evalcore.errors import NotAllowed
from evalcore.study import store
from evalcore.study.schema import SIGN_IN_REFUSED, SIGNED_IN, SIGNED_OUT, Role
from evalcore.study.tables import Identity, Invitation, Person, SignIn, now
from evalcore.team.queries import hashed, number_of

INVITED_FOR = timedelta(days=14)
NO_INVITATION = (
    "This invitation was used, or is older than 14 days, or there never was one. Ask a lead of the study for a new one."
)


# ---------------------------------------------------------------- sessions


def begin(session: Session, *, issuer: str, subject: str, name: str, groups: Iterable[str]) -> str:
    """Begin a session. Returns its token, which only the browser keeps."""
    token = secrets.token_urlsafe(32)
    held = json.dumps(sorted(groups), ensure_ascii=False)
    session.add(SignIn(token_hash=hashed(token), issuer=issuer, subject=subject, name=name, groups=held))
    store.append_event(session, actor=f"{issuer} {subject}", action=SIGNED_IN, subject="session")
    return token


def seen(session: Session, number: int) -> None:
    """Somebody has pressed: the session lasts on."""
    here = update(SignIn).where(col(SignIn.id) == number, col(SignIn.ended_at).is_(None))
    session.connection().execute(here.values(seen_at=now()))


def end(session: Session, token: str) -> None:
    """End a session; one that has ended stays so."""
    ended = (
        update(SignIn)
        .where(col(SignIn.token_hash) == hashed(token), col(SignIn.ended_at).is_(None))
        .values(ended_at=now())
        .returning(col(SignIn.issuer), col(SignIn.subject))
    )
    for issuer, subject in session.connection().execute(ended).all():
        store.append_event(session, actor=f"{issuer} {subject}", action=SIGNED_OUT, subject="session")


def end_all(session: Session, person_id: int) -> None:
    """End every session of a person in this database."""
    who = select(col(Identity.issuer), col(Identity.subject)).where(col(Identity.person_id) == person_id)
    for issuer, subject in session.connection().execute(who).all():
        theirs = (col(SignIn.issuer) == issuer, col(SignIn.subject) == subject, col(SignIn.ended_at).is_(None))
        session.connection().execute(update(SignIn).where(*theirs).values(ended_at=now()))


def refused(session: Session, *, who: str, why: str) -> None:
    """Write down that somebody was not let in."""
    store.append_event(session, actor=who, action=SIGN_IN_REFUSED, subject="session", detail={"why": why})


# ---------------------------------------------------------------- people


def invite(session: Session, person_id: int, *, actor: str) -> str:
    """A new invitation for a person, in place of an unused one. Returns its token, which only the link holds."""
    session.connection().execute(
        delete(Invitation).where(col(Invitation.person_id) == person_id, col(Invitation.used_at).is_(None))
    )
    token = secrets.token_urlsafe(32)
    expires = now() + INVITED_FOR
    session.add(Invitation(token_hash=hashed(token), person_id=person_id, created_by=actor, expires_at=expires))
    store.append_event(session, actor=actor, action="person invited", subject=_name(session, person_id))
    return token


def accept(session: Session, token: str, *, issuer: str, subject: str) -> None:
    """Bind whoever opens an invitation to its person, once.

    Raises:
        NotAllowed: It was used, is too old, or never was; or this account is somebody of the study already.
    """
    store.wait_for_others(session)
    taken = (
        update(Invitation)
        .where(
            col(Invitation.token_hash) == hashed(token),
            col(Invitation.used_at).is_(None),
            col(Invitation.expires_at) > now(),
        )
        .values(used_at=now())
        .returning(col(Invitation.person_id))
    )
    person_id = session.connection().execute(taken).scalar()
    if person_id is None:
        raise NotAllowed(NO_INVITATION)
    bind(session, person_id, issuer=issuer, subject=subject)


def bind(session: Session, person_id: int, *, issuer: str, subject: str) -> None:
    """From now on this account of a provider is this person.

    Raises:
        NotAllowed: The account is somebody of the study already.
    """
    if number_of(session, issuer, subject) is not None:
        msg = "Your account belongs to somebody in this study already. Ask a lead to look at the list of people."
        raise NotAllowed(msg)
    row = Identity(person_id=person_id, issuer=issuer, subject=subject)
    session.add(row)
    session.flush()
    store.written(session).content("identity", [row.id or 0])
    detail = {"issuer": issuer, "subject": subject}
    name = _name(session, person_id)
    store.append_event(session, actor=name, action="identity bound", subject=name, detail=detail)


def set_roles(session: Session, person_id: int, roles: frozenset[Role], *, actor: str) -> None:
    """Give somebody other roles."""
    person = session.get_one(Person, person_id)
    before, wanted = sorted(json.loads(person.roles)), sorted(roles)
    if before == wanted:
        return
    detail = {"before": before, "roles": wanted}
    person.roles = json.dumps(wanted)
    session.add(person)
    store.append_event(session, actor=actor, action="roles changed", subject=person.name, detail=detail)


def set_active(session: Session, person_id: int, *, active: bool, actor: str) -> None:
    """Let somebody in no longer, or again. What they said stays theirs."""
    person = session.get_one(Person, person_id)
    if person.active == active:
        return
    person.active = active
    session.add(person)
    if not active:
        end_all(session, person_id)
    act = "person let in again" if active else "person deactivated"
    store.append_event(session, actor=actor, action=act, subject=person.name)


def _name(session: Session, person_id: int) -> str:
    return session.get_one(Person, person_id).name

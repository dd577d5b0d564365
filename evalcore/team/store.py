"""Sessions, identities and invitations into the database: of each token only its hash. Whether somebody may is checked by the acts of `people`."""

import json
import secrets
from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import delete, func, tuple_, update
from sqlmodel import Session, col, select as select_rows

from evalcore.errors import NotAllowed
from evalcore.study import store
from evalcore.study.schema import SIGN_IN_REFUSED, SIGNED_IN, SIGNED_OUT, Role
from evalcore.study.tables import Identity, Invitation, Person, SignIn, now
from evalcore.team.queries import hashed, number_of

INVITED_FOR = timedelta(days=14)
KEPT_FOR = timedelta(days=30)
"""A session's row, after its end; of one that ended by itself, after the last press."""
NO_INVITATION = (
    "This invitation was used, or is older than 14 days, or there never was one. Ask a lead of the study for a new one."
)


def begin(session: Session, *, issuer: str, subject: str, name: str, groups: Iterable[str]) -> str:
    """Begin a session and remove rows of long ended ones. Returns its token, which only the browser keeps."""
    old = now() - KEPT_FOR
    session.connection().execute(delete(SignIn).where(func.coalesce(SignIn.ended_at, SignIn.seen_at) < old))
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


def end_all(session: Session, accounts: Iterable[tuple[str, str]] | None = None, *, actor: str) -> int:
    """End every session of some accounts in this database, or all there are. Returns how many it was."""
    present = update(SignIn).where(col(SignIn.ended_at).is_(None)).values(ended_at=now())
    if accounts is not None:
        wanted = sorted(accounts)
        present = present.where(tuple_(col(SignIn.issuer), col(SignIn.subject)).in_(wanted))
    ended = session.connection().execute(present.returning(col(SignIn.issuer), col(SignIn.subject))).all()
    for issuer, subject in ended:
        detail = {"issuer": issuer, "subject": subject}
        store.append_event(session, actor=actor, action=SIGNED_OUT, subject="session", detail=detail)
    return len(ended)


def refused(session: Session, *, who: str, why: str) -> None:
    """Write down that somebody was not let in."""
    store.append_event(session, actor=who, action=SIGN_IN_REFUSED, subject="session", detail={"why": why})


def invite(session: Session, person_id: int, *, actor: str) -> str:
    """A new invitation for a person, in place of an unused one. Returns its token, which only the link holds."""
    _drop_invitations(session, person_id)
    token = secrets.token_urlsafe(32)
    expires = now() + INVITED_FOR
    session.add(Invitation(token_hash=hashed(token), person_id=person_id, created_by=actor, expires_at=expires))
    store.append_event(session, actor=actor, action="person invited", subject=name_of(session, person_id))
    return token


def accept(session: Session, token: str, *, issuer: str, subject: str) -> None:
    """Bind whoever opens an invitation to its person, once."""
    store.wait_for_others(session)
    is_valid = col(Invitation.used_at).is_(None), col(Invitation.expires_at) > now()
    used = update(Invitation).where(col(Invitation.token_hash) == hashed(token), *is_valid).values(used_at=now())
    person_id = session.connection().execute(used.returning(col(Invitation.person_id))).scalar()
    if person_id is None:
        raise NotAllowed(NO_INVITATION)
    bind(session, person_id, issuer=issuer, subject=subject)


def bind(session: Session, person_id: int, *, issuer: str, subject: str) -> None:
    """From now on this account of a provider is this person."""
    if number_of(session, issuer, subject) is not None:
        msg = "Your account belongs to somebody in this study already. Ask a lead to look at the list of people."
        raise NotAllowed(msg)
    again = select_rows(Identity).where(Identity.issuer == issuer, Identity.subject == subject)
    row = session.exec(again).first() or Identity(person_id=person_id, issuer=issuer, subject=subject)
    row.person_id, row.unbound_at = person_id, None
    name = name_of(session, person_id)
    _keep_identity(session, row, "identity bound", name, actor=name)


def unbind(session: Session, person_id: int, *, actor: str) -> int:
    """No account is this person any more, and no invitation of theirs works. Returns how many accounts it was."""
    _drop_invitations(session, person_id)
    bound = select_rows(Identity).where(Identity.person_id == person_id, col(Identity.unbound_at).is_(None))
    rows, name = session.exec(bound).all(), name_of(session, person_id)
    for row in rows:
        row.unbound_at = now()
        _keep_identity(session, row, "identity unbound", name, actor=actor)
    return len(rows)


def _drop_invitations(session: Session, person_id: int) -> None:
    unused = delete(Invitation).where(col(Invitation.person_id) == person_id, col(Invitation.used_at).is_(None))
    session.connection().execute(unused)


def _keep_identity(session: Session, row: Identity, act: str, name: str, *, actor: str) -> None:
    session.add(row)
    session.flush()
    store.written(session).content("identity", [row.id or 0])
    detail = {"issuer": row.issuer, "subject": row.subject}
    store.append_event(session, actor=actor, action=act, subject=name, detail=detail)


def set_roles(
    session: Session, person_id: int, roles: frozenset[Role], *, actor: str, by_groups: frozenset[Role] | None = None
) -> None:
    """Give somebody other roles. `by_groups`: those of them that groups of the provider gave; None: of what is left, the same as before."""
    person = session.get_one(Person, person_id)
    before, wanted = sorted(json.loads(person.roles)), sorted(roles)
    given = json.loads(person.group_roles) if by_groups is None else by_groups
    person.group_roles = json.dumps(sorted(set(given) & set(wanted)))
    session.add(person)
    if before != wanted:
        person.roles = json.dumps(wanted)
        detail = {"before": before, "roles": wanted}
        store.append_event(session, actor=actor, action="roles changed", subject=person.name, detail=detail)


def name_of(session: Session, person_id: int) -> str:
    """The name of a person, active or not."""
    return session.get_one(Person, person_id).name

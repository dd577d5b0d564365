"""Who comes in, as whom, with which roles, and with which keys programs read: acts of leads, and the one of whoever was invited; all in the trail."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import count

from evalcore.errors import NotAllowed, NotFound, refuse
from evalcore.study import contents, store as study_store
from evalcore.study.acting import act, allow
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.policies import allows, check_can_add_people, check_can_follow, check_can_make_keys
from evalcore.study.schema import Role, Viewer
from evalcore.study.tables import AccessKey, Person, now
from evalcore.team import queries, store
from evalcore.team.queries import SignedIn

Groups = Mapping[str, frozenset[Role]]
BY_GROUPS = "groups of the provider"
MOST_PURPOSE = 100
KEY_DAYS, MOST_DAYS = 90, 366


def invite(engine: Engine, name: str, *, actor: Viewer) -> str:
    """Invite a person of the study to sign in, by a lead. Returns the link's token: 14 days, one use, shown once."""
    with act(engine, actor, check_can_add_people, though_frozen=True) as session:
        return store.invite(session, _person(session, name).person_id, actor=actor.signature)


def accept(engine: Engine, token: str, who: SignedIn) -> None:
    """Become the person of an invitation; whoever opens it first, once. `NotAllowed` says why not."""
    with writing(engine, though_frozen=True) as session:
        store.accept(session, token, issuer=who.issuer, subject=who.subject)


def member(engine: Engine, who: SignedIn) -> Viewer | None:
    """Whom the study knows somebody as now; None: nobody, or they are not let in any more."""
    with reading(engine) as session:
        return queries.person_of(session, who.issuer, who.subject)


def admit(engine: Engine, who: SignedIn, held: Iterable[str], groups: Groups) -> Viewer | None:
    """The person whom somebody is in a study; None: nobody. `held`: the groups that the provider has just said they are in.

    Where `groups` names one of those, they come in without an invitation, and have its roles as long as they are in it. What a lead gave stays.
    """
    named = frozenset(role for group in held for role in groups.get(group, ()))
    with reading(engine) as session:
        if queries.is_unbound(session, who.issuer, who.subject):
            return None
        number = queries.number_of(session, who.issuer, who.subject)
        if not _differs(session, number, named):
            return queries.person_of(session, who.issuer, who.subject)
    with writing(engine, though_frozen=True) as session:
        study_store.wait_for_others(session)
        number = queries.number_of(session, who.issuer, who.subject)
        if not _differs(session, number, named):  # another request was first
            return queries.person_of(session, who.issuer, who.subject)
        given: frozenset[Role] = named
        if number is None:
            taken = {one.name for one in contents.people(session, everybody=True)}
            name = next(name for name in _names(who.name.strip() or "Somebody") if name not in taken)
            number = study_store.add_person(session, name, roles=sorted(named), actor=BY_GROUPS).id or 0
            store.bind(session, number, issuer=who.issuer, subject=who.subject)
        else:
            given = queries.roles_by_groups(session, number)
        person = contents.person(session, number)
        if person is not None:
            by_hand = person.roles - given
            kept = frozenset({Role.LEAD}) if _is_only_lead(session, person) else frozenset()
            store.set_roles(session, number, by_hand | named | kept, actor=BY_GROUPS, by_groups=named | kept - by_hand)
    return member(engine, who)


def _differs(session: Session, number: int | None, named: frozenset[Role]) -> bool:
    """Whether groups name other roles than somebody has from them. They change nothing for who was deactivated."""
    if number is not None:
        return contents.person(session, number) is not None and queries.roles_by_groups(session, number) != named
    return bool(named)


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} ({number})" for number in count(2))


def set_roles(engine: Engine, name: str, roles: Iterable[Role], *, actor: Viewer) -> None:
    """Give somebody other roles, by a lead; the study keeps a lead."""
    wanted = frozenset(roles)
    with act(engine, actor, check_can_add_people, though_frozen=True) as session:
        study_store.wait_for_others(session)
        person = _person(session, name)
        if not wanted:
            refuse("roles: expected one or more, got none. To let somebody in no longer, deactivate them.", NotAllowed)
        if Role.LEAD not in wanted:
            _check_lead_stays(session, person)
        store.set_roles(session, person.person_id, wanted, actor=actor.signature)


def set_active(engine: Engine, name: str, *, active: bool, actor: Viewer) -> None:
    """Let somebody in no longer, or again, by a lead. Their reads stay, others may take what they had begun, and no open tab of theirs does anything more."""
    with act(engine, actor, check_can_add_people, though_frozen=True) as session:
        study_store.wait_for_others(session)
        person = _person(session, name)
        row, freed = session.get_one(Person, person.person_id), {}
        if not active:
            _check_lead_stays(session, person)
            from evalcore.reading.store import free_readings  # noqa: PLC0415 - it loads pandas, which no other act needs

            freed = free_readings(session, now(), person_id=person.person_id)
        if row.active == active:
            return
        row.active = active
        session.add(row)
        if not active:
            store.end_all(session, queries.accounts_of(session, person.person_id), actor=actor.signature)
        action = "person let in again" if active else "person deactivated"
        detail = {"begun": len(freed)} if freed else {}
        study_store.append_event(session, actor=actor.signature, action=action, subject=name, detail=detail)


def unbind(engine: Engine, name: str, *, actor: Viewer) -> int:
    """Whoever signed in as this person is nobody in the study any more, by a lead; the next invitation binds anew. Returns how many accounts it was."""
    with act(engine, actor, check_can_add_people, though_frozen=True) as session:
        study_store.wait_for_others(session)
        return store.unbind(session, _person(session, name).person_id, actor=actor.signature)


def sign_out(engine: Engine, sign_ins: Engine, name: str | None, *, actor: Viewer) -> int:
    """End the sessions of a person (None: everybody's), by a lead; `sign_ins` keeps them. Returns how many it was."""
    with reading(engine) as session:
        allow(session, actor, check_can_add_people)
        accounts = None if name is None else queries.accounts_of(session, _person(session, name).person_id)
    with writing(sign_ins, though_frozen=True) as session:
        return store.end_all(session, accounts, actor=actor.signature)


def make_key(engine: Engine, name: str, *, purpose: str, days: int, actor: Viewer) -> str:
    """Make a key with which a program reads the study as a researcher or lead of it, by a lead. Returns it, shown this once."""
    with act(engine, actor, check_can_make_keys, though_frozen=True) as session:
        person = _person(session, name)
        if not allows(check_can_follow, person):
            held = ", ".join(sorted(person.roles)) or "without a role"
            refuse(f"key: expected a researcher or a lead to read as, got {name} ({held})", NotAllowed)
        if not purpose.strip() or len(purpose) > MOST_PURPOSE:
            refuse(f"purpose: expected what the key is for, in 1 to {MOST_PURPOSE} characters, got {purpose[:40]!r}")
        if not 1 <= days <= MOST_DAYS:
            refuse(f"days: expected 1 to {MOST_DAYS}, got {days}")
        key, by = f"overread_{secrets.token_urlsafe(32)}", actor.signature
        told = {"person_id": person.person_id, "purpose": purpose.strip(), "created_by": by}
        row = AccessKey(key_hash=queries.hashed(key), **told)
        row.expires_at = now() + timedelta(days=days)
        session.add(row)
        session.flush()
        detail = {"key": row.id, "purpose": row.purpose, "days": days}
        study_store.append_event(session, actor=by, action="key made", subject=name, detail=detail)
    return key


def revoke_key(engine: Engine, number: int, *, actor: Viewer) -> None:
    """Let a key open nothing any more, at once, by a lead."""
    with act(engine, actor, check_can_make_keys, though_frozen=True) as session:
        row = session.get(AccessKey, number)
        if row is None:
            refuse(f"key: expected the number of a key of this study, got {number}", NotFound)
        if row.revoked_at is None:
            row.revoked_at = now()
            session.add(row)
            detail, name = {"key": number, "purpose": row.purpose}, store.name_of(session, row.person_id)
            study_store.append_event(session, actor=actor.signature, action="key revoked", subject=name, detail=detail)


def keys(engine: Engine, *, actor: Viewer) -> list[queries.Key]:
    """All keys that were ever made, newest first, for a lead."""
    with reading(engine) as session:
        allow(session, actor, check_can_make_keys)
        return queries.keys(session)


def _is_only_lead(session: Session, person: Viewer) -> bool:
    return {one.person_id for one in contents.people(session) if Role.LEAD in one.roles} == {person.person_id}


def _check_lead_stays(session: Session, person: Viewer) -> None:
    if _is_only_lead(session, person):
        refuse(f"{person.name} is the only lead: make somebody else a lead first.", NotAllowed)


def _person(session: Session, name: str) -> Viewer:
    person = next((one for one in contents.people(session, everybody=True) if one.name == name), None)
    if person is None:
        refuse(f"people: expected the name of a person of this study, got {name!r}", NotFound)
    return person

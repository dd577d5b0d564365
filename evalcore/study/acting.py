"""Who acts, read anew in the transaction of the act and held against the rule; and the acts that set a study up."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import Frozen, NotAllowed, ReadOnly, refuse
from evalcore.study import contents, families, policies, store
from evalcore.study.analysis import Analysis
from evalcore.study.db import PATIENT_SECONDS, PERSON, open_study, reading, writing
from evalcore.study.schema import Administrator, Role, Rules, Viewer


def anew(session: Session, viewer: Viewer) -> Viewer:
    """Somebody with the roles that the study gives them now: what a page remembers may be older. An administrator stays as they are."""
    if isinstance(viewer, Administrator):
        return viewer
    known = contents.person(session, viewer.person_id)
    if known is None or known.name != viewer.name:
        refuse(f"{viewer.name} is not in this study any more. Choose on the start page who is reading.", NotAllowed)
    return msgspec.structs.replace(known, by=viewer.by)


def allow(session: Session, viewer: Viewer, check: Callable[..., None], *what: object) -> Viewer:
    """The first thing in the transaction of an act: a rule of `policies`, held against who acts as the study knows them now."""
    known = anew(session, viewer)
    session.info[PERSON] = known.person_id
    check(known, *what)
    return known


@contextmanager
def act(engine: Engine, actor: Viewer, check: Callable[..., None], **how: bool) -> Iterator[Session]:
    """The transaction of an act (`db.writing`) that this rule allows."""
    with writing(engine, **how) as session:
        allow(session, actor, check)
        yield session


def opened(location: str, *, wait_seconds: float = PATIENT_SECONDS) -> Engine:
    """A study, brought up to date and made where there is none yet; nobody's act, so nothing of it is in the trail."""
    engine = open_study(location, wait_seconds=wait_seconds)
    try:
        with reading(engine) as session:
            is_made = contents.study_key(session) is not None
        if not is_made:
            with writing(engine) as session:
                store.ensure_study(session)
    except BaseException:
        engine.dispose()
        raise
    return engine


def prepare_search(engine: Engine) -> None:
    """Take up what waits for the search: notes, and what an import that was broken off left; nothing where the study is read-only."""
    with suppress(ReadOnly, Frozen):
        store.index_texts(engine)


def add_person(engine: Engine, name: str, *, actor: Viewer, **profile: Iterable[str]) -> None:
    """`store.add_person` with roles, specialties and languages, by a lead; also of a frozen study, which somebody new may look at."""
    with act(engine, actor, policies.check_can_add_people, though_frozen=True) as session:
        store.add_person(session, name, **profile, actor=actor.signature)


def begin(engine: Engine, name: str) -> None:
    """Make the first person of a study, with every role: they act for themselves."""
    with writing(engine) as session:
        store.wait_for_others(session)
        policies.check_is_first(len(contents.people(session, everybody=True)))
        store.add_person(session, name, roles=list(Role), actor=name.strip() or "first person")


def set_families(engine: Engine, table: families.Table, *, actor: Viewer) -> bool:
    """`store.set_families`, by a researcher or a lead."""
    with act(engine, actor, policies.check_can_set_families) as session:
        return store.set_families(session, table, actor=actor.signature)


def state_analysis(engine: Engine, spec: Analysis, *, actor: Viewer) -> int | None:
    """`store.state_analysis`, by a researcher or a lead."""
    with act(engine, actor, policies.check_can_state_analysis) as session:
        return store.state_analysis(session, spec, actor=actor.signature)


def set_guideline(engine: Engine, guideline: str, *, actor: Viewer) -> int:
    """`store.set_guideline`, by a lead."""
    with act(engine, actor, policies.check_can_assign) as session:
        return store.set_guideline(session, guideline, actor=actor.signature)


def set_rules(engine: Engine, rules: Rules, *, actor: Viewer) -> None:
    """`store.set_rules`, by a lead."""
    with act(engine, actor, policies.check_can_assign) as session:
        store.set_rules(session, rules, actor=actor.signature)

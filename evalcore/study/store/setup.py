"""What sets a study up: the study itself, its people and raters, its rules, guideline, stated analysis and table of families."""

import json
import secrets
from collections.abc import Iterable
from datetime import datetime

import msgspec
from sqlalchemy import bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel, col

from evalcore.errors import OverreadError
from evalcore.study import analysis, families
from evalcore.study.analysis import Analysis
from evalcore.study.schema import RaterKind, Role, Rules, Stage
from evalcore.study.store.events import append_event, is_storable, written
from evalcore.study.tables import TABLES, ExampleSubset, Guideline, Model, Person, Rater, Response, Study, Verdict, now

MAX_GUIDELINE = 100_000
_RATER = TABLES["rater"].c
_RATER_NAMED = select(_RATER.id, _RATER.person_id).where(
    *(_RATER[name] == bindparam(name) for name in ("kind", "name", "prompt_version"))
)


def ensure_study(session: Session) -> Study:
    """The study's one row, made at the first call."""
    study = session.get(Study, 1)
    if study is None:
        _inserted(session, Study(key=secrets.token_hex(16)))
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
    connection, bound = session.connection(), {"kind": kind.value, "name": name, "prompt_version": prompt_version}
    person_id = None
    if kind is RaterKind.REVIEWER:
        person = TABLES["person"].c
        person_id = connection.execute(select(person.id).where(person.name == name)).scalar()
    row = connection.execute(_RATER_NAMED, bound).first()
    if row is None:
        _inserted(session, Rater(kind=kind, name=name, prompt_version=prompt_version, person_id=person_id))
        row = connection.execute(_RATER_NAMED, bound).one()
        written(session).content("rater", [row.id])
    if row.person_id is None and person_id is not None:
        connection.execute(update(TABLES["rater"]).where(_RATER.id == row.id).values(person_id=person_id))
    return int(row.id)


def set_guideline(session: Session, guideline: str, *, actor: str) -> int:
    """Write a new version of what readers are told. Returns its number.

    Raises:
        OverreadError: It is empty, too long, or holds what no database holds.
    """
    if not guideline.strip() or len(guideline) > MAX_GUIDELINE or not is_storable(guideline):
        msg = f"guideline: expected 1 to {MAX_GUIDELINE:,} characters of plain text, got {len(guideline):,}"
        raise OverreadError(msg)
    row = Guideline(text=guideline, created_by=actor, created_at=now())
    session.add(row)
    session.flush()
    written(session).content("guideline", [row.version or 0])
    detail = {"characters": len(guideline)}
    append_event(session, actor=actor, action="guideline changed", subject=f"version {row.version}", detail=detail)
    return row.version or 0


def set_rules(session: Session, rules: Rules, *, actor: str) -> None:
    """Change what the study has chosen; what differs is in the trail.

    Raises:
        OverreadError: A share is none.
    """
    for name, share in (("check_share", rules.check_share), ("control_share", rules.control_share)):
        if not 0 <= share <= 1:
            msg = f"{name}: expected a share from 0 to 1, got {share}"
            raise OverreadError(msg)
    study, wanted = ensure_study(session), msgspec.structs.asdict(rules)
    wanted = {"reading_mode": wanted.pop("mode").value, **wanted}
    changed = {name: value for name, value in wanted.items() if getattr(study, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(study, name, value)
        session.add(study)
        append_event(session, actor=actor, action="rules changed", subject="study", detail=changed)


def state_analysis(session: Session, spec: Analysis, *, actor: str, at: datetime | None = None) -> int | None:
    """State what is analysed from now on, with the number of blind first reads that exist already. Returns the version; None where nothing changes.

    Args:
        at: When, of an invented study; now by default. The event is of now in any case.

    Raises:
        OverreadError: It is not as `analysis.check` wants it.
    """
    rows, connection = TABLES["analysis"], session.connection()

    def names(column: object, *conditions: object) -> list[str]:
        return sorted(connection.execute(select(column).distinct().where(*conditions)).scalars())  # type: ignore[call-overload]

    session.flush()
    analysis.check(
        spec,
        evaluations=names(Response.dataset),
        judges=names(Rater.name, Rater.kind == RaterKind.JUDGE),
        subsets=names(ExampleSubset.subset),
        models=names(Model.name),
    )
    last = connection.execute(select(rows.c.version, rows.c.text).order_by(rows.c.version.desc()).limit(1)).first()
    before = analysis.of_json(last.text) if last else Analysis()
    if before == spec:
        return None
    blind = or_(col(Verdict.blinded).is_(None), col(Verdict.blinded).is_(True))
    first_reads = [
        col(Rater.kind) == RaterKind.REVIEWER, col(Verdict.stage) == Stage.FIRST, col(Verdict.supersedes).is_(None), blind
    ]  # fmt: skip
    counted = select(func.count()).select_from(Verdict).join(Rater).where(*first_reads)  # also those taken back since
    version, n_reads = (last.version if last else 0) + 1, int(connection.execute(counted).scalar_one())
    row = {"version": version, "text": analysis.to_json(spec), "stated_by": actor, "stated_at": at or now()}
    connection.execute(insert(rows), [{**row, "n_reads_before": n_reads}])
    written(session).content("analysis", [version])
    former = analysis.plain(before)
    changed = {name: value for name, value in analysis.plain(spec).items() if former[name] != value}
    detail = {**changed, "reads_before": n_reads}
    append_event(session, actor=actor, action="analysis stated", subject=f"version {version}", detail=detail)
    return version


def set_families(session: Session, table: families.Table, *, actor: str) -> bool:
    """Write the table whole, in its order; an empty one brings the table of Overread back. Returns whether anything changed.

    Raises:
        OverreadError: A row is not as `families.check` wants it.
    """
    given = [(f"row {number}", *row) for number, row in enumerate(table, start=1)]
    wanted = families.check(given, "the table of families") if given else []
    for place, pattern, family in given:
        if not (is_storable(pattern) and is_storable(family)):
            msg = f"{place}: expected plain text, got {pattern!r}"
            raise OverreadError(msg)
    rows, connection = TABLES["model_family"], session.connection()
    before = connection.execute(select(rows.c.pattern, rows.c.family).order_by(rows.c.place)).all()
    if [tuple(row) for row in before] == wanted:
        return False
    connection.execute(delete(rows))
    numbered = [{"place": place, "pattern": row[0], "family": row[1]} for place, row in enumerate(wanted, start=1)]
    if numbered:
        connection.execute(insert(rows), numbered)
    subject = f"{len(wanted)} patterns" if wanted else "the table of Overread"
    detail = {"families": [f"{pattern} = {family}" for pattern, family in wanted]}
    append_event(session, actor=actor, action="families set", subject=subject, detail=detail)
    return True

"""Give a model, a judge or a data set another name, or make one of two: what is stored stays, and is shown by the name that counts now (`showing`)."""

from enum import StrEnum

import pandas as pd
import sqlalchemy as sa
from sqlmodel import Session

from evalcore.errors import OverreadError, refuse
from evalcore.stats.wording import counted
from evalcore.study import policies
from evalcore.study.acting import act
from evalcore.study.corrections.mending import MENDED, digest
from evalcore.study.corrections.showing import HIDDEN, MERGED, NAMES, shown
from evalcore.study.db import Engine
from evalcore.study.frames import frame
from evalcore.study.schema import CASES, MERGED as NAMES_MERGED, PARSER, RENAMED, RULES, Viewer
from evalcore.study.store import append_event, is_storable
from evalcore.study.tables import STORED


class Kind(StrEnum):
    """What has a name that can be changed."""

    MODEL = "model"
    JUDGE = "judge"
    DATASET = "dataset"

    @property
    def words(self) -> str:
        """As a sentence calls it."""
        return "data set" if self is Kind.DATASET else self.value


MAX_NAME = 200
_FIXED = {Kind.JUDGE: (PARSER, RULES), Kind.DATASET: (CASES,), Kind.MODEL: ()}
_OTHER, _SAME, _MODEL, _RATER = (STORED[name] for name in (NAMES, MERGED, "model", "rater"))


def _rows(table: str, alias: str = "") -> str:
    """The rows of a table by the names of now, hidden ones among them: what is withdrawn may come back."""
    return shown(table, NAMES, MERGED, alias=alias)


_NAMES = {
    Kind.MODEL: f"SELECT name FROM {_rows('model')} UNION SELECT model FROM {_rows('published_matrix')}",  # noqa: S608 - our own words
    Kind.JUDGE: f"SELECT name FROM {_rows('rater')} WHERE kind = 'judge'",  # noqa: S608 - the same
    Kind.DATASET: f"SELECT DISTINCT dataset FROM {_rows('example')}",  # noqa: S608 - the same
}
_FIRST_NAMES = {
    Kind.MODEL: "SELECT name FROM model UNION SELECT model FROM published_matrix",
    Kind.JUDGE: "SELECT name FROM rater WHERE kind = 'judge'",
    Kind.DATASET: "SELECT DISTINCT dataset FROM example",
}
_TWICE = {
    Kind.MODEL: (
        f"SELECT count(*) FROM {_rows('response')} JOIN {_rows('model')} ON model.id = response.model_id AND model.name = :was "  # noqa: S608 - the same
        f"WHERE EXISTS (SELECT 1 FROM {_rows('response', 'other')} JOIN {_rows('model', 'there')} ON there.id = other.model_id AND there.name = :now "
        "WHERE other.example_id = response.example_id AND other.dataset = response.dataset AND other.sample_index = response.sample_index)",
        f"SELECT count(*) FROM {_rows('published_matrix')} WHERE model = :was AND EXISTS (SELECT 1 FROM {_rows('published_matrix', 'there')} "  # noqa: S608 - the same
        "WHERE there.model = :now AND there.format = published_matrix.format AND there.gold = published_matrix.gold)",
    ),
    Kind.JUDGE: (
        f"SELECT count(*) FROM {_rows('verdict')} JOIN {_rows('rater')} ON rater.id = verdict.rater_id AND rater.kind = 'judge' AND rater.name = :was "  # noqa: S608 - the same
        f"WHERE EXISTS (SELECT 1 FROM {_rows('verdict', 'other')} JOIN {_rows('rater', 'there')} ON there.id = other.rater_id "
        "AND there.kind = 'judge' AND there.name = :now AND there.prompt_version = rater.prompt_version WHERE other.example_id = verdict.example_id "
        "AND coalesce(other.response_id, 0) = coalesce(verdict.response_id, 0) AND coalesce(other.criterion_id, 0) = coalesce(verdict.criterion_id, 0))",
    ),
    Kind.DATASET: (
        f"SELECT count(*) FROM {_rows('example')} WHERE dataset = :was AND prompt_id IN "  # noqa: S608 - the same
        f"(SELECT other.prompt_id FROM {_rows('example', 'other')} WHERE other.dataset = :now)",
    ),
}
_WORDS = {
    Kind.MODEL: ("response", "responses", "to the same example with the same sample index"),
    Kind.JUDGE: ("verdict", "verdicts", "on the same item by the same version of the prompt"),
    Kind.DATASET: ("example", "examples", "of the same name"),
}


def names(session: Session, kind: Kind) -> list[str]:
    """The names of today, also of what is withdrawn."""
    return sorted({row[0] for row in session.connection().exec_driver_sql(_NAMES[kind])})


def all_names(session: Session) -> dict[Kind, list[str]]:
    """The names of each kind."""
    return {kind: names(session, kind) for kind in Kind}


def changed(session: Session) -> pd.DataFrame:
    """What is called otherwise than it came: kind (model, judge, dataset), first_name, name; as codebook and manifest tell it."""
    told = sa.select(_OTHER.c.kind, _OTHER.c.was.label("first_name"), _OTHER.c.now.label("name"))
    found = frame(session, told.where(_OTHER.c.now.is_not(None), _OTHER.c.kind.in_(list(Kind))).order_by(_OTHER.c.id))
    return found.reset_index(drop=True)


def rename(engine: Engine, kind: Kind, was: str, name: str, *, merge: bool = False, actor: Viewer) -> None:
    """Call a model, judge or data set otherwise; `merge`: by the name of another one, which it is the same as. OverreadError: it cannot be called so."""
    name = name.strip()
    with act(engine, actor, policies.check_can_mend) as session:
        _check(session, kind, was, name, merge=merge)
        before = _numbers(session, kind, was)
        _call(session, kind.value, was, name)
        if kind is Kind.DATASET:
            for part in _evaluations(session, was):
                _call(session, "evaluation", part, name + part.removeprefix(was))
        if merge:
            connection, table = session.connection(), "model" if kind is Kind.MODEL else "rater"
            for key, number in before.items():
                if (as_id := _numbers(session, kind, name, besides=number).get(key)) is not None:
                    of_table = _SAME.c.table_name == table
                    connection.execute(sa.update(_SAME).where(of_table, _SAME.c.as_id == number).values(as_id=as_id))
                    connection.execute(sa.insert(_SAME).values(table_name=table, row_id=number, as_id=as_id))
        detail = {"kind": kind, "was": was, "name": name, MENDED: digest(session)}
        action, subject = NAMES_MERGED if merge else RENAMED, f"{kind.words} {was}"
        append_event(session, actor=actor.signature, action=action, subject=subject, detail=detail)


def take_back(engine: Engine, kind: Kind, first_name: str, *, actor: Viewer) -> None:
    """Give back what came by this name its name; what was merged stands by itself again. OverreadError: it has its name."""
    with act(engine, actor, policies.check_can_mend) as session:
        named = changed(session)
        of_kind = named.loc[named["kind"].eq(kind)].set_index("first_name")["name"]
        if first_name not in of_kind:
            known = ", ".join(of_kind.index) or "none, nothing was renamed"
            refuse(f"{kind.words}: expected a first name that was changed ({known}), got {first_name!r}")
        connection, parts = session.connection(), _OTHER.c.was.startswith(f"{first_name}_", autoescape=True)
        by_first_name = (_OTHER.c.kind == kind.value) & (_OTHER.c.was == first_name)
        if kind is Kind.DATASET:
            by_first_name |= (_OTHER.c.kind == "evaluation") & ((_OTHER.c.was == first_name) | parts)
        connection.execute(sa.update(_OTHER).where(by_first_name).values(now=None))
        if kind is not Kind.DATASET:
            rows = _MODEL if kind is Kind.MODEL else _RATER
            of_name = sa.select(rows.c.id).where(rows.c.name == first_name)
            of_name = of_name if kind is Kind.MODEL else of_name.where(rows.c.kind == "judge")
            if kind is Kind.JUDGE and (taken := _replaced(connection, of_name)):
                refuse(
                    f"{counted(taken, 'verdict')} of {first_name!r} was replaced since the merge, by what came under the name {of_kind[first_name]!r}. "
                    "Withdraw that import, then undo."
                )
            for number in connection.execute(of_name).scalars().all():
                of_table = _SAME.c.table_name == rows.name
                same = sa.select(_SAME.c.row_id).where(of_table, _SAME.c.as_id == number)
                others = sorted(connection.execute(same).scalars())
                of_row = (_SAME.c.row_id == number) | (_SAME.c.as_id == number)
                connection.execute(sa.delete(_SAME).where(of_table, of_row))
                for other in others[1:]:  # which are one with one another
                    connection.execute(sa.insert(_SAME).values(table_name=rows.name, row_id=other, as_id=others[0]))
        detail = {"kind": kind, "was": of_kind[first_name], "name": first_name, MENDED: digest(session)}
        subject = f"{kind.words} {of_kind[first_name]}"
        append_event(session, actor=actor.signature, action=RENAMED, subject=subject, detail=detail)


def _replaced(connection: sa.Connection, raters: sa.Select[int]) -> int:
    """How many verdicts of some raters others have taken the place of, as only those can who were one with them then."""
    before, after, hidden = STORED["verdict"].alias("earlier"), STORED["verdict"].alias("later"), STORED[HIDDEN].c
    gone = sa.exists().where(hidden.table_name == "verdict", hidden.row_id == after.c.id)
    other = (after.c.supersedes == before.c.id) & (after.c.rater_id != before.c.rater_id)
    statement = sa.select(sa.func.count()).select_from(before.join(after, other))
    return int(connection.execute(statement.where(before.c.rater_id.in_(raters), ~gone)).scalar_one())


def _check(session: Session, kind: Kind, was: str, name: str, *, merge: bool) -> None:
    known, connection = names(session, kind), session.connection()
    if was not in known:
        refuse(f"{kind.words}: expected one of {', '.join(known) or 'none, there is none yet'}, got {was!r}")
    if was in _FIXED[kind] or name in _FIXED[kind]:
        msg = f"{kind.words}: {', '.join(_FIXED[kind])} has a meaning in Overread, so it keeps its name and nothing else gets it"
        raise OverreadError(msg)
    if not name or len(name) > MAX_NAME or not name.isprintable() or not is_storable(name):
        refuse(f"name: expected 1 to {MAX_NAME} printable characters, got {name[:MAX_NAME]!r}")
    if name == was:
        refuse(f"name: expected another name than {was!r}")
    if (name in known) is not merge:
        refuse(
            f"No {kind.words} is called {name!r}, so there is nothing to merge with. Give {was!r} that name without merging."
            if merge
            else f"A {kind.words} is called {name!r} already. If both are the same, merge them."
        )
    now = connection.execute(sa.select(_OTHER.c.now).where(_OTHER.c.kind == kind.value, _OTHER.c.was == name)).scalar()
    came = connection.exec_driver_sql(_FIRST_NAMES[kind]).scalars()
    if not merge and now not in (None, was) and name in set(came):
        msg = f"name: what came as {name!r} is called {now!r} now, and a file may still call it {name!r}. Choose another name for {was!r}."
        raise OverreadError(msg)
    of_both = {"was": was, "now": name}
    if merge and (twice := sum(connection.execute(sa.text(each), of_both).scalar_one() for each in _TWICE[kind])):
        one, many, alike = _WORDS[kind]
        refuse(
            f"{counted(twice, one, many)} of {was!r} cannot be told from {'one' if twice == 1 else 'those'} of {name!r}: {alike}. Overread does not "
            f"choose between them. Withdraw the import of one, then merge."
        )


def _numbers(session: Session, kind: Kind, name: str, besides: int = 0) -> dict[str, int]:
    statements = {
        Kind.MODEL: f"SELECT '', id FROM {_rows('model')} WHERE name = :name AND id <> :besides",  # noqa: S608 - our own words
        Kind.JUDGE: f"SELECT prompt_version, id FROM {_rows('rater')} WHERE kind = 'judge' AND name = :name AND id <> :besides",  # noqa: S608 - the same
    }
    if kind not in statements:
        return {}
    rows = session.connection().execute(sa.text(statements[kind]), {"name": name, "besides": besides})
    return {row[0]: int(row[1]) for row in rows}


def _call(session: Session, kind: str, was: str, name: str) -> None:
    connection, of_kind = session.connection(), _OTHER.c.kind == kind
    back = sa.update(_OTHER).where(of_kind, _OTHER.c.was == name)  # a first name that it gets again
    connection.execute(back.values(now=None))
    connection.execute(sa.update(_OTHER).where(of_kind, _OTHER.c.now == was).values(now=name))
    connection.execute(sa.update(_OTHER).where(of_kind, _OTHER.c.was == name).values(now=None))
    changed = connection.execute(sa.update(_OTHER).where(of_kind, _OTHER.c.was == was).values(now=name)).rowcount
    if not changed:
        connection.execute(sa.insert(_OTHER).values(kind=kind, was=was, now=name))


def _evaluations(session: Session, dataset: str) -> list[str]:
    """The names of today under which responses to examples of a data set are kept: its own, and with a part."""
    found = session.connection().exec_driver_sql(f"SELECT DISTINCT dataset FROM {_rows('response')}")  # noqa: S608 - our own words
    return sorted(row[0] for row in found if row[0] == dataset or row[0].startswith(f"{dataset}_"))

"""What an import needs to know of the study. The statements are made once: that takes longer than running one on a small file."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import BindParameter, RowMapping, and_, bindparam, func, or_, select, tuple_
from sqlmodel import Session

from evalcore.study import store
from evalcore.study.schema import CASES, Stage
from evalcore.study.tables import STORED, TABLES, AnySelect, ImportUnderWay, UnfinishedImport, alias, now

LOST = timedelta(minutes=2)
"""An import that has not said for so long how far it is has died, or writes its last part."""
_CHUNK = 500  # bound variables in one statement
_WANTED: BindParameter[Any] = bindparam("wanted", expanding=True)
_EXAMPLE, _CASE, _RESPONSE, _VERDICT = (TABLES[name] for name in ("example", "acuity_case", "response", "verdict"))


def rows(session: Session, statement: AnySelect, wanted: Collection[Any], **bound: Any) -> list[RowMapping]:
    """The rows of a statement of this module for what is wanted, a part at a time."""
    return [row for found in _found(session, statement, wanted, bound) for row in found.mappings().all()]


def tuples(session: Session, statement: AnySelect, wanted: Collection[Any], **bound: Any) -> list[tuple[Any, ...]]:
    """Likewise the values in the order of the statement's columns: of rows by the thousand, asking for them by name takes as long as the rest."""
    return [row for found in _found(session, statement, wanted, bound) for row in found.all()]


def _found(session: Session, statement: AnySelect, wanted: Collection[Any], bound: Mapping[str, Any]) -> Iterator[Any]:
    ordered = list(wanted)
    for start in range(0, len(ordered), _CHUNK):
        yield session.connection().execute(statement, {"wanted": ordered[start : start + _CHUNK], **bound})


def _rows_of(table: str, column: str, *order: str) -> AnySelect:
    return select(TABLES[table]).where(TABLES[table].c[column].in_(_WANTED)).order_by(*order)


_NEWER = alias("verdict", "newer")
_IS_STANDING = ~select(_NEWER.c.id).where(_NEWER.c.supersedes == _VERDICT.c.id).exists()
EXAMPLES = _rows_of("example", "prompt_id").where(_EXAMPLE.c.dataset == bindparam("dataset"))
_CRITERION = TABLES["criterion"].c
CRITERIA = (
    select(*(_CRITERION[name] for name in ("example_id", "text", "points", "tags", "position", "id")))
    .where(_CRITERION.example_id.in_(_WANTED))
    .order_by("example_id", "position")
)
CRITERION_TEXTS = select(_CRITERION.id, _CRITERION.text).where(_CRITERION.id.in_(_WANTED))
SUBSETS = _rows_of("example_subset", "example_id")
VOTES = _rows_of("panel_vote", "example_id", "example_id", "place")
_MODEL = TABLES["model"].c.name
RESPONSES = (
    select(
        *(_RESPONSE.c[name] for name in ("example_id", "id", "dataset", "sample_index", "text", "completion_id")),
        _MODEL.label("model"),
    )
    .join(TABLES["model"])
    .where(_RESPONSE.c.example_id.in_(_WANTED))
    .order_by(_RESPONSE.c.sample_index)
)
RESPONSES_OF = RESPONSES.where(_MODEL.in_(bindparam("models", expanding=True)))
STANDING = _rows_of("verdict", "response_id").where(_IS_STANDING)
MATRICES = _rows_of("published_matrix", "model")
_MODELS = select(STORED["model"]).where(STORED["model"].c.name.in_(_WANTED)).order_by("name")
_IMPORTED = _rows_of("imported_file", "content_hash")
CASES_NAMED = (
    select(
        *(_EXAMPLE.c[name] for name in ("id", "prompt_id", "messages")), *(c for c in _CASE.c if c.name != "example_id")
    )
    .outerjoin(_CASE, _CASE.c.example_id == _EXAMPLE.c.id)
    .where(_EXAMPLE.c.dataset == CASES, _EXAMPLE.c.prompt_id.in_(_WANTED))
)
"""Cases of triage by their names: the columns of `acuity_case` (source is None where the example is no case), with prompt_id and messages."""
_PLACE = tuple(_RESPONSE.c[name] for name in ("example_id", "model_id", "dataset", "sample_index"))
SAMPLES = select(_RESPONSE.c.id, _RESPONSE.c.text, *_PLACE).where(tuple_(*_PLACE).in_(_WANTED))
"""Responses by (example_id, model_id, dataset, sample_index): these columns, with id and text."""
_OF_LEVEL = ("id", "response_id", "rater_id", "label", "confidence", "explanation", "created_at")
LEVELS = select(*(_VERDICT.c[name] for name in _OF_LEVEL)).where(
    _VERDICT.c.response_id.in_(_WANTED),
    _VERDICT.c.criterion_id.is_(None),
    _VERDICT.c.stage == Stage.JUDGE.value,
    _IS_STANDING,
)
_ITEM = tuple_(_VERDICT.c.example_id, func.coalesce(_VERDICT.c.response_id, 0))
ACUITY = select(_VERDICT).where(_ITEM.in_(_WANTED), _VERDICT.c.criterion_id.is_(None), _IS_STANDING)
"""The standing verdicts of acuity on (example; response to it, or 0 for the case itself), of every rater and stage; those taken back too."""


def model_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """Row numbers of models by the name that they have now, or had; of hidden ones too."""
    stored = {name: store.first_name(session, "model", name) for name in names}
    found = {row["name"]: row["id"] for row in rows(session, _MODELS, set(stored.values()))}
    return {name: found[first] for name, first in stored.items() if first in found}


def new_names(session: Session) -> dict[tuple[str, str], str]:
    """What is called otherwise now: by kind (model, judge, dataset, evaluation) and the name that it had."""
    table = STORED["other_name"].c
    statement = select(table.kind, table.was, table.now).where(table.now.is_not(None))
    return {(row.kind, row.was): row.now for row in session.connection().execute(statement)}


def withdrawn_import(session: Session, *, key: str, source_hash: str) -> RowMapping | None:
    """The import of this content with this meaning, where it was withdrawn; of an older import the content alone is known."""
    imports, table = STORED["file_import"], STORED["file_import"].c
    same = or_(table.key == key, and_(table.source_hash == source_hash, ~table.keeps_rows))
    return session.connection().execute(select(imports).where(same, table.withdrawn_at.is_not(None))).mappings().first()


def examples_by(session: Session, column: str, wanted: Collection[str]) -> list[RowMapping]:
    """Examples of every data set by `prompt_id` or by `messages`, oldest first: id, dataset, prompt_id, messages, provisional, and whether one is a case."""
    named = (_EXAMPLE.c[name] for name in ("id", "dataset", "prompt_id", "messages", "provisional"))
    joined = _EXAMPLE.outerjoin(_CASE, _CASE.c.example_id == _EXAMPLE.c.id)
    is_case = _CASE.c.example_id.is_not(None).label("is_case")
    statement = select(*named, is_case).select_from(joined).where(_EXAMPLE.c[column].in_(_WANTED))
    return sorted(rows(session, statement, wanted), key=lambda row: int(row["id"]))


def conversations(session: Session, dataset: str) -> Iterator[tuple[str, str]]:
    """The conversation and the prompt_id of every example of a data set, the oldest last."""
    statement = select(_EXAMPLE.c.messages, _EXAMPLE.c.prompt_id).where(_EXAMPLE.c.dataset == dataset)
    found = session.connection().execute(statement.order_by(_EXAMPLE.c.id.desc()), execution_options={"yield_per": 500})
    return (tuple(row) for row in found)


def last_response(session: Session) -> int:
    """The largest number of a response; 0 where there is none."""
    return int(session.connection().execute(select(func.coalesce(func.max(_RESPONSE.c.id), 0))).scalar_one())


def is_imported(session: Session, content_hash: str) -> bool:
    """Whether the same content was imported with the same meaning."""
    return bool(rows(session, _IMPORTED, [content_hash]))


def unfinished_import(session: Session) -> UnfinishedImport | None:
    """The large import that is not in the study whole, if there is one."""
    row = session.connection().execute(select(TABLES["unfinished_import"])).first()
    return None if row is None else UnfinishedImport(**row._asdict())


def import_under_way(session: Session) -> ImportUnderWay | None:
    """The import that somebody is at; None where there is none, or it is lost."""
    table = TABLES["import_under_way"]
    row = session.connection().execute(select(table).where(table.c.seen_at > now() - LOST)).first()
    return None if row is None else ImportUnderWay(**row._asdict())


def mappings(session: Session) -> dict[str, str]:
    """The YAML of each mapping of columns that the study keeps, by its name."""
    rows = TABLES["column_mapping"].c
    found = session.connection().execute(select(rows.name, rows.text).order_by(rows.name))
    return {row.name: row.text for row in found}

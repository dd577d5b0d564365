"""What an import needs to know of the study: which rows it already holds."""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, RowMapping, Select, bindparam, func, select
from sqlmodel import Session, SQLModel, col

from evalcore.tables import Criterion, Example, ExampleSubset, ImportedFile, Model, Verdict

_CHUNK = 500  # bound variables in one statement
_WANTED: BindParameter[Any] = bindparam("wanted", expanding=True)


def _in_chunks(session: Session, statement: Select[Any], wanted: Collection[Any], **bound: Any) -> list[RowMapping]:
    ordered = list(wanted)
    rows: list[RowMapping] = []
    for start in range(0, len(ordered), _CHUNK):
        part = {"wanted": ordered[start : start + _CHUNK], **bound}
        rows.extend(session.connection().execute(statement, part).mappings())
    return rows


@cache
def _rows_of(table: type[SQLModel], column: str) -> Select[Any]:
    """Rows whose column is one of those wanted. Kept: making a statement takes longer than running it on a small file."""
    found = SQLModel.metadata.tables[str(table.__tablename__)]
    return select(found).where(found.c[column].in_(_WANTED))


def examples_named(session: Session, dataset: str, prompt_ids: Collection[str]) -> list[RowMapping]:
    """Rows of `example` by data set and prompt_id."""
    return _in_chunks(session, _examples_of_dataset(), prompt_ids, dataset=dataset)


@cache
def _examples_of_dataset() -> Select[Any]:
    return _rows_of(Example, "prompt_id").where(col(Example.dataset) == bindparam("dataset"))


def criteria_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `criterion`, in the order of the rubric."""
    return _in_chunks(session, _rubrics(), example_ids)


@cache
def _rubrics() -> Select[Any]:
    return _rows_of(Criterion, "example_id").order_by("example_id", "position")


def subsets_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `example_subset`."""
    return _in_chunks(session, _rows_of(ExampleSubset, "example_id"), example_ids)


def responses_to(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `response` with the model's name, by sample index."""
    return _in_chunks(session, _responses(), example_ids)


@cache
def _responses() -> Select[Any]:
    responses, models = SQLModel.metadata.tables["response"], SQLModel.metadata.tables["model"]
    named = select(responses, models.c.name.label("model")).join(models)
    return named.where(responses.c.example_id.in_(_WANTED)).order_by(responses.c.sample_index)


def newest_verdicts(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The verdicts on some responses that nothing has superseded."""
    return _in_chunks(session, _standing(), response_ids)


@cache
def _standing() -> Select[Any]:
    newer = SQLModel.metadata.tables["verdict"].alias("newer")
    replaced = select(newer.c.id).where(newer.c.supersedes == col(Verdict.id)).exists()
    return _rows_of(Verdict, "response_id").where(~replaced)


def model_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """Row numbers of models by name."""
    return {row["name"]: row["id"] for row in _in_chunks(session, _rows_of(Model, "name"), names)}


def imported_before(session: Session, content_hash: str) -> RowMapping | None:
    """The earlier import of the same content with the same meaning."""
    rows = _in_chunks(session, _rows_of(ImportedFile, "content_hash"), [content_hash])
    return rows[0] if rows else None


def has_examples(session: Session) -> bool:
    """Whether the study holds anything to read."""
    return bool(session.connection().execute(select(func.count()).select_from(Example)).scalar())

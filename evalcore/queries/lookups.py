"""What an import needs to know of the study: which rows it already holds."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import RowMapping, Select, func, select
from sqlmodel import Session, SQLModel, col

from evalcore.tables import Criterion, Example, ExampleSubset, ImportedFile, Model, Response, Verdict

_CHUNK = 500  # bound variables in one statement


def _in_chunks(session: Session, statement: Select[Any], column: Any, values: Collection[Any]) -> list[RowMapping]:
    ordered = list(values)
    rows: list[RowMapping] = []
    for start in range(0, len(ordered), _CHUNK):
        part = statement.where(column.in_(ordered[start : start + _CHUNK]))
        rows.extend(session.connection().execute(part).mappings())
    return rows


def _columns(table: type[SQLModel]) -> Select[Any]:
    return select(SQLModel.metadata.tables[str(table.__tablename__)])


def examples_named(session: Session, dataset: str, prompt_ids: Collection[str]) -> list[RowMapping]:
    """Rows of `example` by data set and prompt_id."""
    return _in_chunks(session, _columns(Example).where(col(Example.dataset) == dataset), Example.prompt_id, prompt_ids)


def criteria_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `criterion`, in the order of the rubric."""
    return _in_chunks(
        session, _columns(Criterion).order_by("example_id", "position"), Criterion.example_id, example_ids
    )


def subsets_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `example_subset`."""
    return _in_chunks(session, _columns(ExampleSubset), ExampleSubset.example_id, example_ids)


def responses_to(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `response` with the model's name, by sample index."""
    responses, models = SQLModel.metadata.tables["response"], SQLModel.metadata.tables["model"]
    statement = select(responses, models.c.name.label("model")).join(models).order_by(responses.c.sample_index)
    return _in_chunks(session, statement, Response.example_id, example_ids)


def newest_verdicts(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The verdicts on some responses that nothing has superseded."""
    newer = SQLModel.metadata.tables["verdict"].alias("newer")
    replaced = select(newer.c.id).where(newer.c.supersedes == col(Verdict.id)).exists()
    return _in_chunks(session, _columns(Verdict).where(~replaced), Verdict.response_id, response_ids)


def model_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """Row numbers of models by name."""
    rows = _in_chunks(session, _columns(Model), Model.name, names)
    return {row["name"]: row["id"] for row in rows}


def imported_before(session: Session, content_hash: str) -> RowMapping | None:
    """The earlier import of the same content with the same meaning."""
    statement = _columns(ImportedFile).where(col(ImportedFile.content_hash) == content_hash)
    return session.connection().execute(statement).mappings().first()


def has_examples(session: Session) -> bool:
    """Whether the study holds anything to read."""
    return bool(session.connection().execute(select(func.count()).select_from(Example)).scalar())

"""What an import needs to know of the study: which rows it already holds."""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, RowMapping, Select, bindparam, func, select, tuple_
from sqlmodel import Session, SQLModel, col

from evalcore.study.schema import CASES, Stage, Unfinished
from evalcore.study.tables import TABLES, Criterion, Example, ExampleSubset, ImportedFile, Model, Verdict

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
    found = TABLES[str(table.__tablename__)]
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
    responses, models = TABLES["response"], TABLES["model"]
    named = select(responses, models.c.name.label("model")).join(models)
    return named.where(responses.c.example_id.in_(_WANTED)).order_by(responses.c.sample_index)


def newest_verdicts(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The verdicts on some responses that nothing has superseded."""
    return _in_chunks(session, _standing(), response_ids)


@cache
def _standing() -> Select[Any]:
    newer = TABLES["verdict"].alias("newer")
    replaced = select(newer.c.id).where(newer.c.supersedes == col(Verdict.id)).exists()
    return _rows_of(Verdict, "response_id").where(~replaced)


def model_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """Row numbers of models by name."""
    return {row["name"]: row["id"] for row in _in_chunks(session, _rows_of(Model, "name"), names)}


def cases_named(session: Session, case_ids: Collection[str]) -> list[RowMapping]:
    """Cases of triage by their names: the columns of `acuity_case` (source is None where the example is no case), with prompt_id and messages."""
    return _in_chunks(session, _cases(), case_ids)


@cache
def _cases() -> Select[Any]:
    example, known = TABLES["example"], TABLES["acuity_case"]
    named = (example.c.id, example.c.prompt_id, example.c.messages, *(c for c in known.c if c.name != "example_id"))
    found = select(*named).outerjoin(known, known.c.example_id == example.c.id)
    return found.where(example.c.dataset == CASES, example.c.prompt_id.in_(_WANTED))


def examples_by(session: Session, column: str, wanted: Collection[str]) -> list[RowMapping]:
    """Examples of every data set by `prompt_id` or by `messages`, oldest first: id, dataset, prompt_id, messages, provisional, and whether one is a case."""
    return sorted(_in_chunks(session, _examples_by(column), wanted), key=lambda row: int(row["id"]))


@cache
def _examples_by(column: str) -> Select[Any]:
    example, case = TABLES["example"].c, TABLES["acuity_case"].c
    named = (example.id, example.dataset, example.prompt_id, example.messages, example.provisional)
    found = select(*named, case.example_id.is_not(None).label("is_case"))
    joined = found.join_from(
        TABLES["example"],
        TABLES["acuity_case"],
        case.example_id == example.id,
        isouter=True,
    )
    return joined.where(example[column].in_(_WANTED))


def votes_on(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `panel_vote`, by place."""
    return _in_chunks(session, _votes(), example_ids)


@cache
def _votes() -> Select[Any]:
    found = TABLES["panel_vote"]
    return select(found).where(found.c.example_id.in_(_WANTED)).order_by(found.c.example_id, found.c.place)


def samples_at(session: Session, places: Collection[tuple[int, int, str, int]]) -> list[RowMapping]:
    """Responses by (example_id, model_id, dataset, sample_index): these columns, with id and text."""
    return _in_chunks(session, _samples(), places)


@cache
def _samples() -> Select[Any]:
    found = TABLES["response"].c
    place = (found.example_id, found.model_id, found.dataset, found.sample_index)
    return select(found.id, found.text, *place).where(tuple_(*place).in_(_WANTED))


def levels_on(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The standing levels that judges gave to responses to cases: id, response_id, rater_id, label, confidence, explanation, created_at."""
    return _in_chunks(session, _levels(), response_ids)


@cache
def _levels() -> Select[Any]:
    found, newer = TABLES["verdict"], TABLES["verdict"].alias("newer")
    names = ("id", "response_id", "rater_id", "label", "confidence", "explanation", "created_at")
    replaced = select(newer.c.id).where(newer.c.supersedes == found.c.id).exists()
    of_responses = select(*(found.c[name] for name in names)).where(found.c.response_id.in_(_WANTED), ~replaced)
    return of_responses.where(found.c.criterion_id.is_(None), found.c.stage == Stage.JUDGE.value)


def said_of_acuity(session: Session, items: Collection[tuple[int, int | None]]) -> list[RowMapping]:
    """The standing verdicts of acuity on some items, of every rater and stage; those taken back too.

    Args:
        items: Example, and response to it or None for the case itself.
    """
    return _in_chunks(session, _of_acuity(), [(example_id, response_id or 0) for example_id, response_id in items])


@cache
def _of_acuity() -> Select[Any]:
    found, newer = TABLES["verdict"], TABLES["verdict"].alias("newer")
    replaced = select(newer.c.id).where(newer.c.supersedes == found.c.id).exists()
    item = tuple_(found.c.example_id, func.coalesce(found.c.response_id, 0))
    return select(found).where(item.in_(_WANTED), found.c.criterion_id.is_(None), ~replaced)


def last_response(session: Session) -> int:
    """The largest number of a response; 0 where there is none."""
    found = select(func.coalesce(func.max(TABLES["response"].c.id), 0))
    return int(session.connection().execute(found).scalar_one())


def matrices_of(session: Session, models: Collection[str]) -> list[RowMapping]:
    """Rows of `published_matrix` by model."""
    found = TABLES["published_matrix"]
    return _in_chunks(session, select(found).where(found.c.model.in_(_WANTED)), models)


def imported_before(session: Session, content_hash: str) -> RowMapping | None:
    """The earlier import of the same content with the same meaning."""
    rows = _in_chunks(session, _rows_of(ImportedFile, "content_hash"), [content_hash])
    return rows[0] if rows else None


def unfinished_import(session: Session) -> Unfinished | None:
    """The large import that is not in the study whole, if there is one."""
    table = TABLES["unfinished_import"]
    row = session.connection().execute(select(*(table.c[name] for name in Unfinished.__struct_fields__))).first()
    return None if row is None else Unfinished(*row)


def has_examples(session: Session) -> bool:
    """Whether the study holds anything to read."""
    return bool(session.connection().execute(select(func.count()).select_from(Example)).scalar())

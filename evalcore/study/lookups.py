"""What an import needs to know of the study: which rows it already holds.

The statements are made once: that takes longer than running one on a small file.
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, RowMapping, Select, bindparam, func, select, tuple_
from sqlmodel import Session

from evalcore.study.schema import CASES, Stage, Unfinished
from evalcore.study.tables import TABLES

_CHUNK = 500  # bound variables in one statement
_WANTED: BindParameter[Any] = bindparam("wanted", expanding=True)
_EXAMPLE, _CASE, _RESPONSE, _VERDICT = (TABLES[name] for name in ("example", "acuity_case", "response", "verdict"))


def _in_chunks(session: Session, statement: Select[Any], wanted: Collection[Any], **bound: Any) -> list[RowMapping]:
    ordered = list(wanted)
    rows: list[RowMapping] = []
    for start in range(0, len(ordered), _CHUNK):
        part = {"wanted": ordered[start : start + _CHUNK], **bound}
        rows.extend(session.connection().execute(statement, part).mappings())
    return rows


@cache
def _rows_of(table: str, column: str, *order: str) -> Select[Any]:
    return select(TABLES[table]).where(TABLES[table].c[column].in_(_WANTED)).order_by(*order)


_NEWER = TABLES["verdict"].alias("newer")
_IS_STANDING = ~select(_NEWER.c.id).where(_NEWER.c.supersedes == _VERDICT.c.id).exists()
_OF_DATASET = _rows_of("example", "prompt_id").where(_EXAMPLE.c.dataset == bindparam("dataset"))
_ANSWERS = (
    select(_RESPONSE, TABLES["model"].c.name.label("model"))
    .join(TABLES["model"])
    .where(_RESPONSE.c.example_id.in_(_WANTED))
    .order_by(_RESPONSE.c.sample_index)
)
_STANDING = _rows_of("verdict", "response_id").where(_IS_STANDING)
_CASES = (
    select(
        *(_EXAMPLE.c[name] for name in ("id", "prompt_id", "messages")), *(c for c in _CASE.c if c.name != "example_id")
    )
    .outerjoin(_CASE, _CASE.c.example_id == _EXAMPLE.c.id)
    .where(_EXAMPLE.c.dataset == CASES, _EXAMPLE.c.prompt_id.in_(_WANTED))
)
_PLACE = tuple(_RESPONSE.c[name] for name in ("example_id", "model_id", "dataset", "sample_index"))
_AT_PLACES = select(_RESPONSE.c.id, _RESPONSE.c.text, *_PLACE).where(tuple_(*_PLACE).in_(_WANTED))
_LEVELS = select(
    *(
        _VERDICT.c[name]
        for name in ("id", "response_id", "rater_id", "label", "confidence", "explanation", "created_at")
    )
).where(
    _VERDICT.c.response_id.in_(_WANTED),
    _VERDICT.c.criterion_id.is_(None),
    _VERDICT.c.stage == Stage.JUDGE.value,
    _IS_STANDING,
)
_ITEM = tuple_(_VERDICT.c.example_id, func.coalesce(_VERDICT.c.response_id, 0))
_OF_ACUITY = select(_VERDICT).where(_ITEM.in_(_WANTED), _VERDICT.c.criterion_id.is_(None), _IS_STANDING)


def examples_named(session: Session, dataset: str, prompt_ids: Collection[str]) -> list[RowMapping]:
    """Rows of `example` by data set and prompt_id."""
    return _in_chunks(session, _OF_DATASET, prompt_ids, dataset=dataset)


def criteria_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `criterion`, in the order of the rubric."""
    return _in_chunks(session, _rows_of("criterion", "example_id", "example_id", "position"), example_ids)


def subsets_of(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `example_subset`."""
    return _in_chunks(session, _rows_of("example_subset", "example_id"), example_ids)


def responses_to(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `response` with the model's name, by sample index."""
    return _in_chunks(session, _ANSWERS, example_ids)


def newest_verdicts(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The verdicts on some responses that nothing has superseded."""
    return _in_chunks(session, _STANDING, response_ids)


def model_ids(session: Session, names: Collection[str]) -> dict[str, int]:
    """Row numbers of models by name."""
    return {row["name"]: row["id"] for row in _in_chunks(session, _rows_of("model", "name"), names)}


def cases_named(session: Session, case_ids: Collection[str]) -> list[RowMapping]:
    """Cases of triage by their names: the columns of `acuity_case` (source is None where the example is no case), with prompt_id and messages."""
    return _in_chunks(session, _CASES, case_ids)


def examples_by(session: Session, column: str, wanted: Collection[str]) -> list[RowMapping]:
    """Examples of every data set by `prompt_id` or by `messages`, oldest first: id, dataset, prompt_id, messages, provisional, and whether one is a case."""
    return sorted(_in_chunks(session, _examples_by(column), wanted), key=lambda row: int(row["id"]))


@cache
def _examples_by(column: str) -> Select[Any]:
    named = (_EXAMPLE.c[name] for name in ("id", "dataset", "prompt_id", "messages", "provisional"))
    joined = _EXAMPLE.outerjoin(_CASE, _CASE.c.example_id == _EXAMPLE.c.id)
    is_case = _CASE.c.example_id.is_not(None).label("is_case")
    return select(*named, is_case).select_from(joined).where(_EXAMPLE.c[column].in_(_WANTED))


def votes_on(session: Session, example_ids: Collection[int]) -> list[RowMapping]:
    """Rows of `panel_vote`, by place."""
    return _in_chunks(session, _rows_of("panel_vote", "example_id", "example_id", "place"), example_ids)


def samples_at(session: Session, places: Collection[tuple[int, int, str, int]]) -> list[RowMapping]:
    """Responses by (example_id, model_id, dataset, sample_index): these columns, with id and text."""
    return _in_chunks(session, _AT_PLACES, places)


def levels_on(session: Session, response_ids: Collection[int]) -> list[RowMapping]:
    """The standing levels that judges gave to responses to cases: id, response_id, rater_id, label, confidence, explanation, created_at."""
    return _in_chunks(session, _LEVELS, response_ids)


def said_of_acuity(session: Session, items: Collection[tuple[int, int | None]]) -> list[RowMapping]:
    """The standing verdicts of acuity on some items, of every rater and stage; those taken back too.

    Args:
        items: Example, and response to it or None for the case itself.
    """
    return _in_chunks(session, _OF_ACUITY, [(example_id, response_id or 0) for example_id, response_id in items])


def last_response(session: Session) -> int:
    """The largest number of a response; 0 where there is none."""
    return int(session.connection().execute(select(func.coalesce(func.max(_RESPONSE.c.id), 0))).scalar_one())


def matrices_of(session: Session, models: Collection[str]) -> list[RowMapping]:
    """Rows of `published_matrix` by model."""
    return _in_chunks(session, _rows_of("published_matrix", "model"), models)


def imported_before(session: Session, content_hash: str) -> RowMapping | None:
    """The earlier import of the same content with the same meaning."""
    rows = _in_chunks(session, _rows_of("imported_file", "content_hash"), [content_hash])
    return rows[0] if rows else None


def unfinished_import(session: Session) -> Unfinished | None:
    """The large import that is not in the study whole, if there is one."""
    table = TABLES["unfinished_import"].c
    row = session.connection().execute(select(*(table[name] for name in Unfinished.__struct_fields__))).first()
    return None if row is None else Unfinished(*row)


def has_examples(session: Session) -> bool:
    """Whether the study holds anything to read."""
    return session.connection().execute(select(_EXAMPLE.c.id).limit(1)).first() is not None

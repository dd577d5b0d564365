"""Tables for the statistics, one row a verdict. Names are joined here: wide joins would make SQL send every name a million times."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import String, TextualSelect, and_, case, cast, func, literal_column, select
from sqlmodel import Session, col

from evalcore.study import tables
from evalcore.study.schema import BRINGING, IDLE, REPEAT, Ask, RaterKind, Source, Stage
from evalcore.study.tables import (
    TABLES,
    AnySelect,
    Assignment,
    Criterion,
    Example,
    Model,
    Rater,
    Reading,
    Response,
    Task,
    Verdict,
)

if TYPE_CHECKING:
    import pandas as pd

ITEM_BASE = 1 << 26
"""item_id = response_id * ITEM_BASE + criterion_id: one number an item, exact in a browser too."""
_PART = 10_000
_EVENT = TABLES["audit_event"].c
_RATER = TABLES["rater"].c
_VERDICT = TABLES["verdict"].c
_FILE = _VERDICT.source_hash.label("file_sha256")
_ORIGIN: list[Any] = [_VERDICT.not_blind, _VERDICT.source.label("came_by"), _FILE, _VERDICT.recorded_at]


def frame(session: Session, statement: AnySelect | TextualSelect, columns: list[str] | None = None) -> "pd.DataFrame":
    """The rows of a statement, made part by part: pandas tells the type of a column without letting other threads run, for a million rows a quarter second."""
    import pandas as pd  # noqa: PLC0415 - acts and many commands need no table

    result = session.connection().execute(statement)
    names = columns or list(result.keys())
    of_rows = partial(pd.DataFrame.from_records, columns=names)
    parts = [of_rows([tuple(row) for row in rows]) for rows in result.partitions(_PART)] or [of_rows([])]
    if len(parts) == 1:
        return parts[0]
    empty = [frozenset(part.columns[part.isna().all()]) for part in parts]
    always = frozenset.intersection(*empty)  # else a column takes the type that it has in other parts
    typed = [part.drop(columns=list(without - always)) for part, without in zip(parts, empty, strict=True)]
    return pd.concat(typed, ignore_index=True)[names]


def records(table: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows as Python's own values, None where there is none."""
    plain = table.astype(object).where(table.notna(), None).rename(columns=str)  # JSON takes no enum for a name
    return plain.to_dict(orient="records")  # type: ignore[return-value]


def plain_frame(session: Session, statement: AnySelect, kinds: Mapping[str, Any] | None = None) -> "pd.DataFrame":
    """As `frame`, of the driver's own rows: those of SQLAlchemy take as long again. Of these kinds, else whole numbers; no more than a part are objects."""
    import numpy as np  # noqa: PLC0415 - acts and many commands need no table
    import pandas as pd  # noqa: PLC0415 - likewise

    cursor = session.connection().execute(statement).cursor
    typed = {column.name: (kinds or {}).get(column.name, np.int64) for column in statement.selected_columns}
    parts = {name: [np.empty(0, kind)] for name, kind in typed.items()}
    while rows := cursor.fetchmany(_PART):
        for (name, kind), cells in zip(typed.items(), zip(*rows, strict=True), strict=True):
            parts[name].append(np.array(cells, dtype=kind))
    return pd.DataFrame({name: np.concatenate(of) for name, of in parts.items()})


def numbers(session: Session, statement: AnySelect, parameters: Mapping[str, Any] | None = None) -> frozenset[int]:
    """The whole numbers of a statement's one column. They come in one row: SQLite's driver waits its turn among the threads for each row."""
    listed = cast(statement.subquery().c[0], String)
    together = session.connection().execute(select(func.aggregate_strings(listed, ",")), parameters).scalar()
    return frozenset(map(int, together.split(","))) if together else frozenset()


def data_version(session: Session) -> int:
    """The number of acts that change anything, the key of cached reads; not the newest event's id, since PostgreSQL may commit out of order."""
    n_idle = _n_rows(session, "audit_event", _EVENT.action.in_(IDLE))  # the few are found by the index
    return trail_length(session) - n_idle


def trail_length(session: Session) -> int:
    """The number of audit events."""
    return _n_rows(session, "audit_event")


def n_waiting(session: Session) -> int:
    """Texts whose words and language are still to be taken up after an import (`store.index_texts`)."""
    return _n_rows(session, "search_pending")


def judged_version(session: Session) -> int:
    """The number of acts that bring judges' verdicts: the key of cached reads that only they change, so that a physician's click keeps them."""
    return _n_rows(session, "audit_event", _EVENT.action.in_(BRINGING))


def _n_rows(session: Session, table: str, *conditions: Any) -> int:
    counted = select(func.count()).select_from(TABLES[table]).where(*conditions)
    return int(session.connection().execute(counted).scalar_one())


def not_superseded(verdict: Any = None) -> Any:
    """The condition that nothing has replaced a verdict: of the table itself, or of an alias of it."""
    return (col(Verdict.id) if verdict is None else verdict.c.id).not_in(replaced())


def replaced() -> AnySelect:
    """Numbers of the verdicts that another one has replaced."""
    newer = tables.alias("verdict", "newer")
    return select(newer.c.supersedes).where(newer.c.supersedes.is_not(None))


def corrected_by(slip: Any) -> Any:
    """The condition that a verdict (columns of an alias) corrects a slip: nothing else that is given here takes the place of a first read."""
    return and_(slip.supersedes.is_not(None), slip.stage == Stage.FIRST, slip.source == Source.SESSION)


def slipped() -> AnySelect:
    """Answers of locked first reads that their reader corrected before the judge was shown: verdict_id (the later one), slipped_from."""
    slip, before = tables.alias("verdict", "slip"), tables.alias("verdict", "before")
    statement = select(slip.c.id.label("verdict_id"), before.c.label.label("slipped_from"))
    statement = statement.join(before, before.c.id == slip.c.supersedes).where(is_read(slip.c), corrected_by(slip.c))
    return statement.order_by(slip.c.id + 0)  # by the index of what replaces: no walk over all verdicts in order


def slips(session: Session) -> "pd.DataFrame":
    """All that is `slipped`, a row a slip."""
    return frame(session, slipped()).astype({"slipped_from": "str"})


def lengths(session: Session) -> "pd.Series":
    """The characters of every response whose text is known, by response_id, counted in the database."""
    response = TABLES["response"].c
    n_chars = func.length(response.text).label("n_chars")
    return frame(session, select(response.id, n_chars).where(response.text != "")).set_index("id")["n_chars"]


def is_read(verdict: Any) -> Any:
    """The condition that a verdict (columns, or a class of rows) is no judge's, as the index of reads says it: a bound word would not use it."""
    return verdict.stage != literal_column(f"'{Stage.JUDGE.value}'")


def is_judge() -> Any:
    """The condition that a row of `rater` is a judge that speaks for itself: its repeats never have its say."""
    return and_(_RATER.kind == RaterKind.JUDGE, _RATER.prompt_version.not_like(f"%{REPEAT}%"))


def repeats(session: Session) -> list[int]:
    """The numbers of the raters that are repeats of a judge: a walk over all verdicts leaves them out by number, and only where there are any."""
    statement = select(_RATER.id).where(_RATER.kind == RaterKind.JUDGE, _RATER.prompt_version.like(f"%{REPEAT}%"))
    return sorted(numbers(session, statement))


VERDICT_COLUMNS = (
    "id", "response_id", "criterion_id", "rater_id", "stage", "label", "confidence", "cause", "severity",
    "right_for_wrong_reason", "selection", "inclusion_probability", "blinded", "created_at", "reason", "error_kind", "conflict_cause",
    "guideline_version",
)  # fmt: skip


def verdicts(
    session: Session,
    *,
    kind: RaterKind | None = None,
    texts: bool = False,
    example_ids: Collection[int] | None = None,
    history: bool = False,
    every_prompt: bool = False,
    origin: bool = False,
) -> "pd.DataFrame":
    """The newest verdict of each rater on each criterion of each response and stage; those taken back are left out.

    Of a judge's several prompt versions the newest one's verdict on the item counts, and repeats do not.

    Args:
        history: All verdicts that were ever given, those taken back too (label None).
        every_prompt: Judges' verdicts by older prompts and their repeats as well.
        origin: With not_blind, came_by, file_sha256 and recorded_at.

    Returns:
        One row a verdict: `VERDICT_COLUMNS` (id as verdict_id; confidence in [0, 1], inclusion_probability in (0, 1]), item_id, and the columns of
        `raters`, `responses` (n_expected: criteria that a judge is asked on the response) and `criteria` (points NaN where unknown).
    """
    table = TABLES["verdict"]
    columns: list[Any] = [table.c[name] for name in (*VERDICT_COLUMNS, *(("explanation",) if texts else ()))]
    columns += _ORIGIN if origin else []
    statement = select(*columns).where(table.c.criterion_id.is_not(None))
    if not history:
        statement = statement.where(not_superseded(), table.c.label.is_not(None))
    if not every_prompt and (asked_again := repeats(session)):
        statement = statement.where(table.c.rater_id.not_in(asked_again))
    rows = frame(session, _in_order(statement, table.c, kind, example_ids)).rename(columns={"id": "verdict_id"})
    rows["item_id"] = rows["response_id"] * ITEM_BASE + rows["criterion_id"]
    rows = rows.merge(raters(session), on="rater_id", how="left")
    if not every_prompt:
        of_judges = rows.loc[rows["rater_kind"].eq(RaterKind.JUDGE), ["item_id", "rater", "rater_id"]]
        if of_judges.groupby("rater")["rater_id"].nunique().gt(1).any():
            older = of_judges.sort_values("rater_id", kind="stable").duplicated(["item_id", "rater"], keep="last")
            rows = rows.drop(index=older.index[older]).reset_index(drop=True)
    rows = rows.merge(responses(session, example_ids=example_ids), on="response_id", how="left")
    beside = criteria(session, example_ids=example_ids).drop(columns="example_id")
    return rows.merge(beside, on="criterion_id", how="left")


def _in_order(
    statement: AnySelect, verdict: Any, kind: RaterKind | None, example_ids: Collection[int] | None
) -> AnySelect:
    """Those of a kind and of some examples as they were given; reads by their index, without a walk over all verdicts in order: hence + 0."""
    if kind is not None:
        statement = statement.where(verdict.rater_id.in_(select(_RATER.id).where(_RATER.kind == kind)))
    if example_ids is not None:
        statement = statement.where(verdict.example_id.in_(list(example_ids)))
    if kind is RaterKind.REVIEWER:
        return statement.where(is_read(verdict)).order_by(verdict.id + 0)
    return statement.order_by(verdict.id)


def acuity_verdicts(
    session: Session, *, kind: RaterKind | None = None, example_ids: Collection[int] | None = None, origin: bool = False
) -> "pd.DataFrame":
    """The newest verdict of each rater on the acuity of each response or case, and stage; those taken back are left out, judges' repeats are not.

    Returns:
        One row a verdict as of `verdicts`, with asked (response_acuity or gold_acuity) and explanation, without what is of criteria; response_id, model,
        sample_index and evaluation are missing for a case.
    """
    table = TABLES["verdict"]
    names = [name for name in VERDICT_COLUMNS if name not in ("criterion_id", "id")]
    columns: list[Any] = [
        table.c.id.label("verdict_id"),
        *(table.c[name] for name in (*names, "explanation", "example_id")),
        case((table.c.response_id.is_(None), Ask.GOLD_ACUITY.value), else_=Ask.RESPONSE_ACUITY.value).label("asked"),
        col(Model.name).label("model"),
        col(Response.sample_index),
        col(Response.dataset).label("evaluation"),
        *(TABLES["example"].c[name] for name in ("dataset", "prompt_id", "theme", "language", "canary")),
        col(Rater.name).label("rater"),
        col(Rater.kind).label("rater_kind"),
        col(Rater.prompt_version),
        *(_ORIGIN if origin else ()),
    ]
    statement = (
        select(*columns)
        .join(Example, col(Example.id) == table.c.example_id)
        .join(Rater, col(Rater.id) == table.c.rater_id)
        .outerjoin(Response, col(Response.id) == table.c.response_id)
        .outerjoin(Model, col(Model.id) == col(Response.model_id))
        .where(table.c.criterion_id.is_(None), table.c.label.is_not(None), not_superseded())
    )
    rows = frame(session, _in_order(statement, table.c, kind, example_ids))
    rows["item_id"] = rows["example_id"] * ITEM_BASE + rows["response_id"].astype(float).fillna(0).astype(int)
    return rows


def knowing() -> AnySelect:
    """Numbers of physicians' verdicts from readings whose reader said that they know which model this is."""
    same_ask = col(Verdict.criterion_id).is_not(None) == (col(Assignment.ask) == Ask.RUBRIC)
    return (
        select(col(Verdict.id))
        .join(Rater, col(Rater.id) == col(Verdict.rater_id))
        .join(Reading, col(Reading.person_id) == col(Rater.person_id))
        .join(Task, col(Task.id) == col(Reading.task_id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(
            col(Reading.knows_model),
            col(Task.response_id) == col(Verdict.response_id),
            same_ask,
            is_read(Verdict),
            col(Verdict.source) == Source.SESSION,
            col(Verdict.stage) != Stage.ADJUDICATED,
        )
    )


def raters(session: Session) -> "pd.DataFrame":
    """One row a rater: rater_id, rater, rater_kind, prompt_version, person_id."""
    named = (_RATER.id.label("rater_id"), _RATER.name.label("rater"), _RATER.kind.label("rater_kind"))
    return frame(session, select(*named, _RATER.prompt_version, _RATER.person_id))


def criteria(session: Session, *, example_ids: Collection[int] | None = None) -> "pd.DataFrame":
    """One row per criterion: criterion_id, example_id, position, criterion, points, axis, level, cluster."""
    table = TABLES["criterion"].c
    further = (table[name] for name in ("points", "axis", "level", "cluster"))
    named = (table.id.label("criterion_id"), table.example_id, table.position, table.text.label("criterion"))
    statement = select(*named, *further)
    if example_ids is not None:
        statement = statement.where(table.example_id.in_(list(example_ids)))
    return frame(session, statement)


def responses(session: Session, *, example_ids: Collection[int] | None = None, texts: bool = False) -> "pd.DataFrame":
    """One row a response with its example's tags: response_id, example_id, evaluation, sample_index, model, dataset, ..., n_expected."""
    scored = (
        select(col(Criterion.example_id).label("example_id"), func.count(col(Criterion.points)).label("n_scored"))
        .group_by(col(Criterion.example_id))
        .subquery()
    )
    response, example = TABLES["response"].c, TABLES["example"].c
    chosen: list[Any] = [
        response.id.label("response_id"),
        response.example_id,
        response.dataset.label("evaluation"),
        response.sample_index,
        response.completion_id,
        col(Model.name).label("model"),
        *(example[name] for name in ("dataset", "prompt_id", "theme", "category", "language", "canary")),
        func.coalesce(response.n_criteria, scored.c.n_scored).label("n_expected"),
    ]
    if texts:
        chosen += [response.text.label("response"), example.messages]
    statement = (
        select(*chosen)
        .select_from(Response)
        .join(Model, response.model_id == col(Model.id))
        .join(Example, response.example_id == example.id)
        .join(scored, scored.c.example_id == response.example_id)
    )
    if example_ids is not None:
        statement = statement.where(response.example_id.in_(list(example_ids)))
    return frame(session, statement)

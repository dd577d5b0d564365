"""`Triaged` of the whole study: millions of samples in a second or two."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import String, and_, case, cast, func, select
from sqlmodel import Session, SQLModel, col

import evalcore.triage_tables  # noqa: F401 - fills the metadata
from evalcore.queries.frames import frame, not_superseded
from evalcore.schema import Ask, Format, Label, RaterKind, Stage
from evalcore.tables import Model, Rater, Verdict
from evalcore.triaged import CASE_COLUMNS, CONFIDENCE_COLUMNS, LEVELS, NO_LEVEL, READ_COLUMNS, VOTE_COLUMNS, Triaged

_CODES: dict[str, int] = {Label.CANNOT_ASSESS: 0} | {label: code for code, label in enumerate(LEVELS, start=1)}
_VALUES = np.array([NO_LEVEL, *LEVELS.values()], dtype=np.float32)
_VALUES[np.isnan(_VALUES)] = NO_LEVEL  # a judge that removes a case gives the response no level

_TEXT, _QA = 1, 2
"""Bits of what a response is."""

Numbers = npt.NDArray[np.int64]


def has_cases(session: Session) -> bool:
    """Whether the study holds any case of triage, or a published matrix."""
    names = ("acuity_case", "published_matrix")
    found = (select(SQLModel.metadata.tables[name]).limit(1) for name in names)
    return any(session.connection().execute(statement).first() for statement in found)


def load(session: Session) -> Triaged:
    """Every case, panel vote, response, level and read."""
    return with_reads(session, imported(session))


def imported(session: Session) -> Triaged:
    """All but physicians' reads: only an import, or a judge that reads levels, changes it."""
    cases = _cases(session)
    samples, names = _samples(session, cases["example_id"].to_numpy())
    votes = _votes(session, cases)
    levels, confidence = _levels(session, samples)
    samples["model"] = pd.Categorical.from_codes(samples["model"].to_numpy(dtype=np.int64), pd.Index(names))
    no_reads = pd.DataFrame(columns=list(READ_COLUMNS))
    return Triaged(cases, votes, samples, levels, confidence, no_reads, _published(session))


def with_reads(session: Session, triaged: Triaged) -> Triaged:
    """What `imported` gave, with physicians' reads. Cases and responses that came since are left out."""
    return replace(triaged, reads=_reads(session, triaged.cases, triaged.samples))


def _cases(session: Session) -> pd.DataFrame:
    known, example = (SQLModel.metadata.tables[name].c for name in ("acuity_case", "example"))
    statement = (
        select(
            known.example_id, example.prompt_id.label("case_id"), known.source, known.original_label, known.mapped_label,
            known.gold.label("file_gold"), known.method, known.is_edge_case, known.uncertainty, example.language, example.first_words,
        )
        .join(SQLModel.metadata.tables["example"], example.id == known.example_id)
        .order_by(known.example_id)
    )  # fmt: skip
    found = frame(session, statement)
    found["file_gold"] = found["file_gold"].map(LEVELS).astype(float)
    kinds: dict[str, Any] = {"source": "category", "method": "category", "uncertainty": float, "is_edge_case": bool}
    return found[list(CASE_COLUMNS)].astype(kinds)


def _votes(session: Session, cases: pd.DataFrame) -> pd.DataFrame:
    table = SQLModel.metadata.tables["panel_vote"].c
    statement = select(table.example_id, table.place, table.rater, table.vote)
    found = frame(session, statement.order_by(table.example_id, table.place))
    found["row"] = np.searchsorted(cases["example_id"].to_numpy(), found.pop("example_id").to_numpy(dtype=np.int64))
    found["vote"] = found["vote"].map(LEVELS).astype(float)
    return found[list(VOTE_COLUMNS)]


def _samples(session: Session, example_ids: Numbers) -> tuple[pd.DataFrame, list[str]]:
    """The responses by case, `model` as a place among the names, which come beside.

    The query gives one row a case, its responses as numbers joined by commas: a row a response takes five times as long.
    """
    connection = session.connection()
    response, case_ = (SQLModel.metadata.tables[name].c for name in ("response", "acuity_case"))
    models = connection.execute(select(col(Model.id), col(Model.name)).order_by(col(Model.id)))
    of_models = {int(row[0] or 0): str(row[1]) for row in models}
    n_repeats = 1 + (connection.execute(select(func.max(response.sample_index))).scalar_one() or 0)
    base = 1 + max(of_models, default=0)
    kind = case((response.dataset == Format.QA.evaluation, _QA), else_=0) + case((response.text != "", _TEXT), else_=0)
    number = ((response.id * base + response.model_id) * 4 + kind) * n_repeats + response.sample_index
    keys, numbers = _gathered(session, response.example_id, number, response.example_id.in_(select(case_.example_id)))
    numbers, repeat = np.divmod(numbers, n_repeats)
    numbers, kinds = np.divmod(numbers, 4)
    response_ids, model_ids = np.divmod(numbers, base)
    places = np.zeros(base, dtype=np.int64)
    places[list(of_models)] = np.arange(len(of_models))
    found = pd.DataFrame(
        {
            "response_id": response_ids,
            "row": np.searchsorted(example_ids, keys),
            "model": places[model_ids],
            "format": pd.Categorical(np.where(kinds >= _QA, Format.QA.value, Format.CONVERSATION.value), categories=list(Format)),
            "sample_index": repeat.astype(np.int32),
            "has_text": kinds % _QA == _TEXT,
        }
    )  # fmt: skip
    order = np.lexsort((response_ids, found["row"].to_numpy()))
    if not np.array_equal(order, np.arange(len(order))):
        found = found.iloc[order].reset_index(drop=True)
    return found, list(of_models.values())


def _gathered(session: Session, key: Any, number: Any, *conditions: Any) -> tuple[Numbers, Numbers]:
    """Numbers and the key of each, gathered by the key in the database."""
    statement = select(key, func.count(), func.aggregate_strings(cast(number, String), ",")).where(*conditions)
    rows = session.connection().execute(statement.group_by(key).order_by(key)).all()
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    numbers = np.fromstring(",".join(row[2] for row in rows), dtype=np.int64, sep=",")
    return np.repeat(np.array([row[0] for row in rows], dtype=np.int64), [row[1] for row in rows]), numbers


def _levels(session: Session, samples: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What each judge says of each sample, and the confidences that were stated."""
    table, case_ = (SQLModel.metadata.tables[name].c for name in ("verdict", "acuity_case"))
    connection = session.connection()
    raters = connection.execute(
        select(col(Rater.id), col(Rater.name)).where(col(Rater.kind) == RaterKind.JUDGE).order_by(col(Rater.id))
    ).all()
    base = 1 + max((int(row[0] or 0) for row in raters), default=0)
    code = case(*((table.label == label, code) for label, code in _CODES.items()))
    standing = (
        table.criterion_id.is_(None), table.response_id.is_not(None), table.stage == Stage.JUDGE, table.label.is_not(None),
        not_superseded(),
    )  # fmt: skip
    number = (table.response_id * base + table.rater_id) * len(_CODES) + code
    _, numbers = _gathered(session, table.example_id, number, *standing, table.example_id.in_(select(case_.example_id)))
    numbers, codes = np.divmod(numbers, len(_CODES))
    response_ids, rater_ids = np.divmod(numbers, base)
    place = _places(samples, response_ids)
    columns: dict[str, npt.NDArray[np.float32]] = {}
    for rater_id, name in raters:  # a newer prompt version of one judge writes over an older one
        mine = rater_ids == rater_id
        if mine.any():
            column = columns.setdefault(str(name), np.full(len(samples), np.nan, dtype=np.float32))
            column[place[mine]] = _VALUES[codes[mine]]
    stated = select(table.response_id, col(Rater.name).label("rater"), table.confidence).join(
        Rater, and_(col(Rater.id) == table.rater_id, col(Rater.kind) == RaterKind.JUDGE)
    )
    confidence = frame(session, stated.where(*standing, table.confidence.is_not(None)).order_by(col(Verdict.id)))
    response_ids = confidence.pop("response_id").to_numpy(dtype=np.int64)
    known = np.isin(response_ids, samples["response_id"].to_numpy())
    confidence = confidence.loc[known].assign(sample=_places(samples, response_ids[known]))
    confidence = confidence.drop_duplicates(["sample", "rater"], keep="last", ignore_index=True)
    kinds = {"confidence": float}
    return pd.DataFrame(columns, index=samples.index), confidence[list(CONFIDENCE_COLUMNS)].astype(kinds)


def _places(samples: pd.DataFrame, response_ids: Numbers) -> Numbers:
    """In which row each response stands."""
    numbers = samples["response_id"].to_numpy()
    order = np.argsort(numbers, kind="stable")
    return order[np.searchsorted(numbers, response_ids, sorter=order)]


def _reads(session: Session, cases: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """Physicians' standing verdicts on responses and on cases."""
    table = SQLModel.metadata.tables["verdict"].c
    named = ("example_id", "response_id", "label", "stage", "blinded", "selection", "inclusion_probability")
    statement = (
        select(*(table[name] for name in named), table.id.label("verdict_id"), col(Rater.name).label("rater"))
        .join(Rater, and_(col(Rater.id) == table.rater_id, col(Rater.kind) == RaterKind.REVIEWER))
        .where(table.criterion_id.is_(None), table.label.is_not(None), not_superseded(), table.stage != Stage.JUDGE)
        .order_by(table.id)
    )
    found = frame(session, statement)
    response_ids = np.asarray(found["response_id"].astype(float).fillna(-1), dtype=np.int64)
    found["row"] = pd.Index(cases["example_id"]).get_indexer(np.asarray(found["example_id"], dtype=np.int64))
    found["sample"] = pd.Index(samples["response_id"]).get_indexer(response_ids)
    found["asked"] = np.where(response_ids < 0, Ask.GOLD_ACUITY.value, Ask.RESPONSE_ACUITY.value)
    found = found.loc[found["row"].ge(0) & (found["sample"].ge(0) | (response_ids < 0))].reset_index(drop=True)
    kinds = {"inclusion_probability": float, "blinded": object, "selection": object, "rater": object}
    return found[list(READ_COLUMNS)].astype(kinds)


def _published(session: Session) -> pd.DataFrame:
    table = SQLModel.metadata.tables["published_matrix"].c
    statement = select(
        table.model, table.format, table.gold, *(table[level].label(level.upper()) for level in "abcd")
    ).order_by(table.id)
    found = frame(session, statement)
    return found.assign(gold=found["gold"].map(LEVELS).astype(float))

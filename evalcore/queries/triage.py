"""`Triaged` of the whole study: millions of samples in a second or two."""

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import BigInteger, String, and_, case, cast, func, select
from sqlmodel import Session, SQLModel, col

import evalcore.triage_tables  # noqa: F401 - fills the metadata
from evalcore.db import Engine, reading
from evalcore.opinions import DRAWN
from evalcore.queries import drawings
from evalcore.queries.frames import frame, not_superseded
from evalcore.schema import Ask, Format, Label, RaterKind, Selection, Stage
from evalcore.tables import Model, Rater
from evalcore.triaged import CASE_COLUMNS, CONFIDENCE_COLUMNS, LEVELS, NO_LEVEL, READ_COLUMNS, VOTE_COLUMNS, Triaged

_CODES: dict[str, int] = {Label.CANNOT_ASSESS: 0} | {label: code for code, label in enumerate(LEVELS, start=1)}
_VALUES = np.array([NO_LEVEL, *LEVELS.values()], dtype=np.float32)
_VALUES[np.isnan(_VALUES)] = NO_LEVEL  # a judge that removes a case gives the response no level

_FORMATS = pd.CategoricalDtype([word.value for word in Format])
_TOGETHER = 1 << 17
"""Rows whose numbers come in one: some megabytes."""
_SCAN_GAIN = 5
"""A row by a walk over the table takes a fifth of the time that it takes by the index on levels."""
_TEXT, _QA = 1, 2
"""Bits of what a response is."""

Numbers = npt.NDArray[np.int64]


class Said(NamedTuple):
    """What judges say: of each label the response, the judge and its place in `_CODES`; the judges by number; stated confidences."""

    responses: Numbers
    raters: Numbers
    codes: Numbers
    names: dict[int, str]
    confidence: pd.DataFrame

    def of(self, response_ids: pd.Series) -> "Said":
        """What is said of these responses alone."""
        known = pd.Index(response_ids).get_indexer(self.responses) >= 0
        if known.all():
            return self
        return self._replace(responses=self.responses[known], raters=self.raters[known], codes=self.codes[known])


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
    example_ids = cases["example_id"].to_numpy()
    return _joined(session, cases, _said(session), _samples(session, example_ids))


def imported_at(engine: Engine, beside: Executor) -> Triaged:
    """As `imported`, over two connections: the database gathers the levels on one core while `beside` reads the responses on the other."""
    with reading(engine) as session, reading(engine) as second:
        cases = _cases(session)
        example_ids = cases["example_id"].to_numpy()
        samples = beside.submit(_samples, second, example_ids)
        said = _said(session)
        return _joined(session, cases, said, samples.result())


def _joined(session: Session, cases: pd.DataFrame, said: Said, samples: pd.DataFrame) -> Triaged:
    """Of levels and responses that came between the two reads, what the other does not know is left out."""
    levels, confidence = _levels(samples, said.of(samples["response_id"]))
    no_reads = pd.DataFrame(columns=list(READ_COLUMNS))
    return Triaged(cases, _votes(session, cases), samples, levels, confidence, no_reads, _published(session))


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


def _samples(session: Session, example_ids: Numbers) -> pd.DataFrame:
    """The responses by case."""
    connection = session.connection()
    response = SQLModel.metadata.tables["response"].c
    models = connection.execute(select(col(Model.id), col(Model.name)).order_by(col(Model.id)))
    of_models = {int(row[0] or 0): str(row[1]) for row in models}
    n_repeats = 1 + (connection.execute(select(func.max(response.sample_index))).scalar_one() or 0)
    base = 1 + max(of_models, default=0)
    kind = case((response.dataset == Format.QA.evaluation, _QA), else_=0) + case((response.text != "", _TEXT), else_=0)
    keys, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    last = connection.execute(select(func.max(response.id))).scalar_one() or 0
    n_examples = 1 + int(example_ids[-1]) if len(example_ids) else 1
    of_case = (response.example_id + 0).in_(
        select(SQLModel.metadata.tables["acuity_case"].c.example_id)
    )  # + 0: no index
    for first in range(0, last + 1, _TOGETHER):
        known = (cast(response.id - first, BigInteger) * base + response.model_id) * 4 + kind
        number = (known * n_repeats + response.sample_index) * n_examples + response.example_id
        found = _numbers(session, number, of_case, response.id.between(first, first + _TOGETHER - 1))
        found, examples = np.divmod(found, n_examples)
        keys.append(examples)
        numbers.append(found + first * base * 4 * n_repeats)
    of_example = np.concatenate(keys)
    rest, repeat = np.divmod(np.concatenate(numbers), n_repeats)
    rest, kinds = np.divmod(rest, 4)
    response_ids, model_ids = np.divmod(rest, base)
    places = np.zeros(base, dtype=np.int64)
    places[list(of_models)] = np.arange(len(of_models))
    order = np.lexsort((response_ids, of_example))
    formats = np.where(kinds >= _QA, 0, 1).astype(np.int8)[order]
    return pd.DataFrame(
        {
            "response_id": response_ids[order],
            "row": np.searchsorted(example_ids, of_example[order]),
            "model": pd.Categorical.from_codes(places[model_ids][order], pd.Index(list(of_models.values()))),
            "format": pd.Categorical.from_codes(formats, dtype=_FORMATS),
            "sample_index": repeat[order].astype(np.int32),
            "has_text": (kinds % _QA == _TEXT)[order],
        }
    )


def _numbers(session: Session, number: Any, *conditions: Any) -> Numbers:
    """Numbers that come joined by commas in one row: a row each would take five times as long, and be a turn that SQLite's driver waits for."""
    statement = select(func.aggregate_strings(cast(number, String), ",")).where(*conditions)
    joined = session.connection().execute(statement).scalar_one()
    return np.fromstring(joined, dtype=np.int64, sep=",") if joined else np.empty(0, np.int64)


def _said(session: Session) -> Said:
    """What every judge says of responses' levels."""
    table = SQLModel.metadata.tables["verdict"].c
    connection = session.connection()
    judges = connection.execute(
        select(col(Rater.id), col(Rater.name)).where(col(Rater.kind) == RaterKind.JUDGE).order_by(col(Rater.id))
    )
    names = {int(row[0] or 0): str(row[1]) for row in judges}
    base = 1 + max(names, default=0)
    code = case(*((table.label == label, code) for label, code in _CODES.items()))
    standing = (
        table.criterion_id.is_(None), table.response_id.is_not(None), table.stage == Stage.JUDGE, table.label.is_not(None),
        not_superseded(),
    )  # fmt: skip
    number = (cast(table.response_id, BigInteger) * base + table.rater_id) * len(_CODES) + code
    last = connection.execute(select(func.max(table.id))).scalar_one() or 0
    n_levels = connection.execute(select(func.count()).where(table.criterion_id.is_(None))).scalar_one()
    if n_levels * _SCAN_GAIN < last:
        numbers = _numbers(session, number, *standing)
    else:
        parts = (table.id.between(first, first + _TOGETHER - 1) for first in range(0, last + 1, _TOGETHER))
        numbers = np.concatenate([_numbers(session, number, *standing, part) for part in parts])
    numbers, codes = np.divmod(numbers, len(_CODES))
    responses, raters = np.divmod(numbers, base)
    stated = select(table.response_id, table.rater_id, table.confidence).where(*standing, table.confidence.is_not(None))
    return Said(responses, raters, codes, names, frame(session, stated.order_by(table.id)))


def _levels(samples: pd.DataFrame, said: Said) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A column of levels a judge, and the confidences that were stated, by sample."""
    place = _places(samples, said.responses)
    columns: dict[str, npt.NDArray[np.float32]] = {}
    for rater, name in said.names.items():  # a newer prompt version of one judge writes over an older one
        mine = said.raters == rater
        if mine.any():
            column = columns.setdefault(name, np.full(len(samples), np.nan, dtype=np.float32))
            column[place[mine]] = _VALUES[said.codes[mine]]
    responses = said.confidence["response_id"].to_numpy(dtype=np.int64)
    known = np.isin(responses, samples["response_id"].to_numpy())
    confidence = pd.DataFrame(
        {
            "sample": _places(samples, responses[known]),
            "rater": said.confidence.loc[known, "rater_id"].map(said.names).to_numpy(dtype=object),
            "confidence": said.confidence.loc[known, "confidence"].to_numpy(dtype=float),
        }
    )
    kept = confidence.drop_duplicates(["sample", "rater"], keep="last", ignore_index=True)
    return pd.DataFrame(columns, index=samples.index), kept[list(CONFIDENCE_COLUMNS)]


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
        select(
            *(table[name] for name in named),
            table.id.label("verdict_id"),
            col(Rater.name).label("rater"),
            col(Rater.person_id),
        )
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
    found = found.astype(kinds)
    found.loc[found["sample"].ge(0), ["selection", "inclusion_probability"]] = _drawn(session, found, samples)
    return found[list(READ_COLUMNS)]


def _drawn(session: Session, reads: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """How each read response came to be read, and its probability over all drawings that could have taken it (`drawings.over_all`).

    A blind first read of a response that somebody chose counts as drawn where a drawing took the response as well.
    """
    of = reads.loc[reads["sample"].ge(0)]
    of = of.assign(response_id=of["response_id"].astype(np.int64), item_id=of["response_id"].astype(np.int64))
    is_blind = of["stage"].eq(Stage.FIRST) & ~of["blinded"].isin([False])
    chosen = is_blind & ~of["selection"].isin(DRAWN)
    taken = chosen & of["response_id"].isin(
        list(drawings.was_drawn(session, Ask.RESPONSE_ACUITY)) if chosen.any() else []
    )
    of["selection"] = of["selection"].mask(taken, Selection.RANDOM.value)
    is_drawn = taken | (of["selection"].isin(DRAWN) & of["inclusion_probability"].notna())
    if is_drawn.any():
        texts = samples.loc[samples["has_text"], ["response_id", "format"]]
        named = texts["format"].cat.rename_categories({word.value: word.evaluation for word in Format})
        population = pd.DataFrame({"id": texts["response_id"], "dataset": named})
        made = drawings.made(session, of, is_drawn, ask=Ask.RESPONSE_ACUITY, population=population)
        of["inclusion_probability"] = drawings.over_all(made, of, is_drawn)
    return of[["selection", "inclusion_probability"]]


def _published(session: Session) -> pd.DataFrame:
    table = SQLModel.metadata.tables["published_matrix"].c
    statement = select(
        table.model, table.format, table.gold, *(table[level].label(level.upper()) for level in "abcd")
    ).order_by(table.id)
    found = frame(session, statement)
    return found.assign(gold=found["gold"].map(LEVELS).astype(float))

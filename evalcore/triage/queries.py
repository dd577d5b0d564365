"""`TriageData` out of the database, of the whole study (millions of samples in a second or two) or of one case; and texts of responses, which it lacks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import BigInteger, String, and_, case, cast, exists, false, func, select
from sqlmodel import Session, col

from evalcore.errors import refuse
from evalcore.rubric.data import DRAWN
from evalcore.rubric.drawings import over_all
from evalcore.rubric.queries import drawings_of, was_drawn
from evalcore.study.db import Engine, reading
from evalcore.study.frames import frame, is_judge, is_read, not_superseded, repeats
from evalcore.study.schema import JURY, Ask, Format, Label, RaterKind, Selection, Stage
from evalcore.study.tables import TABLES, Model, Rater
from evalcore.triage import data

_CODES: dict[str, int] = {label: code for code, label in enumerate(data.LEVELS, start=1)} | {Label.CANNOT_ASSESS: 0}
_BY_LENGTH = sorted(_CODES.items(), key=lambda pair: len(pair[0]))
"""Single letters first: the database tries one label after the other."""
_VALUES = np.array([data.NO_LEVEL, *data.LEVELS.values()], dtype=np.float32)
_VALUES[np.isnan(_VALUES)] = data.NO_LEVEL  # a judge that removes a case gives the response no level

_FORMATS = pd.CategoricalDtype([word.value for word in Format])
_TOGETHER = 1 << 17
"""Rows whose numbers come in one: some megabytes."""
_SCAN_GAIN = 5
"""A row by a walk over the table takes a fifth of the time that it takes by the index on levels."""
_TEXT, _QA, _ELSEWHERE = 1, 2, 4
"""Bits of what a response is; the last: of neither format."""
_BITS = 3
_WIDEST = 63
"""Bits of a number that the database counts with."""
_CHUNK = 500  # bound variables in one statement

Numbers = npt.NDArray[Any]


class Said(NamedTuple):
    """What judges say: of each label the response, the judge and its place in `_CODES`; the judges by number; stated confidences."""

    responses: Numbers
    raters: Numbers
    codes: Numbers
    names: dict[int, str]
    confidence: pd.DataFrame
    juries: frozenset[str] = frozenset()


def has_cases(session: Session) -> bool:
    """Whether the study holds any case of triage, or a published matrix."""
    names = ("acuity_case", "published_matrix")
    found = (select(TABLES[name]).limit(1) for name in names)
    return any(session.connection().execute(statement).first() for statement in found)


def load(session: Session) -> data.TriageData:
    """Every case, panel vote, response, level and read."""
    cases = _cases(session)
    samples = _samples(session, cases["example_id"].to_numpy(), _last_repeat(session))
    return with_reads(session, _joined(session, cases, _said(session), samples, _votes(session, cases)))


def imported_at(engine: Engine, beside: Executor) -> data.TriageData:
    """All but physicians' reads: only an import, or a judge that reads levels, changes it; `beside` reads the levels over a second connection meanwhile."""
    with reading(engine) as session, reading(engine) as second:
        last_repeat, said = beside.submit(_last_repeat, second), beside.submit(_said, second)
        cases = _cases(session)
        votes = beside.submit(_votes, second, cases)
        samples = _samples(session, cases["example_id"].to_numpy(), last_repeat.result())
        return _joined(session, cases, said.result(), samples, votes.result())


def _joined(
    session: Session, cases: pd.DataFrame, said: Said, samples: pd.DataFrame, votes: pd.DataFrame
) -> data.TriageData:
    """Of levels and responses that came between the two reads, what the other does not know is left out."""
    is_elsewhere = samples["format"].isna().to_numpy()
    elsewhere = samples.loc[is_elsewhere, list(data.ELSEWHERE_COLUMNS)].reset_index(drop=True)
    samples = samples.loc[~is_elsewhere].reset_index(drop=True) if len(elsewhere) else samples
    place = _places(samples, said.responses)
    columns: dict[str, npt.NDArray[np.float32]] = {}
    wrote: dict[str, npt.NDArray[np.int32]] = {}
    for rater, name in said.names.items():  # a newer prompt version of one judge writes over an older one
        mine = (said.raters == rater) & (place >= 0)
        if mine.any():
            column = columns.setdefault(name, np.full(len(samples), np.nan, dtype=np.float32))
            column[place[mine]] = _VALUES[said.codes[mine]]
            if len(said.confidence):
                wrote.setdefault(name, np.zeros(len(samples), dtype=np.int32))[place[mine]] = rater
    stated, by = (said.confidence[name].to_numpy(dtype=np.int64) for name in ("response_id", "rater_id"))
    stated = _places(samples, stated)
    named = said.confidence["rater_id"].map(said.names).to_numpy(dtype=object)
    known = stated >= 0
    for name, raters in wrote.items():  # the confidence is of the verdict that gives the level
        mine = known & (named == name)
        known[mine] = raters[stated[mine]] == by[mine]
    of_columns: dict[str, Any] = {"sample": stated[known], "rater": named[known]}
    of_columns |= {"confidence": said.confidence.loc[known, "confidence"].to_numpy(dtype=float)}
    confidence = pd.DataFrame(of_columns)
    confidence = confidence.drop_duplicates(["sample", "rater"], keep="last", ignore_index=True)
    levels = pd.DataFrame(columns, index=samples.index)
    reads = pd.DataFrame(columns=list(data.READ_COLUMNS))
    return data.TriageData(
        cases, votes, samples, levels, confidence, reads, _published(session), elsewhere, said.juries
    )


def with_reads(session: Session, triage_data: data.TriageData) -> data.TriageData:
    """What `imported_at` gave, with physicians' reads. Cases and responses that came since are left out."""
    reads = _reads(session, triage_data.cases, triage_data.samples)
    drawn = _drawn(session, reads, triage_data.samples)
    reads.loc[reads["sample"].ge(0), ["selection", "inclusion_probability"]] = drawn
    return replace(triage_data, reads=reads[list(data.READ_COLUMNS)])


def _cases(session: Session, *conditions: Any) -> pd.DataFrame:
    known, example = (TABLES[name].c for name in ("acuity_case", "example"))
    statement = (
        select(
            known.example_id, example.prompt_id.label("case_id"), known.source, known.original_label, known.mapped_label,
            known.gold.label("file_gold"), known.method, known.is_edge_case, known.uncertainty, example.language, example.first_words,
        )
        .join(TABLES["example"], example.id == known.example_id)
        .where(*conditions)
        .order_by(known.example_id)
    )  # fmt: skip
    found = frame(session, statement)
    found["file_gold"] = found["file_gold"].map(data.LEVELS).astype(float)
    kinds: dict[str, Any] = {"source": "category", "method": "category", "uncertainty": float, "is_edge_case": bool}
    return found.astype(kinds)


def _votes(session: Session, cases: pd.DataFrame, *conditions: Any) -> pd.DataFrame:
    table = TABLES["panel_vote"].c
    statement = select(table.example_id, table.place, table.rater, table.vote)
    known = table.example_id <= int(cases["example_id"].max()) if len(cases) else false()
    found = frame(session, statement.where(known, *conditions).order_by(table.example_id, table.place))
    found["row"] = np.searchsorted(cases["example_id"].to_numpy(), found.pop("example_id").to_numpy(dtype=np.int64))
    found["vote"] = found["vote"].map(data.LEVELS).astype(float)
    return found[["row", "place", "rater", "vote"]]


def _last_repeat(session: Session) -> int:
    response = TABLES["response"].c
    return int(session.connection().execute(select(func.max(response.sample_index))).scalar_one() or 0)


def _samples(session: Session, example_ids: Numbers, last_repeat: int) -> pd.DataFrame:
    connection = session.connection()
    response = TABLES["response"].c
    models = connection.execute(select(col(Model.id), col(Model.name)).order_by(col(Model.id)))
    of_models = {int(row[0] or 0): str(row[1]) for row in models}
    of_repeat, of_model = last_repeat.bit_length(), max(of_models, default=0).bit_length()
    asked = {Format.QA.evaluation: _QA, Format.CONVERSATION.evaluation: 0}
    in_format = case(asked, value=response.dataset, else_=_ELSEWHERE)
    kind = in_format + case((response.text != "", _TEXT), else_=0)
    last = connection.execute(select(func.max(response.id))).scalar_one() or 0
    first_case, last_case = (int(example_ids[0]), int(example_ids[-1])) if len(example_ids) else (0, -1)
    of_example = max(last_case - first_case, 0).bit_length()
    if (_TOGETHER - 1).bit_length() + of_model + _BITS + of_repeat + of_example > _WIDEST:
        refuse(f"table response: expected 0, 1, .., got a sample_index of {last_repeat:,}. for repeats")
    places = np.zeros(1 << of_model, dtype=np.int32)
    places[list(of_models)] = np.arange(len(of_models))
    # a response that has come since has no room in the number; + 0: no index
    known = ((response.example_id + 0).between(first_case, last_case), response.sample_index <= last_repeat)

    def parts() -> Iterator[tuple[Numbers, ...]]:
        for first in range(0, last + 1 if len(example_ids) else 0, _TOGETHER):
            number = (cast(response.id - first, BigInteger) * (1 << of_model) + response.model_id) * (1 << _BITS) + kind
            number = (number * (1 << of_repeat) + response.sample_index) * (1 << of_example)
            number = number + (response.example_id - first_case)
            found = _numbers(session, number, *known, response.id.between(first, first + _TOGETHER - 1))
            examples, *told, ids = _parts(found, of_example, of_repeat, _BITS, of_model, _WIDEST)
            rows = np.searchsorted(example_ids, examples + first_case)
            is_case = example_ids[rows] == examples + first_case
            yield tuple(column[is_case] for column in (ids + first, rows, *told))

    kinds_of = (np.int64, np.int64, np.int32, np.int8, np.int32)
    response_ids, rows, repeats, kinds, model_ids = _gathered(parts(), *kinds_of)
    is_ordered = not ((rows[1:] < rows[:-1]) | ((rows[1:] == rows[:-1]) & (response_ids[1:] < response_ids[:-1]))).any()
    order: Any = slice(None) if is_ordered else np.lexsort((response_ids, rows))  # as in SQLite after an import
    formats = np.where(kinds < _ELSEWHERE, kinds < _QA, -1).astype(np.int8)[order]
    columns: dict[str, Any] = {"response_id": response_ids[order], "row": rows[order]}
    columns |= {"model": pd.Categorical.from_codes(places[model_ids][order], pd.Index(list(of_models.values())))}
    columns |= {"format": pd.Categorical.from_codes(formats, dtype=_FORMATS), "sample_index": repeats[order]}
    columns |= {"has_text": (kinds % _QA == _TEXT)[order]}
    return pd.DataFrame(columns, copy=False)


def _parts(numbers: Numbers, *widths: int) -> list[Numbers]:
    found = []
    for width in widths:
        found.append(numbers & ((1 << width) - 1))
        numbers = numbers >> width
    return found


def _gathered(parts: Iterable[Sequence[Numbers]], *kinds: Any) -> list[Numbers]:
    """The columns of parts, one part after another; each is made small while its numbers are at hand, since memory that is new costs time."""
    columns: list[list[Numbers]] = [[np.empty(0, kind)] for kind in kinds]
    for part in parts:
        for column, kind, found in zip(columns, kinds, part, strict=True):
            column.append(found.astype(kind))
    return [np.concatenate(column) for column in columns]


def _numbers(session: Session, number: Any, *conditions: Any) -> Numbers:
    """Numbers that come joined by commas in one row: a row each would take five times as long, and be a turn that SQLite's driver waits for."""
    statement = select(func.aggregate_strings(cast(number, String), ",")).where(*conditions)
    joined = session.connection().execute(statement).scalar_one()
    return np.fromstring(joined, dtype=np.int64, sep=",") if joined else np.empty(0, np.int64)


def _said(session: Session) -> Said:
    table = TABLES["verdict"].c
    connection = session.connection()
    named = (col(Rater.id), col(Rater.name), col(Rater.prompt_version))
    judges = connection.execute(select(*named).where(is_judge()).order_by(col(Rater.id))).all()
    names = {int(row[0] or 0): str(row[1]) for row in judges}
    juries = frozenset(str(row[1]) for row in judges if row[2].startswith(JURY))
    of_rater, of_code = max(names, default=0).bit_length(), (len(_CODES) - 1).bit_length()
    code = case(*((table.label == label, code) for label, code in _BY_LENGTH))
    standing = [*_of_judge(table), table.response_id.is_not(None)]
    if asked_again := repeats(session):  # to ask it of every row costs as well
        standing.append(table.rater_id.not_in(asked_again))
    replaced = select(table.id).where(table.supersedes.is_not(None), *standing).limit(1)  # also by a verdict taken back
    standing.append(table.label.is_not(None))
    if connection.execute(replaced).first():  # to ask it of every row costs a fifth more
        standing.append(not_superseded())
    number = (cast(table.response_id, BigInteger) * (1 << of_rater) + table.rater_id) * (1 << of_code) + code
    number = number * 2 + case((table.confidence.is_not(None), 1), else_=0)
    last = connection.execute(select(func.max(table.id))).scalar_one() or 0
    n_levels = connection.execute(select(func.count()).where(table.criterion_id.is_(None))).scalar_one()
    walk = [(table.id.between(first, first + _TOGETHER - 1),) for first in range(0, last + 1, _TOGETHER)]
    parts = (
        _parts(_numbers(session, number, *standing, *part), 1, of_code, of_rater, _WIDEST)
        for part in ([()] if n_levels * _SCAN_GAIN < last else walk)
    )
    is_stated, codes, raters, responses = _gathered(parts, np.bool_, np.int8, np.int32, np.int64)
    stated = select(table.response_id, table.rater_id, table.confidence).where(table.confidence.is_not(None), *standing)
    if not is_stated.any():  # a second walk over the table would find none
        stated = stated.where(false())
    confidence = frame(session, stated.order_by(table.id))
    return Said(responses, raters, codes, names, confidence, juries)


def _places(samples: pd.DataFrame, response_ids: Numbers) -> Numbers:
    numbers = samples["response_id"].to_numpy()
    if not len(numbers) or not len(response_ids):
        return np.full(len(response_ids), -1, dtype=np.int64)
    first, last = int(numbers.min()), int(numbers.max())
    row_of = np.full(last - first + 1, -1, dtype=np.int32)  # as long as the table of responses at most
    row_of[numbers - first] = np.arange(len(numbers))
    is_between = (response_ids >= first) & (response_ids <= last)
    return np.where(is_between, row_of.take(response_ids - first, mode="clip"), -1)


def _reads(session: Session, cases: pd.DataFrame, samples: pd.DataFrame, *conditions: Any) -> pd.DataFrame:
    table = TABLES["verdict"].c
    named = ("example_id", "response_id", "label", "stage", "blinded", "selection", "inclusion_probability")
    statement = (
        select(
            *(table[name] for name in named),
            table.id.label("verdict_id"),
            col(Rater.name).label("rater"),
            col(Rater.person_id),
        )
        .join(Rater, and_(col(Rater.id) == table.rater_id, col(Rater.kind) == RaterKind.REVIEWER))
        .where(table.criterion_id.is_(None), table.label.is_not(None), not_superseded(), is_read(table), *conditions)
        .order_by(table.id + 0)  # + 0: of these few, and no walk over all verdicts in their order
    )
    found = frame(session, statement)
    response_ids = np.asarray(found["response_id"].astype(float).fillna(-1), dtype=np.int64)
    found["row"] = pd.Index(cases["example_id"]).get_indexer(np.asarray(found["example_id"], dtype=np.int64))
    found["sample"] = _places(samples, response_ids)
    found["asked"] = np.where(response_ids < 0, Ask.GOLD_ACUITY.value, Ask.RESPONSE_ACUITY.value)
    found = found.loc[found["row"].ge(0) & (found["sample"].ge(0) | (response_ids < 0))].reset_index(drop=True)
    return found.astype({"inclusion_probability": float, "blinded": object, "selection": object, "rater": object})


def _drawn(session: Session, reads: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """How each read response came to be read (drawn also where a drawing took what somebody chose), and its probability over all drawings."""
    of = reads.loc[reads["sample"].ge(0)]
    of = of.assign(response_id=of["response_id"].astype(np.int64), item_id=of["response_id"].astype(np.int64))
    is_blind = of["stage"].eq(Stage.FIRST) & ~of["blinded"].isin([False])
    chosen = is_blind & ~of["selection"].isin(DRAWN)
    taken = chosen & of["response_id"].isin(list(was_drawn(session, Ask.RESPONSE_ACUITY)) if chosen.any() else [])
    of["selection"] = of["selection"].mask(taken, Selection.RANDOM.value)
    is_drawn = taken | (of["selection"].isin(DRAWN) & of["inclusion_probability"].notna())
    if is_drawn.any():
        texts = samples.loc[samples["has_text"], ["response_id", "format"]]
        named = texts["format"].cat.rename_categories({word.value: word.evaluation for word in Format})
        population = pd.DataFrame({"id": texts["response_id"], "dataset": named})
        made = drawings_of(session, of, is_drawn, ask=Ask.RESPONSE_ACUITY, population=population)
        of["inclusion_probability"] = over_all(made, of, is_drawn)
    return of[["selection", "inclusion_probability"]]


def _published(session: Session) -> pd.DataFrame:
    table = TABLES["published_matrix"].c
    statement = select(
        table.model, table.format, table.gold, *(table[level].label(level.upper()) for level in "abcd")
    ).order_by(table.id)
    found = frame(session, statement)
    return found.assign(gold=found["gold"].map(data.LEVELS).astype(float))


def one_case(session: Session, example_id: int) -> data.TriageData | None:
    """The case of this example as `load` gives it, but in milliseconds, and with each read's probability of its own drawing alone; None: no case of triage."""
    cases = _cases(session, TABLES["acuity_case"].c.example_id == example_id)
    if cases.empty:
        return None
    response = TABLES["response"].c
    answered = (
        select(
            response.id.label("response_id"), col(Model.name).label("model"), response.dataset, response.sample_index,
            (response.text != "").label("has_text"),
        )
        .join(Model, col(Model.id) == response.model_id)
        .where(response.example_id == example_id)
        .order_by(response.id)
    )  # fmt: skip
    samples = frame(session, answered)
    formats = {word.evaluation: word.value for word in Format}
    samples = samples.assign(
        row=0,
        format=pd.Categorical(samples["dataset"].map(formats), categories=list(formats.values())),
        model=samples["model"].astype("category"),
        has_text=samples["has_text"].astype(bool),
    )
    verdict = TABLES["verdict"].c
    mine = (verdict.example_id == example_id, verdict.rater_id.not_in(repeats(session)))
    statement = (
        select(verdict.response_id, verdict.label, verdict.confidence, col(Rater.name).label("rater"))
        .join(Rater, and_(col(Rater.id) == verdict.rater_id, is_judge()))
        .where(*mine, verdict.criterion_id.is_(None), verdict.label.is_not(None), not_superseded())
        .order_by(verdict.id)
    )
    judged = frame(session, statement)
    judged["sample"] = _places(samples, judged["response_id"].fillna(-1).to_numpy(dtype=np.int64))
    judged = judged.loc[judged["sample"].ge(0)]
    levels = {}
    for judge, said in judged.groupby("rater", sort=True):
        level = levels[str(judge)] = np.full(len(samples), np.nan, dtype=np.float32)
        level[said["sample"].to_numpy()] = said["label"].map(data.LEVELS).astype(float).fillna(data.NO_LEVEL)
    confidence = judged.loc[judged["confidence"].notna(), list(data.CONFIDENCE_COLUMNS)]
    return data.TriageData(
        cases=cases,
        votes=_votes(session, cases, TABLES["panel_vote"].c.example_id == example_id),
        samples=samples[list(data.SAMPLE_COLUMNS)],
        levels=pd.DataFrame(levels, index=pd.RangeIndex(len(samples))),
        confidence=confidence.astype({"confidence": float}).reset_index(drop=True),
        reads=_reads(session, cases, samples, *mine)[list(data.READ_COLUMNS)],
        published=pd.DataFrame(columns=["model", "format", "gold", "A", "B", "C", "D"]),
    )


@dataclass(frozen=True)
class Told:
    """A response, and by judge how it read the level: the explanation, which may be empty."""

    text: str
    explanations: dict[str, str]


def told(session: Session, response_ids: Collection[int]) -> dict[int, Told]:
    """The text of each of these responses by its number; one that is not in the study is not in it."""
    response, verdict = (TABLES[name].c for name in ("response", "verdict"))
    numbers = [int(number) for number in response_ids]
    found: dict[int, Told] = {}
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        texts = select(response.id, response.text).where(response.id.in_(part))
        found |= {row[0]: Told(row[1] or "", {}) for row in session.connection().execute(texts)}
        said = (
            select(verdict.response_id, col(Rater.name), verdict.explanation)
            .join(Rater, col(Rater.id) == verdict.rater_id)
            .where(verdict.response_id.in_(part), *_of_judge(verdict), is_judge(), not_superseded())
            .order_by(verdict.rater_id, verdict.id)  # the newest prompt last
        )
        for response_id, judge, explanation in session.connection().execute(said):
            found[response_id].explanations[judge] = explanation or ""
    return found


class ResponseText(NamedTuple):
    """A response to a case, with its text."""

    response_id: int
    example_id: int
    text: str


class Standing(NamedTuple):
    """What a judge has said of a response, in one of its versions."""

    verdict_id: int
    version: str
    label: str | None
    explanation: str | None


def texts(
    session: Session, asked: Format, *, judge: str, versions: Collection[str] | None, batch: int
) -> Iterator[list[ResponseText]]:
    """Responses of one format to cases, by number, in batches; left out are those without a text, and of which one of `versions` has said anything."""
    table = TABLES["response"].c
    statement = select(table.id, table.example_id, table.text).where(*_with_text(asked))
    if versions is not None:
        raters = [number for number, version in _versions(session, judge).items() if version in versions]
        verdict = TABLES["verdict"].c
        said = exists().where(verdict.response_id == table.id, *_of_judge(verdict), verdict.rater_id.in_(raters))
        statement = statement.where(~said)
    last = 0
    while rows := session.connection().execute(statement.where(table.id > last).order_by(table.id).limit(batch)).all():
        last = int(rows[-1][0])
        yield [ResponseText(int(number), int(example_id), text) for number, example_id, text in rows]


def n_texts(session: Session, asked: Format) -> int:
    """How many responses of one format to cases have a text."""
    return int(session.connection().execute(select(func.count()).where(*_with_text(asked))).scalar_one())


def _with_text(asked: Format) -> tuple[Any, ...]:
    table, cases = TABLES["response"].c, TABLES["acuity_case"].c
    return table.dataset == asked.evaluation, table.text != "", table.example_id.in_(select(cases.example_id))


def standing(session: Session, response_ids: Collection[int], *, judge: str) -> dict[int, list[Standing]]:
    """What a judge, in whichever version, says of some responses and nothing has superseded; by response, the version that came last first."""
    versions = _versions(session, judge)
    if not versions:
        return {}
    verdict = TABLES["verdict"].c
    found: dict[int, list[Standing]] = {}
    ordered = list(response_ids)
    for start in range(0, len(ordered), _CHUNK):
        mine = (verdict.response_id.in_(ordered[start : start + _CHUNK]), verdict.rater_id.in_(versions))
        statement = (
            select(verdict.response_id, verdict.id, verdict.rater_id, verdict.label, verdict.explanation)
            .where(*mine, *_of_judge(verdict), not_superseded())
            .order_by(verdict.rater_id.desc(), verdict.id.desc())
        )
        for response_id, number, rater_id, label, explanation in session.connection().execute(statement):
            said = Standing(int(number or 0), versions[rater_id], label, explanation)
            found.setdefault(int(response_id or 0), []).append(said)
    return found


def _of_judge(verdict: Any) -> tuple[Any, ...]:
    return verdict.criterion_id.is_(None), verdict.stage == Stage.JUDGE


def _versions(session: Session, judge: str) -> dict[int, str]:
    statement = select(col(Rater.id), col(Rater.prompt_version)).where(
        col(Rater.kind) == RaterKind.JUDGE, col(Rater.name) == judge
    )
    return {int(number or 0): str(version) for number, version in session.connection().execute(statement)}

"""`TriageData` out of the database, of the whole study or of one case; and the texts of responses."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import and_, exists, false, func, select
from sqlmodel import Session, col

from evalcore.rubric.data import DRAWN
from evalcore.rubric.drawings import over_all
from evalcore.rubric.queries import drawings_of, was_drawn
from evalcore.study import snapshot
from evalcore.study.frames import frame, is_judge, is_read, not_superseded, repeats
from evalcore.study.schema import JURY, Acuity, Ask, Format, Label, RaterKind, Selection, Stage
from evalcore.study.tables import TABLES, Model, Rater
from evalcore.triage import data, setting_queries

_LEVEL_OF: dict[str, float] = {str(word): level for word, level in data.LEVELS.items()}
_LEVEL_OF[Label.CANNOT_ASSESS] = data.NO_LEVEL
_VALUES = np.array([_LEVEL_OF.get(word, np.nan) for word in snapshot.SAID], np.float32)
_VALUES[snapshot.SAID.index(Acuity.REMOVE)] = data.NO_LEVEL  # a judge that removes a case gives the response no level

_FORMATS = pd.CategoricalDtype([word.value for word in Format])
_SAID = ("rater_id", "code", "confidence")
_CHUNK = 500  # bound variables in one statement

Numbers = npt.NDArray[Any]


def has_cases(session: Session) -> bool:
    """Whether the study holds any case of triage, or a published matrix."""
    names = ("acuity_case", "published_matrix")
    found = (select(TABLES[name]).limit(1) for name in names)
    return any(session.connection().execute(statement).first() for statement in found)


def load(session: Session) -> data.TriageData:
    """Every case, panel vote, response, level and read."""
    return with_reads(session, imported(session))


def imported(session: Session) -> data.TriageData:
    """All but physicians' reads: only an import, or a judge that reads levels, changes it."""
    cases = _cases(session)
    samples = _samples(session, cases["example_id"].to_numpy(dtype=np.int64))
    is_elsewhere = samples["format"].isna().to_numpy()
    elsewhere = samples.loc[is_elsewhere, data.ELSEWHERE_COLUMNS].reset_index(drop=True)
    samples = samples.loc[~is_elsewhere].reset_index(drop=True) if len(elsewhere) else samples
    named = (col(Rater.id), col(Rater.name), col(Rater.prompt_version))
    judges = session.connection().execute(select(*named).where(is_judge()).order_by(col(Rater.id))).all()
    levels, confidence = _levels(session, samples, {int(row[0] or 0): str(row[1]) for row in judges})
    juries = frozenset(str(row[1]) for row in judges if row[2].startswith(JURY))
    reads = pd.DataFrame(columns=data.READ_COLUMNS)
    votes, published = _votes(session, cases), _published(session)
    return data.TriageData(cases, votes, samples, levels, confidence, reads, published, elsewhere, juries)


def _levels(session: Session, samples: pd.DataFrame, names: dict[int, str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`levels` and `confidence` of `data.TriageData`, of the judges with these numbers."""
    said: dict[int, npt.NDArray[np.int8]] = {}  # by judge and sample, the label's code; -1: none
    stated = [(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))]
    place_of = _rows_by_number(samples)
    for part in snapshot.verdicts(session, "level"):
        place = place_of.take(part["response_id"], mode="clip")
        known = (place >= 0) & (part["response_id"] < len(place_of)) & np.isin(part["rater_id"], list(names))
        place, raters, codes, confidence = (column[known] for column in (place, *(part[name] for name in _SAID)))
        for number in np.flatnonzero(np.bincount(raters)).tolist():
            mine = raters == number
            if number not in said:
                said[number] = np.full(len(samples), -1, dtype=np.int8)
            said[number][place[mine]] = codes[mine]
        is_stated = ~np.isnan(confidence)
        stated.append((place[is_stated], raters[is_stated], confidence[is_stated]))
    columns: dict[str, npt.NDArray[np.float32]] = {}
    by: dict[str, npt.NDArray[np.int32]] = {}  # who gives the level: the confidence is of that verdict
    for number in sorted(said):  # a newer prompt version of one judge writes over an older one
        has_label, name = said[number] >= 0, names[number]
        column = columns.setdefault(name, np.full(len(samples), np.nan, dtype=np.float32))
        np.copyto(column, _VALUES[said[number]], where=has_label)
        np.copyto(by.setdefault(name, np.zeros(len(samples), dtype=np.int32)), number, where=has_label)
    place, raters, confidence = (np.concatenate(column) for column in zip(*stated, strict=True))
    counts = np.zeros(len(place), dtype=bool)
    for number in said:
        mine = raters == number
        counts[mine] = by[names[number]][place[mine]] == number
    of_columns: dict[str, Any] = {
        "sample": place[counts],
        "rater": np.array([names[n] for n in raters[counts]], object),
    }
    found = pd.DataFrame(of_columns | {"confidence": confidence[counts]})
    return pd.DataFrame(columns, index=samples.index, copy=False), found


def with_reads(session: Session, triage_data: data.TriageData) -> data.TriageData:
    """What `imported` gave, with physicians' reads and the gold that counts by the study's rule.

    Cases and responses that came since are left out.
    """
    reads = _reads(session, triage_data.cases, triage_data.samples)
    drawn = _drawn(session, reads, triage_data.samples)
    reads.loc[reads["sample"].ge(0), ["selection", "inclusion_probability"]] = drawn
    return data.described(replace(triage_data, reads=reads[data.READ_COLUMNS]), setting_queries.load(session).rule)


def _cases(session: Session, *conditions: Any) -> pd.DataFrame:
    known, example = (TABLES[name].c for name in ("acuity_case", "example"))
    statement = (
        select(
            *(known.example_id, example.prompt_id.label("case_id"), known.source, known.original_label),
            *(known.mapped_label, known.gold.label("file_gold"), known.method, known.is_edge_case, known.uncertainty),
            *(example.language, example.first_words),
        )
        .join(TABLES["example"], example.id == known.example_id)
        .where(*conditions)
        .order_by(known.example_id)
    )
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


def _samples(session: Session, example_ids: Numbers) -> pd.DataFrame:
    named = session.connection().execute(select(col(Model.id), col(Model.name)).order_by(col(Model.id)))
    models = {int(row[0] or 0): str(row[1]) for row in named}
    found, evaluations = snapshot.responses(session)
    row_of = np.full(1 + max(example_ids.max(initial=0), found["example_id"].max(initial=0)), -1)
    row_of[example_ids] = np.arange(len(example_ids))
    rows = row_of[found["example_id"]]
    if not (is_case := rows >= 0).all():
        rows, found = rows[is_case], {name: column[is_case] for name, column in found.items()}
    asked = {word.evaluation: code for code, word in enumerate(Format)}
    formats = np.array([asked.get(name, -1) for name in evaluations], dtype=np.int8)[found["evaluation"]]
    places = np.zeros(max(models, default=0) + 1, dtype=np.int32)
    places[list(models)] = np.arange(len(models))
    columns: dict[str, Any] = {"response_id": found["id"].astype(np.int64), "row": rows}
    columns |= {"model": pd.Categorical.from_codes(places[found["model_id"]], pd.Index(list(models.values())))}
    columns |= {"format": pd.Categorical.from_codes(formats, dtype=_FORMATS), "sample_index": found["sample_index"]}
    samples = pd.DataFrame(columns | {"has_text": found["n_chars"] > 0}, copy=False)
    is_ordered = not (rows[1:] < rows[:-1]).any()  # as after an import; they come by number
    return samples if is_ordered else samples.take(np.argsort(rows, kind="stable")).reset_index(drop=True)


def _rows_by_number(samples: pd.DataFrame) -> Numbers:
    """By number of a response, its row; -1: it is no sample."""
    row_of = np.full(1 + int(samples["response_id"].max()) if len(samples) else 1, -1, dtype=np.int32)
    row_of[samples["response_id"].to_numpy()] = np.arange(len(samples))
    return row_of


def _places(samples: pd.DataFrame, response_ids: Numbers) -> Numbers:
    row_of = _rows_by_number(samples)
    is_between = (response_ids >= 0) & (response_ids < len(row_of))
    return np.where(is_between, row_of.take(response_ids, mode="clip"), -1)


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
    found["row"] = pd.Index(cases["example_id"]).get_indexer(pd.Index(np.asarray(found["example_id"], dtype=np.int64)))
    found["sample"] = _places(samples, response_ids)
    found["asked"] = np.where(response_ids < 0, Ask.GOLD_ACUITY.value, Ask.RESPONSE_ACUITY.value)
    found = found.loc[found["row"].ge(0) & (found["sample"].ge(0) | (response_ids < 0))].reset_index(drop=True)
    return found.astype({"inclusion_probability": float, "blinded": object, "selection": object, "rater": object})


def _drawn(session: Session, reads: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    """How each read response came to be read (drawn also where a drawing took what was chosen), and how probably."""
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
    levels = (table[level].label(level.upper()) for level in "abcd")
    statement = select(table.model, table.format, table.gold, *levels).order_by(table.id)
    found = frame(session, statement)
    return found.assign(gold=found["gold"].map(data.LEVELS).astype(float))


def one_case(session: Session, example_id: int) -> data.TriageData | None:
    """One case as `load` gives it, each read with the probability of its own drawing; None: no such case."""
    cases = _cases(session, TABLES["acuity_case"].c.example_id == example_id)
    if cases.empty:
        return None
    response = TABLES["response"].c
    answered = (
        select(
            response.id.label("response_id"),
            col(Model.name).label("model"),
            *(response.dataset, response.sample_index, (response.text != "").label("has_text")),
        )
        .join(Model, col(Model.id) == response.model_id)
        .where(response.example_id == example_id)
        .order_by(response.id)
    )
    samples = frame(session, answered)
    formats = {word.evaluation: word.value for word in Format}
    samples["format"] = pd.Categorical(samples["dataset"].map(formats), categories=list(formats.values()))
    samples = samples.astype({"model": "category", "has_text": bool}).assign(row=0)
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
    confidence = judged.loc[judged["confidence"].notna(), data.CONFIDENCE_COLUMNS]
    triage_data = data.TriageData(
        cases=cases,
        votes=_votes(session, cases, TABLES["panel_vote"].c.example_id == example_id),
        samples=samples[data.SAMPLE_COLUMNS],
        levels=pd.DataFrame(levels, index=pd.RangeIndex(len(samples))),
        confidence=confidence.astype({"confidence": float}).reset_index(drop=True),
        reads=_reads(session, cases, samples, *mine)[data.READ_COLUMNS],
        published=pd.DataFrame(columns=["model", "format", "gold", "A", "B", "C", "D"]),
    )
    return data.described(triage_data, setting_queries.load(session).rule)


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
    """Responses of one format to cases with a text, in batches; without those that one of `versions` has read."""
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
    """By response what each version of a judge says of it and nothing has superseded, the newest version first."""
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
    of_judge = col(Rater.kind) == RaterKind.JUDGE, col(Rater.name) == judge
    statement = select(col(Rater.id), col(Rater.prompt_version)).where(*of_judge)
    return {int(number or 0): str(version) for number, version in session.connection().execute(statement)}

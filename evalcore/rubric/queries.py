"""`RubricData` of the whole study: millions of judges' labels in a second or two, physicians' reads with the probability of being drawn."""

from concurrent.futures import Executor
from dataclasses import replace
from enum import StrEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import BigInteger, ColumnElement, String, case, cast, func, select
from sqlmodel import Session, col

from evalcore.errors import OverreadError
from evalcore.rubric import drawings
from evalcore.rubric.data import ITEM_COLUMNS, READ_COLUMNS, RubricData, is_drawn
from evalcore.stats.arrays import Numbers
from evalcore.study.db import Engine, reading
from evalcore.study.frames import ITEM_BASE, frame, is_judge, is_read, not_superseded
from evalcore.study.run_states import repeat_version, version_and_repeat
from evalcore.study.schema import JURY, Label, RaterKind, Selection, Stage
from evalcore.study.tables import TABLES, Criterion, Example, Model, Rater, Response

MET = {Label.MET: 1.0, Label.NOT_MET: 0.0, Label.CANNOT_ASSESS: np.nan}
_CODES = {label: code for code, label in enumerate(MET)}
_VALUES = np.array(list(MET.values()), dtype=np.float32)
_OF_RESPONSE = (
    "example_id", "model", "evaluation", "sample_index", "n_expected", "theme", "category", "language", "n_chars",
)  # fmt: skip
_OF_CRITERION = ("position", "points", "axis", "level", "cluster")
_NAMES = ("model", "evaluation", "axis", "level", "cluster", "theme", "category", "language")

_TOGETHER = 1 << 14
"""Responses whose labels come in one row: some megabytes."""

Column = npt.NDArray[np.float32]


class Described(NamedTuple):
    """What is known of every response and criterion, by their numbers, ascending."""

    responses: pd.DataFrame
    criteria: pd.DataFrame


class Labels(NamedTuple):
    """Of each judge's label: the item's number, the judge's number, and the place of the label in `MET`."""

    keys: Numbers
    judges: Numbers
    codes: npt.NDArray[np.int8]


def has_criteria(session: Session) -> bool:
    """Whether the study holds any rubric."""
    return session.connection().execute(select(col(Criterion.id)).limit(1)).first() is not None


def load(session: Session) -> RubricData:
    """Every item with a standing verdict on a criterion, what each judge says of it, and physicians' reads.

    Of a judge's several prompt versions the newest one's verdict counts; its repeats stand apart.
    """
    return with_reads(session, judged(session))


def judged(session: Session) -> RubricData:
    """What judges say of every item that they have labelled, without physicians' reads: only an import changes it."""
    return _judged(session, _labels(session), _described(session))


def judged_at(engine: Engine, beside: Executor) -> RubricData:
    """As `judged`, over two connections: the database adds up labels on one core while `beside` describes the items on the other."""
    with reading(engine) as session, reading(engine) as second:
        describing = beside.submit(_described, second)
        labels = _labels(session)
        return _judged(session, labels, describing.result())


def _judged(session: Session, labels: Labels, described: Described) -> RubricData:
    items = _items(session, _sorted_unique(labels.keys), described)
    raters = session.connection().execute(select(col(Rater.id), col(Rater.name), col(Rater.prompt_version)))
    named = {int(row[0] or 0): (str(row[1]), str(row[2])) for row in raters}
    place = _places(items, labels.keys)
    columns: dict[str, Column] = {}
    repeats: dict[str, Column] = {}
    for name, numbers in _by_name(labels.judges, named).items():
        columns[name], again = _columns(len(items), [(named[number][1], number) for number in numbers], labels, place)
        repeats |= {repeat_version(name, number): again[number] for number in sorted(again)}
    return RubricData(
        items,
        pd.DataFrame(columns, index=items.index),
        pd.DataFrame(columns=list(READ_COLUMNS)).astype({"row": np.int64}),
        pd.DataFrame(repeats, index=items.index),
        frozenset(name for name, version in named.values() if name in columns and version.startswith(JURY)),
    )


def _columns(n: int, raters: list[tuple[str, int]], labels: Labels, place: Numbers) -> tuple[Column, dict[int, Column]]:
    """What a judge says of each of n items, by its newest prompt; and what it said when it was asked again with that prompt, by repeat.

    `raters` are the judge's, oldest first: prompt_version and number. `place` says in which row the item of each label stands.
    """
    own = np.full(n, np.nan, dtype=np.float32)
    again: dict[int, Column] = {}
    prompts = [(*version_and_repeat(version), labels.judges == number) for version, number in raters]
    for prompt in dict.fromkeys(version for version, _, _ in prompts):
        for _, repeat, mine in sorted((one for one in prompts if one[0] == prompt), key=itemgetter(1)):
            values, rows = _VALUES[labels.codes[mine]], place[mine]
            if repeat == 0:
                own[rows] = values
                for column in again.values():  # what was asked again was an earlier prompt
                    column[rows] = np.nan
            else:
                again.setdefault(repeat, np.full(n, np.nan, dtype=np.float32))[rows] = values
    return own, again


def with_reads(session: Session, rubric_data: RubricData, given: pd.DataFrame | None = None) -> RubricData:
    """What `judged` gave, with physicians' reads (`reads`; None: read here); items that only physicians have labelled are added."""
    table = reads(session) if given is None else given
    keys = table["item_id"].to_numpy(dtype=np.int64)
    items, labels, repeats = rubric_data.items, rubric_data.judged, rubric_data.repeats
    unjudged = keys[pd.Index(items["item_id"]).get_indexer(keys) < 0]
    if len(unjudged):
        item_ids = _sorted_unique(np.concatenate([items["item_id"].to_numpy(), unjudged]))
        together = _items(session, item_ids, _described(session))
        labels = _moved(labels, items, together)
        repeats = _moved(repeats, items, together) if repeats.shape[1] else repeats
        items = together
    table = table.assign(row=_places(items, keys))
    drawn = is_drawn(table)
    table["inclusion_probability"] = table["inclusion_probability"].where(drawn)
    known = replace(rubric_data, items=items, judged=labels, repeats=repeats, reads=table.iloc[:0])
    made = drawings.load(session, table, drawn, known=lambda: known)
    table["inclusion_probability"] = drawings.over_all(made, table, drawn)
    table["unit"] = _units(items, table, drawn)
    items = items.assign(reachable=drawings.reachable(made, items["response_id"]))
    return replace(rubric_data, items=items, judged=labels, reads=table[list(READ_COLUMNS)], repeats=repeats)


def _moved(labels: pd.DataFrame, before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Labels of items as labels of more items."""
    return labels.set_index(before["item_id"].to_numpy()).reindex(after["item_id"]).reset_index(drop=True)


def _places(items: pd.DataFrame, keys: Numbers) -> Numbers:
    """In which row each item stands."""
    numbers = items["item_id"].to_numpy()
    order = np.argsort(numbers, kind="stable")  # nearly sorted: positions follow the criteria's numbers
    return order[np.searchsorted(numbers, keys, sorter=order)]


def _by_name(judge_ids: Numbers, named: dict[int, tuple[str, str]]) -> dict[str, list[int]]:
    """Each judge's raters, oldest first; the judges with most labels of their own first, those without any left out."""
    counts = np.bincount(judge_ids, minlength=1)
    numbers = pd.Series(np.flatnonzero(counts))
    names = numbers.map({number: name for number, (name, _) in named.items()})
    is_own = numbers.map({number: not version_and_repeat(version)[1] for number, (_, version) in named.items()})
    own = pd.Series(counts[numbers])[is_own.astype(bool)].groupby(names).sum()
    order = own.sort_index().sort_values(ascending=False, kind="stable")
    return {str(name): [int(number) for number in numbers[names.eq(name)]] for name in order.index}


def _labels(session: Session) -> Labels:
    """What every judge said. Each query gives one row, the labels of many responses as numbers joined by commas.

    A row a label would take five times as long; few rows let another thread work meanwhile, since SQLite's driver waits its turn for each.
    """
    table = TABLES["verdict"].c
    connection = session.connection()
    last, base = (
        1 + (connection.execute(select(func.max(column))).scalar_one() or 0)
        for column in (table.response_id, col(Rater.id))
    )
    code = case(*((table.label == label, number) for label, number in _CODES.items()))
    parts = []
    for first in range(0, last, _TOGETHER):
        number = (cast(table.response_id - first, BigInteger) * ITEM_BASE + table.criterion_id) * base + table.rater_id
        statement = select(func.aggregate_strings(cast(number * len(_CODES) + code, String), ",")).where(
            *_standing(), table.stage == Stage.JUDGE, table.response_id.between(first, first + _TOGETHER - 1)
        )
        if joined := connection.execute(statement).scalar_one():
            numbers, codes = np.divmod(np.fromstring(joined, dtype=np.int64, sep=","), len(_CODES))
            keys, judges = np.divmod(numbers, base)
            parts.append((keys + first * ITEM_BASE, judges, codes.astype(np.int8)))
    if not parts:
        return Labels(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))
    keys, judges, codes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Labels(keys, judges, codes)


def _standing() -> list[ColumnElement[bool]]:
    table = TABLES["verdict"].c
    return [table.criterion_id.is_not(None), table.label.is_not(None), not_superseded()]


def _sorted_unique(numbers: Numbers) -> Numbers:
    """As numpy's unique, which hashes first and takes three times as long on numbers that are nearly sorted."""
    ordered = np.sort(numbers, kind="stable")
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def _described(session: Session) -> Described:
    return Described(_responses(session), _criteria(session))


def _items(session: Session, item_ids: Numbers, described: Described) -> pd.DataFrame:
    """`RubricData.items` of these items, by response and position; what was imported since they were described is described anew.

    Raises:
        OverreadError: A label belongs to nothing that the study holds.
    """
    response_ids, criterion_ids = np.divmod(item_ids, ITEM_BASE)
    of_response, of_criterion = _rows(described, response_ids, criterion_ids)
    if ((of_response < 0) | (of_criterion < 0)).any():
        described = _described(session)
        of_response, of_criterion = _rows(described, response_ids, criterion_ids)
    unknown = np.flatnonzero((of_response < 0) | (of_criterion < 0))
    if len(unknown):
        first = f"first of response {response_ids[unknown[0]]} and criterion {criterion_ids[unknown[0]]}"
        msg = f"table verdict: expected labels of items of the study alone, got labels of {len(unknown):,} others, {first}: the database is damaged"
        raise OverreadError(msg)
    responses, criteria = described
    columns: dict[str, Any] = {"item_id": item_ids, "response_id": response_ids, "criterion_id": criterion_ids}
    for source, names, rows in ((responses, _OF_RESPONSE, of_response), (criteria, _OF_CRITERION, of_criterion)):
        columns |= {name: source[name].array.take(rows) for name in names}
    items = pd.DataFrame({name: columns[name] for name in ITEM_COLUMNS if name in columns})
    order = np.lexsort((items["position"].to_numpy(), response_ids))
    return items if np.array_equal(order, np.arange(len(order))) else items.iloc[order].reset_index(drop=True)


def _rows(described: Described, response_ids: Numbers, criterion_ids: Numbers) -> tuple[Numbers, Numbers]:
    """Where responses and criteria stand in what is known of them; -1 where nothing is."""
    of_response = pd.Index(described.responses["response_id"]).get_indexer(response_ids)
    return of_response, pd.Index(described.criteria["criterion_id"]).get_indexer(criterion_ids)


def _responses(session: Session) -> pd.DataFrame:
    n_scored = (
        select(col(Criterion.example_id).label("example_id"), func.count(col(Criterion.points)).label("n_scored"))
        .group_by(col(Criterion.example_id))
        .subquery()
    )
    statement = (
        select(
            col(Response.id).label("response_id"),
            col(Response.example_id).label("example_id"),
            col(Model.name).label("model"),
            col(Response.dataset).label("evaluation"),
            col(Response.sample_index).label("sample_index"),
            func.coalesce(col(Response.n_criteria), n_scored.c.n_scored, 0).label("n_expected"),
            col(Example.theme).label("theme"),
            col(Example.category).label("category"),
            col(Example.language).label("language"),
            func.length(col(Response.text)).label("n_chars"),
        )
        .join(Model, col(Model.id) == col(Response.model_id))
        .join(Example, col(Example.id) == col(Response.example_id))
        .join(n_scored, n_scored.c.example_id == col(Response.example_id))  # a case of triage has no criteria
        .order_by(col(Response.id))
    )
    return _categorical(frame(session, statement))


def _criteria(session: Session) -> pd.DataFrame:
    table = TABLES["criterion"].c
    statement = select(table.id.label("criterion_id"), *(table[name] for name in _OF_CRITERION)).order_by(table.id)
    return _categorical(frame(session, statement).astype({"points": float}))


def _categorical(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({name: "category" for name in _NAMES if name in table.columns})


def reads(session: Session) -> pd.DataFrame:
    """Physicians' standing verdicts, one a reader, item and stage. Words come as numbers: as texts they would take twice as long."""
    table = TABLES["verdict"].c
    words: dict[str, tuple[StrEnum, ...]] = {"stage": tuple(Stage), "label": tuple(MET), "selection": tuple(Selection)}
    named = ("example_id", "response_id", "criterion_id", "rater_id", "blinded", "inclusion_probability")
    reviewers = session.connection().execute(
        select(col(Rater.id), col(Rater.name), col(Rater.person_id)).where(col(Rater.kind) == RaterKind.REVIEWER)
    )
    known = {row[0]: (row[1], row[2]) for row in reviewers}
    statement = (
        select(*(table[name] for name in named), *(_coded(table[name], options).label(name) for name, options in words.items()))
        .where(
            *_standing(), is_read(table),
            table.rater_id.in_(select(col(Rater.id)).where(col(Rater.kind) == RaterKind.REVIEWER)),
        )
        .order_by(table.id + 0)  # + 0: of these few, and no walk over all verdicts in their order
    )  # fmt: skip
    rows = frame(session, statement).astype({"response_id": "int64", "criterion_id": "int64"})
    rows["item_id"] = rows["response_id"] * ITEM_BASE + rows["criterion_id"]
    rater = rows.pop("rater_id")
    for place, name in enumerate(("rater", "person_id")):
        rows[name] = rater.map({number: person[place] for number, person in known.items()})
    for name, options in words.items():
        values = np.array([*(word.value for word in options), None], dtype=object)
        rows[name] = pd.Series(values[rows[name].to_numpy(dtype=np.int64)], index=rows.index, dtype=object)
    rows["met"] = rows.pop("label").map(MET).astype(float)
    return rows.astype({"inclusion_probability": float, "blinded": object, "rater": object})


def _coded(column: Any, words: tuple[StrEnum, ...]) -> ColumnElement[int]:
    """The place of a word; the place behind the last where there is none."""
    return case(*((column == word, place) for place, word in enumerate(words)), else_=len(words))


def _units(items: pd.DataFrame, reads: pd.DataFrame, is_drawn: pd.Series) -> pd.Series:
    """What was drawn together: the response where every item of it was, else the item."""
    first = reads.loc[is_drawn & reads["stage"].eq(Stage.FIRST)]
    n_read = first.groupby("response_id")["item_id"].nunique()
    n_items = items["response_id"].value_counts().reindex(n_read.index)
    return reads["response_id"].where(reads["response_id"].isin(n_read.index[n_read.eq(n_items)]), reads["item_id"])


def response_sums(session: Session) -> pd.DataFrame:
    """Points by response and judge, summed in SQL so that millions of verdicts become one row a response.

    Of a judge's several prompts the one with the most labels on the response counts, of equals the newest; repeats do not.

    Returns:
        One row a response and judge: example_id, response_id, model, judge, achieved, possible, n_judged, n_expected.
    """
    verdict, criterion = TABLES["verdict"], TABLES["criterion"]
    scored = (
        select(criterion.c.example_id, func.count(criterion.c.points).label("n_scored"))
        .group_by(criterion.c.example_id)
        .subquery()
    )
    met = verdict.c.label == Label.MET
    positive = criterion.c.points > 0
    statement = (
        select(
            verdict.c.example_id,
            verdict.c.response_id,
            func.max(col(Model.name)).label("model"),
            func.max(col(Rater.name)).label("judge"),
            verdict.c.rater_id,
            func.sum(criterion.c.points).filter(met).label("achieved"),
            func.sum(criterion.c.points).filter(positive).label("possible"),
            func.count(criterion.c.points).filter(verdict.c.label != Label.CANNOT_ASSESS).label("n_judged"),
            func.max(func.coalesce(col(Response.n_criteria), scored.c.n_scored)).label("n_expected"),
        )
        .select_from(verdict)
        .join(criterion, criterion.c.id == verdict.c.criterion_id)
        .join(Rater, col(Rater.id) == verdict.c.rater_id)
        .join(Response, col(Response.id) == verdict.c.response_id)
        .join(Model, col(Model.id) == col(Response.model_id))
        .join(scored, scored.c.example_id == verdict.c.example_id)
        .where(is_judge(), not_superseded())
        .group_by(verdict.c.example_id, verdict.c.response_id, verdict.c.rater_id)
    )
    sums = frame(session, statement).sort_values(["n_judged", "rater_id"], kind="stable")
    sums = sums.drop_duplicates(["response_id", "judge"], keep="last")  # of several prompts of one judge
    return sums.sort_index().drop(columns="rater_id").reset_index(drop=True)

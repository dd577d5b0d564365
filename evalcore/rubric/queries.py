"""`RubricData` of the whole study: millions of judges' labels in a second or two, physicians' reads with the probability of being drawn."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import BigInteger, ColumnElement, String, Subquery, and_, case, cast, exists, func, select
from sqlmodel import Session, col

from evalcore.errors import refuse
from evalcore.reading import assignment_queries
from evalcore.reading.assigning import EXTENDS
from evalcore.rubric.data import ITEM_COLUMNS, READ_COLUMNS, RubricData, is_drawn
from evalcore.rubric.drawings import Drawing, by_recipe, over_all, reachable
from evalcore.stats.arrays import Numbers
from evalcore.study import contents
from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, Filters
from evalcore.study.db import Engine, reading
from evalcore.study.frames import ITEM_BASE, frame, is_judge, is_read, not_superseded
from evalcore.study.schema import (
    JURY,
    TASK_TAGS,
    Ask,
    Label,
    RaterKind,
    ReadingState,
    Selection,
    Stage,
    repeat_version,
    version_and_repeat,
)
from evalcore.study.tables import TABLES, Assignment, Criterion, Example, Model, Rater, Reading, Response

MET = {Label.MET: 1.0, Label.NOT_MET: 0.0, Label.CANNOT_ASSESS: np.nan}
_CODES = {label: code for code, label in enumerate(MET)}
_VALUES = np.array(list(MET.values()), dtype=np.float32)
_OF_RESPONSE = (
    "example_id", "model", "evaluation", "sample_index", "n_expected", "theme", "category", "language", *TASK_TAGS, "n_chars",
)  # fmt: skip
_OF_CRITERION = ("position", "points", "axis", "level", "cluster")
_NAMES = ("model", "evaluation", "axis", "level", "cluster", "theme", "category", "language", *TASK_TAGS)
_TOGETHER = 1 << 14  # responses whose labels come in one row: some megabytes

Column = npt.NDArray[np.float32]


Described = tuple[pd.DataFrame, pd.DataFrame]  # what is known of every response, and criterion, by number, ascending


def has_criteria(session: Session) -> bool:
    """Whether the study holds any rubric."""
    return session.connection().execute(select(col(Criterion.id)).limit(1)).first() is not None


def load(session: Session) -> RubricData:
    """Every item with a standing verdict on a criterion; of a judge's several prompt versions the newest one's counts, its repeats stand apart."""
    return with_reads(session, judged(session))


def judged(session: Session) -> RubricData:
    """What judges say of every item that they have labelled, without physicians' reads: only an import changes it."""
    return _judged(session, *_labels(session), _described(session))


def judged_at(engine: Engine, beside: Executor) -> RubricData:
    """As `judged`, over two connections: the database adds up labels on one core while `beside` describes the items on the other."""
    with reading(engine) as session, reading(engine) as second:
        describing = beside.submit(_described, second)
        labels = _labels(session)
        return _judged(session, *labels, describing.result())


def _judged(
    session: Session, keys: Numbers, judges: Numbers, codes: npt.NDArray[np.int8], described: Described
) -> RubricData:
    items = _items(session, _sorted_unique(keys), described)
    raters = session.connection().execute(select(col(Rater.id), col(Rater.name), col(Rater.prompt_version)))
    named = {int(row[0] or 0): (str(row[1]), str(row[2])) for row in raters}
    place, counts = _places(items, keys), np.bincount(judges, minlength=1)
    answering = [number for number in range(len(counts)) if counts[number]]
    n_own: dict[str, int] = {}  # labels, but for those of repeats
    for number in answering:
        name, version = named[number]
        if not version_and_repeat(version)[1]:
            n_own[name] = n_own.get(name, 0) + int(counts[number])
    columns: dict[str, Column] = {}
    repeats: dict[str, Column] = {}
    for name in sorted(n_own, key=lambda name: (-n_own[name], name)):
        own, again = np.full(len(items), np.nan, dtype=np.float32), dict[int, Column]()
        asked = [(*version_and_repeat(named[number][1]), number) for number in answering if named[number][0] == name]
        prompts = list(dict.fromkeys(prompt for prompt, _, _ in asked))  # the oldest first
        for _, repeat, number in sorted(asked, key=lambda one: (prompts.index(one[0]), one[1])):
            mine = judges == number
            rows, said = place[mine], _VALUES[codes[mine]]
            if repeat:
                again.setdefault(repeat, np.full(len(items), np.nan, dtype=np.float32))[rows] = said
                continue
            own[rows] = said
            for column in again.values():  # what was asked again was an earlier prompt
                column[rows] = np.nan
        columns[name] = own
        repeats |= {repeat_version(name, number): again[number] for number in sorted(again)}
    return RubricData(
        items,
        pd.DataFrame(columns, index=items.index),
        pd.DataFrame(columns=list(READ_COLUMNS)).astype({"row": np.int64}),
        pd.DataFrame(repeats, index=items.index),
        frozenset(name for name, version in named.values() if name in columns and version.startswith(JURY)),
    )


def with_reads(session: Session, rubric_data: RubricData, given: pd.DataFrame | None = None) -> RubricData:
    """What `judged` gave, with physicians' reads (None: read here) and the items that only they have labelled."""
    table = reads(session) if given is None else given
    keys = table["item_id"].to_numpy(dtype=np.int64)
    items, labels, repeats = rubric_data.items, rubric_data.judged, rubric_data.repeats
    unjudged = keys[pd.Index(items["item_id"]).get_indexer(keys) < 0]
    if len(unjudged):
        ids = items["item_id"].to_numpy()
        together = _items(session, _sorted_unique(np.concatenate([ids, unjudged])), _described(session))
        labels, repeats = (
            told.set_index(ids).reindex(together["item_id"]).reset_index(drop=True) if len(told) == len(ids) else told
            for told in (labels, repeats)
        )
        items = together
    table = table.assign(row=_places(items, keys))
    drawn = is_drawn(table)
    table["inclusion_probability"] = table["inclusion_probability"].where(drawn)
    known = replace(rubric_data, items=items, judged=labels, repeats=repeats, reads=table.iloc[:0])
    drawings = drawings_of(session, table, drawn, known=lambda: known)
    table["inclusion_probability"] = over_all(drawings, table, drawn)
    first = table.loc[drawn & table["stage"].eq(Stage.FIRST)]
    n_read = first.groupby("response_id")["item_id"].nunique()
    n_items = items["response_id"].value_counts().reindex(n_read.index)
    # drawn together: the response where every item of it was, else the item
    is_whole = table["response_id"].isin(n_read.index[n_read.eq(n_items)])
    table["unit"] = table["response_id"].where(is_whole, table["item_id"])
    items = items.assign(reachable=reachable(drawings, items["response_id"]))
    return replace(known, items=items, reads=table[list(READ_COLUMNS)])


def _places(items: pd.DataFrame, keys: Numbers) -> Numbers:
    numbers = items["item_id"].to_numpy()
    order = np.argsort(numbers, kind="stable")  # nearly sorted: positions follow the criteria's numbers
    return order[np.searchsorted(numbers, keys, sorter=order)]


def _labels(session: Session) -> tuple[Numbers, Numbers, npt.NDArray[np.int8]]:
    """Of each judge's label: the item's number, the judge's number, and the place of the label in `MET`."""
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
    parts = parts or [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))]
    keys, judges, codes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return keys, judges, codes


def _standing() -> list[ColumnElement[bool]]:
    table = TABLES["verdict"].c
    return [table.criterion_id.is_not(None), table.label.is_not(None), not_superseded()]


def _sorted_unique(numbers: Numbers) -> Numbers:
    """As numpy's unique, which hashes first and takes three times as long on numbers that are nearly sorted."""
    ordered = np.sort(numbers, kind="stable")
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def _described(session: Session) -> Described:
    response, model, example, criterion = (TABLES[name].c for name in ("response", "model", "example", "criterion"))
    scored = _n_scored()
    responses = (
        select(
            response.id.label("response_id"),
            response.example_id,
            model.name.label("model"),
            response.dataset.label("evaluation"),
            response.sample_index,
            func.coalesce(response.n_criteria, scored.c.n_scored, 0).label("n_expected"),
            *(example[name] for name in ("theme", "category", "language")),
            func.length(response.text).label("n_chars"),
        )
        .join(Model, model.id == response.model_id)
        .join(Example, example.id == response.example_id)
        .join(scored, scored.c.example_id == response.example_id)  # a case of triage has no criteria
        .order_by(response.id)
    )
    named = criterion.id.label("criterion_id"), *(criterion[name] for name in _OF_CRITERION)
    criteria = frame(session, select(*named).order_by(criterion.id)).astype({"points": float})
    described = frame(session, responses)
    if len(tagged := contents.task_tags(session)):  # else no column: every item would carry it
        described = described.merge(tagged, on="example_id", how="left")
    both = described, criteria
    described, known = (table.astype({name: "category" for name in _NAMES if name in table}) for table in both)
    return described, known


def _items(session: Session, item_ids: Numbers, described: Described) -> pd.DataFrame:
    response_ids, criterion_ids = np.divmod(item_ids, ITEM_BASE)
    for _ in range(2):  # what has come since it was described is described again
        responses, criteria = described
        of_response = pd.Index(responses["response_id"]).get_indexer(response_ids)
        of_criterion = pd.Index(criteria["criterion_id"]).get_indexer(criterion_ids)
        unknown = np.flatnonzero((of_response < 0) | (of_criterion < 0))
        if not len(unknown):
            break
        described = _described(session)
    if len(unknown):
        first = f"first of response {response_ids[unknown[0]]} and criterion {criterion_ids[unknown[0]]}"
        refuse(
            f"table verdict: expected labels of items of the study alone, got labels of {len(unknown):,} others, {first}: the database is damaged"
        )
    columns: dict[str, Any] = {"item_id": item_ids, "response_id": response_ids, "criterion_id": criterion_ids}
    for source, names, rows in ((responses, _OF_RESPONSE, of_response), (criteria, _OF_CRITERION, of_criterion)):
        columns |= {name: source[name].array.take(rows) for name in names if name in source}
    items = pd.DataFrame({name: columns[name] for name in (*ITEM_COLUMNS, *TASK_TAGS) if name in columns})
    order = np.lexsort((items["position"].to_numpy(), response_ids))
    return items if np.array_equal(order, np.arange(len(order))) else items.iloc[order].reset_index(drop=True)


def _n_scored() -> Subquery:
    criterion = TABLES["criterion"].c
    n_scored = func.count(criterion.points).label("n_scored")
    return select(criterion.example_id, n_scored).group_by(criterion.example_id).subquery()


def reads(session: Session) -> pd.DataFrame:
    """Physicians' standing verdicts, one a reader, item and stage. Words come as numbers: as texts they would take twice as long."""
    table, rater = (TABLES[name].c for name in ("verdict", "rater"))
    words: dict[str, tuple[StrEnum, ...]] = {"stage": tuple(Stage), "label": tuple(MET), "selection": tuple(Selection)}
    named = ("example_id", "response_id", "criterion_id", "rater_id", "blinded", "inclusion_probability")
    is_reviewer = rater.kind == RaterKind.REVIEWER
    reviewers = frame(session, select(rater.id, rater.name.label("rater"), rater.person_id).where(is_reviewer))
    coded = (
        case(*((table[name] == word, place) for place, word in enumerate(of)), else_=len(of)).label(name)
        for name, of in words.items()
    )
    statement = (
        select(*(table[name] for name in named), *coded)
        .where(*_standing(), is_read(table), table.rater_id.in_(select(rater.id).where(is_reviewer)))
        .order_by(table.id + 0)  # + 0: of these few, and no walk over all verdicts in their order
    )
    rows = frame(session, statement).astype({"response_id": "int64", "criterion_id": "int64"})
    rows["item_id"] = rows["response_id"] * ITEM_BASE + rows["criterion_id"]
    numbers = rows.pop("rater_id")
    for name in ("rater", "person_id"):
        rows[name] = numbers.map(reviewers.set_index("id")[name])
    for name, options in words.items():
        values = np.array([*(word.value for word in options), None], dtype=object)
        rows[name] = pd.Series(values[rows[name].to_numpy(dtype=np.int64)], index=rows.index, dtype=object)
    rows["met"] = rows.pop("label").map(MET).astype(float)
    return rows.astype({"inclusion_probability": float, "blinded": object, "rater": object})


def response_sums(session: Session) -> pd.DataFrame:
    """Points by response and judge, summed in SQL; of several prompts that with the most labels on the response counts, of equals the newest, no repeat."""
    verdict, points, scored = TABLES["verdict"].c, TABLES["criterion"].c.points, _n_scored()
    of = verdict.example_id, verdict.response_id, verdict.rater_id
    statement = (
        select(
            *of,
            func.max(col(Model.name)).label("model"),
            func.max(col(Rater.name)).label("judge"),
            func.sum(points).filter(verdict.label == Label.MET).label("achieved"),
            func.sum(points).filter(points > 0).label("possible"),
            func.count(points).filter(verdict.label != Label.CANNOT_ASSESS).label("n_judged"),
            func.max(func.coalesce(col(Response.n_criteria), scored.c.n_scored)).label("n_expected"),
        )
        .select_from(TABLES["verdict"])
        .join(Criterion, col(Criterion.id) == verdict.criterion_id)
        .join(Rater, col(Rater.id) == verdict.rater_id)
        .join(Response, col(Response.id) == verdict.response_id)
        .join(Model, col(Model.id) == col(Response.model_id))
        .join(scored, scored.c.example_id == verdict.example_id)
        .where(is_judge(), not_superseded())
        .group_by(*of)
    )
    sums = frame(session, statement).sort_values(["n_judged", "rater_id"], kind="stable")
    sums = sums.drop_duplicates(["response_id", "judge"], keep="last")  # of several prompts of one judge
    return sums.sort_index().drop(columns="rater_id").reset_index(drop=True)


def drawings_of(
    session: Session,
    reads: pd.DataFrame,
    is_drawn: pd.Series,
    *,
    ask: Ask = Ask.RUBRIC,
    population: pd.DataFrame | None = None,
    known: Callable[[], RubricData] | None = None,
) -> list[Drawing]:
    """The drawings for one question that anything was read from: those made here, oldest first, and what imports brought, as one.

    `population`: responses that could be asked about (id, dataset; None: all). `known` gives what judges say, to make drawings by importance again where
    something was read that they did not draw; None: that has its mean probability.
    """
    task, reading = (TABLES[name].c for name in ("task", "reading"))
    ours = select(task.response_id, reading.person_id).join(Reading, reading.task_id == task.id)
    ours = ours.where(task.assignment_id.in_(select(col(Assignment.id)).where(col(Assignment.ask) == ask)))
    pairs = {(row[0], row[1]) for row in session.connection().execute(ours)}
    of_reads = zip(reads["response_id"], reads["person_id"], strict=True)
    here = pd.Series([pair in pairs for pair in of_reads], index=reads.index, dtype=bool)
    read, asked = (set(reads.loc[mask, "response_id"]) for mask in (here & is_drawn, is_drawn))
    drawings = list(_assigned(session, read, ask, known, asked))
    brought = reads.loc[is_drawn & ~here]
    if len(brought):
        response = TABLES["response"].c
        rows = frame(session, select(response.id, response.dataset)) if population is None else population
        evaluations = rows.loc[rows["id"].isin(brought["response_id"]), "dataset"].unique()
        fits = frozenset(rows.loc[rows["dataset"].isin(evaluations), "id"]) | set(brought["response_id"])
        by_response, by_item = (
            brought.groupby(name)["inclusion_probability"].max() for name in ("response_id", "item_id")
        )
        drawings.append(Drawing(by_response, len(by_response) / len(fits), fits, by_item))
    return drawings


def unread(session: Session, *, known: RubricData | None = None) -> pd.DataFrame:
    """The responses of drawings of which anything is read that nobody has read, with inclusion_probability over all these drawings (`over_all`)."""
    task, reading = (TABLES[name].c for name in ("task", "reading"))
    locked = select(task.response_id).join(Reading, reading.task_id == task.id)
    locked = locked.where(reading.state != ReadingState.READING, task.response_id.is_not(None))
    read = set(session.connection().execute(locked.distinct()).scalars())
    drawings = list(_assigned(session, read, Ask.RUBRIC, None if known is None else lambda: known))
    late = sorted({number for drawing in drawings for number in drawing.drawn.index} - read)
    items = pd.DataFrame({"response_id": late, "item_id": late}, dtype="int64")
    is_drawn = pd.Series(data=True, index=items.index)
    return items[["response_id"]].assign(inclusion_probability=over_all(drawings, items, is_drawn))


def was_drawn(session: Session, ask: Ask) -> frozenset[int]:
    """Responses that drawings took for this question, up to the last one read: in random order, those before it stand for the rest."""
    task, reading = (TABLES[name].c for name in ("task", "reading"))
    come = (
        select(task.assignment_id, func.max(task.place).label("place"))
        .join(Reading, and_(reading.task_id == task.id, reading.state != ReadingState.READING))
        .group_by(task.assignment_id)
        .subquery()
    )
    statement = (
        select(task.response_id)
        .join(Assignment, col(Assignment.id) == task.assignment_id)
        .join(come, and_(come.c.assignment_id == task.assignment_id, task.place <= come.c.place))
        .where(*_is_drawing(ask), task.response_id.is_not(None))
    )
    return frozenset(session.connection().execute(statement).scalars())


def _is_drawing(ask: Ask) -> list[ColumnElement[bool]]:
    return [col(Assignment.ask) == ask, col(Assignment.selection) != Selection.VOLUNTEERED]


def _assigned(
    session: Session, read: set[int], ask: Ask, known: Callable[[], RubricData] | None, asked: set[int] | None = None
) -> Iterator[Drawing]:
    labels = None if known is None else cache(known)
    task, reading = (TABLES[name].c for name in ("task", "reading"))
    columns = col(Assignment.id), col(Assignment.n_population), col(Assignment.chosen_by)
    assignments = select(*columns).where(*_is_drawing(ask)).order_by(col(Assignment.id))
    rows = session.connection().execute(assignments).all()
    locked = exists().where(reading.task_id == task.id, reading.state != ReadingState.READING)
    named = (task.assignment_id, task.response_id, task.inclusion_probability, locked.label("is_own"))
    tasks = frame(session, select(*named).where(task.response_id.is_not(None)))
    tasks = tasks.loc[tasks["assignment_id"].isin([row.id for row in rows])]
    # what a cancelled drawing left may be drawn again: then its read is of the drawing for which it was made
    is_of = tasks["is_own"].astype(bool) | ~tasks["response_id"].duplicated(keep=False)
    tasks = tasks.assign(is_read=is_of & tasks["response_id"].isin(list(read)))
    for row in rows:
        chosen_by = json.loads(row.chosen_by)
        of_drawing = tasks.loc[tasks["assignment_id"].eq(row.id)].set_index("response_id")
        drawn, n_read = of_drawing["inclusion_probability"], int(of_drawing["is_read"].sum())
        if n_read and chosen_by.get("reads") not in (OVERRIDDEN, CONFLICTING, READ):
            share = n_read / max(row.n_population, 1)
            if _is_list(chosen_by):  # a file names what was drawn, and not what it was drawn from
                share = float(drawn.mean()) * n_read / len(drawn)
            part = n_read / len(drawn)
            is_asked = asked is None or not asked <= {*drawn.index}
            others = by_recipe(labels(), chosen_by) * part if labels and chosen_by.get("scale") and is_asked else None
            yield Drawing(drawn * part, share, _fits(session, chosen_by, ask), others=others)


def _is_list(chosen_by: dict[str, Any]) -> bool:
    return "plan" in chosen_by and "models" not in chosen_by


def _fits(session: Session, chosen_by: dict[str, Any], ask: Ask) -> frozenset[int] | None:
    if _is_list(chosen_by):
        return None
    if "plan" in chosen_by:  # drawn by `planning`
        response, model = (TABLES[name].c for name in ("response", "model"))
        statement = select(response.id).join(Model, model.id == response.model_id)
        named = model.name.in_(chosen_by["models"]), response.dataset == chosen_by["evaluation"]
        return frozenset(session.connection().execute(statement.where(*named)).scalars())
    words = {name: value for name, value in chosen_by.items() if name not in ("reads", EXTENDS)}
    if not words:
        return None
    fitting = assignment_queries.responses(session, Filters(**words), with_rubric=ask is Ask.RUBRIC)
    return frozenset(response for _, response in fitting if response is not None)

"""`RubricData` of the whole study: millions of judges' labels in a second, physicians' reads with the probability of being drawn."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import ColumnElement, and_, exists, func, select
from sqlmodel import Session, col

from evalcore.errors import refuse
from evalcore.reading import assignment_queries
from evalcore.reading.assigning import EXTENDS
from evalcore.rubric.data import ITEM_COLUMNS, READ_COLUMNS, RubricData, is_drawn
from evalcore.rubric.drawings import Drawing, by_recipe, over_all, reachable
from evalcore.stats.arrays import Numbers, Truths
from evalcore.study import contents, snapshot
from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, Filters
from evalcore.study.frames import ITEM_BASE, frame, is_judge, not_superseded, plain_frame
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
from evalcore.study.tables import TABLES, Assignment, Criterion, Model, Rater, Reading

MET = {Label.MET: 1.0, Label.NOT_MET: 0.0, Label.CANNOT_ASSESS: np.nan}
_VALUES = np.array(
    [np.nan, *(MET.get(Label(word), np.nan) if word in set(Label) else np.nan for word in snapshot.SAID)], np.float32
)
"""What a label is worth by 1 + its code; 0: there is none."""
_LABELS = np.array([list(MET).index(Label(word)) if word in set(Label) else -1 for word in snapshot.SAID], np.int8)
_TRUTHS = np.array([False, True, None], dtype=object)
"""What 0, 1 and -1 say."""
_OF_RESPONSE = (
    "example_id", "model", "evaluation", "sample_index", "n_expected", "theme", "category", "language", *TASK_TAGS, "n_chars",
)  # fmt: skip
_OF_CRITERION = ("position", "points", "axis", "level", "cluster")
_PERSON_BITS = 31
_SUMS = ("achieved", "possible", "n_judged")
_OF_EXAMPLE = ("theme", "category", "language")

Column = npt.NDArray[np.float32]


def has_criteria(session: Session) -> bool:
    """Whether the study holds any rubric."""
    return session.connection().execute(select(col(Criterion.id)).limit(1)).first() is not None


def load(session: Session) -> RubricData:
    """Every item with a standing verdict on a criterion; of a judge's several prompt versions the newest one's counts, its repeats stand apart."""
    return with_reads(session, judged(session))


def judged(session: Session) -> RubricData:
    """What judges say of every item that they have labelled, without physicians' reads: only an import changes it."""
    grid = _grid(session)
    raters = session.connection().execute(select(col(Rater.id), col(Rater.name), col(Rater.prompt_version)))
    named = {int(row[0] or 0): (str(row[1]), str(row[2])) for row in raters}
    row_of, is_item = _rows_by_number(np.array(sorted(named), dtype=np.int64)), np.zeros(grid.n_places, dtype=bool)
    counts = np.zeros(len(named), dtype=np.int64)
    table = np.zeros((len(named), grid.n_places), dtype=np.int8)  # 1 + the label's code; of who says nothing no memory
    for part in snapshot.verdicts(session):
        places, rows = grid.places(part["response_id"], part["criterion_id"]), row_of[part["rater_id"]]
        is_item[places] = True
        table[rows, places] = part["code"] + 1
        counts += np.bincount(rows, minlength=len(named))
    items = grid.items(is_item)
    shown: Any = slice(None) if is_item.all() else is_item
    said = {number: table[row, shown] for row, number in enumerate(sorted(named)) if counts[row]}
    n_own: dict[str, int] = {}  # labels, but for those of repeats
    for number in sorted(said):
        name, version = named[number]
        if not version_and_repeat(version)[1]:
            n_own[name] = n_own.get(name, 0) + int(counts[row_of[number]])
    columns: dict[str, Column] = {}
    repeats: dict[str, Column] = {}
    for name in sorted(n_own, key=lambda name: (-n_own[name], name)):
        own, again = np.empty(0, dtype=np.float32), dict[int, Column]()
        asked = [(*version_and_repeat(named[number][1]), number) for number in sorted(said) if named[number][0] == name]
        prompts = list(dict.fromkeys(prompt for prompt, _, _ in asked))  # the oldest first
        for _, repeat, number in sorted(asked, key=lambda one: (prompts.index(one[0]), one[1])):
            has_label, labels = said[number] > 0, _VALUES.take(said[number])
            if repeat:
                np.copyto(again.setdefault(repeat, np.full_like(labels, np.nan)), labels, where=has_label)
                continue
            if len(own):
                np.copyto(own, labels, where=has_label)
            else:
                own = labels
            for column in again.values():  # what was asked again was an earlier prompt
                column[has_label] = np.nan
        columns[name] = own
        repeats |= {repeat_version(name, number): again[number] for number in sorted(again)}
    return RubricData(
        items,
        pd.DataFrame(columns, index=items.index, copy=False),
        pd.DataFrame(columns=list(READ_COLUMNS)).astype({"row": np.int64}),
        pd.DataFrame(repeats, index=items.index, copy=False),
        frozenset(name for name, version in named.values() if name in columns and version.startswith(JURY)),
    )


def with_reads(session: Session, rubric_data: RubricData, given: pd.DataFrame | None = None) -> RubricData:
    """What `judged` gave, with physicians' reads (None: read here) and the items that only they have labelled."""
    table = reads(session) if given is None else given
    keys = table["item_id"].to_numpy(dtype=np.int64)
    items, labels, repeats = rubric_data.items, rubric_data.judged, rubric_data.repeats
    places = _places(items, keys)
    unjudged = keys[places < 0]
    if len(unjudged):
        ids = items["item_id"].to_numpy()
        grid = _grid(session)
        is_item = np.zeros(grid.n_places, dtype=bool)
        is_item[grid.places(*np.divmod(np.concatenate([ids, unjudged]), ITEM_BASE))] = True
        together = grid.items(is_item)
        labels, repeats = (
            told.set_index(ids).reindex(together["item_id"]).reset_index(drop=True) if len(told) == len(ids) else told
            for told in (labels, repeats)
        )
        items, places = together, _places(together, keys)
    table = table.assign(row=places)
    drawn = is_drawn(table)
    table["inclusion_probability"] = table["inclusion_probability"].where(drawn)
    known = replace(rubric_data, items=items, judged=labels, repeats=repeats, reads=table.iloc[:0])
    drawings = drawings_of(session, table, drawn, known=lambda: known)
    table["inclusion_probability"] = over_all(drawings, table, drawn)
    first = table.loc[drawn & table["stage"].eq(Stage.FIRST)]
    n_items = np.bincount(items["response_id"].to_numpy())  # by the response's number
    n_read = np.bincount(pd.unique(first["item_id"].to_numpy(dtype=np.int64)) // ITEM_BASE, minlength=len(n_items))
    # drawn together: the response where every item of it was, else the item
    is_whole = (n_read == n_items)[table["response_id"].to_numpy(dtype=np.int64)]
    table["unit"] = table["response_id"].where(is_whole, table["item_id"])
    items = items.assign(reachable=reachable(drawings, items["response_id"]))
    return replace(known, items=items, reads=table[list(READ_COLUMNS)])


def _places(items: pd.DataFrame, keys: Numbers) -> Numbers:
    """Which item each key is of; -1: none."""
    numbers = items["item_id"].to_numpy()
    if not len(numbers):
        return np.full(len(keys), -1)
    is_sorted = bool((numbers[1:] > numbers[:-1]).all())
    order = None if is_sorted else np.argsort(numbers, kind="stable")  # nearly: positions follow criteria's numbers
    place = np.searchsorted(numbers, keys, sorter=order).clip(max=len(numbers) - 1)
    place = place if order is None else order[place]
    return np.where(numbers[place] == keys, place, -1)


def _standing() -> list[ColumnElement[bool]]:
    table = TABLES["verdict"].c
    return [table.criterion_id.is_not(None), table.label.is_not(None), not_superseded()]


@dataclass(frozen=True)
class _Grid:
    """A place for every criterion of every response: by response, then by the criterion's position."""

    responses: pd.DataFrame  # what is known of every response, by number
    criteria: pd.DataFrame  # and of every criterion, by example and position

    @cached_property
    def _n_criteria(self) -> tuple[Numbers, Numbers]:
        """Of each response, how many criteria its example has, and where in `criteria` they begin."""
        examples, n_criteria = np.unique(self.criteria["example_id"].to_numpy(), return_counts=True)
        of_example = np.searchsorted(examples, self.responses["example_id"].to_numpy())
        return n_criteria[of_example], (np.cumsum(n_criteria) - n_criteria)[of_example]

    @cached_property
    def _before(self) -> Numbers:
        """Of each response, its first place less where in `criteria` its criteria begin."""
        n_criteria, first = self._n_criteria
        return np.cumsum(n_criteria) - n_criteria - first

    @cached_property
    def _rows(self) -> tuple[Numbers, Numbers]:
        """By number of a response and of a criterion its row; -1: there is none."""
        responses, criteria = self.responses["response_id"].to_numpy(), self.criteria["criterion_id"].to_numpy()
        return _rows_by_number(responses), _rows_by_number(criteria)

    @property
    def n_places(self) -> int:
        return int(self._n_criteria[0].sum())

    def places(self, response_ids: Numbers, criterion_ids: Numbers) -> Numbers:
        """Of each pair its place. OverreadError: the study has no such item."""
        (row_of, place_of), (n_criteria, first) = self._rows, self._n_criteria
        rows, places = row_of.take(response_ids, mode="clip"), place_of.take(criterion_ids, mode="clip")
        within = places - first[rows]
        is_known = (rows >= 0) & (within >= 0) & (within < n_criteria[rows])
        is_known &= (response_ids < len(row_of)) & (criterion_ids < len(place_of))
        if not is_known.all():
            unknown = np.flatnonzero(~is_known)
            one = f"first of response {response_ids[unknown[0]]} and criterion {criterion_ids[unknown[0]]}"
            msg = f"table verdict: expected labels of items of the study alone, got labels of {len(unknown):,} others, {one}: the database is damaged"
            refuse(msg)
        return self._before[rows] + places

    def items(self, is_item: Truths) -> pd.DataFrame:
        """The places that are items, with all that is known of each."""
        n_items = self._n_criteria[0]
        of_criterion = np.arange(len(is_item))
        of_criterion -= np.repeat(self._before, n_items)  # in place, here and below: memory comes slowly
        if not is_item.all():
            of_criterion = of_criterion[is_item]
            n_items = np.diff(np.cumsum(is_item)[np.cumsum(n_items) - 1], prepend=0)
        columns: dict[str, Any] = {str(name): _repeated(self.responses[name], n_items) for name in self.responses}
        columns |= {name: self.criteria[name].array.take(of_criterion) for name in ("criterion_id", *_OF_CRITERION)}
        columns["item_id"] = columns["response_id"] * ITEM_BASE
        columns["item_id"] += columns["criterion_id"]
        named = {name: columns[name] for name in (*ITEM_COLUMNS, *TASK_TAGS) if name in columns}
        return pd.DataFrame(named, copy=False)


def _repeated(column: pd.Series, times: Numbers) -> Any:
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = np.repeat(column.cat.codes.to_numpy(), times)
        return pd.Categorical.from_codes(codes, dtype=column.dtype, validate=False)
    return np.repeat(column.to_numpy(), times)


def _rows_by_number(numbers: Numbers) -> Numbers:
    row_of = np.full(1 + int(numbers.max(initial=0)), -1, dtype=np.int64)
    row_of[numbers] = np.arange(len(numbers))
    return row_of


def _grid(session: Session) -> _Grid:
    example, criterion = (TABLES[name].c for name in ("example", "criterion"))
    named = criterion.id.label("criterion_id"), criterion.example_id, *(criterion[name] for name in _OF_CRITERION)
    words = dict.fromkeys(("axis", "level", "cluster"), object)
    criteria = plain_frame(
        session, select(*named).order_by(criterion.example_id, criterion.position), {"points": float} | words
    )
    kinds: dict[str, Any] = {
        "criterion_id": np.int32,
        "position": np.int32,
        "points": float,
        **dict.fromkeys(words, "category"),
    }
    criteria = criteria.astype(dict.fromkeys(words, "str")).astype(kinds)
    n_scored = criteria.groupby("example_id")["points"].count()  # a case of triage has no criteria
    described: list[Any] = [example.id.label("example_id"), *(example[name] for name in _OF_EXAMPLE)]
    examples = frame(session, select(*described))
    if len(tagged := contents.task_tags(session)):  # else no column: every item would carry it
        examples = examples.merge(tagged, on="example_id", how="left")
    model = TABLES["model"].c
    models = frame(session, select(model.id, model.name.label("model")))
    found, evaluations = snapshot.responses(session)
    known = np.isin(found["example_id"], n_scored.index) & np.isin(found["model_id"], models["id"])
    found = {
        name: column[known & np.isin(found["example_id"], examples["example_id"])] for name, column in found.items()
    }
    columns: dict[str, Any] = {"response_id": found["id"].astype(np.int64), "example_id": found["example_id"]}
    columns |= _of(models.set_index("id"), found["model_id"])
    columns |= _of(pd.DataFrame({"evaluation": evaluations}), found["evaluation"])
    n_expected = n_scored.reindex(found["example_id"]).to_numpy()
    columns["n_expected"] = np.where(found["n_criteria"] < 0, n_expected, found["n_criteria"])
    columns |= {name: found[name] for name in ("sample_index", "n_chars")}
    # as short as the database's numbers are: there is one an item; what is multiplied is long
    kinds = dict.fromkeys(columns, np.int32) | {"response_id": np.int64}
    numbered = {name: column.astype(kinds[name]) for name, column in columns.items() if isinstance(column, np.ndarray)}
    responses = pd.DataFrame(columns | numbered | _of(examples.set_index("example_id"), found["example_id"]))
    return _Grid(responses, criteria)


def _of(table: pd.DataFrame, numbers: Numbers) -> dict[str, pd.Categorical]:
    """The names of these rows of a small table, as categories: those that occur."""
    rows = table.index.get_indexer(pd.Index(numbers))
    occurring = np.flatnonzero(np.bincount(rows, minlength=len(table)))
    place = np.zeros(len(table), dtype=np.int64)
    place[occurring] = np.arange(len(occurring))
    return {str(name): table[name].iloc[occurring].astype("category").array.take(place[rows]) for name in table}


def reads(session: Session) -> pd.DataFrame:
    """Physicians' standing verdicts, one a reader, item and stage."""
    rater = TABLES["rater"].c
    named = select(rater.id, rater.name.label("rater"), rater.person_id).where(rater.kind == RaterKind.REVIEWER)
    reviewers, read = frame(session, named).set_index("id"), snapshot.reads(session)
    by = reviewers.index.get_indexer(pd.Index(read["rater_id"]))
    rows = {name: column[by >= 0] for name, column in read.items()}
    by = by[by >= 0]
    words: dict[str, tuple[str, ...]] = {"stage": snapshot.STAGES, "selection": snapshot.SELECTIONS}
    coded = {name: pd.Categorical.from_codes(rows[name], pd.Index(of)) for name, of in words.items()}
    whole = {
        name: rows[name].astype(np.int64)
        for name in ("verdict_id", "example_id", "response_id", "criterion_id", "rater_id")
    }
    return pd.DataFrame(
        whole
        | coded
        | {name: column.array.take(by) for name, column in reviewers.items()}
        | {
            "blinded": _TRUTHS[rows["blinded"]],
            "inclusion_probability": rows["inclusion_probability"].astype(float),
            "label": pd.Categorical.from_codes(_LABELS[rows["code"]], pd.Index([word.value for word in MET])),
            "item_id": whole["response_id"] * ITEM_BASE + whole["criterion_id"],
            "met": _VALUES[rows["code"] + 1].astype(float),
        }
    ).astype({"blinded": object, "rater": object})


def response_sums(session: Session) -> pd.DataFrame:
    """Points by response and judge; of several prompts that with the most labels on the response counts, of equals the newest, no repeat.

    One row each, by example, response and judge: achieved and possible (points), n_judged (labels with points but for "cannot assess"), n_expected.
    """
    criterion, rater, model = (TABLES[name].c for name in ("criterion", "rater", "model"))
    criteria = frame(session, select(criterion.id, criterion.example_id, criterion.points)).astype({"points": float})
    judges = frame(session, select(rater.id, rater.name).where(is_judge())).set_index("id")["name"]
    models = frame(session, select(model.id, model.name)).set_index("id")["name"]
    found, _ = snapshot.responses(session)
    n_scored = criteria.groupby("example_id")["points"].count().reindex(found["example_id"]).to_numpy()
    expected = np.where(found["n_criteria"] < 0, n_scored, found["n_criteria"])
    points_of, row_of = _values_by_number(criteria["id"], criteria["points"]), _rows_by_number(found["id"])
    sums: dict[int, npt.NDArray[np.float64]] = {}  # by judge: achieved, possible, labels, and labels of any criterion
    for part in snapshot.verdicts(session):
        rows, points, labels = row_of[part["response_id"]], points_of[part["criterion_id"]], _VALUES[part["code"] + 1]
        has_points = ~np.isnan(points)
        adds = points * (labels == 1), points.clip(0), ~np.isnan(labels)
        columns = [*(np.where(has_points, column, 0.0) for column in adds), np.ones(len(rows))]
        for number in np.flatnonzero(np.bincount(part["rater_id"])).tolist():
            mine = part["rater_id"] == number
            if number in judges.index:
                of = sums.setdefault(number, np.zeros((len(columns), len(found["id"]))))
                first, last = rows[mine].min(), rows[mine].max() + 1
                for whole, column in zip(of, columns, strict=True):
                    whole[first:last] += np.bincount(rows[mine] - first, column[mine], last - first)
    tables = [pd.DataFrame(columns=["example_id", "response_id", "model", "judge", *_SUMS, "n_expected", "rater_id"])]
    for number, of in sorted(sums.items()):
        rows = np.flatnonzero(of[-1])
        columns_of: dict[str, Any] = {"example_id": found["example_id"][rows], "response_id": found["id"][rows]}
        columns_of |= {"model": models.loc[found["model_id"][rows]].to_numpy(), "judge": judges[number]}
        columns_of |= dict(zip(_SUMS, of[:-1, rows], strict=True))
        tables.append(pd.DataFrame(columns_of | {"n_expected": expected[rows], "rater_id": number}))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    if table["judge"].nunique() < len(sums):  # several prompts of one judge
        table = table.sort_values(["n_judged", "rater_id"], kind="stable")
        table = table.drop_duplicates(["response_id", "judge"], keep="last")
    order = ["example_id", "response_id", "rater_id"]
    return (
        table.sort_values(order, ignore_index=True)
        .drop(columns="rater_id")
        .astype(dict.fromkeys(("example_id", "response_id", "n_judged"), np.int64))
    )


def _values_by_number(numbers: pd.Series, values: pd.Series) -> npt.NDArray[np.float64]:
    found = np.full(1 + int(numbers.max()) if len(numbers) else 1, np.nan)
    found[numbers] = values
    return found


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
    made = frame(session, ours, ["response_id", "person_id"]).dropna().astype(np.int64)
    here = pd.Series(np.isin(_pairs(reads), _pairs(made)), index=reads.index)
    read, asked = (set(reads.loc[mask, "response_id"].unique().tolist()) for mask in (here & is_drawn, is_drawn))
    drawings = list(_assigned(session, read, ask, known, asked))
    brought = reads.loc[is_drawn & ~here]
    if len(brought):
        rows = population
        if rows is None:
            found, names = snapshot.responses(session)
            rows = pd.DataFrame(
                {"id": found["id"], "dataset": pd.Categorical.from_codes(found["evaluation"], pd.Index(names))}
            )
        same = rows.loc[rows["id"].isin(brought["response_id"])]
        of_reads = pd.Index(brought["response_id"].unique())
        gone = np.sort(of_reads[~of_reads.isin(same["id"])])
        fits = np.append(rows.loc[rows["dataset"].isin(same["dataset"].unique()), "id"], gone).astype(np.int64)
        by_response, by_item = (
            brought.groupby(name)["inclusion_probability"].max() for name in ("response_id", "item_id")
        )
        drawings.append(Drawing(by_response, len(by_response) / len(fits), fits, by_item))
    return drawings


def _pairs(table: pd.DataFrame) -> Numbers:
    """Response and person as one number; below 0 where either is missing."""
    response, person = (table[name].fillna(-1).to_numpy(dtype=np.int64) for name in ("response_id", "person_id"))
    return np.where((response < 0) | (person < 0), -1, response << _PERSON_BITS | person)


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


def _fits(session: Session, chosen_by: dict[str, Any], ask: Ask) -> Numbers | None:
    if _is_list(chosen_by):
        return None
    if "plan" in chosen_by:  # drawn by `planning`
        response, model = (TABLES[name].c for name in ("response", "model"))
        statement = select(response.id).join(Model, model.id == response.model_id)
        named = model.name.in_(chosen_by["models"]), response.dataset == chosen_by["evaluation"]
        return np.array(session.connection().execute(statement.where(*named)).scalars().all(), dtype=np.int64)
    words = {name: value for name, value in chosen_by.items() if name not in ("reads", EXTENDS)}
    if not words:
        return None
    fitting = assignment_queries.responses(session, Filters(**words), with_rubric=ask is Ask.RUBRIC)
    return np.array([response for _, response in fitting if response is not None], dtype=np.int64)

"""With which probability something came to be read, over all the drawings that could have taken it."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import and_, func, select
from sqlmodel import Session, col

from evalcore.reading import assignment_queries
from evalcore.rubric.data import RubricData
from evalcore.rubric.recipes import by_recipe
from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, Filters
from evalcore.study.frames import frame
from evalcore.study.schema import Ask, ReadingState, Selection
from evalcore.study.tables import TABLES, Assignment, Model, Reading


@dataclass(frozen=True)
class Drawing:
    """One drawing of responses, as far as it is read.

    Attributes:
        drawn: Probability of each response that was drawn, by response_id.
        share: Probability of one that was not drawn.
        fits: Responses that could have been drawn; None: any.
        items: Probability of items where each had its own, by item_id.
        others: Probability of responses that were not drawn, where each had its own, by response_id.
    """

    drawn: pd.Series
    share: float
    fits: frozenset[int] | None
    items: pd.Series | None = None
    others: pd.Series | None = None

    def could_take(self, response_ids: pd.Series) -> pd.Series:
        """Which responses had a chance."""
        return response_ids.notna() if self.fits is None else response_ids.isin(list(self.fits))

    def probability(self, reads: pd.DataFrame) -> pd.Series:
        """Of each read item, to be drawn here."""
        share = pd.Series(self.share, index=reads.index).where(self.could_take(reads["response_id"]), 0.0)
        own = reads["response_id"].map(self.drawn)
        if self.others is not None:
            own = own.fillna(reads["response_id"].map(self.others))
        return (own if self.items is None else reads["item_id"].map(self.items).fillna(own)).fillna(share)


def over_all(drawings: Sequence[Drawing], reads: pd.DataFrame, is_drawn: pd.Series) -> pd.Series:
    """The probability that a read item was drawn by any drawing: 1 - product of (1 - p) over the drawings.

    Items drawn one time after another each keep the probability of their own drawing, from those that were left then. Added up
    over two drawings, such probabilities count the whole twice; over all drawings together they do not. Of a drawing that is not read to
    its end the share that is read counts, since readers go through it in random order. Exact for random drawings, and for those that were drawn
    by importance here, whose stored recipe gives what was not drawn its own probability; of a plan that came as a file, what it did not name is given the
    plan's mean probability, and so is what an import did not bring.

    Returns:
        The probability in (0, 1], by the index of `reads` (with response_id and item_id); missing where a read was not drawn.
    """
    missed = pd.Series(1.0, index=reads.index)
    for drawing in drawings:
        missed *= 1 - drawing.probability(reads)
    return (1 - missed).where(is_drawn & missed.lt(1)).clip(upper=1.0)


def reachable(drawings: Sequence[Drawing], response_ids: pd.Series) -> pd.Series:
    """Which responses any drawing could have taken: reads stand for these, and for no others."""
    reached = pd.Series(data=False, index=response_ids.index)
    for drawing in drawings:
        reached |= drawing.could_take(response_ids)
    return reached


def load(
    session: Session,
    reads: pd.DataFrame,
    is_drawn: pd.Series,
    *,
    ask: Ask = Ask.RUBRIC,
    population: pd.DataFrame | None = None,
    known: Callable[[], RubricData] | None = None,
) -> list[Drawing]:
    """The drawings for one question that anything was read from: those made here, oldest first, and what imports brought, as one.

    Reads have response_id, item_id, person_id and inclusion_probability (missing where not drawn). `population` has the responses that could be asked
    about (id, dataset; None: every response, read here). `known` gives what judges say of every item: a drawing by importance is made again from it,
    where something was read that it did not draw; None: that has its mean probability.
    """
    here = _read_here(session, reads, ask)
    read, asked = (set(reads.loc[mask, "response_id"]) for mask in (here & is_drawn, is_drawn))
    drawings = list(_assigned(session, read, ask, known, asked))
    brought = reads.loc[is_drawn & ~here]
    if len(brought):
        response = TABLES["response"].c
        rows = frame(session, select(response.id, response.dataset)) if population is None else population
        evaluations = rows.loc[rows["id"].isin(brought["response_id"]), "dataset"].unique()
        fits = frozenset(rows.loc[rows["dataset"].isin(evaluations), "id"]) | set(brought["response_id"])
        by_response = brought.groupby("response_id")["inclusion_probability"].max()
        by_item = brought.groupby("item_id")["inclusion_probability"].max()
        drawings.append(Drawing(by_response, len(by_response) / len(fits), fits, by_item))
    return drawings


def unread(session: Session, *, known: RubricData | None = None) -> pd.DataFrame:
    """The responses that were drawn here, in a drawing of which anything is read, and that nobody has read.

    Returns:
        response_id, and inclusion_probability over all these drawings, scaled as that of the reads is (`over_all`). A drawing that nobody has
        begun is no part of any estimate, and none of this.
    """
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
    """Responses that a drawing here took for this question, as far as its reading has come, whatever else they were chosen for.

    A drawing is read in random order: those that stand before the last one read stand for the rest, and so does a read of one of them that was made
    since somebody had chosen it.
    """
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
        .where(
            col(Assignment.ask) == ask,
            col(Assignment.selection) != Selection.VOLUNTEERED,
            task.response_id.is_not(None),
        )
    )
    return frozenset(session.connection().execute(statement).scalars())


def _assigned(
    session: Session, read: set[int], ask: Ask, known: Callable[[], RubricData] | None, asked: set[int] | None = None
) -> Iterator[Drawing]:
    """The drawings made here from which any of these responses was read. What somebody chose, also for what physicians had said of it, was not drawn.

    `asked` are the responses whose probabilities will be asked for; None: any.
    """
    labels = None if known is None else cache(known)
    task = TABLES["task"].c
    named = (task.assignment_id, task.response_id, task.inclusion_probability)
    tasks = frame(session, select(*named).where(task.response_id.is_not(None)))
    for row in session.connection().execute(
        select(col(Assignment.id), col(Assignment.n_population), col(Assignment.chosen_by))
        .where(col(Assignment.ask) == ask, col(Assignment.selection) != Selection.VOLUNTEERED)
        .order_by(col(Assignment.id))
    ):
        chosen_by = json.loads(row.chosen_by)
        drawn = tasks.loc[tasks["assignment_id"].eq(row.id)].set_index("response_id")["inclusion_probability"]
        n_read = int(drawn.index.isin(list(read)).sum())
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
    """Which responses a drawing was made from. What was read by then is no part of it: it had its own drawing."""
    if _is_list(chosen_by):
        return None
    if "plan" in chosen_by:  # drawn by `planning`
        response, model = (TABLES[name].c for name in ("response", "model"))
        statement = select(response.id).join(Model, model.id == response.model_id)
        named = model.name.in_(chosen_by["models"]), response.dataset == chosen_by["evaluation"]
        return frozenset(session.connection().execute(statement.where(*named)).scalars())
    words = {name: value for name, value in chosen_by.items() if name != "reads"}
    if not words:
        return None
    fitting = assignment_queries.responses(session, Filters(**words), with_rubric=ask is Ask.RUBRIC)
    return frozenset(response for _, response in fitting if response is not None)


def _read_here(session: Session, reads: pd.DataFrame, ask: Ask) -> pd.Series:
    """Which reads were made on the Review page, so that their probability is that of their task."""
    task, reading = (TABLES[name].c for name in ("task", "reading"))
    asked = select(col(Assignment.id)).where(col(Assignment.ask) == ask)
    statement = select(task.response_id, reading.person_id).join(Reading, reading.task_id == task.id)
    statement = statement.where(task.assignment_id.in_(asked))
    made = {(row[0], row[1]) for row in session.connection().execute(statement)}
    pairs = zip(reads["response_id"], reads["person_id"], strict=True)
    return pd.Series(np.fromiter((pair in made for pair in pairs), dtype=bool, count=len(reads)), index=reads.index)

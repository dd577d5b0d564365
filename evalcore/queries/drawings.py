"""With which probability something came to be read, over all the drawings that could have taken it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session, SQLModel, col

from evalcore.queries import candidates
from evalcore.queries.browse import Filters
from evalcore.queries.frames import frame
from evalcore.review_tables import Assignment, Reading
from evalcore.schema import Ask
from evalcore.tables import Response


@dataclass(frozen=True)
class Drawing:
    """One drawing of responses.

    Attributes:
        drawn: Probability of each response that was drawn, by response_id.
        share: Probability of one that was not drawn.
        fits: Responses that could have been drawn; None: any.
    """

    drawn: pd.Series
    share: float
    fits: frozenset[int] | None


def over_all(session: Session, reads: pd.DataFrame, is_drawn: pd.Series) -> pd.Series:
    """The probability that a read item was drawn by any drawing: 1 - product of (1 - p) over the drawings.

    Items drawn one time after another each keep the probability of their own drawing, from those that were left then. Added up
    over two drawings, such probabilities count the whole twice; over all drawings together they do not. Of a drawing that is not read to
    its end the share that is read counts, since readers go through it in random order. Exact for random drawings; of one by a plan,
    what the plan did not name is given the plan's mean probability, and so is what an import did not bring.

    Args:
        session: Where to read.
        reads: With response_id, person_id, stage and inclusion_probability (missing where not drawn).
        is_drawn: Which of them were drawn.

    Returns:
        The probability in (0, 1], by the index of `reads`; missing where a read was not drawn.
    """
    here = _read_here(session, reads)
    assigned = list(_assigned(session, set(reads.loc[here & is_drawn, "response_id"])))
    own = reads["inclusion_probability"]
    missed = pd.Series(1.0, index=reads.index)
    for drawing in assigned:
        probability = reads["response_id"].map(drawing.drawn)
        fits = (
            reads["response_id"].isin(list(drawing.fits)) if drawing.fits is not None else reads["response_id"].notna()
        )
        missed *= 1 - probability.fillna(pd.Series(drawing.share, index=reads.index).where(fits, 0.0))
    brought = reads.loc[is_drawn & ~here]
    if len(brought):
        n_responses = int(session.connection().execute(select(func.count()).select_from(Response)).scalar_one())
        share = brought["response_id"].nunique() / max(n_responses, 1)
        by_response = brought.groupby("response_id")["inclusion_probability"].max()
        imported = own.where(is_drawn & ~here).fillna(reads["response_id"].map(by_response)).fillna(share)
        missed *= 1 - imported
    return (1 - missed).where(is_drawn).clip(upper=1.0)


def _assigned(session: Session, read: set[int]) -> Iterator[Drawing]:
    """The drawings that were made here for reading of rubrics, oldest first, as far as they are read."""
    task = SQLModel.metadata.tables["task"].c
    named = (task.assignment_id, task.response_id, task.inclusion_probability)
    tasks = frame(session, select(*named).where(task.response_id.is_not(None)))
    for row in session.connection().execute(
        select(col(Assignment.id), col(Assignment.n_population), col(Assignment.chosen_by))
        .where(col(Assignment.ask) == Ask.RUBRIC)
        .order_by(col(Assignment.id))
    ):
        drawn = tasks.loc[tasks["assignment_id"].eq(row.id)].set_index("response_id")["inclusion_probability"]
        n_read = int(drawn.index.isin(list(read)).sum())
        if n_read:
            share = n_read / max(row.n_population, 1)
            yield Drawing(drawn * (n_read / len(drawn)), share, _fits(session, json.loads(row.chosen_by)))


def _fits(session: Session, chosen_by: dict[str, Any]) -> frozenset[int] | None:
    """Which responses a drawing was made from. What was read by then is no part of it: it had its own drawing."""
    if "plan" in chosen_by:
        return None
    words = {name: value for name, value in chosen_by.items() if name != "reads"}
    if not words:
        return None
    found = candidates.responses(session, Filters(**words), with_rubric=True)
    return frozenset(response for _, response in found if response is not None)


def _read_here(session: Session, reads: pd.DataFrame) -> pd.Series:
    """Which reads were made on the Review page, so that their probability is that of their task."""
    task, reading = (SQLModel.metadata.tables[name].c for name in ("task", "reading"))
    statement = select(task.response_id, reading.person_id).join(Reading, reading.task_id == task.id)
    made = {(row[0], row[1]) for row in session.connection().execute(statement)}
    pairs = zip(reads["response_id"], reads["person_id"], strict=True)
    return pd.Series(np.fromiter((pair in made for pair in pairs), dtype=bool, count=len(reads)), index=reads.index)

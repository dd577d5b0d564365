"""Physicians' blind first reads beside the judges' labels, and what became of them after the reveal."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, Select, Subquery, and_, case, exists, func, or_, select
from sqlmodel import Session

from evalcore.reading.queries import shown_judges
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import RubricData, is_drawn
from evalcore.rubric.drawings import over_all
from evalcore.study import contents, snapshot
from evalcore.study.frames import ITEM_BASE, frame, is_read, not_superseded
from evalcore.study.schema import Ask, RaterKind, ReadingState, Stage
from evalcore.study.tables import TABLES, alias

WORDS = (
    "rater", "label", "selection", "judge", "judge_label", "axis", "level", "cluster", "theme", "revised_label", "looked_label",
)  # fmt: skip
LOOK = ["response_id", "criterion_id", "rater_id"]
_READ = (
    "verdict_id", "example_id", "response_id", "criterion_id", "rater_id", "label", "selection", "inclusion_probability", "rater", "person_id",
)  # fmt: skip


def blind_reads(
    session: Session, judge: str | None = None, *, known: Callable[[], RubricData] | None = None
) -> pd.DataFrame:
    """Standing blind first reads of criteria, each beside one judge's standing label on the same item; without `judge` once beside each judge.

    `known` gives what judges say of every item (`rubric.queries.judged`), where that is kept; None: read here, if drawings ask for it.

    Returns:
        One row a first read and judge: `WORDS` and numbers of the item; judge_label (missing where this judge has none), inclusion_probability (over all
        drawings; NaN where not drawn), revised_label (the reader's standing `revised` verdict), revealed (this judge's verdicts on the response were shown
        after the lock), decided (nothing waits for keep or revise any more), looked_label (what the reader said on a second look without it), control_share
        (of the criteria that were drawn for one; NaN where there was no such drawing, or it is not done). A read made in Review is revealed once it is locked
        (with such a drawing: done), an imported one where its reader has any `revised` verdict on the response, by the judge that the rules show today.
    """
    return beside_judges(session, blind_firsts(session, known=known), judge)


def blind_firsts(session: Session, *, known: Callable[[], RubricData] | None = None) -> pd.DataFrame:
    """The reads of `blind_reads` by themselves, one row each, for `beside_judges`; which judge was shown stands in shown_judge."""
    verdict, rater = TABLES["verdict"], TABLES["rater"]
    conditions: list[ColumnElement[bool]] = [
        *_at_stage(verdict, Stage.FIRST),
        verdict.c.criterion_id.is_not(None),
        verdict.c.label.is_not(None),
        or_(verdict.c.blinded.is_(None), verdict.c.blinded),
        not_superseded(verdict),
        rater.c.kind == RaterKind.REVIEWER,
    ]
    own = verdict.c.id.label("verdict_id"), *(verdict.c[name] for name in _READ[1:-2])
    of_reviewers = select(*own, rater.c.name.label("rater"), rater.c.person_id).join(
        rater, rater.c.id == verdict.c.rater_id
    )
    firsts = of_reviewers.where(*conditions).subquery("firsts")
    reads = frame(session, _with_outcome(firsts)).sort_values("verdict_id", kind="stable")
    reads = reads.drop_duplicates("verdict_id", keep="last", ignore_index=True)
    reads["item_id"] = reads["response_id"] * ITEM_BASE + reads["criterion_id"]
    drawn = is_drawn(reads)
    reads["inclusion_probability"] = reads["inclusion_probability"].astype(float).where(drawn)
    if drawn.any():
        known = known or partial(rubric_queries.judged, session)
        drawings = rubric_queries.drawings_of(session, reads, drawn, known=known)
        reads["inclusion_probability"] = over_all(drawings, reads, drawn)
    reads = reads.astype({"revealed": bool, "decided": bool})
    reads["shown_judge"] = _shown(session, reads, firsts)
    words = dict.fromkeys((name for name in WORDS if not name.startswith("judge")), "str")
    return reads.drop(columns="person_id").astype({"points": float, "control_share": float, **words})


def _shown(session: Session, reads: pd.DataFrame, firsts: Subquery) -> "pd.Series[Any]":
    """Which judge was shown to the reader, or, where a file brought what was said after it, is shown by the rules of today."""
    shown = reads["shown_judge"].astype(object)
    if (shown.isna() & (reads["revealed"] | reads["decided"])).any():  # else nobody asks, and to find out takes long
        statement = select(shown_judges(select(firsts.c.response_id), contents.rules(session).judge))
        shown = shown.fillna(reads["response_id"].map(frame(session, statement).set_index("response_id")["judge"]))
    return shown


def beside_judges(session: Session, firsts: pd.DataFrame, judge: str | None = None) -> pd.DataFrame:
    """What `blind_firsts` gave beside the labels of one judge, or of each: the table of `blind_reads`."""
    said = snapshot.labels_of_judges(session, firsts["item_id"].to_numpy(dtype=np.int64))
    parts = [
        firsts.assign(
            judge=name,
            judge_label=labels,
            revealed=firsts["revealed"] & firsts["shown_judge"].eq(name),
            decided=firsts["decided"] & firsts["shown_judge"].eq(name),
        )
        for name, labels in said.items()
        if judge in (None, name)
    ]
    reads = pd.concat(parts or [firsts.iloc[:0].assign(judge="", judge_label="")]).drop(columns="shown_judge")
    reads = reads.sort_values("verdict_id", kind="stable", ignore_index=True)
    return reads.astype({"judge": "str", "judge_label": "str"})


def second_looks(session: Session) -> "pd.Series[str]":
    """What was said on each second look without the judge's verdict, before any amendment, by response_id, criterion_id and rater_id."""
    looks = frame(session, select(_looks())).drop_duplicates(LOOK, keep="last")
    return looks.set_index(LOOK)["label"].astype("str")


def _at_stage(verdict: Any, stage: Stage) -> list[ColumnElement[bool]]:
    """A stage of physicians; SQLite uses the index of their reads only where its condition stands in the same words."""
    return [is_read(verdict.c), verdict.c.stage == stage]


def _with_outcome(firsts: Subquery) -> Select[Any]:
    revised, said = (alias("verdict", name) for name in ("revised", "said"))
    criterion, example = TABLES["criterion"], TABLES["example"]
    readings, looks = _readings(), _looks()
    is_revision = *_at_stage(said, Stage.REVISED), said.c.criterion_id.is_not(None), said.c.label.is_not(None)
    of_revisers = select(said.c.response_id, said.c.rater_id).where(*is_revision, not_superseded(said))
    revisers = of_revisers.distinct().subquery("revisers")  # who has revised or kept anything on which response

    def same(table: Any, names: list[str]) -> ColumnElement[bool]:
        return and_(*(table.c[name] == firsts.c[name] for name in names))

    is_revised = revised.c.stage == Stage.REVISED, revised.c.label.is_not(None), not_superseded(revised)
    is_locked, has_revised = readings.c.state.is_not(None), revisers.c.rater_id.is_not(None)
    is_shown = or_(and_(is_locked, readings.c.is_waiting == 0), has_revised & readings.c.state.is_(None))
    is_done = case((readings.c.state == ReadingState.DONE, 1), else_=0)
    joined = (
        firsts.join(criterion, criterion.c.id == firsts.c.criterion_id)
        .join(example, example.c.id == firsts.c.example_id)
        .outerjoin(revised, and_(same(revised, LOOK), *is_revised))
        .outerjoin(readings, same(readings, ["response_id", "person_id"]))
        .outerjoin(looks, same(looks, LOOK))
        .outerjoin(revisers, same(revisers, ["response_id", "rater_id"]))
    )
    return select(
        *(firsts.c[name] for name in _READ),
        *(criterion.c[name] for name in ("points", "axis", "level", "cluster")),
        example.c.theme,
        revised.c.label.label("revised_label"),
        readings.c.judge.label("shown_judge"),
        looks.c.label.label("looked_label"),
        case((readings.c.is_waiting == 0, readings.c.control_share), else_=None).label("control_share"),
        case((is_shown, 1), else_=0).label("revealed"),
        case((is_locked, is_done), (has_revised, 1), else_=0).label("decided"),
    ).select_from(joined)


def _readings() -> Subquery:
    task, reading, assignment = (TABLES[name] for name in ("task", "reading", "assignment"))
    # until the reader asks for it, and while the control is looked at, nothing of the judge is shown
    has_control = reading.c.control_seed.is_not(None) & (reading.c.state != ReadingState.DONE)
    is_waiting = case((or_(reading.c.state == ReadingState.LOCKED, has_control), 1), else_=0)
    return (
        select(
            task.c.response_id,
            reading.c.person_id,
            func.min(reading.c.state).label("state"),
            func.min(reading.c.judge).label("judge"),
            func.max(reading.c.control_share).label("control_share"),
            func.max(is_waiting).label("is_waiting"),
        )
        .join(reading, reading.c.task_id == task.c.id)
        .join(assignment, assignment.c.id == task.c.assignment_id)
        .where(assignment.c.ask == Ask.RUBRIC, reading.c.blinded, reading.c.state != ReadingState.READING)
        .group_by(task.c.response_id, reading.c.person_id)
        .subquery("readings")
    )


def _looks() -> Subquery:
    verdict, newer = (alias("verdict", name) for name in ("look", "newer_look"))
    is_last = ~exists(select(newer.c.id).where(newer.c.supersedes == verdict.c.id, newer.c.blinded)).correlate(verdict)
    return (
        select(*(verdict.c[name] for name in (*LOOK, "label")))
        .where(*_at_stage(verdict, Stage.REVISED), verdict.c.blinded, verdict.c.criterion_id.is_not(None), is_last)
        .subquery("looks")
    )

"""Physicians' blind first reads beside the judges' labels, and what became of them after the reveal."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import case, exists, func, or_, select
from sqlmodel import Session

from evalcore.reading.queries import shown_judges
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import RubricData, first_reads, is_drawn
from evalcore.rubric.drawings import over_all
from evalcore.study import contents, snapshot
from evalcore.study.frames import frame, is_read
from evalcore.study.schema import Ask, ReadingState, Stage
from evalcore.study.tables import TABLES, AnySelect, alias

LABELS = ("label", "judge_label", "revised_label", "looked_label")
NAMES = ("rater", "selection", "judge", "axis", "level", "cluster", "theme")
LOOK = ["response_id", "criterion_id", "rater_id"]
_READ = (
    "verdict_id", "example_id", "response_id", "criterion_id", "rater_id", "label", "selection", "inclusion_probability", "rater", "person_id", "item_id",
)  # fmt: skip


def blind_reads(
    session: Session, judge: str | None = None, *, known: Callable[[], RubricData] | None = None
) -> pd.DataFrame:
    """Standing blind first reads of criteria, each beside one judge's standing label on the same item; without `judge` once beside each judge.

    `known` gives what judges say of every item (`rubric.queries.judged`), where that is kept; None: read here, if drawings ask for it.

    Returns:
        One row a first read and judge: `LABELS`, `NAMES` (categories) and numbers of the item; judge_label (missing where this judge has none),
        inclusion_probability (over all drawings; NaN where not drawn), revised_label (the reader's standing `revised` verdict), revealed (this judge's
        verdicts on the response were shown after the lock), decided (nothing waits for keep or revise any more), looked_label (what the reader said on a
        second look without it), control_share (of the criteria that were drawn for one; NaN where there was no such drawing, or it is not done). A read made
        in Review is revealed once it is locked (with such a drawing: done), an imported one where its reader has any `revised` verdict on the response, by
        the judge that the rules show today.
    """
    firsts = blind_firsts(session, known=known)
    return beside_judges(firsts, labels_on(session, firsts), judge)


def blind_firsts(
    session: Session, *, known: Callable[[], RubricData] | None = None, given: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The reads of `blind_reads` by themselves, one row each, for `beside_judges`; which judge was shown stands in shown_judge.

    `given`: `rubric.queries.reads`, where that is kept.
    """
    given = rubric_queries.reads(session) if given is None else given
    reads = first_reads(given)[list(_READ)]
    drawn = is_drawn(reads)
    reads["inclusion_probability"] = reads["inclusion_probability"].where(drawn)
    if drawn.any():
        known = known or partial(rubric_queries.judged, session)
        drawings = rubric_queries.drawings_of(session, reads, drawn, known=known)
        reads["inclusion_probability"] = over_all(drawings, reads, drawn)
    reads = _with_outcome(session, _described(session, reads), given.loc[given["stage"].eq(Stage.REVISED)])
    reads["shown_judge"] = _shown(session, reads)
    kinds = dict.fromkeys(LABELS, "str") | dict.fromkeys((*NAMES, "shown_judge"), "category")
    return reads.drop(columns="person_id").astype({name: kinds[name] for name in kinds if name in reads})


def _described(session: Session, reads: pd.DataFrame) -> pd.DataFrame:
    """With what is known of the criterion and the example; joined here, since SQL sends every name with every read."""
    criterion, example = (TABLES[name].c for name in ("criterion", "example"))
    named = criterion.id.label("criterion_id"), *(criterion[name] for name in ("points", "axis", "level", "cluster"))
    criteria = frame(session, select(*named)).astype({"points": float})
    themes = frame(session, select(example.id.label("example_id"), example.theme))
    return reads.merge(criteria, on="criterion_id").merge(themes, on="example_id")


def _with_outcome(session: Session, reads: pd.DataFrame, revised: pd.DataFrame) -> pd.DataFrame:
    """With what became of each read after the lock; `revised`: the standing revised verdicts."""
    readings = frame(session, _readings()).astype({"response_id": np.int64, "person_id": float})
    labels = revised.drop_duplicates(LOOK, keep="last").set_index(LOOK)["label"].rename("revised_label")
    reads = reads.astype({"person_id": float}).join(labels, on=LOOK)
    reads = reads.merge(readings, on=["response_id", "person_id"], how="left")
    reads = reads.join(second_looks(session).rename("looked_label"), on=LOOK)
    by = ["response_id", "rater_id"]  # who has revised or kept anything on which response
    has_revised = pd.MultiIndex.from_frame(reads[by]).isin(pd.MultiIndex.from_frame(revised[by]))
    by_file, is_open = has_revised & reads["state"].isna(), reads["is_waiting"].eq(0)
    return reads.drop(columns=["state", "is_waiting"]).assign(
        control_share=reads["control_share"].astype(float).where(is_open),
        revealed=is_open | by_file,
        decided=reads["state"].eq(ReadingState.DONE) | by_file,
    )


def _shown(session: Session, reads: pd.DataFrame) -> "pd.Series[Any]":
    """Which judge was shown to the reader, or, where a file brought what was said after it, is shown by the rules of today."""
    shown, verdict = reads["shown_judge"].astype(object), TABLES["verdict"].c
    if (shown.isna() & (reads["revealed"] | reads["decided"])).any():  # else nobody asks, and to find out takes long
        responses = select(verdict.response_id).where(is_read(verdict), verdict.stage == Stage.FIRST)
        statement = select(shown_judges(responses, contents.rules(session).judge))
        shown = shown.fillna(reads["response_id"].map(frame(session, statement).set_index("response_id")["judge"]))
    return shown


def read_marks(session: Session, judge: str | None = None, *, given: pd.DataFrame | None = None) -> pd.DataFrame:
    """Physicians' standing verdicts on criteria beside the judges' labels: the columns of `rubric.queries.reads` (`given`, where that is kept).

    With judge, and judge_label (missing where no judge labelled the item): one row a verdict and judge, by verdict and judge; `judge`: beside this one
    alone; "": beside none.
    """
    marks = rubric_queries.reads(session) if given is None else given
    said = {} if judge == "" else labels_on(session, marks)
    is_labelled = {name: pd.notna(labels) for name, labels in said.items() if judge in (None, name)}
    by_nobody = ~np.logical_or.reduce([np.zeros(len(marks), dtype=bool), *is_labelled.values()])
    beside = [marks.loc[by_nobody].assign(judge=None, judge_label=None)]
    beside += [marks.loc[has].assign(judge=name, judge_label=said[name][has]) for name, has in is_labelled.items()]
    together: pd.DataFrame = pd.concat([part for part in beside if len(part)] or beside[:1])
    together = together.sort_values("verdict_id", kind="stable", ignore_index=True)
    return together.astype({"judge": "str", "judge_label": "str"})


def labels_on(session: Session, firsts: pd.DataFrame) -> dict[str, Any]:
    """By judge, by name: its standing label on the item of each of these reads; None: none."""
    return snapshot.labels_of_judges(session, firsts["item_id"].to_numpy(dtype=np.int64))


def beside_judges(firsts: pd.DataFrame, said: Mapping[str, Any], judge: str | None = None) -> pd.DataFrame:
    """What `blind_firsts` and `labels_on` gave, for one judge, or each: the table of `blind_reads`."""
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
    look, newer = (alias("verdict", name).c for name in ("look", "newer_look"))
    is_last = ~exists(select(newer.id).where(newer.supersedes == look.id, newer.blinded))
    looked = is_read(look), look.stage == Stage.REVISED, look.blinded, look.criterion_id.is_not(None), is_last
    looks = frame(session, select(*(look[name] for name in (*LOOK, "label"))).where(*looked))
    looks = looks.drop_duplicates(LOOK, keep="last")
    return looks.astype(dict.fromkeys(LOOK, np.int64)).set_index(LOOK)["label"].astype("str")


def _readings() -> AnySelect:
    task, reading, assignment = (TABLES[name] for name in ("task", "reading", "assignment"))
    # until the reader asks for it, and while the control is looked at, nothing of the judge is shown
    has_control = reading.c.control_seed.is_not(None) & (reading.c.state != ReadingState.DONE)
    is_waiting = case((or_(reading.c.state == ReadingState.LOCKED, has_control), 1), else_=0)
    return (
        select(
            task.c.response_id,
            reading.c.person_id,
            func.min(reading.c.state).label("state"),
            func.min(reading.c.judge).label("shown_judge"),
            func.max(reading.c.control_share).label("control_share"),
            func.max(is_waiting).label("is_waiting"),
        )
        .join(reading, reading.c.task_id == task.c.id)
        .join(assignment, assignment.c.id == task.c.assignment_id)
        .where(assignment.c.ask == Ask.RUBRIC, reading.c.blinded, reading.c.state != ReadingState.READING)
        .group_by(task.c.response_id, reading.c.person_id)
    )

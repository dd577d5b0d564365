"""`TriageData` of a single case, read in a few milliseconds: for the page of one conversation."""

from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import select
from sqlmodel import Session, col

from evalcore.study.frames import frame, not_superseded, repeats
from evalcore.study.schema import Ask, Format, RaterKind
from evalcore.study.tables import TABLES, Model, Rater
from evalcore.triage.data import (
    CASE_COLUMNS,
    CONFIDENCE_COLUMNS,
    LEVELS,
    NO_LEVEL,
    READ_COLUMNS,
    SAMPLE_COLUMNS,
    VOTE_COLUMNS,
    TriageData,
)


def one_case(session: Session, example_id: int) -> TriageData | None:
    """The case of this example with its panel, its responses, and what judges and physicians say; None where it is no case of triage.

    As `triage.load` would give it, but that a read's inclusion probability is that of its own drawing alone.
    """
    case, example, vote, response = (TABLES[name].c for name in ("acuity_case", "example", "panel_vote", "response"))
    known = select(
        case.example_id, example.prompt_id.label("case_id"), case.source, case.original_label, case.mapped_label,
        case.gold.label("file_gold"), case.method, case.is_edge_case, case.uncertainty, example.language, example.first_words,
    ).join(TABLES["example"], example.id == case.example_id)  # fmt: skip
    cases = frame(session, known.where(case.example_id == example_id))
    if cases.empty:
        return None
    cases["file_gold"] = cases["file_gold"].map(LEVELS).astype(float)
    votes = frame(
        session, select(vote.place, vote.rater, vote.vote).where(vote.example_id == example_id).order_by(vote.place)
    )
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
    said = _said(session, example_id)
    place = pd.Index(samples["response_id"]).get_indexer(said["response_id"].astype(float).fillna(-1).astype(np.int64))
    said = said.assign(row=0, sample=place)
    judged = said.loc[said["rater_kind"].eq(RaterKind.JUDGE) & said["sample"].ge(0)]
    kinds: dict[str, Any] = {"uncertainty": float, "is_edge_case": bool, "source": "category", "method": "category"}
    return TriageData(
        cases=cases[list(CASE_COLUMNS)].astype(kinds),
        votes=votes.assign(row=0, vote=votes["vote"].map(LEVELS).astype(float))[list(VOTE_COLUMNS)],
        samples=samples[list(SAMPLE_COLUMNS)],
        levels=_levels(judged, len(samples)),
        confidence=judged.loc[judged["confidence"].notna(), list(CONFIDENCE_COLUMNS)].reset_index(drop=True),
        reads=said.loc[said["rater_kind"].eq(RaterKind.REVIEWER), list(READ_COLUMNS)].reset_index(drop=True),
        published=pd.DataFrame(columns=["model", "format", "gold", "A", "B", "C", "D"]),
    )


def _said(session: Session, example_id: int) -> pd.DataFrame:
    """Standing verdicts on the case and on its responses."""
    verdict = TABLES["verdict"].c
    named = ("response_id", "label", "stage", "blinded", "selection", "inclusion_probability", "confidence")
    statement = (
        select(
            verdict.id.label("verdict_id"), *(verdict[name] for name in named), col(Rater.name).label("rater"), col(Rater.kind).label("rater_kind"),
        )
        .join(Rater, col(Rater.id) == verdict.rater_id)
        .where(verdict.example_id == example_id, verdict.criterion_id.is_(None), verdict.label.is_not(None), not_superseded())
        .where(verdict.rater_id.not_in(repeats(session)))
        .order_by(verdict.id)
    )  # fmt: skip
    found = frame(session, statement)
    asked = found["response_id"].isna().map({True: Ask.GOLD_ACUITY.value, False: Ask.RESPONSE_ACUITY.value})
    kinds = {"inclusion_probability": float, "confidence": float, "blinded": object, "selection": object}
    return found.assign(asked=asked.astype(object)).astype(kinds)


def _levels(judged: pd.DataFrame, n: int) -> pd.DataFrame:
    columns = {}
    for judge, mine in judged.groupby("rater", sort=True):
        column = np.full(n, np.nan, dtype=np.float32)
        level = mine["label"].map(LEVELS).astype(float).fillna(NO_LEVEL)
        column[mine["sample"].to_numpy()] = level.to_numpy(dtype=np.float32)
        columns[str(judge)] = column
    return pd.DataFrame(columns, index=pd.RangeIndex(n))

"""Everything that one open conversation shows."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import or_, select
from sqlmodel import Session, col

from evalcore.study.frames import frame, not_superseded, repeats
from evalcore.study.schema import CASES, FILE_IMPORTED, RaterKind, Source, Stage
from evalcore.study.tables import TABLES, AuditEvent, Example, ExampleSubset, Model, Rater


@dataclass(frozen=True)
class Opened:
    """One conversation with everything on it.

    Attributes:
        example: Row of the example; `messages` as a list of {role, content}.
        criteria: One row a criterion, in order.
        responses: One row a response: response_id, model, evaluation, sample_index, text, sent_messages.
        verdicts: All standing verdicts with their words, those on the case itself too (response_id missing), and those taken back (label None) of
            open stage; with brought_by: who imported the file that a physician's verdict came with (missing: none did, or the trail does not tell).
    """

    example: dict[str, Any]
    subsets: list[str]
    criteria: pd.DataFrame
    responses: pd.DataFrame
    verdicts: pd.DataFrame

    @property
    def is_case(self) -> bool:
        """Whether it is a case of triage, with a level of care and without a rubric."""
        return bool(self.example["dataset"] == CASES)


def open_example(session: Session, example_id: int) -> Opened | None:
    """Everything about one example; None where there is none of this number."""
    row = session.get(Example, example_id)
    if row is None:
        return None
    response, criterion, verdict = (TABLES[name] for name in ("response", "criterion", "verdict"))
    responses = (
        select(
            response.c.id.label("response_id"),
            col(Model.name).label("model"),
            response.c.dataset.label("evaluation"),
            response.c.sample_index,
            response.c.text,
            response.c.sent_messages,
            response.c.n_criteria,
        )
        .join(Model, col(Model.id) == response.c.model_id)
        .where(response.c.example_id == example_id)
        .order_by(col(Model.name), response.c.dataset, response.c.sample_index)
    )
    verdicts = (
        select(verdict, col(Rater.name).label("rater"), col(Rater.kind).label("rater_kind"))
        .join(Rater, col(Rater.id) == verdict.c.rater_id)
        .where(
            verdict.c.example_id == example_id,
            or_(
                verdict.c.response_id.is_(None),
                verdict.c.response_id.in_(select(response.c.id).where(response.c.example_id == example_id)),
            ),
        )
        .where(verdict.c.rater_id.not_in(repeats(session)))
        .where(not_superseded(), or_(verdict.c.label.is_not(None), verdict.c.stage == Stage.OPEN))
        .order_by(verdict.c.id)
    )
    subsets = select(col(ExampleSubset.subset)).where(col(ExampleSubset.example_id) == example_id)
    rubric = select(criterion).where(criterion.c.example_id == example_id).order_by(criterion.c.position)
    said = frame(session, verdicts).rename(columns={"id": "verdict_id"})
    by_file = said["source_hash"].where(said["rater_kind"].eq(RaterKind.REVIEWER) & said["source"].eq(Source.IMPORT))
    said["brought_by"] = by_file.map(_importers(session, list(by_file.dropna().unique()))).astype(object)
    return Opened(
        example=row.model_dump() | {"messages": json.loads(row.messages)},
        subsets=sorted(session.connection().execute(subsets).scalars()),
        criteria=frame(session, rubric).rename(columns={"id": "criterion_id"}),
        responses=frame(session, responses),
        verdicts=said,
    )


def _importers(session: Session, hashes: Collection[str]) -> dict[str, str]:
    """Who imported the file of a content first, by its hash."""
    if not hashes:
        return {}
    named = or_(*(col(AuditEvent.detail).contains(each) for each in hashes))
    imports = select(col(AuditEvent.actor), col(AuditEvent.detail)).where(
        col(AuditEvent.action) == FILE_IMPORTED, named
    )
    found: dict[str, str] = {}
    for actor, detail in session.connection().execute(imports.order_by(col(AuditEvent.id))):
        for each in hashes:
            if each in detail:
                found.setdefault(each, actor)
    return found

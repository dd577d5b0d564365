"""Which conversations physicians have read for the level of care: that of a response, or that a case needs. No criterion is in it."""

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import col

from evalcore.study.frames import came_later, is_judge, is_read, replaced
from evalcore.study.schema import RaterKind, Stage
from evalcore.study.tables import TABLES, Rater, Response, Verdict


def read(responses: Select[Any] | None, judge: str | None) -> Select[Any]:
    """Examples on which a physician's verdict on a level stands.

    Args:
        responses: Numbers of the only responses that count; None: all of them, and what is said of cases themselves.
        judge: Only responses that this judge has read.
    """
    conditions: list[ColumnElement[bool]] = [_by_physician(Verdict)]
    if responses is not None:
        conditions.append(col(Verdict.response_id).in_(responses))
    if judge is not None:
        conditions.append(_judged(judge))
    return select(col(Verdict.example_id)).where(*conditions)


def unread(responses: Select[Any] | None, judge: str | None) -> Select[Any]:
    """Cases of triage with such a response of which nobody has read the level: of any response, or of the case itself, where all count."""
    cases = TABLES["acuity_case"].c
    found = select(cases.example_id).where(cases.example_id.not_in(read(responses, judge)))
    if responses is not None:
        found = found.where(cases.example_id.in_(responses.with_only_columns(col(Response.example_id))))
    if judge is not None:
        told = select(col(Verdict.example_id)).join(Rater, and_(col(Rater.id) == Verdict.rater_id, is_judge()))
        told = told.where(
            col(Rater.name) == judge, col(Verdict.criterion_id).is_(None), col(Verdict.stage) == Stage.JUDGE
        )
        found = found.where(cases.example_id.in_(told))
    return found


def differ_from_judge(responses: Select[Any] | None, judge: str | None) -> Select[Any]:
    """Examples on which a physician's last word on a response, or what was settled, is another level than a judge's."""
    return read(responses, judge).where(_judged(judge, other_label=True), _last_word(Verdict))


def differ(responses: Select[Any] | None, judge: str | None) -> Select[Any]:
    """Examples on which the last words of two physicians on one response or case differ, and nobody has settled it."""
    other, settled = aliased(Verdict), aliased(Verdict)
    differs = exists(select(col(other.id))).where(
        _same(other, Verdict),
        _by_physician(other),
        col(other.rater_id) != col(Verdict.rater_id),
        col(other.stage) != Stage.ADJUDICATED,
        col(other.label) != col(Verdict.label),
        _last_word(other),
    )
    is_settled = exists(select(col(settled.id))).where(
        _same(settled, Verdict), _by_physician(settled), col(settled.stage) == Stage.ADJUDICATED
    )
    unsettled = col(Verdict.stage) != Stage.ADJUDICATED
    return read(responses, judge).where(unsettled, _last_word(Verdict), differs, ~is_settled)


def _by_physician(one: Any) -> ColumnElement[bool]:
    """A standing verdict of a physician on a level."""
    physicians = select(col(Rater.id)).where(col(Rater.kind) == RaterKind.REVIEWER)
    return and_(
        col(one.criterion_id).is_(None),
        is_read(one),
        col(one.label).is_not(None),
        col(one.rater_id).in_(physicians),
        col(one.id).not_in(replaced()),
    )


def _judged(judge: str | None, *, other_label: bool = False) -> ColumnElement[bool]:
    """A judge, or this one, has read the level of the same response; another level than the physician."""
    said = aliased(Verdict)
    named = [col(Rater.name) == judge] if judge is not None else []
    label = [col(said.label) != col(Verdict.label)] if other_label else []
    return exists(select(col(said.id))).where(
        col(said.response_id) == col(Verdict.response_id),
        col(said.criterion_id).is_(None),
        col(said.stage) == Stage.JUDGE,
        col(said.rater_id).in_(select(col(Rater.id)).where(is_judge(), *named)),
        col(said.id).not_in(replaced()),
        *label,
    )


def _same(other: Any, one: Any) -> ColumnElement[bool]:
    return and_(
        col(other.example_id) == col(one.example_id),
        col(other.response_id).is_not_distinct_from(col(one.response_id)),
        col(other.criterion_id).is_(None),
    )


def _last_word(one: Any) -> ColumnElement[bool]:
    """No later read by the same physician stands: a revised one counts instead of the first."""
    later = aliased(Verdict)
    return or_(
        col(one.stage) == Stage.ADJUDICATED,
        ~exists(select(col(later.id))).where(
            _same(later, one),
            _by_physician(later),
            col(later.rater_id) == col(one.rater_id),
            col(later.stage) != Stage.ADJUDICATED,
            came_later(later, one),
        ),
    )

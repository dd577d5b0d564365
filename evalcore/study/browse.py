"""Find conversations: filters in SQL."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, text
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from evalcore.study.frames import came_later, frame, is_judge, is_read, not_superseded, replaced
from evalcore.study.schema import Format, RaterKind, Stage
from evalcore.study.search_words import postgresql_query, sqlite_query
from evalcore.study.tables import TABLES, Criterion, Example, ExampleSubset, Model, Rater, Response, Verdict


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
    return read(responses, judge).where(_judged(judge, other_label=True), _last_level(Verdict))


def differ(responses: Select[Any] | None, judge: str | None) -> Select[Any]:
    """Examples on which the last words of two physicians on one response or case differ, and nobody has settled it."""
    other, settled = aliased(Verdict), aliased(Verdict)
    differs = exists(select(col(other.id))).where(
        _same(other, Verdict),
        _by_physician(other),
        col(other.rater_id) != col(Verdict.rater_id),
        col(other.stage) != Stage.ADJUDICATED,
        col(other.label) != col(Verdict.label),
        _last_level(other),
    )
    is_settled = exists(select(col(settled.id))).where(
        _same(settled, Verdict), _by_physician(settled), col(settled.stage) == Stage.ADJUDICATED
    )
    unsettled = col(Verdict.stage) != Stage.ADJUDICATED
    return read(responses, judge).where(unsettled, _last_level(Verdict), differs, ~is_settled)


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


def _last_level(one: Any) -> ColumnElement[bool]:
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


OVERRIDDEN, READ, UNREAD, CONFLICTING = "overridden", "read", "unread", "conflicting"
READ_STATES = (OVERRIDDEN, CONFLICTING, READ, UNREAD)
"""What physicians have done with an item: differ from a judge, differ from each other, anything, nothing."""


@dataclass(frozen=True)
class Filters:
    """Which conversations; None asks for nothing.

    The filters on criteria and verdicts (axis, model, judge, label, reads, judges_differ, points) have to hold on one and the
    same item: one criterion of one response.
    Without the others, but for judge and those on responses, reads asks about levels of care as well (`level_reads`).
    Those on responses (model, format, level) have to hold on one response; with a level the judge is the
    one who says it.

    Attributes:
        source: The source of a case of triage, e.g. semigran.
        format: How models were asked about a case: a `Format`.
        level: The level of care that a judge (any, or the one of `judge`) reads out of a response: an `Acuity`, or cannot_assess.
    """

    search: str = ""
    dataset: str | None = None
    subset: str | None = None
    theme: str | None = None
    category: str | None = None
    language: str | None = None
    axis: str | None = None
    model: str | None = None
    judge: str | None = None
    label: str | None = None
    reads: str | None = None
    judges_differ: bool = False
    points_from: int | None = None
    points_to: int | None = None
    source: str | None = None
    format: str | None = None
    level: str | None = None

    def on_items(self) -> bool:
        """Whether any filter asks about items."""
        judge = self.judge if self.level is None else None
        asked = (self.axis, judge, self.label, self.reads, self.points_from, self.points_to)
        return self.judges_differ or any(value is not None for value in asked)

    def on_criteria(self) -> bool:
        """Whether any filter asks about items in a way that a level of care has not: it has no axis and no points, and is not met."""
        return self.judges_differ or any(
            value is not None for value in (self.axis, self.label, self.points_from, self.points_to)
        )

    def on_responses(self) -> bool:
        """Whether any filter asks about responses as a whole."""
        return any(value is not None for value in (self.model, self.format, self.level))

    def on_what_was_said(self) -> bool:
        """Whether what fits may tell what somebody said of a conversation: words are looked for in explanations and notes as well."""
        return self.on_items() or self.on_responses() or bool(self.search.strip())


def examples(session: Session, filters: Filters) -> pd.DataFrame:
    """The conversations that fit, oldest first.

    Returns:
        One row an example: example_id, prompt_id, dataset, theme, category, language, first_words, n_turns, provisional, n_criteria,
        source (of a case of triage; else missing).
    """
    n_criteria = (
        select(func.count())
        .select_from(Criterion)
        .where(col(Criterion.example_id) == col(Example.id))
        .scalar_subquery()
    )
    table, case = TABLES["example"], TABLES["acuity_case"].c
    names = ("prompt_id", "dataset", "theme", "category", "language", "first_words", "n_turns", "provisional")
    statement = select(
        table.c.id.label("example_id"), *(table.c[name] for name in names), n_criteria.label("n_criteria"), case.source
    ).outerjoin(TABLES["acuity_case"], case.example_id == table.c.id)
    for column in ("dataset", "theme", "category", "language"):
        if getattr(filters, column) is not None:
            statement = statement.where(table.c[column] == getattr(filters, column))
    if filters.source is not None:
        statement = statement.where(case.source == filters.source)
    if filters.subset is not None:
        members = select(col(ExampleSubset.example_id)).where(col(ExampleSubset.subset) == filters.subset)
        statement = statement.where(table.c.id.in_(members))
    if filters.search.strip():
        statement = statement.where(table.c.id.in_(_found(session, filters.search)))
    if filters.on_items():
        fits: ColumnElement[bool] = table.c.id.in_(item_pairs(filters).with_only_columns(col(Criterion.example_id)))
        if filters.reads is not None and not filters.on_criteria():
            fits = or_(fits, table.c.id.in_(_level_reads(filters)))
        statement = statement.where(fits)
    elif filters.on_responses():
        response = TABLES["response"].c
        statement = statement.where(table.c.id.in_(select(response.example_id).where(*response_conditions(filters))))
    return frame(session, statement.order_by(table.c.id))


def response_conditions(filters: Filters) -> list[ColumnElement[bool]]:
    """What the filters on responses ask of a row of `response`."""
    conditions: list[ColumnElement[bool]] = []
    if filters.model is not None:
        conditions.append(col(Response.model_id).in_(select(col(Model.id)).where(col(Model.name) == filters.model)))
    if filters.format is not None:
        conditions.append(col(Response.dataset) == Format(filters.format).evaluation)
    if filters.level is not None:
        named = [col(Rater.name) == filters.judge] if filters.judge is not None else []
        judges = select(col(Rater.id)).where(is_judge(), *named)
        said = select(col(Verdict.id)).where(
            col(Verdict.response_id) == col(Response.id),
            col(Verdict.criterion_id).is_(None),
            col(Verdict.stage) == Stage.JUDGE,
            col(Verdict.label) == filters.level,
            col(Verdict.rater_id).in_(judges),
            not_superseded(),
        )
        conditions.append(exists(said.correlate(Response)))
    return conditions


def matching_items(session: Session, filters: Filters, example_id: int) -> set[tuple[int, int]]:
    """The items of one example that the item filters ask for, as pairs (response_id, criterion_id); empty where none asks."""
    if not filters.on_items():
        return set()
    statement = item_pairs(filters).where(col(Criterion.example_id) == example_id)
    return {(row[0], row[1]) for row in session.connection().execute(statement)}


def _found(session: Session, search: str) -> Any:
    """Examples in whose conversation, criteria, responses, explanations or notes every word occurs in one text."""
    if session.get_bind().dialect.name == "sqlite":
        query = sqlite_query(search)
        match = text("SELECT rowid FROM search_text WHERE search_text MATCH :query")
    else:
        query = postgresql_query(search)
        match = text("SELECT rowid FROM search_text WHERE body @@ CAST(:query AS tsquery)")
    entry = TABLES["search_entry"]
    if not query:
        return select(entry.c.example_id).where(text("1 = 0"))
    return select(entry.c.example_id).where(entry.c.id.in_(match.bindparams(query=query)))


def item_pairs(filters: Filters) -> Select[Any]:
    """Items on which the item filters hold, as a statement of pairs (response_id, criterion_id)."""
    beside = col(Criterion.example_id) == col(Response.example_id)
    columns: list[Any] = [col(Response.id), col(Criterion.id)]
    statement = select(*columns).select_from(Response).join(Criterion, beside)
    if filters.axis is not None:
        statement = statement.where(col(Criterion.axis) == filters.axis)
    if filters.points_from is not None:
        statement = statement.where(col(Criterion.points) >= filters.points_from)
    if filters.points_to is not None:
        statement = statement.where(col(Criterion.points) <= filters.points_to)
    statement = statement.where(*response_conditions(filters))
    if (filters.judge is not None and filters.level is None) or filters.label is not None:
        conditions = [col(Verdict.label) == filters.label] if filters.label is not None else []
        statement = statement.where(_given(*conditions, kind=RaterKind.JUDGE, judge=filters.judge))
    if filters.judges_differ:
        statement = statement.where(_differ(RaterKind.JUDGE))
    return statement.where(*_read_state(filters)) if filters.reads is not None else statement


def _read_state(filters: Filters) -> list[ColumnElement[bool]]:
    if filters.reads == UNREAD:
        return [~_given(kind=RaterKind.REVIEWER)]
    if filters.reads == CONFLICTING:
        return [_differ(RaterKind.REVIEWER), ~_given(col(Verdict.stage) == Stage.ADJUDICATED, kind=RaterKind.REVIEWER)]
    if filters.reads == OVERRIDDEN:
        judged, judge = aliased(Verdict), aliased(Rater)
        other = exists().where(
            _same_item(judged),
            col(judged.rater_id) == col(judge.id),
            is_judge(judge),
            *([col(judge.name) == filters.judge] if filters.judge else []),
            col(judged.label) != col(Verdict.label),
            col(judged.id).not_in(replaced()),
        )
        return [_given(other, _last_word(Verdict), kind=RaterKind.REVIEWER)]
    return [_given(kind=RaterKind.REVIEWER)]


_LEVEL_READS = {
    OVERRIDDEN: differ_from_judge,
    CONFLICTING: differ,
    READ: read,
    UNREAD: unread,
}


def _level_reads(filters: Filters) -> Select[Any]:
    """Examples on whose levels of care physicians have done what is asked for."""
    fitting = select(col(Response.id)).where(*response_conditions(filters)) if filters.on_responses() else None
    judge = filters.judge if filters.level is None else None  # else the one who says that level
    return _LEVEL_READS[filters.reads or READ](fitting, judge)


def _same_item(other: type[Verdict], one: type[Verdict] = Verdict) -> ColumnElement[bool]:
    same_response = col(other.response_id) == col(one.response_id)
    return and_(same_response, col(other.criterion_id) == col(one.criterion_id))


def _last_word(one: type[Verdict]) -> ColumnElement[bool]:
    """No later stage of the same physician stands on the item: a revised read counts instead of the first."""
    later = aliased(Verdict)
    return or_(
        col(one.stage) == Stage.ADJUDICATED,
        ~exists(select(col(later.id)))
        .where(
            _same_item(later, one),
            col(later.rater_id) == col(one.rater_id),
            col(later.stage).not_in([Stage.ADJUDICATED, Stage.JUDGE]),
            col(later.label).is_not(None),
            came_later(later, one),
            col(later.id).not_in(replaced()),
        )
        .correlate(one),
    )


def _given(*conditions: ColumnElement[bool], kind: RaterKind, judge: str | None = None) -> ColumnElement[bool]:
    """There is a standing verdict on the item by a rater of this kind that meets the conditions."""
    raters = select(col(Rater.id)).where(_of_kind(kind), *([col(Rater.name) == judge] if judge else []))
    stages = col(Verdict.stage) == Stage.JUDGE if kind is RaterKind.JUDGE else is_read(Verdict)
    given = select(col(Verdict.id)).where(
        col(Verdict.response_id) == col(Response.id),
        col(Verdict.criterion_id) == col(Criterion.id),
        stages,
        col(Verdict.rater_id).in_(raters),
        col(Verdict.label).is_not(None),
        not_superseded(),
        *conditions,
    )
    return exists(given.correlate(Response, Criterion))


def _of_kind(kind: RaterKind) -> ColumnElement[bool]:
    of_kind: ColumnElement[bool] = is_judge() if kind is RaterKind.JUDGE else col(Rater.kind) == kind
    return of_kind


def _differ(kind: RaterKind) -> ColumnElement[bool]:
    """Two raters of this kind have standing verdicts on the item with different labels; adjudications apart."""
    other = aliased(Verdict)
    raters = select(col(Rater.id)).where(_of_kind(kind))
    last_words = [_last_word(Verdict), _last_word(other)] if kind is RaterKind.REVIEWER else []
    differs = select(col(other.id)).where(
        _same_item(other),
        col(other.rater_id) != col(Verdict.rater_id),
        col(other.rater_id).in_(raters),
        col(other.stage) != Stage.ADJUDICATED,
        col(other.label) != col(Verdict.label),
        col(other.id).not_in(replaced()),
        *last_words[1:],
    )
    return _given(
        exists(differs.correlate(Verdict)), col(Verdict.stage) != Stage.ADJUDICATED, *last_words[:1], kind=kind
    )

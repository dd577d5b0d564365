"""Find conversations: filters in SQL."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, exists, false, func, literal_column, or_, select, text, union
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from evalcore.study.corrections.showing import HIDDEN, hides
from evalcore.study.frames import frame, is_judge, is_read, replaced
from evalcore.study.languages import holds, postgresql_query, sqlite_query
from evalcore.study.schema import TASK_TAGS, Format, RaterKind, Stage
from evalcore.study.tables import STORED, TABLES, AnySelect, Criterion, ExampleSubset, Model, Rater, Response, Verdict

if TYPE_CHECKING:
    import pandas as pd

OVERRIDDEN, READ, UNREAD, CONFLICTING = "overridden", "read", "unread", "conflicting"
READ_STATES = (OVERRIDDEN, CONFLICTING, READ, UNREAD)


@dataclass(frozen=True)
class Filters:
    """Which conversations; None asks for nothing.

    The filters on criteria and verdicts (axis, model, judge, label, reads, judges_differ, points) have to hold on one and the same item: one
    criterion of one response. Without the others, but for judge and those on responses, reads asks about levels of care as well.
    Those on responses (model; format, a `Format`; level, an `Acuity` or cannot_assess, by any judge or by `judge`) have to hold on one response.
    A source is one of cases of triage, e.g. semigran. use_case, type, difficulty and specialty are tags of HealthBench Professional.
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
    use_case: str | None = None
    type: str | None = None
    difficulty: str | None = None
    specialty: str | None = None

    def on_items(self) -> bool:
        """Whether any filter asks about items."""
        judge = self.judge if self.level is None else None
        return self.on_criteria() or judge is not None or self.reads is not None

    def on_criteria(self) -> bool:
        """Whether any filter asks about items in a way that a level of care has not: it has no axis and no points, and is not met."""
        chosen = (self.axis, self.label, self.points_from, self.points_to)
        return self.judges_differ or any(value is not None for value in chosen)

    def on_responses(self) -> bool:
        """Whether any filter asks about responses as a whole."""
        return (self.model, self.format, self.level) != (None, None, None)

    def on_what_was_said(self) -> bool:
        """Whether what fits may tell what somebody said of a conversation: words are looked for in explanations and notes as well."""
        return self.on_items() or self.on_responses() or bool(self.search.strip())


def examples(session: Session, filters: Filters) -> "pd.DataFrame":
    """The conversations that fit, a row each, oldest first; source: of a case of triage, else missing."""
    table, case = TABLES["example"], TABLES["acuity_case"].c
    criteria = select(func.count()).select_from(Criterion).where(col(Criterion.example_id) == table.c.id)
    names = ("prompt_id", "dataset", "theme", "category", "language", "first_words", "n_turns", "provisional")
    columns = [table.c.id.label("example_id"), *(table.c[name] for name in names)]
    statement = select(*columns, criteria.scalar_subquery().label("n_criteria"), case.source)
    statement = statement.outerjoin(TABLES["acuity_case"], case.example_id == table.c.id)
    for column in ("dataset", "theme", "category", "language"):
        if getattr(filters, column) is not None:
            statement = statement.where(table.c[column] == getattr(filters, column))
    for kind in TASK_TAGS:
        if (wanted := getattr(filters, kind)) is not None:
            tag = json.dumps(f"{kind}:{wanted}", ensure_ascii=False)  # without it the list is another text
            statement = statement.where(func.replace(table.c.tags, tag, "") != table.c.tags)
    if filters.source is not None:
        statement = statement.where(case.source == filters.source)
    if filters.subset is not None:
        members = select(col(ExampleSubset.example_id)).where(col(ExampleSubset.subset) == filters.subset)
        statement = statement.where(table.c.id.in_(members))
    if filters.search.strip():
        is_sqlite = session.get_bind().dialect.name == "sqlite"
        query = (sqlite_query if is_sqlite else postgresql_query)(filters.search)
        match = text("search_text MATCH :query" if is_sqlite else "body @@ CAST(:query AS tsquery)")
        entry = TABLES["search_entry"].c
        is_entry = entry.id == literal_column("search_text.rowid")  # a list of the numbers would take twice as long
        held = select(entry.example_id).select_from(text("search_text")).where(is_entry)
        held = held.where(match.bindparams(query=query) if query else false())
        statement = statement.where(table.c.id.in_(held))
    if filters.on_items():
        beside = (col(Criterion.example_id) == table.c.id, col(Response.example_id) == table.c.id)
        items = item_pairs(filters).where(*beside).correlate(table)
        if filters.reads is None:
            items = items.offset(0)  # PostgreSQL else compares each conversation with every item that fits
        fits: ColumnElement[bool] = exists(items)  # the first that fits is enough
        if filters.reads is not None and not filters.on_criteria():
            fits = or_(fits, table.c.id.in_(_level_reads(filters)))
        statement = statement.where(fits)
    elif filters.on_responses():
        response = TABLES["response"].c
        statement = statement.where(table.c.id.in_(select(response.example_id).where(*response_conditions(filters))))
    fitting = frame(session, statement.order_by(table.c.id))
    if filters.search.strip() and hides(session.connection()):
        unsaid = _no_longer_said(session, filters.search, set(fitting["example_id"]))
        fitting = fitting.loc[~fitting["example_id"].isin(unsaid)].reset_index(drop=True)
    return fitting


_EXAMPLE, _CRITERION, _RESPONSE, _VERDICT = (TABLES[name].c for name in ("example", "criterion", "response", "verdict"))
_PART = 500  # bound variables in one statement


def conversation_texts(session: Session, numbers: list[int]) -> Iterator[tuple[int, list[str]]]:
    """Conversations with their criteria: the number of each, and its texts, which are searched together."""
    connection, criteria = session.connection(), defaultdict(list)
    statement = select(_CRITERION.example_id, _CRITERION.text).where(_CRITERION.example_id.in_(numbers))
    for number, words in connection.execute(statement.order_by(_CRITERION.id)):
        criteria[number].append(words)
    for number, messages in connection.execute(select(_EXAMPLE.id, _EXAMPLE.messages).where(_EXAMPLE.id.in_(numbers))):
        yield number, [*(turn["content"] for turn in json.loads(messages)), *criteria[number]]


def response_texts(session: Session, which: ColumnElement[bool]) -> Iterator[tuple[int, list[str]]]:
    """Responses with what is said of them: the number of the example of each, and its texts."""
    connection, said = session.connection(), defaultdict(list)
    of_responses = _VERDICT.response_id.in_(select(_RESPONSE.id).where(which))
    given = select(_VERDICT.response_id, _VERDICT.explanation).where(of_responses, _VERDICT.explanation.is_not(None))
    for number, words in connection.execute(given.order_by(_VERDICT.id)):
        said[number].append(words)
    statement = select(_RESPONSE.id, _RESPONSE.example_id, _RESPONSE.text)
    for number, example_id, words in connection.execute(statement.where(which)):
        yield example_id, [words, *said[number]]


def case_texts(session: Session, numbers: list[int] | None = None) -> Iterator[tuple[int, list[str]]]:
    """What is said of conversations themselves (None: of all): whether their level of care is right."""
    which = [] if numbers is None else [_VERDICT.example_id.in_(numbers)]
    of_cases = (_VERDICT.response_id.is_(None), _VERDICT.explanation.is_not(None), *which)
    statement = select(_VERDICT.example_id, _VERDICT.explanation).where(*of_cases)
    for number, words in session.connection().execute(statement):
        yield number, [words]


def _no_longer_said(session: Session, query: str, found: set[int]) -> set[int]:
    stored = {name: STORED[name].c for name in ("criterion", "response", "verdict")}
    hidden = STORED[HIDDEN].c
    less = union(*(
        select(columns.example_id).join(hidden.row_id.table, (hidden.table_name == name) & (hidden.row_id == columns.id))
        for name, columns in stored.items()
    ))  # fmt: skip
    left = sorted(found.intersection(session.connection().execute(less).scalars()))
    unsaid: set[int] = set()
    for start in range(0, len(left), _PART):
        numbers = left[start : start + _PART]
        unsaid |= set(numbers)
        for texts in (conversation_texts, _texts_of_responses, case_texts):  # the shortest first
            unsaid -= {number for number, words in texts(session, sorted(unsaid & set(numbers))) if holds(words, query)}
    return unsaid


def _texts_of_responses(session: Session, numbers: list[int]) -> Iterator[tuple[int, list[str]]]:
    return response_texts(session, _RESPONSE.example_id.in_(numbers))


def response_conditions(filters: Filters) -> list[ColumnElement[bool]]:
    """What the filters on responses ask of a row of `response`."""
    conditions: list[ColumnElement[bool]] = []
    if filters.model is not None:
        conditions.append(col(Response.model_id).in_(select(col(Model.id)).where(col(Model.name) == filters.model)))
    if filters.format is not None:
        conditions.append(col(Response.dataset) == Format(filters.format).evaluation)
    if filters.level is not None:
        level = select(col(Verdict.id)).where(
            col(Verdict.response_id) == col(Response.id),
            col(Verdict.criterion_id).is_(None),
            col(Verdict.label) == filters.level,
            _stands(Verdict, RaterKind.JUDGE, filters.judge),
        )
        conditions.append(exists(level.correlate(Response)))
    return conditions


def matching_items(session: Session, filters: Filters, example_id: int) -> set[tuple[int, int]]:
    """The items of one example that the item filters ask for, as pairs (response_id, criterion_id); empty where none asks."""
    if not filters.on_items():
        return set()
    statement = item_pairs(filters).where(col(Criterion.example_id) == example_id)
    return {(row[0], row[1]) for row in session.connection().execute(statement)}


def item_pairs(filters: Filters) -> AnySelect:
    """Items on which the item filters hold, as a statement of pairs (response_id, criterion_id)."""
    columns: list[Any] = [col(Response.id), col(Criterion.id)]
    statement = select(*columns).select_from(Response)
    if filters.reads in (None, UNREAD):
        statement = statement.join(Criterion, col(Criterion.example_id) == col(Response.example_id))
    else:  # by way of the reads, which are few
        statement = statement.join(Verdict, col(Verdict.response_id) == col(Response.id))
        statement = statement.join(Criterion, col(Criterion.id) == col(Verdict.criterion_id))
        read = _read(_same_item, filters.reads, filters.judge)
        statement = statement.where(_stands(Verdict, RaterKind.REVIEWER), *read)
    if filters.axis is not None:
        statement = statement.where(col(Criterion.axis) == filters.axis)
    if filters.points_from is not None:
        statement = statement.where(col(Criterion.points) >= filters.points_from)
    if filters.points_to is not None:
        statement = statement.where(col(Criterion.points) <= filters.points_to)
    statement = statement.where(*response_conditions(filters))
    if (filters.judge is not None and filters.level is None) or filters.label is not None:
        label = [col(Verdict.label) == filters.label] if filters.label is not None else []
        statement = statement.where(_given(*label, kind=RaterKind.JUDGE, judge=filters.judge))
    if filters.judges_differ:
        statement = statement.where(_given(*_differ(_same_item, RaterKind.JUDGE), kind=RaterKind.JUDGE))
    if filters.reads == UNREAD:
        return statement.where(~_given(kind=RaterKind.REVIEWER))
    return statement


def _given(*conditions: ColumnElement[bool], kind: RaterKind, judge: str | None = None) -> ColumnElement[bool]:
    given = select(col(Verdict.id)).where(
        col(Verdict.response_id) == col(Response.id),
        col(Verdict.criterion_id) == col(Criterion.id),
        _stands(Verdict, kind, judge),
        *conditions,
    )
    return exists(given.correlate(Response, Criterion))


def _level_reads(filters: Filters) -> AnySelect:
    """Examples on whose levels of care physicians have done what is asked for: of the fitting responses, else of cases themselves too."""
    responses = select(col(Response.id)).where(*response_conditions(filters)) if filters.on_responses() else None
    judge = filters.judge if filters.level is None else None  # else the one who says that level
    stands = _stands(Verdict, RaterKind.REVIEWER, is_level=True)
    read = select(col(Verdict.example_id)).where(col(Verdict.criterion_id).is_(None), stands)
    if responses is not None:
        read = read.where(col(Verdict.response_id).in_(responses))
    if judge is not None:
        read = read.where(_judged(_same_level, judge))
    if filters.reads != UNREAD:
        return read.where(*_read(_same_level, filters.reads, judge))
    cases = TABLES["acuity_case"].c
    unread = select(cases.example_id).where(cases.example_id.not_in(read))
    if responses is not None:
        unread = unread.where(cases.example_id.in_(responses.with_only_columns(col(Response.example_id))))
    if judge is not None:
        judged = select(col(Verdict.example_id)).where(
            col(Verdict.criterion_id).is_(None),
            col(Verdict.stage) == Stage.JUDGE,
            col(Verdict.rater_id).in_(_raters(RaterKind.JUDGE, judge)),
        )
        unread = unread.where(cases.example_id.in_(judged))
    return unread


_Same = Callable[[Any, Any], ColumnElement[bool]]


def _same_item(other: Any, one: Any) -> ColumnElement[bool]:
    return and_(col(other.response_id) == col(one.response_id), col(other.criterion_id) == col(one.criterion_id))


def _same_level(other: Any, one: Any) -> ColumnElement[bool]:
    return and_(
        col(other.example_id) == col(one.example_id),
        col(other.response_id).is_not_distinct_from(col(one.response_id)),
        col(other.criterion_id).is_(None),
    )


def _read(same: _Same, reads: str | None, judge: str | None) -> list[ColumnElement[bool]]:
    """What a physician's verdict must be so that its item is overridden or conflicting; of read ones any will do."""
    if reads == OVERRIDDEN:
        return [_judged(same, judge, differs=True), _last_word(same, Verdict)]
    if reads == READ:
        return []
    settled = aliased(Verdict)
    settles = (same(settled, Verdict), _stands(settled, RaterKind.REVIEWER), col(settled.stage) == Stage.ADJUDICATED)
    is_settled = exists(select(col(settled.id)).where(*settles).correlate(Verdict))
    return [*_differ(same, RaterKind.REVIEWER), ~is_settled]


def _raters(kind: RaterKind, name: str | None = None) -> AnySelect:
    chosen = select(col(Rater.id)).where(is_judge() if kind is RaterKind.JUDGE else col(Rater.kind) == kind)
    return chosen if name is None else chosen.where(col(Rater.name) == name)


def _stands(one: Any, kind: RaterKind, name: str | None = None, *, is_level: bool = False) -> ColumnElement[bool]:
    by = col(one.stage) == Stage.JUDGE if kind is RaterKind.JUDGE else is_read(one)
    if is_level:  # by the index of levels: that of reads would be walked with all that is said of criteria
        by = func.coalesce(col(one.stage), "") != Stage.JUDGE
    stands = col(one.label).is_not(None), col(one.id).not_in(replaced())
    return and_(by, col(one.rater_id).in_(_raters(kind, name)), *stands)


def _judged(same: _Same, judge: str | None, *, differs: bool = False) -> ColumnElement[bool]:
    """A judge, or this one, has a verdict on the same item of a response; with another label than the verdict."""
    other = aliased(Verdict)
    on_response = col(other.response_id) == col(Verdict.response_id)
    label = [col(other.label) != col(Verdict.label)] if differs else []
    by_judge = _stands(other, RaterKind.JUDGE, judge)
    statement = select(col(other.id)).where(same(other, Verdict), on_response, by_judge, *label)
    return exists(statement.correlate(Verdict))


def _differ(same: _Same, kind: RaterKind) -> list[ColumnElement[bool]]:
    """The verdict is the last word of its rater, and a later rater's of this kind has another label; adjudications apart."""
    other = aliased(Verdict)
    by_physician = kind is RaterKind.REVIEWER
    differs = select(col(other.id)).where(
        same(other, Verdict),
        _stands(other, kind),
        col(other.rater_id) > col(Verdict.rater_id),  # each pair once
        col(other.stage) != Stage.ADJUDICATED,
        col(other.label) != col(Verdict.label),
        *([_last_word(same, other)] if by_physician else []),
    )
    conditions = [exists(differs.correlate(Verdict)), col(Verdict.stage) != Stage.ADJUDICATED]
    return [*conditions, _last_word(same, Verdict)] if by_physician else conditions


def _last_word(same: _Same, one: Any) -> ColumnElement[bool]:
    """No other read by the same physician counts: one after the first, else the one written last; no time decides, since a clock may step back."""
    later = aliased(Verdict)
    is_first, was_first = col(later.stage) == Stage.FIRST, col(one.stage) == Stage.FIRST
    statement = select(col(later.id)).where(
        same(later, one),
        col(later.rater_id) == col(one.rater_id),
        is_read(later),
        col(later.stage) != Stage.ADJUDICATED,
        col(later.label).is_not(None),
        or_(and_(~is_first, was_first), and_(is_first == was_first, col(later.id) > col(one.id))),
        col(later.id).not_in(replaced()),
    )
    return or_(col(one.stage) == Stage.ADJUDICATED, ~exists(statement.correlate(one)))

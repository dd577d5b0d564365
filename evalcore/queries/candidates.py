"""What could be assigned: responses and cases that fit, and those that are assigned already."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import exists, select
from sqlmodel import Session, SQLModel, col

from evalcore.errors import NotFound, OverreadError
from evalcore.queries.browse import Filters, examples, item_pairs
from evalcore.review_tables import Assignment, Task
from evalcore.schema import Ask
from evalcore.tables import Criterion, Example, Model, Response

Item = tuple[int, int | None]


@dataclass(frozen=True)
class Planned:
    """One line of a plan: an item with the probability, in (0, 1], that it had of being drawn.

    Attributes:
        line: Where it stands in the file; 0: in none.
    """

    prompt_id: str
    model: str | None
    sample_index: int
    probability: float
    dataset: str | None = None
    line: int = field(default=0, compare=False)

    @property
    def place(self) -> str:
        """Where a fault is, in words."""
        return f"plan line {self.line}" if self.line else "plan"


def responses(session: Session, filters: Filters, *, with_rubric: bool) -> list[Item]:
    """Responses that fit, as (example_id, response_id), oldest first.

    Args:
        session: Where to read.
        filters: Which; filters on items have to hold on one criterion of the response.
        with_rubric: Only responses to conversations that have criteria.
    """
    response = SQLModel.metadata.tables["response"]
    fitting = [int(number) for number in examples(session, filters)["example_id"]]
    statement = select(response.c.example_id, response.c.id).where(response.c.example_id.in_(fitting))
    if filters.model is not None:
        named = select(col(Model.id)).where(col(Model.name) == filters.model)
        statement = statement.where(response.c.model_id.in_(named))
    if filters.on_items():
        statement = statement.where(response.c.id.in_(item_pairs(filters).with_only_columns(col(Response.id))))
    if with_rubric:
        statement = statement.where(exists().where(col(Criterion.example_id) == response.c.example_id))
    rows = session.connection().execute(statement.order_by(response.c.example_id, response.c.id))
    return [(row[0], row[1]) for row in rows]


def planned(
    session: Session, plan: Iterable[Planned], *, of_cases: bool, with_rubric: bool = False
) -> list[tuple[Item, float]]:
    """The items that a plan names, with their probabilities.

    Args:
        session: Where to read.
        plan: Its lines.
        of_cases: They name cases, not responses.
        with_rubric: Each has to have criteria.

    Raises:
        NotFound: The study has no such item, or several, or it has no criteria.
        OverreadError: Two lines name one item.
    """
    found: list[tuple[Item, float]] = []
    lines: dict[Item, Planned] = {}
    for line in plan:
        columns: list[Any] = [col(Example.id), col(Response.id)]
        statement = select(*columns).join(Response, col(Response.example_id) == col(Example.id), isouter=of_cases)
        statement = statement.where(col(Example.prompt_id) == line.prompt_id)
        if line.dataset is not None:
            statement = statement.where(col(Example.dataset) == line.dataset)
        if not of_cases:
            statement = statement.where(col(Response.sample_index) == line.sample_index)
            if line.model is not None:
                statement = statement.join(Model, col(Model.id) == col(Response.model_id)).where(
                    col(Model.name) == line.model
                )
        rows: set[Item] = {(row[0], None if of_cases else row[1]) for row in session.connection().execute(statement)}
        which = f"{line.place}: prompt_id {line.prompt_id!r}" + (
            "" if line.model is None else f" by model {line.model!r}"
        )
        if len(rows) != 1:
            msg = f"{which}: {len(rows)} items in the study fit, expected one (model, sample_index and dataset tell which)"
            raise NotFound(msg)
        item = rows.pop()
        if item in lines:
            msg = f"{which} came, which {lines[item].place} names already, expected each item once"
            raise OverreadError(msg)
        if with_rubric and not _has_rubric(session, item[0]):
            msg = f"{which} came, which has no criteria, expected a response with a rubric to read"
            raise NotFound(msg)
        lines[item] = line
        found.append((item, line.probability))
    return found


def _has_rubric(session: Session, example_id: int) -> bool:
    criterion = SQLModel.metadata.tables["criterion"].c
    return (
        session.connection().execute(select(criterion.id).where(criterion.example_id == example_id).limit(1)).first()
        is not None
    )


def assigned(session: Session, ask: Ask) -> set[Item]:
    """Items that are assigned already for the same question."""
    table = SQLModel.metadata.tables["task"]
    statement = (
        select(table.c.example_id, table.c.response_id)
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(col(Assignment.ask) == ask)
    )
    return {(row[0], row[1]) for row in session.connection().execute(statement)}


def languages(session: Session, example_ids: Collection[int]) -> dict[int, str | None]:
    """Language by example; None where it is not known."""
    example = SQLModel.metadata.tables["example"].c
    rows = session.connection().execute(select(example.id, example.language).where(example.id.in_(list(example_ids))))
    return {row[0]: row[1] for row in rows}

"""A study to assign from, and what an assignment left in it."""

import re

import pytest

from evalcore.errors import OverreadError
from evalcore.reading.assigning import Choice, assign
from evalcore.study.schema import Administrator, Ask
from tests import world

LEAD = "Ana Ruiz"
TABLES = ("assignment", "assignment_reader", "task", "audit_event")


# five conversations, the last without a rubric, two models' answers to each: 8 responses with criteria, 10 in all, 5 cases
N_RUBRIC, N_RESPONSES, N_CASES = 8, 10, 5


def assign_responses(engine, numbers, *, actor, ask=Ask.RESPONSE_ACUITY, dry_run=False, **more):
    """Have responses read that somebody chose."""
    choice = Choice(ask=ask, chosen=tuple(dict.fromkeys(numbers)), **more)
    return assign(engine, choice, actor=actor, dry_run=dry_run)


def tasks(small, assignment_id=1):
    """(example, response, place, probability), in the order of reading."""
    return world.rows(
        small.engine,
        "SELECT example_id, response_id, place, inclusion_probability FROM task WHERE assignment_id = :number ORDER BY place",
        number=assignment_id,
    )


def readers(small, assignment_id=1):
    found = world.rows(
        small.engine,
        "SELECT p.name FROM assignment_reader r JOIN person p ON p.id = r.person_id WHERE r.assignment_id = :number",
        number=assignment_id,
    )
    return {name for (name,) in found}


def sizes(small):
    return [world.count(small.engine, table) for table in TABLES]


def refused(small, choice, sentence, *, error=OverreadError):
    """It says so, and nothing is left behind."""
    before = sizes(small)
    with pytest.raises(error, match=re.escape(sentence)):
        assign(small.engine, choice, actor=Administrator(name=LEAD))
    assert sizes(small) == before

"""What reviewers did by their own logs, against what the database holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Engine, text

from evalcore.study.audit.chain import verify
from evalcore.study.db import reading
from evalcore.study.schema import ReadingState


class Said(NamedTuple):
    """An answer: to the criterion of this position, with the reason why it cannot be assessed where one was given."""

    position: int
    label: str
    reason: str | None = None


@dataclass
class Read:
    """One item as its reader saw it.

    Attributes:
        words: The criteria on the screen, by position.
        marks: What was marked, in order; only what the screen then showed.
        revised: Positions at which the reader took the judge's label.
    """

    words: dict[int, str]
    marks: list[Said] = field(default_factory=list)
    is_submitted: bool = False
    revised: list[int] = field(default_factory=list)

    @property
    def last(self) -> dict[int, Said]:
        """By position what was said last."""
        return {said.position: said for said in self.marks}


READINGS = """
    SELECT reading.id, reading.state, task.id AS task, task.example_id, person.name
    FROM reading JOIN task ON task.id = reading.task_id JOIN person ON person.id = reading.person_id ORDER BY reading.id
"""
MARKS = """
    SELECT mark.reading_id AS reading, criterion.position, mark.label, mark.reason
    FROM mark JOIN criterion ON criterion.id = mark.criterion_id ORDER BY mark.id
"""
VERDICTS = """
    SELECT reading.id AS reading, criterion.position, verdict.label, verdict.reason, verdict.stage
    FROM verdict JOIN rater ON rater.id = verdict.rater_id JOIN criterion ON criterion.id = verdict.criterion_id
    JOIN task ON task.response_id = verdict.response_id
    JOIN reading ON reading.task_id = task.id AND reading.person_id = rater.person_id
    WHERE verdict.stage <> 'judge' ORDER BY verdict.id
"""
CRITERIA = "SELECT example_id, position, text FROM criterion"
N_GIVEN = "SELECT count(*) AS n FROM verdict WHERE stage <> 'judge'"


def faults(engine: Engine, reads: Mapping[str, Sequence[Read]], *, n_readers: int) -> list[str]:
    """What was lost, doubled or changed, in sentences; none where all is well.

    Args:
        engine: The study, with an assignment of rubrics, after all have stopped.
        reads: By the reader's name what they read, in order.
        n_readers: How many readers an item gets. More is a fault: no reservation runs out in so short a time.
    """
    readings, marks, verdicts = (_rows(engine, statement) for statement in (READINGS, MARKS, VERDICTS))
    words: dict[int, dict[int, str]] = {}
    for row in _rows(engine, CRITERIA):
        words.setdefault(row.example_id, {})[row.position] = row.text
    found = []
    for name, seen in reads.items():
        mine = [row for row in readings if row.name == name]
        if len(mine) != len(seen):
            found.append(f"{name}: {len(seen)} items were opened, {len(mine)} are stored")
        for row, read in zip(mine, seen, strict=False):
            if read.words != words[row.example_id]:
                found.append(f"{name}, reading {row.id}: other criteria were shown than belong to the item")
            of_reading = [Said(one.position, one.label, one.reason) for one in marks if one.reading == row.id]
            given = [one for one in verdicts if one.reading == row.id]
            found += [f"{name}, reading {row.id}: {what}" for what in _of_reading(read, row.state, of_reading, given)]
    if strangers := {row.name for row in readings} - set(reads):
        found.append(f"readings of people who read nothing: {', '.join(sorted(strangers))}")
    if (n_given := _rows(engine, N_GIVEN)[0].n) != len(verdicts):
        found.append(f"{n_given} verdicts are stored, {len(verdicts)} of them belong to a reading")
    found += [f"item {task} has {n} readers" for task, n in Counter(r.task for r in readings).items() if n > n_readers]
    return found + _trail_faults(engine, reads)


def _of_reading(read: Read, state: str, marks: list[Said], given: list[Any]) -> list[str]:
    """Faults of one reading."""
    found = [f"mark {said} was lost {n} times" for said, n in (Counter(read.marks) - Counter(marks)).items()]
    found += [f"mark {said} is there {n} times more" for said, n in (Counter(marks) - Counter(read.marks)).items()]
    if not found and marks != read.marks:
        found.append("marks are in another order")
    first = [Said(one.position, one.label, one.reason) for one in given if one.stage == "first"]
    wanted = list(read.last.values()) if read.is_submitted else []
    found += [f"first verdict {said} was lost" for said in (Counter(wanted) - Counter(first))]
    found += [f"first verdict {said} is there more often than given" for said in (Counter(first) - Counter(wanted))]
    if read.is_submitted and sorted(read.words) != sorted(read.last):
        found.append("was submitted with a criterion open")
    revised = Counter(one.position for one in given if one.stage == "revised")
    found += [f"revision of {position} was lost" for position in (Counter(read.revised) - revised)]
    found += [
        f"revision of {position} is there more often than given" for position in (revised - Counter(read.revised))
    ]
    if (state != ReadingState.READING) != read.is_submitted:
        found.append(f"{state}, and was {'' if read.is_submitted else 'not '}submitted")
    return found


def _trail_faults(engine: Engine, reads: Mapping[str, Sequence[Read]]) -> list[str]:
    """The chain holds, and tells of each submission and revision once."""
    with reading(engine) as session:
        report = verify(session)
    found = [report.sentence] if report.broken_event is not None else []
    all_reads = [read for seen in reads.values() for read in seen]
    wanted = {
        "first read submitted": sum(read.is_submitted for read in all_reads),
        "read revised": sum(len(read.revised) for read in all_reads),
    }
    counted = {
        row.action: row.n for row in _rows(engine, "SELECT action, count(*) AS n FROM audit_event GROUP BY action")
    }
    return found + [
        f"'{action}' happened {n} times, the trail tells of {counted.get(action, 0)}"
        for action, n in wanted.items()
        if counted.get(action, 0) != n
    ]


def _rows(engine: Engine, statement: str) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(text(statement)))

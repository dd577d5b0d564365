"""Of a practice round: the responses that it can be made of, who practises on which, and how far they are."""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import select
from sqlmodel import Session, col

from evalcore.reading import assignment_queries, queries, read_queries
from evalcore.reading.assignment_queries import Item
from evalcore.reading.conflicts import Key, needing
from evalcore.reading.reference import ADJUDICATED, AGREED, reference_labels
from evalcore.study import contents, frames
from evalcore.study.frames import ITEM_BASE, numbers
from evalcore.study.schema import PRACTISED, RaterKind, Viewer
from evalcore.study.tables import TABLES, Assignment, AssignmentReader, Person

SETTLED = (ADJUDICATED, AGREED)
"""What an adjudicator said, or two readers or more say alike: values of `reference_source`."""
Score = tuple[int, int]  # labels that agreed, of labels compared


class Round(NamedTuple):
    """Somebody's practice before the reads of an assignment: the responses in order, and the score of the first read of each that was read."""

    assignment_id: int
    responses: tuple[int, ...]
    scores: Mapping[int, Score]

    @property
    def left(self) -> list[int]:
        """The responses that wait."""
        return [response for response in self.responses if response not in self.scores]

    @property
    def score(self) -> Score:
        """Over all that was read."""
        return sum(agreed for agreed, _ in self.scores.values()), sum(compared for _, compared in self.scores.values())


def disputed(session: Session) -> set[Key]:
    """Responses and cases on which something waits for an adjudicator."""
    rules = contents.rules(session)
    reads = read_queries.reads(session, judge=rules.judge, with_judge=rules.both_against_judge)
    return {conflict.item[:2] for conflict in needing(reads, rules, seed=contents.study_key(session) or "")}


def settled(session: Session) -> list[Item]:
    """Responses with a text of which every criterion has a settled label (`SETTLED`), oldest first."""
    verdicts = frames.verdicts(session, kind=RaterKind.REVIEWER)
    if verdicts.empty:
        return []
    labels = reference_labels(verdicts)
    is_settled = labels["reference_source"].isin(SETTLED)
    n_settled = (labels.index[is_settled] // ITEM_BASE).value_counts()
    n_criteria = frames.criteria(session).groupby("example_id").size()
    examples = assignment_queries.chosen(session, sorted(map(int, n_settled.index)))
    is_whole = {number: n_settled[number] == n_criteria[example] for number, example in examples.items()}
    return [(example, number) for number, example in sorted(examples.items()) if is_whole[number]]


def met(session: Session, reader: Viewer, examples: Collection[int]) -> set[int]:
    """Conversations that are no practice for somebody: assigned to them, spoken on by them, or (of these) with others' verdicts that they have seen."""
    task = TABLES["task"].c
    mine = select(task.example_id).join(AssignmentReader, col(AssignmentReader.assignment_id) == task.assignment_id)
    assigned = numbers(session, mine.where(col(AssignmentReader.person_id) == reader.person_id).distinct())
    seen = queries.exposed_among(session, [reader.person_id], examples)[reader.person_id]
    return {*assigned, *read_queries.examples_of(session, reader), *seen}


def rounds(session: Session, reader: Viewer) -> dict[int, Round]:
    """Somebody's practice rounds by assignment_id, the oldest first."""
    chosen = {
        number: tuple(by_person[str(reader.person_id)])
        for number, by_person in _chosen(session).items()
        if str(reader.person_id) in by_person
    }
    if not chosen:
        return {}
    scores = _scores(session, actor=reader.name)
    mine = {number: scores.get((reader.name, number), {}) for number in chosen}
    return {number: Round(number, responses, mine[number]) for number, responses in chosen.items()}


def n_left(session: Session, reader: Viewer, assignment_id: int) -> int:
    """How many practice responses wait for somebody before the reads of an assignment."""
    own = rounds(session, reader).get(assignment_id)
    return len(own.left) if own else 0


def progress(session: Session) -> pd.DataFrame:
    """One row a practice round, the newest assignment first: assigned_at, reader, n_responses, n_read, n_agreed, n_compared (labels of first reads)."""
    made: list[Any] = [col(Assignment.id), col(Assignment.created_at)]
    assigned_at = {row[0]: row[1] for row in session.connection().execute(select(*made))}
    person: list[Any] = [col(Person.id), col(Person.name)]
    names = {str(row[0]): row[1] for row in session.connection().execute(select(*person))}
    scores, rows = _scores(session), []
    for number, by_person in sorted(_chosen(session).items(), reverse=True):
        for reader, responses in sorted((names[who], responses) for who, responses in by_person.items()):
            own = Round(number, tuple(responses), scores.get((reader, number), {}))
            rows.append([assigned_at[number], reader, len(responses), len(own.scores), *own.score])
    return pd.DataFrame(rows, columns=["assigned_at", "reader", "n_responses", "n_read", "n_agreed", "n_compared"])


def _chosen(session: Session) -> dict[int, dict[str, list[int]]]:
    """By assignment_id and person_id, the responses to practise on."""
    columns: list[Any] = [col(Assignment.id), col(Assignment.practice)]
    statement = select(*columns).where(col(Assignment.practice).is_not(None)).order_by(col(Assignment.id))
    rows = session.connection().execute(statement)
    return {row[0]: json.loads(row[1]) for row in rows}


def _scores(session: Session, actor: str | None = None) -> dict[tuple[str, int], dict[int, Score]]:
    """By who practised before which assignment, the score of the first read of each response: later ones were made knowing its labels."""
    event = TABLES["audit_event"].c
    statement = select(event.actor, event.detail).where(event.action == PRACTISED).order_by(event.id)
    rows = session.connection().execute(statement if actor is None else statement.where(event.actor == actor))
    scores: dict[tuple[str, int], dict[int, Score]] = {}
    for who, words in rows:
        said = json.loads(words)
        own = scores.setdefault((who, said["assignment"]), {})
        own.setdefault(said["response"], (said["agreed"], said["compared"]))
    return scores

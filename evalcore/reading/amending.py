"""Change an assignment that readers may be at: cancel it, pause it, hand it over, add readers, draw more.

What is locked or done stays and counts, whatever is done here: an estimate knows what was read of a drawing and in which random order, and nothing else. Who
comes in later takes items by the same rules as everybody (`queries.next_task`): in the random order, none that they have read, or seen verdicts on.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime

import numpy as np

from evalcore.errors import AlreadyChanged, NotFound, refuse
from evalcore.reading import assignment_queries, queries, store as reading_store
from evalcore.reading.assigning import (
    EXTENDS,
    MAX_SEED,
    Assigned,
    Choice,
    able_readers,
    assign,
    assignment_of,
    practice_for,
)
from evalcore.reading.threads import check_blind, check_line
from evalcore.stats.wording import counted
from evalcore.study import contents, store
from evalcore.study.acting import allow
from evalcore.study.browse import Filters
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.policies import check_can_amend, check_can_assign
from evalcore.study.schema import Ask, Seen, Selection, Viewer
from evalcore.study.tables import Assignment, now

CANCELLED, PAUSED, RESUMED = "assignment cancelled", "assignment paused", "assignment resumed"
HANDED_OVER, JOINED = "reading handed over", "readers added"


def amended(session: Session, actor: Viewer, number: int) -> Assignment:
    """The first thing in the transaction of an act on an assignment; whoever takes an item at the same time comes before it or after."""
    allow(session, actor, check_can_assign)
    store.wait_for_others(session)
    assignment = assignment_of(session, number)
    check_can_amend(actor, is_cancelled=assignment.cancelled_at is not None)
    return assignment


def _tell(session: Session, assignment: Assignment, action: str, *, actor: Viewer, **detail: object) -> None:
    session.add(assignment)
    session.flush()
    store.written(session).content("assignment", [assignment.id or 0])
    subject = f"assignment {assignment.id}"
    store.append_event(session, actor=actor.signature, action=action, subject=subject, detail=detail)


@dataclass(frozen=True)
class Cancelled:
    """What a cancelled assignment leaves: reads that are locked, reads that were begun (with their marks), and reads that nobody had begun."""

    n_locked: int
    n_begun: int
    n_unread: int

    @property
    def sentence(self) -> str:
        """In words."""
        locked, begun = counted(self.n_locked, "locked read"), counted(self.n_begun, "read")
        return f"{locked} stay and count; {begun} begun, whose readers are told, with their marks kept; {self.n_unread:,} not begun."


def cancel(engine: Engine, number: int, because: str, *, actor: Viewer, at: datetime | None = None) -> Cancelled:
    """Ask nobody for the rest of an assignment. What nobody has read of it may be assigned anew.

    Args:
        because: A line to the readers who have begun something of it, who may read blind: it names no model and no judge.
    """
    because, at = check_line(because, name="Reason"), at or now()
    with writing(engine) as session:
        assignment = amended(session, actor, number)
        check_blind(session, because, name="This reason")
        freed = reading_store.free_readings(session, at, assignment_id=number)
        n_tasks, n_locked = assignment_queries.n_reads(session, number)
        n_unread = max(n_tasks * assignment.n_readers - n_locked - len(freed), 0)
        assignment.cancelled_at, assignment.cancelled_because = at, because
        left = Cancelled(n_locked, len(freed), n_unread)
        told = {"because": because, "locked": n_locked, "begun": len(freed), "unread": n_unread}
        _tell(session, assignment, CANCELLED, actor=actor, **told)
        return left


def pause(engine: Engine, number: int, *, actor: Viewer, at: datetime | None = None) -> None:
    """Hand nothing of an assignment out until it is resumed. What readers have in hand they may finish; to the rest they stay blind."""
    with writing(engine) as session:
        assignment = amended(session, actor, number)
        if assignment.paused_at is not None:
            refuse(f"Assignment {number} is paused already.", AlreadyChanged)
        assignment.paused_at = at or now()
        _tell(session, assignment, PAUSED, actor=actor)


def resume(engine: Engine, number: int, *, actor: Viewer) -> None:
    """Hand an assignment out again."""
    with writing(engine) as session:
        assignment = amended(session, actor, number)
        if assignment.paused_at is None:
            refuse(f"Assignment {number} is not paused: it is handed out already.", AlreadyChanged)
        assignment.paused_at = None
        _tell(session, assignment, RESUMED, actor=actor)


@dataclass(frozen=True)
class Joined:
    """Who reads an assignment from now on, and how many of its items each can take; `n_waiting`: of so many that wait for a reader.

    `without_practice`: who begins without the practice round of the others, since too few settled responses are new to them.
    """

    n_waiting: int
    n_able: tuple[tuple[str, int], ...]
    without_practice: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """In words."""
        items = counted(self.n_waiting, "response that waits", "responses that wait")
        said = [f"{name} can take {n:,} of {items}." for name, n in self.n_able]
        if any(n < self.n_waiting for _, n in self.n_able):
            said.append(
                "The others are in a language that they do not read, or they have read them or seen verdicts on them: "
                "these wait for the other readers."
            )
        return said + [f"{name} begins without practice: too few settled responses are new." for name in self.without_practice]  # fmt: skip


def add_readers(
    engine: Engine, number: int, names: Collection[str], *, actor: Viewer, at: datetime | None = None
) -> Joined:
    """Let more people take the items of an assignment. As many read each item as before."""
    with writing(engine) as session:
        assignment = amended(session, actor, number)
        wanted = _able(session, names)
        present = assignment_queries.readers_of(session, number)
        if already := sorted(person.name for person in wanted if person.person_id in present):
            msg = f"readers: expected people who do not read assignment {number} yet, got {', '.join(already)}"
            raise AlreadyChanged(msg)
        at = at or now()
        without = _join(session, assignment, wanted)
        able = {person.name: len(queries.open_tasks(session, person, number, at)) for person in wanted}
        _tell(session, assignment, JOINED, actor=actor, readers=sorted(person.person_id for person in wanted))
        n_waiting = assignment_queries.n_with_place(session, number, at)
        return Joined(n_waiting, tuple(sorted(able.items())), tuple(without))


def _able(session: Session, names: Collection[str]) -> list[Viewer]:
    if not names:
        refuse("readers: expected one name or more, got none")
    choice = Choice(readers=tuple(names), n_readers=1)
    return able_readers(contents.people(session), choice, contents.rules(session))[0]


def _join(session: Session, assignment: Assignment, people: list[Viewer]) -> list[str]:
    """Whoever joins an assignment that begins with practice begins with it too. Returns who cannot."""
    practice, without = {}, []
    if assignment.practice:
        items = assignment_queries.items(session, assignment.id or 0)
        found, short = practice_for(session, people, items, seed=assignment.seed)
        for person, chosen in found.items():
            reading_store.add_exposures(session, person, Seen.PRACTICE, [example for example, _ in chosen])
            practice[person] = [response for _, response in chosen if response is not None]
        without = [name for name, _ in short]
    reading_store.add_readers(session, assignment, [person.person_id for person in people], practice)
    return without


def hand_over(
    engine: Engine, giver: str, taker: str, *, number: int | None = None, actor: Viewer, at: datetime | None = None
) -> Joined:
    """Give what a reader has not locked of an assignment to another reader: what they have begun, and what would still come to them.

    The giver takes no more of it; what they had begun keeps their marks, which nobody else sees.

    Args:
        number: The assignment; None: each that goes on and has the giver among its readers.
    """
    at = at or now()
    with writing(engine) as session:
        allow(session, actor, check_can_assign)
        store.wait_for_others(session)
        who = next((person for person in contents.people(session, everybody=True) if person.name == giver), None)
        numbers = [] if who is None else assignment_queries.of_reader(session, who.person_id)
        if who is None or (number or 0) not in {0, *numbers} or not numbers:
            which = "an assignment that goes on" if number is None else f"assignment {number}"
            refuse(f"reader: expected one of {which}, got {giver!r}", NotFound)
        (to,) = _able(session, [taker])
        if to.person_id == who.person_id:
            refuse(f"reader: expected another reader than {giver}, got {taker}")
        n_waiting = n_able = 0
        without: set[str] = set()
        for one in numbers if number is None else [number]:
            assignment = amended(session, actor, one)
            waiting = queries.open_tasks(session, who, one, at)
            freed = reading_store.free_readings(session, at, person_id=who.person_id, assignment_id=one)
            reading_store.remove_reader(session, assignment, who.person_id)
            if to.person_id not in assignment_queries.readers_of(session, one):
                without |= {*_join(session, assignment, [to])}
            waiting |= freed.keys()
            able = waiting & queries.open_tasks(session, to, one, at)
            n_waiting, n_able = n_waiting + len(waiting), n_able + len(able)
            told = {"from": who.person_id, "to": to.person_id, "begun": len(freed), "waiting": len(waiting)}
            _tell(session, assignment, HANDED_OVER, actor=actor, **told)
        return Joined(n_waiting, ((to.name, n_able),), tuple(sorted(without)))


def extend(
    engine: Engine, number: int, n_items: int, *, blind: frozenset[int], actor: Viewer, dry_run: bool = False
) -> Assigned:
    """Draw more items with the filters, readers and settings of an assignment: a drawing of its own, of what fits now and is not assigned yet.

    After n of N, m of the other N - n: where nothing else has changed, an item had the probability n/N + (1 - n/N) m/(N - n) = (n + m)/N of one of the two,
    as if n + m had been drawn at once, and the estimators reckon so. The seed follows from that of the assignment, so that nobody chooses it. What was
    drawn by a plan, or chosen, is not drawn on here: plan again (Study, Plan), which knows what is assigned already.

    Args:
        blind: As of `Choice`.
    """
    with reading(engine) as session:
        allow(session, actor, check_can_assign)
        assignment = assignment_of(session, number)
        by = json.loads(assignment.chosen_by)
        if assignment.selection != Selection.RANDOM or "plan" in by:
            refuse(
                f"assignment: expected one that was drawn at random by filters, got {number}, which was chosen or drawn by a plan. "
                "Plan again instead (Study, Plan): that draws among what is not assigned yet."
            )
        people = contents.people(session)
        present = assignment_queries.readers_of(session, number)
        readers = [person.name for person in people if person.person_id in present]
        if len(readers) < assignment.n_readers:
            refuse(
                f"readers: expected at least {assignment.n_readers}, as many as read an item, got {len(readers)} who are let in. "
                "Add readers to the assignment first."
            )
        filters = {field.name: by[field.name] for field in fields(Filters) if field.name in by}
        choice = Choice(
            ask=Ask(assignment.ask),
            filters=Filters(**filters),
            n_items=n_items,
            readers=tuple(readers),
            n_readers=assignment.n_readers,
            seed=extension_seed(assignment.seed, n_before=assignment_queries.n_drawn(session, number)),
            reserve_minutes=assignment.reserve_minutes,
            blind=blind,
            extends=by.get(EXTENDS, number),
        )
    return assign(engine, choice, actor=actor, dry_run=dry_run)


def extension_seed(seed: int, *, n_before: int) -> int:
    """The seed with which more is drawn, after so many items of an assignment and of what extends it: one that follows from the first, and is not it."""
    return int(np.random.default_rng([seed, n_before]).integers(MAX_SEED))


def taken_back_words(taken: list[tuple[int, str | None]]) -> list[str]:
    """What a reader is told whose begun reads a lead took back, as `queries.taken_back` gives it.

    >>> first, second = taken_back_words([(1, "we have enough"), (2, None)])
    >>> first
    'The lead has cancelled 1 response that you had begun: we have enough. Your marks are kept.'
    >>> second
    'The lead has freed 2 responses that you had begun for other readers. Your marks are kept.'
    """
    said = []
    for n, because in taken:
        began = f"{counted(n, 'response')} that you had begun"
        end = "" if because is None or because.endswith((".", "?", "!", "؟", "।", "。", "！", "？")) else "."
        act = f"has freed {began} for other readers." if because is None else f"has cancelled {began}: {because}{end}"
        said.append(f"The lead {act} Your marks are kept.")
    return said

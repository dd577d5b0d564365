"""What a reader does in a test, in a word: takes, marks, decides, finishes; Dr. Imani Noor unless told otherwise."""

from collections.abc import Iterator
from typing import Any

from evalcore.reading import reviewing
from evalcore.reading.assignment_queries import Planned
from evalcore.reading.reviewing import Decision, OpenReview
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import Label, ReadingState, Role, Rules
from tests import world
from tests.world import World, answer, assigned

IMANI, TOVE, THIRD = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. Third"


def _two_responses(url: str) -> Iterator[World]:
    made = world.made(url)
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


def take(small: World, name: str = IMANI, *, at: Any = world.START) -> Any:
    """The desk of the item in hand or of the next one; None where nothing waits."""
    return reviewing.take(small.engine, small.viewer(name), at=at)


def in_hand(small: World, name: str = IMANI, *, at: Any = world.START) -> int | None:
    """The response of the item that a reader has in hand; None where nothing waits."""
    desk = take(small, name, at=at)
    return desk.asked.response_id if desk else None


def mark(
    small: World,
    desk: Any,
    label: Any = Label.MET,
    *,
    item: int = 0,
    name: str = IMANI,
    at: Any = world.START,
    **said: Any,
) -> None:
    """Mark one item of a desk, by its place."""
    reviewing.mark(small.engine, small.viewer(name), desk.reading.id, desk.keys[item], label, at=at, **said)


def at_desk(small: World, number: int, name: str = IMANI) -> OpenReview:
    """The desk of a reading."""
    return reviewing.open_review(small.engine, small.viewer(name), number)


def decide(
    small: World, number: int, key: int | None, decision: Decision, *, seen: int | None = None, name: str = IMANI
) -> int:
    """Keep or revise one item of a locked read."""
    return reviewing.revise(small.engine, small.viewer(name), number, key, decision, seen=seen)


def decide_places(small: World, number: int, *, name: str = IMANI, **labels: str) -> None:
    """Decide items of a locked read by their place: `_0="-"`."""
    desk = at_desk(small, number, name)
    for place, label in labels.items():
        key = desk.keys[int(place[1:])]
        seen = desk.decided[key].verdict_id if key in desk.decided else None
        decide(small, number, key, Decision(world.LABELS[label]), seen=seen, name=name)


def decide_the_rest(small: World, number: int, label: Label | None = None, *, name: str = IMANI) -> None:
    """Decide every difference that waits, with this label or each with the first one, and finish."""
    desk = at_desk(small, number, name)
    for key in desk.undecided:
        decide(small, number, key, Decision(label or Label(desk.first[key].label)), name=name)
    finish(small, number, name)


def finish(small: World, number: int, name: str = IMANI) -> None:
    """Go on to the next item."""
    reviewing.finish(small.engine, small.viewer(name), number)


def use(small: World, **rules: Any) -> None:
    """The rules of the study from now on."""
    with writing(small.engine) as session:
        store.set_rules(session, Rules(**rules), actor="Ana Ruiz")


def only_the_first(small: World, **choice: Any) -> int:
    """One item alone is assigned: the first response."""
    return assigned(small, plan=plan_of(("prompt-0", 1.0)), **choice)


def plan_of(*lines: tuple[str, float]) -> tuple[Planned, ...]:
    """A plan: prompt_id and probability of each response."""
    return tuple(Planned(prompt_id, "Alder-2", 0, share) for prompt_id, share in lines)


def first_conversation(small: World, labels: str, name: str = IMANI) -> tuple[int, ReadingState]:
    """A read of the first conversation, locked: its number and state. Everything is assigned for it; other items are read as `++`."""
    assigned(small, readers=(IMANI, TOVE))
    while True:
        desk = take(small, name)
        is_first = desk.asked.example_id == 1
        number = answer(small, small.viewer(name), desk, labels if is_first else "++")
        state = world.lock(small.engine, small.viewer(name), number, at=world.START)
        if is_first:
            return number, state

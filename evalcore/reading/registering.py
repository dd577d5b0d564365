"""Freeze a queue before anybody reads of it: what was drawn, in which order, with which probabilities and seed, has a hash that can be registered.

Nothing of a queue is ever changed afterwards, frozen or not: the hash lets others see that. It is over the very bytes that `record` gives.
"""

import hashlib
import json
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from evalcore.errors import AlreadyChanged, NotAllowed
from evalcore.reading import assignment_queries
from evalcore.reading.amending import amended
from evalcore.reading.assigning import assignment_of
from evalcore.study import store
from evalcore.study.audit import trail
from evalcore.study.db import Engine, Session, writing
from evalcore.study.schema import Viewer

QUEUE_FROZEN = "queue frozen"


class Registered(NamedTuple):
    """A queue that was frozen before the first read of it: the SHA-256 of its record, when and by whom."""

    sha256: str
    at: datetime
    by: str


def record(session: Session, assignment_id: int) -> bytes:
    """A queue as one line of JSON: ask, assignment, n_population, n_readers, seed, selection, and tasks: (place, example, response, probability) in order."""
    assignment = assignment_of(session, assignment_id)
    names = ("ask", "n_population", "n_readers", "seed", "selection")
    told: dict[str, Any] = {name: getattr(assignment, name) for name in names}
    told |= {"assignment": assignment_id, "tasks": assignment_queries.queue(session, assignment_id)}
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS)


def freeze_queue(engine: Engine, assignment_id: int, *, actor: Viewer) -> tuple[Registered, bytes]:
    """Put the hash of a queue into the trail, before anybody has begun to read of it. Returns it with the bytes that it is of."""
    with writing(engine) as session:
        amended(session, actor, assignment_id)
        if (before := registered(session).get(assignment_id)) is not None:
            msg = f"Assignment {assignment_id} was frozen on {before.at:%Y-%m-%d} by {before.by}: SHA-256 {before.sha256}."
            raise AlreadyChanged(msg)
        if assignment_queries.is_begun(session, assignment_id):
            msg = f"Assignment {assignment_id} is being read already: a queue is frozen before the first read of it."
            raise NotAllowed(msg)
        content = record(session, assignment_id)
        told = json.loads(content)
        detail = {"sha256": hashlib.sha256(content).hexdigest(), "items": len(told["tasks"]), "seed": told["seed"]}
        of_queue: dict[str, Any] = {"subject": f"assignment {assignment_id}", "detail": detail}
        store.append_event(session, actor=actor.signature, action=QUEUE_FROZEN, **of_queue)
        return registered(session)[assignment_id], content


def registered(session: Session) -> dict[int, Registered]:
    """The queues that were frozen, by assignment."""
    return {
        int(event.subject.removeprefix("assignment ")): Registered(
            json.loads(event.detail)["sha256"], event.at, event.actor
        )
        for event in trail.of_action(session, QUEUE_FROZEN)
    }

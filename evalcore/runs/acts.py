"""A run is started, stopped, and its failures are tried again."""

from collections.abc import Collection
from typing import Any

import pandas as pd
from sqlalchemy import Engine

from evalcore.errors import RunRefused
from evalcore.runs import queries, store
from evalcore.runs.planning import check, check_asked
from evalcore.study.acting import allow
from evalcore.study.db import reading, writing
from evalcore.study.policies import check_can_run, check_can_see_replies
from evalcore.study.run_words import STREAK, Outcome, RunSpec
from evalcore.study.schema import Viewer

MAX_CONCURRENCY = 2_000


def start(
    engine: Engine,
    spec: RunSpec,
    *,
    actor: Viewer,
    concurrency: int,
    max_cost: float | None = None,
    max_failures: int = STREAK,
) -> int:
    """Start a run, or the same run again: its questions are those that have no answer yet. Nothing is asked before `work`.

    Args:
        concurrency: Questions in flight at once, in each process that works on it.
        max_cost: US dollars at which it stops; None: no limit. That of the latest start counts.
        max_failures: So many failures in a row, of one process, stop it.

    Returns:
        The run's number.

    Raises:
        NotAllowed: Whoever acts is no lead.
        RunRefused: It cannot be started as asked for; one sentence says why.
    """
    check_bounds(spec, concurrency=concurrency, max_cost=max_cost, max_failures=max_failures)
    with reading(engine) as session:
        allow(session, actor, check_can_run)
        check(session, spec)
    with writing(engine) as session:
        allow(session, actor, check_can_run)
        return store.start_run(
            session, spec, actor=actor.signature, concurrency=concurrency, max_cost=max_cost, max_failures=max_failures
        )


def check_bounds(spec: RunSpec, *, concurrency: int, max_cost: float | None, max_failures: int = STREAK) -> None:
    """Raise RunRefused, with one sentence, where a run cannot be held to these."""
    if not 1 <= concurrency <= MAX_CONCURRENCY:
        msg = f"concurrency: expected 1 to {MAX_CONCURRENCY:,}, got {concurrency}"
        raise RunRefused(msg)
    if max_failures < 1:
        msg = f"max failures: expected 1 or more, got {max_failures}"
        raise RunRefused(msg)
    if max_cost is not None and not max_cost > 0:
        msg = f"max cost: expected more than 0 US dollars, got {max_cost}"
        raise RunRefused(msg)
    if max_cost is not None and None in (spec.model.price_in, spec.model.price_out):
        msg = f"max cost: {spec.model.name!r} has no prices, so what it costs is not known; set price_in and price_out"
        raise RunRefused(msg)


def stop(engine: Engine, run_id: int, *, actor: Viewer) -> None:
    """Stop a run, wherever its workers are: within seconds they ask nothing more, finish what is in flight, and end.

    Raises:
        NotAllowed: Whoever acts is no lead.
        NotFound: There is no such run.
    """
    with writing(engine) as session:
        allow(session, actor, check_can_run)
        store.stop_run(session, run_id, actor=actor.signature, reason=f"{actor.signature} stopped it")


def retry(engine: Engine, run_id: int, *, actor: Viewer, outcomes: Collection[Outcome]) -> int:
    """Have questions that ended so asked again, at the next `work`. Returns how many it is; answered ones are never among them.

    Raises:
        NotAllowed: Whoever acts is no lead.
        NotFound: There is no such run.
        RunRefused: It cannot be asked as it was; nothing was written.
    """
    with reading(engine) as session:
        allow(session, actor, check_can_run)
        check_asked(session, queries.run(session, run_id).spec)
    with writing(engine) as session:
        allow(session, actor, check_can_run)
        return store.retry_questions(session, run_id, actor=actor.signature, outcomes=outcomes)


def failures(engine: Engine, viewer: Viewer, run_id: int, **which: Any) -> pd.DataFrame:
    """What failed in a run with the replies as they came (`runs.queries.failures`), for whoever may see them.

    Raises:
        NotAllowed: The viewer is no lead.
        NotFound: There is no such run.
    """
    with reading(engine) as session:
        allow(session, viewer, check_can_see_replies)
        queries.run(session, run_id)
        return queries.failures(session, run_id, **which)

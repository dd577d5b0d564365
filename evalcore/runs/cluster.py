"""A run spread over the workers of a Dask cluster, each writing to the same database. Needs the extra `overread[cluster]`.

Neither keys nor the database's address go through the cluster: a worker has them in its own environment, where `local:N` puts them.
"""

import logging
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from multiprocessing import resource_tracker
from typing import Any

from evalcore.runs import acts, queries
from evalcore.runs.asking import Stop
from evalcore.runs.queries import Progress
from evalcore.runs.spec import key_of, refuse
from evalcore.runs.worker import Worked, finish, work
from evalcore.settings import PREFIX, settings
from evalcore.study.db import DBAPIError, Engine, open_study, reading
from evalcore.study.schema import Outcome, RunState, Viewer

BATCH = 500  # questions of one task: a few seconds to minutes of asking, so that workers that join later find work
AT_ONCE = 2  # tasks at the scheduler for each worker: it has the next one when the first has ended
WAIT_SECONDS, CONNECT_SECONDS = 1.0, 20
MOST_LOCAL = 64
DATABASE = f"{PREFIX}DB"
ADDED = ("n_calls", "prompt_tokens", "completion_tokens", "n_there", "n_lost")


def work_on_cluster(
    engine: Engine,
    run_id: int,
    *,
    address: str,
    actor: Viewer,
    stop: Stop,
    progress: Callable[[Progress], None] | None = None,
    batch: int = BATCH,
) -> Worked:
    """Ask what a run has to ask, on the workers of a cluster, until nothing is left or `stop` says so: they finish what is in flight.

    `address`: the scheduler's (tcp://HOST:PORT), or local:N for N workers on this machine. Returns what the batches did that came to their end.
    """
    with reading(engine) as session:
        row = queries.run(session, run_id)
    is_told, waiting = False, set[Any]()
    ended, faults = list[Worked](), list[str]()
    with _client(engine, address) as client:
        gone = (OSError, CancelledError, import_module("distributed.client").ClosedClientError)
        while True:
            if stop.is_asked and not is_told:
                acts.stop(engine, run_id, actor=actor)
                is_told = True
            with reading(engine) as session:
                at = queries.progress(session, run_id)
            if progress is not None:
                progress(at)
            try:
                if client.status != "running":  # Dask tries for a while to connect again, but has given up the batches
                    raise ConnectionError
                for done in [one for one in waiting if one.done()]:
                    waiting.remove(done)
                    if error := done.exception():
                        faults.append(f"a batch failed: {error}")
                    else:
                        ended.append(done.result())
                n_workers = len(client.scheduler_info(n_workers=-1).get("workers", ()))
                most = AT_ONCE * max(n_workers, 1)
                is_over = at.n_open == 0 or at.state is not RunState.OPEN or len(faults) > most
                if is_over and (not waiting or stop.is_urgent):
                    client.cancel(list(waiting))
                    break
                wanted = 0 if is_over else min(ceil(at.n_open / batch), most) - len(waiting)
                asked = (_work, run_id, row.spec.fingerprint, batch)
                waiting |= {client.submit(*asked, pure=False) for _ in range(wanted)}
            except gone:
                faults.append(
                    f"the Dask scheduler at {address} does not answer any more; workers of it that live go on to the end of their batches"
                )
                break
            # One look a second: of a large run it takes that long to count, and each worker has its next batch already.
            time.sleep(WAIT_SECONDS)
    levels = None if stop.is_urgent else finish(engine, row, stop=stop)
    with reading(engine) as session:  # what the last batches saved came after the last look
        at, n_held = queries.progress(session, run_id), queries.counts(session, run_id).n_held
    why = at.reason or "; ".join(dict.fromkeys(faults))
    return Worked(
        run_id=run_id,
        state=at.state,
        reason=(why or None) if at.n_open else None,
        cost=at.calls.cost,
        n_left=at.n_open,
        n_held=n_held,
        outcomes=sum((one.outcomes for one in ended), Counter[Outcome]()),
        levels=levels,
        **{name: sum(getattr(one, name) for one in ended) for name in ADDED},
    )


def check(engine: Engine, address: str) -> None:
    """Raise RunRefused, with one sentence, where a run of this study cannot be given to such a cluster; whether it answers is seen later."""
    kind, _, number = address.partition(":")
    if find_spec("distributed") is None:
        refuse("--cluster needs Dask: install overread with its extra `cluster`")
    if kind == "local":
        if not number.isdecimal() or not 1 <= int(number) <= MOST_LOCAL:
            refuse(f"--cluster: expected local:N with N from 1 to {MOST_LOCAL}, or tcp://HOST:PORT, got {address!r}")
    elif engine.dialect.name == "sqlite":
        expected = "use PostgreSQL, or --cluster local:N"
        refuse(f"--cluster: the study is a SQLite file, which other machines cannot write to; {expected}")


def _work(run_id: int, fingerprint: str, most: int) -> Worked:
    here = f"on {socket.gethostname()}"
    if not os.environ.get(DATABASE):
        give = "give every worker of the cluster the database's address in its environment"
        refuse(f"{DATABASE} is not set {here}: {give}")
    engine = open_study(settings().db)
    try:
        with reading(engine) as session:
            spec = queries.run(session, run_id).spec
        if spec.fingerprint != fingerprint:
            refuse(f"{DATABASE} {here} is another study: run {run_id} is not the one that was started")
        return work(engine, run_id, key=key_of(spec.model), stop=Stop(), most=most)
    except DBAPIError as error:  # its own words would show what was to be written
        refuse(f"the database refused {here}: {' '.join(str(error.orig).split())[:300]}")
    finally:
        engine.dispose()


@contextmanager
def _client(engine: Engine, address: str) -> Iterator[Any]:
    check(engine, address)
    dask: Any = import_module("distributed")
    if not address.startswith("local:"):
        try:
            client = dask.Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            tried = f"{address!r} ({type(error).__name__})"
            refuse(f"--cluster: expected a Dask scheduler at tcp://HOST:PORT, or local:N, got no answer from {tried}")
        with client:
            yield client
        return
    is_file = engine.dialect.name == "sqlite"
    here = str(engine.url.database) if is_file else engine.url.render_as_string(hide_password=False)
    before = os.environ.get(DATABASE)
    os.environ[DATABASE] = here  # for the processes that begin here
    try:
        resource_tracker.ensure_running()  # where Python starts it later, it unblocks the signal
        # Ctrl-C, which a terminal sends to all of a command, shall not reach the workers: the run being stopped tells them to finish.
        # Dask's threads inherit that, and so do the processes that they start, now or in the place of one that died.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            cluster = dask.LocalCluster(
                n_workers=int(address.removeprefix("local:")),
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                protocol="tcp",
                silence_logs=logging.CRITICAL,  # what went wrong is told; a worker that ends while it reports to Dask is nobody's concern
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        with cluster, dask.Client(cluster) as client:
            yield client
    finally:
        if before is None:
            del os.environ[DATABASE]
        else:
            os.environ[DATABASE] = before

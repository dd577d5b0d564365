"""One import at a time a study: who comes second is told who is at it, and everybody may see how far that is."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evalcore.errors import DatabaseFault, Frozen, ImportFailed
from evalcore.importing import staging
from evalcore.importing.files.opening import Progress
from evalcore.study import lookups, store
from evalcore.study.db import Engine, import_lock, importing, importing_file, reading, writing
from evalcore.study.schema import Viewer
from evalcore.study.tables import ImportUnderWay

TOLD_SECONDS = 2.0


@contextmanager
def turn(engine: Engine, work: staging.Work, actor: Viewer, progress: Progress) -> Iterator[Progress]:
    """Hold the turn while a file is imported. Gives a progress that everybody sees; not for use where this process holds SQLite's write lock.

    Raises:
        NotAllowed: Whoever acts may not import this.
        ImportFailed: Somebody else is importing.
    """
    with _lock(engine) as is_ours:
        if not is_ours:
            with reading(engine) as session:
                found = lookups.import_under_way(session)
            who = found.sentence if found else "somebody else is importing a file."
            raise ImportFailed([f"{work.file.name}: {who} Import this file when that is done. Nothing was imported."])
        begun, told = ImportUnderWay(name=work.file.name, actor=actor.signature), time.monotonic()
        with writing(engine, patient=True) as session:
            work.allow(session, actor)
            store.begin_import(session, begun)

        def tell(done: int) -> None:
            nonlocal told
            progress(done)
            if time.monotonic() - told > TOLD_SECONDS:
                told = time.monotonic()
                with suppress(DatabaseFault, Frozen), writing(engine) as session:
                    store.note_import(session, megabytes=done / 1e6)

        try:
            yield tell
        finally:
            with suppress(DatabaseFault, Frozen), writing(engine, patient=True) as session:
                store.end_import(session)


@contextmanager
def _lock(engine: Engine) -> Iterator[bool]:
    """What only one process has, and nobody once it has ended."""
    study = Path(engine.url.database or "")
    if engine.dialect.name == "postgresql":
        with import_lock(engine) as is_ours:
            yield is_ours
    elif staging.can_stage(engine) and os.access(study.parent, os.W_OK):
        path = importing_file(engine)
        with staging.held(path, make=True) as is_ours:
            if is_ours:
                os.utime(path, (0, 0))  # nobody has come to write yet
            before = importing.set(is_ours)
            try:
                yield is_ours
            finally:
                importing.reset(before)
                if is_ours:
                    path.unlink(missing_ok=True)
    else:
        yield True

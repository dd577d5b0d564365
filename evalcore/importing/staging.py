"""A large file on SQLite, where one transaction lets nobody else write: checked whole in a copy of the study, then written in short parts.

Who is killed in between leaves a row in `unfinished_import` and a copy of the file: the next process that opens the study goes on (`finish`).
"""

import dataclasses
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from evalcore.errors import DatabaseFault, ImportFailed
from evalcore.importing.context import Faults
from evalcore.importing.joining import Pace, Work
from evalcore.importing.report import ImportReport
from evalcore.study import lookups, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, connect, keep, reading, unkept, writing
from evalcore.study.policies import check_can_import
from evalcore.study.schema import IMPORT_STOPPED, Administrator, Viewer
from evalcore.study.tables import UnfinishedImport
from evalcore.triage.acts import read_levels

AT_ONCE_SECONDS = 0.5  # a file that takes no longer is written in one transaction
PART_SECONDS = 0.6  # so long may a part take: its rows, its event and the commit
BATCH_SECONDS = 0.5  # a batch that takes longer by itself is followed by smaller ones
PAUSE_SECONDS = 0.15
"""Longer than SQLite lets whoever waits sleep before they try again: everybody gets their turn between two parts."""
CHECK = ".check"  # behind the name of the kept file: the copy of the study in which it is checked


def can_stage(engine: Engine) -> bool:
    """Whether the study is a file of SQLite."""
    return engine.dialect.name == "sqlite" and engine.url.database not in (None, "", ":memory:")


def is_broken_off(session: Session, engine: Engine, work: Work) -> bool:
    """Whether this very file was being written when its import ended before its end."""
    found = lookups.unfinished_import(session)
    if found is None:
        return False
    with held(kept_path(engine, found.source_hash)) as is_free:
        if is_free and _asked(found.asked) == _asked(work.as_json()):
            return True
    if is_free:
        sentence = (
            f"the import of {found.name} was broken off, and the copy that was kept of it is gone. Import {found.name} again as before, "
            "which finishes it; then this file. If it is lost too, `overread import --give-up` leaves the import as it is"
        )
    else:
        sentence = (
            f"{found.actor} has been importing {found.name} since {found.started_at:%H:%M} UTC: {found.n_done:,} of {found.n_rows:,} rows "
            "are in the study. Import this file when that is done"
        )
    raise ImportFailed([f"{work.file.name}: {sentence}. Nothing was imported."])


def _asked(said: str) -> dict[str, Any]:
    """What a file is imported as, whatever it is called."""
    asked: dict[str, Any] = json.loads(said)
    return asked | {"name": ""}


def in_parts(engine: Engine, work: Work, actor: Viewer, progress: Callable[[int], None]) -> ImportReport:
    """Check the file in a copy of the study, then write it in parts.

    NotAllowed: whoever acts may not import. ImportFailed: there are faults, no room for the copies, or another large import is being written: the study is as
    it was. Or somebody changed the study between check and writing so that the rest does not fit: what was written stays.
    """
    path = kept_path(engine, work.source_hash)
    with held(path, make=True) as is_ours:
        if not is_ours:
            raise ImportFailed([f"{work.file.name}: this file is being imported already. Nothing was imported."])
        try:
            work = _with_copy(engine, work, path)
            checked = _checked(engine, work, progress)
            if work.dry_run or checked.adds_nothing:
                path.unlink()
                return checked
            begun = _begun(engine, work, actor, checked.rows)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return _written(engine, work, begun, progress)


def finish(engine: Engine) -> ImportReport | None:
    """Go on with an import that was broken off, from the copy that was kept of its file; and clear away what others left.

    Its rows come again from the first, and nothing of what is in the study is written twice. Returns what came of the whole file; None: nothing waits, somebody
    else is at it, or the copy is gone. ImportFailed: the rest does not fit the study any more.
    """
    if not can_stage(engine):
        return None
    with reading(engine) as session:
        found = lookups.unfinished_import(session)
    _clear(engine, found)
    if found is None or not (path := kept_path(engine, found.source_hash)).exists():
        return None
    with held(path) as is_ours:
        with reading(engine) as session:
            found = lookups.unfinished_import(session)  # again: who held the copy a moment ago may be done
        if not is_ours or found is None or not path.exists():
            return None
        try:
            work = Work.again(found, path)
            if work.file.content_hash() != found.source_hash:
                return None
        except ImportFailed:
            return None
        report = _written(engine, work, found, lambda _done: None)
    if report.texts_new:
        read_levels(engine, actor=Administrator(name=found.actor))
    return report


def give_up(engine: Engine, actor: Viewer) -> UnfinishedImport:
    """Leave an import that was broken off as it is: its rows in the study stay, and those that are missing do not come.

    Returns what was given up. NotAllowed: whoever acts may not import. ImportFailed: no import was broken off, or somebody is writing it.
    """
    with reading(engine) as session:
        allow(session, actor, check_can_import)
        found = lookups.unfinished_import(session)
    if found is None:
        raise ImportFailed(["--give-up: expected an import that was broken off, found none. Nothing was changed."])
    path = kept_path(engine, found.source_hash)
    with held(path) as is_free:
        if not is_free:
            raise ImportFailed([f"{found.name}: it is being imported just now. Nothing was changed."])
        with writing(engine) as session:
            allow(session, actor, check_can_import)
            _stop(session, found, found.n_done, actor=actor.signature, faults=[])
        path.unlink(missing_ok=True)
    return found


def _stop(session: Session, begun: UnfinishedImport, n_done: int, *, actor: str, faults: list[str]) -> None:
    store.end_parts(session)
    detail = {"source_hash": begun.source_hash, "rows": n_done, "of": begun.n_rows, "faults": faults}
    store.append_event(session, actor=actor, action=IMPORT_STOPPED, subject=begun.name, detail=detail)


# ---------------------------------------------------------------- the copies


def kept_path(engine: Engine, source_hash: str) -> Path:
    """Where a copy of a file lies while it is being written. Whoever writes it holds the lock of it, which ends with the process."""
    study = Path(engine.url.database or "")
    return study.with_name(f".{study.name}.import-{source_hash[:16]}")


@contextmanager
def held(path: Path, *, make: bool = False) -> Iterator[bool]:
    """Hold a file that nobody else holds; gives whether that is so. A file that is not there nobody holds.

    Where there is no `flock` (Windows), nobody seems to hold any.
    """
    number, is_ours = None, True
    while number is None and (make or path.exists()):
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError:  # another user's, who may be at it
            is_ours = False
            break
        is_ours = _is_locked(number)
        with suppress(FileNotFoundError):
            if not is_ours or os.path.samestat(os.fstat(number), path.stat()):
                break
        os.close(number)  # removed by whoever held it until now
        number = None
    try:
        yield is_ours
    finally:
        if number is not None:
            os.close(number)


def _is_locked(number: int) -> bool:
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415 - not everywhere

        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _clear(engine: Engine, found: UnfinishedImport | None) -> None:
    """Remove copies whose process was killed before it had begun to write."""
    study = Path(engine.url.database or "")
    begin, wanted = f".{study.name}.import-", found and kept_path(engine, found.source_hash).name
    with suppress(OSError):  # a folder that cannot be written
        names = {one.name.removesuffix(CHECK) for one in study.parent.iterdir() if one.name.startswith(begin)}
        for path in map(study.with_name, names):
            with held(path, make=True) as is_ours:
                if is_ours:
                    path.with_name(path.name + CHECK).unlink(missing_ok=True)
                if is_ours and path.name != wanted:
                    path.unlink()


def _with_copy(engine: Engine, work: Work, path: Path) -> Work:
    n_bytes = 2 * work.file.path.stat().st_size
    if shutil.disk_usage(path.parent).free < n_bytes + Path(engine.url.database or "").stat().st_size:
        raise _no_room(engine, work, n_bytes)
    try:
        shutil.copyfile(work.file.path, path)
    except OSError as error:
        sentence = f"no copy of it could be kept beside the study: {error.strerror}. Nothing was imported."
        raise ImportFailed([f"{work.file.name}: {sentence}"]) from error
    return dataclasses.replace(work, file=dataclasses.replace(work.file, path=path))


def _no_room(engine: Engine, work: Work, n_bytes: int = 0) -> ImportFailed:
    study = Path(engine.url.database or "")
    wanted, free = study.stat().st_size + n_bytes, shutil.disk_usage(study.parent).free
    sentence = (
        f"{work.file.name}: a large file is checked in a copy of the study first, which needs about {wanted / 1e6:,.0f} MB beside the study; "
        f"expected so much room, got {free / 1e6:,.0f} MB. Nothing was imported."
    )
    return ImportFailed([sentence])


def _checked(engine: Engine, work: Work, progress: Callable[[int], None]) -> ImportReport:
    path = kept_path(engine, work.source_hash)
    copy = path.with_name(path.name + CHECK)
    report = work.report()
    try:
        copy.touch(mode=0o600)
        with closing(sqlite3.connect(engine.url.database or "")) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        scratch = connect(str(copy))
        unkept(scratch)
        try:
            with writing(scratch) as session:
                work.join(Pace(session), session, work.rows(progress), report)
                work.set_meanings(session, report, "")
        finally:
            scratch.dispose()
    except (DatabaseFault, OSError, sqlite3.Error) as error:
        raise _no_room(engine, work) from error
    finally:
        copy.unlink(missing_ok=True)
        for beside in ("-wal", "-shm", "-journal"):
            copy.with_name(copy.name + beside).unlink(missing_ok=True)
    return report


# ---------------------------------------------------------------- the parts


class Parts(Pace):
    """Ends a transaction when others have waited long enough, with an event that names its rows, and lets them have their turn."""

    def __init__(self, session: Session, begun: UnfinishedImport) -> None:
        self._session, self._begun = session, begun
        self._since: float | None = None
        self._rows_seconds, self._n_batches = PART_SECONDS / 2, 0
        self.n_done = begun.n_done

    def begin(self) -> None:
        """Others wait from here on."""
        if self._since is None:
            self._session.connection()
            self._since, self._n_batches = time.monotonic(), 0

    def after(self, size: int, report: ImportReport, faults: Faults) -> int:
        """End the part where it has lasted long enough; a batch that takes too long by itself is halved."""
        faults.raise_if_any()
        seconds = time.monotonic() - (self._since or 0.0)
        self._n_batches += 1
        if seconds < self._rows_seconds:
            return size
        self.last(report)
        return max(size // 2, 1) if self._n_batches == 1 and seconds > BATCH_SECONDS else size

    def last(self, report: ImportReport) -> None:
        """End the part."""
        if self._since is None:
            return
        seconds = time.monotonic() - self._since
        if report.rows > self.n_done:
            self.n_done = report.rows
            store.note_part(self._session, n_done=report.rows, report=json.dumps(report.as_dict()))
        store.append_part(self._session, self._begun, n_done=self.n_done)
        keep(self._session)
        self._rows_seconds = PART_SECONDS * seconds / (time.monotonic() - self._since)  # the rest is its event's
        self._since = None
        time.sleep(PAUSE_SECONDS)


def _begun(engine: Engine, work: Work, actor: Viewer, n_rows: int) -> UnfinishedImport:
    with writing(engine, patient=True) as session:
        work.allow(session, actor)
        before = lookups.unfinished_import(session)
        if before is not None and _asked(before.asked) == _asked(work.as_json()):
            return before
        is_broken_off(session, engine, work)
        report = json.dumps(work.report().as_dict())
        begun = UnfinishedImport(
            name=work.file.name,
            source_hash=work.source_hash,
            actor=actor.signature,
            asked=work.as_json(),
            n_rows=n_rows,
            report=report,
        )
        store.begin_parts(session, begun)
    return begun


def _written(engine: Engine, work: Work, begun: UnfinishedImport, progress: Callable[[int], None]) -> ImportReport:
    """Write what is missing, and remove the copy; refused where somebody has changed the study since the check, so that the rest does not fit."""
    report, rows, stopped = work.report(), work.rows(progress), None
    with writing(engine, patient=True) as session:
        parts = Parts(session, begun)
        try:
            work.join(parts, session, rows, report, written=ImportReport(**json.loads(begun.report)))
        except ImportFailed as failed:
            session.rollback()
            store.forget_written(session)
            stays = (
                f"{begun.name}: somebody changed the study while the file was being written, and the rest of it does not fit any more. "
                f"Expected to write {begun.n_rows:,} rows, wrote {parts.n_done:,}: those stay"
            )
            stopped = [*failed.faults, stays]
            _stop(session, begun, parts.n_done, actor=begun.actor, faults=stopped)
        else:
            store.end_parts(session)
            work.set_meanings(session, report, begun.actor)
            work.record(session, report, begun.actor)
    work.file.path.unlink(missing_ok=True)
    if stopped is not None:
        raise ImportFailed(stopped)
    return report

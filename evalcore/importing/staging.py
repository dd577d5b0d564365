"""A file's rows, batch by batch, joined with the study: in one transaction, or on SQLite, where that lets nobody else write, in parts.

In parts goes a file that takes long while somebody else comes to write: it is checked whole in a copy of the study first. Who is killed between two parts
leaves a row in `unfinished_import` and a copy of the file: the next process that opens the study goes on (`finish`).
"""

import gc
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from evalcore.errors import DatabaseFault, Frozen, ImportFailed, RowFault
from evalcore.importing.context import Faults, Graded, ImportContext, ImportReport, Options, Rows
from evalcore.importing.files import apart
from evalcore.importing.files.opening import Opened, Progress, again
from evalcore.importing.responses import GradedRows
from evalcore.stats.wording import counted
from evalcore.study import lookups, schema, store
from evalcore.study.acting import allow
from evalcore.study.corrections import mending
from evalcore.study.db import (
    Engine,
    Session,
    connect,
    import_lock,
    importing,
    importing_file,
    keep,
    reading,
    unkept,
    writing,
)
from evalcore.study.policies import check_can_import, check_can_import_reads_of
from evalcore.study.schema import Administrator, ConfidenceMeaning, Viewer
from evalcore.study.tables import ImportUnderWay, UnfinishedImport, now

AT_ONCE_SECONDS = 0.5  # so long may a transaction keep others waiting
AT_ONCE_BYTES = 2_000_000_000  # a larger file is never written in one
APART_BYTES = 30_000_000  # a larger one is read by a process of its own
PART_SECONDS = 0.6  # so long may a part take: its rows, its event and the commit
BATCH_SECONDS = 0.5  # a batch that takes longer by itself is followed by smaller ones
PAUSE_SECONDS = 0.11  # longer than SQLite lets whoever waits sleep (0.1 s): they get their turn between two parts
PAUSES_SECONDS = 5.0  # for so long after somebody else has come to write
TOLD_SECONDS = 2.0  # between two words of how far an import is
CHECK, ROWS = ".check", ".rows"
"""Behind the name of the kept file: the copy of the study in which it is checked, and the rows that were read meanwhile."""


class TooLong(Exception):
    """Others have waited long enough for this transaction; it is no error of the file."""


@dataclass(frozen=True)
class Work:
    """What a person asked for."""

    file: Opened
    options: Options
    meaning: ConfidenceMeaning | None  # what the confidences of its judges are the probability of
    source_hash: str  # SHA-256 of the content, unpacked
    content_hash: str  # SHA-256 of the content with what it means
    reads_of: tuple[str, ...] = ()  # people with an account whose reads the file brings
    dry_run: bool = False
    rows_kept: Path | None = None  # where the rows of a large file are kept that is read twice

    def as_json(self) -> str:
        """What `finish` makes the same of, with a copy of the file."""
        told = {name: getattr(self, name) for name in ("meaning", "source_hash", "content_hash", "reads_of")}
        return json.dumps(self.file.asked(self.options) | told, ensure_ascii=False)

    def report(self) -> ImportReport:
        """Of an import that begins."""
        one = self.file.format
        dataset = schema.CASES if one.is_triage else self.options.evaluation
        return ImportReport(self.file.name, one.name, dataset, self.dry_run, self.source_hash, list(self.reads_of))

    def rows(self, progress: Progress, report: ImportReport) -> Rows:
        """Of the file; the first has been read, which of a document is all of its reading. The report is told what fields are left unread, unless it knows."""
        how = self.options, progress, None if report.unread else report.unread
        is_apart = self.file.path.stat().st_size > APART_BYTES and apart.can_be(self.file)
        here = self.file.format.gathered(self.file.rows(*how))
        ahead = apart.rows(self.file, *how, self.rows_kept) if is_apart else here
        return chain([first] if (first := next(ahead, None)) is not None else [], ahead)

    def allow(self, session: Session, actor: Viewer) -> None:
        """Whether somebody may import this; raises NotAllowed."""
        allow(session, actor, check_can_import)
        if self.reads_of:
            allow(session, actor, check_can_import_reads_of)

    def join(
        self,
        session: Session,
        rows: Rows,
        report: ImportReport,
        *,
        touched: Path | None = None,
        parts: "Parts | None" = None,
        written: ImportReport | None = None,
        only_checks: bool = False,
    ) -> None:
        """Check every row against the study and write it; after the first fault, only check.

        `touched`: by whoever waits for its end; TooLong where they have waited long enough. `written`: what came of the first rows, which the study has
        already: they come again, and only what they lead to is remembered. `only_checks`: in a copy that is thrown away. ImportFailed: there are faults.
        """
        began = time.monotonic()
        context = ImportContext(self.file, self.options, session, report)
        bulk, faults = context.bulk, context.faults
        n_written = 0 if written is None else written.rows
        bulk.repeats, bulk.only_checks = n_written > 0, only_checks
        writer = (self.file.format.writer or GradedRows)(context)
        size, n_waiting, batch = writer.batch, 0, list[Any]()

        def write() -> None:
            nonlocal size, n_waiting
            if not batch:
                return
            if parts is not None:
                parts.begin()
            writer.add(batch)
            batch.clear()
            n_waiting = 0
            if touched is not None:
                if time.monotonic() - began > AT_ONCE_SECONDS and _is_awaited(touched):
                    raise TooLong
                # at the end, when it is too late to stop, all of them would keep others waiting
                store.written(session).keep_hashes(session.connection())
            if parts is not None:
                size = parts.after(size, report, faults)

        def end_repeats() -> None:
            write()
            bulk.repeats = False
            if written is not None:
                vars(report).update(vars(written) | {"unread": report.unread, "rows": report.rows})

        for number, row in rows:
            if isinstance(row, RowFault):
                faults.add(str(row), number)
                continue
            n_rows = row[0].n_rows if row and isinstance(row[0], Graded) else 1
            if bulk.repeats and report.rows + n_rows > n_written:
                end_repeats()
            report.rows += n_rows
            n_waiting += n_rows
            batch.extend(row)
            if n_waiting >= size:
                write()
        if bulk.repeats:
            end_repeats()
        write()
        if parts is not None:
            parts.last(report)
        writer.finish()
        if not report.rows and not faults.count:
            faults.add("expected at least one row, got none")
        if report.rows and report.without_partner == report.rows:
            none = f"expected rows that fit the study, got none in {counted(report.rows, 'row')}"
            faults.add(f"{none}; {report.without_partner_named[0]}")
        faults.raise_if_any()

    def set_meanings(self, session: Session, report: ImportReport, actor: str) -> None:
        """Keep what the confidences mean, as far as it is known."""
        if not report.confident_judges:
            return
        from evalcore.triage import setting_queries  # noqa: PLC0415 - with pandas, which most imports do without
        from evalcore.triage.store import set_confidence_meaning  # noqa: PLC0415 - likewise

        known = setting_queries.confidence_meanings(session)
        for judge in report.confident_judges:
            meaning = self.meaning
            if meaning is None and self.file.format.is_triage and judge not in known:
                meaning = ConfidenceMeaning.RIGHT
            if meaning is not None:
                report.meanings_set += set_confidence_meaning(session, judge, meaning, actor=actor)
            elif judge not in known:
                report.meanings_missing.append(judge)

    def begin(self, session: Session, actor: str) -> None:
        """Have what is written in the session told as brought by this import; refused where it was withdrawn."""
        gone = lookups.withdrawn_import(session, key=self.content_hash, source_hash=self.source_hash)
        if gone is not None:
            sentence = (
                f"this file was imported before, and {gone['withdrawn_by']} withdrew it on {gone['withdrawn_at']:%Y-%m-%d}. To have it again, restore "
                f"import {gone['id']} (Study, Corrections; or `overread restore-import {gone['id']}`). Nothing was imported"
            )
            raise ImportFailed([f"{self.file.name}: {sentence}."])
        named = {"key": self.content_hash, "source_hash": self.source_hash, "name": self.file.name}
        by = {"format": self.file.format.name, "actor": actor, "at": now(), "keeps_rows": True}
        session.info[store.IMPORTING] = named | by

    def record(self, session: Session, report: ImportReport, actor: str) -> None:
        """Tell the trail what came of the file; and remember it, so that importing it again adds nothing."""
        # a file with rows left out may be imported again once their partners are here
        if not report.without_partner and not lookups.is_imported(session, self.content_hash):
            told = {"name": report.file, "format": report.format, "created_at": now()}
            store.Bulk(session).insert_only("imported_file", [{"content_hash": self.content_hash, **told}])
        detail = report.for_audit() | mending.hide_anew(session)
        store.append_event(session, actor=actor, action=schema.FILE_IMPORTED, subject=report.file, detail=detail)


@contextmanager
def turn(engine: Engine, work: Work, actor: Viewer, progress: Progress) -> Iterator[Progress]:
    """One import at a time a study. Gives a progress that everybody sees; not for use where this process holds SQLite's write lock.

    NotAllowed: whoever acts may not import this. ImportFailed: somebody else is importing, and who.
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
                store.end_import(session, ImportUnderWay)


@contextmanager
def _lock(engine: Engine) -> Iterator[bool]:
    """What only one process has, and nobody once it has ended."""
    study = Path(engine.url.database or "")
    if engine.dialect.name == "postgresql":
        with import_lock(engine) as is_ours:
            yield is_ours
    elif can_stage(engine) and os.access(study.parent, os.W_OK):
        path = importing_file(engine)
        with held(path, make=True) as is_ours:
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


@contextmanager
def few_collections() -> Iterator[None]:
    """Python looks for cycles after every 700 new objects; rows make none, and to look takes a tenth of an import's time."""
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


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
    asked: dict[str, Any] = json.loads(said)
    return {"names": None} | asked | {"name": ""}


def in_parts(engine: Engine, work: Work, actor: Viewer, progress: Progress, *, checking: Progress) -> ImportReport:
    """Check the file in a copy of the study, then write it in parts. `checking`: the progress while nothing of the study is locked.

    ImportFailed leaves the study as it was, unless somebody changed it between check and writing so that the rest does not fit: what was written stays.
    """
    path = kept_path(engine, work.source_hash)
    with held(path, make=True) as is_ours:
        if not is_ours:
            raise ImportFailed([f"{work.file.name}: this file is being imported already. Nothing was imported."])
        kept = path.with_name(path.name + ROWS)
        kept.unlink(missing_ok=True)  # of one that was killed
        try:
            try:
                work = replace(_with_copy(engine, work, path), rows_kept=kept)
                checked = _checked(engine, work, checking)
                if work.dry_run or checked.adds_nothing:
                    path.unlink()
                    return checked
                begun = _begun(engine, work, actor, checked.rows)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            return _written(engine, work, begun, progress, checked.unread)
        finally:
            kept.unlink(missing_ok=True)


def finish(engine: Engine) -> ImportReport | None:
    """Go on with an import that was broken off, from the copy that was kept of its file; and clear away what others left.

    Its rows come again from the first, and nothing is written twice. None: nothing waits, somebody else is at it, or the copy is gone. ImportFailed: the
    rest does not fit the study any more.
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
        asked = json.loads(found.asked)
        try:
            file, options = again(path, asked)
            if file.content_hash() != found.source_hash:
                return None
        except ImportFailed:
            return None
        meaning, reads_of = asked["meaning"] and ConfidenceMeaning(asked["meaning"]), tuple(asked["reads_of"])
        work = Work(file, options, meaning, found.source_hash, asked["content_hash"], reads_of)
        report = _written(engine, work, found, lambda _done: None)
    if report.texts_new:
        from evalcore.triage.acts import read_levels  # noqa: PLC0415 - with pandas, which most imports do without

        read_levels(engine, actor=Administrator(name=found.actor))
    return report


def give_up(engine: Engine, actor: Viewer) -> UnfinishedImport:
    """Leave an import that was broken off as it is: the rows that are missing do not come. ImportFailed: there is none, or somebody is writing it."""
    with reading(engine) as session:
        allow(session, actor, check_can_import)
        found = lookups.unfinished_import(session)
    if found is None:
        raise ImportFailed(["--give-up: expected an import that was broken off, got none. Nothing was changed."])
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
    store.end_import(session, UnfinishedImport)
    detail = {"source_hash": begun.source_hash, "rows": n_done, "of": begun.n_rows, "faults": faults}
    store.append_event(session, actor=actor, action=schema.IMPORT_STOPPED, subject=begun.name, detail=detail)


def kept_path(engine: Engine, source_hash: str) -> Path:
    """Where a copy of a file lies while it is being written. Whoever writes it holds the lock of it, which ends with the process."""
    study = Path(engine.url.database or "")
    return study.with_name(f".{study.name}.import-{source_hash[:16]}")


@contextmanager
def held(path: Path, *, make: bool = False) -> Iterator[bool]:
    """Hold a file that nobody else holds; gives whether that is so: of a file that is not there, too, and anywhere without `flock` (Windows)."""
    number, is_ours = None, True
    while number is None and (make or path.exists()):
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except PermissionError:  # another user's, who may be at it
            is_ours = False
            break
        if sys.platform != "win32":
            import fcntl  # noqa: PLC0415 - not everywhere

            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_ours = False
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


def _clear(engine: Engine, found: UnfinishedImport | None) -> None:
    """Remove copies whose process was killed before it had begun to write."""
    study = Path(engine.url.database or "")
    begin, wanted = f".{study.name}.import-", found and kept_path(engine, found.source_hash).name
    with suppress(OSError):  # a folder that cannot be written
        there = (one.name for one in study.parent.iterdir() if one.name.startswith(begin))
        names = {name.removesuffix(CHECK).removesuffix(ROWS) for name in there}
        for path in map(study.with_name, names):
            with held(path, make=True) as is_ours:
                for beside in (CHECK, ROWS) if is_ours else ():
                    path.with_name(path.name + beside).unlink(missing_ok=True)
                if is_ours and path.name != wanted:
                    path.unlink()


def _with_copy(engine: Engine, work: Work, path: Path) -> Work:
    n_bytes = 3 * work.file.path.stat().st_size
    if shutil.disk_usage(path.parent).free < n_bytes + Path(engine.url.database or "").stat().st_size:
        raise _no_room(engine, work, n_bytes)
    try:
        shutil.copyfile(work.file.path, path)
    except OSError as error:
        sentence = f"no copy of it could be kept beside the study: {error.strerror}. Nothing was imported."
        raise ImportFailed([f"{work.file.name}: {sentence}"]) from error
    return replace(work, file=replace(work.file, path=path))


def _no_room(engine: Engine, work: Work, n_bytes: int = 0) -> ImportFailed:
    study = Path(engine.url.database or "")
    wanted, free = study.stat().st_size + n_bytes, shutil.disk_usage(study.parent).free
    sentence = (
        f"{work.file.name}: a large file is checked in a copy of the study first, which needs about {wanted / 1e6:,.0f} MB beside the study; "
        f"expected so much room, got {free / 1e6:,.0f} MB. Nothing was imported."
    )
    return ImportFailed([sentence])


def _checked(engine: Engine, work: Work, progress: Progress) -> ImportReport:
    path = kept_path(engine, work.source_hash)
    copy = path.with_name(path.name + CHECK)
    report = work.report()
    try:
        copy.touch(mode=0o600)
        with closing(sqlite3.connect(engine.url.database or "")) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("DROP TRIGGER IF EXISTS verdict_no_replace")  # its indexes forbid the same
        scratch = connect(str(copy))
        unkept(scratch)
        try:
            with writing(scratch, with_broken=True) as session:
                work.join(session, work.rows(progress, report), report, only_checks=True)
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


class Parts:
    """Ends a transaction when others have waited long enough, with an event that names its rows, and lets those who wait have their turn."""

    def __init__(self, session: Session, begun: UnfinishedImport, touched: Path) -> None:
        self._session, self._begun, self._touched = session, begun, touched
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
            store.note_part(self._session, n_done=report.rows, report=json.dumps(asdict(report)))
        store.append_part(self._session, self._begun, n_done=self.n_done)
        keep(self._session)
        self._rows_seconds = PART_SECONDS * seconds / (time.monotonic() - self._since)  # the rest is its event's
        self._since = None
        if _is_awaited(self._touched):
            time.sleep(PAUSE_SECONDS)


def _is_awaited(touched: Path) -> bool:
    """Whether somebody else has come to write a moment ago; also where that cannot be known."""
    try:
        return time.time() - touched.stat().st_mtime < PAUSES_SECONDS
    except OSError:
        return True


def _begun(engine: Engine, work: Work, actor: Viewer, n_rows: int) -> UnfinishedImport:
    with writing(engine, patient=True) as session:
        work.allow(session, actor)
        before = lookups.unfinished_import(session)
        if before is not None and _asked(before.asked) == _asked(work.as_json()):
            return before
        is_broken_off(session, engine, work)
        told: dict[str, Any] = {"asked": work.as_json(), "report": json.dumps(asdict(work.report())), "n_rows": n_rows}
        begun = UnfinishedImport(name=work.file.name, source_hash=work.source_hash, actor=actor.signature, **told)
        store.begin_import(session, begun)
    return begun


def _written(
    engine: Engine, work: Work, begun: UnfinishedImport, progress: Progress, unread: Mapping[str, int] | None = None
) -> ImportReport:
    """Write what is missing, and remove the copy; refused where somebody has changed the study since the check, so that the rest does not fit."""
    report, stopped = work.report(), None
    report.unread.update(unread or {})  # as the check found it
    rows = work.rows(progress, report)
    with writing(engine, patient=True, with_broken=True) as session:
        work.begin(session, begun.actor)
        keep(session)
        parts = Parts(session, begun, importing_file(engine))
        try:
            work.join(session, rows, report, parts=parts, written=ImportReport(**json.loads(begun.report)))
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
            store.end_import(session, UnfinishedImport)
            work.set_meanings(session, report, begun.actor)
            work.record(session, report, begun.actor)
    work.file.path.unlink(missing_ok=True)
    if stopped is not None:
        raise ImportFailed(stopped)
    return report

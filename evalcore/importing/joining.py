"""A file and what it is to be imported as; its rows, batch by batch, joined with the study."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

from evalcore.errors import RowFault
from evalcore.importing.context import Faults, ImportContext, Readers
from evalcore.importing.files.opening import Opened, recognise
from evalcore.importing.records import Options
from evalcore.importing.report import ImportReport
from evalcore.importing.responses import GradedRows
from evalcore.study import lookups, store
from evalcore.study.acting import allow
from evalcore.study.db import Session
from evalcore.study.policies import check_can_import, check_can_import_reads_of
from evalcore.study.schema import CASES, FILE_IMPORTED, ConfidenceMeaning, Source, Viewer
from evalcore.study.store import Bulk
from evalcore.study.tables import UnfinishedImport
from evalcore.triage import setting_queries
from evalcore.triage.store import set_confidence_meaning

Rows = Iterable[tuple[int, list[Any] | RowFault]]


class TooLong(Exception):
    """Others have waited long enough for this transaction; it is no error of the file."""


class Pace:
    """How the batches of a file follow each other: here all in one transaction.

    `seconds`: how long it may last before it is given up; None: as long as it takes.
    """

    def __init__(self, session: Session, *, seconds: float | None = None) -> None:
        session.connection()
        self._began, self._seconds = monotonic(), seconds

    def begin(self) -> None:
        """Before a batch."""

    def after(self, size: int, report: ImportReport, faults: Faults) -> int:  # noqa: ARG002 - for those who write in parts
        """After a batch of so many rows. Returns how many the next one is to have."""
        if self._seconds is not None and monotonic() - self._began > self._seconds:
            raise TooLong
        return size

    def last(self, report: ImportReport) -> None:
        """After the last batch, before what can be said only then."""


@dataclass(frozen=True)
class Work:
    """What a person asked for.

    `meaning`: what the confidences of its judges are the probability of. `source_hash`: SHA-256 of the content, unpacked. `content_hash`: SHA-256 of the
    content with what it means. `reads_of`: names of people with an account whose reads the file brings.
    """

    file: Opened
    options: Options
    meaning: ConfidenceMeaning | None
    source_hash: str
    content_hash: str
    reads_of: tuple[str, ...] = ()
    dry_run: bool = False

    def as_json(self) -> str:
        """What `again` makes the same of, with a copy of the file."""
        asked = {"name": self.file.name, "format": self.file.format.name, "options": asdict(self.options)}
        told = {name: getattr(self, name) for name in ("meaning", "source_hash", "content_hash", "reads_of")}
        return json.dumps(asked | told, ensure_ascii=False)

    @classmethod
    def again(cls, unfinished: UnfinishedImport, path: Path) -> "Work":
        """What somebody asked for earlier, of a copy of the file."""
        asked = json.loads(unfinished.asked)
        file = recognise(path, name=asked["name"], format_name=asked["format"])
        meaning = asked["meaning"] and ConfidenceMeaning(asked["meaning"])
        hashes = asked["source_hash"], asked["content_hash"]
        return cls(file, Options(**asked["options"]), meaning, *hashes, tuple(asked["reads_of"]))

    def report(self) -> ImportReport:
        """Of an import that begins."""
        one = self.file.format
        dataset = CASES if one.is_triage else self.options.evaluation
        return ImportReport(self.file.name, one.name, dataset, self.dry_run, self.source_hash, list(self.reads_of))

    def rows(self, progress: Callable[[int], None]) -> Rows:
        """Of the file; the first has been read, which of a document is all of its reading."""
        ahead = iter(self.file.rows(self.options, progress))
        return chain([first] if (first := next(ahead, None)) is not None else [], ahead)

    def allow(self, session: Session, actor: Viewer) -> None:
        """Whether somebody may import this; raises NotAllowed."""
        allow(session, actor, check_can_import)
        if self.reads_of:
            allow(session, actor, check_can_import_reads_of)

    def join(
        self, pace: Pace, session: Session, rows: Rows, report: ImportReport, *, written: ImportReport | None = None
    ) -> None:
        """Check every row against the study and write it; after the first fault, only check.

        `written`: what came of the first rows, which the study has already: they come again, and only what they lead to is remembered. ImportFailed: there
        are faults.
        """
        bulk = Bulk(session, source=Source.IMPORT, source_hash=report.source_hash)
        n_written = 0 if written is None else written.rows
        bulk.repeats = n_written > 0
        faults = Faults(self.file.name, row_word=self.file.kind.row_word)
        readers = Readers(session, faults, reads_of=report.reads_of)
        context = ImportContext(self.file, self.options, session, bulk, report, faults, readers)
        writer = (self.file.format.writer or GradedRows)(context)
        size = writer.batch
        batch: list[Any] = []

        def write() -> int:
            if not batch:
                return size
            pace.begin()
            writer.add(batch)
            batch.clear()
            return pace.after(size, report, faults)

        for number, row in rows:
            if isinstance(row, RowFault):
                faults.add(str(row), number)
            else:
                report.rows += 1
                batch.extend(row)
            is_last_repeated = bulk.repeats and report.rows == n_written
            if len(batch) >= size or is_last_repeated:
                size = write()
            if is_last_repeated:
                bulk.repeats = False
                vars(report).update(vars(written))
        write()
        pace.last(report)
        writer.finish()
        if not report.rows and not faults.count:
            faults.add("expected at least one row, got none")
        if report.rows and report.without_partner == report.rows:
            none = f"none of the {report.rows} rows belongs to anything in the study"
            faults.add(f"{none}; {report.without_partner_named[0]}")
        faults.raise_if_any()

    def is_known(self, session: Session) -> bool:
        """Whether the study holds all of it already."""
        return self.meaning is None and lookups.is_imported(session, self.content_hash)

    def set_meanings(self, session: Session, report: ImportReport, actor: str) -> None:
        """Keep what the confidences mean, as far as it is known."""
        known = setting_queries.confidence_meanings(session)
        for judge in report.confident_judges:
            meaning = self.meaning
            if meaning is None and self.file.format.is_triage and judge not in known:
                meaning = ConfidenceMeaning.RIGHT
            if meaning is not None:
                report.meanings_set += set_confidence_meaning(session, judge, meaning, actor=actor)
            elif judge not in known:
                report.meanings_missing.append(judge)

    def record(self, session: Session, report: ImportReport, actor: str) -> None:
        """Tell the trail what came of the file; and remember it, so that importing it again adds nothing."""
        before = lookups.is_imported(session, self.content_hash)
        # a file with rows left out may be imported again once their partners are here
        if not before and not report.without_partner:
            name, format_name = report.file, report.format
            store.add_imported_file(session, content_hash=self.content_hash, name=name, format_name=format_name)
        store.append_event(session, actor=actor, action=FILE_IMPORTED, subject=report.file, detail=report.for_audit())

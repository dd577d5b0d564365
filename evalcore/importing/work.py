"""A file and what it is to be imported as: all that is needed to import it, or to go on importing it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlmodel import Session

from evalcore.importing.files.opening import Opened
from evalcore.importing.files.recognising import recognise
from evalcore.importing.formats import TAKERS
from evalcore.importing.formats.records import Options
from evalcore.importing.joining import Rows, begun
from evalcore.importing.report import ImportReport
from evalcore.settings import settings
from evalcore.study import lookups, store
from evalcore.study.schema import CASES, FILE_IMPORTED, ConfidenceMeaning, Unfinished
from evalcore.triage import setting_queries
from evalcore.triage.store import set_confidence_meaning


@dataclass(frozen=True)
class Work:
    """What a person asked for.

    Attributes:
        meaning: What the confidences of its judges are the probability of.
        source_hash: SHA-256 of the content, unpacked.
        content_hash: SHA-256 of the content with what it means.
        reads_of: Names of people with an account whose reads the file brings.
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
        said = {
            "name": self.file.name,
            "format": self.file.format,
            "options": asdict(self.options),
            "meaning": self.meaning,
            "source_hash": self.source_hash,
            "content_hash": self.content_hash,
            "reads_of": self.reads_of,
        }
        return json.dumps(said, ensure_ascii=False)

    @classmethod
    def again(cls, found: Unfinished, path: Path) -> "Work":
        """What somebody asked for earlier.

        Args:
            found: What the study remembers of it.

        Raises:
            ImportFailed: The file cannot be read any more.
        """
        said = json.loads(found.asked)
        max_line_bytes = settings().max_line_bytes
        file = recognise(path, name=said["name"], format_name=said["format"], max_line_bytes=max_line_bytes)
        meaning = said["meaning"] and ConfidenceMeaning(said["meaning"])
        hashes = said["source_hash"], said["content_hash"]
        return cls(file, Options(**said["options"]), meaning, *hashes, tuple(said["reads_of"]))

    def report(self) -> ImportReport:
        """Of an import that begins."""
        dataset = CASES if self.file.format in TAKERS else self.options.evaluation
        report = ImportReport(file=self.file.name, format=self.file.format, dataset=dataset, dry_run=self.dry_run)
        report.source_hash, report.reads_of = self.source_hash, list(self.reads_of)
        return report

    def rows(self, progress: Callable[[int], None]) -> Rows:
        """Of the file."""
        return begun(self.file.rows(self.options, progress))

    def is_known(self, session: Session) -> bool:
        """Whether the study holds all of it already."""
        return self.meaning is None and lookups.imported_before(session, self.content_hash) is not None

    def set_meanings(self, session: Session, report: ImportReport, actor: str) -> None:
        """Keep what the confidences mean, as far as it is known."""
        known = setting_queries.confidence_meanings(session)
        for judge in report.confident_judges:
            said = self.meaning
            if said is None and self.file.format in TAKERS and judge not in known:
                said = ConfidenceMeaning.RIGHT
            if said is not None:
                report.meanings_set += set_confidence_meaning(session, judge, said, actor=actor)
            elif judge not in known:
                report.meanings_missing.append(judge)

    def record(self, session: Session, report: ImportReport, actor: str) -> None:
        """Tell the trail what came of the file; and remember it, so that importing it again adds nothing."""
        before = lookups.imported_before(session, self.content_hash) is not None
        # a file with rows left out may be imported again once their partners are here
        if not before and not report.without_partner:
            name, format_name = report.file, report.format
            store.add_imported_file(session, content_hash=self.content_hash, name=name, format_name=format_name)
        store.append_event(session, actor=actor, action=FILE_IMPORTED, subject=report.file, detail=report.for_audit())

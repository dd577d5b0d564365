"""What the import of one file has in hand: its transaction, its faults, its raters, its report; and what writes rows with it."""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.records import GivenVerdict, Options
from evalcore.importing.report import ImportReport
from evalcore.study import contents, lookups
from evalcore.study.db import RowMapping, Session
from evalcore.study.schema import RaterKind, Source, Stage, Verdict
from evalcore.study.store import Bulk, ensure_rater
from evalcore.study.tables import now

if TYPE_CHECKING:
    from evalcore.importing.files.opening import Opened

MAX_FAULTS = 20
MAX_COUNTED = 10_000  # with so many, a file is another than was meant: it is not read to its end
COMPARED = (
    "label", "explanation", "confidence", "reason", "cause", "severity", "error_kind", "conflict_cause", "right_for_wrong_reason",
)  # fmt: skip
"""What makes a verdict the same as an earlier one."""
_SHARED = tuple(name for name in Verdict.__struct_fields__ if name in GivenVerdict.__struct_fields__)
_shared = attrgetter(*_SHARED)


class Faults:
    """Collects the faults of one file.

    `count`: how many there are; the first `MAX_FAULTS` of them are kept in words.
    """

    def __init__(self, file_name: str, *, row_word: str) -> None:
        self._file_name, self._row_word = file_name, row_word
        self._sentences: list[str] = []
        self.count = 0

    def add(self, sentence: str, number: int = 0) -> None:
        """Note a fault, of a row where it has a number.

        ImportFailed: there are so many that the file is read no further.
        """
        self.count += 1
        place = f" {self._row_word} {number}" if number else ""
        if len(self._sentences) < MAX_FAULTS:
            self._sentences.append(f"{self._file_name}{place}: {sentence}")
        if self.count >= MAX_COUNTED:
            last = f"{self._file_name}{place}: with {MAX_COUNTED:,} faults it was read no further"
            raise ImportFailed([*self._sentences, last], self.count)

    @contextmanager
    def caught(self, number: int) -> Iterator[None]:
        """Note the fault of a row that the block raises."""
        try:
            yield
        except RowFault as fault:
            self.add(str(fault), number)

    def raise_if_any(self) -> None:
        """Refuse the file where something was noted."""
        if self.count:
            raise ImportFailed(self._sentences, self.count)


class Readers:
    """The raters of one file, by number; a read stays its reader's, whatever name a file writes beside a label.

    A name is that of a person with an account however it is spelt in capitals, blanks or widths: one person is one rater.
    """

    def __init__(self, session: Session, faults: Faults, *, reads_of: Collection[str]) -> None:
        self._session, self._faults = session, faults
        self._people = {_folded(person.name): person.name for person in contents.people(session, everybody=True)}
        self._mapped = {_folded(name) for name in reads_of}
        self._raters: dict[tuple[RaterKind, str], int] = {}
        self._names: dict[int, str] = {}
        self._noted: set[tuple[str, bool]] = set()
        if unknown := [name for name in reads_of if _folded(name) not in self._people]:
            raise ImportFailed([f"Reads of people: expected people of this study, found {', '.join(unknown)}"])

    def number(self, kind: RaterKind, name: str) -> int:
        """The number of a rater."""
        if (kind, name) not in self._raters:
            person = self._people.get(_folded(name)) if kind is RaterKind.REVIEWER else None
            number = self._raters[kind, name] = ensure_rater(self._session, kind, person or name)
            if person is not None:
                self._names[number] = person
        return self._raters[kind, name]

    def check(self, rater_id: int, line: int, *, has_own: bool) -> None:
        """Note a fault where a verdict that is not in the study yet may not come under this name.

        `line`: of the file; 0: unknown. `has_own`: the person has verdicts of their own on the item.
        """
        name = self._names.get(rater_id)
        if name is None or (not has_own and _folded(name) in self._mapped) or (name, has_own) in self._noted:
            return
        self._noted.add((name, has_own))
        sentence = (
            "has an account here, so reads under this name are made in Overread. If these were made elsewhere, a lead imports the file "
            "and names the person under Reads of people (--reads-of); else give the rater another name"
        )
        if has_own:
            sentence = "has read this item in Overread, and no file replaces a person's own reads. Leave these rows out"
        self._faults.add(f"rater: {name} {sentence}", line)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def is_own(row: RowMapping) -> bool:
    """Whether a read in the study is its reader's own: given here, or perhaps given here before this was kept."""
    return bool(row["stage"] != Stage.JUDGE and row["source"] != Source.IMPORT)


@dataclass(frozen=True)
class ImportContext:
    """The transaction of one import, what writes in it, and what it tells.

    `faults`: what is wrong with the file: after the first one rows are checked, and nothing is written. `at`: when its verdicts were given that do not say
    it.
    """

    file: "Opened"
    options: Options
    session: Session
    bulk: Bulk
    report: ImportReport
    faults: Faults
    readers: Readers
    at: datetime = field(default_factory=now)
    _models: dict[str, int] = field(default_factory=dict)

    def models(self, names: Collection[str]) -> dict[str, int]:
        """The numbers of models, those of these names among them; new ones are written."""
        missing = set(names) - self._models.keys()
        if missing:
            self._models.update(lookups.model_ids(self.session, missing))
            new = sorted(missing - self._models.keys())
            numbers = self.bulk.insert("model", [{"name": name} for name in new])
            self._models.update(zip(new, numbers, strict=True))
        return self._models

    def verdict(
        self, given: GivenVerdict, *, example: int, response: int | None, criterion: int | None, before: int | None
    ) -> Verdict:
        """A given verdict as it is stored, counted; `before` is the number of the one that it supersedes."""
        self.report.verdicts_new += before is None
        self.report.verdicts_superseding += before is not None
        return Verdict(
            example_id=example,
            response_id=response,
            criterion_id=criterion,
            rater_id=self.readers.number(given.rater_kind, given.rater),
            created_at=datetime.fromisoformat(given.read_at) if given.read_at else self.at,
            supersedes=before,
            **dict(zip(_SHARED, _shared(given), strict=True)),
        )


class RowWriter(ABC):
    """Takes the rows of one file, batch by batch: checks them against the study and, while nothing in the file was wrong, writes them."""

    batch = 500

    def __init__(self, context: ImportContext) -> None:
        self._context, self._session, self._bulk = context, context.session, context.bulk
        self._report, self._faults, self._readers = context.report, context.faults, context.readers

    @abstractmethod
    def add(self, rows: Sequence[Any]) -> None:
        """Check a batch and write it."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to say
        """What can be said only when the last row is there."""

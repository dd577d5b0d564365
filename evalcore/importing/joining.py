"""The rows of a file, batch by batch, joined with the study."""

from collections.abc import Iterable
from itertools import chain
from time import monotonic

from sqlmodel import Session

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand
from evalcore.importing.examples import Examples
from evalcore.importing.faults import Faults
from evalcore.importing.files.opening import Opened, Row
from evalcore.importing.formats import TAKERS, inspect_logs, simple_evals
from evalcore.importing.formats.records import Graded, Options
from evalcore.importing.inspect_samples import Samples
from evalcore.importing.readers import Readers
from evalcore.importing.report import ImportReport
from evalcore.importing.responses import Responses
from evalcore.study.schema import Example, RaterKind, Source
from evalcore.study.store import Bulk

BATCH = 200
ROW_WORDS = {simple_evals.NAME: "entry", inspect_logs.NAME: "sample"}
"""What a row of a format is called; else a line."""
Rows = Iterable[tuple[int, list[Row] | RowFault]]


class TooLong(Exception):
    """Others have waited long enough for this transaction; it is no error of the file."""


class Pace:
    """How the batches of a file follow each other: here all in one transaction.

    Args:
        seconds: How long it may last before it is given up; None: as long as it takes.
    """

    def __init__(self, session: Session, *, seconds: float | None = None) -> None:
        session.connection()
        self._began, self._seconds = monotonic(), seconds

    def begin(self) -> None:
        """Before a batch."""

    def after(self, size: int, report: ImportReport, faults: Faults) -> int:  # noqa: ARG002 - for those who write in parts
        """After a batch of so many rows. Returns how many the next one is to have.

        Raises:
            TooLong: The transaction has lasted too long.
        """
        if self._seconds is not None and monotonic() - self._began > self._seconds:
            raise TooLong
        return size

    def last(self, report: ImportReport) -> None:
        """After the last batch, before what can be said only then."""


def begun(rows: Rows) -> Rows:
    """The same rows, of which the first has been read: of a document that is all of its reading."""
    ahead = iter(rows)
    return chain([first] if (first := next(ahead, None)) is not None else [], ahead)


def join(
    pace: Pace,
    session: Session,
    file: Opened,
    options: Options,
    rows: Rows,
    report: ImportReport,
    *,
    written: ImportReport | None = None,
) -> None:
    """Check every row against the study and write it; after the first fault, only check.

    Args:
        pace: Is told of each batch.
        options: What a person said about it.
        rows: Of the file, in order.
        written: What came of the first rows, which the study has already: they come again, and only what they lead to is remembered.

    Raises:
        ImportFailed: There are faults.
    """
    bulk = Bulk(session, source=Source.IMPORT, source_hash=report.source_hash)
    n_written = 0 if written is None else written.rows
    bulk.repeats = n_written > 0
    examples = Examples(session, bulk, report)
    faults = Faults(file.name, row_word="row" if file.is_parquet else ROW_WORDS.get(file.format, "line"))
    hand = Hand(session, bulk, report, faults, Readers(session, faults, reads_of=report.reads_of))
    responses = Responses(hand, examples, options)
    made = TAKERS.get(file.format)
    taker = None if made is None else made(hand)
    if file.format == inspect_logs.NAME:
        taker = Samples(hand, responses, options, file.log.known)
    size = BATCH if taker is None else taker.batch
    batch: list[tuple[int, object]] = []

    def write() -> int:
        if not batch:
            return size
        pace.begin()
        if taker is not None:
            taker.add([row for _, row in batch])
        else:
            _write(batch, options, examples, responses, faults)
            _note_confidences(batch, report)
        batch.clear()
        return pace.after(size, report, faults)

    for number, found in rows:
        if isinstance(found, RowFault):
            faults.add(str(found), number)
        else:
            report.rows += 1
            batch.extend((number, row) for row in found)
        is_last_repeated = bulk.repeats and report.rows == n_written
        if len(batch) >= size or is_last_repeated:
            size = write()
        if is_last_repeated:
            bulk.repeats = False
            vars(report).update(vars(written))
    write()
    pace.last(report)
    if taker is not None:
        taker.finish()
    if not report.rows and not faults.count:
        faults.add("expected at least one row, got none")
    if report.rows and report.without_partner == report.rows:
        faults.add(
            f"none of the {report.rows} rows belongs to anything in the study; {report.without_partner_named[0]}"
        )
    faults.raise_if_any()


def _write(
    batch: list[tuple[int, object]], options: Options, examples: Examples, responses: Responses, faults: Faults
) -> None:
    graded = [row for _, row in batch if isinstance(row, Graded)]
    if graded:
        responses.add(graded)
    given = [(number, row) for number, row in batch if isinstance(row, Example)]
    if given:
        examples.load(options.dataset, {row.prompt_id for _, row in given})
        for number, row in given:
            with faults.caught(number):
                examples.add_row(row, number)
        if not faults.count:
            examples.flush()


def _note_confidences(batch: list[tuple[int, object]], report: ImportReport) -> None:
    for _, row in batch:
        for verdict in row.verdicts if isinstance(row, Graded) else ():
            if verdict.confidence is not None and verdict.rater_kind is RaterKind.JUDGE:
                report.confident(verdict.rater)

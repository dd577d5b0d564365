"""A file's bytes as numbered rows, whatever its format: plain or .gz, JSON Lines, one JSON document, CSV, Parquet."""

import csv
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.files import parquet
from evalcore.importing.files.inspect_files import LogFile
from evalcore.importing.files.streams import BLOCK, BOM, MAX_ROWS, check_document, opened, whole_document
from evalcore.importing.formats import FORMATS, inspect_logs, known_columns, reader_of_lines, simple_evals
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import not_utf8

Row = Any
"""schema.Example, importers.records.Graded, a sample of a log, or a row of a format of triage."""

LONGEST_KEY = 64
_METADATA = b'"metadata":'


@dataclass(frozen=True)
class Opened:
    """A file that was recognised.

    Attributes:
        is_csv: A table, not lines of JSON.
    """

    path: Path
    name: str
    format: str
    max_line_bytes: int
    is_csv: bool = False
    is_parquet: bool = False

    def rows(self, options: Options, progress: Callable[[int], None]) -> Iterator[tuple[int, list[Row] | RowFault]]:
        """Each row's number with what it holds, or with what is wrong with it; progress is told the bytes read."""
        if self.format == simple_evals.NAME:
            return self._document(options, progress)
        if self.format == inspect_logs.NAME:
            return self._samples(options, progress)
        if self.is_parquet:
            return self._parquet(options, progress)
        return self._csv(options, progress) if self.is_csv else self._json_lines(options, progress)

    def at(self, path: Path) -> "Opened":
        """The same, read from a copy."""
        return replace(self, path=path)

    @cached_property
    def log(self) -> LogFile:
        """The file as a log of inspect_ai, where it is one."""
        return LogFile(self.path, self.name)

    def content_hash(self) -> str:
        """SHA-256 of the content, unpacked."""
        if self.format == simple_evals.NAME:
            return self._document_read[2]
        digest = hashlib.sha256()
        with opened(self.path, self.name) as stream:
            while block := stream.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def _document(
        self, options: Options, progress: Callable[[int], None]
    ) -> Iterator[tuple[int, list[Row] | RowFault]]:
        size = self._document_read[1]
        try:
            entries = self._entries()
        except RowFault as fault:
            yield 0, fault
            return
        for number, entry in enumerate(entries, 1):
            yield number, read_or_fault(simple_evals.read, entry, number, options)
            progress(size * number // len(entries))

    def _samples(self, options: Options, progress: Callable[[int], None]) -> Iterator[tuple[int, list[Row] | RowFault]]:
        known, number = self.log.known, 0
        for number, (raw, done) in enumerate(self.log.samples(), 1):
            yield number, read_or_fault(inspect_logs.read, raw, number, options, known)
            progress(done)
        if not number:
            yield 0, RowFault(f"expected at least one, got no sample; the log's status is {known.status!r}")

    def _entries(self) -> list[msgspec.Raw]:
        """The raw entries. What stands before them, mostly pages of HTML, is passed over where that is possible."""
        try:
            return simple_evals.entries(self._document_read[0])
        except RowFault:
            with opened(self.path, self.name) as stream:
                return simple_evals.entries(whole_document(stream, self.name))

    @cached_property
    def _document_read(self) -> tuple[bytearray, int, str]:
        """A document of which only the key metadata and what follows is left, the whole one's size and its SHA-256."""
        part, size, digest = bytearray(), 0, hashlib.sha256()
        with opened(self.path, self.name) as stream:
            while block := stream.read(BLOCK):
                size += len(block)
                digest.update(block)
                part += block
                if not part.startswith(b"{" + _METADATA):
                    found = part.find(_METADATA)
                    part[:] = b"{" + part[found:] if found >= 0 else part[-LONGEST_KEY:]
                check_document(part, self.name)
        return part, size, digest.hexdigest()

    def _parquet(self, options: Options, progress: Callable[[int], None]) -> Iterator[tuple[int, list[Row] | RowFault]]:
        module = FORMATS[self.format]
        with opened(self.path, self.name) as stream, parquet.table(stream, self.name) as table:
            given = parquet.rows(
                table, self.name, known=known_columns(module), longest=self.max_line_bytes, progress=progress
            )
            for number, cells in given:
                if isinstance(cells, RowFault):
                    yield number, cells
                else:
                    yield number, read_or_fault(module.read_cells, cells, number, options)

    def _json_lines(
        self, options: Options, progress: Callable[[int], None]
    ) -> Iterator[tuple[int, list[Row] | RowFault]]:
        read = reader_of_lines(self.format)
        for number, line in self._lines(progress):
            if isinstance(line, RowFault):
                yield number, line
            elif stripped := line.strip():
                yield number, read_or_fault(read, stripped, number, options)

    def _csv(self, options: Options, progress: Callable[[int], None]) -> Iterator[tuple[int, list[Row] | RowFault]]:
        csv.field_size_limit(self.max_line_bytes)
        read_cells = FORMATS[self.format].read_cells
        reader = csv.reader(self._texts(progress), strict=True)
        columns: list[str] = []
        while True:
            number = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield number, RowFault(f"not readable as CSV: {error}")
                return
            except _Unreadable as error:
                yield reader.line_num + 1, error.fault
                return
            if cells is None:
                return
            if not columns:
                columns = [cell.strip() for cell in cells] if any(map(str.strip, cells)) else []
                if repeated := [name for index, name in enumerate(columns) if name and name in columns[:index]]:
                    yield number, RowFault(f"{repeated[0]}: expected the column once, got it twice")
                    return
            elif cells and len(cells) != len(columns):
                yield number, RowFault(f"expected {len(columns)} cells as in the first line, got {len(cells)}")
            elif cells:
                yield number, read_or_fault(read_cells, dict(zip(columns, cells, strict=True)), number, options)

    def _texts(self, progress: Callable[[int], None]) -> Iterator[str]:
        for _, line in self._lines(progress):
            if isinstance(line, RowFault):
                raise _Unreadable(line)
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise _Unreadable(RowFault(not_utf8(error))) from error

    def _lines(self, progress: Callable[[int], None]) -> Iterator[tuple[int, bytes | RowFault]]:
        """Numbered lines, the first without its byte order mark; an endless one is a fault and the last."""
        with opened(self.path, self.name) as stream:
            done = number = 0
            while line := stream.readline(self.max_line_bytes + 1):
                number += 1
                done += len(line)
                if len(line) > self.max_line_bytes:
                    yield number, too_long(self.max_line_bytes)
                    return
                if number > MAX_ROWS:
                    yield number, RowFault(f"expected at most {MAX_ROWS:,} lines, got more")
                    return
                yield number, line.removeprefix(BOM) if number == 1 else line
                progress(done)


class _Unreadable(Exception):
    """Carries a fault past the CSV reader."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def too_long(max_line_bytes: int) -> RowFault:
    """The fault of a line without an end."""
    return RowFault(f"expected lines of at most {max_line_bytes:,} bytes, got a longer one")


def read_or_fault(read: Callable[..., Iterator[Row]], *given: object) -> list[Row] | RowFault:
    """The rows that an importer makes of what is given, or what is wrong with it."""
    try:
        return list(read(*given))
    except RowFault as fault:
        return fault

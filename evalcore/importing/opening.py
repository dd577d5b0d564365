"""A file's bytes as numbered rows, whatever its format: plain or .gz, JSON Lines, one JSON document, CSV, Parquet."""

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from evalcore.errors import ImportFailed, RowFault
from evalcore.importers import FORMATS, PARQUET, healthbench_examples, simple_evals
from evalcore.importers.options import Options
from evalcore.importers.wire import MAX_SHOWN, not_utf8, shown
from evalcore.importing import parquet

Row = Any
"""schema.Example, importers.records.Graded, or a row of a format of triage."""

PARQUET_ORDER = tuple(known for known in FORMATS if known in PARQUET)
_BLOCK = 1 << 20
_LONGEST_KEY = 64
_METADATA = b'"metadata":'
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Opened:
    """A file that was recognised.

    Attributes:
        name: As faults name it.
        format: A key of `importers.FORMATS`.
        is_csv: A table, not lines of JSON.
        is_parquet: A table in that format.
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
        if self.is_parquet:
            return self._parquet(options, progress)
        return self._csv(options, progress) if self.is_csv else self._json_lines(options, progress)

    def content_hash(self) -> str:
        """SHA-256 of the content, unpacked."""
        if self.format == simple_evals.NAME:
            return self._document_read[2]
        digest = hashlib.sha256()
        with opened(self.path, self.name) as stream:
            while block := stream.read(_BLOCK):
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
            yield number, _read(simple_evals.read, entry, number, options)
            progress(size * number // len(entries))

    def _entries(self) -> list[msgspec.Raw]:
        """The raw entries. What stands before them, mostly pages of HTML, is passed over where that is possible."""
        try:
            return simple_evals.entries(self._document_read[0])
        except RowFault:
            with opened(self.path, self.name) as stream:
                return simple_evals.entries(stream.read().removeprefix(_BOM))

    @cached_property
    def _document_read(self) -> tuple[bytearray, int, str]:
        """A document of which only the key metadata and what follows is left, the whole one's size and its SHA-256."""
        part, size, digest = bytearray(), 0, hashlib.sha256()
        with opened(self.path, self.name) as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                digest.update(block)
                part += block
                if not part.startswith(b"{" + _METADATA):
                    found = part.find(_METADATA)
                    part[:] = b"{" + part[found:] if found >= 0 else part[-_LONGEST_KEY:]
        return part, size, digest.hexdigest()

    def _parquet(self, options: Options, progress: Callable[[int], None]) -> Iterator[tuple[int, list[Row] | RowFault]]:
        module = FORMATS[self.format]
        with opened(self.path, self.name) as stream, parquet.table(stream, self.name) as (table, size):
            for number, cells in parquet.rows(table, size, self.name, known=module.COLUMNS, progress=progress):
                if isinstance(cells, RowFault):
                    yield number, cells
                else:
                    yield number, _read(module.read_cells, cells, number, options)

    def _json_lines(
        self, options: Options, progress: Callable[[int], None]
    ) -> Iterator[tuple[int, list[Row] | RowFault]]:
        read = FORMATS[self.format].read
        for number, line in self._lines(progress):
            if isinstance(line, RowFault):
                yield number, line
            elif stripped := line.strip():
                yield number, _read(read, stripped, number, options)

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
                    yield number, RowFault(f"{repeated[0]}: the column came twice, expected it once")
                    return
            elif cells and len(cells) != len(columns):
                yield number, RowFault(f"{len(cells)} cells came, expected {len(columns)} as in the first line")
            elif cells:
                yield number, _read(read_cells, dict(zip(columns, cells, strict=True)), number, options)

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
                    yield number, _too_long(self.max_line_bytes)
                    return
                yield number, line.removeprefix(_BOM) if number == 1 else line
                progress(done)


class _Unreadable(Exception):
    """Carries a fault past the CSV reader."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _too_long(max_line_bytes: int) -> RowFault:
    return RowFault(f"a line of more than {max_line_bytes:,} bytes came, expected at most that")


def _read(read: Callable[..., Iterator[Row]], *given: object) -> list[Row] | RowFault:
    try:
        return list(read(*given))
    except RowFault as fault:
        return fault


def recognise(path: Path, *, name: str, format_name: str | None, max_line_bytes: int) -> Opened:
    """Open a file and tell its format from its content.

    Raises:
        ImportFailed: It is empty, unreadable, or of no known format.
    """
    if format_name is not None and format_name not in FORMATS:
        raise ImportFailed([f"{name}: format {format_name!r} came, expected one of {', '.join(FORMATS)}"])
    if found := _parquet_format(path, name, format_name):
        return Opened(path, name, found, max_line_bytes, is_parquet=True)
    first = _first_line(path, name, max_line_bytes)
    if not first:
        came = "only blank lines came" if path.stat().st_size else "0 bytes came"
        raise ImportFailed([f"{name}: {came}, expected one of the formats {', '.join(FORMATS)}"])
    found = format_name or _format_of(first, path, name, max_line_bytes)
    is_csv = hasattr(FORMATS[found], "read_cells") and not first.startswith(b"{")
    return Opened(path, name, found, max_line_bytes, is_csv=is_csv)


def _parquet_format(path: Path, name: str, format_name: str | None) -> str | None:
    """The format of a Parquet file; None where it is none."""
    with opened(path, name) as stream:
        if stream.read(len(parquet.MAGIC)) != parquet.MAGIC:
            return None
    with opened(path, name) as stream, parquet.table(stream, name) as (table, _):
        columns = set(table.schema_arrow.names)
    found = format_name or next((known for known in PARQUET_ORDER if FORMATS[known].recognises(columns)), None)
    if found not in PARQUET:
        came = ", ".join(sorted(columns)[:8])[:MAX_SHOWN]
        raise ImportFailed(
            [f"{name}: Parquet with {came} came, expected the columns of one of {', '.join(PARQUET_ORDER)}"]
        )
    return found


def _format_of(first: bytes, path: Path, name: str, max_line_bytes: int) -> str:
    is_json = first.startswith((b"{", b"["))
    keys = _keys(first) if is_json else _columns(first)
    if keys is None:  # a document over several lines, one very long line, or a faulty one
        if _result_keys(path, name):
            return simple_evals.NAME
        keys = set()
    for format_name, module in FORMATS.items():
        if module.recognises(keys):
            return format_name
    if len(first) > max_line_bytes:
        raise ImportFailed([f"{name} line 1: {_too_long(max_line_bytes)}"])
    if is_json and not keys:
        faulty = _read(healthbench_examples.read, first, 1, Options())
        raise ImportFailed([f"{name} line 1: {faulty}"])
    came = ", ".join(sorted(keys)[:8])[:MAX_SHOWN] if is_json else shown(first.decode(errors="replace"))
    raise ImportFailed(
        [f"{name} line 1: {came} came, expected the columns or keys of one of the formats {', '.join(FORMATS)}"]
    )


def _columns(first: bytes) -> set[str]:
    try:
        return set(next(csv.reader([first.decode(errors="replace")]), []))
    except csv.Error:
        return set()


def _keys(first: bytes) -> set[str] | None:
    """Keys of an object; none of another value; None where the line is not valid by itself."""
    try:
        return set(msgspec.json.decode(first, type=dict[str, msgspec.Raw]))
    except msgspec.ValidationError:
        return set()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _result_keys(path: Path, name: str) -> set[str]:
    """Which keys of a result file a document has that does not stand on one line; a quote within a text has a backslash."""
    with opened(path, name) as stream:
        tail = b""
        while block := stream.read(_BLOCK):
            seen = tail + block
            if found := {key for key in simple_evals.OWN_KEYS if f'"{key}"'.encode() in seen}:
                return found
            tail = block[-_LONGEST_KEY:]
    return set()


def _first_line(path: Path, name: str, max_line_bytes: int) -> bytes:
    with opened(path, name) as stream:
        while line := stream.readline(max_line_bytes + 1):
            if (stripped := line.removeprefix(_BOM).strip()) or len(line) > max_line_bytes:
                return stripped or line
    return b""


@contextmanager
def opened(path: Path, name: str) -> Iterator[BinaryIO]:
    """The content as a stream of bytes, unpacked where it is gzip.

    Raises:
        ImportFailed: There is no such file, or it is damaged.
    """
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            stream = gzip.GzipFile(fileobj=plain) if packed else plain
            yield io.BufferedReader(stream) if packed else plain
    except FileNotFoundError as error:
        raise ImportFailed([f"{name}: no such file"]) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ImportFailed([f"{name}: not readable as gzip: {error}"]) from error
    except OSError as error:
        raise ImportFailed([f"{name}: cannot be read: {error.strerror or error}"]) from error

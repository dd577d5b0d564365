"""A file, its format told by its content, and its bytes as numbered rows: plain or .gz, JSON Lines, one JSON document, CSV, Parquet."""

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from itertools import count, islice
from pathlib import Path
from typing import Any, get_args

import msgspec

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import MAX_SHOWN, FileFormat, Kind, Options, Rows, shown
from evalcore.importing.files.streams import (
    BLOCK,
    BOM,
    MAX_ROWS,
    OLD_EXCEL,
    PARQUET_MAGIC,
    ZIP_MAGIC,
    check_document,
    is_workbook,
    opened,
    whole_document,
)
from evalcore.importing.formats import FORMATS, healthbench, inspect_logs
from evalcore.importing.formats.values import cells_of, check_entries, decode, is_vote, not_utf8, refuse, refuse_row
from evalcore.importing.mapping import OwnNames
from evalcore.settings import settings
from evalcore.study.csv_cells import unguarded

Progress = Callable[[int], None]
Given = Iterator[tuple[int, Any]]  # each row's number with its bytes or cells, or with a RowFault
LONGEST_KEY = 64
MAX_FIELDS = 200  # that no format reads are told apart: keys of an object may be any words
OTHERS = "others"
TOLD_BYTES = 1 << 16  # of lines, between two words of how far it is
LOOKED_INTO = 1 << 26  # bytes of a document in which what stands before its rows is looked at too
TOO_LONG = "expected lines of at most {:,} bytes, got a longer one"
_OF_CELLS = (Kind.TABLE, Kind.PARQUET, Kind.SHEET)
MOST_SAMPLED = 1 << 22
_ANY_ROWS = "CSV, JSON Lines, JSON, Parquet or XLSX"
_METADATA = b'"metadata":'
_READ_WHOLE = {one.kind: one for one in FORMATS.values() if one.kind is not Kind.LINES}
_AS_PARQUET = {name: one for name, one in FORMATS.items() if one.is_parquet}

_EMPTY, _LONGEST_EMPTY = (b"null", b'""', b"[]", b"{}"), 4
_VOTES = "anon_label_1"
Shape = Mapping[str, Any]  # the fields that are read; to a Shape where it is an object, or a list of such, else to None
Counts = dict[str, int]


@dataclass(frozen=True)
class Opened:
    """A file that was recognised."""

    path: Path
    name: str
    format: FileFormat
    kind: Kind
    names: OwnNames | None = None

    def rows(self, options: Options, progress: Progress, left: Counts | None, *, as_cells: bool = False) -> Rows:
        """The rows, or (`as_cells`) the cells of each; progress is told the bytes read, and `left` the fields that the format does not read."""
        counts: Counts = {} if left is None else left
        sources: dict[Kind, Callable[[Progress], Given]] = {
            Kind.DOCUMENT: partial(self._entries, counts),
            Kind.PARQUET: partial(self._parquet, counts),
            Kind.LOG: self._samples,
            Kind.TABLE: self._csv,
            Kind.LINES: self._json_lines,
            Kind.OBJECTS: self._objects,
            Kind.SHEET: self._sheet,
        }
        read: Callable[..., Iterable[Any]] | None = self.format.read
        if self.kind is Kind.LOG:
            read = partial(inspect_logs.read, known=self.log.known)
        elif self.kind in _OF_CELLS or read is None:
            read = self.format.read_cells
        columns, others = None, list[str]()
        for number, given in sources[self.kind](progress):
            is_fault = isinstance(given, RowFault)
            try:
                if as_cells or is_fault:
                    found = given
                elif self.names is not None:
                    found = self._by_names(self.names, given, number, options)
                else:
                    found = given if read is None else list(read(given, number, options))
            except RowFault as fault:
                yield number, fault
                continue
            if left is None:
                pass
            elif isinstance(given, dict):
                if given.keys() != columns:
                    columns, others = given.keys(), columns_unread(self._known, given)
                if others:
                    note(left, ((column, given[column] != "") for column in others))
            elif not is_fault:
                is_log = self.kind is Kind.LOG
                note_object(left, inspect_logs.with_null(bytes(given)) if is_log else given, self._known)
            yield number, found

    def first_rows(self, n: int) -> list[tuple[int, dict[str, str]]]:
        """The first rows as cells, each with its number, up to some megabytes; ImportFailed: one cannot be read."""
        rows: Given = self.rows(Options(), lambda _done: None, None, as_cells=True)
        found, n_bytes = [], 0
        for number, given in islice(rows, n):
            if isinstance(given, RowFault):
                raise ImportFailed([f"{self.name}{f' {self.kind.row_word} {number}' if number else ''}: {given}"])
            found.append((number, given))
            n_bytes += sum(map(len, given.values()))
            if n_bytes > MOST_SAMPLED:
                break
        return found

    def _by_names(self, names: OwnNames, given: dict[str, str], number: int, options: Options) -> list[Any]:
        if self.kind in _OF_CELLS and (missing := names.missing(given)):
            came = ", ".join(given)[:MAX_SHOWN]
            refuse(missing[0], f"a column of the file, which are {came}", "none of this name: correct the mapping")
        read = self.format.read_cells or refuse("format", "a format of tables", self.format.name)
        try:
            return [found for row in names.rows_of(given) for found in read(row, number, options)]
        except RowFault as fault:
            raise names.explained(fault) from fault

    @cached_property
    def log(self) -> inspect_logs.LogFile:
        """The file as a log of inspect_ai, where it is one."""
        return inspect_logs.LogFile(self.path, self.name)

    @cached_property
    def _known(self) -> Shape:
        known = read_by(self.format)
        if self.names is None:
            return known
        own = {*known} - {*self.names.columns.values()} | self.names.heads()
        return dict.fromkeys(own)

    def asked(self, options: Options) -> dict[str, Any]:
        """What `again` makes the same of, as JSON holds it."""
        names = msgspec.to_builtins(self.names)
        return {"name": self.name, "format": self.format.name, "options": asdict(options), "names": names}

    def content_hash(self) -> str:
        """SHA-256 of the content, unpacked."""
        digest = hashlib.sha256()
        with opened(self.path, self.name) as stream:
            while block := stream.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def _entries(self, left: Counts, progress: Progress) -> Given:
        """Of a results file; of a large one what stands before its metadata, mostly HTML, is passed over where that is possible."""
        document, size = bytearray(), 0
        least = self.path.stat().st_size  # where it is packed it is more
        with opened(self.path, self.name) as stream:
            while block := stream.read(BLOCK):
                size += len(block)
                document += block
                if max(size, least) > LOOKED_INTO and not document.startswith(b"{" + _METADATA):
                    start = document.find(_METADATA)
                    document[:] = b"{" + document[start:] if start >= 0 else document[-LONGEST_KEY:]
                check_document(document, self.name)
        if document.startswith(BOM):
            del document[: len(BOM)]
        if self.format.document is not None:
            note_object(left, document, shape(self.format.document), whose="the document's ")
        try:
            try:
                entries = healthbench.entries(document)
            except RowFault:
                with opened(self.path, self.name) as stream:
                    entries = healthbench.entries(whole_document(stream, self.name))
        except RowFault as fault:
            yield 0, fault
            return
        del document
        for number, entry in enumerate(entries, 1):
            yield number, entry
            progress(size * number // len(entries))

    def _samples(self, progress: Progress) -> Given:
        number = 0
        for number, (raw, done) in enumerate(self.log.samples(), 1):
            yield number, raw
            progress(done)
        if not number:
            yield 0, RowFault(f"expected at least one, got no sample; the log's status is {self.log.known.status!r}")

    def _parquet(self, left: Counts, progress: Progress) -> Given:
        from evalcore.importing.files import parquet  # noqa: PLC0415 - with pyarrow, which other files do without

        known, longest = frozenset(self._known), settings().max_line_bytes
        with opened(self.path, self.name) as stream, parquet.table(stream, self.name) as table:
            for column in columns_unread(self._known, table.file.schema_arrow.names):
                note(left, [(column, True)], parquet.n_filled(table, column))
            if self.names is None:
                yield from parquet.rows(table, self.name, known=known, longest=longest, progress=progress)
                return
            columns = None if self.names.is_blank else known | self.format.column_names
            yield from parquet.rows(table, self.name, known=None, columns=columns, longest=longest, progress=progress)

    def _objects(self, progress: Progress) -> Given:
        """The objects of a JSON document, as cells."""
        rows = self.names.rows if self.names is not None else ""
        with opened(self.path, self.name) as stream:
            document = whole_document(stream, self.name)
        check_entries(document, *rows.split(".") * bool(rows))
        value: Any = msgspec.Raw(document)
        for key in rows.split(".") * bool(rows):
            try:
                value = decode(value, dict[str, msgspec.Raw])[key]
            except (RowFault, KeyError):
                yield 0, RowFault(f"rows: expected the key {rows} with a list of objects, got no {key}")
                return
        either: Any = list[msgspec.Raw] | dict[str, msgspec.Raw]
        try:
            entries = decode(value, either)
        except RowFault as fault:
            yield 0, fault
            return
        raws = [value] if isinstance(entries, dict) else entries
        for number, raw in enumerate(raws, 1):
            try:
                yield number, cells_of(bytes(raw), ())
            except RowFault as fault:
                yield number, fault
            progress(len(document) * number // len(raws))

    def _sheet(self, progress: Progress) -> Given:
        from evalcore.importing.files import sheets  # noqa: PLC0415 - with openpyxl, which other files do without

        sheet = self.names.rows if self.names is not None else ""
        with opened(self.path, self.name) as stream:
            yield from sheets.rows(stream, self.name, sheet, longest=settings().max_line_bytes, progress=progress)

    def _json_lines(self, progress: Progress) -> Given:
        known, as_cells = self.format.column_names - self.format.json_columns, self.format.read is None
        known = known if self.names is None else frozenset()
        lines, number = self._lines(progress), 0
        while True:
            number += 1
            try:
                if (line := next(lines, None)) is None:
                    return
                if stripped := line.strip():
                    yield number, cells_of(stripped, known) if as_cells else stripped
            except RowFault as fault:
                yield number, fault

    def _csv(self, progress: Progress) -> Given:
        csv.field_size_limit(settings().max_line_bytes)
        between = "," if self.names is None else _between(self.path, self.name)
        reader = csv.reader(map(bytes.decode, self._lines(progress)), strict=True, delimiter=between)
        columns: list[str] = []
        while True:
            number = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield number, RowFault(f"not readable as CSV: {error}")
                return
            except (RowFault, UnicodeDecodeError) as fault:
                yield reader.line_num + 1, fault if isinstance(fault, RowFault) else RowFault(not_utf8(fault))
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
                given = map(unguarded, cells) if self.format.is_guarded else cells
                yield number, dict(zip(columns, given, strict=True))

    def _lines(self, progress: Progress) -> Iterator[bytes]:
        """The lines as they stand; a RowFault ends them."""
        longest, done, told = settings().max_line_bytes, 0, 0
        with opened(self.path, self.name) as stream:
            for number in count(1):
                line = stream.readline(longest + 1)
                done += len(line)
                if done - told > TOLD_BYTES or not line:
                    progress(done)
                    told = done
                if not line:
                    return
                if len(line) > longest:
                    raise RowFault(TOO_LONG.format(longest))
                if number > MAX_ROWS:
                    refuse_row(f"expected at most {MAX_ROWS:,} lines, got more")
                yield line.removeprefix(BOM) if number == 1 else line


def recognise(path: Path, *, name: str, format_name: str | None, names: OwnNames | None = None) -> Opened:
    """Open a file and tell its format from its content, or from what says its own names; ImportFailed: it is empty, unreadable, or of no known format."""
    name = name.encode(errors="replace").decode().replace("\x00", "?")  # a name may hold any bytes
    if names is not None:
        return Opened(path, name, FORMATS[names.format], _kind_of_rows(path, name, names), names)
    if format_name is not None and format_name not in FORMATS:
        raise ImportFailed([f"{name}: expected one of {', '.join(FORMATS)}, got format {format_name!r}"])
    wanted = FORMATS.get(format_name or "")
    head, is_book = _head(path, name)
    if head.startswith(PARQUET_MAGIC):
        return Opened(path, name, _parquet_format(path, name, wanted), Kind.PARQUET)
    is_log = is_zip = head.startswith(ZIP_MAGIC)
    if is_book:
        by_names = "which is read by a mapping of its columns: made on the Study page, or --mapping"
        expected = wanted.name if wanted else "a format"
        raise ImportFailed([f"{name}: expected {expected}, got a workbook (XLSX), {by_names}"])
    if wanted is None:
        begins = inspect_logs.BEGINS.match(head.removeprefix(BOM)) is not None
        is_log = is_zip or (begins and b'"eval"' in head and b'"task"' in head)
    elif wanted.kind is Kind.LOG:
        is_log = bool(head.strip())
    elif is_zip:
        raise ImportFailed([f"{name}: expected {wanted.name}, got a zip"])
    if is_log:
        return Opened(path, name, _READ_WHOLE[Kind.LOG], Kind.LOG)
    first, _ = _first_line(path, name, f"one of the formats {', '.join(FORMATS)}")
    found = wanted or _format_of(first, path, name)
    is_table = found.read_cells is not None and not first.startswith(b"{")
    return Opened(path, name, found, Kind.TABLE if is_table else found.kind)


def again(path: Path, asked: Mapping[str, Any]) -> tuple[Opened, Options]:
    """A file, or a copy of it, as it was opened when it was `Opened.asked`."""
    names = asked.get("names") and msgspec.convert(asked["names"], OwnNames)
    file = recognise(path, name=asked["name"], format_name=asked["format"], names=names)
    return file, Options(**asked["options"])


def _head(path: Path, name: str) -> tuple[bytes, bool]:
    """The beginning of a file, and whether it is a workbook."""
    with opened(path, name) as stream:
        head = stream.read(inspect_logs.HEAD)
    if not head.startswith(ZIP_MAGIC):
        return head, False
    with opened(path, name) as stream:
        return head, is_workbook(stream)


def _first_line(path: Path, name: str, expected: str) -> tuple[bytes, bool]:
    """The first line that is not blank, or its beginning where it is too long, and whether nothing follows it; ImportFailed: there is none."""
    first, longest = b"", settings().max_line_bytes
    with opened(path, name) as stream:
        while not first and (line := stream.readline(longest + 1)):
            first = line.removeprefix(BOM).strip() or (line if len(line) > longest else b"")
        is_last = not stream.read(BLOCK).strip()
    if not first:
        content = "only blank lines" if path.stat().st_size else "0 bytes"
        raise ImportFailed([f"{name}: expected {expected}, got {content}"])
    return first, is_last


def _kind_of_rows(path: Path, name: str, names: OwnNames) -> Kind:
    """How the rows lie in a file that has names of its own for them."""
    head, is_book = _head(path, name)
    if head.startswith(PARQUET_MAGIC):
        return Kind.PARQUET
    if is_book:
        return Kind.SHEET
    if head.startswith(ZIP_MAGIC):
        raise ImportFailed([f"{name}: expected {_ANY_ROWS}, got a zip that is no workbook"])
    if head.startswith(OLD_EXCEL):
        got = "a workbook of an old Excel (.xls): save it as .xlsx or CSV"
        raise ImportFailed([f"{name}: expected {_ANY_ROWS}, got {got}"])
    first, is_alone = _first_line(path, name, _ANY_ROWS)
    if first.startswith(b"["):
        return Kind.OBJECTS
    if not first.startswith(b"{"):
        return Kind.TABLE
    try:
        keys = msgspec.json.decode(first, type=dict[str, msgspec.Raw])
        return Kind.OBJECTS if is_alone and names.rows.partition(".")[0] in keys else Kind.LINES
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # a faulty line that ends as an object is meant as one: the file is of lines, of which this one is broken
        is_line = len(first) > settings().max_line_bytes or first.endswith(b"}")
        return Kind.LINES if is_line else Kind.OBJECTS


def _between(path: Path, name: str) -> str:
    """What stands between the cells of a table: Excel writes semicolons where the comma is a decimal sign."""
    with opened(path, name) as stream:
        lines = iter(lambda: stream.readline(settings().max_line_bytes), b"")
        first = next((line for line in lines if line.strip()), b"")
    bare = re.sub(rb'"[^"]*"', b"", first)
    return max((",", ";", "\t"), key=lambda sign: bare.count(sign.encode()))


def _parquet_format(path: Path, name: str, wanted: FileFormat | None) -> FileFormat:
    from evalcore.importing.files import parquet  # noqa: PLC0415 - with pyarrow, which other files do without

    with opened(path, name) as stream, parquet.table(stream, name) as table:
        columns = set(table.file.schema_arrow.names)
    found = wanted or next((one for one in _AS_PARQUET.values() if one.recognises(columns)), None)
    if found is None or not found.is_parquet:
        came = ", ".join(sorted(columns)[:8])[:MAX_SHOWN]
        expected = f"expected the columns of one of {', '.join(_AS_PARQUET)}"
        raise ImportFailed([f"{name}: {expected}, got Parquet with {came}{_closest(columns, _AS_PARQUET)}"])
    return found


def _format_of(first: bytes, path: Path, name: str) -> FileFormat:
    is_json = first.startswith((b"{", b"["))
    keys: set[str] | None = set()
    try:
        of_table = csv.reader([first.decode(errors="replace")])
        keys = set(msgspec.json.decode(first, type=dict[str, msgspec.Raw]) if is_json else next(of_table, []))
    except (csv.Error, msgspec.ValidationError):
        pass
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        keys = None
    if keys is None and _is_document(path, name):  # over several lines, or one very long line; else it is a faulty one
        return _READ_WHOLE[Kind.DOCUMENT]
    keys = keys or set()
    fitting = (one for one in FORMATS.values() if one.recognises(keys) and (is_json or one.read_cells is not None))
    if (found := next(fitting, None)) is not None:
        return found
    if len(first) > (longest := settings().max_line_bytes):
        raise ImportFailed([f"{name} line 1: {TOO_LONG.format(longest)}"])
    if is_json and not keys:
        try:
            list(healthbench.read(first, 1, Options()))
        except RowFault as fault:
            raise ImportFailed([f"{name} line 1: {fault}"]) from fault
    came = ", ".join(sorted(keys)[:8])[:MAX_SHOWN] if is_json else shown(first.decode(errors="replace"))
    expected = f"the columns or keys of one of the formats {', '.join(FORMATS)}"
    raise ImportFailed([f"{name} line 1: expected {expected}, got {came}{_closest(keys, FORMATS)}"])


def _closest(keys: set[str], formats: Mapping[str, FileFormat]) -> str:
    """Of these formats the one that the most of these columns or keys belong to, and what a file of it has beside them; empty where they belong to none."""
    near = max(formats.values(), key=lambda one: (len(one.column_names & keys), -len(one.lacks(keys))))
    if not near.column_names & keys:
        return ""
    if not near.lacks(keys):
        return f"; closest format: {near.name}, which is {near.kind}"
    return f"; closest format: {near.name}; missing: {', '.join(near.lacks(keys))}"


def _is_document(path: Path, name: str) -> bool:
    """Whether a file that does not stand on one line has a key of a results file; a quote within a text has a backslash."""
    keys = [f'"{key}"'.encode() for key in _READ_WHOLE[Kind.DOCUMENT].one_of[0]]
    with opened(path, name) as stream:
        tail = b""
        while block := stream.read(BLOCK):
            seen = tail + block
            if any(key in seen for key in keys):
                return True
            tail = block[-LONGEST_KEY:]
    return False


# ---------------------------------------------------------------- the fields that a format does not read


@cache
def shape(kind: type[msgspec.Struct]) -> Shape:
    """What a struct reads of an object."""
    inner = {field.encode_name: _struct_in(field.type) for field in msgspec.structs.fields(kind)}
    return {name: shape(found) if found is not None else None for name, found in inner.items()}


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct of a field or of the items of its list; of an object with names for keys none: all of it is read."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    parts = () if getattr(annotation, "__origin__", None) is dict else get_args(annotation)
    return next((found for part in parts if (found := _struct_in(part)) is not None), None)


def read_by(one: FileFormat) -> Shape:
    """What a format reads of a row."""
    return dict.fromkeys(one.column_names) if one.row is None else shape(one.row)


def columns_unread(known: Shape, columns: Iterable[str]) -> list[str]:
    """The columns of a table that its format does not read."""
    return [column for column in columns if column not in known and not (_VOTES in known and is_vote(column))]


def note(counts: Counts, fields: Iterable[tuple[str, bool]], n: int = 1) -> None:
    """Note fields of a row, or of `n` rows, each with whether it holds something there."""
    for field, is_filled in fields:
        name = field if field.isprintable() else repr(field)
        name = (name if len(name) <= MAX_SHOWN else name[: MAX_SHOWN - 1] + "…") or "(without a name)"
        if name not in counts and len(counts) >= MAX_FIELDS:
            name = OTHERS
        counts[name] = counts.get(name, 0) + is_filled * n


def note_object(counts: Counts, line: Any, known: Shape, whose: str = "") -> None:
    """Note the fields of an object of JSON; a field of several items of a list counts once."""
    found: dict[str, bool] = {}
    for name, is_filled in _fields(line, known, ""):
        found[whose + name] = found.get(whose + name, False) or is_filled
    note(counts, found.items())


def _fields(value: Any, known: Shape, path: str) -> Iterator[tuple[str, bool]]:
    try:
        items = msgspec.json.decode(value, type=dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a text, say, where a list may stand too
        return
    below = f"{path}[]." if isinstance(items, list) else f"{path}." if path else ""
    for item in [items] if isinstance(items, dict) else items or ():
        for key, raw in item.items():
            if key not in known:
                yield below + key, len(memoryview(raw)) > _LONGEST_EMPTY or bytes(raw) not in _EMPTY
            elif known[key] is not None:
                yield from _fields(raw, known[key], below + key)

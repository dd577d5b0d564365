"""Which format a file has, by its content."""

import csv
from pathlib import Path

import msgspec

from evalcore.errors import ImportFailed
from evalcore.importing.files import parquet, zip_members
from evalcore.importing.files.opening import LONGEST_KEY, Opened, read_or_fault, too_long
from evalcore.importing.files.streams import BLOCK, BOM, opened
from evalcore.importing.formats import FORMATS, PARQUET, healthbench_examples, inspect_logs, simple_evals
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import MAX_SHOWN, shown

PARQUET_ORDER = tuple(known for known in FORMATS if known in PARQUET)


def recognise(path: Path, *, name: str, format_name: str | None, max_line_bytes: int) -> Opened:
    """Open a file and tell its format from its content.

    Raises:
        ImportFailed: It is empty, unreadable, or of no known format.
    """
    if format_name is not None and format_name not in FORMATS:
        raise ImportFailed([f"{name}: expected one of {', '.join(FORMATS)}, got format {format_name!r}"])
    if found := _parquet_format(path, name, format_name):
        return Opened(path, name, found, max_line_bytes, is_parquet=True)
    if _is_log(path, name, format_name):
        return Opened(path, name, inspect_logs.NAME, max_line_bytes)
    first = _first_line(path, name, max_line_bytes)
    if not first:
        content = "only blank lines" if path.stat().st_size else "0 bytes"
        raise ImportFailed([f"{name}: expected one of the formats {', '.join(FORMATS)}, got {content}"])
    found = format_name or _format_of(first, path, name, max_line_bytes)
    is_csv = hasattr(FORMATS[found], "read_cells") and not first.startswith(b"{")
    return Opened(path, name, found, max_line_bytes, is_csv=is_csv)


def _parquet_format(path: Path, name: str, format_name: str | None) -> str | None:
    """The format of a Parquet file; None where it is none."""
    with opened(path, name) as stream:
        if stream.read(len(parquet.MAGIC)) != parquet.MAGIC:
            return None
    with opened(path, name) as stream, parquet.table(stream, name) as table:
        columns = set(table.file.schema_arrow.names)
    found = format_name or next((known for known in PARQUET_ORDER if FORMATS[known].recognises(columns)), None)
    if found not in PARQUET:
        came = ", ".join(sorted(columns)[:8])[:MAX_SHOWN]
        raise ImportFailed(
            [f"{name}: expected the columns of one of {', '.join(PARQUET_ORDER)}, got Parquet with {came}"]
        )
    return found


def _is_log(path: Path, name: str, format_name: str | None) -> bool:
    """Whether the file is a log of inspect_ai: a zip, or a document that begins as one."""
    with opened(path, name) as stream:
        head = stream.read(inspect_logs.HEAD)
    is_zip = head.startswith(zip_members.MAGIC)
    if is_zip and format_name not in (None, inspect_logs.NAME):
        raise ImportFailed([f"{name}: expected {format_name}, got a zip"])
    if format_name is not None:
        return format_name == inspect_logs.NAME and bool(head.strip())
    return is_zip or inspect_logs.begins_log(head.removeprefix(BOM))


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
        raise ImportFailed([f"{name} line 1: {too_long(max_line_bytes)}"])
    if is_json and not keys:
        faulty = read_or_fault(healthbench_examples.read, first, 1, Options())
        raise ImportFailed([f"{name} line 1: {faulty}"])
    came = ", ".join(sorted(keys)[:8])[:MAX_SHOWN] if is_json else shown(first.decode(errors="replace"))
    raise ImportFailed(
        [f"{name} line 1: expected the columns or keys of one of the formats {', '.join(FORMATS)}, got {came}"]
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
        while block := stream.read(BLOCK):
            seen = tail + block
            if found := {key for key in simple_evals.OWN_KEYS if f'"{key}"'.encode() in seen}:
                return found
            tail = block[-LONGEST_KEY:]
    return set()


def _first_line(path: Path, name: str, max_line_bytes: int) -> bytes:
    with opened(path, name) as stream:
        while line := stream.readline(max_line_bytes + 1):
            if (stripped := line.removeprefix(BOM).strip()) or len(line) > max_line_bytes:
                return stripped or line
    return b""

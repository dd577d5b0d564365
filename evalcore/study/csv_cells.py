"""Small tables of two columns that people edit as CSV (families of models, label maps), and cells that no spreadsheet runs."""

import csv
import io
from collections.abc import Iterable

from evalcore.errors import OverreadError, refuse

MAX_SHOWN = 200
DANGEROUS = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""What begins a cell that a spreadsheet may take for a formula: a leading line end is skipped, and full-width = + - @ are read as their plain forms."""


def text_of(content: bytes, name: str) -> str:
    """The text of a small file in UTF-8; else an `OverreadError` with the place of the first byte that is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refuse(f"{name} line {line}: byte {error.start + 1}: expected UTF-8, got {content[error.start]:02x}")


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula. One that looks guarded already gets one quote more, to lose it on import."""
    return "'" + text if text.lstrip("'").startswith(DANGEROUS) else text


def unguarded(cell: str) -> str:
    """A cell without the quote that `guarded` put before it."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(DANGEROUS) else cell


def written(columns: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    """The table as `pairs` reads it."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows((guarded(one), guarded(other)) for one, other in rows)
    return lines.getvalue()


def pairs(text: str, name: str, columns: tuple[str, str]) -> list[tuple[str, str, str]]:
    """The rows as (place, one, other); an empty cell is "". Other columns are left out."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    one, other = columns
    try:
        reader.fieldnames = header = [column.strip() for column in reader.fieldnames or ()]
        if set(columns) - set(header):
            msg = f"{name} line 1: expected the columns {', '.join(columns)}, got {', '.join(header)[:MAX_SHOWN] or 'nothing'}"
            raise OverreadError(msg)
        return [
            (f"{name} line {reader.line_num}", unguarded(row[one] or ""), unguarded(row[other] or "")) for row in reader
        ]
    except csv.Error as error:
        refuse(f"{name} line {reader.line_num}: not CSV: {error}")

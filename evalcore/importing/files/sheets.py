"""A workbook of Excel as rows of text cells, as a CSV file gives them: read, never calculated, and measured before it is unpacked."""

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from itertools import repeat
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook
from openpyxl.cell.read_only import ReadOnlyCell
from openpyxl.utils import get_column_letter
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.workbook import Workbook

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import shown
from evalcore.importing.files.streams import MAX_ROWS, damaged, seekable, unpacks_to_more
from evalcore.importing.formats.values import cell, refuse_row

MAX_COLUMNS = 1_000
MAX_SHARED = 1 << 28  # bytes of the texts that cells share, unpacked: they are held in memory whole
_FORMULA = re.compile(rb"<(\w+:)?f[ >/]")
_SHARED = "xl/sharedStrings.xml"
_UNREADABLE = (
    KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, EOFError, OSError, NotImplementedError, RuntimeError, SyntaxError,
    ParseError, zipfile.BadZipFile, InvalidFileException,
)  # fmt: skip


def sheet_names(stream: BinaryIO, name: str) -> list[str]:
    """The sheets of a workbook, in their order."""
    with seekable(stream) as (whole, bound), _book(whole, name, bound) as book:
        return [sheet.title for sheet in book.worksheets]


def rows(
    stream: BinaryIO, name: str, sheet: str, *, longest: int, progress: Callable[[int], None]
) -> Iterator[tuple[int, dict[str, str] | RowFault]]:
    """Each row's number in the sheet (the first where "" is said) with its cells by the names in the first row; or with what is wrong with it."""
    with (
        seekable(stream) as (whole, bound),
        _book(whole, name, bound) as book,
        _book(whole, name, bound, is_calculated=False) as written,
    ):
        titles = [one.title for one in book.worksheets]
        if not titles or (sheet and sheet not in titles):
            raise ImportFailed([f"{name}: rows: expected one of the sheets {', '.join(titles)}, got {shown(sheet)}"])
        place = titles.index(sheet) if sheet else 0
        size, n_rows = whole.seek(0, 2), book.worksheets[place].max_row or 1
        columns: list[str] = []
        try:
            formulas = _lines(written, place) if _has_formulas(whole) else repeat(())
            for number, (line, own) in enumerate(zip(_lines(book, place), formulas, strict=False), 1):
                if number > MAX_ROWS or len(line) > MAX_COLUMNS:
                    most = f"{MAX_ROWS:,} rows of at most {MAX_COLUMNS:,} cells"
                    yield number, RowFault(f"expected at most {most}, got more")
                    return
                try:
                    _check_calculated(line, own)
                    texts = [_text(one) for one in line]
                except RowFault as fault:
                    yield number, fault
                    continue
                filled = [index for index, text in enumerate(texts, 1) if text]
                if not filled:
                    continue
                if not columns:
                    named = enumerate(texts, 1)
                    columns = [text.strip() or f"column {get_column_letter(place)}" for place, text in named]
                    if repeated := [one for index, one in enumerate(columns) if one in columns[:index]]:
                        yield number, RowFault(f"{repeated[0]}: expected the column once, got it twice")
                        return
                elif filled[-1] > len(columns):
                    yield number, RowFault(f"expected {len(columns)} cells as in the first row, got {filled[-1]}")
                elif sum(map(len, texts)) > longest:
                    yield number, RowFault(f"expected rows of at most {longest:,} bytes, got a longer one")
                    return
                else:
                    yield number, dict(zip(columns, [*texts, *[""] * len(columns)], strict=False))
                    progress(min(number * size // n_rows, size))
        except _UNREADABLE as error:
            raise damaged(name, "XLSX", error) from error


def _lines(book: Workbook, place: int) -> Iterator[Sequence[Any]]:
    sheet = book.worksheets[place]
    sheet.reset_dimensions()  # what a file says of its size may be wrong
    found: Iterator[Sequence[Any]] = sheet.iter_rows()
    return found


def _has_formulas(stream: BinaryIO) -> bool:
    """Whether any cell may be calculated: then it has to be seen whether it was."""
    with zipfile.ZipFile(stream) as packed:
        for sheet in (one for one in packed.namelist() if one.startswith("xl/worksheets/") and one.endswith(".xml")):
            with packed.open(sheet) as member:
                tail = b""
                while block := member.read(1 << 20):
                    if _FORMULA.search(tail + block):
                        return True
                    tail = block[-4:]
    return False


def _check_calculated(line: Sequence[Any], own: Sequence[Any]) -> None:
    for one, formula in zip(line, own, strict=False):
        if one.value is None and formula.value is not None:
            place = f"cell {get_column_letter(formula.column)}{formula.row}"
            msg = f"{place}: expected a value, got a formula that was never calculated: open the file in Excel and save it, or paste values"
            refuse_row(msg)


def _text(one: ReadOnlyCell) -> str:
    """A cell as text, without loss: a day as 2026-11-20, a number as it is written."""
    value = one.value
    if one.data_type == "e":
        refuse_row(f"cell {get_column_letter(one.column)}{one.row}: expected a value, got Excel's error {value}")
    if isinstance(value, datetime):
        value = value.date() if value.time() == time() else value
    return value.isoformat() if isinstance(value, date | time) else cell("", value, ())


@contextmanager
def _book(stream: BinaryIO, name: str, bound: int, *, is_calculated: bool = True) -> Iterator[Workbook]:
    try:
        # a member gives no more than the list says, so what it says can be added up
        sizes = {info.filename: info.file_size for info in zipfile.ZipFile(stream).infolist()}
        if sum(sizes.values()) > bound:
            raise unpacks_to_more(name, bound)
        if sizes.get(_SHARED, 0) > MAX_SHARED:
            expected = (
                f"expected a workbook whose texts come to at most {MAX_SHARED:,} bytes, got more: save the sheet as CSV"
            )
            raise ImportFailed([f"{name}: {expected}"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and rules of input, which are not read
            book = load_workbook(stream, read_only=True, data_only=is_calculated, keep_links=False)
    except _UNREADABLE as error:
        raise damaged(name, "XLSX", error) from error
    try:
        yield book
    finally:
        book.close()

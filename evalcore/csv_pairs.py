"""Small tables of two columns that people edit as CSV: families of models, label maps."""

import csv
import io

from evalcore.errors import OverreadError

MAX_SHOWN = 200


def pairs(text: str, name: str, columns: tuple[str, str]) -> list[tuple[str, str, str]]:
    """The rows as (place, one, other); an empty cell is "". Other columns are left out.

    Args:
        text: Of the file.
        name: Of the file, for faults.
        columns: The two that it must have.

    Raises:
        OverreadError: It is no CSV, or a column is missing; with file and line.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    one, other = columns
    try:
        found = [column.strip() for column in reader.fieldnames or ()]
        reader.fieldnames = found
        if set(columns) - set(found):
            msg = f"{name} line 1: {', '.join(found)[:MAX_SHOWN] or 'nothing'} came, expected the columns {', '.join(columns)}"
            raise OverreadError(msg)
        return [(f"{name} line {reader.line_num}", row[one] or "", row[other] or "") for row in reader]
    except csv.Error as error:
        msg = f"{name} line {reader.line_num}: no CSV: {error}"
        raise OverreadError(msg) from error

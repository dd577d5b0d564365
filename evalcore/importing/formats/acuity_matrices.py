"""Finished confusion matrices as somebody published them, CSV: counts, and no cases behind them."""

from collections.abc import Iterator

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.acuity_cells import LEVEL_WORDS, Cells, asked, level, model, whole
from evalcore.importing.formats.options import Options
from evalcore.study.schema import Acuity, Format
from evalcore.triage.data import LETTERS

NAME = "acuity-matrices"
TITLE = "Published confusion matrices of triage, CSV"
COLUMNS = {
    "model": "who answered; else say --model",
    "format": "qa or conversation",
    "gold": f"the level that the cases of this row need: {LEVEL_WORDS}; four rows a model and format",
    "A, B, C, D": "how many of these cases were given each level: whole numbers",
}


class MatrixRow(msgspec.Struct, frozen=True, gc=False):
    """A line: the cases of one gold level, by the level they were given."""

    line: int
    model: str
    format: Format
    gold: Acuity
    counts: tuple[int, ...]


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"format", "gold", *LETTERS} <= keys


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[MatrixRow]:
    """One row of a matrix.

    Raises:
        RowFault: The row breaks a rule of the format.
    """
    gold = level(cells, "gold")
    if gold is None:
        msg = f"gold: nothing came, expected {LEVEL_WORDS}"
        raise RowFault(msg)
    counts = [whole(cells, letter) for letter in LETTERS]
    if None in counts:
        msg = f"{LETTERS[counts.index(None)].value}: nothing came, expected a whole number"
        raise RowFault(msg)
    yield MatrixRow(number, model(cells, options), asked(cells), gold, tuple(count or 0 for count in counts))

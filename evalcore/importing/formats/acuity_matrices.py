"""Confusion matrices as somebody published them, CSV: counts, and no cases behind them; whole ones only, compared with those that the study has."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.formats.acuity_cells import LEVEL_WORDS, Cells, asked, level, model, whole
from evalcore.importing.formats.records import Options
from evalcore.study import lookups
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
        msg = f"gold: expected {LEVEL_WORDS}, got nothing"
        raise RowFault(msg)
    counts = [whole(cells, letter) for letter in LETTERS]
    if None in counts:
        msg = f"{LETTERS[counts.index(None)].value}: expected a whole number, got nothing"
        raise RowFault(msg)
    yield MatrixRow(number, model(cells, options), asked(cells), gold, tuple(count or 0 for count in counts))


STORED_COLUMNS = tuple(letter.lower() for letter in LETTERS)
Key = tuple[str, Format]


class Matrices(Taker):
    """Takes the rows of a file of matrices. A file is small: its rows are kept until the last one is there."""

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self._rows: defaultdict[Key, dict[Acuity, MatrixRow]] = defaultdict(dict)

    def add(self, rows: Sequence[MatrixRow]) -> None:
        """Keep rows by model and format."""
        for row in rows:
            matrix = self._rows[row.model, row.format]
            first = matrix.setdefault(row.gold, row)
            if first is not row:
                msg = f"gold: expected {row.gold} once for {row.model!r}, {row.format}, got it again (first on line {first.line})"
                self._faults.add(msg, row.line)

    def finish(self) -> None:
        """Check that the matrices are whole and as they were before, and write those that are new."""
        models = {model for model, _ in self._rows}
        stored = {
            (row["model"], row["format"], row["gold"]): tuple(row[name] for name in STORED_COLUMNS)
            for row in lookups.matrices_of(self._session, models)
        }
        fresh: list[MatrixRow] = []
        for (of_model, question), matrix in self._rows.items():
            last = max(row.line for row in matrix.values())
            if missing := [letter for letter in LETTERS if letter not in matrix]:
                msg = f"gold: expected {', '.join(missing)} too for {of_model!r}, {question}, got {', '.join(sorted(matrix))}"
                self._faults.add(msg, last)
            new = [row for row in matrix.values() if (of_model, question, row.gold) not in stored]
            for row in matrix.values():
                before = stored.get((of_model, question, row.gold), row.counts)
                if before != row.counts:
                    expected = f"{_shown(before)} as imported before"
                    msg = f"A, B, C, D: expected {expected} for {of_model!r}, {question}, gold {row.gold}, got {_shown(row.counts)}"
                    self._faults.add(msg, row.line)
            if new:
                fresh += new
                self._report.matrices_new += 1
            else:
                self._report.matrices_known += 1
        if not self._faults.count:
            self._bulk.insert_only(
                "published_matrix",
                [
                    {"model": row.model, "format": row.format, "gold": row.gold, **dict(zip(STORED_COLUMNS, row.counts, strict=True))}
                    for row in fresh
                ],
            )  # fmt: skip


def _shown(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))

"""Confusion matrices as somebody published them, CSV: counts, and no cases behind them; whole ones only, compared with those that the study has."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from evalcore.importing.context import Cells, FileFormat, ImportContext, Options, RowWriter
from evalcore.importing.formats.values import LETTERS, LEVEL_WORDS, asked, level, model, refuse, whole
from evalcore.study import lookups
from evalcore.study.schema import Acuity, Format
from evalcore.study.store import bring

STORED_COLUMNS = tuple(letter.lower() for letter in LETTERS)


class MatrixRow(msgspec.Struct, frozen=True, gc=False):
    """A line: the cases of one gold level, by the level they were given."""

    line: int
    model: str
    format: Format
    gold: Acuity
    counts: tuple[int, ...]


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[MatrixRow]:
    """One row of a matrix."""
    gold = level(cells, "gold")
    if gold is None:
        refuse("gold", LEVEL_WORDS, "nothing")
    counts = []
    for letter in LETTERS:
        if (count := whole(cells, letter)) is None:
            refuse(letter, "a whole number", "nothing")
        counts.append(count)
    yield MatrixRow(number, model(cells, options.model), asked(cells), gold, tuple(counts))


class Matrices(RowWriter):
    """Takes the rows of a file of matrices. A file is small: its rows are kept until the last one is there."""

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._rows: defaultdict[tuple[str, Format], dict[Acuity, MatrixRow]] = defaultdict(dict)

    def add(self, rows: Sequence[MatrixRow]) -> None:
        """Keep rows by model and format."""
        for given in rows:
            row = msgspec.structs.replace(given, model=self._context.called("model", given.model))
            first = self._rows[row.model, row.format].setdefault(row.gold, row)
            if first is not row:
                msg = f"gold: expected {row.gold} once for {row.model!r}, {row.format}, got it again (first on line {first.line})"
                self._faults.add(msg, row.line)

    def finish(self) -> None:
        """Check that the matrices are whole and as they were before, and write those that are new."""
        stored = {
            (row["model"], row["format"], row["gold"]): (row["id"], tuple(row[name] for name in STORED_COLUMNS))
            for row in lookups.rows(self._session, lookups.MATRICES, {model for model, _ in self._rows})
        }
        fresh: list[MatrixRow] = []
        for (of_model, asked_as), matrix in self._rows.items():
            of_matrix = f"for {of_model!r}, {asked_as}"
            if missing := [letter for letter in LETTERS if letter not in matrix]:
                msg = f"gold: expected {', '.join(missing)} too {of_matrix}, got {', '.join(sorted(matrix))}"
                self._faults.add(msg, max(row.line for row in matrix.values()))
            new = [row for row in matrix.values() if (of_model, asked_as, row.gold) not in stored]
            for row in matrix.values():
                number, before = stored.get((of_model, asked_as, row.gold), (None, row.counts))
                bring(self._session, "published_matrix", [] if number is None else [number])
                if before != row.counts:
                    expected = f"{_shown(before)} as imported before {of_matrix}, gold {row.gold}"
                    self._faults.add(f"A, B, C, D: expected {expected}, got {_shown(row.counts)}", row.line)
            fresh += new
            self._report.matrices_new += bool(new)
            self._report.matrices_known += not new
        if not self._faults.count:
            columns = ("model", "format", "gold", *STORED_COLUMNS)
            told = [(row.model, row.format, row.gold, *row.counts) for row in fresh]
            self._bulk.insert("published_matrix", [dict(zip(columns, row, strict=True)) for row in told])


def _shown(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))


FORMAT = FileFormat(
    name="acuity-matrices",
    title="Published confusion matrices of triage, CSV",
    columns={
        "model": "who answered; else fill in Model",
        "format": "qa or conversation",
        "gold": f"the level that the cases of this row need: {LEVEL_WORDS}; four rows a model and format",
        "A, B, C, D": "how many of these cases were given each level: whole numbers",
    },
    keys=frozenset({"format", "gold", *LETTERS}),
    read_cells=read_cells,
    writer=Matrices,
    is_parquet=True,
    is_triage=True,
)

"""Published confusion matrices: whole ones only, compared with those that the study has, then written."""

from collections import defaultdict
from collections.abc import Sequence

from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.formats.acuity_matrices import MatrixRow
from evalcore.study import lookups
from evalcore.study.schema import Acuity, Format
from evalcore.triage.data import LETTERS

COLUMNS = tuple(letter.lower() for letter in LETTERS)
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
                msg = f"gold: {row.gold} came again for {row.model!r}, {row.format}, expected it once (first on line {first.line})"
                self._faults.add(msg, row.line)

    def finish(self) -> None:
        """Check that the matrices are whole and as they were before, and write those that are new."""
        models = {model for model, _ in self._rows}
        stored = {
            (row["model"], row["format"], row["gold"]): tuple(row[name] for name in COLUMNS)
            for row in lookups.matrices_of(self._session, models)
        }
        fresh: list[MatrixRow] = []
        for (model, asked), matrix in self._rows.items():
            last = max(row.line for row in matrix.values())
            if missing := [letter for letter in LETTERS if letter not in matrix]:
                msg = (
                    f"gold: {', '.join(sorted(matrix))} came for {model!r}, {asked}, expected {', '.join(missing)} too"
                )
                self._faults.add(msg, last)
            new = [row for row in matrix.values() if (model, asked, row.gold) not in stored]
            for row in matrix.values():
                before = stored.get((model, asked, row.gold), row.counts)
                if before != row.counts:
                    expected = f"{_shown(before)} as imported before"
                    msg = f"A, B, C, D: {_shown(row.counts)} came for {model!r}, {asked}, gold {row.gold}, expected {expected}"
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
                    {"model": row.model, "format": row.format, "gold": row.gold, **dict(zip(COLUMNS, row.counts, strict=True))}
                    for row in fresh
                ],
            )  # fmt: skip


def _shown(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))

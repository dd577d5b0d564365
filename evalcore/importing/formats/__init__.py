"""One file a format. To add one: a module with NAME, TITLE, COLUMNS, recognises and read or read_cells, and its line in FORMATS.

`read` takes a line of JSON, `read_cells` a row of a table: CSV, and Parquet where the format is in PARQUET. Where there is only `read_cells`, a
line of JSON is read as a row.
"""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from evalcore.importing.acuity_taker import Taker
from evalcore.importing.formats import (
    acuity_cases,
    acuity_matrices,
    acuity_predictions,
    acuity_verdicts,
    acuity_votes,
    healthbench_examples,
    inspect_logs,
    judge_verdicts,
    meta_eval,
    simple_evals,
    verdict_table,
)
from evalcore.importing.formats.acuity_cells import cells_of
from evalcore.importing.formats.records import Options

FORMATS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        healthbench_examples,
        simple_evals,
        inspect_logs,
        meta_eval,
        judge_verdicts,
        acuity_verdicts,
        verdict_table,
        acuity_cases,
        acuity_votes,
        acuity_predictions,
        acuity_matrices,
    )
}
"""Every format by its name, in the order in which a file's content is compared with them."""
PARQUET = frozenset({acuity_cases.NAME, acuity_votes.NAME, acuity_predictions.NAME, acuity_matrices.NAME})
"""The formats that may come as Parquet."""
CONFIDENT = frozenset({judge_verdicts.NAME, verdict_table.NAME, acuity_predictions.NAME, acuity_verdicts.NAME})
"""The formats in which a judge may state confidences."""
TAKERS: dict[str, type[Taker]] = {
    acuity_cases.NAME: acuity_cases.Cases,
    acuity_votes.NAME: acuity_votes.Votes,
    acuity_predictions.NAME: acuity_predictions.Predictions,
    acuity_matrices.NAME: acuity_matrices.Matrices,
    acuity_verdicts.NAME: acuity_verdicts.AcuityVerdicts,
}
"""Who takes the rows of a format of triage: each stands with its format."""


def reader_of_lines(format_name: str) -> Callable[[bytes, int, Options], Iterator[Any]]:
    """What reads a line of JSON of this format: its bytes, its number, what else is known of the file."""
    module = FORMATS[format_name]
    if hasattr(module, "read"):
        read: Callable[[bytes, int, Options], Iterator[Any]] = module.read
        return read
    known = known_columns(module)
    return lambda line, number, options: module.read_cells(cells_of(line, known), number, options)


def known_columns(module: ModuleType) -> frozenset[str]:
    """The columns of a format one by one; its list may name several together, as "A, B, C, D"."""
    return frozenset(name for names in module.COLUMNS for name in names.split(", "))

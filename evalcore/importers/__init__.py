"""One file a format. To add one: a module with NAME, TITLE, COLUMNS, recognises and read, and its line in FORMATS.

A module with `read_cells` takes tables too: CSV, and Parquet where it is in PARQUET.
"""

from types import ModuleType

from evalcore.importers import (
    acuity_cases,
    acuity_matrices,
    acuity_predictions,
    acuity_verdicts,
    acuity_votes,
    healthbench_examples,
    judge_verdicts,
    meta_eval,
    simple_evals,
    verdict_table,
)

FORMATS: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        healthbench_examples,
        simple_evals,
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

"""Every format of files that can be imported. To add one: a module with its `FileFormat`, and its line here."""

from pathlib import Path

from evalcore.errors import refuse
from evalcore.importing.formats import (
    acuity_cases,
    acuity_matrices,
    acuity_predictions,
    acuity_verdicts,
    given_responses,
    grade_table,
    graded_responses,
    healthbench,
    inspect_samples,
    verdicts,
)
from evalcore.settings import shipped

IN_ORDER = (  # in which a file's content is compared with them
    graded_responses.FORMAT,
    healthbench.EXAMPLES,
    healthbench.TASKS,
    healthbench.RESULTS,
    inspect_samples.FORMAT,
    healthbench.META_EVAL,
    verdicts.JUDGE_VERDICTS,
    acuity_verdicts.FORMAT,
    verdicts.VERDICT_TABLE,
    acuity_cases.CASE_FORMAT,
    acuity_cases.VOTE_FORMAT,
    acuity_predictions.FORMAT,
    acuity_matrices.FORMAT,
    grade_table.FORMAT,
    given_responses.FORMAT,
)
FORMATS = {one.name: one for one in IN_ORDER}


def template(format_name: str) -> Path:
    """A file of this format to begin with: two invented rows (four of a matrix), which go together with those of the other formats in one study."""
    if format_name not in FORMATS:
        refuse(f"expected one of the formats {', '.join(FORMATS)}, got {format_name!r}")
    return next(shipped("data/templates").glob(f"{format_name}.*"))

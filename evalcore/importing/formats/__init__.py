"""Every format of files that can be imported. To add one: a module with its `FileFormat`, and its line here."""

from evalcore.importing.formats import (
    acuity_cases,
    acuity_matrices,
    acuity_predictions,
    acuity_verdicts,
    given_responses,
    grade_table,
    graded_responses,
    healthbench,
    healthbench_professional,
    inspect_samples,
    verdicts,
)

IN_ORDER = (  # in which a file's content is compared with them
    graded_responses.FORMAT,
    healthbench.EXAMPLES,
    healthbench_professional.FORMAT,
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

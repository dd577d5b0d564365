"""Real results files through `RubricData`: the reference tool's own metrics come out equal by the scores of groups as well; skipped where the files are not."""

import json
import math

import pytest

from evalcore.rubric.queries import load
from evalcore.rubric.scores import GROUPINGS, group_scores
from evalcore.study.db import reading
from tests.importing.test_real_data import HERE, N_COMPARED, NAMES, RESULTS, bring_results, study_with_examples

pytestmark = pytest.mark.skipif(
    not HERE, reason="The real HealthBench files are not here: ../shared/data does not exist."
)


@pytest.mark.parametrize("path", RESULTS, ids=NAMES)
def test_every_metric_of_the_tool_comes_out_equal_by_opinions(path, tmp_path):
    with study_with_examples(tmp_path) as engine:
        bring_results(engine, path)
        with reading(engine) as session:
            rubric_data = load(session)
    (judge,) = rubric_data.judges
    ours = group_scores(rubric_data, judge, GROUPINGS).set_index("tag")
    assert ours.index.is_unique
    told = json.loads(path.with_name(path.name.replace("_allresults", "")).read_text(encoding="utf-8"))
    n_compared = 0
    for key, value in told.items():
        tag = "overall" if key == "overall_score" else key
        if tag in ours.index and int(ours.loc[tag, "n_responses"]) == told.get(f"{key}:n_samples"):
            assert math.isclose(value, ours.loc[tag, "score"], rel_tol=0, abs_tol=1e-12), tag
            n_compared += 1
    assert n_compared >= N_COMPARED[path.stem.removesuffix("_allresults")][0]

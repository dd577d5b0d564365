"""95 % intervals of corrected scores hold the truth in 92 to 97 % of drawn studies, whatever is read and however it is drawn."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evalcore.metrics.corrected import CORRECTED, Claim, Physicians
from evalcore.metrics.corrected_differences import corrected_differences
from tests.benchmarks.coverage import IMPORTANCE, RESPONSES, UNIFORM, coverage, world
from tests.population import drawn

pytestmark = pytest.mark.slow

N_DRAWS = 800
"""A coverage of 95 % is then measured as 93.5 % to 96.5 %."""
KINDS_AND_CLAIMS = [f"{CORRECTED} {claim}" for claim in Claim]


@pytest.fixture(scope="module")
def worlds():
    """50,000 examples by how many judges label them, each right on 78 % of the items."""
    return {n: world(np.random.default_rng(1), {f"judge {i}": 0.78 for i in range(n)}) for n in (1, 3)}


def holds(found, low=0.92, high=0.97):
    return all(low <= share <= high for name, share in found.items() if not name.endswith("width"))


@pytest.mark.parametrize("n_judges", [1, 3])
@pytest.mark.parametrize(("share", "draw"), list(product((0.01, 0.05, 0.2), (UNIFORM, IMPORTANCE, RESPONSES))))
def test_intervals_hold_for_this_benchmark_and_for_new_examples(worlds, n_judges, share, draw):
    found = coverage(worlds[n_judges], share=share, draw=draw, n_draws=N_DRAWS, seed=11)
    assert holds(found), found


@pytest.mark.parametrize("n_physicians", [4, 10])
def test_intervals_for_physicians_in_general_hold_where_physicians_differ(worlds, n_physicians):
    how = {"share": 0.05, "n_physicians": n_physicians, "differing": 0.15, "seed": 12}
    found = coverage(worlds[1], physicians=Physicians.IN_GENERAL, n_draws=N_DRAWS, **how)
    assert holds(found), found
    # those for the few who read do not, which is why there are two claims
    these = coverage(worlds[1], n_draws=200, **how)
    assert all(these[name] < found[name] - 0.03 for name in KINDS_AND_CLAIMS), these


@pytest.mark.parametrize("draw", [UNIFORM, IMPORTANCE])
def test_intervals_hold_with_as_little_as_may_be_read(worlds, draw):
    # 40 reads or so: what is not seen is assumed (`unseen_variance`), so that the intervals may hold too often
    found = coverage(worlds[1], share=0.0011, draw=draw, n_draws=N_DRAWS, seed=13)
    assert all(0.92 <= found[name] <= 0.985 for name in KINDS_AND_CLAIMS), found


def test_intervals_hold_where_a_judge_is_nearly_always_right():
    # 100 reads see one error of a judge right on 99 %, or none: never too narrow
    rare = world(np.random.default_rng(2), {"judge": 0.99}, n_examples=20_000)
    found = coverage(rare, share=0.0027, n_draws=N_DRAWS, seed=14)
    assert all(found[name] >= 0.92 for name in KINDS_AND_CLAIMS), found


def test_intervals_hold_in_a_small_study(worlds):
    # 40 examples, half of the items read: the probabilities are large and the examples few
    found = coverage(worlds[1], share=0.5, n_examples=40, n_draws=N_DRAWS, seed=15)
    assert holds(found), found


def test_intervals_of_differences_hold_where_models_are_equally_good():
    # 600 studies of 200 examples each, as the evaluations of one: 95 % is then measured as 93.2 % to 96.8 %
    readers = [f"Dr. {n}" for n in range(6)]
    rng = np.random.default_rng(16)
    opinions, _ = drawn(rng, n_examples=600 * 200, models=("Alder", "Birch"), share_read=0.1, readers=readers)
    of_study = (opinions.items["example_id"] - 1) // 200
    studies = replace(opinions, items=opinions.items.assign(evaluation=of_study.astype("category")))
    for physicians in Physicians:
        found = corrected_differences(studies, physicians=physicians)
        assert len(found) == 600
        held = (found["low"].le(0) & found["high"].ge(0)).mean()
        assert 0.92 <= held <= 0.97, (physicians, held)

"""Agreement held against other people's programs, on random tables with holes, and against published numbers."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evalcore.metrics.agreement import agreement, pair_agreement
from evalcore.metrics.agreement_sums import Coefficient
from tests.ratings import found, long

LEVELS = "ABCD"
EVERY = list(Coefficient)
HOLES = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.text(LEVELS + ".", min_size=n, max_size=n), min_size=2, max_size=12)
)
"""One string an item, one sign a rater; `.` is no label."""


def labels_of(items):
    return long(["".join(column) for column in zip(*items, strict=True)], missing=".")


@given(HOLES)
def test_alpha_is_that_of_the_krippendorff_package(items):
    data = np.array([[np.nan if sign == "." else LEVELS.index(sign) for sign in item] for item in items]).T
    paired = [[sign for sign in item if sign != "."] for item in items]
    used = {sign for signs in paired if len(signs) > 1 for sign in signs}
    assume(len(used) > 1)  # with one category it is not defined
    ours = found(agreement(labels_of(items), categories=list(LEVELS), coefficients=EVERY))
    for level in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement=level, value_domain=[0, 1, 2, 3])
        assert ours[f"alpha_{level}"] == pytest.approx(theirs, abs=1e-9)


@given(st.lists(st.text(LEVELS, min_size=2, max_size=2), min_size=2, max_size=20))
def test_kappa_with_four_levels_is_that_of_scikit_learn(items):
    first, second = zip(*items, strict=True)
    assume(len(set(first + second)) > 1)
    ours = found(pair_agreement(labels_of(items), categories=list(LEVELS), coefficients=EVERY))
    for weights, name in ((None, "kappa"), ("linear", "kappa_linear"), ("quadratic", "kappa_quadratic")):
        theirs = cohen_kappa_score(first, second, labels=list(LEVELS), weights=weights)
        assert ours[name] == pytest.approx(theirs, abs=1e-9, nan_ok=True)


def plain_gwet(items, power):
    """AC1 and AC2 as Gwet writes them (Handbook, 4th edition, chapter 5), item by item in plain Python."""
    weight = [[1 - (float(k != j) if power == 0 else (abs(k - j) / 3) ** power) for j in range(4)] for k in range(4)]
    counts = [[item.count(name) for name in LEVELS] for item in items]
    known = [row for row in counts if sum(row)]
    seen = [
        sum(row[k] * (sum(weight[k][j] * row[j] for j in range(4)) - 1) for k in range(4)) / (sum(row) * (sum(row) - 1))
        for row in known
        if sum(row) > 1
    ]
    share = [sum(row[k] / sum(row) for row in known) / len(known) for k in range(4)]
    by_chance = sum(map(sum, weight)) / 12 * sum(p * (1 - p) for p in share)
    return (sum(seen) / len(seen) - by_chance) / (1 - by_chance)


@given(HOLES)
def test_ac1_and_ac2_are_gwets_formulas_item_by_item(items):
    assume(any(len(item.replace(".", "")) > 1 for item in items))
    ours = found(agreement(labels_of(items), categories=list(LEVELS), coefficients=EVERY))
    for power, name in enumerate(("ac1", "ac2_linear", "ac2_quadratic")):
        assert ours[name] == pytest.approx(plain_gwet(items, power), abs=1e-9)

"""Agreement held against other people's programs, on random tables with holes, and against published numbers."""

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from sklearn.metrics import cohen_kappa_score

from evalcore.judges.agreement import agreement, pair_agreement
from evalcore.stats.agreement_sums import Coefficient
from tests.ratings import crossed, found, long, ordered

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
    ours = found(agreement(ordered(labels_of(items), LEVELS), coefficients=EVERY))
    for level in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement=level, value_domain=[0, 1, 2, 3])
        assert ours[f"alpha_{level}"] == pytest.approx(theirs, abs=1e-9)


@given(st.lists(st.text(LEVELS, min_size=2, max_size=2), min_size=2, max_size=20))
def test_kappa_with_four_levels_is_that_of_scikit_learn(items):
    first, second = zip(*items, strict=True)
    assume(len(set(first + second)) > 1)
    ours = found(pair_agreement(ordered(labels_of(items), LEVELS), coefficients=EVERY))
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
    ours = found(agreement(ordered(labels_of(items), LEVELS), coefficients=EVERY))
    for power, name in enumerate(("ac1", "ac2_linear", "ac2_quadratic")):
        assert ours[name] == pytest.approx(plain_gwet(items, power), abs=1e-9)


def inspects_alpha(units, level):
    """Alpha as Inspect computes it (`inspect_ai.scorer.krippendorff_alpha`): sums of squared distances of each unit's ratings, and of all.

    Inspect says 1 where all ratings are alike, and we say that there is no value; so such tables are left out.
    """
    flat = [value for unit in units for value in unit]
    if level == "ordinal":  # a category stands at the middle of its ratings among all
        middle = {value: sum(x < value for x in flat) + flat.count(value) / 2 for value in set(flat)}
        units = [[middle[value] for value in unit] for unit in units]
    flat = [value for unit in units for value in unit]

    def distance(ratings):
        return sum((a != b) if level == "nominal" else (a - b) ** 2 for a in ratings for b in ratings)

    seen = sum(distance(unit) / (len(unit) - 1) for unit in units) / len(flat)
    return 1 - seen / (distance(flat) / (len(flat) * (len(flat) - 1)))


@given(HOLES)
def test_alpha_is_that_of_inspect(items):
    units = [[LEVELS.index(sign) for sign in item if sign != "."] for item in items]
    units = [unit for unit in units if len(unit) > 1]
    assume(len({value for unit in units for value in unit}) > 1)
    ours = found(agreement(ordered(labels_of(items), LEVELS), coefficients=EVERY))
    for level in ("nominal", "ordinal", "interval"):
        assert ours[f"alpha_{level}"] == pytest.approx(inspects_alpha(units, level), abs=1e-9)


def test_the_published_tables_of_irrcac_give_the_published_coefficients():
    """irrCAC 1.0 (Gwet 2019), README: cont3x3abstractors, distrib.6raters."""
    abstractors = found(pair_agreement(crossed([[13, 0, 0], [0, 20, 7], [0, 4, 56]]), coefficients=EVERY))
    published = {
        "kappa": 0.7964094, "fleiss_kappa": 0.7962397, "ac1": 0.8493305, "alpha_nominal": 0.7972585, "agreement": 0.89
    }  # fmt: skip
    assert {name: abstractors[name] for name in published} == pytest.approx(published, abs=5e-8)
    patients = "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031"  # six raters by category
    items = ["".join(name * int(n) for name, n in zip("ABCDE", counts, strict=True)) for counts in patients.split()]
    ours = found(agreement(ordered(labels_of(items), list("ABCDE")), coefficients=EVERY))
    published = {"ac1": 0.4448007, "fleiss_kappa": 0.4139265, "alpha_nominal": 0.4204384, "agreement": 0.5511111}
    assert {name: ours[name] for name in published} == pytest.approx(published, abs=5e-8)


def test_the_four_raters_of_irrcac_give_the_published_coefficients():
    """irrCAC 1.0, README: cac.raw4raters, no rater of whom has rated all subjects."""
    items = ["11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", "..3."]
    labels = long(["".join(column) for column in zip(*items, strict=True)], missing=".")
    ours = found(agreement(ordered(labels, list("12345")), coefficients=EVERY))
    published = {"ac1": 0.77544, "alpha_nominal": 0.74342, "agreement": 0.8181818}
    assert {name: ours[name] for name in published} == pytest.approx(published, abs=5e-6)

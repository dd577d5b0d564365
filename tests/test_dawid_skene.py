"""Who differs from whom: the anaesthetists of 1979, drawn raters whose habits are known, and what has no value."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.metrics.dawid_skene import dawid_skene

# Dawid and Skene, Applied Statistics 28 (1979), table 1: 45 patients, the first anaesthetist three times, then four others.
PATIENTS = (
    "1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111 "
    "1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121 "
    "1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222"
)
OBSERVERS = (1, 1, 1, 2, 3, 4, 5)


def anaesthetists():
    rows = [
        (patient, observer, sign)
        for patient, signs in enumerate(PATIENTS.split())
        for observer, sign in zip(OBSERVERS, signs, strict=True)
    ]
    return pd.DataFrame(rows, columns=["unit", "rater", "value"])


def drawn(rng, habits, *, n=600, share=0.4):
    """Items of which a share is met; each rater says met of the met and of the others as often as told."""
    met = rng.random(n) < share
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "unit": np.arange(n),
                    "rater": rater,
                    "value": np.where(rng.random(n) < np.where(met, yes, no), "met", "not_met"),
                }
            )
            for rater, (yes, no) in habits.items()
        ],
        ignore_index=True,
    )


def test_the_anaesthetists_give_the_class_shares_and_habits_of_1979():
    found = dawid_skene(anaesthetists(), pseudo_counts=(0, 0))
    assert found.settled
    assert found.n_items == 45
    assert found.shares.to_numpy() == pytest.approx([0.400, 0.422, 0.112, 0.067], abs=5e-4)
    # table 2 of the paper, observer 1, to the two digits that it prints
    first = found.raters.loc[found.raters["rater"].eq(1), ["1", "2", "3", "4"]].to_numpy()
    assert first == pytest.approx(
        np.array([[0.89, 0.11, 0, 0], [0.07, 0.88, 0.05, 0], [0, 0.34, 0.66, 0], [0, 0, 0.56, 0.44]]), abs=6e-3
    )
    assert found.raters.loc[found.raters["rater"].eq(1), "n_labels"].tolist() == [135] * 4


def test_pseudo_counts_are_labels_that_nobody_gave():
    # all agree, 3 items each way: a rater's habit of agreeing is (3 + 4) / (3 + 4 + 1), but for what the model leaves open
    labels = pd.DataFrame(
        [(unit, rater, "YYYNNN"[unit]) for unit in range(6) for rater in "abcde"], columns=["unit", "rater", "value"]
    )
    found = dawid_skene(labels)
    habits = found.raters.set_index(["rater", "shared"])
    assert habits.loc[("a", "N"), "N"] == pytest.approx(7 / 8, abs=1e-3)
    assert habits.loc[("a", "Y"), "N"] == pytest.approx(1 / 8, abs=1e-3)
    assert found.shares["Y"] == pytest.approx(0.5)


def test_drawn_habits_are_found_again():
    told = {"Dr. A": (0.95, 0.1), "Dr. B": (0.9, 0.05), "Dr. C": (0.85, 0.1), "lenient": (0.98, 0.6)}
    found = dawid_skene(drawn(np.random.default_rng(7), told))
    met = found.raters.pivot(index="rater", columns="shared", values="met")
    for rater, (yes, no) in told.items():
        # 240 and 360 labels: two standard errors of a share of .6 are .05
        assert met.loc[rater, "met"] == pytest.approx(yes, abs=0.06)
        assert met.loc[rater, "not_met"] == pytest.approx(no, abs=0.06)
    assert found.shares["met"] == pytest.approx(0.4, abs=0.05)
    assert met["not_met"].idxmax() == "lenient"


def test_items_with_one_label_and_labels_that_are_missing_are_left_out():
    labels = drawn(np.random.default_rng(1), {"a": (0.9, 0.1), "b": (0.8, 0.2)}, n=40)
    alone = pd.DataFrame({"unit": [100, 101, 101], "rater": ["a", "a", "b"], "value": ["met", "met", None]})
    more = dawid_skene(pd.concat([labels, alone], ignore_index=True))
    first = dawid_skene(labels)
    assert more.n_items == first.n_items == 40
    pd.testing.assert_frame_equal(more.raters, first.raters)


def test_without_items_there_are_no_habits():
    labels = pd.DataFrame({"unit": [1], "rater": ["a"], "value": ["met"]})
    found = dawid_skene(labels, categories=["not_met", "met"])
    assert found.raters.empty
    assert (found.n_items, found.settled) == (0, False)
    assert all(math.isnan(share) for share in found.shares)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.permutations("abc"))
def test_neither_the_order_of_rows_nor_the_raters_names_matter(seed, names):
    rng = np.random.default_rng(seed)
    labels = drawn(rng, {"a": (0.9, 0.2), "b": (0.8, 0.1), "c": (0.7, 0.4)}, n=40)
    renaming = dict(zip("abc", names, strict=True))
    other = labels.assign(rater=labels["rater"].map(renaming)).sample(frac=1, random_state=seed % 1000)
    first, second = dawid_skene(labels), dawid_skene(other)
    assert first.shares.to_numpy() == pytest.approx(second.shares.to_numpy(), abs=1e-6)
    habits = [part.raters.set_index(["rater", "shared"])["met"] for part in (first, second)]
    for (rater, shared), share in habits[0].items():
        assert habits[1][renaming[rater], shared] == pytest.approx(share, abs=1e-6)
    assert first.raters[["met", "not_met"]].sum(axis=1).to_numpy() == pytest.approx(1)

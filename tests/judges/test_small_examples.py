"""Each formula of the room of judges on numbers that can be checked by hand."""

import numpy as np
import pandas as pd

from evalcore.judges import confusion, drift, record


def test_balanced_f1_is_the_mean_of_both_classes():
    assert confusion.f1_scores(np.array([[40.0, 10, 20, 30]]))[["f1_met", "f1_not_met", "balanced_f1"]].round(
        3
    ).to_numpy().tolist() == [[0.727, 0.667, 0.697]]


def test_the_chance_of_fair_signs_is_exact():
    assert drift._sign_flip_chance(np.array([1, 1, 1, 1])) == 0.125
    assert drift._sign_flip_chance(np.array([3, -2, 1])) == 0.75


def test_points_are_desirable_undesirable_or_not_known():
    assert record.sign_codes(pd.Series([7.0, -3.0, None])).tolist() == [0, 1, 2]

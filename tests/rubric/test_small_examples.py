"""Each formula of the rubric room on numbers that can be checked by hand."""

import numpy as np
import pandas as pd

from evalcore.rubric import benchmark, corrected, drawings, judge_only


def test_the_share_of_a_theme_is_its_count_of_the_whole():
    assert benchmark.published("theme").loc["emergency referrals"].to_dict() == {
        "share": 0.0964,
        "n": 482.0,
        "n_whole": 5000.0,
    }


def test_published_scores_begin_with_the_highest():
    assert benchmark.published_scores()["score"].tolist()[:3] == [0.598, 0.543, 0.52]


def test_disagreement_is_twice_the_share_of_the_smaller_side():
    votes = pd.DataFrame({"Magpie": [1.0, 1.0, 1.0], "Wren": [1.0, 0.0, 1.0], "Rook": [1.0, np.nan, 0.0]})
    assert drawings.disagreement(votes).round(2).tolist() == [0.0, 1.0, 0.67]


def test_an_interval_for_looks_at_any_time_is_narrowest_at_three_hundred_units():
    assert [round(corrected.anytime_factor(n), 2) for n in (30, 300, 1200)] == [1.97, 1.55, 1.6]


def test_a_warning_names_the_judge_alone():
    words = judge_only.judge_only_warning("Magpie")
    assert words.startswith("These scores are the opinion of the judge Magpie alone.")

"""How the rubric room says its numbers: the examples of each sentence."""

import math

import numpy as np
import pandas as pd

from evalcore.rubric import corrected, corrected_groups, finding, judge_only, results, sensitivity
from evalcore.study.schema import Claim, Physicians


def test_places_are_said_with_the_best_model_first():
    table = pd.DataFrame({"model": ["A", "B", "C"], "n_models": 3, "rank_low": [2, 1, 2], "rank_high": [3, 1, 3]})
    assert (
        finding.rank_words(table) == "Places of the 3 models after correction, all at once. B: 1; A: 2 to 3; C: 2 to 3."
    )


def test_a_score_is_said_with_its_interval_unless_that_has_no_width():
    assert finding.score_words(0.5432, 0.5211, 0.5649) == "0.543 [0.521, 0.565]"
    assert finding.score_words(0.5, 0.5, 0.5) == "0.500"
    assert finding.score_words(math.nan, math.nan, math.nan) == "–"
    assert finding.score_words(-0.02, -0.1, 0.05) == "−0.020 [−0.100, 0.050]"
    assert finding.score_words(0.98, 0.95, 1.01) == "0.980 [0.950, 1.000]"


def test_a_difference_is_said_with_its_sign_and_interval():
    assert finding.difference_words(0.059, 0.021, 0.097) == "+0.059 [+0.021, +0.097]"
    assert finding.difference_words(-0.01, -0.04, 0.02) == "−0.010 [−0.040, +0.020]"


def test_reads_that_the_judge_saved_are_whole_numbers_or_none():
    assert finding.worth_words(412.4, 150.2, 680.0) == "412 [150, 680]"
    assert finding.worth_words(-12.0, -80.0, 51.0) == "none [−80, 51]"
    assert finding.worth_words(30.0, -20.0, 90.0) == "30 [−20, 90]"
    assert finding.worth_words(-0.2, -0.4, -0.0) == "none"
    assert finding.worth_words(0.4, -0.3, 2.2) == "none [0, 2]"


def test_readers_are_said_with_as_many_as_they_count_for():
    assert finding.readers_words(5, 1.68) == "5 (as 1.7)"
    assert finding.readers_words(3, 3.0) == "3"
    assert finding.readers_words(0, math.nan) == "0"


def test_who_beats_whom_is_said_with_the_ties():
    wins = judge_only.WinRate(0.62, 0.54, 0.7, n_examples=148, n_pairs=150, n_ties=2, n_unlike=0)
    assert (
        finding.win_sentence(wins, "Alder", "Briar", "Magpie")
        == "In Magpie's opinion Alder scores higher than Briar on 62 % [54 %, 70 %] of the 148 conversations with a winner; 2 pairs of responses score the same."
    )


def test_pairs_of_unlike_length_are_counted():
    alike = judge_only.WinRate(0.58, 0.4, 0.74, n_examples=31, n_pairs=33, n_ties=2, n_unlike=117)
    assert (
        finding.alike_sentence(alike)
        == "Of responses of like length: on 58 % [40 %, 74 %] of 31; 117 pairs are left out because their lengths differ."
    )


def test_only_a_slope_whose_interval_leaves_out_nought_is_told():
    table = pd.DataFrame({"model": ["A", "B"], "slope": [0.2, 0.1], "slope_low": [0.1, -0.1], "slope_high": [0.3, 0.3]})
    assert (
        judge_only.length_finding(table)
        == "Longer responses of A score higher by 0.200 [0.100, 0.300] per 1,000 characters; of the other models none is shown to score higher or lower."
    )
    assert (
        judge_only.length_finding(table.iloc[1:])
        == "No model is shown to score higher or lower where its responses are longer."
    )


def test_those_who_have_read_less_are_needed_where_one_has_read_nearly_everything():
    assert corrected.further_readers(2, 2.0) == (1, "by 1 more physician")
    assert corrected.further_readers(3, 2.9) == (0, "")
    assert (
        corrected.further_readers(5, 1.68)[1]
        == "by those who have read less: so far 5 physicians say as much as 1.7 who read alike"
    )


def test_the_widest_claim_rests_on_the_fewest_effective_readers():
    assert (
        corrected.widest_claim([4.2, 1.68]).why
        == "Fewer than 3 effective readers (1.7): the interval holds for these physicians only."
    )
    assert corrected.widest_claim([4.2, 2.9]).physicians.value == "in_general"


def test_a_claim_says_by_whom_further_examples_are_read():
    sentence = corrected.claim_sentence(Claim.NEW_EXAMPLES, Physicians.THESE)
    assert sentence.startswith(
        "The interval says where the score would lie on ever more examples of the same kind, read by these physicians, each counted by "
    )
    assert sentence.endswith(" fixed beforehand.")


def test_an_interaction_is_said_with_its_test():
    test = {"about": "difference", "model_1": "A", "model_2": "B", "n_groups": 4, "n_left_out": 1}
    assert (
        corrected_groups.interaction_words(test | {"f": 5.2, "df_1": 3, "df_2": 61.4, "p_holm": 0.003}, "theme")
        == "The difference between A and B depends on the theme (F(3, 61) = 5.2, p 0.003 by Holm; 4 of 5 themes)."
    )


def test_without_a_statement_the_choices_are_the_usual_ones():
    assert results.stated_words(None, []) == "No analysis is stated; these are the usual choices."


def test_bounds_that_round_to_one_number_are_one_number():
    assert sensitivity.bounds_words(0.5123, 0.5401) == "0.512 to 0.540"
    assert sensitivity.bounds_words(-0.02) == "−0.020"
    assert sensitivity.bounds_words(-0.0001, 0.0001) == "0.000"
    assert sensitivity.bounds_words(np.nan) == "–"

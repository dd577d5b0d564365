"""How the room of judges says its numbers: the examples of each sentence."""

import math

from evalcore.judges import agreement, juries, quality, record


def test_agreement_is_a_percentage_and_every_coefficient_has_two_places():
    assert agreement.value_words("agreement", 0.843) == "84 %"
    assert agreement.value_words("kappa", -0.07) == "−0.07"
    assert agreement.value_words("ac1", float("nan")) == "–"


def test_a_coefficient_has_its_interval_where_there_is_one():
    assert agreement.coefficient_words("agreement", 0.843, 0.8, 0.881) == "84 % [80 %, 88 %]"
    assert agreement.coefficient_words("kappa", 0.61, 0.523, 0.7) == "0.61 [0.52, 0.70]"
    assert agreement.coefficient_words("ac1", 1.0, float("nan"), float("nan")) == "1.00"


def test_bounds_are_of_percent_agreement_alone():
    assert agreement.bounds_words("agreement", 0.553, 0.641) == "55 % to 64 %"
    assert agreement.bounds_words("kappa", float("nan"), float("nan")) == "–"


def test_a_percentile_has_its_interval():
    assert (
        quality.percentile_words({"percentile": 61.2, "percentile_low": 40.4, "percentile_high": 78.6})
        == "61st [40, 79]"
    )


def test_percentiles_are_ordinals():
    assert quality.ordinal(40.0) == "40th"
    assert quality.ordinal(61.2) == "61st"
    assert quality.ordinal(12.4) == "12th"
    assert quality.ordinal(math.nan) == "–"


def test_a_balanced_f1_has_its_interval():
    assert (
        quality.value_words({"balanced_f1": 0.7123, "low": 0.66, "high": 0.7612, "undefined": ""})
        == "0.71 [0.66, 0.76]"
    )


def test_a_record_of_too_few_reads_says_so():
    of = {"grouping": "kind", "kind": "accuracy, undesirable", "weighted": False}
    enough = {"n": 148, "n_right": 92, "share": 92 / 148, "low": 0.5404, "high": 0.6958}
    assert (
        record.sentence(of | enough)
        == "On such criteria this judge matched physicians' blind reads in 62 % (92/148) [54 %, 70 %]."
    )
    assert (
        record.sentence(of | {"n": 3, "n_right": 2, "share": 2 / 3, "low": 0.1, "high": 0.9})
        == "Too few blind reads yet to say how often this judge matches physicians on such criteria (3)."
    )


def test_a_difference_in_points_has_its_sign():
    assert record.points_words(0.094, 0.031, 0.157) == "+9 [+3, +16]"
    assert record.points_words(0.2, math.nan, math.nan) == "+20, no interval"


def test_what_most_say_of_a_criterion_names_who_said_it():
    verdict = juries.on_criterion({"Magpie": "met", "Wren": "met", "Rook": "not_met"}, least=3)
    assert verdict.label.value == "met"
    assert round(verdict.confidence, 2) == 0.67
    assert verdict.explanation == "2 of 3 say met: Magpie and Wren; not met: Rook."


def test_a_level_between_two_is_half_a_vote_for_each():
    assert (
        juries.on_level({"Magpie": "D", "Wren": "C/D", "Rook": "cannot_assess"}, least=2).explanation
        == "1.5 of 2 say D: Magpie; C/D: Wren. Rook found no level."
    )
    assert (
        juries.on_level({"Magpie": "A", "Wren": "D"}, least=2).explanation
        == "1 of 2 say D: Wren; A: Magpie. Of equals the more severe counts."
    )

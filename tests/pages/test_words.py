"""Small functions of the pages, an example each."""

import re

import pandas as pd

from pages.shared.html import formatted, points_words, reader_name, sentence
from pages.shared.judges_choice import reads_words
from pages.shared.triage_html import counted
from pages.triage.cases import none_missed


def test_of_a_hash_that_stands_for_a_name_the_start_is_shown():
    assert (reader_name("Dr. A"), reader_name("0" * 64)) == ("Dr. A", "Physician 00000000")


def test_points_below_nought_are_costs():
    assert points_words(-5) == "undesirable: met costs 5 points"


def test_a_name_from_right_to_left_changes_the_place_of_no_word_around_it():
    assert (
        sentence("דר נועה כהן 48 responses, עדן-2 < 3")
        == "<bdi>דר נועה כהן</bdi> 48 responses, <bdi>עדן-2</bdi> &lt; 3"
    )


def test_no_line_ends_before_a_percent_sign():
    assert sentence("74 % (92/124) [65 %, 82 %]") == "74\xa0% (92/124) [65\xa0%, 82\xa0%]"


def test_a_list_has_its_numbers_where_its_words_begin_though_an_item_begins_with_a_drugs_name():
    drawn = formatted(
        "1. Paracetamol: مسكن للألم\n\n2. خافض للحرارة\n\n3) Rest for three days\n\n   - اشرب الماء\n\nمع الطعام"
    )
    assert re.findall(r"<(?:ol|ul|p)[^>]*>", drawn) == [
        '<ol dir="rtl">', "<p>", "<p>", '<ol start="3" dir="ltr">', "<p>", '<ul dir="rtl">', '<p dir="auto">',
    ]  # fmt: skip


def test_one_read_is_told_in_the_singular():
    assert reads_words(1, 1) == "1 blind first read of criteria in 1 conversation"


def test_levels_without_a_count_are_left_out():
    assert counted([3, 0, 1.5, 0]) == "A 3, C 1.5"


def test_no_dangerous_miss_is_said_with_what_so_few_answers_cannot_exclude():
    # Wilson's upper end for 0 of n: z^2 / (n + z^2), with z^2 = 3.84; of several pairs the one with fewest answers excludes least
    assert none_missed(pd.Series([16])) == (
        "In the judges' opinion no dangerous miss in 16 answers to cases that need C or D; that cannot exclude up to 19 %."
    )
    assert none_missed(pd.Series([96, 34])).endswith(
        "in 130 answers to cases that need C or D; that cannot exclude up to 10 % in each model and format."
    )
    assert none_missed(pd.Series([], dtype=int)) == "No case that needs C or D has an answer with a level."

"""Small functions of the pages, an example each."""

import re

import pandas as pd
import pytest

from evalcore.reading.queries import Progress
from pages.adjudicate.settling import case_word
from pages.audit.details import words
from pages.review.html import guideline_words, left_words
from pages.review.practice import agreed_words
from pages.shared.html import _direction, formatted, points_words, reader_name, sentence
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


def test_most_letters_tell_the_direction_of_a_text():
    texts = ("Paracetamol: مسكن للألم وخافض للحرارة", "Paracetamol, in Arabic باراسيتامول")
    assert [_direction(text) for text in texts] == ["rtl", "ltr"]


def test_what_is_left_is_told_in_minutes():
    assert left_words(Progress(n_done=13, n_left=47, seconds_each=45.0)) == "about 35 minutes left"


@pytest.mark.parametrize(
    ("known", "said"),
    [(None, "The guideline is new to you"), (2, "The guideline has changed since your last read"), (3, "")],
)
def test_a_guideline_that_the_reader_has_not_read_under_is_announced(known, said):
    assert guideline_words(3, known) == said


def test_practice_is_added_up_over_its_responses():
    assert agreed_words({12: (2, 3), 40: (5, 6)}) == "You agreed on 7 of 9"
    assert agreed_words({}) == "You agreed on 0 of 0"


def test_a_response_or_case_has_a_word_for_the_address():
    assert [case_word((3, 12)), case_word((3, None))] == ["r12", "e3"]


def test_the_detail_of_an_event_is_told_in_words():
    detail = '{"roles": ["lead", "reader"], "n_readers": 2, "paused": true, "until": null}'
    assert words(detail) == "roles: lead, reader; readers: 2; paused: yes"
    wrote = (
        '{"verdicts": [{"criterion": 3, "label": "not_met"}], "wrote": {"verdict": {"rows": "7-9", "sha256": "ab"}}}'
    )
    assert words(wrote) == "verdicts: criterion 3, label not_met; 3 verdicts written"

"""The strict parser of qa answers: the last line that states an acuity decides, and what is invalid is never a level."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from evalcore.study.schema import Acuity
from evalcore.triage.levels import answer as levels_answer
from evalcore.triage.levels.answer import NOT_STATED, stated_level

WHYS = {levels_answer.BOUNDARY, levels_answer.DIFFERENT, levels_answer.NOT_STATED, levels_answer.UNKNOWN}
with Path(__file__).with_name("acuity_answers.csv").open(encoding="utf-8", newline="") as file:
    ANSWERS = list(csv.DictReader(file))
LETTERS = st.sampled_from("ABCD")
PROSE = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=60).filter(
    lambda text: "acuity" not in text.lower() and len(text.splitlines()) < 2
)


@pytest.mark.parametrize("why", dict.fromkeys(row["why"] for row in ANSWERS))
def test_an_answer_is_read_as_it_was_meant(why):
    rows = [row for row in ANSWERS if row["why"] == why]
    found = {row["text"]: stated_level(row["text"]) for row in rows}
    assert {text: said.level.value if said.level else "none" for text, said in found.items()} == {
        row["text"]: row["level"] for row in rows
    }
    for text, said in found.items():
        assert said.words in text
        assert (said.why in WHYS) == (said.level is None)
        assert said.level is not None or why in ("a boundary", said.why)


def test_there_are_enough_answers_of_every_sort():
    assert len(ANSWERS) >= 60
    assert {row["level"] for row in ANSWERS} == {*"ABCD", "none"}


def test_a_letter_in_prose_is_no_answer_and_an_earlier_line_still_counts():
    assert stated_level("ACUITY: B\nMy acuity: based on what you say, D-dimer first.").level is Acuity.B


def test_an_invalid_last_line_is_not_replaced_by_an_earlier_one():
    assert stated_level("ACUITY: B\nACUITY: C or D") == levels_answer.Stated(
        None, "ACUITY: C or D", levels_answer.DIFFERENT
    )


@given(letter=LETTERS, before=PROSE, after=PROSE)
def test_a_plain_last_line_is_read_whatever_stands_around_it(letter, before, after):
    assert stated_level(f"{before}\nACUITY: {letter}\n{after}").level == letter


@given(letter=LETTERS, before=PROSE, wrap=st.sampled_from(["{}", "**{}**", "## {}", "- {}", "`{}`", "> {}", "  {}  "]))
def test_markdown_does_not_matter(letter, before, wrap):
    assert stated_level(f"{before}\n{wrap.format(f'ACUITY: {letter}')}").level == letter


@given(one=LETTERS, other=LETTERS, gap=st.sampled_from([" or ", ", ", " ", " and ", ". ACUITY: ", " ACUITY: "]))
def test_two_different_letters_on_one_line_are_invalid(one, other, gap):
    said = stated_level(f"ACUITY: {one}{gap}{other}")
    assert (said.level is None) == (one != other)


@given(st.text())
def test_any_text_gives_a_level_or_the_reason_why_there_is_none(text):
    said = stated_level(text)
    assert (said.level in "ABCD" and said.why == "") if said.level else said.why in WHYS
    assert said.words in text


PIECES = (
    "acuity", "ACUITY:", "Acuity -", " ", "\n", "A", "B", "D", "c", "C/D", "or", "based", "(", ")", ".", "**", "|", "a doctor", "level", "not", "–", "1",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_a_level_is_never_made_of_anything_but_a_label_with_its_letter(text):
    said = stated_level(text)
    if said.level is not None:
        assert re.search(rf"(?i)acuity[\s\S]*[:=–|-][\s\S]*{said.level}", said.words)
        assert said.words in text


@given(st.text().filter(lambda text: "acuity" not in text.lower()))
def test_without_the_word_there_is_no_level(text):
    assert stated_level(text).why == NOT_STATED


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["ACUITY: C ", "acuity: ", "ACUITY: A, ", "ACUITY (", "acuity  ", "ACUITY: C or ", "* "]
)
def test_a_long_hostile_line_takes_no_long_time(piece):
    said = stated_level(piece * 20_000)
    assert said.level in (None, "A", "C")

"""The table of keys: what a panel offers, its map tells, and so does the README."""

from pathlib import Path

import pytest

from evalcore.reading.reviewing import ANSWERS
from evalcore.study.schema import Ask, CannotReason, Cause, ConflictCause
from pages.shared import keys


def test_the_readme_has_the_table_of_keys():
    assert keys.readme_table() in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("ask", list(Ask))
def test_every_answer_has_a_key(ask):
    assert {label for label, _ in keys.ANSWERS[ask].values()} == set(ANSWERS[ask])


def test_every_reason_and_cause_has_a_key():
    for choices, words in (
        (keys.REASON_KEYS, CannotReason),
        (keys.CAUSE_KEYS, Cause),
        (keys.CONFLICT_KEYS, ConflictCause),
    ):
        assert {option for option, _ in choices.values()} == set(words)

"""The table of keys: what a panel offers, its map tells, and so does the README."""

from pathlib import Path

import pytest

from evalcore.reading.reviewing import ANSWERS
from evalcore.study.schema import Ask, CannotReason, Cause, ConflictCause
from pages.shared import keys


def test_the_readme_has_the_table_of_keys():
    rows = {panel: keys.keys_of(panel, Ask.RUBRIC) for panel in keys.Panel}
    told = {panel: " · ".join(f"`{key.written or key.press}` {key.does}" for key in of) for panel, of in rows.items()}
    table = ["| screen | keys |", "|---|---|", *(f"| {panel} | {words} |" for panel, words in told.items())]
    assert "\n".join(table) in (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("ask", list(Ask))
def test_every_answer_has_a_key(ask):
    assert {label for label, _ in keys.ANSWERS[ask].values()} == set(ANSWERS[ask])


def test_causes_of_a_level_are_numbered_without_a_gap_and_blame_no_criterion():
    choices = keys.LEVEL_CAUSE_KEYS
    assert list(choices) == [str(number) for number in range(1, len(Cause) - len(keys.OF_CRITERION) + 1)]
    assert {cause for cause, _ in choices.values()} == set(Cause) - keys.OF_CRITERION


def test_every_reason_and_cause_has_a_key():
    for choices, words in (
        (keys.REASON_KEYS, CannotReason),
        (keys.CAUSE_KEYS, Cause),
        (keys.CONFLICT_KEYS, ConflictCause),
    ):
        assert {option for option, _ in choices.values()} == set(words)

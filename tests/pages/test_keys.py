"""The table of keys: what a panel offers, its map tells, and so does the README."""

from itertools import product

import pytest

from evalcore.reading.reviewing import ANSWERS
from evalcore.study.schema import Acuity, Ask, CannotReason, Cause, ConflictCause
from pages.shared import keys
from tests.docs.reference import README, with_keys

SAME = [  # words of one meaning, in different lists
    {"criterion ambiguous", "criterion unclear"},
    {"medical disagreement", "true clinical disagreement"},
    {"submit and lock", "on to the next response", "settle, also while writing"},
    {"i slipped: answer again", "one reader slipped"},
    {"write a note; enter saves it", "write the rationale; escape leaves it"},
]


def test_the_readme_has_the_table_of_keys():
    readme = README.read_text(encoding="utf-8")
    assert with_keys(readme) == readme
    assert with_keys(readme.replace("| `J or ↓` | next item |\n", "")) == readme, "nothing would be written anew"


def meanings(panel, ask):
    """Every key of a panel with what it means, of lists too."""
    for row in keys.PANELS[panel]:
        if isinstance(row, keys.Press):
            yield row.value.press or row.value.written, row.value.does.lower()
        else:
            yield from ((press, words.lower()) for press, (_, words) in keys.choices_of(row, ask).items())


def test_a_key_means_one_thing_on_every_screen_and_at_every_step():
    found = {}
    for panel, ask in product(keys.Panel, Ask):
        for press, meaning in meanings(panel, ask):
            found.setdefault(press, set()).add(meaning)
    doubtful = {press: words for press, words in found.items() if len(words) > 1 and words not in SAME}
    assert doubtful == {}
    assert found["K"] == {"the item before"}


def test_no_two_lists_that_stand_together_share_a_key():
    """Why it cannot be assessed stands alone beside the labels; the lists of an error stand together."""
    together = (keys.Group.ANSWERS, keys.Group.CAUSES, keys.Group.SEVERITIES, keys.Group.KINDS)
    for ask in Ask:
        for groups in (together, (keys.Group.ANSWERS, keys.Group.REASONS), (keys.Group.ANSWERS, keys.Group.CONFLICT)):
            presses = [press for group in groups for press in keys.choices_of(group, ask)]
            assert len(presses) == len(set(presses))


def test_a_scale_has_emergency_on_top_home_at_the_bottom_and_its_letters_as_keys():
    levels = [(press, label) for press, (label, _) in keys.ANSWERS[Ask.RESPONSE_ACUITY].items() if label in set(Acuity)]
    order = [level for level in reversed(Acuity) if level is not Acuity.REMOVE]
    assert [label for _, label in levels] == order
    assert {label for press, label in levels if press == label} == {Acuity.A, Acuity.B, Acuity.C, Acuity.D}


@pytest.mark.parametrize("ask", list(Ask))
def test_every_answer_has_a_key(ask):
    assert {label for label, _ in keys.ANSWERS[ask].values()} == set(ANSWERS[ask])


def test_causes_of_a_level_blame_no_criterion():
    assert {cause for cause, _ in keys.LEVEL_CAUSE_KEYS.values()} == set(Cause) - keys.OF_CRITERION


def test_every_reason_and_cause_has_a_key():
    for choices, words in (
        (keys.REASON_KEYS, CannotReason),
        (keys.CAUSE_KEYS, Cause),
        (keys.CONFLICT_KEYS, ConflictCause),
    ):
        assert {option for option, _ in choices.values()} == set(words)


def test_a_key_that_a_panel_does_not_have_at_the_moment_is_left_out_of_its_map():
    every, without = (keys.keys_of(keys.Panel.MARK, Ask.RUBRIC, absent) for absent in ((), {keys.Press.GUIDELINE}))
    assert [key for key in every if key not in without] == [keys.Press.GUIDELINE.value]


def test_in_practice_nothing_is_told_to_the_lead_and_no_lock_is_taken_back():
    of_mark, of_practice = (keys.keys_of(panel, Ask.RUBRIC) for panel in (keys.Panel.MARK, keys.Panel.PRACTISE))
    assert [key for key in of_mark if key not in of_practice] == [keys.Press.TELL.value, keys.Press.SLIP.value]
    assert all(key in of_mark for key in of_practice)

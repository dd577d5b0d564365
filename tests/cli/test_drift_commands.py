"""Criteria, drift and self-preference as commands: what they print."""

import pytest

from evalcore.errors import OverreadError
from tests import world
from tests.drift_steps import IMANI, judged, ran, read, told

# ---------------------------------------------------------------- criteria


def test_criteria_lists_the_groups_that_were_read_and_all_when_asked(three_conversations):
    read(three_conversations, IMANI, "+-....")
    rows = told(three_conversations, "criteria", "--by", "criterion")
    assert [(row["group"], row["n"], row["physicians"], row["judge"]) for row in rows] == [
        (three_conversations.criteria[0][0], 2, 1.0, world.JUDGE), (three_conversations.criteria[0][1], 2, 0.0, world.JUDGE),
    ]  # fmt: skip
    assert {"judge_met", "judge_met_low", "inverted", "n_alarms", "reasons", "disagreement_high"} <= set(rows[0])
    assert rows[0]["disagreement"] is None
    assert len(told(three_conversations, "criteria", "--by", "criterion", "--all")) == 6
    shown = ran(three_conversations, "criteria", "--by", "axis").stdout
    assert "Magpie: No alarm on the one axis that physicians have read." in shown


def test_criteria_of_an_unknown_judge_or_grouping_name_what_there_is(three_conversations):
    with pytest.raises(OverreadError, match=r"--judge: expected one of Magpie, got 'Wren'"):
        ran(three_conversations, "criteria", "--judge", "Wren")
    with pytest.raises(OverreadError, match=r"--by: expected one of category, axis, theme, criterion, got 'kind'"):
        ran(three_conversations, "criteria", "--by", "kind")


# ---------------------------------------------------------------- drift


def test_drift_tells_flips_and_scores(three_conversations):
    judged(three_conversations, "Magpie 2", "--+-+-")
    found = told(three_conversations, "drift", "--from", "Magpie", "--to", "Magpie 2")
    first = found["flips"][0]
    assert (first["grouping"], first["n"], first["n_flips"], first["n_to_not_met"]) == ("overall", 12, 2, 2)
    assert (first["test"], first["p"]) == ("exact", 1)  # two flips of one example: one sign, either way
    assert [(row["model"], row["difference"]) for row in found["scores"]] == [
        ("claude-sonnet", pytest.approx(-1 / 3)), ("gpt-4.1", pytest.approx(-1 / 3)), ("all models", pytest.approx(-1 / 3)),
    ]  # fmt: skip
    shown = ran(three_conversations, "drift", "--from", "Magpie", "--to", "Magpie 2").stdout
    assert "17 % (2/12)" in shown
    assert "−0.333" in shown


def test_drift_between_judges_that_agree_says_so(three_conversations):
    judged(three_conversations, "Magpie 2", "+-+-+-")
    found = told(three_conversations, "drift", "--from", "Magpie", "--to", "Magpie 2", "--by", "overall")
    assert found["flips"][0]["p"] is None
    assert found["flips"][0]["reason"] == "No label differs, so there is nothing to test."
    with pytest.raises(OverreadError, match=r"--to: expected one of Magpie, Magpie 2, got 'Wren'"):
        ran(three_conversations, "drift", "--from", "Magpie", "--to", "Wren")


# ---------------------------------------------------------------- families


def test_self_preference_says_why_it_cannot_be_said(three_conversations):
    read(three_conversations, IMANI, "+-+-+-")
    rows = told(three_conversations, "self-preference")
    assert (rows[0]["judge"], rows[0]["difference"]) == ("Magpie", None)
    assert "No pattern of the table of families fits the judge Magpie." in rows[0]["reason"]
    assert "cannot be said: no pattern" in ran(three_conversations, "self-preference").stdout

"""What a jury says of one item: the label that most give, with its share of the votes, or why there is none."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.judges.juries import Why, on_criterion, on_level
from evalcore.stats.majority import most
from evalcore.triage.data import LEVELS, NO_LEVEL
from evalcore.triage.predictions import votes

many = settings(max_examples=40, deadline=None)
NAMES = ("Magpie", "Wren", "Rook", "Jay", "Dove")
MET = {"met": 1.0, "not_met": 0.0}
criteria = st.lists(st.sampled_from(["met", "not_met", "cannot_assess", None]), min_size=2, max_size=5)
levels = st.lists(st.sampled_from([*(level.value for level in LEVELS), "cannot_assess", None]), min_size=2, max_size=5)


def named(labels):
    return {name: label for name, label in zip(NAMES, labels, strict=False) if label is not None}


def sure(share, n_votes):
    """The share of the votes is a confidence from three votes on: two that agree are always sure."""
    assert 0 < share <= 1
    return pytest.approx(share) if n_votes >= 3 else None


@many
@given(criteria)
def test_a_criterion_is_decided_by_the_one_rule_for_majorities(labels):
    found = on_criterion(named(labels), least=2)
    given_ = [MET[label] for label in labels if label in MET]
    label, share = most(sum(given_), len(given_))
    if found.why is Why.DECIDED:
        assert (MET[found.label], found.confidence) == (label, sure(share, len(given_)))
    else:
        assert (found.label, found.confidence, found.explanation) == (None, None, None)
        assert (found.why is Why.SPLIT) == (len(given_) >= 2 and math.isnan(label))


@many
@given(levels)
def test_a_level_is_decided_as_the_majority_of_the_triage_page_decides_it(labels):
    found = on_level(named(labels), least=2)
    said = [math.nan if label is None else LEVELS.get(label, NO_LEVEL) for label in labels]
    said = [NO_LEVEL if label == "remove" else value for label, value in zip(labels, said, strict=True)]
    (row,) = votes(pd.DataFrame([said], columns=NAMES[: len(said)], dtype=float)).to_dict(orient="records")
    if row["n_votes"] < 2:
        assert found.why is Why.TOO_FEW
    else:
        assert (LEVELS[found.label], found.confidence) == (row["level"], sure(row["share"], row["n_votes"]))


@many
@given(criteria | levels, st.randoms(use_true_random=False))
def test_the_order_of_the_members_changes_neither_label_nor_confidence(labels, chance):
    mixed = list(named(labels).items())
    chance.shuffle(mixed)
    for said in (on_criterion, on_level):
        one, other = said(named(labels), least=2), said(dict(mixed), least=2)
        assert (one.why, one.label, one.confidence) == (other.why, other.label, other.confidence)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_who_could_not_assess_has_no_vote_and_too_few_votes_give_no_verdict(n):
    labels = dict.fromkeys(NAMES[:n], "met") | {NAMES[0]: "cannot_assess"}
    assert on_criterion(labels, least=n).why is Why.TOO_FEW
    found = on_criterion(labels, least=2)
    if n == 2:
        assert found.why is Why.TOO_FEW
    else:
        assert (found.label, found.confidence) == ("met", 1.0 if n > 3 else None)
        assert found.explanation.startswith(f"{n - 1} of {n - 1} say met: ")
        assert found.explanation.endswith(". Magpie could not assess it.")


def test_an_even_split_is_no_verdict_on_a_criterion_and_the_more_severe_level():
    assert on_criterion({"Magpie": "met", "Wren": "not_met"}, least=2).why is Why.SPLIT
    found = on_level({"Magpie": "B", "Wren": "C", "Rook": "B", "Jay": "C"}, least=4)
    assert (found.label, found.confidence) == ("C", 0.5)
    assert found.explanation == "2 of 4 say C: Wren and Jay; B: Magpie and Rook. Of equals the more severe counts."


def test_two_levels_between_letters_can_agree_on_a_letter_that_nobody_said():
    # A/B and B/C: half a vote for A, one for B, half for C
    found = on_level({"Magpie": "A/B", "Wren": "B/C"}, least=2)
    assert (found.label, found.confidence) == ("B", None)
    assert found.explanation == "1 of 2 say B; A/B: Magpie; B/C: Wren."
    assert np.isnan(LEVELS["remove"])
    assert on_level({"Magpie": "remove", "Wren": "D"}, least=2).why is Why.TOO_FEW

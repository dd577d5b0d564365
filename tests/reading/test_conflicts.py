"""Who needs an adjudicator and why, and in which order."""

import pytest
from hypothesis import given

from evalcore.reading.conflicts import LEAST, MOST, SENTENCES, Reason, cases
from evalcore.study.schema import Acuity, Rules
from tests.conflict_rows import LETTERS, conflicts, drawn_items, one, reasons, why

# ---------------------------------------------------------------- drawn


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["+"], ""),
        (["+", "+"], ""),
        (["-", "-", "-"], ""),
        (["+", "-"], "conflict"),
        (["+", "+", "-"], "conflict"),
        (["+", "?"], "conflict cannot"),
        (["?", "?"], "cannot"),
        (["?"], "cannot"),
        # what was changed after the judge was shown settles no conflict, and makes none
        (["+", "-", {"said": "+ revised", "rater_id": 2}], "conflict"),
        (["+", "+", {"said": "- revised", "rater_id": 2}], ""),
        # an open read counts where its reader has no first one
        (["+", "- open"], "conflict"),
        (["+", "+", {"said": "- open", "rater_id": 2}], ""),
        (["+", "- revised"], "conflict"),
        # settled, also where a read was amended since
        (["+", "-", "+ adjudicated"], ""),
        (["+", "-", "+ adjudicated", {"said": "+ revised", "rater_id": 2}], ""),
        (["+ adjudicated"], ""),
    ],
)
def test_first_reads_of_a_criterion_decide(said, expected):
    assert why(*said) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["A", "B"], ""),  # one level apart: the median settles it
        (["A", "C"], "apart"),
        (["A/B", "C"], ""),  # B and C
        (["A/B", "C/D"], ""),  # B and C again
        (["A", "C/D"], "apart"),
        (["C/D", "D"], ""),  # the same level
        (["A", "D"], "apart"),
        (["A", "B", "C"], "apart"),  # of three the two outer ones
        (["R", "R"], ""),
        (["R", "D"], "conflict"),
        (["?", "D"], "conflict cannot"),
        (["?", "?"], "cannot"),
        (["A", "C", "R"], "apart conflict"),
    ],
)
@pytest.mark.parametrize("item", [(1, 1, None), (1, None, None)])
def test_levels_of_care_two_or_more_apart_need_an_adjudicator(said, expected, item):
    assert why(*said, item=item, points=None) == expected


def test_an_item_waits_until_as_many_have_submitted_as_are_wanted():
    assert why("+", "-", wanted=3) == ""
    assert why("+", "-", "+", wanted=3) == "conflict"
    assert why("?", wanted=2) == ""
    assert why({"said": "+ open", "severity": "severe"}, wanted=2) == ""


def test_a_read_of_somebodys_own_accord_fills_no_place_but_its_answer_counts():
    own = {"said": "- open", "selection": "volunteered"}
    assert why("+", own, wanted=2) == ""
    assert why("+", "+", own, wanted=2) == "conflict"
    assert why("+", own) == "conflict"


def test_an_open_read_that_was_changed_afterwards_counts_as_it_was_submitted():
    changed = {"said": "- open", "selection": "volunteered", "rater_id": 2}
    assert why("+ open", "+ open", changed, wanted=2) == ""
    assert why("- open", "+ open", changed, wanted=2) == "conflict"


@pytest.mark.parametrize("stage", ["first", "open", "revised"])
@pytest.mark.parametrize("severity", ["none", "mild", "moderate", "severe"])
def test_severe_harm_is_sent_on_at_whichever_stage_it_is_claimed(stage, severity):
    claim = {"said": f"+ {stage}", "severity": severity, "rater_id": 2}
    assert why("+", "+", claim) == ("severe" if severity == "severe" else "")


@pytest.mark.parametrize(
    ("said", "points", "judge", "expected"),
    [
        (["-", "-"], 7, "+", "judge"),
        (["-", "-"], -7, "+", "judge"),
        (["+", "+"], -10, "-", "judge"),
        (["-", "-"], 6, "+", ""),
        (["-", "-"], 7, "-", ""),
        (["-", "-"], 7, None, ""),
        (["-", "-"], None, "+", ""),
        (["-"], 10, "+", ""),
        (["+", "-"], 10, "+", "conflict"),
        (["?", "?"], 10, "+", "cannot"),
    ],
)
def test_both_against_the_judge_is_the_studys_choice(said, points, judge, expected):
    asked = Rules(both_against_judge=True)
    assert why(*said, points=points, judge=judge, rules=asked) == expected
    assert why(*said, points=points, judge=judge) == expected.replace("judge", "")


def test_items_apart_do_not_mix_and_stand_in_order():
    found = reasons(
        one("A", "D", item=(2, None, None), points=None),
        one("A", "C", item=(1, 1, None), points=None),
        one("+", "-", item=(1, 1, 2)),
        one("+", item=(1, 1, 1)),
        one("-", item=(1, 2, 1)),
    )
    assert list(found.items()) == [((1, 1, None), "apart"), ((1, 1, 2), "conflict"), ((2, None, None), "apart")]


def test_what_is_not_there_is_missing_and_not_zero():
    (conflict,) = conflicts(one("A", "D", item=(2, None, None), points=None))
    assert (conflict.item, conflict.points, conflict.n_reads) == ((2, None, None), None, 2)


def test_nothing_read_needs_nobody():
    assert conflicts(rules=Rules(check_share=1, both_against_judge=True)) == cases([]) == []


def test_every_reason_has_a_sentence_and_every_level_its_letters():
    assert set(SENTENCES) == set(Reason)
    assert set(LEAST) == set(MOST) == set(Acuity) - {Acuity.REMOVE}
    assert {level: set(range(LEAST[level], MOST[level] + 1)) for level in LEAST} == LETTERS


# ---------------------------------------------------------------- in which order


def test_the_worst_case_comes_first():
    waiting = cases(
        conflicts(
            one("+", "+", item=(7, 7, 1), points=10),
            one("?", "?", item=(6, 6, 1), points=10),
            one("+", "-", item=(5, 5, 1), points=3),
            one("+", "-", item=(5, 5, 2), points=-4),
            one("?", "?", item=(5, 5, 3), points=10),  # not a conflict: its points do not lift the case
            one("+", "-", item=(4, 4, 1), points=-9),
            one("A", "D", item=(3, None, None), points=None),
            one(
                "+", {"said": "+", "severity": "severe"}, item=(2, 2, 1), points=1
            ),  # tells of the judge: it moves nothing up
            one("+", "-", item=(1, 1, 1), points=None),
            rules=Rules(check_share=1),
        )
    )
    assert [case.key for case in waiting] == [(3, None), (4, 4), (5, 5), (1, 1), (6, 6), (7, 7), (2, 2)]
    assert [case.n_items for case in waiting] == [1, 1, 3, 1, 1, 1, 1]
    assert [case.points for case in waiting] == [None, 9, 4, None, 10, 10, 1]
    assert waiting[2].reasons == (Reason.CONFLICT, Reason.CANNOT_ASSESS)


@given(drawn_items())
def test_every_item_is_in_one_case_and_no_reason_that_is_told_is_lost(items):
    found = conflicts(*items, rules=Rules(check_share=1, both_against_judge=True))
    waiting = cases(found)
    assert sum(case.n_items for case in waiting) == len(found)
    assert {reason for case in waiting for reason in case.reasons} == {
        reason for each in found for reason in each.told_reasons
    }

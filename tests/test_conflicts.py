"""Who needs an adjudicator and why, held against the rule written out; and the list of criteria at fault."""

import itertools

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.metrics.conflicts import (
    FAULTS,
    LEAST,
    MOST,
    SENTENCES,
    Reason,
    cases,
    check_place,
    faulted_criteria,
    needing,
)
from evalcore.schema import Acuity, Rules
from tests import tables

SEED = "seed"
LETTERS = {"A": {1}, "A/B": {1, 2}, "B": {2}, "B/C": {2, 3}, "C": {3}, "C/D": {3, 4}, "D": {4}}
WORDS = {"+": "met", "-": "not_met", "?": "cannot_assess", "R": "remove"}
WHY = {
    "severe": Reason.SEVERE_HARM,
    "apart": Reason.LEVELS_APART,
    "conflict": Reason.CONFLICT,
    "judge": Reason.AGAINST_JUDGE,
    "cannot": Reason.CANNOT_ASSESS,
    "check": Reason.CHECK,
}


def one(*said, item=(1, 1, 1), points=5, judge=None, wanted=None):
    """The reads of one item: each `label`, or `label stage`, or a dictionary with more; readers 1, 2, ... in turn."""
    rows = []
    for reader, what in enumerate(said, start=1):
        label, _, stage = what["said"].partition(" ") if isinstance(what, dict) else what.partition(" ")
        more = {key: value for key, value in what.items() if key != "said"} if isinstance(what, dict) else {}
        rows.append(
            {
                "example_id": item[0],
                "response_id": item[1],
                "criterion_id": item[2],
                "points": points,
                "rater_id": reader,
                "stage": stage or "first",
                "label": WORDS.get(label, label),
                "severity": None,
                "selection": "random",
                "judge_label": judge and WORDS[judge],
                "n_wanted": wanted,
                **more,
            }
        )
    return rows


def frame(*items):
    rows = list(itertools.chain.from_iterable(items))
    numbered = [{"verdict_id": number, **row} for number, row in enumerate(rows, start=1)]
    columns = [
        "verdict_id", "example_id", "response_id", "criterion_id", "points", "rater_id", "stage", "label", "severity", "selection",
        "judge_label", "n_wanted",
    ]  # fmt: skip
    found = pd.DataFrame(numbered, columns=columns)
    return found.assign(
        **{name: pd.to_numeric(found[name]) for name in ("response_id", "criterion_id", "points", "n_wanted")}
    )


def reasons(*items, rules=None):
    """Words of the reasons, by item, of those that need an adjudicator."""
    found = needing(frame(*items), rules or Rules(), seed=SEED)
    words = {reason: word for word, reason in WHY.items()}
    keys = zip(found["example_id"], found["response_id"].fillna(0), found["criterion_id"].fillna(0), strict=True)
    return {
        tuple(map(int, key)): " ".join(words[reason] for reason in held)
        for key, held in zip(keys, found["reasons"], strict=True)
    }


ITEM = (1, 1, 1)
ACUITY = (1, 1, None)


def why(*said, rules=None, **about):
    """The reasons of one item; empty where it settles itself."""
    return next(iter(reasons(one(*said, **about), rules=rules).values()), "")


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
    assert list(found.items()) == [((1, 1, 0), "apart"), ((1, 1, 2), "conflict"), ((2, 0, 0), "apart")]


def test_what_is_not_there_is_missing_and_not_zero():
    found = needing(frame(one("A", "D", item=(2, None, None), points=None)), Rules(), seed=SEED)
    assert found[["response_id", "criterion_id", "points"]].isna().all(axis=None)
    assert found["n_reads"].tolist() == [2]


def test_nothing_read_needs_nobody():
    found = needing(frame(), Rules(check_share=1, both_against_judge=True), seed=SEED)
    assert found.empty
    assert cases(found).empty


def test_every_reason_has_a_sentence_and_every_level_its_letters():
    assert set(SENTENCES) == set(Reason)
    assert set(LEAST) == set(MOST) == set(Acuity) - {Acuity.REMOVE}
    assert {level: set(range(LEAST[level], MOST[level] + 1)) for level in LEAST} == LETTERS


# ---------------------------------------------------------------- properties

labels_of_criterion = st.sampled_from(["+", "-", "?"])
labels_of_acuity = st.sampled_from([*LETTERS, "R", "?"])
few = settings(max_examples=40, deadline=None)


@st.composite
def drawn_items(draw):
    """Some items, each of a criterion or of acuity, with one to four readers and what may follow."""
    items = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        is_acuity = draw(st.booleans())
        words = labels_of_acuity if is_acuity else labels_of_criterion
        said = draw(st.lists(words, min_size=1, max_size=4))
        rows = one(
            *said,
            item=(1, number, None if is_acuity else number),
            points=None if is_acuity else draw(st.sampled_from([-10, -7, -3, 6, 7, None])),
            judge=None if is_acuity else draw(st.sampled_from(["+", "-", None])),
            wanted=draw(st.sampled_from([None, 2, 3])),
        )
        for row in rows:
            row["severity"] = draw(st.sampled_from([None, None, None, "mild", "severe"]))
        if draw(st.integers(0, 4)) == 0:
            rows.append({**rows[0], "rater_id": 9, "stage": "adjudicated"})
        items.append(rows)
    return items


def expected(rows, rules):
    """The rule in plain Python, without the check: the words of the reasons of one item."""
    reads = [row for row in rows if row["stage"] != "adjudicated"]
    if len(reads) < len(rows) or len(reads) < (reads[0]["n_wanted"] or 0):
        return ""
    said = [row["label"] for row in reads]
    levels = [LETTERS[label] for label in said if label in LETTERS]
    distances = [min(abs(x - y) for x in one_ for y in two) for one_, two in itertools.combinations(levels, 2)]
    kinds = {"level" if label in LETTERS else label for label in said}
    held = []
    if any(row["severity"] == "severe" for row in reads):
        held.append("severe")
    if max(distances, default=0) >= 2:
        held.append("apart")
    if len(kinds) > 1:
        held.append("conflict")
    judge, points = reads[0]["judge_label"], reads[0]["points"]
    against = len(said) > 1 and len(set(said)) == 1 and said[0] in ("met", "not_met") and judge not in (None, said[0])
    if rules.both_against_judge and against and points is not None and abs(points) >= 7:
        held.append("judge")
    if "cannot_assess" in said:
        held.append("cannot")
    return " ".join(held)


def is_unanimous(rows):
    reads = [row["label"] for row in rows if row["stage"] != "adjudicated"]
    if len(reads) < 2:
        return False
    if all(label in LETTERS for label in reads):
        return all(LETTERS[x] & LETTERS[y] for x, y in itertools.combinations(reads, 2))
    return len(set(reads)) == 1


def key(rows):
    return tuple(rows[0][name] or 0 for name in ("example_id", "response_id", "criterion_id"))


@few
@given(drawn_items(), st.booleans())
def test_every_mixture_follows_the_rule(items, both):
    rules = Rules(both_against_judge=both)
    assert reasons(*items, rules=rules) == {key(rows): why for rows in items if (why := expected(rows, rules))}


@few
@given(drawn_items(), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_order_of_the_rows_does_not_matter(items, random, share):
    rules = Rules(check_share=share, both_against_judge=True)
    rows = frame(*items)
    order = list(rows.index)
    random.shuffle(order)
    pd.testing.assert_frame_equal(needing(rows.loc[order], rules, seed=SEED), needing(rows, rules, seed=SEED))


@few
@given(drawn_items(), st.permutations([1, 2, 3, 4]), st.sampled_from([0.0, 0.5, 1.0]))
def test_who_the_readers_are_does_not_matter(items, others, share):
    rules = Rules(check_share=share, both_against_judge=True)
    rows = frame(*items)
    swapped = rows.assign(rater_id=rows["rater_id"].map(dict(enumerate(others, start=1))).fillna(9))
    pd.testing.assert_frame_equal(needing(swapped, rules, seed=SEED), needing(rows, rules, seed=SEED))


@few
@given(st.sampled_from([*"+-?"]), st.integers(1, 4), st.sampled_from([*LETTERS, "R"]))
def test_one_more_read_that_says_the_same_never_makes_a_conflict(label, n_reads, level):
    for said, about in ((label, {}), (level, {"item": ACUITY, "points": None})):
        for count in (n_reads, n_reads + 1):
            assert not {"conflict", "apart"} & set(why(*[said] * count, **about).split())


@few
@given(drawn_items(), drawn_items())
def test_an_item_is_judged_by_its_own_reads_alone(items, others):
    moved = [[{**row, "example_id": 2} for row in rows] for rows in others]
    together = reasons(*items, *moved)
    assert together == reasons(*items) | reasons(*moved)


# ---------------------------------------------------------------- the check


@few
@given(drawn_items())
def test_no_share_draws_nothing_and_the_whole_share_every_unanimous_item_that_is_due(items):
    without, whole = reasons(*items), reasons(*items, rules=Rules(check_share=1))
    assert "check" not in " ".join(without.values())
    settled = {key(rows) for rows in items if any(row["stage"] == "adjudicated" for row in rows)}
    waits = {key(rows) for rows in items if len(rows) < (rows[0]["n_wanted"] or 0)}
    wanted = {key(rows) for rows in items if is_unanimous(rows)} - settled - waits - set(without)
    assert {item for item, why in whole.items() if why == "check"} == wanted
    assert {item: why for item, why in whole.items() if why != "check"} == without


@few
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 10**9))
def test_a_larger_share_draws_the_items_of_a_smaller_one_too(one_share, other, example):
    small, large = sorted((one_share, other))
    items = [one("+", "+", item=(example, 1, number)) for number in range(1, 30)]
    fewer, more = (set(reasons(*items, rules=Rules(check_share=share))) for share in (small, large))
    assert fewer <= more


def test_the_share_is_met_and_another_seed_draws_others():
    items = [one("+", "+", item=(1, 1, number)) for number in range(1, 2001)]
    drawn = {
        seed: set(needing(frame(*items), Rules(check_share=0.2), seed=seed)["criterion_id"]) for seed in ("one", "two")
    }
    # 2000 draws of 0.2: 400, standard deviation 17.9; five of them either way
    assert all(abs(len(found) - 400) < 90 for found in drawn.values())
    assert len(drawn["one"] & drawn["two"]) < 160  # 80 expected of independent drawings, deviation 8.8


def test_the_place_in_the_drawing_is_a_share_and_depends_on_every_part():
    places = [check_place("s", item) for item in itertools.product((0, 1, 2), repeat=3)]
    assert len(set(places)) == 27
    assert all(0 <= place < 1 for place in places)


# ---------------------------------------------------------------- in which order


def test_the_worst_case_comes_first():
    found = cases(
        needing(
            frame(
                one("+", "+", item=(7, 7, 1), points=10),
                one("?", "?", item=(6, 6, 1), points=10),
                one("+", "-", item=(5, 5, 1), points=3),
                one("+", "-", item=(5, 5, 2), points=-4),
                one("?", "?", item=(5, 5, 3), points=10),  # not a conflict: its points do not lift the case
                one("+", "-", item=(4, 4, 1), points=-9),
                one("A", "D", item=(3, None, None), points=None),
                one("+", {"said": "+", "severity": "severe"}, item=(2, 2, 1), points=1),
                one("+", "-", item=(1, 1, 1), points=None),
            ),
            Rules(check_share=1),
            seed=SEED,
        )
    )
    assert found["example_id"].tolist() == [2, 3, 4, 5, 1, 6, 7]
    assert found["response_id"].fillna(0).tolist() == [2, 0, 4, 5, 1, 6, 7]
    assert found["n_items"].tolist() == [1, 1, 1, 3, 1, 1, 1]
    assert found["points"].fillna(-1).tolist() == [1, -1, 9, 4, -1, 10, 10]
    assert found["reasons"].iloc[3] == (Reason.CONFLICT, Reason.CANNOT_ASSESS)


@few
@given(drawn_items())
def test_every_item_is_in_one_case_and_no_reason_is_lost(items):
    found = needing(frame(*items), Rules(check_share=1, both_against_judge=True), seed=SEED)
    grouped = cases(found)
    assert grouped["n_items"].sum() == len(found)
    assert set(grouped["reasons"].explode()) == set(found["reasons"].explode())


# ---------------------------------------------------------------- criteria at fault


def faulted(drawing, **columns):
    said = tables.verdicts(drawing, **({"conflict_cause": None, "reason": None} | columns))
    return faulted_criteria(said)


def test_a_criterion_at_fault_counts_each_person_once_a_response_and_names_nobody():
    said = tables.verdicts(
        """
        response | criterion | example | dr_a | dr_a:open | dr_b | dr_c:adjudicated
        r1       | c1        | e1      |  +   |  +        |  -   |  -
        r2       | c1        | e1      |  +   |           |  -   |
        r1       | c2        | e1      |  +   |           |  -   |  +
        """,
        conflict_cause=None,
        reason=None,
    )
    of_a, first_item = said["rater"].eq("dr_a"), said["response_id"].eq(1) & said["criterion_id"].eq(1)
    said["cause"] = said["cause"].astype(object).mask(of_a & said["criterion_id"].eq(1), "criterion_wrong")
    said["reason"] = said["reason"].astype(object).mask(said["rater"].eq("dr_b") & first_item, "criterion_unclear")
    settled = said["stage"].eq("adjudicated")
    said["conflict_cause"] = said["conflict_cause"].astype(object).mask(settled & first_item, "criterion_ambiguous")
    said["explanation"] = said["explanation"].astype(object).mask(settled, "Two ways\nto read it.")
    said["explanation"] = said["explanation"].mask(said["rater"].eq("dr_b"), "What is soon?")
    (row,) = faulted_criteria(said).to_dict(orient="records")
    counts = {name: row[name] for name in FAULTS.values()}
    assert counts == {
        "n_settled_wrong": 0,
        "n_settled_ambiguous": 1,
        "n_readers_wrong": 2,  # dr_a on r1 (first and open: once) and on r2
        "n_readers_ambiguous": 0,
        "n_readers_unclear": 1,
    }
    assert row["n_faults"] == 4
    assert (row["criterion_id"], row["rationales"], row["notes"]) == (1, "Two ways to read it.", "What is soon?")
    assert "dr_" not in str(row)


def test_a_readers_cause_is_no_adjudicators_and_the_other_way_round():
    drawing = "response | criterion | dr_a | dr_c:adjudicated\nr1 | c1 | + | -"
    assert faulted(drawing).empty
    both = faulted(drawing, cause="criterion_ambiguous", conflict_cause="criterion_wrong").iloc[0]
    assert (both["n_settled_wrong"], both["n_readers_ambiguous"], both["n_faults"]) == (1, 1, 2)
    assert both[["rationales", "notes"]].isna().all()


def test_a_study_without_faults_gives_an_empty_list_with_its_columns():
    drawn = tables.verdicts("response | criterion | dr_a\nr1 | c1 | +", conflict_cause=None, reason=None)
    assert list(faulted_criteria(drawn).columns) == list(faulted_criteria(drawn.iloc[:0]).columns)

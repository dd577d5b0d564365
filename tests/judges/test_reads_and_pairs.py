"""Pairs of labels: which reads make one, which are left out, and how the reads were selected."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evalcore.judges.quality import OVERALL, TOGETHER, balanced_f1, error_rates, left_out as pairs_left_out, same_labels
from evalcore.judges.record import Reads, assessed, counted_reads, reads_words, usual_reads
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import share_interval
from tests.quality_rows import row_of
from tests.rubric_rows import of_drawing as study


def test_an_item_with_three_reads_makes_three_pairs_with_a_judge_and_two_for_each_physician():
    table = balanced_f1(
        study("""
            Magpie | dr_a | dr_b | dr_c
            +      | +    | -    | +
        """)
    )
    judge = row_of(table, "Magpie")
    assert (judge["n_pairs"], judge["n_items"], judge["n_both"], judge["n_rater_only"]) == (3, 1, 2, 1)
    assert [row_of(table, name)["n_pairs"] for name in ("dr_a", "dr_b", "dr_c")] == [2, 2, 2]
    together = row_of(table, TOGETHER)  # both ways: ++ twice, +- and -+ twice each
    assert (together["n_both"], together["n_rater_only"], together["n_other_only"], together["n_neither"]) == (
        2,
        2,
        2,
        0,
    )


def test_each_two_physicians_on_an_item_count_once_with_the_interval_that_judges_have():
    (row,) = same_labels(
        study("""
            example | Magpie | dr_a | dr_b | dr_c
            1       | +      | +    | +    | ?
            1       | -      | +    | -    |
            2       | +      | -    | +    | -
            2       | +      | -    |      |
        """)
    ).to_dict(orient="records")
    assert (row["n"], row["n_right"]) == (
        5,
        2,
    )  # pairs 1, 1, 3 and 0: the same are the first, and dr_a and dr_c of the third
    alone = share_interval([True, False, True, False, False], [1, 1, 2, 2, 2])
    assert (row["share"], row["low"], row["high"]) == pytest.approx((0.4, alone.low, alone.high))
    assert not row["weighted"]


def test_a_study_in_which_no_two_have_read_the_same_says_nothing_of_physicians_among_themselves():
    assert same_labels(study("Magpie | dr_a | dr_b\n+ | + |\n- | | +")).empty


def test_reads_that_could_not_assess_and_items_without_the_judges_label_make_no_pair():
    rubric_data = study("""
        Magpie | dr_a | dr_b
        +      | +    | ?
               | +    | -
        ?      | -    | -
    """)
    table = balanced_f1(rubric_data)
    assert row_of(table, "Magpie")["n_pairs"] == 1
    assert row_of(table, "dr_a")["n_pairs"] == 2
    assert pairs_left_out(rubric_data, "Magpie") == (1, 4)


def test_only_blind_first_reads_count():
    drawing = """
        Magpie | selection   | dr_a
        +      | volunteered | +
        -      |             | +
    """
    assert row_of(balanced_f1(study(drawing)), "Magpie")["n_pairs"] == 2
    assert row_of(balanced_f1(study(drawing, blinded=None)), "Magpie")["n_pairs"] == 2  # imported, nothing said
    assert balanced_f1(study(drawing, blinded=False)).empty
    assert balanced_f1(study(drawing, stage="revised")).empty


MIXED = """
    selection   | Magpie | dr_a | dr_b
    random      | +      | +    | ?
    importance  | +      | -    |
    volunteered | +      | +    |
                | +      | +    |
"""


def weighted(rubric_data):
    """The first two items drawn with probabilities of .5 and .25."""
    return replace(
        rubric_data,
        reads=rubric_data.reads.assign(inclusion_probability=rubric_data.reads["row"].map({0: 0.5, 1: 0.25})),
    )


def test_drawn_reads_enter_by_default_each_by_one_over_its_probability():
    rubric_data = weighted(study(MIXED))
    assert usual_reads(assessed(rubric_data.reads)) is Reads.DRAWN
    # of two drawn reads the judge is right on the one that weighs 2 of 2 + 4
    assert row_of(balanced_f1(rubric_data), "Magpie")["precision_met"] == pytest.approx(1 / 3)
    assert row_of(balanced_f1(rubric_data), "Magpie")["n_pairs"] == 2
    assert row_of(balanced_f1(rubric_data, reads=Reads.ALL), "Magpie")["precision_met"] == pytest.approx(3 / 4)
    rates = error_rates(rubric_data, by=[OVERALL])
    assert rates[["n_met", "n_not_met", "sensitivity"]].to_numpy().tolist() == [[1, 1, 1]]
    assert counted_reads(rubric_data.reads)["weight"].tolist() == [2, 4]


def test_equal_chances_weigh_nothing_and_without_a_drawing_every_read_enters():
    assert counted_reads(study("Magpie | dr_a\n+ | +\n- | +").reads)["weight"].tolist() == [1, 1]
    rubric_data = study("selection | Magpie | dr_a\nvolunteered | + | +\n | - | +")
    assert usual_reads(assessed(rubric_data.reads)) is Reads.ALL
    assert len(counted_reads(rubric_data.reads)) == 2
    assert counted_reads(rubric_data.reads, Reads.DRAWN).empty


def test_which_reads_are_shown_and_how_many_is_said():
    rubric_data = weighted(study(MIXED))
    assert reads_words(assessed(rubric_data.reads)) == (
        "Shown: drawn reads, 1 drawn at random, 1 drawn by importance; each counts by one over the probability with which its item was drawn. "
        "2 of all 4 blind first reads were not drawn and stay out."
    )
    assert reads_words(assessed(rubric_data.reads), Reads.ALL).startswith(
        "Shown: all blind first reads, 1 drawn at random, 1 drawn by importance, 1 volunteered, 1 of which no drawing is known; each counts once. Not all"
    )
    alone = reads_words(assessed(study("selection | Magpie | dr_a\nvolunteered | + | +").reads))
    assert alone.endswith("No read was drawn with a known probability, so these numbers hold for these reads alone.")
    assert reads_words(assessed(study("Magpie\n+").reads)) == "Blind first reads: none."


def volunteered_study(rng, *, n_examples=60, by_importance=True):
    """A judge with a sensitivity of .8 on easy items and of .5 on hard ones, half of each: .65 in all.

    Hard items are drawn three times as often, and physicians volunteer reads where the judge is wrong.
    """
    example = np.repeat(np.arange(n_examples), 8)
    hard = rng.random(len(example)) < 0.5
    met = rng.random(len(example)) < 0.6
    right = rng.random(len(example)) < np.where(hard, 0.5, 0.8)
    judged = np.where(right, met, ~met).astype(np.float32)
    probability = np.where(hard, 0.45, 0.15) if by_importance else np.full(len(example), 0.3)
    drawn = rng.random(len(example)) < probability
    sought = ~drawn & ~right & (rng.random(len(example)) < 0.4)
    rows = np.flatnonzero(drawn | sought)
    items = pd.DataFrame({"example_id": example, "points": 1.0, "cluster": None})
    reads = pd.DataFrame(
        {
            "row": rows, "rater": "Dr. Noor", "met": met[rows].astype(float), "stage": "first", "blinded": True,
            "selection": np.where(drawn[rows], "importance", "volunteered"),
            "inclusion_probability": np.where(drawn[rows], probability[rows], np.nan),
        }
    )  # fmt: skip
    return RubricData(items, pd.DataFrame({"Magpie": judged}), reads)


def coverage(n_runs, seed, reads=None):
    """Shares of intervals of the sensitivity that hold .65, and of the balanced F1 that hold its true value."""
    # .6 met: precision .39/(.39+.14), recall .65; not met: precision .26/(.26+.21), recall .65
    true_f1 = (0.39 * 2 / (0.78 + 0.14 + 0.21) + 0.26 * 2 / (0.52 + 0.14 + 0.21)) / 2
    rng, hits = np.random.default_rng(seed), np.zeros(2)
    for _ in range(n_runs):
        rubric_data = volunteered_study(rng)
        rate = error_rates(rubric_data, by=[OVERALL], reads=reads).iloc[0]
        f1 = row_of(balanced_f1(rubric_data, reads=reads), "Magpie")
        hits += [
            rate["sensitivity_low"] <= 0.65 <= rate["sensitivity_high"], f1["low"] <= true_f1 <= f1["high"],
        ]  # fmt: skip
    return hits / n_runs


def test_volunteered_reads_and_draws_by_importance_leave_a_judge_its_rates():
    big = volunteered_study(np.random.default_rng(3), n_examples=2_000)
    drawn, every = (error_rates(big, by=[OVERALL], reads=which).iloc[0] for which in Reads)
    assert drawn["sensitivity_low"] < 0.65 < drawn["sensitivity_high"]
    assert every["sensitivity_high"] < 0.6


@pytest.mark.slow
def test_intervals_cover_with_draws_by_importance_and_volunteered_reads():
    assert coverage(400, 11) == pytest.approx([0.95, 0.95], abs=0.03)
    assert (coverage(100, 12, Reads.ALL) < 0.5).all()

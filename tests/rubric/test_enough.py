"""When physicians have read enough of a model for a corrected score, and what is said where they have not."""

from dataclasses import replace

import numpy as np
import pytest

from evalcore.rubric.corrected import MIN_READ, default_claim, estimator_inputs
from evalcore.study.schema import Claim, Physicians
from tests.population import corrected_scores, drawn

UNSAID = [f"{kind}{bound}" for kind in ("physicians_only", "corrected") for bound in ("", "_low", "_high", "_se")]


def study(seed=1, **how):
    """Sixty examples, half of the items read, unless said otherwise."""
    return drawn(np.random.default_rng(seed), **({"n_examples": 60, "share_read": 0.5} | how))


def one(rubric_data, **how):
    """The row of a study with one model."""
    (row,) = corrected_scores(rubric_data, **how).to_dict(orient="records")
    return row


def reads_of(rubric_data, rows):
    return replace(rubric_data, reads=rubric_data.reads.loc[rubric_data.reads["row"].isin(rows)].reset_index(drop=True))


def test_with_29_items_read_there_is_no_corrected_score_and_one_more_is_needed():
    rubric_data, _ = study(share_read=1.0)
    rng = np.random.default_rng(2)
    rows = rng.permutation(len(rubric_data.items))[:MIN_READ]
    row, fewer = one(reads_of(rubric_data, rows)), one(reads_of(rubric_data, rows[1:]))
    assert row["enough"]
    assert (row["n_needed"], row["needed"]) == (0, "")
    assert not fewer["enough"]
    assert (fewer["n_needed"], fewer["needed"]) == (1, "1 more criterion to be read")
    lacking = [fewer[name] for name in (*UNSAID, "worth", "worth_low", "worth_high")]
    assert np.isnan(lacking).all()
    assert not np.isnan(fewer["judge_only"])


def test_reads_must_come_from_ten_examples():
    rubric_data, _ = study(share_read=1.0)
    row = one(reads_of(rubric_data, np.flatnonzero(rubric_data.items["example_id"].le(8))))
    assert row["n_read"] > MIN_READ
    assert row["needed"] == "2 more criteria to be read, from 2 more examples"


def test_whole_responses_must_be_ten_more_than_what_is_fitted():
    # 11 responses are drawn, and at least the mean, the judge and the sign are fitted: 13 or more are needed.
    rubric_data, _ = study(share_read=1.0, whole_responses=True)
    row = one(reads_of(rubric_data, np.flatnonzero(rubric_data.items["example_id"].le(11))))
    assert row["n_units"] == 11
    assert not row["enough"]
    by_response = row["n_read"] / 11
    assert row["n_needed"] in {int(np.ceil(n * by_response)) for n in (2, 3)}


def test_physicians_in_general_need_three():
    rubric_data, _ = study()
    assert one(rubric_data)["enough"]
    row = one(rubric_data, physicians=Physicians.IN_GENERAL)
    assert (row["enough"], row["needed"]) == (False, "1 more criterion to be read, by 1 more physician")


def test_where_nothing_was_read_the_judge_alone_speaks():
    row = one(study(share_read=0.0)[0])
    assert (row["n_read"], row["enough"], row["n_needed"]) == (0, False, MIN_READ)
    assert (
        row["needed"]
        == "30 more criteria to be read, 2 of them desirable, 2 of them undesirable, from 10 more examples"
    )
    assert not np.isnan(row["judge_only"])


def unequally(rubric_data, loads):
    """The same reads by as many physicians as there are loads, in turn."""
    names = np.repeat([f"Dr. {letter}" for letter in "ABCDE"[: len(loads)]], loads)
    reads = rubric_data.reads
    return replace(rubric_data, reads=reads.assign(rater=names[np.arange(len(reads)) % len(names)]))


def test_five_physicians_of_whom_one_reads_nearly_everything_are_not_enough_for_physicians_in_general():
    # 1 / (.75^2 + 4 x .0625^2) = 1.73 (loads 12 : 1 : 1 : 1 : 1)
    rubric_data = unequally(study(n_examples=200)[0], [12, 1, 1, 1, 1])
    row = one(rubric_data, physicians=Physicians.IN_GENERAL)
    assert (row["n_readers"], row["n_effective_readers"]) == (5, pytest.approx(256 / 148, rel=0.01))
    assert (row["enough"], row["n_needed"]) == (False, 2)
    assert row["needed"].endswith("by those who have read less: so far 5 physicians say as much as 1.7 who read alike")
    assert one(rubric_data)["enough"]


def test_the_default_holds_for_physicians_in_general_from_three_effective_readers_on():
    three = list(estimator_inputs(unequally(study()[0], [1, 1, 1])))
    assert default_claim(three).physicians is Physicians.IN_GENERAL
    one_of_five = list(estimator_inputs(unequally(study()[0], [12, 1, 1, 1, 1])))
    for known in (one_of_five, one_of_five + three):
        told = default_claim(known)
        assert (told.claim, told.physicians) == (Claim.NEW_EXAMPLES, Physicians.THESE)
        assert told.why == "Fewer than 3 effective readers (1.7): the interval holds for these physicians only."
    too_little = list(estimator_inputs(study(share_read=0.01)[0]))
    assert default_claim(too_little + three).physicians is Physicians.IN_GENERAL
    assert default_claim(too_little).why == "Too little has been read for a corrected score."

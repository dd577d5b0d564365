"""The list of criteria that readers and adjudicators call at fault, which names nobody."""

from evalcore.reading.conflicts import FAULTS, faulted_criteria
from tests import tables


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

"""Which labels of a study are compared, and what is said of them."""

import numpy as np
import pytest

from evalcore.judges.agreement import agreement, finding, labels_of, pair_agreement
from evalcore.rubric.data import RubricData
from tests import population
from tests.ratings import found, long, ordered


@pytest.fixture
def read_study() -> RubricData:
    """One criterion in three is read by two of three physicians, who are right on 80 %."""
    return population.drawn(
        np.random.default_rng(4), n_examples=40, readers=("Dr. A", "Dr. B", "Dr. C"), n_readers=2, reader_accuracy=0.8, share_read=0.3,
        judges={"Magpie": 0.9, "Heron": 0.6},
    )[0]  # fmt: skip


def test_labels_are_the_blind_first_reads_that_nobody_chose(read_study):
    reads = read_study.reads
    assert len(labels_of(read_study)) == len(reads)
    changed = reads.copy()
    changed.loc[0, "blinded"] = False
    changed.loc[1, "stage"] = "revised"
    changed.loc[2, "selection"] = "volunteered"
    changed.loc[3, "met"] = np.nan
    labels = labels_of(RubricData(read_study.items, read_study.judged, changed))
    assert len(labels) == len(reads) - 3
    assert labels["value"].isna().sum() == 1
    met = dict(zip(zip(reads["row"], reads["rater"], strict=True), reads["met"], strict=True))
    told = labels.dropna(subset=["value"])
    assert all(
        {"met": 1, "not_met": 0}[value] == met[unit, rater]
        for unit, rater, value in told[["unit", "rater", "value"]].itertuples(index=False)
    )
    assert labels["theme"].tolist() == read_study.items["theme"].iloc[labels["unit"]].tolist()


def test_judges_count_as_raters_of_what_physicians_have_read(read_study):
    judged = read_study.judged.copy()
    rows = read_study.reads["row"].unique()
    judged.loc[rows[0], "Heron"] = np.nan
    labels = labels_of(RubricData(read_study.items, judged, read_study.reads), judges=["Heron", "Magpie"])
    assert list(labels["rater"].cat.categories) == ["Heron", "Magpie", "Dr. A", "Dr. B", "Dr. C"]
    assert labels["rater"].value_counts()[["Heron", "Magpie"]].tolist() == [len(rows) - 1, len(rows)]
    assert set(labels["unit"]) == set(rows)
    table = pair_agreement(labels)
    assert len(table.drop_duplicates(["rater_1", "rater_2"])) == 10
    pair = found(table.loc[table["rater_1"].eq("Magpie") & table["rater_2"].eq("Dr. B")])
    own = read_study.reads.loc[read_study.reads["rater"].eq("Dr. B")]
    assert pair["agreement"] == pytest.approx(float(np.mean(judged["Magpie"].to_numpy()[own["row"]] == own["met"])))


def test_a_physician_with_the_name_of_a_judge_stays_somebody_else(read_study):
    labels = labels_of(read_study, judges=["Magpie"])
    renamed = read_study.reads.assign(rater=read_study.reads["rater"].replace({"Dr. A": "Magpie"}))
    same = labels_of(RubricData(read_study.items, read_study.judged, renamed), judges=["Magpie"])
    assert "Magpie (physician)" in same["rater"].cat.categories
    assert agreement(same)["value"].tolist() == pytest.approx(agreement(labels)["value"].tolist())


def test_no_read_at_all_gives_no_value(read_study):
    labels = labels_of(RubricData(read_study.items, read_study.judged, read_study.reads.iloc[:0]))
    table = agreement(labels, by=["overall", "theme", "axis", "category", "cluster"])
    assert set(table["grouping"]) == {"overall"}
    assert finding(table) == ["No criterion has been read by two physicians yet."]
    assert pair_agreement(labels).empty


def test_the_finding_says_agreement_chance_for_whom_and_what_cannot_assess_leaves_open():
    said = finding(agreement(ordered(long(["YYYNNY??", "YYNNNYYN"]), ["N", "Y"])))
    assert said[0].startswith("Two physicians who label the same criterion agree 83 % [")
    assert said[0].endswith("of the time (6 criteria in 6 conversations, 2 physicians, 2.0 effective).")
    assert said[1].startswith("Beyond chance: Gwet's AC1 0.67 [")
    assert said[2] == "Intervals are for these physicians only: physicians in general take at least 3 effective raters."
    assert said[3] == (
        "Where two or more have read, 2 labels were cannot assess: whatever each of them had been, percent agreement over all reads is 62 % to 88 %."
    )


def test_the_finding_of_three_physicians_is_for_physicians_in_general_and_says_the_narrower_claim_beside_it():
    rows = ["YYNNYYNYNNYY", "YNNNYYNYNYYY", "YYNYYYNYNNNY"]
    said = finding(agreement(ordered(long(rows), ["N", "Y"])))
    assert said[2].startswith(
        "These intervals are for physicians in general. For these physicians alone: Percent agreement "
    )

"""What physicians here say of responses and cases, and what it changes: levels that count, changes of the gold, matrices by physicians."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.stats.intervals import share_interval
from evalcore.study.schema import Ask
from evalcore.triage.corrected import physicians_cells
from evalcore.triage.data import LEVELS, READ_COLUMNS, READ_HERE, Kind, TriageData, described
from evalcore.triage.predictions import joined, predictions, usual_judges
from evalcore.triage.rates import by_group
from evalcore.triage.reads import (
    VOTES,
    case_levels,
    drawn_votes,
    read_counts,
    response_levels,
    transitions,
    with_physicians_gold,
)
from tests.triage_cases import CONVERSATION, drawn

few = settings(max_examples=5, deadline=None)
seeds = st.integers(0, 10_000)


def read(triage_data: TriageData, *said: tuple, of_case: bool = False) -> TriageData:
    """With these reads alone, in the order in which they were given.

    Args:
        triage_data: Cases without reads.
        said: Response (row of samples; of a case its row), reader, label, and what is not usual of the read.
        of_case: They are gold audits.
    """
    rows = []
    for number, (place, rater, label, *more) in enumerate(said, start=1):
        row = {
            "row": place if of_case else int(triage_data.samples["row"][place]),
            "sample": -1 if of_case else place,
            "asked": (Ask.GOLD_ACUITY if of_case else Ask.RESPONSE_ACUITY).value,
            "rater": rater,
            "label": label,
            "stage": "first",
            "blinded": True,
            "selection": "random",
            "inclusion_probability": 0.5,
            "verdict_id": number,
        }
        rows.append(row | dict(*more))
    return replace(triage_data, reads=pd.DataFrame(rows, columns=list(READ_COLUMNS)))


@pytest.fixture(scope="module")
def study() -> TriageData:
    return described(drawn(np.random.default_rng(1), n_cases=12)[0])


CHOSEN = {"selection": "volunteered", "inclusion_probability": np.nan}
OPEN = CHOSEN | {"stage": "open", "blinded": False}
SETTLED = {"stage": "adjudicated", "blinded": False, "selection": "adjudication", "inclusion_probability": np.nan}


# ---------------------------------------------------------------- levels that count


@pytest.mark.parametrize(
    ("said", "level", "how", "why", "n_readers"),
    [
        ([("1", "D")], 4, "single", "", 1),
        ([("1", "C/D")], 3.5, "single", "", 1),
        ([("1", "D"), ("2", "D")], 4, "agreed", "", 2),
        ([("1", "C/D"), ("2", "D")], 4, "median", "", 2),  # the midpoint 3.75 is no level: the more severe
        ([("1", "C"), ("2", "D")], 3.5, "median", "", 2),
        ([("1", "A"), ("2", "A/B"), ("3", "B")], 1.5, "median", "", 3),
        ([("1", "B"), ("2", "D")], None, "unsettled", "unsettled", 2),
        ([("1", "A"), ("2", "B"), ("3", "C")], None, "unsettled", "unsettled", 3),
        ([("1", "A/B"), ("2", "C")], 3, "median", "", 2),  # B and C are one apart; the midpoint 2.25 is no level
        ([("1", "D"), ("2", "cannot_assess")], None, "unsettled", "unsettled", 2),
        ([("1", "remove"), ("2", "cannot_assess")], None, "unsettled", "unsettled", 2),
        ([("1", "remove"), ("2", "remove")], None, "agreed", "remove", 2),
        ([("1", "cannot_assess")], None, "single", "cannot_assess", 1),
        ([("1", "B"), ("2", "D"), ("3", "C", SETTLED)], 3, "adjudicated", "", 2),
        ([("1", "B"), ("3", "remove", SETTLED)], None, "adjudicated", "remove", 1),
        ([("3", "C", SETTLED), ("4", "D", SETTLED)], 4, "adjudicated", "", 0),  # the newest
        ([("1", "B"), ("1", "D", {"stage": "revised", "blinded": False}), ("2", "D")], 4, "agreed", "", 2),
        ([("1", "D", OPEN)], 4, "single", "", 1),
    ],
)  # fmt: skip
def test_the_level_that_counts_is_the_adjudicated_one_else_what_the_readers_say_together(
    study, said, level, how, why, n_readers
):
    found = response_levels(read(study, *((20, *words) for words in said)))
    assert found[["sample", "row", "n_readers", "how", "why"]].to_numpy().tolist() == [
        [20, study.samples["row"][20], n_readers, how, why]
    ]
    assert found["level"][0] == pytest.approx(np.nan if level is None else level, nan_ok=True)
    of_case = case_levels(read(study, *((3, *words) for words in said), of_case=True))
    assert of_case[["row", "how", "why"]].to_numpy().tolist() == [[3, how, why]]
    assert of_case["level"][0] == pytest.approx(found["level"][0], nan_ok=True)


@pytest.mark.parametrize(
    ("said", "level", "why"),
    [
        ([("1", "B"), ("1", "D", {"stage": "revised", "blinded": False})], 2, ""),
        ([("1", "B"), ("2", "D"), ("3", "C", SETTLED)], None, "unsettled"),
        ([("1", "B"), ("2", "D"), ("3", "C", SETTLED | {"blinded": True})], 3, ""),
        ([("1", "B"), ("2", "D"), ("3", "C", SETTLED | {"blinded": None})], 3, ""),  # as of a file that does not say
        ([("1", "D", {"blinded": False})], None, None),
        ([("1", "D", OPEN)], None, None),
    ],
)  # fmt: skip
def test_a_blind_level_is_of_first_reads_and_settlements_that_did_not_see_the_judge(study, said, level, why):
    of_response = response_levels(read(study, *((20, *words) for words in said)), blind=True)
    of_case = case_levels(read(study, *((3, *words) for words in said), of_case=True), blind=True)
    for found in (of_response, of_case):
        assert found["why"].tolist() == ([] if why is None else [why])
        assert found["level"].dropna().tolist() == ([] if level is None else [level])


def test_reads_of_cases_and_of_responses_stay_apart(study):
    both = read(study, (20, "1", "D"))
    gold = read(study, (int(study.samples["row"][20]), "1", "A"), of_case=True)
    both = replace(both, reads=pd.concat([both.reads, gold.reads], ignore_index=True))
    assert response_levels(both)["level"].tolist() == [4]
    assert case_levels(both)["level"].tolist() == [1]


@given(seeds, st.randoms(use_true_random=False))
@few
def test_the_order_of_rows_changes_nothing(seed, chance):
    triage_data = described(drawn(np.random.default_rng(seed), n_cases=15, share_read=0.8)[0])
    order = list(range(len(triage_data.reads)))
    chance.shuffle(order)
    mixed = replace(triage_data, reads=triage_data.reads.iloc[order].reset_index(drop=True))
    for made in (response_levels, case_levels, drawn_votes, transitions, physicians_cells, read_counts):
        pd.testing.assert_frame_equal(made(triage_data), made(mixed))


def test_no_read_gives_no_row(study):
    none = read(study)
    for made in (response_levels, case_levels, drawn_votes, transitions, physicians_cells, read_counts):
        assert made(none).empty
    pd.testing.assert_frame_equal(with_physicians_gold(none).cases, study.cases, check_categorical=False)


# ---------------------------------------------------------------- changes of the gold


def of_kind(triage_data: TriageData, kind: Kind) -> int:
    return int(np.flatnonzero(triage_data.cases["kind"].eq(kind))[0])


@pytest.fixture(scope="module")
def mixed() -> TriageData:
    triage_data = drawn(np.random.default_rng(4), n_cases=60)[0]
    direct = triage_data.cases.index[triage_data.cases["file_gold"].notna()]
    triage_data.cases.loc[direct[0], "file_gold"] = np.nan  # a case without any gold
    return described(triage_data)


@pytest.mark.parametrize("old", list(Kind))
@pytest.mark.parametrize(
    ("label", "gold", "kind"), [("B", 2, Kind.CLEAR), ("B/C", 2.5, Kind.BOUNDARY), ("remove", np.nan, Kind.UNLABELLED)]
)
def test_what_physicians_here_settle_takes_the_place_of_the_gold(mixed, old, label, gold, kind):
    row = of_kind(mixed, old)
    before = mixed.cases["gold"][row]
    found = with_physicians_gold(read(mixed, (row, "1", label), of_case=True)).cases
    assert found["gold"][row] == pytest.approx(gold, nan_ok=True)
    assert found["kind"][row] == kind
    same = before == gold or (np.isnan(before) and np.isnan(gold))
    assert found["strength"][row] == (mixed.cases["strength"][row] if same else READ_HERE)
    others = found.drop(index=row)
    pd.testing.assert_frame_equal(others, mixed.cases.drop(index=row), check_categorical=False)
    assert mixed.cases["gold"][row] == pytest.approx(before, nan_ok=True)  # nothing was written over


@pytest.mark.parametrize("said", [[("1", "A"), ("2", "D")], [("1", "cannot_assess")], [("1", "remove"), ("2", "A")]])
def test_what_is_not_settled_leaves_the_gold(mixed, said):
    row = of_kind(mixed, Kind.CLEAR)
    audited = read(mixed, *((row, *words) for words in said), of_case=True)
    pd.testing.assert_frame_equal(with_physicians_gold(audited).cases, mixed.cases, check_categorical=False)
    found = transitions(audited)
    assert found["changed"].tolist() == [False]
    assert found["why"].tolist() != [""]
    assert found["new_gold"].isna().all()


def test_transitions_say_which_cases_went_where(mixed):
    clear = np.flatnonzero(mixed.cases["gold"].eq(3))[:3].tolist()
    unsure = of_kind(mixed, Kind.AMBIGUOUS)
    said = [(clear[0], "1", "D"), (clear[1], "2", "D"), (clear[2], "1", "C"), (unsure, "1", "A/B")]
    found = transitions(read(mixed, *said, of_case=True))
    told = found[["old_kind", "old_gold", "new_kind", "new_gold", "changed", "n"]].to_numpy().tolist()
    assert told[:2] == [[Kind.CLEAR, 3, Kind.CLEAR, 3, False, 1], [Kind.CLEAR, 3, Kind.CLEAR, 4, True, 2]]
    assert told[2][0] == Kind.AMBIGUOUS
    assert np.isnan(told[2][1])
    assert told[2][2:] == [Kind.BOUNDARY, 1.5, True, 1]


@given(seeds)
@few
def test_every_audited_case_is_in_one_transition_and_the_changed_ones_are_those_whose_gold_is_another(seed):
    triage_data = described(drawn(np.random.default_rng(seed), n_cases=30, share_read=0.6)[0])
    found, after = transitions(triage_data), with_physicians_gold(triage_data).cases
    audited = triage_data.reads.loc[triage_data.reads["sample"].lt(0), "row"]
    assert found["n"].sum() == audited.nunique()
    differs = (after["gold"] != triage_data.cases["gold"]) & ~(after["gold"].isna() & triage_data.cases["gold"].isna())
    assert found.loc[found["changed"], "n"].sum() == differs.sum()


def test_changed_golds_are_a_group_of_their_own_by_strength(mixed):
    row = of_kind(mixed, Kind.AMBIGUOUS)
    here = with_physicians_gold(read(mixed, (row, "1", "B"), of_case=True))
    found = by_group(
        here, joined(here, predictions(here, usual_judges(here)), ("gold", "kind", "strength")), "strength"
    )
    assert READ_HERE in set(found["group"].astype(str))


# ---------------------------------------------------------------- matrices by physicians


def test_votes_of_a_response_are_the_mean_of_its_blind_drawn_reads(study):
    said = [
        (20, "1", "C/D"),
        (20, "2", "D"),
        (20, "3", "A", CHOSEN),
        (20, "4", "A", OPEN),
        (20, "5", "cannot_assess"),
        (20, "1", "A", {"stage": "revised"}),
        (21, "1", "B", {"inclusion_probability": np.nan}),
        (22, "1", "remove"),
    ]
    found = drawn_votes(read(study, *said))
    assert found["sample"].tolist() == [20]
    assert found[list(VOTES)].to_numpy()[0] == pytest.approx([0, 0, 0.25, 0.75])
    assert found["n_readers"].tolist() == [2]
    in_view = read(study, *said, (20, "9", "B", SETTLED))  # settled with the judge in view: no physician's own word
    pd.testing.assert_frame_equal(drawn_votes(in_view), found)
    settled = read(study, *said, (20, "9", "B", SETTLED | {"blinded": True}))
    assert drawn_votes(settled)[list(VOTES)].to_numpy()[0] == pytest.approx([0, 1, 0, 0])
    assert drawn_votes(settled, settled=False)[list(VOTES)].to_numpy()[0] == pytest.approx([0, 0, 0.25, 0.75])


def responses_of(triage_data: TriageData, gold: float, n: int) -> list[int]:
    """So many responses of conversations by Alder-2 to clear cases of one level, two of a case."""
    rows = np.flatnonzero(triage_data.cases["kind"].eq(Kind.CLEAR) & triage_data.cases["gold"].eq(gold))
    samples = triage_data.samples
    mine = samples["model"].eq("Alder-2") & samples["format"].eq(CONVERSATION) & samples["sample_index"].lt(2)
    return [place for place in np.flatnonzero(mine) if samples["row"][place] in rows][:n]


def test_a_cell_counts_responses_drawn_and_the_chosen_ones_apart(mixed):
    emergencies = responses_of(mixed, 4, 4)
    said = [
        (emergencies[0], "1", "D"),
        (emergencies[1], "1", "C/D"),
        (emergencies[2], "1", "D"),
        (emergencies[3], "1", "A", CHOSEN),
    ]
    found = physicians_cells(read(mixed, *said))
    assert len(found) == 16
    assert set(found["model"].astype(str)) == {"Alder-2"}
    row = found.loc[found["gold"].eq(4)].set_index("predicted")
    assert row["n"].tolist() == [0, 0, 0.5, 2.5]
    assert row["n_gold"].tolist() == [3] * 4
    assert row["n_volunteered"].tolist() == [1, 0, 0, 0]
    assert found.loc[found["gold"].ne(4), "share"].isna().all()
    counts = read_counts(read(mixed, *said)).iloc[0]
    assert counts["n_read"] == 4
    assert (counts["n_volunteered"], counts["n_clear"]) == (1, 3)


def test_the_interval_of_a_cell_is_wilsons_clustered_by_case(mixed):
    emergencies = responses_of(mixed, 4, 8)
    labels = ["D", "D", "C", "C", "D", "D", "D", "D"]
    found = physicians_cells(
        read(mixed, *((place, "1", label) for place, label in zip(emergencies, labels, strict=True)))
    )
    cell = found.loc[found["gold"].eq(4) & found["predicted"].eq(3)].iloc[0]
    wanted = share_interval([label == "C" for label in labels], mixed.samples["row"][emergencies].to_numpy())
    assert (cell["n"], cell["n_gold"]) == (2, 8)
    assert (cell["share"], cell["low"], cell["high"]) == pytest.approx((wanted.share, wanted.low, wanted.high))


@given(seeds)
@few
def test_physicians_cells_of_a_row_add_up_and_hold_what_was_read(seed):
    triage_data = described(drawn(np.random.default_rng(seed), n_cases=30, share_read=0.5)[0])
    found = physicians_cells(triage_data)
    rows = found.groupby(["model", "format", "gold"], observed=True)
    assert rows["share"].sum(min_count=1).dropna().to_numpy() == pytest.approx(1)
    assert rows["n"].sum().to_numpy() == pytest.approx(rows["n_gold"].first().to_numpy())
    kind = triage_data.cases["kind"]
    texts = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    levels = [LEVELS[label] for label in texts["label"]]
    counted = [kind[row] == Kind.CLEAR and not np.isnan(level) for row, level in zip(texts["row"], levels, strict=True)]
    assert found["n"].sum() == sum(counted)
    assert read_counts(triage_data)["n_clear"].sum() == sum(counted)

"""Several judges of one answer's level as one: the most frequent letter, and that what is no level does not vote."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.calibration.confidence import level_vote_items
from evalcore.study.schema import PARSER
from evalcore.triage.data import NO_LEVEL, TriageData, described
from evalcore.triage.predictions import JURY, members, predictions, usual_judges, votes, with_jury
from tests.triage_cases import CONVERSATION, QA, drawn

said = st.sampled_from([np.nan, NO_LEVEL, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0])
tables = st.integers(1, 4).flatmap(
    lambda n: st.lists(st.lists(said, min_size=n, max_size=n), max_size=8).map(lambda rows: (rows, n))
)


def table(rows: list[list[float]], n: int) -> pd.DataFrame:
    return pd.DataFrame(np.array(rows, dtype=np.float32).reshape(-1, n), columns=[f"judge {k}" for k in range(n)])


@given(tables)
def test_most_votes_count_and_of_equals_the_more_severe(drawn_table):
    rows, n = drawn_table
    found = votes(table(rows, n))
    for row, line in zip(found.itertuples(), rows, strict=True):
        given = [level for level in line if level > NO_LEVEL]
        letters = [letter for level in given for letter in (np.floor(level), np.ceil(level))]
        assert row.n_votes == len(given)
        if given:
            assert row.level == max((1, 2, 3, 4), key=lambda letter: (letters.count(letter), letter))
            assert row.share == pytest.approx(letters.count(row.level) / len(letters))
        else:
            assert np.isnan(row.share)
            assert np.isnan(row.level) if np.isnan(line).all() else row.level == NO_LEVEL


@given(tables, st.randoms(use_true_random=False))
def test_neither_the_order_of_judges_nor_one_that_abstains_changes_anything(drawn_table, chance):
    rows, n = drawn_table
    made = table(rows, n)
    order = list(made.columns)
    chance.shuffle(order)
    looked = made.notna().any(axis=1)
    silent = pd.Series(np.where(looked, NO_LEVEL, np.nan), dtype=np.float32)
    pd.testing.assert_frame_equal(votes(made[order].assign(silent=silent)), votes(made))


def test_a_majority_is_offered_where_two_judges_read_a_format_and_the_parser_is_none():
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=20, judges={"Magpie": 0.9, "Wren": 0.7})
    assert (set(members(triage_data.judges(CONVERSATION))), members(triage_data.judges(QA))) == ({"Magpie", "Wren"}, [])
    found = with_jury(triage_data)
    of_conversation = triage_data.samples["format"].eq(CONVERSATION)
    assert found.levels.loc[~of_conversation, JURY].isna().all()
    wanted = votes(triage_data.levels.loc[of_conversation, ["Magpie", "Wren"]])["level"].to_numpy()
    assert found.levels.loc[of_conversation, JURY].to_numpy() == pytest.approx(wanted, nan_ok=True)
    assert usual_judges(found) == usual_judges(triage_data)  # chosen, never usual
    one = replace(triage_data, levels=triage_data.levels[[PARSER, "Magpie"]])
    assert with_jury(one) is one


def with_bench(**looked: list[float]) -> TriageData:
    """Four conversations that these judges have read, and Bench, a jury of the study."""
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=4, models=["Alder-2"], n_samples=1, share_read=0)
    levels = pd.DataFrame(np.nan, index=triage_data.levels.index, columns=[PARSER, *looked], dtype=np.float32)
    qa = triage_data.samples["format"].eq(QA)
    levels.loc[qa, PARSER] = triage_data.levels.loc[qa, PARSER]
    for name, said_of in looked.items():
        levels.loc[~qa, name] = np.array(said_of, dtype=np.float32)
    return replace(triage_data, levels=levels, juries=frozenset({"Bench"}))


def test_a_jury_of_the_study_is_not_usual_while_a_judge_that_reads_itself_has_looked():
    found = with_bench(Bench=[4, 3, 2, 1], Magpie=[4, np.nan, np.nan, np.nan], Wren=[np.nan, 3, 2, np.nan])
    assert found.judges(CONVERSATION) == ["Bench", "Wren", "Magpie"]
    assert usual_judges(found) == {QA: PARSER, CONVERSATION: "Wren"}


def test_a_jury_of_the_study_is_usual_where_it_alone_has_looked():
    found = with_bench(Bench=[4, 3, 2, 1])
    assert usual_judges(found) == {QA: PARSER, CONVERSATION: "Bench"}
    assert predictions(found, {CONVERSATION: "Bench"})["predicted"].tolist() == [4, 3, 2, 1]
    assert with_jury(found) is found


def test_what_most_judges_say_has_no_vote_beside_them():
    triage_data, _ = drawn(
        np.random.default_rng(1), n_cases=20, judges={"Magpie": 0.9, "Wren": 0.7, "Rook": 0.8}, share_read=0.5
    )
    triage_data = described(triage_data)
    found = with_jury(triage_data)
    assert found.juries == {JURY}
    assert JURY in found.judges(CONVERSATION)
    assert set(found.voters(CONVERSATION)) == {"Magpie", "Wren", "Rook"}
    pd.testing.assert_frame_equal(with_jury(found).levels, found.levels)
    assert len(level_vote_items(triage_data))
    pd.testing.assert_frame_equal(level_vote_items(found), level_vote_items(triage_data))

"""How far two readers of levels say the same: what has no level is counted apart, and never a level."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.stats.intervals import share_interval
from evalcore.study.schema import RULES, Acuity, Ask, Label, Stage
from evalcore.triage.data import LEVELS, NO_LEVEL, READ_COLUMNS, TriageData
from evalcore.triage.rates import clustered_summary
from evalcore.triage.reads import NO_PAIR, ONE_LEVEL, PHYSICIANS, agreement, level_pairs, pair_cells
from tests.triage_cases import CONVERSATION, QA, drawn

NAN = np.nan
MAGPIE = "Magpie"
NAMES = {value: label for label, value in LEVELS.items() if not np.isnan(value)}
LEVEL = st.sampled_from([NAN, NO_LEVEL, 1.0, 2.0, 3.0, 4.0, 1.5, 3.5])


def between(*who, **more):
    return pair_cells(level_pairs(*who, **more))


def agreement_between(*who, **more):
    return agreement(level_pairs(*who, **more))


def against_physicians(triage_data, judge, asked=CONVERSATION):
    return pair_cells(level_pairs(triage_data, PHYSICIANS, judge, asked=asked))


def agreement_with_physicians(triage_data, judge, asked=CONVERSATION):
    return agreement(level_pairs(triage_data, PHYSICIANS, judge, asked=asked))


def world(one, other, *, cases=None, asked=CONVERSATION, physicians=None) -> TriageData:
    """Responses with the level that each of two judges gives, the case of each, and one blind read of some."""
    n = len(one)
    cases = list(range(n)) if cases is None else cases
    empty, _ = drawn(np.random.default_rng(1), n_cases=1, n_samples=1)
    samples = pd.DataFrame(
        {
            "response_id": np.arange(1, n + 1),
            "row": np.array(cases, dtype=np.int64),
            "model": pd.Categorical(["Alder-2"] * n),
            "format": pd.Categorical([asked] * n, categories=[QA, CONVERSATION]),
            "sample_index": np.zeros(n, dtype=np.int32),
            "has_text": True,
        }
    )
    labels = physicians or []
    read = [place for place, label in enumerate(labels) if label is not None]
    reads = pd.DataFrame(
        {
            "row": [cases[place] for place in read],
            "sample": read,
            "asked": Ask.RESPONSE_ACUITY.value,
            "rater": "Dr. Noor",
            "label": [str(labels[place]) for place in read],
            "stage": Stage.FIRST.value,
            "blinded": True,
            "selection": "random",
            "inclusion_probability": 0.5,
            "verdict_id": np.arange(1, len(read) + 1),
        },
        columns=list(READ_COLUMNS),
    )
    levels = pd.DataFrame({MAGPIE: one, RULES: other}, dtype=np.float32)
    return replace(empty, samples=samples, levels=levels, reads=reads)


def counts(cells: pd.DataFrame) -> dict[tuple[float, float], int]:
    some = cells.loc[cells["n"] > 0]
    return dict(zip(zip(some["one"], some["other"], strict=True), some["n"], strict=True))


def pairs_of(matrix) -> tuple[list[float], list[float]]:
    cells = [(g + 1.0, p + 1.0) for g, row in enumerate(matrix) for p, n in enumerate(row) for _ in range(n)]
    return [g for g, _ in cells], [p for _, p in cells]


def test_every_response_that_both_looked_at_is_in_one_cell():
    triage_data = world([1, 2, 4, 0, 0, NAN, 3, 3.5], [1, 3, 0, 4, 0, 2, NAN, 4])
    cells = between(triage_data, MAGPIE, RULES, asked=CONVERSATION)
    assert counts(cells) == {(1, 1): 1, (2, 3): 1, (4, 0): 1, (0, 4): 1, (0, 0): 1, (3.5, 4): 1}
    assert len(cells) == 6 * 6  # no level, A to D, and the one boundary that occurs
    assert cells.loc[cells["one"].eq(NO_LEVEL), "n_one"].unique().tolist() == [2]
    found = agreement_between(triage_data, MAGPIE, RULES, asked=CONVERSATION)
    assert (found.n, found.n_one_none, found.n_other_none) == (6, 2, 2)
    assert (found.exact.n_hits, found.exact.n) == (1, 2)  # A and A; B and C


def test_without_a_boundary_there_are_five_by_five_cells():
    assert len(between(world([1], [NAN]), MAGPIE, RULES, asked=CONVERSATION)) == 25


def test_only_responses_of_the_format_count():
    triage_data = world([1, 2], [1, 2], asked=QA)
    assert between(triage_data, MAGPIE, RULES, asked=CONVERSATION)["n"].sum() == 0
    assert between(triage_data, MAGPIE, RULES, asked=QA)["n"].sum() == 2


@pytest.mark.parametrize(
    ("matrix", "kappa"),
    [
        ([[48, 15, 13, 1], [11, 57, 41, 1], [0, 5, 64, 9], [0, 0, 27, 235]], 0.860415),  # GPT-5.4, qa (AcuityBench)
        ([[67, 6, 4, 0], [34, 69, 7, 0], [8, 9, 59, 2], [7, 1, 38, 216]], 0.854105),  # and conversation
    ],
)
def test_the_quadratic_kappa_is_that_of_the_published_tables(matrix, kappa):
    found = agreement_between(world(*pairs_of(matrix)), MAGPIE, RULES, asked=CONVERSATION)
    assert found.kappa == pytest.approx(kappa, abs=1e-6)
    assert found.exact.n_hits == sum(matrix[level][level] for level in range(4))


def test_the_interval_is_clustered_by_case():
    one, other = [1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 3, 3, 3, 3]
    cases = [0, 0, 0, 0, 1, 1, 1, 1]
    found = agreement_between(world(one, other, cases=cases), MAGPIE, RULES, asked=CONVERSATION).exact
    expected = share_interval([True] * 4 + [False] * 4, cases)
    assert (found.low, found.high) == (expected.low, expected.high)
    alone = agreement_between(world(one, other), MAGPIE, RULES, asked=CONVERSATION).exact
    assert found.low < alone.low
    assert found.high > alone.high


@pytest.mark.parametrize(
    ("one", "other", "reason"), [([0, NAN], [4, 1], NO_PAIR), ([], [], NO_PAIR), ([2, 2], [2, 2], ONE_LEVEL)]
)
def test_a_kappa_that_is_undefined_is_nan_with_its_reason(one, other, reason):
    found = agreement_between(world(one, other), MAGPIE, RULES, asked=CONVERSATION)
    assert np.isnan(found.kappa)
    assert found.reason == reason
    assert np.isnan(found.exact.share) == (reason == NO_PAIR)


def test_the_interval_of_kappa_is_that_of_its_cases_and_no_narrower_where_each_comes_twice():
    rng = np.random.default_rng(5)
    one = rng.integers(1, 5, size=40).astype(float)
    other = np.where(rng.random(40) < 0.7, one, rng.integers(1, 5, size=40)).astype(float)
    found = agreement_between(world(one, other), MAGPIE, RULES, asked=CONVERSATION)
    cells = np.zeros((40, 4, 4))
    cells[np.arange(40), one.astype(int) - 1, other.astype(int) - 1] = 1
    names = pd.DataFrame({"model": ["x"]})
    by_case = clustered_summary(names, np.zeros(40, dtype=np.int64), np.arange(40), cells).iloc[0]
    assert found.kappa == pytest.approx(by_case["kappa_quadratic"])
    assert (found.kappa_low, found.kappa_high) == pytest.approx(
        (by_case["kappa_quadratic_low"], by_case["kappa_quadratic_high"])
    )
    assert -1 < found.kappa_low < found.kappa < found.kappa_high < 1
    twice = agreement_between(
        world(np.tile(one, 2), np.tile(other, 2), cases=[*range(40), *range(40)]), MAGPIE, RULES, asked=CONVERSATION
    )
    assert (twice.kappa_low, twice.kappa_high) == pytest.approx((found.kappa_low, found.kappa_high))


def test_a_kappa_of_few_cases_has_no_interval_and_says_why():
    found = agreement_between(world([1, 2, 3, 4], [1, 2, 3, 3]), MAGPIE, RULES, asked=CONVERSATION)
    assert np.isfinite(found.kappa)
    assert np.isnan([found.kappa_low, found.kappa_high]).all()
    assert found.reason == "fewer than 5 cases"


def test_a_judge_that_has_read_nothing_agrees_with_nobody():
    found = agreement_between(world([1], [1]), MAGPIE, "nobody", asked=CONVERSATION)
    assert (found.n, found.exact.n) == (0, 0)


def test_against_physicians_their_levels_are_the_rows():
    labels = [Acuity.D, Acuity.C, Label.CANNOT_ASSESS, Acuity.REMOVE, None, Acuity.C_D]
    triage_data = world([NAN] * 6, [4, 4, 1, 1, 1, 3], physicians=labels)
    assert counts(against_physicians(triage_data, RULES)) == {(4, 4): 1, (3, 4): 1, (0, 1): 1, (3.5, 3): 1}
    found = agreement_with_physicians(triage_data, RULES)
    assert (found.exact.n_hits, found.exact.n, found.n_one_none) == (1, 2, 1)
    assert against_physicians(triage_data, RULES, asked=QA)["n"].sum() == 0
    assert against_physicians(triage_data, MAGPIE)["n"].sum() == 0


def test_a_read_that_was_revised_once_the_judge_was_shown_is_no_agreement_with_it():
    """A judge that says D throughout; physicians said D on 16 of 22 blind, and 4 of the others went over to it once it was shown: .73, not .91."""
    blind = [Acuity.D] * 16 + [Acuity.C] * 6
    triage_data = world([NAN] * 22, [4] * 22, physicians=blind)
    after = triage_data.reads.iloc[16:20].assign(
        label=Acuity.D.value, stage=Stage.REVISED.value, blinded=False, verdict_id=[101, 102, 103, 104]
    )
    settled = triage_data.reads.iloc[20:21].assign(
        label=Acuity.D.value, stage=Stage.ADJUDICATED.value, blinded=False, verdict_id=201
    )
    triage_data = replace(triage_data, reads=pd.concat([triage_data.reads, after, settled], ignore_index=True))
    found = agreement_with_physicians(triage_data, RULES).exact
    assert (found.n_hits, found.n) == (16, 22)
    assert counts(against_physicians(triage_data, RULES)) == {(4, 4): 16, (3, 4): 6}


def test_drawn_cases_agree_as_often_as_the_judge_is_right():
    triage_data, truth = drawn(np.random.default_rng(3), n_cases=60, judges={MAGPIE: 0.9, RULES: 0.6})
    found = agreement_between(triage_data, MAGPIE, RULES, asked=CONVERSATION)
    of_format = triage_data.levels.loc[triage_data.samples["format"].eq(CONVERSATION), [MAGPIE, RULES]]
    told = of_format.loc[of_format.gt(0).all(axis=1)]
    assert found.exact.n == len(told)
    assert found.exact.n_hits == int((told[MAGPIE] == told[RULES]).sum())
    assert len(truth) == len(triage_data.samples)


@given(st.lists(st.tuples(LEVEL, LEVEL, st.integers(0, 4)), max_size=30), st.randoms())
def test_the_order_of_responses_does_not_matter_and_no_response_is_lost(rows, random):
    shuffled = random.sample(rows, len(rows))
    found = [
        (
            between(triage_data, MAGPIE, RULES, asked=CONVERSATION),
            agreement_between(triage_data, MAGPIE, RULES, asked=CONVERSATION),
        )
        for triage_data in (
            world([r[0] for r in part], [r[1] for r in part], cases=[r[2] for r in part]) for part in (rows, shuffled)
        )
    ]
    (cells, agreed), (other_cells, other_agreed) = found
    pd.testing.assert_frame_equal(cells, other_cells)
    assert repr(agreed) == repr(other_agreed)
    both = [row for row in rows if not np.isnan(row[0]) and not np.isnan(row[1])]
    assert cells["n"].sum() == agreed.n == len(both)
    letters = [row for row in both if all(level in (1.0, 2.0, 3.0, 4.0) for level in row[:2])]
    assert agreed.exact.n == len(letters)
    assert (agreed.n_one_none, agreed.n_other_none) == tuple(
        sum(row[side] == NO_LEVEL for row in both) for side in (0, 1)
    )
    swapped = agreement_between(
        world([r[1] for r in rows], [r[0] for r in rows], cases=[r[2] for r in rows]), MAGPIE, RULES, asked=CONVERSATION
    )
    assert swapped.exact == agreed.exact or np.isnan(agreed.exact.share)
    assert swapped.kappa == pytest.approx(agreed.kappa, nan_ok=True)

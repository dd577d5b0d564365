"""Triage corrected by physicians: by hand, and what must not change it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.rubric.corrected import MIN_EXAMPLES_READ, MIN_READ
from evalcore.stats.intervals import share_interval
from evalcore.study.schema import Ask, Claim, Physicians, Selection, Stage
from evalcore.triage.corrected import (
    ALL_COLUMNS,
    MEASURES,
    Held,
    corrected_cells,
    corrected_harm,
    corrected_rates,
    on_simplex,
)
from evalcore.triage.data import READ_COLUMNS, Kind, TriageData, described
from evalcore.triage.harm import Weights
from evalcore.triage.predictions import predictions
from evalcore.triage.rates import Measure
from tests.triage_cases import CONVERSATION, WORDS, drawn, put_right

JUDGE = "Magpie"
BY = {CONVERSATION: JUDGE}
few = settings(max_examples=4, deadline=None)
seeds = st.integers(0, 10_000)


def world(
    seed: int, *, n_cases: int = 80, accuracy: float = 0.8, n_samples: int = 2, **more
) -> tuple[TriageData, np.ndarray]:
    """One model's conversations about cases that all have a gold, and the true level of each response; nobody has read any."""
    leans = {"Alder-2": {CONVERSATION: -0.3}}
    how = {"n_samples": n_samples, "judges": {JUDGE: accuracy}, "share_panel": 0, "share_read": 0, "noise": 0.6} | more
    triage_data, truth = drawn(np.random.default_rng(seed), n_cases=n_cases, models=leans, **how)
    return described(triage_data), truth.to_numpy()


def read(triage_data: TriageData, truth: np.ndarray, rows: np.ndarray, probability: float = 1.0, **more) -> TriageData:
    """With these responses read by one physician, who is always right."""
    table = pd.DataFrame(
        {
            "row": triage_data.samples["row"].to_numpy()[rows],
            "sample": rows,
            "asked": Ask.RESPONSE_ACUITY.value,
            "rater": "Dr. Noor",
            "label": [WORDS[float(level)].value for level in truth[rows]],
            "stage": Stage.FIRST.value,
            "blinded": True,
            "selection": Selection.RANDOM.value,
            "inclusion_probability": probability,
            "verdict_id": np.arange(len(rows)),
        }
    ).assign(**more)
    return replace(triage_data, reads=table[list(READ_COLUMNS)])


def texts(triage_data: TriageData) -> np.ndarray:
    """Responses of conversations that can be read."""
    return np.flatnonzero(triage_data.samples["format"].eq(CONVERSATION) & triage_data.samples["has_text"])


def looked_at(triage_data: TriageData) -> np.ndarray:
    """Those of them in which the judge found a level."""
    rows = texts(triage_data)
    return rows[triage_data.levels[JUDGE].to_numpy()[rows] > 0]


# ---------------------------------------------------------------- by hand


def by_hand(triage_data: TriageData, gold: int) -> tuple[np.ndarray, np.ndarray]:
    """Judge-only and corrected shares of one row, one response at a time."""
    samples, level = triage_data.samples, triage_data.levels[JUDGE].to_numpy()
    mine = [i for i in range(len(samples)) if samples["format"][i] == CONVERSATION and level[i] > 0]
    golds = triage_data.cases["gold"].to_numpy()
    said = {read["sample"]: read for read in triage_data.reads.to_dict(orient="records")}
    voted = {i: np.eye(4)[list("ABCD").index(said[i]["label"])] for i in mine if i in said}
    means = {}
    for j in (1, 2, 3, 4):
        reads = [(voted[i], 1 / said[i]["inclusion_probability"]) for i in voted if level[i] == j]
        mean = sum(v * w for v, w in reads) / sum(w for _, w in reads) if reads else np.eye(4)[j - 1]
        trust = min(len(reads) / 10, 1)
        means[j] = trust * mean + (1 - trust) * np.eye(4)[j - 1]
    row = [i for i in mine if golds[samples["row"][i]] == gold]
    cases = [samples["row"][i] for i in row]
    a = {i: 1 / cases.count(samples["row"][i]) / len(set(cases)) for i in row}
    judge = sum(a[i] * np.eye(4)[int(level[i]) - 1] for i in row)
    model = sum(a[i] * means[int(level[i])] for i in row)
    w = {i: a[i] / said[i]["inclusion_probability"] for i in row if i in voted}
    left = sum(w[i] * (voted[i] - means[int(level[i])]) for i in w) / sum(w.values())
    return judge, model + left


def test_shares_are_those_of_the_formulas():
    triage_data, truth = world(1, n_cases=140)
    rng = np.random.default_rng(2)
    pi = rng.uniform(0.3, 0.9, len(truth))
    rows = texts(triage_data)
    rows = rows[rng.random(len(rows)) < pi[rows]]
    found = put_right(corrected_cells, read(triage_data, truth, rows, inclusion_probability=pi[rows]), BY)
    assert len(found) == 16
    assert found["enough"].all()
    for gold in (1, 2, 3, 4):
        row = found.loc[found["gold"].eq(gold)]
        judge, corrected = by_hand(read(triage_data, truth, rows, inclusion_probability=pi[rows]), gold)
        assert row["judge_only"].to_numpy() == pytest.approx(judge)
        assert row["corrected"].to_numpy() == pytest.approx(corrected)
        assert row["n"].to_numpy() == pytest.approx(row["share"].to_numpy() * row["n_gold"].iloc[0])


def test_where_the_judge_is_asked_alone_a_case_counts_once_with_wilsons_interval():
    triage_data, _ = world(3, n_cases=60, n_samples=1, invalid=0)
    found = put_right(corrected_cells, triage_data, BY).set_index(["gold", "predicted"])
    counted = predictions(triage_data, BY).assign(gold=triage_data.cases["gold"])
    of_d = counted.loc[counted["gold"].eq(4), "predicted"]
    wanted = share_interval((of_d == 3).to_numpy(), np.arange(len(of_d)))
    cell = found.loc[(4.0, 3.0)]
    got = cell["judge_only"], cell["judge_only_low"], cell["judge_only_high"]
    assert [float(number) for number in got] == pytest.approx([wanted.share, wanted.low, wanted.high])
    assert not found["enough"].any()
    assert found[["share", "low", "high", "physicians_only", "corrected"]].isna().all(axis=None)


def test_what_lacks_is_said():
    triage_data, truth = world(4)
    emergencies = triage_data.cases["gold"].to_numpy()[triage_data.samples["row"].to_numpy()] == 4
    rows = looked_at(triage_data)
    chosen = np.concatenate([rows[emergencies[rows]][:7], rows[~emergencies[rows]][:15]])
    found = put_right(corrected_rates, read(triage_data, truth, chosen), BY).set_index("measure")
    assert found.loc[Measure.EXACT, "n_needed"] == MIN_READ - 22
    assert found.loc[Measure.EXACT, "needed"] == "8 more responses to be read"
    assert found.loc[Measure.MISSED_EMERGENCIES, ["n_read", "n_cases_read", "n_needed"]].tolist() == [7, 7, 8]
    assert (
        found.loc[Measure.MISSED_EMERGENCIES, "needed"]
        == "8 more responses to be read, 3 of them to as many other cases with the gold D"
    )
    few_cases = np.concatenate([rows[emergencies[rows]][: MIN_EXAMPLES_READ - 1], rows[~emergencies[rows]]])
    row = (
        put_right(corrected_cells, read(triage_data, truth, few_cases), BY)
        .set_index(["gold", "predicted"])
        .loc[(4.0, 4.0)]
    )
    assert row["needed"] == "1 more response to be read, 1 of them to another case with the gold D"


@pytest.mark.parametrize(
    "more", [{"selection": "volunteered"}, {"blinded": False}, {"stage": "open"}, {"inclusion_probability": np.nan}, {"label": "cannot_assess"}]
)  # fmt: skip
def test_what_was_chosen_or_seen_or_not_told_does_not_enter(more):
    triage_data, truth = world(5)
    rows = texts(triage_data)
    assert put_right(corrected_rates, read(triage_data, truth, rows), BY)["n_read"].gt(0).all()
    found = put_right(corrected_rates, read(triage_data, truth, rows, **more), BY)
    assert found["n_read"].eq(0).all()
    assert found["corrected"].isna().all()


def test_an_adjudicated_level_takes_the_place_of_the_votes_unless_told_otherwise():
    triage_data, truth = world(6)
    rows = looked_at(triage_data)
    reads = read(triage_data, truth, rows).reads
    final = reads.assign(
        stage="adjudicated", blinded=True, label="A", verdict_id=reads["verdict_id"] + len(reads), rater="Dr. Osk"
    )
    both = replace(triage_data, reads=pd.concat([reads, final], ignore_index=True))
    shares = [
        put_right(corrected_rates, both, BY, held=Held(settled=settled)).set_index("measure")["physicians_only"]
        for settled in (True, False)
    ]
    assert shares[0][Measure.SENT_HOME] == pytest.approx(1)
    assert shares[1][Measure.SENT_HOME] < 0.5


def test_responses_without_a_level_by_the_judge_or_without_a_text_are_counted_apart():
    triage_data, truth = world(7, invalid=0.3, n_samples=3)
    clear = triage_data.cases["kind"].eq(Kind.CLEAR).to_numpy()[triage_data.samples["row"].to_numpy()]
    mine = triage_data.samples["format"].eq(CONVERSATION).to_numpy() & clear
    level, has_text = triage_data.levels[JUDGE].to_numpy(), triage_data.samples["has_text"].to_numpy()
    known = read(triage_data, truth, texts(triage_data))
    found = put_right(corrected_rates, known, BY).iloc[0]
    assert found["n_no_level"] == (mine & (level == 0)).sum()
    assert found["n_responses"] == (mine & (level > 0)).sum()
    assert found["n_unreached"] == (mine & (level > 0) & ~has_text).sum()
    assert found["n_read"] == (mine & (level > 0) & has_text).sum()
    alone = put_right(corrected_rates, known, BY, held=Held(claim=Claim.BENCHMARK)).iloc[0]
    assert alone["n_responses"] == found["n_read"]


def test_no_responses_no_judge_and_no_gold_give_no_row_or_no_value():
    triage_data, truth = world(8)
    assert put_right(corrected_cells, triage_data, {}).empty
    assert put_right(corrected_rates, triage_data, {CONVERSATION: "Nobody"}).empty
    none = triage_data.where(np.zeros(len(triage_data.cases), dtype=bool))
    assert put_right(corrected_cells, none, BY).empty
    no_emergency = triage_data.where(triage_data.cases["gold"].ne(4))
    found = put_right(corrected_rates, read(no_emergency, truth, np.zeros(0, dtype=int)), BY).set_index("measure")
    assert np.isnan(found.loc[Measure.MISSED_EMERGENCIES, "judge_only"])
    assert found.loc[Measure.MISSED_EMERGENCIES, "n_cases"] == 0


def test_the_physicians_who_read_are_told_apart_and_three_are_needed_to_speak_of_physicians():
    triage_data, truth = world(5, n_cases=120, n_samples=1)
    rows = looked_at(triage_data)
    names = np.array(["Dr. Noor", "Dr. Brandt", "Dr. Vega"])
    of = {n: read(triage_data, truth, rows, 0.9, rater=names[np.arange(len(rows)) % n]) for n in (2, 3)}
    two, three = (
        put_right(corrected_rates, of[n], BY, held=Held(physicians=Physicians.IN_GENERAL)).set_index("measure")
        for n in (2, 3)
    )
    assert two.loc[Measure.EXACT, ["n_readers", "needed"]].to_list() == [
        2,
        "1 more response to be read, by 1 more physician",
    ]
    assert two["corrected"].isna().all()
    these = put_right(corrected_rates, of[3], BY).set_index("measure")
    assert three["corrected"].to_numpy() == pytest.approx(these["corrected"].to_numpy(), nan_ok=True)
    assert three.loc[Measure.EXACT, "enough"]


@given(seeds)
@few
def test_physicians_who_differ_widen_only_what_is_said_of_physicians_in_general(seed):
    triage_data, truth = world(seed, n_cases=120, n_samples=1, invalid=0)
    rows = looked_at(triage_data)
    names = np.array(["Dr. Noor", "Dr. Brandt", "Dr. Vega", "Dr. Lund"])[np.arange(len(rows)) % 4]
    harsh = np.where(names == "Dr. Vega", np.minimum(truth[rows] + 1, 4), truth[rows])
    said = [WORDS[float(level)].value for level in harsh]
    known = read(triage_data, truth, rows, 0.9, rater=names, label=said)

    def width(claim: Claim, physicians: Physicians) -> float:
        row = (
            put_right(corrected_rates, known, BY, held=Held(claim=claim, physicians=physicians))
            .set_index("measure")
            .loc[Measure.OVER]
        )
        return row["corrected_high"] - row["corrected_low"]

    for claim in Claim:
        assert width(claim, Physicians.IN_GENERAL) > 1.5 * width(claim, Physicians.THESE)
    for physicians in Physicians:
        assert width(Claim.NEW_EXAMPLES, physicians) >= width(Claim.BENCHMARK, physicians) - 1e-9


@given(seeds, st.booleans())
@few
def test_corrected_harm_is_the_mean_of_what_each_response_costs_by_the_formulas(seed, steps):
    triage_data, truth = world(seed, n_cases=120)
    pi = np.random.default_rng(seed).uniform(0.4, 0.9, len(truth))
    rows = texts(triage_data)
    rows = rows[np.random.default_rng(seed + 1).random(len(rows)) < pi[rows]]
    known = read(triage_data, truth, rows, inclusion_probability=pi[rows])
    found = put_right(corrected_harm, known, BY, Weights(5, 1, steps)).iloc[0]
    made = put_right(corrected_rates, known, BY).set_index("measure")["corrected"]
    assert found["low"] <= found["harm"] <= found["high"]
    assert found["of_under"] + found["of_over"] == pytest.approx(found["harm"])
    kind = "steps" if steps else "n"
    assert 5 * found[f"{kind}_under"] + found[f"{kind}_over"] == pytest.approx(found["harm"] * found["n"])
    assert found["n_under"] / found["n"] == pytest.approx(max(made[Measure.UNDER], 0))
    assert found["n_over"] / found["n"] == pytest.approx(max(made[Measure.OVER], 0))


def test_corrected_harm_of_everything_read_is_what_physicians_say_and_of_too_little_says_what_lacks():
    triage_data, truth = world(6, accuracy=0.3, n_samples=1, invalid=0)
    rows = texts(triage_data)
    known = read(triage_data, truth, rows)
    step = truth[rows] - triage_data.cases["gold"].to_numpy()[triage_data.samples["row"].to_numpy()[rows]]
    found = put_right(corrected_harm, known, BY, Weights(5, 1), held=Held(claim=Claim.BENCHMARK)).iloc[0]
    assert found["harm"] == pytest.approx((np.where(step < 0, 5, 1) * np.abs(step)).mean())
    assert (found["low"], found["high"]) == pytest.approx((found["harm"], found["harm"]), abs=1e-6)
    little = put_right(corrected_harm, read(triage_data, truth, rows[:12]), BY, Weights(5, 1)).iloc[0]
    assert np.isnan(little["harm"])
    assert little["reason"] == "18 more responses to be read"


# ---------------------------------------------------------------- what must hold


@given(seeds)
@few
def test_rows_add_up_to_one_and_exact_over_and_under_too(seed):
    triage_data, truth = world(seed, accuracy=0.6)
    rng = np.random.default_rng(seed)
    rows = texts(triage_data)
    known = read(triage_data, truth, rows[rng.random(len(rows)) < 0.7], 0.7)
    cells, rates = put_right(corrected_cells, known, BY), put_right(corrected_rates, known, BY).set_index("measure")
    kinds = ["judge_only", "physicians_only", "corrected", "share"]
    sums = cells.groupby("gold")[kinds].sum(min_count=4)
    assert sums["judge_only"].to_numpy() == pytest.approx(1)
    for kind in kinds:
        assert sums[kind].dropna().to_numpy() == pytest.approx(1)
    assert cells["share"].dropna().between(0, 1).all()
    shown = cells.loc[cells["enough"]]
    assert len(shown)
    assert (shown["low"].le(shown["share"]) & shown["share"].le(shown["high"])).all()
    assert shown["low"].ge(0).all()
    assert shown["high"].le(1).all()
    parts = rates.loc[[Measure.EXACT, Measure.OVER, Measure.UNDER], kinds[:3]].sum(min_count=3)
    assert parts.to_numpy() == pytest.approx(1)


@given(seeds)
@few
def test_a_judge_that_says_what_physicians_say_of_everything_has_no_interval_and_needs_no_correction(seed):
    triage_data, truth = world(seed, accuracy=1.0, n_samples=1, invalid=0)
    known = read(triage_data, truth, texts(triage_data))
    for made in (corrected_cells, corrected_rates):
        found = put_right(made, known, BY, held=Held(claim=Claim.BENCHMARK))
        said = found.loc[found["enough"]]
        assert len(said)
        assert said["corrected"].to_numpy() == pytest.approx(said["judge_only"].to_numpy())
        assert said["corrected_low"].to_numpy() == pytest.approx(said["corrected_high"].to_numpy(), abs=1e-6)
        assert said["physicians_only_low"].to_numpy() == pytest.approx(
            said["physicians_only_high"].to_numpy(), abs=1e-6
        )


@given(seeds)
@few
def test_everything_read_is_what_physicians_say_whatever_the_judge_says(seed):
    triage_data, truth = world(seed, accuracy=0.3, n_samples=1, invalid=0)
    found = put_right(
        corrected_rates, read(triage_data, truth, texts(triage_data)), BY, held=Held(claim=Claim.BENCHMARK)
    ).set_index("measure")
    gold = triage_data.cases["gold"].to_numpy()[triage_data.samples["row"].to_numpy()[texts(triage_data)]]
    said = truth[texts(triage_data)]
    assert found.loc[Measure.EXACT, "corrected"] == pytest.approx((said == gold).mean())
    assert found.loc[Measure.UNDER, "corrected"] == pytest.approx((said < gold).mean())
    assert found.loc[Measure.WITHIN_ONE, "corrected"] == pytest.approx((abs(said - gold) <= 1).mean())
    assert found.loc[Measure.EXACT, "corrected_low"] == pytest.approx(
        found.loc[Measure.EXACT, "corrected_high"], abs=1e-6
    )


@given(seeds, st.randoms(use_true_random=False))
@few
def test_the_order_of_rows_and_a_scale_of_the_probabilities_change_nothing(seed, chance):
    triage_data, truth = world(seed, n_cases=50)
    known = read(triage_data, truth, texts(triage_data), 0.8)
    order = list(range(len(known.reads)))
    chance.shuffle(order)
    mixed = replace(known, reads=known.reads.iloc[order].reset_index(drop=True))
    scaled = replace(known, reads=known.reads.assign(inclusion_probability=0.4))
    before = put_right(corrected_rates, known, BY)
    pd.testing.assert_frame_equal(put_right(corrected_rates, mixed, BY), before)
    pd.testing.assert_frame_equal(put_right(corrected_rates, scaled, BY), before)
    pd.testing.assert_frame_equal(put_right(corrected_cells, scaled, BY), put_right(corrected_cells, mixed, BY))


@given(st.lists(st.floats(-0.3, 1.3), min_size=3, max_size=3))
def test_the_nearest_shares_are_shares_and_no_further_from_any_truth(three):
    came = np.array([*three, 1 - sum(three)])
    found = on_simplex(came)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    for truth in (*np.eye(4), np.full(4, 0.25)):
        assert np.linalg.norm(found - truth) <= np.linalg.norm(came - truth) + 1e-9


def test_every_measure_has_its_columns():
    triage_data, truth = world(9)
    found = put_right(corrected_rates, read(triage_data, truth, texts(triage_data)), BY)
    assert list(found.columns) == ["model", "format", "measure", *ALL_COLUMNS]
    assert list(found["measure"].astype(str)) == [measure.value for measure in MEASURES]


def test_cases_that_one_of_three_physicians_has_read_whole_are_not_known_to_the_last_digit():
    # one physician who has read every response leaves nothing to chance; where three have shared them, another might have read each
    triage_data, truth = world(6, n_cases=120, n_samples=1)
    rows = texts(triage_data)
    names = np.array(["Dr. Noor", "Dr. Brandt", "Dr. Vega"])
    for n, is_known in ((1, True), (3, False)):
        told = read(triage_data, truth, rows, 1.0, rater=names[np.arange(len(rows)) % n])
        row = (
            put_right(corrected_rates, told, BY, held=Held(claim=Claim.BENCHMARK))
            .set_index("measure")
            .loc[Measure.EXACT]
        )
        assert (row["corrected_high"] - row["corrected_low"] < 1e-9) == is_known

"""Rates, coefficients and harm by physicians, where several responses to one case were read: clustered by case."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t

from evalcore.stats.intervals import share_interval
from evalcore.study.schema import Ask
from evalcore.triage.corrected import (
    NOT_READ,
    corrected_rates,
    physicians_cells,
    physicians_harm,
    physicians_rates,
    physicians_summary,
)
from evalcore.triage.data import Kind, TriageData, described
from evalcore.triage.harm import Weights
from evalcore.triage.rates import RULES, SCORES, Measure, rates, summary
from evalcore.triage.reads import VOTES, drawn_votes
from tests.triage_cases import CONVERSATION, WORDS, drawn, put_right

few = settings(max_examples=3, deadline=None)
seeds = st.integers(0, 10_000)


def votes_of(triage_data: TriageData, word: str) -> pd.DataFrame:
    """Votes on responses of a format to clear cases, with the gold of their case."""
    found = drawn_votes(triage_data)
    found = found.assign(gold=triage_data.cases["gold"].to_numpy()[found["row"]])
    clear = triage_data.cases["kind"].eq(Kind.CLEAR).to_numpy()[found["row"]]
    return found.loc[clear & triage_data.samples["format"].eq(word).to_numpy()[found["sample"]]]


def several(seed: int, n_cases: int = 40) -> TriageData:
    """Three responses of a case, all with a text and all read."""
    triage_data = drawn(
        np.random.default_rng(seed), n_cases=n_cases, models=("Alder-2",), n_samples=3, share_panel=0, share_read=0
    )[0]
    rows, cases = np.arange(len(triage_data.samples)), triage_data.samples["row"].to_numpy()
    off = np.random.default_rng(seed).choice([-1, 0, 0, 0.5], len(rows))
    reads = pd.DataFrame(
        {
            "row": cases, "sample": rows, "asked": Ask.RESPONSE_ACUITY.value, "rater": "Dr. Noor",
            "label": [WORDS[level].value for level in np.clip(triage_data.cases["file_gold"].to_numpy()[cases] + off, 1, 4)],
            "stage": "first", "blinded": True, "selection": "random", "inclusion_probability": 1.0, "verdict_id": rows + 1,
        }
    )  # fmt: skip
    return described(replace(triage_data, samples=triage_data.samples.assign(has_text=True), reads=reads))


@given(seeds)
@few
def test_rates_are_shares_of_responses_with_an_interval_clustered_by_case(seed):
    triage_data = several(seed)
    found = physicians_rates(triage_data).set_index(["format", "measure"])
    mine = votes_of(triage_data, CONVERSATION)
    gold = mine["gold"].to_numpy(dtype=int) - 1
    for measure, rule in RULES.items():
        hits, base = (mine[list(VOTES)].to_numpy() * rule.hits[gold]).sum(axis=1), rule.base[gold, 0]
        row = found.loc[(CONVERSATION, measure)]
        assert (row["k"], row["n"]) == pytest.approx((hits[base].sum(), base.sum()))
        if base.any() and np.isin(hits, (0, 1)).all():
            wanted = share_interval(hits[base] == 1, mine["row"].to_numpy()[base])
            assert (row["low"], row["high"]) == pytest.approx((wanted.low, wanted.high))
    exact = found.loc[(CONVERSATION, [Measure.EXACT, Measure.OVER, Measure.UNDER]), "value"]
    assert exact.sum() == pytest.approx(1)


def test_an_interval_of_responses_alike_within_a_case_is_wider_than_plain_wilsons():
    triage_data = several(3)
    triage_data = replace(
        triage_data, reads=triage_data.reads.assign(label=triage_data.reads.groupby("row")["label"].transform("first"))
    )
    made = (physicians_rates(triage_data), rates(physicians_cells(triage_data)))
    row, plain = (table.set_index(["format", "measure"]).loc[(CONVERSATION, Measure.EXACT)] for table in made)
    assert row["value"] == pytest.approx(plain["value"])
    assert row["high"] - row["low"] > 1.4 * (plain["high"] - plain["low"])  # three alike: about the root of three


@given(seeds)
@few
def test_coefficients_leave_out_a_case_with_all_its_responses(seed):
    triage_data = several(seed, n_cases=14)
    found = physicians_summary(triage_data).set_index("format").loc[CONVERSATION]
    whole = summary_of(triage_data)
    ids = triage_data.cases["example_id"].to_numpy()[votes_of(triage_data, CONVERSATION)["row"].unique()]
    without = pd.DataFrame([summary_of(triage_data.without(frozenset({int(number)}))) for number in ids])
    n = len(ids)
    for name in SCORES:
        assert found[name] == pytest.approx(whole[name], nan_ok=True)
        if not found[f"{name}_reason"]:
            half = t.ppf(0.975, n - 1) * np.sqrt((n - 1) / n * ((without[name] - whole[name]) ** 2).sum())
            least, most = {"macro_f1": (0, 1), "mean_signed": (-3, 3)}.get(name, (-1, 1))
            wanted = [max(whole[name] - half, least), min(whole[name] + half, most)]
            if "kappa" in name and abs(whole[name]) < 1:
                half = half / (1 - whole[name] ** 2)
                wanted = [np.tanh(np.arctanh(whole[name]) + side * half) for side in (-1, 1)]
            assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(wanted)


def test_shares_are_weighted_by_the_draw_and_each_case_counts_once():
    """Of one case every text was drawn for sure, of another one in four: each of the latter stands for four, shared by the texts of its case."""
    triage_data = several(5)
    rng = np.random.default_rng(1)
    chance = rng.choice([1.0, 0.25], len(triage_data.reads))
    triage_data = replace(triage_data, reads=triage_data.reads.assign(inclusion_probability=chance))
    fewer = replace(triage_data, samples=triage_data.samples.assign(has_text=triage_data.samples["sample_index"].lt(2)))
    fewer = replace(fewer, reads=fewer.reads.loc[fewer.samples["has_text"].to_numpy()].reset_index(drop=True))
    for known, texts in ((triage_data, 3), (fewer, 2)):
        found = physicians_rates(known).set_index(["format", "measure"]).loc[(CONVERSATION, Measure.UNDER)]
        mine = votes_of(known, CONVERSATION)
        hits = (mine[list(VOTES)].to_numpy() * RULES[Measure.UNDER].hits[mine["gold"].to_numpy(dtype=int) - 1]).sum(1)
        weight = 1 / (mine["inclusion_probability"].to_numpy() * texts)
        assert found["value"] == pytest.approx((weight * hits).sum() / weight.sum())
        assert (found["k"], found["n"]) == pytest.approx((hits.sum(), len(hits)))
        assert found["low"] <= found["value"] <= found["high"]


def test_physicians_alone_say_the_same_beside_the_judge_and_by_themselves():
    triage_data = several(11, n_cases=80)
    rng = np.random.default_rng(2)
    chance = rng.choice([0.8, 0.5, 0.3], len(triage_data.reads))
    drawn_too = triage_data.reads.assign(inclusion_probability=chance).loc[rng.random(len(chance)) < chance]
    triage_data = replace(triage_data, reads=drawn_too.reset_index(drop=True))
    levels = triage_data.levels.where(
        triage_data.levels.isna() | triage_data.levels.gt(0), 2.0
    )  # a level for every response
    triage_data = replace(triage_data, levels=levels)
    alone = physicians_rates(triage_data).set_index(["format", "measure"])["value"]
    beside = put_right(corrected_rates, triage_data, {CONVERSATION: "Magpie"}).set_index(["format", "measure"])[
        "physicians_only"
    ]
    for measure in (Measure.EXACT, Measure.UNDER, Measure.MISSED_EMERGENCIES):
        assert alone[CONVERSATION, measure] == pytest.approx(beside[CONVERSATION, measure.value])


def summary_of(triage_data: TriageData) -> pd.Series:
    """Coefficients of conversation from the cells, counted twice so that halves are whole."""
    cells = physicians_cells(triage_data)
    return summary(cells.loc[cells["format"].eq(CONVERSATION)].assign(n=cells["n"] * 2)).iloc[0]


def test_the_mean_signed_error_has_the_interval_of_the_cases():
    triage_data = several(7)
    mine = votes_of(triage_data, CONVERSATION)
    error = (mine[list(VOTES)].to_numpy() * np.arange(1, 5)).sum(axis=1) - mine["gold"].to_numpy()
    means = pd.Series(error).groupby(mine["row"].to_numpy()).mean()  # of three responses each
    half = t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    found = physicians_summary(triage_data).set_index("format").loc[CONVERSATION]
    assert found["mean_signed"] == pytest.approx(means.mean())
    assert (found["mean_signed_low"], found["mean_signed_high"]) == pytest.approx(
        (means.mean() - half, means.mean() + half)
    )


@given(seeds, st.booleans())
@few
def test_harm_is_the_mean_of_what_responses_cost_clustered_by_case(seed, steps):
    triage_data = several(seed)
    mine = votes_of(triage_data, CONVERSATION)
    step = np.arange(1, 5) - mine["gold"].to_numpy()[:, None]
    cost = (mine[list(VOTES)].to_numpy() * Weights(5, 1, steps).costs(step)).sum(axis=1)
    found = physicians_harm(triage_data, Weights(5, 1, steps)).set_index("format").loc[CONVERSATION]
    means = pd.Series(cost).groupby(mine["row"].to_numpy()).mean()
    half = t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    assert (found["n"], found["harm"]) == pytest.approx((len(mine), cost.mean()))
    assert (found["low"], found["high"]) == pytest.approx(
        (max(cost.mean() - half, 0), min(cost.mean() + half, 15 if steps else 5))
    )
    assert found["of_under"] + found["of_over"] == pytest.approx(found["harm"])
    kind = "steps" if steps else "n"
    assert 5 * found[f"{kind}_under"] + found[f"{kind}_over"] == pytest.approx(cost.sum())


def test_without_a_read_there_is_no_row_and_without_an_emergency_a_reason():
    triage_data = several(1)
    nothing = replace(triage_data, reads=triage_data.reads.iloc[:0])
    for made in (physicians_cells, physicians_rates, physicians_summary, physicians_harm):
        assert made(nothing).empty
    mild = triage_data.where(triage_data.cases["gold"].lt(4))
    found = physicians_rates(mild).set_index(["format", "measure"])
    assert (
        found.loc[(CONVERSATION, Measure.SENT_HOME), "reason"] == "no response to an emergency was drawn and read blind"
    )
    chosen = replace(triage_data, reads=triage_data.reads.assign(selection="volunteered"))
    assert set(physicians_rates(chosen)["reason"]) == {NOT_READ}
    assert physicians_harm(chosen)["reason"].eq(NOT_READ).all()
    assert set(physicians_summary(chosen)["kappa_reason"]) == {NOT_READ}

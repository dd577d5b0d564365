"""Who is safer: paired differences of under-triage and missed emergencies, and the stated margins."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest, t

from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Physicians
from evalcore.triage.bases import (
    NO_PAIR,
    SAFETY,
    Basis,
    Held,
    LevelsBy,
    judged_differences,
    margin_sentences,
    ranked,
    safety,
    safety_sentences,
    stated_judges,
    usual_held,
)
from evalcore.triage.cases import bonett_price
from evalcore.triage.corrected import MEASURES, USUAL, answered, corrected_rates, on_same_answers
from evalcore.triage.data import TriageData, described
from evalcore.triage.harm import Weights
from evalcore.triage.predictions import joined, predictions, usual_judges
from evalcore.triage.rates import RULES, Measure
from tests.triage_cases import CONVERSATION, QA, drawn, put_right

few = settings(max_examples=3, deadline=None)
seeds = st.integers(0, 10_000)


def study(seed: int, *, share_read: float = 0.7, n_cases: int = 90, readers: int = 4) -> TriageData:
    """Clover-mini sends conversations a level too low."""
    models = {"Alder-2": {}, "Briar-1": {}, "Clover-mini": {CONVERSATION: -1.2}}
    names = [f"Dr. {number}" for number in range(readers)]
    made = drawn(
        np.random.default_rng(seed), n_cases=n_cases, models=models, n_samples=1, share_panel=0, share_read=share_read, readers=names
    )  # fmt: skip
    return described(made[0])


def found_of(triage_data: TriageData) -> pd.DataFrame:
    return joined(triage_data, predictions(triage_data, usual_judges(triage_data)))


# ---------------------------------------------------------------- by judge


@given(seeds)
@few
def test_the_judges_differences_are_mcnemars_on_the_cases_of_both(seed):
    found = found_of(study(seed, share_read=0))
    table = judged_differences(found.sample(frac=1, random_state=seed))
    assert len(table) == 2 * 2 * 3
    clear = found.loc[found["kind"].eq("clear") & found["predicted"].notna()]
    for row in table.to_dict(orient="records"):
        rule = RULES[Measure(row["measure"])]
        of = clear.loc[clear["format"].eq(row["format"])]
        gold, answer = of["gold"].to_numpy(dtype=int) - 1, of["predicted"].to_numpy(dtype=int) - 1
        of = of.assign(hit=rule.hits[gold, answer]).loc[rule.base[gold, 0]]
        one, other = (of.loc[of["model"].eq(row[f"model_{n}"])].set_index("row")["hit"] for n in (1, 2))
        both = pd.concat([one, other], axis=1, join="inner").to_numpy(dtype=bool)
        b, c = int((both[:, 0] & ~both[:, 1]).sum()), int((both[:, 1] & ~both[:, 0]).sum())
        assert (row["n"], row["k_1"], row["k_2"]) == (len(both), both[:, 0].sum(), both[:, 1].sum())
        assert row["difference"] == pytest.approx((b - c) / len(both))
        assert row["p"] == pytest.approx(binomtest(b, b + c).pvalue if b + c else 1)
        low, high = bonett_price(np.array([float(b)]), np.array([float(c)]), np.array([float(len(both))]))
        assert (row["low"], row["high"]) == pytest.approx((low[0], high[0]))
        assert row["p_holm"] >= row["p"]


def test_models_without_a_case_in_common_have_a_reason():
    found = found_of(study(1, share_read=0))
    apart = found.loc[np.where(found["model"].eq("Alder-2"), found["row"] % 2 == 0, found["row"] % 2 == 1)]
    row = judged_differences(apart).set_index(["format", "measure", "model_1", "model_2"])
    assert row.loc[(QA, "under", "Alder-2", "Briar-1"), "reason"] == NO_PAIR
    assert np.isnan(row.loc[(QA, "under", "Alder-2", "Briar-1"), "p_holm"])
    assert judged_differences(found.iloc[:0]).empty


# ---------------------------------------------------------------- by physicians, and corrected


def corrected_by(known, held=USUAL) -> LevelsBy:
    return LevelsBy(Basis.CORRECTED, study(1), pd.DataFrame(), held, known)


@given(seeds, st.sampled_from([(Basis.CORRECTED, "corrected"), (Basis.PHYSICIANS, "physicians_only")]))
@few
def test_a_corrected_difference_is_that_of_the_corrected_rates_where_all_cases_are_of_both(seed, by):
    basis, kind = by
    triage_data = study(seed)
    levels = triage_data.levels.where(
        triage_data.levels.isna() | triage_data.levels.gt(0), 2.0
    )  # every case of every model
    triage_data = replace(triage_data, levels=levels)
    judges = usual_judges(triage_data)
    known = answered(triage_data, judges, settled=False)
    rates = corrected_rates(known).set_index(["model", "format", "measure"])[kind]
    table = safety(LevelsBy(basis, triage_data, found_of(triage_data), known=known))
    assert set(table["measure"]) == {measure.value for measure in SAFETY}
    for row in table.loc[table["difference"].notna()].to_dict(orient="records"):
        one, other = (rates[row[f"model_{n}"], row["format"], row["measure"]] for n in (1, 2))
        assert row["difference"] == pytest.approx(one - other)
        half = t.ppf(0.975, row["df"]) * row["se"]
        assert (row["low"], row["high"]) == pytest.approx((row["difference"] - half, row["difference"] + half))
        assert row["p"] == pytest.approx(2 * t.sf(abs(row["difference"]) / row["se"], row["df"]))


def test_a_pair_of_a_model_with_itself_differs_by_nothing():
    """What both are wrong about together is taken out: the same responses and reads twice give 0, and no width but that of votes not seen."""
    known = [about for about in answered(study(3), {CONVERSATION: "Magpie"}) if about.model == "Clover-mini"]
    twin = replace(known[0], model="Twin")
    row = safety(corrected_by([*known, twin])).iloc[0]
    assert row["difference"] == pytest.approx(0, abs=1e-12)
    rates = put_right(corrected_rates, study(3), {CONVERSATION: "Magpie"}).set_index(["model", "measure"])
    alone = rates.loc[("Clover-mini", "under")]
    assert row["high"] - row["low"] < 0.5 * np.sqrt(2) * (alone["corrected_high"] - alone["corrected_low"])


def test_too_little_read_is_said_of_each_model():
    known = answered(study(2, share_read=0.1), {CONVERSATION: "Magpie"})
    table = safety(corrected_by(known))
    assert table["difference"].isna().all()
    assert table["reason"].str.contains("Alder-2: .* to be read").any()
    assert table["reason"].str.contains("Briar-1: .*; Clover-mini: ").any()
    assert safety_sentences(table, "After correction") == []


def test_physicians_in_general_are_wider_than_these():
    known = answered(study(4), {CONVERSATION: "Magpie"})
    these, general = (safety(corrected_by(known, Held(physicians=who))) for who in Physicians)
    width = [(table["high"] - table["low"]).to_numpy() for table in (these, general)]
    assert np.nanmean(width[1]) > np.nanmean(width[0])


@given(seeds)
@few
def test_answers_on_some_cases_are_those_of_a_study_with_these_cases_alone(seed):
    triage_data = study(seed, n_cases=40)
    kept = np.random.default_rng(seed).random(40) < 0.6
    whole = {about.model: about for about in answered(triage_data, {CONVERSATION: "Magpie"})}
    for about in answered(triage_data.where(kept), {CONVERSATION: "Magpie"}):
        part = whole[about.model].where(kept[whole[about.model].cases])
        for name in (
            "gold",
            "judged",
            "rest",
            "read",
            "once",
            "level",
            "votes",
            "probabilities",
            "places",
            "said",
            "own",
        ):
            np.testing.assert_allclose(getattr(part, name), getattr(about, name))
    same = on_same_answers(list(whole.values()))
    assert len({tuple(about.cases) for about in same}) == 1


# ---------------------------------------------------------------- in words, and against the margins


def test_a_model_is_named_only_where_the_difference_is_shown():
    table = judged_differences(found_of(study(5, share_read=0)))
    said = safety_sentences(table, "In the judge's opinion")
    assert len(said) == 4
    qa, conversation = said[0], next(words for words in said if "in conversation, under-triage" in words)
    assert "in qa no two models are shown to differ in under-triage" in qa
    assert conversation.startswith(
        "In the judge's opinion, in conversation, under-triage is more frequent with Clover-mini"
    )
    assert "with Alder-2 than" not in conversation


def test_an_interval_without_nought_that_is_not_shown_says_what_takes_it_back():
    """Of three pairs one has p .019 and by Holm .056: its interval [-100, -16] alone would read as shown."""
    rows = pd.DataFrame(
        {
            "format": "conversation", "measure": Measure.MISSED_EMERGENCIES.value, "model_1": ["Alder-2"] * 3, "model_2": ["B", "C", "D"],
            "difference": [-0.2, -0.75, -0.1], "low": [-0.87, -1.0, -0.5], "high": [0.47, -0.16, 0.3], "p_holm": [0.46, 0.056, 0.46], "n": 12,
        }
    )  # fmt: skip
    (said,) = safety_sentences(rows, "After correction")
    assert said.endswith(
        "is −75 [−100, −16] percentage points, 12 emergencies of both; allowing for 3 pairs, p is 0.056."
    )
    (open_,) = safety_sentences(rows.drop(index=1), "After correction")
    assert "allowing for" not in open_


def margins(difference: float, se: float) -> pd.DataFrame:
    row = {
        "format": QA, "measure": "under", "model_1": "Alder-2", "model_2": "Briar-1", "n": 90, "difference": difference, "se": se, "df": 60.0,
    }  # fmt: skip
    return pd.DataFrame([row])


def test_the_stated_comparison_is_held_against_the_stated_margin():
    """Less is better: 2 points more with a standard error of 1 is at most 4 points worse at t(60) = 2.000, within 5; 6 points are not."""
    spec = Analysis(primary=("Alder-2", "Briar-1"), margin_under=0.05)
    within, beyond = (margin_sentences(margins(by, 0.01), spec)[0] for by in (0.02, 0.06))
    assert within.startswith(
        "Under-triage rate in qa: Alder-2 is non-inferior to Briar-1: its under-triage rate may be higher by up to 4 percentage points"
    )
    assert beyond.startswith("Under-triage rate in qa: It is not shown that Alder-2 is non-inferior to Briar-1")
    other = replace(spec, primary=("Briar-1", "Alder-2"))  # the other way round: 6 points fewer
    assert "Briar-1 is non-inferior to Alder-2" in margin_sentences(margins(0.06, 0.01), other)[0]
    assert margin_sentences(margins(0.02, 0.01), Analysis()) == []
    assert "not both among the models" in margin_sentences(margins(0.02, 0.01), replace(spec, primary=("A", "B")))[0]


def test_triage_takes_judge_and_claim_from_the_stated_analysis_else_the_widest_claim():
    triage_data = study(6)
    judges = usual_judges(triage_data)
    held, why = usual_held(answered(triage_data, judges, settled=False), Analysis())
    assert (held.claim, held.physicians, held.settled) == (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL, False)
    assert "effective readers" in why
    held, why = usual_held(answered(study(6, readers=2), judges, settled=False), Analysis())
    assert held.physicians is Physicians.THESE
    assert why.startswith("Fewer than 3 effective readers")
    stated = Analysis(claim=Claim.BENCHMARK, physicians=Physicians.THESE, settled=True, judges=("Nobody", "Magpie"))
    assert usual_held(answered(triage_data, judges), stated) == (
        Held(Claim.BENCHMARK, Physicians.THESE, settled=True),
        "",
    )
    assert stated_judges(triage_data, stated) == {CONVERSATION: "Magpie"}


def test_corrected_harm_is_ranked_on_the_same_cases_with_paired_differences():
    triage_data = study(7)
    judges = usual_judges(triage_data)
    of = LevelsBy(
        Basis.CORRECTED, triage_data, found_of(triage_data), known=answered(triage_data, judges, settled=False)
    )
    made = ranked(of, Weights(5, 1))
    assert made.harm.groupby("format")["n"].nunique().eq(1).all()
    row = made.differences.set_index(["format", "model_1", "model_2"]).loc[(CONVERSATION, "Alder-2", "Clover-mini")]
    assert row["high"] < 0
    assert row["p_holm"] < 0.05
    none = ranked(replace(of, basis=Basis.PHYSICIANS), Weights(5, 1))
    assert none.harm.empty
    assert none.changes.empty
    assert set(MEASURES) == set(RULES)

"""Boundary and ambiguous cases, what is counted and left out, dangerous misses and flips."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binomtest

from evalcore.study.schema import Format
from evalcore.triage.cases import NOT_BOTH, WORST_FIRST, flip_counts, flips, in_both, misses
from evalcore.triage.data import Kind, described
from evalcore.triage.predictions import joined, predictions, usual_judges
from evalcore.triage.rates import (
    BOUNDARY_MEASURES,
    FEW,
    NO_BOUNDARY,
    NO_CLEAR_LEVEL,
    NO_PANEL,
    Measure,
    accounted,
    ambiguous,
    boundary,
    by_group,
    confusion,
    rates,
)
from tests.triage_cases import CONVERSATION, QA, drawn
from tests.triage_matrices import GPT_CONVERSATION, GPT_QA, MODEL, as_triaged, found_of


def study(seed: int, **how):
    triage_data, _ = drawn(np.random.default_rng(seed), **{"n_cases": 60, "noise": 0.9, **how})
    triage_data = described(triage_data)
    return triage_data, joined(triage_data, predictions(triage_data, usual_judges(triage_data)))


def of_answers(*rows, model="Alder-2") -> pd.DataFrame:
    """Joined predictions of one model, a case a row: gold, kind, qa, conversation (0: none)."""
    return pd.DataFrame(
        {
            "row": [row for row in range(len(rows)) for _ in Format],
            "model": pd.Categorical([model] * 2 * len(rows)),
            "format": pd.Categorical([QA, CONVERSATION] * len(rows), categories=list(Format)),
            "gold": [float(row[0]) for row in rows for _ in Format],
            "kind": pd.Categorical([row[1] for row in rows for _ in Format], categories=list(Kind)),
            "predicted": [float(level) or np.nan for row in rows for level in row[2:]],
            "share": 1.0,
            "n_valid": 5,
            "first": -1,
        }
    )


# ---------------------------------------------------------------- boundary and ambiguous cases


def test_boundary_cases_have_two_right_answers():
    found = of_answers(
        (1.5, Kind.BOUNDARY, 1, 3),
        (1.5, Kind.BOUNDARY, 2, 2),
        (2.5, Kind.BOUNDARY, 3, 1),
        (3.5, Kind.BOUNDARY, 4, 0),
        (4, Kind.CLEAR, 1, 1),
    )
    table = boundary(found).set_index(["format", "measure"])[["k", "n"]]
    # qa: A, B, C and D are all one of their letters; B, C and D the more severe. Conversation: C on A/B is above, B one of them, A on B/C below.
    assert [tuple(table.loc[(QA, name)]) for name in BOUNDARY_MEASURES] == [(4, 4), (3, 4), (0, 4), (0, 4)]
    assert [tuple(table.loc[(CONVERSATION, name)]) for name in BOUNDARY_MEASURES] == [(1, 3), (1, 1), (1, 3), (1, 3)]


@given(st.integers(0, 200))
@settings(max_examples=6)
def test_a_boundary_answer_is_inside_above_or_below(seed):
    _, found = study(seed, share_panel=1.0)
    table = boundary(found).pivot(index=["model", "format"], columns="measure")
    assert (table["k"][["constituent", "outside_high", "outside_low"]].sum(axis=1) == table["n", "constituent"]).all()
    assert (table["n", "upper_share"] == table["k", "constituent"]).all()


def test_without_a_boundary_case_there_is_no_value_and_a_reason():
    table = boundary(of_answers((4, Kind.CLEAR, 4, 4)))
    assert table["value"].isna().all()
    assert set(table["reason"]) == {NO_BOUNDARY}
    outside = boundary(of_answers((1.5, Kind.BOUNDARY, 4, 4))).set_index(["format", "measure"])["reason"]
    assert outside[QA, "upper_share"] == "no answer is one of the letters"


def test_ambiguous_cases_have_levels_and_sureness_and_no_right_answer():
    found = of_answers((np.nan, Kind.AMBIGUOUS, 4, 1), (np.nan, Kind.AMBIGUOUS, 4, 0), (3, Kind.CLEAR, 3, 3))
    found.loc[0, "share"] = 0.6
    found.loc[1, "n_valid"] = 1
    table = ambiguous(found).set_index(["format", "predicted"])
    assert table.loc[(QA, 4.0), ["n", "n_cases", "share", "n_several", "n_sure", "sure"]].to_list() == [
        2,
        2,
        1,
        2,
        1,
        0.5,
    ]
    one = table.loc[(CONVERSATION, 1.0)]
    assert (one["n"], one["n_cases"], one["n_several"]) == (1, 1, 0)
    assert np.isnan(one["sure"])
    assert confusion(found)["n"].sum() == 2


# ---------------------------------------------------------------- what is counted, what is left out


@given(st.integers(0, 200), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
@settings(max_examples=6)
def test_every_case_and_sample_is_accounted_for_once(seed, invalid):
    triage_data, found = study(seed, n_cases=30, invalid=invalid)
    table = accounted(triage_data, found)
    states = ("predicted", "unread", "no_level")
    assert (table["n_cases"] + table["n_no_response"] == 30).all()
    assert (table[[f"n_{kind}" for kind in Kind]].sum(axis=1) == table["n_cases"]).all()
    for kind in Kind:
        assert (table[[f"{kind}_{state}" for state in states]].sum(axis=1) == table[f"n_{kind}"]).all()
    for state in states:
        assert (table[[f"{kind}_{state}" for kind in Kind]].sum(axis=1) == table[f"n_{state}"]).all()
    assert (table[["samples_valid", "samples_unread", "samples_invalid"]].sum(axis=1) == table["samples"]).all()
    counted = confusion(found).groupby(["model", "format"], observed=True)["n"].sum()
    assert counted.to_list() == table["clear_predicted"].to_list()


def test_not_looked_at_and_no_level_are_told_apart():
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=10, invalid=1.0, share_panel=0)
    triage_data = described(triage_data)
    table = accounted(
        triage_data, joined(triage_data, predictions(triage_data, {QA: "parser", CONVERSATION: "nobody"}))
    )
    told = table.set_index(["model", "format"])[["clear_unread", "clear_no_level", "samples_unread", "samples_invalid"]]
    assert told.loc[("Alder-2", QA)].to_list() == [0, 10, 0, 50]
    assert told.loc[("Alder-2", CONVERSATION)].to_list() == [10, 0, 50, 0]


# ---------------------------------------------------------------- dangerous misses


def test_the_queue_of_the_published_matrices_is_their_cells_below_the_diagonal():
    triage_data = as_triaged()
    table = misses(triage_data, found_of(triage_data), judges=usual_judges(triage_data))
    assert list(table["rank"]) == sorted(table["rank"])
    assert (table["gold"] > table["predicted"]).all()
    for name, matrix in ((QA, GPT_QA), (CONVERSATION, GPT_CONVERSATION)):
        mine = table.loc[table["format"].eq(name)]
        for rank, (gold, predicted) in enumerate(WORST_FIRST):
            assert mine["rank"].eq(rank).sum() == matrix[gold - 1][predicted - 1]
    first = table.iloc[0]
    assert (first["model"], first["format"], first["gold"], first["predicted"]) == (MODEL, CONVERSATION, 4, 1)


@given(st.integers(0, 200))
@settings(max_examples=6)
def test_a_miss_shows_the_first_text_that_says_what_the_model_said(seed):
    triage_data, found = study(seed, n_cases=25, noise=1.4, n_samples=4)
    rng = np.random.default_rng(seed)
    triage_data.samples["has_text"] = rng.random(len(triage_data.samples)) < 0.6
    judges = usual_judges(triage_data)
    found = joined(triage_data, predictions(triage_data, judges))
    table = misses(triage_data, found.sample(frac=1, random_state=seed), judges=judges)
    pd.testing.assert_frame_equal(table, misses(triage_data, found, judges=judges))
    samples = triage_data.samples
    for miss in table.to_dict(orient="records"):
        here = (
            samples["row"].eq(miss["row"]) & samples["model"].eq(miss["model"]) & samples["format"].eq(miss["format"])
        )
        texts = samples.index[here & samples["has_text"]]
        saying = [place for place in texts if triage_data.levels[judges[miss["format"]]][place] == miss["predicted"]]
        assert miss["sample"] == (saying or [*texts, -1])[0]
    under = rates(confusion(found)).set_index("measure").loc[Measure.UNDER, "k"].sum()
    assert len(table) == under


def test_of_equal_misses_the_surer_one_comes_first():
    triage_data, found = study(4, n_cases=120, noise=1.4)
    table = misses(triage_data, found, judges=usual_judges(triage_data))
    assert len(table) > 10
    assert all(not group["share"].diff().gt(0).any() for _, group in table.groupby("rank"))


# ---------------------------------------------------------------- flips


def test_flips_of_the_published_cases_are_those_whose_answers_differ():
    triage_data = as_triaged()
    found = found_of(triage_data)
    wide = found.pivot(index="row", columns="format", values="predicted")
    table = flips(found)
    assert set(table["row"]) == set(wide.index[wide[QA].ne(wide[CONVERSATION])])
    assert table["crosses"].is_monotonic_decreasing
    crossing = (wide[QA].eq(4) != wide[CONVERSATION].eq(4)).sum()
    assert table["crosses"].sum() == crossing
    counts = flip_counts(found).iloc[0]
    assert counts[["n_both", "n_flipped", "n_crossing", "n"]].to_list() == [527, len(table), crossing, 527]
    assert counts[["under_qa", "under_conversation"]].to_list() == [43, 97]
    assert counts["only_conversation"] - counts["only_qa"] == 97 - 43
    assert counts["difference"] == pytest.approx((97 - 43) / 527)


def test_a_flip_says_whether_it_crosses_to_or_from_an_emergency():
    found = of_answers(
        (4, Kind.CLEAR, 4, 1), (2, Kind.CLEAR, 4, 3), (2, Kind.CLEAR, 1, 3), (np.nan, Kind.AMBIGUOUS, 1, 2), (3, Kind.CLEAR, 3, 3), (3, Kind.CLEAR, 3, 0)
    )  # fmt: skip
    table = flips(found).set_index("row")
    assert list(table.index) == [0, 1, 2, 3]  # both that cross first, the wider one before
    assert list(table["crosses"]) == [True, True, False, False]
    counts = flip_counts(found).iloc[0]
    assert counts[["n_both", "n_flipped", "n_lower", "n_higher", "n_crossing", "n"]].to_list() == [5, 4, 2, 2, 2, 4]
    # Too low: in qa alone A on B (case 2), in conversation alone A on D (case 0).
    assert counts[["under_qa", "under_conversation", "only_qa", "only_conversation"]].to_list() == [1, 1, 1, 1]
    assert len(in_both(found)) == 5


@pytest.mark.parametrize(("more", "less", "n"), [(86, 150, 300), (0, 0, 10), (6, 0, 20), (1, 9, 12)])
def test_the_paired_test_is_mcnemars_exact_test_and_its_interval_bonett_and_prices(more, less, n):
    rows = [(4, Kind.CLEAR, 4, 3)] * more + [(4, Kind.CLEAR, 3, 4)] * less + [(4, Kind.CLEAR, 4, 4)] * (n - more - less)
    counts = flip_counts(of_answers(*rows)).iloc[0]
    # McNemar's exact test is the binomial test of the discordant pairs; 86 of 236 gives 3.716e-5 (statsmodels' and our own reference value).
    wanted = binomtest(more, more + less).pvalue if more + less else 1
    assert counts["p"] == pytest.approx(wanted)
    if more + less == 236:
        assert counts["p"] == pytest.approx(3.716e-5, rel=1e-3)
    p, q = (more + 1) / (n + 2), (less + 1) / (n + 2)
    half = 1.959963985 * np.sqrt((p + q - (p - q) ** 2) / (n + 2))
    assert [counts["low"], counts["high"]] == pytest.approx([max(p - q - half, -1), min(p - q + half, 1)])
    assert counts["low"] <= counts["difference"] <= counts["high"]


def test_one_format_alone_has_no_difference():
    found = of_answers((4, Kind.CLEAR, 4, 0), (np.nan, Kind.AMBIGUOUS, 1, 2))
    counts = flip_counts(found).iloc[0]
    assert counts[["difference", "low", "high", "p"]].isna().all()
    assert counts["reason"] == NOT_BOTH
    assert (counts["n_both"], counts["n_flipped"]) == (1, 1)
    assert flips(found.iloc[:0]).empty
    assert flip_counts(found.iloc[:0]).empty


@pytest.mark.slow
def test_the_paired_interval_covers():
    """2,000 draws of 100 cases: 5 % too low in both, 12 % in conversation alone, 4 % in qa alone."""
    from evalcore.triage.cases import bonett_price

    draws = np.random.default_rng(5).multinomial(100, [0.05, 0.12, 0.04, 0.79], size=2000).astype(float)
    low, high = bonett_price(draws[:, 1], draws[:, 2], np.full(2000, 100.0))
    assert 0.93 < ((low <= 0.08) & (high >= 0.08)).mean() < 0.98


# ---------------------------------------------------------------- by group


@pytest.mark.parametrize("name", ["source", "gold", "strength", "language"])
def test_the_groups_of_clear_cases_add_up_to_all_of_them(name):
    triage_data, found = study(6, n_cases=90)
    table = by_group(triage_data, found, name)
    keys = ["model", "format", "measure"]
    whole = rates(confusion(found)).astype({"measure": str}).set_index(keys)[["k", "n"]]
    parts = table.astype({"measure": str}).groupby(keys, observed=True)[["k", "n"]].sum()
    assert parts.to_dict(orient="index") == whole.to_dict(orient="index")
    assert table["is_small"].equals(table["n"].lt(FEW))
    assert not table.duplicated(["model", "format", "group", "measure"]).any()
    shuffled = by_group(triage_data, found.sample(frac=1, random_state=1), name)
    pd.testing.assert_frame_equal(shuffled, table)


def test_groups_are_those_of_the_cases():
    triage_data, found = study(7, n_cases=90)
    of_case = triage_data.cases["source"].take(found["row"]).to_numpy()
    table = by_group(triage_data, found, "source").set_index(["model", "format", "group", "measure"])
    for source in ("clinic", "hotline", "vignettes"):
        alone = rates(confusion(found.loc[of_case == source])).set_index(["model", "format", "measure"])
        mine = table.xs(source, level="group")
        assert mine["k"].to_list() == alone["k"].to_list()
        assert mine["value"].to_numpy() == pytest.approx(alone["value"].to_numpy(), nan_ok=True)


def test_groups_stand_in_their_order():
    triage_data, found = study(8, n_cases=90)
    by_gold = by_group(triage_data, found, "gold")
    assert list(by_gold["group"].unique()) == ["A", "B", "C", "D"]
    assert NO_CLEAR_LEVEL not in set(by_gold["group"])
    strengths = list(by_group(triage_data, found, "strength")["group"].unique())
    assert strengths[0] == "unanimous"
    assert strengths.index("4-1") < strengths.index("3-2") < strengths.index("direct")
    assert NO_PANEL not in strengths

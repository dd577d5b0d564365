"""Expected harm of triage, the models' order over the ratio of the weights, and differences of models on the same cases."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, strategies as st
from scipy.stats import t, ttest_1samp

from evalcore.triage.bases import Basis, LevelsBy, ranked
from evalcore.triage.data import described
from evalcore.triage.harm import NOT_BOTH, Weights, changes, expected_harm, harm_differences, on_same_cases, orders
from evalcore.triage.predictions import joined, predictions, usual_judges
from evalcore.triage.rates import NO_CASE, NO_SPREAD, TOO_FEW, cells_of, confusion, of_matrices
from tests.triage_cases import CONVERSATION, QA, drawn
from tests.triage_matrices import GPT_QA, published

matrix = st.lists(st.integers(0, 4), min_size=16, max_size=16).map(
    lambda n: tuple(tuple(n[k : k + 4]) for k in (0, 4, 8, 12))
)
weight = st.floats(0, 20)


def cells(*matrices, name=QA) -> pd.DataFrame:
    """A model a matrix: M0, M1, ..."""
    keys = pd.DataFrame(
        {
            "model": pd.Categorical([f"M{k}" for k in range(len(matrices))]),
            "format": pd.Categorical([name] * len(matrices)),
        }
    )
    return cells_of(keys, np.array(matrices, dtype=float).reshape(-1, 4, 4))


TRIAGED = described(drawn(np.random.default_rng(0), n_cases=8)[0])


def study(seed: int):
    triage_data, _ = drawn(
        np.random.default_rng(seed),
        n_cases=70,
        models=("Alder-2", "Briar-1", "Clover-mini"),
        noise=0.9,
        invalid=0.5,
        n_samples=2,
    )
    triage_data = described(triage_data)
    return joined(triage_data, predictions(triage_data, usual_judges(triage_data)))


def test_harm_of_the_published_matrices():
    found = expected_harm(of_matrices(published())).set_index("format")
    # qa: 43 cases one step too low; steps too high 15 + 2*13 + 3*1 from A, 41 + 2*1 from B, 9 from C: 96.
    assert found.loc[QA, ["n_under", "steps_under", "n_over", "steps_over"]].to_list() == [43, 43, 80, 96]
    assert found.loc[QA, "harm"] == pytest.approx((5 * 43 + 96) / 527)
    assert pytest.approx(0.100569, abs=1e-6) == (96 - 43) / 527  # the published mean signed error
    # conversation: 34 + 2*8 + 9 + 3*7 + 2*1 + 38 = 120 steps too low, 6 + 2*4 + 7 + 2 = 23 too high.
    assert found.loc[CONVERSATION, ["steps_under", "steps_over"]].to_list() == [120, 23]
    assert found.loc[CONVERSATION, "harm"] == pytest.approx((5 * 120 + 23) / 527)
    plain = expected_harm(of_matrices(published()), Weights(steps=False)).set_index("format")["harm"]
    assert plain.to_dict() == pytest.approx({QA: (5 * 43 + 80) / 527, CONVERSATION: (5 * 97 + 19) / 527})


@given(matrix, weight, weight, st.booleans())
def test_harm_and_its_interval_are_those_of_the_cases_one_by_one(counts, under, over, steps):
    found = expected_harm(cells(counts), Weights(under, over, steps)).iloc[0]
    kinds = np.repeat(np.arange(16), np.ravel(counts))
    d = kinds % 4 - kinds // 4
    cost = np.where(d < 0, under, over) * (np.abs(d) if steps else (d != 0))
    assert found["harm"] == pytest.approx(cost.mean() if len(cost) else np.nan, nan_ok=True)
    if found["reason"]:
        assert np.isnan(found[["low", "high"]].astype(float)).all()
        return
    half = t.ppf(0.975, len(cost) - 1) * cost.std(ddof=1) / np.sqrt(len(cost))
    assert [found["low"], found["high"]] == pytest.approx(
        [max(cost.mean() - half, 0), min(cost.mean() + half, max(under, over) * (3 if steps else 1))],
        rel=1e-6,
        abs=1e-9,
    )
    assert found["of_under"] + found["of_over"] == pytest.approx(found["harm"])


def test_undefined_harm_says_why():
    none = np.zeros((4, 4))
    few, right = none.copy(), none.copy()
    few[3, 2], right[3, 3] = 2, 9
    found = expected_harm(cells(none, few, right)).set_index("model")
    assert found["reason"].to_dict() == {"M0": NO_CASE, "M1": TOO_FEW, "M2": NO_SPREAD}
    assert np.isnan(found.loc["M0", "harm"])
    assert found["harm"][["M1", "M2"]].to_list() == [5, 0]
    assert expected_harm(cells(none).iloc[:0]).empty


@pytest.mark.slow
def test_the_interval_covers():
    """2,000 draws of 100 cases from GPT-5.4's qa matrix."""
    draws = np.random.default_rng(6).multinomial(100, np.ravel(GPT_QA) / 527, size=2000).astype(float).reshape(-1, 4, 4)
    found = expected_harm(cells_of(pd.DataFrame({"model": range(2000), "format": "qa"}), draws))
    truth = expected_harm(of_matrices(published()))["harm"][0]
    assert 0.92 < ((found["low"] <= truth) & (truth <= found["high"])).mean() < 0.97


# ---------------------------------------------------------------- order over the ratio


def two_models() -> pd.DataFrame:
    """Of 10 cases, M0 sends 2 too low by one level; M1 sends 1 too low and 5 too high."""
    careless, careful = np.zeros((2, 4, 4))
    careless[3, 3], careless[3, 2] = 8, 2
    careful[3, 3], careful[3, 2], careful[0, 1] = 4, 1, 5
    return expected_harm(cells(careless, careful))


def test_two_models_change_places_where_their_lines_cross():
    found = changes(two_models())
    # 2 r = r + 5: r = 5; below it M0 does less harm. Harm there is 2 * 5 / 10.
    assert found[["format", "less_below", "less_above"]].to_numpy().tolist() == [[QA, "M0", "M1"]]
    assert found[["ratio", "harm"]].to_numpy()[0] == pytest.approx([5, 1])


def test_the_order_follows_the_ratio():
    table = orders(two_models(), [0, 4.99, 5, 5.01]).set_index(["model", "ratio"])
    assert table["place"].xs("M0").to_list() == [1, 1, 1, 2]
    assert table["place"].xs("M1").to_list() == [2, 2, 1, 1]
    assert table.loc[("M1", 4.99), "harm"] == pytest.approx((4.99 + 5) / 10)


@given(st.lists(matrix, min_size=2, max_size=5))
def test_between_two_changes_the_order_stays_and_at_each_it_changes(matrices):
    assume(all(np.sum(one) for one in matrices))
    table = expected_harm(cells(*matrices))
    found = changes(table)
    assert found["ratio"].gt(0).all()
    for change in found.to_dict(orient="records"):
        at = change["ratio"]
        harm = (
            orders(table, [at * 0.999, at, at * 1.001]).pivot(index="model", columns="ratio", values="harm").to_numpy()
        )
        names = list(orders(table, [at])["model"])
        below, above = names.index(change["less_below"]), names.index(change["less_above"])
        assert harm[below, 1] == pytest.approx(harm[above, 1])
        assert harm[below, 0] < harm[above, 0]
        assert harm[below, 2] > harm[above, 2]
    edges = np.concatenate([[0], found["ratio"].unique(), [found["ratio"].max() * 2 if len(found) else 1]])
    for low, high in pairwise(edges):
        if high - low > 1e-6:
            inside = orders(table, [low + (high - low) * share for share in (0.25, 0.5, 0.75)])
            assert inside.groupby("model", observed=True)["place"].nunique().eq(1).all()


def test_models_of_different_formats_and_without_cases_never_change_places():
    apart = pd.concat([two_models().iloc[:1], two_models().iloc[1:].assign(format=CONVERSATION)])
    assert changes(apart).empty
    none = expected_harm(cells(np.zeros((4, 4)), GPT_QA))
    assert changes(none).empty
    assert orders(none, [1.0]).set_index("model")["place"].isna().to_dict() == {"M0": True, "M1": False}
    assert orders(none, []).empty


# ---------------------------------------------------------------- differences on the same cases


@given(st.integers(0, 300), st.booleans())
def test_differences_are_those_of_the_cases_that_both_answered(seed, steps):
    found = study(seed % 20)
    table = harm_differences(found.sample(frac=1, random_state=seed), Weights(3, 0.5, steps))
    assert len(table) == 6
    clear = found.loc[found["kind"].eq("clear") & found["predicted"].notna()]
    d = clear["predicted"] - clear["gold"]
    cost = np.where(d < 0, 3, 0.5) * (d.abs() if steps else d.ne(0))
    wide = clear.assign(cost=cost).pivot(index=["format", "row"], columns="model", values="cost")
    for pair in table.to_dict(orient="records"):
        mine = wide.xs(pair["format"], level="format")
        gaps = (mine[pair["model_1"]] - mine[pair["model_2"]]).dropna()
        half = t.ppf(0.975, len(gaps) - 1) * gaps.std() / np.sqrt(len(gaps))
        assert pair["n"] == len(gaps)
        assert [pair["difference"], pair["low"], pair["high"]] == pytest.approx(
            [gaps.mean(), gaps.mean() - half, gaps.mean() + half]
        )
        assert pair["p"] == pytest.approx(ttest_1samp(gaps, 0).pvalue)
        assert pair["p_holm"] >= pair["p"]


def test_models_are_ranked_on_the_cases_that_all_of_them_answered():
    """Briar-1 answered easy cases alone: over its own cases it does less harm than Alder-2, on the same cases they do the same."""
    found = study(3)
    found = found.loc[found["kind"].eq("clear") & found["model"].isin(["Alder-2", "Briar-1"]) & found["format"].eq(QA)]
    alder = found.loc[found["model"].eq("Alder-2")].reset_index(drop=True)
    off = alder["predicted"].ne(alder["gold"])
    easy = alder.loc[~off].assign(model=pd.Categorical(["Briar-1"] * int((~off).sum()), found["model"].cat.categories))
    both = pd.concat([alder, easy], ignore_index=True)
    apart = expected_harm(confusion(both))["harm"]
    assert apart[0] > apart[1] == 0
    same = on_same_cases(both)
    assert set(same["row"]) == set(easy.loc[easy["predicted"].notna(), "row"])
    assert expected_harm(confusion(same))["harm"].tolist() == [0, 0]
    published_too = ranked(LevelsBy(Basis.JUDGE, replace(TRIAGED, published=published()), found), Weights(5, 1))
    assert set(published_too.harm["model"]) == {"Alder-2", "Briar-1"}  # of other cases, of another mix: no place


@given(st.integers(0, 300))
def test_the_same_cases_are_those_that_every_model_of_the_format_answered(seed):
    found = study(seed % 20).sample(frac=0.8, random_state=seed)
    known = found.loc[found["kind"].eq("clear") & found["predicted"].notna()]
    wanted = {
        (word, row)
        for word, part in known.groupby("format", observed=True)
        for row, models in part.groupby("row")["model"]
        if set(models) == set(part["model"])
    }
    same = on_same_cases(found)
    assert {(word, row) for word, row in zip(same["format"], same["row"], strict=True)} == wanted


def test_models_without_a_case_in_common_have_no_difference():
    found = study(1)
    apart = found.loc[np.where(found["model"].eq("Alder-2"), found["row"] % 2 == 0, found["row"] % 2 == 1)]
    table = harm_differences(apart).set_index(["format", "model_1", "model_2"])
    assert table.loc[(QA, "Alder-2", "Briar-1"), "reason"] == NOT_BOTH
    assert table.loc[(QA, "Alder-2", "Briar-1"), ["difference", "low", "high"]].isna().all()
    assert table.loc[(QA, "Briar-1", "Clover-mini"), "reason"] == ""
    assert harm_differences(found.iloc[:0]).empty

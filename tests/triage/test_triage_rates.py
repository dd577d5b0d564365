"""Confusion, rates and coefficients of triage: AcuityBench's check values, from its matrices and from cases, and what must always hold."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t

from evalcore.study.schema import Format
from evalcore.triage.data import NO_LEVEL, Kind, described
from evalcore.triage.predictions import joined, predictions
from evalcore.triage.rates import (
    NO_CASE,
    NO_SPREAD,
    ONE_LEVEL,
    RESTS_ON_ONE,
    SCORES,
    TOO_FEW,
    Measure,
    cells_of,
    confusion,
    matrices,
    of_matrices,
    rates,
    summary,
)
from tests.triage_cases import CONVERSATION, QA, drawn
from tests.triage_matrices import GPT_CONVERSATION, GPT_QA, JUDGES, as_triaged, found_of, published

COUNTS = {  # k of n: AcuityBench's tables, and sums over the matrices by hand
    QA: {
        "exact": (404, 527), "over": (80, 527), "under": (43, 527), "within_one": (512, 527), "over_possible": (80, 265),
        "under_possible": (43, 450), "missed_emergencies": (27, 262), "severe_over": (13 + 1 + 1, 527), "severe_under": (0, 527),
        "sent_home": (0, 262),
    },
    CONVERSATION: {
        "exact": (411, 527), "over": (19, 527), "under": (97, 527), "within_one": (411 + 6 + 34 + 7 + 9 + 2 + 38, 527), "over_possible": (19, 265),
        "under_possible": (97, 450), "missed_emergencies": (7 + 1 + 38, 262), "severe_over": (4, 527), "severe_under": (8 + 7 + 1, 527),
        "sent_home": (7, 262),
    },
}  # fmt: skip
# scikit-learn 1.9.1: f1_score(gold, predicted, average="macro"), and cohen_kappa_score(gold, predicted, labels=[0, 1, 2, 3], weights=...)
# with None, "linear", "quadratic".
SCIKIT = {
    QA: (0.703673976, 0.656948252, 0.771623202, 0.860414877),
    CONVERSATION: (0.734100357, 0.684735466, 0.785831413, 0.854105302),
}
WITHOUT_D = ((0, 0, 0, 0), (3, 4, 0, 0), (0, 2, 5, 0), (0, 0, 0, 0))
SCIKIT_WITHOUT_D = (0.482905983, 0.411764706, 0.5, 0.615384615)


@pytest.fixture(scope="module")
def cells_of_cases() -> pd.DataFrame:
    return confusion(found_of(as_triaged()))


@pytest.fixture(params=["matrices", "cases"])
def cells(request, cells_of_cases) -> pd.DataFrame:
    return of_matrices(published()) if request.param == "matrices" else cells_of_cases


def frame_of(rows) -> pd.DataFrame:
    """Joined predictions: (model, format, gold, predicted), gold 0 for an ambiguous case, predicted 0 for none."""
    table = pd.DataFrame(list(rows), columns=["model", "format", "gold", "predicted"]).astype(
        {"gold": float, "predicted": float}
    )
    kind = np.select([table["gold"].eq(0), table["gold"].mod(1).gt(0)], [Kind.AMBIGUOUS, Kind.BOUNDARY], Kind.CLEAR)
    return table.assign(
        model=pd.Categorical(table["model"], categories=["Alder-2", "Briar-1"]),
        format=pd.Categorical(table["format"], categories=list(Format)),
        gold=table["gold"].replace(0, np.nan),
        predicted=table["predicted"].replace(0, np.nan),
        kind=pd.Categorical(kind, categories=list(Kind)),
    )


rows_of_cases = st.lists(
    st.tuples(
        st.sampled_from(["Alder-2", "Briar-1"]),
        st.sampled_from([QA, CONVERSATION]),
        st.sampled_from([0, 1, 1.5, 2, 3, 3.5, 4]),
        st.integers(0, 4),
    ),
    max_size=40,
)
matrix = st.lists(st.integers(0, 4), min_size=16, max_size=16).map(
    lambda n: tuple(tuple(n[k : k + 4]) for k in (0, 4, 8, 12))
)


# ---------------------------------------------------------------- check values


def test_the_published_rates_come_out_of_matrices_and_of_cases(cells):
    found = rates(cells)
    assert list(found["format"].unique()) == [QA, CONVERSATION]
    for name, wanted in COUNTS.items():
        mine = found.loc[found["format"].eq(name)].set_index("measure")
        assert {measure: (mine.loc[measure, "k"], mine.loc[measure, "n"]) for measure in mine.index} == wanted
        assert mine["value"].to_numpy() == pytest.approx([k / n for k, n in wanted.values()], abs=1e-12)
    qa = found.loc[found["format"].eq(QA)].set_index("measure")["value"]
    told = {
        "exact": 0.766603,
        "over": 0.151803,
        "under": 0.081594,
        "within_one": 0.971537,
        "over_possible": 0.301887,
        "under_possible": 0.095556,
    }
    assert {name: qa[name] for name in told} == pytest.approx(told, abs=1e-6)


def test_the_published_intervals_are_wilsons(cells):
    bounds = rates(cells).set_index(["format", "measure"])[["low", "high"]]
    assert bounds.loc[(QA, "under")].to_numpy() == pytest.approx([0.061139, 0.108105], abs=1e-6)
    assert bounds.loc[(CONVERSATION, "sent_home")].to_numpy() == pytest.approx([0.013001, 0.054112], abs=1e-6)
    assert bounds.loc[(QA, "sent_home")].to_numpy() == pytest.approx([0, 0.014450], abs=1e-6)


def test_the_published_coefficients_come_out_of_matrices_and_of_cases(cells):
    found = summary(cells).set_index("format")
    for name, wanted in SCIKIT.items():
        assert found.loc[name, list(SCORES[:4])].to_list() == pytest.approx(wanted, abs=1e-8)
    assert found.loc[QA, "mean_signed"] == pytest.approx(0.100569, abs=1e-6)
    assert found.loc[CONVERSATION, "mean_signed"] == pytest.approx(
        (6 + 2 * 4 + 7 + 2 - 34 - 16 - 9 - 21 - 2 - 38) / 527
    )
    assert found[["n", "n_levels"]].to_numpy().tolist() == [[527, 4], [527, 4]]


def test_a_cell_says_its_share_of_the_cases_with_that_gold(cells):
    row = cells.loc[cells["format"].eq(CONVERSATION) & cells["gold"].eq(4) & cells["predicted"].eq(1)].iloc[0]
    assert (row["n"], row["n_gold"]) == (7, 262)
    assert [row["share"], row["low"], row["high"]] == pytest.approx([7 / 262, 0.013001, 0.054112], abs=1e-6)
    _, counts = matrices(cells)
    assert counts.tolist() == [[list(line) for line in GPT_QA], [list(line) for line in GPT_CONVERSATION]]


def test_denominators_are_named():
    found = rates(of_matrices(published())).set_index(["format", "measure"])["denominator"]
    assert found[QA].to_dict() == dict.fromkeys(Measure, "of all 527 cases") | {
        "over_possible": "of 265 cases below D", "under_possible": "of 450 cases above A",
        "missed_emergencies": "of 262 emergencies", "sent_home": "of 262 emergencies",
    }  # fmt: skip
    of_one = rates(confusion(frame_of([("Alder-2", QA, 4, 3)]))).set_index("measure")["denominator"]
    assert (of_one["exact"], of_one["sent_home"]) == ("of the one case", "of the one emergency")


# ---------------------------------------------------------------- what must hold


@given(rows_of_cases)
def test_exact_over_and_under_add_up_to_one(rows):
    found = rates(confusion(frame_of(rows))).pivot(index=["model", "format"], columns="measure")
    if not len(found):
        return
    parts = [Measure.EXACT, Measure.OVER, Measure.UNDER]
    n = found["n", Measure.EXACT]
    assert (found["k"][parts].sum(axis=1) == n).all()
    assert found["value"][parts].sum(axis=1, skipna=False).loc[n.gt(0)].to_numpy() == pytest.approx(1)
    assert found["value"][parts].isna().all(axis=1).equals(n.eq(0))


@given(rows_of_cases, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, chance):
    shuffled = chance.sample(rows, len(rows))
    one, other = confusion(frame_of(rows)), confusion(frame_of(shuffled))
    pd.testing.assert_frame_equal(one, other)
    again = one.sample(frac=1, random_state=chance.randrange(1000))
    pd.testing.assert_frame_equal(rates(again), rates(one))
    pd.testing.assert_frame_equal(summary(again), summary(one))


@given(rows_of_cases)
def test_cells_are_the_plain_counts_of_clear_cases_with_a_prediction(rows):
    found = confusion(frame_of(rows))
    assert len(found) == 16 * len({row[:2] for row in rows})
    for row in found.to_dict(orient="records"):
        assert row["n"] == rows.count((row["model"], row["format"], row["gold"], row["predicted"]))


@given(matrix)
def test_every_interval_holds_its_value(counts):
    for table in (
        rates(of_matrices(published(qa=counts))),
        of_matrices(published(qa=counts)).rename(columns={"share": "value"}),
    ):
        known = table.loc[table["value"].notna()]
        assert known["low"].between(0, known["value"]).all()
        assert known["high"].between(known["value"], 1).all()
        assert table.loc[table["value"].isna(), ["low", "high"]].isna().all(axis=None)


def test_invalid_answers_change_only_what_is_counted_as_left_out():
    triage_data, _ = drawn(np.random.default_rng(2), n_cases=60, share_panel=0, invalid=0)
    triage_data = described(triage_data)
    found = joined(triage_data, predictions(triage_data, JUDGES))
    more = triage_data.samples.assign(sample_index=triage_data.samples["sample_index"] + 5)
    both = pd.concat([triage_data.samples, more], ignore_index=True)
    levels = pd.concat(
        [triage_data.levels, triage_data.levels.mask(triage_data.levels.notna(), NO_LEVEL)], ignore_index=True
    )
    padded = type(triage_data)(**{**vars(triage_data), "samples": both, "levels": levels})
    again = joined(padded, predictions(padded, JUDGES))
    assert again["n_invalid"].eq(5).all()
    pd.testing.assert_frame_equal(confusion(again), confusion(found))
    spoilt = type(triage_data)(
        **{**vars(triage_data), "levels": triage_data.levels.mask(triage_data.levels.notna(), NO_LEVEL)}
    )
    assert confusion(joined(spoilt, predictions(spoilt, JUDGES)))["n"].eq(0).all()


# ---------------------------------------------------------------- undefined, and intervals


def test_without_a_case_there_is_no_value_and_a_reason():
    none = confusion(frame_of([("Alder-2", QA, 4, 0), ("Alder-2", QA, 0, 3)]))
    assert len(none) == 16
    assert none["share"].isna().all()
    found = rates(none)
    assert found[["value", "low", "high"]].isna().all(axis=None)
    assert set(found["reason"]) == {NO_CASE}
    assert set(summary(none).filter(like="_reason").iloc[0]) == {NO_CASE}
    assert summary(none)[list(SCORES)].isna().all(axis=None)
    for table in (confusion(frame_of([])), of_matrices(published().iloc[:0])):
        assert table.empty
        assert rates(table).empty
        assert summary(table).empty
        assert {"measure", "value", "reason"} <= set(rates(table))


def test_a_measure_without_its_cases_says_which_are_missing():
    found = rates(confusion(frame_of([("Alder-2", QA, 1, 1)] * 6))).set_index("measure")
    assert found["reason"].loc[found["value"].isna()].to_dict() == {
        "under_possible": "no case has a gold above A", "missed_emergencies": "no case is an emergency", "sent_home": "no case is an emergency",
    }  # fmt: skip
    one = summary(confusion(frame_of([("Alder-2", QA, 1, 1)] * 6))).iloc[0]
    assert np.isnan(one[["kappa", "kappa_linear", "kappa_quadratic"]].astype(float)).all()
    assert one["kappa_reason"] == ONE_LEVEL
    assert (one["macro_f1"], one["mean_signed"], one["n_levels"]) == (1, 0, 1)
    assert one["macro_f1_reason"] == NO_SPREAD


def test_levels_that_occur_nowhere_are_no_part_of_macro_f1():
    found = summary(of_matrices(published(qa=WITHOUT_D))).iloc[0]
    assert found[list(SCORES[:4])].to_list() == pytest.approx(SCIKIT_WITHOUT_D, abs=1e-8)
    assert found["n_levels"] == 3


def test_few_cases_have_no_interval():
    few = summary(confusion(frame_of([("Alder-2", QA, 1, 1), ("Alder-2", QA, 2, 3)]))).iloc[0]
    assert few["mean_signed"] == 0.5
    assert few["mean_signed_reason"] == TOO_FEW
    assert np.isnan(few["mean_signed_low"])
    rest = [("Alder-2", QA, 1, 1)] * 6 + [("Alder-2", QA, 1, 2)]
    assert summary(confusion(frame_of(rest))).iloc[0]["kappa_reason"] == RESTS_ON_ONE


@settings(max_examples=8)
@given(matrix)
def test_the_jackknife_is_that_of_leaving_out_each_case_in_turn(counts):
    whole = np.array(counts)
    found = summary(of_matrices(published(qa=counts))).iloc[0]
    n = whole.sum()
    cases = np.repeat(np.arange(16), whole.ravel())
    left = [np.bincount(np.delete(cases, place), minlength=16).reshape(4, 4) for place in range(n)]
    without = summary(cells_of(pd.DataFrame({"model": range(n), "format": "qa"}), np.array(left).reshape(n, 4, 4)))
    for name in SCORES:
        if found[f"{name}_reason"]:
            continue
        se = np.sqrt((n - 1) / n * ((without[name] - found[name]) ** 2).sum())
        half = t.ppf(0.975, n - 1) * se
        least, most = {"macro_f1": (0, 1), "mean_signed": (-3, 3)}.get(name, (-1, 1))
        wanted = [max(found[name] - half, least), min(found[name] + half, most)]
        if "kappa" in name and abs(found[name]) < 1:
            half = half / (1 - found[name] ** 2)
            wanted = [np.tanh(np.arctanh(found[name]) + side * half) for side in (-1, 1)]
        assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(wanted)


def test_one_cell_twice_is_an_error():
    cells = of_matrices(published())
    with pytest.raises(ValueError, match=r"expected each cell once, got GPT-5\.4 qa twice"):
        rates(pd.concat([cells, cells]))


@pytest.mark.slow
def test_the_jackknife_covers():
    """Of 2,000 matrices of 200 cases drawn from GPT-5.4's conversation matrix, about 95 % of the intervals hold its kappa."""
    rng = np.random.default_rng(11)
    shares = np.array(GPT_CONVERSATION).ravel() / 527
    truth = summary(of_matrices(published())).set_index("format").loc[CONVERSATION]
    draws = rng.multinomial(200, shares, size=2000).astype(float).reshape(-1, 4, 4)
    drawn = pd.DataFrame({"model": [f"draw {number}" for number in range(2000)], "format": CONVERSATION})
    found = summary(cells_of(drawn, draws))
    for name in SCORES:
        held = (found[f"{name}_low"] <= truth[name]) & (truth[name] <= found[f"{name}_high"])
        assert 0.93 < held.mean() < 0.97, name

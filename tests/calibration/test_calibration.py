"""Reliability, debiased error and Brier's score in its parts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.special import ndtr

from evalcore.calibration.reliability import ALIKE, NOTHING, ONE_CLUSTER, calibration_error, reliability
from evalcore.stats.intervals import share_interval

RNG = 20_261_122


def chance():
    return np.random.default_rng(RNG)


def items(confidence, right, cluster=None, group="judge", **more):
    n = len(confidence)
    return pd.DataFrame(
        {"confidence": confidence, "right": right, "cluster": range(n) if cluster is None else cluster, "group": group, **more}
    )  # fmt: skip


def error_of(frame, **more):
    return calibration_error(frame, rng=chance(), **more).iloc[0]


def fixed():
    """Sixty items with tied confidences, as in the reference run of scikit-learn."""
    number = np.arange(60) * 37 % 60
    return items(np.round((number + 0.5) / 60, 1) * 0.9 + 0.05, (number * 7 % 60 < number * 0.5 + 12).astype(float))


drawn_items = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 0.5, 0.55, 0.8, 1.0]), st.sampled_from([0.0, 0.5, 1.0]),
        st.integers(0, 5), st.sampled_from("ab"), st.sampled_from([1.0, 2.0]),
    ),
    min_size=1, max_size=60,
).map(lambda rows: pd.DataFrame(rows, columns=["confidence", "right", "cluster", "group", "weight"]))  # fmt: skip


# ---------------------------------------------------------------- bins


def test_bins_hold_equally_many_items_and_their_wilson_interval():
    frame = items(np.arange(100) / 100, np.arange(100) % 3 == 0)
    found = reliability(frame, n_bins=4)
    assert found["n"].tolist() == [25] * 4
    assert found["bin"].tolist() == [0, 1, 2, 3]
    first = frame.iloc[:25]
    assert found["mean_confidence"][0] == pytest.approx(0.12)  # (0 + ... + 24) / 2500
    wanted = share_interval(first["right"].to_numpy(), first["cluster"])
    assert found.loc[0, ["share_right", "low", "high"]].tolist() == pytest.approx([9 / 25, wanted.low, wanted.high])


def test_a_bars_interval_is_clustered():
    frame = items(np.full(40, 0.5), np.repeat([1.0, 0.0, 1.0, 1.0, 0.0], 8), np.repeat(range(5), 8))
    wanted = share_interval(frame["right"].eq(1).to_numpy(), frame["cluster"])
    bar = reliability(frame).iloc[0]
    assert (bar["low"], bar["high"]) == pytest.approx((wanted.low, wanted.high))
    assert bar["n_clusters"] == 5


@given(drawn_items, st.integers(1, 12))
def test_items_of_one_confidence_stay_together_and_none_is_lost(frame, n_bins):
    found = reliability(frame, n_bins=n_bins)
    assert found["n"].sum() == len(frame)
    for group, bars in found.groupby("group"):
        mine = frame.loc[frame["group"].eq(group)]
        assert len(bars) <= max(1, min(n_bins, mine["cluster"].nunique() // 5))
        assert (bars["lowest"].to_numpy()[1:] > bars["highest"].to_numpy()[:-1]).all()
        for bar in bars.to_dict(orient="records"):
            held = mine.loc[mine["confidence"].between(bar["lowest"], bar["highest"])]
            assert len(held) == bar["n"]
            assert bar["share_right"] == pytest.approx(np.average(held["right"], weights=held["weight"]))
            assert bar["low"] <= bar["share_right"] <= bar["high"]


# ---------------------------------------------------------------- error


def test_the_debiased_error_is_its_formula():
    # two bins of ten: .2 with 3 right, .9 with 6 right
    frame = items(np.repeat([0.2, 0.9], 10), [1.0] * 3 + [0.0] * 7 + [1.0] * 6 + [0.0] * 4)
    terms = [(0.2 - 0.3) ** 2 - 0.3 * 0.7 / 9, (0.9 - 0.6) ** 2 - 0.6 * 0.4 / 9]
    found = error_of(frame, n_bins=2)
    assert found["error"] == pytest.approx(np.sqrt(sum(terms) / 2))
    assert found["ece"] == pytest.approx((0.1 + 0.3) / 2)
    assert found["difference"] == pytest.approx(0.55 - 0.45)


def test_an_error_that_chance_explains_is_floored_at_0():
    found = error_of(items(np.full(20, 0.5), [1.0, 0.0] * 10))
    assert found["error"] == 0
    assert found["ece"] == 0
    assert found["null"] > 0.05


def test_items_that_repeat_their_example_say_no_more_than_one():
    one = items([0.2] * 20 + [0.9] * 20, ([1.0] * 7 + [0.0] * 13) * 2)
    often = pd.concat([one] * 6, ignore_index=True)
    single, repeated = error_of(one, n_bins=2), error_of(often, n_bins=2)
    for name in ("error", "error_low", "error_high", "brier", "brier_low", "brier_high"):
        assert repeated[name] == pytest.approx(single[name])
    assert error_of(often.assign(cluster=range(len(often))), n_bins=2)["error"] > single["error"]


def test_the_jackknife_is_that_of_leaving_each_cluster_out():
    frame = fixed().assign(cluster=np.arange(60) % 13, weight=np.arange(60) % 3 + 1)
    frame["confidence"] = np.where(frame["confidence"].lt(0.5), 0.3, 0.8)  # two bins, whoever is left out
    square = error_of(frame, n_bins=2)["error"] ** 2
    without = [error_of(frame.loc[frame["cluster"].ne(left)], n_bins=2, n_draws=0)["error"] ** 2 for left in range(13)]
    variance = 12 / 13 * ((without - np.mean(without)) ** 2).sum()
    half = 2.178813 * np.sqrt(variance)  # t(12)
    found = error_of(frame, n_bins=2)
    assert min(without) > 0  # none is floored
    assert found["error_high"] == pytest.approx(np.sqrt(square + half), rel=1e-6)
    assert found["error_low"] == pytest.approx(np.sqrt(max(square - half, 0)), rel=1e-6)


@pytest.mark.parametrize(("n", "wanted"), [(100, 0.12), (500, 0.06), (2_000, 0.03)])
def test_plain_error_of_perfectly_calibrated_data_is_the_null(n, wanted):
    # 15 bins of equal mass, confidences even over 0..1: mean |binomial / n - p| is about .8 sqrt(p q 15 / n), p q = 1/6
    found = error_of(items((np.arange(n) + 0.5) / n, np.arange(n) % 2), n_bins=15)
    assert found["null"] == pytest.approx(wanted, abs=0.012)
    assert found["null_high"] > found["null"]


def test_the_null_grows_with_the_clusters():
    rng = chance()
    confidence = np.repeat(rng.random(200), 10)
    together = np.repeat(rng.random(200), 10) < confidence  # all ten of an example alike
    frame = items(confidence, together.astype(float), np.repeat(range(200), 10))
    alone = frame.assign(right=(rng.random(2_000) < confidence).astype(float))
    assert error_of(frame)["null"] / error_of(alone)["null"] == pytest.approx(np.sqrt(10), rel=0.25)


# ---------------------------------------------------------------- Brier


def test_brier_and_its_isotonic_parts_agree_with_scikit_learn():
    # scikit-learn 1.9.1: brier_score_loss(y, p), and of IsotonicRegression().fit(p, y).predict(p)
    found = error_of(fixed())
    assert found["brier"] == pytest.approx(0.27085, abs=1e-9)
    assert found["miscalibration"] == pytest.approx(0.040294444444444466, abs=1e-9)
    assert found["discrimination"] == pytest.approx(0.01694444444444443, abs=1e-9)
    assert found["uncertainty"] == pytest.approx(0.2475, abs=1e-9)


@given(drawn_items)
def test_the_parts_add_up_and_none_is_negative(frame):
    found = calibration_error(frame, rng=chance(), n_draws=3)
    total = found["miscalibration"] - found["discrimination"] + found["uncertainty"]
    assert total.to_numpy() == pytest.approx(found["brier"].to_numpy())
    assert found[["error", "ece", "miscalibration", "discrimination", "uncertainty"]].fillna(0).ge(0).to_numpy().all()


@given(drawn_items, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(frame, luck):
    order = list(range(len(frame)))
    luck.shuffle(order)
    one, other = (calibration_error(f, rng=chance(), n_draws=5) for f in (frame, frame.iloc[order]))
    pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(reliability(frame), reliability(frame.iloc[order]))


@given(drawn_items)
def test_a_weight_of_two_is_the_item_twice_in_its_cluster(frame):
    doubled = pd.concat([frame, frame.loc[frame["weight"].eq(2)]], ignore_index=True).assign(weight=1.0)
    one, other = (calibration_error(f, rng=chance(), n_bins=1, n_draws=2) for f in (frame, doubled))
    names = [
        "mean_confidence",
        "share_right",
        "difference",
        "brier",
        "miscalibration",
        "error",
        "error_high",
        "brier_low",
    ]
    for name in names:
        assert one[name].to_numpy() == pytest.approx(other[name].to_numpy(), nan_ok=True, abs=1e-7)


# ---------------------------------------------------------------- what has no value


def test_without_confidence_there_is_no_value_and_the_reason():
    frame = items(
        [np.nan, np.nan, 0.5],
        [1.0, 0.0, np.nan],
        group=["a", "a", "b"],
        refused=["Nobody has said.", "Nobody has said.", ""],
    )
    found = calibration_error(frame, rng=chance())
    assert found["undefined"].tolist() == ["Nobody has said.", NOTHING]
    assert found["n"].tolist() == [0, 0]
    assert found["n_left_out"].tolist() == [2, 1]
    assert found[["error", "error_low", "ece", "null", "brier", "brier_high", "difference"]].isna().to_numpy().all()
    assert reliability(frame).empty


def test_of_one_example_alone_nothing_is_known_of_others():
    found = error_of(items([0.2, 0.9, 0.9], [0.0, 1.0, 0.0], cluster=[7, 7, 7]))
    assert found["undefined"] == ONE_CLUSTER
    assert np.isnan(found[["error", "error_low", "brier_low"]].astype(float)).all()
    assert found["brier"] == pytest.approx((0.04 + 0.01 + 0.81) / 3)


def test_where_every_example_is_off_by_the_same_there_is_no_interval_and_the_reason():
    found = error_of(items(np.full(30, 0.9), np.zeros(30)))
    assert found["difference"] == pytest.approx(0.9)
    assert np.isnan(found["difference_low"])
    assert found["undefined"] == ALIKE
    assert error_of(items(np.full(30, 0.9), [0.0] * 29 + [1.0]))["undefined"] == ""


def test_an_empty_frame_gives_empty_tables():
    nothing = items([], [])
    assert reliability(nothing).empty
    assert calibration_error(nothing, rng=chance()).empty


# ---------------------------------------------------------------- coverage, slow

N_DRAWS = 1_000


def clustered(rng, n_clusters, shift):
    """Eight items an example, whose luck has an intraclass correlation of about .3; right with probability confidence - shift."""
    size = n_clusters * 8
    cluster = np.repeat(np.arange(n_clusters), 8)
    confidence = np.round(rng.uniform(0.6, 1, size), 2)
    p = np.clip(confidence - shift, 0.01, 0.99)
    luck = np.sqrt(0.5) * rng.normal(size=n_clusters)[cluster] + np.sqrt(0.5) * rng.normal(size=size)
    return items(confidence, (ndtr(luck) < p).astype(float), cluster), p


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [60, 200])
def test_bars_cover_what_is_right_in_their_bin(n_clusters):
    rng = chance()
    held = []
    for _ in range(N_DRAWS):
        frame, p = clustered(rng, n_clusters, 0.1)
        bars = reliability(frame, n_bins=5)
        places = np.searchsorted(bars["lowest"].to_numpy(), frame["confidence"].to_numpy(), side="right") - 1
        true = np.bincount(places, p) / np.bincount(places)
        held.append(bars["low"].le(true) & bars["high"].ge(true))
    assert 0.93 <= np.mean(held) <= 0.975


@pytest.mark.slow
def test_the_intervals_of_error_brier_and_difference_cover():
    rng = chance()
    truth = error_of(clustered(np.random.default_rng(1), 40_000, 0.15)[0], n_bins=5, n_draws=0)
    held = {name: [] for name in ("error", "brier", "difference", "miscalibration")}
    means = []
    for _ in range(N_DRAWS):
        found = error_of(clustered(rng, 150, 0.15)[0], n_bins=5, n_draws=0)
        means.append(found["error"])
        for name, of in held.items():
            of.append(found[f"{name}_low"] <= truth[name] <= found[f"{name}_high"])
    for name, of in held.items():
        assert 0.92 <= np.mean(of) <= 0.975, name
    assert np.mean(means) == pytest.approx(truth["error"], abs=0.006)

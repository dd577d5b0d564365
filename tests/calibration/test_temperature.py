"""Temperature scaling, fitted where it is not judged."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from evalcore.calibration.reliability import calibration_error, scaled
from tests.calibration.test_calibration import fixed, items

SEED = 20_261_124


def chance():
    return np.random.default_rng(SEED)


def over_confident(n=3_000, temperature=2.0):
    """Labels whose true probability is the stated one, cooled by the temperature."""
    rng = chance()
    stated = np.round(expit(rng.normal(1.5, 1.5, n)), 3).clip(0.01, 0.99)
    return items(stated, (rng.random(n) < expit(logit(stated) / temperature)).astype(float), np.arange(n) // 3)


def test_the_temperature_agrees_with_scikit_learns_logistic_regression():
    # scikit-learn 1.9.1: 1 / LogisticRegression(C=inf, fit_intercept=False, tol=1e-12).fit(logit(p), y).coef_; log_loss(y, p)
    found = scaled(fixed(), rng=chance())[0].iloc[0]
    assert found["temperature"] == pytest.approx(4.44352843, rel=1e-4)
    assert found["log_loss_before"] == pytest.approx(0.7930608206322545, abs=1e-9)
    assert found["brier_before"] == pytest.approx(0.27085)


def test_over_confidence_is_found_and_taken_back():
    found = scaled(over_confident(), rng=chance())[0].iloc[0]
    assert found["temperature"] == pytest.approx(2, rel=0.1)
    assert found["temperature_low"] <= found["temperature"] <= found["temperature_high"]
    assert found["error_before"] > 0.08
    assert found["error_after"] < 0.03
    assert found["brier_change_high"] < 0
    assert found["log_loss_change_high"] < 0
    assert found["log_loss_after"] - found["log_loss_before"] == pytest.approx(found["log_loss_change"])


def test_each_item_is_scaled_by_what_the_other_folds_say():
    frame = over_confident(300)
    found = scaled(frame, rng=chance())
    table, after = found[0].iloc[0], found[1]["confidence"]
    used = logit(frame["confidence"]) / logit(after)
    used = used.loc[frame["confidence"].sub(0.5).abs().gt(0.01)]
    by_cluster = used.groupby(frame["cluster"])
    assert by_cluster.max().to_numpy() == pytest.approx(by_cluster.min().to_numpy(), rel=1e-6)  # a cluster has one fold
    of_folds = used.round(6).unique()
    assert len(of_folds) == 5
    assert (of_folds.min(), of_folds.max()) == pytest.approx(
        (table["temperature_low"], table["temperature_high"]), abs=1e-5
    )


def test_scaling_changes_no_order_and_keeps_one_half():
    frame = items(np.tile([0.2, 0.5, 0.9], 20), [0, 1, 1, 0, 0, 1] * 10, np.repeat(range(20), 3))
    after = scaled(frame, rng=chance())[1]["confidence"]
    assert after[frame["confidence"].eq(0.5)].to_numpy() == pytest.approx(0.5)
    assert (after[frame["confidence"].eq(0.2)] < 0.5).all()
    assert (after[frame["confidence"].eq(0.9)] > 0.5).all()


def test_the_order_of_rows_does_not_matter_and_folds_are_seeded():
    frame = over_confident(200)
    one, same = scaled(frame, rng=chance())[0], scaled(frame, rng=chance())[0]
    pd.testing.assert_frame_equal(one, same)
    shuffled = scaled(frame.sample(frac=1, random_state=1), rng=chance())[0]
    assert shuffled["temperature"][0] == pytest.approx(one["temperature"][0], rel=1e-6)


def test_the_scaled_items_give_the_error_that_the_table_says():
    found = scaled(over_confident(600), rng=chance())
    assert calibration_error(found[1], rng=chance())["error"][0] == found[0]["error_after"][0]


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (items([0.2, 0.9], [0.0, 1.0]), "fewer than 5"),
        (items([0.7] * 10, [1.0] * 10), "is right"),
        (items([0.7] * 10, [0.0] * 10), "is wrong"),
        (items([np.nan], [1.0], refused=["Nobody has said."]), "Nobody has said."),
    ],
)
def test_without_a_temperature_there_is_no_value_and_the_reason(frame, why):
    found = scaled(frame, rng=chance())
    table = found[0].iloc[0]
    assert why in table["undefined"]
    assert table[["temperature", "temperature_low", "error_after", "brier_after", "log_loss_change"]].isna().all()
    assert found[1]["confidence"].isna().all()


def test_confidences_of_0_and_1_cost_much_and_not_without_end():
    found = scaled(items([0.0, 1.0] * 10, [1.0, 0.0, 0.0, 1.0] * 5), rng=chance())[0].iloc[0]
    assert np.isfinite(found["log_loss_before"])
    assert found["log_loss_after"] < found["log_loss_before"]

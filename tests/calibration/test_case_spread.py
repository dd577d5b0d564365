"""The spread of a model's samples beside the panel's."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import entropy

from evalcore.calibration import case_spread
from evalcore.calibration.confidence import own_confidence
from evalcore.study.schema import PARSER
from evalcore.triage import data as frames
from evalcore.triage.data import LEVELS, NO_LEVEL, Kind
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests.triage_cases import QA, drawn

SEED = 20_261_123
JUDGES = {QA: PARSER}


def chance(more=0):
    return np.random.default_rng(SEED + more)


def told(votes, samples, **columns):
    """Described cases, one line of votes and of samples (levels as words, "-": invalid) each, all of one model, asked as qa."""
    n, n_samples = len(votes), max(len(line.split(",")) for line in samples)
    triage_data, _ = drawn(chance(), n_cases=n, models=["Alder-2"], n_samples=n_samples)
    rows = [(row, place, LEVELS["remove" if word == "Remove" else word])
            for row, line in enumerate(votes) for place, word in enumerate(line.split(","), start=1) if word]  # fmt: skip
    said = {
        (row, place): NO_LEVEL if word == "-" else LEVELS[word]
        for row, line in enumerate(samples)
        for place, word in enumerate(line.split(","))
    }
    of_qa = triage_data.samples["format"].eq(QA)
    places = zip(triage_data.samples["row"], triage_data.samples["sample_index"], of_qa, strict=True)
    level = [said.get((row, place), np.nan) if qa else np.nan for row, place, qa in places]
    frame = pd.DataFrame(rows, columns=["row", "place", "vote"]).assign(rater="P")
    return frames.described(
        replace(
            triage_data,
            cases=triage_data.cases.assign(**columns),
            votes=frame.astype({"row": int, "vote": float}),
            levels=pd.DataFrame({PARSER: np.array(level, dtype=np.float32)}),
        )
    )


def spread_of(triage_data, judges=JUDGES, more=0):
    own = own_confidence(predictions(triage_data, judges))
    return case_spread.case_spread(triage_data, judges, own, rng=chance(more))


CHECKED = [
    ("C,C,C,C/D,D", "D,D,D,C,D", 4, 0.3, 0.881291, 0.721928),
    ("A,B,C,C,D", "C,C,C,C,C", 3, 0.4, 1.921928, 0),
    ("A,A,A,A,A", "B,B,A,A,C", 2, 0, 0, 1.521928),
    ("A,A/B,Remove,D,D", "A,A,D,D,B", 4, 0.5, 1.405639, 1.521928),
]


def test_the_check_values_of_the_design_to_six_digits():
    found = spread_of(told([row[0] for row in CHECKED], [row[1] for row in CHECKED])).sort_values("row")
    names = ["predicted", "panel_share", "entropy_panel", "entropy_model"]
    assert found[names].to_numpy() == pytest.approx(np.array([row[2:] for row in CHECKED]), abs=1e-6)
    concentration = [row[4] - row[5] for row in CHECKED]
    assert found["concentration"].to_numpy() == pytest.approx(np.array(concentration), abs=1e-6)


def test_the_entropies_agree_with_scipy():
    h, m = chance().dirichlet(np.ones(4), size=(2, 50))
    found = case_spread.entropies(h, m)
    assert found["entropy_panel"] == pytest.approx(entropy(h, base=2, axis=1))
    assert found["entropy_model"] == pytest.approx(entropy(m, base=2, axis=1))


def test_the_distance_is_its_formula():
    found = spread_of(told(["A,B,C,C,D"], ["C,C,D,B,-"])).iloc[0]
    f, g = np.array([0.2, 0.4, 0.8]), np.array([0, 0.25, 0.75])
    wanted = ((f - g) ** 2 - f * (1 - f) / 4 - g * (1 - g) / 3).sum()
    assert (found["n_votes"], found["n_valid"]) == (5, 4)
    assert found["distance"] == pytest.approx(wanted)


def test_a_vote_on_the_boundary_varies_less():
    # three votes C, C/D, D: at the cut C|D they stand for 1, .5, 0, whose variance is .25; of their mean a third of it
    found = spread_of(told(["C,C/D,D"], ["C,C"])).iloc[0]
    assert found["distance"] == pytest.approx((0.5 - 1) ** 2 - 0.25 / 3)
    # samples likewise: B/C, B/C, C stand for .5, .5, 0 at the cut B|C
    found = spread_of(told(["C,C"], ["B/C,B/C,C"])).iloc[0]
    assert found["distance"] == pytest.approx((1 / 3) ** 2 - np.var([0.5, 0.5, 0], ddof=1) / 3)


seven = st.sampled_from([1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0])


@given(st.lists(seven, min_size=2, max_size=7), st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), min_size=2, max_size=7))
def test_what_is_taken_off_is_the_variance_of_the_mean_vote_at_each_cut(votes, samples):
    triage_data = told(
        [",".join(["A", "A/B", "B", "B/C", "C", "C/D", "D"][int(v * 2 - 2)] for v in votes)],
        [",".join("ABCD"[int(s) - 1] for s in samples)],
    )
    cuts = np.array([1.5, 2.5, 3.5])

    def at_cuts(values):  # one below the cut, a half on it, none above
        return (np.sign(cuts - np.array(values)[:, None]) + 1) / 2

    of_votes, of_samples = at_cuts(votes), at_cuts(samples)
    gaps = (of_votes.mean(axis=0) - of_samples.mean(axis=0)) ** 2
    wanted = (gaps - of_votes.var(axis=0, ddof=1) / len(votes) - of_samples.var(axis=0, ddof=1) / len(samples)).sum()
    assert spread_of(triage_data)["distance"].tolist() == pytest.approx([wanted])


def test_one_vote_is_no_panel_and_one_sample_no_distance():
    found = spread_of(told(["A", "A,B", "A,B", ""], ["A,A", "A,-", "-,-", "A,A"]))
    assert found["row"].tolist() == [1]
    assert np.isnan(found["distance"][0])
    assert found["entropy_panel"][0] > 0
    table = case_spread.summary(found).set_index("measure")
    assert (table.loc["distance", "n_cases"], table.loc["distance", "n_left_out"]) == (0, 1)
    assert table.loc["distance", "undefined"] == case_spread.NO_PAIRS
    assert np.isnan(table.loc["distance", "value"])
    assert table.loc["entropy_model", "undefined"] == ""
    assert case_spread.summary(found.iloc[:0]).empty


@given(st.integers(0, 500))
def test_every_measure_keeps_to_its_range_and_the_order_of_cases_does_not_matter(seed):
    triage_data, _ = drawn(np.random.default_rng(seed), n_cases=12, models=["Alder-2"], n_samples=3, invalid=0.3)
    triage_data = frames.described(triage_data)
    judges = usual_judges(triage_data)
    found = spread_of(triage_data, judges)
    for column in ("entropy_panel", "entropy_model", "floor_entropy_panel", "floor_entropy_model"):
        assert found[column].between(0, 2 + 1e-12).all(), column
    assert found["panel_share"].between(0, 1).all()
    assert found["distance"].dropna().between(-3, 3).all()


def test_the_order_of_rows_does_not_matter():
    triage_data, _ = drawn(chance(), n_cases=20, n_samples=3, invalid=0.3)
    triage_data = frames.described(triage_data)
    judges = usual_judges(triage_data)
    found = spread_of(triage_data, judges)
    shuffled = own_confidence(predictions(triage_data, judges)).sample(frac=1, random_state=1)
    other = case_spread.case_spread(triage_data, judges, shuffled, rng=chance())
    keys = ["row", "model", "format"]
    one, two = (table.sort_values(keys, ignore_index=True) for table in (found, other))
    pd.testing.assert_frame_equal(one, two)
    pd.testing.assert_frame_equal(case_spread.summary(found), case_spread.summary(other))


# ---------------------------------------------------------------- floors


def test_the_floor_of_a_unanimous_panel_is_0():
    floor = spread_of(told(["B,B,B,B,B"], ["A,B,C,D"])).iloc[0]
    assert floor[["floor_entropy_panel", "floor_entropy_model", "floor_concentration"]].tolist() == [0] * 3


@given(st.lists(st.integers(0, 4), min_size=7, max_size=7).filter(lambda counts: sum(counts) > 1))
def test_two_draws_from_behind_a_panel_differ_as_often_as_two_of_its_physicians(counts):
    votes = np.array([counts], dtype=float)
    own = case_spread._letters(votes / votes.sum())[0]
    found = case_spread._letters(case_spread.behind(votes))[0]
    assert case_spread.behind(votes).sum() == pytest.approx(1)
    n = votes.sum()
    each = np.vstack(
        [np.repeat(case_spread._letters(np.eye(7)[[k]]), int(c), axis=0) for k, c in enumerate(counts) if c]
    )
    wanted = 1 - (own**2 - each.var(axis=0, ddof=1) / n).sum()
    assert 1 - (found**2).sum() <= max(wanted, 1 - (own**2).sum()) + 1e-9
    if wanted < 0.55:  # beyond, moving to the neighbours may not reach so far
        assert 1 - (found**2).sum() == pytest.approx(wanted, abs=0.02)


def test_floors_are_seeded():
    triage_data = told(["A,B,C,C,D", "C,C,D,D,D"], ["C,C,C", "D,D,A"])
    pd.testing.assert_frame_equal(spread_of(triage_data), spread_of(triage_data))
    assert not spread_of(triage_data)["floor_entropy_model"].equals(
        spread_of(triage_data, more=1)["floor_entropy_model"]
    )


# ---------------------------------------------------------------- sure where physicians are not


def test_cases_come_first_where_the_model_is_sure_and_physicians_are_not():
    triage_data = told(["A,B,C,D,D", "A,A,D,D,D", "A,B,C,D,D", "C,C,C,C,C"], ["A,A,A", "D,D,D", "A,B,B", "C,C,C"])
    own = own_confidence(joined(triage_data, predictions(triage_data, JUDGES)))
    found = case_spread.on_ambiguous(triage_data, own, JUDGES).cases
    assert found["row"].tolist() == [0, 2, 1]  # 1.92, 1.92 - 0.92 and 0.97 bits
    assert found["kind"].eq(Kind.AMBIGUOUS).all()
    assert found["concentration"].is_monotonic_decreasing


# ---------------------------------------------------------------- coverage, slow


def drawn_pairs(rng, n_cases, *, gap=0.0, size=5):
    """As many votes and samples of the same physicians; the model leans by the gap; a fifth of the votes may lie on a boundary."""
    centre = rng.uniform(0.8, 4.2, n_cases)
    votes = np.clip(centre[:, None] + rng.normal(0, 0.7, (n_cases, size)), 1, 4)
    votes = np.where(rng.random(votes.shape) < 0.2, np.rint(votes * 2) / 2, np.rint(votes))
    own = np.clip(np.rint(centre[:, None] + gap + rng.normal(0, 0.7, (n_cases, size))), 1, 4)
    return votes, own


def distances_of(votes, own):
    n, size = votes.shape
    row = np.repeat(np.arange(n), size)
    h, m = frames.distributions(row, votes.ravel(), n), frames.distributions(row, own.ravel(), n)
    halves = np.stack([(votes == cut).sum(axis=1) for cut in (1.5, 2.5, 3.5)], axis=1).astype(float)
    return case_spread.distances(h, m, np.full(n, float(size)), np.full(n, float(size)), halves, np.zeros((n, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.6])
def test_the_distance_is_unbiased_and_its_interval_covers(gap):
    rng = chance(5)
    many = distances_of(*drawn_pairs(rng, 20_000, gap=gap, size=100))  # little is left to take off
    few = distances_of(*drawn_pairs(rng, 400_000, gap=gap))
    error = np.sqrt(few.var() / len(few) + many.var() / len(many))
    assert abs(few.mean() - many.mean()) < 3 * error
    others = dict.fromkeys([*case_spread.MEASURED, *(f"floor_{name}" for name in case_spread.MEASURED)], 0.0)
    held = []
    for _ in range(1_000):
        frame = pd.DataFrame({"distance": distances_of(*drawn_pairs(rng, 80, gap=gap)), "row": range(80)})
        line = case_spread.summary(frame.assign(model="m", format="qa", **others)).iloc[0]
        held.append(line["low"] <= many.mean() <= line["high"])
    assert 0.93 <= np.mean(held) <= 0.97


@pytest.mark.slow
def test_a_model_that_draws_as_the_physicians_do_has_distance_0_and_meets_its_floor():
    rng = chance(6)
    n = 30_000
    centre = rng.uniform(0.8, 4.2, (n, 1))
    votes, own = (np.clip(np.rint(centre + rng.normal(0, 0.7, (n, 5))), 1, 4) for _ in range(2))
    d = distances_of(votes, own)
    assert abs(d.mean()) < 3 * d.std() / np.sqrt(n)
    h, m = (np.stack([(level == k).mean(axis=1) for k in (1, 2, 3, 4)], axis=1) for level in (votes, own))
    counts = np.zeros((n, 7))
    counts[:, ::2] = h * 5
    measured = case_spread.entropies(h, m)
    floor = case_spread.floors(counts, np.arange(n), np.full(n, 5), rng=rng)
    for name in ("entropy_panel", "entropy_model"):
        assert floor[name].mean() == pytest.approx(measured[name].mean(), rel=0.12), name

"""The formulas of the corrected score: by hand, over all samples that could have been drawn, and what must not change them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as students

from evalcore.metrics import survey
from evalcore.metrics.judge_worth import further_reads
from evalcore.metrics.over_physicians import physicians_variance
from evalcore.metrics.survey import Fit, Population, Sample

many = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 10_000)


def population(moves, labels=None, example=None):
    moves = np.asarray(moves, dtype=float)
    said = np.zeros((len(moves), 0)) if labels is None else np.asarray(labels, dtype=float).reshape(len(moves), -1)
    numbers = np.arange(len(moves)) if example is None else np.asarray(example)
    return Population(moves, moves < 0, said, numbers)


def sample(rows, votes, probabilities, *, units=None, readers=None):
    """Each item read by one physician."""
    n = len(rows)
    votes = np.asarray(votes, dtype=float)
    return Sample(
        rows=np.asarray(rows, dtype=int),
        votes=votes,
        probabilities=np.broadcast_to(np.asarray(probabilities, dtype=float), n),
        units=np.arange(n) if units is None else np.unique(units, return_inverse=True)[1],
        places=np.arange(n),
        readers=np.zeros(n, dtype=int) if readers is None else np.asarray(readers),
        said=votes,
    )


def invented(seed, *, n=120, accuracy=0.8, share=0.5, n_judges=1, power=1):
    """A population of `n` items with n/4 examples, a quarter undesirable, and what was read of it: with its true votes.

    Points are raised to a power, to make a few items move the score far more than the others.
    """
    rng = np.random.default_rng(seed)
    points = rng.integers(1, 11, n) ** power * np.where(rng.random(n) < 0.25, -1, 1)
    truth = (rng.random(n) < 0.6).astype(float)
    right = rng.random((n, n_judges)) < accuracy
    about = population(
        points / points.clip(min=0).sum(), np.where(right, truth[:, None], 1 - truth[:, None]), np.arange(n) // 4
    )
    rows = np.flatnonzero(rng.random(n) < share)
    return about, truth, sample(rows, truth[rows], share, readers=rng.integers(0, 3, len(rows)))


def variance(about, read, fit):
    return survey.benchmark_parts(read, fit.factors * survey.deviations(about, read, fit)).sum()


# ---------------------------------------------------------------- by hand


def test_few_reads_correct_by_their_mean_alone():
    # No column has ten reads on either side, so m is the mean vote weighted by 1/pi: (1/.5 + 0/.5 + 1/.25) / (2 + 2 + 4) = 6/8.
    # S = .75 (.4 + .3 + .2 + .1) + [.4 (1 - .75)/.5 + .3 (0 - .75)/.5 + .1 (1 - .75)/.25] = .75 + .2 - .45 + .1
    about = population([0.4, 0.3, 0.2, 0.1], [1, 1, 0, 0])
    fit = survey.corrected(about, sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25]))
    assert fit.value == pytest.approx(0.6)
    assert fit.n_columns == 1
    assert fit.leverage == pytest.approx([2 / 8, 2 / 8, 4 / 8])  # each one's part of the weights


def test_the_variance_for_the_benchmark_is_that_of_the_formula():
    # z = a e / ((1 - h) pi): .4 x .25/(.75 x .5), .3 x -.75/(.75 x .5), .1 x .25/(.5 x .25)
    about = population([0.4, 0.3, 0.2, 0.1], [1, 1, 0, 0])
    read = sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25])
    fit = survey.corrected(about, read)
    z = np.array([0.1 / 0.375, -0.225 / 0.375, 0.025 / 0.125])
    assert survey.deviations(about, read, fit) == pytest.approx(z)
    assert variance(about, read, fit) == pytest.approx(3 / 2 * (0.5 * z[0] ** 2 + 0.5 * z[1] ** 2 + 0.75 * z[2] ** 2))
    together = sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25], units=[0, 0, 1])
    assert variance(about, together, fit) == pytest.approx(2 * (0.5 * (z[0] + z[1]) ** 2 + 0.75 * z[2] ** 2))


def test_a_judge_who_is_right_on_nine_of_ten_is_used_as_far_as_it_is_right():
    # 20 met by the judge, of which physicians say 18; 20 not, of which they say 2: m = .9 and .1. The sample's residuals add up to 0 and all a are
    # alike, so S = sum a m: of 100 items the judge says 70 met, (70 x .9 + 30 x .1)/100.
    about = population(np.full(100, 0.01), [1] * 70 + [0] * 30)
    rows = [*range(20), *range(70, 90)]
    fit = survey.corrected(about, sample(rows, [1] * 18 + [0] * 2 + [1] * 2 + [0] * 18, 0.4))
    assert fit.value == pytest.approx(0.66)
    assert fit.n_columns == 2
    assert survey.by_judges(about).value == pytest.approx(0.7)


def test_physicians_alone_are_the_mean_vote_by_sign_of_points():
    # Desirable: A = 1.0, r = (.3 x 1/.5 + .2 x 0/.25) / (.3/.5 + .2/.25) = .6/1.4; undesirable: A = -.4, r = (.1 x 1/.5) / (.1/.5 + .2/.5) = 1/3.
    about = population([0.3, 0.2, 0.5, -0.1, -0.2, -0.1])
    read = sample([0, 1, 3, 4], [1, 0, 1, 0], [0.5, 0.25, 0.5, 0.5])
    fit = survey.by_physicians(about, read)
    assert fit.value == pytest.approx(0.6 / 1.4 - 0.4 / 3)
    assert fit.factors == pytest.approx([1 / 1.4, 1 / 1.4, 0.4 / 0.6, 0.4 / 0.6])
    assert fit.leverage == pytest.approx([0.6 / 1.4, 0.8 / 1.4, 1 / 3, 2 / 3])
    assert fit.n_columns == 2


def test_physicians_alone_say_nothing_where_one_item_of_a_sign_was_read():
    about = population([0.5, 0.5, -0.2, -0.2])
    assert np.isnan(survey.by_physicians(about, sample([0, 1, 2], [1, 0, 1], 0.5)).value)


def test_the_variance_for_new_examples_is_that_of_the_examples_own_corrected_scores():
    # Three examples of one item each (all a = 1/3, m = .5 by the reads of the first two): the examples' scores are .5 + e/((1 - h) pi) where read:
    # .5 + .5/(.5 x .5) = 2.5, .5 - 2 = -1.5, and .5. Their mean is S = .5, their variance (4 + 4 + 0)/2, and V_B a third of that.
    about = population([1 / 3] * 3)
    read = sample([0, 1], [1, 0], 0.5)
    psi = survey.influences(about, read, survey.corrected(about, read))
    assert psi == pytest.approx([2.5, -1.5, 0.5])
    assert psi.var(ddof=1) / 3 == pytest.approx(4 / 3)


def test_the_variance_of_physicians_alone_counts_what_each_stands_for():
    # r = 1/2 and g = A / (sum a/pi) = 1 / (2 x .25/.2) = .4; h = 1/2, so an item read adds g a e/((1 - h) pi) = .4 x .25 x (+-.5)/(.5 x .2) = +-.5.
    # Of four examples psi is .5 + 4 x .5, .5 - 4 x .5 and twice .5.
    about = population([0.25] * 4)
    read = sample([0, 1], [1, 0], 0.2)
    psi = survey.influences(about, read, survey.by_physicians(about, read))
    assert psi == pytest.approx([2.5, -1.5, 0.5, 0.5])


def test_examples_that_weigh_differently_and_score_alike_have_no_spread():
    # Three responses that weigh 1, 2 and 3 sixths, each with half of its points by the judge: the score is 1/2 whichever examples are taken.
    about = population(np.repeat([1, 2, 3], 2) / 12, [1, 0] * 3, [0, 0, 1, 1, 2, 2])
    psi = survey.influences(about, None, survey.by_judges(about))
    assert psi == pytest.approx([0.5] * 3)


@given(seeds)
@many
def test_influences_average_to_the_estimate(seed):
    about, _, read = invented(seed)
    for fit in (survey.corrected(about, read), survey.by_physicians(about, read)):
        assert survey.influences(about, read, fit).mean() == pytest.approx(fit.value)
    judged = survey.by_judges(about)
    assert survey.influences(about, None, judged).mean() == pytest.approx(judged.value)


def test_with_equal_loads_the_variance_over_physicians_is_that_of_their_totals():
    # statistics: t_k = K sum of a e/pi over what k read, V = var(t_k)/K, K - 1 degrees of freedom
    about, _, read = invented(4)
    read = replace(read, readers=np.arange(len(read.rows)) % 3)
    n = len(read.rows) // 3 * 3
    read = sample(read.rows[:n], read.votes[:n], 0.5, readers=read.readers[:n])
    fit = survey.corrected(about, read)
    adds = about.moves[read.rows] * (read.votes - fit.predicted[read.rows]) / 0.5
    totals = 3 * np.bincount(read.readers, adds)
    found, freedom = physicians_variance(about, read, fit)
    assert found == pytest.approx(totals.var(ddof=1) / 3)
    assert freedom == pytest.approx(2)


def test_physicians_who_all_read_the_same_items_alike_leave_the_chance_of_the_draw():
    about, truth, read = invented(5)
    n = len(read.rows)
    twice = Sample(
        read.rows, read.votes, read.probabilities, read.units, np.tile(np.arange(n), 2), np.repeat([0, 1], n), np.tile(read.votes, 2)
    )  # fmt: skip
    fit = survey.corrected(about, twice)
    # Both totals are equal, so nothing is seen between them. Left is V_A by unit less that by unit and physician (two halves):
    # sum (1 - pi) (a e/pi)^2 (1 - 2/4)
    adds = about.moves[read.rows] * (truth[read.rows] - fit.predicted[read.rows]) / 0.5
    found, _ = physicians_variance(about, twice, fit)
    assert found == pytest.approx((0.5 * adds**2).sum() / 2)


def test_physicians_who_read_unequally_leave_fewer_degrees_of_freedom():
    # Of 8 reads with one pi, 4, 2 and 2: 1 / (1/4 + 1/16 + 1/16) - 1 = 5/3
    about = population(np.full(16, 1 / 16))
    read = sample(np.arange(8), [1, 0, 1, 0, 1, 1, 0, 1], 0.5, readers=[0, 0, 0, 0, 1, 1, 2, 2])
    assert physicians_variance(about, read, survey.corrected(about, read))[1] == pytest.approx(5 / 3)


def test_one_physician_says_nothing_of_physicians():
    about, _, read = invented(6)
    alone = replace(read, readers=np.zeros(len(read.rows), dtype=int))
    assert np.isnan(physicians_variance(about, alone, survey.corrected(about, alone))[0])


def test_where_all_votes_are_as_predicted_three_are_taken_not_to_be():
    about, _, read = invented(7, accuracy=1.0)
    fit = survey.corrected(about, read)
    assert variance(about, read, fit) == pytest.approx(0, abs=1e-20)
    squares = 0.5 * (about.moves[read.rows] / 0.5) ** 2
    assert survey.unseen_variance(about, read) == pytest.approx(3 * squares.mean())
    everything = sample(np.arange(120), np.ones(120), 1.0)
    assert survey.unseen_variance(about, everything) == 0


# ---------------------------------------------------------------- over all samples that could have been drawn


def all_samples(probabilities):
    """Every set of units that a Poisson draw can take, with its probability."""
    for taken in product([False, True], repeat=len(probabilities)):
        mask = np.array(taken)
        yield np.flatnonzero(mask), float(np.where(mask, probabilities, 1 - probabilities).prod())


@pytest.mark.parametrize("of_units", [np.arange(8), np.array([0, 0, 0, 1, 1, 2, 2, 3])])
def test_over_all_samples_the_correction_is_right_on_average_whatever_is_predicted(of_units):
    rng = np.random.default_rng(3)
    moves, votes, predicted = rng.normal(size=8), rng.random(8), rng.random(8)
    chance = rng.uniform(0.2, 0.9, of_units.max() + 1)
    about = population(moves)
    mean = square = 0.0
    for units, probability in all_samples(chance):
        rows = np.flatnonzero(np.isin(of_units, units))
        read = sample(rows, votes[rows], chance[of_units[rows]])
        value = survey.total(about, read, predicted)
        mean += probability * value
        square += probability * value**2
    assert mean == pytest.approx(moves @ votes)
    by_unit = np.bincount(of_units, moves * (votes - predicted))
    assert square - mean**2 == pytest.approx(((1 - chance) / chance * by_unit**2).sum())


@pytest.mark.parametrize("of_units", [np.arange(8), np.array([0, 0, 0, 1, 1, 2, 2, 3])])
def test_over_all_samples_the_variance_is_right_on_average_but_for_the_factor_for_few_units(of_units):
    # Two further units that are always drawn and move nothing keep k at 2 or more; k/(k-1) is taken out again.
    rng = np.random.default_rng(4)
    n_units = of_units.max() + 1
    of_units = np.concatenate([of_units, [n_units, n_units + 1]])
    moves, votes, predicted = np.append(rng.normal(size=8), [0, 0]), rng.random(10), rng.random(10)
    chance = np.append(rng.uniform(0.2, 0.9, n_units), [1, 1])
    about = population(moves)
    mean = 0.0
    for units, probability in all_samples(chance):
        rows = np.flatnonzero(np.isin(of_units, units))
        if probability:
            read = sample(rows, votes[rows], chance[of_units[rows]], units=of_units[rows])
            nothing = np.zeros((len(rows), 1))
            fit = Fit(0.0, predicted, nothing, nothing, np.ones(len(rows)))
            mean += probability * variance(about, read, fit) * (len(units) - 1) / len(units)
    by_unit = np.bincount(of_units, moves * (votes - predicted))
    assert mean == pytest.approx(((1 - chance) / chance * by_unit**2).sum())


def test_over_all_samples_the_fitted_prediction_costs_next_to_nothing_in_bias():
    # Twelve items read with pi = .6; the fit is the mean vote. The bias is a ratio's, of the order of the variance, not of its root.
    rng = np.random.default_rng(5)
    moves, votes = rng.uniform(0.5, 1.5, 12) / 12, (rng.random(12) < 0.5).astype(float)
    about, truth = population(moves), moves @ votes
    mean = square = 0.0
    for rows, probability in all_samples(np.full(12, 0.6)):
        if len(rows):
            error = survey.corrected(about, sample(rows, votes[rows], 0.6)).value - truth
            mean += probability * error
            square += probability * error**2
    assert abs(mean) < 0.05 * np.sqrt(square)


@given(seeds)
@many
def test_votes_that_the_labels_explain_are_got_right_from_any_sample(seed):
    about, _, read = invented(seed, n=600, n_judges=2)
    mixed = about.labels @ [0.5, 0.3] + 0.1 + 0.1 * about.undesirable * about.labels[:, 0]
    told = replace(read, votes=mixed[read.rows], said=mixed[read.rows])
    fit = survey.corrected(about, told)
    assert fit.n_columns == 6  # 300 reads: every column has ten on either side
    assert fit.value == pytest.approx(about.moves @ mixed)
    assert survey.deviations(about, told, fit) == pytest.approx(np.zeros(len(read.rows)), abs=1e-9)


# ---------------------------------------------------------------- what must not change them, and what must


@given(seeds, st.floats(0.05, 1.0))
@many
def test_a_scale_common_to_all_probabilities_does_not_change_what_physicians_alone_say(seed, scale):
    about, _, read = invented(seed)
    scaled = replace(read, probabilities=read.probabilities * scale)
    assert survey.by_physicians(about, scaled).value == pytest.approx(survey.by_physicians(about, read).value)


@given(seeds)
@many
def test_with_all_signs_flipped_the_score_is_its_negative_and_as_sure(seed):
    about, _, read = invented(seed)
    flipped = replace(about, moves=-about.moves, undesirable=~about.undesirable)
    for estimator in (survey.corrected, survey.by_physicians):
        fit, other = estimator(about, read), estimator(flipped, read)
        assert other.value == pytest.approx(-fit.value)
        assert variance(flipped, read, other) == pytest.approx(variance(about, read, fit))


@given(seeds, st.sampled_from([0.0, 1.0]))
@many
def test_a_judge_who_always_says_the_same_and_one_who_repeats_another_change_nothing(seed, always):
    about, _, read = invented(seed)
    fit = survey.corrected(about, read)
    for column in (np.full(120, always), about.labels[:, 0]):
        more = replace(about, labels=np.column_stack([about.labels, column]))
        other = survey.corrected(more, read)
        assert other.value == pytest.approx(fit.value)
        assert other.n_columns == fit.n_columns
        assert variance(more, read, other) == pytest.approx(variance(about, read, fit))


@given(seeds)
@many
def test_the_order_of_items_and_of_reads_does_not_matter(seed):
    about, _, read = invented(seed)
    rng = np.random.default_rng(seed + 1)
    order, turned = rng.permutation(120), rng.permutation(len(read.rows))
    moved = replace(
        about,
        moves=about.moves[order],
        undesirable=about.undesirable[order],
        labels=about.labels[order],
        example=about.example[order],
    )
    again = sample(
        np.argsort(order)[read.rows[turned]],
        read.votes[turned],
        read.probabilities[turned],
        readers=read.readers[turned],
    )
    for estimator in (survey.corrected, survey.by_physicians):
        fit, other = estimator(about, read), estimator(moved, again)
        assert other.value == pytest.approx(fit.value)
        assert survey.influences(moved, again, other) == pytest.approx(survey.influences(about, read, fit))
        assert physicians_variance(moved, again, other) == pytest.approx(physicians_variance(about, read, fit))


def test_a_column_needs_ten_reads_on_either_side():
    def n_columns(n_met, n_not):
        about = population(np.full(60, 1 / 60), [1] * n_met + [0] * (60 - n_met))
        rows = [*range(n_met), *range(60 - n_not, 60)]
        return survey.corrected(about, sample(rows, np.arange(len(rows)) % 2, 0.5)).n_columns

    assert [n_columns(10, 30), n_columns(30, 10), n_columns(9, 30), n_columns(30, 9)] == [2, 2, 1, 1]


# ---------------------------------------------------------------- what the judge was worth


def worth(about, read):
    alone, helped = survey.by_physicians(about, read), survey.corrected(about, read)
    return further_reads(about, read, alone=alone, helped=helped)


def test_the_worth_of_a_judge_is_how_many_more_reads_would_be_as_sharp():
    # V falls as 1/n - 1/M: with n reads of M and R = V alone / V corrected, 1/n' - 1/M = (1/n - 1/M)/R.
    about, _, read = invented(8, n=1200, accuracy=0.9, share=0.2)
    ratio_of = {}
    for name, estimator in (("alone", survey.by_physicians), ("helped", survey.corrected)):
        fit = replace(estimator(about, read), factors=np.ones(len(read.rows)))
        ratio_of[name] = variance(about, read, fit)
    n = len(read.rows)
    wanted = 1 / ((1 / n - 1 / 1200) * ratio_of["helped"] / ratio_of["alone"] + 1 / 1200)
    found, low, high = worth(about, read)
    assert found == pytest.approx(wanted - n)
    assert -n <= low < found < high <= 1200 - n


def test_nobody_is_worth_a_read_where_everything_was_read():
    about, truth, _ = invented(9)
    assert worth(about, sample(np.arange(120), truth, 1.0)) == (0, 0, 0)


@pytest.mark.parametrize("n_judges", [1, 3])
def test_judges_of_noise_are_never_worth_more_than_nothing_within_the_error(n_judges):
    # Of 95 % intervals at most 2.5 % should lie above 0: of 100 seeds 2.5, and 7 or more once in a hundred times.
    found = [
        worth(*invented(seed, n=2000, accuracy=0.5, share=0.2, n_judges=n_judges, power=3)[::2]) for seed in range(100)
    ]
    worths, lows, highs = np.array(found).T
    assert (lows > 0).sum() < 7
    assert worths.mean() < students.ppf(0.995, 99) * worths.std(ddof=1) / 10
    assert np.mean(highs - lows) / 2 > 1.5 * worths.std(ddof=1)


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_the_interval_of_the_worth_is_that_of_a_jackknife_over_examples(seed):
    about, _, read = invented(seed, n=1600, accuracy=0.5, share=0.25, power=3)
    n, whole = len(read.rows), len(about.moves)
    bounds = [np.log((1 / n - 1 / whole) / (1 / (n + each) - 1 / whole)) for each in worth(about, read)[1:]]
    examples = about.example[read.rows]
    without = []
    for example in np.unique(examples):
        kept = examples != example
        left = sample(read.rows[kept], read.votes[kept], read.probabilities[kept])
        fits = [
            replace(each(about, left), factors=np.ones(kept.sum())) for each in (survey.by_physicians, survey.corrected)
        ]
        without.append(np.log(variance(about, left, fits[0]) / variance(about, left, fits[1])))
    g = len(without)
    error = np.sqrt((g - 1) * np.var(without))
    assert (bounds[1] - bounds[0]) / 2 == pytest.approx(students.ppf(0.975, g - 1) * error, rel=0.04)


def test_that_a_judge_is_always_right_on_what_was_read_is_known_as_well_as_three_errors_are():
    # log of a count of three has a variance of about 1/3; that of physicians alone comes on top
    about, _, read = invented(11, n=2000, accuracy=1.0, share=0.2)
    n, whole = len(read.rows), len(about.moves)
    _, low, high = worth(about, read)
    span = np.log((1 / (n + low) - 1 / whole) / (1 / (n + high) - 1 / whole))
    assert span / 2 == pytest.approx(students.ppf(0.975, 300) * np.sqrt(1 / 3), rel=0.05)


def test_a_better_judge_is_worth_more():
    def mean_worth(accuracy):
        return np.mean([worth(*invented(seed, n=800, accuracy=accuracy, share=0.25)[::2])[0] for seed in range(20)])

    assert 0 < mean_worth(0.75) < mean_worth(0.85) < mean_worth(0.95)

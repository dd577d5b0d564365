"""The formulas of the corrected score and of its variances, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from evalcore.stats import estimator
from evalcore.stats.estimator import Sample, benchmark_variance, between_physicians, with_strictness
from tests.estimator_drawn import invented, many, population, sample, seeds, variance


def test_few_reads_correct_by_their_mean_alone():
    # No column has ten reads on either side, so m is the mean vote weighted by 1/pi: (1/.5 + 0/.5 + 1/.25) / (2 + 2 + 4) = 6/8.
    # S = .75 (.4 + .3 + .2 + .1) + [.4 (1 - .75)/.5 + .3 (0 - .75)/.5 + .1 (1 - .75)/.25] = .75 + .2 - .45 + .1
    about = population([0.4, 0.3, 0.2, 0.1], [1, 1, 0, 0])
    fit = estimator.corrected(about, sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25]))
    assert fit.value == pytest.approx(0.6)
    assert fit.n_columns == 1
    assert fit.leverage == pytest.approx([2 / 8, 2 / 8, 4 / 8])  # each one's part of the weights


def test_the_variance_for_the_benchmark_is_that_of_the_formula():
    # z = a e / ((1 - h) pi): .4 x .25/(.75 x .5), .3 x -.75/(.75 x .5), .1 x .25/(.5 x .25)
    about = population([0.4, 0.3, 0.2, 0.1], [1, 1, 0, 0])
    read = sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25])
    fit = estimator.corrected(about, read)
    z = np.array([0.1 / 0.375, -0.225 / 0.375, 0.025 / 0.125])
    assert estimator.deviations(about, read, fit) == pytest.approx(z)
    assert variance(about, read, fit) == pytest.approx(3 / 2 * (0.5 * z[0] ** 2 + 0.5 * z[1] ** 2 + 0.75 * z[2] ** 2))
    together = sample([0, 1, 3], [1, 0, 1], [0.5, 0.5, 0.25], units=[0, 0, 1])
    assert variance(about, together, fit) == pytest.approx(2 * (0.5 * (z[0] + z[1]) ** 2 + 0.75 * z[2] ** 2))


def test_a_judge_who_is_right_on_nine_of_ten_is_used_as_far_as_it_is_right():
    # 20 met by the judge, of which physicians say 18; 20 not, of which they say 2: m = .9 and .1. The sample's residuals add up to 0 and all a are
    # alike, so S = sum a m: of 100 items the judge says 70 met, (70 x .9 + 30 x .1)/100.
    about = population(np.full(100, 0.01), [1] * 70 + [0] * 30)
    rows = [*range(20), *range(70, 90)]
    fit = estimator.corrected(about, sample(rows, [1] * 18 + [0] * 2 + [1] * 2 + [0] * 18, 0.4))
    assert fit.value == pytest.approx(0.66)
    assert fit.n_columns == 2
    assert estimator.by_judges(about).value == pytest.approx(0.7)


def test_physicians_alone_are_the_mean_vote_by_sign_of_points():
    # Desirable: A = 1.0, r = (.3 x 1/.5 + .2 x 0/.25) / (.3/.5 + .2/.25) = .6/1.4; undesirable: A = -.4, r = (.1 x 1/.5) / (.1/.5 + .2/.5) = 1/3.
    about = population([0.3, 0.2, 0.5, -0.1, -0.2, -0.1])
    read = sample([0, 1, 3, 4], [1, 0, 1, 0], [0.5, 0.25, 0.5, 0.5])
    fit = estimator.by_physicians(about, read)
    assert fit.value == pytest.approx(0.6 / 1.4 - 0.4 / 3)
    assert fit.factors == pytest.approx([1 / 1.4, 1 / 1.4, 0.4 / 0.6, 0.4 / 0.6])
    assert fit.leverage == pytest.approx([0.6 / 1.4, 0.8 / 1.4, 1 / 3, 2 / 3])
    assert fit.n_columns == 2


def test_physicians_alone_say_nothing_where_one_item_of_a_sign_was_read():
    about = population([0.5, 0.5, -0.2, -0.2])
    assert np.isnan(estimator.by_physicians(about, sample([0, 1, 2], [1, 0, 1], 0.5)).value)


def test_the_variance_for_new_examples_is_that_of_the_examples_own_corrected_scores():
    # Three examples of one item each (all a = 1/3, m = .5 by the reads of the first two): the examples' scores are .5 + e/((1 - h) pi) where read:
    # .5 + .5/(.5 x .5) = 2.5, .5 - 2 = -1.5, and .5. Their mean is S = .5, their variance (4 + 4 + 0)/2, and V_B a third of that.
    about = population([1 / 3] * 3)
    read = sample([0, 1], [1, 0], 0.5)
    psi = estimator.influences(about, read, estimator.corrected(about, read))
    assert psi == pytest.approx([2.5, -1.5, 0.5])
    assert psi.var(ddof=1) / 3 == pytest.approx(4 / 3)


def test_the_variance_of_physicians_alone_counts_what_each_stands_for():
    # r = 1/2 and g = A / (sum a/pi) = 1 / (2 x .25/.2) = .4; h = 1/2, so an item read adds g a e/((1 - h) pi) = .4 x .25 x (+-.5)/(.5 x .2) = +-.5.
    # Of four examples psi is .5 + 4 x .5, .5 - 4 x .5 and twice .5.
    about = population([0.25] * 4)
    read = sample([0, 1], [1, 0], 0.2)
    psi = estimator.influences(about, read, estimator.by_physicians(about, read))
    assert psi == pytest.approx([2.5, -1.5, 0.5, 0.5])


def test_examples_that_weigh_differently_and_score_alike_have_no_spread():
    # Three responses that weigh 1, 2 and 3 sixths, each with half of its points by the judge: the score is 1/2 whichever examples are taken.
    about = population(np.repeat([1, 2, 3], 2) / 12, [1, 0] * 3, [0, 0, 1, 1, 2, 2])
    psi = estimator.influences(about, None, estimator.by_judges(about))
    assert psi == pytest.approx([0.5] * 3)


@given(seeds)
@many
def test_influences_average_to_the_estimate(seed):
    about, _, read = invented(seed)
    for fit in (estimator.corrected(about, read), estimator.by_physicians(about, read)):
        assert estimator.influences(about, read, fit).mean() == pytest.approx(fit.value)
    judged = estimator.by_judges(about)
    assert estimator.influences(about, None, judged).mean() == pytest.approx(judged.value)


def test_with_equal_loads_the_variance_over_physicians_is_that_of_their_totals():
    # statistics: t_k = K sum of a e/pi over what k read, V = var(t_k)/K, K - 1 degrees of freedom
    about, _, read = invented(4)
    read = replace(read, readers=np.arange(len(read.rows)) % 3)
    n = len(read.rows) // 3 * 3
    read = sample(read.rows[:n], read.votes[:n], 0.5, readers=read.readers[:n])
    fit = estimator.corrected(about, read)
    adds = about.item_weights[read.rows] * (read.votes - fit.predicted[read.rows]) / 0.5
    totals = 3 * np.bincount(read.readers, adds)
    found, freedom = between_physicians(about, read, fit)
    assert found == pytest.approx(totals.var(ddof=1) / 3)
    assert freedom == pytest.approx(2)


def test_physicians_who_all_read_the_same_items_alike_leave_the_chance_of_the_draw():
    about, _, read = invented(5)
    n = len(read.rows)
    twice = Sample(
        read.rows, read.votes, read.probabilities, read.units, np.tile(np.arange(n), 2), np.repeat([0, 1], n), np.tile(read.votes, 2)
    )  # fmt: skip
    fit = estimator.corrected(about, twice)
    # both totals are equal, so nothing is seen between them, and nothing is expected there: every item has both readers
    between, these = between_physicians(about, twice, fit), benchmark_variance(about, twice, fit)
    assert between[0] == pytest.approx(0)
    assert with_strictness(these.draw, these.freedom, between, these.alike)[0] == pytest.approx(these.draw)


@pytest.mark.parametrize(("n_readers", "n_reads"), [(5, 1), (3, 2), (4, 3), (3, 3)])
def test_physicians_who_are_equally_strict_are_as_far_apart_as_their_items(n_readers, n_reads):
    # the mean over who got which item of what is seen between them is what is expected there, however many read an item
    rng = np.random.default_rng(11)
    n, n_times = 400, 400
    about = population(np.full(n, 1 / n))
    seen, expected = np.empty(n_times), np.empty(n_times)
    for time in range(n_times):
        said = (rng.random((n_readers, n)) < rng.random(n)).astype(float)
        readers = np.argsort(rng.random((n, n_readers)), axis=1)[:, :n_reads].ravel()
        places = np.repeat(np.arange(n), n_reads)
        votes = said[readers, places]
        means = np.bincount(places, votes) / n_reads
        read = Sample(np.arange(n), means, np.ones(n), np.arange(n), places, readers, votes)
        fit = estimator.corrected(about, read)
        seen[time] = between_physicians(about, read, fit)[0]
        expected[time] = benchmark_variance(about, read, fit).alike
    assert seen.mean() == pytest.approx(expected.mean(), rel=4 * np.sqrt(2 / (n_readers - 1) / n_times))


def test_physicians_who_read_unequally_leave_fewer_degrees_of_freedom():
    # Of 8 reads with one pi, 4, 2 and 2: 1 / (1/4 + 1/16 + 1/16) - 1 = 5/3
    about = population(np.full(16, 1 / 16))
    read = sample(np.arange(8), [1, 0, 1, 0, 1, 1, 0, 1], 0.5, readers=[0, 0, 0, 0, 1, 1, 2, 2])
    assert between_physicians(about, read, estimator.corrected(about, read))[1] == pytest.approx(5 / 3)


def test_one_physician_says_nothing_of_physicians():
    about, _, read = invented(6)
    alone = replace(read, readers=np.zeros(len(read.rows), dtype=int))
    assert np.isnan(between_physicians(about, alone, estimator.corrected(about, alone))[0])


def test_where_all_votes_are_as_predicted_three_are_taken_not_to_be():
    about, _, read = invented(7, accuracy=1.0)
    fit = estimator.corrected(about, read)
    assert variance(about, read, fit) == pytest.approx(0, abs=1e-20)
    squares = 0.5 * (about.item_weights[read.rows] / 0.5) ** 2
    assert estimator.unseen_variance(about, read) == pytest.approx(3 * squares.mean())
    everything = sample(np.arange(120), np.ones(120), 1.0)
    assert estimator.unseen_variance(about, everything) == 0

"""What a judge was worth: as how many further reads, and how sure that is."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as students

from evalcore.stats import estimator as survey
from evalcore.stats.estimator import benchmark_variance, further_reads
from tests.estimator_drawn import invented, sample, variance


def worth(about, read, *, several=False):
    """By one physician, so that V_A is that of the draw alone; or by those who have read."""
    if not several:
        read = replace(read, readers=np.zeros(len(read.rows), dtype=int))
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
    n, whole = len(read.rows), len(about.item_weights)
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
    n, whole = len(read.rows), len(about.item_weights)
    _, low, high = worth(about, read)
    span = np.log((1 / (n + low) - 1 / whole) / (1 / (n + high) - 1 / whole))
    assert span / 2 == pytest.approx(students.ppf(0.975, 300) * np.sqrt(1 / 3), rel=0.05)


def test_a_better_judge_is_worth_more():
    def mean_worth(accuracy):
        return np.mean([worth(*invented(seed, n=800, accuracy=accuracy, share=0.25)[::2])[0] for seed in range(20)])

    assert 0 < mean_worth(0.75) < mean_worth(0.85) < mean_worth(0.95)


def test_where_physicians_differ_more_reads_of_everything_would_leave_that():
    # V = D (1/n - 1/M) + E/n of physicians alone; with worth more reads it is that of the corrected score.
    about, _, read = invented(8, n=1200, accuracy=0.9, share=0.5)
    found, low, high = worth(about, read, several=True)
    n = len(read.rows)
    alone, helped = (
        benchmark_variance(about, read, replace(fit, factors=np.ones(n)))
        for fit in (survey.by_physicians(about, read), survey.corrected(about, read))
    )
    by_draw, by_reader = alone.draw / (1 / n - 1 / 1200), alone.readers * n
    assert by_reader > 0
    assert by_draw * (1 / (n + found) - 1 / 1200) + by_reader / (n + found) == pytest.approx(helped.variance)
    assert -n <= low < found < high <= 1200 - n

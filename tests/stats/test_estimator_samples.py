"""The corrected score over all samples that could have been drawn, and what must not change it."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evalcore.stats import estimator as survey
from evalcore.stats.estimator import Fit, between_physicians
from tests.estimator_drawn import invented, many, population, sample, seeds, variance

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
    assert fit.value == pytest.approx(about.item_weights @ mixed)
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
    flipped = replace(about, item_weights=-about.item_weights, undesirable=~about.undesirable)
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
        item_weights=about.item_weights[order],
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
        assert between_physicians(moved, again, other) == pytest.approx(between_physicians(about, read, fit))


def test_a_column_needs_ten_reads_on_either_side():
    def n_columns(n_met, n_not):
        about = population(np.full(60, 1 / 60), [1] * n_met + [0] * (60 - n_met))
        rows = [*range(n_met), *range(60 - n_not, 60)]
        return survey.corrected(about, sample(rows, np.arange(len(rows)) % 2, 0.5)).n_columns

    assert [n_columns(10, 30), n_columns(30, 10), n_columns(9, 30), n_columns(30, 9)] == [2, 2, 1, 1]

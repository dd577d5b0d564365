"""What is not known though everything was read: another of the physicians might have read it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from evalcore.rubric.corrected import CORRECTED, PHYSICIANS, estimator_inputs
from evalcore.stats import estimator
from evalcore.stats.estimator import Sample, benchmark_variance
from tests.estimator_drawn import invented, many, population, seeds, variance
from tests.population import corrected_scores, drawn

FIVE = tuple(f"Dr. {letter}" for letter in "ABCDE")


def twice_read(first, second, single=(), *, of_units=1, probability=1.0):
    """All items alike: some by both of two physicians, others by one of them in turn; units of so many items."""
    n_twice, n = len(first), len(first) + len(single)
    places = np.concatenate([np.repeat(np.arange(n_twice), 2), np.arange(n_twice, n)])
    said = np.concatenate([np.column_stack([first, second]).ravel(), single]).astype(float)
    readers = np.concatenate([np.tile([0, 1], n_twice), np.arange(len(single)) % 2])
    votes = np.bincount(places, said) / np.bincount(places)
    chance = np.full(n, probability)
    return population(np.full(n, 1 / n)), Sample(
        np.arange(n), votes, chance, np.arange(n) // of_units, places, readers, said
    )


def found(about, read):
    return benchmark_variance(about, read, estimator.corrected(about, read))


def test_forty_examples_that_one_of_five_readers_has_read_whole_are_not_known_to_the_last_digit():
    rubric_data, _ = drawn(np.random.default_rng(1), n_examples=40, share_read=1.0, readers=FIVE, reader_accuracy=0.9)
    (row,) = corrected_scores(rubric_data).to_dict(orient="records")
    assert min(row[f"{kind}_se"] for kind in (PHYSICIANS, CORRECTED)) > 0.01


def test_what_all_physicians_have_read_whole_is_known():
    rubric_data, _ = drawn(
        np.random.default_rng(1), n_examples=40, share_read=1.0, readers=FIVE, n_readers=5, reader_accuracy=0.9
    )
    (row,) = corrected_scores(rubric_data).to_dict(orient="records")
    assert [row[f"{kind}_se"] for kind in (PHYSICIANS, CORRECTED)] == pytest.approx([0, 0], abs=1e-9)


def test_the_readers_part_is_the_variance_of_two_reads_on_the_items_that_one_has_read():
    # 40 of 80 items read twice, 10 of them otherwise: s^2 = 10 x .5/40. No labels: m is the mean, h = 1/80, b = (1/80)/(1 - 1/80) = 1/79.
    # Of 40 items with one reader of two, 1/r - 1/K = 1/2; of the others none. Of physicians in general, 1/r: 40 + 40/2.
    about, read = twice_read([1] * 40, [0] * 10 + [1] * 30, [0, 1] * 20)
    part = found(about, read)
    assert part.draw == 0
    assert part.readers == pytest.approx(0.125 * 40 * 0.5 / 80**2)
    assert part.any_reader == pytest.approx(0.125 * 60 / 80**2)
    assert part.freedom == pytest.approx(20)  # a count of 10 has the variance 10: df = 2 x 10^2/10


def test_reads_that_differ_together_in_a_response_count_as_alike_as_they_are():
    # 20 responses of 4 items; on 10 of them the second reader says otherwise throughout. By item s^2 is 40 x .5/80; by response D = 4 b/2 of either, so
    # that s^2 is 10 x 2 x (2 b)^2 / (80 b^2) = 1. Twenty more responses, which one has read.
    first, second, single = [1] * 80, [0] * 40 + [1] * 40, [1] * 40 + [0] * 40
    by_item, by_response = (found(*twice_read(first, second, single, of_units=n)) for n in (1, 4))
    assert by_item.readers == pytest.approx(0.25 * 80 * 0.5 / 160**2)
    assert by_response.readers == pytest.approx(1.0 * 80 * 0.5 / 160**2)


def test_where_all_second_reads_agree_three_are_taken_not_to():
    about, read = twice_read([1] * 40, [1] * 40, [0, 1] * 20)
    assert found(about, read).readers == pytest.approx(3 * 0.5 / 40 * 40 * 0.5 / 80**2)


def test_without_second_reads_the_share_that_was_read_makes_nothing_surer():
    about, _, read = invented(3, share=0.9)
    fit = estimator.corrected(about, read)
    part = benchmark_variance(about, read, fit)
    z = estimator.deviations(about, read, fit)
    k = len(z)
    assert part.variance == pytest.approx(k / (k - 1) * (z**2).sum())
    assert part.variance == pytest.approx(part.most)
    assert part.freedom == k - fit.n_columns


@given(seeds)
@many
def test_one_physician_leaves_the_draw_alone_and_several_add_to_it(seed):
    about, _, read = invented(seed)
    fit = estimator.corrected(about, read)
    alone = benchmark_variance(about, replace(read, readers=np.zeros(len(read.rows), dtype=int)), fit)
    assert alone.readers == 0
    assert alone.variance == pytest.approx(variance(about, read, fit))
    several = benchmark_variance(about, read, fit)
    assert alone.variance <= several.variance <= several.most * (1 + 1e-12)


def test_an_adjudicated_label_has_no_reader_in_it_and_what_they_said_stays_known():
    # Two of three have read each item; a fifth of the reads is not as the others. Settled, all of them: no other reader would change a label.
    rubric_data, truth = drawn(
        np.random.default_rng(2), n_examples=40, share_read=1.0, readers=FIVE[:3], n_readers=2, reader_accuracy=0.8
    )
    reads = rubric_data.reads
    last = reads.drop_duplicates("row").assign(stage="adjudicated", rater="Dr. E")
    last["met"] = truth.to_numpy()[last["row"]]
    settled = replace(rubric_data, reads=pd.concat([reads, last], ignore_index=True))
    (plain,), (known,) = (list(estimator_inputs(settled, settled=how)) for how in (False, True))
    assert known.sample.votes == pytest.approx(truth.to_numpy())
    assert known.sample.own == pytest.approx(plain.sample.said)
    parts = [
        benchmark_variance(each.population, each.sample, estimator.corrected(each.population, each.sample))
        for each in (plain, known)
    ]
    # what both readers and the adjudicator agree on is not told from what nobody settled
    assert 0 <= parts[1].readers < 0.8 * parts[0].readers

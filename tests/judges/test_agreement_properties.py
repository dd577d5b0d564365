"""What holds of agreement whatever the labels, and the jackknife by subtraction."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import t as student

from evalcore.judges.agreement import NO_PAIR, OF_TWO_CATEGORIES, ONE_CATEGORY, agreement, coded, pair_agreement
from evalcore.stats.agreement_sums import Coefficient, distances, jackknife, values, without_raters
from tests.ratings import drawn, found, long, ordered

SHAPES = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 4))
NOMINAL = ("agreement", "kappa", "fleiss_kappa", "alpha_nominal", "ac1")
EVERY = list(Coefficient)


# The jackknife


def test_the_interval_is_the_jackknifes_with_one_degree_of_freedom_less_than_examples():
    labels = long(["YYNNYNYYNYYN", "YYNNYYYYNNYN", "YNNNYNYYNYYY"], per_example=2)
    table = agreement(labels)
    for name in OF_TWO_CATEGORIES:
        value = found(table)[name]
        without = [found(agreement(labels.loc[labels["example_id"].ne(g)]))[name] for g in range(6)]
        se = math.sqrt(5 / 6 * sum((one - value) ** 2 for one in without))
        assert found(table, "se")[name] == pytest.approx(se)
        half = student.ppf(0.975, 5) * se
        least = 0 if name == "agreement" else -math.inf
        assert found(table, "low")[name] == pytest.approx(max(value - half, least))
        assert found(table, "high")[name] == pytest.approx(min(value + half, 1))


@given(SHAPES)
def test_leaving_out_by_subtraction_is_leaving_out_by_counting_again(shape):
    labels = ordered(drawn(*shape), "ABCD"[: shape[2]])
    parts = jackknife(coded(labels))
    numbers = pd.factorize(labels["example_id"])[1]
    for place in range(len(parts.examples.group)):
        rest = coded(labels.loc[labels["example_id"].ne(numbers[place])])
        again = jackknife(rest).whole
        for name in Coefficient:
            left = values(name, parts.examples.sums)[place]
            assert left == pytest.approx(values(name, again)[0], abs=1e-9, nan_ok=True)


@given(SHAPES, st.booleans())
def test_leaving_out_a_rater_by_subtraction_is_leaving_out_by_counting_again(shape, by_example):
    labels = ordered(drawn(*shape), "ABCD"[: shape[2]])
    whole = coded(labels)
    part = without_raters(whole, jackknife(whole).whole, by_example=by_example)
    keys = ["rater", "example_id"][: 1 + by_example]
    kept = [labels.drop(index=rows.index) for _, rows in labels.groupby(keys)]
    assert len(part.group) == len(kept)
    for name in Coefficient:
        again = [values(name, jackknife(coded(rest)).whole)[0] if len(rest) else np.nan for rest in kept]
        ours, counted_again = (sorted(np.nan_to_num(part_, nan=9)) for part_ in (values(name, part.sums), again))
        assert ours == pytest.approx(counted_again, abs=1e-9)  # parts come in another order


@given(SHAPES)
def test_for_raters_in_general_an_interval_is_never_narrower_and_takes_three_effective_raters(shape):
    table = agreement(ordered(drawn(*shape), list("ABCD")), coefficients=EVERY)
    known = table.loc[table["general_reason"].eq("")]
    assert known["general_low"].le(known["low"] + 1e-12).all()
    assert known["high"].le(known["general_high"] + 1e-12).all()
    assert known["n_effective_raters"].ge(3 - 1e-9).all()
    assert table["general_low"].isna().eq(table["general_reason"].ne("")).all()
    assert not (table["reason"].ne("") & table["general_reason"].eq("")).any()


@given(st.lists(st.text("AB?", min_size=3, max_size=3), min_size=1, max_size=3), st.booleans())
def test_bounds_of_percent_agreement_are_the_extremes_over_all_ways_of_filling_in(items, by_pair):
    labels = long(["".join(column) for column in zip(*items, strict=True)])
    open_ = labels.index[labels["value"].isna()]
    metric = pair_agreement if by_pair else agreement
    table = metric(ordered(labels, "AB"), coefficients=["agreement"])
    filled = []
    for signs in itertools.product("AB", repeat=len(open_)):
        whole = labels.assign(value=labels["value"].where(labels["value"].notna(), None).astype(object))
        whole.loc[open_, "value"] = list(signs)
        filled.append(metric(ordered(whole, "AB"), coefficients=["agreement"])["value"].to_numpy())
    assert table["bound_low"].to_numpy() == pytest.approx(np.min(filled, axis=0))
    assert table["bound_high"].to_numpy() == pytest.approx(np.max(filled, axis=0))


# Properties


@given(SHAPES)
def test_the_order_of_rows_does_not_matter(shape):
    labels = drawn(*shape, undecided=0.2)
    shuffled = labels.sample(frac=1, random_state=shape[0] % 1000)
    for metric in (agreement, pair_agreement):
        first, second = (metric(ordered(part, list("ABCD")), coefficients=EVERY) for part in (labels, shuffled))
        pd.testing.assert_frame_equal(first, second, check_exact=False, atol=1e-9)


@given(SHAPES, st.permutations("ABCD"))
def test_other_names_for_the_categories_leave_nominal_coefficients_as_they_are(shape, names):
    labels = drawn(*shape)
    renamed = labels.assign(value=labels["value"].map(dict(zip("ABCD", names, strict=True))).astype("str"))
    first, second = (found(agreement(ordered(part, list("ABCD")), coefficients=EVERY)) for part in (labels, renamed))
    assert [first[name] for name in NOMINAL] == pytest.approx([second[name] for name in NOMINAL], nan_ok=True)


@given(st.text("ABC", min_size=3, max_size=20), st.integers(2, 4))
def test_raters_who_always_agree_give_1(signs, n_raters):
    table = agreement(ordered(long([signs] * n_raters), list("ABC")), coefficients=EVERY)
    defined = table["value"].notna()
    assert table.loc[defined, "value"].to_numpy() == pytest.approx(1)
    assert defined.all() == (len(set(signs)) > 1)


@given(SHAPES)
def test_bounds_hold_the_value_of_percent_agreement_and_are_given_of_nothing_else(shape):
    for share in (0, 0.3):
        table = agreement(ordered(drawn(*shape, undecided=share), list("ABCD")), coefficients=EVERY)
        first, rest = table.iloc[0], table.iloc[1:]
        assert rest[["bound_low", "bound_high"]].isna().all(axis=None)
        if share == 0:
            assert (first["bound_low"], first["bound_high"]) == pytest.approx((first["value"],) * 2, nan_ok=True)
        assert not first["bound_low"] > first["bound_high"]


@given(SHAPES)
def test_nothing_exceeds_1_and_intervals_hold_their_value(shape):
    table = agreement(ordered(drawn(*shape), list("ABCD")), coefficients=EVERY)
    known = table.loc[table["low"].notna()]
    assert known["low"].le(known["value"] + 1e-12).all()
    assert known["value"].le(known["high"] + 1e-12).all()
    assert not table[["value", "high"]].gt(1 + 1e-12).any(axis=None)
    assert table["value"].isna().eq(table["reason"].isin([NO_PAIR, ONE_CATEGORY])).all()
    assert table["low"].isna().eq(table["reason"].ne("")).all()


@given(SHAPES)
def test_with_two_categories_the_weighted_coefficients_are_the_plain_ones(shape):
    table = found(agreement(ordered(drawn(shape[0], shape[1], 2), list("AB")), coefficients=EVERY))
    for plain, weighted in {
        "kappa": ("kappa_linear", "kappa_quadratic"),
        "alpha_nominal": ("alpha_ordinal", "alpha_interval"),
        "ac1": ("ac2_linear", "ac2_quadratic"),
    }.items():
        assert [table[name] for name in weighted] == pytest.approx([table[plain]] * 2, nan_ok=True)


def test_distances_grow_from_0_to_1():
    assert distances(3, 0).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert distances(3, 1).tolist() == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]]
    assert distances(3, 2).tolist() == [[0, 0.25, 1], [0.25, 0, 0.25], [1, 0.25, 0]]

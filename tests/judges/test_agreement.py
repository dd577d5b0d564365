"""Agreement between raters: textbook numbers, what counts, and what has no value."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from evalcore.judges.agreement import (
    NO_PAIR,
    NO_SPREAD,
    ONE_CATEGORY,
    RESTS_ON_ONE,
    TOO_FEW,
    TOO_FEW_RATERS,
    agreement,
    coded,
    pair_agreement,
    reasons,
)
from evalcore.stats.agreement_sums import Coefficient, jackknife
from tests.ratings import crossed, drawn, found, long, ordered

EVERY = list(Coefficient)
# Krippendorff, Computing Krippendorff's alpha-reliability (2011), section C: observers A to D on 12 units, 0 is missing.
KRIPPENDORFF = ["123321412000", "123322412503", "033323422510", "123324412510"]
# Fleiss, Psychological Bulletin 76 (1971), table 1: psychiatrists who gave each of 30 patients depression, personality
# disorder, schizophrenia, neurosis, other.
FLEISS = (
    "00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031 "
    "00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"
)
# Cohen, Psychological Bulletin 70 (1968), table 1: of 200, by the two raters' choice of personality disorder, neurosis, psychosis.
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
COHEN_WEIGHTS = [[0, 1, 3], [1, 0, 6], [3, 6, 0]]


# Textbook


def test_krippendorffs_observers_give_the_published_alphas_and_gwets_coefficients():
    table = found(agreement(long(KRIPPENDORFF, missing="0")))
    # krippendorff 0.9.0: alpha(reliability_data=..., level_of_measurement=...)
    assert table["alpha_nominal"] == pytest.approx(0.743421052631579, abs=1e-12)
    assert table["alpha_ordinal"] == pytest.approx(0.8153875037548814, abs=1e-12)
    assert table["alpha_interval"] == pytest.approx(0.8491071428571428, abs=1e-12)
    # Gwet, Handbook of Inter-Rater Reliability, the same data: AC1 with the single label of unit 12 among the shares
    assert table["ac1"] == pytest.approx(0.77544, abs=5e-6)
    assert table["ac2_quadratic"] == pytest.approx(0.91400, abs=5e-6)


def test_fleiss_psychiatrists_give_the_published_kappa():
    signs = ["".join(name * int(n) for name, n in zip("DPSNO", patient, strict=True)) for patient in FLEISS.split()]
    table = found(agreement(long(["".join(column) for column in zip(*signs, strict=True)])))
    assert table["fleiss_kappa"] == pytest.approx(0.430245, abs=5e-7)
    counts = np.array([[int(n) for n in patient] for patient in FLEISS.split()])
    assert table["fleiss_kappa"] == pytest.approx(fleiss_kappa(counts), abs=1e-12)  # statsmodels 0.15.0


def test_cohens_patients_give_the_published_kappa_plain_and_with_his_weights():
    labels = crossed(COHEN)
    assert found(pair_agreement(labels))["kappa"] == pytest.approx(0.4915, abs=5e-5)
    sums = jackknife(coded(labels)).whole
    seen, by_chance = ((pairs * COHEN_WEIGHTS).sum() / pairs.sum() for pairs in (sums.pairs[0], sums.by_chance[0]))
    assert 1 - seen / by_chance == pytest.approx(0.3478, abs=5e-5)


def test_cohens_kappa_with_weights_is_that_of_scikit_learn():
    labels = long(["AABBCDDCABBCADCBBACDABCDDCBAAB", "AABCCDDCBBBCBDCBAACDABBDCCBABB"])
    for table in (pair_agreement(labels), agreement(labels)):  # of two raters, all together are the pair
        # scikit-learn 1.9.1: cohen_kappa_score(a, b, labels=list("ABCD"), weights=None, "linear", "quadratic")
        assert found(table)["kappa"] == pytest.approx(0.6851574212893554, abs=1e-12)
        assert found(table)["kappa_linear"] == pytest.approx(0.7972972972972973, abs=1e-12)
        assert found(table)["kappa_quadratic"] == pytest.approx(0.8909657320872274, abs=1e-12)


def test_alpha_with_missing_labels_is_that_of_the_krippendorff_package():
    rows = ["AABBCDDCABBCADCBBACDABCDDCBAAB", "AAB.CDDBABB.ADCCBACD.BCDDCBA.B", "..BBCD.CABCCAD.BBBCDABCDDC.AAC"]
    table = found(agreement(long(rows, missing=".")))
    # krippendorff 0.9.0: alpha(reliability_data=..., level_of_measurement=..., value_domain=[0, 1, 2, 3])
    assert table["alpha_nominal"] == pytest.approx(0.8365345320800981, abs=1e-12)
    assert table["alpha_ordinal"] == pytest.approx(0.940637397663802, abs=1e-12)
    assert table["alpha_interval"] == pytest.approx(0.9463231347289318, abs=1e-12)


def test_94_percent_agreement_at_95_percent_prevalence_is_a_kappa_of_37_and_an_ac1_of_93():
    # both say yes to 92, each alone to 3, neither to 2: chance for kappa .95 x .95 + .05 x .05 = .905, for AC1 2 x .95 x .05 = .095
    table = found(pair_agreement(crossed([[92, 3], [3, 2]], "YN")))
    assert table["agreement"] == pytest.approx(0.94)
    assert table["kappa"] == pytest.approx((0.94 - 0.905) / 0.095)
    assert table["ac1"] == pytest.approx((0.94 - 0.095) / 0.905)
    assert (round(table["kappa"], 2), round(table["ac1"], 2)) == (0.37, 0.93)


def test_kappa_of_all_raters_is_congers_where_all_have_labelled_all():
    rows = ["AABBCCAABC", "AABBCBAACC", "ABBBCCAABA"]
    pairs = list(itertools.combinations(rows, 2))
    seen = np.mean([np.mean([x == y for x, y in zip(*pair, strict=True)]) for pair in pairs])
    chance = np.mean([sum(a.count(name) * b.count(name) for name in "ABC") / 100 for a, b in pairs])
    assert found(agreement(long(rows)))["kappa"] == pytest.approx((seen - chance) / (1 - chance))


# What counts


def test_by_pair_only_items_that_both_have_labelled_count():
    table = pair_agreement(long(["AAB?B.", "ABB.AA", ".....B"], missing="."))
    assert list(table.drop_duplicates(["rater_1", "rater_2"])[["rater_1", "rater_2", "n_items"]].itertuples(index=False, name=None)) == [
        ("a", "b", 4), ("b", "c", 1),
    ]  # fmt: skip
    first = table.loc[table["rater_1"].eq("a")]
    assert found(first)["agreement"] == 2 / 4
    # yes, by a 2 of 4, by b 2 of 4: the label of b that a could not match, and what b gave beside c, are in no share
    assert found(first)["kappa"] == pytest.approx(0)
    assert found(first)["ac1"] == pytest.approx(0)


def test_bounds_take_each_label_that_is_cannot_assess_on_its_own():
    # items YY YY YN NN NN UY with U open twice more: 5/6 seen; all open alike 7/8 or 6/8, each on its own 7/8 at most and 5/8 at least
    table = agreement(long(["YYYNNY??", "YYNNNYYN"]), coefficients=EVERY)
    assert found(table)["agreement"] == 5 / 6
    assert (found(table, "bound_low")["agreement"], found(table, "bound_high")["agreement"]) == (5 / 8, 7 / 8)
    assert set(table["n_cannot_assess"]) == {2}
    assert set(table["n_items"]) == {6}


def test_a_pairs_bounds_count_what_either_could_not_assess():
    table = pair_agreement(long(["YN?", "YNY"]))
    assert set(table["n_cannot_assess"]) == {1}
    assert (found(table, "bound_low")["agreement"], found(table, "bound_high")["agreement"]) == pytest.approx(
        (2 / 3, 1)
    )


def test_a_label_that_nobody_else_gave_enters_the_class_shares_of_gwet_and_nothing_else():
    alone = agreement(long(["YYNYN", "YYNNN"]), coefficients=EVERY)
    more = agreement(long(["YYNYNNNNN", "YYNNN...."], missing="."), coefficients=EVERY)
    changed = {name for name in Coefficient if found(alone)[name] != pytest.approx(found(more)[name])}
    assert changed == {"ac1", "ac2_linear", "ac2_quadratic"}
    widths = [found(table, "se")["kappa"] for table in (alone, more)]
    assert widths[0] == pytest.approx(widths[1])  # examples with single labels do not narrow an interval
    assert set(more["n_examples"]) == {5}


def test_a_group_is_what_its_items_are_alone():
    labels = drawn(5, 3, 3)
    labels["theme"] = labels["unit"].map(
        {unit: [None, "x", "y"][n % 3] for n, unit in enumerate(labels["unit"].unique())}
    )
    table = agreement(labels, by=["overall", "theme"])
    assert list(table["group"].unique()) == ["overall", "x", "y"]
    for theme in "xy":
        alone = agreement(ordered(labels.loc[labels["theme"].eq(theme)], list("ABC")))
        group = table.loc[table["group"].eq(theme)]
        pd.testing.assert_frame_equal(
            group.drop(columns=["grouping", "group"]).reset_index(drop=True), alone.drop(columns=["grouping", "group"])
        )
        assert set(group["grouping"]) == {"theme"}


def test_categories_that_nobody_used_weigh_on_gwets_chance():
    labels = crossed([[8, 1], [1, 10]], "AB")
    # chance of AC1: sum p (1 - p) / (K - 1)
    share = 2 * (9 / 20) * (11 / 20)
    for n in (2, 4):
        value = found(agreement(ordered(labels, list("ABCD"[:n]))))["ac1"]
        assert value == pytest.approx(1 - 0.1 / (1 - share / (n - 1)))


# What has no value


def test_one_category_only_leaves_kappa_without_a_value_and_ac1_at_1():
    table = agreement(ordered(long(["YYYYY", "YYYYY"]), ["N", "Y"]))
    assert [math.isnan(value) for value in table["value"]] == [False, True, True, True, False]
    assert list(table["reason"]) == [NO_SPREAD, ONE_CATEGORY, ONE_CATEGORY, ONE_CATEGORY, NO_SPREAD]
    assert found(table)["ac1"] == 1
    assert reasons(table)[0] == f"Percent agreement, Gwet's AC1: {NO_SPREAD}."


def test_without_two_labels_on_an_item_there_is_no_value():
    for labels in (long(["YY..", "..NN"], missing="."), long(["", ""]), long(["?Y", "N?"])):
        table = agreement(ordered(labels, ["N", "Y"]))
        assert set(table["reason"]) == {NO_PAIR}
        assert table[["value", "low", "high", "se"]].isna().all(axis=None)
    assert pair_agreement(ordered(long(["YY..", "..NN"], missing="."), ["N", "Y"])).empty


def test_raters_in_general_take_three_effective_raters():
    rows = ["YYNNYYNYNNYY", "YNNNYYNYNYYY", "YYNYYYNYNNNY"]
    three = agreement(long(rows), coefficients=["agreement"]).iloc[0]
    assert (three["n_effective_raters"], three["general_reason"]) == (3, "")
    two = agreement(long(rows[:2]), coefficients=["agreement"]).iloc[0]
    assert (two["n_effective_raters"], two["general_reason"]) == (2, TOO_FEW_RATERS)
    assert math.isnan(two["general_low"])
    # 12, 12 and 3 labels: 27^2 / (144 + 144 + 9) = 2.45 raters
    unlike = agreement(long([*rows[:2], "YYN........."], missing="."), coefficients=["agreement"]).iloc[0]
    assert unlike["n_effective_raters"] == pytest.approx(27**2 / 297)
    assert unlike["general_reason"] == TOO_FEW_RATERS


def test_few_examples_have_no_interval_and_neither_has_a_kappa_that_rests_on_one():
    four, five = (agreement(long(["YYNNY"[:n] * 2, "YYNYY"[:n] * 2], per_example=2)) for n in (4, 5))
    assert set(four["reason"]) == {TOO_FEW}
    assert four["value"].notna().all()
    assert four["low"].isna().all()
    assert five["low"].notna().all()
    # without the third example all say yes
    rests = agreement(long(["YYNYY", "YYYYY"]))
    assert found(rests, "reason")["kappa"] == RESTS_ON_ONE
    assert found(rests)["kappa"] == pytest.approx(0)
    assert found(rests, "reason")["ac1"] == ""


@pytest.mark.parametrize(
    ("labels", "named", "says"),
    [
        (pd.concat([long(["Y", "N"])] * 2), {}, "two labels"),
        (long(["Y", "N"]), {"by": ["weather"]}, "expected overall or a column of the labels .* got 'weather'"),
    ],
)
def test_what_cannot_be_counted_is_refused(labels, named, says):
    with pytest.raises(ValueError, match=says):
        agreement(labels, **named)

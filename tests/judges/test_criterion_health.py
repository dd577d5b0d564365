"""Health of criteria: what each alarm means, what it takes, and when there is none; and the shares it is made of."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.judges import criterion_health as health
from evalcore.judges.criterion_health import (
    ALARM_COLUMNS,
    DISPUTED_SHARE,
    GROUPINGS,
    MIN_ITEMS,
    UNASSESSABLE_SHARE,
    criterion_health,
    read_items,
)
from evalcore.judges.record import Reads
from evalcore.stats.arrays import codes_of
from evalcore.stats.intervals import grouped_shares, share_interval
from tests import population
from tests.rubric_rows import of_columns, shuffled


def one_a_case(judge, *readers, cluster="hedging_any", **more):
    """Items that are an example each."""
    n = len(judge)
    return of_columns(
        example=list(range(1, n + 1)),
        criterion=[1] * n,
        judges={"Magpie": judge},
        readers={f"Dr. {place}": letters for place, letters in enumerate(readers)},
        cluster=[cluster] * n,
        **more,
    )


def row(rubric_data, by="category", judge="Magpie"):
    table = criterion_health(rubric_data, judge, by=by)
    assert len(table) == 1
    return table.iloc[0]


def alarms(rubric_data, by="category"):
    found = row(rubric_data, by)
    return {name for name in ALARM_COLUMNS if found[name]}


# ---------------------------------------------------------------- shares of many groups at once


@given(items=st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(-1, 3)), max_size=80))
def test_each_group_gets_the_interval_it_would_get_alone(items):
    hits, clusters, groups = (np.array([item[place] for item in items]) for place in range(3))
    table = grouped_shares(hits.astype(bool), clusters.astype(int), groups.astype(int), 4)
    for group in range(4):
        mine = groups == group
        alone = share_interval(hits[mine].astype(bool), clusters[mine])
        found = table.iloc[group]
        assert (found["n"], found["n_hits"], found["n_clusters"]) == (alone.n, alone.n_hits, alone.n_clusters)
        expected = (alone.share, alone.low, alone.high)
        assert (found["share"], found["low"], found["high"]) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_trials_of_one_item_count_as_the_trials_that_they_are():
    # 6 of 9 pairs in three items of three pairs each: the same as nine truth values in three clusters
    together = grouped_shares(np.array([3, 2, 1]), np.arange(3), np.zeros(3, int), 1, sizes=np.array([3.0, 3.0, 3.0]))
    apart = share_interval([True] * 3 + [True, True, False] + [True, False, False], np.repeat(np.arange(3), 3))
    found = together.iloc[0]
    assert tuple(found[["n", "n_hits", "share", "low", "high"]]) == pytest.approx(
        (9, 6, apart.share, apart.low, apart.high)
    )


def test_codes_of_a_column_are_those_of_its_categories_and_missing_is_negative():
    codes, names = codes_of(pd.Series([30, 10, 30]))
    assert (codes.tolist(), names) == ([1, 0, 1], [10, 30])


# ---------------------------------------------------------------- shares and counts


def test_judge_and_physicians_are_compared_on_the_items_that_both_labelled():
    #         judge  ++-+ .  six items: the last without the judge's label, the fifth unread
    found = row(one_a_case("++-+-.", "+-?+.+"))
    # both: items 1, 2, 4: judge 3/3, physicians 2/3; right on 2 of 3
    assert (found["n_items"], found["n_judged"], found["n_met_judged"]) == (6, 5, 3)
    assert (found["n"], found["n_met_judge"], found["judge"]) == (3, 3, 1.0)
    assert found["physicians"] == pytest.approx(2 / 3)
    assert found["right"] == pytest.approx(2 / 3)
    assert (found["n_reads"], found["n_cannot_assess"]) == (5, 1)
    alone = share_interval([True, False, True], [1, 2, 4])
    assert (found["physicians_low"], found["physicians_high"]) == pytest.approx((alone.low, alone.high))


def test_an_item_counts_once_by_the_mean_of_its_readers_votes():
    found = row(one_a_case("+-", "++", "-+"))
    # votes 1/2 and 1: physicians 3/4; right: 1 - |1 - 1/2| = 1/2 and 1 - |0 - 1| = 0
    assert found["physicians"] == 0.75
    assert found["right"] == 0.25
    assert (found["n"], found["n_reads"], found["n_pairs"], found["n_disagreeing"]) == (2, 4, 2, 1)


def test_three_readers_of_an_item_are_three_pairs():
    found = row(one_a_case("++", "++", "+-", "--"))
    # + + -: two of three pairs differ; + - -: two of three
    assert (found["n_pairs"], found["n_disagreeing"]) == (6, 4)
    assert found["disagreement"] == pytest.approx(4 / 6)


def test_the_association_is_the_difference_of_physicians_shares_with_newcombes_interval():
    # judge met on 29 of which physicians say met on 8, not met on 56 with 20
    judge = "+" * 29 + "-" * 56
    reader = "+" * 8 + "-" * 21 + "+" * 20 + "-" * 36
    found = row(one_a_case(judge, reader))
    first, second = (
        share_interval([True] * 8 + [False] * 21, range(29)),
        share_interval([True] * 20 + [False] * 36, range(56)),
    )
    d = 8 / 29 - 20 / 56
    assert found["association"] == pytest.approx(d)
    low = d - np.hypot(first.share - first.low, second.high - second.share)
    high = d + np.hypot(first.high - first.share, second.share - second.low)
    assert (found["association_low"], found["association_high"]) == pytest.approx((low, high))


def test_newcombes_published_interval_is_found_on_items_that_stand_alone():
    # Newcombe 1998 (Statistics in Medicine 17:873), table II, example (a): 56/70 - 48/80, method 10: 0.0524 to 0.3339
    judge = "+" * 70 + "-" * 80
    reader = "+" * 56 + "-" * 14 + "+" * 48 + "-" * 32
    found = row(one_a_case(judge, reader))
    assert (round(found["association_low"], 4), round(found["association_high"], 4)) == (0.0524, 0.3339)


def test_only_blind_first_reads_count():
    for more in ({"blinded": False}, {"stage": "revised"}, {"stage": "adjudicated"}):
        found = row(one_a_case("+" * 20, "-" * 20, **more))
        assert (found["n"], found["n_reads"], found["n_alarms"]) == (0, 0, 0)
        assert np.isnan(found["physicians"])
        assert np.isnan(found["right_high"])


# ---------------------------------------------------------------- alarms


def test_a_judge_that_never_says_met_where_physicians_nearly_always_do_is_too_strict_and_not_inverted():
    # as measured of a real judge: 0.4 % met where physicians are 86.5 % met. Right on 8 of 60, but it says met nowhere: nothing is opposed.
    rubric_data = one_a_case("-" * 60, "+" * 52 + "-" * 8)
    assert alarms(rubric_data) == {"strict"}
    said = row(rubric_data)["reasons"]
    # the judge's share does not vary, so r = 0; Wilson 0/60 [0, .0602], 52/60 [.7584, .9308]: -.8667 - .0641, -.8667 + hypot(.0602, .1083)
    assert said == (
        "The judge finds 0 % [0 %, 6 %] met, physicians 87 % [76 %, 93 %] of the same 60 items: a difference of −87 [−93, −74] points."
    )


def test_a_judge_that_is_mostly_wrong_and_yet_goes_with_the_physicians_is_not_inverted():
    # judge met on 10, physicians on 7 of these; not met on 90, physicians met on 41 of these: association .70 - .46 = +.24, right on 56 %;
    # with 60 of these: right on 7 + 30 of 100, association +.03. Neither is inverted; both find less met than physicians do.
    going_with = one_a_case("+" * 10 + "-" * 90, "+" * 7 + "-" * 3 + "+" * 41 + "-" * 49)
    assert row(going_with)["association"] == pytest.approx(0.7 - 41 / 90)
    mostly_wrong = one_a_case("+" * 10 + "-" * 90, "+" * 7 + "-" * 3 + "+" * 60 + "-" * 30)
    assert row(mostly_wrong)["right_high"] < 0.5
    assert row(mostly_wrong)["association"] > 0
    assert alarms(going_with) == alarms(mostly_wrong) == {"strict"}


def test_a_judge_that_is_right_on_most_and_yet_opposed_is_inverted_and_nothing_else():
    # judge met on 12, physicians on none of those; not met on 60, physicians met on 18: right on 42 of 72, 58 %
    rubric_data = one_a_case("+" * 12 + "-" * 60, "-" * 12 + "+" * 18 + "-" * 42)
    found = row(rubric_data)
    assert alarms(rubric_data) == {"inverted"}
    assert found["right"] == pytest.approx(42 / 72)
    assert "Where the judge says met, physicians say met on 0 % " in found["reasons"]


def test_an_association_below_0_whose_interval_reaches_0_is_not_inverted():
    # physicians met on 8 of 20 and 12 of 20: -.2 with the interval to +.10; as many met on both sides
    rubric_data = one_a_case("+" * 20 + "-" * 20, "+" * 8 + "-" * 12 + "+" * 12 + "-" * 8)
    found = row(rubric_data)
    assert found["association"] == pytest.approx(-0.2)
    assert found["association_high"] > 0
    assert alarms(rubric_data) == set()


def test_a_lenient_judge_is_too_lenient():
    # judge always met; physicians on 60 %
    assert alarms(one_a_case("+" * 80, "+" * 48 + "-" * 32)) == {"lenient"}


def test_the_shift_has_newcombes_interval_for_shares_of_the_same_items():
    # 50 items: both met 20, judge alone 12, physicians alone 2, neither 16
    judge = "+" * 32 + "-" * 18
    reader = "+" * 20 + "-" * 12 + "+" * 2 + "-" * 16
    found = row(one_a_case(judge, reader))
    one, other = (share_interval([True] * k + [False] * (50 - k), range(50)) for k in (32, 22))
    phi = (20 * 16 - 12 * 2) / np.sqrt(32 * 18 * 22 * 28)
    below, above = (
        np.sqrt(a**2 - 2 * phi * a * b + b**2)
        for a, b in ((one.share - one.low, other.high - other.share), (one.high - one.share, other.share - other.low))
    )
    assert (found["shift"], found["shift_low"], found["shift_high"]) == pytest.approx((0.2, 0.2 - below, 0.2 + above))
    assert alarms(one_a_case(judge, reader)) == {"lenient"}


@pytest.mark.parametrize(("n", "given"), [(4, False), (9, False), (10, True)])
def test_fewer_than_ten_items_have_a_difference_without_an_interval(n, given):
    found = row(one_a_case("+" * n, "-" + "+" * (n - 1)))
    assert found["shift"] == pytest.approx(1 / n)
    assert found[["shift_low", "shift_high"]].notna().all() == given


def test_a_judge_that_says_what_physicians_say_raises_no_alarm():
    letters = "+-" * 30
    assert alarms(one_a_case(letters, letters, letters)) == set()


def test_shares_that_differ_by_less_than_the_bound_are_no_alarm_however_many_were_read():
    # 100 % against 91 %, against 90 %; and against 70 % of ten: 0 to 60 points
    assert alarms(one_a_case("+" * 1000, "+" * 910 + "-" * 90)) == set()
    assert alarms(one_a_case("+" * 1000, "+" * 900 + "-" * 100)) == {"lenient"}
    assert alarms(one_a_case("+" * 10, "+" * 8 + "-" * 2)) == set()


@pytest.mark.parametrize(("n_read", "expected"), [(MIN_ITEMS - 1, set()), (MIN_ITEMS, {"strict"})])
def test_with_too_few_reads_there_is_no_alarm_and_n_is_told(n_read, expected):
    rubric_data = one_a_case("-" * 30, "+" * n_read + "." * (30 - n_read))
    assert alarms(rubric_data) == expected
    assert row(rubric_data)["n"] == n_read


def test_many_items_of_one_example_are_no_evidence_about_others():
    n = 60
    rubric_data = of_columns(
        example=[1] * n,
        criterion=list(range(1, n + 1)),
        judges={"Magpie": "-" * n},
        readers={"Dr. A": "+" * n},
        cluster=["hedging_any"] * n,
    )
    assert row(rubric_data)["n_clusters"] == 1
    assert alarms(rubric_data) == set()


def test_one_criterion_is_clustered_by_response():
    n = 12  # twelve models' responses to one example
    rubric_data = of_columns(
        example=[1] * n,
        criterion=[1] * n,
        model=[f"model {place:02}" for place in range(n)],
        judges={"Magpie": "-" * n},
        readers={"Dr. A": "+" * n},
    )
    found = row(rubric_data, "criterion")
    assert (found["group"], found["n"], found["n_clusters"]) == (101, n, n)
    assert alarms(rubric_data, "criterion") == {"strict"}
    assert criterion_health(rubric_data, "Magpie").empty  # it belongs to no category


def test_physicians_who_differ_in_more_pairs_than_the_bound_dispute():
    # 24 of 40 pairs: Wilson .4460 to .7365, above the bound; 14 of 40: .2213 to .5055, not
    judge = "-" * 12 + "+" * 28
    disputed = one_a_case(judge, "+" * 40, "-" * 24 + "+" * 16)
    assert alarms(disputed) == {"disputed"}
    assert row(disputed)["reasons"] == "Physicians differ in 60 % (24/40) of the pairs of reads, more than 30 %."
    assert alarms(one_a_case("-" * 7 + "+" * 33, "+" * 40, "-" * 14 + "+" * 26)) == set()
    assert DISPUTED_SHARE == 0.3


def test_what_physicians_often_cannot_assess_is_unassessable():
    # 12 of 40: Wilson .1807 to .4543; 6 of 40: .0706 to .2907
    assert alarms(one_a_case("+" * 40, "?" * 12 + "+" * 28)) == {"unassessable"}
    assert alarms(one_a_case("+" * 40, "?" * 6 + "+" * 34)) == set()
    assert UNASSESSABLE_SHARE == 0.1


def test_criteria_without_a_category_are_in_none():
    rubric_data = of_columns(
        example=[1, 2],
        criterion=[1, 1],
        judges={"Magpie": "++"},
        readers={"Dr. A": "++"},
        cluster=["hedging_any", None],
    )
    assert list(criterion_health(rubric_data, "Magpie")["n_items"]) == [1]


# ---------------------------------------------------------------- in words, and the items of a row


def test_the_finding_counts_alarms_of_what_was_read():
    bad = one_a_case("-" * 60, "+" * 60)
    table = criterion_health(bad, "Magpie")
    bad_group = table["group"].iloc[0].replace("_", " ")
    assert (
        health.finding(table)
        == f"The one category that physicians have read raises an alarm: {bad_group} (too strict)."
    )
    many = pd.concat([table.assign(group=f"group_{n}") for n in range(4)], ignore_index=True)
    assert health.finding(many) == "All 4 categories that physicians have read raise an alarm: 4 too strict."
    well_read = criterion_health(one_a_case("+-" * 5, "+-" * 5), "Magpie")
    assert health.finding(well_read) == "No alarm on the one category that physicians have read."
    assert health.finding(criterion_health(one_a_case("++", "++"), "Magpie")) == (
        "No alarm on the one category that physicians have read. "
        "Fewer than 10 items of it have been read, too few to say how the judge does."
    )
    assert health.finding(criterion_health(one_a_case("++", ".."), "Magpie")) == (
        "No physician has read any of these criteria blind yet."
    )


def test_the_items_of_a_row_are_those_read_with_the_worst_difference_first():
    rubric_data = one_a_case("+-+.+", "+++?.", "+-++.")
    # votes 1, 1/2, 1, 1 (one could not assess), unread; judge +, -, +, none: differences 0, 1/2, 0, none
    found = read_items(rubric_data, "Magpie", by="category", group="hedging_any")
    assert list(found["example_id"]) == [2, 1, 3, 4]
    assert list(found["n_met"]) == [1, 2, 2, 1]
    assert list(found["n_not_met"]) == [1, 0, 0, 0]
    assert list(found["n_cannot_assess"]) == [0, 0, 0, 1]
    assert found["judge_met"].tolist()[:3] == [0, 1, 1]
    assert np.isnan(found["judge_met"].iloc[3])
    assert read_items(rubric_data, "Magpie", by="category", group="another").empty


# ---------------------------------------------------------------- properties


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(31)
    rubric_data, _ = population.drawn(
        rng, n_examples=60, models=("Alder", "Briar"), judges={"Magpie": 0.8, "Wren": 0.4}, n_readers=2,
        reader_accuracy=0.85, share_read=0.5,
    )  # fmt: skip
    return rubric_data


@given(seed=st.integers(0, 2**32 - 1), by=st.sampled_from(list(GROUPINGS)))
def test_the_order_of_rows_does_not_matter(study, seed, by):
    told = criterion_health(study, "Magpie", by=by)
    anew = criterion_health(shuffled(study, np.random.default_rng(seed)), "Magpie", by=by)
    pd.testing.assert_frame_equal(told, anew, rtol=1e-9)


@given(share=st.floats(0.01, 1), seed=st.integers(0, 2**32 - 1), by=st.sampled_from(list(GROUPINGS)))
def test_the_largest_group_is_the_one_that_the_table_counts(study, share, seed, by):
    some = study.where(np.random.default_rng(seed).random(len(study.items)) < share)
    counted = criterion_health(some, "Wren", by=by)["n"].max() if some.items[GROUPINGS[by][0]].notna().any() else 0
    assert health.largest_group(some, "Wren", by=by) == counted


@given(seed=st.integers(0, 2**32 - 1), by=st.sampled_from(list(GROUPINGS)))
def test_calling_met_not_met_mirrors_every_share_and_alarm_and_only_what_is_opposed_is_inverted(study, seed, by):
    rng = np.random.default_rng(seed)
    some = study.where(rng.random(len(study.items)) < 0.5)
    other = type(some)(some.items, 1 - some.judged, some.reads.assign(met=1 - some.reads["met"]))
    told, turned = criterion_health(some, "Wren", by=by), criterion_health(other, "Wren", by=by)
    for side in ("judge", "physicians"):
        np.testing.assert_allclose(told[side], 1 - turned[side])
        np.testing.assert_allclose(told[f"{side}_low"], 1 - turned[f"{side}_high"], atol=1e-9)
    for same in ("right", "disagreement", "cannot_assess", "association"):
        np.testing.assert_allclose(told[same], turned[same])
    np.testing.assert_allclose(told["shift_low"], -turned["shift_high"], atol=1e-9)
    mirrored = {"lenient": "strict", "strict": "lenient"}
    for alarm in ALARM_COLUMNS:
        assert told[alarm].tolist() == turned[mirrored.get(alarm, alarm)].tolist()
    assert not told[["inverted", "lenient", "strict"]].sum(axis=1).gt(1).any()
    assert not (told["inverted"] & told["association"].ge(0)).any()


@given(
    items=st.lists(
        st.tuples(st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0.1, 0.25, 1.0])),
        min_size=12,
        max_size=60,
    )
)
def test_drawn_items_count_by_one_over_their_probability_and_volunteered_ones_not_at_all(items):
    judge, first, second, probability = (list(column) for column in zip(*items, strict=True))
    letters = ["".join("+" if met else "-" for met in column) for column in (judge, first, second)]
    drawn = one_a_case(letters[0], letters[1], letters[2], probability=probability)
    found = row(drawn, by="axis")
    weight, vote = 1 / np.array(probability), (np.array(first) + np.array(second, dtype=float)) / 2
    assert found["judge"] == pytest.approx(np.average(judge, weights=weight))
    assert found["physicians"] == pytest.approx(np.average(vote, weights=weight))
    assert found["disagreement"] == pytest.approx(np.average(np.array(first) != np.array(second), weights=weight))
    assert found["weighted"] == (len(set(probability)) > 1)
    each_once = criterion_health(drawn, "Magpie", by="axis", reads=Reads.ALL).iloc[0]
    assert each_once["physicians"] == pytest.approx(vote.mean())
    volunteered = drawn.reads.assign(selection="volunteered").loc[lambda reads: reads["row"].lt(6)]
    kept = drawn.reads.loc[drawn.reads["row"].ge(6)]
    mixed = type(drawn)(drawn.items, drawn.judged, pd.concat([kept, volunteered], ignore_index=True))
    assert row(mixed, by="axis")["n"] == len(items) - 6
    assert row(mixed, by="axis")["physicians"] == pytest.approx(np.average(vote[6:], weights=weight[6:]))


def test_groups_of_a_grouping_hold_every_item_once(study):
    for by in ("axis", "theme", "criterion"):
        table = criterion_health(study, "Magpie", by=by)
        assert table["n_items"].sum() == len(study.items)
        assert (table["n_judged"] == table["n_items"]).all()  # this judge left nothing out
        assert table["n"].sum() == study.reads["row"].nunique()


def test_a_study_without_items_or_reads_raises_no_alarm(study):
    nothing = study.where(np.zeros(len(study.items), dtype=bool))
    unread = type(study)(study.items, study.judged, study.reads.iloc[:0])
    for by in GROUPINGS:
        for some in (nothing, unread):
            table = criterion_health(some, "Magpie", by=by)
            assert not table["n_alarms"].any()
            assert not table["n_reads"].any()


@pytest.mark.slow
def test_a_judge_as_good_as_a_coin_is_called_inverted_seldom():
    """At the bound itself, the alarm's own false alarms: it is allowed 2.5 %."""
    rng = np.random.default_rng(1853)
    n_runs, raised = 400, 0
    for _ in range(n_runs):
        n_examples = 40
        example = np.repeat(np.arange(1, n_examples + 1), 4)
        kind = np.repeat(rng.random(n_examples) < 0.5, 4)  # criteria of one example are alike
        truth = np.where(rng.random(len(example)) < 0.3, rng.random(len(example)) < 0.5, kind)
        told = np.repeat(
            rng.random(n_examples) < 0.5, 4
        )  # of the same kind throughout an example, and unrelated to the truth
        rubric_data = of_columns(
            example=example.tolist(),
            criterion=[1, 2, 3, 4] * n_examples,
            judges={"Magpie": "".join("+" if met else "-" for met in told)},
            readers={"Dr. A": "".join("+" if met else "-" for met in truth)},
            cluster=["hedging_any"] * len(example),
        )
        raised += int(row(rubric_data)["inverted"])
    assert raised / n_runs < 0.041  # 2.5 % and two standard errors

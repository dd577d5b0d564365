"""Where a judge stands among physicians: percentiles, themes, and the finding in words."""

import math

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.judges.quality import (
    CATEGORY,
    JUDGE,
    NO_THEME,
    OVERALL,
    PHYSICIAN,
    THEME,
    TOGETHER,
    balanced_f1,
    finding,
    judge_pairs,
    kept_physicians,
    percentile_words,
    percentiles,
    physician_pairs,
    standings,
    theme_of_categories,
    value_words,
)
from tests.quality_rows import many, opinions_of, row_of
from tests.rubric_rows import of_drawing as study


def values(judge: float, physicians: dict[str, tuple[int, float]]) -> pd.DataFrame:
    """Pooled values of one judge and of physicians, each with n_pairs."""
    rows = [(JUDGE, "Magpie", OVERALL, OVERALL, 500, judge)]
    rows += [(PHYSICIAN, name, OVERALL, OVERALL, n, value) for name, (n, value) in physicians.items()]
    return pd.DataFrame(rows, columns=["rater_kind", "rater", "grouping", "group", "n_pairs", "balanced_f1"])


def test_the_percentile_is_the_share_of_physicians_below_and_half_of_the_ties():
    others = {str(n): (60, value) for n, value in enumerate([0.5, 0.6, 0.7, 0.7, 0.8] * 2)}
    row = percentiles(values(0.7, others)).squeeze()
    assert row["percentile"] == 60  # 4 below and 4 ties of 10
    # Wilson 6/10
    assert (row["percentile_low"], row["percentile_high"]) == pytest.approx((31.27, 83.18), abs=0.01)
    assert (row["lowest"], row["median"], row["highest"]) == (0.5, 0.7, 0.8)
    assert percentiles(values(0.9, others)).squeeze()["percentile"] == 100
    assert percentiles(values(0.1, others)).squeeze()["percentile"] == 0


def test_only_physicians_with_more_than_50_pairs_and_a_value_are_kept():
    others = {"a": (50, 0.1), "b": (51, 0.6), "c": (900, math.nan), "d": (51, 0.9)}
    found = values(0.7, others)
    row = percentiles(found).squeeze()
    assert (row["n_physicians"], row["n_physicians_left_out"], row["median"]) == (2, 2, 0.75)
    assert list(kept_physicians(found)["rater"]) == ["b", "d"]
    assert percentiles(found, min_pairs=49).squeeze()["n_physicians"] == 3


def test_among_fewer_than_10_physicians_there_is_no_percentile():
    nine = {str(n): (60, n / 10) for n in range(9)}
    columns = ["percentile", "percentile_low", "percentile_high"]
    assert percentiles(values(0.75, nine))[columns].isna().all(axis=None)
    assert percentiles(values(0.75, nine | {"9": (60, 0.9)})).squeeze()["percentile"] == 80
    assert percentile_words(percentiles(values(0.75, nine)).squeeze()) == "–"


def test_without_a_physician_to_compare_with_or_a_value_of_its_own_there_is_no_percentile():
    assert math.isnan(percentiles(values(0.7, {})).squeeze()["percentile"])
    assert math.isnan(percentiles(values(math.nan, {"a": (60, 0.5)})).squeeze()["percentile"])


def test_a_theme_is_the_mean_of_its_categories_weighted_by_pairs_and_undefined_ones_are_left_out():
    drawing = pd.DataFrame(
        [
            ("hedging_one", 30, 0.5),
            ("hedging_two", 10, 0.9),
            ("hedging_three", 99, math.nan),
            ("communication_x", 7, math.nan),
        ],
        columns=["group", "n_pairs", "balanced_f1"],
    ).assign(rater_kind=JUDGE, rater="Magpie", grouping=CATEGORY)
    themes = {
        "hedging_one": "hedging",
        "hedging_two": "hedging",
        "hedging_three": "hedging",
        "communication_x": "communication",
    }
    found = standings(drawing, themes).set_index("group")
    assert set(found["grouping"]) == {THEME}
    assert (found.loc["hedging", "n_pairs"], found.loc["hedging", "balanced_f1"]) == (40, pytest.approx(0.6))
    assert found.loc["communication", "n_pairs"] == 0
    assert math.isnan(found.loc["communication", "balanced_f1"])


def test_a_category_belongs_to_the_theme_in_its_name_else_to_that_of_most_of_its_items():
    rubric_data = study("""
        cluster                     | theme       | Magpie
        emergency_referrals_now     |             | +
        emergency_referrals_now     | hedging     | +
        our_own                     | hedging     | +
        our_own                     | paediatrics | +
        our_own                     | paediatrics | +
        untagged                    |             | +
                                    | hedging     | +
    """)
    assert theme_of_categories(rubric_data.items) == {
        "emergency_referrals_now": "emergency_referrals", "our_own": "paediatrics", "untagged": NO_THEME,
    }  # fmt: skip


@many
@given(st.integers(0, 10_000), st.integers(0, 30))
def test_percentiles_lie_in_0_to_100_and_a_better_judge_never_stands_lower(seed, min_pairs):
    rubric_data = opinions_of(seed)
    found = standings(balanced_f1(rubric_data), theme_of_categories(rubric_data.items))
    ranks = percentiles(found, min_pairs=min_pairs)
    assert ranks["percentile"].dropna().between(0, 100).all()
    for _, group in ranks.loc[ranks["percentile"].notna()].groupby("group"):
        assert group.sort_values("balanced_f1")["percentile"].is_monotonic_increasing


def test_the_finding_in_words():
    rubric_data = opinions_of(8, n_examples=60, judges={"Magpie": 0.78})
    table = balanced_f1(rubric_data)
    ranks = percentiles(standings(table, theme_of_categories(rubric_data.items)))
    row, rank = row_of(table, "Magpie"), ranks.loc[ranks["grouping"].eq(OVERALL)].squeeze()
    assert rank["n_physicians"] == 3
    assert finding(table, ranks, "Magpie") == (
        f"Magpie agrees with physicians at a balanced F1 of {row['balanced_f1']:.2f} [{row['low']:.2f}, {row['high']:.2f}]; physicians among "
        f"themselves reach {value_words(row_of(table, TOGETHER))}, all together; a percentile needs 10 physicians with more than 50 pairs, "
        "and 3 physicians have."
    )
    many_more = ranks.assign(n_physicians=12, percentile=62.5, percentile_low=35.0, percentile_high=83.6)
    assert finding(table, many_more, "Magpie").endswith(
        "; it is at the 62nd percentile of 12 physicians, with [35 %, 84 %] of physicians like these below it."
    )


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        ("Magpie | dr_a\n | +", "Magpie has labelled nothing that a physician has read blind."),
        ("Magpie | dr_a\n+ | +\n- | -", "no two physicians have read the same criterion"),
        ("Magpie | dr_a\n+ | +", "The balanced F1 of Magpie is undefined: it never says not met, physicians never say not met"),
        ("Magpie | dr_a | dr_b\n+ | + | +\n- | - | -", "physicians among themselves reach 1.00, no interval, all together; a percentile needs 10 physicians"),
        ("Magpie | dr_a | dr_b\n+ | + | +", "that of physicians among themselves is undefined: physicians never say not met;"),
    ],
)  # fmt: skip
def test_the_finding_says_what_is_missing(drawing, said):
    rubric_data = study(drawing)
    table = balanced_f1(rubric_data)
    ranks = percentiles(standings(table, theme_of_categories(rubric_data.items)))
    assert said in finding(table, ranks, "Magpie")


def test_without_reads_every_table_is_empty():
    rubric_data = study("Magpie | Wren\n+ | -")
    table = balanced_f1(rubric_data)
    assert table.empty
    assert judge_pairs(rubric_data).empty
    assert physician_pairs(rubric_data).empty
    assert percentiles(standings(table, {})).empty

"""Standardised residuals and the weights of themes: against scipy, against their own algebra, and on studies drawn at random."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evalcore.metrics.benchmark_counts import AXES, N_CRITERIA, N_EXAMPLES, THEMES, published
from evalcore.metrics.lopsided import Beside, Leaning, lopsided_sentence, residuals, residuals_of_part
from evalcore.metrics.pair_tests import adjusted, holm
from evalcore.metrics.theme_weights import weighting, weighting_sentence

THREE = pd.Series({"a": 0.5, "b": 0.3, "c": 0.2})


def one_each(**hits: int) -> pd.DataFrame:
    """Units of these groups, each in a cluster of its own."""
    groups = [group for group, n in hits.items() for _ in range(n)]
    return pd.DataFrame({"group": groups, "cluster": range(len(groups)), "n": 1})


def in_clusters(rng: np.random.Generator, *, n_clusters: int, size: int, alike: bool) -> pd.DataFrame:
    """Units of THREE in clusters; `alike`: all of a cluster in one group."""
    group = rng.choice(list(THREE.index), p=THREE, size=n_clusters if alike else n_clusters * size)
    return pd.DataFrame(
        {"group": np.repeat(group, size) if alike else group, "cluster": np.repeat(np.arange(n_clusters), size), "n": 1}
    )


counted = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=40
).map(
    lambda rows: pd.DataFrame(
        [(group, cluster, n, n + further) for group, cluster, n, further in rows],
        columns=["group", "cluster", "n", "n_population"],
    )
)


# ---------------------------------------------------------------- beside published counts


def test_with_one_unit_a_cluster_a_residual_is_the_textbook_one():
    table = residuals(one_each(a=70, b=10, c=20), THREE).set_index("group")
    assert table["n_expected"].to_dict() == pytest.approx({"a": 50, "b": 30, "c": 20})
    assert table.loc["a", "residual"] == pytest.approx((70 - 50) / math.sqrt(50 * 0.5))
    assert table.loc["b", "residual"] == pytest.approx((10 - 30) / math.sqrt(30 * 0.7))
    assert table.loc["c", "residual"] == 0
    assert table.loc["b", "ratio"] == pytest.approx(1 / 3)
    assert table["leaning"].to_dict() == {"a": Leaning.MORE, "b": Leaning.FEWER, "c": Leaning.ALIKE}
    # scipy.stats.chisquare([70, 10, 20], [50, 30, 20]).statistic: each residual squared has the weight 1 - p in it
    chi_squared = stats.chisquare([70, 10, 20], [50, 30, 20]).statistic
    assert (table["residual"] ** 2 * (1 - THREE)).sum() == pytest.approx(chi_squared)


def test_clusters_of_one_kind_count_as_one_unit_each():
    # 40 clusters of 5, all of one group: d = 5 (40/39) (199/200), so that 200 units are worth about 40
    counts = one_each(a=24, b=10, c=6).assign(n=5)
    table = residuals(counts, THREE)
    assert table["design_effect"].to_numpy() == pytest.approx(5 * 40 / 39 * 199 / 200)
    alone = residuals(one_each(a=24, b=10, c=6), THREE)
    assert table["residual"].to_numpy() == pytest.approx(alone["residual"].to_numpy(), rel=0.02, nan_ok=True)


def test_clusters_that_hold_all_groups_alike_are_not_taken_for_more_than_they_are():
    mixed = pd.DataFrame({"group": list("aabbc") * 20, "cluster": np.repeat(range(20), 5), "n": 1})
    assert (residuals(mixed, THREE)["design_effect"] == 1).all()


def test_too_few_to_say_is_nan_and_a_group_without_a_count_says_so():
    table = residuals(one_each(a=12, b=6, c=6, d=3), THREE).set_index("group")
    assert table.loc["c", ["n_expected", "leaning"]].to_list() == [pytest.approx(24 * 0.2), Leaning.TOO_FEW]
    assert np.isnan(table.loc["c", ["residual", "p_value", "p_holm"]].astype(float)).all()
    assert table.loc["d", "leaning"] == Leaning.NO_COUNT
    assert table.loc["d", "n"] == 3
    assert np.isnan(table.loc["d", "share"])
    assert table.loc["a", "share"] == 0.5  # of the 24 that the whole could hold


def test_a_group_that_is_not_there_at_all_is_named_where_many_were_expected():
    table = residuals(one_each(a=60, b=40), THREE).set_index("group")
    assert table.loc["c", ["n", "ratio", "leaning"]].to_list() == [0, 0, Leaning.FEWER]
    assert table.loc["c", "residual"] == pytest.approx(-20 / math.sqrt(20 * 0.8))


def test_shares_that_leave_something_out_are_held_against_all_units():
    table = residuals(one_each(one=70, more=30), pd.Series({"one": 0.583})).set_index("group")
    assert table.loc["one", "residual"] == pytest.approx((70 - 58.3) / math.sqrt(58.3 * 0.417))
    assert table.loc["more", "leaning"] == Leaning.NO_COUNT


def test_one_group_in_many_that_chance_would_bring_beyond_two_is_not_named():
    n, shares = 2_000, pd.Series({f"g{i:02d}": 1 / 20 for i in range(20)})
    hits = dict.fromkeys(shares.index, 100)
    hits["g00"], hits["g01"] = 100 + 22, 100 - 22  # sd = sqrt(100 x .95) = 9.7: r = 2.26, p = .024, times 20
    counts = pd.DataFrame({"group": np.repeat(list(hits), list(hits.values())), "cluster": range(n), "n": 1})
    table = residuals(counts, shares).set_index("group")
    assert table.loc["g00", "residual"] == pytest.approx(22 / math.sqrt(95))
    assert table["leaning"].eq(Leaning.ALIKE).all()
    assert table.loc["g00", "p_holm"] == pytest.approx(20 * 2 * stats.norm.sf(22 / math.sqrt(95)))


@given(st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), min_size=1, max_size=8))
def test_the_guard_against_many_groups_is_the_one_of_holm(p_values: list[float]):
    known = [p for p in p_values if not math.isnan(p)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gc.collect", lambda: 0)  # statsmodels collects garbage at each call, for seconds in all
        expected = iter(multipletests(known, method="holm")[1] if known else [])
    wanted = [math.nan if math.isnan(p) else next(expected) for p in p_values]
    assert adjusted(np.array(p_values, dtype=float), holm) == pytest.approx(wanted, nan_ok=True)


def test_nothing_counted_is_too_few_everywhere():
    table = residuals(pd.DataFrame({"group": [], "cluster": [], "n": []}), THREE)
    assert table["leaning"].tolist() == [Leaning.TOO_FEW] * 3
    assert table["n"].tolist() == [0, 0, 0]
    assert table["share"].isna().all()


def test_one_cluster_says_nothing_of_the_rest():
    lone = pd.DataFrame({"group": ["a", "b"], "cluster": 1, "n": [900, 100]})
    assert residuals(lone, THREE)["leaning"].tolist() == [Leaning.TOO_FEW] * 3
    assert residuals_of_part(lone.assign(n_population=2_000))["leaning"].tolist() == [Leaning.TOO_FEW] * 2


# ---------------------------------------------------------------- a part beside its whole


def test_units_taken_one_by_one_have_the_hypergeometric_deviation():
    # 200 units, 60 in a; 50 taken, 27 of them in a
    groups = ["a"] * 60 + ["b"] * 140
    taken = [1] * 27 + [0] * 33 + [1] * 23 + [0] * 117
    counts = pd.DataFrame({"group": groups, "cluster": range(200), "n": taken, "n_population": 1})
    table = residuals_of_part(counts).set_index("group")
    assert table["design_effect"].to_numpy() == pytest.approx(1)
    assert table.loc["a", "residual"] == pytest.approx((27 - 15) / stats.hypergeom(200, 60, 50).std())
    chi_squared = stats.chi2_contingency([[27, 33], [23, 117]], correction=False).statistic
    assert table.loc["a", "residual"] ** 2 == pytest.approx(chi_squared * 199 / 200)
    assert table["leaning"].to_dict() == {"a": Leaning.MORE, "b": Leaning.FEWER}
    assert table.loc["a", "ratio"] == pytest.approx((27 / 50) / (60 / 200))


def test_whole_clusters_count_as_one_unit_each():
    groups, taken = ["a"] * 60 + ["b"] * 140, [1] * 27 + [0] * 33 + [1] * 23 + [0] * 117
    alone = residuals_of_part(pd.DataFrame({"group": groups, "cluster": range(200), "n": taken, "n_population": 1}))
    whole = residuals_of_part(
        pd.DataFrame({"group": groups, "cluster": range(200), "n": [4 * n for n in taken], "n_population": 4})
    )
    assert whole["design_effect"].to_numpy() == pytest.approx(4)
    assert whole["residual"].to_numpy() == pytest.approx(alone["residual"].to_numpy(), rel=0.01)


def test_where_everything_was_taken_nothing_leans():
    table = residuals_of_part(one_each(a=60, b=140).assign(n_population=1))
    assert table["leaning"].tolist() == [Leaning.ALIKE] * 2
    assert table["residual"].isna().all()
    assert table["ratio"].tolist() == [1, 1]


def test_where_nothing_was_taken_nothing_is_said():
    table = residuals_of_part(one_each(a=60, b=140).assign(n=0, n_population=1))
    assert table["leaning"].tolist() == [Leaning.TOO_FEW] * 2
    assert table["ratio"].isna().all()


def test_all_but_a_few_is_too_few_left_to_say():
    groups, taken = ["a"] * 60 + ["b"] * 140, [1] * 60 + [1] * 135 + [0] * 5  # of the 5 left, 1.5 would be of a
    counts = pd.DataFrame({"group": groups, "cluster": range(200), "n": taken, "n_population": 1})
    assert residuals_of_part(counts)["leaning"].tolist() == [Leaning.TOO_FEW] * 2


# ---------------------------------------------------------------- what holds for every study


@settings(deadline=None)
@given(counted)
def test_residuals_in_their_own_deviations_add_up_to_nothing(counts: pd.DataFrame):
    # sum (O - E) = 0, for all groups together; a group that is not tested keeps its own distance
    for table in (residuals(counts, THREE), residuals_of_part(counts)):
        distance = (table["n"] - table["n_expected"]).sum()
        assert distance == pytest.approx(0, abs=1e-6)
    table = residuals(counts, THREE)
    tested = table.loc[table["residual"].notna()]
    deviation = np.sqrt(tested["design_effect"] * tested["n_expected"] * (1 - tested["expected_share"]))
    assert (tested["residual"] * deviation).to_numpy() == pytest.approx((tested["n"] - tested["n_expected"]).to_numpy())
    assert (table["design_effect"] >= 1).all()


@settings(deadline=None)
@given(counted, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_names_of_clusters_matter(counts: pd.DataFrame, chance):
    order = chance.sample(range(len(counts)), len(counts))
    turned = counts.iloc[order].assign(cluster=lambda rows: "example " + rows["cluster"].astype(str))
    for one, other in (
        (residuals(counts, THREE), residuals(turned, THREE)),
        (residuals_of_part(counts), residuals_of_part(turned)),
    ):
        pd.testing.assert_frame_equal(
            one.sort_values("group", ignore_index=True), other.sort_values("group", ignore_index=True)
        )


@settings(deadline=None)
@given(counted)
def test_a_row_may_be_given_in_pieces(counts: pd.DataFrame):
    pieces = pd.concat(
        [counts.assign(n=counts["n"] // 2, n_population=counts["n_population"] // 2),
         counts.assign(n=counts["n"] - counts["n"] // 2, n_population=counts["n_population"] - counts["n_population"] // 2)],
    )  # fmt: skip
    pd.testing.assert_frame_equal(residuals(counts, THREE), residuals(pieces, THREE))
    pd.testing.assert_frame_equal(residuals_of_part(counts), residuals_of_part(pieces))


@pytest.mark.parametrize(
    ("size", "alike"),
    [(1, False), (5, False), (5, True)],
    ids=["single", "clusters of any kind", "clusters of one kind"],
)
def test_residuals_of_drawn_studies_have_a_deviation_of_one_and_seldom_name_anything(size: int, alike: bool):
    rng = np.random.default_rng(20261121)
    drawn = [residuals(in_clusters(rng, n_clusters=150, size=size, alike=alike), THREE) for _ in range(400)]
    found = np.stack([table["residual"].to_numpy(dtype=float) for table in drawn])
    assert found.std(axis=0) == pytest.approx(1, abs=0.1)  # its own error: 1 / sqrt(800) = .035
    named = np.mean([table["leaning"].isin([Leaning.MORE, Leaning.FEWER]).any() for table in drawn])
    assert named < 0.08  # 5 % and twice its error


@pytest.mark.parametrize("whole", [False, True], ids=["units one by one", "whole clusters"])
def test_residuals_of_parts_that_were_drawn_have_a_deviation_of_one(whole: bool):
    rng = np.random.default_rng(20261122)
    study = in_clusters(rng, n_clusters=300, size=4, alike=True)
    cluster, found, named = study["cluster"].to_numpy(), [], []
    for _ in range(400):
        chosen = rng.permutation(300)[:90]
        taken = np.isin(cluster, chosen) if whole else rng.permutation(len(study)) < 0.3 * len(study)
        table = residuals_of_part(study.assign(n=taken.astype(int), n_population=1)).sort_values("group")
        found.append(table["residual"].to_numpy())
        named.append(table["leaning"].isin([Leaning.MORE, Leaning.FEWER]).any())
    assert np.std(found, axis=0) == pytest.approx(1, abs=0.1)
    assert np.mean(named) < 0.08


def test_items_of_whole_responses_are_not_taken_for_independent():
    # Each response has 8 items that are mostly of one axis; whole responses are read. Taken for independent, residuals would
    # have a deviation of two.
    rng = np.random.default_rng(20261123)
    main = rng.choice(list("abc"), size=400, p=THREE)
    group = np.where(rng.random((400, 8)) < 0.7, main[:, None], rng.choice(list("abc"), size=(400, 8), p=THREE))
    items = pd.DataFrame({"group": group.ravel(), "cluster": np.repeat(np.arange(400) // 2, 8), "n_population": 1})
    found, naive = [], []
    for _ in range(300):
        taken = np.repeat(rng.permutation(400) < 100, 8).astype(int)
        table = residuals_of_part(items.assign(n=taken)).sort_values("group")
        found.append(table["residual"].to_numpy())
        naive.append((table["residual"] * np.sqrt(table["design_effect"])).to_numpy())
    assert np.std(found, axis=0) == pytest.approx(1, abs=0.13)
    assert (np.std(naive, axis=0) > 1.6).all()


# ---------------------------------------------------------------- in words


def leaning(*rows: tuple[str, float, float, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["group", "ratio", "residual", "leaning"])


def test_the_sentence_names_the_farthest_three_and_nothing_that_is_not_clear():
    table = leaning(
        ("hedging", 0.5, -4, "fewer"), ("communication", 1.2, 2.5, "alike"), ("emergency referrals", 3.02, 6, "more"),
        ("global health", 1.43, 3, "more"), ("context seeking", 0, -5, "fewer"),
    )  # fmt: skip
    assert lopsided_sentence(table, Beside.STUDY) == (
        "Physicians have read emergency referrals three times as often as an even draw would, context seeking 0 times as often, "
        "and hedging half as often."
    )
    assert lopsided_sentence(
        table.iloc[[2]].add_prefix("benchmark_").rename(columns={"benchmark_group": "group"}), Beside.BENCHMARK
    ) == ("This study holds emergency referrals three times as often as the full benchmark does.")
    assert lopsided_sentence(table.iloc[[1]], Beside.STUDY) == ""


# ---------------------------------------------------------------- the published counts, and weights by them


def test_the_published_counts_add_up():
    assert sum(THEMES.values()) == N_EXAMPLES
    assert sum(AXES.values()) == N_CRITERIA
    for grouping in ("theme", "axis"):
        assert published(grouping)["share"].sum() == pytest.approx(1)
    assert published("language").empty


themed = st.lists(
    st.one_of(st.sampled_from(list(THEMES)), st.none(), st.just("another")), min_size=1, max_size=60
).filter(lambda themes: any(theme in THEMES for theme in themes))


@settings(deadline=None)
@given(themed)
def test_weights_give_each_theme_that_is_there_its_published_share(themes: list[str | None]):
    examples = pd.DataFrame({"example_id": range(100, 100 + len(themes)), "theme": themes})
    found = weighting(examples)
    weights = weighting(examples).weights
    pd.testing.assert_series_equal(weights, found.weights)
    assert weights.index.tolist() == examples["example_id"].tolist()
    known = examples["theme"].isin(THEMES).to_numpy()
    assert weights[known].mean() == pytest.approx(1)
    assert (weights[~known] == 0).all()
    assert (found.n_known, found.n_unknown) == (known.sum(), (~known).sum())
    shares = weights.groupby(examples["theme"].to_numpy()).sum() / weights.sum()
    present = {theme: n for theme, n in THEMES.items() if theme in themes}
    for theme, n in present.items():
        assert shares[theme] == pytest.approx(n / sum(present.values()))
    assert found.share_present == pytest.approx(sum(present.values()) / N_EXAMPLES)
    assert {theme.replace(" ", "_") for theme in found.absent} == set(THEMES) - set(themes)
    assert 1 - 1e-9 <= found.n_effective <= found.n_known + 1e-9


@settings(deadline=None)
@given(themed, st.randoms(use_true_random=False))
def test_the_order_of_examples_and_their_repeats_do_not_change_weights(themes: list[str | None], chance):
    examples = pd.DataFrame({"example_id": range(len(themes)), "theme": pd.Series(themes, dtype="category")})
    order = chance.sample(range(len(themes)), len(themes))
    turned = weighting(pd.concat([examples.iloc[order], examples])).weights
    pd.testing.assert_series_equal(turned.sort_index(), weighting(examples).weights)


def test_a_study_with_the_shares_of_the_benchmark_keeps_all_weights_at_one():
    themes = [theme for theme, n in THEMES.items() for _ in range(n)]
    found = weighting(pd.DataFrame({"example_id": range(N_EXAMPLES), "theme": themes}))
    assert found.weights.to_numpy() == pytest.approx(1)
    assert found.n_effective == pytest.approx(N_EXAMPLES)
    assert weighting_sentence(found) == (
        "Weighted to the themes of the full benchmark, 5,000 conversations tell as much as 5,000 of equal weight."
    )


def test_the_weights_say_what_they_leave_out():
    # published shares among the two present: 1097/2168 and 1071/2168; of 4 known 3 and 1 are of them
    found = weighting(pd.DataFrame({"example_id": [1, 2, 3, 4, 5], "theme": ["global_health"] * 3 + ["hedging", None]}))
    first, last = 1097 / 2168 / (3 / 4), 1071 / 2168 / (1 / 4)
    assert found.weights.tolist() == pytest.approx([first, first, first, last, 0])
    assert found.by_theme == pytest.approx({"global_health": first, "hedging": last})
    assert found.n_effective == pytest.approx(16 / (3 * first**2 + last**2))
    said = weighting_sentence(found)
    assert "4 conversations tell as much as 3 of equal weight" in said
    assert (
        "No conversation here has the theme communication, context seeking, emergency referrals, health data tasks or complex responses"
        in said
    )
    assert "the other 43 % of the benchmark" in said  # 2,168 of 5,000
    assert "1 without a theme of the benchmark are left out" in said


def test_without_a_theme_of_the_benchmark_there_are_no_weights():
    with pytest.raises(ValueError, match="2 examples came, none with a theme of the benchmark"):
        weighting(pd.DataFrame({"example_id": [1, 2], "theme": ["another", None]}))

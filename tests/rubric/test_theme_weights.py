"""The published counts, and weights that give each theme its published share."""

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.rubric.benchmark import AXES, N_CRITERIA, N_EXAMPLES, THEMES, published, weighting, weighting_sentence


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
    assert "Left out, without a theme of the benchmark: 1." in said


def test_without_a_theme_of_the_benchmark_there_are_no_weights():
    assert weighting(pd.DataFrame({"example_id": [1, 2], "theme": ["another", None]})) is None

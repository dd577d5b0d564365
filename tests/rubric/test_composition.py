"""What a study is made of: the counts of SQL against the study as it was drawn, the groups against counts by hand."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sqlalchemy import text

from evalcore.rubric import composition_queries
from evalcore.rubric.benchmark import N_CRITERIA, N_EXAMPLES, THEMES
from evalcore.rubric.composition import GROUPINGS, MAX_GROUPS, Grouping, parts, sizes, spreads
from evalcore.stats.intervals import share_interval
from evalcore.study import frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import RaterKind
from tests import world

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
Frames = dict[str, pd.DataFrame]


def made_of(
    themes: list[str | None], *, n_turns: list[int] | None = None, n_responses: int = 2, n_read: list[int] | None = None
) -> Frames:
    """A study of examples with these themes: two criteria each, +5 accuracy and -3 without an axis; the first `n_read` responses were read."""
    n, numbers = len(themes), range(1, len(themes) + 1)
    read = np.array(n_read or [0] * n)
    examples = pd.DataFrame(
        {
            "example_id": numbers, "theme": themes, "category": None, "language": "en", "n_turns": n_turns or [1] * n, "n_chars": 300,
            "n_criteria": 2, "n_undesirable": 1, "n_responses": n_responses, "n_read": read,
        }
    )  # fmt: skip
    criteria = pd.DataFrame(
        {
            "example_id": np.repeat(numbers, 2), "axis": ["accuracy", None] * n, "points": [5.0, -3.0] * n, "n_criteria": 1,
            "n_read": np.repeat(np.minimum(read, 1), 2), "n_items_read": np.repeat(read, 2),
        }
    )  # fmt: skip
    responses = pd.DataFrame(
        {
            "example_id": np.repeat(numbers, n_responses),
            "model": pd.Categorical([f"model_{i}" for i in range(n_responses)] * n),
            "n_chars": 600,
            "is_read": (np.arange(n_responses)[None, :] < read[:, None]).ravel(),
        }
    )
    return {"examples": examples, "criteria": criteria, "responses": responses}


drawn = st.lists(
    st.tuples(
        st.one_of(st.none(), st.sampled_from([*THEMES, "another"])), st.sampled_from([1, 3, 5, 9]), st.integers(0, 2)
    ),
    min_size=1,
    max_size=40,
).map(lambda rows: made_of([r[0] for r in rows], n_turns=[r[1] for r in rows], n_read=[r[2] for r in rows]))


# ---------------------------------------------------------------- groups


some_grouping = st.sampled_from(GROUPINGS)


@given(drawn, st.sets(st.integers(1, 40)), some_grouping)
def test_every_unit_is_in_one_group_and_read_unread_or_not_to_be_told(
    found: Frames, hidden: set[int], grouping: Grouping
):
    seen = ~found["responses"]["example_id"].isin(hidden)
    n_units = {"conversations": len(found["examples"]), "criteria": len(found["criteria"]), "responses": seen.sum()}
    table = parts(grouping, **found, hidden=hidden)
    assert table["group"].is_unique
    assert table["n"].sum() == n_units[grouping.unit]
    assert (table[["n_read", "n_unread", "n_hidden"]].sum(axis=1) == table["n"]).all()
    known = table.loc[table["group"].ne("not known")]
    assert known["share"].sum() == pytest.approx(1 if known["n"].any() else 0)
    with_interval = known.loc[known["low"].notna()]
    assert (with_interval["low"] <= with_interval["share"]).all()
    assert (with_interval["share"] <= with_interval["high"]).all()


@given(drawn, st.sets(st.integers(1, 40)), some_grouping)
def test_what_was_read_of_hidden_conversations_changes_nothing(found: Frames, hidden: set[int], grouping: Grouping):
    examples, criteria, responses = (found[name] for name in ("examples", "criteria", "responses"))
    other = {
        "examples": examples.assign(n_read=examples["n_read"].where(~examples["example_id"].isin(hidden), 2)),
        "criteria": criteria.assign(
            n_read=criteria["n_read"].where(~criteria["example_id"].isin(hidden), 1),
            n_items_read=criteria["n_items_read"].where(~criteria["example_id"].isin(hidden), 2),
        ),
        "responses": responses.assign(is_read=responses["is_read"] | responses["example_id"].isin(hidden)),
    }
    pd.testing.assert_frame_equal(parts(grouping, **found, hidden=hidden), parts(grouping, **other, hidden=hidden))


@given(drawn, st.integers(0, 2**32 - 1), some_grouping)
def test_the_order_of_rows_does_not_matter(found: Frames, seed: int, grouping: Grouping):
    rng = np.random.default_rng(seed)
    turned = {name: table.iloc[rng.permutation(len(table))] for name, table in found.items()}
    pd.testing.assert_frame_equal(parts(grouping, **found), parts(grouping, **turned))


def test_themes_stand_beside_the_published_counts_and_one_that_is_missing_is_a_row():
    # 200 conversations: 100 hedging, 60 global health, 40 without a theme. Of the 160, 21.42 % should be hedging: 34.3.
    table = parts("theme", **made_of(["hedging"] * 100 + ["global_health"] * 60 + [None] * 40)).set_index("group")
    assert table.index[:2].to_list() == ["hedging", "global health"]
    assert table.index[-1] == "not known"
    assert table.loc["hedging", ["n", "n_whole", "published", "published_whole"]].to_list() == [
        100,
        160,
        1071,
        N_EXAMPLES,
    ]
    assert table.loc["hedging", "share"] == 100 / 160
    # eight rows, one of them not known: seven intervals that hold together
    alone = share_interval([True] * 100 + [False] * 60, range(160), level=1 - 0.05 / 7)
    assert table.loc["hedging", ["low", "high"]].to_list() == pytest.approx([alone.low, alone.high])
    assert table.loc["hedging", "low"] > table.loc["hedging", "published_share"]
    assert table.loc["communication", "n"] == 0
    assert table.loc["communication", "high"] < table.loc["communication", "published_share"]
    assert table.loc["not known", ["n", "n_whole", "share"]].to_list() == [40, 200, 0.2]
    assert np.isnan(table.loc["not known", "low"])
    assert table["read_share"].isna().all()  # nobody has read anything
    assert table.loc["communication", "population_share"] != 0  # nothing of it is there to be read


def test_reads_of_responses_are_held_against_all_responses():
    # 300 conversations with 2 responses each: of 200 about hedging 40 responses are read, of 100 about global health 60
    n_read = [1] * 40 + [0] * 160 + [1] * 60 + [0] * 40
    table = parts("theme", **made_of(["hedging"] * 200 + ["global_health"] * 100, n_read=n_read)).set_index("group")
    assert table.loc["hedging", ["n_read", "n_unread", "n_reads"]].to_list() == [40, 160, 40]
    assert table.loc["hedging", "population_share"] == pytest.approx(400 / 600)
    assert table.loc["global health", "read_share"] == pytest.approx(60 / 100)
    assert table.loc["hedging", "read_high"] < 400 / 600
    assert table.loc["global health", "read_low"] > 200 / 600
    assert table.loc["hedging", "label"] == "hedging  40/200"


def test_reads_of_items_are_held_against_all_items_and_criteria_against_the_benchmark():
    found = made_of(["hedging"] * 50, n_read=[2] * 10 + [0] * 40)
    table = parts("axis", **found).set_index("group")
    assert table.loc["accuracy", ["n", "n_read", "n_reads"]].to_list() == [50, 10, 20]
    assert table.loc["accuracy", "read_share"] == 1  # of those whose axis is known
    assert table.loc["accuracy", "published_whole"] == N_CRITERIA
    assert table.loc["completeness", "n"] == 0
    signs = parts("sign", **found).set_index("group")
    assert signs["n"].to_dict() == {"undesirable": 50, "desirable": 50}
    assert signs["published_share"].isna().all()
    # the two items of a conversation are one cluster: half of either, in every one
    assert signs.loc["desirable", "read_share"] == 0.5


def test_of_turns_only_the_share_with_one_is_published():
    table = parts(Grouping.TURNS, **made_of(["hedging"] * 100, n_turns=[1] * 90 + [3] * 5 + [5] * 3 + [9] * 2))
    assert table["group"].to_list() == ["1 turn", "2 to 3 turns", "4 to 5 turns", "6 turns or more"]
    assert table["n"].to_list() == [90, 5, 3, 2]
    assert table["published_share"].notna().to_list() == [True, False, False, False]
    assert table.loc[0, "low"] > table.loc[0, "published_share"]


@pytest.mark.parametrize(
    ("points", "group"),
    [(-10, "−10 to −6"), (-6, "−10 to −6"), (-5, "−5 to −1"), (-1, "−5 to −1"), (1, "1 to 5"), (5, "1 to 5"), (6, "6 to 10"),
     (10, "6 to 10"), (np.nan, "not known")],
)  # fmt: skip
def test_points_are_grouped_by_sign_and_size(points: float, group: str):
    found = made_of(["hedging"])
    found["criteria"] = found["criteria"].assign(points=points)
    assert parts("points", **found)["group"].to_list() == [group]


@pytest.mark.parametrize(
    ("n_chars", "group"),
    [(0, "under 500"), (499, "under 500"), (500, "500 to 999"), (3_999, "2,000 to 3,999"), (4_000, "4,000 or more")],
)
def test_responses_are_grouped_by_length(n_chars: int, group: str):
    found = made_of(["hedging"])
    found["responses"] = found["responses"].assign(n_chars=n_chars)
    assert parts("response_length", **found)["group"].to_list() == [group]


def test_names_of_models_stay_as_they_are_and_tags_become_words():
    found = made_of(["hedging"])
    assert parts("model", **found)["group"].to_list() == ["model_0", "model_1"]
    found["examples"] = found["examples"].assign(category="not_known_well", language="am")
    assert parts("category", **found)["group"].to_list() == ["not known well"]
    assert parts("language", **found)["group"].to_list() == ["Amharic"]


def test_the_rarest_groups_stand_together_and_none_that_the_benchmark_has_among_them():
    many = [f"own_{i:02d}" for i in range(MAX_GROUPS + 5) for _ in range(3)]
    table = parts("theme", **made_of([*many, "hedging"])).set_index("group")
    assert table.loc["6 others", "n"] == 18
    assert table.loc["hedging", "n"] == 1
    assert table["n"].sum() == len(many) + 1


def test_an_empty_study_has_no_groups_but_the_published_ones():
    empty = {name: table.iloc[:0] for name, table in made_of(["hedging"]).items()}
    for grouping in GROUPINGS:
        table = parts(grouping, **empty)
        assert table["n"].sum() == 0
        assert table[["low", "high", "read_share"]].isna().all(axis=None)
    assert len(parts("theme", **empty)) == len(THEMES)


@pytest.mark.parametrize("themes", [["dermatology"] * 3, [None] * 3], ids=["another theme", "no theme"])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_study_without_a_theme_of_healthbench_is_not_held_against_it(themes, grouping):
    table = parts(grouping, **made_of(themes))
    assert table["published"].isna().all()
    assert table["published_share"].isna().all()
    assert table["n"].gt(0).all()


# ---------------------------------------------------------------- sizes


def test_sizes_stand_beside_those_of_the_benchmark():
    found = made_of(["hedging", None], n_read=[2, 0])
    table = sizes(**found, subsets={"hard": 1, "own": 2}).set_index("what")
    assert table["n"].to_dict() == {
        "conversations": 2, "of these hard": 1, "of these own": 2, "criteria": 4, "of these undesirable": 2, "responses": 4,
    }  # fmt: skip
    assert table.loc["conversations", ["n_read", "published"]].to_list() == [1, 5000]
    assert table.loc["of these hard", "published"] == 1000
    assert np.isnan(table.loc["of these own", "published"])
    assert table.loc["of these undesirable", "n_read"] == 1
    assert table.loc["responses", "n_read"] == 2


def test_spreads_count_each_criterion_and_leave_out_those_without_points():
    found = made_of(["hedging"] * 4, n_turns=[1, 1, 3, 7])
    found["criteria"] = pd.DataFrame(
        {
            "example_id": 1,
            "axis": None,
            "points": [2.0, 8.0, np.nan],
            "n_criteria": [3, 1, 5],
            "n_read": 0,
            "n_items_read": 0,
        }
    )
    table = spreads(**found).set_index("what")
    points = table.loc["points of a criterion"]
    assert points[["n", "mean", "low", "median", "high"]].to_list() == [4, 3.5, 2, 2, 8]  # 2, 2, 2, 8
    turns = table.loc["turns of a conversation"]
    assert turns[["mean", "median", "high", "published_mean"]].to_list() == [3, 2, 7, 2.6]
    empty = spreads(**{name: rows.iloc[:0] for name, rows in found.items()})
    assert (empty["n"] == 0).all()
    assert empty["mean"].isna().all()


# ---------------------------------------------------------------- from the database


@pytest.fixture
def small(database_url: str):
    """Two conversations, two models; Dr. Noor has read the first response to the first, and it was settled."""
    made = world.made(
        database_url, points=((7, -4), (None, 3)), judged="+-++", models=("Alder-2", "Briar-1"), languages={1: None}
    )
    yield made
    made.engine.dispose()


def read(made: world.World, *labels: str | None, response: int = 0, stage: str = "first") -> None:
    """Dr. Noor's verdicts on the criteria of the first conversation."""
    with writing(made.engine) as session:
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Imani Noor")
    with made.engine.begin() as connection:
        for criterion, label in zip(made.criteria[0], labels, strict=True):
            connection.execute(
                text(
                    "INSERT INTO verdict (example_id, response_id, criterion_id, rater_id, stage, label, created_at, right_for_wrong_reason)"
                    " VALUES (1, :response, :criterion, :rater, :stage, :label, '2026-11-20 10:00:00', false)"
                ),
                {
                    "response": made.responses[response],
                    "criterion": criterion,
                    "rater": rater,
                    "stage": stage,
                    "label": label,
                },
            )


def test_the_database_counts_what_is_there(small: world.World):
    read(small, "met", "cannot_assess")
    read(small, "met", None, response=1)  # the second was taken back
    with reading(small.engine) as session:
        found = composition_queries.load(session)
        subsets = composition_queries.subset_sizes(session)
    examples = found["examples"].set_index("example_id")
    assert examples["n_criteria"].to_list() == [2, 2]
    assert examples["n_undesirable"].to_list() == [1, 0]
    assert examples["n_responses"].to_list() == [2, 2]
    assert examples["n_read"].to_list() == [2, 0]
    assert examples["n_chars"].to_list() == [len(f"I have had a sore throat for {days} days.") for days in (2, 3)]
    assert examples["language"].isna().to_list() == [False, True]
    criteria = found["criteria"].set_index(["example_id", "points"])
    assert criteria.loc[(1, 7.0), ["n_criteria", "n_read", "n_items_read"]].to_list() == [1, 1, 2]
    assert criteria.loc[(1, -4.0), ["n_criteria", "n_read", "n_items_read"]].to_list() == [1, 1, 1]
    assert found["criteria"]["points"].isna().sum() == 1
    responses = found["responses"]
    assert responses["model"].to_list() == ["Alder-2", "Briar-1"] * 2
    assert responses["is_read"].to_list() == [True, True, False, False]
    assert responses["n_chars"].to_list()[0] == len("Drink water, rest, and come back. Answer 0.")
    assert subsets == {}
    for grouping in GROUPINGS:
        table = parts(grouping, **found)
        assert table["n"].sum() == {"conversations": 2, "criteria": 4, "responses": 4}[grouping.unit]


def test_what_was_read_agrees_with_the_verdicts_themselves(small: world.World):
    read(small, "met", "not_met")
    read(small, "met", "met", stage="adjudicated")
    with reading(small.engine) as session:
        found = composition_queries.load(session)
        verdicts = frames.verdicts(session, kind=RaterKind.REVIEWER)
    assert found["criteria"]["n_items_read"].sum() == verdicts["item_id"].nunique() == 2
    assert found["examples"]["n_read"].sum() == verdicts["response_id"].nunique() == 1


def test_a_study_with_nothing_in_it_has_frames_without_rows(database_url: str):
    made = world.made(database_url, points=(), judged="")
    with reading(made.engine) as session:
        found = composition_queries.load(session)
        assert composition_queries.changed_since(session, LONG_AGO)["n_verdicts"] == 0
    assert [len(table) for table in found.values()] == [0, 0, 0]
    assert parts("theme", **found)["n"].sum() == 0
    made.engine.dispose()


def test_what_has_come_since_a_moment_leaves_out_what_may_not_be_seen(small: world.World):
    read(small, "met", "not_met")
    read(small, "met", "met", stage="adjudicated")
    with reading(small.engine) as session:
        since = composition_queries.changed_since(session, LONG_AGO)
        later = composition_queries.changed_since(session, datetime(2026, 11, 20, 11, tzinfo=UTC))
        hidden = composition_queries.changed_since(session, LONG_AGO, frozenset({1}))
    assert since == {"n_verdicts": 4, "n_readers": 1, "n_responses": 1, "n_settled": 2, "n_files": 0}
    assert later["n_verdicts"] == hidden["n_verdicts"] == hidden["n_settled"] == 0

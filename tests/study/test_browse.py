"""What Browse finds: filters in SQL against the same filters written out in Python, on both databases, on the demo study."""

from dataclasses import dataclass

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from evalcore.reading import overriding
from evalcore.reading.read_queries import open_example
from evalcore.reading.reference import current_reads, item_labels, overridden_items
from evalcore.reading.reviewing import Decision
from evalcore.rubric.blind_read_queries import read_marks
from evalcore.rubric.queries import response_sums
from evalcore.rubric.scores import mean_scores_by_example, scores_of_sums, scores_of_verdicts
from evalcore.study import browse, contents, frames, store
from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, READ_STATES, UNREAD, Filters
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Label, RaterKind, Stage


@dataclass
class Item:
    """One criterion of one response, with everything said about it."""

    example_id: int
    model: str
    axis: str
    points: int
    judged: dict[str, str]
    reads: dict[str, str]
    is_settled: bool


def items_of(session) -> list[Item]:
    verdicts = frames.verdicts(session)
    judged = verdicts.loc[verdicts["rater_kind"].eq(RaterKind.JUDGE)]
    reads = {
        key: dict(zip(rows["rater"], rows["label"], strict=True))
        for key, rows in current_reads(verdicts).groupby("item_id")
    }
    settled = set(verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED), "item_id"])
    labels = {key: dict(zip(rows["rater"], rows["label"], strict=True)) for key, rows in judged.groupby("item_id")}
    first = verdicts.drop_duplicates("item_id").to_dict(orient="records")
    adjudged = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)].set_index("item_id")["label"]
    return [
        Item(
            row["example_id"], row["model"], row["axis"], row["points"], labels.get(row["item_id"], {}),
            reads.get(row["item_id"], {}) | ({"settled": adjudged[row["item_id"]]} if row["item_id"] in settled else {}),
            row["item_id"] in settled,
        )
        for row in first
    ]  # fmt: skip


def fits(item: Item, filters: Filters) -> bool:
    """The filters on items, written out."""
    by = [label for judge, label in item.judged.items() if filters.judge in (None, judge)]
    read_labels = [label for reader, label in item.reads.items() if reader != "settled"]
    state = {
        None: True,
        READ: bool(item.reads),
        UNREAD: not item.reads,
        CONFLICTING: len(set(read_labels)) > 1 and not item.is_settled,
        OVERRIDDEN: any(label != judged for label in item.reads.values() for judged in by),
    }[filters.reads]
    return (
        state
        and filters.axis in (None, item.axis)
        and filters.model in (None, item.model)
        and (filters.judge is None or bool(by))
        and (filters.label is None or filters.label in by)
        and (not filters.judges_differ or len(set(item.judged.values())) > 1)
        and (filters.points_from is None or item.points >= filters.points_from)
        and (filters.points_to is None or item.points <= filters.points_to)
    )


def maybe(values):
    return st.none() | st.sampled_from(values)


any_filters = st.builds(
    Filters,
    theme=maybe(["hedging", "communication", "no_such_theme"]),
    language=maybe(["en", "ar"]),
    axis=maybe(["accuracy", "completeness"]),
    model=maybe(["Alder-2", "Briar-1", "Clover-mini"]),
    judge=maybe(["Magpie", "Wren"]),
    label=maybe(["met", "not_met"]),
    reads=maybe(READ_STATES),
    judges_differ=st.booleans(),
    points_from=maybe([-8, 1, 7]),
    points_to=maybe([-1, 5]),
)


@pytest.fixture
def engine(demo_url):
    found = open_study(demo_url)
    yield found
    found.dispose()


@pytest.mark.slow_on_postgresql
def test_filters_find_what_the_same_filters_written_out_find(engine):
    with reading(engine) as session:
        items = items_of(session)
        composition = browse.examples(session, Filters()).set_index("example_id")
        viewer = next(person for person in contents.people(session) if person.name == "Dr. Amara Okafor")

    # a physician changes her mind with the judge in view: her newer word counts, not the first
    changed = next(
        item for item in items if item.reads.get(viewer.name) == "met" and item.judged.get("Magpie") == "met"
    )
    with reading(engine) as session:
        rows = frames.verdicts(session, example_ids=[changed.example_id])
    mine = rows.loc[rows["rater"].eq(viewer.name) & rows["label"].eq("met") & rows["model"].eq(changed.model)].iloc[0]
    overriding.give_verdict(
        engine, viewer, response_id=int(mine["response_id"]), criterion_id=int(mine["criterion_id"]),
        decision=Decision(Label.NOT_MET), judge="Magpie", seen=None,
    )  # fmt: skip
    with reading(engine) as session:
        items = items_of(session)

    with_rubric = {item.example_id for item in items}

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(any_filters)
    def check(filters):
        wanted = {
            number
            for number, row in composition.iterrows()
            if filters.theme in (None, row["theme"]) and filters.language in (None, row["language"])
        }
        if filters.on_items():
            wanted &= {item.example_id for item in items if fits(item, filters)}
        with reading(engine) as session:
            found = set(browse.examples(session, filters)["example_id"])
            if filters.reads is not None:  # asks about levels of cases as well: see test_browse_cases_page
                found &= with_rubric
            assert found == wanted
            for number in list(wanted)[:2]:
                matching = browse.matching_items(session, filters, number)
                n_wanted = sum(fits(item, filters) for item in items if item.example_id == number)
                assert len(matching) == (n_wanted if filters.on_items() else 0)

    check()


def test_what_waits_for_the_index_is_found_once_it_is_brought_up_to_date(engine):
    def found(words):
        with reading(engine) as session:
            return browse.examples(session, Filters(search=words))["example_id"].tolist()

    assert found("amoxicillin") == found("AMOXICILLIN") != []  # the demo's own texts are indexed when it is made
    assert found("amoxicillin quokka") == []
    with reading(engine) as session:
        viewer = next(person for person in contents.people(session) if person.name == "Dr. Amara Okafor")
        opened = open_example(session, 7)
    item = {
        "response_id": int(opened.responses["response_id"].iloc[0]),
        "criterion_id": int(opened.criteria["criterion_id"].iloc[0]),
    }
    said = Decision(Label.CANNOT_ASSESS, note="Reads like a quokka wrote it.")
    overriding.give_verdict(engine, viewer, **item, decision=said, judge="Magpie", seen=None)
    assert found("quokka") == []
    assert store.index_texts(engine) == 1
    assert found("quokka") == [7]
    assert store.index_texts(engine) == 0
    assert found("quokka") == [7]


def test_points_summed_in_sql_give_the_scores_of_the_long_table(engine):
    with reading(engine) as session:
        sums = scores_of_sums(response_sums(session))
        verdicts = frames.verdicts(session, kind=RaterKind.JUDGE)
    long = scores_of_verdicts(verdicts, ["overall"]).set_index(["response_id", "judge"])["score"]
    summed = sums.set_index(["response_id", "judge"])["score"]
    pd.testing.assert_series_equal(summed.sort_index(), long.sort_index(), check_names=False)
    assert summed.notna().all()
    by_example = mean_scores_by_example(sums, "Magpie")
    assert by_example.shape == (30, 3)
    assert by_example["Alder-2"].mean() == pytest.approx(
        sums.loc[sums["judge"].eq("Magpie") & sums["model"].eq("Alder-2"), "score"].mean()
    )


def test_a_missing_verdict_leaves_no_score_in_sql_either():
    sums = pd.DataFrame(
        {"example_id": [1, 1, 2], "model": ["a", "b", "a"], "judge": "j", "achieved": [5, 5, None], "possible": [10, 10, None],
         "n_judged": [3, 2, 1], "n_expected": [3, 3, 1]}
    )  # fmt: skip
    assert scores_of_sums(sums)["score"].fillna(-9).tolist() == [0.5, -9, -9]  # complete; one missing; nothing positive
    assert pd.isna(mean_scores_by_example(scores_of_sums(sums), "j").loc[1, "b"])


def test_marks_count_what_the_exported_labels_say(engine):
    with reading(engine) as session:
        marks = read_marks(session)
        labels = item_labels(frames.verdicts(session, texts=True), "Magpie")
    read = labels.loc[labels["reference_source"].ne("judge")]
    counted = overridden_items(marks, "Magpie")
    assert counted["n_read"].to_dict() == read.groupby("example_id").size().to_dict()
    assert counted["n_overridden"].sum() == labels["overridden"].sum() > 0
    assert counted["n_conflicting"].sum() == labels["reference_source"].eq("unsettled").sum() > 0


def test_an_open_conversation_holds_everything_and_an_unknown_one_is_none(engine):
    with reading(engine) as session:
        opened = open_example(session, 1)
        assert open_example(session, 10_000) is None
    assert opened is not None
    assert opened.criteria["position"].tolist() == list(range(1, len(opened.criteria) + 1))
    assert sorted(opened.responses["model"]) == ["Alder-2", "Briar-1", "Clover-mini"]
    judged = opened.verdicts.loc[opened.verdicts["rater"].eq("Magpie")]
    assert len(judged) == 3 * len(opened.criteria)

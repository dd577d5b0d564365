"""Browse finds cases of triage by what can be asked about them and by the direction of a miss, and says how many physicians read each."""

import numpy as np
import pytest
from sqlalchemy import text

from evalcore.reading.read_queries import level_readers
from evalcore.study import browse
from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, READ_STATES, UNREAD, Filters
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import CASES, Format
from evalcore.triage import queries as triage_queries
from evalcore.triage.cases import Miss, chosen_cases
from evalcore.triage.data import LEVELS, NO_LEVEL, Kind, described
from pages.shared import common, filters
from tests.page_steps import LEAD, check
from tests.triage_cases import drawn, stored


@pytest.fixture
def held(demo_study: str):
    """What the study holds: its cases, and how many physicians read each."""
    engine = open_study(demo_study)
    with reading(engine) as session:
        yield described(triage_queries.load(session)), level_readers(session)
    engine.dispose()


def test_cases_are_found_by_kind_and_by_the_direction_of_a_miss(held, demo_study, open_page):
    triage_data, readers = held
    asked = {
        "kind": filters.KINDS[Kind.CLEAR],
        "miss": filters.MISSES[Miss.UNDER],
        "format": filters.FORMATS["conversation"],
    }
    app = open_page(demo_study, "browse", LEAD, **asked)
    found = check(app)
    wanted = sorted(chosen_cases(triage_data, kind=Kind.CLEAR, miss=Miss.UNDER, asked="conversation"))
    (table,) = (element.value for element in app.dataframe)
    assert 0 < len(table) == len(wanted) < len(triage_data.cases)
    assert f"{len(wanted)} fit" in found
    assert "clear cases" in found
    assert "a model answers too low: under-triage" in found
    read = readers.reindex(wanted).fillna(0).astype(int)
    assert list(table["Physicians"]) == [f"read by {n}" if n else "–" for n in read]
    assert read.max() > 1 > read.min()
    assert "Criteria" not in table  # a case has none, nor a score
    assert list(table.columns[:3]) == ["Theme or source", "Conversation", "Physicians"]
    app.button(key="clear").click().run()
    check(app)
    assert len(app.dataframe[0].value) > len(wanted)
    assert not set(app.query_params) & {"kind", "miss", "format"}


def last_words(triage_data):
    """Physicians' reads by response, or by case: what each says last, and what is settled."""
    reads = triage_data.reads.assign(
        example_id=triage_data.cases["example_id"].take(triage_data.reads["row"]).to_numpy()
    )
    reads = reads.assign(settled=reads["stage"].eq("adjudicated")).sort_values("verdict_id")
    return reads.drop_duplicates(["row", "sample", "rater", "settled"], keep="last")


@pytest.mark.parametrize("state", READ_STATES)
def test_cases_are_found_by_what_physicians_said_of_levels(state, held, demo_study):
    triage_data, readers = held
    last = last_words(triage_data)
    judged = triage_data.levels.iloc[last["sample"].clip(lower=0)].reset_index(drop=True)
    level = last["label"].map(LEVELS).fillna(NO_LEVEL).reset_index(drop=True)
    differs = judged.notna() & judged.ne(level, axis=0)
    of = last.reset_index(drop=True)
    by_item = of.loc[~of["settled"]].groupby(["row", "sample"])["label"].nunique().gt(1)
    settled = of.loc[of["settled"]].set_index(["row", "sample"]).index
    in_conflict = by_item.loc[by_item & ~by_item.index.isin(settled)].index.get_level_values("row")
    wanted = {
        READ: set(of["example_id"]),
        UNREAD: set(triage_data.cases["example_id"]) - set(readers.index),
        OVERRIDDEN: set(of.loc[of["sample"].ge(0) & differs.any(axis=1), "example_id"]),
        CONFLICTING: set(triage_data.cases["example_id"].take(in_conflict)),
    }[state]
    engine = open_study(demo_study)
    with reading(engine) as session:
        found = browse.examples(session, Filters(dataset=CASES, reads=state))
        of_rubrics = browse.examples(session, Filters(dataset="overread-demo", reads=state, axis="accuracy"))
        with_criteria = browse.item_pairs(Filters(dataset="overread-demo", reads=state, axis="accuracy"))
        numbers = {row[1] for row in session.connection().execute(with_criteria)}
        criteria = session.connection().execute(text("SELECT id, example_id FROM criterion"))
        rubrics = {example for number, example in criteria if number in numbers}
        criteria_alone = browse.examples(session, Filters(dataset=CASES, reads=state, axis="accuracy"))
    engine.dispose()
    assert set(found["example_id"]) == wanted != set()
    assert set(of_rubrics["example_id"]) == rubrics
    assert criteria_alone.empty  # a level has no axis


@pytest.mark.parametrize(
    ("dataset", "is_asked"), [("overread-demo", False), (CASES, True), (None, True)], ids=["criteria", "levels", "both"]
)
def test_the_list_itself_tells_where_readers_of_criteria_conflict(
    dataset, is_asked, demo_study, open_page, monkeypatch
):
    asked = []
    monkeypatch.setitem(
        common.READS, "fitting", lambda session, of: asked.append(of.reads) or browse.examples(session, of)
    )
    chosen = {"reads": filters.READS[CONFLICTING]} | ({"dataset": dataset} if dataset else {})
    app = open_page(demo_study, "browse", LEAD, **chosen)
    engine = open_study(demo_study)
    with reading(engine) as session:
        wanted = browse.examples(session, Filters(dataset=dataset, reads=CONFLICTING))
        every = browse.examples(session, Filters(dataset=dataset))
    engine.dispose()
    assert f"{len(wanted)} fit" in check(app)
    assert app.dataframe[0].value["Conversation"].tolist() == wanted["first_words"].tolist()
    assert 0 < len(wanted) < len(every)
    assert (CONFLICTING in asked) is is_asked


@pytest.mark.parametrize("asked", list(Format))
def test_with_a_format_only_reads_of_its_responses_count(asked, held, demo_study):
    triage_data, _ = held
    reads = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    of_format = triage_data.samples["format"].eq(asked).to_numpy()[reads["sample"]]
    engine = open_study(demo_study)
    with reading(engine) as session:
        found = browse.examples(session, Filters(dataset=CASES, reads=READ, format=asked))
        unread = browse.examples(session, Filters(dataset=CASES, reads=UNREAD, format=asked, model="Alder-2"))
        nobody = [
            browse.examples(session, Filters(dataset=CASES, reads=state, judge="Nobody")) for state in (READ, UNREAD)
        ]
    engine.dispose()
    of_model = (
        triage_data.samples["model"].eq("Alder-2").to_numpy() & triage_data.samples["format"].eq(asked).to_numpy()
    )
    answered = set(triage_data.samples.loc[of_model, "row"])
    assert set(unread["example_id"]) == set(
        triage_data.cases["example_id"].take(sorted(answered - set(reads.loc[of_model[reads["sample"]], "row"])))
    )
    assert set(found["example_id"]) == set(triage_data.cases["example_id"].take(reads.loc[of_format, "row"]))
    assert all(found.empty for found in nobody)


def test_either_database_finds_who_read_levels(database_url):
    triage_data, _ = drawn(np.random.default_rng(11), n_cases=12, share_read=0.6, judges={"Magpie": 0.5})
    engine = open_study(database_url)
    with writing(engine) as session:
        stored(session, triage_data)
    with reading(engine) as session:
        found = {state: set(browse.examples(session, Filters(reads=state))["example_id"]) for state in READ_STATES}
        every, readers = set(browse.examples(session, Filters())["example_id"]), set(level_readers(session).index)
    engine.dispose()
    assert (found[READ], found[UNREAD]) == (readers, every - readers)
    assert found[OVERRIDDEN] | found[CONFLICTING] <= readers
    assert found[OVERRIDDEN]


def test_physicians_are_counted_once_a_case_and_judges_not_at_all(held):
    triage_data, readers = held
    reads = triage_data.reads.assign(
        example_id=triage_data.cases["example_id"].take(triage_data.reads["row"]).to_numpy()
    )
    assert readers.to_dict() == reads.groupby("example_id")["rater"].nunique().to_dict() != {}

"""Responses to cases of triage are put before physicians: those that somebody chose, and those that are drawn by format, source and level."""

import re

import numpy as np
import pytest

from evalcore.errors import NotFound, OverreadError
from evalcore.reading import adjudication, assignment_queries, reviewing, store as reading_store
from evalcore.reading.assigning import Choice, assign
from evalcore.reading.assignment_queries import Planned
from evalcore.reading.reviewing import Decision
from evalcore.study import contents, store
from evalcore.study.browse import Filters, examples
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Acuity, Administrator, Ask, Format, ReadingMode, ReadingState, Role, Rules, Seen
from evalcore.triage import queries as triage_queries
from evalcore.triage.corrected import physicians_cells
from evalcore.triage.data import NO_LEVEL, described
from evalcore.triage.reads import drawn_votes, read_counts, response_levels
from tests import world
from tests.assigning_steps import assign_responses
from tests.triage_cases import CONVERSATION, SOURCES, WORDS, drawn, stored

LEAD, READERS = "Ana Ruiz", ("Dr. Noor", "Dr. Brandt", "Dr. Lind")


@pytest.fixture
def study_of(database_url):
    """Ten cases that two models have answered; nobody has read any."""
    engine = open_study(database_url)
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=10, share_read=0, n_samples=2)
    with writing(engine) as session:
        stored(session, triage_data)
        for name in READERS:
            store.add_person(session, name, roles=[Role.REVIEWER], actor="set-up")
        store.add_person(session, LEAD, roles=[Role.LEAD, Role.ADJUDICATOR], actor="set-up")
    yield engine, triage_data
    engine.dispose()


def texts(triage_data, **asked):
    kept = triage_data.samples["has_text"]
    for name, value in asked.items():
        kept &= triage_data.samples[name].eq(value)
    return triage_data.samples.loc[kept, "response_id"].tolist()


def loaded(engine):
    with reading(engine) as session:
        return described(triage_queries.load(session))


def person(engine, name):
    with reading(engine) as session:
        return next(found for found in contents.people(session) if found.name == name)


def read_next(engine, name, label):
    """The reader's next item is marked and submitted; the response's number."""
    viewer = person(engine, name)
    desk = reviewing.take(engine, viewer)
    assert desk is not None
    number = desk.reading.id or 0
    reviewing.mark(engine, viewer, number, None, label)
    if world.lock(engine, viewer, number) is ReadingState.REVEALED:
        first = reviewing.open_review(engine, viewer, number).first[None]
        reviewing.revise(engine, viewer, number, None, Decision(Acuity(first.label)), seen=None)
        reviewing.finish(engine, viewer, number)
    return desk.asked.response_id


# ---------------------------------------------------------------- chosen


def test_chosen_responses_are_read_blind_and_stand_for_no_others(study_of):
    engine, triage_data = study_of
    numbers = texts(triage_data)[:3]
    done = assign_responses(
        engine,
        [*numbers, numbers[0]],
        actor=Administrator(name=LEAD),
        n_readers=1,
        readers=READERS[:1],
        seed=5,
        alone=True,
    )
    assert (done.n_items, done.n_population) == (3, 3)
    ((ask, selection, chosen_by),) = world.rows(engine, "SELECT ask, selection, chosen_by FROM assignment")
    assert (ask, selection, chosen_by) == (Ask.RESPONSE_ACUITY, "volunteered", '{"chosen": 3, "alone": true}')
    read = [read_next(engine, READERS[0], Acuity.D) for _ in numbers]
    assert set(read) == set(numbers)
    assert set(world.rows(engine, "SELECT stage, selection, inclusion_probability, blinded FROM verdict WHERE stage = 'first'")) == {
        ("first", "volunteered", None, 1)
    }  # fmt: skip
    found = loaded(engine)
    assert response_levels(found)["level"].tolist() == [4, 4, 4]
    assert not response_levels(found)["is_drawn"].any()
    assert drawn_votes(found).empty
    cells = physicians_cells(found)
    clear = read_counts(found)["n_read"].sum()
    assert clear == 3
    assert cells["n"].sum() == 0
    assert cells["n_volunteered"].sum() > 0


@pytest.mark.parametrize("n_chosen", [1, 5])
def test_chosen_responses_are_read_among_as_many_that_were_drawn(study_of, n_chosen):
    engine, triage_data = study_of
    chosen = texts(triage_data, format=CONVERSATION)[:n_chosen]
    with writing(engine) as session:  # of what a reader has seen none is a companion
        seen = [
            int(triage_data.samples["row"][number - 1]) + 1 for number in texts(triage_data, format=CONVERSATION)[5:10]
        ]
        reading_store.add_exposures(session, person(engine, READERS[0]).person_id, Seen.CONVERSATION, seen)
    done = assign_responses(engine, chosen, actor=Administrator(name=LEAD), seed=5)
    wanted = max(3, n_chosen)
    assert (done.n_items, done.n_companions, done.n_alone) == (n_chosen + wanted, wanted, 0)
    assert f"{wanted} of them were drawn at random to be read among the chosen ones" in " ".join(done.sentences())
    tasks = world.rows(engine, "SELECT example_id, response_id FROM task ORDER BY place")
    beside = [number for _, number in tasks if number not in chosen]
    assert set(triage_data.samples.loc[[number - 1 for number in beside], "format"]) == {CONVERSATION}
    assert not {example for example, number in tasks if number in beside} & set(seen)
    again = assign_responses(
        engine, texts(triage_data, format=CONVERSATION)[5:6], actor=Administrator(name=LEAD), seed=5
    )
    assert again.n_items > 1


def test_where_nothing_is_left_to_be_drawn_beside_it_the_lead_is_told(study_of):
    engine, triage_data = study_of
    numbers = texts(triage_data, format="qa")
    report = assign_responses(engine, numbers, actor=Administrator(name=LEAD))
    assert (report.n_companions, report.n_alone) == (0, len(numbers))
    assert "a reader may guess which were chosen" in report.sentences()[-1]


def test_what_is_assigned_already_is_left_out(study_of):
    engine, triage_data = study_of
    numbers = texts(triage_data)
    assign_responses(engine, numbers[:2], actor=Administrator(name=LEAD), alone=True)
    assert assign_responses(engine, numbers[:3], actor=Administrator(name=LEAD), alone=True, dry_run=True).n_items == 1
    with pytest.raises(OverreadError, match="all that fit are assigned already"):
        assign_responses(engine, numbers[:2], actor=Administrator(name=LEAD))


@pytest.mark.parametrize(
    ("number", "more", "sentence", "error"),
    [
        ("no text", {}, "expected one of this study with a text to read, got response 2", NotFound),
        (99_999, {}, "expected one of this study with a text to read, got response 99999", NotFound),
        ("text", {"ask": Ask.GOLD_ACUITY}, "what a case itself needs is asked without any response", OverreadError),
        (
            "text",
            {"ask": Ask.RUBRIC},
            "expected a response with a rubric to read, got response 1, which has no criteria",
            NotFound,
        ),
        (
            "text",
            {"readers": ["Nobody"]},
            "readers: expected reviewers or adjudicators of this study: Ana Ruiz, Dr. Brandt, Dr. Lind, Dr. Noor, got Nobody",
            OverreadError,
        ),
    ],
)
def test_what_cannot_be_read_is_refused(study_of, number, more, sentence, error):
    engine, triage_data = study_of
    silent = int(triage_data.samples.loc[~triage_data.samples["has_text"], "response_id"].iloc[0])
    numbers = {"no text": [silent], "text": texts(triage_data)[:1]}.get(number, [number])
    with pytest.raises(error, match=re.escape(sentence)):
        assign_responses(engine, numbers, actor=Administrator(name=LEAD), **more)
    assert world.count(engine, "assignment") == 0


def test_readers_who_differ_on_a_chosen_response_go_to_an_adjudicator(study_of):
    engine, triage_data = study_of
    number = texts(triage_data, format=CONVERSATION)[0]
    assign_responses(engine, [number], actor=Administrator(name=LEAD), alone=True)
    read_next(engine, READERS[0], Acuity.A)
    assert not adjudication.cases(engine, person(engine, LEAD)).waiting
    read_next(engine, READERS[1], Acuity.D)
    (case,) = adjudication.cases(engine, person(engine, LEAD)).waiting
    assert case.key == (int(triage_data.samples["row"][number - 1]) + 1, number)


def test_where_the_study_reads_open_a_chosen_response_is_read_like_any_other(study_of):
    engine, triage_data = study_of
    with writing(engine) as session:
        store.set_rules(session, Rules(mode=ReadingMode.OPEN), actor=LEAD)
    number = texts(triage_data, format=CONVERSATION)[0]
    assign_responses(engine, [number], actor=Administrator(name=LEAD), alone=True)
    viewer = person(engine, READERS[0])
    said = float(triage_data.levels["Magpie"][number - 1])
    other = Acuity.D if said != 4 else Acuity.A
    assert read_next(engine, READERS[0], other) == number
    assert reviewing.open_review(engine, viewer, 1).first[None].label == other
    read_next(engine, READERS[1], Acuity.A if other is Acuity.D else Acuity.D)
    assert adjudication.cases(engine, person(engine, LEAD)).waiting
    assert drawn_votes(loaded(engine)).empty


# ---------------------------------------------------------------- chosen, and drawn


def test_what_was_chosen_may_still_be_drawn_and_its_read_then_counts(study_of):
    engine, triage_data = study_of
    numbers = texts(triage_data, format=CONVERSATION)
    assign_responses(engine, numbers[:1], actor=Administrator(name=LEAD), n_readers=1, readers=READERS[:1], alone=True)
    read_next(engine, READERS[0], Acuity.C)
    done = assign(
        engine,
        Choice(ask=Ask.RESPONSE_ACUITY, filters=Filters(format=CONVERSATION), readers=READERS[1:2], n_readers=1),
        actor=Administrator(name=LEAD),
    )
    assert (done.n_items, done.n_waiting) == (len(numbers), 0)
    assert response_levels(loaded(engine))["is_drawn"].tolist() == [False]  # the drawing is not read as far as that
    read = [read_next(engine, READERS[1], Acuity.B) for _ in numbers]
    assert numbers[0] in read  # by somebody else
    found = drawn_votes(loaded(engine)).set_index("sample")
    assert len(found) == len(numbers)
    assert found.loc[numbers[0] - 1, "n_readers"] == 2
    assert found.loc[numbers[0] - 1, ["v_B", "v_C"]].tolist() == [0.5, 0.5]
    assert found["inclusion_probability"].to_numpy() == pytest.approx(1)


def test_two_drawings_one_after_the_other_are_one_of_their_joint_probability(study_of):
    # First 10 of 20 conversations, then all qa and the 10 that were left: each conversation is certain to be read by then.
    engine, triage_data = study_of
    numbers = texts(triage_data, format=CONVERSATION)
    assert len(numbers) == 20
    how = {"ask": Ask.RESPONSE_ACUITY, "filters": Filters(format=CONVERSATION), "readers": READERS[:1], "n_readers": 1}
    assign(engine, Choice(**how, n_items=10), actor=Administrator(name=LEAD))
    for _ in range(10):
        read_next(engine, READERS[0], Acuity.C)
    found = drawn_votes(loaded(engine))
    assert found["inclusion_probability"].to_numpy() == pytest.approx(0.5)
    done = assign(engine, Choice(**how, n_items=5), actor=Administrator(name=LEAD))
    assert (done.n_items, done.n_population) == (5, 10)
    for _ in range(5):
        read_next(engine, READERS[0], Acuity.C)
    found = drawn_votes(loaded(engine))
    assert len(found) == 15
    assert found["inclusion_probability"].to_numpy() == pytest.approx(1 - 0.5 * 0.5)


# ---------------------------------------------------------------- by filter


@pytest.mark.parametrize(
    "filters",
    [
        Filters(format=CONVERSATION),
        Filters(source=SOURCES[0]),
        Filters(model="Briar-1", format="qa"),
        Filters(format=CONVERSATION, level="D"),
        Filters(format=CONVERSATION, level="C", judge="Magpie", source=SOURCES[1]),
        Filters(level="A", judge="parser"),
        Filters(level="cannot_assess"),
        Filters(format="qa", level="B", judge="Magpie"),  # who has read conversations alone
    ],
)
def test_responses_with_a_text_are_found_by_format_source_model_and_level(study_of, filters):
    engine, triage_data = study_of
    level = triage_data.levels[filters.judge] if filters.judge else None
    wanted = set()
    for place, sample in enumerate(triage_data.samples.to_dict(orient="records")):
        said = {float(value) for value in (triage_data.levels.iloc[place] if level is None else [level[place]])}
        words = {"cannot_assess" if value == NO_LEVEL else WORDS[value].value for value in said if not np.isnan(value)}
        fits = (
            filters.format in (None, sample["format"])
            and filters.model in (None, sample["model"])
            and filters.source in (None, triage_data.cases["source"][sample["row"]])
            and (filters.level is None or filters.level in words)
        )
        if fits:
            wanted.add((sample["row"] + 1, sample["response_id"], sample["has_text"]))
    with reading(engine) as session:
        found = assignment_queries.responses(session, filters, with_rubric=False)
        listed = examples(session, filters)["example_id"].tolist()
    assert found == sorted((row, number) for row, number, has_text in wanted if has_text)
    assert listed == sorted({row for row, *_ in wanted})


def test_no_plan_filter_or_question_assigns_a_response_without_a_text(study_of):
    engine, triage_data = study_of
    done = assign(engine, Choice(ask=Ask.RESPONSE_ACUITY), actor=Administrator(name=LEAD), dry_run=True)
    assert done.n_items == triage_data.samples["has_text"].sum()
    with pytest.raises(OverreadError, match="no item fits"):
        assign(engine, Choice(ask=Ask.RUBRIC), actor=Administrator(name=LEAD))
    sample = triage_data.samples.loc[~triage_data.samples["has_text"] & triage_data.samples["format"].eq("qa")].iloc[0]
    names = {"prompt_id": triage_data.cases["case_id"][sample["row"]], "model": str(sample["model"])}
    line = Planned(**names, sample_index=int(sample["sample_index"]), probability=0.5, dataset=Format.QA.evaluation)
    with pytest.raises(NotFound, match="of which only the level is known"):
        assign(engine, Choice(ask=Ask.RESPONSE_ACUITY, plan=(line,)), actor=Administrator(name=LEAD))

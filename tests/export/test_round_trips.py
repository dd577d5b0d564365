"""What is taken out can be brought into an empty study: examples, responses and verdicts, with the same labels, scores and agreement."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pandas as pd
import pytest
from hypothesis import Phase, given, settings, strategies as st

from evalcore.errors import OverreadError
from evalcore.export import tables as export_tables
from evalcore.export.tables import Part
from evalcore.importing import import_file
from evalcore.judges.agreement import agreement, labels_of
from evalcore.rubric import queries as rubric_queries
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Administrator, Label, Selection, Stage
from tests import world
from tests.export_steps import as_file

LEAD = Administrator(name="Ana Ruiz")
MODELS = ("Alder-2", "Birch-1")
READERS = ("Dr. Ada Moss", "Dr. Sol Weiss")  # without an account here, as in another study
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(lambda text: f"x{text}x")
ITS_OWN = ["response_id", "first_read_at", "language"]  # numbers, times and what is told from a text are a study's own

reads = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 1), st.sampled_from(READERS), st.sampled_from(list(Label)), st.booleans(), TEXTS,
        st.sampled_from([None, 0.25, 1.0]),
    ),
    max_size=14, unique_by=lambda read: read[:3],
)  # fmt: skip


def study_of(url, given):
    """Two examples of two criteria, two models, a judge; reads as given, and some settled."""
    small = world.made(url, models=MODELS)
    for response, criterion, name, label, settles, words, chance in given:
        example = response // len(MODELS)
        about = {"response_id": small.responses[response], "criterion_id": small.criteria[example][criterion]}
        drawn = {"selection": Selection.RANDOM if chance else Selection.VOLUNTEERED, "inclusion_probability": chance}
        world.said(small, label, name=name, example=example, explanation=words, blinded=True, **drawn, **about)
        if settles and name == READERS[0]:
            world.said(
                small, Label.MET, name=READERS[1], stage=Stage.ADJUDICATED, example=example, explanation=words, **about
            )
    return small


def brought(engine, folder, file_format, empty):
    """An empty study, with the three files."""
    verdicts = export_tables.table(engine, "verdicts")
    written = {
        "examples.jsonl": export_tables.example_rows(engine)[0],
        "responses.jsonl": export_tables.response_rows(engine),
        f"verdicts.{file_format}": as_file(verdicts, file_format),
    }
    again = open_study(str(shutil.copyfile(empty, folder / "again.db")))  # quicker than to migrate each
    for name, content in written.items():
        if content.strip():
            (folder / name).write_bytes(content)
            report = import_file(again, folder / name, actor=LEAD, dataset="invented")
            assert report.without_partner == 0
    return again


def numbers(engine):
    """Labels and scores, without what is this study's own; and agreement."""
    labels, scores = (
        export_tables.table(engine, what).drop(columns=ITS_OWN, errors="ignore") for what in ("labels", "scores")
    )
    with reading(engine) as session:
        known = rubric_queries.load(session)
    order = ["example_id", "model", "criterion_position"]
    return labels.sort_values(order, ignore_index=True), scores, agreement(labels_of(known))


@pytest.mark.slow
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])  # each makes two studies
@given(reads, st.sampled_from(["csv", "jsonl"]))
def test_a_study_that_is_taken_out_and_brought_into_an_empty_one_has_the_same_numbers(
    sqlite_template, given_reads, file_format
):
    with TemporaryDirectory() as name:
        folder = Path(name)
        small = study_of(f"sqlite:///{folder}/study.db", given_reads)
        again = brought(small.engine, folder, file_format, sqlite_template)
        for ours, theirs in zip(numbers(small.engine), numbers(again), strict=True):
            pd.testing.assert_frame_equal(ours, theirs)
        small.engine.dispose()
        again.dispose()


def test_examples_responses_and_verdicts_come_back_as_they_were(database_url, tmp_path, sqlite_template):
    settled = (0, 0, READERS[0], Label.NOT_MET, True, "=1+1", 0.25)
    small = study_of(database_url, [settled, (3, 1, READERS[1], Label.CANNOT_ASSESS, False, '"x", y', None)])
    again = brought(small.engine, tmp_path, "csv", sqlite_template)
    for rows in (export_tables.example_rows, export_tables.response_rows):
        assert rows(again) == rows(small.engine)
    for ours, theirs in zip(numbers(small.engine), numbers(again), strict=True):
        pd.testing.assert_frame_equal(ours, theirs)
    first = orjson.loads(export_tables.example_rows(small.engine)[0].splitlines()[0])
    assert set(first) == {"prompt_id", "prompt", "rubrics", "example_tags", "canary"}
    again.dispose()
    small.engine.dispose()


def test_what_the_format_of_examples_cannot_hold_is_left_out_and_counted(database_url):
    small = world.made(database_url, points=((None, 2), (5, 3)))
    content, n_left_out = export_tables.example_rows(small.engine)
    assert (content.count(b"\n"), n_left_out) == (1, 1)
    small.engine.dispose()


def test_a_file_of_examples_is_of_one_data_set_and_holds_nothing_that_waits_for_the_viewer(database_url):
    small = world.made(database_url)
    assert export_tables.example_rows(small.engine, Part(blind=frozenset({1})))[0].count(b"\n") == 1
    assert b"answer-0" not in export_tables.response_rows(small.engine, Part(blind=frozenset({1})))
    with pytest.raises(OverreadError, match="data set: expected one of invented, got healthbench: choose one"):
        export_tables.example_rows(small.engine, Part(dataset="healthbench"))
    small.engine.dispose()

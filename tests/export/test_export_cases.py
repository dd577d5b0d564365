"""Cases of triage and levels as tables to take away: what each case needs and by whom, beside what models answer and physicians read."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evalcore.export import tables as export_tables
from evalcore.export.tables import Part
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import PARSER
from evalcore.triage import queries as triage_queries
from evalcore.triage.cases import COLUMNS, case_table
from evalcore.triage.data import Kind, described
from evalcore.triage.predictions import judges_of, predictions, usual_judges
from evalcore.triage.reads import response_levels
from tests.triage.test_triage_levels import read
from tests.triage_cases import CONVERSATION, WORDS, drawn, stored


@pytest.fixture
def study(database_url):
    engine = open_study(database_url)
    triage_data, _ = drawn(
        np.random.default_rng(11), n_cases=12, share_read=0.6, judges={"Magpie": 0.9, "Wren": 0.6}, confidence=True
    )
    triage_data.cases["original_label"] = "=see"
    with writing(engine) as session:
        stored(session, triage_data)
    yield engine
    engine.dispose()


def csv_rows(engine, what, part=None):
    return list(csv.DictReader(io.StringIO(export_tables.to_csv(export_tables.table(engine, what, part)).decode())))


def test_a_case_has_a_row_for_each_model_and_format(study):
    with reading(study) as session:
        triage_data = described(triage_queries.load(session))
    rows = csv_rows(study, "cases")
    assert len(rows) == 12 * 2 * 2
    found = predictions(triage_data, usual_judges(triage_data)).set_index(["row", "model", "format"])
    names = triage_data.cases["case_id"].tolist()
    read_levels = response_levels(triage_data)
    for row in rows:
        place = names.index(row["example_id"])
        case, told = triage_data.cases.iloc[place], found.loc[(place, row["model"], row["format"])]
        assert row["gold"] == WORDS.get(case["gold"], "")
        assert row["kind"] == case["kind"]
        votes = triage_data.votes.loc[triage_data.votes["row"].eq(place)].sort_values("place")["vote"]
        assert row["votes"] == ";".join("remove" if np.isnan(vote) else WORDS[vote] for vote in votes)
        assert row["predicted"] == WORDS.get(told["predicted"], "")
        assert [float(row[f"n_{letter}"]) for letter in "ABCD"] == [told[f"n_{letter}"] for letter in "ABCD"]
        assert int(row["n_no_level"]) == told["n_invalid"]
        assert row["judge"] == (PARSER if row["format"] == "qa" else usual_judges(triage_data)[CONVERSATION])
        assert row["original_label"] == "'=see"  # no spreadsheet runs it
        mine = (
            triage_data.samples["row"].eq(place)
            & triage_data.samples["model"].eq(row["model"])
            & triage_data.samples["format"].eq(row["format"])
        )
        assert int(row["n_read"]) == read_levels["sample"].isin(np.flatnonzero(mine)).sum()


def test_the_judge_that_was_chosen_reads_where_it_has_looked(study):
    rows = csv_rows(study, "cases", Part(judge="Wren"))
    assert {(row["format"], row["judge"]) for row in rows} == {("qa", PARSER), (CONVERSATION, "Wren")}
    assert {row["model"] for row in csv_rows(study, "cases", Part(model="Briar-1"))} == {"Briar-1"}


def test_levels_of_physicians_stand_beside_the_judges_and_the_gold(study):
    rows = csv_rows(study, "acuity", Part(judge="Wren"))
    assert {row["rater"] for row in rows if row["rater_kind"] == "judge"} == {
        PARSER,
        "Magpie",
        "Wren",
    }  # none is dropped
    said = {(row["response_id"], row["rater"]): row["label"] for row in rows if row["stage"] == "judge"}
    reads = [row for row in rows if row["rater_kind"] == "reviewer" and row["response_id"]]
    assert reads
    for row in reads:
        assert row["judge"] == (PARSER if row["format"] == "qa" else "Wren")
        assert row["judge_label"] == said[row["response_id"], row["judge"]]
        assert row["kind"] in set(Kind)
    assert all(row["judge_label"] == "" for row in rows if row["rater_kind"] == "judge" or not row["response_id"])
    assert {row["source"] for row in rows} <= {"clinic", "hotline", "vignettes"}
    whole = export_tables.table(study, "acuity")
    only_read = export_tables.table(study, "acuity", Part(read_only=True))
    assert 0 < len(only_read) < len(whole)


def test_what_waits_is_in_neither_table(study):
    for what in ("cases", "acuity"):
        whole, part = export_tables.table(study, what), export_tables.table(study, what, Part(blind=frozenset({1, 2})))
        hidden = whole.loc[~whole["example_id"].isin(part["example_id"]), "example_id"].nunique()
        assert hidden == 2
        kept = whole.loc[whole["example_id"].isin(part["example_id"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(part.reset_index(drop=True), kept)


def test_changes_of_the_gold_stand_beside_it_and_a_case_without_answers_has_a_row():
    triage_data = described(drawn(np.random.default_rng(2), n_cases=4, share_read=0)[0])
    silent = triage_data.samples["row"].eq(3).to_numpy()
    kept = replace(triage_data, samples=triage_data.samples.loc[~silent], levels=triage_data.levels.loc[~silent])
    found = case_table(
        read(kept, (0, "1", "B"), (0, "2", "B"), (1, "1", "A"), (1, "2", "D"), of_case=True), usual_judges(kept)
    )
    assert list(found.columns) == list(COLUMNS)
    by_case = found.drop_duplicates("case_id")[["gold_read_here", "gold_how", "gold_readers"]].to_numpy().tolist()
    assert by_case[0] == ["B", "agreed", 2]
    assert by_case[1][1:] == ["unsettled", 2]
    assert pd.isna(by_case[1][0])
    last = found.loc[found["example_id"].eq(4)]
    assert len(last) == 1
    assert last[["model", "predicted", "n_read"]].isna().all(axis=None)
    assert judges_of(triage_data, "Nobody") == usual_judges(triage_data)


def test_a_study_without_cases_has_the_columns_and_no_row(database_url):
    engine = open_study(database_url)
    assert list(export_tables.table(engine, "cases").columns) == list(export_tables.columns_of("cases"))
    assert export_tables.table(engine, "cases").empty
    engine.dispose()

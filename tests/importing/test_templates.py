"""Templates: every format has one, which a study takes as it stands; and a file of no format is told which one it nearly is."""

import pandas as pd
import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.formats import FORMATS, template
from tests.invented import bring, study, write

FIRST = ("healthbench-examples", "simple-evals", "acuity-cases", "acuity-predictions")
"""What the rows of the others belong to."""


def test_a_study_takes_the_template_of_every_format_and_tells_each_by_its_content(tmp_path, database_url):
    with study(database_url) as engine:
        for name in [*FIRST, *(name for name in FORMATS if name not in FIRST)]:
            copy = write(tmp_path / f"mine{template(name).suffix}", template(name).read_bytes())
            report = bring(engine, copy, model="my-model" if name == "simple-evals" else None, judge="my-judge")
            assert (report.format, report.without_partner, report.different) == (name, 0, 0)
            assert not report.adds_nothing
            assert report.rows == (4 if name == "acuity-matrices" else 2)


@pytest.mark.parametrize("name", [name for name in FORMATS if template(name).suffix == ".csv"])
def test_a_template_has_only_columns_of_its_format(name):
    columns = set(pd.read_csv(template(name)).columns)
    numbered = {f"anon_label_{n}{rater}" for n in (1, 2, 3) for rater in ("", "_rater")}
    assert columns - numbered <= FORMATS[name].column_names


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"example_id,model,criterion_position,label\n", "; closest format: verdict-table; missing: rater"),
        (b"question,answer,model,criterion,points\n", "; closest format: grade-table; missing: grade"),
        (b"prompt,response,criteria\n", "; closest format: graded-responses, which is JSON Lines"),
        (b"dataset,source_id,notes\n", "; closest format: acuity-cases; missing: "),
        (
            b'{"prompt_id": "a", "judge": "b", "explanation": "c"}\n',
            "; closest format: judge-verdicts; missing: criteria_met",
        ),
    ],
)
def test_a_file_of_no_format_is_told_the_closest_one_and_what_it_lacks(tmp_path, sqlite_database_url, content, told):
    with study(sqlite_database_url) as engine, pytest.raises(ImportFailed) as failed:
        bring(engine, write(tmp_path / "mine", content))
    assert told in failed.value.faults[0]


def test_a_parquet_file_of_no_format_is_told_the_closest_one_that_comes_as_parquet(tmp_path, sqlite_database_url):
    path = tmp_path / "mine.parquet"
    cases = pd.read_csv(template("acuity-cases"))
    lacking = sorted(FORMATS["acuity-cases"].keys)[0]
    cases.drop(columns=lacking).to_parquet(path)
    with study(sqlite_database_url) as engine:
        with pytest.raises(ImportFailed, match=f"; closest format: acuity-cases; missing: {lacking}"):
            bring(engine, path)
        pd.DataFrame({"example_id": ["a"], "criterion_position": [1]}).to_parquet(
            path
        )  # of a format that is no Parquet
        with pytest.raises(ImportFailed) as failed:
            bring(engine, path)
    assert "verdict-table" not in failed.value.faults[0]


def test_a_file_that_shares_nothing_with_any_format_is_told_of_none(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine, pytest.raises(ImportFailed) as failed:
        bring(engine, write(tmp_path / "mine.csv", b"x,y\n1,2\n"))
    assert "closest" not in failed.value.faults[0]


def test_the_command_writes_a_template_and_overwrites_nothing(overread):
    told = overread.good("template", "verdict-table")
    assert told == "verdict-table.csv: replace its rows by yours, then overread import verdict-table.csv\n"
    assert (overread.folder / "verdict-table.csv").read_bytes() == template("verdict-table").read_bytes()
    assert "exists already" in overread.bad("template", "verdict-table")
    assert "expected one of the formats" in overread.bad("template", "x")

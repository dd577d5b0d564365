"""Cases of triage and votes of panels: each row checked, all or nothing, labels read by the maps, what files say compared with the votes."""

import gzip

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalcore.errors import ImportFailed
from evalcore.importing import import_file
from evalcore.importing.formats.acuity_panels import Cases
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator
from evalcore.study.store import index_texts
from evalcore.triage import queries as triage_queries
from evalcore.triage.data import described
from evalcore.triage.store import set_label_map
from tests.acuity_files import CASE, case, cases, table, votes
from tests.invented import bring, dump, example, lines, rows, study, write


@pytest.fixture
def engine(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        yield engine


def refused(engine, path, content, **told):
    """The faults of a file that is refused whole."""
    before = dump(engine)
    path.write_bytes(content)
    with pytest.raises(ImportFailed) as failed:
        import_file(engine, path, actor=Administrator(name="tester"), **told)
    assert dump(engine) == before
    assert all("\n" not in fault and len(fault) < 400 for fault in failed.value.faults), failed.value.faults
    return failed.value.faults


def test_a_case_is_stored_as_it_came_with_the_text_that_is_sent(tmp_path, database_url):
    lines = [
        case(),
        case(
            2,
            "C",
            "C|D",
            "Remove",
            "d",
            "EMERGENCY",
            anon_label_2_rater="Dr. B",
            uncertainty="0.25",
            notes="rare",
            is_edge_case="True",
        ),
    ]
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / "cases.csv", table(*lines)))
        assert (report.format, report.dataset, report.rows, report.cases_new, report.votes_new) == (
            "acuity-cases",
            "acuity",
            2,
            2,
            5,
        )
        assert cases(engine) == [("clinic_1", "A", "A", "direct"), ("clinic_2", None, None, "median")]
        assert votes(engine) == [
            ("clinic_2", 1, None, "C"),
            ("clinic_2", 2, "Dr. B", "C/D"),
            ("clinic_2", 3, None, "remove"),
            ("clinic_2", 4, None, "D"),
            ("clinic_2", 5, None, "D"),
        ]
        found = rows(engine, "SELECT dataset, prompt_id, first_words, n_turns FROM example ORDER BY prompt_id")
        assert found[0] == ("acuity", "clinic_1", CASE["normalized_prompt_text"], 1)
        assert rows(engine, "SELECT uncertainty, notes FROM acuity_case WHERE uncertainty IS NOT NULL") == [
            (0.25, "rare")
        ]
        assert [bool(edge) for (edge,) in rows(engine, "SELECT is_edge_case FROM acuity_case ORDER BY example_id")] == [
            False,
            True,
        ]
        index_texts(engine)
        assert rows(engine, "SELECT DISTINCT language FROM example") == [("en",)]


@pytest.mark.parametrize("word", ["SELF_CARE", "self care", "Self-Care", "a", "A"])
def test_a_level_may_be_named_in_several_ways(engine, tmp_path, word):
    bring(engine, write(tmp_path / "cases.csv", table(case(normalized_label=word, original_label=""))))
    assert cases(engine) == [("clinic_1", None, "A", "direct")]


@pytest.mark.parametrize(("word", "level"), [("A|B", "A/B"), ("B/C", "B/C"), ("C | D", "C/D")])
def test_a_boundary_may_be_written_with_either_sign(engine, tmp_path, word, level):
    bring(engine, write(tmp_path / "cases.csv", table(case(normalized_label=word, original_label=""))))
    assert cases(engine)[0][2] == level


def test_without_a_level_the_label_map_of_the_source_decides(engine, tmp_path):
    bare = {"normalized_label": "", "mapping_method": ""}
    came = [
        case(1, dataset="semigran", original_label="em") | bare,
        case(2, dataset="semigran", original_label="NE") | bare,
        case(3, dataset="pmr", original_label="4") | bare,
        case(4, dataset="structured", original_label="C|D") | bare,
        case(5, dataset="new source", original_label="urgent care") | bare,
        case(6, dataset="new source", original_label="") | bare,
    ]
    report = bring(engine, write(tmp_path / "cases.csv", table(*came)))
    assert cases(engine) == [
        ("new source_5", "C", "C", "direct"),
        ("new source_6", None, None, "none"),
        ("pmr_3", "information B", None, "none"),
        ("semigran_1", "D", "D", "direct"),
        ("semigran_2", "panel", None, "none"),
        ("structured_4", "C/D", "C/D", "direct"),
    ]
    assert report.different == 0


def test_an_unknown_label_stops_the_import_and_names_itself_its_row_and_its_source(engine, tmp_path):
    bare = {"normalized_label": "", "mapping_method": ""}
    came = [
        case(),
        case(2, dataset="semigran", original_label="soon") | bare,
        case(3, dataset="semigran", original_label="soon") | bare,
    ]
    (fault,) = refused(engine, tmp_path / "cases.csv", table(*came))
    assert fault.startswith(
        "cases.csv line 3: original_label: expected one of em, ne, sc, got the label 'soon' of the source 'semigran'"
    )
    with writing(engine) as session:
        set_label_map(session, "semigran", [("em", "D"), ("soon", "C")], actor="tester")
    bring(engine, tmp_path / "cases.csv")
    assert cases(engine)[1:] == [("semigran_2", "C", "C", "direct"), ("semigran_3", "C", "C", "direct")]


def test_an_unknown_label_beside_a_level_of_the_file_is_kept(engine, tmp_path):
    bring(engine, write(tmp_path / "cases.csv", table(case(original_label="whatever"))))
    assert rows(engine, "SELECT original_label, mapped_label, gold FROM acuity_case") == [("whatever", None, "A")]


def test_what_a_file_says_against_its_votes_or_its_map_is_counted_and_named_and_the_right_one_counts(engine, tmp_path):
    came = [
        case(1, "A", "A", "A", "B", "B", normalized_label="B"),  # the median is A, the spread 0.6
        case(2, "A", "B", "C", "C", "D", normalized_label="C", mapping_method="median"),  # the spread is 2.6
        case(3, "A", "A", "A", mapping_method="excluded_disagreement"),
        case(4, "A", "A", "Remove", normalized_label="SELF-CARE"),  # they agree
        case(5, original_label="D", normalized_label="C"),  # the map of the levels says D
        case(
            6, dataset="semigran", original_label="ne", normalized_label="B"
        ),  # direct, though its label needs a panel
        case(7, dataset="semigran", original_label="ne", normalized_label="B", mapping_method="median"),
    ]
    report = bring(engine, write(tmp_path / "cases.csv", table(*came)))
    assert report.different == 5
    assert report.different_named == [
        "line 2: clinic_1: the file says B; its votes A, A, A, B, B say A by the rule, and count",
        "line 3: clinic_2: the file says C; its votes A, B, C, C, D say that the panel disagrees by the rule, and count",
        "line 4: clinic_3: the file says that the panel disagrees; its votes A, A, A say A by the rule, and count",
        "line 6: clinic_5: the file says C, and counts; the label map says D for 'D'",
        "line 7: semigran_6: the file says B, and counts; the label map says panel for 'ne'",
    ]
    assert any("5 cases of which the file says something else" in sentence for sentence in report.sentences())
    ((trail,),) = rows(engine, "SELECT detail FROM audit_event")  # no gold of a single case, for those who read blind
    assert '"different": 5' in trail
    assert "clinic_1" not in trail
    with reading(engine) as session:
        found = described(triage_queries.load(session)).cases.set_index("case_id")
    assert found["gold"].astype(object).where(found["gold"].notna(), None).to_dict() == {
        "clinic_1": 1.0, "clinic_2": None, "clinic_3": 1.0, "clinic_4": 1.0, "clinic_5": 3.0, "semigran_6": 2.0, "semigran_7": 2.0,
    }  # fmt: skip


def test_importing_again_adds_nothing_whatever_the_order(tmp_path, database_url):
    came = [case(), case(2, "A", "B", "B"), case(3, normalized_label="B|C", original_label="")]
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(*came)))
        before = dump(engine)
        assert bring(engine, tmp_path / "cases.csv").already_imported
        report = bring(engine, write(tmp_path / "turned.csv", table(*reversed(came), came[0])))
        assert (report.cases_known, report.adds_nothing) == (4, True)
        assert dump(engine) == before


def test_votes_that_come_later_complete_a_case(engine, tmp_path):
    bring(
        engine, write(tmp_path / "bare.csv", table(case(1, original_label="", normalized_label="", mapping_method="")))
    )
    report = bring(engine, write(tmp_path / "cases.csv", table(case(1, "A", "B", anon_label_1_rater="Dr. A"))))
    assert (report.cases_completed, report.votes_new, report.adds_nothing) == (1, 2, False)
    assert votes(engine) == [("clinic_1", 1, "Dr. A", "A"), ("clinic_1", 2, None, "B")]


def test_a_dry_run_tells_all_and_changes_nothing(engine, tmp_path):
    before = dump(engine)
    report = bring(engine, write(tmp_path / "cases.csv", table(case(), case(2, "A", "D"))), dry_run=True)
    assert (report.cases_new, report.votes_new, sum(row["n"] for row in report.flow)) == (2, 2, 2)
    assert dump(engine) == before


def test_the_report_has_the_flow_of_the_files_cases(engine, tmp_path):
    came = [case(), case(2, "A", "A", "B"), case(3, "A", "D"), case(4, "Remove", "Remove"), case(1)]
    report = bring(engine, write(tmp_path / "cases.csv", table(*came)))
    found = {(row["outcome"], row["why"], row["gold"]): row["n"] for row in report.flow}
    assert found == {
        ("direct", "the source's label gives the level", "A"): 1,
        ("consensus", "the panel agreed", "A"): 1,
        ("ambiguous", "the panel disagreed", ""): 1,
        ("excluded", "the panel removed it", ""): 1,
    }


FAULTS = {
    "no text": (case(original_prompt_text="", normalized_prompt_text=" "), "line 3: original_prompt_text: expected the case's text .*, got nothing"),
    "no source": (case(dataset=" "), "line 3: dataset: expected the source's name, got nothing"),
    "no name": (case(""), "line 3: source_id: expected the case's name in its source, got nothing"),
    "a long name": (case("7" * 300), "line 3: source_id: expected a name of at most 200 printable characters, got '7+…'"),
    "a name over two lines": (case("a\nb"), r"line 3: source_id: expected a name of at most 200 printable characters, got 'a\\nb'"),
    "an unknown level": (case(normalized_label="E"), r"line 3: normalized_label: expected A, B, C, D .*, A\|B, B\|C, C\|D, Remove, got 'E'"),
    "a boundary that is none": (case(normalized_label="A|C"), r"line 3: normalized_label: expected A, B, .*, got 'A\|C'"),
    "an unknown method": (case(mapping_method="guess"), "line 3: mapping_method: expected direct, median, .*, got 'guess'"),
    "direct without a level": (case(normalized_label="", original_label=""), "line 3: mapping_method: direct: expected a level in normalized_label"),
    "an unknown vote": (case(2, "A", "perhaps"), r"line 3: anon_label_2: expected .* Remove, got 'perhaps'"),
    "an edge that is none": (case(is_edge_case="maybe"), "line 3: is_edge_case: expected true or false, got 'maybe'"),
    "uncertainty above 1": (case(uncertainty="1.01"), "line 3: uncertainty: expected a number from 0 to 1, got '1.01'"),
    "uncertainty in words": (case(uncertainty="high"), "line 3: uncertainty: expected a number from 0 to 1, got 'high'"),
    "NUL": (case(notes="a\x00b"), "line 3: notes: expected text that a database can hold, got the character NUL"),
    "the same name, another text": (
        case(0, normalized_prompt_text="Another text"),
        "line 3: normalized_prompt_text: expected 'I have been coughing .*' for the case 'clinic_0' as on line 2, got 'Another text'",
    ),
    "a case of the study, another text": (
        case(9, normalized_prompt_text="Another text"),
        "line 3: normalized_prompt_text: expected 'I have been coughing .*' for the case 'clinic_9' as imported before, got 'Another text'",
    ),
    "a case of the study, another level": (case(9, normalized_label="B"), "line 3: normalized_label: expected 'A' for the case 'clinic_9'.*, got 'B'"),
    "a case of the study, another label": (case(9, original_label="B"), "line 3: original_label: expected 'A' for the case 'clinic_9'.*, got 'B'"),
    "a case of the study, other notes": (case(9, notes="new"), "line 3: notes: expected nothing for the case 'clinic_9' as imported before, got 'new'"),
    "a panel of the study, another vote": (case(8, "A", "C"), "line 3: anon_label_2: expected 'B' for the case 'clinic_8' as imported before, got 'C'"),
    "a panel of the study, a vote less": (case(8, "A"), "line 3: anon_label_2: expected 'B' for the case 'clinic_8' as imported before, got nothing"),
    "another source of the same name": (
        case("d_7", dataset="clinic", normalized_label="A"),
        "line 3: dataset: expected 'clinic_d' for the case 'clinic_d_7' as imported before, got 'clinic'",
    ),
    "a conversation's name": (case("p1", dataset="acuity"), "line 3: source_id: expected a name of its own for the case 'acuity_p1'"),
}  # fmt: skip


def test_each_fault_is_named_with_its_line_and_nothing_is_imported(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "first.csv", table(case(9), case(8, "A", "B"), case(7, dataset="clinic_d"))))
        bring(engine, write(tmp_path / "examples.jsonl", lines(example("acuity_p1"))), dataset="acuity")
        for name, (wrong, expected) in FAULTS.items():
            found = refused(engine, tmp_path / "cases.csv", table(case(0), wrong))
            assert len(found) == 1, (name, found)
            assert pd.Series(found).str.contains("^cases.csv " + expected, regex=True).all(), (name, found)


@pytest.mark.parametrize("packing", ["parquet", "parquet.gz", "jsonl", "csv.gz"])
def test_the_same_cases_may_come_in_another_kind_of_file(engine, tmp_path, packing):
    came = [case(), case(2, "C", "C|D", "Remove", is_edge_case="true", uncertainty="0.5")]
    bring(engine, write(tmp_path / "cases.csv", table(*came)))
    before = dump(engine)
    frame = pd.DataFrame(came).replace({"": None})
    frame["is_edge_case"] = frame["is_edge_case"].map({"true": True, "false": False})
    frame["uncertainty"] = frame["uncertainty"].astype(float)
    frame["source_id"] = frame["source_id"].astype(int)
    made = {
        "parquet": frame.to_parquet(),
        "parquet.gz": gzip.compress(frame.to_parquet()),
        "jsonl": frame.to_json(orient="records", lines=True).encode(),
        "csv.gz": gzip.compress(table(*came).replace(b"\n", b"\r\n")),
    }[packing]
    (tmp_path / "again").write_bytes(made)
    done = []
    report = bring(engine, tmp_path / "again", progress=done.append)
    assert (report.format, report.rows, report.cases_known) == ("acuity-cases", 2, 2)
    assert report.adds_nothing or report.already_imported
    assert dump(engine) == before
    assert done[-1] == len(gzip.decompress(made) if packing.endswith("gz") else made)


def test_a_damaged_or_foreign_parquet_file_is_refused_in_words(engine, tmp_path):
    whole = pd.DataFrame([case()]).to_parquet()
    assert refused(engine, tmp_path / "a", whole[:-20])[0].startswith("a: not readable as Parquet: ")
    foreign = pd.DataFrame({"x": [1]}).to_parquet()
    assert refused(engine, tmp_path / "a", foreign)[0].startswith(
        "a: expected the columns of one of acuity-cases, acuity-votes, acuity-predictions, acuity-matrices, "
        "grade-table, responses, got Parquet with x"
    )
    nested = pd.DataFrame([case() | {"notes": ["a", "b"]}]).to_parquet()
    assert refused(engine, tmp_path / "a", nested) == ["a: notes: expected text or a number, got list<element: string>"]
    empty = pd.DataFrame([case()]).head(0).to_parquet()
    assert refused(engine, tmp_path / "a", empty) == ["a: expected at least one row, got none"]


@pytest.mark.parametrize("batch", [1, 500])
def test_a_case_that_a_file_names_twice_is_one_case_with_all_its_votes(engine, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(Cases, "batch", batch)
    bare = case(1, normalized_label="", mapping_method="", original_label="")
    report = bring(engine, write(tmp_path / "cases.csv", table(bare, case(2), case(1, "A", "A", "B"), bare)))
    assert (report.cases_new, report.cases_known, report.votes_new) == (2, 2, 3)
    assert [vote[3] for vote in votes(engine)] == ["A", "A", "B"]
    assert sum(way["n"] for way in report.flow) == 2
    assert {(way["outcome"], way["n"]) for way in report.flow} == {("direct", 1), ("consensus", 1)}


def test_texts_that_differ_far_in_are_shown_where_they_do(engine, tmp_path):
    long = "I have had a cough for so many days now. " * 20
    bring(engine, write(tmp_path / "first.csv", table(case(normalized_prompt_text=long + "No fever."))))
    (fault,) = refused(engine, tmp_path / "cases.csv", table(case(normalized_prompt_text=long + "High fever.")))
    assert (
        "cases.csv line 2: normalized_prompt_text: expected '…days now. No fever.' for the case 'clinic_1' as imported before, got '…days now. High fever.'"
        in fault
    )
    assert (
        "cases.csv line 2: normalized_prompt_text: expected '…days now. No fever.' for the case 'clinic_1' as imported before, got '…days now. High fever.'"
        in fault
    )


def test_of_a_parquet_file_only_known_columns_are_read(engine, tmp_path):
    odd = pa.array([10_000_000], type=pa.date32())  # days: no year that Python's calendar has
    columns = {name: pa.array([value]) for name, value in case().items()}
    pq.write_table(pa.table(columns | {"seen": odd}), tmp_path / "cases.parquet")
    assert bring(engine, tmp_path / "cases.parquet").cases_new == 1
    pq.write_table(pa.table(columns | {"source_id": pa.array(["2"]), "notes": odd}), tmp_path / "odd.parquet")
    with pytest.raises(ImportFailed, match=r"odd.parquet: not readable as Parquet"):
        bring(engine, tmp_path / "odd.parquet")
    pq.write_table(pa.table(columns | {"source_id": pa.array([b"2"])}), tmp_path / "bytes.parquet")
    with pytest.raises(ImportFailed, match=r"row 1: source_id: expected text or a number, got .*"):
        bring(engine, tmp_path / "bytes.parquet")

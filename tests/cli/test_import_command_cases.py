"""`overread import` of files of triage: what became of the cases, in words and as JSON."""

import json

from tests.acuity_files import case, prediction, table


def test_an_import_of_cases_prints_what_was_made_of_each_label(overread, tmp_path):
    path = tmp_path / "cases.csv"
    path.write_bytes(table(case(), case(2, "A", "D"), case(3, "A", "A", normalized_label="B")))
    said = overread.good("import", path, "--db", overread.db)
    assert "cases.csv: acuity-cases, 3 rows" in said
    assert "3 cases of 1 source. 3 are used: 2 with one level (1 by their label, 1 by a panel), 1 ambiguous." in said
    assert "line 4: clinic_3: the file says B; its votes A, A say A by the rule, and count" in said
    lines = [line.split() for line in said.splitlines()]
    headers = "Source Label of the source Stands for Cases By its label By a panel Ambiguous Left out"
    assert headers.split() in lines
    assert ["clinic", "A", "A", "1", "1", "0", "0", "0"] in lines
    assert ["clinic", "none", "–", "2", "0", "1", "1", "0"] in lines


def test_the_json_of_an_import_has_the_flow_and_what_confidences_mean(overread, tmp_path):
    cases, predictions = tmp_path / "cases.csv", tmp_path / "p.csv"
    cases.write_bytes(table(case(), case(2, "Remove", "Remove")))
    predictions.write_bytes(table(prediction(confidence=0.9)))
    first, second = json.loads(overread.good("import", cases, predictions, "--json", "--db", overread.db))
    assert [row["outcome"] for row in first["flow"]] == ["excluded", "direct"]
    assert sum(row["n"] for row in first["flow"]) == first["cases_new"] == 2
    assert (second["levels_new"], second["confident_judges"], second["meanings_set"]) == (1, ["parser"], 1)
    said = overread.bad("import", predictions, "--confidence-means", "met", "--db", overread.db)
    assert (
        "p.csv: Confidence refers to: expected right, as a level of care is no criterion that can be met, got met"
        in said
    )
    said = overread("import", predictions, "--confidence-means", "sure", "--db", overread.db)
    assert said.returncode == 2
    assert "right" in said.stderr

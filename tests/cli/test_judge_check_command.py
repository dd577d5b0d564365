"""The command `judge-check`: bounds, what is missing, bad input with its place, and its exit codes."""

import csv
import io

import pytest

from evalcore.export import tables as export_tables
from evalcore.judges.gold_check import DEFAULT_MIN_F1
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world
from tests.drift_steps import IMANI, TOVE, judged, ran, read, told


def gold(small, folder, *, change=None, name="gold.csv"):
    """The labels as export writes them, perhaps changed."""
    content = export_tables.to_csv(export_tables.table(small.engine, "labels"))
    if change is not None:
        rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        rows = change(rows)
        columns = list(dict.fromkeys(column for row in rows for column in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)
        content = text.getvalue().encode()
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.fixture
def agreed(three_conversations):
    """Two readers agree on every item: + - + + - -; the judge says + - + - + -: right on 4 of 6 of each model's."""
    for name in (IMANI, TOVE):
        read(three_conversations, name, "+-++--")
    return three_conversations


def check(small, path, *arguments, status=0, judge=world.JUDGE):
    return told(small, "judge-check", "--gold", path, "--judge", judge, *arguments, status=status)


def test_a_judge_that_reaches_its_bounds_passes(agreed, tmp_path):
    found = check(agreed, gold(agreed, tmp_path), "--min-accuracy", 0.66, "--min-sensitivity", 0.66)
    # of 12 items TP 4, FN 2, TN 4, FP 2: everything is 2/3
    assert found["passed"] is True
    assert found["failures"] == []
    assert (found["n_rows"], found["n_used"], found["n_missing"], found["n_other_source"]) == (12, 12, 0, 0)
    assert {row["measure"]: row["value"] for row in found["measures"]} == pytest.approx(
        {"f1": 2 / 3, "accuracy": 2 / 3, "sensitivity": 2 / 3, "specificity": 2 / 3}
    )
    assert found["bounds"] == {"accuracy": 0.66, "sensitivity": 0.66}
    assert found["measures"][1]["n_examples"] == 3


def test_a_judge_below_a_bound_exits_with_1(agreed, tmp_path):
    path = gold(agreed, tmp_path)
    found = check(agreed, path, "--min-f1", 0.7, status=1)
    assert found["failures"] == ["balanced F1: expected at least 0.7, got 0.667"]
    assert found["passed"] is False
    by_low = check(agreed, path, "--min-accuracy", 0.6, "--by-bound", "low", status=1)
    assert by_low["failures"][0].startswith("lower end of accuracy: expected at least 0.6, got 0.")
    shown = ran(agreed, "judge-check", "--gold", path, "--judge", world.JUDGE, "--min-f1", 0.7)
    assert shown.exit_code == 1
    assert "balanced F1: expected at least 0.7, got 0.667" in shown.stdout
    assert shown.stderr == ""


def test_without_a_bound_a_default_f1_is_wanted(agreed, tmp_path):
    found = check(agreed, gold(agreed, tmp_path))
    assert found["bounds"] == {"f1": DEFAULT_MIN_F1}
    assert DEFAULT_MIN_F1 == 0.6


def test_only_the_wanted_sources_count(three_conversations, tmp_path):
    read(three_conversations, IMANI, "+-++--")  # single reads
    read(three_conversations, TOVE, "+-....")  # agreed on the first example
    path = gold(three_conversations, tmp_path)
    found = check(three_conversations, path, "--min-accuracy", 1)
    assert (found["n_used"], found["n_other_source"]) == (4, 8)
    assert check(three_conversations, path, "--source", "single", "--min-accuracy", 0.5)["n_used"] == 8
    assert "reference_source: expected at least one line with adjudicated, got none" in refused(
        three_conversations, path, "--source", "adjudicated"
    )
    assert "--source: expected some of adjudicated, agreed, single, got judge" in refused(
        three_conversations, path, "--source", "judge"
    )


def test_what_physicians_cannot_assess_is_no_gold_label(three_conversations, tmp_path):
    for name in (IMANI, TOVE):
        read(three_conversations, name, "?-++--")
    found = check(three_conversations, gold(three_conversations, tmp_path), "--min-accuracy", 0.1)
    assert (found["n_used"], found["n_cannot_assess"]) == (10, 2)


def test_items_without_the_judges_label_fail_the_check_unless_allowed(agreed, tmp_path):
    judged(agreed, "Wren", "+-++..")  # the third example is not labelled
    path = gold(agreed, tmp_path)
    found = check(agreed, path, judge="Wren", status=1)
    assert (found["n_used"], found["n_missing"], found["n_not_labelled"], found["n_not_in_study"]) == (8, 4, 4, 0)
    assert found["failures"] == [
        "items without the judge's label: expected at most 0, got 4 (0 are not in this study, 4 are not labelled by Wren)"
    ]
    assert check(agreed, path, "--max-missing", 4, judge="Wren")["passed"] is True
    assert check(agreed, path, "--max-missing", 3, judge="Wren", status=1)["passed"] is False

    def elsewhere(rows):
        return [row | {"example_id": "unheard of"} if row["example_id"] == "prompt-0" else row for row in rows]

    found = check(agreed, gold(agreed, tmp_path, change=elsewhere, name="other.csv"), status=1)
    assert (found["n_not_in_study"], found["n_not_labelled"]) == (4, 0)


def test_a_label_that_the_judge_could_not_give_is_missing(agreed, tmp_path):
    judged(agreed, "Wren", "?-++--")
    found = check(agreed, gold(agreed, tmp_path), judge="Wren", status=1)
    assert found["n_not_labelled"] == 2


def test_the_same_labels_check_a_study_made_elsewhere(agreed, tmp_path):
    path = gold(agreed, tmp_path)
    other = world.made(
        str(tmp_path / "other.db"),
        points=((7, -4), (5, 3), (6, 2)),
        judged="+-++--",
        models=("claude-sonnet", "gpt-4.1"),
    )
    found = told(other, "judge-check", "--gold", path, "--judge", world.JUDGE, "--min-accuracy", 1)
    assert {row["measure"]: row["value"] for row in found["measures"]}["accuracy"] == 1
    other.engine.dispose()


def refused(small, path, *arguments, judge=world.JUDGE):
    """What judge-check says of bad input; nothing but that."""
    done = ran(small, "judge-check", "--gold", path, "--judge", judge, "--json", *arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    return " ".join(done.stderr.split())


def test_bad_input_exits_with_2_and_its_place(agreed, tmp_path):
    path = gold(agreed, tmp_path)
    assert "--judge: expected one of Magpie, got 'Wren'" in refused(agreed, path, judge="Wren")
    assert "--by-bound: expected one of point, low, got 'high'" in refused(agreed, path, "--by-bound", "high")
    assert "cannot be read" in refused(agreed, tmp_path / "none.csv")
    done = ran(agreed, "judge-check", "--gold", path, "--judge", world.JUDGE, "--min-f1", "1.5")
    assert (done.exit_code, done.stdout) == (2, "")

    def bad(change, **more):
        return refused(agreed, gold(agreed, tmp_path, change=change, name="bad.csv"), **more)

    def second(**cells):
        return lambda rows: [rows[0], rows[1] | cells, *rows[2:]]

    assert "bad.csv line 3: reference_label: expected met, not_met, cannot_assess, got 'maybe'" in bad(
        second(reference_label="maybe")
    )
    assert "bad.csv line 3: reference_label: expected met, not_met, cannot_assess, got ''" in bad(
        second(reference_label="")
    )
    assert "bad.csv line 3: criterion_position" in bad(second(criterion_position="first"))
    assert "bad.csv line 3: model" in bad(second(model=""))
    assert "bad.csv line 3: criterion: expected " in bad(second(criterion="Another text."))
    assert "bad.csv line 14: expected each item once, got that of line 2 again" in bad(lambda rows: [*rows, rows[0]])
    assert "got no column reference_source" in bad(
        lambda rows: [{name: cell for name, cell in row.items() if name != "reference_source"} for row in rows]
    )
    path.write_bytes(b"\xff\xfe")
    assert "gold.csv: byte 1: expected UTF-8" in refused(agreed, path)


def test_lines_are_counted_where_cells_hold_line_breaks(agreed, tmp_path):
    def change(rows):
        return [rows[0] | {"note": "two\r\nlines"}, rows[1] | {"reference_label": "maybe"}, *rows[2:]]

    assert "bad.csv line 4: reference_label" in refused(agreed, gold(agreed, tmp_path, change=change, name="bad.csv"))


def test_repeats_are_told_apart_by_sample_index_or_by_number(agreed, tmp_path):
    from evalcore.study.tables import Response

    with writing(agreed.engine) as session:
        repeat = Response(example_id=1, model_id=1, dataset="invented", sample_index=1, text="Again.", n_criteria=2)
        session.add(repeat)
    path = gold(agreed, tmp_path)
    assert check(agreed, path)["n_used"] == 12  # by response_id

    def unnumbered(rows):
        return [{name: cell for name, cell in row.items() if name != "response_id"} for row in rows]

    assert (
        "expected one response of gpt-4.1 (evaluation and sample_index, or response_id of this study, tell which), got 2"
        in refused(agreed, gold(agreed, tmp_path, change=unnumbered, name="bad.csv"))
    )

    def numbered(rows):
        return [row | {"sample_index": "0", "evaluation": "invented"} for row in unnumbered(rows)]

    assert check(agreed, gold(agreed, tmp_path, change=numbered, name="numbered.csv"))["n_used"] == 12


def test_names_that_a_spreadsheet_would_run_are_found_again(tmp_path):
    made = world.made(str(tmp_path / "study.db"), models=("=cmd", "+more"))
    with writing(made.engine) as session:
        readers = [store.ensure_rater(session, RaterKind.REVIEWER, name) for name in (IMANI, TOVE)]
        given = [
            Verdict(
                example_id=example + 1, response_id=made.responses[example * 2 + model], criterion_id=criterion, rater_id=reader,
                stage=Stage.FIRST, label=Label.MET,
            )
            for example, found in enumerate(made.criteria) for criterion in found for model in range(2) for reader in readers
        ]  # fmt: skip
        store.add_verdicts(session, given, actor="set-up", action="verdicts made")
    found = check(made, gold(made, tmp_path), "--min-sensitivity", 0.7)
    # the judge: + - + +; every read met: 3 of 4
    assert (found["n_used"], found["n_missing"]) == (8, 0)
    assert found["measures"][2]["value"] == 0.75
    assert found["measures"][0]["reason"] == "no gold label is not met"
    made.engine.dispose()

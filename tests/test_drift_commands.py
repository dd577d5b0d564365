"""Criteria, drift, families and judge-check as commands: what they print, how they end, what they leave."""

import csv
import io
import json

import pytest
import typer
from typer.testing import CliRunner

from evalcore import drift_commands, export, families, store
from evalcore.db import reading, writing
from evalcore.errors import OverreadError
from evalcore.metrics.gold_check import DEFAULT_MIN_F1
from evalcore.queries import families as stored
from evalcore.schema import Label, RaterKind, Selection, Stage, Verdict
from tests import world

app = typer.Typer()
app.command("criteria")(drift_commands.criteria)
app.command("drift")(drift_commands.drift)
app.command("self-preference")(drift_commands.self_preference)
app.command("families")(drift_commands.families)
app.command("judge-check")(drift_commands.judge_check)

IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def small(tmp_path):
    """Three conversations of two criteria, two models, judge Magpie: met, not met throughout."""
    made = world.made(
        str(tmp_path / "study.db"),
        points=((7, -4), (5, 3), (6, 2)),
        judged="+-+-+-",
        models=("gpt-4.1", "claude-sonnet"),
    )
    yield made
    made.engine.dispose()


def ran(small, *arguments):
    done = CliRunner().invoke(app, [*map(str, arguments), "--db", small.location])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def told(small, *arguments, status=0):
    done = ran(small, *arguments, "--json")
    assert done.exit_code == status, done.stderr
    return json.loads(done.stdout)


def say(small, kind, name, labels, *, stage=Stage.FIRST, models=(0, 1), **more):
    """Somebody's labels on each example's two criteria, the same of each model's response."""
    n_models = 2
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, kind, name)
        given = [
            Verdict(
                example_id=example + 1,
                response_id=small.responses[example * n_models + model],
                criterion_id=small.criteria[example][place],
                rater_id=rater,
                stage=stage,
                label=world.LABELS[labels[2 * example + place]],
                **more,
            )
            for example in range(3)
            for model in models
            for place in range(2)
            if labels[2 * example + place] in world.LABELS
        ]
        store.add_verdicts(session, given, actor="set-up", action="verdicts made")


def read(small, name, labels, **more):
    say(
        small,
        RaterKind.REVIEWER,
        name,
        labels,
        blinded=True,
        selection=Selection.RANDOM,
        inclusion_probability=0.5,
        **more,
    )


def judged(small, name, labels, **more):
    say(small, RaterKind.JUDGE, name, labels, stage=Stage.JUDGE, **more)


def gold(small, folder, *, change=None, name="gold.csv"):
    """The labels as export writes them, perhaps changed."""
    content = export.to_csv(export.table(small.engine, "labels"))
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


# ---------------------------------------------------------------- criteria


def test_criteria_lists_the_groups_that_were_read_and_all_when_asked(small):
    read(small, IMANI, "+-....")
    rows = told(small, "criteria", "--by", "criterion")
    assert [(row["group"], row["n"], row["physicians"], row["judge"]) for row in rows] == [
        (small.criteria[0][0], 2, 1.0, world.JUDGE), (small.criteria[0][1], 2, 0.0, world.JUDGE),
    ]  # fmt: skip
    assert {"judge_met", "judge_met_low", "inverted", "n_alarms", "reasons", "disagreement_high"} <= set(rows[0])
    assert rows[0]["disagreement"] is None
    assert len(told(small, "criteria", "--by", "criterion", "--all")) == 6
    shown = ran(small, "criteria", "--by", "axis").stdout
    assert "Magpie: No alarm on the one axis that physicians have read." in shown


def test_criteria_of_an_unknown_judge_or_grouping_name_what_there_is(small):
    with pytest.raises(OverreadError, match=r"--judge: Wren came, expected one of Magpie"):
        ran(small, "criteria", "--judge", "Wren")
    with pytest.raises(OverreadError, match=r"--by: 'kind' came, expected one of category, axis, theme, criterion"):
        ran(small, "criteria", "--by", "kind")


# ---------------------------------------------------------------- drift


def test_drift_tells_flips_and_scores(small):
    judged(small, "Magpie 2", "--+-+-")
    found = told(small, "drift", "--from", "Magpie", "--to", "Magpie 2")
    first = found["flips"][0]
    assert (first["grouping"], first["n"], first["n_flips"], first["n_to_not_met"]) == ("overall", 12, 2, 2)
    assert first["test"] == "clustered"  # both models' responses to one example
    assert [(row["model"], row["difference"]) for row in found["scores"]] == [
        ("claude-sonnet", pytest.approx(-1 / 3)), ("gpt-4.1", pytest.approx(-1 / 3)), ("all models", pytest.approx(-1 / 3)),
    ]  # fmt: skip
    shown = ran(small, "drift", "--from", "Magpie", "--to", "Magpie 2").stdout
    assert "17 % (2/12)" in shown
    assert "-0.333" in shown


def test_drift_between_judges_that_agree_says_so(small):
    judged(small, "Magpie 2", "+-+-+-")
    found = told(small, "drift", "--from", "Magpie", "--to", "Magpie 2", "--by", "overall")
    assert found["flips"][0]["p"] is None
    assert found["flips"][0]["reason"] == "No label differs, so there is nothing to test."
    with pytest.raises(OverreadError, match=r"--to: Wren came, expected one of Magpie"):
        ran(small, "drift", "--from", "Magpie", "--to", "Wren")


# ---------------------------------------------------------------- families


def test_families_lists_names_with_what_fits_them(small):
    found = told(small, "families")
    assert found["is_own"] is False
    assert {row["name"]: (row["kind"], row["family"]) for row in found["names"]} == {
        "claude-sonnet": ("model", "Anthropic"), "gpt-4.1": ("model", "OpenAI"), "Magpie": ("judge", None),
    }  # fmt: skip
    assert "– (no pattern fits)" in ran(small, "families").stdout


def test_a_table_of_the_study_takes_the_place_of_the_default_and_leaves_one_event(small, tmp_path):
    path = tmp_path / "families.csv"
    path.write_text("\ufeffpattern,family\nmag*,Birds\n GPT*  , Birds\n", encoding="utf-8")
    found = told(small, "families", path)
    assert found["is_own"] is True
    assert found["patterns"] == [{"pattern": "mag*", "family": "Birds"}, {"pattern": "GPT*", "family": "Birds"}]
    assert {row["name"]: row["family"] for row in found["names"]} == {
        "claude-sonnet": None, "gpt-4.1": "Birds", "Magpie": "Birds"
    }  # fmt: skip
    told(small, "families", path)  # nothing changes, so nothing is written
    assert [action for _, action in small.events()].count("families set") == 1
    assert told(small, "families", "--reset")["is_own"] is False
    assert [action for _, action in small.events()].count("families set") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,maker\na,b\n", "f.csv line 1: name, maker came, expected the columns pattern, family"),
        ("", "f.csv line 1: nothing came, expected the columns pattern, family"),
        ("pattern,family\n", "f.csv: 0 rows came, expected 1 to 500"),
        ("pattern,family\ngpt*,\n", "f.csv line 2: family: '' came, expected 1 to 200 printable characters"),
        ("pattern,family\ngpt*,A\nGPT*,B\n", "f.csv line 3: pattern: 'GPT*' came, which f.csv line 2 has already"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_place(text, said):
    with pytest.raises(OverreadError) as refused:
        families.parse(text, "f.csv")
    assert str(refused.value) == said


def test_the_table_that_comes_with_overread_knows_the_makers():
    table = families.default()
    known = {
        "gpt-4.1": "OpenAI", "openai/o3-mini": "OpenAI", "o1": "OpenAI", "o4-mini-2025-04-16": "OpenAI", "chatgpt-4o-latest": "OpenAI",
        "Claude 3.7 Sonnet": "Anthropic", "us.anthropic.claude-opus-4": "Anthropic", "gemini-2.5-pro": "Google", "medgemma-27b": "Google",
        "Meta-Llama-3.1-70B": "Meta", "deepseek-r1-distill-llama-70b": "DeepSeek", "grok-3": "xAI", "Qwen3-235B": "Alibaba",
        "mixtral-8x7b": "Mistral AI",
    }  # fmt: skip
    assert dict(families.families_of([*known, "Magpie", "foo1", "solo1"], table)) == known
    assert families.parse(families.to_csv(table), "again") == table


def test_the_families_of_a_study_are_kept_on_both_databases(database_url):
    made = world.made(database_url)
    with writing(made.engine) as session:
        assert store.set_families(session, [("b*", "B"), ("a*", "A")], actor="Ana Ruiz")
    with reading(made.engine) as session:
        assert stored.table(session) == [("b*", "B"), ("a*", "A")]
    with writing(made.engine) as session:
        assert store.set_families(session, [], actor="Ana Ruiz")
    with reading(made.engine) as session:
        assert stored.own_table(session) == []
        assert stored.table(session) == families.default()
    made.engine.dispose()


def test_self_preference_says_why_it_cannot_be_said(small):
    read(small, IMANI, "+-+-+-")
    rows = told(small, "self-preference")
    assert (rows[0]["judge"], rows[0]["difference"]) == ("Magpie", None)
    assert "No pattern of the table of families fits the judge Magpie." in rows[0]["reason"]
    assert "cannot be said: no pattern" in ran(small, "self-preference").stdout


# ---------------------------------------------------------------- judge-check


@pytest.fixture
def agreed(small):
    """Two readers agree on every item: + - + + - -; the judge says + - + - + -: right on 4 of 6 of each model's."""
    for name in (IMANI, TOVE):
        read(small, name, "+-++--")
    return small


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
    assert found["failures"] == ["balanced F1: 0.667 came, at least 0.7 was expected"]
    assert found["passed"] is False
    by_low = check(agreed, path, "--min-accuracy", 0.6, "--by-bound", "low", status=1)
    assert by_low["failures"][0].startswith("lower end of accuracy: 0.")
    shown = ran(agreed, "judge-check", "--gold", path, "--judge", world.JUDGE, "--min-f1", 0.7)
    assert shown.exit_code == 1
    assert "balanced F1: 0.667 came, at least 0.7 was expected" in shown.stdout
    assert shown.stderr == ""


def test_without_a_bound_a_default_f1_is_wanted(agreed, tmp_path):
    found = check(agreed, gold(agreed, tmp_path))
    assert found["bounds"] == {"f1": DEFAULT_MIN_F1}
    assert DEFAULT_MIN_F1 == 0.6


def test_only_the_wanted_sources_count(small, tmp_path):
    read(small, IMANI, "+-++--")  # single reads
    read(small, TOVE, "+-....")  # agreed on the first example
    path = gold(small, tmp_path)
    found = check(small, path, "--min-accuracy", 1)
    assert (found["n_used"], found["n_other_source"]) == (4, 8)
    assert check(small, path, "--source", "single", "--min-accuracy", 0.5)["n_used"] == 8
    assert "reference_source: no line with adjudicated came" in refused(small, path, "--source", "adjudicated")
    assert "--source: judge came, expected some of adjudicated, agreed, single" in refused(
        small, path, "--source", "judge"
    )


def test_what_physicians_cannot_assess_is_no_gold_label(small, tmp_path):
    for name in (IMANI, TOVE):
        read(small, name, "?-++--")
    found = check(small, gold(small, tmp_path), "--min-accuracy", 0.1)
    assert (found["n_used"], found["n_cannot_assess"]) == (10, 2)


def test_items_without_the_judges_label_fail_the_check_unless_allowed(agreed, tmp_path):
    judged(agreed, "Wren", "+-++..")  # the third example is not labelled
    path = gold(agreed, tmp_path)
    found = check(agreed, path, judge="Wren", status=1)
    assert (found["n_used"], found["n_missing"], found["n_not_labelled"], found["n_not_in_study"]) == (8, 4, 4, 0)
    assert found["failures"] == [
        "items without the judge's label: 4 came, at most 0 were expected (0 are not in this study, 4 are not labelled by Wren)"
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
    assert "--judge: 'Wren' came, expected one of Magpie" in refused(agreed, path, judge="Wren")
    assert "--by-bound: 'high' came" in refused(agreed, path, "--by-bound", "high")
    assert "cannot be read" in refused(agreed, tmp_path / "none.csv")
    done = ran(agreed, "judge-check", "--gold", path, "--judge", world.JUDGE, "--min-f1", "1.5")
    assert (done.exit_code, done.stdout) == (2, "")

    def bad(change, **more):
        return refused(agreed, gold(agreed, tmp_path, change=change, name="bad.csv"), **more)

    def second(**cells):
        return lambda rows: [rows[0], rows[1] | cells, *rows[2:]]

    assert "bad.csv line 3: reference_label: 'maybe' came, expected met, not_met, cannot_assess" in bad(
        second(reference_label="maybe")
    )
    assert "bad.csv line 3: reference_label: '' came" in bad(second(reference_label=""))
    assert "bad.csv line 3: criterion_position" in bad(second(criterion_position="first"))
    assert "bad.csv line 3: model" in bad(second(model=""))
    assert "bad.csv line 3: criterion: 'Another text.' came, where the study has" in bad(
        second(criterion="Another text.")
    )
    assert "bad.csv line 14: the item of line 2 came again" in bad(lambda rows: [*rows, rows[0]])
    assert "reference_source: no such column came" in bad(
        lambda rows: [{name: cell for name, cell in row.items() if name != "reference_source"} for row in rows]
    )
    path.write_bytes(b"\xff\xfe")
    assert "gold.csv: byte 1: expected UTF-8" in refused(agreed, path)


def test_lines_are_counted_where_cells_hold_line_breaks(agreed, tmp_path):
    def change(rows):
        return [rows[0] | {"note": "two\r\nlines"}, rows[1] | {"reference_label": "maybe"}, *rows[2:]]

    assert "bad.csv line 4: reference_label" in refused(agreed, gold(agreed, tmp_path, change=change, name="bad.csv"))


def test_repeats_are_told_apart_by_sample_index_or_by_number(agreed, tmp_path):
    from evalcore.tables import Response

    with writing(agreed.engine) as session:
        repeat = Response(example_id=1, model_id=1, dataset="invented", sample_index=1, text="Again.", n_criteria=2)
        session.add(repeat)
    path = gold(agreed, tmp_path)
    assert check(agreed, path)["n_used"] == 12  # by response_id

    def unnumbered(rows):
        return [{name: cell for name, cell in row.items() if name != "response_id"} for row in rows]

    assert "2 responses of gpt-4.1 fit" in refused(agreed, gold(agreed, tmp_path, change=unnumbered, name="bad.csv"))

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

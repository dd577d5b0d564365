"""`overread compare`: the same numbers as the page, for scripts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import compare as cli_compare
from evalcore.errors import OverreadError
from evalcore.study import store
from evalcore.study.analysis import Analysis
from evalcore.study.db import writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world

ALDER, BRIAR = "Alder-2", "Briar-1"
Run = Callable[..., Any]

app = typer.Typer()
app.command()(cli_compare.compare)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[world.World]:
    """Two models on two conversations; Magpie says the same of both: 7 of 7 points, and 5 of 8."""
    made = world.made(str(tmp_path / "study.db"), judged="+-+-", models=(ALDER, BRIAR))
    yield made
    made.engine.dispose()


@pytest.fixture
def run(small: world.World) -> Run:
    """Runs the command; what it says, as JSON where --json is among the arguments."""

    def invoked(*arguments: str) -> Any:
        done = CliRunner().invoke(app, [*arguments, "--db", small.location], catch_exceptions=False)
        assert done.exit_code == 0
        return json.loads(done.output) if "--json" in arguments else done.output

    return invoked


def wren(small: world.World) -> None:
    """A second judge: Briar's second answer meets nothing, all others meet the first criterion and no other."""
    labels = {(example, model): "+-" for example in (0, 1) for model in (0, 1)} | {(1, 1): "--"}
    with writing(small.engine) as session:
        judge = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        verdicts = [
            Verdict(
                example_id=example + 1,
                response_id=small.responses[2 * example + model],
                criterion_id=small.criteria[example][place],
                rater_id=judge,
                stage=Stage.JUDGE,
                label=Label.MET if label == "+" else Label.NOT_MET,
            )
            for (example, model), said in labels.items()
            for place, label in enumerate(said)
        ]
        store.add_verdicts(session, verdicts, actor="set-up", action="verdicts made")


def by_model(rows: list[dict[str, Any]], column: str) -> dict[str, Any]:
    return {row["model"]: row[column] for row in rows}


def test_scores_are_those_of_the_judge_where_nothing_is_read_and_no_number_is_said_for_physicians(run: Run):
    said = run("--json")
    assert (said["dataset"], said["judges"], said["seed"]) == ("invented", ["Magpie"], 20)
    expected = (7 / 7 + 5 / 8) / 2
    assert by_model(said["scores"], "judge_only") == pytest.approx({ALDER: expected, BRIAR: expected})
    for row in said["scores"]:
        assert (row["corrected"], row["physicians_only"], row["n_read"], row["enough"]) == (None, None, 0, False)
        assert row["n_needed"] > 0
    assert said["differences"] == []
    assert "judge's opinion" in said["finding"]


def test_judges_differences_carry_the_sentence_that_they_are_its_opinion(small: world.World, run: Run):
    wren(small)
    said = run("--json", "--judges", "Wren")
    assert "the judge Wren alone" in said["judge_only"]["warning"]
    (pair,) = said["judge_only"]["differences"]
    # Wren: 7 of 7 for both on the first conversation; on the second 5 of 8 for Alder and nothing for Briar.
    assert (pair["model_1"], pair["model_2"], pair["n_examples"]) == (ALDER, BRIAR, 2)
    assert pair["difference"] == pytest.approx((0 + 5 / 8) / 2)
    assert "rank_probabilities" not in said["judge_only"], "a frequency of the judge's opinion is no chance of a place"


def test_two_judges_speak_as_the_mean_of_their_labels(small: world.World, run: Run):
    wren(small)
    scores = by_model(run("--json", "--judges", "Magpie,Wren")["scores"], "judge_only")
    assert scores == pytest.approx({ALDER: (1 + 5 / 8) / 2, BRIAR: (1 + 5 / 16) / 2})


def test_the_same_seed_gives_the_same(small: world.World, run: Run):
    wren(small)
    one, again = (run("--json", "--judges", "Wren", "--seed", "3")["judge_only"] for _ in range(2))
    assert one == again


def test_groups_are_those_that_were_asked_for(run: Run):
    groups = run("--json", "--by", "theme,language")["groups"]
    assert {(row["grouping"], row["group"]) for row in groups} == {("theme", "hedging"), ("language", "en")}


def test_without_json_the_finding_and_the_means_stand_above_the_table(run: Run):
    said = run("--claim", "new_examples")
    assert "invented, judged by Magpie" in said
    assert "on ever more examples of the same kind" in said
    assert ALDER in said
    assert "0.812" in said or "0.813" in said
    assert "nan" not in said.lower()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dataset", "other"], "--dataset: expected one of invented, got 'other'"),
        (["--judges", "Rook"], "--judges: expected some of Magpie, got Rook"),
        (["--claim", "all"], "--claim: expected one of benchmark, new_examples, got 'all'"),
        (["--physicians", "mine"], "--physicians: expected one of these, in_general, got 'mine'"),
        (["--subset", "hard"], r"--subset: expected one of none: there is nothing yet, got 'hard'"),
        (
            ["--by", "colour"],
            r"--by: expected some of overall, theme, axis, category, language, level, cluster, use_case, type, difficulty, specialty, got colour",
        ),
    ],
)
def test_a_wrong_wish_is_one_sentence(run: Run, arguments: list[str], said: str):
    with pytest.raises(OverreadError, match=said.replace("(", r"\(")):
        run(*arguments)


def test_weights_need_themes_of_the_benchmark_and_are_taken_where_they_are(run: Run):
    said = run("--json", "--weighted")
    # Both conversations have the one theme hedging, so weights change nothing.
    assert said["weighted"] is True
    assert by_model(said["scores"], "judge_only") == by_model(run("--json")["scores"], "judge_only")


def test_a_study_without_a_judge_says_what_to_do(tmp_path: Path):
    made = world.made(str(tmp_path / "bare.db"), judged="    ")
    made.engine.dispose()
    with pytest.raises(OverreadError, match="No judge has labelled a response yet"):
        CliRunner().invoke(app, ["--db", made.location], catch_exceptions=False)


@pytest.mark.slow
def test_differences_hold_for_what_the_scores_hold_for(demo_file: Path):
    def found(*options: str) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["--json", *options, "--db", str(demo_file)], catch_exceptions=False)
        said: dict[str, Any] = json.loads(done.output)
        return said

    widest, narrowest = found(), found("--claim", "benchmark", "--physicians", "these")
    assert (widest["claim"], widest["physicians"]) == ("new_examples", "in_general")
    assert "(for new examples like these, physicians in general)" in widest["finding"]
    assert "(for this benchmark, these physicians)" in narrowest["finding"]
    # between physicians in general and these no order is certain in one study: their variances are estimated apart
    beyond = found("--claim", "new_examples", "--physicians", "these")
    for one, other in zip(beyond["differences"], narrowest["differences"], strict=True):
        assert other["difference"] == pytest.approx(one["difference"])
        assert other["high"] - other["low"] < one["high"] - one["low"]
    assert len(widest["differences"]) == 3  # the pairs of three models
    assert widest["claims"] == narrowest["claims"]  # every claim stands beside the one that was chosen
    assert len(widest["claims"]) == 4 * 3


def test_an_option_is_said_to_depart_from_what_is_stated(small: world.World, run: Run):
    wren(small)
    with writing(small.engine) as session:
        store.state_analysis(session, Analysis(judges=("Wren",), primary=(BRIAR, ALDER), margin=0.1), actor="Ana Ruiz")
    stated = run("--json")
    assert stated["judges"] == ["Wren"]
    assert stated["otherwise"] == []
    assert stated["analysis"].startswith("This is the stated analysis (version 1), stated on ")
    assert stated["primary"]["words"] == [
        "Primary comparison, Briar-1 with Alder-2: too little has been read for a difference (for new examples like these, these physicians)."
    ]
    looking = run("--json", "--judges", "Magpie", "--claim", "benchmark")
    assert looking["otherwise"] == ["judge", "claim"]
    assert looking["analysis"] == "This is not the stated analysis (version 1): judge and claim differ."
    assert run("--json", "--claim", "new_examples")["otherwise"] == []  # what it is by default


def test_groups_are_corrected_and_tested_and_the_judges_stand_behind_them_by_name(demo_file: Path):
    def invoked(*options: str) -> str:
        return (
            CliRunner().invoke(app, ["--by", "axis", *options, "--db", str(demo_file)], catch_exceptions=False).output
        )

    said = json.loads(invoked("--json"))
    corrected = [row for row in said["corrected_groups"] if row["enough"]]
    assert corrected
    assert all(row["corrected_low"] < row["corrected"] < row["corrected_high"] for row in corrected)
    assert {row["grouping"] for row in said["corrected_groups"]} == {"axis"}
    about = [row["about"] for row in said["interactions"]]
    assert (about.count("difference"), about.count("judge_error")) == (3, 3)  # pairs and models
    assert len(said["groups"]) == len(said["corrected_groups"])  # the judge's opinion of the same groups
    estimated = [row for row in said["sensitivity"] if row["scenario"] == "as_estimated"]
    assert by_model(estimated, "corrected") == by_model(said["scores"], "corrected")
    printed = " ".join(invoked().split())
    assert said["sensitivity_words"] in printed
    assert 0 < printed.index("By axis, corrected: ") < printed.index("By axis, in the opinion of ")
    assert said["group_words"]["axis"] in printed

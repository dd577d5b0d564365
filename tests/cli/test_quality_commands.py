"""`overread judges`: the tables of the Judges page, as text and as JSON."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
import typer

from evalcore.cli.console import out
from evalcore.cli.judging import judges
from evalcore.errors import OverreadError
from evalcore.judges.quality import COLUMNS as QUALITY, PERCENTILE_COLUMNS
from evalcore.study.db import writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from evalcore.study.store import add_verdicts, ensure_rater
from tests import world
from tests.commands import help_of

app = typer.Typer()
app.command()(judges)


@pytest.fixture
def study(tmp_path: Path) -> str:
    """Two conversations of two criteria; the judge says met, not met, met, met, and a physician met, not met, met, not met."""
    path = str(tmp_path / "overread.db")
    made = world.made(path, judged="+-++")
    with writing(made.engine) as session:
        reader = ensure_rater(session, RaterKind.REVIEWER, "[b]Dr. X[/b]")
        for (example, criterion), label in {
            (0, 0): Label.MET,
            (0, 1): Label.NOT_MET,
            (1, 0): Label.MET,
            (1, 1): Label.NOT_MET,
        }.items():
            item = made.item(example, criterion)
            verdict = Verdict(
                example_id=example + 1, rater_id=reader, stage=Stage.FIRST, label=label, blinded=True, **item
            )
            add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    made.engine.dispose()
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints; its console keeps the stream that it was made with, so it is called and not run."""
    capsys.readouterr()
    app(list(arguments), standalone_mode=False)
    return capsys.readouterr().out


def test_json_holds_the_documented_columns(study, capsys):
    found = json.loads(printed(capsys, "--db", study, "--json"))
    assert set(found) == {"balanced_f1", "percentiles", "error_rates", "jury", "reads", "n_reads", "selection"}
    for name, columns in (("balanced_f1", QUALITY), ("percentiles", PERCENTILE_COLUMNS), ("error_rates", None)):
        told = {key for row in found[name] for key in row}
        assert columns is None or told == set(columns)
        assert all(column in help_of("judges") for column in told), name
    (pooled,) = (row for row in found["balanced_f1"] if row["grouping"] == "overall")
    # both 2, judge alone 1, neither 1: (4/5 + 2/3) / 2
    assert pooled["balanced_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert found["percentiles"][0]["percentile"] is None
    assert found["jury"] is None
    assert (found["reads"], found["n_reads"]) == ("all", 4)
    assert found["selection"].startswith(
        "Shown: all blind first reads, 4 of which no drawing is known; each counts once."
    )
    desirable = next(row for row in found["error_rates"] if row["group"] == "desirable")
    assert desirable["n_met"] + desirable["n_not_met"] == desirable["n_pairs"]


def test_by_and_judge_say_what_is_wanted_and_what_is_not_known_is_refused(study, capsys):
    found = json.loads(printed(capsys, "--db", study, "--json", "--by", "sign", "--judge", "Magpie"))
    assert {row["grouping"] for row in found["error_rates"]} == {"sign"}
    with pytest.raises(OverreadError, match="--by: expected some of overall, sign, axis, theme, language, got weather"):
        judges(by="weather", db=study)
    with pytest.raises(OverreadError, match="--judge: expected one of Magpie, got 'Nobody'"):
        judges(judge=["Nobody"], db=study)


def test_which_reads_enter_is_chosen(study, capsys):
    found = json.loads(printed(capsys, "--db", study, "--json", "--reads", "drawn"))
    assert (found["reads"], found["n_reads"], found["error_rates"]) == ("drawn", 0, [])
    with pytest.raises(OverreadError, match="--reads: expected one of drawn, all, got 'some'"):
        app(["--db", study, "--reads", "some"], standalone_mode=False)


def test_without_json_it_says_the_finding_and_the_tables(study):
    with out.capture() as kept:
        judges(db=study)
    said = kept.get()
    assert "Magpie agrees with physicians at a balanced F1 of 0.73" in said
    assert "100 % (2/2)" in said
    assert "50 % (1/2)" in said
    assert "Shown: all blind first reads, 4 of which no drawing is known" in said
    assert "undefined" not in said


def test_groups_without_an_interval_are_counted_and_not_listed():
    import evalcore.cli.judging as module

    table = pd.DataFrame(
        {
            "grouping": ["overall", *["category"] * 3],
            "balanced_f1": [0.8, 1.0, 0.6, math.nan],
            "low": [math.nan, math.nan, 0.4, math.nan],
        }
    )
    listed, n_bare = module._worth_listing(table)
    assert list(listed.index) == [0, 2]  # what is pooled stands there in any case
    assert n_bare == 1
    assert module._worth_listing(table.drop(index=1))[1] == 0


def test_without_a_read_it_says_what_to_do(tmp_path):
    with out.capture() as kept:
        judges(db=str(tmp_path / "empty.db"))
    assert "assign items, or import physicians' first reads" in kept.get()

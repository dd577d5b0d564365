"""The methods paragraph says what was done, with the numbers of the study, and does not mention what was not."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from evalcore.__main__ import app
from evalcore.export import methods
from evalcore.importing import demo
from evalcore.study import frames
from evalcore.study.analysis import Analysis, StatedAnalysis
from evalcore.study.db import reading
from evalcore.study.schema import RaterKind
from tests import world
from tests.invented import study

READER, OTHER = "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def seeded(sqlite_demo_url: str) -> Iterator[Engine]:
    with study(sqlite_demo_url) as engine:
        yield engine


@pytest.fixture
def small(sqlite_database_url: str) -> Iterator[world.World]:
    made = world.made(sqlite_database_url, points=((7,), (7,), (7,), (7,)), judged="++++")
    yield made
    made.engine.dispose()


def test_the_numbers_are_those_of_the_verdicts(seeded):
    done = methods.facts(seeded)
    with reading(seeded) as session:
        long = frames.verdicts(session, kind=RaterKind.REVIEWER)
    firsts = long.loc[long["stage"].eq("first")]
    labels = firsts.groupby("item_id")["label"]
    conflicts = labels.nunique().gt(1)
    adjudicated = long.loc[long["stage"].eq("adjudicated"), "item_id"]
    assert (done.n_reads, done.n_read_items, done.n_readers) == (
        len(firsts),
        firsts["item_id"].nunique(),
        firsts["rater"].nunique(),
    )
    assert done.n_cannot_assess == firsts["label"].eq("cannot_assess").sum()
    assert done.n_read_twice == labels.size().gt(1).sum()
    assert done.n_conflicting == conflicts.sum()
    assert done.n_adjudicated == conflicts.index[conflicts].isin(adjudicated).sum()
    said = methods.paragraph(done)
    assert f"{len(firsts):,} first reads" in said
    assert f"({done.n_adjudicated}/{done.n_conflicting})" in said
    assert f"seed {demo.ASSIGNED_SEED}" not in said  # nobody has read what was drawn with it
    assert "Of 16 assigned reads of a response, 16 have not been made." in said
    assert "For no first read is a version of a written guideline recorded." in said
    assert f"Overread {version('overread')}" in said
    assert "Gwet's AC1" in said


def test_an_empty_study_has_no_methods(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        assert methods.paragraph(methods.facts(engine)) == "Nothing has been labelled yet."


def test_the_facts_and_clauses_are_json_on_the_command_line(seeded, sqlite_demo_url):
    done = CliRunner().invoke(app, ["methods", "--db", sqlite_demo_url, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["facts"]["by_guideline"] == {"0": told["facts"]["n_reads"]}
    assert " ".join(clause["text"] for clause in told["clauses"]).split() == told["paragraph"].split()


def test_runs_are_told_with_model_temperature_prompt_and_dates(seeded):
    asked = {
        "kind": "respond", "name": "Alder-2", "dataset": "overread-demo", "api_model": "alder-2-2026", "temperature": 0.7, "max_tokens": 900,
        "prompt_version": "conversation@1a2b3c4d", "n_samples": 1, "n_repeats": 1, "n_answered": 30, "begun": datetime(2026, 9, 1, tzinfo=UTC),
        "ended": datetime(2026, 9, 2, tzinfo=UTC),
    }  # fmt: skip
    judging = asked | {
        "kind": "judge",
        "name": "Magpie",
        "temperature": None,
        "max_tokens": None,
        "prompt_version": "judge@5e6f7a8b",
    }
    told = {"runs": (asked, judging), "judges": {"Magpie": ("judge@5e6f7a8b",), "Wren": ("",)}}
    done = methods.Facts(**(vars(methods.facts(seeded)) | told))
    said = methods.paragraph(done)
    assert (
        "Alder-2 was asked for 30 answers as alder-2-2026 from 2026-09-01 to 2026-09-02 (temperature 0.7, at most 900 tokens, prompt conversation@1a2b3c4d), "
        "1 answer to each conversation; the conversation alone was sent, without a system prompt of ours." in said
    )
    assert (
        "Magpie was asked as alder-2-2026 from 2026-09-01 to 2026-09-02 (no temperature set, prompt judge@5e6f7a8b)"
        in said
    )
    assert "60 responses of Briar-1 and Clover-mini came with a file" in said
    assert "The labels of Wren came with a file" in said


def test_a_change_of_the_stated_analysis_after_reads_is_a_deviation(seeded):
    first = StatedAnalysis(
        1, Analysis(primary=("Alder-2", "Briar-1"), margin=0.05), "Mina", datetime(2026, 9, 1, tzinfo=UTC), 0
    )
    later = StatedAnalysis(
        2, Analysis(primary=("Alder-2", "Briar-1"), margin=0.1), "Mina", datetime(2026, 9, 20, tzinfo=UTC), 1422
    )
    facts = vars(methods.facts(seeded))
    said = methods.paragraph(methods.Facts(**(facts | {"stated": (later, first)})))
    assert "The primary comparison is Alder-2 with Briar-1, with a margin of 0.1 of the corrected score." in said
    assert "The analysis was first stated on 2026-09-01, before the first read." in said
    assert "On 2026-09-20, when 1,422 first reads existed, it was changed: margin." in said
    said = methods.paragraph(methods.Facts(**(facts | {"stated": (first,)})))
    assert "it was changed" not in said


def test_what_did_not_happen_is_not_mentioned(small):
    said = methods.paragraph(methods.facts(small.engine))
    assert "No physician has read any of them blind." in said
    assert not [
        word for word in ("adjudicat", "guideline", "drawn at random", "AC1", "was shown", "nan") if word in said
    ]


def test_a_drawing_is_named_with_its_seed_and_what_it_was_drawn_from(small):
    world.assigned(small, n_items=3, n_readers=1, readers=(READER,), seed=17)
    world.submitted(small, READER, "+")
    said = methods.paragraph(methods.facts(small.engine))
    assert (
        "3 responses of 4 were drawn at random (seed 17, inclusion probability .75); 1 of them was read, in random order."
        in said
    )
    assert "Every first read was blind: until it was locked, its reader did not see the judge's verdict." in said


def test_what_waits_for_the_viewers_own_read_is_not_counted(small):
    world.assigned(small, n_readers=2, readers=(READER, OTHER))
    world.submitted(small, OTHER, "+")
    everything, hidden = methods.facts(small.engine), methods.facts(small.engine, blind=frozenset({1, 2, 3, 4}))
    assert (everything.n_reads, hidden.n_reads, hidden.n_items) == (1, 0, 0)


def test_reads_of_unknown_blinding_are_not_called_blind(seeded):
    done = methods.facts(seeded)
    unknown = methods.Facts(**(vars(done) | {"n_blind": 0}))
    some = methods.Facts(**(vars(done) | {"n_blind": 10}))
    assert "do not say whether these reads were blind" in methods.paragraph(unknown)
    assert "10 of the first reads were blind" in methods.paragraph(some)

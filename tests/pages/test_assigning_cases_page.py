"""Filters of cases of triage, where a lead assigns: on the Study page and by the command line."""

import json
import re

import numpy as np
import pytest
from sqlalchemy import text

from evalcore.reading.assigning import COMPANIONS
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Ask, Role
from tests import world
from tests.commands import Run
from tests.page_steps import LEAD, check
from tests.triage_cases import CONVERSATION, drawn, stored


def test_the_form_has_the_filters_of_cases_and_counts_by_them(demo_study, open_page):
    app = open_page(demo_study, "study", LEAD)
    for key, value in {"study_tab": "Reading", "assign_ask": Ask.RESPONSE_ACUITY}.items():
        app.session_state[key] = value
    app.run()
    for key, value in {"source": "nightline", "format": CONVERSATION, "level": "D"}.items():
        app.session_state[f"assign_{key}"] = value
    app.run()
    app.button(key="assign_check").click().run()
    shown = check(app)
    engine = open_study(demo_study)
    with engine.connect() as connection:
        fitting = connection.execute(
            text(
                "SELECT count(DISTINCT r.id) FROM response r JOIN acuity_case c ON c.example_id = r.example_id"
                " JOIN verdict v ON v.response_id = r.id AND v.stage = 'judge' AND v.label = 'D' AND v.criterion_id IS NULL"
                " WHERE c.source = 'nightline' AND r.dataset = 'acuity_conversation' AND r.text <> ''"
                " AND r.id NOT IN (SELECT t.response_id FROM task t JOIN assignment a ON a.id = t.assignment_id"
                " WHERE a.ask = 'response_acuity' AND t.response_id IS NOT NULL)"
            )
        ).scalar_one()
    engine.dispose()
    assert fitting > 0
    assert f"{fitting:,} responses would be assigned" in shown
    for words in ("cases of nightline", "conversation", "a judge reads D"):
        assert words in shown


def test_a_study_without_cases_offers_no_filters_of_cases(location, open_page):
    made = world.made(location)
    app = open_page(location, "browse", "Ana Ruiz")
    assert "Source of the case" not in check(app)
    assert not [box for box in app.selectbox if box.key in ("source", "format", "level")]
    made.engine.dispose()


@pytest.fixture
def run(tmp_path):
    runner = Run(tmp_path)
    engine = open_study(str(runner.db))
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=10, share_read=0, n_samples=2)
    with writing(engine) as session:
        stored(session, triage_data)
        for name in ("Dr. Noor", "Dr. Brandt"):
            store.add_person(session, name, roles=[Role.REVIEWER], actor="set-up")
    engine.dispose()
    return triage_data, lambda *arguments: runner(*arguments, "--db", str(runner.db))


def test_the_command_draws_by_format_source_and_level(run):
    triage_data, overread = run
    done = overread(
        "assign",
        "--ask",
        "response_acuity",
        "--format",
        CONVERSATION,
        "--level",
        "D",
        "--judge",
        "Magpie",
        "--dry-run",
        "--json",
    )
    fits = (
        triage_data.samples["format"].eq(CONVERSATION)
        & triage_data.levels["Magpie"].eq(4)
        & triage_data.samples["has_text"]
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_items"] == fits.sum() > 0
    sources = triage_data.cases["source"].astype(str)[triage_data.samples["row"]].to_numpy()
    done = overread("assign", "--ask", "response_acuity", "--source", "clinic", "--dry-run", "--json")
    assert json.loads(done.stdout)["n_items"] == ((sources == "clinic") & triage_data.samples["has_text"]).sum()
    for option, value in (("--format", "letter"), ("--level", "E")):
        done = overread("assign", "--ask", "response_acuity", option, value)
        assert done.returncode != 0
        assert re.search(f"expected one of .*, got {value!r}", done.stderr)


def test_the_command_assigns_responses_that_are_named(run):
    _, overread = run
    named = ("assign", "--ask", "response_acuity", "--response", "1", "--response", "3", "--json")
    for alone, n_companions in (("--dry-run", COMPANIONS), ("--alone", 0)):
        done = overread(*named, alone)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["n_items"], told["n_companions"]) == (2 + n_companions, n_companions)
    done = overread("assign", "--ask", "response_acuity", "--response", "2")
    said = " ".join(re.sub(r"[^\w ]", " ", done.stderr + done.stdout).split())
    assert "expected one of this study with a text to read" in said

"""What the pages of results need is read while a lead is still elsewhere, and for nobody else."""

from functools import wraps

import numpy as np
import pytest
import streamlit as st

from evalcore.rubric import queries as rubric_queries, results
from evalcore.study import contents, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.policies import STUDY
from evalcore.study.schema import Administrator, Role, Viewer
from evalcore.triage import bases, queries as triage_queries
from pages.judges import criteria, versions
from pages.models import scores
from pages.shared import common, page_cache, triage_choice
from pages.triage import matrices
from tests import world
from tests.triage_cases import drawn, stored

LEAD = Viewer(person_id=1, name="Ana Ruiz", roles=frozenset({Role.LEAD}))


@pytest.fixture(autouse=True)
def _afresh():
    st.cache_data.clear()
    st.cache_resource.clear()
    page_cache.begun.cache_clear()


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Which of the two large reads have been done, in order; of a study of cases."""
    made, _ = drawn(np.random.default_rng(7), n_cases=3, n_samples=1)
    engine = open_study(str(tmp_path / "cases.db"))
    with writing(engine) as session:
        stored(session, made)
    engine.dispose()
    monkeypatch.setenv("OVERREAD_DB", str(tmp_path / "cases.db"))
    monkeypatch.setenv("OVERREAD_READ_AHEAD", "1")
    done = []
    for module, name in ((triage_queries, "imported"), (rubric_queries, "judged")):
        act = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, act=act, name=name: done.append(name) or act(*given))
    return done


def finish():
    """Wait until all is done that somebody asked for."""
    page_cache._beside().join()


def test_cases_are_there_before_a_lead_opens_triage(read):
    page_cache.read_ahead(LEAD)
    finish()
    assert read == ["imported"]
    known = triage_choice.about(LEAD)
    assert known.n_cases == len(triage_choice.read(LEAD, triage_choice.usual(known)).triage_data.cases) == 3
    assert read == ["imported"]
    page_cache.read_ahead(LEAD)
    finish()
    assert read == ["imported"]


def test_at_the_start_of_the_server_cases_wait_for_a_lead(read):
    page_cache.begun(common.location(), Administrator())
    finish()
    assert read == []


def test_so_are_the_numbers_of_its_first_section(monkeypatch, open_page, drawn_triage, location):
    monkeypatch.setenv("OVERREAD_DB", location)
    made = []
    computed = ((bases, "matrices"), (bases, "harm"), (bases, "safety"), (matrices, "flip_counts"))
    for module, name in (*computed, (matrices, "left_out")):
        make = getattr(module, name)
        counted = wraps(make)(lambda *of, make=make, name=name: made.append(name) or make(*of))
        monkeypatch.setattr(module, name, counted)
    with reading(drawn_triage) as session:
        lead = next(person for person in contents.people(session) if Role.LEAD in person.roles)
    monkeypatch.setenv("OVERREAD_READ_AHEAD", "1")
    page_cache.read_ahead(lead)
    finish()
    once = ["flip_counts", "harm", "left_out", "matrices", "safety"]
    assert sorted(made) == once
    assert not open_page(location, "triage", lead.name).exception
    finish()
    assert sorted(made) == once


def test_labels_of_criteria_are_there_before_a_lead_opens_models(read, tmp_path, monkeypatch):
    small = world.made(str(tmp_path / "rubrics.db"))
    monkeypatch.setenv("OVERREAD_DB", str(tmp_path / "rubrics.db"))
    page_cache.read_ahead(LEAD)
    finish()
    assert read == ["judged"]
    assert len(common.rubric_data(LEAD).judged) == len(small.responses) * 2
    assert read == ["judged"]


def test_so_are_the_scores_that_overview_and_models_show_first(monkeypatch, open_page, demo_study):
    made, make = [], results.results
    monkeypatch.setattr(results, "results", wraps(make)(lambda *of: made.append("results") or make(*of)))
    monkeypatch.setenv("OVERREAD_READ_AHEAD", "1")
    monkeypatch.setenv("OVERREAD_DB", demo_study)
    with reading(open_study(demo_study)) as session:
        lead = next(person for person in contents.people(session) if person.name == "Mina Castell")
    page_cache.read_ahead(lead)
    finish()
    assert made == ["results"]
    for page in ("models", "overview"):
        assert not open_page(demo_study, page, lead.name).exception
        finish()
    assert made == ["results"]


@pytest.mark.parametrize("role", sorted(set(Role) - STUDY))
def test_nothing_is_read_for_a_physician_who_only_reads(read, role):
    page_cache.read_ahead(Viewer(person_id=2, name="Dr. Noor", roles=frozenset({role})))
    finish()
    assert read == []


def test_nothing_is_read_ahead_unless_the_server_says_so(read, monkeypatch):
    monkeypatch.delenv("OVERREAD_READ_AHEAD")
    page_cache.read_ahead(LEAD)
    finish()
    assert read == []


def test_a_study_that_cannot_be_read_is_left_to_the_page_that_needs_it(read, monkeypatch):
    def broken(*_):
        msg = "no such table"
        raise RuntimeError(msg)

    monkeypatch.setattr(triage_queries, "imported", broken)
    page_cache.read_ahead(LEAD)
    finish()
    with pytest.raises(RuntimeError, match="no such table"):
        page_cache.triage_data(LEAD)


@pytest.fixture
def soon(read, monkeypatch):
    monkeypatch.setattr(page_cache, "AHEAD_SECONDS", 0.01)
    monkeypatch.delenv("OVERREAD_READ_AHEAD")
    return monkeypatch


def test_what_other_sections_of_a_page_ask_first_is_there_when_they_are_opened(soon, open_page, demo_study):
    made = []
    for name in ("grouped", "further", "missing"):
        make = getattr(scores, name)
        soon.setattr(scores, name, wraps(make)(lambda *of, make=make, name=name: made.append(name) or make(*of)))
    soon.setenv("OVERREAD_READ_AHEAD", "1")
    open_page(demo_study, "models", "Mina Castell")
    finish()
    assert sorted(made) == ["further", "grouped", "missing"]
    assert not open_page(demo_study, "models", "Mina Castell", models_show="More").exception
    finish()
    assert len(made) == 3
    open_page(demo_study, "models", "Mina Castell", models_show="By theme and axis")
    finish()
    others = [name for name in scores.GROUPINGS if name != scores.GROUPINGS[0]]
    assert made[3:] == ["grouped"] * len(others)
    for grouping in others:
        shown = {"models_show": "By theme and axis", "models_by": grouping}
        assert not open_page(demo_study, "models", "Mina Castell", **shown).exception
    assert len(made) == 3 + len(others)


def test_so_it_is_of_two_judges_labels(soon, open_page, demo_study):
    made = []
    for name in ("_drift", "_favoured"):
        make = getattr(versions, name)
        soon.setattr(versions, name, wraps(make)(lambda *of, make=make, name=name: made.append(name) or make(*of)))
    soon.setenv("OVERREAD_READ_AHEAD", "1")
    open_page(demo_study, "judges", "Mina Castell")
    finish()
    assert made == ["_drift", "_favoured"]
    assert not open_page(demo_study, "judges", "Mina Castell", judges_show="Versions and families").exception
    finish()
    assert made == ["_drift", "_favoured"]


def test_so_it_is_of_each_grouping_while_criteria_are_open(soon, open_page, demo_study):
    made, make = [], criteria._health
    soon.setattr(criteria, "_health", wraps(make)(lambda *of: made.append(of[2]) or make(*of)))
    soon.setenv("OVERREAD_READ_AHEAD", "1")
    for shown in ({}, {"criteria_by": "Theme"}, {"criteria_by": "One criterion"}):
        assert not open_page(demo_study, "judges", "Mina Castell", judges_show="Criteria", **shown).exception
        finish()
        assert sorted(made) == sorted(criteria.GROUPINGS.values())


def test_nothing_more_is_computed_ahead_once_the_study_changes(soon, location):
    soon.setenv("OVERREAD_READ_AHEAD", "1")
    made = []

    def change():
        made.append("first")
        with writing(common.engine()) as session:
            store.add_person(session, "Dr. New", roles=[Role.REVIEWER], actor="set-up")

    page_cache.ahead(LEAD, change, lambda: made.append("second"))
    finish()
    assert made == ["first"]


def test_nothing_is_computed_ahead_for_a_physician_who_only_reads(soon):
    soon.setenv("OVERREAD_READ_AHEAD", "1")
    made = []
    page_cache.ahead(Viewer(person_id=2, name="Dr. Noor", roles=frozenset({Role.REVIEWER})), lambda: made.append(1))
    finish()
    assert made == []

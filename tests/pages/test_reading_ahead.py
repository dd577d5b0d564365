"""What the pages of results need is read while a lead is still elsewhere, and for nobody else."""

import threading

import numpy as np
import pytest
import streamlit as st

from evalcore.rubric import queries as rubric_queries
from evalcore.study.db import open_study, writing
from evalcore.study.policies import STUDY
from evalcore.study.schema import Role, Viewer
from evalcore.triage import queries as triage_queries
from pages.shared import common, page_cache, triage_choice
from tests import world
from tests.triage_cases import drawn, stored

LEAD = Viewer(person_id=1, name="Ana Ruiz", roles=frozenset({Role.LEAD}))


@pytest.fixture(autouse=True)
def _afresh():
    for kept in (st.cache_data, st.cache_resource, page_cache.begun):
        (kept.clear if hasattr(kept, "clear") else kept.cache_clear)()


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
    """Wait for what was begun; whether anything was."""
    begun = [thread for thread in threading.enumerate() if thread.name == page_cache.THREAD]
    for thread in begun:
        thread.join(30)
    return bool(begun)


def test_cases_are_there_before_a_lead_opens_triage(read):
    page_cache.read_ahead(LEAD)
    finish()
    assert read == ["imported"]
    known = triage_choice.about(LEAD)
    assert known.n_cases == len(triage_choice.read(LEAD, triage_choice.usual(known)).triage_data.cases) == 3
    assert read == ["imported"]
    page_cache.read_ahead(LEAD)
    assert not finish()


def test_labels_of_criteria_are_there_before_a_lead_opens_models(read, tmp_path, monkeypatch):
    small = world.made(str(tmp_path / "rubrics.db"))
    monkeypatch.setenv("OVERREAD_DB", str(tmp_path / "rubrics.db"))
    page_cache.read_ahead(LEAD)
    finish()
    assert read == ["judged"]
    assert len(common.rubric_data(LEAD).judged) == len(small.responses) * 2
    assert read == ["judged"]


@pytest.mark.parametrize("role", sorted(set(Role) - STUDY))
def test_nothing_is_read_for_a_physician_who_only_reads(read, role):
    page_cache.read_ahead(Viewer(person_id=2, name="Dr. Noor", roles=frozenset({role})))
    assert not finish()
    assert read == []


def test_nothing_is_read_ahead_unless_the_server_says_so(read, monkeypatch):
    monkeypatch.delenv("OVERREAD_READ_AHEAD")
    page_cache.read_ahead(LEAD)
    assert not finish()
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

"""The Calibration page where there is nothing yet, or something is missing: what it says, and where it leads."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from evalcore.calibration import confidence, routing
from evalcore.study import store
from evalcore.study.db import open_study, writing
from tests import world
from tests.page_steps import Open, said as words
from tests.pages.test_calibration_page import LEAD, SECTIONS, figures, links, people
from tests.triage_cases import drawn, stored

MODELS, AMBIGUOUS, ROUTING = SECTIONS[1:]


@pytest.fixture
def opened(location: str, open_page: Open) -> Open:
    return partial(open_page, location, "calibration")


def test_an_empty_study_says_what_to_begin_with(location: str, opened: Open):
    empty(location)
    app = opened(LEAD)
    assert "Begin with a judge's verdicts that come with a confidence, or with cases of triage" in words(app)
    assert links(app) == ["Import a file"]


def empty(location: str) -> None:
    made = open_study(location)
    with writing(made) as session:
        store.ensure_study(session)
        people(session)
    made.dispose()


def test_one_judge_without_confidence_says_what_would_help(location: str, opened: Open):
    world.made(location, judged="+-++").engine.dispose()
    app = opened("Ana Ruiz")
    assert "Magpie states no confidence, and it is the only judge." in words(app)
    app = opened("Ana Ruiz", calibration_about="levels of care")
    assert "No judge states a confidence with the levels that it reads." in words(app)
    for section in SECTIONS[1:]:
        app = opened("Ana Ruiz", calibration_show=section)
        assert "This study has no cases of triage." in words(app)
        assert links(app) == ["Import a file"]


def changed(location: str, *, read: bool = True, **more: object) -> None:
    """Drawn cases with something missing."""
    told = {"n_cases": 12, "models": ["Alder-2"], "n_samples": 2} | more
    triage_data, _ = drawn(np.random.default_rng(5), **told)
    made = open_study(location)
    with writing(made) as session:
        stored(session, triage_data if read else replace(triage_data, levels=triage_data.levels[[]]))
        people(session)
    made.dispose()


def test_answers_that_nobody_has_read_lead_to_triage(location: str, opened: Open):
    changed(location, read=False)
    app = opened(LEAD, calibration_show=MODELS)
    assert "48 answers here, and nobody has read a level from them yet." in words(app)
    assert links(app) == ["Read the levels on Triage"]


def test_a_study_without_panels_has_no_ambiguous_case_and_says_by_which_rule(location: str, opened: Open):
    changed(location, share_panel=0)
    app = opened(LEAD, calibration_show=AMBIGUOUS)
    assert "No case of this study is ambiguous." in words(app)
    assert "panel spread above 0.75" in words(app)
    assert not figures(app)


def test_models_that_answered_once_have_no_confidence(location: str, opened: Open):
    changed(location, n_samples=1, share_panel=0)
    app = opened(LEAD, calibration_show=MODELS)
    assert confidence.NO_CONFIDENCE in words(app)
    assert "Import predictions" in links(app)
    assert not figures(app)
    routed = words(opened(LEAD, calibration_show=ROUTING))
    assert f"Alder-2 in qa: {routing.NONE_SURE}" in routed
    assert f"Alder-2 in conversation: {routing.NO_MISSES}" in routed

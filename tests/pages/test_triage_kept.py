"""What the pages of triage make once and keep: over a slider, from one page to the other, and while physicians read."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from evalcore.calibration import case_spread
from evalcore.study import contents, store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Acuity, RaterKind, Role, Selection, Stage, Verdict
from evalcore.triage import corrected, queries as stored_triage, store as triage_store
from evalcore.triage.data import AmbiguityRule, TriageData
from evalcore.triage.predictions import JURY
from pages.shared import triage_choice
from tests.page_steps import Open, said as words
from tests.triage_cases import drawn, settings_with, stored

LEAD = "Mina Castell"
Look = Callable[..., Any]


@pytest.fixture
def triage_data(location: str) -> TriageData:
    """A study of two judges and two physicians who have read most answers; some of its cases are ambiguous."""
    found, _ = drawn(
        np.random.default_rng(3), n_cases=60, judges={"Magpie": 0.9, "acuity_rules": 0.8}, n_samples=2, share_read=0.8
    )
    engine = open_study(location)
    with writing(engine) as session:
        stored(session, found)
        triage_store.set_triage_settings(session, settings_with(rule=AmbiguityRule(spread=0.3)), actor="set-up")
        store.add_person(session, LEAD, roles=[Role.LEAD, Role.RESEARCHER], actor="set-up")
    with reading(engine) as session:
        kept = stored_triage.load(session)
    engine.dispose()
    return kept


@pytest.fixture
def look(triage_data: TriageData, location: str, open_page: Open) -> Look:
    assert len(triage_data.cases)
    return partial(open_page, location)


def counting(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    """What this function was called with first, each time; it does what it did."""
    real, calls = getattr(owner, name), []

    def counted(first: object, *more: object, **named: object) -> object:
        calls.append(first)
        return real(first, *more, **named)

    monkeypatch.setattr(owner, name, counted)
    return calls


def read_one(location: str, triage_data: TriageData) -> None:
    """A physician reads an answer that nobody has read yet."""
    left = triage_data.samples.loc[
        triage_data.samples["has_text"] & ~triage_data.samples.index.isin(triage_data.reads["sample"])
    ]
    sample = left.iloc[0]
    engine = open_study(location)
    with writing(engine) as session:
        verdict = Verdict(
            example_id=int(triage_data.cases["example_id"][sample["row"]]), response_id=int(sample["response_id"]), criterion_id=None,
            rater_id=store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Brandt"), stage=Stage.FIRST, label=Acuity.A, blinded=True,
            selection=Selection.RANDOM, inclusion_probability=0.8,
        )  # fmt: skip
        store.add_verdicts(session, [verdict], actor="test", action="verdicts")
    engine.dispose()


@pytest.mark.slow
def test_what_was_read_of_the_answers_is_put_together_once_whatever_the_weights(
    monkeypatch: pytest.MonkeyPatch, look: Look, location: str, triage_data: TriageData
):
    made = counting(monkeypatch, corrected, "drawn_votes")
    app = look("triage", LEAD, triage_show="Harm", triage_basis="corrected")
    before = words(app)
    assert len(made) == 1
    app.slider(key="triage_under").set_value(9.0).run()
    assert words(app) != before
    app.segmented_control(key="triage_show").set_value("Matrices").run()  # cells and rates
    assert "corrected" in words(app)
    assert len(made) == 1
    read_one(location, triage_data)
    app.run()
    assert len(made) == 2


def test_the_ambiguous_cases_of_the_calibration_page_are_those_of_the_triage_page(
    monkeypatch: pytest.MonkeyPatch, look: Look
):
    made = counting(monkeypatch, case_spread, "case_spread")
    words(look("calibration", LEAD, calibration_show="Ambiguous cases"))
    assert len(made) == 1
    app = look("triage", LEAD, triage_show="Ambiguous")
    assert "of the panel chose" in words(app)
    assert len(made) == 1


@pytest.mark.slow
def test_what_most_judges_say_stands_while_physicians_read(
    monkeypatch: pytest.MonkeyPatch, look: Look, location: str, triage_data: TriageData
):
    made = counting(monkeypatch, triage_choice, "with_jury")
    address = {"triage_conversation_judge": JURY, "triage_basis": "by physicians"}
    before = words(look("triage", LEAD, **address))
    read_one(location, triage_data)
    assert words(look("triage", LEAD, **address)) != before
    assert len(made) == 1


def test_who_has_read_a_format_is_counted_once(monkeypatch: pytest.MonkeyPatch, look: Look):
    asked: Counter[str] = Counter()
    real = TriageData.judges

    def counted(self: TriageData, word: str) -> list[str]:
        asked[str(word)] += 1
        return real(self, word)

    monkeypatch.setattr(TriageData, "judges", counted)
    words(look("triage", LEAD))
    assert asked == {"qa": 1, "conversation": 1}


@pytest.mark.slow
def test_what_is_read_ahead_is_what_the_page_asks_for_first(look: Look, location: str, monkeypatch: pytest.MonkeyPatch):
    counted = counting(monkeypatch, triage_choice, "predictions")
    monkeypatch.setenv("OVERREAD_DB", location)
    engine = open_study(location)
    with reading(engine) as session:
        viewer = next(person for person in contents.people(session) if person.name == LEAD)
    engine.dispose()
    triage_choice.read(viewer, triage_choice.usual(triage_choice.about(viewer)))
    look("triage", LEAD)
    assert len(counted) == 1

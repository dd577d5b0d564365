"""The part of the Study page where a lead says what labels stand for and how cases of triage are counted."""

import math
from unittest.mock import PropertyMock

import numpy as np
import pandas as pd
import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from evalcore.study import store
from evalcore.study.audit import chain
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Format, Role
from evalcore.triage import label_maps, setting_queries
from evalcore.triage.data import AmbiguityRule
from evalcore.triage.settings import TriageSettings
from pages.study import cases
from tests import triage_cases
from tests.page_steps import cookie_of, said
from tests.triage_cases import settings_with
from tests.world import tampered

SECTION = "from pages.shared import common\nfrom pages.study import cases\ncases.settings(common.require())"
LEAD, READER = "Ana Ruiz", "Dr. Kofi Adu"


@pytest.fixture
def section(location, monkeypatch):
    """The section as somebody, in a study of twelve cases; three of Semigran's were imported with another map."""
    drawn = triage_cases.drawn(np.random.default_rng(3), n_cases=12, models=("Alder-2",), n_samples=1)[0]
    drawn.cases["source"] = pd.Series(["semigran"] * 9 + ["<b>hotline</b>"] * 3, dtype="category")
    drawn.cases["original_label"] = pd.Series(["em"] * 6 + ["SC"] * 3 + ["self care", "self care", "red"], dtype=object)
    drawn.cases["mapped_label"] = pd.Series(["C"] * 3 + ["D"] * 3 + ["A"] * 3 + ["A", "A", None], dtype=object)
    engine = open_study(location)
    with writing(engine) as session:
        triage_cases.stored(session, drawn)
        store.add_person(session, LEAD, roles=[Role.LEAD], actor="set-up")
        store.add_person(session, READER, roles=[Role.REVIEWER], actor="set-up")
    engine.dispose()

    def opened(name: str = LEAD) -> AppTest:
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookie_of(location, name)))
        return AppTest.from_string(SECTION, default_timeout=30).run()

    return opened


@pytest.fixture
def study(location):
    """What is stored, after the page was used: the maps of the study, its settings, the acts of the lead."""

    def now():
        engine = open_study(location)
        trail = chain.events(engine, Administrator(), is_blind=False)[0]
        with reading(engine) as session:
            found = (
                setting_queries.own_tables(session),
                setting_queries.load(session),
                list(trail.loc[trail["actor"].eq(LEAD), "action"]),
            )
        engine.dispose()
        return found

    return now


def choose(app, source):
    return app.selectbox(key="label_map_source").set_value(source).run()


def button(app, label):
    return next(found for found in app.button if found.label == label)


def test_a_source_s_map_stands_with_its_cases_and_what_was_imported_as_something_else(section):
    app = choose(section(), "semigran")
    shown = said(app)
    assert "This map comes with Overread." in shown
    assert "9 cases of this study, with 2 labels." in shown
    assert "3 cases were imported when the label stood for something else, and keep that." in shown
    assert "those imported before keep what was made of them" in shown
    table = app.dataframe[0].value
    assert table[["label", "meaning", "cases", "otherwise"]].to_numpy().tolist() == [
        ["em", "D", 6, 3], ["ne", "panel", 0, 0], ["sc", "A", 3, 0],
    ]  # fmt: skip


def test_a_source_without_a_map_says_so_and_its_name_stays_text(section):
    app = section()
    assert app.selectbox(key="label_map_source").value == "<b>hotline</b>"  # sources with cases come first
    shown = said(app)
    assert "<b>hotline</b> has no map of its own yet" in shown
    assert "The map does not know 'red', on 1 case" in shown


def test_a_source_is_called_as_its_cases_spell_it_and_a_map_without_cases_as_it_is_kept(section, location):
    engine = open_study(location)
    tampered(engine, "UPDATE acuity_case SET source = 'clinic-letters' WHERE source = '<b>hotline</b>'")
    engine.dispose()
    app = section()
    assert app.selectbox(key="label_map_source").options[0] == "clinic-letters"
    assert "clinic letters" not in app.selectbox(key="label_map_source").options
    assert "levels" in app.selectbox(key="label_map_source").options
    assert "clinic-letters has no map of its own yet" in said(app)
    assert "The map does not know 'red', on 1 case" in said(app)


def test_a_label_that_no_map_knows_waits_to_be_filled_in_and_is_left_out_while_it_is_empty(section, study, monkeypatch):
    app = section()
    table = app.dataframe[0].value
    assert table.iloc[-1][["label", "meaning", "cases"]].tolist() == ["red", "", 1]
    button(app, "Save the map").click().run()
    source = label_maps.fold("<b>hotline</b>")
    assert study()[0] == {source: label_maps.default_tables()["levels"]}
    edit(monkeypatch, lambda table: table.assign(meaning=table["meaning"].replace("", "D")))
    button(section(), "Save the map").click().run()
    assert ("red", "D") in study()[0][source]


def edit(monkeypatch, change):
    """AppTest cannot type into a table: what comes back from it is changed instead."""
    shown = cases.st.data_editor
    monkeypatch.setattr(cases.st, "data_editor", lambda table, **named: change(shown(table, **named)))


def test_a_lead_changes_a_map_and_goes_back(section, study, monkeypatch):
    app = choose(section(), "semigran")
    row = pd.DataFrame([{"label": " watch ", "meaning": "c|d"}, {"label": None, "meaning": None}])
    with monkeypatch.context() as patched:
        edit(patched, lambda table: pd.concat([table, row], ignore_index=True))
        app = button(app, "Save the map").click().run()
    assert study()[0] == {"semigran": [*label_maps.default_tables()["semigran"], ("watch", "C/D")]}
    app = app.run()
    assert "This map is the study's own." in said(app)
    app = button(app, "Use Overread's map").click().run()
    assert study()[0] == {}
    assert study()[2] == ["label map reset", "label map set"]
    assert "This map comes with Overread." in said(app)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda table: table.assign(meaning="soon"),
            "row 1: meaning: expected one of A, A/B, B, B/C, C, C/D, D, panel",
        ),
        (lambda table: table.iloc[:0], "the label map of semigran: expected 1 to 500 rows, got 0"),
    ],
)
def test_a_map_with_a_fault_is_a_sentence_and_changes_nothing(section, study, monkeypatch, change, words):
    app = choose(section(), "semigran")
    edit(monkeypatch, change)
    app = button(app, "Save the map").click().run()
    assert words in said(app)
    assert study()[0] == {}


def test_a_lead_changes_the_settings_and_goes_back(section, study):
    app = section()
    app.number_input(key="triage_0_under").set_value(10.0)
    app.checkbox(key="triage_0_uncertainty_on").set_value(False)
    app.text_input(key="triage_0_name_D").set_value("Notaufnahme, sofort")
    app.multiselect(key="triage_0_formats").set_value([Format.CONVERSATION])
    app = button(app, "Save the settings").click().run()
    shown = said(app)
    assert "The study has chosen its own settings. Ambiguous: panel spread above 0.75." in shown
    _, settings, _ = study()
    assert (settings.weights.under, settings.formats) == (10.0, (Format.CONVERSATION,))
    assert settings.rule == AmbiguityRule(spread=0.75, uncertainty=math.inf)
    assert settings.level_names.D == "Notaufnahme, sofort"
    assert app.number_input(key="triage_1_under").value == 10.0
    app = button(app, "Use Overread's settings").click().run()
    assert study()[1:] == (TriageSettings(), ["triage settings changed"] * 2)
    assert app.number_input(key="triage_2_under").value == 5.0


def test_settings_that_cannot_be_are_refused_in_a_sentence_without_a_line(section, study):
    app = section()
    app.multiselect(key="triage_0_metrics").set_value([])
    app = button(app, "Save the settings").click().run()
    assert "the settings of triage: metrics: expected" in said(app)
    assert study()[1] == TriageSettings()


def test_files_replace_map_and_settings(section, study):
    app = choose(section(), "semigran")
    app.file_uploader(key="label_map_file_0").upload("m.csv", b"label,meaning\nem,C/D\n")
    app = button(app.run(), "Replace the map by this file").click().run()
    assert study()[0] == {"semigran": [("em", "C/D")]}
    app.file_uploader(key="triage_settings_file_1").upload("s.yaml", b"weights: {over: 2}\n")
    app = button(app.run(), "Replace the settings by this file").click().run()
    assert study()[1] == settings_with(over=2.0)
    app.file_uploader(key="triage_settings_file_2").upload("s.yaml", b"weights: {over: -2}\n")
    app = button(app.run(), "Replace the settings by this file").click().run()
    assert "s.yaml: weights.over: expected" in said(app)
    assert study()[1] == settings_with(over=2.0)


def test_who_is_no_lead_reads_and_changes_nothing(section):
    app = choose(section(READER), "semigran")
    assert "Only leads can change the triage settings;" in said(app)
    assert {found.label for found in app.button if not found.disabled} == set()
    assert not app.get("file_uploader")
    assert all(field.disabled for field in (*app.text_input, *app.number_input, *app.checkbox, *app.multiselect))

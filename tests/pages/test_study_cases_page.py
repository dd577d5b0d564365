"""The Study page brings cases in and shows what became of each, from the import on."""

import math
from html import unescape

import pytest

from evalcore.importing import import_file
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator, ConfidenceMeaning
from evalcore.triage import setting_queries
from evalcore.triage.data import AmbiguityRule
from evalcore.triage.store import set_triage_settings
from tests.acuity_files import case, matrix, prediction, table
from tests.page_steps import LEAD, check
from tests.triage_cases import settings_with

CASES = [case(), case(2, "A", "B"), case(3, "Remove"), case(4, dataset="<b>evil</b>", original_label="![x](y)")]


@pytest.fixture
def opened(engine, location, open_page):
    """The Cases tab."""

    def opens():
        app = open_page(location, "study", LEAD)
        app.session_state["study_tab"] = "Cases"
        return app.run()

    return opens


def bring(engine, tmp_path, *lines, name="cases.csv"):
    (tmp_path / name).write_bytes(table(*lines))
    return import_file(engine, tmp_path / name, actor=Administrator(name="set-up"))


def labels(app):
    """The table of labels."""
    (found,) = (table.value for table in app.dataframe if "Label of the source" in table.value)
    return found


def test_an_empty_study_says_what_to_do_and_shows_the_label_maps(opened):
    found = check(opened())
    assert "No case of triage can be shown yet. Import a file of cases" in found
    assert "What labels stand for" in found


def test_the_flow_and_the_labels_of_the_studys_cases_are_shown_by_its_own_rule(engine, opened, tmp_path):
    bring(engine, tmp_path, *CASES)
    bring(engine, tmp_path, *matrix([[1, 0, 0, 0]] * 4), name="m.csv")
    app = opened()
    found = unescape(check(app))
    assert (
        "4 cases of 2 sources. 3 are used: 2 with one level (2 by their label), 1 ambiguous. 1 is left out: the panel removed it."
        in found
    )
    assert "1 published confusion matrix, of counts alone" in found
    assert labels(app)["Cases"].sum() == 4
    with writing(engine) as session:
        set_triage_settings(session, settings_with(rule=AmbiguityRule(spread=1.0)), actor="set-up")
    found = check(app.run())
    assert "3 are used: 2 with one level (2 by their label), 1 between two levels (1 by a panel)." in found
    assert "Ambiguous: panel spread above 1, or" in found
    with writing(engine) as session:
        off = AmbiguityRule(spread=math.inf, uncertainty=math.inf)
        set_triage_settings(session, settings_with(rule=off), actor="set-up")
    found = check(app.run())
    assert "Ambiguous: where its file says that the panel did not agree; such a case has no level." in found
    assert " inf," not in found
    assert " inf;" not in found


def test_an_import_shows_the_flow_of_its_file_and_asks_what_confidences_mean(engine, location, open_page, tmp_path):
    bring(engine, tmp_path, case(9))
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("cases.csv", table(*CASES)).run()
    app.button(key="check").click().run()
    found = unescape(check(app))
    assert "cases.csv: acuity-cases, 4 rows, would be imported; nothing was changed" in found
    assert "4 cases of 2 sources. 3 are used" in found
    assert labels(app)["Cases"].sum() == 4
    app.button(key="import").click().run()
    assert "4 new cases of triage" in check(app)
    app.file_uploader(key="upload").upload("p.csv", table(prediction(confidence=0.8))).run()
    (means,) = [box for box in app.selectbox if box.label == "Confidence refers to"]
    means.select("the criterion is met").run()
    app.button(key="import").click().run()
    assert "expected right, as a level of care is no criterion that can be met" in check(app)
    (means,) = [box for box in app.selectbox if box.label == "Confidence refers to"]
    means.select("its own label is right").run()
    app.button(key="import").click().run()
    assert "1 new level of care, read by judges" in check(app)
    with reading(engine) as session:
        assert setting_queries.confidence_meanings(session) == {"parser": ConfidenceMeaning.RIGHT}

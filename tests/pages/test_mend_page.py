"""A lead takes an import back on Study, marks a response as broken on Browse, and changes a name; readers see what is left, and do none of it."""

from html import unescape

import pytest

from evalcore.study import store
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Broken
from tests.invented import bring, entry, example, lines, results, rows, write
from tests.page_steps import LEAD, PHYSICIAN, check

FILE = "healthbench_model-a_20260101_101010_allresults.json"


@pytest.fixture
def engine(location, tmp_path):
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
        store.add_person(session, PHYSICIAN, roles=["reviewer"], actor="set-up")
    bring(engine, write(tmp_path / "examples.jsonl", lines(example("p1"))))
    bring(engine, write(tmp_path / FILE, results(entry("p1"))))
    yield engine
    engine.dispose()


def study(open_page, location, name=LEAD):
    return open_page(location, "study", name, study_tab="Corrections")


def test_an_import_is_withdrawn_with_a_reason_and_restored(engine, location, open_page):
    app = study(open_page, location)
    assert "Choose an import to take it back" in unescape(check(app))
    app.session_state["imports"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    shown = unescape(check(app))
    assert f"Without {FILE} these leave every screen, number and export: 1 response and 3 verdicts of judges." in shown
    app.text_input(key="withdraw_why_2").set_value("the wrong file")
    next(button for button in app.button if button.label == "Withdraw this import").click().run()
    assert rows(engine, "SELECT withdrawn_by, reason FROM file_import WHERE id = 2") == [(LEAD, "the wrong file")]
    assert f"withdrawn by {LEAD}: the wrong file" in unescape(check(app))
    app.session_state["imports"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    app.button(key="restore_2").click().run()
    assert rows(engine, "SELECT withdrawn_by FROM file_import WHERE id = 2") == [(None,)]


def test_a_response_is_marked_on_browse_and_counts_again(engine, location, open_page):
    app = open_page(location, "browse", LEAD, example="1")
    app.button(key="mark_broken_1").click().run()
    shown = unescape(check(app))
    assert "The response of model-a, sample 0 is marked as broken (empty): it is in no number." in shown
    assert "See a doctor if it lasts." not in shown
    app.button(key="unmark_1").click().run()
    assert "See a doctor if it lasts." in unescape(check(app))


def test_a_name_is_changed(engine, location, open_page):
    app = study(open_page, location)
    app.text_input(key="mend_name").set_value("Alder").run()
    app.button(key="mend_rename").click().run()
    check(app)
    with reading(engine) as session:
        assert renaming.names(session, Kind.MODEL) == ["Alder"]


def test_readers_mend_nothing(engine, location, open_page):
    mending.mark_broken(engine, 1, Broken.EMPTY, actor=Administrator())
    shown = unescape(check(open_page(location, "browse", PHYSICIAN, example="1")))
    assert "is marked as broken" in shown
    assert "Count it again" not in shown

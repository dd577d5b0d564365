"""The Triage page: what it says where there is nothing yet."""

import numpy as np
from sqlalchemy import Engine

from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.tables import PublishedMatrix
from tests.page_steps import Open, said as words
from tests.triage_cases import drawn, stored
from tests.triage_page_steps import LEAD, READER, SECTIONS


def test_an_empty_study_says_what_to_import(people_alone: Engine, location: str, open_page: Open):
    assert people_alone
    shown = words(open_page(location, "triage", LEAD))
    assert "Begin with a file of cases" in shown


def test_cases_without_answers_ask_for_predictions(people_alone: Engine, location: str, open_page: Open):
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=8, n_samples=0, share_read=0.0)
    with writing(people_alone) as session:
        stored(session, triage_data)
    shown = words(open_page(location, "triage", LEAD))
    assert "no model's answers" in shown


def test_answers_that_nobody_has_read_a_level_from_offer_to_read_them(
    people_alone: Engine, location: str, open_page: Open
):
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=8, share_read=0.0)
    triage_data = triage_data.__class__(**{**vars(triage_data), "levels": triage_data.levels.iloc[:, :0]})
    with writing(people_alone) as session:
        stored(session, triage_data)
    assert open_page(location, "triage", READER).button(key="triage_read_levels").disabled
    app = open_page(location, "triage", LEAD)
    assert "nobody has read a level from them yet" in words(app)
    app.button(key="triage_read_levels").click().run()
    assert "levels of qa by parser and conversation by acuity_rules" in words(app)


def test_a_published_matrix_alone_is_shown(people_alone: Engine, location: str, open_page: Open):
    with writing(people_alone) as session:
        session.add(PublishedMatrix(model="GPT-5.4", format="qa", gold="D", a=0, b=0, c=27, d=235))
        store.append_event(session, actor="x", action="file imported", subject="matrix", detail={})
    app = open_page(location, "triage", LEAD)
    assert "(235/262)" in words(app)
    for section in SECTIONS:
        app.segmented_control(key="triage_show").set_value(section).run()
        assert ("have counts and no cases" in words(app)) == (section not in {"Matrices", "Harm"})

"""The Study page changes an assignment and freezes the study; Review tells whoever had begun."""

import re

import pytest

from evalcore.reading import amending, assignment_queries, registering, reviewing
from evalcore.study import freezing
from evalcore.study.db import reading
from evalcore.study.schema import Administrator
from tests import world
from tests.page_steps import check

LEAD, IMANI, TOVE = "Ana Ruiz", "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def study(location):
    """Two responses, given to Dr. Noor."""
    made = world.made(location)
    world.assigned(made, n_readers=1, readers=(IMANI,))
    yield made
    made.engine.dispose()


def opened(open_page, study, tab):
    app = open_page(study.location, "study", LEAD)
    app.session_state["study_tab"] = tab
    return app.run()


def row(study):
    with reading(study.engine) as session:
        (found,) = assignment_queries.assignments(session).to_dict(orient="records")
    return found


def test_a_lead_freezes_a_queue_pauses_hands_over_and_cancels(study, open_page):
    app = opened(open_page, study, "Reading")
    app.button(key="amend_queue_1").click().run()
    with reading(study.engine) as session:
        assert registering.registered(session)[1].sha256 in check(app)
    app.button(key="amend_pause_1").click().run()
    assert row(study)["paused_at"] is not None
    app.button(key="amend_pause_1").click().run()
    app.selectbox(key="hand_from_1").select(IMANI)
    app.selectbox(key="hand_to_1").select(TOVE)
    app.button(key="amend_hand_1_go").click().run()
    assert "Dr. Tove Lind can take 2 of 2 responses that wait." in check(app)
    assert row(study)["readers"] == TOVE
    app.text_input(key="cancel_why_1").input("Alder-2 is done.")
    app.button(key="amend_cancel_1_go").click().run()
    assert "This reason names a model" in check(app)
    app.text_input(key="cancel_why_1").input("We have enough.")
    app.button(key="amend_cancel_1_go").click().run()
    assert "0 locked reads stay and count" in check(app)
    assert row(study)["cancelled_at"] is not None


def test_readers_have_their_progress_and_an_address_to_send_without_a_secret(study, open_page):
    app = opened(open_page, study, "Reading")
    (table,) = [one.value for one in app.dataframe if "Days left" in one.value.columns]
    assert table[["Reader", "Locked", "Could take"]].to_numpy().tolist() == [[IMANI, 0, 2]]
    (address,) = [code.value for code in app.code]
    assert address.endswith("/review")
    assert "?" not in address


def test_review_tells_whoever_had_begun_what_was_cancelled(study, open_page):
    viewer = study.viewer(IMANI)
    assert reviewing.take(study.engine, viewer) is not None
    amending.cancel(study.engine, 1, "We have enough.", actor=Administrator(name=LEAD))
    said = check(open_page(study.location, "review", IMANI))
    assert "The lead has cancelled 1 response that you had begun: We have enough. Your marks are kept." in said


def test_a_lead_freezes_the_study_every_page_says_so_and_review_gives_nothing_out(study, open_page):
    app = opened(open_page, study, "Analysis")
    app.checkbox(key="freeze_sure").check().run()
    app.button(key="freeze").click().run()
    with reading(study.engine) as session:
        version = freezing.frozen(session)
    assert version.sentence in check(app)
    said = check(open_page(study.location, "review", IMANI))
    assert "Reading is closed" in said
    assert "Try again" not in said
    assert "by Ana Ruiz as version 1: it can be read and exported" in said
    app = opened(open_page, study, "Analysis")
    app.text_input(key="amend_name").input("A")
    app.text_input(key="amend_reason").input("More readers.")
    app.button(key="amend_go").click().run()
    with reading(study.engine) as session:
        assert freezing.frozen(session) is None


def test_in_a_frozen_study_what_is_in_hand_is_looked_at_and_no_control_of_it_can_be_pressed(study, open_page):
    viewer = study.viewer(IMANI)
    assert reviewing.take(study.engine, viewer) is not None
    app = open_page(study.location, "review", IMANI)
    is_answer = re.compile("answer_|submit_|tell_lead_").match
    assert [one.key for one in app.button if is_answer(one.key or "") and not one.disabled]
    freezing.freeze(study.engine, actor=study.viewer(LEAD))
    app = open_page(study.location, "review", IMANI)
    check(app)
    shown = [one for one in app.button if is_answer(one.key or "")]
    assert shown
    assert all(one.disabled for one in [*shown, *app.text_input, *app.checkbox])

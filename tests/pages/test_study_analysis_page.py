"""The Study page's section for the analysis: what is stated, by whom it may be, and what is refused."""

from functools import partial

import pytest

from evalcore.study import contents, store
from evalcore.study.analysis import Analysis
from evalcore.study.db import reading, writing
from evalcore.study.schema import Claim
from tests import world
from tests.page_steps import Open, said as words

LEAD, IMANI = "Ana Ruiz", "Dr. Imani Noor"


@pytest.fixture
def small(location: str):
    made = world.made(location, judged="+-+-", models=("Alder-2", "Briar-1"))
    yield made
    made.engine.dispose()


@pytest.fixture
def opened(location: str, open_page: Open) -> Open:
    return partial(open_page, location, "study", study_tab="Analysis")


def in_force(small):
    with reading(small.engine) as session:
        return contents.stated_analysis(session)


def box(app, label):
    return next(widget for widget in (*app.selectbox, *app.number_input) if widget.label == label)


def pressed(app):
    return next(button for button in app.button if button.label == "State the analysis").click().run()


def test_a_lead_states_the_analysis_and_sees_it_in_force(small, opened: Open):
    app = opened(LEAD)
    assert "Nothing is stated yet" in words(app)
    box(app, "Primary comparison: first model").select("Briar-1")
    box(app, "With").select("Alder-2")
    box(app, "Margin of the corrected score").set_value(0.05)
    box(app, "Holds for").select(Claim.NEW_EXAMPLES)
    shown = words(pressed(app))
    assert "before the first read, by Ana Ruiz" in shown
    assert "Primary comparison: Briar-1 with Alder-2" in shown
    assert in_force(small).spec == Analysis(claim=Claim.NEW_EXAMPLES, primary=("Briar-1", "Alder-2"), margin=0.05)


def test_a_margin_without_a_comparison_is_refused_in_the_words_of_the_page(small, opened: Open):
    app = opened(LEAD)
    box(app, "Margin of the under-triage rate").set_value(0.05)
    assert "Margin of the under-triage rate: expected a primary comparison of two models with it" in words(pressed(app))
    assert in_force(small) is None


def test_a_reviewer_sees_what_is_stated_and_cannot_change_it(small, opened: Open):
    with writing(small.engine) as session:
        store.state_analysis(session, Analysis(judges=("Magpie",)), actor=LEAD)
        store.state_analysis(session, Analysis(weighted=True), actor=LEAD)
    app = opened(IMANI)
    shown = words(app)
    assert "Version 2, stated on" in shown
    assert "Earlier versions" in [title.value for title in app.subheader]
    assert "Only leads and researchers can state the analysis" in shown
    assert next(button for button in app.button if button.label == "State the analysis").disabled

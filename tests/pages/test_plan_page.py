"""The Plan part of the Study page: the form, the answer, the drawing that is handed to readers; and its figures."""

import re
from html import unescape

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from evalcore.planning import acts as planning_acts, words as planning_words
from evalcore.planning.pilot_estimates import Target
from evalcore.planning.sample_size import answer, curve
from evalcore.planning.words import narrowing
from evalcore.reading import assignment_queries, queries as reading_queries
from evalcore.reading.assigning import Choice, assign
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.drawings import Goal
from evalcore.study import contents, store
from evalcore.study.browse import Filters
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator, Ask, Claim, Physicians, Role
from tests import world
from tests.page_steps import BOTH_READER, LEAD, PHYSICIAN, check
from tests.population import drawn

NARROW = {"plan_within_score": 0.028, "plan_claim": Claim.BENCHMARK, "plan_physicians": Physicians.THESE}


@pytest.fixture
def opened(demo_study, open_page):
    """The Plan tab as somebody, with the form filled in."""

    def opens(name: str, **form: object) -> AppTest:
        app = open_page(demo_study, "study", name)
        app.session_state["study_tab"] = "Plan"
        app.run()
        for key, value in form.items():
            app.session_state[key] = value
            app.run()
        return app

    return opens


def said(app: AppTest) -> str:
    return unescape(check(app))


def n_assignments(path: str) -> int:
    engine = open_study(path)
    with reading(engine) as session:
        found = int(assignment_queries.assignments(session)["ask"].eq(Ask.RUBRIC).sum())
    engine.dispose()
    return found


def test_the_answer_is_a_sentence_with_the_number_of_responses_criteria_and_what_it_is_from(opened):
    app = opened(LEAD, plan_model_0="Briar-1", **NARROW)
    shown = said(app)
    found = re.search(
        r"Physicians have to read (\d+) further responses \((\d+) criteria\)\. "
        r"Then Briar-1's corrected score is known within ±0\.028 on this benchmark, for these physicians\.",
        shown,
    )
    assert found
    designs = next(
        table.value for table in app.dataframe if "Responses are" in table.value and "Criteria" in table.value
    )
    assert [str(n) for n in designs["Further responses"]] == 2 * [found[1]]
    assert [str(n) for n in designs["Criteria"]] == 2 * [found[2]]
    assert set(designs["Hours of reading"]) == {"– (not timed yet)"}
    assert "No reading has been timed yet, so hours cannot be told." in shown
    assert "criteria that were drawn and read blind." in shown
    assert len(app.get("plotly_chart")) == 1


def test_the_claim_is_named_the_other_claims_stand_beside_it_and_the_uncertainty_is_taken_apart(opened):
    app = opened(LEAD, plan_model_0="Briar-1", plan_within_score=0.05)
    shown = said(app)
    assert "for physicians in general would still be" in shown
    claims = next(table.value for table in app.dataframe if "Claim of the 95 % interval" in table.value)
    assert list(claims["Claim of the 95 % interval"]) == list(planning_words.CLAIM_WORDS.values())
    sources = next(table.value for table in app.dataframe if "Less with" in table.value)
    assert sum(int(share.split()[0]) for share in sources["Share of the variance"]) in (99, 100, 101)
    spent = next(table.value for table in app.dataframe if "Spent on" in table.value)
    assert list(spent["Spent on"]) == list(planning_words.OPTION_WORDS.values())
    assert "the next 100 reads of a response".capitalize() in shown


def test_a_difference_and_a_judges_errors_have_their_own_forms(opened):
    app = opened(LEAD, plan_goal=Goal.DIFFERENCE)
    shown = said(app)
    assert "corrected difference between Alder-2 and Briar-1" in shown
    assert "would be found with 80 % power" in shown
    assert {"First model", "Second model"} <= {box.label for box in app.selectbox}
    shown = said(opened(LEAD, plan_goal=Goal.JUDGE_ERROR, plan_within_error=0.5))
    assert "the share of labels on which Magpie is wrong is known within ±0.5 percentage points" in shown


def test_the_same_model_twice_is_refused_with_a_sentence(opened):
    shown = said(opened(LEAD, plan_goal=Goal.DIFFERENCE, plan_model_1="Alder-2"))
    assert "models: expected two different models for difference, got Alder-2, Alder-2" in shown
    assert "Draw and assign" not in shown


def test_the_lead_checks_and_then_draws_and_assigns(opened, demo_study):
    app = opened(LEAD, plan_model_0="Briar-1", **NARROW, plan_seed=7)
    app.button(key="plan_check").click().run()
    shown = said(app)
    assert "would be assigned; nothing was changed" in shown
    assert n_assignments(demo_study) == 1
    app.button(key="plan_assign").click().run()
    assert re.search(r"\d+ responses with \d+ criteria assigned\.", check(app))
    engine = open_study(demo_study)
    with reading(engine) as session:
        row = assignment_queries.assignments(session).iloc[0]
    engine.dispose()
    assert (row["seed"], row["selection"], row["n_readers"], row["created_by"]) == (7, "importance", 2, LEAD)
    assert '"models": ["Briar-1"]' in row["chosen_by"]
    assert "Nothing more has to be read" in check(app.run())


@pytest.mark.parametrize("name", [PHYSICIAN, BOTH_READER])
def test_others_see_how_much_is_needed_and_not_the_button(name, opened):
    app = opened(name)
    shown = said(app)
    assert "Only leads can assign reading;" in shown
    assert "Alder-2's corrected score" in shown
    assert not [button for button in app.button if button.key in {"plan_assign", "plan_check"}]


def test_what_waits_for_ones_own_read_is_left_out_of_the_answer_and_not_out_of_the_drawing(opened, demo_study):
    sol = "Dr. Sol Reyes"
    engine = open_study(demo_study)
    world.add_researcher(engine, sol, Role.LEAD, Role.REVIEWER)
    world.leads_read(engine)
    alder = Choice(filters=Filters(model="Alder-2", reads="unread"), readers=(sol,), n_readers=1, seed=1)
    assign(engine, alder, actor=Administrator(name=LEAD))
    with reading(engine) as session:
        n_hidden = len(
            reading_queries.blind_examples(session, next(p for p in contents.people(session) if p.name == sol))
        )
        known = rubric_queries.load(session)
        target = planning_acts.target_of("score:Briar-1:0.028", known)
        n_free = answer(known, target, taken=planning_acts.taken(session)).variances.n_free
    engine.dispose()
    assert n_hidden
    form = {"plan_model_0": "Briar-1", "plan_seed": 1} | NARROW
    app = opened(sol, **form)
    seen = re.search(r"of (\d+) responses \(", said(app))
    assert seen
    assert int(seen[1]) == 30 - n_hidden
    app.button(key="plan_check").click().run()
    drawn_from = re.search(r"of (\d+) items that fit", said(app))
    assert drawn_from
    assert int(drawn_from[1]) == n_free


def test_an_empty_study_says_what_to_do(location, open_page):
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
    engine.dispose()
    app = open_page(location, "study", LEAD)
    app.session_state["study_tab"] = "Plan"
    assert "Nothing can be planned yet" in check(app.run())


# ---------------------------------------------------------------- the figures


@pytest.fixture(scope="module")
def planned():
    known, _ = drawn(np.random.default_rng(1), n_examples=200, whole_responses=True, share_read=0.3)
    target = Target(Goal.SCORE, 0.01, ("Alder",), ("Magpie",), "invented")
    return answer(known, target)


def test_the_curve_draws_each_number_it_is_given_and_the_width_that_is_wanted(planned):
    table = curve(planned)
    figure = narrowing(table, within=0.01, units="responses", axis="Half of the 95 % interval", tick_format=".3f")
    assert isinstance(figure, go.Figure)
    for design, name in (("uniform", "equal chances"), ("importance", "by importance")):
        (line,) = (trace for trace in figure.data if trace.name == name)
        rows = table.loc[table["design"].eq(design)]
        assert list(line.x) == rows["n_units"].tolist()
        assert list(line.y) == rows["half_width"].tolist()
    assert [shape.y0 for shape in figure.layout.shapes] == [0.01]
    assert figure.layout.xaxis.title.text == "Further responses read"

"""The Reading part of the Study page: which items are assigned, by filters, and what somebody who reads blind is told there."""

import json
import re

import pytest
from streamlit.testing.v1 import AppTest

from evalcore.study.schema import Label, Role
from pages.shared import common, filters
from tests import world
from tests.page_steps import check, few

LEAD, BOTH, READER = "Ana Ruiz", "Dr. Sol Reyes", "Dr. Imani Noor"
FIRST_ROW = ("dataset", "theme", "language", "model", "reads")
SECOND_ROW = ("q", "subset", "category", "axis", "sign", "judge", "label", "differ")


@pytest.fixture
def study(location):
    """Three responses, of two criteria each: + - | + + | + -; Wren says - of the very last. Dr. Reyes is lead and reader."""
    made = world.made(location, points=((7, -4), (5, 3), (2, -1)), judged="+-+++-")
    world.add_researcher(made.engine, BOTH, Role.LEAD, Role.REVIEWER)
    world.leads_read(made.engine)
    world.judged(made, "Wren", Label.MET, example=2, criterion=1, explanation="Kelbrunth.")
    yield made
    made.engine.dispose()


@pytest.fixture
def form(study, open_page):
    """The form as somebody, filled in."""

    def opens(name: str = LEAD, **chosen: object) -> AppTest:
        app = open_page(study.location, "study", name)
        app.session_state["study_tab"] = "Reading"
        app.run()
        for key, value in chosen.items():
            app.session_state[f"assign_{key}"] = value
        return app.run()

    return opens


def checked(app: AppTest) -> str:
    """What the page says once "Check only" is pressed."""
    app.button(key="assign_check").click().run()
    return check(app)


def test_the_common_filters_stand_in_the_first_row_and_the_others_behind_a_button(form):
    app = form()
    behind = next(part for part in app.expander if part.label == "More filters")
    shown = [str(field.key) for kind in (app.selectbox, app.text_input, app.toggle) for field in kind]
    inside = [str(field.key) for kind in (behind.selectbox, behind.text_input, behind.toggle) for field in kind]
    assert set(inside) == {f"assign_{key}" for key in SECOND_ROW}
    assert {f"assign_{key}" for key in FIRST_ROW} <= set(shown) - set(inside)
    assert "must all hold for one and the same criterion of a response" in check(app)


def test_the_filters_have_the_words_of_browse(form, study, open_page):
    words = {
        str(box.key).removeprefix("assign_"): (box.label, box.options)
        for box in form().selectbox
        if str(box.key).startswith("assign_")
    }
    browse = {str(box.key): (box.label, box.options) for box in open_page(study.location, "browse", LEAD).selectbox}
    assert {key: words[key] for key in words if key not in ("reads", "specialty")} == {
        key: browse[key] for key in words if key not in ("reads", "specialty")
    }
    assert words["reads"] == ("Physicians so far", list(filters.READS.values()))


@pytest.mark.parametrize(
    ("chosen", "n_fitting"),
    few(
        [
            ({"label": "not_met"}, 2),
            ({"label": "not_met", "sign": "desirable"}, 0),
            ({"differ": True}, 1),
            ({"q": "kelbrunth"}, 1),
            ({}, 3),
            ({"label": "met"}, 3),
            ({"sign": "undesirable"}, 2),
            ({"sign": "desirable"}, 3),
            ({"judge": "Wren"}, 1),
            ({"axis": "accuracy"}, 3),
            ({"q": "does"}, 3),
        ],
        4,
    ),
)
def test_each_filter_narrows_what_is_assigned(form, chosen, n_fitting):
    said = checked(form(**chosen))
    if n_fitting:
        assert f"{n_fitting} of {n_fitting} items that fit" in said
    else:
        assert "Nothing is left to assign: no item fits." in said


def test_what_was_chosen_behind_the_button_is_told_and_kept_with_the_assignment(form, study):
    app = form(label="not_met", judge=world.JUDGE, sign="undesirable")
    chips = [part.proto.body for part in app.get("html") if "or-chips" in part.proto.body]
    assert re.findall(r"<span[^>]*>([^<]*)</span>", "".join(chips)) == [
        "Magpie",
        "judge says not met",
        "points -10 to -1",
    ]
    app.button(key="assign").click().run()
    assert "2 responses assigned." in check(app)
    ((chosen_by,),) = world.rows(study.engine, "SELECT chosen_by FROM assignment")
    assert json.loads(chosen_by) == {"judge": world.JUDGE, "label": "not_met", "points_to": -1}


@pytest.mark.parametrize("chosen", [{"differ": True}, {"label": "not_met"}, {"q": "kelbrunth"}, {"reads": "unread"}])
def test_filters_on_what_was_said_leave_out_what_waits_for_ones_own_first_read(form, study, chosen):
    world.assigned(study, ask="response_acuity", readers=(BOTH,), n_readers=1)
    said = checked(form(BOTH, **chosen))
    assert "Nothing is left to assign: no item fits." in said
    assert "conversations that wait for your own read or decision are left out" in said
    said = checked(form(LEAD, **chosen))
    assert " would be assigned" in said
    assert "Conversations that wait for you, to be read or settled," not in said


def test_the_page_asks_once_a_run_what_waits_for_the_viewer(form, monkeypatch):
    asked = []
    known = common.blind

    def counted(person):
        asked.append(person.name)
        return known(person)

    app = form(BOTH)
    monkeypatch.setattr(common, "blind", counted)
    app.run()
    assert asked == [BOTH]


def test_who_may_not_assign_has_no_filters(form):
    app = form(READER)
    assert "Only leads can assign reading;" in check(app)
    assert not [box for box in app.selectbox if str(box.key).startswith("assign_")]

"""The first screen: what Overread is, what each role does next, a tour a role that can be left and taken again, and the words."""

import re
from pathlib import Path

import pytest

from evalcore.study.schema import Role
from pages.shared import glossary, routes, tour
from tests.page_steps import LEAD, PHYSICIAN, ROOT, Open, said, words


def test_who_has_chosen_nobody_reads_what_this_is_that_the_demo_is_fictional_and_what_each_role_does(
    demo_study: str, open_page: Open
):
    shown = said(open_page(demo_study, "overview", None))
    assert tour.WHAT in shown
    assert tour.FICTIONAL in shown
    for role in Role:
        assert f" {role} {tour.NEXT[role]}" in shown


def test_the_tour_goes_step_by_step_can_be_left_and_taken_again(demo_study: str, open_page: Open):
    app = open_page(demo_study, "overview", PHYSICIAN)
    steps = [step for _, step in tour.STEPS[Role.REVIEWER]]
    for place, step in enumerate(steps, start=1):
        assert f"step {place} of {len(steps)}" in said(app)
        assert step in said(app)
        if place < len(steps):
            app.button(key="tour_next").click().run()
    app.button(key="tour_leave").click().run()
    assert steps[-1] not in said(app)
    app.button(key="tour_again").click().run()
    assert steps[0] in said(app)


def test_who_has_two_roles_chooses_whose_tour(demo_study: str, open_page: Open):
    app = open_page(demo_study, "overview", LEAD)
    assert tour.STEPS[Role.LEAD][0][1] in said(app)
    app.segmented_control(key="tour_role").set_value(Role.RESEARCHER).run()
    assert tour.STEPS[Role.RESEARCHER][0][1] in said(app)


@pytest.mark.parametrize("role", list(Role))
def test_a_tour_has_five_steps_at_most_each_about_a_page_that_is_there(role: Role):
    assert 0 < len(tour.STEPS[role]) <= 5
    assert all((Path(ROOT) / routes.script(page)).exists() for page, _ in tour.STEPS[role])


def test_every_word_of_the_glossary_is_explained_once_and_help_finds_it():
    meanings = glossary.meanings()
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (ROOT / "docs/glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert rows[0] == ("word", "meaning")
    assert list(meanings.items()) == rows[1:]
    assert len(meanings) == len({word for word, _ in rows[1:]})
    assert glossary.helps("judge", "lock") == f"Judge: {meanings['judge']}.\n\nLock: {meanings['lock']}."


def test_the_words_are_on_every_page_once_they_are_opened(demo_study: str, open_page: Open):
    meaning = glossary.meanings()["corrected score"]
    for page in ("browse", "review"):
        app = open_page(demo_study, page, PHYSICIAN)
        assert meaning not in words(app)
        app.session_state["words"] = True
        assert meaning in words(app.run())


@pytest.mark.parametrize(
    ("page", "term"),
    [
        ("judges", "blind first read"),
        ("models", "claim, reach"),
        ("triage", "gold"),
        ("calibration", "calibration"),
        ("export", "reference label"),
    ],
)
def test_a_page_of_results_explains_its_terms_beside_them(page: str, term: str, demo_study: str, open_page: Open):
    app = open_page(demo_study, page, LEAD)
    beside = [one.proto.help for one in [*app.subheader, *app.selectbox]]
    assert any(glossary.meanings()[term] in told for told in beside)

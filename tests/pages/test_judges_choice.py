"""Which judge the Judges page shows first, where it needs none, and that its numbers are made once."""

from collections.abc import Iterator
from functools import partial
from pkgutil import resolve_name

import pytest

from evalcore.study.schema import Label
from tests import world
from tests.page_steps import Open, few, said as words
from tests.pages.test_judges_page import IMANI, LEAD, TOVE, imported, links


@pytest.fixture
def half_read(location: str) -> Iterator[world.World]:
    """Auk labelled the first conversation and Magpie the second, two criteria each; physicians have read the second alone."""
    made = world.made(location, judged="  ++")
    for criterion in (0, 1):
        world.judged(made, "Auk", Label.MET, criterion=criterion)
    for name, label in ((IMANI, Label.MET), (TOVE, Label.NOT_MET)):
        imported(made, label, name=name, example=1)
    yield made
    made.engine.dispose()


@pytest.fixture
def half_opened(half_read: world.World, open_page: Open) -> Open:
    return partial(open_page, half_read.location, "judges")


@pytest.mark.parametrize("section", ["Record", "Against physicians", "Criteria", "Versions and families"])
def test_the_judge_that_physicians_have_read_beside_is_shown_first(section, half_opened):
    app = half_opened(LEAD, judges_show=section)
    assert app.selectbox[0].options == ["Auk", "Magpie"]
    assert app.selectbox[0].value == "Magpie"
    assert "Judge Magpie beside 2 blind first reads of criteria in 1 conversation" in words(app)


def test_a_judge_without_a_read_names_those_that_have_one(half_opened):
    app = half_opened(LEAD, judges_judge="Auk")
    assert "Physicians have read what Magpie labelled: choose one of these above." in words(app)
    assert not links(app)


def test_where_the_judge_labelled_nothing_that_was_read_the_criteria_show_physicians_alone(half_opened):
    app = half_opened(LEAD, judges_show="Criteria", judges_judge="Auk", criteria_by="Axis")
    assert "This judge has labelled none of the items that physicians have read" in words(app)
    assert not app.get("plotly_chart")
    assert list(app.dataframe[0].value) == ["Axis", "Reads", "Readers differ"]


def test_between_physicians_no_judge_is_chosen(both_read, open_judges):
    app = open_judges(LEAD, judges_show="Between physicians")
    assert not app.selectbox
    assert [toggle.label for toggle in app.toggle] == ["Count judges as raters", "More coefficients"]


def test_between_physicians_no_judge_is_needed(location, open_page):
    made = world.made(location, judged="    ")
    for name in (IMANI, TOVE):
        imported(made, Label.MET, name=name)
    made.engine.dispose()
    app = open_page(location, "judges", LEAD, judges_show="Between physicians")
    assert "Two physicians who label the same criterion agree 100 %" in words(app)
    assert [toggle.label for toggle in app.toggle] == ["More coefficients"]
    app = open_page(location, "judges", LEAD, judges_show="Criteria")
    assert "No judge has labelled anything yet" in words(app)
    assert links(app) == ["Import a file"]


def test_ones_own_read_of_what_waits_does_not_tell_the_judges_label(location, open_page):
    made = world.made(location, models=("Alder-2", "Birch-1"))
    imported(made, Label.MET, name=IMANI)  # of one response; the other one of the conversation waits for her
    world.assigned(made)
    made.engine.dispose()
    assert "100 % (1/1)" in words(open_page(location, "judges", LEAD))
    shown = words(open_page(location, "judges", IMANI))
    assert "Nothing about this judge can be shown to you yet" in shown
    assert "(1/1)" not in shown


@pytest.mark.parametrize(
    ("section", "metric"),
    few(
        [
            ("Record", "judges.record.metric.judge_record"),
            ("Against physicians", "judges.quality.error_rates"),
            ("Criteria", "judges.criteria.metric.criterion_health"),
            ("Between physicians", "judges.agreement.pair_agreement"),
            ("Versions and families", "judges.versions.self_preference.self_preference"),
        ],
        2,
    ),
)
def test_numbers_are_made_once_and_anew_when_the_study_changes(section, metric, both_read, open_judges, monkeypatch):
    module, _, name = f"pages.{metric}".rpartition(".")
    made, calls = getattr(resolve_name(module), name), []
    monkeypatch.setattr(
        resolve_name(module), name, lambda *arguments, **named: calls.append(1) or made(*arguments, **named)
    )
    for _ in range(2):
        words(open_judges(LEAD, judges_show=section))
    assert len(calls) == 1
    imported(both_read, Label.MET, name="another")
    words(open_judges(LEAD, judges_show=section))
    assert len(calls) == 2

"""The sections Criteria, and Versions and families, of the Judges page; and their figures."""

import pytest

from evalcore.judges import figures
from evalcore.judges.criterion_health import criterion_health
from evalcore.judges.drift import flips, score_drift
from evalcore.judges.self_preference import by_label
from evalcore.study import contents, families, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import RaterKind, Selection, Stage, Verdict
from tests import world
from tests.page_steps import said as words
from tests.rubric_rows import of_columns

LEAD, IMANI = "Ana Ruiz", "Dr. Imani Noor"
HOSTILE = "<b>x</b>"


@pytest.fixture
def small(location):
    """Two conversations of two criteria; the judge says met, not met, met, met."""
    made = world.made(location, judged="+-++")
    yield made
    made.engine.dispose()


@pytest.fixture
def opened(small, open_page):
    def opens(section, name=LEAD, **query):
        return open_page(small.location, "judges", name, judges_show=section, **query)

    return opens


def say(small, kind, name, labels, **more):
    """Labels on the four criteria."""
    items = [(example, criterion) for example in (0, 1) for criterion in (0, 1)]
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, kind, name)
        given = [
            Verdict(example_id=example + 1, rater_id=rater, label=world.LABELS[label], **small.item(example, criterion), **more)
            for (example, criterion), label in zip(items, labels, strict=True)
            if label in world.LABELS
        ]  # fmt: skip
        store.add_verdicts(session, given, actor="set-up", action="file imported")


def read(small, name, labels):
    drawn = {"blinded": True, "selection": Selection.RANDOM, "inclusion_probability": 0.5}
    say(small, RaterKind.REVIEWER, name, labels, stage=Stage.FIRST, **drawn)


# ---------------------------------------------------------------- pages


def test_without_a_blind_read_the_criteria_say_so(opened):
    assert "No physician has read any of these criteria blind yet." in words(opened("Criteria", criteria_by="Axis"))


def test_without_categories_the_criteria_open_by_axis_and_say_where_to_look(small, opened):
    read(small, IMANI, "+-+-")
    assert "axis that physicians have read" in words(opened("Criteria"))
    assert "No criterion that physicians have read belongs to a category" in words(
        opened("Criteria", criteria_by="Category")
    )


def test_the_criteria_are_listed_with_what_judge_and_physicians_find(small, opened):
    read(small, IMANI, "+-+-")
    read(small, "Dr. Tove Lind", "+--?")
    found = words(opened("Criteria", criteria_by="Axis"))
    # judge met on 3 of 4; votes 1, 0, 1/2, 0: 1.5 of 4
    assert "No alarm on the one axis that physicians have read." in found
    assert "75 % [" in found
    assert "38 % [" in found
    assert "33 % (1/3)" in found  # pairs of reads that differ
    assert "12 % (1/8)" in found  # reads that could not assess
    by_text = words(opened("Criteria", criteria_by="One criterion"))
    assert "Names warning sign 1." in by_text


def test_conversations_that_wait_for_the_viewers_own_read_are_left_out(small, opened):
    read(small, "Dr. Tove Lind", "+-+-")
    world.assigned(small)
    assert "No alarm on the one axis" in words(opened("Criteria", LEAD, criteria_by="Axis"))
    assert "No physician has read any" in words(opened("Criteria", IMANI, criteria_by="Axis"))


def test_one_judge_has_nothing_to_be_compared_with(opened):
    assert "This study has one judge." in words(opened("Versions and families"))


def test_two_versions_are_compared_by_flips_and_scores(small, opened):
    say(small, RaterKind.JUDGE, "Magpie 2", "+--+", stage=Stage.JUDGE)
    found = words(opened("Versions and families", judges_judge="Magpie 2"))
    assert "Magpie 2 gives another label than Magpie on 25 % (1/4) [" in found
    assert "neither says met more often beyond chance (p = 1.00)" in found
    assert "1.00 (exact)" in found
    # scores: (7/7 + 8/8)/2 = 1 before; (7/7 + 3/8)/2 after
    assert "−0.312" in found
    assert "Without a family: Alder-2, Magpie, Magpie 2." in found


def test_a_model_known_from_a_waiting_conversation_alone_is_not_named(small, opened):
    world.assigned(small)
    assert "Alder-2" in words(opened("Versions and families", LEAD))
    assert "Alder-2" not in words(opened("Versions and families", IMANI))


def test_who_may_not_change_the_table_of_families_cannot_save_it(small, opened):
    app = opened("Versions and families", IMANI)
    assert "Only leads and researchers can change the table of families;" in words(app)
    assert app.button(key="families_save").disabled
    assert app.button(key="families_reset").disabled


def test_a_lead_saves_a_table_and_goes_back_to_that_of_overread(small, opened):
    app = opened("Versions and families")
    assert app.button(key="families_reset").disabled
    app.button(key="families_save").click().run()
    assert "This is the own table of this study." in words(app)
    with reading(small.engine) as session:
        assert contents.own_families(session) == families.default()
    app.button(key="families_reset").click().run()
    assert "This is the table that comes with Overread." in words(app)
    assert small.events()[-2:] == [(LEAD, "families set")] * 2


# ---------------------------------------------------------------- figures


@pytest.fixture
def rubric_data():
    n = 12
    return of_columns(
        example=list(range(1, n + 1)) * 2,
        criterion=[1] * (2 * n),
        model=["Alder"] * n + [HOSTILE] * n,
        judges={"old": "+-" * n, "new": "++" * n},
        readers={"Dr. A": "+-" * n},
        cluster=[HOSTILE, "hedging"] * n,
    )


def drawn(figure):
    """Everything that Plotly would draw as text."""
    text = figure.to_json()
    assert "\\u003cb\\u003ex" not in text
    assert "<b>x" not in text
    return text


def test_the_figure_of_criteria_draws_both_shares_of_each_group_and_no_markup(rubric_data):
    table = criterion_health(rubric_data, "new").assign(words=[HOSTILE, "hedging"], alarms=["", "too lenient"])
    figure = figures.health(table, HOSTILE)
    drawn(figure)
    assert list(figure.data[0].x) == table["judge"].tolist()
    assert list(figure.data[1].x) == table["physicians"].tolist()
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;x&lt;/b&gt;", "hedging  <b>too lenient</b>"]


def test_the_figures_of_versions_draw_what_they_are_given(rubric_data):
    table = flips(rubric_data, "old", "new", by=("category",)).assign(words=HOSTILE, n_not_met_before=6)
    figure = figures.flips(table)
    drawn(figure)
    # of the first category every label was met: no share of what was not met
    assert [list(trace.x) for trace in figure.data] == [[0.0], [1.0]]
    scores = score_drift(rubric_data, "old", "new").assign(words=HOSTILE)
    figure = figures.score_drift(scores, {"Alder": "#0072B2"})
    drawn(figure)
    assert list(figure.data[-1].x) == scores["score_after"].tolist()


def test_the_figure_of_the_own_family_draws_each_label_and_both_together(rubric_data):
    table = by_label(rubric_data, "new", {"new": "A", "Alder": "A", HOSTILE: HOSTILE})
    together = table["label"].eq("together")
    figure = figures.own_family(table.assign(words=table["label"] + " " + table["sign"], is_together=together))
    drawn(figure)
    assert [list(trace.x) for trace in figure.data] == [
        (100 * table.loc[mine, "difference"]).tolist() for mine in (together, ~together)
    ]

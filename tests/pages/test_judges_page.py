"""The Judges page: what it says of a judge and of its pull, to whom, and what it says where there is nothing yet."""

import math
import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from evalcore.judges.anchoring import OVERALL, anchoring
from evalcore.judges.figures import among_physicians, by_category, shift
from evalcore.reading import reviewing
from evalcore.reading.reviewing import Decision
from evalcore.study.schema import Label, Role
from tests import world
from tests.drawn_reads import reads_of
from tests.page_steps import few, said as words

LEAD, IMANI, TOVE = "Ana Ruiz", "Dr. Imani Noor", "Dr. Tove Lind"
TITLE = "Record of the judge"
HOSTILE = "![](http://canary.invalid/x) <b>$1$</b> :red[x]"
NOT_EQUAL = "No read was drawn with a known probability"


def main_words(app: AppTest) -> str:
    """As `words`, without the sidebar's foot, which names the viewer."""
    return words(app).replace("Change reader", "")


def read_all(small: world.World, name: str, labels: dict[int, str], decisions: dict[int, str]) -> None:
    """Read both conversations (labels by conversation from 1), then decide the first criterion of each; the rest is kept."""
    viewer = small.viewer(name)
    while (desk := reviewing.take(small.engine, viewer)) is not None:
        number = world.answer(small, viewer, desk, labels[desk.asked.example_id])
        world.lock(small.engine, viewer, number)
        desk = reviewing.open_review(small.engine, viewer, number)
        for key in desk.undecided:
            label = decisions.get(desk.asked.example_id) if key == desk.keys[0] else None
            kept = Label(desk.first[key].label) if label is None else world.LABELS[label]
            reviewing.revise(small.engine, viewer, number, key, Decision(kept), seen=None)
        reviewing.finish(small.engine, viewer, number)


def imported(small: world.World, label: Label, *, name: str = "hash", example: int = 0, criterion: int = 0) -> None:
    """A blind first read as a file brings it."""
    world.said(small, label, name=name, example=example, criterion=criterion, blinded=True)


# ---------------------------------------------------------------- what it says


@pytest.mark.parametrize("name", few([IMANI, LEAD, TOVE], 2))
def test_everybody_sees_the_record_and_the_shift_with_counts(name, both_read, open_judges):
    shown = words(open_judges(name))
    assert TITLE in shown
    assert "Judge Magpie beside 8 blind first reads of criteria in 2 conversations" in shown
    # right: Imani on 1.2, 2.1, 2.2 and Tove on 2.2 of 8; undesirable is 1.2 alone: Imani yes, Tove no
    for kind, share in (("all criteria", "50 % (4/8)"), ("desirable", "50 % (3/6)"), ("undesirable", "50 % (1/2)")):
        assert re.search(rf"^{re.escape(share)} \[\d+ %, \d+ %\]$", shown, re.MULTILINE), kind
    assert re.search(r"12 % \(1/8\) \[\d+ %, \d+ %\] of the first reads were changed", shown)
    assert re.search(
        r"25 % \(1/4\) \[\d+ %, \d+ %\] of the first reads that differed from the judge were changed to its label",
        shown,
    )
    assert re.search(
        r"0 % \(0/4\) \[\d+ %, \d+ %\] of the first reads that agreed with the judge were changed away from its label",
        shown,
    )
    assert "First reads left out" not in shown
    assert "Wilson" in shown


def test_the_judge_is_chosen_in_the_address(both_read, open_judges):
    world.judged(both_read, "Wren", Label.NOT_MET)
    shown = words(open_judges(LEAD, judges_judge="Wren"))
    assert "Judge Wren beside 2 blind first reads of criteria in 1 conversation" in shown
    assert "100 % (2/2)" in shown
    assert "This judge's label has not been shown after a blind read yet" in shown
    assert "Judge Magpie beside 8" in words(open_judges(LEAD, judges_judge="nobody"))


def test_a_judges_name_that_looks_like_markdown_or_html_stays_words(two_conversations, open_judges):
    world.judged(two_conversations, HOSTILE, Label.NOT_MET)
    imported(two_conversations, Label.MET)
    app = open_judges(LEAD, judges_judge=HOSTILE)
    bodies = "\n".join(element.proto.body for element in app.get("html"))
    assert "![](http://canary.invalid/x) &lt;b&gt;$1$&lt;/b&gt; :red[x]" in bodies
    assert not app.markdown


# ---------------------------------------------------------------- who sees what


def test_readers_are_named_to_the_lead_alone(both_read, open_judges):
    lead = words(open_judges(LEAD))
    assert "By reader" in lead
    assert IMANI in lead
    assert TOVE in lead
    physician = main_words(open_judges(IMANI))
    assert "By reader" not in physician
    assert TOVE not in physician


def test_a_lead_who_reads_too_sees_no_names_while_anything_waits_for_them(two_conversations, open_judges):
    sol = "Dr. Sol Reyes"
    world.add_researcher(two_conversations.engine, sol, Role.LEAD, Role.REVIEWER)
    world.leads_read(two_conversations.engine)
    world.assigned(two_conversations, n_readers=3)
    read_all(two_conversations, IMANI, {1: "--", 2: "++"}, {})
    read_all(two_conversations, TOVE, {1: "-+", 2: "-+"}, {})
    desk = reviewing.take(two_conversations.engine, two_conversations.viewer(sol))
    number = world.answer(
        two_conversations, two_conversations.viewer(sol), desk, "+-" if desk.asked.example_id == 1 else "++"
    )
    world.lock(
        two_conversations.engine, two_conversations.viewer(sol), number
    )  # agrees throughout; the other conversation waits
    shown = words(open_judges(sol))
    assert (
        "Judge Magpie beside 4 blind first reads of criteria in 1 conversation" in shown
    )  # a lead's own are not blind
    assert TOVE not in shown
    assert IMANI not in shown
    read_all(two_conversations, sol, {1: "+-", 2: "++"}, {})
    shown = words(open_judges(sol))
    assert "Judge Magpie beside 8 blind first reads" in shown
    assert TOVE in shown


def test_a_reader_with_blind_items_waiting_sees_nothing_of_the_reads_on_them(two_conversations, open_judges):
    world.assigned(two_conversations)
    read_all(two_conversations, TOVE, {1: "-+", 2: "-+"}, {})
    imported(two_conversations, Label.MET, name="0" * 64)  # of the first conversation too
    app = open_judges(IMANI)
    shown = main_words(app)
    assert "Nothing about this judge can be shown to you yet" in shown
    assert not app.dataframe
    assert TOVE not in shown
    assert "Judge Magpie beside 4 blind first reads" in words(open_judges(LEAD))


def test_what_waits_for_a_reader_is_left_out_until_they_have_read_it(two_conversations, open_judges):
    world.assigned(two_conversations)
    read_all(two_conversations, TOVE, {1: "-+", 2: "-+"}, {})
    viewer = two_conversations.viewer(IMANI)
    desk = reviewing.take(two_conversations.engine, viewer)
    number = world.answer(two_conversations, viewer, desk, "+-" if desk.asked.example_id == 1 else "++")
    world.lock(two_conversations.engine, viewer, number)  # agrees throughout: done; the other conversation still waits
    shown = main_words(open_judges(IMANI))
    assert "Judge Magpie beside 4 blind first reads of criteria in 1 conversation" in shown
    assert "Conversations that wait for you, to be read or settled, are left out of all numbers here." in shown
    assert TOVE not in shown
    assert "Judge Magpie beside 6 blind first reads of criteria in 2 conversations" in words(open_judges(LEAD))


def test_nobody_sees_anything(both_read, open_judges):
    app = open_judges(None, alone=True)
    assert "Choose who is reading first" in words(app)
    assert TITLE not in words(app)
    assert not app.dataframe


# ---------------------------------------------------------------- one section at a time

SECTIONS = ("Against physicians", "Criteria", "Between physicians", "Versions and families")


def test_the_record_comes_first_and_the_address_names_another_section(both_read, open_judges):
    app = open_judges(LEAD)
    (control,) = (group for group in app.get("button_group") if group.label == "Show")
    assert list(control.options) == ["Record", *SECTIONS]
    assert control.value == "Record"
    assert TITLE in words(app)
    assert TITLE not in words(open_judges(LEAD, judges_show="Against physicians"))
    assert TITLE in words(open_judges(LEAD, judges_show="no such section"))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_opens_for_everybody_and_without_a_read(section, two_conversations, open_judges):
    for name in (LEAD, IMANI):
        assert "blind first reads of criteria in 0 conversations" in words(open_judges(name, judges_show=section))


@pytest.mark.parametrize("section", ["Record", *SECTIONS])
def test_only_the_chosen_section_is_computed(section, both_read, open_judges, monkeypatch):
    modules = ("record", "quality", "criteria", "agreement", "versions")
    computed = []
    for module in modules:
        monkeypatch.setattr(f"pages.judges.{module}.show", lambda *_, module=module: computed.append(module))
    words(open_judges(LEAD, judges_show=section))
    assert computed == [modules[("Record", *SECTIONS).index(section)]]


# ---------------------------------------------------------------- against physicians


def test_against_physicians_it_says_what_it_found_and_shows_the_tables(both_read, open_judges):
    shown = words(open_judges(LEAD, judges_show="Against physicians"))
    assert "Judges against physicians" in shown
    assert "Judge Magpie beside 8 blind first reads of criteria in 2 conversations" in shown
    # judge + - + + against (- -)(- +)(+ -)(+ +): both 3, judge alone 3, physician alone 1, neither 1: (6/10 + 2/6) / 2
    # physicians against one another: both 2, alone 2 and 2, neither 2: 1/2
    assert re.search(
        r"Magpie agrees with physicians at a balanced F1 of 0\.47(, no interval| \[[\d., ]+\]); "
        r"physicians among themselves reach 0\.50(, no interval| \[[\d., ]+\]), all together; "
        r"a percentile needs 10 physicians with more than 50 pairs, and no physicians have",
        shown,
    )
    for share in ("75 % (3/4)", "25 % (1/4)"):
        assert re.search(rf"^{re.escape(share)} \[\d+ %, \d+ %\]$", shown, re.MULTILINE), share
    assert "arXiv 2505.08775" in shown
    assert "Shown: drawn reads, 8 drawn at random" in shown
    assert NOT_EQUAL not in shown
    assert "majority" not in shown.partition("A pair is a judge's label")[0]  # one judge is no jury


def test_a_second_judge_stands_beside_the_first_with_their_jury(both_read, open_judges):
    world.judged(both_read, "Wren", Label.NOT_MET)
    app = open_judges(LEAD, judges_show="Against physicians", judges_judge="Wren")
    shown = words(app)
    assert "undefined: it never says met" in shown
    assert [box.value for box in app.multiselect] == [["Magpie"]]
    assert "mean of 2 judges" in shown  # the majority has no pair: they differ on the only criterion that both labelled
    assert (
        "Of 4 criteria that any of the 2 judges labelled, 0 have a majority (0 unanimous), 1 is tied, and 3 have too few labels"
        in shown
    )
    alone = app.multiselect[0].set_value([]).run()
    assert "of 2 judges" not in words(alone)


def test_physicians_are_named_in_the_figure_to_the_lead_alone_and_min_pairs_is_in_the_address(both_read, open_judges):
    for name, is_named in ((LEAD, True), (IMANI, False)):
        app = open_judges(name, judges_show="Against physicians", judges_min_pairs="1")
        assert "with more than 1 pairs, and 2 physicians have" in words(app)
        figures = "".join(chart.proto.spec for chart in app.get("plotly_chart"))
        assert "all criteria" in figures
        assert (TOVE in figures) is is_named


def test_against_physicians_a_reader_sees_nothing_of_reads_on_what_waits_for_them(two_conversations, open_judges):
    world.assigned(two_conversations)
    read_all(two_conversations, TOVE, {1: "-+", 2: "-+"}, {})
    app = open_judges(IMANI, judges_show="Against physicians")
    shown = main_words(app)
    assert "Judge Magpie beside 0 blind first reads of criteria in 0 conversations" in shown
    assert "Conversations that wait for you, to be read or settled, are left out of all numbers here." in shown
    assert "No physician has read blind what these judges have labelled" in shown
    assert not app.dataframe
    assert "balanced F1 of 0." in words(open_judges(LEAD, judges_show="Against physicians"))


def test_a_hostile_name_stays_words_against_physicians_too(two_conversations, open_judges):
    world.judged(two_conversations, HOSTILE, Label.NOT_MET)
    imported(two_conversations, Label.MET)
    app = open_judges(LEAD, judges_judge=HOSTILE, judges_show="Against physicians")
    assert NOT_EQUAL in words(app)  # an imported read of which no drawing is known
    bodies = "\n".join(element.proto.body for element in app.get("html"))
    assert "The balanced F1 of ![](http://canary.invalid/x) &lt;b&gt;$1$&lt;/b&gt; :red[x] is undefined" in bodies
    assert "<b>$1$" not in "".join(chart.proto.spec for chart in app.get("plotly_chart"))
    assert not app.markdown


# ---------------------------------------------------------------- nothing to show yet


def links(app: AppTest) -> list[str]:
    """Labels of the links on the page."""
    return [link.proto.label for link in app.get("page_link")]


def test_without_a_judge_it_says_to_import_one(two_conversations, open_judges):
    world.tampered(
        two_conversations.engine, "DROP TRIGGER IF EXISTS verdict_no_delete", "DELETE FROM verdict", "DELETE FROM rater"
    )
    app = open_judges(LEAD)
    assert "No judge has labelled anything yet" in words(app)
    assert links(app) == ["Import a file"]


def test_without_a_blind_read_it_says_what_to_do(two_conversations, open_judges):
    app = open_judges(LEAD)
    assert "No physician has read blind what this judge has labelled" in words(app)
    assert links(app) == ["Go to Study"]
    assert [box.value for box in app.selectbox] == [world.JUDGE]


def test_with_reads_and_no_reveal_it_shows_the_record_and_says_why_there_is_no_shift(two_conversations, open_judges):
    imported(two_conversations, Label.MET)
    app = open_judges(LEAD)
    shown = words(app)
    assert "100 % (1/1)" in shown
    assert "This judge's label has not been shown after a blind read yet" in shown
    assert [chart.key for chart in app.get("plotly_chart")] == ["record_forest"]


# ---------------------------------------------------------------- the figure


def test_the_figure_draws_each_share_with_its_interval_and_nothing_where_there_is_none():
    rows = [{"example": e, "first": "+", "says": "-", "revised": "-" if e < 2 else ""} for e in range(8)]
    rows += [{"example": e, "axis": "<b>odd</b>", "points": -3, "first": "+", "says": "+"} for e in range(8, 12)]
    table = anchoring(reads_of(rows), by=[OVERALL, "kind"])
    figure = shift(table)
    assert isinstance(figure, go.Figure)
    rows_shown = list(figure.layout.yaxis.ticktext)
    assert rows_shown == ["overall", "&lt;b&gt;odd&lt;/b&gt;, undesirable", "accuracy, desirable"]
    dots = {
        trace.name: {rows_shown[place]: x for place, x in zip(trace.y, trace.x, strict=True)} for trace in figure.data
    }
    assert dots == {
        "Toward the judge": {"overall": 0.25, "accuracy, desirable": 0.25},
        "Away from the judge": {"overall": 0, "&lt;b&gt;odd&lt;/b&gt;, undesirable": 0},
    }
    ends = [
        (x - below, x + above)
        for trace in figure.data
        for x, below, above in zip(trace.x, trace.error_x.arrayminus, trace.error_x.array, strict=True)
    ]
    known = table.loc[table["movement"].ne("changed") & table["n"].gt(0)]
    assert np.allclose(sorted(ends), sorted(zip(known["low"], known["high"], strict=True)))


def test_the_category_figure_draws_both_sides_and_nothing_where_a_value_is_undefined():
    table = pd.DataFrame(
        {
            "category": ["<b>odd</b>", "second"],
            "judge": [0.5, math.nan],
            "judge_low": [0.4, math.nan],
            "judge_high": [0.7, math.nan],
            "judge_pairs": [60, 8],
            "physicians": [0.6, 0.8],
            "physicians_low": [0.55, math.nan],
            "physicians_high": [0.65, math.nan],
            "physicians_pairs": [40, 6],
        }
    )
    judge, physicians = by_category(table, "<i>Magpie</i>").data
    assert judge.name == "&lt;i&gt;Magpie&lt;/i&gt;"
    assert list(judge.x) == [0.5]
    assert list(physicians.x) == [0.6, 0.8]
    assert (judge.error_x.array[0], judge.error_x.arrayminus[0]) == pytest.approx((0.2, 0.1))
    assert math.isnan(physicians.error_x.array[1])
    assert round(judge.y[0]) == round(physicians.y[0]) == 0
    assert by_category(table, "Magpie").layout.yaxis.ticktext == ("&lt;b&gt;odd&lt;/b&gt;", "second")


def test_the_figure_among_physicians_has_a_tick_each_and_the_judge_in_its_row():
    judge = pd.DataFrame({"words": ["all criteria", "hedging"], "balanced_f1": [0.7, math.nan], "n_pairs": [90, 0]})
    physicians = pd.DataFrame(
        {
            "words": ["hedging", "all criteria"],
            "name": ["<b>Dr. X</b>", "a physician"],
            "balanced_f1": [0.4, 0.6],
            "n_pairs": [51, 52],
        }
    )
    ticks, dot = among_physicians(judge, physicians).data
    assert dict(zip(ticks.x, ticks.y, strict=True)) == {0.4: 1, 0.6: 0}
    assert ticks.customdata[0][0] == "&lt;b&gt;Dr. X&lt;/b&gt;"
    assert (list(dot.x), list(dot.y)) == ([0.7], [0])

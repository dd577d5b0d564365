"""The Overview page: what it says to whom, what the study is made of, and what a blind reader is not told."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from evalcore.reading import queries
from evalcore.rubric import composition
from evalcore.rubric.composition import GROUPINGS, Grouping, parts
from evalcore.rubric.figures import PUBLISHED, groups_read
from evalcore.stats.intervals import interval_words
from evalcore.study.db import reading
from evalcore.study.schema import Role
from evalcore.study.tables import now
from pages.shared import common
from tests import world
from tests.page_steps import Open, few
from tests.rubric.test_composition import made_of

LEAD, IMANI, TOVE = "Ana Ruiz", "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def small(location: str) -> Iterator[world.World]:
    """Two conversations of two criteria; two reviewers, a lead."""
    made = world.made(location, judged="+-++")
    yield made
    made.engine.dispose()


@pytest.fixture
def opened(small: world.World, open_page: Open) -> Open:
    """Opens the Overview as somebody."""

    def opens(name: str, **query: str) -> AppTest:
        app = open_page(small.location, "overview", name, **query)
        assert not app.exception, [error.value for error in app.exception]
        return app

    return opens


def said(app: AppTest) -> str:
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    links = [link.proto.label for link in app.get("page_link")]
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", part) for part in (*html, *links))).replace("\xa0%", " %")


def chart(app: AppTest, start: str = "composition_") -> dict[str, Any]:
    """The figure whose key begins so."""
    (found,) = (json.loads(drawn.proto.spec) for drawn in app.get("plotly_chart") if drawn.key.startswith(start))
    return found


def beside(figure: dict[str, Any]) -> dict[str, str]:
    """The words on the right of each row of a figure, by what stands on the left."""
    words = [note["text"] for note in figure["layout"]["annotations"]]
    return dict(zip(figure["layout"]["yaxis"]["ticktext"], words, strict=True))


def table(app: AppTest) -> pd.DataFrame:
    (found,) = app.dataframe
    return found.value


# ---------------------------------------------------------------- to whom


def test_a_reader_is_told_what_waits_and_what_they_have_read(small: world.World, opened):
    world.assigned(small)
    shown = said(opened(IMANI))
    assert "2 responses to review" in shown
    assert "You have no verdicts yet" in shown
    assert "Read so far" not in shown
    assert "seven days" not in shown
    world.submitted(small, IMANI, "++")
    shown = said(opened(IMANI))
    assert "1 response to review" in shown
    assert "You have read 1 response (2 items), the last on" in shown


def test_an_adjudicator_is_told_what_waits_to_be_settled(small: world.World, opened):
    world.add_researcher(small.engine, "Dr. Rui Sato", Role.ADJUDICATOR)
    assert "Adjudicate: nothing waits for you to settle" in said(opened("Dr. Rui Sato"))
    world.assigned(small, readers=(IMANI, TOVE))
    world.submitted(small, IMANI, "++")
    world.submitted(small, TOVE, "--")
    assert "2 items on 1 response or case wait for you to settle" in said(opened("Dr. Rui Sato"))


def test_a_lead_sees_how_far_assigned_reading_and_each_reader_is_and_until_when_at_this_pace(
    small: world.World, opened
):
    assert all(drawn.key != "overview_progress" for drawn in opened(LEAD).get("plotly_chart"))
    world.assigned(small)
    assert beside(chart(opened(LEAD), "overview_progress")) == {"All assigned reading": "0 of 4: no pace yet"}
    world.submitted(small, IMANI, "++", at=now())
    app = opened(LEAD)
    done = now() + timedelta(days=3)  # one read a day, three left
    assert beside(chart(app, "overview_progress")) == {
        "All assigned reading": f"1 of 4: 1.0 a day, at this pace until {done.day} {done:%B}",
        IMANI: "1: 1.0 a day",
    }
    shown = said(app)
    assert "0 responses are being read now" in shown
    assert "Dr. Imani Noor: 1 response (2 items)" in shown
    assert "responses to review" not in shown
    assert all(drawn.key != "overview_progress" for drawn in opened(IMANI).get("plotly_chart"))


def test_a_lead_sees_judges_beside_physicians_and_corrected_scores_and_a_reader_does_not(small: world.World, opened):
    world.assigned(small)
    for name, labels in ((IMANI, ("+-", "+-")), (TOVE, ("+-", "++"))):
        for word in labels:
            world.submitted(small, name, word)
    app = opened(LEAD)
    rows = beside(chart(app, "overview_judges"))
    assert list(rows) == ["Magpie", "Physicians among themselves"]
    assert rows["Magpie"].startswith("88 % (7/8) [")  # it said +- and ++, and differs once from Dr. Noor
    assert rows["Physicians among themselves"].startswith("75 % (3/4) [")  # they differ on one of four
    assert list(beside(chart(app, "overview_models"))) == ["Alder-2"]
    keys = {drawn.key for drawn in opened(IMANI, made_of="Theme").get("plotly_chart")}
    assert keys == {"composition_theme"}


def test_a_researcher_is_told_what_has_come_of_late(small: world.World, opened):
    world.add_researcher(small.engine, "Lena Falk", Role.RESEARCHER)
    assert "Nothing new in the last seven days" in said(opened("Lena Falk"))
    world.assigned(small)
    world.submitted(small, IMANI, "++", at=now())
    shown = said(opened("Lena Falk"))
    assert "In the last seven days: 2 verdicts of 1 physician on 1 response. Results have been updated." in shown


# ---------------------------------------------------------------- what it is made of


@pytest.mark.parametrize("grouping", few(GROUPINGS, 3))
def test_each_grouping_has_its_figure_and_its_table(grouping: Grouping, opened):
    app = opened(LEAD, made_of=Grouping(grouping).label)
    found = table(app)
    assert found.columns[0] == Grouping(grouping).label
    assert chart(app, f"composition_{grouping}")
    assert ("Full benchmark" in found.columns) == (grouping in ("theme", "axis", "turns"))
    assert not found.isin(["nan", "None"]).any(axis=None)


def test_two_conversations_are_too_few_to_say_anything_of_themes(opened):
    app = opened(LEAD, made_of="Theme")
    rows = table(app).set_index("Theme")
    assert rows.loc["hedging"].to_dict() == {
        "Conversations": "100 % (2/2) [22 %, 100 %]", "Full benchmark": "21 % (1,071/5,000)", "Read": "0 % (0/2)",
        "Of all reads": "–",
    }  # fmt: skip
    assert rows.loc["global health", "Read"] == "– (0/0)"
    shown = said(app)
    n_chars = len("I have had a sore throat for 2 days.")
    assert "2 responses of 1 model to 2 conversations, judged by 1 judge and read by 0 physicians" in shown
    assert "No clear imbalance by theme." in shown
    assert (
        f"A conversation has 1 turn (1 to 1) and {n_chars} characters ({n_chars} to {n_chars}), its rubric 2 criteria (2 to 2)"
        in shown
    )
    assert "Of the criteria 25 % (1/4) are undesirable." in shown
    assert "No conversation here has the theme global health, communication" in shown


def test_it_is_counted_once_the_fold_is_open_which_keeps_its_grouping(opened, monkeypatch):
    counted = []
    for name in ("composition", "n_conflicting"):
        read = common.READS[name]
        monkeypatch.setitem(common.READS, name, lambda *of, read=read, name=name: counted.append(name) or read(*of))
    app = opened(LEAD)
    assert counted == []
    app.session_state["made_of_fold"] = True
    assert chart(app.run(), "composition_theme")
    assert sorted(counted) == ["composition", "n_conflicting"]
    app.button_group(key="made_of").set_value(Grouping.MODEL).run()
    for is_open in (False, True):
        app.session_state["made_of_fold"] = is_open
        assert len(app.run().dataframe) == is_open
    assert chart(app, "composition_model")


def test_a_blind_reader_is_not_told_what_others_have_read_where_they_are_to_read(small: world.World, opened):
    world.assigned(small)
    before = opened(TOVE, made_of="Theme")
    assert "Reads of conversations that wait for your own first read are left out here." in said(before)
    world.submitted(small, IMANI, "++")
    after = opened(TOVE, made_of="Theme")
    pd.testing.assert_frame_equal(table(before), table(after))
    assert table(after).loc[0, "Read"] == "– (0/0)"
    assert chart(before) == chart(after)
    assert table(opened(LEAD, made_of="Theme")).loc[0, "Read"] == "50 % (1/2)"


def test_a_model_that_is_known_only_from_what_waits_is_not_named(small: world.World, opened):
    world.tampered(
        small.engine,
        "INSERT INTO model (id, name) VALUES (9, 'Only-there')",
        "UPDATE response SET model_id = 9 WHERE example_id = 2",
    )
    world.assigned(small)
    world.submitted(small, TOVE, "+-")  # agrees with the judge: done; the other conversation waits still
    with reading(small.engine) as session:
        (waits,) = queries.blind_examples(session, small.viewer(TOVE))
    shown = "Alder-2" if waits == 2 else "Only-there"
    app = opened(TOVE, made_of="Model")
    assert table(app)["Model"].to_list() == [shown]
    assert ("Only-there" in json.dumps(chart(app))) == (waits == 1)
    assert len(table(opened(LEAD, made_of="Model"))) == 2


def test_names_in_the_figure_and_the_sentences_stay_words(small: world.World, opened):
    hostile = "<img src=x onerror=alert(1)>"
    world.tampered(small.engine, "UPDATE model SET name = :name", name=hostile)
    app = opened(LEAD, made_of="Model")
    assert all(hostile not in drawn.proto.spec for drawn in app.get("plotly_chart"))
    assert table(app).loc[0, "Model"] == hostile
    assert all(hostile not in element.proto.body for element in app.get("html"))


# ---------------------------------------------------------------- the words


def lopsided() -> pd.DataFrame:
    """400 conversations: 320 hedging, of which 20 have been read, and 80 emergency referrals, of which 60 have."""
    n_read = [1] * 20 + [0] * 300 + [1] * 60 + [0] * 20
    return parts("theme", **made_of(["hedging"] * 320 + ["emergency_referrals"] * 80, n_read=n_read, n_responses=1))


def test_a_study_that_differs_is_named_in_words_with_its_intervals():
    # of 80 reads 75 % are of emergency referrals, of all 20 %; 25 % of hedging against 80 %. Benchmark: 10 % and 21 %
    found = lopsided().set_index("group")
    benchmark, read = composition.findings("theme", lopsided())
    row = found.loc["emergency referrals"].to_dict()
    here = interval_words(*found.loc["hedging", ["low", "high"]])
    assert benchmark.startswith(
        f"Of this study's conversations, beside the full benchmark: more hedging (80 % {here}, there 21 %)"
    )
    assert benchmark.endswith("more.")  # three are named
    low, high = (
        interval_words(*found.loc[name, ["read_low", "read_high"]]) for name in ("emergency referrals", "hedging")
    )
    assert read == (
        f"Of what physicians have read, beside the whole study: fewer hedging (25 % {high}, there 80 %) and "
        f"more emergency referrals (75 % {low}, there 20 %)."
    )
    cells = pd.DataFrame(composition.part_columns(Grouping.THEME, lopsided())).set_index("Theme")
    assert cells.loc["emergency referrals"].to_dict() == {
        "Conversations": f"20 % (80/400) {interval_words(row['low'], row['high'])}",
        "Full benchmark": "10 % (482/5,000)",
        "Read": "75 % (60/80)",
        "Of all reads": f"75 % {low}, of the study 20 %",
    }
    assert composition.marks(row) == "▲ more than the benchmark, ▲ read more often"
    assert composition.marks(found.loc["communication"].to_dict()) == "▽ fewer than the benchmark"


def test_no_direction_is_said_that_the_interval_does_not_show():
    # 30 conversations: 4 of hedging are 13 %, the benchmark has 21 %; 1 of 4 reads is of hedging
    themes = ["hedging"] * 4 + ["global_health"] * 7 + ["communication"] * 6 + ["context_seeking"] * 4
    themes += ["emergency_referrals"] * 3 + ["health_data_tasks"] * 3 + ["complex_responses"] * 3
    found = parts("theme", **made_of(themes, n_read=[1, 0, 0, 0, 1, 1, 1, *[0] * 23], n_responses=1))
    assert composition.findings("theme", found) == []
    assert [composition.marks(row) for row in found.to_dict(orient="records")] == [""] * 7


@pytest.mark.parametrize(
    ("grouping", "group", "said_of_it"),
    [
        ("language", "Arabic", "conversations in Arabic"),
        ("points", "−5 to −1", "criteria of −5 to −1 points"),
        ("sign", "undesirable", "undesirable criteria"),
        ("response_length", "500 to 999", "responses of 500 to 999 characters"),
    ],
)
def test_a_sentence_says_of_what_a_group_is(grouping: str, group: str, said_of_it: str):
    row = {"group": group, "share": 0.5, "low": 0.4, "high": 0.6, "published_share": float("nan"), "read_share": 0.6, "read_low": 0.55,
           "read_high": 0.65, "population_share": 0.5, "n_whole": 40, "n_reads_whole": 40}  # fmt: skip
    assert composition.findings(grouping, pd.DataFrame([row])) == [
        f"Of what physicians have read, beside the whole study: more {said_of_it} (60 % [55 %, 65 %], there 50 %)."
    ]


# ---------------------------------------------------------------- the figure


def drawn(found: pd.DataFrame):
    marked = found.assign(marks=[composition.marks(row) for row in found.to_dict(orient="records")])
    return groups_read(marked, what="Theme", unit="conversations")


def test_the_figure_draws_every_count_and_the_share_of_the_benchmark():
    found = lopsided()
    figure = drawn(found)
    read, unread, published, marks = figure.data
    assert list(read.x) == found["n_read"].to_list()
    assert list(unread.x) == found["n_unread"].to_list()
    assert list(published.x) == pytest.approx((found["published_share"] * 400).to_list())
    assert published.marker.color == PUBLISHED
    assert "▲ more than the benchmark, ▲ read more often" in [said.strip() for said in marks.text]
    assert figure.layout.xaxis.title.text == "Conversations"
    assert list(figure.layout.yaxis.categoryarray) == found["label"].to_list()


def test_what_waits_for_the_viewer_has_a_segment_of_its_own():
    found = parts("theme", **made_of(["hedging"] * 4, n_read=[1, 1, 1, 0]), hidden={1, 2})
    hidden = next(trace for trace in drawn(found).data if trace.name == "waits for your own read")
    assert hidden.x[0] == 2
    assert hidden.marker.pattern.shape == "/"
    assert all(trace.name != "waits for your own read" for trace in drawn(lopsided()).data)

"""The Judges page: what it says of a judge and of its pull, to whom, and what it says where there is nothing yet."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from unittest.mock import PropertyMock

import plotly.graph_objects as go
import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from evalcore import deciding, desks, reviewing, store
from evalcore.db import reading, writing
from evalcore.deciding import Decision
from evalcore.metrics.anchoring import OVERALL, anchoring
from evalcore.plots.judges import shift
from evalcore.queries import study
from evalcore.schema import Label, RaterKind, Role, Stage, Verdict
from evalcore.serving import cookie_name
from tests import world
from tests.test_judge_record import reads_of

ROOT = Path(__file__).parents[1]
LEAD, IMANI, TOVE = "Ana Ruiz", "Dr. Imani Noor", "Dr. Tove Lind"
TITLE = "How often the judge is right, and how it moves its readers"


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages keep engines and reads for the whole process; and AppTest looks for pages itself, which the launcher forbids."""
    made = PagesManager.__init__

    def as_launched(manager: PagesManager, *arguments: object, **named: object) -> None:
        PagesManager.uses_pages_directory = False
        made(manager, *arguments, **named)

    monkeypatch.setattr(PagesManager, "__init__", as_launched)
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[world.World]:
    """Two conversations of two criteria; the judge says met, not met, met, met."""
    path = str(tmp_path / "overread.db")
    monkeypatch.setenv("OVERREAD_DB", path)
    made = world.made(path, judged="+-++")
    yield made
    made.engine.dispose()


@pytest.fixture
def opened(small: world.World, monkeypatch: pytest.MonkeyPatch):
    """Opens the page as somebody; `alone`: its file without app.py."""

    def open_page(name: str | None, *, alone: bool = False, **query: str) -> AppTest:
        cookies = {}
        if name is not None:
            with reading(small.engine) as session:
                number = next(person.person_id for person in study.people(session) if person.name == name)
                cookies = {cookie_name(study.study_key(session) or ""): str(number)}
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value=cookies))
        app = AppTest.from_file(str(ROOT / ("pages/judges.py" if alone else "app.py")), default_timeout=30)
        if not alone:
            app.run()
            app.switch_page("pages/judges.py")
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return open_page


def words(app: AppTest) -> str:
    """What stands on the page and in its tables; nothing went wrong, and no sentence has a hole."""
    assert not app.exception, [error.value for error in app.exception]
    html = [element.proto.body for element in app.get("html") if not element.proto.body.startswith("<style>")]
    cells = [str(cell) for table in app.dataframe for column in table.value for cell in (column, *table.value[column])]
    headings = [element.value for element in (*app.subheader, *app.info)]
    found = "\n".join([unescape(re.sub(r"<[^>]*>", " ", part)) for part in html] + headings + cells)
    assert not re.search(r"\b(nan|NaN|None|NaT|<NA>|inf)\b", found)
    return found


def main_words(app: AppTest) -> str:
    """As `words`, without the sidebar's foot, which names the viewer."""
    return words(app).replace("Change reader", "")


def read_all(small: world.World, name: str, labels: dict[int, str], decisions: dict[int, str]) -> None:
    """Read both conversations (labels by conversation from 1), then decide the first criterion of each; the rest is kept."""
    viewer = small.viewer(name)
    while (desk := reviewing.take(small.engine, viewer)) is not None:
        number = world.answer(small, viewer, desk, labels[desk.asked.example_id])
        reviewing.submit(small.engine, viewer, number)
        desk = desks.desk(small.engine, viewer, number)
        for key in desk.undecided:
            label = decisions.get(desk.asked.example_id) if key == desk.keys[0] else None
            kept = Label(desk.first[key].label) if label is None else world.LABELS[label]
            deciding.decide(small.engine, viewer, number, key, Decision(kept), seen=None)
        deciding.finish(small.engine, viewer, number)


def imported(small: world.World, label: Label, *, name: str = "hash", example: int = 0, criterion: int = 0) -> None:
    """A blind first read as a file brings it."""
    with writing(small.engine) as session:
        verdict = Verdict(
            example_id=example + 1,
            rater_id=store.ensure_rater(session, RaterKind.REVIEWER, name),
            stage=Stage.FIRST,
            label=label,
            blinded=True,
            **small.item(example, criterion),
        )
        store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")


@pytest.fixture
def both_read(small: world.World) -> world.World:
    """Both physicians read everything; one takes the judge's label once."""
    world.assigned(small)
    read_all(small, IMANI, {1: "--", 2: "++"}, {1: "+"})  # differs on 1.1, and follows the judge there
    read_all(small, TOVE, {1: "-+", 2: "-+"}, {})  # differs on 1.1, 1.2 and 2.1, and keeps
    return small


# ---------------------------------------------------------------- what it says


@pytest.mark.parametrize("name", [LEAD, IMANI, TOVE])
def test_everybody_sees_the_record_and_the_shift_with_counts(name, both_read, opened):
    shown = words(opened(name))
    assert TITLE in shown
    assert "Judge Magpie beside 8 blind first reads of criteria in 2 conversations" in shown
    # right: Imani on 1.2, 2.1, 2.2 and Tove on 2.2 of 8; undesirable is 1.2 alone: Imani yes, Tove no
    for kind, share in (("all criteria", "50 % (4/8)"), ("desirable", "50 % (3/6)"), ("undesirable", "50 % (1/2)")):
        assert re.search(rf"^{re.escape(share)} \[\d+ %, \d+ %\]$", shown, re.MULTILINE), kind
    assert re.search(r"12 % \(1/8\) \[\d+ %, \d+ %\] of the first reads were changed", shown)
    assert re.search(
        r"25 % \(1/4\) \[\d+ %, \d+ %\] of the first reads that differed from the judge took its label", shown
    )
    assert re.search(
        r"0 % \(0/4\) \[\d+ %, \d+ %\] of the first reads that agreed with the judge left its label", shown
    )
    assert "First reads left out" not in shown
    assert "Wilson" in shown


def test_the_judge_is_chosen_in_the_address(both_read, opened):
    with writing(both_read.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        verdict = Verdict(example_id=1, rater_id=wren, stage=Stage.JUDGE, label=Label.NOT_MET, **both_read.item())
        store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    shown = words(opened(LEAD, judges_judge="Wren"))
    assert "Judge Wren beside 2 blind first reads of criteria in 1 conversations" in shown
    assert "100 % (2/2)" in shown
    assert "This judge's label has not been shown after a blind read yet" in shown
    assert "Judge Magpie beside 8" in words(opened(LEAD, judges_judge="nobody"))


def test_a_judges_name_that_looks_like_markdown_or_html_stays_words(small, opened):
    name = "![](http://canary.invalid/x) <b>$1$</b> :red[x]"
    with writing(small.engine) as session:
        judge = store.ensure_rater(session, RaterKind.JUDGE, name)
        verdict = Verdict(example_id=1, rater_id=judge, stage=Stage.JUDGE, label=Label.NOT_MET, **small.item())
        store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    imported(small, Label.MET)
    app = opened(LEAD, judges_judge=name)
    bodies = "\n".join(element.proto.body for element in app.get("html"))
    assert "![](http://canary.invalid/x) &lt;b&gt;$1$&lt;/b&gt; :red[x]" in bodies
    assert not app.markdown


# ---------------------------------------------------------------- who sees what


def test_readers_are_named_to_the_lead_alone(both_read, opened):
    lead = words(opened(LEAD))
    assert "By reader" in lead
    assert IMANI in lead
    assert TOVE in lead
    physician = main_words(opened(IMANI))
    assert "By reader" not in physician
    assert TOVE not in physician


def test_a_lead_who_reads_too_sees_no_names_while_anything_waits_for_them(small, opened):
    sol = "Dr. Sol Reyes"
    world.add_researcher(small.engine, sol, Role.LEAD, Role.REVIEWER)
    world.assigned(small, n_readers=3)
    read_all(small, IMANI, {1: "--", 2: "++"}, {})
    read_all(small, TOVE, {1: "-+", 2: "-+"}, {})
    desk = reviewing.take(small.engine, small.viewer(sol))
    number = world.answer(small, small.viewer(sol), desk, "+-" if desk.asked.example_id == 1 else "++")
    reviewing.submit(small.engine, small.viewer(sol), number)  # agrees throughout; the other conversation waits
    shown = words(opened(sol))
    assert "Judge Magpie beside 6 blind first reads of criteria in 1 conversations" in shown
    assert TOVE not in shown
    assert IMANI not in shown
    read_all(small, sol, {1: "+-", 2: "++"}, {})
    shown = words(opened(sol))
    assert "Judge Magpie beside 12 blind first reads" in shown
    assert TOVE in shown


def test_a_reader_with_blind_items_waiting_sees_nothing_of_the_reads_on_them(small, opened):
    world.assigned(small)
    read_all(small, TOVE, {1: "-+", 2: "-+"}, {})
    imported(small, Label.MET, name="0" * 64)  # of the first conversation too
    app = opened(IMANI)
    shown = main_words(app)
    assert "Nothing can be shown to you of this judge yet" in shown
    assert not app.dataframe
    assert TOVE not in shown
    assert "Judge Magpie beside 5 blind first reads" in words(opened(LEAD))


def test_what_waits_for_a_reader_is_left_out_until_they_have_read_it(small, opened):
    world.assigned(small)
    read_all(small, TOVE, {1: "-+", 2: "-+"}, {})
    viewer = small.viewer(IMANI)
    desk = reviewing.take(small.engine, viewer)
    number = world.answer(small, viewer, desk, "+-" if desk.asked.example_id == 1 else "++")
    reviewing.submit(small.engine, viewer, number)  # agrees throughout: done; the other conversation still waits
    shown = main_words(opened(IMANI))
    assert "Judge Magpie beside 4 blind first reads of criteria in 1 conversations" in shown
    assert "Reads of conversations that wait for your own first read are left out of all numbers here." in shown
    assert TOVE not in shown
    assert "Judge Magpie beside 6 blind first reads of criteria in 2 conversations" in words(opened(LEAD))


def test_nobody_sees_anything(both_read, opened):
    app = opened(None, alone=True)
    assert "Choose who is reading first" in words(app)
    assert TITLE not in words(app)
    assert not app.dataframe


# ---------------------------------------------------------------- nothing to show yet


def links(app: AppTest) -> list[str]:
    """Labels of the links on the page."""
    return [link.proto.label for link in app.get("page_link")]


def test_without_a_judge_it_says_to_import_one(small, opened):
    world.tampered(small.engine, "DROP TRIGGER IF EXISTS verdict_no_delete", "DELETE FROM verdict", "DELETE FROM rater")
    app = opened(LEAD)
    assert "No judge has labelled anything yet" in words(app)
    assert links(app) == ["Import a file"]


def test_without_a_blind_read_it_says_what_to_do(small, opened):
    app = opened(LEAD)
    assert "No physician has read blind what this judge has labelled" in words(app)
    assert links(app) == ["Go to Study"]
    assert [box.value for box in app.selectbox] == [world.JUDGE]


def test_with_reads_and_no_reveal_it_shows_the_record_and_says_why_there_is_no_shift(small, opened):
    imported(small, Label.MET)
    app = opened(LEAD)
    shown = words(app)
    assert "100 % (1/1)" in shown
    assert "This judge's label has not been shown after a blind read yet" in shown
    assert not app.get("plotly_chart")


# ---------------------------------------------------------------- the figure


def test_the_figure_draws_each_share_with_its_interval_and_nothing_where_there_is_none():
    rows = [{"example": e, "first": "+", "says": "-", "revised": "-" if e < 2 else ""} for e in range(8)]
    rows += [{"example": e, "axis": "<b>odd</b>", "points": -3, "first": "+", "says": "+"} for e in range(8, 12)]
    table = anchoring(reads_of(rows), by=[OVERALL, "kind"])
    figure = shift(table)
    assert isinstance(figure, go.Figure)
    dots = {trace.name: dict(zip(trace.y, trace.x, strict=True)) for trace in figure.data if trace.mode == "markers"}
    assert dots == {
        "Toward the judge": {"overall": 0.25, "accuracy, desirable": 0.25},
        "Away from the judge": {"overall": 0, "&lt;b&gt;odd&lt;/b&gt;, undesirable": 0},
    }
    lines = sorted((trace.y[0], trace.x) for trace in figure.data if trace.mode == "lines")
    known = table.loc[table["movement"].ne("changed") & table["n"].gt(0)]
    expected = [
        (row["group"].replace("<", "&lt;").replace(">", "&gt;"), (row["low"], row["high"]))
        for row in known.to_dict("records")
    ]
    assert lines == sorted(expected)
    assert list(figure.layout.yaxis.categoryarray) == [
        "overall",
        "&lt;b&gt;odd&lt;/b&gt;, undesirable",
        "accuracy, desirable",
    ]

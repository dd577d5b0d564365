"""Agreement on the screen and by the command line: what is said, to whom names are shown, and what it says where there is nothing."""

import json
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import streamlit as st
import typer
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from evalcore.cli.judging import agreement as command
from evalcore.figures.colours import GREY, INK, MARK
from evalcore.judges.figures import pair_forest
from evalcore.rubric.data import RubricData
from evalcore.study.schema import Role, Viewer
from pages.judges import agreement
from pages.shared import judges_choice
from tests import population, world

LEAD = Viewer(1, "Ana Ruiz", frozenset({Role.LEAD}))
READER = Viewer(2, "Dr. Brandt", frozenset({Role.REVIEWER}))
READERS = ("Dr. Noor", "Dr. Brandt", "Dr. <b>Lind</b>")
SHOWN: SimpleNamespace = SimpleNamespace()


def study(*, n_readers=2, undecided=0) -> RubricData:
    """Three readers, two or one of them an item; some reads could not be made."""
    rubric_data, _ = population.drawn(
        np.random.default_rng(11),
        n_examples=50,
        readers=READERS,
        n_readers=n_readers,
        reader_accuracy=0.85,
        share_read=0.4,
    )
    reads = rubric_data.reads.copy()
    reads.loc[: undecided - 1, "met"] = np.nan
    return RubricData(rubric_data.items, rubric_data.judged, reads)


def page() -> None:
    from tests.pages.test_agreement_page import SHOWN

    SHOWN.show(SHOWN.viewer, SHOWN.row())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch):
    """The section as somebody sees it."""

    def open_section(viewer: Viewer, rubric_data: RubricData) -> AppTest:
        SHOWN.show, SHOWN.viewer, SHOWN.row = agreement.show, viewer, st.container
        monkeypatch.setattr(judges_choice, "computed", lambda make, _, *arguments: make(rubric_data, *arguments))
        monkeypatch.setattr(st, "page_link", lambda page, *, label, icon: st.text(f"{label}: {page}"))
        return AppTest.from_function(page, default_timeout=30).run()

    return open_section


def words(app: AppTest) -> str:
    """What stands there; nothing went wrong, and no sentence has a hole."""
    assert not app.exception, [error.value for error in app.exception]
    html = [unescape(re.sub(r"<[^>]*>", " ", element.proto.body)) for element in app.get("html")]
    cells = [str(cell) for table in app.dataframe for column in table.value for cell in (column, *table.value[column])]
    said = "\n".join([*html, *cells, *(element.value for element in app.text)]).replace("\xa0%", " %")
    assert not re.search(r"\b(nan|NaN|None|<NA>|inf)\b", said)
    return said


def test_the_lead_reads_the_finding_the_coefficients_and_the_names(opened):
    said = words(opened(LEAD, study(undecided=7)))
    assert re.search(
        r"Two physicians who label the same criterion agree \d\d % \[\d\d %, \d\d %\] of the time "
        r"\(\d+ criteria in \d+ conversations, 3 physicians, [23]\.\d effective\)\.",
        said,
    )
    assert re.search(r"Gwet's AC1 0\.\d\d \[0\.\d\d, 0\.\d\d\], Krippendorff's alpha 0\.\d\d \[", said)
    assert "physicians in general take at least 3 effective raters" in said
    assert "7 labels were cannot assess" in said
    assert all(name in said for name in READERS)
    assert "global health" in said
    assert "context awareness" not in said  # an axis: one kind at a time
    app = opened(LEAD, study())
    app.session_state["agreement_by"] = "Axis"
    assert "context awareness" in words(app.run())


def test_a_reader_sees_no_names_of_others(opened):
    app = opened(READER, study())
    said = words(app)
    assert not any(name in said for name in READERS)
    (chart,) = app.get("plotly_chart")
    assert "Reader 2" in chart.proto.spec
    assert not any(name in chart.proto.spec for name in ("Noor", "Brandt", "Lind"))
    assert {"You", "Reader 1", "Reader 2"} <= set(app.dataframe[1].value["Rater"]) | set(
        app.dataframe[1].value["and rater"]
    )


def test_three_coefficients_are_shown_and_the_rest_where_wanted(opened):
    app = opened(LEAD, study())
    assert list(app.dataframe[0].value["All together"]) == ["Percent agreement", "Gwet's AC1", "Krippendorff's alpha"]
    app.toggle(key="agreement_all").set_value(True).run()
    assert {"Cohen's kappa", "Fleiss' kappa"} <= set(app.dataframe[0].value["All together"])


def test_the_order_of_unnamed_readers_depends_on_the_secret_and_not_on_their_names():
    names = [f"Dr. {letter}" for letter in "ABCDEF"]
    found = [agreement.shown_names(["Magpie", *names], ["Magpie"], READER, bytes([n])) for n in range(20)]
    assert len({tuple(part) for part in found}) > 1
    for part in found:
        assert part["Magpie"] == "Magpie"
        assert sorted(part.values())[1:] == [f"Reader {n}" for n in range(1, 7)]
        assert list(part) != sorted(part) or list(part.values()) == sorted(part.values())
    assert found[0] == agreement.shown_names(["Magpie", *reversed(names)], ["Magpie"], READER, bytes([0]))


def test_hashes_are_shortened_where_that_leaves_them_apart():
    apart, alike = ["a" * 64, "b" * 64], ["a" * 63 + "b", "a" * 64]
    assert list(agreement.shown_names(apart, [], LEAD, b"").values()) == ["Physician aaaaaaaa", "Physician bbbbbbbb"]
    assert list(agreement.shown_names(alike, [], LEAD, b"").values()) == alike


def test_judges_come_in_as_raters_where_wanted(opened):
    app = opened(LEAD, study())
    assert "Magpie" not in words(app)
    app.toggle(key="agreement_judges").set_value(True).run()
    said = words(app)
    assert "Magpie" in said
    assert "Two raters who label the same criterion" in said


def test_with_no_second_reader_it_says_what_to_do(opened):
    app = opened(LEAD, study(n_readers=1))
    said = words(app)
    assert "No two physicians have read the same criterion blind yet." in said
    assert "Go to Study: pages/study/page.py" in said
    assert not app.dataframe


def pairs(*rows: tuple[str, str, float, float, float, int]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["rater_1", "rater_2", "value", "low", "high", "n_items"])
    return table.assign(
        coefficient="ac1", general_low=table["low"], general_high=table["high"], reason="", general_reason=""
    )


def test_the_forest_has_all_together_first_then_a_row_a_pair_with_its_numbers_and_few_criteria_in_grey():
    whole = pairs(("", "", 0.6, 0.5, 0.7, 99)).assign(general_low=0.4)
    found = pairs(("<i>a</i>", "b", 0.5, 0.4, 0.6, 40), ("b", "c", -0.1, np.nan, np.nan, 4))
    figure = pair_forest(whole, found, "ac1", who="physicians", prefix="general_")
    assert figure.layout.yaxis.ticktext == ("All physicians together", "&lt;i&gt;a&lt;/i&gt; and b", "b and c")
    drawn = {(trace.marker.color, trace.x[0], trace.y[0]) for trace in figure.data}
    assert drawn == {(INK, 0.6, 0), (MARK, 0.5, 1), (GREY, -0.1, 2)}
    said = [words.text for words in figure.layout.annotations]
    assert said == ["0.60 [0.40, 0.70], 99 criteria", "0.50 [0.40, 0.60], 40 criteria", "−0.10, 4 criteria"]


def test_of_many_pairs_those_with_most_criteria_are_drawn_and_the_table_has_every_one(opened, monkeypatch):
    monkeypatch.setattr(agreement, "MOST_PAIRS", 5)
    rubric_data, _ = population.drawn(
        np.random.default_rng(3),
        n_examples=40,
        readers=tuple(f"Dr. {n:02d}" for n in range(40)),
        n_readers=2,
        whole_responses=True,
        share_read=0.5,
    )
    app = opened(LEAD, rubric_data)
    counts = app.dataframe[1].value["Criteria"]
    assert f"The 5 pairs of {len(counts):,} with most criteria" in words(app)
    assert counts.tolist() == sorted(counts, reverse=True)
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert len(spec["layout"]["annotations"]) == 1 + 5


# The command


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(command)
    return made


@pytest.fixture
def read_twice(tmp_path) -> str:
    """Two conversations of two criteria, read by both physicians: they differ on one criterion of four."""
    path = str(tmp_path / "overread.db")
    small = world.made(path, judged="+-++")
    world.assigned(small)
    for name, labels in (("Dr. Imani Noor", ["+-", "++"]), ("Dr. Tove Lind", ["+-", "+?"])):
        for said in labels:
            world.submitted(small, name, said)
    small.engine.dispose()
    return path


def test_the_command_prints_json(app, read_twice):
    ran = CliRunner().invoke(
        app, ["--db", read_twice, "--json", "--by", "overall,axis", "--coefficients", "agreement,kappa"]
    )
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    overall = {row["coefficient"]: row for row in found["pooled"] if row["grouping"] == "overall"}
    assert list(overall) == ["agreement", "kappa"]
    assert (
        overall["agreement"]["value"],
        overall["agreement"]["n_items"],
        overall["agreement"]["n_cannot_assess"],
    ) == (1, 3, 1)
    assert (overall["agreement"]["bound_low"], overall["agreement"]["bound_high"]) == (0.75, 1)
    assert overall["agreement"]["low"] is None
    assert overall["agreement"]["reason"]
    assert {(row["rater_1"], row["rater_2"]) for row in found["by_pair"]} == {("Dr. Imani Noor", "Dr. Tove Lind")}


def test_the_command_prints_tables_and_counts_judges_where_wanted(app, read_twice):
    ran = CliRunner().invoke(app, ["--db", read_twice, "--judges", "all"])
    assert ran.exit_code == 0, ran.output
    assert all(name in ran.output for name in ("Magpie", "Gwet's AC1", "Dr. Tove Lind"))
    assert "Cohen's kappa" not in ran.output
    assert "Cohen's kappa" in CliRunner().invoke(app, ["--db", read_twice, "--all"]).output
    assert "1 label was cannot assess; whatever each had been, percent agreement over all reads is " in " ".join(
        ran.output.split()
    )
    refused = CliRunner().invoke(app, ["--db", read_twice, "--judges", "Heron"])
    assert refused.exit_code == 1
    assert "expected some of Magpie" in str(refused.exception)


def test_the_command_says_what_to_do_where_nobody_has_read_twice(app, tmp_path):
    ran = CliRunner().invoke(app, ["--db", str(tmp_path / "empty.db")])
    assert ran.exit_code == 0, ran.output
    assert "assign items to two readers" in ran.output

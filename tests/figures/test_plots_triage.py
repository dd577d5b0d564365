"""Figures of triage: every number they are given is drawn, under-triage stands in a heavy border, names stay text."""

import math

import pandas as pd
import plotly.graph_objects as go
import pytest

from evalcore.figures.colours import GREY, INK, LEVEL_RAMP
from evalcore.triage import figures
from evalcore.triage.harm import changes, expected_harm, orders as places
from evalcore.triage.rates import of_matrices, rates

ODD = "<b>odd</b>"
ESCAPED = "&lt;b&gt;odd&lt;/b&gt;"
FORMATS = {"qa": "qa", "conversation": "conversation"}
NAMES = ["at home", "a doctor within weeks", "a doctor within 24 to 48 hours", "emergency now"]
MATRICES = {
    "qa": [[48, 15, 13, 1], [11, 57, 41, 1], [0, 5, 64, 9], [0, 0, 27, 235]],
    "conversation": [[67, 6, 4, 0], [34, 69, 7, 0], [8, 9, 59, 2], [7, 1, 38, 216]],
}
"""GPT-5.4 on AcuityBench, as published: 43 of 527 too low in qa, 97 in conversation."""


def cells_of(*models: str, formats: tuple[str, ...] = ("qa", "conversation")) -> pd.DataFrame:
    published = [
        {"model": model, "format": word, "gold": float(gold), **dict(zip("ABCD", row, strict=True))}
        for model in models
        for word in formats
        for gold, row in enumerate(MATRICES[word], start=1)
    ]
    found = of_matrices(pd.DataFrame(published))
    return found.assign(n_open=found["n"])


def one(word: str = "conversation") -> pd.DataFrame:
    return cells_of("Alder", formats=(word,))


def words_of(figure: go.Figure) -> str:
    return figure.to_json()


# ---------------------------------------------------------------- one matrix


def test_every_cell_says_its_share_and_its_count():
    figure = figures.matrix(one(), NAMES)
    shown = dict(zip(zip(figure.data[0].y, figure.data[0].x, strict=True), figure.data[0].text, strict=True))
    assert len(shown) == 16
    assert "82 %" in shown[4, 4]
    assert "216/262" in shown[4, 4]
    assert "3 %" in shown[4, 1]
    assert "7/262" in shown[4, 1]


def test_a_click_on_a_cell_tells_gold_prediction_and_how_many_and_the_hover_tells_the_interval():
    figure = figures.matrix(one(), NAMES)
    gold, predicted, n, hover = next(data for data in figure.data[0].customdata if list(data[:2]) == [4, 1])
    assert (gold, predicted, n) == (4, 1, 7)
    assert hover == "Needs D, answer gives A: under-triage by 3 levels<br>3 % (7/262) cases [1 %, 5 %]"


def test_the_six_cells_below_the_diagonal_stand_in_a_heavy_border_and_no_other_does():
    figure = figures.matrix(one(), NAMES)
    heavy = {
        (round((shape.y0 + shape.y1) / 2), round((shape.x0 + shape.x1) / 2))
        for shape in figure.layout.shapes
        if shape.line.width == figures.HEAVY
    }
    assert heavy == {(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)}


def test_a_cell_is_filled_by_its_share_in_its_levels_step_of_the_ramp():
    figure = figures.matrix(one(), NAMES)
    fills = {
        (round(shape.y0 - figures.HALF), round((shape.x0 + shape.x1) / 2)): shape
        for shape in figure.layout.shapes
        if shape.fillcolor
    }
    filled = fills[4, 4]
    assert (filled.y0 - filled.y1) / (2 * figures.HALF) == pytest.approx(216 / 262)
    assert {column: fills[row, column].fillcolor for row, column in fills} == dict(enumerate(LEVEL_RAMP, start=1))
    assert (1, 4) not in fills  # 0 of 77: nothing to fill


def test_the_cell_that_is_open_is_marked():
    def marked(figure: go.Figure) -> int:
        return sum(shape.line.color == figures.CHOSEN for shape in figure.layout.shapes)

    assert marked(figures.matrix(one(), NAMES)) == 0
    assert marked(figures.matrix(one(), NAMES, chosen=(4, 1))) == 1


def test_a_row_without_cases_shows_dashes_and_an_estimate_shows_no_count():
    cells = one().astype({"n": float})
    cells.loc[cells["gold"].eq(1), ["share", "low", "high"]] = math.nan
    cells.loc[cells["gold"].eq(4), "n"] = math.nan
    text = figures.matrix(cells, NAMES).data[0].text
    assert list(text[:4]) == ["–"] * 4
    assert "/" not in text[15].replace("</", "")
    assert "82 %" in text[15]


def test_names_of_levels_stay_text():
    figure = figures.matrix(one(), [ODD, "two", "three", "four"])
    assert ODD not in words_of(figure)
    assert ESCAPED in figure.layout.xaxis.ticktext[0]


# ---------------------------------------------------------------- all models


def test_the_overview_has_every_cell_of_every_model_and_says_which_format_is_missing():
    cells = pd.concat([cells_of("Alder", ODD), cells_of("Briar", formats=("qa",))], ignore_index=True)
    figure = figures.overview(cells)
    drawn = [share for row in figure.data[0].z for share in row if share is not None]
    assert len(drawn) == 16 * 5
    notes = [note.text for note in figure.layout.annotations]
    assert "no conversation" in notes
    assert f"<b>{ESCAPED}</b>" in notes
    assert len(figure.layout.shapes) == 5  # one stair a matrix


def test_many_models_go_on_below():
    names = [f"Model {number:02}" for number in range(figures.SMALL_LINE + 2)]
    figure = figures.overview(cells_of(*names))
    assert len(figure.data[0].z[0]) == figures.SMALL_LINE * figures.STEP
    assert sum(share is not None for row in figure.data[0].z for share in row) == 16 * 2 * len(names)


def test_the_three_parts_of_a_bar_fill_it_and_under_triage_has_the_heavy_border():
    figure = figures.directions(rates(cells_of("Alder", ODD)))
    under, exact, over = figure.data
    assert [part.name.split(":")[0] for part in figure.data] == ["under-triage", "exact", "over-triage"]
    for parts in zip(under.x, exact.x, over.x, strict=True):
        assert sum(parts) == pytest.approx(1)
    assert [part.marker.line.width for part in figure.data] == [figures.HEAVY, 0, 0]
    assert list(figure.layout.yaxis.ticktext) == [
        "Alder, qa", "Alder, conversation", f"{ESCAPED}, qa", f"{ESCAPED}, conversation",
    ]  # fmt: skip
    at = list(figure.layout.yaxis.ticktext).index("Alder, conversation")
    assert under.x[at] == pytest.approx(97 / 527)
    assert "18 % (97/527)" in under.customdata[at]


# ---------------------------------------------------------------- groups, boundary


def grouped(**more: object) -> pd.DataFrame:
    rows = [
        {"format": word, "group": group, "measure": measure, "k": k, "n": 20, "value": k / 20, "low": k / 40, "high": (k + 20) / 40, "is_small": group == ODD}
        for word in FORMATS
        for group in ("clinic", ODD)
        for measure, k in (("under", 3), ("over", 5), ("exact", 12))
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**more)


def test_groups_show_under_and_over_with_their_intervals_and_few_cases_in_grey():
    figure = figures.by_group(grouped(), {"clinic": "clinic", ODD: ODD})
    drawn = [trace for trace in figure.data if len(trace.x)]
    assert {trace.name for trace in drawn} == {"under-triage", "over-triage"}
    assert {share for trace in drawn for share in trace.x} == {3 / 20, 5 / 20}
    grey = {trace.y[0] > 0.5 for trace in drawn if trace.marker.line.color == GREY}
    assert grey == {True}  # the second row, and no other
    assert all(trace.marker.line.color == INK for trace in drawn if trace.y[0] < 0.5)
    assert ODD not in words_of(figure)


def test_a_group_without_a_value_has_its_row_and_no_mark():
    figure = figures.by_group(grouped(value=math.nan), {})
    assert not any(len(trace.x) for trace in figure.data)
    assert len(figure.layout.yaxis.ticktext) == 2


def test_answers_to_boundary_cases_fill_a_bar_and_those_below_both_letters_stand_in_a_heavy_border():
    table = pd.DataFrame(
        [{"model": ODD, "format": "qa", "n": 8, "a": 0.125, "a_k": 1, "b": 0.5, "b_k": 4, "c": 0.25, "c_k": 2, "d": 0.125, "d_k": 1}]
    )  # fmt: skip
    figure = figures.boundary_answers(table, [(name, name) for name in "abcd"])
    assert sum(part.x[0] for part in figure.data) == pytest.approx(1)
    assert [part.marker.line.width > 0 for part in figure.data] == [True, False, False, False]
    assert ODD not in words_of(figure)


# ---------------------------------------------------------------- harm


def two() -> pd.DataFrame:
    """Alder errs high, the odd one low: as the published qa and conversation matrices do."""
    return pd.concat(
        [cells_of("Alder", formats=("qa",)), cells_of(ODD, formats=("conversation",)).assign(format="qa")],
        ignore_index=True,
    )


def test_harm_is_drawn_with_its_interval_in_the_models_colour():
    table = expected_harm(two())
    figure = figures.harm(table, {"Alder": "#0072B2"})
    marks = next(trace for trace in figure.data if trace.name == "qa" and trace.x[0] is not None)
    # 43 levels too low and 96 too high on 527 cases: (5 * 43 + 96) / 527
    assert marks.x[0] == pytest.approx((5 * 43 + 96) / 527)
    assert marks.marker.color[0] == "#0072B2"
    reach = next(trace.error_x for trace in figure.data if trace.error_x.array is not None and trace.x[0] == marks.x[0])
    assert marks.x[0] + reach.array[0] == pytest.approx(table["high"].iloc[0])
    assert ODD not in words_of(figure)


def test_the_order_over_the_weights_is_drawn_with_the_place_where_it_changes():
    crossing = changes(expected_harm(two()))
    assert len(crossing) == 1
    table = places(expected_harm(two()), [0.25, 0.5, 1, 2, 5, 20])
    figure = figures.orders(table, crossing, {}, {}, now=5.0)
    lines = {trace.name: trace.y for trace in figure.data}
    assert set(lines) == {"Alder", ESCAPED}
    assert [sorted(pair) for pair in zip(*lines.values(), strict=True)] == [[1, 2]] * 6
    verticals = [shape.x0 for shape in figure.layout.shapes]
    assert verticals == [pytest.approx(crossing["ratio"].iloc[0]), 5.0]


def test_so_many_changes_that_they_would_hide_the_lines_are_not_drawn():
    crossing = pd.DataFrame({"format": "qa", "ratio": [1 + n / 10 for n in range(figures.MOST_LINES + 1)]})
    figure = figures.orders(places(expected_harm(two()), [0.5, 5]), crossing, {}, {})
    assert not figure.layout.shapes

"""Figures of the Models page: each number it is given is drawn, none is made up, names stay text."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from evalcore.figures.colours import GREY_RAMP, INK, INK_ON_SLATE, MARK, MODEL_COLOURS, RAMP, colour_of, dash_of
from evalcore.rubric import figures

ODD = "<b>odd</b>"
ESCAPED = "&lt;b&gt;odd&lt;/b&gt;"
COLOURS = colour_of(["Alder", ODD])
NAN = math.nan


def forest_table(**columns: list[object]) -> pd.DataFrame:
    """Two models: Alder with all three scores, the odd one with the judge's alone."""
    values: dict[str, list[object]] = {"model": ["Alder", ODD], "needs": ["", "needs about 420 more reads"]}
    for kind, first, second in (("judge_only", 0.6, 0.4), ("physicians_only", 0.5, NAN), ("corrected", 0.52, NAN)):
        values |= {
            kind: [first, second],
            f"{kind}_low": [first - 0.02, second - 0.05],
            f"{kind}_high": [first + 0.03, second + 0.05],
        }
    return pd.DataFrame(values | columns)


def marks(figure: go.Figure) -> list[tuple[str, float, float]]:
    """Kind, score and row of every mark that is drawn."""
    drawn = [trace for trace in figure.data if trace.mode == "markers" and trace.x[0] is not None]
    return [(trace.name, *place) for trace in drawn for place in zip(trace.x, trace.y, strict=True)]


def test_each_model_has_a_mark_for_each_score_that_is_known_and_none_for_the_others():
    figure = figures.forest(forest_table(), COLOURS)
    assert [(kind, score) for kind, score, _ in marks(figure)] == [
        ("judge only", 0.6), ("judge only", 0.4), ("physicians only", 0.5), ("corrected", 0.52),
    ]  # fmt: skip
    rows = {(kind, score): round(row) for kind, score, row in marks(figure)}
    assert rows == {("judge only", 0.6): 0, ("physicians only", 0.5): 0, ("corrected", 0.52): 0, ("judge only", 0.4): 1}


def test_an_interval_is_drawn_once_from_its_low_to_its_high_bound_in_the_colour_of_its_mark():
    of_corrected = [trace for trace in figures.forest(forest_table(), COLOURS).data if trace.x[0] == 0.52]
    for drawn in of_corrected:  # the bar, and the mark, which saves with its numbers
        assert drawn.x[0] - drawn.error_x.arrayminus[0] == pytest.approx(0.50)
        assert drawn.x[0] + drawn.error_x.array[0] == pytest.approx(0.55)
    (drawn,) = (trace for trace in of_corrected if trace.error_x.visible is not False)
    assert drawn.error_x.color == COLOURS["Alder"]


def test_judge_only_is_hollow_physicians_only_grey_and_corrected_solid_in_the_models_colour():
    found = {
        trace.name: trace.marker for trace in figures.forest(forest_table(), COLOURS).data if trace.x[0] is not None
    }
    assert found["judge only"].symbol == "circle-open"
    assert found["corrected"].symbol == "circle"
    assert found["judge only"].color.tolist() == [COLOURS["Alder"], COLOURS[ODD]]
    assert found["corrected"].color.tolist() == [COLOURS["Alder"]]
    assert found["physicians only"].color[0] not in COLOURS.values()


def test_a_model_of_which_too_little_is_read_has_words_in_the_place_of_its_corrected_score():
    figure = figures.forest(forest_table(), COLOURS)
    (words,) = figure.layout.annotations
    assert words.text == "needs about 420 more reads"
    assert words.y == pytest.approx(1 + 0.26)


@pytest.mark.parametrize(("enough", "axis"), [(False, (0, 1)), (True, None)])
def test_where_no_score_can_be_corrected_yet_the_axis_is_that_of_scores(enough, axis):
    scores = pd.DataFrame({"model": ["Alder"], "corrected": 0.5, "corrected_low": 0.4, "corrected_high": 0.6})
    table = scores.assign(enough=enough, needed="30 more criteria to be read")
    assert figures.corrected_forest(table, COLOURS).layout.xaxis.range == axis


def test_names_stay_text_on_every_figure():
    scores = pd.DataFrame({"example_id": [1, 2], "first": [0.2, 0.4], "second": [0.5, 0.4], "words": ["<i>x</i>", "y"]})
    groups = pd.DataFrame({"group": ODD, "model": ["Alder", ODD], "judge_only": 0.5, "corrected": 0.5})
    groups = groups.assign(corrected_low=0.4, corrected_high=0.6)
    gaps = pd.DataFrame({"model_1": [ODD], "model_2": ["Alder"], "difference": [0.1], "low": [0.0], "high": [0.2]})
    curve = pd.DataFrame({"model": [ODD, ODD], "k": [1, 2], "score": [0.5, 0.4], "n_examples": [9, 9]})
    length = pd.DataFrame(
        {
            "model": [ODD],
            "mean_chars": [900.0],
            "raw_mean": [0.5],
            "raw_low": [0.4],
            "raw_high": [0.6],
            "n_examples": [9],
        }
    )
    own = pd.DataFrame({"model": [ODD], "score": [0.6], "low": [0.5], "high": [0.7]})
    others = pd.DataFrame({"model": ["<i>o3</i>"], "score": [0.6], "judge": [ODD]})
    all_drawn = [
        figures.forest(forest_table(), COLOURS), figures.by_group(groups, COLOURS), figures.worst_at_k(curve, COLOURS, dash_of(COLOURS)),
        figures.score_by_length(length, COLOURS, dash_of(COLOURS)),
        figures.beside_published(own, others, COLOURS), figures.differences(gaps, corrected=True),
        figures.head_to_head(scores, ODD, "Alder"),
    ]  # fmt: skip
    for figure in all_drawn:
        words = str(figure.to_dict())
        assert "<b>" not in words
        assert "<i>" not in words
        assert ESCAPED in words


def test_a_group_shows_each_model_corrected_with_its_interval_and_the_judge_hollow_beside_it():
    table = pd.DataFrame(
        {
            "group": ["accuracy", "accuracy", "completeness"],
            "model": ["Alder", "Briar", "Alder"],
            "judge_only": [0.7, 0.8, 0.9],
            "corrected": [0.9, NAN, 0.8],
            "corrected_low": [0.8, NAN, 0.7],
            "corrected_high": [1.0, NAN, 0.9],
        }
    )
    colours = colour_of(["Alder", "Briar"])
    figure = figures.by_group(table, colours)
    marks = {(trace.name, trace.marker.symbol): trace for trace in figure.data}
    assert list(marks["Alder", "circle"].x) == [0.9, 0.8]
    assert marks["Alder", "circle"].error_x.array == pytest.approx([0.1, 0.1])
    assert marks["Alder", "circle"].marker.color == colours["Alder"]
    assert math.isnan(marks["Briar", "circle"].x[0])
    assert list(marks["Briar", "circle-open"].x) == [0.8]
    assert [round(place) for place in marks["Alder", "circle"].y] == [0, 1]
    assert marks["Alder", "circle"].y[0] < marks["Briar", "circle"].y[0]
    kinds = [(trace.name, trace.marker.symbol) for trace in figure.data if trace.marker.color == MARK]
    assert kinds == [("judge only", "circle-open"), ("corrected", "circle")]


def test_models_that_share_a_colour_are_told_apart_by_their_shapes():
    models = [f"m{number}" for number in range(12)]
    colours = colour_of(models)
    assert len(set(colours.values())) < len(models)
    table = pd.DataFrame({"group": "accuracy", "model": models, "judge_only": 0.5, "corrected": 0.6})
    figure = figures.by_group(table.assign(corrected_low=0.5, corrected_high=0.7), colours)
    solid = [trace for trace in figure.data if trace.name in models and not trace.marker.symbol.endswith("-open")]
    looks = {(trace.marker.color, trace.marker.symbol) for trace in solid}
    assert len(looks) == len(solid) == len(models)


def test_differences_after_correction_are_solid_and_the_judges_opinion_is_hollow():
    table = pd.DataFrame(
        {
            "model_1": ["A", "A"],
            "model_2": ["B", "C"],
            "difference": [0.1, -0.2],
            "low": [0.0, -0.4],
            "high": [0.2, 0.1],
        }
    )
    solid, hollow = (figures.differences(table, corrected=corrected).data[0] for corrected in (True, False))
    assert (solid.marker.symbol, hollow.marker.symbol) == ("circle", "circle-open")
    assert list(solid.y) == ["A − B", "A − C"]
    assert list(solid.x) == [0.1, -0.2]
    assert list(solid.error_x.array) == pytest.approx([0.1, 0.3])
    assert list(solid.error_x.arrayminus) == pytest.approx([0.1, 0.2])


def test_head_to_head_needs_no_webgl_however_many_points_it_has():
    """A browser without it shows a grey box and a foreign address in place of the points."""
    scores = np.linspace(0, 1, 5_000)
    table = pd.DataFrame(
        {"example_id": range(5_000), "first": scores, "second": scores[::-1], "words": "I have had a fever"}
    )
    assert {trace.type for trace in figures.head_to_head(table, "A", "B").data} == {"scatter"}


def test_a_click_on_a_point_of_head_to_head_knows_its_example():
    table = pd.DataFrame({"example_id": [7, 9], "first": [0.2, -1.4], "second": [0.5, 0.4], "words": ["a", "b"]})
    figure = figures.head_to_head(table, "A", "B")
    points = figure.data[1]
    assert [data[0] for data in points.customdata] == [7, 9]
    assert list(zip(points.x, points.y, strict=True)) == [(0.2, 0.5), (-1.4, 0.4)]
    assert figure.layout.xaxis.range[0] < -1.4, "a score below nought is on the screen too"
    assert figure.layout.xaxis.range == figure.layout.yaxis.range


def test_a_model_keeps_its_colour_whichever_order_they_come_in_and_the_seventh_is_told_by_its_line():
    names = [f"Model {n}" for n in range(8)]
    assert colour_of(names) == colour_of(reversed(names))
    assert [colour_of(names)[name] for name in names] == [*MODEL_COLOURS, *MODEL_COLOURS[:2]]
    looks = {(colour_of(names)[name], dash_of(names)[name]) for name in names}
    assert len(looks) == len(names)


def luminance(colour: str) -> float:
    """Relative luminance of a colour #rrggbb (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("ground", "ink"), [("#fbf9f5", INK), ("#14181c", INK_ON_SLATE)])
def test_words_can_be_read_on_the_deepest_cell_in_both_themes(ground: str, ink: str):
    for ramp in (RAMP, GREY_RAMP):
        red, green, blue, strength = (
            float(part) for part in ramp[-1][1].removeprefix("rgba(").removesuffix(")").split(",")
        )
        under = [int(ground[place : place + 2], 16) for place in (1, 3, 5)]
        mixed = [
            round(strength * over + (1 - strength) * below)
            for over, below in zip((red, green, blue), under, strict=True)
        ]
        light, dark = sorted((luminance("#{:02x}{:02x}{:02x}".format(*mixed)), luminance(ink)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 4.5


@pytest.mark.parametrize("ground", ["#fbf9f5", "#14181c"])
def test_every_models_colour_can_be_told_from_the_page(ground: str):
    for colour in MODEL_COLOURS:
        light, dark = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) > 2, colour

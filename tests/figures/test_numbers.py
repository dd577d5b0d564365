"""The numbers of a figure: every mark a row, by the names that stand at its place, and what words are beside it."""

import pandas as pd
import plotly.graph_objects as go
import pytest
from hypothesis import given, strategies as st

from evalcore.figures.forest import forest
from evalcore.figures.numbers import numbers

NAME = st.text("ab <&>", min_size=1, max_size=12).filter(str.strip)
ROW = st.tuples(NAME, st.floats(0, 1), st.floats(0, 0.3), st.floats(0, 0.3), st.sampled_from(["#111111", "#222222"]))


@given(st.lists(ROW, min_size=1, max_size=6))
def test_a_forest_gives_back_every_row_with_its_interval_and_its_words(rows):
    table = pd.DataFrame(
        [(name, value, value - down, value + up, colour) for name, value, down, up, colour in rows],
        columns=["label", "value", "low", "high", "colour"],
    ).assign(words=[f"{number} of <9>" for number in range(len(rows))])
    found = numbers(forest(table, title="Share", tick_format=".0%")).sort_values(
        "told", key=lambda told: told.str.extract(r"(\d+) of <9>$")[0].astype(int)
    )
    assert found["up"].tolist() == [" ".join(name.split()) for name, *_ in rows]
    for column, drawn in (("across", "value"), ("across_low", "low"), ("across_high", "high")):
        assert found[column].tolist() == pytest.approx(table[drawn].tolist())
    assert found["told"].tolist() == [
        f"{' '.join(name.split())}: {words}" for (name, *_), words in zip(rows, table["words"], strict=True)
    ]
    assert set(found["across_is"]) == {"Share"}


def test_a_value_that_is_not_known_has_no_row_and_its_words_stay_in_the_figure():
    table = pd.DataFrame({"label": ["a", "b"], "value": [0.5, None], "low": [0.4, None], "high": [0.6, None]})
    figure = forest(table.assign(words=["50 %", "nothing read"], colour="#111111"), title="Share", tick_format=".0%")
    assert numbers(figure)["up"].tolist() == ["a"]
    assert [words.text for words in figure.layout.annotations] == ["50 %", "nothing read"]


def test_cells_bars_and_words_are_rows_and_what_only_the_legend_shows_is_none():
    figure = go.Figure()
    figure.add_heatmap(x=["A", "B"], y=["gold"], z=[[3, None]], name="cells")
    figure.add_bar(x=[2], y=["gold"], name="read &amp; kept", text=["<b>2</b> of 4"])
    figure.add_scatter(x=[None], y=[None], name="a mark of the legend")
    found = numbers(figure)
    assert found[["series", "across", "up"]].to_numpy().tolist() == [["cells", "A", "gold"], ["read & kept", 2, "gold"]]
    assert found["value"].tolist()[0] == 3
    assert found["words"].tolist()[1] == "2 of 4"


def test_words_beside_several_marks_are_a_row_each_though_a_pointer_is_told_nothing():
    figure = go.Figure()
    figure.add_scatter(x=[3, 5], y=["a", "b"], mode="text", text=pd.Series(["fewer", "more"]), hoverinfo="skip")
    assert numbers(figure)["words"].tolist() == ["fewer", "more"]


def test_what_a_pointer_is_told_is_written_as_plotly_writes_it_and_an_axis_that_is_not_drawn_has_no_places():
    figure = go.Figure()
    told = "%{fullData.name}, %{y}: %{x:.0%} [%{customdata[0]:+.2f}] of %{customdata[1]:,}<extra>more</extra>"
    figure.add_scatter(x=[0.25], y=["<b>a</b>"], name="b &lt; c", customdata=[[0.5, 1200]], hovertemplate=told)
    figure.update_xaxes(visible=False)
    (row,) = numbers(figure).to_dict(orient="records")
    assert row == {"series": "b < c", "up": "a", "told": "b < c, a: 25% [+0.50] of 1,200"}


def test_a_figure_without_a_mark_has_no_numbers():
    assert numbers(go.Figure()).empty

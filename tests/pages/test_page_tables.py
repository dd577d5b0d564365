"""Tables on pages: as wide as their words, as high as their rows, without columns that say nothing; and figures whose words can be read."""

import html
import re

import pandas as pd
import plotly.graph_objects as go
import pytest
from hypothesis import given, strategies as st

from evalcore.figures.colours import INK, INK_ON_SLATE
from evalcore.figures.frames import CUT, LINE_CHARACTERS, framed, inked, on_lines
from pages.shared import html as shared_html, tables, theme


def test_a_column_that_says_nothing_is_left_out_where_it_may_be():
    columns = {"a": [0, 0], "b": ["–", ""], "c": [0, 1], "d": [0, 0]}
    assert list(tables.frame(columns, optional=("a", "b", "c"))) == ["c", "d"]
    assert list(tables.frame(columns)) == ["a", "b", "c", "d"]


def test_columns_keep_their_order_of_rows_whatever_index_they_come_with():
    made = tables.frame({"a": pd.Series([1, 2], index=[5, 3]), "b": pd.Series(["x", "y"], index=[3, 5])})
    assert made.to_dict(orient="list") == {"a": [1, 2], "b": ["x", "y"]}


def test_a_long_table_ends_amid_a_row():
    assert tables.height(3) == 38 + 3 * 35
    assert tables.height(16) == 38 + 16 * 35
    assert 38 + 16 * 35 < tables.height(17) < 38 + 17 * 35
    assert tables.height(17) == tables.height(500)


def test_words_have_the_width_of_the_longest_and_names_the_room_that_is_left():
    table = tables.frame({"Who": ["x" * 300, "y"], "Said": ["z" * 300, ""], "Short": ["–", "–"], "n": [1, 57_126]})
    found = tables.formats(table, names=("Who",))
    assert found["Said"]["width"] == tables.WIDEST
    assert found["Short"]["width"] < 60
    assert found["n"]["type_config"]["format"] == "localized"
    n_wide = tables.formats(tables.frame({"n": ["57,126"]}))["n"]["width"]
    assert found["Who"]["width"] == tables.ROOM_PIXELS - tables.WIDEST - found["Short"]["width"] - n_wide


def test_a_name_that_its_column_cannot_hold_takes_higher_rows_and_one_that_it_can_one():
    numbers = {f"Of {place}": ["0.123 [0.100, 0.146]"] for place in range(6)}
    short, long = (
        tables.frame({"Model": [name], **numbers}) for name in ("Alder-2", "organisation/tuned-for-health-" * 3)
    )
    assert tables.row_pixels(short, ("Model",)) == tables.ROW_PIXELS
    wide = tables.formats(long, ("Model",))["Model"]["width"]
    assert tables.row_pixels(long, ("Model",)) == tables.WRAPPED_PIXELS > 64
    total = wide + sum(tables.formats(long, ("Model",))[name]["width"] for name in numbers)
    assert total <= tables.ROOM_PIXELS
    assert tables.height(3, row_pixels=66) == 38 + 3 * 66
    assert 38 + 8 * 66 < tables.height(10, row_pixels=66) < 38 + 9 * 66  # no higher than sixteen rows of one line


@given(st.lists(st.text("abc <&", min_size=1, max_size=120), min_size=1, max_size=8))
def test_a_foot_shows_three_lines_at_most_folds_the_rest_and_loses_no_word(sentences):
    text = " ".join(f"S{sentence.strip()}." for sentence in sentences)
    made = shared_html.foot(text)
    shown, _, folded = made.partition("<details>")
    words = html.unescape(re.sub(r"<summary>.*?</summary>|<[^>]+>", " ", made))
    assert words.split() == text.split()
    assert bool(folded) == (len(text) > shared_html.FOOT_CHARACTERS + 60)
    assert len(html.unescape(re.sub(r"<[^>]+>", "", shown))) <= shared_html.FOOT_CHARACTERS + 60


@pytest.mark.parametrize("n", [0, 1, 50])
def test_every_table_that_can_be_made_has_formats(n):
    table = tables.frame({"a": ["x"] * n, "b": list(range(n))})
    assert set(tables.formats(table)) == {"a", "b"}


@given(st.text(max_size=300))
def test_a_name_takes_two_lines_at_most_and_no_tag(name):
    lines = on_lines(name).split("<br>")
    assert len(lines) <= 2
    assert all("<" not in line for line in lines)
    if len(name) <= LINE_CHARACTERS and name.split():
        assert CUT not in lines[0] or CUT in name


def test_all_words_of_a_figure_are_drawn_in_ink_which_the_style_sheet_gives_each_theme():
    figure = go.Figure(go.Scatter(x=[0], y=[0], name="a"))
    figure.update_xaxes(title="Share")
    figure.add_annotation(text="said")
    framed(figure, ["row"], row_pixels=30, frame_pixels=90)
    layout = inked(figure).layout
    words = (
        layout.xaxis.tickfont,
        layout.xaxis.title.font,
        layout.yaxis.tickfont,
        layout.legend.font,
        layout.annotations[0].font,
    )
    assert {font.color for font in words} == {INK}
    assert layout.yaxis.ticktext == ("row",)
    drawn = ", ".join(str(int(INK[place : place + 2], 16)) for place in (1, 3, 5))
    assert f"--or-ink: light-dark({INK}, {INK_ON_SLATE})" in shared_html.STYLE
    for kind in ("fill", "stroke"):
        assert f'[style*="{kind}: rgb({drawn})"] {{ {kind}: var(--or-ink) !important; }}' in shared_html.STYLE


def test_ticks_of_shares_have_the_space_that_sentences_have_and_others_stay(monkeypatch):
    drawn = []
    monkeypatch.setattr(theme.st, "plotly_chart", lambda figure, **_how: drawn.append(figure))
    monkeypatch.setattr(theme, "_save", lambda **_how: None)
    figure = go.Figure(go.Scatter(x=[0.2, 1], y=[0.1, 0.4]))
    figure.update_xaxes(tickformat=".0%")
    figure.update_yaxes(tickformat=".2f")
    theme.figure(figure, key="shares", alt="Shares")
    assert (drawn[0].layout.xaxis.labelalias["20%"], drawn[0].layout.xaxis.labelalias["100%"]) == ("20 %", "100 %")
    assert drawn[0].layout.yaxis.labelalias is None

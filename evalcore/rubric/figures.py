"""Figures of the Models and Overview pages."""

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY, INK, MARK, MODEL_SYMBOLS
from evalcore.figures.forest import forest as forest_plot
from evalcore.figures.frames import MODEL_PIXELS, TEXT_PIXELS, bordered, named_rows, reach
from evalcore.rubric.finding import score_words

KINDS = (  # of a model, from top to bottom: column, words, symbol, size in pixels, place within its row
    ("judge_only", "judge only", "circle-open", 10, -0.26),
    ("physicians_only", "physicians only", "diamond", 9, 0.0),
    ("corrected", "corrected", "circle", 12, 0.26),
)
ROW_PIXELS, MARKS_PIXELS, FRAME_PIXELS, CURVE_PIXELS = 30, 84, 96, 400
GROUP_PIXELS, LINE_PIXELS, GROUP_SPREAD = 18, 16, 0.78  # of `by_group`: a frame, a line, the share of its height
MARGIN = 0.1
SCORE = "Score (mean share of the positive points)"
HIGHEST = 1.0
PAIR_FRAME_PIXELS, LOWEST = 92, -0.1
FEWEST_BARRED = 4  # examples of a bin from which on its interval is drawn
READ, UNREAD = "#2f7f95", "rgba(128,136,144,0.35)"  # strong enough on paper and on slate
PUBLISHED = "#a8741f"  # 3:1 and more on both
SEGMENTS = (
    ("n_read", "read by a physician", READ),
    ("n_unread", "not read yet", UNREAD),
    ("n_hidden", "waits for your own read", "rgba(128,136,144,0.15)"),
)


def forest(table: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """Three marks with intervals a model: judge only hollow, physicians only grey, corrected solid.

    The table has model, KIND, KIND_low, KIND_high (NaN: not drawn) for judge_only, physicians_only and corrected, and needs (words in the place of a
    corrected score that is lacking, else ""), from top to bottom. An interval ends at 1, which no score exceeds.
    """
    traces: list[dict[str, Any]] = []
    for kind, words, symbol, size, shift in KINDS:
        is_known = table[kind].notna().to_numpy()
        rows, places = table.loc[is_known], np.flatnonzero(is_known) + shift
        value, low, high = (rows[kind + end].clip(upper=HIGHEST).to_numpy() for end in ("", "_low", "_high"))
        is_grey = kind == "physicians_only"
        colour = np.array([GREY if is_grey else colours[model] for model in rows["model"]], dtype=object)
        bars: dict[str, Any] = {"width": 0, "thickness": 3 if kind == "corrected" else 1.5}
        for one in dict.fromkeys(colour):  # bars of a trace have one colour, and a trace takes longer than its marks
            mine = colour == one
            ends = {"array": (high - value)[mine], "arrayminus": (value - low)[mine], "color": one}
            look = {"type": "scatter", "mode": "none", "hoverinfo": "skip", "showlegend": False}
            traces.append(look | {"x": value[mine], "y": places[mine], "error_x": bars | ends})
        if len(rows):
            hover = f"%{{customdata[2]}}, {words}: %{{x:.3f}} [%{{customdata[0]:.3f}}, %{{customdata[1]:.3f}}]"
            shown = list(zip(low, high, map(html.escape, rows["model"]), strict=True))
            ends = {"array": high - value, "arrayminus": value - low, "visible": False}
            look = {"type": "scatter", "name": words, "showlegend": False, "error_x": ends}
            traces.append(_mark(value, places, _marker(colour, size, symbol), shown, hover) | look)
        traces.append(_in_legend(words, symbol, size))
    figure = go.Figure(traces)  # one by one they take twice as long
    font = {"size": TEXT_PIXELS, "color": INK}
    beside = {"x": 0, "xref": "x domain", "xanchor": "left", "showarrow": False, "font": font}
    lacks = [(place + KINDS[-1][-1], html.escape(words)) for place, words in enumerate(table["needs"]) if words]
    figure.update_layout(annotations=[beside | {"y": place, "text": words} for place, words in lacks])
    _numbered_rows(figure, list(table["model"]), size=MODEL_PIXELS)
    return bordered(figure, height=FRAME_PIXELS + MARKS_PIXELS * len(table))


def corrected_forest(scores: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """Corrected scores alone, small: a row a model of `corrected_scores`, or what is still to be read."""
    enough = scores["enough"].astype(bool)
    ends = [scores[f"corrected{end}"].clip(upper=HIGHEST).where(enough) for end in ("", "_low", "_high")]
    words = pd.Series(list(map(score_words, *ends)), index=scores.index).where(enough, scores["needed"])
    table = scores.assign(label=scores["model"], **dict(zip(("value", "low", "high"), ends, strict=True)), words=words)
    figure = forest_plot(table.assign(colour=scores["model"].map(colours)), title=SCORE, tick_format=".2f")
    return figure if enough.any() else figure.update_xaxes(range=[0, HIGHEST])  # Plotly would draw -1 to 6


def by_group(table: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """A row a group, in it a line a model, by `group_corrected_scores`: its corrected score solid with the interval, the judge's opinion hollow beside it.

    Of models that share a colour each has a shape of its own.
    """
    groups, models = list(table["group"].drop_duplicates()), list(table["model"].drop_duplicates())
    ends = "corrected", "corrected_low", "corrected_high"
    table = table.assign(**{end: table[end].clip(upper=HIGHEST) for end in ends}, words=table["group"].map(html.escape))
    traces = [_in_legend("judge only", "circle-open", 8), _in_legend("corrected", "circle", 10)]
    before: Counter[str] = Counter()
    for number, model in enumerate(models):
        shape = MODEL_SYMBOLS[before[colours[model]] % len(MODEL_SYMBOLS)]
        before[colours[model]] += 1
        rows = table.loc[table["model"].eq(model)]
        shift = (number - (len(models) - 1) / 2) * GROUP_SPREAD / max(len(models), 1)
        place, colour = [groups.index(group) + shift for group in rows["group"]], colours[model]
        names = rows[["words", "corrected_low", "corrected_high"]]
        hover = "%{customdata[0]}, %{fullData.name}, KIND: %{x:.3f}"
        common = {"type": "scatter", "name": html.escape(model), "showlegend": False}
        hollow, solid = (_marker(colour, size, symbol, 1.5) for size, symbol in ((8, f"{shape}-open"), (10, shape)))
        judged = hover.replace("KIND", "judge only")
        traces.append(_mark(rows["judge_only"], place, hollow, names, judged) | common)
        hover = hover.replace("KIND", "corrected") + " [%{customdata[1]:.3f}, %{customdata[2]:.3f}]"
        common |= {"showlegend": True, "error_x": reach(rows, *ends, colour)}
        traces.append(_mark(rows["corrected"], place, solid, names, hover) | common)
    figure = go.Figure(traces)  # one by one they take twice as long
    _numbered_rows(figure, groups, size=TEXT_PIXELS)
    return bordered(figure, height=FRAME_PIXELS + (GROUP_PIXELS + LINE_PIXELS * len(models)) * len(groups))


def _in_legend(words: str, symbol: str, size: int) -> dict[str, Any]:
    """What a kind of mark means, in the legend alone."""
    legend = {"type": "scatter", "x": [None], "y": [None], "mode": "markers", "name": words}
    return legend | {"marker": _marker(MARK, size, symbol)}


def _marks(figure: go.Figure, x: Any, y: Any, marker: dict[str, object], shown: Any, hover: str, **more: Any) -> None:
    figure.add_scatter(**_mark(x, y, marker, shown, hover), **more)


def _mark(x: Any, y: Any, marker: dict[str, object], shown: Any, hover: str) -> dict[str, Any]:
    hovertemplate = f"{hover}<extra></extra>"
    return {"x": x, "y": y, "mode": "markers", "marker": marker, "customdata": shown, "hovertemplate": hovertemplate}


def _marker(colour: object, size: int, symbol: str, width: float = 2) -> dict[str, object]:
    return {"color": colour, "size": size, "symbol": symbol, "line": {"color": colour, "width": width}}


def _score_axis(figure: go.Figure, title: str = SCORE, tickformat: str = ".2f", **more: str) -> None:
    figure.update_xaxes(title=title, tickformat=tickformat, gridcolor=FAINT, zeroline=False, showgrid=True, **more)


def _numbered_rows(figure: go.Figure, names: Sequence[str], *, size: int) -> None:
    between: dict[str, Any] = {"tickvals": [place - 0.5 for place in range(1, len(names))], "showgrid": True}
    # lines as shapes take as long as all marks
    figure.update_yaxes(minor=between | {"gridcolor": FAINT, "gridwidth": 1})
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=[html.escape(name) for name in names])
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], showgrid=False, zeroline=False, automargin=True)
    figure.update_yaxes(tickfont={"size": size, "color": INK})
    _score_axis(figure)


def worst_at_k(table: pd.DataFrame, colours: Mapping[str, str], dashes: Mapping[str, str]) -> go.Figure:
    """A line a model: the score of the worst of k responses to an example, over k, by `judge_only.worst_at_k`."""
    figure = go.Figure()
    hover = "%{fullData.name}, worst of %{x}: %{y:.3f} (%{customdata[0]:,} examples)<extra></extra>"
    for model, rows in table.groupby("model", sort=True):
        line = _line(str(model), colours, dashes, size=7)
        figure.add_scatter(x=rows["k"], y=rows["score"], customdata=rows[["n_examples"]], hovertemplate=hover, **line)
    figure.update_xaxes(title="Responses to the example of which the worst counts (k)", dtick=1, gridcolor=FAINT)
    figure.update_yaxes(title="Score of the worst", tickformat=".2f", gridcolor=FAINT)
    return bordered(figure, height=CURVE_PIXELS)


def score_by_length(table: pd.DataFrame, colours: Mapping[str, str], dashes: Mapping[str, str]) -> go.Figure:
    """A line a model: the mean score of its responses over length, with intervals, by `judge_only.length_bins`."""
    figure = go.Figure()
    for model, rows in table.groupby("model", sort=True):
        is_barred = rows["n_examples"].ge(FEWEST_BARRED)
        bars: dict[str, Any] = reach(rows, "raw_mean", "raw_low", "raw_high", colours[str(model)])
        figure.add_scatter(
            x=rows["mean_chars"],
            y=rows["raw_mean"],
            error_y=bars | {side: bars[side].where(is_barred) for side in ("array", "arrayminus")} | {"width": 0},
            customdata=rows[["raw_low", "raw_high", "n_examples"]],
            hovertemplate="%{fullData.name}, %{x:,.0f} characters: %{y:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}], "
            "%{customdata[2]:,} examples<extra></extra>",
            **_line(str(model), colours, dashes, size=8),
        )
    figure.update_xaxes(title="Length of the response (characters)", tickformat=",.0f", gridcolor=FAINT, zeroline=False)
    # Two or three examples have an interval beyond any score: it would cross the whole picture, so it stands in the hover alone.
    lowest = min(0.0, float(table["raw_mean"].min())) if len(table) else 0.0
    limits = [lowest - MARGIN, 1 + MARGIN / 2]
    figure.update_yaxes(title="Mean score", tickformat=".2f", gridcolor=FAINT, zeroline=False, range=limits)
    return bordered(figure, height=CURVE_PIXELS)


def _line(model: str, colours: Mapping[str, str], dashes: Mapping[str, str], *, size: int) -> dict[str, Any]:
    line = {"color": colours[model], "dash": dashes[model], "width": 2}
    return {"mode": "lines+markers", "name": html.escape(model), "line": line, "marker": {"size": size}}


def beside_published(own: pd.DataFrame, published: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """This study's scores (model, score, low, high), hollow in the models' colours, over published ones (model, score, judge), grey crosses."""
    figure = go.Figure()
    names = [f"{html.escape(model)} " for model in own["model"]]  # a model of the same name may have been published
    hollow = _marker([colours[model] for model in own["model"]], 10, "circle-open") | {"line": {"width": 2}}
    bar = reach(own, "score", "low", "high", MARK) | {"thickness": 1.5}
    hover, shown = "%{y}: %{x:.3f} [%{customdata[0]:.3f}, %{customdata[1]:.3f}]", own[["low", "high"]]
    _marks(figure, own["score"], names, hollow, shown, hover, name="this study, judge only", error_x=bar)
    others = [html.escape(model) for model in published["model"]]
    hover, shown = "%{y}: %{x:.3f}, judge %{customdata[0]}", published[["judge"]].map(html.escape)
    cross = _marker(MARK, 9, "x-thin")
    _marks(figure, published["score"], others, cross, shown, hover, name="published, by another judge")
    rows = [*names, *others]
    figure.add_hline(y=len(names) - 0.5, line={"color": GREY, "width": 1})
    named_rows(figure, rows)
    _score_axis(figure)
    return bordered(figure, height=FRAME_PIXELS + ROW_PIXELS * len(rows))


def differences(table: pd.DataFrame, *, corrected: bool) -> go.Figure:
    """A row a pair from top to bottom: by how much the first is ahead. Solid after correction by physicians, hollow the judge's opinion."""
    names = (table["model_1"].map(html.escape) + " − " + table["model_2"].map(html.escape)).tolist()
    figure = go.Figure()
    hover = "%{y}: %{x:+.3f} [%{customdata[0]:+.3f}, %{customdata[1]:+.3f}]"
    marker = _marker(MARK, 10, "circle" if corrected else "circle-open")
    bar = reach(table, "difference", "low", "high", MARK) | {"thickness": 2.5 if corrected else 1.5}
    _marks(figure, table["difference"], names, marker, table[["low", "high"]], hover, error_x=bar)
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    named_rows(figure, names)
    _score_axis(figure, "Difference of the scores, on the same examples", tickformat="+.2f", rangemode="tozero")
    return bordered(figure, height=PAIR_FRAME_PIXELS + ROW_PIXELS * len(names), top=32, legend=False)


def head_to_head(table: pd.DataFrame, first: str, second: str) -> go.Figure:
    """A point an example (example_id, first, second, words): the score of one model across, of the other up; on the diagonal they are equal."""
    low = min(LOWEST, float(table[["first", "second"]].min().min()) - 0.05) if len(table) else LOWEST
    across, up = html.escape(first), html.escape(second)
    figure = go.Figure()
    figure.add_scatter(
        x=[low, 1.05], y=[low, 1.05], mode="lines", line={"color": GREY, "width": 1}, hoverinfo="skip", showlegend=False
    )
    hover = f"%{{customdata[1]}}<br>{across} %{{x:.2f}}, {up} %{{y:.2f}}"
    shown = [*zip(table["example_id"], table["words"].map(html.escape), strict=True)]
    point: dict[str, object] = {"color": MARK, "size": 9, "opacity": 0.65}
    faded = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 0.65}}}
    # drawn as SVG however many: where a browser has no WebGL, its points would be missing
    _marks(figure, table["first"], table["second"], point, shown, hover, **faded)
    axis = {"range": [low, 1.05], "tickformat": ".1f", "gridcolor": FAINT, "zeroline": False}
    figure.update_xaxes(title=f"Score of {across}", showgrid=True, **axis)
    figure.update_yaxes(title=f"Score of {up}", **axis)
    figure.update_layout(clickmode="event+select")
    return bordered(figure, height=520, top=32, legend=False)


def groups_read(table: pd.DataFrame, *, what: str, unit: str) -> go.Figure:
    """Bars by group, by `composition.parts` with marks (words at their ends): what is read, what is not; a diamond at the full benchmark's share."""
    figure = go.Figure()
    labels = table["label"].map(html.escape)  # Plotly would draw tags and links
    for column, name, colour in SEGMENTS:
        if column == "n_hidden" and not table[column].any():
            continue
        figure.add_bar(
            y=labels,
            x=table[column],
            name=name,
            orientation="h",
            marker={"color": colour, "pattern": {"shape": "/" if column == "n_hidden" else "", "fgcolor": UNREAD}},
            customdata=table["n"],
            hovertemplate="%{y}: %{x:,} of %{customdata:,}<extra>%{fullData.name}</extra>",
        )
    table = table.assign(expected=table["published_share"] * table["n_whole"])
    expected = table.loc[table["expected"].gt(0)]
    if len(expected):
        hover, name = "%{y}: %{x:,.0f} with the benchmark's share, %{customdata:.0%}", "as in the full benchmark"
        # the rim is what is seen on a bar
        diamond = _marker(PUBLISHED, 14, "diamond-tall") | {"line": {"width": 1.5, "color": "#ffffff"}}
        at = expected["expected"], labels[expected.index]
        _marks(figure, *at, diamond, expected["published_share"], hover, name=name)
    marked = table.loc[table["marks"].ne("")]
    if len(marked):
        figure.add_scatter(
            y=labels[marked.index],
            x=marked[["n", "expected"]].max(axis=1),
            mode="text",
            text="\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}" + marked["marks"].map(html.escape),
            textposition="middle right",
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=FRAME_PIXELS + 26 * max(len(table), 3),
        margin={"l": 8, "r": 150 if len(marked) else 8, "t": 28, "b": 40},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={"title": unit.capitalize(), "tickformat": ",d", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "title": what, "automargin": True},
        dragmode=False,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=list(labels))
    return figure

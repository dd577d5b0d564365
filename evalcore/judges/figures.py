"""Figures of the Judges page, drawn from top to bottom; words are escaped, since Plotly would draw tags and links."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK, MARK
from evalcore.figures.forest import forest
from evalcore.figures.frames import TEXT_PIXELS, framed, on_lines, on_one_line, reach
from evalcore.judges.agreement import MIN_ITEMS, NAMES, cells
from evalcore.judges.record import rate_cells
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.wording import counted

BLUE, OCHRE = "#4482c4", "#a8741f"  # the judge's blue, and one as strong: 3:1 and more on paper and on slate
ROW_PIXELS, FRAME_PIXELS = 34, 96
SHARES: dict[str, Any] = {"range": [-0.02, 1.02], "tickformat": ".0%"}
F1: dict[str, Any] = {"title": "Balanced F1 (0 to 1)", "range": [-0.02, 1.02], "tickformat": ".1f"}
SERIES = (("judge", BLUE, "circle", -0.14), ("physicians", MARK, "diamond-open", 0.14))
SIDES = (
    ("toward", "Toward the judge", "Took its label (share of reads that differed)", BLUE, "circle"),
    ("away", "Away from the judge", "Left its label (share of reads that agreed)", OCHRE, "diamond-open"),
)
DIRECTIONS = (
    ("to_not_met", "n_met_before", "Met, now not met", "Share of what was met", OCHRE, "diamond-open"),
    ("to_met", "n_not_met_before", "Not met, now met", "Share of what was not met", BLUE, "circle"),
)


def _dots(
    figure: go.Figure, rows: pd.DataFrame, places: Sequence[float], columns: tuple[str, str, str], marker: tuple[str, str], *,
    hover: str, shown: list[str], **more: Any,
) -> None:  # fmt: skip
    colour, symbol = marker
    words = {name: rows[name].map(html.escape) for name in ("words", "name") if name in shown}
    figure.add_scatter(
        x=rows[columns[0]],
        y=places,
        mode="markers",
        marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
        error_x=reach(rows, *columns, colour),
        customdata=rows.assign(**words)[shown],
        hovertemplate=f"{hover}<extra></extra>",
        **more,
    )


def _known(table: pd.DataFrame, column: str) -> tuple[pd.DataFrame, list[int]]:
    known = table[column].notna().to_numpy()
    return table.loc[known], np.flatnonzero(known).tolist()


def _two_series(table: pd.DataFrame, judge: str, others: str, *, form: str, of: str, n: str) -> go.Figure:
    figure = go.Figure()
    for side, colour, symbol, shift in SERIES:
        rows, places = _known(table, side)
        low, high = f"{side}_low", f"{side}_high"
        name = on_one_line(judge) if side == "judge" else others
        hover = "%{customdata[0]}: %{x:FORM} [%{customdata[2]:FORM}, %{customdata[3]:FORM}]".replace("FORM", form) + of
        _dots(
            figure, rows, [place + shift for place in places], (side, low, high), (colour, symbol), name=name, hover=hover,
            shown=["words", n.format(side), low, high],
        )  # fmt: skip
    return figure


def _two_sides(sides: Sequence[Sequence[Any]], names: Sequence[str]) -> go.Figure:
    """Two panels of shares, each title, axis, colour, symbol and rows: words, place, share, low, high, hits, n."""
    titles = [title for title, *_ in sides]
    figure = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=titles)
    for column, (title, axis, colour, symbol, rows) in enumerate(sides, start=1):
        _dots(
            figure, rows, rows["place"].tolist(), ("share", "low", "high"), (colour, symbol), name=title, row=1, col=column,
            hover="%{customdata[0]}: %{x:.0%} (%{customdata[1]:,}/%{customdata[2]:,}) [%{customdata[3]:.0%}, %{customdata[4]:.0%}]",
            shown=["words", "hits", "n", "low", "high"],
        )  # fmt: skip
        figure.update_xaxes(title=axis, row=1, col=column)
    figure.update_annotations(font_size=TEXT_PIXELS)
    _framed(figure, names, **SHARES)
    return figure.update_layout(showlegend=False, margin={"l": 8, "r": 8, "t": 36, "b": 40})


def _framed(figure: go.Figure, names: Sequence[str], *, least_rows: int = 2, **axis: Any) -> go.Figure:
    figure.update_xaxes(gridcolor=FAINT, zeroline=False, **axis)
    rows = [on_lines(name) for name in names]
    return framed(figure, rows, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, least_rows=least_rows)


def shift(table: pd.DataFrame) -> go.Figure:
    """Dots with intervals by kind of criterion, from `anchoring`: left the share that moved toward the judge, right the share that moved away."""
    groups = list(table["group"].drop_duplicates())
    known = table.loc[table["share"].notna()]
    known = known.assign(words=known["group"], place=known["group"].map(groups.index), hits=known["n_moved"])
    sides = [(*side, known.loc[known["movement"].eq(movement)]) for movement, *side in SIDES]
    return _two_sides(sides, groups)


def health(table: pd.DataFrame, judge: str) -> go.Figure:
    """Dots with intervals by group: the shares that judge and physicians find met, by `criterion_health` with words (of the group) and alarms (in words)."""
    of = " met, %{customdata[1]:,} items"
    figure = _two_series(table, judge, "physicians, blind", form=".0%", of=of, n="n")
    _framed(figure, table["words"].tolist(), title="Met (share of items)", **SHARES)
    alarmed = [
        on_lines(words) + (f"  <b>{html.escape(alarms)}</b>" if alarms else "")
        for words, alarms in zip(table["words"], table["alarms"], strict=True)
    ]
    return figure.update_yaxes(ticktext=alarmed)


def by_category(table: pd.DataFrame, judge: str) -> go.Figure:
    """Dots with intervals, a row a category of `quality.side_by_side`: a judge against physicians and physicians against one another."""
    named, of = table.assign(words=table["category"]), ", %{customdata[1]:,} pairs"
    figure = _two_series(named, judge, "physicians, against one another", form=".2f", of=of, n="{}_pairs")
    return _framed(figure, table["category"].tolist(), **F1)


def among_physicians(judge: pd.DataFrame, physicians: pd.DataFrame) -> go.Figure:
    """Where a judge stands: its balanced F1 as a dot among ticks, one a physician; a row over all and one a theme; name is what the hover may say."""
    figure = go.Figure()
    places = {words: place for place, words in enumerate(judge["words"])}
    known = judge.loc[judge["balanced_f1"].notna()].assign(name="the judge")
    for rows, name, marker in (
        (physicians, "physicians", {"color": GREY, "size": 16, "symbol": "line-ns-open", "line": {"width": 2}}),
        (known, "the judge", {"color": BLUE, "size": 12, "symbol": "circle"}),
    ):
        shown = rows.assign(name=rows["name"].map(html.escape))[["name", "n_pairs"]]
        looks = {"mode": "markers", "name": name, "marker": marker, "customdata": shown}
        hover = "%{customdata[0]}: %{x:.2f}, %{customdata[1]:,} pairs<extra></extra>"
        figure.add_scatter(x=rows["balanced_f1"], y=rows["words"].map(places), hovertemplate=hover, **looks)
    return _framed(figure, judge["words"].tolist(), **F1)


def flips(table: pd.DataFrame) -> go.Figure:
    """Dots with intervals by group, from `drift.flips`: left met labels that became not met, right the other way."""
    sides = []
    for name, total, *side in DIRECTIONS:
        columns = {"share": name, "low": f"{name}_low", "high": f"{name}_high", "hits": f"n_{name}", "n": total}
        rows, places = _known(table, name)
        sides.append((*side, rows.assign(place=places, **{new: rows[old] for new, old in columns.items()})))
    return _two_sides(sides, table["words"].tolist())


def score_drift(table: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """Each model's mean score by the earlier judge (open) and the later one (filled), joined by a line, from `drift.score_drift`."""
    rows, places = _known(table, "score_before")
    of_row = [colours.get(model, MARK) for model in rows["model"]]
    plain = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    lines = [
        plain | {"x": [before, after], "y": [place, place], "line": {"color": colour, "width": 2}}
        for place, colour, before, after in zip(places, of_row, rows["score_before"], rows["score_after"], strict=True)
    ]
    figure = go.Figure(lines)  # one by one they take twice as long
    words = rows.assign(words=rows["words"].map(html.escape))[["words", "difference", "low", "high"]]
    hover = "%{customdata[0]}: %{x:.3f}, difference %{customdata[1]:+.3f} [%{customdata[2]:+.3f}, %{customdata[3]:+.3f}]<extra></extra>"
    kinds = (("score_before", "earlier judge", "circle-open"), ("score_after", "later judge", "circle"))
    for column, name, symbol in kinds:
        marker = {"color": of_row, "size": 11, "symbol": symbol, "line": {"color": of_row, "width": 2}}
        looks = {"mode": "markers", "name": name, "marker": marker, "customdata": words}
        figure.add_scatter(x=rows[column], y=places, hovertemplate=hover, **looks)
    title = "Mean score (at most 1, not clipped at 0)"
    return _framed(figure, table["words"].tolist(), title=title, tickformat=".3f")


def own_family(table: pd.DataFrame) -> go.Figure:
    """How much more often the judge's label favours its own family's responses, from `self_preference.by_label`; the combined dot is filled."""
    figure = go.Figure()
    for is_combined, colour, symbol in ((True, BLUE, "circle"), (False, MARK, "circle-open")):
        mine = table["is_together"].eq(is_combined).to_numpy()
        ends = ["difference", "low", "high"]
        rows = table.loc[mine].assign(**{name: 100 * table.loc[mine, name] for name in ends})
        _dots(
            figure, rows, np.flatnonzero(mine).tolist(), ("difference", "low", "high"), (colour, symbol), showlegend=False,
            hover="%{customdata[0]}: %{x:+.0f} points, %{customdata[1]:,} own reads and %{customdata[2]:,} others",
            shown=["words", "n_own", "n_other"],
        )  # fmt: skip
    figure.add_vline(x=0, line={"color": MARK, "width": 1})
    title = "Own family less others (percentage points; right of 0: in its own favour)"
    return _framed(figure, table["words"].tolist(), least_rows=3, title=title, tickformat=".0f")


def record_forest(record: pd.DataFrame) -> go.Figure:
    """Rows of `judge_record` from top to bottom: how often the judge's label is that of physicians' blind first reads."""
    words = rate_cells(record, "share", "n_right", "n")
    table = record.assign(label=record["kind"], value=record["share"], words=words, colour=BLUE)
    return forest(table, title="Matches physicians' blind reads (share)", tick_format=".0%", limits=SHARES["range"])


def beside_physicians(records: pd.DataFrame, among: pd.DataFrame) -> go.Figure:
    """Each judge by its `judge_record` of all criteria, and physicians among themselves by `quality.same_labels`."""
    judges = records.assign(label=records["judge"], colour=BLUE)
    table = pd.concat([judges, among.assign(label="Physicians among themselves", colour=INK)], ignore_index=True)
    table = table.assign(value=table["share"], words=rate_cells(table, "share", "n_right", "n"))
    title = "Agrees with a physician's blind first read (share)"
    return forest(table, title=title, tick_format=".0%", limits=SHARES["range"])


def pair_forest(whole: pd.DataFrame, pairs: pd.DataFrame, coefficient: str, *, who: str, prefix: str) -> go.Figure:
    """One coefficient: of all raters together, with the interval that the prefix names (`agreement`), and of each two (`pair_agreement`), few in grey."""
    ends = {name: whole[f"{prefix}{name}"] for name in ("low", "high", "reason")}
    first = whole.assign(**ends, label=f"All {who} together", colour=INK)
    is_few = pairs["n_items"].lt(MIN_ITEMS)
    names = pairs["rater_1"] + " and " + pairs["rater_2"]
    rest = pairs.assign(label=names, colour=is_few.map({True: GREY, False: MARK}))
    table = pd.concat([first, rest], ignore_index=True)
    numbers = zip(cells(table), table["n_items"], strict=True)
    table["words"] = [f"{value}, {counted(n, 'criterion', 'criteria')}" for value, n in numbers]
    is_share = coefficient == Coefficient.AGREEMENT
    return forest(table, title=NAMES[Coefficient(coefficient)], tick_format=".0%" if is_share else ".1f")

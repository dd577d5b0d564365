"""How far assigned reading is, how fast it goes, and until when at this pace."""

import html
import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT
from evalcore.figures.forest import with_words
from evalcore.figures.frames import framed, on_lines
from evalcore.study.schema import Ask

LATELY = timedelta(days=7)
DAY = timedelta(days=1)
MOST_DAYS = 365
BRIEFLY = {Ask.RUBRIC: "Criteria", Ask.RESPONSE_ACUITY: "Response's level", Ask.GOLD_ACUITY: "Case's level"}
"""What readers are asked, above a column."""
READ, LEFT = "#2f7f95", "rgba(128,136,144,0.35)"  # strong enough on paper and on slate
ROW_PIXELS, FRAME_PIXELS = 32, 96
COLUMNS = ["label", "n_done", "n_left", "words"]


def reads_a_day(locked: pd.Series, at: datetime) -> float:
    """Reads a day over the last seven days, or since the first of all where that is later, a day at least; NaN where none was locked in that time."""
    n = int((locked > at - LATELY).sum())
    return n / (min(max(at - locked.min(), DAY), LATELY) / DAY) if n else math.nan


def pace_words(a_day: float, n_left: int, at: datetime) -> str:
    """The pace, and the day on which what is left is read at this pace.

    >>> at = datetime(2026, 11, 25)
    >>> [pace_words(a_day, 20, at) for a_day in (2.5, 0.01, math.nan)]
    ['2.5 a day, at this pace until 3 December', '0.01 a day, at this pace more than a year', 'no pace yet']
    """
    if math.isnan(a_day):
        return "no pace yet"
    words = f"{a_day:.1f} a day" if a_day >= 1 else f"{a_day:.2g} a day"
    if not n_left:
        return words
    if n_left / a_day > MOST_DAYS:
        return f"{words}, at this pace more than a year"
    day = at + timedelta(days=math.ceil(n_left / a_day))
    return f"{words}, at this pace until {day.day} {day:%B}{f' {day.year}' if day.year != at.year else ''}"


def progress(assignments: pd.DataFrame, reads: pd.DataFrame, at: datetime) -> pd.DataFrame:
    """All assigned reading, each assignment (where there are several), and each reader with a read: `COLUMNS`, a row each. What is skipped is no read.

    `assignments` and `reads` are as `assignment_queries` gives them. Readers share what is left, so of a reader n_left is 0.
    """
    table = assignments
    state = table["cancelled_at"].notna().map({True: " (cancelled)", False: ""})
    state = state.mask(table["cancelled_at"].isna() & table["paused_at"].notna(), " (paused)")
    n_done, n_wanted, n_skipped = (int(table[name].sum()) for name in ("n_reads", "n_wanted", "n_skipped"))
    rows = [("All assigned reading", n_done, n_wanted, n_skipped, reads["locked_at"])]
    for row in table.assign(state=state).to_dict(orient="records") if len(table) > 1 else ():
        locked = reads.loc[reads["assignment_id"].eq(row["assignment_id"]), "locked_at"]
        made = row["created_at"]
        label = f"{BRIEFLY[Ask(row['ask'])]}, {made.day} {made:%B}{row['state']}"
        rows += [(label, row["n_reads"], row["n_wanted"], row["n_skipped"], locked)]
    found: list[list[Any]] = []
    for name, done, wanted, skipped, locked in rows:
        said = f"{done:,} of {wanted:,}" + (f", {skipped:,} skipped" if skipped else "")
        n_left = max(wanted - done, 0)
        goes = pace_words(reads_a_day(locked, at), n_left, at) if n_left else "finished"
        found.append([name, done, n_left, f"{said}: {goes}"])
    for reader, locked in reads.groupby("reader")["locked_at"]:
        found += [[str(reader), len(locked), 0, f"{len(locked):,}: {pace_words(reads_a_day(locked, at), 0, at)}"]]
    return pd.DataFrame(found, columns=COLUMNS)


def progress_figure(table: pd.DataFrame) -> go.Figure:
    """A bar a row of `progress`, from top to bottom: reads that are locked, and those that are left, with the pace in words beside it."""
    figure = go.Figure()
    for column, name, colour in (("n_done", "read", READ), ("n_left", "still to read", LEFT)):
        hover = "%{customdata}: %{x:,}<extra>%{fullData.name}</extra>"
        figure.add_bar(
            x=table[column],
            y=list(range(len(table))),
            name=name,
            orientation="h",
            marker={"color": colour},
            customdata=table["label"].map(html.escape),
            hovertemplate=hover,
        )
    framed(
        figure,
        [on_lines(label) for label in table["label"]],
        row_pixels=ROW_PIXELS,
        frame_pixels=FRAME_PIXELS,
        least_rows=1,
    )
    grid = {"gridcolor": FAINT, "showgrid": True, "zeroline": False}
    figure.update_xaxes(title="Reads", tickformat=",d", rangemode="tozero", **grid)
    figure.update_layout(barmode="stack", bargap=0.4, legend_traceorder="normal")
    return with_words(figure, list(table["words"]))


def by_reader(readers: pd.DataFrame, reads: pd.DataFrame, at: datetime) -> pd.DataFrame:
    """Each reader's pace, and the whole days that all they could take now would last at it.

    Returns:
        `readers` with the columns pace (reads a day) and days, NaN without pace.

    `readers` and `reads` are as `assignment_queries` gives them. Readers share what waits, so the days are at most these.
    """
    paces = {str(name): reads_a_day(locked, at) for name, locked in reads.groupby("reader")["locked_at"]}
    pace = readers["reader"].map(paces).astype(float)
    n_left = readers["n_open"] + readers["n_waiting"]
    return readers.assign(pace=pace, days=pd.Series(np.ceil(n_left / pace)).where(n_left.gt(0), 0.0))

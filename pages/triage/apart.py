"""Boundary and ambiguous cases: two sections of the Triage page, apart from all rates."""

import math
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.calibration.sections import OfAmbiguous
from evalcore.stats.intervals import percent_words, share_words
from evalcore.study.schema import Viewer
from evalcore.triage.data import Kind
from evalcore.triage.figures import LETTERS, apart
from evalcore.triage.rates import ambiguous, boundary
from evalcore.triage.settings import rule_words
from evalcore.triage.words import rate_words
from pages.calibration import ambiguous as calibration_ambiguous
from pages.shared import calibration_choice, html, tables, theme, triage_cases, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen, Here, Read

EVERY = "every answer"
OUTSIDE = {
    "below both letters": "outside_low",
    "one of the letters": "constituent",
    "above both letters": "outside_high",
}
PARTS = (
    ("outside_low", "below both letters"),
    ("lower", "the milder letter"),
    ("upper", "the more severe letter"),
    ("outside_high", "above both letters"),
)
BOUNDARY_FOOT = (
    "A boundary case's gold lies between two letters, and both are right, so it enters no rate of over- or under-triage. The upper share is of the "
    "answers with one of the "
    "letters. Intervals are 95 % (Wilson)."
)


def boundaries(read: Read) -> pd.DataFrame:
    """The shares of every model on boundary cases."""
    return boundary(read.found)


def show_boundary(here: Here) -> None:
    """How models answer cases that lie between two levels."""
    viewer, chosen = here.viewer, here.chosen
    if not here.known.n_kinds[Kind.BOUNDARY]:
        st.html(html.notice("No case of this study lies between two levels."))
        return
    table = triage_choice.computed(boundaries, viewer, chosen).astype({"model": str, "format": str, "measure": str})
    wide = _wide(table)
    st.html(html.finding(boundary_words(table)))
    drawn = wide.loc[wide["n"].gt(0)].reset_index(drop=True)
    if len(drawn):
        st.plotly_chart(
            apart(drawn, FORMATS, PARTS, ink=theme.ink()),
            config={"displayModeBar": False},
            key="triage_boundary",
            alt="Answers to boundary cases: below both letters, the milder, the more severe, above both",
        )
    rows = table.assign(words=[rate_words(row) for row in table.to_dict(orient="records")])
    cells = rows.pivot(index=["model", "format"], columns="measure", values="words").reset_index()
    cells = triage_choice.in_order(cells)
    tables.show(
        {
            "Model": cells["model"],
            "Format": cells["format"].map(FORMATS),
            "One of the letters": cells["constituent"],
            "Of these, the more severe": cells["upper_share"],
            "Below both": cells["outside_low"],
            "Above both": cells["outside_high"],
        },
        key="triage_boundary_table",
        alt="Answers to boundary cases by model and format",
        names=("Model",),
    )
    with here.row:
        model = triage_choice.one_of("Model", here.known.models, "triage_model", width=200)
        where = triage_choice.one_of("Answers", list(OUTSIDE), "triage_outside", width=200)
    found = triage_choice.read(viewer, chosen).found
    mine = found.loc[found["kind"].eq(Kind.BOUNDARY) & found["model"].eq(model) & found["predicted"].notna()]
    low, high = np.floor(mine["gold"]), np.ceil(mine["gold"])
    fits = {
        "outside_low": mine["predicted"].lt(low),
        "constituent": mine["predicted"].between(low, high),
        "outside_high": mine["predicted"].gt(high),
    }[OUTSIDE[where]]
    if fits.any():
        triage_cases.listing(viewer, chosen, mine.loc[fits], key="triage_boundary_cases")
    else:
        triage_cases.none(f"No answer of {model} to a boundary case is {where}.")
    st.html(html.foot(BOUNDARY_FOOT))


def _wide(table: pd.DataFrame) -> pd.DataFrame:
    """A row a model and format with the shares that the bars are made of."""
    found = []
    for (model, word), part in table.groupby(["model", "format"], sort=False):
        rows = {str(row["measure"]): row for row in part.to_dict(orient="records")}
        n, inside, upper = rows["constituent"]["n"], rows["constituent"]["k"], rows["upper_share"]["k"]
        counts = {"outside_low": rows["outside_low"]["k"], "lower": inside - upper, "upper": upper, "outside_high": rows["outside_high"]["k"]}  # fmt: skip
        shares = {name: k / n if n else math.nan for name, k in counts.items()}
        found.append(
            {"model": model, "format": word, "n": n, **shares, **{f"{name}_k": k for name, k in counts.items()}}
        )
    return pd.DataFrame(found)


def boundary_words(table: pd.DataFrame) -> str:
    """Whose answers lie below both letters, in words: of whom it was found most often, with its interval."""
    low = table.loc[table["measure"].eq("outside_low") & table["value"].notna()]
    if low.empty:
        return "No boundary case has an answer with a level."
    row = low.iloc[int(low["value"].to_numpy().argmax())]
    if not row["k"]:
        return f"No answer to a boundary case lies below both of its letters; that cannot exclude up to {percent_words(low['high'].max())} of a model's."
    return f"In {FORMATS[row['format']]} {row['model']} answers below both letters on {rate_words(row.to_dict())} of the boundary cases."


# ---------------------------------------------------------------- ambiguous


def answers(read: Read) -> pd.DataFrame:
    """What every model answers to ambiguous cases."""
    return ambiguous(read.found)


def surest(viewer: Viewer, chosen: Chosen) -> pd.DataFrame:
    """Ambiguous cases with votes, those first where the model is sure and physicians are not: the list that the Calibration page keeps."""
    source = calibration_choice.usual_source(viewer, chosen)
    kept: OfAmbiguous = triage_choice.computed(calibration_ambiguous.ambiguous, viewer, chosen, chosen.judges, source)
    found = triage_choice.read(viewer, chosen).found
    names = ["row", "model", "format", "concentration", "panel_share", "entropy_panel", "entropy_model"]
    mine = found.loc[found["kind"].eq(Kind.AMBIGUOUS)]
    return kept.cases[names].merge(mine, on=["row", "model", "format"], how="left")


def show_ambiguous(here: Here) -> None:
    """Cases on which physicians do not agree: no accuracy, the panel's votes beside the model's samples."""
    viewer, chosen = here.viewer, here.chosen
    n = here.known.n_kinds[Kind.AMBIGUOUS]
    if not n:
        st.html(html.notice(f"No case of this study is ambiguous: {rule_words(here.settings.rule)}."))
        return
    table = triage_choice.computed(answers, viewer, chosen).astype({"model": str, "format": str})
    st.html(html.finding(ambiguous_words(table, n)))
    rows = table.to_dict(orient="records")
    columns: dict[str, Any] = {
        "Model": [],
        "Format": [],
        "Cases": [],
        **{letter: [] for letter in LETTERS},
        "All samples agree": [],
    }
    for row in rows:
        level = LETTERS[int(row["predicted"]) - 1]
        columns[level].append(share_words(row["n"], row["n_cases"], row["share"]))
        if level == LETTERS[0]:
            columns["Model"].append(row["model"])
            columns["Format"].append(FORMATS[row["format"]])
            columns["Cases"].append(row["n_cases"])
            columns["All samples agree"].append(share_words(row["n_sure"], row["n_several"], row["sure"]))
    tables.show(
        columns, key="triage_ambiguous_table", alt="Answers to ambiguous cases by model and format", names=("Model",)
    )
    with here.row:
        model = triage_choice.one_of("Model", [EVERY, *here.known.models], "triage_of_model_ambiguous", width=200)
    found = surest(viewer, chosen)
    if model != EVERY:
        found = found.loc[found["model"].eq(model)]
    st.subheader("Sure where physicians are not", anchor=False)
    if found.empty:
        triage_cases.none("No ambiguous case has both the votes of a panel and two samples with a level.")
    else:
        said = [
            f"{percent_words(row['panel_share'])} of the panel chose {LETTERS[int(row['predicted']) - 1]}"
            if not math.isnan(row["panel_share"])
            else ""
            for row in found.to_dict(orient="records")
        ]
        triage_cases.listing(viewer, chosen, found, key="triage_ambiguous_cases", said=said)
    st.html(
        html.foot(
            f"Ambiguous: {rule_words(here.settings.rule)}. There is no right answer, so there is no accuracy. All samples agree: of cases with two "
            f"samples or more with a "
            "level. The list begins where the panel's votes spread most and the model's samples least (entropy of the votes less entropy of the "
            "samples, in bits). "
            "How far samples lie from votes stands on the Calibration page."
        )
    )


def ambiguous_words(table: pd.DataFrame, n: int) -> str:
    """How sure the models are where physicians are not, in words."""
    known = table.drop_duplicates(["model", "format"])
    known = known.loc[known["sure"].notna()]
    many = "One case is ambiguous" if n == 1 else f"{n:,} cases are ambiguous"
    if known.empty:
        return f"{many}: no answer to them has two samples with a level, so nothing says how sure a model is."
    row = known.iloc[int(known["sure"].to_numpy().argmax())]
    sure = share_words(row["n_sure"], row["n_several"], row["sure"])
    return f"{many}: in {FORMATS[row['format']]} all samples of {row['model']} agree on {sure} of those it answers, the highest share found."

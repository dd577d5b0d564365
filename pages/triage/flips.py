"""Flips: a section of the Triage page. Cases whose answer changes with the format in which the model was asked."""

import math
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.stats.intervals import NO_VALUE, interval_words, share_words
from evalcore.study.db import reading
from evalcore.study.schema import Viewer
from evalcore.triage.cases import flip_counts, flips
from evalcore.triage.data import TriageData
from evalcore.triage.queries import Told, told
from evalcore.triage.words import flip_sentence, points
from pages.shared import common, html, routes, suspects, tables, triage_cases, triage_choice, triage_html
from pages.shared.triage_choice import FORMATS, Chosen, Here, Read

SHOWN = 8
FOOT = (
    "A flip is a case on which a model's most frequent level differs between qa and conversation; cases of every kind count, also those without a "
    "gold. First those that "
    "cross the line to an emergency, then by how far apart the two are. The difference of under-triage is conversation less qa on the same cases with "
    "a clear gold, "
    "with a 95 % interval for paired shares (Bonett and Price 2012) and the exact test of McNemar. Each response is the first whose own level is the "
    "one that counts, else the first with a text."
)


def counts(read: Read) -> pd.DataFrame:
    """How often the format changes each model's answer."""
    return flip_counts(read.found)


def flipped(read: Read) -> pd.DataFrame:
    """The cases, those first that cross the line to an emergency."""
    return flips(read.found)


def show(here: Here) -> None:
    """Counts by model, then the cases of one model with both answers beside each other."""
    viewer, chosen = here.viewer, here.chosen
    if len(here.settings.formats) < len(FORMATS):
        st.html(
            html.notice(
                "The settings of this study show one format alone. A flip needs both: the lead can choose them on Study."
            )
        )
        return
    if len(chosen.judges) < len(FORMATS):
        st.html(
            html.notice(
                "Only one format has levels. A flip needs the same cases asked in both: import the other format's predictions."
            )
        )
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return
    table = triage_choice.computed(counts, viewer, chosen)
    rows = table.to_dict(orient="records")
    if not table["n_both"].any():
        st.html(html.notice("No case has an answer with a level in both formats."))
        return
    with here.row:
        model = triage_choice.one_of("Model", here.known.models, "triage_model", width=170)
        only = st.toggle("Crossing to or from D", key="triage_crossing", bind="query-params")
    st.html(html.finding(" ".join(flip_sentence(row) for row in rows if str(row["model"]) == model)))
    tables.show(
        {
            "Model": table["model"].astype(str),
            "Changes with the format": [_flipped(row) for row in rows],
            "Lower in conversation": table["n_lower"],
            "Higher": table["n_higher"],
            "Cross to or from D": table["n_crossing"],
            "Under-triage, conversation less qa": [_difference(r) for r in rows],
            "Clear cases": table["n"],
            "p": [_p(r["p"]) for r in rows],
        },
        key="triage_flip_counts",
        alt="How often the format changes each model's answer",
        names=("Model",),
    )  # fmt: skip
    found = triage_choice.computed(flipped, viewer, chosen)
    found = found.loc[found["model"].astype(str).eq(model) & (found["crosses"] | (not only))]
    if found.empty:
        triage_cases.none(f"No answer of {model} {'crosses that line' if only else 'changes with the format'}.")
    else:
        _listing(viewer, chosen, found)
    st.html(html.foot(FOOT))


def _flipped(row: dict[Any, Any]) -> str:
    return f"{share_words(row['n_flipped'], row['n_both'], row['flipped'])} {interval_words(row['flipped_low'], row['flipped_high'])}"


def _difference(row: dict[Any, Any]) -> str:
    if math.isnan(row["difference"]):
        return f"{NO_VALUE} ({row['reason']})"
    return f"{points(row['difference'])} [{points(row['low'])}, {points(row['high'])}] points"


def _p(value: float) -> str:
    return NO_VALUE if math.isnan(value) else "< 0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004


def _listing(viewer: Viewer, chosen: Chosen, found: pd.DataFrame) -> None:
    """The cases, both answers beside each other, a few at a time."""
    triage_data, judges = triage_choice.read(viewer, chosen).triage_data, dict(chosen.judges)
    n_pages = max(math.ceil(len(found) / SHOWN), 1)
    head = st.container()
    page = st.pagination(n_pages, key="triage_flips_page") if n_pages > 1 else 1
    part = found.iloc[(page - 1) * SHOWN : page * SHOWN]
    sides = [_side(triage_data, part, word, judges) for word in FORMATS]
    with reading(common.engine()) as session:
        texts = told(session, [row["response_id"] for side in sides for row in side if row["response_id"] >= 0])
    with head:
        common.list_openly(viewer, [row["example_id"] for row in sides[0]])
        for place, (row, *both) in enumerate(zip(part.to_dict(orient="records"), *sides, strict=True)):
            first = both[0]
            crosses = "crosses the line to an emergency" if row["crosses"] else ""
            about = (str(row["model"]), str(first["case_id"]), crosses)
            heading = triage_html.flip(row["gold"], row["qa"], row["conversation"])
            st.html(triage_html.case(str(first["first_words"]), heading, about))
            for column, side in zip(st.columns(2, gap="medium"), both, strict=True):
                column.html(_answer(side, texts.get(side["response_id"]), judges[str(side["format"])]))
            with st.container(key=f"triage_flips_{place}"):
                triage_cases.open_case(first["example_id"], [side["sample_name"] for side in both])


def _side(triage_data: TriageData, part: pd.DataFrame, word: str, judges: dict[str, str]) -> list[dict[Any, Any]]:
    """The answers of one format, each with the response that is shown."""
    rows = part[["row", "model"]].assign(format=word, predicted=part[word], first=part[f"{word}_first"])
    return triage_cases.described(triage_data, rows, judges).to_dict(orient="records")


def _answer(side: dict[Any, Any], said: Told | None, judge: str) -> str:
    shown = triage_html.told(said.text if said else "", f"{side['model']}, {FORMATS[str(side['format'])]}")
    if said is None or math.isnan(side["sample_level"]):
        return shown
    read = triage_html.read_as(judge, side["sample_level"], said.explanations.get(judge, ""), side["predicted"])
    return shown + read + suspects.of(int(side["response_id"]))

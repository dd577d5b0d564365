"""Ambiguous cases: a section of the Calibration page. The model's samples beside the panel's votes, where physicians do not agree."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.calibration import sections
from evalcore.calibration.case_spread import MEASURE_WORDS as MEASURES
from evalcore.calibration.case_spread import NO_SPREAD, from_zero, spread_findings, spread_words
from evalcore.calibration.figures import spread
from evalcore.calibration.sections import OfAmbiguous
from evalcore.figures.colours import colour_of
from evalcore.stats.intervals import percent_words
from evalcore.stats.wording import counted
from evalcore.triage.data import Kind
from evalcore.triage.settings import rule_words
from evalcore.triage.words import level_letter, number_words
from pages.calibration import meaning as calibration_meaning
from pages.shared import calibration_choice, html, tables, theme, triage_cases, triage_choice
from pages.shared.calibration_choice import ALL_MODELS, NO_INTERVAL
from pages.shared.triage_choice import FORMATS, Here, Read

BOTH = "both formats"
SHOWN = ("distance", "entropy_panel", "entropy_model", "concentration")
OF_CASES = ("row", "model", "format", "concentration", "entropy_panel", "entropy_model", "panel_share", "confidence")
TALLEST, CHANCE = 8, "by chance"
FOOT = (
    "The distance is the squared gap between the model's and the panel's shares, added up over the three cuts between levels, less what so few votes and "
    "samples give by chance: 0 for a model that draws from the same physicians, on average; single cases may lie below 0. Entropy is 0 where all say one "
    "level and 2 bits where all four come equally often. Concentration is the panel's entropy less the model's: above 0 the model is surer than the "
    "physicians. By chance: what a model that draws from the panel would have, with as many votes and samples. Intervals are 95 % (t over cases)."
)


def ambiguous(read: Read, judges: tuple[tuple[str, str], ...], source: str) -> OfAmbiguous:
    """As `sections.on_ambiguous`."""
    return sections.on_ambiguous(read.triage_data, calibration_choice.own(read, source), dict(judges))


def show(here: Here) -> None:
    """How far models' samples lie from panels' votes, and the cases."""
    if calibration_choice.without_levels(here):
        return
    viewer, chosen = here.viewer, here.chosen
    if not here.known.n_kinds[Kind.AMBIGUOUS]:
        st.html(html.finding("No case of this study is ambiguous."))
        calibration_choice.nothing(
            f"A case is ambiguous by {rule_words(here.settings.rule)}. Import cases with a panel's votes, or change the rule on Study.",
            label="Go to Study",
        )
        return
    meaning = calibration_choice.model_meaning(viewer, chosen)
    with here.row:
        source = calibration_choice.confidence(meaning)
    if len(meaning):
        calibration_meaning.show(viewer, meaning, key="calibration_own", of_models=True)
    found: OfAmbiguous = triage_choice.computed(ambiguous, viewer, chosen, chosen.judges, source)
    if found.summary.empty:
        calibration_choice.nothing(
            f"{NO_SPREAD} Import the panels' votes and several samples of each answer.", label="Import a file"
        )
    else:
        for sentence in spread_findings(found.summary):
            st.html(html.finding(sentence))
        _distances(found)
    st.subheader("Sure where physicians are not", anchor=False)
    _cases(here, found)
    few = (
        f" {counted(found.n_few, 'answer')} with one valid sample are left out, since one shows no spread."
        if found.n_few
        else ""
    )
    st.html(html.foot(f"Ambiguous: {rule_words(here.settings.rule)}. {FOOT}{few} Seed {sections.SEED}."))


def _distances(found: OfAmbiguous) -> None:
    table = calibration_choice.named(from_zero(found.summary))
    st.plotly_chart(
        spread(table, FORMATS, colour_of(triage_choice.colours()), ink=theme.ink()),
        config={"displayModeBar": False},
        key="calibration_spread",
        alt="Distances between samples and votes and the entropies of both beside what chance alone gives, by model and format",
    )
    heads = {
        name: MEASURES[name] if name == "distance" else f"{MEASURES[name].removesuffix(', bits')} ({CHANCE})"
        for name in SHOWN
    }
    wide: dict[str, list[Any]] = {head: [] for head in ("Model", "Format", "Cases", *heads.values())}
    for _, rows in table.groupby("name", sort=False):
        of = {str(row["measure"]): row for row in rows.to_dict(orient="records")}
        first = of[SHOWN[0]]
        wide["Model"].append(first["model"])
        wide["Format"].append(FORMATS[first["format"]])
        wide["Cases"].append(first["n_cases"])
        for measure in SHOWN:
            wide[heads[measure]].append(spread_words(of[measure]))
    tables.show(wide, key="calibration_far", names=("Model",), alt="Samples beside votes by model and format")


def _cases(here: Here, found: OfAmbiguous) -> None:
    """As a table, of which a row can be opened, and as a list; both lead to the case."""
    if found.cases.empty:
        triage_cases.none("No ambiguous case has both the votes of a panel and two samples of a model with a level.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="calibration_of"):
        model = calibration_choice.one_of("Model", [ALL_MODELS, *here.known.models], "calibration_of_model", width=180)
        asked = calibration_choice.one_of("Format", [BOTH, *FORMATS.values()], "calibration_of_format", width=160)
    cases = found.cases[list(OF_CASES)]
    if model != ALL_MODELS:
        cases = cases.loc[cases["model"].astype(str).eq(model)]
    if asked != BOTH:
        cases = cases.loc[cases["format"].astype(str).map(FORMATS).eq(asked)]
    if cases.empty:
        triage_cases.none("No ambiguous case with votes has two samples with a level here.")
        return
    read = triage_choice.read(here.viewer, here.chosen)
    mine = read.found.loc[read.found["kind"].eq(Kind.AMBIGUOUS)]
    keys = ["row", "model", "format"]
    listed = cases.merge(mine, on=keys, how="left")
    touched = _table(listed, read.triage_data.cases)
    if touched is not None:
        listed = listed.iloc[[touched]]
    said = [
        f"{percent_words(row['panel_share'])} of the panel chose {level_letter(row['predicted'])}"
        for row in listed.to_dict(orient="records")
    ]
    triage_cases.listing(here.viewer, here.chosen, listed, key="calibration_cases", said=said)


def _table(listed: pd.DataFrame, cases: pd.DataFrame) -> int | None:
    """The cases in their order; which row was clicked."""
    rows = listed.to_dict(orient="records")
    of = cases.iloc[listed["row"].to_numpy()]
    table = tables.frame(
        {
            "Case": of["case_id"],
            "Model": listed["model"].astype(str),
            "Format": listed["format"].astype(str).map(FORMATS),
            "Answers": [level_letter(row["predicted"]) for row in rows],
            "Confidence": [percent_words(row["confidence"]) for row in rows],
            "Votes for it": [percent_words(row["panel_share"]) for row in rows],
            "Panel's entropy": [f"{row['entropy_panel']:.2f}" for row in rows],
            "Model's entropy": [f"{row['entropy_model']:.2f}" for row in rows],
            "Concentration (bits)": [number_words(row["concentration"], *NO_INTERVAL) for row in rows],
        }
    )
    pixels = tables.row_pixels(table, ("Model",))
    event = st.dataframe(
        table,
        key="calibration_case_list",
        hide_index=True,
        width="content",
        height=tables.height(len(table), TALLEST, row_pixels=pixels),
        row_height=pixels if pixels != tables.ROW_PIXELS else None,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        column_config=tables.formats(table, ("Model",)),
        alt="Ambiguous cases, those first where the model is sure and physicians are not",
    )
    st.html(html.quiet("Click a row to see that case alone."))
    touched = [*event.selection.rows, *(row for row, _ in event.selection.cells)]
    return touched[0] if touched and touched[0] < len(table) else None

"""All models at once: the direction of their errors, small matrices, their rates, and what the numbers leave out."""

import pandas as pd
import streamlit as st

from evalcore.stats.wording import chance_words
from evalcore.study.schema import Viewer
from evalcore.triage import figures
from evalcore.triage.bases import WHOSE, Basis, Held, difference_words, margin_sentences, safety_sentences
from evalcore.triage.settings import METRICS
from evalcore.triage.words import elsewhere_words, rate_words, short_reason
from pages.shared import html, tables, theme, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen, Here
from pages.triage import counts
from pages.triage.counts import Counted

BARS = ("under", "exact", "over")
IN_TABLE = ("under", "missed_emergencies", "over", "exact")
SAY_NOTHING = {"displayModeBar": False}


def show(counted: Counted) -> None:
    """Directions of every model's errors, small matrices, and the same as a table."""
    if counted.rates.empty:
        st.html(html.quiet("No model has an answer with a level on a case with a clear gold."))
        return
    st.plotly_chart(
        figures.directions(
            counted.rates.loc[counted.rates["measure"].isin(BARS)], FORMATS, counts=counted.counts, ink=theme.ink()
        ),
        config=SAY_NOTHING,
        key="triage_directions",
        alt="Under-triage, exact and over-triage of each model and format",
    )
    st.plotly_chart(
        figures.overview(counted.cells, FORMATS, counts=counted.counts, ink=theme.ink()),
        config=SAY_NOTHING,
        key="triage_overview",
        width="content",
        alt="Small confusion matrices of all models",
    )
    st.html(
        html.quiet(
            "A row is the level a case needs, A to D from the top; a column the level of the answers. Inside the heavy line: under-triage. "
            "Choose a model above to open its cells."
        )
    )
    rows = counted.rates.loc[counted.rates["measure"].isin(IN_TABLE)]
    rows = rows.assign(
        words=[rate_words({**row, "reason": short_reason(row["reason"])}) for row in rows.to_dict(orient="records")]
    )
    wide = rows.assign(measure=rows["measure"].astype(str), model=rows["model"].astype(str), format=rows["format"].astype(str)).pivot(
        index=["model", "format"], columns="measure", values="words"
    )  # fmt: skip
    wide = triage_choice.in_order(wide.reset_index())
    tables.show(
        {
            "Model": wide["model"],
            "Format": wide["format"].map(FORMATS),
            **{METRICS[name]: wide[name] for name in IN_TABLE if name in wide},
        },
        key="triage_all",
        alt="Rates of all models",
        names=("Model",),
    )


SAFETY = {
    Basis.JUDGE: (
        "The judge's opinion, case by case: intervals are 95 % (Bonett and Price), p is McNemar's, exact. How often the judge is wrong is not in them; "
        "Corrected has it, once enough is read."
    ),
    Basis.PHYSICIANS: "By the responses that physicians read, weighted, case by case; intervals are 95 %, t.",
    Basis.CORRECTED: "The judge's levels put right by what physicians read, case by case; intervals are 95 %, t.",
}


def safer(viewer: Viewer, chosen: Chosen, basis: Basis, held: Held) -> None:
    """Which models differ in under-triage and in missed emergencies, on the cases that both answered; and the stated margins."""
    table = counts.safety(viewer, chosen, basis, held)
    if table.empty:
        return
    st.subheader("Who is safer, on the same cases", anchor=False)
    known = table.loc[table["difference"].notna()]
    st.html(html.items(safety_sentences(table, WHOSE[basis])))
    spec = triage_choice.analysis()
    if basis is Basis.CORRECTED and (margins := margin_sentences(table, spec)):
        st.html(html.items(margins))
    if known.empty:
        st.html(html.quiet(f"Too little is read for a difference: {table['reason'].iloc[0]}."))
        return
    rows = known.to_dict(orient="records")
    tables.show(
        {
            "Format": known["format"].map(FORMATS),
            "Rate": [METRICS[name] for name in known["measure"]],
            "First model": known["model_1"],
            "Second model": known["model_2"],
            "First minus second, points": [difference_words(row) for row in rows],
            **({"Counts": [f"{row['k_1']:,} and {row['k_2']:,}" for row in rows]} if "k_1" in known else {}),
            "Cases of both": known["n"],
            "p (Holm)": [chance_words(row["p_holm"]) for row in rows],
        },
        key="triage_safety",
        alt="Differences of under-triage and of missed emergencies between models, on the same cases",
        names=("First model", "Second model"),
    )
    reading = "Below 0 the first model does better. Points are percentage points; p is adjusted (Holm) for the pairs of a format and rate."
    st.html(html.quiet(f"{SAFETY[basis]} {reading}"))


def left_out(here: Here, basis: Basis) -> None:
    """What the numbers leave out, by model and format."""
    viewer, chosen = here.viewer, here.chosen
    with st.expander("What is counted, and what is left out", type="compact", key="triage_left_out"):
        if basis is not Basis.JUDGE:
            _read(triage_choice.in_order(triage_choice.computed(counts.physicians_read, viewer, chosen)))
        if basis is not Basis.PHYSICIANS:
            _accounted(triage_choice.in_order(triage_choice.computed(counts.left_out, viewer, chosen)))
        if here.known.n_elsewhere:
            st.html(html.quiet(elsewhere_words(here.known.n_elsewhere)))


def _accounted(table: pd.DataFrame) -> None:
    if table.empty:
        st.html(html.quiet("No case has an answer yet."))
        return
    tables.show(
        {
            "Model": table["model"],
            "Format": table["format"].astype(str).map(FORMATS),
            "Cases answered": table["n_cases"],
            "Counted: clear gold and a level": table["clear_predicted"],
            "Clear, no level found": table["clear_no_level"],
            "Clear, not read yet": table["clear_unread"],
            "Boundary": table["n_boundary"],
            "Ambiguous": table["n_ambiguous"],
            "No gold": table["n_unlabelled"],
            "Not answered": table["n_no_response"],
            "Samples without a level": table["samples_invalid"],
            "Responses in neither format": table["n_elsewhere"],
        },
        key="triage_accounted",
        alt="Cases that are counted and left out, by model and format",
        optional=(
            "Clear, no level found",
            "Clear, not read yet",
            "No gold",
            "Not answered",
            "Samples without a level",
            "Responses in neither format",
        ),
        names=("Model",),
    )


def _read(table: pd.DataFrame) -> None:
    if table.empty:
        st.html(html.quiet("No physician here has read an answer yet."))
        return
    tables.show(
        {
            "Model": table["model"],
            "Format": table["format"].map(FORMATS),
            "Responses read": table["n_read"],
            "Counted: drawn, read blind, a clear gold and a level": table["n_clear"],
            "Chosen, or read with the judge in view": table["n_volunteered"],
            "Readers conflict": table["n_unsettled"],
            "Cannot be assessed": table["n_cannot_assess"],
            "To remove": table["n_remove"],
        },
        key="triage_reads_accounted",
        alt="Responses that physicians have read, and what became of them, by model and format",
        optional=("Chosen, or read with the judge in view", "Readers conflict", "Cannot be assessed", "To remove"),
        names=("Model",),
    )

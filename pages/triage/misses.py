"""Dangerous misses: a section of the Triage page. Cases whose answer asks for less care than they need, the most dangerous first."""

import pandas as pd
import streamlit as st

from evalcore.triage.cases import DANGEROUS, misses
from evalcore.triage.figures import LETTERS
from pages.shared import html, triage_cases, triage_choice
from pages.shared.triage_choice import FORMATS, Here, Read

ALL_MODELS, BOTH = "all models", "both formats"
FOOT = (
    "Counted are cases with a clear gold whose most frequent level lies below it. Order: an emergency answered with home, then with a doctor within "
    "weeks, then "
    "within a day or two; then a case for a doctor within a day or two that is answered with home. Among equals those come first that more of the model's "
    "samples agree on. The response is the first whose own level is the one that counts, else the first with a text; the chips of the samples say how "
    "the others "
    "went. To assign a response puts it before physicians, who read it without the judge's level and without the model's name, among three others that are "
    "drawn at random: one single item would tell them that it is a miss."
)


def queue(read: Read, judges: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    """The dangerous misses of all models, worst first, without their texts."""
    found = misses(read.triage_data, read.found, judges=dict(judges))
    kept = found.loc[found["rank"].lt(len(DANGEROUS))]
    return kept.drop(columns=["case_id", "source", "strength", "first_words"]).reset_index(drop=True)


def show(here: Here) -> None:
    """The queue, by model and format."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        model = triage_choice.one_of("Model", [ALL_MODELS, *here.known.models], "triage_of_model", width=200)
        asked = triage_choice.one_of("Format", [BOTH, *FORMATS.values()], "triage_of_format", width=160)
    found = triage_choice.computed(queue, viewer, chosen, chosen.judges)
    fits = pd.Series(data=True, index=found.index)
    if model != ALL_MODELS:
        fits &= found["model"].astype(str).eq(model)
    if asked != BOTH:
        fits &= found["format"].astype(str).map(FORMATS).eq(asked)
    found = found.loc[fits]
    st.html(html.finding(words(found)))
    if found.empty:
        triage_cases.none(
            "Nothing waits here. Boundary and ambiguous cases, which have no single gold, are in sections of their own."
        )
    else:
        triage_cases.listing(viewer, chosen, found, key="triage_misses")
    st.html(html.foot(FOOT))


def words(found: pd.DataFrame) -> str:
    """How many misses of each kind there are."""
    counts = [(int(found["rank"].eq(rank).sum()), *kind) for rank, kind in enumerate(DANGEROUS)]
    said = [
        f"{n:,} that {'needs' if n == 1 else 'need'} {LETTERS[gold - 1]} answered {LETTERS[predicted - 1]}"
        for n, gold, predicted in counts
        if n
    ]
    many = f"In the judges' opinion {len(found):,} dangerous miss{'' if len(found) == 1 else 'es'}"
    return (
        f"{many}: {', '.join(said)}."
        if said
        else "No dangerous miss in the judges' opinion: no emergency is sent lower, and no case for a doctor within two days is sent home."
    )

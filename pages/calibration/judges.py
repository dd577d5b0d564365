"""Judges' confidence: what it means first; then how far it is borne out by physicians' blind reads."""

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.calibration import SEED, figures, queries as calibration_queries
from evalcore.calibration.confidence import criteria_meanings, judges_on_criteria, judges_on_levels, on_reads
from evalcore.calibration.reliability import Calibrated, brier_columns, error_columns, judge_finding
from evalcore.judges.figures import BLUE
from evalcore.rubric.data import RubricData
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.schema import Viewer
from evalcore.triage.predictions import JURY
from pages.calibration import confidence
from pages.shared import common, glossary, html, judges_choice, page_cache, tables, theme, triage_choice
from pages.shared.triage_choice import Here

CRITERIA, LEVELS = "criteria", "levels of care"
DRAWN, EVERY = "drawn reads", "all blind reads"
NOT_DRAWN = "No item here was drawn with a known probability, so all blind reads count, without weights."
NO_JUDGE = "No judge has labelled a criterion yet. Begin with a file of results, or of a judge's verdicts."
NO_CONFIDENCE = (
    "{judge} states no confidence, and it is the only judge. Import its verdicts with a confidence, or those of a "
    "second judge: then the share of the judges that agree takes the place of a confidence."
)
NO_LEVELS = "No judge states a confidence with the levels that it reads. Import a file of predictions with rater, level and confidence."
MEASURES = {
    "Mean confidence": "how sure on average",
    "Right": "physicians say the same",
    "Difference": "above 0: over-confident",
    "Debiased error": "how far off, either way",
    "Plain error (ECE)": "too large by chance",
    "Brier's score": "mean squared gap",
    "Miscalibration": "recalibrating removes it",
    "Discrimination": "tells right from wrong",
    "Uncertainty": "left by guessing",
}
MAJORITY = (
    "The confidence of a majority is the share of the judges that say what most of them say. Criteria on which they "
    "are evenly split have none; of levels that come equally often the more severe counts. Items that fewer than "
    "three judges labelled are left out: two who agree would always be sure. "
)
FOOT = (
    "Reference: physicians' blind first reads; several of one item count by the share that says the same. Drawn reads "
    "are weighted by one over the probability with which the item was drawn. Bins hold equally many items, as far as "
    "equal confidences allow, and at least five {clusters} on average; a thin line across a mark is the bin's range. "
    "Bars and intervals are 95 %, clustered by {cluster}. "
)


def show(here: Here) -> None:
    """What the judges' confidence means, and how far it is borne out."""
    viewer = here.viewer
    counts, beside = page_cache.shared(partial(_stated, viewer), viewer, "stated on criteria")
    of_levels = confidence.meanings_of_levels(viewer)
    of_criteria = criteria_meanings(counts, dict(confidence.meanings()))
    with here.row:
        usual = LEVELS if of_criteria.empty and not of_levels.empty else CRITERIA
        about = confidence.one_of("About", [CRITERIA, LEVELS], "calibration_about", width=170, usual=usual)
        reads = confidence.one_of("Reads", [DRAWN, EVERY], "calibration_reads", width=170)
        own = st.container(horizontal=True, width="content")
    table = of_criteria if about == CRITERIA else of_levels
    if len(table):
        confidence.show_meanings(viewer, table, key=f"calibration_{about[:1]}")

    def of_what() -> tuple[Any, ...]:
        if about == LEVELS:
            return judges_on_levels, page_cache.triage_data(viewer), table
        several = judges_choice.computed(has_several, viewer)
        return judges_on_criteria, beside, table, common.rubric_data(viewer) if several else None

    calibrated: Calibrated
    calibrated, is_drawn = page_cache.computed(calibrated_on, viewer, of_what, reads, about=about)
    errors, majorities = calibrated.errors, calibrated.majorities
    options = sorted(map(str, errors.loc[errors["n"].gt(0), "group"]), key=lambda name: name in majorities)
    if not options:
        _nothing(here, table, about)
        return
    if reads == DRAWN and not is_drawn:
        st.html(html.quiet(NOT_DRAWN))
    helps = glossary.helps("confidence", "calibration")
    with own:
        name = str(confidence.one_of("Confidence of", options, "calibration_judge", width=230, help=helps))
    _one(calibrated, name, about)
    if len(errors) > 1:
        groups = [str(group).rpartition(", ") for group in errors["group"]]
        names = {"Judge": list(errors["group"].astype(str))}
        if about == LEVELS:
            names = {"Judge": [judge for judge, _, _ in groups], "Format": [word for _, _, word in groups]}
        confidence.errors_tables(errors, names, {"Items": errors["n"]}, key="calibration_judges")
    cluster = "conversation" if about == CRITERIA else "case"
    foot = FOOT.format(cluster=cluster, clusters=f"{cluster}s") + (MAJORITY if majorities else "")
    st.html(html.foot(f"{foot}{confidence.ERRORS_WORDS} What those would give is drawn; seed {SEED}."))


def _stated(viewer: Viewer) -> tuple[pd.DataFrame, pd.DataFrame]:
    hidden = common.blind(viewer)
    with reading(common.engine()) as session:
        counts = calibration_queries.stated(session, blind=hidden)
        return counts, calibration_queries.beside_reads(session, counts, judged=common.judged_labels, blind=hidden)


def calibrated_on(of: tuple[Any, ...], reads: str) -> tuple[Calibrated, bool]:
    """What the first gives of the others, as `on_reads`."""
    make, *arguments = of
    return on_reads(partial(make, *arguments), drawn=reads == DRAWN)


def has_several(rubric_data: RubricData) -> bool:
    """Whether two judges, or one that was asked again, have labelled criteria: juries have no vote."""
    return len(rubric_data.voters) > 1 or rubric_data.repeats.shape[1] > 0


def _one(calibrated: Calibrated, name: str, about: str) -> None:
    is_majority = name in calibrated.majorities
    mine = calibrated.errors.loc[calibrated.errors["group"].eq(name)]
    row = mine.iloc[0].to_dict()
    label, cluster = ("criterion", "conversation") if about == CRITERIA else ("level", "case")
    judge, _, word = name.rpartition(", ")
    title = f"{judge} in {word}" if about == LEVELS and judge else name
    st.html(html.finding(judge_finding(row, title, label=label, cluster=cluster, is_majority=is_majority)))
    bins = calibrated.reliability.loc[calibrated.reliability["group"].eq(name)]
    x_title = "Judges that say so (share)" if is_majority else "Confidence that its label is right"
    titles = {"x_title": x_title, "y_title": "Right, by physicians (share)"}
    figure = figures.reliability(bins.assign(panel="", series=name), {"": ""}, {name: BLUE}, {}, **titles)
    with st.container(horizontal=True, vertical_alignment="top", key="calibration_one"):
        with st.container(width="content"):  # with the words to save it below
            alt = "What is right by physicians over stated confidence, with 95 % intervals"
            theme.figure(figure, width="content", key="calibration_reliability", alt=alt)
        with st.container(width="content"):
            cells: dict[str, list[Any]] = error_columns(mine) | brier_columns(mine)
            columns: dict[str, Any] = {"Measure": list(MEASURES), "Value": [cells[head][0] for head in MEASURES]}
            columns |= {"What it says": list(MEASURES.values())}
            tables.show(columns, key="calibration_measures", alt="Measures of calibration with 95 % intervals")
            items = counted(row["n"], label, "criteria" if about == CRITERIA else None)
            why = "without a majority of three votes or more" if is_majority else "which have no confidence"
            left = f"; {row['n_left_out']:,} left out, {why}" if row["n_left_out"] else ""
            where = f"{counted(row['n_clusters'], cluster)}{left}; {counted(row['n_bins'], 'bin')}"
            st.html(html.quiet(f"{items} in {where}."))


def _nothing(here: Here, table: pd.DataFrame, about: str) -> None:
    viewer = here.viewer
    several = any(JURY in names for names in here.known.judges.values())
    if about == CRITERIA:
        several = bool(judges_choice.computed(has_several, viewer))
    is_usable = bool(table["usable"].any())
    if len(table) and not is_usable and not several:
        return  # the question above is what comes next
    if is_usable or several:
        what = "criterion" if about == CRITERIA else "response"
        sentence = (
            f"No physician has read blind a {what} that these confidences are about, so nothing says how far they hold."
        )
        st.html(html.finding(sentence))
        next_step = "Assign items to readers: their blind reads are the reference.", "Assign items to readers"
    elif about == LEVELS:
        next_step = NO_LEVELS, "Import a file"
    else:
        judges = judges_choice.computed(judges_choice.names, viewer)
        next_step = NO_JUDGE if not judges else NO_CONFIDENCE.format(judge=judges[0]), "Import a file"
    if not triage_choice.waits(viewer):
        triage_choice.nothing(*next_step)

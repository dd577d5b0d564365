"""Judges' confidence: a section of the Calibration page. What it means first; then how far it is borne out by physicians' blind reads."""

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from evalcore.calibration import confidence_meaning, sections
from evalcore.calibration import queries as calibration_queries
from evalcore.calibration.figures import reliability
from evalcore.calibration.sections import Calibrated, judge_finding
from evalcore.judges.figures import BLUE
from evalcore.rubric.data import RubricData
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.schema import ConfidenceMeaning, Viewer
from evalcore.triage.data import TriageData
from evalcore.triage.predictions import JURY
from pages.calibration import meaning
from pages.shared import calibration_choice, common, html, judges_choice, page_cache, tables, theme
from pages.shared.calibration_choice import BRIER, HOW_FAR
from pages.shared.triage_choice import Here

CRITERIA, LEVELS = "criteria", "levels of care"
DRAWN, EVERY = "drawn reads", "all blind reads"
SIDES = ("under-confident", "over-confident")
NOT_DRAWN = "No item here was drawn with a known probability, so all blind reads count, without weights."
NO_JUDGE = "No judge has labelled a criterion yet. Begin with a file of results, or of a judge's verdicts."
NO_CONFIDENCE = (
    "{judge} states no confidence, and it is the only judge. Import its verdicts with a confidence, or those of a second judge: then the share of the judges "
    "that agree takes the place of a confidence."
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
    "The confidence of a majority is the share of the judges that say what most of them say. Criteria on which they are evenly split have none; "
    "of levels that come equally often the more severe counts. Items that fewer than three judges labelled are left out: two who agree would always be sure. "
)
FOOT = (
    "Reference: physicians' blind first reads; several of one item count by the share that says the same. Drawn reads are weighted by one over the "
    "probability with which the item was drawn. Bins hold equally many items, as far as equal confidences allow, and at least five {clusters} on average; "
    "a thin line across a mark is the bin's range. Bars and intervals are 95 %, clustered by {cluster}. "
)


class Criteria(NamedTuple):
    """What judges state on criteria."""

    counts: pd.DataFrame
    beside: pd.DataFrame


class Shown(NamedTuple):
    """What the section shows of one kind of label."""

    found: Calibrated
    """A group a judge that states a confidence, and one for the majority of several."""
    only: str
    """Which reads count, where the choice was not to be had; else ""."""


def show(here: Here) -> None:
    """What the judges' confidence means, and how far it is borne out."""
    viewer = here.viewer
    criteria = page_cache.computed(as_read, viewer, lambda: _criteria(viewer))
    meanings = tuple(calibration_choice.meanings().items())
    of_levels = page_cache.computed(level_meanings, viewer, lambda: common.triage_data(viewer), meanings)
    of_criteria = confidence_meaning.criteria_meanings(criteria.counts, dict(meanings))
    with here.row:
        usual = int(of_criteria.empty and not of_levels.empty)
        about = calibration_choice.one_of("About", [CRITERIA, LEVELS], "calibration_about", width=170, usual=usual)
        reads = calibration_choice.one_of("Reads", [DRAWN, EVERY], "calibration_reads", width=170)
        own = st.container(horizontal=True, width="content")
    table = of_criteria if about == CRITERIA else of_levels
    if len(table):
        meaning.show(viewer, table, key=f"calibration_{about[:1]}")
    found = _shown(viewer, criteria, table, about, reads)
    options = _options(found.found)
    if not options:
        _nothing(here, table, about)
        return
    if found.only:
        st.html(html.quiet(found.only))
    with own:
        name = str(calibration_choice.one_of("Confidence of", options, "calibration_judge", width=230))
    _one(found.found, name, about)
    errors = found.found.errors
    if len(errors) > 1:
        calibration_choice.errors_tables(errors, _names(errors, about), key="calibration_judges", items="Items")
        calibration_choice.reasons(errors)
    cluster = "conversation" if about == CRITERIA else "case"
    st.html(
        html.foot(
            FOOT.format(cluster=cluster, clusters=f"{cluster}s")
            + (MAJORITY if found.found.majorities else "")
            + f"{calibration_choice.ERRORS_WORDS} What those would give is drawn; seed {sections.SEED}."
        )
    )


# ---------------------------------------------------------------- numbers, kept


def _criteria(viewer: Viewer) -> Criteria:
    hidden = common.blind(viewer)
    with reading(common.engine()) as session:
        counts = calibration_queries.stated(session, blind=hidden)
        beside = calibration_queries.beside_reads(session, judged=common.judged_labels)
    return Criteria(counts, calibration_queries.without(beside, hidden))


def as_read(criteria: Criteria) -> Criteria:
    """What judges state on criteria, as it is stored."""
    return criteria


def level_meanings(triage_data: TriageData, meanings: tuple[tuple[str, ConfidenceMeaning], ...]) -> pd.DataFrame:
    """As `confidence_meaning.level_meanings`."""
    return confidence_meaning.level_meanings(triage_data, dict(meanings))


def on_criteria(of: tuple[Criteria, pd.DataFrame, RubricData | None], reads: str) -> Calibrated:
    """As `sections.judges_on_criteria`."""
    criteria, meanings, rubric_data = of
    return sections.judges_on_criteria(criteria.beside, meanings, rubric_data, drawn=reads == DRAWN)


def on_levels(of: tuple[TriageData, pd.DataFrame], reads: str) -> Calibrated:
    """As `sections.judges_on_levels`."""
    return sections.judges_on_levels(of[0], of[1], drawn=reads == DRAWN)


def _numbers(viewer: Viewer, criteria: Criteria, table: pd.DataFrame, about: str, reads: str) -> Calibrated:
    found: Calibrated
    if about == LEVELS:
        found = page_cache.computed(on_levels, viewer, lambda: (common.triage_data(viewer), table), reads)
    else:
        several = judges_choice.computed(has_several, viewer)
        found = page_cache.computed(
            on_criteria, viewer, lambda: (criteria, table, common.rubric_data(viewer) if several else None), reads
        )
    return found


def _criteria_judges(viewer: Viewer) -> list[str]:
    found: list[str] = judges_choice.computed(judges_choice.names, viewer)
    return found


def has_several(rubric_data: RubricData) -> bool:
    """Whether two judges, or one that was asked again, have labelled criteria: juries have no vote."""
    return len(rubric_data.voters) > 1 or rubric_data.repeats.shape[1] > 0


def _several(here: Here, about: str) -> bool:
    """Whether there is a majority to ask for. The parser reads what an answer states: it is no judge of levels."""
    if about == CRITERIA:
        return bool(judges_choice.computed(has_several, here.viewer))
    return any(JURY in names for names in here.known.judges.values())


def _shown(viewer: Viewer, criteria: Criteria, table: pd.DataFrame, about: str, reads: str) -> Shown:
    """By the reads that were asked for; by all of them where none was drawn."""
    found = _numbers(viewer, criteria, table, about, reads)
    if reads == DRAWN and not _options(found):
        every = _numbers(viewer, criteria, table, about, EVERY)
        if _options(every):
            return Shown(every, NOT_DRAWN)
    return Shown(found, "")


def _options(found: Calibrated) -> list[str]:
    """Whose confidence can be shown: judges first, then majorities."""
    names = [str(name) for name in found.errors.loc[found.errors["n"].gt(0), "group"]]
    return sorted(names, key=lambda name: name in found.majorities)


# ---------------------------------------------------------------- drawing


def _one(found: Calibrated, name: str, about: str) -> None:
    """One judge, or a majority: the finding, the diagram, and its numbers beside it."""
    is_majority = name in found.majorities
    row = found.errors.loc[found.errors["group"].eq(name)].iloc[0].to_dict()
    label, cluster = ("criterion", "conversation") if about == CRITERIA else ("level", "case")
    st.html(
        html.finding(judge_finding(row, called(name, about), label=label, cluster=cluster, is_majority=is_majority))
    )
    mine = found.reliability.loc[found.reliability["group"].eq(name)]
    figure = reliability(
        mine.assign(panel="", series=name),
        {"": ""},
        {name: BLUE},
        {},
        x_title="Judges that say so (share)" if is_majority else "Confidence that its label is right",
        y_title="Right, by physicians (share)",
        sides=SIDES,
        ink=theme.ink(),
    )
    with st.container(horizontal=True, vertical_alignment="top", key="calibration_one"):
        st.plotly_chart(
            figure,
            width="content",
            config={"displayModeBar": False},
            key="calibration_reliability",
            alt="What is right by physicians over stated confidence, with 95 % intervals",
        )
        with st.container(width="content"):
            cells: dict[str, Any] = {**HOW_FAR, **BRIER}
            tables.show(
                {
                    "Measure": list(MEASURES),
                    "Value": [cells[head](row) for head in MEASURES],
                    "What it says": list(MEASURES.values()),
                },
                key="calibration_measures",
                alt="Measures of calibration with 95 % intervals",
            )
            st.html(html.quiet(_counts(row, label, cluster, is_majority=is_majority)))


def _names(errors: pd.DataFrame, about: str) -> dict[str, list[str]]:
    """The first columns of the tables: whose confidence it is, and of levels in which format."""
    groups = [str(name) for name in errors["group"]]
    if about == CRITERIA:
        return {"Judge": groups}
    parts = [name.rpartition(", ") for name in groups]
    return {"Judge": [judge for judge, _, _ in parts], "Format": [asked for _, _, asked in parts]}


def called(name: str, about: str) -> str:
    """What a judge of the table is called inside a sentence; of levels the format is part of its name.

    >>> called("Magpie, conversation", LEVELS), called("Wren", CRITERIA)
    ('Magpie in conversation', 'Wren')
    """
    judge, _, asked = name.rpartition(", ")
    return f"{judge} in {asked}" if about == LEVELS and judge else name


def _counts(row: dict[Any, Any], label: str, cluster: str, *, is_majority: bool) -> str:
    items = counted(row["n"], label, "criteria" if label == "criterion" else None)
    why = "without a majority of three votes or more" if is_majority else "which have no confidence"
    left = f"; {row['n_left_out']:,} left out, {why}" if row["n_left_out"] else ""
    return f"{items} in {counted(row['n_clusters'], cluster)}{left}; {counted(row['n_bins'], 'bin')}."


# ---------------------------------------------------------------- nothing to draw


def _nothing(here: Here, table: pd.DataFrame, about: str) -> None:
    """Why nothing can be drawn, and what to do next."""
    viewer = here.viewer
    several = _several(here, about)
    if len(table) and not table["usable"].any() and not several:
        return  # the question above is what comes next
    if table["usable"].any() or several:
        what = "criterion" if about == CRITERIA else "response"
        st.html(
            html.finding(
                f"No physician has read blind a {what} that these confidences are about, so nothing says how far they hold."
            )
        )
        if not calibration_choice.waits(viewer):
            calibration_choice.nothing(
                "Assign items to readers: their blind reads are the reference.", label="Assign items to readers"
            )
        return
    if calibration_choice.waits(viewer):
        return
    if about == LEVELS:
        calibration_choice.nothing(NO_LEVELS, label="Import a file")
        return
    judges = _criteria_judges(viewer)
    calibration_choice.nothing(NO_JUDGE if not judges else NO_CONFIDENCE.format(judge=judges[0]), label="Import a file")

"""Judges' confidence: a section of the Calibration page. What it means first; then how far it is borne out by physicians' blind reads."""

from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from evalcore.db import reading
from evalcore.metrics import calibration_sections as sections
from evalcore.metrics.calibration_sections import Calibrated
from evalcore.metrics.calibration_words import judge_finding, votes_finding
from evalcore.metrics.wording import counted
from evalcore.opinions import Opinions
from evalcore.plots.calibration import reliability
from evalcore.plots.judges import BLUE
from evalcore.queries import confidences
from evalcore.schema import ConfidenceMeaning, Viewer
from evalcore.triaged import Triaged
from pages import _calibration_meaning, _calibration_parts, _common, _judges_parts, _kept, _tables, _text, _theme
from pages._calibration_parts import BRIER, HOW_FAR
from pages._triage_parts import Here

CRITERIA, LEVELS = "criteria", "levels of care"
DRAWN, EVERY = "drawn reads", "all blind reads"
SIDES = ("less sure than right", "surer than right")
NOT_DRAWN = "No item here was drawn with a known probability, so all blind reads count, without weights."
NO_JUDGE = "No judge has labelled a criterion yet. Begin with a file of results, or of a judge's verdicts."
NO_CONFIDENCE = (
    "{judge} states no confidence, and it is the only judge. Import its verdicts with a confidence, or those of a second judge: then the share of the judges "
    "that say met takes the place of a confidence."
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
VOTES_NAMES = {"Mean confidence": "Met, by judges", "Right": "Met, by physicians"}
VOTES_MEASURES = {
    "Mean confidence": "mean share of judges",
    "Right": "mean share of physicians",
    "Difference": "above 0: judges say met more",
    "Discrimination": "tells met from not met",
}
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
    """Of the judges that state a confidence, a group a judge."""
    votes: Calibrated | None
    """Of the share of judges that say met."""
    only: str
    """Which reads count, where the choice was not to be had; else ""."""


def show(here: Here) -> None:
    """What the judges' confidence means, and how far it is borne out."""
    viewer = here.viewer
    criteria = _kept.computed(as_read, viewer, lambda: _criteria(viewer))
    meanings = tuple(_calibration_parts.meanings().items())
    of_levels = _kept.computed(level_meanings, viewer, lambda: _common.triaged(viewer), meanings)
    of_criteria = sections.criteria_meanings(criteria.counts, dict(meanings))
    with here.row:
        usual = int(of_criteria.empty and not of_levels.empty)
        about = _calibration_parts.one_of("About", [CRITERIA, LEVELS], "calibration_about", width=170, usual=usual)
        reads = _calibration_parts.one_of("Reads", [DRAWN, EVERY], "calibration_reads", width=170)
        own = st.container(horizontal=True, width="content")
    table = of_criteria if about == CRITERIA else of_levels
    if len(table):
        _calibration_meaning.show(viewer, table, key=f"calibration_{about[:1]}")
    found = _shown(viewer, criteria, table, about, reads)
    options = _options(found)
    if not options:
        _nothing(viewer, table, about, found)
        return
    if found.only:
        st.html(_text.quiet(found.only))
    with own:
        name = _calibration_parts.one_of("Confidence of", options, "calibration_judge", width=230)
    is_votes = found.votes is not None and name in set(found.votes.errors["group"])
    mine = found.votes if is_votes and found.votes is not None else found.found
    _one(mine, str(name), about, is_votes=is_votes)
    errors = found.found.errors
    if len(errors) > 1:
        _calibration_parts.errors_tables(
            errors, {"Judge": list(errors["group"])}, key="calibration_judges", items="Items"
        )
        _calibration_parts.reasons(errors)
    cluster = "conversation" if about == CRITERIA else "case"
    st.html(
        _text.foot(
            FOOT.format(cluster=cluster, clusters=f"{cluster}s")
            + f"{_calibration_parts.ERRORS_WORDS} What those would give is drawn; seed {sections.SEED}."
        )
    )


# ---------------------------------------------------------------- numbers, kept


def _criteria(viewer: Viewer) -> Criteria:
    hidden = _common.blind(viewer)
    with reading(_common.engine()) as session:
        counts = confidences.stated(session, blind=hidden)
        beside = confidences.beside_reads(session)
    return Criteria(counts, confidences.without(beside, hidden))


def as_read(criteria: Criteria) -> Criteria:
    """What judges state on criteria, as it is stored."""
    return criteria


def level_meanings(triaged: Triaged, meanings: tuple[tuple[str, ConfidenceMeaning], ...]) -> pd.DataFrame:
    """As `calibration_sections.level_meanings`."""
    return sections.level_meanings(triaged, dict(meanings))


def on_criteria(of: tuple[Criteria, pd.DataFrame], reads: str) -> Calibrated:
    """As `calibration_sections.judges_on_criteria`."""
    return sections.judges_on_criteria(of[0].beside, of[1], drawn=reads == DRAWN)


def on_levels(of: tuple[Triaged, pd.DataFrame], reads: str) -> Calibrated:
    """As `calibration_sections.judges_on_levels`."""
    return sections.judges_on_levels(of[0], of[1], drawn=reads == DRAWN)


def by_votes(opinions: Opinions, reads: str) -> Calibrated:
    """As `calibration_sections.judges_votes`."""
    return sections.judges_votes(opinions, drawn=reads == DRAWN)


def _numbers(viewer: Viewer, criteria: Criteria, table: pd.DataFrame, about: str, reads: str) -> Shown:
    if about == LEVELS:
        found = _kept.computed(on_levels, viewer, lambda: (_common.triaged(viewer), table), reads)
        return Shown(found, None, "")
    found = _kept.computed(on_criteria, viewer, lambda: (criteria, table), reads)
    several = len(_judges_parts.computed(_judges_parts.names, viewer)) > 1
    votes = _kept.computed(by_votes, viewer, lambda: _common.opinions(viewer), reads) if several else None
    return Shown(found, votes, "")


def _shown(viewer: Viewer, criteria: Criteria, table: pd.DataFrame, about: str, reads: str) -> Shown:
    """By the reads that were asked for; by all of them where none was drawn."""
    found = _numbers(viewer, criteria, table, about, reads)
    if reads == DRAWN and not _options(found):
        every = _numbers(viewer, criteria, table, about, EVERY)
        if _options(every):
            return every._replace(only=NOT_DRAWN)
    return found


def _options(found: Shown) -> list[str]:
    """Whose confidence can be shown."""
    tables = [found.found.errors, *([found.votes.errors] if found.votes is not None else [])]
    return [str(name) for errors in tables for name in errors.loc[errors["n"].gt(0), "group"]]


# ---------------------------------------------------------------- drawing


def _one(found: Calibrated, name: str, about: str, *, is_votes: bool) -> None:
    """One judge: the finding, the diagram, and its numbers beside it."""
    row = found.errors.loc[found.errors["group"].eq(name)].iloc[0].to_dict()
    label, cluster = ("criterion", "conversation") if about == CRITERIA else ("level", "case")
    st.html(
        _text.finding(
            votes_finding(row) if is_votes else judge_finding(row, called(name, about), label=label, cluster=cluster)
        )
    )
    mine = found.reliability.loc[found.reliability["group"].eq(name)]
    figure = reliability(
        mine.assign(panel="", series=name),
        {"": ""},
        {name: BLUE},
        {},
        x_title="Judges that say met (share)" if is_votes else "Confidence that its label is right",
        y_title="Met, by physicians (share)" if is_votes else "Right, by physicians (share)",
        sides=("physicians say met more often", "judges say met more often") if is_votes else SIDES,
        ink=_theme.ink(),
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
            _tables.show(
                {
                    "Measure": [VOTES_NAMES.get(head, head) if is_votes else head for head in MEASURES],
                    "Value": [cells[head](row) for head in MEASURES],
                    "What it says": [
                        VOTES_MEASURES.get(head, words) if is_votes else words for head, words in MEASURES.items()
                    ],
                },
                key="calibration_measures",
                alt="Measures of calibration with 95 % intervals",
            )
            st.html(_text.quiet(_counts(row, label, cluster)))


def called(name: str, about: str) -> str:
    """What a judge of the table is called inside a sentence; of levels the format is part of its name.

    >>> called("Magpie, conversation", LEVELS), called("Wren", CRITERIA)
    ('Magpie in conversation', 'Wren')
    """
    judge, _, asked = name.rpartition(", ")
    return f"{judge} in {asked}" if about == LEVELS and judge else name


def _counts(row: dict[Any, Any], label: str, cluster: str) -> str:
    items = counted(row["n"], label, "criteria" if label == "criterion" else None)
    left = f"; {row['n_left_out']:,} left out, which have no confidence" if row["n_left_out"] else ""
    return f"{items} in {counted(row['n_clusters'], cluster)}{left}; {counted(row['n_bins'], 'bin')}."


# ---------------------------------------------------------------- nothing to draw


def _nothing(viewer: Viewer, table: pd.DataFrame, about: str, found: Shown) -> None:
    """Why nothing can be drawn, and what to do next."""
    if len(table) and not table["usable"].any() and found.votes is None:
        return  # the question above is what comes next
    if (len(table) and table["usable"].any()) or found.votes is not None:
        what = "criterion" if about == CRITERIA else "response"
        st.html(
            _text.finding(
                f"No physician has read blind a {what} that these confidences are about, so nothing says how far they hold."
            )
        )
        if not _calibration_parts.waits(viewer):
            _calibration_parts.nothing(
                "Assign items to readers: their blind reads are the reference.", label="Assign items to readers"
            )
        return
    if _calibration_parts.waits(viewer):
        return
    if about == LEVELS:
        _calibration_parts.nothing(NO_LEVELS, label="Import a file")
        return
    judges = _judges_parts.computed(_judges_parts.names, viewer)
    _calibration_parts.nothing(NO_JUDGE if not judges else NO_CONFIDENCE.format(judge=judges[0]), label="Import a file")

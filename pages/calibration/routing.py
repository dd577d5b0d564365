"""Routing: a section of the Calibration page. At which confidence a case would go to a human, what that catches and what it costs."""

import pandas as pd
import streamlit as st

from evalcore.calibration import routing, sections
from evalcore.calibration.figures import routing as routing_figure
from evalcore.calibration.routing import NOTHING_TO_ROUTE, routed_words, routing_finding, threshold_words
from evalcore.figures.colours import colour_of, dash_of
from evalcore.stats.wording import counted
from pages.calibration import meaning as calibration_meaning
from pages.shared import calibration_choice, html, tables, theme, triage_choice
from pages.shared.calibration_choice import ALL_MODELS
from pages.shared.triage_choice import FORMATS, Here, Read

BY_SHARE, BY_CONFIDENCE = "share of misses to catch", "confidence"
LEAST, USUAL, STEP = 0.5, routing.WANTED, 0.05
USUAL_THRESHOLD = 0.8
FOOT = (
    "A dangerous miss is an emergency (gold D) that is answered with any lower level, or a case with gold C that is answered A, as on the Triage page. A case "
    "goes to a human where the model's confidence lies below the threshold; a case without a confidence (no level was found, or there is one answer alone and "
    "it states none) always goes. The lines are of all clear cases. {how} Cases sent is the share of the clear cases that go: what it "
    "costs. Right, of those kept: the share of right answers among the cases that stay with the model. Ambiguous cases have no right answer, so "
    "they stand apart. Intervals are 95 % (Wilson). "
)
BY_HALVES = (
    "The threshold is the lowest that catches the wanted share on one half of the cases, drawn at random and the same for every model; the large marks and "
    "the table are of the other half, since on the half that chose it a threshold looks better than it is."
)
AS_GIVEN = "The large marks and the table are of all cases at the threshold that was set here."


def curves(read: Read, source: str, at: float | None = None) -> pd.DataFrame:
    """As `routing.curves`."""
    return routing.curves(calibration_choice.own(read, source), at=at)


def halves(read: Read, source: str, wanted: float) -> pd.DataFrame:
    """As `sections.routing_chosen`."""
    return sections.routing_chosen(calibration_choice.own(read, source), wanted)


def show(here: Here) -> None:
    """The curve of each model, and what the chosen threshold does."""
    if calibration_choice.without_levels(here):
        return
    viewer, chosen = here.viewer, here.chosen
    meaning = calibration_choice.model_meaning(viewer, chosen)
    with here.row:
        model = calibration_choice.one_of("Model", [ALL_MODELS, *here.known.models], "calibration_model", width=180)
        source = calibration_choice.confidence(meaning)
        by = calibration_choice.one_of("Choose by", [BY_SHARE, BY_CONFIDENCE], "calibration_by", width=210)
        wanted, threshold = _slider(by)
    if len(meaning):
        calibration_meaning.show(viewer, meaning, key="calibration_own", of_models=True)
    lines = triage_choice.computed(curves, viewer, chosen, source)
    if lines.empty:
        calibration_choice.nothing(NOTHING_TO_ROUTE, label="Import a file")
        return
    if wanted is None:
        table = triage_choice.computed(curves, viewer, chosen, source, threshold).assign(undefined="")
    else:
        table = triage_choice.computed(halves, viewer, chosen, source, wanted)
    lines, table = (calibration_choice.named(part, model) for part in (lines, table))
    st.html(html.finding(routing_finding(table, wanted)))
    models = triage_choice.colours()
    st.plotly_chart(
        routing_figure(lines, table, FORMATS, colour_of(models), dash_of(models), ink=theme.ink()),
        width="content",
        config={"displayModeBar": False},
        key="calibration_routing",
        alt="Share of the dangerous misses that is caught over the share of cases that goes to a human, by model and format",
    )
    _table(table, wanted)
    foot = FOOT.format(how=AS_GIVEN if wanted is None else BY_HALVES)
    st.html(html.foot(f"{foot}{'' if wanted is None else f'Seed {sections.SEED}, for the halves.'}"))


def _slider(by: str) -> tuple[float | None, float]:
    """The wanted share, None where the threshold is set; and the threshold."""
    if by == BY_SHARE:
        return calibration_choice.slider(
            "Misses to catch", LEAST, 1.0, USUAL, STEP, "calibration_wanted"
        ), USUAL_THRESHOLD
    return None, calibration_choice.slider(
        "Below this confidence", 0.0, 1.0, USUAL_THRESHOLD, STEP, "calibration_threshold"
    )


def _table(table: pd.DataFrame, wanted: float | None) -> None:
    known = table.loc[table["threshold"].notna()]
    rows = known.to_dict(orient="records")
    if rows:
        chosen_on = (
            {} if wanted is None else {"Chosen on": [counted(row["n_misses_first"], "miss", "misses") for row in rows]}
        )
        names = {"Model": known["model"], "Format": known["format"].map(FORMATS)}
        tables.show(
            {
                **names,
                "To a human": [threshold_words(row["threshold"]) for row in rows],
                **chosen_on,
                "Misses caught": [routed_words(row, "caught") for row in rows],
                "Cases sent": [routed_words(row, "routed") for row in rows],
                "Without a confidence": known["n_without"],
            },
            key="calibration_routing_table",
            names=("Model",),
            optional=("Without a confidence",),
            alt="What the threshold catches and costs, by model and format",
        )
        tables.show(
            {
                **names,
                "Right, of those kept": [routed_words(row, "exact_kept") for row in rows],
                "Ambiguous cases sent": [routed_words(row, "ambiguous_routed") for row in rows],
            },
            key="calibration_routing_rest",
            names=("Model",),
            alt="What stays with the model, and ambiguous cases, by model and format",
        )
    calibration_choice.reasons(table)

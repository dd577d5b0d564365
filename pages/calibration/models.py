"""Models' confidence: a section of the Calibration page. How sure a model is of its level against whether it is right, on clear cases."""

import pandas as pd
import streamlit as st

from evalcore.calibration import sections
from evalcore.calibration.figures import reliability
from evalcore.calibration.sections import NO_CONFIDENCE, OfModels, models_findings
from evalcore.figures.colours import colour_of, dash_of
from evalcore.stats.intervals import NO_VALUE
from evalcore.triage.data import Kind
from pages.calibration import meaning as calibration_meaning
from pages.shared import calibration_choice, html, theme, triage_choice
from pages.shared.calibration_choice import ALL_MODELS, ERRORS_WORDS
from pages.shared.triage_choice import FORMATS, Here, Read

FOOT = (
    "Counted are cases with a clear gold and a level. A model's confidence is the one that it states itself (which the parser reads), else the share of its "
    "valid samples that say its most frequent level; of one sample that share would always be 1, so it counts from two on. What another judge states says "
    "how sure "
    "the judge is, and stands under judges' confidence. Bins hold equally many cases, as far as equal confidences allow; models that stand at one "
    "confidence are drawn a little apart. Bars and intervals are 95 %. "
)


def confidence(read: Read, source: str) -> OfModels:
    """As `sections.models_confidence`."""
    return sections.models_confidence(calibration_choice.own(read, source))


def show(here: Here) -> None:
    """Reliability of each model."""
    if calibration_choice.without_levels(here):
        return
    viewer, chosen = here.viewer, here.chosen
    if not here.known.n_kinds[Kind.CLEAR]:
        calibration_choice.nothing(
            "No case of this study has a clear gold, so nothing says whether an answer is right. Import cases with a level, or a panel's votes.",
            label="Import cases",
        )
        return
    meaning = calibration_choice.model_meaning(viewer, chosen)
    with here.row:
        model = calibration_choice.one_of("Model", [ALL_MODELS, *here.known.models], "calibration_model", width=180)
        source = calibration_choice.confidence(meaning)
    if len(meaning):
        calibration_meaning.show(viewer, meaning, key="calibration_own", of_models=True)
    found: OfModels = triage_choice.computed(confidence, viewer, chosen, source)
    errors = calibration_choice.named(found.found.errors, model)
    if not errors["n"].any():
        calibration_choice.nothing(
            NO_CONFIDENCE + " Import several samples of each answer, or confidences.", label="Import predictions"
        )
        return
    for sentence in models_findings(errors):
        st.html(html.finding(sentence))
    _diagram(calibration_choice.named(found.found.reliability, model))
    names = {"Model": list(errors["model"]), "Format": list(errors["format"].map(FORMATS))}
    calibration_choice.errors_tables(
        errors, names, key="calibration_models", items="Cases", more={"Confidence is": _sources(found, model)}
    )
    calibration_choice.reasons(errors)
    st.html(html.foot(f"{FOOT}{ERRORS_WORDS} Seed {sections.SEED}, for what perfectly calibrated data would give."))


def _diagram(table: pd.DataFrame) -> None:
    models = triage_choice.colours()
    st.plotly_chart(
        reliability(
            table.assign(panel=table["format"], series=table["model"]),
            FORMATS,
            colour_of(models),
            dash_of(models),
            x_title="Confidence",
            y_title="Right (share of the cases)",
            ink=theme.ink(),
        ),
        width="content",
        config={"displayModeBar": False},
        key="calibration_models_reliability",
        alt="Share of right answers over the model's confidence, by model and format, with 95 % intervals",
    )


def _sources(found: OfModels, model: str) -> list[str]:
    """What each model's confidence is made of."""
    rows = calibration_choice.named(found.sources, model).to_dict(orient="records")
    words = {"n_stated": "stated", "n_shares": "share of samples"}
    said = []
    for row in rows:
        parts = [(row[name], word) for name, word in words.items() if row[name]]
        alone = len(parts) == 1
        said.append(", ".join(word if alone else f"{word} ({n:,})" for n, word in parts) or NO_VALUE)
    return said

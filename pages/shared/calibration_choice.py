"""What the sections of the Calibration page share: choices that are kept, models' own confidence, empty states, and tables of errors."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.calibration import confidence_meaning
from evalcore.calibration.judge_confidence import own_confidence, who
from evalcore.calibration.sections import ece_words
from evalcore.stats.intervals import NO_VALUE, percent_words
from evalcore.stats.wording import listed
from evalcore.study.db import reading
from evalcore.study.policies import own_act
from evalcore.study.schema import ConfidenceMeaning, Viewer
from evalcore.triage import setting_queries
from evalcore.triage.words import number_words
from pages.shared import common, html, page_cache, routes, tables, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen, Read

PAGE = "calibration"
KEYS = (
    "calibration_show", "calibration_about", "calibration_judge", "calibration_reads", "calibration_model", "calibration_confidence",
    "calibration_of_model", "calibration_of_format", "calibration_by", "calibration_wanted", "calibration_threshold",
)  # fmt: skip
ALL_MODELS = "all models"
NO_INTERVAL = (math.nan, math.nan)
STATED, SHARES = "stated, else share of samples", "share of samples"
ERRORS_WORDS = (
    "Difference: mean confidence less share right, above 0 is over-confident. Debiased error: the root of the mean squared gap between confidence and what "
    "is right over bins of equally many, less what chance alone adds, floored at 0; below 0.05 is small. Brier's score is the mean squared gap of single "
    "answers, lower is better: miscalibration less discrimination (how far right and wrong are told apart) plus uncertainty (of what is right). The plain "
    "error (ECE) is above 0 for perfectly calibrated data too, so what those would give stands beside it, with what 5 % of them exceed."
)


# ---------------------------------------------------------------- choices


def leave() -> None:
    """Keep what is chosen, for the browser's way back."""
    page_cache.leave(PAGE, KEYS)
    triage_choice.leave()


def left(key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a case; else what is usual."""
    return page_cache.left(PAGE, key, usual)


one_of = partial(page_cache.one_of, PAGE)
"""A control of this page, as `page_cache.one_of`."""


def slider(label: str, least: float, most: float, usual: float, step: float, key: str) -> float:
    """A slider whose place is kept in the address."""
    begin = float(left(key, usual))
    return float(
        st.slider(
            label, least, most, min(max(begin, least), most), step, key=key, format="percent", bind="query-params", persist_state="session", width=280
        )
    )  # fmt: skip


# ---------------------------------------------------------------- models' own confidence


def meanings() -> dict[str, ConfidenceMeaning]:
    """What the confidence of each judge means, as far as somebody has said it."""
    with reading(common.engine()) as session:
        return setting_queries.confidence_meanings(session)


def of_models(read: Read, meaning: tuple[tuple[str, ConfidenceMeaning], ...]) -> pd.DataFrame:
    """What the confidences that models state themselves mean: one row, or none."""
    return confidence_meaning.model_meaning(read.triage_data, dict(meaning))


def model_meaning(viewer: Viewer, chosen: Chosen) -> pd.DataFrame:
    """As `confidence_meaning.model_meaning`."""
    found: pd.DataFrame = triage_choice.computed(of_models, viewer, chosen, tuple(meanings().items()))
    return found


def confidence(table: pd.DataFrame) -> str:
    """What counts as a model's own confidence, `STATED` or `SHARES`; the control for it where there is a choice.

    Args:
        table: As `model_meaning` gives it.
    """
    if not confidence_meaning.takes_stated(table):
        return SHARES
    return str(one_of("Confidence", [STATED, SHARES], "calibration_confidence", width=235))


def usual_source(viewer: Viewer, chosen: Chosen) -> str:
    """As `confidence`, where there is no control: what a model states counts wherever it may."""
    return STATED if confidence_meaning.takes_stated(model_meaning(viewer, chosen)) else SHARES


def own(read: Read, source: str) -> pd.DataFrame:
    """Predictions with the model's own confidence."""
    return own_confidence(read.found, stated=source == STATED)


def named(table: pd.DataFrame, model: str = ALL_MODELS) -> pd.DataFrame:
    """Rows of one model, or all, in order, with the name of each row: "Alder-2, qa"."""
    kept = table if model == ALL_MODELS else table.loc[table["model"].astype(str).eq(model)]
    found = triage_choice.in_order(kept)
    return found.assign(name=[f"{m}, {FORMATS[f]}" for m, f in zip(found["model"], found["format"], strict=True)])


# ---------------------------------------------------------------- nothing to show


def nothing(sentence: str, page: str = routes.STUDY, label: str = "Go to Study", icon: str = "database") -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(html.notice(sentence))
    st.page_link(page, label=label, icon=f":material/{icon}:")


def waits(viewer: Viewer) -> bool:
    """Everything waits for this person's own first read: says so. Whether that is so is for the caller to know."""
    if not common.blind(viewer):
        return False
    nothing(
        f"What could be shown here waits for your own {own_act(viewer)}; the numbers are shown once you have submitted it.",
        routes.REVIEW,
        "Go to Review",
        "rate_review",
    )
    return True


def without_levels(here: triage_choice.Here) -> bool:
    """No level of any answer is known: why, and what to do. Whether that is so."""
    known = here.known
    if known.judges:
        return False
    if waits(here.viewer):
        return True
    if not known.n_cases:
        nothing(
            "This study has no cases of triage. Begin with a file of cases, then a file of predictions.",
            label="Import a file",
        )
    elif not known.n_samples:
        nothing(
            f"The study holds {known.n_cases:,} cases and no model's answers to them. Import a file of predictions next.",
            label="Import predictions",
        )
    else:
        nothing(
            f"{known.n_samples:,} answers are here, and nobody has read a level from them yet. The Triage page has a button for it.",
            routes.TRIAGE,
            "Read the levels on Triage",
            "emergency",
        )
    return True


# ---------------------------------------------------------------- tables


Cell = Callable[[dict[Any, Any]], str]


def interval(name: str) -> Cell:
    """How a value with its interval is written."""
    return lambda row: number_words(row[name], row[f"{name}_low"], row[f"{name}_high"])


def mean(name: str) -> Cell:
    """How a share without interval is written."""
    return lambda row: percent_words(row[name])


def parts_words(row: dict[Any, Any]) -> str:
    """Miscalibration beside what perfectly calibrated data give."""
    said = interval("miscalibration")(row)
    null = row["null_miscalibration"]
    return said if said == NO_VALUE or math.isnan(null) else f"{said} (perfect: {null:.2f})"


HOW_FAR: dict[str, Cell] = {
    "Mean confidence": mean("mean_confidence"),
    "Right": mean("share_right"),
    "Difference": interval("difference"),
    "Debiased error": interval("error"),
    "Plain error (ECE)": ece_words,
}
BRIER: dict[str, Cell] = {
    "Brier's score": interval("brier"),
    "Miscalibration": parts_words,
    "Discrimination": interval("discrimination"),
    "Uncertainty": interval("uncertainty"),
}


def errors_tables(
    errors: pd.DataFrame,
    names: Mapping[str, Sequence[str]],
    *,
    key: str,
    items: str,
    more: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Two tables, a row a group: how far off, and Brier's score in its parts.

    Args:
        names: The first columns of both.
        more: Further columns of the first.
    """
    rows = errors.to_dict(orient="records")
    first = {head: [cell(row) for row in rows] for head, cell in HOW_FAR.items()}
    counts = {items: errors["n"], "Left out": errors["n_left_out"]}
    tables.show(
        {**names, **(more or {}), **counts, **first},
        key=f"{key}_errors",
        names=tuple(names)[:1],
        optional=("Left out",),
        alt="How far confidence is off, by group",
    )
    tables.show(
        {**names, **{head: [cell(row) for row in rows] for head, cell in BRIER.items()}},
        key=f"{key}_brier",
        names=tuple(names)[:1],
        alt="Brier's score in its parts, by group",
    )


def reasons(table: pd.DataFrame) -> None:
    """Why values of a table are missing, each reason once with its rows.

    Args:
        table: model and format, or group; undefined: a sentence, "" where there is a value.
    """
    by_reason: dict[str, list[str]] = {}
    for row in table.to_dict(orient="records"):
        if row["undefined"]:
            by_reason.setdefault(str(row["undefined"]), []).append(who(row) if "model" in row else str(row["group"]))
    if by_reason:
        st.html(html.items(f"{listed(rows)}: {why}" for why, rows in by_reason.items()))

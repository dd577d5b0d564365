"""What the sections of the Calibration page share: choices, what a stated confidence means, and tables."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.calibration import confidence
from evalcore.calibration.reliability import brier_columns, error_columns, reasons
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.policies import check_can_set_meaning, reason
from evalcore.study.schema import ConfidenceMeaning, Viewer
from evalcore.triage import setting_queries
from evalcore.triage.acts import set_confidence_meaning
from pages.shared import common, glossary, html, page_cache, tables, triage_choice
from pages.shared.triage_choice import Here, Read

PAGE = "calibration"
CHOSEN = "show about judge reads model confidence of_model of_format by wanted threshold"
KEYS = [f"{PAGE}_{name}" for name in CHOSEN.split()]
ALL_MODELS = "all models"
STATED, SHARES = "stated, else share of samples", "share of samples"
ERRORS_WORDS = (
    "Difference: mean confidence less share right, above 0 is over-confident. Debiased error: the root of the mean "
    "squared gap between confidence and what is right over bins of equally many, less what chance alone adds, floored "
    "at 0; below 0.05 is small. Brier's score is the mean squared gap of single answers, lower is better: "
    "miscalibration less discrimination (how far right and wrong are told apart) plus uncertainty (of what is right). "
    "The plain error (ECE) is above 0 for perfectly calibrated data too, so what those would give stands beside it, "
    "with what 5 % of them exceed."
)
LEVEL = {ConfidenceMeaning.RIGHT: "that its own level is right"}
OF_MODELS = "Models state a confidence themselves: "
one_of = partial(page_cache.one_of, PAGE)


def leave() -> None:
    """Keep what is chosen, for the browser's way back."""
    page_cache.leave(PAGE, KEYS)
    triage_choice.leave()


def slider(label: str, least: float, most: float, usual: float, key: str) -> float:
    """A slider whose place is kept in the address."""
    begin = min(max(float(page_cache.left(PAGE, key, usual)), least), most)
    return float(
        st.slider(label, least, most, begin, 0.05, key=key, format="percent", bind="query-params", persist_state="session", width=280)
    )  # fmt: skip


Meanings = tuple[tuple[str, ConfidenceMeaning], ...]


def meanings() -> Meanings:
    """What the confidence of each judge means, as far as somebody has said it: pairs, so that they can be a key."""
    with reading(common.engine()) as session:
        return tuple(setting_queries.confidence_meanings(session).items())


def meanings_of_levels(viewer: Viewer, *, of_parser: bool = False) -> pd.DataFrame:
    """As `level_meanings`: of judges, or of what models state themselves."""
    known = meanings()
    about = ("meanings of levels", known, of_parser)
    triage_data = page_cache.triage_data(viewer)
    make = partial(confidence.level_meanings, triage_data, dict(known), of_parser=of_parser)
    kept: pd.DataFrame = page_cache.shared(make, viewer, about)
    return kept


def source(here: Here, *, asked: bool = True) -> str:
    """What counts as a model's own confidence; `asked`: with its control, where there is a choice."""
    table = meanings_of_levels(here.viewer, of_parser=True)
    if asked and len(table):
        show_meanings(here.viewer, table, key="calibration_own", of_models=True)
    if not confidence.takes_stated(table):
        return SHARES
    if not asked:
        return STATED
    helps = glossary.helps("confidence", "calibration")
    with here.row:
        return str(one_of("Confidence", [STATED, SHARES], "calibration_confidence", width=235, help=helps))


def own(read: Read, source: str) -> pd.DataFrame:
    """Predictions with the model's own confidence."""
    return confidence.own_confidence(read.found, stated=source == STATED)


def of_own(here: Here, source: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """What `make(own, *arguments)` gives, kept."""
    return here.computed(make, *arguments, of=lambda read: own(read, source), about=source)


def of_model(table: pd.DataFrame, model: str) -> pd.DataFrame:
    """Rows of one model, or all, in order."""
    return triage_choice.in_order(table if model == ALL_MODELS else table.loc[table["model"].astype(str).eq(model)])


def show_meanings(viewer: Viewer, table: pd.DataFrame, *, key: str, of_models: bool = False) -> None:
    """What each judge's confidence means, or the question; `of_models`: what models state, read by the parser."""
    why_not = reason(check_can_set_meaning, viewer)
    for place, row in enumerate(table.to_dict(orient="records")):
        words = dict(confidence.MEANINGS) if "share_met" in row else LEVEL
        mine = f"{key}_{place}"
        if row["usable"]:
            with st.container(horizontal=True, vertical_alignment="center", key=f"{mine}_known"):
                label = "label" if "share_met" in row else "level"
                of_what = f"the probability {words[row['meaning']]}"
                known = f"{row['judge']} states {of_what}. Its {counted(row['n'], label)} with a confidence are consistent with this."
                known = f"{OF_MODELS}{of_what.replace('its', 'their')}." if of_models else known
                st.html(html.quiet(known), width="content")
                if not why_not and len(words) > 1:
                    with st.popover("Change", type="tertiary", key=f"{mine}_change"):
                        _choice(viewer, row, words, why_not, mine)
            continue
        with st.container(gap="small", key=mine):
            if row["meaning"] is None:
                stated = confidence.stated_words(row)
                stated = f"{OF_MODELS}{stated.replace('parser states', 'the parser reads', 1)}" if of_models else stated
                what = (
                    "What is it the probability of? Until this is specified, nothing is drawn from these confidences."
                )
                st.html(html.notice(f"{stated} {what}", kind="warning"))
                against = {meaning: row[f"against_{word.value}"] for word, meaning in words.items()}
                if any(against.values()):
                    st.html(html.items(f'Against "{meaning}": {why}' for meaning, why in against.items() if why))
            else:
                st.html(html.notice(f"{row['why']} Nothing is drawn from these confidences.", kind="warning"))
            _choice(viewer, row, words, why_not, mine)
    if why_not and not table["usable"].all():
        st.html(html.quiet(why_not))


def _choice(
    viewer: Viewer, row: Mapping[Any, Any], words: Mapping[ConfidenceMeaning, str], why_not: str, key: str
) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}_choice"):
        meaning, options = row["meaning"], list(words)
        place = options.index(meaning) if meaning in options else None
        look: dict[str, Any] = {"horizontal": True, "key": f"{key}_meaning", "disabled": bool(why_not)}
        what, named = "Its confidence is the probability", words.__getitem__
        chosen = st.radio(what, options, place, format_func=named, width="content", **look)
        look = {"type": "primary", "icon": ":material/check:", "key": f"{key}_keep", "help": why_not or None}
        is_off = bool(why_not) or chosen is None or chosen is meaning
        pressed = st.button("Keep this meaning", disabled=is_off, **look)
    if pressed and chosen is not None:
        common.act(set_confidence_meaning, str(row["judge"]), chosen, actor=viewer)


def errors_tables(errors: pd.DataFrame, names: Mapping[str, Any], more: Mapping[str, Any], *, key: str) -> None:
    """How far off, and Brier's score in its parts, a row a group; `names` begin both, `more` stands in the first."""
    columns, first = {**names, **more, "Left out": errors["n_left_out"], **error_columns(errors)}, tuple(names)[:1]
    alt = "How far confidence is off, by group"
    tables.show(columns, key=f"{key}_errors", names=first, optional=("Left out",), alt=alt)
    alt = "Brier's score in its parts, by group"
    tables.show({**names, **brier_columns(errors)}, key=f"{key}_brier", names=first, alt=alt)
    show_reasons(errors)


def show_reasons(table: pd.DataFrame) -> None:
    """Why values of a table are missing."""
    if lines := reasons(table):
        st.html(html.items(lines))

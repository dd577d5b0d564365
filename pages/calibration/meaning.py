"""What a stated confidence means: asked before anything is drawn from it, and held against the data. Part of the Calibration page."""

import pandas as pd
import streamlit as st

from evalcore.calibration.confidence_meaning import MEANINGS, meaning_words, stated_words
from evalcore.study.policies import check_can_set_meaning, reason
from evalcore.study.schema import ConfidenceMeaning, Viewer
from evalcore.triage.acts import set_confidence_meaning
from pages.shared import common, html

LEVEL = {ConfidenceMeaning.RIGHT: "that its own level is right"}
NOT_ASKED = "Until this is said nothing is drawn from these confidences."
DO = "Keep this meaning"


def show(viewer: Viewer, table: pd.DataFrame, *, key: str, of_models: bool = False) -> None:
    """Each judge that states a confidence: what it means, or the question, with the data beside it.

    Args:
        viewer: Who looks; leads and researchers answer.
        table: As `confidence_meaning.criteria_meanings`, `level_meanings` or `model_meaning` give it.
        key: Beginning of the elements' keys.
        of_models: The confidences are the models' own, which the parser reads.
    """
    why_not = reason(check_can_set_meaning, viewer)
    asked = False
    for place, row in enumerate(table.to_dict(orient="records")):
        words = dict(MEANINGS) if "share_met" in row else LEVEL
        if row["usable"]:
            _known(viewer, row, words, why_not, f"{key}_{place}", of_models=of_models)
            continue
        asked = True
        with st.container(gap="small", key=f"{key}_{place}"):
            stated = _of_models(stated_words(row)) if of_models else stated_words(row)
            if row["meaning"] is None:
                st.html(html.notice(f"{stated} What is that the probability of? {NOT_ASKED}", kind="warning"))
            else:
                st.html(html.notice(f"{row['why']} Nothing is drawn from these confidences.", kind="warning"))
            against = [(said, row[f"against_{word.value}"]) for word, said in words.items()]
            if row["meaning"] is None and any(why for _, why in against):
                st.html(html.items(f'Against "{said}": {why}' for said, why in against if why))
            _choice(viewer, row, words, why_not, f"{key}_{place}")
    if asked and why_not:
        st.html(html.quiet(why_not))


def _of_models(sentence: str) -> str:
    return f"Models state a confidence themselves: {sentence.replace('parser states', 'the parser reads', 1)}"


def _known(
    viewer: Viewer,
    row: dict[object, object],
    words: dict[ConfidenceMeaning, str],
    why_not: str,
    key: str,
    *,
    of_models: bool,
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_known"):
        said = (
            "Models state a confidence themselves: the probability that their own level is right."
            if of_models
            else meaning_words(row)
        )
        st.html(html.quiet(said), width="content")
        if not why_not and len(words) > 1:
            with st.popover("Change", type="tertiary", key=f"{key}_change"):
                _choice(viewer, row, words, why_not, key)


def _choice(
    viewer: Viewer, row: dict[object, object], words: dict[ConfidenceMeaning, str], why_not: str, key: str
) -> None:
    """The answers and the button; for others both are off."""
    with st.container(horizontal=True, vertical_alignment="bottom", key=f"{key}_choice"):
        options = list(words)
        meaning = row["meaning"]
        chosen = st.radio(
            "Its confidence is the probability",
            options,
            index=options.index(meaning) if isinstance(meaning, ConfidenceMeaning) and meaning in options else None,
            format_func=words.__getitem__,
            horizontal=True,
            key=f"{key}_meaning",
            disabled=bool(why_not),
            width="content",
        )
        kept = st.button(
            DO,
            type="primary",
            icon=":material/check:",
            key=f"{key}_keep",
            disabled=bool(why_not) or chosen is None or chosen is meaning,
            help=why_not or None,
        )
    if kept and chosen is not None:
        with common.shown_errors():
            set_confidence_meaning(common.engine(), str(row["judge"]), chosen, actor=viewer)
            st.rerun()

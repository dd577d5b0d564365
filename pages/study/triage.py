"""What the labels of each source stand for, and how cases of triage are counted. Part of the Study page's tab of cases."""

import math
import re
from dataclasses import replace

import pandas as pd
import streamlit as st

from evalcore.study.csv_cells import text_of
from evalcore.study.db import reading
from evalcore.study.policies import check_can_set_triage, reason
from evalcore.study.schema import Format, Viewer
from evalcore.triage import acts as triage_acts
from evalcore.triage import label_maps, setting_queries
from evalcore.triage import settings as triage_settings
from evalcore.triage.data import LETTERS, MAX_SPREAD, MAX_UNCERTAINTY, AmbiguityRule
from evalcore.triage.settings import TriageSettings
from pages.shared import common, html

FORMATS = {
    Format.QA: "qa: the case with the four levels",
    Format.CONVERSATION: "conversation: as the patient would write it",
}
MEANINGS = "A level from A (home) to D (emergency now), a boundary such as C/D, panel (physicians decide), or information A (kept, and never the gold)"
DRAWN = "study_triage_drawn"


def show(viewer: Viewer) -> None:
    """Label maps and settings: everybody sees them, a lead changes them."""
    st.session_state.setdefault(DRAWN, 0)
    why_not = reason(check_can_set_triage, viewer)
    st.subheader("What labels stand for", anchor=False)
    if why_not:
        st.html(html.notice(why_not))
    _maps(viewer, disabled=bool(why_not))
    st.html(
        html.foot(
            f"{MEANINGS}. Upper and lower case, and blanks, hyphens and underscores between words, make no other label. A label that its source's map does not "
            "know stops an import. A change counts for cases that are imported from then on: those imported before keep what was made of them."
        )
    )
    st.subheader("How cases are counted", anchor=False)
    _settings(viewer, disabled=bool(why_not))
    st.html(
        html.foot(
            "Spread: the mean squared difference over all pairs of a panel's votes, in levels. An ambiguous case has no gold: no answer is right or wrong. "
            "A panel of two votes or more decides by its spread; of other cases the file says whether physicians disagreed."
        )
    )


def _saved() -> None:
    """Draw what is stored: fields get new keys, so that they do not keep what was typed."""
    st.session_state[DRAWN] += 1
    st.rerun()


def _maps(viewer: Viewer, *, disabled: bool) -> None:
    hidden = common.blind(viewer)
    with reading(common.engine()) as session:
        own, tables = setting_queries.own_tables(session), setting_queries.tables_of(session)
        labels = setting_queries.labels_of_cases(session, hidden)
    maps = label_maps.maps(tables)
    counts = label_maps.label_counts(labels, maps)
    sources = list(dict.fromkeys([*counts["source"], *tables]))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        source = st.selectbox(
            "Source", sources, key="label_map_source", width=320, accept_new_options=not disabled, disabled=not sources
        )  # fmt: skip
    source = label_maps.fold(source or label_maps.LEVELS)
    st.html(html.items([*_whose(source, own), *label_maps.count_sentences(counts, source, maps)]))
    table = tables.get(source, tables[label_maps.LEVELS])
    rows = [*table, *((label, "") for label in label_maps.unknown(counts, source))]
    edited = _editor(source, rows, label_maps.beside(counts, source, rows, maps), disabled=disabled)
    with st.container(horizontal=True):
        save = st.button(
            "Save the map", type="primary", icon=":material/save:", key="label_map_save", disabled=disabled
        )
        back = st.button(
            "Back to the map of Overread" if source in label_maps.default_tables() else "Remove this map",
            icon=":material/undo:", key="label_map_reset", disabled=disabled or source not in own,
        )  # fmt: skip
        st.download_button(
            "Download", label_maps.to_csv(table), file_name=f"{re.sub(r'[^a-z0-9]+', '_', source)}.csv", mime="text/csv", icon=":material/download:",
            key="label_map_download", on_click="ignore",
        )  # fmt: skip
    if save or back:
        with common.shown_errors():
            _set_map(viewer, source, [] if back else edited, keep_empty=bool(back))
            _saved()
    _map_of_file(viewer, source, disabled=disabled)


def _whose(source: str, own: dict[str, list[tuple[str, str]]]) -> list[str]:
    if source in own:
        return ["This map is the study's own."]
    return ["This map comes with Overread."] if source in label_maps.default_tables() else []


def _editor(source: str, table: label_maps.Table, counts: pd.DataFrame, *, disabled: bool) -> list[tuple[str, str]]:
    """The map as it stands on the screen. A label of its cases that it does not know waits in a row of its own, and is left out while it stays empty."""
    shown = pd.DataFrame(list(table), columns=list(label_maps.COLUMNS), dtype="str").assign(
        cases=counts["n_cases"].to_numpy(), otherwise=counts["n_otherwise"].to_numpy()
    )
    edited = st.data_editor(
        shown,
        key=f"label_map_{st.session_state[DRAWN]}_{source}",
        num_rows="fixed" if disabled else "dynamic",
        disabled=True if disabled else ["cases", "otherwise"],
        hide_index=True,
        width="content",
        column_order=["label", "meaning", "cases", *(["otherwise"] if counts["n_otherwise"].any() else [])],
        placeholder="",
        column_config={
            "label": st.column_config.TextColumn(
                "Label of the source", max_chars=label_maps.MAX_LENGTH, width="medium"
            ),
            "meaning": st.column_config.TextColumn("Stands for", max_chars=label_maps.MAX_LENGTH, width="medium"),
            "cases": st.column_config.NumberColumn("Cases with it", format="localized"),
            "otherwise": st.column_config.NumberColumn("Imported as something else", format="localized"),
        },
        alt="Labels of the source and what each stands for",
    )
    kept = edited[list(label_maps.COLUMNS)].fillna("").astype(str)
    waiting = {(label, meaning) for label, meaning in table if not meaning}
    rows = [(str(label), str(meaning)) for label, meaning in kept.itertuples(index=False)]
    return [row for row in rows if "".join(row).strip() and row not in waiting]


def _set_map(viewer: Viewer, source: str, rows: list[tuple[str, str]], *, keep_empty: bool = False) -> None:
    if not keep_empty:  # an emptied table is refused: going back has its own button
        label_maps.check([(f"row {n}", *row) for n, row in enumerate(rows, start=1)], f"the label map of {source}")
    triage_acts.set_label_map(common.engine(), source, rows, actor=viewer)


def _map_of_file(viewer: Viewer, source: str, *, disabled: bool) -> None:
    if disabled:
        return
    with st.expander("A map as a file", icon=":material/upload_file:"):
        upload = st.file_uploader(
            "CSV with the columns label and meaning", type="csv", key=f"label_map_file_{st.session_state[DRAWN]}", max_upload_size=1
        )  # fmt: skip
        if upload is None:
            return
        st.html(html.quiet(f"{upload.name} would replace the map of {source} whole."))
        if st.button("Replace the map by this file", key="label_map_replace"):
            with common.shown_errors():
                rows = label_maps.parse(text_of(upload.getvalue(), upload.name), upload.name)
                _set_map(viewer, source, rows)
                _saved()


def _settings(viewer: Viewer, *, disabled: bool) -> None:
    with reading(common.engine()) as session:
        own, settings = setting_queries.own(session), setting_queries.load(session)
    whose = "The study has chosen its own settings" if own else "These are the settings that come with Overread"
    st.html(html.quiet(f"{whose}. Ambiguous: {triage_settings.rule_words(settings.rule)}."))
    with st.form(f"triage_settings_{st.session_state[DRAWN]}"):
        wanted = _fields(settings, disabled=disabled)
        save = st.form_submit_button("Save the settings", icon=":material/save:", disabled=disabled)
    with st.container(horizontal=True):
        back = st.button(
            "Back to the settings of Overread", icon=":material/undo:", key="triage_settings_reset", disabled=disabled or own is None
        )  # fmt: skip
        st.download_button(
            "Download as YAML", triage_settings.to_yaml(settings), file_name="triage-settings.yaml", mime="application/yaml",
            icon=":material/download:", key="triage_settings_download", on_click="ignore",
        )  # fmt: skip
    if save or back:
        with common.shown_errors():
            _set_settings(viewer, None if back else wanted)
            _saved()
    _settings_of_file(viewer, disabled=disabled)


def _fields(settings: TriageSettings, *, disabled: bool) -> TriageSettings:
    """The form, filled in with the settings; what it says now."""
    key = f"triage_{st.session_state[DRAWN]}_"
    names: dict[str, str] = {}
    with st.container(horizontal=True):
        for letter in LETTERS:
            names[letter] = st.text_input(
                f"Level {letter}", settings.level_names[letter], max_chars=triage_settings.LONGEST_NAME, key=f"{key}name_{letter}", disabled=disabled
            )  # fmt: skip
    formats = st.multiselect(
        "Formats", list(Format), list(settings.formats), format_func=FORMATS.__getitem__, key=f"{key}formats", disabled=disabled
    )  # fmt: skip
    metrics = st.multiselect(
        "Metrics", list(triage_settings.METRICS), list(settings.metrics), format_func=triage_settings.METRICS.__getitem__, key=f"{key}metrics",
        disabled=disabled,
    )  # fmt: skip
    with st.container(horizontal=True):
        highest = triage_settings.HIGHEST_WEIGHT
        under = st.number_input(
            "Harm of a step too low",
            0.0,
            highest,
            settings.under_weight,
            0.5,
            "%.4g",
            key=f"{key}under",
            disabled=disabled,
        )
        over = st.number_input(
            "Harm of a step too high",
            0.0,
            highest,
            settings.over_weight,
            0.5,
            "%.4g",
            key=f"{key}over",
            disabled=disabled,
        )
    rule = AmbiguityRule(
        spread=_limit(
            "panel spread", settings.rule.spread, MAX_SPREAD, triage_settings.HIGHEST_SPREAD, key=f"{key}spread", disabled=disabled
        ),
        uncertainty=_limit(
            "stated uncertainty", settings.rule.uncertainty, MAX_UNCERTAINTY, triage_settings.HIGHEST_UNCERTAINTY,
            key=f"{key}uncertainty", disabled=disabled,
        ),
    )  # fmt: skip
    return replace(
        settings, level_names=names, formats=tuple(formats), metrics=tuple(metrics), under_weight=under, over_weight=over, rule=rule
    )  # fmt: skip


def _limit(what: str, value: float, usual: float, highest: float, *, key: str, disabled: bool) -> float:
    """A number above which a case is ambiguous, or infinity where the box is empty."""
    is_off = math.isinf(value)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        limit = st.number_input(
            f"Ambiguous above a {what} of (0 to {highest:g})", 0.0, highest, usual if is_off else value, 0.05, "%.4g", key=key, width=320, disabled=disabled
        )  # fmt: skip
        counts = st.checkbox(f"A {what} makes a case ambiguous", not is_off, key=f"{key}_on", disabled=disabled)
    return limit if counts else math.inf


def _set_settings(viewer: Viewer, settings: TriageSettings | None) -> None:
    triage_acts.set_triage_settings(common.engine(), settings, actor=viewer)


def _settings_of_file(viewer: Viewer, *, disabled: bool) -> None:
    if disabled:
        return
    with st.expander("Settings as a file", icon=":material/upload_file:"):
        upload = st.file_uploader(
            "YAML, as the download above", type=["yaml", "yml"], key=f"triage_settings_file_{st.session_state[DRAWN]}", max_upload_size=1
        )  # fmt: skip
        if upload is None:
            return
        st.html(
            html.quiet(f"{upload.name} would replace the settings whole; what it leaves out goes back to the default.")
        )
        if st.button("Replace the settings by this file", key="triage_settings_replace"):
            with common.shown_errors():
                settings = triage_settings.parse(text_of(upload.getvalue(), upload.name), upload.name)
                _set_settings(viewer, settings)
                _saved()

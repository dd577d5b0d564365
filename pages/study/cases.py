"""Cases of triage: what became of each, what the labels of each source stand for, how cases are counted."""

import math
import re
from collections.abc import Callable

import pandas as pd
import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.csv_cells import text_of
from evalcore.study.policies import check_can_set_triage, own_act, reason
from evalcore.study.schema import Format, Viewer
from evalcore.triage import (
    acts as triage_acts,
    case_flow as flows,
    label_maps,
    setting_queries,
    settings as triage_settings,
)
from evalcore.triage.data import LETTERS, MAX_SPREAD, MAX_UNCERTAINTY
from evalcore.triage.figures import case_flow
from evalcore.triage.settings import TriageSettings, rule_words
from pages.shared import common, glossary, html, page_cache, tables, theme

FORMATS = {
    Format.QA: "qa: the case with the four levels",
    Format.CONVERSATION: "conversation: as the patient would write it",
}
MEANINGS = "A level from A (home) to D (emergency now), a boundary such as C/D, panel (physicians decide), or information A (kept, and never the gold)"
DRAWN = "study_triage_drawn"
ALT = "The flow of cases from their sources, by what they are used for, to their level of care; the table below has the same numbers"


def show(viewer: Viewer, hidden: frozenset[int]) -> None:
    """The flow of the study's cases, the table of labels, and what label maps and settings make of them."""
    found = page_cache.triage_data(viewer)
    rule = common.ask(setting_queries.load).rule
    if found.cases.empty:
        below = "you can first say below what its labels stand for"
        st.html(html.notice(f"No case of triage can be shown yet. Import a file of cases; {below}."))
    else:
        flow = flows.case_flow(found, rule)
        drawn(flow, key="study_flow")
        if hidden:
            st.html(html.quiet(f"Cases that wait for your own {own_act(viewer)} are left out of all numbers here."))
        labels(flow)
        table = flow.groupby(["outcome", "why"], sort=False)["n"].sum().reset_index()
        rank = {word.value: place for place, word in enumerate(flows.Outcome)}
        table = table.assign(rank=table["outcome"].map(rank)).sort_values(["rank", "n"], ascending=[True, False])
        why = "Why cases are used or left out"
        with st.expander(why, icon=":material/rule:"):
            shown = {"Used as": table["outcome"], "Because": table["why"], "Cases": table["n"]}
            tables.show(shown, key="study_ways", alt=why)
        foot = (
            f"A panel of two votes or more decides: its median vote is the level. Ambiguous: {rule_words(rule)}; "
            "such a case has no level. Of cases without a panel the file's own level counts, or what the label "
            "map of the source makes of its label. What a file says against its votes is named when it is "
            "imported."
        )
        st.html(html.foot(foot))
    if len(found.published):  # they have no cases: they are named, so that nobody misses them above
        n = len(found.published[["model", "format"]].drop_duplicates())
        which = counted(n, "published confusion matrix", "published confusion matrices")
        st.html(html.quiet(f"Beside these: {which}, of counts alone, with no cases behind them."))
    settings(viewer)


def drawn(flow: pd.DataFrame, *, key: str) -> None:
    """The flow in words and as a figure."""
    st.html(html.finding(flows.sentence(flow)))
    folded = flows.folded(flow)
    figure = case_flow(flows.links(folded), flows.stages(folded))
    theme.figure(figure, key=key, alt=ALT)


def labels(flow: pd.DataFrame, *, key: str = "study_labels") -> None:
    """What was made of each label, source by source."""
    columns = flows.label_columns(flows.mapping(flow))
    alt = "What was made of each label of each source, and how many cases have it"
    tables.show(columns, key=key, alt=alt, optional=["Ambiguous", "Left out"], names=["Source"])


def settings(viewer: Viewer) -> None:
    """Label maps and settings: everybody sees them, a lead changes them."""
    st.session_state.setdefault(DRAWN, 0)
    why_not = reason(check_can_set_triage, viewer)
    st.subheader("What labels stand for", anchor=False)
    if why_not:
        st.html(html.notice(why_not))
    _maps(viewer, disabled=bool(why_not))
    foot = (
        f"{MEANINGS}. Upper and lower case, and blanks, hyphens and underscores between words, make no other "
        "label. A label that its source's map does not know stops an import. A change counts for cases that are "
        "imported from then on: those imported before keep what was made of them."
    )
    st.html(html.foot(foot))
    st.subheader("How cases are counted", anchor=False, help=glossary.helps("gold", "boundary, ambiguous"))
    _settings(viewer, disabled=bool(why_not))
    foot = (
        "Spread: the mean squared difference over all pairs of a panel's votes, in levels. An ambiguous case has "
        "no gold: no answer is right or wrong. A panel of two votes or more decides by its spread; of other cases "
        "the file says whether physicians disagreed."
    )
    st.html(html.foot(foot))


def _saved() -> None:
    """Draw what is stored: fields get new keys, so that they do not keep what was typed."""
    st.session_state[DRAWN] += 1
    st.rerun()


def _maps(viewer: Viewer, *, disabled: bool) -> None:
    own, tables = common.ask(setting_queries.own_tables), common.ask(setting_queries.tables_of)
    labels = common.ask(setting_queries.labels_of_cases, common.blind(viewer))
    maps = label_maps.maps(tables)
    counts = label_maps.label_counts(labels, maps)
    spelt = dict(zip(labels["source"].map(label_maps.fold), labels["source"], strict=True))
    sources = [spelt.get(source, source) for source in dict.fromkeys([*counts["source"], *tables])]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        how = {"accept_new_options": not disabled, "disabled": not sources}
        called = st.selectbox("Source", sources, key="label_map_source", width=320, **how)
    called = called or label_maps.LEVELS
    source = label_maps.fold(called)
    whose = ["This map comes with Overread."] if source in label_maps.default_tables() else []
    whose = ["This map is the study's own."] if source in own else whose
    st.html(html.items([*whose, *label_maps.count_sentences(counts, called, maps)]))
    table = tables.get(source, tables[label_maps.LEVELS])
    rows = [*table, *((label, "") for label in label_maps.unknown(counts, source))]
    edited = _editor(source, rows, label_maps.beside(counts, source, rows, maps), disabled=disabled)
    with st.container(horizontal=True):
        icon = ":material/save:"
        save = st.button("Save the map", type="primary", icon=icon, key="label_map_save", disabled=disabled)
        back = st.button(
            "Use Overread's map" if source in label_maps.default_tables() else "Remove this map",
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
    if not disabled:
        _replace_by_file(
            "A map as a file",
            "CSV with the columns label and meaning",
            "csv",
            key="label_map",
            words=f"would replace the map of {called} whole.",
            button="Replace the map by this file",
            act=lambda text, name: _set_map(viewer, source, label_maps.parse(text, name)),
        )


def _editor(source: str, table: label_maps.Table, counts: pd.DataFrame, *, disabled: bool) -> list[tuple[str, str]]:
    """The map as it stands on the screen. A label that it does not know has a row, left out while it stays empty."""
    shown = pd.DataFrame(list(table), columns=list(label_maps.COLUMNS), dtype="str")
    shown = shown.assign(cases=counts["n_cases"].to_numpy(), otherwise=counts["n_otherwise"].to_numpy())
    longest = label_maps.MAX_LENGTH
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
            "label": st.column_config.TextColumn("Label of the source", max_chars=longest, width="medium"),
            "meaning": st.column_config.TextColumn("Stands for", max_chars=longest, width="medium"),
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


def _replace_by_file(
    title: str, label: str, *types: str, key: str, words: str, button: str, act: Callable[[str, str], object]
) -> None:
    with st.expander(title, icon=":material/upload_file:"):
        place = f"{key}_file_{st.session_state[DRAWN]}"
        upload = st.file_uploader(label, type=types, key=place, max_upload_size=1)
        if upload is None:
            return
        st.html(html.quiet(f"{upload.name} {words}"))
        if st.button(button, key=f"{key}_replace"):
            with common.shown_errors():
                act(text_of(upload.getvalue(), upload.name), upload.name)
                _saved()


def _settings(viewer: Viewer, *, disabled: bool) -> None:
    own, settings = common.ask(setting_queries.own), common.ask(setting_queries.load)
    whose = "The study has chosen its own settings" if own else "These are the settings that come with Overread"
    st.html(html.quiet(f"{whose}. Ambiguous: {rule_words(settings.rule)}."))
    with st.form(f"triage_settings_{st.session_state[DRAWN]}"):
        wanted = _fields(settings, disabled=disabled)
        save = st.form_submit_button("Save the settings", icon=":material/save:", disabled=disabled)
    with st.container(horizontal=True):
        back = st.button(
            "Use Overread's settings", icon=":material/undo:", key="triage_settings_reset", disabled=disabled or own is None
        )  # fmt: skip
        st.download_button(
            "Download as YAML", triage_settings.to_yaml(settings), file_name="triage-settings.yaml", mime="application/yaml",
            icon=":material/download:", key="triage_settings_download", on_click="ignore",
        )  # fmt: skip
    if save or back:
        with common.shown_errors():
            triage_acts.set_triage_settings(common.engine(), None if back else wanted, actor=viewer)
            _saved()
    if not disabled:
        _replace_by_file(
            "Settings as a file",
            "YAML, as the download above",
            "yaml",
            "yml",
            key="triage_settings",
            words="would replace all settings; what it leaves out returns to the default.",
            button="Replace the settings by this file",
            act=lambda text, name: triage_acts.set_triage_settings(
                common.engine(), triage_settings.parse(text, name), actor=viewer
            ),
        )


def _fields(settings: TriageSettings, *, disabled: bool) -> TriageSettings:
    key = f"triage_{st.session_state[DRAWN]}_"
    names: dict[str, str] = {}
    with st.container(horizontal=True):
        for letter in LETTERS:
            names[letter] = st.text_input(
                f"Level {letter}", getattr(settings.level_names, letter), max_chars=triage_settings.LONGEST_NAME, key=f"{key}name_{letter}", disabled=disabled
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
        under, over = (
            st.number_input(
                f"Harm of a step too {way}", 0.0, highest, weight, 0.5, "%.4g", key=key + name, disabled=disabled
            )
            for way, weight, name in (("low", settings.weights.under, "under"), ("high", settings.weights.over, "over"))
        )
    ambiguous = triage_settings.Ambiguous(
        spread_above=_limit(
            "panel spread", settings.rule.spread, MAX_SPREAD, triage_settings.HIGHEST_SPREAD, key=f"{key}spread", disabled=disabled
        ),
        uncertainty_above=_limit(
            "stated uncertainty", settings.rule.uncertainty, MAX_UNCERTAINTY, triage_settings.HIGHEST_UNCERTAINTY,
            key=f"{key}uncertainty", disabled=disabled,
        ),
    )  # fmt: skip
    return TriageSettings(
        triage_settings.LevelNames(**names), tuple(formats), tuple(metrics), triage_settings.ErrorWeights(under, over), ambiguous
    )  # fmt: skip


def _limit(what: str, value: float, usual: float, highest: float, *, key: str, disabled: bool) -> float | None:
    """A number above which a case is ambiguous; None where the box is empty."""
    is_off = math.isinf(value)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        limit = st.number_input(
            f"Ambiguous above a {what} of (0 to {highest:g})", 0.0, highest, usual if is_off else value, 0.05, "%.4g", key=key, width=320, disabled=disabled
        )  # fmt: skip
        counts = st.checkbox(f"A {what} makes a case ambiguous", not is_off, key=f"{key}_on", disabled=disabled)
    return limit if counts else None

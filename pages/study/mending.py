"""Imports with what each brought, to withdraw or restore; names to change; responses marked as broken."""

import pandas as pd
import streamlit as st

from evalcore.stats.wording import counted, listed
from evalcore.study.corrections import mending
from evalcore.study.corrections.mending import MAX_REASON, Effect
from evalcore.study.corrections.renaming import MAX_NAME, Kind, rename, take_back
from evalcore.study.policies import check_can_mend, reason
from evalcore.study.schema import Viewer
from pages.shared import common, html, tables

TITLE = "Corrections"
WORDS = {Kind.MODEL: "Model", Kind.JUDGE: "Judge", Kind.DATASET: "Data set"}
KEPT = "Nothing is deleted: what physicians did on it is kept, and comes back with the import."


def show(viewer: Viewer) -> None:
    """The list of imports, names and broken responses."""
    if why_not := reason(check_can_mend, viewer):
        st.html(html.notice(why_not))
        return
    st.subheader("Imports", anchor=False)
    found = common.read("imports")
    if found.empty:
        st.html(html.quiet("Nothing was imported into this study yet."))
    else:
        _imports(viewer, found)
    st.subheader("Names", anchor=False)
    _names(viewer)
    st.subheader("Broken responses", anchor=False)
    broken = common.read("broken")
    if broken.empty:
        sentence = "No response is marked as broken. Browse marks one that is empty, cut off or in the wrong language."
        st.html(html.quiet(sentence))
        return
    said = f"{counted(len(broken), 'response')} in no number. Open the conversation in Browse to have one count again."
    st.html(html.quiet(said))
    columns = {"Example": broken["prompt_id"], "Model": broken["model"], "Sample": broken["sample_index"]}
    columns |= {"Why": broken["reason"].str.replace("_", " "), "Marked by": broken["marked_by"]}
    tables.show(columns, key="broken", alt="Responses that are marked as broken, with the reason")


def _imports(viewer: Viewer, found: pd.DataFrame) -> None:
    is_gone = found["withdrawn_at"].notna()
    columns = {
        "Import": found["import_id"],
        "File": found["file"],
        "On": found["imported_at"].map(common.local_time),
        "Examples": found["n_examples"],
        "Responses": found["n_responses"],
        "Verdicts": found["n_verdicts"],
        "State": [f"withdrawn by {by}: {why}" if gone else "" for gone, by, why in zip(is_gone, found["withdrawn_by"], found["reason"], strict=True)],
        "Imported by": found["imported_by"],
    }  # fmt: skip
    alt = "Imports of this study, newest first, with what each brought"
    place = tables.pick(columns, key="imports", alt=alt, optional=("State",), names=("File",))
    if place is None:
        st.html(html.quiet("Choose an import to take it back, or to bring back one that was withdrawn."))
        return
    row = found.iloc[place]
    number = int(row["import_id"])
    with st.container(border=True, key="mend_import"):
        with common.shown_errors():
            effect = mending.preview(common.engine(), number, actor=viewer)
            (_bring_back if is_gone.iloc[place] else _take_back)(viewer, row["file"], number, effect)
        if not row["keeps_rows"]:
            older = "This import was made before Overread recorded which rows a file brings: only its verdicts are known, so its examples and responses stay."
            st.html(html.quiet(older))


def _words(effect: Effect) -> str:
    parts = effect.parts()
    return listed(parts) if parts else "nothing"


def _take_back(viewer: Viewer, file: str, number: int, effect: Effect) -> None:
    st.html(html.notice(f"Without {file} these leave every screen, number and export: {_words(effect)}. {KEPT}"))
    if done := effect.of_physicians:
        st.html(html.notice(f"Physicians have worked on it: {done}."))
    with st.form(f"withdraw_{number}", border=False, enter_to_submit=False):
        why = st.text_input("Why", key=f"withdraw_why_{number}", max_chars=MAX_REASON)
        if st.form_submit_button("Withdraw this import", icon=":material/undo:"):
            common.act(mending.withdraw, number, reason=why, actor=viewer)


def _bring_back(viewer: Viewer, file: str, number: int, effect: Effect) -> None:
    st.html(html.notice(f"With {file} these come back: {_words(effect)}."))
    if st.button("Restore this import", icon=":material/redo:", key=f"restore_{number}"):
        common.act(mending.restore, number, actor=viewer)


def _names(viewer: Viewer) -> None:
    known = common.read("names")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("What", list(WORDS), format_func=WORDS.__getitem__, key="mend_kind")
        was = st.selectbox("Name now", known[kind], key=f"mend_was_{kind}", placeholder="none yet")
        name = st.text_input("New name", key="mend_name", max_chars=MAX_NAME).strip()
        is_there = name in known[kind] and name != was
        label = "Merge the two" if is_there else "Change the name"
        go = st.button(label, key="mend_rename", disabled=was is None or not name or name == was)
    if is_there:
        st.html(html.notice(f"{name} is in this study already. Merging says that both are the same."))
    if go and was is not None:
        common.act(rename, kind, was, name, merge=is_there, actor=viewer)
    changed = common.read("changed names")
    if not changed.empty:
        called = [f"{WORDS[Kind(row.kind)]} {row.first_name}, now {row.name}" for row in changed.itertuples()]
        with st.container(horizontal=True, vertical_alignment="bottom"):
            place = st.selectbox("Changed", range(len(called)), format_func=called.__getitem__, key="mend_changed")
            if st.button("Restore the first name", key="mend_name_back"):
                row = changed.iloc[place]
                common.act(take_back, Kind(row["kind"]), row["first_name"], actor=viewer)
    either = "Files that come later may use either name. The audit trail and the exports' manifest keep both."
    st.html(html.quiet(either))

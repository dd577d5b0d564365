"""What the study states that it analyses, and the versions in which it was frozen: a tab of the Study page."""

from typing import Any

import streamlit as st

from evalcore.study import acting, analysis, contents, freezing
from evalcore.study.analysis import CLAIM_WORDS, MARGINS, PHYSICIANS_WORDS, WIDEST, Analysis, StatedAnalysis
from evalcore.study.policies import check_can_freeze, check_can_state_analysis, reason
from evalcore.study.schema import Viewer
from pages.shared import common, glossary, html, models_choice

USUAL_DATA, USUAL_JUDGE, NO_MODEL = "the judged one with most responses", "the one with most labels", "none"
DRAWN = "study_analysis_drawn"
CHECKBOXES = {
    "settled": "Adjudicated labels in place of the readers' votes",
    "weighted": "Weighted to the full benchmark's themes",
}


def show(viewer: Viewer, hidden: frozenset[int]) -> None:
    """The statement in force, the form for the next one, and the earlier ones."""
    st.session_state.setdefault(DRAWN, 0)
    versions = common.ask(contents.stated_analyses)
    current = versions[0] if versions else None
    st.subheader("The stated analysis", anchor=False, help=glossary.helps("corrected score", "claim, reach"))
    if current is None:
        words = (
            "Nothing is stated yet, so every choice is the usual one. State the analysis before physicians read: "
            "a margin that was chosen after the reads were seen proves nothing."
        )
        st.html(html.notice(words))
    else:
        _said(current)
    if why_not := reason(check_can_state_analysis, viewer):
        st.html(html.notice(why_not))
    _form(viewer, hidden, Analysis() if current is None else current.spec, disabled=bool(why_not))
    if len(versions) > 1:
        st.subheader("Earlier versions", anchor=False)
        for version in versions[1:]:
            _said(version)
    foot = (
        "Models, Triage, compare, the methods and the bundle follow the newest version. A version is never "
        "changed; each keeps how many blind first reads of items existed when it was stated. Controls on Models "
        "look at other choices, and say so there. The widest claim: new examples like these and physicians in "
        "general, where at least 3 effective readers have read; else these physicians. Margin: by how much the "
        "first model may be worse and still count as not worse (non-inferior), or either differ and still count "
        "as alike (equivalent)."
    )
    st.html(html.foot(foot))


def _said(stated: StatedAnalysis) -> None:
    st.html(html.quiet(f"Version {stated.version}, {analysis.when_words(stated)}, by {stated.stated_by}"))
    st.html(html.items(f"{name}: {value}" for name, value in analysis.words(stated.spec).items()))


def _form(viewer: Viewer, hidden: frozenset[int], spec: Analysis, *, disabled: bool) -> None:
    st.subheader("State the analysis", anchor=False)
    known = models_choice.evaluations(viewer)
    judged = known.loc[known["judges"].map(len).gt(0)]
    judges = list(dict.fromkeys(judge for names in judged["judges"] for judge in names))
    subsets = [name for name in common.read("choices")["subset"] if name != models_choice.WHOLE]
    models = list(common.read("models", hidden))

    def widget(name: str) -> dict[str, Any]:
        return {"key": f"analysis_{name}_{st.session_state[DRAWN]}", "disabled": disabled}

    def one_of(label: str, options: list[Any], usual: str, value: Any, words: Any = None) -> Any:
        every, named = [None, *options], {None: usual} | (words or {})
        place = every.index(value) if value in every else 0
        return st.selectbox(label, every, place, format_func=lambda option: named.get(option, option), **widget(label))

    with st.form("state analysis", border=False):
        first, second, third = st.columns(3)
        with first:
            evaluation = one_of("Data set", list(judged["evaluation"]), USUAL_DATA, spec.evaluation)
            subset = one_of("Examples", subsets, "all", spec.subset)
            before = [judge for judge in spec.judges if judge in judges]
            chosen = st.multiselect("Judges", judges, before, placeholder=USUAL_JUDGE, **widget("judges"))
        with second:
            claim = one_of("Holds for", list(CLAIM_WORDS), WIDEST, spec.claim, CLAIM_WORDS)
            physicians = one_of("As read by", list(PHYSICIANS_WORDS), WIDEST, spec.physicians, PHYSICIANS_WORDS)
            boxes = CHECKBOXES.items()
            settled, weighted = (st.checkbox(label, value=getattr(spec, name), **widget(name)) for name, label in boxes)
        with third:
            one = one_of("Primary comparison: first model", models, NO_MODEL, spec.primary[0] if spec.primary else None)
            other = one_of("With", models, NO_MODEL, spec.primary[1] if spec.primary else None)
            margins = {
                name: st.number_input(
                    f"Margin {words}", 0.0, 1.0, getattr(spec, name), step=0.01, placeholder="none", **widget(name)
                )
                for name, words in MARGINS.items()
            }
        if st.form_submit_button("State the analysis", type="primary", icon=":material/edit_note:", disabled=disabled):
            primary = None if one is None and other is None else (one or NO_MODEL, other or NO_MODEL)
            of = {"evaluation": evaluation, "judges": tuple(chosen), "subset": subset, "primary": primary}
            held = {"claim": claim, "physicians": physicians, "settled": settled, "weighted": weighted}
            _state(viewer, Analysis(**of, **held, **margins))


def _state(viewer: Viewer, stated: Analysis) -> None:
    with common.shown_errors():
        version = acting.state_analysis(common.engine(), stated, actor=viewer)
        if version is None:
            st.html(html.notice("This analysis is already stated; nothing was written."))
            return
        st.session_state[DRAWN] += 1
        st.rerun()


SAYS = (
    "A frozen study can be read, shown and exported, and nothing in it can be changed. Every export, the methods and "
    "the bundle carry the last hash of its audit trail and the stated analysis. Still recorded: who is let in, who "
    "came, and who saw or exported what."
)


def freeze(viewer: Viewer) -> None:
    """The versions, and what a lead may do."""
    st.subheader("Freeze the study", anchor=False)
    found = common.ask(freezing.versions)
    if found:
        st.html(html.items(freezing.sentences(found)))
    st.html(html.quiet(SAYS))
    why_not = reason(check_can_freeze, viewer)
    if why_not:
        st.html(html.notice(why_not))
        return
    if not found or found[-1].reopened_at is not None:
        sure = st.checkbox("From now on nobody can change anything in this study", key="freeze_sure")
        if st.button("Freeze", key="freeze", icon=":material/ac_unit:", disabled=not sure):
            common.act(freezing.freeze, actor=viewer)
        return
    with (
        st.form("amend study", border=False, enter_to_submit=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        name = st.text_input("Name of the amendment", key="amend_name", max_chars=freezing.MAX_NAME)
        because = st.text_input("Reason", key="amend_reason", max_chars=freezing.MAX_REASON)
        pressed = st.form_submit_button("Open again", key="amend_go")
    if pressed:
        common.act(freezing.amend, name or "", because or "", actor=viewer)

"""The Plan tab: what is to be known and how exactly, how much has to be read for it, and the drawing of it."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from evalcore.planning import acts as planning_acts, words
from evalcore.planning.pilot_estimates import Target, options
from evalcore.planning.sample_size import DESIGNS, IMPORTANCE, UNIFORM, Answer, answer, curve
from evalcore.planning.words import narrowing
from evalcore.reading.assigning import MAX_SEED, READERS_EACH, Choice
from evalcore.rubric.data import RubricData
from evalcore.rubric.drawings import Goal
from evalcore.rubric.results import evaluations
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.db import reading
from evalcore.study.policies import check_can_assign, reason
from evalcore.study.schema import Ask, Claim, Physicians, Viewer
from pages.shared import common, html, tables, theme
from pages.shared.models_choice import CLAIMS, READERS
from pages.study import assigning

GOALS = {
    Goal.SCORE: "A model's score",
    Goal.DIFFERENCE: "The difference between two models",
    Goal.JUDGE_ERROR: "How often a judge is wrong",
}
MOST_UNITS = 1_000_000
POINTS, PERCENT = (0.03, 0.005, 0.5, 0.005, "%.3f"), (3.0, 0.5, 50.0, 0.5, "%.1f")
"""Of the field "within": what stands there first, the least, the most, the step, the format."""
PURPOSE = (
    "How many more responses physicians must read until a number is exact enough. They are drawn and assigned here."
)
NO_JUDGE = "Nothing can be planned yet: no judge has labelled a response that may be shown to you. Begin with a file of results."


class Planned(NamedTuple):
    """What is shown for one target."""

    answer: Answer
    why: str
    easier: str
    seconds: float | None


@st.cache_data(max_entries=16, show_spinner="Working out how much has to be read")
def _planned(
    study: Hashable,  # noqa: ARG001 - the key
    target: Target,
    held: tuple[Claim | None, Physicians | None],
    n: int,
    _viewer: Viewer,
) -> Planned:
    known, (claim, physicians) = common.rubric_data(_viewer), held
    with reading(common.engine()) as session:
        taken, seconds = planning_acts.taken(session), planning_acts.seconds_each(session)
        stated = contents.stated_analysis(session)
    spec = stated.spec if stated else None
    target, why = planning_acts.claimed(known, target, spec=spec, claim=claim, physicians=physicians)
    found = answer(known, target, taken=taken, n_each=n)
    easier = ""
    if target.goal is Goal.DIFFERENCE and any(design.reachable for design in found.designs.values()):
        powered = planning_acts.powered(target, planning_acts.POWER)
        easier = words.finding(answer(known, powered, taken=taken, n_each=n))
    return Planned(found, why, easier, seconds)


def show(viewer: Viewer) -> None:
    """The form, the answer, and the drawing."""
    st.html(html.quiet(PURPOSE))
    known = common.rubric_data(viewer)
    parts = evaluations(known)
    judged = parts.loc[parts["judges"].map(len).gt(0)]
    if judged.empty:
        st.html(html.notice(NO_JUDGE))
        look: dict[str, Any] = {"icon": ":material/database:", "type": "tertiary", "key": "plan_import"}
        st.button("Import a file", on_click=st.session_state.update, args=({"study_tab": "Import"},), **look)
        return
    target, n_readers = _asked(known, judged)
    if target is None:
        return
    held = (None, None) if target.goal is Goal.JUDGE_ERROR else _held_for()
    study = common.location(), common.version(), common.blind(viewer)
    planned = _planned(study, target, held, n_readers, viewer)
    found = planned.answer
    st.html(html.finding(words.finding(found)))
    if planned.why:
        st.html(html.quiet(planned.why))
    if not found.n_units:
        return
    _answer(planned, n_readers)
    _claims(found)
    _components(planned)
    _draw(viewer, found, n_readers)
    st.html(html.foot(FOOT))


FOOT = (
    "Widths are half of the expected 95 % interval, for the claim that is named; of a judge's errors, over all that "
    "it has labelled. For physicians in general they allow for how far those who have read differ. They follow from "
    "how far physicians' votes were from what the judges' labels let expect, and how alike the errors on one response "
    "were. Whole responses are drawn, for a difference both models' responses to the same examples. By importance a "
    "response is the more likely drawn the more its criteria move the score and the more the judges of the study, or "
    "one that was asked several times, disagree on them; no probability is below a fifth of the mean. While little is "
    "read, widths lean to the wide side; the parts of the uncertainty are as measured, by the method of moments, and "
    "rough with few physicians. Every drawing keeps its seed and its probabilities."
)


def _asked(known: RubricData, judged: pd.DataFrame) -> tuple[Target | None, int]:
    goal = st.segmented_control(
        "Target", list(GOALS), default=Goal.SCORE, required=True, format_func=GOALS.__getitem__, key="plan_goal"
    ) or Goal.SCORE  # fmt: skip
    is_error = goal is Goal.JUDGE_ERROR
    with st.container(horizontal=True, vertical_alignment="bottom"):
        evaluation = st.selectbox("Data set", list(judged["evaluation"]), key="plan_data", width=180)
        row = judged.loc[judged["evaluation"].eq(evaluation)].iloc[0]
        inside = known.items["evaluation"].eq(evaluation)
        names = sorted(known.items.loc[inside, "model"].unique())
        labels = {Goal.SCORE: ("Model",), Goal.DIFFERENCE: ("First model", "Second model")}.get(goal, ())
        models = [
            st.selectbox(label, names, index=min(place, len(names) - 1), key=f"plan_model_{place}", width=160)
            for place, label in enumerate(labels)
        ]
        if is_error:
            judges = [st.selectbox("Judge", row["judges"], key="plan_judge", width=220)]
        else:
            judges = st.multiselect("Judges", row["judges"], default=row["judges"][:1], key="plan_judges", width=200)
        first, least, most, step, form = PERCENT if is_error else POINTS
        label, width = ("Within ± percentage points", 190) if is_error else ("Within ±", 140)
        key = f"plan_within_{'error' if is_error else 'score'}"
        within = st.number_input(label, least, most, first, step, form, key=key, width=width)
        n_readers = st.number_input("Readers per response", 1, None, READERS_EACH, 1, key="plan_readers", width=140)
    with common.shown_errors():
        share = within / 100 if is_error else within
        target = planning_acts.target(goal, share, models, known, evaluation=evaluation, judges=judges)
        return target, int(n_readers)
    return None, int(n_readers)


def _held_for() -> tuple[Claim | None, Physicians | None]:
    usual = {"": "as stated, else the widest possible"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        claim, physicians = (
            st.selectbox(label, ["", *filter(None, words)], key=key, width=300, format_func=(usual | words).__getitem__)
            for label, words, key in (("Holds for", CLAIMS, "plan_claim"), ("As read by", READERS, "plan_physicians"))
        )
    return Claim(claim) if claim else None, Physicians(physicians) if physicians else None


def _answer(planned: Planned, n_readers: int) -> None:
    found = planned.answer
    target = found.target
    rows = list(found.designs.values())
    if any(row.n_units for row in rows):
        times = [words.hours_short(planning_acts.hours(row.n_items, n_readers, planned.seconds)) for row in rows]
        columns: dict[str, Any] = {"Responses are": [words.DESIGN_WORDS[row.design] for row in rows]}
        if target.goal is Goal.DIFFERENCE:
            columns["Further examples"] = [row.n_units for row in rows]
        same = f"95 % interval with {words.counted_units(target, rows[0].n_same)}"
        columns |= {
            "Further responses": [row.n_responses for row in rows],
            "Criteria": [row.n_items for row in rows],
            "Hours of reading": times,
            "95 % interval then": [words.width_words(target, row.half_width) for row in rows],
            same: [words.width_words(target, row.half_width_same) for row in rows],
        }
        tables.show(columns, key="plan_designs", alt="How much has to be read, by how it is drawn")
    lines = [words.basis_words(found), words.so_far_words(found), words.disagreement_words(found), planned.easier]
    lines.append(words.detectable_words(found, planning_acts.POWER))
    if n_items := found.designs[IMPORTANCE].n_items:
        hours = planning_acts.hours(n_items, n_readers, planned.seconds)
        lines.append(words.hours_words(hours, n_readers, planned.seconds))
    st.html(html.items(filter(None, lines)))
    table = curve(found)
    if not table.empty:
        form = ".1%" if target.goal is Goal.JUDGE_ERROR else ".3f"
        axes = {"units": words.units_words(target), "axis": "Half of the 95 % interval", "tick_format": form}
        figure = narrowing(table, within=target.half_width, **axes)
        alt = "How the interval narrows as more is read, drawn with equal chances and by importance"
        theme.figure(figure, key="plan_curve", alt=alt)


def _claims(found: Answer) -> None:
    if found.claims.empty:
        return
    claims, target, n = found.claims, found.target, found.designs[UNIFORM].n_units
    held = zip(claims["claim"], claims["physicians"], strict=True)
    st.subheader("Claims of the same reads", anchor=False)
    then = f"With {words.counted_units(target, n, 'further')}"
    columns = {
        "Claim of the 95 % interval": [words.CLAIM_WORDS[Claim(claim), Physicians(who)] for claim, who in held],
        "Expected now": [words.width_words(target, width) for width in claims["half_width_now"]],
        then: [words.width_words(target, width) for width in claims["half_width"]],
    }
    tables.show(columns, key="plan_claims", alt="Expected interval by claim and population of physicians")


def _components(planned: Planned) -> None:
    found, target = planned.answer, planned.answer.target
    if target.goal is Goal.JUDGE_ERROR:
        return
    st.subheader("Sources of uncertainty", anchor=False)
    st.html(html.quiet(words.components_words(found)))
    parts = found.components
    if not parts.is_known:
        return
    alt = "Parts of the standard error on new examples, for physicians in general"
    tables.show(words.components_table(parts), key="plan_components", alt=alt)
    n_more, amount = planning_acts.next_reads(found, planned.seconds)
    table = options(parts, target, n_more=n_more)
    st.html(html.finding(words.options_words(table, target, amount)))
    columns = {
        "Spent on": table["option"].map(words.OPTION_WORDS),
        "Further reads of a response": table["n_reads"],
        "Responses read then": table["n_units"],
        "Physicians": table["n_readers"],
        "Standard error then": table["standard_error"].map(words.error_words),
    }
    alt = f"Expected standard error after {amount}, by what they are spent on"
    tables.show(columns, key="plan_options", alt=alt)


def _draw(viewer: Viewer, found: Answer, n_readers: int) -> None:
    st.subheader("Draw and assign", anchor=False)
    if why_not := reason(check_can_assign, viewer):
        st.html(html.notice(why_not))
        return
    if not found.variances.n_free:
        st.html(html.notice("Everything is read or assigned already."))
        return
    with st.container(horizontal=True):
        design = st.segmented_control(
            "How", list(DESIGNS), default=IMPORTANCE, required=True, format_func=words.DESIGN_WORDS.__getitem__, key="plan_design"
        ) or IMPORTANCE  # fmt: skip
        needed = found.designs[design].n_units
        n_units = st.number_input(
            f"How many {words.units_words(found.target)}", min_value=1, max_value=MOST_UNITS, value=max(needed, 1), step=1,
            key=f"plan_n_{design}_{needed}", width=190,
        )  # fmt: skip
        seed = st.number_input("Seed", 0, MAX_SEED, None, 1, placeholder="drawn", key="plan_seed", width=170)
    readers, specialty = assigning.who("plan")
    practice = assigning.practice_first("plan", viewer, Ask.RUBRIC)
    with st.container(horizontal=True):
        go = st.button("Draw and assign", type="primary", icon=":material/assignment_ind:", key="plan_assign")
        check = st.button("Check only", key="plan_check")
    if go or check:
        with common.shown_errors():
            plan = common.ask(planning_acts.draw, found.target, n_units=int(n_units), design=design, seed=seed)
            who: dict[str, Any] = {"readers": tuple(readers), "specialty": specialty, "n_readers": n_readers}
            choice = Choice(drawn=plan.drawn, seed=plan.seed, practice=practice, **who)
            criteria = counted(plan.n_items, "criterion", "criteria")
            assigning.assign_now(choice, viewer, dry_run=check, more=f" with {criteria}")

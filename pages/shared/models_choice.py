"""What the Models page is about: the choice in its row of controls, and the numbers of that part, which are kept."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from evalcore.errors import OverreadError
from evalcore.rubric import results
from evalcore.rubric.benchmark import Weighting, weighting_sentence
from evalcore.rubric.data import RubricData
from evalcore.rubric.results import Results
from evalcore.study import frames
from evalcore.study.analysis import PHYSICIANS_WORDS, Analysis
from evalcore.study.schema import REPEAT, Claim, Viewer
from pages.shared import common, filters, glossary, page_cache

_Made = TypeVar("_Made")
ALL = "all examples"
WHOLE = "oss_eval"  # the subset that every example of HealthBench belongs to: as a choice it would say nothing
WIDEST = "the widest possible"
CLAIMS = {None: WIDEST, Claim.BENCHMARK: "this benchmark", Claim.NEW_EXAMPLES: "new examples too"}
READERS: dict[Any, str] = {None: WIDEST, **PHYSICIANS_WORDS}
NO_LABELS = "No response of this part has a label by every chosen judge on every criterion. Choose other examples, or fewer judges."
PAGE = "models"
KEYS = ("models_show", "models_data", "models_subset", "models_first", "models_second")
SEED = 20
MAX_SEED = 999_999


def evaluations(viewer: Viewer) -> pd.DataFrame:
    """The data sets of the study, as `results.evaluations` gives them."""
    return page_cache.computed(results.evaluations, viewer, lambda: common.rubric_data(viewer))


def controls(known: pd.DataFrame, *, claims: bool) -> Analysis:
    """The row of controls, each kept in the address, from what the study states. Claim and physicians: None where nobody chose, or not `claims`."""
    judges_of = results.judges_of(known)
    statement = common.read("analysis")
    plan = Analysis() if statement is None else statement.spec
    subsets = [ALL, *(name for name in common.read("choices")["subset"] if name != WHOLE)]
    with st.container(horizontal=True, vertical_alignment="bottom", key="models_controls"):
        evaluation = one_of("Data set", list(judges_of), "models_data", plan.evaluation, width=180)
        subset = one_of("Examples", subsets, "models_subset", plan.subset, format_func=filters.plain, width=180)
        usual = judges_of[evaluation]
        usual_judges = [judge for judge in plan.judges if judge in usual] or usual[:1]
        placeholder = f"{usual[0]} (the judge with most labels)"
        look: dict[str, Any] = {**page_cache.KEPT, "width": 205, "placeholder": placeholder}
        judges = st.multiselect("Judges", usual, usual_judges, key="models_judges", **look)
        claim = physicians = None
        if claims:
            held: dict[str, Any] = {"width": 170, "help": glossary.helps("claim, reach")}
            claim = one_of("Holds for", list(CLAIMS), "models_claim", plan.claim, format_func=CLAIMS.get, **held)
            held = {"width": 180, "format_func": READERS.get}
            physicians = one_of("As read by", list(READERS), "models_readers", plan.physicians, **held)
    chosen = {
        "evaluation": evaluation,
        "judges": tuple(judges or usual_judges),
        "subset": subset if subset != ALL else None,
    }
    return replace(plan, **chosen, claim=claim, physicians=physicians, weighted=False)


one_of = partial(page_cache.one_of, PAGE)


def weighted(viewer: Viewer, chosen: Analysis, *, weighs: bool) -> tuple[Analysis, str]:
    """The switch that weights examples to the full benchmark's themes, where scores can be; what it does, in words."""
    weights: Weighting | None = about(viewer, chosen)["weighting"] if weighs else None
    if weights is None:
        return chosen, ""
    statement = common.read("analysis")
    usual = statement is not None and statement.spec.weighted
    on = st.toggle("Weighted to the full benchmark's themes", usual, key="models_weighted", **page_cache.KEPT)
    return replace(chosen, weighted=on), weighting_sentence(weights) if on else ""


def numbers(viewer: Viewer, chosen: Analysis) -> Results:
    """All numbers of the part after correction: what Scores and Who is better both show."""
    return computed(results.results, viewer, chosen)


def usual(viewer: Viewer) -> Analysis | None:
    """The analysis that the study states, else the usual choices; None: nothing is judged, or the stated part waits for the viewer's own reads."""
    stated = common.read("analysis")
    try:
        return results.with_defaults(Analysis() if stated is None else stated.spec, evaluations(viewer))
    except OverreadError:
        return None


def ahead(viewer: Viewer) -> None:
    """What Overview and Models compute where nobody has chosen anything, kept until somebody looks."""
    if (chosen := usual(viewer)) is not None:
        about(viewer, chosen)
        numbers(viewer, chosen)


def analysis_words(viewer: Viewer, of_part: Results) -> str:
    """Whether these are the numbers that the study states, in words."""
    statement = common.read("analysis")
    if statement is None:
        return results.stated_words(None, ())
    known = evaluations(viewer)
    try:
        results.with_defaults(statement.spec, known)
    except OverreadError:  # its data set waits for the viewer's own reads
        return f"The stated analysis (version {statement.version}) is about a part that you may not see yet."
    return results.stated_words(statement, results.departures(of_part, statement.spec, known))


def about(viewer: Viewer, chosen: Analysis) -> dict[str, Any]:
    """What the page must know of a part: weighting, is_labelled (each judge labelled some of it), models by name."""
    plain = replace(chosen, claim=None, physicians=None, weighted=False)  # the same whatever intervals are to hold for
    return computed(_about, viewer, plain)


def _about(rubric_data: RubricData, chosen: Analysis) -> dict[str, Any]:
    labels = rubric_data.judged[list(chosen.judges)].notna()
    return {
        "weighting": results.common_weighting(rubric_data),
        "is_labelled": not labels.empty and bool(labels.any().all()),
        "models": [str(name) for name in rubric_data.items["model"].cat.categories],
    }


leave = partial(page_cache.leave, PAGE, KEYS)


def computed(make: Callable[..., _Made], viewer: Viewer, chosen: Analysis, *arguments: Any) -> _Made:
    """`make(rubric_data, chosen, *arguments)` of the chosen part of the study, as `page_cache.computed` keeps it."""

    def part() -> RubricData:
        return results.part_of(common.rubric_data(viewer), chosen, common.ask(results.example_ids, chosen))

    return page_cache.computed(make, viewer, part, chosen, *arguments)


def source_words(chosen: Analysis) -> str:
    """The judges with their prompt versions, and which criteria enter, in words."""
    known = common.ask(frames.raters)
    known = known.loc[known["rater_kind"].eq("judge") & ~known["prompt_version"].str.contains(REPEAT, regex=False)]
    versions = []
    for judge in chosen.judges:
        prompts = [str(word) for word in known.loc[known["rater"].eq(judge), "prompt_version"].dropna() if word]
        version = f"prompt version {', '.join(prompts)}" if prompts else "prompt version not stated"
        versions.append(f"{judge} ({version})")
    is_consensus = chosen.subset == results.CONSENSUS
    criteria = "criteria that physicians agreed on beforehand (level cluster)" if is_consensus else "all criteria"
    return f"Judge: {', '.join(versions)}. Criteria: {criteria}."

"""What the Models page is about: the choice in its row of controls, and the numbers of that part, which are kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.errors import OverreadError
from evalcore.rubric import parts
from evalcore.rubric.benchmark import Weighting, weighting_sentence
from evalcore.rubric.data import RubricData
from evalcore.rubric.results import Results, departures, results, stated_words
from evalcore.settings import settings
from evalcore.study import frames
from evalcore.study.analysis import Analysis, StatedAnalysis
from evalcore.study.db import reading
from evalcore.study.schema import REPEAT, Claim, Physicians, Viewer
from pages.shared import common, filters, page_cache

ALL = "all examples"
WHOLE = "oss_eval"
"""The subset that every example of HealthBench belongs to: as a choice it would say nothing."""
WIDEST = "the widest possible"
CLAIMS = {None: WIDEST, Claim.BENCHMARK: "this benchmark", Claim.NEW_EXAMPLES: "new examples too"}
READERS = {None: WIDEST, Physicians.THESE: "these physicians", Physicians.IN_GENERAL: "physicians in general"}
NO_LABELS = "No response of this part has a label by every chosen judge on every criterion. Choose other examples, or fewer judges."
PAGE = "models"
KEYS = ("models_show", "models_data", "models_subset", "models_first", "models_second")
SEED = 20
MAX_SEED = 999_999


@dataclass(frozen=True)
class Chosen:
    """The part of the study that is looked at, and what its intervals are to hold for: the stated analysis, unless a control says otherwise.

    Attributes:
        spec: With data set and judges; claim and physicians None: by default.
    """

    spec: Analysis

    @property
    def evaluation(self) -> str:
        """The data set."""
        return self.spec.evaluation or ""

    @property
    def subset(self) -> str:
        """The examples."""
        return self.spec.subset or ALL

    @property
    def judges(self) -> tuple[str, ...]:
        """Whose labels are corrected."""
        return self.spec.judges

    @property
    def judge(self) -> str:
        """The judge, or the judges as one, in words."""
        return parts.jury_name(self.judges)

    @property
    def claim(self) -> Claim:
        """What the intervals are to hold for."""
        return self.spec.claim or Claim.NEW_EXAMPLES

    @property
    def physicians(self) -> Physicians:
        """Whose judgement they are to hold for."""
        return self.spec.physicians or Physicians.THESE

    @property
    def weighted(self) -> bool:
        """Whether examples are weighted to the themes of the full benchmark."""
        return self.spec.weighted

    @property
    def criteria(self) -> str:
        """Which criteria enter, in words."""
        return (
            "criteria that physicians agreed on beforehand (level cluster)"
            if self.subset == parts.CONSENSUS
            else "all criteria"
        )


@st.cache_data(max_entries=8, show_spinner=False)
def _evaluations(location: str, version: Any, hidden: frozenset[int], _viewer: Viewer) -> pd.DataFrame:  # noqa: ARG001 - the key
    return parts.evaluations(common.rubric_data(_viewer))


def evaluations(viewer: Viewer) -> pd.DataFrame:
    """The data sets of the study, as `parts.evaluations` gives them."""
    return _evaluations(settings().db, common.version(), common.blind(viewer), viewer)


def stated() -> StatedAnalysis | None:
    """The statement in force."""
    found: StatedAnalysis | None = common.read("analysis")
    return found


def controls(known: pd.DataFrame, *, claims: bool) -> Chosen:
    """The row of controls; each is kept in the address, and begins as the study states it.

    Args:
        known: As `evaluations` gives them, at least one of them judged.
        claims: The section shows corrected scores, so that it matters what they are to hold for.
    """
    judged = known.loc[known["judges"].map(len).gt(0)]
    said = stated()
    plan = Analysis() if said is None else said.spec
    with st.container(horizontal=True, vertical_alignment="bottom", key="models_controls"):
        data_sets = list(judged["evaluation"])
        evaluation = st.selectbox(
            "Data set",
            data_sets,
            index=first("models_data", data_sets, _place(data_sets, plan.evaluation)),
            key="models_data",
            bind="query-params",
            persist_state="session",
            width=180,
        )
        row = judged.loc[judged["evaluation"].eq(evaluation)].iloc[0]
        subsets = [ALL, *(name for name in common.read("choices")["subset"] if name != WHOLE)]
        subset = st.selectbox(
            "Examples",
            subsets,
            index=first("models_subset", subsets, _place(subsets, plan.subset)),
            key="models_subset",
            bind="query-params",
            persist_state="session",
            format_func=filters.plain,
            width=180,
        )
        usual_judges = [judge for judge in plan.judges if judge in row["judges"]] or row["judges"][:1]
        judges = st.multiselect(
            "Judges", row["judges"], default=usual_judges, key="models_judges", bind="query-params", persist_state="session", width=205,
            placeholder=f"{row['judges'][0]} (the judge with most labels)",
        )  # fmt: skip
        claim, physicians = _held_for(plan) if claims else (None, None)
    spec = Analysis(
        evaluation=evaluation,
        judges=tuple(judges or usual_judges),
        subset=None if subset == ALL else subset,
        claim=claim,
        physicians=physicians,
        settled=plan.settled,
        primary=plan.primary,
        margin=plan.margin,
    )
    return Chosen(spec)


def _place(options: Sequence[str], wanted: str | None) -> int:
    return options.index(wanted) if wanted in options else 0


def _held_for(plan: Analysis) -> tuple[Claim | None, Physicians | None]:
    """What the intervals are to hold for."""
    claim: Claim | None = _one_of("Holds for", CLAIMS, "models_claim", plan.claim, width=170)
    physicians: Physicians | None = _one_of("As read by", READERS, "models_readers", plan.physicians, width=180)
    return claim, physicians


def _one_of(label: str, words: Mapping[Any, str], key: str, usual: Any, *, width: int) -> Any:
    return st.selectbox(
        label,
        list(words),
        index=list(words).index(usual),
        key=key,
        bind="query-params",
        persist_state="session",
        format_func=words.__getitem__,
        width=width,
    )


def weighted(viewer: Viewer, chosen: Chosen, *, weighs: bool) -> tuple[Chosen, str]:
    """The switch that weights examples to the full benchmark's themes, where they have such themes; and what the weights do, in words.

    Args:
        weighs: The section shows scores that can be weighted.
    """
    weights: Weighting | None = about(viewer, chosen)["weighting"] if weighs else None
    if weights is None:
        return chosen, ""
    said = stated()
    on = st.toggle(
        "Weighted to the full benchmark's themes",
        value=said is not None and said.spec.weighted,
        key="models_weighted",
        bind="query-params",
        persist_state="session",
    )
    return Chosen(replace(chosen.spec, weighted=on)), weighting_sentence(weights) if on else ""


def numbers(viewer: Viewer, chosen: Chosen) -> Results:
    """All numbers of the part after correction: what Scores and Who is better both show."""
    found: Results = computed(_numbers, viewer, chosen)
    return found


def _numbers(rubric_data: RubricData, chosen: Chosen) -> Results:
    return results(rubric_data, chosen.spec)


def analysis_words(viewer: Viewer, found: Results) -> str:
    """Whether these are the numbers that the study states, in words."""
    said = stated()
    if said is None:
        return stated_words(None, ())
    known = evaluations(viewer)
    try:
        parts.with_defaults(said.spec, known)
    except OverreadError:  # its data set waits for the viewer's own reads
        return f"The stated analysis (version {said.version}) is about a part that you may not see yet."
    return stated_words(said, departures(found, said.spec, known))


def about(viewer: Viewer, chosen: Chosen) -> dict[str, Any]:
    """What the page must know of a part before it draws a section; the same whatever the intervals are to hold for."""
    found: dict[str, Any] = computed(
        _about, viewer, Chosen(replace(chosen.spec, claim=None, physicians=None, weighted=False))
    )
    return found


def _about(rubric_data: RubricData, chosen: Chosen) -> dict[str, Any]:
    labels = rubric_data.judged[list(chosen.judges)].notna()
    return {
        "weighting": parts.common_weighting(rubric_data),
        "is_labelled": not labels.empty and bool(labels.any().all()),
        "models": [str(name) for name in rubric_data.items["model"].cat.categories],
    }


def correcting(rubric_data: RubricData, chosen: Chosen) -> dict[str, Any]:
    """Whose labels are corrected, by which reads, with which weights: what every statistic of corrected scores takes."""
    return {
        "judges": list(chosen.judges),
        "settled": chosen.spec.settled,
        "weights": parts.weights_of(rubric_data, chosen.spec),
    }


def leave() -> None:
    """Keep what is chosen, for the browser's way back."""
    page_cache.leave(PAGE, KEYS)


def first(key: str, options: Sequence[Any], usual: int = 0) -> int:
    """Which option a control begins with: the usual one; after the browser's way back from a conversation, the one that was chosen before."""
    return page_cache.first(PAGE, key, options, usual)


def taken(viewer: Viewer, chosen: Chosen) -> RubricData:
    """The part of the study that was chosen."""
    with reading(common.engine()) as session:
        example_ids = parts.example_ids(session, chosen.spec)
    return parts.part_of(common.rubric_data(viewer), chosen.spec, example_ids)


def computed(make: Callable[..., Any], viewer: Viewer, chosen: Chosen, *arguments: Any) -> Any:
    """What `make(rubric_data, chosen, *arguments)` gives for the chosen part, as `_kept.computed` keeps it."""
    return page_cache.computed(make, viewer, lambda: taken(viewer, chosen), chosen, *arguments)


def is_labelled(viewer: Viewer, chosen: Chosen) -> bool:
    """Whether the part holds anything, and each chosen judge has labelled some of it."""
    return bool(about(viewer, chosen)["is_labelled"])


def models_of(viewer: Viewer, chosen: Chosen) -> list[str]:
    """The models of the part, by name."""
    return list(about(viewer, chosen)["models"])


def models() -> list[str]:
    """All models of the study, so that each keeps its colour on every page."""
    return list(common.read("models"))


def versions(judges: Sequence[str]) -> str:
    """The judges with their prompt versions, in words."""
    with reading(common.engine()) as session:
        known = frames.raters(session)
    known = known.loc[known["rater_kind"].eq("judge") & ~known["prompt_version"].str.contains(REPEAT, regex=False)]
    said = []
    for judge in judges:
        prompts = [str(word) for word in known.loc[known["rater"].eq(judge), "prompt_version"].dropna() if word]
        said.append(
            f"{judge} (prompt version {', '.join(prompts)})" if prompts else f"{judge} (prompt version not stated)"
        )
    return ", ".join(said)

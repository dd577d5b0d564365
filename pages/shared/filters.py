"""The fields by which conversations are chosen, in the same words in every form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, READ_STATES, UNREAD, Filters
from evalcore.study.languages import LANGUAGES
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, TASK_TAGS, Acuity, Format, Label
from evalcore.triage.cases import Miss
from evalcore.triage.data import Kind
from pages.shared import common, page_cache

READS = {
    OVERRIDDEN: "differ from the judge",
    CONFLICTING: "differ from each other",
    READ: "have read",
    UNREAD: "have not read",
}
LABELS = {"met": "met", "not_met": "not met", "cannot_assess": "cannot assess"}
SIGNS = {"undesirable": "undesirable (negative)", "desirable": "desirable (positive)"}
KINDS = {
    Kind.CLEAR.value: "clear: one level",
    Kind.BOUNDARY.value: "boundary: either of two levels",
    Kind.AMBIGUOUS.value: "ambiguous: physicians do not agree",
}
MISSES = {Miss.UNDER.value: "too low: under-triage", Miss.OVER.value: "too high: over-triage"}
LEVELS = {level.value: level.value for level in Acuity if level is not Acuity.REMOVE}
LEVELS[Label.CANNOT_ASSESS.value] = "no level"
FORMATS = {Format.QA.value: "qa: asked for a level", Format.CONVERSATION.value: "conversation"}


def plain(word: str) -> str:
    """A tag as words."""
    return word.replace("_", " ")


SELECTS: Mapping[str, tuple[str, Sequence[str] | None, Callable[[str], str]]] = {
    "dataset": ("Data set", None, plain),
    "subset": ("Subset", None, str),
    "theme": ("Theme", None, plain),
    "category": ("Category", None, plain),
    "language": ("Language", None, lambda code: LANGUAGES.get(code, code)),
    "axis": ("Axis of the criterion", None, plain),
    "sign": ("Criterion", list(SIGNS), SIGNS.__getitem__),
    "model": ("Model", None, str),
    "judge": ("Judge", None, str),
    "label": ("The judge says", ["met", "not_met"], LABELS.__getitem__),
    "reads": ("Physicians", READ_STATES, READS.__getitem__),
    "source": ("Source of the case", None, str),
    "format": ("Asked as", list(FORMATS), FORMATS.__getitem__),
    "level": ("A judge reads the level", list(LEVELS), LEVELS.__getitem__),
    "use_case": ("Use case", None, plain),
    "type": ("Type of task", None, plain),
    "difficulty": ("Difficulty", None, plain),
    "specialty": ("Specialty of the task", None, plain),
    "kind": ("Kind of case", list(KINDS), KINDS.__getitem__),
    "miss": ("A model answers", list(MISSES), MISSES.__getitem__),
}
"""Of each field its label, its options (None: what the study holds), and how an option reads."""


@dataclass(frozen=True)
class Fields:
    """The fields of one form of filters. Models of `hidden` conversations, which wait for the viewer, are not named."""

    hidden: frozenset[int]
    form: str = ""
    in_address: bool = True
    disabled: bool = False

    def _named(self, key: str) -> dict[str, Any]:
        kept = page_cache.KEPT if self.in_address else {}
        return {"key": self.form + key, "disabled": self.disabled, **kept}

    def choose(self, *names: str, **labels: str) -> dict[str, str | None]:
        """What is chosen in some fields of `SELECTS`, drawn in a row; `labels`: those that differ here."""
        chosen = {}
        for name in names:
            label, options, shown = SELECTS[name]
            if name == "model":
                options = common.read("models", self.hidden)
            elif options is None:
                options = common.read("judges") if name == "judge" else common.read("choices")[name]
            how: dict[str, Any] = {"format_func": shown, "placeholder": "Any", **self._named(name)}
            chosen[name] = st.selectbox(labels.get(name, label), options, index=None, **how)
        return chosen

    def search(self) -> str:
        """Words that occur in the conversation or in what was said of it."""
        said: str | None = st.text_input(
            "Search", placeholder="Conversations, answers, criteria, explanations", width=340, **self._named("q")
        )
        return said or ""

    def judges_differ(self) -> bool:
        """Whether judges say different things."""
        return st.toggle("Judges disagree", **self._named("differ"))

    def of_cases(self, *names: str) -> dict[str, str | None]:
        """The fields that cases of triage alone have; nothing is drawn where the study has none."""
        return self._row(names if common.read("choices")["source"] else ())

    def of_tasks(self) -> dict[str, str | None]:
        """Likewise the fields of HealthBench Professional, by its tags."""
        return self._row(task_kinds())

    def _row(self, names: Sequence[str]) -> dict[str, str | None]:
        if not names:
            return {}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            return self.choose(*names)


def task_kinds() -> list[str]:
    """The tags of HealthBench Professional that the study holds some of."""
    offered = common.read("choices")
    return [kind for kind in TASK_TAGS if offered[kind]]


def points_of(sign: str | None, low: int = MIN_POINTS, high: int = MAX_POINTS) -> dict[str, int | None]:
    """From and to how many points a criterion of this sign has, within a range; None where that asks for nothing."""
    if sign == "undesirable":
        high = min(high, -1)
    elif sign == "desirable":
        low = max(low, 1)
    return {"points_from": None if low == MIN_POINTS else low, "points_to": None if high == MAX_POINTS else high}


def words(filters: Filters) -> list[str]:
    """The filters that are on, as short words."""
    low = MIN_POINTS if filters.points_from is None else filters.points_from
    high = MAX_POINTS if filters.points_to is None else filters.points_to
    named = (
        filters.search and f"“{filters.search}”",
        filters.theme and plain(filters.theme),
        filters.reads and f"physicians {READS[filters.reads]}",
        filters.dataset,
        filters.subset,
        filters.category and plain(filters.category),
        filters.language and LANGUAGES.get(filters.language, filters.language),
        filters.axis and plain(filters.axis),
        filters.model,
        filters.judge,
        filters.label and f"judge says {LABELS[filters.label]}",
        filters.judges_differ and "judges disagree",
        (filters.points_from, filters.points_to) != (None, None) and f"points {low} to {high}",
        filters.source and f"cases of {filters.source}",
        filters.format,
        filters.level and f"a judge reads {LEVELS[filters.level]}",
        *(plain(name) for kind in TASK_TAGS if (name := getattr(filters, kind))),
    )
    return [str(word) for word in named if word]

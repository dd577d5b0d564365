"""The fields by which conversations are chosen, in the same words in every form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from evalcore.study.browse import CONFLICTING, OVERRIDDEN, READ, READ_STATES, UNREAD, Filters
from evalcore.study.languages import LANGUAGES
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Acuity, Format, Label
from evalcore.triage.cases import Miss
from evalcore.triage.data import Kind
from pages.shared import common

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
LEVELS = {level.value: level.value for level in Acuity if level is not Acuity.REMOVE} | {
    Label.CANNOT_ASSESS.value: "no level"
}
"""What a judge may read out of a response to a case."""
FORMATS = {Format.QA.value: "qa: asked for a level", Format.CONVERSATION.value: "conversation"}


def plain(word: str) -> str:
    """A tag as words."""
    return word.replace("_", " ")


@dataclass(frozen=True)
class Fields:
    """The fields of one form of filters, in the same words everywhere.

    Attributes:
        hidden: Conversations that wait for the viewer's first read: their models are not named.
        form: Whose fields they are: the beginning of their keys.
        in_address: Whether what is chosen is kept in the address.
        disabled: Whether nothing can be chosen now.
    """

    hidden: frozenset[int]
    form: str = ""
    in_address: bool = True
    disabled: bool = False

    def _named(self, key: str) -> dict[str, Any]:
        kept = {"bind": "query-params", "persist_state": "session"} if self.in_address else {}
        return {"key": self.form + key, "disabled": self.disabled, **kept}

    def _select(self, key: str, label: str, options: Sequence[str], shown: Callable[[str], str] = plain) -> str | None:
        chosen: str | None = st.selectbox(
            label, options, index=None, format_func=shown, placeholder="Any", **self._named(key)
        )
        return chosen

    def _choice(self, key: str, label: str, shown: Callable[[str], str] = plain) -> str | None:
        return self._select(key, label, common.read("choices")[key], shown)

    def search(self) -> str:
        """Words that occur in the conversation or in what was said of it."""
        said: str | None = st.text_input(
            "Search", placeholder="Conversations, answers, criteria, explanations", width=340, **self._named("q")
        )
        return said or ""

    def dataset(self) -> str | None:
        """The data set."""
        return self._choice("dataset", "Data set")

    def subset(self) -> str | None:
        """The part of a data set."""
        return self._choice("subset", "Subset", str)

    def theme(self) -> str | None:
        """The theme."""
        return self._choice("theme", "Theme")

    def category(self) -> str | None:
        """The category that physicians agreed on."""
        return self._choice("category", "Category")

    def language(self) -> str | None:
        """The language."""
        return self._choice("language", "Language", lambda code: LANGUAGES.get(code, code))

    def axis(self) -> str | None:
        """The axis of a criterion."""
        return self._choice("axis", "Axis of the criterion")

    def sign(self) -> str | None:
        """The sign of a criterion's points: a key of `SIGNS`."""
        return self._select("sign", "Criterion", list(SIGNS), SIGNS.__getitem__)

    def model(self) -> str | None:
        """The model that answered."""
        return self._select("model", "Model", common.read("models", self.hidden), str)

    def judge(self) -> str | None:
        """The judge that labelled."""
        return self._select("judge", "Judge", common.read("judges"), str)

    def label(self) -> str | None:
        """What the judge says."""
        return self._select("label", "The judge says", ["met", "not_met"], LABELS.__getitem__)

    def judges_differ(self) -> bool:
        """Whether judges say different things."""
        return st.toggle("Judges disagree", **self._named("differ"))

    def has_cases(self) -> bool:
        """Whether the study has cases of triage, so that it makes sense to ask for them."""
        return bool(common.read("choices")["source"])

    def source(self) -> str | None:
        """The source of a case of triage."""
        return self._choice("source", "Source of the case", str)

    def format(self) -> str | None:
        """How models were asked about a case."""
        return self._select("format", "Asked as", list(FORMATS), FORMATS.__getitem__)

    def level(self) -> str | None:
        """The level of care that a judge reads out of a response."""
        return self._select("level", "A judge reads the level", list(LEVELS), LEVELS.__getitem__)

    def kind(self) -> str | None:
        """What a case can be asked about: a key of `KINDS`."""
        return self._select("kind", "Kind of case", list(KINDS), KINDS.__getitem__)

    def miss(self) -> str | None:
        """Which way a model answers a case wrongly: a key of `MISSES`."""
        return self._select("miss", "A model answers", list(MISSES), MISSES.__getitem__)

    def of_cases(self) -> Filters:
        """The filters that cases of triage alone have; nothing is drawn where the study has none."""
        if not self.has_cases():
            return Filters()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            return Filters(source=self.source(), format=self.format(), level=self.level())

    def reads(self, label: str) -> str | None:
        """What physicians have done."""
        return self._select("reads", label, READ_STATES, READS.__getitem__)


def points_of(sign: str | None, low: int = MIN_POINTS, high: int = MAX_POINTS) -> tuple[int | None, int | None]:
    """From and to how many points a criterion of this sign has, within a range; None where that asks for nothing."""
    if sign == "undesirable":
        high = min(high, -1)
    elif sign == "desirable":
        low = max(low, 1)
    return (None if low == MIN_POINTS else low), (None if high == MAX_POINTS else high)


def words(filters: Filters) -> list[str]:
    """The filters that are on, as short words."""
    named = {
        "search": filters.search and f"“{filters.search}”",
        "theme": filters.theme and plain(filters.theme),
        "reads": filters.reads and f"physicians {READS[filters.reads]}",
        "dataset": filters.dataset,
        "subset": filters.subset,
        "category": filters.category and plain(filters.category),
        "language": filters.language and LANGUAGES.get(filters.language, filters.language),
        "axis": filters.axis and plain(filters.axis),
        "model": filters.model,
        "judge": filters.judge,
        "label": filters.label and f"judge says {LABELS[filters.label]}",
        "differ": filters.judges_differ and "judges disagree",
        "points": _points_words(filters),
        "source": filters.source and f"cases of {filters.source}",
        "format": filters.format,
        "level": filters.level and f"a judge reads {LEVELS[filters.level]}",
    }
    return [str(word) for word in named.values() if word]


def _points_words(filters: Filters) -> str:
    if filters.points_from is None and filters.points_to is None:
        return ""
    low = MIN_POINTS if filters.points_from is None else filters.points_from
    high = MAX_POINTS if filters.points_to is None else filters.points_to
    return f"points {low} to {high}"

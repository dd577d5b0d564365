"""What the sections of the Triage page share: the choice in the row of controls, and the numbers of that choice, which are kept."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.settings import settings
from evalcore.study import contents
from evalcore.study.analysis import Analysis
from evalcore.study.db import reading
from evalcore.study.schema import Format, Viewer
from evalcore.triage import setting_queries
from evalcore.triage.bases import PUBLISHED
from evalcore.triage.data import Kind, TriageData
from evalcore.triage.predictions import JURY, joined, judges_by_format, members, predictions, with_jury
from evalcore.triage.reads import with_physicians_gold
from evalcore.triage.settings import TriageSettings
from pages.shared import common, page_cache

PAGE = "triage"
KEYS = (
    "triage_show", "triage_qa_judge", "triage_conversation_judge", "triage_gold", "triage_basis", "triage_model", "triage_cell", "triage_of_model",
    "triage_of_format", "triage_by", "triage_beside", "triage_matrix_of", "triage_outside", "triage_claim", "triage_readers_of",
)  # fmt: skip
FORMATS = {Format.QA.value: "qa", Format.CONVERSATION.value: "conversation"}
"""Formats in words, in the order in which they stand beside one another."""
CASE_COLUMNS = ("gold", "kind", "source", "strength", "language")
"""What every prediction knows of its case."""


class Gold(StrEnum):
    """Whose level counts as the one that a case needs."""

    FILE = "as published"
    PHYSICIANS = "as read by physicians here"


@dataclass(frozen=True)
class Chosen:
    """What is looked at.

    Attributes:
        judges: By format, who is taken at their word for the level of an answer: pairs, so that they can be a key.
    """

    judges: tuple[tuple[str, str], ...]
    gold: Gold = Gold.FILE

    @property
    def judge_words(self) -> str:
        """Who reads the levels, in words."""
        names = dict(self.judges)
        said = [f"{FORMATS[word]} by {names[word]}" for word in FORMATS if word in names]
        return " and ".join(said) or "by nobody yet"


@dataclass(frozen=True)
class Read:
    """The cases with the gold that was chosen, and what every model says of them.

    Attributes:
        found: Predictions with the columns `CASE_COLUMNS` of their cases.
    """

    triage_data: TriageData
    found: pd.DataFrame


Made = Callable[..., Any]
Key = tuple[int, int]


@st.cache_resource(max_entries=4, show_spinner=False)
def _predicted(
    location: str,  # noqa: ARG001 - the key
    judged_version: Key,  # noqa: ARG001 - the key
    hidden: frozenset[int],  # noqa: ARG001 - the key
    judges: tuple[tuple[str, str], ...],
    _triaged: TriageData,
) -> pd.DataFrame:
    """Physicians' reads change no prediction: what judges said is counted once, and kept while physicians read."""
    return predictions(_triaged, dict(judges))


@st.cache_resource(max_entries=2, show_spinner=False)
def _jury(
    location: str,  # noqa: ARG001 - the key
    judged_version: Key,  # noqa: ARG001 - the key
    hidden: frozenset[int],  # noqa: ARG001 - the key
    _triaged: TriageData,
) -> tuple[pd.DataFrame, frozenset[str]]:
    """`levels` and `juries` with what most judges say: kept while physicians read, as `_predicted`."""
    found = with_jury(_triaged)
    return found.levels, found.juries


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(
    location: str,
    version: Key,  # noqa: ARG001 - the key
    hidden: frozenset[int],
    chosen: Chosen,
    _viewer: Viewer,
) -> Read:
    triage_data = common.triage_data(_viewer)
    judged_version = common.judged_version()
    if JURY in dict(chosen.judges).values():
        levels, juries = _jury(location, judged_version, hidden, triage_data)
        triage_data = replace(triage_data, levels=levels, juries=juries)
    triage_data = replace(triage_data, published=_shown(triage_data.published))
    found = _predicted(location, judged_version, hidden, chosen.judges, triage_data)
    if chosen.gold is Gold.PHYSICIANS:
        triage_data = with_physicians_gold(triage_data)
    return Read(triage_data, joined(triage_data, found, CASE_COLUMNS))


def read(viewer: Viewer, chosen: Chosen) -> Read:
    """The cases and predictions that were chosen. They are shared by everybody who looks: never change them."""
    return _read(settings().db, common.version(), common.blind(viewer), chosen, viewer)


def computed(make: Made, viewer: Viewer, chosen: Chosen, *arguments: Any) -> Any:
    """What `make(read, *arguments)` gives, as `_kept.computed` keeps it; `make` takes a `Read`."""
    return page_cache.computed(make, viewer, lambda: read(viewer, chosen), *arguments, about=chosen)


@dataclass(frozen=True)
class About:
    """What the page must know before it draws anything.

    Attributes:
        judges: By format that the study shows, who has looked at any answer, the stated one first, else the usual one; last the majority of the judges,
            where there are several.
        n_elsewhere: Responses to these cases in neither format.
    """

    n_cases: int
    n_kinds: dict[str, int]
    n_samples: int
    n_published: int
    published: tuple[str, ...]
    models: tuple[str, ...]
    judges: dict[str, tuple[str, ...]]
    n_texts: int
    n_reads: int
    n_elsewhere: int


@st.cache_data(max_entries=8, show_spinner=False)
def _about(
    location: str,  # noqa: ARG001 - the key
    version: Key,  # noqa: ARG001 - the key
    hidden: frozenset[int],  # noqa: ARG001 - the key
    stated: tuple[str, ...],
    _viewer: Viewer,
) -> About:
    triage_data = common.triage_data(_viewer)
    formats, published = chosen_settings().formats, _shown(triage_data.published)
    judges = {}
    for word, names in judges_by_format(triage_data).items():
        if word in formats:
            several = members(name for name in names if name not in triage_data.juries)
            first = [name for name in stated if name in names][:1]
            rest = [name for name in names if name not in first]
            judges[word] = (*first, *rest, *([JURY] if several else []))
    samples = triage_data.samples
    present = samples["model"].cat.remove_unused_categories().cat.categories
    return About(
        n_cases=len(triage_data.cases),
        n_kinds={kind.value: int(triage_data.cases["kind"].eq(kind).sum()) for kind in Kind},
        n_samples=len(samples),
        n_published=published[["model", "format"]].drop_duplicates().shape[0],
        published=tuple(sorted(set(published["model"].astype(str)))),
        models=tuple(sorted(str(name) for name in present)),
        judges=judges,
        n_texts=int(samples["has_text"].sum()),
        n_reads=len(triage_data.reads),
        n_elsewhere=len(triage_data.elsewhere),
    )


def about(viewer: Viewer) -> About:
    """What there is of triage in the study, without cases that wait for this person's own read."""
    stated = analysis().judges
    found: About = _about(settings().db, common.version(), common.blind(viewer), stated, viewer)
    return found


def analysis() -> Analysis:
    """What the study states that it analyses; where nothing is stated, every choice is the usual one."""
    with reading(common.engine()) as session:
        stated = contents.stated_analysis(session)
    return Analysis() if stated is None else stated.spec


def _shown(published: pd.DataFrame) -> pd.DataFrame:
    """The published matrices of the formats that the study shows."""
    return published.loc[published["format"].isin(list(chosen_settings().formats))].reset_index(drop=True)


def chosen_settings() -> TriageSettings:
    """What the study has chosen for triage."""
    with reading(common.engine()) as session:
        return setting_queries.load(session)


def usual(known: About) -> Chosen:
    """What is looked at where nobody has chosen otherwise."""
    return Chosen(tuple((word, known.judges[word][0]) for word in FORMATS if known.judges.get(word)))


def controls(known: About, *, gold: bool) -> Chosen:
    """Who reads the levels of each format, and whose gold counts, drawn in the row that is open; each is kept in the address.

    Args:
        gold: The section shows numbers against a gold.
    """
    judges = {
        word: str(one_of(f"{words.capitalize()} read by", known.judges[word], f"triage_{word}_judge", width=170))
        for word, words in FORMATS.items()
        if known.judges.get(word)
    }
    whose = one_of("Gold", list(Gold), "triage_gold", width=215) if gold else Gold.FILE
    return Chosen(tuple(judges.items()), Gold(whose))


def leave() -> None:
    """Keep what is chosen, for the browser's way back."""
    page_cache.leave(PAGE, KEYS)


def left(key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a case; else what is usual."""
    return page_cache.left(PAGE, key, usual)


one_of = partial(page_cache.one_of, PAGE)
"""A control of this page, as `page_cache.one_of`."""


@dataclass(frozen=True)
class Here:
    """What every section is given.

    Attributes:
        row: Where a section draws controls of its own, before those that all sections share.
    """

    viewer: Viewer
    chosen: Chosen
    known: About
    settings: TriageSettings
    row: DeltaGenerator


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """A row a model and format: by model, those with cases first, then qa before conversation; names as plain words."""
    named = table.assign(model=table["model"].astype(str), format=table["format"].astype(str))
    order = named.assign(last=named["model"].str.endswith(PUBLISHED), place=named["format"].map(list(FORMATS).index))
    return named.loc[order.sort_values(["last", "model", "place"], kind="stable").index].reset_index(drop=True)


def colours() -> list[str]:
    """All models of the study, so that each keeps its colour on every page."""
    return list(common.read("models"))

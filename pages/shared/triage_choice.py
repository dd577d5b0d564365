"""What Triage and Calibration share: the row of controls, the numbers of a choice, and what is said without any."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.stats.wording import counted
from evalcore.study.analysis import Analysis
from evalcore.study.policies import allows, check_can_read, own_act
from evalcore.study.schema import Format, Viewer
from evalcore.triage import setting_queries
from evalcore.triage.bases import PUBLISHED
from evalcore.triage.data import Kind, TriageData
from evalcore.triage.predictions import JURY, judges_by_format, members, predictions, with_jury
from evalcore.triage.reads import with_physicians_gold
from evalcore.triage.settings import TriageSettings
from pages.shared import common, glossary, html, page_cache, routes

PAGE, MODEL = "triage", "triage_model"
KEYS = (
    "triage_show", "triage_qa_judge", "triage_conversation_judge", "triage_gold", "triage_basis", "triage_model", "triage_cell",
    "triage_of_format", "triage_by", "triage_beside", "triage_outside", "triage_claim", "triage_readers_of",
)  # fmt: skip
FORMATS = {Format.QA.value: "qa", Format.CONVERSATION.value: "conversation"}
HEADS = {word.value: f"In {word.value}" for word in Format}
CASE_COLUMNS = ["gold", "kind", "source", "strength", "language"]
Made = Callable[..., Any]


class Gold(StrEnum):
    """Whose level counts as the one that a case needs."""

    FILE = "as published"
    PHYSICIANS = "as read by physicians here"


@dataclass(frozen=True)
class Chosen:
    """What is looked at; `judges`: pairs of a format and the judge that reads the levels of its answers."""

    judges: tuple[tuple[str, str], ...]
    gold: Gold = Gold.FILE

    @property
    def judge_words(self) -> str:
        """Who reads the levels, in words."""
        names = dict(self.judges)
        return " and ".join(f"{word} by {names[word]}" for word in FORMATS if word in names) or "by nobody yet"


@dataclass(frozen=True)
class Read:
    """The cases with the chosen gold, and every model's predictions with `CASE_COLUMNS` (`found`)."""

    triage_data: TriageData
    found: pd.DataFrame


@st.cache_resource(max_entries=6, show_spinner=False)
def _predicted(
    location: str, judged_version: common.Version, hidden: frozenset[int], judges: tuple[tuple[str, str], ...]
) -> tuple[pd.DataFrame, frozenset[str], pd.DataFrame]:
    """Levels, juries and predictions by these judges, kept while physicians read; with the majority where it is one."""
    cases = page_cache.imported_cases(location, judged_version).without(hidden)
    by_format = dict(judges)
    cases = with_jury(cases) if JURY in by_format.values() else cases
    return cases.levels, cases.juries, predictions(cases, by_format)


def read(viewer: Viewer, chosen: Chosen) -> Read:
    """The cases and predictions that were chosen. They are shared by everybody who looks: never change them."""
    which = common.location(), common.judged_version(), common.blind(viewer), chosen.judges
    levels, juries, found = _predicted(*which)
    triage_data = page_cache.triage_data(viewer)
    published = _published(triage_data, chosen_settings().formats)
    triage_data = replace(triage_data, levels=levels, juries=juries, published=published)
    if chosen.gold is Gold.PHYSICIANS:
        triage_data = with_physicians_gold(triage_data)
    return Read(triage_data, found.join(triage_data.cases[CASE_COLUMNS], on="row"))


def _published(triage_data: TriageData, formats: tuple[Format, ...]) -> pd.DataFrame:
    published = triage_data.published
    return published.loc[published["format"].isin(list(formats))].reset_index(drop=True)


@dataclass(frozen=True)
class About:
    """What the page must know before it draws. `judges`: by format, the usual one first; last the majority. `n_elsewhere`: responses in neither format."""

    n_cases: int
    n_kinds: dict[str, int]
    n_samples: int
    n_published: int
    published: tuple[str, ...]
    models: tuple[str, ...]
    judges: dict[str, tuple[str, ...]]
    n_elsewhere: int


def about(viewer: Viewer) -> About:
    """What there is of triage in the study, without cases that wait for this person's own read."""
    stated, formats = analysis().judges, chosen_settings().formats
    return page_cache.computed(_about, viewer, lambda: page_cache.triage_data(viewer), stated, formats)


def _about(triage_data: TriageData, stated: tuple[str, ...], formats: tuple[Format, ...]) -> About:
    published = _published(triage_data, formats)
    judges: dict[str, tuple[str, ...]] = {}
    for word, names in judges_by_format(triage_data).items():
        if word in formats:
            several = members(name for name in names if name not in triage_data.juries)
            first = [name for name in stated if name in names][:1]
            rest = [name for name in names if name not in first]
            judges[word] = (*first, *rest, *([JURY] if several else []))
    present = triage_data.samples["model"].cat.remove_unused_categories().cat.categories
    return About(
        n_cases=len(triage_data.cases),
        n_kinds={kind.value: int(triage_data.cases["kind"].eq(kind).sum()) for kind in Kind},
        n_samples=len(triage_data.samples),
        n_published=published[["model", "format"]].drop_duplicates().shape[0],
        published=tuple(sorted(set(published["model"].astype(str)))),
        models=tuple(sorted(str(name) for name in present)),
        judges=judges,
        n_elsewhere=len(triage_data.elsewhere),
    )


def analysis() -> Analysis:
    """What the study states that it analyses; where nothing is stated, every choice is the usual one."""
    stated = common.read("analysis")
    return Analysis() if stated is None else stated.spec


def chosen_settings() -> TriageSettings:
    """What the study has chosen for triage."""
    return common.ask(setting_queries.load)


def usual(known: About) -> Chosen:
    """What is looked at where nobody has chosen otherwise."""
    return Chosen(tuple((word, known.judges[word][0]) for word in FORMATS if known.judges.get(word)))


def controls(known: About, *, gold: bool) -> Chosen:
    """Who reads the levels of each format and, with `gold`, whose gold counts; each is kept in the address."""
    judges = {
        word: str(one_of(f"{HEADS[word]}, read by", known.judges[word], f"triage_{word}_judge", width=170))
        for word in FORMATS
        if known.judges.get(word)
    }
    helps = glossary.helps("gold", "level of care", "boundary, ambiguous")
    whose = one_of("Gold", list(Gold), "triage_gold", width=215, help=helps) if gold else Gold.FILE
    return Chosen(tuple(judges.items()), Gold(whose))


one_of = partial(page_cache.one_of, PAGE)
left = partial(page_cache.left, PAGE)
leave = partial(page_cache.leave, PAGE, KEYS)


@dataclass(frozen=True)
class Here:
    """What every section is given; in `row` it draws its own controls, before those that all sections share."""

    viewer: Viewer
    chosen: Chosen
    known: About
    settings: TriageSettings
    row: DeltaGenerator

    def model(self, *, all_models: bool = False, published: bool = False, width: int = 200) -> str | None:
        """The model that is chosen for all sections; None: all of them. A published matrix stays chosen where the section needs cases: a line says so."""
        of_matrices = [f"{name}{PUBLISHED}" for name in self.known.published]
        offered = [*self.known.models, *(of_matrices if published else ())]
        before = left(MODEL)
        chosen = st.session_state[MODEL] if MODEL in st.session_state else st.query_params.get(MODEL, before)
        # Streamlit drops what no option is
        options = [*offered, *(name for name in of_matrices if name == chosen and not published)]
        usual = None if all_models else offered[0]
        with self.row:
            chosen = st.selectbox(
                "Model", options, options.index(before) if before in options else None, placeholder=usual or "all models",
                key=MODEL, **page_cache.KEPT, width=width,
            )  # fmt: skip
        if chosen is not None and chosen not in offered:
            shown = f"{usual} is" if usual else "All models are"
            st.html(html.quiet(f"{chosen} is a matrix without its cases, which this section needs. {shown} shown."))
            return usual
        return chosen or usual

    @cached_property
    def read(self) -> Read:
        """The cases and predictions that were chosen."""
        return read(self.viewer, self.chosen)

    def computed(
        self, make: Made, *arguments: Any, of: Callable[[Read], Any] = lambda read: read, about: Hashable = None
    ) -> Any:
        """`make(of(read), *arguments)`, as `page_cache.computed` keeps it; `about` tells apart what `of` gives."""
        return page_cache.computed(make, self.viewer, lambda: of(self.read), *arguments, about=(self.chosen, about))

    def of_predictions(self, make: Made) -> Any:
        """What `make` gives for the predictions, likewise kept."""
        return self.computed(make, of=lambda read: read.found)


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """A row a model and format: by model, those with cases first, then qa before conversation; names as plain words."""
    named = table.assign(model=table["model"].astype(str), format=table["format"].astype(str))
    order = named.assign(last=named["model"].str.endswith(PUBLISHED), place=named["format"].map(list(FORMATS).index))
    return named.loc[order.sort_values(["last", "model", "place"], kind="stable").index].reset_index(drop=True)


def nothing(sentence: str, label: str, page: str = routes.STUDY, icon: str = "database") -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(html.notice(sentence))
    st.page_link(page, label=label, icon=f":material/{icon}:")


def waits(viewer: Viewer) -> bool:
    """Everything waits for this person's own first read: says so. Whether that is so is for the caller to know."""
    if not common.blind(viewer):
        return False
    what = f"What could be shown here waits for your own {own_act(viewer)}"
    to_review = allows(check_can_read, viewer) and common.to_read(viewer)
    review, settle = ("Go to Review", routes.REVIEW, "rate_review"), ("Go to Adjudicate", routes.ADJUDICATE, "balance")
    nothing(f"{what}; the numbers are shown once you have submitted it.", *(review if to_review else settle))
    return True


def no_answers(known: About) -> None:
    """There are cases and no answers yet: what to do."""
    held = f"The study holds {counted(known.n_cases, 'case')} and no model's answers."
    nothing(f"{held} Import a file of predictions next.", "Import predictions")

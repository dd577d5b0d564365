"""Cases as a list: the patient's first words, the answer, how it was read, the ways to the case and to readers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.reading import assignment_queries
from evalcore.reading.assigning import READERS_EACH, Choice, assign
from evalcore.study.policies import check_can_assign, reason
from evalcore.study.schema import Ask, Format, Role, Viewer
from evalcore.triage.cases import shown_samples
from evalcore.triage.data import SHARES, TriageData
from evalcore.triage.predictions import joined
from evalcore.triage.queries import Told, told
from pages.shared import common, html, routes, suspects, triage_html
from pages.shared.html import response_names
from pages.shared.triage_choice import Here

SHOWN = 10
OF_CASES = ("example_id", "case_id", "source", "first_words", "n_votes", "n_removed", *SHARES)
ASSIGNED = "Physicians have it to read already. What they read enters the matrices by physicians; it was chosen, so it enters no estimate."


def listing(here: Here, rows: pd.DataFrame, *, key: str, notes: Sequence[str] = (), nothing: str = "") -> None:
    """Rows of `Read.found` as cases, ten at a time. `key` begins the keys, `notes` are said of the rows, `nothing` of none."""
    if rows.empty:
        st.html(html.quiet(nothing))
        return
    n_pages = math.ceil(len(rows) / SHOWN)
    head = st.container()
    page = st.pagination(n_pages, key=f"{key}_page") if n_pages > 1 else 1
    shown = slice((page - 1) * SHOWN, page * SHOWN)
    judges = dict(here.chosen.judges)
    part = described(here.read.triage_data, rows.iloc[shown], judges)
    words = list(notes[shown]) or [""] * len(part)
    texts = common.ask(told, [number for number in part["response_id"] if number >= 0])
    assigned = common.ask(assignment_queries.assigned, Ask.RESPONSE_ACUITY)
    with head:
        common.list_openly(here.viewer, part["example_id"])
        for place, (row, more) in enumerate(zip(part.to_dict(orient="records"), words, strict=True)):
            with st.container(gap="xsmall", key=f"{key}_{place}"):
                _card(row, texts.get(row["response_id"]), judges.get(str(row["format"]), ""), more)
                with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_{place}_acts"):
                    open_case(row["example_id"], [row["sample_name"]])
                    if row["response_id"] >= 0:
                        item = (int(row["example_id"]), int(row["response_id"]))
                        _assign(here.viewer, item, is_assigned=item in assigned, key=f"{key}_{place}_assign")


def described(triage_data: TriageData, rows: pd.DataFrame, judges: Mapping[str, str]) -> pd.DataFrame:
    """Some rows of predictions with what a card shows: the columns `OF_CASES`, and those of the chosen sample.

    Its response_id (-1: none), sample_level (as the judge of its format read it, or NaN) and sample_name (as in Browse).
    """
    numbers = triage_data.samples["row"].to_numpy()
    wanted = rows["row"].to_numpy()
    bounds = zip(np.searchsorted(numbers, wanted), np.searchsorted(numbers, wanted, side="right"), strict=True)
    parts = [np.arange(begin, end) for begin, end in bounds]
    places = np.unique(np.concatenate([*parts, np.zeros(0, dtype=np.int64)])).astype(np.int64)
    samples = triage_data.samples.iloc[places].reset_index(drop=True)
    levels = triage_data.levels.iloc[places].reset_index(drop=True)
    where = pd.Index(places)
    mine = rows.reset_index(drop=True)
    if "sample" in mine:
        shown = where.get_indexer(pd.Index(mine["sample"]))
    else:
        mine = mine.assign(first=where.get_indexer(pd.Index(mine["first"])))
        shown = shown_samples(replace(triage_data, samples=samples, levels=levels), mine, judges)
    names = samples.assign(evaluation=[Format(word).evaluation for word in samples["format"]])
    names = names.assign(name=[*chain.from_iterable(response_names(part) for _, part in names.groupby("row"))])
    judged = [
        levels[judges[word]].to_numpy()[place] if place >= 0 and judges.get(word) in levels else math.nan
        for word, place in zip(mine["format"].astype(str), shown, strict=True)
    ]
    kept = mine.drop(columns=[name for name in OF_CASES if name in mine])
    return joined(triage_data, kept, OF_CASES).assign(
        response_id=np.append(samples["response_id"].to_numpy(dtype=np.int64), -1)[shown],
        sample_level=np.array(judged, dtype=float),
        sample_name=np.append(names["name"].to_numpy(dtype=object), "")[shown],
    )


def _card(row: Mapping[Any, Any], text: Told | None, judge: str, more: str) -> None:
    head = triage_html.needs_gives(row["gold"], row.get("read_level", row["predicted"]))
    about = (str(row["model"]), str(row["format"]), str(row["case_id"]), more)
    lines = [triage_html.samples_line(row), *([triage_html.panel_line(row)] if row["n_votes"] else [])]
    read = triage_html.physicians_read(row["read_level"]) if "read_level" in row else ""
    answer, read_as = answer_parts(row, text, judge, str(row["model"]))
    st.html(triage_html.case(str(row["first_words"]), head, about, answer, triage_html.votes(lines) + read + read_as))


def answer_parts(row: Mapping[Any, Any], text: Told | None, judge: str, title: str) -> tuple[str, str]:
    """HTML of the answer of a row of `described`, and of how its judge read it."""
    answer = triage_html.told(text.text if text else "", title)
    if text is None or math.isnan(row["sample_level"]):
        return answer, ""
    read = triage_html.read_as(judge, row["sample_level"], text.explanations.get(judge, ""), row["predicted"])
    return answer, read + suspects.of(int(row["response_id"]))


def _assign(viewer: Viewer, item: tuple[int, int], *, is_assigned: bool, key: str) -> None:
    why = ASSIGNED if is_assigned else reason(check_can_assign, viewer)
    words, icon = ("Assigned", "check") if is_assigned else ("Assign for review", "assignment_ind")
    if st.button(words, icon=f":material/{icon}:", disabled=bool(why), help=why or None, key=key):
        reviewers = sum(Role.REVIEWER in person.roles for person in common.read("people"))
        with common.shown_errors():
            n_readers = min(READERS_EACH, max(reviewers, 1))
            choice = Choice(ask=Ask.RESPONSE_ACUITY, chosen=(item[1],), n_readers=n_readers)
            assign(common.engine(), choice, actor=viewer)
            st.rerun()


def open_case(example_id: int, names: Sequence[str]) -> None:
    """The way to the whole case in Browse, with these responses beside one another."""
    shown = [name for name in names if name]
    query = {"example": str(example_id), **({"shown": shown} if shown else {})}
    st.page_link(routes.BROWSE, label="Open the case", icon=":material/menu_book:", query_params=query)

"""Cases as a list: the patient's first words, what the model told the patient, how it was read, and the way to the whole case."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.reading import candidates
from evalcore.study.db import reading
from evalcore.study.schema import Ask, Format, Viewer
from evalcore.triage.cases import shown_samples
from evalcore.triage.data import SHARES, TriageData
from evalcore.triage.predictions import joined
from evalcore.triage.queries import Told, told
from pages.shared import common, html, routes, suspects, triage_assigning, triage_choice, triage_html
from pages.shared.html import response_names
from pages.shared.triage_choice import FORMATS, Chosen

SHOWN = 10
OF_CASES = ("example_id", "case_id", "source", "first_words", "n_votes", "n_removed", *SHARES)


def listing(viewer: Viewer, chosen: Chosen, rows: pd.DataFrame, *, key: str, said: Sequence[str] = ()) -> None:
    """Cases in their order, ten at a time.

    Args:
        rows: Rows of `Read.found`: one a case, model and format.
        key: Of the list; the beginning of its elements' keys.
        said: What else is said of each row, in words; none: nothing.
    """
    n_pages = max(math.ceil(len(rows) / SHOWN), 1)
    head = st.container()
    page = st.pagination(n_pages, key=f"{key}_page") if n_pages > 1 else 1
    here = slice((page - 1) * SHOWN, page * SHOWN)
    judges = dict(chosen.judges)
    part = described(triage_choice.read(viewer, chosen).triage_data, rows.iloc[here], judges)
    words = list(said[here]) or [""] * len(part)
    with reading(common.engine()) as session:
        texts = told(session, [number for number in part["response_id"] if number >= 0])
        assigned = candidates.assigned(session, Ask.RESPONSE_ACUITY)
    with head:
        common.list_openly(viewer, part["example_id"])
        for place, (row, more) in enumerate(zip(part.to_dict(orient="records"), words, strict=True)):
            with st.container(gap="xsmall", key=f"{key}_{place}"):
                _card(row, texts.get(row["response_id"]), judges.get(str(row["format"]), ""), more)
                _acts(viewer, row, assigned, f"{key}_{place}")


def described(triage_data: TriageData, rows: pd.DataFrame, judges: Mapping[str, str]) -> pd.DataFrame:
    """Some rows of predictions with what a card shows.

    Adds the columns `OF_CASES`, sample (row of `triage_data.samples`, unless it is there already: the response that `shown_samples` chooses; -1: no text is
    known), response_id (of it, -1: none), sample_level (as the judge of its format read it; NaN where it did not) and sample_name (as Browse calls it).
    """
    numbers = triage_data.samples["row"].to_numpy()
    begin, end = (np.searchsorted(numbers, rows["row"].to_numpy(), side=side) for side in _SIDES)
    parts = [np.arange(one, other) for one, other in zip(begin, end, strict=True)]
    places = np.unique(np.concatenate([*parts, np.zeros(0, dtype=np.int64)])).astype(np.int64)
    samples = triage_data.samples.iloc[places].reset_index(drop=True)
    levels = triage_data.levels.iloc[places].reset_index(drop=True)
    where = pd.Index(places)
    mine = rows.reset_index(drop=True)
    if "sample" in mine:
        shown = where.get_indexer(pd.Index(mine["sample"]))
    else:
        mine = mine.assign(first=where.get_indexer(pd.Index(mine["first"])))
        shown, _ = shown_samples(replace(triage_data, samples=samples, levels=levels), mine, judges)
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


_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def _card(row: Mapping[Any, Any], said: Told | None, judge: str, more: str) -> None:
    head = triage_html.needs_gives(row["gold"], row.get("read_level", row["predicted"]))
    about = (str(row["model"]), FORMATS[row["format"]], str(row["case_id"]), more)
    lines = [triage_html.samples_line(row), *([triage_html.panel_line(row)] if row["n_votes"] else [])]
    read = triage_html.physicians_read(row["read_level"]) if "read_level" in row else ""
    if said and not math.isnan(row["sample_level"]):
        read += triage_html.read_as(judge, row["sample_level"], said.explanations.get(judge, ""), row["predicted"])
        read += suspects.of(int(row["response_id"]))
    answer = triage_html.told(said.text if said else "", str(row["model"]))
    st.html(triage_html.case(str(row["first_words"]), head, about, answer, triage_html.votes(lines) + read))


def _acts(viewer: Viewer, row: Mapping[Any, Any], assigned: "set[tuple[int, int | None]]", key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_acts"):
        open_case(row["example_id"], [row["sample_name"]])
        if row["response_id"] >= 0:
            item = (int(row["example_id"]), int(row["response_id"]))
            triage_assigning.button(viewer, item, is_assigned=item in assigned, key=f"{key}_assign")


def open_case(example_id: int, names: Sequence[str]) -> None:
    """The way to the whole case in Browse, with these responses beside one another."""
    shown = [name for name in names if name]
    st.page_link(
        routes.BROWSE,
        label="Open the case",
        icon=":material/menu_book:",
        query_params={"example": str(example_id), **({"shown": shown} if shown else {})},
    )


def none(sentence: str) -> None:
    """There is no case to list: why."""
    st.html(html.quiet(sentence))

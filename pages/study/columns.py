"""A file with names of its own: first rows, what each column is, three conversations as Browse will show them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import streamlit as st

from evalcore.errors import ImportFailed
from evalcore.importing.context import Graded, Options
from evalcore.importing.files.opening import recognise
from evalcore.importing.mapping import GRADE, MAPPED, OwnNames, constant, kept, said_constant, to_yaml
from evalcore.importing.proposing import (
    GRADES,
    LABELS,
    RESPONSES,
    Sample,
    Shown,
    as_wide,
    conversations,
    foreign_words,
    grade_columns,
    missing,
    propose,
    sample,
    scale,
    told_grades,
)  # fmt: skip
from evalcore.stats.wording import counted
from pages.shared import common, html, tables

PROPOSED, NOTHING, ROWS = "what is proposed", "nothing", "the file"
HOLDS = {GRADES: "grades of a judge", LABELS: "labels of physicians", RESPONSES: "answers without grades"}
FIELDS = {
    "conversation": "Conversation",
    "question": "Conversation",
    "text": "Answer",
    "answer": "Answer",
    "model": "Model",
    "criterion": "Criterion",
    "criterion_position": "Place of the criterion",
    "points": "Points",
    GRADE: "Grade",
    "reason": "Reason",
    "judge": "Judge",
    "label": "Label",
    "explanation": "Reason",
    "rater": "Physician",
}
MORE = {
    "example_id": "Name of the example",
    "sample_index": "Number of the repeat",
    "completion_id": "Name of the answer",
    "evaluation": "Made for",
    "sent": "Sent to the model",
    "finish_reason": "How it ended",
    "date": "When it was made",
    "selection": "How it was chosen to be read",
    "inclusion_probability": "Its probability to be chosen",
    "blinded": "Read without the judge's verdict",
    "read_at": "When it was read",
}
_ROLES = {"question": "conversation", "answer": "text", "label": GRADE, "explanation": "reason", "rater": "judge"}
_OF_ROLES = {
    GRADES: {"conversation": "question", "text": "answer"},
    LABELS: {GRADE: "label", "reason": "explanation", "judge": "rater"},
    RESPONSES: {},
}
WIDE = {"judge": "judges", "criterion": "criteria"}
TYPED = ("criterion", "points", "rater")
N_ROWS, LONGEST_CELL, MOST_COLUMNS = 3, 80, 30
_SAMPLE = "import_sample"


class Choice(NamedTuple):
    """What a person has said of the columns so far."""

    names: OwnNames
    missing: str
    keep_as: str


def why_unknown(path: Path, name: str) -> str:
    """Why no format recognises a file, with the closest one; "" where one does."""
    try:
        recognise(path, name=name, format_name=None)
    except ImportFailed as failed:
        return failed.faults[0]
    return ""


def ask(path: Path, name: str, number: str, options: Options) -> Choice | None:
    """What each column is; None: the file cannot be read, and a sentence says why. `number`: of the upload."""
    key = f"columns_{number}"
    try:
        held: tuple[str, str | None, Sample] | None = st.session_state.get(_SAMPLE)
        at = st.session_state.get(f"{key}_rows")
        if held is None or held[:2] != (number, at):
            held = st.session_state[_SAMPLE] = (number, at, sample(path, name, rows=at))
        given = held[2]
    except ImportFailed as failed:
        st.html(html.notice(f"Nothing can be imported of {name}.", kind="error"))
        st.html(html.items(failed.faults))
        return None
    st.subheader("What each column is", anchor=False)
    rows = [cells for _, cells in given.rows[:N_ROWS]]
    names = list(dict.fromkeys(name for cells in rows for name in cells))[:MOST_COLUMNS]
    shown = {name: [_short(cells.get(name, "")) for cells in rows] for name in names}
    tables.show(shown, key="columns_first", alt=f"The first {counted(len(rows), 'row')} of the file", names=names)
    known = common.ask(kept)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        begin = st.selectbox("Begin with", [PROPOSED, *known], key=f"{key}_begin") if known else PROPOSED
        if given.others:
            st.selectbox("Sheet", given.others, given.others.index(given.at), key=f"{key}_rows")
        names = known.get(begin) or propose(given)
        holds = st.segmented_control(
            "The file holds", list(HOLDS), default=names.format, required=True, format_func=HOLDS.__getitem__, key=f"{key}_{begin}_holds"
        )  # fmt: skip
        lists = list(dict.fromkeys(["", *given.lists, names.each]))
        each = st.selectbox(
            "One row for each of", lists, lists.index(names.each), format_func=lambda one: one or ROWS, key=f"{key}_{begin}_each"
        ) if len(lists) > 1 else names.each  # fmt: skip
    if begin == PROPOSED and each != names.each:
        names = propose(given, each or "")
    key = f"{key}_{begin}_{holds}_{each}"
    names = _named(given, msgspec.structs.replace(names, each=each or ""), str(holds), key)
    if names.format != RESPONSES:
        names = _graded(given, names, key)
    lacks = missing(given, names, options)
    whole = "Nothing is missing: this is what will be imported."
    st.html(html.notice(lacks, kind="warning") if lacks else html.quiet(whole))
    _shown(given, names, options, is_whole=not lacks)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        usual = begin if begin != PROPOSED else name.partition(".")[0]
        keep_as = st.text_input("Keep the mapping as", usual, key=f"{key}_keep")
        st.download_button(
            "Download the mapping", to_yaml(names), f"{name.partition('.')[0]}.yaml", "application/yaml", icon=":material/download:",
            key=f"{key}_yaml", on_click="ignore", help="For overread import FILE --mapping THIS.yaml",
        )  # fmt: skip
    return Choice(names, lacks, keep_as.strip())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CELL else line[:LONGEST_CELL] + "…"


def _named(given: Sample, names: OwnNames, holds: str, key: str) -> OwnNames:
    if names.format != holds:
        roles = {path: _ROLES.get(field, field) for path, field in names.columns.items()}
        fields = MAPPED[holds].column_names
        columns = {path: _OF_ROLES[holds].get(role, role) for path, role in roles.items()}
        several = names.several if holds == GRADES else ()
        names = OwnNames(
            holds, {path: field for path, field in columns.items() if field in fields}, rows=names.rows, each=names.each if several else "", several=several
        )  # fmt: skip
    fields = MAPPED[holds].column_names
    in_several = {field for one in names.several for field in one.values()}
    # of labels no conversation tells which example is meant
    first = ["example_id", *FIELDS] if holds == LABELS else list(FIELDS)
    columns = _fields(given, names, [field for field in first if field in fields and field not in in_several], key)
    with st.expander("More fields", key=f"{key}_more"):
        columns |= _fields(given, names, [field for field in MORE if field in fields and field not in first], key)
    return msgspec.structs.replace(names, columns=columns)


def _fields(given: Sample, names: OwnNames, fields: Iterable[str], key: str) -> dict[str, str]:
    places = given.all_places(names.each)
    chosen = {field: path for path, field in names.columns.items()}
    found: dict[str, str] = {}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for field in fields:
            path = chosen.get(field)
            said = None if path is None else said_constant(path)
            paths = list(dict.fromkeys([NOTHING, *([path] if path is not None and said is None else []), *places]))
            label = (FIELDS | MORE)[field]
            picked = st.selectbox(
                label, paths, 0 if path is None or said is not None else paths.index(path), key=f"{key}_{field}", width=300,
                format_func=lambda one: f"{one} · {places[one].first}" if one in places else one,
            )  # fmt: skip
            typed = ""
            if picked == NOTHING and field in TYPED:
                typed = st.text_input(f"{label} of every row", said or "", key=f"{key}_{field}_typed", width=300)
            if picked != NOTHING:
                found[str(picked)] = field
            elif typed.strip() or field in places:  # else it would be read by its name
                found[constant(typed.strip())] = field
    return found


def _graded(given: Sample, names: OwnNames, key: str) -> OwnNames:
    graded = grade_columns(given, names) if names.format == GRADES else []
    wide = [path for one in names.several for path, field in one.items() if field == GRADE]
    if len(graded) > 1 or wide:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            options = list(dict.fromkeys([*wide, *graded]))
            hint = "one column, chosen above"
            picked = st.multiselect("Several columns of grades", options, wide, key=f"{key}_wide", placeholder=hint)
            kinds = {field for one in names.several for path, field in one.items() if said_constant(path) is not None}
            what = st.segmented_control(
                "Their names are", list(WIDE), default="judge" if "judge" in kinds else "criterion", required=True, format_func=WIDE.__getitem__,
                key=f"{key}_what", disabled=not picked,
            )  # fmt: skip
        if (picked, what) != (wide, "judge" if "judge" in kinds else "criterion"):
            names = as_wide(given, names, picked, str(what))
    bare = msgspec.structs.replace(names, met=(), not_met=(), met_from=None)
    words = foreign_words(given, bare)
    if not words:
        return bare
    is_told = bool(names.met or names.not_met or names.met_from is not None)
    proposed = names if is_told else msgspec.structs.replace(bare, **told_grades(words))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if (least := scale(words)) is not None:
            start = least if proposed.met_from is None else proposed.met_from
            note = "A grade of this number or higher is met."
            found = st.number_input("Met from", value=float(start), step=1.0, key=f"{key}_from", help=note)
            return msgspec.structs.replace(bare, met_from=found)
        met = st.multiselect("Means met", words, _of(words, proposed.met), key=f"{key}_met")
        rest = [word for word in words if word not in met]
        not_met = st.multiselect("Means not met", rest, _of(rest, proposed.not_met), key=f"{key}_not_met")
    return msgspec.structs.replace(bare, met=tuple(met), not_met=tuple(not_met))


def _of(words: list[str], known: Iterable[str]) -> list[str]:
    folded = {word.casefold() for word in known}
    return [word for word in words if word.casefold() in folded]


def _shown(given: Sample, names: OwnNames, options: Options, *, is_whole: bool) -> None:
    """The first conversations, as Browse will show them; a fault only once nothing is missing."""
    found, fault = conversations(given, names, options)
    if fault and is_whole:
        st.html(html.notice(fault, kind="warning"))
    for place, one in enumerate(found):
        with st.expander(f"Conversation {place + 1} of the file", expanded=place == 0, key=f"columns_shown_{place}"):
            st.html(_drawn(one))


def _drawn(one: Shown) -> str:
    turns: list[Mapping[str, str]] = [{"role": turn.role, "content": turn.content} for turn in one.messages]
    known = f"The conversation of {one.name}, which must be in the study already"
    parts = [html.conversation(turns, as_markdown=False) if turns else html.quiet(known)]
    for (model, text), records in one.answers.items():
        parts.append(html.response(model, "", text, as_markdown=False))
        of: dict[str, list[Graded]] = {}
        for record in records:
            for criterion in record.rubric:
                of.setdefault(criterion.text, []).append(record)
        parts += [_criterion(number, *criterion) for number, criterion in enumerate(of.items(), 1)]
    return "".join(parts)


def _criterion(number: int, text: str, records: list[Graded]) -> str:
    verdicts: list[Any] = [verdict for one in records for verdict in one.verdicts]
    told = "".join(html.judge_verdict(one.rater, str(one.label), one.explanation) for one in verdicts)
    return html.criterion(number, text, records[0].rubric[0].points, ()) + (told or html.quiet("No grade: no verdict."))

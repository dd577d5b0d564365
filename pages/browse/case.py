"""A case of triage in Browse: what it needs and who says so, what models answer, and the level of each response, which a physician may override."""

import math
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.study.frames import records
from evalcore.study.schema import Acuity, Format, MappingMethod, Viewer
from evalcore.triage.data import Kind, TriageData
from evalcore.triage.label_maps import INFORMATION, PANEL, level_of
from evalcore.triage.predictions import predictions, usual_judges
from evalcore.triage.queries import one_case
from evalcore.triage.reads import case_levels
from evalcore.triage.words import level_letter
from pages.shared import common, html, rubric, triage_html
from pages.shared.html import response_names

KINDS = {
    Kind.CLEAR: "",
    Kind.BOUNDARY: "between two levels: either is right",
    Kind.AMBIGUOUS: "ambiguous: its physicians do not agree, so that no level is right or wrong",
    Kind.UNLABELLED: "nobody has said which level it needs",
}
METHODS = {
    MappingMethod.DIRECT: "by its source",
    MappingMethod.MEDIAN: "by the median of a panel",
    MappingMethod.DISAGREEMENT: "left out by its source: the panel did not agree",
    MappingMethod.REMOVED: "left out by its source: the panel removed it",
    MappingMethod.NONE: "without a level from its source",
}
FORMATS = {Format.QA.value: "Asked for a level (qa)", Format.CONVERSATION.value: "Told the patient (conversation)"}


@common.fragment
def panel(viewer: Viewer, example_id: int, response_ids: list[int]) -> None:
    """Everything on a case beside its conversation; saves what the viewer says at once. A fragment, as the rubric is."""
    opened = rubric.open_conversation(viewer, example_id)
    if opened is None:
        return
    triage_data = common.ask(one_case, example_id)
    if triage_data is None:
        return
    of_case = opened.verdicts.loc[opened.verdicts["response_id"].isna() & opened.verdicts["label"].notna()]
    st.html(needs(triage_data, of_case))
    cells = rubric.Cells(viewer, opened, "", response_ids)
    names = dict(zip(opened.responses["response_id"], response_names(opened.responses), strict=True))
    for response, column in zip(response_ids, rubric.columns(response_ids), strict=True):
        with column:
            st.html(f'<h3 class="or-part" dir="auto">Level that {html.escaped(names[response])} recommends</h3>')
            cells.cell(response, None)
    st.html(answers(triage_data))
    if cells.acted:
        common.draw_anew()


def needs(triage_data: TriageData, said: pd.DataFrame) -> str:
    """The level that a case needs, its panel, and what physicians here say of it."""
    case = triage_data.cases.iloc[0]
    words = [KINDS[Kind(case["kind"])]] if KINDS[Kind(case["kind"])] else []
    words.append(METHODS[MappingMethod(case["method"])])
    if case["n_votes"] > 1:
        strength = case["strength"]
        words.append(strength if strength == "unanimous" else f"votes {strength}, spread {case['spread']:.2f}")
    if pd.notna(case["original_label"]):
        words.append(f"{case['source']}: source label “{case['original_label']}”{_mapped(case['mapped_label'])}")
    head = f'<h3 class="or-part">This case needs {triage_html.level(case["gold"])}</h3>'
    has_panel = case["n_votes"] + case["n_removed"] > 0
    votes = triage_html.votes([triage_html.panel_line(case.to_dict())]) if has_panel else ""
    reads = "".join(rubric.read(row) for row in records(said))
    return head + html.quiet("; ".join(words)) + votes + reads + _settled(triage_data, float(case["gold"]))


def _mapped(meaning: Any) -> str:
    if pd.isna(meaning):
        return ""
    if meaning == PANEL:
        return " leaves the level to a panel"
    if level_of(str(meaning)):
        return f" maps to {meaning}"
    return f" maps to {str(meaning).removeprefix(INFORMATION).strip()}; not used as gold"


def _settled(triage_data: TriageData, gold: float) -> str:
    here = case_levels(triage_data)
    if here.empty:
        return ""
    level = float(here["level"].iloc[0])
    if here["why"].iloc[0] == Acuity.REMOVE:
        return html.quiet("Physicians here call this case unsuitable.")
    if here["why"].iloc[0]:
        return html.quiet("Physicians here have not settled a level for it.")
    if math.isnan(gold):
        return html.quiet(f"Physicians here say {level_letter(level)}: Triage shows it.")
    other = "Physicians here say another level: Triage shows both."
    return html.quiet("Physicians here agree with that." if level == gold else other)


def answers(triage_data: TriageData) -> str:
    """The levels of all samples of every model, by format and by who read them."""
    parts = []
    for word, usual in usual_judges(triage_data).items():
        judges = [usual, *(judge for judge in triage_data.judges(word) if judge != usual)]
        for judge in judges:
            table = predictions(triage_data, {word: judge})
            table = table.loc[table["n_samples"].gt(table["n_unread"])]
            table = table.assign(model=table["model"].astype(str), n_samples=table["n_samples"] - table["n_unread"])
            rows = table.sort_values("model").to_dict(orient="records")
            lines = [(row["model"], *triage_html.samples_line(row)[1:]) for row in rows]
            parts.append(f'<h3 class="or-part">{FORMATS[word]}<small> read by {html.escaped(judge)}</small></h3>')
            parts.append(triage_html.votes(lines))
    return "".join(parts)

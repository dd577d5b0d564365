"""Where each item of the reporting guidelines stands in a study's bundle; computed from the clauses and files that there are, never claimed by hand.

The numbers of CHART, GRRAS and STARD 2015 (1 to 19 and 26 to 30) were checked against the published lists. Those of STARD-AI and TRIPOD-LLM could not be:
what these ask is named by its topic, from the published texts as far as they were at hand, and has no number. All wording is ours.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

REPORTED, PARTLY, TO_FILL_IN, AUTHORS = "reported", "partly", "to fill in", "for the authors"
STATUSES = {
    REPORTED: "what the item asks is said at the places named",
    PARTLY: "some of it is said at the places named, some stands there as a blank to fill in",
    TO_FILL_IN: "only a blank stands for it, or nothing",
    AUTHORS: "no study can tell it: it belongs to the text of the paper",
}
COLUMNS = ["guideline", "item", "asks", "status", "file", "section", "clause"]
METHODS = "methods.md"


class Item(NamedTuple):
    """What a guideline asks, in our words.

    Attributes:
        item: Its number, or its topic where the number could not be checked.
        clauses: Keys of the clauses that may answer it.
        files: Files of the bundle that may.
    """

    guideline: str
    item: str
    asks: str
    clauses: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


CHART, GRRAS, STARD, STARD_AI, TRIPOD = "CHART 2025", "GRRAS 2011", "STARD 2015", "STARD-AI 2025", "TRIPOD-LLM 2025"
SOURCES = {
    CHART: "Chatbot Assessment Reporting Tool, BMJ Medicine 2025, doi 10.1136/bmjmed-2025-001632",
    GRRAS: "Guidelines for Reporting Reliability and Agreement Studies, Kottner et al., J Clin Epidemiol 2011;64:96-106",
    STARD: "Standards for Reporting Diagnostic Accuracy Studies, Bossuyt et al., BMJ 2015;351:h5527; the index test is the system that is judged",
    STARD_AI: "The extension of STARD for artificial intelligence, what it asks beyond STARD 2015; by topic: its item numbers were not checked",
    TRIPOD: "Gallifant et al., Nature Medicine 2025;31:60-69, doi 10.1038/s41591-024-03425-5; by topic: its item numbers were not checked",
}
_MODELS, _JUDGES = ("models_asked", "models_brought"), ("judges_asked", "judges_brought")
_SAMPLE = ("sample_size", "reads", "selection", "drawings", "drawn_elsewhere")
_RATERS = ("reads", "specialties", "reader_languages", "readers_unknown", "readers_chosen")
_LEVEL_READS = ("triage_panels", "triage_reads", "triage_case_reads")
_REFERENCE = ("reads", "no_reads", "blinding", "not_blind", "knows_model", "guideline", *_LEVEL_READS)
_STATED = ("stated", "primary", "deviations", "otherwise", "not_stated")
ITEMS = (
    Item(CHART, "1-2", "title, abstract, background"),
    Item(CHART, "3", "identifiers of each model: name, version, date", ("material", "models_asked", "models_brought")),
    Item(CHART, "4", "details of each model: settings, access, development", _MODELS),
    Item(CHART, "5", "prompts: how they were made, their text and version", (*_MODELS, "sent_otherwise")),
    Item(CHART, "6", "queries: route, dates, sessions, answers", (*_MODELS, "languages", "triage_answers")),
    Item(CHART, "7", "how performance was judged, by whom, blind to what", ("judges", *_JUDGES, "triage_levels", *_REFERENCE)),
    Item(CHART, "8", "sample size", _SAMPLE),
    Item(CHART, "9", "data analysis", ("score", "estimator", "specification", "claim", "multiplicity"), ("analysis.json",)),
    Item(CHART, "10", "results, with the flow", ("flow",), ("corrected-scores.csv", "flow.csv", "flow.svg")),
    Item(CHART, "11", "discussion"),
    Item(CHART, "12a", "disclosures", ("interests",)),
    Item(CHART, "12b", "funding", ("funding",)),
    Item(CHART, "12c", "ethics", ("ethics",)),
    Item(CHART, "12d", "protocol", ("protocol", *_STATED)),
    Item(CHART, "12e", "data availability", ("availability",), ("manifest.json",)),
    Item(GRRAS, "1-3", "title, device, population of subjects"),
    Item(GRRAS, "4", "population of raters", ("claim", *_RATERS)),
    Item(GRRAS, "5", "what is known, rationale"),
    Item(GRRAS, "6", "how the sample size was chosen; raters, subjects, replicates", (*_SAMPLE, "missing_reads")),
    Item(GRRAS, "7", "sampling method", ("selection", "drawings", "drawn_elsewhere")),
    Item(GRRAS, "8", "rating process: blinding, instructions, intervals", ("blinding", "not_blind", "guideline", "read_dates", "revealed", "second_look")),
    Item(GRRAS, "9", "whether ratings were independent", ("blinding", "not_blind", "knows_model")),
    Item(GRRAS, "10", "statistical analysis", ("agreement",), ("agreement.csv",)),
    Item(GRRAS, "11", "raters, subjects and replicates that were included", ("reads", "no_reads"), ("flow.csv",)),
    Item(GRRAS, "12", "characteristics of raters and subjects", ("languages", *_RATERS)),
    Item(GRRAS, "13", "estimates with their uncertainty", ("agreement",), ("agreement.csv",)),
    Item(GRRAS, "14", "practical relevance"),
    Item(GRRAS, "15", "detailed results", (), ("labels.csv", "verdicts.csv")),
    Item(STARD, "1-4", "title, abstract, background, objectives"),
    Item(STARD, "5", "whether data were collected before or after the tests", ("material", "read_dates")),
    Item(STARD, "6-8", "eligibility, and how, where and when those eligible were identified", ("material", "languages", "triage_cases")),
    Item(STARD, "9", "whether they are a consecutive, random or convenience series", ("selection", "drawings", "drawn_elsewhere")),
    Item(STARD, "10a", "index test, in detail: version and settings of the system, prompt included", (*_MODELS, *_JUDGES)),
    Item(STARD, "10b", "reference standard, in detail: who sets it, by which rule", (*_REFERENCE, "settled", *_RATERS)),
    Item(STARD, "11", "why this reference standard"),
    Item(STARD, "12a-b", "categories of results, which of them were fixed beforehand", ("score", "triage_levels", *_STATED)),
    Item(STARD, "13a-b", "what readers of either test knew of the other", ("blinding", "revealed", "second_look")),
    Item(STARD, "14", "methods of estimates and comparisons", ("estimator", "claim", "multiplicity", *_STATED), ("analysis.json",)),
    Item(STARD, "15", "how indeterminate results were handled", ("reads",), ("sensitivity.csv",)),
    Item(STARD, "16", "how missing data were handled", ("missing_reads",), ("sensitivity.csv",)),
    Item(STARD, "17", "analyses of variability: by group"),
    Item(STARD, "18", "intended sample size, and how it was determined", ("sample_size",)),
    Item(STARD, "19", "flow, by a diagram", ("flow",), ("flow.svg", "flow.csv")),
    Item(STARD, "results", "estimates with their precision (item number not checked)", (), ("corrected-scores.csv", "corrected-differences.csv")),
    Item(STARD, "26-27", "limitations, implications for practice"),
    Item(STARD, "28", "registration", ("protocol",)),
    Item(STARD, "29", "where the protocol is", ("protocol",)),
    Item(STARD, "30", "funding", ("funding",)),
    Item(STARD_AI, "data", "source, quality and partition of the data", ("material", "models_brought")),
    Item(STARD_AI, "system", "version, developer, input and output of the system, how it was used", (*_MODELS, *_JUDGES)),
    Item(STARD_AI, "fairness", "error and bias by group"),
    Item(STARD_AI, "openness", "code and data, commercial interests", ("availability", "interests", "software")),
    Item(TRIPOD, "data", "sources, dates, languages", ("material", "languages", "models_brought", "read_dates", "triage_cases")),
    Item(TRIPOD, "models and inference", "name, version, settings such as temperature, system prompt", (*_MODELS, *_JUDGES, "repeats", "juries")),
    Item(TRIPOD, "annotation", "guideline, number and background of annotators, agreement", ("guideline", "agreement", *_RATERS), ("agreement.csv",)),
    Item(TRIPOD, "prompting", "design and text of prompts", ("models_asked", *_JUDGES)),
    Item(TRIPOD, "performance", "measures and their uncertainty", ("score", "estimator", "claim", "multiplicity"), ("corrected-scores.csv",)),
    Item(TRIPOD, "software", "packages and versions", ("software",)),
    Item(TRIPOD, "ethics", "approval", ("ethics",)),
    Item(TRIPOD, "open science", "funding, interests, protocol, registration, data, code", ("funding", "interests", "protocol", "availability")),
)  # fmt: skip
"""Items whose places can be computed, and those that belong to the paper's text; the asked-for ones in our own words."""


class Said(NamedTuple):
    """A clause of the methods, as far as the checklist asks."""

    key: str
    section: str
    is_blank: bool


def checklist(said: Iterable[Said], files: Collection[str]) -> pd.DataFrame:
    """Each item of each guideline with its places.

    Args:
        said: The clauses that the methods have, in their order.
        files: Names of the files in the bundle.

    Returns:
        One row an item and place, or one with empty places where there is none: guideline, item, asks, status (of `STATUSES`: of the whole
        item), file, section (heading in `METHODS`) and clause (its key).
    """
    clauses = list(dict.fromkeys(said))
    rows = []
    for item in ITEMS:
        places = [one for one in clauses if one.key in item.clauses]
        there = [name for name in item.files if name in files]
        told = [*(not one.is_blank for one in places), *(True for _ in there)]
        if not item.clauses and not item.files:
            status = AUTHORS
        elif not any(told):
            status = TO_FILL_IN
        else:
            status = REPORTED if all(told) else PARTLY
        found = [(METHODS, one.section, one.key) for one in places] + [(name, "", "") for name in there]
        rows += [(item.guideline, item.item, item.asks, status, *place) for place in found or [("", "", "")]]
    return pd.DataFrame(rows, columns=COLUMNS).drop_duplicates(ignore_index=True)


def markdown(table: pd.DataFrame) -> str:
    """The checklist as a page, a table a guideline."""
    parts = ["# Where the reporting guidelines' items are\n"]
    parts.append("".join(f"- {status}: {words}\n" for status, words in STATUSES.items()))
    for guideline, source in SOURCES.items():
        mine = table.loc[table["guideline"].eq(guideline)]
        lines = ["| item | asks | status | where |", "|---|---|---|---|"]
        for (item, asks, status), places in mine.groupby(["item", "asks", "status"], sort=False):
            where = "; ".join(dict.fromkeys(_place(row) for row in places.to_dict(orient="records")))
            lines.append(f"| {item} | {asks} | {status} | {where} |")
        parts.append(f"## {guideline}\n\n{source}.\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _place(row: Mapping[Any, Any]) -> str:
    return f"{row['file']}, {row['section']}" if row["section"] else row["file"]

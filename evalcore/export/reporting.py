"""How a study stands to the reporting guidelines: where each of their items is in the bundle, and its flow, counted and drawn.

The numbers of CHART, GRRAS and STARD 2015 (1 to 19 and 26 to 30) were checked against the published lists. Those of STARD-AI and TRIPOD-LLM could not be:
what these ask is named by its topic, from the published texts as far as they were at hand, and has no number. All wording is ours.
"""

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.data import DRAWN, RubricData, first_reads, is_scored, votes
from evalcore.stats.arrays import Truths
from evalcore.study.schema import Stage


@dataclass(frozen=True)
class Clause:
    """One statement of the methods; blank where the study does not know it, so that somebody has to fill it in."""

    key: str
    section: str
    text: str
    is_blank: bool = False


REPORTED, PARTLY, TO_FILL_IN, AUTHORS = "reported", "partly", "to fill in", "for the authors"
STATUSES = {
    REPORTED: "what the item asks is said at the places named",
    PARTLY: "some of it is said at the places named, some stands there as a blank to fill in",
    TO_FILL_IN: "only a blank stands for it, or nothing",
    AUTHORS: "no study can tell it: it belongs to the text of the paper",
}
METHODS = "methods.md"


class Item(NamedTuple):
    """What a guideline asks, in our words: its number, or topic where that could not be checked; clauses and files of the bundle that may answer it."""

    guideline: str
    item: str
    asks: str
    clauses: tuple[str, ...]
    files: tuple[str, ...]


SOURCES = {
    "CHART 2025": "Chatbot Assessment Reporting Tool, BMJ Medicine 2025, doi 10.1136/bmjmed-2025-001632",
    "GRRAS 2011": "Guidelines for Reporting Reliability and Agreement Studies, Kottner et al., J Clin Epidemiol 2011;64:96-106",
    "STARD 2015": "Standards for Reporting Diagnostic Accuracy Studies, Bossuyt et al., BMJ 2015;351:h5527; the index test is the system that is judged",
    "STARD-AI 2025": "The extension of STARD for artificial intelligence, what it asks beyond STARD 2015; by topic: its item numbers were not checked",
    "TRIPOD-LLM 2025": "Gallifant et al., Nature Medicine 2025;31:60-69, doi 10.1038/s41591-024-03425-5; by topic: its item numbers were not checked",
}
ITEMS = [
    Item(row["guideline"], row["item"], row["asks"], tuple(row["clauses"].split()), tuple(row["files"].split()))
    for row in csv.DictReader(
        resources.files("evalcore.export").joinpath("checklist.csv").read_text("utf-8").splitlines()
    )
]


def checklist(said: Iterable[Clause], files: Collection[str]) -> pd.DataFrame:
    """Each item of each guideline with its status (of `STATUSES`), one row a place (a clause of the methods, a file of the bundle), or one with none."""
    clauses = list(said)
    rows = []
    for item in ITEMS:
        places = [clause for clause in clauses if clause.key in item.clauses]
        there = [name for name in item.files if name in files]
        is_said = [*(not clause.is_blank for clause in places), *(True for _ in there)]
        status = REPORTED if all(is_said) else PARTLY if any(is_said) else TO_FILL_IN
        if not is_said:
            status = TO_FILL_IN if item.clauses or item.files else AUTHORS
        found = [(METHODS, clause.section, clause.key) for clause in places] + [(name, "", "") for name in there]
        rows += [(item.guideline, item.item, item.asks, status, *place) for place in found or [("", "", "")]]
    columns = ["guideline", "item", "asks", "status", "file", "section", "clause"]
    return pd.DataFrame(rows, columns=columns).drop_duplicates(ignore_index=True)


def checklist_page(table: pd.DataFrame) -> str:
    """The checklist as a page, a table a guideline."""
    parts = ["# Where the reporting guidelines' items are\n"]
    parts.append("".join(f"- {status}: {words}\n" for status, words in STATUSES.items()))
    for guideline, source in SOURCES.items():
        mine = table.loc[table["guideline"].eq(guideline)]
        lines = ["| item | asks | status | where |", "|---|---|---|---|"]
        for (item, asks, status), places in mine.groupby(["item", "asks", "status"], sort=False):
            named = places["file"].where(places["section"].eq(""), places["file"] + ", " + places["section"])
            where = "; ".join(named.unique())
            lines.append(f"| {item} | {asks} | {status} | {where} |")
        parts.append(f"## {guideline}\n\n{source}.\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


STAGE, LEFT, BESIDE = "stage", "left", "beside"
_COLUMNS = ["place", "kind", "what", "n_examples", "n_responses", "n_items", "n_reads"]
UNITS = ("n_examples", "n_responses", "n_items")


def study_flow(
    part: RubricData,
    *,
    examples: pd.DataFrame,
    responses: pd.DataFrame,
    assigned: pd.DataFrame,
    enough: Sequence[str],
    judges: Sequence[str],
    settled: bool = False,
    weights: pd.Series | None = None,
) -> pd.DataFrame:
    """Who goes on and who leaves, from the examples to the estimate, as the flow diagrams of STARD and CONSORT tell it.

    `part`: what is analysed. `examples`: all with a rubric. `responses`: all to them in the analysed data set. `assigned`: drawn here to be read. `enough`:
    models of which enough is read for a corrected score. `weights`: by example_id, as in `corrected_scores`. Numbers are missing where a step does not count
    them. Of kind stage: what goes on. Of kind left: what leaves between the stages above and below it, so that stage = next stage + left wherever both are
    counted; an example or a response leaves with the last of its items. Of kind beside: parts of the stage above, and reads that enter no estimate.
    """
    items, reads = part.items, part.reads
    drawn_reads = first_reads(reads)
    drawn_reads = drawn_reads.loc[drawn_reads["selection"].isin(DRAWN) & drawn_reads["inclusion_probability"].notna()]
    is_assessed = drawn_reads["met"].notna().to_numpy()

    def of_rows(rows: pd.Series | npt.NDArray[Any]) -> Truths:
        found = np.zeros(len(items), dtype=bool)
        found[np.asarray(rows, dtype=np.int64)] = True
        return found

    # of responses that have a score and every judge's label on every item: the population of `estimator_inputs`
    whole = is_scored(items) & part.judged[list(judges)].notna().all(axis=1)
    if weights is not None:
        whole &= items["example_id"].map(weights).notna()
    judged = np.asarray(whole.groupby(items["response_id"], sort=False).transform("all"), dtype=bool)
    is_read = of_rows(drawn_reads["row"])
    here = items["response_id"].isin(assigned.loc[assigned["selection"].isin(DRAWN), "response_id"]).to_numpy()
    labelled = judged & of_rows(votes(reads, settled=settled)["row"])
    steps = [
        ("Judged on every criterion", judged, "not drawn to be read"),
        ("Drawn to be read by physicians", judged & (here | is_read), "drawn and not read yet"),
        ("Read blind by a physician", judged & is_read, "could not be assessed"),
        ("With a physician's label", labelled, "too few reads of the model for a corrected score"),
        ("In the corrected scores", labelled & items["model"].isin(list(enough)).to_numpy(), ""),
    ]
    counts = [_counts(items, kept) for _, kept, _ in steps]
    for count, (what, kept, _) in list(zip(counts, steps, strict=True))[_READ:]:
        counted = kept[drawn_reads["row"].to_numpy(dtype=np.int64)]
        count["n_reads"] = int((counted if what == steps[_READ][0] else counted & is_assessed).sum())
    n_answered = responses["example_id"].nunique()
    no_score = "no score: not judged on every criterion, no points, or outside the analysed examples"
    answered = {"n_examples": n_answered, "n_responses": len(responses)}
    rows: list[tuple[str, str, Mapping[str, int]]] = [
        (STAGE, "Examples with a rubric", {"n_examples": len(examples)}),
        (LEFT, "no response in the analysed data set", {"n_examples": len(examples) - n_answered}),
        (STAGE, "Responses to them", answered),
        (LEFT, no_score, {name: n - counts[0][name] for name, n in answered.items()}),
    ]
    for number, (what, kept, why) in enumerate(steps):
        rows.append((STAGE, what, counts[number]))
        if number == _READ:
            of_row = drawn_reads.groupby("row")
            n_readers, labels = of_row["rater"].nunique(), of_row["met"].agg(lambda met: met.nunique(dropna=False))
            differing = kept & of_rows(labels.index[labels.gt(1)].to_numpy())
            adjudicated = of_rows(reads.loc[reads["stage"].eq(Stage.ADJUDICATED), "row"])
            beside = {
                "read by two physicians or more": kept & of_rows(n_readers.index[n_readers.gt(1)].to_numpy()),
                "first reads differ": differing,
                "of those that differ, settled by an adjudicator": differing & adjudicated,
                "read only by choice, for an adjudication or with the judge in view: in no estimate": of_rows(reads["row"]) & ~is_read,
            }  # fmt: skip
            rows += [(BESIDE, words, _counts(items, these)) for words, these in beside.items()]
        if why:
            after = counts[number + 1]
            rows.append((LEFT, why, {name: n - after[name] for name, n in counts[number].items()}))
    table = [{"place": place, "kind": kind, "what": what, **n} for place, (kind, what, n) in enumerate(rows, start=1)]
    return pd.DataFrame(table, columns=_COLUMNS).astype(dict.fromkeys((*UNITS, "n_reads"), "Int64"))


_READ = 2  # the place of what was read among the steps


def _counts(items: pd.DataFrame, kept: Truths) -> dict[str, int]:
    these = items.loc[kept]
    n_examples, n_responses = (these[name].nunique() for name in ("example_id", "response_id"))
    return {"n_examples": n_examples, "n_responses": n_responses, "n_items": len(these)}


INK, GROUND = "#23262a", "#ffffff"
_LEFT_X, _RIGHT_X, _BOX, _SIDE = 16, 448, 392, 396
_LINE, _PAD, _GAP = 19, 11, 26
_CHARS, _SIDE_CHARS = 50, 48
_UNITS = (("n_examples", "example"), ("n_responses", "response"), ("n_items", "item"), ("n_reads", "read"))


def flow_svg(flow: pd.DataFrame) -> str:
    """Boxes from top to bottom, what leaves and what is a part beside them; `INK` and `GROUND` stand in it once each, for a page to replace."""
    stages = flow.loc[flow["kind"].eq("stage")].to_dict(orient="records")
    parts: list[str] = []
    top = 12
    for number, stage in enumerate(stages):
        lower = stages[number + 1]["place"] if number + 1 < len(stages) else float("inf")
        beside = flow.loc[flow["place"].gt(stage["place"]) & flow["place"].lt(lower)]
        own = [*wrap(str(stage["what"]), _CHARS), _in_words(stage)]
        sides = []
        for row in beside.to_dict(orient="records"):
            if n := _in_words(row, zero=False):
                what = str(row["what"])
                words = f"Left: {n}: {what}" if row["kind"] == LEFT else f"{what[:1].upper()}{what[1:]}: {n}"
                sides.append(wrap(words, _SIDE_CHARS))
        height = len(own) * _LINE + 2 * _PAD
        side_height = sum(len(side) * _LINE + _PAD for side in sides) + _PAD if sides else 0
        parts += [_frame(_LEFT_X, top, _BOX, height), _words(_LEFT_X + 12, top + _PAD, own, bold=True)]
        if sides:
            at = top + height / 2
            parts += [_line(_LEFT_X + _BOX, at, _RIGHT_X, at), _frame(_RIGHT_X, top, _SIDE, side_height)]
            below = top + _PAD
            for side in sides:
                parts.append(_words(_RIGHT_X + 12, below, side))
                below += len(side) * _LINE + _PAD
        bottom = top + max(height, side_height)
        if number + 1 < len(stages):
            middle = _LEFT_X + _BOX / 2
            parts.append(_line(middle, top + height, middle, bottom + _GAP, arrow=True))
        top = bottom + _GAP
    width, whole = _RIGHT_X + _SIDE + 16, top - _GAP + 12
    back = f'<rect width="{width}" height="{whole}" fill="{GROUND}"/>'
    title = "Flow of the study: examples, responses and items at each step, and what leaves"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}" role="img" '
        f'aria-label="{title}" color="{INK}" font-family="system-ui, sans-serif" font-size="13.5">'
        f"<title>{title}</title>{back}{''.join(parts)}</svg>\n"
    )


def _in_words(row: Mapping[Any, Any], *, zero: bool = True) -> str:
    known = [(int(row[name]), word) for name, word in _UNITS if not pd.isna(row[name])]
    return ", ".join(f"{n:,} {word}" if n == 1 else f"{n:,} {word}s" for n, word in known if zero or n)


def _frame(left: float, top: float, width: float, height: float) -> str:
    return f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="4" fill="none" stroke="currentColor" stroke-opacity="0.55"/>'


def _words(left: float, top: float, lines: list[str], *, bold: bool = False) -> str:
    made = []
    for number, line in enumerate(lines):
        weight = ' font-weight="600"' if bold and number < len(lines) - 1 else ""
        at = top + number * _LINE + 13.5
        made.append(f'<text x="{left:g}" y="{at:g}" fill="currentColor"{weight}>{escape(line)}</text>')
    return "".join(made)


def _line(x1: float, y1: float, x2: float, y2: float, *, arrow: bool = False) -> str:
    line = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="currentColor" stroke-opacity="0.55"/>'
    head = f'<path d="M{x2 - 4:g} {y2 - 7:g} L{x2:g} {y2:g} L{x2 + 4:g} {y2 - 7:g}" fill="none" stroke="currentColor" stroke-opacity="0.8"/>'
    return line + (head if arrow else "")

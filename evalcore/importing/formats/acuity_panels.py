"""What panels say of cases of triage: written with what became of each, and compared with what the study holds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from evalcore.errors import OverreadError
from evalcore.importing.context import ImportContext, RowWriter, shown
from evalcore.importing.examples import as_stored, first_words, turns
from evalcore.importing.formats import values
from evalcore.importing.formats.acuity_cases import Case, Panel
from evalcore.stats.arrays import Floats
from evalcore.study import lookups
from evalcore.study.db import RowMapping
from evalcore.study.schema import CASES, Acuity, MappingMethod, Message
from evalcore.study.store import bring
from evalcore.triage import data as triage_data, setting_queries
from evalcore.triage.case_flow import case_flow
from evalcore.triage.label_maps import level_named, level_of, maps, meaning_of

ROUNDED = 0.006  # a file may round avg_sd to two digits; the spreads of two panels of one size differ by more
_FLOW = ("source", "original_label", "mapped_label", "gold", "method", "uncertainty")  # which way a case went
_LEVEL_AT = {value: label for label, value in triage_data.LEVELS.items() if label is not Acuity.REMOVE}


class PanelVerdict(NamedTuple):
    """What a panel says of a case: `gold` is the median vote, where it `decides`, with two votes or more that do not remove the case, and agrees."""

    decides: bool
    spread: float
    gold: Acuity | None
    is_ambiguous: bool

    def method(self, panel: Panel, level: Acuity | None) -> MappingMethod:
        """How a case came to its gold: as the file says, else as its votes or its level tell."""
        if panel.method is not None:
            return panel.method
        if panel.is_removed:
            return MappingMethod.REMOVED
        if self.decides:
            return MappingMethod.DISAGREEMENT if self.is_ambiguous else MappingMethod.MEDIAN
        if level is not None:
            return MappingMethod.DIRECT
        is_removed = any(vote.vote is Acuity.REMOVE for vote in panel.votes)
        return MappingMethod.REMOVED if is_removed else MappingMethod.NONE

    def difference(self, panel: Panel) -> str | None:
        """What the file says of the case and its votes contradict, in a sentence; None where they agree."""
        outcome = "that the panel disagrees" if self.is_ambiguous else str(self.gold)
        stated = None if panel.gold is None else str(panel.gold)
        if panel.method is MappingMethod.DISAGREEMENT:
            stated = "that the panel disagrees"
        elif panel.is_removed or panel.method is MappingMethod.REMOVED:
            stated = "that the case is removed"
        if not self.decides or stated in (None, outcome):
            return None
        given = ", ".join(vote.vote for vote in panel.votes)
        return f"{panel.case_id}: the file says {stated}; its votes {given} say {outcome} by the rule, and count"


def _verdicts(panels: Sequence[Panel], rule: triage_data.AmbiguityRule) -> list[PanelVerdict]:
    row, level = _columns([panel.votes for panel in panels])
    given = ~np.isnan(level)
    row, level, n = row[given], level[given], len(panels)
    decides = np.bincount(row, minlength=n) > 1
    spread, middle = triage_data.spreads(row, level, n), triage_data.medians(row, level, n)
    is_ambiguous = decides & (spread > rule.spread)
    return [
        PanelVerdict(bool(counts), float(wide), _LEVEL_AT[float(median)] if counts and not apart else None, bool(apart))
        for counts, wide, median, apart in zip(decides, spread, middle, is_ambiguous, strict=True)
    ]


def _columns(panels: Sequence[Sequence[values.Vote]]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """The votes of all panels, one after the other: whose they are, and their levels (NaN: Remove)."""
    row = np.repeat(np.arange(len(panels)), [len(given) for given in panels])
    return row, np.array([triage_data.LEVELS[vote.vote] for given in panels for vote in given], dtype=float)


class _Panels(RowWriter):
    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._rule = setting_queries.load(self._session).rule
        self._lines: dict[str, int] = {}

    def _where(self, row: Panel) -> str:
        first = self._lines.setdefault(row.case_id, row.line)
        return "imported before" if first == row.line else f"on line {first}"

    def _known(self, rows: Sequence[Panel]) -> tuple[dict[str, dict[str, Any]], dict[int, tuple[values.Vote, ...]]]:
        stored = lookups.rows(self._session, lookups.CASES_NAMED, {row.case_id for row in rows})
        cases: dict[str, dict[str, Any]] = {row["prompt_id"]: dict(row) for row in stored}
        given: defaultdict[int, list[values.Vote]] = defaultdict(list)
        for row in lookups.rows(self._session, lookups.VOTES, [case["id"] for case in cases.values()]):
            given[row["example_id"]].append(values.Vote(row["place"], row["rater"], Acuity(row["vote"])))
        return cases, {number: tuple(panel) for number, panel in given.items()}

    def _write_votes(self, voted: Mapping[int, Sequence[values.Vote]]) -> None:
        rows = [{"example_id": number, **vote._asdict()} for number, given in voted.items() for vote in given]
        self._bulk.insert_only("panel_vote", rows)
        self._report.votes_new += len(rows)


class Cases(_Panels):
    """Takes the rows of a file of cases."""

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._maps = maps(setting_queries.tables_of(self._session))
        self._flow: dict[str, tuple[dict[str, Any], Sequence[values.Vote]]] = {}
        self._unknown: set[tuple[str, str]] = set()

    def add(self, rows: Sequence[Case]) -> None:
        """Check a batch of cases and write those that are new."""
        known, given = self._known(rows)
        fresh: dict[str, tuple[Case, dict[str, Any]]] = {}
        added: dict[int, tuple[values.Vote, ...]] = {}
        for case, panel in zip(rows, _verdicts(rows, self._rule), strict=True):
            with self._faults.caught(case.line):
                new = self._row(case, panel)
                where = self._where(case)
                if case.case_id in fresh:
                    earlier, row = fresh[case.case_id]
                    panel_votes = earlier.votes or case.votes
                    _check_same(case, row, earlier.votes, where)
                    fresh[case.case_id] = msgspec.structs.replace(earlier, votes=panel_votes), row
                    self._report.cases_known += 1
                elif case.case_id in known:
                    row = known[case.case_id]
                    bring(self._session, "example", [row["id"]])
                    bring(self._session, "acuity_case", [row["id"]])
                    before = given.get(row["id"], ())
                    panel_votes = case.votes or before
                    _check_same(case, row, before, where)
                    self._report.cases_known += 1
                    if case.votes and not before:
                        added[row["id"]] = given[row["id"]] = case.votes
                    elif case.votes:
                        bring(self._session, "panel_vote", [row["id"]])
                else:
                    row, panel_votes = new, case.votes
                    fresh[case.case_id] = (case, row)
                # once, however often the file names it
                self._flow[case.case_id] = {key: row[key] for key in _FLOW}, panel_votes
        if not self._faults.count:
            self._write(list(fresh.values()), added)

    def finish(self) -> None:
        """Give the report what became of the cases."""
        if self._flow and not self._faults.count:
            flow = case_flow(triage_data.described(_triaged(list(self._flow.values())), self._rule), self._rule)
            self._report.flow = [{str(name): row[name] for name in row} for row in flow.to_dict(orient="records")]

    def _row(self, case: Case, panel: PanelVerdict) -> dict[str, Any]:
        meaning = self._meaning(case)
        level = case.gold
        if level is None and not case.is_removed and case.method in (None, MappingMethod.DIRECT):
            level = None if meaning is None else level_of(meaning)
        if case.method is MappingMethod.DIRECT and level is None:
            expected = "a level in normalized_label, or an original_label that stands for one"
            values.refuse("mapping_method: direct", expected, "neither")
        sentence = panel.difference(case)
        if sentence is None and not panel.decides and case.gold is not None and meaning is not None:
            by_map = level_of(meaning)
            if by_map != case.gold and (by_map is not None or case.method is MappingMethod.DIRECT):
                by_file, label = f"the file says {case.gold}, and counts", shown(case.original_label)
                sentence = f"{case.case_id}: {by_file}; the label map says {meaning} for {label}"
        if sentence is not None:
            self._report.differs(case.line, sentence)
        said = ("source", "source_id", "original_label", "uncertainty", "notes")
        return {name: getattr(case, name) for name in said} | {
            "messages": as_stored((Message("user", case.text),)),
            "mapped_label": (case.mapped_label and (level_named(case.mapped_label) or case.mapped_label)) or meaning,
            "gold": level,
            "method": panel.method(case, level),
            "is_edge_case": case.is_edge_case or False,
        }

    def _meaning(self, case: Case) -> str | None:
        """None: no label, or one that the map does not know, where the file says the level itself; else the first such row is a fault."""
        if case.original_label is None:
            return None
        try:
            return meaning_of(self._maps, case.source, case.original_label)
        except OverreadError as error:
            unknown = (case.source, case.original_label)
            if case.gold is None and not case.is_removed and unknown not in self._unknown:
                self._unknown.add(unknown)
                values.refuse_row(f"original_label: {error}")
            return None

    def _write(self, fresh: Sequence[tuple[Case, dict[str, Any]]], added: Mapping[int, Sequence[values.Vote]]) -> None:
        same = {"dataset": CASES, "n_turns": 1, "tags": "[]", "provisional": False}
        examples = []
        for case, row in fresh:
            named = {"prompt_id": case.case_id, "messages": row.pop("messages"), "canary": case.canary}
            examples.append(same | named | {"first_words": first_words(case.text)})
        numbers = self._bulk.insert("example", examples)
        given = list(zip(numbers, fresh, strict=True))
        self._bulk.insert_only("acuity_case", [{"example_id": number, **row} for number, (_, row) in given])
        self._write_votes({number: case.votes for number, (case, _) in given} | dict(added))
        self._bulk.await_index(((number, [case.text]) for number, (case, _) in given), are_examples=True)
        self._report.cases_new += len(fresh)
        self._report.cases_completed += len(added)


class Votes(_Panels):
    """Takes the rows of a file of votes on cases that the study has; with what their source counted, which must fit them."""

    def add(self, rows: Sequence[Panel]) -> None:
        """Check a batch of panels and write the votes that are new."""
        known, given = self._known(rows)
        added: dict[int, tuple[values.Vote, ...]] = {}
        completed: list[dict[str, Any]] = []
        for panel, verdict in zip(rows, _verdicts(rows, self._rule), strict=True):
            with self._faults.caught(panel.line):
                if panel.avg_sd is not None and not abs(panel.avg_sd - verdict.spread) <= ROUNDED:
                    of_votes = f"{verdict.spread:.4g} as in its votes"
                    expected = of_votes if verdict.decides else "nothing, as fewer than two votes stand"
                    values.refuse("avg_sd", expected, f"{panel.avg_sd:.6g}")
                case = known.get(panel.case_id)
                if case is None or case["source"] is None:
                    self._report.no_partner(panel.line, f"case {panel.case_id!r} is not in the study")
                    continue
                if (case["source"], case["source_id"]) != (panel.source, panel.source_id):
                    expected = f"{case['source']} and {case['source_id']} of the case {panel.case_id!r}"
                    values.refuse("source_dataset, source_id", expected, f"{panel.source} and {panel.source_id}")
                if panel.gold is not None and case["gold"] not in (None, panel.gold):
                    expected = f"{case['gold']} for the case {panel.case_id!r} as imported before"
                    values.refuse("normalized_label", expected, panel.gold)
                where = self._where(panel)
                if before := given.get(case["id"], ()):
                    _check_same_votes(panel, before, where)
                    bring(self._session, "panel_vote", [case["id"]])
                    self._report.votes_known += len(panel.votes)
                    continue
                if sentence := verdict.difference(panel):
                    self._report.differs(panel.line, sentence)
                added[case["id"]] = given[case["id"]] = panel.votes
                level, method = case["gold"] or panel.gold, case["method"]
                if method == MappingMethod.NONE:
                    method = verdict.method(panel, level)
                if (level, method) != (case["gold"], case["method"]):
                    case |= {"gold": level, "method": method}
                    completed.append({"example_id": case["id"], "gold": level, "method": method})
        if not self._faults.count:
            self._write_votes(added)
            self._bulk.update("acuity_case", completed)


def _check_same(case: Case, row: Mapping[str, Any] | RowMapping, before: Sequence[values.Vote], where: str) -> None:
    of_case = f"for the case {case.case_id!r} as {where}"
    if row["source"] is None:
        got = "that of a conversation that is no case"
        values.refuse("source_id", f"a name of its own for the case {case.case_id!r}", got)
    if as_stored((Message("user", case.text),)) != row["messages"]:
        text, other = values.shown_apart(case.text, "\n".join(turn.content for turn in turns(row["messages"])))
        values.refuse("normalized_prompt_text", f"{other} {of_case}", text)
    for column, came, key in (
        ("dataset", case.source, "source"),
        ("source_id", case.source_id, "source_id"),
        ("original_label", case.original_label, "original_label"),
        ("normalized_label", case.gold or row["gold"], "gold"),
        ("mapping_method", case.method or row["method"], "method"),
        ("is_edge_case", row["is_edge_case"] if case.is_edge_case is None else case.is_edge_case, "is_edge_case"),
        ("uncertainty", case.uncertainty, "uncertainty"),
        ("notes", case.notes, "notes"),
    ):
        if came != row[key]:
            values.refuse(column, f"{_words(row[key])} {of_case}", _words(came))
    if case.votes and before:
        _check_same_votes(case, before, where)


def _check_same_votes(panel: Panel, before: Sequence[values.Vote], where: str) -> None:
    """Whether two panels on one case are the same; who voted is compared where both say it."""
    came, stored = {vote.place: vote for vote in panel.votes}, {vote.place: vote for vote in before}
    for place in sorted(came.keys() | stored.keys()):
        new, old = came.get(place), stored.get(place)
        pairs: list[tuple[str, object, object]] = [("", new and new.vote, old and old.vote)]
        if new and old and new.rater and old.rater:
            pairs.append(("_rater", new.rater, old.rater))
        for column, value, former in pairs:
            if value != former:
                expected = f"{_words(former)} for the case {panel.case_id!r} as {where}"
                values.refuse(f"anon_label_{place}{column}", expected, _words(value))


def _words(value: object) -> str:
    return "nothing" if value is None else shown(str(value))


def _triaged(cases: Sequence[tuple[Mapping[str, Any], Sequence[values.Vote]]]) -> triage_data.TriageData:
    table = pd.DataFrame([case for case, _ in cases], dtype=object)
    levels = [np.nan if level is None else triage_data.LEVELS[Acuity(level)] for level in table.pop("gold")]
    table = table.assign(file_gold=levels, method=table["method"].map(str))
    table = table.astype({"source": "category", "method": "category", "uncertainty": float})
    row, level = _columns([given for _, given in cases])
    said = [vote[:2] for _, given in cases for vote in given]
    together = pd.DataFrame(said, columns=["place", "rater"], dtype=object)
    panel_votes = together.astype({"place": np.int64}).assign(row=row, vote=level)
    samples, confidences, reads = (
        pd.DataFrame(columns=list(names))
        for names in (triage_data.SAMPLE_COLUMNS, triage_data.CONFIDENCE_COLUMNS, triage_data.READ_COLUMNS)
    )
    return triage_data.TriageData(table, panel_votes, samples, pd.DataFrame(), confidences, reads, pd.DataFrame())

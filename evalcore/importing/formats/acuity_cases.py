"""Cases of triage with the votes of their panels, CSV or Parquet (the release schema of AcuityBench, arXiv 2605.11398).

Their labels are read by the label maps, compared with what the study has, then written.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
from sqlalchemy import RowMapping
from sqlmodel import Session

from evalcore.errors import OverreadError, RowFault
from evalcore.importing.acuity_panels import Said, Stated, difference, frame_of, method_of, said_by
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.examples import as_stored, turns
from evalcore.importing.first_words import first_words
from evalcore.importing.formats.acuity_cells import Cells, Vote, gold, name, needed, share, truth, votes, word, words
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import shown, shown_apart
from evalcore.importing.report import ImportReport
from evalcore.study import lookups
from evalcore.study.schema import CASES, Acuity, MappingMethod, Message
from evalcore.study.store import Bulk
from evalcore.triage import setting_queries
from evalcore.triage.case_flow import case_flow
from evalcore.triage.data import CONFIDENCE_COLUMNS, LEVELS, READ_COLUMNS, SAMPLE_COLUMNS, TriageData, described
from evalcore.triage.label_maps import level_named, level_of, meaning_of

NAME = "acuity-cases"
TITLE = "Cases of triage, CSV or Parquet"
COLUMNS = {
    "dataset": "the source that the case comes from; the case is then called {dataset}_{source_id}",
    "source_id": "its name there",
    "original_prompt_text": "what the patient wrote",
    "normalized_prompt_text": "the same as it is shown and sent, where it was reworded (optional)",
    "original_label": "as the source says it",
    "mapped_label": "what the source's label map makes of it: a level, a boundary, or panel (optional; else our own map says it)",
    "normalized_label": "A, B, C, D, A|B, B|C, C|D (also with /), or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY; where it is "
    "missing, the source's label map decides",
    "is_edge_case": "true or false",
    "mapping_method": ", ".join(MappingMethod),
    "notes": "kept as they are (optional)",
    "anon_label_1, anon_label_2, ...": "votes of the panel, in the words of normalized_label, or Remove (optional)",
    "anon_label_1_rater, ...": "who voted (optional)",
    "uncertainty": "physicians' uncertainty, 0..1 (optional)",
    "canary": "kept and written back out (optional)",
}


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line: one case.

    Attributes:
        gold: As the file gives it; None where it gives none, or removes the case.
        is_removed: The file says so in the place of a level.
    """

    line: int
    source: str
    source_id: str
    text: str
    original_label: str | None
    mapped_label: str | None
    gold: Acuity | None
    is_removed: bool
    is_edge_case: bool | None
    method: MappingMethod | None
    notes: str | None
    uncertainty: float | None
    canary: str | None
    votes: tuple[Vote, ...]

    @property
    def case_id(self) -> str:
        """Its name in the study."""
        return f"{self.source}_{self.source_id}"


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"dataset", "source_id"} <= keys and bool({"original_prompt_text", "normalized_prompt_text"} & keys)


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Case]:  # noqa: ARG001 - the importers' common signature
    """One case.

    Raises:
        RowFault: The row breaks a rule of the format.
    """
    text = words(cells, "normalized_prompt_text") or words(cells, "original_prompt_text")
    if text is None:
        msg = "original_prompt_text: expected the case's text here or in normalized_prompt_text, got nothing"
        raise RowFault(msg)
    level, is_removed = gold(cells)
    yield Case(
        line=number,
        source=needed(cells, "dataset", "the source's name"),
        source_id=needed(cells, "source_id", "the case's name in its source"),
        text=text,
        original_label=name(cells, "original_label"),
        mapped_label=name(cells, "mapped_label"),
        gold=level,
        is_removed=is_removed,
        is_edge_case=truth(cells, "is_edge_case"),
        method=word(cells, "mapping_method", MappingMethod),
        notes=words(cells, "notes"),
        uncertainty=share(cells, "uncertainty"),
        canary=words(cells, "canary"),
        votes=votes(cells),
    )


Row = Mapping[str, Any] | RowMapping
"""What is known of a case: the columns of `acuity_case`."""


class Went(NamedTuple):
    """What tells which way a case went; its text is not kept."""

    source: str
    original_label: str | None
    mapped_label: str | None
    gold: str | None
    method: str
    uncertainty: float | None
    votes: Sequence[Vote]


class Cases(Taker):
    """Takes the rows of a file of cases."""

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self._maps = setting_queries.maps_of(self._session)
        self._rule = setting_queries.load(self._session).rule
        self._lines: dict[str, int] = {}
        self._went: dict[str, Went] = {}
        self._unknown: set[tuple[str, str]] = set()

    def add(self, rows: Sequence[Case]) -> None:
        """Check a batch of cases and write those that are new."""
        known = {row["prompt_id"]: row for row in lookups.cases_named(self._session, {row.case_id for row in rows})}
        votes = stored_votes(self._session, [row["id"] for row in known.values()])
        said = said_by([row.votes for row in rows], self._rule)
        fresh: dict[str, tuple[Case, dict[str, Any]]] = {}
        added: dict[int, tuple[Vote, ...]] = {}
        for case, panel in zip(rows, said, strict=True):
            with self._faults.caught(case.line):
                made = self._made(case, panel)
                first = self._lines.setdefault(case.case_id, case.line)
                if case.case_id in fresh:
                    earlier, made = fresh[case.case_id]
                    _check_same(case, _as_known(earlier, made), earlier.votes, f"on line {first}")
                    fresh[case.case_id] = msgspec.structs.replace(earlier, votes=earlier.votes or case.votes), made
                    self._report.cases_known += 1
                    self._note(case, made, earlier.votes or case.votes)
                elif case.case_id in known:
                    row = known[case.case_id]
                    before = votes.get(row["id"], ())
                    _check_same(case, row, before, "imported before" if first == case.line else f"on line {first}")
                    self._report.cases_known += 1
                    if case.votes and not before:
                        added[row["id"]] = votes[row["id"]] = case.votes
                    self._note(case, row, case.votes or before)
                else:
                    fresh[case.case_id] = (case, made)
                    self._note(case, made, case.votes)
        if not self._faults.count:
            self._write(list(fresh.values()), added)

    def _note(self, case: Case, known: Row, votes: Sequence[Vote]) -> None:
        """Remember which way a case goes: once, however often the file names it."""
        label, gold, method = (known[name] for name in ("mapped_label", "gold", "method"))
        self._went[case.case_id] = Went(case.source, case.original_label, label, gold, method, case.uncertainty, votes)

    def finish(self) -> None:
        """Give the report what became of the cases."""
        if self._went and not self._faults.count:
            flow = case_flow(described(_triaged(list(self._went.values())), self._rule), self._rule)
            self._report.flow = [
                {str(name): value for name, value in row.items()} for row in flow.to_dict(orient="records")
            ]

    def _made(self, case: Case, panel: Said) -> dict[str, Any]:
        """What the file and the label map make of a case: mapped_label, gold and method as `acuity_case` holds them."""
        meaning = self._meaning(case)
        by_map = None if meaning is None else level_of(meaning)
        gold = case.gold
        if gold is None and not case.is_removed and case.method in (None, MappingMethod.DIRECT):
            gold = by_map
        if case.method is MappingMethod.DIRECT and gold is None:
            msg = "mapping_method: direct: expected a level in normalized_label, or an original_label that stands for one, got neither"
            raise RowFault(msg)
        method = case.method or (MappingMethod.REMOVED if case.is_removed else method_of(panel, case.votes, gold))
        self._compare(case, panel, meaning)
        mapped = case.mapped_label and (level_named(case.mapped_label) or case.mapped_label)
        return {"mapped_label": mapped or meaning, "gold": gold, "method": method}

    def _meaning(self, case: Case) -> str | None:
        """What the label map says; None where there is no label, or one that the map does not know and the file says the level itself.

        Raises:
            RowFault: The map does not know the label, and the file does not say the level; for the first row with this label.
        """
        if case.original_label is None:
            return None
        try:
            return meaning_of(self._maps, case.source, case.original_label)
        except OverreadError as error:
            unknown = (case.source, case.original_label)
            if case.gold is None and not case.is_removed and unknown not in self._unknown:
                self._unknown.add(unknown)
                msg = f"original_label: {error}"
                raise RowFault(msg) from error
            return None

    def _compare(self, case: Case, panel: Said, meaning: str | None) -> None:
        stated = Stated(case.gold, case.method, case.is_removed)
        sentence = difference(case.case_id, stated, panel, case.votes)
        if sentence is None and not panel.decides and case.gold is not None and meaning is not None:
            by_map = level_of(meaning)
            if by_map != case.gold and (by_map is not None or case.method is MappingMethod.DIRECT):
                label = shown(case.original_label)
                sentence = (
                    f"{case.case_id}: the file says {case.gold}, and counts; the label map says {meaning} for {label}"
                )
        if sentence is not None:
            self._report.differs(case.line, sentence)

    def _write(self, fresh: Sequence[tuple[Case, dict[str, Any]]], added: Mapping[int, Sequence[Vote]]) -> None:
        numbers = self._bulk.insert("example", [_example_row(case) for case, _ in fresh])
        self._bulk.insert_only(
            "acuity_case",
            [
                {
                    "example_id": number,
                    "source": case.source,
                    "source_id": case.source_id,
                    "original_label": case.original_label,
                    **made,
                    "is_edge_case": case.is_edge_case or False,
                    "uncertainty": case.uncertainty,
                    "notes": case.notes,
                }
                for number, (case, made) in zip(numbers, fresh, strict=True)
            ],
        )
        voted = {number: case.votes for number, (case, _) in zip(numbers, fresh, strict=True)} | dict(added)
        write_votes(self._bulk, voted, self._report)
        waiting = ((number, [case.text]) for number, (case, _) in zip(numbers, fresh, strict=True))
        self._bulk.await_index(waiting, are_examples=True)
        self._report.cases_new += len(fresh)
        self._report.cases_completed += len(added)


def stored_votes(session: Session, example_ids: Sequence[int]) -> dict[int, tuple[Vote, ...]]:
    """The votes that the study has on these cases, by place."""
    found: defaultdict[int, list[Vote]] = defaultdict(list)
    for row in lookups.votes_on(session, example_ids):
        found[row["example_id"]].append(Vote(row["place"], row["rater"], Acuity(row["vote"])))
    return {number: tuple(votes) for number, votes in found.items()}


def write_votes(bulk: Bulk, voted: Mapping[int, Sequence[Vote]], report: ImportReport) -> None:
    """Write votes by case."""
    rows = [
        {"example_id": number, "place": vote.place, "rater": vote.rater, "vote": vote.vote}
        for number, votes in voted.items()
        for vote in votes
    ]
    bulk.insert_only("panel_vote", rows)
    report.votes_new += len(rows)


def check_same_votes(case_id: str, came: Sequence[Vote], before: Sequence[Vote], where: str) -> None:
    """Two panels on one case are the same; who voted is compared where both say it.

    Raises:
        RowFault: They are not.
    """
    one, other = {vote.place: vote for vote in came}, {vote.place: vote for vote in before}
    for place in sorted(one.keys() | other.keys()):
        new, old = one.get(place), other.get(place)
        for column, value, former in (
            ("", new and new.vote, old and old.vote),
            ("_rater", new and new.rater, old and old.rater),
        ):
            if value != former and (not column or (value and former)):
                msg = f"anon_label_{place}{column}: expected {_words(former)} for the case {case_id!r} as {where}, got {_words(value)}"
                raise RowFault(msg)


def _words(value: object) -> str:
    return "nothing" if value is None else shown(str(value))


def _check_same(case: Case, row: Row, votes: Sequence[Vote], where: str) -> None:
    if row["source"] is None:
        msg = f"source_id: expected a name of its own for the case {case.case_id!r}, got that of a conversation that is no case"
        raise RowFault(msg)
    messages = as_stored((Message("user", case.text),))
    if messages != row["messages"]:
        former = "\n".join(turn.content for turn in turns(row["messages"]))
        text, other = shown_apart(case.text, former)
        msg = f"normalized_prompt_text: expected {other} for the case {case.case_id!r} as {where}, got {text}"
        raise RowFault(msg)
    compared = {
        "dataset": (case.source, row["source"]),
        "source_id": (case.source_id, row["source_id"]),
        "original_label": (case.original_label, row["original_label"]),
        "normalized_label": (case.gold or row["gold"], row["gold"]),
        "mapping_method": (case.method or row["method"], row["method"]),
        "is_edge_case": (row["is_edge_case"] if case.is_edge_case is None else case.is_edge_case, row["is_edge_case"]),
        "uncertainty": (case.uncertainty, row["uncertainty"]),
        "notes": (case.notes, row["notes"]),
    }
    for column, (came, before) in compared.items():
        if came != before:
            msg = f"{column}: expected {_words(before)} for the case {case.case_id!r} as {where}, got {_words(came)}"
            raise RowFault(msg)
    if case.votes and votes:
        check_same_votes(case.case_id, case.votes, votes, where)


def _as_known(case: Case, made: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "source": case.source,
        "source_id": case.source_id,
        "messages": as_stored((Message("user", case.text),)),
        "original_label": case.original_label,
        **made,
        "is_edge_case": case.is_edge_case or False,
        "uncertainty": case.uncertainty,
        "notes": case.notes,
    }


def _example_row(case: Case) -> dict[str, Any]:
    return {
        "dataset": CASES,
        "prompt_id": case.case_id,
        "messages": as_stored((Message("user", case.text),)),
        "n_turns": 1,
        "first_words": first_words(case.text),
        "tags": "[]",
        "canary": case.canary,
        "provisional": False,
    }


def _triaged(went: Sequence[Went]) -> TriageData:
    """The cases of a file, without responses."""
    cases = pd.DataFrame(
        {
            "source": pd.Categorical([case.source for case in went]),
            "original_label": pd.Series([case.original_label for case in went], dtype=object),
            "mapped_label": pd.Series([case.mapped_label for case in went], dtype=object),
            "file_gold": np.array([_number(case.gold) for case in went], dtype=float),
            "method": pd.Categorical([str(case.method) for case in went]),
            "uncertainty": np.array([case.uncertainty for case in went], dtype=float),
        }
    )
    none = {names: pd.DataFrame(columns=list(names)) for names in (SAMPLE_COLUMNS, CONFIDENCE_COLUMNS, READ_COLUMNS)}
    votes = frame_of([case.votes for case in went])
    return TriageData(
        cases, votes, none[SAMPLE_COLUMNS], pd.DataFrame(), none[CONFIDENCE_COLUMNS], none[READ_COLUMNS], pd.DataFrame()
    )


def _number(gold: str | None) -> float:
    return np.nan if gold is None else LEVELS[Acuity(gold)]

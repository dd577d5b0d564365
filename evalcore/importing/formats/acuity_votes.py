"""Votes of panels on cases that the study has, CSV; with what their source counted, which must fit them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import bindparam, update
from sqlmodel import Session

from evalcore.errors import RowFault
from evalcore.importing.acuity_panels import Said, Stated, difference, method_of, said_by
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.formats.acuity_cases import check_same_votes, stored_votes, write_votes
from evalcore.importing.formats.acuity_cells import Cells, Vote, amount, gold, needed, votes, whole, word
from evalcore.importing.formats.records import Options
from evalcore.study import lookups
from evalcore.study.schema import Acuity, MappingMethod
from evalcore.study.store import written
from evalcore.study.tables import TABLES
from evalcore.triage import setting_queries

NAME = "acuity-votes"
TITLE = "Votes of panels on cases of triage, CSV"
COLUMNS = {
    "source_dataset": "the source of the case, as dataset in the cases' file",
    "source_id": "its name there",
    "anon_label_1, anon_label_2, ...": "votes: A, B, C, D, A|B, B|C, C|D (also with /), the four names, or Remove",
    "anon_label_1_rater, ...": "who voted (optional)",
    "avg_sd": "mean squared distance over all pairs of votes, those to remove left out; checked (optional)",
    "remove_votes": "how many votes are Remove; checked (optional)",
    "n_raters": "how many votes there are, with or without those to remove; checked (optional)",
    "mapping_method": ", ".join(MappingMethod) + " (optional)",
    "normalized_label": "A, B, C, D, A|B, B|C, C|D (optional)",
}
LARGEST_SPREAD = 9.0


class Panel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line: the votes on one case.

    Attributes:
        avg_sd: Mean squared distance over all pairs of votes, as the file states it.
    """

    line: int
    source: str
    source_id: str
    votes: tuple[Vote, ...]
    method: MappingMethod | None
    gold: Acuity | None
    is_removed: bool
    avg_sd: float | None

    @property
    def case_id(self) -> str:
        """The case's name in the study."""
        return f"{self.source}_{self.source_id}"


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"source_dataset", "source_id", "anon_label_1"} <= keys


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Panel]:  # noqa: ARG001 - the importers' common signature
    """The votes on one case.

    Raises:
        RowFault: The row breaks a rule of the format, or remove_votes or n_raters do not fit its votes.
    """
    given = votes(cells)
    if not given:
        msg = "anon_label_1: expected at least one vote, got nothing"
        raise RowFault(msg)
    _check_counts(cells, given)
    level, is_removed = gold(cells)
    yield Panel(
        line=number,
        source=needed(cells, "source_dataset", "the source's name"),
        source_id=needed(cells, "source_id", "the case's name in its source"),
        votes=given,
        method=word(cells, "mapping_method", MappingMethod),
        gold=level,
        is_removed=is_removed,
        avg_sd=amount(cells, "avg_sd", high=LARGEST_SPREAD, expected="a number from 0 to 9"),
    )


def _check_counts(cells: Cells, given: tuple[Vote, ...]) -> None:
    n, n_removed = len(given), sum(said.vote is Acuity.REMOVE for said in given)
    counted = whole(cells, "remove_votes")
    if counted is not None and counted != n_removed:
        msg = f"remove_votes: expected {n_removed} as in its votes, got {counted}"
        raise RowFault(msg)
    counted = whole(cells, "n_raters")
    if counted is not None and counted not in (n, n - n_removed):
        without = f", or {n - n_removed} without those to remove" if n_removed else ""
        msg = f"n_raters: expected {n} as in its votes{without}, got {counted}"
        raise RowFault(msg)


def complete_cases(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Give cases the gold and the method that they came without; the import appends the one audit event for all of them."""
    if rows:
        table = TABLES["acuity_case"]
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in ("gold", "method")}
        statement = update(table).where(table.c.example_id == bindparam("of_example")).values(**values)
        given = [
            {"of_example": row["example_id"], "new_gold": row["gold"], "new_method": row["method"]} for row in rows
        ]
        session.connection().execute(statement, given)
        written(session).content("acuity_case", [row["example_id"] for row in rows])


ROUNDED = 0.006
"""A file may round avg_sd to two digits; the spreads of two panels of one size differ by more."""


class Votes(Taker):
    """Takes the rows of a file of votes."""

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self._rule = setting_queries.load(self._session).rule
        self._lines: dict[str, int] = {}

    def add(self, rows: Sequence[Panel]) -> None:
        """Check a batch of panels and write the votes that are new."""
        found = lookups.cases_named(self._session, {row.case_id for row in rows})
        known: dict[str, dict[str, Any]] = {row["prompt_id"]: dict(row) for row in found}
        votes = stored_votes(self._session, [row["id"] for row in known.values()])
        added: dict[int, tuple[Vote, ...]] = {}
        completed: list[dict[str, Any]] = []
        for panel, said in zip(rows, said_by([row.votes for row in rows], self._rule), strict=True):
            with self._faults.caught(panel.line):
                _check_spread(panel, said)
                case = known.get(panel.case_id)
                if case is None or case["source"] is None:
                    self._report.no_partner(panel.line, f"case {panel.case_id!r} is not in the study")
                    continue
                if (case["source"], case["source_id"]) != (panel.source, panel.source_id):
                    came, expected = (panel.source, panel.source_id), (case["source"], case["source_id"])
                    msg = f"source_dataset, source_id: expected {' and '.join(expected)} of the case {panel.case_id!r}, got {' and '.join(came)}"
                    raise RowFault(msg)
                _check_stated(panel, case)
                first = self._lines.setdefault(panel.case_id, panel.line)
                before = votes.get(case["id"], ())
                if before:
                    where = "imported before" if first == panel.line else f"on line {first}"
                    check_same_votes(panel.case_id, panel.votes, before, where)
                    self._report.votes_known += len(panel.votes)
                    continue
                stated = Stated(panel.gold, panel.method, panel.is_removed)
                if sentence := difference(panel.case_id, stated, said, panel.votes):
                    self._report.differs(panel.line, sentence)
                added[case["id"]] = votes[case["id"]] = panel.votes
                if changed := _completed(panel, case, said):
                    case |= changed
                    completed.append({"example_id": case["id"], **changed})
        if not self._faults.count:
            write_votes(self._bulk, added, self._report)
            complete_cases(self._session, completed)


def _check_stated(panel: Panel, case: Mapping[str, Any]) -> None:
    """The gold that two files, or two rows, state for one case is one and the same."""
    if panel.gold is not None and case["gold"] not in (None, panel.gold):
        msg = f"normalized_label: expected {case['gold']} for the case {panel.case_id!r} as imported before, got {panel.gold}"
        raise RowFault(msg)


def _completed(panel: Panel, case: Mapping[str, Any], said: Said) -> dict[str, Any]:
    """The gold and method of a case that came without one; nothing where they stay."""
    gold = case["gold"] or panel.gold
    method = case["method"]
    if method == MappingMethod.NONE:
        method = panel.method or (
            MappingMethod.REMOVED if panel.is_removed else method_of(said, panel.votes, gold and Acuity(gold))
        )
    return {} if (gold, method) == (case["gold"], case["method"]) else {"gold": gold, "method": method}


def _check_spread(panel: Panel, said: Said) -> None:
    if panel.avg_sd is not None and not abs(panel.avg_sd - said.spread) <= ROUNDED:
        expected = f"{said.spread:.4g} as in its votes" if said.decides else "nothing, as fewer than two votes stand"
        msg = f"avg_sd: expected {expected}, got {panel.avg_sd:.6g}"
        raise RowFault(msg)

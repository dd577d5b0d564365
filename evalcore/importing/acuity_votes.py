"""Votes of panels: joined with the cases that the study has, compared with the votes it has, then written."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session

from evalcore.errors import RowFault
from evalcore.importers.acuity_cells import Vote
from evalcore.importers.acuity_votes import Panel
from evalcore.importing.acuity_cases import check_same_votes, stored_votes, write_votes
from evalcore.importing.acuity_panels import Said, Stated, difference, method_of, said_by
from evalcore.importing.faults import Faults
from evalcore.importing.report import ImportReport
from evalcore.queries import lookups, triage_settings
from evalcore.schema import Acuity, Mapping
from evalcore.store import Bulk
from evalcore.store.cases import complete_cases

ROUNDED = 0.006
"""A file may round avg_sd to two digits; the spreads of two panels of one size differ by more."""


class Votes:
    """Takes the rows of a file of votes."""

    batch = 500

    def __init__(self, session: Session, bulk: Bulk, report: ImportReport, faults: Faults) -> None:
        self._session = session
        self._bulk = bulk
        self._report = report
        self._faults = faults
        self._rule = triage_settings.load(session).rule
        self._lines: dict[str, int] = {}

    def add(self, rows: Sequence[Panel]) -> None:
        """Check a batch of panels and write the votes that are new."""
        known = {row["prompt_id"]: row for row in lookups.cases_named(self._session, {row.case_id for row in rows})}
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
                    msg = f"source_dataset, source_id: {' and '.join(came)} came, expected {' and '.join(expected)} of the case {panel.case_id!r}"
                    raise RowFault(msg)
                self._check_stated(panel, case)
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
                completed.extend(_completed(panel, case, said))
        if not self._faults.count:
            write_votes(self._bulk, added, self._report)
            complete_cases(self._session, completed)

    def finish(self) -> None:
        """Nothing is left."""

    def _check_stated(self, panel: Panel, case: Any) -> None:
        """The gold that two files state for one case is one and the same."""
        if panel.gold is not None and case["gold"] not in (None, panel.gold):
            msg = f"normalized_label: {panel.gold} came for the case {panel.case_id!r}, expected {case['gold']} as its own file says"
            raise RowFault(msg)


def _completed(panel: Panel, case: Any, said: Said) -> list[dict[str, Any]]:
    """The gold and method of a case that came without one."""
    gold = case["gold"] or panel.gold
    method = case["method"]
    if method == Mapping.NONE:
        method = panel.method or (
            Mapping.REMOVED if panel.is_removed else method_of(said, panel.votes, gold and Acuity(gold))
        )
    if (gold, method) == (case["gold"], case["method"]):
        return []
    return [{"example_id": case["id"], "gold": gold, "method": method}]


def _check_spread(panel: Panel, said: Said) -> None:
    if panel.avg_sd is not None and not abs(panel.avg_sd - said.spread) <= ROUNDED:
        expected = f"{said.spread:.4g} as in its votes" if said.decides else "nothing, as fewer than two votes stand"
        msg = f"avg_sd: {panel.avg_sd:.6g} came, expected {expected}"
        raise RowFault(msg)

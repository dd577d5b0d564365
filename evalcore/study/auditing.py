"""Prove from the audit trail that nothing was changed past the program: the chain of events, every row that they name, and the triggers."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study import trail as queries
from evalcore.study.acting import allow
from evalcore.study.db import reading
from evalcore.study.policies import check_can_see_audit
from evalcore.study.row_hashes import CONTENT, LEDGER, VERDICT, Digest, ledger_row, runs_told
from evalcore.study.schema import Viewer
from evalcore.study.store import FIRST_PREVIOUS_HASH
from evalcore.study.store.events import WROTE
from evalcore.study.tables import AuditEvent

_REMOVED_OR_PUT_IN = "it does not follow the event before it, so one was removed or put in"
_CHANGED = "its content was changed after it was written"
_HASH = re.compile(r"[0-9a-f]{64}")
_WORDS = {
    "acuity_case": "case",
    "analysis": "stated analysis",
    "exposure": "record of who saw verdicts",
    "task": "assigned item",
}


@dataclass(frozen=True)
class ChainReport:
    """How far the trail holds.

    Attributes:
        n_events: Events walked; up to and with the broken one where there is one.
        last_hash: Of the last event that holds: write it down, and a trail that was shortened or written anew shows too.
        broken_event: Number of the first event that does not fit, or None.
        why: What does not fit there.
        n_verdicts, n_rows: Verdicts, and rows that they rest on, whose hash was recomputed; none where the chain is broken.
        faults: What else does not hold, in sentences.
    """

    n_events: int
    last_hash: str
    broken_event: int | None = None
    why: str = ""
    n_verdicts: int = 0
    n_rows: int = 0
    faults: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return self.broken_event is None and not self.faults

    @property
    def sentence(self) -> str:
        """The report in words."""
        if self.broken_event is not None:
            return f"The audit trail is broken at event {self.broken_event}: {self.why}."
        if self.faults:
            return f"The audit trail does not hold. {' '.join(self.faults)}"
        return (
            f"The audit trail holds: {counted(self.n_events, 'event')}, {counted(self.n_verdicts, 'verdict')} and "
            f"{counted(self.n_rows, 'row')} that they rest on. Last hash {self.last_hash}."
        )


def check(engine: Engine, viewer: Viewer) -> None:
    """The first thing of whoever is shown the trail, or what was found in it.

    Raises:
        NotAllowed: The viewer is no researcher and no lead.
    """
    with reading(engine) as session:
        allow(session, viewer, check_can_see_audit)


def events(engine: Engine, viewer: Viewer, *, is_blind: bool, **wanted: Any) -> tuple[pd.DataFrame, int]:
    """A page of the trail and how many events fit, as `contents.audit_trail` gives them.

    Args:
        is_blind: Something waits for the viewer's own read: then only what tells them nothing.

    Raises:
        NotAllowed: The viewer is no researcher and no lead.
    """
    with reading(engine) as session:
        allow(session, viewer, check_can_see_audit)
        return contents.audit_trail(session, blind=viewer if is_blind else None, **wanted)


def words(engine: Engine, viewer: Viewer, *, is_blind: bool) -> dict[str, list[str]]:
    """Who and what occur in the trail, as `contents.audit_words` gives them.

    Raises:
        NotAllowed: The viewer is no researcher and no lead.
    """
    with reading(engine) as session:
        allow(session, viewer, check_can_see_audit)
        return contents.audit_words(session, viewer if is_blind else None)


def verify(session: Session, *, expected: str | None = None, kept: Path | None = None) -> ChainReport:
    """Recompute every hash: of the events, each from the one before it, then of the rows that they name; and look at the triggers.

    A trail that somebody shortened, or wrote anew with all its hashes, holds in itself: only a hash that was kept elsewhere shows that.

    Args:
        session: Reads all of the study as it is at one moment.
        expected: A hash that is the last event's, or once was.
        kept: The file to which the last hash of each act was appended.

    Raises:
        OverreadError: `expected` is no hash.
    """
    if expected is not None and not _HASH.fullmatch(expected):
        msg = f"--expect: expected 64 hexadecimal digits, found {expected[:80]!r}"
        raise OverreadError(msg)
    wanted = _kept_hashes(kept) | ({expected: "--expect"} if expected else {})
    acts = {VERDICT: _Acts("verdict"), LEDGER: _Acts("kept hash")}
    n_events, last = 0, FIRST_PREVIOUS_HASH
    for number, event in contents.events(session):
        n_events += 1
        why = _wrong(event, last)
        if event is None or why:
            return ChainReport(n_events, last, number, why)
        last = event.hash
        wanted.pop(last, None)
        for table, told in _told(event).items():
            if table in acts:
                acts[table].add(number, told)
    faults = [] if n_events or queries.is_empty(session) else ["It is empty, and the study is not."]
    changed = _Tally("verdict")
    faults += acts[VERDICT].faults(_verdicts(session, changed))
    faults += changed.faults("was changed after it was written", "were")
    faults += acts[LEDGER].faults(
        (number, ledger_row(table, row, content)) for number, table, row, content in queries.ledger(session)
    )
    n_rows = 0
    for table in CONTENT:
        n_found, found = _content_faults(session, table)
        n_rows += n_found
        faults += found
    faults += _guard_faults(session)
    faults += [
        f"No event has the hash {one} ({where}): events were removed from the end, or the trail was written anew."
        for one, where in list(wanted.items())[:1]
    ]
    return ChainReport(n_events, last, n_verdicts=changed.n_rows, n_rows=n_rows, faults=tuple(faults))


def _wrong(event: AuditEvent | None, last: str) -> str:
    if event is None:
        return _CHANGED
    if event.previous_hash != last:
        return _REMOVED_OR_PUT_IN
    return "" if _fits(event) else _CHANGED


def _fits(event: AuditEvent) -> bool:
    try:
        return event.hash == event.expected_hash()
    except (TypeError, ValueError):  # bytes where text was, or text that is no UTF-8
        return False


def _told(event: AuditEvent) -> dict[str, dict[str, str]]:
    if f'"{WROTE}"' not in event.detail:
        return {}
    found: dict[str, dict[str, str]] = json.loads(event.detail).get(WROTE, {})
    return found


def _kept_hashes(kept: Path | None) -> dict[str, str]:
    """The hashes of a file of kept ones, each with where it stands."""
    if kept is None or not kept.exists():
        return {}
    with kept.open(encoding="utf-8", errors="replace") as lines:
        numbered = ((line.split(), number) for number, line in enumerate(lines, start=1))
        return {words[-1]: f"{kept} line {number}" for words, number in numbered if words}


class _Tally:
    """Rows that do not hold: how many, and the first."""

    def __init__(self, word: str) -> None:
        self.n_rows = 0
        self._word, self._numbers, self._first = word, 0, 0

    def add(self, number: int, n_rows: int = 1) -> None:
        self._first = self._first if self._numbers else number
        self._numbers += n_rows

    def faults(self, one: str, many: str) -> list[str]:
        """What was found, as a sentence with the first of them."""
        if not self._numbers:
            return []
        more = f" ({self._numbers:,} {many} in all)" if self._numbers > 1 else ""
        return [f"{self._word.capitalize()} {self._first} {one}{more}."]

    def __bool__(self) -> bool:
        return self._numbers > 0


class _Acts:
    """Which event names each row of a table, and the digest that it gives of them."""

    def __init__(self, word: str) -> None:
        self._runs: list[tuple[int, int, int]] = []
        self._told: dict[int, str] = {}
        self._missing, self._unnamed = _Tally(word), _Tally(word)
        self._word = word

    def add(self, event: int, told: dict[str, str]) -> None:
        """What an event says that its act wrote."""
        self._runs += [(first, last, event) for first, last in runs_told(told["rows"])]
        self._told[event] = told["sha256"]

    def faults(self, rows: Iterable[tuple[int, bytes]]) -> list[str]:
        """Compare with the rows that are there, by number, each with what stands for its content."""
        self._runs.sort()
        left = dict.fromkeys(self._told, 0)
        for _, _, event in self._runs:
            left[event] += 1
        wrong = self._walk(iter(rows), left)
        found = self._missing.faults("is gone", "are")
        found += self._unnamed.faults("is named by no event", "are")
        if wrong and not self._missing:
            found.append(f"Event {min(wrong)} tells of other content of what its act wrote ({self._word}s).")
        return found

    def _walk(self, rows: Iterator[tuple[int, bytes]], left: dict[int, int]) -> list[int]:
        """Events whose digest is not that of the rows that are there."""
        sums: dict[int, Digest] = {}
        wrong = []
        row = next(rows, None)
        for first, last, event in self._runs:
            while row is not None and row[0] < first:
                self._unnamed.add(row[0])
                row = next(rows, None)
            digest = sums.setdefault(event, Digest())
            number = first
            while number <= last:
                here = last + 1 if row is None else min(row[0], last + 1)
                if here > number:
                    self._missing.add(number, here - number)
                elif row is not None:
                    digest.add(*row)
                    row = next(rows, None)
                    here += 1
                number = here
            left[event] -= 1
            if not left[event] and sums.pop(event).hex() != self._told[event]:
                wrong.append(event)
        while row is not None:
            self._unnamed.add(row[0])
            row = next(rows, None)
        return wrong


def _verdicts(session: Session, changed: _Tally) -> Iterator[tuple[int, bytes]]:
    for row in queries.verdicts(session):
        changed.n_rows += 1
        if row.found is None or row.found != row.kept:
            changed.add(row.number)
        yield row.number, row.kept or b""


def _content_faults(session: Session, table: str) -> tuple[int, list[str]]:
    word = _WORDS.get(table, table)
    changed, put_in, gone = _Tally(word), _Tally(word), _Tally(word)
    for row in queries.content(session, table):
        changed.n_rows += 1
        if row.kept is None:
            put_in.add(row.number)
        elif row.found != row.kept:
            changed.add(row.number)
    for number in queries.gone(session, table):
        gone.add(number)
    found = changed.faults("was changed after it was written", "were")
    found += put_in.faults("was put in past the program: the trail has no hash of it", "were")
    return changed.n_rows, found + gone.faults("is gone", "are")


def _guard_faults(session: Session) -> list[str]:
    """Triggers that are not as the program made them."""
    found, expected = queries.triggers(session), queries.expected_triggers(session)
    faults: list[str] = []
    names: dict[str, Any] = {
        "is missing": sorted(expected.keys() - found.keys()),
        "is switched off": sorted(name for name in expected.keys() & found.keys() if "(switched off)" in found[name]),
        "was changed": sorted(
            name
            for name in expected.keys() & found.keys()
            if found[name] != expected[name] and "(switched off)" not in found[name]
        ),
        "is none of the program's": sorted(found.keys() - expected.keys()),
    }
    for what, which in names.items():
        if which:
            more = f" ({len(which)} of {len(expected)} in all)" if len(which) > 1 else ""
            faults.append(f"The trigger {which[0]} {what}{more}.")
    if queries.are_asleep(session):
        faults.append("No trigger fires: session_replication_role is replica.")
    return faults

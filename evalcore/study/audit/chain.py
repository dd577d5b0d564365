"""Prove from the audit trail that nothing was changed past the program: the chain of events, every row that they name, and the triggers."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Engine, func, or_, select
from sqlmodel import Session

from evalcore.errors import refuse
from evalcore.stats.wording import counted
from evalcore.study import schema
from evalcore.study.acting import allow
from evalcore.study.audit import trail, triggers
from evalcore.study.audit.row_hashes import CONTENT, LEDGER, VERDICT, Digest, ledger_row, runs_told
from evalcore.study.corrections.mending import MENDED, digest
from evalcore.study.corrections.showing import hides
from evalcore.study.db import reading
from evalcore.study.frames import frame
from evalcore.study.policies import check_can_see_audit
from evalcore.study.store import FIRST_PREVIOUS_HASH, WROTE
from evalcore.study.tables import TABLES, AuditEvent

if TYPE_CHECKING:
    import pandas as pd

TELL_NO_LABEL = frozenset({
    schema.FILE_IMPORTED, schema.PART_IMPORTED, schema.LABELS_EXPORTED, schema.SIGNED_IN, schema.SIGNED_OUT, schema.SIGN_IN_REFUSED,
    "person added", "person invited", "person deactivated", "person let in again", "identity bound", "identity unbound", "roles changed",
    "items assigned", "guideline changed", "rules changed", "analysis stated", "families set", "label map set", "label map reset",
    "triage settings changed", "confidence meaning set", "run started", "run stopped", "run retried",
})  # fmt: skip
"""Acts that nobody does because of what a label is: who is to read or settle blind may know of them. That a read was kept tells that the judge
said otherwise, and how many acts lie between two others tells how many there were."""
_ESCAPED = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
_EVENT = TABLES["audit_event"].c
_HASH = re.compile(r"[0-9a-f]{64}")
_WORDS = {
    "acuity_case": "case",
    "analysis": "stated analysis",
    "exposure": "record of who saw verdicts",
    "response_note": "line between a reader and the lead",
    "task": "assigned item",
}


@dataclass(frozen=True)
class ChainReport:
    """How far the trail holds: up to and with the event that does not fit (`broken_event`, `why`), and what else does not hold (`faults`).

    `n_verdicts`, `n_rows`: whose hash was recomputed. `last_hash`: written down elsewhere, it shows a trail that was shortened or written anew.
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


def events(
    engine: Engine,
    viewer: schema.Viewer,
    *,
    is_blind: bool,
    search: str = "",
    actor: str | None = None,
    action: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> "tuple[pd.DataFrame, int]":
    """A page of the trail, newest first, and how many events fit. `is_blind`: only the viewer's own acts, and those of `TELL_NO_LABEL`."""
    conditions = _open_to(viewer, is_blind=is_blind)
    for word in search.split():
        searched = (_EVENT.actor, _EVENT.action, _EVENT.subject, _EVENT.detail)
        conditions.append(or_(*(column.ilike(f"%{word.translate(_ESCAPED)}%", escape="\\") for column in searched)))
    if actor:
        conditions.append(_EVENT.actor == actor)
    if action:
        conditions.append(_EVENT.action == action)
    fitting = select(func.count()).select_from(AuditEvent).where(*conditions)
    further = (_EVENT[name] for name in ("at", "actor", "action", "subject", "detail", "hash"))
    page = select(_EVENT.id.label("event"), *further).where(*conditions).order_by(_EVENT.id.desc())
    with reading(engine) as session:
        allow(session, viewer, check_can_see_audit)
        n_fitting = int(session.connection().execute(fitting).scalar_one())
        return frame(session, page.limit(limit).offset(offset)), n_fitting


def words(engine: Engine, viewer: schema.Viewer, *, is_blind: bool) -> dict[str, list[str]]:
    """Who and what occur in that trail: actor, action."""
    columns = {name: select(_EVENT[name]).where(*_open_to(viewer, is_blind=is_blind)) for name in ("actor", "action")}
    with reading(engine) as session:
        allow(session, viewer, check_can_see_audit)
        found = session.connection().execute
        return {name: sorted(found(column.distinct()).scalars()) for name, column in columns.items()}


def _open_to(viewer: schema.Viewer, *, is_blind: bool) -> list[ColumnElement[bool]]:
    return [or_(_EVENT.action.in_(sorted(TELL_NO_LABEL)), _EVENT.actor == viewer.name)] if is_blind else []


def verify(session: Session, *, expected: str | None = None, kept: Path | None = None) -> ChainReport:
    """Recompute every hash of events and rows, and look at the triggers; only a hash kept elsewhere (`expected`, `kept`) shows a trail that was cut off."""
    if expected is not None and not _HASH.fullmatch(expected):
        refuse(f"--expect: expected 64 hexadecimal digits, got {expected[:80]!r}")
    wanted: dict[str, str] = {}
    mended = ""
    if kept is not None and kept.exists():
        with kept.open(encoding="utf-8", errors="replace") as lines:
            numbered = ((line.split(), number) for number, line in enumerate(lines, start=1))
            wanted = {words[-1]: f"{kept} line {number}" for words, number in numbered if words}
    if expected:
        wanted[expected] = "--expect"
    acts = {VERDICT: _Acts("verdict"), LEDGER: _Acts("kept hash")}
    n_events, last = 0, FIRST_PREVIOUS_HASH
    for number, event in trail.events(session):
        n_events += 1
        why = _wrong(event, last)
        if event is None or why:
            return ChainReport(n_events, last, number, why)
        last = event.hash
        wanted.pop(last, None)
        wrote = json.loads(event.detail).get(WROTE, {}) if f'"{WROTE}"' in event.detail else {}
        if f'"{MENDED}"' in event.detail and event.action in (schema.FILE_IMPORTED, *schema.MENDING):
            mended = str(json.loads(event.detail).get(MENDED, mended))
        for table in wrote.keys() & acts.keys():
            acts[table].add(number, wrote[table])
    faults = [] if n_events or trail.is_empty(session) else ["It is empty, and the study is not."]
    changed = _Tally("verdict")
    faults += acts[VERDICT].faults(_verdicts(session, changed))
    faults += changed.faults("was changed after it was written", "were")
    rows = ((number, ledger_row(table, row, content)) for number, table, row, content in trail.ledger(session))
    faults += acts[LEDGER].faults(rows)
    n_rows = 0
    for table in CONTENT:
        n_found, content_faults = _content_faults(session, table)
        n_rows += n_found
        faults += content_faults
    if (mended or hides(session.connection())) and digest(session) != mended:
        faults.append("What is withdrawn, marked as broken or renamed is not what the last act on it left.")
    faults += _guard_faults(session)
    faults += [
        f"No event has the hash {one} ({where}): events were removed from the end, or the trail was written anew."
        for one, where in list(wanted.items())[:1]
    ]
    return ChainReport(n_events, last, n_verdicts=changed.n_rows, n_rows=n_rows, faults=tuple(faults))


def _wrong(event: AuditEvent | None, last: str) -> str:
    if event is not None and event.previous_hash != last:
        return "it does not follow the event before it, so one was removed or put in"
    try:
        fits = event is not None and event.hash == event.expected_hash()
    except (TypeError, ValueError):  # bytes where text was, or text that is no UTF-8
        fits = False
    return "" if fits else "its content was changed after it was written"


class _Tally:
    def __init__(self, word: str) -> None:
        self.n_rows = 0
        self._word, self._numbers, self._first = word, 0, 0

    def add(self, number: int, n_rows: int = 1) -> None:
        self._first = self._first if self._numbers else number
        self._numbers += n_rows

    def faults(self, one: str, many: str) -> list[str]:
        if not self._numbers:
            return []
        more = f" ({self._numbers:,} {many} in all)" if self._numbers > 1 else ""
        return [f"{self._word.capitalize()} {self._first} {one}{more}."]

    def __bool__(self) -> bool:
        return self._numbers > 0


class _Acts:
    def __init__(self, word: str) -> None:
        self._word, self._missing, self._unnamed = word, _Tally(word), _Tally(word)
        self._runs: list[tuple[int, int, int]] = []
        self._expected: dict[int, str] = {}

    def add(self, event: int, wrote: dict[str, str]) -> None:
        self._runs += [(first, last, event) for first, last in runs_told(wrote["rows"])]
        self._expected[event] = wrote["sha256"]

    def faults(self, rows: Iterable[tuple[int, bytes]]) -> list[str]:
        """Compare with the rows that are there, by number, each with what stands for its content."""
        self._runs.sort()
        left, wrong = Counter(event for *_, event in self._runs), []
        digests: dict[int, Digest] = {}
        remaining = iter(rows)
        row = next(remaining, None)
        for first, last, event in self._runs:
            number, digest = first, digests.setdefault(event, Digest())
            while row is not None and row[0] <= last:
                if row[0] < first:
                    self._unnamed.add(row[0])
                else:
                    self._missing.add(number, row[0] - number)
                    digest.add(*row)
                    number = row[0] + 1
                row = next(remaining, None)
            self._missing.add(number, last + 1 - number)
            left[event] -= 1
            if not left[event] and digests.pop(event).hex() != self._expected[event]:
                wrong.append(event)
        while row is not None:
            self._unnamed.add(row[0])
            row = next(remaining, None)
        sentences = self._missing.faults("is gone", "are") + self._unnamed.faults("is named by no event", "are")
        if wrong and not self._missing:
            sentences.append(f"Event {min(wrong)} tells of other content of what its act wrote ({self._word}s).")
        return sentences


def _verdicts(session: Session, changed: _Tally) -> Iterator[tuple[int, bytes]]:
    for row in trail.verdicts(session):
        changed.n_rows += 1
        if row.found is None or row.found != row.kept:
            changed.add(row.number)
        yield row.number, row.kept or b""


def _content_faults(session: Session, table: str) -> tuple[int, list[str]]:
    changed, put_in, gone = (_Tally(_WORDS.get(table, table)) for _ in range(3))
    for row in trail.content(session, table):
        changed.n_rows += 1
        if row.kept is None:
            put_in.add(row.number)
        elif row.found != row.kept:
            changed.add(row.number)
    for number in trail.gone(session, table):
        gone.add(number)
    sentences = changed.faults("was changed after it was written", "were")
    sentences += put_in.faults("was put in past the program: the trail has no hash of it", "were")
    return changed.n_rows, sentences + gone.faults("is gone", "are")


def _guard_faults(session: Session) -> list[str]:
    present, expected = trail.triggers(session), triggers.texts(session.get_bind().dialect.name)
    off = {name for name, text in present.items() if "(switched off)" in text}
    names = {
        "is missing": expected.keys() - present.keys(),
        "is switched off": off & expected.keys(),
        "was changed": {name for name in expected.keys() & present.keys() - off if present[name] != expected[name]},
        "is none of the program's": present.keys() - expected.keys(),
    }
    faults = [
        f"The trigger {min(which)} {what}{f' ({len(which)} of {len(expected)} in all)' if len(which) > 1 else ''}."
        for what, which in names.items()
        if which
    ]
    if trail.are_asleep(session):
        faults.append("No trigger fires: session_replication_role is replica.")
    return faults

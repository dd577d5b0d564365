"""Walk the hash chain of the audit trail."""

from dataclasses import dataclass

from sqlmodel import Session

from evalcore.metrics.wording import counted
from evalcore.queries import study
from evalcore.store import FIRST_PREVIOUS_HASH
from evalcore.tables import AuditEvent

_REMOVED_OR_PUT_IN = "it does not follow the event before it, so one was removed or put in"
_CHANGED = "its content was changed after it was written"


@dataclass(frozen=True)
class ChainReport:
    """How far the chain holds.

    Attributes:
        n_events: Events walked; up to and with the broken one where there is one.
        last_hash: Of the last event that holds: write it down, and a shortened trail shows too.
        broken_event: Number of the first event that does not fit, or None.
        why: What does not fit there.
    """

    n_events: int
    last_hash: str
    broken_event: int | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """The report in words."""
        if self.broken_event is None:
            return f"The audit trail holds: {counted(self.n_events, 'event')}, last hash {self.last_hash[:16]}."
        return f"The audit trail is broken at event {self.broken_event}: {self.why}."


def verify(session: Session) -> ChainReport:
    """Recompute every hash from its event and the hash before it; stop at the first that differs.

    Events taken off the end leave a shorter trail that holds: only a last hash that was written down shows that.
    """
    n_events, last = 0, FIRST_PREVIOUS_HASH
    for number, event in study.events(session):
        n_events += 1
        if event is None:
            return ChainReport(n_events, last, number, _CHANGED)
        if event.previous_hash != last:
            return ChainReport(n_events, last, number, _REMOVED_OR_PUT_IN)
        if not _fits(event):
            return ChainReport(n_events, last, number, _CHANGED)
        last = event.hash
    return ChainReport(n_events, last)


def _fits(event: AuditEvent) -> bool:
    try:
        return event.hash == event.expected_hash()
    except (TypeError, ValueError):  # bytes where text was, or text that is no UTF-8
        return False

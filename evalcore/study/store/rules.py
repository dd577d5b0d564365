"""What a lead lays down for readers: the study's rules, and the guideline in versions."""

from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.study.schema import Rules
from evalcore.study.store.events import append_event
from evalcore.study.store.people import ensure_study
from evalcore.study.store.plain_text import is_storable
from evalcore.study.store.written import written
from evalcore.study.tables import Guideline, now

MAX_GUIDELINE = 100_000


def set_guideline(session: Session, guideline: str, *, actor: str) -> int:
    """Write a new version of what readers are told. Returns its number.

    Raises:
        OverreadError: It is empty, too long, or holds what no database holds.
    """
    if not guideline.strip() or len(guideline) > MAX_GUIDELINE or not is_storable(guideline):
        msg = f"guideline: expected 1 to {MAX_GUIDELINE:,} characters of plain text, got {len(guideline):,}"
        raise OverreadError(msg)
    row = Guideline(text=guideline, created_by=actor, created_at=now())
    session.add(row)
    session.flush()
    written(session).content("guideline", [row.version or 0])
    detail = {"characters": len(guideline)}
    append_event(session, actor=actor, action="guideline changed", subject=f"version {row.version}", detail=detail)
    return row.version or 0


def set_rules(session: Session, rules: Rules, *, actor: str) -> None:
    """Change what the study has chosen; what differs is in the trail.

    Raises:
        OverreadError: A share is none.
    """
    for name, share in (("check_share", rules.check_share), ("control_share", rules.control_share)):
        if not 0 <= share <= 1:
            msg = f"{name}: expected a share from 0 to 1, got {share}"
            raise OverreadError(msg)
    study = ensure_study(session)
    wanted = {
        "reading_mode": rules.mode.value,
        "judge": rules.judge,
        "check_share": rules.check_share,
        "both_against_judge": rules.both_against_judge,
        "control_share": rules.control_share,
        "blind": rules.blind,
        "leads_read": rules.leads_read,
    }
    changed = {name: value for name, value in wanted.items() if getattr(study, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(study, name, value)
        session.add(study)
        append_event(session, actor=actor, action="rules changed", subject="study", detail=changed)

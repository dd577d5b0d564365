"""Who may do what.

A rule is a pair: `check_...` raises the sentence, `can_...` asks it, so the same words enforce the rule and explain the disabled
button.
"""

from collections.abc import Callable

from evalcore.errors import NotAllowed
from evalcore.schema import Role, Viewer

READERS = frozenset({Role.REVIEWER, Role.ADJUDICATOR})
STUDY = frozenset({Role.RESEARCHER, Role.LEAD})


def _check(viewer: Viewer, wanted: frozenset[Role], act: str) -> None:
    if not viewer.roles & wanted:
        held = "is " + " and ".join(sorted(viewer.roles)) if viewer.roles else "has no role"
        msg = f"{act} takes the role {' or '.join(sorted(wanted))}. {viewer.name} {held} in this study."
        raise NotAllowed(msg)


def check_can_give_verdict(viewer: Viewer) -> None:
    """Physicians of the study give verdicts."""
    _check(viewer, READERS, "Giving a verdict")


def check_can_import(viewer: Viewer) -> None:
    """Researchers and leads bring data in."""
    _check(viewer, STUDY, "Importing")


def check_can_export(viewer: Viewer) -> None:
    """Everybody in the study may take its labels out."""
    _check(viewer, frozenset(Role), "Exporting")


def check_can_add_people(viewer: Viewer) -> None:
    """The lead says who is in the study."""
    _check(viewer, frozenset({Role.LEAD}), "Adding people")


def check_can_see_audit(viewer: Viewer) -> None:
    """The trail names people: researchers and leads read it."""
    _check(viewer, STUDY, "Reading the audit trail")


def reason(check: Callable[[Viewer], None], viewer: Viewer) -> str:
    """Why the viewer may not, as a sentence; empty where there is no reason."""
    try:
        check(viewer)
    except NotAllowed as refusal:
        return str(refusal)
    return ""


def can_give_verdict(viewer: Viewer) -> bool:
    """Whether `check_can_give_verdict` passes."""
    return not reason(check_can_give_verdict, viewer)


def can_import(viewer: Viewer) -> bool:
    """Whether `check_can_import` passes."""
    return not reason(check_can_import, viewer)


def can_export(viewer: Viewer) -> bool:
    """Whether `check_can_export` passes."""
    return not reason(check_can_export, viewer)


def can_add_people(viewer: Viewer) -> bool:
    """Whether `check_can_add_people` passes."""
    return not reason(check_can_add_people, viewer)


def can_see_audit(viewer: Viewer) -> bool:
    """Whether `check_can_see_audit` passes."""
    return not reason(check_can_see_audit, viewer)

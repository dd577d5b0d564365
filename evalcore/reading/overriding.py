"""A physician's verdicts of their own accord, with the judge's in view: override, say why, undo. Each is a new verdict."""

from typing import Any

from evalcore.errors import AlreadyChanged, NotFound, refuse
from evalcore.reading import read_queries
from evalcore.reading.adjudication import hidden_examples
from evalcore.reading.reviewing import Decision, check_answer, check_decision, of_decision
from evalcore.study import store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, writing
from evalcore.study.policies import check_can_give_verdict, check_can_open
from evalcore.study.schema import Ask, RaterKind, Selection, Stage, Verdict, Viewer
from evalcore.study.tables import Verdict as VerdictRow

_SAID = ("label", "confidence", "explanation", "cause", "severity", "right_for_wrong_reason")
_READ = ("selection", "inclusion_probability", "blinded")
_TAKEN_BACK: dict[str, Any] = {"label": None, "selection": Selection.VOLUNTEERED, "blinded": False}


def give_verdict(
    engine: Engine,
    viewer: Viewer,
    *,
    response_id: int,
    criterion_id: int | None,
    decision: Decision,
    judge: str,
    seen: int | None,
) -> int:
    """Store an open verdict, volunteered, with the judge's in view. Returns its number. `seen`: the viewer's own that the screen showed, or None."""
    check_answer(decision.label, Ask.RESPONSE_ACUITY if criterion_id is None else Ask.RUBRIC)
    with writing(engine) as session:
        allow(session, viewer, check_can_give_verdict)
        example_id = read_queries.example_of(session, response_id)
        if example_id is not None:  # a page that was left open gives none on what has been assigned to the viewer since
            check_can_open(viewer, example_id, hidden_examples(session, viewer, example_id))
        item = read_queries.item(session, response_id, criterion_id, judge=judge)
        if item is None:
            what = "is not in this study" if criterion_id is None else f"has no criterion {criterion_id}"
            refuse(f"Response {response_id} {what}.", NotFound)
        check_decision(decision, item["judge_label"])
        rater = store.ensure_rater(session, RaterKind.REVIEWER, viewer.name)
        _check_seen(session, response_id, criterion_id, rater, seen)
        verdict = Verdict(
            **of_decision(decision),
            example_id=item["example_id"],
            response_id=response_id,
            criterion_id=criterion_id,
            rater_id=rater,
            stage=Stage.OPEN,
            selection=Selection.VOLUNTEERED,
            blinded=False,
            supersedes=seen,
        )
        overridden = item["judge_label"] is not None and decision.label != item["judge_label"]
        action = "judge overridden" if overridden else "verdict given"
        return store.add_verdicts(session, [verdict], actor=viewer.name, action=action)[0]


def undo(engine: Engine, viewer: Viewer, *, response_id: int, criterion_id: int | None, seen: int) -> int:
    """Go back to what the viewer's verdict was before: a new verdict that says the same, or one that takes it back."""
    with writing(engine) as session:
        allow(session, viewer, check_can_give_verdict)
        rater = store.ensure_rater(session, RaterKind.REVIEWER, viewer.name)
        current = _check_seen(session, response_id, criterion_id, rater, seen)
        if current is None:
            refuse("There is nothing to undo here.", AlreadyChanged)
        before = session.get(VerdictRow, current.supersedes) if current.supersedes else None
        verdict = Verdict(
            **({name: getattr(before, name) for name in (*_SAID, *_READ)} if before else _TAKEN_BACK),
            example_id=current.example_id,
            response_id=response_id,
            criterion_id=criterion_id,
            rater_id=rater,
            stage=Stage.OPEN,
            supersedes=seen,
        )
        return store.add_verdicts(session, [verdict], actor=viewer.name, action="verdict undone")[0]


def _check_seen(
    session: Session, response_id: int, criterion_id: int | None, rater: int, seen: int | None
) -> VerdictRow | None:
    current = read_queries.newest_of(session, response_id, criterion_id, rater, Stage.OPEN)
    if (current.id if current else None) != seen:
        msg = "Your verdict here was changed in another tab. The newer one is shown now; the last click was not saved."
        raise AlreadyChanged(msg)
    return current

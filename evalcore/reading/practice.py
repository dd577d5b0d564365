"""A practice round before the first real read: responses with a settled label, read as for real, with feedback on each.

Nothing of it is a read: marks stay with the page, and the trail alone keeps how many labels agreed, so that no statistic can count it. Feedback shows
what physicians settled, never who, nor anything of the model or the judge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evalcore.errors import NotFound, refuse
from evalcore.reading import practice_queries, queries, read_queries
from evalcore.reading.practice_queries import Round, Score
from evalcore.reading.queries import Asked, Draft
from evalcore.reading.reference import ADJUDICATED, reference_labels
from evalcore.reading.reviewing import OpenReview, check_answer, missing
from evalcore.study import contents, frames, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading as reads, writing
from evalcore.study.policies import check_can_practise, check_can_read
from evalcore.study.schema import PRACTISED, Ask, RaterKind, Selection, Stage, Viewer
from evalcore.study.tables import Reading, now


@dataclass(frozen=True)
class Settled:
    """What physicians settled on one criterion: the label, whether by an adjudicator, and the adjudicator's reason where there is one to show."""

    label: str
    by_adjudicator: bool
    rationale: str | None


@dataclass(frozen=True)
class Feedback:
    """A practice read beside what physicians settled, by criterion_id; a criterion that is not settled any more has no label to compare with."""

    labels: Mapping[int | None, str]
    settled: Mapping[int | None, Settled]

    @property
    def score(self) -> Score:
        """How many labels agree, of how many that can be compared."""
        return sum(self.labels[key] == each.label for key, each in self.settled.items()), len(self.settled)


def waiting(engine: Engine, viewer: Viewer, *, at: datetime | None = None) -> Round | None:
    """The practice round that comes next: nothing real is in hand, and the next real response is of an assignment that begins with it."""
    with reads(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        begun = {number: own for number, own in practice_queries.rounds(session, viewer).items() if own.left}
        if not begun or queries.readings(session, viewer.person_id):
            return None
        task = queries.next_task(session, viewer, at or now())
        return begun.get(task.assignment_id) if task is not None else None


def open_practice(engine: Engine, viewer: Viewer, assignment_id: int, response_id: int) -> OpenReview:
    """A practice response as Review shows any other. Its reading is in no table: its number is below 0, so that no act can find it."""
    with reads(engine) as session:
        asked = _asked(session, viewer, assignment_id, response_id)
        guideline = contents.guideline(session)
        version = guideline.version if guideline else None
        desk = Reading(id=-response_id, task_id=0, person_id=viewer.person_id, guideline_version=version)
        material = queries.material(session, asked.target)
        return OpenReview(desk, asked, material, drafts={}, first={}, decided={}, judge=None, judged={})


def practise(
    engine: Engine, viewer: Viewer, assignment_id: int, response_id: int, drafts: Mapping[int | None, Draft]
) -> Feedback:
    """Lock a practice read: the trail keeps how many labels agree, and only then is it told which."""
    with writing(engine) as session:
        asked = _asked(session, viewer, assignment_id, response_id)
        keys: list[int | None] = [item.criterion_id for item in queries.material(session, asked.target).items]
        if unanswered := missing(keys, drafts):
            refuse(f"{len(unanswered)} of {len(keys)} still need an answer, or the reason why they cannot be assessed.")
        labels = {key: drafts[key].label or "" for key in keys}
        for label in labels.values():
            check_answer(label, Ask.RUBRIC)
        feedback = Feedback(labels, _settled(session, asked.example_id, response_id, keys))
        agreed, compared = feedback.score
        detail = {"assignment": assignment_id, "response": response_id, "agreed": agreed, "compared": compared}
        subject = queries.subject(asked.example_id, response_id)
        store.append_event(session, actor=viewer.name, action=PRACTISED, subject=subject, detail=detail)
        return feedback


def _asked(session: Session, viewer: Viewer, assignment_id: int, response_id: int) -> Asked:
    own = practice_queries.rounds(session, viewer).get(assignment_id)
    allow(session, viewer, check_can_practise, own.responses if own else (), response_id)
    example = read_queries.example_of(session, response_id)
    if example is None:
        refuse(f"This study has no response {response_id}.", NotFound)
    return Asked(0, assignment_id, Ask.RUBRIC, example, response_id, 1.0, Selection.VOLUNTEERED, 1, 1)


def _settled(session: Session, example_id: int, response_id: int, keys: list[int | None]) -> dict[int | None, Settled]:
    """An adjudicator's reason is shown only where the judge's verdict was not in view: else it may tell that."""
    verdicts = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True, example_ids=[example_id])
    verdicts = verdicts.loc[verdicts["response_id"].eq(response_id)]
    if verdicts.empty:
        return {}
    table = reference_labels(verdicts).dropna(subset="reference_label")
    settlements = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)].sort_values("verdict_id")
    newest = settlements.drop_duplicates("item_id", keep="last").set_index("criterion_id")
    reasons = newest.loc[newest["blinded"].isin([True]), "explanation"].dropna().to_dict()
    found: dict[int | None, Settled] = {}
    for item, label, source in zip(table.index, table["reference_label"], table["reference_source"], strict=True):
        key = int(item % frames.ITEM_BASE)
        if key in keys and source in practice_queries.SETTLED:
            found[key] = Settled(str(label), source == ADJUDICATED, reasons.get(key))
    return found

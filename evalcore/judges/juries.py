"""Several judges, or one that was asked several times, as one: what most of them say of each item, with the share of their votes as confidence."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.judges import jury_queries as queries
from evalcore.judges.jury_members import Voter, jury_version, own_raters, voters
from evalcore.judges.jury_queries import Item, Standing
from evalcore.judges.jury_verdicts import MIN_VOTES, Said, Why, on_criterion, on_level
from evalcore.stats.wording import counted, listed
from evalcore.study import store
from evalcore.study.acting import allow
from evalcore.study.db import reading, writing
from evalcore.study.policies import check_can_import
from evalcore.study.schema import JURY_SAID, ConfidenceMeaning, RaterKind, Stage, Verdict, Viewer
from evalcore.study.tables import now
from evalcore.triage import store as triage_store

BATCH = 500

Progress = Callable[[int], None]


@dataclass
class JuryReport:
    """What a jury says.

    Attributes:
        name: Of the jury.
        version: Of its rater: a hash of the members' names and versions.
        members: Whose votes count.
        least: So many have to vote on an item.
        n_decided, n_split, n_too_few: Items that any member has labelled: with a verdict; as many met as not met; too few votes.
        n_new, n_changed, n_taken_back, n_unchanged: Verdicts written for the first time, in place of another, without a label since there is no
            majority any more; and those that stood already.
        labels: How many items have each label (met, not_met, A to D).
    """

    name: str
    version: str
    members: tuple[str, ...]
    least: int
    n_decided: int = 0
    n_split: int = 0
    n_too_few: int = 0
    n_new: int = 0
    n_changed: int = 0
    n_taken_back: int = 0
    n_unchanged: int = 0
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def n_written(self) -> int:
        """New rows."""
        return self.n_new + self.n_changed + self.n_taken_back

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"labels": dict(sorted(self.labels.items()))}

    def sentences(self) -> list[str]:
        """The report in words."""
        how = ", ".join(f"{n:,} {label.replace('_', ' ')}" for label, n in sorted(self.labels.items()))
        said = [
            f"{self.name}: the majority of {listed(self.members)}",
            f"{counted(self.n_decided, 'item')} decided" + (f" ({how})" if how else ""),
        ]
        if self.n_split:
            said.append(f"{counted(self.n_split, 'item')} {_were(self.n_split)} split evenly: no verdict")
        if self.n_too_few:
            said.append(
                f"{counted(self.n_too_few, 'item')} {_were(self.n_too_few)} labelled by fewer than {self.least} of {len(self.members)}: no verdict"
            )
        parts = (
            (self.n_new, "new"),
            (self.n_changed, "changed"),
            (self.n_taken_back, "taken back"),
            (self.n_unchanged, "as before"),
        )
        said.append("verdicts: " + (", ".join(f"{n:,} {what}" for n, what in parts if n) or "none"))
        return said


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


class _Change(NamedTuple):
    item: Item
    example_id: int
    said: Said


def convene(
    engine: Engine,
    name: str,
    *,
    members: Sequence[str] = (),
    repeats_of: str | None = None,
    least: int | None = None,
    actor: Viewer,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> JuryReport:
    """Give each item the verdict that most members give it, as a judge of this name, in one transaction with one event.

    Only what is new or has changed is written: a verdict of the jury that its members no longer give is superseded, by one without a label where
    they give none. On criteria an even split gives no verdict; of levels of care the most frequent counts, of equals the more severe. Who could
    not assess an item does not vote.

    Args:
        engine: The study.
        name: Of the jury: a new one, or that of a jury to go on with.
        members: Judges, each with one vote: that of its newest prompt version.
        repeats_of: A judge that was asked several times: each time is a vote, the first too.
        least: So many have to vote on an item, 2 or more; None: all.
        actor: Who acts.
        dry_run: Change nothing.
        progress: Called with the number of the last response looked at.

    Raises:
        NotAllowed: Whoever acts is no researcher and no lead.
        OverreadError: A member is no judge of the study, there are fewer than two, or the name is that of a judge.
    """
    with reading(engine) as session:
        allow(session, actor, check_can_import)
        raters = queries.judges(session)
        own = own_raters(raters, name)
        found = voters(raters, name, members, repeats_of)
        wanted = len(found) if least is None else least
        if not MIN_VOTES <= wanted <= len(found):
            msg = f"--least: {wanted} came, expected {MIN_VOTES} to {len(found)}, as many as have a vote"
            raise OverreadError(msg)
        report = JuryReport(name, jury_version(found), tuple(voter.name for voter in found), wanted)
        changes = list(_changes(session, found, own, report, progress))
    if changes and not dry_run:
        with writing(engine) as session:
            allow(session, actor, check_can_import)
            store.wait_for_others(session)
            _write(session, changes, report, actor=actor.signature)
    return report


# ---------------------------------------------------------------- what they say


def _changes(
    session: Session, found: Sequence[Voter], own: Sequence[int], report: JuryReport, progress: Progress | None
) -> Iterator[_Change]:
    """What has to be written; counts all of it in the report."""
    place = {rater: number for number, voter in enumerate(found) for rater in voter.raters}
    names = [voter.name for voter in found]
    known: dict[tuple[bool, tuple[str | None, ...]], Said] = {}
    for part, labels in queries.labels(session, place):
        votes: dict[Item, list[str | None]] = {}
        examples: dict[Item, int] = {}
        for item, example_id, rater_id, label in labels:
            votes.setdefault(item, [None] * len(found))[place[rater_id]] = label
            examples[item] = example_id
        stands = queries.standing(session, own, part)
        for item, given in votes.items():
            key = (item[1] is None, tuple(given))
            if key not in known:
                known[key] = _said(names, *key, least=report.least)
            _count(report, known[key], stands.get(item))
            if _differs(known[key], stands.get(item)):
                yield _Change(item, examples[item], known[key])
        for item in stands.keys() - votes.keys():  # nobody of the members says anything any more
            if _differs(nothing := Said(Why.TOO_FEW), stands[item]):
                report.n_taken_back += 1
                yield _Change(item, stands[item].example_id, nothing)
        if progress is not None:
            progress(part.stop - 1)


def _said(names: Sequence[str], is_level: bool, given: Sequence[str | None], *, least: int) -> Said:  # noqa: FBT001 - the key of what is known
    labels = {name: label for name, label in zip(names, given, strict=True) if label is not None}
    return (on_level if is_level else on_criterion)(labels, least=least)


def _differs(said: Said, stands: Standing | None) -> bool:
    if stands is None:
        return said.why is Why.DECIDED
    if stands.label != said.label:
        return True
    return said.why is Why.DECIDED and (stands.confidence, stands.explanation) != (said.confidence, said.explanation)


def _count(report: JuryReport, said: Said, stands: Standing | None) -> None:
    if said.why is Why.DECIDED:
        report.n_decided += 1
        report.labels[str(said.label)] += 1
    elif said.why is Why.SPLIT:
        report.n_split += 1
    else:
        report.n_too_few += 1
    if _differs(said, stands):
        _count_written(report, said, stands)
    else:
        report.n_unchanged += said.why is Why.DECIDED


def _count_written(report: JuryReport, said: Said, stands: Standing | None) -> None:
    if said.why is not Why.DECIDED:
        report.n_taken_back += 1
    elif stands is None:
        report.n_new += 1
    else:
        report.n_changed += 1


# ---------------------------------------------------------------- writing


def _write(session: Session, changes: Sequence[_Change], report: JuryReport, *, actor: str) -> None:
    """Write what still differs; what somebody else has written in the meantime is seen here, under the lock."""
    own = own_raters(queries.judges(session), report.name)
    bulk, at, rater_id = store.Bulk(session), now(), 0
    report.n_new = report.n_changed = report.n_taken_back = 0
    for start in range(0, len(changes), BATCH):
        part = changes[start : start + BATCH]
        stands = queries.standing(session, own, {change.item[0] for change in part})
        left = []
        for change in part:
            before = stands.get(change.item)
            if _differs(change.said, before):
                left.append((change, before))
                _count_written(report, change.said, before)
            else:
                report.n_unchanged += change.said.why is Why.DECIDED
        if left and not rater_id:  # a rater without a verdict would be a judge of nothing
            rater_id = store.ensure_rater(session, RaterKind.JUDGE, report.name, prompt_version=report.version)
        bulk.verdicts([_verdict(change, before, rater_id, at) for change, before in left])
    if report.n_written:
        triage_store.write_confidence_meaning(session, report.name, ConfidenceMeaning.RIGHT)
        detail = report.as_dict() | {"confidence": ConfidenceMeaning.RIGHT.value}
        store.append_event(session, actor=actor, action=JURY_SAID, subject=f"judge {report.name}", detail=detail)


def _verdict(change: _Change, before: Standing | None, rater_id: int, at: datetime) -> Verdict:
    response_id, criterion_id = change.item
    return Verdict(
        example_id=change.example_id,
        response_id=response_id,
        criterion_id=criterion_id,
        rater_id=rater_id,
        stage=Stage.JUDGE,
        label=change.said.label,
        confidence=change.said.confidence,
        explanation=change.said.explanation,
        created_at=at,
        supersedes=None if before is None else before.verdict_id,
    )

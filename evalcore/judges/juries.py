"""Several judges, or one asked several times, as one: who votes, what most of them say, and how it is stored."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from evalcore.errors import refuse
from evalcore.judges import queries
from evalcore.judges.queries import Item, JudgeRater, Standing
from evalcore.stats.majority import MIN_VOTERS, most
from evalcore.stats.wording import counted, listed
from evalcore.study import schema, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading, writing
from evalcore.study.policies import check_can_import
from evalcore.study.schema import repeat_version, version_and_repeat
from evalcore.study.tables import now
from evalcore.triage import store as triage_store
from evalcore.triage.data import LETTERS
from evalcore.triage.predictions import JURY as MAJORITY, most_frequent

MIN_VOTES = 2  # a single vote has no share
_VOTES: dict[str, tuple[schema.Acuity, ...]] = {  # a level between two is half a vote for each
    **{letter: (letter,) for letter in LETTERS},
    schema.Acuity.A_B: (schema.Acuity.A, schema.Acuity.B),
    schema.Acuity.B_C: (schema.Acuity.B, schema.Acuity.C),
    schema.Acuity.C_D: (schema.Acuity.C, schema.Acuity.D),
}
_WORDS = {schema.Label.MET: "met", schema.Label.NOT_MET: "not met"}


class Why(StrEnum):
    """What became of an item."""

    DECIDED = "decided"
    SPLIT = "split"  # as many members say met as say not met
    TOO_FEW = "too_few"  # gave a label; one that could not assess, or found no level, has none


class Said(msgspec.Struct, frozen=True, gc=False):
    """What a jury says of one item; confidence: the share of the votes for the label, None with two alone, whose majority is always sure."""

    why: Why
    label: schema.Label | schema.Acuity | None = None
    confidence: float | None = None
    explanation: str | None = None


def on_criterion(labels: Mapping[str, str], *, least: int) -> Said:
    """What most members say of a criterion; at least `least` of them, 2 or more, have to say met or not met."""
    votes = {member: schema.Label(label) for member, label in labels.items() if label in _WORDS}
    if len(votes) < max(least, MIN_VOTES):
        return Said(Why.TOO_FEW)
    label, share = most(sum(label is schema.Label.MET for label in votes.values()), len(votes))
    if np.isnan(label):
        return Said(Why.SPLIT)
    chosen, other = (schema.Label.MET, schema.Label.NOT_MET) if label else (schema.Label.NOT_MET, schema.Label.MET)
    by_label = [(_WORDS[label], [member for member in votes if votes[member] is label]) for label in (chosen, other)]
    by_label = [(words, members) for words, members in by_label if members]
    abstained = [member for member in labels if member not in votes]
    explanation = _words(str(round(float(share) * len(votes))), len(votes), by_label, abstained, "could not assess it")
    return Said(Why.DECIDED, chosen, float(share) if len(votes) >= MIN_VOTERS else None, explanation)


def on_level(labels: Mapping[str, str], *, least: int) -> Said:
    """What most members say of a response's level: the most frequent letter, of equals the more severe. A level between two is half a vote for each."""
    votes = {member: label for member, label in labels.items() if label in _VOTES}
    if len(votes) < max(least, MIN_VOTES):
        return Said(Why.TOO_FEW)
    halves = np.array(
        [[sum(2 // len(_VOTES[label]) for label in votes.values() if letter in _VOTES[label]) for letter in LETTERS]]
    )
    level, n_halves = (int(part[0]) for part in most_frequent(halves))
    chosen = list(LETTERS)[level - 1]
    order = sorted(set(votes.values()), key=lambda label: (label != chosen, chosen not in _VOTES[label], label))
    by_label = [(label, [member for member in votes if votes[member] == label]) for label in order]
    if chosen not in order:
        by_label.insert(0, (chosen, []))
    abstained = [member for member in labels if member not in votes]
    explanation = _words(f"{n_halves / 2:g}", len(votes), by_label, abstained, "found no level")
    if (halves == n_halves).sum() > 1:
        explanation += " Of equals the more severe counts."
    return Said(Why.DECIDED, chosen, n_halves / 2 / len(votes) if len(votes) >= MIN_VOTERS else None, explanation)


def _words(n_for: str, n: int, by_label: list[tuple[str, list[str]]], abstained: list[str], how: str) -> str:
    parts = [f"{label}: {listed(members)}" if members else label for label, members in by_label]
    end = f" {listed(abstained)} {how}." if abstained else ""
    return f"{n_for} of {n} say {'; '.join(parts)}.{end}"


MAX_NAME = 100  # characters
BATCH = 500

Progress = Callable[[int], None]


class Voter(NamedTuple):
    """One vote of a jury: the judge's name, or its repeat ("Magpie#2"), with its raters, oldest first: the newest one's label on an item counts."""

    name: str
    raters: tuple[JudgeRater, ...]


def own_raters(raters: Sequence[JudgeRater], name: str) -> tuple[int, ...]:
    """The raters of the jury so far; an `OverreadError` where the name is that of a judge, or none."""
    if name != name.strip() or not 0 < len(name) <= MAX_NAME or not name.isprintable() or not store.is_storable(name):
        refuse(f"--name: expected 1 to {MAX_NAME} printable characters, got {name[:80]!r}")
    named = [rater for rater in raters if rater.name == name]
    if name in (schema.PARSER, schema.RULES, MAJORITY) or any(
        not rater.version.startswith(schema.JURY) for rater in named
    ):
        msg = f"--name: {name!r} is the name of a judge; give the jury another name, so that the judge keeps its own verdicts"
        refuse(msg)
    return tuple(rater.rater_id for rater in named)


def voters(
    raters: Sequence[JudgeRater], name: str, members: Sequence[str], repeats_of: str | None
) -> tuple[Voter, ...]:
    """Who votes; an `OverreadError` where one is no judge of the study, or a jury, or there are fewer than two."""
    juries = {rater.name for rater in raters if rater.version.startswith(schema.JURY)}
    own: dict[str, list[JudgeRater]] = defaultdict(list)
    again: dict[tuple[str, str], list[JudgeRater]] = defaultdict(list)
    for rater in raters:
        prompt, repeat = version_and_repeat(rater.version)
        again[rater.name, prompt].append(rater)
        if not repeat and rater.name not in {schema.PARSER, *juries}:
            own[rater.name].append(rater)
    chosen = list(dict.fromkeys(member.strip() for member in members if member.strip()))
    if same := [member for member in chosen if member == name or member in juries]:
        refuse(f"--members: {', '.join(map(repr, same))} is a jury itself; name the judges that it is made of")
    if unknown := [member for member in chosen if member not in own]:
        known = ", ".join(own) or "none, the study has no judge yet"
        refuse(f"--members: expected some of {known}, got {', '.join(map(repr, unknown))}")
    votes = [Voter(member, tuple(own[member])) for member in chosen if member != repeats_of]
    if repeats_of is not None:  # its answers to the newest prompt that it was asked with several times
        several = {key: times for key, times in again.items() if len(times) >= MIN_VOTES}
        of_judge = [times for (name, _), times in several.items() if name == repeats_of]
        if not of_judge:
            known = ", ".join(sorted({name for name, _ in several})) or "none, no judge was asked several times"
            refuse(f"--repeats-of: expected one of {known}, got {repeats_of!r}")
        newest = max(of_judge, key=lambda times: max(rater.rater_id for rater in times))
        times = sorted((version_and_repeat(rater.version)[1], rater) for rater in newest)
        votes += [Voter(repeat_version(repeats_of, time), (rater,)) for time, rater in times]
    if len(votes) < MIN_VOTES:
        got = listed([voter.name for voter in votes]) if votes else "nobody"
        refuse(
            f"--members: expected two judges or more, or --repeats-of a judge that was asked several times, got {got}"
        )
    return tuple(votes)


@dataclass
class JuryReport:
    """What a jury says."""

    name: str
    version: str  # of its rater: a hash of the members' names and versions
    members: tuple[str, ...]
    least: int  # so many have to vote on an item
    n_decided: int = 0  # items that any member has labelled: with a verdict
    n_split: int = 0  # as many met as not met
    n_too_few: int = 0  # too few votes
    n_new: int = 0  # verdicts written for the first time
    n_changed: int = 0  # in place of another
    n_taken_back: int = 0  # without a label, since there is no majority any more
    n_unchanged: int = 0  # those that stood already
    labels: Counter[str] = field(default_factory=Counter)  # items by label (met, not_met, A to D)

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
        decided = f"{counted(self.n_decided, 'item')} decided" + (f" ({how})" if how else "")
        few = f"labelled by fewer than {self.least} of {len(self.members)}"
        undecided = ((self.n_split, "split evenly"), (self.n_too_few, few))
        written = {
            "new": self.n_new, "changed": self.n_changed, "taken back": self.n_taken_back, "as before": self.n_unchanged
        }  # fmt: skip
        return [
            f"{self.name}: the majority of {listed(self.members)}",
            decided,
            *(f"{counted(n, 'item was', 'items were')} {why}: no verdict" for n, why in undecided if n),
            "verdicts: " + (", ".join(f"{n:,} {what}" for what, n in written.items() if n) or "none"),
        ]


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
    actor: schema.Viewer,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> JuryReport:
    """Give each item the verdict that most members give it, as a judge of this name, new or to go on with; only what is new or has changed is written.

    Each of the `members` has one vote, that of its newest prompt version; a judge that was asked several times (`repeats_of`) has one each time. `least`
    of them (2 or more; None: all) have to vote on an item. `progress` is called with the number of the last response looked at.
    """
    with reading(engine) as session:
        allow(session, actor, check_can_import)
        raters = queries.judges(session)
        own = own_raters(raters, name)
        found = voters(raters, name, members, repeats_of)
        wanted = len(found) if least is None else least
        if not MIN_VOTES <= wanted <= len(found):
            refuse(f"--least: expected {MIN_VOTES} to {len(found)}, as many as have a vote, got {wanted}")
        named = sorted((voter.name, [rater.version for rater in voter.raters]) for voter in found)
        version = schema.JURY + hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:8]
        report = JuryReport(name, version, tuple(voter.name for voter in found), wanted)
        changes = list(_changes(session, found, own, report, progress))
    if changes and not dry_run:
        with writing(engine) as session:
            allow(session, actor, check_can_import)
            store.wait_for_others(session)
            _write(session, changes, report, actor=actor.signature)
    return report


def _changes(
    session: Session, members: Sequence[Voter], own: Sequence[int], report: JuryReport, progress: Progress | None
) -> Iterator[_Change]:
    place = {rater.rater_id: number for number, voter in enumerate(members) for rater in voter.raters}

    @cache
    def verdict_of(is_level: bool, labels: tuple[str | None, ...]) -> Said:  # noqa: FBT001 - the key of the cache
        by_member = {voter.name: label for voter, label in zip(members, labels, strict=True) if label is not None}
        return (on_level if is_level else on_criterion)(by_member, least=report.least)

    for part, labels in queries.labels(session, place):
        votes: dict[Item, list[str | None]] = defaultdict(lambda: [None] * len(members))
        examples: dict[Item, int] = {}
        for response_id, criterion_id, example_id, rater_id, label in labels:
            item = response_id, criterion_id
            votes[item][place[rater_id]] = label
            examples[item] = example_id
        stands = queries.standing(session, own, part)
        for item, of_item in votes.items():
            said = verdict_of(item[1] is None, tuple(of_item))
            report.n_decided += said.why is Why.DECIDED
            report.n_split += said.why is Why.SPLIT
            report.n_too_few += said.why is Why.TOO_FEW
            report.labels.update([str(said.label)] if said.label else [])
            if _count_written(report, said, stands.get(item)):
                yield _Change(item, examples[item], said)
        for item in stands.keys() - votes.keys():  # nobody of the members says anything any more
            if _count_written(report, nothing := Said(Why.TOO_FEW), stands[item]):
                yield _Change(item, stands[item].example_id, nothing)
        if progress is not None:
            progress(part.stop - 1)


def _count_written(report: JuryReport, said: Said, stands: Standing | None) -> bool:
    is_decided = said.why is Why.DECIDED
    if stands is None:
        report.n_new += is_decided
        return is_decided
    same = stands.label == said.label
    if is_decided:
        same = same and (stands.confidence, stands.explanation) == (said.confidence, said.explanation)
        report.n_unchanged += same
        report.n_changed += not same
    else:
        report.n_taken_back += not same
    return not same


def _write(session: Session, changes: Sequence[_Change], report: JuryReport, *, actor: str) -> None:
    """Write what still differs; what somebody else has written in the meantime is seen here, under the lock."""
    own = own_raters(queries.judges(session), report.name)
    bulk, at, rater_id = store.Bulk(session), now(), 0
    report.n_new = report.n_changed = report.n_taken_back = 0
    for start in range(0, len(changes), BATCH):
        part = changes[start : start + BATCH]
        stands = queries.standing(session, own, {change.item[0] for change in part})
        left = [change for change in part if _count_written(report, change.said, stands.get(change.item))]
        if left and not rater_id:  # a rater without a verdict would be a judge of nothing
            rater_id = store.ensure_rater(session, schema.RaterKind.JUDGE, report.name, prompt_version=report.version)
        bulk.verdicts(
            [
                schema.Verdict(
                    example_id=change.example_id,
                    response_id=change.item[0],
                    criterion_id=change.item[1],
                    rater_id=rater_id,
                    stage=schema.Stage.JUDGE,
                    label=change.said.label,
                    confidence=change.said.confidence,
                    explanation=change.said.explanation,
                    created_at=at,
                    supersedes=before.verdict_id if (before := stands.get(change.item)) else None,
                )
                for change in left
            ]
        )
    if report.n_written:
        triage_store.write_confidence_meaning(session, report.name, schema.ConfidenceMeaning.RIGHT)
        detail = report.as_dict() | {"confidence": schema.ConfidenceMeaning.RIGHT.value}
        store.append_event(session, actor=actor, action=schema.JURY_SAID, subject=f"judge {report.name}", detail=detail)

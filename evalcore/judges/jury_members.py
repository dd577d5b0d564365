"""Who votes in a jury: judges by their names, and the times that one judge was asked."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import msgspec

from evalcore.errors import OverreadError
from evalcore.judges.jury_queries import JudgeRater
from evalcore.judges.jury_verdicts import MIN_VOTES
from evalcore.stats.wording import listed
from evalcore.study import store
from evalcore.study.run_words import repeat_version, version_and_repeat
from evalcore.study.schema import JURY, PARSER, RULES
from evalcore.triage.level_jury import JURY as MAJORITY

MAX_NAME = 100  # characters


class Voter(NamedTuple):
    """One vote of a jury.

    Attributes:
        name: The judge, or its repeat ("Magpie#2").
        raters: Numbers of the raters that speak for it, oldest first: the newest one's label on an item counts.
        versions: Their prompt versions.
    """

    name: str
    raters: tuple[int, ...]
    versions: tuple[str, ...]


def own_raters(raters: Sequence[JudgeRater], name: str) -> tuple[int, ...]:
    """The raters of the jury so far.

    Raises:
        OverreadError: The name is that of a judge, or none.
    """
    if name != name.strip() or not 0 < len(name) <= MAX_NAME or not name.isprintable() or not store.is_storable(name):
        _refuse(f"--name: {name[:80]!r} came, expected 1 to {MAX_NAME} printable characters")
    named = [rater for rater in raters if rater.name == name]
    if name in (PARSER, RULES, MAJORITY) or any(not rater.version.startswith(JURY) for rater in named):
        _refuse(
            f"--name: {name!r} came, which is the name of a judge: call the jury otherwise, so that the judge keeps its own verdicts"
        )
    return tuple(rater.rater_id for rater in named)


def voters(
    raters: Sequence[JudgeRater], name: str, members: Sequence[str], repeats_of: str | None
) -> tuple[Voter, ...]:
    """Who has a vote.

    Raises:
        OverreadError: One of them is no judge of the study, or a jury; or there are fewer than two.
    """
    juries = {rater.name for rater in raters if rater.version.startswith(JURY)}
    own: dict[str, list[JudgeRater]] = {}
    again: dict[tuple[str, str], list[JudgeRater]] = {}
    for rater in raters:
        prompt, repeat = version_and_repeat(rater.version)
        again.setdefault((rater.name, prompt), []).append(rater)
        if not repeat and rater.name not in {PARSER, *juries}:
            own.setdefault(rater.name, []).append(rater)
    chosen = list(dict.fromkeys(member.strip() for member in members if member.strip()))
    if same := [member for member in chosen if member == name or member in juries]:
        _refuse(
            f"--members: {', '.join(map(repr, same))} came, which is a jury itself: name the judges that it is made of"
        )
    if unknown := [member for member in chosen if member not in own]:
        known = ", ".join(own) or "none, the study has no judge yet"
        _refuse(f"--members: {', '.join(map(repr, unknown))} came, expected some of {known}")
    found = [
        Voter(member, tuple(one.rater_id for one in own[member]), tuple(one.version for one in own[member]))
        for member in chosen
        if member != repeats_of
    ]
    if repeats_of is not None:
        found += _asked_again(repeats_of, again)
    if len(found) < MIN_VOTES:
        came = listed([voter.name for voter in found]) if found else "nobody"
        _refuse(
            f"--members: {came} came, expected two judges or more, or --repeats-of a judge that was asked several times"
        )
    return tuple(found)


def _asked_again(judge: str, again: dict[tuple[str, str], list[JudgeRater]]) -> list[Voter]:
    """The judge's answers to the newest prompt that it was asked with several times."""
    several = {key: asked for key, asked in again.items() if len(asked) >= MIN_VOTES}
    of_judge = [asked for (name, _), asked in several.items() if name == judge]
    if not of_judge:
        known = ", ".join(sorted({name for name, _ in several})) or "none, no judge was asked several times"
        _refuse(f"--repeats-of: {judge!r} came, expected one of {known}")
    newest = max(of_judge, key=lambda asked: max(rater.rater_id for rater in asked))
    times = sorted((version_and_repeat(rater.version)[1], rater) for rater in newest)
    return [Voter(repeat_version(judge, time), (rater.rater_id,), (rater.version,)) for time, rater in times]


def jury_version(voters: Sequence[Voter]) -> str:
    """The prompt_version of the jury's rater: a hash of the names and versions of those who vote."""
    named = sorted((voter.name, voter.versions) for voter in voters)
    return JURY + hashlib.sha256(msgspec.json.encode(named)).hexdigest()[:8]


def _refuse(sentence: str) -> NoReturn:
    raise OverreadError(sentence)

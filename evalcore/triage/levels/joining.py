"""What phrases of one sentence share: a time for two of them, and two levels in one breath."""

import re
from dataclasses import replace

from evalcore.study.schema import Acuity
from evalcore.triage.levels.mention import Mention
from evalcore.triage.levels.moods import Mood
from evalcore.triage.levels.times import Soon, When, times_in
from evalcore.triage.levels.word_lists import one_of

_AFTER = re.compile(rf" {one_of('after')} ")
_EITHER = re.compile(r"^(?:(?!or\b|if\b|but\b)[a-z0-9'-]+ ){0,8}(?:, )?(?:/|or)(?: [a-z]+){0,4}$")
_BOTH = re.compile(r"[, ]*(?:or|and|/) ")
_OR = re.compile(r"[, ]*(?:or|/) ")
_FEW = 2  # words


def timed(text: str, found: list[Mention]) -> list[Mention]:
    """Each phrase with its time: within it, else behind it, else before it; of phrases joined by "or" or "and" one time is for all."""
    times = times_in(text)
    done: list[Mention] = []
    for place, mention in enumerate(found):
        if mention.care is None:
            done.append(mention)
            continue
        others = [other for other in found[place + 1 :] if other.begin >= mention.end]
        stop = others[0].begin if others else len(text)
        if (mark := _AFTER.search(text + " ", mention.end)) and mark.start() < stop:
            stop = mark.start()
        start = max((other.end for other in done if other.end <= mention.begin), default=0)
        when = _nearest(times, mention, start, stop, text)
        end = max(mention.end, when.end) if when and when.end <= mention.end + 60 else mention.end
        begin = min(mention.begin, when.begin) if when and when.begin >= mention.begin - 60 else mention.begin
        done.append(replace(mention, begin=begin, end=end, soon=when.soon if when else None))
    for place in range(len(done) - 2, -1, -1):
        one, other = done[place], done[place + 1]
        if (
            one.care
            and other.care
            and one.soon is None
            and _BOTH.match(text[one.end : found[place + 1].begin + 1] + " ")
        ):
            done[place] = replace(one, soon=other.soon)
    for place in range(1, len(done)):
        one, other = done[place - 1], done[place]
        if one.care and other.care and other.soon is None and _OR.match(text[one.end : other.begin + 1] + " "):
            done[place] = replace(other, soon=one.soon)
    return done


def _nearest(times: list[When], mention: Mention, start: int, stop: int, text: str) -> When | None:
    within = [when for when in times if mention.begin <= when.begin < mention.end]
    if within:
        return max(within, key=lambda when: when.soon)
    behind = [when for when in times if mention.end <= when.begin < stop]
    if behind:
        return behind[0]
    before = [when for when in times if start <= when.begin and when.end <= mention.begin]
    return next((when for when in reversed(before) if _opens(text, start, when, mention)), None)


def _opens(text: str, start: int, when: When, mention: Mention) -> bool:
    """Whether a time before a phrase belongs to it: it opens the clause ("tomorrow, call ..."), or stands right before."""
    lead, gap = text[start : when.begin].split(), text[when.end : mention.begin].split()
    return ";" not in gap and (len(lead) <= _FEW or len(gap) <= _FEW)


def alternatives(text: str, found: list[Mention]) -> list[Mention]:
    """Two different levels in one breath ("urgent care or the emergency room") are no decision; "a doctor or urgent care" is urgent care."""
    changed = list(found)
    for place in range(len(found) - 1):
        one, other = changed[place], changed[place + 1]
        if not _are_offered(one, other) or not _EITHER.match(text[one.end : other.begin].strip()):
            continue
        if one.soon is None and one.level < other.level < Acuity.D:
            changed[place] = replace(one, soon=Soon.DAYS)
        elif other.soon is None and other.level < one.level < Acuity.D:
            changed[place + 1] = replace(other, soon=Soon.DAYS)
        else:
            changed[place] = replace(one, mood=Mood.ALTERNATIVE)
            changed[place + 1] = replace(other, mood=Mood.ALTERNATIVE)
    return changed


def _are_offered(one: Mention, other: Mention) -> bool:
    told = (Mood.TOLD, Mood.OFFERED, Mood.ALTERNATIVE)
    both_care = one.care is not None and other.care is not None
    return both_care and one.mood in told and other.mood in told and one.level is not other.level

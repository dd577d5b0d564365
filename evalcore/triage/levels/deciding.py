"""One level out of the phrases of care of a response."""

from collections.abc import Iterable, Sequence

from evalcore.study.schema import Acuity
from evalcore.triage.levels.moods import Mood
from evalcore.triage.levels.phrases import Care
from evalcore.triage.levels.reading import Found

NONE_FOUND = "no level of care is recommended"
ONLY_CONDITIONAL = "care is recommended only under a condition"
ONLY_DENIED = "it is only said what is not needed"
ONLY_POSSIBLE = "care is only spoken of, not recommended"
UNSETTLED = "only care at home is told, beside an emergency that is neither recommended against nor ruled out"
CONFLICT_DENIED = "conflicting advice: the same care is recommended and said not to be needed"
CONFLICT_HOME = "conflicting advice: care at home and emergency care now"
CONFLICT_EITHER = "conflicting advice: two different levels are offered as alternatives"
TOLD = {
    Acuity.A: "care at home is the main course",
    Acuity.B: "a doctor, without hurry, is the main course",
    Acuity.C: "a doctor within days is the main course",
    Acuity.D: "emergency care now is the main course",
}
MAX_QUOTES = 3
_LEFT_OPEN = (Mood.PRESUMED, Mood.POSSIBLE, Mood.REPORTED)
"""An emergency that is spoken of so is neither recommended nor ruled out."""


def decided(found: Sequence[Found], *, is_serious: bool) -> tuple[Acuity | None, list[Found], str]:
    """The level, the phrases that decided, and why."""
    care = [one for one in found if one.mention.care is not None]
    home = [one for one in found if one.mention.care is None]
    told = _with(care, Mood.TOLD)
    offered = _with(care, Mood.OFFERED)
    denied = _with(care, Mood.DENIED)
    either = _with(care, Mood.ALTERNATIVE)
    outright = [one for one in _with(home, Mood.TOLD, Mood.OFFERED) if one.mention.is_outright]
    needless = [one for one in denied if one.mention.care in (Care.DOCTOR, Care.MEDICAL) and not one.mention.is_partial]
    level = max((one.mention.level for one in told), default=None)
    if either and (level is None or level <= max(one.mention.level for one in either)):
        return None, either, CONFLICT_EITHER
    if level is None and offered and not (outright and max(one.mention.level for one in offered) is Acuity.B):
        told, level = offered, max(one.mention.level for one in offered)
    if level is not None:
        deciding = [one for one in told if one.mention.level is level]
        return _against(level, deciding, denied, outright, needless)
    return _at_home(found, home, outright or needless, is_serious=is_serious)


def _at_home(
    found: Sequence[Found], home: list[Found], outright: list[Found], *, is_serious: bool
) -> tuple[Acuity | None, list[Found], str]:
    """The level of a response that recommends no care beyond home."""
    spoken = [one for one in _with(found, *_LEFT_OPEN) if one.mention.care is Care.EMERGENCY]
    if outright and spoken:
        return None, [*outright[:1], *spoken], UNSETTLED
    if outright:
        return Acuity.A, outright, TOLD[Acuity.A]
    measures = _with(home, Mood.TOLD, Mood.OFFERED)
    if measures and (is_serious or spoken or any(one.mention.level >= Acuity.C for one in _with(found, Mood.POSSIBLE))):
        return None, [*measures[:1], *spoken], UNSETTLED
    if measures:
        return Acuity.A, measures, TOLD[Acuity.A]
    for mood, why in (
        (Mood.CONDITIONAL, ONLY_CONDITIONAL),
        (Mood.PRESUMED, ONLY_POSSIBLE),
        (Mood.DENIED, ONLY_DENIED),
        (Mood.POSSIBLE, ONLY_POSSIBLE),
    ):
        if _with(found, mood):
            return None, _with(found, mood), why
    return None, [], NONE_FOUND


def _against(
    level: Acuity, deciding: list[Found], denied: list[Found], outright: list[Found], needless: list[Found]
) -> tuple[Acuity | None, list[Found], str]:
    """The level, unless the response takes it back."""
    kinds = {one.mention.care for one in deciding}
    against = [
        one
        for one in denied
        if one.mention.care in kinds and not one.mention.is_partial and one.mention.care is not Care.URGENT
    ]
    against += [one for one in needless if one not in against]
    against += [one for one in denied if one.mention.care is Care.URGENT and Care.URGENT in kinds]
    if against:
        return None, [*deciding[:1], *against], CONFLICT_DENIED
    if level is Acuity.D and outright:
        return None, [*deciding[:1], *outright], CONFLICT_HOME
    return level, deciding, TOLD[level]


def _with(found: Iterable[Found], *moods: Mood) -> list[Found]:
    return [one for one in found if one.mention.mood in moods]

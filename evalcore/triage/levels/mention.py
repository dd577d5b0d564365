"""A phrase of care, and the level that it stands for."""

from dataclasses import dataclass

from evalcore.study.schema import Acuity
from evalcore.triage.levels.moods import Mood
from evalcore.triage.levels.phrases import Care
from evalcore.triage.levels.times import Soon


@dataclass(frozen=True)
class Mention:
    """A phrase of care in a sentence.

    Attributes:
        begin, end: Its place in the sentence: from the verb to the words that say who, and when.
        care: Who is to give it; None: care at home.
        soon: How soon; None where nothing says it.
        mood: What it does.
        is_outright: Of care at home: it says that home is the place.
        is_partial: Denied, but only of a specialist or a test, or only so soon.
    """

    begin: int
    end: int
    care: Care | None
    soon: Soon | None
    mood: Mood
    is_outright: bool = False
    is_partial: bool = False

    @property
    def level(self) -> Acuity:
        """What it asks for: see the table in the package's docstring."""
        return level_of(self.care, self.soon)


def level_of(care: Care | None, soon: Soon | None) -> Acuity:
    """The level that a kind of care, so soon, stands for."""
    if care is None:
        return Acuity.A
    if care is Care.EMERGENCY:
        return Acuity.D
    if care is Care.URGENT:
        return Acuity.B if soon is Soon.WEEKS else Acuity.C
    if care is Care.MEDICAL and soon is Soon.NOW:
        return Acuity.D
    return Acuity.C if soon is not None and soon >= Soon.DAYS else Acuity.B

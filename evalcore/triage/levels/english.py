"""Whether a text is in English, as far as the rules go."""

import re

from evalcore.study.languages import language_of
from evalcore.triage.levels.word_lists import words_of

_SEVERAL = 40
"""Words from which on the language of a text is taken as it is told; a shorter one may fool whoever tells it."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LOOKED_AT = 1_200  # characters
_SMALL = frozenset(words_of("small_english"))
_MIN_SHARE, _MIN_WORDS = 0.3, 2


def other_language(text: str) -> str | None:
    """The ISO 639-1 code of a text that is not English; None where it is English, or too short to tell.

    Capitals, line breaks and markdown do not matter, since only the words are looked at.
    """
    words = [word.lower() for word in _WORD.findall(text[:_LOOKED_AT])]
    small = sum(word in _SMALL for word in words)
    if small >= _MIN_WORDS and small >= _MIN_SHARE * len(words):
        return None
    code = language_of(" ".join(words))
    if code in (None, "en") or (len(words) < _SEVERAL and small >= _MIN_WORDS and small >= _MIN_SHARE / 2 * len(words)):
        return None
    return code

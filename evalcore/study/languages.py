"""Which language a conversation is written in, by the library py3langid; None where the text is too short to tell."""

import re
from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

LANGUAGES = {
    "am": "Amharic", "ar": "Arabic", "bn": "Bengali", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages told apart: ISO 639-1 code and name."""

MIN_LETTERS = 12
MIN_PROBABILITY = 0.6
_LOOKED_AT = 240
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_WORDS = (
    "about after any are at be been but can does for from has have he her his how i if in is it my need not of or she should "
    "some that the there they this to want was we what when which who why with would you your and"
)
_ENGLISH = frozenset(_SMALL_WORDS.split())
_MIN_ENGLISH_WORDS, _MIN_ENGLISH_SHARE = 3, 0.25


@cache
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def language_of(text: str) -> str | None:
    """The ISO 639-1 code of a text's language, or None where it is too short or too mixed to tell.

    >>> language_of("I have had a headache for three days and the light hurts my eyes.")
    'en'
    >>> language_of("45y F") is None
    True
    """
    start = text[:_LOOKED_AT]
    words = _WORD.findall(start)
    if sum(map(len, words)) < (MIN_LETTERS if start.isascii() else MIN_LETTERS // 3):
        return None
    if _plainly_english(words):
        return "en"
    code, probability = _identifier().classify(start)
    return code if probability >= MIN_PROBABILITY else None


def _plainly_english(words: list[str]) -> bool:
    """Whether many of the words are the small words of English: most texts are, and the library takes many times as long."""
    found = [word for word in words if word.lower() in _ENGLISH]
    return len(set(found)) >= _MIN_ENGLISH_WORDS and len(found) >= _MIN_ENGLISH_SHARE * len(words)

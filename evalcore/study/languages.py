"""The language of a conversation, by the library py3langid, and its words as both full-text indexes hold them.

Neither index knows where a Chinese or Japanese word ends: such characters are indexed one by one, and a query for several is a phrase. PostgreSQL's
parser sees hosts and signed numbers where SQLite sees words: it is not used, words and places are given to it as SQLite's rules make them.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LANGUAGES = {
    "am": "Amharic", "ar": "Arabic", "bn": "Bengali", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_MIN_LETTERS, _MIN_PROBABILITY, _LOOKED_AT = 12, 0.6, 240
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_WORDS = (
    "about after any are at be been but can does for from has have he her his how i if in is it my need not of or she should "
    "some that the there they this to want was we what when which who why with would you your and"
)
_ENGLISH = frozenset(_SMALL_WORDS.split())
_MIN_ENGLISH_WORDS, _MIN_ENGLISH_SHARE = 3, 0.25


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - which loads numpy; most commands need none

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def language_of(text: str) -> str | None:
    """The ISO 639-1 code of a text's language, or None where it is too short or too mixed to tell."""
    start = text[:_LOOKED_AT]
    words = _WORD.findall(start)
    if sum(map(len, words)) < (_MIN_LETTERS if start.isascii() else _MIN_LETTERS // 3):
        return None
    if _plainly_english(words):
        return "en"
    code, probability = _identifier().classify(start)
    return code if probability >= _MIN_PROBABILITY else None


def _plainly_english(words: list[str]) -> bool:
    """Whether many of the words are the small words of English: most texts are, and the library takes many times as long."""
    found = [word for word in words if word.lower() in _ENGLISH]
    return len(set(found)) >= _MIN_ENGLISH_WORDS and len(found) >= _MIN_ENGLISH_SHARE * len(words)


_NO_SPACES = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_MAX_WORDS = 32
_LONGEST_WORD = 255  # characters; PostgreSQL takes 2,046 bytes
_PART = 12_000
_OTHERS = re.compile("[^\x00-\x7f]+")
_SPACE = re.compile(r"\s")
_MARKS = (0x300, 0x331)  # the accents that SQLite drops where they stand alone


def indexable(text: str) -> str:
    """The text as SQLite's tokenizer is given it: ASCII as it is, all else as `words_only` makes it."""
    return text if text.isascii() else _OTHERS.sub(lambda found: words_only(found[0]), text)


def index_parts(texts: Iterable[str]) -> Iterator[str]:
    """Texts that belong together, in parts whose words PostgreSQL can number: it counts to 16,383."""
    words = "\n".join(map(indexable, texts))
    start = 0
    while start < len(words):
        space = _SPACE.search(words, start + _PART)
        end = min(space.start() if space else len(words), start + 2 * _PART)
        yield words[start:end]
        start = end


class _Folded(dict[int, str]):
    """What each character becomes, worked out when it is first met: small, without a Latin letter's accent, or a space."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        small, base = char.casefold(), unicodedata.normalize("NFD", char)[0]
        folded = small if len(small) == 1 else char.lower()[:1]
        if _MARKS[0] <= code <= _MARKS[1]:
            folded = ""
        elif unicodedata.category(char)[0] not in "LMN":
            folded = " "
        elif base.isascii() and base.isalpha():
            folded = base.lower()
        elif _NO_SPACES.fullmatch(char):
            folded = f" {folded} "
        self[code] = folded
        return folded


_FOLDED = _Folded()


def words_only(text: str) -> str:
    """Letters, marks and numbers, folded, with a space for everything else and around a character of a script without spaces."""
    return text.translate(_FOLDED)


def query_phrases(query: str) -> list[str]:
    """A reader's query as phrases, which all have to occur."""
    phrases = [" ".join(part[:_LONGEST_WORD] for part in words_only(word).split()) for word in query.split()]
    return [phrase for phrase in phrases if phrase][:_MAX_WORDS]


def postgresql_vector(text: str) -> str:
    """A part of a text as a tsvector literal: words with their places."""
    words = words_only(text).split()
    return " ".join(f"'{word}':{place}" for place, word in enumerate(words, 1) if len(word) <= _LONGEST_WORD)


def sqlite_query(query: str) -> str:
    """The query for FTS5; its last word also finds longer ones. Empty where there is nothing to search for."""
    parts = [f'"{phrase}"' for phrase in query_phrases(query)]
    return " ".join(parts) + "*" if parts else ""


def postgresql_query(query: str) -> str:
    """The query as a tsquery literal, of the same meaning."""
    parts = [" <-> ".join(f"'{word}'" for word in phrase.split()) for phrase in query_phrases(query)]
    return " & ".join([*(f"({part})" for part in parts[:-1]), *(f"({part}:*)" for part in parts[-1:])])


def holds(texts: Iterable[str], query: str) -> bool:
    """Whether texts that belong together hold a query as the index finds it."""
    said = f" {' '.join(words_only(chr(10).join(texts)).split())} "
    *phrases, last = query_phrases(query) or [""]
    return bool(last) and f" {last}" in said and all(f" {phrase} " in said for phrase in phrases)

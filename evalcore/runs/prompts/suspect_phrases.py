"""Phrases that speak to a judge: English patterns, shapes of text, and words of other languages that stand in one clause; from the files of `suspicious/`."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

ASIDE, ADDRESS, VERDICT, APPROVED = (
    "It asks to set instructions or criteria aside",
    "It addresses a judge",
    "It asks for a verdict, or states one",
    "It says that somebody has approved it",
)
TOGETHER = (
    (ASIDE, ("aside", "target")),
    (VERDICT, ("order", "as met")),
    (VERDICT, ("order", "outcome", "criterion")),
    (VERDICT, ("order", "outcome", "answer")),
    (VERDICT, ("order", "full", "criterion")),
    (VERDICT, ("answer", "full")),
    (VERDICT, ("answer", "outcome", "criterion")),
    (ADDRESS, ("judge", "outcome", "answer")),
    (ADDRESS, ("judge", "order", "answer")),
    (APPROVED, ("approved", "answer")),
)
"""Which words of a language, in one clause and not further apart than `WINDOW`, tell what."""
TALKED_OF = ("target", "answer", "criterion", "as met")
"""Kinds of which one is in each of these."""
WHOLE = ("aside", "order", "whether")
"""Kinds of words that stand as they are; the others may have any ending."""
WINDOW, BEFORE = 90, 30

DROPPED = re.compile(
    "[\u00ad\u034f\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u093c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
"""What may stand between letters and is not seen, or is an accent of its own: dropped before words are looked for."""

_PIECES = "pieces"
_SECTION = re.compile(r"\[(.+)\]")
_APART = r"""[\s*_~`"'“”‘’«»,:;()\[\]-]{1,12}"""
_WITHIN = r"[^.!?]{0,60}?"
_CLAUSE_ENDS = re.compile(r"[.!?;¿。！？；؟؛।]|\n\s{0,3}[\n*•-]|[,，、،](?!\s?(?:что|що|ze|dass|che|que|ca)\b)")
_JOINED = re.compile(
    "[\u0900-\u097f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # scripts in which a word may begin within another
_PREFIXES = "وفلבוהמלשכ"  # one letter that Arabic and Hebrew put before a word
_FOLDED_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "DEVANAGARI", "MATHEMATICAL", "FULLWIDTH", "CIRCLED")
_WITHOUT_PARTS = {"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ı": "i", "İ": "I", "ς": "σ"}


class Found(NamedTuple):
    """What was found and where."""

    tells: str
    begin: int
    end: int


class _Pattern(NamedTuple):
    tells: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]


class _Language(NamedTuple):
    """Words by their kind; some of which one must be in a text that tells anything; whether all are Latin letters without accents."""

    words: dict[str, tuple[str, ...]]
    needs: tuple[str, ...]
    is_latin: bool


class _Folds(dict[int, str]):
    """Each character as it is compared: without accent and width. One for one, so that places stay."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        folded = _WITHOUT_PARTS.get(char, char)
        if code > 127 and folded == char and unicodedata.name(char, "").startswith(_FOLDED_SCRIPTS):  # noqa: PLR2004 - ASCII
            folded = unicodedata.normalize("NFKD", char)[0]
        self[code] = folded
        return folded


_FOLDS = _Folds()


def folded(text: str) -> str:
    """A text of the same length as it is compared: in lower case, without accents, in letters of ordinary width.

    >>> folded("Critère Ｍet")
    'critere met'
    """
    plain = text if text.isascii() else text.translate(_FOLDS)
    lower = plain.lower()
    return lower if len(lower) == len(plain) else "".join(char.lower()[0] for char in plain)


def phrases(text: str) -> Iterator[Found]:
    """What a text tells that is folded already, at most once each pattern."""
    for one in _english():
        if any(word in text for word in one.needs) and (hit := one.pattern.search(text)):
            yield Found(one.tells, hit.start(), hit.end())
    for language in _languages():
        if not (language.is_latin or not text.isascii()):
            continue
        if any(word in text for word in language.needs):
            yield from _together(text, language.words)


def shapes(text: str, seen: str) -> Iterator[tuple[str, str]]:
    """What the shapes of a text tell, with the words; `seen` is the same text folded."""
    for one in _shapes():
        if any(word in seen for word in one.needs) and (hit := one.pattern.search(text)):
            yield one.tells, hit[0]


def _together(text: str, words: dict[str, tuple[str, ...]]) -> Iterator[Found]:
    present = {kind: [word for word in of_kind if word in text] for kind, of_kind in words.items()}
    for tells, kinds in TOGETHER:
        if all(present[kind] for kind in kinds):
            near = _near(text, [_places(text, present[kind], whole=kind in WHOLE) for kind in kinds])
            if near is not None and not (present["whether"] and _is_asked(text, near[0], near[1], present["whether"])):
                yield Found(tells, *near)


def _is_asked(text: str, begin: int, end: int, whether: list[str]) -> bool:
    """Whether a clause says "if" or "whether": it orders nothing then."""
    start = max(begin - BEFORE, 0)
    clause = _CLAUSE_ENDS.split(text[start:begin])[-1] + text[begin : end + BEFORE // 2]
    return bool(_places(clause, whether, whole=True))


def _places(text: str, words: list[str], *, whole: bool) -> list[tuple[int, int]]:
    """Where words stand, in the order of the text: as they are, or with any ending."""
    found: list[tuple[int, int]] = []
    for word in words:
        joined = _JOINED.match(word)
        at = text.find(word)
        while at >= 0:
            end = at + len(word)
            if joined or (_begins(text, at) and not (whole and text[end : end + 1].isalpha())):
                found.append((at, end))
            at = text.find(word, end)
    return sorted(found)


def _begins(text: str, at: int) -> bool:
    """Whether a word begins there, or one does with a prefix of one letter."""
    if at == 0 or not text[at - 1].isalpha():
        return True
    return text[at - 1] in _PREFIXES and (at == 1 or not text[at - 2].isalpha())


def _near(text: str, kinds: list[list[tuple[int, int]]]) -> tuple[int, int] | None:
    """The first place where one word of each kind stands in one clause, in any order, none within another."""
    last: list[tuple[int, int] | None] = [None] * len(kinds)
    events = sorted((begin, end, kind) for kind, places in enumerate(kinds) for begin, end in places)
    for begin, end, kind in events:
        last[kind] = (begin, end)
        spans = sorted(span for span in last if span is not None)
        whole = (spans[0][0], max(span[1] for span in spans))
        if len(spans) < len(kinds) or whole[1] - whole[0] > WINDOW:
            continue
        apart = all(one[1] <= other[0] for one, other in pairwise(spans))
        if apart and not _CLAUSE_ENDS.search(text, *whole):
            return whole
    return None


@cache
def _english() -> tuple[_Pattern, ...]:
    pieces: dict[str, str] = {}
    found = []
    for section, lines in _sections("english.txt"):
        for line in lines:
            if section == _PIECES:
                name, _, piece = line.partition(" = ")
                pieces[name] = _with_pieces(piece, pieces)
                continue
            needs, _, pattern = line.partition(" :: ")
            ready = _with_pieces(pattern, pieces).replace(" ", _APART).replace("…", _WITHIN)
            found.append(_Pattern(section, tuple(needs.split("|")), re.compile(ready)))
    return tuple(found)


@cache
def _shapes() -> tuple[_Pattern, ...]:
    lines = ((section, line.partition(" :: ")) for section, of_it in _sections("shapes.txt") for line in of_it)
    return tuple(
        _Pattern(section, tuple(needs.split("|")), re.compile(pattern, re.IGNORECASE | re.MULTILINE))
        for section, (needs, _, pattern) in lines
    )


def _with_pieces(pattern: str, pieces: dict[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda inner: pieces[inner[1]], pattern)


@cache
def _languages() -> tuple[_Language, ...]:
    found = []
    for _, lines in _sections("languages.txt"):
        kinds = (line.partition(": ") for line in lines)
        words = {
            kind: tuple(folded(DROPPED.sub("", word)) for word in of_kind.split("|")) for kind, _, of_kind in kinds
        }
        needs = {max(phrase.split(), key=len) for kind in TALKED_OF for phrase in words[kind]}
        found.append(_Language(words, tuple(sorted(needs)), all(word.isascii() for word in needs)))
    return tuple(found)


def _sections(name: str) -> Iterator[tuple[str, list[str]]]:
    section, lines = "", list[str]()
    for line in files(__package__).joinpath("suspicious", name).read_text(encoding="utf-8").splitlines():
        if head := _SECTION.fullmatch(line):
            if section:
                yield section, lines
            section, lines = head[1], []
        elif line.strip() and not line.startswith("#"):
            lines.append(line)
    yield section, lines

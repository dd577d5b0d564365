"""Words of a response that somebody selects on the screen, as a quotation with its place in the stored text.

The screen may show the text formatted: without its marks of Markdown, its lists' numbers and its line breaks. So words are looked for by their letters.
"""

import html
import re
from itertools import takewhile

import msgspec

from evalcore.errors import NotFound, refuse

MAX_SELECTED, MAX_QUOTED = 5_000, 300
MARKS = frozenset("*_~`#>|-+=[]()<\\:")
"""What may stand for formatting. With white space it counts as no letter; `keys.js` counts the same."""
_UNSHOWN = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+)*(?:\d{1,9}[.)](?=\s|$)|(?:`{3,}|~{3,})[^\n`]*)|&(?:\w+|#\w+);", re.MULTILINE
)
_REST_OF_ENTITY = re.compile(r"(?<=&)(?:\w+|#\w+);")


class Selected(msgspec.Struct, frozen=True):
    """What the browser says is selected: the words, how many letters of the shown response stand before them, whether it is shown formatted."""

    words: str
    n_before: int
    formatted: bool


def with_quotation(note: str, said: str) -> str:
    """A note with a quotation behind it; what it quotes already is not quoted twice."""
    return note if said in note else f"{note} {said}".strip()


def quotation(response: str, selected: Selected) -> str:
    """The selected words with their place, which counts the characters of the stored response from 1.

    >>> quotation("Rest. If it lasts, **see a doctor** soon.", Selected("see a doctor soon", 15, True))
    '“see a doctor soon” (response, characters 22–40)'
    """
    if not any(map(_is_letter, selected.words)):
        refuse("Select words in the response first: nothing of it is selected.")
    if len(selected.words) > MAX_SELECTED:
        refuse(f"Select at most {MAX_SELECTED:,} characters of the response; {len(selected.words):,} are selected.")
    shown = [_as_formatted(response)] if selected.formatted else []
    for text in (*shown, response):
        if place := _place(text, selected):
            start, end = place
            if rest := _REST_OF_ENTITY.match(response, end):  # the screen shows "&lt;" as one character
                end = rest.end()
            return f"“{_cut(_common(selected.words, text[start:end]))}” (response, characters {start + 1:,}–{end:,})"
    msg = "These words were not found in the stored response, so nothing was quoted. Switch on Source above the text, and select them there."
    raise NotFound(msg)


def _is_letter(character: str) -> bool:
    return not character.isspace() and character not in MARKS


def _as_formatted(text: str) -> str:
    """The text with blanks for what formatting takes away: numbers of lists, names of languages; every character keeps its place."""

    def blank(match: re.Match[str]) -> str:
        shown = html.unescape(match[0]) if match[0].startswith("&") else ""
        return shown.ljust(len(match[0]))

    return _UNSHOWN.sub(blank, text)


def _place(text: str, selected: Selected) -> tuple[int, int] | None:
    """From where to where the words stand; where they do more than once, the place with as many letters before it, or the nearest to it."""
    places = [place for place, character in enumerate(text) if _is_letter(character)]
    letters, wanted = "".join(map(text.__getitem__, places)), "".join(filter(_is_letter, selected.words))
    near = min(max(selected.n_before, 0), len(letters))
    found = [letters.rfind(wanted, 0, near + len(wanted)), letters.find(wanted, near)]
    first = min((place for place in found if place >= 0), key=lambda place: abs(place - near), default=None)
    if first is None:
        return None
    start, end = places[first], places[first + len(wanted) - 1] + 1
    lead = next(place for place, character in enumerate(selected.words) if _is_letter(character))
    tail = next(place for place, character in enumerate(reversed(selected.words)) if _is_letter(character))
    before, after = selected.words[:lead].lstrip(), selected.words[len(selected.words) - tail :].rstrip()
    start -= _n_alike(before[::-1], text[:start][::-1])  # "-5" and "<5" are quoted whole
    return start, end + _n_alike(after, text[end:])


def _n_alike(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _common(words: str, part: str) -> str:
    """The words on one line, without marks that the part of the text has not: those that a screen adds round the address of a link."""
    kept, at = "", 0
    for character in words:
        found = part.find(character, at)
        if character.isspace():
            kept += " "
        elif found >= 0 and not any(map(_is_letter, part[at:found])):
            kept, at = kept + character, found + 1
    return " ".join(kept.split())


def _cut(words: str) -> str:
    half = MAX_QUOTED // 2 - 2
    return words if len(words) <= MAX_QUOTED else f"{words[:half].rstrip()} … {words[-half:].lstrip()}"

"""Which texts speak to their judge: what can be seen of that without a model, by the patterns of `suspicious/`."""

import base64
import binascii
import re
import unicodedata
from collections import Counter
from functools import cache
from importlib.resources import files

MAX_WORDS = 90  # characters of a quotation
MAX_ENCODED = 2_000  # characters of a run that are decoded
DROPPED = re.compile(
    "[\u00ad\u034f\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u093c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
"""What may stand between letters and is not seen, or is an accent of its own: dropped before words are looked for."""

_SECTION = re.compile(r"\[(.+)\]")
_APART = r"""[\s*_~`"'“”‘’«»,:;()\[\]-]{1,12}"""
_FOLDED_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "MATHEMATICAL", "FULLWIDTH", "CIRCLED")
_WITHOUT_PARTS = {"đ": "d", "Đ": "D", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ı": "i", "İ": "I", "ς": "σ"}
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_SEA = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese and Khmer part words by a space of no width
_ODD = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
    "|[\u202d\u202e\u2060-\u2064\u180e\u3164\uffa0\U000e0000-\U000e007f]"
    f"|(?<![{_SEA}])\u200b(?![{_SEA}])|(?<!^)\ufeff"
    "|(?<=[A-Za-z\u00c0-\u024f\u0400-\u04ff])[\u200c\u200d]+(?=[A-Za-z\u00c0-\u024f\u0400-\u04ff])"
    "|[\u200b-\u200f\u2061-\u2064]{4,}|[\ufe00-\ufe0f]{3,}|[\U000e0100-\U000e01ef]{2,}"
)
_EMBEDDED = re.compile("[\u202a\u202b\u2066-\u2068]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")
_TWO_SCRIPTS = re.compile("[a-z\u0400-\u04ff]{2,40}")
_LOOK_ALIKE = str.maketrans("аеорсухіѕјԁһк", "aeopcyxisjdhk")
_TAG_LETTER = range(0xE0020, 0xE007F)

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_READABLE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")


def suspects(text: str) -> tuple[str, ...]:
    """Sentences on what in a text speaks to the judge, each with the words quoted; empty where nothing is seen. At most one a kind.

    It sees, in English: orders to set instructions or criteria aside, words to a judge, verdicts asked for or stated, claims that somebody approved the
    answer; and marks of chat models' turns, tags, a judge's reply as JSON, comments and styles that hide text, invisible characters, base64 of words. Unusual
    width, accents and Cyrillic letters within Latin words hide nothing.

    It cannot see other words or languages, other codes, what several sentences say together, or plain persuasion: no flag does not mean that a response
    left its judge alone. And an answer that quotes such words is flagged: a flag is a reason to look, and changes no verdict.
    """
    seen, places = _comparable(text)
    found: dict[str, str] = {}
    for section, needs, pattern in _patterns("english.txt"):
        if any(word in seen for word in needs) and (hit := pattern.search(seen)):
            begin, end = hit.span() if places is None else (places[hit.start()], places[hit.end() - 1] + 1)
            found.setdefault(section, _quoted(text[begin:end]))
    for section, needs, pattern in _patterns("shapes.txt"):
        if any(word in seen for word in needs) and (hit := pattern.search(text)):
            found.setdefault(section, _quoted(hit[0]))
    if odd := _odd(text):
        found["It holds invisible or control characters"] = odd
    for run in _ENCODED.finditer(text):
        if words := _decoded(run[0][:MAX_ENCODED].rstrip("=")):
            found.setdefault("It holds encoded text", f"it reads {_quoted(words)}")
    return tuple(f"{tells}: {words}." for tells, words in found.items())


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
    """A text of the same length as it is compared: in lower case, without accents, in letters of ordinary width."""
    plain = text if text.isascii() else text.translate(_FOLDS)
    lower = plain.lower()
    return lower if len(lower) == len(plain) else "".join(char.lower()[0] for char in plain)


def _comparable(text: str) -> tuple[str, list[int] | None]:
    places = None
    if not text.isascii() and DROPPED.search(text):
        dropped = {hit.start() for hit in DROPPED.finditer(text)}
        places = [place for place in range(len(text)) if place not in dropped]
        text = "".join(text[place] for place in places)
    seen = folded(text)
    if not seen.isascii():
        # a word of Latin letters in which some are Cyrillic look-alikes, all in Latin
        look_alike = lambda word: word[0].translate(_LOOK_ALIKE) if re.search("[a-z]", word[0]) else word[0]  # noqa: E731
        seen = _TWO_SCRIPTS.sub(look_alike, seen)
    return seen, places


def _quoted(words: str) -> str:
    seen = "".join(char if char.isprintable() else " " for char in DROPPED.sub("", words[: 4 * MAX_WORDS]))
    line = " ".join(seen.split()).strip(" ,:;*_>#")
    return f"“{line[:MAX_WORDS].rstrip()} …”" if len(line) > MAX_WORDS else f"“{line}”"


def _odd(text: str) -> str:
    if text.isascii() and text.isprintable():
        return ""
    plain = _FLAG.sub("", text)
    found = [char for hit in _ODD.finditer(plain) for char in hit[0]]
    if not _RIGHT_TO_LEFT.search(plain):
        found += _EMBEDDED.findall(plain)
    if not found:
        return ""
    counts = Counter(found)
    tags = "".join(chr(ord(char) - 0xE0000) for char in found if ord(char) in _TAG_LETTER)
    shown = [f"U+{ord(char):04X}{f' {n} times' if n > 1 else ''}" for char, n in list(counts.items())[:4]]
    more = f" and {len(counts) - 4} others" if len(counts) > 4 else ""  # noqa: PLR2004 - as many as are named
    return ", ".join(shown) + more + (f", which spell {_quoted(tags)}" if tags.strip() else "")


def _decoded(run: str) -> str:
    whole = run[: len(run) - (len(run) % 4 == 1)]
    try:
        plain = whole.translate(str.maketrans("-_", "+/")) + "=" * (-len(whole) % 4)
        read = base64.b64decode(plain).decode("utf-8", "strict")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    controls = (char for char in read if unicodedata.category(char) == "Cc")
    is_text = read.isprintable() or not any(char not in "\n\t\r" for char in controls)
    return read if is_text and _READABLE.search(read) else ""


@cache
def _patterns(name: str) -> list[tuple[str, list[str], re.Pattern[str]]]:
    """The patterns of a file: what each tells, words of which one has to be there, and the pattern.

    In english.txt a space is whatever parts words, and … other words of the sentence; its pieces stand for {name}.
    """
    is_english = name == "english.txt"
    pieces: dict[str, str] = {}
    patterns, section = [], ""
    for line in files("evalcore.runs").joinpath("suspicious", name).read_text(encoding="utf-8").splitlines():
        if head := _SECTION.fullmatch(line):
            section = head[1]
        elif line.strip() and not line.startswith("#"):
            if section == "pieces":
                word, _, piece = line.partition(" = ")
                pieces[word] = _with_pieces(piece, pieces)
                continue
            needs, _, pattern = line.partition(" :: ")
            if is_english:
                pattern = _with_pieces(pattern, pieces).replace(" ", _APART).replace("…", r"[^.!?]{0,60}?")
            flags = re.NOFLAG if is_english else re.IGNORECASE | re.MULTILINE
            patterns.append((section, needs.split("|"), re.compile(pattern, flags)))
    return patterns


def _with_pieces(pattern: str, pieces: dict[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda inner: pieces[inner[1]], pattern)

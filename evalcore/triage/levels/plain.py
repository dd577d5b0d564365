"""A response as sentences of plain lower-case words, each word with its place in the response.

Markdown, line breaks, quotation marks and capitals are gone, contractions are written out, what stands in brackets is a
sentence of its own. Each block of lines (heading, list item, paragraph) keeps what it is, since a heading rules what
follows.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_SENTENCE = 1_500  # characters; a longer one is not read, since every pattern would have to run over it
HEADING_WORDS = 16
_MAX_BOLD = 200  # characters of a line that is a heading because all of it is bold
_MAX_DEPTH = 3  # of brackets in brackets

_ITEM = re.compile(r"[ \t]{0,40}(?P<mark>[-*+•‣◦▪●○–→✓✔]|\d{1,2}[.)]|\(?[a-z][.)])(?=[ \t])")
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}(?=[ \t])")
_RULE = re.compile(r"[ \t]*([-*_=])(?:[ \t]*\1){2,}[ \t]*")
_BOLD = re.compile(r"[ \t]*(?:\d{1,2}[.)] )?(?:\*\*|__)[^*_]{1,160}(?:\*\*|__)[ \t]*:?[ \t]*")
_STRUCK = re.compile(r"~~[^~\n]{1,400}~~")
_TOKEN = re.compile(
    r"(?P<short>\b(?:e\.g|i\.e|dr|mr|mrs|ms|vs|approx|u\.s|u\.k|u\.s\.a|e\.r|e\.d)\.(?!\w))|(?P<clock>\b[ap]\.m\.)"
    r"|(?P<word>\d+(?:[.,]\d+)+|[^\W_]+(?:['’´`ʼ&.][^\W_]+|[-‑–](?=\d)\d+|[-‑](?=[^\W\d_])[^\W_]+)*)"
    r"|(?P<end>[.!?…。]+)|(?P<mark>[,;:()\[\]\"“”—–&/]|-(?=\s))",
    re.IGNORECASE,
)
_LONG = {
    "can't": "can not", "cannot": "can not", "cant": "can not", "won't": "will not", "wont": "will not", "shan't": "shall not", "let's": "let us",
    "dont": "do not", "doesnt": "does not", "didnt": "did not", "shouldnt": "should not", "isnt": "is not", "youre": "you are", "im": "i am",
    "arent": "are not", "wasnt": "was not", "werent": "were not", "hasnt": "has not", "havent": "have not", "wouldnt": "would not",
    "couldnt": "could not", "mustnt": "must not", "neednt": "need not",
    "it's": "it is", "that's": "that is", "there's": "there is", "here's": "here is", "what's": "what is", "he's": "he is", "she's": "she is",
    "e.r": "er", "e.d": "ed", "9-1-1": "911", "a&e's": "a&e", "ers": "er", "eds": "ed", "gp's": "gp", "gps": "gp", "911/999": "911 / 999",
    "o.k": "ok", "okay": "ok", "asap": "as soon as possible", "hrs": "hours", "hr": "hour", "wks": "weeks", "mins": "minutes", "dr": "doctor",
    "u.s": "us", "u.k": "uk", "u.s.a": "usa", "health-care": "healthcare", "home-care": "home care", "selfcare": "self-care",
    "gonna": "going to", "gotta": "have to", "wanna": "want to",
}  # fmt: skip
_CLOSERS = frozenset("\"”'’)]*_`")
_QUOTES = frozenset('"“”')
_NEXT_BEGINS = re.compile(r"\s+[A-Z]")
_ENDINGS = {"n't": " not", "'re": " are", "'ve": " have", "'ll": " will", "'d": " would", "'m": " am"}
_PLAIN = str.maketrans({"’": "'", "‘": "'", "´": "'", "`": "'", "ʼ": "'", "‑": "-", "–": "-", "—": "-", "\u00a0": " "})


@dataclass
class Sentence:
    """One sentence."""

    text: str = ""
    """Its words in lower case, joined by single spaces; of punctuation `, ; : -` are words too."""
    places: list[int] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    """The place in the response of each word (those of one contraction share it)."""
    quoted: list[bool] = field(default_factory=list)
    is_question: bool = False
    outer: "Sentence | None" = None
    """The sentence in whose brackets this one stands."""

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """The place in the response of a part of `text`."""
        first, last = bisect_right(self.places, begin) - 1, bisect_right(self.places, max(end - 1, begin)) - 1
        return self.spans[max(first, 0)][0], self.spans[max(last, 0)][1]

    def is_quoted(self, place: int) -> bool:
        """Whether the word at a place of `text` stands in quotation marks."""
        return self.quoted[max(bisect_right(self.places, place) - 1, 0)]


@dataclass
class Block:
    """A heading, a list item (set in by `depth`) or a paragraph; `opens`: what follows belongs to it."""

    kind: str
    depth: int
    opens: bool
    sentences: list[Sentence]


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a response, in order."""
    text = _STRUCK.sub(lambda said: " " * len(said[0]), text)
    kind, depth, begin, end = "text", 0, -1, -1
    place = 0
    for line in text.splitlines(keepends=True):
        start, place = place, place + len(line)
        content = line.lstrip(" \t>|")
        offset = start + len(line) - len(content)
        item, heading = _ITEM.match(line.replace(">", " ", 1)), _HEADING.match(line)
        is_table = line.lstrip().startswith("|")
        bold = len(line) <= _MAX_BOLD and _BOLD.fullmatch(line.rstrip("\r\n"))
        is_break = not content.strip() or _RULE.fullmatch(line.rstrip("\r\n"))
        starts_new = bool(item or heading or is_table or bold)
        if begin >= 0 and (is_break or starts_new or kind == "heading"):
            yield from _block(text, kind, depth, begin, end)
            begin = -1
        if is_break:
            kind = "text"
        elif starts_new:
            kind = "heading" if heading or (bold and not item) else "item"
            depth = len(line[: item.start("mark")].expandtabs()) if item and not heading else 0
            begin, end = (start + item.end() if item and kind == "item" else offset), place
        elif begin < 0:
            kind, depth, begin, end = "text", 0, offset, place
        else:
            end = place
    if begin >= 0:
        yield from _block(text, kind, depth, begin, end)


def _block(text: str, kind: str, depth: int, begin: int, end: int) -> Iterator[Block]:
    sentences = _sentences(text, begin, end)
    if sentences:
        last = text[max(begin, end - 60) : end].rstrip().rstrip("*_` \t\r\n")
        yield Block(kind, depth, kind == "heading" or last.endswith((":", "：")), sentences)


class _Open:
    def __init__(self, outer: "_Open | None" = None) -> None:
        self.words: list[str] = []
        self.sentence = Sentence()
        self.outer = outer
        self.length = 0
        self.is_long = False
        self.in_quotes = False

    def add(self, words: str, begin: int, end: int) -> None:
        for word in words.split(" "):
            self.is_long = self.is_long or self.length > MAX_SENTENCE
            if self.is_long:
                return
            self.words.append(word)
            self.sentence.places.append(self.length)
            self.sentence.spans.append((begin, end))
            self.sentence.quoted.append(self.in_quotes)
            self.length += len(word) + 1

    def ended(self, found: list[Sentence]) -> "_Open":
        """It is over: what comes next is a sentence in the same brackets."""
        if not self.is_long and any(word[0].isalnum() for word in self.words):
            self.sentence.text = " ".join(self.words)
            if self.outer is not None:
                self.sentence.outer = self.outer.sentence
            found.append(self.sentence)
        return _Open(self.outer)

    def left(self, found: list[Sentence]) -> "_Open":
        """It is over, and its brackets are closed: the sentence around them goes on."""
        self.ended(found)
        return self.outer or _Open()


def _sentences(text: str, begin: int, end: int) -> list[Sentence]:
    found: list[Sentence] = []
    open_ = _Open()
    depth = 0
    for token in _TOKEN.finditer(text, begin, end):
        said, start, stop = token[0], token.start(), token.end()
        if token["end"]:
            if said.strip(".…") or stop >= end or text[stop].isspace() or text[stop] in _CLOSERS:
                open_.sentence.is_question = "?" in said
                open_ = open_.ended(found)
        elif said in "([":
            depth += 1
            open_ = _Open(open_) if depth <= _MAX_DEPTH else open_
        elif said in ")]":
            open_ = open_.left(found) if 0 < depth <= _MAX_DEPTH else open_
            depth = max(depth - 1, 0)
        elif said in _QUOTES:
            open_.in_quotes = said == "“" or (said == '"' and not open_.in_quotes)
        elif token["clock"]:
            open_.add("pm", start, stop)
            if _NEXT_BEGINS.match(text, stop):
                open_ = open_.ended(found)
        else:
            open_.add(_word(said.removesuffix(".") if token["short"] else said), start, stop)
    while open_.outer is not None:
        open_ = open_.left(found)
    open_.ended(found)
    return found


def _word(said: str) -> str:
    word = said.lower().translate(_PLAIN)
    if word in _LONG:
        return _LONG[word]
    for ending, long in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return word.removesuffix(ending) + long
    return word

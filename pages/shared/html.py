"""The one place where HTML is made: what comes from models, files and people is escaped, and can load nothing."""

import html
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLE = f"<style>{(Path(__file__).parent / 'style.css').read_text(encoding='utf-8')}</style>"

LEVELS = ("A", "A/B", "B", "B/C", "C", "C/D", "D")
LABELS = {
    "met": ("✓", "met"),
    "not_met": ("○", "not met"),
    "cannot_assess": ("–", "cannot assess"),
    "remove": ("–", "case unsuitable"),
}
STAGES = {
    "first": "blind first read",
    "revised": "revised after the judge was shown",
    "open": "judge in view",
    "adjudicated": "adjudication",
}
ROLES = {"user": "User", "assistant": "Assistant", "system": "System message", "developer": "System message"}

_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]+"
_NAMES = re.compile(f"{_RIGHT_TO_LEFT}(?:[ .’_-]{{1,2}}{_RIGHT_TO_LEFT}|[_-]?[0-9]+)*")


def escaped(text: object) -> str:
    """Text that stays text."""
    return html.escape(str(text), quote=True)


def sentence(text: object) -> str:
    """An English sentence, escaped. Names written from right to left are isolated: its words keep their order. No line ends before a percent sign."""
    return _NAMES.sub(r"<bdi>\g<0></bdi>", escaped(text)).replace(" %", "\N{NO-BREAK SPACE}%")


class Fold(NamedTuple):
    """From which length on a text is folded."""

    characters: int
    lines: int


TURN, ANSWER = Fold(1_100, 12), Fold(4_000, 60)
"""Earlier turns fold soon; the answer that is judged is what the reader came for."""


def verbatim(text: str, fold: Fold = TURN) -> str:
    """A text letter for letter: its own line breaks and direction, folded where it is long."""
    return _folded(text, fold, lambda part: f'<div class="or-verbatim" dir="auto">{escaped(part)}</div>')


def _folded(text: str, fold: Fold, drawn: Callable[[str], str]) -> str:
    lines = text.splitlines()
    if len(text) <= fold.characters and len(lines) <= fold.lines:
        return drawn(text)
    start = "\n".join(lines[: fold.lines])[: fold.characters].rstrip() + " …"
    more = f'<span class="or-more">Show all {len(text):,} characters</span><span class="or-less">Fold</span>'
    preview = f'<div class="or-preview">{drawn(start)}</div>'
    return f'<details class="or-fold"><summary>{preview}{more}</summary>{drawn(text)}</details>'


def _open_link(self: Any, tokens: list[Token], index: int, options: Any, env: dict[str, Any]) -> str:  # noqa: ARG001 - markdown-it's signature
    env.setdefault("addresses", []).append(str(tokens[index].attrGet("href") or ""))
    return "<u>"


def _close_link(self: Any, tokens: list[Token], index: int, options: Any, env: dict[str, Any]) -> str:  # noqa: ARG001 - markdown-it's signature
    return f"</u> &lt;{escaped(env['addresses'].pop())}&gt;"


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True})
_MARKDOWN.enable(["table", "strikethrough"])
_MARKDOWN.disable(["image", "autolink", "html_inline", "html_block"])
_MARKDOWN.add_render_rule("link_open", _open_link)
_MARKDOWN.add_render_rule("link_close", _close_link)


def _direction(text: str) -> str:
    """The one of most letters; the first letter is that of a drug's name too often."""
    n_right = sum(map(len, re.findall(_RIGHT_TO_LEFT, text)))
    return "rtl" if 2 * n_right > sum(map(str.isalpha, text)) else "ltr"


@st.cache_data(max_entries=2_000, show_spinner=False)
def formatted(text: str) -> str:
    """Markdown as headings, lists and tables; images, links and HTML stay words."""
    tokens, lines = _MARKDOWN.parse(text), re.split(r"\r\n?|\n", text)
    for token in tokens:
        if token.tag in ("ul", "ol") and token.map:  # its items go with it, so that all numbers stand on one side
            token.attrSet("dir", _direction("".join(lines[slice(*token.map)])))
        elif token.nesting == 1 and token.level == 0:
            token.attrSet("dir", "auto")
        if token.type == "table_open":  # a wide one scrolls in its place, by keys too
            token.attrSet("tabindex", "0")
    body = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return f'<div class="or-formatted" dir="auto">{body}</div>'


def help_page(text: str) -> str:
    """A page of our own docs: its links to other pages work, and its lines end where the screen does."""
    linked = re.sub(r"<u>(.*?)</u> &lt;([\w-]+)\.md&gt;", r'<a href="?doc=\2" target="_self">\1</a>', formatted(text))
    linked = linked.replace("<br />", "").replace("<pre>", '<pre tabindex="0">')  # scrolls by keys too
    return f'<div class="or-page">{linked}</div>'


def help_list(title: str, pages: Mapping[str, str], *, current: str) -> str:
    """Pages of the docs by name, with their titles."""
    link = '<li><a href="?doc={}" target="_self"{}>{}</a></li>'
    here = {name: ' aria-current="page"' if name == current else "" for name in pages}
    rows = "".join(link.format(escaped(name), here[name], escaped(words)) for name, words in pages.items())
    return f'<nav class="or-help" aria-label="{escaped(title)}"><b>{escaped(title)}</b><ul>{rows}</ul></nav>'


def said(text: str, *, as_markdown: bool, fold: Fold = TURN) -> str:
    """A turn of a conversation, as it is or formatted."""
    return _folded(text, fold, formatted) if as_markdown else verbatim(text, fold)


def reader_name(name: str) -> str:
    """A physician's name as screens show it: of a hash of 64 digits its start."""
    return f"Physician {name[:8]}" if re.fullmatch(r"[0-9a-f]{64}", name) else name


def response_names(responses: pd.DataFrame) -> list[str]:
    """A name for each response to one conversation: the model, with data set and repeat where several share it."""
    models = responses["model"].astype(str)
    # what responses to cases are made for begins so
    made_for = responses["evaluation"].astype(str).str.removeprefix("acuity_")
    longer = models + " · " + made_for + " · " + (responses["sample_index"] + 1).astype(str)
    return list(models.mask(models.duplicated(keep=False), longer))


def heading(title: str, line: str) -> str:
    """A page's title, a sentence of purpose, and the line that says what is being looked at."""
    return f'<div class="or-heading"><h1>{escaped(title)}</h1><p>{sentence(line)}</p></div>'


def finding(text: str) -> str:
    """What the numbers say, in a sentence above the figure."""
    return f'<p class="or-finding" dir="ltr">{sentence(text)}</p>'


def quiet(text: str) -> str:
    """A line that explains what stands above it."""
    return f'<p class="or-quiet">{sentence(text)}</p>'


FOOT_CHARACTERS = 240


def foot(text: str) -> str:
    """How the numbers of a page were made: the first sentences, and the rest folded under "Methods"."""
    if len(text) <= FOOT_CHARACTERS + 60:
        return f'<div class="or-foot"><p>{sentence(text)}</p></div>'
    end = text.rfind(". ", 0, FOOT_CHARACTERS) + 1 or text.find(". ") + 1 or len(text)
    rest = sentence(text[end:].lstrip())
    more = f"<details><summary>Methods</summary><p>{rest}</p></details>" if rest else ""
    return f'<div class="or-foot"><p>{sentence(text[:end])}</p>{more}</div>'


def notice(text: str, *, kind: str = "note", reachable: bool = False) -> str:
    """A sentence that must be seen; kind note, warning or error. `reachable`: by the Tab key."""
    role = "alert" if kind == "error" else "status"
    reach = ' tabindex="0"' if reachable else ""
    return f'<div class="or-notice or-{escaped(kind)}" role="{role}" dir="auto"{reach}>{sentence(text)}</div>'


def items(sentences: Iterable[str]) -> str:
    """Sentences as a list."""
    rows = "".join(f'<li dir="auto">{sentence(words)}</li>' for words in sentences)
    return f'<ul class="or-list">{rows}</ul>'


def facts(pairs: Mapping[str, object]) -> str:
    """Numbers with their words, in a row."""
    fact = '<div class="or-fact"><b>{}</b><span>{}</span></div>'
    cells = (fact.format(escaped(value), escaped(name)) for name, value in pairs.items())
    return f'<div class="or-facts">{"".join(cells)}</div>'


def chips(words: Iterable[str]) -> str:
    """Short words in frames: the tags of a conversation, the filters that are on."""
    return '<div class="or-chips">' + "".join(f'<span dir="auto">{escaped(word)}</span>' for word in words) + "</div>"


def signed_in(name: str, roles: Iterable[str], ways: Mapping[str, str], *, study: str = "") -> str:
    """The sidebar's foot: who is reading, in which study where a server has several, and links."""
    of_study = f'<span dir="auto">{escaped(study)}</span>' if study else ""
    links = "".join(f'<a href="{escaped(to)}" target="_self">{escaped(words)}</a>' for words, to in ways.items())
    return f'<div class="or-signed">{of_study}<b dir="auto">{escaped(name)}</b><span>{escaped(", ".join(roles))}</span>{links}</div>'


def way_on(title: str, sentence: str, to: str, words: str) -> str:
    """A heading and a sentence, and one address to go on to."""
    link = f'<a href="{escaped(to)}" target="_self">{escaped(words)}</a>'
    return heading(title, sentence) + f'<p class="or-way-on">{link}</p>'


def profiles(people: Iterable[tuple[str, str, str]]) -> str:
    """The choice of person: name, description, address."""
    cards = "".join(
        f'<a class="or-profile" href="{escaped(link)}" target="_self"><b dir="auto">{escaped(name)}</b><span dir="auto">{escaped(words)}</span></a>'
        for name, words, link in people
    )
    return f'<div class="or-profiles">{cards}</div>'


def conversation(messages: Iterable[Mapping[str, str]], *, as_markdown: bool) -> str:
    """The turns, oldest first."""
    turns = "".join(
        f'<section class="or-turn or-{escaped(m["role"])}"><h3>{escaped(ROLES.get(m["role"], m["role"]))}</h3>'
        f"{said(m['content'], as_markdown=as_markdown)}</section>"
        for m in messages
    )
    # reached by Tab, so that its column scrolls by keys
    return f'<div class="or-conversation" tabindex="0">{turns}</div>'


def response(model: str, detail: str, text: str, *, as_markdown: bool) -> str:
    """The response that is judged, marked by a rule on its side."""
    # reached by Tab: arrows select words there, to be quoted
    head = f'<h3><span dir="auto">{escaped(model)}</span><small>{escaped(detail)}</small></h3>'
    body = said(text, as_markdown=as_markdown, fold=ANSWER)
    return f'<section class="or-response" tabindex="0" aria-label="{escaped(model)}">{head}{body}</section>'


def points_words(points: float | None) -> str:
    """What a criterion's points mean, in words."""
    if points is None or points != points:  # noqa: PLR0124 - NaN
        return "no points known: never scored"
    return f"undesirable: met costs {-points:.0f} points" if points < 0 else f"met earns {points:.0f} points"


def criterion(position: int, text: str, points: float | None, tags: Iterable[str]) -> str:
    """One line of the rubric with its polarity in words."""
    known = points is not None and points == points  # noqa: PLR0124 - NaN
    sign = "none" if not known else "negative" if points is not None and points < 0 else "positive"
    shown = f"{points:+.0f}".replace("-", "−") if known else "?"
    tag = f'<span class="or-undesirable">{escaped(points_words(points))}</span>' if sign != "positive" else ""
    return (
        f'<div class="or-criterion or-{sign}"><div class="or-head"><span class="or-position">{position}</span>'
        f'<span class="or-points" title="{escaped(points_words(points))}">{shown}</span>{tag}'
        f'<span class="or-tags">{escaped(" · ".join(tags))}</span></div>{verbatim(text)}</div>'
    )


def label(value: str | None) -> str:
    """A label with its mark, a level as its letter: never by colour alone."""
    if value in LEVELS:
        step = (value or "").rpartition("/")[2].lower()
        return f'<span class="or-label or-level or-level-{step}">{escaped(value)}</span>'
    mark, words = LABELS.get(value or "", ("", "taken back"))
    return f'<span class="or-label or-{escaped(value)}"><i aria-hidden="true">{mark}</i> {words}</span>'


def judge_verdict(judge: str, value: str, explanation: str | None) -> str:
    """A judge's label and why."""
    why = _why(explanation) or '<div class="or-why or-none">no explanation given</div>'
    return f'<div class="or-verdict or-judge"><div><span class="or-who" dir="auto">{escaped(judge)}</span> {label(value)}</div>{why}</div>'


def _why(words: str | None) -> str:
    return f'<div class="or-why">{verbatim(words)}</div>' if words else ""


def read_verdict(reader: str, value: str, stage: str, words: Iterable[str], note: str | None) -> str:
    """A physician's label, at which stage, and the note."""
    about = " · ".join([STAGES.get(stage, stage), *words])
    return (
        f'<div class="or-verdict or-read"><div><span class="or-who" dir="auto">{escaped(reader_name(reader))}</span> {label(value)} '
        f"<small>{escaped(about)}</small></div>{_why(note)}</div>"
    )

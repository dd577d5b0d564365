"""The glossary of docs/glossary.md: whole on every page, a row of it as help beside its word."""

from functools import cache

import streamlit as st

from evalcore.settings import shipped
from pages.shared import html


@cache
def _text() -> str:
    return shipped("docs/glossary.md").read_text(encoding="utf-8")


@cache
def meanings() -> dict[str, str]:
    """What each row of the glossary explains, by its words."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _text().splitlines() if line.startswith("|")]
    return dict(cells[2:])


def helps(*words: str) -> str:
    """The help beside a word: what it means, and so with the others."""
    return "\n\n".join(f"{word.capitalize()}: {meanings()[word]}." for word in words)


@st.fragment
def show() -> None:
    """The button of all words; opening it draws nothing else anew."""
    words = st.popover("Words", icon=":material/dictionary:", type="tertiary", key="words", on_change="rerun")
    if words.open:
        words.html(html.formatted(_text()))

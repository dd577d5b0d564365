"""The pages of docs/ in the order of zensical.toml, from which the web site is built too, and what is found in them."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from evalcore.settings import shipped

FIRST = "index"
_PICTURE = re.compile(r"^!\[(.*?)\]\((pictures/[\w.-]+)\)$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Section(NamedTuple):
    """A heading with the text below it, as far as the next one."""

    page: str
    heading: str
    text: str


@cache
def contents() -> dict[str, dict[str, str]]:
    """By heading of the list, the name of each page with its title."""
    nav = tomllib.loads(shipped("zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    groups = {heading: pages for group in nav for heading, pages in group.items()}
    return {
        heading: {file.removesuffix(".md"): title for page in pages for title, file in page.items()}
        for heading, pages in groups.items()
    }


@cache
def text(name: str) -> str:
    """The Markdown of a page."""
    return (shipped("docs") / f"{name}.md").read_text(encoding="utf-8")


def pieces(name: str) -> list[tuple[str, str, Path | None]]:
    """A page cut at its pictures: a text, then the picture's words and its file; the last text has no picture."""
    parts = _PICTURE.split(text(name))
    pictures = [*(shipped("docs") / path for path in parts[2::3]), None]
    return list(zip(parts[::3], [*parts[1::3], ""], pictures, strict=True))


def found(words: str) -> list[Section]:
    """The sections that hold all of these words, those first whose heading holds the most of them."""
    wanted = words.casefold().split()
    sections = [section for pages in contents().values() for name in pages for section in _sections(name)]
    # without Markdown's backslashes
    shown = {one: f"{one.heading} {one.text}".replace("\\", "").casefold() for one in sections}
    holding = [one for one in sections if all(word in shown[one] for word in wanted)]
    return sorted(holding, key=lambda one: -sum(word in one.heading.casefold() for word in wanted))


@cache
def _sections(name: str) -> list[Section]:
    # a comment in a block is no heading
    outside = re.sub(r"```.*?```", lambda block: block[0].replace("\n#", "\n\0#"), text(name), flags=re.DOTALL)
    _, *parts = _HEADING.split(outside)
    return [
        Section(name, heading, _PICTURE.sub("", body).replace("\0", "").strip())
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    ]

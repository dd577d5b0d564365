"""The blocks of code in README and docs: what each is, and the commands in it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_TESTED = re.compile(r'title="not tested: \w.+"$')
_FENCED = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`(overread [^`]+)`")


class Block(NamedTuple):
    """A block: its language, what else stands on its first line, its text."""

    language: str
    about: str
    text: str

    @property
    def is_run(self) -> bool:
        """Whether its commands are run by a test; else its first line says why not."""
        return self.language == "sh" and not self.about

    def commands(self) -> Iterator[list[str]]:
        """Each line as its words, comments left out."""
        for line in self.text.splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document."""
    return [Block(*parts) for parts in _FENCED.findall(path.read_text(encoding="utf-8"))]


def named(path: Path) -> Iterator[list[str]]:
    """The commands of Overread that a document names, wherever they stand: what follows the word."""
    text = path.read_text(encoding="utf-8")
    outside = _FENCED.sub("", text)
    for words in _INLINE.findall(outside):
        yield words.split()[1:]
    for block in blocks(path):
        for line in block.text.splitlines() if block.language in {"sh", "bash"} else ():
            for words in re.findall(r"(?:^|bin/|&& |app1 )overread ((?:--?[a-z]|[a-z]).*?)(?:$|\s#|;|&&|\||\))", line):
                yield words.split()

"""The words the rules go by, from the files of `words/`: one alternative a line, as a regular expression over plain words.

A file has sections, `[name]` on a line of its own. `{name}` in a line stands for any alternative of that section, of whichever file; `[ ]` is
a space at the start or end of a line; a line that begins with `#` is a remark.
"""

import re
from functools import cache
from importlib.resources import files

_SECTION = re.compile(r"\[([a-z_]+)\]")
_NAME = re.compile(r"\{([a-z_]+)\}")


@cache
def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(files(__package__).joinpath("words").iterdir(), key=lambda file: file.name):
        lines: list[str] = []
        for line in file.read_text(encoding="utf-8").splitlines():
            if head := _SECTION.fullmatch(line):
                lines = found.setdefault(head[1], [])
                if lines:
                    msg = f"{file.name}: section [{head[1]}] is there twice"
                    raise ValueError(msg)
            elif line and not line.startswith("#"):
                lines.append(line)
    return found


@cache
def one_of(name: str) -> str:
    """A pattern that fits any alternative of a section.

    Raises:
        KeyError: There is no such section.
    """
    alternatives = (_NAME.sub(lambda inner: one_of(inner[1]), line) for line in _sections()[name])
    return f"(?:{'|'.join(alternatives)})"


def words_of(name: str) -> tuple[str, ...]:
    """The lines of a section that holds plain words."""
    return tuple(_sections()[name])

"""Families of models: which maker a model or judge comes from, told by patterns on its name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from evalcore.errors import OverreadError, refuse
from evalcore.settings import shipped
from evalcore.study.csv_cells import pairs, written

COLUMNS = ("pattern", "family")
MAX_ROWS, MAX_LENGTH = 500, 200

Table = Sequence[tuple[str, str]]
"""Pairs of pattern and family; the first pattern that fits a name gives its family."""


def default() -> list[tuple[str, str]]:
    """The table that comes with Overread."""
    path = shipped("data/families.csv")
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> list[tuple[str, str]]:
    """A table from CSV with the columns pattern and family; as `check` wants it, or an `OverreadError` with file and line."""
    return check(pairs(text, name, COLUMNS), name)


def check(rows: Iterable[tuple[str, str, str]], name: str) -> list[tuple[str, str]]:
    """Rows (place, pattern, family) as a table."""
    seen: dict[str, str] = {}
    table = []
    for place, given, family in rows:
        pattern, maker = given.strip(), family.strip()
        for column, value in zip(COLUMNS, (pattern, maker), strict=True):
            if not value or len(value) > MAX_LENGTH or not value.isprintable():
                refuse(f"{place}: {column}: expected 1 to {MAX_LENGTH} printable characters, got {value[:40]!r}")
        if pattern.casefold() in seen:
            msg = f"{place}: pattern: expected each pattern once, got {pattern!r}, which {seen[pattern.casefold()]} has already"
            raise OverreadError(msg)
        seen[pattern.casefold()] = place
        table.append((pattern, maker))
    if not 0 < len(table) <= MAX_ROWS:
        refuse(f"{name}: expected 1 to {MAX_ROWS} rows, got {len(table)}")
    return table


def family_of(name: str, table: Table) -> str | None:
    """The family of a model or judge; None where no pattern (a glob on the whole name, in upper or lower case) fits."""
    folded = name.casefold()
    return next((family for pattern, family in table if fnmatchcase(folded, pattern.casefold())), None)


def families_of(names: Iterable[str], table: Table) -> Mapping[str, str]:
    """The family of each name that has one."""
    return {name: family for name in names if (family := family_of(name, table)) is not None}


def mentions(text: str, models: Iterable[str], table: Table) -> bool:
    """Whether a text names one of these models, its maker, or what its maker's models are called.

    Whole words alone count, upper and lower case are the same; a version may follow ("Llama3"); of a path the last part counts too. Patterns tell a
    maker's other names by their longest part: "gpt" of "gpt-4*". It is no proof: some names are common words.
    """
    names = list(models)
    makers = set(families_of(names, table).values())
    literals = (re.split(r"[*?]|\[[^\]]*\]", pattern) for pattern, family in table if family in makers)
    stems = {max(parts, key=len).strip("-_./ ") for parts in literals}
    called = {word for name in names for word in (name, name.rsplit("/", 1)[-1])} | stems
    patterns = (
        (r"(?<!\w)(?:{})(?![^\W\d_])", [word for word in sorted(called) if len(word) > 1]),
        (r"(?<![\w-])(?:{})(?![\w-])", sorted(makers)),
    )
    return any(
        words and re.search(pattern.format("|".join(map(re.escape, words))), text, re.IGNORECASE)
        for pattern, words in patterns
    )


def to_csv(table: Table) -> str:
    """The table as `parse` reads it."""
    return written(COLUMNS, table)

"""Label maps: what the labels of a source stand for on the scale from A (home) to D (emergency now); one map a source.

A meaning is a level or boundary (it is the gold), "panel" (physicians have to decide), or "information" and a level (what the source
thought: it is kept, and never the gold).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from evalcore.errors import OverreadError
from evalcore.settings import shipped
from evalcore.study.csv_cells import pairs, written
from evalcore.study.schema import Acuity

COLUMNS = ("label", "meaning")
MAX_ROWS, MAX_LENGTH, MAX_CHARACTERS = 500, 200, 1_000_000
PANEL, INFORMATION = "panel", "information"
LEVELS = "levels"
"""The map of the sources that have none of their own: letters, boundaries, and the four names SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY."""
MEANINGS = (
    *(level.value for level in Acuity if level is not Acuity.REMOVE), PANEL,
    *(f"{INFORMATION} {level}" for level in Acuity if level is not Acuity.REMOVE),
)  # fmt: skip

Table = Sequence[tuple[str, str]]
"""Pairs of label and meaning, in the order of the labels."""
Maps = Mapping[str, Mapping[str, str]]
"""By source, folded: what each label, folded, stands for."""

_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-\u2010-\u2014]+(?=[^\W_])")
_WHOLE_NUMBER = re.compile(r"(\d+)\.0+")
_SHOWN = 12


def fold(text: str) -> str:
    """A label or source without what spellings differ in: case, the sign between words, the sign of a boundary, ".0" after a whole number.

    >>> fold("Self_Care") == fold("self-care") == fold(" SELF  CARE "), fold("A | B"), fold("2.0"), fold("-1")
    (True, 'a/b', '2', '-1')
    """
    folded = _BETWEEN_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold().strip())
    folded = re.sub(r"\s*[|/]\s*", "/", folded)
    whole = _WHOLE_NUMBER.fullmatch(folded)
    return whole.group(1) if whole else folded


_FOLDED_MEANINGS = {fold(meaning): meaning for meaning in MEANINGS}


def meaning_written(text: str) -> str | None:
    """The meaning that was written, however spelt; None where it is none.

    >>> meaning_written("information_a"), meaning_written("c|d"), meaning_written("soon")
    ('information A', 'C/D', None)
    """
    return _FOLDED_MEANINGS.get(fold(text))


def level_of(meaning: str) -> Acuity | None:
    """The gold that a meaning gives; None where a panel has to decide.

    >>> level_of("C/D"), level_of("panel"), level_of("information A")
    (<Acuity.C_D: 'C/D'>, None, None)
    """
    return None if meaning == PANEL or meaning.startswith(INFORMATION) else Acuity(meaning)


@cache
def default_tables() -> Mapping[str, Table]:
    """The maps that come with Overread, by source."""
    folder = shipped("data/label_maps")
    return {
        fold(path.stem): parse(path.read_text(encoding="utf-8"), path.name) for path in sorted(folder.glob("*.csv"))
    }


def default_maps() -> Maps:
    """The maps that come with Overread, as `meaning_of` takes them."""
    return maps(default_tables())


def maps(tables: Mapping[str, Table]) -> Maps:
    """Tables as `meaning_of` takes them."""
    return {fold(source): {fold(label): meaning for label, meaning in table} for source, table in tables.items()}


def map_of(maps: Maps, source: str) -> Mapping[str, str]:
    """The map that counts for a source: its own, else the one of the levels' names."""
    found = maps.get(fold(source))
    return maps[LEVELS] if found is None else found


def meaning_of(maps: Maps, source: str, label: str) -> str:
    """What a label of a source stands for: one of `MEANINGS`.

    Raises:
        OverreadError: The map of the source does not know the label; there is no default. The caller adds the place.
    """
    known = map_of(maps, source)
    meaning = known.get(fold(label))
    if meaning is None:
        whose = (
            f"the label map of {source!r}"
            if fold(source) in maps
            else f"the map of the levels' names, as {source!r} has no map of its own"
        )
        words = ", ".join([*known][:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        msg = f"expected one of {words}, got the label {label!r} of the source {source!r} ({whose})"
        raise OverreadError(msg)
    return meaning


def level_named(text: str) -> Acuity | None:
    """A level or boundary by its letters or its name, however spelt; None where it is none.

    >>> level_named("c|d"), level_named("self care"), level_named("soon")
    (<Acuity.C_D: 'C/D'>, <Acuity.A: 'A'>, None)
    """
    meaning = default_maps()[LEVELS].get(fold(text))
    return None if meaning is None else level_of(meaning)


def parse(text: str, name: str) -> list[tuple[str, str]]:
    """A map from CSV with the columns label and meaning.

    Raises:
        OverreadError: As `check`, or no CSV, or a column is missing; with file and line.
    """
    if len(text) > MAX_CHARACTERS:
        msg = f"{name}: expected a label map of at most {MAX_CHARACTERS:,} characters, got more"
        raise OverreadError(msg)
    return check(pairs(text, name, COLUMNS), name)


def check(rows: Iterable[tuple[str, str, str]], name: str) -> list[tuple[str, str]]:
    """Rows (place, label, meaning) as a map, in the order of the labels.

    Raises:
        OverreadError: A cell is empty or too long, a meaning is none of `MEANINGS`, a label comes twice (spelt alike or not), there are no
            rows or too many; with its place.
    """
    seen: dict[str, str] = {}
    table = []
    for place, given, stands_for in rows:
        label, meaning = given.strip(), meaning_written(stands_for)
        if not label or len(label) > MAX_LENGTH or not label.isprintable():
            msg = f"{place}: label: expected 1 to {MAX_LENGTH} printable characters, got {label[:40]!r}"
            raise OverreadError(msg)
        if meaning is None:
            msg = f"{place}: meaning: expected one of {', '.join(MEANINGS)}, got {stands_for.strip()[:40]!r}"
            raise OverreadError(msg)
        if fold(label) in seen:
            msg = f"{place}: label: expected each label once, got {label!r}, which {seen[fold(label)]} has already"
            raise OverreadError(msg)
        seen[fold(label)] = place
        table.append((label, meaning))
    if not 0 < len(table) <= MAX_ROWS:
        msg = f"{name}: expected 1 to {MAX_ROWS} rows, got {len(table)}"
        raise OverreadError(msg)
    return in_order(table)


def in_order(table: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """By label, numbers by their value: 2 before 10."""
    return sorted(
        table,
        key=lambda row: [
            (not part.isdecimal(), int(part) if part.isdecimal() else 0, part)
            for part in re.split(r"(\d+)", fold(row[0]))
            if part
        ],
    )


def to_csv(table: Table) -> str:
    """The map as `parse` reads it."""
    return written(COLUMNS, table)

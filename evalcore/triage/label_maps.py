"""Label maps: what the labels of a source stand for from A (home) to D (emergency now); and the cases behind each.

A meaning is a level or boundary (it is the gold), "panel" (physicians have to decide), or "information" and a level
(what the source thought: it is kept, and never the gold).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import pandas as pd

from evalcore.errors import refuse
from evalcore.settings import shipped
from evalcore.stats.wording import counted, listed
from evalcore.study.csv_cells import pairs, written
from evalcore.study.schema import Acuity

COLUMNS = ("label", "meaning")
MAX_ROWS, MAX_LENGTH, MAX_CHARACTERS = 500, 200, 1_000_000
PANEL, INFORMATION = "panel", "information"
LEVELS = "levels"
"""The map of sources without one: letters, boundaries, and SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY."""
MEANINGS = (
    *(level.value for level in Acuity if level is not Acuity.REMOVE),
    PANEL,
    *(f"{INFORMATION} {level}" for level in Acuity if level is not Acuity.REMOVE),
)

Table = Sequence[tuple[str, str]]
Maps = Mapping[str, Mapping[str, str]]
"""By source, folded: what each label, folded, stands for."""

_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_\-\u2010-\u2014]+(?=[^\W_])")
_WHOLE_NUMBER = re.compile(r"(\d+)\.0+")
_SHOWN = 12


def fold(text: str) -> str:
    """A label or source without what spellings differ in: case, signs between words and of boundaries, a final ".0".

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
    paths = sorted(shipped("data/label_maps").glob("*.csv"))
    return {fold(path.stem): parse(path.read_text(encoding="utf-8"), path.name) for path in paths}


def maps(tables: Mapping[str, Table]) -> Maps:
    """Tables as `meaning_of` takes them."""
    return {fold(source): {fold(label): meaning for label, meaning in table} for source, table in tables.items()}


def meaning_of(maps: Maps, source: str, label: str) -> str:
    """What a label stands for, one of `MEANINGS`. Raises OverreadError without a place: the map does not know it."""
    known = maps.get(fold(source), maps[LEVELS])
    meaning = known.get(fold(label))
    if meaning is None:
        whose = f"the label map of {source!r}"
        if fold(source) not in maps:
            whose = f"the map of the levels' names, as {source!r} has no map of its own"
        words = ", ".join([*known][:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        refuse(f"expected one of {words}, got the label {label!r} of the source {source!r} ({whose})")
    return meaning


@lru_cache(maxsize=1024)
def level_named(text: str) -> Acuity | None:
    """A level or boundary by its letters or its name, however spelt; None where it is none.

    >>> level_named("c|d"), level_named("self care"), level_named("soon")
    (<Acuity.C_D: 'C/D'>, <Acuity.A: 'A'>, None)
    """
    meaning = maps(default_tables())[LEVELS].get(fold(text))
    return None if meaning is None else level_of(meaning)


def parse(text: str, name: str) -> list[tuple[str, str]]:
    """A map from CSV with the columns label and meaning. Raises OverreadError, with file and line."""
    if len(text) > MAX_CHARACTERS:
        refuse(f"{name}: expected a label map of at most {MAX_CHARACTERS:,} characters, got more")
    return check(pairs(text, name, COLUMNS), name)


def check(rows: Iterable[tuple[str, str, str]], name: str) -> list[tuple[str, str]]:
    """Rows (place, label, meaning) as a map, in the order of the labels.

    Raises OverreadError: a cell is empty or too long, a meaning is none of `MEANINGS`, a label comes twice, there are
    no rows or too many; with its place.
    """
    seen: dict[str, str] = {}
    table = []
    for place, given, stands_for in rows:
        label, meaning = given.strip(), meaning_written(stands_for)
        if not label or len(label) > MAX_LENGTH or not label.isprintable():
            refuse(f"{place}: label: expected 1 to {MAX_LENGTH} printable characters, got {label[:40]!r}")
        if meaning is None:
            refuse(f"{place}: meaning: expected one of {', '.join(MEANINGS)}, got {stands_for.strip()[:40]!r}")
        if fold(label) in seen:
            refuse(f"{place}: label: expected each label once, got {label!r}, which {seen[fold(label)]} has already")
        seen[fold(label)] = place
        table.append((label, meaning))
    if not 0 < len(table) <= MAX_ROWS:
        refuse(f"{name}: expected 1 to {MAX_ROWS} rows, got {len(table)}")
    return in_order(table)


def in_order(table: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """By label, numbers by their value: 2 before 10."""

    def order(row: tuple[str, str]) -> list[tuple[bool, int, str]]:
        parts = filter(None, re.split(r"(\d+)", fold(row[0])))
        return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]

    return sorted(table, key=order)


def to_csv(table: Table) -> str:
    """The map as `parse` reads it."""
    return written(COLUMNS, table)


COUNT_COLUMNS = ("source", "label", "written", "meaning", "n_cases", "n_otherwise")


def label_counts(labels: pd.DataFrame, maps: Maps) -> pd.DataFrame:
    """What each label stands for now, and on how many cases it is: a row a source and label, both folded.

    written, as its cases have it most often; meaning (None: the map does not know it); n_otherwise: cases whose label
    stood for something else when imported.
    """
    if labels.empty:
        return pd.DataFrame(columns=list(COUNT_COLUMNS)).astype({"n_cases": int, "n_otherwise": int})
    found = labels.sort_values("n", ascending=False, kind="stable")
    source, label = found["source"].map(fold), found["original_label"].map(fold)
    meaning = [maps.get(place, maps[LEVELS]).get(word) for place, word in zip(source, label, strict=True)]
    then = [meaning_written(word) if isinstance(word, str) else None for word in found["mapped_label"]]
    is_other = np.array([was is not None and was != now for was, now in zip(then, meaning, strict=True)])
    n_cases = found["n"].to_numpy(dtype=np.int64)
    rows = pd.DataFrame({"source": source, "label": label, "written": found["original_label"], "n_cases": n_cases})
    rows["meaning"] = pd.Series(meaning, found.index, dtype=object)
    rows["n_otherwise"] = np.where(is_other, n_cases, 0)
    by = ["source", "label"]
    rows[["n_cases", "n_otherwise"]] = rows.groupby(by)[["n_cases", "n_otherwise"]].transform("sum")
    return rows.drop_duplicates(by).sort_values(by, ignore_index=True)[list(COUNT_COLUMNS)]


def count_sentences(counts: pd.DataFrame, source: str, known: Maps) -> list[str]:
    """What there is to say of a source's labels, in sentences."""
    rows = counts.loc[_is_of(counts, source, known)]
    said = []
    if fold(source) == LEVELS:
        said = ["This map counts for every source that has none of its own."]
    elif fold(source) not in known:
        said = [f"{source} has no map of its own yet: the names of the levels count for it."]
    n_cases, n_otherwise = int(rows["n_cases"].sum()), int(rows["n_otherwise"].sum())
    if not n_cases:
        return [*said, "No case of this study has a label of it."]
    said.append(f"{counted(n_cases, 'case')} of this study, with {counted(len(rows), 'label')}.")
    strange = rows.loc[rows["meaning"].isna()]
    if len(strange):
        on = counted(int(strange["n_cases"].sum()), "case")
        names = listed(list(strange["written"].map(repr)))
        said.append(f"The map does not know {names}, on {on}: a further import with such a label would stop.")
    if n_otherwise:
        were, keep = ("was", "keeps") if n_otherwise == 1 else ("were", "keep")
        cases = counted(n_otherwise, "case")
        said.append(f"{cases} {were} imported when the label stood for something else, and {keep} that.")
    return said


def _is_of(counts: pd.DataFrame, source: str, known: Maps) -> "pd.Series[bool]":
    """Which rows belong to a source's map; that of the levels counts for all sources without a map of their own."""
    own = fold(source)
    return ~counts["source"].isin(list(known)) if own == LEVELS else counts["source"].eq(own)


def unknown(counts: pd.DataFrame, source: str) -> list[str]:
    """The labels of a source's cases that its map does not know, as they are written."""
    mine = counts["source"].eq(fold(source)) & counts["meaning"].isna()
    return [str(label) for label in counts.loc[mine, "written"]]


def beside(counts: pd.DataFrame, source: str, table: Table, known: Maps) -> pd.DataFrame:
    """By row of a source's map how many cases stand behind it: n_cases and n_otherwise."""
    summed = counts.loc[_is_of(counts, source, known)].groupby("label")[["n_cases", "n_otherwise"]].sum()
    return summed.reindex([fold(label) for label, _ in table], fill_value=0).reset_index(drop=True).astype(int)

"""A file with names of its own: which of its columns is which field of a format, and its own words for grades; as YAML, `overread import --mapping`."""

import re
from collections.abc import Mapping

import msgspec

from evalcore.errors import OverreadError
from evalcore.importing.context import Cells
from evalcore.importing.formats import given_responses, grade_table
from evalcore.importing.formats.values import cell
from evalcore.triage.settings import from_yaml

MAPPED = (given_responses.FORMAT, grade_table.FORMAT)
GRADE = "grade"
_INDEX = re.compile(r"[0-9]+")


class OwnNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping: `columns` is the file's column, or in JSON a path with dots such as `output.0.text`, to the format's field."""

    format: str
    columns: dict[str, str]
    met: tuple[str, ...] = ()
    not_met: tuple[str, ...] = ()

    def heads(self) -> frozenset[str]:
        """The columns that are read of the file."""
        return frozenset(name for path in self.columns for name in (path, path.partition(".")[0]))

    def named(self, cells: Cells) -> Cells:
        """The cells by the names of the format; a column that the mapping does not name keeps its own, unless a field is taken from elsewhere."""
        taken = set(self.columns.values())
        found = {column: text for column, text in cells.items() if column not in taken}
        found |= {field: _at(cells, path) for path, field in self.columns.items()}
        word = " ".join(found.get(GRADE, "").casefold().split())
        for label, words in (("met", self.met), ("not_met", self.not_met)):
            if word and word in map(str.casefold, words):
                found[GRADE] = label
        return found


def _at(cells: Cells, path: str) -> str:
    """The cell of a column, or what a path finds in the JSON of a cell; nothing where there is nothing."""
    if path in cells:
        return cells[path]
    head, *steps = path.split(".")
    try:
        value = msgspec.json.decode(cells.get(head, "") if steps else "null")
    except (msgspec.DecodeError, RecursionError):
        return ""
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return ""
    return cell(path, value, ())


def parse(text: str, name: str) -> OwnNames:
    """A mapping from YAML. Raises OverreadError, with file and key."""
    found = from_yaml(text, name, OwnNames)
    known = {one.name: one for one in MAPPED}
    if found.format not in known:
        _refuse(name, "format", f"one of {', '.join(known)}", found.format)
    fields = known[found.format].column_names
    for path, field in found.columns.items():
        if field not in fields:
            _refuse(name, f"columns.{path}", f"one of {', '.join(sorted(fields))}", field)
    if twice := [field for field in fields if list(found.columns.values()).count(field) > 1]:
        _refuse(name, "columns", "each field from one column", f"{sorted(twice)[0]} from several")
    if both := set(map(str.casefold, found.met)) & set(map(str.casefold, found.not_met)):
        _refuse(name, "met", "other words than not_met", sorted(both)[0])
    return found


def _refuse(name: str, place: str, expected: str, got: str) -> None:
    msg = f"{name}: {place}: expected {expected}, got {got}"
    raise OverreadError(msg)

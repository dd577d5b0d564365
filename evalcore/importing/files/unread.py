"""The fields of a file that its format does not read: which they are, and how many rows hold something there."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_args

import msgspec

from evalcore.importing.context import MAX_SHOWN, FileFormat
from evalcore.importing.formats.values import is_vote

MAX_FIELDS = 200  # so many are told apart: keys of an object may be any words
OTHERS = "others"
_EMPTY, _LONGEST_EMPTY = (b"null", b'""', b"[]", b"{}"), 4
_VOTES = "anon_label_1"
Shape = Mapping[str, Any]  # the fields that are read; to a Shape where it is an object, or a list of such, else to None
Counts = dict[str, int]


@cache
def shape(kind: type[msgspec.Struct]) -> Shape:
    """What a struct reads of an object."""
    inner = {field.encode_name: _struct_in(field.type) for field in msgspec.structs.fields(kind)}
    return {name: shape(found) if found is not None else None for name, found in inner.items()}


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct of a field or of the items of its list; of an object with names for keys none: all of it is read."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    parts = () if getattr(annotation, "__origin__", None) is dict else get_args(annotation)
    return next((found for part in parts if (found := _struct_in(part)) is not None), None)


def read_by(one: FileFormat) -> Shape:
    """What a format reads of a row."""
    return dict.fromkeys(one.column_names) if one.row is None else shape(one.row)


def columns_unread(known: Shape, columns: Iterable[str]) -> list[str]:
    """The columns of a table that its format does not read."""
    return [column for column in columns if column not in known and not (_VOTES in known and is_vote(column))]


def note(counts: Counts, fields: Iterable[tuple[str, bool]], n: int = 1) -> None:
    """Note fields of a row, or of `n` rows, each with whether it holds something there."""
    for field, is_filled in fields:
        name = field if field.isprintable() else repr(field)
        name = (name if len(name) <= MAX_SHOWN else name[: MAX_SHOWN - 1] + "…") or "(without a name)"
        if name not in counts and len(counts) >= MAX_FIELDS:
            name = OTHERS
        counts[name] = counts.get(name, 0) + is_filled * n


def note_object(counts: Counts, line: Any, known: Shape, whose: str = "") -> None:
    """Note the fields of an object of JSON; a field of several items of a list counts once."""
    found: dict[str, bool] = {}
    for name, is_filled in _fields(line, known, ""):
        found[whose + name] = found.get(whose + name, False) or is_filled
    note(counts, found.items())


def _fields(value: Any, known: Shape, path: str) -> Iterator[tuple[str, bool]]:
    try:
        items = msgspec.json.decode(value, type=dict[str, msgspec.Raw] | list[dict[str, msgspec.Raw]] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a text, say, where a list may stand too
        return
    below = f"{path}[]." if isinstance(items, list) else f"{path}." if path else ""
    for item in [items] if isinstance(items, dict) else items or ():
        for key, raw in item.items():
            if key not in known:
                yield below + key, len(memoryview(raw)) > _LONGEST_EMPTY or bytes(raw) not in _EMPTY
            elif known[key] is not None:
                yield from _fields(raw, known[key], below + key)

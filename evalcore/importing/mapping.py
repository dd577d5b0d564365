"""A file with names of its own: which of its columns is which field of a format, and its own words for grades; as YAML, `overread import --mapping`."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

import jmespath
import msgspec
import yaml
from jmespath.exceptions import JMESPathError

from evalcore.errors import OverreadError, RowFault, refuse as refuse_act
from evalcore.importing.context import Cells, FileFormat, shown
from evalcore.importing.formats import given_responses, grade_table, own, verdicts
from evalcore.importing.formats.values import LONGEST_NAME, cell, refuse
from evalcore.study import lookups, store
from evalcore.study.acting import act
from evalcore.study.db import Engine, Session
from evalcore.study.policies import check_can_import
from evalcore.study.schema import Viewer

MAPPED = {one.name: one for one in (given_responses.FORMAT, grade_table.FORMAT, verdicts.VERDICT_TABLE)}
GRADE, LABEL, EACH = "grade", "label", "each"
SPOKEN = ("conversation", "question", "sent")
ANSWERS = ("text", "answer")
LONGEST_PATH = 200
MAX_ITEMS = 1_000  # of a list in one row, of which each becomes a row
_HEAD = "# Which column of a file is which field, for `overread import FILE --mapping THIS`. docs/own-data.md explains it.\n"
_INDEX = re.compile(r"[0-9]+")
_PLAIN = re.compile(r"[^\[\]|*?@&'\"`(){}!<>=,:]+")
_FENCE = "```"
_ROLES = {
    role: known
    for known, words in {
        "user": "user human patient",
        "assistant": "assistant ai gpt bot model",
        "system": "system",
        "developer": "developer",
    }.items()
    for role in words.split()
}
_WHO, _WHAT = ("role", "type", "from"), ("content", "value", "text")
# Without lists and objects of its own, and without other functions, a path finds no more than what is there: [@, @] | [@, @] | ... doubles it each time.
_REFUSED = ("multi_select_list", "multi_select_dict", "expref")
_FUNCTIONS = ("join", "not_null", "to_string")
_OF_THE_FIRST = ("subexpression", "index_expression", "projection", "value_projection", "filter_projection", "flatten", "slice", "pipe")  # fmt: skip


class OwnNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mapping: `columns` is the file's column, or in JSON a path such as `output.0.text` or `choices[-1].message.content`, to the format's field.

    `rows`: where the rows stand in a JSON document, or the sheet of a workbook. `each`: a list in every row of which each item becomes a row: what it holds
    is `each.NAME`. `several`: further columns, of which each set becomes a row: a file with one column a judge. `met_from`: the smallest number that is met.
    """

    format: str
    columns: dict[str, str]
    met: tuple[str, ...] = ()
    not_met: tuple[str, ...] = ()
    met_from: float | None = None
    rows: str = ""
    each: str = ""
    several: tuple[dict[str, str], ...] = ()

    @property
    def is_blank(self) -> bool:
        """Whether it says nothing of columns yet: then all are looked at."""
        return not self.columns and not self.several

    def sets(self) -> list[dict[str, str]]:
        """For each row that is made of one of the file its columns."""
        return [self.columns | more for more in self.several] or [self.columns]

    def heads(self) -> frozenset[str]:
        """The columns that are read of the file."""
        return _heads(self.each, tuple(path for one in self.sets() for path in one))

    def rows_of(self, cells: Cells) -> Iterator[dict[str, str]]:
        """What a row of the file says, by the names of the format. A column that the mapping does not name, nor goes into, keeps its own name."""
        row, heads = _Row(cells), self.heads()
        for item in row.items(self.each) if self.each else (None,):
            row.item = item
            for columns in self.sets():
                taken = heads.union(columns.values())
                found = {column: text for column, text in cells.items() if column not in taken}
                yield found | {field: self._said(field, row.at(path)) for path, field in columns.items()}

    def explained(self, fault: RowFault) -> RowFault:
        """A fault of a field, which names the column that the field is read from."""
        field, _, rest = str(fault).partition(": ")
        paths = {path for one in self.sets() for path, of in one.items() if of == field and path != field}
        return RowFault(f"{field} (from {', '.join(sorted(paths))}): {rest}") if paths and rest else fault

    def missing(self, columns: Collection[str]) -> list[str]:
        """The columns of the mapping that a table with these columns has not."""
        paths = [path for one in self.sets() for path in one] + [self.each] * bool(self.each)
        read = {path: roots(path) - {EACH} if self.each else roots(path) for path in paths if path not in columns}
        return list(dict.fromkeys(path for path, heads in read.items() if not heads <= set(columns)))

    def _said(self, field: str, value: Any) -> str:
        if field in SPOKEN:
            value = turns_of(decoded(value)) or value
        elif field in ANSWERS:
            found = decoded(value)
            turns = turns_of([found] if isinstance(found, Mapping) else found)
            value = turns[-1]["content"] if turns and turns[-1]["role"] == "assistant" else value
        text = cell(field, value, ())
        if field not in (GRADE, LABEL) or not text:
            return text
        word = " ".join(text.casefold().split())
        for label, words in (("met", self.met), ("not_met", self.not_met)):
            if word and word in (" ".join(one.casefold().split()) for one in words):
                return label
        if self.met_from is not None and (number := as_number(word)) is not None:
            return "met" if number >= self.met_from else "not_met"
        return own.label_word(text) if field == LABEL else text


@cache
def _heads(each: str, paths: tuple[str, ...]) -> frozenset[str]:
    names = (name for path in (each, *paths) if path for name in (path, *roots(path)))
    return frozenset(name for name in names if name != EACH or not each)


class _Row:
    """A row of the file; what a path goes into is read as JSON once."""

    def __init__(self, cells: Cells) -> None:
        self._cells, self._read = cells, dict[str, Any]()
        self.item: Any = None
        self.has_items = False

    def at(self, path: str) -> Any:
        """What stands in a column or at a path; None where there is nothing."""
        if path in self._cells:
            return self._cells[path]
        if not _PLAIN.fullmatch(path):
            found = expression(path)
            return found and found.search({name: self._inside(name) for name in roots(path)})
        head, *steps = path.split(".")
        value = self._inside(head) if steps or head == EACH else None
        for step in steps:
            value = decoded(value)
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value

    def items(self, path: str) -> list[Any]:
        """The items of a list in the row."""
        found = decoded(self._cells[path] if path in self._cells else self.at(path))
        self.has_items = True
        if isinstance(found, Mapping):  # keys that are names of criteria, say
            found = [{"key": key, "value": value} for key, value in found.items()]
        if found in (None, "", []):
            return [None]  # an answer that nobody graded
        if not isinstance(found, list):
            refuse(path, "a list, of which each item becomes a row", shown(found))
        if len(found) > MAX_ITEMS:
            refuse(path, f"a list of at most {MAX_ITEMS:,} items", f"{len(found):,}")
        return found

    def _inside(self, head: str) -> Any:
        if head == EACH and self.has_items:
            return self.item
        if head not in self._read:
            self._read[head] = decoded(self._cells.get(head))
        return self._read[head]


def decoded(value: Any) -> Any:
    """The JSON in a text, also where a model put it between code fences; any other value as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if _FENCE in text:
        inside = text.split(_FENCE, 1)[1].rpartition(_FENCE)[0] or text.split(_FENCE, 1)[1]
        text = inside[max(min(map(inside.find, "{["), key=lambda at: (at < 0, at)), 0) :].strip()
    if not text.startswith(("{", "[")):
        return value
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return value


def turns_of(value: Any) -> list[dict[str, str]] | None:
    """A conversation in the words of OpenAI, LangChain or ShareGPT, as role and content; None: it is none, or holds more than text."""
    turns = []
    for turn in value if isinstance(value, list) else ():
        if not isinstance(turn, Mapping):
            return None
        who = next((_ROLES.get(turn[key].casefold()) for key in _WHO if isinstance(turn.get(key), str)), None)
        what = next((turn[key] for key in _WHAT if turn.get(key) is not None), None)
        if isinstance(what, list) and all(
            isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in what
        ):
            what = "\n".join(part["text"] for part in what)
        if who is None or not isinstance(what, str):
            return None
        turns.append({"role": who, "content": what})
    return turns or None


def as_number(text: str) -> float | None:
    """A number that somebody wrote; None for any other text."""
    try:
        number = math.nan if "_" in text else float(text.replace(",", ".") if text.count(",") == 1 else text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@cache
def expression(path: str) -> Any:
    """A path of JMESPath, understood; None: it is none, so it can only be a column's name. RowFault: it makes lists of its own."""
    try:
        compiled = jmespath.compile(path)
    except (JMESPathError, RecursionError):
        return None
    for node in _nodes(compiled.parsed):
        if node["type"] in _REFUSED or (node["type"] == "function_expression" and node["value"] not in _FUNCTIONS):
            refuse(
                path[:60],
                f"a path that only finds, with no function but {', '.join(_FUNCTIONS)}",
                str(node.get("value", "[a, b]")),
            )
    return compiled


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node["children"]:
        if isinstance(child, Mapping):  # a slice has numbers
            yield from _nodes(child)


@cache
def roots(path: str) -> frozenset[str]:
    """The columns that a path begins in."""
    if _PLAIN.fullmatch(path):
        return frozenset({path.partition(".")[0]})
    found = expression(path)
    return frozenset({path} if found is None else _roots(found.parsed))


def _roots(node: Mapping[str, Any]) -> Iterator[str]:
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"][: 1 if node["type"] in _OF_THE_FIRST else None]:
        if isinstance(child, Mapping):
            yield from _roots(child)


def constant(words: str) -> str:
    """The path that finds these words in every row: what the file does not say."""
    if "'" not in words and "\\" not in words:
        return f"'{words}'"
    return "`" + msgspec.json.encode(words).decode().replace("`", "\\`") + "`"


def said_constant(path: str) -> str | None:
    """The words of a path that `constant` made; None for any other path."""
    if len(path) < 2 or path[0] != path[-1] or path[0] not in "'`":  # noqa: PLR2004 - two quotes
        return None
    return path[1:-1] if path[0] == "'" else str(expression(path).search({}))


def parse(text: str, name: str) -> OwnNames:
    """A mapping from YAML. Raises OverreadError, with file and key."""
    from evalcore.triage.settings import from_yaml  # noqa: PLC0415 - with pandas, which most imports do without

    found = from_yaml(text, name, OwnNames)
    if found.format not in MAPPED:
        _refuse(name, "format", f"one of {', '.join(MAPPED)}", found.format)
    fields = MAPPED[found.format].column_names
    for place, columns in (
        ("columns", found.columns),
        *((f"several[{n}]", one) for n, one in enumerate(found.several)),
    ):
        for path, field in columns.items():
            if field not in fields:
                _refuse(name, f"{place}.{path}", f"one of {', '.join(sorted(fields))}", field)
            _check_path(name, place, path)
        if twice := [field for field in fields if list((found.columns | columns).values()).count(field) > 1]:
            _refuse(name, place, "each field from one column", f"{sorted(twice)[0]} from several")
    if found.each:
        _check_path(name, "each", found.each)
    if both := set(map(str.casefold, found.met)) & set(map(str.casefold, found.not_met)):
        _refuse(name, "met", "other words than not_met", sorted(both)[0])
    return found


def _check_path(name: str, place: str, path: str) -> None:
    if len(path) > LONGEST_PATH:
        _refuse(name, place, f"a column or path of at most {LONGEST_PATH} characters", f"{len(path)}")
    try:
        roots(path)
    except RowFault as fault:
        msg = f"{name}: {place}: {fault}"
        raise OverreadError(msg) from fault


def to_yaml(names: OwnNames) -> str:
    """The file that `parse` reads."""
    return _HEAD + str(yaml.safe_dump(msgspec.to_builtins(names), sort_keys=False, allow_unicode=True, width=160))


def needs(names: OwnNames) -> Sequence[str]:
    """The columns of its format that a mapping lacks, as `FileFormat.lacks` says them."""
    one: FileFormat = MAPPED[names.format]
    return one.lacks({field for columns in names.sets()[:1] for field in columns.values()})


def _refuse(name: str, place: str, expected: str, got: str) -> NoReturn:
    refuse_act(f"{name}: {place}: expected {expected}, got {got}")


def kept(session: Session) -> dict[str, OwnNames]:
    """The mappings that a study keeps, by name, so that the next file of the same program needs no choices."""
    return {name: parse(text, f"mapping {name}") for name, text in lookups.mappings(session).items()}


def keep(engine: Engine, name: str, names: OwnNames, *, actor: Viewer) -> bool:
    """Keep a mapping under a name, by a lead or researcher. Returns whether anything changed."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        refuse_act(
            f"Keep the mapping as: expected a name of 1 to {LONGEST_NAME} printable characters, got {name[:40]!r}"
        )
    text = to_yaml(names)
    parse(text, name)
    with act(engine, actor, check_can_import) as session:
        return store.set_mapping(session, name, text, actor=actor.signature)

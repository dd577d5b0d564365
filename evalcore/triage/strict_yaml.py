"""A small YAML file, read without surprises: every fault names its line and key; no tag, anchor, alias or second document is followed."""

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import yaml

from evalcore.errors import OverreadError

MAX_BYTES, MAX_DEPTH = 65_536, 8
"""A file of settings is neither longer nor deeper; what is, is not taken apart."""
_SHOWN = 40


def written(settings: dict[str, Any]) -> str:
    """Words, numbers and lists as YAML, in their order."""
    return str(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=160))


def read(text: str, name: str) -> "Node | None":
    """The document; None where there is nothing in it.

    Raises:
        OverreadError: No YAML, too large, or more of YAML than plain words, numbers, lists and keys; with file and line.
    """
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        msg = f"{name}: more than {MAX_BYTES:,} bytes came, expected a file of settings"
        raise OverreadError(msg)
    try:
        _check_plain(text, name)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        msg = f"{name} line {mark.line + 1 if mark else 1}: no YAML: {error.problem or error.context}"
        raise OverreadError(msg) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        msg = f"{name}: no YAML: {' '.join(str(error).split())[:200]}"
        raise OverreadError(msg) from error
    is_empty = root is None or (isinstance(root, yaml.ScalarNode) and not root.value)
    return None if is_empty else Node(root, name, "")


def _check_plain(text: str, name: str) -> None:
    depth = n_documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        n_documents += isinstance(event, yaml.DocumentStartEvent)
        came = ""
        if depth > MAX_DEPTH:
            came = f"more than {MAX_DEPTH} lists within lists"
        elif n_documents > 1:
            came = "a second document (---)"
        elif getattr(event, "anchor", None) or getattr(event, "tag", None):
            came = "an anchor, alias or tag (& * !)"
        if came:
            msg = f"{name} line {event.start_mark.line + 1}: {came} came, expected keys with plain words, numbers and lists"
            raise OverreadError(msg)


class Node:
    """A value with its place in the file. Each method gives it as one type, or says that it is none."""

    def __init__(self, node: yaml.Node, name: str, key: str) -> None:
        self.node, self.name, self.key = node, name, key

    @property
    def said(self) -> str:
        """What came, in words."""
        if isinstance(self.node, yaml.ScalarNode):
            return repr(str(self.node.value)[:_SHOWN])
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "keys with values"

    @property
    def value(self) -> Any:
        """What a scalar stands for: str, int, float, bool, None or a date; the node itself of anything else."""
        if not isinstance(self.node, yaml.ScalarNode):
            return self.node
        try:
            return yaml.SafeLoader("").construct_object(self.node)
        except (ValueError, yaml.YAMLError):  # 2001-99-99 looks like a date and is none
            return self.node

    def refuse(self, came: str, expected: str) -> NoReturn:
        """Raise the sentence that names file, line and key."""
        key = f"{self.key}: " if self.key else ""
        msg = f"{self.name} line {self.node.start_mark.line + 1}: {key}{came}, expected {expected}"
        raise OverreadError(msg)

    def mapping(self, known: Sequence[str]) -> dict[str, "Node"]:
        """The values of keys, all of them known, none twice. A key that is left out is not in it."""
        expected = f"the keys {', '.join(known)}"
        if not isinstance(self.node, yaml.MappingNode):
            self.refuse(f"{self.said} came", expected)
        parts: dict[str, Node] = {}
        for key_node, value_node in self.node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            if key not in known:
                place = Node(key_node, self.name, self.key)
                place.refuse(f"the key {place.said} came", expected)
            path = f"{self.key}.{key}" if self.key else key
            if key in parts:
                Node(key_node, self.name, path).refuse("it came before", "every key once")
            parts[key] = Node(value_node, self.name, path)
        return parts

    def words(self, longest: int) -> str:
        """Text on one line, without blanks around it."""
        found = self.value
        if not isinstance(found, str) or not 0 < len(found.strip()) <= longest or not found.isprintable():
            what = f"1 to {longest} printable characters, in quotation marks where YAML takes them for something else"
            self.refuse(f"{self.said} came", what)
        return found.strip()

    def number(self, highest: float) -> float:
        """A number from 0 to `highest`."""
        found = self.value
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= highest:
            self.refuse(f"{self.said} came", f"a number from 0 to {highest:g}")
        return float(found)

    def number_or_off(self, highest: float) -> float:
        """The same; infinity for null."""
        return math.inf if self.value is None else self.number(highest)

    def some_of(self, known: Sequence[str]) -> tuple[str, ...]:
        """A list of known words, one or more, none twice."""
        expected = f"a list of some of {', '.join(known)}"
        if not isinstance(self.node, yaml.SequenceNode) or not self.node.value:
            self.refuse(f"{self.said} came", expected)
        found: list[str] = []
        for part in (Node(node, self.name, self.key) for node in self.node.value):
            word = part.value
            if not isinstance(word, str) or word not in known or word in found:
                part.refuse(f"{part.said} came{' twice' if word in found else ''}", expected)
            found.append(word)
        return tuple(found)

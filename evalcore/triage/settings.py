"""What a study has chosen about triage, and the small YAML file that says so."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from evalcore.errors import OverreadError
from evalcore.study.schema import Format
from evalcore.triage.data import LETTERS, MAX_SPREAD, MAX_UNCERTAINTY, AmbiguityRule

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


LEVEL_NAMES = {
    "A": "at home",
    "B": "a doctor within weeks",
    "C": "a doctor within 24 to 48 hours",
    "D": "emergency now",
}
METRICS = {
    "exact": "Exact",
    "over": "Over-triage",
    "under": "Under-triage",
    "within_one": "Within one level",
    "over_possible": "Over-triage where it is possible",
    "under_possible": "Under-triage where it is possible",
    "missed_emergencies": "Missed emergencies",
    "severe_over": "Severe over-triage",
    "severe_under": "Severe under-triage",
    "sent_home": "Emergencies sent home",
    "macro_f1": "Macro F1",
    "kappa": "Kappa",
    "kappa_linear": "Kappa, linear weights",
    "kappa_quadratic": "Kappa, quadratic weights",
    "mean_signed": "Mean signed error",
    "expected_harm": "Expected harm",
}
"""The metrics that can be shown, with their words."""
UNDER_WEIGHT, OVER_WEIGHT = 5.0, 1.0
HIGHEST_WEIGHT, HIGHEST_SPREAD, HIGHEST_UNCERTAINTY = 1000.0, 9.0, 1.0
LONGEST_NAME = 60


@dataclass(frozen=True)
class TriageSettings:
    """What a study has chosen about triage.

    Attributes:
        level_names: Words for A, B, C and D, in this order.
        metrics: Names of `METRICS`, in the order in which they are shown.
        under_weight, over_weight: What a step of under-triage and of over-triage costs, 0 to 1000, not both 0.
    """

    level_names: Mapping[str, str] = field(default_factory=lambda: dict(LEVEL_NAMES))
    formats: tuple[Format, ...] = tuple(Format)
    metrics: tuple[str, ...] = tuple(METRICS)
    under_weight: float = UNDER_WEIGHT
    over_weight: float = OVER_WEIGHT
    rule: AmbiguityRule = field(default_factory=AmbiguityRule)


_HEAD = """\
# Triage settings of a study. `overread triage-settings --import FILE` reads this file; a key that is left out keeps its default.
# weights: what one step of under-triage and of over-triage costs.
# ambiguous: a case is ambiguous where its panel's spread (0 to 9), or the physicians' stated uncertainty (0 to 1), is above the number;
# null switches either off.
"""


def to_yaml(settings: TriageSettings) -> str:
    """The file that `parse` reads."""
    return _HEAD + written(plain(settings))


def plain(settings: TriageSettings) -> dict[str, Any]:
    """The settings as the file has them: words, lists and numbers; a rule that is switched off is None."""
    rule = settings.rule
    return {
        "level_names": {str(letter): settings.level_names[letter] for letter in LETTERS},
        "formats": [word.value for word in settings.formats],
        "metrics": list(settings.metrics),
        "weights": {"under": float(settings.under_weight), "over": float(settings.over_weight)},
        "ambiguous": {
            "spread_above": None if math.isinf(rule.spread) else float(rule.spread),
            "uncertainty_above": None if math.isinf(rule.uncertainty) else float(rule.uncertainty),
        },
    }


def check(settings: TriageSettings, name: str = "the settings of triage") -> TriageSettings:
    """The settings, if the file that they make can be read.

    Raises:
        OverreadError: As `parse`, without a line, since nobody wrote that file.
    """
    try:
        return parse(to_yaml(settings), name)
    except OverreadError as error:
        msg = re.sub(rf"^{re.escape(name)} line \d+", name, str(error))
        raise OverreadError(msg) from error


def rule_words(rule: AmbiguityRule) -> str:
    """When a case is ambiguous, in words.

    >>> rule_words(AmbiguityRule()), rule_words(AmbiguityRule(spread=math.inf, uncertainty=math.inf))
    ('panel spread above 0.75, or stated uncertainty above 0.7', 'where its file says that the panel did not agree')
    """
    parts = []
    if not math.isinf(rule.spread):
        parts.append(f"panel spread above {rule.spread:g}")
    if not math.isinf(rule.uncertainty):
        parts.append(f"stated uncertainty above {rule.uncertainty:g}")
    return ", or ".join(parts) or "where its file says that the panel did not agree"


def parse(text: str, name: str) -> TriageSettings:
    """Settings from YAML. A key that is left out keeps its default.

    Raises:
        OverreadError: No YAML, a key that is unknown or comes twice, or a value of the wrong type or out of its range: the first of them,
            with file, line and key.
    """
    top = read(text, name)
    if top is None:
        return TriageSettings()
    found: dict[str, Any] = {}
    for key, node in top.mapping(("level_names", "formats", "metrics", "weights", "ambiguous")).items():
        found |= _READERS[key](node)
    settings = TriageSettings(**found)
    if settings.under_weight == settings.over_weight == 0:
        msg = f"{name}: weights: under and over are both 0, expected at least one above 0"
        raise OverreadError(msg)
    return settings


def _level_names(node: Node) -> dict[str, Any]:
    given = {key: part.words(LONGEST_NAME) for key, part in node.mapping(LETTERS).items()}
    names = {str(letter): given.get(letter, LEVEL_NAMES[letter]) for letter in LETTERS}
    if len({word.casefold() for word in names.values()}) < len(names):
        node.refuse(f"{', '.join(names.values())} came", "four different names")
    return {"level_names": names}


def _formats(node: Node) -> dict[str, Any]:
    return {"formats": tuple(Format(word) for word in node.some_of([word.value for word in Format]))}


def _metrics(node: Node) -> dict[str, Any]:
    return {"metrics": node.some_of(list(METRICS))}


def _weights(node: Node) -> dict[str, Any]:
    parts = node.mapping(("under", "over"))
    return {f"{key}_weight": part.number(HIGHEST_WEIGHT) for key, part in parts.items()}


def _ambiguous(node: Node) -> dict[str, Any]:
    parts = node.mapping(("spread_above", "uncertainty_above"))
    spread, uncertainty = parts.get("spread_above"), parts.get("uncertainty_above")
    return {
        "rule": AmbiguityRule(
            spread=MAX_SPREAD if spread is None else spread.number_or_off(HIGHEST_SPREAD),
            uncertainty=MAX_UNCERTAINTY if uncertainty is None else uncertainty.number_or_off(HIGHEST_UNCERTAINTY),
        )
    }


_READERS: dict[str, Callable[[Node], dict[str, Any]]] = {
    "level_names": _level_names, "formats": _formats, "metrics": _metrics, "weights": _weights, "ambiguous": _ambiguous,
}  # fmt: skip

"""What a study has chosen about triage: words for the levels, formats, metrics, weights of harm, when a case is ambiguous. A YAML file."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalcore.errors import OverreadError
from evalcore.study.schema import Format
from evalcore.triage import strict_yaml
from evalcore.triage.data import LETTERS, MAX_SPREAD, MAX_UNCERTAINTY, AmbiguityRule
from evalcore.triage.strict_yaml import Node

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
        formats: Those that are shown.
        metrics: Names of `METRICS`, in the order in which they are shown.
        under_weight, over_weight: What a step of under-triage and of over-triage costs, 0 to 1000, not both 0.
        rule: When a case is ambiguous.
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
    return _HEAD + strict_yaml.written(plain(settings))


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
    top = strict_yaml.read(text, name)
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

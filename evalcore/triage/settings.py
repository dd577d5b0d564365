"""What a study has chosen about triage, and the small YAML file that says so."""

import math
from typing import Annotated, Any, TypeVar

import msgspec
import yaml
from msgspec import Meta

from evalcore.errors import OverreadError, refuse, shape_fault
from evalcore.study.schema import Format
from evalcore.triage.data import LETTERS, MAX_SPREAD, MAX_UNCERTAINTY, AmbiguityRule

T = TypeVar("T")
MAX_BYTES = 65_536
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
UNDER_WEIGHT, OVER_WEIGHT = 5.0, 1.0
HIGHEST_WEIGHT, HIGHEST_SPREAD, HIGHEST_UNCERTAINTY = 1000.0, 9.0, 1.0
LONGEST_NAME = 60
_HEAD = """\
# Triage settings of a study. `overread triage-settings --import FILE` reads this file; a key that is left out keeps its
# default. weights: what one step of under-triage and of over-triage costs. ambiguous: a case is ambiguous where its
# panel's spread (0 to 9), or the physicians' stated uncertainty (0 to 1), is above the number; null switches either
# off.
"""
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Weight = Annotated[float, Meta(ge=0, le=HIGHEST_WEIGHT)]


class LevelNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What A to D are called."""

    A: Name = "at home"
    B: Name = "a doctor within weeks"
    C: Name = "a doctor within 24 to 48 hours"
    D: Name = "emergency now"


class ErrorWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a step of under-triage and of over-triage costs, not both 0."""

    under: Weight = UNDER_WEIGHT
    over: Weight = OVER_WEIGHT


class Ambiguous(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Above what a case is ambiguous; None switches either off."""

    spread_above: Annotated[float, Meta(ge=0, le=HIGHEST_SPREAD)] | None = MAX_SPREAD
    uncertainty_above: Annotated[float, Meta(ge=0, le=HIGHEST_UNCERTAINTY)] | None = MAX_UNCERTAINTY


class TriageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a study has chosen about triage, as the file has it."""

    level_names: LevelNames = LevelNames()
    formats: Annotated[tuple[Format, ...], Meta(min_length=1)] = tuple(Format)
    metrics: Annotated[tuple[str, ...], Meta(min_length=1)] = tuple(METRICS)
    weights: ErrorWeights = ErrorWeights()
    ambiguous: Ambiguous = Ambiguous()

    @property
    def rule(self) -> AmbiguityRule:
        """When a case is ambiguous."""
        limits = (self.ambiguous.spread_above, self.ambiguous.uncertainty_above)
        return AmbiguityRule(*(math.inf if limit is None else limit for limit in limits))


_WORDS = {
    "": TriageSettings.__struct_fields__,
    "level_names": LETTERS,
    "formats": tuple(Format),
    "weights": ErrorWeights.__struct_fields__,
    "ambiguous": Ambiguous.__struct_fields__,
}


def to_yaml(settings: TriageSettings) -> str:
    """The file that `parse` reads."""
    return _HEAD + str(yaml.safe_dump(msgspec.to_builtins(settings), sort_keys=False, allow_unicode=True, width=160))


def rule_words(rule: AmbiguityRule) -> str:
    """When a case is ambiguous, in words.

    >>> rule_words(AmbiguityRule()), rule_words(AmbiguityRule(spread=math.inf, uncertainty=math.inf))
    ('panel spread above 0.75, or stated uncertainty above 0.7', 'where its file says that the panel did not agree')
    """
    limits = {"panel spread": rule.spread, "stated uncertainty": rule.uncertainty}
    parts = [f"{name} above {limit:g}" for name, limit in limits.items() if not math.isinf(limit)]
    return ", or ".join(parts) or "where its file says that the panel did not agree"


class _OneKeyEach(yaml.SafeLoader):  # type: ignore[misc]  # the package has no types
    """YAML that has each key once: otherwise the last of two would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - theirs
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            raise yaml.constructor.ConstructorError(None, None, "expected each key once", node.start_mark)
        return super().construct_mapping(node, deep)


def from_yaml(text: str, name: str, kind: type[T]) -> T:
    """What a file of YAML says, defaults for keys left out. Raises OverreadError, with file and key."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        refuse(f"{name}: expected a file of settings of at most {MAX_BYTES:,} bytes, got more")
    try:
        return msgspec.convert(yaml.load(text, Loader=_OneKeyEach) or {}, type=kind)  # noqa: S506 - a SafeLoader
    except msgspec.ValidationError as error:
        msg = f"{name}: {shape_fault(error, _WORDS)}"
        raise OverreadError(msg) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # 2001-99-99 looks like a date and is none
        mark = getattr(error, "problem_mark", None)
        where = f" line {mark.line + 1}" if mark else ""
        msg = f"{name}{where}: cannot be read as YAML: {getattr(error, 'problem', None) or ' '.join(str(error).split())[:200]}"
        raise OverreadError(msg) from error


def parse(text: str, name: str) -> TriageSettings:
    """Settings from YAML, as `from_yaml`. Raises OverreadError, with file and key; a value out of range, too."""
    file = from_yaml(text, name, TriageSettings)
    if fault := _fault(file):
        refuse(f"{name}: {fault}")
    names = LevelNames(**{letter: getattr(file.level_names, letter).strip() for letter in LETTERS})
    return msgspec.structs.replace(file, level_names=names)


def _fault(file: TriageSettings) -> str:
    names = [getattr(file.level_names, letter) for letter in LETTERS]
    for letter, word in zip(LETTERS, names, strict=True):
        if not word.strip() or not word.isprintable():
            return f"level_names.{letter}: expected printable characters, got {word!r}"
    if len({word.strip().casefold() for word in names}) < len(names):
        return f"level_names: expected four different names, got {', '.join(names)}"
    for key, words in (("formats", file.formats), ("metrics", file.metrics)):
        if len(set(words)) < len(words):
            return f"{key}: expected each word once, got {', '.join(words)}"
    for word in file.metrics:
        if word not in METRICS:
            return f"metrics: expected some of {', '.join(METRICS)}, got {word!r}"
    if file.weights.under == file.weights.over == 0:
        return "weights: expected under or over above 0, got 0 for both"
    return ""

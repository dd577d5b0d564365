"""What the columns of an unknown file are, by their names and by what stands in them: a mapping to begin with, what is missing in it, and what it makes."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import orjson

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import Cells, Graded, Kind, Options, shown
from evalcore.importing.files import sheets
from evalcore.importing.files.opening import Opened, recognise
from evalcore.importing.files.streams import opened
from evalcore.importing.formats import given_responses, grade_table, own, verdicts
from evalcore.importing.formats.values import LONGEST_NAME, cell
from evalcore.importing.mapping import (
    EACH,
    GRADE,
    LABEL,
    MAPPED,
    OwnNames,
    as_number,
    constant,
    decoded,
    needs,
    turns_of,
)
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Label, Message

RESPONSES, GRADES, LABELS = (one.name for one in (given_responses.FORMAT, grade_table.FORMAT, verdicts.VERDICT_TABLE))
LOOKED_AT = 200  # rows of the file
MAX_PLACES, DEEPEST = 200, 7
MAX_WORDS = 12  # different grades; what holds more is no grade
SHORT = 80
N_SHOWN = 3
Steps = tuple[str | int, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WORDS = {  # for each field, the surest first; in English, German, French and Spanish
    "conversation": _words(
        "conversation question prompt messages user_message user_prompt user_query query instruction dialogue dialog case vignette input inputs request human"
        " frage gespräch pregunta entrada"
    ),
    "answer": _words(
        "answer response completion model_response model_answer model_output assistant reply generation output outputs actual_output actual_outputs prediction"
        " result text antwort réponse respuesta salida"
    ),
    "model": _words("model model_name model_id llm system engine provider responder answered_by modell modèle modelo"),
    "criterion": _words(
        "criterion assertion rubric_item criterion_text rule requirement check metric criteria rubric key dimension aspect name from_name kriterium critère"
        " criterio"
    ),
    "points": _words("points weight max_points points_possible punkte gewicht poids puntos peso"),
    "grade": _words(
        "grade met criteria_met verdict label judgement judgment passed pass is_met is_correct correct score rating decision value choices suggestion"
        " stringvalue bewertung urteil note calificación"
    ),
    "reason": _words(
        "reason explanation rationale justification reasoning comment why critique feedback notes begründung explication explicación motivo"
    ),
    "judge": _words(
        "judge grader judge_model grader_model evaluator evaluator_model judge_name graded_by evaluated_by model_version agent richter juge juez"
    ),
    "example_id": _words(
        "example_id prompt_id question_id case_id conversation_id task_id item_id reference_example_id external_id"
    ),
    "sample_index": _words("sample_index sample repeat repetition attempt trial epoch"),
    "completion_id": _words("completion_id response_id generation_id answer_id run_id trace_id custom_id"),
    "finish_reason": _words("finish_reason stop_reason finish"),
    "date": _words("date created_at timestamp created start_time time datum fecha"),
}
_OF_RESPONSES = {"conversation": "conversation", "answer": "text"}
_OF_GRADES = {"conversation": "question", "answer": "answer"}
_JUDGING = frozenset(
    _words("judge grader grading evaluator evaluation evaluations eval scores score judgement feedback")
)
_NOT_THE_ANSWER = frozenset(_words("reference expected ideal gold ground truth correct target judge grader evaluator"))
_GENERIC = frozenset(_words("content text value message body parts output input data"))
_MET = _words(
    "passed correct right fulfilled satisfied y t ok good accept accepted compliant present erfüllt ja oui sí si vrai richtig positive 👍"
)
_NOT_MET = _words(
    "failed incorrect wrong missing unfulfilled unsatisfied n f bad reject rejected absent notmet unmet nein non faux falsch negative 👎"
)
_DENIED = re.compile("(?:not|nicht|non|no|pas|un)(.+)")
_SCALES = {1: 0.5, 3: 2, 4: 3, 5: 4, 7: 5, 10: 7, 100: 70}
"""By the highest number of a scale, from which on a grade counts as met until somebody says otherwise."""
_LISTED = _words("data rows results items records examples traces runs samples tasks observations entries")
LONG = 20  # characters of a text that may be an answer, on average


@dataclass(frozen=True)
class Place:
    """A column, or a path into one: what stands there in the first rows, where anything does."""

    path: str
    steps: Steps
    values: tuple[Any, ...]
    are_turns: bool = False

    @property
    def first(self) -> str:
        """Its first value, short."""
        return shown(cell("", self.values[0], ())) if self.values else "always empty"

    @property
    def texts(self) -> list[str]:
        """Its values as a file gives them."""
        return [cell("", value, ()) for value in self.values]


@dataclass(frozen=True)
class Sample:
    """The first rows of a file, with the places in them: `lists`: in a row, whose items may be rows of their own."""

    rows: list[tuple[int, dict[str, str]]]
    places: dict[str, Place]
    lists: dict[str, dict[str, Place]]
    at: str = ""  # where the rows are: `OwnNames.rows`
    others: tuple[str, ...] = ()  # where else they may be: sheets

    def all_places(self, each: str) -> dict[str, Place]:
        """Those of a row, and of the items of a list in it."""
        return self.places | self.lists.get(each, {})


@dataclass
class Shown:
    """A conversation as it will stand in the study, with its answers and their grades."""

    name: str
    messages: Sequence[Message]
    answers: dict[tuple[str, str], list[Graded]] = field(default_factory=dict)


def sample(path: Path, name: str, *, rows: str | None = None) -> Sample:
    """The first rows of a file of rows. `rows`: where they are, else found. ImportFailed: it is none, or one of these rows cannot be read."""
    file = recognise(path, name=name, format_name=None, names=OwnNames(RESPONSES, {}, rows=rows or ""))
    others: tuple[str, ...] = ()
    if file.kind is Kind.SHEET:
        with opened(path, name) as stream:
            others = tuple(sheets.sheet_names(stream, name))
        rows = others[0] if rows is None and others else rows
    elif rows is None and file.kind in (Kind.OBJECTS, Kind.LINES):
        rows = _where(file)
    names = OwnNames(RESPONSES, {}, rows=rows or "")
    found = recognise(path, name=name, format_name=None, names=names).first_rows(LOOKED_AT)
    if not found:
        raise ImportFailed([f"{name}: expected at least one row below the names of the columns, got none"])
    return Sample(found, *_places([given for _, given in found]), rows or "", others)


def _where(file: Opened) -> str:
    """The key of a JSON document below which its rows are: of a single object the list of objects with a usual name, or any list if it stands on many lines."""
    given = list(islice(file.first_rows(2), 2))
    if len(given) != 1:
        return ""
    found: dict[str, bool] = {}
    inside = [("", {key: decoded(text) for key, text in given[0][1].items()})]
    for path, value in inside:
        for key, under in value.items():
            if "." in key or len(inside) > MAX_PLACES:
                continue
            if isinstance(under, Mapping):
                inside.append((f"{path}{key}.", dict(under)))
            elif (
                isinstance(under, list)
                and under
                and all(isinstance(one, Mapping) for one in under)
                and turns_of(under) is None
            ):
                found[f"{path}{key}"] = key.casefold() in _LISTED
    usual = [path for path, is_usual in found.items() if is_usual]
    return next(iter(usual or (list(found) if file.kind is Kind.OBJECTS else [])), "")


# ---------------------------------------------------------------- the places of a file


def _places(rows: Sequence[Cells]) -> tuple[dict[str, Place], dict[str, dict[str, Place]]]:
    walk = _Walk()
    for row in rows:
        for column, text in row.items():
            walk.into(text, (column,))
    items = {}
    for steps, values in walk.lists.items():
        within = _Walk()
        for value in values:
            within.into(value, (EACH,))
        items[rendered(steps)] = within.places()
    return walk.places(), items


class _Walk:
    """Goes through the values of rows and remembers where what stands."""

    def __init__(self) -> None:
        self.found: dict[Steps, list[Any]] = {}
        self.lists: dict[Steps, list[Any]] = {}  # of objects, which may be rows of their own
        self._turns: set[Steps] = set()
        self._several: set[Steps] = set()  # lists with more than one item

    def places(self) -> dict[str, Place]:
        """What was found, without what is in the first of several items alone."""
        single = {
            steps: got
            for steps, got in self.found.items()
            if not any(steps[:n] in self._several for n in range(1, len(steps)))
        }
        return {
            rendered(steps): Place(rendered(steps), steps, tuple(got), steps in self._turns)
            for steps, got in single.items()
        }

    def into(self, value: Any, steps: Steps) -> None:
        """Note a value, or go into it."""
        inside = decoded(value)
        if len(steps) > DEEPEST or (len(self.found) >= MAX_PLACES and steps not in self.found):
            return
        talk = turns_of(inside)
        if talk is not None:
            is_answered = talk[-1]["role"] == "assistant" and len(talk) > 1
            self._turns |= {steps, (*steps, ":-1")}
            self._note((*steps, ":-1") if is_answered else steps, talk[:-1] if is_answered else talk)
            if is_answered:
                key = next(key for key in ("content", "value", "text") if inside[-1].get(key) is not None)
                self._note((*steps, -1, key), talk[-1]["content"])
        elif isinstance(inside, Mapping):
            for key, under in inside.items():
                self.into(under, (*steps, key))
        elif isinstance(inside, list) and inside:
            if all(isinstance(one, Mapping) for one in inside):
                self.lists.setdefault(steps, []).extend(inside)
                self._several |= {steps} if len(inside) > 1 else set()
            self.into(inside[0], (*steps, 0))
        elif value not in ("", None) and inside not in ([], {}):
            self._note(steps, value)
        else:
            self.found.setdefault(steps, [])

    def _note(self, steps: Steps, value: Any) -> None:
        self.found.setdefault(steps, []).append(value)


def rendered(steps: Steps) -> str:
    """The path of a place: with dots where every reader of them understands that, else in JMESPath."""
    if len(steps) == 1:
        return str(steps[0])
    if all(step >= 0 if isinstance(step, int) else re.fullmatch(r"[\w -]+", step) for step in steps):
        return ".".join(map(str, steps))
    parts = []
    for step in steps:
        if isinstance(step, int) or step == ":-1":
            parts.append(f"[{step}]")
        else:
            key = step if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", step) else orjson.dumps(step).decode()
            parts.append(f".{key}")
    return "".join(parts).lstrip(".")


# ---------------------------------------------------------------- grades


def meanings(texts: Sequence[str]) -> dict[str, bool | None] | None:
    """What each of some words says as a grade, None where only a person knows; None: they are no grades."""
    words = Counter(" ".join(text.casefold().split()) for text in texts if text.strip())
    if not words or len(words) > MAX_WORDS or max(map(len, words)) > 2 * SHORT:
        return None
    known = {word: _meaning(word) for word in words}
    is_told = sum(met is not None for met in known.values())
    return known if 2 * is_told >= len(known) else None


def _meaning(word: str) -> bool | None:
    try:
        return own.grade(word, "")
    except RowFault:
        bare = re.sub(r"[\W_]+", "", word) or word
        denied = _DENIED.fullmatch(bare)
        return True if bare in _MET else False if bare in _NOT_MET or (denied and denied[1] in _MET) else None


def scale(texts: Sequence[str]) -> float | None:
    """From which number on grades on a scale count as met, as long as nobody says otherwise; None: they are no numbers of a scale, or truth values."""
    numbers = [as_number(text.strip()) for text in texts if text.strip()]
    if not numbers or None in numbers or (len(set(numbers)) > 2 * MAX_WORDS and max(n or 0 for n in numbers) > 1):
        return None
    known = [number for number in numbers if number is not None]
    if min(known) < 0 or max(known) > max(_SCALES) or set(known) <= {0, 1}:
        return None
    return next(least for top, least in _SCALES.items() if max(known) <= top)


def _is_grade(place: Place) -> bool:
    return (
        bool(place.values)
        and not place.are_turns
        and (meanings(place.texts) is not None or scale(place.texts) is not None)
    )


# ---------------------------------------------------------------- what is what


def propose(given: Sample, each: str | None = None) -> OwnNames:
    """A mapping for the file; what it does not know stays out of it. `each`: the list whose items are the rows, "" for none; else found."""
    if each is not None:
        return _proposed(given, each)
    plain = _proposed(given, "")
    candidates = [_proposed(given, each) for each, items in given.lists.items() if any(map(_is_grade, items.values()))]
    best = [plain, *(names for names in candidates if names.each)]
    return max(best, key=lambda names: (_worth(names), names is not plain))


def _worth(names: OwnNames) -> int:
    """How much a mapping tells of grades; of a list nothing, unless its items name their criteria."""
    if names.each and not any(path.startswith(EACH) and of == "criterion" for path, of in names.columns.items()):
        return 0
    told = {of for columns in names.sets() for of in columns.values()}
    return 4 * (GRADE in told and "criterion" in told) + len(told & {"criterion", "points", "reason", GRADE}) + 1


def _proposed(given: Sample, each: str) -> OwnNames:
    places = given.all_places(each)
    if each:  # what the list holds is known by its items
        head = each + "."
        within = {path for path in places if path == each or path.startswith((head, each + "["))}
        places = {path: one for path, one in places.items() if path not in within}
    chosen = _by_name(places, each)
    wide, what = _wide(places, chosen) if not each else ([], "")
    if wide:
        for role in (GRADE, "reason", *(["judge"] if what == "judge" else ["criterion"])):
            chosen.pop(role, None)
    _by_content(places, chosen, has_grades=bool(wide))
    has_grades = bool(wide) or GRADE in chosen
    words = _OF_GRADES if has_grades else _OF_RESPONSES
    fields = MAPPED[GRADES if has_grades else RESPONSES].column_names
    columns = {path: words.get(role, role) for role, path in chosen.items() if words.get(role, role) in fields}
    texts = [
        text
        for path in [path for path, _, _ in wide] or [chosen.get(GRADE, "")]
        if path in places
        for text in places[path].texts
    ]
    return OwnNames(
        GRADES if has_grades else RESPONSES,
        columns,
        **told_grades(texts),
        rows=given.at,
        each=each if has_grades else "",
        several=_several(wide, what),
    )


def _several(wide: Sequence[tuple[str, str, str]], what: str) -> tuple[dict[str, str], ...]:
    return tuple({constant(label): what, path: GRADE} | ({why: "reason"} if why else {}) for path, label, why in wide)


def grade_columns(given: Sample, names: OwnNames) -> list[str]:
    """The places that may hold grades and are no other field."""
    others = {path for path, of in names.columns.items() if of != GRADE}
    return [path for path, place in given.all_places(names.each).items() if path not in others and _is_grade(place)]


def as_wide(given: Sample, names: OwnNames, paths: Sequence[str], what: str) -> OwnNames:
    """The mapping with these columns of grades, whose names are of judges or criteria (`what`); with none it has one column of grades."""
    places = given.all_places(names.each)
    taken = (GRADE, "reason", what) if paths else ()
    columns = {path: of for path, of in names.columns.items() if of not in taken}
    others = set(columns)
    several = _several(_with_reasons([places[path] for path in paths if path in places], places, others), what)
    return msgspec.structs.replace(names, columns=columns, several=several)


def told_grades(texts: Sequence[str]) -> dict[str, Any]:
    """`met`, `not_met` and `met_from` of a mapping whose grades are these words, as far as they are not the format's own."""
    if (least := scale(texts)) is not None:
        return {"met_from": least}
    known = meanings(texts) or {}
    foreign = {word: met for word, met in known.items() if met is not None and _is_foreign(word)}
    return {
        name: tuple(word for word, met in foreign.items() if met is is_met)
        for name, is_met in (("met", True), ("not_met", False))
    }


def _is_foreign(word: str) -> bool:
    try:
        own.grade(word, "")
    except RowFault:
        return True
    return False


def _by_name(places: Mapping[str, Place], each: str) -> dict[str, str]:
    """For each field the place whose name fits it best, and whose content may be it."""
    scores = []
    for rank, (path, place) in enumerate(places.items()):
        for role in _WORDS:
            score = _name_score(role, place.steps)
            if score > 0 and _fits(role, place):
                is_item = each != "" and place.steps[0] == EACH
                score += 15 * (is_item and role in ("criterion", "points", "grade", "reason", "judge"))
                scores.append((score, -rank, role, path))
    chosen: dict[str, str] = {}
    for _, _, role, path in sorted(scores, reverse=True):
        if role not in chosen and path not in chosen.values():
            chosen[role] = path
    return chosen


def _tokens(step: str | int) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(step))
    return [token for token in re.split(r"[\W_]+", apart.casefold()) if token]


def _name_score(role: str, steps: Steps) -> int:
    keys = [step for step in steps if isinstance(step, str) and step != ":-1"]
    own_words, above = _tokens(keys[-1]), [token for step in keys[:-1] for token in _tokens(step)]
    judging = _JUDGING.intersection([*own_words, *above])
    if role in ("model", "answer", "conversation") and _NOT_THE_ANSWER.intersection([*own_words, *above]):
        return 0
    score = _words_score(role, own_words)
    if role == "judge" and judging and own_words[-1:] in (["model"], ["name"], ["version"]):
        score = max(score, 90)
    if role == "model" and own_words in (["id"], ["name"]):
        score = max((_words_score(role, _tokens(step)) - 5 for step in keys[:-1]), default=0)
    if role in ("conversation", "answer", "criterion") and (set(own_words) <= _GENERIC or isinstance(steps[-1], int)):
        higher = [_words_score(role, _tokens(step)) - 10 * n for n, step in enumerate(reversed(keys[:-1]), 1)]
        score = max([score // 2, *higher])
    if role == GRADE and "metadata" in [*own_words, *above]:
        return 0
    if role == GRADE and any(isinstance(step, int) for step in steps):  # what one of several people said, say
        score -= 60
    if role in ("criterion", GRADE, "reason") and judging:
        score += 5
    if role == "criterion" and own_words == ["name"] and EACH not in keys and not judging:
        return 0
    return score


def _words_score(role: str, tokens: Sequence[str]) -> int:
    joined, best = "_".join(tokens), 0
    for rank, word in enumerate(_WORDS[role]):
        if joined in (word, word.replace("_", "")):
            best = max(best, 100 - rank)
        elif set(word.split("_")) <= set(tokens):
            best = max(best, 60 - rank)
    return best


def _fits(role: str, place: Place) -> bool:
    """Whether what stands in a place may be this field."""
    texts = place.texts
    if not texts or (role not in ("conversation", "answer") and (place.are_turns or _is_object(place))):
        return False
    longest, are_numbers = max(map(len, texts)), all(as_number(text) is not None for text in texts)
    is_text = not are_numbers and not _is_grade(place)
    fitting: dict[str, Callable[[], bool]] = {
        "conversation": lambda: place.are_turns or (is_text and not _is_object(place) and longest > 1),
        "answer": lambda: place.are_turns or (is_text and not _is_object(place) and longest > 1),
        GRADE: lambda: _is_grade(place),
        "points": lambda: all(number and MIN_POINTS <= number <= MAX_POINTS for number in map(as_number, texts)),
        "sample_index": lambda: all(re.fullmatch(r"[0-9]{1,4}(\.0+)?", text) for text in texts),
        "date": lambda: all(map(_is_date, texts)),
        "example_id": lambda: longest <= LONGEST_NAME,
        "completion_id": lambda: longest <= SHORT and len(set(texts)) == len(texts),
        "judge": lambda: longest <= SHORT and is_text,
        "model": lambda: longest <= SHORT and not are_numbers,
        "finish_reason": lambda: longest <= SHORT and not are_numbers,
    }
    return fitting.get(role, lambda: is_text)()


def _is_object(place: Place) -> bool:
    return isinstance(place.values[0], (list, Mapping))


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return not text.isdigit()


def _by_content(places: Mapping[str, Place], chosen: dict[str, str], *, has_grades: bool) -> None:
    """What no name says: the conversation is what has turns, else of the two longest texts the one that comes first; the only grades are the grades."""
    left = {path: place for path, place in places.items() if path not in chosen.values() and place.values}
    talks = [path for path, place in left.items() if place.are_turns]
    if "conversation" not in chosen and talks:
        chosen["conversation"] = talks[0]
    lengths = {
        path: sum(map(len, place.texts)) / len(place.texts)
        for path, place in left.items()
        if _fits("answer", place) and not place.are_turns
    }
    texts = [
        path
        for path, n in sorted(lengths.items(), key=lambda one: -one[1])[:2]
        if n > LONG and path not in chosen.values()
    ]
    wanted = [
        role
        for role in ("conversation", "answer")
        if role not in chosen and not (role == "conversation" and "example_id" in chosen)
    ]
    chosen |= dict(zip(wanted, [one for one in places if one in texts[: len(wanted)]], strict=False))
    grades = [path for path, place in left.items() if _is_grade(place) and path not in chosen.values()]
    if GRADE not in chosen and not has_grades and len(grades) == 1 and "criterion" in chosen:
        chosen[GRADE] = grades[0]


def _wide(places: Mapping[str, Place], chosen: Mapping[str, str]) -> tuple[list[tuple[str, str, str]], str]:
    """Several columns of grades, each with its own name and its reasons; and what the names are: of judges where a column has the criterion, else criteria."""
    others = {path for role, path in chosen.items() if role not in (GRADE, "reason", "judge")}
    graded = [
        place
        for path, place in places.items()
        if path not in others and _is_grade(place) and not any(isinstance(step, int) for step in place.steps)
    ]
    tokens = {place.path: [token for step in place.steps[-2:] for token in _tokens(step)] for place in graded}
    common = {*_WORDS[GRADE], *_JUDGING}
    graded = [place for place in graded if "metadata" not in tokens[place.path]]
    family = [place for place in graded if common.intersection(tokens[place.path]) and set(tokens[place.path]) - common]
    if len(family) < 2 and GRADE not in chosen:  # noqa: PLR2004 - several
        family = [place for place in graded if len(place.steps) == 1 and scale(place.texts) is None]
    if len(family) < 2:  # noqa: PLR2004
        return [], ""
    return _with_reasons(family, places, others), "judge" if "criterion" in chosen else "criterion"


def _with_reasons(family: Sequence[Place], places: Mapping[str, Place], others: set[str]) -> list[tuple[str, str, str]]:
    """For each column of grades its path, its name, and the path of its reasons or ""."""
    common = {*_WORDS[GRADE], *_JUDGING}
    found = []
    for place in family:
        tokens = {token for step in place.steps[-2:] for token in _tokens(step)}
        mine = tokens - common or tokens
        why = (path for path, other in places.items() if path not in others and _is_reason_of(other, mine))
        found.append((place.path, _label(place, common), next(why, "")))
    return found


def _is_reason_of(place: Place, mine: set[str]) -> bool:
    tokens = {token for step in place.steps[-2:] for token in _tokens(step)}
    return (
        bool(place.values)
        and tokens.issuperset(mine)
        and bool(tokens.intersection(_WORDS["reason"]))
        and not _is_grade(place)
    )


def _label(place: Place, common: set[str]) -> str:
    """The name of a column of grades without what says that it is one."""
    parts = [part for part in re.split(r"[\s_:./]+", str(place.steps[-1])) if part.casefold() not in common]
    return " ".join(parts) or str(place.steps[-1])


# ---------------------------------------------------------------- what is missing, and what comes of it


def missing(given: Sample, names: OwnNames, options: Options) -> str:
    """What still has to be said before the file can be imported, in one sentence; "" where nothing is."""
    told = {of for columns in names.sets()[:1] for of in columns.values()}
    wanted = [f"which column is the {lack}" for lack in needs(names)]
    if not told & {"model", *({"completion_id"} if names.format == LABELS else ())} and not options.model:
        wanted.append("who answered (Model)")
    if names.format == GRADES and "judge" not in told and not options.judge:
        wanted.append("who graded (Judge)")
    if names.format == LABELS and not told & {"criterion", "criterion_position"}:
        wanted.append("which column is the criterion, or its place")
    if unknown := foreign_words(given, names):
        wanted.append(f"whether {', '.join(map(repr, unknown[:MAX_WORDS]))} means met or not met")
    return f"Still missing: {'; '.join(wanted)}." if wanted else ""


def foreign_words(given: Sample, names: OwnNames) -> list[str]:
    """The words that stand as grades in the first rows, as the mapping makes them, and are none of the format's."""
    known = [Label.CANNOT_ASSESS] if names.format == LABELS else []
    return [word for word in grade_words(given, names) if word not in known and _is_foreign(word)]


def grade_words(given: Sample, names: OwnNames) -> list[str]:
    """The words that stand as grades in the first rows, as the mapping makes them."""
    if names.format == RESPONSES:
        return []
    field = LABEL if names.format == LABELS else GRADE
    try:
        found = [row.get(field, "") for _, cells in given.rows for row in names.rows_of(cells)]
    except RowFault:
        return []
    return list(dict.fromkeys(text for text in found if text.strip()))


def conversations(given: Sample, names: OwnNames, options: Options) -> tuple[list[Shown], str]:
    """The first conversations as the study will have them, and what is wrong with the first row that cannot be read.

    What `missing` tells is no fault here: it stands as not said, and a grade that nobody has explained as none.
    """
    found: dict[str, Shown] = {}
    read = MAPPED[names.format].read_cells
    told = replace(options, model=options.model or "model not said", judge=options.judge or "judge not said")
    for number, cells in given.rows:
        try:
            rows = [
                row | {GRADE: "" if _is_foreign(row.get(GRADE, "")) else row.get(GRADE, "")}
                for row in names.rows_of(cells)
                if names.format != LABELS or row.get(LABEL) in list(Label)
            ]
            records = [one for row in rows for one in read(row, number, told)] if read else []
        except RowFault as fault:
            return list(found.values())[:N_SHOWN], f"Row {number}: {names.explained(fault)}"
        for one in records:
            key = one.prompt_id or msgspec.json.encode(one.messages).decode()
            of = found.setdefault(key, Shown(one.prompt_id, one.messages or ()))
            of.answers.setdefault((one.model or "", one.text or ""), []).append(one)
    return list(found.values())[:N_SHOWN], ""

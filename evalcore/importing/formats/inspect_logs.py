"""Logs of inspect_ai: the file, its header, and each sample as a response with what its scores say; keys not named here are passed over."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar

import msgspec

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import CriterionRef, GivenVerdict, Name, Options, judged, row_refs, shown
from evalcore.importing.files.streams import ZIP_MAGIC, members_of, opened, whole_document
from evalcore.importing.formats import values
from evalcore.importing.formats.values import LETTERS, decode, printable, refuse, storable
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Acuity, Criterion, Message

T = TypeVar("T")
HEAD = 1 << 16  # bytes in which a log in JSON shows what it is
HEADER, START = "header.json", "_journal/start.json"  # the second is all that a log has which was stopped in the middle
BEGINS = re.compile(rb'\s*\{\s*"(?:version|status|eval)"\s*:')
_SAMPLE = re.compile(r"samples/.+\.json", re.DOTALL)
_ATTACHED = "attachment://"
_NO_MODEL = "none/none"
JUDGE_KEYS = ("judge", "judge_model", "grader", "grader_model")  # where the metadata of a score may name who gave it
NULL = msgspec.Raw(b"null")
_NO_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?Infinity|NaN', re.DOTALL)
_ITEM_KEYS = {"criterion", "criteria_met"}
_MARK = "C"  # what inspect_ai writes for a correct answer: as a score's value it is a level only beside other levels


class LeftOut(StrEnum):
    """Why a sample is no response."""

    ERROR = "with an error"
    EMPTY = "without an answer"
    INVALID = "declared invalid in inspect_ai"
    TOOLS = "whose input is no conversation of system, user and assistant"


class Says(StrEnum):
    """What a score holds."""

    VERDICTS = "verdicts on criteria"
    LEVEL = "a level of care"
    NOTHING = "neither a list of criteria nor a level of care"
    SEVERAL = "more than one list of criteria"
    ONLY_MARK = "only C, which is inspect_ai's mark for a correct answer"


class _Dataset(msgspec.Struct):
    sample_ids: list[msgspec.Raw] | None = None


class _Config(msgspec.Struct):
    epochs: int | None = None


class _Spec(msgspec.Struct):
    model: str = ""
    task: str = ""
    dataset: _Dataset = msgspec.field(default_factory=_Dataset)
    config: _Config = msgspec.field(default_factory=_Config)
    model_roles: dict[str, msgspec.Raw] | None = None


class Header(msgspec.Struct):
    """What stands before the samples. A log that was stopped has no status."""

    eval: _Spec
    status: str = "started"


class _Document(Header):
    """A whole log in JSON; samples stay raw bytes until their turn."""

    samples: list[msgspec.Raw] | None = None


class _Turn(msgspec.Struct):
    role: str
    content: msgspec.Raw = NULL


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Choice(msgspec.Struct):
    message: _Turn


class _Output(msgspec.Struct):
    choices: list[_Choice] = []
    completion: str = ""


class Score(msgspec.Struct):
    """One score of a sample, its parts undecoded until they are wanted."""

    value: msgspec.Raw = NULL
    answer: msgspec.Raw = NULL
    explanation: str | None = None
    metadata: msgspec.Raw = NULL


class _Item(msgspec.Struct):
    criterion: Name
    criteria_met: bool | None
    points: float | None = None
    tags: list[str] | None = None
    explanation: str | None = None


class Sample(msgspec.Struct, dict=True):
    """One sample of a log."""

    id: int | Name
    epoch: Annotated[int, msgspec.Meta(ge=1, le=values.LAST_SAMPLE + 1)]
    input: str | list[_Turn]
    messages: list[_Turn] = []
    output: _Output | None = None
    scores: dict[str, Score] | None = None
    error: msgspec.Raw = NULL
    invalidation: msgspec.Raw = NULL
    attachments: msgspec.Raw = NULL  # long texts beside the messages, by name; most are of events

    @cached_property
    def texts(self) -> dict[str, str]:
        """Long texts beside the messages, by name."""
        return {} if begins(self.attachments) == b"n" else decoded(self.attachments, dict[str, str])

    def resolved(self, text: str) -> str:
        """The text, or the attached one that it refers to; a fault where there is none."""
        if not text.startswith(_ATTACHED):
            return text
        name = text.removeprefix(_ATTACHED)
        if name not in self.texts:
            refuse("attachments", f"the text {shown(name)} that a message refers to", "nothing")
        return self.texts[name]


class Known(msgspec.Struct, frozen=True):
    """What the header and a first look at the samples tell; `model` and `grader` (of that role) are without the provider."""

    model: str | None
    full_model: str
    task: str
    status: str
    n_planned: int | None  # samples that were to be asked; None: nobody says
    grader: str | None
    level_scores: frozenset[str] = frozenset()
    lacks_judge: frozenset[Says] = frozenset()  # scores with these that name no judge


class Judged(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of one score: those that are true or false, and on which criteria."""

    score: str
    judge: str
    rubric: tuple[Criterion, ...]
    criteria: tuple[CriterionRef, ...]
    verdicts: tuple[GivenVerdict, ...]


class Levelled(msgspec.Struct, frozen=True, gc=False):
    """The level of one score. judge: None where nobody is named."""

    score: str
    judge: str | None
    level: Acuity
    explanation: str | None


class Logged(msgspec.Struct, frozen=True, gc=False):
    """A sample; where it is `left_out`, as no response, there is nothing more."""

    line: int
    name: str
    sample_id: str
    sample_index: int  # 0 for the first epoch
    left_out: LeftOut | None = None
    asked: tuple[Message, ...] = ()
    sent: tuple[Message, ...] = ()  # to the model, where the log tells; else the input
    text: str = ""
    judged: tuple[Judged, ...] = ()
    levels: tuple[Levelled, ...] = ()
    scores: tuple[tuple[str, Says], ...] = ()
    n_unread: int = 0  # items of lists of criteria that are neither true nor false
    n_parts: int = 0  # of the input that are no text, such as images


class LogFile:
    """A log: `.eval`, a zip with a member a sample, or `.json`; read twice, first for what its scores mean. A damaged one raises ImportFailed."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    @cached_property
    def known(self) -> Known:
        """What the header and a first look at the samples tell."""
        try:
            return known_of(self._header, (raw for raw, _ in self.samples()))
        except RowFault as error:
            self._refuse(error, error)

    def samples(self) -> Iterator[tuple[bytes | msgspec.Raw, int]]:
        """Each sample, undecoded, with the bytes of the file that are behind."""
        done = 0
        if not self._is_zip:
            for raw in self._document.samples or ():
                done += len(memoryview(raw))
                yield raw, done
            return
        with opened(self._path, self._name) as stream, members_of(stream, self._name) as members:
            for name in filter(_SAMPLE.fullmatch, members.sizes):
                done += members.sizes[name]
                yield members.read(name), done

    def missing(self, options: Options) -> list[str]:
        """Which of `model` and `judge` the log needs, or may need where its levels are of cases of triage, and neither it nor the caller says."""
        has_model, has_judge = options.model or self.known.model, options.judge or not self.known.lacks_judge
        return [word for word, is_known in (("model", has_model), ("judge", has_judge)) if not is_known]

    def check(self, options: Options) -> None:
        """Refuse the log where nobody says who answered, or whose the verdicts are."""
        if not (options.model or self.known.model):
            self._refuse("Fill in Model: the log does not say who answered")
        if not options.judge and Says.VERDICTS in self.known.lacks_judge:
            self._refuse("Fill in Judge: the log does not say whose its verdicts are")

    @cached_property
    def _is_zip(self) -> bool:
        with opened(self._path, self._name) as stream:
            return stream.read(len(ZIP_MAGIC)) == ZIP_MAGIC

    @cached_property
    def _header(self) -> Header:
        if not self._is_zip:
            return self._document
        with opened(self._path, self._name) as stream, members_of(stream, self._name) as members:
            name = next((name for name in (HEADER, START) if name in members.sizes), None)
            if name is None:
                self._refuse(f"expected a log of inspect_ai, got a zip without {HEADER} and {START}")
            try:
                return decoded(members.read(name), Header)
            except RowFault as error:
                self._refuse(f"{name}: {error}", error)

    @cached_property
    def _document(self) -> _Document:
        with opened(self._path, self._name) as stream:
            data = whole_document(stream, self._name)
        try:
            values.check_entries(data, "samples")
            return decoded(data, _Document)
        except RowFault as error:
            self._refuse(error, error)

    def _refuse(self, sentence: RowFault | str, cause: RowFault | None = None) -> NoReturn:
        raise ImportFailed([f"{self._name}: {sentence}"]) from cause


def known_of(header: Header, samples: Iterator[bytes | msgspec.Raw]) -> Known:
    """What the header and a first look at the samples tell; a sample that cannot be read is told of when it is read."""
    spec = header.eval
    # of a role its name, an object with it, or a list whose first names it
    grader = decoded((spec.model_roles or {}).get("grader", NULL), object)
    grader = grader[0] if isinstance(grader, list) and grader else grader
    grader = grader.get("model") if isinstance(grader, dict) else grader
    grader = grader if isinstance(grader, str) and grader else None
    ids, epochs = spec.dataset.sample_ids, spec.config.epochs or 1
    model = None if spec.model in ("", _NO_MODEL) else printable(spec.model, "eval.model", is_needed=True)
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    lacking: set[Says] = set()
    nameless: set[str] = set()
    for raw in samples:
        with suppress(RowFault):
            for name, score in (decoded(raw, Sample).scores or {}).items():
                text = text_in(score.value)
                found[name].add(text if text is None or len(text) == 1 else None)
                if judge_of(score, None, grader) is None:
                    nameless.add(name)
                    lacking.add(says(score, value_is_level=False))
    # C alone is inspect_ai's mark for a correct answer
    level_scores = frozenset(name for name, seen in found.items() if seen <= set(LETTERS) and not seen <= {_MARK})
    if nameless & level_scores:
        lacking.add(Says.LEVEL)
    return Known(
        model=model and without_provider(model),
        full_model=spec.model,
        task=spec.task if spec.task.isprintable() else "",
        status=header.status,
        n_planned=None if ids is None or epochs < 1 else len(ids) * epochs,
        grader=grader and without_provider(printable(grader, "eval.model_roles.grader", is_needed=True)),
        level_scores=level_scores,
        lacks_judge=frozenset(lacking & {Says.VERDICTS, Says.LEVEL}),
    )


def _digest(asked: Sequence[Message]) -> str:
    return sha256(msgspec.json.encode(asked)).hexdigest()[:8]


def sample_id_of(name: str, messages: str) -> str:
    """The id that a sample has in inspect_ai, of an example's name: `read` puts a task and a conversation around an id that only counts samples."""
    rest, _, digest = name.rpartition("-")
    number = rest.rpartition("-")[2]
    is_made = number.isdecimal() and digest == _digest(msgspec.json.decode(messages, type=tuple[Message, ...]))
    return number if is_made else name


def read(raw: bytes | msgspec.Raw, number: int, options: Options, known: Known) -> Iterator[Logged]:
    """One sample."""
    sample = decoded(raw, Sample)
    sample_id = printable(str(sample.id), "id", is_needed=True)
    asked, n_parts = _conversation(sample.input, sample)
    name = sample_id
    if sample_id.isdecimal():  # counts the samples of a log and is no name: the task and the conversation make one
        name = f"{known.task[:80] or 'inspect'}-{sample_id}-{_digest(asked)}"
    place = (number, name, sample_id, sample.epoch - 1)
    text = ""
    if (output := sample.output) is not None:
        spoken = _content(output.choices[0].message.content, sample)[0] if output.choices else ""
        text = spoken or sample.resolved(output.completion)
    why = None
    if bytes(sample.error) != b"null":
        why = LeftOut.ERROR
    elif bytes(sample.invalidation) != b"null":
        why = LeftOut.INVALID
    elif not text.strip() or not _is_talk(asked):
        why = LeftOut.TOOLS if text.strip() else LeftOut.EMPTY
    if why is not None:
        yield Logged(*place, why)
        return
    storable(text, "output")
    for message in asked:
        storable(message.content, "input")
    sent, _ = _conversation(sample.messages, sample)
    is_storable = all("\x00" not in message.content for message in sent)
    is_whole = len(sent) > 1 and sent[-1] == Message("assistant", text) and _is_talk(sent) and is_storable
    verdicts, levels, scores = [], [], []
    for score_name, score in (sample.scores or {}).items():
        printable(score_name, "scores", is_needed=True)
        holds = says(score, value_is_level=score_name in known.level_scores)
        scores.append((score_name, holds))
        judge = judge_of(score, options.judge, known.grader)
        if holds is Says.VERDICTS:
            if judge is None:
                values.refuse_row(
                    f"scores.{score_name}: expected the name of a judge in its metadata or as Judge, got none"
                )
            verdicts.append(verdicts_of(score_name, score, judge))
        elif holds is Says.LEVEL:
            levels.append(level_of(score_name, score, judge))
    yield Logged(
        *place,
        asked=asked,
        sent=sent[:-1] if is_whole else asked,
        text=text,
        judged=tuple(verdicts),
        levels=tuple(levels),
        scores=tuple(scores),
        n_unread=sum(len(one.rubric) - len(one.verdicts) for one in verdicts),
        n_parts=n_parts,
    )


def _conversation(given: str | list[_Turn], sample: Sample) -> tuple[tuple[Message, ...], int]:
    """The turns, and how many of their parts are no text; each of those stands as its kind in square brackets."""
    if isinstance(given, str):
        return (Message("user", sample.resolved(given)),), 0
    found = [(turn.role, *_content(turn.content, sample, show_others=True)) for turn in given]
    return tuple(Message(role, text) for role, text, _ in found), sum(n for _, _, n in found)


def _content(raw: msgspec.Raw, sample: Sample, *, show_others: bool = False) -> tuple[str, int]:
    """The text of a content, its parts on lines of their own, and how many parts are no text; those are left out unless they are to be shown."""
    if begins(raw) == b'"':
        return sample.resolved(decoded(raw, str)), 0
    if begins(raw) == b"n":
        return "", 0
    if begins(raw) != b"[":
        refuse("content", "text or a list of parts", shown(decoded(raw, object)))
    parts = decoded(raw, list[_Part])
    spoken = [part for part in parts if part.type == "text" or (show_others and part.type != "reasoning")]
    lines = [sample.resolved(part.text) if part.type == "text" else f"[{part.type[:40]}]" for part in spoken]
    return "\n".join(lines), sum(part.type != "text" for part in spoken)


def _is_talk(messages: Sequence[Message]) -> bool:
    try:
        values.check_messages(list(messages), field="input")
    except RowFault:
        return False
    return True


def says(score: Score, *, value_is_level: bool) -> Says:
    """What a score holds; `value_is_level`: whether the values of all scores of this name are levels."""
    if n_lists := len(_lists(score)):
        return Says.VERDICTS if n_lists == 1 else Says.SEVERAL
    if letter(score.answer) is not None or (value_is_level and letter(score.value) is not None):
        return Says.LEVEL
    return Says.ONLY_MARK if text_in(score.value) == _MARK and text_in(score.answer) is None else Says.NOTHING


def letter(raw: msgspec.Raw) -> Acuity | None:
    """A level where the value is its letter, A to D."""
    text = text_in(raw)
    return Acuity(text) if text in LETTERS else None


def text_in(raw: msgspec.Raw) -> str | None:
    """A JSON value that is a text; None where it is something else."""
    return decoded(raw, str) if begins(raw) == b'"' else None


def judge_of(score: Score, told: str | None, grader: str | None) -> str | None:
    """Whose score it is: as the caller says, else as its metadata names it, else the log's grader; None where nobody does."""
    metadata = _metadata(score)
    named = next((text for key in JUDGE_KEYS if key in metadata and (text := text_in(metadata[key]))), None)
    return told or (without_provider(named) if named else None) or grader


def without_provider(name: str) -> str:
    """A model's name as inspect_ai writes it, without the provider before the first slash."""
    return name.partition("/")[2] or name


def verdicts_of(name: str, score: Score, judge: str) -> Judged:
    """The verdicts of a score that holds a list of criteria; a list of another shape is a fault, with its place."""
    ((key, raw),) = _lists(score).items()
    place = f"scores.{name}.metadata.{key}"
    try:
        items = decoded(raw, list[_Item])
    except RowFault as error:
        values.refuse_row(f"{place}{error}")
    judge = printable(judge, f"scores.{name}.metadata: judge", is_needed=True)
    rubric, criteria, verdicts = [], [], []
    for index, (item, ref) in enumerate(zip(items, row_refs(len(items)), strict=True)):
        where = f"{place}[{index}]"
        tags = tuple(storable(tag, f"{where}.tags") for tag in item.tags or ())
        points = item.points
        if points is not None and not (points in range(MIN_POINTS, MAX_POINTS + 1) and points):
            refuse(f"{where}.points", f"a whole number {MIN_POINTS}..{MAX_POINTS} without 0", shown(points))
        text = storable(item.criterion, f"{where}.criterion")
        rubric.append(Criterion(text, None if points is None else int(points), tags))
        if item.criteria_met is not None:
            explanation = storable(item.explanation or "", f"{where}.explanation")
            verdicts.append(judged(judge, explanation, is_met=item.criteria_met))
            criteria.append(ref)
    return Judged(name, judge, tuple(rubric), tuple(criteria), tuple(verdicts))


def level_of(name: str, score: Score, judge: str | None) -> Levelled:
    """The level of a score that holds one: its answer, else its value."""
    level = letter(score.answer) or letter(score.value)
    if level is None:
        refuse(f"scores.{name}", "a letter A to D as answer or value", "no level")
    if judge is not None:
        printable(judge, f"scores.{name}.metadata: judge", is_needed=True)
    return Levelled(name, judge, level, storable(score.explanation or "", f"scores.{name}.explanation") or None)


def _lists(score: Score) -> dict[str, msgspec.Raw]:
    """The lists in a score's metadata whose every item has a criterion and says whether it is met, by their names."""
    found = {}
    for key, raw in _metadata(score).items():
        with suppress(RowFault):  # of something else than objects
            items = decoded(raw, list[dict[str, msgspec.Raw]]) if begins(raw) == b"[" else []
            if items and all(item.keys() >= _ITEM_KEYS for item in items):
                found[key] = raw
    return found


def _metadata(score: Score) -> Mapping[str, msgspec.Raw]:
    return decoded(score.metadata, dict[str, msgspec.Raw]) if begins(score.metadata) == b"{" else {}


def begins(raw: msgspec.Raw) -> bytes:
    """The first byte of a JSON value, which tells its kind."""
    return bytes(memoryview(raw)[:1])


def with_null(data: bytes) -> bytes:
    """A sample with null for NaN and Infinity, which Python writes and JSON does not have."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return _NO_NUMBER.sub(lambda found: found[0] if found[0].startswith(b'"') else b"null", data)


def decoded(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A value of a known shape, else a fault. NaN and Infinity, which inspect_ai writes and JSON does not have, are read as null."""
    data = bytes(raw)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = with_null(data)
    try:
        return msgspec.json.decode(plain, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode(plain, kind)  # says what is wrong

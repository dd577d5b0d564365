"""Logs of inspect_ai: the header, and each sample as a response with what its scores say."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats import inspect_scores
from evalcore.importing.formats.acuity_cells import LAST_SAMPLE
from evalcore.importing.formats.healthbench_examples import ROLES, check_roles
from evalcore.importing.formats.inspect_scores import (
    JUDGE_KEYS,
    NULL,
    Judged,
    Levelled,
    Says,
    Score,
    begins,
    checked_name,
    decoded,
    storable,
    without_provider,
)
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import check_entries, shown
from evalcore.study.schema import Message

_ATTACHED = "attachment://"


class Turn(msgspec.Struct):
    """One turn, its content undecoded."""

    role: str
    content: msgspec.Raw = NULL


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class Attached:
    """Long texts that a log keeps beside the messages, by name; decoded only when a message refers to one, since most are of events."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._raw = raw
        self._texts: dict[str, str] | None = None

    def resolved(self, text: str) -> str:
        """The text, or the one that it refers to.

        Raises:
            RowFault: There is none.
        """
        if not text.startswith(_ATTACHED):
            return text
        if self._texts is None:
            self._texts = {} if begins(self._raw) == b"n" else decoded(self._raw, dict[str, str])
        name = text.removeprefix(_ATTACHED)
        if name not in self._texts:
            msg = f"attachments: expected the text {shown(name)} that a message refers to, got nothing"
            raise RowFault(msg)
        return self._texts[name]


def conversation(given: str | list[Turn], attached: Attached) -> tuple[tuple[Message, ...], int]:
    """The turns, and how many of their parts are no text; each of those stands as its kind in square brackets."""
    if isinstance(given, str):
        return (Message("user", attached.resolved(given)),), 0
    found = [(turn.role, *content(turn.content, attached, show_others=True)) for turn in given]
    return tuple(Message(role, text) for role, text, _ in found), sum(n for _, _, n in found)


def content(raw: msgspec.Raw, attached: Attached, *, show_others: bool = False) -> tuple[str, int]:
    """The text of a content, its parts on lines of their own, and how many parts are no text; those are left out unless they are to be shown.

    Raises:
        RowFault: It is neither text nor a list of parts.
    """
    if begins(raw) == b'"':
        return attached.resolved(decoded(raw, str)), 0
    if begins(raw) == b"n":
        return "", 0
    if begins(raw) != b"[":
        msg = f"content: expected text or a list of parts, got {shown(decoded(raw, object))}"
        raise RowFault(msg)
    parts = decoded(raw, list[_Part])
    texts = [part for part in parts if part.type == "text"]
    if not show_others:
        return "\n".join(attached.resolved(part.text) for part in texts), 0
    spoken = [part for part in parts if part.type != "reasoning"]
    lines = [attached.resolved(part.text) if part.type == "text" else f"[{part.type[:40]}]" for part in spoken]
    return "\n".join(lines), len(spoken) - len(texts)


def is_talk(messages: Sequence[Message]) -> bool:
    """Whether this is a conversation that can be shown: known roles, and a turn of the user's."""
    if any(message.role not in ROLES for message in messages) or not messages:
        return False
    try:
        check_roles(list(messages), field="input")
    except RowFault:
        return False
    return True


def is_storable(messages: Sequence[Message]) -> bool:
    """Whether a database can hold it."""
    return all("\x00" not in message.content for message in messages)


NAME = "inspect-log"
TITLE = "Logs of inspect_ai (.eval or .json)"
COLUMNS = {
    "eval.model": "who answered; the provider before the first slash is left off. --model gives another name",
    "samples[].id, epoch": "the example's prompt_id or the case's name; epoch 1 is sample_index 0",
    "samples[].input": "finds the example where its name does not; else it becomes an example of its own",
    "samples[].output": "the response; samples with an error or without text are counted and left out",
    "samples[].scores.*.metadata": "a list whose items have criterion and criteria_met (with points, tags, explanation) holds a judge's verdicts",
    "samples[].scores.*.answer, value": "a letter A to D: the level of care that a judge read, where the sample is a case of triage",
    "(judge)": f"--judge, else {', '.join(JUDGE_KEYS)} in the score's metadata, else the model of the role grader",
}
HEAD = 1 << 16
"""Bytes in which a log in JSON shows what it is."""
_BEGINS = re.compile(rb'\s*\{\s*"(?:version|status|eval)"\s*:')
_NO_MODEL = "none/none"


class LeftOut(StrEnum):
    """Why a sample is no response."""

    ERROR = "with an error"
    EMPTY = "without an answer"
    INVALID = "declared invalid in inspect_ai"
    TOOLS = "whose input is no conversation of system, user and assistant"


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


class Document(Header):
    """A whole log in JSON; samples stay raw bytes until their turn."""

    samples: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    message: Turn


class _Output(msgspec.Struct):
    choices: list[_Choice] = []
    completion: str = ""


class Sample(msgspec.Struct):
    """A sample; whatever else it holds (events, store, tools) is passed over."""

    id: int | Annotated[str, msgspec.Meta(min_length=1)]
    epoch: Annotated[int, msgspec.Meta(ge=1, le=LAST_SAMPLE + 1)]
    input: str | list[Turn]
    messages: list[Turn] = []
    output: _Output | None = None
    scores: dict[str, Score] | None = None
    error: msgspec.Raw = NULL
    invalidation: msgspec.Raw = NULL
    attachments: msgspec.Raw = NULL


class Known(msgspec.Struct, frozen=True):
    """What the header and a first look at the samples tell.

    Attributes:
        model: Who answered, without the provider; None where nobody is named.
        status: success, or how the run ended before.
        n_planned: Samples that were to be asked; None where the log does not say.
        grader: The model of the role grader.
        level_scores: Scores whose values are levels of care.
        lacks_judge: Scores with verdicts on criteria, or levels, that name no judge.
    """

    model: str | None
    full_model: str
    task: str
    status: str
    n_planned: int | None
    grader: str | None
    level_scores: frozenset[str] = frozenset()
    lacks_judge: frozenset[Says] = frozenset()


class Logged(msgspec.Struct, frozen=True, gc=False):
    """A sample.

    Attributes:
        line: Its place in the log, from 1.
        is_counted: The name was made from a number that inspect_ai gave.
        sample_index: 0 for the first epoch.
        left_out: Why it is no response; then there is nothing more.
        sent: What was sent to the model, where the log tells; else the input.
        scores: What each score holds, by its name.
        n_unread: Items of lists of criteria that are neither true nor false.
        n_parts: Parts of the input that are no text, such as images.
    """

    line: int
    name: str
    is_counted: bool
    sample_id: str
    sample_index: int
    left_out: LeftOut | None = None
    asked: tuple[Message, ...] = ()
    sent: tuple[Message, ...] = ()
    text: str = ""
    judged: tuple[Judged, ...] = ()
    levels: tuple[Levelled, ...] = ()
    scores: tuple[tuple[str, Says], ...] = ()
    n_unread: int = 0
    n_parts: int = 0


def recognises(keys: set[str]) -> bool:
    """Whether an object with these keys is a log."""
    return {"eval", "status", "version"} <= keys


def begins_log(head: bytes) -> bool:
    """Whether a document whose first bytes these are is a log in JSON."""
    return _BEGINS.match(head) is not None and b'"eval"' in head and b'"task"' in head


def read_document(document: bytes) -> Document:
    """A log in JSON, its samples undecoded.

    Raises:
        RowFault: It is of another shape.
    """
    check_entries(document, "samples")
    return decoded(document, Document)


def read_header(data: bytes) -> Header:
    """The header of a log.

    Raises:
        RowFault: It is of another shape.
    """
    return decoded(data, Header)


def known_of(header: Header, samples: Iterator[bytes | msgspec.Raw]) -> Known:
    """What the header and a first look at the samples tell; a sample that cannot be read is told of when it is read.

    Raises:
        RowFault: A name in the header is none.
    """
    spec = header.eval
    roles = spec.model_roles or {}
    grader = _model_in(roles["grader"]) if "grader" in roles else None
    ids, epochs = spec.dataset.sample_ids, spec.config.epochs or 1
    model = without_provider(checked_name(spec.model, "eval.model")) if spec.model not in ("", _NO_MODEL) else None
    level_scores, lacking = _first_look(samples, grader)
    return Known(
        model=model,
        full_model=spec.model,
        task=spec.task if spec.task.isprintable() else "",
        status=header.status,
        n_planned=None if ids is None or epochs < 1 else len(ids) * epochs,
        grader=None if grader is None else without_provider(checked_name(grader, "eval.model_roles.grader")),
        level_scores=level_scores,
        lacks_judge=lacking,
    )


def _first_look(samples: Iterator[bytes | msgspec.Raw], grader: str | None) -> tuple[frozenset[str], frozenset[Says]]:
    """The scores whose values are levels, and of what kinds there are scores without a judge."""
    values: defaultdict[str, set[str | None]] = defaultdict(set)
    lacking: set[Says] = set()
    nameless: set[str] = set()
    for raw in samples:
        try:
            for name, score in (decoded(raw, Sample).scores or {}).items():
                text = inspect_scores.text_in(score.value)
                values[name].add(text if text is None or len(text) == 1 else None)
                if inspect_scores.judge_of(score, None, grader) is None:
                    nameless.add(name)
                    lacking.add(inspect_scores.says(score, value_is_level=False))
        except RowFault:
            continue
    level_scores = frozenset(name for name, seen in values.items() if inspect_scores.are_levels(seen))
    if nameless & level_scores:
        lacking.add(Says.LEVEL)
    return level_scores, frozenset(lacking & {Says.VERDICTS, Says.LEVEL})


def _model_in(raw: msgspec.Raw) -> str | None:
    """The model of a role: its name, an object with it, or a list whose first names it."""
    value = decoded(raw, object)
    value = value[0] if isinstance(value, list) and value else value
    value = value.get("model") if isinstance(value, dict) else value
    return value if isinstance(value, str) and value else None


def read(raw: bytes | msgspec.Raw, number: int, options: Options, known: Known) -> Iterator[Logged]:
    """One sample.

    Raises:
        RowFault: It is of another shape.
    """
    sample = decoded(raw, Sample)
    attached = Attached(sample.attachments)
    sample_id = checked_name(str(sample.id), "id")
    asked, n_parts = conversation(sample.input, attached)
    place = (number, _name(sample_id, asked, known), sample_id.isdecimal(), sample_id, sample.epoch - 1)
    text = _answer(sample.output, attached)
    if (why := _left_out(sample, asked, text)) is not None:
        yield Logged(*place, why)
        return
    storable(text, "output")
    for message in asked:
        storable(message.content, "input")
    sent, _ = conversation(sample.messages, attached)
    is_whole = len(sent) > 1 and sent[-1] == Message("assistant", text) and is_talk(sent) and is_storable(sent)
    verdicts, levels, scores, n_unread = _read_scores(sample.scores or {}, options, known)
    yield Logged(
        *place, None, asked, sent[:-1] if is_whole else asked, text, verdicts, levels, scores, n_unread, n_parts
    )


def _read_scores(
    given: dict[str, Score], options: Options, known: Known
) -> tuple[tuple[Judged, ...], tuple[Levelled, ...], tuple[tuple[str, Says], ...], int]:
    verdicts, levels, scores, n_unread = [], [], [], 0
    for name, score in given.items():
        checked_name(name, "scores")
        found = inspect_scores.says(score, value_is_level=name in known.level_scores)
        scores.append((name, found))
        judge = inspect_scores.judge_of(score, options.judge, known.grader)
        if found is Says.VERDICTS:
            if judge is None:
                msg = f"scores.{name}: no judge is named, expected one in its metadata or as --judge"
                raise RowFault(msg)
            verdicts.append(inspect_scores.judged(name, score, judge))
            n_unread += len(verdicts[-1].rubric) - len(verdicts[-1].verdicts)
        elif found is Says.LEVEL:
            levels.append(inspect_scores.levelled(name, score, judge))
    return tuple(verdicts), tuple(levels), tuple(scores), n_unread


def _left_out(sample: Sample, asked: Sequence[Message], text: str) -> LeftOut | None:
    if bytes(sample.error) != b"null":
        return LeftOut.ERROR
    if bytes(sample.invalidation) != b"null":
        return LeftOut.INVALID
    if not text.strip():
        return LeftOut.EMPTY
    return None if is_talk(asked) else LeftOut.TOOLS


def _name(sample_id: str, asked: Sequence[Message], known: Known) -> str:
    """Of the example. A number that counts the samples of a log is no name: then the task and the conversation make one."""
    if not sample_id.isdecimal():
        return sample_id
    digest = sha256(msgspec.json.encode(asked)).hexdigest()
    return f"{known.task[:80] or 'inspect'}-{sample_id}-{digest[:8]}"


def _answer(output: _Output | None, attached: Attached) -> str:
    if output is None:
        return ""
    said = content(output.choices[0].message.content, attached)[0] if output.choices else ""
    return said or attached.resolved(output.completion)

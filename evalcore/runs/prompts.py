"""What models are asked, by the files in `texts/`, and how their replies are taken; RunRefused where texts cannot be asked about.

A response that is judged may hold anything, also words meant for the judge. So it is data: between lines that carry a mark made for the one
call, with our task before and after it, in the turn of the user alone. A text is never searched for places to fill in.
"""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NoReturn

import msgspec

from evalcore.errors import JudgeReplyInvalid, RunRefused
from evalcore.runs.queries import texts
from evalcore.runs.spec import ChatRequest, ModelSettings, OwnPrompt, Question, RunSpec, refuse, storable
from evalcore.runs.suspicion import suspects
from evalcore.study.db import Session
from evalcore.study.schema import CASES, Acuity, ConfidenceMeaning, Format, Label, Message, RunKind

CONFIDENCE_MEANING = ConfidenceMeaning.RIGHT  # what the judges' prompts ask the confidence for
FENCE_BYTES = 8  # 64 bits by chance: whoever writes a text cannot hit the mark of a call that is made later
TRIES = 3
ROLES = {"user": "the user", "assistant": "the assistant", "system": "the system", "developer": "the system"}
"""Who wrote a turn, in our words: a role of any other name is not repeated, since it is data as well."""
OTHER_ROLE = "somebody else"
EXAMPLES = (
    Message("system", "s"), Message("developer", "d"), Message("user", "u"), Message("assistant", "a"), Message("tool", "t")
)  # fmt: skip
EXAMPLE_FENCE = "0" * 2 * FENCE_BYTES
_MARK = re.compile(r"[0-9A-Za-z-]{8,64}")
FIELDS = ("conversation", "response", "criterion")
"""What a judge's prompt of one's own must name in braces; of levels of care there is no criterion. It may name `{points}` too, of a criterion."""
POINTS = "points"
MOST_BYTES = 64_000
_FIELD = re.compile(r"\{([A-Za-z_]+)\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
OURS = ("judge", "acuity-judge", "qa", "conversation", "jury")  # names of prompts that are Overread's


@cache
def words(name: str) -> str:
    """One of the texts, without the line break at its end."""
    return files("evalcore.runs").joinpath("texts", f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def joined(*parts: str) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(parts)


def new_fence() -> str:
    """A mark for one call, drawn by chance."""
    return secrets.token_hex(FENCE_BYTES)


def safe_fence(fence: str, data: Sequence[str]) -> str:
    """The mark itself (8 to 64 letters, digits and hyphens) where no text that will stand between the marks holds it, else another one."""
    if not _MARK.fullmatch(fence):
        refuse(f"fence: expected 8 to 64 letters, digits and hyphens, got {fence[:80]!r}")
    folded = [text.casefold() for text in data]
    for _ in range(TRIES):
        if not any(fence.casefold() in text for text in folded):
            return fence
        fence = new_fence()
    msg = f"The text holds the mark that should fence it in, {TRIES} times over. It was not sent."
    raise RunRefused(msg)


def _part(fence: str, name: str, text: str, note: str = "") -> str:
    return f"[{fence}] {name} begins{note}\n{text}\n[{fence}] {name} ends"


def _turns(fence: str, name: str, turns: Sequence[Message]) -> str:
    """A conversation as one part: the writer of a turn stands on a marked line, which no text can imitate."""
    n_turns = len(turns)
    lines = [f"[{fence}] {name} begins: {n_turns} {'turn' if n_turns == 1 else 'turns'}"]
    for number, turn in enumerate(turns, start=1):
        by = ROLES.get(turn.role, OTHER_ROLE)
        lines += [f"[{fence}] turn {number} of {n_turns}, written by {by}", turn.content]
    return "\n".join((*lines, f"[{fence}] {name} ends"))


def _version(name: str, requests: Sequence[ChatRequest]) -> str:
    digest = hashlib.sha256(msgspec.json.encode((name, requests))).hexdigest()
    return f"{name}@{digest[:8]}"


def own_prompt(content: bytes, name: str) -> OwnPrompt:
    """A prompt of one's own from its file, whose name without its ending is that of the prompt; its fields are checked once it is known what is judged."""
    stem = name.rpartition("/")[2].partition(".")[0]
    if not _NAME.fullmatch(stem) or stem in OURS:
        msg = f"prompt: expected a file named by letters, digits, hyphens and underscores, and not {', '.join(OURS)}, got {name[:80]!r}"
        refuse(msg)
    if len(content) > MOST_BYTES:
        refuse(f"prompt {name}: expected at most {MOST_BYTES:,} bytes, got {len(content):,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse(f"prompt {name}: byte {error.start + 1}: expected UTF-8")
    return OwnPrompt(stem, storable(text.replace("\r\n", "\n")).strip())


def check_fields(own: OwnPrompt, *, of_levels: bool) -> None:
    """RunRefused where a prompt of one's own lacks a field, names one that there is not, or names one twice."""
    needed = [field for field in FIELDS if not (of_levels and field == "criterion")]
    known = [*needed, *([] if of_levels else [POINTS])]
    named = _FIELD.findall(own.text)
    wrong = [f"it lacks {{{field}}}" for field in needed if field not in named]
    wrong += [f"there is no {{{field}}}" for field in dict.fromkeys(named) if field not in known]
    wrong += [f"it has {{{field}}} {named.count(field)} times" for field in known if named.count(field) > 1]
    if wrong:
        may = "" if of_levels else f", and {{{POINTS}}} if wanted"
        msg = f"prompt {own.name}: expected {', '.join(f'{{{field}}}' for field in needed)} once each{may}; {'; '.join(wrong)}"
        refuse(msg)


# ---------------------------------------------------------------- a judge's reply
# Exactly one flat JSON object, of exactly the fields asked for. Whatever else comes is no verdict: JudgeReplyInvalid says why.

EXPLANATION, MET, LEVEL, CONFIDENCE = "explanation", "criteria_met", "level", "confidence"
NO_LEVEL = "none"
MAX_QUOTE = 120  # characters of what came, in a message

_LEVELS: dict[str, Acuity | Label] = {letter: Acuity(letter) for letter in "ABCD"} | {NO_LEVEL: Label.CANNOT_ASSESS}
_BRACKETS = re.compile(r"[\[\]]")
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"


class Judged(msgspec.Struct, frozen=True, gc=False):
    """What a judge says: met or not, or a level (cannot assess where none is recommended); the confidence, in [0, 1], is that this is right."""

    label: Label | Acuity
    explanation: str
    confidence: float | None = None


def read_verdict(text: str, *, of_levels: bool, with_confidence: bool) -> Judged:
    """A reply of the judge of criteria, or of levels of care; its explanation may be empty."""
    answer = LEVEL if of_levels else MET
    reply = one_object(text, (EXPLANATION, answer, CONFIDENCE) if with_confidence else (EXPLANATION, answer))
    value, words = reply[answer], reply[EXPLANATION]
    stated: Any = reply.get(CONFIDENCE)
    label: Label | Acuity
    if of_levels:
        if not isinstance(value, str) or value not in _LEVELS:
            _refuse(LEVEL, value, '"A", "B", "C", "D" or "none"')
        label = _LEVELS[value]
    else:
        if not isinstance(value, bool):
            _refuse(MET, value, "true or false")
        label = Label.MET if value else Label.NOT_MET
    if not isinstance(words, str):
        _refuse(EXPLANATION, words, "a string")
    if with_confidence and (isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated <= 1):
        _refuse(CONFIDENCE, stated, "a number from 0 to 1")
    confidence = math.fabs(stated) if with_confidence else None  # -0.0 is 0
    return Judged(label, storable(words).strip(), confidence)


def one_object(text: str, fields: Collection[str]) -> dict[str, Any]:
    """The one JSON object of a reply, which has exactly these fields and nothing nested in it.

    From the first brace of the reply to its last there must be this object and nothing else, so that two objects are none, whether they are equal or not.
    Around it may stand a code fence or text without braces; a square bracket that is open where it begins, or closed behind it, makes it part of an array,
    which is none either. A thought of the model at the start of the reply, from `<think>` to the first `</think>`, is left out.
    """
    answer = text
    if text.lstrip().startswith(_THOUGHT):
        _, ended, rest = text.partition(_THOUGHT_ENDS)
        answer = rest if ended else text
    begin, end = answer.find("{"), answer.rfind("}") + 1
    if begin < 0 or end <= begin:
        _invalid(f"Expected a JSON object, got {shortened(text)}")
    if _leaves_open(answer[:begin], "[") or _leaves_open(answer[end:][::-1], "]"):
        _invalid(f"expected one JSON object, got an array: {shortened(answer)}")
    try:
        reply = json.loads(
            answer[begin:end],
            object_pairs_hook=_once,
            parse_constant=lambda word: _invalid(f"Expected JSON, got {word}"),
        )
    except (ValueError, RecursionError) as error:  # RecursionError: nested deeper than the parser goes
        why = str(error).partition(":")[0] if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        _invalid(f"Expected one JSON object ({why}), got {shortened(answer[begin:end])}")
    if set(reply) != set(fields):
        _invalid(f"expected {', '.join(fields)}, got the fields {shortened(', '.join(map(str, reply)))}")
    for name, value in reply.items():
        if isinstance(value, (dict, list)):
            _refuse(name, value, "a plain value")
    return dict(reply)


def shortened(value: object) -> str:
    """What came, as JSON has it, at most `MAX_QUOTE` characters of it."""
    some = value[: MAX_QUOTE + 1] if isinstance(value, str) else value
    words = json.dumps(some, ensure_ascii=True, default=str)
    return words if len(words) <= MAX_QUOTE else words[:MAX_QUOTE] + " …"


def _leaves_open(text: str, opening: str) -> bool:
    """Whether a square bracket is opened in it and not closed again; the text after an object is read backwards, where `]` opens."""
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth = depth + 1 if bracket == opening else max(depth - 1, 0)
    return depth > 0


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            _invalid(f"Expected the field {shortened(name)} once, got it twice")
        fields[name] = value
    return fields


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    _invalid(f"{field}: expected {expected}, got {shortened(value)}")


def _invalid(sentence: str) -> NoReturn:
    raise JudgeReplyInvalid(sentence) from None


@dataclass(frozen=True)
class AnswerPrompt:
    """Asks a model for an answer: with nothing but the turns themselves, or in one turn with the four levels, ending in `ACUITY: <letter>`."""

    with_levels: bool = False

    @cached_property
    def version(self) -> str:
        """Of everything that can change an answer."""
        name = "qa" if self.with_levels else "conversation"
        return _version(name, [self.request(EXAMPLES), self.request(EXAMPLES[2:3])])

    def request(self, case: Sequence[Message]) -> ChatRequest:
        """The question. Its mark is made from the case, so that samples and later runs are asked exactly the same."""
        if not case:
            refuse("The conversation has no turn: there is nothing to ask.")
        if not self.with_levels:
            return ChatRequest(tuple(case))
        texts = [turn.content for turn in case]
        digest = hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
        fence = safe_fence(digest[: 2 * FENCE_BYTES], texts)
        asked = joined(words("qa_task"), _turns(fence, "CASE", case), words("levels"), words("qa_last"))
        return ChatRequest((Message("user", asked),))


@dataclass(frozen=True)
class JudgePrompt:
    """Asks a judge whether a response meets a criterion, or which level of care it recommends, and with which confidence in its own label."""

    of_levels: bool = False
    with_points: bool = False
    with_confidence: bool = False
    own: OwnPrompt | None = None
    """In place of our task and rules; how the parts are marked, and the form of the reply, stay ours, so that replies are read as strictly."""

    @cached_property
    def version(self) -> str:
        """Of everything that can change an answer."""
        points = (None,) if self.of_levels else (5, -5, None)
        requests = [self.request(EXAMPLES, "r", "c", one, fence=EXAMPLE_FENCE) for one in points]
        ours = "acuity-judge" if self.of_levels else "judge"
        return _version(self.own.name if self.own else ours, requests)

    def request(
        self, turns: Sequence[Message], response: str, criterion: str = "", points: int | None = None, *, fence: str
    ) -> ChatRequest:
        """The question: our task as the system's turn; as the user's turn our words, the parts as data, and our words again.

        `criterion`, `points`: of the judge of criteria; None: nobody knows its points. `fence`: the mark for this call, of `new_fence`; where a text holds
        it, another is drawn.
        """
        fence = safe_fence(fence, [response, criterion, *(turn.content for turn in turns)])
        about = _turns(fence, "CASE" if self.of_levels else "CONVERSATION", turns)
        parts = {"conversation": about, "response": _part(fence, "RESPONSE", response)}
        if not self.of_levels:
            worth = ", its points are not known" if points is None else f", worth {points:+d} points"
            with_points = self.with_points and not self.own  # which says itself where it wants them
            parts["criterion"] = _part(fence, "CRITERION", criterion, worth if with_points else "")
        mark = f"The mark of this message: {fence}"
        if self.own:
            parts[POINTS] = "not known" if points is None else f"{points:+d}"
            # in one walk over the prompt alone: what is filled in is never searched for fields
            asked = joined(mark, _FIELD.sub(lambda field: parts[field[1]], self.own.text))
        else:
            asked = joined(self._words("first"), mark, *parts.values(), self._words("last", either=True))
        schema_name = "level_of_care" if self.of_levels else "verdict"
        return ChatRequest((Message("system", self._system), Message("user", asked)), self._schema, schema_name)

    def read(self, text: str) -> Judged:
        """What a reply says; raises JudgeReplyInvalid."""
        return read_verdict(text, of_levels=self.of_levels, with_confidence=self.with_confidence)

    def _words(self, name: str, *, either: bool = False) -> str:
        which = "acuity" if self.of_levels else "judge"
        return words(f"{which}_{name}{'_confidence' if either and self.with_confidence else ''}")

    @cached_property
    def _schema(self) -> dict[str, Any]:
        answer = {"type": "string", "enum": [*"ABCD", NO_LEVEL]} if self.of_levels else {"type": "boolean"}
        shape = {EXPLANATION: {"type": "string"}, LEVEL if self.of_levels else MET: answer}
        # not its range: several servers refuse a schema that bounds a number; it is checked when the reply is read
        shape |= {CONFIDENCE: {"type": "number"}} if self.with_confidence else {}
        # in the servers' strict mode every field is required, and no other allowed
        return {"type": "object", "properties": shape, "required": [*shape], "additionalProperties": False}

    @cached_property
    def _system(self) -> str:
        rules = "rules" if self.of_levels else "with_points" if self.with_points else "without_points"
        levels = [words("levels")] if self.of_levels else []
        if self.own:
            return joined(*levels, words("parts_are_data"), self._words("reply", either=True))
        rules, reply = self._words(rules), self._words("reply", either=True)
        return joined(self._words("task"), *levels, rules, words("parts_are_data"), reply)


def _prompts(spec: RunSpec) -> dict[str, JudgePrompt | AnswerPrompt]:
    if spec.kind is RunKind.JUDGE:
        of_levels = spec.dataset == CASES
        if spec.own:
            check_fields(spec.own, of_levels=of_levels)
        return {"": JudgePrompt(of_levels, spec.with_points, spec.with_confidence, spec.own)}
    formats = spec.formats if spec.kind is RunKind.TRIAGE else ("",)
    return {word: AnswerPrompt(with_levels=word == Format.QA) for word in formats}


def prompt_version(spec: RunSpec) -> str:
    """The version of a run's prompts as they are now; of several (formats of triage) joined by +."""
    return "+".join(prompt.version for prompt in _prompts(spec).values())


def spec_for(kind: RunKind, model: ModelSettings, dataset: str, **asked: Any) -> RunSpec:
    """The specification of a run with the prompts as they are now; `asked`: as `RunSpec` has it, each default where the run's kind does not know it."""
    if kind is RunKind.JUDGE:
        asked |= {"n_samples": 1, "formats": ()}
    else:
        asked |= {"of_models": (), "n_repeats": 1, "own": None, "made_with": ()}
        asked |= {"with_points": True, "with_confidence": False}
    if kind is RunKind.RESPOND:
        asked["formats"] = ()
    if dataset == CASES or asked.get("own"):  # a prompt of one's own says itself whether points are shown
        asked["with_points"] = True
    asked |= {name: tuple(sorted(set(asked.get(name, ())))) for name in ("of_models", "formats")}
    spec = RunSpec(kind=kind, model=model, prompt_version="", dataset=dataset, **asked)
    return msgspec.structs.replace(spec, prompt_version=prompt_version(spec))


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A question with the texts that it is made from. `suspects`: sentences on words in the response that speak to the judge."""

    question: Question
    case: tuple[Message, ...]
    response: str = ""
    criterion: str = ""
    points: int | None = None
    suspects: tuple[str, ...] = ()


class Asker:
    """Makes what is sent from questions, and reads what comes back."""

    def __init__(self, spec: RunSpec) -> None:
        self._prompts = _prompts(spec)

    def prepared(self, session: Session, questions: Sequence[Question]) -> list[Asked]:
        """Questions with their texts; each response is searched once for words that speak to the judge."""
        conversations, responses, criteria = texts(session, questions)
        suspicions = {number: suspects(text) for number, text in responses.items()}
        asked = []
        for question in questions:
            case = conversations[question.example_id]
            if question.response_id is None:
                asked.append(Asked(question, case))
                continue
            criterion, points = criteria[question.criterion_id] if question.criterion_id is not None else ("", None)
            response_id = question.response_id
            asked.append(Asked(question, case, responses[response_id], criterion, points, suspicions[response_id]))
        return asked

    def request(self, asked: Asked) -> ChatRequest:
        """What is sent; made anew for each call, with a mark of its own."""
        prompt = self._prompts[asked.question.format]
        if isinstance(prompt, AnswerPrompt):
            return prompt.request(asked.case)
        return prompt.request(asked.case, asked.response, asked.criterion, asked.points, fence=new_fence())

    def read(self, asked: Asked, text: str) -> Judged | str:
        """What a reply says: a judge's verdict, or a model's answer as it came."""
        prompt = self._prompts[asked.question.format]
        if isinstance(prompt, JudgePrompt):
            return prompt.read(text)
        if not text.strip():
            _invalid("expected an answer, got An empty reply")
        if storable(text) != text:
            _invalid("expected text, got A reply with half of a character")
        return text

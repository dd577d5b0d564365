"""What models are asked, by the files in `texts/`, and how their replies are taken; RunRefused where texts cannot be asked about.

A response that is judged may hold anything, also words meant for the judge. So it is data: between lines that carry a mark made for the one
call, with our task before and after it, in the turn of the user alone. A text is never searched for places to fill in.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import msgspec

from evalcore.errors import JudgeReplyInvalid, RunRefused
from evalcore.runs.queries import texts
from evalcore.runs.replies import CONFIDENCE, EXPLANATION, LEVEL, MET, NO_LEVEL, Judged, read_verdict
from evalcore.runs.spec import ChatRequest, ModelSettings, OwnPrompt, Question, RunSpec, refuse, storable
from evalcore.runs.suspicion import suspects
from evalcore.study.db import Session
from evalcore.study.schema import CASES, ConfidenceMeaning, Format, Message, RunKind

CONFIDENCE_MEANING = ConfidenceMeaning.RIGHT  # what the judges' prompts ask the confidence for
FENCE_BYTES = 8  # 64 bits by chance: whoever writes a text cannot hit the mark of a call that is made later
TRIES = 3
ROLES = {"user": "the user", "assistant": "the assistant", "system": "the system", "developer": "the system"}
"""Who wrote a turn, in our words: a role of any other name is not repeated, since it is data as well."""
OTHER_ROLE = "somebody else"
EXAMPLES = (
    Message("system", "s"), Message("developer", "d"), Message("user", "u"), Message("assistant", "a"), Message("tool", "t")
)  # fmt: skip
"""Turns of every kind, from which versions are made."""
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
    return files(__package__).joinpath("texts", f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


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
    """A prompt's name with the first 8 hex digits of the SHA-256 over what it sends for made-up questions."""
    digest = hashlib.sha256(msgspec.json.encode((name, requests))).hexdigest()
    return f"{name}@{digest[:8]}"


def own_prompt(content: bytes, name: str) -> OwnPrompt:
    """A prompt of one's own from its file, whose name without its ending is that of the prompt; its fields are checked once it is known what is judged."""
    stem = name.rpartition("/")[2].partition(".")[0]
    if not _NAME.fullmatch(stem) or stem in OURS:
        refuse(
            f"prompt: expected a file named by letters, digits, hyphens and underscores, and not {', '.join(OURS)}, got {name[:80]!r}"
        )
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
        refuse(
            f"prompt {own.name}: expected {', '.join(f'{{{field}}}' for field in needed)} once each{may}; {'; '.join(wrong)}"
        )


@dataclass(frozen=True)
class AnswerPrompt:
    """Asks a model for an answer: with nothing but the turns themselves, or in one turn with the four levels.

    With levels the answer ends with `ACUITY: <letter>`, as `levels.answer` reads it.
    """

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
    """Asks a judge about a response: whether it meets a criterion, or which level of care it recommends; not which it should.

    `with_confidence`: the judge is asked how probable it is that its own label is right.
    """

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
        asked |= {
            "of_models": (),
            "with_points": True,
            "with_confidence": False,
            "n_repeats": 1,
            "own": None,
            "made_with": (),
        }
    if kind is RunKind.RESPOND:
        asked["formats"] = ()
    if dataset == CASES or asked.get("own"):  # a prompt of one's own says itself whether points are shown
        asked["with_points"] = True
    asked |= {name: tuple(sorted(set(asked.get(name, ())))) for name in ("of_models", "formats")}
    spec = RunSpec(kind=kind, model=model, prompt_version="", dataset=dataset, **asked)
    return msgspec.structs.replace(spec, prompt_version=prompt_version(spec))


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A question with the texts that it is made from.

    Of what is judged; "" and None where there is none. `suspects`: sentences on words in the response that speak to the judge.
    """

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
            criterion = criteria[question.criterion_id] if question.criterion_id is not None else ("", None)
            about = (responses[question.response_id], *criterion, suspicions[question.response_id])
            asked.append(Asked(question, case, *about))
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
            msg = "expected an answer, got An empty reply"
            raise JudgeReplyInvalid(msg)
        if storable(text) != text:
            msg = "expected text, got A reply with half of a character"
            raise JudgeReplyInvalid(msg)
        return text

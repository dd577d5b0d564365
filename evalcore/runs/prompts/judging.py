"""The prompts of judges: of a response against a criterion, and of the level of care that a response recommends."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from evalcore.runs.prompts import blocks, replies
from evalcore.runs.prompts.replies import CONFIDENCE, EXPLANATION, LEVEL, MET, NO_LEVEL, Judged
from evalcore.study.run_words import ChatRequest
from evalcore.study.schema import ConfidenceMeaning, Message

CONFIDENCE_MEANING = ConfidenceMeaning.RIGHT
"""What the judges' prompts ask the confidence for."""


@dataclass(frozen=True)
class JudgePrompt:
    """Asks a judge whether a response meets a criterion: one of four, made of one set of texts.

    Attributes:
        with_points: The criterion is shown with its points.
        with_confidence: The judge is asked how probable it is that its own label is right.
    """

    with_points: bool
    with_confidence: bool

    @cached_property
    def version(self) -> str:
        """Of everything that can change an answer."""
        return blocks.version("judge", [self._sent(blocks.EXAMPLE_FENCE, points) for points in (5, -5, None)])

    def request(
        self, conversation: Sequence[Message], response: str, criterion: str, points: int | None, *, fence: str
    ) -> ChatRequest:
        """The question: our task as the system's turn; as the user's turn our words, the three parts as data, and our words again.

        Args:
            response: As the model gave it, letter for letter.
            points: Its points; None: nobody knows them. Not shown by the prompt without points.
            fence: The mark for this call, of `new_fence`; where a text holds it, another is drawn.

        Raises:
            RunRefused: The fence is no mark, or the texts hold every mark that is drawn.
        """
        fence = blocks.safe_fence(fence, [response, criterion, *(turn.content for turn in conversation)])
        asked = blocks.question(
            fence,
            blocks.words("judge_first"),
            [
                blocks.conversation(fence, "CONVERSATION", conversation),
                blocks.part(fence, "RESPONSE", response),
                blocks.part(fence, "CRITERION", criterion, self._worth(points)),
            ],
            blocks.words(_either("judge_last", with_confidence=self.with_confidence)),
        )
        return ChatRequest((Message("system", self._system), Message("user", asked)), self._schema, "verdict")

    def read(self, text: str) -> Judged:
        """What a reply says.

        Raises:
            JudgeReplyInvalid: It is not exactly one JSON object with the fields that were asked for.
        """
        return replies.read_met(text, with_confidence=self.with_confidence)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        shape = {EXPLANATION: {"type": "string"}, MET: {"type": "boolean"}}
        return _strict(shape, with_confidence=self.with_confidence)

    @cached_property
    def _system(self) -> str:
        return blocks.joined(
            blocks.words("judge_task"),
            blocks.words("judge_with_points" if self.with_points else "judge_without_points"),
            blocks.words("parts_are_data"),
            blocks.words(_either("judge_reply", with_confidence=self.with_confidence)),
        )

    def _worth(self, points: int | None) -> str:
        if not self.with_points:
            return ""
        return ", its points are not known" if points is None else f", worth {points:+d} points"

    def _sent(self, fence: str, points: int | None) -> ChatRequest:
        return self.request(blocks.EXAMPLES, "r", "c", points, fence=fence)


@dataclass(frozen=True)
class AcuityJudgePrompt:
    """Asks a judge which level of care a response recommends; not which it should have.

    Attributes:
        with_confidence: The judge is asked how probable it is that its own level is right.
    """

    with_confidence: bool

    @cached_property
    def version(self) -> str:
        """Of everything that can change an answer."""
        return blocks.version("acuity-judge", [self.request(blocks.EXAMPLES, "r", fence=blocks.EXAMPLE_FENCE)])

    def request(self, case: Sequence[Message], response: str, *, fence: str) -> ChatRequest:
        """The question, built as that of `JudgePrompt`, of two parts.

        Args:
            response: As the model gave it, letter for letter.
            fence: The mark for this call, of `new_fence`; where a text holds it, another is drawn.

        Raises:
            RunRefused: The fence is no mark, or the texts hold every mark that is drawn.
        """
        fence = blocks.safe_fence(fence, [response, *(turn.content for turn in case)])
        asked = blocks.question(
            fence,
            blocks.words("acuity_first"),
            [blocks.conversation(fence, "CASE", case), blocks.part(fence, "RESPONSE", response)],
            blocks.words(_either("acuity_last", with_confidence=self.with_confidence)),
        )
        return ChatRequest((Message("system", self._system), Message("user", asked)), self._schema, "level_of_care")

    def read(self, text: str) -> Judged:
        """What a reply says; cannot assess where the judge finds no recommendation.

        Raises:
            JudgeReplyInvalid: It is not exactly one JSON object with the fields that were asked for.
        """
        return replies.read_level(text, with_confidence=self.with_confidence)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        shape = {EXPLANATION: {"type": "string"}, LEVEL: {"type": "string", "enum": [*"ABCD", NO_LEVEL]}}
        return _strict(shape, with_confidence=self.with_confidence)

    @cached_property
    def _system(self) -> str:
        return blocks.joined(
            blocks.words("acuity_task"),
            blocks.words("levels"),
            blocks.words("acuity_rules"),
            blocks.words("parts_are_data"),
            blocks.words(_either("acuity_reply", with_confidence=self.with_confidence)),
        )


@cache
def judge(with_points: bool, with_confidence: bool) -> JudgePrompt:  # noqa: FBT001 - the two switches of a run
    """The prompt of the judge of criteria."""
    return JudgePrompt(with_points, with_confidence)


@cache
def acuity_judge(with_confidence: bool) -> AcuityJudgePrompt:  # noqa: FBT001 - a switch of a run
    """The prompt of the judge of levels of care."""
    return AcuityJudgePrompt(with_confidence)


def _either(name: str, *, with_confidence: bool) -> str:
    return f"{name}_confidence" if with_confidence else name


def _strict(properties: dict[str, Any], *, with_confidence: bool) -> dict[str, Any]:
    """A JSON schema as servers take it in their strict mode: every field required, no other allowed.

    The range of the confidence is not in it: several servers refuse a schema that bounds a number. It is checked when the reply is read.
    """
    if with_confidence:
        properties = properties | {CONFIDENCE: {"type": "number"}}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}

"""The prompts that ask a model for an answer: to a case with the four levels named (qa), or to nothing but the turns themselves."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from evalcore.errors import RunRefused
from evalcore.runs.prompts import blocks
from evalcore.study.run_words import ChatRequest
from evalcore.study.schema import Message


@dataclass(frozen=True)
class AnswerPrompt:
    """Asks a model for an answer.

    Attributes:
        made: The turns that are sent for the turns of a case.
    """

    name: str
    made: Callable[[Sequence[Message]], tuple[Message, ...]]

    @cached_property
    def version(self) -> str:
        """Of everything that can change an answer."""
        return blocks.version(self.name, [self.request(blocks.EXAMPLES), self.request(blocks.EXAMPLES[2:3])])

    def request(self, case: Sequence[Message]) -> ChatRequest:
        """The question.

        Raises:
            RunRefused: There is no turn to answer.
        """
        if not case:
            msg = "The conversation has no turn: there is nothing to ask."
            raise RunRefused(msg)
        return ChatRequest(self.made(case))


@cache
def qa() -> AnswerPrompt:
    """The case and the four levels with their definitions; the answer gives reasons and ends with `ACUITY: <letter>`, as `acuity_answer` reads it."""
    return AnswerPrompt("qa", _with_levels)


@cache
def conversation() -> AnswerPrompt:
    """The case's own turns and nothing else; also for the examples of HealthBench."""
    return AnswerPrompt("conversation", tuple)


def _with_levels(case: Sequence[Message]) -> tuple[Message, ...]:
    """One turn of the user's. Its mark is made from the case, so that samples and later runs are asked letter for letter the same."""
    texts = [turn.content for turn in case]
    digest = hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    fence = blocks.safe_fence(digest[: 2 * blocks.FENCE_BYTES], texts)
    levels, last = blocks.words("levels"), blocks.words("qa_last")
    asked = blocks.joined(blocks.words("qa_task"), blocks.conversation(fence, "CASE", case), levels, last)
    return (Message("user", asked),)

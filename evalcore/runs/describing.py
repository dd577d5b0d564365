"""What a run asks, put into words: its specification with the version of the prompt, and the prompts themselves."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from evalcore.errors import JudgeReplyInvalid
from evalcore.runs import prompts
from evalcore.runs.prompts import AcuityJudgePrompt, AnswerPrompt, Judged, JudgePrompt
from evalcore.runs.queries import Texts
from evalcore.study.run_words import ChatRequest, ModelSettings, Question, RunKind, RunSpec
from evalcore.study.schema import CASES, Format, Message
from evalcore.study.store import is_storable


def spec_for(  # noqa: PLR0913 - what a run is described by
    kind: RunKind,
    model: ModelSettings,
    dataset: str,
    *,
    of_models: Collection[str] = (),
    formats: Collection[str] = (),
    with_points: bool = True,
    with_confidence: bool = False,
    n_samples: int = 1,
    n_repeats: int = 1,
    limit: int | None = None,
) -> RunSpec:  # fmt: skip
    """The specification of a run with the prompts as they are now; what its kind does not know is left at its default."""
    is_judge = kind is RunKind.JUDGE
    wanted = RunSpec(
        kind=kind,
        model=model,
        prompt_version="",
        with_points=with_points or not is_judge or dataset == CASES,
        with_confidence=with_confidence and is_judge,
        dataset=dataset,
        of_models=tuple(sorted(set(of_models))) if is_judge else (),
        formats=tuple(sorted(set(formats))) if kind is RunKind.TRIAGE else (),
        n_samples=1 if is_judge else n_samples,
        n_repeats=n_repeats if is_judge else 1,
        limit=limit,
    )
    return msgspec.structs.replace(wanted, prompt_version=prompt_version(wanted))


def prompt_version(spec: RunSpec) -> str:
    """The version of a run's prompts as they are now; of several (formats of triage) joined by +."""
    return "+".join(prompt.version for prompt in _prompts(spec).values())


def _prompts(spec: RunSpec) -> Mapping[str, JudgePrompt | AcuityJudgePrompt | AnswerPrompt]:
    """The prompts of a run by the format of the question."""
    if spec.kind is RunKind.RESPOND:
        return {"": prompts.conversation()}
    if spec.kind is RunKind.TRIAGE:
        by_format = {Format.QA: prompts.qa, Format.CONVERSATION: prompts.conversation}
        return {word: by_format[Format(word)]() for word in spec.formats}
    if spec.dataset == CASES:
        return {"": prompts.acuity_judge(spec.with_confidence)}
    return {"": prompts.judge(spec.with_points, spec.with_confidence)}


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A question with the texts that it is made from.

    Attributes:
        response, criterion, points: Of what is judged; "" and None where there is none.
        suspects: Sentences on words in the response that speak to the judge.
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
        self._is_judge = spec.kind is RunKind.JUDGE

    def prepared(self, questions: Sequence[Question], texts: Texts) -> list[Asked]:
        """Questions with their texts; a response is searched for words to the judge once, however many criteria are asked on it."""
        suspects: dict[int, tuple[str, ...]] = {}
        if self._is_judge:
            suspects = {number: tuple(prompts.suspects(text)) for number, text in texts.responses.items()}
        found = []
        for question in questions:
            case = texts.conversations[question.example_id]
            if question.response_id is None:
                found.append(Asked(question, case))
                continue
            criterion = texts.criteria[question.criterion_id] if question.criterion_id is not None else ("", None)
            about = (texts.responses[question.response_id], *criterion, suspects[question.response_id])
            found.append(Asked(question, case, *about))
        return found

    def request(self, asked: Asked) -> ChatRequest:
        """What is sent; made anew for each call, with a mark of its own.

        Raises:
            RunRefused: The texts cannot be asked about: there is no turn to answer, or they hold every mark that is drawn.
        """
        match self._prompts[asked.question.format]:
            case JudgePrompt() as prompt:
                fence = prompts.new_fence()
                return prompt.request(asked.case, asked.response, asked.criterion, asked.points, fence=fence)
            case AcuityJudgePrompt() as prompt:
                return prompt.request(asked.case, asked.response, fence=prompts.new_fence())
            case prompt:
                return prompt.request(asked.case)

    def read(self, asked: Asked, text: str) -> Judged | str:
        """What a reply says: a judge's verdict, or a model's answer as it came.

        Raises:
            JudgeReplyInvalid: It is not what was asked for; of an answer: there is nothing in it, or what no database holds.
        """
        prompt = self._prompts[asked.question.format]
        if not isinstance(prompt, AnswerPrompt):
            return prompt.read(text)
        if not text.strip():
            msg = "expected an answer, got An empty reply"
            raise JudgeReplyInvalid(msg)
        if not is_storable(text):
            msg = "expected text, got A reply with half of a character"
            raise JudgeReplyInvalid(msg)
        return text


def n_characters(requests: Iterable[ChatRequest]) -> int:
    """All that is sent, in characters."""
    return sum(len(message.content) for request in requests for message in request.messages)

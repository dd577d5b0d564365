"""What formats of graded answers give, and how a line is read with the file's options."""

from dataclasses import dataclass

import msgspec

from evalcore.study.schema import (
    CannotReason,
    Cause,
    ConflictCause,
    Criterion,
    ErrorKind,
    Label,
    Message,
    RaterKind,
    Selection,
    Severity,
    Stage,
)


@dataclass(frozen=True)
class Options:
    """What cannot be read out of the rows.

    Attributes:
        dataset: Name of the data set that the examples belong to, e.g. healthbench.
        model: Who wrote the responses, where the file does not say.
        judge: Who graded them, where the file does not say.
    """

    dataset: str = "healthbench"
    subset: str | None = None
    model: str | None = None
    judge: str | None = None

    @property
    def evaluation(self) -> str:
        """The data set with its part: what a response was made for.

        >>> Options(subset="hard").evaluation
        'healthbench_hard'
        """
        return f"{self.dataset}_{self.subset}" if self.subset else self.dataset


class CriterionRef(msgspec.Struct, frozen=True, gc=False):
    """Which criterion of the example is meant: its position, or its cluster, or its text. The first that is given counts.

    Attributes:
        position: In the stored rubric, from 1.
        row: Index into `Graded.rubric`, from 0, where the row brings its own rubric.
    """

    position: int | None = None
    cluster: str | None = None
    text: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        if self.position is not None:
            return f"criterion_position {self.position}"
        return self.cluster or repr((self.text or "")[:60])


class GivenVerdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A verdict as a file gives it; the words are those of `schema.Verdict`."""

    criterion: CriterionRef
    rater: str
    rater_kind: RaterKind
    stage: Stage
    label: Label | None
    explanation: str | None = None
    confidence: float | None = None
    cause: Cause | None = None
    severity: Severity | None = None
    error_kind: ErrorKind | None = None
    reason: CannotReason | None = None
    conflict_cause: ConflictCause | None = None
    right_for_wrong_reason: bool = False
    selection: Selection | None = None
    inclusion_probability: float | None = None
    blinded: bool | None = None
    read_at: str | None = None


class Graded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A response with verdicts on it.

    Attributes:
        line: Where it stands in the file.
        dataset: Of the example, where the row says so.
        evaluation: What the response was made for, where the row says so.
        messages: What was sent to the model, where the file says so; where `sent` is given, the example's conversation.
        sent: What was sent to the model, where it may be more than `messages`.
        rubric: The criteria that the file brings with the response.
        scored_rubric: The rubric is all that the response is graded on (a run), not one line of it.
        model: None where the file does not say: the response is then found by `completion_id`.
        sample_index: Which repeat it is; None where the file does not say. With a text: the response has this number, or it is another one.
        text: None where the response must be in the study already.
    """

    line: int
    prompt_id: str
    verdicts: tuple[GivenVerdict, ...]
    dataset: str | None = None
    evaluation: str | None = None
    messages: tuple[Message, ...] | None = None
    sent: tuple[Message, ...] | None = None
    rubric: tuple[Criterion, ...] = ()
    scored_rubric: bool = False
    model: str | None = None
    sample_index: int | None = None
    completion_id: str | None = None
    text: str | None = None
    canary: str | None = None

"""The words of Overread as checked types.

Importers and pages make these; `store` writes them; the tables of `tables` hold them. Each enum says what its words mean.
"""

from datetime import datetime
from enum import StrEnum

import msgspec


class RaterKind(StrEnum):
    """Who gives verdicts."""

    JUDGE = "judge"
    REVIEWER = "reviewer"


class Label(StrEnum):
    """The value in a verdict on a criterion. Acuity labels join with the triage pages."""

    MET = "met"
    NOT_MET = "not_met"
    CANNOT_ASSESS = "cannot_assess"


class Stage(StrEnum):
    """When in the course of a review a verdict was given."""

    JUDGE = "judge"
    """A judge's verdict; judges are asked once."""
    FIRST = "first"
    """A physician's first read, without the judge's verdict."""
    REVISED = "revised"
    """What the physician kept or changed after the judge's verdict was shown."""
    OPEN = "open"
    """Given with the judge's verdict in view."""
    ADJUDICATED = "adjudicated"
    """The verdict that settles conflicting reads."""


class Selection(StrEnum):
    """How an item came to be read; only drawn items enter estimates."""

    RANDOM = "random"
    IMPORTANCE = "importance"
    VOLUNTEERED = "volunteered"
    ADJUDICATION = "adjudication"


class Cause(StrEnum):
    """Why a physician's verdict differs from the judge's."""

    MISREAD_ANSWER = "judge_misread_answer"
    MISREAD_CRITERION = "judge_misread_criterion"
    MEDICAL_DISAGREEMENT = "medical_disagreement"
    CRITERION_AMBIGUOUS = "criterion_ambiguous"
    CRITERION_WRONG = "criterion_wrong"
    CONTEXT_MISSING = "context_missing"
    LANGUAGE = "language"
    OTHER = "other"


class Severity(StrEnum):
    """How much the judge's error would matter to a patient."""

    NONE = "none"
    MILD = "mild"
    MODERATE = "moderate"
    SEVERE = "severe"


class Role(StrEnum):
    """What a person does in the study; a person may have several."""

    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    RESEARCHER = "researcher"
    LEAD = "lead"


class Viewer(msgspec.Struct, frozen=True):
    """The person who looks at the screen.

    Attributes:
        languages: ISO 639-1 codes.
    """

    person_id: int
    name: str
    roles: frozenset[Role]
    specialties: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


FILE_IMPORTED = "file imported"
"""The act in the audit trail that brings judges' verdicts."""

MIN_POINTS, MAX_POINTS = -10, 10
AXES = ("accuracy", "completeness", "context_awareness", "communication_quality", "instruction_following")


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn of a conversation."""

    role: str
    content: str


class Criterion(msgspec.Struct, frozen=True, gc=False):
    """One line of a rubric.

    Attributes:
        text: The criterion as written.
        points: -10..10 without 0; negative for undesirable behaviour. None where the source gives none
            (a row of a meta-evaluation): such a criterion can be read and is never scored.
        tags: The source's tags in their order, e.g. `level:cluster`, `cluster:...`, `axis:accuracy`.
    """

    text: str
    points: int | None
    tags: tuple[str, ...] = ()

    def tag(self, kind: str) -> str | None:
        """The value of the first tag of a kind.

        >>> Criterion("x", 5, ("level:example", "axis:accuracy")).tag("axis")
        'accuracy'
        """
        return next((tag.partition(":")[2] for tag in self.tags if tag.startswith(kind + ":")), None)


class Example(msgspec.Struct, frozen=True):
    """A conversation that ends with the user's turn, with its rubric.

    Attributes:
        prompt_id: The source's name for it, unique within a data set.
        messages: The turns, oldest first; roles system, user, assistant.
        rubric: Criteria in the source's order; a criterion's position counts from 1.
        tags: `theme:...` and `physician_agreed_category:...` among others.
        subsets: Parts of the data set that it belongs to, e.g. hard.
        provisional: Known only from a result on it, so theme, conversation and rubric may be incomplete.
    """

    prompt_id: str
    messages: tuple[Message, ...]
    rubric: tuple[Criterion, ...]
    tags: tuple[str, ...] = ()
    subsets: frozenset[str] = frozenset()
    ideal_completions: str | None = None
    canary: str | None = None
    provisional: bool = False

    def tag(self, kind: str) -> str | None:
        """The value of the first tag of a kind, or None."""
        return next((tag.partition(":")[2] for tag in self.tags if tag.startswith(kind + ":")), None)


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One rater's label on one item. Never edited; a newer one supersedes it.

    Attributes:
        criterion_id, response_id, example_id: Row numbers of the item.
        label: None takes an earlier verdict of the same rater and stage back.
        confidence: In [0, 1], or None where the rater stated none.
        explanation: The rater's own words: a judge's explanation, a physician's note.
        cause, severity: Of the judge's error, where the verdict differs from the judge's.
        right_for_wrong_reason: The judge's label is right, its explanation is not.
        inclusion_probability: With which probability the item was drawn, in (0, 1].
        blinded: Whether the rater saw the judge's verdict (False) or not (True); None for judges.
        supersedes: Row number of the verdict that this one replaces.
    """

    example_id: int
    response_id: int
    criterion_id: int
    rater_id: int
    stage: Stage
    label: Label | None
    confidence: float | None = None
    explanation: str | None = None
    cause: Cause | None = None
    severity: Severity | None = None
    right_for_wrong_reason: bool = False
    selection: Selection | None = None
    inclusion_probability: float | None = None
    blinded: bool | None = None
    created_at: datetime | None = None
    supersedes: int | None = None

"""The words of Overread as checked types: importers and pages make them, `store` writes them, the tables of `tables` hold them."""

from datetime import datetime
from enum import StrEnum

import msgspec


class RaterKind(StrEnum):
    """Who gives verdicts."""

    JUDGE = "judge"
    REVIEWER = "reviewer"


class Label(StrEnum):
    """The value in a verdict on a criterion; "cannot assess" may also stand in a verdict on acuity."""

    MET = "met"
    NOT_MET = "not_met"
    CANNOT_ASSESS = "cannot_assess"


class Acuity(StrEnum):
    """The value in a verdict on acuity: how soon the patient should be seen, from home to emergency."""

    A = "A"
    """Monitor at home."""
    A_B = "A/B"
    B = "B"
    """See a doctor within weeks."""
    B_C = "B/C"
    C = "C"
    """See a doctor within 24 to 48 hours."""
    C_D = "C/D"
    D = "D"
    """Go to the emergency department now."""
    REMOVE = "remove"


class Format(StrEnum):
    """How a model was asked about a case: for one of the four levels, or as the patient would write it, without naming any."""

    QA = "qa"
    CONVERSATION = "conversation"

    @property
    def evaluation(self) -> str:
        """What such responses were made for, as `Response.dataset` holds it."""
        return f"acuity_{self.value}"


class MappingMethod(StrEnum):
    """How a case came to its gold, as its file says."""

    DIRECT = "direct"
    """The source's own label says it."""
    MEDIAN = "median"
    """The median of a panel that agreed enough."""
    DISAGREEMENT = "excluded_disagreement"
    """The panel did not agree: the case is ambiguous and has no gold."""
    REMOVED = "excluded_removed"
    """The panel removed the case, or too few voted on it."""
    NONE = "none"
    """The source's label needs a panel, and there was none."""


class ConfidenceMeaning(StrEnum):
    """What the confidence of a judge's verdict is the probability of: that the criterion is met, or that the judge's own label is right."""

    MET = "met"
    RIGHT = "right"


class Ask(StrEnum):
    """What a reader is asked: each criterion on a response, or a level of care."""

    RUBRIC = "rubric"
    RESPONSE_ACUITY = "response_acuity"
    GOLD_ACUITY = "gold_acuity"
    """The level of care that the case itself needs; no response is shown."""


class Stage(StrEnum):
    """When in the course of a review a verdict was given."""

    JUDGE = "judge"
    FIRST = "first"
    """A physician's first read, without the judge's verdict."""
    REVISED = "revised"
    """What the physician kept or changed after the judge's verdict was shown."""
    OPEN = "open"
    """Given with the judge's verdict in view."""
    ADJUDICATED = "adjudicated"


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


class CannotReason(StrEnum):
    """Why a physician cannot assess an item."""

    CONTEXT_MISSING = "context_missing"
    OUTSIDE_SPECIALTY = "outside_specialty"
    LANGUAGE = "language"
    CRITERION_UNCLEAR = "criterion_unclear"
    NEEDS_EXAMINATION = "needs_examination"


class ErrorKind(StrEnum):
    """What the response did wrong where the judge's label is wrong about it: something is missing, or said that should not be."""

    OMISSION = "omission"
    COMMISSION = "commission"


class ConflictCause(StrEnum):
    """Why readers differed, in the adjudicator's view."""

    READER_SLIPPED = "reader_slipped"
    CRITERION_AMBIGUOUS = "criterion_ambiguous"
    CONTEXT_MISSING = "context_missing"
    CLINICAL_DISAGREEMENT = "clinical_disagreement"
    CRITERION_WRONG = "criterion_wrong"


class ReadingMode(StrEnum):
    """Whether first reads are made without the judge's verdict."""

    BLIND = "blind"
    OPEN = "open"


class Seen(StrEnum):
    """How somebody came to see others' verdicts, or that they are to see them."""

    CONVERSATION = "conversation"
    ADJUDICATION = "adjudication"
    EXPORT = "export"
    PREVIEW = "preview"
    """Shown in a list beside what was said of it, or as the first rows of a table."""
    BUNDLE = "bundle"
    PRACTICE = "practice"
    """Set apart for the person's practice round, whose feedback shows what others settled: never assigned to them."""
    RELEASED = "released"
    """A lead let the person see verdicts: no blind read is wanted of them any more."""


class NoteKind(StrEnum):
    """What a line on a response does, between its reader and the lead: the first two are the reader's, the others a lead's."""

    SKIP = "skip"
    """The response leaves the reader's open work, until a lead returns it."""
    FLAG = "flag"
    """The reader tells the lead something, and reads it all the same."""
    ANSWER = "answer"
    CLOSE = "close"
    RETURN = "return"
    """The skipped response is the reader's open work again."""


class Broken(StrEnum):
    """Why a response is no answer, and counts in no number."""

    EMPTY = "empty"
    CUT_OFF = "cut_off"
    WRONG_LANGUAGE = "wrong_language"
    OTHER = "other"


class NotBlind(StrEnum):
    """Why a physician's read is not blind: the study reads open, the reader had seen others' verdicts on the conversation, or is lead or researcher."""

    OPEN = "open"
    EXPOSED = "exposed"
    ROLE = "role"


class Source(StrEnum):
    """How a verdict came into the study: from a person here, with a file, or from a model, parser, rule set or jury here; an early one has none."""

    SESSION = "session"
    IMPORT = "import"
    RUN = "run"


class ReadingState(StrEnum):
    """How far one reader is with one task."""

    READING = "reading"
    """Marks are drafts, and nobody else's verdict is shown (unless the study reads open)."""
    LOCKED = "locked"
    """The first read is locked, and nothing of the judge is shown yet: a slip of the hand can still be told."""
    REVEALED = "revealed"
    """The judge's verdicts are shown, and differences wait for keep or revise."""
    DONE = "done"


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


class Claim(StrEnum):
    """What the interval of a score is to hold for: this benchmark's examples, or others of the kind of which they are a sample."""

    BENCHMARK = "benchmark"
    NEW_EXAMPLES = "new_examples"


class Physicians(StrEnum):
    """Whose judgement the interval of a score is to hold for: of those who have read, or of physicians of whom they are a sample."""

    THESE = "these"
    IN_GENERAL = "in_general"


class Viewer(msgspec.Struct, frozen=True):
    """The person who looks at the screen, or acts; `by`: how, where that is not on a page. Languages are ISO 639-1 codes."""

    person_id: int
    name: str
    roles: frozenset[Role]
    specialties: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    by: str = ""

    @property
    def signature(self) -> str:
        """Who acts, as the audit trail says it."""
        return f"{self.name} ({self.by})" if self.by else self.name


class Administrator(Viewer, frozen=True):
    """Who has the database in their hands: acts as researcher and lead, is no person of the study, and gives no verdicts."""

    person_id: int = 0
    name: str = "administrator"
    roles: frozenset[Role] = frozenset({Role.RESEARCHER, Role.LEAD})


class Rules(msgspec.Struct, frozen=True):
    """What a study has chosen.

    Attributes:
        judge: Whose verdicts are revealed; None: the judge with the most verdicts.
        check_share: Share in [0, 1] of unanimous items that an adjudicator checks nevertheless.
        both_against_judge: Physicians who agree against the judge on a criterion of 7 points or more go to adjudication.
        control_share: Share in [0, 1] of the criteria of a blind read that get a second look without the judge's verdict.
        blind: Readers see no verdict on what they have not read or been released from.
        leads_read: Leads and researchers may be readers as well; their reads are stored as not blind.
    """

    mode: ReadingMode = ReadingMode.BLIND
    judge: str | None = None
    check_share: float = 0.0
    both_against_judge: bool = False
    control_share: float = 0.0
    blind: bool = False
    leads_read: bool = False


CASES = "acuity"
"""The data set of every case, whatever source it comes from: a conversation that is also an example of HealthBench stays apart."""
PARSER, RULES = "parser", "acuity_rules"
"""The judges that ship: the reader of a stated level, and the one that goes by rules."""

REPEAT = "#"
"""Stands in the prompt_version of a judge's repeats (`repeat_version`), and in that of no other rater."""
JURY = "jury@"
"""How the prompt_version of a jury begins (`juries`), and that of no other rater."""

FILE_IMPORTED, LEVELS_READ, JURY_SAID, ANSWERS_SAVED = "file imported", "levels read", "jury said", "answers saved"
PART_IMPORTED, IMPORT_STOPPED = "part of a file imported", "import stopped"
"""Of a large file that is written in parts: all but the last; and that the rest does not fit the study any more."""
IMPORT_WITHDRAWN, IMPORT_RESTORED = "import withdrawn", "import restored"
MARKED_BROKEN, UNMARKED_BROKEN = "response marked broken", "response unmarked"
RENAMED, MERGED = "name changed", "names merged"
MENDING = (IMPORT_WITHDRAWN, IMPORT_RESTORED, MARKED_BROKEN, UNMARKED_BROKEN, RENAMED, MERGED)
"""The acts after which the trail keeps what is hidden or called otherwise."""
BRINGING = (FILE_IMPORTED, IMPORT_STOPPED, LEVELS_READ, ANSWERS_SAVED, JURY_SAID, *MENDING)
LABELS_EXPORTED, JUDGE_SHOWN = "labels exported", "judge shown"
READER_CHOSEN, VERDICTS_SEEN, PRACTISED = "reader chosen", "verdicts seen", "practised"
SIGNED_IN, SIGNED_OUT, SIGN_IN_REFUSED = "signed in", "signed out", "sign-in refused"
IDLE = (
    *(LABELS_EXPORTED, JUDGE_SHOWN, READER_CHOSEN, VERDICTS_SEEN, PRACTISED),
    *(PART_IMPORTED, SIGNED_IN, SIGNED_OUT, SIGN_IN_REFUSED),
)
"""The acts that leave the study as it is: somebody took something out of it, looked, came or went; and of a large file the end alone counts."""

MIN_POINTS, MAX_POINTS = -10, 10
MOST_POINTS = 1_000
"""Of a criterion of HealthBench Professional, whose points are not held to -10..10: what the database takes."""
PROFESSIONAL = "professional"
TASK_TAGS = ("use_case", "type", "difficulty", "specialty")
AXES = ("accuracy", "completeness", "context_awareness", "communication_quality", "instruction_following")


class Message(msgspec.Struct, frozen=True, gc=False):
    """One turn of a conversation."""

    role: str
    content: str


def tag(tags: tuple[str, ...], kind: str) -> str | None:
    """The value of the first tag of a kind."""
    return next((tag.partition(":")[2] for tag in tags if tag.startswith(kind + ":")), None)


class Criterion(msgspec.Struct, frozen=True, gc=False):
    """One line of a rubric.

    Points are -10..10 (of HealthBench Professional also beyond) without 0, negative for undesirable; where the source gives none (a row of a
    meta-evaluation), it can be read and is never scored. Tags stand in the source's order, e.g. `level:cluster`, `cluster:...`, `axis:accuracy`.
    """

    text: str
    points: int | None
    tags: tuple[str, ...] = ()


class Example(msgspec.Struct, frozen=True):
    """A conversation that ends with the user's turn, with its rubric. `provisional`: known only from a result on it, so it may be incomplete."""

    prompt_id: str
    messages: tuple[Message, ...]
    rubric: tuple[Criterion, ...]
    tags: tuple[str, ...] = ()
    subsets: frozenset[str] = frozenset()
    ideal_completions: str | None = None
    canary: str | None = None
    provisional: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One rater's label on one item. Never edited; a newer one supersedes it.

    Attributes:
        criterion_id, response_id: No criterion: acuity, of the response or, without a response, of the case.
        label: None takes an earlier verdict of the same rater and stage back.
        confidence: In [0, 1].
        cause, severity, error_kind: Of the judge's error, where the verdict differs from the judge's.
        inclusion_probability: With which probability the item was drawn, in (0, 1].
        blinded: Whether the rater saw the judge's verdict (False) or not (True); None for judges.
        not_blind: None where it is, and for what is no first or open read.
    """

    example_id: int
    response_id: int | None
    criterion_id: int | None
    rater_id: int
    stage: Stage
    label: Label | Acuity | None
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
    reason: CannotReason | None = None
    error_kind: ErrorKind | None = None
    conflict_cause: ConflictCause | None = None
    guideline_version: int | None = None
    not_blind: NotBlind | None = None


STREAK = 25


class RunKind(StrEnum):
    """What a run asks for: a model's answers to examples or to cases of triage, or a judge's verdicts on responses."""

    RESPOND = "respond"
    TRIAGE = "triage"
    JUDGE = "judge"


class RunState(StrEnum):
    """How far a run is. Whether anybody works on it now is told by its workers, not by this."""

    OPEN = "open"
    STOPPED = "stopped"
    """Somebody, or a rule (too many failures in a row, the cost reached), has stopped it; it can be started again."""
    DONE = "done"


class Outcome(StrEnum):
    """What came of one call."""

    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    """A reply came, and it cannot be read as what was asked for."""
    REFUSED = "refused"
    REJECTED = "rejected"
    """The server says that the question itself is wrong (400 and its like): retrying will not help."""
    UNREACHABLE = "unreachable"
    """No whole reply after all tries: transport errors, 408, 409, 429, 5xx."""


def repeat_version(prompt_version: str, repeat: int) -> str:
    """The prompt_version of the rater that gives a judge's repeat: each repeat is a rater of its own, the first is the judge itself."""
    return prompt_version if repeat == 0 else f"{prompt_version}{REPEAT}{repeat + 1}"


def version_and_repeat(version: str) -> tuple[str, int]:
    """The judge's own prompt_version, and which repeat a rater is: `repeat_version` backwards."""
    own, sign, number = version.rpartition(REPEAT)
    return (own, int(number) - 1) if sign and number.isdecimal() else (version, 0)

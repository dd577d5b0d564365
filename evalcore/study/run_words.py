"""The words of runs as checked types: what is asked of whom, and what came of it."""

import hashlib
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from evalcore.study.schema import REPEAT, Message


class RunKind(StrEnum):
    """What a run asks for."""

    RESPOND = "respond"
    """A model's answers to the examples of a data set."""
    TRIAGE = "triage"
    """A model's answers to cases of triage, in one format or both."""
    JUDGE = "judge"
    """A judge's verdict on each criterion of each response, or on the level of care that a response to a case recommends."""


class RunState(StrEnum):
    """How far a run is. Whether anybody works on it now is told by its workers, not by this."""

    OPEN = "open"
    """Questions are left to ask."""
    STOPPED = "stopped"
    """Somebody, or a rule (too many failures in a row, the cost reached), has stopped it; it can be started again."""
    DONE = "done"
    """Every question is answered or has failed."""


class Outcome(StrEnum):
    """What came of one call."""

    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    """A reply came, and it cannot be read as what was asked for."""
    REFUSED = "refused"
    """The model declined to answer."""
    REJECTED = "rejected"
    """The server says that the question itself is wrong (400 and its like): asking again is of no use."""
    UNREACHABLE = "unreachable"
    """No whole reply after all tries: transport errors, 408, 409, 429, 5xx."""


def is_address(value: object) -> bool:
    """Whether a server of models can be at this base URL: without user name, password, query and the end that is put on it; of a host that could be one."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_plain = parts.username is None and parts.password is None and not parts.fragment and "?" not in value
    return is_whole and is_plain and not parts.path.rstrip("/").endswith("/chat/completions")


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is reached and asked. Holds no key: only the name of the environment variable that has it.

    Attributes:
        base_url: Up to and without /chat/completions, e.g. http://127.0.0.1:8000/v1; no user name or password in it.
        temperature, max_tokens: As the API takes them; None: not sent.
        price_in, price_out: US dollars for a million tokens of the question and of the answer; None: unknown.
        family: Of the model, for self-preference; None: the study's own table of families tells.
        key_variable: Name of the environment variable with the key; None: none is sent.
        structured: Whether the server takes a JSON schema as response_format; None: it is tried, and left out after a 400 that names it.
        timeout_seconds: For one reply, from the first byte sent to the last byte read.
    """

    name: str
    base_url: str
    api_model: str
    temperature: float | None = None
    max_tokens: int | None = None
    price_in: float | None = None
    price_out: float | None = None
    family: str | None = None
    key_variable: str | None = None
    structured: bool | None = None
    timeout_seconds: float = 120.0

    @property
    def asked_how(self) -> tuple[str, float | None, int | None]:
        """What decides about the answers: two runs that differ in it are of two models. A server that has moved is the same."""
        return self.api_model, self.temperature, self.max_tokens

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """US dollars of one call; None where a price or a count is unknown.

        >>> ModelSettings(name="m", base_url="u", api_model="m", price_in=2.0, price_out=8.0).cost(1_000_000, 500_000)
        6.0
        """
        if None in (self.price_in, self.price_out, prompt_tokens, completion_tokens):
            return None
        return (self.price_in * prompt_tokens + self.price_out * completion_tokens) / 1_000_000  # type: ignore[operator]


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks, whole: its fingerprint names the run, so that starting the same again goes on with it.

    Attributes:
        model: Who is asked: the model, or the judge.
        prompt_version: Of the prompt, as `prompts` gives it.
        dataset: Whose examples (respond), or whose responses (judge), e.g. healthbench; `schema.CASES` for cases of triage.
        of_models: Whose responses are judged, sorted; empty: of all models.
        formats: Of cases of triage (`schema.Format`), sorted.
        n_samples: Answers to each example and format, numbered from 0.
        n_repeats: Verdicts of the judge on each item, each as a rater of its own.
        limit: At most so many questions; None: all.
    """

    kind: RunKind
    model: ModelSettings
    prompt_version: str
    with_points: bool = True
    with_confidence: bool = False
    dataset: str
    of_models: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    n_samples: int = 1
    n_repeats: int = 1
    limit: int | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of it, except what changes no answer: address, prices, family, time limits, the name of the key's variable."""
        model = (self.model.name, *self.model.asked_how)
        rest = (
            self.kind, self.prompt_version, self.with_points, self.with_confidence, self.dataset, self.of_models, self.formats, self.n_samples,
            self.n_repeats, self.limit,
        )  # fmt: skip
        return hashlib.sha256(msgspec.json.encode((model, rest))).hexdigest()


def repeat_version(prompt_version: str, repeat: int) -> str:
    """The prompt_version of the rater that gives a judge's repeat: each repeat is a rater of its own, the first is the judge itself.

    >>> repeat_version("judge@1a2b3c4d", 0), repeat_version("judge@1a2b3c4d", 1)
    ('judge@1a2b3c4d', 'judge@1a2b3c4d#2')
    """
    return prompt_version if repeat == 0 else f"{prompt_version}{REPEAT}{repeat + 1}"


def version_and_repeat(version: str) -> tuple[str, int]:
    """The judge's own prompt_version, and which repeat a rater is: `repeat_version` backwards.

    >>> version_and_repeat("judge@1a2b3c4d"), version_and_repeat("judge@1a2b3c4d#2")
    (('judge@1a2b3c4d', 0), ('judge@1a2b3c4d', 1))
    """
    own, sign, number = version.rpartition(REPEAT)
    return (own, int(number) - 1) if sign and number.isdecimal() else (version, 0)


class Question(msgspec.Struct, frozen=True, gc=False):
    """One thing that is asked of the model, as its row holds it.

    A judge is asked on a response and a criterion, or without one on the level of care; repeats of its verdict count from 0. Answers to cases
    of triage have a format (`schema.Format`).
    """

    question_id: int
    example_id: int
    response_id: int | None = None
    criterion_id: int | None = None
    format: str = ""
    sample_index: int = 0
    repeat: int = 0


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A whole reply of a model: its tokens as the server counts them, why it ended ("stop", "length", ...), and in how many tries and seconds."""

    text: str
    status: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str | None = None
    attempts: int = 1
    seconds: float = 0.0


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of one question: what is written down of it.

    Attributes:
        status: Of the last HTTP reply; None where there was none.
        error: Why there is no answer, one sentence, or `CUT_OFF`; None where there is a whole one.
        reply: The raw reply where no answer came of it, at most `MAX_RAW` characters.
    """

    question_id: int
    outcome: Outcome
    status: int | None = None
    error: str | None = None
    reply: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    attempts: int = 1
    seconds: float = 0.0


class ChatRequest(msgspec.Struct, frozen=True, gc=False):
    """What is sent: messages, oldest first, and the JSON schema of the answer where one is asked for."""

    messages: tuple[Message, ...]
    schema: dict[str, object] | None = None
    schema_name: str = "answer"


MAX_RAW = 20_000
"""Characters of a raw reply that are kept."""
CUT_OFF = "the answer was cut off at its longest"
"""What is said of a model's answer that is kept and not whole; a judge's reply that can be read is whole."""
WAS_STOPPED = "the run was stopped"
"""Why a worker ends that was told to."""
STREAK = 25
"""Failures in a row that stop a run, where nobody has said otherwise."""
LAST_ONE = ", the last one: "
"""In the reason of such a stop what follows may hold a judge's words: leads alone read it, and the audit trail goes without."""
ANSWERS_SAVED, RUN_STARTED, RUN_STOPPED, RUN_RETRIED = "answers saved", "run started", "run stopped", "run retried"
"""The acts of runs in the audit trail; the first brings verdicts or responses."""

"""What a run asks, of whom, and what came of it, as checked types."""

import hashlib
import re
from typing import Annotated, NoReturn
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from evalcore.errors import RunRefused
from evalcore.judges.splits import MadeWith
from evalcore.study.schema import Message, Outcome, RunKind

MAX_RAW = 20_000  # characters of a raw reply that are kept
CUT_OFF = "the answer was cut off at its longest"  # of a model's, which is kept; a judge's that can be read is whole
WAS_STOPPED = "the run was stopped"  # why a worker ends that was told to
LAST_ONE = ", the last one: "  # what follows may hold a judge's words: leads alone read it, and the trail goes without
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
LONGEST_WORDS = 200
LATER = ("own", "made_with")  # what runs could not say at first
Words = Annotated[str, Meta(min_length=1, max_length=LONGEST_WORDS, pattern=r"^\S([^\x00-\x1f\x7f]*\S)?$")]
Price = Annotated[float, Meta(ge=0, le=1e9)]


def refuse(sentence: str) -> NoReturn:
    """Raise RunRefused; without the cause, which may quote a key."""
    raise RunRefused(sentence) from None


def storable(text: str) -> str:
    r"""A text as both databases take it: U+FFFD for NUL, which PostgreSQL refuses, and for half of a surrogate pair, which no UTF-8 has.

    >>> storable("half \ud83d and \x00")
    'half � and �'
    """
    return _UNSTORABLE.sub("\ufffd", text)


def is_address(value: object) -> bool:
    """Whether a server of models can be at this base URL: without user name, password, query and the end that is put on it; of a host that could be one."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    is_plain = parts.username is None and parts.password is None and not parts.fragment and "?" not in value
    is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return is_whole and is_plain and not parts.path.rstrip("/").endswith("/chat/completions")


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is reached and asked, as files of models say it. Holds no key: only the name of the environment variable that has it.

    `base_url`: up to and without /chat/completions. None: `temperature` and `max_tokens` are not sent; prices (US dollars for a million tokens) are unknown;
    the study's own table of families tells the family, for self-preference; no key is needed; a JSON schema (`structured`) is tried, and left out after a 400
    that names it. `timeout_seconds`: from the first byte sent to the last byte read.
    """

    name: str
    base_url: str
    api_model: Words
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    family: Words | None = None
    key_variable: Annotated[str, Meta(pattern="^[A-Z][A-Z0-9_]{0,99}$")] | None = None
    structured: bool | None = None
    timeout_seconds: Annotated[float, Meta(ge=0.001, le=86_400)] = 120.0

    @property
    def asked_how(self) -> tuple[str, float | None, int | None]:
        """What decides the answers: runs that differ in it are of two models. A server that has moved is the same."""
        return self.api_model, self.temperature, self.max_tokens

    @property
    def has_prices(self) -> bool:
        """Whether what a call costs can be known."""
        return None not in (self.price_in, self.price_out)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """US dollars of one call; None where a price or a count is unknown.

        >>> ModelSettings(name="m", base_url="u", api_model="m", price_in=2.0, price_out=8.0).cost(1_000_000, 500_000)
        6.0
        """
        if None in (self.price_in, self.price_out, prompt_tokens, completion_tokens):
            return None
        return (self.price_in * prompt_tokens + self.price_out * completion_tokens) / 1_000_000  # type: ignore[operator]


class OwnPrompt(msgspec.Struct, frozen=True):
    """A judge's prompt of somebody's own: its name, and the text with its fields in braces (`prompts.own_prompt`)."""

    name: str
    text: str


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks, whole: its fingerprint names the run, so that starting the same again goes on with it.

    `dataset`: whose examples (respond), or whose responses (judge), e.g. healthbench; `schema.CASES` for cases of triage. `of_models`: whose responses are
    judged, sorted; empty: of all models. `formats`: of cases of triage (`schema.Format`), sorted. `n_samples`: answers to each example and format, numbered
    from 0. `n_repeats`: verdicts of the judge on each item, each as a rater of its own. `limit`: at most so many questions; None: all. `own`: the judge's
    prompt, where it is none of Overread's. `made_with`: the sets that somebody says it was made with, on which it is not tested then; nothing proves it.
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
    own: OwnPrompt | None = None
    made_with: tuple[MadeWith, ...] = ()

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of it, except what changes no answer: address, prices, family, time limits, the name of the key's variable."""
        model = (self.model.name, *self.model.asked_how)
        rest = [getattr(self, name) for name in self.__struct_fields__ if name not in ("model", *LATER)]
        rest += [given for name in LATER if (given := getattr(self, name))]  # so that runs from before have the same
        return hashlib.sha256(msgspec.json.encode((model, rest))).hexdigest()


class Question(msgspec.Struct, frozen=True, gc=False):
    """One thing that is asked of the model, as its row holds it.

    `response_id`, `criterion_id`: of what a judge is asked; no criterion: the level of care. `format`: of an answer to a case of triage, else "".
    """

    question_id: int
    example_id: int
    response_id: int | None = None
    criterion_id: int | None = None
    format: str = ""
    sample_index: int = 0
    repeat: int = 0


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A whole reply of a model; tokens and `finish` ("stop", "length", ...) as the server says; seconds from the first try to the reply."""

    text: str
    status: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str | None = None
    attempts: int = 1
    seconds: float = 0.0


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What came of one question: what is written down of it.

    `status`: of the last HTTP reply; None where there was none. `error`: why there is no answer, one sentence, or `CUT_OFF`; None where there is a whole one.
    `reply`: the raw reply where no answer came of it, at most `MAX_RAW` characters.
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
    """What is sent: the turns, oldest first, and the JSON schema of the answer where one is asked for."""

    messages: tuple[Message, ...]
    schema: dict[str, object] | None = None
    schema_name: str = "answer"

"""What a run asks, of whom, and what came of it, as checked types; and the models that a study knows: a TOML file with one table a model."""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from evalcore.errors import RunRefused, shape_fault
from evalcore.judges.splits import MadeWith
from evalcore.settings import settings, shipped
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
    """A text as both databases take it: U+FFFD for NUL, which PostgreSQL refuses, and for half of a surrogate pair, which no UTF-8 has."""
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
        """US dollars of one call; None where a price or a count is unknown."""
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
    """One thing that is asked of the model, as its row holds it. `format`: of an answer to a case of triage, else ""; no criterion: the level of care."""

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

    `status`: of the last HTTP reply, if one came. `error`: why there is no whole answer. `reply`: as it came where it is no answer, `MAX_RAW` characters of it.
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


_SECRET = re.compile(r"key|token|secret|password|passwd|auth|bearer|credential", re.IGNORECASE)
_KEYS = ModelSettings.__struct_fields__[1:]
_PATTERNS = {
    "key_variable": "expected the name of an environment variable in capital letters, digits and underscores, and not the key itself",
    "api_model": "expected printable characters without blanks around them",
    "family": "expected printable characters without blanks around them",
}


def models_file() -> Path | None:
    """The file of models where none is named: models.toml in the present folder, else what the environment names; None: there is none."""
    here = Path("models.toml")
    return here if here.is_file() else settings().models


def example_models() -> str:
    """The file that comes with Overread, to be copied and changed."""
    return shipped("data/models.example.toml").read_text(encoding="utf-8")


def known_models(path: Path) -> dict[str, ModelSettings]:
    """The models of a file (`[models."NAME"]`), in its order. RunRefused, with file, table and key: something else; no value is quoted: it may be a key."""
    try:
        content = msgspec.toml.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        refuse(f"{path.name}: expected UTF-8")
    except msgspec.DecodeError as error:
        refuse(f"{path.name}: cannot be read as TOML: {error}")
    _check_keys(content, ["models"], f"{path.name}: ")
    tables = content.get("models", {})
    if not isinstance(tables, dict):
        refuse(f'{path.name}: models: expected tables such as [models."NAME"]')
    return {name: _model(name, table, f'{path.name}: models."{name}"') for name, table in tables.items()}


def model_named(name: str, *, path: Path | None, **options: Any) -> ModelSettings:
    """The settings of one model by the study's name: what the options (keys of the file; None: not said) say, else what the file says. RunRefused: neither.

    Where the options name another host than the file does, or the same without encryption, the file's key is not sent there: `key_variable` has to be said too.
    """
    known = known_models(path) if path is not None else {}
    chosen = {key: value for key, value in options.items() if value is not None}
    if name not in known and "base_url" not in chosen:
        place = "no file of models was named" if path is None else f"{path.name} has {', '.join(known) or 'no model'}"
        refuse(f"{name}: expected this model in a file of models, or a base URL, got neither: {place}")
    of_file = {key: getattr(known[name], key) for key in _KEYS} if name in known else {}
    model = _model(name, {key: value for key, value in of_file.items() if value is not None} | chosen, name)
    if of_file and "key_variable" not in chosen and urlsplit(model.base_url)[:2] != urlsplit(of_file["base_url"])[:2]:
        return msgspec.structs.replace(model, key_variable=None)
    return model


def key_of(settings: ModelSettings) -> str | None:
    """The key, from the environment; None where the model needs none. RunRefused: its variable is unset or empty."""
    if settings.key_variable is None:
        return None
    key = os.environ.get(settings.key_variable, "").strip()
    if not key:
        unset = f"the environment variable {settings.key_variable} is not set"
        refuse(f"{settings.name}: {unset}; it holds the key for {settings.base_url}")
    return key


def _model(name: str, table: object, place: str) -> ModelSettings:
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > LONGEST_WORDS:
        refuse(f"{place}: expected a name of 1 to {LONGEST_WORDS} printable characters")
    if isinstance(table, dict):
        _check_keys(table, _KEYS, f"{place}: ")
        table = {"name": name, "api_model": name} | table
    try:
        model = msgspec.convert(table, type=ModelSettings)
    except msgspec.ValidationError as error:
        field, colon, expected = shape_fault(error, {}).rpartition(": ")
        expected = _PATTERNS.get(field, expected) if "regex" in expected else expected
        refuse(f"{place}.{field}: {expected}" if colon else f"{place}: {expected}")
    if not is_address(model.base_url):
        such = "such as http://127.0.0.1:8000/v1, without user name, password and query"
        refuse(f"{place}.base_url: expected an address up to and without /chat/completions, {such}")
    return msgspec.structs.replace(model, base_url=model.base_url.rstrip("/"))


def _check_keys(table: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    for key in table:
        if key not in known:
            never = ". A key is never kept in this file: put it into an environment variable, and write its name as key_variable"
            refuse(f"{place}expected {', '.join(known)}, got {key}{never if _SECRET.search(key) else ''}")

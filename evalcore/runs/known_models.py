"""The models and judges that a study knows: a TOML file with one table a model. It never holds a key, only the name of the variable that has it."""

import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack
from urllib.parse import urlsplit

import msgspec

from evalcore.errors import RunRefused
from evalcore.settings import settings, shipped
from evalcore.study.run_words import ModelSettings, is_address

MODELS_FILE, EXAMPLE = "models.toml", "models.example.toml"
LONGEST_WORDS = 200
_SECRET = re.compile(r"key|token|secret|password|passwd|auth|bearer|credential", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")


class ModelOptions(TypedDict, total=False):
    """What a command can say of a model; None: not said. As in `ModelSettings`."""

    base_url: str | None
    api_model: str | None
    temperature: float | None
    max_tokens: int | None
    price_in: float | None
    price_out: float | None
    family: str | None
    key_variable: str | None
    structured: bool | None
    timeout_seconds: float | None


def usual_file() -> Path | None:
    """The file of models where none is named: models.toml in the present folder, else what the environment names; None: there is none."""
    here = Path(MODELS_FILE)
    return here if here.is_file() else settings().models


def example() -> str:
    """The file that comes with Overread, to be copied and changed."""
    return shipped(f"data/{EXAMPLE}").read_text(encoding="utf-8")


def load(path: Path) -> dict[str, ModelSettings]:
    """The models of a file, by name, in its order: `[models."NAME"]`, with the keys of `ModelSettings`.

    `base_url` has to be there; `api_model` is the name where it is not; what else is left out keeps its default.

    Raises:
        RunRefused: The file cannot be read, is no TOML, or holds something else; with file, table and key. No value is quoted: it may be a key.
    """
    tables = _tables(path)
    return {name: _model(name, table, f'{path.name}: models."{name}"') for name, table in tables.items()}


def named(name: str, *, path: Path | None, **options: Unpack[ModelOptions]) -> ModelSettings:
    """The settings of one model: what the options say, else what the file says.

    A model that the file does not have is made from the options alone, where they say the base URL. Where they say another host than the file
    does, or the same without encryption, the file's key is not sent there: `key_variable` has to be said, too.

    Args:
        name: As the study calls the model.
        path: The file; None: there is none.

    Raises:
        RunRefused: As `load`; or nobody says where the model is.
    """
    known = load(path) if path is not None else {}
    said: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    if name not in known and "base_url" not in said:
        place = "no file of models was named" if path is None else f"{path.name} has {_listed(known)}"
        msg = f"{name}: nobody says where this model is: {place}, expected it there, or a base URL"
        raise RunRefused(msg)
    table: dict[str, Any] = {}
    if name in known:
        table = {key: getattr(known[name], key) for key in _READ if getattr(known[name], key) is not None}
    found = _model(name, table | said, name)
    if name in known and "key_variable" not in said and _server(found) != _server(known[name]):
        found = msgspec.structs.replace(found, key_variable=None)
    return found


def _server(settings: ModelSettings) -> tuple[str, str]:
    """Which server it is, and whether what is sent to it is encrypted."""
    return urlsplit(settings.base_url)[:2]


def key_of(settings: ModelSettings) -> str | None:
    """The key, from the environment; None where the model needs none.

    Raises:
        RunRefused: The variable is not set, or is empty.
    """
    if settings.key_variable is None:
        return None
    key = os.environ.get(settings.key_variable, "").strip()
    if not key:
        msg = f"{settings.name}: the environment variable {settings.key_variable} is not set; it holds the key for {settings.base_url}"
        raise RunRefused(msg)
    return key


def _listed(known: dict[str, ModelSettings]) -> str:
    return ", ".join(known) or "no model"


def _tables(path: Path) -> dict[str, dict[str, Any]]:
    try:
        said = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise RunRefused(msg) from None
    except UnicodeDecodeError:
        msg = f"{path.name}: it is not in UTF-8"
        raise RunRefused(msg) from None
    except tomllib.TOMLDecodeError as error:
        msg = f"{path.name}: no TOML: {error}"
        raise RunRefused(msg) from None
    for key in said:
        if key != "models":
            _refuse(f"{path.name}: {key}", key, ["models"])
    tables = said.get("models", {})
    if not isinstance(tables, dict):
        msg = f'{path.name}: models: {_kind(tables)} came, expected tables such as [models."NAME"]'
        raise RunRefused(msg)
    return tables


def _model(name: str, table: object, place: str) -> ModelSettings:
    if not name.strip() or name != name.strip() or not name.isprintable() or len(name) > LONGEST_WORDS:
        msg = f"{place}: expected a name of 1 to {LONGEST_WORDS} printable characters"
        raise RunRefused(msg)
    if not isinstance(table, dict):
        msg = f"{place}: {_kind(table)} came, expected a table with base_url"
        raise RunRefused(msg)
    found: dict[str, Any] = {"api_model": name}
    for key, value in table.items():
        if key not in _READ:
            _refuse(f"{place}.{key}", key, _READ)
        is_right, expected = _READ[key]
        if not is_right(value):
            came = _kind(value)
            msg = f"{place}.{key}: {came} came, expected {expected}"
            raise RunRefused(msg)
        found[key] = value
    if "base_url" not in found:
        msg = f"{place}: base_url is missing, expected {_READ['base_url'][1]}"
        raise RunRefused(msg)
    found["base_url"] = found["base_url"].rstrip("/")
    return ModelSettings(name=name, **found)


def _refuse(place: str, key: str, known: Iterable[str]) -> NoReturn:
    msg = f"{place}: it is not known, expected {', '.join(known)}"
    if _SECRET.search(key):
        msg += ". A key is never kept in this file: put it into an environment variable, and write its name as key_variable"
    raise RunRefused(msg)


def _kind(value: object) -> str:
    kinds = {
        str: "a string",
        bool: "true or false",
        int: "a number",
        float: "a number",
        dict: "a table",
        list: "a list",
    }
    return kinds.get(type(value), "a date or time")


def _is_words(value: object) -> bool:
    return isinstance(value, str) and value == value.strip() and 0 < len(value) <= LONGEST_WORDS and value.isprintable()


def _is_number(value: object, *, lowest: float, highest: float = math.inf) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and lowest <= value <= highest  # type: ignore[arg-type, operator]


_PRICE = (lambda value: _is_number(value, lowest=0), "US dollars for a million tokens, 0 or more")
_READ: dict[str, tuple[Callable[[object], bool], str]] = {
    "base_url": (
        is_address,
        "an address up to and without /chat/completions, such as http://127.0.0.1:8000/v1, without user name, password and query",
    ),
    "api_model": (_is_words, f"the name that the server knows, at most {LONGEST_WORDS} characters"),
    "temperature": (lambda value: _is_number(value, lowest=0, highest=2), "a number from 0 to 2"),
    "max_tokens": (
        lambda value: isinstance(value, int) and _is_number(value, lowest=1, highest=10_000_000),
        "a whole number from 1",
    ),
    "price_in": _PRICE,
    "price_out": _PRICE,
    "family": (_is_words, f"a word or more, at most {LONGEST_WORDS} characters"),
    "key_variable": (
        lambda value: isinstance(value, str) and bool(_VARIABLE.fullmatch(value)),
        "the name of an environment variable in capital letters, digits and underscores, and not the key itself",
    ),
    "structured": (lambda value: isinstance(value, bool), "true or false"),
    "timeout_seconds": (lambda value: _is_number(value, lowest=0.001, highest=86_400), "seconds, up to 86400"),
}
"""The keys of a table: whether a value is right, and what is."""

"""The models and judges that a study knows: a TOML file with one table a model. It never holds a key, only the name of the variable that has it."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from evalcore.errors import shape_fault
from evalcore.runs.spec import LONGEST_WORDS, ModelSettings, is_address, refuse
from evalcore.settings import settings, shipped

MODELS_FILE, EXAMPLE = "models.toml", "models.example.toml"
_SECRET = re.compile(r"key|token|secret|password|passwd|auth|bearer|credential", re.IGNORECASE)

_KEYS = ModelSettings.__struct_fields__[1:]
_PATTERNS = {
    "key_variable": "expected the name of an environment variable in capital letters, digits and underscores, and not the key itself",
    "api_model": "expected printable characters without blanks around them",
    "family": "expected printable characters without blanks around them",
}


def usual_file() -> Path | None:
    """The file of models where none is named: models.toml in the present folder, else what the environment names; None: there is none."""
    here = Path(MODELS_FILE)
    return here if here.is_file() else settings().models


def example() -> str:
    """The file that comes with Overread, to be copied and changed."""
    return shipped(f"data/{EXAMPLE}").read_text(encoding="utf-8")


def load(path: Path) -> dict[str, ModelSettings]:
    """The models of a file, by name, in its order: `[models."NAME"]`, with the keys of `ModelSettings`; `api_model` is the name where it is not there.

    RunRefused, with file, table and key: it cannot be read, is no TOML, or holds something else. No value is quoted: it may be a key.
    """
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


def named(name: str, *, path: Path | None, **options: Any) -> ModelSettings:
    """The settings of one model, by the study's name: what the options (keys of the file; None: not said) say, else what the file says.

    A model that the file does not have is made from the options alone, where they say the base URL. Where they say another host than the file does, or the
    same without encryption, the file's key is not sent there: `key_variable` has to be said, too. RunRefused: as `load`; or nobody says where the model is.
    """
    known = load(path) if path is not None else {}
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

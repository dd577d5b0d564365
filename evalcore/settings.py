"""Environment variables, typed. Every one begins with OVERREAD_."""

import os
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "OVERREAD_"


class Settings(BaseSettings):
    """What the environment may set.

    Attributes:
        db: A database URL, or the path of a SQLite file.
        models: The TOML file of the models that runs can ask, where there is no models.toml in the present folder.
        trail: A file, best on another machine, to which the last hash of each act is appended; one file a study.
        allowed_hosts: Names, separated by commas, under which a tunnel or a proxy serves the dashboard, beside this machine's own.
        acting_as: Name of the person as whom commands act; None: as the administrator. `overread --as NAME` says it as well.
        read_ahead: Whether the dashboard reads the whole study as soon as a lead or a researcher opens it.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    db: str = "overread.db"
    healthbench_url: str = "https://openaipublic.blob.core.windows.net/simple-evals/healthbench"
    models: Path | None = None
    trail: Path | None = None
    max_line_bytes: int = Field(default=16 * 1024 * 1024, gt=0)
    allowed_hosts: str = ""
    acting_as: str | None = None
    read_ahead: bool = False


def settings() -> Settings:
    """The settings of the present environment; read anew only where a variable of ours has changed, since checking takes a millisecond."""
    ours = [(name, value) for name, value in os.environ.items() if name.upper().startswith(PREFIX)]
    return _checked(frozenset(ours))


@lru_cache(maxsize=1)
def _checked(_environment: frozenset[tuple[str, str]]) -> Settings:
    return Settings()


def shipped(name: str) -> Path:
    """A file or folder of the checkout's root: inside the installed package, else beside it."""
    packaged = Path(str(files("evalcore") / "_app" / name))
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / name

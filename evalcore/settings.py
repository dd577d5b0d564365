"""Environment variables, typed. Every one begins with OVERREAD_."""

import os
import sys
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

PREFIX = "OVERREAD_"


class Settings(BaseModel):
    """What the environment may set.

    Attributes:
        db: A database URL, or the path of a SQLite file.
        healthbench_url: From where `overread download healthbench` fetches the official files.
        models: The TOML file of the models that runs can ask, where there is no models.toml in the present folder.
        cache: The folder of snapshots of verdicts, where not beside a SQLite file or, for PostgreSQL, in the user's cache.
        trail: A file, best on another machine, to which the last hash of each act is appended; one file a study.
        max_line_bytes: The longest line of a file that is imported.
        allowed_hosts: Names, separated by commas, under which a tunnel or a proxy serves the dashboard, beside this machine's own.
        acting_as: Name of the person as whom commands act; None: as the administrator. `overread --as NAME` says it as well.
        read_ahead: Whether the dashboard reads the whole study as soon as a lead or a researcher opens it, or at its start where that is large.
        public_url: Where browsers reach this server. People sign in where this and the next three are set.
        oidc_issuer, oidc_client_id, oidc_client_secret: The OpenID Connect provider, and what this server is to it.
        oidc_client_secret_file: A file that holds the secret, instead.
        oidc_scopes: What the provider is asked for.
        oidc_groups_claim: The claim in which it names groups.
        oidc_sign_out: Whether who signs out is led on to the provider's own sign-out, where it has one.
        allowed_domains: Domains of e-mail addresses, separated by commas; who else signs in is refused.
        allowed_groups: Groups, separated by commas; who else signs in is refused.
        group_roles: Roles that groups have, such as `readers=reviewer, leads=lead+researcher`, on a server with one study; with several the file has them.
        idle_minutes: How long a session lasts without a press.
        session_hours: How long a session lasts at all.
        studies: The TOML file of a server's studies; None: the one of `db`.
    """

    model_config = ConfigDict(frozen=True)

    db: str = "overread.db"
    healthbench_url: str = "https://openaipublic.blob.core.windows.net/simple-evals/healthbench"
    models: Path | None = None
    cache: Path | None = None
    trail: Path | None = None
    max_line_bytes: int = Field(default=16 * 1024 * 1024, gt=0)
    allowed_hosts: str = ""
    acting_as: str | None = None
    read_ahead: bool = False
    public_url: str = ""
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_client_secret_file: Path | None = None
    oidc_scopes: str = "openid profile email"
    oidc_groups_claim: str = "groups"
    oidc_sign_out: bool = True
    allowed_domains: str = ""
    allowed_groups: str = ""
    group_roles: str = ""
    idle_minutes: float = Field(default=30, gt=0)
    session_hours: float = Field(default=10, gt=0)
    studies: Path | None = None


def settings() -> Settings:
    """The settings of the present environment; read anew only where a variable of ours has changed, since checking takes a millisecond."""
    named = ((name.upper(), value) for name, value in os.environ.items())
    return _checked(frozenset((name.removeprefix(PREFIX), value) for name, value in named if name.startswith(PREFIX)))


@lru_cache(maxsize=1)
def _checked(said: frozenset[tuple[str, str]]) -> Settings:
    return Settings.model_validate({name.lower(): value for name, value in said})


def shipped(name: str) -> Path:
    """A file or folder of the checkout's root: inside the installed package, else beside it."""
    packaged = Path(str(files("evalcore") / "_app" / name))
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / name


def started_again(*what: str) -> tuple[list[str], dict[str, str]]:
    """A command that starts Python again with this program in reach, such as `-m evalcore`, and its environment."""
    environment, checkout = dict(os.environ), Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").exists():  # the program runs as it lies there, and may not be installed
        path = [str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
    # -P: no file of the present folder is taken for ours
    return [sys.executable, "-P", *what], environment

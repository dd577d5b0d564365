"""The studies of a server, each a database of its own: from a TOML file that may grow while the server runs, or the one of OVERREAD_DB."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from evalcore.errors import refuse
from evalcore.settings import settings
from evalcore.study.db import connect
from evalcore.team.people import Groups
from evalcore.team.provider import roles_of

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PAGES = ("review", "my_reads", "browse", "adjudicate", "models", "judges", "triage", "calibration", "overview")
_MORE = ("study", "export", "audit", "static", "media", "component", "reader", "healthz", "readyz")
RESERVED = frozenset({*_PAGES, *_MORE, "sign-in", "sign-out", "signed-out", "invitation"})


class Study(msgspec.Struct, frozen=True):
    """One study of a server; `name` is the first part of its addresses, empty where the server has one study alone."""

    name: str
    db: str
    title: str = ""
    groups: Groups = msgspec.field(default_factory=dict)

    @property
    def prefix(self) -> str:
        """What its addresses begin with."""
        return f"/{self.name}" if self.name else ""


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    db: str
    title: str = ""
    groups: dict[str, list[str]] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    studies: dict[str, _Entry]
    sign_ins: str = ""


def studies() -> Mapping[str, Study]:
    """The studies by name, in the order of the file; one without a name where there is no file."""
    path = settings().studies
    if path is None:
        return {"": Study("", settings().db, groups=group_roles(settings().group_roles))}
    return _read(path, _written(path))[0]


@lru_cache(maxsize=4)
def group_roles(said: str) -> Groups:
    """The roles of groups as OVERREAD_GROUP_ROLES has them: `GROUP=ROLE+ROLE`, divided by commas; a group's own name may hold `=`."""
    groups = {}
    for part in filter(None, map(str.strip, said.split(","))):
        group, equals, roles = part.rpartition("=")
        if not (equals and group.strip()):
            refuse(f"OVERREAD_GROUP_ROLES: expected GROUP=ROLE+ROLE, got {part[:60]!r}")
        groups[group.strip()] = roles_of(map(str.strip, roles.split("+")), where="OVERREAD_GROUP_ROLES")
    return groups


def sign_ins() -> str:
    """The database that keeps the sessions of all: the first study's, unless the file names another."""
    path = settings().studies
    return settings().db if path is None else _read(path, _written(path))[1]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        refuse(f"OVERREAD_STUDIES: {path} cannot be read: {error.strerror}")


@lru_cache(maxsize=4)
def _read(path: Path, _written: int) -> tuple[Mapping[str, Study], str]:
    try:
        said = msgspec.toml.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        refuse(f"{path}: expected a table [studies.NAME] with db for each study, got: {error}")
    if not said.studies:
        refuse(f"{path}: expected at least one study, got none")
    named = {}
    for name, entry in said.studies.items():
        _check_name(name)
        groups = {group: roles_of(roles, where=f"{path}: groups of {name}") for group, roles in entry.groups.items()}
        named[name] = Study(name, entry.db, entry.title or name, groups)
    twice = [name for name, study in named.items() if [one.db for one in named.values()].count(study.db) > 1]
    if twice:
        refuse(f"{path}: expected a database of its own for each study, got one for {' and '.join(twice)}")
    return named, said.sign_ins or next(iter(named.values())).db


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        msg = f"studies: expected a name of small letters, digits and hyphens that is no page of Overread, got {name[:60]!r}"
        refuse(msg)


def add(path: Path, name: str, *, db: str, title: str) -> None:
    """Write one more study at the end of the file, which is made where there is none."""
    _check_name(name)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before and name in _read(path, _written(path))[0]:
        refuse(f"{path}: expected a new name, got {name}, which is there already")
    entry = f"[studies.{name}]\ntitle = {json.dumps(title or name)}\ndb = {json.dumps(db)}\n"
    whole = f"{before.rstrip()}\n\n{entry}" if before.strip() else entry
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(whole, encoding="utf-8")
    try:
        _read.__wrapped__(unfinished, 0)
        unfinished.chmod(0o600)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def review_link(base: str, location: str | None) -> str:
    """The address at which whoever is let in reads what waits for them. `location`: of the study's database, on a server that lists several."""
    return f"{base.rstrip('/')}{'' if location is None else _prefix(location)}/review"


def invitation_link(public_url: str, location: str, token: str) -> str:
    """The address that a lead sends to somebody who is invited to the study of this database."""
    return f"{public_url}{_prefix(location)}/invitation/{token}"


def _prefix(location: str) -> str:
    place = connect(location).url
    prefix = next((study.prefix for study in studies().values() if connect(study.db).url == place), None)
    if prefix is None:
        refuse("The server does not list this database as a study: overread studies add.")
    return prefix

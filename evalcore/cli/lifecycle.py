"""Freeze a study, open it again as an amendment, delete it for good."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, prompt

from evalcore.cli.console import Db, Json, actor, print_json, say, study
from evalcore.errors import refuse
from evalcore.settings import settings
from evalcore.study.db import reading

HELD = {
    "example": "conversations",
    "response": "responses",
    "verdict": "verdicts",
    "person": "people",
    "audit_event": "acts in its trail",
}


def freeze(db: Db = None) -> None:
    """Freeze the study: nothing of it is changed any more; exports, methods and bundle carry the hash and the stated analysis."""
    from evalcore.study import freezing

    with study(db) as engine:
        say(freezing.freeze(engine, actor=actor(engine)).sentence)


def amend(
    name: Annotated[str, Argument(help="Of the amendment: a new one.")],
    reason: Annotated[str, Option(help="Why: exports and the methods tell it.")],
    db: Db = None,
) -> None:
    """Open a frozen study again, as an amendment with a name and a reason."""
    from evalcore.study import freezing

    with study(db) as engine:
        say(freezing.amend(engine, name, reason, actor=actor(engine)).sentence)


def versions(db: Db = None, as_json: Json = False) -> None:
    """List the versions that were frozen, oldest first.

    With --json a list: name, frozen_at, frozen_by, hash (for `audit verify --expect`), n_events, analysis (version of the stated one, or null); reopened_at,
    reopened_by, amendment and reason where it was opened again.
    """
    from dataclasses import asdict

    from evalcore.study import freezing

    with study(db) as engine, reading(engine) as session:
        found = freezing.versions(session)
    if as_json:
        print_json([asdict(version) for version in found])
    else:
        say(*(freezing.sentences(found) or ["Nothing was frozen: overread freeze"]))


def delete_study(
    certificate: Annotated[
        Path | None,
        Option(help="A new JSON file: what was deleted. Default: deleted-NAME-DATE.json here.", show_default=False),
    ] = None,
    yes_delete: Annotated[
        str | None, Option("--yes-delete", metavar="NAME", help="For scripts: the study's name; nothing is asked.")
    ] = None,
    db: Db = None,
) -> None:
    """Delete the study for good, and write a certificate of it: the database with all beside it, of PostgreSQL its tables. Stop the server first.

    It is asked twice. The certificate has the number of rows by table, the last hash of the audit trail, when, by whom, what was removed, and what still
    holds parts of the study: backups, exports, snapshots.
    """
    from evalcore.study import deleting
    from evalcore.study.db import connect
    from evalcore.study.tables import now

    place = connect(db or settings().db).url
    if place.drivername == "sqlite" and not Path(place.database or "").is_file():
        refuse(f"--db: expected the file of a study, got none at {place.database}. Nothing was deleted.")
    with study(db) as engine:
        name = deleting.name_of(engine)
        if yes_delete is None:
            rows = deleting.counts(engine)
            held = ", ".join(f"{rows.get(table, 0):,} {words}" for table, words in HELD.items())
            say(f"{name} holds {held}. It is deleted for good; only a copy that was made before could bring it back.")
            if prompt("Delete it? Type yes or no") != "yes":
                say("Nothing was deleted.")
                return
        typed = yes_delete if yes_delete is not None else prompt(f"Type its name, {name}")
        path = certificate or Path(f"deleted-{name}-{now():%Y-%m-%d}.json")
        also = [] if settings().studies else deleting.uploads()
        told = deleting.delete(engine, typed, path, actor=actor(engine), also=also)
    say(f"{name} is deleted: {path}", "Still held elsewhere:", *(f"  {sentence}" for sentence in told["still_held"]))
    if settings().studies:
        say(f"Its entry in {settings().studies} is still there: take it out.")

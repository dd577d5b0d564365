"""Mend a study by the command line: take back an import, mark a response as broken, change names; freeze it, amend it, delete it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, prompt

from evalcore.cli import console
from evalcore.errors import refuse
from evalcore.settings import settings
from evalcore.stats.wording import listed
from evalcore.study import deleting, freezing
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import connect, reading
from evalcore.study.frames import records
from evalcore.study.schema import Broken
from evalcore.study.tables import now

if TYPE_CHECKING:
    import pandas as pd

NUMBER = "The number of an import; `overread imports` lists them."
WHY = f"Why it is no answer: {', '.join(Broken)}."
NAMED = {
    "import_id": "Import", "file": "File", "format": "Format", "imported_by": "Imported by", "imported_at": "Imported", "n_examples": "Examples",
    "n_responses": "Responses", "n_verdicts": "Verdicts", "withdrawn_at": "Withdrawn", "withdrawn_by": "By", "reason": "Why",
}  # fmt: skip
BROKEN = {
    "response_id": "Response", "prompt_id": "Example", "model": "Model", "evaluation": "Evaluation", "sample_index": "Sample", "reason": "Why",
    "marked_by": "Marked by", "marked_at": "Marked",
}  # fmt: skip


def imports(db: console.Db = None, as_json: console.Json = False) -> None:
    """List the imports, newest first, with what each brought, and those that were withdrawn."""
    with console.study(db) as engine, reading(engine) as session:
        _list(mending.imports(session), NAMED, as_json=as_json)


def withdraw(
    import_id: Annotated[int, Argument(help=NUMBER)],
    reason: Annotated[str, Option(help="Why; kept in the audit trail.", show_default=False)] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would leave the study, and change nothing.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Take an import back: all that came with it leaves every screen, number and export. Nothing is deleted."""
    with console.study(db) as engine:
        actor = console.actor(engine)
        tried = mending.preview(engine, import_id, actor=actor) if dry_run else None
        effect = tried or mending.withdraw(engine, import_id, reason=reason, actor=actor)
    _tell(effect, "would leave the study" if dry_run else "left the study", as_json=as_json)


def restore_import(
    import_id: Annotated[int, Argument(help=NUMBER)], db: console.Db = None, as_json: console.Json = False
) -> None:
    """Bring a withdrawn import back, with all that was done on it. --json: as of `withdraw`."""
    with console.study(db) as engine:
        effect = mending.restore(engine, import_id, actor=console.actor(engine))
    _tell(effect, "came back", as_json=as_json)


def _tell(effect: mending.Effect, did: str, *, as_json: bool) -> None:
    parts, kept = effect.parts(), effect.of_physicians and did != "came back"
    console.tell(
        effect._asdict(),
        f"{listed(parts)} {did}." if parts else f"Nothing {did}.",
        "What physicians did is kept, and comes back when the import is restored." if kept else "",
        as_json=as_json,
    )


def broken(db: console.Db = None, as_json: console.Json = False) -> None:
    """List the responses that are marked as broken. They are in no number."""
    with console.study(db) as engine, reading(engine) as session:
        _list(mending.broken(session), BROKEN, as_json=as_json)


def _list(found: "pd.DataFrame", titles: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        console.print_json(records(found))
    else:
        console.show({title: found[name] for name, title in titles.items()})


def mark_broken(
    response_ids: Annotated[list[int], Argument(help="The number of a response, as response_id of an export.")],
    why: Annotated[str, Option(help=WHY, show_default=False)] = "",
    undo: Annotated[bool, Option("--undo", help="They count again.")] = False,
    db: console.Db = None,
) -> None:
    """Mark responses as broken: they leave the numbers and are counted as broken. What was said of them is kept."""
    if undo is bool(why):
        refuse(f"expected --why or --undo, got {'both' if undo else 'neither'}")
    reason = None if undo else Broken(console.one_of("--why", why, list(Broken)))
    with console.study(db) as engine:
        actor = console.actor(engine)
        for response_id in response_ids:
            mending.mark_broken(engine, response_id, reason, actor=actor)
            console.say(f"Response {response_id}: {'counts again' if undo else 'marked as broken'}.")


def rename(
    kind: Annotated[str, Argument(help=f"{', '.join(Kind)}.")],
    was: Annotated[str, Argument(help="The name that it has now; with --undo the one that it came with.")],
    name: Annotated[str | None, Argument(help="The name that it is to have.")] = None,
    merge: Annotated[bool, Option("--merge", help="It is the same as another one of that name.")] = False,
    undo: Annotated[
        bool, Option("--undo", help="Give back the name that it came with; what was merged is two again.")
    ] = False,
    db: console.Db = None,
) -> None:
    """Give a model, judge or data set another name, everywhere; the audit trail keeps both."""
    chosen = Kind(console.one_of("KIND", kind, list(Kind)))
    if undo is (name is not None):
        refuse(f"rename: expected a new name or --undo, got {'both' if undo else 'neither'}")
    with console.study(db) as engine:
        actor = console.actor(engine)
        if name is None:
            renaming.take_back(engine, chosen, was, actor=actor)
            console.say(f"The {chosen.words} {was} has its first name again.")
        else:
            renaming.rename(engine, chosen, was, name, merge=merge, actor=actor)
            console.say(f"The {chosen.words} {was} is now called {name.strip()}.")


HELD = {"example": "conversations", "response": "responses", "verdict": "verdicts", "person": "people"}


def freeze(db: console.Db = None) -> None:
    """Freeze the study: nothing of it is changed any more; exports, methods and bundle carry the hash and the stated analysis."""
    with console.study(db) as engine:
        console.say(freezing.freeze(engine, actor=console.actor(engine)).sentence)


def amend(
    name: Annotated[str, Argument(help="Of the amendment: a new one.")],
    reason: Annotated[str, Option(help="Why: exports and the methods tell it.")],
    db: console.Db = None,
) -> None:
    """Open a frozen study again, as an amendment with a name and a reason."""
    with console.study(db) as engine:
        console.say(freezing.amend(engine, name, reason, actor=console.actor(engine)).sentence)


def versions(db: console.Db = None, as_json: console.Json = False) -> None:
    """List the versions that were frozen, oldest first."""
    with console.study(db) as engine, reading(engine) as session:
        found = freezing.versions(session)
    sentences = freezing.sentences(found) or ["Nothing was frozen: overread freeze"]
    console.tell([asdict(version) for version in found], *sentences, as_json=as_json)


def delete_study(
    certificate: Annotated[
        Path | None,
        Option(help="A new JSON file: what was deleted. Default: deleted-NAME-DATE.json here.", show_default=False),
    ] = None,
    yes_delete: Annotated[
        str | None, Option("--yes-delete", metavar="NAME", help="For scripts: the study's name; nothing is asked.")
    ] = None,
    db: console.Db = None,
) -> None:
    """Delete the study for good, and write a certificate of it: the database with all beside it, of PostgreSQL its tables. Stop the server first.

    It is asked twice. The certificate has the number of rows by table, the last hash of the audit trail, when, by whom, what was removed, and what still
    holds parts of the study: backups, exports, snapshots.
    """
    place = connect(db or settings().db).url
    if place.drivername == "sqlite" and not Path(place.database or "").is_file():
        refuse(f"--db: expected the file of a study, got none at {place.database}. Nothing was deleted.")
    with console.study(db) as engine:
        name = deleting.name_of(engine)
        if yes_delete is None:
            rows = deleting.counts(engine)
            held = ", ".join(f"{rows.get(table, 0):,} {words}" for table, words in HELD.items())
            held += f", {rows.get('audit_event', 0):,} acts in its trail"
            console.say(
                f"{name} holds {held}. It is deleted for good; only a copy that was made before could bring it back."
            )
            if prompt("Delete it? Type yes or no") != "yes":
                console.say("Nothing was deleted.")
                return
        typed = yes_delete if yes_delete is not None else prompt(f"Type its name, {name}")
        path = certificate or Path(f"deleted-{name}-{now():%Y-%m-%d}.json")
        also = [] if settings().studies else deleting.uploads()
        told = deleting.delete(engine, typed, path, actor=console.actor(engine), also=also)
    console.say(f"{name} is deleted: {path}", "Still held elsewhere:", *(f"  {one}" for one in told["still_held"]))
    if settings().studies:
        console.say(f"Its entry in {settings().studies} is still there: take it out.")

"""Mend a study by the command line: take back an import, mark a response as broken, change names."""

from typing import Annotated

from typer import Argument, Option

from evalcore.cli import console
from evalcore.errors import refuse
from evalcore.stats.wording import listed
from evalcore.study.corrections import mending, renaming
from evalcore.study.corrections.renaming import Kind
from evalcore.study.db import reading
from evalcore.study.schema import Broken

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
    """List the imports, newest first, with what each brought, and those that were withdrawn.

    --json: rows with import_id, file, format, imported_by, imported_at, n_examples, n_responses and n_verdicts (that it brought, new or already known; null
    for an import from before its rows were kept), withdrawn_at, withdrawn_by, reason, keeps_rows and source_hash.
    """
    with console.study(db) as engine, reading(engine) as session:
        found = mending.imports(session)
    if as_json:
        console.print_json(console.records(found))
        return
    console.show({title: found[name] for name, title in NAMED.items()})


def withdraw(
    import_id: Annotated[int, Argument(help=NUMBER)],
    reason: Annotated[str, Option(help="Why; kept in the audit trail.", show_default=False)] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would leave the study, and change nothing.")] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Take an import back: all that came with it leaves every screen, number and export. Nothing is deleted.

    --json: n_examples, n_responses, n_judge_verdicts, n_imported_reads, n_reads (given here), n_adjudications, n_open (reads in progress), n_tasks (assigned
    items) and n_questions (of runs): how many of each are not shown any more.
    """
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
    if as_json:
        console.print_json(effect._asdict())
        return
    parts = effect.parts()
    console.say(f"{listed(parts)} {did}." if parts else f"Nothing {did}.")
    if effect.of_physicians and did != "came back":
        console.say("What physicians did is kept, and comes back when the import is restored.")


def broken(db: console.Db = None, as_json: console.Json = False) -> None:
    """List the responses that are marked as broken. They are in no number.

    --json: rows with response_id, example_id, dataset, prompt_id, model, evaluation, sample_index, reason, marked_by, marked_at.
    """
    with console.study(db) as engine, reading(engine) as session:
        found = mending.broken(session)
    if as_json:
        console.print_json(console.records(found))
        return
    console.show({title: found[name] for name, title in BROKEN.items()})


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
            if reason is None:
                mending.unmark_broken(engine, response_id, actor=actor)
            else:
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

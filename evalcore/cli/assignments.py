"""What is assigned: see how far it is, change it while it is read, freeze a queue before it is."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from evalcore.cli.console import Db, Json, actor, hidden, print_json, records, say, show, study, write_whole
from evalcore.reading import amending, assignment_queries, pace
from evalcore.reading.registering import freeze_queue
from evalcore.settings import settings
from evalcore.study.db import reading
from evalcore.study.tables import now
from evalcore.team.provider import provider
from evalcore.team.studies import review_link

app = typer.Typer(help="What is assigned to be read, and changes of it.", no_args_is_help=True)
TITLES = {"n_tasks": "items", "n_wanted": "reads wanted", "n_reads": "locked", "n_open": "begun"}
Number = Annotated[int, Argument(metavar="NUMBER", help="Of an assignment, as `overread assignments list` prints it.")]


@app.command("list")
def list_(db: Db = None, as_json: Json = False) -> None:
    """List the assignments and their readers, each with the pace of the last seven days and the days left at most.

    With --json an object of two lists: assignments (assignment_id, ask, n_readers, seed, selection, chosen_by, n_population, created_by, created_at, paused_at,
    cancelled_at, n_tasks, n_wanted, n_reads, n_open, n_skipped, readers) and readers (reader, n_reads, n_open, n_skipped, n_waiting: what they could take now,
    pace: reads a day, days).
    """
    at = now()
    with study(db) as engine, reading(engine) as session:
        made = assignment_queries.assignments(session)
        people = pace.by_reader(assignment_queries.readers(session, at), assignment_queries.locked_reads(session), at)
    if as_json:
        print_json({"assignments": records(made), "readers": records(people)})
        return
    if made.empty:
        say("Nothing is assigned yet: overread assign")
        return
    paused = made["paused_at"].notna().map({True: "paused", False: "open"})
    state = paused.mask(made["cancelled_at"].notna(), "cancelled")
    counts = {title: made[name] for name, title in TITLES.items()}
    show(
        {"number": made["assignment_id"], "question": made["ask"], **counts, "state": state, "readers": made["readers"]}
    )
    show({"reader": people["reader"], "locked": people["n_reads"], "begun": people["n_open"], "could take": people["n_waiting"],
          "a day": people["pace"].round(1), "days left": people["days"]})  # fmt: skip
    if (signing_in := provider()) is not None:
        say(f"Review, for whoever signs in: {review_link(signing_in.public_url, db or settings().db)}")


@app.command()
def cancel(
    number: Number,
    reason: Annotated[str, Option(help="A line that readers who have begun something see: no model, no judge.")],
    db: Db = None,
) -> None:
    """Ask nobody for the rest of an assignment. What is locked stays and counts; what is unread may be assigned anew."""
    with study(db) as engine:
        say(amending.cancel(engine, number, reason, actor=actor(engine)).sentence)


@app.command()
def pause(number: Number, db: Db = None) -> None:
    """Hand nothing of an assignment out until it is resumed; what is in hand may be finished."""
    with study(db) as engine:
        amending.pause(engine, number, actor=actor(engine))


@app.command()
def resume(number: Number, db: Db = None) -> None:
    """Hand a paused assignment out again."""
    with study(db) as engine:
        amending.resume(engine, number, actor=actor(engine))


@app.command("hand-over")
def hand_over(
    giver: Annotated[str, Option("--from", help="A reader; may be one whose access was removed.")],
    taker: Annotated[str, Option("--to", help="Another reader.")],
    number: Annotated[
        int | None, Option("--assignment", help="Default: each that goes on.", show_default=False)
    ] = None,
    db: Db = None,
) -> None:
    """Give what a reader has not locked to another, in the same order; nobody gets what they have read or seen verdicts on."""
    with study(db) as engine:
        say(*amending.hand_over(engine, giver, taker, number=number, actor=actor(engine)).sentences())


@app.command("add-readers")
def add_readers(
    number: Number, name: Annotated[list[str], Argument(help="One person of the study or more.")], db: Db = None
) -> None:
    """Let more people take an assignment's items. As many read each item as before."""
    with study(db) as engine:
        say(*amending.add_readers(engine, number, name, actor=actor(engine)).sentences())


@app.command()
def extend(
    number: Number,
    items: Annotated[int, Option("--items", help="How many more are drawn.")],
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would be assigned and change nothing.")] = False,
    db: Db = None,
) -> None:
    """Draw more with the filters and readers of an assignment, among what fits and is not assigned; its seed follows from the first.

    It is an assignment of its own. Estimates reckon with both as if all had been drawn at once.
    """
    with study(db) as engine:
        who = actor(engine)
        report = amending.extend(engine, number, items, blind=hidden(engine, who), actor=who, dry_run=dry_run)
    say(*report.sentences(), "Nothing was changed." if dry_run else f"Assignment {report.assignment_id}.")


@app.command()
def freeze(
    number: Number,
    file: Annotated[Path | None, Option("--file", help="Write the queue here: the hash is of this file.")] = None,
    db: Db = None,
) -> None:
    """Freeze a queue before the first read of it, to register it: print the SHA-256 of its items, order, probabilities and seed."""
    with study(db) as engine:
        kept, content = freeze_queue(engine, number, actor=actor(engine))
    if file is not None:
        write_whole(file, content)
    say(f"Assignment {number} is frozen: SHA-256 {kept.sha256}")

"""Several judges as one, by the command line."""

from typing import Annotated

import typer

from evalcore.cli.console import Db, Json, actor, err, out, print_json, study


def jury(
    name: Annotated[str, typer.Option(help="What the jury is called; that of a jury to go on with it.")],
    members: Annotated[str, typer.Option(help="Judges, joined by commas; each has one vote.")] = "",
    repeats_of: Annotated[
        str | None, typer.Option("--repeats-of", help="A judge that was asked several times: each time is a vote.")
    ] = None,
    least: Annotated[int | None, typer.Option(help="So many have to vote on an item; default: all.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be written and change nothing.")
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Give each criterion and each level of care the verdict that most judges give it, with the share of three or more votes as confidence.

    The jury is a judge like any other. Run it again when its members have labelled more: only what is new or has changed is written. An even
    split on a criterion gives no verdict; of levels the most frequent counts, of equals the more severe; who could not assess does not vote.
    With --json: name, version, members (as they vote), least; n_decided, n_split, n_too_few (items that any member labelled); n_new, n_changed,
    n_taken_back (verdicts that its members no longer give), n_unchanged; labels (how many items have each).
    """
    from evalcore.judges.juries import convene

    wanted = members.split(",")
    with study(db) as engine, err.status("Counting votes") as status:
        report = convene(
            engine,
            name,
            members=wanted,
            repeats_of=repeats_of,
            least=least,
            actor=actor(engine),
            dry_run=dry_run,
            progress=lambda last: status.update(f"Counting votes: responses up to number {last:,}"),
        )
    if as_json:
        print_json(report.as_dict())
        return
    for sentence in report.sentences():
        out.print(sentence, markup=False)
    if dry_run:
        out.print("Nothing was changed.")

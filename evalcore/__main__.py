"""The same acts from the command line. `overread` alone opens the dashboard."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table
from sqlalchemy.exc import DBAPIError

from evalcore import (
    __version__,
    agreement_commands,
    analysis_commands,
    calibration_commands,
    commands,
    compare_commands,
    composition_commands,
    drift_commands,
    judging_commands,
    jury_commands,
    level_commands,
    paper_commands,
    planning_commands,
    quality_commands,
    reading_commands,
    run_commands,
    runs_commands,
    triage_commands,
    triage_run_commands,
    triage_settings_commands,
)
from evalcore.console import ACTING_AS, Db, Json, actor, err, location, out, print_json, study
from evalcore.errors import DatabaseFault, ImportFailed, OverreadError
from evalcore.settings import Settings, settings

app = typer.Typer(
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Overread: physicians check the verdicts that judge models give on health answers. Without a command it opens the dashboard."
    ),
)
audit_app = typer.Typer(help="The audit trail.", no_args_is_help=True)
app.add_typer(audit_app, name="audit")
app.add_typer(analysis_commands.app, name="analysis")

app.command("import")(commands.import_)
app.command()(commands.download)
app.command()(commands.formats)
app.command()(commands.scores)
app.command()(commands.export)
app.command()(commands.backup)
app.command()(commands.restore)
app.command()(compare_commands.compare)
app.command()(quality_commands.judges)
app.command()(agreement_commands.agreement)
app.command()(judging_commands.anchoring)
app.command()(drift_commands.criteria)
app.command()(drift_commands.drift)
app.command("self-preference")(drift_commands.self_preference)
app.command()(drift_commands.families)
app.command("judge-check")(drift_commands.judge_check)
app.command()(triage_commands.triage)
app.command()(calibration_commands.calibration)
app.command()(jury_commands.jury)
app.command("acuity-rules")(level_commands.acuity_rules)
app.command("triage-settings")(triage_settings_commands.triage_settings)
app.command("label-maps")(triage_settings_commands.label_maps)
app.command()(composition_commands.composition)
app.command()(run_commands.respond)
app.command()(run_commands.judge)
app.command("triage-run")(triage_run_commands.triage_run)
app.command()(runs_commands.runs)
app.command()(planning_commands.plan)
app.command()(reading_commands.assign)
app.command()(reading_commands.guideline)
app.command()(paper_commands.methods)
app.command()(paper_commands.bundle)


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    db: Db = None,
    acting_as: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Act as this person of the study, by the rules of their roles. Default: OVERREAD_ACTING_AS, else as its administrator, who may all that "
            "researchers and leads may. The audit trail says which.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit
    if db is not None:
        os.environ["OVERREAD_DB"] = db
    said = ACTING_AS.set(acting_as)
    context.call_on_close(lambda: ACTING_AS.reset(said))
    if context.invoked_subcommand is None:
        serve(db=db)


@app.command()
def serve(
    db: Db = None,
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
    address: Annotated[
        str, typer.Option(help="Only this machine's own address, until there is sign-in.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="Name, or name:port, that browsers show behind a tunnel or a proxy; may be repeated."),
    ] = None,
) -> None:
    """Open the dashboard."""
    from evalcore import demo, serving
    from evalcore.db import reading
    from evalcore.queries import study as queries

    allowed = allowed_host or [name.strip() for name in settings().allowed_hosts.split(",") if name.strip()]
    serving.check_address(address)
    serving.served_hosts(address, port, allowed)
    serving.check_port(address, port)
    database = location(db)
    is_new_default = database == Settings.model_fields["db"].default and not Path(database).exists()
    with study(db) as engine:
        if is_new_default and demo.seed(engine):
            out.print(f"{database} is new: it holds the demo study, which is fictional.")
        with reading(engine) as session:
            key = queries.study_key(session) or ""
    out.print(f"Overread on {serving.page_address(address, port)} (stop with Ctrl-C)", markup=False)
    serving.serve(location=database, study_key=key, port=port, address=address, browser=browser, allowed=allowed)


@app.command()
def people(
    add: Annotated[str | None, typer.Option("--add", help="Name of somebody to add.")] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="reviewer, adjudicator, researcher, lead; may be repeated.")
    ] = None,
    specialty: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="ISO 639-1 code, e.g. en; may be repeated.")] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """List who uses this study, or add somebody."""
    from evalcore.acting import add_person
    from evalcore.db import reading
    from evalcore.queries import study as queries

    with study(db) as engine:
        if add is not None:
            profile = {"specialties": specialty or [], "languages": language or []}
            add_person(engine, add, roles=role or ["reviewer"], **profile, actor=actor(engine))
        with reading(engine) as session:
            everybody = queries.people(session)
    if as_json:
        print_json(
            [
                {"name": p.name, "roles": sorted(p.roles), "specialties": p.specialties, "languages": p.languages}
                for p in everybody
            ]
        )
        return
    table = Table("name", "roles", "specialties", "languages", box=None, padding=(0, 2))
    for person in everybody:
        table.add_row(
            person.name, ", ".join(sorted(person.roles)), ", ".join(person.specialties), ", ".join(person.languages)
        )
    out.print(table if everybody else "Nobody yet: overread people --add NAME --role reviewer")


@audit_app.command()
def verify(
    expect: Annotated[
        str | None,
        typer.Option(help="A hash that was the trail's last, whole: fails where the trail does not have it."),
    ] = None,
    db: Db = None,
) -> None:
    """Recompute every hash of the trail and of the rows that it names; say what does not hold and exit with 1.

    Where OVERREAD_TRAIL names a file of kept hashes, the trail must have each of them.
    """
    from evalcore.auditing import verify as walk
    from evalcore.db import reading

    with study(db) as engine, reading(engine) as session:
        report = walk(session, expected=expect, kept=settings().trail)
    out.print(report.sentence, markup=False)
    if not report.holds:
        raise typer.Exit(1)


def main() -> None:
    """The console command. Errors that a reader can act on are one sentence and exit status 1."""
    try:
        app()
    except ImportFailed as error:
        for fault in error.faults:
            err.print(fault, markup=False)
        more = error.n_faults - len(error.faults)
        err.print(f"Nothing was imported from this file{f'; {more:,} more faults' if more else ''}.", markup=False)
        sys.exit(1)
    except (OverreadError, DatabaseFault) as error:
        err.print(str(error), markup=False)
        sys.exit(1)
    except ValidationError as error:  # of the settings: what came from outside is checked elsewhere
        for wrong in error.errors():
            name = "OVERREAD_" + "_".join(map(str, wrong["loc"])).upper()
            err.print(f"{name}: {wrong['input']!r} came, {wrong['msg']}", markup=False)
        sys.exit(1)
    except DBAPIError as error:
        err.print(f"The database refused: {' '.join(str(error.orig).split())}", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()

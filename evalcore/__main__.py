"""The same acts from the command line. `overread` alone opens the dashboard."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table
from sqlalchemy.exc import DBAPIError

from evalcore import __version__
from evalcore.cli import agreement as cli_agreement
from evalcore.cli import analysis as cli_analysis
from evalcore.cli import calibration, judging, runs
from evalcore.cli import compare as cli_compare
from evalcore.cli import composition as cli_composition
from evalcore.cli import data as cli_data
from evalcore.cli import drift as cli_drift
from evalcore.cli import planning as cli_planning
from evalcore.cli import quality as cli_quality
from evalcore.cli import reading as cli_reading
from evalcore.cli import run as cli_run
from evalcore.cli import triage as cli_triage
from evalcore.cli import triage_run as cli_triage_run
from evalcore.cli import triage_settings as cli_triage_settings
from evalcore.cli.console import ACTING_AS, Db, Json, actor, err, location, out, print_json, study
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
app.add_typer(cli_analysis.app, name="analysis")

app.command("import")(cli_data.import_)
app.command()(cli_data.download)
app.command()(cli_data.formats)
app.command()(cli_data.scores)
app.command()(cli_data.export)
app.command()(cli_data.backup)
app.command()(cli_data.restore)
app.command()(cli_compare.compare)
app.command()(cli_quality.judges)
app.command()(cli_agreement.agreement)
app.command()(judging.anchoring)
app.command()(cli_drift.criteria)
app.command()(cli_drift.drift)
app.command("self-preference")(cli_drift.self_preference)
app.command()(cli_drift.families)
app.command("judge-check")(cli_drift.judge_check)
app.command()(cli_triage.triage)
app.command()(calibration.calibration)
app.command()(judging.jury)
app.command("acuity-rules")(judging.acuity_rules)
app.command("triage-settings")(cli_triage_settings.triage_settings)
app.command("label-maps")(cli_triage_settings.label_maps)
app.command()(cli_composition.composition)
app.command()(cli_run.respond)
app.command()(cli_run.judge)
app.command("triage-run")(cli_triage_run.triage_run)
app.command()(runs.runs)
app.command()(cli_planning.plan)
app.command()(cli_reading.assign)
app.command()(cli_reading.guideline)
app.command()(cli_analysis.methods)
app.command()(cli_analysis.bundle)


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
    from evalcore import serving
    from evalcore.importing import demo
    from evalcore.study import contents
    from evalcore.study.db import reading

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
            key = contents.study_key(session) or ""
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
    from evalcore.study import contents
    from evalcore.study.acting import add_person
    from evalcore.study.db import reading

    with study(db) as engine:
        if add is not None:
            profile = {"specialties": specialty or [], "languages": language or []}
            add_person(engine, add, roles=role or ["reviewer"], **profile, actor=actor(engine))
        with reading(engine) as session:
            everybody = contents.people(session)
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
    from evalcore.study.auditing import verify as walk
    from evalcore.study.db import reading

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
            err.print(f"{name}: {wrong['msg']}, got {wrong['input']!r}", markup=False)
        sys.exit(1)
    except DBAPIError as error:
        err.print(f"The database refused: {' '.join(str(error.orig).split())}", markup=False)
        sys.exit(1)


if __name__ == "__main__":
    main()

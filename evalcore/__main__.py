"""The same acts from the command line. `overread` alone opens the dashboard."""

import gc
import os
import re
import sys
from collections import UserDict
from functools import cache
from importlib import import_module
from importlib.resources import files
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup
from typer.main import get_command, get_group

from evalcore import __version__
from evalcore.cli.console import ACTING_AS, Db, err, out, study
from evalcore.errors import DatabaseFault, ImportFailed, OverreadError

AS = (
    "Act as this person of the study, by the rules of their roles. Default: OVERREAD_ACTING_AS, else as its administrator, who may do all that "
    "researchers and leads may. The audit trail says which."
)
ALLOWED_HOST = "Name, or name:port, that browsers show behind a tunnel or a proxy; may be repeated."
EXPECT = "A hash that was the trail's last, whole: fails where the trail does not have it."

# Of each file of cli/, its commands; a word with a colon is a group of them under that name.
COMMANDS = (
    ("data", "import:import_ download formats template scores export split backup restore copy"),
    ("compare", "compare"),
    ("judging", "judges agreement anchoring criteria drift self-preference families prompts judge-check"),
    ("triage", "triage calibration"),
    ("judging", "jury acuity-rules"),
    ("triage", "triage-settings label-maps"),
    ("data", "composition"),
    ("run", "respond judge triage-run runs"),
    ("planning", "plan assign"),
    ("team", "guideline"),
    ("analysis", "methods bundle report"),
    ("team", "people migrate"),
    ("mending", "imports withdraw restore-import broken mark-broken rename freeze amend versions delete-study"),
    ("analysis", "analysis:app"),
    ("planning", "assignments:app"),
    ("team", "team:team_app studies:studies_app"),
)


class Lazily(UserDict[str, Any]):
    """Commands by name, each made when it is asked for: one that prints a line loads the statistics of no other."""

    def __getitem__(self, key: str) -> Any:
        """The command; until it is asked for the first time, `data` holds its place in cli/, `room:name`."""
        if isinstance(place := self.data[key], str):
            room, _, words = place.partition(":")
            made = getattr(import_module(f"evalcore.cli.{room}"), words)
            if isinstance(made, typer.Typer):
                self.data[key] = get_group(made)
            else:
                alone = typer.Typer(add_completion=False)
                alone.command(help=f"{getdoc(made)}\n\n{_printed().get(key, '')}")(made)
                self.data[key] = get_command(alone)
            self.data[key].name = key
        return self.data[key]


@cache
def _printed() -> dict[str, str]:
    """By command, how its help ends: what its --json prints."""
    text = files("evalcore.cli").joinpath("json.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^# (.+)\n", text, flags=re.MULTILINE)
    return {name: told.strip() for name, told in zip(parts[::2], parts[1::2], strict=True)}


class Commands(TyperGroup):
    """The commands of `COMMANDS` in their order, then those of this file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        said = ((room, *word.partition(":")) for room, words in COMMANDS for word in words.split())
        places = {name: f"{room}:{function or name.replace('-', '_')}" for room, name, _, function in said}
        self.commands = Lazily({**places, **self.commands})


app = typer.Typer(
    cls=Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Overread: physicians check the verdicts that judge models give on health answers. Without a command it opens the dashboard."
    ),
)
audit_app = typer.Typer(help="The audit trail.", no_args_is_help=True)
app.add_typer(audit_app, name="audit")


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    db: Db = None,
    acting_as: Annotated[str | None, Option("--as", metavar="NAME", help=AS, show_default=False)] = None,
    version: Annotated[bool, Option("--version", help="Print the version.")] = False,
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
    port: Annotated[int, Option(min=1, max=65535)] = 8501,
    address: Annotated[str, Option(help="Another than this machine's own only with sign-in.")] = "127.0.0.1",
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the browser.")] = True,
    allowed_host: Annotated[list[str] | None, Option(help=ALLOWED_HOST)] = None,
) -> None:
    """Open the dashboard."""
    from evalcore import serving
    from evalcore.importing import demo
    from evalcore.settings import Settings, settings
    from evalcore.study import contents
    from evalcore.study.db import reading
    from evalcore.team.provider import provider

    allowed = allowed_host or [name.strip() for name in settings().allowed_hosts.split(",") if name.strip()]
    serving.check_address(address, sign_in=provider() is not None)
    serving.served_hosts(address, port, allowed)
    serving.check_port(address, port)
    database, key = db or settings().db, ""
    is_new_default = database == Settings.model_fields["db"].default and not Path(database).exists()
    if settings().studies is not None:
        _bring_up_to_date()
    else:
        with study(db) as engine:
            if is_new_default and provider() is None and demo.seed(engine):
                out.print(f"{database} is new: it holds the demo study, which is fictional.")
            with reading(engine) as session:
                key = contents.study_key(session) or ""
    out.print(f"Overread on {serving.page_address(address, port)} (stop with Ctrl-C)", markup=False)
    serving.serve(location=database, study_key=key, port=port, address=address, browser=browser, allowed=allowed)


def _bring_up_to_date() -> None:
    """Open every study of the server once; one that cannot be opened is told, and leaves the others as they are."""
    from evalcore.team.provider import provider
    from evalcore.team.studies import studies

    if provider() is None:
        msg = "OVERREAD_STUDIES: several studies need sign-in. Set OVERREAD_PUBLIC_URL and the OVERREAD_OIDC_ variables (docs/sign-in.md)."
        raise OverreadError(msg)
    for one in studies().values():
        try:
            with study(one.db):
                pass
        except (OverreadError, DatabaseFault) as error:
            err.print(f"{one.name}: {error}", markup=False)


@audit_app.command()
def verify(expect: Annotated[str | None, Option(help=EXPECT)] = None, db: Db = None) -> None:
    """Recompute every hash of the trail and of the rows that it names; say what does not hold and exit with 1.

    Where OVERREAD_TRAIL names a file of kept hashes, the trail must have each of them.
    """
    from evalcore.study.audit.chain import verify as walk
    from evalcore.study.db import reading, trail_file

    with study(db) as engine, reading(engine) as session:
        report = walk(session, expected=expect, kept=trail_file(session))
    out.print(report.sentence, markup=False)
    if not report.holds:
        raise typer.Exit(1)


def main() -> None:
    """The console command. Errors that a reader can act on are one sentence and exit status 1."""
    gc.set_threshold(100_000)  # else a tenth of a short command is spent on looking for garbage among what was imported
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
    except Exception as error:
        from pydantic import ValidationError
        from sqlalchemy.exc import DBAPIError

        if isinstance(error, DBAPIError):
            err.print(f"The database refused: {' '.join(str(error.orig).split())}", markup=False)
        elif isinstance(error, ValidationError):  # of the settings: what came from outside is checked elsewhere
            for wrong in error.errors():
                name = "OVERREAD_" + "_".join(map(str, wrong["loc"])).upper()
                err.print(f"{name}: {wrong['msg']}, got {wrong['input']!r}", markup=False)
        else:
            raise
        sys.exit(1)
    finally:
        gc.freeze()  # else Python looks for garbage among all that was imported once more before it ends


if __name__ == "__main__":
    main()

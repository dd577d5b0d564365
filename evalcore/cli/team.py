"""Commands about people and what they are told, who signs in, the studies of a server, and its database."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from evalcore.cli.console import Db, Json, actor, content, out, print_json, say, show, study
from evalcore.errors import refuse
from evalcore.settings import settings
from evalcore.stats.wording import counted
from evalcore.study import acting, contents
from evalcore.study.csv_cells import text_of
from evalcore.study.db import connect, connected, migrate as bring_up_to_date, reading
from evalcore.team import people as acts, studies as served
from evalcore.team.provider import provider, roles_of

team_app = typer.Typer(help="Who signs in, and as whom.", no_args_is_help=True)
studies_app = typer.Typer(help="The studies of a server.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Of a person of the study, as `overread people` prints it.")]


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
    with study(db) as engine:
        if add is not None:
            profile = {"specialties": specialty or [], "languages": language or []}
            acting.add_person(engine, add, roles=role or ["reviewer"], **profile, actor=actor(engine))
        with reading(engine) as session:
            everybody = contents.people(session)
    rows: list[dict[str, Any]] = [
        {"name": p.name, "roles": sorted(p.roles), "specialties": p.specialties, "languages": p.languages}
        for p in everybody
    ]
    if as_json:
        print_json(rows)
    elif rows:
        show({name: [row[name] if name == "name" else ", ".join(row[name]) for row in rows] for name in rows[0]})
    else:
        out.print("Nobody yet: overread people --add NAME --role reviewer")


def guideline(
    path: Annotated[Path | None, typer.Argument(help="Markdown; leave it out to print the newest version.")] = None,
    db: Db = None,
) -> None:
    """Write a new version of what readers are told, or print the newest."""
    with study(db) as engine:
        if path is not None:
            version = acting.set_guideline(engine, text_of(content(path), str(path)), actor=actor(engine))
            say(f"Guideline version {version}.")
            return
        with reading(engine) as session:
            found = contents.guideline(session)
    say(found.text if found else "No guideline yet: overread guideline FILE.md")


@team_app.command()
def invite(name: Name, db: Db = None) -> None:
    """Print a link with which a person of the study signs in the first time: 14 days, one use."""
    signing_in = provider()
    if signing_in is None:
        msg = "Nobody signs in on this server yet. Set OVERREAD_PUBLIC_URL and the OVERREAD_OIDC_ variables first (docs/sign-in.md)."
        refuse(msg)
    with study(db) as engine:
        token = acts.invite(engine, name, actor=actor(engine))
    out.print(served.invitation_link(signing_in.public_url, db or settings().db, token), markup=False)


@team_app.command()
def roles(
    name: Name,
    role: Annotated[list[str], typer.Argument(help="reviewer, adjudicator, researcher, lead: one or more.")],
    db: Db = None,
) -> None:
    """Give somebody these roles, and no others. It holds at once, in open pages too."""
    with study(db) as engine:
        acts.set_roles(engine, name, roles_of(role, where="roles"), actor=actor(engine))


@team_app.command()
def deactivate(name: Name, db: Db = None) -> None:
    """Let somebody in no longer, at once. Their reads stay."""
    with study(db) as engine:
        acts.set_active(engine, name, active=False, actor=actor(engine))


@team_app.command()
def activate(name: Name, db: Db = None) -> None:
    """Let somebody in again."""
    with study(db) as engine:
        acts.set_active(engine, name, active=True, actor=actor(engine))


@team_app.command()
def unbind(name: Name, db: Db = None) -> None:
    """Forget the account of somebody who lost or changed it, at once. `team invite` then gives a link for the new one. Their reads stay."""
    with study(db) as engine:
        n_accounts = acts.unbind(engine, name, actor=actor(engine))
    out.print(f"{name}: {counted(n_accounts, 'account')} unbound.", markup=False)


@team_app.command("sign-out")
def sign_out(
    name: Annotated[str, typer.Argument(help="Of a person of the study.")] = "",
    everybody: Annotated[bool, typer.Option("--all", help="Everybody, in all studies of the server.")] = False,
    db: Db = None,
) -> None:
    """End the sessions of somebody, or of everybody; they may sign in again. To let somebody in no longer: `team deactivate`."""
    if bool(name) == everybody:
        refuse(f"sign-out: expected the name of a person or --all, got {'both' if name else 'neither'}.")
    with study(db) as engine:
        sessions = acting.opened(served.sign_ins()) if settings().studies else engine
        try:
            n_sessions = acts.sign_out(engine, sessions, name or None, actor=actor(engine))
        finally:
            if sessions is not engine:
                sessions.dispose()
    out.print(f"{counted(n_sessions, 'session')} ended.", markup=False)


@team_app.command()
def key(
    name: Annotated[str, typer.Argument(help="Of a researcher or lead of the study: the program reads what they may.")],
    purpose: Annotated[str, typer.Option("--for", help="What it is for, for the list of keys and the audit trail.")],
    days: Annotated[int, typer.Option(help="For how many days it is valid.")] = 90,
    db: Db = None,
) -> None:
    """Print a new access key, with which a program reads the study over HTTP (docs/api.md). It is shown this once."""
    with study(db) as engine:
        out.print(acts.make_key(engine, name, purpose=purpose, days=days, actor=actor(engine)), markup=False)


@team_app.command()
def keys(db: Db = None, as_json: Json = False) -> None:
    """List the access keys that were made.

    With --json a list with number, person, purpose, created_by, created_at, expires_at and state (valid, revoked or expired).
    """
    with study(db) as engine:
        made = acts.keys(engine, actor=actor(engine))
    if as_json:
        print_json([msgspec.structs.asdict(one) for one in made])
        return
    names = ("number", "person", "purpose", "state", "created_by")
    rows = {name: [getattr(one, name) for one in made] for name in names}
    show(rows | {"until": [f"{one.expires_at:%Y-%m-%d}" for one in made]})


@team_app.command("revoke-key")
def revoke_key(
    number: Annotated[int, typer.Argument(help="Of a key, as `overread team keys` prints it.")], db: Db = None
) -> None:
    """Let an access key open nothing any more, at once."""
    with study(db) as engine:
        acts.revoke_key(engine, number, actor=actor(engine))
    out.print(f"Key {number} is revoked.", markup=False)


@studies_app.command("list")
def list_(as_json: Json = False) -> None:
    """List the studies of this server."""
    names = ("name", "title", "database")
    found = [(one.name, one.title, connect(one.db).url.render_as_string()) for one in served.studies().values()]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in found])
    else:
        show(dict(zip(names, zip(*found, strict=True), strict=True)))


@studies_app.command("add")
def add_study(
    name: Annotated[str, typer.Argument(help="The first part of its addresses: small letters, digits and hyphens.")],
    at: Annotated[
        str, typer.Argument(help="Its database URL, or the path of a SQLite file. It is made where there is none.")
    ],
    title: Annotated[str, typer.Option(help="What people read in the list of studies.")] = "",
) -> None:
    """Add a study to the server's file (OVERREAD_STUDIES, else studies.toml here). A running server takes it up by itself."""
    engine = acting.opened(at)
    engine.dispose()
    place = at if "://" in at else str(Path(at).expanduser().resolve())
    served.add(settings().studies or Path("studies.toml"), name, db=place, title=title)
    shown = engine.url.render_as_string()  # without a password
    out.print(
        f"{name} is a study of this server now. Its lead: overread --db {shown} people --add NAME --role lead, then team invite NAME.",
        markup=False,
    )


def migrate(
    db: Db = None,
    app_role: Annotated[
        str | None,
        typer.Option(
            "--app-role",
            metavar="ROLE",
            help="PostgreSQL: the role that the server connects as. It gets what the program needs and no more; run this as the tables' owner.",
        ),
    ] = None,
) -> None:
    """Make a study's tables, or bring them up to date; needed before a server starts whose own role may not."""
    from evalcore.study.audit.triggers import grant

    with connected(db or settings().db) as engine:
        copy = bring_up_to_date(engine)
        if app_role is not None:
            grant(engine, app_role)
    out.print(f"The tables are up to date.{f' The file as it was: {copy}' if copy else ''}", markup=False)

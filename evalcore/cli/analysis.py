"""What the study states that it analyses, by the command line."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalcore.cli.console import Db, Json, actor, grid, one_of, out, print_json, study
from evalcore.errors import OverreadError

if TYPE_CHECKING:
    from evalcore.study.analysis import Analysis, StatedAnalysis

app = typer.Typer(
    help="What the study states that it analyses: compare, methods, bundle, Models and Triage follow it. Alone it shows the statement in force.",
    invoke_without_command=True,
)


@app.callback()
def show(context: typer.Context, db: Db = None, as_json: Json = False) -> None:
    """Show the statement in force.

    With --json an object: version, stated_by, stated_at and n_reads_before (null where nothing is stated), and the fields of the statement:
    evaluation, judges, subset, claim, physicians, settled, weighted, primary (two models), margin, margin_under, margin_missed. Null or an
    empty list: as usual.
    """
    from evalcore.study import contents
    from evalcore.study.analysis import Analysis, plain, when_words
    from evalcore.study.db import reading

    if context.invoked_subcommand is not None:
        return
    with study(db) as engine, reading(engine) as session:
        stated = contents.stated_analysis(session)
    if as_json:
        nothing = dict.fromkeys(("version", "stated_by", "stated_at", "n_reads_before")) | plain(Analysis())
        print_json(nothing if stated is None else _row(stated))
        return
    if stated is None:
        out.print("No analysis is stated; every choice is the usual one. Begin with: overread analysis state --help")
        return
    out.print(f"Version {stated.version}, {when_words(stated)}, by {stated.stated_by}", markup=False)
    out.print(grid(("", ""), _lines(stated.spec)))


@app.command()
def state(  # noqa: PLR0913, PLR0917 - one an option
    dataset: Annotated[
        str | None, typer.Option(help="The data set; default: the judged one with most responses.")
    ] = None,
    subset: Annotated[str | None, typer.Option(help="Only this part of it, e.g. hard or consensus.")] = None,
    judges: Annotated[
        str | None,
        typer.Option(help="Judges, joined by commas, that are corrected together; default: the one with most labels."),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="benchmark or new_examples; default: the widest that can be had.")
    ] = None,
    physicians: Annotated[
        str | None, typer.Option(help="these or in_general; default: the widest that can be had.")
    ] = None,
    settled: Annotated[
        bool, typer.Option("--settled", help="Adjudicated labels in place of the readers' votes.")
    ] = False,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Weight the examples to the themes of the full benchmark.")
    ] = False,
    primary: Annotated[
        str | None, typer.Option(help="The primary comparison: two models joined by a comma, the new one first.")
    ] = None,
    margin: Annotated[float | None, typer.Option(help="Its margin of the corrected score, e.g. 0.05.")] = None,
    margin_under: Annotated[float | None, typer.Option(help="Its margin of the under-triage rate.")] = None,
    margin_missed: Annotated[float | None, typer.Option(help="Its margin of the rate of missed emergencies.")] = None,
    db: Db = None,
) -> None:
    """State the analysis, whole: what is left out is as usual. The earlier versions stay, each with the reads that existed before it."""
    from evalcore.study import acting, contents
    from evalcore.study.analysis import Analysis, when_words
    from evalcore.study.db import reading
    from evalcore.study.schema import Claim, Physicians

    first, comma, second = (primary or "").partition(",")
    if primary is not None and not (comma and first.strip() and second.strip() and "," not in second):
        msg = f"--primary: expected two models joined by a comma, found {primary!r}"
        raise OverreadError(msg)
    spec = Analysis(
        evaluation=dataset,
        judges=tuple(word.strip() for word in judges.split(",")) if judges else (),
        subset=subset,
        claim=None if claim is None else Claim(one_of("--claim", claim, list(Claim))),
        physicians=None if physicians is None else Physicians(one_of("--physicians", physicians, list(Physicians))),
        settled=settled,
        weighted=weighted,
        primary=None if primary is None else (first.strip(), second.strip()),
        margin=margin,
        margin_under=margin_under,
        margin_missed=margin_missed,
    )
    with study(db) as engine:
        version = acting.state_analysis(engine, spec, actor=actor(engine))
        with reading(engine) as session:
            stated = contents.stated_analysis(session)
    if version is None or stated is None:
        out.print("That is what is stated already; nothing was written.")
    else:
        out.print(f"Version {version}: {when_words(stated)}.", markup=False)


@app.command()
def history(db: Db = None, as_json: Json = False) -> None:
    """List every version, newest first. With --json a list of objects as `overread analysis --json` has them."""
    from evalcore.study import contents
    from evalcore.study.analysis import when_words
    from evalcore.study.db import reading

    with study(db) as engine, reading(engine) as session:
        versions = contents.stated_analyses(session)
    if as_json:
        print_json([_row(version) for version in versions])
        return
    if not versions:
        out.print("No analysis is stated.")
    for version in versions:
        out.print(f"Version {version.version}, {when_words(version)}, by {version.stated_by}", markup=False)
        out.print(grid(("", ""), _lines(version.spec)))


def _row(stated: "StatedAnalysis") -> dict[str, Any]:
    from evalcore.study.analysis import plain

    names = ("version", "stated_by", "stated_at", "n_reads_before")
    return {name: getattr(stated, name) for name in names} | plain(stated.spec)


def _lines(spec: "Analysis") -> list[tuple[str, str]]:
    from evalcore.study.analysis import words

    return list(words(spec).items())

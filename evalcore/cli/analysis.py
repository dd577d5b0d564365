"""What the study states that it analyses, and what a paper needs besides the numbers, by the command line."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from evalcore.cli.console import Db, Json, actor, chosen, grid, out, print_json, say, study, tell, whole
from evalcore.errors import refuse
from evalcore.stats.wording import counted
from evalcore.study import acting, contents
from evalcore.study.analysis import Analysis, StatedAnalysis, when_words, words
from evalcore.study.db import reading
from evalcore.study.schema import Claim, Physicians

STATED = ("version", "stated_by", "stated_at", "n_reads_before")
JUDGES = "Judges, joined by commas, that are corrected together; default: the one with most labels."
WEIGHTED = "Weight the examples to the themes of the full benchmark."
CLAIM = "benchmark or new_examples; default: the widest possible."
PHYSICIANS = "these or in_general; default: the widest possible."
PRIMARY = "The primary comparison: two models joined by a comma, the new one first."
CHECKLIST = "Where each item of the reporting guidelines stands in the bundle, or that it is blank."

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
    if context.invoked_subcommand is not None:
        return
    with study(db) as engine, reading(engine) as session:
        stated = contents.stated_analysis(session)
    if as_json:
        print_json(dict.fromkeys(STATED) | asdict(Analysis()) if stated is None else _row(stated))
    elif stated is None:
        say("No analysis is stated; every choice is the usual one. Begin with: overread analysis state --help")
    else:
        _print(stated)


@app.command()
def state(  # noqa: PLR0913, PLR0917 - one an option
    dataset: Annotated[str | None, Option(help="The data set; default: the judged one with most responses.")] = None,
    subset: Annotated[str | None, Option(help="Only this part of it, e.g. hard or consensus.")] = None,
    judges: Annotated[str | None, Option(help=JUDGES)] = None,
    claim: Annotated[Claim | None, chosen("--claim", Claim, CLAIM)] = None,
    physicians: Annotated[Physicians | None, chosen("--physicians", Physicians, PHYSICIANS)] = None,
    settled: Annotated[bool, Option("--settled", help="Adjudicated labels in place of the readers' votes.")] = False,
    weighted: Annotated[bool, Option("--weighted", help=WEIGHTED)] = False,
    primary: Annotated[str | None, Option(help=PRIMARY)] = None,
    margin: Annotated[float | None, Option(help="Its margin of the corrected score, e.g. 0.05.")] = None,
    margin_under: Annotated[float | None, Option(help="Its margin of the under-triage rate.")] = None,
    margin_missed: Annotated[float | None, Option(help="Its margin of the rate of missed emergencies.")] = None,
    db: Db = None,
) -> None:
    """State the analysis, whole: what is left out is as usual. The earlier versions stay, each with the reads that existed before it."""
    first, comma, second = (primary or "").partition(",")
    if primary is not None and not (comma and first.strip() and second.strip() and "," not in second):
        refuse(f"--primary: expected two models joined by a comma, got {primary!r}")
    spec = Analysis(
        evaluation=dataset,
        judges=tuple(word.strip() for word in judges.split(",")) if judges else (),
        subset=subset,
        claim=claim,
        physicians=physicians,
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
        say("This analysis is already stated; nothing was written.")
    else:
        say(f"Version {version}: {when_words(stated)}.")


@app.command()
def history(db: Db = None, as_json: Json = False) -> None:
    """List every version, newest first. With --json a list of objects as `overread analysis --json` has them."""
    with study(db) as engine, reading(engine) as session:
        versions = contents.stated_analyses(session)
    if as_json:
        print_json([_row(version) for version in versions])
        return
    if not versions:
        say("No analysis is stated.")
    for version in versions:
        _print(version)


def _row(stated: StatedAnalysis) -> dict[str, Any]:
    return {name: getattr(stated, name) for name in STATED} | asdict(stated.spec)


def _print(stated: StatedAnalysis) -> None:
    say(f"Version {stated.version}, {when_words(stated)}, by {stated.stated_by}")
    out.print(grid(("", ""), words(stated.spec).items()))


def methods(
    checklist: Annotated[bool, Option("--checklist", help=CHECKLIST)] = False, db: Db = None, as_json: Json = False
) -> None:
    """Write the methods of a paper from what was done in the study."""
    from evalcore.export import bundle as bundling, methods as written, tables as export_tables

    with study(db) as engine:
        export_tables.check(engine, actor(engine))
        done = written.facts(engine)
    if checklist:
        texts, tables = written.documents(done, bundling.FILES)
        tell(tables["checklist"].to_dict(orient="records"), texts["checklist.md"], as_json=as_json)
        return
    paragraph, clauses = written.paragraph(done), [asdict(clause) for clause in written.clauses(done)]
    tell({"paragraph": paragraph, "clauses": clauses, "facts": written.as_dict(done)}, paragraph, as_json=as_json)


def bundle(path: Path, db: Db = None) -> None:
    """Write one zip file of all that the numbers of a paper rest on.

    In it: labels, verdicts and scores; corrected scores and differences of the stated analysis, what missing reads could change, and agreement, each
    with its codebook; the analysis, the methods, a checklist, the flow and a manifest of hashes.
    """
    from evalcore.export import acts

    with study(db) as engine, whole(path) as file:
        taken = acts.take(engine, "bundle", "zip", file, actor=actor(engine))
    say(f"{path}: {counted(taken.n_rows, 'label')} with codebook, methods and manifest")


def report(path: Path, db: Db = None) -> None:
    """Write a report of the study as one HTML file that opens without a network.

    In it: how the study was done, the findings, figures and tables of Models, Judges, agreement and triage with their intervals, and the methods. Nobody is
    named and no conversation is quoted.
    """
    from evalcore.export import acts

    with study(db) as engine, whole(path) as file:
        acts.take(engine, "report", "html", file, actor=actor(engine))
    say(f"{path}: {counted(path.stat().st_size, 'byte')}; open it in a browser")

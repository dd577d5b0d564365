"""Data in and out by the command line: import, download, scores, export."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from sqlalchemy import Engine

from evalcore.cli.console import (
    Db,
    Json,
    actor,
    err,
    grid,
    hidden,
    location,
    out,
    print_json,
    progress,
    records,
    some_of,
    study,
    write_whole,
)
from evalcore.errors import OverreadError
from evalcore.settings import settings
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import ConfidenceMeaning

if TYPE_CHECKING:
    from evalcore.study.auditing import ChainReport

MAX_FLOW_LINES = 40


def import_(  # noqa: PLR0913, PLR0917 - what a person may say about a file
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, plain or .gz.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="See `overread formats`; else told from the content.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Who answered, where the file does not say.")] = None,
    judge: Annotated[str | None, typer.Option(help="Who judged, where the file does not say.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set, e.g. healthbench or healthbench_hard.")] = None,
    confidence_means: Annotated[
        ConfidenceMeaning | None,
        typer.Option(
            help="What a judge's confidence is the probability of: met (the criterion is met) or right (its own label is right)."
        ),
    ] = None,
    reads_of: Annotated[
        list[str] | None,
        typer.Option(
            help="A person with an account here whose reads, made elsewhere, the file brings; repeat for more."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would happen and change nothing.")] = False,
    give_up: Annotated[
        bool,
        typer.Option(
            "--give-up",
            help="Import nothing: leave a large import that was broken off as it is, where its file is lost.",
        ),
    ] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Import files, each whole or not at all.

    --json: a list, one object a file: file, format, dataset, dry_run, source_hash (of the content), reads_of, already_imported, rows,
    then how many of what came (examples_new,
    responses_new, verdicts_new, cases_new, votes_new, texts_new, levels_new, without_level, matrices_new and the like; *_known: were here already),
    without_partner with without_partner_named, different with different_named (cases whose file says something else than their votes or the label map),
    flow (what became of a file's cases: source, original_label, meaning, outcome, why, gold, n), confident_judges, meanings_set,
    meanings_missing, levels_read (sentences), samples_left_out and notes (sentences) of logs.
    """
    if give_up == bool(paths):
        msg = f"expected {'no file beside --give-up' if give_up else 'files to import'}, got {len(paths or ())}"
        raise OverreadError(msg)
    with study(db) as engine:
        if give_up:
            _give_up(engine)
            return
        reports = []
        for path in paths or ():
            told = {"model": model, "judge": judge, "format_name": format_name, "dataset": dataset}
            reports.append(
                _import_one(
                    engine,
                    path,
                    told=told,
                    means=confidence_means,
                    reads_of=reads_of or (),
                    dry_run=dry_run,
                    quiet=as_json,
                )
            )
        if as_json:
            print_json(reports)


def _give_up(engine: Engine) -> None:
    from evalcore.importing.staging import give_up

    left = give_up(engine, actor(engine))
    out.print(
        f"{left.name}: given up; {left.n_done:,} of its {left.n_rows:,} rows are in the study and stay", markup=False
    )


def _import_one(
    engine: Engine,
    path: Path,
    *,
    told: dict[str, str | None],
    means: ConfidenceMeaning | None = None,
    reads_of: Sequence[str] = (),
    dry_run: bool,
    quiet: bool,
) -> dict[str, object]:
    from evalcore.importing import Options, import_file, missing_options
    from evalcore.study.acting import prepare_search

    if sys.stdin.isatty() and not quiet:
        said = Options(model=told["model"], judge=told["judge"])
        for word in missing_options(path, format_name=told["format_name"], options=said):
            told = told | {word: typer.prompt(f"{path.name} does not say which {word} it is from; {word}")}
    with progress(path.name) as bar:
        report = import_file(
            engine,
            path,
            actor=actor(engine),
            confidence_means=means,
            reads_of=reads_of,
            dry_run=dry_run,
            progress=lambda done: bar(done, _size(path)),
            **told,
        )
    if not dry_run:
        with err.status("Preparing the search"):
            prepare_search(engine)
    if not quiet:
        out.print(f"[bold]{path.name}[/]: {report.format}, {report.rows:,} rows" + (" (dry run)" if dry_run else ""))
        for sentence in report.sentences():
            out.print(f"  {sentence}", markup=False)
        for line in report.named():
            out.print(f"    {line}", markup=False)
        if report.meanings_missing:
            out.print("    Say --confidence-means met or --confidence-means right.", markup=False)
        if report.flow:
            _print_flow(report.flow)
    return report.as_dict()


def _print_flow(rows: list[dict[str, object]]) -> None:
    """What was made of each label, and what became of the cases."""
    import pandas as pd

    from evalcore.triage import case_flow

    flow = pd.DataFrame(rows)
    out.print(f"  {case_flow.sentence(flow)}", markup=False)
    labels = case_flow.mapping(flow)
    shown = labels.head(MAX_FLOW_LINES)
    columns = ("source", "label", "stands for", *(outcome.value for outcome in case_flow.Outcome), "cases")
    counts = [f"n_{outcome.value}" for outcome in case_flow.Outcome]
    lines = (
        [
            row["source"],
            row["original_label"] or "–",
            row["meaning"] or "–",
            *(f"{row[name]:,}" for name in counts),
            f"{row['n']:,}",
        ]
        for row in shown.to_dict(orient="records")
    )
    out.print(grid(columns, lines))
    if len(labels) > len(shown):
        out.print(f"  and {counted(len(labels) - len(shown), 'label')} more: see --json", markup=False)


def _size(path: Path) -> int | None:
    return None if path.suffix == ".gz" else path.stat().st_size


def formats() -> None:
    """List the formats that can be imported, with their fields."""
    from evalcore.importing.formats import FORMATS

    for name, module in FORMATS.items():
        out.print(f"[bold]{name}[/]  {module.TITLE}")
        table = Table(box=None, show_header=False, padding=(0, 2))
        for column, meaning in module.COLUMNS.items():
            table.add_row(column, meaning)
        out.print(table)


def download(
    benchmark: Annotated[str, typer.Argument(help="healthbench")],
    part: Annotated[str, typer.Option(help="eval, hard, consensus or meta")] = "eval",
    folder: Annotated[Path, typer.Option(help="Where the file is kept.")] = Path(),
    db: Db = None,
) -> None:
    """Fetch an official file, with resume, and import it. Its address is set by OVERREAD_HEALTHBENCH_URL."""
    from evalcore.importing.downloading import download as fetch

    if benchmark != "healthbench":
        msg = f"expected healthbench, got {benchmark!r}"
        raise OverreadError(msg)
    with progress(f"healthbench {part}") as bar:
        path = fetch(part, base_url=settings().healthbench_url, folder=folder, progress=bar)
    with study(db) as engine:
        told = dict.fromkeys(("model", "judge", "format_name", "dataset"))
        _import_one(engine, path, told=told, dry_run=False, quiet=False)


def scores(
    by: Annotated[
        str, typer.Option(help="Some of overall, theme, axis, category, level, joined by commas.")
    ] = "overall,theme,axis,category,level",
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Rubric scores by model, judge and data set. The raw mean stands beside the clipped score."""
    from evalcore.rubric.scores import REPORTED_GROUPINGS, mean_scores, scores_of_verdicts
    from evalcore.study import frames
    from evalcore.study.db import reading
    from evalcore.study.schema import RaterKind

    wanted = some_of("--by", by, REPORTED_GROUPINGS)
    with study(db) as engine, reading(engine) as session:
        verdicts = frames.verdicts(session, kind=RaterKind.JUDGE)
    table = mean_scores(scores_of_verdicts(verdicts, wanted))
    if as_json:
        print_json(records(table))
        return
    shown = grid(table.columns, (map(_cell, row) for row in table.itertuples(index=False)))
    out.print(shown if len(table) else "No scores yet: import responses with a judge's verdicts first.")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return decimal(value, 4)
    return str(value)


def export(
    path: Path,
    what: Annotated[
        str, typer.Option(help="labels, verdicts, scores, criteria (those at fault), acuity or cases")
    ] = "labels",
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, parquet, jsonl or meta-eval; else by the file's ending.")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Whose labels stand beside the physicians'; default: the judge with most verdicts."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only items that a physician has read.")] = False,
    db: Db = None,
) -> None:
    """Write labels, verdicts, scores, criteria at fault, acuity or cases of triage to a file, with a codebook beside it."""
    from evalcore.export import tables as exporting
    from evalcore.study import trail
    from evalcore.study.db import reading

    file_format = file_format or {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl"}.get(path.suffix, "csv")
    if file_format not in (*exporting.WRITERS, "meta-eval"):
        msg = f"--format: expected {', '.join(exporting.WRITERS)} or meta-eval, got {file_format!r}"
        raise OverreadError(msg)
    with study(db) as engine:
        who = actor(engine)
        exporting.check(engine, who)
        part = exporting.Part(judge=judge, read_only=read_only, blind=hidden(engine, who))
        with reading(engine) as session:
            trail_hash = trail.trail_head(session)[1]
        if file_format == "meta-eval":
            content = exporting.meta_eval_rows(engine, part)
            n_rows = content.count(b"\n")
        else:
            table = exporting.table(engine, what, part)
            content, n_rows = exporting.WRITERS[file_format](table), len(table)
        write_whole(path, content)
        if file_format != "meta-eval":
            codebook = exporting.codebook_text(what, trail_hash)
            write_whole(path.with_name(path.name + ".codebook.md"), codebook.encode())
        exporting.record(engine, actor=who, what=what, file_format=file_format, n_rows=n_rows, part=part)
    out.print(f"{path}: {counted(n_rows, 'row')}")


def backup(
    path: Annotated[Path, typer.Argument(help="A new file; of PostgreSQL a zip file.")],
    db: Db = None,
) -> None:
    """Copy the study while it is in use, and prove the copy. `cp` would lose what SQLite has not yet moved into the file.

    Exit status 1 where nothing was written, or where the copy is whole and its audit trail does not hold.
    """
    from evalcore.study import backups

    with study(db) as engine:
        report = backups.backup(engine, path)
    out.print(f"{path}: {counted(path.stat().st_size, 'byte')}", markup=False)
    _say_how_far(report)


def restore(
    path: Annotated[Path, typer.Argument(help="What `overread backup` wrote.")],
    db: Db = None,
) -> None:
    """Make a study from a backup where there is none yet; nothing is overwritten.

    Exit status 1 where nothing was restored, or where the study was restored and its audit trail does not hold.
    """
    from evalcore.study import backups

    report = backups.restore(path, location(db))
    out.print(f"Restored from {path}", markup=False)
    _say_how_far(report)


def _say_how_far(report: "ChainReport") -> None:
    out.print(report.sentence, markup=False)
    if not report.holds:
        raise typer.Exit(1)

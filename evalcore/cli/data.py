"""Data by the command line: import, download, what a study is made of, scores, export, backup."""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option, prompt

from evalcore.cli import console
from evalcore.errors import ImportFailed, refuse
from evalcore.settings import settings
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import ConfidenceMeaning, RaterKind

if TYPE_CHECKING:
    from evalcore.importing import ImportReport
    from evalcore.study.audit.chain import ChainReport
    from evalcore.study.db import Engine

MAX_FLOW_LINES = 40
FORMAT = "See `overread formats`; default: detected from the content."
FIELDS = (
    "Model, Judge and Data set are fields of the Study page, and --model, --judge and --dataset of `overread import`."
)
MAPPING = "Which column of a file with names of its own is which field: a YAML file, or the name of a mapping that the study keeps; see docs/own-data.md."
MEANS = "What a judge's confidence refers to: met (the criterion is met) or right (its own label is right)."
READS_OF = "A person with an account here whose reads, made elsewhere, the file brings; repeat for more."
GIVE_UP = "Import nothing: leave a large import that was broken off as it is, where its file is lost."
WHAT = "labels, verdicts, scores, criteria (those at fault), acuity or cases"
AS = (
    "csv, parquet, jsonl; meta-eval; inspect (scores by physicians for inspect_ai); examples or responses (JSON Lines that can be imported); else by the "
    "file's ending."
)
MODEL = "Only this model's responses; inspect needs it where the study has several models."
SEED = "Draws the set of each conversation; the same seed gives the same sets, whatever is read later."
WHOSE = "Whose labels stand beside the physicians'; default: the judge with most verdicts."
GROUPINGS = "overall,theme,axis,category,level"
COMPOSED = "theme,category,language,turns,length,axis,sign,points,model,response_length"


def import_(  # noqa: PLR0913, PLR0917 - what a person may say about a file
    paths: Annotated[list[Path] | None, Argument(help="Files, plain or .gz.")] = None,
    format_name: Annotated[str | None, Option("--format", help=FORMAT)] = None,
    mapping: Annotated[str | None, Option(help=MAPPING)] = None,
    model: Annotated[str | None, Option(help="Who answered, where the file does not say.")] = None,
    judge: Annotated[str | None, Option(help="Who judged, where the file does not say.")] = None,
    dataset: Annotated[str | None, Option(help="Data set, e.g. healthbench or healthbench_hard.")] = None,
    confidence_means: Annotated[ConfidenceMeaning | None, Option(help=MEANS)] = None,
    reads_of: Annotated[list[str] | None, Option(help=READS_OF)] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Report what would happen and change nothing.")] = False,
    give_up: Annotated[bool, Option("--give-up", help=GIVE_UP)] = False,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Import files, each whole or not at all."""
    from evalcore.importing import Options, import_file, missing_options
    from evalcore.importing.staging import give_up as leave
    from evalcore.study.acting import prepare_search

    if give_up == bool(paths):
        refuse(f"expected {'no file beside --give-up' if give_up else 'files to import'}, got {len(paths or ())}")
    if mapping is not None and format_name is not None:
        refuse("expected --mapping or --format, got both: the mapping names its format")
    reports = []
    with console.study(db) as engine:
        if give_up:
            left = leave(engine, console.actor(engine))
            n_done = f"{left.n_done:,} of its {left.n_rows:,} rows are in the study and stay"
            console.say(f"{left.name}: given up; {n_done}")
            return
        names = None if mapping is None else _mapping(engine, mapping)
        means: dict[str, Any] = {"dataset": dataset, "confidence_means": confidence_means, "reads_of": reads_of or ()}
        for path in paths or ():
            who = {"model": model, "judge": judge}
            if sys.stdin.isatty() and not as_json:
                of_format = format_name if names is None else names.format
                said = Options(model=model, judge=judge)
                for word in missing_options(path, format_name=of_format, options=said):
                    who[word] = prompt(f"{path.name} does not say which {word} it is from; {word}")
            size = None if path.suffix == ".gz" or not path.exists() else path.stat().st_size
            means |= {"format_name": format_name, "names": names, "dry_run": dry_run, **who}
            try:
                with console.progress(path.name) as bar:
                    means["progress"] = lambda done, bar=bar, size=size: bar(done, size)
                    report = import_file(engine, path, actor=console.actor(engine), **means)
            except ImportFailed as failed:
                if any("ill in " in fault for fault in failed.faults):
                    console.err.print(FIELDS, markup=False)
                raise
            if not dry_run:
                with console.err.status("Preparing the search"):
                    prepare_search(engine)
            if not as_json:
                _say(path, report)
            reports.append(asdict(report))
    if as_json:
        console.print_json(reports)


def _mapping(engine: "Engine", name: str) -> Any:
    from evalcore.importing import mapping
    from evalcore.study.db import reading

    path = Path(name)
    with reading(engine) as session:
        known = mapping.kept(session)
    if name in known and not path.exists():
        return known[name]
    if not path.exists():
        msg = f"--mapping: expected a file or one of the study's mappings {', '.join(known) or '(it keeps none)'}, got {name}"
        refuse(msg)
    return mapping.parse(console.content(path).decode(errors="replace"), path.name)


def _say(path: Path, report: "ImportReport") -> None:
    ending = " (dry run)" if report.dry_run else ""
    console.out.print(f"[bold]{path.name}[/]: {report.format}, {counted(report.rows, 'row')}{ending}")
    console.say(*(f"  {line}" for line in report.sentences()), *(f"    {row}" for row in report.named()))
    if report.meanings_missing:
        console.say("    Say --confidence-means met or --confidence-means right.")
    if report.flow:
        import pandas as pd

        from evalcore.triage import case_flow

        flow = pd.DataFrame(report.flow)
        labels = case_flow.mapping(flow)
        console.say(f"  {case_flow.sentence(flow)}")
        console.show(case_flow.label_columns(labels.head(MAX_FLOW_LINES)))
        if len(labels) > MAX_FLOW_LINES:
            console.say(f"  and {counted(len(labels) - MAX_FLOW_LINES, 'label')} more: see --json")


def formats() -> None:
    """List the formats that can be imported, with their fields."""
    from evalcore.importing.formats import FORMATS

    for name, one in FORMATS.items():
        console.out.print(f"[bold]{name}[/]  {one.title}")
        table = console.grid(("", ""), one.columns.items())
        table.show_header = False
        console.out.print(table)
    console.say(FIELDS)


def template(
    format_name: Annotated[str, Argument(metavar="FORMAT", help="One of `overread formats`.")],
    path: Annotated[Path | None, Argument(help="A new file; default: the format's name in this folder.")] = None,
) -> None:
    """Write a file of a format to begin with: invented rows, with the columns or keys in their places."""
    from evalcore.importing.formats import template as found

    source = found(format_name)
    path = path or Path(source.name)
    if path.exists():
        refuse(f"{path}: expected a new file, and it exists already: choose another name")
    console.write_whole(path, source.read_bytes())
    console.say(f"{path}: replace its rows by yours, then overread import {path}")


def download(
    benchmark: Annotated[str, Argument(help="healthbench")],
    part: Annotated[str, Option(help="eval, hard, consensus or meta")] = "eval",
    folder: Annotated[Path, Option(help="Where the file is kept.")] = Path(),
    db: console.Db = None,
) -> None:
    """Fetch an official file, with resume, and import it. Its address is set by OVERREAD_HEALTHBENCH_URL."""
    from evalcore.importing.downloading import download as fetch

    if benchmark != "healthbench":
        refuse(f"expected healthbench, got {benchmark!r}")
    with console.progress(f"healthbench {part}") as bar:
        path = fetch(part, base_url=settings().healthbench_url, folder=folder, progress=bar)
    import_([path], db=db)


def composition(
    by: Annotated[str, Option(help="Some of these groupings, joined by commas.")] = COMPOSED,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """What the study is made of and what physicians have read of it, beside the published counts of the full HealthBench."""
    from evalcore.rubric import benchmark, composition as metric, composition_queries as queries
    from evalcore.study.db import reading
    from evalcore.study.frames import records

    wanted = console.some_of("--by", by, metric.GROUPINGS)
    with console.study(db) as engine, reading(engine) as session:
        frames = queries.load(session)
        sizes = metric.sizes(**frames, subsets=queries.subset_sizes(session))
    tables = {metric.Grouping(word): metric.parts(word, **frames) for word in wanted}
    spreads = metric.spreads(**frames)
    sentences = [sentence for grouping, table in tables.items() for sentence in metric.findings(grouping, table)]
    weighting = benchmark.weighting(frames["examples"])
    if as_json:
        groups = [
            {"grouping": grouping, "unit": grouping.unit, **row}
            for grouping, table in tables.items()
            for row in records(table.drop(columns=["label", "n_hidden"]))
        ]
        weights = weighting and {name: value for name, value in vars(weighting).items() if name != "weights"}
        tables_of_all = {"sizes": records(sizes), "spreads": records(spreads)}
        console.print_json(tables_of_all | {"groups": groups, "sentences": sentences, "weights": weights})
        return
    console.show(metric.number_columns(sizes, metric.SIZES))
    console.show(metric.number_columns(spreads, metric.SPREADS))
    for grouping, table in tables.items():
        console.show(metric.part_columns(grouping, table))
    if weighting:
        sentences.append(benchmark.weighting_sentence(weighting))
    console.say(*sentences)


def scores(
    by: Annotated[str, Option(help=f"Some of {GROUPINGS.replace(',', ', ')}, joined by commas.")] = GROUPINGS,
    db: console.Db = None,
    as_json: console.Json = False,
) -> None:
    """Rubric scores by model, judge and data set. The raw mean stands beside the clipped score.

    Of HealthBench the length-adjusted score stands beside them: of each response score - penalty (characters - 2000) / 500, the mean raw and clipped; penalty
    .0299, of hard .0392, of consensus .0020, of professional .0147. It is empty elsewhere, by axis and level, and where the text of a response is not known.
    """
    from evalcore.rubric.length_adjusted import with_length_adjusted
    from evalcore.rubric.scores import REPORTED_GROUPINGS, mean_scores, scores_of_verdicts
    from evalcore.study import frames
    from evalcore.study.db import reading

    wanted = console.some_of("--by", by, REPORTED_GROUPINGS)
    with console.study(db) as engine, reading(engine) as session:
        verdicts, lengths = frames.verdicts(session, kind=RaterKind.JUDGE), frames.lengths(session)
    table = mean_scores(with_length_adjusted(scores_of_verdicts(verdicts, wanted), lengths))
    if as_json:
        console.print_json(frames.records(table))
        return
    if table.empty:
        console.say("No scores yet: import responses with a judge's verdicts first.")
        return
    if table["length_adjusted"].isna().all():
        table = table.drop(columns=["raw_length_adjusted", "length_adjusted"])
    numbers = table.select_dtypes("float").map(lambda value: decimal(value, 4))
    console.show({str(name): numbers.get(name, column) for name, column in table.items()})


def export(
    path: Path,
    what: Annotated[str, Option(help=WHAT)] = "labels",
    file_format: Annotated[str | None, Option("--format", help=AS)] = None,
    judge: Annotated[str | None, Option(help=WHOSE)] = None,
    read_only: Annotated[bool, Option("--read-only", help="Only items that a physician has read.")] = False,
    model: Annotated[str | None, Option(help=MODEL)] = None,
    dataset: Annotated[str | None, Option(help="Only this data set.")] = None,
    db: console.Db = None,
) -> None:
    """Write labels, verdicts, scores, criteria at fault, acuity or cases of triage to a file, with a codebook beside it."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own keeps a tenth more than it needs
    from evalcore.export import acts, tables as exporting

    file_format = file_format or {".csv": "csv", ".parquet": "parquet", ".jsonl": "jsonl"}.get(path.suffix, "csv")
    if file_format not in (known := [*exporting.WRITERS, *acts.FORMATS]):
        refuse(f"--format: expected {', '.join(known[:-1])} or {known[-1]}, got {file_format!r}")
    part = exporting.Part(judge=judge, dataset=dataset, model=model, read_only=read_only)
    with console.study(db) as engine:
        codebook = exporting.codebook(engine, what) if file_format in exporting.WRITERS else ""
        with console.whole(path) as file:
            taken = acts.take(engine, what, file_format, file, actor=console.actor(engine), part=part)
    if codebook:
        console.write_whole(path.with_name(path.name + ".codebook.md"), codebook.encode())
    console.say(f"{path}: {counted(taken.n_rows, 'row')}", taken.left_out)


def split(
    folder: Annotated[Path, Argument(help="Where train.jsonl, dev.jsonl and test.jsonl are written.")],
    seed: Annotated[int, Option(help=SEED)] = 0,
    shares: Annotated[str, Option(help="Percentages of train, dev and test, which add up to 100.")] = "60,20,20",
    model: Annotated[str | None, Option(help="Only this model's responses.")] = None,
    dataset: Annotated[str | None, Option(help="Only this data set.")] = None,
    db: console.Db = None,
) -> None:
    """Write train, development and test sets for a judge: what physicians label, with their rationales; no conversation in two sets.

    One JSON object a line, one line an item: set, seed, shares, dataset, example_id, evaluation, model, sample_index, response_id, criterion_position,
    criterion, points, conversation, response, reference_label (met or not_met), reference_source, n_reads, rationales (each with by: reader or
    adjudicator, label and text) and canary. A conversation that waits for a blind read is in none of them. The audit trail keeps the hash of each file, by
    which `overread judge --made-with` and `overread judge-check` know it again.
    """
    from evalcore.export import acts, judging_material, tables as exporting
    from evalcore.judges.splits import Split, parse_shares

    how, part = Split(seed, parse_shares(shares)), exporting.Part(dataset=dataset, model=model)
    with console.study(db) as engine:
        sets = acts.take_split(engine, how, part, actor=console.actor(engine))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in sets.files.items():
        console.write_whole(folder / name, content)
    console.say(*judging_material.left_out_words(sets))


def backup(
    path: Annotated[Path, Argument(help="A new file; of PostgreSQL a zip file.")], db: console.Db = None
) -> None:
    """Copy the study while it is in use, and prove the copy. `cp` would lose what SQLite has not yet moved into the file.

    Exit status 1 where nothing was written, or where the copy is whole and its audit trail does not hold.
    """
    from evalcore.study import backups

    with console.study(db) as engine:
        report = backups.backup(engine, path)
    console.say(f"{path}: {counted(path.stat().st_size, 'byte')}")
    _say_how_far(report)


def restore(path: Annotated[Path, Argument(help="What `overread backup` wrote.")], db: console.Db = None) -> None:
    """Make a study from a backup where there is none yet; nothing is overwritten.

    Exit status 1 where nothing was restored, or where the study was restored and its audit trail does not hold.
    """
    from evalcore.study import backups

    report = backups.restore(path, db or settings().db)
    console.say(f"Restored from {path}")
    _say_how_far(report)


def copy(
    source: Annotated[str, Option("--from", help="Database URL, or path of a SQLite file.")],
    target: Annotated[str, Option("--to", help="The same, of a database that holds nothing yet.")],
) -> None:
    """Copy a study into another database, SQLite or PostgreSQL, and prove the copy. The source stays as it is; let nobody write to it meanwhile.

    Exit status 1 where nothing was copied, or where the copy's audit trail does not hold.
    """
    from evalcore.study.backups import copy_study

    _say_how_far(copy_study(source, target))


def _say_how_far(report: "ChainReport") -> None:
    console.say(report.sentence)
    if not report.holds:
        raise Exit(1)

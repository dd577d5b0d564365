"""Read a file, check every row, store all or nothing."""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import Session

from evalcore import store
from evalcore.acting import allow
from evalcore.db import writing
from evalcore.errors import ImportFailed, RowFault
from evalcore.importers import CONFIDENT, inspect_logs, judge_verdicts, simple_evals
from evalcore.importers.options import Options
from evalcore.importers.records import Graded
from evalcore.importing import acuity
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.examples import Examples
from evalcore.importing.faults import Faults
from evalcore.importing.inspect_samples import Samples
from evalcore.importing.opening import Opened
from evalcore.importing.readers import Readers
from evalcore.importing.recognising import recognise
from evalcore.importing.report import ImportReport
from evalcore.importing.responses import Responses
from evalcore.level_reading import read_levels
from evalcore.policies import check_can_import, check_can_import_reads_of
from evalcore.queries import lookups, triage_settings
from evalcore.schema import CASES, FILE_IMPORTED, ConfidenceMeaning, Example, RaterKind, Source, Viewer
from evalcore.settings import settings
from evalcore.store import Bulk
from evalcore.store.triage import set_confidence_meaning

__all__ = ["ImportReport", "Options", "import_file", "told_by_name"]

BATCH = 200
ROW_WORDS = {simple_evals.NAME: "entry", inspect_logs.NAME: "sample"}
"""What a row of a format is called; else a line."""
_SUBSETS = ("oss_eval", "hard", "consensus")
_RESULT_NAME = re.compile(
    r"^(?P<dataset>[A-Za-z0-9-]+?)(?:_(?P<subset>hard|consensus))?_(?P<model>.+?)_\d{8}_\d{6}(?:_(?P<suffix>.+))?$"
)


class _Undo(Exception):
    """A way out of the transaction, not an error."""


def told_by_name(file_name: str) -> Options:
    """What a file's name tells of its content.

    >>> told_by_name("healthbench_hard_gpt-x_20260113_121425_tta_allresults.json")
    Options(dataset='healthbench', subset='hard', model='gpt-x_tta', judge=None)
    >>> told_by_name("consensus_2025-05-09-20-00-46.jsonl.gz").subset
    'consensus'
    """
    stem = file_name.removesuffix(".gz").rsplit(".", 1)[0].removesuffix("_allresults")
    if found := _RESULT_NAME.match(stem):
        model = "_".join(part for part in (found["model"], found["suffix"]) if part)
        return Options(dataset=found["dataset"], subset=found["subset"], model=model)
    return Options(subset=next((subset for subset in _SUBSETS if re.search(rf"(^|[_-]){subset}([_-]|$)", stem)), None))


def named_dataset(name: str) -> tuple[str, str | None]:
    """A data set's name with its part taken off.

    >>> named_dataset("healthbench_hard"), named_dataset("clinic")
    (('healthbench', 'hard'), ('clinic', None))
    """
    for subset in _SUBSETS:
        if name.endswith("_" + subset):
            return name.removesuffix("_" + subset), subset
    return name, None


def missing_options(
    path: Path, *, name: str | None = None, format_name: str | None = None, options: Options
) -> list[str]:
    """Which of `model` and `judge` a file of this format needs, or may need, and neither it nor the caller says."""
    found = _recognised(path, name, format_name)
    if found.format == inspect_logs.NAME:
        return found.log.missing(options)
    if found.format != simple_evals.NAME:
        return []
    return [
        word for word in ("model", "judge") if not (getattr(options, word) or getattr(told_by_name(found.name), word))
    ]


def import_file(  # noqa: PLR0913 - what a person may say about a file
    engine: Engine,
    path: Path,
    *,
    actor: Viewer,
    name: str | None = None,
    format_name: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    judge: str | None = None,
    confidence_means: ConfidenceMeaning | None = None,
    reads_of: Collection[str] = (),
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _done: None,
) -> ImportReport:
    """Import one file whole, or refuse it whole.

    Args:
        engine: The study.
        path: Where the bytes are, plain or gzip.
        actor: Who imports.
        name: The file's own name, where `path` is a copy of an upload.
        format_name: A key of `importers.FORMATS`; recognised from the content where it is None.
        dataset: Data set of the examples, or the evaluation that responses were made for; `healthbench_hard` names its part.
        model: Who answered, where the file does not say.
        judge: Who judged, where the file does not say.
        confidence_means: What the confidences of judges in this file are the probability of. Of levels of care it can only be that the judge's own
            label is right, which is taken for granted there.
        reads_of: Names of people with an account here whose reads, made elsewhere, the file brings: a lead says so.
        dry_run: Do everything, then undo it: the report is what an import would do.
        progress: Is told how many (unpacked) bytes have been read.

    Raises:
        NotAllowed: Whoever acts is no researcher and no lead; or, with `reads_of`, no lead.
        ImportFailed: With the first 20 faults; the study is as it was.
    """
    file = _recognised(path, name, format_name)
    options = _options(file, dataset=dataset, model=model, judge=judge)
    _check_confidence_means(file, confidence_means)
    dataset_name = CASES if file.format in acuity.TAKERS else options.evaluation
    report = ImportReport(file=file.name, format=file.format, dataset=dataset_name, dry_run=dry_run)
    report.source_hash, report.reads_of = file.content_hash(), list(reads_of)
    meaning = f"{report.source_hash} {file.format} {options}"
    content_hash = sha256(meaning.encode()).hexdigest()
    with writing(engine, patient=True) as session:
        allow(session, actor, check_can_import)
        before = lookups.imported_before(session, content_hash) is not None
        if before and confidence_means is None:
            report.already_imported = True
            return report
        if reads_of:
            allow(session, actor, check_can_import_reads_of)
        _import(session, file, options, report, progress)
        _set_meanings(session, file, report, confidence_means, actor.signature)
        if dry_run or report.adds_nothing:
            session.rollback()
            store.forget_written(session)
        else:
            _record(session, None if before else content_hash, report, actor.signature)
    if report.texts_new and not dry_run:
        _read_levels(engine, report, actor)
    return report


def _read_levels(engine: Engine, report: ImportReport, actor: Viewer) -> None:
    """Let the parser and the rules read the levels of the texts that came: an act of its own, with its own event."""
    report.levels_read.extend(read_levels(engine, actor=actor).sentences())


def _check_confidence_means(file: Opened, meaning: ConfidenceMeaning | None) -> None:
    if meaning is not None and file.format not in CONFIDENT:
        expected = f"nothing, as {file.format} brings no confidences"
    elif meaning is ConfidenceMeaning.MET and file.format in acuity.TAKERS:
        expected = "right, as a level of care is no criterion that can be met"
    else:
        return
    raise ImportFailed([f"{file.name}: --confidence-means {meaning} came, expected {expected}"])


def _set_meanings(
    session: Session, file: Opened, report: ImportReport, meaning: ConfidenceMeaning | None, actor: str
) -> None:
    """Keep what the confidences mean, as far as it is known."""
    known = triage_settings.confidence_meanings(session)
    for judge in report.confident_judges:
        said = meaning
        if said is None and file.format in acuity.TAKERS and judge not in known:
            said = ConfidenceMeaning.RIGHT
        if said is not None:
            report.meanings_set += set_confidence_meaning(session, judge, said, actor=actor)
        elif judge not in known:
            report.meanings_missing.append(judge)


def _recognised(path: Path, name: str | None, format_name: str | None) -> Opened:
    shown = (name or path.name).encode(errors="replace").decode().replace("\x00", "?")  # a name may hold any bytes
    return recognise(path, name=shown, format_name=format_name, max_line_bytes=settings().max_line_bytes)


def _options(file: Opened, *, dataset: str | None, model: str | None, judge: str | None) -> Options:
    told = told_by_name(file.name)
    family, subset = named_dataset(dataset) if dataset else (told.dataset, told.subset)
    options = Options(dataset=family, subset=subset, model=model or told.model, judge=judge)
    for value, word in ((options.dataset, "--dataset"), (options.model, "--model"), (options.judge, "--judge")):
        if value is not None and not (
            value.strip() and value.isprintable()
        ):  # a half surrogate is not printable either
            raise ImportFailed([f"{file.name}: {word} {value!r} came, expected a name"])
    if file.format == simple_evals.NAME:
        unsaid = [f"--{word}" for word in ("model", "judge") if not getattr(options, word)]
        if unsaid:
            said = (
                "a results file does not record it"
                if unsaid == ["--judge"]
                else "neither the file nor its name says it"
            )
            raise ImportFailed([f"{file.name}: {' and '.join(unsaid)}: nothing came, expected a name ({said})"])
    elif file.format == inspect_logs.NAME:
        options = replace(options, model=model or file.log.known.model)
        file.log.check(options)
    elif file.format != judge_verdicts.NAME and model is None:
        options = replace(options, model=None)
    return options


def _import(
    session: Session, file: Opened, options: Options, report: ImportReport, progress: Callable[[int], None]
) -> None:
    bulk = Bulk(session, source=Source.IMPORT, source_hash=report.source_hash)
    examples = Examples(session, bulk, report)
    row_word = "row" if file.is_parquet else ROW_WORDS.get(file.format, "line")
    faults = Faults(file.name, row_word=row_word)
    hand = Hand(session, bulk, report, faults, Readers(session, faults, reads_of=report.reads_of))
    responses = Responses(hand, examples, options)
    taker: Taker | None = acuity.taker(file.format, hand)
    if file.format == inspect_logs.NAME:
        taker = Samples(hand, responses, options, file.log.known)
    size = BATCH if taker is None else taker.batch
    batch: list[tuple[int, object]] = []

    def write() -> None:
        if batch and taker is not None:
            taker.add([row for _, row in batch])
        elif batch:
            _write(batch, options, examples, responses, faults)
            _note_confidences(batch, report)
        batch.clear()

    for number, found in file.rows(options, progress):
        if isinstance(found, RowFault):
            faults.add(str(found), number)
        else:
            report.rows += 1
            batch.extend((number, row) for row in found)
        if len(batch) >= size:
            write()
    write()
    if taker is not None:
        taker.finish()
    if not report.rows and not faults.count:
        faults.add("no row came, expected at least one")
    if report.rows and report.without_partner == report.rows:
        faults.add(
            f"none of the {report.rows} rows belongs to anything in the study; {report.without_partner_named[0]}"
        )
    faults.raise_if_any()


def _write(
    batch: list[tuple[int, object]], options: Options, examples: Examples, responses: Responses, faults: Faults
) -> None:
    """Check a batch against the study and write it; after the first fault, only check."""
    graded = [row for _, row in batch if isinstance(row, Graded)]
    if graded:
        responses.add(graded)
    given = [(number, row) for number, row in batch if isinstance(row, Example)]
    if given:
        examples.load(options.dataset, {row.prompt_id for _, row in given})
        for number, row in given:
            with faults.caught(number):
                examples.add_row(row, number)
        if not faults.count:
            examples.flush()


def _note_confidences(batch: list[tuple[int, object]], report: ImportReport) -> None:
    for _, row in batch:
        for verdict in row.verdicts if isinstance(row, Graded) else ():
            if verdict.confidence is not None and verdict.rater_kind is RaterKind.JUDGE:
                report.confident(verdict.rater)


def _record(session: Session, content_hash: str | None, report: ImportReport, actor: str) -> None:
    # a file with rows left out may be imported again once their partners are here
    if content_hash is not None and not report.without_partner:
        store.add_imported_file(session, content_hash=content_hash, name=report.file, format_name=report.format)
    store.append_event(session, actor=actor, action=FILE_IMPORTED, subject=report.file, detail=report.for_audit())

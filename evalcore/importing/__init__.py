"""Read a file, check every row, store all or nothing."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing import staging
from evalcore.importing.context import ImportReport, Kind, Options
from evalcore.importing.examples import as_stored
from evalcore.importing.files.opening import Opened, recognise
from evalcore.importing.mapping import OwnNames
from evalcore.study.db import Engine, importing_file, reading, reading_apart, writing
from evalcore.study.lookups import examples_by, is_imported
from evalcore.study.schema import PROFESSIONAL, ConfidenceMeaning, Viewer
from evalcore.study.store import forget_written

__all__ = ["ImportReport", "Options", "import_file", "told_by_name"]

OWN = "own"
"""The data set of a file of one's own that names none and speaks of no example of the study."""
_LOOKED_INTO = 20  # rows of it
_SUBSETS = ("oss_eval", "hard", "consensus", PROFESSIONAL)
_RESULT_NAME = re.compile(
    r"^(?P<dataset>[A-Za-z0-9-]+?)(?:_(?P<subset>hard|consensus|professional))?_(?P<model>.+?)_\d{8}_\d{6}(?:_(?P<suffix>.+))?$"
)


def told_by_name(file_name: str) -> Options:
    """What a file's name tells of its content."""
    stem = file_name.removesuffix(".gz").rsplit(".", 1)[0].removesuffix("_allresults")
    if found := _RESULT_NAME.match(stem):
        model = "_".join(part for part in (found["model"], found["suffix"]) if part)
        return Options(dataset=found["dataset"], subset=found["subset"], model=model)
    return Options(subset=next((subset for subset in _SUBSETS if re.search(rf"(^|[_-]){subset}([_-]|$)", stem)), None))


def named_dataset(name: str) -> tuple[str, str | None]:
    """A data set's name with its part taken off."""
    for subset in _SUBSETS:
        if name.endswith("_" + subset):
            return name.removesuffix("_" + subset), subset
    return name, None


def missing_options(path: Path, *, format_name: str | None = None, options: Options) -> list[str]:
    """Which of `model` and `judge` a file of this format needs, or may need, and neither it nor the caller says."""
    file = recognise(path, name=path.name, format_name=format_name)
    if file.kind is Kind.LOG:
        return file.log.missing(options)
    if file.kind is not Kind.DOCUMENT:
        return []
    by_name = told_by_name(file.name)
    return [word for word in ("model", "judge") if not (getattr(options, word) or getattr(by_name, word))]


@reading_apart()
def import_file(  # noqa: PLR0913 - what a person may say about a file
    engine: Engine,
    path: Path,
    *,
    actor: Viewer,
    name: str | None = None,
    format_name: str | None = None,
    names: OwnNames | None = None,
    dataset: str | None = None,
    model: str | None = None,
    judge: str | None = None,
    confidence_means: ConfidenceMeaning | None = None,
    reads_of: Collection[str] = (),
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda _done: None,
) -> ImportReport:
    """Import one file whole, or refuse it whole: ImportFailed, with the first 20 faults; NotAllowed: whoever acts is no researcher and no lead.

    ImportFailed as well while somebody else is importing.
    `names`: what a file with columns of its own calls the fields.
    `name` is the file's own, where `path` is a copy of an upload; what is None is taken from the content or the name. `reads_of`: people with an account here
    whose reads, made elsewhere, the file brings: a lead says so. `progress` is told how many (unpacked) bytes have been read.
    """
    file = recognise(path, name=name or path.name, format_name=format_name, names=names)
    options = _options(file, dataset=dataset, model=model, judge=judge)
    if file.format.is_own and not dataset and told_by_name(file.name).model is None:
        own = _dataset_of(engine, file, options)
        options = replace(options, dataset=own, subset=None if own == OWN else options.subset)
    expected = ""
    if confidence_means is not None and not file.format.has_confidences:
        expected = f"nothing, as {file.format.name} brings no confidences"
    elif confidence_means is ConfidenceMeaning.MET and file.format.is_triage:
        expected = "right, as a level of care is no criterion that can be met"
    if expected:
        raise ImportFailed([f"{file.name}: Confidence refers to: expected {expected}, got {confidence_means}"])
    source_hash = file.content_hash()
    mapped = "" if names is None else f" {names}"
    content_hash = sha256(f"{source_hash} {file.format.name} {options}{mapped}".encode()).hexdigest()
    work = staging.Work(file, options, confidence_means, source_hash, content_hash, tuple(reads_of), dry_run=dry_run)
    staging.finish(engine)
    report, stages = work.report(), staging.can_stage(engine)
    is_large = stages and path.stat().st_size > staging.AT_ONCE_BYTES
    with staging.turn(engine, work, actor, progress) as told, staging.few_collections():
        rows = iter(()) if is_large else work.rows(told if engine.dialect.name == "postgresql" else progress, report)
        is_done = False
        with suppress(staging.TooLong), writing(engine, patient=True, with_broken=True) as session:
            work.allow(session, actor)
            work.begin(session, actor.signature)
            report.already_imported = confidence_means is None and is_imported(session, content_hash)
            if not report.already_imported:
                if staging.is_broken_off(session, engine, work) or is_large:
                    raise staging.TooLong
                work.join(session, rows, report, touched=importing_file(engine) if stages else None)
                work.set_meanings(session, report, actor.signature)
                if dry_run or report.adds_nothing:
                    session.rollback()
                    forget_written(session)
                else:
                    work.record(session, report, actor.signature)
            is_done = True
        if not is_done:
            report = staging.in_parts(engine, work, actor, progress, checking=told)
    if report.texts_new and not dry_run:
        from evalcore.triage.acts import read_levels  # noqa: PLC0415 - with pandas, which most imports do without

        report.levels_read.extend(read_levels(engine, actor=actor).sentences())  # an act of its own, with its own event
    if not dry_run:
        from evalcore.study import snapshot  # noqa: PLC0415 - with pyarrow, once all rows are written

        snapshot.extend(engine)
    return report


def _dataset_of(engine: Engine, file: Opened, options: Options) -> str:
    """The data set whose examples the first rows of a file of one's own speak of; of new ones HealthBench where they bear its tags, else OWN."""
    first = islice(file.rows(options, lambda _done: None, None), _LOOKED_INTO)
    rows = [row for _, found in first if not isinstance(found, RowFault) for row in found]
    names = {row.prompt_id for row in rows if row.prompt_id}
    asked = {as_stored(row.messages) for row in rows if row.messages and not row.prompt_id}
    with reading(engine) as session:
        known = [*examples_by(session, "prompt_id", names), *examples_by(session, "messages", asked)]
    if found := [example["dataset"] for example in known if not example["is_case"]]:
        return str(found[0])
    return options.dataset if any(tag.startswith("theme:") for row in rows for tag in row.tags) else OWN


def _options(file: Opened, *, dataset: str | None, model: str | None, judge: str | None) -> Options:
    by_name = told_by_name(file.name)
    family, subset = named_dataset(dataset) if dataset else (by_name.dataset, by_name.subset)
    model = model or (by_name.model if file.format.model_in_name else None)
    options = Options(dataset=family, subset=file.format.part or subset, model=model, judge=judge)
    for value, word in ((options.dataset, "Data set"), (options.model, "Model"), (options.judge, "Judge")):
        # a half surrogate is not printable either
        if value is not None and not (value.strip() and value.isprintable()):
            raise ImportFailed([f"{file.name}: {word}: expected a name of printable characters, got {value!r}"])
    if file.kind is Kind.DOCUMENT and not (options.model and options.judge):
        missing = [word.capitalize() for word in ("model", "judge") if not getattr(options, word)]
        why = "results files do not record it" if options.model else "neither the file nor its name says it"
        raise ImportFailed([f"{file.name}: Fill in {' and '.join(missing)}: {why}"])
    if file.kind is Kind.LOG:
        options = replace(options, model=model or file.log.known.model)
        file.log.check(options)
    return options

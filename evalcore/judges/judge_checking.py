"""Judge-check: a file of gold labels, as export writes it, beside a judge's labels in the study."""

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.importing.formats.wire import shown
from evalcore.judges.gold_check import failures, gold_check
from evalcore.reading.reference import ADJUDICATED, AGREED, SINGLE
from evalcore.study import contents, frames, lookups
from evalcore.study.csv_cells import unguarded
from evalcore.study.schema import Label, RaterKind

SOURCES = (ADJUDICATED, AGREED, SINGLE)
NEEDED = ("dataset", "example_id", "model", "criterion_position", "reference_label", "reference_source")
MANY_EXAMPLES = 5_000  # more are read whole, not by name


@dataclass(frozen=True)
class GoldLabel:
    """A line of the file: which item, and what it is labelled.

    Attributes:
        line: Where it begins, from 1.
        response_id, evaluation, sample_index: None where the file does not say.
        criterion: Its text; None where the file does not say.
    """

    line: int
    dataset: str
    prompt_id: str
    model: str
    response_id: int | None
    evaluation: str | None
    sample_index: int | None
    position: int
    criterion: str | None
    label: Label
    source: str


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        n_rows: Lines of the file.
        n_used: Items with a gold label, met or not met, and the judge's.
        n_other_source: Lines whose label comes from elsewhere than wanted, unsettled ones among them.
        n_cannot_assess: Lines whose gold label is that.
        n_not_in_study, n_not_labelled: Items without the judge's label: the study does not hold them; it does, and the judge has
            not labelled them or could not.
        measures: As `gold_check` gives them.
        failures: What was not reached, a sentence each; empty where the check is passed.
    """

    n_rows: int
    n_used: int
    n_other_source: int
    n_cannot_assess: int
    n_not_in_study: int
    n_not_labelled: int
    measures: pd.DataFrame
    failures: list[str]


def read_gold(content: bytes, name: str) -> list[GoldLabel]:
    """The lines of a file of labels.

    Raises:
        OverreadError: It is no such file; with the line and column.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: byte {error.start + 1}: expected UTF-8"
        raise OverreadError(msg) from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        missing = [column for column in NEEDED if column not in (reader.fieldnames or ())]
        if missing:
            msg = f"{name} line 1: {', '.join(missing)}: no such column came, expected the labels that `overread export labels.csv` writes"
            raise OverreadError(msg)
        return list(_rows(reader, name))
    except csv.Error as error:
        msg = f"{name} line {reader.line_num}: no CSV: {error}"
        raise OverreadError(msg) from error


def _rows(reader: "csv.DictReader[str]", name: str) -> Iterator[GoldLabel]:
    line = reader.line_num + 1
    for cells in reader:
        place = f"{name} line {line}"
        yield _gold_label(line, place, {column: unguarded(cell or "") for column, cell in cells.items() if column})
        line = reader.line_num + 1


def _gold_label(line: int, place: str, cells: Mapping[str, str]) -> GoldLabel:
    def fault(column: str, expected: str) -> OverreadError:
        return OverreadError(f"{place}: {column}: {shown(cells.get(column, ''))} came, expected {expected}")

    def number(column: str, least: int) -> int | None:
        cell = cells.get(column, "")
        if not cell:
            return None
        if not (cell.isascii() and cell.isdigit() and int(cell) >= least):
            raise fault(column, f"a whole number from {least}")
        return int(cell)

    for column in ("dataset", "example_id", "model", "criterion_position", "reference_source"):
        if not cells[column]:
            raise fault(column, "a value")
    label, source = cells["reference_label"], cells["reference_source"]
    if label not in set(Label) and (label or source in SOURCES):
        column = "reference_label"
        raise fault(column, ", ".join(Label))
    return GoldLabel(
        line=line,
        dataset=cells["dataset"],
        prompt_id=cells["example_id"],
        model=cells["model"],
        response_id=number("response_id", 1),
        evaluation=cells.get("evaluation") or None,
        sample_index=number("sample_index", 0),
        position=number("criterion_position", 1) or 0,
        criterion=cells.get("criterion") or None,
        label=Label(label or Label.CANNOT_ASSESS),
        source=source,
    )


def check_judge(
    session: Session,
    gold: Collection[GoldLabel],
    judge: str,
    *,
    name: str,
    sources: Collection[str],
    bounds: Mapping[str, float],
    by: str,
    max_missing: int,
) -> Report:
    """Hold a judge's labels against gold labels.

    An item is found by data set, example, model, position of the criterion, and evaluation and sample_index where the file has them;
    several responses that fit are told apart by response_id.

    Args:
        session: Of the study.
        gold: As `read_gold` gives them.
        judge: Whose labels.
        name: Of the file, for errors.
        sources: Some of `SOURCES`.
        bounds: Measure to the least value.
        by: What has to reach them: `gold_check.POINT` or `gold_check.LOW`.
        max_missing: So many items may be without the judge's label.

    Raises:
        OverreadError: There is no such judge, no line has a wanted source, an item comes twice or fits several responses, or its criterion
            reads otherwise in the study.
    """
    if judge not in (judges := contents.judges(session)):
        msg = f"--judge: {judge!r} came, expected one of {', '.join(judges) or 'none, the study has no judge yet'}"
        raise OverreadError(msg)
    wanted = [row for row in gold if row.source in sources]
    if not wanted:
        msg = f"{name}: reference_source: no line with {' or '.join(sources)} came, expected one at least"
        raise OverreadError(msg)
    assessed = [row for row in wanted if row.label is not Label.CANNOT_ASSESS]
    items = _found(session, assessed, name)
    labels = _labels(session, {example for _, example in items.values()}, judge)
    pairs = pd.DataFrame(
        [
            {
                "gold": row.label is Label.MET,
                "judged": labels[items[row.line][0]] is Label.MET,
                "example": items[row.line][1],
            }
            for row in assessed
            if row.line in items and labels.get(items[row.line][0], Label.CANNOT_ASSESS) is not Label.CANNOT_ASSESS
        ],
        columns=["gold", "judged", "example"],
    )
    measures = gold_check(pairs)
    n_not_in_study = len(assessed) - len(items)
    n_not_labelled = len(items) - len(pairs)
    said = failures(measures, bounds, by=by)
    if n_not_in_study + n_not_labelled > max_missing:
        said.append(
            f"items without the judge's label: {n_not_in_study + n_not_labelled:,} came, at most {max_missing:,} were expected "
            f"({n_not_in_study:,} are not in this study, {n_not_labelled:,} are not labelled by {judge})"
        )
    return Report(
        n_rows=len(gold),
        n_used=len(pairs),
        n_other_source=len(gold) - len(wanted),
        n_cannot_assess=len(wanted) - len(assessed),
        n_not_in_study=n_not_in_study,
        n_not_labelled=n_not_labelled,
        measures=measures,
        failures=said,
    )


def _found(session: Session, gold: Collection[GoldLabel], name: str) -> dict[int, tuple[int, int]]:
    """Of each line whose item the study holds: the numbers of item and example."""
    prompts: dict[str, set[str]] = defaultdict(set)
    for row in gold:
        prompts[row.dataset].add(row.prompt_id)
    examples = [
        int(found["id"])
        for dataset, names in prompts.items()
        for found in lookups.examples_named(session, dataset, names)
    ]
    few = examples if len(examples) <= MANY_EXAMPLES else None
    candidates: dict[tuple[str, str, str], list[tuple[int, int, str, int]]] = defaultdict(list)
    responses = frames.responses(session, example_ids=few)
    columns = ("dataset", "prompt_id", "model", "response_id", "example_id", "evaluation", "sample_index")
    for dataset, prompt, model, *rest in zip(*(responses[column] for column in columns), strict=True):
        candidates[dataset, prompt, model].append((int(rest[0]), int(rest[1]), rest[2], int(rest[3])))
    criteria = frames.criteria(session, example_ids=few)
    rubric = {
        (int(example), int(position)): (int(number), text)
        for example, position, number, text in zip(
            *(criteria[column] for column in ("example_id", "position", "criterion_id", "criterion")), strict=True
        )
    }
    items: dict[int, tuple[int, int]] = {}
    lines: dict[int, int] = {}
    for row in gold:
        place = f"{name} line {row.line}"
        response = _response(row, candidates[row.dataset, row.prompt_id, row.model], place)
        if response is None:
            continue
        number, example = response
        if (example, row.position) not in rubric:
            continue
        criterion, text = rubric[example, row.position]
        if row.criterion is not None and row.criterion.split() != text.split():
            msg = f"{place}: criterion: {shown(row.criterion)} came, where the study has {shown(text)} at position {row.position}"
            raise OverreadError(msg)
        item = number * frames.ITEM_BASE + criterion
        if item in lines:
            msg = f"{place}: the item of line {lines[item]} came again, expected each item once"
            raise OverreadError(msg)
        lines[item] = row.line
        items[row.line] = item, example
    return items


def _response(row: GoldLabel, candidates: list[tuple[int, int, str, int]], place: str) -> tuple[int, int] | None:
    """The numbers of response and example; None where the study has no such response."""
    fitting = [
        (number, example)
        for number, example, evaluation, sample_index in candidates
        if row.evaluation in (None, evaluation) and row.sample_index in (None, sample_index)
    ]
    if len(fitting) > 1:
        fitting = [found for found in fitting if found[0] == row.response_id] or fitting
    if len(fitting) > 1:
        msg = f"{place}: {len(fitting)} responses of {row.model} fit, expected the columns evaluation and sample_index, or response_id of this study"
        raise OverreadError(msg)
    return fitting[0] if fitting else None


def _labels(session: Session, examples: set[int], judge: str) -> dict[int, Label]:
    """The judge's label of each item of these examples; of several prompt versions the newest counts."""
    found = frames.verdicts(
        session, kind=RaterKind.JUDGE, example_ids=sorted(examples) if len(examples) <= MANY_EXAMPLES else None
    )
    mine = found.loc[found["rater"].eq(judge)].sort_values("verdict_id")
    return {int(item): Label(label) for item, label in zip(mine["item_id"], mine["label"], strict=True)}

"""Judge-check: a judge against gold labels, as export writes them, with bounds that it must reach; for the continuous integration of prompts."""

import csv
import io
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evalcore.errors import OverreadError, refuse
from evalcore.importing.context import shown
from evalcore.judges import confusion
from evalcore.judges.confusion import ACCURACY, SENSITIVITY, SPECIFICITY
from evalcore.judges.queries import conversations
from evalcore.judges.splits import MadeWith, check_unseen
from evalcore.reading.reference import ADJUDICATED, AGREED, SINGLE
from evalcore.stats.arrays import Floats
from evalcore.stats.wording import NO_VALUE, decimal
from evalcore.study import contents, frames, lookups
from evalcore.study.csv_cells import unguarded
from evalcore.study.db import Session
from evalcore.study.schema import Label, RaterKind

F1 = "f1"
RATES = (ACCURACY, SENSITIVITY, SPECIFICITY)
MEASURES: Mapping[str, str] = {F1: "balanced F1"} | {rate: rate for rate in RATES}
DEFAULT_MIN_F1 = 0.6  # random labels have .5, published judges .58 to .71 (arXiv 2505.08775)
POINT, LOW = "point", "low"  # what must reach a bound: the measure itself, or the lower end of its interval
SOURCES = (ADJUDICATED, AGREED, SINGLE)
NEEDED = ("dataset", "example_id", "model", "criterion_position", "reference_label", "reference_source")
NUMBERS = {"response_id": 1, "sample_index": 0, "criterion_position": 1}  # the least value of each
MANY_EXAMPLES = 5_000  # more are read whole, not by name


def gold_check(pairs: pd.DataFrame) -> pd.DataFrame:
    """How a judge does on gold labels.

    F1 is balanced: (2TP/(2TP+FP+FN) + 2TN/(2TN+FP+FN)) / 2, with a delete-one-example jackknife; the others are those of `confusion.rates`. A judge
    without an error shows no spread to a jackknife: then the lower end of F1 is that of accuracy. `pairs` has gold and judged (met), and example.

    Returns:
        One row a measure, in the order of `MEASURES`: measure, value, low, high (95 %) in [0, 1], n (items), n_examples, reason (why value
        is NaN; else empty). Sensitivity is NaN where no gold label is met, specificity where all are, F1 in both cases.
    """
    gold, judged = (pairs[name].to_numpy(dtype=bool) for name in ("gold", "judged"))
    counts = np.column_stack([gold & judged, ~gold & judged, gold & ~judged, ~gold & ~judged]).astype(float)
    example = np.asarray(pd.factorize(pairs["example"])[0], dtype=np.int64)
    one = np.zeros(len(gold), dtype=np.int64)
    rates = confusion.rates(counts, np.ones(len(gold)), example, one, 1)
    whole = confusion.sums(one, counts, 1)
    low, high, n_examples = (bound[0] for bound in confusion.f1_interval(one, example, counts, whole, of=_balanced))
    value = _balanced(whole)[0]
    if (gold == judged).all() and not np.isnan(value):
        low, high = rates[ACCURACY]["low"].iloc[0], 1.0
    f1 = {"share": value, "low": low, "high": high, "n": len(gold), "n_clusters": n_examples}
    table = pd.concat([pd.DataFrame([f1])] + [rates[measure][list(f1)] for measure in RATES], ignore_index=True)
    table = table.astype({"n": int}).rename(columns={"share": "value", "n_clusters": "n_examples"})
    table.insert(0, "measure", list(MEASURES))
    why = "no gold label is not met" if gold.all() else "no gold label is met"
    why = why if len(gold) else "no item has both a gold label and the judge's"
    return table.assign(reason=np.where(table["value"].isna(), why, ""))


def _balanced(counts: Floats) -> Floats:
    """Macro F1; a label that the judge never gives has F1 0, one that the gold labels do not hold leaves it NaN."""
    both, judge_only, gold_only, neither = counts.T
    with np.errstate(divide="ignore", invalid="ignore"):
        score = both / (2 * both + judge_only + gold_only) + neither / (2 * neither + judge_only + gold_only)
    return np.where((neither + judge_only > 0) & (both + gold_only > 0), score, np.nan)


def failures(measures: pd.DataFrame, bounds: Mapping[str, float], *, by: str = POINT) -> list[str]:
    """Which bounds (measure to the least value) are not reached by what `by` says, a sentence each; an undefined value reaches no bound."""
    sentences = []
    for row in measures.to_dict(orient="records"):
        name, value = str(row["measure"]), row["value" if by == POINT else "low"]
        if name not in bounds or value >= bounds[name]:
            continue
        what = MEASURES[name] if by == POINT else f"lower end of {MEASURES[name]}"
        why = row["reason"] or "its interval cannot be computed"
        got = f"it is undefined ({why})" if np.isnan(value) else f"got {value:.3f}"
        sentences.append(f"{what}: expected at least {bounds[name]:g}, {got}")
    return sentences


@dataclass(frozen=True)
class Report:
    """What a check came to: counts, the `gold_check`, and bounds not reached, a sentence each (none: passed)."""

    n_rows: int
    n_used: int  # items with a gold label, met or not met, and the judge's
    n_other_source: int  # lines whose label comes from elsewhere than wanted, unsettled ones among them
    n_cannot_assess: int  # lines whose gold label is that
    n_not_in_study: int  # items that the study does not hold
    n_not_labelled: int  # items that it holds and the judge has not labelled, or could not
    measures: pd.DataFrame
    failures: list[str]
    not_stated: list[str]  # prompt versions behind the judge's labels of which nobody has said what they were made with


def read_gold(content: bytes, name: str) -> list[dict[str, Any]]:
    """The lines of a file of labels or of a set (JSON Lines), with line (counted from 1) and label, None where the file does not say.

    An `OverreadError` names line and column.
    """
    if content[:1] == b"{":
        return [_of_set(line, f"{name} line {line}", row) for line, row in enumerate(content.splitlines(), start=1)]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: byte {error.start + 1}: expected UTF-8"
        raise OverreadError(msg) from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    labels = []
    try:
        missing = [column for column in NEEDED if column not in (reader.fieldnames or ())]
        if missing:
            msg = f"{name} line 1: expected the labels that `overread export labels.csv` writes, got no column {', '.join(missing)}"
            refuse(msg)
        line = reader.line_num + 1
        for cells in reader:
            row = {column: unguarded(cell or "") for column, cell in cells.items() if column}
            labels.append(_gold_label(line, f"{name} line {line}", row))
            line = reader.line_num + 1
    except csv.Error as error:
        msg = f"{name} line {reader.line_num}: not CSV: {error}"
        raise OverreadError(msg) from error
    return labels


def _of_set(line: int, place: str, content: bytes) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        msg = f"{place}: expected one JSON object, as `overread split` writes it: {error}"
        raise OverreadError(msg) from error
    named = (*NEEDED, *NUMBERS, "evaluation", "criterion")
    cells = {column: "" if row.get(column) is None else str(row[column]) for column in named}
    return _gold_label(line, place, cells)


def _gold_label(line: int, place: str, cells: Mapping[str, str]) -> dict[str, Any]:
    def fault(column: str, expected: str) -> OverreadError:
        return OverreadError(f"{place}: {column}: expected {expected}, got {shown(cells.get(column, ''))}")

    for column in ("dataset", "example_id", "model", "criterion_position", "reference_source"):
        if not cells[column]:
            raise fault(column, "a value")
    label = cells["reference_label"]
    if label not in set(Label) and (label or cells["reference_source"] in SOURCES):
        column = "reference_label"
        raise fault(column, ", ".join(Label))
    row: dict[str, Any] = {"line": line, "label": Label(label or Label.CANNOT_ASSESS)}
    row |= {column: cells.get(column) or None for column in (*NEEDED, "evaluation", "criterion")}
    for column, least in NUMBERS.items():
        cell = cells.get(column, "")
        if cell and not (cell.isascii() and cell.isdigit() and int(cell) >= least):
            raise fault(column, f"a whole number from {least}")
        row[column] = int(cell) if cell else None
    return row


def check_judge(  # noqa: PLR0913 - what is checked, and against what
    session: Session,
    gold: Collection[Mapping[str, Any]],
    judge: str,
    *,
    name: str,
    sources: Collection[str],
    bounds: Mapping[str, float],
    by: str,
    max_missing: int,
    stated: Mapping[str, Sequence[MadeWith]] | None = None,
) -> Report:
    """Hold a judge's labels against gold labels; `bounds` maps measures to the least value of what `by` says, `name` is that of the file.

    `stated`: the sets that the judge's prompt versions are said to be made with; on a conversation of them it is not checked (`check_unseen`).
    """
    if judge not in (judges := contents.judges(session)):
        refuse(f"--judge: expected one of {', '.join(judges) or 'none, the study has no judge yet'}, got {judge!r}")
    wanted = [row for row in gold if row["reference_source"] in sources]
    if not wanted:
        refuse(f"{name}: reference_source: expected at least one line with {' or '.join(sources)}, got none")
    assessed = [row for row in wanted if row["label"] is not Label.CANNOT_ASSESS]
    items = _items(session, assessed, name)
    found = {example for _, example in items.values()}
    few = sorted(found) if len(found) <= MANY_EXAMPLES else None
    verdicts = frames.verdicts(session, kind=RaterKind.JUDGE, example_ids=few)
    # of several prompt versions the newest counts
    mine = verdicts.loc[verdicts["rater"].eq(judge)].sort_values("verdict_id")
    labels = {int(item): Label(label) for item, label in zip(mine["item_id"], mine["label"], strict=True)}
    versions = sorted(set(mine.loc[mine["item_id"].isin([item for item, _ in items.values()]), "prompt_version"]))
    behind = {version: (stated or {}).get(version, ()) for version in versions}
    if any(behind.values()):
        check_unseen(conversations(session, found).values(), behind, judge)
    rows = []
    for row in assessed:
        item, example = items.get(row["line"], (0, 0))
        judged = labels.get(item, Label.CANNOT_ASSESS)
        if judged is not Label.CANNOT_ASSESS:
            rows.append((row["label"] is Label.MET, judged is Label.MET, example))
    pairs = pd.DataFrame(rows, columns=["gold", "judged", "example"])
    measures = gold_check(pairs)
    n_absent, n_unlabelled = len(assessed) - len(items), len(items) - len(pairs)
    failed = failures(measures, bounds, by=by)
    if n_absent + n_unlabelled > max_missing:
        failed.append(
            f"items without the judge's label: expected at most {max_missing:,}, got {n_absent + n_unlabelled:,} "
            f"({n_absent:,} are not in this study, {n_unlabelled:,} are not labelled by {judge})"
        )
    counts = len(gold), len(pairs), len(gold) - len(wanted), len(wanted) - len(assessed)
    not_stated = [version or "of its file" for version, sets in behind.items() if not sets]
    return Report(*counts, n_absent, n_unlabelled, measures, failed, not_stated)


def unstated_sentence(report: Report, judge: str) -> str | None:
    """That a judge may have seen these items, as nobody has said what it was made with; None where that is said."""
    if not report.not_stated:
        return None
    return f"Nobody has said which set {judge} ({', '.join(report.not_stated)}) was made with: whether it has seen these items is not known"


def _items(session: Session, gold: Collection[Mapping[str, Any]], name: str) -> dict[int, tuple[int, int]]:
    prompts: dict[str, set[str]] = defaultdict(set)
    for row in gold:
        prompts[row["dataset"]].add(row["example_id"])
    examples: list[int] = []
    for dataset, names in prompts.items():
        examples += [int(row["id"]) for row in lookups.rows(session, lookups.EXAMPLES, names, dataset=dataset)]
    few = examples if len(examples) <= MANY_EXAMPLES else None
    candidates: dict[tuple[str, str, str], list[tuple[int, int, str, int]]] = defaultdict(list)
    columns = ["dataset", "prompt_id", "model", "response_id", "example_id", "evaluation", "sample_index"]
    for dataset, prompt, model, *rest in frames.responses(session, example_ids=few)[columns].itertuples(index=False):
        candidates[dataset, prompt, model].append((int(rest[0]), int(rest[1]), rest[2], int(rest[3])))
    columns = ["example_id", "position", "criterion_id", "criterion"]
    criteria = frames.criteria(session, example_ids=few)[columns].itertuples(index=False)
    rubric = {(int(example), int(place)): (int(number), text) for example, place, number, text in criteria}
    items: dict[int, tuple[int, int]] = {}
    lines: dict[int, int] = {}
    for row in gold:
        place, position, asked = f"{name} line {row['line']}", row["criterion_position"], row["criterion"]
        response = _response(row, candidates[row["dataset"], row["example_id"], row["model"]], place)
        if response is None or (response[1], position) not in rubric:
            continue
        number, example = response
        criterion, text = rubric[example, position]
        if asked is not None and asked.split() != text.split():
            msg = f"{place}: criterion: expected {shown(text)}, as in the study at position {position}, got {shown(asked)}"
            refuse(msg)
        item = number * frames.ITEM_BASE + criterion
        if item in lines:
            refuse(f"{place}: expected each item once, got that of line {lines[item]} again")
        lines[item] = row["line"]
        items[row["line"]] = item, example
    return items


def _response(
    row: Mapping[str, Any], candidates: list[tuple[int, int, str, int]], place: str
) -> tuple[int, int] | None:
    fitting = [
        (number, example)
        for number, example, evaluation, sample_index in candidates
        if row["evaluation"] in (None, evaluation) and row["sample_index"] in (None, sample_index)
    ]
    if len(fitting) > 1:
        fitting = [one for one in fitting if one[0] == row["response_id"]] or fitting
    if len(fitting) > 1:
        msg = f"{place}: expected one response of {row['model']} (evaluation and sample_index, or response_id of this study, tell which), got {len(fitting)}"
        refuse(msg)
    return fitting[0] if fitting else None


def columns(measures: pd.DataFrame, bounds: Mapping[str, float]) -> dict[str, Any]:
    """The measures of a check and their bounds as a table."""
    rows = measures.to_dict(orient="records")
    return {
        "Measure": [MEASURES[row["measure"]] for row in rows],
        "Value": [f"{NO_VALUE} ({row['reason']})" if row["reason"] else decimal(row["value"], 3) for row in rows],
        "95 % interval": [f"[{row['low']:.3f}, {row['high']:.3f}]" if row["low"] >= 0 else NO_VALUE for row in rows],
        "At least": [f"{bounds[row['measure']]:g}" if row["measure"] in bounds else NO_VALUE for row in rows],
        "Items": measures["n"],
    }

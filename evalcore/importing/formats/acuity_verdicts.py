"""Verdicts on the level of care, of responses and of cases, CSV or JSON Lines; also what `overread export --what acuity` writes."""

from collections.abc import Iterator

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats import verdict_table
from evalcore.importing.formats.acuity_cells import (
    LAST_SAMPLE,
    VOTE_WORDS,
    Cells,
    cells_of,
    model,
    name,
    needed,
    sample_index,
    share,
    truth,
    vote,
    word,
    words,
)
from evalcore.importing.formats.options import Options
from evalcore.importing.formats.wire import shown
from evalcore.study.csv_cells import unguarded
from evalcore.study.schema import (
    CASES,
    Acuity,
    Ask,
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    RaterKind,
    Selection,
    Severity,
    Stage,
)

NAME = "acuity-verdicts"
TITLE = "Verdicts on the level of care, CSV or JSON Lines"
COLUMNS = {
    "asked": f"{Ask.RESPONSE_ACUITY}: the level that the response recommends; {Ask.GOLD_ACUITY}: that the case needs",
    "example_id": "the case's name, {dataset}_{source_id} of the cases' file; or an example's (prompt_id)",
    "rater": "name of the physician or judge",
    "label": f"{VOTE_WORDS}, {Label.CANNOT_ASSESS}",
    "model": "who answered; with the next two it says which response is meant",
    "evaluation": "what the response was made for: acuity_qa, acuity_conversation, ...",
    "sample_index": f"0, 1, ... {LAST_SAMPLE:,} for repeats (0 where nothing is said)",
    "dataset": f"data set of the example ({CASES} where nothing is said)",
    **{column: verdict_table.COLUMNS[column] for column in ("rater_kind", "stage", "explanation")},
    "confidence": "0..1: that the rater's own level is right",
    **{
        column: verdict_table.COLUMNS[column]
        for column in (
            "reason", "cause", "severity", "error_kind", "conflict_cause", "right_for_wrong_reason", "selection", "inclusion_probability", "blinded",
            "read_at",
        )
    },
}  # fmt: skip


class GivenLevel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line: one rater's level of one response, or of one case (model, evaluation and sample_index are None)."""

    line: int
    dataset: str
    example_id: str
    model: str | None
    evaluation: str | None
    sample_index: int | None
    rater: str
    rater_kind: RaterKind
    stage: Stage
    label: Acuity | Label
    explanation: str | None
    confidence: float | None
    reason: CannotReason | None
    cause: Cause | None
    severity: Severity | None
    error_kind: ErrorKind | None
    conflict_cause: ConflictCause | None
    right_for_wrong_reason: bool
    selection: Selection | None
    inclusion_probability: float | None
    blinded: bool | None
    read_at: str | None


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format; the one for criteria knows no `asked`."""
    return {"asked", "example_id", "rater", "label"} <= keys


def read(line: bytes, number: int, options: Options) -> Iterator[GivenLevel]:
    """One verdict of a JSON Lines file.

    Raises:
        RowFault: The row is of another shape, or breaks a rule of the format.
    """
    yield _given(cells_of(line, COLUMNS), number, options)


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[GivenLevel]:
    """One verdict of a CSV file.

    Raises:
        RowFault: As `read`.
    """
    yield _given({column: unguarded(cell) for column, cell in cells.items()}, number, options)


def _given(cells: Cells, number: int, options: Options) -> GivenLevel:
    asked = word(cells, "asked", Ask)
    if asked not in (Ask.RESPONSE_ACUITY, Ask.GOLD_ACUITY):
        came = "nothing" if asked is None else shown(asked.value)
        msg = f"asked: {came} came, expected {Ask.RESPONSE_ACUITY} or {Ask.GOLD_ACUITY}"
        raise RowFault(msg)
    of_case = asked is Ask.GOLD_ACUITY
    kind = word(cells, "rater_kind", RaterKind) or RaterKind.REVIEWER
    judged = kind is RaterKind.JUDGE
    stage = word(cells, "stage", Stage) or (Stage.JUDGE if judged else Stage.FIRST)
    if judged != (stage is Stage.JUDGE):
        msg = f"stage: {stage.value!r} came with rater_kind {kind.value!r}, expected judge for judges only"
        raise RowFault(msg)
    read_at = words(cells, "read_at")
    verdict_table.check_time(read_at)
    return GivenLevel(
        line=number,
        dataset=name(cells, "dataset") or CASES,
        example_id=needed(cells, "example_id", "the case's name"),
        model=None if of_case else model(cells, options),
        evaluation=None
        if of_case
        else needed(cells, "evaluation", "what the response was made for, such as acuity_qa"),
        sample_index=None if of_case else sample_index(cells),
        rater=needed(cells, "rater", "the name of a physician or judge"),
        rater_kind=kind,
        stage=stage,
        label=_label(cells),
        explanation=words(cells, "explanation"),
        confidence=share(cells, "confidence"),
        reason=word(cells, "reason", CannotReason),
        cause=word(cells, "cause", Cause),
        severity=word(cells, "severity", Severity),
        error_kind=word(cells, "error_kind", ErrorKind),
        conflict_cause=word(cells, "conflict_cause", ConflictCause),
        right_for_wrong_reason=truth(cells, "right_for_wrong_reason") or False,
        selection=word(cells, "selection", Selection),
        inclusion_probability=_probability(cells),
        blinded=truth(cells, "blinded"),
        read_at=read_at,
    )


def _label(cells: Cells) -> Acuity | Label:
    if cells.get("label", "").strip().lower() == Label.CANNOT_ASSESS:
        return Label.CANNOT_ASSESS
    found = vote(cells, "label")
    if found is None:
        msg = f"label: nothing came, expected {VOTE_WORDS}, {Label.CANNOT_ASSESS}"
        raise RowFault(msg)
    return found


def _probability(cells: Cells) -> float | None:
    found = share(cells, "inclusion_probability")
    if found == 0:
        msg = "inclusion_probability: 0 came, expected a number above 0 and at most 1"
        raise RowFault(msg)
    return found

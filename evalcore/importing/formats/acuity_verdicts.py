"""Verdicts on the level of care, of responses and of cases, CSV or JSON Lines; also what `overread export --what acuity` writes.

Joined with the cases and responses of the study, compared with what was said before, then written.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from sqlalchemy import RowMapping

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand, Taker
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
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import shown
from evalcore.importing.readers import is_own
from evalcore.study import lookups
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
    Verdict,
)
from evalcore.study.tables import now

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
        msg = f"asked: expected {Ask.RESPONSE_ACUITY} or {Ask.GOLD_ACUITY}, got {came}"
        raise RowFault(msg)
    of_case = asked is Ask.GOLD_ACUITY
    kind = word(cells, "rater_kind", RaterKind) or RaterKind.REVIEWER
    judged = kind is RaterKind.JUDGE
    stage = word(cells, "stage", Stage) or (Stage.JUDGE if judged else Stage.FIRST)
    if judged != (stage is Stage.JUDGE):
        msg = f"stage: expected judge for judges only, got {stage.value!r} with rater_kind {kind.value!r}"
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
        msg = f"label: expected {VOTE_WORDS}, {Label.CANNOT_ASSESS}, got nothing"
        raise RowFault(msg)
    return found


def _probability(cells: Cells) -> float | None:
    found = share(cells, "inclusion_probability")
    if found == 0:
        msg = "inclusion_probability: expected a number above 0 and at most 1, got 0"
        raise RowFault(msg)
    return found


COMPARED = (
    "label", "explanation", "confidence", "reason", "cause", "severity", "error_kind", "conflict_cause", "right_for_wrong_reason",
)  # fmt: skip
"""What makes a verdict the same as an earlier one."""
Item = tuple[int, int | None]
"""Example, and response or None for the case itself."""
Key = tuple[Item, int, str]
"""Item, rater, stage."""


class AcuityVerdicts(Taker):
    """Takes the rows of a file of verdicts on the level of care."""

    batch = 2_000

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self._at = now()
        self._models: dict[str, int] = {}
        self._lines: dict[Key, int] = {}

    def add(self, rows: Sequence[GivenLevel]) -> None:
        """Check a batch and write it."""
        joined = self._joined(rows)
        earlier = self._earlier([item for _, item in joined])
        own = {key[:2] for key, said in earlier.items() if is_own(said)}
        new: list[Verdict] = []
        for row, item in joined:
            with self._faults.caught(row.line):
                key = (item, self._readers.number(row.rater_kind, row.rater), row.stage.value)
                if (first := self._lines.setdefault(key, row.line)) != row.line:
                    msg = f"rater: expected one verdict, as on line {first}, got {row.rater!r} again for this item and stage"
                    raise RowFault(msg)
                before = earlier.get(key)
                if before is not None and all(before[name] == getattr(row, name) for name in COMPARED):
                    self._report.verdicts_known += 1
                    continue
                self._readers.check(key[1], row.line, has_own=key[:2] in own)
                new.append(self._verdict(row, key, None if before is None else before["id"]))
        if not self._faults.count:
            self._bulk.verdicts(new)
            self._bulk.await_index(
                [(verdict.example_id, [verdict.explanation]) for verdict in new if verdict.explanation]
            )

    def _joined(self, rows: Sequence[GivenLevel]) -> list[tuple[GivenLevel, Item]]:
        """The rows whose case, or response, is in the study; the others are counted."""
        examples = self._examples(rows)
        self._models |= lookups.model_ids(self._session, {row.model for row in rows if row.model} - self._models.keys())
        places = {
            row.line: (number, self._models[row.model], row.evaluation or "", row.sample_index or 0)
            for row in rows
            if (number := examples.get((row.dataset, row.example_id))) is not None and row.model in self._models
        }
        found = lookups.samples_at(self._session, dict.fromkeys(places.values()))
        numbers = {
            (row["example_id"], row["model_id"], row["dataset"], row["sample_index"]): row["id"] for row in found
        }
        joined: list[tuple[GivenLevel, Item]] = []
        for row in rows:
            example = examples.get((row.dataset, row.example_id))
            place = places.get(row.line)
            response = numbers.get(place) if place is not None else None
            if example is None:
                self._report.no_partner(row.line, f"example {row.example_id!r} of {row.dataset!r} is not in the study")
            elif row.model is not None and response is None:
                which = f"sample {row.sample_index} of model {row.model!r} for {row.evaluation!r}"
                self._report.no_partner(row.line, f"no response to {row.example_id!r} is {which}")
            else:
                joined.append((row, (example, response)))
        return joined

    def _examples(self, rows: Sequence[GivenLevel]) -> dict[tuple[str, str], int]:
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows:
            wanted[row.dataset].add(row.example_id)
        return {
            (dataset, found["prompt_id"]): found["id"]
            for dataset, names in wanted.items()
            for found in lookups.examples_named(self._session, dataset, names)
        }

    def _earlier(self, items: Sequence[Item]) -> dict[Key, RowMapping]:
        """What has been said of these items before, by item, rater and stage; what was taken back too, to be replaced."""
        found = lookups.said_of_acuity(self._session, set(items))
        return {((row["example_id"], row["response_id"]), row["rater_id"], row["stage"]): row for row in found}

    def _verdict(self, row: GivenLevel, key: Key, supersedes: int | None) -> Verdict:
        if row.confidence is not None and row.rater_kind is RaterKind.JUDGE:
            self._report.confident(row.rater)
        if supersedes is None:
            self._report.verdicts_new += 1
        else:
            self._report.verdicts_superseding += 1
        (example_id, response_id), rater_id, _ = key
        taken = {name: getattr(row, name) for name in Verdict.__struct_fields__ if name in GivenLevel.__struct_fields__}
        return msgspec.structs.replace(
            Verdict(
                **taken | {"example_id": example_id}, response_id=response_id, criterion_id=None, rater_id=rater_id
            ),
            created_at=datetime.fromisoformat(row.read_at) if row.read_at else self._at,
            supersedes=supersedes,
        )

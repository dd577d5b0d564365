"""What a format is, and what files of graded answers give."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from evalcore.study import schema

if TYPE_CHECKING:
    from evalcore.importing.context import RowWriter

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Cells = Mapping[str, str]  # column to cell; an empty cell is no value


@dataclass(frozen=True)
class Options:
    """What cannot be read out of the rows; who wrote the responses and who graded them, where the file does not say."""

    dataset: str = "healthbench"
    subset: str | None = None
    model: str | None = None
    judge: str | None = None

    @property
    def evaluation(self) -> str:
        """The data set with its part: what a response was made for."""
        return f"{self.dataset}_{self.subset}" if self.subset else self.dataset


class Kind(StrEnum):
    """How the rows of a file lie in it."""

    LINES = "JSON Lines"
    TABLE = "CSV"
    PARQUET = "Parquet"
    DOCUMENT = "one JSON document"
    LOG = "a log of inspect_ai"

    @property
    def row_word(self) -> str:
        """What a row is called in a message."""
        return {Kind.PARQUET: "row", Kind.DOCUMENT: "entry", Kind.LOG: "sample"}.get(self, "line")


@dataclass(frozen=True)
class FileFormat:
    """A format of files. Where there is only `read_cells`, a line of JSON is read as a row of a table.

    `columns`: what each field means; a key may name several, as "A, B, C, D". Every file has all `keys` (columns, or keys of an object), and one of `one_of`.
    `read` takes a line of JSON, an entry or a sample, its number and the options. No `writer`: the one of graded responses and examples. `kind`: of a file that
    is no table. `is_guarded`: Overread writes it too, as CSV with guarded cells.
    """

    name: str
    title: str
    columns: Mapping[str, str]
    keys: frozenset[str]
    one_of: frozenset[str] = frozenset()
    read: Callable[[Any, int, Options], Iterator[Any]] | None = None
    read_cells: Callable[[Cells, int, Options], Iterator[Any]] | None = None
    writer: "type[RowWriter] | None" = None
    kind: Kind = Kind.LINES
    is_parquet: bool = False
    is_guarded: bool = False
    is_triage: bool = False
    has_confidences: bool = False
    model_in_name: bool = False

    def recognises(self, keys: set[str]) -> bool:
        """Whether an object or a table with these keys is of this format."""
        return self.keys <= keys and (not self.one_of or bool(self.one_of & keys))

    @property
    def column_names(self) -> frozenset[str]:
        """The columns one by one."""
        return frozenset(name for names in self.columns for name in names.split(", "))


class CriterionRef(msgspec.Struct, frozen=True, gc=False):
    """Which criterion is meant: by `position` (in the stored rubric, from 1), cluster, text, or `row` (from 0, of `Graded.rubric`); the first counts."""

    position: int | None = None
    cluster: str | None = None
    text: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        if self.position is not None:
            return f"criterion_position {self.position}"
        return self.cluster or repr((self.text or "")[:60])


@cache
def row_refs(n: int) -> tuple[CriterionRef, ...]:
    """The criteria of a rubric that the row brings."""
    return tuple(CriterionRef(row=index) for index in range(n))


class GivenVerdict(msgspec.Struct, kw_only=True, gc=False):
    """A verdict as a file gives it; the words are those of `schema.Verdict`."""

    rater: Name
    rater_kind: schema.RaterKind = schema.RaterKind.REVIEWER
    stage: schema.Stage | None = None
    label: schema.Label | schema.Acuity
    explanation: str | None = None
    confidence: Share | None = None
    cause: schema.Cause | None = None
    severity: schema.Severity | None = None
    error_kind: schema.ErrorKind | None = None
    reason: schema.CannotReason | None = None
    conflict_cause: schema.ConflictCause | None = None
    right_for_wrong_reason: bool = False
    selection: schema.Selection | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    blinded: bool | None = None
    read_at: str | None = None


def judged(judge: str, explanation: str | None, *, is_met: bool, confidence: float | None = None) -> GivenVerdict:
    """A judge's verdict on a criterion."""
    return GivenVerdict(
        rater=judge,
        rater_kind=schema.RaterKind.JUDGE,
        stage=schema.Stage.JUDGE,
        label=schema.Label.MET if is_met else schema.Label.NOT_MET,
        explanation=explanation or None,
        confidence=confidence,
    )


class GivenExample(msgspec.Struct, frozen=True, gc=False):
    """An example and where it stands in the file."""

    line: int
    example: schema.Example


class Graded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A response with verdicts on it.

    `criteria` says what each verdict is on; `sent`, what went to the model, may be more than `messages`, the example's conversation. `scored_rubric`: the
    rubric is all that the response is graded on (a run), not one line of it. No `model`: the response is found by `completion_id`. With a `text` the response
    has this `sample_index`, or is another one; without it must be in the study already.
    """

    line: int
    prompt_id: str
    criteria: tuple[CriterionRef, ...]
    verdicts: tuple[GivenVerdict, ...]
    dataset: str | None = None
    evaluation: str | None = None
    messages: tuple[schema.Message, ...] | None = None
    sent: tuple[schema.Message, ...] | None = None
    rubric: tuple[schema.Criterion, ...] = ()
    scored_rubric: bool = False
    model: str | None = None
    sample_index: int | None = None
    completion_id: str | None = None
    text: str | None = None
    canary: str | None = None

"""What a format is and its files give; what the import of one file has in hand: its report, faults, transaction and raters; and what writes its rows."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import orjson

from evalcore.errors import ImportFailed, RowFault
from evalcore.study import contents, lookups, schema
from evalcore.study.db import RowMapping, Session
from evalcore.study.schema import Label, RaterKind, Source, Stage
from evalcore.study.store import Bulk, ensure_rater, first_name
from evalcore.study.tables import now

if TYPE_CHECKING:
    from evalcore.importing.files.opening import Opened

    Labelled = Label | schema.Acuity
else:
    Labelled = str  # what it is where a row comes from another process: msgspec cannot tell two enums of texts apart

MAX_FAULTS = MAX_NAMED = 20
MAX_SHOWN = 80
MAX_COUNTED = 10_000  # with so many, a file is another than was meant: it is not read to its end
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Cells = Mapping[str, str]  # column to cell; an empty cell is no value
Rows = Iterator[tuple[int, list[Any] | RowFault]]  # each row's number with what it holds, or with what is wrong with it


def shown(value: Any) -> str:
    """What came, short enough for a message."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    except TypeError:  # nested more deeply than orjson writes
        text = f"a deeply nested {'list' if isinstance(value, list) else 'object'}"
    if len(text) > MAX_SHOWN:
        text = text[: MAX_SHOWN - 1] + "…"
    return repr(text) if isinstance(value, str) else text


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
    OBJECTS = "JSON"
    SHEET = "XLSX"

    @property
    def row_word(self) -> str:
        """What a message calls one of its rows."""
        words = {
            self.PARQUET: "row",
            self.SHEET: "row",
            self.DOCUMENT: "entry",
            self.OBJECTS: "entry",
            self.LOG: "sample",
        }
        return words.get(self, "line")


@dataclass(frozen=True)
class FileFormat:
    """A format of files; where there is only `read_cells`, a line of JSON is read as a row of a table."""

    name: str
    title: str
    columns: Mapping[str, str]  # what each field means; a key may name several, as "A, B, C, D"
    keys: frozenset[str]  # columns, or keys of an object, that every file has
    one_of: tuple[frozenset[str], ...] = ()  # sets, of each of which every file has one
    read: Callable[[Any, int, Options], Iterator[Any]] | None = None
    read_cells: Callable[[Cells, int, Options], Iterable[Any]] | None = None
    writer: "Callable[[ImportContext], RowWriter] | None" = None
    gathered: "Callable[[Rows], Rows]" = iter  # makes one of neighbouring rows that speak of one response
    row: type[msgspec.Struct] | None = None  # with what is read of a row, where `columns` are not all of it
    document: type[msgspec.Struct] | None = None  # the same of what stands around the rows
    kind: Kind = Kind.LINES  # of a file that is no table
    json_columns: frozenset[str] = frozenset()  # whose cells may be JSON: in JSON Lines, a list as it is
    is_parquet: bool = False
    is_guarded: bool = False  # Overread writes it too, as CSV with guarded cells
    is_triage: bool = False
    is_own: bool = False  # of anybody's own data, which is no benchmark
    has_confidences: bool = False
    model_in_name: bool = False
    part: str | None = None  # of the data set, that every file of the format is of

    def recognises(self, keys: set[str]) -> bool:
        """Whether an object or a table with these keys is of this format."""
        return not self.lacks(keys)

    def lacks(self, keys: set[str]) -> list[str]:
        """What an object or a table with these keys would need beside them."""
        return sorted(self.keys - keys) + [" or ".join(sorted(names)) for names in self.one_of if not names & keys]

    @property
    def column_names(self) -> frozenset[str]:
        """The columns one by one."""
        return frozenset(name for names in self.columns for name in names.split(", "))


class CriterionRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
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


class GivenVerdict(msgspec.Struct, kw_only=True, gc=False, omit_defaults=True):
    """A verdict as a file gives it; the words are those of `schema.Verdict`."""

    rater: Name
    rater_kind: RaterKind = RaterKind.REVIEWER
    stage: Stage | None = None
    label: Labelled
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
        rater_kind=RaterKind.JUDGE,
        stage=Stage.JUDGE,
        label=Label.MET if is_met else Label.NOT_MET,
        explanation=explanation or None,
        confidence=confidence,
    )


class GivenExample(msgspec.Struct, frozen=True, gc=False, tag=True):
    """An example and where it stands in the file."""

    line: int
    example: schema.Example


class Graded(msgspec.Struct, kw_only=True, gc=False, tag=True, omit_defaults=True):
    """A response with verdicts on it; without a `model` it is found by `completion_id`, and without a `text` it must be in the study already."""

    line: int
    prompt_id: str
    criteria: tuple[CriterionRef, ...]  # what each verdict is on
    verdicts: tuple[GivenVerdict, ...]
    dataset: str | None = None
    evaluation: str | None = None
    messages: tuple[schema.Message, ...] | None = None  # the example's conversation
    sent: tuple[schema.Message, ...] | None = None  # to the model: it may be more
    rubric: tuple[schema.Criterion, ...] = ()
    scored_rubric: bool = False  # the rubric is all that it is graded on (a run), not one line of it
    model: str | None = None
    sample_index: int | None = None  # None, with a text: another one
    completion_id: str | None = None
    text: str | None = None
    canary: str | None = None
    tags: tuple[str, ...] = ()  # of the example
    finish_reason: str | None = None
    made_on: str | None = None  # a day
    n_ungraded: int = 0  # criteria of the row without a grade
    is_row_of_table: bool = False  # known by its text; a judge grades each criterion once in the file
    lines: tuple[int, ...] = ()  # of several rows that are one: where each verdict stands

    @property
    def n_rows(self) -> int:
        """How many rows of the file it is."""
        return len(self.lines) or 1


COMPARED = (
    "label", "explanation", "confidence", "reason", "cause", "severity", "error_kind", "conflict_cause", "right_for_wrong_reason",
)  # fmt: skip


def _count(words: str, *, adds: bool = False) -> Any:
    """A count of the report; in its words (one/many) stands for either."""
    return field(default=0, metadata={"words": words, "adds": adds})


def _numbered(words: str, n: int) -> str:
    return re.sub(r"\((\w*)/(\w[^)]*)\)", r"\1" if n == 1 else r"\2", words)


@dataclass
class ImportReport:
    """Counts of what came, what was joined, what had no partner, and where the sent prompt differs."""

    file: str = ""
    format: str = ""
    dataset: str = ""
    dry_run: bool = False
    source_hash: str = ""  # of the content, unpacked; every verdict of the file keeps it
    reads_of: list[str] = field(default_factory=list)  # people with an account here whose reads it brings
    already_imported: bool = False
    rows: int = 0
    examples_new: int = _count("new example(/s)", adds=True)
    examples_completed: int = _count("example(/s) completed that (was/were) known in part", adds=True)
    examples_known: int = _count("example(/s) that (was/were) here already")
    memberships_new: int = _count("example(/s) newly marked as part of a subset", adds=True)
    responses_new: int = _count("new response(/s)", adds=True)
    responses_known: int = _count("response(/s) that (was/were) here already")
    responses_joined: int = _count("response(/s) joined with (its/their) example(/s)")
    responses_without_example: int = _count(
        "response(/s) whose example is not imported: kept with what the file says, without theme"
    )
    prompts_with_system_message: int = _count(
        "response(/s) (was/were) given to the conversation with a system message before it"
    )
    prompts_other: int = _count("response(/s) (was/were) given to another prompt than the example's conversation")
    criteria_without_points: int = _count("(criterion/criteria) without points: can be read, and (is/are) never scored")
    verdicts_new: int = _count("new verdict(/s)", adds=True)
    verdicts_known: int = _count("verdict(/s) that (was/were) here already")
    verdicts_superseding: int = _count(
        "verdict(/s) that (replaces/replace) an earlier one of the same rater; the earlier one is kept in the history",
        adds=True,
    )
    ungraded: int = _count("(criterion/criteria) of responses without a grade: no verdict, and never taken for not met")
    without_partner: int = _count("row(/s) left out: nothing in the study fits (it/them)")
    without_partner_named: list[str] = field(default_factory=list)
    cases_new: int = _count("new case(/s) of triage", adds=True)
    cases_completed: int = _count("case(/s) completed with (its/their) panel's votes")
    cases_known: int = _count("case(/s) that (was/were) here already")
    votes_new: int = _count("new vote(/s) of panels", adds=True)
    votes_known: int = _count("vote(/s) of panels that (was/were) here already")
    texts_new: int = _count("text(/s) of responses to cases", adds=True)
    levels_new: int = _count("new level(/s) of care, read by judges", adds=True)
    levels_superseding: int = _count(
        "level(/s) that (replaces/replace) an earlier one of the same judge; the earlier one is kept in the history",
        adds=True,
    )
    levels_known: int = _count("level(/s) that (was/were) here already")
    without_level: int = _count("time(/s) a judge found no level: counted apart, and never taken for a level")
    matrices_new: int = _count("new published confusion (matrix/matrices)", adds=True)
    matrices_known: int = _count("published confusion (matrix/matrices) that (was/were) here already")
    different: int = _count(
        "case(/s) of which the file says something else than the votes by the rule, or than the label map of the source"
    )
    different_named: list[str] = field(default_factory=list)
    flow: list[dict[str, Any]] = field(default_factory=list)  # rows of `case_flow`
    confident_judges: list[str] = field(default_factory=list)
    meanings_set: int = _count("judge(/s) of whom it is now known what the confidence refers to", adds=True)
    meanings_missing: list[str] = field(default_factory=list)
    levels_read: list[str] = field(default_factory=list)
    samples_left_out: int = 0  # of a log, with an error or without an answer
    unread: dict[str, int] = field(default_factory=dict)  # fields not read: rows with something there
    notes: list[str] = field(default_factory=list)

    def no_partner(self, line: int, reason: str) -> None:
        """Count a row that fits nothing in the study, and name it while there is room."""
        self.without_partner += 1
        if self.without_partner <= MAX_NAMED:
            self.without_partner_named.append(f"line {line}: {reason}")

    def differs(self, line: int, sentence: str) -> None:
        """Count a case of which the file says something else than what counts or is known, and name it while there is room."""
        self.different += 1
        if self.different <= MAX_NAMED:
            self.different_named.append(f"line {line}: {sentence}")

    def confident(self, judge: str) -> None:
        """Note that this judge's verdicts came with a confidence."""
        if judge not in self.confident_judges:
            self.confident_judges.append(judge)

    @property
    def adds_nothing(self) -> bool:
        """Whether the study is as it was before."""
        return not any(getattr(self, one.name) for one in fields(self) if one.metadata.get("adds"))

    def for_audit(self) -> dict[str, Any]:
        """For the audit event: without what counted nothing, without the flow, which has a row a label, and without golds of single cases."""
        left_out = ("flow", "different_named")
        return {key: value for key, value in asdict(self).items() if value and key not in left_out}

    def _unread_words(self) -> list[str]:
        if not self.unread:
            return []
        fullest = sorted(self.unread.items(), key=lambda field: (-field[1], field[0]))
        named = [f"{name} ({f'{n:,}' if n else 'always empty'})" for name, n in fullest[:MAX_NAMED]]
        rest = [f"and {len(fullest) - MAX_NAMED:,} more"] if len(fullest) > MAX_NAMED else []
        fields = "1 field is" if len(fullest) == 1 else f"{len(fullest):,} fields are"
        return [f"{fields} not read, with the number of rows that hold something there: {', '.join(named + rest)}"]

    def named(self) -> list[str]:
        """The rows that are named one by one."""
        return self.different_named + self.without_partner_named

    def sentences(self) -> list[str]:
        """The report in words; lines that would count nothing are left out."""
        if self.already_imported:
            return ["This file was imported before. It adds nothing."]
        counts = [(getattr(self, one.name), one.metadata["words"]) for one in fields(self) if one.metadata]
        lines = [f"{n:,} {_numbered(words, n)}" for n, words in counts if n] + self._unread_words()
        lines += self.levels_read + self.notes
        if self.meanings_missing:
            judges = ", ".join(self.meanings_missing)
            again = "import the file again with Confidence refers to filled in"
            lines.append(f"What the confidences of {judges} refer to is not specified: {again}.")
        if self.adds_nothing:
            lines.append("Nothing new: the study is as it was.")
        return lines


class Faults:
    """Collects the faults of one file; `count`: how many there are, of which the first `MAX_FAULTS` are kept in words."""

    def __init__(self, file_name: str, *, row_word: str) -> None:
        self._file_name, self._row_word = file_name, row_word
        self._sentences: list[str] = []
        self.count = 0

    def add(self, sentence: str, number: int = 0) -> None:
        """Note a fault, of a row where it has a number; ImportFailed: there are so many that the file is read no further."""
        self.count += 1
        place = f" {self._row_word} {number}" if number else ""
        if len(self._sentences) < MAX_FAULTS:
            self._sentences.append(f"{self._file_name}{place}: {sentence}")
        if self.count >= MAX_COUNTED:
            last = f"{self._file_name}{place}: with {MAX_COUNTED:,} faults it was read no further"
            raise ImportFailed([*self._sentences, last], self.count)

    @contextmanager
    def caught(self, number: int) -> Iterator[None]:
        """Note the fault of a row that the block raises."""
        try:
            yield
        except RowFault as fault:
            self.add(str(fault), number)

    def raise_if_any(self) -> None:
        """Refuse the file where something was noted."""
        if self.count:
            raise ImportFailed(self._sentences, self.count)


def is_own(row: RowMapping) -> bool:
    """Whether a read in the study is its reader's own: given here, or perhaps given here before this was kept."""
    return bool(row["stage"] != Stage.JUDGE and row["source"] != Source.IMPORT)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


class ImportContext:
    """The transaction of one import, what writes in it, and what it tells; after the first of its `faults` rows are checked, and nothing is written.

    A read stays its reader's, whatever name the file writes beside a label; a person is one rater, in whatever capitals, blanks or widths.
    """

    def __init__(self, file: "Opened", options: Options, session: Session, report: ImportReport) -> None:
        self._new_names = lookups.new_names(session)
        called = {name: self.called(name, getattr(options, name)) for name in ("dataset", "model", "judge")}
        self.file, self.options, self.session, self.report = file, replace(options, **called), session, report
        self.bulk = Bulk(session, source=Source.IMPORT, source_hash=report.source_hash)
        self.faults = Faults(file.name, row_word=file.kind.row_word)
        self.at = now()  # when its verdicts were given that do not say it
        self._people = {_folded(person.name): person.name for person in contents.people(session, everybody=True)}
        self._mapped = {_folded(name) for name in report.reads_of}
        self._raters: dict[tuple[RaterKind, str], int] = {}
        self._names: dict[int, str] = {}
        self._noted: set[tuple[str, bool]] = set()
        self._models: dict[str, int] = {}
        if unknown := [name for name in report.reads_of if _folded(name) not in self._people]:
            raise ImportFailed([f"Reads of people: expected people of this study, got {', '.join(unknown)}"])

    @property
    def has_new_names(self) -> bool:
        """Whether anything in the study is called otherwise than it came."""
        return bool(self._new_names)

    def called(self, kind: str, name: str | None) -> Any:
        """A name of the file as it is in the study now; kinds are those of `lookups.new_names`."""
        return name if name is None else self._new_names.get((kind, name), name)

    def stored(self, kind: str, name: str) -> str:
        """A name of now as it is written: by the first one, where that is another."""
        return first_name(self.session, kind, name) if self._new_names else name

    def rater(self, kind: RaterKind, name: str) -> int:
        """The number of a rater."""
        number = self._raters.get((kind, name))
        if number is None:
            person = self._people.get(_folded(name)) if kind is RaterKind.REVIEWER else None
            number = self._raters[kind, name] = ensure_rater(self.session, kind, person or name)
            if person is not None:
                self._names[number] = person
        return number

    def check_rater(self, rater_id: int, line: int, *, has_own: bool) -> None:
        """Note a fault where a verdict may not come under this name; `line` 0: unknown; `has_own`: the person has verdicts of their own on the item."""
        name = self._names.get(rater_id)
        if name is None or (not has_own and _folded(name) in self._mapped) or (name, has_own) in self._noted:
            return
        self._noted.add((name, has_own))
        sentence = (
            "has an account here, so reads under this name are made in Overread. If these were made elsewhere, a lead imports the file "
            "and names the person under Reads of people; else give the rater another name"
        )
        if has_own:
            sentence = "has read this item in Overread, and no file replaces a person's own reads. Leave these rows out"
        self.faults.add(f"rater: {name} {sentence}", line)

    def models(self, names: Collection[str]) -> dict[str, int]:
        """The numbers of models, those of these names among them; new ones are written."""
        missing = set(names) - self._models.keys()
        if missing:
            self._models.update(lookups.model_ids(self.session, missing))
            new = sorted(missing - self._models.keys())
            numbers = self.bulk.insert("model", [{"name": self.stored("model", name)} for name in new])
            self._models.update(zip(new, numbers, strict=True))
        return self._models


class RowWriter(ABC):
    """Takes the rows of one file, batch by batch: checks them against the study and, while nothing in the file was wrong, writes them."""

    batch = 500

    def __init__(self, context: ImportContext) -> None:
        self._context, self._session, self._bulk = context, context.session, context.bulk
        self._report, self._faults = context.report, context.faults

    @abstractmethod
    def add(self, rows: Sequence[Any]) -> None:
        """Check a batch and write it."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to say
        """What can be said only when the last row is there."""

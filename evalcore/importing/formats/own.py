"""What the formats of anybody's own data share: conversations as text or as JSON, grades in the usual words, and examples that are found without a name."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from evalcore.errors import RowFault
from evalcore.importing.context import Cells, CriterionRef, GivenExample, Graded, ImportContext, Options, shown
from evalcore.importing.examples import KnownCriterion, KnownExample, as_stored, cluster_of, share_question, turns
from evalcore.importing.formats import values
from evalcore.importing.formats.values import LAST_SAMPLE, check_messages, decode, refuse, storable
from evalcore.importing.responses import GradedRows, Joined
from evalcore.study import lookups
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Criterion, Message

GRADES = "true or false, yes or no, 1 or 0, pass or fail, met or not_met, or nothing where there is no grade"
POINTS = f"a whole number {MIN_POINTS}..{MAX_POINTS} without 0"
CONVERSATION = (
    "the user's words, or a list of {role, content} whose last turn is the user's (as JSON in a cell of CSV or Parquet)"
)
OF_A_RESPONSE = {  # what says which response is meant
    "example_id": "the example's name (prompt_id); where it is missing, the conversation finds the example, or makes it",
    "model": "who answered; else fill in Model",
    "sample_index": f"0, 1, ... {LAST_SAMPLE:,} for repeats (optional, as all below; where it is missing, another text is another repeat)",
    "evaluation": "what the response was made for, such as healthbench_hard; else Data set",
    "completion_id": "the response's own name",
}
_OF_A_RESPONSE = tuple(OF_A_RESPONSE)
_GRADES = {
    word: met
    for met, words in ((True, "true yes 1 1.0 pass met"), (False, "false no 0 0.0 fail not_met"))
    for word in words.split()
}
_JSON = re.compile(r"\s*\[\s*\{")
_POINTS = re.compile(r"([+-]?[0-9]{1,3})(?:\.0+)?")


@lru_cache(maxsize=256)  # a file has few words for it
def grade(text: str, place: str) -> bool | None:
    """Whether a criterion is met; None where nothing is said."""
    word = "_".join(text.lower().split())
    if word and word not in _GRADES:
        refuse(place, GRADES, shown(text))
    return _GRADES[word] if word else None


def label_word(text: str) -> str:
    """A physician's label in the words of the format where it is one of the usual words for grades; any other text as it is."""
    met = _GRADES.get("_".join(text.lower().split()))
    return text if met is None else "met" if met else "not_met"


@lru_cache(maxsize=256)
def points(text: str, place: str) -> int | None:
    """What a criterion counts; None where nothing is said: then it can be read, and is never scored."""
    if not (text := text.strip()):
        return None
    found = _POINTS.fullmatch(text)
    number = int(found[1]) if found else 0
    if number == 0 or not MIN_POINTS <= number <= MAX_POINTS:
        refuse(place, POINTS, shown(text))
    return number


@lru_cache(maxsize=16)  # rows of one conversation follow one another
def conversation(text: str | None, place: str, *, is_asked: bool = True) -> tuple[Message, ...] | None:
    """A conversation, JSON where it begins so, else one turn of the user's; with `is_asked` it ends with a turn of the user's."""
    if text is None or not text.strip():
        return None
    if not _JSON.match(text):
        return (Message("user", storable(text, place)),)
    try:
        messages = decode(text.encode(), list[Message])
    except RowFault as fault:
        values.refuse_row(f"{place}{'' if str(fault).startswith('[') else ': '}{fault}")
    check_messages(messages, field=place, is_asked=is_asked)
    return tuple(messages)


def needed(cells: Cells, column: str, expected: str) -> str:
    """A text that must be there."""
    return values.words(cells, column) or refuse(column, expected, "nothing")


def response_of(cells: Cells, options: Options) -> Mapping[str, object]:
    """Which response a row speaks of, as `Graded` says it; the example without a name is called ""."""
    return _response_of(options.model, options.evaluation, *map(cells.get, _OF_A_RESPONSE))


@lru_cache(maxsize=64)  # rows of one response follow one another
def _response_of(of_file: str | None, for_what: str, *said: str | None) -> Mapping[str, object]:
    cells = {column: cell for column, cell in zip(_OF_A_RESPONSE, said, strict=True) if cell is not None}
    return {
        "prompt_id": values.words(cells, "example_id") or "",
        "model": values.model(cells, of_file),
        "sample_index": values.whole(cells, "sample_index", highest=LAST_SAMPLE),
        "evaluation": values.name(cells, "evaluation") or for_what,
        "completion_id": values.words(cells, "completion_id"),
    }


def check_example(name: str, asked: Sequence[Message] | None, column: str) -> None:
    """An example is known by its name or by its conversation."""
    if not name and asked is None:
        refuse(column, "it, or example_id, to find the example", "nothing")


class _Settled:
    """An example that a row was merged into, and the criteria by which a row with no more than one of them adds nothing."""

    def __init__(self, example: KnownExample) -> None:
        self.example, self.messages = example, example.messages

    @cached_property
    def _criteria(self) -> dict[Criterion, KnownCriterion]:
        plain = (one for one in reversed(self.example.rubric) if cluster_of(one) is None)
        return {Criterion(one.text, one.points): one for one in plain}  # of equal ones the first

    def all_of(self, wanted: Sequence[Criterion]) -> list[KnownCriterion] | None:
        """Its criteria that are these; None where one of them is not known as it is."""
        rubric = self.example.rubric
        is_whole = len(wanted) == len(rubric) > 1  # most answers are graded on all of them
        if is_whole and all(map(_is_plainly, rubric, wanted)):
            return rubric
        known = [(one, self._criteria.get(one)) for one in wanted]
        found = [held for one, held in known if held is not None and held.points == one.points]
        return found if len(found) == len(wanted) else None


def _is_plainly(known: KnownCriterion, one: Criterion) -> bool:
    return known.text == one.text and known.points == one.points and cluster_of(known) is None


def _apart(record: Graded) -> list[Graded]:
    """The rows that were made one."""
    if not record.lines:
        return [record]
    each = zip(record.lines, record.rubric, record.criteria, record.verdicts, strict=True)
    return [
        replace(
            record,
            line=line,
            rubric=(criterion,),
            criteria=(CriterionRef(row=0, text=wanted.text),),
            verdicts=(verdict,),
            lines=(),
        )
        for line, criterion, wanted, verdict in each
    ]


class OwnRows(GradedRows):
    """Takes rows whose example may have no name: it is the one with this conversation, else it is named by its content."""

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._named: dict[str, str] | None = None
        self._settled: dict[object, _Settled] = {}  # of this batch, by what a row says of its example
        self._name_of: dict[object, str] = {}  # likewise, by the conversation

    def add(self, rows: Sequence[Graded | GivenExample]) -> None:
        """Join a batch and write it; a long table says the same of an example and its criteria again for each model and judge."""
        self._settled.clear()
        self._name_of.clear()
        super().add(rows)

    def _prepared(self, row: Graded) -> Graded:
        if not row.prompt_id:
            row.prompt_id = self._name_of.get(row.messages) or self._name(row)
        return row

    def _find_example(self, record: Graded) -> Joined | None:
        if not (record.is_row_of_table and record.rubric):
            return self._found(record)
        said = record.dataset, record.prompt_id, record.messages
        settled = self._settled.get(said) or self._begun(record)
        if settled is not None and settled.messages is settled.example.messages:
            self._settled[said] = settled
            known = settled.all_of(record.rubric)
            if known is not None:
                for criterion in known:
                    criterion.is_brought |= record.messages is not None
                return Joined(record, settled.example, [*known] if record.criteria else [])
        joined, settled = list[Joined](), None
        for one in _apart(record):
            with self._faults.caught(one.line):
                known = settled.all_of(one.rubric) if settled is not None else None
                if known is not None and settled is not None:
                    known[0].is_brought |= record.messages is not None
                    joined.append(Joined(one, settled.example, [*known]))
                elif (found := self._found(one)) is not None:
                    joined.append(found)
                    settled = _Settled(found.example)
        if len(joined) < record.n_rows:
            return None
        self._settled[said] = _Settled(joined[-1].example)
        return Joined(record, joined[-1].example, [criterion for one in joined for criterion in one.criteria])

    def _begun(self, record: Graded) -> _Settled | None:
        """The study's example of this conversation, before the first row of the batch is merged into it."""
        known = self._examples.known.get(record.prompt_id)
        if known is None or known.number is None:
            return None
        if record.messages is not None:
            if as_stored(record.messages) != known.messages:
                return None
            self._examples.meet(known)
        return _Settled(known)

    def _found(self, record: Graded) -> Joined | None:
        known = self._examples.known.get(record.prompt_id)
        if known is not None and known.provisional and record.messages is not None:
            is_same = as_stored(record.messages) == known.messages
            if not is_same and not share_question(record.messages, turns(known.messages)):
                refuse("example_id", f"{record.prompt_id!r} for one conversation", "it for another one too")
        return super()._find_example(record)

    def _name(self, row: Graded) -> str:
        """The name of the example with this conversation."""
        if self._named is None:  # what this file makes has its name from its content, so once is enough
            known = lookups.conversations(self._session, self._options.dataset)
            self._named = {sha256(messages.encode()).hexdigest(): name for messages, name in known}
        digest = sha256(msgspec.json.encode(row.messages)).hexdigest()
        name = self._name_of[row.messages] = self._named.get(digest) or f"conversation-{digest[:16]}"
        return name

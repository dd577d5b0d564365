"""Samples of inspect_ai logs: each is given its example or case, and goes on as a response; what the import says of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import RowMapping

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.examples import as_stored, turns
from evalcore.importing.formats.acuity_predictions import Prediction, Predictions
from evalcore.importing.formats.inspect_logs import Known, LeftOut, Logged
from evalcore.importing.formats.inspect_scores import Judged, Levelled, Says
from evalcore.importing.formats.records import Graded, Options
from evalcore.importing.responses import Responses
from evalcore.stats.wording import counted
from evalcore.study import lookups
from evalcore.study.schema import CASES, Format, Message

MAX_NAMED = 20
"""So many scores are told of one by one."""


@dataclass
class Told:
    """Counts of samples.

    Attributes:
        left_out: Samples that are no responses, by why.
        formats: Samples by the format of their case; None: of examples.
        taken: Of scores: name, what it says, whose it is.
        passed: Of scores whose content is not read here: name, what it says.
        repeated: Of scores by a judge whose first score counts already.
        n_unread: Items of rubrics that are neither true nor false.
        n_parts: Samples with parts of their input that are no text.
    """

    left_out: Counter[LeftOut | None] = field(default_factory=Counter)
    formats: Counter[Format | None] = field(default_factory=Counter)
    taken: Counter[tuple[str, Says, str]] = field(default_factory=Counter)
    passed: Counter[tuple[str, Says]] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    n_unread: int = 0
    n_parts: int = 0

    def sentences(self, known: Known, options: Options, n_samples: int) -> list[str]:
        """All that is to be said, in the order in which it matters."""
        return [
            *_run(known, n_samples),
            *(
                f"{counted(n, 'sample')} {why}: left out, and never taken for an empty answer"
                for why, n in self.left_out.items()
                if why and n
            ),
            *_model(known, options),
            *(
                f"{counted(n, 'answer to a case', 'answers to cases')}, in the format {word}"
                for word, n in self.formats.items()
                if word is not None
            ),
            *self._scores(),
            *(
                [f"{counted(self.n_unread, 'criterion', 'criteria')} without true or false: no verdict"]
                if self.n_unread
                else []
            ),
            *(
                [
                    f"{counted(self.n_parts, 'input')} with parts that are no text: each stands as its kind in brackets, such as [image]"
                ]
                if self.n_parts
                else []
            ),
        ]

    def _scores(self) -> list[str]:
        lines = [
            f"score {name!r} of {counted(n, 'sample')}: taken as {says}, by the judge {judge!r}"
            for (name, says, judge), n in self.taken.items()
        ]
        lines += [
            f"score {name!r} of {counted(n, 'sample')}: passed over, {_why(says)}"
            for (name, says), n in self.passed.items()
        ]
        lines += [
            f"score {name!r} of {counted(n, 'sample')}: passed over, as an earlier score of the same is by the same judge"
            for name, n in self.repeated.items()
        ]
        more = len(lines) - MAX_NAMED
        return lines if more <= 0 else [*lines[:MAX_NAMED], f"and {counted(more, 'score')} more"]


def _run(known: Known, n_samples: int) -> list[str]:
    lines = []
    if known.status != "success":
        lines.append(f"The run behind this log did not end well: its status is {known.status[:40]!r}")
    missing = (known.n_planned or 0) - n_samples
    if missing > 0:
        are = "is" if missing == 1 else "are"
        lines.append(f"{missing:,} of the {known.n_planned:,} samples that the run was to ask {are} not in the log")
    return lines


def _model(known: Known, options: Options) -> list[str]:
    if options.model == known.full_model or not known.model:
        return []
    return [f"model {known.full_model!r} of the log: here {options.model!r}"]


def _why(says: Says) -> str:
    if says is Says.LEVEL:
        return "as it holds a level of care and the sample is of no case of triage"
    if says is Says.VERDICTS:
        return "as it holds verdicts on criteria and the sample is of a case of triage"
    return f"as it holds {says}"


_FORMATS = {word.evaluation: word for word in Format}


class _Place(NamedTuple):
    """Where a sample belongs: an example of a data set, or a case in a format."""

    dataset: str
    name: str
    format: Format | None = None


class Samples(Taker):
    """Takes the samples of one log."""

    batch = 200

    def __init__(self, hand: Hand, responses: Responses, options: Options, known: Known) -> None:
        super().__init__(hand)
        self._responses = responses
        self._predictions = Predictions(hand)
        self._options = options
        self._asked_as = _FORMATS.get(options.dataset)
        self._known = known
        self._told = Told()
        self._seen: set[tuple[str, int]] = set()

    def add(self, rows: Sequence[Logged]) -> None:
        """Check a batch and write it."""
        given = [row for row in rows if self._is_new(row) and row.left_out is None]
        for row in rows:
            self._told.left_out[row.left_out] += row.left_out is not None
        named, alike = self._held(given)
        graded: list[Graded] = []
        predictions: list[Prediction] = []
        for row in given:
            with self._faults.caught(row.line):
                place = self._place(row, named[row.name], alike[as_stored(row.asked)])
                if place is None:
                    continue
                self._note(row, place)
                if place.format is None:
                    graded.extend(self._graded(row, place))
                else:
                    predictions.extend(self._levels(row, place))
        self._responses.add(graded)
        self._predictions.add(predictions)

    def finish(self) -> None:
        """Say what the log says of itself, and what of it was passed over."""
        self._report.samples_left_out = sum(self._told.left_out.values())
        self._report.notes.extend(self._told.sentences(self._known, self._options, self._report.rows))

    def _is_new(self, row: Logged) -> bool:
        key = (row.sample_id, row.sample_index)
        if key in self._seen:
            msg = f"id: expected sample {row.sample_id!r} once in epoch {row.sample_index + 1}, got it again"
            self._faults.add(msg, row.line)
            return False
        self._seen.add(key)
        return True

    def _held(
        self, rows: Sequence[Logged]
    ) -> tuple[defaultdict[str, list[RowMapping]], defaultdict[str, list[RowMapping]]]:
        """What the study holds by the names of the samples, and by their conversations where no name is there."""
        named: defaultdict[str, list[RowMapping]] = defaultdict(list)
        for found in lookups.examples_by(self._session, "prompt_id", {row.name for row in rows}):
            named[found["prompt_id"]].append(found)
        alike: defaultdict[str, list[RowMapping]] = defaultdict(list)
        unnamed = {as_stored(row.asked) for row in rows if self._nearest(named[row.name]) is None}
        for found in lookups.examples_by(self._session, "messages", unnamed):
            alike[found["messages"]].append(found)
        return named, alike

    def _nearest(self, found: Sequence[RowMapping]) -> RowMapping | None:
        """A case, else an example of the data set that was said. Of several the oldest, since they are the same by name or by conversation."""
        cases = (row for row in found if row["is_case"])
        own = (row for row in found if row["dataset"] == self._options.dataset and self._asked_as is None)
        return next(cases, None) or next(own, None)

    def _place(self, row: Logged, named: Sequence[RowMapping], alike: Sequence[RowMapping]) -> _Place | None:
        """Where a sample belongs; None, counted, where that is nowhere.

        Raises:
            RowFault: Its name belongs to another conversation that is known from a result alone.
        """
        by_name = self._nearest(named)
        found = by_name or self._nearest(alike)
        if found is None:
            if self._asked_as is not None:
                self._report.no_partner(row.line, f"no case is named {row.sample_id!r} or is this conversation")
                return None
            return _Place(self._options.dataset, row.name)
        if found["is_case"]:
            return self._place_of_case(row, found)
        if by_name is not None and found["provisional"] and not _overlap(row.asked, turns(found["messages"])):
            msg = (
                f"input: expected the conversation of the example of this name for sample {row.sample_id!r}, got another; "
                "--dataset NAME keeps the two apart"
            )
            raise RowFault(msg)
        return _Place(found["dataset"], found["prompt_id"])

    def _place_of_case(self, row: Logged, case: RowMapping) -> _Place | None:
        """A case in the format that was said, else told by the input: the case's own words alone, or a question that holds them."""
        if self._asked_as is not None:
            return _Place(CASES, case["prompt_id"], self._asked_as)
        spoken = tuple(message for message in row.asked if message.role not in ("system", "developer"))
        if as_stored(spoken) == case["messages"]:
            return _Place(CASES, case["prompt_id"], Format.CONVERSATION)
        if _words(turns(case["messages"])) in _words(row.asked):
            return _Place(CASES, case["prompt_id"], Format.QA)
        words = " or ".join(_FORMATS)
        self._report.no_partner(
            row.line,
            f"the input does not hold the words of case {case['prompt_id']!r}; --dataset {words} says how it was asked",
        )
        return None

    def _graded(self, row: Logged, place: _Place) -> Iterable[Graded]:
        """A response, once for each judge who gave verdicts on it."""
        judges = {found.judge: found for found in reversed(row.judged)}
        given: list[Judged | None] = [*reversed(judges.values())]
        for found in given or [None]:
            yield Graded(
                line=row.line,
                prompt_id=place.name,
                verdicts=found.verdicts if found else (),
                dataset=place.dataset,
                evaluation=self._options.evaluation,
                messages=row.asked,
                sent=row.sent,
                rubric=found.rubric if found else (),
                scored_rubric=True,
                model=self._options.model,
                sample_index=row.sample_index,
                text=row.text,
            )

    def _levels(self, row: Logged, place: _Place) -> Iterable[Prediction]:
        """An answer to a case, once for each judge who read a level out of it; once without a level where nobody did.

        Raises:
            RowFault: Nobody says whose a level is.
        """
        judges = {found.judge: found for found in reversed(row.levels)}
        if None in judges and not self._faults.count:  # said once: the other samples lack the same
            msg = (
                f"scores.{judges[None].score}: expected a judge in its metadata or as --judge, got a level without one"
            )
            raise RowFault(msg)
        given: list[Levelled | None] = [*reversed(judges.values())]
        for found in given or [None]:
            yield Prediction(
                row.line,
                place.name,
                self._options.model or "",
                place.format or Format.QA,
                row.sample_index,
                row.text,
                found.judge if found else None,
                found.level if found else None,
                None,
                found.explanation if found else None,
            )

    def _note(self, row: Logged, place: _Place) -> None:
        """Count what is taken of a sample and what is passed over. Of two scores by one judge the first counts."""
        told, wanted = self._told, Says.VERDICTS if place.format is None else Says.LEVEL
        told.formats[place.format] += 1
        told.n_unread += row.n_unread if place.format is None else 0
        told.n_parts += row.n_parts > 0
        taken: dict[str | None, str] = {}
        for given in row.judged if place.format is None else row.levels:
            taken.setdefault(given.judge, given.score)
        by_score = {score: judge for judge, score in taken.items()}
        for score, says in row.scores:
            if says is not wanted:
                told.passed[score, says] += 1
            elif score in by_score:
                told.taken[score, says, by_score[score] or ""] += 1
            else:
                told.repeated[score] += 1


def _overlap(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Whether the last turn of one conversation is within the other."""
    return _last(one) in _words(other) or _last(other) in _words(one)


def _last(messages: Sequence[Message]) -> str:
    return next(" ".join(message.content.split()) for message in reversed(messages) if message.role == "user")


def _words(messages: Sequence[Message]) -> str:
    return " ".join(" ".join(message.content.split()) for message in messages)

"""Samples of inspect_ai logs: each is given its example or case, and goes on as a response; what the import says of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from evalcore.importing.context import FileFormat, Graded, ImportContext, Kind, RowWriter
from evalcore.importing.examples import as_stored, share_question, turns, words_of
from evalcore.importing.formats.acuity_predictions import Prediction, Predictions
from evalcore.importing.formats.inspect_logs import JUDGE_KEYS, Judged, LeftOut, Logged, Sample, Says
from evalcore.importing.formats.values import refuse
from evalcore.importing.responses import GradedRows
from evalcore.stats.wording import counted
from evalcore.study import lookups
from evalcore.study.db import RowMapping
from evalcore.study.schema import CASES, Format

MAX_NAMED = 20  # so many scores are told of one by one
_FORMATS = {word.evaluation: word for word in Format}
_Found = defaultdict[str, list[RowMapping]]


class _Place(NamedTuple):
    dataset: str
    name: str
    format: Format | None = None


class Samples(RowWriter):
    """Takes the samples of one log."""

    batch = 200

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._graded_rows = GradedRows(context)
        self._predictions = Predictions(context)
        self._options = context.options
        self._asked_as = _FORMATS.get(context.options.dataset)
        self._known = context.file.log.known
        self._seen: set[tuple[str, int]] = set()
        self._left_out: Counter[LeftOut] = Counter()
        self._formats: Counter[Format | None] = Counter()  # of the sample's case; None: of examples
        self._taken: Counter[tuple[str, Says, str]] = Counter()  # scores, what they say, whose they are
        self._passed: Counter[tuple[str, Says]] = Counter()  # scores whose content is not read here
        self._repeated: Counter[str] = Counter()  # scores by a judge whose first score counts already
        self._n_unread = self._n_parts = 0

    def add(self, rows: Sequence[Logged]) -> None:
        """Check a batch and write it."""
        given = []
        for row in rows:
            key = (row.sample_id, row.sample_index)
            if key in self._seen:
                msg = f"id: expected sample {row.sample_id!r} once in epoch {row.sample_index + 1}, got it again"
                self._faults.add(msg, row.line)
            elif row.left_out is None:
                given.append(row)
            self._seen.add(key)
            if row.left_out is not None:
                self._left_out[row.left_out] += 1
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
        self._graded_rows.add(graded)
        self._predictions.add(predictions)

    def finish(self) -> None:
        """Say what the log says of itself, and what of it was passed over."""
        self._report.samples_left_out = sum(self._left_out.values())
        self._report.notes.extend(self._sentences())

    def _held(self, rows: Sequence[Logged]) -> tuple[_Found, _Found]:
        named: _Found = defaultdict(list)
        for example in lookups.examples_by(self._session, "prompt_id", {row.name for row in rows}):
            named[example["prompt_id"]].append(example)
        alike: _Found = defaultdict(list)
        unnamed = {as_stored(row.asked) for row in rows if self._nearest(named[row.name]) is None}
        for example in lookups.examples_by(self._session, "messages", unnamed):
            alike[example["messages"]].append(example)
        return named, alike

    def _nearest(self, examples: Sequence[RowMapping]) -> RowMapping | None:
        """A case, else an example of the data set that was said. Of several the oldest, since they are the same by name or by conversation."""
        cases = (row for row in examples if row["is_case"])
        own = (row for row in examples if row["dataset"] == self._options.dataset and self._asked_as is None)
        return next(cases, None) or next(own, None)

    def _place(self, row: Logged, named: Sequence[RowMapping], alike: Sequence[RowMapping]) -> _Place | None:
        """None, counted: nowhere. A fault where its name belongs to another conversation that is known from a result alone."""
        by_name = self._nearest(named)
        example = by_name or self._nearest(alike)
        if example is None:
            if self._asked_as is not None:
                self._report.no_partner(row.line, f"no case is named {row.sample_id!r} or is this conversation")
                return None
            return _Place(self._options.dataset, row.name)
        if example["is_case"]:
            return self._place_of_case(row, example)
        is_known_by_name = by_name is not None and example["provisional"]
        if is_known_by_name and not share_question(row.asked, turns(example["messages"])):
            expected = f"the conversation of the example of this name for sample {row.sample_id!r}"
            refuse("input", expected, "another; fill in Data set to keep the two apart")
        return _Place(example["dataset"], example["prompt_id"])

    def _place_of_case(self, row: Logged, case: RowMapping) -> _Place | None:
        """A case in the format that was said, else told by the input: the case's own words alone, or a question that holds them."""
        if self._asked_as is not None:
            return _Place(CASES, case["prompt_id"], self._asked_as)
        spoken = tuple(message for message in row.asked if message.role not in ("system", "developer"))
        if as_stored(spoken) == case["messages"]:
            return _Place(CASES, case["prompt_id"], Format.CONVERSATION)
        if words_of(turns(case["messages"])) in words_of(row.asked):
            return _Place(CASES, case["prompt_id"], Format.QA)
        words = " or ".join(_FORMATS)
        why = f"the input does not hold the words of case {case['prompt_id']!r}"
        self._report.no_partner(row.line, f"{why}; fill in Data set ({words}) to say how it was asked")
        return None

    def _graded(self, row: Logged, place: _Place) -> Iterator[Graded]:
        """A response, once for each judge who gave verdicts on it. Of two scores by one judge the first counts."""
        judges = {score.judge: score for score in reversed(row.judged)}
        given: list[Judged | None] = [*reversed(judges.values())]
        for score in given or [None]:
            yield Graded(
                line=row.line,
                prompt_id=place.name,
                criteria=score.criteria if score else (),
                verdicts=score.verdicts if score else (),
                dataset=place.dataset,
                evaluation=self._options.evaluation,
                messages=row.asked,
                sent=row.sent,
                rubric=score.rubric if score else (),
                scored_rubric=True,
                model=self._options.model,
                sample_index=row.sample_index,
                text=row.text,
            )

    def _levels(self, row: Logged, place: _Place) -> Iterable[Prediction]:
        """An answer to a case, once for each judge who read a level out of it; once without a level where nobody did."""
        judges = {score.judge: score for score in reversed(row.levels)}
        if None in judges and not self._faults.count:  # said once: the other samples lack the same
            refuse(f"scores.{judges[None].score}", "a judge in its metadata or as Judge", "a level without one")
        asked_as = place.format or Format.QA
        sample = (row.line, place.name, self._options.model or "", asked_as, row.sample_index, row.text)
        if not judges:
            return [Prediction(*sample)]
        return [Prediction(*sample, one.judge, one.level, None, one.explanation) for one in reversed(judges.values())]

    def _note(self, row: Logged, place: _Place) -> None:
        is_example = place.format is None
        self._formats[place.format] += 1
        self._n_unread += row.n_unread if is_example else 0
        self._n_parts += row.n_parts > 0
        taken: dict[str | None, str] = {}
        for given in row.judged if is_example else row.levels:
            taken.setdefault(given.judge, given.score)
        by_score = {score: judge for judge, score in taken.items()}
        for score, says in row.scores:
            if says is not (Says.VERDICTS if is_example else Says.LEVEL):
                self._passed[score, says] += 1
            elif score in by_score:
                self._taken[score, says, by_score[score] or ""] += 1
            else:
                self._repeated[score] += 1

    def _sentences(self) -> list[str]:
        known, lines = self._known, []
        if known.status != "success":
            lines.append(f"The run behind this log did not end well: its status is {known.status[:40]!r}")
        missing = (known.n_planned or 0) - self._report.rows
        if missing > 0:
            are = "is" if missing == 1 else "are"
            lines.append(f"{missing:,} of the {known.n_planned:,} samples that the run was to ask {are} not in the log")
        for why, n in self._left_out.items():
            lines.append(f"{counted(n, 'sample')} {why}: left out, and never taken for an empty answer")
        if known.model and self._options.model != known.full_model:
            lines.append(f"model {known.full_model!r} of the log: here {self._options.model!r}")
        for asked_as, n in self._formats.items():
            if asked_as is not None:
                lines.append(f"{counted(n, 'answer to a case', 'answers to cases')}, in the format {asked_as}")
        scores = []
        for (name, says, judge), n in self._taken.items():
            scores.append(f"score {name!r} of {counted(n, 'sample')}: taken as {says}, by the judge {judge!r}")
        reasons = {
            Says.LEVEL: "as it holds a level of care and the sample is of no case of triage",
            Says.VERDICTS: "as it holds verdicts on criteria and the sample is of a case of triage",
        }
        passed = [(name, reasons.get(says, f"as it holds {says}"), n) for (name, says), n in self._passed.items()]
        again = "as an earlier score of the same is by the same judge"
        passed += [(name, again, n) for name, n in self._repeated.items()]
        scores += [f"score {name!r} of {counted(n, 'sample')}: passed over, {why}" for name, why, n in passed]
        lines += scores[:MAX_NAMED]
        if len(scores) > MAX_NAMED:
            lines.append(f"and {counted(len(scores) - MAX_NAMED, 'score')} more")
        if self._n_unread:
            lines.append(f"{counted(self._n_unread, 'criterion', 'criteria')} without true or false: no verdict")
        if self._n_parts:
            stands = "each stands as its kind in brackets, such as [image]"
            lines.append(f"{counted(self._n_parts, 'input')} with parts that are no text: {stands}")
        return lines


FORMAT = FileFormat(
    name="inspect-log",
    title="Logs of inspect_ai (.eval or .json)",
    columns={
        "eval.model": "who answered; the provider before the first slash is left off. Model gives another name",
        "samples[].id, epoch": "the example's prompt_id or the case's name; epoch 1 is sample_index 0",
        "samples[].input": "finds the example where its name does not; else it becomes an example of its own",
        "samples[].output": "the response; samples with an error or without text are counted and left out",
        "samples[].scores.*.metadata": "a list whose items have criterion and criteria_met (with points, tags, explanation) holds a judge's verdicts",
        "samples[].scores.*.answer, value": "a letter A to D: the level of care that a judge read, where the sample is a case of triage",
        "(judge)": f"Judge, else {', '.join(JUDGE_KEYS)} in the score's metadata, else the model of the role grader",
    },
    keys=frozenset({"eval", "status", "version"}),
    row=Sample,
    kind=Kind.LOG,
    writer=Samples,
)

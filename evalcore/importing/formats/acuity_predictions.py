"""What models answered to cases of triage, and which level raters read out of it, CSV or JSON Lines; millions of them in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter

import msgspec

from evalcore.importing.context import Cells, FileFormat, ImportContext, Options, RowWriter, shown
from evalcore.importing.formats import values
from evalcore.study import lookups
from evalcore.study.schema import RULES, Acuity, Format, Label, RaterKind, Stage, Verdict
from evalcore.study.store import bring

RULES_WORD = "rules"  # what files call our judge by rules
MAX_NAMES = 100_000  # so many case ids are remembered from batch to batch; then the memory begins anew
EVALUATIONS = {word: word.evaluation for word in Format}
Place = tuple[int, int, str, int]  # of a sample: example, model, evaluation, sample index


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """A line: one sample, and what one rater says of it. label: None where nobody is said to have looked."""

    line: int
    case_id: str
    model: str
    format: Format
    sample_index: int
    text: str
    rater: str | None = None
    label: Acuity | Label | None = None
    confidence: float | None = None
    explanation: str | None = None

    def __str__(self) -> str:
        return f"{self.case_id!r}, {self.model!r}, {self.format}, sample {self.sample_index}"


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Prediction]:
    """One sample, and what one rater says of it."""
    rater, label, text = values.name(cells, "rater"), values.level(cells, "level"), values.words(cells, "text")
    confidence, explanation = values.amount(cells, "confidence"), values.words(cells, "explanation")
    if rater is None:
        given = {"level": label and label.value, "confidence": confidence, "explanation": explanation}
        for column, value in given.items():
            if value is not None:
                beside = f"{column} {shown(value)} (parser, rules, or a judge's name)"
                values.refuse("rater", f"who read the level beside {beside}", "nothing")
        if text is None:
            values.refuse("text", "a text or a rater", "neither")
    yield Prediction(
        number,
        values.needed(cells, "case_id", "the case's name"),
        values.model(cells, options.model),
        values.asked(cells),
        values.sample_index(cells),
        text or "",
        RULES if rater == RULES_WORD else rater,
        label if label is not None or rater is None else Label.CANNOT_ASSESS,
        confidence,
        explanation,
    )


class Sample(msgspec.Struct, eq=False, gc=False):
    """A sample of the study, or one about to be added (without a number yet)."""

    place: Place
    text: str
    number: int | None = None
    is_completed: bool = False


class Reading(msgspec.Struct, eq=False, gc=False):
    """What a rater has said of a sample; number: of the verdict, None while it is only about to be written."""

    label: str | None
    confidence: float | None
    explanation: str | None
    created_at: datetime
    number: int | None = None


class Predictions(RowWriter):
    """Takes the rows of a file of predictions."""

    batch = 5_000

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._cases: dict[str, int | None] = {}
        self._last_before = lookups.last_response(self._session)
        self._met = bytearray(self._last_before + 1)  # by number of the response: whether a row has spoken of it

    def add(self, rows: Sequence[Prediction]) -> None:
        """Check a batch and write it."""
        if len(self._cases) > MAX_NAMES:
            self._cases.clear()
        missing = {row.case_id for row in rows} - self._cases.keys()
        numbers = {
            row["prompt_id"]: row["id"]
            for row in lookups.rows(self._session, lookups.CASES_NAMED, missing)
            if row["source"]
        }
        self._cases |= {case_id: numbers.get(case_id) for case_id in missing}
        joined: list[tuple[Prediction, int]] = []
        for row in rows:
            number = self._cases[row.case_id]
            if number is None:
                self._report.no_partner(row.line, f"case {row.case_id!r} is not in the study")
            else:
                joined.append((row, number))
        models = self._context.models({row.model for row, _ in joined})
        for rater in sorted({row.rater for row, _ in joined if row.rater is not None}):
            self._context.rater(RaterKind.JUDGE, rater)
        places = [(number, models[row.model], EVALUATIONS[row.format], row.sample_index) for row, number in joined]
        samples = self._find_samples(places)
        place_of = {sample.number: sample.place for sample in samples.values() if sample.number is not None}
        earlier: dict[tuple[Place, int], Reading] = {}
        said = itemgetter("label", "confidence", "explanation", "created_at", "id")
        for stored in lookups.rows(self._session, lookups.LEVELS, place_of):
            earlier[place_of[stored["response_id"]], stored["rater_id"]] = Reading(*said(stored))
        new: list[tuple[Place, Verdict]] = []
        for (row, _), place in zip(joined, places, strict=True):
            with self._faults.caught(row.line):
                sample = samples.setdefault(place, Sample(place, ""))
                if row.text and not sample.text:
                    sample.text, sample.is_completed = row.text, True
                elif row.text and row.text != sample.text:
                    came, expected = values.shown_apart(row.text, sample.text)
                    values.refuse("text", f"{expected} for {row} as in an earlier row or file", came)
                if row.rater is not None and (verdict := self._verdict(row, place, earlier)) is not None:
                    new.append((place, verdict))
        if not self._faults.count:
            self._write(samples, new)

    def _find_samples(self, places: Iterable[Place]) -> dict[Place, Sample]:
        samples = {}
        for row in lookups.rows(self._session, lookups.SAMPLES, dict.fromkeys(places)):
            place = (row["example_id"], row["model_id"], row["dataset"], row["sample_index"])
            samples[place] = Sample(place, row["text"], row["id"])
            bring(self._session, "response", [row["id"]])
            if row["id"] <= self._last_before and not self._met[row["id"]]:
                self._met[row["id"]] = 1
                self._report.responses_known += 1
        return samples

    def _verdict(self, row: Prediction, place: Place, earlier: dict[tuple[Place, int], Reading]) -> Verdict | None:
        label: Acuity | Label = row.label or Label.CANNOT_ASSESS
        rater_id = self._context.rater(RaterKind.JUDGE, row.rater or "")
        if row.confidence is not None:
            self._report.confident(row.rater or "")
        at, before = self._context.at, earlier.get((place, rater_id))
        if before is not None:
            if (before.label, before.confidence, before.explanation) == (label, row.confidence, row.explanation):
                self._report.levels_known += 1
                bring(self._session, "verdict", [] if before.number is None else [before.number])
                return None
            if before.number is None or before.created_at == at:
                expected = f"{_level_words(before)} for {row} by {row.rater!r} as on an earlier line"
                values.refuse("level", expected, _level_words(row))
        self._report.levels_new += before is None
        self._report.levels_superseding += before is not None
        self._report.without_level += label is Label.CANNOT_ASSESS
        earlier[place, rater_id] = Reading(label, row.confidence, row.explanation, at)
        return Verdict(
            example_id=place[0],
            response_id=None,
            criterion_id=None,
            rater_id=rater_id,
            stage=Stage.JUDGE,
            label=label,
            confidence=row.confidence,
            explanation=row.explanation,
            created_at=at,
            supersedes=None if before is None else before.number,
        )

    def _write(self, samples: dict[Place, Sample], new: Sequence[tuple[Place, Verdict]]) -> None:
        fresh = [sample for sample in samples.values() if sample.number is None]
        completed = [sample for sample in samples.values() if sample.number is not None and sample.is_completed]
        columns = ("example_id", "model_id", "dataset", "sample_index", "text")
        rows = [dict(zip(columns, (*sample.place, sample.text), strict=True)) for sample in fresh]
        for sample, number in zip(fresh, self._bulk.insert("response", rows), strict=True):
            sample.number = number
        self._bulk.update("response", [{"id": sample.number, "text": sample.text} for sample in completed])
        verdicts = [msgspec.structs.replace(verdict, response_id=samples[place].number) for place, verdict in new]
        self._bulk.verdicts(verdicts)
        self._report.responses_new += len(fresh)
        self._report.texts_new += sum(bool(sample.text) for sample in fresh) + len(completed)
        texts = [(sample.place[0], [sample.text]) for sample in (*fresh, *completed) if sample.text]
        texts += [(verdict.example_id, [verdict.explanation]) for verdict in verdicts if verdict.explanation]
        self._bulk.await_index(texts)


def _level_words(row: Prediction | Reading) -> str:
    level = "no level" if row.label in (None, Label.CANNOT_ASSESS) else str(row.label)
    confidence = "" if row.confidence is None else f" with confidence {row.confidence}"
    return level + confidence + ("" if row.explanation is None else f" because {shown(row.explanation)}")


FORMAT = FileFormat(
    name="acuity-predictions",
    title="Answers to cases of triage and their levels, CSV or JSON Lines",
    columns={
        "case_id": "the case's name, {dataset}_{source_id} of the cases' file",
        "model": "who answered; else fill in Model",
        "format": "qa or conversation",
        "sample_index": f"0, 1, ... {values.LAST_SAMPLE:,} for repeats (0 where nothing is said)",
        "text": "the answer; empty where only its level is known. Several rows of one sample may leave it to one of them",
        "level": f"{values.LEVEL_WORDS}; empty with a rater: the rater looked and found none; empty without a rater: the text alone",
        "confidence": "0..1: that the rater's own level is right (optional)",
        "rater": "who read the level out of the text: parser, rules, or a judge's name; a row a rater",
        "explanation": "the rater's own words (optional)",
    },
    keys=frozenset({"case_id", "format"}),
    one_of=(frozenset({"text", "level"}),),
    read_cells=read_cells,
    writer=Predictions,
    is_parquet=True,
    is_triage=True,
    has_confidences=True,
)

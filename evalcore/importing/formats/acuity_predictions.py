"""What models answered to cases of triage, and which level raters read out of it, CSV or JSON Lines.

Joined with the cases and samples of the study, then written, millions of them in bounded memory.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.formats.acuity_cells import (
    LAST_SAMPLE,
    LEVEL_WORDS,
    Cells,
    asked,
    level,
    model,
    name,
    needed,
    sample_index,
    share,
    words,
)
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import shown, shown_apart
from evalcore.study import lookups
from evalcore.study.schema import RULES, Acuity, Format, Label, RaterKind, Stage, Verdict
from evalcore.study.store import ensure_rater
from evalcore.study.tables import now

NAME = "acuity-predictions"
RULES_WORD = "rules"
"""What files call our judge by rules."""
TITLE = "Answers to cases of triage and their levels, CSV or JSON Lines"
COLUMNS = {
    "case_id": "the case's name, {dataset}_{source_id} of the cases' file",
    "model": "who answered; else say --model",
    "format": "qa or conversation",
    "sample_index": f"0, 1, ... {LAST_SAMPLE:,} for repeats (0 where nothing is said)",
    "text": "the answer; empty where only its level is known. Several rows of one sample may leave it to one of them",
    "level": f"{LEVEL_WORDS}; empty with a rater: the rater looked and found none; empty without a rater: the text alone",
    "confidence": "0..1: that the rater's own level is right (optional)",
    "rater": "who read the level out of the text: parser, rules, or a judge's name; a row a rater",
    "explanation": "the rater's own words (optional)",
}


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """A line: one sample, and what one rater says of it. label: None where nobody is said to have looked."""

    line: int
    case_id: str
    model: str
    format: Format
    sample_index: int
    text: str
    rater: str | None
    label: Acuity | Label | None
    confidence: float | None
    explanation: str | None


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"case_id", "format"} <= keys and bool({"text", "level"} & keys)


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Prediction]:
    """One sample, and what one rater says of it.

    Raises:
        RowFault: The row breaks a rule of the format.
    """
    rater, said, text = name(cells, "rater"), level(cells, "level"), words(cells, "text")
    confidence, explanation = share(cells, "confidence"), words(cells, "explanation")
    if rater is None:
        for column, value in (("level", said and said.value), ("confidence", confidence), ("explanation", explanation)):
            if value is not None:
                msg = f"rater: expected who read the level beside {column} {shown(value)} (parser, rules, or a judge's name), got nothing"
                raise RowFault(msg)
        if text is None:
            msg = "text: expected a text or a rater, got neither"
            raise RowFault(msg)
    yield Prediction(
        number,
        needed(cells, "case_id", "the case's name"),
        model(cells, options),
        asked(cells),
        sample_index(cells),
        text or "",
        RULES if rater == RULES_WORD else rater,
        said if said is not None or rater is None else Label.CANNOT_ASSESS,
        confidence,
        explanation,
    )


MAX_NAMES = 100_000
"""So many case ids are remembered from batch to batch; then the memory begins anew."""
EVALUATIONS = {word: word.evaluation for word in Format}
Place = tuple[int, int, str, int]
"""Of a sample: example, model, evaluation, sample index."""


class Sample(msgspec.Struct, eq=False, gc=False):
    """A sample of the study, or one about to be added (without a number yet)."""

    place: Place
    text: str
    number: int | None = None
    is_completed: bool = False


class Said(msgspec.Struct, eq=False, gc=False):
    """What a rater has said of a sample; number: of the verdict, None while it is only about to be written."""

    label: str | None
    confidence: float | None
    explanation: str | None
    created_at: datetime
    number: int | None = None


class Predictions(Taker):
    """Takes the rows of a file of predictions."""

    batch = 5_000

    def __init__(self, hand: Hand) -> None:
        super().__init__(hand)
        self._at = now()
        self._cases: dict[str, int | None] = {}
        self._models: dict[str, int] = {}
        self._raters: dict[str, int] = {}
        self._last_before = lookups.last_response(self._session)
        self._met = bytearray(self._last_before + 1)  # by number of the response: whether a row has spoken of it

    def add(self, rows: Sequence[Prediction]) -> None:
        """Check a batch and write it."""
        self._find_cases({row.case_id for row in rows})
        joined: list[tuple[Prediction, int]] = []
        for row in rows:
            number = self._cases[row.case_id]
            if number is None:
                self._report.no_partner(row.line, f"case {row.case_id!r} is not in the study")
            else:
                joined.append((row, number))
        self._name_models({row.model for row, _ in joined})
        self._name_raters({row.rater for row, _ in joined if row.rater is not None})
        places = [
            (number, self._models[row.model], EVALUATIONS[row.format], row.sample_index) for row, number in joined
        ]
        samples = self._find_samples(places)
        earlier = self._earlier(samples.values())
        new: dict[tuple[Place, int], tuple[Prediction, Verdict]] = {}
        for (row, _), place in zip(joined, places, strict=True):
            with self._faults.caught(row.line):
                _complete_text(row, samples.setdefault(place, Sample(place, "")))
                if row.rater is not None:
                    self._take(row, place, earlier, new)
        if not self._faults.count:
            self._write(samples, new)

    def _find_cases(self, case_ids: Collection[str]) -> None:
        if len(self._cases) > MAX_NAMES:
            self._cases.clear()
        missing = case_ids - self._cases.keys()
        found = {row["prompt_id"]: row["id"] for row in lookups.cases_named(self._session, missing) if row["source"]}
        self._cases |= {case_id: found.get(case_id) for case_id in missing}

    def _name_models(self, names: Collection[str]) -> None:
        unknown = set(names) - self._models.keys()
        self._models |= lookups.model_ids(self._session, unknown)
        missing = sorted(unknown - self._models.keys())
        numbers = self._bulk.insert("model", [{"name": name} for name in missing])
        self._models |= dict(zip(missing, numbers, strict=True))

    def _name_raters(self, names: Collection[str]) -> None:
        for new in sorted(set(names) - self._raters.keys()):
            self._raters[new] = ensure_rater(self._session, RaterKind.JUDGE, new)

    def _find_samples(self, places: Iterable[Place]) -> dict[Place, Sample]:
        """The samples at these places that the study has, those of earlier batches too."""
        found = {}
        for row in lookups.samples_at(self._session, dict.fromkeys(places)):
            place = (row["example_id"], row["model_id"], row["dataset"], row["sample_index"])
            found[place] = Sample(place, row["text"], row["id"])
            if row["id"] <= self._last_before and not self._met[row["id"]]:
                self._met[row["id"]] = 1
                self._report.responses_known += 1
        return found

    def _earlier(self, samples: Iterable[Sample]) -> dict[tuple[Place, int], Said]:
        """What has been said of these samples before, by place and rater."""
        places = {sample.number: sample.place for sample in samples}
        return {
            (places[row["response_id"]], row["rater_id"]): Said(
                row["label"], row["confidence"], row["explanation"], row["created_at"], row["id"]
            )
            for row in lookups.levels_on(self._session, [number for number in places if number is not None])
        }

    def _take(
        self,
        row: Prediction,
        place: Place,
        earlier: dict[tuple[Place, int], Said],
        new: dict[tuple[Place, int], tuple[Prediction, Verdict]],
    ) -> None:
        """Compare what a row says with what its rater said before.

        Raises:
            RowFault: The rater says something else in this file.
        """
        label: Acuity | Label = row.label or Label.CANNOT_ASSESS
        key = (place, self._raters[row.rater or ""])
        if row.confidence is not None:
            self._report.confident(row.rater or "")
        before = earlier.get(key)
        if before is not None and (before.label, before.confidence, before.explanation) == (
            label, row.confidence, row.explanation,
        ):  # fmt: skip
            self._report.levels_known += 1
            return
        if before is not None and (before.number is None or before.created_at == self._at):
            came, expected = _level_words(label, row), _level_words(before.label, before)
            msg = f"level: expected {expected} for {_named(row)} by {row.rater!r} as on an earlier line, got {came}"
            raise RowFault(msg)
        if before is None:
            self._report.levels_new += 1
        else:
            self._report.levels_superseding += 1
        self._report.without_level += label is Label.CANNOT_ASSESS
        earlier[key] = Said(label, row.confidence, row.explanation, self._at)
        verdict = Verdict(
            example_id=place[0],
            response_id=None,
            criterion_id=None,
            rater_id=key[1],
            stage=Stage.JUDGE,
            label=label,
            confidence=row.confidence,
            explanation=row.explanation,
            created_at=self._at,
            supersedes=None if before is None else before.number,
        )
        new[key] = (row, verdict)

    def _write(self, samples: dict[Place, Sample], new: dict[tuple[Place, int], tuple[Prediction, Verdict]]) -> None:
        fresh = [sample for sample in samples.values() if sample.number is None]
        completed = [sample for sample in samples.values() if sample.number is not None and sample.is_completed]
        numbers = self._bulk.insert("response", [_response_row(sample) for sample in fresh])
        for sample, number in zip(fresh, numbers, strict=True):
            sample.number = number
        self._bulk.update("response", [{"id": sample.number, "text": sample.text} for sample in completed])
        self._bulk.verdicts(
            [
                msgspec.structs.replace(verdict, response_id=samples[place].number)
                for (place, _), (_, verdict) in new.items()
            ]
        )
        self._report.responses_new += len(fresh)
        self._report.texts_new += sum(bool(sample.text) for sample in fresh) + len(completed)
        worded = [(s.place[0], [s.text]) for s in (*fresh, *completed) if s.text]
        explained = [
            (place[0], [verdict.explanation]) for (place, _), (_, verdict) in new.items() if verdict.explanation
        ]
        self._bulk.await_index([*worded, *explained])


def _complete_text(row: Prediction, sample: Sample) -> None:
    """Give a sample the text of a row.

    Raises:
        RowFault: It has another one.
    """
    if row.text and not sample.text:
        sample.text, sample.is_completed = row.text, True
    elif row.text and row.text != sample.text:
        came, expected = shown_apart(row.text, sample.text)
        msg = f"text: expected {expected} for {_named(row)} as in an earlier row or file, got {came}"
        raise RowFault(msg)


def _named(row: Prediction) -> str:
    return f"{row.case_id!r}, {row.model!r}, {row.format}, sample {row.sample_index}"


def _level_words(label: str | None, said: Prediction | Said) -> str:
    level = "no level" if label == Label.CANNOT_ASSESS else str(label)
    confidence = "" if said.confidence is None else f" with confidence {said.confidence}"
    return level + confidence + ("" if said.explanation is None else f" because {shown(said.explanation)}")


def _response_row(sample: Sample) -> dict[str, Any]:
    example_id, model_id, evaluation, sample_index = sample.place
    return {
        "example_id": example_id,
        "model_id": model_id,
        "dataset": evaluation,
        "sample_index": sample_index,
        "text": sample.text,
    }

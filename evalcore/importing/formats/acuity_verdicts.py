"""Verdicts on the level of care, of responses and of cases, CSV or JSON Lines; also what `overread export --what acuity` writes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from evalcore.importing.context import (
    COMPARED,
    Cells,
    FileFormat,
    GivenVerdict,
    ImportContext,
    Options,
    RowWriter,
    is_own,
)
from evalcore.importing.formats import values
from evalcore.importing.formats.verdicts import OF_A_VERDICT, check_time, stage_of
from evalcore.importing.responses import verdict_of
from evalcore.study import lookups, schema
from evalcore.study.db import RowMapping
from evalcore.study.store import bring

COLUMNS = {
    "asked": f"{schema.Ask.RESPONSE_ACUITY}: the level that the response recommends; {schema.Ask.GOLD_ACUITY}: that the case needs",
    "example_id": "the case's name, {dataset}_{source_id} of the cases' file; or an example's (prompt_id)",
    "rater": "name of the physician or judge",
    "label": f"{values.VOTE_WORDS}, {schema.Label.CANNOT_ASSESS}",
    "model": "who answered; with the next two it says which response is meant",
    "evaluation": "what the response was made for: acuity_qa, acuity_conversation, ...",
    "sample_index": f"0, 1, ... {values.LAST_SAMPLE:,} for repeats (0 where nothing is said)",
    "dataset": f"data set of the example ({schema.CASES} where nothing is said)",
    **OF_A_VERDICT,
    "confidence": "0..1: that the rater's own level is right",
}


class GivenLevel(GivenVerdict, kw_only=True, gc=False):
    """A line: one rater's level of one response, or of one case (model, evaluation and sample_index are None)."""

    line: int
    dataset: str
    example_id: str
    model: str | None
    evaluation: str | None
    sample_index: int | None


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[GivenLevel]:
    """One verdict."""
    asked = values.word(cells, "asked", schema.Ask)
    if asked not in (schema.Ask.RESPONSE_ACUITY, schema.Ask.GOLD_ACUITY):
        came = "nothing" if asked is None else repr(asked.value)
        values.refuse("asked", f"{schema.Ask.RESPONSE_ACUITY} or {schema.Ask.GOLD_ACUITY}", came)
    of_case = asked is schema.Ask.GOLD_ACUITY
    kind = values.word(cells, "rater_kind", schema.RaterKind) or schema.RaterKind.REVIEWER
    stage = stage_of(kind, values.word(cells, "stage", schema.Stage))
    read_at = values.words(cells, "read_at")
    check_time(read_at)
    probability = values.amount(cells, "inclusion_probability")
    if probability == 0:
        values.refuse("inclusion_probability", "a number above 0 and at most 1", 0)
    is_unsure = cells.get("label", "").strip().lower() == schema.Label.CANNOT_ASSESS
    label = schema.Label.CANNOT_ASSESS if is_unsure else values.vote(cells, "label")
    if label is None:
        values.refuse("label", f"{values.VOTE_WORDS}, {schema.Label.CANNOT_ASSESS}", "nothing")
    expected = "what the response was made for, such as acuity_qa"
    words: dict[str, Any] = {name: values.word(cells, name, kind) for name, kind in values.WORDS_OF_WHY.items()}
    yield GivenLevel(
        line=number,
        dataset=values.name(cells, "dataset") or schema.CASES,
        example_id=values.needed(cells, "example_id", "the case's name"),
        model=None if of_case else values.model(cells, options.model),
        evaluation=None if of_case else values.needed(cells, "evaluation", expected),
        sample_index=None if of_case else values.sample_index(cells),
        rater=values.needed(cells, "rater", "the name of a physician or judge"),
        rater_kind=kind,
        stage=stage,
        label=label,
        explanation=values.words(cells, "explanation"),
        confidence=values.amount(cells, "confidence"),
        right_for_wrong_reason=values.truth(cells, "right_for_wrong_reason") or False,
        inclusion_probability=probability,
        blinded=values.truth(cells, "blinded"),
        read_at=read_at,
        **words,
    )


Item = tuple[int, int | None]  # example, and response or None for the case itself
Key = tuple[Item, int, str]  # item, rater, stage


class AcuityVerdicts(RowWriter):
    """Joins verdicts on the level of care with cases and responses of the study, compares them with what was said before, and writes them."""

    batch = 2_000

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._lines: dict[Key, int] = {}

    def add(self, rows: Sequence[GivenLevel]) -> None:
        """Check a batch and write it."""
        joined = self._joined(rows)
        items = {(example_id, response_id or 0) for _, (example_id, response_id) in joined}
        earlier: dict[Key, RowMapping] = {  # what was taken back too, to be replaced
            ((row["example_id"], row["response_id"]), row["rater_id"], row["stage"]): row
            for row in lookups.rows(self._session, lookups.ACUITY, items)
        }
        own = {key[:2] for key, stored in earlier.items() if is_own(stored)}
        new: list[schema.Verdict] = []
        for row, item in joined:
            with self._faults.caught(row.line):
                key = (item, self._context.rater(row.rater_kind, row.rater), str(row.stage))
                if (first := self._lines.setdefault(key, row.line)) != row.line:
                    got = f"{row.rater!r} again for this item and stage"
                    values.refuse("rater", f"one verdict, as on line {first}", got)
                before = earlier.get(key)
                if before is not None and all(before[name] == getattr(row, name) for name in COMPARED):
                    self._report.verdicts_known += 1
                    bring(self._session, "verdict", [before["id"]])
                    continue
                self._context.check_rater(key[1], row.line, has_own=key[:2] in own)
                if row.confidence is not None and row.rater_kind is schema.RaterKind.JUDGE:
                    self._report.confident(row.rater)
                number = None if before is None else before["id"]
                of_item = {"example_id": item[0], "response_id": item[1], "criterion_id": None, "rater_id": key[1]}
                new.append(verdict_of(self._context, row, **of_item, supersedes=number))
        if not self._faults.count:
            self._bulk.verdicts(new)
            self._bulk.await_index([(given.example_id, [given.explanation]) for given in new if given.explanation])

    def _joined(self, rows: Sequence[GivenLevel]) -> list[tuple[GivenLevel, Item]]:
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows:
            wanted[self._context.called("dataset", row.dataset)].add(row.example_id)
        examples = {
            (dataset, example["prompt_id"]): example["id"]
            for dataset, names in wanted.items()
            for example in lookups.rows(self._session, lookups.EXAMPLES, names, dataset=dataset)
        }
        models = lookups.model_ids(self._session, {row.model for row in rows if row.model})
        places: list[tuple[Any, ...]] = [
            (
                examples.get((self._context.called("dataset", row.dataset), row.example_id)),
                models.get(row.model or ""),
                row.evaluation,
                row.sample_index,
            )
            for row in rows
        ]
        found = lookups.rows(self._session, lookups.SAMPLES, {place for place in places if None not in place})
        place_of = itemgetter("example_id", "model_id", "dataset", "sample_index")
        responses = {place_of(row): row["id"] for row in found}
        joined: list[tuple[GivenLevel, Item]] = []
        for row, place in zip(rows, places, strict=True):
            number, response = place[0], responses.get(place)
            if number is None:
                self._report.no_partner(row.line, f"example {row.example_id!r} of {row.dataset!r} is not in the study")
            elif row.model is not None and response is None:
                which = f"sample {row.sample_index} of model {row.model!r} for {row.evaluation!r}"
                self._report.no_partner(row.line, f"no response to {row.example_id!r} is {which}")
            else:
                joined.append((row, (number, response)))
        return joined


FORMAT = FileFormat(
    name="acuity-verdicts",
    title="Verdicts on the level of care, CSV or JSON Lines",
    columns=COLUMNS,
    keys=frozenset({"asked", "example_id", "rater", "label"}),
    read_cells=read_cells,
    is_guarded=True,
    writer=AcuityVerdicts,
    is_triage=True,
    has_confidences=True,
)

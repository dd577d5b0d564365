"""Verdicts on the level of care: joined with the cases and responses of the study, compared with what was said before, then written."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy import RowMapping

from evalcore.errors import RowFault
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.formats.acuity_verdicts import GivenLevel
from evalcore.importing.readers import is_own
from evalcore.study import lookups
from evalcore.study.schema import RaterKind, Verdict
from evalcore.study.tables import now

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
                    msg = f"rater: {row.rater!r} came again for this item and stage, expected one verdict, as on line {first}"
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

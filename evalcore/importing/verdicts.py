"""Verdicts: compared with what the same raters have said before, then written."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import RowMapping

from evalcore.importing.acuity_taker import Hand
from evalcore.importing.formats.records import GivenVerdict
from evalcore.importing.known_responses import Joined
from evalcore.importing.readers import is_own
from evalcore.study import lookups
from evalcore.study.schema import Verdict
from evalcore.study.tables import now

Key = tuple[int, int, int, str]
"""Response, criterion, rater, stage."""
Said = tuple[object, ...]
"""What makes a verdict the same as an earlier one."""


class Labels(NamedTuple):
    """What one rater said on one response: label and explanation by criterion."""

    rater: int
    labels: dict[int, tuple[str | None, str | None]]


class Verdicts:
    """Writes the verdicts of joined rows."""

    def __init__(self, hand: Hand) -> None:
        self._session = hand.session
        self._bulk = hand.bulk
        self._report = hand.report
        self._readers = hand.readers
        self._own: set[tuple[int, int, int]] = set()
        self._at = now()

    def write(self, joined: Sequence[Joined], *, fresh: Mapping[int, list[str]]) -> list[tuple[int, list[str]]]:
        """Write what is new.

        Args:
            joined: Rows with a response that has its number.
            fresh: The texts of responses that are new themselves, by number.

        Returns:
            The texts to be indexed, each with its example: a new response with its explanations, any other explanation alone.
        """
        entries = {number: list(texts) for number, texts in fresh.items()}
        examples: dict[int, int] = {}
        alone: list[tuple[int, list[str]]] = []
        earlier = self._earlier(joined, fresh)
        new: dict[Key, Verdict] = {}
        for found in joined:
            example_id = found.example.number or 0
            response_id = found.response.number or 0 if found.response is not None else 0
            examples[response_id] = example_id
            for given, criterion in zip(found.record.verdicts, found.criteria, strict=True):
                if criterion is None:
                    continue
                rater_id = self._readers.number(given.rater_kind, given.rater)
                key = (response_id, criterion.number or 0, rater_id, given.stage)
                pending, before = new.get(key), earlier.get(key)
                said_before = _said(pending) if pending is not None else before[1] if before is not None else None
                if said_before is not None and said_before == _said(given):
                    self._report.verdicts_known += 1
                    continue
                self._readers.check(rater_id, 0, has_own=key[:3] in self._own)
                if pending is not None:  # the file itself revises it: the first has to have its number
                    self._bulk.verdicts(list(new.values()))
                    new, earlier = {}, self._earlier(joined, ())
                    before = earlier[key]
                new[key] = self._verdict(key, given, example_id, before[0] if before is not None else None)
                if given.explanation and response_id in entries:
                    entries[response_id].append(given.explanation)
                elif given.explanation:
                    alone.append((example_id, [given.explanation]))
        self._bulk.verdicts(list(new.values()))
        return [*((examples[number], texts) for number, texts in entries.items()), *alone]

    def labels_on(
        self, response_ids: Collection[int]
    ) -> dict[tuple[int, int], dict[int, tuple[str | None, str | None]]]:
        """The standing labels and explanations on some responses, by response and rater."""
        labels: defaultdict[tuple[int, int], dict[int, tuple[str | None, str | None]]] = defaultdict(dict)
        for row in lookups.newest_verdicts(self._session, response_ids):
            labels[row["response_id"], row["rater_id"]][row["criterion_id"]] = (row["label"], row["explanation"])
        return labels

    def labels_of(self, found: Joined) -> Labels:
        """What a row says, in the form of `labels_on`."""
        verdicts = found.record.verdicts
        said = {
            criterion.number or 0: (given.label.value if given.label else None, given.explanation or None)
            for given, criterion in zip(verdicts, found.criteria, strict=True)
            if criterion is not None
        }
        return Labels(self._readers.number(verdicts[0].rater_kind, verdicts[0].rater), said)

    def _earlier(self, joined: Sequence[Joined], fresh: Collection[int]) -> dict[Key, tuple[int, Said]]:
        """What has been said before on these responses: nothing on those that are new themselves."""
        responses = {found.response.number or 0 for found in joined if found.response is not None}
        rows = lookups.newest_verdicts(self._session, responses.difference(fresh))
        self._own = {(row["response_id"], row["criterion_id"], row["rater_id"]) for row in rows if is_own(row)}
        return {
            (row["response_id"], row["criterion_id"], row["rater_id"], row["stage"]): (row["id"], _said_in(row))
            for row in rows
        }

    def _verdict(self, key: Key, given: GivenVerdict, example_id: int, supersedes: int | None) -> Verdict:
        if supersedes is None:
            self._report.verdicts_new += 1
        else:
            self._report.verdicts_superseding += 1
        return Verdict(
            example_id=example_id,
            response_id=key[0],
            criterion_id=key[1],
            rater_id=key[2],
            stage=given.stage,
            label=given.label,
            confidence=given.confidence,
            explanation=given.explanation or None,
            cause=given.cause,
            severity=given.severity,
            error_kind=given.error_kind,
            reason=given.reason,
            conflict_cause=given.conflict_cause,
            right_for_wrong_reason=given.right_for_wrong_reason,
            selection=given.selection,
            inclusion_probability=given.inclusion_probability,
            blinded=given.blinded,
            created_at=datetime.fromisoformat(given.read_at) if given.read_at else self._at,
            supersedes=supersedes,
        )


def _said(given: GivenVerdict | Verdict) -> Said:
    return (
        given.label,
        given.explanation or None,
        given.confidence,
        given.cause,
        given.severity,
        given.right_for_wrong_reason,
        given.error_kind,
        given.reason,
        given.conflict_cause,
    )


def _said_in(row: RowMapping) -> Said:
    return tuple(
        row[name]
        for name in (
            "label",
            "explanation",
            "confidence",
            "cause",
            "severity",
            "right_for_wrong_reason",
            "error_kind",
            "reason",
            "conflict_cause",
        )
    )

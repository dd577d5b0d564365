"""What every taker of a file of triage has in hand."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from evalcore.importing.faults import Faults
from evalcore.importing.readers import Readers
from evalcore.importing.report import ImportReport
from evalcore.study.store import Bulk


@dataclass(frozen=True)
class Hand:
    """The transaction of one import, what writes in it, and what it tells.

    Attributes:
        faults: What is wrong with it: after the first one rows are checked, and nothing is written.
    """

    session: Session
    bulk: Bulk
    report: ImportReport
    faults: Faults
    readers: Readers


class Taker(ABC):
    """Takes the rows of one file, batch by batch: checks them against the study and, while nothing in the file was wrong, writes them."""

    batch = 500

    def __init__(self, hand: Hand) -> None:
        self._session = hand.session
        self._bulk = hand.bulk
        self._report = hand.report
        self._faults = hand.faults
        self._readers = hand.readers

    @abstractmethod
    def add(self, rows: Sequence[Any]) -> None:
        """Check a batch and write it."""

    def finish(self) -> None:  # noqa: B027 - most have nothing left to say
        """What can be said only when the last row is there."""

"""Files of triage: who takes which rows. Each taker checks a batch against the study and, while nothing in the file was wrong, writes it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlmodel import Session

from evalcore.importers import acuity_cases, acuity_matrices, acuity_predictions, acuity_verdicts, acuity_votes
from evalcore.importing.acuity_cases import Cases
from evalcore.importing.acuity_matrices import Matrices
from evalcore.importing.acuity_predictions import Predictions
from evalcore.importing.acuity_verdicts import AcuityVerdicts
from evalcore.importing.acuity_votes import Votes
from evalcore.importing.faults import Faults
from evalcore.importing.report import ImportReport
from evalcore.store import Bulk


class Taker(Protocol):
    """Takes the rows of one file, batch by batch.

    Attributes:
        batch: So many rows at once.
    """

    batch: int

    def add(self, rows: Sequence[Any]) -> None:
        """Check rows and write them."""

    def finish(self) -> None:
        """What can be said only when the last row is there."""


TAKERS: dict[str, Callable[[Session, Bulk, ImportReport, Faults], Taker]] = {
    acuity_cases.NAME: Cases,
    acuity_votes.NAME: Votes,
    acuity_predictions.NAME: Predictions,
    acuity_matrices.NAME: Matrices,
    acuity_verdicts.NAME: AcuityVerdicts,
}


def taker(format_name: str, session: Session, bulk: Bulk, report: ImportReport, faults: Faults) -> Taker | None:
    """Who takes the rows of this format; None where it is none of triage."""
    made = TAKERS.get(format_name)
    return None if made is None else made(session, bulk, report, faults)

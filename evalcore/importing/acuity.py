"""Files of triage: who takes which rows."""

from evalcore.importing.acuity_cases import Cases
from evalcore.importing.acuity_matrices import Matrices
from evalcore.importing.acuity_predictions import Predictions
from evalcore.importing.acuity_taker import Hand, Taker
from evalcore.importing.acuity_verdicts import AcuityVerdicts
from evalcore.importing.acuity_votes import Votes
from evalcore.importing.formats import acuity_cases, acuity_matrices, acuity_predictions, acuity_verdicts, acuity_votes

TAKERS: dict[str, type[Taker]] = {
    acuity_cases.NAME: Cases,
    acuity_votes.NAME: Votes,
    acuity_predictions.NAME: Predictions,
    acuity_matrices.NAME: Matrices,
    acuity_verdicts.NAME: AcuityVerdicts,
}


def taker(format_name: str, hand: Hand) -> Taker | None:
    """Who takes the rows of this format; None where it is none of triage."""
    made = TAKERS.get(format_name)
    return None if made is None else made(hand)

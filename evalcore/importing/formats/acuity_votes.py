"""Votes of panels on cases that the study has, CSV; with what their source counted, which must fit them."""

from collections.abc import Iterator

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.acuity_cells import Cells, Vote, amount, gold, needed, votes, whole, word
from evalcore.importing.formats.options import Options
from evalcore.study.schema import Acuity, Mapping

NAME = "acuity-votes"
TITLE = "Votes of panels on cases of triage, CSV"
COLUMNS = {
    "source_dataset": "the source of the case, as dataset in the cases' file",
    "source_id": "its name there",
    "anon_label_1, anon_label_2, ...": "votes: A, B, C, D, A|B, B|C, C|D (also with /), the four names, or Remove",
    "anon_label_1_rater, ...": "who voted (optional)",
    "avg_sd": "mean squared distance over all pairs of votes, those to remove left out; checked (optional)",
    "remove_votes": "how many votes are Remove; checked (optional)",
    "n_raters": "how many votes there are, with or without those to remove; checked (optional)",
    "mapping_method": ", ".join(Mapping) + " (optional)",
    "normalized_label": "A, B, C, D, A|B, B|C, C|D (optional)",
}
LARGEST_SPREAD = 9.0


class Panel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line: the votes on one case.

    Attributes:
        method, gold, is_removed: As in `acuity_cases.Case`.
        avg_sd: Mean squared distance over all pairs of votes, as the file states it.
    """

    line: int
    source: str
    source_id: str
    votes: tuple[Vote, ...]
    method: Mapping | None
    gold: Acuity | None
    is_removed: bool
    avg_sd: float | None

    @property
    def case_id(self) -> str:
        """The case's name in the study."""
        return f"{self.source}_{self.source_id}"


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"source_dataset", "source_id", "anon_label_1"} <= keys


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Panel]:  # noqa: ARG001 - the importers' common signature
    """The votes on one case.

    Raises:
        RowFault: The row breaks a rule of the format, or remove_votes or n_raters do not fit its votes.
    """
    given = votes(cells)
    if not given:
        msg = "anon_label_1: nothing came, expected at least one vote"
        raise RowFault(msg)
    _check_counts(cells, given)
    level, is_removed = gold(cells)
    yield Panel(
        line=number,
        source=needed(cells, "source_dataset", "the source's name"),
        source_id=needed(cells, "source_id", "the case's name in its source"),
        votes=given,
        method=word(cells, "mapping_method", Mapping),
        gold=level,
        is_removed=is_removed,
        avg_sd=amount(cells, "avg_sd", high=LARGEST_SPREAD, expected="a number from 0 to 9"),
    )


def _check_counts(cells: Cells, given: tuple[Vote, ...]) -> None:
    n, n_removed = len(given), sum(said.vote is Acuity.REMOVE for said in given)
    counted = whole(cells, "remove_votes")
    if counted is not None and counted != n_removed:
        msg = f"remove_votes: {counted} came, expected {n_removed} as in its votes"
        raise RowFault(msg)
    counted = whole(cells, "n_raters")
    if counted is not None and counted not in (n, n - n_removed):
        without = f", or {n - n_removed} without those to remove" if n_removed else ""
        msg = f"n_raters: {counted} came, expected {n} as in its votes{without}"
        raise RowFault(msg)

"""Cases of triage, and votes of panels on them, CSV or Parquet (AcuityBench, arXiv 2605.11398); where a panel disagrees with its file the votes count."""

from collections.abc import Iterator
from typing import Any

import msgspec

from evalcore.importing.context import Cells, FileFormat, ImportContext, Options, RowWriter
from evalcore.importing.formats import values
from evalcore.study.schema import Acuity, MappingMethod

LARGEST_SPREAD = 9
_VOTES = "A, B, C, D, A|B, B|C, C|D (also with /)"


class Panel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of a file of votes: those on one case, and how it ended as the file says."""

    line: int
    source: str
    source_id: str
    votes: tuple[values.Vote, ...]
    method: MappingMethod | None
    gold: Acuity | None  # None where the file gives none, or removes the case in its place
    is_removed: bool
    avg_sd: float | None = None  # mean squared distance over all pairs of votes

    @property
    def case_id(self) -> str:
        """Its name in the study."""
        return f"{self.source}_{self.source_id}"


class Case(Panel, frozen=True, kw_only=True, gc=False):
    """A line of a file of cases."""

    text: str
    original_label: str | None
    mapped_label: str | None
    is_edge_case: bool | None
    notes: str | None
    uncertainty: float | None
    canary: str | None


def _of_panel(cells: Cells, number: int, dataset: str) -> dict[str, Any]:
    level = values.vote(cells, "normalized_label")
    return {
        "line": number,
        "source": values.needed(cells, dataset, "the source's name"),
        "source_id": values.needed(cells, "source_id", "the case's name in its source"),
        "gold": None if level is Acuity.REMOVE else level,
        "is_removed": level is Acuity.REMOVE,
        "method": values.word(cells, "mapping_method", MappingMethod),
        "votes": values.votes(cells),
    }


def read_case(cells: Cells, number: int, options: Options) -> Iterator[Case]:  # noqa: ARG001 - the formats' common signature
    """One case."""
    text = values.words(cells, "normalized_prompt_text") or values.words(cells, "original_prompt_text")
    if text is None:
        values.refuse("original_prompt_text", "the case's text here or in normalized_prompt_text", "nothing")
    yield Case(
        **_of_panel(cells, number, "dataset"),
        text=text,
        original_label=values.name(cells, "original_label"),
        mapped_label=values.name(cells, "mapped_label"),
        is_edge_case=values.truth(cells, "is_edge_case"),
        notes=values.words(cells, "notes"),
        uncertainty=values.amount(cells, "uncertainty"),
        canary=values.words(cells, "canary"),
    )


def read_votes(cells: Cells, number: int, options: Options) -> Iterator[Panel]:  # noqa: ARG001 - the formats' common signature
    """The votes on one case; a fault where remove_votes or n_raters do not fit them."""
    given = values.votes(cells)
    n, n_removed = len(given), sum(vote.vote is Acuity.REMOVE for vote in given)
    if not given:
        values.refuse("anon_label_1", "at least one vote", "nothing")
    if values.whole(cells, "remove_votes") not in (None, n_removed):
        values.refuse("remove_votes", f"{n_removed} as in its votes", values.whole(cells, "remove_votes"))
    if values.whole(cells, "n_raters") not in (None, n, n - n_removed):
        without = f", or {n - n_removed} without those to remove" if n_removed else ""
        values.refuse("n_raters", f"{n} as in its votes{without}", values.whole(cells, "n_raters"))
    avg_sd = values.amount(cells, "avg_sd", high=LARGEST_SPREAD)
    yield Panel(**_of_panel(cells, number, "source_dataset"), avg_sd=avg_sd)


def _cases(context: ImportContext) -> RowWriter:
    from evalcore.importing.formats.acuity_panels import Cases  # noqa: PLC0415 - with pandas, which other files do without

    return Cases(context)


def _votes(context: ImportContext) -> RowWriter:
    from evalcore.importing.formats.acuity_panels import Votes  # noqa: PLC0415 - likewise

    return Votes(context)


CASE_FORMAT = FileFormat(
    name="acuity-cases",
    title="Cases of triage, CSV or Parquet",
    columns={
        "dataset": "the source that the case comes from; the case is then called {dataset}_{source_id}",
        "source_id": "its name there",
        "original_prompt_text": "what the patient wrote",
        "normalized_prompt_text": "the same as it is shown and sent, where it was reworded (optional)",
        "original_label": "as the source says it",
        "mapped_label": "what the source's label map makes of it: a level, a boundary, or panel (optional; else our own map says it)",
        "normalized_label": f"{_VOTES}, or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY; where it is missing, the source's label map decides",
        "is_edge_case": "true or false",
        "mapping_method": ", ".join(MappingMethod),
        "notes": "kept as they are (optional)",
        "anon_label_1, anon_label_2, ...": "votes of the panel, in the words of normalized_label, or Remove (optional)",
        "anon_label_1_rater, ...": "who voted (optional)",
        "uncertainty": "physicians' uncertainty, 0..1 (optional)",
        "canary": "kept and written back out (optional)",
    },
    keys=frozenset({"dataset", "source_id"}),
    one_of=(frozenset({"original_prompt_text", "normalized_prompt_text"}),),
    read_cells=read_case,
    writer=_cases,
    is_parquet=True,
    is_triage=True,
)
VOTE_FORMAT = FileFormat(
    name="acuity-votes",
    title="Votes of panels on cases of triage, CSV",
    columns={
        "source_dataset": "the source of the case, as dataset in the cases' file",
        "source_id": "its name there",
        "anon_label_1, anon_label_2, ...": f"votes: {_VOTES}, the four names, or Remove",
        "anon_label_1_rater, ...": "who voted (optional)",
        "avg_sd": "mean squared distance over all pairs of votes, those to remove left out; checked (optional)",
        "remove_votes": "how many votes are Remove; checked (optional)",
        "n_raters": "how many votes there are, with or without those to remove; checked (optional)",
        "mapping_method": ", ".join(MappingMethod) + " (optional)",
        "normalized_label": "A, B, C, D, A|B, B|C, C|D (optional)",
    },
    keys=frozenset({"source_dataset", "source_id", "anon_label_1"}),
    read_cells=read_votes,
    writer=_votes,
    is_parquet=True,
    is_triage=True,
)

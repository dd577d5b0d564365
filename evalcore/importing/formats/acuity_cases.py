"""Cases of triage with the votes of their panels, CSV or Parquet (the release schema of AcuityBench, arXiv 2605.11398)."""

from collections.abc import Iterator

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.acuity_cells import Cells, Vote, gold, name, needed, share, truth, votes, word, words
from evalcore.importing.formats.options import Options
from evalcore.study.schema import Acuity, Mapping

NAME = "acuity-cases"
TITLE = "Cases of triage, CSV or Parquet"
COLUMNS = {
    "dataset": "the source that the case comes from; the case is then called {dataset}_{source_id}",
    "source_id": "its name there",
    "original_prompt_text": "what the patient wrote",
    "normalized_prompt_text": "the same as it is shown and sent, where it was reworded (optional)",
    "original_label": "as the source says it",
    "mapped_label": "what the source's label map makes of it: a level, a boundary, or panel (optional; else our own map says it)",
    "normalized_label": "A, B, C, D, A|B, B|C, C|D (also with /), or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY; where it is "
    "missing, the source's label map decides",
    "is_edge_case": "true or false",
    "mapping_method": ", ".join(Mapping),
    "notes": "kept as they are (optional)",
    "anon_label_1, anon_label_2, ...": "votes of the panel, in the words of normalized_label, or Remove (optional)",
    "anon_label_1_rater, ...": "who voted (optional)",
    "uncertainty": "physicians' uncertainty, 0..1 (optional)",
    "canary": "kept and written back out (optional)",
}


class Case(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line: one case.

    Attributes:
        gold: As the file gives it; None where it gives none, or removes the case.
        is_removed: The file says so in the place of a level.
    """

    line: int
    source: str
    source_id: str
    text: str
    original_label: str | None
    mapped_label: str | None
    gold: Acuity | None
    is_removed: bool
    is_edge_case: bool | None
    method: Mapping | None
    notes: str | None
    uncertainty: float | None
    canary: str | None
    votes: tuple[Vote, ...]

    @property
    def case_id(self) -> str:
        """Its name in the study."""
        return f"{self.source}_{self.source_id}"


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"dataset", "source_id"} <= keys and bool({"original_prompt_text", "normalized_prompt_text"} & keys)


def read_cells(cells: Cells, number: int, options: Options) -> Iterator[Case]:  # noqa: ARG001 - the importers' common signature
    """One case.

    Raises:
        RowFault: The row breaks a rule of the format.
    """
    text = words(cells, "normalized_prompt_text") or words(cells, "original_prompt_text")
    if text is None:
        msg = "original_prompt_text: nothing came, expected the case's text here or in normalized_prompt_text"
        raise RowFault(msg)
    level, is_removed = gold(cells)
    yield Case(
        line=number,
        source=needed(cells, "dataset", "the source's name"),
        source_id=needed(cells, "source_id", "the case's name in its source"),
        text=text,
        original_label=name(cells, "original_label"),
        mapped_label=name(cells, "mapped_label"),
        gold=level,
        is_removed=is_removed,
        is_edge_case=truth(cells, "is_edge_case"),
        method=word(cells, "mapping_method", Mapping),
        notes=words(cells, "notes"),
        uncertainty=share(cells, "uncertainty"),
        canary=words(cells, "canary"),
        votes=votes(cells),
    )

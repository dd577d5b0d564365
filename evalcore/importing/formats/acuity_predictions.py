"""What models answered to cases of triage, and which level raters read out of it, CSV or JSON Lines."""

from collections.abc import Iterator

import msgspec

from evalcore.errors import RowFault
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
from evalcore.importing.formats.options import Options
from evalcore.importing.formats.wire import shown
from evalcore.study.schema import RULES, Acuity, Format, Label

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
                msg = f"{column}: {shown(value)} came without a rater, expected who read the level: parser, rules, or a judge's name"
                raise RowFault(msg)
        if text is None:
            msg = "text: nothing came, nor a rater, expected at least one of them"
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

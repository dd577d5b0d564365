"""Cases of triage as a table to take away: what each needs and who says so, beside what every model answers."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from evalcore.study.schema import CASES, Acuity
from evalcore.triage.data import LEVELS, Triaged
from evalcore.triage.predictions import predictions, usual_judges
from evalcore.triage.reads import case_levels, response_levels

_WORDS = {value: label.value for label, value in LEVELS.items() if not np.isnan(value)}
_OF_CASE = ("example_id", "case_id", "source", "language", "original_label", "mapped_label", "method", "is_edge_case", "uncertainty",
            "n_votes", "n_removed", "spread", "strength", "kind")  # fmt: skip
_COUNTS = ("n_A", "n_B", "n_C", "n_D", "n_no_level", "n_samples", "share", "confidence")
COLUMNS = (
    "dataset", *_OF_CASE, "votes", "gold", "gold_read_here", "gold_how", "gold_readers", "model", "format", "judge", "predicted", *_COUNTS,
    "n_read", "levels_read",
)  # fmt: skip


def judges_of(triaged: Triaged, judge: str | None) -> dict[str, str]:
    """Who is taken at their word for each format: this judge where it has looked, else the usual one."""
    found = usual_judges(triaged)
    return found | {word: judge for word in found if judge is not None and judge in triaged.judges(word)}


def words_of(levels: pd.Series) -> pd.Series:
    """Levels as their labels, missing where there is none.

    >>> words_of(pd.Series([4.0, 2.5, float("nan")])).tolist()[:2]
    ['D', 'B/C']
    """
    return levels.map(_WORDS).astype(object)


def case_table(triaged: Triaged, judges: Mapping[str, str]) -> pd.DataFrame:
    """One row a case, model and format that has any response; a case that nobody answered has one row.

    Args:
        triaged: `panels.described`.
        judges: By format whose levels count.

    Returns:
        `COLUMNS`: what is known of the case (votes in their order, joined by ";"; gold as the study takes it; gold_read_here, gold_how and
        gold_readers as `triage_reads.case_levels` has them), and of the model's answers (predicted, its samples by level; a boundary counts half to
        each), n_read (responses that physicians have read) and levels_read (their levels, joined by ";"). Levels are labels.
    """
    found = predictions(triaged, judges)
    found = found.assign(judge=found["format"].map(dict(judges)).astype(object))
    found = found.merge(_reads(triaged), on=["row", "model", "format"], how="left")
    cases = _described(triaged)
    table = cases.merge(found.astype({"model": object, "format": object}), on="row", how="left")
    table = table.assign(
        dataset=CASES,
        predicted=words_of(table["predicted"]),
        n_no_level=table["n_invalid"],
        confidence=table["stated"],
        n_read=table["n_read"].where(table["model"].isna(), table["n_read"].fillna(0)),
    )
    return table[list(COLUMNS)]


def _described(triaged: Triaged) -> pd.DataFrame:
    cases = triaged.cases
    votes = triaged.votes.sort_values(["row", "place"])
    words = words_of(votes["vote"]).fillna(Acuity.REMOVE.value)
    joined = words.groupby(votes["row"].to_numpy()).agg(";".join)
    here = case_levels(triaged).set_index("row")
    rows = np.arange(len(cases))
    return cases[list(_OF_CASE)].assign(
        row=rows,
        votes=joined.reindex(rows).to_numpy(dtype=object),
        gold=words_of(cases["gold"]),
        gold_read_here=words_of(here["level"]).reindex(rows).to_numpy(dtype=object),
        gold_how=here["how"].reindex(rows).to_numpy(dtype=object),
        gold_readers=here["n_readers"].reindex(rows).to_numpy(dtype=float),
    )


def _reads(triaged: Triaged) -> pd.DataFrame:
    """What physicians read of each case, model and format: row, model, format, n_read, levels_read."""
    read = response_levels(triaged)
    places = read["sample"].to_numpy(dtype=np.int64)
    of = triaged.samples[["model", "format"]].take(places).reset_index(drop=True)
    table = read[["row"]].assign(model=of["model"].array, format=of["format"].array, level=words_of(read["level"]))
    grouped = table.groupby(["row", "model", "format"], observed=True)["level"]
    return grouped.agg(n_read="size", levels_read=lambda words: ";".join(words.dropna())).reset_index()

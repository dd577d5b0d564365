"""How far corrected scores rest on what physicians could not assess, and on reads that never came."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import CORRECTED, corrected_scores, estimator_inputs
from evalcore.rubric.data import DRAWN, RubricData, first_reads, is_drawn
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import Claim, Physicians, Stage

MODEL = ["model", "evaluation"]
COLUMNS = [
    *MODEL, "scenario", "n_taken", "n_of", "corrected", "corrected_low", "corrected_high", "shift",
]  # fmt: skip


class Scenario(StrEnum):
    """What is supposed of the reads that are missing."""

    ESTIMATED = "as_estimated"
    """They are like those that there are: missing at random."""
    CANNOT_ASSESS_FOR = "cannot_assess_for"
    """Every criterion that a physician could not assess counts for the model: met, or not met where it is undesirable."""
    CANNOT_ASSESS_AGAINST = "cannot_assess_against"
    """It counts against the model."""
    UNREAD_FOR = "unread_for"
    """Every criterion of the responses that were drawn, and that nobody has read, counts for the model."""
    UNREAD_AGAINST = "unread_against"
    """It counts against the model."""
    ALL_FOR = "all_for"
    """Both count for the model."""
    ALL_AGAINST = "all_against"
    """Both count against the model."""


_FOR = (Scenario.CANNOT_ASSESS_FOR, Scenario.UNREAD_FOR, Scenario.ALL_FOR)
_CANNOT = (Scenario.CANNOT_ASSESS_FOR, Scenario.CANNOT_ASSESS_AGAINST)
_UNREAD = (Scenario.UNREAD_FOR, Scenario.UNREAD_AGAINST)
_COUNTED: Mapping[Scenario, tuple[list[str], list[str]]] = {
    Scenario.ESTIMATED: ([], ["n_reads"]),
    **dict.fromkeys(_CANNOT, (["n_unknown"], ["n_reads"])),
    **dict.fromkeys(_UNREAD, (["n_unread"], ["n_drawn"])),
    **dict.fromkeys((Scenario.ALL_FOR, Scenario.ALL_AGAINST), (["n_unknown", "n_unread"], ["n_reads", "n_drawn"])),
}
"""n_taken and n_of: columns of `_amounts`."""


def sensitivity(
    rubric_data: RubricData,
    unread: pd.DataFrame | None = None,
    *,
    judges: Sequence[str] | None = None,
    claim: Claim = Claim.BENCHMARK,
    physicians: Physicians = Physicians.THESE,
    settled: bool = False,
    weights: pd.Series | None = None,
) -> pd.DataFrame:
    """Corrected scores if the missing reads had all spoken for the model, or all against it.

    As estimated, a read that could not assess is as if the item had not been drawn, and a response that was drawn and that nobody has read is as if
    the drawing had been smaller. The bounds put a label in the place of each (as Manski 1990 does): one that gains the model points, or one that
    costs it points. Where the fit gives an item a weight of the other sign, which is rare, these are not quite the extremes. What an
    adjudicator has settled stays. Unread responses are shared out in turn among the physicians who read the model, so that nobody's load is made up.

    `unread` are the responses that were drawn, in drawings that have begun, and that nobody has read (`drawings.unread`). The other arguments are
    those of `estimator_inputs` and `corrected_scores`.

    Returns:
        One row a model, evaluation and `Scenario`, in its order: model, evaluation, scenario, n_taken of n_of (cannot-assess scenarios: reads that could
        not assess of the blind reads of drawn items; unread: responses without a read of those drawn; all: both together; as estimated: 0
        of the reads), corrected, corrected_low, corrected_high, and shift (corrected less that as estimated). NaN where too little is read.
    """
    waiting = _waiting(rubric_data, unread)
    amounts = _amounts(rubric_data, waiting)
    plain: pd.DataFrame | None = None
    tables = []
    for scenario in Scenario:
        filled = _filled(rubric_data, waiting, scenario)
        if filled is None and plain is not None:
            scores = plain
        else:
            inputs = estimator_inputs(filled or rubric_data, judges=judges, settled=settled, weights=weights)
            scores = corrected_scores(inputs, claim=claim, physicians=physicians)
        plain = scores if plain is None else plain
        table = scores[[*MODEL, CORRECTED, f"{CORRECTED}_low", f"{CORRECTED}_high"]].copy()
        of_models = amounts.reindex(pd.MultiIndex.from_frame(table[MODEL].astype(str)), fill_value=0)
        for name, parts in zip(("n_taken", "n_of"), _COUNTED[scenario], strict=True):
            table[name] = of_models[parts].sum(axis=1).to_numpy().astype(int)
        table["shift"] = table[CORRECTED] - plain[CORRECTED]
        tables.append(table.assign(scenario=scenario.value, order=np.arange(len(table))))
    return pd.concat(tables, ignore_index=True).sort_values("order", kind="stable", ignore_index=True)[COLUMNS]


def _waiting(rubric_data: RubricData, unread: pd.DataFrame | None) -> pd.DataFrame:
    """The items of responses that were drawn and that nobody has read blind: row, response_id, inclusion_probability."""
    chances = pd.Series(dtype=float)
    if unread is not None and len(unread):
        chances = unread.drop_duplicates("response_id").set_index("response_id")["inclusion_probability"]
        chances = chances.loc[~chances.index.isin(_drawn(rubric_data)["response_id"].unique())]
    rows = np.flatnonzero(rubric_data.items["response_id"].isin(chances.index).to_numpy())
    response_ids = rubric_data.items["response_id"].iloc[rows]
    return pd.DataFrame(
        {
            "row": rows,
            "response_id": response_ids.to_numpy(),
            "inclusion_probability": response_ids.map(chances).to_numpy(dtype=float),
        }
    )


def _drawn(rubric_data: RubricData) -> pd.DataFrame:
    """The blind first reads of drawn items."""
    return first_reads(rubric_data.reads).loc[is_drawn]


def _of_models(rubric_data: RubricData, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows about items with the items' model and evaluation."""
    return rows.join(rubric_data.items[MODEL].astype(str), on="row")


def _amounts(rubric_data: RubricData, waiting: pd.DataFrame) -> pd.DataFrame:
    """By model and evaluation: n_unknown (reads that could not assess) of n_reads, and n_unread (responses drawn and not read) of n_drawn."""
    reads, late = (_of_models(rubric_data, rows).groupby(MODEL) for rows in (_drawn(rubric_data), waiting))
    amounts = pd.DataFrame(
        {
            "n_reads": reads.size(),
            "n_known": reads["met"].count(),
            "n_read": reads["response_id"].nunique(),
            "n_unread": late["response_id"].nunique(),
        }
    )
    amounts = amounts.fillna(0).astype(int)
    return amounts.assign(
        n_unknown=amounts["n_reads"] - amounts["n_known"], n_drawn=amounts["n_read"] + amounts["n_unread"]
    )


def _filled(rubric_data: RubricData, waiting: pd.DataFrame, scenario: Scenario) -> RubricData | None:
    """The study with labels where reads are missing; None where nothing is put in."""
    if scenario is Scenario.ESTIMATED:
        return None
    reads = rubric_data.reads
    helps = rubric_data.items["points"].gt(0).to_numpy() == (scenario in _FOR)  # by item: met is what is supposed
    blank = np.zeros(len(reads), dtype=bool)
    if scenario not in _UNREAD:
        is_first = reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])
        blank = (is_first & reads["met"].isna()).to_numpy()
        rows = reads["row"].to_numpy(dtype=np.int64)
        reads = reads.assign(met=np.where(blank, helps[rows].astype(float), reads["met"].to_numpy(dtype=float)))
    late = waiting if scenario not in _CANNOT else waiting.iloc[:0]
    if not blank.any() and late.empty:
        return None
    return replace(rubric_data, reads=pd.concat([reads, _supposed(rubric_data, late, helps)]) if len(late) else reads)


def _supposed(rubric_data: RubricData, late: pd.DataFrame, helps: np.ndarray) -> pd.DataFrame:
    """A read of every item of the responses that nobody has read."""
    readers = _of_models(rubric_data, _drawn(rubric_data)).groupby(MODEL)["rater"].unique()
    number = pd.factorize(late["response_id"], sort=True)[0]
    raters = []
    for place, *model in zip(number, *(_of_models(rubric_data, late)[name] for name in MODEL), strict=True):
        names = sorted(readers.get(tuple(model), ["nobody"]))
        raters.append(names[place % len(names)])
    rows = late["row"].to_numpy(dtype=np.int64)
    of_item = {name: rubric_data.items[name].to_numpy()[rows] for name in ("item_id", "example_id", "response_id")}
    return pd.DataFrame(
        {
            "row": rows,
            **of_item,
            "rater": raters,
            "met": helps[rows].astype(float),
            "stage": Stage.FIRST.value,
            "blinded": True,
            "selection": DRAWN[0].value,
            "inclusion_probability": late["inclusion_probability"].to_numpy(dtype=float),
            "unit": of_item["response_id"],
        }
    )


def sensitivity_sentence(table: pd.DataFrame) -> str:
    """What the missing reads would do if all spoke for the model or all against it, by `sensitivity`; where there are none, that."""
    known = table.loc[table["shift"].notna()]
    if known.empty:
        return "Too little has been read for a corrected score, so there is nothing to try."
    words = []
    for scenarios, which, what in (
        (_CANNOT, "in which physicians could not assess", "read"),
        (_UNREAD, "of drawings that have begun and that nobody has read (yet)", "response"),
    ):
        rows = known.loc[known["scenario"].isin(scenarios)]
        once = rows.drop_duplicates(MODEL)
        n_taken, n_of = int(once["n_taken"].sum()), int(once["n_of"].sum())
        if n_taken:
            shift, model = max(zip(rows["shift"].abs(), rows["model"].astype(str), strict=True))
            words.append(
                f"If the {counted(n_taken, what)} of {n_of:,} {which} had all spoken for the model, or all against it, no score would move by more "
                f"than {shift:.3f} ({model})."
            )
    return (
        " ".join(words)
        or "No read is missing: physicians could assess every criterion, and every response that was drawn has been read."
    )


def bounds_words(*scores: float) -> str:
    """A score, or two as the ends of what could be; a dash where there is none.

    >>> bounds_words(0.5123, 0.5401), bounds_words(-0.02), bounds_words(-0.0001, 0.0001), bounds_words(np.nan)
    ('0.512 to 0.540', '−0.020', '0.000', '–')
    """
    if any(np.isnan(score) for score in scores):
        return NO_VALUE
    return " to ".join(dict.fromkeys(decimal(score, 3) for score in scores))

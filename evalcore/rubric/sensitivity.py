"""How far corrected scores rest on what physicians could not assess, and on reads that never came."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import CORRECTED, corrected_scores, estimator_inputs
from evalcore.rubric.data import DRAWN, RubricData, first_reads, is_drawn
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import Claim, Physicians, Stage

MODEL = ["model", "evaluation"]
COLUMNS = [*MODEL, "scenario", "n_taken", "n_of", "corrected", "corrected_low", "corrected_high", "shift"]


class Scenario(StrEnum):
    """What is supposed of the reads that are missing: all count for the model (met, or not met where it is undesirable), or all against it."""

    ESTIMATED = "as_estimated"  # they are like those that there are: missing at random
    CANNOT_ASSESS_FOR = "cannot_assess_for"  # every criterion that a physician could not assess
    CANNOT_ASSESS_AGAINST = "cannot_assess_against"
    UNREAD_FOR = "unread_for"  # every criterion of the responses that were drawn, and that nobody has read
    UNREAD_AGAINST = "unread_against"
    ALL_FOR = "all_for"  # both
    ALL_AGAINST = "all_against"


CANNOT = (Scenario.CANNOT_ASSESS_FOR, Scenario.CANNOT_ASSESS_AGAINST)
UNREAD = (Scenario.UNREAD_FOR, Scenario.UNREAD_AGAINST)
ALL = (Scenario.ALL_FOR, Scenario.ALL_AGAINST)


def sensitivity(
    rubric_data: RubricData,
    unread: pd.DataFrame | None = None,
    *,
    claim: Claim = Claim.BENCHMARK,
    physicians: Physicians = Physicians.THESE,
    **correcting: Any,
) -> pd.DataFrame:
    """Corrected scores if the missing reads had all spoken for the model, or all against it (bounds as of Manski 1990).

    As estimated, a read that could not assess is as if the item had not been drawn, and a response that was drawn and that nobody has read as if the drawing
    had been smaller. Where the fit gives an item a weight of the other sign, which is rare, the bounds are not quite the extremes. What an adjudicator
    has settled stays. Unread responses (`queries.unread`) are shared out in turn among the physicians who read the model.

    Returns:
        `COLUMNS`, one row a model, evaluation and `Scenario`: n_taken of n_of (reads of drawn items, responses drawn, or both), the corrected score, and
        shift (less that as estimated). NaN where too little is read.
    """
    drawn = first_reads(rubric_data.reads).loc[is_drawn]
    of_model = rubric_data.items[MODEL].take(drawn["row"].to_numpy()).astype(str).set_axis(drawn.index)
    drawn = drawn.assign(**{name: of_model[name] for name in MODEL})
    chances = pd.Series(dtype=float)
    if unread is not None and len(unread):
        chances = unread.drop_duplicates("response_id").set_index("response_id")["inclusion_probability"]
        chances = chances.loc[~chances.index.isin(drawn["response_id"].unique())]
    items = rubric_data.items.loc[rubric_data.items["response_id"].isin(chances.index)]
    waiting = items[["item_id", "example_id", "response_id"]].join(items[MODEL].astype(str)).rename_axis("row")
    waiting["inclusion_probability"] = items["response_id"].map(chances).astype(float)
    waiting = waiting.reset_index()  # the items of responses that were drawn and that nobody has read blind
    reads = drawn.groupby(MODEL)
    n_unread, n_read = (rows.groupby(MODEL)["response_id"].nunique() for rows in (waiting, drawn))
    counts = {"n_reads": reads.size(), "n_known": reads["met"].count(), "n_read": n_read, "n_unread": n_unread}
    amounts = pd.DataFrame(counts).fillna(0).astype(int)
    amounts["n_unknown"] = amounts["n_reads"] - amounts["n_known"]
    amounts["n_drawn"] = amounts["n_read"] + amounts["n_unread"]
    claims: Any = {"claim": claim, "physicians": physicians}
    plain = corrected_scores(estimator_inputs(rubric_data, **correcting), **claims)
    tables = []
    for scenario in Scenario:
        filled = _filled(rubric_data, drawn, waiting, scenario)
        scores = plain if filled is None else corrected_scores(estimator_inputs(filled, **correcting), **claims)
        table = scores[[*MODEL, CORRECTED, f"{CORRECTED}_low", f"{CORRECTED}_high"]].copy()
        of_models = amounts.reindex(pd.MultiIndex.from_frame(table[MODEL].astype(str)), fill_value=0)
        taken = (["n_unknown"] if scenario in CANNOT + ALL else []) + (["n_unread"] if scenario in UNREAD + ALL else [])
        of = ([] if scenario in UNREAD else ["n_reads"]) + (["n_drawn"] if scenario in UNREAD + ALL else [])
        for name, parts in (("n_taken", taken), ("n_of", of)):
            table[name] = of_models[parts].sum(axis=1).to_numpy().astype(int)
        table["shift"] = table[CORRECTED] - plain[CORRECTED]
        tables.append(table.assign(scenario=scenario.value, order=np.arange(len(table))))
    return pd.concat(tables, ignore_index=True).sort_values("order", kind="stable", ignore_index=True)[COLUMNS]


def _filled(
    rubric_data: RubricData, drawn: pd.DataFrame, waiting: pd.DataFrame, scenario: Scenario
) -> RubricData | None:
    if scenario is Scenario.ESTIMATED:
        return None
    reads = rubric_data.reads
    # by item: met is what is supposed
    helps = (rubric_data.items["points"].gt(0).to_numpy() == scenario.endswith("_for")).astype(float)
    blank = np.zeros(len(reads), dtype=bool)
    if scenario not in UNREAD:
        is_first = reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])
        blank = (is_first & reads["met"].isna()).to_numpy()
        met = reads["met"].to_numpy(dtype=float)
        reads = reads.assign(met=np.where(blank, helps[reads["row"].to_numpy(dtype=np.int64)], met))
    if scenario in CANNOT or waiting.empty:
        return replace(rubric_data, reads=reads) if blank.any() else None
    # a read of every item of the responses that nobody has read
    readers = {model: sorted(names) for model, names in drawn.groupby(MODEL)["rater"].unique().items()}
    raters = []
    numbers = pd.factorize(waiting["response_id"], sort=True)[0]
    for number, *model in zip(numbers, *(waiting[name] for name in MODEL), strict=True):
        names: Sequence[str] = readers.get(tuple(model), ["nobody"])
        raters.append(names[number % len(names)])
    met, unit = helps[waiting["row"].to_numpy()], waiting["response_id"]
    supposed = waiting.drop(columns=MODEL).assign(rater=raters, met=met, blinded=True, unit=unit)
    supposed = supposed.assign(stage=Stage.FIRST.value, selection=DRAWN[0].value)
    return replace(rubric_data, reads=pd.concat([reads, supposed]))


def sensitivity_sentence(table: pd.DataFrame) -> str:
    """What the missing reads would do if all spoke for the model or all against it, by `sensitivity`; where there are none, that."""
    known = table.loc[table["shift"].notna()]
    if known.empty:
        return "Too little has been read for a corrected score, so there is nothing to try."
    words = []
    for scenarios, which, what in (
        (CANNOT, "in which physicians could not assess", "read"),
        (UNREAD, "of drawings that have begun and that nobody has read (yet)", "response"),
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
    nothing = (
        "No read is missing: physicians could assess every criterion, and every response that was drawn has been read."
    )
    return " ".join(words) or nothing


def missing_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """`sensitivity` in words, a row a model; no intervals, since each is the worst or the best that could be."""
    by = table.set_index(["model", "scenario"])
    models = list(table["model"].unique())

    def bounds(*scenarios: Scenario) -> list[str]:
        return [bounds_words(*(by.loc[(name, scenario), "corrected"] for scenario in scenarios)) for name in models]

    columns = {"Model": models, "As estimated": bounds(Scenario.ESTIMATED)}
    kinds = {"Could not assess": CANNOT[::-1], "Drawn, not read": UNREAD[::-1]}
    shown = {what: ends for what, ends in kinds.items() if by.xs(ends[0], level="scenario")["n_taken"].any()}
    for what, ends in shown.items():
        rows = [by.loc[(name, ends[0])] for name in models]
        columns[what] = [f"{row['n_taken']:,} of {row['n_of']:,}" for row in rows]
        columns[f"{what}: all against to all for the model"] = bounds(*ends)
    if len(shown) > 1:
        columns["Both: all against to all for the model"] = bounds(*ALL[::-1])
    return columns


def bounds_words(*scores: float) -> str:
    """A score, or two as the ends of what could be; a dash where there is none."""
    if any(np.isnan(score) for score in scores):
        return NO_VALUE
    return " to ".join(dict.fromkeys(decimal(score, 3) for score in scores))

"""The four parts of calibration, put together from their metrics with one seed, so that the page and the command show the same numbers.

Judges' confidence, models' confidence on clear cases, models' spread on ambiguous cases, and routing; and the findings above their figures.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evalcore.calibration import routing
from evalcore.calibration.case_spread import case_spread, summary, unsure
from evalcore.calibration.confidence_meaning import as_right
from evalcore.calibration.judge_confidence import (
    FEWEST,
    criterion_items,
    level_items,
    level_vote_items,
    majority_items,
    model_items,
    who,
)
from evalcore.calibration.reliability import calibration_error, reliability, scaled
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import NO_VALUE, percent_words
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import PARSER
from evalcore.triage.data import Kind, TriageData
from evalcore.triage.words import number_words, points

SEED = 19
BY_JUDGE, BY_MODEL = ("group",), ("model", "format")


@dataclass(frozen=True)
class Calibrated:
    """Confidence against what is right: the tables of `reliability` and `calibration_error`.

    Attributes:
        majorities: Groups whose confidence is the share of several judges that agree.
    """

    reliability: pd.DataFrame
    errors: pd.DataFrame
    majorities: frozenset[str] = frozenset()


def calibrated(items: pd.DataFrame, by: Sequence[str] = BY_JUDGE) -> Calibrated:
    """The reliability of items, and how far they are off."""
    errors = calibration_error(items, rng=np.random.default_rng(SEED), by=by)
    return Calibrated(reliability(items, by=by), errors)


def judges_on_criteria(
    beside: pd.DataFrame, checked: pd.DataFrame, rubric_data: RubricData | None, *, drawn: bool
) -> Calibrated:
    """Judges' stated confidences on criteria against physicians' blind reads, a group a judge; and the majority of several, a group more.

    A judge whose meaning is not known in `checked` (`criteria_meanings`), or contradicted, has no value, and the sentence why. `rubric_data` is
    None where not several judges have labelled criteria; the share of them that says what most say is a confidence that needs no question. With
    `drawn` only reads of items that were drawn with a known probability count, by its inverse.
    """
    stated = criterion_items(as_right(beside, checked), drawn=drawn)
    return _with_majority(stated, None if rubric_data is None else majority_items(rubric_data, drawn=drawn))


def judges_on_levels(triage_data: TriageData, checked: pd.DataFrame, *, drawn: bool) -> Calibrated:
    """The same for the levels that judges read out of responses; a group a judge, or a majority, and format."""
    items = level_items(triage_data, drawn=drawn)
    items = items.loc[items["judge"].ne(PARSER)].reset_index(drop=True)
    return _with_majority(as_right(items, checked), level_vote_items(triage_data, drawn=drawn))


def _with_majority(stated: pd.DataFrame, agreed: pd.DataFrame | None) -> Calibrated:
    names = ["group", "cluster", "confidence", "right", "weight", "refused"]
    tables = [
        table[names].astype({"group": object, "refused": object}) for table in (stated, agreed) if table is not None
    ]
    majorities = frozenset() if agreed is None else frozenset(map(str, agreed["group"]))
    return replace(calibrated(pd.concat(tables, ignore_index=True)), majorities=majorities)


@dataclass(frozen=True)
class OfModels:
    """Models' own confidence on clear cases, by model and format.

    Attributes:
        found: Against whether they are right.
        sources: model, format, n_stated (clear cases with a confidence that the model states), n_shares (with the share of its samples), n_without.
    """

    found: Calibrated
    sources: pd.DataFrame


def models_confidence(own: pd.DataFrame) -> OfModels:
    """Models' own confidence (`own_confidence`, with gold and kind of their cases) against whether they are right."""
    items = model_items(own)
    without = items["confidence"].isna()
    marked = items.assign(n_stated=items["is_stated"], n_shares=~items["is_stated"] & ~without, n_without=without)
    names = ["n_stated", "n_shares", "n_without"]
    sources = marked.groupby(list(BY_MODEL), observed=True)[names].sum().astype(int).reset_index()
    return OfModels(calibrated(items, BY_MODEL), sources)


def temperature_scaled(own: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The reliability after temperature scaling, each case scaled without its own fold; and the table of `reliability.scaled`."""
    table, moved = scaled(model_items(own), rng=np.random.default_rng(SEED), by=BY_MODEL)
    return reliability(moved, by=BY_MODEL), table


@dataclass(frozen=True)
class OfAmbiguous:
    """Models' samples beside the panels' votes on ambiguous cases: the tables of `case_spread.summary` and `case_spread.unsure`.

    Attributes:
        n_few: Predictions with one valid sample, which show no spread and are left out.
    """

    summary: pd.DataFrame
    cases: pd.DataFrame
    n_few: int


def on_ambiguous(triage_data: TriageData, own: pd.DataFrame, judges: Mapping[str, str]) -> OfAmbiguous:
    """What models say where physicians do not agree.

    The cases are described by `panels.described`; `judges` are those whose levels count, by format.
    """
    mine = own.loc[own["kind"].eq(Kind.AMBIGUOUS)].reset_index(drop=True)
    several = mine.loc[mine["n_valid"].ge(FEWEST)].reset_index(drop=True)
    spread = case_spread(triage_data, judges, several, rng=np.random.default_rng(SEED))
    n_few = int(mine["n_valid"].gt(0).sum() - len(several))
    return OfAmbiguous(summary(spread), unsure(spread), n_few)


def routing_chosen(own: pd.DataFrame, wanted: float) -> pd.DataFrame:
    """The threshold that catches a wanted share of the dangerous misses, in (0, 1], as `routing.chosen` gives it."""
    return routing.chosen(own, rng=np.random.default_rng(SEED), wanted=wanted)


Row = Mapping[Any, Any]
NO_CONFIDENCE = "No model has a confidence of its own on a clear case: none is stated, and no case has two valid samples of a model."
NAMED = 3
"""Models that a sentence names; more are counted."""


def _borne_out(row: Row, labels: str) -> str:
    """Over- or under-confident by how much, how far off, and whether either could be chance."""
    ends = ("", "_low", "_high")
    error = "debiased error " + number_words(*(row[f"error{end}"] for end in ends))
    difference = number_words(*(row[f"difference{end}"] for end in ends))
    if row["difference_low"] > 0:
        return f": over-confident by {difference}, {error}."
    if row["difference_high"] < 0:
        return f": under-confident by {number_words(*(-row[f'difference{end}'] for end in ('', '_high', '_low')))}, {error}."
    neither = f"neither over- nor under-confident (difference {difference})"
    if row["error_low"] > 0:
        return f". On average it is {neither}, but off along the way: {error}."
    plain, usual = row.get("ece", math.nan), row.get("null_high", math.nan)
    if plain > usual:
        worse = (
            f"its plain error of {plain:.2f} is more than 95 % of perfectly calibrated data give (up to {usual:.2f})"
        )
        return f". On average it is {neither}, but {worse}; {error}."
    most = _not_excluded(row)
    return f". Its confidences are consistent with this (difference {difference}, {error}); with {labels} errors of up to {most} cannot be excluded."


def _not_excluded(row: Row) -> str:
    """How far off the confidences may still be: the farthest end of what is known."""
    ends = [abs(row[name]) for name in ("difference_low", "difference_high", "error_high") if not math.isnan(row[name])]
    return number_words(max(ends), math.nan, math.nan)


def ece_words(row: Row) -> str:
    """The plain error, never without what perfectly calibrated data give.

    >>> ece_words({"ece": 0.3, "null": 0.0733, "null_high": 0.1222})
    '0.30 (perfect: 0.07, up to 0.12)'
    """
    if math.isnan(row["ece"]):
        return NO_VALUE
    return f"{row['ece']:.2f} (perfect: {row['null']:.2f}, up to {row['null_high']:.2f})"


def judge_finding(row: Row, name: str, *, label: str, cluster: str, is_majority: bool = False) -> str:
    """How far a judge's stated confidence is borne out; or the share of several judges that agree, as one more confidence.

    `row` is of `calibration_error`, `name` the judge or the majority, `label` what it labels and `cluster` where the labels come from, in the
    singular (criterion, conversation). With `is_majority` the confidence is the share of the judges that say what most of them say.
    """
    if not row["n"]:
        return str(row["undefined"])
    labels = counted(row["n"], label, "criteria" if label == "criterion" else None)
    sure = percent_words(row["mean_confidence"])
    subject = f"The {name} is carried by {sure} of the votes" if is_majority else f"{name} is {sure} sure"
    head = (
        f"{subject} on average and right on {percent_words(row['share_right'])} of "
        f"{labels} in {counted(row['n_clusters'], cluster)}"
    )
    if math.isnan(row["difference_low"]):
        return f"{head}. {row['undefined']}"
    return f"{head}{_borne_out(row, labels)}"


def models_findings(errors: pd.DataFrame) -> list[str]:
    """Which models are over-confident on clear cases, that which was measured to be most first, and which are under-confident."""
    known = errors.loc[errors["n"].gt(0)]
    if known.empty:
        return [NO_CONFIDENCE]
    over = known.loc[known["difference_low"].gt(0)].sort_values("difference", ascending=False, kind="stable")
    under = known.loc[known["difference_high"].lt(0)].sort_values("difference", kind="stable")
    sentences = []
    if len(over):
        row, *others = over.to_dict(orient="records")
        value, low, high = (points(row[f"difference{end}"]).lstrip("+") for end in ("", "_low", "_high"))
        are = f". So {_are(others)} {_few(others)}" if others else ""
        sentences.append(
            f"{who(row)} is over-confident: {percent_words(row['mean_confidence'])} sure on average, right on "
            f"{percent_words(row['share_right'])} of {counted(row['n'], 'clear case')}, {value} [{low}, {high}] percentage points too sure{are}."
        )
    elif known["difference_low"].isna().all():
        sentences.append(f"Whether models are over-confident cannot be said. {known['undefined'].iloc[0]}".rstrip())
    else:
        models = known["model"].astype(str).unique()
        nobody = "No model is" if len(models) > 1 else f"{models[0]} is not"
        most = known.iloc[int(known["difference_high"].fillna(-1.0).to_numpy().argmax())].to_dict()
        by = f"{points(max(most['difference_high'], 0.0)).lstrip('+')} percentage points"
        sentences.append(
            f"{nobody} shown to be over-confident on clear cases; up to {by} too sure cannot be excluded ({who(most)}, {counted(most['n'], 'case')})."
        )
    if rows := under.to_dict(orient="records"):
        sentences.append(f"{_few(rows)} {_are(rows)} under-confident.")
    return sentences


def _are(rows: Sequence[Row]) -> str:
    return "is" if len(rows) == 1 else "are"


def _few(rows: Sequence[Row]) -> str:
    """The models of these rows by name, the first few where there are many."""
    names, more = [who(row) for row in rows], len(rows) - NAMED
    return listed(names if more <= 1 else [*names[:NAMED], f"{more:,} more"])

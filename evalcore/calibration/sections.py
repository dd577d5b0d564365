"""The four parts of calibration, put together from their metrics with one seed, so that the page and the command show the same numbers.

Judges' confidence, models' confidence on clear cases, models' spread on ambiguous cases, and routing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evalcore.calibration import routing
from evalcore.calibration.case_spread import case_spread, summary, unsure
from evalcore.calibration.confidence_meaning import as_right, checked_counts, checked_levels
from evalcore.calibration.judge_confidence import (
    FEWEST,
    criterion_items,
    level_items,
    level_vote_items,
    majority_items,
    model_items,
    stated_levels,
)
from evalcore.calibration.reliability import calibration_error, reliability
from evalcore.calibration.temperature import scaled
from evalcore.rubric.data import RubricData
from evalcore.study.schema import PARSER, ConfidenceMeaning
from evalcore.triage.data import TriageData
from evalcore.triage.panels import Kind

SEED = 19
BY_JUDGE, BY_MODEL = ("group",), ("model", "format")
Meanings = Mapping[str, ConfidenceMeaning]


@dataclass(frozen=True)
class Calibrated:
    """Confidence against what is right.

    Attributes:
        reliability: As `calibration.reliability` gives it.
        errors: As `calibration.calibration_error` gives it.
        majorities: Groups whose confidence is the share of several judges that agree.
    """

    reliability: pd.DataFrame
    errors: pd.DataFrame
    majorities: frozenset[str] = frozenset()


def calibrated(items: pd.DataFrame, by: Sequence[str] = BY_JUDGE) -> Calibrated:
    """The reliability of items, and how far they are off.

    Args:
        items: As `calibration` says.
        by: Columns that name the groups.
    """
    errors = calibration_error(items, rng=np.random.default_rng(SEED), by=by)
    return Calibrated(reliability(items, by=by), errors)


# ---------------------------------------------------------------- judges


def criteria_meanings(counts: pd.DataFrame, meanings: Meanings) -> pd.DataFrame:
    """What the confidences of judges on criteria mean, and what speaks against either meaning.

    Args:
        counts: As `calibration.queries.stated` gives them.
        meanings: By judge, of those for which somebody has said it.

    Returns:
        As `confidence_meaning.checked_counts`, with against_met and against_right: what the labels would say against that meaning, "" where
        nothing.
    """
    return _with_objections(lambda said: checked_counts(counts, said), meanings)


def level_meanings(triage_data: TriageData, meanings: Meanings) -> pd.DataFrame:
    """The same for judges that read levels of care, without the parser: what comes with its levels is the model's own confidence."""
    return _level_meanings(triage_data, meanings, of_parser=False)


def model_meaning(triage_data: TriageData, meanings: Meanings) -> pd.DataFrame:
    """The same for the confidences that models state themselves, which the parser reads: one row, or none where they state none."""
    return _level_meanings(triage_data, meanings, of_parser=True)


def _level_meanings(triage_data: TriageData, meanings: Meanings, *, of_parser: bool) -> pd.DataFrame:
    stated = stated_levels(triage_data)
    stated = stated.loc[stated["judge"].eq(PARSER).eq(of_parser)]
    return _with_objections(lambda said: checked_levels(stated, said), meanings)


def _with_objections(check: Callable[[Meanings], pd.DataFrame], meanings: Meanings) -> pd.DataFrame:
    table = check(meanings)
    for word in ConfidenceMeaning:
        table[f"against_{word.value}"] = check(dict.fromkeys(table["judge"], word))["why"]
    return table


def judges_on_criteria(
    beside: pd.DataFrame, checked: pd.DataFrame, rubric_data: RubricData | None, *, drawn: bool
) -> Calibrated:
    """Judges' stated confidences on criteria against physicians' blind reads, a group a judge; and the majority of several, a group more.

    Args:
        beside: As `calibration.queries.beside_reads` gives them.
        checked: As `criteria_meanings` gives it: a judge whose meaning is not known, or contradicted, has no value, and the sentence why.
        rubric_data: What everybody says, where several judges have labelled criteria: then the share of them that says what most say is a
            confidence that needs no question. None: there are not several.
        drawn: Only reads of items that were drawn with a known probability, weighted by its inverse.
    """
    stated = criterion_items(as_right(beside, checked), drawn=drawn)
    return _with_majority(stated, None if rubric_data is None else majority_items(rubric_data, drawn=drawn))


def judges_on_levels(triage_data: TriageData, checked: pd.DataFrame, *, drawn: bool) -> Calibrated:
    """The same for the levels that judges read out of responses; a group a judge, or a majority, and format.

    Args:
        triage_data: The cases.
        checked: As `level_meanings` gives it.
        drawn: As for `judges_on_criteria`.
    """
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


# ---------------------------------------------------------------- models


def takes_stated(meaning: pd.DataFrame) -> bool:
    """Whether a confidence that a model states may count as its own: some state one, and what it means is known and not contradicted.

    Args:
        meaning: As `model_meaning` gives it.
    """
    return len(meaning) > 0 and bool(meaning["usable"].all())


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
    """Models' own confidence against whether they are right.

    Args:
        own: As `judge_confidence.own_confidence` gives them, with gold and kind of their cases.
    """
    items = model_items(own)
    without = items["confidence"].isna()
    counted = items.assign(n_stated=items["is_stated"], n_shares=~items["is_stated"] & ~without, n_without=without)
    names = ["n_stated", "n_shares", "n_without"]
    sources = counted.groupby(list(BY_MODEL), observed=True)[names].sum().astype(int).reset_index()
    return OfModels(calibrated(items, BY_MODEL), sources)


def temperature_scaled(own: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The reliability after temperature scaling, each case scaled without its own fold; and the table of `temperature.scaled`.

    Args:
        own: As for `models_confidence`.
    """
    moved = scaled(model_items(own), rng=np.random.default_rng(SEED), by=BY_MODEL)
    return reliability(moved.items, by=BY_MODEL), moved.table


# ---------------------------------------------------------------- ambiguous cases


@dataclass(frozen=True)
class OfAmbiguous:
    """Models' samples beside the panels' votes on ambiguous cases.

    Attributes:
        summary: As `case_spread.summary` gives it.
        cases: As `case_spread.unsure` gives them: sure where physicians are not first.
        n_few: Predictions with one valid sample, which show no spread and are left out.
    """

    summary: pd.DataFrame
    cases: pd.DataFrame
    n_few: int


def on_ambiguous(triage_data: TriageData, own: pd.DataFrame, judges: Mapping[str, str]) -> OfAmbiguous:
    """What models say where physicians do not agree.

    Args:
        triage_data: Described by `panels.described`.
        own: As `judge_confidence.own_confidence` gives them, with the kind of their cases.
        judges: By format, whose levels count.
    """
    mine = own.loc[own["kind"].eq(Kind.AMBIGUOUS)].reset_index(drop=True)
    several = mine.loc[mine["n_valid"].ge(FEWEST)].reset_index(drop=True)
    spread = case_spread(triage_data, judges, rng=np.random.default_rng(SEED), found=several)
    n_few = int(mine["n_valid"].gt(0).sum() - len(several))
    return OfAmbiguous(summary(spread), unsure(spread), n_few)


# ---------------------------------------------------------------- routing


def routing_chosen(own: pd.DataFrame, wanted: float) -> pd.DataFrame:
    """The threshold that catches a wanted share of the dangerous misses, as `routing.chosen` gives it.

    Args:
        own: As `judge_confidence.own_confidence` gives them, with gold and kind of their cases.
        wanted: Share of the dangerous misses, in (0, 1].
    """
    return routing.chosen(own, rng=np.random.default_rng(SEED), wanted=wanted)

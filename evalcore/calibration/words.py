"""Judges' and models' confidence in words: the findings above the figures and the cells of the tables, for the page and the command line."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.stats.intervals import NO_VALUE, percent_words
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import ConfidenceMeaning
from evalcore.triage.words import number_words, points

Row = Mapping[Any, Any]
MEANINGS = {
    ConfidenceMeaning.MET: "that the criterion is met",
    ConfidenceMeaning.RIGHT: "that its own label is right",
}
"""What a stated confidence is the probability of."""
NO_CONFIDENCE = "No model has a confidence of its own on a clear case: none is stated, and no case has two valid samples of a model."
NAMED = 3
"""Models that a sentence names; more are counted."""


def stated_words(row: Row) -> str:
    """What a judge states, before anybody says what it means.

    Args:
        row: Of `confidence_meaning.checked_counts` (criteria) or `checked_levels`.

    >>> row = {"judge": "Wren", "n": 1000, "share_met": 0.004, "mean_confidence": 0.903}
    >>> stated_words(row | {"mean_confidence_met": 0.81, "mean_confidence_not_met": 0.9034})
    'Wren states a confidence with 1,000 labels on criteria, 0.903 on average: 0.4 % are met (mean 0.810), the others not met (mean 0.903).'
    >>> stated_words({"judge": "Magpie", "n": 1, "mean_confidence": 0.9})
    'Magpie states a confidence with 1 level of care, 0.900 on average.'
    """
    mean = f"{row['mean_confidence']:.3f} on average"
    if "share_met" not in row:
        return (
            f"{row['judge']} states a confidence with {counted(row['n'], 'level of care', 'levels of care')}, {mean}."
        )
    met, others = (_mean_words(row[f"mean_confidence_{word}"]) for word in ("met", "not_met"))
    labels = counted(row["n"], "label on a criterion", "labels on criteria")
    return f"{row['judge']} states a confidence with {labels}, {mean}: {100 * row['share_met']:.1f} % are met{met}, the others not met{others}."


def _mean_words(mean: float) -> str:
    return "" if math.isnan(mean) else f" (mean {mean:.3f})"


def meaning_words(row: Row) -> str:
    """What a judge's confidence means, and that its labels are consistent with it.

    Args:
        row: A usable row, as for `stated_words`.
    """
    label = "level" if "share_met" not in row else "label"
    said = MEANINGS[row["meaning"]].replace("label", label)
    return f"{row['judge']} states the probability {said}. Its {counted(row['n'], label)} with a confidence are consistent with this."


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
        told = f"its plain error of {plain:.2f} is more than 95 % of perfectly calibrated data give (up to {usual:.2f})"
        return f". On average it is {neither}, but {told}; {error}."
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

    Args:
        row: Of `calibration.calibration_error`.
        name: What the judge is called, or the majority.
        label: What it labels, in the singular: criterion, level.
        cluster: Where the labels come from, in the singular: conversation, case.
        is_majority: The confidence is the share of the judges that say what most of them say.
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


def who(row: Row) -> str:
    """A model in a format.

    >>> who({"model": "Alder-2", "format": "conversation"})
    'Alder-2 in conversation'
    """
    return f"{row['model']} in {row['format']}"


def models_findings(errors: pd.DataFrame) -> list[str]:
    """Which models are over-confident on clear cases, that which was measured to be most first, and which are under-confident.

    Args:
        errors: Of `calibration.calibration_error` by model and format.
    """
    known = errors.loc[errors["n"].gt(0)]
    if known.empty:
        return [NO_CONFIDENCE]
    over = known.loc[known["difference_low"].gt(0)].sort_values("difference", ascending=False, kind="stable")
    under = known.loc[known["difference_high"].lt(0)].sort_values("difference", kind="stable")
    said = []
    if len(over):
        row = over.iloc[0].to_dict()
        others = [who(line) for line in over.iloc[1:].to_dict(orient="records")]
        said.append(
            f"{who(row)} is over-confident: {percent_words(row['mean_confidence'])} sure on average, right on "
            f"{percent_words(row['share_right'])} of {counted(row['n'], 'clear case')}, {_too_much(row)} too sure"
            f"{f'. So {_are(others)}' if others else ''}."
        )
    elif known["difference_low"].isna().all():
        said.append(f"Whether models are over-confident cannot be said. {known['undefined'].iloc[0]}".rstrip())
    else:
        models = known["model"].astype(str).unique()
        nobody = "No model is" if len(models) > 1 else f"{models[0]} is not"
        most = known.iloc[int(known["difference_high"].fillna(-1.0).to_numpy().argmax())].to_dict()
        by = f"{points(max(most['difference_high'], 0.0)).lstrip('+')} percentage points"
        said.append(
            f"{nobody} shown to be over-confident on clear cases; up to {by} too sure cannot be excluded ({who(most)}, {counted(most['n'], 'case')})."
        )
    if len(under):
        said.append(f"{_named([who(row) for row in under.to_dict(orient='records')])} under-confident.")
    return said


def _too_much(row: Row) -> str:
    said, low, high = (points(row[f"difference{end}"]).lstrip("+") for end in ("", "_low", "_high"))
    return f"{said} [{low}, {high}] percentage points"


def _are(names: list[str]) -> str:
    return f"{'is' if len(names) == 1 else 'are'} {_few(names)}"


def _named(names: list[str]) -> str:
    return f"{_few(names)} {'is' if len(names) == 1 else 'are'}"


def _few(names: list[str]) -> str:
    more = len(names) - NAMED
    return listed(names if more <= 1 else [*names[:NAMED], f"{more:,} more"])

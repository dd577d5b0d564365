"""Calibration in words: the findings above the figures and the cells of the tables, for the page and the command line."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.metrics.case_spread import DISTANCE, ENTROPY_MODEL, ENTROPY_PANEL
from evalcore.metrics.intervals import NO_VALUE, interval_words, percent_words, share_words
from evalcore.metrics.routing import NO_MISSES, TOO_FEW
from evalcore.metrics.triage_words import number_words, points
from evalcore.metrics.wording import counted, listed
from evalcore.schema import ConfidenceMeaning

Row = Mapping[Any, Any]
CONCENTRATION = "concentration"
MEANINGS = {
    ConfidenceMeaning.MET: "that the criterion is met",
    ConfidenceMeaning.RIGHT: "that its own label is right",
}
"""What a stated confidence is the probability of."""
MEASURES: Mapping[str, str] = {
    DISTANCE: "Distance",
    "jensen_shannon": "Jensen-Shannon, nats",
    "wasserstein": "Wasserstein, levels",
    "rps": "Ranked probability score",
    "panel_share": "Votes for its level",
    ENTROPY_PANEL: "Panel's entropy, bits",
    ENTROPY_MODEL: "Model's entropy, bits",
    CONCENTRATION: "Concentration, bits",
}
"""Measures of `case_spread.summary`, as heads of tables."""
NO_CONFIDENCE = "No model has a confidence of its own on a clear case: none is stated, and no case has two valid samples of a model."
NO_SPREAD = (
    "No ambiguous case has both the votes of a panel and two valid samples of a model, so no spread can be shown."
)
NOTHING_TO_ROUTE = "No model has answered a clear or an ambiguous case, so there is nothing to send to a human."
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
    """What a judge's confidence means, and that the data do not speak against it.

    Args:
        row: A usable row, as for `stated_words`.
    """
    label = "level" if "share_met" not in row else "label"
    said = MEANINGS[row["meaning"]].replace("label", label)
    return f"{row['judge']} states the probability {said}. Its {counted(row['n'], label)} with a confidence: nothing speaks against that."


def _borne_out(row: Row) -> str:
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
    return f". Beyond chance it is {neither}, and no miscalibration shows ({error})."


def ece_words(row: Row) -> str:
    """The plain error, never without what perfectly calibrated data give.

    >>> ece_words({"ece": 0.3, "null": 0.0733, "null_high": 0.1222})
    '0.30 (perfect: 0.07, up to 0.12)'
    """
    if math.isnan(row["ece"]):
        return NO_VALUE
    return f"{row['ece']:.2f} (perfect: {row['null']:.2f}, up to {row['null_high']:.2f})"


def judge_finding(row: Row, name: str, *, label: str, cluster: str) -> str:
    """How far a judge's stated confidence is borne out.

    Args:
        row: Of `calibration.calibration_error`.
        name: What the judge is called.
        label: What it labels, in the singular: criterion, level.
        cluster: Where the labels come from, in the singular: conversation, case.
    """
    if not row["n"]:
        return str(row["undefined"])
    labels = counted(row["n"], label, "criteria" if label == "criterion" else None)
    head = (
        f"{name} is {percent_words(row['mean_confidence'])} sure on average and right on {percent_words(row['share_right'])} of "
        f"{labels} in {counted(row['n_clusters'], cluster)}"
    )
    if math.isnan(row["difference_low"]):
        return f"{head}. {row['undefined']}"
    return f"{head}{_borne_out(row)}"


def votes_finding(row: Row) -> str:
    """How far the share of judges that say met is the share of physicians that do.

    Args:
        row: Of `calibration.calibration_error` on `judge_confidence.vote_items`.
    """
    if not row["n"]:
        return str(row["undefined"])
    head = (
        f"{row['group']}: {percent_words(row['mean_confidence'])} of the votes say met, {percent_words(row['share_right'])} of the physicians' reads do "
        f"({counted(row['n'], 'criterion', 'criteria')} in {counted(row['n_clusters'], 'conversation')})"
    )
    if math.isnan(row["difference_low"]):
        return f"{head}. {row['undefined']}"
    said = number_words(row["difference"], row["difference_low"], row["difference_high"])
    error = number_words(row["error"], row["error_low"], row["error_high"])
    return f"{head}, a difference of {said}. As a probability that physicians say met the share of votes is off by {error} (debiased error)."


def who(row: Row) -> str:
    """A model in a format.

    >>> who({"model": "Alder-2", "format": "conversation"})
    'Alder-2 in conversation'
    """
    return f"{row['model']} in {row['format']}"


def models_findings(errors: pd.DataFrame, scaling: pd.DataFrame) -> list[str]:
    """Which model is most over-confident on clear cases, and what temperature scaling does.

    Args:
        errors: Of `calibration.calibration_error` by model and format.
        scaling: Of `temperature.scaled`.
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
            f"{who(row)} is {'the most ' if others else ''}over-confident: {percent_words(row['mean_confidence'])} sure on average, right on "
            f"{percent_words(row['share_right'])} of {counted(row['n'], 'clear case')}, {_too_much(row)} too sure"
            f"{f'. So {_are(others)}' if others else ''}."
        )
    else:
        said.append("No model is over-confident on clear cases beyond chance.")
    if len(under):
        said.append(f"{_named([who(row) for row in under.to_dict(orient='records')])} less sure than right.")
    return [*said, _scaling(scaling)]


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


def _scaling(scaling: pd.DataFrame) -> str:
    better = scaling.loc[scaling["brier_change_high"].lt(0)]
    worse = scaling.loc[scaling["brier_change_low"].gt(0)]
    if better.empty and worse.empty:
        return "Temperature scaling, cross-validated, makes nobody's confidence better beyond chance."
    said = []
    if len(better):
        said.append(f"makes the confidence of {_few([who(row) for row in better.to_dict(orient='records')])} better")
    if len(worse):
        said.append(f"makes that of {_few([who(row) for row in worse.to_dict(orient='records')])} worse")
    return f"Temperature scaling, cross-validated, {' and '.join(said)} (Brier's score)."


def spread_findings(summary: pd.DataFrame) -> list[str]:
    """Who lies furthest from the panels on ambiguous cases, and whether models are surer than physicians.

    Args:
        summary: Of `case_spread.summary`, on ambiguous cases.
    """
    of: dict[str, dict[str, Row]] = {}
    for line in summary.to_dict(orient="records"):
        of.setdefault(who(line), {})[str(line["measure"])] = line
    if not of:
        return [NO_SPREAD]
    said = []
    distances = {name: rows[DISTANCE] for name, rows in of.items() if not math.isnan(rows[DISTANCE]["value"])}
    if distances:
        name = max(distances, key=lambda key: float(distances[key]["value"]))
        row = distances[name]
        beyond = "" if row["low"] > 0 else ", which could be chance"
        far = "lies furthest from" if len(distances) > 1 else "lies away from"
        said.append(
            f"On {counted(row['n_cases'], 'ambiguous case')} {name} {far} the panel's votes: distance "
            f"{number_words(row['value'], row['low'], row['high'])}{beyond}; 0 is a model that draws from the same physicians."
        )
    surer = {name: rows for name, rows in of.items() if rows[CONCENTRATION]["low"] > rows[CONCENTRATION]["floor"]}
    return [*said, _surer(of, surer) if surer else "No model is surer than the physicians beyond chance."]


def _surer(of: Mapping[str, Mapping[str, Row]], surer: Mapping[str, Mapping[str, Row]]) -> str:
    name = min(surer, key=lambda key: float(surer[key][ENTROPY_MODEL]["value"]))
    own, panel = surer[name][ENTROPY_MODEL], surer[name][ENTROPY_PANEL]
    many = f"all {len(of):,}" if len(surer) == len(of) else f"{len(surer):,} of {len(of):,}"
    head = f"In {many} pairs of a model and a format the model is surer than the physicians: the samples of {name}"
    head = head if len(of) > 1 else f"{name} is surer than the physicians: its samples"
    return (
        f"{head} spread over {own['value']:.2f} bits, the votes over {panel['value']:.2f}; "
        f"samples drawn from the panel would spread over {own['floor']:.2f}."
    )


def from_zero(summary: pd.DataFrame) -> pd.DataFrame:
    """As screens show it: intervals of what cannot lie below 0 begin at 0.

    Args:
        summary: Of `case_spread.summary`.
    """
    bounded = ~summary["measure"].isin([DISTANCE, CONCENTRATION])
    return summary.assign(low=summary["low"].mask(bounded & summary["low"].lt(0), 0.0))


def spread_words(row: Row) -> str:
    """A measure with its interval and, in brackets, what chance alone gives; the unbiased distance needs none.

    Args:
        row: Of `from_zero`.

    >>> spread_words(
    ...     {"measure": "wasserstein", "value": 0.1, "low": 0.0, "high": 0.25, "floor": 0.662, "undefined": ""}
    ... )
    '0.10 [0.00, 0.25] (0.66)'
    >>> spread_words(
    ...     {"measure": "panel_share", "value": 0.33, "low": 0.2, "high": 0.46, "floor": 0.29, "undefined": ""}
    ... )
    '33 % [20 %, 46 %] (29 %)'
    """
    if row["undefined"]:
        return NO_VALUE
    value, low, floor = row["value"], row["low"], row["floor"]
    if row["measure"] == "panel_share":
        return f"{percent_words(value)} {interval_words(low, row['high'])} ({percent_words(floor)})"
    said = number_words(value, low, row["high"])
    return said if row["measure"] == DISTANCE else f"{said} ({number_words(floor, math.nan, math.nan)})"


def threshold_words(threshold: float) -> str:
    """At which confidence cases go to a human.

    >>> threshold_words(0.8), threshold_words(0.975), threshold_words(float("inf")), threshold_words(float("nan"))
    ('below 80 %', 'below 97.5 %', 'every case', '–')
    """
    if math.isnan(threshold):
        return NO_VALUE
    return "every case" if math.isinf(threshold) else f"below {100 * threshold:.3g} %"


def routed_words(row: Row, name: str) -> str:
    """One of the shares of `routing`, with its count and interval; a dash where there is none.

    Args:
        row: Of `routing.curves` or `routing.chosen`.
        name: routed, caught, exact_kept or ambiguous_routed.
    """
    if math.isnan(row[name]):
        return NO_VALUE
    share = share_words(int(row[f"k_{name}"]), int(row[f"n_{name}"]), row[name])
    return f"{share} {interval_words(row[f'low_{name}'], row[f'high_{name}'])}"


def routing_finding(table: pd.DataFrame, wanted: float | None) -> str:
    """What routing does for the model with the most dangerous misses.

    Args:
        table: Of `routing.chosen`, or, where the threshold is given, rows of `routing.curves` at it.
        wanted: The share of the misses that is to be caught; None: the threshold is given.
    """
    if table.empty:
        return NOTHING_TO_ROUTE
    known = table.loc[table["caught"].notna()]
    if known.empty:
        return TOO_FEW if "undefined" in table and table["undefined"].eq(TOO_FEW).any() else NO_MISSES
    row = known.sort_values("n_caught", ascending=False, kind="stable").iloc[0].to_dict()
    whole = math.isinf(row["threshold"])
    goes = "every case goes" if whole else f"cases with a confidence {threshold_words(row['threshold'])} go"
    what = f"catches {routed_words(row, 'caught')} of the dangerous misses and sends {routed_words(row, 'routed')} of the clear cases"
    if wanted is None:
        return f"Where {goes} to a human, that {what} for {who(row)}."
    half = "On the half of the cases that did not choose this, that"
    return f"To catch {percent_words(wanted)} of what {who(row)} misses, {goes} to a human. {half} {what}."

"""Routing to a human in words: the finding above the figure and the cells of the table, for the page and the command line."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.calibration.routing import NO_MISSES, NONE_SURE, TOO_FEW
from evalcore.calibration.words import who
from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words, share_words

Row = Mapping[Any, Any]
OF_NONE = {
    "routed": "no clear case",
    "caught": "nothing to catch",
    "exact_kept": "no case is kept",
    "ambiguous_routed": "no ambiguous case",
}
"""Why a share has no value."""
NOTHING_TO_ROUTE = "No model has answered a clear or an ambiguous case, so there is nothing to send to a human."


def threshold_words(threshold: float) -> str:
    """At which confidence cases go to a human.

    >>> threshold_words(0.8), threshold_words(0.975), threshold_words(float("inf")), threshold_words(float("nan"))
    ('below 80 %', 'below 97.5 %', 'every case', '–')
    """
    if math.isnan(threshold):
        return NO_VALUE
    return "every case" if math.isinf(threshold) else f"below {100 * threshold:.3g} %"


def routed_words(row: Row, name: str) -> str:
    """One of the shares of `routing`, with its count and interval; a dash and the reason where there is none.

    Args:
        row: Of `routing.curves` or `routing.chosen`.
        name: routed, caught, exact_kept or ambiguous_routed.

    >>> nan = float("nan")
    >>> routed_words({"threshold": 1.0, "exact_kept": nan}, "exact_kept")
    '– (no case is kept)'
    >>> routed_words(
    ...     {"threshold": nan, "exact_kept": nan}, "exact_kept"
    ... )  # there is no threshold, which has its own reason
    '–'
    """
    if math.isnan(row["threshold"]):
        return NO_VALUE
    if math.isnan(row[name]):
        return f"{NO_VALUE} ({OF_NONE[name]})"
    share = share_words(int(row[f"k_{name}"]), int(row[f"n_{name}"]), row[name])
    return f"{share} {interval_words(row[f'low_{name}'], row[f'high_{name}'])}"


def routing_finding(table: pd.DataFrame, wanted: float | None) -> str:
    """What routing does for the model with the most dangerous misses.

    Args:
        table: Of `routing.chosen`, or, where the threshold is given, of `routing.curves` at it with undefined "".
        wanted: The share of the misses that is to be caught; None: the threshold is given.
    """
    if table.empty:
        return NOTHING_TO_ROUTE
    known = table.loc[table["caught"].notna()]
    if known.empty:
        reasons = set(table["undefined"])
        return next((why for why in (TOO_FEW, NONE_SURE) if why in reasons), NO_MISSES)
    row = known.sort_values("n_caught", ascending=False, kind="stable").iloc[0].to_dict()
    whole = math.isinf(row["threshold"])
    goes = "every case goes" if whole else f"cases with a confidence {threshold_words(row['threshold'])} go"
    what = f"catches {routed_words(row, 'caught')} of the dangerous misses and sends {routed_words(row, 'routed')} of the clear cases"
    if wanted is None:
        return f"Where {goes} to a human, that {what} for {who(row)}."
    half = "On the half of the cases that did not choose this, that"
    return f"To catch {percent_words(wanted)} of what {who(row)} misses, {goes} to a human. {half} {what}."

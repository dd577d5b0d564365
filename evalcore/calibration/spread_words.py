"""Models' spread on ambiguous cases in words: the findings above the figure and the cells of the tables, for the page and the command line."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.calibration.case_spread import DISTANCE, ENTROPY_MODEL, ENTROPY_PANEL
from evalcore.calibration.words import who
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted
from evalcore.triage.words import number_words

Row = Mapping[Any, Any]
CONCENTRATION = "concentration"
MEASURES: Mapping[str, str] = {
    DISTANCE: "Distance",
    ENTROPY_PANEL: "Panel's entropy, bits",
    ENTROPY_MODEL: "Model's entropy, bits",
    CONCENTRATION: "Concentration, bits",
}
"""Measures of `case_spread.summary`, as heads of tables."""
NO_SPREAD = (
    "No ambiguous case has both the votes of a panel and two valid samples of a model, so no spread can be shown."
)


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
        far = "lies furthest, as measured, from" if len(distances) > 1 else "lies away from"
        shown = f"{name} {far}" if row["low"] > 0 else f"it is not shown that {name} lies away from"
        said.append(
            f"On {counted(row['n_cases'], 'ambiguous case')} {shown} the panel's votes: distance "
            f"{number_words(row['value'], row['low'], row['high'])}; 0 is a model that draws from the same physicians."
        )
    surer = {name: rows for name, rows in of.items() if rows[CONCENTRATION]["low"] > rows[CONCENTRATION]["floor"]}
    return [*said, _surer(of, surer) if surer else "No model is shown to be surer than the physicians."]


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
    ...     {"measure": "entropy_model", "value": 0.1, "low": 0.0, "high": 0.25, "floor": 0.662, "undefined": ""}
    ... )
    '0.10 [0.00, 0.25] (0.66)'
    """
    if row["undefined"]:
        return NO_VALUE
    said = number_words(row["value"], row["low"], row["high"])
    return said if row["measure"] == DISTANCE else f"{said} ({number_words(row['floor'], math.nan, math.nan)})"

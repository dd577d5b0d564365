"""Agreement in words: the finding above the figure, the cells of the tables."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.metrics.agreement_sums import Coefficient
from evalcore.metrics.intervals import NO_VALUE, interval_words
from evalcore.metrics.wording import counted

NAMES: dict[Coefficient, str] = {
    Coefficient.AGREEMENT: "Percent agreement",
    Coefficient.KAPPA: "Cohen's kappa",
    Coefficient.KAPPA_LINEAR: "Cohen's kappa, linear",
    Coefficient.KAPPA_QUADRATIC: "Cohen's kappa, quadratic",
    Coefficient.FLEISS_KAPPA: "Fleiss' kappa",
    Coefficient.ALPHA_NOMINAL: "Krippendorff's alpha",
    Coefficient.ALPHA_ORDINAL: "Krippendorff's alpha, ordinal",
    Coefficient.ALPHA_INTERVAL: "Krippendorff's alpha, interval",
    Coefficient.AC1: "Gwet's AC1",
    Coefficient.AC2_LINEAR: "Gwet's AC2, linear",
    Coefficient.AC2_QUADRATIC: "Gwet's AC2, quadratic",
}

HEADS: Mapping[Coefficient, str] = NAMES | {
    Coefficient.AGREEMENT: "Agreement",
    Coefficient.ALPHA_NOMINAL: "Krippendorff",
}
"""The same as heads of narrow columns."""


def value_words(coefficient: str, value: float) -> str:
    """A coefficient as screens say it.

    >>> (
    ...     value_words("agreement", 0.843),
    ...     value_words("kappa", 0.61),
    ...     value_words("kappa", -0.07),
    ...     value_words("ac1", float("nan")),
    ... )
    ('84 %', '0.61', '−0.07', '–')
    """
    if math.isnan(value):
        return NO_VALUE
    if coefficient == Coefficient.AGREEMENT:
        return f"{100 * value:.0f} %"
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def coefficient_words(coefficient: str, value: float, low: float, high: float) -> str:
    """A coefficient with its interval, where it has one.

    >>> coefficient_words("agreement", 0.843, 0.8, 0.881), coefficient_words("kappa", 0.61, 0.523, 0.7)
    ('84 % [80 %, 88 %]', '0.61 [0.52, 0.70]')
    >>> coefficient_words("ac1", 1.0, float("nan"), float("nan"))
    '1.00'
    """
    said = value_words(coefficient, value)
    if math.isnan(low):
        return said
    if coefficient == Coefficient.AGREEMENT:
        return f"{said} {interval_words(low, high)}"
    return f"{said} [{value_words(coefficient, low)}, {value_words(coefficient, high)}]"


def bounds_words(coefficient: str, low: float, high: float) -> str:
    """Between which values a coefficient lies, whatever those who could not assess had said.

    >>> bounds_words("kappa", 0.553, 0.641), bounds_words("kappa", float("nan"), float("nan"))
    ('0.55 to 0.64', '–')
    """
    return NO_VALUE if math.isnan(low) else f"{value_words(coefficient, low)} to {value_words(coefficient, high)}"


def undecided_words(n: int) -> str:
    """How many labels are cannot assess.

    >>> undecided_words(1), undecided_words(1_200)
    ('1 label was cannot assess', '1,200 labels were cannot assess')
    """
    return f"{n:,} {'label was' if n == 1 else 'labels were'} cannot assess"


def finding(table: pd.DataFrame, who: str = "physicians") -> list[str]:
    """What a group's rows of `agreement` say, as sentences: agreement, agreement beyond chance, and what cannot assess could change.

    Args:
        table: Rows of one group with agreement, kappa and ac1.
        who: The raters, in the plural.
    """
    of = {row["coefficient"]: row for row in table.to_dict(orient="records")}
    raw, beyond = of[Coefficient.AGREEMENT], [of[Coefficient.KAPPA], of[Coefficient.AC1]]
    if not raw["n_items"]:
        return [f"No criterion has been read by two {who} yet."]
    items = counted(raw["n_items"], "criterion", "criteria")
    examples = counted(raw["n_examples"], "conversation")
    said = [f"Two {who} who label the same criterion agree {_words(raw)} of the time ({items} in {examples})."]
    said.append("Beyond chance: " + ", ".join(f"{NAMES[row['coefficient']]} {_words(row)}" for row in beyond) + ".")
    if raw["n_cannot_assess"]:
        moved = " and ".join(f"{NAMES[row['coefficient']]} {_bounds(row)}" for row in beyond)
        said.append(f"{undecided_words(raw['n_cannot_assess'])}: taken as met, or as not met, that puts {moved}.")
    return said


def reasons(table: pd.DataFrame) -> list[str]:
    """Why values or intervals of one group are missing, each reason once with its coefficients."""
    missing = table.loc[table["reason"].ne("")]
    return [
        f"{', '.join(NAMES[name] for name in rows['coefficient'])}: {why}."
        for why, rows in missing.groupby("reason", sort=False)
    ]


def _words(row: Mapping[Any, Any]) -> str:
    said = coefficient_words(str(row["coefficient"]), row["value"], row["low"], row["high"])
    return f"{said} ({row['reason']})" if row["reason"] else said


def _bounds(row: Mapping[Any, Any]) -> str:
    return f"at {bounds_words(str(row['coefficient']), row['bound_low'], row['bound_high'])}"

"""Agreement in words: the finding above the figure, the cells of the tables."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from evalcore.judges.agreement import MIN_RATERS, TOO_FEW_RATERS
from evalcore.stats.agreement_sums import Coefficient
from evalcore.stats.intervals import NO_VALUE, interval_words
from evalcore.stats.wording import counted, decimal

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

THESE, GENERAL = "", "general_"
"""Prefixes of the columns of `agreement` that hold the interval for these raters, and for raters in general."""

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
    return decimal(value)


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
    """Between which values percent agreement lies, whatever those who could not assess had said.

    >>> bounds_words("agreement", 0.553, 0.641), bounds_words("kappa", float("nan"), float("nan"))
    ('55 % to 64 %', '–')
    """
    return NO_VALUE if math.isnan(low) else f"{value_words(coefficient, low)} to {value_words(coefficient, high)}"


def undecided_words(n: int) -> str:
    """How many labels are cannot assess.

    >>> undecided_words(1), undecided_words(1_200)
    ('1 label was cannot assess', '1,200 labels were cannot assess')
    """
    return f"{n:,} {'label was' if n == 1 else 'labels were'} cannot assess"


def population(table: pd.DataFrame, who: str = "physicians") -> tuple[str, str]:
    """Whom the intervals of a table are for: the prefix of their columns (`general_`, or none), and the population in words.

    Raters in general where agreement of all together has such an interval, else these raters.

    Args:
        table: Rows of one group with percent agreement.
        who: The raters, in the plural.
    """
    row = _by_coefficient(table)[Coefficient.AGREEMENT]
    return (GENERAL, f"{who} in general") if row["general_reason"] == "" else (THESE, f"these {who}")


def finding(table: pd.DataFrame, who: str = "physicians") -> list[str]:
    """What a group's rows of `agreement` say, as sentences: agreement and agreement beyond chance, for whom, and what cannot assess leaves open.

    Args:
        table: Rows of one group with agreement, ac1 and alpha_nominal.
        who: The raters, in the plural.
    """
    of = _by_coefficient(table)
    raw, beyond = of[Coefficient.AGREEMENT], [of[Coefficient.AC1], of[Coefficient.ALPHA_NOMINAL]]
    if not raw["n_items"]:
        return [f"No criterion has been read by two {who} yet."]
    prefix, whom = population(table, who)
    basis = (
        f"{counted(raw['n_items'], 'criterion', 'criteria')} in {counted(raw['n_examples'], 'conversation')}, "
        f"{raw['n_raters']:,} {who}, {raw['n_effective_raters']:.1f} effective"
    )
    said = [
        f"Two {who} who label the same criterion agree {_words(raw, prefix)} of the time ({basis}).",
        f"Beyond chance: {_listed(beyond, prefix)}.",
    ]
    if prefix == GENERAL:
        said.append(f"These intervals are for {whom}. For these {who} alone: {_listed([raw, *beyond], THESE)}.")
    elif raw["general_reason"] == TOO_FEW_RATERS:
        said.append(f"Intervals are for {whom} only: {who} in general take at least {MIN_RATERS} effective raters.")
    if raw["n_cannot_assess"]:
        between = bounds_words(Coefficient.AGREEMENT, raw["bound_low"], raw["bound_high"])
        could_not = undecided_words(raw["n_cannot_assess"])
        said.append(
            f"Where two or more have read, {could_not}: whatever each of them had been, percent agreement over all reads is {between}."
        )
    return said


def reasons(table: pd.DataFrame) -> list[str]:
    """Why values or intervals of one group are missing, each reason once with its coefficients."""
    return [
        f"{', '.join(NAMES[name] for name in rows['coefficient'])}{whom}: {why}."
        for column, whom in (("reason", ""), ("general_reason", " (in general)"))
        for why, rows in table.loc[table[column].ne("") & (table["reason"].eq("") | (column == "reason"))].groupby(
            column, sort=False
        )
    ]


def _by_coefficient(table: pd.DataFrame) -> dict[Any, Mapping[Any, Any]]:
    return {row["coefficient"]: row for row in table.to_dict(orient="records")}


def _listed(rows: Iterable[Mapping[Any, Any]], prefix: str) -> str:
    return ", ".join(f"{NAMES[row['coefficient']]} {_words(row, prefix)}" for row in rows)


def _words(row: Mapping[Any, Any], prefix: str) -> str:
    said = coefficient_words(str(row["coefficient"]), row["value"], row[f"{prefix}low"], row[f"{prefix}high"])
    return f"{said} ({reason})" if (reason := row[f"{prefix}reason"]) else said

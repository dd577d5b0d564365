"""Agreement between raters: over all of them and by pair, with intervals clustered by example and bounds for what nobody could assess."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.agreement_labels import TAGS, Coded, coded, grouped, pairs
from evalcore.metrics.agreement_sums import Codes, Coefficient, Labels, jackknife, values
from evalcore.metrics.intervals import LEVEL

OVERALL = "overall"
MIN_ITEMS = 20
"""With fewer items a pair is shown in grey."""
MIN_EXAMPLES = 5
"""With fewer examples there is no interval: their spread says too little of the spread of all."""
GROUPINGS = (OVERALL, *TAGS)
OF_TWO_CATEGORIES = (
    Coefficient.AGREEMENT, Coefficient.KAPPA, Coefficient.FLEISS_KAPPA, Coefficient.ALPHA_NOMINAL, Coefficient.AC1,
)  # fmt: skip
"""With two categories every weighted or ordinal coefficient equals its plain one."""
NO_ERROR = 1e-12

NO_PAIR = "no item has the labels of two raters"
ONE_CATEGORY = "all labels are of one category"
TOO_FEW = f"fewer than {MIN_EXAMPLES} examples"
RESTS_ON_ONE = "not defined without one of the examples"
NO_SPREAD = "every example gives the same value"
COLUMNS = [
    "coefficient", "value", "low", "high", "se", "reason", "bound_low", "bound_high", "n_items", "n_labels", "n_examples", "n_raters",
    "n_cannot_assess",
]  # fmt: skip


def agreement(
    labels: pd.DataFrame,
    *,
    by: Sequence[str] = (OVERALL,),
    categories: Sequence[str] | None = None,
    coefficients: Sequence[Coefficient] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Agreement of all raters together, overall and by group, with intervals.

    Intervals come from the jackknife that leaves out one example: with theta_g the coefficient without example g, of G examples that have
    an item with two labels or more, V = (G-1)/G sum_g (theta_g - theta)^2, and the interval is theta +- t(G-1) sqrt(V), cut off at 1.
    On drawn clusters it covers .94 to .96 from 50 examples on, .92 to .94 with 10 and 20, .88 with 5; with fewer there is none.

    Cannot assess is neither agreement nor disagreement: such labels are left out of the value, and the bounds tell what they could have
    made of it.

    Args:
        labels: One row a label: unit (the item), example_id, rater, value (missing where the rater could not assess), and the columns that
            `by` names. No row: the rater has not read the item.
        by: `overall`, and names of columns that are the same for all labels of an item; items where one is missing are in no group of it.
        categories: All that could be given, in their order; default: those of `value`, sorted where it is not categorical.
        coefficients: Default: all that differ; with two categories the weighted ones do not.
        level: Of the intervals.

    Returns:
        One row a group and coefficient: grouping, group, coefficient, value (at most 1; 0: as much as by chance; agreement in [0, 1]), low, high,
        se, reason (why value or interval is NaN; empty where neither is), bound_low and bound_high (the lowest and highest value when all of
        cannot assess are taken as one category, over the categories; the value where there is none), n_items with two labels
        or more and, on these, n_labels, n_examples and n_raters, n_cannot_assess (on items that two or more have read).

    Raises:
        ValueError: A rater has two labels on an item, a value is not among the categories, or `by` names no column.

    Source: Gwet, Handbook of Inter-Rater Reliability; each coefficient's own in `Coefficient`.
    """
    given, names = coded(labels, categories)
    tables = []
    for grouping in dict.fromkeys(by):
        if grouping == OVERALL:
            groups, of_label = [OVERALL], np.zeros(len(labels), dtype=np.int64)
        elif grouping in labels:
            column = labels[grouping].astype("category")
            groups = [str(group) for group in column.cat.categories]
            of_label = np.asarray(column.cat.codes, dtype=np.int64)
        else:
            msg = f"by: {grouping!r} came, expected {OVERALL} or a column of the labels: {', '.join(labels.columns)}"
            raise ValueError(msg)
        part, codes = grouped(given, of_label, len(groups))
        found = _estimates(part, _wanted(coefficients, len(names)), level)
        used = found if grouping == OVERALL else found.loc[np.isin(found["group"], codes)]
        tables.append(used.assign(grouping=grouping, group=np.array(groups, dtype=object)[used["group"]]))
    return pd.concat(tables, ignore_index=True)[["grouping", "group", *COLUMNS]]


def pair_agreement(
    labels: pd.DataFrame,
    *,
    categories: Sequence[str] | None = None,
    coefficients: Sequence[Coefficient] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Agreement of each two raters on the items that both have labelled, with intervals.

    Args:
        labels: As for `agreement`.
        categories: As for `agreement`.
        coefficients: As for `agreement`. Kappa is Cohen's, Fleiss' kappa is Scott's pi.
        level: Of the intervals.

    Returns:
        One row a pair that has read an item both, and coefficient: rater_1, rater_2 (in the order of `rater` where it is categorical, else sorted),
        and the columns of `agreement`.

    Raises:
        ValueError: As `agreement`.
    """
    given, names = coded(labels, categories)
    raters = np.array(labels["rater"].astype("category").cat.categories, dtype=object)
    part, raters_of = pairs(given)
    found = _estimates(part, _wanted(coefficients, len(names)), level)
    first, second = raters_of[found["group"]].T
    found = found.assign(rater_1=raters[first], rater_2=raters[second])
    return found[["rater_1", "rater_2", *COLUMNS]]


def _wanted(coefficients: Sequence[Coefficient] | None, n_categories: int) -> list[Coefficient]:
    every = OF_TWO_CATEGORIES if n_categories == 2 else tuple(Coefficient)  # noqa: PLR2004 - two categories
    return [Coefficient(name) for name in coefficients or every]


def _estimates(given: Coded, coefficients: Sequence[Coefficient], level: float) -> pd.DataFrame:
    """One row a group (by its number) and coefficient."""
    answered = given.answered()
    sums = jackknife(answered)
    n_examples = sums.n_examples
    unknown = given.labels.value < 0
    fillings = (
        [jackknife(given.filled(k)).whole for k in range(answered.n_categories)] if unknown.any() else [sums.whole]
    )
    n_of_unit = np.bincount(given.labels.unit, minlength=len(given.labels.group))
    asked = given.labels.unit[unknown & (n_of_unit[given.labels.unit] > 1)]
    counts = {
        "n_items": np.rint(sums.whole.n_items).astype(np.int64),
        "n_labels": sums.n_labels,
        "n_examples": n_examples,
        "n_raters": _n_raters(answered),
        "n_cannot_assess": np.bincount(given.labels.group[asked], minlength=answered.n_groups),
    }
    tables = []
    for place, coefficient in enumerate(coefficients):
        value = values(coefficient, sums.whole)
        away = values(coefficient, sums.without) - value[sums.group]
        squares = np.bincount(sums.group, weights=away**2, minlength=len(value))
        few = n_examples < MIN_EXAMPLES
        se = np.sqrt(np.where(few, np.nan, squares * (n_examples - 1) / np.maximum(n_examples, 1)))
        reason = np.select(
            [counts["n_items"] == 0, np.isnan(value), few, np.isnan(se), se < NO_ERROR],
            [NO_PAIR, ONE_CATEGORY, TOO_FEW, RESTS_ON_ONE, NO_SPREAD],
            "",
        )
        se = np.where(reason == "", se, np.nan)
        half = stdtrit(np.maximum(n_examples - 1, 1), (1 + level) / 2) * se
        least = 0.0 if coefficient is Coefficient.AGREEMENT else -np.inf
        filled = np.stack([values(coefficient, filling) for filling in fillings])
        tables.append(
            pd.DataFrame(
                {
                    "group": np.arange(len(value)),
                    "place": place,
                    "coefficient": coefficient.value,
                    "value": value,
                    "low": np.maximum(value - half, least),
                    "high": np.minimum(value + half, 1.0),
                    "se": se,
                    "reason": reason.astype(object),
                    "bound_low": np.fmin.reduce(filled),
                    "bound_high": np.fmax.reduce(filled),
                    **counts,
                }
            )
        )
    return pd.concat(tables).sort_values(["group", "place"], ignore_index=True)


def _n_raters(labels: Labels) -> Codes:
    """Raters with a label on an item that has two or more, by group."""
    n_of_unit = np.bincount(labels.unit, minlength=len(labels.group))
    counted = n_of_unit[labels.unit] > 1
    width = int(labels.rater.max(initial=0)) + 1
    return np.bincount(
        pd.unique(labels.group[labels.unit[counted]] * width + labels.rater[counted]) // width,
        minlength=labels.n_groups,
    )

"""Judges and physicians against physicians: balanced F1 as in HealthBench's meta-evaluation, sensitivity and specificity by kind of criterion."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.judges.pairs import COUNTS, JUDGE, PHYSICIAN, PHYSICIANS, Reads, judge_pairs, physician_pairs, together
from evalcore.judges.record import NO_AXIS, SIGNS, sign_codes
from evalcore.rubric.data import RubricData
from evalcore.stats import confusion
from evalcore.stats.arrays import quotient
from evalcore.stats.confusion import SENSITIVITY, SPECIFICITY, f1_interval, f1_scores
from evalcore.stats.intervals import LEVEL
from evalcore.study.languages import LANGUAGES

OVERALL, CATEGORY = "overall", "category"
GROUPINGS = (OVERALL, CATEGORY)
SIGN, AXIS, THEME, LANGUAGE = "sign", "axis", "theme", "language"
ERROR_GROUPINGS = (OVERALL, SIGN, AXIS, THEME, LANGUAGE)
UNTAGGED = {AXIS: NO_AXIS, THEME: "no theme", LANGUAGE: "language not known"}
COLUMNS = [
    "rater_kind", "rater", "grouping", "group", "n_pairs", "n_items", "n_examples", *COUNTS, "share_met", "share_met_by_others",
    "precision_met", "recall_met", "f1_met", "precision_not_met", "recall_not_met", "f1_not_met", "balanced_f1", "low", "high", "undefined",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


def balanced_f1(
    rubric_data: RubricData,
    *,
    by: Sequence[str] = GROUPINGS,
    jury: bool = True,
    reads: Reads | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """How well each judge, each physician, and all physicians together say what physicians say: F1 of both classes, and their plain mean.

    A pair is a rater's label and one physician's blind first read of the same item: an item with three reads makes three pairs with a
    judge, and each of its physicians makes two. Each pair counts by the weight of its item (`pairs.Reads`).
    Of the pairs of a group, with n_both, n_rater_only, n_other_only, n_neither:

        precision_met = n_both / (n_both + n_rater_only)    recall_met = n_both / (n_both + n_other_only)
        f1_met        = 2 n_both / (2 n_both + n_rater_only + n_other_only); not met likewise, from n_neither
        balanced_f1   = (f1_met + f1_not_met) / 2           macro F1; a coin reaches 0.5 where half is met

    A class that the rater or the other physicians never say has no precision or no recall, and then neither F1 nor the mean is
    defined: NaN, with the reason, and never 0. (scikit-learn's macro F1 says 0 for the class there; elsewhere it is the same number.)

    Intervals cluster by example: delete-one-example jackknife on the four sums, t with n_examples - 1 degrees of freedom, cut at 0 and 1.
    No interval (NaN) where the value is undefined, where one example alone holds a class, with one example, and where
    nothing varies between examples.

    Args:
        rubric_data: What everybody says.
        by: Some of `GROUPINGS`; category is the criterion's cluster, and items without one are left out of it.
        jury: Two judges and more enter as their majority and their mean too (`pairs.judge_pairs`).
        reads: Which enter; None: the drawn ones, where there are any.
        level: Of confidence, in (0, 1).

    Returns:
        One row a rater and group with a pair, judges first, then all physicians together, then each physician: rater_kind (`judge`,
        `physicians` or `physician`), rater, grouping (`overall` or `category`), group, n_pairs, n_items, n_examples, the four counts
        (not weighted; all that follows is), share_met and share_met_by_others (of the pairs, those that the rater and that the other
        physician calls met), precision, recall and F1 of the classes met and not met, balanced_f1 with its interval low to high, all in [0, 1], and
        undefined: why
        there is no balanced F1, empty where there is one.

    Raises:
        ValueError: `by` names something else.

    References:
        Arora et al. 2025, HealthBench (arXiv 2505.08775), section 8, and openai/simple-evals, healthbench_meta_eval.
    """
    if unknown := sorted(set(by) - set(GROUPINGS)):
        msg = f"by: {', '.join(unknown)} came, expected some of {', '.join(GROUPINGS)}"
        raise ValueError(msg)
    among = physician_pairs(rubric_data, reads=reads)
    examples = pd.factorize(rubric_data.items["example_id"])[0]
    parts = [
        _of_kind(pairs, grouping, rubric_data.items, examples, level=level)
        for pairs in (judge_pairs(rubric_data, jury=jury, reads=reads), together(among), among)
        for grouping in dict.fromkeys(by)
    ]
    table = pd.concat(parts, ignore_index=True)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(table["rater_kind"]))}
    return table.sort_values("rater_kind", key=lambda column: column.map(kinds), kind="stable", ignore_index=True)


def _of_kind(
    pairs: pd.DataFrame, grouping: str, items: pd.DataFrame, examples: Numbers, *, level: float
) -> pd.DataFrame:
    """The rows of one kind of rater and one grouping."""
    rows = pairs["row"].to_numpy()
    groups, names = _groups(items, grouping)
    kept = np.flatnonzero(groups[rows] >= 0)
    n_groups = max(len(names), 1)
    cells, numbers = pd.factorize(
        pairs["rater"].cat.codes.to_numpy(dtype=np.int64)[kept] * n_groups + groups[rows[kept]], sort=True
    )
    raters, of_group = np.divmod(np.asarray(numbers, dtype=np.int64), n_groups)
    counts = pairs[list(COUNTS)].to_numpy(dtype=float)[kept]
    weighted = counts * pairs["weight"].to_numpy()[kept, None]
    plain = confusion.sums(cells, counts, len(numbers)).astype(np.int64)
    sums = confusion.sums(cells, weighted, len(numbers))
    low, high, n_examples = f1_interval(cells, examples[rows[kept]], weighted, sums, level=level)
    return pd.DataFrame(
        {
            "rater_kind": str(pairs["rater_kind"].cat.categories[0]),
            "rater": pairs["rater"].cat.categories.to_numpy(dtype=object)[raters],
            "grouping": grouping,
            "group": np.asarray(names, dtype=object)[of_group],
            "n_pairs": plain.sum(axis=1),
            "n_items": np.bincount(cells, minlength=len(numbers)),
            "n_examples": n_examples,
            **dict(zip(COUNTS, plain.T, strict=True)),
            "share_met": quotient(sums[:, 0] + sums[:, 1], sums.sum(axis=1)),
            "share_met_by_others": quotient(sums[:, 0] + sums[:, 2], sums.sum(axis=1)),
            **f1_scores(sums),
            "low": low,
            "high": high,
            "undefined": _reasons(plain, str(pairs["rater_kind"].cat.categories[0])),
        },
        columns=COLUMNS,
    )


def _groups(items: pd.DataFrame, grouping: str) -> tuple[Numbers, Sequence[str]]:
    """The group of each item as a number, -1 where it has none, and the groups' names."""
    if grouping == OVERALL:
        return np.zeros(len(items), dtype=np.int64), [OVERALL]
    clusters = items["cluster"].astype("category")
    clusters = clusters.cat.set_categories(sorted(clusters.cat.categories))
    return clusters.cat.codes.to_numpy(dtype=np.int64), list(clusters.cat.categories)


_WHO = {
    JUDGE: ("it never says", "physicians never say"),
    PHYSICIAN: ("this physician never says", "the others never say"),
    PHYSICIANS: ("physicians never say", "physicians never say"),
}


def _reasons(sums: Numbers, kind: str) -> list[str]:
    """Why there is no balanced F1, in words: which class is never said, and by whom; empty where there is one."""
    both, rater_only, other_only, neither = sums.T
    rater, others = _WHO[kind]
    never = {
        f"{rater} met": both + rater_only,
        f"{rater} not met": other_only + neither,
        f"{others} met": both + other_only,
        f"{others} not met": rater_only + neither,
    }
    return [", ".join(words for words, said in never.items() if said[number] == 0) for number in range(len(sums))]


def error_rates(
    rubric_data: RubricData,
    *,
    by: Sequence[str] = ERROR_GROUPINGS,
    jury: bool = True,
    reads: Reads | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """What share of physicians' "met" each judge calls met (sensitivity), and of their "not met" not met (specificity).

    The condition is a physician's blind first read, and each read counts as a pair with the judge's label: on an item that
    physicians read differently, the judge is right by one and wrong by the other. Each pair counts by the weight of its item (`pairs.Reads`).

    Args:
        rubric_data: What everybody says.
        by: Some of `ERROR_GROUPINGS`; sign: whether the points are positive (desirable) or negative (undesirable).
        jury: Two judges and more enter as their majority and their mean too (`pairs.judge_pairs`).
        reads: Which enter; None: the drawn ones, where there are any.
        level: Of confidence, in (0, 1).

    Returns:
        One row a judge, grouping and group with a pair, groups by name: judge, grouping, group, n_pairs, n_examples, weighted (pairs count
        differently), n_met (pairs that the physician calls met), n_met_right (those of them that the judge calls met too), n_not_met,
        n_not_met_right (counts, not weighted);
        sensitivity and specificity (weighted, in [0, 1]) with intervals clustered by example (`confusion.rates`); NaN where there is no such pair.

    Raises:
        ValueError: `by` names something else.
    """
    if unknown := sorted(set(by) - set(ERROR_GROUPINGS)):
        msg = f"by: expected some of {', '.join(ERROR_GROUPINGS)}, found {', '.join(unknown)}"
        raise ValueError(msg)
    pairs = judge_pairs(rubric_data, jury=jury, reads=reads)
    names = pairs["rater"].cat.categories.to_numpy(dtype=object)
    raters = pairs["rater"].cat.codes.to_numpy(dtype=np.int64)
    counts, weights = pairs[list(COUNTS)].to_numpy(), pairs["weight"].to_numpy()
    of_pair = pairs["row"].to_numpy()
    examples = pd.factorize(rubric_data.items["example_id"])[0][of_pair]
    parts = []
    for grouping in dict.fromkeys(by):
        codes, words = _error_groups(rubric_data.items, grouping)
        cells = raters * len(words) + codes[of_pair]
        rates = confusion.rates(counts, weights, examples, cells, len(names) * len(words), level=level)
        met, not_met, both = rates[SENSITIVITY], rates[SPECIFICITY], rates[confusion.ACCURACY]
        table = pd.DataFrame(
            {
                "judge": np.repeat(names, len(words)),
                "grouping": grouping,
                "group": np.tile(np.array(words, dtype=object), len(names)),
                "n_pairs": both["n"].astype(np.int64),
                "n_examples": both["n_clusters"],
                "weighted": bool((weights != 1).any()),
                **_of_class(met, "met", SENSITIVITY),
                **_of_class(not_met, "not_met", SPECIFICITY),
            }
        )
        parts.append(table.loc[table["n_pairs"].gt(0)])
    table = pd.concat(parts, ignore_index=True)
    order = {name: place for place, name in enumerate(names)}
    return table.sort_values("judge", key=lambda column: column.map(order), kind="stable", ignore_index=True)


def _of_class(rates: pd.DataFrame, label: str, rate: str) -> dict[str, pd.Series]:
    return {
        f"n_{label}": rates["n"].astype(np.int64),
        f"n_{label}_right": rates["n_hits"],
        rate: rates["share"],
        f"{rate}_low": rates["low"],
        f"{rate}_high": rates["high"],
    }


def _error_groups(items: pd.DataFrame, grouping: str) -> tuple[Numbers, list[str]]:
    """The group of each item as a number, and the groups' names in order."""
    if grouping == OVERALL:
        return np.zeros(len(items), dtype=np.int64), [OVERALL]
    if grouping == SIGN:
        tags: Numbers = sign_codes(items["points"])
        words = list(SIGNS)
    else:
        column = items[grouping].astype("category")
        tags = column.cat.codes.to_numpy()
        names = [str(name) for name in column.cat.categories]
        words = [LANGUAGES.get(name, name) if grouping == LANGUAGE else name.replace("_", " ") for name in names]
        words.append(UNTAGGED[grouping])  # code -1 is the last
    codes, found = pd.factorize(np.array(words, dtype=object), sort=True)
    return codes[tags], [str(name) for name in found]

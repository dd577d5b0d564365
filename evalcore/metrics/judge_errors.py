"""Sensitivity and specificity of judges against physicians, by kind of criterion and of conversation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.languages import LANGUAGES
from evalcore.metrics.intervals import LEVEL, Share, share_interval
from evalcore.metrics.judge_record import NO_AXIS, SIGNS, sign_codes
from evalcore.metrics.opinions import Opinions
from evalcore.metrics.pairs import COUNTS, judge_pairs

OVERALL, SIGN, AXIS, THEME, LANGUAGE = "overall", "sign", "axis", "theme", "language"
GROUPINGS = (OVERALL, SIGN, AXIS, THEME, LANGUAGE)
UNTAGGED = {AXIS: NO_AXIS, THEME: "no theme", LANGUAGE: "language not known"}
COLUMNS = [
    "judge", "grouping", "group", "n_pairs", "n_examples", "n_met", "n_met_right", "sensitivity", "sensitivity_low", "sensitivity_high",
    "n_not_met", "n_not_met_right", "specificity", "specificity_low", "specificity_high",
]  # fmt: skip

Numbers = npt.NDArray[np.integer[Any]]


def error_rates(
    opinions: Opinions, *, by: Sequence[str] = GROUPINGS, jury: bool = True, level: float = LEVEL
) -> pd.DataFrame:
    """What share of physicians' "met" each judge calls met (sensitivity), and of their "not met" not met (specificity).

    The condition is a physician's blind first read, and each read counts as a pair with the judge's label: on an item that
    physicians read differently, the judge is right by one and wrong by the other. Whether the item was drawn does not matter.

    Args:
        opinions: What everybody says.
        by: Some of `GROUPINGS`; sign: whether the points are positive (desirable) or negative (undesirable).
        jury: Two judges and more enter as their majority and their mean too (`pairs.judge_pairs`).
        level: Of confidence, in (0, 1).

    Returns:
        One row a judge, grouping and group with a pair, groups by name: judge, grouping, group, n_pairs, n_examples, n_met (pairs that
        the physician calls met), n_met_right (those of them that the judge calls met too), sensitivity = n_met_right / n_met, n_not_met,
        n_not_met_right, specificity = n_not_met_right / n_not_met, both in [0, 1] and with an interval clustered by example
        (`intervals.share_interval`); NaN where there is no such pair.

    Raises:
        ValueError: `by` names something else.
    """
    if unknown := sorted(set(by) - set(GROUPINGS)):
        msg = f"by: {', '.join(unknown)} came, expected some of {', '.join(GROUPINGS)}"
        raise ValueError(msg)
    pairs = judge_pairs(opinions, jury=jury)
    names = list(pairs["rater"].cat.categories)
    raters = pairs["rater"].cat.codes.to_numpy()
    counts = pairs[list(COUNTS)].to_numpy()
    of_pair = pairs["row"].to_numpy()
    examples = opinions.items["example_id"].to_numpy()[of_pair]
    groups = {grouping: _groups(opinions.items, grouping) for grouping in dict.fromkeys(by)}
    rows = []
    for code, judge in enumerate(names):
        mine = np.flatnonzero(raters == code)
        for grouping, (codes, words) in groups.items():
            of_mine = codes[of_pair[mine]]
            for number, group in enumerate(words):
                here = mine[of_mine == number]
                if len(here):
                    rates = _rates(counts[here], examples[here], level)
                    rows.append({"judge": judge, "grouping": grouping, "group": group, **rates})
    return pd.DataFrame(rows, columns=COLUMNS)


def _groups(items: pd.DataFrame, grouping: str) -> tuple[Numbers, list[str]]:
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


def _rates(counts: Numbers, examples: Numbers, level: float) -> dict[str, float | int]:
    both, rater_only, other_only, neither = counts.T
    sensitivity = _share(both, other_only, examples, level)
    specificity = _share(neither, rater_only, examples, level)
    return {
        "n_pairs": int(counts.sum()),
        "n_examples": len(np.unique(examples)),
        "n_met": sensitivity.n,
        "n_met_right": sensitivity.n_hits,
        "sensitivity": sensitivity.share,
        "sensitivity_low": sensitivity.low,
        "sensitivity_high": sensitivity.high,
        "n_not_met": specificity.n,
        "n_not_met_right": specificity.n_hits,
        "specificity": specificity.share,
        "specificity_low": specificity.low,
        "specificity_high": specificity.high,
    }


def _share(right: Numbers, wrong: Numbers, examples: Numbers, level: float) -> Share:
    """Of so many pairs right and wrong on each item."""
    hits = np.repeat([True, False], [right.sum(), wrong.sum()])
    clusters = np.concatenate([np.repeat(examples, right), np.repeat(examples, wrong)])
    return share_interval(hits, clusters, level=level)

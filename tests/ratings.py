"""Labels of several raters for the tests of agreement: from strings, from a crossed table, by chance."""

import numpy as np
import pandas as pd


def long(rows, *, missing="", undecided="?", per_example=1):
    """The frame of strings, one a rater: one sign a unit, `?` is cannot assess, signs of `missing` have no row."""
    return pd.DataFrame(
        [
            (unit, unit // per_example, rater, None if sign == undecided else sign)
            for rater, signs in zip("abcdefgh", rows, strict=False)
            for unit, sign in enumerate(signs)
            if sign not in missing
        ],
        columns=["unit", "example_id", "rater", "value"],
    ).astype({"rater": "str", "value": "str"})


def crossed(table, names="ABC"):
    """Two raters' labels, from how often they gave each pair of categories."""
    first = "".join(names[i] * n for i, row in enumerate(table) for n in row)
    second = "".join(names[j] * n for row in table for j, n in enumerate(row))
    return long([first, second])


def drawn(seed, n_raters, n_categories, *, undecided=0.0):
    """Labels of a few examples with one to three units each; a fifth of the reads was not made."""
    rng = np.random.default_rng(seed)
    rows = [
        (
            10 * example + place,
            example,
            f"r{rater}",
            "ABCD"[rng.integers(n_categories)] if rng.random() >= undecided else None,
        )
        for example in range(int(rng.integers(2, 9)))
        for place in range(int(rng.integers(1, 4)))
        for rater in range(n_raters)
        if rng.random() < 0.8
    ]
    return pd.DataFrame(rows, columns=["unit", "example_id", "rater", "value"]).astype({"rater": "str", "value": "str"})


def found(table, column="value"):
    """By coefficient."""
    return dict(zip(table["coefficient"], table[column], strict=True))


def ordered(labels, categories):
    """The labels with all categories that could have been given, in their order."""
    return labels.assign(value=pd.Categorical(labels["value"], categories=list(categories), ordered=True))

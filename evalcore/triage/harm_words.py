"""Expected harm in words: how much models do, and which are shown to do less."""

import pandas as pd

from evalcore.stats.wording import listed
from evalcore.study.schema import Format
from evalcore.triage.words import number_words

SHOWN = 0.05
"""A difference is told where its p, adjusted for the number of pairs, is below this."""


def harm_sentences(
    harm: pd.DataFrame,
    under: float,
    over: float,
    differences: pd.DataFrame | None = None,
    *,
    ranked: bool = True,
) -> list[str]:
    """How much harm models do in each format at these weights, and which are shown to do less.

    One model is said to do the least only where its difference to every other, on the same cases, is shown: below 0 with Holm's p below .05.

    Args:
        harm: As `harm.expected_harm` gives it, of models that are ranked: on the same cases, published matrices left out.
        under: The weight of an answer too low.
        over: The weight of an answer too high.
        differences: format, model_1, model_2, difference, p_holm, as `harm.harm_differences`; None: nothing is known of how models differ.
        ranked: Whether the models are of the same cases; else no lowest and highest is told.

    Returns:
        A sentence or two a format in which the harm of any model is known.
    """
    said = []
    for word in Format:
        mine = harm.loc[harm["format"].eq(word) & harm["harm"].notna()]
        if not len(mine):
            continue
        known = _range(mine) if ranked or len(mine) == 1 else "each model's expected harm is of other responses"
        head = f"In {word}, with weights {under:g} for too low and {over:g} for too high, {known}."
        if len(mine) > 1:
            pairs = None if differences is None else differences.loc[differences["format"].astype(str).eq(word)]
            head = f"{head} {_apart(mine, pairs)}"
        said.append(head)
    return said


def _range(mine: pd.DataFrame) -> str:
    """The least and the most, as they were measured."""
    rows = mine.sort_values("harm", kind="stable")
    said = [
        f"{row['model']}'s is {number_words(row['harm'], row['low'], row['high'], row['reason'])}"
        for row in (rows.iloc[0], rows.iloc[-1])
    ]
    if len(rows) == 1:
        return f"the expected harm of {said[0].replace(chr(39) + 's is', ' is', 1)}"
    between = "; " if len(rows) == 2 else ", the lowest; "  # noqa: PLR2004
    return f"expected harm: {said[0]}{between}{said[1]}{'' if len(rows) == 2 else ', the highest'}"  # noqa: PLR2004


def _apart(mine: pd.DataFrame, differences: pd.DataFrame | None) -> str:
    """Which models differ on the same cases, Holm's p below .05; one does the least where it differs from every other."""
    names = [str(name) for name in mine["model"]]
    if differences is None or not differences["p_holm"].notna().any():
        return "Which of them differ cannot be said yet."
    less = {name: set[str]() for name in names}
    for row in differences.loc[differences["p_holm"].lt(SHOWN)].to_dict(orient="records"):
        one, other = str(row["model_1"]), str(row["model_2"])
        better, worse = (one, other) if row["difference"] < 0 else (other, one)
        if better in less and worse in less:
            less[better].add(worse)
    if best := [name for name in names if len(less[name]) == len(names) - 1]:
        others = "the other" if len(names) == 2 else f"each of the {len(names) - 1:,} others"  # noqa: PLR2004
        return f"On the same cases {best[0]} does less harm than {others}."
    known = [f"{name} does less harm than {listed(sorted(worse))}" for name, worse in less.items() if worse]
    if known:
        return f"On the same cases {'; '.join(known)}; the other pairs are not shown to differ."
    return "On the same cases no two models are shown to differ."

"""What the study is made of and what physicians have read of it."""

import pandas as pd

from evalcore.languages import LANGUAGES
from evalcore.metrics.reference import standing_marks

UNKNOWN = "not known"


MAX_GROUPS = 10


def by_theme(composition: pd.DataFrame) -> pd.DataFrame:
    """Conversations by theme.

    Args:
        composition: One row an example (`queries.study.composition`).

    Returns:
        One row a theme, most frequent first, the rarest together as one where there are more than ten: group, n_examples,
        n_read (with a physician's verdict on a response), n_unread, label ("hedging 3/4": read of all).
    """
    return _by(composition, composition["theme"].str.replace("_", " "))


def by_language(composition: pd.DataFrame) -> pd.DataFrame:
    """Conversations by language, as `by_theme`."""
    return _by(composition, composition["language"].map(LANGUAGES))


def _by(composition: pd.DataFrame, groups: pd.Series) -> pd.DataFrame:
    named = pd.DataFrame({"group": groups.astype(object).fillna(UNKNOWN), "read": composition["n_read"].gt(0)})
    sizes = named["group"].value_counts()
    if len(sizes) > MAX_GROUPS:
        rare = sizes.index[MAX_GROUPS - 1 :]
        named["group"] = named["group"].mask(named["group"].isin(rare), f"{len(rare)} others")
    table = named.groupby("group")["read"].agg(n_examples="size", n_read="sum").reset_index()
    table["n_read"] = table["n_read"].astype(int)
    table["n_unread"] = table["n_examples"] - table["n_read"]
    table["label"] = [f"{row.group}  {row.n_read:,}/{row.n_examples:,}" for row in table.itertuples()]
    return table.sort_values(["n_examples", "group"], ascending=[False, True], ignore_index=True)


def judges_beside_physicians(marks: pd.DataFrame) -> pd.DataFrame:
    """Of the items that physicians read, how many have a physician's verdict that differs from a judge's.

    Args:
        marks: As `queries.browse.read_marks` gives them.

    Returns:
        One row a judge: judge, n_read, n_overridden (items), share in [0, 1].
    """
    item = ["judge", "response_id", "criterion_id"]
    both = standing_marks(marks.loc[marks["judge"].notna()])
    differing = both.assign(differs=both["label"].ne(both["judge_label"])).groupby(item)["differs"].any()
    table = differing.groupby("judge").agg(n_read="size", n_overridden="sum").reset_index()
    table["share"] = table["n_overridden"] / table["n_read"]
    return table

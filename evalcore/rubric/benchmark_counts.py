"""The published counts of the full HealthBench (arXiv 2505.08775): what a study is held against."""

import pandas as pd

N_EXAMPLES = 5_000
N_CRITERIA = 57_237
THEMES = {
    "global_health": 1_097,
    "hedging": 1_071,
    "communication": 919,
    "context_seeking": 594,
    "emergency_referrals": 482,
    "health_data_tasks": 477,
    "complex_responses": 360,
}
"""Examples by theme; each has one."""
AXES = {
    "completeness": 22_285,
    "accuracy": 18_888,
    "context_awareness": 8_991,
    "communication_quality": 4_522,
    "instruction_following": 2_551,
}
"""Criteria by axis, counted in the official file; each has one."""
SUBSETS = {"hard": 1_000, "consensus": 3_671}
"""Examples of the subsets; 586 are in both."""
SINGLE_TURN_SHARE, MEAN_TURNS = 0.583, 2.6
"""Of the conversations those with one turn, and turns a conversation, as the paper rounds them."""
MEAN_CRITERIA = N_CRITERIA / N_EXAMPLES
ONE_TURN = "1 turn"

_COUNTS = {"theme": (THEMES, N_EXAMPLES), "axis": (AXES, N_CRITERIA)}


def published(grouping: str) -> pd.DataFrame:
    """What the benchmark holds of each group of a grouping.

    There is none here for the languages, categories, points and lengths of the whole benchmark, and of the turns only the share of
    conversations with one.

    Args:
        grouping: One of `composition.Grouping`; for one without published counts there is no row.

    Returns:
        Index group in words ("global health"); share in (0, 1], n (NaN where only a share is published), n_whole.

    >>> published("theme").loc["emergency referrals"].to_dict()
    {'share': 0.0964, 'n': 482.0, 'n_whole': 5000.0}
    """
    if grouping == "turns":
        return _table({ONE_TURN: (SINGLE_TURN_SHARE, float("nan"), N_EXAMPLES)})
    counts, whole = _COUNTS.get(grouping, ({}, 0))
    return _table({name.replace("_", " "): (n / whole, n, whole) for name, n in counts.items()})


def _table(rows: dict[str, tuple[float, float, int]]) -> pd.DataFrame:
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["share", "n", "n_whole"], dtype=float)
    return table.rename_axis("group")

"""What is published of the full HealthBench: counts, scores, and weights that take a choice of themes back to it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from evalcore.stats.wording import counted, listed

N_EXAMPLES = 5_000
N_CRITERIA = 57_237
THEMES = {  # examples; each has one
    "global_health": 1_097,
    "hedging": 1_071,
    "communication": 919,
    "context_seeking": 594,
    "emergency_referrals": 482,
    "health_data_tasks": 477,
    "complex_responses": 360,
}
AXES = {  # criteria, counted in the official file; each has one
    "completeness": 22_285,
    "accuracy": 18_888,
    "context_awareness": 8_991,
    "communication_quality": 4_522,
    "instruction_following": 2_551,
}
SUBSETS = {"hard": 1_000, "consensus": 3_671}  # examples of the subsets; 586 are in both
SINGLE_TURN_SHARE, MEAN_TURNS = 0.583, 2.6  # of the conversations, as the paper rounds them
MEAN_CRITERIA = N_CRITERIA / N_EXAMPLES
ONE_TURN = "1 turn"


def published(grouping: str) -> pd.DataFrame:
    """What the benchmark holds of each theme, axis, or of one turn, by group in words ("global health"): share in (0, 1], n (NaN where unknown), n_whole."""
    counts, whole = {"theme": (THEMES, N_EXAMPLES), "axis": (AXES, N_CRITERIA)}.get(grouping, ({}, 0))
    rows: dict[str, tuple[float, float, float]]
    rows = {name.replace("_", " "): (n / whole, n, whole) for name, n in counts.items()}
    if grouping == "turns":
        rows = {ONE_TURN: (SINGLE_TURN_SHARE, np.nan, N_EXAMPLES)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["share", "n", "n_whole"], dtype=float)
    return table.rename_axis("group")


CITATION = (
    "Arora et al. 2025, HealthBench: Evaluating Large Language Models Towards Improved Human Health, arXiv 2505.08775"
)
JUDGE = "GPT-4.1 (as published)"
NOT_COMPARABLE = (
    "Published scores were given by another judge with another prompt: they show the order of magnitude, and are not to be compared "
    "with the scores of this study to the second decimal."
)
FULL, HARD = "full", "hard"
_SCORES = (
    ("o3", FULL, 0.598),
    ("Grok 3", FULL, 0.543),
    ("Gemini 2.5 Pro", FULL, 0.520),
    ("GPT-4.1", FULL, 0.479),
    ("o1", FULL, 0.418),
    ("Claude 3.7 Sonnet (thinking)", FULL, 0.346),
    ("GPT-4o (Aug 2024)", FULL, 0.320),
    ("Llama 4 Maverick", FULL, 0.249),
    ("GPT-3.5 Turbo", FULL, 0.157),
    ("o3", HARD, 0.32),
)


def published_scores() -> pd.DataFrame:
    """A row a published score, the highest first: model, subset (`full` or `hard`), score in [0, 1], judge, citation."""
    table = pd.DataFrame(_SCORES, columns=["model", "subset", "score"]).assign(judge=JUDGE, citation=CITATION)
    return table.sort_values(["subset", "score"], ascending=[True, False], ignore_index=True)


@dataclass(frozen=True)
class Weighting:
    """Weights of examples that give each theme the share that it has in the full benchmark."""

    weights: pd.Series  # by example_id, 0 or more; their mean over the examples with a known theme is 1
    by_theme: dict[str, float]  # the weight of an example of each theme that there is, by the theme as tagged
    n_known: int  # examples with a theme of the benchmark
    n_unknown: int  # examples without one; their weight is 0
    absent: tuple[str, ...]  # themes of the benchmark that no example has, in words
    share_present: float  # share in (0, 1] of the benchmark that the other themes make up
    n_effective: float  # as many examples of equal weight would know as much: (sum w)^2 / sum w^2, 1..n_known


def weighting(examples: pd.DataFrame) -> Weighting | None:
    """Post-stratification to the themes of the full benchmark; None where no example has one of them.

    An example of theme t has the weight (P_t / sum of P over the themes present) / (n_t / n_known), so that a weighted mean over the examples is the mean
    of the themes' means, each with its published share. A theme without an example is named, and the others share its part; an example without a
    theme of the benchmark has weight 0. `examples` has example_id and theme, one row or more an example: those that the score is made of.
    """
    once = examples.drop_duplicates("example_id")
    themes = once["theme"].astype(object)
    known = themes.isin(THEMES)
    if not known.any():
        return None
    counts = themes[known].value_counts()
    published = pd.Series(THEMES, dtype=float).reindex(counts.index)
    n_known = int(known.sum())
    by_theme = (published / published.sum()) / (counts / n_known)
    weights = themes.map(by_theme).astype(float).where(known, 0.0)
    weights.index = pd.Index(once["example_id"], name="example_id")
    return Weighting(
        weights=weights.rename("weight"),
        by_theme={theme: float(by_theme[theme]) for theme in THEMES if theme in by_theme.index},
        n_known=n_known,
        n_unknown=int((~known).sum()),
        absent=tuple(theme.replace("_", " ") for theme in THEMES if theme not in counts.index),
        share_present=float(published.sum() / sum(THEMES.values())),
        n_effective=float(weights.sum() ** 2 / (weights**2).sum()),
    )


def weighting_sentence(chosen: Weighting) -> str:
    """What the weights do and what they leave out, in words."""
    effective = f"{'tells' if chosen.n_known == 1 else 'tell'} as much as {chosen.n_effective:,.0f} of equal weight"
    words = [f"Weighted to the themes of the full benchmark, {counted(chosen.n_known, 'conversation')} {effective}."]
    if chosen.absent:
        words.append(
            f"No conversation here has the theme {listed(chosen.absent, 'or')}; the weights stand for the other "
            f"{100 * chosen.share_present:.0f} % of the benchmark."
        )
    if chosen.n_unknown:
        words.append(f"Left out, without a theme of the benchmark: {chosen.n_unknown:,}.")
    return " ".join(words)

"""Scores that were published for HealthBench: points of reference, by another judge and not by this study."""

import pandas as pd

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
    """One row a published score, the highest first: model, subset (`full` or `hard`), score in [0, 1], judge, citation.

    To be drawn apart from the study's own scores and marked as another judge's, with `CITATION` and `NOT_COMPARABLE` beside.

    >>> published_scores()["score"].tolist()[:3]
    [0.598, 0.543, 0.52]
    """
    found = pd.DataFrame(_SCORES, columns=["model", "subset", "score"]).assign(judge=JUDGE, citation=CITATION)
    return found.sort_values(["subset", "score"], ascending=[True, False], ignore_index=True)

"""Weights that take a lopsided choice of themes back."""

from dataclasses import dataclass

import pandas as pd

from evalcore.rubric.benchmark_counts import THEMES
from evalcore.stats.wording import listed


@dataclass(frozen=True)
class Weighting:
    """Weights of examples that give each theme the share that it has in the full benchmark.

    Attributes:
        weights: By example_id, 0 or more; their mean over the examples with a known theme is 1.
        by_theme: The weight of an example of each theme that there is, by the theme as tagged.
        n_known: Examples with a theme of the benchmark.
        n_unknown: Examples without one; their weight is 0.
        absent: Themes of the benchmark that no example has, in words.
        share_present: Share in (0, 1] of the benchmark that the other themes make up.
        n_effective: As many examples of equal weight would know as much: (sum w)^2 / sum w^2, 1..n_known.
    """

    weights: pd.Series
    by_theme: dict[str, float]
    n_known: int
    n_unknown: int
    absent: tuple[str, ...]
    share_present: float
    n_effective: float


def has_themes(examples: pd.DataFrame) -> bool:
    """Whether any example has a theme of the benchmark, so that there are weights."""
    return bool(examples["theme"].isin(THEMES).any())


def weighting(examples: pd.DataFrame) -> Weighting:
    """Post-stratification to the themes of the full benchmark (`benchmark_counts.THEMES`).

    An example of theme t has the weight (P_t / sum of P over the themes present) / (n_t / n_known), so that a weighted mean over the examples
    is the mean of the themes' means, each with its published share. A theme without an example cannot be weighted up: it
    is named, and the others share its part. An example without a theme of the benchmark has no place in it: its weight is
    0, which leaves it out of the weighted score, and it is counted. The weights correct the choice of themes and nothing else.

    Args:
        examples: example_id and theme (as tagged, "emergency_referrals"; missing where unknown), one row or more an example: those that
            the score is made of. Models that answered different examples need weights of their own.

    Raises:
        ValueError: No example has a theme of the benchmark.
    """
    once = examples.drop_duplicates("example_id")
    themes = once["theme"].astype(object)
    known = themes.isin(THEMES)
    if not known.any():
        msg = f"{len(once)} examples came, none with a theme of the benchmark, expected some of {', '.join(THEMES)}"
        raise ValueError(msg)
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
    words = [
        f"Weighted to the themes of the full benchmark, {chosen.n_known:,} conversations tell as much as "
        f"{chosen.n_effective:,.0f} of equal weight."
    ]
    if chosen.absent:
        words.append(
            f"No conversation here has the theme {listed(chosen.absent, 'or')}; the weights stand for the other "
            f"{100 * chosen.share_present:.0f} % of the benchmark."
        )
    if chosen.n_unknown:
        words.append(f"{chosen.n_unknown:,} without a theme of the benchmark are left out.")
    return " ".join(words)

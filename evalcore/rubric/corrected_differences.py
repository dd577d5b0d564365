"""Which of two models is really better: differences of their corrected scores, example by example."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from evalcore.rubric.corrected import CORRECTED, Claim, Estimate, Physicians, estimated, widest
from evalcore.rubric.items import Opinions
from evalcore.rubric.surveyed import Surveyed, surveyed
from evalcore.stats.intervals import LEVEL, ROUNDING
from evalcore.stats.over_physicians import (
    BenchmarkVariance,
    benchmark_variance,
    by_physician,
    freedom,
    spread,
    with_strictness,
)
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.survey import Fit, Floats, Numbers, Population, Sample, deviations

COLUMNS = [
    "model_1",
    "model_2",
    "evaluation",
    "n_examples",
    "difference",
    "low",
    "high",
    "se",
    "df",
    "sim_low",
    "sim_high",
    "p",
    "p_holm",
]


def corrected_differences(
    opinions: Opinions,
    *,
    judges: Sequence[str] | None = None,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    settled: bool = False,
    weights: pd.Series | None = None,
    known: Sequence[Surveyed] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The differences of every two models' corrected scores, on the examples that both have answered.

        d_i = psi_i of model 1 - psi_i of model 2,   difference = mean d,   V_B = var(d)/n       over the n examples of both

    Both models' scores go up and down with the same examples, and by much the same reads; pairs take that out. Each model is corrected by
    its own reads. The claims are those of `corrected_scores`, and so are the variances, of the difference of what each example adds:

        this benchmark, these physicians       V_A                                      t of the model with fewer degrees of freedom
        new examples, these physicians         V_B                                      the same, at most n - 1
        this benchmark, physicians             V_G + V_S                                t of both (Satterthwaite)
        new examples, physicians               V_B + V_S                                t of both

    V_A is by example: two models of which the same items were drawn, or one physician read both, differ by less than two that were read apart; its part of
    the readers is at most that of either score together. For physicians in general a physician's part is the difference of what they add to
    either score, so that one who is strict with both takes nothing from it.
    As with the scores, a claim's interval is at least as wide as that of every narrower one. Where nearly all votes are as predicted, each is widened as
    that of the scores is.

    Args:
        opinions: The study, or a part of it.
        judges: Whose labels are used; None: all.
        claim: What the interval is to hold for.
        physicians: Whose judgement the interval is to hold for.
        settled: An adjudicated label takes the place of the readers' votes.
        weights: By example_id, as in `corrected_scores`.
        known: What `surveyed` gave for the same opinions, judges and weights, where it is at hand.
        level: Of confidence of the interval, in (0, 1).

    Returns:
        One row a pair and evaluation, models by name: model_1, model_2, evaluation, n_examples (of both), difference (model 1 less model 2), low, high,
        se and df (standard error and degrees of freedom of this interval, as in `corrected_scores`), sim_low and sim_high (all pairs'
        intervals hold at once: each at 1 - (1 - level)/pairs, Bonferroni's t, which holds whatever the pairs have in common and however few physicians
        have read), p (two-sided, of no difference) and p_holm
        (Holm's). Both are over all pairs of the evaluation that have a difference. All NaN where
        too little was read of either model, or where they have fewer than two examples in common.

    Raises:
        ValueError: A judge is not in the study.
    """
    models: dict[str, list[Scored]] = {}
    for about in surveyed(opinions, judges=judges, settled=settled, weights=weights) if known is None else known:
        estimate = estimated(about, claim=claim, physicians=physicians).of_kind[CORRECTED]
        models.setdefault(about.evaluation, []).append(Scored(about, estimate))
    tables = [paired(of_one, claim, physicians, level) for of_one in models.values()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


def rank_intervals(differences: pd.DataFrame) -> pd.DataFrame:
    """Which ranks each model may have, 1 the best: at the level of `corrected_differences` all models' ranks lie in these at once.

        from 1 + the models that are surely better     to n - the models that are surely worse     surely: sim_low > 0 or sim_high < 0

    References:
        Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91 (ranks from simultaneous intervals of differences).

    Args:
        differences: As `corrected_differences` gives them.

    Returns:
        One row a model and evaluation, by name: evaluation, model, n_models (n: those of which a difference is known), rank_low and rank_high in
        1..n; NaN for a model of which none is known.
    """
    sides = []
    for side, ahead, behind in (
        (1, differences["sim_low"].gt(0), differences["sim_high"].lt(0)),
        (2, differences["sim_high"].lt(0), differences["sim_low"].gt(0)),
    ):
        columns = {
            "evaluation": differences["evaluation"],
            "model": differences[f"model_{side}"],
            "known": differences["difference"].notna(),
            "n_worse": ahead,
            "n_better": behind,
        }
        sides.append(pd.DataFrame(columns))
    counts = (
        pd.concat(sides)
        .groupby(["evaluation", "model"], sort=True)[["known", "n_worse", "n_better"]]
        .sum()
        .reset_index()
    )
    is_known = counts["known"].gt(0)
    n_models = is_known.groupby(counts["evaluation"]).transform("sum")
    low, high = (1 + counts["n_better"]).where(is_known), (n_models - counts["n_worse"]).where(is_known)
    return counts[["evaluation", "model"]].assign(n_models=n_models, rank_low=low, rank_high=high)


@dataclass(frozen=True)
class Scored:
    """One model, as pairs take it.

    Attributes:
        about: Its items and what was read of them.
        estimate: Of any mean over what `about` holds; without a value (`corrected.nothing`) where too little was read.
    """

    about: Surveyed
    estimate: Estimate

    def on(self, common: Numbers) -> Floats:
        """The influence values of the examples that both have answered."""
        return on_examples(self.about, self.estimate, common)

    @cached_property
    def whole(self) -> "_Part":
        """What was read of all examples."""
        return _part(self.about.population, self.about.sample, self.estimate.fit)

    def part(self, common: Numbers) -> "_Part":
        """What was read of the examples that both have answered, the score being that on these alone."""
        population, sample, fit = self.about.population, self.about.sample, self.estimate.fit
        if len(common) == population.n_examples:
            return self.whole
        of_examples = np.isin(np.arange(population.n_examples), common)
        items = of_examples[population.example]
        read = items[sample.rows]
        given = read[sample.places]
        return _part(
            Population(
                population.moves[items] / population.shares[common].sum(),
                population.undesirable[items],
                population.labels[items],
                (np.cumsum(of_examples) - 1)[population.example[items]],
            ),
            Sample(
                rows=(np.cumsum(items) - 1)[sample.rows[read]],
                votes=sample.votes[read],
                probabilities=sample.probabilities[read],
                units=np.unique(sample.units[read], return_inverse=True)[1],
                places=(np.cumsum(read) - 1)[sample.places[given]],
                readers=sample.readers[given],
                said=sample.said[given],
                own=None if sample.own is None else sample.own[given],
            ),
            replace(
                fit,
                predicted=fit.predicted[items],
                columns=fit.columns[read],
                pull=fit.pull[read],
                factors=fit.factors[read],
            ),
        )


@dataclass(frozen=True)
class _Part:
    """What was read of a model's examples.

    Attributes:
        draw: By example what its reads add to the score by the draw of its items: the sum of squares is V_A by example.
        most: The same without (1 - pi).
        variance: V_A by unit, in its parts.
        by_physician: `over_physicians.by_physician`.
    """

    draw: Floats
    most: Floats
    variance: BenchmarkVariance
    by_physician: tuple[Floats, Floats]


def _part(population: Population, sample: Sample, fit: Fit) -> _Part:
    z, example, n = deviations(population, sample, fit), population.example[sample.rows], population.n_examples
    missed = np.sqrt(1 - sample.probabilities)
    draw, most = (np.asarray(np.bincount(example, of, n), dtype=np.float64) for of in (missed * z, z))
    variance = benchmark_variance(population, sample, fit)
    return _Part(draw, most, variance, by_physician(population, sample, fit))


def on_examples(about: Surveyed, estimate: Estimate, common: Numbers) -> Floats:
    """The influence values of some of a model's examples, whose mean is its score on these alone.

    An example adds T_i = share_i S + (psi_i - S)/N to the score S. On some examples alone the score is S' = sum T / sum share, and
    psi' = S' + n (T - S' share) / sum share. With all examples that is psi again.
    """
    value, psi = estimate.fit.value, estimate.psi
    shares = about.population.shares[common]
    adds = shares * value + (psi[common] - value) / len(psi)
    whole = shares.sum()
    score = adds.sum() / whole if whole > 0 else np.nan
    return np.asarray(score + len(common) * (adds - score * shares) / whole, dtype=np.float64)


def _pairs(models: list[Scored], claim: Claim, physicians: Physicians) -> Iterator[dict[str, Any]]:
    """Every two models with their difference and its `_widths`; none where it is not known."""
    for one, other in combinations(models, 2):
        _, *places = np.intersect1d(
            one.about.example_ids, other.about.example_ids, assume_unique=True, return_indices=True
        )
        n = len(places[0])
        row: dict[str, Any] = {
            "model_1": one.about.model,
            "model_2": other.about.model,
            "evaluation": one.about.evaluation,
            "n_examples": n,
        }
        if min(one.estimate.freedom, other.estimate.freedom, n - 1) > 0:
            row["difference"] = float((one.on(places[0]) - other.on(places[1])).mean())
            row["widths"] = _widths(one, other, places, claim, physicians)
        yield row


def paired(models: list[Scored], claim: Claim, physicians: Physicians, level: float) -> pd.DataFrame:
    """The rows of `corrected_differences` for these models of one evaluation, with intervals each alone and all at once."""
    pairs = list(_pairs(models, claim, physicians))
    n_known = sum("widths" in row for row in pairs)
    for row in pairs:
        if widths := row.pop("widths", None):
            difference = row["difference"]
            half, error, degrees = widest(widths, level)
            at_once, *_ = widest(widths, 1 - (1 - level) / n_known)
            row |= {"low": difference - half, "high": difference + half, "se": error, "df": degrees}
            row |= {"sim_low": difference - at_once, "sim_high": difference + at_once}
            row["p"] = _p(difference, error, degrees)
    table = pd.DataFrame(pairs, columns=COLUMNS[:-1])
    return table.assign(p_holm=adjusted(table["p"].to_numpy(dtype=np.float64), holm))


def _widths(
    one: Scored, other: Scored, places: list[Numbers], claim: Claim, physicians: Physicians
) -> list[tuple[float, float]]:
    """Variance and degrees of freedom by the claim, and by the narrower ones that it must not fall below."""
    n = len(places[0])
    unseen = one.estimate.unseen + other.estimate.unseen
    new_examples = float((one.on(places[0]) - other.on(places[1])).var(ddof=1)) / n
    first, second = one.part(places[0]), other.part(places[1])
    draw = float(((first.draw - second.draw) ** 2).sum()) * n / (n - 1)
    most = float(((first.most - second.most) ** 2).sum()) * n / (n - 1)
    room, degrees = max(0.0, most - draw), min(first.variance.freedom, second.variance.freedom)
    these = draw + min(room, first.variance.readers + second.variance.readers)
    widths = [(these + unseen, degrees)]
    if claim is Claim.NEW_EXAMPLES:
        widths.append((new_examples + unseen, min(degrees, n - 1)))
    if physicians is Physicians.IN_GENERAL:
        between = _between((one.about.readers, first), (other.about.readers, second))
        alike = first.variance.alike + second.variance.alike
        any_reader = draw + min(room, first.variance.any_reader + second.variance.any_reader)
        bases = [(any_reader + unseen, degrees), *widths[1:]]
        widths += [with_strictness(*base, between, alike) for base in bases]
    return widths


def _between(*both: tuple[tuple[str, ...], _Part]) -> tuple[float, float]:
    """`over_physicians.between_physicians` of a difference: one who is strict with both models takes nothing from it."""
    names = sorted({name for readers, _ in both for name in readers})
    apart, loads = np.zeros(len(names)), np.zeros(len(names))
    for (readers, part), sign in zip(both, (1, -1), strict=True):
        adds, load = part.by_physician
        places = np.searchsorted(names, readers[: len(adds)])
        apart[places] += sign * adds
        loads[places] += load / 2
    return spread(apart), freedom(loads)


def _p(difference: float, error: float, degrees: float) -> float:
    """Two-sided, of no difference. Where all is read there may be no error; what rounding leaves of a difference is then none."""
    if error < ROUNDING:
        return 1.0 if abs(difference) < ROUNDING else 0.0
    return float(2 * stdtr(degrees, -abs(difference) / error))

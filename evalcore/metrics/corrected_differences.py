"""Which of two models is really better: differences of their corrected scores, example by example."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from evalcore.metrics.corrected import CORRECTED, Claim, Estimate, Physicians, estimated
from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.opinions import Opinions
from evalcore.metrics.over_physicians import by_physician, freedom, freedom_of_sum, spread
from evalcore.metrics.pair_tests import adjusted, holm
from evalcore.metrics.survey import Floats, Numbers, deviations
from evalcore.metrics.surveyed import Surveyed, surveyed

COLUMNS = ["model_1", "model_2", "evaluation", "n_examples", "difference", "low", "high", "se", "df", "p", "p_holm"]


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
        this benchmark, physicians             V_physicians                             t of the effective readers less one
        new examples, physicians               V_physicians + max(0, V_B - V_A)         t of both (Satterthwaite)

    V_A is that of the units drawn by example: two models of which the same items were drawn differ by less than two that were drawn apart. For physicians in
    general a physician's part is the difference of what they add to either score, so that one who is strict with both takes nothing from it.
    For new examples the interval is at least as wide as for this benchmark. Where nearly all votes are as predicted, each is widened as
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
        se, df (degrees of freedom of the interval), p (two-sided, of no difference) and p_holm (Holm's,
        over all pairs of the evaluation that have a p). All NaN where
        too little was read of either model, or where they have fewer than two examples in common.

    Raises:
        ValueError: A judge is not in the study.
    """
    models: dict[str, list[_Model]] = {}
    for about in surveyed(opinions, judges=judges, settled=settled, weights=weights) if known is None else known:
        estimate = estimated(about, claim=claim, physicians=physicians).of_kind[CORRECTED]
        models.setdefault(about.evaluation, []).append(_Model(about, estimate))
    tables = [
        _with_holm(pd.DataFrame(_pairs(of_one, claim, physicians, level), columns=COLUMNS[:-1]))
        for of_one in models.values()
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


@dataclass(frozen=True)
class _Model:
    about: Surveyed
    estimate: Estimate

    def on(self, common: Numbers) -> Floats:
        """The influence values of the examples that both have answered."""
        return on_examples(self.about, self.estimate, common)

    def drawn(self, common: Numbers) -> Floats:
        """By example what the draw of its items adds to the score on these, so that the sum of squares is V_A clustered by example."""
        population, sample = self.about.population, self.about.sample
        z = np.sqrt(1 - sample.probabilities) * deviations(population, sample, self.estimate.fit)
        sums = np.bincount(population.example[sample.rows], z, minlength=population.n_examples)[common]
        return np.asarray(sums / population.shares[common].sum(), dtype=np.float64)


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


def _pairs(models: list[_Model], claim: Claim, physicians: Physicians, level: float) -> Iterator[dict[str, object]]:
    for one, other in combinations(models, 2):
        _, *places = np.intersect1d(
            one.about.example_ids, other.about.example_ids, assume_unique=True, return_indices=True
        )
        n = len(places[0])
        row: dict[str, object] = {
            "model_1": one.about.model,
            "model_2": other.about.model,
            "evaluation": one.about.evaluation,
        }
        row |= {"n_examples": n} | dict.fromkeys(("difference", "low", "high", "se", "df", "p"), np.nan)
        if min(one.estimate.freedom, other.estimate.freedom, n - 1) > 0:
            difference = float((one.on(places[0]) - other.on(places[1])).mean())
            widths = _widths(one, other, places, claim, physicians)
            half, error, degrees = max(
                (float(stdtrit(degrees, (1 + level) / 2)) * float(np.sqrt(variance)), float(np.sqrt(variance)), degrees)
                for variance, degrees in widths
            )
            row |= {"difference": difference, "low": difference - half, "high": difference + half, "se": error}
            row |= {"df": degrees, "p": _p(difference, error, degrees)}
        yield row


def _widths(
    one: _Model, other: _Model, places: list[Numbers], claim: Claim, physicians: Physicians
) -> list[tuple[float, float]]:
    """Variance and degrees of freedom by the claim, and by the narrower one that it must not fall below."""
    n = len(places[0])
    unseen = one.estimate.unseen + other.estimate.unseen
    apart, drawn = one.on(places[0]) - other.on(places[1]), one.drawn(places[0]) - other.drawn(places[1])
    new_examples, benchmark = float(apart.var(ddof=1)) / n, float((drawn**2).sum()) * n / (n - 1)
    degrees: float = min(model.about.sample.n_units - model.estimate.fit.n_columns for model in (one, other))
    if physicians is Physicians.IN_GENERAL:
        of_draw = benchmark
        benchmark, degrees = _over_physicians(one, other)
        of_examples = max(0.0, new_examples - of_draw)
        both = benchmark + of_examples + unseen, freedom_of_sum(benchmark, degrees, of_examples, n - 1)
    else:
        both = new_examples + unseen, min(degrees, n - 1)
    narrow = benchmark + unseen, degrees
    return [narrow] if claim is Claim.BENCHMARK else [both, narrow]


def _over_physicians(one: _Model, other: _Model) -> tuple[float, float]:
    """The variance of a difference over physicians, and its degrees of freedom."""
    names = sorted({*one.about.readers, *other.about.readers})
    apart, loads, shared = np.zeros(len(names)), np.zeros(len(names)), 0.0
    for model, sign in ((one, 1), (other, -1)):
        adds, load, added = by_physician(model.about.population, model.about.sample, model.estimate.fit)
        places = np.searchsorted(names, model.about.readers)
        apart[places] += sign * adds
        loads[places] += load / 2
        shared += added
    return spread(apart) + shared, freedom(loads)


def _p(difference: float, error: float, degrees: float) -> float:
    """Two-sided, of no difference."""
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stdtr(degrees, -abs(difference) / error))


def _with_holm(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs.assign(p_holm=adjusted(pairs["p"].to_numpy(dtype=np.float64), holm))

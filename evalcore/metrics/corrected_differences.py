"""Which of two models is really better: differences of their corrected scores, example by example."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from evalcore.metrics.corrected import CORRECTED, Estimate, Physicians, estimated
from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.opinions import Opinions
from evalcore.metrics.over_physicians import by_physician, freedom, freedom_of_sum, spread
from evalcore.metrics.pair_tests import adjusted, holm
from evalcore.metrics.survey import Floats, Numbers, deviations
from evalcore.metrics.surveyed import Surveyed, surveyed

COLUMNS = ["model_1", "model_2", "evaluation", "n_examples", "difference", "low", "high", "se", "p", "p_holm"]


def corrected_differences(
    opinions: Opinions,
    *,
    judges: Sequence[str] | None = None,
    physicians: Physicians = Physicians.THESE,
    settled: bool = False,
    weights: pd.Series | None = None,
    known: Sequence[Surveyed] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The differences of every two models' corrected scores, on the examples that both have answered.

        d_i = psi_i of model 1 - psi_i of model 2,   difference = mean d,   V_B = var(d)/n       over the n examples of both

    A difference of models always holds for new examples, the wider claim of `corrected_scores`. Both models' scores go up and down
    with the same examples, and by much the same reads; pairs take that out. Each model is corrected by its own reads.
    For these physicians the variance is V_B, t with the smaller of the two models' degrees of freedom. For physicians in general a
    physician's part is the difference of what they add to either score, so that one who is strict with both takes nothing from it:

        V = V_physicians + max(0, V_B - V_A)      t of both, K - 1 and n - 1 (Satterthwaite)      V_A by example

    Where nearly all votes are as predicted, either is widened as that of the scores is.

    Args:
        opinions: The study, or a part of it.
        judges: Whose labels are used; None: all.
        physicians: Whose judgement the interval is to hold for.
        settled: An adjudicated label takes the place of the readers' votes.
        weights: By example_id, as in `corrected_scores`.
        known: What `surveyed` gave for the same opinions, judges and weights, where it is at hand.
        level: Of confidence of the interval, in (0, 1).

    Returns:
        One row a pair and evaluation, models by name: model_1, model_2, evaluation, n_examples (of both), difference (model 1 less model 2), low, high,
        se, p (two-sided, of no difference) and p_holm (Holm's, over all pairs of the evaluation that have a p). All NaN where
        too little was read of either model, or where they have fewer than two examples in common.

    Raises:
        ValueError: A judge is not in the study.
    """
    models: dict[str, list[_Model]] = {}
    for about in surveyed(opinions, judges=judges, settled=settled, weights=weights) if known is None else known:
        estimate = estimated(about, physicians=physicians).of_kind[CORRECTED]
        models.setdefault(about.evaluation, []).append(_Model(about, estimate))
    tables = [
        _with_holm(pd.DataFrame(_pairs(of_one, physicians, level), columns=COLUMNS[:-1])) for of_one in models.values()
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=COLUMNS)


@dataclass(frozen=True)
class _Model:
    about: Surveyed
    estimate: Estimate

    def on(self, common: Numbers) -> Floats:
        """The influence values of the examples that both have answered, whose mean is the model's score on these.

        An example adds T_i = share_i S + (psi_i - S)/N to the score S. On some examples alone the score is S' = sum T / sum share, and
        psi' = S' + n (T - S' share) / sum share. With all examples that is psi again.
        """
        value, psi = self.estimate.fit.value, self.estimate.psi
        shares = self.about.population.shares[common]
        adds = shares * value + (psi[common] - value) / len(psi)
        whole = shares.sum()
        score = adds.sum() / whole if whole > 0 else np.nan
        return np.asarray(score + len(common) * (adds - score * shares) / whole, dtype=np.float64)

    def drawn(self, common: Numbers) -> Floats:
        """By example what the draw of its items adds, so that the sum of squares is V_A clustered by example."""
        population, sample = self.about.population, self.about.sample
        z = np.sqrt(1 - sample.probabilities) * deviations(population, sample, self.estimate.fit)
        sums = np.bincount(population.example[sample.rows], z, minlength=population.n_examples)[common]
        return np.asarray(sums, dtype=np.float64)


def _pairs(models: list[_Model], physicians: Physicians, level: float) -> Iterator[dict[str, object]]:
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
        row |= {"n_examples": n} | dict.fromkeys(("difference", "low", "high", "se", "p"), np.nan)
        degrees = min(one.estimate.freedom, other.estimate.freedom, n - 1)
        if degrees > 0:
            apart = one.on(places[0]) - other.on(places[1])
            variance, unseen = float(apart.var(ddof=1)) / n, one.estimate.unseen + other.estimate.unseen
            if physicians is Physicians.IN_GENERAL:
                of_draw = float(((one.drawn(places[0]) - other.drawn(places[1])) ** 2).sum())
                of_physicians, degrees = _over_physicians(one, other)
                of_examples = max(0.0, variance - of_draw)
                degrees = freedom_of_sum(of_physicians, degrees, of_examples, n - 1)
                variance = of_physicians + of_examples
            difference, error = float(apart.mean()), float(np.sqrt(variance + unseen))
            half = float(stdtrit(degrees, (1 + level) / 2)) * error
            row |= {"difference": difference, "low": difference - half, "high": difference + half, "se": error}
            row["p"] = _p(difference, error, degrees)
        yield row


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

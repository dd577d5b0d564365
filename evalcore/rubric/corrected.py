"""The corrected score and its differences: judges on all criteria, physicians on those that were drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import ceil
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from scipy.special import stdtr

from evalcore.rubric.claims import (
    MIN_EXAMPLES_READ,
    MIN_FREEDOM,
    MIN_READ,
    DefaultClaim,
    Estimate,
    anytime_factor,
    further_readers,
    no_estimate,
    of_reads,
    widest,
    widest_claim,
)
from evalcore.rubric.data import RubricData, coefficients, first_reads, is_drawn, is_scored, votes
from evalcore.stats import estimator
from evalcore.stats.arrays import Floats, Numbers, Truths
from evalcore.stats.estimator import (
    MIN_OF_A_SIGN,
    BenchmarkVariance,
    Fit,
    Population,
    Sample,
    benchmark_variance,
    by_physician,
    by_physicians,
    corrected,
    deviations,
    effective_readers,
    freedom,
    further_reads,
    reading_loads,
    spread,
    with_strictness,
)
from evalcore.stats.intervals import LEVEL, ROUNDING
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import counted
from evalcore.study.schema import Claim, Physicians

# ---------------------------------------------------------------- the estimator's inputs


@dataclass(frozen=True)
class EstimatorInputs:
    """What the estimator takes of one model in one evaluation.

    Attributes:
        population: The items that count.
        sample: What was read of them.
        example_ids: By number of the example in `population`.
        judges: Whose labels they are.
        readers: By number of the physician in `sample`, the name.
        counts: n_examples, n_responses, n_items, n_left_out and n_unreached (responses), n_read, n_reads, n_readers, n_cannot_assess, n_units,
            n_effective_readers.
        cache: Estimates by the claim that they were made for: scores and differences of one view ask for the same.
    """

    model: str
    evaluation: str
    population: Population
    sample: Sample
    example_ids: Numbers
    judges: tuple[str, ...]
    readers: tuple[str, ...]
    counts: dict[str, float]
    cache: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def physicians_fit(self) -> Fit:
        """The estimate by physicians only, the same for all claims, which differ in its variance; something must have been read."""
        return by_physicians(self.population, self.sample)

    @cached_property
    def corrected_fit(self) -> Fit:
        """The corrected estimate, likewise."""
        return corrected(self.population, self.sample)

    @property
    def n_examples_read(self) -> int:
        """Examples of which an item was read."""
        return len(np.unique(self.population.example[self.sample.rows]))


def estimator_inputs(
    rubric_data: RubricData,
    *,
    judges: Sequence[str] | None = None,
    settled: bool = False,
    weights: pd.Series | None = None,
) -> list[EstimatorInputs]:
    """Every model of every evaluation, by name.

    Responses count that `is_scored` and on which every chosen judge (None: all) labelled every item. Of physicians' reads those count that were
    made blind of a drawn item; reads that could not assess are counted and not used, as if the item had not been drawn. `settled`: an adjudicated
    label takes the place of the readers' votes. `weights` are by example_id, 0 or more, e.g. to weight to a benchmark's themes; examples without
    one are left out.

    Raises:
        ValueError: A judge is not in the study.
    """
    chosen = list(dict.fromkeys(rubric_data.judges if judges is None else judges))
    if unknown := sorted(set(chosen) - set(rubric_data.judges)):
        msg = f"judges: expected some of {', '.join(rubric_data.judges) or 'none, as the study has no judge'}, got {', '.join(unknown)}"
        raise ValueError(msg)
    rubric_data = rubric_data.by(chosen)
    all_codes, names = _models(rubric_data.items)
    responses = pd.factorize(rubric_data.items["response_id"])[0]
    enters = _enter(rubric_data, responses, weights)
    is_first = ~rubric_data.items["response_id"].duplicated().to_numpy()
    n_left_out = np.bincount(all_codes[is_first & ~enters], minlength=len(names))
    entering, codes = rubric_data.where(enters), all_codes[enters]
    is_first, items = is_first[enters], entering.items
    beyond = ~items["reachable"].to_numpy(dtype=bool)
    moves = coefficients(items, weights).to_numpy()
    reads = first_reads(entering.reads).loc[is_drawn]
    voted = votes(entering.reads, settled=settled)
    own = votes(entering.reads).set_index("row")["vote"] if settled else None
    models = []
    for code, (model, evaluation) in enumerate(names):
        rows = np.flatnonzero(codes == code)
        example_ids, example = np.unique(items["example_id"].to_numpy()[rows], return_inverse=True)
        labels = entering.judged.to_numpy()[rows].astype(np.float64)
        of_model = voted.loc[codes[voted["row"].to_numpy()] == code]
        reads_of_model = reads.loc[codes[reads["row"].to_numpy()] == code]
        sample, readers = _sample(rows, of_model, reads_of_model, own)
        loads = reading_loads(sample.probabilities, sample.places, sample.readers)
        counts: dict[str, float] = {
            "n_examples": len(example_ids),
            "n_responses": int(is_first[rows].sum()),
            "n_items": len(rows),
            "n_left_out": int(n_left_out[code]),
            "n_unreached": int((is_first[rows] & beyond[rows]).sum()) if len(sample.rows) else 0,
            "n_read": len(sample.rows),
            "n_reads": int(reads_of_model["met"].notna().sum()),
            "n_readers": sample.n_readers,
            "n_effective_readers": effective_readers(loads),
            "n_cannot_assess": int(reads_of_model["met"].isna().sum()),
            "n_units": sample.n_units,
        }
        population = Population(moves[rows], items["points"].to_numpy()[rows] < 0, labels, example)
        models.append(
            EstimatorInputs(model, evaluation, population, sample, example_ids, tuple(chosen), readers, counts)
        )
    return models


def _models(items: pd.DataFrame) -> tuple[Numbers, list[tuple[str, str]]]:
    """By item the number of its model in its evaluation, and what these numbers mean, by name."""
    models, model_names = _numbered(items["model"])
    evaluations, evaluation_names = _numbered(items["evaluation"])
    present, codes = np.unique(models * max(len(evaluation_names), 1) + evaluations, return_inverse=True)
    pairs = (divmod(int(code), len(evaluation_names)) for code in present)
    return codes, [(model_names[model], evaluation_names[evaluation]) for model, evaluation in pairs]


def _numbered(column: pd.Series) -> tuple[Numbers, list[str]]:
    """By item the number of its name, and the names in order; a category's own order is that of its making."""
    codes, names = pd.factorize(column)
    order = sorted(range(len(names)), key=lambda place: str(names[place]))
    return np.argsort(order).astype(np.int64)[codes], [str(names[place]) for place in order]


def _enter(rubric_data: RubricData, responses: Numbers, weights: pd.Series | None) -> Truths:
    """Which items count: their response has a score, a weight, and every judge's label on every item."""
    missing = ~is_scored(rubric_data.items).to_numpy() | rubric_data.judged.isna().to_numpy().any(axis=1)
    if weights is not None:
        missing = missing | rubric_data.items["example_id"].map(weights).isna().to_numpy()
    return np.bincount(responses, missing)[responses] == 0 if len(responses) else missing


def _sample(
    rows: Numbers, voted: pd.DataFrame, reads: pd.DataFrame, own: pd.Series | None
) -> tuple[Sample, tuple[str, ...]]:
    """What was read of the items in these rows, and by whom; `own` is by row what the readers said where settled labels take the place of that.

    The probabilities are scaled so that the sum of 1/pi is the number of items: a drawing may be only partly read, and an item that
    nobody could assess is as if it had not been drawn.
    """
    read = voted["row"].to_numpy(dtype=np.int64)
    probabilities = voted["inclusion_probability"].to_numpy(dtype=np.float64)
    stands_for = (1 / probabilities).sum() / max(len(rows), 1)
    voted_label: Floats = voted["vote"].to_numpy(dtype=np.float64)
    is_settled = np.zeros(len(read), dtype=bool) if own is None else own.reindex(read).to_numpy() != voted_label
    used = reads.loc[reads["met"].notna() | reads["row"].isin(read[is_settled])]
    used = used.loc[used["row"].isin(read)]
    places = np.searchsorted(read, used["row"].to_numpy(dtype=np.int64))
    met = used["met"].to_numpy(dtype=np.float64)
    readers, names = pd.factorize(used["rater"], sort=True)
    sample = Sample(
        rows=np.searchsorted(rows, read),
        votes=voted_label,
        probabilities=(probabilities * stands_for).clip(max=1.0),
        units=pd.factorize(voted["unit"])[0].astype(np.int64),
        places=places,
        readers=readers.astype(np.int64),
        said=np.where(is_settled[places], voted_label[places], met),
        own=met,
    )
    return sample, tuple(map(str, names))


def lacking(inputs: EstimatorInputs, *, n_columns: int, in_general: bool) -> tuple[int, str]:
    """How many items more have to be read, at least, and that in words; 0 and nothing where it is enough.

    `n_columns` numbers are fitted; `in_general`: the score is to hold for physicians in general. A benchmark that has fewer of something than is
    asked for never has enough.
    """
    population, sample = inputs.population, inputs.sample
    by_unit = max(1.0, len(sample.rows) / max(sample.n_units, 1))
    signs = {
        name: max(0, min(MIN_OF_A_SIGN, int(side.sum())) - int(side[sample.rows].sum()))
        for name, side in (("desirable", ~population.undesirable), ("undesirable", population.undesirable))
    }
    examples = max(0, MIN_EXAMPLES_READ - inputs.n_examples_read)
    readers, by_whom = (
        further_readers(sample.n_readers, inputs.counts["n_effective_readers"]) if in_general else (0, "")
    )
    units = max(0, MIN_FREEDOM + n_columns - sample.n_units)
    n_needed = max(MIN_READ - len(sample.rows), ceil(units * by_unit), sum(signs.values()), examples, readers)
    if n_needed <= 0:
        return 0, ""
    words = [f"{counted(n_needed, 'more criterion', 'more criteria')} to be read"]
    words += [f"{n} of them {name}" for name, n in signs.items() if n]
    words += [f"from {counted(examples, 'more example')}"] if examples else []
    words += [by_whom] if readers else []
    return n_needed, ", ".join(words)


JUDGE, PHYSICIANS, CORRECTED = "judge_only", "physicians_only", "corrected"
KINDS = (JUDGE, PHYSICIANS, CORRECTED)
ANYTIME = ("corrected_any_low", "corrected_any_high")
WORTH = ("worth", "worth_low", "worth_high")
COLUMNS = [
    "model", "evaluation", "n_examples", "n_responses", "n_items", "n_left_out", "n_unreached", "n_read", "n_reads", "n_readers", "n_effective_readers",
    "n_cannot_assess", "n_units",
    *(kind + suffix for kind in KINDS for suffix in ("", "_low", "_high", "_se")), *ANYTIME, *WORTH, "enough", "n_needed", "needed",
]  # fmt: skip


def default_claim(inputs: Sequence[EstimatorInputs]) -> DefaultClaim:
    """The widest claim that the reads can carry: new examples, and physicians in general from 3 effective readers of every model that has enough."""
    return widest_claim([model.counts["n_effective_readers"] for model in inputs if estimates_of(model).is_enough])


def corrected_scores(
    inputs: Sequence[EstimatorInputs],
    *,
    claim: Claim = Claim.BENCHMARK,
    physicians: Physicians = Physicians.THESE,
) -> pd.DataFrame:
    """Each model's score by judges only, by physicians only, and by judges corrected by physicians, with 95 % intervals.

    The formulas are in `estimator`. The variance of an estimate with p fitted numbers from k units drawn (items, or whole responses),
    N examples and K physicians, and the quantile of its interval:

        this benchmark, these physicians       V_A                            t(k - p)
        new examples, these physicians         V_B                            t(min(k - p, N - 1))
        this benchmark, physicians             V_G + V_S                      t of both, k - p and K - 1 (Satterthwaite)
        new examples, physicians               V_B + V_S                      t of both, N - 1 and K - 1

    V_A and V_G (with any physicians in the place of these) are `estimator.benchmark_variance`. V_S, at least 0, is that some physicians are stricter
    than others: what `estimator.between_physicians` has above what it would have if all were equally strict. K counts effective readers.

    An interval for new examples is at least as wide as that for this benchmark, and one for physicians in general as that for these physicians: chance
    may let few physicians look more alike than their reads can be. Where nearly all votes are as predicted, each is widened by
    what V_A lacks to that of three votes that are not. Measured coverage of the 95 % interval: `tests/benchmarks/coverage.py`.

    Judge-only is the judge's opinion, and no physician is in it. On this benchmark every item has its label, so there is nothing to sample:
    the interval has width 0 and says nothing of the judge's errors. For new examples it is over examples, t(N - 1). With several judges it
    is that of their jury: the mean of their labels.

    Probabilities are scaled so that the read items stand for all (sum of 1/pi = number of items). That also holds while a drawing is only partly read.

    Returns:
        One row a model and evaluation: model, evaluation, n_examples, n_responses, n_items, n_left_out (responses without a score, a weight,
        or a label of every chosen judge on every item), n_unreached (of those that count: which no drawing could have taken, so that
        the reads do not stand for them; 0 where nothing is read), n_read (items), n_reads, n_readers, n_effective_readers (1 / sum q^2, q
        their shares of the reading: `estimator`), n_cannot_assess (reads), n_units (k); for each
        KIND of judge_only, physicians_only and corrected: KIND (raw: below 0 where undesirable things outweigh, at most about 1), KIND_low,
        KIND_high, KIND_se (of this interval: of the narrower claim, where that is wider), NaN where there is none; corrected_any_low and
        corrected_any_high (the interval that holds at all looks at once: `anytime_factor`); worth with worth_low and worth_high (further items
        that physicians would have had to read to do without the judge, by `further_reads`); enough (whether physicians-only and corrected are
        said at all), n_needed (further items to be read until they can be, 0 where enough) and needed (the same in words, empty where enough).

        Enough is 30 items read, from 10 examples, 2 of either sign that occurs, k - p at least 10, and for physicians in general 3 effective readers.
    """
    rows = []
    for model in inputs:
        estimates = estimates_of(model, claim=claim, physicians=physicians)
        row: dict[str, Any] = {"model": model.model, "evaluation": model.evaluation, **model.counts}
        for kind, estimate in estimates.of_kind.items():
            row |= estimate.columns(kind, LEVEL)
        wider = (row["corrected_high"] - row["corrected"]) * anytime_factor(model.sample.n_units)
        row |= dict(zip(ANYTIME, (row["corrected"] - wider, row["corrected"] + wider), strict=True))
        worth = (np.nan, np.nan, np.nan)
        if estimates.is_enough and model.judges:
            if WORTH not in model.cache:
                model.cache[WORTH] = further_reads(
                    model.population, model.sample, alone=model.physicians_fit, helped=model.corrected_fit
                )
            worth = model.cache[WORTH]
        row |= dict(zip(WORTH, worth, strict=True))
        rows.append(row | {"enough": estimates.is_enough, "n_needed": estimates.n_needed, "needed": estimates.needed})
    return pd.DataFrame(rows, columns=COLUMNS)


class Estimates(msgspec.Struct, frozen=True):
    """The scores of one model.

    Attributes:
        of_kind: One of each of `KINDS`; without value where there is no judge, or too little was read.
        n_needed: Further items to be read, at least, until physicians-only and corrected scores are said; 0 where they are.
        needed: The same in words; empty where nothing lacks.
    """

    of_kind: dict[str, Estimate]
    n_needed: int
    needed: str

    @property
    def is_enough(self) -> bool:
        """Whether physicians-only and corrected scores are said."""
        return self.n_needed == 0


def estimates_of(
    inputs: EstimatorInputs, *, claim: Claim = Claim.NEW_EXAMPLES, physicians: Physicians = Physicians.THESE
) -> Estimates:
    """The scores of one model, as `corrected_scores` says; made once for each claim."""
    if (claim, physicians) not in inputs.cache:
        inputs.cache[claim, physicians] = _estimated(inputs, claim, physicians)
    estimates: Estimates = inputs.cache[claim, physicians]
    return estimates


def _estimated(inputs: EstimatorInputs, claim: Claim, physicians: Physicians) -> Estimates:
    population, sample = inputs.population, inputs.sample
    of_kind = {
        JUDGE: _of_judge(population, claim),
        PHYSICIANS: no_estimate(population),
        CORRECTED: no_estimate(population),
    }
    fits = {PHYSICIANS: inputs.physicians_fit, CORRECTED: inputs.corrected_fit} if len(sample.rows) else {}
    n_columns = max((fit.n_columns for fit in fits.values()), default=1)
    n_needed, needed = lacking(inputs, n_columns=n_columns, in_general=physicians is Physicians.IN_GENERAL)
    for kind, fit in fits.items():
        if not n_needed and (kind == PHYSICIANS or inputs.judges):
            of_kind[kind] = of_reads(population, sample, fit, claim, physicians)
    return Estimates(of_kind, n_needed, needed)


def _of_judge(population: Population, claim: Claim) -> Estimate:
    if not population.n_examples:
        return no_estimate(population)
    fit = estimator.by_judges(population)
    psi = estimator.influences(population, None, fit)
    if claim is Claim.BENCHMARK:
        return Estimate(fit, 0.0 if not np.isnan(fit.value) else np.nan, 0.0, np.inf, psi)
    n = len(psi)
    return Estimate(fit, float(psi.var(ddof=1)) / n if n > 1 else np.nan, 0.0, n - 1, psi)


DIFFERENCE_COLUMNS = [
    "model_1", "model_2", "evaluation", "n_examples", "difference", "low", "high", "se", "df", "sim_low", "sim_high", "p", "p_holm",
]  # fmt: skip


def corrected_differences(
    inputs: Sequence[EstimatorInputs],
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
) -> pd.DataFrame:
    """The differences of every two models' corrected scores, on the examples that both have answered.

        d_i = psi_i of model 1 - psi_i of model 2,   difference = mean d,   V_B = var(d)/n       over the n examples of both

    Both models' scores go up and down with the same examples, and by much the same reads; pairs take that out. Each model is corrected by
    its own reads. The claims are those of `corrected_scores`, and so are the variances, of the difference of what each example adds; t of these
    physicians has the fewer degrees of freedom of both models, for new examples at most n - 1.

    V_A is by example: two models of which the same items were drawn, or one physician read both, differ by less than two that were read apart; its part of
    the readers is at most that of either score together. For physicians in general a physician's part is the difference of what they add to
    either score, so that one who is strict with both takes nothing from it.
    As with the scores, a claim's interval is at least as wide as that of every narrower one. Where nearly all votes are as predicted, each is widened as
    that of the scores is.

    Returns:
        One row a pair and evaluation, models by name: model_1, model_2, evaluation, n_examples (of both), difference (model 1 less model 2), low, high
        (95 %), se and df (standard error and degrees of freedom of this interval, as in `corrected_scores`), sim_low and sim_high (all pairs'
        intervals hold at once: each at 1 - (1 - level)/pairs, Bonferroni's t, which holds whatever the pairs have in common and however few physicians
        have read), p (two-sided, of no difference) and p_holm
        (Holm's). Both are over all pairs of the evaluation that have a difference. All NaN where
        too little was read of either model, or where they have fewer than two examples in common.
    """
    models: dict[str, list[ModelEstimate]] = {}
    for model in inputs:
        estimate = estimates_of(model, claim=claim, physicians=physicians).of_kind[CORRECTED]
        models.setdefault(model.evaluation, []).append(ModelEstimate(model, estimate))
    tables = [paired_differences(of_one, claim, physicians, LEVEL) for of_one in models.values()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=DIFFERENCE_COLUMNS)


def rank_intervals(differences: pd.DataFrame) -> pd.DataFrame:
    """Which ranks each model may have, 1 the best, by `corrected_differences`: at its level all models' ranks lie in these at once.

        from 1 + the models that are surely better     to n - the models that are surely worse     surely: sim_low > 0 or sim_high < 0

    References:
        Mogstad, Romano, Shaikh and Wilhelm 2024, Review of Economic Studies 91 (ranks from simultaneous intervals of differences).

    Returns:
        One row a model and evaluation, by name: evaluation, model, n_models (n: those of which a difference is known), rank_low and rank_high in
        1..n; NaN for a model of which none is known.
    """
    first_better, second_better = differences["sim_low"].gt(0), differences["sim_high"].lt(0)
    sides = [
        pd.DataFrame(
            {
                "evaluation": differences["evaluation"],
                "model": differences[name],
                "known": differences["difference"].notna(),
                "n_worse": ahead,
                "n_better": behind,
            }
        )
        for name, ahead, behind in (("model_1", first_better, second_better), ("model_2", second_better, first_better))
    ]
    keys = ["evaluation", "model"]
    counts = pd.concat(sides).groupby(keys, sort=True)[["known", "n_worse", "n_better"]].sum().reset_index()
    is_known = counts["known"].gt(0)
    n_models = is_known.groupby(counts["evaluation"]).transform("sum")
    low, high = (1 + counts["n_better"]).where(is_known), (n_models - counts["n_worse"]).where(is_known)
    return counts[keys].assign(n_models=n_models, rank_low=low, rank_high=high)


@dataclass(frozen=True)
class ModelEstimate:
    """One model, as pairs take it; the estimate, of any mean, is without a value (`no_estimate`) where too little was read."""

    inputs: EstimatorInputs
    estimate: Estimate

    def on(self, common: Numbers) -> Floats:
        """The influence values of the examples that both have answered."""
        return on_examples(self.inputs, self.estimate, common)

    @cached_property
    def whole(self) -> "_Part":
        """What was read of all examples."""
        return _part(self.inputs.population, self.inputs.sample, self.estimate.fit)

    def part(self, common: Numbers) -> "_Part":
        """What was read of the examples that both have answered, the score being that on these alone."""
        population, sample, fit = self.inputs.population, self.inputs.sample, self.estimate.fit
        if len(common) == population.n_examples:
            return self.whole
        of_examples = np.isin(np.arange(population.n_examples), common)
        items = of_examples[population.example]
        read = items[sample.rows]
        its_reads = read[sample.places]
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
                places=(np.cumsum(read) - 1)[sample.places[its_reads]],
                readers=sample.readers[its_reads],
                said=sample.said[its_reads],
                own=None if sample.own is None else sample.own[its_reads],
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

    By example, `draw` is what its reads add to the score by the draw of its items (the sum of squares is V_A by example), `most` the same without
    (1 - pi); `variance` is V_A by unit.
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


def on_examples(inputs: EstimatorInputs, estimate: Estimate, common: Numbers) -> Floats:
    """The influence values of some of a model's examples, whose mean is its score on these alone.

    An example adds T_i = share_i S + (psi_i - S)/N to the score S. On some examples alone the score is S' = sum T / sum share, and
    psi' = S' + n (T - S' share) / sum share. With all examples that is psi again.
    """
    value, psi = estimate.fit.value, estimate.psi
    shares = inputs.population.shares[common]
    adds = shares * value + (psi[common] - value) / len(psi)
    whole = shares.sum()
    score = adds.sum() / whole if whole > 0 else np.nan
    return np.asarray(score + len(common) * (adds - score * shares) / whole, dtype=np.float64)


def _pairs(models: list[ModelEstimate], claim: Claim, physicians: Physicians) -> Iterator[dict[str, Any]]:
    """Every two models with their difference and its `_widths`; none where it is not known."""
    for one, other in combinations(models, 2):
        _, *places = np.intersect1d(
            one.inputs.example_ids, other.inputs.example_ids, assume_unique=True, return_indices=True
        )
        n = len(places[0])
        row: dict[str, Any] = {
            "model_1": one.inputs.model,
            "model_2": other.inputs.model,
            "evaluation": one.inputs.evaluation,
            "n_examples": n,
        }
        if min(one.estimate.freedom, other.estimate.freedom, n - 1) > 0:
            row["difference"] = float((one.on(places[0]) - other.on(places[1])).mean())
            row["widths"] = _widths(one, other, places, claim, physicians)
        yield row


def paired_differences(models: list[ModelEstimate], claim: Claim, physicians: Physicians, level: float) -> pd.DataFrame:
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
    table = pd.DataFrame(pairs, columns=DIFFERENCE_COLUMNS[:-1])
    return table.assign(p_holm=adjusted(table["p"].to_numpy(dtype=np.float64), holm))


def _widths(
    one: ModelEstimate, other: ModelEstimate, places: list[Numbers], claim: Claim, physicians: Physicians
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
        between = _between((one.inputs.readers, first), (other.inputs.readers, second))
        alike = first.variance.alike + second.variance.alike
        any_reader = draw + min(room, first.variance.any_reader + second.variance.any_reader)
        bases = [(any_reader + unseen, degrees), *widths[1:]]
        widths += [with_strictness(*base, between, alike) for base in bases]
    return widths


def _between(*both: tuple[tuple[str, ...], _Part]) -> tuple[float, float]:
    """`estimator.between_physicians` of a difference: one who is strict with both models takes nothing from it."""
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

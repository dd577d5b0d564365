"""The corrected score and its differences: judges on all criteria, physicians on those that were drawn, and what an interval is to hold for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr, stdtrit

from evalcore.rubric.data import RubricData, first_reads, is_drawn, votes
from evalcore.rubric.length_adjusted import steps
from evalcore.stats import estimator
from evalcore.stats.arrays import Floats, Numbers, cells_of, occurring, rows_by_code
from evalcore.stats.intervals import LEVEL, ROUNDING
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import counted
from evalcore.study.schema import Claim, Physicians

MIN_READ = 30  # items read: with 33 a 95 % interval still covers 94 % and more
MIN_EXAMPLES_READ = 10
MIN_FREEDOM = 10  # units drawn, over the numbers that are fitted
MIN_PHYSICIANS = 3  # to say something of physicians in general: of two the spread is a guess
MIN_EFFECTIVE = 2.75  # readers that count as three: three who share the reading by chance never share it quite alike
TUNED_TO = 300  # units read, items or whole responses, at which the interval for looks at any time is narrowest beside the ordinary one


def further_readers(n_readers: int, effective: float) -> tuple[int, str]:
    """How many physicians more it takes to say something of physicians in general, at least, and by whom in words; 0 and "" where enough have read."""
    lacking = max(0, MIN_PHYSICIANS - n_readers, ceil(MIN_EFFECTIVE - effective))
    if not lacking:
        return 0, ""
    if n_readers < MIN_PHYSICIANS:
        return lacking, f"by {counted(MIN_PHYSICIANS - n_readers, 'more physician')}"
    who = f"so far {n_readers} physicians say as much as {effective:.1f} who read alike"
    return lacking, f"by those who have read less: {who}"


class DefaultClaim(msgspec.Struct, frozen=True):
    """What intervals are to hold for where nobody has chosen, and why, a sentence: new examples, and physicians in general where enough have read."""

    claim: Claim
    physicians: Physicians
    why: str


def widest_claim(n_effective: Sequence[float]) -> DefaultClaim:
    """The widest claim that the reads can carry, by the effective readers of each model (or of what else has an interval) of which enough is read."""
    fewest, physicians = min(n_effective, default=0.0), Physicians.THESE
    if not n_effective:
        why = "Too little has been read for a corrected score."
    elif fewest < MIN_EFFECTIVE:
        why = f"Fewer than {MIN_PHYSICIANS} effective readers ({fewest:.1f}): the interval holds for these physicians only."
    else:
        physicians = Physicians.IN_GENERAL
        why = f"{fewest:.1f} effective readers: the interval holds for physicians in general."
    return DefaultClaim(Claim.NEW_EXAMPLES, physicians, why)


def claim_sentence(
    claim: Claim, physicians: Physicians, *, value: str = "score", item: str = "criterion", of: str = "examples"
) -> str:
    """What the interval of a corrected score (or of another `value`) means; `item` is what is read, `of` what further ones are drawn of."""
    if physicians is Physicians.THESE:
        who, by = "these physicians", ", each counted by how much of the reading so far is theirs"
    else:
        who, by = "physicians in general, of whom these are a sample", ""
    if claim is Claim.BENCHMARK:
        comma = "" if by else ","
        condition = f"if {who}{comma} read every {item} of this benchmark{by}"
    else:
        condition = f"on ever more {of} of the same kind, read by {who}{by}"
    return f"The interval says where the {value} would lie {condition}. It assumes that the number of reads was fixed beforehand."


def anytime_factor(n_units: int) -> float:
    """By how much an interval is wider that holds at all looks at once, however often one looks and whenever one stops; infinite with no units read.

        sqrt( 2 (n rho^2 + 1) / (n rho^2) log( sqrt(n rho^2 + 1) / alpha ) ) / z(1 - alpha/2),     rho^2 = (-2 log alpha + log(1 - 2 log alpha)) / n*

    An asymptotic confidence sequence after n units, narrowest at n* (`TUNED_TO`); what does not shrink with reading makes it too wide. Waudby-Smith,
    Arbour, Sinha, Kennedy and Ramdas 2024, Annals of Statistics 52 (theorem 2.2 and its tuning).
    """
    if not n_units:
        return np.inf
    alpha = 1 - LEVEL
    seen = n_units * (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / TUNED_TO
    return float(np.sqrt(2 * (seen + 1) / seen * np.log(np.sqrt(seen + 1) / alpha)) / ndtri(1 - alpha / 2))


# variance and degrees of freedom by every claim that an interval must not fall below, its own the last; or arrays of them
Widths = tuple[tuple[Any, Any], ...]
Held = tuple[Claim, Physicians]
"""What an interval is to hold for."""


@dataclass(frozen=True)
class Fitted:
    """A value and what it was made of. What follows is computed once, whatever intervals are to hold for."""

    population: estimator.Population
    sample: estimator.Sample
    fit: estimator.Fit

    @property
    def _made_of(self) -> tuple[estimator.Population, estimator.Sample, estimator.Fit]:
        return self.population, self.sample, self.fit

    @cached_property
    def psi(self) -> Floats:
        """Influence of each example (`estimator.influences`)."""
        return estimator.influences(*self._made_of)

    @cached_property
    def variance(self) -> estimator.BenchmarkVariance:
        """Of the score on this benchmark."""
        return estimator.benchmark_variance(*self._made_of)

    @cached_property
    def unseen(self) -> float:
        """Part of the variance for votes not seen (`estimator.unseen_variance`)."""
        return max(0.0, estimator.unseen_variance(self.population, self.sample) - float(self.variance.variance))

    @cached_property
    def between(self) -> tuple[float, float]:
        """How far physicians are apart (`estimator.between_physicians`)."""
        return estimator.between_physicians(*self._made_of)

    @cached_property
    def by_physician(self) -> tuple[Floats, Floats]:
        """What each physician adds, and their loads."""
        return estimator.by_physician(*self._made_of)

    @cached_property
    def adds(self) -> tuple[Floats, Floats]:
        """By example, what its reads add to the score by the draw of its items (the sum of squares is V_A by example); the same without (1 - pi)."""
        z, n = estimator.deviations(*self._made_of), self.population.n_examples
        example, missed = self.population.example[self.sample.rows], np.sqrt(1 - self.sample.probabilities)
        draw, most = (np.bincount(example, of, n).astype(np.float64) for of in (missed * z, z))
        return draw, most

    def psi_on(self, common: Numbers) -> Floats:
        """The influence values of some of the examples, whose mean is the score on these alone.

        An example adds T_i = share_i S + (psi_i - S)/N to the score S. On some examples alone the score is S' = sum T / sum share, and
        psi' = S' + n (T - S' share) / sum share. With all examples that is psi again.
        """
        value, psi = self.fit.value, self.psi
        shares = self.population.shares[common]
        adds = shares * value + (psi[common] - value) / len(psi)
        whole = shares.sum()
        score = adds.sum() / whole if whole > 0 else np.nan
        return np.asarray(score + len(common) * (adds - score * shares) / whole, dtype=np.float64)

    @cached_property
    def psi_on_all(self) -> Floats:
        """Those of all examples."""
        return self.psi_on(np.arange(len(self.psi)))

    def on(self, common: Numbers) -> "Fitted":
        """What was read of some of the examples, the score being that on these alone."""
        population, sample, fit = self._made_of
        if len(common) == population.n_examples:
            return self
        of_examples = np.isin(np.arange(population.n_examples), common)
        items = of_examples[population.example]
        read = items[sample.rows]
        its_reads = read[sample.places]
        part = estimator.Population(
            population.item_weights[items] / population.shares[common].sum(),
            population.undesirable[items],
            population.labels[items],
            (np.cumsum(of_examples) - 1)[population.example[items]],
        )
        part_read = estimator.Sample(
            rows=(np.cumsum(items) - 1)[sample.rows[read]],
            votes=sample.votes[read],
            probabilities=sample.probabilities[read],
            units=np.unique(sample.units[read], return_inverse=True)[1],
            places=(np.cumsum(read) - 1)[sample.places[its_reads]],
            readers=sample.readers[its_reads],
            said=sample.said[its_reads],
            own=None if sample.own is None else sample.own[its_reads],
        )
        fit = estimator.Fit(
            fit.value, fit.predicted[items], fit.columns[read], fit.coefficient_weights[read], fit.factors[read]
        )
        return Fitted(part, part_read, fit)


class Estimate(msgspec.Struct, frozen=True):
    """One kind of score of one model."""

    value: float
    unseen: float  # part of the variance for votes not seen (`estimator.unseen_variance`)
    psi: Floats  # influence of each example (`estimator.influences`)
    widths: Widths  # of the estimate; NaN where the variance cannot be told
    adjusted: Widths = ((np.nan, 0),)  # likewise of the length-adjusted estimate; NaN where there is none
    made: Fitted | None = None  # what it is made of, where that was read

    @property
    def freedom(self) -> float:
        """Degrees of freedom of its interval."""
        return float(self.widths[-1][1])

    def columns(self, kind: str) -> dict[str, float]:
        """The columns of `corrected_scores`."""
        half, error, _ = widest(self.widths)
        return {**_ends(kind, self.value, half), f"{kind}_se": error}

    def adjusted_columns(self, kind: str, loss: float) -> dict[str, float]:
        """Likewise of the score less what length takes from it."""
        half, *_ = widest(self.adjusted)
        return _ends(f"{kind}_adjusted", self.value - loss, half)


def _ends(name: str, value: float, half: float) -> dict[str, float]:
    return {name: value, f"{name}_low": value - half, f"{name}_high": value + half}


def widest(widths: Widths, level: float = LEVEL) -> tuple[Any, Any, Any]:
    """Half the width of the widest interval, with the standard error and the degrees of freedom that it is of; NaN where one is not known."""
    variance, freedom = (np.array(np.broadcast_arrays(*of)) for of in zip(*widths, strict=True))
    error = np.sqrt(variance)
    half = stdtrit(freedom, (1 + level) / 2) * error
    widest_last = np.lexsort((freedom, error, half), axis=0)[-1:]  # NaN comes last
    found = np.stack([np.take_along_axis(of, widest_last, axis=0)[0] for of in (half, error, freedom)])
    found[:, np.isnan(found[0])] = np.nan
    return found[0], found[1], found[2]


def _widths(
    of_benchmark: estimator.BenchmarkVariance,
    unseen: estimator.Value,
    new_examples: tuple[estimator.Value, estimator.Value] | None,
    between: tuple[estimator.Value, estimator.Value] | None,
) -> Widths:
    widths: list[tuple[Any, Any]] = [(of_benchmark.variance + unseen, of_benchmark.freedom)]
    if new_examples is not None:
        variance, n = new_examples
        widths.append((variance + unseen, np.minimum(of_benchmark.freedom, n - 1)))
    if between is not None:
        any_reader = of_benchmark.draw + of_benchmark.any_reader + unseen
        bases = [(any_reader, of_benchmark.freedom), *widths[1:]]
        widths += [estimator.with_strictness(*base, between, of_benchmark.alike) for base in bases]
    return tuple(widths)


def of_reads(made: Fitted, claim: Claim, physicians: Physicians, *, losses: Floats | None = None) -> Estimate:
    """An estimate from what was read, with its variance by the table of `corrected_scores`; `losses`: influences of what length takes from the score."""
    between = made.between if physicians is Physicians.IN_GENERAL else None

    def widths(influences: Floats) -> Widths:
        n = len(influences)
        new_examples = (float(influences.var(ddof=1)) / n, n) if claim is Claim.NEW_EXAMPLES else None
        return _widths(made.variance, made.unseen, new_examples, between)

    estimate = Estimate(made.fit.value, made.unseen, made.psi, widths(made.psi), made=made)
    return estimate if losses is None else msgspec.structs.replace(estimate, adjusted=widths(made.psi - losses))


def no_estimate(n_examples: int) -> Estimate:
    """An estimate without a value."""
    return Estimate(np.nan, np.nan, np.full(n_examples, np.nan), ((np.nan, 0),))


NO_LOSSES = np.array([np.nan])


@dataclass(frozen=True)
class EstimatorInputs:
    """What the estimator takes of one model in one evaluation."""

    model: str
    evaluation: str
    population: estimator.Population  # the items that count
    sample: estimator.Sample  # what was read of them
    example_ids: Numbers  # by number of the example in `population`
    judges: tuple[str, ...]  # whose labels they are
    readers: tuple[str, ...]  # by number of the physician in `sample`, the name
    counts: dict[str, float]  # the columns of `corrected_scores` from n_examples to n_units
    # by example, influences of what length takes from the score; NaN where that is not known
    losses: Floats = field(default_factory=lambda: NO_LOSSES)
    # estimates by claim: scores and differences of one view ask for the same
    cache: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def made(self) -> dict[str, Fitted]:
        """By kind, of physicians only and corrected; the same for all claims, which differ in its variance. Empty where nothing was read."""
        of = {PHYSICIANS: estimator.by_physicians, CORRECTED: estimator.corrected}
        read = self.population, self.sample
        return {kind: Fitted(*read, fit(*read)) for kind, fit in of.items()} if len(self.sample.rows) else {}

    @cached_property
    def judged(self) -> tuple[float, Floats]:
        """What the judges alone say, and the influence of each example."""
        fit = estimator.by_judges(self.population)
        return fit.value, estimator.influences(self.population, None, fit)


def estimator_inputs(
    rubric_data: RubricData,
    *,
    judges: Sequence[str] | None = None,
    settled: bool = False,
    weights: pd.Series | None = None,
    penalty: float = np.nan,
) -> list[EstimatorInputs]:
    """Every model of every evaluation, by name.

    Responses count that `is_scored` and on which every chosen judge (None: all) labelled every item; reads that were made blind of a drawn item. Reads that
    could not assess are counted and not used, as if the item had not been drawn. `settled`: an adjudicated label takes the place of the readers' votes.
    `weights` are by example_id, 0 or more; examples without one are left out. `penalty`: for length (`length_adjusted.penalty_of`).
    """
    chosen = list(dict.fromkeys(rubric_data.judges if judges is None else judges))
    rubric_data = rubric_data.by(chosen)
    every = rubric_data.responses
    of_every, names = cells_of(every.table[["model", "evaluation"]], ["model", "evaluation"])
    enters = every.is_scored.copy()
    for judge in chosen:
        enters &= ~every.any_of(np.isnan(rubric_data.judged[judge].to_numpy()))
    if weights is not None:
        enters &= every.table["example_id"].map(weights).notna().to_numpy()
    n_left_out = np.bincount(of_every[~enters], minlength=len(names))
    entering = rubric_data if enters.all() else rubric_data.where(enters[every.codes])
    responses, of_response = entering.responses, of_every[enters]
    of_responses, items = responses.table, entering.items
    by_item = of_response[responses.codes]
    is_sorted = bool((by_item[1:] >= by_item[:-1]).all())  # as after an import of one model after the other
    order: Any = slice(None) if is_sorted else np.argsort(by_item, kind="stable")
    place_of = np.arange(len(items)) if is_sorted else np.argsort(order)
    codes, example_of = responses.codes[order], np.empty(len(of_response), dtype=np.int64)
    item_weights = (responses.coefficients if weights is None else responses.weighted_coefficients(weights))[order]
    undesirable = items["points"].to_numpy()[order] < 0
    judged = [entering.judged[judge].to_numpy()[order] for judge in chosen]
    reads = first_reads(entering.reads).loc[is_drawn]
    reader, reader_names = pd.factorize(reads["rater"].to_numpy(), sort=True)
    read_columns = {"row": reads["row"].to_numpy(), "met": reads["met"].to_numpy(), "reader": reader}
    voted = votes(entering.reads, settled=settled)
    voted_columns = {str(name): voted[name].to_numpy() for name in voted}
    own = votes(entering.reads).set_index("row")["vote"] if settled else None
    last = np.cumsum(np.bincount(of_response, responses.n_items, len(names)).astype(np.int64))
    example_id, reachable, n_chars = (of_responses[name].to_numpy() for name in ("example_id", "reachable", "n_chars"))
    models: list[EstimatorInputs] = []
    read = (rows_by_code(by_item[columns["row"]], len(names)) for columns in (voted_columns, read_columns))
    for (model, evaluation), mine, of_voted, of_reads in zip(
        names.itertuples(index=False), rows_by_code(of_response, len(names)), *read, strict=True
    ):
        code = len(models)
        rows = slice(last[code - 1] if code else 0, last[code])
        n_items = rows.stop - rows.start
        example_ids, of_example = np.unique(example_id[mine], return_inverse=True)
        labels = np.empty((n_items, len(judged)), dtype=np.result_type(np.float32, *judged), order="F")
        for place, column in enumerate(judged):
            labels[:, place] = column[rows]
        of_model = {name: column[of_voted] for name, column in voted_columns.items()}
        reads_of_model = {name: column[of_reads] for name, column in read_columns.items()}
        read_places = place_of[of_model["row"]] - rows.start
        sample, readers = _sample(read_places, n_items, of_model, reads_of_model, own)
        counts: dict[str, float] = {
            "n_examples": len(example_ids),
            "n_responses": len(mine),
            "n_items": n_items,
            "n_left_out": int(n_left_out[code]),
            "n_unreached": int((~reachable[mine].astype(bool)).sum()) if len(sample.rows) else 0,
            "n_read": len(sample.rows),
            "n_reads": int((~np.isnan(reads_of_model["met"])).sum()),
            "n_readers": sample.n_readers,
            "n_effective_readers": estimator.effective_readers(sample.loads),
            "n_cannot_assess": int(np.isnan(reads_of_model["met"]).sum()),
            "n_units": sample.n_units,
        }
        example_of[mine] = of_example
        population = estimator.Population(item_weights[rows], undesirable[rows], labels, example_of[codes[rows]])
        about = str(model), str(evaluation), population, sample, example_ids
        losses = NO_LOSSES
        if not np.isnan(penalty) and len(mine):
            longer = np.bincount(of_example, steps(n_chars[mine])) / np.bincount(of_example)
            losses = penalty * _influences(longer, population.shares)
        models.append(EstimatorInputs(*about, tuple(chosen), tuple(map(str, reader_names[readers])), counts, losses))
    return models


def _influences(values: Floats, shares: Floats) -> Floats:
    """Of a mean of examples' known values v, weighted by their shares: m + N share (v - m); their mean is m."""
    mean = shares @ values
    return np.asarray(mean + len(shares) * shares * (values - mean), dtype=np.float64)


def _sample(
    places_read: Numbers, n_items: int, voted: dict[str, Any], reads: dict[str, Any], own: pd.Series | None
) -> tuple[estimator.Sample, Numbers]:
    """What was read of a model's items, at these places, and by whom: the codes of `reads`, in order.

    `own`: by row what the readers said, where settled labels take the place of that.
    """
    read, probabilities = voted["row"], voted["inclusion_probability"]
    stands_for = (1 / probabilities).sum() / max(n_items, 1)  # a drawing may be only partly read
    voted_label: Floats = voted["vote"]
    is_settled = np.zeros(len(read), dtype=bool) if own is None else own.reindex(read).to_numpy() != voted_label
    places = np.searchsorted(read, reads["row"])
    used = np.append(read, -1)[places] == reads["row"]
    used[used] = ~np.isnan(reads["met"][used]) | is_settled[places[used]]
    places, met = places[used], reads["met"][used]
    readers, numbers = occurring(reads["reader"][used])
    sample = estimator.Sample(
        rows=places_read,
        votes=voted_label,
        probabilities=(probabilities * stands_for).clip(max=1.0),
        units=pd.factorize(voted["unit"])[0].astype(np.int64),
        places=places,
        readers=readers,
        said=np.where(is_settled[places], voted_label[places], met),
        own=met,
    )
    return sample, numbers


def lacking(inputs: EstimatorInputs, *, n_columns: int, in_general: bool) -> tuple[int, str]:
    """How many items more have to be read, at least, and that in words; 0 and "" where it is enough. `n_columns` numbers are fitted."""
    population, sample = inputs.population, inputs.sample
    signs = {
        name: max(0, min(estimator.MIN_OF_A_SIGN, int(side.sum())) - int(side[sample.rows].sum()))
        for name, side in (("desirable", ~population.undesirable), ("undesirable", population.undesirable))
    }
    examples = max(0, MIN_EXAMPLES_READ - int(np.count_nonzero(np.bincount(population.example[sample.rows]))))
    effective = inputs.counts["n_effective_readers"]
    readers, by_whom = further_readers(sample.n_readers, effective) if in_general else (0, "")
    by_unit = max(1.0, len(sample.rows) / max(sample.n_units, 1))
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
    "length_loss", *(f"{kind}_adjusted{end}" for kind in (JUDGE, CORRECTED) for end in ("", "_low", "_high")),
]  # fmt: skip


def default_claim(inputs: Sequence[EstimatorInputs]) -> DefaultClaim:
    """The widest claim that the reads can carry: new examples, and physicians in general from 3 effective readers of every model that has enough."""
    return widest_claim([model.counts["n_effective_readers"] for model in inputs if not estimates_of(model).n_needed])


def corrected_scores(
    inputs: Sequence[EstimatorInputs],
    *,
    claim: Claim = Claim.BENCHMARK,
    physicians: Physicians = Physicians.THESE,
    kinds: Sequence[str] = KINDS,
) -> pd.DataFrame:
    """Each model's score by judges only, by physicians only, and by judges corrected by physicians, with 95 % intervals.

    The variance of an estimate (`estimator`) with p fitted numbers from k units drawn, N examples and K effective physicians, and the quantile:

        this benchmark, these physicians       V_A                            t(k - p)
        new examples, these physicians         V_B                            t(min(k - p, N - 1))
        this benchmark, physicians             V_G + V_S                      t of both, k - p and K - 1 (Satterthwaite)
        new examples, physicians               V_B + V_S                      t of both, N - 1 and K - 1

    V_A and V_G (with any physicians in the place of these) are `estimator.benchmark_variance`; V_S, at least 0, is what `estimator.between_physicians` has
    above what it would have if all were equally strict. An interval is at least as wide as that of every narrower claim: chance may let few physicians look
    more alike than their reads can be. Where nearly all votes are as predicted, each is widened by what V_A lacks to that of three votes that are not.
    Measured coverage: `tests/benchmarks/coverage.py`.

    Judge-only: on this benchmark its interval has width 0; for new examples it is over examples, t(N - 1). Several judges are a jury: the mean of their
    labels. Probabilities are scaled so that the read items stand for all (sum of 1/pi = number of items).

    Returns:
        `COLUMNS`, one row a model and evaluation. n_left_out: responses without a score, a weight, or a label of every chosen judge on every item;
        n_unreached: those of the others that no drawing could have taken (0 where nothing is read); KIND_se is of this interval; NaN where there is none, and
        of a kind that is not among `kinds` (without physicians only also worth);
        corrected_any_low and _high by `anytime_factor`, worth by `further_reads`; enough, n_needed and needed by `lacking`.
        length_loss: what length takes from the score (`length_adjusted`), below 0 where responses are short; judge_only_adjusted and corrected_adjusted are the
        scores less that. Lengths are known of every response, so nothing of it is estimated: on this benchmark the interval moves and stays as wide; for new
        examples, which have other lengths, V_B is of the psi less the examples' losses. Not clipped; NaN outside of HealthBench.
    """
    rows = []
    for model in inputs:
        estimates = estimates_of(model, claim=claim, physicians=physicians, kinds=tuple(kinds))
        row: dict[str, Any] = {"model": model.model, "evaluation": model.evaluation, **model.counts}
        for kind, estimate in estimates.of_kind.items():
            row |= estimate.columns(kind)
        wider = (row["corrected_high"] - row["corrected"]) * anytime_factor(model.sample.n_units)
        row |= dict(zip(ANYTIME, (row["corrected"] - wider, row["corrected"] + wider), strict=True))
        if not estimates.n_needed and model.judges and PHYSICIANS in kinds:
            if WORTH not in model.cache:
                alone, helped = model.made[PHYSICIANS].fit, model.made[CORRECTED].fit
                model.cache[WORTH] = estimator.further_reads(model.population, model.sample, alone=alone, helped=helped)
            row |= dict(zip(WORTH, model.cache[WORTH], strict=True))
        row |= {"enough": not estimates.n_needed, "n_needed": estimates.n_needed, "needed": estimates.needed}
        row["length_loss"] = loss = float(model.losses.mean())
        for kind in (JUDGE, CORRECTED):
            row |= estimates.of_kind[kind].adjusted_columns(kind, loss)
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


class Estimates(msgspec.Struct, frozen=True):
    """One model's scores, one of each of `KINDS`, without value where there is no judge or too little was read."""

    of_kind: dict[str, Estimate]
    n_needed: int
    needed: str


def estimates_of(
    inputs: EstimatorInputs,
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    kinds: tuple[str, ...] = KINDS,
) -> Estimates:
    """The scores of one model, as `corrected_scores` says; made once for each claim."""
    if (claim, physicians, kinds) in inputs.cache:
        known: Estimates = inputs.cache[claim, physicians, kinds]
        return known
    n = inputs.population.n_examples
    of_kind = dict.fromkeys(KINDS, no_estimate(n))
    if n:
        value, psi = inputs.judged
        widths = [(0.0 if not np.isnan(value) else np.nan, np.inf)] * 2
        if claim is Claim.NEW_EXAMPLES:
            widths = [(float(of.var(ddof=1)) / n if n > 1 else np.nan, n - 1) for of in (psi, psi - inputs.losses)]
        of_kind[JUDGE] = Estimate(value, 0.0, psi, (widths[0],), (widths[1],))
    n_columns = max((made.fit.n_columns for made in inputs.made.values()), default=1)
    n_needed, needed = lacking(inputs, n_columns=n_columns, in_general=physicians is Physicians.IN_GENERAL)
    for kind, made in inputs.made.items():
        if not n_needed and kind in kinds and (kind == PHYSICIANS or inputs.judges):
            of_kind[kind] = of_reads(made, claim, physicians, losses=inputs.losses)
    estimates = inputs.cache[claim, physicians, kinds] = Estimates(of_kind, n_needed, needed)
    return estimates


DIFFERENCE_COLUMNS = [
    "model_1", "model_2", "evaluation", "n_examples", "difference", "low", "high", "se", "df", "sim_low", "sim_high", "p", "p_holm",
]  # fmt: skip


def corrected_differences(
    inputs: Sequence[EstimatorInputs], *, claim: Claim = Claim.NEW_EXAMPLES, physicians: Physicians = Physicians.THESE
) -> pd.DataFrame:
    """The differences of every two models' corrected scores, on the examples that both have answered.

        d_i = psi_i of model 1 - psi_i of model 2,   difference = mean d,   V_B = var(d)/n       over the n examples of both

    Claims and variances are those of `corrected_scores`, of the difference of what each example, or physician, adds; t has the fewer degrees of freedom of
    both models. V_A is by example; its part of the readers is at most that of either score together.

    Returns:
        `DIFFERENCE_COLUMNS`, one row a pair and evaluation, models by name: difference (model 1 less model 2), se and df of this interval, sim_low and
        sim_high (all pairs' intervals hold at once: Bonferroni's t), p (two-sided), p_holm (over all pairs of the evaluation that have a difference). NaN
        where too little was read of either model, or of fewer than two examples.
    """
    return differences_by_claim(inputs, [(claim, physicians)])[claim, physicians]


def differences_by_claim(inputs: Sequence[EstimatorInputs], claims: Sequence[Held]) -> dict[Held, pd.DataFrame]:
    """`corrected_differences` for each claim and physicians: what they share is computed once."""
    models: dict[str, list[ModelEstimate]] = {}
    for model in inputs:
        of = {held: estimates_of(model, claim=held[0], physicians=held[1]).of_kind[CORRECTED] for held in claims}
        models.setdefault(model.evaluation, []).append(ModelEstimate(model, of))
    found = [paired_differences(of_one, claims) for of_one in models.values()]
    empty = pd.DataFrame(columns=DIFFERENCE_COLUMNS)
    return {
        held: pd.concat([tables[held] for tables in found], ignore_index=True) if found else empty for held in claims
    }


def rank_intervals(differences: pd.DataFrame) -> pd.DataFrame:
    """Which ranks each model may have, 1 the best, by `corrected_differences`: at its level all models' ranks lie in these at once.

    From 1 + the models that are surely better (sim_low > 0) to n_models - those that are surely worse (Mogstad, Romano, Shaikh and Wilhelm 2024, Review of
    Economic Studies 91). One row a model and evaluation, by name; NaN for a model of which no difference is known.
    """
    n_worse, n_better = differences["sim_low"].gt(0), differences["sim_high"].lt(0)
    rows = differences.assign(known=differences["difference"].notna(), n_worse=n_worse, n_better=n_better)
    names = {"model_1": "model_2", "model_2": "model_1", "n_worse": "n_better", "n_better": "n_worse"}
    keys = ["evaluation", "model"]
    sides = pd.concat([rows, rows.rename(columns=names)]).rename(columns={"model_1": "model"})
    counts = sides.groupby(keys, sort=True)[["known", "n_worse", "n_better"]].sum().reset_index()
    is_known = counts["known"].gt(0)
    n_models = is_known.groupby(counts["evaluation"]).transform("sum")
    low, high = (1 + counts["n_better"]).where(is_known), (n_models - counts["n_worse"]).where(is_known)
    return counts[keys].assign(n_models=n_models, rank_low=low, rank_high=high)


@dataclass(frozen=True)
class ModelEstimate:
    """One model, as pairs take it: its estimate by what it is to hold for; `no_estimate` where too little was read."""

    inputs: EstimatorInputs
    by_claim: Mapping[Held, Estimate]

    @property
    def made(self) -> Fitted | None:
        """What its estimates are made of; None: there is none."""
        return next((estimate.made for estimate in self.by_claim.values() if estimate.made is not None), None)


def paired_differences(models: Sequence[ModelEstimate], claims: Sequence[Held]) -> dict[Held, pd.DataFrame]:
    """The rows of `corrected_differences` for these models of one evaluation, by what they are to hold for."""
    first, second = np.triu_indices(len(models), 1)
    names = np.array([model.inputs.model for model in models], dtype=object)
    pairs = _pairs(models, first, second)
    keys = {"model_1": names[first].tolist(), "model_2": names[second].tolist()}
    table = pd.DataFrame(keys | {"evaluation": [model.inputs.evaluation for model in models[:1]] * len(first)})
    table["n_examples"] = n = pairs["n"].astype(np.int64)
    found = {}
    for claim, physicians in claims:
        freedom = np.array([model.by_claim[claim, physicians].freedom for model in models])
        known = (freedom[first] > 0) & (freedom[second] > 0) & (n > 1)
        of = {name: column[known] for name, column in pairs.items()}
        variance = estimator.BenchmarkVariance(*(of[name] for name in VARIANCE))
        new_examples = (of["var"], of["n"]) if claim is Claim.NEW_EXAMPLES else None
        between = (of["apart"], of["degrees"]) if physicians is Physicians.IN_GENERAL else None
        widths = _widths(variance, of["unseen"], new_examples, between)
        difference, (half, error, degrees) = of["mean"], widest(widths)
        at_once, *_ = widest(widths, 1 - (1 - LEVEL) / max(1, known.sum()))
        columns = {"difference": difference, "low": difference - half, "high": difference + half, "se": error}
        columns |= {"df": degrees, "sim_low": difference - at_once, "sim_high": difference + at_once}
        columns["p"] = _p(difference, error, degrees)
        columns["p_holm"] = adjusted(columns["p"], holm)
        filled = np.full((len(columns), len(table)), np.nan)
        filled[:, known] = list(columns.values())
        found[claim, physicians] = table.assign(**dict(zip(columns, filled, strict=True)))
    return found


def _p(difference: Floats, error: Floats, degrees: Floats) -> Floats:
    """Two-sided, of no difference. Without an error (all is read), what rounding leaves of a difference is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(degrees, -np.abs(difference) / error)
    return np.where(error < ROUNDING, np.where(np.abs(difference) < ROUNDING, 1.0, 0.0), p)


VARIANCE = ("draw", "readers", "any_reader", "most", "alike", "freedom")


def _pairs(models: Sequence[ModelEstimate], first: Numbers, second: Numbers) -> dict[str, Floats]:
    """By pair, how many examples both have answered (n), and where both have an estimate what its differences are made of."""
    pairs = {
        name: np.full(len(first), np.nan) for name in ("n", "mean", "var", *VARIANCE, "unseen", "apart", "degrees")
    }
    for place, one in enumerate(models):
        of_place, ids = np.flatnonzero(first == place), one.inputs.example_ids
        others = second[of_place]
        alike = np.array([np.array_equal(ids, models[other].inputs.example_ids) for other in others], dtype=bool)
        at_once = alike & np.array([models[other].made is not None for other in others], dtype=bool)
        for rows in (of_place[at_once], *of_place[~at_once, None]):
            if len(rows):
                found = _paired([one, *(models[other] for other in second[rows])])
                for name, values in found.items():
                    pairs[name][rows] = values
    return pairs


def _paired(models: Sequence[ModelEstimate]) -> dict[str, Any]:
    """The first with each of the others, which have all answered the same examples, or with the one other."""
    one, other = models[:2]
    of_both = one.inputs.example_ids, other.inputs.example_ids
    common, *places = np.intersect1d(*of_both, assume_unique=True, return_indices=True)
    n = len(common)
    made = [model.made for model in models if model.made is not None]
    if len(made) < len(models) or n < 2:  # noqa: PLR2004 - one example has no spread
        return {"n": n}
    at = [places[0], *[places[1]] * (len(made) - 1)]
    alike = all(len(fitted.psi) == n for fitted in made)
    psi = [fitted.psi_on_all if alike else fitted.psi_on(its) for fitted, its in zip(made, at, strict=True)]
    apart = psi[0] - np.array(psi[1:])
    mine, *theirs = (fitted.on(its) for fitted, its in zip(made, at, strict=True))
    draw, most = (
        ((mine.adds[of] - np.array([its.adds[of] for its in theirs])) ** 2).sum(axis=1) * n / (n - 1) for of in (0, 1)
    )
    room = np.maximum(0.0, most - draw)
    of_each = {name: np.array([getattr(fitted.variance, name) for fitted in (mine, *theirs)]) for name in VARIANCE}
    readers, any_reader, alike = (of_each[name][0] + of_each[name][1:] for name in ("readers", "any_reader", "alike"))
    freedom = np.minimum(of_each["freedom"][0], of_each["freedom"][1:])
    both = draw, np.minimum(room, readers), np.minimum(room, any_reader), most, alike, freedom
    found = {"n": n, "mean": apart.mean(axis=1), "var": apart.var(axis=1, ddof=1) / n}
    found["unseen"] = made[0].unseen + np.array([fitted.unseen for fitted in made[1:]])
    names = sorted({name for model in models for name in model.inputs.readers})
    adds, loads, reads = np.zeros((3, len(models), len(names)))
    for row, (model, fitted) in enumerate(zip(models, (mine, *theirs), strict=True)):
        reads[row, np.searchsorted(names, model.inputs.readers)] = 1
        its_adds, its_loads = fitted.by_physician
        its_own = np.searchsorted(names, model.inputs.readers[: len(its_adds)])
        adds[row, its_own], loads[row, its_own] = its_adds, its_loads
    of_pair = (reads[0] + reads[1:]) > 0
    found["apart"], found["degrees"] = estimator.spread(adds[0] - adds[1:], (loads[0] + loads[1:]) / 2, of_pair)
    return found | dict(zip(VARIANCE, both, strict=True))

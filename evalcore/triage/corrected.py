"""What physicians read of drawn responses: triage by them alone, and by the judge corrected by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import MIN_EXAMPLES_READ, MIN_READ, Fitted, claim_sentence, further_readers, of_reads
from evalcore.stats import estimator
from evalcore.stats.arrays import Floats, Numbers, Truths
from evalcore.stats.estimator import Population, Sample, effective_readers, reading_loads
from evalcore.stats.intervals import clustered_means, grouped_shares, wilson
from evalcore.stats.wording import counted
from evalcore.study.schema import Claim, Physicians
from evalcore.triage import rates
from evalcore.triage.data import LETTERS, N_LEVELS, TriageData, case_keys, distributions
from evalcore.triage.harm import HARM_COLUMNS, USUAL_WEIGHTS, Weights
from evalcore.triage.predictions import levels_by
from evalcore.triage.reads import VOTES, drawn_reads, drawn_votes, response_levels

_MIN_IN_STRATUM = 10
"""With fewer reads of one level of the judge, what physicians say there is mixed with the judge's own level."""


@dataclass(frozen=True)
class Held:
    """What the intervals of corrected numbers are to hold for."""

    claim: Claim = Claim.NEW_EXAMPLES
    physicians: Physicians = Physicians.THESE
    settled: bool = False
    """An adjudicated level takes the place of the readers' votes."""

    def words(self, value: str = "share") -> str:
        """What the interval of a corrected share means, or of another value."""
        return claim_sentence(self.claim, self.physicians, value=value, item="response with a text", of="cases")


USUAL = Held()


@dataclass(frozen=True)
class Estimand:
    """A share (or a cost) of one model in one format: an average over cases, of each of which the judge says `by_case`.

    The population is the responses read, one by one, then of each case all others together.
    """

    by_case: Floats
    population: Population
    sample: Sample
    predicted: Floats
    """By item of the population, what the judge's level makes of it."""
    leverage: Floats
    """By response read, how far that follows its own vote."""

    @property
    def corrected(self) -> estimator.Fit:
        """The judge's levels, corrected: sum a m + sum over the read ones w (y - m), w = (a/pi) / sum (a/pi).

        The second sum moves every prediction alike, so that the residuals that are left have the mean 0.
        """
        rows = self.sample.rows
        weight = self.population.item_weights[rows] / self.sample.probabilities
        weight = weight / weight.sum()
        moved = self.predicted + float((weight * (self.sample.votes - self.predicted[rows])).sum())
        leverage = (self.leverage + weight)[:, None]
        value = estimator.total(self.population, self.sample, moved)
        return estimator.Fit(value, moved, leverage, np.ones_like(leverage), np.ones(len(rows)))


@dataclass(frozen=True)
class Answers:
    """One model's responses in one format to clear cases with a level by the judge; each counts 1 / those of its case.

    First by case, then by response drawn and read, then by read (two physicians: two reads of a response).
    """

    model: str
    format: str
    cases: Numbers  # rows of `TriageData.cases`, ascending
    gold: Numbers  # 0..3
    judged: Floats  # by level, the share that the judge says; a boundary is half of each
    rest: Floats  # the same of responses that were not read; a boundary is the more severe
    read: Numbers  # the case, a place in `gold`
    once: Floats  # its weight
    level: Numbers  # the judge's, 0..3; of a boundary the more severe
    votes: Floats  # physicians' mean vote by level
    probabilities: Floats  # that it was drawn
    places: Numbers  # the response, a place in `read`
    readers: Numbers  # the physician's number
    said: Floats  # by level, as `own`, or as an adjudicator has settled it
    own: Floats
    n_responses: int
    n_no_level: int  # left out
    n_unreached: int  # with a level and without a text: nobody can draw them

    @property
    def n_effective_readers(self) -> float:
        """As in `estimator.effective_readers`."""
        return float(effective_readers(reading_loads(self.probabilities, self.places, self.readers)))

    def where(self, kept: Truths) -> "Answers":
        """The responses to these cases alone (truth values, one a case); the three counts stay those of all."""
        mine = kept[self.read]
        given = mine[self.places]
        return replace(
            self,
            **{name: getattr(self, name)[kept] for name in ("cases", "gold", "judged", "rest")},
            read=(np.cumsum(kept) - 1)[self.read[mine]],
            **{name: getattr(self, name)[mine] for name in ("once", "level", "votes", "probabilities")},
            places=(np.cumsum(mine) - 1)[self.places[given]],
            **{name: getattr(self, name)[given] for name in ("readers", "said", "own")},
        )

    @cached_property
    def by_level(self) -> tuple[Floats, Floats]:
        """What physicians say where the judge says a level, m(level | judge's level), and how far a read enters it.

            m_j = (sum_s in j  v / pi) / (sum_s in j  1 / pi)           with 10 reads of the judge's level j
            m_j = (n_j m_j + (10 - n_j) e_j) / 10                       with n_j fewer; e_j: all on the judge's own level

        Gives the judge's levels x physicians' levels, rows add up to 1; and the leverage of each response read.
        """
        weight, own = 1 / self.probabilities, np.eye(N_LEVELS)
        n, mass = np.bincount(self.level, minlength=N_LEVELS), np.bincount(self.level, weight, N_LEVELS)
        sums = np.stack([np.bincount(self.level, weight * vote, N_LEVELS) for vote in self.votes.T], axis=1)
        said = np.divide(sums, mass[:, None], out=own.copy(), where=mass[:, None] > 0)
        trust = np.minimum(n / _MIN_IN_STRATUM, 1.0)
        leverage = (trust / np.where(mass > 0, mass, 1.0))[self.level] * weight
        return trust[:, None] * said + (1 - trust[:, None]) * own, leverage

    def estimand(self, counts: Floats) -> Estimand:
        """One share; `counts` (gold x level): 1 counts, 0 does not (or a cost), NaN: not about that gold."""
        means, leverage = self.by_level
        kept = ~np.isnan(counts[:, 0])[self.gold]
        n = int(kept.sum())
        about = self if kept.all() else self.where(kept)
        rows, of_read = counts[about.gold], counts[about.gold[about.read]]
        left = about.rest.sum(axis=1)
        of_rest = (about.rest @ means * rows).sum(axis=1)
        once, chance = about.once / max(n, 1), about.probabilities
        population = Population(
            item_weights=np.concatenate([once, left / max(n, 1)]),
            undesirable=np.zeros(len(once) + n, dtype=bool),
            labels=np.empty((len(once) + n, 0)),
            example=np.concatenate([about.read, np.arange(n)]),
        )
        sample = Sample(
            rows=np.arange(len(once)),
            votes=(about.votes * of_read).sum(axis=1),
            probabilities=(chance * float((once / chance).sum())).clip(max=1.0),
            units=pd.factorize(about.read)[0].astype(np.int64),
            places=about.places,
            readers=np.unique(about.readers, return_inverse=True)[1].astype(np.int64),
            said=(about.said * of_read[about.places]).sum(axis=1),
            own=(about.own * of_read[about.places]).sum(axis=1),
        )
        of_left = np.divide(of_rest, left, out=np.zeros(n), where=left > 0)
        predicted = np.concatenate([(means[about.level] * of_read).sum(axis=1), of_left])
        by_case = (about.judged * rows).sum(axis=1)
        return Estimand(by_case, population, sample, predicted, leverage[kept[self.read]])


def answered(
    triage_data: TriageData, judges: Mapping[str, str], claim: Claim = Claim.NEW_EXAMPLES, *, settled: bool = True
) -> list[Answers]:
    """The responses of every model to clear cases with a level; for these cases alone, with a text."""
    samples = triage_data.samples
    n_rows = max(len(triage_data.cases), 1)
    clear = triage_data.is_clear()
    row, has_text = samples["row"].to_numpy(dtype=np.int64), samples["has_text"].to_numpy(dtype=bool)
    formats, models = ([str(name) for name in samples[name].cat.categories] for name in ("format", "model"))
    kind = samples["format"].cat.codes.to_numpy().astype(np.int64) * len(models) + samples["model"].cat.codes.to_numpy()
    votes = drawn_votes(triage_data, settled=settled)
    vote_of = np.full(len(samples), -1, dtype=np.int64)
    vote_of[votes["sample"].to_numpy(dtype=np.int64)] = np.arange(len(votes))
    reads = drawn_reads(triage_data, settled=settled)
    own = drawn_reads(triage_data, settled=False)
    readers = pd.factorize(reads["rater"], sort=True)[0].astype(np.int64)
    levels = (table["level"].to_numpy(dtype=float) for table in (reads, own))
    said_by, own_by = (distributions(np.arange(len(reads)), level, len(reads)) for level in levels)
    level = levels_by(triage_data, judges)
    looked = np.flatnonzero(clear[row] & ~np.isnan(level))
    places = looked[level[looked] > 0]
    no_level, unreached = (
        np.bincount(kind[these], minlength=len(formats) * len(models))
        for these in (looked[level[looked] == 0], places[~has_text[places]])
    )
    places = places[has_text[places]] if claim is Claim.BENCHMARK else places
    keys, case = np.unique(kind[places] * n_rows + row[places], return_inverse=True)
    of_kind, cases = np.divmod(keys, n_rows)
    times = np.bincount(case, minlength=len(keys))
    once = 1 / times[case]
    low, high = (letter(level[places]).astype(np.int64) - 1 for letter in (np.floor, np.ceil))
    is_read = vote_of[places] >= 0
    read = places[is_read]
    vote = votes.iloc[vote_of[read]]
    place_of = np.full(len(samples), -1, dtype=np.int64)
    place_of[read] = np.arange(len(read))
    item = place_of[reads["sample"].to_numpy(dtype=np.int64)]
    given = item >= 0
    whole = Answers(
        model="",
        format="",
        cases=cases,
        gold=triage_data.cases["gold"].to_numpy(dtype=float)[cases].astype(np.int64) - 1,
        judged=(_shares(case, low, once, len(keys)) + _shares(case, high, once, len(keys))) / 2,
        rest=_shares(case[~is_read], high[~is_read], once[~is_read], len(keys)),
        read=case[is_read],
        once=once[is_read],
        level=high[is_read],
        votes=vote[list(VOTES)].to_numpy(dtype=float),
        probabilities=vote["inclusion_probability"].to_numpy(dtype=float),
        places=item[given],
        readers=readers[given],
        said=said_by[given],
        own=own_by[given],
        n_responses=0,
        n_no_level=0,
        n_unreached=0,
    )
    found: list[Answers] = []
    for number, (word, model) in enumerate(product(formats, models)):
        mine = of_kind == number
        if mine.any() or no_level[number]:
            n = {"n_responses": times[mine].sum(), "n_no_level": no_level[number], "n_unreached": unreached[number]}
            counts: dict[str, Any] = {name: int(count) for name, count in n.items()}
            found.append(replace(whole.where(mine), model=model, format=word, **counts))
    return found


def _shares(case: Numbers, level: Numbers, weight: Floats, n: int) -> Floats:
    return np.bincount(case * N_LEVELS + level, weight, n * N_LEVELS).astype(np.float64).reshape(n, N_LEVELS)


def on_same_answers(known: Sequence[Answers]) -> list[Answers]:
    """Each model on the cases that all models of its format have answered."""
    same = {}
    for word in dict.fromkeys(about.format for about in known):
        of_format = [about.cases for about in known if about.format == word and len(about.cases)]
        same[word] = reduce(np.intersect1d, of_format, of_format[0]) if of_format else np.zeros(0, dtype=np.int64)
    return [about.where(np.isin(about.cases, same[about.format])) for about in known]


# ---------------------------------------------------------------- corrected

JUDGE, PHYSICIANS, CORRECTED = "judge_only", "physicians_only", "corrected"
BOUNDS = ("", "_low", "_high")
_OF_RESPONSES = ("n_responses", "n_unreached", "n_no_level", "n_effective_readers")
COUNTS = ("n_cases", *_OF_RESPONSES, "n_read", "n_cases_read", "n_readers", "enough", "n_needed", "needed")
_OF_READS = [kind + bound for kind in (PHYSICIANS, CORRECTED) for bound in BOUNDS]
ALL_COLUMNS = (*(JUDGE + bound for bound in BOUNDS), *_OF_READS, *COUNTS)
_GOLD, _LEVEL = np.indices((N_LEVELS, N_LEVELS))
MEASURES: Mapping[rates.Measure, Floats] = {
    measure: np.where(rule.base, rule.hits.astype(float), np.nan) for measure, rule in rates.RULES.items()
}
"""Of each rate, gold x level: 1 where it counts, 0 where it does not, NaN where it is not about that gold."""


def corrected_cells(known: Sequence[Answers], held: Held = USUAL) -> pd.DataFrame:
    """Confusion matrices by the judge alone, by physicians alone, and by the judge corrected by physicians.

    Of the responses to the cases of one gold, with a = 1 / (cases x responses of the case), w = (a/pi) / sum (a/pi)
    over the read ones, f what the judge says, y the mean vote of its readers, and m what physicians say where the judge
    says this level, from all that was read of the model in this format (`Answers.by_level`):

        judge only         sum a f                      Wilson, a case once
        physicians only    sum w y                      Hajek
        corrected          sum a m + sum w (y - m)      GREG, as in `estimator`

    The variance is over cases, which are drawn together: `of_reads`, whose claims these are. Reads count as in
    `reads.drawn_votes`, of responses in which the judge found a level. Responses without a text (n_unreached) enter by
    the judge's level for further cases, as if physicians would say the same of them; for these cases alone they are
    left out. Where everything was read, an interval for these cases alone has no width.

    Gives sixteen rows a model and format: n (share x n_gold: an estimate), share (corrected; the four of a row are
    `on_simplex`), low, high; and `ALL_COLUMNS`, each share as it was estimated: corrected may lie a little outside [0,
    1]. enough: 30 responses read, and 10 cases of this gold with a read; for physicians in general by 3 effective
    readers.
    """
    rows: list[dict[str, Any]] = []
    for about in known:
        for gold in range(N_LEVELS):
            which = f"with the gold {LETTERS[gold].value}"
            masks = [np.where(gold == _GOLD, place == _LEVEL, np.nan) for place in range(N_LEVELS)]
            row = [_estimated(about, mask, which, held) for mask in masks]
            shares = on_simplex(np.array([cell[CORRECTED] for cell in row]))
            for place, (cell, share) in enumerate(zip(row, shares, strict=True)):
                low, high = min(cell[f"{CORRECTED}_low"], share), max(cell[f"{CORRECTED}_high"], share)
                n_gold = cell["n_cases"]
                of_cell = {"gold": gold + 1.0, "predicted": place + 1.0, "n": share * n_gold, "n_gold": n_gold}
                rows.append(cell | of_cell | {"share": share, "low": np.clip(low, 0, 1), "high": np.clip(high, 0, 1)})
    columns = [*rates.KEYS, "gold", "predicted", "n", "n_gold", "share", "low", "high", *ALL_COLUMNS]
    return pd.DataFrame(rows, columns=columns)


def corrected_rates(known: Sequence[Answers], held: Held = USUAL) -> pd.DataFrame:
    """The measures of `rates.rates` by the formulas of `corrected_cells`, over the cases that each is about."""
    rows = [
        {"measure": measure.value} | _estimated(about, counts, rates.RULES[measure].of.which, held)
        for about in known
        for measure, counts in MEASURES.items()
    ]
    table = pd.DataFrame(rows, columns=[*rates.KEYS, "measure", *ALL_COLUMNS])
    return table.astype({"measure": pd.CategoricalDtype([measure.value for measure in MEASURES])})


def _estimated(about: Answers, counts: Floats, which: str, held: Held) -> dict[str, Any]:
    share = about.estimand(counts)
    found = {"model": about.model, "format": about.format} | made_from(about, share, which, held.physicians)
    by_case = share.by_case
    low, high = wilson(by_case.sum(), len(by_case))
    judged = float(by_case.mean()) if len(by_case) else np.nan
    found |= {JUDGE: judged, f"{JUDGE}_low": float(low), f"{JUDGE}_high": float(high)}
    found |= dict.fromkeys(_OF_READS, np.nan)
    if found["enough"]:
        for kind in (PHYSICIANS, CORRECTED):
            fit = share.corrected if kind == CORRECTED else estimator.by_physicians(share.population, share.sample)
            made = Fitted(share.population, share.sample, fit)
            columns = of_reads(made, held.claim, held.physicians).columns(kind)
            found |= {kind + bound: columns[kind + bound] for bound in BOUNDS}
    return found


def made_from(about: Answers, share: Estimand, which: str, physicians: Physicians) -> dict[str, Any]:
    """The columns `COUNTS`; `which` names the cases that the share is of."""
    n_read, n_cases_read = len(about.read), share.sample.n_units
    of_cases = max(0, MIN_EXAMPLES_READ - n_cases_read)
    by_others, by_whom = 0, ""
    if physicians is Physicians.IN_GENERAL:
        by_others, by_whom = further_readers(share.sample.n_readers, about.n_effective_readers)
    n_needed = max(MIN_READ - n_read, of_cases, by_others, 0)
    needed = [f"{counted(n_needed, 'more response')} to be read"] if n_needed else []
    if of_cases:
        cases = "another case" if of_cases == 1 else "as many other cases"
        needed.append(f"{of_cases} of them to {cases} {which}".rstrip())
    if by_others:
        needed.append(by_whom)
    made = {name: getattr(about, name) for name in _OF_RESPONSES}
    made |= {"n_cases": share.population.n_examples, "n_cases_read": n_cases_read, "n_read": len(share.sample.rows)}
    made |= {"n_readers": share.sample.n_readers, "enough": n_needed == 0, "n_needed": n_needed}
    return made | {"needed": ", ".join(needed)}


def on_simplex(shares: Floats) -> Floats:
    """The nearest four shares that are nowhere below 0 and add up to 1, as do those that come.

    >>> on_simplex(np.array([0.5, 0.55, -0.05, 0.0])).round(3).tolist()
    [0.475, 0.525, 0.0, 0.0]
    """
    if np.isnan(shares).any():
        return shares
    ordered = np.sort(shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    n_kept = int(np.flatnonzero(ordered > above)[-1])
    return np.asarray(np.maximum(shares - above[n_kept], 0.0))


_WAYS = {
    "n_under": Weights(1, 0, steps=False),
    "n_over": Weights(0, 1, steps=False),
    "steps_under": Weights(1, 0),
    "steps_over": Weights(0, 1),
}


def corrected_harm(known: Sequence[Answers], weights: Weights, held: Held = USUAL) -> pd.DataFrame:
    """What an answer costs on average, by the judge on all responses and physicians on those that they have read.

    By the formulas of `corrected_cells`, where y is what a response costs. Measured coverage of the 95 % interval,
    weights 5 and 1, 120 and 400 cases of which 30 to 50 % were read, judge accuracy .65 and .9: .945 to .985, for
    either claim. Gives the columns of `harm.expected_harm` (n_under to steps_over estimated; reason: what is still to
    be read) and `COUNTS`.
    """
    rows: list[dict[str, Any]] = []
    largest = max(weights.under, weights.over) or 1.0
    for about in known:
        share = about.estimand(weights.costs(rates.STEP) / largest)
        made = made_from(about, share, "", held.physicians)
        n = made["n_cases"]
        row = dict.fromkeys(HARM_COLUMNS, np.nan) | {"model": about.model, "format": about.format, "n": n}
        if made["enough"]:
            ways = {}
            for name, of_way in _WAYS.items():
                estimate = about.estimand(of_way.costs(rates.STEP)).corrected.value
                ways[name] = max(0.0, estimate)  # it may lie a little below 0, what it stands for cannot
            of = "steps" if weights.steps else "n"
            row |= {name: value * n for name, value in ways.items()}
            row["of_under"] = weights.under * ways[f"{of}_under"]
            row["of_over"] = weights.over * ways[f"{of}_over"]
            row["harm"] = row["of_under"] + row["of_over"]
            made_of = of_reads(Fitted(share.population, share.sample, share.corrected), held.claim, held.physicians)
            low, high = (float(made_of.columns("")[bound]) * largest for bound in ("_low", "_high"))
            row["low"] = max(min(low, row["harm"]), 0.0)
            row["high"] = max(min(high, weights.highest), row["harm"])
        rows.append(row | made | {"reason": made["needed"]})
    return pd.DataFrame(rows, columns=[*HARM_COLUMNS, *COUNTS])


# ---------------------------------------------------------------- by physicians alone
#
# Counted are responses to clear cases: a case can enter more than once, so every interval here is clustered by case.
# Each response is weighted by 1 / (its probability of being drawn x the responses of its case), so that each case
# counts once, as above; counts are of what was read. What somebody chose to read, or read with the judge in view, is in
# no share.

NOT_READ = "no response to a clear case was drawn and read blind"
_BASES: Mapping[rates.Base, rates.Base] = {
    of: rates.Base(f"of the one response {one}".rstrip(), many, f"no response to {which} was drawn and read blind")
    for of, one, many, which in (
        (rates.OF_ALL, "", "of all {} responses", "a clear case"),
        (rates.OF_EMERGENCIES, "to an emergency", "of {} responses to emergencies", "an emergency"),
        (rates.BELOW_D, "to a case below D", "of {} responses to cases below D", "a case below D"),
        (rates.ABOVE_A, "to a case above A", "of {} responses to cases above A", "a case above A"),
    )
}


@dataclass(frozen=True)
class _Items:
    """Responses to clear cases with a level by physicians; not drawn: the level that stands."""

    names: pd.DataFrame
    number: Numbers  # row of `names`: a model and format
    row: Numbers  # the case
    gold: Numbers  # 0..3
    votes: Floats  # by level; adds up to 1
    weights: Floats  # in units of a case

    def where(self, kept: Truths) -> "_Items":
        columns = ("number", "row", "gold", "votes", "weights")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})

    def shares(self, hits: Floats, group: Numbers, n_groups: int) -> pd.DataFrame:
        """Weighted shares, clustered by case, of as many responses as the weights are worth: (sum w)^2 / sum w^2."""
        whole, squares = (np.bincount(group, power, n_groups) for power in (self.weights, self.weights**2))
        sizes = self.weights * (whole / np.where(squares > 0, squares, 1))[group]
        return grouped_shares(hits * sizes, self.row, group, n_groups, sizes=sizes)


def physicians_cells(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """Confusion matrices: of responses that physicians have read, the level they give it, by the case's gold.

    n counts responses (in halves where a level lies between two or readers differ); share is weighted, NaN where
    nothing of the row was read; n_volunteered: beside them, those that somebody chose or that were read with the judge
    in view.
    """
    drawn, others = _items(triage_data, settled=settled)
    names, n_groups = drawn.names, len(drawn.names) * N_LEVELS
    group, of_others = (part.number * N_LEVELS + part.gold for part in (drawn, others))
    columns: dict[str, list[Any]] = {name: [] for name in ("n", "n_gold", "share", "low", "high", "n_volunteered")}
    for vote, other in zip(drawn.votes.T, others.votes.T, strict=True):
        shares = drawn.shares(vote, group, n_groups)
        for name in ("share", "low", "high"):
            columns[name].append(shares[name].to_numpy(dtype=float))
        columns["n"].append(np.bincount(group, vote, n_groups).astype(float))
        columns["n_gold"].append(np.bincount(group, minlength=n_groups).astype(float))
        columns["n_volunteered"].append(np.bincount(of_others, other, n_groups).astype(float))
    made = {name: np.tile(of.ravel() + 1.0, len(names)) for name, of in (("gold", _GOLD), ("predicted", _LEVEL))}
    made |= {name: np.stack(values, axis=1).ravel() for name, values in columns.items()}
    return rates.repeated(names, rates.N_CELLS)[[*rates.KEYS]].assign(**made)


def physicians_rates(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """The measures of `rates.rates` by what physicians read; k and n count responses, value is weighted."""
    items, _ = _items(triage_data, settled=settled)
    n_names = len(items.names)
    k, n, value, low, high = np.full((5, n_names, len(rates.RULES)), np.nan)
    for place, rule in enumerate(rates.RULES.values()):
        part = items.where(rule.base[items.gold, 0])
        hits = (part.votes * rule.hits[part.gold]).sum(axis=1)
        shares = part.shares(hits, part.number, n_names)
        value[:, place], low[:, place], high[:, place] = (shares[name] for name in ("share", "low", "high"))
        k[:, place] = np.bincount(part.number, hits, n_names)
        n[:, place] = np.bincount(part.number, minlength=n_names)
    bases = [_BASES[rule.of] for rule in rates.RULES.values()]
    made = rates.as_rates(items.names, list(rates.RULES), k, n, bases, bounds=(low, high))
    return made.assign(value=value.ravel())


def physicians_summary(triage_data: TriageData, *, settled: bool = False) -> pd.DataFrame:
    """Weighted coefficients of whole matrices: `rates.summary`, of n responses, leaving out a case at a time."""
    items, _ = _items(triage_data, settled=settled)
    each = np.zeros((len(items.gold), N_LEVELS, N_LEVELS))
    each[np.arange(len(items.gold)), items.gold] = items.votes * items.weights[:, None]
    found = rates.clustered_summary(items.names, items.number, items.row, each)
    found = found.assign(n=np.bincount(items.number, minlength=len(items.names)))
    nothing = found["n"].eq(0)
    return found.assign(**{f"{name}_reason": found[f"{name}_reason"].mask(nothing, NOT_READ) for name in rates.SCORES})


def physicians_harm(
    triage_data: TriageData, weights: Weights = USUAL_WEIGHTS, *, settled: bool = False
) -> pd.DataFrame:
    """As `harm.expected_harm` by what physicians read, counting responses: weighted, t clustered by case."""
    items, _ = _items(triage_data, settled=settled)
    n_names = len(items.names)

    def cost(weights: Weights) -> Floats:
        return np.asarray((items.votes * weights.costs(rates.STEP[items.gold])).sum(axis=1), dtype=np.float64)

    def mean(values: Floats) -> pd.DataFrame:
        return clustered_means(items.number, items.row, values, n_cells=n_names, weights=items.weights)

    whole = mean(cost(weights))
    few, same = whole["n_clusters"].to_numpy() < rates.MIN_CASES, whole["low"].isna().to_numpy()
    n = whole["n_values"].to_numpy(dtype=float)
    found = items.names.assign(n=whole["n_values"], harm=whole["mean"], low=whole["low"].clip(lower=0).mask(few))
    found["high"] = whole["high"].clip(upper=weights.highest).mask(few)
    found["of_under"] = mean(cost(replace(weights, over=0.0)))["mean"].to_numpy()
    found["of_over"] = mean(cost(replace(weights, under=0.0)))["mean"].to_numpy()
    for name, of_way in _WAYS.items():
        found[name] = np.bincount(items.number, cost(of_way), n_names)
    why = [NOT_READ, rates.TOO_FEW, rates.NO_SPREAD]
    return found.assign(reason=np.select([n == 0, few, same], why, "").astype(object))[HARM_COLUMNS]


def _items(triage_data: TriageData, *, settled: bool) -> tuple[_Items, _Items]:
    """Those that were drawn, and those that were not."""
    samples = triage_data.samples
    drawn = drawn_votes(triage_data, settled=settled)
    other = response_levels(triage_data)
    other = other.loc[~other["is_drawn"] & other["level"].notna(), ["sample", "row", "level"]].reset_index(drop=True)
    shares = distributions(np.arange(len(other)), other["level"].to_numpy(dtype=float), len(other))
    other = other.assign(**dict(zip(VOTES, shares.T, strict=True)))
    together = pd.concat([drawn.assign(of_drawn=True), other.assign(of_drawn=False)], ignore_index=True)
    together = together.loc[triage_data.is_clear()[together["row"].to_numpy(dtype=np.int64)]]
    row = together["row"].to_numpy(dtype=np.int64)
    read = samples.take(together["sample"].to_numpy(dtype=np.int64)).reset_index(drop=True)
    numbers, names = rates.coded(read, rates.KEYS)
    # any response with a text of its case, in that model and format, could have been drawn
    is_read = np.zeros(len(triage_data.cases), dtype=bool)
    is_read[row] = True
    near = samples.loc[is_read[samples["row"].to_numpy(dtype=np.int64)] & samples["has_text"]]
    keys, n_texts = np.unique(case_keys(near, samples), return_counts=True)
    n_of_case = n_texts[np.searchsorted(keys, case_keys(read, samples))]
    gold = triage_data.cases["gold"].to_numpy(dtype=float)[row].astype(np.int64) - 1
    weights = 1 / (together["inclusion_probability"].fillna(1).to_numpy(dtype=float) * n_of_case)
    items = _Items(names, numbers, row, gold, together[list(VOTES)].to_numpy(dtype=float), weights)
    is_drawn = together["of_drawn"].to_numpy(dtype=bool)
    return items.where(is_drawn), items.where(~is_drawn)

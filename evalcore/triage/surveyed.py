"""Each model's responses to clear cases and what was read of them, as the formulas of `estimator` take them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pandas as pd

from evalcore.stats import estimator
from evalcore.stats.estimator import Floats, Numbers, Population, Sample, effective_readers, reading_loads
from evalcore.triage.data import Triaged
from evalcore.triage.panels import N_LEVELS, Kind, distributions
from evalcore.triage.votes import VOTES, drawn_reads, drawn_votes

MIN_IN_STRATUM = 10
"""With fewer reads of one level of the judge, what physicians say there is mixed with the judge's own level."""


@dataclass(frozen=True)
class Answers:
    """The responses of one model in one format to clear cases, as far as the judge found a level in them.

    Each response counts 1 / the responses of its case, so that each case counts once.

    Attributes:
        model, format: Whose they are.
        cases: By case, its row of `Triaged.cases`; ascending.
        gold: By case, 0..3.
        judged: By case and level, the share that the judge says; adds up to 1, a boundary is half of each.
        rest: By case and level, the share that the judge says of responses that were not read (of a boundary the more severe).
        read: By response drawn and read, its case: a place in `gold`.
        once: Of these, what they count.
        level: Of these, the judge's level, 0..3; of a boundary the more severe.
        votes: Of these, physicians' mean vote by level; adds up to 1.
        probabilities: Of these, the probability that they were drawn.
        places: By read, its response: a place in `read`. Responses that two physicians have read have two reads.
        readers: By read, the number of the physician.
        said: By read and level, what that physician says; where an adjudicator has settled the response, the settled level.
        own: The same, what that physician said.
        n_responses: How many there are.
        n_no_level: Responses in which the judge found no level: they are left out.
        n_unreached: Responses with a level and without a text, which nobody can draw.
    """

    model: str
    format: str
    cases: Numbers
    gold: Numbers
    judged: Floats
    rest: Floats
    read: Numbers
    once: Floats
    level: Numbers
    votes: Floats
    probabilities: Floats
    places: Numbers
    readers: Numbers
    said: Floats
    own: Floats
    n_responses: int
    n_no_level: int
    n_unreached: int

    @property
    def n_effective_readers(self) -> float:
        """As many physicians as those who have read count for (`estimator.effective_readers`)."""
        return effective_readers(reading_loads(self.probabilities, self.places, self.readers))

    def on(self, cases: Numbers) -> "Answers":
        """The responses to these cases alone (rows of `Triaged.cases`); n_responses, n_no_level and n_unreached stay those of all."""
        kept = np.isin(self.cases, cases)
        if kept.all():
            return self
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

    def by_level(self) -> tuple[Floats, Floats]:
        """What physicians say where the judge says a level, m(level | judge's level), and how far a read's own vote enters it.

            m_j = (sum_s in j  v / pi) / (sum_s in j  1 / pi)           with 10 reads of the judge's level j
            m_j = (n_j m_j + (10 - n_j) e_j) / 10                       with n_j fewer; e_j: all on the judge's own level

        Returns:
            The judge's levels x physicians' levels, rows add up to 1; and the leverage of each response read.
        """
        weight, own = 1 / self.probabilities, np.eye(N_LEVELS)
        n, mass = np.bincount(self.level, minlength=N_LEVELS), np.bincount(self.level, weight, N_LEVELS)
        sums = np.stack([np.bincount(self.level, weight * vote, N_LEVELS) for vote in self.votes.T], axis=1)
        said = np.divide(sums, mass[:, None], out=own.copy(), where=mass[:, None] > 0)
        trust = np.minimum(n / MIN_IN_STRATUM, 1.0)
        return trust[:, None] * said + (1 - trust[:, None]) * own, (trust / np.where(mass > 0, mass, 1.0))[
            self.level
        ] * weight


@dataclass(frozen=True)
class Asked:
    """One share that is asked for (or a cost), of one model in one format: an average over cases.

    Attributes:
        by_case: What the judge says of each case; of a share in [0, 1].
        population: The responses that it is about: those read, one by one, then of each case all others together.
        sample: What was read of them; what is drawn together is a case.
        predicted: By item of the population, what the judge's level makes of it (`Answers.by_level`).
        leverage: By response read, how far the prediction follows its own vote.
    """

    by_case: Floats
    population: Population
    sample: Sample
    predicted: Floats
    leverage: Floats

    @property
    def corrected(self) -> estimator.Fit:
        """The judge's levels, corrected: sum a m + sum over the read ones w (y - m), w = (a/pi) / sum (a/pi).

        The second sum moves every prediction alike, so that the residuals that are left have the mean 0.
        """
        rows = self.sample.rows
        weight = self.population.moves[rows] / self.sample.probabilities
        weight = weight / weight.sum()
        moved = self.predicted + float((weight * (self.sample.votes - self.predicted[rows])).sum())
        leverage = (self.leverage + weight)[:, None]
        value = estimator.total(self.population, self.sample, moved)
        return estimator.Fit(value, moved, leverage, np.ones_like(leverage), np.ones(len(rows)))


def answers(
    triaged: Triaged, judges: Mapping[str, str], *, settled: bool = True, only_texts: bool = False
) -> Iterator[Answers]:
    """The responses to clear cases of every model, in every format, in which the judge found a level, by format and model.

    Args:
        triaged: `panels.described`.
        judges: By format the judge whose levels count.
        settled: An adjudicated level takes the place of the readers' votes.
        only_texts: Leave out responses whose level alone is known, which nobody can read.
    """
    samples = triaged.samples
    clear = triaged.cases["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
    row, has_text = samples["row"].to_numpy(dtype=np.int64), samples["has_text"].to_numpy(dtype=bool)
    models = samples["model"].cat.codes.to_numpy().astype(np.int64)
    names = [str(name) for name in samples["model"].cat.categories]
    votes = drawn_votes(triaged, settled=settled)
    vote_of = np.full(len(samples), -1, dtype=np.int64)
    vote_of[votes["sample"].to_numpy(dtype=np.int64)] = np.arange(len(votes))
    reads = drawn_reads(triaged, settled=settled)
    read_sample, readers = reads["sample"].to_numpy(dtype=np.int64), pd.factorize(reads["rater"], sort=True)[0]
    own = drawn_reads(triaged, settled=False)["level"].to_numpy(dtype=float)
    said_by, own_by = (
        distributions(np.arange(len(reads)), levels, len(reads))
        for levels in (reads["level"].to_numpy(dtype=float), own)
    )
    for word, judge in judges.items():
        if judge not in triaged.levels:
            continue
        level = triaged.levels[judge].to_numpy(dtype=float)
        looked = np.flatnonzero(clear[row] & samples["format"].eq(word).to_numpy(dtype=bool) & ~np.isnan(level))
        found = looked[level[looked] > 0]
        no_level = np.bincount(models[looked], minlength=len(names)) - np.bincount(models[found], minlength=len(names))
        unreached = np.bincount(models[found[~has_text[found]]], minlength=len(names))
        places = found[has_text[found]] if only_texts else found
        key = models[places] * len(triaged.cases) + row[places]
        keys, case = np.unique(key, return_inverse=True)
        times = np.bincount(case, minlength=len(keys))
        once, low, high = (
            1 / times[case],
            np.floor(level[places]).astype(int) - 1,
            np.ceil(level[places]).astype(int) - 1,
        )
        judged = (_shares(case, low, once, len(keys)) + _shares(case, high, once, len(keys))) / 2
        is_read = vote_of[places] >= 0
        rest = _shares(case[~is_read], high[~is_read], once[~is_read], len(keys))
        of_keys = keys % max(len(triaged.cases), 1)
        gold = triaged.cases["gold"].to_numpy(dtype=float)[of_keys].astype(np.int64) - 1
        read, of = case[is_read], vote_of[places[is_read]]
        said, chance = (
            votes[list(VOTES)].to_numpy(dtype=float)[of],
            votes["inclusion_probability"].to_numpy(dtype=float)[of],
        )
        place_of = np.full(len(samples), -1, dtype=np.int64)
        place_of[places[is_read]] = np.arange(len(read))
        item = place_of[read_sample]
        bounds = np.searchsorted(keys, np.arange(len(names) + 1) * len(triaged.cases))
        of_model = models[places[is_read]]
        for code, name in enumerate(names):
            begin, end = bounds[code], bounds[code + 1]
            if begin == end and not no_level[code]:
                continue
            mine = of_model == code
            given = np.flatnonzero((item >= 0) & mine[item]) if len(mine) else np.zeros(0, dtype=np.int64)
            yield Answers(
                model=name,
                format=str(word),
                cases=of_keys[begin:end],
                gold=gold[begin:end],
                judged=judged[begin:end],
                rest=rest[begin:end],
                read=read[mine] - begin,
                once=once[is_read][mine],
                level=high[is_read][mine],
                votes=said[mine],
                probabilities=chance[mine],
                places=(np.cumsum(mine) - 1)[item[given]],
                readers=readers[given].astype(np.int64),
                said=said_by[given],
                own=own_by[given],
                n_responses=int(times[begin:end].sum()),
                n_no_level=int(no_level[code]),
                n_unreached=int(unreached[code]),
            )


def on_same_answers(known: Sequence[Answers]) -> list[Answers]:
    """Each model on the cases that all models of its format have answered."""
    same = {}
    for word in dict.fromkeys(about.format for about in known):
        of_format = [about.cases for about in known if about.format == word and len(about.cases)]
        same[word] = reduce(np.intersect1d, of_format, of_format[0]) if of_format else np.zeros(0, dtype=np.int64)
    return [about.on(same[about.format]) for about in known]


def _shares(case: Numbers, level: Numbers, weight: Floats, n: int) -> Floats:
    found = np.bincount(case * N_LEVELS + level, weight, n * N_LEVELS)
    return np.asarray(found, dtype=np.float64).reshape(n, N_LEVELS)


def asked(about: Answers, counts: Floats, model: tuple[Floats, Floats]) -> Asked:
    """One share of one model.

    Args:
        about: Its responses.
        counts: Gold x level: 1 where it counts, 0 where it does not (or what it costs), NaN throughout a gold that it is not about.
        model: `Answers.by_level`.
    """
    means, leverage = model
    kept = ~np.isnan(counts[:, 0])[about.gold]
    n = int(kept.sum())
    rows, rest = counts[about.gold[kept]], about.rest[kept]
    mine = kept[about.read]
    example = (np.cumsum(kept) - 1)[about.read[mine]]
    of_read = counts[about.gold[about.read[mine]]]
    left = rest.sum(axis=1)
    of_rest = (rest @ means * rows).sum(axis=1)
    once, chance = about.once[mine] / max(n, 1), about.probabilities[mine]
    population = Population(
        moves=np.concatenate([once, left / max(n, 1)]),
        undesirable=np.zeros(len(once) + n, dtype=bool),
        labels=np.empty((len(once) + n, 0)),
        example=np.concatenate([example, np.arange(n)]),
    )
    votes: Floats = (about.votes[mine] * of_read).sum(axis=1)
    given = mine[about.places]
    places = (np.cumsum(mine) - 1)[about.places[given]]
    sample = Sample(
        rows=np.arange(len(once)),
        votes=votes,
        probabilities=(chance * float((once / chance).sum())).clip(max=1.0),
        units=pd.factorize(example)[0].astype(np.int64),
        places=places,
        readers=np.unique(about.readers[given], return_inverse=True)[1].astype(np.int64),
        said=(about.said[given] * of_read[places]).sum(axis=1),
        own=(about.own[given] * of_read[places]).sum(axis=1),
    )
    predicted = np.concatenate(
        [(means[about.level[mine]] * of_read).sum(axis=1), np.divide(of_rest, left, out=np.zeros(n), where=left > 0)]
    )
    return Asked((about.judged[kept] * rows).sum(axis=1), population, sample, predicted, leverage[mine])

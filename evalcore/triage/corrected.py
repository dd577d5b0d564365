"""Triage corrected: the judge's levels of all responses, physicians' of those that were drawn; rates, and expected harm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import MIN_EXAMPLES_READ, MIN_READ, Estimate, claim_sentence, further_readers, of_reads
from evalcore.rubric.data import first_reads, is_drawn, settlements
from evalcore.stats import estimator
from evalcore.stats.arrays import Floats, Numbers
from evalcore.stats.estimator import Population, Sample, effective_readers, reading_loads
from evalcore.stats.intervals import LEVEL, wilson
from evalcore.stats.wording import counted
from evalcore.study.schema import Claim, Physicians
from evalcore.triage.data import LETTERS, LEVELS, TriageData
from evalcore.triage.harm import HARM_COLUMNS, costs, highest
from evalcore.triage.panels import N_LEVELS, Kind, distributions
from evalcore.triage.rates import ABOVE_A, BELOW_D, KEYS, OF_ALL, OF_EMERGENCIES, RULES, Base, Measure

VOTES = ("v_A", "v_B", "v_C", "v_D")
"""Columns of a response's mean vote by level."""


def drawn_votes(triage_data: TriageData, *, settled: bool = True) -> pd.DataFrame:
    """What physicians say of each response that was drawn and read blind, as one vote over the four levels.

    A reader's letter is a vote for it, a boundary half a vote for each of its letters; of several readers the mean. Reads of responses that somebody
    chose, reads with the judge in view, and "cannot assess" and "remove" are left out, the latter as if the response had not been drawn.

    Args:
        settled: A level that was adjudicated without the judge in view takes the place of the readers' votes (`rubric_data.settlements`).

    Returns:
        One row a response with a vote, by sample: sample, row, v_A .. v_D (add up to 1), n_readers, inclusion_probability in (0, 1].
    """
    counted = drawn_reads(triage_data, settled=settled)
    samples, number = np.unique(counted["sample"].to_numpy(dtype=np.int64), return_inverse=True)
    n = len(samples)
    votes = distributions(number, counted["level"].to_numpy(dtype=float), n)
    probability = np.zeros(n)
    np.maximum.at(probability, number, counted["inclusion_probability"].to_numpy(dtype=float))
    return pd.DataFrame(
        {
            "sample": samples,
            "row": triage_data.samples["row"].to_numpy()[samples].astype(np.int64),
            **{name: votes[:, place] for place, name in enumerate(VOTES)},
            "n_readers": np.bincount(number, minlength=n),
            "inclusion_probability": probability,
        }
    )


def drawn_reads(triage_data: TriageData, *, settled: bool = True) -> pd.DataFrame:
    """The reads that `drawn_votes` is made from, one by one: one row a reader and response.

    Args:
        settled: As in `drawn_votes`: the settled level takes the place of what each reader of the response said.

    Returns:
        sample, row, rater, level (1..4, boundaries .5), inclusion_probability; by sample.
    """
    reads = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    counted = blind_reads(reads).loc[lambda blind: blind["is_drawn"]]
    counted = counted.assign(level=levels_of(counted["label"]))
    counted = counted.loc[counted["level"].notna()].sort_values(["sample", "verdict_id"], ignore_index=True)
    if settled:
        final = settlements(reads).sort_values("verdict_id").drop_duplicates("sample", keep="last")
        settled_levels = pd.Series(levels_of(final["label"]), index=final["sample"].to_numpy())
        last = counted["sample"].map(settled_levels).to_numpy(dtype=float)
        counted["level"] = np.where(np.isnan(last), counted["level"], last)
    return counted[["sample", "row", "rater", "level", "inclusion_probability"]]


def blind_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """Blind first reads of responses, each reader's newest, with is_drawn: made of what was drawn with a known probability."""
    first = first_reads(reads).sort_values("verdict_id").drop_duplicates(["sample", "rater"], keep="last")
    return first.assign(is_drawn=is_drawn(first))


def levels_of(labels: pd.Series) -> Floats:
    """Labels as levels; NaN for "remove" and "cannot assess"."""
    return np.asarray(labels.map(LEVELS), dtype=np.float64)


MIN_IN_STRATUM = 10
"""With fewer reads of one level of the judge, what physicians say there is mixed with the judge's own level."""


@dataclass(frozen=True)
class Answers:
    """The responses of one model in one format to clear cases, as far as the judge found a level in them.

    Each response counts 1 / the responses of its case, so that each case counts once.

    Attributes:
        cases: By case, its row of `TriageData.cases`; ascending.
        gold: By case, 0..3.
        judged: By case and level, the share that the judge says; adds up to 1, a boundary is half of each.
        rest: By case and level, the share that the judge says of responses that were not read (of a boundary the more severe).
        read: By response drawn and read, its case: a place in `gold`.
        level: Of these, the judge's level, 0..3; of a boundary the more severe.
        votes: Of these, physicians' mean vote by level; adds up to 1.
        probabilities: Of these, the probability that they were drawn.
        places: By read, its response: a place in `read`. Responses that two physicians have read have two reads.
        readers: By read, the number of the physician.
        said: By read and level, what that physician says; where an adjudicator has settled the response, the settled level.
        own: The same, what that physician said.
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
        """The responses to these cases alone (rows of `TriageData.cases`); n_responses, n_no_level and n_unreached stay those of all."""
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
    triage_data: TriageData, judges: Mapping[str, str], *, settled: bool = True, only_texts: bool = False
) -> Iterator[Answers]:
    """The responses to clear cases of every model, in every format, in which the judge found a level, by format and model.

    Args:
        judges: By format the judge whose levels count.
        settled: An adjudicated level takes the place of the readers' votes.
        only_texts: Leave out responses whose level alone is known, which nobody can read.
    """
    samples = triage_data.samples
    clear = triage_data.cases["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
    row, has_text = samples["row"].to_numpy(dtype=np.int64), samples["has_text"].to_numpy(dtype=bool)
    models = samples["model"].cat.codes.to_numpy().astype(np.int64)
    names = [str(name) for name in samples["model"].cat.categories]
    votes = drawn_votes(triage_data, settled=settled)
    vote_of = np.full(len(samples), -1, dtype=np.int64)
    vote_of[votes["sample"].to_numpy(dtype=np.int64)] = np.arange(len(votes))
    reads = drawn_reads(triage_data, settled=settled)
    read_sample, readers = reads["sample"].to_numpy(dtype=np.int64), pd.factorize(reads["rater"], sort=True)[0]
    own = drawn_reads(triage_data, settled=False)["level"].to_numpy(dtype=float)
    said_by, own_by = (
        distributions(np.arange(len(reads)), levels, len(reads))
        for levels in (reads["level"].to_numpy(dtype=float), own)
    )
    for word, judge in judges.items():
        if judge not in triage_data.levels:
            continue
        level = triage_data.levels[judge].to_numpy(dtype=float)
        looked = np.flatnonzero(clear[row] & samples["format"].eq(word).to_numpy(dtype=bool) & ~np.isnan(level))
        found = looked[level[looked] > 0]
        no_level = np.bincount(models[looked], minlength=len(names)) - np.bincount(models[found], minlength=len(names))
        unreached = np.bincount(models[found[~has_text[found]]], minlength=len(names))
        places = found[has_text[found]] if only_texts else found
        key = models[places] * len(triage_data.cases) + row[places]
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
        of_keys = keys % max(len(triage_data.cases), 1)
        gold = triage_data.cases["gold"].to_numpy(dtype=float)[of_keys].astype(np.int64) - 1
        read, of = case[is_read], vote_of[places[is_read]]
        said, chance = (
            votes[list(VOTES)].to_numpy(dtype=float)[of],
            votes["inclusion_probability"].to_numpy(dtype=float)[of],
        )
        place_of = np.full(len(samples), -1, dtype=np.int64)
        place_of[places[is_read]] = np.arange(len(read))
        item = place_of[read_sample]
        bounds = np.searchsorted(keys, np.arange(len(names) + 1) * len(triage_data.cases))
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
        counts: Gold x level: 1 where it counts, 0 where it does not (or what it costs), NaN throughout a gold that it is not about.
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


_Held = tuple[Claim, Physicians]
"""What an interval is to hold for."""
JUDGE, PHYSICIANS, CORRECTED = "judge_only", "physicians_only", "corrected"
BOUNDS = ("", "_low", "_high")
COUNTS = (
    "n_cases",
    "n_responses",
    "n_unreached",
    "n_no_level",
    "n_read",
    "n_cases_read",
    "n_readers",
    "n_effective_readers",
    "enough",
    "n_needed",
    "needed",
)
"""Columns of what a share was made from."""
ALL_COLUMNS = (*(kind + bound for kind in (JUDGE, PHYSICIANS, CORRECTED) for bound in BOUNDS), *COUNTS)
CELL_COLUMNS = (*KEYS, "gold", "predicted", "n", "n_gold", "share", "low", "high", *ALL_COLUMNS)
RATE_COLUMNS = (*KEYS, "measure", *ALL_COLUMNS)

_GOLD, _LEVEL = np.indices((N_LEVELS, N_LEVELS))
MEASURES: Mapping[Measure, Floats] = {
    measure: np.where(rule.base, rule.hits.astype(float), np.nan) for measure, rule in RULES.items()
}
"""Of each rate, gold x level: 1 where it counts, 0 where it does not, NaN where it is not about that gold."""
_WHICH: Mapping[Base, str] = {
    OF_ALL: "", OF_EMERGENCIES: "with the gold D", BELOW_D: "with a gold below D", ABOVE_A: "with a gold above A",
}  # fmt: skip
"""The cases that reads are lacking of, in words."""


def claim_words(claim: Claim, physicians: Physicians, *, value: str = "share") -> str:
    """What the interval of a corrected share means, or of another value.

    >>> claim_words(Claim.BENCHMARK, Physicians.THESE)  # doctest: +ELLIPSIS
    'The interval says where the share would lie if these physicians read every response with a text of this benchmark, ...fixed beforehand.'
    >>> "where the expected harm would lie" in claim_words(Claim.BENCHMARK, Physicians.THESE, value="expected harm")
    True
    """
    return claim_sentence(claim, physicians, value=value, item="response with a text", of="cases")


def answered(
    triage_data: TriageData, judges: Mapping[str, str], claim: Claim = Claim.NEW_EXAMPLES, *, settled: bool = True
) -> list[Answers]:
    """The `triage_surveyed.answers` that count for a claim: for these cases alone only those that can be read."""
    return list(answers(triage_data, judges, settled=settled, only_texts=claim is Claim.BENCHMARK))


def corrected_cells(
    triage_data: TriageData,
    judges: Mapping[str, str],
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    settled: bool = True,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Confusion matrices by the judge alone, by physicians alone, and by the judge corrected by physicians, with intervals.

    Of the responses to the cases of one gold, with a = 1 / (cases x responses of the case), w = (a/pi) / sum (a/pi) over the read ones:

        judge only         sum a f                          f what the judge says; Wilson, a case once
        physicians only    sum w y                          y the mean vote of those who read it (Hajek)
        corrected          sum a m + sum w (y - m)          m what physicians say where the judge says this level (GREG, as in `estimator`)

    m is taken from all that was read of the model in this format, `Answers.by_level`. All four shares of a row add up to 1. The variance is over cases,
    which are what is drawn together; t with (cases read - numbers fitted) degrees of freedom, or fewer where cases are few (`of_reads`, whose
    claims these are). For physicians in general it is over physicians, who must have got their responses at random, and needs three effective readers.
    Where nearly all votes are as predicted the interval is widened by what three others would add.

    Counted are responses to clear cases in which the judge found a level. Reads count that were made blind of a drawn response and gave a level
    (`triage_votes.drawn_votes`); a read of a response in which the judge found none does not. Responses without a text (n_unreached) cannot be read: for
    further cases they enter by the judge's level, as if physicians would say the same of them as of those with a text; for these cases alone they are
    left out.

    Args:
        judges: By format the judge whose levels count.
        claim: What the interval is to hold for: further cases of the same kind, or these cases alone (then its width is 0 where everything was read).
        physicians: Whose judgement it is to hold for: those who have read, or physicians in general.
        settled: An adjudicated level takes the place of the readers' votes.
        known: What `answered` gave for the same cases, judges, claim and settled, where it is at hand.
        level: Of confidence, in (0, 1).

    Returns:
        Sixteen rows a model and format: model, format, gold, predicted (1..4); n_gold (cases with this gold), share (corrected, in [0, 1]; the four of
        a row add up to 1), low, high (in [0, 1]), n (share x n_gold: an estimate, no count); for each of judge_only, physicians_only and corrected the
        share as it was estimated (corrected may lie a little outside [0, 1]), _low and _high; NaN where there is none; n_cases (of the row); n_responses,
        n_unreached and n_no_level (of the model and format); n_read (responses of the row), n_cases_read, n_readers (physicians), n_effective_readers
        (of the model and format: 1 / sum q^2, q their shares of the reading), enough (physicians-only
        and corrected are said), n_needed (responses to be read until they are, at least), needed (the same in words, empty where enough).

        Enough is 30 responses read of the model and format, and cases of this gold with a read: 10; for physicians in general by 3 effective readers.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triage_data, judges, claim, settled=settled) if known is None else known:
        model = about.by_level()
        for gold in range(N_LEVELS):
            rows += _cells_of(about, gold, model, (claim, physicians), level)
    found = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
    return found.astype({"model": triage_data.samples["model"].dtype, "format": triage_data.samples["format"].dtype})


def corrected_rates(
    triage_data: TriageData,
    judges: Mapping[str, str],
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    settled: bool = True,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """How often responses are right, too high, too low, and dangerously so: by the judge, by physicians, and corrected.

    The formulas of `corrected_cells` with what counts as y, over the cases of all golds that a rate is about; not sums of rounded cells.

    Returns:
        One row a model, format and measure of `MEASURES`: model, format, measure, and the columns of `corrected_cells` from judge_only on, of the
        cases that the rate is of.

        Enough is 30 responses read of the model and format, from 10 of the cases that the rate is of; for physicians in general by 3 effective readers.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triage_data, judges, claim, settled=settled) if known is None else known:
        model = about.by_level()
        for measure, counts in MEASURES.items():
            share = asked(about, counts, model)
            made = made_from(about, share, _WHICH[RULES[measure].of], physicians)
            found = _three(share, (claim, physicians), level, is_enough=made["enough"])
            rows.append({"model": about.model, "format": about.format, "measure": measure.value, **found, **made})
    table = pd.DataFrame(rows, columns=list(RATE_COLUMNS))
    kinds = {"model": triage_data.samples["model"].dtype, "format": triage_data.samples["format"].dtype}
    return table.astype({**kinds, "measure": pd.CategoricalDtype([measure.value for measure in MEASURES])})


def _cells_of(
    about: Answers, gold: int, model: tuple[Floats, Floats], claim: _Held, level: float
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for place in range(N_LEVELS):
        share = asked(about, np.where(gold == _GOLD, place == _LEVEL, np.nan), model)
        made = made_from(about, share, f"with the gold {LETTERS[gold].value}", claim[1])
        found.append(_three(share, claim, level, is_enough=made["enough"]) | made)
    shares = on_simplex(np.array([row[CORRECTED] for row in found]))
    for place, (row, share_shown) in enumerate(zip(found, shares, strict=True)):
        row |= {
            "model": about.model, "format": about.format, "gold": gold + 1.0, "predicted": place + 1.0,
            "n": share_shown * row["n_cases"], "n_gold": row["n_cases"], "share": share_shown,
            "low": np.clip(min(row[f"{CORRECTED}_low"], share_shown), 0, 1), "high": np.clip(max(row[f"{CORRECTED}_high"], share_shown), 0, 1),
        }  # fmt: skip
    return found


def on_simplex(shares: Floats) -> Floats:
    """The nearest four shares that are nowhere below 0 and add up to 1; never further from the truth than what came, which adds up to 1 as well.

    >>> on_simplex(np.array([0.5, 0.55, -0.05, 0.0])).round(3).tolist()
    [0.475, 0.525, 0.0, 0.0]
    """
    if np.isnan(shares).any():
        return shares
    ordered = np.sort(shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    n_kept = int(np.flatnonzero(ordered > above)[-1])
    return np.asarray(np.maximum(shares - above[n_kept], 0.0))


def _three(share: Asked, claim: _Held, level: float, *, is_enough: bool) -> dict[str, float]:
    """The judge's share, physicians' and the corrected one, with their bounds."""
    found = _of_judge(share, level)
    for kind in (PHYSICIANS, CORRECTED):
        if is_enough:
            fit = share.corrected if kind == CORRECTED else estimator.by_physicians(share.population, share.sample)
            estimate: Estimate = of_reads(share.population, share.sample, fit, *claim)
            columns = estimate.columns(kind, level)
            found |= {name: columns[name] for name in (kind, f"{kind}_low", f"{kind}_high")}
        else:
            found |= {kind + bound: np.nan for bound in BOUNDS}
    return found


def _of_judge(share: Asked, level: float) -> dict[str, float]:
    by_case = share.by_case
    low, high = wilson(by_case.sum(keepdims=True), np.array([len(by_case)]), level=level)
    value = float(by_case.mean()) if len(by_case) else np.nan
    return {JUDGE: value, f"{JUDGE}_low": float(low[0]), f"{JUDGE}_high": float(high[0])}


def made_from(about: Answers, share: Asked, words: str, physicians: Physicians) -> dict[str, Any]:
    """The columns `COUNTS`."""
    n_read, n_cases_read = len(about.read), share.sample.n_units
    lacking, of_cases = max(0, MIN_READ - n_read), max(0, MIN_EXAMPLES_READ - n_cases_read)
    by_others, by_whom = (
        further_readers(share.sample.n_readers, about.n_effective_readers)
        if physicians is Physicians.IN_GENERAL
        else (0, "")
    )
    n_needed = max(lacking, of_cases, by_others)
    said = [f"{counted(n_needed, 'more response')} to be read"] if n_needed else []
    if of_cases:
        said.append(
            f"{of_cases} of them to {'another case' if of_cases == 1 else 'as many other cases'} {words}".rstrip()
        )
    if by_others:
        said.append(by_whom)
    return {
        "n_cases": share.population.n_examples,
        "n_responses": about.n_responses,
        "n_unreached": about.n_unreached,
        "n_no_level": about.n_no_level,
        "n_read": len(share.sample.rows),
        "n_cases_read": n_cases_read,
        "n_readers": share.sample.n_readers,
        "n_effective_readers": about.n_effective_readers,
        "enough": n_needed == 0,
        "n_needed": n_needed,
        "needed": ", ".join(said),
    }


_STEP = _LEVEL - _GOLD
CORRECTED_HARM_COLUMNS = (*HARM_COLUMNS, *COUNTS)


def corrected_harm(  # noqa: PLR0913 - all but the weights by name
    triage_data: TriageData,
    judges: Mapping[str, str],
    under: float,
    over: float,
    *,
    steps: bool = True,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """What an answer costs on average, by the judge on all responses and physicians on those that they have read, with an interval.

    It is the mean of the corrected cells' shares times what each cell costs, with the formulas of `triage_corrected.corrected_cells` over the cases of all
    golds: y is what a response costs by its level and its case's gold. The variance is over cases. Where nearly all votes are as predicted, it is widened
    by what three others would add that each cost one level more at the larger weight. Measured coverage of the 95 % interval, weights 5 and 1, 120 and 400
    cases of which 30 to 50 % were read, judge accuracy .65 and .9: .945 to .985, for these cases and for further ones.

    Args:
        judges: By format the judge whose levels count.
        level: Of confidence, in (0, 1).

    Returns:
        As `harm.expected_harm`, one row a model and format: n (cases), harm (of_under and of_over add up to it), low, high, n_under, n_over,
        steps_under and steps_over (of n cases, estimated: no counts), reason (what has still to be read); NaN where too little was read. And the columns
        `triage_corrected.COUNTS`.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triage_data, judges, claim) if known is None else known:
        model = about.by_level()
        largest = max(under, over) or 1.0
        share = asked(about, costs(_STEP, under, over, steps=steps) / largest, model)
        made = made_from(about, share, "", physicians)
        row = dict.fromkeys(HARM_COLUMNS, np.nan) | {"model": about.model, "format": about.format, "n": made["n_cases"]}
        if made["enough"]:
            ways = _ways(about, model)
            n_steps = "steps" if steps else "n"
            row |= {f"{kind}_{way}": value * made["n_cases"] for (kind, way), value in ways.items()}
            row |= {"of_under": under * ways[n_steps, "under"], "of_over": over * ways[n_steps, "over"]}
            row["harm"] = row["of_under"] + row["of_over"]
            estimate = of_reads(share.population, share.sample, share.corrected, claim, physicians).columns("", level)
            low, high = (float(estimate[bound]) * largest for bound in ("_low", "_high"))
            row |= {
                "low": max(min(low, row["harm"]), 0.0),
                "high": max(min(high, highest(under, over, steps=steps)), row["harm"]),
            }
        rows.append(row | made | {"reason": made["needed"]})
    found = pd.DataFrame(rows, columns=list(CORRECTED_HARM_COLUMNS))
    return found.astype({"model": triage_data.samples["model"].dtype, "format": triage_data.samples["format"].dtype})


def _ways(about: Answers, model: tuple[Floats, Floats]) -> dict[tuple[str, str], float]:
    """Corrected shares of errors (n) and mean levels (steps) by way; an estimate may lie a little below 0, what it stands for cannot."""
    found = {}
    for kind in ("n", "steps"):
        for way, weights in (("under", (1.0, 0.0)), ("over", (0.0, 1.0))):
            cost = costs(_STEP, *weights, steps=kind == "steps")
            found[kind, way] = max(0.0, asked(about, cost, model).corrected.value)
    return found

"""What physicians here say of responses and of cases, what it changes in the gold, how far a judge agrees.

Levels that stand are for display. Whatever is claimed of physicians takes blind levels: first reads as they were
locked, and adjudications made without the judge in view. A read that was revised once the judge was shown agrees with
it.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evalcore.reading.conflicts import LEVELS_APART
from evalcore.reading.reference import ADJUDICATED, AGREED, SINGLE, UNSETTLED, in_order
from evalcore.rubric.data import first_reads, is_drawn, settlements
from evalcore.stats.arrays import Floats
from evalcore.stats.intervals import Share, share_interval
from evalcore.study.schema import Acuity, Label, Stage
from evalcore.triage import data
from evalcore.triage.predictions import levels_by
from evalcore.triage.rates import KEYS, clustered_summary, coded

MEDIAN = "median"
"""Value of `how`: readers differ by less than two levels, and the median of their levels stands."""
_WHYS = ("", UNSETTLED, Label.CANNOT_ASSESS.value, Acuity.REMOVE.value)
VOTES = ("v_A", "v_B", "v_C", "v_D")


def drawn_votes(triage_data: data.TriageData, *, settled: bool = True) -> pd.DataFrame:
    """What physicians say of each response that was drawn and read blind, as one vote over the four levels.

    A reader's letter is a vote for it, a boundary half a vote for each of its letters; of several readers the mean.
    Reads of responses that somebody chose, reads with the judge in view, and "cannot assess" and "remove" are left out,
    the latter as if the response had not been drawn. Where settled, a level that was adjudicated without the judge in
    view takes the place of the readers' votes (`rubric.data.settlements`). Gives one row a response with a vote, by
    sample; v_A .. v_D add up to 1.
    """
    counted = drawn_reads(triage_data, settled=settled)
    samples, number = np.unique(counted["sample"].to_numpy(dtype=np.int64), return_inverse=True)
    n = len(samples)
    votes = data.distributions(number, counted["level"].to_numpy(dtype=float), n)
    probability = np.zeros(n)
    np.maximum.at(probability, number, counted["inclusion_probability"].to_numpy(dtype=float))
    row = triage_data.samples["row"].to_numpy()[samples].astype(np.int64)
    found = pd.DataFrame({"sample": samples, "row": row, **dict(zip(VOTES, votes.T, strict=True))})
    return found.assign(n_readers=np.bincount(number, minlength=n), inclusion_probability=probability)


def drawn_reads(triage_data: data.TriageData, *, settled: bool = True) -> pd.DataFrame:
    """The reads behind `drawn_votes`, a row a reader and response, by sample; where settled, with the settled level."""
    reads = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    counted = _blind_reads(reads).loc[lambda blind: blind["is_drawn"]]
    counted = counted.assign(level=_levels_of(counted["label"]))
    counted = counted.loc[counted["level"].notna()].sort_values(["sample", "verdict_id"], ignore_index=True)
    if settled:
        final = settlements(reads).sort_values("verdict_id").drop_duplicates("sample", keep="last")
        settled_levels = pd.Series(_levels_of(final["label"]), index=final["sample"].to_numpy())
        last = counted["sample"].map(settled_levels).to_numpy(dtype=float)
        counted["level"] = np.where(np.isnan(last), counted["level"], last)
    return counted[["sample", "row", "rater", "level", "inclusion_probability"]]


def _blind_reads(reads: pd.DataFrame) -> pd.DataFrame:
    first = first_reads(reads).sort_values("verdict_id").drop_duplicates(["sample", "rater"], keep="last")
    return first.assign(is_drawn=is_drawn(first))


def _levels_of(labels: pd.Series) -> Floats:
    return np.asarray(labels.map(data.LEVELS), dtype=np.float64)


def response_levels(triage_data: data.TriageData, *, blind: bool = False) -> pd.DataFrame:
    """The level that stands of every response that physicians have read.

    The adjudicated level, else the one that all readers gave, else the median of levels less than two apart
    (`data.medians`; such reads go to no adjudicator), else the only reader's. Readers who are two levels apart or more,
    or of whom one gives a level and another none, have no level until an adjudicator settles it. `blind`: Only blind
    first reads and adjudications made without the judge in view, for what is claimed of physicians; responses with none
    of them have no row. Else each reader's newest read. Gives one row a response, by sample: sample, row (of
    `triage_data.cases`), level (NaN where there is none), n_readers (adjudicators left out), how (adjudicated, agreed,
    median, single, unsettled), why (there is none: unsettled, cannot_assess, remove; else empty), is_drawn (a blind
    first read of it counts in `drawn_votes`).
    """
    reads = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    found = _standing(reads, "sample", blind=blind)
    row = triage_data.samples["row"].to_numpy()[found["sample"].to_numpy(dtype=np.int64)]
    drawn = _blind_reads(reads).loc[lambda counted: counted["is_drawn"], "sample"]
    found.insert(1, "row", row.astype(np.int64))
    return found.assign(is_drawn=found["sample"].isin(drawn))


def case_levels(triage_data: data.TriageData, *, blind: bool = False) -> pd.DataFrame:
    """The same, by row, of every case whose own need physicians here have judged (gold audit)."""
    return _standing(triage_data.reads.loc[triage_data.reads["sample"].lt(0)], "row", blind=blind)


def _standing(reads: pd.DataFrame, key: str, *, blind: bool) -> pd.DataFrame:
    ordered = in_order(pd.concat([first_reads(reads), settlements(reads)]) if blind else reads)
    is_settled = ordered["stage"].eq(Stage.ADJUDICATED)
    items = np.unique(ordered[key].to_numpy(dtype=np.int64))
    standing = ordered.loc[~is_settled].drop_duplicates([key, "rater"], keep="last")
    number = np.searchsorted(items, standing[key].to_numpy(dtype=np.int64))
    label, level = standing["label"], _levels_of(standing["label"])
    given, n = ~np.isnan(level), len(items)
    readers = np.bincount(number, minlength=n)
    n_given = np.bincount(number[given], minlength=n)
    n_removed = np.bincount(number[label.eq(Acuity.REMOVE).to_numpy(dtype=bool)], minlength=n)
    number, level = number[given], level[given]
    least, most = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(least, number, np.floor(level))
    np.minimum.at(most, number, np.ceil(level))
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, number, level)
    np.maximum.at(highest, number, level)
    of_one_kind = (n_given == readers) | (n_removed == readers) | (n_given + n_removed == 0)
    conflicts = ~of_one_kind | (least - most >= LEVELS_APART)
    agreed = np.where((n_given > 0) & (lowest != highest), MEDIAN, AGREED)
    how = np.select([conflicts, readers == 1], [UNSETTLED, SINGLE], agreed).astype(object)
    none = np.where(n_removed > 0, Acuity.REMOVE.value, Label.CANNOT_ASSESS.value)
    why = np.select([conflicts, n_given > 0], [UNSETTLED, ""], none).astype(object)
    found = np.where(why == "", data.medians(number, level, n), np.nan)
    final = ordered.loc[is_settled].drop_duplicates(key, keep="last")
    place = np.searchsorted(items, final[key].to_numpy(dtype=np.int64))
    found[place] = _levels_of(final["label"])
    how[place] = ADJUDICATED
    why[place] = final["label"].where(final["label"].isin(_WHYS), "").to_numpy(dtype=object)
    return pd.DataFrame({key: items, "level": found, "n_readers": readers, "how": how, "why": why})


def read_counts(triage_data: data.TriageData) -> pd.DataFrame:
    """What became of the responses that physicians read: n_volunteered are not both blind and drawn."""
    found = response_levels(triage_data)
    samples = triage_data.samples[list(KEYS)].take(found["sample"].to_numpy(dtype=np.int64)).reset_index(drop=True)
    numbers, names = coded(samples, KEYS)
    why, drawn = found["why"].to_numpy(dtype=object), found["is_drawn"].to_numpy(dtype=bool)
    voted = found["sample"].isin(drawn_votes(triage_data)["sample"]).to_numpy(dtype=bool)
    masks = {
        "n_read": np.ones(len(found), dtype=bool),
        "n_unsettled": why == UNSETTLED,
        "n_cannot_assess": why == Label.CANNOT_ASSESS.value,
        "n_remove": why == Acuity.REMOVE.value,
        "n_volunteered": ~drawn,
        "n_clear": voted & triage_data.is_clear()[found["row"].to_numpy(dtype=np.int64)],
    }
    return names.assign(**{name: np.bincount(numbers[mask], minlength=len(names)) for name, mask in masks.items()})


def with_physicians_gold(triage_data: data.TriageData) -> data.TriageData:
    """The same with the gold that physicians here have settled; votes and spread stay as they were.

    A blind level here makes a case clear or a boundary, whatever it was before; "remove" leaves it without gold
    (unlabelled). Where readers conflict or cannot assess it, the gold stays. Cases whose gold is another now have the
    strength `READ_HERE`.
    """
    here = case_levels(triage_data, blind=True)
    here = here.loc[here["why"].isin(["", Acuity.REMOVE])]
    place, level = here["row"].to_numpy(dtype=np.int64), here["level"].to_numpy(dtype=float)
    cases = triage_data.cases
    gold = cases["gold"].to_numpy(dtype=float).copy()
    kind, strength = (cases[name].to_numpy(dtype=object).copy() for name in ("kind", "strength"))
    strength[place[~np.isclose(gold[place], level, rtol=0, atol=0, equal_nan=True)]] = data.READ_HERE
    gold[place], kind[place] = level, data.kinds_of(level)
    known = list(cases["strength"].cat.categories)
    kinds = pd.Categorical(kind, categories=cases["kind"].cat.categories)
    strengths = pd.Categorical(strength, categories=[*known, *({data.READ_HERE} - {*known})])
    return replace(triage_data, cases=cases.assign(gold=gold, kind=kinds, strength=strengths))


def transitions(triage_data: data.TriageData) -> pd.DataFrame:
    """What physicians here say of cases' needs, beside the gold that they came with (not `with_physicians_gold`).

    Gives one row a pair, by old kind and level, then new; new_gold is NaN where physicians removed the case, conflict,
    or cannot assess it (`why`); changed: the gold is another, as `with_physicians_gold` takes it.
    """
    here = case_levels(triage_data, blind=True)
    place, level = here["row"].to_numpy(dtype=np.int64), here["level"].to_numpy(dtype=float)
    old = triage_data.cases["gold"].to_numpy(dtype=float)[place]
    settled = here["why"].isin(["", Acuity.REMOVE]).to_numpy(dtype=bool)
    old_kind = triage_data.cases["kind"].to_numpy(dtype=object)[place]
    new_kind = np.where(settled, data.kinds_of(level), old_kind)
    old_kinds, new_kinds = (pd.Categorical(kinds, categories=list(data.Kind)) for kinds in (old_kind, new_kind))
    pairs = pd.DataFrame({"old_kind": old_kinds, "old_gold": old, "new_kind": new_kinds, "row": place})
    pairs = pairs.assign(new_gold=np.where(settled, level, np.nan), why=here["why"].to_numpy(dtype=object))
    pairs["changed"] = settled & ~np.isclose(old, level, rtol=0, atol=0, equal_nan=True)
    keys = ["old_kind", "old_gold", "new_kind", "new_gold", "why", "changed"]
    return pairs.groupby(keys, dropna=False, observed=True, sort=True).size().rename("n").reset_index()


_ALWAYS = (data.NO_LEVEL, 1.0, 2.0, 3.0, 4.0)
PHYSICIANS = "physicians here"
NO_PAIR = "no response was given one level by both"
ONE_LEVEL = "both give one and the same level throughout"


@dataclass(frozen=True)
class Agreement:
    """How often two say the same, of n responses that both have looked at.

    exact: Of the responses that both gave one letter, interval by Wilson, clustered by case. kappa: With quadratic
    weights (Cohen 1968) over the same responses, interval as in `rates.clustered_summary`; reason: why it, or its
    interval, is undefined.
    """

    n: int
    n_one_none: int
    n_other_none: int
    exact: Share
    kappa: float
    kappa_low: float
    kappa_high: float
    reason: str


def level_pairs(triage_data: data.TriageData, one: str, other: str, *, asked: str) -> pd.DataFrame:
    """The responses of a format that two have looked at, judges or (as the one) `PHYSICIANS`: row, one, other.

    The physicians' level is the blind one of `response_levels`; what they could not assess has no level; what they have
    not settled, or removed, is left out. Some may have been chosen for reading because of a judge's level.
    """
    levels = {name: levels_by(triage_data, {asked: judge}) for name, judge in (("one", one), ("other", other))}
    if one == PHYSICIANS:
        found = response_levels(triage_data, blind=True)
        level = found["level"].astype(float).mask(found["why"].eq(Label.CANNOT_ASSESS), data.NO_LEVEL)
        levels["one"][found["sample"].to_numpy(dtype=np.int64)] = level
    pairs = triage_data.samples[["row"]].assign(**levels)
    return pairs.loc[triage_data.samples["format"].eq(asked) & pairs.notna().all(axis=1)].reset_index(drop=True)


def pair_cells(pairs: pd.DataFrame) -> pd.DataFrame:
    """A row a pair of levels (none, letters, boundaries that occur): n; n_one: what the one gave this level."""
    one, other = (pairs[name].to_numpy(dtype=float) for name in ("one", "other"))
    levels = np.unique(np.concatenate([_ALWAYS, one, other]))
    n = len(levels)
    number = np.searchsorted(levels, one) * n + np.searchsorted(levels, other)
    counts = np.bincount(number, minlength=n * n).reshape(n, n)
    columns = {"one": np.repeat(levels, n), "other": np.tile(levels, n), "n": counts.ravel()}
    return pd.DataFrame({**columns, "n_one": np.repeat(counts.sum(axis=1), n)})


def agreement(pairs: pd.DataFrame) -> Agreement:
    """How often the two of `level_pairs` say the same."""
    one, other = (pairs[name].to_numpy(dtype=float) for name in ("one", "other"))
    none, other_none = one == data.NO_LEVEL, other == data.NO_LEVEL
    letters = ~none & ~other_none & (one == np.floor(one)) & (other == np.floor(other))
    cases, level, answer = pairs["row"].to_numpy()[letters], one[letters], other[letters]
    items = np.zeros((len(cases), data.N_LEVELS, data.N_LEVELS))
    items[np.arange(len(cases)), level.astype(np.int64) - 1, answer.astype(np.int64) - 1] = 1
    of_all = np.zeros(len(cases), dtype=np.int64)
    score = clustered_summary(pd.DataFrame(index=[0]), of_all, cases, items).iloc[0]
    kappa, low, high = (float(score[f"kappa_quadratic{bound}"]) for bound in ("", "_low", "_high"))
    reason = str(score["kappa_quadratic_reason"])
    reason = NO_PAIR if not len(cases) else ONE_LEVEL if np.isnan(kappa) else reason
    n_none, exact = (int(none.sum()), int(other_none.sum())), share_interval(level == answer, cases)
    return Agreement(len(pairs), *n_none, exact, kappa, low, high, reason)

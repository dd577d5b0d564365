"""What physicians here say of responses and of cases: the level that counts, how it was settled, and what it changes in the gold.

A level is 1 (A, home) to 4 (D, emergency now), boundaries .5. Levels that stand are those of `reference`: the adjudicated one, else what the standing
reads say together; they are for display. Whatever is claimed of physicians (agreement, gold, rates) takes blind levels: first reads as they were locked,
and adjudications made without the judge in view, by the one rule of `rubric_data`. A read that was revised once the judge was shown agrees with it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.reading.conflicts import LEVELS_APART
from evalcore.reading.reference import ADJUDICATED, AGREED, SINGLE, UNSETTLED, in_order
from evalcore.rubric.data import first_reads, settlements
from evalcore.study.schema import Acuity, Label, Stage
from evalcore.triage.corrected import blind_reads, drawn_votes, levels_of
from evalcore.triage.data import TriageData
from evalcore.triage.panels import Kind, medians
from evalcore.triage.rates import KEYS, coded

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
MEDIAN = "median"
"""Value of `how`: readers differ by less than two levels, and the median of their levels stands."""
READ_HERE = "read here"
"""Strength of a gold that physicians here have changed."""
WHYS = ("", UNSETTLED, Label.CANNOT_ASSESS.value, Acuity.REMOVE.value)
"""Why there is no level; empty where there is one."""


def response_levels(triage_data: TriageData, *, blind: bool = False) -> pd.DataFrame:
    """The level that stands of every response that physicians have read.

    The adjudicated level, else the one that all readers gave, else the median of levels less than two apart (`panels.medians`; such reads go to no
    adjudicator), else the only reader's. Readers who are two levels apart or more, or of whom one gives a level and another none, have no level until an
    adjudicator settles it. `is_drawn` says which responses may stand for others.

    Args:
        blind: Only blind first reads and adjudications made without the judge in view, for what is claimed of physicians; responses with none of them have
            no row. Else each reader's newest read, whether it was made blind, revised, or with the judge in view.

    Returns:
        One row a response, by sample: sample (row of `triage_data.samples`), row (of `triage_data.cases`), level (1..4, boundaries .5; NaN where there is
        none), n_readers (adjudicators left out), how (adjudicated, agreed, median, single, unsettled), why (of `WHYS`), is_drawn (a blind first read
        of it counts in `drawn_votes`).
    """
    reads = triage_data.reads.loc[triage_data.reads["sample"].ge(0)]
    found = _levels(_blind(reads) if blind else reads, "sample")
    row = triage_data.samples["row"].to_numpy()[found["sample"].to_numpy(dtype=np.int64)]
    drawn = blind_reads(reads).loc[lambda counted: counted["is_drawn"], "sample"]
    found.insert(1, "row", row.astype(np.int64))
    return found.assign(is_drawn=found["sample"].isin(drawn))


def case_levels(triage_data: TriageData, *, blind: bool = False) -> pd.DataFrame:
    """The level that stands of every case whose own need physicians here have judged (gold audit); precedence and `blind` as in `response_levels`.

    Returns:
        One row a case, by row: row (of `triage_data.cases`), level, n_readers, how, why.
    """
    reads = triage_data.reads.loc[triage_data.reads["sample"].lt(0)]
    return _levels(_blind(reads) if blind else reads, "row")


def _blind(reads: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([first_reads(reads), settlements(reads)])


def _levels(reads: pd.DataFrame, key: str) -> pd.DataFrame:
    ordered = in_order(reads)
    is_settled = ordered["stage"].eq(Stage.ADJUDICATED)
    items = np.unique(ordered[key].to_numpy(dtype=np.int64))
    standing = ordered.loc[~is_settled].drop_duplicates([key, "rater"], keep="last")
    number = np.searchsorted(items, standing[key].to_numpy(dtype=np.int64))
    label, level = standing["label"], levels_of(standing["label"])
    told, n = ~np.isnan(level), len(items)
    readers = np.bincount(number, minlength=n)
    n_told = np.bincount(number[told], minlength=n)
    n_removed = np.bincount(number[label.eq(Acuity.REMOVE).to_numpy(dtype=bool)], minlength=n)
    least, most = np.full(n, -np.inf), np.full(n, np.inf)
    np.maximum.at(least, number[told], np.floor(level[told]))
    np.minimum.at(most, number[told], np.ceil(level[told]))
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, number[told], level[told])
    np.maximum.at(highest, number[told], level[told])
    of_one_kind = (n_told == readers) | (n_removed == readers) | (n_told + n_removed == 0)
    conflicts = ~of_one_kind | (least - most >= LEVELS_APART)
    agreed = np.where((n_told > 0) & (lowest != highest), MEDIAN, AGREED)
    how = np.select([conflicts, readers == 1], [UNSETTLED, SINGLE], agreed).astype(object)
    none = np.where(n_removed > 0, Acuity.REMOVE.value, Label.CANNOT_ASSESS.value)
    why = np.select([conflicts, n_told > 0], [UNSETTLED, ""], none).astype(object)
    found = np.where(why == "", medians(number[told], level[told], n), np.nan)
    final = ordered.loc[is_settled].drop_duplicates(key, keep="last")
    place = np.searchsorted(items, final[key].to_numpy(dtype=np.int64))
    found[place] = levels_of(final["label"])
    how[place] = ADJUDICATED
    why[place] = final["label"].where(final["label"].isin(WHYS), "").to_numpy(dtype=object)
    return pd.DataFrame({key: items, "level": found, "n_readers": readers, "how": how, "why": why})


# ---------------------------------------------------------------- changes of the gold


def with_physicians_gold(triage_data: TriageData) -> TriageData:
    """The same with the gold that physicians here have settled; nothing that is stored changes, and votes and spread stay as they were.

    A level here makes a case clear or a boundary, whatever it was before, ambiguous too; "remove" leaves it without gold (unlabelled). Where readers
    conflict or cannot assess it, the gold stays. Blind levels count (`case_levels`). Cases whose gold is another now have the strength `READ_HERE`.
    """
    here = case_levels(triage_data, blind=True)
    here = here.loc[here["why"].isin(["", Acuity.REMOVE])]
    place, level = here["row"].to_numpy(dtype=np.int64), here["level"].to_numpy(dtype=float)
    cases = triage_data.cases
    gold = cases["gold"].to_numpy(dtype=float).copy()
    kind = cases["kind"].to_numpy(dtype=object).copy()
    before = gold[place].copy()
    gold[place], kind[place] = level, _kinds(level)
    strength = cases["strength"].to_numpy(dtype=object).copy()
    strength[place[~_same(before, level)]] = READ_HERE
    known = list(cases["strength"].cat.categories)
    added: dict[str, Any] = {
        "gold": gold,
        "kind": pd.Categorical(kind, categories=cases["kind"].cat.categories),
        "strength": pd.Categorical(strength, categories=[*known, *({READ_HERE} - {*known})]),
    }
    return replace(triage_data, cases=cases.assign(**added))


def transitions(triage_data: TriageData) -> pd.DataFrame:
    """What physicians here say of cases' needs, beside the gold that they came with.

    Args:
        triage_data: `panels.described`, with its own gold (not `with_physicians_gold`).

    Returns:
        One row a pair, by old kind and level, then new: old_kind (`Kind`), old_gold (NaN where there was none), new_kind, new_gold (NaN where physicians
        removed the case, conflict, or cannot assess it: `why`, of `WHYS`), changed (the gold is another now, as `with_physicians_gold` takes it), n
        (cases), rows (a tuple of them). Every case that anybody here has judged is in one row.
    """
    here = case_levels(triage_data, blind=True)
    place, level = here["row"].to_numpy(dtype=np.int64), here["level"].to_numpy(dtype=float)
    old = triage_data.cases["gold"].to_numpy(dtype=float)[place]
    settled = here["why"].isin(["", Acuity.REMOVE]).to_numpy(dtype=bool)
    old_kind = triage_data.cases["kind"].to_numpy(dtype=object)[place]
    kinds = list(Kind)
    pairs = pd.DataFrame(
        {
            "old_kind": pd.Categorical(old_kind, categories=kinds),
            "old_gold": old,
            "new_kind": pd.Categorical(np.where(settled, _kinds(level), old_kind), categories=kinds),
            "new_gold": np.where(settled, level, np.nan),
            "why": here["why"].to_numpy(dtype=object),
            "changed": settled & ~_same(old, level),
            "row": place,
        }
    )
    keys = ["old_kind", "old_gold", "new_kind", "new_gold", "why", "changed"]
    grouped = pairs.groupby(keys, dropna=False, observed=True, sort=True)["row"]
    return grouped.agg(n="size", rows=lambda rows: tuple(sorted(int(row) for row in rows))).reset_index()


def _kinds(level: Floats) -> npt.NDArray[np.object_]:
    kind = np.select(
        [np.isnan(level), level != np.floor(level)], [Kind.UNLABELLED.value, Kind.BOUNDARY.value], Kind.CLEAR.value
    )
    return kind.astype(object)


def _same(one: Floats, other: Floats) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = (one == other) | (np.isnan(one) & np.isnan(other))
    return same


def read_counts(triage_data: TriageData) -> pd.DataFrame:
    """What became of the responses that physicians have read, by model and format.

    Returns:
        One row a model and format of which anything was read: model, format, n_read (responses), n_level (with a level that counts), n_unsettled,
        n_cannot_assess, n_remove (these four add up to n_read), n_drawn (blind and drawn, whatever they said), n_volunteered (the others), n_clear
        (drawn, with a level, on clear cases: the n of `triage_physicians.physicians_cells`).
    """
    found = response_levels(triage_data)
    samples = triage_data.samples[list(KEYS)].take(found["sample"].to_numpy(dtype=np.int64)).reset_index(drop=True)
    numbers, names = coded(samples, KEYS)
    n = len(names)
    why, drawn = found["why"].to_numpy(dtype=object), found["is_drawn"].to_numpy(dtype=bool)
    voted = found["sample"].isin(drawn_votes(triage_data)["sample"]).to_numpy(dtype=bool)
    clear = triage_data.cases["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)[found["row"].to_numpy(dtype=np.int64)]
    masks = {
        "n_read": np.ones(len(found), dtype=bool),
        "n_level": why == "",
        "n_unsettled": why == UNSETTLED,
        "n_cannot_assess": why == Label.CANNOT_ASSESS.value,
        "n_remove": why == Acuity.REMOVE.value,
        "n_drawn": drawn,
        "n_volunteered": ~drawn,
        "n_clear": voted & clear,
    }
    return names.assign(**{name: np.bincount(numbers[mask], minlength=n) for name, mask in masks.items()})

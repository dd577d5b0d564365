"""How far those who read levels out of responses say the same: two judges, or a judge and the physicians.

Levels are 1 (A) to 4 (D), boundaries .5; 0 stands for "looked, and found no level", which is no level and is counted apart.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.intervals import Share, share_interval
from evalcore.study.schema import Label
from evalcore.triage.data import NO_LEVEL, TriageData
from evalcore.triage.panels import N_LEVELS
from evalcore.triage.rates import clustered_summary
from evalcore.triage.reads import response_levels

Floats = npt.NDArray[np.float64]
ALWAYS = (NO_LEVEL, 1.0, 2.0, 3.0, 4.0)
"""Rows and columns that are shown whether they occur or not."""
NO_PAIR = "no response was given one level by both"
ONE_LEVEL = "both give one and the same level throughout"


@dataclass(frozen=True)
class Agreement:
    """How often two say the same.

    Attributes:
        n: Responses that both have looked at.
        n_one_none, n_other_none: Of them, those that one, or the other, found no level in.
        n_both_none: Those that neither found a level in.
        n_boundary: Those that either placed between two levels, with a level by both: not in `exact`.
        n_within: Of `n_boundary`, those where some letter of the one is a letter of the other.
        exact: Of the responses that both gave one letter, how many are the same; interval by Wilson, clustered by case. NaN without any.
        kappa: Cohen's kappa with quadratic weights over the same responses, at most 1; NaN where undefined.
        kappa_low, kappa_high: 95 %, by the jackknife that leaves out one case with all its responses (`triage_scores.clustered_summary`).
        reason: Why kappa or its interval is undefined; "" where neither is.
    """

    n: int
    n_one_none: int
    n_other_none: int
    n_both_none: int
    n_boundary: int
    n_within: int
    exact: Share
    kappa: float
    kappa_low: float
    kappa_high: float
    reason: str


def between(triage_data: TriageData, one: str, other: str, *, asked: str) -> pd.DataFrame:
    """One judge's levels by another's, over the responses of a format that both have looked at.

    Returns:
        One row a pair of levels: one, other (`ALWAYS`, and boundaries where they occur), n (responses), n_one (those that the one gave this
        level); by one and other, from no level to D.
    """
    pairs = _of_judges(triage_data, one, other, asked)
    return _cells(pairs["one"].to_numpy(dtype=float), pairs["other"].to_numpy(dtype=float))


def against_physicians(
    triage_data: TriageData, judge: str, *, asked: str | None = None, drawn_only: bool = False
) -> pd.DataFrame:
    """Physicians' levels of responses (one) by a judge's (other); see `between`.

    The physicians' level is the blind one of `triage_reads.response_levels`: reads revised once the judge was shown agree with it, and would count as its
    being right. What they could not assess has no level; what they have not settled, or removed, is left out.

    Args:
        drawn_only: Only responses that a physician read as part of a draw. The others may have been chosen because of a judge's level.
    """
    pairs = _of_physicians(triage_data, judge, asked=asked, drawn_only=drawn_only)
    return _cells(pairs["one"].to_numpy(dtype=float), pairs["other"].to_numpy(dtype=float))


def agreement_between(triage_data: TriageData, one: str, other: str, *, asked: str) -> Agreement:
    """How often two judges say the same of the responses of a format."""
    return _agreement(_of_judges(triage_data, one, other, asked))


def agreement_with_physicians(
    triage_data: TriageData, judge: str, *, asked: str | None = None, drawn_only: bool = False
) -> Agreement:
    """How often a judge says the same as the physicians; see `against_physicians`."""
    return _agreement(_of_physicians(triage_data, judge, asked=asked, drawn_only=drawn_only))


def _of_judges(triage_data: TriageData, one: str, other: str, asked: str) -> pd.DataFrame:
    """One row a response that both have looked at: row (of `cases`), one, other."""
    of_format = triage_data.samples["format"].eq(asked).to_numpy()
    said = [_levels(triage_data, judge) for judge in (one, other)]
    kept = np.flatnonzero(of_format & ~np.isnan(said[0]) & ~np.isnan(said[1]))
    row = triage_data.samples["row"].to_numpy()[kept]
    return pd.DataFrame({"row": row, "one": said[0][kept], "other": said[1][kept]})


def _of_physicians(triage_data: TriageData, judge: str, *, asked: str | None, drawn_only: bool) -> pd.DataFrame:
    found = response_levels(triage_data, blind=True)
    place = found["sample"].to_numpy(dtype=np.int64)
    level = found["level"].to_numpy(dtype=float)
    level = np.where(found["why"].eq(Label.CANNOT_ASSESS).to_numpy(), NO_LEVEL, level)
    theirs = _levels(triage_data, judge)[place]
    kept = ~np.isnan(level) & ~np.isnan(theirs)
    if asked is not None:
        kept &= triage_data.samples["format"].eq(asked).to_numpy()[place]
    if drawn_only:
        kept &= found["is_drawn"].to_numpy(dtype=bool)
    row = triage_data.samples["row"].to_numpy()[place[kept]]
    return pd.DataFrame({"row": row, "one": level[kept], "other": theirs[kept]})


def _levels(triage_data: TriageData, judge: str) -> Floats:
    if judge not in triage_data.levels:
        return np.full(len(triage_data.samples), np.nan)
    return triage_data.levels[judge].to_numpy(dtype=float)


def _cells(one: Floats, other: Floats) -> pd.DataFrame:
    levels = np.unique(np.concatenate([ALWAYS, one, other]))
    n = len(levels)
    number = np.searchsorted(levels, one) * n + np.searchsorted(levels, other)
    counts = np.bincount(number, minlength=n * n).reshape(n, n)
    return pd.DataFrame(
        {
            "one": np.repeat(levels, n),
            "other": np.tile(levels, n),
            "n": counts.ravel(),
            "n_one": np.repeat(counts.sum(axis=1), n),
        }
    )


def _agreement(pairs: pd.DataFrame) -> Agreement:
    one, other = pairs["one"].to_numpy(dtype=float), pairs["other"].to_numpy(dtype=float)
    none, other_none = one == NO_LEVEL, other == NO_LEVEL
    told = ~none & ~other_none
    letters = told & (one == np.floor(one)) & (other == np.floor(other))
    overlap = (np.floor(one) <= np.ceil(other)) & (np.floor(other) <= np.ceil(one))
    exact = share_interval((one == other)[letters], pairs["row"].to_numpy()[letters])
    kappa, low, high, reason = _kappa(one[letters], other[letters], pairs["row"].to_numpy()[letters])
    return Agreement(
        n=len(pairs),
        n_one_none=int(none.sum()),
        n_other_none=int(other_none.sum()),
        n_both_none=int((none & other_none).sum()),
        n_boundary=int((told & ~letters).sum()),
        n_within=int((told & ~letters & overlap).sum()),
        exact=exact,
        kappa=kappa,
        kappa_low=low,
        kappa_high=high,
        reason=reason,
    )


def _kappa(one: Floats, other: Floats, cases: npt.NDArray[np.int64]) -> tuple[float, float, float, str]:
    """Cohen's kappa with quadratic weights (Cohen 1968), its interval by case, and why either is NaN."""
    if not len(one):
        return float("nan"), float("nan"), float("nan"), NO_PAIR
    items = np.zeros((len(one), N_LEVELS, N_LEVELS))
    items[np.arange(len(one)), one.astype(np.int64) - 1, other.astype(np.int64) - 1] = 1
    whole = pd.DataFrame(index=[0])
    found = clustered_summary(whole, np.zeros(len(one), dtype=np.int64), cases, items).iloc[0]
    kappa, low, high = (float(found[f"kappa_quadratic{bound}"]) for bound in ("", "_low", "_high"))
    return kappa, low, high, ONE_LEVEL if np.isnan(kappa) else str(found["kappa_quadratic_reason"])

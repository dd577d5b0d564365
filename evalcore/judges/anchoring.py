"""The anchoring shift: which of their first reads physicians changed after they had seen the judge's label."""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.judges.record import OVERALL, points_words, rate_cells, with_kinds
from evalcore.stats.arrays import Floats
from evalcore.stats.estimator import effective_readers
from evalcore.stats.intervals import LEVEL, share_interval, share_words, wilson
from evalcore.stats.wording import counted
from evalcore.study.analysis import PHYSICIANS_WORDS
from evalcore.study.schema import Physicians

CHANGED, TOWARD, AWAY = "changed", "toward", "away"
# each movement, and of which first reads it is a share: all that were followed by a reveal, or those of them that differed, or agreed
MOVEMENTS: Mapping[str, str] = {CHANGED: "revealed", TOWARD: "differed", AWAY: "agreed"}
GROUPINGS = (OVERALL, "axis", "sign", "kind", "rater")
DEFAULT_GROUPINGS = GROUPINGS[:-1]
MIN_EXAMPLES = 5  # conversations; with fewer the effect of seeing the label has no interval
MIN_READERS = 3  # effective ones; with fewer an interval holds for those who have read, and for nobody else
COLUMNS = [
    "judge", "grouping", "group", "movement", "denominator", "n", "n_moved", "share", "low", "high", "physicians", "n_examples",
    "n_readers", "n_effective_readers", "n_without_label", "n_not_revealed", "n_undecided", "n_control",
]  # fmt: skip


def anchoring(reads: pd.DataFrame, *, by: Sequence[str] = DEFAULT_GROUPINGS) -> pd.DataFrame:
    """How many blind first reads their readers changed once the judge's label was shown, toward the judge and away from it.

        changed   revised label differs from the first          of all first reads that were followed by a reveal
        toward    revised label is the judge's                  of those that differed from the judge
        away      revised label is not the judge's any more     of those that agreed with the judge

    A read without a `revised` verdict was kept; "cannot assess" is a label like the others. Intervals are for physicians in general, by conversations
    and readers at once (Cameron, Gelbach and Miller 2011), from three effective readers on: 1 / sum q^2, where reader k has made the share q_k of the
    reads. With fewer they are for those who have read, by conversations alone. With p the share of n reads, and p_g that without conversation g:

        variance      v = max(v_G, v_G + v_K - v_GK), each a jackknife: v_G = (G-1)/G sum_g (p_g - p)^2; K by reader, GK by both
        effective n   n_eff = n / max(1, v / (p (1-p) / (n-1))) (t(n-1) / t(d))^2, at least the effective readers, d = min(G, readers) - 1
        interval      Wilson on p and n_eff

    Returns:
        `COLUMNS`, three rows a judge and group, one a movement: n (first reads) and n_moved, share in [0, 1] with low and high (NaN where n is 0),
        physicians (whom the interval is for), and the first reads of the group that were left out, each counted once: n_without_label, n_not_revealed,
        n_undecided (they differ, and the reader has yet to keep or revise), n_control (the reader looked again without the label).
    """
    reads = with_kinds(reads).assign(overall=OVERALL)
    revised = reads["revised_label"].fillna(reads["label"])
    differed, labelled = reads["label"].ne(reads["judge_label"]), reads["judge_label"].notna()
    is_control = reads["looked_label"].notna()
    shown = labelled & reads["revealed"] & ~is_control
    undecided = shown & differed & ~reads["decided"] & reads["revised_label"].isna()
    counted = shown & ~undecided
    columns = {
        "without_label": ~labelled,
        "not_revealed": labelled & ~reads["revealed"] & ~is_control,
        "control": labelled & is_control,
        "undecided": undecided,
        "revealed": counted,
        "differed": counted & differed,
        "agreed": counted & ~differed,
        "changed": revised.ne(reads["label"]),
        "toward": revised.eq(reads["judge_label"]),
        "away": revised.ne(reads["judge_label"]),
    }
    # no more than is counted: each group's rows are copied, and the reads are wide
    moved = reads.assign(**columns)[[*dict.fromkeys(("judge", "rater", "example_id", *by)), *columns]]
    rows = [
        {"judge": judge, "grouping": grouping, "group": group, **row}
        for judge, of_judge in moved.groupby("judge", sort=True)
        for grouping in dict.fromkeys(by)
        for group, part in of_judge.groupby(grouping, sort=True)
        for row in _movements(part)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _movements(reads: pd.DataFrame) -> list[dict[str, object]]:
    left_out = {name: int(reads[name.removeprefix("n_")].sum()) for name in _LEFT_OUT}
    rows = []
    for movement, denominator in MOVEMENTS.items():
        counted = reads.loc[reads[denominator]]
        share = share_interval(counted[movement], counted["example_id"])
        low, high = share.low, share.high
        effective = effective_readers(counted["rater"].value_counts().to_numpy().astype(np.float64))
        in_general = effective >= MIN_READERS
        if in_general:
            hits = counted[movement].to_numpy(dtype=float)
            n, both = len(hits), np.stack([np.ones(len(hits)), hits])
            variances, (n_examples, n_readers) = _jackknives(counted, both, lambda sums: sums[1] / sums[0])
            variance = max(variances[0], variances[0] + variances[1] - variances[2])
            alone = share.share * (1 - share.share) / (n - 1)
            tail = (1 + LEVEL) / 2
            few = float(stdtrit(n - 1, tail) / stdtrit(max(min(n_examples, n_readers) - 1, 1), tail)) ** 2
            size = min(max(n / (max(1.0, variance / alone) if alone > 0 else 1.0) * few, effective), n)
            low, high = map(float, wilson(share.share * size, size))
        whom = Physicians.IN_GENERAL if in_general else Physicians.THESE
        values = movement, denominator, share.n, share.n_hits, share.share, low, high, whom
        of_whom = share.n_clusters, counted["rater"].nunique(), effective
        rows.append(dict(zip(COLUMNS[3:14], values + of_whom, strict=True)) | left_out)
    return rows


def _jackknives(
    reads: pd.DataFrame, sums: Floats, statistic: Callable[[Floats], Floats]
) -> tuple[list[float], list[int]]:
    total = sums.sum(axis=1)
    variances, sizes = [], []
    for names in (["example_id"], ["rater"], ["example_id", "rater"]):
        codes = reads.groupby(names, sort=False, observed=True).ngroup().to_numpy()
        n = int(codes.max(initial=-1)) + 1
        without = statistic(total[:, None] - np.stack([np.bincount(codes, row, n) for row in sums]))
        squares = (without - statistic(total)) ** 2
        variances.append(float((n - 1) / n * squares.sum()) if n > 1 else 0.0)
        sizes.append(n)
    return variances, sizes[:2]


class Effect(msgspec.Struct, frozen=True):
    """What seeing the judge's label changes, against a second look without it: `effect`."""

    n_shown: int  # first reads that differed from the judge and whose reader saw its label
    n_changed_shown: int
    n_control: int  # those whose reader looked again without it
    n_changed_control: int
    share_shown: float  # changed, in [0, 1], weighted by one over the probability of the arm; NaN without a read
    share_control: float
    difference: float  # share_shown - share_control in [-1, 1]; its 95 % interval is NaN where `reason` says why
    low: float
    high: float
    physicians: Physicians  # whom the interval is for
    reason: str


def effect(reads: pd.DataFrame) -> Effect | None:
    """How many more first reads that differ from the judge are changed after seeing its label than on a second look without it.

    Only first reads that differ count: where the label was shown, only these were asked again. `reads` are `blind_reads` of one judge; None where no
    criteria were drawn for a second look.

        difference  d = sum_shown w y / sum_shown w - sum_control w y / sum_control w
        interval    d +- t(min(G, readers) - 1) sqrt(max(v_G, v_G + v_K - v_GK)), jackknives as in `anchoring`; of fewer than three effective
                    readers t(G - 1) sqrt(v_G), for these physicians
    """
    drawn = reads.loc[reads["control_share"].notna() & reads["judge_label"].notna() & reads["revealed"]]
    if drawn.empty:
        return None
    drawn = drawn.loc[drawn["label"].ne(drawn["judge_label"])]
    is_control = drawn["looked_label"].notna().to_numpy()
    after = drawn["looked_label"].where(drawn["looked_label"].notna(), drawn["revised_label"])
    y = (after.notna() & after.ne(drawn["label"])).to_numpy(dtype=float)
    share = drawn["control_share"].to_numpy(dtype=float)
    weight = 1 / np.where(is_control, share, 1 - share) if len(drawn) else np.zeros(0)
    sums = np.stack([weight * ~is_control, weight * y * ~is_control, weight * is_control, weight * y * is_control])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums.sum(axis=1)[1::2] / sums.sum(axis=1)[::2]
        (by_example, by_reader, by_both), (n_examples, n_readers) = _jackknives(
            drawn, sums, lambda total: total[1] / total[0] - total[3] / total[2]
        )
    value = float(shares[0] - shares[1])
    physicians, variance, freedom = Physicians.THESE, by_example, n_examples - 1
    if effective_readers(drawn["rater"].value_counts().to_numpy().astype(np.float64)) >= MIN_READERS:
        physicians, freedom = Physicians.IN_GENERAL, min(n_examples, n_readers) - 1
        variance = max(by_example, by_example + by_reader - by_both)
    reason = (
        "one arm has no first read that differs from the judge" if math.isnan(value)
        else f"fewer than {MIN_EXAMPLES} conversations" if n_examples < MIN_EXAMPLES
        else "an arm rests on one conversation or reader" if math.isnan(variance) or variance <= 0
        else ""
    )  # fmt: skip
    half = math.nan if reason else float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return Effect(
        n_shown=int((~is_control).sum()),
        n_changed_shown=int(y[~is_control].sum()),
        n_control=int(is_control.sum()),
        n_changed_control=int(y[is_control].sum()),
        share_shown=float(shares[0]),
        share_control=float(shares[1]),
        difference=value,
        low=math.nan if reason else max(value - half, -1.0),
        high=math.nan if reason else min(value + half, 1.0),
        physicians=physicians,
        reason=reason,
    )


def effect_words(effect: Effect) -> str:
    """The effect of seeing the judge's label, in a sentence."""
    arms = (
        f"Of first reads that differed from the judge, {share_words(effect.n_changed_shown, effect.n_shown, effect.share_shown)} were changed "
        f"after seeing its label, and {share_words(effect.n_changed_control, effect.n_control, effect.share_control)} on a second look without it, "
        "drawn at random"
    )
    if effect.reason:
        return f"{arms}. There is no interval of the difference: {effect.reason}."
    what = "no effect of seeing the label is shown: it changes"
    if effect.low > 0 or effect.high < 0:
        what = "seeing the label changes"
    return f"{arms}: {what} {points_words(effect.difference, effect.low, effect.high)} points of them, for {PHYSICIANS_WORDS[effect.physicians]}."


_WORDS: Mapping[str, tuple[str, str]] = {
    CHANGED: (
        "of the first reads were changed after their readers had seen the judge's label",
        "No first read was followed by a reveal",
    ),
    TOWARD: (
        "of the first reads that differed from the judge were changed to its label",
        "None of the first reads differed from the judge",
    ),
    AWAY: (
        "of the first reads that agreed with the judge were changed away from its label",
        "None of the first reads agreed with the judge",
    ),
}
_LEFT_OUT = {
    "n_not_revealed": "were not followed by a reveal of this judge",
    "n_without_label": "are of criteria that this judge has not labelled",
    "n_undecided": "wait for their reader to keep or revise",
    "n_control": "were looked at again without the judge's label, as a control",
}


def sentences(rows: pd.DataFrame) -> list[str]:
    """The movements of one judge and group in words, from its rows of `anchoring`."""
    shares = zip(rows["movement"], rows["n"], rate_cells(rows, "share", "n_moved", "n"), strict=True)
    words = [f"{share} {_WORDS[movement][0]}." if n else f"{_WORDS[movement][1]}." for movement, n, share in shares]
    moved = rows.set_index("movement")["n_moved"]
    if n_third := int(moved.get(CHANGED, 0) - moved.get(TOWARD, 0) - moved.get(AWAY, 0)):
        was = "was" if n_third == 1 else "were"
        words.append(f"{n_third:,} of the first reads that differed from the judge {was} changed to a third label.")
    return words


def population_words(rows: pd.DataFrame) -> str:
    """Whom the intervals of one judge and group are for, in a sentence; empty where nothing was counted."""
    row = rows.loc[rows["movement"].eq(CHANGED)].iloc[0]
    if not row["n"]:
        return ""
    if row["physicians"] == Physicians.IN_GENERAL:
        return f"Intervals are for physicians in general, by {counted(row['n_readers'], 'reader')} and {counted(row['n_examples'], 'conversation')}."
    readers = f"{counted(row['n_readers'], 'reader')}, {row['n_effective_readers']:.1f} effective"
    return f"Intervals are for these physicians only: physicians in general take at least {MIN_READERS} effective readers ({readers})."


def left_out_words(rows: pd.DataFrame) -> str:
    """Which first reads of one judge and group were left out, in words; empty where none was."""
    row = rows.iloc[0]
    parts = [f"{row[name]:,} {why}" for name, why in _LEFT_OUT.items() if row[name]]
    return f"First reads left out: {', '.join(parts)}." if parts else ""

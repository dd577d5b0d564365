"""The anchoring shift: which of their first reads physicians changed after they had seen the judge's label."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.intervals import LEVEL, interval_words, share_interval, share_words, wilson
from evalcore.metrics.judge_record import with_kinds
from evalcore.metrics.wording import counted
from evalcore.schema import Physicians

CHANGED, TOWARD, AWAY = "changed", "toward", "away"
MOVEMENTS: Mapping[str, str] = {CHANGED: "revealed", TOWARD: "differed", AWAY: "agreed"}
"""Each movement, and of which first reads it is a share: all that were followed by a reveal; those of them that differed from
the judge's label; those that agreed with it."""
OVERALL = "overall"
GROUPINGS = (OVERALL, "axis", "sign", "kind", "rater")
DEFAULT_GROUPINGS = GROUPINGS[:-1]
MIN_READERS = 3
"""With fewer effective readers an interval holds for those who have read, and for nobody else."""
COLUMNS = [
    "judge", "grouping", "group", "movement", "denominator", "n", "n_moved", "share", "low", "high", "physicians", "n_examples",
    "n_readers", "n_effective_readers", "n_without_label", "n_not_revealed", "n_undecided",
]  # fmt: skip


def anchoring(reads: pd.DataFrame, *, by: Sequence[str] = DEFAULT_GROUPINGS) -> pd.DataFrame:
    """How many blind first reads their readers changed once the judge's label was shown, toward the judge and away from it.

        changed   revised label differs from the first          of all first reads that were followed by a reveal
        toward    revised label is the judge's                  of those that differed from the judge
        away      revised label is not the judge's any more     of those that agreed with the judge

    A read without a `revised` verdict was kept. Changed is toward, away, and changes from one difference to another. "Cannot
    assess" is a label like the others. A change need not be a mistake: a judge can point to what its reader overlooked. Nor need seeing the
    label be its cause: a second look alone changes some.

    Intervals are for physicians in general, by conversations and readers at once (Cameron, Gelbach and Miller 2011), from three effective
    readers on: 1 / sum q^2, where reader k has made the share q_k of the reads. With fewer, and of one reader, they are for those who have read,
    by conversations alone. With p the share of n reads, and p_g, p_k, p_gk the share without conversation g, reader k, their reads of one another:

        variance      v = max(v_G, v_G + v_K - v_GK), each a jackknife: v_G = (G-1)/G sum_g (p_g - p)^2
        effective n   n_eff = n / max(1, v / (p (1-p) / (n-1))) (t(n-1) / t(d))^2, at least the effective readers, d = min(G, readers) - 1
        interval      Wilson on p and n_eff

    Args:
        reads: As `queries.blind_reads` gives them.
        by: Some of `GROUPINGS`; `kind` is axis and sign of points together, `rater` needs that column.

    Returns:
        Three rows a judge and group, one a movement: judge, grouping, group (`overall`, or the value), movement, denominator (`revealed`,
        `differed`, `agreed`), n (first reads), n_moved (0..n), share in [0, 1] with the 95 % interval low to high (NaN where n is 0),
        physicians (whom the interval is for, a `Physicians`), n_examples, n_readers, n_effective_readers (0 where n is 0); and the first
        reads of the group that were left out, each counted once: n_without_label (the judge has no label on the item), n_not_revealed
        (its label was not shown to the reader), n_undecided (they differ, and the reader has yet to keep or revise).

    Raises:
        ValueError: `by` names something else.
    """
    if unknown := sorted(set(by) - set(GROUPINGS)):
        msg = f"by: {', '.join(unknown)} came, expected some of {', '.join(GROUPINGS)}"
        raise ValueError(msg)
    known = _moved(with_kinds(reads).assign(overall=OVERALL))
    rows = []
    for judge, of_judge in known.groupby("judge", sort=True):
        for grouping in dict.fromkeys(by):
            for group, part in of_judge.groupby(grouping, sort=True):
                rows += [{"judge": judge, "grouping": grouping, "group": group, **row} for row in _movements(part)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _moved(reads: pd.DataFrame) -> pd.DataFrame:
    """Each read with what became of it."""
    revised = reads["revised_label"].fillna(reads["label"])
    differed = reads["label"].ne(reads["judge_label"])
    labelled = reads["judge_label"].notna()
    shown = labelled & reads["revealed"]
    undecided = shown & differed & ~reads["decided"] & reads["revised_label"].isna()
    counted = shown & ~undecided
    return reads.assign(
        without_label=~labelled,
        not_revealed=labelled & ~reads["revealed"],
        undecided=undecided,
        revealed=counted,
        differed=counted & differed,
        agreed=counted & ~differed,
        changed=revised.ne(reads["label"]),
        toward=revised.eq(reads["judge_label"]),
        away=revised.ne(reads["judge_label"]),
    )


def _movements(reads: pd.DataFrame) -> list[dict[str, object]]:
    left_out = {f"n_{name}": int(reads[name].sum()) for name in ("without_label", "not_revealed", "undecided")}
    rows = []
    for movement, denominator in MOVEMENTS.items():
        counted = reads.loc[reads[denominator]]
        found = share_interval(counted[movement], counted["example_id"])
        low, high = found.low, found.high
        loads = counted["rater"].value_counts().to_numpy(dtype=float)
        effective = float(loads.sum() ** 2 / (loads**2).sum()) if len(loads) else 0.0
        in_general = effective >= MIN_READERS
        if in_general:
            low, high = _in_general(counted, counted[movement].to_numpy(dtype=float), len(loads), effective)
        rows.append(
            {
                "movement": movement,
                "denominator": denominator,
                "n": found.n,
                "n_moved": found.n_hits,
                "share": found.share,
                "low": low,
                "high": high,
                "physicians": Physicians.IN_GENERAL if in_general else Physicians.THESE,
                "n_examples": found.n_clusters,
                "n_readers": len(loads),
                "n_effective_readers": effective,
                **left_out,
            }
        )
    return rows


def _in_general(
    reads: pd.DataFrame, hits: npt.NDArray[np.float64], n_readers: int, effective_readers: float
) -> tuple[float, float]:
    """The interval of a share for physicians in general: clustered by conversation and by reader."""
    n, share = len(hits), float(hits.mean())
    example, reader = (pd.factorize(reads[name])[0] for name in ("example_id", "rater"))
    n_examples = int(example.max()) + 1
    by_example = jackknife_variance(hits, example)
    by_reader, by_both = (
        jackknife_variance(hits, codes) for codes in (reader, pd.factorize(example * n_readers + reader)[0])
    )
    variance = max(by_example, by_example + by_reader - by_both)
    alone = share * (1 - share) / (n - 1)
    effect = max(1.0, variance / alone) if alone > 0 else 1.0
    tail = (1 + LEVEL) / 2
    few = float(stdtrit(n - 1, tail) / stdtrit(max(min(n_examples, n_readers) - 1, 1), tail)) ** 2
    size = min(max(n / effect * few, effective_readers), n)
    low, high = wilson(share * size, size)
    return float(low), float(high)


def jackknife_variance(values: npt.NDArray[np.float64], cluster: npt.NDArray[np.int64]) -> float:
    """The variance of a mean by leaving out one cluster at a time; 0 where there is only one.

    Args:
        values: One a read.
        cluster: Of each read, 0, 1, ...
    """
    sizes, sums = np.bincount(cluster).astype(float), np.bincount(cluster, weights=values)
    n_clusters = len(sizes)
    if n_clusters < 2:  # noqa: PLR2004 - one cluster does not vary
        return 0.0
    without = (sums.sum() - sums) / (sizes.sum() - sizes)
    return float((n_clusters - 1) / n_clusters * ((without - values.mean()) ** 2).sum())


_WORDS: Mapping[str, str] = {
    CHANGED: "of the first reads were changed after their readers had seen the judge's label",
    TOWARD: "of the first reads that differed from the judge were changed to its label",
    AWAY: "of the first reads that agreed with the judge were changed away from its label",
}
_NONE: Mapping[str, str] = {
    CHANGED: "No first read was followed by a reveal",
    TOWARD: "None of the first reads differed from the judge",
    AWAY: "None of the first reads agreed with the judge",
}


def sentences(rows: pd.DataFrame) -> list[str]:
    """The movements of one group in words, for the screen.

    Args:
        rows: Rows of `anchoring`, of one judge and group.
    """
    said = []
    for row in rows.to_dict(orient="records"):
        share = f"{share_words(row['n_moved'], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"
        said.append((f"{share} {_WORDS[row['movement']]}" if row["n"] else _NONE[row["movement"]]) + ".")
    return said


def population_words(rows: pd.DataFrame) -> str:
    """Whom the intervals of one group are for, in a sentence; empty where nothing was counted.

    Args:
        rows: Rows of `anchoring`, of one judge and group.
    """
    row = rows.loc[rows["movement"].eq(CHANGED)].iloc[0]
    if not row["n"]:
        return ""
    if row["physicians"] == Physicians.IN_GENERAL:
        return f"Intervals are for physicians in general, by {counted(row['n_readers'], 'reader')} and {counted(row['n_examples'], 'conversation')}."
    said = f"{counted(row['n_readers'], 'reader')}, {row['n_effective_readers']:.1f} effective"
    return f"Intervals are for these physicians only: physicians in general take at least {MIN_READERS} effective readers ({said})."


def left_out_words(rows: pd.DataFrame) -> str:
    """Which first reads of one group were left out, in words; empty where none was.

    Args:
        rows: Rows of `anchoring`, of one judge and group.
    """
    reasons = {
        "n_not_revealed": "were not followed by a reveal of this judge",
        "n_without_label": "are of criteria that this judge has not labelled",
        "n_undecided": "wait for their reader to keep or revise",
    }
    said = [
        f"{row[name]:,} {why}"
        for row in rows.head(1).to_dict(orient="records")
        for name, why in reasons.items()
        if row[name]
    ]
    return f"First reads left out: {', '.join(said)}." if said else ""

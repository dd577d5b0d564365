"""How often a judge is right, by kind of criterion, measured against physicians' blind first reads."""

import math

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.judges.reads import Reads, weighted_reads
from evalcore.stats import confusion
from evalcore.stats.intervals import rate_words
from evalcore.study.schema import Label

KIND, SIGN, ALL = "kind", "sign", "all"
"""Values of `grouping`: axis and sign together, the sign alone, everything."""
ALL_CRITERIA = "all criteria"
DESIRABLE, UNDESIRABLE, NO_POINTS = "desirable", "undesirable", "no points known"
SIGNS = (DESIRABLE, UNDESIRABLE, NO_POINTS)
NO_AXIS = "no axis"
MIN_KIND_READS = 20
"""With fewer reads of a kind, the record of a wider one is shown."""
MIN_READS = 5
"""With fewer reads no share is said."""


class Record(msgspec.Struct, frozen=True):
    """How often a judge is right on one kind of criterion: a row of `judge_record`."""

    grouping: str
    kind: str
    n: int
    n_right: int
    share: float
    low: float
    high: float
    n_examples: int
    weighted: bool = False

    @property
    def words(self) -> str:
        """The share with its interval and denominator."""
        return rate_words(self.share, self.low, self.high, n_hits=self.n_right, n=self.n, weighted=self.weighted)


def sign_codes(points: pd.Series) -> npt.NDArray[np.int64]:
    """What criteria's points say of what they name, as places in `SIGNS`.

    >>> sign_codes(pd.Series([7.0, -3.0, None]))
    array([0, 1, 2])
    """
    values = points.to_numpy(dtype=float)
    return np.select([values > 0, values < 0], [0, 1], 2).astype(np.int64)


def with_kinds(reads: pd.DataFrame) -> pd.DataFrame:
    """The reads with the columns sign, kind ("context awareness, undesirable"), and axis in words."""
    signs = pd.Series(np.array(SIGNS, dtype=object)[sign_codes(reads["points"])], index=reads.index, dtype="str")
    axes = reads["axis"].str.replace("_", " ").fillna(NO_AXIS)
    return reads.assign(axis=axes, sign=signs, kind=axes + ", " + signs)


def judge_record(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """How many blind first reads each judge's label agrees with, by kind of criterion, by sign, and in all: the accuracy of `confusion.rates`.

    Each of the `blind_reads` counts once, by the weight of its item, so a criterion that two physicians have read counts twice.

    Returns:
        One row a judge and kind that has reads, the widest first: judge, grouping (`all`, `sign` or `kind`), kind ("accuracy, undesirable"),
        n (reads met or not met, of items that the judge labelled so), n_right, share in [0, 1] (weighted) with the 95 % interval low to
        high, clustered by example (NaN where n is 0), n_examples, weighted (reads count differently), and what was left out: n_cannot_assess
        (reads without an answer), n_without_label (reads of items that the judge has not labelled, or could not assess).
    """
    counted = with_kinds(weighted_reads(reads, which))
    weighted = bool(counted["weight"].ne(1).any())
    rows = []
    for judge, of_judge in counted.groupby("judge", sort=True):
        for grouping, groups in ((ALL, [ALL_CRITERIA] * len(of_judge)), (SIGN, of_judge[SIGN]), (KIND, of_judge[KIND])):
            table = _counted(of_judge, np.asarray(groups, dtype=object))
            rows.append(table.assign(judge=judge, grouping=grouping, weighted=weighted))
    return pd.concat(rows, ignore_index=True)[COLUMNS] if rows else pd.DataFrame(columns=COLUMNS)


COLUMNS = [
    "judge", "grouping", "kind", "n", "n_right", "share", "low", "high", "n_examples", "weighted", "n_cannot_assess", "n_without_label",
]  # fmt: skip


def _counted(reads: pd.DataFrame, groups: npt.NDArray[np.object_]) -> pd.DataFrame:
    group, kinds = pd.factorize(groups, sort=True)
    answered = reads["label"].isin(ANSWERS).to_numpy(dtype=bool)
    labelled = reads["judge_label"].isin(ANSWERS).to_numpy(dtype=bool)
    kept = np.flatnonzero(answered & labelled)
    met, judged = (reads[name].eq(Label.MET).to_numpy(dtype=bool)[kept] for name in ("label", "judge_label"))
    counts = np.column_stack([judged & met, judged & ~met, ~judged & met, ~judged & ~met]).astype(np.int64)
    examples = pd.factorize(reads["example_id"])[0]
    rates = confusion.rates(counts, reads["weight"].to_numpy()[kept], examples[kept], group[kept], len(kinds))
    accuracy = rates[confusion.ACCURACY].rename(columns={"n_hits": "n_right", "n_clusters": "n_examples"})
    return accuracy.assign(
        kind=kinds,
        n=accuracy["n"].astype(np.int64),
        n_cannot_assess=np.bincount(group[~answered], minlength=len(kinds)),
        n_without_label=np.bincount(group[answered & ~labelled], minlength=len(kinds)),
    )


ANSWERS = (Label.MET, Label.NOT_MET)


def record_for(records: pd.DataFrame, axis: str | None, points: float | None) -> Record:
    """The record of one judge to show beside a criterion: that of its kind, of its sign, or of everything, the first with 20 reads or more.

    Where even everything has fewer than five reads, it is that of the kind, to say how few there are.

    Raises:
        ValueError: The rows are of several judges.
    """
    by_kind = _by_kind(records)
    sign = NO_POINTS if points is None or math.isnan(points) else UNDESIRABLE if points < 0 else DESIRABLE
    kind = f"{axis.replace('_', ' ') if isinstance(axis, str) else NO_AXIS}, {sign}"
    wanted = ((KIND, kind), (SIGN, sign), (ALL, ALL_CRITERIA))
    candidates = [by_kind.get(key, Record(*key, 0, 0, math.nan, math.nan, math.nan, 0)) for key in wanted]
    if candidates[-1].n < MIN_READS:
        return candidates[0]
    return next((record for record in candidates if record.n >= MIN_KIND_READS), candidates[-1])


def _by_kind(records: pd.DataFrame) -> dict[tuple[str, str], Record]:
    rows = records[list(Record.__struct_fields__)].to_dict(orient="records")
    by_kind = {(row["grouping"], row["kind"]): Record(**{str(name): row[name] for name in row}) for row in rows}
    if len(by_kind) != len(rows):
        msg = f"expected the records of one judge, got those of {records['judge'].nunique()}"
        raise ValueError(msg)
    return by_kind


def sentence(record: Record) -> str:
    """A record in words, for the screen.

    >>> sentence(Record("kind", "accuracy, undesirable", 148, 92, 92 / 148, 0.5404, 0.6958, 60))
    "On such criteria this judge matched physicians' blind reads in 62 % (92/148) [54 %, 70 %]."
    >>> sentence(Record("kind", "accuracy, undesirable", 3, 2, 2 / 3, 0.1, 0.9, 3))
    'Too few blind reads yet to say how often this judge matches physicians on such criteria (3).'
    """
    criteria = {KIND: "such criteria", SIGN: f"{_adjective(record.kind)} criteria", ALL: ALL_CRITERIA}[record.grouping]
    if record.n < MIN_READS:
        return f"Too few blind reads yet to say how often this judge matches physicians on {criteria} ({record.n})."
    return f"On {criteria} this judge matched physicians' blind reads in {record.words}."


def finding(records: pd.DataFrame) -> str:
    """How often a judge is right, in a sentence: in all, and by sign of the points where both have been read."""
    by_kind = _by_kind(records)
    of_all = f"{records['judge'].iloc[0]} matched physicians' blind reads in {by_kind[ALL, ALL_CRITERIA].words}"
    signs = [record for (grouping, _), record in by_kind.items() if grouping == SIGN and record.n]
    if len(signs) < len((DESIRABLE, UNDESIRABLE)):
        return f"{of_all}."
    return f"{of_all}: {', '.join(f'{sign.words} on {_adjective(sign.kind)} criteria' for sign in signs)}."


def _adjective(sign: str) -> str:
    return sign if sign != NO_POINTS else "unscored"

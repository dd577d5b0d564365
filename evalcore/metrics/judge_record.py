"""How often a judge is right, by kind of criterion, measured against physicians' blind first reads."""

import math

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.metrics.intervals import interval_words, share_interval, share_words
from evalcore.schema import Label

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


def sign_of(points: float | None) -> str:
    """What a criterion's points say of what it names.

    >>> sign_of(7), sign_of(-3), sign_of(None)
    ('desirable', 'undesirable', 'no points known')
    """
    if points is None or math.isnan(points):
        return NO_POINTS
    return UNDESIRABLE if points < 0 else DESIRABLE


def sign_codes(points: pd.Series) -> npt.NDArray[np.int64]:
    """The sign of many criteria at once, as places in `SIGNS`.

    >>> sign_codes(pd.Series([7.0, -3.0, None]))
    array([0, 1, 2])
    """
    known = points.to_numpy(dtype=float)
    return np.select([known > 0, known < 0], [0, 1], 2).astype(np.int64)


def kind_of(axis: str | None, points: float | None) -> str:
    """The kind of a criterion: its axis, and whether what it names is wanted.

    >>> kind_of("context_awareness", -3)
    'context awareness, undesirable'
    """
    return f"{axis.replace('_', ' ') if isinstance(axis, str) else NO_AXIS}, {sign_of(points)}"


def with_kinds(reads: pd.DataFrame) -> pd.DataFrame:
    """The reads with the columns sign, kind, and axis in words."""
    signs = reads["points"].map(sign_of).astype("str")
    axes = reads["axis"].str.replace("_", " ").fillna(NO_AXIS)
    return reads.assign(axis=axes, sign=signs, kind=axes + ", " + signs)


def judge_record(reads: pd.DataFrame) -> pd.DataFrame:
    """How many blind first reads each judge's label agrees with, by kind of criterion, by sign, and in all.

    Each read counts once, so a criterion that two physicians have read counts twice, and a read of a criterion that a judge could
    not assess counts as not right. Reads are not weighted by how they were drawn.

    Args:
        reads: As `queries.blind_reads` gives them.

    Returns:
        One row a judge and kind that has reads, the widest first: judge, grouping (`all`, `sign` or `kind`), kind ("accuracy, undesirable"),
        n (reads met or not met, of items that the judge labelled), n_right, share in [0, 1] with the 95 % interval low to
        high, clustered by example (NaN where n is 0), n_examples, and what was left out: n_cannot_assess (reads without an answer),
        n_without_label (reads of items that the judge has not labelled).
    """
    known = with_kinds(reads)
    rows = []
    for judge, of_judge in known.groupby("judge", sort=True):
        groups = [(ALL, ALL_CRITERIA, of_judge)]
        groups += [(name, str(kind), part) for name in (SIGN, KIND) for kind, part in of_judge.groupby(name, sort=True)]
        rows += [{"judge": judge, "grouping": name, "kind": kind, **_counted(part)} for name, kind, part in groups]
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS = [
    "judge", "grouping", "kind", "n", "n_right", "share", "low", "high", "n_examples", "n_cannot_assess", "n_without_label",
]  # fmt: skip


def _counted(reads: pd.DataFrame) -> dict[str, int | float]:
    answered = reads["label"].ne(Label.CANNOT_ASSESS)
    labelled = reads["judge_label"].notna()
    counted = reads.loc[answered & labelled]
    found = share_interval(counted["label"].eq(counted["judge_label"]), counted["example_id"])
    return {
        "n": found.n,
        "n_right": found.n_hits,
        "share": found.share,
        "low": found.low,
        "high": found.high,
        "n_examples": found.n_clusters,
        "n_cannot_assess": int((~answered).sum()),
        "n_without_label": int((answered & ~labelled).sum()),
    }


def record_for(records: pd.DataFrame, axis: str | None, points: float | None) -> Record:
    """The record to show beside a criterion: that of its kind, of its sign, or of everything, the first with 20 reads or more.

    Where even everything has fewer than five reads, it is that of the kind, to say how few there are.

    Args:
        records: As `judge_record` gives them, of one judge.
        axis: Of the criterion; None where it has none.
        points: Of the criterion; None where they are not known.

    Raises:
        ValueError: The rows are of several judges.
    """
    keys = list(zip(records["grouping"], records["kind"], strict=True))
    if len(set(keys)) != len(keys):
        msg = f"records of {records['judge'].nunique()} judges came, expected those of one"
        raise ValueError(msg)
    wanted = ((KIND, kind_of(axis, points)), (SIGN, sign_of(points)), (ALL, ALL_CRITERIA))
    found = [_record(records, keys, *key) for key in wanted]
    if found[-1].n < MIN_READS:
        return found[0]
    return next((record for record in found if record.n >= MIN_KIND_READS), found[-1])


def _record(records: pd.DataFrame, keys: list[tuple[str, str]], grouping: str, kind: str) -> Record:
    if (grouping, kind) not in keys:
        return Record(grouping, kind, 0, 0, math.nan, math.nan, math.nan, 0)
    row = records.iloc[keys.index((grouping, kind))]
    return Record(
        grouping, kind, int(row["n"]), int(row["n_right"]), float(row["share"]), float(row["low"]), float(row["high"]),
        int(row["n_examples"]),
    )  # fmt: skip


def sentence(record: Record) -> str:
    """A record in words, for the screen.

    >>> sentence(Record("kind", "accuracy, undesirable", 148, 92, 92 / 148, 0.5404, 0.6958, 60))
    'This judge is right on 62 % (92/148) [54 %, 70 %] of such criteria by blind reads.'
    >>> sentence(Record("kind", "accuracy, undesirable", 3, 2, 2 / 3, 0.1, 0.9, 3))
    'Too few blind reads yet to say how often this judge is right on such criteria (3).'
    """
    criteria = {KIND: "such criteria", SIGN: f"{_adjective(record.kind)} criteria", ALL: ALL_CRITERIA}[record.grouping]
    if record.n < MIN_READS:
        return f"Too few blind reads yet to say how often this judge is right on {criteria} ({record.n})."
    share = share_words(record.n_right, record.n, record.share)
    return f"This judge is right on {share} {interval_words(record.low, record.high)} of {criteria} by blind reads."


def finding(records: pd.DataFrame) -> str:
    """How often a judge is right, in a sentence: in all, and by sign of the points where both have been read.

    Args:
        records: As `judge_record` gives them, of one judge, with a read.
    """
    row = records.loc[records["grouping"].eq(ALL)].to_dict(orient="records")[0]
    share = f"{share_words(row['n_right'], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"
    said = f"{row['judge']} gives the label that a physician gave blind on {share} of the reads"
    signs = records.loc[records["grouping"].eq(SIGN) & records["n"].gt(0)].to_dict(orient="records")
    if len(signs) < len((DESIRABLE, UNDESIRABLE)):
        return f"{said}."
    parts = [
        f"{share_words(sign['n_right'], sign['n'], sign['share'])} on {_adjective(sign['kind'])} criteria"
        for sign in signs
    ]
    return f"{said}: {', '.join(parts)}."


def _adjective(sign: str) -> str:
    return sign if sign != NO_POINTS else "unscored"

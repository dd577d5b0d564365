"""The anchoring shift: what showing the judge's label does to physicians' first reads."""

from collections.abc import Mapping, Sequence

import pandas as pd

from evalcore.metrics.intervals import interval_words, share_interval, share_words
from evalcore.metrics.judge_record import with_kinds

CHANGED, TOWARD, AWAY = "changed", "toward", "away"
MOVEMENTS: Mapping[str, str] = {CHANGED: "revealed", TOWARD: "differed", AWAY: "agreed"}
"""Each movement, and of which first reads it is a share: all that were followed by a reveal; those of them that differed from
the judge's label; those that agreed with it."""
OVERALL = "overall"
GROUPINGS = (OVERALL, "axis", "sign", "kind", "rater")
DEFAULT_GROUPINGS = GROUPINGS[:-1]
COLUMNS = [
    "judge", "grouping", "group", "movement", "denominator", "n", "n_moved", "share", "low", "high", "n_examples",
    "n_without_label", "n_not_revealed", "n_undecided",
]  # fmt: skip


def anchoring(reads: pd.DataFrame, *, by: Sequence[str] = DEFAULT_GROUPINGS) -> pd.DataFrame:
    """How many blind first reads their readers changed once the judge's label was shown, toward the judge and away from it.

        changed   revised label differs from the first          of all first reads that were followed by a reveal
        toward    revised label is the judge's                  of those that differed from the judge
        away      revised label is not the judge's any more     of those that agreed with the judge

    A read without a `revised` verdict was kept. Changed is toward, away, and changes from one difference to another. "Cannot
    assess" is a label like the others. A change need not be a mistake: a judge can point to what its reader overlooked.

    Args:
        reads: As `queries.blind_reads` gives them.
        by: Some of `GROUPINGS`; `kind` is axis and sign of points together, `rater` needs that column.

    Returns:
        Three rows a judge and group, one a movement: judge, grouping, group (`overall`, or the value), movement, denominator (`revealed`,
        `differed`, `agreed`), n (first reads), n_moved (0..n), share in [0, 1] with the 95 % interval low to high, clustered by
        example (NaN where n is 0), n_examples; and the first reads of the group that were left out, each counted once:
        n_without_label (the judge has no label on the item), n_not_revealed (its label was not shown to the reader), n_undecided
        (they differ, and the reader has yet to keep or revise).

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
        rows.append(
            {
                "movement": movement,
                "denominator": denominator,
                "n": found.n,
                "n_moved": found.n_hits,
                "share": found.share,
                "low": found.low,
                "high": found.high,
                "n_examples": found.n_clusters,
                **left_out,
            }
        )
    return rows


_WORDS: Mapping[str, str] = {
    CHANGED: "of the first reads were changed after the judge's label was shown",
    TOWARD: "of the first reads that differed from the judge took its label",
    AWAY: "of the first reads that agreed with the judge left its label",
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

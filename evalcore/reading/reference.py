"""What each item is labelled in the end: the physicians' word where there is one, else the judge's; and one physician's items beside that."""

import numpy as np
import pandas as pd

from evalcore.stats.wording import counted, listed
from evalcore.study.schema import Label, RaterKind, Stage

TASK = ["ask", "example_id", "response_id"]
_COUNTS = ["n_reads", "n_met", "n_not_met", "n_cannot_assess"]

ADJUDICATED, AGREED, SINGLE, JUDGE, UNSETTLED = "adjudicated", "agreed", "single", "judge", "unsettled"
"""Values of `reference_source`; unsettled: physicians' reads conflict and nobody has adjudicated, so there is no label."""


def current_reads(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Each physician's standing verdict on each item: revised or open before first, then the one that was written last.

    A clock may step back and a file may state any time, so no time decides.

    Returns:
        Rows of `verdicts`, one a physician and item; adjudications are left out.
    """
    return in_order(_reads(verdicts)).drop_duplicates(["item_id", "rater_id"], keep="last")


def in_order(verdicts: pd.DataFrame) -> pd.DataFrame:
    """First reads before all later stages, each in the order in which they were written (their numbers)."""
    return verdicts.iloc[np.lexsort((verdicts["verdict_id"], verdicts["stage"].ne(Stage.FIRST)))]


def _reads(verdicts: pd.DataFrame) -> pd.DataFrame:
    return verdicts.loc[verdicts["rater_kind"].eq(RaterKind.REVIEWER) & verdicts["stage"].ne(Stage.ADJUDICATED)]


def reference_labels(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The reference label of every item that a physician has read.

    The adjudicated label, else the one that all readers gave, else the only reader's. "Cannot assess" is a label like the
    others: beside another one it is a conflict.

    Returns:
        One row an item, index item_id: n_reads, n_met, n_not_met, n_cannot_assess, reference_label (missing where
        unsettled), reference_source, selection and blinded of the reads (joined by ";" where they differ), inclusion_probability (of drawn
        reads; missing where none was drawn), first_read_at.
    """
    reads = current_reads(verdicts)
    counts = (
        reads.groupby("item_id")["label"]
        .value_counts()
        .unstack(fill_value=0)
        .reindex(columns=list(Label), fill_value=0)
    )
    grouped = reads.groupby("item_id")
    table = pd.DataFrame(
        {
            "n_reads": counts.sum(axis=1),
            "n_met": counts[Label.MET],
            "n_not_met": counts[Label.NOT_MET],
            "n_cannot_assess": counts[Label.CANNOT_ASSESS],
            "label": grouped["label"].first(),
            "selection": _listed(reads, "selection"),
            "blinded": _listed(reads.assign(blinded=reads["blinded"].map({True: "true", False: "false"})), "blinded"),
            "inclusion_probability": reads["inclusion_probability"].astype(float).groupby(reads["item_id"]).max(),
            "first_read_at": _reads(verdicts).groupby("item_id")["created_at"].min(),
        }
    )
    settled = adjudicated_labels(verdicts)
    table = table.reindex(table.index.union(settled.index))
    table[_COUNTS] = table[_COUNTS].fillna(0).astype(int)
    unanimous = table[["n_met", "n_not_met", "n_cannot_assess"]].max(axis=1).eq(table["n_reads"])
    source = pd.Series(UNSETTLED, index=table.index, dtype=object)
    source = source.mask(unanimous & table["n_reads"].gt(1), AGREED).mask(table["n_reads"].eq(1), SINGLE)
    table["reference_source"] = source.mask(table.index.isin(settled.index), ADJUDICATED)
    label = table["label"].astype(object).where(unanimous, None)
    table["reference_label"] = label.mask(table["reference_source"].eq(ADJUDICATED), settled.reindex(table.index))
    return table.drop(columns="label")


def adjudicated_labels(verdicts: pd.DataFrame) -> pd.Series:
    """The newest adjudicated label, by item_id."""
    settled = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)].sort_values("verdict_id")
    return settled.drop_duplicates("item_id", keep="last").set_index("item_id")["label"]


def _listed(reads: pd.DataFrame, column: str) -> pd.Series:
    words = reads[["item_id", column]].dropna().drop_duplicates().sort_values(column)
    several = words["item_id"].duplicated(keep=False)
    joined = words.loc[several].groupby("item_id")[column].agg(";".join)
    listed: pd.Series = pd.concat([words.loc[~several].set_index("item_id")[column], joined])
    return listed


def overrides(verdicts: pd.DataFrame, judge: str) -> pd.DataFrame:
    """Physicians' standing verdicts, adjudications too, that differ from one judge's label on the same item: with the column judge_label."""
    judged = verdicts.loc[verdicts["rater_kind"].eq(RaterKind.JUDGE) & verdicts["rater"].eq(judge)]
    settled = verdicts.loc[verdicts["stage"].eq(Stage.ADJUDICATED)]
    given = pd.concat([current_reads(verdicts), settled])
    both = given.merge(judged[["item_id", "label"]].rename(columns={"label": "judge_label"}), on="item_id")
    return both.loc[both["label"].ne(both["judge_label"])]


def item_labels(verdicts: pd.DataFrame, judge: str) -> pd.DataFrame:
    """One row per item with the judge's label, the physicians' and the reference label.

    Returns:
        One row per item that this judge labelled or a physician read: the item's columns (dataset, prompt_id, response_id, model,
        position, criterion, points, theme, axis, cluster, ...), and those of `labels_of_items`.
    """
    items = _shown(verdicts, judge).drop_duplicates("item_id").set_index("item_id")[ITEM_COLUMNS]
    table = items.join(labels_of_items(verdicts, judge))
    return table.sort_values(["dataset", "prompt_id", "model", "response_id", "position"]).reset_index()


def labels_of_items(verdicts: pd.DataFrame, judge: str) -> pd.DataFrame:
    """What is said of each item that this judge labelled or a physician read, index item_id.

    Returns:
        judge, judge_label, judge_explanation, the columns of `reference_labels` (reference_source judge where nobody read), overridden,
        override_cause, severity and note of the newest verdict that differs from the judge's (the note of the newest read where none does).
    """
    shown = _shown(verdicts, judge)
    judged = shown.loc[shown["rater_kind"].eq(RaterKind.JUDGE)].set_index("item_id")
    table = pd.DataFrame(index=pd.Index(shown["item_id"].unique(), name="item_id")).join(reference_labels(shown))
    table["judge"] = pd.Series(judge, index=judged.index)
    table["judge_label"], table["judge_explanation"] = judged["label"], judged["explanation"]
    unread = table["reference_source"].isna()
    table["reference_source"] = table["reference_source"].mask(unread, JUDGE)
    table["reference_label"] = table["reference_label"].mask(unread, table["judge_label"])
    table[_COUNTS] = table[_COUNTS].fillna(0).astype(int)
    differing = overrides(shown, judge).sort_values("verdict_id").drop_duplicates("item_id", keep="last")
    differing = differing.set_index("item_id")
    table["overridden"] = table.index.isin(differing.index)
    table["override_cause"], table["severity"] = differing["cause"], differing["severity"]
    notes = current_reads(shown).sort_values("verdict_id").drop_duplicates("item_id", keep="last")
    note = notes.set_index("item_id")["explanation"].reindex(table.index)
    table["note"] = note.mask(table["overridden"], differing["explanation"].reindex(table.index))
    return table


def _shown(verdicts: pd.DataFrame, judge: str) -> pd.DataFrame:
    return verdicts.loc[verdicts["rater_kind"].ne(RaterKind.JUDGE) | verdicts["rater"].eq(judge)]


ITEM_COLUMNS = [
    "dataset", "evaluation", "prompt_id", "example_id", "response_id", "completion_id", "criterion_id", "model",
    "sample_index", "position", "criterion", "points", "theme", "category", "language", "axis", "cluster", "canary",
]  # fmt: skip


def overridden_items(marks: pd.DataFrame, judge: str) -> pd.DataFrame:
    """How many items of each example physicians have read, overridden, and read differently from one another.

    Returns:
        One row an example, index example_id: n_read, n_overridden, n_conflicting (items; a conflict that has been
        adjudicated is none).
    """
    item = ["example_id", "response_id", "criterion_id"]
    words = in_order(marks)
    reads = words.loc[words["stage"].ne(Stage.ADJUDICATED)]
    last = reads.groupby(["response_id", "criterion_id", "rater_id"])["verdict_id"].last()
    standing = words.loc[words["stage"].eq(Stage.ADJUDICATED) | words["verdict_id"].isin(last)]
    settled = standing.loc[standing["stage"].eq(Stage.ADJUDICATED), item].drop_duplicates().assign(settled=True)
    reads = standing.loc[standing["stage"].ne(Stage.ADJUDICATED)]
    items = reads.groupby(item)["label"].nunique().rename("n_labels").reset_index().merge(settled, on=item, how="outer")
    items["conflicting"] = items["n_labels"].gt(1) & items["settled"].isna()
    table = items.groupby("example_id").agg(n_read=("criterion_id", "size"), n_conflicting=("conflicting", "sum"))
    differs = standing["judge"].eq(judge) & standing["label"].ne(standing["judge_label"])
    overridden = standing.loc[differs].drop_duplicates(item).groupby("example_id").size()
    return table.assign(n_overridden=overridden.reindex(table.index).fillna(0).astype(int))


def own_items(verdicts: pd.DataFrame, reader: str) -> pd.DataFrame:
    """One physician's items: first read, label now, adjudicated label.

    Returns:
        One row per item that the physician read, index item_id: example_id, response_id, criterion_id (missing for acuity), first_label
        (missing where there is no first read), label (the standing one), final_label (missing where nobody has settled the item),
        changed (label differs from first_label), off_final (label differs from final_label).
    """
    mine = verdicts.loc[verdicts["rater"].eq(reader) & verdicts["rater_kind"].eq(RaterKind.REVIEWER)]
    now = current_reads(mine).set_index("item_id")
    first = mine.loc[mine["stage"].isin([Stage.FIRST, Stage.OPEN])].sort_values("verdict_id")
    table = now.reindex(columns=["example_id", "response_id", "criterion_id", "label"])
    table["first_label"] = first.drop_duplicates("item_id").set_index("item_id")["label"].reindex(table.index)
    table["final_label"] = adjudicated_labels(verdicts).reindex(table.index)
    table["changed"] = table["first_label"].notna() & table["label"].ne(table["first_label"])
    table["off_final"] = table["final_label"].notna() & table["label"].ne(table["final_label"])
    return table


def read_words(n_items: int, n_responses: int, n_cases: int) -> str:
    """How much somebody has read.

    >>> read_words(14, 1, 2), read_words(1, 1, 0), read_words(0, 0, 0)
    ('1 response and 2 cases (14 items)', '1 response (1 item)', 'nothing')
    """
    parts = [counted(n, word) for n, word in ((n_responses, "response"), (n_cases, "case")) if n]
    return f"{listed(parts)} ({counted(n_items, 'item')})" if parts else "nothing"


def totals(items: pd.DataFrame) -> pd.Series:
    """Items of `own_items`, counted; `contents.readers` counts the first three for everybody at once.

    Returns:
        n_items, n_responses (of which any item was read), n_cases (whose own level was read), n_changed (items whose label is no more that of
        the first read), n_settled (by an adjudicator), n_off_final (with another label than the physician's).
    """
    counts = {
        "n_items": len(items),
        "n_responses": items["response_id"].nunique(),
        "n_cases": items.loc[items["response_id"].isna(), "example_id"].nunique(),
        "n_changed": items["changed"].sum(),
        "n_settled": items["final_label"].count(),
        "n_off_final": items["off_final"].sum(),
    }
    return pd.Series(counts, dtype="int64")


def by_task(items: pd.DataFrame) -> pd.DataFrame:
    """Items of `own_items`, with the column ask, counted by task: ask, example_id, response_id, n_items, n_changed, n_settled, n_off_final."""
    grouped = items.groupby(TASK, dropna=False)
    counts = pd.DataFrame(
        {
            "n_items": grouped.size(),
            "n_changed": grouped["changed"].sum(),
            "n_settled": grouped["final_label"].count(),
            "n_off_final": grouped["off_final"].sum(),
        }
    )
    return counts.reset_index()


def final_labels(items: pd.DataFrame, ask: str, example_id: int, response_id: int | None) -> dict[int | None, str]:
    """The adjudicated label by criterion_id (None for acuity), of one task's items of `own_items`, with the column ask, that were settled."""
    response = items["response_id"].isna() if response_id is None else items["response_id"].eq(response_id)
    mine = items["ask"].eq(ask) & items["example_id"].eq(example_id) & response
    settled = items.loc[mine & items["final_label"].notna()]
    criteria = [None if pd.isna(number) else int(number) for number in settled["criterion_id"]]
    return dict(zip(criteria, settled["final_label"], strict=True))

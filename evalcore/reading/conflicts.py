"""Which items need an adjudicator, and why; and which criteria readers and adjudicators find at fault."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pandas as pd

from evalcore.study.schema import CannotReason, Cause, ConflictCause, Label, Rules, Selection, Severity, Stage

ITEM = ["example_id", "response_id", "criterion_id"]
CASE = ITEM[:2]
HIGH_POINTS = 7  # from so many points on, either way, physicians who agree against the judge go to adjudication
LEVELS_APART = 2


class Reason(StrEnum):
    """Why an item needs an adjudicator; the worst comes first."""

    SEVERE_HARM = "severe_harm"  # a reader says that the judge's error would harm a patient severely
    LEVELS_APART = "levels_apart"  # first reads of acuity are two levels apart or more
    CONFLICT = "conflict"  # first reads give different answers
    AGAINST_JUDGE = "against_judge"  # all readers, on 7 points or more, where the study sends such items on
    CANNOT_ASSESS = "cannot_assess"  # a first read could not be made
    CHECK = "check"  # readers agree; the item is one of the share that is checked all the same


SENTENCES: Mapping[Reason, str] = {  # as the screen says them
    Reason.SEVERE_HARM: "Severe harm claimed",
    Reason.LEVELS_APART: "Two or more levels apart",
    Reason.CONFLICT: "First reads conflict",
    Reason.AGAINST_JUDGE: "Readers agree against the judge",
    Reason.CANNOT_ASSESS: "A reader cannot assess",
    Reason.CHECK: "To be checked",
}
OF_JUDGE = frozenset({Reason.SEVERE_HARM, Reason.AGAINST_JUDGE})  # they tell that the judge's label is another

# A boundary between two levels stands for both of them: the least and the most urgent that it may mean.
LEAST: Mapping[str, int] = {"A": 1, "A/B": 1, "B": 2, "B/C": 2, "C": 3, "C/D": 3, "D": 4}
MOST: Mapping[str, int] = {"A": 1, "A/B": 2, "B": 2, "B/C": 3, "C": 3, "C/D": 4, "D": 4}
_FIRST = {Stage.FIRST: 0, Stage.OPEN: 1, Stage.REVISED: 2}


def without_judge(items: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    """Items that need an adjudicator, as one meets them who has not looked at the judge's verdicts.

    Returns:
        The rows of `items` with told_reasons (without those of `OF_JUDGE`; an item with no other is to be checked, as those that are drawn)
        and tells_judge (being in question tells by itself what the judge said: nothing else sends the item on, and none like it is drawn).
    """
    told = [tuple(reason for reason in reasons if reason not in OF_JUDGE) for reasons in items["reasons"]]
    none_drawn = items["n_reads"].eq(1) | (rules.check_share == 0)
    return items.assign(
        told_reasons=pd.Series([reasons or (Reason.CHECK,) for reasons in told], index=items.index, dtype=object),
        tells_judge=pd.Series([not reasons for reasons in told], index=items.index, dtype=bool) & none_drawn,
    )


def first_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """Of each reader and item the read that decides: the first one, else the open one, else (imported alone) the revised one.

    Of several open ones the assigned one, as it was submitted.
    """
    order = reads["stage"].map(_FIRST)
    ranked = reads.assign(_order=order, _own=reads["selection"].eq(Selection.VOLUNTEERED)).loc[order.notna()]
    ranked = ranked.sort_values(["_order", "_own", "verdict_id"])
    return ranked.drop_duplicates([*ITEM, "rater_id"]).drop(columns=["_order", "_own"])


def needing(reads: pd.DataFrame, rules: Rules, *, seed: str) -> pd.DataFrame:
    """The items that need an adjudicator: one row each, with the reasons.

    First reads decide; what a reader changed after the judge was shown settles no conflict. An answer is met, not met, cannot
    assess, remove, or a level of care, and two different answers are a conflict. Two levels of care are as far apart as the smallest
    difference over their letters (A = 1 to D = 4; C/D stands for C and D, so C/D beside D is 0, and A/B beside C is 1); at two or
    more they go to adjudication, at one the panel's median settles them. An item with fewer assigned reads than wanted is not due yet;
    reads that nobody assigned do not fill a place, but their answers count. An item with an adjudication is settled, and stays so when a
    read is amended later.

    Args:
        reads: One row a verdict, as `read_queries.reads` gives them; n_wanted: readers that the item was assigned to (missing where it was not).
        seed: Draws the items to be checked: the same seed draws the same items, and a larger share draws those of a smaller one too.

    Returns:
        example_id, response_id, criterion_id (missing as in `reads`), points, n_reads (readers), reasons (a tuple, worst first), differ (first
        reads conflict or are levels apart), sorted by item.
    """
    keyed = reads.assign(**{name: pd.to_numeric(reads[name]).fillna(0).astype("int64") for name in ITEM})
    settled = keyed.loc[keyed["stage"].eq(Stage.ADJUDICATED), ITEM].drop_duplicates()
    of_readers = keyed.loc[keyed["stage"].isin(list(_FIRST))]
    items = _items(first_reads(of_readers))
    severe = of_readers.loc[of_readers["severity"].eq(Severity.SEVERE), ITEM].drop_duplicates()
    items["is_severe"] = items.index.isin(pd.MultiIndex.from_frame(severe))
    is_due = items["n_wanted"].isna() | items["n_assigned"].ge(items["n_wanted"])
    items = items.loc[is_due & ~items.index.isin(pd.MultiIndex.from_frame(settled))].sort_index()
    holds = _reasons(items, rules)
    unanimous = items["n_reads"].gt(1) & items["n_answers"].eq(1) & items["apart"].le(0)
    unasked = unanimous & ~holds.any(axis=1)
    holds[Reason.CHECK] = [
        asked and rules.check_share > 0 and check_place(seed, item) < rules.check_share
        for asked, item in zip(unasked, items.index, strict=True)
    ]
    items["differ"] = holds[Reason.CONFLICT] | holds[Reason.LEVELS_APART]
    ordered = holds[list(Reason)]
    rows = ordered.to_numpy()
    items["reasons"] = [tuple(reason for reason, held in zip(Reason, row, strict=True) if held) for row in rows]
    found = items.loc[ordered.any(axis=1)].reset_index()
    found[CASE[1:] + ITEM[2:]] = found[ITEM[1:]].astype("Int64").where(found[ITEM[1:]].ne(0))
    return found[[*ITEM, "points", "n_reads", "reasons", "differ"]]


def _items(first: pd.DataFrame) -> pd.DataFrame:
    least, most = first["label"].map(LEAST), first["label"].map(MOST)
    told = first.assign(
        answer=first["label"].mask(least.notna(), "level"),
        least=least.astype(float),
        most=most.astype(float),
        cannot=first["label"].eq(Label.CANNOT_ASSESS),
        assigned=first["selection"].ne(Selection.VOLUNTEERED),
    )
    items = told.groupby(ITEM).agg(
        n_reads=("rater_id", "size"),
        n_assigned=("assigned", "sum"),
        n_wanted=("n_wanted", "max"),
        points=("points", "first"),
        n_answers=("answer", "nunique"),
        answer=("answer", "first"),
        judge_label=("judge_label", "first"),
        cannot=("cannot", "any"),
        least=("least", "max"),
        most=("most", "min"),
    )
    # Over all pairs of votes the largest distance is that between the highest lower letter and the lowest upper letter.
    items["apart"] = (items["least"] - items["most"]).clip(lower=0).fillna(0)
    return items


def _reasons(items: pd.DataFrame, rules: Rules) -> pd.DataFrame:
    agree = items["n_reads"].gt(1) & items["answer"].isin([Label.MET, Label.NOT_MET]) & items["n_answers"].eq(1)
    against = items["judge_label"].notna() & items["judge_label"].ne(items["answer"])
    is_high = pd.to_numeric(items["points"]).abs().ge(HIGH_POINTS)
    return pd.DataFrame(
        {
            Reason.SEVERE_HARM: items["is_severe"],
            Reason.LEVELS_APART: items["apart"].ge(LEVELS_APART),
            Reason.CONFLICT: items["n_answers"].gt(1),
            Reason.AGAINST_JUDGE: agree & against & is_high & rules.both_against_judge,
            Reason.CANNOT_ASSESS: items["cannot"],
        }
    ).astype(bool)


def check_place(seed: str, item: tuple[Any, ...]) -> float:
    """Where an item stands in the drawing of checks, in [0, 1), evenly spread over the items.

    >>> check_place("seed", (1, 2, 3)) == check_place("seed", (1, 2, 3)) != check_place("seed", (1, 2, 4))
    True
    """
    words = ":".join([seed, *(str(int(number)) for number in item)])
    digest = hashlib.blake2b(words.encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48  # 48 bits: a float holds them exactly, and none becomes 1


def cases(items: pd.DataFrame) -> pd.DataFrame:
    """What one adjudicator takes up at once: the items of one response, or of one case; the worst first.

    Ordered by the worst reason, then by the most points that an item with it is worth either way, then by number.

    Returns:
        example_id, response_id (missing for a case), n_items, reasons (a tuple, worst first), points (largest of the items with the
        worst reason, without its sign; missing where none has points).
    """
    order = list(Reason)
    each = items.explode("reasons")
    each = each.assign(
        response_id=each["response_id"].fillna(0),
        rank=[order.index(reason) for reason in each["reasons"]],
        points=pd.to_numeric(each["points"]).abs().astype(float),
    )
    grouped = each.groupby(CASE)
    table = grouped.agg(rank=("rank", "min"))
    table["n_items"] = grouped["criterion_id"].nunique(dropna=False)
    table["reasons"] = [tuple(order[rank] for rank in sorted(set(ranks))) for _, ranks in grouped["rank"]]
    worst = each.loc[each["rank"].eq(grouped["rank"].transform("min"))]
    table["points"] = worst.groupby(CASE)["points"].max()
    table = table.reset_index().assign(stake=lambda rows: rows["points"].fillna(0))
    table = table.sort_values(["rank", "stake", *CASE], ascending=[True, False, True, True], ignore_index=True)
    table["response_id"] = table["response_id"].astype("Int64").where(table["response_id"].ne(0))
    return table[[*CASE, "n_items", "reasons", "points"]]


FAULTS: Mapping[tuple[str, str], str] = {
    ("conflict_cause", ConflictCause.CRITERION_WRONG): "n_settled_wrong",
    ("conflict_cause", ConflictCause.CRITERION_AMBIGUOUS): "n_settled_ambiguous",
    ("cause", Cause.CRITERION_WRONG): "n_readers_wrong",
    ("cause", Cause.CRITERION_AMBIGUOUS): "n_readers_ambiguous",
    ("reason", CannotReason.CRITERION_UNCLEAR): "n_readers_unclear",
}
"""A column of a verdict and its word, and the count that it enters."""
OF_CRITERION = ["dataset", "prompt_id", "example_id", "criterion_id", "position", "criterion", "points", "theme", "axis", "cluster", "canary"]  # fmt: skip


def faulted_criteria(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Criteria that adjudicators or readers call wrong, ambiguous or unclear: the list for the rubric's authors. Nobody is named.

    Returns:
        One row a criterion, those called at fault most often first: dataset, prompt_id, example_id, criterion_id, position, criterion, points,
        theme, axis, cluster, canary, n_faults (the sum of the counts that follow), the counts of FAULTS (each person once an item), rationales
        (adjudicators' words) and notes (readers' words), each one text with a line a remark in the order they were given, missing where
        nobody wrote one.
    """
    words, stays = [], [*OF_CRITERION, "response_id", "rater_id", "stage", "explanation", "verdict_id"]
    for (column, word), count in FAULTS.items():
        kept = verdicts["stage"].eq(Stage.ADJUDICATED).eq(column == "conflict_cause") & verdicts[column].eq(word)
        words.append(verdicts.loc[kept, stays].assign(count=count))
    said = pd.concat(words).sort_values("verdict_id")
    counts = list(FAULTS.values())
    once = said.drop_duplicates(["response_id", "criterion_id", "rater_id", "count"])
    counted = once.groupby("criterion_id")["count"].value_counts().unstack(fill_value=0)
    counted = counted.reindex(columns=counts, fill_value=0).astype(int)
    table = said.drop_duplicates("criterion_id")[OF_CRITERION].set_index("criterion_id").join(counted)
    table["n_faults"] = table[counts].sum(axis=1)
    is_settled = said["stage"].eq(Stage.ADJUDICATED)
    table["rationales"] = _lines(said.loc[is_settled]).reindex(table.index)
    table["notes"] = _lines(said.loc[~is_settled]).reindex(table.index)
    order = ["n_faults", "dataset", "prompt_id", "position"]
    table = table.reset_index().sort_values(order, ascending=[False, True, True, True], ignore_index=True)
    return table[[*OF_CRITERION, "n_faults", *counts, "rationales", "notes"]]


def _lines(said: pd.DataFrame) -> pd.Series:
    written = said.loc[said["explanation"].notna()].drop_duplicates(["criterion_id", "verdict_id"])
    folded = written.assign(line=[" ".join(text.split()) for text in written["explanation"]])
    return folded.groupby("criterion_id")["line"].agg("\n".join).astype(object)

"""Which items need an adjudicator, and why; and which criteria readers and adjudicators find at fault."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import pandas as pd

from evalcore.study.schema import CannotReason, Cause, ConflictCause, Label, Rules, Selection, Severity, Stage

Key = tuple[int, int | None]
"""What one adjudicator takes up at once: example_id, and response_id or None for the case itself."""
Item = tuple[int, int | None, int | None]
"""A key, and criterion_id or None for a level of care."""
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
    Reason.SEVERE_HARM: "Rated severe by a reader",
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
_FIRST: Mapping[str, int] = {Stage.FIRST: 0, Stage.OPEN: 1, Stage.REVISED: 2}


class Read(NamedTuple):
    """A standing verdict of a physician, with what the rule asks of its item.

    `n_wanted`: readers that the item was assigned to; None where it was not. `judge_label`: None also where the study does not ask for it.
    """

    verdict_id: int
    item: Item
    rater_id: int
    stage: str
    label: str
    severity: str | None
    selection: str | None
    points: int | None
    n_wanted: int | None
    judge_label: str | None


@dataclass(frozen=True)
class Conflict:
    """An item that needs an adjudicator.

    `n_reads`: readers. `reasons`: the worst first. `differ`: first reads conflict or are levels apart. `told_reasons`: as one meets the item who has
    not looked at the judge's verdict, without those of `OF_JUDGE`; an item with no other is to be checked, as those that are drawn. `tells_judge`:
    being in question tells by itself what the judge said, since nothing else sends the item on, and none like it is drawn.
    """

    item: Item
    points: int | None
    n_reads: int
    reasons: tuple[Reason, ...]
    differ: bool
    told_reasons: tuple[Reason, ...]
    tells_judge: bool


def needing(reads: Iterable[Read], rules: Rules, *, seed: str) -> list[Conflict]:
    """The items that need an adjudicator, in the order of their numbers.

    First reads decide; what a reader changed after the judge was shown settles no conflict. An answer is met, not met, cannot
    assess, remove, or a level of care, and two different answers are a conflict. Two levels of care are as far apart as the smallest
    difference over their letters (A = 1 to D = 4; C/D stands for C and D, so C/D beside D is 0, and A/B beside C is 1); at two or
    more they go to adjudication, at one the panel's median settles them. An item with fewer assigned reads than wanted is not due yet;
    reads that nobody assigned do not fill a place, but their answers count. An item with an adjudication is settled, and stays so when a
    read is amended later.

    Args:
        seed: Draws the items to be checked: the same seed draws the same items, and a larger share draws those of a smaller one too.
    """
    by_item: dict[Item, list[Read]] = {}
    for read in reads:
        by_item.setdefault(read.item, []).append(read)
    each = (_conflict(item, by_item[item], rules, seed) for item in sorted(by_item, key=_numbers))
    return [conflict for conflict in each if conflict is not None]


def _numbers(item: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(number or 0 for number in item)


def _conflict(item: Item, reads: Sequence[Read], rules: Rules, seed: str) -> Conflict | None:
    first = _first_reads(reads)
    n_wanted = max((read.n_wanted or 0 for read in first), default=0)
    n_assigned = sum(read.selection != Selection.VOLUNTEERED for read in first)
    if not first or n_assigned < n_wanted or any(read.stage == Stage.ADJUDICATED for read in reads):
        return None
    labels = {read.label for read in first}
    levels = labels & LEAST.keys()
    answers = labels - levels | {"level" for _ in levels}
    # Over all pairs of votes the largest distance is that between the highest lower letter and the lowest upper letter.
    n_apart = max(map(LEAST.__getitem__, levels), default=0) - min(map(MOST.__getitem__, levels), default=0)
    points = next((read.points for read in first if read.points is not None), None)
    held = {
        Reason.SEVERE_HARM: any(read.severity == Severity.SEVERE and read.stage in _FIRST for read in reads),
        Reason.LEVELS_APART: n_apart >= LEVELS_APART,
        Reason.CONFLICT: len(answers) > 1,
        Reason.AGAINST_JUDGE: rules.both_against_judge and _against_judge(first, answers, points),
        Reason.CANNOT_ASSESS: Label.CANNOT_ASSESS in labels,
    }
    if not any(held.values()) and len(first) > 1 and n_apart <= 0:
        held[Reason.CHECK] = rules.check_share > 0 and check_place(seed, item) < rules.check_share
    reasons = tuple(reason for reason, holds in held.items() if holds)
    if not reasons:
        return None
    told = tuple(reason for reason in reasons if reason not in OF_JUDGE)
    return Conflict(
        item,
        points,
        len(first),
        reasons,
        differ=held[Reason.CONFLICT] or held[Reason.LEVELS_APART],
        told_reasons=told or (Reason.CHECK,),
        tells_judge=not told and (len(first) == 1 or rules.check_share == 0),
    )


def _first_reads(reads: Sequence[Read]) -> list[Read]:
    """Of each reader the read that decides: the first one, else the open one, else (imported alone) the revised one.

    Of several open ones the assigned one, as it was submitted.
    """
    deciding: dict[int, Read] = {}
    for read in sorted(
        (read for read in reads if read.stage in _FIRST),
        key=lambda read: (_FIRST[read.stage], read.selection == Selection.VOLUNTEERED, read.verdict_id),
    ):
        deciding.setdefault(read.rater_id, read)
    return list(deciding.values())


def _against_judge(first: Sequence[Read], answers: set[str], points: int | None) -> bool:
    judge_label = next((read.judge_label for read in first if read.judge_label is not None), None)
    agreed = len(first) > 1 and answers in ({Label.MET}, {Label.NOT_MET})
    return agreed and judge_label is not None and judge_label not in answers and abs(points or 0) >= HIGH_POINTS


def check_place(seed: str, item: Item) -> float:
    """Where an item stands in the drawing of checks, in [0, 1), evenly spread over the items.

    >>> check_place("seed", (1, 2, 3)) == check_place("seed", (1, 2, 3)) != check_place("seed", (1, 2, 4))
    True
    """
    words = ":".join([seed, *map(str, _numbers(item))])
    digest = hashlib.blake2b(words.encode(), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48  # 48 bits: a float holds them exactly, and none becomes 1


class Case(NamedTuple):
    """The items of one response, or of one case, that need an adjudicator, as one meets them who has not looked at the judge's verdicts.

    `reasons`: the worst first. `points`: the most that an item with the worst is worth, without its sign; None where none has points.
    """

    key: Key
    n_items: int
    reasons: tuple[Reason, ...]
    points: int | None


def cases(conflicts: Iterable[Conflict]) -> list[Case]:
    """What waits, by response or case: the worst reason first, then the most points, then the lowest numbers."""
    by_key: dict[Key, list[Conflict]] = {}
    for conflict in conflicts:
        by_key.setdefault(conflict.item[:2], []).append(conflict)
    order = list(Reason)
    waiting = []
    for key, items in by_key.items():
        reasons = sorted({reason for each in items for reason in each.told_reasons}, key=order.index)
        worst = [abs(each.points) for each in items if each.points is not None and reasons[0] in each.told_reasons]
        waiting.append(Case(key, len(items), tuple(reasons), max(worst, default=None)))
    return sorted(waiting, key=lambda case: (order.index(case.reasons[0]), -(case.points or 0), _numbers(case.key)))


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
        One row per criterion, those called at fault most often first: dataset, prompt_id, example_id, criterion_id, position, criterion, points,
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
    return pd.DataFrame(table[[*OF_CRITERION, "n_faults", *counts, "rationales", "notes"]])


def _lines(said: pd.DataFrame) -> pd.Series:
    written = said.loc[said["explanation"].notna()].drop_duplicates(["criterion_id", "verdict_id"])
    folded = written.assign(line=[" ".join(text.split()) for text in written["explanation"]])
    return folded.groupby("criterion_id")["line"].agg("\n".join).astype(object)

"""The reads of an item from a few letters, for the rule that says who needs an adjudicator."""

import itertools

from hypothesis import strategies as st

from evalcore.reading.conflicts import Read, Reason, needing
from evalcore.study.schema import Rules

SEED = "seed"
LETTERS = {"A": {1}, "A/B": {1, 2}, "B": {2}, "B/C": {2, 3}, "C": {3}, "C/D": {3, 4}, "D": {4}}
WORDS = {"+": "met", "-": "not_met", "?": "cannot_assess", "R": "remove"}
WHY = {
    "severe": Reason.SEVERE_HARM,
    "apart": Reason.LEVELS_APART,
    "conflict": Reason.CONFLICT,
    "judge": Reason.AGAINST_JUDGE,
    "cannot": Reason.CANNOT_ASSESS,
    "check": Reason.CHECK,
}


def one(*said, item=(1, 1, 1), points=5, judge=None, wanted=None):
    """The reads of one item: each `label`, or `label stage`, or a dictionary with more; readers 1, 2, ... in turn."""
    rows = []
    for reader, what in enumerate(said, start=1):
        label, _, stage = what["said"].partition(" ") if isinstance(what, dict) else what.partition(" ")
        more = {key: value for key, value in what.items() if key != "said"} if isinstance(what, dict) else {}
        rows.append(
            {
                "item": item,
                "points": points,
                "rater_id": reader,
                "stage": stage or "first",
                "label": WORDS.get(label, label),
                "severity": None,
                "selection": "random",
                "judge_label": judge and WORDS[judge],
                "n_wanted": wanted,
                **more,
            }
        )
    return rows


def reads(*items):
    """The rows of some items as verdicts, numbered in turn."""
    rows = itertools.chain.from_iterable(items)
    return [Read(verdict_id=number, **row) for number, row in enumerate(rows, start=1)]


def conflicts(*items, rules=None, seed=SEED):
    return needing(reads(*items), rules or Rules(), seed=seed)


def reasons(*items, rules=None):
    """Words of the reasons, by item, of those that need an adjudicator."""
    words = {reason: word for word, reason in WHY.items()}
    return {each.item: " ".join(words[reason] for reason in each.reasons) for each in conflicts(*items, rules=rules)}


ITEM = (1, 1, 1)
ACUITY = (1, 1, None)


def why(*said, rules=None, **about):
    """The reasons of one item; empty where it settles itself."""
    return next(iter(reasons(one(*said, **about), rules=rules).values()), "")


labels_of_criterion = st.sampled_from(["+", "-", "?"])
labels_of_acuity = st.sampled_from([*LETTERS, "R", "?"])


@st.composite
def drawn_items(draw):
    """Some items, each of a criterion or of acuity, with one to four readers and what may follow."""
    items = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        is_acuity = draw(st.booleans())
        words = labels_of_acuity if is_acuity else labels_of_criterion
        said = draw(st.lists(words, min_size=1, max_size=4))
        rows = one(
            *said,
            item=(1, number, None if is_acuity else number),
            points=None if is_acuity else draw(st.sampled_from([-10, -7, -3, 6, 7, None])),
            judge=None if is_acuity else draw(st.sampled_from(["+", "-", None])),
            wanted=draw(st.sampled_from([None, 2, 3])),
        )
        for row in rows:
            row["severity"] = draw(st.sampled_from([None, None, None, "mild", "severe"]))
        if draw(st.integers(0, 4)) == 0:
            rows.append({**rows[0], "rater_id": 9, "stage": "adjudicated"})
        items.append(rows)
    return items


def is_unanimous(rows):
    reads = [row["label"] for row in rows if row["stage"] != "adjudicated"]
    if len(reads) < 2:
        return False
    if all(label in LETTERS for label in reads):
        return all(LETTERS[x] & LETTERS[y] for x, y in itertools.combinations(reads, 2))
    return len(set(reads)) == 1


def key(rows):
    return rows[0]["item"]

"""Who needs an adjudicator: every drawn mixture of reads held against the rule written out, and what must not change it."""

import itertools

from hypothesis import given, strategies as st

from evalcore.reading.conflicts import needing
from evalcore.study.schema import Rules
from tests.conflict_rows import ACUITY, LETTERS, SEED, drawn_items, key, reads, reasons, why


def expected(rows, rules):
    """The rule in plain Python, without the check: the words of the reasons of one item."""
    reads = [row for row in rows if row["stage"] != "adjudicated"]
    if len(reads) < len(rows) or len(reads) < (reads[0]["n_wanted"] or 0):
        return ""
    said = [row["label"] for row in reads]
    levels = [LETTERS[label] for label in said if label in LETTERS]
    distances = [min(abs(x - y) for x in one_ for y in two) for one_, two in itertools.combinations(levels, 2)]
    kinds = {"level" if label in LETTERS else label for label in said}
    held = []
    if any(row["severity"] == "severe" for row in reads):
        held.append("severe")
    if max(distances, default=0) >= 2:
        held.append("apart")
    if len(kinds) > 1:
        held.append("conflict")
    judge, points = reads[0]["judge_label"], reads[0]["points"]
    against = len(said) > 1 and len(set(said)) == 1 and said[0] in ("met", "not_met") and judge not in (None, said[0])
    if rules.both_against_judge and against and points is not None and abs(points) >= 7:
        held.append("judge")
    if "cannot_assess" in said:
        held.append("cannot")
    return " ".join(held)


@given(drawn_items(), st.booleans())
def test_every_mixture_follows_the_rule(items, both):
    rules = Rules(both_against_judge=both)
    assert reasons(*items, rules=rules) == {key(rows): why for rows in items if (why := expected(rows, rules))}


@given(drawn_items(), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_order_of_the_rows_does_not_matter(items, random, share):
    rules = Rules(check_share=share, both_against_judge=True)
    rows = reads(*items)
    shuffled = random.sample(rows, len(rows))
    assert needing(shuffled, rules, seed=SEED) == needing(rows, rules, seed=SEED)


@given(drawn_items(), st.permutations([1, 2, 3, 4]), st.sampled_from([0.0, 0.5, 1.0]))
def test_who_the_readers_are_does_not_matter(items, others, share):
    rules = Rules(check_share=share, both_against_judge=True)
    rows, names = reads(*items), dict(enumerate(others, start=1))
    swapped = [read._replace(rater_id=names.get(read.rater_id, 9)) for read in rows]
    assert needing(swapped, rules, seed=SEED) == needing(rows, rules, seed=SEED)


@given(st.sampled_from([*"+-?"]), st.integers(1, 4), st.sampled_from([*LETTERS, "R"]))
def test_one_more_read_that_says_the_same_never_makes_a_conflict(label, n_reads, level):
    for said, about in ((label, {}), (level, {"item": ACUITY, "points": None})):
        for count in (n_reads, n_reads + 1):
            assert not {"conflict", "apart"} & set(why(*[said] * count, **about).split())


@given(drawn_items(), drawn_items())
def test_an_item_is_judged_by_its_own_reads_alone(items, others):
    moved = [[{**row, "item": (2, *row["item"][1:])} for row in rows] for rows in others]
    together = reasons(*items, *moved)
    assert together == reasons(*items) | reasons(*moved)

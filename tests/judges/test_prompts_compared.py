"""Two prompts on physicians' reads: paired, clustered by conversation, on what neither was made with."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t as student

from evalcore.errors import OverreadError
from evalcore.judges.prompts_compared import NOT_STATED, compare, compared, prompts
from evalcore.judges.splits import MadeWith, Split
from evalcore.study import store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world

WORDS = {"+": "met", "-": "not_met", "?": "cannot_assess", " ": None}
NAMES = ("Magpie a@1", "Magpie b@2")


def found(drawing, **more):
    """Each line: conversation, the reads, prompt A's label, prompt B's."""
    rows = [line.split() for line in drawing.strip().splitlines()]
    reads = [
        {"item_id": number, "example_id": int(example), "label": WORDS[read]}
        for number, (example, given_reads, *_) in enumerate(rows)
        for read in given_reads
    ]
    labels = [
        pd.Series({number: WORDS[row[place]] for number, row in enumerate(rows)}, dtype=object) for place in (2, 3)
    ]
    return compared(pd.DataFrame(reads), *labels, names=NAMES, **more)


def test_the_difference_is_that_of_agreement_item_by_item_with_a_clustered_interval():
    told = found("""
        1 +  - +
        1 -+ + -
        2 -  - -
        2 +  - +
        3 -  + +
        """)
    # A agrees 0, .5, 1, 0, 0; B 1, .5, 1, 1, 0; the difference 1, 0, 0, 1, 0
    assert (told.n_items, told.n_examples, told.n_reads) == (5, 3, 6)
    assert (told.agreement_before, told.agreement_after, told.difference) == pytest.approx((0.3, 0.7, 0.4))
    residuals = np.array([1 - 0.8, 1 - 0.8, 0 - 0.4])  # sums of 1, 2, 3 less .4 of each item
    half = student.ppf(0.975, 2) * math.sqrt(3 / 2 * (residuals**2).sum() / 5**2)
    assert (told.low, told.high) == pytest.approx((0.4 - half, 0.4 + half))


def test_a_direction_is_told_only_where_the_interval_shows_it():
    clear = found("\n".join(f"{number} + {'-' if number % 5 else '+'} +" for number in range(40)))
    assert clear.low > 0
    assert clear.finding.startswith(
        "Magpie b@2 agrees with physicians more often than Magpie a@1: Magpie b@2 less Magpie a@1 is +0.800 [+0."
    )
    backwards = found("\n".join(f"{number} + + {'-' if number % 5 else '+'}" for number in range(40)))
    assert backwards.finding.startswith(
        "Magpie a@1 agrees with physicians more often than Magpie b@2: Magpie b@2 less Magpie a@1 is −0.800"
    )
    level = found("1 + + -\n2 + - +\n3 + + +")
    assert level.finding.startswith("Neither is shown to agree with physicians more often")
    assert "too few or all alike" in found("1 + - +").finding
    assert found("1 ? + +".replace("?", "+").replace("+ + +", "+ ? +")).finding.startswith("There is no item that")


def test_items_of_conversations_that_one_was_made_with_are_left_out_and_counted():
    told = found("1 + - +\n1 + - +\n2 + + +\n3 + - +", seen={1})
    assert (told.n_items, told.n_seen, told.difference) == (2, 2, 0.5)
    assert "Left out: 2 items of conversations that one of them was made with." in told.sentences


def test_an_item_that_one_has_not_labelled_or_could_not_is_no_pair():
    told = found("1 + ? +\n2 + + +\n3 + - +")
    assert (told.n_items, told.n_one_alone) == (2, 1)


rows = st.lists(
    st.tuples(st.integers(1, 5), st.text("+-", min_size=1, max_size=3), st.sampled_from("+-?"), st.sampled_from("+-?")),
    min_size=1, max_size=20,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(rows, st.sets(st.integers(1, 5)))
def test_the_difference_lies_between_its_ends_and_turns_round_with_the_prompts(drawn, seen):
    drawing = "\n".join(f"{example} {reads} {one} {other}" for example, reads, one, other in drawn)
    turned = "\n".join(f"{example} {reads} {other} {one}" for example, reads, one, other in drawn)
    told, back = found(drawing, seen=seen), found(turned, seen=seen)
    assert told.n_items + told.n_seen + told.n_one_alone <= len(drawn)
    assert told.n_items == sum("?" not in (one, other) and example not in seen for example, _, one, other in drawn)
    if told.n_items:
        assert told.difference == pytest.approx(told.agreement_after - told.agreement_before)
        assert back.difference == pytest.approx(-told.difference)
        assert (told.low, told.high) == pytest.approx((-back.high, -back.low), nan_ok=True)


# ---------------------------------------------------------------- in a study


@pytest.fixture
def asked(database_url):
    """Magpie's verdicts came with a file; the prompt strict@1a2b3c4d says the opposite. Physicians read the first conversation blind."""
    small = world.made(database_url)
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE, prompt_version="strict@1a2b3c4d")
        said = [
            Verdict(
                **small.item(example, criterion), example_id=example + 1, rater_id=rater, stage=Stage.JUDGE,
                label=Label.NOT_MET if world.LABELS[mark] is Label.MET else Label.MET,
            )
            for (example, criterion), mark in zip(((0, 0), (0, 1), (1, 0), (1, 1)), "+-++", strict=True)
        ]  # fmt: skip
        store.add_verdicts(session, said, actor="set-up", action="verdicts made")
    for criterion in range(2):
        world.said(small, Label.MET, criterion=criterion)
    world.said(small, Label.MET, example=1, stage=Stage.OPEN)
    yield small
    small.engine.dispose()


def test_older_prompts_keep_their_own_labels_and_only_blind_first_reads_count(asked):
    with reading(asked.engine) as session:
        assert list(prompts(session)) == ["Magpie", "Magpie strict@1a2b3c4d"]
        told = compare(session, "Magpie", "Magpie strict@1a2b3c4d", stated={})
        hidden = compare(session, "Magpie", "Magpie strict@1a2b3c4d", stated={}, blind={1})
        with pytest.raises(OverreadError, match="prompt: expected one of Magpie, Magpie strict@1a2b3c4d, got 'Owl'"):
            compare(session, "Magpie", "Owl", stated={})
    # met by the file and not by the prompt, then the other way round: each right once
    assert (told.n_items, told.agreement_before, told.agreement_after) == (2, 0.5, 0.5)
    assert told.not_stated == ("Magpie", "Magpie strict@1a2b3c4d")
    assert NOT_STATED.format("Magpie and Magpie strict@1a2b3c4d were") in told.sentences
    assert hidden.n_items == 0


def test_what_a_prompt_was_made_with_is_found_by_the_words_of_the_conversation(asked):
    text = '[{"role":"user","content":"I have had a sore throat for 2 days."}]'
    name = Split(5).set_of(text)
    stated = {"Magpie": {"strict@1a2b3c4d": [MadeWith("0" * 64, 5, (60, 20, 20), name)]}}
    with reading(asked.engine) as session:
        told = compare(session, "Magpie", "Magpie strict@1a2b3c4d", stated=stated)
    assert (told.n_items, told.n_seen, told.not_stated) == (0, 2, ("Magpie",))

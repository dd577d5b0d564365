"""Scores for inspect_ai, and sets for judges, of what physicians settled."""

import hashlib
import json
from collections import Counter

import msgspec
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.errors import NotAllowed, OverreadError
from evalcore.export import acts, judging_material as material
from evalcore.export.tables import Part
from evalcore.importing.examples import as_stored
from evalcore.importing.formats.inspect_logs import sample_id_of
from evalcore.judges.splits import SETS, SPLIT_WHAT, MadeWith, Split, check_unseen, made_with, parse_shares
from evalcore.study import contents, store
from evalcore.study.audit import trail
from evalcore.study.db import reading, writing
from evalcore.study.schema import LABELS_EXPORTED, Administrator, Label, Message, Stage
from tests import world

TOVE, LEAD = "Dr. Tove Lind", Administrator(name="Ana Ruiz")
quick = settings(max_examples=50, deadline=None)


def lines(content):
    return [orjson.loads(line) for line in content.splitlines()]


@pytest.fixture
def settled(database_url):
    """First rubric (7, -4): both met, by one reader, and settled against two; second rubric (5, 3): only one criterion read."""
    small = world.made(database_url)
    world.said(small, Label.MET, explanation="Says so in line 1.")
    world.said(small, Label.NOT_MET, criterion=1)
    world.said(small, Label.CANNOT_ASSESS, criterion=1, name=TOVE, explanation="Which dose?")
    world.said(small, Label.MET, criterion=1, name=TOVE, stage=Stage.ADJUDICATED, explanation="He names 500 mg.")
    world.said(small, Label.MET, example=1)
    yield small
    small.engine.dispose()


# ---------------------------------------------------------------- scores for inspect_ai


def test_a_score_is_that_of_the_labels_that_physicians_settled_and_of_whole_rubrics_alone(settled):
    scores = material.inspect_scores(settled.engine)
    (line,) = lines(scores.content)
    assert (scores.n_rows, scores.n_left_out, scores.named) == (1, 1, {"prompt-0"})
    assert (line["id"], line["epoch"], line["value"]) == ("prompt-0", 1, pytest.approx((7 - 4) / 7))
    assert line["answer"] == "Drink water, rest, and come back. Answer 0."
    assert line["explanation"] == "1. met: Names warning sign 1.\n2. met: Names warning sign 2."
    first, second = line["metadata"]["criteria"]
    assert (first["source"], second["source"]) == ("single", "adjudicated")
    assert first["rationales"] == [{"by": "reader", "label": "met", "text": "Says so in line 1."}]
    assert second["rationales"] == [
        {"by": "adjudicator", "label": "met", "text": "He names 500 mg."},
        {"by": "reader", "label": "cannot_assess", "text": "Which dose?"},
    ]
    assert TOVE not in scores.content.decode()


def test_a_rubric_that_physicians_could_not_assess_has_no_score(database_url):
    small = world.made(database_url)
    world.said(small, Label.MET)
    world.said(small, Label.CANNOT_ASSESS, criterion=1)
    scores = material.inspect_scores(small.engine)
    assert (scores.content, scores.n_left_out) == (b"", 1)
    small.engine.dispose()


def test_two_models_answers_to_one_sample_are_refused_until_one_model_is_chosen(database_url):
    small = world.made(database_url, models=("Alder-2", "Birch-1"), judged="  ", points=((7,), (5,)))
    for response in small.responses[:2]:
        world.said(small, Label.MET, response_id=response)
    with pytest.raises(OverreadError, match=r"model: expected one, .*, got Alder-2, Birch-1: choose one"):
        material.inspect_scores(small.engine)
    assert material.inspect_scores(small.engine, Part(model="Birch-1")).n_rows == 1
    small.engine.dispose()


def test_a_conversation_that_waits_for_the_viewers_read_has_no_score(settled):
    assert material.inspect_scores(settled.engine, Part(blind=frozenset({1}))).content == b""


def test_a_sample_that_a_log_only_counts_has_its_number_again_and_a_name_stays_a_name():
    asked = as_stored([Message("user", "My head hurts.")])
    digest = hashlib.sha256(asked.encode()).hexdigest()[:8]
    assert sample_id_of(f"head-aches-12-{digest}", asked) == "12"
    for name in ("fever-1", "12", f"head-aches-{digest}", "0b7ad6c1-9d50-4b2a-8f0e-123456789012", "a-12-00000000"):
        assert sample_id_of(name, asked) == name


# ---------------------------------------------------------------- the set of a conversation


conversations = st.lists(st.text(max_size=20), min_size=1, max_size=4).map(
    lambda texts: json.dumps([{"role": "user", "content": text} for text in texts], ensure_ascii=False)
)
splits = st.builds(
    lambda seed, train, dev: Split(seed, (train, min(dev, 100 - train), 100 - train - min(dev, 100 - train))),
    st.integers(0, 2**40), st.integers(0, 100), st.integers(0, 100),
)  # fmt: skip


@quick
@given(splits, conversations, conversations)
def test_the_set_follows_from_seed_shares_and_words_alone(split, one, other):
    spaced = json.dumps([turn | {"content": f"  {turn['content']}\n"} for turn in json.loads(one)])
    assert split.set_of(one) == split.set_of(spaced)
    shares = dict(zip(SETS, split.shares, strict=True))
    assert shares[split.set_of(other)] > 0


def test_sets_have_their_shares_on_average():
    texts = [json.dumps([{"role": "user", "content": f"Case {number}"}]) for number in range(2_000)]
    counts = Counter(Split(7, (60, 20, 20)).set_of(text) for text in texts)
    # binomial(2000, .6) has a standard deviation of 21.9, binomial(2000, .2) of 17.9: 4 of them
    assert abs(counts["train"] - 1200) < 88
    assert abs(counts["dev"] - 400) < 72
    assert {Split(8).set_of(text) == Split(7).set_of(text) for text in texts} == {True, False}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("60,40", "three whole percentages of train, dev, test"),
        ("60,20,x", "three whole percentages of train, dev, test"),
        ("60,20,30", r"add up to 100, got 60 \+ 20 \+ 30 = 110"),
    ],
)
def test_shares_that_are_none_are_one_sentence(said, sentence):
    with pytest.raises(OverreadError, match=sentence):
        parse_shares(said)


# ---------------------------------------------------------------- the files


@pytest.fixture
def many(tmp_path):
    """Forty conversations with one criterion each, in their order met and not met by a physician."""
    small = world.made(f"sqlite:///{tmp_path}/many.db", points=((5,),) * 40, judged="+" * 40)
    for number in range(40):
        label = Label.MET if number % 2 else Label.NOT_MET
        world.said(small, label, example=number, explanation=f"Reason {number}.")
    yield small
    small.engine.dispose()


def test_no_conversation_is_in_two_sets_and_every_labelled_item_is_in_one(many):
    sets = material.split_sets(many.engine, Split(3))
    rows = {name: lines(content) for name, content in sets.files.items()}
    named = [{row["example_id"] for row in found} for found in rows.values()]
    assert sum(map(len, named)) == len(frozenset().union(*named)) == sets.n_rows == 40
    assert sets.n_conversations == {name.removesuffix(".jsonl"): len(found) for name, found in rows.items()}
    for name, found in rows.items():
        assert {(row["set"], row["seed"], tuple(row["shares"])) for row in found} == {(name[:-6], 3, (60, 20, 20))}
    row = rows["test.jsonl"][0]
    number = int(row["example_id"].removeprefix("prompt-"))
    assert row["conversation"] == [{"role": "user", "content": f"I have had a sore throat for {number + 2} days."}]
    assert row["rationales"] == [{"by": "reader", "label": row["reference_label"], "text": f"Reason {number}."}]
    assert (row["reference_label"] == "met") == bool(number % 2)


def test_more_reads_move_no_conversation_into_another_set(many):
    before = material.split_sets(many.engine, Split(3), Part(blind=frozenset(range(1, 21))))
    after = material.split_sets(many.engine, Split(3))
    for name in before.files:
        assert set(before.files[name].splitlines()) <= set(after.files[name].splitlines())


def test_a_conversation_that_waits_for_anybodys_blind_read_is_in_no_set(many):
    world.assigned(many, n_items=3, n_readers=1)
    sets = material.split_sets(many.engine, Split(3))
    assert (sets.n_rows, sets.n_waiting) == (37, 3)
    assert "wait for somebody's blind read, and are in no set: 3." in " ".join(material.left_out_words(sets))


def test_what_a_blind_study_merely_hides_from_readers_waits_for_nobody(many):
    with writing(many.engine) as session:
        store.set_rules(session, msgspec.structs.replace(contents.rules(session), blind=True), actor="set-up")
    assert material.split_sets(many.engine, Split(3)).n_waiting == 0
    world.assigned(many, n_items=3, n_readers=1)
    assert material.split_sets(many.engine, Split(3)).n_waiting == 3


def test_what_physicians_could_not_assess_is_in_no_set_and_counted(settled):
    world.said(settled, Label.CANNOT_ASSESS, example=1, criterion=1)
    sets = material.split_sets(settled.engine, Split(3))
    assert (sets.n_rows, sets.n_unassessed) == (3, 1)


def test_a_reader_may_not_split_since_it_tells_what_others_have_to_read(many):
    with pytest.raises(NotAllowed, match="split conversations into sets for judges"):
        material.check_split(many.engine, many.viewer())


def test_the_trail_keeps_the_hash_of_each_file_by_which_it_is_known_again(many):
    split = Split(3, (50, 0, 50))
    sets = acts.take_split(many.engine, split, Part(), actor=LEAD)
    with reading(many.engine) as session:
        written = trail.details(session, LABELS_EXPORTED, f"{SPLIT_WHAT} as jsonl")
    content = sets.files["train.jsonl"]
    known = made_with(content, "mine.jsonl", written)
    assert known == MadeWith(hashlib.sha256(content).hexdigest(), 3, (50, 0, 50), "train")
    assert set(written[0]["files"]) == {"train.jsonl", "test.jsonl"}
    with pytest.raises(OverreadError, match=r"got mine\.jsonl, which the audit trail does not know"):
        made_with(content + b"\n", "mine.jsonl", written)


# ---------------------------------------------------------------- what a judge has seen


def texts_of(sets, name):
    return [json.dumps(row["conversation"]) for row in lines(sets.files[f"{name}.jsonl"])]


def test_a_judge_is_not_tested_on_conversations_that_its_prompt_was_made_with(many):
    sets = material.split_sets(many.engine, Split(3))
    stated = {"strict@1a2b3c4d": [MadeWith("0" * 64, 3, (60, 20, 20), "train")]}
    check_unseen(texts_of(sets, "test") + texts_of(sets, "dev"), stated, "Magpie")
    seen = texts_of(sets, "test") + texts_of(sets, "train")[:2]
    n_all = len(set(seen))
    with pytest.raises(OverreadError, match=rf"got 2 of {n_all} conversations .* train of seed 3 .* strict@1a2b3c4d"):
        check_unseen(seen, stated, "Magpie")

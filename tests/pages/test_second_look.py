"""The control of what seeing the judge does: criteria drawn for a second look without its verdict, and the difference of the arms."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.cli.judging import anchoring as command
from evalcore.errors import NotAllowed, OverreadError
from evalcore.export import methods, tables as export_tables
from evalcore.judges.anchoring import CHANGED, OVERALL, TOWARD, anchoring, effect, effect_words
from evalcore.reading import queries
from evalcore.reading.reviewing import Decision, control_keys
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.study import store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Label, Physicians, ReadingState, Rules
from tests import world
from tests.drawn_reads import reads_of
from tests.page_steps import said as words
from tests.reading_steps import IMANI, at_desk, decide, finish, only_the_first
from tests.world import submitted

MET, NOT_MET = Label.MET, Label.NOT_MET


def with_control(small, share, *, drawn=None, monkeypatch=None):
    """The study sends this share to a second look; `drawn`: places of the criteria that the drawing takes."""
    only_the_first(small)
    with writing(small.engine) as session:
        store.set_rules(session, Rules(control_share=share), actor="Ana Ruiz")
    if drawn is not None:
        seeds = (seed for seed in range(1_000) if (np.random.default_rng(seed).random(2) < share).tolist() == drawn)
        seed = next(seeds)
        monkeypatch.setattr("secrets.randbelow", lambda _: seed)


# ---------------------------------------------------------------- the drawing


@settings(max_examples=50)
@given(st.integers(0, 2**31 - 1), st.floats(0, 1), st.lists(st.integers(1, 99), unique=True), st.randoms())
def test_a_drawing_is_known_by_its_seed_whatever_the_order_and_takes_what_the_judge_labelled(seed, share, keys, order):
    judged = set(keys[::2])
    drawn = control_keys(seed, share, keys, judged)
    shuffled = keys[:]
    order.shuffle(shuffled)
    assert control_keys(seed, share, shuffled, judged) == drawn
    assert set(drawn) <= judged
    assert control_keys(seed, 1.0, keys, judged) == tuple(sorted(judged))
    assert control_keys(seed, 0.0, keys, judged) == control_keys(None, None, keys, judged) == ()


def test_without_the_rule_nothing_is_drawn(three_readers_quick):
    only_the_first(three_readers_quick)
    number, _ = submitted(three_readers_quick, IMANI, "-+")
    desk = at_desk(three_readers_quick, number)
    assert (desk.control, desk.reading.control_seed, desk.differing) == ((), None, three_readers_quick.criteria[0])
    assert "second_look" not in {clause.key for clause in methods.clauses(methods.facts(three_readers_quick.engine))}


# ---------------------------------------------------------------- the act


def test_until_the_second_look_nothing_of_the_judge_is_shown_and_of_the_control_nothing_until_all_is_done(
    three_readers, monkeypatch
):
    with_control(three_readers, 0.5, drawn=[True, False], monkeypatch=monkeypatch)
    number, _ = submitted(three_readers, IMANI, "-+")  # the judge: + -
    one, two = three_readers.criteria[0]
    desk = at_desk(three_readers, number)
    assert (desk.state, desk.control, desk.looking, desk.undecided) == (ReadingState.REVEALED, (one,), [one], [one])
    assert (desk.judge, desk.judged, desk.differing) == (None, {}, [])
    with pytest.raises(NotAllowed, match="once you have looked again"):
        decide(three_readers, number, two, Decision(NOT_MET))
    with pytest.raises(OverreadError, match="1 of 1 second looks still wait"):
        finish(three_readers, number)
    with pytest.raises(OverreadError, match="there is none here"):  # nothing is told of the judge's label
        decide(three_readers, number, one, Decision(NOT_MET, severity="severe"))
    decide(three_readers, number, one, Decision(MET))
    desk = at_desk(three_readers, number)
    assert (desk.looking, desk.undecided, set(desk.judged)) == ([], [two], {two})
    with pytest.raises(NotAllowed, match="second look at this criterion is kept"):
        decide(three_readers, number, one, Decision(NOT_MET), seen=desk.decided[one].verdict_id)
    with reading(three_readers.engine) as session:
        assert queries.blind_examples(
            session, three_readers.viewer(IMANI)
        )  # elsewhere the conversation is still hidden
    decide(three_readers, number, two, Decision(MET))
    finish(three_readers, number)
    assert set(at_desk(three_readers, number).judged) == {one, two}
    looked = {row["criterion_id"]: row for row in three_readers.history() if row["stage"] == "revised"}
    assert (looked[one]["blinded"], looked[one]["label"]) == (True, "met")
    assert (looked[two]["blinded"], looked[two]["label"]) == (False, "met")


def test_a_read_whose_other_criteria_agree_is_done_with_its_last_second_look(three_readers_quick, monkeypatch):
    with_control(three_readers_quick, 0.5, drawn=[True, False], monkeypatch=monkeypatch)
    number, _ = submitted(three_readers_quick, IMANI, "+-")  # as the judge
    decide(three_readers_quick, number, three_readers_quick.criteria[0][0], Decision(MET))
    assert at_desk(three_readers_quick, number).state is ReadingState.DONE


def test_the_arm_is_exported_and_an_amendment_does_not_change_what_was_said_on_the_second_look(
    three_readers, monkeypatch, capsys
):
    with_control(three_readers, 0.5, drawn=[True, False], monkeypatch=monkeypatch)
    number, _ = submitted(three_readers, IMANI, "-+")
    one, two = three_readers.criteria[0]
    look = decide(three_readers, number, one, Decision(NOT_MET))
    with reading(three_readers.engine) as session:
        waiting = blind_reads(session).set_index("criterion_id")
    assert not waiting["revealed"].any()
    decide(three_readers, number, two, Decision(NOT_MET))
    finish(three_readers, number)
    exported = export_tables.table(three_readers.engine, "verdicts")
    exported = exported.loc[exported["stage"].eq("revised")]
    assert set(exported["blinded"].astype(str).str.lower()) == {"true", "false"}
    decide(three_readers, number, one, Decision(MET), seen=look)  # now that the judge is shown
    amended = export_tables.table(three_readers.engine, "verdicts").query("stage == 'revised'")
    assert set(amended["blinded"]) == {False}, "the newest label was given with the judge in view"
    assert amended.set_index("label")["second_look"].fillna("").to_dict() == {"met": "not_met", "not_met": ""}
    with reading(three_readers.engine) as session:
        found = blind_reads(session).set_index("criterion_id")
    assert found.loc[[one, two], "control_share"].tolist() == [0.5, 0.5]
    assert found.loc[one, "looked_label"] == "not_met"
    assert pd.isna(found.loc[two, "looked_label"])
    table = anchoring(found.reset_index(), by=[OVERALL]).set_index("movement")
    assert (table.loc[CHANGED, "n"], table.loc[CHANGED, "n_control"], table.loc[TOWARD, "n_moved"]) == (1, 1, 1)
    told = effect(found.reset_index())
    assert (told.n_shown, told.n_changed_shown, told.n_control, told.n_changed_control) == (1, 1, 1, 0)
    assert told.difference == 1
    assert told.reason == "fewer than 5 conversations"
    command(db=three_readers.engine.url.render_as_string(hide_password=False), as_json=True, by=OVERALL)
    (row,) = json.loads(capsys.readouterr().out)["effects"]
    assert (row["judge"], row["n_control"], row["difference"], row["low"]) == (world.JUDGE, 1, 1, None)
    said = [
        clause.text for clause in methods.clauses(methods.facts(three_readers.engine)) if clause.key == "second_look"
    ]
    assert len(said) == 1
    assert said[0].startswith(
        "Before anything of the judge was shown, 1 read of a criterion, drawn at random, got a second look"
    )
    assert "0 % (0/1) on a second look without it" in said[0]


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan])
def test_a_share_that_is_none_is_refused(three_readers_quick, share):
    with (
        writing(three_readers_quick.engine) as session,
        pytest.raises(OverreadError, match=rf"control_share: expected a share from 0 to 1, got {share}"),
    ):
        store.set_rules(session, Rules(control_share=share), actor="Ana Ruiz")


# ---------------------------------------------------------------- the difference


def arms(n, shown, control, *, share=0.5):
    """One read a conversation that differs from the judge, by four readers in turn; so many of n in each arm are changed."""
    rows = []
    for e in range(2 * n):
        is_control, place = e % 2 == 1, e // 2
        changed = place < (control if is_control else shown)
        said = "-" if changed else "+"
        rows.append({
            "example": e, "rater": f"dr_{place % 4}", "first": "+", "says": "-", "share": share,
            "looked" if is_control else "revised": said,
        })  # fmt: skip
    return reads_of(rows)


def test_the_effect_is_the_difference_of_the_arms():
    found = effect(arms(40, 16, 4))
    assert (found.share_shown, found.share_control) == (0.4, 0.1)
    assert found.difference == pytest.approx(0.3)
    assert 0 < found.low < 0.3 < found.high
    assert found.physicians == Physicians.IN_GENERAL
    said = effect_words(found)
    assert "40 % (16/40) were changed after seeing its label, and 10 % (4/40) on a second look without it" in said
    assert "seeing the label changes +30 [" in said
    assert "no effect of seeing the label is shown" in effect_words(effect(arms(40, 5, 4)))


def test_without_a_drawing_there_is_no_effect_and_without_one_arm_no_difference():
    assert effect(reads_of([{"first": "+", "says": "-"}])) is None
    lone = effect(arms(10, 2, 1).query("looked_label.isna()"))
    assert math.isnan(lone.difference)
    assert "There is no interval of the difference: one arm has" in effect_words(lone)


@pytest.mark.slow
def test_the_interval_of_the_effect_covers_where_readers_differ():
    rng, held = np.random.default_rng(3), 0
    for _ in range(300):
        readers, examples = 6, 120
        pull = rng.normal(0.25, 0.1, readers).clip(0, 1)  # what seeing the label adds, of each reader
        rows = []
        for e in range(examples):
            who, is_control = rng.integers(readers), rng.random() < 0.5
            changed = rng.random() < 0.1 + (0 if is_control else pull[who])
            rows.append({
                "example": e, "rater": f"dr_{who}", "first": "+", "says": "-", "share": 0.5,
                "looked" if is_control else "revised": "-" if changed else "+",
            })  # fmt: skip
        found = effect(reads_of(rows))
        held += found.low <= 0.25 <= found.high
    assert 0.91 <= held / 300 <= 0.99


# ---------------------------------------------------------------- on the screen


def test_review_asks_for_the_second_look_and_says_nothing_of_the_judge(location, open_page):
    made = world.made(location, judged="+-++")
    try:
        with_control(made, 1.0)
        number, _ = submitted(made, IMANI, "-+")
        app = open_page(location, "review", IMANI)
        said = words(app)
        assert "Look again at 2 criteria, drawn at random" in said
        assert world.JUDGE not in said
        assert "The judge differs" not in said
        app.button(key=f"answer_2_{number}").click().run()  # kept
        app.button(key=f"answer_2_{number}").click().run()  # changed
        assert at_desk(made, number).state is ReadingState.DONE
        assert [row["label"] for row in made.history() if row["stage"] == "revised"] == ["not_met", "not_met"]
        assert all(row["blinded"] for row in made.history() if row["stage"] == "revised")
    finally:
        made.engine.dispose()

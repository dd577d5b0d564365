"""Undo says again what was said before; the history keeps all, and nobody undoes what somebody else said."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from evalcore.errors import AlreadyChanged
from evalcore.reading.reviewing import Decision
from evalcore.study import frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Cause, Label, RaterKind, Selection, Severity, Stage, Verdict
from tests import world
from tests.overriding_steps import SAID, labels, press, standing, take_back


def test_undo_of_the_only_verdict_takes_it_back(small):
    seen = press(small, Decision(Label.NOT_MET, Cause.OTHER, Severity.SEVERE, note="n"))
    take_back(small, seen)
    assert standing(small) == {}
    assert labels(small) == ["not_met", None]


def test_undo_of_a_change_says_again_all_that_was_said_before(small):
    said = Decision(Label.NOT_MET, Cause.CRITERION_WRONG, Severity.MODERATE, note="The guideline changed.")
    first = press(small, said)
    second = press(small, Decision(Label.MET, right_for_wrong_reason=True, note="no"), seen=first)
    take_back(small, second)
    before, _, after = small.history()
    assert {name: after[name] for name in SAID} == {name: before[name] for name in SAID}
    assert after["verdict_id"] not in (first, second)


def test_undo_of_an_undo_says_the_undone_again(small):
    seen = press(small, Decision(Label.NOT_MET, Cause.OTHER, note="n"))
    third = take_back(small, take_back(small, seen))
    first, _, last = small.history()
    assert last["verdict_id"] == third
    assert {name: last[name] for name in SAID} == {name: first[name] for name in SAID}
    assert standing(small) == {"Dr. Imani Noor": "not_met"}


def test_after_an_undo_a_new_verdict_can_be_given(small):
    seen = take_back(small, press(small, Decision(Label.NOT_MET)))
    press(small, Decision(Label.MET), seen=seen)
    assert labels(small) == ["not_met", None, "met"]
    assert standing(small) == {"Dr. Imani Noor": "met"}


def test_nothing_can_be_undone_where_nothing_was_said(small):
    for seen in (1, None):
        with pytest.raises(AlreadyChanged):
            take_back(small, seen)
    assert small.history() == []


def test_nobody_undoes_a_verdict_of_somebody_else(small):
    seen = press(small, Decision(Label.NOT_MET))
    with pytest.raises(AlreadyChanged):
        take_back(small, seen, name="Dr. Tove Lind")
    assert labels(small) == ["not_met"]


def test_undo_brings_back_how_the_earlier_verdict_came_to_be(small):
    """An imported open verdict on a drawn item is drawn again after override and undo."""
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Imani Noor")
        drawn = Verdict(
            **small.item(), example_id=1, rater_id=rater, stage=Stage.OPEN, label=Label.MET, confidence=0.5,
            selection=Selection.RANDOM, inclusion_probability=0.25, blinded=True,
        )  # fmt: skip
        (number,) = store.add_verdicts(session, [drawn], actor="set-up", action="x")
    take_back(small, press(small, Decision(Label.NOT_MET), seen=number))
    first, override, after = small.history()
    assert (override["selection"], override["inclusion_probability"], override["blinded"]) == (
        "volunteered",
        None,
        False,
    )
    for name in ("label", "confidence", "selection", "inclusion_probability", "blinded"):
        assert after[name] == first[name], name


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["+", "-", "?", "undo"]), min_size=1, max_size=8))
def test_whatever_is_pressed_the_history_only_grows_and_one_verdict_stands(small, presses):
    """Undo is held against a plain list: it says again what was said before the newest verdict."""
    item = small.item(1, 1)
    with reading(small.engine) as session:
        found = frames.verdicts(session, kind=RaterKind.REVIEWER, history=True)
    mine = found.loc[found["criterion_id"].eq(item["criterion_id"]), ["verdict_id", "label"]]
    said: list[str | None] = [label if isinstance(label, str) else None for label in mine["label"]]
    seen = int(mine["verdict_id"].max()) if len(mine) else None
    for pressed in presses:
        if pressed != "undo":
            seen = press(small, Decision(world.LABELS[pressed]), seen=seen, item=item)
            said.append(world.LABELS[pressed])
        elif seen is not None:
            seen = take_back(small, seen, item=item)
            said.append(said[-2] if len(said) > 1 else None)
    with reading(small.engine) as session:
        after = frames.verdicts(session, kind=RaterKind.REVIEWER, history=True)
        stands = frames.verdicts(session, kind=RaterKind.REVIEWER)
    given_here = after.loc[after["criterion_id"].eq(item["criterion_id"]), "label"]
    assert [label if isinstance(label, str) else None for label in given_here] == said
    assert stands["label"].tolist() == [label for label in said[-1:] if label is not None]

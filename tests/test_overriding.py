"""Give a verdict, override, change, undo: each a new verdict, the history keeps all, and nobody writes over anybody."""

import multiprocessing
import re
import traceback

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalcore import assigning, overriding, store
from evalcore.db import open_study, reading, writing
from evalcore.desks import MAX_NOTE
from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.overriding import Reading, check_reading
from evalcore.queries import frames
from evalcore.schema import Cause, Label, RaterKind, Role, Selection, Severity, Stage, Verdict
from tests import world

SAID = ("label", "cause", "severity", "right_for_wrong_reason", "explanation")


@pytest.fixture
def small(database_url):
    made = world.made(database_url)  # the judge says + on the first criterion, - on the second
    yield made
    made.engine.dispose()


def press(small, said, *, seen=None, item=None, name="Dr. Imani Noor", judge=world.JUDGE):
    return overriding.give_verdict(
        small.engine, small.viewer(name), **(item or small.item()), reading=said, judge=judge, seen=seen
    )


def take_back(small, seen, *, item=None, name="Dr. Imani Noor"):
    return overriding.undo(small.engine, small.viewer(name), **(item or small.item()), seen=seen)


def standing(small):
    """What physicians' verdicts now stand: label by reviewer."""
    with reading(small.engine) as session:
        found = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True)
    return dict(zip(found["rater"], found["label"], strict=True))


def labels(small):
    return [row["label"] for row in small.history()]


# ---------------------------------------------------------------- giving


def test_a_verdict_given_here_is_open_volunteered_and_not_blinded(small):
    said = Reading(Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD, note="  It names two of three signs.  ")
    number = press(small, said)
    (row,) = small.history()
    assert row["verdict_id"] == number
    assert {name: row[name] for name in SAID} == {
        "label": "not_met",
        "cause": "judge_misread_answer",
        "severity": "mild",
        "right_for_wrong_reason": False,
        "explanation": "It names two of three signs.",
    }
    assert (row["stage"], row["selection"], row["blinded"]) == ("open", "volunteered", False)
    assert row["inclusion_probability"] is None
    assert (row["rater"], row["rater_kind"]) == ("Dr. Imani Noor", "reviewer")
    assert row["created_at"].tzinfo is not None


@pytest.mark.parametrize("label", list(Label))
def test_every_label_can_be_given(small, label):
    press(small, Reading(label))
    assert standing(small) == {"Dr. Imani Noor": label}


def test_an_empty_note_is_no_note(small):
    press(small, Reading(Label.MET, note=" \n "))
    assert small.history()[0]["explanation"] is None


def test_the_judges_verdict_stays_as_it_was(small):
    columns = ["verdict_id", "item_id", "rater", "stage", "label", "explanation", "created_at"]
    with reading(small.engine) as session:
        before = frames.verdicts(session, kind=RaterKind.JUDGE, texts=True)[columns]
    press(small, Reading(Label.NOT_MET))
    with reading(small.engine) as session:
        after = frames.verdicts(session, kind=RaterKind.JUDGE, texts=True)[columns]
    assert after.equals(before)
    assert before["label"].tolist() == ["met", "not_met", "met", "met"]


def test_a_change_is_a_new_verdict_and_the_history_keeps_both(small):
    first = press(small, Reading(Label.NOT_MET, Cause.LANGUAGE))
    second = press(small, Reading(Label.CANNOT_ASSESS), seen=first)
    assert second != first
    assert labels(small) == ["not_met", "cannot_assess"]
    assert small.history()[0]["cause"] == "language"
    assert standing(small) == {"Dr. Imani Noor": "cannot_assess"}


def test_two_physicians_do_not_touch_each_others_verdicts(small):
    mine = press(small, Reading(Label.NOT_MET))
    press(small, Reading(Label.MET), name="Dr. Tove Lind")
    press(small, Reading(Label.CANNOT_ASSESS), seen=mine)
    assert standing(small) == {"Dr. Imani Noor": "cannot_assess", "Dr. Tove Lind": "met"}


def test_items_of_one_response_are_apart(small):
    press(small, Reading(Label.NOT_MET))
    press(small, Reading(Label.MET), item=small.item(0, 1))
    assert labels(small) == ["not_met", "met"]


# ---------------------------------------------------------------- undo


def test_undo_of_the_only_verdict_takes_it_back(small):
    seen = press(small, Reading(Label.NOT_MET, Cause.OTHER, Severity.SEVERE, note="n"))
    take_back(small, seen)
    assert standing(small) == {}
    assert labels(small) == ["not_met", None]


def test_undo_of_a_change_says_again_all_that_was_said_before(small):
    said = Reading(Label.NOT_MET, Cause.CRITERION_WRONG, Severity.MODERATE, note="The guideline changed.")
    first = press(small, said)
    second = press(small, Reading(Label.MET, right_for_wrong_reason=True, note="no"), seen=first)
    take_back(small, second)
    before, _, after = small.history()
    assert {name: after[name] for name in SAID} == {name: before[name] for name in SAID}
    assert after["verdict_id"] not in (first, second)


def test_undo_of_an_undo_says_the_undone_again(small):
    seen = press(small, Reading(Label.NOT_MET, Cause.OTHER, note="n"))
    third = take_back(small, take_back(small, seen))
    first, _, last = small.history()
    assert last["verdict_id"] == third
    assert {name: last[name] for name in SAID} == {name: first[name] for name in SAID}
    assert standing(small) == {"Dr. Imani Noor": "not_met"}


def test_after_an_undo_a_new_verdict_can_be_given(small):
    seen = take_back(small, press(small, Reading(Label.NOT_MET)))
    press(small, Reading(Label.MET), seen=seen)
    assert labels(small) == ["not_met", None, "met"]
    assert standing(small) == {"Dr. Imani Noor": "met"}


def test_nothing_can_be_undone_where_nothing_was_said(small):
    for seen in (1, None):
        with pytest.raises(AlreadyChanged):
            take_back(small, seen)
    assert small.history() == []


def test_nobody_undoes_a_verdict_of_somebody_else(small):
    seen = press(small, Reading(Label.NOT_MET))
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
    take_back(small, press(small, Reading(Label.NOT_MET), seen=number))
    first, override, after = small.history()
    assert (override["selection"], override["inclusion_probability"], override["blinded"]) == (
        "volunteered",
        None,
        False,
    )
    for name in ("label", "confidence", "selection", "inclusion_probability", "blinded"):
        assert after[name] == first[name], name


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
            seen = press(small, Reading(world.LABELS[pressed]), seen=seen, item=item)
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


# ---------------------------------------------------------------- two at once


def test_a_second_tab_that_has_not_seen_the_first_is_told(small):
    first = press(small, Reading(Label.NOT_MET))
    with pytest.raises(AlreadyChanged, match="changed in another tab"):
        press(small, Reading(Label.MET), seen=None)
    second = press(small, Reading(Label.CANNOT_ASSESS), seen=first)
    for act in (lambda: press(small, Reading(Label.MET), seen=first), lambda: take_back(small, first)):
        with pytest.raises(AlreadyChanged, match="the last click was not saved"):
            act()
    assert labels(small) == ["not_met", "cannot_assess"]
    take_back(small, second)


def test_a_stale_page_after_an_undo_is_told(small):
    seen = press(small, Reading(Label.NOT_MET))
    take_back(small, seen)
    with pytest.raises(AlreadyChanged):
        press(small, Reading(Label.MET), seen=seen)
    with pytest.raises(AlreadyChanged):
        press(small, Reading(Label.MET), seen=None)


def press_at_once(location, item, label, seen, start, said):
    """In a process of its own: wait for the other one, then press."""
    try:
        small = world.World(location, open_study(location), [], [])
        viewer = small.viewer()
        start.wait(60)
        try:
            overriding.give_verdict(
                small.engine, viewer, **item, reading=Reading(Label(label)), judge=world.JUDGE, seen=seen
            )
            said.put("kept")
        except AlreadyChanged:
            said.put("told")
        small.engine.dispose()
    except Exception:  # noqa: BLE001 - whatever it is, the test shows it
        said.put(traceback.format_exc())


@pytest.mark.parametrize("reader_is_new", [True, False])
def test_of_two_processes_that_press_at_once_one_is_kept_and_one_is_told(small, reader_is_new):
    """With the reader's very first verdict, when not even the rater is there yet, and with a later one."""
    seen = None if reader_is_new else press(small, Reading(Label.CANNOT_ASSESS))
    before = small.events(), labels(small)
    spawn = multiprocessing.get_context("spawn")
    start, said = spawn.Barrier(2), spawn.Queue()
    processes = [
        spawn.Process(target=press_at_once, args=(small.location, small.item(), label, seen, start, said))
        for label in ("met", "not_met")
    ]
    for process in processes:
        process.start()
    assert sorted(said.get(timeout=90) for _ in processes) == ["kept", "told"]
    for process in processes:
        process.join(30)
    assert len(small.events()) == len(before[0]) + 1
    assert len(labels(small)) == len(before[1]) + 1
    assert len(standing(small)) == 1


# ---------------------------------------------------------------- what may be said

JUDGE_SAYS = (Label.MET, Label.NOT_MET, None)


@given(
    label=st.sampled_from(list(Label)),
    judge_label=st.sampled_from(JUDGE_SAYS),
    cause=st.none() | st.sampled_from(list(Cause)),
    severity=st.none() | st.sampled_from(list(Severity)),
    right_for_wrong_reason=st.booleans(),
)
def test_what_may_be_said_follows_from_agreement_alone(label, judge_label, cause, severity, right_for_wrong_reason):
    said = Reading(label, cause, severity, right_for_wrong_reason)
    blames = cause is not None or severity is not None
    allowed = (not blames or (judge_label is not None and label != judge_label)) and (
        not right_for_wrong_reason or label == judge_label
    )
    if allowed:
        check_reading(said, judge_label)
    else:
        with pytest.raises(OverreadError, match="belong"):
            check_reading(said, judge_label)


@pytest.mark.parametrize(
    ("said", "judge", "reason"),
    [
        (
            Reading(Label.MET, Cause.OTHER),
            world.JUDGE,
            "A cause, a severity and a kind of error belong to a label that differs",
        ),
        (Reading(Label.MET, severity=Severity.NONE), world.JUDGE, "this one agrees"),
        (Reading(Label.NOT_MET, Cause.OTHER), "Nobody", "there is none here"),
        (Reading(Label.NOT_MET, right_for_wrong_reason=True), world.JUDGE, "this one differs"),
        (Reading(Label.MET, right_for_wrong_reason=True), "Nobody", "there is none here"),
        (
            Reading(Label.MET, note="x" * (MAX_NOTE + 1)),
            world.JUDGE,
            "note: 5,001 characters came, expected at most 5,000",
        ),
        (Reading(Label.MET, note="a\x00b"), world.JUDGE, "expected plain text"),
        (Reading(Label.MET, note="half \ud83e"), world.JUDGE, "expected plain text"),
    ],
)
def test_what_contradicts_itself_is_refused_with_a_sentence_and_not_kept(small, said, judge, reason):
    with pytest.raises(OverreadError, match=re.escape(reason)):
        press(small, said, judge=judge)
    assert small.history() == []


def test_a_note_of_the_full_length_in_any_script_is_kept(small):
    note = ("胸痛 \U0001f912 ٣ 'x' $y$ # =1+1 " * MAX_NOTE)[:MAX_NOTE].strip()
    press(small, Reading(Label.MET, note=note))
    assert small.history()[0]["explanation"] == note


def test_each_judge_is_held_against_its_own_verdict(small):
    """Magpie says met on the item; Wren says not met: the same label differs from the one and agrees with the other."""
    with writing(small.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        said = Verdict(**small.item(), example_id=1, rater_id=wren, stage=Stage.JUDGE, label=Label.NOT_MET)
        store.add_verdicts(session, [said], actor="set-up", action="x")
    with pytest.raises(OverreadError, match="agrees"):
        press(small, Reading(Label.NOT_MET, Cause.OTHER), judge="Wren")
    press(small, Reading(Label.NOT_MET, Cause.OTHER), judge=world.JUDGE)


# ---------------------------------------------------------------- who, and on what


@pytest.mark.parametrize(
    ("roles", "may"),
    [
        ((Role.REVIEWER,), True),
        ((Role.ADJUDICATOR,), True),
        ((Role.RESEARCHER,), False),
        ((Role.LEAD,), False),
        ((Role.LEAD, Role.REVIEWER), True),
    ],
)
def test_physicians_alone_give_and_undo_verdicts(small, roles, may):
    world.add_researcher(small.engine, "Dr. Role", *roles)
    if may:
        take_back(small, press(small, Reading(Label.MET), name="Dr. Role"), name="Dr. Role")
        assert labels(small) == ["met", None]
        return
    with pytest.raises(NotAllowed, match="Giving a verdict takes the role adjudicator or reviewer"):
        press(small, Reading(Label.MET), name="Dr. Role")
    seen = press(small, Reading(Label.MET))
    with pytest.raises(NotAllowed):
        take_back(small, seen, name="Dr. Role")
    assert labels(small) == ["met"]


def test_a_criterion_of_another_example_is_refused(small):
    foreign = {"response_id": small.responses[0], "criterion_id": small.criteria[1][0]}
    with pytest.raises(NotFound, match=f"Response {small.responses[0]} has no criterion {small.criteria[1][0]}"):
        press(small, Reading(Label.MET), item=foreign)
    assert small.history() == []


@pytest.mark.parametrize("item", [{"response_id": 99, "criterion_id": 1}, {"response_id": 1, "criterion_id": 99}])
def test_an_item_that_is_not_there_is_refused(small, item):
    with pytest.raises(NotFound):
        press(small, Reading(Label.MET), item=item)


def test_an_item_that_no_judge_has_read_can_be_read(sqlite_database_url):
    small = world.made(sqlite_database_url, judged=" -++")
    press(small, Reading(Label.NOT_MET))
    assert small.events()[-1] == ("Dr. Imani Noor", "verdict given")


# ---------------------------------------------------------------- blind


def test_no_open_verdict_is_given_on_what_waits_for_ones_own_blind_read(small):
    """From a page that was opened before the conversation was assigned."""
    earlier = press(small, Reading(Label.MET), name="Dr. Tove Lind")
    assigning.assign(small.engine, assigning.Choice(), actor="set-up")
    before = small.history()
    with pytest.raises(NotAllowed, match="waits for your first read"):
        press(small, Reading(Label.NOT_MET))
    assert small.history() == before
    take_back(small, earlier, name="Dr. Tove Lind")  # who has seen the judge's verdict is not asked to read it blind
    assert [row["label"] for row in small.history()] == ["met", None]

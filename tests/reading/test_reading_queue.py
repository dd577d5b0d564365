"""The queue of assigned reading: who is given which item, for how long it is kept, and what comes back."""

import pytest

from evalcore.errors import NotAllowed, NotFound
from evalcore.reading import overriding, reviewing, store as reading_store
from evalcore.study import contents
from evalcore.study.db import writing
from evalcore.study.schema import Ask, Label, ReadingState, Role, Selection
from tests import world
from tests.reading_steps import IMANI, THIRD, TOVE, at_desk, in_hand, mark, only_the_first, take
from tests.world import after, answer, assigned, submitted

MET, NOT_MET, CANNOT = Label.MET, Label.NOT_MET, Label.CANNOT_ASSESS


def order(small):
    """The responses in the order of reading."""
    return [response for (response,) in world.rows(small.engine, "SELECT response_id FROM task ORDER BY id")]


def test_everybody_reads_in_the_order_that_was_drawn(database_url):
    small = world.made(database_url, points=((1,),) * 6, judged="++++++")
    assigned(small, seed=4)
    drawn = order(small)
    assert drawn != sorted(drawn)  # seed 4 draws another order than that of the rows
    for name in (IMANI, TOVE):
        read = []
        for _ in drawn:
            read.append(in_hand(small, name))
            submitted(small, name, "+")
        assert read == drawn
        assert take(small, name) is None
    small.engine.dispose()


def test_taking_again_gives_the_same_item(three_readers_quick):
    assigned(three_readers_quick)
    first, again = take(three_readers_quick), take(three_readers_quick, at=after(1))
    assert first.reading.id == again.reading.id
    assert world.count(three_readers_quick.engine, "reading") == 1


def test_a_place_is_kept_for_45_minutes_and_each_mark_moves_that_on(three_readers):
    only_the_first(three_readers, n_readers=1)
    desk = take(three_readers)
    assert take(three_readers, TOVE, at=after(44.9)) is None
    mark(three_readers, desk, at=after(44))
    assert take(three_readers, TOVE, at=after(44 + 44.9)) is None
    reviewing.undo_mark(three_readers.engine, three_readers.viewer(), desk.reading.id, at=after(80))
    assert take(three_readers, TOVE, at=after(80 + 44.9)) is None
    assert in_hand(three_readers, TOVE, at=after(80 + 45)) == three_readers.responses[0]


def test_how_long_a_place_is_kept_is_the_assignments_own(three_readers_quick):
    only_the_first(three_readers_quick, n_readers=1, reserve_minutes=5)
    take(three_readers_quick)
    assert take(three_readers_quick, TOVE, at=after(4.9)) is None
    assert in_hand(three_readers_quick, TOVE, at=after(5)) == three_readers_quick.responses[0]


def test_who_comes_back_while_the_place_is_free_has_it_reserved_anew(three_readers):
    only_the_first(three_readers, n_readers=1)
    number = take(three_readers).reading.id
    back = take(three_readers, at=after(60))
    assert (back.reading.id, back.reading.reserved_until) == (number, after(60 + 45))
    assert back.reading.seconds == 0.0  # nothing was done yet
    assert take(three_readers, TOVE, at=after(61)) is None
    mark(three_readers, back, at=after(60.5))
    assert at_desk(three_readers, number).reading.seconds == 120.0  # the hour away counts as one pause


def test_who_marked_nothing_gives_the_item_back_where_others_have_filled_it(three_readers):
    only_the_first(three_readers, n_readers=1)
    desk = take(three_readers)
    take(three_readers, TOVE, at=after(50))
    assert take(three_readers, at=after(51)) is None
    for act in (
        lambda: at_desk(three_readers, desk.reading.id),
        lambda: mark(three_readers, desk, at=after(52)),
        lambda: world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id),
    ):
        with pytest.raises(NotFound, match=r"There is no item \d+ in your hands: it was given back"):
            act()
    # and when the other one does not read it either, it comes again
    again = take(three_readers, at=after(50 + 46))
    assert again.asked.response_id == three_readers.responses[0]
    assert again.reading.id > desk.reading.id  # never the number that a forgotten tab may still hold


def test_who_marked_something_keeps_the_item_and_may_submit_which_counts_as_one_read_more(three_readers):
    only_the_first(three_readers, n_readers=1)
    desk = take(three_readers)
    mark(three_readers, desk, MET, at=after(1))
    submitted(three_readers, TOVE, "+-", at=after(50))
    kept = take(three_readers, at=after(51))
    assert (kept.reading.id, kept.drafts[kept.keys[0]].label) == (desk.reading.id, "met")
    mark(three_readers, desk, NOT_MET, item=1, at=after(52))
    assert world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id, at=after(53)) is ReadingState.DONE
    assert take(three_readers, THIRD, at=after(53)) is None
    assert sorted((row["rater"], row["label"]) for row in three_readers.history()) == sorted(
        (name, label) for name in (IMANI, TOVE) for label in ("met", "not_met")
    )


def test_a_submit_after_the_reservation_has_run_out_is_kept(three_readers):
    only_the_first(three_readers)
    desk = take(three_readers)
    number = answer(three_readers, three_readers.viewer(), desk, "+-", at=after(2))
    assert world.lock(three_readers.engine, three_readers.viewer(), number, at=after(600)) is ReadingState.DONE
    assert [row["label"] for row in three_readers.history()] == ["met", "not_met"]


def test_a_second_reader_keeps_the_task_when_the_first_has_finished(three_readers):
    only_the_first(three_readers)
    second = take(three_readers, TOVE)
    submitted(three_readers, IMANI, "+-")
    assert take(three_readers, TOVE, at=after(1)).reading.id == second.reading.id
    assert submitted(three_readers, TOVE, "+-", at=after(2)) == (second.reading.id, ReadingState.DONE)
    assert take(three_readers, THIRD, at=after(3)) is None  # two were wanted


def test_an_item_is_read_by_as_many_as_are_wanted(three_readers):
    assigned(three_readers, n_readers=2)
    first, second = order(three_readers)
    assert [in_hand(three_readers, name) for name in (IMANI, TOVE, THIRD)] == [first, first, second]


def test_nobody_reads_an_item_twice_also_over_two_assignments(three_readers):
    """Assigning leaves out what is assigned; where an item came in twice all the same, its reader is not asked again."""
    only_the_first(three_readers)
    with writing(three_readers.engine) as session:
        everybody = [person.person_id for person in contents.people(session) if Role.REVIEWER in person.roles]
        reading_store.add_assignment(
            session, [(1, three_readers.responses[0], 0.5)], ask=Ask.RUBRIC, readers=everybody, n_readers=2, seed=1,
            reserve_minutes=45, selection=Selection.RANDOM, chosen_by={}, n_population=2, actor="Ana Ruiz",
        )  # fmt: skip
    number = take(three_readers).reading.id
    assert take(three_readers, at=after(50)).reading.id == number
    submitted(three_readers, IMANI, "+-", at=after(51))
    assert take(three_readers, at=after(51)) is None
    submitted(three_readers, TOVE, "+-", at=after(52))
    assert take(three_readers, TOVE, at=after(52)) is None
    assert in_hand(three_readers, THIRD, at=after(53)) == three_readers.responses[0]  # from the second assignment


def test_who_has_given_an_open_verdict_on_the_response_is_not_asked_to_read_it_blind(three_readers):
    said = reviewing.Decision(NOT_MET)
    imani = three_readers.viewer()
    seen = overriding.give_verdict(
        three_readers.engine, imani, **three_readers.item(), decision=said, judge=world.JUDGE, seen=None
    )
    only_the_first(three_readers)
    only_the_first(three_readers, ask=Ask.RESPONSE_ACUITY)
    assert take(three_readers) is None  # neither for the rubric nor for the acuity
    overriding.undo(three_readers.engine, imani, **three_readers.item(), seen=seen)
    assert take(three_readers) is None  # who took it back has seen the judge's verdict all the same
    assert in_hand(three_readers, TOVE) == three_readers.responses[0]


def test_who_has_read_the_rubric_is_still_asked_for_the_acuity_and_never_for_the_rubric_again(three_readers):
    only_the_first(three_readers)
    only_the_first(three_readers, ask=Ask.RESPONSE_ACUITY)
    number, _ = submitted(three_readers, IMANI, "+-")
    guard = "reading_read_no_delete" if three_readers.engine.dialect.name == "sqlite" else "reading_read ON reading"
    world.tampered(  # only the verdicts tell now
        three_readers.engine,
        f"DROP TRIGGER {guard}",
        f"DELETE FROM mark WHERE reading_id = {number}",
        f"DELETE FROM reading WHERE id = {number}",
    )
    assert take(three_readers).asked.ask is Ask.RESPONSE_ACUITY


def test_an_item_goes_to_readers_of_its_language(database_url):
    small = world.made(database_url, points=((1,), (1,), (1,)), judged="+++", languages={0: "ar", 1: None})
    world.add_researcher(small.engine, "Dr. Arabic", Role.REVIEWER, languages=("ar",))
    world.add_researcher(small.engine, "Dr. Both", Role.REVIEWER, languages=("fr", "ar", "en"))
    assigned(small, n_readers=4)
    arabic, unknown, english = small.responses
    may_read = {
        "Dr. Imani Noor": {unknown, english},  # a profile without languages reads English
        "Dr. Arabic": {arabic, unknown},
        "Dr. Both": {arabic, unknown, english},
    }
    for name, wanted in may_read.items():
        read = set()
        while (response := in_hand(small, name)) is not None:
            read.add(response)
            submitted(small, name, "+")
        assert read == wanted, name
    small.engine.dispose()


def test_only_the_chosen_readers_are_asked_and_only_readers_may_take(three_readers):
    world.add_researcher(three_readers.engine, "Dr. Adjudicator", Role.ADJUDICATOR)
    assigned(three_readers, readers=(IMANI, "Dr. Adjudicator"))
    assert take(three_readers, TOVE) is None
    assert take(three_readers, "Dr. Adjudicator") is not None
    with pytest.raises(NotAllowed, match="Only adjudicators and reviewers can read assigned responses"):
        take(three_readers, "Ana Ruiz")


def test_the_desk_of_a_blind_reader_names_neither_model_nor_judge_nor_another_reader(three_readers):
    only_the_first(three_readers)
    submitted(three_readers, TOVE, "-+")
    desk = take(three_readers)
    assert desk.keys == three_readers.criteria[0]
    assert [item.position for item in desk.material.items] == [1, 2]
    assert desk.material.response == "Drink water, rest, and come back. Answer 0."
    assert (desk.judge, desk.judged, desk.first, desk.decided) == (None, {}, {}, {})
    assert not any(word in repr(desk) for word in ("Alder", "Magpie", "Tove", "It does."))

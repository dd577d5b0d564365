"""The queue of assigned reading: who is given which item, for how long it is kept, and what comes back."""

import pytest

from evalcore.errors import NotAllowed, NotFound
from evalcore.reading import overriding, reviewing
from evalcore.reading import store as reading_store
from evalcore.study import contents
from evalcore.study.db import writing
from evalcore.study.schema import Ask, Label, ReadingState, Role, Selection
from tests import world
from tests.reading_steps import IMANI, THIRD, TOVE, at_desk, in_hand, mark, only_the_first, quick, small, take
from tests.world import after, answer, assigned, submitted

__all__ = ["quick", "small"]  # fixtures

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


def test_taking_again_gives_the_same_item(quick):
    assigned(quick)
    first, again = take(quick), take(quick, at=after(1))
    assert first.reading.id == again.reading.id
    assert world.count(quick.engine, "reading") == 1


def test_a_place_is_kept_for_45_minutes_and_each_mark_moves_that_on(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    assert take(small, TOVE, at=after(44.9)) is None
    mark(small, desk, at=after(44))
    assert take(small, TOVE, at=after(44 + 44.9)) is None
    reviewing.undo_mark(small.engine, small.viewer(), desk.reading.id, at=after(80))
    assert take(small, TOVE, at=after(80 + 44.9)) is None
    assert in_hand(small, TOVE, at=after(80 + 45)) == small.responses[0]


def test_how_long_a_place_is_kept_is_the_assignments_own(quick):
    only_the_first(quick, n_readers=1, reserve_minutes=5)
    take(quick)
    assert take(quick, TOVE, at=after(4.9)) is None
    assert in_hand(quick, TOVE, at=after(5)) == quick.responses[0]


def test_who_comes_back_while_the_place_is_free_has_it_reserved_anew(small):
    only_the_first(small, n_readers=1)
    number = take(small).reading.id
    back = take(small, at=after(60))
    assert (back.reading.id, back.reading.reserved_until) == (number, after(60 + 45))
    assert back.reading.seconds == 0.0  # nothing was done yet
    assert take(small, TOVE, at=after(61)) is None
    mark(small, back, at=after(60.5))
    assert at_desk(small, number).reading.seconds == 120.0  # the hour away counts as one pause


def test_who_marked_nothing_gives_the_item_back_where_others_have_filled_it(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    take(small, TOVE, at=after(50))
    assert take(small, at=after(51)) is None
    for act in (
        lambda: at_desk(small, desk.reading.id),
        lambda: mark(small, desk, at=after(52)),
        lambda: reviewing.submit(small.engine, small.viewer(), desk.reading.id),
    ):
        with pytest.raises(NotFound, match=r"There is no item \d+ in your hands: it was given back"):
            act()
    # and when the other one does not read it either, it comes again
    again = take(small, at=after(50 + 46))
    assert again.asked.response_id == small.responses[0]
    assert again.reading.id > desk.reading.id  # never the number that a forgotten tab may still hold


def test_who_marked_something_keeps_the_item_and_may_submit_which_counts_as_one_read_more(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    mark(small, desk, MET, at=after(1))
    submitted(small, TOVE, "+-", at=after(50))
    kept = take(small, at=after(51))
    assert (kept.reading.id, kept.drafts[kept.keys[0]].label) == (desk.reading.id, "met")
    mark(small, desk, NOT_MET, item=1, at=after(52))
    assert reviewing.submit(small.engine, small.viewer(), desk.reading.id, at=after(53)) is ReadingState.DONE
    assert take(small, THIRD, at=after(53)) is None
    assert sorted((row["rater"], row["label"]) for row in small.history()) == sorted(
        (name, label) for name in (IMANI, TOVE) for label in ("met", "not_met")
    )


def test_a_submit_after_the_reservation_has_run_out_is_kept(small):
    only_the_first(small)
    desk = take(small)
    number = answer(small, small.viewer(), desk, "+-", at=after(2))
    assert reviewing.submit(small.engine, small.viewer(), number, at=after(600)) is ReadingState.DONE
    assert [row["label"] for row in small.history()] == ["met", "not_met"]


def test_a_second_reader_keeps_the_task_when_the_first_has_finished(small):
    only_the_first(small)
    second = take(small, TOVE)
    submitted(small, IMANI, "+-")
    assert take(small, TOVE, at=after(1)).reading.id == second.reading.id
    assert submitted(small, TOVE, "+-", at=after(2)) == (second.reading.id, ReadingState.DONE)
    assert take(small, THIRD, at=after(3)) is None  # two were wanted


def test_an_item_is_read_by_as_many_as_are_wanted(small):
    assigned(small, n_readers=2)
    first, second = order(small)
    assert [in_hand(small, name) for name in (IMANI, TOVE, THIRD)] == [first, first, second]


def test_nobody_reads_an_item_twice_also_over_two_assignments(small):
    """Assigning leaves out what is assigned; where an item came in twice all the same, its reader is not asked again."""
    only_the_first(small)
    with writing(small.engine) as session:
        everybody = [person.person_id for person in contents.people(session) if Role.REVIEWER in person.roles]
        reading_store.add_assignment(
            session, [(1, small.responses[0], 0.5)], ask=Ask.RUBRIC, readers=everybody, n_readers=2, seed=1,
            reserve_minutes=45, selection=Selection.RANDOM, chosen_by={}, n_population=2, actor="Ana Ruiz",
        )  # fmt: skip
    number = take(small).reading.id
    assert take(small, at=after(50)).reading.id == number
    submitted(small, IMANI, "+-", at=after(51))
    assert take(small, at=after(51)) is None
    submitted(small, TOVE, "+-", at=after(52))
    assert take(small, TOVE, at=after(52)) is None
    assert in_hand(small, THIRD, at=after(53)) == small.responses[0]  # from the second assignment


def test_who_has_given_an_open_verdict_on_the_response_is_not_asked_to_read_it_blind(small):
    said = reviewing.Decision(NOT_MET)
    imani = small.viewer()
    seen = overriding.give_verdict(small.engine, imani, **small.item(), decision=said, judge=world.JUDGE, seen=None)
    only_the_first(small)
    only_the_first(small, ask=Ask.RESPONSE_ACUITY)
    assert take(small) is None  # neither for the rubric nor for the acuity
    overriding.undo(small.engine, imani, **small.item(), seen=seen)
    assert take(small) is None  # who took it back has seen the judge's verdict all the same
    assert in_hand(small, TOVE) == small.responses[0]


def test_who_has_read_the_rubric_is_still_asked_for_the_acuity_and_never_for_the_rubric_again(small):
    only_the_first(small)
    only_the_first(small, ask=Ask.RESPONSE_ACUITY)
    number, _ = submitted(small, IMANI, "+-")
    guard = "reading_read_no_delete" if small.engine.dialect.name == "sqlite" else "reading_read ON reading"
    world.tampered(  # only the verdicts tell now
        small.engine,
        f"DROP TRIGGER {guard}",
        f"DELETE FROM mark WHERE reading_id = {number}",
        f"DELETE FROM reading WHERE id = {number}",
    )
    assert take(small).asked.ask is Ask.RESPONSE_ACUITY


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


def test_only_the_chosen_readers_are_asked_and_only_readers_may_take(small):
    world.add_researcher(small.engine, "Dr. Adjudicator", Role.ADJUDICATOR)
    assigned(small, readers=(IMANI, "Dr. Adjudicator"))
    assert take(small, TOVE) is None
    assert take(small, "Dr. Adjudicator") is not None
    with pytest.raises(NotAllowed, match="Reading assigned items takes the role"):
        take(small, "Ana Ruiz")


def test_the_desk_of_a_blind_reader_names_neither_model_nor_judge_nor_another_reader(small):
    only_the_first(small)
    submitted(small, TOVE, "-+")
    desk = take(small)
    assert desk.keys == small.criteria[0]
    assert [item.position for item in desk.material.items] == [1, 2]
    assert desk.material.response == "Drink water, rest, and come back. Answer 0."
    assert (desk.judge, desk.judged, desk.first, desk.decided) == (None, {}, {}, {})
    assert not any(word in repr(desk) for word in ("Alder", "Magpie", "Tove", "It does."))

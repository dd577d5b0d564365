"""Say what is read and by whom: drawn with a stored seed and a known probability, nothing twice, nothing half written."""

import json
from math import sqrt

import pytest
from hypothesis import given, strategies as st

from evalcore.reading import queries, store as reading_store
from evalcore.reading.assigning import MAX_MINUTES, MAX_SEED, Choice, assign, draw
from evalcore.study.browse import Filters
from evalcore.study.schema import Administrator, Ask, Label, Role, Viewer
from tests import world
from tests.assigning_steps import LEAD, N_CASES, N_RESPONSES, N_RUBRIC, readers, refused, sizes, tasks

# ---------------------------------------------------------------- by filter


def test_some_of_those_that_fit_are_drawn_each_with_the_same_known_probability(five_examples):
    done = assign(
        five_examples.engine,
        Choice(filters=Filters(model="Birch-1"), n_items=3, seed=11),
        actor=Administrator(name=LEAD),
    )
    # Birch-1 answered five conversations, four of them with a rubric
    assert (done.n_items, done.n_population, done.n_waiting, done.seed) == (3, 4, 0, 11)
    found = tasks(five_examples, done.assignment_id)
    assert [place for _, _, place, _ in found] == [1, 2, 3]
    assert {share for *_, share in found} == {3 / 4}
    birch = {(example, five_examples.responses[2 * (example - 1) + 1]) for example in range(1, 5)}
    drawn = {(example, response) for example, response, _, _ in found}
    assert len(drawn) == 3
    assert drawn < birch
    ((ask, selection, n_readers, seed, minutes, chosen_by, n_population, by),) = world.rows(
        five_examples.engine,
        "SELECT ask, selection, n_readers, seed, reserve_minutes, chosen_by, n_population, created_by FROM assignment",
    )
    assert (ask, selection, n_readers, seed, minutes, n_population, by) == ("rubric", "random", 2, 11, 45, 4, LEAD)
    assert json.loads(chosen_by) == {"model": "Birch-1"}
    assert five_examples.events()[-1] == (LEAD, "items assigned")


def test_the_stored_seed_gives_the_drawing_again(five_examples):
    done = assign(five_examples.engine, Choice(n_items=5), actor=Administrator(name=LEAD))
    ((seed,),) = world.rows(five_examples.engine, "SELECT seed FROM assignment")
    assert seed == done.seed
    everything = [((index // 2) + 1, response) for index, response in enumerate(five_examples.responses[:N_RUBRIC])]
    assert [(example, response) for example, response, *_ in tasks(five_examples)] == draw(everything, 5, seed=seed)


def test_without_a_number_everything_that_fits_is_read_for_certain(five_examples):
    done = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD))
    found = tasks(five_examples)
    assert (done.n_items, len(found)) == (N_RUBRIC, N_RUBRIC)
    assert {response for _, response, *_ in found} == set(
        five_examples.responses[:N_RUBRIC]
    )  # not the ones without a rubric
    assert {share for *_, share in found} == {1.0}


def test_more_than_there_are_is_all_of_them(five_examples):
    done = assign(five_examples.engine, Choice(n_items=99), actor=Administrator(name=LEAD))
    assert (done.n_items, done.n_population, {share for *_, share in tasks(five_examples)}) == (
        N_RUBRIC,
        N_RUBRIC,
        {1.0},
    )


def test_each_question_has_its_own_items(five_examples):
    for ask, n_items in ((Ask.RUBRIC, N_RUBRIC), (Ask.RESPONSE_ACUITY, N_RESPONSES), (Ask.GOLD_ACUITY, N_CASES)):
        done = assign(five_examples.engine, Choice(ask=ask), actor=Administrator(name=LEAD))
        found = {(example, response) for example, response, *_ in tasks(five_examples, done.assignment_id)}
        assert done.n_items == len(found) == n_items
        if ask is Ask.GOLD_ACUITY:
            assert found == {(example, None) for example in range(1, N_CASES + 1)}
        else:
            assert {response for _, response in found} == set(five_examples.responses[:n_items])


def test_the_record_keeps_every_filter_that_was_set_a_zero_too(five_examples):
    assign(
        five_examples.engine,
        Choice(filters=Filters(points_from=0, dataset="invented", judges_differ=False)),
        actor=Administrator(name=LEAD),
    )
    ((chosen_by,),) = world.rows(five_examples.engine, "SELECT chosen_by FROM assignment")
    assert json.loads(chosen_by) == {"points_from": 0, "dataset": "invented"}


def test_filters_on_what_was_said_leave_out_what_waits_for_the_one_who_assigns_and_no_others_do(five_examples):
    """Two answers to each of four conversations: met on every one, not met on the second criterion of the first; there Wren differs."""
    world.judged(five_examples, "Wren", Label.MET, criterion=1, explanation="Kelbrunth.")
    for filters, n_whole, n_seen in (
        (Filters(label="met"), 8, 6),
        (Filters(label="not_met"), 2, 0),
        (Filters(judge="Wren"), 1, 0),
        (Filters(judges_differ=True), 1, 0),
        (Filters(reads="unread"), 8, 6),
        (Filters(points_to=-1), 2, 0),
        (Filters(search="kelbrunth"), 2, 0),  # a word of a judge
        (Filters(search="does"), 8, 6),
        (Filters(search=" "), 8, 8),
        (Filters(theme="hedging", language="en"), 4, 4),
        (Filters(), 8, 8),
    ):
        for n_fitting, blind in ((n_whole, frozenset()), (n_seen, frozenset({1}))):
            choice = Choice(filters=filters, blind=blind)
            if n_fitting:
                assert (
                    assign(five_examples.engine, choice, actor=Administrator(name=LEAD), dry_run=True).n_population
                    == n_fitting
                ), choice
            else:
                refused(five_examples, choice, "Nothing is left to assign: no item fits.")


# ---------------------------------------------------------------- the drawing itself


@given(n=st.integers(1, 40), wanted=st.none() | st.integers(1, 50), seed=st.integers(0, MAX_SEED))
def test_a_drawing_is_some_of_the_items_each_once_and_the_same_for_the_same_seed(n, wanted, seed):
    items = [(number, number) for number in range(n)]
    drawn = draw(items, wanted, seed=seed)
    assert len(drawn) == min(n, wanted or n)
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) <= set(items)
    assert draw(items, wanted, seed=seed) == drawn
    # a smaller drawing with the same seed is the start of the larger one
    assert draw(items, None, seed=seed)[: len(drawn)] == drawn


def test_every_item_is_drawn_as_often_as_its_probability_says_and_each_place_is_as_likely():
    n, wanted, n_seeds = 6, 2, 3_000
    items = [(number, None) for number in range(n)]
    drawings = [draw(items, wanted, seed=seed) for seed in range(n_seeds)]
    for share, n_found in (
        (wanted / n, [sum(item in drawn for drawn in drawings) for item in items]),
        (1 / n, [sum(item == drawn[0] for drawn in drawings) for item in items]),
    ):
        spread = sqrt(n_seeds * share * (1 - share))  # of a binomial count
        assert all(abs(count - n_seeds * share) < 4 * spread for count in n_found), n_found


# ---------------------------------------------------------------- readers


def test_by_default_all_reviewers_may_read_and_nobody_else(five_examples):
    world.leads_read(five_examples.engine)
    world.add_researcher(five_examples.engine, "Dr. Adjudicator", Role.ADJUDICATOR)
    world.add_researcher(five_examples.engine, "Dr. Both", Role.LEAD, Role.REVIEWER)
    done = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD))
    assert readers(five_examples) == set(done.readers) == {"Dr. Imani Noor", "Dr. Tove Lind", "Dr. Both"}


def test_readers_can_be_chosen_an_adjudicator_too(five_examples):
    world.add_researcher(five_examples.engine, "Dr. Adjudicator", Role.ADJUDICATOR)
    assign(five_examples.engine, Choice(readers=("Dr. Adjudicator", "Dr. Tove Lind")), actor=Administrator(name=LEAD))
    assert readers(five_examples) == {"Dr. Adjudicator", "Dr. Tove Lind"}


def test_a_specialty_in_any_case_narrows_the_readers(five_examples):
    world.add_researcher(five_examples.engine, "Dr. Heart", Role.REVIEWER, specialties=("Cardiology", "Sports"))
    world.add_researcher(five_examples.engine, "Dr. Skin", Role.REVIEWER, specialties=("Dermatology",))
    assign(five_examples.engine, Choice(specialty="CARDIOLOGY", n_readers=1), actor=Administrator(name=LEAD))
    assert readers(five_examples) == {"Dr. Heart"}
    refused(
        five_examples,
        Choice(ask=Ask.GOLD_ACUITY, specialty="Cardiology"),
        "readers: expected at least 2, as many as read an item, got 1 with the specialty Cardiology",
    )
    refused(
        five_examples,
        Choice(ask=Ask.GOLD_ACUITY, specialty="Urology", n_readers=1),
        "readers: expected at least 1, as many as read an item, got 0 with the specialty Urology",
    )


IMPOSSIBLE = [
    (Choice(readers=("Dr. Nobody", "Dr. Imani Noor")), "readers: expected reviewers or adjudicators of this study: Dr. Imani Noor, Dr. Tove Lind, got Dr. Nobody"),
    (Choice(readers=("Ana Ruiz",), n_readers=1), "readers: expected reviewers or adjudicators of this study: Dr. Imani Noor, Dr. Tove Lind, got Ana Ruiz"),
    (Choice(n_readers=3), "readers: expected at least 3, as many as read an item, got 2"),
    (Choice(readers=("Dr. Imani Noor",)), "readers: expected at least 2, as many as read an item, got 1"),
    (Choice(n_readers=0), "readers: expected at least 1, got 0"),
    (Choice(n_items=0), "items: expected at least 1, got 0"),
    (Choice(reserve_minutes=0), "minutes: expected at least 1, got 0"),
    (Choice(reserve_minutes=MAX_MINUTES + 1), "minutes: expected at most 43,200, which is thirty days, got 43,201"),
    (Choice(seed=-1), "seed: expected 0 to 2147483647, got -1"),
    (Choice(seed=MAX_SEED + 1), "seed: expected 0 to 2147483647, got 2147483648"),
    (Choice(filters=Filters(model="Nobody-9")), "Nothing is left to assign: no item fits."),
]  # fmt: skip


def test_what_cannot_be_assigned_is_refused_and_nothing_is_left(five_examples):
    for choice, sentence in IMPOSSIBLE:
        refused(five_examples, choice, sentence)


def test_the_name_of_an_evaluation_is_refused_with_the_data_set_that_it_is_of(five_examples):
    with five_examples.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE response SET dataset = 'invented_hard'")
    sentence = "Nothing is left to assign: no item fits. Data set: expected invented (invented_hard is an evaluation of it), got invented_hard."
    refused(five_examples, Choice(filters=Filters(dataset="invented_hard")), sentence)
    both = Filters(dataset="invented", theme="no such theme")
    refused(five_examples, Choice(filters=both), "Nothing is left to assign: no item fits.")


def test_too_few_readers_of_a_language_are_counted_and_a_language_that_nobody_reads_is_named(five_examples):
    """Example 2 is in Arabic, example 3 in a language that could not be told; two answers to each."""
    done = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD), dry_run=True)
    assert (done.n_too_few, done.languages_missing) == (0, ("ar",))
    world.add_researcher(five_examples.engine, "Dr. Arabic", Role.REVIEWER, languages=("ar",))
    done = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD), dry_run=True)
    assert (done.n_too_few, done.languages_missing) == (2, ())  # both answers to example 2: one reader, two wanted
    world.add_researcher(five_examples.engine, "Dr. Two", Role.REVIEWER, languages=("en", "ar"))
    done = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD), dry_run=True)
    assert (done.n_too_few, done.languages_missing) == (0, ())


def test_the_report_says_it_all_in_words(five_examples):
    assign(five_examples.engine, Choice(filters=Filters(model="Alder-2"), n_items=1), actor=Administrator(name=LEAD))
    said = assign(five_examples.engine, Choice(n_items=4, seed=5), actor=Administrator(name=LEAD)).sentences()
    assert said[0] == "4 of 7 items that fit, in random order (seed 5)"  # 8, and one is assigned
    assert said[1] == "readers: Dr. Imani Noor, Dr. Tove Lind"
    assert "1 more are assigned already and were left out" in said


# ---------------------------------------------------------------- what is there already


def test_an_item_is_assigned_once_for_each_question_and_the_others_are_counted(five_examples):
    first = assign(five_examples.engine, Choice(n_items=3), actor=Administrator(name=LEAD))
    second = assign(five_examples.engine, Choice(n_items=2), actor=Administrator(name=LEAD))
    third = assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD))
    assert (second.n_items, second.n_population, second.n_waiting) == (2, N_RUBRIC - 3, 3)
    assert {share for *_, share in tasks(five_examples, second.assignment_id)} == {
        2 / (N_RUBRIC - 3)
    }  # of those still free
    assert (third.n_items, third.n_waiting) == (N_RUBRIC - 5, 5)
    numbers = [done.assignment_id for done in (first, second, third)]
    read = [response for number in numbers for _, response, *_ in tasks(five_examples, number)]
    assert len(read) == len(set(read)) == N_RUBRIC
    refused(five_examples, Choice(), "Nothing is left to assign: no item fits, or all that fit are assigned already.")
    assert assign(five_examples.engine, Choice(ask=Ask.RESPONSE_ACUITY), actor=Administrator(name=LEAD)).n_waiting == 0
    assert assign(five_examples.engine, Choice(ask=Ask.GOLD_ACUITY), actor=Administrator(name=LEAD)).n_waiting == 0


def test_a_dry_run_reports_what_the_true_one_does_and_leaves_nothing(five_examples):
    before = sizes(five_examples)
    dry = assign(five_examples.engine, Choice(n_items=4), actor=Administrator(name=LEAD), dry_run=True)
    assert sizes(five_examples) == before
    assert dry.assignment_id is None
    true = assign(five_examples.engine, Choice(n_items=4, seed=dry.seed), actor=Administrator(name=LEAD))
    assert (true.n_items, true.n_population, true.readers) == (dry.n_items, dry.n_population, dry.readers)


def test_one_act_one_audit_event_with_what_was_chosen(five_examples):
    n_events = len(five_examples.events())
    assign(five_examples.engine, Choice(n_items=2, seed=9), actor=Administrator(name=LEAD))
    assert len(five_examples.events()) == n_events + 1
    ((subject, detail),) = world.rows(
        five_examples.engine, "SELECT subject, detail FROM audit_event WHERE action = 'items assigned'"
    )
    said = json.loads(detail)
    assert subject == "assignment 1"
    assert {name: said[name] for name in ("ask", "items", "of", "n_readers", "seed")} == {
        "ask": "rubric", "items": 2, "of": N_RUBRIC, "n_readers": 2, "seed": 9,
    }  # fmt: skip


def test_an_act_that_breaks_off_in_the_middle_leaves_nothing(five_examples, monkeypatch):
    before = sizes(five_examples)

    def broken(*_arguments, **_named):
        msg = "the power went"
        raise RuntimeError(msg)

    monkeypatch.setattr(reading_store, "append_event", broken)
    with pytest.raises(RuntimeError, match="the power went"):
        assign(five_examples.engine, Choice(), actor=Administrator(name=LEAD))
    assert sizes(five_examples) == before


@given(st.lists(st.sampled_from(["en", "ar", "fr"]), unique=True))
def test_a_profile_without_languages_reads_english(languages):
    viewer = Viewer(person_id=1, name="Dr. Imani Noor", roles=frozenset({Role.REVIEWER}), languages=tuple(languages))
    assert queries.languages_of(viewer) == (tuple(languages) or ("en",))

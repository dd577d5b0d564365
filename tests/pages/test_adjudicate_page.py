"""The page Adjudicate: what an adjudicator sees, does by key, and does not see."""

import re

import pytest
from sqlalchemy import text

from evalcore.reading import adjudication, reviewing
from evalcore.reading.adjudication import Settling
from evalcore.reading.reviewing import Decision
from evalcore.study import policies, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Acuity, Ask, ConflictCause, Label, Role
from pages.shared import common
from tests import world
from tests.page_steps import LEAD, NOT_FOR_YOU, check, words

SOL, RUNE = "Dr. Sol Adler", "Dr. Rune Okeke"
IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"
TITLE = "Settle where readers differ"


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    made = world.made(str(tmp_path_factory.mktemp("small") / "made.db"), points=((7, -4), (5, 3)), judged="    ")
    for name in (SOL, RUNE):
        world.add_researcher(made.engine, name, Role.ADJUDICATOR)
    world.assigned(made)
    for name, labels in ((IMANI, "++"), (TOVE, "--"), (IMANI, "++"), (TOVE, "-+")):
        world.submitted(made, name, labels)
    return world.at_rest(made)


@pytest.fixture
def small(location, small_file):
    """Two responses, each read by two: on the first they differ on both criteria, on the second on the first one."""
    made = world.copied(small_file, location)
    yield made
    made.engine.dispose()


def keys(small):
    """The cases that wait, as the address has them: the worst first."""
    return [f"r{case.key[1]}" for case in adjudication.cases(small.engine, small.viewer(SOL)).waiting]


def case_of(app):
    """The case in the address; AppTest gives what a page has set there as a word, what a test has set as a list."""
    word = app.query_params["case"]
    return word if isinstance(word, str) else word[0]


def press(app, key):
    """A button by its key, and the run that follows."""
    app.button(key=key).click()
    return check(app.run())


def write(app, rationale):
    app.text_area[0].set_value(rationale)
    return check(app.run())


def settled(small):
    statement = (
        "SELECT label, conflict_cause, explanation, blinded FROM verdict WHERE stage = 'adjudicated' ORDER BY id"
    )
    return world.rows(small.engine, statement)


# ---------------------------------------------------------------- doors


@pytest.mark.parametrize("name", [LEAD, "Dr. Amara Okafor"])
def test_the_page_is_for_adjudicators(name, demo_study, open_page):
    shown = check(open_page(demo_study, "adjudicate", name, alone=True))
    assert NOT_FOR_YOU in shown
    assert "Only adjudicators can adjudicate" in shown
    assert TITLE not in shown


def test_nobody_sees_it_who_has_not_said_who_they_are(demo_study, open_page):
    app = open_page(demo_study, "adjudicate", None, alone=True)
    assert "Choose who is reading first" in check(app)
    assert not app.button


def test_the_demo_study_opens_and_its_first_case_too(demo_study, open_page):
    app = open_page(demo_study, "adjudicate", "Dr. Tomas Vega")
    assert "responses wait" in check(app)
    why = app.dataframe[0].value["Why"].iloc[0]
    assert why
    assert "harm" not in why  # that severe harm is claimed tells what the judge said
    shown = press(app, "open_first")
    assert all(words_ in shown.lower() for words_ in why.lower().split(", "))
    assert case_of(app).startswith("r")


# ---------------------------------------------------------------- lists


def test_the_list_says_why_each_waits(small, open_page):
    app = open_page(small.location, "adjudicate", SOL)
    assert "2 responses wait, with 3 items in question" in check(app)
    table = app.dataframe[0].value
    assert table["Why"].tolist() == ["First reads conflict"] * 2
    assert sorted(zip(table["In question"], table["Points at stake"], strict=True)) == [(1, "5"), (2, "7")]


def test_where_nothing_waits_the_page_says_what_brings_something(location, open_page):
    made = world.made(location)
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    shown = check(open_page(location, "adjudicate", SOL))
    assert "Nothing waits to be settled. Items come here once all their readers have submitted" in shown
    made.engine.dispose()


def test_what_one_has_read_oneself_is_said_to_wait_for_somebody_else(small, open_page):
    with writing(small.engine) as session:
        session.connection().execute(
            text('UPDATE person SET roles = \'["reviewer", "adjudicator"]\' WHERE name = :n'), {"n": IMANI}
        )
    app = open_page(small.location, "adjudicate", IMANI)
    assert "2 more wait that you have read yourself: another adjudicator settles them." in check(app)
    refused = check(open_page(small.location, "adjudicate", IMANI, case=keys(small)[0]))
    assert "You have read this response yourself: somebody else has to settle it." in refused
    assert "Reader 1" not in refused


@pytest.mark.parametrize("case", ["x", "r", "r-1", "r²"])
def test_an_address_that_names_no_case_shows_the_list(case, small, open_page):
    assert TITLE in check(open_page(small.location, "adjudicate", SOL, case=case))


@pytest.mark.parametrize("case", ["r99999", "e99999"])
def test_a_case_that_is_not_there_is_named(case, small, open_page):
    shown = check(open_page(small.location, "adjudicate", SOL, case=case))
    assert "The link may belong to another study." in shown


def test_a_case_with_nothing_in_question_says_so(small, open_page):
    assert "Nothing is in question here any more" in check(open_page(small.location, "adjudicate", SOL, case="e1"))


# ---------------------------------------------------------------- one case


def test_a_link_opens_a_case_with_its_readers_and_neither_names_nor_model_nor_judge(location, open_page):
    made = world.made(location, points=((7,),), judged="+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made)
    for name, label in ((IMANI, "+"), (TOVE, "-")):
        viewer = made.viewer(name)
        desk = reviewing.take(made.engine, viewer, at=world.after())
        said = (desk.reading.id, made.criteria[0][0], world.LABELS[label])
        reviewing.mark(made.engine, viewer, *said, note=f"Note with {label}.", at=world.after())
        world.lock(made.engine, viewer, desk.reading.id, at=world.after())
    app = open_page(location, "adjudicate", SOL, case=f"r{made.responses[0]}")
    shown = check(app)
    for seen in (
        "Response 1 of 1",
        "First reads conflict",
        "Reader 1",
        "Reader 2",
        "Note with +.",
        "Note with -.",
        "sore throat",
        "Drink water",
    ):
        assert seen in shown
    for hidden in (IMANI, TOVE, "Alder-2", world.JUDGE, "It does."):
        assert hidden not in shown
    shown = press(app, "show_judge")
    assert world.JUDGE in shown
    assert "It does." in shown
    press(app, "settle_met")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "It is in the second line.")
    press(app, "settle")
    assert settled(made) == [("met", "reader_slipped", "It is in the second line.", 0)]
    made.engine.dispose()


def test_a_settlement_is_saved_and_the_next_item_and_then_the_next_response_come(small, open_page):
    first, second = keys(small)
    app = open_page(small.location, "adjudicate", SOL, case=first)
    assert "Response 1 of 2" in words(app)
    assert "Item 1 of 2" in words(app)
    for label in ("met", "not_met"):
        press(app, f"settle_{label}")
        press(app, f"because_{ConflictCause.CLINICAL_DISAGREEMENT}")
        write(app, f"Because {label}.")
        press(app, "settle")
    assert settled(small) == [
        ("met", "clinical_disagreement", "Because met.", 1),
        ("not_met", "clinical_disagreement", "Because not_met.", 1),
    ]
    assert case_of(app) == second
    assert "Response 2 of 2" in words(app)  # of this sitting, whose order stays
    press(app, "settle_met")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "Last.")
    shown = press(app, "settle")
    assert "Nothing waits to be settled" in shown
    assert "Settled, saved" in shown
    assert len(settled(small)) == 3


def test_the_order_of_a_sitting_stays_when_an_item_is_settled_and_then_what_was_passed_over_comes(small, open_page):
    first, second = keys(small)
    app = open_page(small.location, "adjudicate", SOL, case=first)
    press(
        app, "settle_met"
    )  # of two items: what is left of this response waits on, with one item fewer than the second
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "Said twice.")
    press(app, "settle")
    assert "Response 1 of 2" in words(app)
    press(app, "case_NEXT_CASE")
    assert (case_of(app), "Response 2 of 2" in words(app)) == (second, True)
    press(app, "settle_met")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "The second.")
    press(app, "settle")
    assert (case_of(app), "Response 1 of 2" in words(app)) == (first, True)


def test_all_items_of_a_response_stand_in_one_list_with_what_its_readers_say_and_what_is_still_needed(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    assert "still needed: a label, why they differed, the rationale" in words(app)
    assert "still needed: why they differed, the rationale" in press(app, "settle_met")
    press(app, "next_settling")
    (listed,) = [
        each.proto.body for each in app.get("html") if each.proto.body.startswith('<ol class="or-rows or-brief"')
    ]
    assert re.findall(r"<small>(\w*)</small>", listed) == ["begun", ""]
    assert (listed.count("or-met"), listed.count("or-not_met")) == (
        2,
        2,
    )  # one reader says met throughout, the other not


def test_what_is_missing_is_said_and_nothing_is_kept(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    assert "Say first what the label is" in press(app, "settle")
    press(app, "settle_met")
    assert "Say why the readers differed" in press(app, "settle")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    assert "Write the rationale" in press(app, "settle")
    assert settled(small) == []


def test_what_was_said_stays_while_one_looks_at_another_item(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    press(app, "settle_met")
    app.text_area[0].set_value("Half a sentence")
    assert "Item 2 of 2" in press(app, "next_settling")  # typed and moved in one run
    assert app.text_area[0].value == ""
    press(app, "settle_not_met")
    press(app, "back_settling")
    assert app.text_area[0].value == "Half a sentence"
    chosen = [
        button.key for button in app.button if button.key.startswith("settle_") and "_checked" in str(button.proto.icon)
    ]
    assert chosen == ["settle_met"]


def test_a_run_of_the_page_reads_the_case_once_and_the_next_run_reads_it_anew(small, open_page, monkeypatch):
    read, opened = adjudication.open_case, []
    monkeypatch.setattr(adjudication, "open_case", lambda *named: opened.append(named) or read(*named))
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    assert len(opened) == 1
    press(app, "settle_met")
    assert len(opened) == 2


def test_a_cause_is_taken_back_by_a_second_press(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    key = f"because_{ConflictCause.CONTEXT_MISSING}"
    for _ in range(2):
        press(app, key)
    assert "why they differed" in words(app)
    assert "_unchecked" in str(app.button(key=key).proto.icon)


def test_somebody_who_comes_second_is_told_and_keeps_their_words(small, open_page):
    first = keys(small)[0]
    app = open_page(small.location, "adjudicate", SOL, case=first)
    press(app, "settle_met")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "Mine.")
    key = next(
        case.key for case in adjudication.cases(small.engine, small.viewer(RUNE)).waiting if f"r{case.key[1]}" == first
    )
    question = adjudication.open_case(small.engine, small.viewer(RUNE), key).questions[0]
    said = Settling(question.criterion_id, Label.NOT_MET, ConflictCause.READER_SLIPPED, "Theirs.", question.seen)
    adjudication.settle(small.engine, small.viewer(RUNE), key, [said])
    shown = press(app, "settle")
    assert "Somebody else has settled this item meanwhile" in shown
    assert [row[2] for row in settled(small)] == ["Theirs."]


def test_a_press_on_an_item_that_has_gone_does_not_fall_on_the_next_one(small, open_page):
    """Both items are ready to be settled; somebody settles the one in hand, and then the key comes."""
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    for move, words_ in (("next_settling", "Second."), ("back_settling", "First.")):
        press(app, move)
        press(app, "settle_met")
        press(app, f"because_{ConflictCause.READER_SLIPPED}")
        write(app, words_)
    key = adjudication.cases(small.engine, small.viewer(RUNE)).waiting[0].key
    question = adjudication.open_case(small.engine, small.viewer(RUNE), key).questions[0]
    said = Settling(question.criterion_id, Label.NOT_MET, ConflictCause.READER_SLIPPED, "Theirs.", question.seen)
    adjudication.settle(small.engine, small.viewer(RUNE), key, [said])
    assert "Somebody else has settled this item meanwhile" in press(app, "settle")
    assert [row[2] for row in settled(small)] == ["Theirs."]
    press(app, "settle")
    assert [row[2] for row in settled(small)] == ["Theirs.", "Second."]


def test_a_read_that_changed_under_the_screen_is_shown_before_anything_is_settled(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    press(app, "settle_met")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "Mine.")
    case = adjudication.cases(small.engine, small.viewer(SOL)).waiting[0].key
    criterion = adjudication.open_case(small.engine, small.viewer(SOL), case).questions[0].criterion_id
    of_imani = "SELECT reading.id FROM reading JOIN task ON task.id = task_id WHERE response_id = :response AND person_id = :person"
    person = small.viewer(IMANI).person_id
    ((number,),) = world.rows(small.engine, of_imani, response=case[1], person=person)
    at_imanis = small.engine, small.viewer(IMANI), number, criterion
    kept = reviewing.revise(*at_imanis, Decision(Label.MET, note="As I said."), seen=None)
    shown = press(app, "show_judge")  # and what readers said of it
    assert "As I said." in shown
    assert "has changed" not in shown  # the adjudicator has asked for it
    reviewing.revise(*at_imanis, Decision(Label.NOT_MET, note="I was wrong."), seen=kept)
    shown = press(app, "settle")
    assert "A reader has changed a verdict here since the screen was drawn" in shown
    assert "I was wrong." in shown
    assert settled(small) == []
    assert app.text_area[0].value == "Mine."
    press(app, "settle")
    assert [row[2] for row in settled(small)] == ["Mine."]


def test_ones_own_settlement_is_found_again_and_corrected(small, open_page):
    viewer = small.viewer(SOL)
    case = adjudication.cases(small.engine, viewer).waiting[0]
    question = adjudication.open_case(small.engine, viewer, case.key).questions[0]
    said = Settling(question.criterion_id, Label.MET, ConflictCause.CRITERION_WRONG, "Nobody asks so.", question.seen)
    adjudication.settle(small.engine, viewer, case.key, [said])
    app = open_page(small.location, "adjudicate", SOL)
    app.get("button_group")[0].select("settled")
    check(app.run())
    assert app.dataframe[0].value["Items"].tolist() == [1]
    app.get("button_group")[0].select("faults")
    assert "Nobody asks so." in check(app.run())
    assert "1× wrong, by adjudicators" in words(app)
    assert IMANI not in words(app)
    app = open_page(small.location, "adjudicate", SOL, case=f"r{case.key[1]}")
    shown = press(app, "back_settling")
    assert "You have settled this" in shown
    assert app.text_area[0].value == "Nobody asks so."
    assert "This is what you have settled already" in press(app, "settle")
    press(app, "settle_not_met")
    press(app, "settle")
    assert [row[0] for row in settled(small)] == ["met", "not_met"]


def test_acuity_has_its_levels_and_is_settled_with_one(location, open_page):
    made = world.made(location, points=((7,),), judged="+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made, ask=Ask.RESPONSE_ACUITY)
    for name, level in ((IMANI, Acuity.A), (TOVE, Acuity.D)):
        viewer = made.viewer(name)
        desk = reviewing.take(made.engine, viewer, at=world.after())
        reviewing.mark(made.engine, viewer, desk.reading.id, None, level, at=world.after())
        world.lock(made.engine, viewer, desk.reading.id, at=world.after())
    app = open_page(location, "adjudicate", SOL, case=f"r{made.responses[0]}")
    shown = check(app)
    assert "Two or more levels apart" in shown
    assert "Which level of care does the response recommend" in shown
    answers = [button.key for button in app.button if button.key.startswith("settle_")]
    levels = [label for label in Acuity if label is not Acuity.REMOVE]  # it is a response: no case is asked about
    assert answers == [f"settle_{label}" for label in (*reversed(levels), Label.CANNOT_ASSESS)]  # emergency on top
    press(app, f"settle_{Acuity.D}")
    press(app, f"because_{ConflictCause.READER_SLIPPED}")
    write(app, "It says: now.")
    press(app, "settle")
    assert settled(made) == [("D", "reader_slipped", "It says: now.", 1)]
    made.engine.dispose()


def test_the_guideline_is_one_key_away_and_its_version_is_kept(small, open_page):
    with writing(small.engine) as session:
        store.set_guideline(session, "Met means **said**.", actor="Ana Ruiz")
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    assert "Met means" not in words(app)
    assert "Met means" in press(app, "settling_guide")
    assert "Met means" not in press(app, "settling_guide")


def test_hostile_words_stay_words(small, open_page):
    """A note, a criterion and a rationale that hold HTML reach the screen escaped."""
    hostile = "<img src=x onerror=alert(1)>"
    case = keys(small)[0]
    world.tampered(
        small.engine, "DROP TRIGGER IF EXISTS criterion_read_no_update", f"UPDATE criterion SET text = '{hostile}'"
    )
    app = open_page(small.location, "adjudicate", SOL, case=case)
    check(app)
    bodies = " ".join(element.proto.body for element in app.get("html"))
    assert "&lt;img src=x" in bodies
    assert "<img" not in bodies


def test_no_shortcut_is_one_of_streamlits_own_and_none_is_given_twice(small, open_page):
    app = open_page(small.location, "adjudicate", SOL, case=keys(small)[0])
    shortcuts = [button.proto.shortcut.lower() for button in app.button if button.proto.shortcut]
    assert len(shortcuts) == len(set(shortcuts))
    assert not {"c", "r", "enter"} & set(shortcuts)
    assert {"1", "2", "3", "j", "k", "v", "home", "ctrl+enter"} <= set(shortcuts)


def test_whoever_may_settle_is_shown_nothing_of_what_waits_for_it_reader_or_not(small, monkeypatch):
    researchers = policies._takes(frozenset({Role.RESEARCHER}), "Adjudicating")
    for module in (policies, adjudication, common):
        monkeypatch.setattr(module, "check_can_adjudicate", researchers)
    world.add_researcher(small.engine, "Mina Voss", Role.RESEARCHER)
    mina = small.viewer("Mina Voss")
    with reading(small.engine) as session:
        waiting = adjudication.hidden_examples(session, mina)
    assert len(waiting) == 2
    assert common.blind(mina) == waiting

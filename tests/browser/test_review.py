"""A physician at work in Review: by keyboard alone, blind, then beside the judge; nothing is lost by a reload or a killed server."""

import json
import os
import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from evalcore.importing import import_file
from evalcore.reading import assigning
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Administrator
from evalcore.study.store import index_texts
from tests.browser import steps
from tests.browser.server import AppServer, free_port, running_app

READERS = IMANI, TOVE, RUNE, SOL, ASA, BO = (
    "Dr. Imani Noor",
    "Dr. Tove Lind",
    "Dr. Rune Okeke",
    "Dr. Sol Mbeki",
    "Dr. Asa Blom",
    "Dr. Bo Tran",
)
MODEL, JUDGE, EXPLANATION = "Quillfeather-9", "Sterling", "Because the answer names the sign outright."
ROOM_FOR_NUMBER = "([li]) => li.closest('.or-turn').getBoundingClientRect().right - li.getBoundingClientRect().right"
GUIDELINE = "# How to read\n\nRead the **whole** answer first."
ARABIC = "كيف تأخذ الدواء:\n\n1. Paracetamol: مسكن للألم وخافض للحرارة\n2. اشرب الماء ثلاث مرات في اليوم"
AGREED = (7, 7, 6)  # criteria of three responses on which the judge says met throughout: 20 in all


def answer(number: int) -> str:
    """What the model says of a conversation: a list, a stress, the same words twice."""
    return f"1. Rest, drink.\n2. **See a doctor** on day {number + 4}.\n\nIf it is worse, see a doctor **at once**."


def results(path: Path, rubrics: tuple[int, ...], *, judged: bool) -> None:
    """A results file in which the judge calls everything met, or nothing."""
    entries = [
        {
            "prompt_id": f"prompt-{number}",
            "prompt": [
                {"role": "user", "content": f"I have had a sore throat for {number + 2} days."},
                {"role": "assistant", "content": ARABIC},
                {"role": "user", "content": "What does that say?"},
            ],
            "completion": [{"role": "assistant", "content": answer(number)}],
            "completion_id": f"answer-{number}",
            "rubric_items": [
                {
                    "criterion": f"Names warning sign {place} of conversation {number}.",
                    "points": -4 if place == n_criteria else 5,
                    "tags": ["axis:accuracy"],
                    "criteria_met": judged,
                    "explanation": EXPLANATION,
                }
                for place in range(1, n_criteria + 1)
            ],
        }
        for number, n_criteria in enumerate(rubrics)
    ]
    path.write_text(json.dumps({"score": 0.5, "metadata": {"example_level_metadata": entries}}), encoding="utf-8")


def made(folder: Path, rubrics: tuple[int, ...], *, judged: bool, readers: tuple[str, ...] = READERS) -> Path:
    """A study in which each reader has all of these responses to read."""
    results(folder / "results.json", rubrics, judged=judged)
    engine = open_study(str(folder / "overread.db"))
    with writing(engine) as session:
        store.ensure_study(session)
        for name in readers:
            store.add_person(session, name, roles=["reviewer"], actor="set-up")
        store.set_guideline(session, GUIDELINE, actor="set-up")
    import_file(
        engine,
        folder / "results.json",
        actor=Administrator(name="set-up"),
        model=MODEL,
        judge=JUDGE,
        dataset="invented",
    )
    index_texts(engine)
    assigning.assign(engine, assigning.Choice(seed=5, n_readers=len(readers)), actor=Administrator(name="set-up"))
    engine.dispose()
    return folder


# One server for several tests: each has a reader of its own.


@pytest.fixture(scope="module")
def agreeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    with running_app(made(tmp_path_factory.mktemp("agreeing"), AGREED, judged=True)) as server:
        yield server


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    with running_app(made(tmp_path_factory.mktemp("differing"), (4, 3), judged=False)) as server:
        yield server


def given(server: AppServer, reader: str, stage: str, columns: str) -> list[tuple]:
    """What a reader has given at a stage, in order; % is every stage."""
    verdicts = f"SELECT {columns} FROM verdict v JOIN rater r ON r.id = v.rater_id"
    return rows(server, f"{verdicts} WHERE r.name = ? AND stage LIKE ? ORDER BY v.id", reader, stage)


def rows(server: AppServer, statement: str, *values: str) -> list[tuple]:
    with closing(sqlite3.connect(server.database)) as study:
        return study.execute(statement, values).fetchall()


def begin(page: Page, server: AppServer, reader: str) -> None:
    steps.choose_reader(page, server, reader, path="/review")
    ready(page)


def ready(page: Page) -> None:
    """The list is there, and the keys listen: Streamlit fetches its buttons' script after the page's, and binds a key a frame later."""
    expect(page.locator(".or-row").first).to_be_visible()
    expect(page.get_by_role("button", name="Not met")).to_be_visible()
    page.wait_for_timeout(200)


def labels(page: Page) -> list[str]:
    """What stands in the list, in order."""
    return [re.sub(r"^\W+", "", text) for text in page.locator(".or-row .or-mark > :first-child").all_inner_texts()]


def mark_all(page: Page) -> None:
    """Everything is met, and locked."""
    pressed = Presses(page)
    for place in range(page.locator(".or-row").count()):
        pressed.mark("1", place, "met")
    pressed.submit()


def revise_all(page: Page) -> None:
    """The judge's label throughout, from the first item in hand, and on to the next response."""
    decide_all(page, "2", page.locator(".or-row").count())
    expect(steps.button(page, "onward")).to_be_enabled()
    page.wait_for_timeout(100)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".or-place")).to_have_text("Response 2 of 2")


def decide_all(page: Page, key: str, n_items: int) -> None:
    """The label of this key on each of so many items, which lie one after another."""
    n_decided = page.locator(".or-decided").count()
    for place in range(n_items):
        if place:
            page.keyboard.press("j")
        steps.settled(page)  # a key that comes before the next item is drawn falls on nothing
        page.keyboard.press(key)
        expect(page.locator(".or-decided")).to_have_count(n_decided + place + 1)


class Presses:
    """Counts the keys; waits for what each should bring about, as eyes do."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def mark(self, key: str, place: int, words: str) -> None:
        self.press(key)
        expect(self.page.locator(".or-row .or-mark").nth(place)).to_contain_text(words)
        expect(self.page.locator(".or-row.or-pending")).to_have_count(0)  # it is stored

    def submit(self) -> None:
        expect(steps.button(self.page, "submit")).to_be_enabled()
        self.page.wait_for_timeout(100)  # its key is bound a frame after it is drawn
        self.press("Control+Enter")
        expect(self.page.get_by_text("Nothing of the judge is shown yet")).to_be_visible()
        expect(steps.button(self.page, "go_on")).to_be_visible()
        for secret in (MODEL, JUDGE, EXPLANATION):
            assert secret not in self.page.content()
        self.press("Enter")

    def press(self, key: str) -> None:
        self.count += 1
        self.page.keyboard.press(key)


@pytest.mark.slow  # each day the test of what is nowhere until the lock reads a response by these keys
def test_twenty_criteria_of_three_responses_are_read_by_keyboard_alone(page: Page, agreeing: AppServer):
    begin(page, agreeing, IMANI)
    pressed = Presses(page)
    n_criteria = []
    for number in range(len(AGREED)):
        expect(page.locator(".or-place")).to_have_text(f"Response {number + 1} of {len(AGREED)}")
        expect(page.locator(".or-row .or-mark", has_text="met")).to_have_count(
            0
        )  # the list of the next item, not the last
        n_criteria.append(page.locator(".or-row").count())
        for place in range(n_criteria[-1]):
            pressed.mark("1", place, "met")
        pressed.submit()
    expect(page.get_by_role("heading", name="Everything is read")).to_be_visible()
    assert sorted(n_criteria) == sorted(AGREED)
    assert sum(n_criteria) == 20
    assert pressed.count == 20 + 2 * len(AGREED)  # a key a criterion, and to lock and to see the judge one each
    found = given(agreeing, IMANI, "%", "stage, label, blinded, selection, inclusion_probability, guideline_version")
    assert found == [("first", "met", 1, "random", 1.0, 1)] * 20


def test_keys_that_the_server_has_not_heard_yet_are_drawn_at_once_told_and_stored_in_their_order(
    page: Page, agreeing: AppServer
):
    begin(page, agreeing, TOVE)
    stored = "SELECT m.label, m.reason FROM mark m JOIN reading g ON g.id = m.reading_id JOIN person p ON p.id = g.person_id WHERE p.name = ?"
    with frozen(agreeing):
        # the third asks for its reason, the fourth criterion is left out; Chromium's own keys wait for the server
        page.evaluate(
            "keys => keys.forEach(key => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, composed: true})))",
            ["1", "2", "3", "e", "j", "2", "k"],
        )
        drawn = ["met", "not met", "cannot assess", "unanswered", "not met", "unanswered"]
        assert labels(page)[:6] == drawn
        assert page.locator(".or-row.or-pending").count() == 4
        in_hand(page, 4)
        expect(page.locator(".or-row.or-unsent")).to_have_count(4, timeout=10_000)
        assert rows(agreeing, stored, TOVE) == []
    expect(page.locator(".or-row.or-pending")).to_have_count(0)
    steps.settled(page)
    assert labels(page)[:6] == drawn
    in_hand(page, 4)
    made_of = [("met", None), ("not_met", None), ("cannot_assess", None), ("cannot_assess", "needs_examination")]
    assert rows(agreeing, stored, TOVE) == [*made_of, ("not_met", None)]


def test_the_browser_asks_before_a_page_is_left_whose_answer_is_not_stored_yet(page: Page, agreeing: AppServer):
    begin(page, agreeing, TOVE)
    steps.settled(page)
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    at = page.locator(".or-row.or-current").get_attribute("data-or-row")
    page.keyboard.press("j")
    in_hand(page, int(at or 0) + 1)
    steps.settled(page)
    with frozen(agreeing):
        page.keyboard.press("k")
        page.evaluate("location.reload()")
        page.wait_for_timeout(500)
        assert asked == ["beforeunload"]
    in_hand(page, int(at or 0))
    steps.settled(page)
    page.reload()
    ready(page)
    in_hand(page, int(at or 0))
    assert asked == ["beforeunload"]


@contextmanager
def frozen(server: AppServer) -> Iterator[None]:
    """Nothing is heard from the server meanwhile."""
    port = server.url.rpartition(":")[2]
    (pid,) = [
        int(command.parent.name)
        for command in Path("/proc").glob("[0-9]*/cmdline")
        if f"serve\0--port\0{port}\0" in command.read_text()
    ]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_judge_and_the_model_are_nowhere_until_the_read_is_locked_and_then_the_judge_is_beside_it(
    page: Page, differing: AppServer
):
    begin(page, differing, IMANI)
    for secret in (MODEL, JUDGE, EXPLANATION):
        assert secret not in page.content()
    pressed = Presses(page)
    n_rows = page.locator(".or-row").count()
    for place in range(n_rows):
        pressed.mark("1", place, "met")
    pressed.submit()
    expect(page.get_by_text(f"The judge differs on {n_rows}")).to_be_visible()
    expect(page.locator(".or-current")).to_contain_text(EXPLANATION)
    expect(page.locator(".or-current")).to_contain_text("Too few blind reads yet")
    # Keep the first, and say what went wrong: the judge misread the answer, severe, an omission.
    for key, asked in (("1", "misread the criterion"), ("p", "Moderate"), ("9", "Omission")):
        page.keyboard.press(key)
        expect(page.locator(".st-key-answers button", has_text=asked)).to_be_visible()
        steps.settled(page)
    page.keyboard.press("h")
    expect(page.locator(".or-decided").first).to_have_text("kept · judge misread the answer · error severe · omission")
    page.locator(".or-row").nth(1).click()
    in_hand(page, 1)
    decide_all(page, "2", n_rows - 1)
    expect(steps.button(page, "onward")).to_be_enabled()
    page.wait_for_timeout(100)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".or-place")).to_have_text("Response 2 of 2")
    expect(page.locator(".or-top")).not_to_contain_text("guideline")  # offered before the first read alone
    revised = given(differing, IMANI, "revised", "label, cause, severity, error_kind, blinded")
    assert revised[3] == ("met", "judge_misread_answer", "severe", "omission", 0)  # each answer is stored at once
    assert revised[4:] == [("not_met", None, None, None, 0)] * (n_rows - 1)
    assert given(differing, IMANI, "first", "label") == [("met",)] * n_rows  # the first read stays


def test_a_reason_an_undo_a_note_the_guideline_and_a_skip_are_one_key_away_and_keys_rest_while_typing(
    page: Page, differing: AppServer
):
    begin(page, differing, TOVE)
    expect(page.locator(".or-top")).to_contain_text("The guideline is new to you")
    pressed = Presses(page)
    pressed.mark("3", 0, "cannot assess")
    expect(steps.button(page, "reason_needs_examination")).to_be_visible()
    pressed.mark("e", 0, "needs examination")
    steps.settled(page)  # the reasons are gone
    pressed.mark("2", 1, "not met")
    page.keyboard.press("u")
    expect(page.locator(".or-row .or-mark").nth(1)).to_contain_text("unanswered")
    page.keyboard.press("n")
    note = page.locator("[class*='st-key-note_'] input")
    expect(note).to_be_focused()
    page.keyboard.type("12 of 3? g")
    page.keyboard.press("Enter")
    expect(page.locator(".or-row .or-mark").nth(1)).to_contain_text("note")
    assert labels(page)[:2] == ["cannot assess", "unanswered"]
    page.keyboard.press("g")
    expect(page.locator(".or-guideline")).to_contain_text("Read the whole answer first.")
    page.keyboard.press("g")
    expect(page.locator(".or-rows").first).to_be_visible()
    page.keyboard.press("Shift+?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("submit and lock")
    expect(keys).not_to_contain_text("I slipped")  # nothing is locked
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("j")
    expect(page.locator(".or-row").nth(2)).to_have_attribute("aria-current", "true")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".or-row").nth(1)).to_have_attribute("aria-current", "true")
    page.locator(".or-row").nth(0).click()
    in_hand(page, 0)
    line = page.get_by_label("Line to the lead")
    page.keyboard.press("-")
    expect(line).to_be_focused()
    page.keyboard.type("1 - cut off")
    page.keyboard.press("Escape")
    expect(line).not_to_be_focused()
    page.keyboard.press("-")  # and back into the field
    expect(line).to_be_focused()
    expect(line).to_have_value("1 - cut off")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".or-place")).to_have_text("Response 1 of 1")
    expect(page.locator(".or-top")).to_contain_text("1 skipped")
    assert rows(differing, "SELECT kind, text FROM response_note") == [("skip", "1 - cut off")]
    assert given(differing, TOVE, "%", "label") == []


def test_a_reload_brings_back_every_mark_and_the_criterion_in_hand(page: Page, differing: AppServer):
    begin(page, differing, RUNE)
    pressed = Presses(page)
    pressed.mark("1", 0, "met")
    pressed.mark("2", 1, "not met")
    before = labels(page)
    page.reload()
    ready(page)
    in_hand(page, 2)
    expect(page.locator(".or-row")).to_have_count(len(before))
    assert labels(page) == before


def in_hand(page: Page, place: int) -> None:
    expect(page.locator(".or-row").nth(place)).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_a_criterion_is_taken_in_hand_by_a_click_before_the_lock_after_it_and_on_the_next_response(
    page: Page, differing: AppServer
):
    begin(page, differing, ASA)
    page.locator(".or-row").nth(1).click()
    in_hand(page, 1)
    page.locator(".or-row").nth(0).click()
    in_hand(page, 0)
    mark_all(page)
    expect(page.get_by_text("The judge differs on")).to_be_visible()
    page.locator(".or-row").nth(1).click()
    in_hand(page, 1)
    page.reload()
    expect(page.get_by_text("The judge differs on")).to_be_visible()
    steps.settled(page)  # the browser loads what hears clicks after the page
    page.locator(".or-row").nth(2).click()
    in_hand(page, 2)
    page.locator(".or-row").nth(0).click()
    in_hand(page, 0)
    revise_all(page)
    page.locator(".or-row").nth(1).click()
    in_hand(page, 1)


def test_a_switch_or_a_click_beside_the_text_leaves_the_keys_alive_and_typing_says_that_they_are_off(
    page: Page, differing: AppServer
):
    begin(page, differing, BO)
    expect(page.locator(".or-response .or-formatted")).to_be_visible()
    directions = "all => all.map(element => getComputedStyle(element).direction)"
    assert page.locator(".or-turn li").evaluate_all(directions) == ["rtl", "rtl"]
    assert page.locator(".or-turn li").evaluate_all(ROOM_FOR_NUMBER) > 20
    assert page.locator(".or-response li").evaluate_all(directions) == ["ltr", "ltr"]
    steps.keyed(page, "source_text").locator("label").click()
    expect(page.locator(".or-response .or-verbatim")).to_be_visible()
    assert page.locator(".or-turn.or-assistant .or-verbatim").evaluate_all(directions) == ["rtl"]
    pressed = Presses(page)
    pressed.mark("1", 0, "met")
    page.keyboard.press("k")
    in_hand(page, 0)
    steps.keyed(page, "source_text").locator("input").focus()
    page.keyboard.press("Space")  # what the switch itself needs stays its own
    expect(page.locator(".or-response .or-formatted")).to_be_visible()
    pressed.mark("2", 0, "not met")
    page.mouse.click(600, 700)  # on nothing
    page.keyboard.press("k")
    in_hand(page, 0)
    expect(page.locator("[data-testid=stMain]:focus")).to_have_count(0)  # which would draw a ring round the page
    off = page.get_by_role("button", name="Shortcuts are off while you type; show shortcuts")
    expect(off).to_be_hidden()
    page.keyboard.press("n")
    off.click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.type("2?")
    expect(page.locator("[class*='st-key-note_'] input")).to_have_value("2?")
    page.keyboard.press("Escape")
    expect(off).to_be_hidden()


def test_words_selected_in_the_response_go_into_the_note_with_their_place_and_no_mark_is_lost(
    page: Page, differing: AppServer
):
    begin(page, differing, SOL)
    texts = {text for (text,) in rows(differing, "SELECT text FROM response")}
    shown = page.locator(".or-response").inner_text()
    text = next(text for text in texts if text.split("day ")[1][:2] in shown)
    # what is quoted makes a new field, beside which the one before stands for as long as the run goes on
    note, marks = page.locator("[class*='st-key-note_'] input").last, page.locator(".or-row .or-mark")
    first, second, start = text.index("See a doctor"), text.index("see a doctor"), text.index("Rest")
    by_mouse = f"“see a doctor” (response, characters {second + 1}–{second + 12})"
    by_keys = f"“Rest, drink” (response, characters {start + 1}–{start + 11})"
    page.keyboard.press("r")
    expect(page.locator(".or-warning")).to_contain_text("Select words in the response first")
    steps.settled(page)
    steps.select_by_mouse(page, "see a doctor")
    page.keyboard.press("r")
    page.keyboard.press("1")  # at once
    expect(marks.nth(0)).to_contain_text("met")
    expect(marks.nth(0)).to_contain_text("note")
    in_hand(page, 1)
    expect(note).to_have_value("")
    page.locator(".or-place").click()  # which selects nothing
    page.locator(".or-conversation").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("r")
    expect(note).to_have_value(by_keys)
    in_hand(page, 1)
    steps.select_by_mouse(page, "See a doctor")
    page.get_by_role("button", name="Quote").click()
    expect(note).to_have_value(re.compile("See a doctor"))
    page.reload()
    ready(page)
    in_hand(page, 1)
    expect(note).to_have_value(f"{by_keys} “See a doctor” (response, characters {first + 1}–{first + 12})")
    page.locator(".or-row").nth(0).click()
    expect(note).to_have_value(by_mouse)
    for place in range(1, page.locator(".or-row").count()):
        page.locator(".or-row").nth(place).click()
        in_hand(page, place)
        page.keyboard.press("1")
        expect(marks.nth(place)).to_contain_text("met")
    Presses(page).submit()
    expect(page.get_by_text("The judge differs on")).to_be_visible()
    expect(page.locator(".or-current")).to_contain_text(f"Your note {by_mouse}")  # beside what the judge says
    assert given(differing, SOL, "first", "explanation")[0] == (by_mouse,)


@pytest.mark.slow
def test_a_killed_server_loses_no_mark_and_the_next_key_counts_on_the_criterion_that_is_shown(
    page: Page, tmp_path: Path
):
    made(tmp_path, (6,), judged=True)
    port = free_port()
    with running_app(tmp_path, port=port) as server:
        begin(page, server, IMANI)
        pressed = Presses(page)
        pressed.mark("1", 0, "met")
        pressed.mark("2", 1, "not met")
        for key, place in (("k", 1), ("k", 0), ("j", 1)):  # on the second again: marks and moves are both remembered
            page.keyboard.press(key)
            expect(page.locator(".or-row").nth(place)).to_have_attribute("aria-current", "true")
        page.wait_for_timeout(300)
    with running_app(tmp_path, port=port) as server:
        expect(page.locator("[data-testid=stApp][data-test-connection-state=CONNECTED]")).to_be_visible(timeout=30_000)
        second = page.locator(".or-row .or-mark").nth(1)
        for _ in range(
            3
        ):  # a press in the second in which the new session draws its first screen falls on nothing, and is seen to
            page.keyboard.press("1")
            try:
                expect(second).to_contain_text("✓ met", timeout=5_000)
            except AssertionError:
                continue
            break
        expect(second).to_contain_text("✓ met")
        assert labels(page)[:3] == ["met", "met", "unanswered"]
        expect(page.locator(".or-row.or-pending")).to_have_count(0)  # it is stored
        page.reload()
        expect(page.locator(".or-row").nth(2)).to_have_attribute("aria-current", "true")
        assert labels(page)[:3] == ["met", "met", "unanswered"]


@pytest.mark.slow
def test_a_read_that_is_done_stands_in_my_reads_and_can_be_amended(page: Page, agreeing: AppServer):
    begin(page, agreeing, RUNE)
    n_rows = page.locator(".or-row").count()
    pressed = Presses(page)
    for place in range(n_rows):
        pressed.mark("1", place, "met")
    pressed.submit()
    expect(page.locator(".or-place")).to_have_text("Response 2 of 3")
    page.goto(f"{agreeing.url}/my_reads")
    expect(page.locator(".or-heading h1")).to_contain_text("What you have read")
    steps.table(page).click(position={"x": 250, "y": steps.ROW_PIXELS * 1.5})
    ready(page)
    page.keyboard.press("2")
    expect(page.locator(".or-row").first).to_contain_text("not met")
    expect(page.locator(".or-decided").first).to_have_text("changed from met to not met")
    assert given(agreeing, RUNE, "revised", "label, blinded") == [("not_met", 0)]
    acts = rows(agreeing, "SELECT action FROM audit_event WHERE actor = ?", RUNE)
    assert acts.count(("read amended",)) == 1

"""What a reader sees and reaches: direction, folding, width, keyboard, contrast and names for those who do not see."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import steps
from tests.browser.looks import faults, looked_at, small_targets, too_wide
from tests.browser.server import AppServer, running_app

LEAD, PHYSICIAN = "Mina Castell", "Dr. Amara Okafor"
PLAN = "?plan"  # a tab, which has no address of its own
RUNS = "?study_tab=Runs"
ARABIC, ONE, THREE = "language=Arabic", "example=1", "example=1&shown=Alder-2&shown=Briar-1&shown=Clover-mini"


def reach(page: Page, server: AppServer, name: str, query: str = "") -> None:
    """A page with all that it shows drawn."""
    page.goto(f"{server.url}{steps.PAGES[name][0]}{query}")
    if "example" in query:
        steps.items(page)
        return
    if "judges_show" in query:
        expect(page.locator(".or-finding").first).to_be_visible()
        expect(page.locator(".or-foot").last).to_be_visible()
        expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()
        return
    expect(page.locator(".or-heading h1")).to_contain_text(steps.PAGES[name][1])
    if query == PLAN:
        page.get_by_role("tab", name="Plan").click()
        expect(page.locator(".or-foot").last).to_contain_text("Widths are half")
        expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()
    if query == RUNS:
        expect(page.get_by_text("Nothing has run yet.")).to_be_visible()
    if name in ("browse", "export", "audit"):
        expect(steps.table(page)).to_be_visible()
    if name == "overview":
        expect(page.locator(".st-key-overview_models .main-svg").first).to_be_visible()


SECTIONS = ("Against+physicians", "Criteria", "Between+physicians", "Versions+and+families")
OPENED = [
    *((name, "") for name in steps.PAGES if name not in {"models", "triage"}),  # looked at in files of their own
    ("browse", f"?{ONE}"),
]
SIDES = """element => {
    element.textContent = "Latin\\nعربي";
    const box = element.getBoundingClientRect(), range = document.createRange();
    return [[0, 5], [6, 10]].map(([start, end]) => {
        range.setStart(element.firstChild, start);
        range.setEnd(element.firstChild, end);
        const words = range.getBoundingClientRect();
        return words.left - box.left < 5 ? "left" : box.right - words.right < 5 ? "right" : "between";
    });
}"""
"""On which side each of two paragraphs of a text begins."""
BOXES = """all => all.map(one => ({ is_mark: one.matches(".point"), box: one.getBoundingClientRect() })).map(
    ({ is_mark, box: { left, right, top, bottom } }) => ({ is_mark, left, right, top, bottom, middle: (top + bottom) / 2 }))"""
FEW_OPENED = [("overview", "")]
SECTIONS_OPENED = [
    ("browse", f"?{THREE}"),
    *(("judges", f"?judges_show={section}") for section in SECTIONS),
    ("study", PLAN),
    ("study", RUNS),
]


def test_the_name_of_the_start_page_is_an_address_of_it(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, LEAD, path="/overview")
    expect(page.locator(".or-heading h1")).to_have_text("Overview")
    expect(page.get_by_role("dialog")).to_have_count(0)  # in which Streamlit says that it knows no such page


@pytest.mark.slow
def test_arabic_reads_from_right_to_left_and_a_latin_explanation_beside_it_does_not(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, PHYSICIAN, path=f"/browse?{ARABIC}")
    steps.open_row(page, 0)
    direction = "element => getComputedStyle(element).direction"
    for place in (".or-turn.or-user .or-formatted p", ".or-response .or-formatted p"):
        assert page.locator(place).first.evaluate(direction) == "rtl"
    assert page.locator(".or-judge .or-why .or-verbatim").first.evaluate(direction) == "ltr"
    steps.keyed(page, "source_text").locator("label").click()
    expect(page.locator(".or-response .or-verbatim")).to_be_visible()
    for place in (".or-turn.or-user .or-verbatim", ".or-response .or-verbatim"):
        assert page.locator(place).first.evaluate(direction) == "rtl"
    page.reload()  # the browser keeps the choice
    expect(page.locator(".or-response .or-verbatim")).to_be_visible()
    expect(page.locator(".or-response .or-formatted")).to_have_count(0)
    assert page.locator(".or-response .or-verbatim").evaluate(SIDES) == ["left", "right"]


@pytest.mark.slow
def test_long_text_is_folded_and_opens_by_mouse_and_by_key(page: Page, app_server: AppServer):
    # A physician's long note, as the next reader sees it.
    note = " ".join(f"Sentence {number} of a long note." for number in range(100))
    steps.choose_reader(page, app_server, "Dr. Jonas Weber", path="/browse?example=4")
    item = steps.items(page)[0]
    steps.verdict(page, item, "Cannot assess").click()
    steps.type_in(page, f"note_{item}", note)
    steps.wait_until_stored(app_server, item, explanation=note)
    steps.change_reader(page, PHYSICIAN)
    fold = page.locator(".or-read .or-fold")
    whole, preview = fold.locator(":scope > .or-verbatim"), fold.locator(".or-preview")
    expect(preview).to_be_visible()
    expect(whole).to_be_hidden()
    assert len(preview.inner_text()) < len(note) / 2
    expect(fold.locator(".or-more")).to_have_text(f"Show all {len(note):,} characters")
    fold.locator(".or-more").click()
    expect(whole).to_have_text(note)
    expect(whole).to_be_visible()
    expect(preview).to_be_hidden()
    fold.locator(".or-less").click()
    expect(whole).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(whole).to_be_visible()


def test_the_keyboard_alone_reaches_and_sets_a_verdict(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, PHYSICIAN, path="/browse?example=2")
    item = steps.items(page)[0]
    expect(steps.verdict(page, item, "Not met")).to_be_visible()  # the browser loads what draws them after the page
    steps.keyed(page, "source_text").locator("input").focus()
    inside = f"document.activeElement?.closest('.st-key-label_{item}') !== null"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(inside):
            break
    assert page.evaluate(inside)
    outline = page.evaluate(
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).boxShadow"
    )
    assert outline != "nonenone", "the focused button must be seen"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(steps.keyed(page, f"label_{item}").locator("[aria-checked=true]")).to_have_count(1)
    expect(steps.stamp(page, item)).to_contain_text("saved")


@pytest.mark.slow
def test_a_letter_typed_in_a_note_moves_nothing(page: Page, app_server: AppServer):
    # Left and Right step through the conversations; in a text field they move the cursor.
    steps.choose_reader(page, app_server, PHYSICIAN, path="/browse?example=3")
    item = steps.items(page)[0]
    steps.verdict(page, item, "Cannot assess").click()
    note = steps.keyed(page, f"note_{item}").get_by_role("textbox")
    note.click()
    page.keyboard.type("left")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("X")
    page.keyboard.press("Enter")
    expect(note).to_have_value("lXeft")
    steps.wait_until_stored(app_server, item, explanation="lXeft")
    page.reload()
    expect(steps.keyed(page, f"note_{item}").get_by_role("textbox")).to_have_value("lXeft")
    assert "example=3" in page.url


def test_on_a_tablet_the_text_stands_above_what_is_asked_of_it_each_as_wide_as_the_screen(
    page: Page, app_server: AppServer
):
    page.set_viewport_size({"width": 820, "height": 1180})
    steps.choose_reader(page, app_server, PHYSICIAN, path=f"/browse?{ONE}")
    columns = page.locator("[data-testid=stHorizontalBlock]:has(.st-key-rubric) > [data-testid=stColumn]")
    expect(columns).to_have_count(2)
    steps.settled(page)
    # Both in one go: what is measured one after the other can have moved between.
    above, below = columns.evaluate_all("(all) => all.map((column) => column.getBoundingClientRect().toJSON())")
    assert above["bottom"] <= below["top"]
    assert above["width"] == below["width"] > 500


@pytest.mark.parametrize(("width", "height"), [(390, 844), pytest.param(820, 1180, marks=pytest.mark.slow)])
def test_on_a_phone_and_on_a_tablet_the_answers_stay_in_view_while_the_text_is_read(
    browser: Browser, app_server: AppServer, width, height
):
    context = steps.new_context(browser, width=width, height=height, has_touch=True)
    page = context.new_page()
    steps.choose_reader(page, app_server, "Dr. Tomas Vega", path="/review")
    answers = page.locator(".st-key-labels button")
    expect(answers).to_have_count(3)
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    for top in (0, 200, 10**6):  # of the page, as one scrolls from the question to the end of the response
        page.get_by_test_id("stMain").evaluate("(main, top) => { main.scrollTop = top }", top)
        for answer in answers.all():
            expect(answer).to_be_in_viewport(ratio=1)
    assert small_targets(page) + too_wide(page) == []
    row, mark = page.locator(".or-row").first, page.locator(".or-row .or-mark").first
    answers.get_by_text("Cannot assess").tap()
    steps.button(page, "reason_language").tap()
    expect(mark).to_contain_text("language")
    row.tap()
    expect(row).to_have_attribute("aria-current", "true")
    for left in ("reason?", "unanswered"):
        steps.button(page, "undo").tap()
        expect(mark).to_contain_text(left)
    context.close()


def test_on_a_phone_every_interval_is_in_sight_with_its_name_above_and_its_numbers_below(
    page: Page, app_server: AppServer
):
    page.set_viewport_size({"width": 390, "height": 844})
    steps.choose_reader(page, app_server, LEAD, path="/judges")
    figure = steps.keyed(page, "record_forest")
    expect(figure.locator(".annotation", has_text="undesirable").first).to_be_visible()
    steps.settled(page)
    boxes = figure.locator(".point, .annotation-text").evaluate_all(BOXES)  # in one go: the figure may move
    marks, words = ([box for box in boxes if box["is_mark"] is is_mark] for is_mark in (True, False))
    names, numbers = words[: len(marks)], words[len(marks) :]
    assert marks
    for mark, name, number in zip(marks, names, numbers, strict=True):
        assert name["bottom"] <= mark["middle"] <= number["top"]
        assert all(box["left"] >= 0 and box["right"] <= 390 for box in (mark, name, number))  # the width of the screen
    assert all(above["bottom"] <= below["top"] for above, below in zip(numbers, names[1:], strict=False))


@pytest.mark.slow
@pytest.mark.timeout(600)  # some thirty screens
@pytest.mark.parametrize("width", [390, 820, 1920])
def test_every_page_fits_a_phone_a_tablet_and_a_wide_screen(browser: Browser, app_server: AppServer, width):
    is_small = width < 1100
    context = steps.new_context(browser, width=width, height=1100, has_touch=is_small)
    page = context.new_page()
    steps.choose_reader(page, app_server, LEAD, path="/browse")
    found: list[str] = []
    for name, query in [*OPENED, *SECTIONS_OPENED, ("models", ""), ("triage", "")]:
        reach(page, app_server, name, query)
        where = f"{name}{query} at {width}"
        found += faults(page, where)
        found += [f"{where}: {said}" for said in too_wide(page) + (small_targets(page) if is_small else [])]
    context.close()
    assert not found, "\n".join(found)


@pytest.mark.timeout(300)  # two looks at each of some twenty screens
@pytest.mark.parametrize(
    "views",
    [FEW_OPENED, *(pytest.param(views, marks=pytest.mark.slow) for views in (OPENED, SECTIONS_OPENED))],
    ids=["few", "pages", "sections"],
)
def test_no_page_has_a_serious_fault_of_accessibility_or_scrolls_sideways(page: Page, app_server: AppServer, views):
    page.goto(app_server.url)
    expect(page.locator("a.or-profile").first).to_be_visible()
    found = looked_at(page, "welcome")
    steps.click_profile(page, LEAD)
    for name, query in views:
        reach(page, app_server, name, query)
        found += looked_at(page, f"{name}{query}")
    steps.choose_reader(page, app_server, PHYSICIAN, path=f"/browse?{ONE}")
    steps.verdict(page, steps.items(page)[0], "Cannot assess").click()
    expect(steps.stamp(page, steps.items(page)[0])).to_be_visible()
    found += looked_at(page, "verdict given")
    assert found == []


@pytest.mark.slow
def test_no_screen_of_reading_has_a_serious_fault_or_scrolls_sideways(page: Page, tmp_path: Path, demo_file: Path):
    """Review blind, asked for a reason, locked, beside the judge; My reads; Adjudicate; assigning; the map of keys."""
    found: list[str] = []
    shutil.copyfile(demo_file, tmp_path / "overread.db")
    with running_app(tmp_path) as server:

        def look(where: str, *there: Locator) -> None:
            for shown in there:
                expect(shown.first).to_be_visible()
            found.extend(looked_at(page, where))

        steps.choose_reader(page, server, "Dr. Tomas Vega", path="/review")
        answers = page.locator(".st-key-labels button")
        look("review", page.locator(".or-row"), answers)
        page.keyboard.press("3")
        expect(steps.button(page, "reason_language")).to_be_visible()
        expect(page.locator(".or-pending")).to_have_count(0)  # pale until it is stored
        look("review, why")
        page.keyboard.press("1")
        expect(page.locator(".or-pending")).to_have_count(0)
        page.keyboard.press("Shift+?")
        look("review, keys", page.get_by_role("dialog", name="Keys"))
        page.keyboard.press("Shift+?")
        expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)
        expect(answers).to_have_count(3)
        while page.locator(".or-open").count():
            n_open = page.locator(".or-open").count()
            page.keyboard.press("2")
            expect(page.locator(".or-open")).to_have_count(n_open - 1)
        expect(steps.button(page, "submit")).to_be_enabled()
        page.wait_for_timeout(100)
        page.keyboard.press("Control+Enter")
        look("review, locked", page.locator(".or-locked"), steps.button(page, "go_on"))
        page.keyboard.press("Enter")
        look("review, beside the judge", page.locator(".or-compared .or-current"), steps.button(page, "answer_2"))
        page.keyboard.press("2")
        look("review, cause", steps.button(page, "cause_P"))
        page.goto(server.url + "/my_reads")
        look("my reads", steps.table(page))
        page.goto(server.url + "/adjudicate")
        look("adjudicate", steps.table(page))
        page.keyboard.press("Control+Enter")
        look("adjudicate, open", page.locator(".or-conversation"), page.get_by_role("button", name="Settle"))
        steps.change_reader(page, LEAD)
        page.goto(server.url + "/study")
        page.get_by_role("tab", name="Reading").click()
        look("assign", steps.keyed(page, "assign"), steps.table(page))
    assert found == []

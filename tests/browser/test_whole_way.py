"""The main job, end to end, as a lead and a physician do it."""

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import steps
from tests.browser.server import AppServer

LEAD, PHYSICIAN = "Mina Castell", "Dr. Amara Okafor"
FILE = "kestrel_Larch-1_20260902_090000_allresults.json"
CRITERIA = [
    ("Asks how high the temperature is.", 4, True, "It asks for the temperature."),
    ("Says that a newborn with fever is seen the same day.", 9, True, "It says to be seen."),
    ("Recommends aspirin.", -8, False, "No aspirin is named."),
]


def results() -> bytes:
    """One conversation, one model's answer, a judge's verdict on each of three criteria."""
    entry = {
        "prompt_id": "kestrel-0001",
        "prompt": [{"role": "user", "content": "My newborn grandson feels hot since quillwort o'clock. What now?"}],
        "completion": [{"role": "assistant", "content": "How hot is he? Please see a doctor soon."}],
        "rubric_items": [
            {"criterion": text, "points": points, "tags": ["axis:accuracy"], "criteria_met": met, "explanation": why}
            for text, points, met, why in CRITERIA
        ],
    }
    return json.dumps({"score": 1.0, "metrics": {}, "metadata": {"example_level_metadata": [entry]}}).encode()


def upload(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "application/json", "buffer": content}
    steps.keyed(page, "upload").locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]


def downloaded(page: Page, key: str = "download") -> bytes:
    steps.settled(page)  # while it still draws, it may put another file in the place of the one that is fetched
    with page.expect_download() as download:
        steps.keyed(page, key).get_by_role("button").click()
    return Path(download.value.path()).read_bytes()


def test_a_file_is_imported_found_overridden_and_its_labels_downloaded(page: Page, app_server: AppServer):  # noqa: PLR0915 - one way
    # The lead imports a file; its name says the model, nothing says the judge.
    page.goto(app_server.url)
    steps.click_profile(page, LEAD)
    steps.go(page, "study")
    upload(page, FILE, results())
    expect(page.get_by_role("textbox", name="Model", exact=True)).to_have_value("Larch-1")
    steps.keyed(page, "import").get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was imported: 1 fault")
    expect(page.get_by_role("listitem").filter(has_text="Fill in Judge")).to_be_visible()
    page.get_by_role("textbox", name="Judge").fill("Magpie")
    steps.keyed(page, "import").get_by_role("button").click()
    expect(page.get_by_role("status").filter(has_text=FILE)).to_contain_text("1 row, imported")
    expect(page.get_by_text("3 new verdicts")).to_be_visible()

    # A physician finds the conversation by a word in it, and opens it.
    steps.change_reader(page, PHYSICIAN)
    steps.go(page, "browse")
    steps.type_in(page, "q", "quillwort")
    expect(page.get_by_text("1 fit")).to_be_visible()
    steps.open_row(page, 0)
    expect(page.locator(".or-response")).to_contain_text("How hot is he?")
    expect(page.locator(".or-response h3")).to_contain_text("score by Magpie: 1.00 (13 of 13 points)")
    first, second, third = steps.items(page)

    # Two overrides; the second with a cause, a severity and a note.
    steps.verdict(page, first, "Not met").click()
    expect(steps.stamp(page, first)).to_contain_text("saved")
    steps.verdict(page, second, "Cannot assess").click()
    expect(steps.stamp(page, second)).to_contain_text("saved")
    # Each is stored before the next: choices that arrive while the server is busy become one verdict, and the trail is counted below.
    steps.pick(page, f"cause_{second}", "Judge misread the answer")
    steps.wait_until_stored(app_server, second, cause="judge_misread_answer")
    steps.pick(page, f"severity_{second}", "Moderate")
    steps.wait_until_stored(app_server, second, severity="moderate")
    steps.type_in(page, f"note_{second}", "“Soon” is not the same day.")
    expect(steps.stamp(page, third)).to_have_count(0)
    steps.wait_until_stored(app_server, second, severity="moderate", explanation="“Soon” is not the same day.")

    # All of it is there after a reload, and the address brought the same conversation back.
    expect(page.get_by_text("“Soon” is not the same day.")).to_have_count(
        0
    )  # in the field alone so far: it is one's own
    page.reload()
    expect(steps.verdict(page, first, "Not met")).to_be_checked()
    expect(steps.verdict(page, second, "Cannot assess")).to_be_checked()
    expect(steps.keyed(page, f"cause_{second}").get_by_role("combobox")).to_have_value("Judge misread the answer")
    expect(steps.keyed(page, f"severity_{second}").get_by_role("combobox")).to_have_value("Moderate")
    expect(steps.keyed(page, f"note_{second}").get_by_role("textbox")).to_have_value("“Soon” is not the same day.")
    expect(steps.stamp(page, first)).to_contain_text("saved")
    expect(steps.stamp(page, second)).to_contain_text("saved")

    # Undo takes the first one back; again after a reload.
    steps.keyed(page, f"undo_{first}").get_by_role("button").click()
    expect(steps.stamp(page, first)).to_have_count(0)
    page.reload()
    expect(steps.verdict(page, second, "Cannot assess")).to_be_checked()
    expect(steps.keyed(page, f"label_{first}").locator("[aria-checked=true]")).to_have_count(0)

    # The labels as CSV: the file's three items, one of them overridden.
    steps.go(page, "export")
    steps.pick(page, "export_model", "Larch-1")
    expect(steps.keyed(page, "download")).to_contain_text("Download 3 rows")
    rows = list(csv.DictReader(io.StringIO(downloaded(page).decode("utf-8"))))
    assert [row["criterion"] for row in rows] == [text for text, *_ in CRITERIA]
    assert [row["judge_label"] for row in rows] == ["met", "met", "not_met"]
    assert [row["overridden"] for row in rows] == ["false", "true", "false"]
    assert [row["n_reads"] for row in rows] == ["0", "1", "0"]  # what was taken back is no read
    override = rows[1]
    assert {name: override[name] for name in ("override_cause", "severity", "note", "selection", "blinded")} == {
        "override_cause": "judge_misread_answer",
        "severity": "moderate",
        "note": "“Soon” is not the same day.",
        "selection": "volunteered",
        "blinded": "false",
    }
    assert override["reference_label"] == "cannot_assess"
    assert b"reference_source" in downloaded(page, "codebook")

    # The trail is for the lead, and holds every act.
    steps.choose_reader(page, app_server, LEAD, path="/audit")
    for act, n_events in (
        ("judge overridden", 5),  # two clicks, then cause, severity and note, one verdict each
        ("verdict undone", 1),
        ("labels exported", 1),
        (FILE, 1),
    ):
        expect_events(page, act, n_events)
    steps.keyed(page, "verify").get_by_role("button").click()
    expect(page.get_by_role("status").filter(has_text="The audit trail holds")).to_be_visible()


def expect_events(page: Page, search: str, n_events: int) -> None:
    """The Audit page lists so many events for a search: rows of the table that stands beside the painted one for screen readers."""
    steps.type_in(page, "audit_search", search)
    rows = steps.table(page).locator("tbody tr")
    expect(rows.filter(has_text=search)).to_have_count(n_events)
    expect(rows).to_have_count(n_events)


@pytest.mark.slow
def test_an_address_opens_the_same_view_for_somebody_else(page: Page, app_server: AppServer, browser: Browser):
    # A link of the Overview page leads to a filtered list; so does an address that somebody wrote down.
    steps.choose_reader(page, app_server, PHYSICIAN)
    page.get_by_role("link", name="See where readers conflict").click()
    expect(page.get_by_text("physicians differ from each other")).to_be_visible()
    steps.opened(page, app_server, "browse", "?theme=hedging&reads=differ+from+the+judge")
    expect(page.get_by_text("physicians differ from the judge")).to_be_visible()
    steps.open_row(page, 1)
    shown = page.locator(".or-conversation").first.inner_text()
    address = page.url
    assert parse_qs(urlsplit(address).query).keys() >= {"theme", "reads", "example"}

    # Back leads to the list with its filters, forward to the conversation again. While a page is still being drawn the press may be lost.
    steps.settled(page)
    steps.settled(page)
    page.go_back()
    expect(page.get_by_text("physicians differ from the judge")).to_be_visible()
    expect(page.locator(".or-conversation")).to_have_count(0)
    page.go_forward()
    expect(page.locator(".or-conversation").first).to_have_text(shown, use_inner_text=True)

    context = steps.new_context(browser)
    other = context.new_page()
    other.goto(address)
    other.locator("a.or-profile", has_text="Lindqvist").click()
    expect(other.locator(".or-conversation").first).to_have_text(shown, use_inner_text=True)
    expect(other.get_by_role("button", name="Filters (2 on)")).to_be_visible()
    assert parse_qs(urlsplit(other.url).query) == parse_qs(urlsplit(address).query)
    steps.keyed(other, "back").get_by_role("button").click()
    expect(other.get_by_text("physicians differ from the judge")).to_be_visible()
    context.close()


@pytest.mark.slow
def test_a_note_typed_while_the_last_choice_is_still_being_saved_is_kept(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, "Dr. Nils Lindqvist", path="/browse?example=3")
    for item in steps.items(page)[:4]:
        steps.verdict(page, item, "Cannot assess").click()
        steps.pick(page, f"cause_{item}", "Context missing")
        steps.pick(page, f"severity_{item}", "Mild")
        steps.type_in(page, f"note_{item}", f"Note on {item}")
    for item in steps.items(page)[:4]:
        steps.wait_until_stored(
            app_server, item, cause="context_missing", severity="mild", explanation=f"Note on {item}"
        )

    # To the next conversation and back: what is shown is what was said, and looking at it changes nothing.
    steps.keyed(page, "next").get_by_role("button").click()
    expect(steps.keyed(page, f"own_{item}")).to_have_count(0)
    steps.keyed(page, "previous").get_by_role("button").click()
    expect(steps.keyed(page, f"own_{item}")).to_be_visible()
    for item in steps.items(page)[:4]:
        expect(steps.verdict(page, item, "Cannot assess")).to_be_checked()
        expect(steps.keyed(page, f"cause_{item}").get_by_role("combobox")).to_have_value("Context missing")
        expect(steps.keyed(page, f"note_{item}").get_by_role("textbox")).to_have_value(f"Note on {item}")
    page.reload()
    for item in steps.items(page)[:4]:
        expect(steps.keyed(page, f"severity_{item}").get_by_role("combobox")).to_have_value("Mild")
        expect(steps.keyed(page, f"note_{item}").get_by_role("textbox")).to_have_value(f"Note on {item}")


@pytest.mark.slow
def test_a_click_on_a_verdict_that_another_tab_has_changed_is_not_saved_and_says_so(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, "Dr. Tomas Vega", path="/browse?example=9")
    item = steps.items(page)[0]
    steps.verdict(page, item, "Not met").click()
    steps.wait_until_stored(app_server, item, label="not_met")
    other = page.context.new_page()
    other.goto(page.url)
    expect(steps.verdict(other, item, "Not met")).to_be_checked()
    steps.verdict(other, item, "Cannot assess").click()
    steps.wait_until_stored(app_server, item, label="cannot_assess")  # a stamp and "Undo" stand there from "Not met" on
    other.reload()
    expect(steps.verdict(other, item, "Cannot assess")).to_be_checked()

    steps.verdict(page, item, "Met").click()

    expect(page.get_by_role("status").filter(has_text="changed in another tab")).to_be_visible()
    expect(steps.verdict(page, item, "Cannot assess")).to_be_checked()


@pytest.mark.slow
def test_two_clicks_in_one_breath_are_both_saved(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, "Dr. Leila Haddad", path="/browse?example=12")
    chosen = steps.items(page)[:3]
    buttons = [steps.verdict(page, item, "Cannot assess").element_handle() for item in chosen]
    page.evaluate("buttons => buttons.forEach(button => button.click())", buttons)
    for item in chosen:
        expect(steps.stamp(page, item)).to_be_visible()
        expect(steps.verdict(page, item, "Cannot assess")).to_be_checked()
        steps.wait_until_stored(app_server, item, label="cannot_assess")
    # Beside a click outside the rubric, which draws the whole page anew.
    other = steps.items(page)[3]
    both = [
        steps.verdict(page, other, "Cannot assess").element_handle(),
        steps.keyed(page, "source_text").locator("input").element_handle(),
    ]
    page.evaluate("both => both.forEach(one => one.click())", both)
    steps.wait_until_stored(app_server, other, label="cannot_assess")
    expect(page.locator(".or-response .or-verbatim").first).to_be_visible()
    expect(steps.stamp(page, other)).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow
def test_scores_below_zero_have_a_minus_in_the_list(page: Page, app_server: AppServer):
    """What a table paints on its canvas is written down; what stands there for those who do not see it is not looked at."""
    page.add_init_script("""window.painted = [];
        const paint = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (words, ...place) { window.painted.push(String(words)); paint.call(this, words, ...place); };""")
    steps.choose_reader(page, app_server, LEAD, path="/browse")
    expect(steps.table(page)).to_be_visible()
    page.wait_for_function("window.painted.some(words => /^−0\\.\\d\\d$/.test(words))")
    steps.settled(page)
    assert [words for words in page.evaluate("window.painted") if re.fullmatch(r"-[\d.]+", words)] == []

"""Text from a model, a file or a person can run nothing, load nothing and link nowhere, on every page.

Two walls are tested apart: the renderer (no element carries the hostile address, and the browser had nothing to block), and the
policy in the headers (it blocks what a renderer would let through).
"""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import steps
from tests.browser.hostile import Hostile, Visit, text_of, vectors

# What must be readable as it was written, not as a formula, a heading, a symbol or a colour.
LITERAL = (
    "# Heading",
    "costs $5, or $x^2$ and",
    "1 -> 2 | 3 >= 2 -- ok",
    ":red[red] :material/home:",
    "<script>window.__pwned=1;alert(1)</script>",
)


EXPORTS = {
    "Labels": "One row per item (one criterion",
    "Verdicts": "One row per standing verdict",
    "Scores": "One row per response and judge",
    "Meta-evaluation rows": "in the format of HealthBench's meta-evaluation",
}


@pytest.mark.parametrize("shown", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_no_conversation_loads_runs_or_links_hostile_text(browser: Browser, hostile: Hostile, shown: int):
    visit = Visit(browser, hostile)
    page, name = visit.page, hostile.name
    visit.choose("person0")
    query = "".join(f"&shown={quote(name(f'model{n}'))}" for n in range(shown)) if shown > 1 else ""
    page.goto(f"{hostile.server.url}/browse?example=1{query}")
    expect(page.locator(".or-response")).to_have_count(shown)
    expect(page.locator(".or-formatted").first).to_be_visible()
    visit.look(f"detail, {shown} shown", "costs $5, or $x^2$ and", ":red[red] :material/home:")
    steps.keyed(page, "source_text").locator("label").click()
    expect(page.locator(".or-formatted")).to_have_count(0)
    visit.look(f"detail, {shown} shown, source")
    for fold in page.locator(".or-fold > summary:visible").all():
        fold.click()
    for expander in page.locator("[data-testid=stExpander] summary:visible").all():
        expander.click()
    visit.look(f"detail, {shown} shown, unfolded", *LITERAL, name("judge0"), name("model0"))
    steps.keyed(page, "shown").get_by_role("combobox").click()
    visit.look(f"detail, {shown} shown, responses opened")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Filters").click()
    visit.look(f"detail, {shown} shown, filters opened")
    page.keyboard.press("Escape")
    visit.hover_tooltips()
    visit.look(f"detail, {shown} shown, hovered")
    steps.keyed(page, "source_text").locator("label").click()
    expect(page.locator(".or-formatted").first).to_be_visible()

    # A note typed in, and shown to the next reader.
    page.goto(f"{hostile.server.url}/browse?example=2")
    item = steps.items(page)[0]
    steps.verdict(page, item, "Cannot assess").click()
    note = "typed " + " ".join(vectors(hostile.canary.url, "typed")[:15]).replace("\n", " ")
    steps.type_in(page, f"note_{item}", note)
    steps.wait_until_stored(hostile.server, item, explanation=note)
    visit.look("detail, note typed")
    page.reload()
    expect(steps.keyed(page, f"note_{item}").get_by_role("textbox")).to_have_value(note)
    visit.look("detail, note stored")
    visit.context.close()


@pytest.mark.slow
def test_no_figure_or_list_loads_runs_or_links_hostile_text(browser: Browser, hostile: Hostile):
    visit = Visit(browser, hostile)
    page, name = visit.page, hostile.name
    visit.choose("person0")
    steps.opened(page, hostile.server, "overview", "?made_of=Theme")  # so that what folds is open
    expect(page.locator(".st-key-composition_theme .bars").first).to_be_visible()
    visit.look("overview", name("person0"), name("judge0"))
    visit.hover_tooltips()
    page.locator(".stPlotlyChart").first.hover(position={"x": 400, "y": 60})
    visit.look("overview, hovered")

    steps.opened(page, hostile.server, "browse")
    expect(steps.keyed(page, "list").get_by_test_id("stDataFrame")).to_be_visible()
    page.get_by_role("button", name="More filters").click()
    for key in ("dataset", "category", "axis", "judge", "model"):
        steps.keyed(page, key).get_by_role("combobox").click()
        expect(page.get_by_role("option").first).to_contain_text(key)
        visit.look(f"browse, filter {key} opened")
        page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    search = text_of(hostile.canary.url, "search")[:1500]
    steps.opened(page, hostile.server, "browse", f"?q={quote(search)}&theme={quote(search)}&example={quote(search)}")
    expect(page.get_by_text("fit", exact=False).first).to_be_visible()
    visit.look("browse, search in the address")
    steps.opened(page, hostile.server, "browse", f"?theme={quote(name('theme'))}&judge={quote(name('judge1'))}")
    visit.look("browse, filtered")
    visit.context.close()


@pytest.mark.slow
def test_no_import_export_or_audit_loads_runs_or_links_hostile_text(browser: Browser, hostile: Hostile):  # noqa: PLR0915 - one walk
    visit = Visit(browser, hostile)
    page, name = visit.page, hostile.name
    visit.choose("person0")
    steps.opened(page, hostile.server, "study")
    page.locator("[data-testid=stExpander] summary").first.click()
    visit.look("study, formats")
    visit.hover_tooltips()

    # Faults quote what came: the field, the value, the file's name. Then a file that is fine, whose rows have no partner.
    bad_row = {
        "example_id": name("example_id"),
        "rater": name("rater"),
        "label": name("label"),
        "criterion_position": 1,
    }
    fault_rows = [
        bad_row,
        {**bad_row, "label": "met", "read_at": name("time"), "model": "m"},
        "a\x00b",
        {**bad_row, "rater": "\x00"},
    ]
    stray = {**bad_row, "label": "met", "model": name("model9")}
    file_name = (
        f"upload ![x]({hostile.canary.url}) <img src={hostile.canary.url} onerror=alert(1)> :red[r] $x$.jsonl".replace(
            "/", ":"
        )
    )
    for rows, words in ((fault_rows, "Nothing was imported"), ([stray], "got none in 1 row")):
        content = "\n".join(json.dumps(row) for row in rows).encode()
        steps.keyed(page, "upload").locator("input[type=file]").set_input_files(
            [{"name": file_name, "mimeType": "application/json", "buffer": content}]  # type: ignore[list-item]
        )
        expect(steps.keyed(page, "import")).to_be_visible()
        visit.look("study, uploaded")
        visit.hover_tooltips()
        steps.keyed(page, "check").get_by_role("button").click()
        expect(page.get_by_text(words).first).to_be_visible()
        visit.look(f"study, {words}")
        page.reload()
        expect(steps.keyed(page, "upload")).to_be_visible()
    page.get_by_role("tab", name="People").click()
    expect(steps.table(page)).to_be_visible()
    visit.look("study, people")
    steps.keyed(page, "person_name").get_by_role("textbox").fill(name("person1"))
    page.get_by_role("button", name="Add person").click()
    expect(page.get_by_role("alert")).to_contain_text("is already in this study")
    visit.look("study, person refused")

    steps.opened(page, hostile.server, "export")
    page.get_by_text("What the columns mean").click()
    for table, meaning in EXPORTS.items():
        steps.keyed(page, "export_what").get_by_role("radio", name=table, exact=True).click()
        expect(page.get_by_text(meaning)).to_be_visible()
        expect(steps.keyed(page, "download").get_by_role("button")).to_be_enabled()
        visit.look(f"export, {table}")
    for key in ("export_judge", "export_dataset", "export_model", "export_theme"):
        steps.keyed(page, key).get_by_role("combobox").click()
        visit.look(f"export, {key} opened")
        page.keyboard.press("Escape")
    visit.hover_tooltips()

    query = f"?audit_search={quote(name('search'))}&audit_person={quote(name('actor'))}"
    steps.opened(page, hostile.server, "audit", query)
    visit.look("audit, search in the address")
    steps.opened(page, hostile.server, "audit")
    table = steps.table(page)
    expect(table).to_be_visible()
    visit.look("audit")
    table.dblclick(position={"x": 600, "y": 52})  # a cell opens in full
    page.wait_for_timeout(500)
    visit.look("audit, a cell opened")
    page.keyboard.press("Escape")
    steps.keyed(page, "audit_person").get_by_role("combobox").click()
    visit.look("audit, persons opened")
    page.keyboard.press("Escape")
    steps.keyed(page, "verify").get_by_role("button").click()
    expect(page.get_by_text("The audit trail holds")).to_be_visible()
    visit.look("audit, verified")
    visit.context.close()


@pytest.mark.slow
def test_what_a_role_may_not_do_is_said_without_drawing_the_persons_name(browser: Browser, hostile: Hostile):
    visit = Visit(browser, hostile)
    page = visit.page
    visit.choose("person1", path="/audit")
    expect(page.get_by_text("This page is not for your role")).to_be_visible()
    visit.look("audit refused", "Only leads and researchers can read the audit trail", hostile.name("person1"))
    steps.opened(page, hostile.server, "study")
    expect(page.get_by_text("Only leads and researchers can import")).to_be_visible()
    page.get_by_role("tab", name="People").click()
    expect(steps.table(page)).to_be_visible()
    visit.hover_tooltips()
    page.get_by_role("button", name="Add person").hover(force=True)
    page.wait_for_timeout(500)
    visit.look("study, people refused", "Only leads can add people", hostile.name("person1"))
    steps.change_reader(page, "person2 ")
    page.goto(f"{hostile.server.url}/browse?example=1")
    expect(page.get_by_text("Only adjudicators and reviewers can give verdicts")).to_be_visible()
    visit.hover_tooltips()
    visit.look("detail, researcher", hostile.name("person2"))
    visit.context.close()


def test_the_policy_blocks_what_a_renderer_would_let_through(page: Page, hostile: Hostile):
    # The wall by itself: put into the page what no renderer of ours would, and see it blocked and reported.
    page.goto(hostile.server.url)
    expect(page.locator("a.or-profile").first).to_be_visible()
    before = len(hostile.canary.requests)
    page.evaluate(
        "window.blocked = []; document.addEventListener('securitypolicyviolation', e => blocked.push(e.effectiveDirective))"
    )
    page.evaluate(
        """async canary => {
          const put = (tag, attributes) => document.body.append(Object.assign(document.createElement(tag), attributes));
          put("img", { src: canary + "/img" });
          put("script", { src: canary + "/script.js" });
          put("script", { textContent: "window.__pwned = 1" });
          put("link", { rel: "stylesheet", href: canary + "/style.css" });
          put("iframe", { src: canary + "/frame" });
          put("video", { src: canary + "/video.mp4", autoplay: true });
          put("object", { data: canary + "/object" });
          put("style", { textContent: `body { background-image: url(${canary}/background.png) }` });
          await fetch(canary + "/fetch").catch(() => null);
          const form = document.createElement("form");
          Object.assign(form, { action: canary + "/form", method: "post" });
          document.body.append(form);
          form.submit();
        }""",
        hostile.canary.url,
    )
    for directive in (
        "img-src",
        "script-src-elem",
        "style-src-elem",
        "frame-src",
        "media-src",
        "object-src",
        "connect-src",
        "form-action",
    ):
        page.wait_for_function("directive => blocked.includes(directive)", arg=directive)
    assert hostile.canary.requests[before:] == []
    assert page.evaluate("window.__pwned") is None


def test_the_canary_hears_what_a_page_without_the_walls_asks_for(browser: Browser, hostile: Hostile):
    # The tests above would pass with a deaf canary or texts that ask for nothing: drawn as HTML, these ask for a lot.
    context = steps.new_context(browser)
    page = context.new_page()
    before = len(hostile.canary.requests)
    page.route(
        "**/unsafe", lambda route: route.fulfill(content_type="text/html", body=text_of(hostile.canary.url, "unsafe"))
    )
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(hostile.canary.url + "/unsafe", wait_until="commit")
    page.wait_for_timeout(1_000)
    heard = {request.rsplit("/", 1)[-1] for request in hostile.canary.requests[before:]}
    assert {"img.png", "script.js", "import.css", "frame"} <= heard, heard
    context.close()

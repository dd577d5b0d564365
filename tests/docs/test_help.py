"""Help: every page of docs/ is in it and leads somewhere, what it says of the code is so, and it opens without a study, a person or a network."""

import re

import pytest

from pages.help import docs as help_docs
from pages.shared import html
from tests.docs.blocks import ROOT
from tests.docs.reference import DOCS, PAGES
from tests.page_steps import LEAD, PHYSICIAN, Open, check

LISTED = {name for pages in help_docs.contents().values() for name in pages}


def test_help_lists_every_document_and_no_other():
    assert {path.stem for path in DOCS.glob("*.md")} == LISTED


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_reference_says_what_the_code_says(page):
    assert (DOCS / f"{page}.md").read_text("utf-8") == PAGES[page](), "run `make docs`, which writes it anew"


@pytest.mark.parametrize("name", sorted(LISTED))
def test_a_page_has_a_title_and_its_links_and_pictures_lead_somewhere(name):
    text = help_docs.text(name)
    assert re.match(r"# \S", text)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not (DOCS / link).exists()] == []  # an address elsewhere would need a network
    assert html.help_page(text).count('<a href="?doc=') == sum(link.endswith(".md") for link in links)


def test_every_picture_is_shown_and_together_they_are_small():
    pictures = {path.name: path.stat().st_size for path in (DOCS / "pictures").iterdir()}
    texts = "".join(help_docs.text(name) for name in LISTED) + (ROOT / "README.md").read_text("utf-8")
    assert [name for name in pictures if f"pictures/{name}" not in texts] == []
    assert sum(pictures.values()) < 1_500_000


def test_a_page_of_help_opens_for_somebody_for_nobody_and_where_there_is_no_study(location: str, open_page: Open):
    for name, alone in ((None, False), (None, True)):
        shown = check(open_page(location, "help", name, alone=alone, doc="statistics"))
        assert "Statistics" in shown
        assert "Nobody is in this study yet" not in shown


def test_whoever_has_not_chosen_a_person_finds_the_way_to_help_and_back(demo_study: str, open_page: Open):
    for page, other in (("overview", "Help"), ("help", "Start page")):
        (link,) = open_page(demo_study, page, None).get("page_link")
        assert link.proto.label == other


def test_whoever_reads_blind_finds_nothing_of_the_study_in_help(demo_study: str, open_page: Open):
    lead, physician = (
        [one.proto.body for one in open_page(demo_study, "help", name, doc="blinding").main.get("html")]
        for name in (LEAD, PHYSICIAN)
    )
    assert lead == physician
    assert len(lead) > 3


def test_an_address_of_no_page_opens_the_first(demo_study: str, open_page: Open):
    assert "What Overread is" in check(open_page(demo_study, "help", PHYSICIAN, doc="../../etc/passwd"))


def test_a_search_gives_the_sections_that_hold_all_its_words_with_headings_first():
    found = help_docs.found("idle minutes")
    assert ("settings", "Settings") in [(one.page, one.heading) for one in found]
    assert all("idle" in (one.heading + one.text).casefold() for one in found)
    assert help_docs.found("overread triage")[0].heading.startswith("overread triage")
    assert "commands" in {one.page for one in help_docs.found("OVERREAD_ACTING_AS")}
    assert help_docs.found("no such words anywhere xyzzy") == []


def test_searching_shows_the_sections(demo_study: str, open_page: Open):
    app = open_page(demo_study, "help", PHYSICIAN)
    shown = check(app.text_input(key="help_search").set_value("under-triage").run())
    assert re.search(r"\d+ sections? with: under-triage", shown)


def test_a_comment_in_a_block_of_commands_is_no_heading():
    headings = {section.heading for section in help_docs.found("drill")}
    assert not {heading for heading in headings if heading.startswith("1. Copy")}

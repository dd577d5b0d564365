"""Figures in a browser: the ink follows the theme at once, and what is saved of them."""

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.server import AppServer

LEAD = "Mina Castell"
PAPER, SLATE = "rgb(35, 38, 42)", "rgb(230, 227, 221)"
INK = """() => [...new Set([...document.querySelectorAll(".js-plotly-plot text")]
    .filter(text => text.textContent.trim()).map(text => getComputedStyle(text).fill))]"""


@pytest.fixture
def record(page: Page, app_server: AppServer) -> Page:
    """The record of a judge, with its figures drawn."""
    steps.choose_reader(page, app_server, LEAD, path="/judges")
    expect(page.locator(".st-key-record_forest .main-svg").first).to_be_visible()
    return page


@pytest.fixture
def saved(record: Page, tmp_path: Path) -> Callable[[str], Path]:
    """Saves the forest of the record under one of its words."""

    def saves(words: str) -> Path:
        with record.expect_download() as found:
            steps.keyed(record, "save_record_forest").get_by_role("button", name=words).click()
        path = tmp_path / found.value.suggested_filename
        found.value.save_as(path)
        return path

    return saves


@pytest.mark.slow
def test_all_words_of_figures_take_the_ink_of_the_theme_without_a_reload(record: Page):
    assert record.evaluate(INK) == [PAPER]
    record.emulate_media(color_scheme="dark")
    expect(record.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
    assert record.evaluate(INK) == [SLATE]


@pytest.mark.slow
def test_a_figure_is_saved_as_svg_and_png_on_white_in_the_ink_of_paper_whatever_the_theme(record: Page, saved):
    record.emulate_media(color_scheme="dark")
    expect(record.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
    drawn = saved("Save as SVG")
    assert drawn.name == "record-forest.svg"
    words = drawn.read_text(encoding="utf-8")
    assert re.search(r"<rect [^>]*fill: rgb\(255, 255, 255\)", words)
    assert "undesirable" in words
    assert PAPER in words
    assert SLATE not in words
    assert saved("Save as PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_numbers_of_a_figure_are_saved_with_their_intervals(saved):
    with saved("Save the numbers").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    whole = rows[0]
    assert whole["up"] == "all criteria"
    assert float(whole["across_low"]) < float(whole["across"]) < float(whole["across_high"])
    assert whole["told"].startswith(f"all criteria: {float(whole['across']):.0%}".replace("%", " %"))


@pytest.mark.slow
def test_what_is_printed_from_the_dark_is_light_tables_too(record: Page):
    record.emulate_media(color_scheme="dark")
    expect(record.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
    record.pdf()  # the browser says that it prints
    record.emulate_media(media="print", color_scheme="dark")
    assert record.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    canvas = record.get_by_test_id("stDataFrame").locator("canvas").first
    expect(canvas).to_have_css("filter", re.compile(r"^invert\(1\)"))

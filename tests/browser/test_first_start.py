"""The first start of all, by somebody with a coding tool's folder at home: nothing but Overread greets them, in a browser that we opened."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import AppServer, free_port, served

OFFER = "Help agents write better apps"
# As the launcher was that let Streamlit open the browser.
FORMER = """
import streamlit
from evalcore.__main__ import main

run = streamlit.App.run
streamlit.App.run = lambda self, config: run(self, config=config | {"server.headless": False, "logger.hideWelcomeMessage": False})
main()
"""


@contextmanager
def first_start(folder: Path, *python: str) -> Iterator[tuple[AppServer, Path]]:
    """`overread serve` in an empty folder, with a display, a browser that notes what it is to open, and `.cursor` at home."""
    home, noted, browser = folder / "home", folder / "opened", folder / "browser"
    (home / ".cursor").mkdir(parents=True)
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> "{noted}"\n')
    browser.chmod(0o700)
    clean = {name: value for name, value in os.environ.items() if name != "OVERREAD_DB"}
    seen = {"HOME": str(home), "DISPLAY": ":0", "BROWSER": f"{browser} %s"}
    port = free_port()
    server = AppServer(f"http://127.0.0.1:{port}", folder)
    with served(server, *python, "serve", "--port", str(port), environment=clean | seen):
        yield server, noted


@pytest.mark.slow
def test_the_browser_is_opened_once_and_nothing_offers_to_install_anything(page: Page, tmp_path: Path):
    with first_start(tmp_path, "-m", "evalcore") as (server, noted):
        page.goto(server.url)
        expect(page.locator(".or-heading h1")).to_have_text("Sign in as")
        page.wait_for_timeout(2000)  # it comes a moment after the page
        expect(page.get_by_text(OFFER)).to_have_count(0)
        last_moment = time.monotonic() + 20
        while not noted.exists() and time.monotonic() < last_moment:
            time.sleep(0.1)
        assert noted.read_text() == server.url + "\n"


@pytest.mark.slow  # says that the test above would see the offer, were it made
def test_the_former_launcher_lets_streamlit_make_its_offer(page: Page, tmp_path: Path):
    with first_start(tmp_path, "-c", FORMER) as (server, _):
        page.goto(server.url)
        expect(page.locator(".or-heading h1")).to_have_text("Sign in as")
        expect(page.get_by_text(OFFER)).to_be_visible()

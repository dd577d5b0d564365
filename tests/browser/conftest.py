"""Fixtures for the browser tests: a server and a Chromium for each file, a fresh context for each test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests import chromium
from tests.browser.canary import listening
from tests.browser.hostile import Hostile, write_study
from tests.browser.server import AppServer, running_app
from tests.browser.steps import WAIT_MS, new_context

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def app_server(demo_folder: Path) -> Iterator[AppServer]:
    """A server with the demo study, shared by the tests of one file."""
    with running_app(demo_folder) as server:
        yield server


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> Path:
    """A folder with the demo study in it, as a first start leaves it."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copyfile(demo_file, folder / "overread.db")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, closed with the file: the loop that drives it would be in the way of tests with a loop of their own."""
    found = chromium.find()
    if found is None:
        pytest.fail("No Chromium: run `python tests/chromium.py`")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(chromium.FLAGS))
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page in a context of its own: no cookie, no storage, downloads allowed."""
    context = new_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    with listening() as canary:
        write_study(folder, canary.url)
        with running_app(folder) as server:
            yield Hostile(server, canary)

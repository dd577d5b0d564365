"""A key for programs, as a lead makes it on the Study page: shown once, good over real HTTP, and refused once it is revoked."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from evalcore.importing import import_file
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Administrator
from tests.browser import steps
from tests.browser.server import AppServer, running_app
from tests.importing.shapes import json_lines

LEAD, READER = "Mina Castell", "Dr. Amara Okafor"
N = 3
GRADED = {"model": "wren", "criterion": "Names a reason to be careful.", "points": 5, "grade": "yes", "judge": "Magpie"}


@pytest.fixture
def server(tmp_path: Path):
    file = tmp_path / "grades.jsonl"
    rows = [{"question": f"May I swim on day {day}?", "answer": "Not yet.", **GRADED} for day in range(N)]
    file.write_bytes(json_lines(rows))
    engine = open_study(str(tmp_path / "overread.db"))
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
        store.add_person(session, READER, roles=["reviewer"], actor="set-up")
    import_file(engine, file, actor=Administrator(name="set-up"))
    engine.dispose()
    with running_app(tmp_path) as running:
        yield running


def asked(server: AppServer, key: str) -> httpx.Response:
    return httpx.get(f"{server.url}/api/v1/labels", headers={"Authorization": f"Bearer {key}"})


@pytest.mark.slow
def test_a_lead_makes_a_key_sees_it_once_and_revokes_it(page: Page, server: AppServer):
    steps.choose_reader(page, server, LEAD)
    steps.opened(page, server, "study", "?study_tab=People")
    page.get_by_text("Access keys for programs").click()
    steps.keyed(page, "key_purpose").get_by_role("textbox").fill("dashboard")  # Enter would send the form
    page.get_by_role("button", name="Make a key").click()
    shown = page.get_by_test_id("stCode").filter(visible=True)
    expect(page.get_by_text("Copy this key now: it is not shown again.")).to_be_visible()
    key = shown.inner_text().strip()

    answer = asked(server, key)
    assert answer.status_code == 200
    assert {row["model"] for row in answer.json()["rows"]} == {"wren"}
    assert len(answer.json()["rows"]) == N
    assert asked(server, f"{key}x").status_code == 401

    page.reload()
    page.get_by_text("Access keys for programs").click()
    expect(steps.keyed(page, "revoke_key")).to_be_visible()
    expect(page.get_by_text(key)).to_have_count(0)
    steps.settled(page)
    steps.keyed(page, "revoke_key").get_by_role("button").click()
    steps.settled(page)
    expect(steps.keyed(page, "revoke_key")).to_have_count(0)
    refused = asked(server, key)
    assert (refused.status_code, refused.json().keys()) == (401, {"error"})

    steps.opened(page, server, "audit")
    trail = steps.table(page)
    expect(trail).to_contain_text(re.compile(r"key revoked"))
    expect(trail).not_to_contain_text("{")

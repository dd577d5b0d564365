"""A server that people sign in to, of real parts: what a team does with it, and what it does when a part dies."""

import csv
import io
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import steps
from tests.browser.server import free_port, running_app
from tests.browser.test_review import IMANI, TOVE, Presses, labels, made, ready
from tests.browser.test_whole_way import downloaded
from tests.identity_provider import identity_provider
from tests.team.real_parts import Deployment, deployment

LEAD, ADJUDICATOR = "Lena Holt", "Dr. Sol Adeyemi"
ACCOUNTS = {IMANI: "ana", TOVE: "bo", LEAD: "lena", ADJUDICATOR: "sol"}
AGAIN = "Sign in again"


def team(browser: Browser) -> BrowserContext:
    """A browser of somebody's own; the test CA is not in its store."""
    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(steps.WAIT_MS)
    context.add_init_script(steps.NO_FILE_PICKER)
    return context


def at_provider(page: Page, name: str) -> None:
    """Say at the provider who one is."""
    page.get_by_role("button", name=ACCOUNTS[name], exact=True).click()


def come_in(page: Page, link: str, name: str) -> None:
    """Open an invitation, sign in, and be in the study."""
    page.goto(link)
    at_provider(page, name)
    expect(page.locator(".or-signed b")).to_have_text(name)


def invited(page: Page, name: str) -> str:
    """A link for somebody, as the lead gets it on the Study page."""
    page.goto(f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}/study?study_tab=People")
    page.get_by_role("combobox", name=re.compile("Person")).click()
    page.get_by_role("option", name=name, exact=True).click()
    steps.settled(page)
    steps.keyed(page, "invite").get_by_role("button").click()
    link = page.get_by_test_id("stCode")
    expect(link).to_contain_text("/invitation/")
    return link.inner_text().strip()


def begin(page: Page, url: str) -> Presses:
    page.goto(f"{url}/review")
    ready(page)
    return Presses(page)


def works(page: Page, key: str, place: int, words: str) -> None:
    """Press on a criterion until it counts: a press in the second in which a new session draws its first screen falls on nothing, and is seen to."""
    row = page.locator(".or-row").nth(place)
    for _ in range(5):
        row.click()
        try:
            expect(row).to_have_attribute("aria-current", "true", timeout=4_000)
            page.wait_for_timeout(200)  # its key is bound a frame after it is drawn
            page.keyboard.press(key)
            expect(row.locator(".or-mark")).to_contain_text(words, timeout=4_000)
            expect(row).not_to_have_class(
                re.compile("or-pending"), timeout=8_000
            )  # drawn at once, pale until it is stored
        except AssertionError:
            continue
        return
    expect(row.locator(".or-mark")).to_contain_text(words)


# ---------------------------------------------------------------- the short form: one process, SQLite

LISTEN_IN = """
import os, sys

def heard(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        with open(os.environ["HEARD"], "a") as told:
            told.write(f"{event} {arguments[1:] if event != 'socket.getaddrinfo' else arguments[:2]}\\n")

sys.addaudithook(heard)
"""
"""Run by Python before all else: writes down each address that the process speaks to."""


def test_an_invited_physician_reads_signs_in_again_in_the_same_tab_and_the_server_speaks_to_nobody_else(
    browser: Browser, tmp_path: Path
):
    """The whole way of a session: invited, idle, signed in again at the same page, signed out."""
    made(tmp_path, (4,), judged=True)
    port = free_port()
    with identity_provider() as issuer:
        url = f"http://127.0.0.1:{port}"
        said = {"PUBLIC_URL": url, "OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "overread", "OIDC_CLIENT_SECRET": "x"}
        environment = {f"OVERREAD_{name}": value for name, value in said.items()}
        (tmp_path / "sitecustomize.py").write_text(LISTEN_IN)
        environment |= {"PYTHONPATH": str(tmp_path), "HEARD": str(tmp_path / "heard")}
        with running_app(tmp_path, environment=environment, port=port) as server:
            command = [sys.executable, "-m", "evalcore", "team", "invite", IMANI]
            link = subprocess.run(
                command, cwd=tmp_path, env={**environment, "PATH": ""}, capture_output=True, text=True, check=True
            )
            context = team(browser)
            page = context.new_page()
            come_in(page, link.stdout.strip(), IMANI)
            pressed = begin(page, url)
            pressed.mark("1", 0, "met")
            with sqlite3.connect(server.database) as study:
                study.execute("UPDATE sign_in SET seen_at = '2026-01-01 00:00:00.000000'")
            study.close()
            page.keyboard.press("2")
            expect(page.get_by_role("heading", name=AGAIN)).to_be_visible()
            page.get_by_role("link", name="Sign in").click()
            at_provider(page, IMANI)
            ready(page)
            assert "/review" in page.url
            assert labels(page)[:2] == ["met", "unanswered"]
            works(page, "2", 1, "not met")
            page.get_by_role("link", name="Sign out").click()
            page.get_by_role("button", name="End session").click()  # at the provider, which leads back
            expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
            page.goto(f"{url}/review")
            expect(page.get_by_role("button", name="ana", exact=True)).to_be_visible()  # at the provider again
            context.close()
    heard = (tmp_path / "heard").read_text().splitlines()
    assert any("socket.connect" in line for line in heard)
    place = issuer.rpartition(":")[2]
    others = [line for line in heard if not re.search(rf"'127\.0\.0\.1', '?({place}|{port})\b", line)]
    assert others == [], "expected the server to speak to the identity provider alone"


# ---------------------------------------------------------------- the whole: PostgreSQL, two processes, nginx with TLS


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A study of two responses with four criteria each, which everybody reads, on a server of real parts."""
    folder = tmp_path_factory.mktemp("parts")
    study = tmp_path_factory.mktemp("study")
    made(study, (4, 4), judged=True, readers=(IMANI, TOVE))
    with deployment(folder, study=study / "overread.db") as running:
        running.overread("people", "--add", LEAD, "--role", "lead")
        running.overread("people", "--add", ADJUDICATOR, "--role", "adjudicator")
        yield running


def read_whole(page: Page, keys: str) -> None:
    """Mark the response in hand, and lock it."""
    pressed = Presses(page)
    words = {"1": "met", "2": "not met"}
    for place, key in enumerate(keys):
        pressed.mark(key, place, words[key])
    pressed.submit()


@pytest.mark.slow
def test_a_team_reads_settles_and_exports_through_every_part(browser: Browser, parts: Deployment):
    pages = {}
    for name in ACCOUNTS:
        context = team(browser)
        pages[name] = context.new_page()
    lead = pages[LEAD]
    come_in(lead, parts.overread("team", "invite", LEAD), LEAD)
    for name in (IMANI, TOVE, ADJUDICATOR):
        come_in(pages[name], invited(lead, name), name)
    for name, keys in ((IMANI, "1111"), (TOVE, "2111")):
        begin(pages[name], parts.url)
        read_whole(pages[name], keys)
    page = pages[TOVE]
    expect(page.get_by_text("The judge differs on 1")).to_be_visible()
    page.wait_for_timeout(300)
    page.keyboard.press("1")
    expect(page.locator(".or-decided")).to_have_count(1)
    desk = pages[ADJUDICATOR]
    desk.goto(f"{parts.url}/adjudicate")
    expect(steps.table(desk)).to_be_visible()
    desk.wait_for_timeout(500)
    desk.keyboard.press("Control+Enter")
    expect(desk.get_by_role("button", name="Settle")).to_be_visible()
    desk.wait_for_timeout(500)
    for key in ("2", "s"):
        desk.keyboard.press(key)
        desk.wait_for_timeout(500)
    desk.keyboard.press("n")
    desk.keyboard.type("It says so.")
    desk.keyboard.press("Control+Enter")
    steps.settled(desk)
    lead.goto(f"{parts.url}/export")
    expect(lead.locator(".or-heading h1")).to_contain_text("Export")
    steps.settled(lead)
    exported = list(csv.DictReader(io.StringIO(downloaded(lead).decode("utf-8"))))
    assert len(exported) == 8
    first = parts.rows(
        "SELECT r.name, count(*) FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE stage = 'first' GROUP BY r.name"
    )
    assert dict(first) == {IMANI: 4, TOVE: 4}
    assert parts.rows("SELECT label FROM verdict WHERE stage = 'adjudicated'") == [("not_met",)]
    assert "The audit trail holds" in parts.overread("audit", "verify")
    acts = {action for (action,) in parts.rows("SELECT DISTINCT action FROM audit_event")}
    assert {"signed in", "person invited", "identity bound", "first read submitted", "labels exported"} <= acts
    for page in pages.values():
        page.context.close()


@pytest.fixture
def reader(browser: Browser, parts: Deployment) -> Iterator[Page]:
    """Imani in mid-read of her second response: two of four criteria are marked."""
    context = team(browser)
    page = context.new_page()
    parts.rows("DELETE FROM mark")
    if parts.rows("SELECT 1 FROM identity WHERE subject = 'ana'"):
        page.goto(f"{parts.url}/review")
        at_provider(page, IMANI)
    else:
        come_in(page, parts.overread("team", "invite", IMANI), IMANI)
    begin(page, parts.url)
    works(page, "1", 0, "met")
    works(page, "2", 1, "not met")
    yield page
    context.close()


def marks(parts: Deployment) -> list[tuple[object, ...]]:
    """The newest mark on each criterion of what Imani has in hand, and how many there are of each."""
    return parts.rows(
        "SELECT criterion_id, label FROM (SELECT DISTINCT ON (criterion_id) criterion_id, label FROM mark JOIN reading ON reading.id = reading_id "
        f"JOIN person ON person.id = person_id WHERE person.name = '{IMANI}' AND state = 'reading' ORDER BY criterion_id, mark.id DESC) AS newest "
        "WHERE label IS NOT NULL ORDER BY criterion_id"
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", ["app1", "app2", "nginx", "postgres"])
def test_a_part_that_dies_in_mid_read_loses_nothing(part: str, reader: Page, parts: Deployment):
    before = marks(parts)
    assert [label for _, label in before] == ["met", "not_met"]
    parts.restart(part)
    reader.wait_for_timeout(1_000)
    works(reader, "1", 2, "met")
    assert [label for _, label in marks(parts)] == ["met", "not_met", "met"]
    reader.reload()
    ready(reader)
    assert labels(reader) == ["met", "not met", "met", "unanswered"]
    assert "The audit trail holds" in parts.overread("audit", "verify")


@pytest.mark.slow
def test_while_one_process_is_down_the_other_serves(reader: Page, parts: Deployment):
    for part in ("app1", "app2"):
        parts.kill(part)
        reader.reload()
        ready(reader)
        assert labels(reader)[:2] == ["met", "not met"]
        parts.start(part)
        reader.wait_for_timeout(4_000)  # so long the proxy leaves alone what refused a connection


@pytest.mark.slow
def test_a_migration_in_mid_read_loses_nothing_and_both_processes_go_on(reader: Page, parts: Deployment):
    """The tables become newer than the processes, as in a deployment without a pause; what is added is as a migration may add it."""
    before = marks(parts)
    (present,) = parts.rows("SELECT version_num FROM alembic_version")[0]
    parts.rows("ALTER TABLE mark ADD COLUMN pressure double precision")
    parts.rows("ALTER TABLE person ADD COLUMN colour varchar NOT NULL DEFAULT 'none'")
    parts.rows("CREATE TABLE novelty (id serial PRIMARY KEY, verdict_id integer REFERENCES verdict (id))")
    parts.rows("UPDATE alembic_version SET version_num = 'next'")
    try:
        works(reader, "1", 2, "met")
        assert [label for _, label in marks(parts)] == [*(label for _, label in before), "met"]
        for port in parts.ports:
            assert parts.get(f"http://127.0.0.1:{port}/readyz").json()["faults"] == []
        reader.reload()
        ready(reader)
        assert labels(reader) == ["met", "not met", "met", "unanswered"]
    finally:
        parts.rows(f"UPDATE alembic_version SET version_num = '{present}'")
        parts.rows("DROP TABLE novelty")
        parts.rows("ALTER TABLE mark DROP COLUMN pressure")
        parts.rows("ALTER TABLE person DROP COLUMN colour")
    assert "The audit trail holds" in parts.overread("audit", "verify")


@pytest.mark.slow
def test_an_open_tab_of_somebody_deactivated_saves_nothing_more(reader: Page, parts: Deployment):
    before = marks(parts)
    parts.overread("team", "deactivate", IMANI)
    reader.keyboard.press("1")
    expect(reader.get_by_role("heading", name=AGAIN)).to_be_visible()
    assert marks(parts) == before
    parts.overread("team", "activate", IMANI)
    reader.get_by_role("link", name="Sign in").click()
    at_provider(reader, IMANI)
    ready(reader)
    assert labels(reader)[:2] == ["met", "not met"]


@pytest.mark.slow
def test_what_comes_without_a_session_gets_through_no_part(parts: Deployment):
    forged = {"X-Forwarded-User": LEAD, "X_Remote_User": LEAD}
    for path in ("/media/x", "/_stcore/host-config", "/_stcore/upload_file/a/b", "/static/x.js"):
        assert parts.get(parts.url + path, **forged).status_code == 401, path
    assert parts.get(f"{parts.url}/_stcore/metrics").status_code in (401, 403, 404)
    assert parts.get(f"{parts.url}/browse", accept="text/html", **forged).headers["location"].startswith("/sign-in")
    direct = f"http://127.0.0.1:{parts.ports[0]}/browse"
    assert parts.get(direct, accept="text/html", **forged).headers["location"].startswith("/sign-in")
    for address in (parts.url, f"http://127.0.0.1:{parts.ports[0]}"):
        for host in ("evil.example", "localhost.evil.example", "localhost:1", "localhost@evil.example"):
            assert is_refused(parts, f"{address}/browse", host=host), (address, host)
    own = parts.url.removeprefix("https://")
    for origin in ("https://evil.example", "null", f"https://{own}.evil.example", f"http://evil.example/{own}"):
        assert parts.get(f"{parts.url}/browse", origin=origin).status_code == 403, origin
        assert parts.get(f"{parts.url}/_stcore/stream", **upgrade(origin)).status_code == 403, origin
    assert parts.get(f"{parts.url}/_stcore/stream", **upgrade("")).status_code == 403  # a socket without an origin
    # Even with the right origin: no session, no socket.
    assert parts.get(f"{parts.url}/_stcore/stream", **upgrade(parts.url)).status_code == 403
    assert parts.get(f"{parts.url}/healthz").json() == {"status": "ok"}


def is_refused(parts: Deployment, address: str, **headers: str) -> bool:
    """Whether nothing of ours answers: a status of refusal, or nginx hangs up."""
    try:
        return parts.get(address, **headers).status_code in (400, 403, 421)
    except httpx.RemoteProtocolError:
        return True


def upgrade(origin: str) -> dict[str, str]:
    """What a browser sends to open a socket."""
    asked = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    asked |= {"sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==", "sec_websocket_protocol": "streamlit"}
    return asked | ({"origin": origin} if origin else {})

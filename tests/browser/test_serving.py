"""What a running server lets through: pages before a profile, headers, other origins, the choice of reader."""

import json
import os
import socket
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests import invented, world
from tests.browser import steps
from tests.browser.server import AppServer, free_port, running_app, served
from tests.page_steps import few

N_PEOPLE = len(json.loads(Path("data/demo/people.json").read_text(encoding="utf-8")))

ROOT = Path(__file__).parents[2]
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}


def get(server: AppServer, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.url + path, headers=headers, trust_env=False, timeout=10)


@pytest.mark.slow
def test_the_first_request_of_all_to_a_page_shows_no_page(page: Page, tmp_path: Path):
    # Until app.py has run once, Streamlit would run any file in pages/ by its address: here nothing has run yet.
    # The first start in an empty folder makes the demo study, with its people.
    path, title = steps.PAGES["audit"]
    with running_app(tmp_path) as server:
        page.goto(server.url + path)
        expect(page.locator(".or-heading h1")).to_have_text("Sign in as")
        expect(page.locator("a.or-profile")).to_have_count(N_PEOPLE)
        expect(page.locator(".or-heading", has_text=title)).to_have_count(0)
        expect(page.get_by_test_id("stDataFrame")).to_have_count(0)
        expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)


@pytest.mark.parametrize(
    "pages", [("audit",), pytest.param(tuple(steps.PAGES), marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_a_page_without_a_profile_asks_who_reads(page: Page, app_server: AppServer, pages: tuple[str, ...]):
    # That all of them do is shown every day without a browser, in tests/pages/test_page_doors.py.
    for path, title in map(steps.PAGES.__getitem__, pages):
        page.goto(app_server.url + path)
        expect(page.locator(".or-heading h1"), path).to_have_text("Sign in as")
        expect(page.locator(".or-heading", has_text=title)).to_have_count(0)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/audit",
        "/_stcore/health",
        "/nothing.txt",
        "/_stcore/nothing",
        "/static/nothing.js",
        "/reader/1",
        "/media/x",
    ],
)
def test_every_answer_carries_the_security_headers(path: str, app_server: AppServer):
    answer = get(app_server, path)
    policy = (
        answer.headers["content-security-policy"] if not path.startswith("/reader/") else "script-src 'self' 'sha256-"
    )
    assert "script-src 'self'" in policy
    assert "'sha256-" in policy
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_a_script_of_the_page_itself_is_served_with_the_headers_too(app_server: AppServer):
    script = get(app_server, "/").text.split('type="module" crossorigin src=".')[1].split('"')[0]
    answer = get(app_server, script)
    assert answer.status_code == 200
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


# --- What a page of another site asks for, over a socket of our own: a browser would not let us say these things ---


def answered(server: AppServer, path: str, *lines: str, version: str = "1.1") -> tuple[int, str]:
    """Status and text of the answer to a GET request of exactly these header lines, in which PORT is the server's."""
    host, port = server.url.removeprefix("http://").split(":")
    request = [
        f"GET {path} HTTP/{version}",
        *(line.replace("PORT", port) for line in lines),
        "Connection: close",
        "",
        "",
    ]
    if any(line.startswith("Upgrade") for line in lines):
        request.remove("Connection: close")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall("\r\n".join(request).encode())
        text = b""
        while (part := connection.recv(1 << 16)) and b"101 Switching" not in text + part:
            text += part
        text += part
    return int(text.split()[1]), text.decode("latin-1")


HOST = "Host: 127.0.0.1:PORT"
UPGRADE = (
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol: streamlit",
)  # fmt: skip
REBOUND = "Host: evil.example:PORT"
FOREIGN_HOSTS = [
    (REBOUND,), (REBOUND, "Origin: http://evil.example:PORT"), (REBOUND, "Sec-Fetch-Site: same-origin"), ("Host: localhost",), ("Host: localhost:1",),
    ("Host: 127.0.0.1.evil.example:PORT",), ("Host: x@127.0.0.1:PORT",), (HOST, REBOUND), (),
]  # fmt: skip
FOREIGN_ORIGINS = [
    "http://evil.example:PORT", "https://evil.example", "http://127.0.0.1.evil.example:PORT", "null", "http://localhost:1", "http://127.0.0.1:1",
    "http://localhost:PORT",
]  # fmt: skip


@pytest.mark.parametrize("lines", FOREIGN_HOSTS)
def test_under_a_name_that_leads_here_nothing_is_served(lines: tuple[str, ...], app_server: AppServer):
    # DNS rebinding: one fetch of /reader/8 made a foreign page lead, and the socket gave it the labels.
    for path in ("/", "/reader/8", "/media/x", "/_stcore/health"):
        status, text = answered(app_server, path, *lines, version="1.1" if lines else "1.0")
        assert status in (400, 403), (path, text)
        assert "set-cookie" not in text.lower()
    assert answered(app_server, "/_stcore/stream", *lines, *UPGRADE, version="1.1" if lines else "1.0")[0] in (400, 403)


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_gets_nothing_another_port_of_this_machine_too(origin: str, app_server: AppServer):
    foreign = (HOST, f"Origin: {origin}")
    assert answered(app_server, "/_stcore/stream", *foreign, *UPGRADE)[0] == 403
    for path in ("/", "/reader/8", "/media/x"):
        status, text = answered(app_server, path, *foreign)
        assert status == 403
        assert "set-cookie" not in text.lower()


def test_a_socket_that_does_not_say_where_it_comes_from_is_refused(app_server: AppServer):
    assert answered(app_server, "/_stcore/stream", HOST, *UPGRADE)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_our_own_page_is_served_with_its_socket(host: str, app_server: AppServer):
    own = (f"Host: {host}:PORT", f"Origin: http://{host}:PORT")
    assert answered(app_server, "/", *own)[0] == 200
    assert answered(app_server, "/_stcore/stream", *own, *UPGRADE)[0] == 101
    assert answered(app_server, "/reader/1", *own, "Sec-Fetch-Site: same-origin")[0] == 303


SITES = ("cross-site",), ("same-site",), ("cross-site", "Sec-Fetch-Mode: navigate"), ("none", "Sec-Fetch-Site: none")


@pytest.mark.parametrize("lines", [(), *((f"Sec-Fetch-Site: {site}", *more) for site, *more in SITES)])
def test_another_site_cannot_choose_the_reader(lines: tuple[str, ...], app_server: AppServer):
    status, text = answered(app_server, "/reader/1", HOST, *lines)
    assert status == 403
    assert "set-cookie" not in text.lower()


@pytest.mark.parametrize("path", ["metrics", "metrics/", "%6detrics", "metrics?families=x", "agent/openapi.json"])
def test_what_sessions_hold_and_the_way_in_for_programs_are_closed(path: str, app_server: AppServer):
    assert answered(app_server, f"/_stcore/{path}", HOST)[0] == 404


@pytest.mark.slow
def test_streamlit_alone_serves_no_page(page: Page, app_server: AppServer, tmp_path: Path):
    # Neither app.py nor a file of pages/, which Streamlit finds by itself.
    port = free_port()
    server = AppServer(f"http://127.0.0.1:{port}", tmp_path)
    alone = ("-m", "streamlit", "run", str(ROOT / "app.py"), "--server.port", str(port), "--server.headless", "true")
    with served(server, *alone, environment=os.environ | {"OVERREAD_DB": str(app_server.database)}):
        for path in (steps.PAGES["audit"][0], "/"):
            page.goto(server.url + path)
            expect(page.get_by_text("start Overread with")).to_be_visible(timeout=30_000)
            expect(page.locator("a.or-profile, .or-heading")).to_have_count(0)


def test_the_choice_is_remembered_forgotten_and_leads_nowhere_else(page: Page, app_server: AppServer):
    page.goto(app_server.url + "/export")
    steps.click_profile(page, "Dr. Leila Haddad")
    expect(page.locator(".or-heading h1")).to_contain_text(steps.PAGES["export"][1])
    (cookie,) = [c for c in page.context.cookies() if c["name"].startswith("overread_reader_")]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    again = page.context.new_page()
    again.goto(app_server.url + "/study")
    expect(again.locator(".or-signed b")).to_have_text("Dr. Leila Haddad")

    page.get_by_role("link", name="Change reader").click()
    expect(page.locator("a.or-profile")).to_have_count(N_PEOPLE)
    assert [c for c in page.context.cookies() if c["name"].startswith("overread_reader_")] == []
    assert page.url == app_server.url + "/export"

    page.goto(app_server.url + "/reader/2?next=%2F%2F%2Fevil.example%2F")
    expect(page.locator(".or-signed b")).to_have_text("Dr. Nils Lindqvist")
    assert page.url == app_server.url + "/"


@pytest.mark.parametrize("number", few(["99999999999999999999999999", "99999"], 1))
def test_a_person_who_is_not_in_the_study_falls_back_to_the_choice(number: str, page: Page, app_server: AppServer):
    page.goto(f"{app_server.url}/reader/{number}?next=%2Faudit")
    expect(page.locator("a.or-profile")).to_have_count(N_PEOPLE)
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow
def test_a_pass_over_all_pages_leaves_no_error_in_the_console(browser: Browser, app_server: AppServer):
    # The policy lets the page's own scripts, fonts, tables and figures work; nothing else is asked for.
    context = steps.new_context(browser)
    complaints = steps.Complaints()
    complaints.hear(context)
    hosts = set()
    context.on("request", lambda request: hosts.add(request.url.split("/")[2] if "//" in request.url else ""))
    page = context.new_page()
    steps.choose_reader(page, app_server, "Mina Castell")
    for name in steps.PAGES:
        steps.opened(page, app_server, name)
        if name == "overview":
            expect(page.locator(".st-key-overview_models .main-svg").first).to_be_visible()
        if name in ("browse", "export", "audit"):
            expect(steps.table(page)).to_be_visible()
    page.goto(app_server.url + "/browse?example=1")
    steps.items(page)
    assert complaints.all == []
    assert hosts <= {app_server.url.removeprefix("http://"), ""}
    context.close()


def test_a_page_asks_for_its_server_at_the_root_alone(page: Page, app_server: AppServer):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    steps.choose_reader(page, app_server, "Mina Castell", path="/audit")
    expect(steps.table(page)).to_be_visible()
    assert [url for url in asked if url.endswith("_stcore/health")] == [f"{app_server.url}/_stcore/health"]


def test_the_start_page_has_no_menu_no_deploy_button_and_no_export_of_tables(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, "Mina Castell", path="/audit")
    expect(steps.table(page)).to_be_visible()
    steps.table(page).hover()
    expect(page.get_by_role("button", name="Search: Audit events")).to_be_visible()
    expect(page.get_by_role("button", name="Download")).to_have_count(0)
    expect(page.get_by_test_id("stMainMenu")).to_have_count(0)
    expect(page.get_by_test_id("stAppDeployButton")).to_have_count(0)


@pytest.mark.slow
def test_a_large_upload_lies_on_the_disk_and_not_in_memory_until_its_tab_ends(page: Page, tmp_path: Path):
    lies, text = tmp_path / "uploads", "long " * 4_000
    lies.mkdir()
    world.made(str(tmp_path / "overread.db")).engine.dispose()
    content = invented.lines(
        *(
            invented.example(f"n{number}", prompt=[{"role": "user", "content": f"{number} {text}"}])
            for number in range(1_500)
        )
    )  # 30 MB
    (tmp_path / "large.jsonl").write_bytes(content)
    with running_app(tmp_path, environment={"TMPDIR": str(lies)}) as server:
        steps.choose_reader(page, server, "Ana Ruiz")
        steps.go(page, "study")
        steps.keyed(page, "upload").locator("input[type=file]").set_input_files(tmp_path / "large.jsonl")
        expect(steps.keyed(page, "import")).to_be_visible()
        (file,) = lies.glob("overread-upload-*")
        assert file.read_bytes() == content
        steps.keyed(page, "import").get_by_role("button").click()
        expect(page.get_by_text("1,500 rows, imported")).to_be_visible(timeout=60_000)
        steps.keyed(page, "upload").get_by_role("button", name="Remove").click()
        expect(steps.keyed(page, "import")).to_be_hidden()
        assert list(lies.glob("overread-upload-*")) == []

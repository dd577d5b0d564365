"""What the launcher sets before Streamlit starts, and the address that remembers who reads; no browser."""

import asyncio
import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
import streamlit
from hypothesis import example, given, strategies as st

from evalcore import serving
from evalcore.errors import OverreadError
from evalcore.importing.uploads import ToDisk
from evalcore.study.db import open_study
from evalcore.study.policies import STUDY
from evalcore.team.api import Api
from evalcore.team.logs import Health
from pages.shared import page_cache

INDEX = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")

# What .streamlit/config.toml and the launcher must bring about; asked of Streamlit itself, in a process of its own.
IN_FORCE = {
    "server.headless": True,
    "runner.postScriptGC": False,
    "runner.magicEnabled": False,
    "server.maxUploadSize": 1024,
    "server.enableStaticServing": False,
    "server.fileWatcherType": "none",
    "server.enableXsrfProtection": True,
    "server.address": "127.0.0.1",
    "browser.gatherUsageStats": False,
    "client.disableDataExport": True,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
}
ASK = """
import json, sys
import streamlit
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager
from evalcore import serving

def run(self, config):
    from streamlit.web import bootstrap
    bootstrap.load_config_options({name.replace(".", "_"): value for name, value in config.items()})
    from streamlit import config as asked
    found = {name: asked.get_option(name) for name in json.loads(sys.argv_wanted)}
    print(json.dumps({"options": found, "discovery": PagesManager.uses_pages_directory, "given": list(config)}))

streamlit.App.run = run
sys.argv_wanted = sys.argv[1]
serving.serve(location="x.db", study_key="k", port=8599, address="127.0.0.1", browser=True)
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the launcher would start Streamlit with, asked from another folder than ours."""
    asked = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(list(IN_FORCE))],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    found: dict[str, object] = json.loads(asked.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("option", IN_FORCE)
def test_a_setting_is_in_force_from_whatever_folder_it_is_started(option: str, started: dict[str, dict[str, object]]):
    assert started["options"][option] == IN_FORCE[option]


def test_page_discovery_is_off_before_anything_is_served(started: dict[str, object]):
    assert started["discovery"] is False


def test_the_hidden_option_against_collection_after_each_run_still_exists_and_would_be_on():
    from streamlit import config

    assert config._config_options_template["runner.postScriptGC"].default_val is True


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_this_machines_own_addresses_are_served(address: str):
    serving.check_address(address, sign_in=False)


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "::", "192.168.1.20", "10.0.0.1", "fe80::1", "reader.example", "localhost.example", "", " "]
)
def test_an_address_that_others_reach_is_refused_and_says_why(address: str):
    with pytest.raises(OverreadError, match="no sign-in is set up"):
        serving.check_address(address, sign_in=False)
    serving.check_address(address, sign_in=True)


def test_serving_refuses_the_address_itself_before_it_touches_anything(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OVERREAD_DB", "untouched")
    monkeypatch.setattr(serving, "build", lambda key, hosts: pytest.fail("it was built"))
    with pytest.raises(OverreadError, match=r"0\.0\.0\.0"):
        serving.serve(location="x.db", study_key="k", port=8501, address="0.0.0.0", browser=False)
    assert os.environ["OVERREAD_DB"] == "untouched"


def test_the_policy_names_the_one_inline_script_of_the_installed_page_and_no_other():
    # The page has one script without an address; its text, between the tags, is what the browser hashes.
    code = INDEX.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    scripts = directives(serving.content_security_policy(INDEX))["script-src"]
    assert f"'sha256-{digest}'" in scripts
    assert sum(word.startswith("'sha256-") for word in scripts) == 1
    assert "'unsafe-inline'" not in scripts
    assert "'unsafe-eval'" not in scripts


def test_the_policy_lets_nothing_come_from_or_go_to_elsewhere():
    # Every word of every directive is a keyword, a hash, or data: and blob: which stay in the browser; no host, no scheme, no star.
    for name, words in directives(serving.content_security_policy(INDEX)).items():
        for word in words:
            assert word.startswith("'") or word in ("data:", "blob:"), (name, word)
    assert directives(serving.content_security_policy(INDEX))["frame-ancestors"] == ["'none'"]


def directives(policy: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in policy.split(";")}


# --- Who is let in; over real sockets in browser/test_serving.py ---

OURS = serving.served_hosts("127.0.0.1", 8501)
NAMES = st.sampled_from(
    ["127.0.0.1", "localhost", "[::1]", "LOCALHOST", "localhost.", "0.0.0.0", "x@localhost", "evil.example", "localhost.evil.example"]
)  # fmt: skip
PORTS = st.sampled_from([":8501", ":8502", ":80", "", ":08501", ":"])


@given(
    NAMES,
    PORTS,
    st.none()
    | st.tuples(st.sampled_from(["http://", "https://", "file://", ""]), NAMES, PORTS).map("".join)
    | st.just("null"),
)
def test_only_a_name_of_ours_with_our_port_is_let_in_and_only_from_its_own_pages(
    name: str, port: str, origin: str | None
):
    own = name.lower() in ("127.0.0.1", "localhost", "[::1]") and port == ":8501"
    host = name.lower() + port
    same = origin is not None and origin.lower() in ("http://" + host, "https://" + host)
    headers = [(b"host", (name + port).encode())] + ([(b"origin", origin.encode())] if origin is not None else [])
    asked_for = {"type": "http", "method": "GET", "headers": headers}
    assert (serving.refusal(asked_for, OURS) == "") == (own and (same or origin is None))
    assert (serving.refusal(asked_for | {"type": "websocket"}, OURS) == "") == (own and same)


@pytest.mark.parametrize(
    ("allowed", "host"),
    [
        ("localhost:9000", "localhost:9000"),
        ("study.example", "study.example"),
        ("Study.Example", "study.example:8501"),
        ("[::1]:9", "[::1]:9"),
    ],
)
def test_a_tunnel_or_a_proxy_may_give_us_another_name(allowed: str, host: str):
    assert serving.served_hosts("127.0.0.1", 8501, [allowed]) - OURS >= {host}
    assert "localhost" not in serving.served_hosts("127.0.0.1", 8501, [allowed])


@pytest.mark.parametrize("allowed", ["*", "*.example", "http://study.example", "a b", "", "a/b", "user@host", "host:x"])
def test_what_is_no_name_of_a_host_is_not_allowed(allowed: str):
    with pytest.raises(OverreadError, match="expected a name with or without a port"):
        serving.served_hosts("127.0.0.1", 8501, [allowed])


def test_another_site_may_link_to_a_page_and_load_nothing_of_it():
    asked_for = {
        "type": "http",
        "method": "GET",
        "headers": [(b"host", b"localhost:8501"), (b"sec-fetch-site", b"cross-site")],
    }
    assert serving.refusal(asked_for, OURS)
    linked = asked_for | {"headers": [*asked_for["headers"], (b"sec-fetch-mode", b"navigate")]}
    assert serving.refusal(linked, OURS) == ""
    assert serving.refusal(linked | {"method": "POST"}, OURS)


# --- Who reads ---


async def ask(app: serving.ASGIApp, path: str, query: str = "", **headers: str) -> tuple[int, dict[str, str]]:
    """One GET request; the status and headers of the answer."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b""}

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "query_string": query.encode(), "headers": given}
    await app(scope, receive, send)
    start = sent[0]
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}


async def inner(scope: serving.Scope, receive: serving.Receive, send: serving.Send) -> None:
    """The application behind: says that it was reached."""
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def asked(
    path: str, query: str = "", *, sec_fetch_site: str | None = "same-origin", **headers: str
) -> tuple[int, dict[str, str]]:
    said = {} if sec_fetch_site is None else {"sec_fetch_site": sec_fetch_site}
    return asyncio.run(ask(serving.RememberReader(inner, "abcd"), path, query, **said, **headers))


def cookie(headers: dict[str, str]):
    return SimpleCookie(headers["set-cookie"])["overread_reader_abcd"]


def test_choosing_a_person_sets_a_cookie_that_no_script_reads_and_no_other_site_sends():
    status, headers = asked("/reader/3", "next=%2Fbrowse%3Fq%3Dx")
    assert (status, headers["location"]) == (303, "/browse?q=x")
    morsel = cookie(headers)
    assert morsel.value == "3"
    assert (morsel["path"], morsel["samesite"], morsel["httponly"]) == ("/", "Strict", True)
    assert int(morsel["max-age"]) == 180 * 24 * 3600
    assert headers["cache-control"] == "no-store"


def test_person_0_forgets_the_choice():
    _, headers = asked("/reader/0")
    assert cookie(headers)["max-age"] == "0"
    assert headers["location"] == "/"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything", "", None])
def test_a_page_of_another_site_cannot_choose_for_the_viewer(site: str | None):
    status, headers = asked("/reader/3", sec_fetch_site=site)
    assert status == 403
    assert "set-cookie" not in headers


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_click_in_the_page_and_a_typed_address_may_choose(site: str):
    assert asked("/reader/3", sec_fetch_site=site)[0] == 303


@pytest.mark.parametrize(
    "path", ["/reader/", "/reader/x", "/reader/-1", "/reader/1/2", "/reader/٣", "/reader", "/browse"]
)
def test_any_other_address_is_passed_on(path: str):
    assert asked(path)[0] == 299


def test_a_socket_is_passed_on_untouched():
    reached = []

    async def socket(scope, receive, send):
        reached.append((scope, receive, send))

    scope = {"type": "websocket", "path": "/reader/3"}
    for wrap in (serving.RememberReader(socket, "abcd"), serving.Headers(socket, "default-src 'self'")):
        asyncio.run(wrap(scope, inner, print))  # type: ignore[arg-type]
    assert reached == [(scope, inner, print)] * 2


HOSTS = ("evil.example", "127.0.0.1@evil.example", "[::1]", "user:pass@evil.example:1")
ODD = st.text(alphabet=st.sampled_from(list("/\\:@?#%.&= \t\r\n\x00abcé\u202e")), max_size=12)


@given(st.one_of(st.text(), ODD, st.tuples(ODD, st.sampled_from(HOSTS), ODD).map("".join)))
@example("//evil.example")
@example("/\\evil.example")
@example("/\t/evil.example")
@example("https:evil.example")
@example("javascript:alert(1)")
@example("/ok\r\nset-cookie: a=b")
@example("///evil.example")
@example("/..//evil.example")
def test_the_way_back_stays_on_this_server(wanted: str):
    back = serving.local_path(wanted)
    # As a browser reads it: it drops tab and line ends, takes \\ for /, and two slashes begin a host.
    assert back.startswith("/")
    assert not back.startswith("//")
    assert back.isascii()
    assert back.isprintable()
    assert "\\" not in back
    assert not urlsplit(back).netloc


@given(st.text(max_size=40))
def test_a_query_of_any_words_comes_back_as_it_went(words: str):
    # The link is made of quoted words (pages/shared/common.py): it survives the way there and back.
    encoded = quote(words.encode("utf-8", "surrogatepass"), safe="")
    path = f"/browse?q={encoded}"
    _, headers = asked("/reader/3", f"next={quote(path, safe='')}")
    assert headers["location"] == path


def test_every_answer_carries_the_security_headers():
    _, headers = asyncio.run(ask(serving.Headers(inner, "default-src 'self'"), "/anything"))
    assert headers == {
        "content-security-policy": "default-src 'self'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
    }


@pytest.fixture
def discovery_as_before() -> Iterator[None]:
    from streamlit.runtime.pages_manager import PagesManager

    former = PagesManager.uses_pages_directory
    yield
    PagesManager.uses_pages_directory = former


def test_streamlit_alone_would_discover_no_script_in_pages():
    """It takes each file directly under pages/ for a page, unless its name begins with an underscore."""
    assert [path.name for path in (Path(__file__).resolve().parents[1] / "pages").glob("*.py")] == ["__init__.py"]


def test_discovery_is_switched_off_when_the_application_is_made(
    discovery_as_before: None, monkeypatch: pytest.MonkeyPatch
):
    from streamlit.runtime.pages_manager import PagesManager

    PagesManager.uses_pages_directory = True
    made = []
    monkeypatch.setattr(streamlit, "App", lambda path, middleware, **_: made.append((path, middleware)))
    serving.build("abcd", frozenset())
    assert PagesManager.uses_pages_directory is False
    (path, middleware), *_ = made
    assert Path(path).name == "app.py"
    walls = [Health, serving.Headers, serving.OwnPages, Api, serving.RememberReader, ToDisk, serving.AtRoot]
    assert [wall.cls for wall in middleware] == walls


def test_what_the_server_accepts_sends_small_answers_at_once():
    from streamlit.web.server.starlette import starlette_server

    plain = starlette_server._bind_socket
    try:
        serving.build("some-key", frozenset())
        with closing(starlette_server._bind_socket("127.0.0.1", 0, 1)) as listening:
            listening.setblocking(True)
            with closing(socket.create_connection(listening.getsockname())), closing(listening.accept()[0]) as accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        starlette_server._bind_socket = plain


@pytest.mark.parametrize(("is_large", "said"), [(True, "1"), (False, "1"), (True, "0")])
def test_a_server_begins_to_read_a_large_study_when_it_starts(is_large, said, tmp_path, monkeypatch):
    location = str(tmp_path / "study.db")
    open_study(location).dispose()
    if is_large:
        (tmp_path / "study.db.cache").mkdir()
    monkeypatch.setenv("OVERREAD_READ_AHEAD", said)
    begun = []
    monkeypatch.setattr(page_cache, "begun", lambda place, person: begun.append((place, person.roles & STUDY)))

    async def started() -> None:
        async with serving._reading_ahead(location, None):
            pass

    asyncio.run(started())
    assert begun == ([(location, STUDY)] if is_large and said == "1" else [])

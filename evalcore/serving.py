"""Start the dashboard. The one module of the core that knows Streamlit: it launches app.py and draws nothing.

Streamlit's discovery of pages/ is off (else a fresh server runs any page by its address, without app.py), and collection after each run (81 ms a click).
"""

import asyncio
import base64
import ctypes
import gc
import hashlib
import http.client
import ipaddress
import os
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache, partial
from http.cookies import SimpleCookie
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evalcore.errors import OverreadError, refuse
from evalcore.importing import uploads
from evalcore.settings import settings, shipped
from evalcore.study import contents, snapshot
from evalcore.study.acting import opened
from evalcore.study.db import PRESS_SECONDS, Engine, reading
from evalcore.study.schema import Administrator, Viewer
from evalcore.team import logs, people
from evalcore.team.logs import Health
from evalcore.team.provider import Provider, provider
from evalcore.team.sign_in import SignedInOnly, local_path, session_of, token_of
from evalcore.team.studies import sign_ins

PERSON_PATH = "/reader/"
COOKIE_PREFIX = "overread_reader_"
ANSWER_SECONDS = 60
OWN_SITE = ("same-origin", "none")
"""What `sec-fetch-site` says of a request of our own pages, and of an address that somebody typed."""
CLOSED = ("/_stcore/metrics", "/_stcore/agent")
"""Of Streamlit, open without sign-in, and of no use here: what sessions hold, and how a program would drive the pages."""
MAX_SHOWN = 200
PING_SECONDS = 20
"""Proxies drop a socket on which nothing is said for a minute."""
SWITCH_SECONDS = 0.001
"""A press asks the database a dozen times and waits for its turn in this program after each answer; by default a busy neighbour keeps it for 5 ms."""
COLLECTED_AFTER = (10_000, 20, 50)
"""Objects that are new, and steps between older ones. By default a page of large tables is broken off every second to look at all that lives: 70 ms each."""
M_ARENA_MAX, N_HEAPS = -8, 2
"""Of glibc, which gives each thread a heap of its own: of what large tables leave free in one, another takes nothing."""
NO_GLIBC = (AttributeError, OSError, TypeError)
_HOST = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_launched = threading.Event()
_AT_ROOT = "<head><script>window.__streamlit = {BACKEND_BASE_URL: location.origin}</script>"
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)


def cookie_name(study_key: str) -> str:
    """The cookie of this study: browsers share cookies between the ports of one machine."""
    return COOKIE_PREFIX + study_key[:8]


def check_address(address: str, *, sign_in: bool) -> None:
    """Without sign-in whoever reaches the page may pick any profile: then another address than a loopback one is an `OverreadError`."""
    if sign_in:
        return
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    if not loopback:
        refuse(
            f"--address {address}: anybody who can reach it could read as anyone, since no sign-in is set up. Set OVERREAD_PUBLIC_URL and the "
            "OVERREAD_OIDC_ variables (docs/sign-in.md), or leave --address out to serve this machine alone."
        )


def check_port(address: str, port: int) -> None:
    """Nobody else listens there; else an `OverreadError`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            msg = f"--port {port}: {error.strerror} on {address}. Stop what runs there, or say another port: overread serve --port {port + 1}"
            raise OverreadError(msg) from error


def content_security_policy(index_html: str) -> str:
    """What the browser may load and run: Streamlit's own files, its inline scripts by their hash, a component's script by `blob:`, nothing from elsewhere."""
    digests = (hashlib.sha256(code.encode()).digest() for code in _INLINE_SCRIPT.findall(index_html))
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return "; ".join(
        [
            "default-src 'self'",
            f"script-src 'self' blob: 'wasm-unsafe-eval' {allowed}".strip(),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "media-src 'self' data: blob:",
            "connect-src 'self'",
            "frame-src 'none'",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    )


class Headers:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-frame-options", b"DENY"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; sockets as they are."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, send if scope["type"] != "http" else with_headers)


class AtRoot:
    """Answers the address of each page with Streamlit's own document, which is told that its server is at the root.

    Else a page asks for its server below its own address first, and waits a while after the answer that none is there.
    """

    def __init__(self, app: ASGIApp, index_html: str) -> None:
        self._app = app
        self._document = index_html.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a page's address, pass everything else on."""
        if scope["type"] == "http" and scope["method"] == "GET" and re.fullmatch("/[^/.]*", scope["path"]):
            await _answer(send, 200, [(b"content-type", b"text/html; charset=utf-8")], self._document)
        else:
            await self._app(scope, receive, send)


def served_hosts(address: str, port: int, allowed: Iterable[str] = ()) -> frozenset[str]:
    """What a browser that is ours may send as `Host`: this machine's own names with our port, and the names that are allowed.

    Allowed are names of a tunnel or a proxy, without a port, with ours or with none; one that is no name of a host is an `OverreadError`.
    """
    own = {"localhost", "127.0.0.1", "[::1]", f"[{address}]" if ":" in address else address.lower()}
    hosts = {f"{name}:{port}" for name in own} | (own if port == http.client.HTTP_PORT else set())
    for name in map(str.lower, allowed):
        if not _HOST.fullmatch(name):
            msg = f"--allowed-host: expected a name with or without a port, such as study.example or localhost:9000, got {name[:MAX_SHOWN]!r}"
            raise OverreadError(msg)
        hosts |= {name} if re.search(r":[0-9]+$", name) else {name, f"{name}:{port}"}
    return frozenset(hosts)


class OwnPages:
    """Refuses what a page of another site asks for, before anything of ours or of Streamlit's is reached; links from elsewhere still open a page.

    A page's name may be made to lead to this machine (DNS rebinding): its requests look like ours but for their `Host`.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is ours; 404 for what is closed, 403 and a sentence for the rest."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif why := refusal(scope, self._hosts):
            await _refuse(scope, send, 403, why)
        elif any(f"{closed}/" in f"{scope['path']}/" for closed in CLOSED):
            await _refuse(scope, send, 404, "There is no such page.")
        else:
            await self._app(scope, receive, send)


def refusal(scope: Scope, hosts: frozenset[str]) -> str:
    """Why a request is not let in, as a sentence; empty where it is."""
    asked, origins = _values(scope, b"host"), _values(scope, b"origin")
    host = asked[0].lower() if len(asked) == 1 else ""
    if host not in hosts:
        return (
            f"Overread is not served as {host[:MAX_SHOWN] or 'a host without a name'}. Open the address that `overread serve` printed; "
            "behind a tunnel or a proxy, start it with --allowed-host and the name and port that the browser shows."
        )
    if any(origin.lower() not in (f"http://{host}", f"https://{host}") for origin in origins):
        return "A page of another site asked for this: only Overread's own pages may."
    if scope["type"] == "websocket" and not origins:
        return "A socket came without its origin: only Overread's own pages may open one."
    is_link = scope["type"] == "http" and _values(scope, b"sec-fetch-mode") == ["navigate"] and scope["method"] == "GET"
    if not is_link and any(site not in OWN_SITE for site in _values(scope, b"sec-fetch-site")):
        return "A page of another site asked for this: only Overread's own pages may."
    return ""


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


async def _refuse(scope: Scope, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the server answers 403
    else:
        await _answer(send, status, [(b"content-type", b"text/plain; charset=utf-8")], sentence.encode())


class RememberReader:
    """Answers /reader/N: keeps the browser's choice of person (0: nobody) in a cookie, and goes on to the page that was asked for.

    Only a request of which the browser says that our own page made it, or the viewer, is taken.
    """

    def __init__(self, app: ASGIApp, study_key: str) -> None:
        self._app = app
        self._cookie = cookie_name(study_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer our own address, pass everything else on."""
        asked = re.fullmatch(rf"{PERSON_PATH}([0-9]+)", scope.get("path", "")) if scope["type"] == "http" else None
        if asked is None:
            await self._app(scope, receive, send)
            return
        if len(said := _values(scope, b"sec-fetch-site")) != 1 or said[0] not in OWN_SITE:
            why = "Choose who is reading on Overread's own page, in a browser from 2023 or later: this request does not say that it comes from there."
            await _refuse(scope, send, 403, why)
            return
        cookie: SimpleCookie = SimpleCookie({self._cookie: asked[1]})
        morsel = cookie[self._cookie]
        morsel["path"], morsel["httponly"], morsel["samesite"] = "/", True, "Strict"
        morsel["max-age"] = 0 if asked[1] == "0" else 180 * 24 * 3600
        wanted = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("next", ["/"])[0]
        target = [(b"location", local_path(wanted).encode()), (b"set-cookie", morsel.OutputString().encode())]
        await _answer(send, 303, target)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    always = [(b"content-length", str(len(body)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *always]})
    await send({"type": "http.response.body", "body": body})


def page_address(address: str, port: int) -> str:
    """Where the pages are."""
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def open_when_answering(address: str, port: int) -> None:
    """Open the start page in the browser as soon as the server answers; not at all where that takes more than a minute."""
    last_moment = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < last_moment:
        with suppress(OSError):
            asked = http.client.HTTPConnection(address, port, timeout=5)
            asked.request("GET", "/healthz")
            if asked.getresponse().status == http.HTTPStatus.OK:
                webbrowser.open(page_address(address, port))
                return
        time.sleep(0.1)


def check_launched() -> None:
    """The pages are served by this launcher, with its doors, and not by Streamlit alone; else an `OverreadError`."""
    if not _launched.is_set():
        msg = "Stop this server and start Overread with `overread serve`: started in another way, it would let other web pages in."
        raise OverreadError(msg)


def serve(
    *, location: str, study_key: str, port: int, address: str, browser: bool, allowed: Iterable[str] = ()
) -> None:
    """Run the dashboard until it is stopped.

    We open the browser ourselves: Streamlit, not told that nobody sits before it, offers to install things into a coding tool's folder at home.
    """
    signing_in = provider()
    check_address(address, sign_in=signing_in is not None)
    hosts = served_hosts(address, port, allowed) | ({signing_in.host} if signing_in else frozenset())
    os.environ["OVERREAD_DB"] = location  # by the environment: a password in arguments shows in the process list
    os.environ.setdefault("OVERREAD_READ_AHEAD", "1")
    options = {
        "server.address": address,
        "server.port": port,
        "server.headless": True,
        "runner.postScriptGC": False,
        "server.fileWatcherType": "none",
        "server.websocketPingInterval": PING_SECONDS,
        "logger.hideWelcomeMessage": True,  # which asks a service of others' for our address, where we listen on all
    }
    sys.argv = [str(shipped("app.py"))]  # Streamlit reads the settings beside the script that it is told it runs
    app = build(study_key, hosts, signing_in, lifespan=partial(_reading_ahead, location))
    # On a server no window can be shown: a browser for the terminal would take the terminal.
    has_display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if browser and has_display:
        threading.Thread(target=open_when_answering, args=(address, port), daemon=True).start()
    app.run(config=options)


def give_back_memory() -> None:
    """What large tables have left free goes back to the system, which else gets none of it: of a study of ten million verdicts as much as all of it takes."""
    gc.collect(1)  # what is new: tables that a circle of objects holds
    pa.default_memory_pool().release_unused()
    with suppress(*NO_GLIBC):
        ctypes.CDLL(None).malloc_trim(0)


@cache
def _forget_uploads() -> None:
    """When a tab has ended for Streamlit, what was uploaded in it is removed from the disk as well."""
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

    from_memory = MemoryUploadedFileManager.remove_session_files

    def from_both(manager: MemoryUploadedFileManager, session_id: str) -> None:
        from_memory(manager, session_id)
        uploads.forget(session_id)

    setattr(MemoryUploadedFileManager, "remove_session_files", from_both)  # noqa: B010 - it is a method for the type checker


@cache
def _engine_at(location: str) -> Engine:
    return opened(location, wait_seconds=PRESS_SECONDS)


def _by_session(signing_in: Provider | None, cookies: Mapping[str, str], engine: Engine) -> Viewer | None:
    """The person of a study by what a browser sends: who is signed in, or on a server without sign-in whom it has chosen."""
    if signing_in is not None:
        who = session_of(_engine_at(sign_ins()), token_of(cookies), signing_in)
        return None if who is None else people.member(engine, who)
    with reading(engine) as session:
        number = cookies.get(cookie_name(contents.study_key(session) or ""), "")
        return contents.person(session, int(number)) if re.fullmatch("[0-9]{1,15}", number) else None


@asynccontextmanager
async def _reading_ahead(location: str, _app: object) -> AsyncIterator[None]:
    """While the server runs; at its start what the pages of results need of a large study is read, so that it is there when the first browser has connected."""
    if settings().read_ahead and settings().studies is None:
        asyncio.get_running_loop().run_in_executor(None, _read_ahead, location)
    yield


def _read_ahead(location: str) -> None:
    place = snapshot.folder(_engine_at(location))
    if place is not None and place.is_dir():  # of a small study a server that nobody visits stays small
        import_module("pages.shared.page_cache").begun(location, Administrator())


def build(
    study_key: str,
    hosts: frozenset[str],
    signing_in: Provider | None = None,
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]] | None = None,
) -> Any:
    """The ASGI application: Streamlit behind our doors, served as these hosts, inside our headers."""
    import streamlit
    from starlette.middleware import Middleware
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.web.server.starlette import starlette_server

    from evalcore.team.api import Api

    bind = starlette_server._bind_socket  # noqa: SLF001 - there is no setting for it

    def without_delay(address: str, port: int, backlog: int) -> socket.socket:
        """Else a quick second key waits 40 ms for the first one's acknowledgement."""
        listening = bind(address, port, backlog)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what it accepts inherits this
        return listening

    starlette_server._bind_socket = without_delay  # noqa: SLF001 - the same
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTED_AFTER)
    with suppress(*NO_GLIBC):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, N_HEAPS)
    _forget_uploads()
    uploads.forget_of_the_dead()
    PagesManager.uses_pages_directory = False
    index = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    index = index.replace("<head>", _AT_ROOT, 1)
    if signing_in is None:
        who = Middleware(RememberReader, study_key=study_key)
    else:
        who = Middleware(
            SignedInOnly,
            provider=signing_in,
            sign_ins=lambda: _engine_at(sign_ins()),
            study_engine=lambda study: _engine_at(study.db),
        )
    if signing_in is not None:
        logs.begin()
    middleware = [
        *([Middleware(logs.RequestLog)] if signing_in else []),
        Middleware(Health, engine_at=_engine_at),
        Middleware(Headers, policy=content_security_policy(index)),
        Middleware(OwnPages, hosts=hosts),
        Middleware(Api, engine_at=_engine_at, by_session=partial(_by_session, signing_in)),
        who,
        Middleware(uploads.ToDisk),
        Middleware(AtRoot, index_html=index),
    ]
    _launched.set()
    return streamlit.App(str(shipped("app.py")), middleware=middleware, lifespan=lifespan)

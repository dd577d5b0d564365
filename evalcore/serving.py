"""Start the dashboard. The one module of the core that knows Streamlit: it launches app.py and draws nothing.

It sets what Streamlit must have before it starts: discovery of pages/ off (else a fresh server runs any page by its address, without
app.py), collection after each run off (81 ms a click), the security headers, and the address that remembers who reads.
"""

import base64
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
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import SimpleCookie
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from evalcore.errors import OverreadError

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

PERSON_PATH = "/reader/"
COOKIE_PREFIX = "overread_reader_"
ANSWER_SECONDS = 60
_INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)


def cookie_name(study_key: str) -> str:
    """The cookie of this study: browsers share cookies between the ports of one machine."""
    return COOKIE_PREFIX + study_key[:8]


def app_path() -> Path:
    """app.py: inside the installed package, else beside it."""
    packaged = Path(str(files("evalcore") / "_app" / "app.py"))
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / "app.py"


def check_address(address: str) -> None:
    """Whoever reaches the page may pick any profile, so only this machine may reach it until sign-in exists.

    Raises:
        OverreadError: The address is not a loopback address.
    """
    try:
        loopback = ipaddress.ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    if not loopback:
        msg = (
            f"--address {address}: anybody who can reach it could read as anyone, since Overread has no sign-in yet. "
            "It serves this machine only: leave --address out, or say 127.0.0.1. From another machine, use an SSH tunnel."
        )
        raise OverreadError(msg)


def check_port(address: str, port: int) -> None:
    """Nobody else listens there.

    Raises:
        OverreadError: Somebody does.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            msg = f"--port {port}: {error.strerror} on {address}. Stop what runs there, or say another port: overread serve --port {port + 1}"
            raise OverreadError(msg) from error


def content_security_policy(index_html: str) -> str:
    """What the browser may load and run: Streamlit's own files, its inline scripts by their hash, nothing from elsewhere.

    `blob:` is how Streamlit brings a component's script (ours, pages/_keys.js): only a script that runs already can make one.
    """
    scripts = [
        base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in _INLINE_SCRIPT.findall(index_html)
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in scripts)
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

    def __init__(self, app: Asgi, policy: str) -> None:
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

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, send if scope["type"] != "http" else with_headers)


class RememberReader:
    """Answers /reader/N: keeps the browser's choice of person in a cookie, and goes on to the page that was asked for.

    /reader/0 forgets the choice. A page of another site cannot make the choice for the viewer: its requests are refused.
    """

    def __init__(self, app: Asgi, study_key: str) -> None:
        self._app = app
        self._cookie = cookie_name(study_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer our own address, pass everything else on."""
        chosen = scope.get("path", "").removeprefix(PERSON_PATH)
        if (
            scope["type"] != "http"
            or not scope["path"].startswith(PERSON_PATH)
            or not (chosen.isascii() and chosen.isdigit())
        ):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            await _answer(send, 403, [])
            return
        cookie: SimpleCookie = SimpleCookie({self._cookie: chosen})
        morsel = cookie[self._cookie]
        morsel["path"], morsel["httponly"], morsel["samesite"] = "/", True, "Strict"
        morsel["max-age"] = 0 if chosen == "0" else 180 * 24 * 3600
        wanted = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("next", ["/"])[0]
        target = [(b"location", local_path(wanted).encode()), (b"set-cookie", morsel.OutputString().encode())]
        await _answer(send, 303, target)


def local_path(wanted: str) -> str:
    """A path on this server, whatever came.

    >>> local_path("/browse?q=x"), local_path("///evil.example/x"), local_path("https://evil.example")
    ('/browse?q=x', '/', '/')
    """
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted
    local = wanted.startswith("/") and not wanted.startswith(
        "//"
    )  # a browser takes any number of slashes for a host's two
    return wanted if plain and local and not parts.scheme and not parts.netloc else "/"


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    always = [(b"content-length", b"0"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *always]})
    await send({"type": "http.response.body", "body": b""})


def page_address(address: str, port: int) -> str:
    """Where the pages are.

    >>> page_address("::1", 8501)
    'http://[::1]:8501'
    """
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def has_display() -> bool:
    """Whether a browser could show a window. On a server it could not: one for the terminal would take the terminal."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_when_answering(address: str, port: int) -> None:
    """Open the start page in the browser as soon as the server answers; not at all where that takes more than a minute."""
    last_moment = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < last_moment:
        try:
            asked = http.client.HTTPConnection(address, port, timeout=5)
            asked.request("GET", "/_stcore/health")
            if asked.getresponse().status == http.HTTPStatus.OK:
                webbrowser.open(page_address(address, port))
                return
        except OSError:
            pass
        time.sleep(0.1)


def serve(*, location: str, study_key: str, port: int, address: str, browser: bool) -> None:
    """Run the dashboard until it is stopped.

    Streamlit is always told that nobody sits before it: else it greets whoever has a coding tool's folder at home with an offer to install
    things into ours. So we open the browser ourselves.

    Raises:
        OverreadError: The address is not this machine's own.
    """
    check_address(address)
    os.environ["OVERREAD_DB"] = location  # by the environment: a password in arguments shows in the process list
    os.environ.setdefault("OVERREAD_READ_AHEAD", "1")
    options = {
        "server.address": address,
        "server.port": port,
        "server.headless": True,
        "runner.postScriptGC": False,
        "server.fileWatcherType": "none",
    }
    sys.argv = [str(app_path())]  # Streamlit reads the settings beside the script that it is told it runs
    app = build(study_key)
    if browser and has_display():
        threading.Thread(target=open_when_answering, args=(address, port), daemon=True).start()
    app.run(config=options)


def without_delay(bind: Callable[..., socket.socket]) -> Callable[..., socket.socket]:
    """Small answers leave at once: without TCP_NODELAY a quick second key waits 40 ms for the first one's acknowledgement."""

    def bound(*arguments: Any) -> socket.socket:
        listening = bind(*arguments)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what it accepts inherits this
        return listening

    return bound


def build(study_key: str) -> Any:
    """The ASGI application: Streamlit inside our headers."""
    import streamlit
    from starlette.middleware import Middleware
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.web.server.starlette import starlette_server

    PagesManager.uses_pages_directory = False
    starlette_server._bind_socket = without_delay(starlette_server._bind_socket)  # noqa: SLF001 - there is no setting for it
    index = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    middleware = [
        Middleware(Headers, policy=content_security_policy(index)),
        Middleware(RememberReader, study_key=study_key),
    ]
    return streamlit.App(str(app_path()), middleware=middleware)

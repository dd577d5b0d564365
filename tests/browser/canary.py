"""A server that listens: whatever a hostile text makes the browser ask for arrives here and is written down."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIXEL = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"


class Canary:
    """Where it listens, and what was asked of it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[str] = []


@contextmanager
def listening() -> Iterator[Canary]:
    """A canary on a free port; it answers everything with a picture, so that nothing fails before it is loaded."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            canary.requests.append(f"{self.command} {self.path}")
            self.send_response(200)
            self.send_header("Content-Type", "image/gif")
            self.send_header("Content-Length", str(len(PIXEL)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(PIXEL)

        do_POST = do_HEAD = do_OPTIONS = do_PUT = do_GET  # noqa: N815 - the names that the standard library looks for

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    canary = Canary(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield canary
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

"""A browser's tab on a page of Streamlit, without the browser: what it sends and what it shows, over the page's own websocket.

The client is `websockets`, which Streamlit itself depends on and the lock file pins.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

ANSWER_SECONDS = 60.0
"""Longer than that nobody waits for an answer: an error."""
CONNECT_SECONDS = 30.0


@dataclass(frozen=True)
class Button:
    """A button on the screen."""

    widget_id: str
    fragment_id: str
    disabled: bool


class Tab:
    """One connection, and what its screen shows."""

    def __init__(self, connection: ClientConnection, url: str, page: str) -> None:
        self._connection = connection
        self._url = f"{url}/{page}"
        (self._page_name, _, self._query), self._page_hash = page.partition("?"), ""
        self._shown: dict[tuple[int, ...], tuple[int, Delta]] = {}  # with the number of the run that drew it
        self._run, self._redrawn = 0, frozenset[str]()

    # ---- the screen

    @property
    def buttons(self) -> dict[str, Button]:
        """What can be pressed, by the key that the page gives the button, without the number of the read at its end."""
        drawn = ((delta.new_element.button, delta) for delta in self._drawn("button"))
        return {
            re.sub(r"_\d+$", "", button.id.split("-", 2)[-1]): Button(button.id, delta.fragment_id, button.disabled)
            for button, delta in drawn
        }

    def html(self, part: str) -> str:
        """The pieces of HTML that hold `part`, in order; empty where none does."""
        bodies = (delta.new_element.html.body for delta in self._drawn("html"))
        return "".join(body for body in bodies if part in body)

    def _drawn(self, kind: str) -> list[Delta]:
        return [delta for _, delta in self._shown.values() if _kind(delta) == kind]

    # ---- what it sends, and what comes

    async def load(self) -> None:
        """Ask for the page, as a browser does once it is connected."""
        await self._ask(BackMsg())
        await self.settle()

    async def press(self, key: str) -> float:
        """Press a button and wait for the end of what follows.

        Returns:
            Milliseconds from sending the press to `script_finished`, of the last run where the page runs anew by itself.
        """
        start = time.perf_counter()
        await self.send(key)
        await self.settle()
        return (time.perf_counter() - start) * 1000

    async def send(self, key: str) -> None:
        """Press a button and wait for nothing."""
        button = self.buttons[key]
        message = BackMsg()
        message.rerun_script.fragment_id = button.fragment_id
        pressed = message.rerun_script.widget_states.widgets.add()
        pressed.id, pressed.trigger_value = button.widget_id, True
        await self._ask(message)

    async def _ask(self, message: BackMsg) -> None:
        asked = message.rerun_script
        asked.page_script_hash = self._page_hash
        asked.page_name = "" if self._page_hash else self._page_name
        asked.query_string = self._query
        asked.context_info.timezone, asked.context_info.url = "UTC", self._url
        await self._connection.send(message.SerializeToString())

    async def settle(self) -> None:
        """Take what comes until a run has finished that is not followed by another.

        Raises:
            TimeoutError: Nothing has finished for a minute.
        """
        async with asyncio.timeout(ANSWER_SECONDS):
            while not await self.take():
                pass

    async def take(self) -> bool:
        """Take one message. Returns whether it ended a run that the page did not stop in order to run anew.

        Raises:
            AssertionError: The page shows an error.
        """
        came = ForwardMsg.FromString(await self._connection.recv(decode=False))
        kind = came.WhichOneof("type")
        if kind == "new_session":
            self._run, self._redrawn = self._run + 1, frozenset(came.metadata.run.fragment_ids)
        elif kind == "navigation":  # a page of `st.navigation`: the session's own hash is that of app.py
            self._page_hash = came.navigation.page_script_hash
        elif kind == "delta" and came.delta.WhichOneof("type") == "new_element":
            assert _kind(came.delta) != "exception", came.delta.new_element.exception
            self._shown[tuple(came.metadata.delta_path)] = self._run, came.delta
        if kind != "script_finished" or came.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return False
        self._shown = {place: drawn for place, drawn in self._shown.items() if not self._is_stale(*drawn)}
        return True

    def _is_stale(self, run: int, delta: Delta) -> bool:
        """Whether the run that ended left it out: a browser, too, keeps the old screen until then."""
        return run < self._run and (not self._redrawn or delta.fragment_id in self._redrawn)


def _kind(delta: Delta) -> str:
    return str(delta.new_element.WhichOneof("type"))


@asynccontextmanager
async def opened(url: str, page: str = "", *, cookie: str = "") -> AsyncIterator[Tab]:
    """A tab that shows a page of the server, `NAME` or `NAME?QUERY`; the server may still be starting."""
    headers = {"Cookie": cookie} if cookie else {}
    connection = await _connected(url, headers)
    try:
        tab = Tab(connection, url, page)
        await tab.load()
        yield tab
    finally:
        await connection.close()


async def _connected(url: str, headers: dict[str, str]) -> ClientConnection:
    last_moment = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            return await connect(
                f"{url.replace('http', 'ws', 1)}/_stcore/stream",
                origin=url,  # type: ignore[arg-type]
                subprotocols=["streamlit"],  # type: ignore[list-item]
                additional_headers=headers,
                compression=None,  # Streamlit's own is off by default
                ping_interval=None,
                max_size=None,
                max_queue=None,
                proxy=None,
            )
        except OSError:
            if time.monotonic() > last_moment:
                raise
            await asyncio.sleep(0.1)

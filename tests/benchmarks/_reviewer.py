"""A simulated physician at work on Review, in a tab without a browser, with a log of what they did."""

import asyncio
import html
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks._kept import Read, Said
from tests.benchmarks._tab import Tab

SHARE_CHANGED = 0.06
"""So often a reviewer goes back to the criterion before."""
ANSWERS = {"answer_1": "met", "answer_2": "not_met", "answer_3": "cannot_assess"}
WEIGHTS = (50, 40, 10)
BURST, QUIET_SECONDS = 20, 1.5
"""Presses of a burst; and with no message for so long, all that was pressed has been answered."""

_ROW = re.compile(r'<li class="or-row([^"]*)"[^>]*><span class="or-position">(\d+)</span>(.*?)</li>', re.DOTALL)
_WORDS = re.compile(r'<span class="or-words" dir="auto">(.*?)</span>', re.DOTALL)
_LABEL = re.compile(r'class="or-label or-([a-z_]+)"')


@dataclass(frozen=True)
class Row:
    """A line of the list of criteria."""

    position: int
    words: str
    label: str | None
    is_current: bool
    is_decided: bool


def rows(tab: Tab) -> dict[int, Row]:
    """What the list on the right shows, by position."""
    return {
        int(position): Row(
            position=int(position),
            words=html.unescape(found[1]) if (found := _WORDS.search(inner)) else "",
            label=label[1] if (label := _LABEL.search(inner)) else None,
            is_current="or-current" in state,
            is_decided="or-decided" in inner,
        )
        for state, position, inner in _ROW.findall(tab.html('<ol class="or-rows'))
    }


class Reviewer:
    """Somebody at work in a tab, with a log of what they did.

    Attributes:
        reads: What was read, in order.
        times: Milliseconds by kind of press.
        unseen: Presses whose effect the screen did not show.
    """

    def __init__(self, name: str, tab: Tab, *, seed: int, pause: Sequence[float]) -> None:
        self.name = name
        self.tab = tab
        self._pause = pause
        self.reads: list[Read] = []
        self.times: dict[str, list[float]] = defaultdict(list)
        self.unseen: list[str] = []
        self._drawn = random.Random(seed)
        self._open()

    def _open(self) -> None:
        """Note the item that is on the screen now, if one is."""
        if "submit" in self.tab.buttons:
            self.reads.append(Read({row.position: row.words for row in rows(self.tab).values()}))

    async def work(self, until: float) -> None:
        """Press after press until the time is up, or nothing is left."""
        at = time.perf_counter() + self._drawn.uniform(0, max(self._pause))
        while at < until:
            await asyncio.sleep(at - time.perf_counter())
            if not {"submit", "onward"} & set(self.tab.buttons):
                return
            pressed_at = time.perf_counter()
            await (self._decide() if "onward" in self.tab.buttons else self._read())
            at = max(pressed_at + self._drawn.uniform(*self._pause), time.perf_counter())

    async def _press(self, key: str, kind: str) -> None:
        self.times[kind].append(await self.tab.press(key))

    async def _read(self) -> None:
        buttons = self.tab.buttons
        reasons = [key for key in buttons if key.startswith("reason_")]
        if reasons and not any(
            buttons[key].disabled for key in reasons
        ):  # the one that was given cannot be given again
            await self._mark(self._drawn.choice(reasons), "cannot_assess")
        elif self._drawn.random() < SHARE_CHANGED:
            await self._press("back", "move")
        elif buttons["submit"].disabled:
            (key,) = self._drawn.choices(list(ANSWERS), WEIGHTS)
            await self._mark(key, ANSWERS[key])
        elif self._drawn.random() < SHARE_CHANGED:  # all answered, and one more thought
            await self._mark("answer_1", "met")
        else:
            await self._submit()

    async def _mark(self, key: str, label: str) -> None:
        (position,) = (row.position for row in rows(self.tab).values() if row.is_current)
        reason = key.removeprefix("reason_") if key.startswith("reason_") else None
        await self._press(key, "mark")
        now = rows(self.tab).get(position)
        if (
            now
            and now.label == label
            and not (reason and key in self.tab.buttons and not self.tab.buttons[key].disabled)
        ):
            self.reads[-1].marks.append(Said(position, label, reason))
        else:
            self.unseen.append(f"{key} on criterion {position}")

    async def _submit(self) -> None:
        ms = await self.tab.press("submit")
        if "go_on" in self.tab.buttons:
            await self._press("go_on", "judge")
        is_next = "onward" not in self.tab.buttons
        self.times["next" if is_next else "lock"].append(ms)
        if is_next and {row.position: row.words for row in rows(self.tab).values()} == self.reads[-1].words:
            self.unseen.append("submit")
            return
        self.reads[-1].is_submitted = True
        self._open()

    async def _decide(self) -> None:
        if not self.tab.buttons["onward"].disabled:
            await self._press("onward", "next")
            self._open()
            return
        (position,) = (row.position for row in rows(self.tab).values() if row.is_current)
        key = "answer_2" if rows(self.tab)[position].label == "met" else "answer_1"
        await self._press(key, "revision")
        now = rows(self.tab).get(position)
        if now and now.is_decided:
            self.reads[-1].revised.append(position)
        else:
            self.unseen.append(f"{key} on criterion {position}")
        if self.tab.buttons["onward"].disabled:
            await self._press("next", "move")

    async def burst(self, gap: float) -> list[str]:
        """Press met or not met at random every `gap` seconds without waiting. Returns the labels pressed, once all is quiet."""
        pressed = self._drawn.choices(["answer_1", "answer_2"], k=BURST)

        async def press_all() -> None:
            start = time.perf_counter()
            for place, key in enumerate(pressed):
                await asyncio.sleep(start + place * gap - time.perf_counter())
                await self.tab.send(key)

        async def until_quiet() -> None:
            while True:
                try:
                    await asyncio.wait_for(self.tab.take(), QUIET_SECONDS)
                except TimeoutError:
                    if pressing.done():
                        return

        pressing = asyncio.create_task(press_all())
        await until_quiet()
        await pressing
        return [ANSWERS[key] for key in pressed]

"""What prompts are put together from: the texts, the mark that fences data in, and the version.

A text is never searched for places to fill in: what is put in stands between texts, as it is, so that no brace or sign in it means anything.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

from evalcore.errors import RunRefused
from evalcore.study.run_words import ChatRequest
from evalcore.study.schema import Message

FENCE_BYTES = 8
"""64 bits by chance: whoever writes a text cannot hit the mark of a call that is made later."""
TRIES = 3
ROLES = {"user": "the user", "assistant": "the assistant", "system": "the system", "developer": "the system"}
"""Who wrote a turn, in our words: a role of any other name is not repeated, since it is data as well."""
OTHER_ROLE = "somebody else"

_MARK = re.compile(r"[0-9A-Za-z-]{8,64}")


@cache
def words(name: str) -> str:
    """One of the texts, without the line break at its end."""
    return files(__package__).joinpath("texts", f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def joined(*parts: str) -> str:
    """Blocks with an empty line between them."""
    return "\n\n".join(parts)


def new_fence() -> str:
    """A mark for one call, drawn by chance."""
    return secrets.token_hex(FENCE_BYTES)


def safe_fence(fence: str, data: Sequence[str]) -> str:
    """The mark itself where no text holds it, else another one.

    Args:
        fence: 8 to 64 letters, digits and hyphens.
        data: All that will stand between the marks.

    Raises:
        RunRefused: It is no mark, or the others that were drawn are in the texts as well, which does not happen by chance.
    """
    if not _MARK.fullmatch(fence):
        msg = f"fence: expected 8 to 64 letters, digits and hyphens, got {fence[:80]!r}"
        raise RunRefused(msg)
    folded = [text.casefold() for text in data]
    for _ in range(TRIES):
        if not any(fence.casefold() in text for text in folded):
            return fence
        fence = new_fence()
    msg = f"The text holds the mark that should fence it in, {TRIES} times over. It was not sent."
    raise RunRefused(msg)


def part(fence: str, name: str, text: str, note: str = "") -> str:
    """One text between the two lines that open and close it; `note` stands on the first of them and is ours."""
    return f"[{fence}] {name} begins{note}\n{text}\n[{fence}] {name} ends"


def conversation(fence: str, name: str, turns: Sequence[Message]) -> str:
    """A conversation as one part: who wrote a turn stands on a marked line, so that a turn inside a turn is seen to be none."""
    n_turns = len(turns)
    lines = [f"[{fence}] {name} begins: {n_turns} {'turn' if n_turns == 1 else 'turns'}"]
    for number, turn in enumerate(turns, start=1):
        by = ROLES.get(turn.role, OTHER_ROLE)
        lines += [f"[{fence}] turn {number} of {n_turns}, written by {by}", turn.content]
    return "\n".join((*lines, f"[{fence}] {name} ends"))


def question(fence: str, first: str, parts: Sequence[str], last: str) -> str:
    """The message that holds the data: our words before it, which name the mark, and our words after it."""
    return joined(first, f"The mark of this message: {fence}", *parts, last)


EXAMPLES = (
    Message("system", "s"), Message("developer", "d"), Message("user", "u"), Message("assistant", "a"), Message("tool", "t")
)  # fmt: skip
"""Turns of every kind, from which versions are made."""
EXAMPLE_FENCE = "0" * 2 * FENCE_BYTES


def version(name: str, requests: Sequence[ChatRequest]) -> str:
    """The name of a prompt with the first 8 hex digits of the SHA-256 over what it sends for made-up questions of every kind.

    So it changes with every text, the order of the blocks, the roles, the lines around data, and the schema; and with nothing else.
    """
    digest = hashlib.sha256(msgspec.json.encode((name, requests))).hexdigest()
    return f"{name}@{digest[:8]}"

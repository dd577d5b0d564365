"""The texts of an inspect_ai log: turns whose content is a text or a list of parts, and texts that are kept beside them."""

from collections.abc import Sequence

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.healthbench_examples import ROLES, check_roles
from evalcore.importing.formats.inspect_scores import NULL, begins, decoded
from evalcore.importing.formats.wire import shown
from evalcore.study.schema import Message

_ATTACHED = "attachment://"


class Turn(msgspec.Struct):
    """One turn, its content undecoded."""

    role: str
    content: msgspec.Raw = NULL


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""


class Attached:
    """Long texts that a log keeps beside the messages, by name; decoded only when a message refers to one, since most are of events."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._raw = raw
        self._texts: dict[str, str] | None = None

    def resolved(self, text: str) -> str:
        """The text, or the one that it refers to.

        Raises:
            RowFault: There is none.
        """
        if not text.startswith(_ATTACHED):
            return text
        if self._texts is None:
            self._texts = {} if begins(self._raw) == b"n" else decoded(self._raw, dict[str, str])
        name = text.removeprefix(_ATTACHED)
        if name not in self._texts:
            msg = f"attachments: nothing came for {shown(name)}, expected the text that a message refers to"
            raise RowFault(msg)
        return self._texts[name]


def conversation(given: str | list[Turn], attached: Attached) -> tuple[tuple[Message, ...], int]:
    """The turns, and how many of their parts are no text; each of those stands as its kind in square brackets."""
    if isinstance(given, str):
        return (Message("user", attached.resolved(given)),), 0
    found = [(turn.role, *content(turn.content, attached, show_others=True)) for turn in given]
    return tuple(Message(role, text) for role, text, _ in found), sum(n for _, _, n in found)


def content(raw: msgspec.Raw, attached: Attached, *, show_others: bool = False) -> tuple[str, int]:
    """The text of a content, its parts on lines of their own, and how many parts are no text; those are left out unless they are to be shown.

    Raises:
        RowFault: It is neither text nor a list of parts.
    """
    if begins(raw) == b'"':
        return attached.resolved(decoded(raw, str)), 0
    if begins(raw) == b"n":
        return "", 0
    if begins(raw) != b"[":
        msg = f"content: {shown(decoded(raw, object))} came, expected text or a list of parts"
        raise RowFault(msg)
    parts = decoded(raw, list[_Part])
    texts = [part for part in parts if part.type == "text"]
    if not show_others:
        return "\n".join(attached.resolved(part.text) for part in texts), 0
    spoken = [part for part in parts if part.type != "reasoning"]
    lines = [attached.resolved(part.text) if part.type == "text" else f"[{part.type[:40]}]" for part in spoken]
    return "\n".join(lines), len(spoken) - len(texts)


def is_talk(messages: Sequence[Message]) -> bool:
    """Whether this is a conversation that can be shown: known roles, and a turn of the user's."""
    if any(message.role not in ROLES for message in messages) or not messages:
        return False
    try:
        check_roles(list(messages), field="input")
    except RowFault:
        return False
    return True


def is_storable(messages: Sequence[Message]) -> bool:
    """Whether a database can hold it."""
    return all("\x00" not in message.content for message in messages)

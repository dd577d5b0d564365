"""A large file of lines, read by a process of its own: its rows come while those before are written, and whoever reads a page here is not kept waiting."""

import gc
import os
import subprocess
import sys
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Union

import msgspec

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import GivenExample, Graded, Kind, Options, Rows
from evalcore.importing.files.opening import Counts, Opened, Progress, again
from evalcore.importing.responses import GradedRows
from evalcore.settings import started_again

ROWS_AT_ONCE = 500
LENGTH_BYTES = 8  # before each message
_Row = Union[Graded, GivenExample]  # noqa: UP007 - msgspec reads it


class _Said(msgspec.Struct, array_like=True, omit_defaults=True):
    """Some rows, or how it ended."""

    n_bytes: int = 0
    rows: list[tuple[int, list[_Row] | str]] = []  # a text is what is wrong with the row
    is_last: bool = False
    left: Counts = {}
    faults: list[str] = []


def can_be(file: Opened) -> bool:
    """Whether a file is of lines whose rows are graded responses: they can be sent from one process to another."""
    writer = file.format.writer or GradedRows
    is_graded = isinstance(writer, type) and issubclass(writer, GradedRows)
    return file.kind in (Kind.TABLE, Kind.LINES) and is_graded


def rows(file: Opened, options: Options, progress: Progress, left: Counts | None, kept: Path | None) -> Rows:
    """As `Opened.rows`, neighbours made one; the fields that are left unread are told at the end. `kept`: where what is read is kept, for the next time."""
    if kept is not None and kept.exists():
        with kept.open("rb") as before:
            yield from _heard(before, file.name, progress, left)
        return
    asked = {"path": str(file.path), "counts_unread": left is not None, **file.asked(options)}
    command, environment = started_again("-c", f"from {__name__} import answer; answer()")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as reader,  # noqa: S603 - our own program
        nullcontext() if kept is None else open(kept, "xb", opener=partial(os.open, mode=0o600)) as copy,
    ):  # in a session of its own the terminal's Ctrl-C does not reach it: it ends with the rows
        told, answers = reader.stdin, reader.stdout
        assert told is not None and answers is not None  # noqa: S101, PT018 - pipes
        try:
            with suppress(BrokenPipeError):  # it has ended already, which the next line finds out
                told.write(msgspec.msgpack.encode(asked))
                told.close()
            yield from _heard(answers, file.name, progress, left, copy)
        finally:
            reader.kill()


def _heard(
    answers: IO[bytes], name: str, progress: Progress, left: Counts | None, copy: IO[bytes] | None = None
) -> Rows:
    decoder = msgspec.msgpack.Decoder(_Said)
    while True:
        head = answers.read(LENGTH_BYTES)
        n_bytes = int.from_bytes(head, "little")
        content = answers.read(n_bytes)
        if not content or len(content) < n_bytes:
            raise ImportFailed([f"{name}: the process that read it has ended. Import it again."])
        if copy is not None:
            copy.write(head + content)
        said = decoder.decode(content)
        progress(said.n_bytes)
        for number, found in said.rows:
            yield number, RowFault(found) if isinstance(found, str) else found
        if said.faults:
            raise ImportFailed(said.faults)
        if said.is_last:
            if left is not None:
                left.update(said.left)
            return


def answer() -> None:
    """In the other process: read what its standard input asks for, and write the rows to its standard output."""
    gc.disable()  # rows make no circles of objects, and to look for them takes long
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read())
    encoder, said = msgspec.msgpack.Encoder(), _Said()

    def say() -> None:
        content = encoder.encode(said)
        sys.stdout.buffer.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
        said.rows.clear()

    def note(n_bytes: int) -> None:
        said.n_bytes = n_bytes

    counts: Counts | None = {} if asked["counts_unread"] else None
    try:
        file, options = again(Path(asked["path"]), asked)
        for number, found in file.format.gathered(file.rows(options, note, counts)):
            said.rows.append((number, str(found) if isinstance(found, RowFault) else found))
            if len(said.rows) >= ROWS_AT_ONCE:
                say()
    except ImportFailed as failed:
        said.faults = failed.faults
    said.is_last, said.left = True, counts or {}
    say()

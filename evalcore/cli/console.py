"""What the commands share: the options, the study, what is printed and how.

Every command imports it, also one that opens no study: what opens one is imported where it is used.
"""

import getpass
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer import Option

from evalcore.errors import DatabaseFault, OverreadError, refuse
from evalcore.stats.wording import NO_VALUE
from evalcore.study.schema import Administrator, Claim, Physicians, Viewer

if TYPE_CHECKING:
    from evalcore.rubric.data import RubricData
    from evalcore.study.db import Engine

ACTING_AS: ContextVar[str | None] = ContextVar("acting_as", default=None)
"""The person whom `--as` names, while the command runs."""
# A table that goes to a file or another program is not folded to 80 columns.
out, err = (
    Console(stderr=is_err, highlight=False, soft_wrap=True, width=None if stream.isatty() else 200)
    for is_err, stream in ((False, sys.stdout), (True, sys.stderr))
)

DB = "Database URL, or path of a SQLite file. Default: OVERREAD_DB, else overread.db here."
JUDGES = (
    "Whose levels count: FORMAT=JUDGE, or JUDGE for every format that it has read; again for the other format. Where two judges or more read a "
    "format, also its 'majority of the judges'. Default: the parser for qa, else who has read most."
)
CLAIM = "What intervals are to hold for: benchmark or new_examples; default: the stated analysis, else the widest that the reads can carry."
PHYSICIANS = "Whose reading they are to hold for: these or in_general; default: likewise."
Db = Annotated[str | None, Option("--db", help=DB, show_default=False)]
Judges = Annotated[list[str] | None, Option("--judge", help=JUDGES, show_default=False)]
Json = Annotated[bool, Option("--json", help="Print JSON.")]


def chosen(option: str, known: type[StrEnum] | Collection[str], words: str) -> Any:
    """An option that takes one word of those that are known; `words` say what for. Another word is an `OverreadError`."""
    kind = known if isinstance(known, type) else str
    return Option(option, help=words, metavar="<str>", parser=lambda word: kind(one_of(option, word, list(known))))


Claimed = Annotated[Claim | None, chosen("--claim", Claim, CLAIM)]
WhoseReads = Annotated[Physicians | None, chosen("--physicians", Physicians, PHYSICIANS)]


@contextmanager
def study(db: str | None) -> "Iterator[Engine]":
    """The study, opened and brought up to date."""
    from evalcore.settings import settings
    from evalcore.study.acting import opened

    engine = opened(db or settings().db)
    try:
        _finish_import(engine)
        yield engine
    finally:
        engine.dispose()


def rubric_data_of(db: str | None) -> "RubricData":
    """What everybody says of every criterion of the study."""
    from evalcore.rubric.queries import load
    from evalcore.study.db import reading

    with study(db) as engine, reading(engine) as session:
        return load(session)


def _finish_import(engine: "Engine") -> None:
    """Go on with an import that was broken off, which may take as long as the import itself; then the command's own act."""
    from evalcore.study.db import reading
    from evalcore.study.lookups import unfinished_import

    with reading(engine) as session:
        begun = unfinished_import(session)
    if begun is None:
        return
    from evalcore.importing.staging import finish
    from evalcore.study.acting import prepare_search

    try:
        with err.status(f"Finishing the import of {escape(begun.name)}, if it was broken off"):
            if finish(engine) is not None:
                prepare_search(engine)
                err.print(f"{begun.name}, whose import was broken off, is in the study whole now.", markup=False)
    except (OverreadError, DatabaseFault) as error:
        err.print(str(error), markup=False)


def some_of(option: str, said: str, known: Collection[str]) -> list[str]:
    """The words, joined by commas, of an option that takes some of those that are known; else an `OverreadError`."""
    wanted = [word.strip() for word in said.split(",") if word.strip()]
    unknown = sorted(set(wanted) - set(known))
    if unknown or not wanted:
        refuse(f"{option}: expected some of {', '.join(known)}, got {', '.join(unknown) or 'nothing'}")
    return wanted


def one_of(option: str, word: str, known: Collection[str]) -> str:
    """The word of an option that takes one of those that are known; else an `OverreadError`."""
    if word not in known:
        refuse(f"{option}: expected one of {', '.join(known) or 'none: there is nothing yet'}, got {word!r}")
    return word


def actor(engine: "Engine") -> Viewer:
    """Who acts: the person of the study that `--as` or OVERREAD_ACTING_AS names, else the administrator, with the name of the machine's user."""
    from evalcore.settings import settings
    from evalcore.study.contents import people
    from evalcore.study.db import reading

    name, login = ACTING_AS.get() or settings().acting_as, getpass.getuser()
    if not name:
        return Administrator(name=login, by="administrator, command line")
    with reading(engine) as session:
        everybody = people(session)
    for person in everybody:
        if person.name == name:
            return msgspec.structs.replace(person, by=f"command line of {login}")
    msg = f"--as: expected somebody in this study: {', '.join(p.name for p in everybody) or 'nobody is yet'}, got {name!r}"
    raise OverreadError(msg)


def print_json(value: object) -> None:
    """A value as JSON on standard output."""
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY, default=str).decode()
    sys.stdout.write(f"{text}\n")


def say(*sentences: str) -> None:
    """Print sentences as they are, a line each; empty ones are left out."""
    for sentence in filter(None, sentences):
        out.print(sentence, markup=False)


def tell(value: object, *sentences: str, as_json: bool) -> None:
    """Print a value as JSON where that is asked for, else sentences."""
    if as_json:
        print_json(value)
    else:
        say(*sentences)


def grid(columns: Iterable[str], lines: Iterable[Iterable[str]]) -> Table:
    """A table without frames. Its cells may be names from a file: they are not taken for markup."""
    shown = Table(*columns, box=None, padding=(0, 2))
    for cells in lines:
        shown.add_row(*map(escape, cells))
    return shown


def show(columns: Mapping[str, Iterable[Any]]) -> None:
    """Print columns of equal length under their headers: whole numbers with separators, times to the minute, no value as a dash."""

    def cell(value: Any) -> str:
        if isinstance(value, Integral) and not isinstance(value, bool):
            return f"{value:,}"
        if value is None or (isinstance(value, float) and math.isnan(value)) or repr(value) in ("<NA>", "NaT"):
            return NO_VALUE
        return f"{value:%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else str(value)

    cells = (map(cell, column) for column in columns.values())
    out.print(grid(columns, zip(*cells, strict=True)))


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar with rate and time left, where somebody looks; it is told bytes done and in all."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    further = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    shown = (TextColumn("{task.description}"), *further)
    with Progress(*shown, console=err, transient=True, disable=not err.is_terminal) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def content(path: Path) -> bytes:
    """What a file holds; an `OverreadError` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        refuse(f"{path}: cannot be read: {error.strerror or error}")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as `whole` does."""
    with whole(path) as file:
        file.write(content)


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, under a name of its own first, so that a full disk or a refusal leaves no half file under the right one."""
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        refuse(f"{path}: cannot be written: {error.strerror or error}")
    finally:
        with suppress(OSError):  # the folder is none
            unfinished.unlink(missing_ok=True)

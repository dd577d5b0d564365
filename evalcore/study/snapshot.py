"""A columnar snapshot of verdicts and responses: Arrow files beside the database, mapped into memory instead of fetched row by row.

Verdicts are only added, and a response that an act changed is in the ledger of row hashes. So a file holds the rows up to a number as they are stored, for
good, and what came since is read from the database, or from the next file once it is much. What is hidden, renamed or merged (`showing`) is applied when it
is read. A file says which event of the trail was the newest when it was written: it counts where the database holds that event, with as many before it.
A file that is torn, foreign or lost is written anew: nothing is in it that the database does not hold.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlalchemy import Engine, Integer, case, cast, func, select, text
from sqlmodel import Session

from evalcore.settings import settings
from evalcore.study.corrections import showing
from evalcore.study.db import WRITERS_LOCK, DBAPIError, reading
from evalcore.study.frames import ITEM_BASE, is_judge, is_read, numbers, replaced
from evalcore.study.schema import Acuity, Label, Selection, Stage
from evalcore.study.tables import STORED, TABLES

Columns = dict[str, npt.NDArray[Any]]
SAID: tuple[str, ...] = (*Label, *Acuity)
"""The labels by their code."""
SELECTIONS: tuple[str, ...] = tuple(Selection)
STAGES: tuple[str, ...] = tuple(Stage)
_WORDS = np.array([*SAID, None], dtype=object)
_OF_ITEM = ("response_id", "criterion_id", "rater_id", "code")
WORTH = 20_000
"""Rows that are worth a file; fewer are read from the database in a moment."""
_FORMAT = 1
"""To be raised with a migration that changes rows which are here already: files from before are then written anew."""
_BATCH, _FETCHED = 1 << 17, 1 << 13
"""Rows of a batch, whose numbers stay in the processor's cache, and how many are fetched at once: of more, Python looks for garbage in their cells."""
_CHUNK = 500  # bound variables in one statement
_LEFT_SECONDS = 3600
"""How old a file that nobody finished is before it is removed: whoever wrote it was killed."""
_log = logging.getLogger(__name__)


class _Kind(NamedTuple):
    """One sort of files: the table that it is of, its columns with their types, and which rows."""

    table: str
    columns: dict[str, tuple[Any, pa.DataType]]
    where: tuple[Any, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, of) for name, (_, of) in self.columns.items()])


def _kinds() -> dict[str, _Kind]:
    verdict, response = STORED["verdict"].c, STORED["response"].c
    of_verdict: dict[str, tuple[Any, pa.DataType]] = {
        name: (verdict[name], pa.int32()) for name in ("id", "response_id", "rater_id")
    }
    of_verdict["code"] = (_coded(verdict.label, SAID), pa.int8())
    labelled = verdict.label.is_not(None), verdict.response_id.is_not(None)
    said = verdict.stage == Stage.JUDGE, *labelled
    plain = ("id", "example_id", "model_id", "sample_index")
    of_response: dict[str, tuple[Any, pa.DataType]] = {name: (response[name], pa.int32()) for name in plain}
    of_response |= {
        "n_criteria": (func.coalesce(response.n_criteria, -1), pa.int32()),
        "n_chars": (func.length(response.text), pa.int32()),
        "dataset": (response.dataset, pa.string()),
    }
    on_criterion = of_verdict | {"criterion_id": (verdict.criterion_id, pa.int32())}
    of_level = of_verdict | {"confidence": (verdict.confidence, pa.float64())}
    of_read = on_criterion | {
        "example_id": (verdict.example_id, pa.int32()),
        "stage": (_coded(verdict.stage, STAGES), pa.int8()),
        "selection": (_coded(verdict.selection, SELECTIONS), pa.int8()),
        "blinded": (func.coalesce(cast(verdict.blinded, Integer), -1), pa.int8()),
        "inclusion_probability": (verdict.inclusion_probability, pa.float64()),
    }
    return {
        "verdict": _Kind("verdict", on_criterion, (*said, verdict.criterion_id.is_not(None))),
        "level": _Kind("verdict", of_level, (*said, verdict.criterion_id.is_(None))),
        "read": _Kind("verdict", of_read, (is_read(verdict), *labelled, verdict.criterion_id.is_not(None))),
        "response": _Kind("response", of_response),
    }


def _coded(column: Any, words: tuple[str, ...]) -> Any:
    """The place of a column's word; -1: none."""
    return case({word: place for place, word in enumerate(words)}, value=column, else_=-1)


_KINDS = _kinds()


# ---------------------------------------------------------------- what is read


def verdicts(session: Session, kind: str = "verdict") -> Iterator[Columns]:
    """What judges, their older prompts and their repeats say of criteria, as the session shows it; nothing that was taken back or replaced.

    In parts, by number of the verdict: verdict_id, response_id, criterion_id, rater_id, code (of `SAID`). `kind` level: likewise of the level of care that
    responses advise, without criterion_id, with confidence in [0, 1] or NaN; read: what physicians say of criteria, as `reads` has it.
    """
    parts = showing.parts(session.connection())
    gone, off = numbers(session, replaced()), {}
    if hidden := parts & {showing.HIDDEN, showing.WITHDRAWN}:
        gone |= numbers(session, _hidden_rows("verdict", hidden))
        for table in ("response", "criterion"):  # what stands on a hidden row is hidden with it
            on_hidden = select(STORED[table].c.id).where(
                STORED[table].c.example_id.in_(_hidden_rows("example", hidden))
            )
            off[f"{table}_id"] = numbers(session, _hidden_rows(table, hidden)) | numbers(session, on_hidden)
    replacing = np.array(sorted(gone), dtype=np.int64)
    for batch in _batches(session, kind):
        if not len(batch):
            continue
        found = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
        number = found["verdict_id"] = found.pop("id")
        first, last = np.searchsorted(replacing, (number[0], number[-1] + 1))
        shown = [~np.isin(number, replacing[first:last])] if first < last else []
        shown += [~np.isin(found[name], list(rows)) for name, rows in off.items() if rows and name in found]
        if shown:
            kept = np.logical_and.reduce(shown)
            found = {name: column[kept] for name, column in found.items()}
        if showing.MERGED in parts:
            found["rater_id"] = _as_merged(session, "rater", found["rater_id"])
        yield found


def labels_of_raters(session: Session, item_ids: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[Any]]:
    """By number of a judge's prompt, or repeat of it, that has labelled any of these items: its standing label on each; None: none."""
    return {number: _WORDS[codes] for number, codes in _codes_on(session, item_ids).items()}


def _codes_on(session: Session, item_ids: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.int8]]:
    wanted, place = np.unique(item_ids, return_inverse=True)
    is_wanted = np.zeros(2 + int(wanted[-1] // ITEM_BASE if len(wanted) else 0), dtype=bool)
    is_wanted[wanted // ITEM_BASE] = True
    said: dict[int, npt.NDArray[np.int8]] = {}
    for part in verdicts(session) if len(wanted) else ():
        near = np.flatnonzero(is_wanted.take(part["response_id"], mode="clip"))
        responses, criteria, raters, codes = (part[name][near] for name in _OF_ITEM)
        items = responses.astype(np.int64) * ITEM_BASE + criteria
        at = np.searchsorted(wanted, items).clip(max=len(wanted) - 1)
        found = wanted[at] == items
        for number in np.unique(raters[found]).tolist():
            mine = found & (raters == number)
            said.setdefault(number, np.full(len(wanted), -1, dtype=np.int8))[at[mine]] = codes[mine]
    return {number: codes[place] for number, codes in said.items()}


def labels_of_judges(session: Session, item_ids: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """By judge, by name: its standing label on each of these items, of several prompts the newest one's; None: none."""
    rater, said = TABLES["rater"].c, _codes_on(session, item_ids)
    judges = session.connection().execute(select(rater.id, rater.name).where(is_judge()).order_by(rater.id))
    of_name: dict[str, npt.NDArray[np.int8]] = {}
    for number, name in judges:
        before = of_name.get(name, np.full(len(item_ids), -1, dtype=np.int8))
        codes = said.get(number, before)
        of_name[name] = np.where(codes >= 0, codes, before)
    return {name: _WORDS[codes] for name, codes in sorted(of_name.items())}


def n_labels(session: Session) -> tuple[Counter[int], Counter[int]]:
    """How many labels each judge's prompt, or repeat of it, has given, by its number: of criteria, and of levels of care."""
    of_criteria, of_levels = Counter[int](), Counter[int]()
    for kind, n_of in (("verdict", of_criteria), ("level", of_levels)):
        for part in verdicts(session, kind):
            n_of.update(dict(enumerate(np.bincount(part["rater_id"]).tolist())))
    return +of_criteria, +of_levels


def reads(session: Session) -> Columns:
    """What physicians say of criteria, likewise, in one part.

    Beside the columns of `verdicts`: example_id, stage (of `STAGES`), selection (of `SELECTIONS`; -1: none), blinded (1, 0; -1: not known), and
    inclusion_probability (NaN: not known).
    """
    parts = list(verdicts(session, "read"))
    names = ["verdict_id", *(name for name in _KINDS["read"].columns if name != "id")]
    return {
        name: np.concatenate([part[name] for part in parts]) if parts else np.array([], dtype=np.int64)
        for name in names
    }


def responses(session: Session) -> tuple[Columns, list[str]]:
    """The responses that the session shows, by number, and the names of evaluations by the number in `evaluation`.

    id, example_id, model_id, sample_index, n_criteria (-1 where it is not said), n_chars (0: its text is not known), evaluation.
    """
    together = pa.Table.from_batches(_batches(session, "response"), _KINDS["response"].schema)
    coded = together.column("dataset").combine_chunks().dictionary_encode()
    found = {name: together.column(name).to_numpy() for name in together.column_names if name != "dataset"}
    found["evaluation"], names = np.asarray(coded.indices, dtype=np.int64), coded.dictionary.to_pylist()
    parts = showing.parts(session.connection())
    if hidden := parts & {showing.HIDDEN, showing.WITHDRAWN}:
        off = (("id", "response"), ("example_id", "example"))
        gone = [np.isin(found[name], list(numbers(session, _hidden_rows(table, hidden)))) for name, table in off]
        found = {name: column[~np.logical_or(*gone)] for name, column in found.items()}
    if showing.MERGED in parts:
        found["model_id"] = _as_merged(session, "model", found["model_id"])
    if showing.NAMES in parts:
        other = STORED[showing.NAMES].c
        told = select(other.was, other.now).where(other.kind == "evaluation", other.now.is_not(None))
        now = dict(tuple(row) for row in session.connection().execute(told))
        called = [now.get(name, name) for name in names]
        names = sorted(set(called))
        found["evaluation"] = np.array([names.index(name) for name in called], dtype=np.int64)[found["evaluation"]]
    return found, names


def _hidden_rows(table: str, parts: frozenset[str]) -> Any:
    hidden = STORED[showing.HIDDEN].c
    rows = select(hidden.row_id).where(hidden.table_name == table)
    return rows if showing.HIDDEN in parts else rows.where(~hidden.is_broken)


def _as_merged(session: Session, table: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    same = STORED[showing.MERGED].c
    for row in session.connection().execute(select(same.row_id, same.as_id).where(same.table_name == table)):
        column = np.where(column == row.row_id, row.as_id, column)
    return column


def _batches(session: Session, kind: str) -> Iterator[pa.RecordBatch]:
    """All rows of one sort as they are stored: of the files that the session's database vouches for, and what came since."""
    of, engine = _KINDS[kind], session.get_bind().engine
    number = STORED[of.table].c.id
    newest = session.connection().execute(select(func.max(number))).scalar_one() or 0
    files = _files(session, kind)
    if newest - (files[-1].last if files else 0) >= WORTH and folder(engine) is not None:
        extend(engine)
        files = _files(session, kind)
    for file in files:
        yield from (_as_they_are(session, file) if of.table == "response" else file.table).to_batches()
    yield from _walk(session, of, (files[-1].last if files else 0) + 1, newest)


def _as_they_are(session: Session, file: "_File") -> pa.Table:
    """The rows of a file of responses, those that an act has changed since as they are now."""
    changed = sorted(_changed(session, file))
    if not changed:
        return file.table
    of, number = _KINDS["response"], STORED["response"].c.id
    kept = pa.array(~np.isin(file.table.column("id").to_numpy(), changed))
    parts = (changed[start : start + _CHUNK] for start in range(0, len(changed), _CHUNK))
    now = (_fetched(session, of, number.in_(part)) for part in parts)
    return pa.concat_tables([file.table.filter(kept), pa.Table.from_batches(now, of.schema)]).sort_by("id")


def _changed(session: Session, file: "_File") -> frozenset[int]:
    ledger = STORED["row_hash"].c
    since = ledger.id > file.told["ledger"], ledger.table_name == "response"
    return numbers(session, select(ledger.row_id).where(*since, ledger.row_id.between(file.first, file.last)))


def _walk(session: Session, kind: _Kind, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """The rows from one number to another, as the database holds them."""
    number = STORED[kind.table].c.id
    is_far = kind is _KINDS["read"] and last - first >= _BATCH
    place = number + 0 if is_far else number  # + 0: by the index of reads, and no walk over all that judges said
    any_of = select(number).where(*kind.where, place.between(first, last)).limit(1)
    if session.connection().execute(any_of).first() is None:  # no walk for levels that are not there
        return
    if is_far:
        yield _fetched(session, kind, place.between(first, last), place)
    else:
        for start in range(first, last + 1, _BATCH):
            yield _fetched(session, kind, number.between(start, min(start + _BATCH - 1, last)))


def _fetched(session: Session, kind: _Kind, condition: Any, order: Any = None) -> pa.RecordBatch:
    statement = select(*(column.label(name) for name, (column, _) in kind.columns.items()))
    statement = statement.where(*kind.where, condition)
    statement = statement.order_by(STORED[kind.table].c.id if order is None else order)
    cursor = session.connection().execute(statement).cursor  # the driver's: rows of SQLAlchemy take as long again
    parts, types = list[pa.RecordBatch](), list(enumerate(kind.schema.types))
    while rows := cursor.fetchmany(_FETCHED):
        parts.append(pa.record_batch([pa.array([row[place] for row in rows], of) for place, of in types], kind.schema))
    table = pa.Table.from_batches(parts, kind.schema).combine_chunks()
    return table.to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], kind.schema)


# ---------------------------------------------------------------- files


class _File(NamedTuple):
    """A file that is whole: rows `first` to `last`, what it says of itself, and its rows, mapped."""

    path: Path
    first: int
    last: int
    told: dict[str, Any]
    table: pa.Table


def folder(engine: Engine) -> Path | None:
    """Where the files of a study lie: OVERREAD_CACHE, beside a SQLite file, or in the user's cache; None for a database in memory."""
    url = engine.url
    if engine.dialect.name == "sqlite" and (not url.database or url.database == ":memory:"):
        return None
    if settings().cache is None and engine.dialect.name == "sqlite":
        return Path(f"{url.database}.cache")
    users = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = hashlib.sha256(url.render_as_string().encode()).hexdigest()[:16]
    return (settings().cache or Path(users, "overread")) / name


def remove(engine: Engine) -> list[Path]:
    """Delete the files of a study, and their folder. Returns what is gone."""
    place = folder(engine)
    if place is None or not place.is_dir():
        return []
    shutil.rmtree(place)
    return [place]


def extend(engine: Engine) -> None:
    """Write what is new and worth a file, as an import and a run do at their end, and a read that finds much; else nothing. What fails is left to the next."""
    place = folder(engine)
    if place is None:
        return
    try:
        seal = _seal(engine)
        if seal is None or max(seal["verdict"], seal["response"]) < WORTH:
            return
        with reading(engine) as session:
            for kind, of in _KINDS.items():
                _extend(session, kind, place, seal, seal[of.table])
    except (OSError, DBAPIError) as error:  # a disk that is full or read-only, a database that is busy
        _log.info("no snapshot is written in %s: %s", place, error)


def _extend(session: Session, kind: str, place: Path, seal: dict[str, Any], last: int) -> None:
    files = _files(session, kind)
    after = files[-1].last if files else 0
    if last - after < WORTH:
        return
    of = _KINDS[kind]
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    told = seal | {"key": _key(kind), "after": files[-1].path.stem if files else ""}
    schema = of.schema.with_metadata({"overread": json.dumps(told)})
    descriptor, name = tempfile.mkstemp(prefix=".unfinished-", dir=place)
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with pa.ipc.new_file(file, schema) as writer:
                for batch in _walk(session, of, after + 1, last):
                    writer.write_batch(batch)
            file.flush()
            os.fsync(file.fileno())
        digest = _digest(unfinished, 0, 0, 0)
        unfinished.replace(place / f"{kind}-{after + 1}-{last}-{digest}.arrow")
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    counting = {file.path for file in _files(session, kind)}
    old = time.time() - _LEFT_SECONDS
    left = [path for path in place.glob(".unfinished-*") if path.stat().st_mtime < old]
    for path in {*place.glob(f"{kind}-*.arrow")} - counting | set(left):
        path.unlink(missing_ok=True)


def _seal(engine: Engine) -> dict[str, Any] | None:
    """The newest event, how many there are, and the newest row of each table, while nobody else writes; None: somebody does, on PostgreSQL.

    There a number that was taken earlier may be kept later. On SQLite writers stand in line.
    """
    event, ledger = STORED["audit_event"].c, STORED["row_hash"].c
    newest = {name: select(func.max(STORED[name].c.id)).scalar_subquery() for name in ("verdict", "response")}
    newest["ledger"] = select(func.max(ledger.id)).scalar_subquery()
    columns = (func.coalesce(number, 0).label(name) for name, number in newest.items())
    n_events = select(func.count()).select_from(STORED["audit_event"]).scalar_subquery()
    statement = select(event.id.label("event"), event.hash, n_events.label("n_events"), *columns)
    is_postgres = engine.dialect.name == "postgresql"
    how: dict[str, Any] = {"isolation_level": "READ COMMITTED"} if is_postgres else {}
    with engine.execution_options(**how).connect() as connection:
        alone = text("SELECT pg_try_advisory_xact_lock(:key)")
        if is_postgres and not connection.execute(alone, {"key": WRITERS_LOCK}).scalar_one():
            return None
        row = connection.execute(statement.order_by(event.id.desc()).limit(1)).mappings().first()
        return None if row is None else dict(row)


def _files(session: Session, kind: str) -> list[_File]:
    """The files of one sort, one after another, up to the last one that the session's database vouches for."""
    place = folder(session.get_bind().engine)
    following: dict[int, list[tuple[int, Path]]] = {}
    for path in [] if place is None else place.glob(f"{kind}-*.arrow"):
        with suppress(ValueError):
            _, begins, ends, _ = path.stem.split("-")
            following.setdefault(int(begins), []).append((int(ends), path))
    files: list[_File] = []
    while True:
        first, before = (files[-1].last + 1, files[-1].path.stem) if files else (1, "")
        options = (_opened(kind, path, first, last) for last, path in sorted(following.get(first, []), reverse=True))
        file = next((one for one in options if one is not None and one.told["after"] == before), None)
        if file is None:
            break
        files.append(file)
    while files and not _is_vouched_for(session, files[-1]):
        files.pop()
    return files


def _opened(kind: str, path: Path, first: int, last: int) -> _File | None:
    """The file, mapped; None where it is torn, not ours, or of another version."""
    with suppress(OSError, pa.ArrowInvalid, ValueError, KeyError, TypeError):
        at = path.stat()
        if _digest(path, at.st_ino, at.st_size, at.st_mtime_ns) == path.stem.rpartition("-")[2]:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            told = json.loads(table.schema.metadata[b"overread"])
            if told["key"] == _key(kind):
                return _File(path, first, last, told, table.replace_schema_metadata())
    return None


def compute_hashes(engine: Engine) -> None:
    """Compute the hashes of a study's files, which whoever reads them asks for: in a thread beside other work, since hashing lets others run."""
    place = folder(engine)
    for path in [] if place is None else place.glob("*.arrow"):
        with suppress(OSError):
            at = path.stat()
            _digest(path, at.st_ino, at.st_size, at.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest(path: Path, _number: int, _size: int, _changed: int) -> str:
    """SHA-256 of a file, once a process while it stays as it is."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(kind: str) -> str:
    return f"{_FORMAT} {' '.join((*SAID, *STAGES, *SELECTIONS))} {_KINDS[kind].schema.to_string()}"


def _is_vouched_for(session: Session, file: _File) -> bool:
    """Whether the database holds the event that was the newest, and as many before it; and of responses, whether few have changed since."""
    event = STORED["audit_event"].c
    before = select(func.count()).select_from(STORED["audit_event"]).where(event.id <= file.told["event"])
    statement = select(before.scalar_subquery()).where(event.id == file.told["event"], event.hash == file.told["hash"])
    if session.connection().execute(statement).scalar() != file.told["n_events"]:
        return False
    return file.path.name[0] != "r" or len(_changed(session, file)) <= max(WORTH, file.table.num_rows // 10)

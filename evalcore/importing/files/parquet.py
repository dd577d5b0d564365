"""A Parquet file as rows of text cells, as a CSV file gives them; nothing is made of a batch before its cells are measured: few bytes can stand for many."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.files.streams import MAX_ROWS, bound_of, unpacks_to_more
from evalcore.importing.formats.values import cell, is_vote

MAGIC = b"PAR1"
_ROWS = 1_000
_TOGETHER = 1 << 26  # bytes of cells that are held at once, as texts
# the last two: a time that Python's calendar does not have
_UNREADABLE = (pa.ArrowException, OSError, NotImplementedError, ValueError, OverflowError)


@dataclass(frozen=True)
class Table:
    """A file that is open, its bytes, and the bytes that its cells may come to."""

    file: pq.ParquetFile
    size: int
    bound: int


@contextmanager
def table(stream: BinaryIO, name: str) -> Iterator[Table]:
    """The file, opened. Its index stands at its end: one that was packed is unpacked into a file of its own first."""
    with tempfile.TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole)
        size = whole.tell()
        try:
            whole.seek(0)
            schema = pq.read_schema(whole)
            texts = [field.name for field in schema if _is_text(field.type)]
            whole.seek(0)
            opened = pq.ParquetFile(whole, read_dictionary=texts)
        except _UNREADABLE as error:
            raise _damaged(name, error) from error
        yield Table(opened, size, bound_of(stream, size))


def rows(
    table: Table, name: str, *, known: Collection[str], longest: int, progress: Callable[[int], None]
) -> Iterator[tuple[int, dict[str, str] | RowFault]]:
    """Each row's number, from 1, with its cells; or with what is wrong with it. `longest`: bytes that one row may come to.

    `known`: columns that must hold a text, a number or a truth value; they and the columns of votes are read, no others.
    """
    number, left = 0, table.bound
    n_rows = table.file.metadata.num_rows
    columns = [column for column in table.file.schema_arrow.names if column in known or is_vote(column)]
    _check_sizes(table, name, set(columns))
    batches = table.file.iter_batches(batch_size=_ROWS, columns=columns)
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            sizes = _row_sizes(batch)
            if (too_long := sizes > longest).any():
                first = number + int(too_long.argmax()) + 1
                yield first, RowFault(f"expected rows of at most {longest:,} bytes, got a longer one")
                return
            left -= int(sizes.sum())
            if left < 0:
                raise unpacks_to_more(name, table.bound)
            for lines in _in_parts(batch, sizes):
                for line in lines:
                    number += 1
                    try:
                        yield number, {column: cell(column, value, known) for column, value in line.items()}
                    except RowFault as fault:
                        yield number, fault
        except UnicodeDecodeError as error:
            yield number + 1, RowFault(f"a text from here on is no UTF-8: {error.reason}")
            return
        except _UNREADABLE as error:
            raise _damaged(name, error) from error
        progress(table.size * number // max(n_rows, 1))


def n_filled(table: Table, column: str) -> int:
    """In how many rows a column holds something, as far as the file says; else in all."""
    metadata = table.file.metadata
    n_rows = n_empty = 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        n_rows += group.num_rows
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema == column and chunk.statistics is not None and chunk.statistics.has_null_count:
                n_empty += chunk.statistics.null_count
    return n_rows - n_empty


def _check_sizes(table: Table, name: str, columns: set[str]) -> None:
    metadata = table.file.metadata
    if metadata.num_rows > MAX_ROWS:
        raise ImportFailed([f"{name}: expected at most {MAX_ROWS:,} rows, got more"])
    for field in table.file.schema_arrow:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_cell = _is_text(kind) or not (pa.types.is_nested(kind) or str(kind).endswith("_view"))
        if field.name in columns and not is_cell:
            raise ImportFailed([f"{name}: {field.name}: expected text or a number, got {field.type}"])
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    chunks = (group.column(index) for group in groups for index in range(group.num_columns))
    if table.bound < sum(one.total_uncompressed_size for one in chunks if one.path_in_schema.split(".")[0] in columns):
        raise unpacks_to_more(name, table.bound)


def _row_sizes(batch: pa.RecordBatch) -> np.ndarray:
    """Bytes of each row's cells, told by Arrow's offsets; texts of a dictionary counted in each row where they stand."""
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
            lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
        elif _is_text(column.type):
            lengths = pc.binary_length(column)
        else:
            continue  # of a fixed length
        sizes += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    return sizes


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _in_parts(batch: pa.RecordBatch, sizes: np.ndarray) -> Iterator[list[dict[str, Any]]]:
    ends = np.cumsum(sizes)
    start = 0
    while start < batch.num_rows:
        behind = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, behind + _TOGETHER, side="right")), start + 1)
        yield batch.slice(start, end - start).to_pylist()
        start = end


def _damaged(name: str, error: BaseException) -> ImportFailed:
    return ImportFailed([f"{name}: not readable as Parquet: {' '.join(str(error).split())[:200]}"])

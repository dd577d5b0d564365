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
from evalcore.importing.files.streams import MAX_ROWS, bound_of, damaged, unpacks_to_more
from evalcore.importing.formats.values import cell, is_vote

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
    kinds: pa.Schema  # as the file has them


@contextmanager
def table(stream: BinaryIO, name: str) -> Iterator[Table]:
    """The file, opened. Its index stands at its end: one that was packed is unpacked into a file of its own first."""
    with tempfile.TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole)
        size = whole.tell()
        try:
            whole.seek(0)
            plain = pq.ParquetFile(whole)
            leaves, kinds = plain.schema, plain.schema_arrow
            texts = [leaves.column(index).path for index in range(len(leaves))]
            whole.seek(0)
            opened = pq.ParquetFile(whole, read_dictionary=texts)  # those that are texts, however deep
        except _UNREADABLE as error:
            raise damaged(name, "Parquet", error) from error
        yield Table(opened, size, bound_of(stream, size), kinds)


def rows(
    table: Table,
    name: str,
    *,
    known: Collection[str] | None,
    longest: int,
    progress: Callable[[int], None],
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int, dict[str, str] | RowFault]]:
    """Each row's number, from 1, with its cells; or with what is wrong with it. `longest`: bytes that one row may come to.

    `known`: columns that must hold a text, a number or a truth value; they and the columns of votes are read, no others. None: any `columns` are read (None:
    all), lists and objects as JSON.
    """
    number, left = 0, table.bound
    n_rows = table.file.metadata.num_rows
    there = table.file.schema_arrow.names
    if known is not None:
        read = [column for column in there if column in known or is_vote(column)]
    else:
        read = there if columns is None else [column for column in there if column in columns]
    _check_sizes(table, name, set(read), are_flat=known is not None)
    batches = table.file.iter_batches(batch_size=_ROWS, columns=read)
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
                        yield number, {column: cell(column, value, known or ()) for column, value in line.items()}
                    except RowFault as fault:
                        yield number, fault
        except UnicodeDecodeError as error:
            yield number + 1, RowFault(f"a text from here on is not UTF-8: {error.reason}")
            return
        except _UNREADABLE as error:
            raise damaged(name, "Parquet", error) from error
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


def _check_sizes(table: Table, name: str, columns: set[str], *, are_flat: bool) -> None:
    metadata = table.file.metadata
    if metadata.num_rows > MAX_ROWS:
        raise ImportFailed([f"{name}: expected at most {MAX_ROWS:,} rows, got more"])
    for field in table.kinds:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_cell = _is_text(kind) or not ((pa.types.is_nested(kind) and are_flat) or str(kind).endswith("_view"))
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
        sizes += _sizes(column)
    return sizes


def _sizes(column: pa.Array) -> np.ndarray:
    """Bytes of each value: texts by their length, lists and objects by what is in them, anything else a few."""
    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    elif _is_text(column.type):
        lengths = pc.binary_length(column)
    elif pa.types.is_struct(column.type):
        sizes = np.full(len(column), 8)
        for index in range(column.type.num_fields):
            sizes += _sizes(column.field(index))
        return sizes
    elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_map(column.type):
        offsets = column.offsets.to_numpy(zero_copy_only=False)
        items = column.values[offsets[0] : offsets[-1]] if len(offsets) else column.values
        ends = np.concatenate([[0], np.cumsum(_sizes(items) + 8)])
        return np.diff(ends[offsets - offsets[0]]) if len(offsets) else np.zeros(len(column), dtype=np.int64)
    else:
        return np.zeros(len(column), dtype=np.int64)  # of a fixed length
    told: np.ndarray = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return told


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

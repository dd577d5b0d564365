"""A study that was read, one with nothing in it, and a table's rows as a spreadsheet reads them."""

import csv
import io

import pyarrow as pa

from evalcore.export.tables import WRITERS

NOTE = '=HYPERLINK("x")\r\n胸痛 "quoted", \'single\'; 100 %'


def from_csv(content):
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def as_file(table, file_format):
    """A table as a file of a format."""
    file, rows = io.BytesIO(), pa.Table.from_pandas(table, preserve_index=False)
    WRITERS[file_format]([rows], file, rows.schema)
    return file.getvalue()

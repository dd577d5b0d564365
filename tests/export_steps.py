"""A study that was read, one with nothing in it, and a table's rows as a spreadsheet reads them."""

import csv
import io

NOTE = '=HYPERLINK("x")\r\n胸痛 "quoted", \'single\'; 100 %'


def from_csv(content):
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))

"""Imports of small files in parts, as large ones are."""

from contextlib import contextmanager
from unittest import mock

from evalcore.importing import staging
from evalcore.importing.formats import grade_table
from evalcore.importing.responses import GradedRows


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


@contextmanager
def in_parts(batch=1, dies_after=None, halved=60.0):
    """Every file takes too long, and every batch of so many rows is a part; the process may die after some part."""
    left = [dies_after]

    def pause(_seconds):
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

    with (
        mock.patch.multiple(
            staging,
            AT_ONCE_SECONDS=-1.0,
            PART_SECONDS=0.0,
            BATCH_SECONDS=halved,
            PAUSE_SECONDS=0.0,
            PAUSES_SECONDS=1e12,  # others wait all the time
        ),
        mock.patch.object(GradedRows, "batch", batch),
        mock.patch.object(grade_table.TableRows, "batch", batch),
        mock.patch.object(grade_table, "MOST_GATHERED", batch),
        mock.patch.object(staging.time, "sleep", pause),
    ):
        yield

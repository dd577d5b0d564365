"""A log of inspect_ai as a file: `.eval`, a zip with a member a sample, or `.json`, one document."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import msgspec

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.files import zip_members
from evalcore.importing.files.streams import opened, whole_document
from evalcore.importing.files.zip_members import Members
from evalcore.importing.formats import inspect_logs
from evalcore.importing.formats.inspect_logs import Document, Header, Known
from evalcore.importing.formats.inspect_scores import Says
from evalcore.importing.formats.records import Options

HEADER, START = "header.json", "_journal/start.json"
"""The second is all that a log has which was stopped in the middle."""
_SAMPLE = re.compile(r"samples/.+\.json", re.DOTALL)


class LogFile:
    """A log that is read twice: a first look at all samples tells what their scores mean, then each is imported."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    @cached_property
    def known(self) -> Known:
        """What the header and a first look at the samples tell.

        Raises:
            ImportFailed: The log is damaged.
        """
        try:
            return inspect_logs.known_of(self._header, (raw for raw, _ in self.samples()))
        except RowFault as fault:
            self._refuse(fault, fault)

    def samples(self) -> Iterator[tuple[bytes | msgspec.Raw, int]]:
        """Each sample, undecoded, with the bytes of the file that are behind.

        Raises:
            ImportFailed: The log is damaged.
        """
        done = 0
        if not self._is_zip:
            for raw in self._document.samples or ():
                done += len(memoryview(raw))
                yield raw, done
            return
        with opened(self._path, self._name) as stream, zip_members.members(stream, self._name) as members:
            for name in filter(_SAMPLE.fullmatch, members.names):
                done += members.packed_size(name)
                yield members.read(name), done

    def missing(self, options: Options) -> list[str]:
        """Which of `model` and `judge` the log needs, or may need where its levels are of cases of triage, and neither it nor the caller says."""
        known = self.known
        return ["model"] * (not (options.model or known.model)) + ["judge"] * (
            not options.judge and bool(known.lacks_judge)
        )

    def check(self, options: Options) -> None:
        """Whether it is known who answered and whose the verdicts are.

        Raises:
            ImportFailed: It is not.
        """
        known = self.known
        if not (options.model or known.model):
            self._refuse("--model: expected a name, got nothing (the log does not say who answered)")
        if not options.judge and Says.VERDICTS in known.lacks_judge:
            self._refuse("--judge: expected a name, got nothing (the log does not say whose its verdicts are)")

    @cached_property
    def _is_zip(self) -> bool:
        with opened(self._path, self._name) as stream:
            return stream.read(len(zip_members.MAGIC)) == zip_members.MAGIC

    @cached_property
    def _header(self) -> Header:
        if not self._is_zip:
            return self._document
        with opened(self._path, self._name) as stream, zip_members.members(stream, self._name) as members:
            return self._read_header(members)

    def _read_header(self, members: Members) -> Header:
        found = next((name for name in (HEADER, START) if name in members.names), None)
        if found is None:
            msg = f"{self._name}: expected a log of inspect_ai, got a zip without {HEADER} and {START}"
            raise ImportFailed([msg])
        try:
            return inspect_logs.read_header(members.read(found))
        except RowFault as fault:
            self._refuse(f"{found}: {fault}", fault)

    @cached_property
    def _document(self) -> Document:
        with opened(self._path, self._name) as stream:
            data = whole_document(stream, self._name)
        try:
            return inspect_logs.read_document(data)
        except RowFault as fault:
            self._refuse(fault, fault)

    def _refuse(self, fault: RowFault | str, cause: RowFault | None = None) -> NoReturn:
        raise ImportFailed([f"{self._name}: {fault}"]) from cause

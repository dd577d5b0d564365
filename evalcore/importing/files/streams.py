"""A file's content as a stream of bytes, plain or gzip, or as the members of a zip; and how much may be unpacked: few bytes can stand for any number."""

import gzip
import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, NoReturn

from evalcore.errors import ImportFailed
from evalcore.importing.context import shown

BLOCK = 1 << 20
BOM = b"\xef\xbb\xbf"
MAX_UNPACKED = 1 << 34  # bytes of all that is read of one file
MAX_RATIO = 100  # unpacked bytes for each byte of the file; gzip makes a fourth to an eleventh of the files of the demo
FREE = 50_000_000  # so many bytes may come of any file, however small
MAX_DOCUMENT = 1 << 30  # bytes of one JSON document: it is held in memory whole
MAX_ROWS = 10_000_000  # rows or lines of one file, empty ones too
ZIP_MAGIC, PARQUET_MAGIC, OLD_EXCEL = b"PK", b"PAR1", b"\xd0\xcf\x11\xe0"
WORKBOOK = "xl/workbook.xml"  # the member that makes a zip a workbook
MAX_MEMBERS = 1_000_000
MAX_MEMBER = 1 << 29  # bytes of one member, unpacked
_ZSTANDARD = (20, 93)
_LOCAL_HEADER, _LOCAL_MAGIC = struct.Struct("<4s22xHH"), b"PK\x03\x04"
_ENCRYPTED = 0x1
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, NotImplementedError, RuntimeError,
)  # fmt: skip


def most_unpacked(packed: int) -> int:
    """Bytes that a file of so many bytes may unpack to."""
    return min(MAX_UNPACKED, max(FREE, MAX_RATIO * packed))


def unpacks_to_more(name: str, bound: int) -> ImportFailed:
    """The refusal of a file that unpacks to more than `most_unpacked`."""
    expected = f"expected at most that ({MAX_RATIO} bytes for each of the file's, and {MAX_UNPACKED:,})"
    return ImportFailed([f"{name}: it unpacks to more than {bound:,} bytes, {expected}"])


class _Counted(io.RawIOBase):
    def __init__(self, packed: gzip.GzipFile, name: str, bound: int) -> None:
        self._packed, self._name, self.bound, self._given = packed, name, bound, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        block = self._packed.read1(len(buffer))
        self._given += len(block)
        if self._given > self.bound:
            raise unpacks_to_more(self._name, self.bound)
        buffer[: len(block)] = block
        return len(block)


def bound_of(stream: IO[bytes], size: int) -> int:
    """Bytes that may come of a stream of so many bytes: where it was packed, no more than of the file that it came from."""
    raw = getattr(stream, "raw", None)
    return raw.bound if isinstance(raw, _Counted) else most_unpacked(size)


def whole_document(stream: IO[bytes], name: str) -> bytes:
    """All of a stream, without its byte order mark; refused where it is too large to be held in memory."""
    data = bytearray()
    while block := stream.read(BLOCK):
        data += block
        check_document(data, name)
    return bytes(data).removeprefix(BOM)


def check_document(data: bytearray, name: str) -> None:
    """Refuse a document that is too large to be held in memory, by what was read of it so far."""
    if len(data) > MAX_DOCUMENT:
        raise ImportFailed([f"{name}: expected a JSON document of at most {MAX_DOCUMENT:,} bytes, got a longer one"])


@contextmanager
def opened(path: Path, name: str) -> Iterator[BinaryIO]:
    """The content as a stream of bytes, unpacked where it is gzip."""
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if not packed:
                yield plain
                return
            bound = most_unpacked(path.stat().st_size)
            yield io.BufferedReader(_Counted(gzip.GzipFile(fileobj=plain), name, bound), BLOCK)
    except FileNotFoundError as error:
        raise ImportFailed([f"{name}: no such file"]) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ImportFailed([f"{name}: not readable as gzip: {error}"]) from error
    except OSError as error:
        raise ImportFailed([f"{name}: cannot be read: {error.strerror or error}"]) from error


class Members:
    """A zip file that is open, of which at most `bound` bytes are unpacked. Of members with one name the last counts, as for zip programs."""

    def __init__(self, stream: BinaryIO, name: str, bound: int) -> None:
        self._stream, self._name = stream, name
        self._bound = self._left = bound
        try:
            self._zip = zipfile.ZipFile(stream)
        except _DAMAGED as error:
            self._refuse(f"not readable as zip: {_words(error)}", error)
        self.sizes = {info.filename: info.compress_size for info in self._zip.infolist()}  # in the file, as it says
        if len(self._zip.infolist()) > MAX_MEMBERS:
            self._refuse(f"expected a zip of at most {MAX_MEMBERS:,} members, got more")

    def read(self, name: str) -> bytes:
        """A member, unpacked."""
        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            self._refuse(f"expected members without encryption, got {shown(name)}, which is encrypted")
        bound = min(MAX_MEMBER, self._left)
        try:
            if info.compress_type in _ZSTANDARD:
                data = self._unpacked(info, bound)
            elif info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                with self._zip.open(info) as member:
                    data = _bounded(member, bound)
            else:
                self._refuse(
                    f"expected members packed by deflate or zstandard, got {shown(name)} by method {info.compress_type}"
                )
        except _DAMAGED as error:
            self._refuse(f"{shown(name)} is damaged: {_words(error)}", error)
        if len(data) > self._left:
            raise unpacks_to_more(self._name, self._bound)
        if len(data) > bound:
            self._refuse(f"{shown(name)}: expected at most {bound:,} bytes unpacked, got more")
        self._left -= len(data)
        return data

    def _unpacked(self, info: zipfile.ZipInfo, bound: int) -> bytes:
        self._stream.seek(info.header_offset)
        magic, n_name, n_extra = _LOCAL_HEADER.unpack(self._stream.read(_LOCAL_HEADER.size))
        if magic != _LOCAL_MAGIC:
            msg = "no member stands where the list says"
            raise zipfile.BadZipFile(msg)
        self._stream.seek(n_name + n_extra, 1)
        packed = self._stream.read(info.compress_size)
        if len(packed) < info.compress_size:
            msg = "the file ends within it"
            raise EOFError(msg)
        if not packed:
            return b""
        import pyarrow as pa  # noqa: PLC0415 - which most files do without

        try:
            with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as frames:
                data = _bounded(frames, bound)
        except pa.ArrowException as error:
            raise zipfile.BadZipFile(_words(error)) from error
        if len(data) <= bound and zlib.crc32(data) != info.CRC:
            msg = "its content is not what its checksum says"
            raise zipfile.BadZipFile(msg)
        return data

    def _refuse(self, sentence: str, cause: BaseException | None = None) -> NoReturn:
        raise ImportFailed([f"{self._name}: {sentence}"]) from cause


@contextmanager
def seekable(stream: BinaryIO) -> Iterator[tuple[BinaryIO, int]]:
    """The stream, one that was packed once more in a file of its own; and the bytes that it may unpack to."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        yield stream, bound_of(stream, stream.seek(0, io.SEEK_END))
        return
    with TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole, BLOCK)
        yield whole, bound_of(stream, 0)


def is_workbook(stream: BinaryIO) -> bool:
    """Whether a zip is a workbook."""
    try:
        with seekable(stream) as (whole, _):
            return WORKBOOK in zipfile.ZipFile(whole).namelist()
    except (*_DAMAGED, KeyError, TypeError, IndexError, AttributeError, SyntaxError):
        return False


@contextmanager
def members_of(stream: BinaryIO, name: str) -> Iterator[Members]:
    """The members of a stream; their list stands at its end."""
    with seekable(stream) as (whole, bound):
        yield Members(whole, name, bound)


def _bounded(stream: Any, bound: int) -> bytes:
    data = bytearray()
    while len(data) <= bound and (block := stream.read(BLOCK)):
        data += block
    return bytes(data)


def damaged(name: str, kind: str, error: BaseException) -> ImportFailed:
    """The refusal of a file whose reader gave up."""
    return ImportFailed([f"{name}: not readable as {kind}: {_words(error)}"])


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__

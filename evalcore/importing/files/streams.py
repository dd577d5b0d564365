"""A file's content as a stream of bytes, plain or gzip, and how much a file may unpack to: a few bytes can stand for any number of them."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from evalcore.errors import ImportFailed

BLOCK = 1 << 20
BOM = b"\xef\xbb\xbf"
MAX_UNPACKED = 1 << 34  # bytes of all that is read of one file
MAX_RATIO = 100  # unpacked bytes for each byte of the file; gzip makes a fourth to an eleventh of the files of the demo
FREE = 50_000_000  # so many bytes may come of any file, however small
MAX_DOCUMENT = 1 << 30  # bytes of one JSON document: it is held in memory whole
MAX_ROWS = 10_000_000  # rows or lines of one file, empty ones too


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

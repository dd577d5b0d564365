"""The members of a zip file, unpacked one at a time within bounds; zstandard too, which Python's own module does not read before 3.14."""

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, BinaryIO, NoReturn

import pyarrow as pa

from evalcore.errors import ImportFailed
from evalcore.importing.files.streams import bound_of, unpacks_to_more
from evalcore.importing.formats.values import shown

MAGIC = b"PK"
MAX_MEMBERS = 1_000_000
MAX_MEMBER = 1 << 29  # bytes of one member, unpacked
_ZSTANDARD = (20, 93)
_LOCAL_HEADER, _LOCAL_MAGIC = struct.Struct("<4s22xHH"), b"PK\x03\x04"
_ENCRYPTED = 0x1
_BLOCK = 1 << 20
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, NotImplementedError, RuntimeError, pa.ArrowException,
)  # fmt: skip


class Members:
    """A zip file that is open. Of members with one name the last counts, as for zip programs."""

    def __init__(self, stream: BinaryIO, name: str, bound: int) -> None:
        """Read the list of members, of which no more than `bound` bytes are unpacked."""
        self._stream, self._name = stream, name
        self._bound = self._left = bound
        try:
            self._zip = zipfile.ZipFile(stream)
        except _DAMAGED as error:
            self._refuse(f"not readable as zip: {_words(error)}", error)
        self.sizes = {info.filename: info.compress_size for info in self._zip.infolist()}
        """Bytes that each member takes in the file, as the file says."""
        if len(self._zip.infolist()) > MAX_MEMBERS:
            self._refuse(f"expected a zip of at most {MAX_MEMBERS:,} members, got more")

    def read(self, name: str) -> bytes:
        """A member, unpacked."""
        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            self._refuse(f"{shown(name)} is encrypted, expected members that are not")
        bound = min(MAX_MEMBER, self._left)
        try:
            if info.compress_type in _ZSTANDARD:
                data = self._unpacked(info, bound)
            elif info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                with self._zip.open(info) as member:
                    data = _bounded(member, bound)
            else:
                self._refuse(f"{shown(name)} is packed by method {info.compress_type}, expected deflate or zstandard")
        except _DAMAGED as error:
            self._refuse(f"{shown(name)} is damaged: {_words(error)}", error)
        if len(data) > self._left:
            raise unpacks_to_more(self._name, self._bound)
        if len(data) > bound:
            self._refuse(f"{shown(name)} unpacks to more than {bound:,} bytes, expected at most that")
        self._left -= len(data)
        return data

    def _unpacked(self, info: zipfile.ZipInfo, bound: int) -> bytes:
        """A member packed with zstandard, in one frame or several."""
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
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as frames:
            data = _bounded(frames, bound)
        if len(data) <= bound and zlib.crc32(data) != info.CRC:
            msg = "its content is not what its checksum says"
            raise zipfile.BadZipFile(msg)
        return data

    def _refuse(self, sentence: str, cause: BaseException | None = None) -> NoReturn:
        raise ImportFailed([f"{self._name}: {sentence}"]) from cause


@contextmanager
def members(stream: BinaryIO, name: str) -> Iterator[Members]:
    """The members of a stream. Their list stands at its end: a stream that was packed once more is unpacked into a file of its own first."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        yield Members(stream, name, bound_of(stream, stream.seek(0, io.SEEK_END)))
        return
    with TemporaryFile() as whole:
        shutil.copyfileobj(stream, whole, _BLOCK)
        yield Members(whole, name, bound_of(stream, 0))


def _bounded(stream: "IO[bytes] | pa.NativeFile", bound: int) -> bytes:
    """All of a stream, or a little more than the bound."""
    data = bytearray()
    while len(data) <= bound and (block := stream.read(_BLOCK)):
        data += block
    return bytes(data)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__

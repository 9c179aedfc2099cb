"""Zip archives written by hand, so that they can lie about what they hold."""

from __future__ import annotations

import functools
import io
import struct
import zipfile
import zlib
from dataclasses import dataclass, field

STORED, DEFLATED = 0, 8
_MEGABYTE = bytes(2**20)


@dataclass
class Member:
    """A file of an archive; what is None is computed from the data."""

    name: str
    data: bytes = field(repr=False)
    method: int = DEFLATED
    compressed: bytes | None = None
    crc: int | None = None
    size: int | None = None
    compressed_size: int | None = None
    flags: int = 0
    attributes: int = 0


def unzip(data: bytes) -> list[Member]:
    """Read an archive that is as it should be."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [Member(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]


def zipped(members: list[Member]) -> bytes:
    """Write an archive."""
    body, directory = b"", b""
    for member in members:
        content = _compressed(member)
        name = member.name.encode("utf-8", "surrogatepass")[:65535]
        common = struct.pack(
            "<HHHHHIIIHH",
            20,
            member.flags,
            member.method,
            0,
            33,  # the first of January 1980, always
            zlib.crc32(member.data) if member.crc is None else member.crc,
            (len(content) if member.compressed_size is None else member.compressed_size) % 2**32,
            (len(member.data) if member.size is None else member.size) % 2**32,
            len(name),
            0,
        )
        directory += struct.pack("<IH", 0x02014B50, 0x0314) + common
        directory += struct.pack("<HHHII", 0, 0, 0, member.attributes, len(body)) + name
        body += struct.pack("<I", 0x04034B50) + common + name + content
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + end


def _compressed(member: Member) -> bytes:
    if member.compressed is not None:
        return member.compressed
    if member.method != DEFLATED:
        return member.data
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    return deflate.compress(member.data) + deflate.flush()


def bomb(name: str, beginning: bytes, n_megabytes: int) -> Member:
    """Return a small member that is megabytes of zeros behind ``beginning``."""
    compressed, crc, _ = deflated_zeros(beginning, n_megabytes)
    return Member(name, b"", compressed=compressed, crc=crc, size=len(beginning) + n_megabytes * 2**20)


@functools.lru_cache(maxsize=32)
def deflated_zeros(beginning: bytes, n_megabytes: int) -> tuple[bytes, int, int]:
    """Return ``beginning`` and megabytes of zeros as a raw deflate stream, their CRC-32 and their Adler-32."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    stream = deflate.compress(beginning) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(_MEGABYTE) + deflate.flush(zlib.Z_FULL_FLUSH)
    crc, adler = zlib.crc32(beginning), zlib.adler32(beginning)
    for _ in range(n_megabytes):
        crc, adler = zlib.crc32(_MEGABYTE, crc), zlib.adler32(_MEGABYTE, adler)
    return stream + block * n_megabytes + deflate.flush(), crc, adler

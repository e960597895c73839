"""Logos as customers upload them."""

import struct
import zlib

SHAPE = '<path d="M1 2h3v4z" fill="#123456"/>'


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int = 4, height: int = 2, *more: bytes, data: bytes | None = None) -> bytes:
    pixels = zlib.compress((b"\0" + b"\x7f" * 4 * width) * height) if data is None else data
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = [chunk(b"IHDR", header), *more, chunk(b"IDAT", pixels), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def svg(inside: str = SHAPE, attributes: str = 'viewBox="0 0 40 20"') -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'.encode()

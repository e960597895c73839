"""Checks uploaded logos, and writes them anew from what is known to be harmless."""

import re
import struct
import zlib
from dataclasses import dataclass
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from msgsvc_core.kernel.errors import ValidationFailed

#: Largest side of a PNG in pixels: a logo is shown 48 pixels high, on screens of up to three to one.
MAX_SIDE = 1024

#: The largest aspect ratio of a logo, in either direction.
MAX_RATIO = 10

#: Bounds of a drawing, which browsers draw anew for every visitor.
MAX_ELEMENTS, MAX_DEPTH = 2000, 24

PNG, SVG = "image/png", "image/svg+xml"

_SIGNATURE = b"\x89PNG\r\n\x1a\n"

#: What is kept of a PNG: the picture and its colours. Texts, times, places and animations go.
_KEPT_CHUNKS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"sRGB", b"IDAT", b"IEND"})

#: Samples of a pixel by colour type (PNG, section 11.2.1).
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}

_NAMESPACE = "{http://www.w3.org/2000/svg}"

_SHAPES = frozenset({"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"})
_ELEMENTS = _SHAPES | {
    "svg", "g", "defs", "linearGradient", "radialGradient", "stop", "clipPath", "mask",
}  # fmt: skip
#: Dropped with what they hold: they draw nothing.
_SILENT = frozenset({"title", "desc", "metadata"})

_ATTRIBUTES = frozenset({
    "viewBox", "width", "height", "preserveAspectRatio", "x", "y", "x1", "y1", "x2", "y2", "cx",
    "cy", "r", "rx", "ry", "fx", "fy", "d", "points", "transform", "gradientTransform",
    "gradientUnits", "spreadMethod", "offset", "clipPathUnits", "maskUnits", "maskContentUnits",
    "id", "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "stroke-dasharray",
    "stroke-dashoffset", "opacity", "clip-path", "clip-rule", "mask", "stop-color",
    "stop-opacity", "color", "vector-effect",
})  # fmt: skip

#: Numbers, names and colours: no value needs quotes, markup or a colon.
_VALUE = re.compile(r"[\w\s#%.,()+\-/]*", re.ASCII)
_LOCAL = re.compile(r"url\(#[\w.-]+\)", re.ASCII)
_NUMBER = re.compile(r"\s*(\d{1,6}(?:\.\d{1,6})?)(?:px)?\s*", re.ASCII)


class LogoRefused(ValidationFailed):
    """The file can't be shown as a logo."""


@dataclass(frozen=True, slots=True)
class CheckedLogo:
    """A logo that is safe to serve, and its size in CSS pixels."""

    media_type: str
    content: bytes
    width: int
    height: int


def check_logo(content: bytes, *, max_bytes: int) -> CheckedLogo:
    """The logo, written anew. Raises `LogoRefused` with the reason for what is no PNG or SVG, larger than
    `max_bytes`, or holds what could run."""
    if len(content) > max_bytes:
        raise LogoRefused("must be at most {limit} bytes", field="logo", limit=max_bytes)
    checked = _png(content) if content.startswith(_SIGNATURE) else _svg(content)
    if max(checked.width, checked.height) > MAX_RATIO * min(checked.width, checked.height):
        raise LogoRefused(
            "must not be more than {limit} times as wide as high", field="logo", limit=MAX_RATIO
        )
    return checked


def _png(content: bytes) -> CheckedLogo:
    kept, data, at, header = [_SIGNATURE], [], len(_SIGNATURE), b""
    while True:
        if at + 12 > len(content):
            raise LogoRefused("is no complete PNG", field="logo")
        length, kind = struct.unpack_from(">I4s", content, at)
        body, end = content[at + 8 : at + 8 + length], at + 12 + length
        if end > len(content) or content[end - 4 : end] != zlib.crc32(kind + body).to_bytes(4):
            raise LogoRefused("is no complete PNG", field="logo")
        if (kind == b"IHDR") != (at == len(_SIGNATURE)):
            raise LogoRefused("is no complete PNG", field="logo")
        if kind in _KEPT_CHUNKS:
            kept.append(content[at:end])
        elif not kind[0] & 0x20:
            raise LogoRefused("holds an unknown part", field="logo")
        header = body if kind == b"IHDR" else header
        if kind == b"IDAT":
            data.append(body)
        if kind == b"IEND":
            break
        at = end
    width, height = _checked_pixels(header, b"".join(data))
    return CheckedLogo(PNG, b"".join(kept), width, height)


def _checked_pixels(header: bytes, data: bytes) -> tuple[int, int]:
    """Width and height, if the data is as long as they say: a short file could otherwise fill memory."""
    if len(header) != 13:
        raise LogoRefused("is no complete PNG", field="logo")
    width, height, depth, colour = struct.unpack_from(">IIBB", header)
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise LogoRefused(
            "must be at most {limit} pixels wide and high", field="logo", limit=MAX_SIDE
        )
    row = (width * depth * _SAMPLES.get(colour, 0) + 7) // 8 + 1
    # Interlaced pictures have up to seven rows for one, which are shorter.
    limit = row * height + 8 * (height + 8)
    try:
        reader = zlib.decompressobj()
        pixels = reader.decompress(data, limit + 1)
    except zlib.error:
        raise LogoRefused("is no complete PNG", field="logo") from None
    if colour not in _SAMPLES or not reader.eof or len(pixels) < row - 1:
        raise LogoRefused("is no complete PNG", field="logo")
    return int(width), int(height)


class _NoDoctype(ET.TreeBuilder):
    """Entities, which could grow without end, need a document type."""

    def doctype(self, *_: object) -> None:
        raise LogoRefused("must be a PNG, or an SVG without a document type", field="logo")


def _svg(content: bytes) -> CheckedLogo:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LogoRefused("must be a PNG or an SVG in UTF-8", field="logo") from None
    if re.search(r"<!(?!--)", text):
        raise LogoRefused("must be a PNG, or an SVG without a document type", field="logo")
    try:
        parser = ET.XMLParser(target=_NoDoctype())  # noqa: S314 - no document type, so no entity
        parser.feed(text)
        root = parser.close()
    except (ET.ParseError, ValueError):
        raise LogoRefused("must be a PNG or an SVG", field="logo") from None
    if root.tag != f"{_NAMESPACE}svg":
        raise LogoRefused("must be a PNG or an SVG", field="logo")
    width, height = _size(root)
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS:
        raise LogoRefused("must have at most {limit} shapes", field="logo", limit=MAX_ELEMENTS)
    drawing = _rewritten(root, 0, f' xmlns="{_NAMESPACE[1:-1]}"')
    return CheckedLogo(SVG, drawing.encode(), width, height)


def _size(root: ET.Element) -> tuple[int, int]:
    sides = [_NUMBER.fullmatch(root.get(name, "")) for name in ("width", "height")]
    box = re.split(r"[\s,]+", root.get("viewBox", "").strip())
    numbers = [float(side[1]) for side in sides if side is not None]
    if len(numbers) < 2:
        numbers = [float(side[1]) for side in map(_NUMBER.fullmatch, box[2:4]) if side is not None]
    if len(numbers) < 2 or min(numbers) <= 0:
        raise LogoRefused("needs a width and a height, or a viewBox", field="logo")
    # Shown at most 48 pixels high: only their ratio is of interest.
    scale = 1000 / max(numbers)
    return max(1, round(numbers[0] * scale)), max(1, round(numbers[1] * scale))


def _rewritten(element: ET.Element, depth: int, more: str = "") -> str:
    if depth > MAX_DEPTH:
        raise LogoRefused("is nested too deeply", field="logo")
    name = str(element.tag)
    if not name.startswith(_NAMESPACE):
        # Notes of a drawing program.
        return ""
    name = name.removeprefix(_NAMESPACE)
    if name in _SILENT:
        return ""
    if name not in _ELEMENTS:
        raise LogoRefused(
            "holds <{element}>: only shapes and gradients with attributes are shown",
            field="logo",
            element=name,
        )
    written = "".join(_attribute(key, value) for key, value in element.items())
    inner = "".join(_rewritten(child, depth + 1) for child in element)
    return f"<{name}{more}{written}>{inner}</{name}>"


def _attribute(name: str, value: str) -> str:
    if name.lower().startswith("on"):
        raise LogoRefused(
            "holds {attribute}, which could run a script", field="logo", attribute=name
        )
    if name == "style":
        raise LogoRefused(
            "holds a style attribute: export it with presentation attributes", field="logo"
        )
    if name not in _ATTRIBUTES:
        return ""
    if not _VALUE.fullmatch(value) or ("url" in value.lower() and not _LOCAL.fullmatch(value)):
        raise LogoRefused(
            "holds {attribute} with a value that is not shown", field="logo", attribute=name
        )
    return f" {name}={quoteattr(value)}"

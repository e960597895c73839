"""Colours that are read in both schemes, and logos in which nothing runs."""

import zlib
from itertools import product
from xml.etree import ElementTree as ET

import pytest

from msgsvc_core.kernel.colours import contrast, parse
from msgsvc_core.pages import SHARED
from msgsvc_core.projects.branding import LogoRefused, Shades, check_logo, colours, shades_of
from msgsvc_core.projects.branding.logos import MAX_DEPTH, MAX_ELEMENTS, MAX_SIDE, PNG, SVG
from tests.logos import SHAPE, chunk, png, svg
from tests.payloads import PAYLOADS

#: Every mixture of six steps of red, green and blue: 216 colours, among them the extremes.
COLOURS = [
    f"#{r:02x}{g:02x}{b:02x}" for r, g, b in product((0, 0x33, 0x66, 0x99, 0xCC, 255), repeat=3)
]


def checked(content: bytes) -> str:
    return check_logo(content, max_bytes=65536).content.decode()


def elements(drawing: str) -> list[ET.Element]:
    return list(ET.fromstring(drawing).iter())  # noqa: S314 - written by the code under test


def apart(one: str, other: str) -> float:
    return contrast(parse(one), parse(other))


def test_any_accent_is_read_in_both_schemes() -> None:
    assert [colour for colour in COLOURS if not is_read(shades_of(colour))] == []


def is_read(shades: Shades) -> bool:
    """Whether both schemes have the contrast that WCAG 2.2 asks for: 4.5 for text, 3 for the rest."""
    light, dark = ("#ffffff", "#f6f7f6", "#eef0ee"), ("#151a18", "#0d1110", "#1f2624")
    schemes = (shades.light, light, "#18201c"), (shades.dark, dark, "#e8ecea")
    return all(
        apart(scheme.on_accent, scheme.accent) >= 4.5
        and apart(scheme.on_accent, scheme.accent_strong) >= 4.5
        and apart(text, scheme.tint) >= 4.5
        and all(apart(scheme.accent, each) >= 3 for each in surfaces)
        and all(apart(scheme.link, each) >= 4.5 for each in (*surfaces, scheme.tint))
        for scheme, surfaces, text in schemes
    )


def test_a_colour_that_is_read_as_it_is_stays() -> None:
    assert shades_of("#7b2fbe").light.accent == "#7b2fbe"
    assert shades_of("#7b2fbe").dark.accent != "#7b2fbe"


def test_the_surfaces_are_those_of_the_tokens() -> None:
    tokens = (SHARED / "tokens.css").read_text("utf-8")
    for name in ("ground", "sunk", "surface"):
        light = tokens.split(f"--{name}: light-dark(")[1].split(",")[0]
        assert parse(light) in colours._LIGHT_SURFACES
    for name in ("ground", "surface", "hover"):
        dark = tokens.split(f"--{name}: light-dark(")[1].split(", ")[1].split(")")[0]
        assert parse(dark) in colours._DARK_SURFACES
    assert f"--accent: light-dark({colours.DEFAULT_ACCENT}," in tokens


def test_a_png_keeps_its_picture_and_loses_everything_else() -> None:
    text = chunk(b"tEXt", b"Comment\0<script>alert(1)</script>")
    logo = check_logo(png(4, 2, text) + b"<script>alert(1)</script>", max_bytes=65536)

    assert (logo.media_type, logo.width, logo.height) == (PNG, 4, 2)
    assert logo.content == png(4, 2)


@pytest.mark.parametrize(
    "content",
    [
        png()[:-3],
        png().replace(b"IDAT", b"IDAX"),
        png(MAX_SIDE + 1, 200),
        png(0, 0),
        png(4, 2, data=zlib.compress(b"\0" * 10_000_000)),
        png(4, 2, data=b"no deflate"),
        png(200, 2),
        b"GIF89a" + b"\0" * 40,
        b"\xff\xd8\xff\xe0" + b"\0" * 40,
        b"",
        png() + b"\0" * 70_000,
    ],
    ids=lambda content: f"{content[:12]!r}-{len(content)}",
)
def test_what_is_no_proper_picture_is_refused(content: bytes) -> None:
    with pytest.raises(LogoRefused):
        check_logo(content, max_bytes=65536)


def test_an_svg_keeps_its_shapes() -> None:
    gradient = '<linearGradient id="g"><stop offset="0" stop-color="#fff"/></linearGradient>'
    drawing = svg(f'<defs>{gradient}</defs><g fill="url(#g)" transform="scale(2)">{SHAPE}</g>')
    logo = check_logo(drawing, max_bytes=65536)

    assert logo.media_type == SVG
    assert (logo.width, logo.height) == (1000, 500)
    assert [element.tag.split("}")[1] for element in elements(logo.content.decode())] == [
        "svg", "defs", "linearGradient", "stop", "g", "path",
    ]  # fmt: skip
    assert 'fill="url(#g)"' in logo.content.decode()


def test_notes_of_drawing_programs_are_dropped() -> None:
    noted = svg(
        f"<title>x</title><desc><b/></desc><metadata><i/></metadata><ink:x/>{SHAPE}<!-- note -->",
        'viewBox="0 0 4 4" xmlns:ink="urn:ink" ink:version="1" class="a" data-x="y" xml:space="default"',
    )

    assert checked(noted) == svg(SHAPE, 'viewBox="0 0 4 4"').decode().replace("/>", "></path>")


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<script href="//evil.example/x.js"/>',
        '<path onload="alert(1)"/>',
        '<path ONCLICK="alert(1)"/>',
        "<style>*{background:url(//evil.example)}</style>",
        '<path style="fill:url(//evil.example)"/>',
        '<path fill="url(//evil.example/x)"/>',
        '<path fill="URL(javascript:alert(1))"/>',
        '<path fill="red;}body{display:none"/>',
        '<path fill="&quot;&gt;&lt;script&gt;"/>',
        '<a href="javascript:alert(1)"><path/></a>',
        '<image href="//evil.example/x.png"/>',
        '<use href="#a"/>',
        "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'/></foreignObject>",
        '<animate attributeName="href" values="javascript:alert(1)"/>',
        '<set attributeName="onload" to="alert(1)"/>',
        '<iframe src="//evil.example"/>',
        "<text>words</text>",
        "<g>" * (MAX_DEPTH + 1) + "</g>" * (MAX_DEPTH + 1),
        "<g/>" * MAX_ELEMENTS,
    ],
)
def test_an_svg_with_what_could_run_is_refused(inside: str) -> None:
    with pytest.raises(LogoRefused):
        checked(svg(inside))


@pytest.mark.parametrize(
    "content",
    [
        b'<!DOCTYPE svg [<!ENTITY a "b">]>' + svg("&a;"),
        b'<?xml version="1.0" encoding="utf-16"?>' + svg().decode().encode("utf-16"),
        b'<svg viewBox="0 0 4 4"/>',
        b'<html xmlns="http://www.w3.org/1999/xhtml"/>',
        svg(SHAPE, ""),
        svg(SHAPE, 'viewBox="0 0 0 4"'),
        svg(SHAPE, 'width="nan" height="4"'),
        svg("<path"),
        b"\xff\xfe<",
    ],
)
def test_what_is_no_plain_svg_is_refused(content: bytes) -> None:
    with pytest.raises(LogoRefused):
        checked(content)


@pytest.mark.parametrize("text", PAYLOADS)
def test_no_payload_survives_in_a_logo(text: str) -> None:
    for content in (
        text.encode(errors="surrogatepass"),
        svg(text),
        svg(f"<path d={ET.tostring(ET.Element('x', y=text.replace(chr(0), '')))[5:-3].decode()}/>"),
    ):
        try:
            shown = checked(content)
        except LogoRefused:
            continue
        names = {element.tag.split("}")[1] for element in elements(shown)}
        assert names <= {"svg", "path"}
        assert not any(mark in shown.lower() for mark in ("script", "alert", "javascript", "url("))

"""Compares pictures with those that were accepted, and reports what differs."""

import json
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageChops, ImageOps

from msgsvc_devkit.machine import chromium
from tests.e2e.windows import ROOT

ACCEPTED = Path(__file__).parent / "accepted"
RECORD = ACCEPTED / "record.json"

#: How the machine on which pictures were accepted draws letters and lines.
PROBE = ACCEPTED / "probe.webp"

#: What differs: expected, actual and diff of each, and one page with all.
REPORT = ROOT / "build" / "pictures"

#: Bits of a colour's part that are kept. With half the size, a picture takes 13 kB; what moves by two pixels
#: is still found.
BITS = 6

#: The least difference of a part of a colour that counts, of 255: more than one step of `BITS`.
LEAST_STEP = 2 ** (8 - BITS) + 1

#: Pixels that may differ: a browser of one version draws alike, but the order of its work may round a
#: corner otherwise.
MOST_PIXELS = 8


class Drawn(NamedTuple):
    """What pictures depend on besides the pages: Chromium's major version, and the fonts that it draws texts
    and code with."""

    chromium: str
    font: str
    mono: str

    def __str__(self) -> str:
        return f"Chromium {self.chromium}, {self.font} and {self.mono}"


def drawn_here() -> Drawn:
    program = chromium()
    assert program, "there is no Chromium"
    said = _output(program, "--version")
    number = next(word for word in said.split() if word[:1].isdigit())
    # Of the families in our style sheets, the first that machines with Chromium may have.
    font, mono = (
        _output("fc-match", "--format=%{family}", family)
        for family in ("system-ui", "Liberation Mono")
    )
    return Drawn(number.partition(".")[0], font, mono)


def drawn_there() -> Drawn | None:
    """What the accepted pictures were drawn with; None if there are none."""
    return Drawn(**json.loads(RECORD.read_text("utf-8"))) if RECORD.exists() else None


def is_drawn_alike(probe: Image.Image, *, accepting: bool) -> bool:
    """Whether this machine draws letters and lines as that on which pictures were accepted."""
    stored, drawn = PROBE, shrunk(probe)
    if accepting:
        ACCEPTED.mkdir(exist_ok=True)
        _save(drawn, stored)
        return True
    with Image.open(stored) as accepted:
        return difference(accepted.convert("RGB"), drawn)[0] == 0


def accepted_files() -> set[str]:
    """The names of all accepted pictures."""
    return {path.name for path in ACCEPTED.glob("*.webp")} - {PROBE.name}


class Album:
    """Accepts pictures, or tells those that differ from the accepted ones."""

    def __init__(self, *, accepting: bool) -> None:
        self._accepting = accepting
        self.found: list[str] = []
        for kind in ("expected", "actual", "diff"):
            (REPORT / kind).mkdir(parents=True, exist_ok=True)
            for old in (REPORT / kind).glob("*.webp"):
                old.unlink()

    def add(self, file: str, picture: Image.Image) -> None:
        """A page's picture, which is compared at once."""
        whole, picture = picture, shrunk(picture)
        if self._accepting:
            ACCEPTED.mkdir(exist_ok=True)
            _save(picture, ACCEPTED / file)
        elif not (ACCEPTED / file).exists():
            _save(whole, REPORT / "actual" / file)
            self.found.append(f"{file}: new, and not accepted")
        else:
            self._compare(file, picture, whole)

    def differs(self, file: str, picture: Image.Image) -> bool:
        """Whether a picture is another than the accepted one."""
        stored = ACCEPTED / file
        if self._accepting or not stored.exists():
            return False
        with Image.open(stored) as accepted:
            return difference(accepted.convert("RGB"), shrunk(picture))[0] > MOST_PIXELS

    def finish(self, files: Collection[str]) -> None:
        """Writes the report. When accepting, drops accepted pictures that are not among `files`."""
        if self._accepting:
            for old in accepted_files() - set(files):
                (ACCEPTED / old).unlink()
            RECORD.write_text(json.dumps(drawn_here()._asdict(), indent=2) + "\n", "utf-8")
        write_report()

    def _compare(self, file: str, actual: Image.Image, whole: Image.Image) -> None:
        with Image.open(ACCEPTED / file) as stored:
            expected = stored.convert("RGB")
        pixels, diff = difference(expected, actual)
        if pixels > MOST_PIXELS:
            _save(expected, REPORT / "expected" / file)
            _save(whole, REPORT / "actual" / file)
            _save(diff, REPORT / "diff" / file)
            self.found.append(f"{file}: {pixels} pixels differ")


def shrunk(picture: Image.Image) -> Image.Image:
    """As it is kept and compared."""
    return ImageOps.posterize(picture.reduce(2), BITS)


def difference(expected: Image.Image, actual: Image.Image) -> tuple[int, Image.Image]:
    """How many pixels differ, and a picture of them in red over the pale page. What one has below the other's
    end differs whole."""
    size = (max(expected.width, actual.width), max(expected.height, actual.height))
    one, other = _on_canvas(expected, size, (255, 0, 255)), _on_canvas(actual, size, (0, 255, 0))
    apart = ImageChops.difference(one, other)
    red, green, blue = apart.split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    mask = most.point([255 if step >= LEAST_STEP else 0 for step in range(256)])
    pale = Image.blend(other, Image.new("RGB", size, (255, 255, 255)), 0.7)
    pale.paste((220, 0, 0), mask=mask)
    return mask.histogram()[255], pale


def write_report() -> Path:
    """One page with all that differs in `REPORT`."""
    files = sorted(path.name for path in (REPORT / "actual").glob("*.webp"))
    rows = "".join(_row(name) for name in files)
    style = "body{font:14px sans-serif}div{display:flex;gap:8px}img{max-width:32vw;border:1px solid #999}"
    page = (
        f"<!doctype html><meta charset=utf-8><title>Pictures that differ</title><style>{style}</style>"
        f"<h1>{len(files)} pictures differ</h1><p>Expected, actual and the difference. If they are right:"
        f" <code>make pictures</code>.</p>{rows}\n"
    )
    file = REPORT / "index.html"
    file.write_text(page, "utf-8")
    return file


def _row(name: str) -> str:
    shown = "".join(
        f'<a href="{kind}/{name}"><img loading=lazy alt="{kind}" src="{kind}/{name}"></a>'
        for kind in ("expected", "actual", "diff")
        if (REPORT / kind / name).exists()
    )
    return f"<h2>{name}</h2><div>{shown}</div>"


def _on_canvas(
    picture: Image.Image, size: tuple[int, int], rest: tuple[int, int, int]
) -> Image.Image:
    if picture.size == size:
        return picture
    canvas = Image.new("RGB", size, rest)
    canvas.paste(picture)
    return canvas


def _save(picture: Image.Image, file: Path) -> None:
    picture.save(file, "WEBP", lossless=True, quality=60, method=4)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

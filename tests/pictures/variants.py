"""The ways in which a page can be drawn, and which of them is kept as its accepted picture."""

from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple, get_args
from zlib import crc32

from tests.e2e.windows import Scheme

Lang = Literal["en", "ru"]
Size = Literal["wide", "phone"]

VIEWPORTS: dict[Size, tuple[int, int]] = {"wide": (1440, 900), "phone": (390, 844)}

#: The page that shows each component in each of its states.
GALLERY = "gallery.account-gallery"


class Variant(NamedTuple):
    """A language, a size of the window and a colour scheme."""

    lang: Lang
    size: Size
    scheme: Scheme

    def __str__(self) -> str:
        return ".".join(self)


ALL = [Variant(*each) for each in product(get_args(Lang), get_args(Size), get_args(Scheme))]

#: The variant of half of the pages; the others share the rest evenly.
MAIN, *OTHERS = ALL


def variants_of(page: str) -> Sequence[Variant]:
    """The variants of a page that are kept as pictures: one by the page's name, and all of the gallery."""
    if page == GALLERY:
        return ALL
    place = crc32(page.encode()) % (2 * len(OTHERS))
    variant = OTHERS[place] if place < len(OTHERS) else MAIN
    # The API reference is in English only.
    return [variant._replace(lang="en") if page.startswith("docs.") else variant]

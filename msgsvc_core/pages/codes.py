"""QR codes in pages."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

#: The quiet zone around a code, in modules (ISO 18004).
BORDER = 4


def qr_code(link: str) -> "Markup":
    """A QR code that scales to its container, with a white background so that it scans on a dark page."""
    # Imported late: it takes megabytes that a process without pages does not need.
    import segno  # noqa: PLC0415 - loaded with the first page
    from markupsafe import Markup  # noqa: PLC0415 - loaded with the first page

    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out,
        kind="svg",
        border=BORDER,
        light="#fff",
        xmldecl=False,
        svgns=False,
        omitsize=True,
        svgclass=None,
        lineclass=None,
    )
    return Markup(out.getvalue().decode())  # noqa: S704 - numbers alone: the link is drawn, not written

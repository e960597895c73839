"""The HTML of a message: one table, styles inline, readable in light and dark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from msgsvc_core.content.blocks import Block, to_rich
from msgsvc_core.content.markup import HTML_MARKS, Mark, Span
from msgsvc_core.content.outgoing import Button

#: The tag of each mark.
_TAGS: dict[Mark, str] = {mark: tag for tag, mark in reversed(HTML_MARKS.items())}

#: Mail programs take styles from attributes only, and know few of them.
_FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_TEXT = f"{_FONT};font-size:16px;line-height:1.5;white-space:pre-wrap;overflow-wrap:break-word"
_CODE = "font-family:ui-monospace,Consolas,Menlo,monospace;font-size:15px"
# Colours of both text and background: programs that invert colours invert both.
_BUTTON = (
    f"{_FONT};display:inline-block;padding:10px 18px;border-radius:8px;background:#1d4ed8;color:#ffffff;"
    "font-size:16px;font-weight:600;text-decoration:none"
)
# Paler than the text by opacity, not by a grey: it can be read on white and on the dark grey of any program.
_FOOTER = f"{_FONT};font-size:13px;line-height:1.5;opacity:0.75"

_CELL = "border:1px solid #8c8c8c;padding:4px 8px;text-align:left;vertical-align:top"
_BLOCK_STYLES = {
    "table": "border-collapse:collapse;margin:16px 0",
    "th": f"{_CELL};font-weight:600",
    "td": _CELL,
    "blockquote": "margin:16px 0;padding:0 0 0 12px;border-left:3px solid #8c8c8c",
    "pre": f"{_CODE};white-space:pre-wrap",
    "hr": "border:0;border-top:1px solid #8c8c8c",
}


@dataclass(frozen=True, slots=True)
class Footer:
    """The line with the unsubscribe link."""

    text: str
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of the message, a part with a content id."""

    content_id: str
    alt: str


def html_text(spans: Iterable[Span]) -> str:
    """A text for `html_document`."""
    return "".join(map(_html, spans))


def html_blocks(blocks: Iterable[Block]) -> str:
    """Headings, lists and tables for `html_document`."""
    return to_rich(blocks, _BLOCK_STYLES)


def html_document(
    text: str,
    buttons: Sequence[Sequence[Button]],
    *,
    title: str,
    lang: str,
    picture: Picture | None = None,
    footer: Footer | None = None,
) -> str:
    """The HTML part of a message; `text` is HTML already."""
    rows = []
    if picture is not None:
        rows.append(
            f'<tr><td style="padding:0 0 16px"><img src="cid:{escape(picture.content_id)}"'
            f' alt="{escape(picture.alt)}" style="display:block;max-width:100%;height:auto"></td></tr>'
        )
    if text:
        rows.append(f'<tr><td dir="auto" style="{_TEXT}">{text}</td></tr>')
    rows += [
        f'<tr><td style="padding:16px 0 0">{"&nbsp; ".join(map(_link, row))}</td></tr>'
        for row in buttons
    ]
    if footer is not None:
        rows.append(
            f'<tr><td dir="auto" style="{_FOOTER};padding:32px 0 0">{escape(footer.text)}'
            f' <a href="{escape(footer.url)}" style="color:inherit">{escape(footer.label)}</a></td></tr>'
        )
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(lang)}"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta name="supported-color-schemes" content="light dark">\n'
        f'<title>{escape(title)}</title></head>\n<body style="margin:0;padding:0">\n'
        '<table role="presentation" width="100%" cellspacing="0" cellpadding="0" border="0"><tr>\n'
        '<td style="padding:24px 16px"><table role="presentation" width="100%" cellspacing="0"\n'
        ' cellpadding="0" border="0" style="max-width:600px">\n'
        + "\n".join(rows)
        + "\n</table></td></tr></table>\n</body></html>\n"
    )


def plain_text(
    spans: Iterable[Span], buttons: Sequence[Sequence[Button]], footer: Footer | None = None
) -> str:
    """The text part: links with their URLs behind them, each button as a line."""
    parts = ["".join(map(_words, spans))]
    if lines := [f"{button.text}: {button.url}" for row in buttons for button in row if button.url]:
        parts.append("\n".join(lines))
    text = "\n\n".join(part for part in parts if part)
    # What follows the line with two dashes is left out of quotations (RFC 3676, section 4.3).
    return text if footer is None else f"{text}\n\n-- \n{footer.text} {footer.label}:\n{footer.url}"


def _html(span: Span) -> str:
    text = escape(span.text, quote=False).replace("\n", "<br>")
    for mark in reversed(span.marks):
        style = f' style="{_CODE}"' if mark in {"code", "pre"} else ""
        # A block would break the line; it is the font that matters.
        tag = "code" if mark == "pre" else _TAGS[mark]
        text = f"<{tag}{style}>{text}</{tag}>"
    return text if span.href is None else f'<a href="{escape(span.href)}">{text}</a>'


def _words(span: Span) -> str:
    if span.href is None or span.text.strip() == span.href:
        return span.text
    return f"{span.text} ({span.href})"


def _link(button: Button) -> str:
    return f'<a href="{escape(button.url or "")}" style="{_BUTTON}">{escape(button.text)}</a>'

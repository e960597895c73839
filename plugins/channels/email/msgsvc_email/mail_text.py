"""What a person wrote in an email: its text without markup, quotations and signature, in linear time."""

import html
import re
from dataclasses import dataclass

from msgsvc_email.quotations import without_quotations

#: Characters of a text that is kept; emails may be of any length.
MAX_TEXT = 16_000

#: Characters that are read to find what is kept: what was written may stand below what is quoted.
MAX_READ = 131_072

#: What begins a tag, a comment or a declaration; any other `<` is text.
_MARKUP = re.compile(r"<(?:(/?)([A-Za-z][A-Za-z0-9]*)|[!?])")

#: Elements whose content is no text of the person's.
_UNSEEN = ("script", "style", "head", "title")
_UNSEEN_END = {name: re.compile(rf"</{name}\s{{0,9}}>", re.IGNORECASE) for name in _UNSEEN}

#: The line that programs on phones add below a text.
_SENT_BY = re.compile(
    r"(?:get outlook for|sent (?:from|via) (?:my|outlook|mail for|yahoo|samsung|the all-new aol)"
    r"|von meinem .{1,40} gesendet|gesendet (?:von|mit)|envoyé (?:de mon|depuis|à partir de)"
    r"|enviado (?:desde|do meu)|inviato (?:da|dal mio)|verstuurd vanaf|wysłane z|skickat från|sendt fra"
    r"|odesláno z|отправлено (?:с|из)|надіслано з)\b.{0,120}",
    re.IGNORECASE,
)

#: Classes and names of the divisions in which programs quote: Gmail, Yahoo, Proton, Zoho, GMX.
_QUOTING = re.compile(
    r"[\"'\s=](?:gmail_quote|yahoo_quoted|protonmail_quote|zmail_extra)\b|\bname=[\"']?quote\b"
)

#: Elements that begin or end a line.
_LINES = frozenset({"p", "div", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6"})

#: References to characters that no character has.
_TOO_LARGE = re.compile(r"&#(?:\d{8,}|[xX][0-9A-Fa-f]{7,});?")


@dataclass(slots=True)
class _Quotation:
    """How many quotations are open, and divisions within one that began with a division."""

    quotes: int = 0
    divisions: int = 0

    @property
    def is_open(self) -> bool:
        return bool(self.quotes or self.divisions)

    def see(self, name: str, tag: str, *, closes: bool) -> None:
        """The next tag."""
        if name == "blockquote":
            self.quotes = max(0, self.quotes + (-1 if closes else 1))
        elif name == "div" and (self.divisions or (not closes and _QUOTING.search(tag))):
            self.divisions += -1 if closes else 1


def written_in(text: str, *, forwards: bool = False) -> str:
    """What a person wrote: without what they quote, and without their signature. If a mail forwards another,
    that is what it is about, and all of it stays."""
    lines = text[:MAX_READ].lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if forwards:
        return "\n".join(lines).strip("\n ")[:MAX_TEXT]
    end = next((number for number, line in enumerate(lines) if line == "-- "), len(lines))
    return "\n".join(_without_program(without_quotations(lines[:end]))).strip("\n ")[:MAX_TEXT]


def _without_program(lines: list[str]) -> list[str]:
    """The lines without the last one, if a program on a phone added it; it stays if it is all there is."""
    last = max((number for number, line in enumerate(lines) if line.strip()), default=0)
    rest = lines[:last]
    is_added = last and _SENT_BY.fullmatch(lines[last].strip()[:200])
    return rest if is_added and any(line.strip() for line in rest) else lines


def text_of_html(markup: str, *, forwards: bool = False) -> str:
    """The text of HTML, in lines; a line `>` stands for each block that is a quotation, unless a mail
    forwards another."""
    markup = markup[:MAX_READ]
    found: list[str] = []
    quotation, at = _Quotation(), 0
    never_closed: set[str] = set()
    while at < len(markup):
        tag = _MARKUP.search(markup, at)
        start = tag.start() if tag else len(markup)
        is_hidden = quotation.is_open
        if start > at and not is_hidden:
            found.append(re.sub(r"\s+", " ", markup[at:start]))
        if tag is None:
            break
        at = _end_of(markup, start)
        if tag[2] is None:
            continue
        closes, name = bool(tag[1]), tag[2].lower()
        if name in _UNSEEN and not closes and name not in never_closed:
            closing = _UNSEEN_END[name].search(markup, at)
            if closing is not None:
                at = closing.end()
            else:
                # It hides nothing but itself, nor do those after it.
                never_closed.add(name)
        if not forwards:
            quotation.see(name, markup[start:at], closes=closes)
        if quotation.is_open and not is_hidden:
            found.append("\n>\n")
        if not is_hidden and (name == "br" or (closes and name in _LINES)):
            found.append("\n")
    text = html.unescape(_TOO_LARGE.sub("\ufffd", "".join(found)))
    return text.replace("\xa0", " ")


def _end_of(markup: str, start: int) -> int:
    """Where what begins at `start` is over: a comment, a declaration or a tag."""
    sign = "-->" if markup.startswith("<!--", start) else ">"
    end = markup.find(sign, start)
    return end + len(sign) if end >= 0 else len(markup)

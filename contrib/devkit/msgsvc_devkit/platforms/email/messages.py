"""An email as its reader sees it, and the rules that it has to keep."""

import re
from dataclasses import dataclass, field
from email import message_from_bytes, message_from_string, policy
from email.errors import NonASCIILocalPartDefect
from email.message import EmailMessage
from html.parser import HTMLParser

#: Bytes of a line without its end (RFC 5322, section 2.1.1).
MAX_LINE = 998

#: Fields that a message has exactly once (RFC 5322, section 3.6), and those that it has at most once.
ONCE = ("From", "To", "Date", "Message-ID", "Subject", "MIME-Version", "Content-Type")
AT_MOST_ONCE = (
    "Reply-To",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "In-Reply-To",
    "References",
)

_FIELD = re.compile(rb"[!-9;-~]+:[ \t][^\r\n]*(?:\r\n[ \t][^\r\n]*)*\r\n")


class IncorrectMail(Exception):
    """The message breaks a rule; its text says which."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message; `inline` if the HTML shows it."""

    filename: str | None
    mime_type: str
    content: bytes
    inline: bool


@dataclass(frozen=True, slots=True)
class Mail:
    """A message in a person's mailbox. `text` is what its HTML shows, without the footer, `plain` its text
    part; `links` are the buttons."""

    sender: str
    recipient: str
    raw: bytes
    parsed: EmailMessage
    message_id: str
    text: str
    plain: str
    footer: str
    rows: tuple[tuple[tuple[str, str], ...], ...] = ()
    attachments: tuple[Attachment, ...] = field(default=())

    def header(self, name: str) -> str:
        """A header's text; empty if there is none."""
        return str(self.parsed.get(name, ""))


def read_mail(sender: str, recipient: str, raw: bytes, *, utf8: bool) -> Mail:
    """Raises `IncorrectMail`."""
    _check_bytes(raw, utf8=utf8)
    if utf8:
        parsed = message_from_string(raw.decode(), policy=policy.SMTPUTF8)
    else:
        parsed = message_from_bytes(raw, policy=policy.SMTP)
    assert isinstance(parsed, EmailMessage)
    _check_fields(parsed, utf8=utf8)
    for part in parsed.walk():
        if part.defects:
            raise IncorrectMail(f"the MIME structure is wrong: {part.defects}")
    plain, html = parsed.get_body(("plain",)), parsed.get_body(("html",))
    if plain is None or html is None:
        raise IncorrectMail("a message has a text and an HTML part")
    reader = _Html()
    reader.feed(html.get_content())
    reader.close()
    return Mail(
        sender,
        recipient,
        raw,
        parsed,
        str(parsed["Message-ID"]).strip("<> "),
        reader.text,
        plain.get_content().replace("\r\n", "\n"),
        reader.footer,
        tuple(map(tuple, reader.rows)),
        tuple(_attachments(parsed, html.get_content())),
    )


def _check_bytes(raw: bytes, *, utf8: bool) -> None:
    if re.search(rb"\r(?!\n)|(?<!\r)\n", raw):
        raise IncorrectMail("lines end with CR LF, and neither stands alone")
    if b"\0" in raw or (not utf8 and re.search(rb"[\x80-\xff]", raw)):
        raise IncorrectMail("other bytes than ASCII need SMTPUTF8, and NUL is none of them")
    if any(len(line) > MAX_LINE for line in raw.split(b"\r\n")):
        raise IncorrectMail(f"a line has more than {MAX_LINE} bytes")
    head, end, _ = raw.partition(b"\r\n\r\n")
    if not end or not re.fullmatch(rb"(?:" + _FIELD.pattern + rb")+", head + b"\r\n"):
        raise IncorrectMail("the header has a line that is no field")


def _check_fields(parsed: EmailMessage, *, utf8: bool) -> None:
    for name in ONCE:
        if len(parsed.get_all(name, [])) != 1:
            raise IncorrectMail(f"{name} is there {len(parsed.get_all(name, []))} times")
    for name in AT_MOST_ONCE:
        if len(parsed.get_all(name, [])) > 1:
            raise IncorrectMail(f"{name} is there more than once")
    for name in (*ONCE, *AT_MOST_ONCE):
        for value in parsed.get_all(name, []):
            defects = getattr(value, "defects", ())
            if [one for one in defects if not (utf8 and isinstance(one, NonASCIILocalPartDefect))]:
                raise IncorrectMail(f"{name} is wrong: {defects}")
    if not re.fullmatch(r"<[^<>@\s]+@[^<>@\s]+>", str(parsed["Message-ID"])):
        raise IncorrectMail("Message-ID is no message id")
    _check_unsubscription(parsed)


def _check_unsubscription(parsed: EmailMessage) -> None:
    post, link = parsed.get("List-Unsubscribe-Post"), parsed.get("List-Unsubscribe")
    if post is not None and (
        str(post) != "List-Unsubscribe=One-Click" or not str(link or "").startswith("<https://")
    ):
        raise IncorrectMail("one-click unsubscription needs an https URL (RFC 8058)")
    if link is not None and not re.fullmatch(r"<https?://[^\s<>]+>", str(link)):
        raise IncorrectMail("List-Unsubscribe is a URL between angle brackets")


def _attachments(parsed: EmailMessage, html: str) -> list[Attachment]:
    found = []
    for part in parsed.walk():
        is_text = part.is_multipart() or part.get_content_type() in {"text/plain", "text/html"}
        if is_text and part.get_content_disposition() != "attachment":
            continue
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        cid = str(part.get("Content-ID", "")).strip("<>")
        inline = bool(cid) and f"cid:{cid}" in html
        if part.get_content_disposition() == "inline" and not inline:
            raise IncorrectMail("an inline part is not shown by the HTML")
        found.append(Attachment(part.get_filename(), part.get_content_type(), content, inline))
    return found


class _Html(HTMLParser):
    """Reads what the HTML shows. Raises `IncorrectMail` for what mail programs remove or refuse."""

    ALLOWED = frozenset(
        {"html", "head", "meta", "title", "body", "table", "tr", "td", "a", "b", "i", "u", "s", "code", "br",
         "img"}
    )  # fmt: skip
    #: Blocks of a text, each on lines of its own.
    BLOCKS = frozenset(
        {"h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "hr", "th"}
    )
    VOID = frozenset({"meta", "br", "img", "hr"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.footer = ""
        self.rows: list[list[tuple[str, str]]] = []
        self._open: list[str] = []
        self._cells: list[str] = []
        self._href: str | None = None
        self._label = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._check_tag(tag, given)
        if self._is_text and tag in self.BLOCKS | {"tr", "td"}:
            self.text += " " if tag in {"td", "th"} else "\n"
        if tag in {"td", "th"}:
            self._cells.append(given.get("style") or "")
            if self._is_row:
                self.rows.append([])
        if tag == "br" and self._is_text:
            self.text += "\n"
        if tag == "a":
            self._href, self._label = given.get("href") or "", ""
            if not re.match(r"https?://", self._href):
                raise IncorrectMail(f"a link leads to {self._href!r}")
        if tag not in self.VOID:
            self._open.append(tag)

    def _check_tag(self, tag: str, given: dict[str, str | None]) -> None:
        if tag not in self.ALLOWED | self.BLOCKS:
            raise IncorrectMail(f"mail programs don't show <{tag}>")
        if any(name.startswith("on") for name in given):
            raise IncorrectMail("mail programs run no scripts")
        if tag == "img" and not (given.get("src") or "").startswith("cid:"):
            raise IncorrectMail("mail programs load no pictures from other hosts")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if not self._open or self._open.pop() != tag:
            raise IncorrectMail(f"</{tag}> closes what is not open")
        if self._is_text and tag in self.BLOCKS - {"th"}:
            self.text += "\n"
        if tag == "a" and self._is_row:
            self.rows[-1].append((self._label, self._href or ""))
        if tag in {"td", "th"}:
            self._cells.pop()

    def handle_data(self, data: str) -> None:
        self._label += data
        if self._is_text:
            self.text += data
        elif self._cells and "padding:32px 0 0" in self._cells[-1]:
            self.footer += data

    def close(self) -> None:
        super().close()
        if self._open:
            raise IncorrectMail(f"{self._open} are not closed")

    @property
    def _is_text(self) -> bool:
        return any("pre-wrap" in cell for cell in self._cells)

    @property
    def _is_row(self) -> bool:
        return bool(self._cells) and self._cells[-1] == "padding:16px 0 0"

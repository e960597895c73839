"""A received email as data.

Whoever can reach the mailbox can send one, so all of it is bounded and read in linear time. The standard
library's parser is neither: the time for nested multiparts, comments and RFC 2231 parameters is quadratic in
their size, and a charset that it does not know is an error. Here it decodes bounded values only.
"""

import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header
from urllib.parse import unquote_to_bytes

from msgsvc_core.kernel.storable_text import storable
from msgsvc_email.mail_text import text_of_html, written_in

#: Bytes of a head, and the fields that it may have. Larger ones are not read at all.
MAX_HEAD_BYTES, MAX_FIELDS = 262_144, 1_000

#: Characters that are read of a field, and of one that is decoded (RFC 2047), which takes quadratic time.
MAX_FIELD, MAX_DECODED = 16_384, 1_024

#: Parts that are read, their nesting, and groups of fields of a report.
MAX_PARTS, MAX_DEPTH, MAX_BLOCKS = 100, 8, 200

#: Characters behind a boundary in which its line is looked at.
MAX_LINE_REST = 80

#: Bytes of the text of all parts that are read.
MAX_TEXT_BYTES = 262_144

#: Bytes of a server's text that are read.
MAX_BOUNCE_BYTES = 32_768

#: Local parts of servers' addresses.
_SERVERS = frozenset({"mailer-daemon", "mail-daemon", "mdaemon"})

_NOT_ARRIVED = re.compile(
    r"(?:failure notice|undeliverable|undelivered mail|delivery (?:status notification|failure|has failed)"
    r"|mail delivery (?:failed|failure|system)|returned mail|nondeliverable|unzustellbar)",
    re.IGNORECASE,
)

#: Marks of a mail that forwards another, as programs write them before its subject.
_FORWARD = re.compile(r"(?:fwd?|wg|tr|rv|enc|i|vb|vl|doorst|pd|пересл)\s?[:：]", re.IGNORECASE)

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_FIELD = re.compile(r"([!-9;-~]+)[ \t]*:")
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*)', re.DOTALL)

#: Charsets by the names that programs give them in place of the registered ones.
_CHARSETS = {"iso-8859-8-i": "iso-8859-8", "iso-8859-8-e": "iso-8859-8"}

#: Charsets that say no more than the bytes do, and codecs of Python that are no charset of emails, some of
#: which take quadratic time.
_NO_CHARSETS = frozenset(
    {
        "ascii",
        "us_ascii",
        "utf_8",
        "utf8",
        "utf_8mb4",
        "default",
        "unknown",
        "x_unknown",
        "punycode",
        "idna",
    }
    | {"undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}
)

#: Parts that hold the message which a report is about.
_RETURNED = frozenset(
    {"message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"}
)
_REPORTS = frozenset(
    {
        "message/delivery-status",
        "message/global-delivery-status",
        "message/feedback-report",
    }
)


class UnreadableMail(Exception):
    """The mail is beyond a bound, or has no fields; the text says which."""


@dataclass(frozen=True, slots=True)
class Head:
    """Fields in their order, unfolded, as they were written: encoded words are not decoded."""

    fields: tuple[tuple[str, str], ...] = ()

    def all(self, name: str) -> list[str]:
        """Every value of a field, by its name in lower case."""
        return [value for found, value in self.fields if found == name]

    def get(self, name: str) -> str:
        """The first value of a field; empty without one."""
        return next(iter(self.all(name)), "")

    def __contains__(self, name: str) -> bool:
        return any(found == name for found, _ in self.fields)

    def decoded(self, name: str) -> str:
        """The first value with its encoded words (RFC 2047), in one line."""
        return " ".join(decoded_words(self.get(name)).split())


@dataclass(frozen=True, slots=True)
class MailFile:
    """A part that is a file; `number` finds it again (`content_of_file`)."""

    number: int
    content_type: str
    name: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Mail:
    """What is read of a mail: the text that a person wrote, without what they quote; its files; and of a
    report the groups of fields, by the type of their part, and the head of the message it is about."""

    head: Head
    content_type: str
    report_type: str
    text: str
    files: tuple[MailFile, ...]
    blocks: tuple[tuple[str, Head], ...]
    returned: Head | None
    #: All that a server wrote for people to read; empty for other mails.
    bounce_text: str = ""


@dataclass(slots=True)
class _Part:
    """A part of the tree: a leaf has the range of its content in the mail."""

    head: Head
    content_type: str
    params: dict[str, str]
    raw: bytes
    start: int
    end: int
    children: list["_Part"] = field(default_factory=list)

    @property
    def disposition(self) -> str:
        return self.head.get("content-disposition").partition(";")[0].strip().lower()

    @property
    def name(self) -> str | None:
        written = self.head.get("content-disposition")
        name = _parameter(_params(written), "filename") or _parameter(self.params, "name")
        return storable(name.replace("\0", "")) if name else None

    @property
    def is_text(self) -> bool:
        return (
            self.content_type in {"text/plain", "text/html"}
            and self.disposition != "attachment"
            and not self.name
        )

    def content(self, most: int | None = None) -> bytes:
        """The decoded content; of no more than `most` bytes as they were sent."""
        end = self.end if most is None else min(self.end, self.start + most)
        raw = self.raw[self.start : end]
        match self.head.get("content-transfer-encoding").strip().lower():
            case "base64":
                return _from_base64(raw)
            case "quoted-printable":
                return binascii.a2b_qp(raw)
            case _:
                return raw

    def text(self, most: int) -> str:
        return decoded_text(self.content(most), self.params.get("charset", "utf-8"))


def read_mail(raw: bytes) -> Mail:
    """Reads a mail. Raises `UnreadableMail`."""
    root = _Reader(raw).read()
    if not root.head.fields:
        raise UnreadableMail("it has no fields")
    leaves = list(_leaves(root))
    return Mail(
        head=root.head,
        content_type=root.content_type,
        report_type=_report_type(root),
        text=_written_text(root),
        files=tuple(_files(leaves)),
        blocks=tuple(_blocks(leaves)),
        returned=next((_returned(part) for part in leaves if part.content_type in _RETURNED), None),
        bounce_text="\n\n".join(_texts(root, MAX_BOUNCE_BYTES)) if is_of_server(root.head) else "",
    )


def is_of_server(head: Head) -> bool:
    """Whether a mail server wrote it, which some do without the form of a report."""
    if "x-failed-recipients" in head:
        return True
    local = head.get("from").rpartition("<")[2].partition("@")[0].strip().lower()
    if local in _SERVERS:
        return True
    # People write as postmaster, too.
    may_be = local == "postmaster" or head.get("return-path").strip() == "<>"
    return may_be and _NOT_ARRIVED.match(head.decoded("subject")) is not None


def content_of_file(raw: bytes, number: int) -> bytes | None:
    """The content of the file with this number; None if there is none."""
    parts = [part for part in _leaves(_Reader(raw).read()) if not part.is_text]
    return parts[number].content() if number < len(parts) else None


class _Reader:
    """Splits a mail into its parts, in time linear in its size for each level of them."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._parts = 0

    def read(self) -> _Part:
        return self._part(0, len(self._raw), MAX_DEPTH, "text/plain")

    def _part(self, start: int, end: int, depth: int, otherwise: str) -> _Part:
        self._parts += 1
        head, body = _head(self._raw, start, end)
        written = head.get("content-type")
        content_type = written.partition(";")[0].strip().lower()
        if not re.fullmatch(r"[\w.+-]+/[\w.+-]+", content_type, re.ASCII):
            content_type = otherwise
        part = _Part(head, content_type, _params(written), self._raw, body, end)
        boundary = part.params.get("boundary", "")
        if content_type.startswith("multipart/") and boundary and depth > 0:
            inner = "message/rfc822" if content_type == "multipart/digest" else "text/plain"
            for first, last in self._split(body, end, boundary.encode("utf-8", "replace")):
                if self._parts >= MAX_PARTS:
                    break
                part.children.append(self._part(first, last, depth - 1, inner))
        if content_type.startswith("multipart/") and not part.children:
            # Too deep, or the boundary is nowhere.
            part.content_type = "text/plain"
        return part

    def _split(self, start: int, end: int, boundary: bytes) -> Iterator[tuple[int, int]]:
        """The ranges between the lines of a boundary."""
        raw, delimiter = self._raw, b"--" + boundary
        began: int | None = None
        at = raw.find(delimiter, start, end)
        while at >= 0:
            after = at + len(delimiter)
            if at == start or raw[at - 1 : at] == b"\n":
                line_end = raw.find(b"\n", after, end)
                line_end = end if line_end < 0 else line_end + 1
                rest = raw[after : min(line_end, after + MAX_LINE_REST)].strip()
                if rest in {b"", b"--"}:
                    if began is not None:
                        # The line break before a delimiter is part of it.
                        last = at - 2 if raw[at - 2 : at] == b"\r\n" else at - 1
                        yield began, max(began, last)
                    if rest == b"--":
                        return
                    began = line_end
            at = raw.find(delimiter, after, end)
        # Mails are cut off on the way, and programs forget the last one.
        if began is not None and began < end:
            yield began, end


def _head(raw: bytes, start: int, end: int) -> tuple[Head, int]:
    """The fields at the beginning, and where what follows them begins."""
    if raw[start : start + 1] == b"\n":
        return Head(), start + 1
    if raw[start : start + 2] == b"\r\n":
        return Head(), start + 2
    found = _HEAD_END.search(raw, start, min(end, start + MAX_HEAD_BYTES))
    if found is None and end - start > MAX_HEAD_BYTES:
        raise UnreadableMail(f"its head has more than {MAX_HEAD_BYTES} bytes")
    last, body = found.span() if found else (end, end)
    return Head(tuple(_fields(raw[start:last]))), body


def _fields(raw: bytes) -> Iterator[tuple[str, str]]:
    count = 0
    for lines in _unfolded(raw.split(b"\n")):
        value = _as_text(b"".join(lines))
        found = _FIELD.match(value)
        # Programs put lines in between that are no fields.
        if found is None:
            continue
        count += 1
        if count > MAX_FIELDS:
            raise UnreadableMail(f"its head has more than {MAX_FIELDS} fields")
        yield found[1].lower(), value[found.end() :].strip()[:MAX_FIELD]


def _unfolded(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    folded: list[bytes] = []
    for line in lines:
        if folded and line[:1] in {b" ", b"\t"}:
            folded.append(line.rstrip(b"\r"))
            continue
        if folded:
            yield folded
        folded = [line.rstrip(b"\r")]
    if folded:
        yield folded


def _as_text(raw: bytes) -> str:
    try:
        return storable(raw.decode())
    except UnicodeDecodeError:
        return storable(raw.decode("latin-1"))


def _params(value: str) -> dict[str, str]:
    """The parameters of a field such as `Content-Type`, by their names in lower case."""
    found: dict[str, str] = {}
    for name, text in _PARAMETER.findall(value):
        plain = re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text
        found.setdefault(name.lower(), plain)
    return found


def _parameter(params: dict[str, str], name: str) -> str:
    """A parameter, which may be encoded and in pieces (RFC 2231), or an encoded word against the standard."""
    if plain := params.get(name):
        return decoded_words(plain)
    if extended := params.get(f"{name}*"):
        return _extended(extended)
    pieces: list[bytes] = []
    charset = "utf-8"
    for number in range(MAX_PARTS):
        piece, encoded = params.get(f"{name}*{number}"), params.get(f"{name}*{number}*")
        if encoded is not None and number == 0 and encoded.count("'") >= 2:
            charset, _, encoded = encoded.split("'", 2)
        if encoded is None and piece is None:
            break
        pieces.append(unquote_to_bytes(encoded) if encoded is not None else (piece or "").encode())
    return decoded_text(b"".join(pieces), charset or "utf-8")


def _extended(value: str) -> str:
    charset, _, text = value.split("'", 2) if value.count("'") >= 2 else ("utf-8", "", value)
    return decoded_text(unquote_to_bytes(text), charset or "utf-8")


def decoded_words(value: str) -> str:
    """A field's value with its encoded words (RFC 2047) decoded; of no more than `MAX_DECODED` characters."""
    value = value[:MAX_DECODED]
    if "=?" not in value:
        return value
    try:
        found = decode_header(value)
    except (HeaderParseError, ValueError):
        return value
    return "".join(
        part if isinstance(part, str) else decoded_text(part, charset or "utf-8")
        for part, charset in found
    )


def decoded_text(content: bytes, charset: str) -> str:
    """Bytes as text. Those of a charset that is unknown are UTF-8 if they can be, or else Windows-1252."""
    name = charset.strip().strip("\"'").lower()[:40]
    name = _CHARSETS.get(name, name.replace("cp-", "cp"))
    if name.isascii() and name.replace("-", "_") not in _NO_CHARSETS:
        try:
            return storable(content.decode(name, "replace"))
        except (LookupError, ValueError):
            pass
    try:
        return storable(content.decode())
    except UnicodeDecodeError as error:
        # The last character of what was cut off is not whole.
        if error.reason == "unexpected end of data":
            return storable(content[: error.start].decode())
        return storable(content.decode("cp1252", "replace"))


def _from_base64(raw: bytes) -> bytes:
    try:
        return binascii.a2b_base64(raw)
    except binascii.Error:
        # Cut off: what is whole of it.
        clean = re.sub(rb"[^A-Za-z0-9+/]", b"", raw)
        return binascii.a2b_base64(clean[: len(clean) // 4 * 4])


def _leaves(part: _Part) -> Iterator[_Part]:
    if not part.children:
        yield part
    for child in part.children:
        yield from _leaves(child)


def _report_type(root: _Part) -> str:
    if root.content_type != "multipart/report":
        return ""
    return root.params.get("report-type", "").lower()


def _written_text(root: _Part) -> str:
    forwards = _FORWARD.match(root.head.decoded("subject")) is not None
    texts = _texts(root, MAX_TEXT_BYTES, forwards=forwards)
    text = "\n\n".join(filter(None, (text.strip("\r\n ") for text in texts)))
    return written_in(text, forwards=forwards)


def _texts(part: _Part, left: int, *, forwards: bool = False) -> list[str]:
    """The texts of a part, in order; of alternatives the first that says something, plain before HTML."""
    if not part.children:
        if not part.is_text or left <= 0:
            return []
        text = part.text(left)
        is_html = part.content_type == "text/html"
        return [text_of_html(text, forwards=forwards) if is_html else text]
    found: list[list[str]] = []
    for child in part.children:
        found.append(_texts(child, left, forwards=forwards))
        if part.content_type != "multipart/alternative":
            left -= child.end - child.start
    if part.content_type == "multipart/alternative":
        return next((texts for texts in found if any(map(str.strip, texts))), [])
    return [text for texts in found for text in texts]


def _files(leaves: Iterable[_Part]) -> Iterator[MailFile]:
    parts = (part for part in leaves if not part.is_text)
    for number, part in enumerate(parts):
        size = part.end - part.start
        if part.head.get("content-transfer-encoding").strip().lower() == "base64":
            size = size * 3 // 4
        yield MailFile(number, part.content_type, part.name, size)


def _blocks(leaves: Iterable[_Part]) -> Iterator[tuple[str, Head]]:
    for part in leaves:
        if part.content_type not in _REPORTS:
            continue
        groups = re.split(rb"\r?\n(?:[ \t]*\r?\n)+", part.content(MAX_HEAD_BYTES).strip(b"\r\n"))
        for group in groups[:MAX_BLOCKS]:
            yield part.content_type, Head(tuple(_fields(group)))


def _returned(part: _Part) -> Head:
    content = part.content(MAX_HEAD_BYTES).lstrip(b"\r\n")
    found = _HEAD_END.search(content)
    return Head(tuple(_fields(content[: found.start()] if found else content)))

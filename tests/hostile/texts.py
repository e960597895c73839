"""Texts that make a parser slow which takes more than linear time, and requests that hold them.

Each unit is repeated until the text is as long as asked for. A unit that once was slow stays here.
"""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from urllib.parse import quote

#: What once made something slow, or is what parsers look for: combining marks, what grows by normalization,
#: white space, brackets, escapes, placeholders, and what addresses, dates and numbers consist of.
UNITS = (
    "\u0301",
    "\u0344",
    "\ufdfa",
    "\u200d\U0001f468",
    "a",
    "9",
    " ",
    "\t",
    "\n",
    "\r\n",
    "> ",
    "a.",
    "a@",
    "a@a.",
    "-",
    "+",
    "/",
    "=",
    "&",
    "&amp;",
    ";",
    ",",
    '"',
    "'",
    "\\",
    "(",
    "[",
    "](",
    "<",
    "<a ",
    "<b>",
    "<!--",
    "{{",
    "{{a}}",
    "zq{{a}}",
    "{",
    "*",
    "**a",
    "_",
    "`",
    "~~",
    "||",
    "%",
    "*/1 ",
    "1-",
    "1,",
    "xn--",
    "http://a",
    "+1",
    "q=1,",
    "a=b;",
    "eyJhIjo.",
    "\u0660",
    "\u0130",
    "\u00df",
)

#: Those for values of the API and of the dashboard, which are many.
VALUE_UNITS = ("\u0301", "{{a}}", "zq{{a}}", "**a", "<a ", "a@a.", " ", "*/1 ", "9")
#: Those for files, paths and other places that every request has.
FEW_UNITS = (
    "\u0301",
    "\ufdfa",
    "a",
    "9",
    " ",
    "\n",
    "a@a.",
    "<a ",
    "{{a}}",
    "[",
    "**a",
    "*/1 ",
    ",",
    "\\",
)


@cache
def text_of(unit: str, size: int) -> str:
    """The unit repeated to that many characters, with an end that fits no pattern."""
    return (unit * (size // len(unit) + 1))[: size - 1] + "\x01"


def texts(units: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """A name for reports, and the text."""
    for unit in units:
        for size in sizes:
            yield f"{unit!r} x {size}", text_of(unit, size)


def urlencoded(values: Mapping[str, str]) -> bytes:
    return b"&".join(
        quote(name, safe="").encode() + b"=" + _quoted(value) for name, value in values.items()
    )


@lru_cache(maxsize=500)
def _quoted(text: str) -> bytes:
    return quote(text.encode("utf-8", "surrogatepass"), safe="").encode()


#: The boundary of `multipart`.
BOUNDARY = "boundary"


def multipart(
    values: Mapping[str, str], files: Mapping[str, tuple[str, bytes]] | None = None
) -> bytes:
    """A body of multipart/form-data."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        + value.encode("utf-8", "surrogatepass")
        for name, value in values.items()
    ]
    for name, (filename, content) in (files or {}).items():
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"'
        )
        parts.append(head.encode("utf-8", "surrogatepass") + b"\r\n\r\n" + content)
    return b"".join(part + b"\r\n" for part in parts) + f"--{BOUNDARY}--\r\n".encode()


def odd_multiparts(size: int) -> Iterator[tuple[str, str, bytes]]:
    """Bodies that look like multipart/form-data: a name for reports, the content type, and the body."""
    declared = f"multipart/form-data; boundary={BOUNDARY}"
    part = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".encode()
    yield "many parts", declared, (part * (size // len(part))) + f"--{BOUNDARY}--".encode()
    named = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="'.encode()
    yield "a long name", declared, named + b"a" * size
    for unit in (b"\r\n--", b"--boundar", b"\r", b"\n", b"\r\n", b"-"):
        yield f"begins of boundaries {unit!r}", declared, part + unit * (size // len(unit))
    header = f"--{BOUNDARY}\r\n".encode()
    yield "many headers", declared, header + b"A: b\r\n" * (size // 6)
    yield "a long header", declared, header + b"A" * size
    yield (
        "semicolons",
        declared,
        header + b"Content-Disposition: form-data" + b"; a=b" * (size // 5),
    )
    yield "backslashes", declared, named + b"\\" * size + b'"\r\n\r\n'
    yield "a long boundary", f"multipart/form-data; boundary={'-' * 20_000}", b"-" * size
    yield "many parameters", f"multipart/form-data{'; a=b' * 4_000}", part
    yield "quotes in parameters", f'multipart/form-data; boundary="{chr(92) * 20_000}', part
    yield "no boundary", "multipart/form-data", part
    yield "a charset", f"{declared}; charset=punycode", part + b"a" * size

"""Requests as bytes, and responses."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from yarl import URL

from msgsvc_core.kernel.values import value_object

#: Characters of a method or a header's name (`token`, RFC 9110, section 5.6.2).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

#: What a header's value must not contain: it would end the header, or be read in different ways.
_NOT_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

#: URLs whose parts are cached: a bot calls the same few methods of its platform's API.
CACHED_TARGETS = 2000

#: Characters of a host: a name in ASCII, or an address.
_HOST = re.compile(r"[0-9A-Za-z._~:%-]+")

_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]


@value_object
class Target:
    """A URL as HTTP needs it."""

    #: Scheme, host without brackets, and port.
    origin: Origin
    #: The `Host` header.
    host_header: str
    #: Path and query.
    path: str


@lru_cache(maxsize=CACHED_TARGETS)
def parse_target(url: str) -> Target:
    """Parts of an absolute http or https URL; a fragment and a login are left out. Raises ValueError."""
    parsed = URL(url)
    host, port = parsed.raw_host, parsed.port
    if parsed.scheme not in _PORTS or not host or not port or not _HOST.fullmatch(host):
        raise ValueError("not an http or https URL")
    shown = f"[{host}]" if ":" in host else host
    if port != _PORTS[parsed.scheme]:
        shown += f":{port}"
    # Without the zone of an IPv6 address, which means nothing to the server.
    return Target((parsed.scheme, host, port), re.sub(r"%[^\]]*", "", shown), parsed.raw_path_qs)


def header_lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Headers as they are sent. Raises ValueError for a name or value that can't be part of a header."""
    lines = []
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or _NOT_IN_VALUE.search(value):
            # Not its value, which may be a secret.
            raise ValueError(f"the header {name!r} has characters that HTTP does not allow")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


def check_method(method: str) -> str:
    """The method. Raises ValueError if it is none."""
    if not _TOKEN.fullmatch(method):
        raise ValueError("not a method of HTTP")
    return method


class Headers(Mapping[str, str]):
    """Headers of a response, in order, by name in any case; decoded when they are read.

    A header that occurs more than once has its first value here; `all` has every one.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._raw = raw

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        wanted = name.lower().encode("latin-1")
        return [_text(value) for found, value in self._raw if found.lower() == wanted]

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode("latin-1")
        for found, value in self._raw:
            if found.lower() == wanted:
                return _text(value)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.decode("latin-1") for name, _ in self._raw))

    def __len__(self) -> int:
        return len({name.lower() for name, _ in self._raw})


def _text(value: bytes) -> str:
    # Of whatever bytes the other side sends, a text that can be written again.
    return value.decode("utf-8", "replace")


class Response:
    """A response with any status. `body` is all of it, or empty if it is streamed."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Headers, body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def content_length(self) -> int | None:
        """`Content-Length`: bytes of the body, None if it is sent in chunks or ends with the connection."""
        length = self.headers.get("Content-Length")
        return int(length) if length is not None else None

"""Request parameters of the protocol's endpoints."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

from msgsvc_oidc.protocol.errors import invalid_request

#: Bytes of a request's form. The largest are signed assertions and pushed requests.
MAX_FORM_BYTES = 65_536

#: Parameters of one request.
MAX_PARAMETERS = 100


class Parameters(Mapping[str, str]):
    """Parameters by name. An empty value is one that was left out, and none may come twice (RFC 6749,
    section 3.1)."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values = {name: value for name, value in pairs if value}
        counted = Counter(name for name, _ in pairs)
        self._repeated = {name for name, times in counted.items() if times > 1}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def check_single(self) -> None:
        """Raises `OAuthError` if a parameter came twice."""
        if self._repeated:
            raise invalid_request(f"a parameter came twice: {_ascii(min(self._repeated))}")

    def is_repeated(self, *names: str) -> bool:
        """Whether one of them came twice."""
        return not self._repeated.isdisjoint(names)

    def required(self, name: str) -> str:
        """Raises `OAuthError` if it is missing."""
        value = self.get(name)
        if value is None:
            raise invalid_request(f"{name} is missing")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """The words of a space-separated list, in their order, each once."""
        return tuple(dict.fromkeys(self.get(name, "").split()))


def read_form(body: bytes, content_type: str) -> Parameters:
    """The parameters of a form. Raises `OAuthError` for another media type (RFC 6749, appendix B)."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise invalid_request("the body must be application/x-www-form-urlencoded")
    return Parameters(_pairs(body))


def read_query(query: bytes) -> Parameters:
    """The parameters of a URL's query."""
    return Parameters(_pairs(query))


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:
        raise invalid_request("the parameters are not in UTF-8, or too many") from None
    # PostgreSQL can't store a NUL.
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise invalid_request("a parameter holds a NUL character")
    return pairs


def _ascii(text: str) -> str:
    """What an error description may hold of a name (RFC 6749, section 5.2)."""
    return re.sub(r'[^ -~]|["\\]', "?", text[:40])

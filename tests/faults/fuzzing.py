"""Requests made from our own OpenAPI: as it says, almost as it says, and not at all as it says."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes

from hypothesis import strategies as st
from starlette.types import ASGIApp, Message

from tests.paths import by_kind, kinds_in

#: Seconds that a long poll would hold its answer for: never asked for here.
POLLS = range(1, 61)

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW")

_ODD_TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\0",
        "\u202e",
        "\ud800",
        "\ufeff",
        "é" * 300,
        "%s%n",
        "'; --",
        "{{ 7 * 7 }}",
        "../..",
        "null",
        "NaN",
        "-1",
        "9" * 400,
        "https://127.0.0.1:1/",
        "http://[",
        "javascript:alert(1)",
        "2026-13-45T99:99:99Z",
        "👩‍👩‍👧" * 20,
        "a" * 70_000,
    ]
)
_TEXTS = st.one_of(_ODD_TEXTS, st.text(max_size=40))
_NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400, 1e308, -0.0]),
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
)
_JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=8,
)
#: Bodies that are no JSON, or none that ours is.
_RAW = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b'"',
            b'{"a":1,"a":2}',
            b"NaN",
            b"[1e999]",
            b"\xff\xfe{}",
            b"\xef\xbb\xbf{}",
            b'{"a":"\\ud800"}',
            b'{"a":"\\u0000"}',
            b"[" * 100_000,
            b'{"a":' * 40 + b"1" + b"}" * 40,
            b"1" * 5000,
            b'{"text":"' + b"x" * 1_100_000 + b'"}',
        ]
    ),
)
_CONTENT_TYPES = st.sampled_from(
    [b"application/json"] * 6
    + [b"", b"text/plain", b"application/json; charset=latin-1", b"multipart/form-data", b"\xff"]
)
#: Those of operations that take a file.
_FORM_TYPES = st.sampled_from(
    [b"multipart/form-data; boundary=b"] * 8
    + [b"multipart/form-data", b"multipart/form-data; boundary=b; charset=idna", b"text/csv", b""]
)


def _files() -> st.SearchStrategy[bytes]:
    """Bodies with a file: a table, whatever, or hardly a form."""
    content = st.one_of(
        st.just(b"address,first_name\nann@example.com,Ann\n"),
        st.binary(max_size=200),
        st.text(max_size=80).map(str.encode),
    )
    parts = st.tuples(st.sampled_from([b"file"] * 6 + [b"", b"else"]), _TEXTS, content)
    return st.one_of(parts.map(_form_with_file), parts.map(_form_with_file), _RAW)


def _form_with_file(part: tuple[bytes, str, bytes]) -> bytes:
    name, filename, content = part
    quoted = filename.encode("utf-8", "surrogatepass").replace(b'"', b"%22")[:2000]
    head = b'Content-Disposition: form-data; name="%b"; filename="%b"' % (name, quoted)
    return b"--b\r\n%b\r\n\r\n%b\r\n--b--\r\n" % (head, content)


@dataclass(frozen=True)
class Operation:
    """One method of one path, as OpenAPI describes it."""

    method: str
    path: str
    parameters: tuple[Mapping[str, Any], ...]
    body: Mapping[str, Any] | None
    statuses: frozenset[int]
    #: The first body that the document shows.
    example: Any = None
    takes_file: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Fuzzed:
    """A request, but for the ids in its path and body, which `known` ones may take the place of."""

    operation: Operation
    method: str
    path: Callable[[Mapping[str, list[str]]], str]
    query: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: Callable[[Mapping[str, list[str]]], bytes]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    #: The values of `Set-Cookie`, which may come several times.
    cookies: tuple[str, ...] = ()


def operations(document: Mapping[str, Any]) -> list[Operation]:
    """What an OpenAPI document describes, with its references followed one step at a time."""
    return [
        _operation(method.upper(), path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]


def _operation(method: str, path: str, described: Mapping[str, Any]) -> Operation:
    content = described.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {})
    shown = [body["example"]] if "example" in body else []
    shown += [each["value"] for each in body.get("examples", {}).values()]
    return Operation(
        method,
        path,
        tuple(described.get("parameters", ())),
        body.get("schema"),
        frozenset(int(status) for status in described["responses"] if status.isdigit()),
        shown[0] if shown else None,
        "multipart/form-data" in content,
    )


class Shapes:
    """Values that fit a schema, and some that do not."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = document["components"]["schemas"]

    def requests(self, operation: Operation) -> st.SearchStrategy[Fuzzed]:
        body = _RAW if operation.body is None else self._body(operation.body)
        if operation.takes_file:
            body = _files()
        return st.builds(
            Fuzzed,
            st.just(operation),
            st.sampled_from([operation.method] * 80 + list(METHODS)),
            self._path(operation),
            self._query(operation),
            self._headers(_FORM_TYPES if operation.takes_file else _CONTENT_TYPES),
            body,
        ).map(_with_callable_body)

    def _body(self, schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
        fitting = self.value(schema)
        return st.one_of(
            fitting,
            fitting,
            st.tuples(fitting, _TEXTS, _JUNK).map(lambda t: _with_one_changed(*t)),
            st.tuples(fitting, _TEXTS, _JUNK).map(lambda t: _with_one_changed(*t)),
            _JUNK,
            _RAW,
        )

    def _path(self, operation: Operation) -> st.SearchStrategy[Callable[..., str]]:
        names = kinds_in(operation.path)
        choices = st.tuples(
            *(st.tuples(st.integers(0, 4), st.integers(0, 99), _TEXTS) for _ in names)
        )

        def build(chosen: Any) -> Callable[..., str]:
            def path(known: Mapping[str, list[str]]) -> str:
                text = by_kind(operation.path)
                for name, (use_known, number, odd) in zip(names, chosen, strict=True):
                    ids = known.get(name, [])
                    value = ids[number % len(ids)] if use_known and ids else odd[:2000]
                    raw = quote(value.encode("utf-8", "surrogatepass"), safe="")
                    text = text.replace(f"{{{name}}}", raw)
                return text

            return path

        return choices.map(build)

    def _query(self, operation: Operation) -> st.SearchStrategy[bytes]:
        named = [
            st.tuples(st.just(p["name"]), st.one_of(self.value(p.get("schema", {})), _JUNK)).map(
                _pair
            )
            for p in operation.parameters
            if p["in"] == "query"
        ]
        odd = st.tuples(_TEXTS, _TEXTS).map(_pair)
        pairs = st.one_of(*named, *named, odd) if named else odd
        return st.one_of(
            st.just(b""),
            st.lists(pairs, max_size=3).map(b"&".join),
            st.sampled_from([b"?", b"&&==", b"%", b"limit=%ff", b"a" * 5000, b"limit[]=1"]),
        )

    @staticmethod
    def _headers(
        content_types: st.SearchStrategy[bytes],
    ) -> st.SearchStrategy[tuple[tuple[bytes, bytes], ...]]:
        keys = st.one_of(
            st.none(),
            st.text("abcdef0123456789", min_size=8, max_size=9).map(str.encode),
            st.sampled_from([b"", b"short", b"\xff" * 20, b"x" * 300]),
        )

        def build(chosen: tuple[bytes, bytes | None]) -> tuple[tuple[bytes, bytes], ...]:
            content_type, key = chosen
            found = [(b"content-type", content_type)]
            return tuple([*found, (b"idempotency-key", key)] if key is not None else found)

        return st.tuples(content_types, keys).map(build)

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
        """Values of about the described shape; at the depth of nonsense, junk."""
        if depth > 6:
            return _JUNK
        if "$ref" in schema:
            return self.value(self._schemas[schema["$ref"].rpartition("/")[2]], depth + 1)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return st.one_of(*(self.value(one, depth + 1) for one in schema[several]))
        kinds: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: st.lists(self.value(schema.get("items", {}), depth + 1), max_size=4),
            "string": lambda: self._string(schema),
            "integer": lambda: st.integers(schema.get("minimum", -5), schema.get("maximum", 10**6)),
            "number": lambda: st.floats(0, 10**6),
            "boolean": st.booleans,
            "null": st.none,
        }
        kind = kinds.get(schema.get("type", ""))
        return kind() if kind else _JUNK

    def _object(self, schema: Mapping[str, Any], depth: int) -> st.SearchStrategy[Any]:
        required = set(schema.get("required", ()))
        fields = {
            name: self._id_or(name, self.value(inner, depth + 1))
            for name, inner in schema.get("properties", {}).items()
        }
        return st.fixed_dictionaries(
            {name: value for name, value in fields.items() if name in required},
            optional={name: value for name, value in fields.items() if name not in required},
        )

    @staticmethod
    def _id_or(name: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        """A place for a known id where the field is named after one."""
        if not name.endswith(("_id", "slug", "code")):
            return value
        return st.one_of(st.integers(0, 99).map(lambda number: Known(name, number)), value)

    @staticmethod
    def _string(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
        least, most = schema.get("minLength", 0), min(schema.get("maxLength", 40), 200)
        samples = [
            "https://shop.example/a?b=c",
            "https://127.0.0.1:9/hook",
            "messenger_a",
            "en",
            "*",
        ]
        fitting = st.text(
            st.characters(exclude_categories=["Cs", "Cc"]), min_size=least, max_size=most
        )
        return st.one_of(fitting, st.sampled_from(samples))


@dataclass(frozen=True)
class Known:
    """The place of an id that the service has given out."""

    name: str
    number: int


def _with_callable_body(request: Fuzzed) -> Fuzzed:
    made = cast("Any", request.body)

    def body(known: Mapping[str, list[str]]) -> bytes:
        if isinstance(made, bytes):
            return made
        return json.dumps(_filled(made, known)).encode()

    return Fuzzed(
        request.operation, request.method, request.path, request.query, request.headers, body
    )


def _filled(value: Any, known: Mapping[str, list[str]]) -> Any:
    match value:
        case Known(name, number):
            ids = known.get(name) or ["none"]
            return ids[number % len(ids)]
        case dict():
            return {key: _filled(inner, known) for key, inner in value.items()}
        case list():
            return [_filled(inner, known) for inner in value]
    return value


def _with_one_changed(value: Any, name: str, junk: Any) -> Any:
    """An object with a field too many, or one of its values exchanged."""
    if not isinstance(value, dict):
        return junk
    names = sorted(value)
    return {**value, names[len(name) % len(names)] if names and len(name) % 3 else name: junk}


def _pair(pair: tuple[str, Any]) -> bytes:
    name, value = pair
    if name == "wait" and str(value).strip().lstrip("0+") in map(str, POLLS):
        value = 0
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    raw = text[:3000].encode("utf-8", "surrogatepass")
    return quote(name.encode("utf-8", "surrogatepass")).encode() + b"=" + quote(raw).encode()


async def call(
    app: ASGIApp,
    method: str,
    path: str,
    query: bytes,
    headers: tuple[tuple[bytes, bytes], ...],
    body: bytes,
    client: str = "127.0.0.1",
) -> Reply:
    """What a server would hand to the application, and get from it."""
    sent = [{"type": "http.request", "body": body, "more_body": False}]
    status, answered, chunks = 0, dict[str, str](), list[bytes]()
    cookies: list[str] = []

    async def receive() -> Any:
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            answered.update(
                {n.decode().lower(): v.decode("latin-1") for n, v in message["headers"]}
            )
            cookies.extend(
                v.decode("latin-1") for n, v in message["headers"] if n.lower() == b"set-cookie"
            )
        else:
            chunks.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "root_path": "",
        "query_string": query,
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode(),
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-length", str(len(body)).encode()),
            *headers,
        ],
        "client": (client, 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    return Reply(status, answered, b"".join(chunks), tuple(cookies))

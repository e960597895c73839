"""What holds of the protocol for any input: parameters, redirect URIs, credentials and references."""

import base64
import re
from collections import Counter
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from yarl import URL

from msgsvc_core.security import SecretBox
from msgsvc_devkit.core import PROJECT
from msgsvc_oidc.grants.references import AccessToken, References, RefreshToken
from msgsvc_oidc.protocol.client_authentication import (
    ASSERTION_ALGORITHMS,
    ASSERTION_TYPE,
    read_credentials,
)
from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.keys import new_private_jwk, public_jwk, verified_claims
from msgsvc_oidc.protocol.parameters import MAX_PARAMETERS, Parameters, read_form, read_query
from msgsvc_oidc.protocol.redirects import add_parameters, matches, redirect_problem

T = TypeVar("T")

GRANT_ID = "gra_" + "0" * 22

#: What an error description may hold (RFC 6749, section 5.2).
DESCRIPTION = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]*")

#: Pieces of which URIs are made that parsers read in different ways.
PIECES = st.sampled_from(
    [
        *("http", "https", "HTTPS", "com.example.app", "javascript", ":", "/", "//", "///", "\\"),
        *("app.example", "APP.example", "evil.example", "127.0.0.1", "[::1]", "localhost"),
        *("@", ":80", ":443", ":0", ":", ".", "..", "%2e%2e", "%2f", "%5c", "%0d%0a", "%", "?"),
        *("#", "a=1", "code=1", "&", "cb", "*", " ", "\n", "\t", "\0", "а", "０", ";", "'", '"'),
    ]
)
URIS = st.lists(PIECES, max_size=10).map("".join) | st.text(max_size=40)
#: URIs of which many can be registered.
WEB_URIS = st.one_of(
    URIS,
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["https://app.example", "http://localhost", "http://127.0.0.1:80"])
        | st.sampled_from(["com.example.app:", "https://[::1]", "https://xn--80ak6aa92e.example"]),
        st.sampled_from(["", "/", "/cb", ":8080/", "/a;b", "//", "/cb/%20"]),
        st.just("") | URIS.map(lambda text: f"?{text}") | URIS.map(lambda text: f"/{text}"),
    ),
)

PORTS = st.integers(1, 65_535)
LOOPBACK = st.sampled_from(["127.0.0.1", "[::1]"])
PATHS = st.sampled_from(["", "/", "/cb", "/cb?a=1", "?a=1", "/cb/", "/CB"])

NAMES = st.sampled_from(["state", "scope", "Status", "ü", "a b", "x\ny", 'q"\\']) | st.text(
    max_size=5
)
PAIRS = st.lists(st.tuples(NAMES, st.text(max_size=8)), max_size=8)


@given(WEB_URIS, WEB_URIS)
def test_without_ports_to_choose_only_equal_uris_match(first: str, second: str) -> None:
    assert matches(first, second, any_port=False) == (first == second)


@given(WEB_URIS, WEB_URIS)
@example("http://127.0.0.1/cb", "http://127.0.0.1/c\nb")
@example("http://127.0.0.1/cb", "http://127.0.0.1/cb#")
@example("http://127.0.0.1/cb", "http://127.0.0.1/cb?")
@example("http://127.0.0.1/cb", "HTTP://127.0.0.1/cb")
@example("http://127.0.0.1/cb", "http://127.0.0.1:/cb")
@example("http://127.0.0.1/cb", "http://127.0.0.1@evil.example/cb")
@example("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb")
@example("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb")
@example("http://127.0.0.1/cb", "http://localhost/cb")
@example("http://127.0.0.1/cb", "http://[::1]/cb")
def test_matching_uris_of_apps_are_equal_but_for_the_port_of_a_loopback_address(
    first: str, second: str
) -> None:
    if matches(first, second, any_port=True):
        assert _without_port(first) == _without_port(second)


@given(LOOPBACK, PORTS, PORTS, PATHS, PATHS)
def test_an_app_has_any_port_of_its_loopback_address_and_path(
    host: str, mine: int, other: int, path: str, other_path: str
) -> None:
    registered, requested = f"http://{host}:{mine}{path}", f"http://{host}:{other}{other_path}"

    assert matches(registered, requested, any_port=True) == (path == other_path)
    assert matches(registered, requested, any_port=False) == (registered == requested)
    assert matches(f"http://{host}{path}", registered, any_port=True)


@given(WEB_URIS, st.booleans())
@example("https://app.example:/cb", False)
@example("https://app.example/%2E%2e/cb", False)
@example("https://app.example/cb%0d%0aSet-Cookie:a", False)
def test_a_registered_uri_has_one_meaning_for_every_parser(uri: str, public: bool) -> None:
    if redirect_problem(uri, public=public) is not None:
        return
    parts = urlsplit(uri)

    assert re.fullmatch(r"[!-~]+", uri)
    assert not set("#\\") & set(uri)
    assert "@" not in parts.netloc
    if parts.scheme in {"http", "https"}:
        parsed = URL(uri)
        assert (parsed.scheme, parsed.raw_host) == (parts.scheme, parts.hostname)
        # Another parser that resolves dots finds none.
        assert unquote(parsed.raw_path or "/") == unquote(parts.path or "/")
    else:
        assert public
        assert "." in parts.scheme


@given(WEB_URIS, st.dictionaries(st.sampled_from(["code", "state", "iss"]), st.text(), min_size=1))
@example("com.example.app:/cb", {"code": "1"})
@example("com.example.app:///cb", {"code": "1"})
@example("https://app.example/cb?", {"code": "1"})
@example("https://app.example/cb??", {"code": "1"})
@example("https://app.example?a=%20&b", {"code": "\r\nSet-Cookie: a=b"})
def test_parameters_are_added_behind_what_the_uri_has(uri: str, added: dict[str, str]) -> None:
    if redirect_problem(uri, public=True) is not None:
        return
    target = add_parameters(uri, added)
    query = target.partition("?")[2]

    assert target.startswith(uri)
    assert re.fullmatch(r"[!-~]+", target)
    given_before = parse_qsl(uri.partition("?")[2], keep_blank_values=True)
    assert parse_qsl(query, keep_blank_values=True) == [*given_before, *added.items()]


@given(PAIRS)
@example([("state", "1"), ("state", "")])
@example([("state", ""), ("state", "1")])
@example([('a"\n', "1"), ('a"\n', "2")])
def test_parameters_are_as_sent_and_each_comes_once(pairs: list[tuple[str, str]]) -> None:
    assume(not any("\0" in text for pair in pairs for text in pair))
    body = urlencode(pairs, errors="surrogatepass").encode()
    try:
        found = read_form(body, "application/x-www-form-urlencoded; charset=UTF-8")
    except OAuthError:
        assert any(re.search("[\ud800-\udfff]", text) for pair in pairs for text in pair)
        return

    assert dict(found) == {name: value for name, value in pairs if value}
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    assert found.is_repeated(*(name for name, _ in pairs)) == bool(twice)
    if not twice:
        found.check_single()
        return
    with pytest.raises(OAuthError) as caught:
        found.check_single()
    assert DESCRIPTION.fullmatch(caught.value.description)


@given(st.binary(max_size=200), st.sampled_from(["application/x-www-form-urlencoded", "", "a/b"]))
@example(b"a=%ff", "application/x-www-form-urlencoded")
@example(b"a=%00", "application/x-www-form-urlencoded")
@example(b"a=\xff", "application/x-www-form-urlencoded")
@example(b"&a" * (MAX_PARAMETERS + 1), "application/x-www-form-urlencoded")
def test_any_bytes_are_parameters_or_an_error_of_the_protocol(body: bytes, kind: str) -> None:
    for read in (lambda: read_form(body, kind), lambda: read_query(body)):
        found = read_or_error(read)

        if isinstance(found, OAuthError):
            assert found.error == "invalid_request"
            assert DESCRIPTION.fullmatch(found.description)
        else:
            assert len(found) <= MAX_PARAMETERS
            "".join(found.values()).encode()


HEADERS = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.binary(max_size=30).map(lambda raw: f"Basic {base64.b64encode(raw).decode()}"),
)

#: Assertions of which every part is JSON or rubbish.
PARTS = st.one_of(
    st.text(max_size=10),
    st.sampled_from(
        [
            *(b"[]", b"{}", b"1", b'{"sub":"a\\u0000"}', b'{"sub":"\\ud800"}', b"[" * 100_000),
            *(b'{"alg":"none"}', b'{"alg":["RS256"]}', b'{"alg":"RS256","kid":1}'),
        ]
    ).map(lambda raw: base64.urlsafe_b64encode(raw).rstrip(b"=").decode()),
)
ASSERTIONS = st.lists(PARTS, max_size=5).map(".".join)


@given(HEADERS, st.none() | st.text(max_size=8), st.none() | st.text(max_size=8), ASSERTIONS)
@example("Basic " + base64.b64encode(b"app%00:secret").decode(), None, None, "")
def test_any_credentials_name_a_client_or_are_an_error_of_the_protocol(
    header: str | None, client_id: str | None, secret: str | None, assertion: str
) -> None:
    fields = {"client_id": client_id, "client_secret": secret, "client_assertion": assertion}
    fields["client_assertion_type"] = ASSERTION_TYPE
    pairs = [(name, value.replace("\0", "")) for name, value in fields.items() if value]
    found = read_or_error(lambda: read_credentials(header, Parameters(pairs)))

    if isinstance(found, OAuthError):
        assert found.error in {"invalid_client", "invalid_request"}
    else:
        assert "\0" not in found.client_id
        found.client_id.encode()


@given(ASSERTIONS)
def test_what_no_key_has_signed_has_no_claims(text: str) -> None:
    keys = [public_jwk(new_private_jwk("EdDSA", "key_1"))]

    assert verified_claims(text, keys, ASSERTION_ALGORITHMS) is None


def _references() -> References:
    return References(SecretBox(["0" * 64]))


def _made(references: References) -> dict[str, str]:
    """A reference of each kind."""
    access = AccessToken(GRANT_ID, 1_000_000, ("openid", "phone"))
    return {
        "code": references.code(PROJECT, GRANT_ID),
        "access": references.access_token(PROJECT, access),
        "refresh": references.refresh_token(PROJECT, RefreshToken(GRANT_ID, 7)),
        "session": references.make("session", PROJECT, "sid_" + "0" * 22),
        "browser": references.make("browser", PROJECT, "oar_" + "0" * 22),
        "pushed": references.make("pushed", PROJECT, "oar_" + "0" * 22),
    }


KINDS = sorted(_made(_references()))


@given(st.sampled_from(KINDS), st.data())
def test_no_flipped_bit_of_a_reference_is_accepted(kind: str, data: st.DataObject) -> None:
    references = _references()
    raw = bytearray(_made(references)[kind].encode())
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8

    assert references.read(kind, PROJECT, raw.decode("latin-1")) is None


@given(st.sampled_from(KINDS), st.data())
def test_no_cut_or_longer_reference_is_accepted(kind: str, data: st.DataObject) -> None:
    references, text = _references(), _made(_references())[kind]
    start = data.draw(st.integers(0, len(text) - 1))
    changed = data.draw(
        st.sampled_from([text[:start], text[start + 1 :], text + text[start:], f"{text}\n"])
    )

    assert references.read(kind, PROJECT, changed) is None


@pytest.mark.parametrize("made_for", KINDS)
@pytest.mark.parametrize("read_as", KINDS)
def test_a_reference_serves_one_purpose_in_one_project(made_for: str, read_as: str) -> None:
    references = _references()
    text = _made(references)[made_for]

    assert (references.read(read_as, PROJECT, text) is not None) == (made_for == read_as)
    assert references.read(read_as, "prj_other", text) is None


def read_or_error(read: Callable[[], T]) -> T | OAuthError:
    try:
        return read()
    except OAuthError as error:
        return error


def _without_port(uri: str) -> str:
    return re.sub(r"^(http://(?:127\.0\.0\.1|\[::1\])):[0-9]+(?=[/?]|$)", r"\1", uri)

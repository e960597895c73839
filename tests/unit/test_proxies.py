"""Whom we believe about who is calling."""

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.http.proxies import TrustedProxies, client_address
from msgsvc_core.security.networks import Networks

PROXIES = Networks(["10.0.0.0/8", "fd00::/8"])
PROXY = ip_address("10.0.0.1")
STRANGER = "203.0.113.7"

proxy_addresses = st.one_of(
    st.integers(0, 2**24 - 1).map(lambda number: str(ip_address(0x0A000000 + number))),
    st.integers(0, 2**120 - 1).map(lambda number: str(ip_address((0xFD << 120) + number))),
)
strangers = st.ip_addresses().filter(
    lambda address: (
        address not in PROXIES
        and getattr(address, "ipv4_mapped", None) is None
        and getattr(address, "scope_id", None) is None
    )
)
#: What a caller may write: addresses, almost addresses, and anything else that fits in a header.
claims = st.one_of(
    st.ip_addresses().map(str),
    proxy_addresses,
    st.text(st.characters(max_codepoint=255, exclude_characters="\0\r\n"), max_size=40),
    st.sampled_from(["unknown", "_hidden", "", "[::1", "1.2.3.4:99999", "::ffff:10.0.0.1"]),
)


async def seen(
    client: Any, *headers: tuple[str, str], proxies: Networks = PROXIES, on_unix: bool = False
) -> Any:
    """The scope that the application behind the middleware gets."""
    found: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        found.append(scope)

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    scope = {"type": "http", "client": client, "scheme": "http", "headers": raw}
    await TrustedProxies(app, proxies, on_unix=on_unix)(scope, None, None)  # type: ignore[arg-type]  # the app calls neither
    return found[0]


async def test_a_peer_on_the_unix_socket_is_a_proxy_on_this_machine() -> None:
    forwarded = ("X-Forwarded-For", f"198.51.100.1, {STRANGER}")
    through = await seen(None, forwarded, ("X-Forwarded-Proto", "https"), on_unix=True)
    silent = await seen(None, on_unix=True)
    elsewhere = await seen(None, forwarded)

    assert (through["client"], through["scheme"]) == ((STRANGER, 0), "https")
    assert silent["client"] == ("127.0.0.1", 0)
    assert elsewhere["client"] is None


async def test_with_a_unix_socket_nothing_is_believed_of_an_address() -> None:
    scope = await seen((STRANGER, 5), ("X-Forwarded-For", "127.0.0.1"), on_unix=True)

    assert scope["client"] == (STRANGER, 5)


async def test_nothing_is_believed_of_a_stranger() -> None:
    scope = await seen(
        (STRANGER, 5), ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Proto", "https")
    )

    assert scope["client"] == (STRANGER, 5)
    assert scope["scheme"] == "http"


async def test_a_trusted_proxy_says_who_called_it_and_how() -> None:
    scope = await seen(
        ("10.0.0.1", 5), ("X-Forwarded-For", STRANGER), ("X-Forwarded-Proto", "https")
    )

    assert scope["client"] == (STRANGER, 0)
    assert scope["scheme"] == "https"


async def test_an_ipv6_socket_shows_an_ipv4_proxy_in_its_own_way() -> None:
    scope = await seen(("::ffff:10.0.0.1", 5), ("X-Forwarded-For", STRANGER))

    assert scope["client"] == (STRANGER, 0)


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("203.0.113.7:4711", STRANGER),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:DB8::7]:443", "2001:db8::7"),
        ("::ffff:203.0.113.7", STRANGER),
    ],
)
async def test_an_address_is_understood_however_it_is_written(entry: str, address: str) -> None:
    scope = await seen(("10.0.0.1", 5), ("X-Forwarded-For", f"1.1.1.1, {entry} ,10.0.0.2"))

    assert scope["client"] == (address, 0)


@pytest.mark.parametrize(
    "entry",
    [
        "unknown",
        "",
        "_x",
        "1.2.3",
        "[::1",
        "[::1]x",
        "1.2.3.4:x",
        "fe80::1%e",
        "1.2.3.4:123456",
        '"1.2.3.4"',
    ],
)
async def test_behind_what_is_no_address_nobody_is_seen(entry: str) -> None:
    scope = await seen(("10.0.0.1", 5), ("X-Forwarded-For", f"{STRANGER}, {entry}, 10.0.0.2"))

    assert scope["client"] == ("10.0.0.2", 0)


async def test_several_header_lines_are_one_list() -> None:
    scope = await seen(
        ("10.0.0.1", 5),
        ("X-Forwarded-For", "1.1.1.1"),
        ("X-Forwarded-For", f"{STRANGER}, 10.0.0.2"),
    )

    assert scope["client"] == (STRANGER, 0)


@pytest.mark.parametrize("protocol", ["gopher", "", "HTTPS", "https, gopher"])
async def test_a_protocol_that_is_none_changes_nothing(protocol: str) -> None:
    scope = await seen(("10.0.0.1", 5), ("X-Forwarded-Proto", protocol))

    assert scope["scheme"] == "http"


async def test_the_protocol_is_what_the_nearest_proxy_says() -> None:
    scope = await seen(("10.0.0.1", 5), ("X-Forwarded-Proto", "https, http"))

    assert scope["scheme"] == "http"


async def test_a_caller_without_an_address_stays_so() -> None:
    scope = await seen(None, ("X-Forwarded-For", STRANGER))

    assert scope["client"] is None


@settings(deadline=None)  # other work on the machine
@given(claimed=st.lists(claims), caller=strangers, hops=st.lists(proxy_addresses, max_size=4))
def test_nobody_can_name_another_address_than_its_own(
    claimed: list[str], caller: Any, hops: list[str]
) -> None:
    # A comma in a claim makes two of it, as in a header.
    header = ",".join([*claimed, str(caller), *hops]).split(",")

    assert client_address(PROXY, [entry.strip() for entry in header], PROXIES) == caller


@settings(deadline=None)  # other work on the machine
@given(claimed=st.lists(claims))
def test_whatever_stands_there_an_address_comes_out(claimed: list[str]) -> None:
    found = client_address(PROXY, claimed, PROXIES)

    assert ip_address(str(found)) == found


@pytest.mark.parametrize(
    "ranges", [["0.0.0.0/0"], ["::/0"], ["10.0.0.1/8"], ["proxy.example"], ["*"]]
)
def test_a_range_that_trusts_all_or_is_none_is_refused(ranges: list[str]) -> None:
    with pytest.raises(ValidationError, match="trusted_proxies"):
        ServerSettings.model_validate({"trusted_proxies": ranges})

"""Which hosts and URLs the outbound guard lets through, and which it refuses."""

import pytest

from msgsvc_core.http_client.connecting import GuardedNames
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

GUARD = OutboundGuard(allow_http=True)

FORBIDDEN_HOSTS = [
    # loopback in every spelling inet_aton knows
    "127.0.0.1",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.0x0.0.1",
    "127.0.0.01",
    "00000127.0.0.1",
    "4294967297",
    "0",
    "0.0.0.0",  # noqa: S104 - an address to refuse, not to listen on
    "0x",
    "1.2.3.4.5",
    "256.256.256.256",
    "127.0.0.0x1",
    # other scripts and percent signs
    "１２７.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "127．0．0．1",
    "١٢٧.0.0.1",
    "%31%32%37.0.0.1",
    "127.0.0.1%2f.example.com",
    "loc\u00adalhost",
    "127.0.0.1\u200b",
    # private, link-local, metadata, shared, special
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "0xa9fea9fe",
    "2852039166",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    # IPv6
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fe80::1%eth0]",
    "[2a00:1450::1%25eth0]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[100::1]",
    "[5f00::1]",
    "[2001:db8::1]",
    "[2001:2::1]",
    "[2001:20::1]",
    "[3fff::1]",
    # IPv4 inside IPv6
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::FFFF:A9FE:A9FE]",
    "[::ffff:169.254.169.254]",
    "[::127.0.0.1]",
    "[::8.8.8.8]",
    "[::ffff:0:127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::8.8.8.8]",
    "[2a00:1450::5efe:10.0.0.1]",
    "[2a00:1450::200:5efe:10.0.0.1]",
    "[127.0.0.1]",
    "[::1",
    "[]",
    "::1",
    # names
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ⓛocalhost",
    "ｌｏｃａｌｈｏｓｔ",
    "api.localhost",
    "printer.local",
    "metadata.google.internal",
    "metadata.google.internal.",
    "a..example.com",
    ".example.com",
    "example.com..",
    ".",
    "exa mple.com",
    "a,b.example.com",
    "a" * 64 + ".com",
    ".".join(["a" * 60] * 5),
]

ALLOWED_HOSTS = [
    "example.com",
    "example.com.",
    "EXAMPLE.com",
    "hooks_1.example.com",
    "bücher.example",
    "пример.рф",
    "xn--e1afmkfd.xn--p1ai",
    "localhost.example.com",
    "local.example.com",
    "127.0.0.1.nip.io",  # its address is for the resolver to refuse
    "1password.com",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "[2a00:1450:4001:81b::200e]",
    "[2606:4700:4700::1111]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
]


@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
@pytest.mark.parametrize("shape", ["http://{}/hook", "https://{}", "https://{}:8443/?a=b#c"])
def test_host_of_our_own_network_is_refused(host: str, shape: str):
    with pytest.raises(ForbiddenTarget):
        GUARD.check_url(shape.format(host))


@pytest.mark.parametrize("host", ALLOWED_HOSTS)
def test_public_host_is_let_through(host: str):
    GUARD.check_url(f"https://{host}:8443/hook?mail=a@b.example#c")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com:70/_x",
        "unix:///run/x.sock",
        "ws://example.com/",
        "javascript:alert(1)",
        "https:example.com",
        "https:/example.com",
        "https://",
        "https:///path",
        "https://?q",
        "https://:443/",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://:@example.com/",
        "https://@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1\\@example.com/",
        "https://example.com\\.internal/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:-1/",
        "https://example.com:http/",
        " https://example.com/",
        "https://example.com/ x",
        "https://exa\tmple.com/",
        "https://example.com/\r\nHost: evil",
        "https://\x00example.com/",
        "https://\ud800.com/",
    ],
)
def test_url_of_a_bad_form_is_refused(url: str):
    with pytest.raises(ForbiddenTarget):
        GUARD.check_url(url)


def test_plain_http_is_refused_unless_allowed():
    with pytest.raises(ForbiddenTarget, match="must begin with https"):
        OutboundGuard().check_url("http://example.com/")

    OutboundGuard().check_url("https://example.com/")


def test_reason_is_the_whole_message():
    with pytest.raises(ForbiddenTarget) as refused:
        GUARD.check_url("https://10.0.0.1/")

    assert str(refused.value) == refused.value.reason == "the address 10.0.0.1 is not public"


def test_opened_range_lets_its_literal_addresses_through():
    guard = OutboundGuard(allow_cidrs=["127.0.0.0/8", "fd00::/8"])

    guard.check_url("https://127.0.0.1:8000/")
    guard.check_url("https://[fd12::1]/")
    guard.check_url("https://[::ffff:127.0.0.1]/")
    with pytest.raises(ForbiddenTarget):
        guard.check_url("https://10.0.0.1/")
    with pytest.raises(ForbiddenTarget):
        guard.check_url("https://127.1/")


def test_bad_range_is_refused_at_once():
    with pytest.raises(ValueError, match="host bits set"):
        OutboundGuard(allow_cidrs=["10.0.0.1/8"])


@pytest.mark.parametrize(
    "text", ["", "example.com", "127.1", "fe80::1%eth0", "8.8.8.8%1", "8.8.8.8/32"]
)
def test_text_that_is_no_plain_address_is_not_allowed(text: str):
    assert not OutboundGuard(allow_cidrs=["0.0.0.0/0", "::/0"]).is_allowed(text)


async def resolve(guard: OutboundGuard = GUARD, host: str = "hooks.example.com") -> list[str]:
    found = await GuardedNames(guard).resolve(host, 443)
    return [address[0] for *_, address in found]


async def test_name_is_refused_when_any_of_its_addresses_is(answer_dns):
    answer_dns("8.8.8.8", "10.0.0.1")

    with pytest.raises(NoPublicHost) as refused:
        await resolve()

    assert "10.0.0.1" not in refused.value.reason


async def test_name_with_public_addresses_alone_is_let_through(answer_dns):
    answer_dns("8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808")

    assert await resolve() == ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "169.254.169.254"]
)
async def test_name_that_leads_inside_is_refused(answer_dns, address: str):
    answer_dns(address)

    with pytest.raises(ForbiddenTarget):
        await resolve()


async def test_local_name_is_let_through_when_its_addresses_are_opened(answer_dns):
    answer_dns("127.0.0.1")
    opened, other = (OutboundGuard(allow_cidrs=[cidr]) for cidr in ("127.0.0.0/8", "10.0.0.0/8"))

    opened.check_url("https://localhost/")
    assert await resolve(opened, "localhost") == ["127.0.0.1"]
    other.check_url("https://localhost/")
    with pytest.raises(ForbiddenTarget):
        await resolve(other, "localhost")

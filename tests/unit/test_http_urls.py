"""The one type of the URLs that tenants give."""

import pytest

from msgsvc_core.pages.headers import page_headers
from msgsvc_core.security.http_urls import WrongUrl, check_http_url, origin_of


@pytest.mark.parametrize(
    "url",
    [
        "https://a;sandbox/x",
        "https://a,b/x",
        "https://a'b/x",
        "https://a..b/x",
        "https://-a/x",
        f"https://{'x' * 64}.example/x",
        "https://%61.example/x",
        "https://a*b/x",
    ],
)
def test_a_host_that_parsers_read_differently_is_refused(url: str) -> None:
    with pytest.raises(WrongUrl):
        check_http_url(url)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://пример.рф/путь?a=b", "https://xn--e1afmkfd.xn--p1ai"),
        ("https://Shop.example:8443/x", "https://shop.example:8443"),
        ("http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080"),
        ("https://user@my_files.example/x", "https://my_files.example"),
        ("https://127.0.0.1/x", "https://127.0.0.1"),
    ],
)
def test_an_origin_is_what_a_header_may_carry(url: str, origin: str) -> None:
    assert origin_of(url) == origin
    assert f" {origin};" in page_headers(forms_to=[url])["Content-Security-Policy"]

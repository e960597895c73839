"""Who may act as anybody in the messenger."""

import pytest

from msgsvc_core.kernel.errors import Forbidden
from msgsvc_sandbox.admission import Admission

#: What a program on this machine sends.
HERE = {"host": "localhost:8000"}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "192.168.1.7", "10.0.0.1", ""])
def test_this_machine_and_private_networks_are_served(address: str) -> None:
    Admission("local", "https://shop.example").check("POST", address, HERE)


@pytest.mark.parametrize(
    ("address", "headers"),
    [("198.20.0.5", {}), ("127.0.0.1", {"x-forwarded-for": "10.0.0.1"}), ("::1", {"via": "1.1"})],
)
def test_strangers_and_whoever_comes_by_a_proxy_are_served_where_everyone_is(
    address: str, headers: dict[str, str]
) -> None:
    Admission("everyone", "https://shop.example").check("GET", address, HERE | headers)
    with pytest.raises(Forbidden):
        Admission("local", "https://shop.example").check("GET", address, HERE | headers)


@pytest.mark.parametrize("who", ["local", "everyone"])
def test_a_name_that_is_not_ours_leads_to_nothing(who: str) -> None:
    admission = Admission("local" if who == "local" else "everyone", "https://shop.example")
    for ours in ("localhost", "127.0.0.1:8000", "[::1]:8000", "shop.example"):
        admission.check("GET", "127.0.0.1", {"host": ours})

    for other in ("evil.example", "shop.example.evil.example", "", "["):
        with pytest.raises(Forbidden):
            admission.check("GET", "127.0.0.1", {"host": other})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_site_may_link_here_and_change_nothing(headers: dict[str, str]) -> None:
    admission = Admission("everyone", "https://shop.example")
    admission.check("GET", "127.0.0.1", HERE | headers)

    for method in ("POST", "PATCH", "DELETE"):
        with pytest.raises(Forbidden, match="another site"):
            admission.check(method, "127.0.0.1", HERE | headers)


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://SHOP.example"])
def test_our_own_pages_change_what_they_want(origin: str) -> None:
    admission = Admission("everyone", "https://shop.example")
    admission.check("POST", "198.20.0.5", {"host": "localhost:8000", "origin": origin})

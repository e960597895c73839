"""Who may act as anybody in the messenger."""

import pytest

from msgsvc_core.kernel.errors import Forbidden
from msgsvc_sandbox.admission import Admission

OURS = "https://shop.example"

#: What a program on this machine sends.
HERE = {"host": "localhost:8000"}


def is_served(admission: Admission, method: str, address: str, headers: dict[str, str]) -> bool:
    try:
        admission.check(method, address, headers)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "192.168.1.7", "10.0.0.1", ""])
def test_this_machine_and_private_networks_are_served(address: str) -> None:
    assert is_served(Admission("local", OURS), "POST", address, HERE)


@pytest.mark.parametrize(
    ("address", "headers"),
    [("198.20.0.5", {}), ("127.0.0.1", {"x-forwarded-for": "10.0.0.1"}), ("::1", {"via": "1.1"})],
)
def test_strangers_and_whoever_comes_by_a_proxy_are_served_where_everyone_is(
    address: str, headers: dict[str, str]
) -> None:
    everyone = Admission("everyone", OURS)
    local = Admission("local", OURS)

    assert is_served(everyone, "GET", address, HERE | headers)
    assert not is_served(local, "GET", address, HERE | headers)


@pytest.mark.parametrize(
    ("host", "served"),
    [
        ("localhost", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("shop.example", True),
        ("evil.example", False),
        ("shop.example.evil.example", False),
        ("", False),
        ("[", False),
    ],
)
def test_only_names_of_this_service_lead_to_the_messenger(host: str, served: bool) -> None:
    admissions = (Admission("local", OURS), Admission("everyone", OURS))

    assert [is_served(each, "GET", "::1", {"host": host}) for each in admissions] == [served] * 2


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
    admission = Admission("everyone", OURS)
    methods = ("GET", "HEAD", "POST", "PATCH", "DELETE")
    served = [is_served(admission, each, "::1", HERE | headers) for each in methods]

    assert served == [True, True, False, False, False]


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://SHOP.example"])
def test_our_own_pages_change_what_they_want(origin: str) -> None:
    headers = {"host": "localhost:8000", "origin": origin}

    assert is_served(Admission("everyone", OURS), "POST", "198.20.0.5", headers)

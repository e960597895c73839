"""What the checker of redirect URIs says."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgsvc_oidc.protocol.redirect_differences import compare, differences
from msgsvc_oidc.protocol.redirects import matches

CALLBACK = "https://app.example/callback"


@pytest.mark.parametrize(
    ("sent", "kind", "registered_part", "sent_part"),
    [
        ("http://app.example/callback", "scheme", "https", "http"),
        ("HTTPS://app.example/callback", "scheme", "https", "HTTPS"),
        ("https://ann@app.example/callback", "user_info", "", "ann"),
        ("https://www.app.example/callback", "host", "app.example", "www.app.example"),
        ("https://App.example/callback", "host_case", "app.example", "App.example"),
        ("https://app.example:443/callback", "port", "", "443"),
        ("https://app.example:8443/callback", "port", "", "8443"),
        ("https://app.example/callback/", "trailing_slash", "/callback", "/callback/"),
        ("https://app.example/Callback", "path_case", "/callback", "/Callback"),
        ("https://app.example/c%61llback", "encoding", "/callback", "/c%61llback"),
        ("https://app.example/login", "path", "/callback", "/login"),
        ("https://app.example/callback?a=1", "query", "", "a=1"),
        ("https://app.example/callback#top", "fragment", "", "top"),
        (f"{CALLBACK}?", "characters", CALLBACK, f"{CALLBACK}?"),
        ("https://app.example:/callback", "characters", CALLBACK, "https://app.example:/callback"),
    ],
)
def test_one_difference_is_named_with_both_sides(
    sent: str, kind: str, registered_part: str, sent_part: str
) -> None:
    found = compare([CALLBACK], sent, any_port=False)

    assert not found.matches
    [difference] = found.differences
    assert difference.kind == kind
    assert (difference.registered, difference.sent) == (registered_part, sent_part)


@pytest.mark.parametrize(
    ("registered", "sent"),
    [
        ("http://localhost/cb", "http://127.0.0.1/cb"),
        ("http://127.0.0.1/cb", "http://localhost/cb"),
        ("http://127.0.0.1/cb", "http://[::1]/cb"),
    ],
)
def test_names_of_this_machine_are_different_hosts(registered: str, sent: str) -> None:
    [difference] = compare([registered], sent, any_port=True).differences

    assert difference.kind == "loopback"


def test_what_matches_has_no_differences() -> None:
    found = compare(["https://other.example/", CALLBACK], CALLBACK, any_port=False)

    assert (found.matches, found.nearest, found.differences) == (True, CALLBACK, ())


def test_an_app_may_choose_its_port_on_a_loopback_address() -> None:
    registered, sent = "http://127.0.0.1/cb", "http://127.0.0.1:51234/cb"
    app, site = (compare([registered], sent, any_port=any_port) for any_port in (True, False))

    assert (app.matches, site.matches) == (True, False)
    assert [each.kind for each in site.differences] == ["port"]


def test_the_closest_registered_uri_is_compared() -> None:
    far = "https://wiki.example/oidc/done"
    found = compare([far, CALLBACK], "https://app.example/callback/", any_port=False)

    assert found.nearest == CALLBACK


def test_all_differences_are_listed_from_left_to_right() -> None:
    found = differences(CALLBACK, "http://app.example:8080/callback/?next=1")

    assert [each.kind for each in found] == ["scheme", "port", "trailing_slash", "query"]


@pytest.mark.parametrize(
    "pasted",
    [
        f"  {CALLBACK}\n",
        quote(CALLBACK, safe=""),
        f"https://msgsvc.example/oidc/prj_1/authorize?state=x&redirect_uri={quote(CALLBACK, safe='')}",
        f"?client_id=app_1&redirect_uri={CALLBACK}&state=x",
    ],
)
def test_the_uri_is_found_in_what_was_pasted(pasted: str) -> None:
    assert compare([CALLBACK], pasted, any_port=False).matches


def test_without_a_registered_uri_there_is_nothing_to_compare_with() -> None:
    found = compare([], CALLBACK, any_port=False)

    assert (found.matches, found.nearest, found.differences) == (False, None, ())


@pytest.mark.parametrize(
    "sent", ["", "callback", "https://[::1", "https://app.example:port/", "//", "\x00"]
)
def test_what_is_no_uri_matches_nothing_and_differs(sent: str) -> None:
    found = compare([CALLBACK], sent, any_port=False)

    assert not found.matches
    assert found.differences


@given(
    st.sampled_from(["http://", "https://", CALLBACK, CALLBACK[:-1]]),
    st.text("ab/:@?#%.[]1A \t", max_size=12),
)
def test_a_uri_that_does_not_match_differs_in_something(start: str, rest: str) -> None:
    sent = f"{start}{rest}"

    assert matches(CALLBACK, sent, any_port=False) or differences(CALLBACK, sent)

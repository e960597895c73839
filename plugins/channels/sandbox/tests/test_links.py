"""Start links, as they are written and read back."""

import pytest

from msgsvc_sandbox.links import StartLink, read_start_link, start_link


def test_a_written_link_is_read_back() -> None:
    link = start_link("https://msg.example/", "messenger_a", "auth_a-B_9")

    assert link == "https://msg.example/sandbox/open/messenger_a?start=auth_a-B_9"
    assert read_start_link(link) == StartLink("messenger_a", "auth_a-B_9")


def test_a_link_is_read_whatever_host_and_prefix_it_has() -> None:
    link = " http://localhost:8000/below/sandbox/open/messenger_a?start=x&utm=1\n"

    assert read_start_link(link) == StartLink("messenger_a", "x")


def test_a_link_without_payload_only_opens_the_bot() -> None:
    link = start_link("http://x", "messenger_a", "")

    assert read_start_link(link) == StartLink("messenger_a", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "https://shop.example/login",
        "http://[broken/sandbox/open/messenger_a",
        "http://x/sandbox/open/",
        "http://x/sandbox/open/messenger_a?start=" + "a" * 65,
        "http://x/sandbox/open/messenger_a?start=a%20b",
        "http://x/sandbox/open/messenger_a?start=%D1%84",
        "http://x/sandbox/open/messenger_a?start=a%0A",
    ],
)
def test_anything_else_is_no_start_link(text: str) -> None:
    assert read_start_link(text) is None

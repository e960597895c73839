"""The site that signs people in, behind a real server, and the person who says Yes or Cancel."""

from collections.abc import AsyncIterator

import pytest

from examples.embed.tests.test_embed import Shop, make, served
from msgsvc_core.channels import ButtonPressed, ChannelUser, Started
from msgsvc_devkit import RecordingChannel, settled

# It needs the plugin auth.
sign_in = pytest.importorskip("examples.embed.sign_in_app")

ANN = ChannelUser("1001", "Ann", lang="en")


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """A site for all of these tests, in each of which somebody signs in anew."""
    database = tmp_path_factory.mktemp("site") / "site.db"
    async with served(make(sign_in.build, database, plugins=["auth"])) as running:
        yield running


async def answer(site: Shop, link: str, text: str) -> None:
    """Ann opens the link, and presses the button with that text."""
    payload = link.partition("start=")[2]
    receive = site.service.inbound.receive
    await receive(
        "messenger_a", Started(update_id=f"s-{payload}", chat_id="c", user=ANN, payload=payload)
    )
    await settled(site.service)
    channel = site.service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    question = channel.sent[-1]
    [data] = [b.data for row in question.message.buttons for b in row if b.text == text]
    await receive(
        "messenger_a",
        ButtonPressed(
            update_id=f"p-{payload}",
            chat_id="c",
            user=ANN,
            data=data or "",
            message_ref=question.message_ref,
            button_ref=f"b-{payload}",
        ),
    )
    await settled(site.service)


async def test_who_says_yes_is_known_to_the_site(site: Shop) -> None:
    begun = await site.client.post("/sign-in")
    await answer(site, begun.json()["links"]["messenger_a"], "Yes")
    known = await site.client.get("/sign-in/wait")
    again = await site.client.get("/sign-in/wait")

    assert known.json()["status"] == "signed in"
    assert known.json()["name"] == "Ann"
    assert known.json()["id"].startswith("sub_")
    assert again.json() == {"status": "consumed"}


async def test_who_presses_cancel_is_not(site: Shop) -> None:
    begun = await site.client.post("/sign-in")
    await answer(site, begun.json()["links"]["messenger_a"], "Cancel")
    known = await site.client.get("/sign-in/wait")

    assert known.json() == {"status": "denied"}


async def test_another_browser_learns_nothing_of_it(site: Shop) -> None:
    begun = await site.client.post("/sign-in")
    site.client.cookies.clear()
    await answer(site, begun.json()["links"]["messenger_a"], "Yes")
    stranger = await site.client.get("/sign-in/wait")

    assert (stranger.status_code, stranger.json()) == (404, {"error": "not_found"})

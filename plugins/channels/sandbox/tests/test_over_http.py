"""The test API against a service that listens, which is how other programs use it."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn

from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.platforms.sandbox import Sandbox


@pytest.fixture
async def sandbox(service: Service) -> AsyncIterator[Sandbox]:
    """The messenger of `service`, over a real socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(service.app, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with Sandbox.over_http(f"http://127.0.0.1:{listener.getsockname()[1]}") as sandbox:
        yield sandbox
    server.should_exit = True
    await serving


async def test_a_person_attaches_answers_and_changes(service: Service, sandbox: Sandbox) -> None:
    anna = await sandbox.person("Anna")
    await anna.open(service.channels["messenger_a"].deep_link("echo_1"))
    question = await anna.wait_for(button="Yes")

    sent = await anna.send_file("Счёт №7.pdf", b"%PDF-1.7", "My bill & <more>")
    said = await anna.say("no", reply_to=question.ref)
    changed = await anna.edit(said, "yes")

    assert sent.media is not None
    assert (sent.media.type, sent.media.filename) == ("document", "Счёт №7.pdf")
    assert sent.text == "My bill & <more>"
    assert (changed.text, changed.reply_to) == ("yes", question.ref)


@pytest.mark.both_databases
async def test_a_person_opens_presses_says_and_blocks(service: Service, sandbox: Sandbox) -> None:
    anna = await sandbox.person("Anna", username="anna", lang="ru")

    channel = await anna.open(service.channels["messenger_a"].deep_link("echo_1"))
    question = await anna.press("Yes")
    thanks = await anna.wait_for(text="Thanks, Anna")
    await anna.say("more?")
    await anna.wait_for(text="You said: more?", channel="messenger_a")
    await anna.block()
    await anna.unblock()

    assert channel == "messenger_a"
    assert thanks.ref == question.ref
    assert [message.text for message in await anna.messages()] == [
        "Thanks, Anna",
        "You said: more?",
    ]


async def test_a_channel_is_made_to_fail_and_healed(service: Service, sandbox: Sandbox) -> None:
    anna = await sandbox.person("Anna")
    await sandbox.fail("messenger_a", "bot_banned")
    await anna.start("messenger_a", "echo_1")
    await settled(service)
    while_failing = await anna.messages()
    await sandbox.slow("messenger_a", 0.1, times=1)
    await sandbox.heal("messenger_a")

    await anna.say("again")

    await anna.wait_for(text="You said: again")
    assert while_failing == []


async def test_refusals_are_the_errors_that_they_are_in_process(sandbox: Sandbox) -> None:
    anna = await sandbox.person("Anna")

    with pytest.raises(NotFound):
        await anna.start("messenger_z")
    with pytest.raises(ValidationFailed, match="start link"):
        await anna.open("https://shop.example")


async def test_waiting_in_vain_says_what_there_was_instead(sandbox: Sandbox) -> None:
    anna = await sandbox.person("Anna")
    await anna.start("messenger_a", "echo_1")
    await anna.wait_for(button="Yes")

    with pytest.raises(TimeoutError, match=r"Is it you\?"):
        await anna.wait_for(text="something else", timeout_s=0.2)

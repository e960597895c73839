"""Connections, servers that take over, TLS, and what replies mean."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from msgsvc_core.channels import OutgoingMessage, Reason
from msgsvc_devkit import FakeClock
from msgsvc_devkit.certificates import server_context, write_certificate
from msgsvc_devkit.platforms.email import FakeMail, Person
from msgsvc_devkit.platforms.email.faults import Step
from msgsvc_devkit.work import until
from msgsvc_email.channel import EmailChannel
from msgsvc_email.failures import refusal

from .conftest import ChannelFactory, failure_of

HELLO = OutgoingMessage("Hello").with_key("msg_1")


@pytest.mark.parametrize(
    ("step", "reply", "reason"),
    [
        ("RCPT", "550 5.1.1 unknown user", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 5.1.10 null MX", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 5.2.1 mailbox disabled", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 no such user", Reason.CHAT_NOT_FOUND),
        ("RCPT", "552 5.2.2 mailbox full", Reason.UNKNOWN),
        ("RCPT", "550 5.7.1 blocked by policy", Reason.INVALID_MESSAGE),
        ("RCPT", "554 5.7.1 relay access denied", Reason.BOT_BANNED),
        # Postfix's words for one mailbox of a domain that it relays for.
        (
            "RCPT",
            "550 5.1.1 <a@b.example>: User unknown in relay recipient table",
            Reason.CHAT_NOT_FOUND,
        ),
        ("RCPT", "550 Requested action not taken: mailbox unavailable", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 5.5.0 User <a@b.example> does not exist", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 5.4.1 Recipient address rejected: Access denied.", Reason.CHAT_NOT_FOUND),
        ("RCPT", "550 Administrative prohibition", Reason.UNKNOWN),
        ("RCPT", "550 blocked by our policy: unknown user of a relay", Reason.UNKNOWN),
        ("RCPT", "550 5.1.0 sender rejected: user unknown", Reason.UNKNOWN),
        ("RCPT", "550 5.7.9 try something else", Reason.INVALID_MESSAGE),
        ("RCPT", "530 5.7.0 Authentication required", Reason.BOT_BANNED),
        ("RCPT", "530 5.7.0 no", Reason.INVALID_MESSAGE),
        ("RCPT", "550 5.7.54 SMTP; Unable to relay recipient", Reason.BOT_BANNED),
        ("RCPT", "450 4.2.0 greylisted", Reason.RATE_LIMITED),
        ("RCPT", "451 4.7.1 try again later", Reason.RATE_LIMITED),
        ("RCPT", "452 4.2.2 mailbox full", Reason.RATE_LIMITED),
        ("RCPT", "452 4.3.1 disk full", Reason.PLATFORM_UNAVAILABLE),
        ("RCPT", "421 4.3.2 shutting down", Reason.PLATFORM_UNAVAILABLE),
        ("MAIL", "450 4.7.1 too much mail from you", Reason.RATE_LIMITED),
        ("MAIL", "550 5.7.60 you may not send as this sender", Reason.BOT_BANNED),
        ("MAIL", "552 5.3.4 too large", Reason.INVALID_MESSAGE),
        ("DATA", "550 5.7.1 looks like spam", Reason.INVALID_MESSAGE),
        ("DATA", "451 4.3.0 try later", Reason.PLATFORM_UNAVAILABLE),
        ("DATA", "554 transaction failed", Reason.UNKNOWN),
        ("AUTH", "535 5.7.8 wrong password", Reason.BOT_BANNED),
        ("AUTH", "454 4.7.0 temporary failure", Reason.PLATFORM_UNAVAILABLE),
    ],
)
async def test_a_reply_means(
    channel: EmailChannel, platform: FakeMail, ann: Person, step: Step, reply: str, reason: Reason
) -> None:
    platform.faults.refuse_next(step, reply)
    error = await failure_of(channel.send(ann.address, HELLO))

    assert error.reason is reason, error
    assert not error.in_doubt
    await channel.send(ann.address, HELLO)
    assert len(ann.messages) == 1


def test_a_greylisted_mailbox_holds_up_no_other() -> None:
    assert refusal("recipient", 450, "4.2.0 greylisted").scope == "chat"
    assert refusal("sender", 450, "4.7.1 too many").scope == "bot"


def test_an_error_does_not_show_the_address() -> None:
    error = refusal("recipient", 550, "5.1.1 <ann@people.example>:\nno such user")

    assert error.text == "550 5.1.1 <address>: no such user"


async def test_a_connection_is_used_again_and_then_closed(
    make_channel: ChannelFactory, platform: FakeMail, ann: Person
) -> None:
    channel = await make_channel(per_connection=3)
    for _ in range(4):
        await channel.send(ann.address, HELLO)

    assert platform.connections == 2
    assert platform.commands.count("QUIT") == 1


async def test_no_more_connections_than_allowed(
    make_channel: ChannelFactory, platform: FakeMail, ann: Person
) -> None:
    channel = await make_channel(connections=2)
    await asyncio.gather(*(channel.send(ann.address, HELLO) for _ in range(10)))

    assert (platform.connections, len(ann.messages)) == (2, 10)


async def test_an_unused_connection_is_tried_first_and_an_old_one_dropped(
    channel: EmailChannel, platform: FakeMail, ann: Person, clock: FakeClock
) -> None:
    await channel.send(ann.address, HELLO)
    clock.advance(seconds=5)
    await channel.send(ann.address, HELLO)
    assert (platform.connections, platform.commands.count("NOOP")) == (1, 1)
    clock.advance(seconds=60)
    await channel.send(ann.address, HELLO)

    assert platform.connections == 2


async def test_an_unused_connection_is_ended_without_another_message(
    channel: EmailChannel,
    platform: FakeMail,
    ann: Person,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("msgsvc_email.smtp.IDLE_S", 0.05)
    await channel.send(ann.address, HELLO)
    clock.advance(seconds=1)

    async def closed() -> bool:
        return platform.open_connections == 0

    assert await until(closed)

    assert platform.commands.count("QUIT") == 1


async def test_a_server_that_takes_fewer_connections_is_used_with_those(
    make_channel: ChannelFactory, platform: FakeMail
) -> None:
    platform.max_connections = 2
    channel = await make_channel(connections=5)
    people = [platform.person(f"P{number}") for number in range(20)]
    await asyncio.gather(*(channel.send(one.address, HELLO) for one in people))
    await channel.check()

    assert [len(one.messages) for one in people] == [1] * 20
    assert platform.most_connections == 2


async def test_a_check_opens_no_second_connection(
    channel: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    await channel.send(ann.address, HELLO)
    health = await channel.check()

    assert (health.ok, platform.most_connections) == (True, 1)


async def test_a_connection_that_the_server_closed_is_replaced(
    channel: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    await channel.send(ann.address, HELLO)
    await platform.kill()
    await platform.restart()
    await channel.send(ann.address, HELLO)

    assert len(ann.messages) == 2


async def test_another_server_takes_over_and_gives_back(
    platform: FakeMail, make_channel: ChannelFactory, ann: Person, clock: FakeClock
) -> None:
    async with FakeMail() as second:
        second.people = platform.people
        server = {
            name: second.settings[name] for name in ("host", "port", "tls", "username", "password")
        }
        channel = await make_channel(fallbacks=[server])
        await platform.kill()
        for _ in range(2):
            await channel.send(ann.address, HELLO)
        assert second.connections == 1
        await platform.restart()
        await channel.send(ann.address, HELLO)
        assert second.connections == 1, "for some seconds the first is not asked again"
        before = platform.connections
        clock.advance(seconds=31)
        await channel.send(ann.address, HELLO)

    assert platform.connections == before + 1
    assert len(ann.messages) == 4


async def test_a_message_that_may_have_arrived_goes_to_no_other_server(
    platform: FakeMail, make_channel: ChannelFactory, ann: Person
) -> None:
    async with FakeMail() as second:
        second.people = platform.people
        server = {
            name: second.settings[name] for name in ("host", "port", "tls", "username", "password")
        }
        channel = await make_channel(fallbacks=[server])
        platform.faults.break_next("lost")
        error = await failure_of(channel.send(ann.address, HELLO))

    assert error.in_doubt
    assert len(ann.messages) == 1


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 with its key, in one file."""
    return write_certificate(tmp_path / "server.pem", "127.0.0.1")


@pytest.fixture
async def encrypted(certificate: Path) -> AsyncIterator[FakeMail]:
    async with FakeMail(server_context(certificate)) as platform:
        yield platform


async def test_starttls_with_a_trusted_certificate(
    encrypted: FakeMail, make_channel: ChannelFactory, certificate: Path
) -> None:
    ann = encrypted.person("Ann")
    channel = await make_channel(**encrypted.settings, ca_file=certificate)
    await channel.send(ann.address, HELLO)

    assert len(ann.messages) == 1
    assert "STARTTLS" in encrypted.commands


async def test_a_certificate_of_nobody_gets_no_password(
    encrypted: FakeMail, make_channel: ChannelFactory
) -> None:
    channel = await make_channel(**encrypted.settings)
    error = await failure_of(channel.send("ann@people.example", HELLO))

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
    assert not any(command.startswith("AUTH") for command in encrypted.commands)


async def test_a_server_without_starttls_gets_no_password(
    platform: FakeMail, make_channel: ChannelFactory, ann: Person
) -> None:
    channel = await make_channel(tls="starttls")
    error = await failure_of(channel.send(ann.address, HELLO))

    assert error.reason is Reason.PLATFORM_UNAVAILABLE
    assert not any(command.startswith(("AUTH", "MAIL")) for command in platform.commands)

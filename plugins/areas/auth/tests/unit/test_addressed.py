"""A sign-in by address, of parts that are built from fakes."""

import pytest

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.models import SessionBody
from msgsvc_core.channels import Capabilities
from msgsvc_core.kernel.errors import RateLimitProject, ValidationFailed
from msgsvc_devkit.fakes import PROJECT, FakeTx

from .signing_in import Auth, slot


def addressed(auth: Auth) -> AddressedSignIns:
    auth.core.channels["messenger_a"].capabilities = Capabilities(addresses=True, buttons="pages")
    return auth.addressed()


async def test_a_question_is_sent_to_the_normal_form_of_an_address() -> None:
    auth = Auth()
    body = SessionBody(channel="messenger_a", address="Ann@Example.com")
    tx = FakeTx(answers=[*slot(), *slot()])

    await addressed(auth).open(tx, PROJECT, body)

    [sent] = auth.core.outbox.sent
    assert (sent.channel, sent.chat_id) == ("messenger_a", "ann@example.com")


async def test_the_hour_of_a_mailbox_is_over() -> None:
    auth = Auth()
    body = SessionBody(channel="messenger_a", address="ann@example.com")
    tx = FakeTx(answers=[*slot(), *slot(used=5)])

    with pytest.raises(RateLimitProject, match="sessions_per_hour_per_recipient"):
        await addressed(auth).open(tx, PROJECT, body)


async def test_an_address_needs_a_channel() -> None:
    with pytest.raises(ValidationFailed, match="channel: say on which the address is"):
        await addressed(Auth()).open(FakeTx(), PROJECT, SessionBody(address="a@b.example"))


async def test_a_blocked_address_is_sent_nothing() -> None:
    auth = Auth()
    parts = addressed(auth)
    auth.core.subscribers.person("sub_1", user_id="ann@example.com", status="blocked")
    tx = FakeTx(answers=[*slot(), *slot()])
    await parts.open(tx, PROJECT, SessionBody(channel="messenger_a", address="ann@example.com"))

    assert auth.core.outbox.sent == []

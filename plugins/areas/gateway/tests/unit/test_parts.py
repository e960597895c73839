"""The plugin's objects one by one."""

from dataclasses import replace

import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.billing import Charge
from msgsvc_core.db import Tx
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.core import PROJECT
from msgsvc_gateway.errors import GatewayRecipientUnreachable, GatewaySignatureInvalid
from msgsvc_gateway.models import CreateGatewayBody, Gateway, Submitted
from msgsvc_gateway.recipients import Recipients, hint
from msgsvc_gateway.senders import check_signature
from msgsvc_gateway.sending import Calls, GatewaySending, Wording
from msgsvc_gateway.service import Gateways
from msgsvc_gateway.settings import GatewaySettings

CODE = Submitted(to="+12025550123", once=None, code="402913", purpose="sign_in")


def wording(core: MemoryCore) -> Wording:
    return Wording(projects=core.projects, templates=core.templates, texts=core.texts)


def calls(core: MemoryCore) -> Calls:
    return Calls(channels=core.channels, messages=core.messages, outbox=core.outbox)


def recipients(core: MemoryCore) -> Recipients:
    return Recipients(subscribers=core.subscribers, contacts=core.contacts, channels=core.channels)


def sending(core: MemoryCore) -> GatewaySending:
    return GatewaySending(
        clock=core.clock,
        settings=core.settings(GatewaySettings),
        secrets=core.secrets,
        recipients=recipients(core),
        wording=wording(core),
        calls=calls(core),
        billing=core.billing,
        outbox=core.outbox,
    )


async def gateway(core: MemoryCore, tx: Tx) -> Gateway:
    body = CreateGatewayBody(name="Logto", sender="logto", channels=["messenger_a"])
    return (await core.get(Gateways).create(tx, PROJECT, body))[0]


async def test_words_are_those_of_the_sender_or_ours_in_the_readers_language(
    core: MemoryCore, tx: Tx
) -> None:
    own = Submitted(
        to="+12025550123", once=None, text="Hi", link="https://a.example", label="Open it"
    )

    theirs = await wording(core).message(tx, PROJECT, own, "ru")
    ours = [await wording(core).message(tx, PROJECT, CODE, lang) for lang in ("en", "ru")]

    assert (theirs.text, theirs.buttons[0][0].url) == ("Hi", "https://a.example")
    assert all("402913" in message.text for message in ours)
    assert ours[0].text != ours[1].text


async def test_a_bot_that_is_gone_takes_nothing(core: MemoryCore, tx: Tx) -> None:
    ann = await core.person(tx)
    content = await wording(core).message(tx, PROJECT, CODE, "en")

    assert await calls(core).find_channel(PROJECT, replace(ann, bot="bot_gone"), content) is None
    assert await calls(core).find_channel(PROJECT, ann, content) is not None


async def test_nobody_is_found_by_a_number_that_nobody_has(core: MemoryCore, tx: Tx) -> None:
    ann = await core.person(tx, external_id="+12025550199")

    async def found(to: str) -> list[Subscriber]:
        return await recipients(core).find(tx, PROJECT, ["messenger_a"], to, None)

    assert await found("+12025550199") == [ann]
    assert await found("+12025550123") == []


class Charges:
    """A plugin that bills: `charged` contains the charged operations."""

    def __init__(self) -> None:
        self.charged: list[Charge] = []

    @hookimpl
    async def charge(self, charge: Charge) -> None:
        self.charged.append(charge)


async def test_what_reaches_nobody_is_refused_and_not_charged() -> None:
    charges = Charges()
    async with (
        memory_core(plugins=["gateway"], extra_plugins=[("charges", charges)]) as core,
        core.db.transaction() as tx,
    ):
        logto = await gateway(core, tx)
        with pytest.raises(GatewayRecipientUnreachable):
            await sending(core).submit(tx, logto, CODE)
        refused = list(charges.charged)
        await core.person(tx, external_id=CODE.to)
        message = await sending(core).submit(tx, logto, CODE)

    assert refused == []
    assert charges.charged == [Charge(PROJECT, "gateway.send", message.message_id)]


async def test_only_zitadel_has_a_signing_key(core: MemoryCore, tx: Tx) -> None:
    body = CreateGatewayBody(
        name="x", sender="logto", channels=["messenger_a"], signing_key="12345678"
    )

    with pytest.raises(ValidationFailed, match="signing_key"):
        await core.get(Gateways).create(tx, PROJECT, body)
    with pytest.raises(NotFound):
        await core.get(Gateways).open(tx, "logto", "unknown")


async def test_messages_are_deleted_after_a_week(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        logto = await gateway(core, tx)
        await core.person(tx, external_id=CODE.to)
        await sending(core).submit(tx, logto, CODE)

    async def left_after_a_purge() -> int:
        await core.run(NewJob("gateway.purge"))
        async with core.db.read() as tx:
            query = PageQuery()
            return len(await core.get(Gateways).messages(tx, PROJECT, logto.gateway_id, query))

    core.clock.advance(7 * DAY_MS / 1000)
    after_a_week = await left_after_a_purge()
    core.clock.advance(1)

    assert (after_a_week, await left_after_a_purge()) == (1, 0)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("+1 (202) 555-0123", "+12•••••0123"),
        ("79161234567", "+79•••••4567"),
        ("+2901234", "+29•••"),
        ("Ann@Shop.example", "a•••@shop.example"),
    ],
)
def test_a_hint_shows_a_part(core: MemoryCore, given: str, shown: str) -> None:
    assert hint(recipients(core).normalized(given)) == shown


@pytest.mark.parametrize("header", ["", "t=1", "v1=00", "t=x,v1=00", "t=" + "9" * 20 + ",v1=00"])
def test_what_is_no_signature_is_refused(header: str) -> None:
    with pytest.raises(GatewaySignatureInvalid):
        check_signature("zitadel", {"ZITADEL-Signature": header}, b"{}", "key", now_s=1)

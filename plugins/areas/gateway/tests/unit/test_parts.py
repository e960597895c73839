"""The plugin's objects one by one, built from fakes."""

from dataclasses import replace

import pytest

from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import NotFound, ValidationFailed
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_gateway import plugin
from msgsvc_gateway.errors import GatewayRecipientUnreachable, GatewaySignatureInvalid
from msgsvc_gateway.hooks import GatewayHooks
from msgsvc_gateway.jobs import GatewayJobs
from msgsvc_gateway.models import CreateGatewayBody, Gateway, Submitted
from msgsvc_gateway.recipients import Recipients, hint, normalized
from msgsvc_gateway.senders import check_signature
from msgsvc_gateway.sending import Calls, GatewaySending, Wording
from msgsvc_gateway.service import Gateways
from msgsvc_gateway.settings import GatewaySettings

GATEWAY = Gateway(
    project_id=PROJECT,
    gateway_id="gtw_1",
    name="Logto",
    sender="logto",
    channels=("messenger_a",),
    signing_key=None,
    created_at_ms=0,
    updated_at_ms=0,
)
CODE = Submitted(to="+12025550123", once=None, code="402913", purpose="sign_in")


@pytest.fixture
def core() -> FakeContext:
    return plugin_context(plugin=plugin, settings=[GatewaySettings()])


def wording(core: FakeContext) -> Wording:
    return Wording(projects=core.projects, templates=core.templates, texts=core.texts)


def calls(core: FakeContext) -> Calls:
    return Calls(channels=core.channels, messages=core.messages, outbox=core.outbox)


def recipients(core: FakeContext) -> Recipients:
    return Recipients(subscribers=core.subscribers, contacts=core.contacts, channels=core.channels)


def gateways(core: FakeContext) -> Gateways:
    return Gateways(
        clock=core.clock,
        secrets=core.secrets,
        channels=core.channels,
        settings=core.settings(GatewaySettings),
        base_url="https://msg.example",
    )


def sending(core: FakeContext) -> GatewaySending:
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


async def test_words_are_those_of_the_sender_or_ours_in_the_readers_language(
    core: FakeContext,
) -> None:
    own = Submitted(
        to="+12025550123", once=None, text="Hi", link="https://a.example", label="Open it"
    )

    theirs = await wording(core).message(FakeTx(), PROJECT, own, "ru")
    ours = [await wording(core).message(FakeTx(), PROJECT, CODE, lang) for lang in ("en", "ru")]

    assert (theirs.text, theirs.buttons[0][0].url) == ("Hi", "https://a.example")
    assert all("402913" in message.text for message in ours)
    assert ours[0].text != ours[1].text


async def test_a_bot_that_is_gone_takes_nothing(core: FakeContext) -> None:
    person = replace(core.subscribers.person(), bot="bot_gone")
    content = await wording(core).message(FakeTx(), PROJECT, CODE, "en")

    assert await calls(core).find_channel(PROJECT, person, content) is None
    assert await calls(core).find_channel(PROJECT, core.subscribers.person(), content) is not None


async def test_nobody_is_found_by_a_number_that_nobody_has(core: FakeContext) -> None:
    core.subscribers.person()

    found = await recipients(core).find(FakeTx(), PROJECT, ["messenger_a"], "+12025550123", None)

    assert found == []


async def test_what_reaches_nobody_is_refused_and_not_charged(core: FakeContext) -> None:
    tx = FakeTx(replies={"FROM gateway_messages": []})

    with pytest.raises(GatewayRecipientUnreachable):
        await sending(core).submit(tx, GATEWAY, CODE)

    assert core.billing.charges == []


async def test_only_zitadel_has_a_signing_key(core: FakeContext) -> None:
    body = CreateGatewayBody(
        name="x", sender="logto", channels=["messenger_a"], signing_key="12345678"
    )

    with pytest.raises(ValidationFailed, match="signing_key"):
        await gateways(core).create(FakeTx(), PROJECT, body)
    with pytest.raises(NotFound):
        await gateways(core).open(FakeTx(replies={"FROM gateway_gateways": []}), "logto", "unknown")


async def test_messages_are_deleted_after_a_week(core: FakeContext) -> None:
    jobs = GatewayJobs(
        clock=core.clock,
        subscribers=core.subscribers,
        outbox=core.outbox,
        calls=calls(core),
        events=core.events,
    )
    core.db.answers.append(0)
    await jobs.purge(FakeJobContext(core.db), [claimed(NewJob("gateway.purge"))])

    [(_, params)] = core.db.statements
    assert core.clock.now_ms() - 7 * DAY_MS in params.values()


def test_every_sender_posts_to_one_path(core: FakeContext) -> None:
    hooks = GatewayHooks(
        clock=core.clock,
        db=core.db,
        limiter=core.limiter,
        settings=core.settings(GatewaySettings),
        projects=core.projects,
        gateways=gateways(core),
        sending=sending(core),
    )

    assert [str(getattr(route, "path", "")) for route in hooks.routes()] == [
        "/compat/{sender}/{secret}"
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("+1 (202) 555-0123", "+12•••••0123"),
        ("79161234567", "+79•••••4567"),
        ("+1234567", "+12•••"),
        ("Ann@Shop.example", "a•••@shop.example"),
    ],
)
def test_a_hint_shows_a_part(given: str, shown: str) -> None:
    assert hint(normalized(given)) == shown


@pytest.mark.parametrize("header", ["", "t=1", "v1=00", "t=x,v1=00", "t=" + "9" * 20 + ",v1=00"])
def test_what_is_no_signature_is_refused(header: str) -> None:
    with pytest.raises(GatewaySignatureInvalid):
        check_signature(header, b"{}", "key", now_s=1)

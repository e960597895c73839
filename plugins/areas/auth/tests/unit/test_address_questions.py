"""Questions from the hosted page to an address."""

import pytest

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.clients import Client
from msgsvc_auth.hosted.addresses import AddressQuestions
from msgsvc_auth.hosted.models import BrowserSignIn, Ticket
from msgsvc_auth.models import NewSession
from msgsvc_auth.service import SignIn
from msgsvc_auth.session_limits import AskingLimits
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.channels import Capabilities
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound, RateLimitProject
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT
from plugins.areas.auth.tests.unit.signing_in import begin

CLIENT = Client(ip="203.0.113.7")


@pytest.fixture
def questions(core: MemoryCore) -> AddressQuestions:
    """With a channel of addresses, `messenger_a`."""
    core.recording("messenger_a").capabilities = Capabilities(addresses=True, buttons="pages")
    settings = core.settings(AuthSettings)
    return AddressQuestions(
        db=core.db,
        channels=core.channels,
        settings=settings,
        sign_in=core.get(SignIn),
        addressed=core.get(AddressedSignIns),
        limits=AskingLimits(core.clock, settings),
    )


async def test_a_channel_without_addresses_is_not_offered(
    core: MemoryCore, tx: Tx, questions: AddressQuestions
) -> None:
    session = (await begin(core, tx)).session

    assert [offer.channel for offer in questions.offers(session)] == ["messenger_a"]
    with pytest.raises(NotFound):
        questions.get(session, "messenger_b")


async def test_a_sign_in_that_is_over_asks_nobody(
    core: MemoryCore, questions: AddressQuestions
) -> None:
    async def asked(new: NewSession) -> int:
        offer = questions.get(new.session, "messenger_a")
        browser = BrowserSignIn(new.session, Ticket("s" * 43, new.token))
        await questions.ask(browser, offer, "a@b.example", CLIENT)
        async with core.db.read() as tx:
            return len(await core.calls(tx))

    async with core.db.transaction() as tx:
        over, waits = await begin(core, tx), await begin(core, tx)
        await core.get(SignIn).deny(tx, over.session, "messenger_b")

    assert (await asked(over), await asked(waits)) == (0, 1)


async def test_the_hour_of_a_browsers_address_is_over(core: MemoryCore, tx: Tx) -> None:
    limits = AskingLimits(core.clock, core.settings(AuthSettings))
    for _ in range(20):
        await limits.count(tx, PROJECT, CLIENT)

    with pytest.raises(RateLimitProject, match="sessions_per_hour_per_address"):
        await limits.count(tx, PROJECT, CLIENT)

"""Questions from the hosted page to an address, of parts that are built from fakes."""

import pytest

from msgsvc_auth.clients import Client
from msgsvc_auth.hosted.address_pages import AddressPages
from msgsvc_auth.hosted.addresses import AddressQuestions
from msgsvc_auth.hosted.cookies import Tickets
from msgsvc_auth.hosted.models import BrowserSignIn, Ticket
from msgsvc_auth.hosted.rendering import PageTemplates
from msgsvc_auth.session_limits import AskingLimits
from msgsvc_core.channels import Capabilities
from msgsvc_core.kernel.errors import NotFound, RateLimitProject
from msgsvc_devkit.fakes import PROJECT, FakeTx

from .signing_in import TOKEN, Auth, pending, request, slot

CLIENT = Client(ip="203.0.113.7")


def questions(auth: Auth) -> AddressQuestions:
    """With a channel of addresses, `messenger_a`."""
    auth.core.channels["messenger_a"].capabilities = Capabilities(addresses=True, buttons="pages")
    return auth.address_questions()


async def test_a_channel_without_addresses_is_not_offered() -> None:
    auth = Auth()
    found = questions(auth)

    assert [offer.channel for offer in found.offers(pending())] == ["messenger_a"]
    with pytest.raises(NotFound):
        found.get(pending(), "messenger_b")


async def test_a_sign_in_that_is_over_asks_nobody() -> None:
    auth = Auth()
    found = questions(auth)
    auth.core.db.answers.append([])
    offer = found.get(pending(), "messenger_a")
    await found.ask(BrowserSignIn(pending(), Ticket("s" * 43, TOKEN)), offer, "a@b.example", CLIENT)

    assert auth.core.outbox.sent == []


async def test_the_hour_of_a_browsers_address_is_over() -> None:
    auth = Auth()
    limits = AskingLimits(auth.core.clock, auth.settings)

    with pytest.raises(RateLimitProject, match="sessions_per_hour_per_address"):
        await limits.count(FakeTx(answers=slot(used=20)), PROJECT, CLIENT)


def test_the_form_has_one_route() -> None:
    auth = Auth()
    pages = AddressPages(
        hosted=auth.hosted(),
        sites=auth.sites(),
        questions=questions(auth),
        texts=auth.core.texts,
        tickets=Tickets("https://msgsvc.test"),
        templates=PageTemplates(auth.core.texts),
    )

    [route] = pages.routes()
    assert route.matches(request("/login/shop/address/messenger_a").scope)[0].name == "FULL"

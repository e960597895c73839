"""Signing in through a messenger with a browser: it waits, and is in after its number was picked."""

import re
from typing import Any

from msgsvc_core.channels import ButtonPressed, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import MessengerSignIn
from msgsvc_dashboard.accounts.models import Browser as Asking
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.browsers import Browser, browsing, new_account

ANN = ChannelUser("1001", "Ann", "ann_k", "en")
WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}


async def answer(service: Service, payload: str, label: str) -> None:
    """Opens the link to the bot, and presses the button of that label."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    number = str(len(channel.sent))
    who: dict[str, Any] = {"chat_id": "c1", "user": ANN}
    await service.inbound.receive(
        "messenger_a", Started(update_id=f"s{payload}", payload=payload, **who)
    )
    await settled(service)
    asked = channel.sent[-1]
    [data] = [each.data for row in asked.message.buttons for each in row if each.text == label]
    pressed = ButtonPressed(
        update_id=f"b{payload}",
        data=data or "",
        message_ref=asked.message_ref,
        button_ref=number,
        **who,
    )
    await service.inbound.receive("messenger_a", pressed)
    await settled(service)


async def begin(browser: Browser) -> tuple[str, str]:
    """The payload of the link, and the number, that the page shows."""
    await browser.open("/dashboard/sign-in", params={"next": "/dashboard/account"})
    await browser.submit("/dashboard/sign-in/messenger")
    await browser.open(browser.to)
    match = re.search(r"messenger_a\.example/bot\?start=(dsh_\w+)", browser.shown.text)
    assert match, browser.shown.text
    number = re.search(r'<p class="match-number">([1-9][0-9])</p>', browser.shown.text)
    assert number, browser.shown.text
    return match[1], number[1]


async def test_a_browser_waits_and_is_in_after_its_number_was_picked_and_nobody_else_is(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    ann = await new_account(service, password=None)
    async with service.db.transaction() as tx:
        begun = await service.get(MessengerSignIn).begin(
            tx, "link", Asking("203.0.113.7", "Firefox"), ann.account_id
        )
    await answer(service, f"dsh_{begun.token}", str(begun.number))
    status = "/dashboard/sign-in/messenger/status"
    async with browsing(service) as browser, browsing(service) as other:
        payload, number = await begin(browser)
        cancelled, _ = await begin(other)
        before = (await browser.http.get(status)).json()
        await answer(service, payload, number)
        await answer(service, cancelled, "Cancel")
        after = (await browser.http.get(status)).json()
        await browser.open("/dashboard/sign-in/messenger?next=/dashboard/account")
        led_to = browser.to
        inside = await browser.open(led_to)
        refused = await other.open("/dashboard/sign-in/messenger")
        nobody = await other.open("/dashboard/account")

    assert (before, after) == ({"status": "pending"}, {"status": "confirmed"})
    assert (led_to, inside.status_code) == ("/dashboard/account", 200)
    assert (refused.status_code, "Cancel or a different number was pressed" in refused.text) == (
        403,
        True,
    )
    assert nobody.status_code == 303


async def test_it_can_be_switched_off(make_service: ServiceFactory) -> None:
    service = await make_service(dashboard={"messenger_sign_in": False}, **WITH_DASHBOARD)
    async with browsing(service) as browser:
        page = await browser.open("/dashboard/sign-in")
        begun = await browser.submit("/dashboard/sign-in/messenger")

    assert "messenger" not in page.text
    assert begun.status_code == 404

"""Commands of plugins beside the core's."""

from collections.abc import Sequence

import pytest

from msgsvc_core.channels import InboundContext, InboundRule, MessageReceived, OutgoingMessage
from msgsvc_core.channels.commands import read_command
from msgsvc_core.channels.contract import BotProfile
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conversation.people import Talker


class Orders:
    """A plugin with commands, and with an ear for all texts."""

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [
            InboundRule("command", self.order, name="order", about=lambda _: _("see your order")),
            InboundRule("command", self.secret, name="hush"),
            InboundRule("command", self.declined, name="declined"),
            InboundRule("message", self.heard),
        ]

    async def order(self, ctx: InboundContext) -> None:
        await ctx.reply(OutgoingMessage(f"order {ctx.argument!r}"))

    async def secret(self, ctx: InboundContext) -> None:
        await ctx.reply(OutgoingMessage("hush"))

    async def declined(self, ctx: InboundContext) -> bool:
        return False

    async def heard(self, ctx: InboundContext) -> None:
        assert isinstance(ctx.update, MessageReceived)
        await ctx.reply(OutgoingMessage(f"heard {ctx.update.text}"))


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("orders", Orders())])


@pytest.mark.parametrize(
    ("text", "argument"),
    [("/order", ""), ("/Order 7", "7"), ("  /ORDER@any_bot   7\n8 ", "7\n8"), ("/order\t7", "7")],
)
async def test_a_plugins_command_is_found_by_its_name_with_its_argument(
    ann: Talker, text: str, argument: str
) -> None:
    assert await ann.write(text) == f"order {argument!r}"


@pytest.mark.parametrize(
    "text",
    ["/orders", "/ord", "/unknown", "order", "/", "/ order", "see /order", "//order", "/ордер"],
)
async def test_a_command_that_nobody_has_goes_on_as_a_text(ann: Talker, text: str) -> None:
    assert await ann.write(text) == f"heard {text}"


async def test_a_command_that_its_owner_declines_goes_on_as_a_text(ann: Talker) -> None:
    assert await ann.write("/declined now") == "heard /declined now"


async def test_a_command_to_another_bot_is_a_text(ann: Talker) -> None:
    ann.channel.profile = BotProfile("Shop", "Shop_Bot")

    assert await ann.write("/order@other_bot") == "heard /order@other_bot"
    assert await ann.write("/order@shop_bot") == "order ''"


async def test_help_names_a_plugins_command_that_says_what_it_is_for(ann: Talker) -> None:
    lines = (await ann.write("/help")).splitlines()

    assert lines[-1] == "/order – see your order"
    assert not any("hush" in line for line in lines)


async def test_a_greeting_of_who_is_subscribed_names_it_too(ann: Talker, tenant: Tenant) -> None:
    await ann.subscribe(tenant)

    assert "/order – see your order" in await ann.start()


class Clashing:
    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [InboundRule("command", Orders().order, name=self.name)]


@pytest.mark.parametrize("name", ["stop", "order"])
async def test_two_owners_of_one_command_are_refused_at_the_start(
    make_service: ServiceFactory, name: str
) -> None:
    plugins = [("orders", Orders()), ("clashing", Clashing(name))]

    with pytest.raises(ValueError, match=f"for command '{name}'"):
        await make_service(extra_plugins=plugins, start=False)


@pytest.mark.shared_service
@pytest.mark.parametrize("name", ["", "/order", "Order", "my-order", "x" * 33, "заказ"])
async def test_a_command_that_not_every_messenger_could_have_is_refused(
    make_service: ServiceFactory, name: str
) -> None:
    with pytest.raises(ValueError, match="its name is 1-32 of a-z, 0-9 and _"):
        await make_service(extra_plugins=[("clashing", Clashing(name))], start=False)


def test_a_long_text_is_read_in_no_time() -> None:
    assert read_command("/" + "a" * 1_000_000) is None
    assert read_command("/stop" + " " * 1_000_000) is not None

"""A service with the sandbox messenger, and a bot that asks, edits and echoes."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Button, InboundContext, InboundRule, OutgoingMessage
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_sandbox import plugin

CHANNELS = {
    "messenger_a": {"plugin": "sandbox", "title": "Corner Coffee"},
    "messenger_b": {"plugin": "sandbox"},
}

QUESTION = OutgoingMessage(
    "Is it *you*?",
    format="markdown",
    buttons=((Button("Yes", data="~echo_yes"), Button("Site", url="https://shop.example")),),
)


class EchoBot:
    """Asks when it is started with `echo_...`, edits the question when a button is pressed."""

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [
            InboundRule("start", self.ask, "echo_"),
            InboundRule("button", self.thank, "echo_"),
            InboundRule("message", self.echo),
        ]

    async def ask(self, ctx: InboundContext) -> None:
        await ctx.reply(QUESTION)

    async def thank(self, ctx: InboundContext) -> None:
        await ctx.answer_button("Noted")
        update: Any = ctx.update
        await ctx.edit(update.message_ref, OutgoingMessage(f"Thanks, {update.user.first_name}"))

    async def echo(self, ctx: InboundContext) -> None:
        update: Any = ctx.update
        await ctx.reply(OutgoingMessage(f"You said: {update.text}"))


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(
        extra_plugins=[("sandbox", plugin), ("echo", EchoBot())], channels=CHANNELS
    )


@pytest.fixture
async def sandbox(service: Service) -> Sandbox:
    return Sandbox.in_process(service)


@pytest.fixture
async def anna(sandbox: Sandbox) -> SandboxPerson:
    return await sandbox.person("Anna", username="anna")


@pytest.fixture
async def web(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser without scripts, and without an API key."""
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield client

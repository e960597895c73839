"""Presses that were not asked for: Yes counts for whom the bot asked, once, and while it waits."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.billing import Charge
from msgsvc_core.channels import ChannelUser
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from plugins.areas.auth.tests.conftest import Person


@pytest.fixture
async def session(client: httpx2.AsyncClient, link: dict[str, Any]) -> dict[str, Any]:
    body = {"state": "xyz", "callback_url": link["callback_url"]}
    answer: dict[str, Any] = (await client.post("/v1/auth/session", json=body)).json()
    return answer


async def status_of(client: httpx2.AsyncClient, session: dict[str, Any]) -> str:
    answer = await client.get(f"/v1/auth/session/{session['session_id']}/status")
    return str(answer.json()["status"])


async def count_of(client: httpx2.AsyncClient, event: str) -> int:
    answer = await client.get("/v1/events", params={"event": event})
    return len(answer.json()["data"])


def parts(data: str) -> tuple[str, str, str]:
    """Choice, token and seal of a button's data."""
    _, choice, token, seal = data.split(":")
    return choice, token, seal


async def test_no_changed_button_counts(
    client: httpx2.AsyncClient, ann: Person, session: dict[str, Any]
) -> None:
    question = await ann.open(session["links"]["messenger_a"])
    other = (await client.post("/v1/auth/session", json={})).json()
    others_question = await ann.open(other["links"]["messenger_a"])
    yes = parts(ann.button(question, "Yes").data or "")
    cancel = parts(ann.button(question, "Cancel").data or "")
    others = parts(ann.button(others_question, "Yes").data or "")
    forged = {
        "the other choice under this seal": ("y", yes[1], cancel[2]),
        "Cancel under the seal of Yes": ("n", yes[1], yes[2]),
        "a number under the seal of Yes": ("47", yes[1], yes[2]),
        "another session's token": ("y", others[1], yes[2]),
        "another session's seal": ("y", yes[1], others[2]),
        "a seal in other letters": ("y", yes[1], yes[2].swapcase()),
        "a seal cut short": ("y", yes[1], yes[2][:-1]),
        "a seal and more": ("y", yes[1], yes[2] + "0"),
        "no seal": ("y", yes[1], ""),
        "a made-up seal": ("y", yes[1], "0" * 22),
        "a choice that there is not": ("x", yes[1], yes[2]),
        "a choice in other letters": ("Y", yes[1], yes[2]),
        "two choices": ("yn", yes[1], yes[2]),
    }
    told = {}
    for name, (choice, token, seal) in forged.items():
        await ann.press_data(f"~auth:{choice}:{token}:{seal}", question.message_ref)
        told[name] = ann.notice

    assert told == dict.fromkeys(forged, "This button no longer works.")
    assert await status_of(client, session) == await status_of(client, other) == "pending"
    assert await count_of(client, "subscription.created") == 0
    # It was the changes: the button as it was shown still counts.
    await ann.press(question, "Yes")
    assert await status_of(client, session) == "confirmed"


@pytest.mark.parametrize("choice", ["Yes", "Cancel"])
async def test_a_button_counts_for_nobody_else_and_nowhere_else(
    service: Service,
    client: httpx2.AsyncClient,
    ann: Person,
    bob: Person,
    session: dict[str, Any],
    choice: str,
) -> None:
    question = await ann.open(session["links"]["messenger_a"])
    data = ann.button(question, choice).data or ""
    pressing = ann.pressing(data, question.message_ref)
    elsewhere = {
        "another person in the same chat": ("messenger_a", replace(pressing, user=bob.user)),
        "the same person in another chat": ("messenger_a", replace(pressing, chat_id="group-1")),
        "another person in another chat": ("messenger_a", bob.pressing(data, "m1")),
        "the same ids on another bot": ("messenger_b", pressing),
    }
    for number, (channel, update) in enumerate(elsewhere.values()):
        # An id of its own each, or the later ones would be taken for the first, come again.
        await service.inbound.receive(channel, replace(update, update_id=f"forged-{number}"))
        await settled(service)

    assert await status_of(client, session) == "pending"
    assert await count_of(client, "subscription.created") == 0
    assert await count_of(client, "auth.completed") == 0


async def test_cancel_after_expiry_changes_nothing(
    client: httpx2.AsyncClient, ann: Person, session: dict[str, Any], clock: Any
) -> None:
    question = await ann.open(session["links"]["messenger_a"])
    clock.advance(600)
    await ann.press(question, "Cancel")

    assert await status_of(client, session) == "expired"


async def test_yes_in_one_of_two_questions_ends_the_other(
    client: httpx2.AsyncClient, ann: Person, session: dict[str, Any]
) -> None:
    first = await ann.open(session["links"]["messenger_a"])
    second = await ann.open(session["links"]["messenger_a"])
    await ann.press(second, "Cancel")
    await ann.press(first, "Yes")

    assert await status_of(client, session) == "denied"
    assert await count_of(client, "auth.completed") == 0


class Till:
    """Keeps what was charged."""

    def __init__(self) -> None:
        self.charges: list[Charge] = []

    @hookimpl
    async def charge(self, tx: Any, charge: Charge) -> None:
        self.charges.append(charge)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_yes_on_two_phones_at_once_makes_one_code_one_subscriber_one_event_one_charge(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    """The phones' presses come to two processes, as two webhooks of the platform would."""
    till = Till()
    plugins = [("auth", plugin), ("till", till)]
    here = await make_service(extra_plugins=plugins)
    there = await make_service(
        extra_plugins=plugins, database_url=here.settings.database_url, jobs={"runner": "none"}
    )
    client = (await make_tenant(here)).client
    rounds = 5
    for number in range(rounds):
        ann = Person(here, "messenger_a", ChannelUser(f"{number}", "Ann", None, "en"))
        session = (await client.post("/v1/auth/session", json={"channel": "messenger_a"})).json()
        questions = [await ann.open(session["links"]["messenger_a"]) for _ in range(2)]
        presses = [
            ann.pressing(ann.button(question, "Yes").data or "", question.message_ref)
            for question in questions
        ]
        await asyncio.gather(
            here.inbound.receive("messenger_a", presses[0]),
            there.inbound.receive("messenger_a", presses[1]),
        )
        await settled(here)
        path = f"/v1/auth/session/{session['session_id']}/status"
        codes = {(await client.get(path)).json()["code"] for _ in range(2)}

        assert len(codes) == 1
        assert await count_of(client, "auth.completed") == number + 1
        assert await count_of(client, "subscription.created") == number + 1
        people = (await client.get("/v1/subscribers")).json()["data"]
        assert len(people) == number + 1
        verified = await client.post("/v1/auth/verify", json={"code": codes.pop()})
        assert verified.status_code == 200

    assert len({charge.resource_id for charge in till.charges}) == rounds
    assert len(till.charges) == rounds

"""Texts that try to be more than text, as questions, options and answers, on every messenger."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.channels.commands import read_command
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms
from tests.channels.phones import MESSENGERS, Messenger, Phone, seen
from tests.channels.test_forms import ready
from tests.payloads import NAMES, PAYLOADS

#: Questions of one form; the rest of the texts are in a second one.
A_FORM = 35

#: A command is no answer to a question, whatever follows it.
ANSWERS = [text for text in PAYLOADS if read_command(text) is None]


@pytest.fixture(params=MESSENGERS)
async def messenger(request: pytest.FixtureRequest) -> AsyncIterator[Messenger]:
    async with MESSENGERS[request.param]() as messenger:
        yield messenger


@pytest.fixture
async def service(make_service: ServiceFactory, messenger: Messenger) -> Service:
    service = await make_service(
        extra_plugins=[(messenger.name, messenger.plugin), ("forms", forms)],
        channels={"messenger_a": {"plugin": messenger.name, **messenger.settings}},
        use_clock=SystemClock(),
    )
    await ready(service)
    return service


def form_of(number: int, texts: list[str]) -> dict[str, Any]:
    """A form that asks each text, and ends with a choice between the first of them."""
    fields: list[dict[str, Any]] = [
        {"key": f"q{at}", "type": "text", "label": f"{at}: {text[:290]}", "multiline": True}
        for at, text in enumerate(texts)
    ]
    options = [{"value": f"v{at}", "label": text} for at, text in enumerate(NAMES[:9])]
    fields.append({"key": "pick", "type": "choice", "label": "Pick", "options": options})
    return {
        "slug": f"form-{number}",
        "title": texts[0][:200],
        "description": texts[1],
        "thanks": f"Thanks {texts[2]}",
        "fields": fields,
    }


# What a messenger shows does not depend on the database.
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("number", [0, 1])
async def test_texts_are_shown_and_kept_letter_by_letter(
    service: Service, messenger: Messenger, tenant: Tenant, number: int
) -> None:
    texts = ANSWERS[number * A_FORM : (number + 1) * A_FORM]
    made = await tenant.client.post("/v1/forms", json=form_of(number, texts))
    assert made.status_code == 201, made.text
    phone = await messenger.phone(service, "en")
    await phone.open(made.json()["links"]["messenger_a"])
    await _fill_in(phone, texts)
    path = f"/v1/forms/{made.json()['form_id']}/submissions"
    [kept] = (await tenant.client.get(path)).json()["data"]

    *answers, picked = (answer["value"] for answer in kept["answers"])
    assert answers == [text.replace("\r\n", "\n").strip() for text in texts]
    assert picked == "v8"
    # A bare address is a link wherever messengers show one.
    looks = [message.text for message in await phone.messages() if message.marked_up]
    assert all("https://" in text for text in looks)


async def _fill_in(phone: Phone, texts: list[str]) -> None:
    for at, text in enumerate(texts):
        # Messengers differ in how they end a line.
        for line in f"{at}: {text[:290]}".splitlines():
            await seen(phone, line.rstrip())
        await phone.write(text)
    listed = await seen(phone, "9. ")
    assert all(" ".join(text.split())[:40] in listed.text for text in NAMES[:9])
    await phone.write("9")
    await seen(phone, "Is everything right?")
    await phone.press("Send")
    await seen(phone, f"Thanks {texts[2]}".rstrip())

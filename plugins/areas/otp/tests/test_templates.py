"""A project's own words for its codes."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled

from .conftest import refusal


async def keep(client: httpx2.AsyncClient, **template: Any) -> None:
    answer = await client.post("/v1/templates", json=template)
    assert answer.status_code == 201, answer.text


async def test_template_otp_is_the_text_of_codes_in_the_language_of_the_person(
    service: Service, client: httpx2.AsyncClient, ann: Any, bob: Any, send: Any
) -> None:
    text = "{{ project }}, {{ purpose }}, {{ minutes }} min\n{{ code }}"
    await keep(client, key="otp", text={"en": f"EN {text}", "ru": f"RU {text}"})
    bob_id = await bob.subscribe(client)

    await send(ttl_minutes=7)
    await client.post("/v1/otp/send", json={"subscriber_id": bob_id})
    await settled(service)

    assert ann.shown == f"EN Shop, login, 7 min\n{ann.code}"
    assert bob.shown == f"RU Shop, login, 5 min\n{bob.code}"


async def test_template_of_the_purpose_comes_before_that_of_all(
    client: httpx2.AsyncClient, ann: Any, send: Any
) -> None:
    await keep(client, key="otp", text="For all\n{{ code }}")
    await keep(client, key="otp_pay", text="<b>To pay</b>\n{{ code }}", format="html")

    await send(purpose="pay")
    message = ann.messages[-1].message
    await send()

    assert (message.text.splitlines()[0], message.format) == ("<b>To pay</b>", "html")
    assert ann.shown.startswith("For all\n")


async def test_lang_of_the_request_is_stronger_than_that_of_the_person(
    client: httpx2.AsyncClient, ann: Any, send: Any
) -> None:
    await keep(client, key="otp", text={"en": "EN\n{{ code }}", "ru": "RU\n{{ code }}"})

    await send(lang="ru")

    assert ann.shown.startswith("RU\n")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Hello", "template 'otp': text: must hold {{ code }}"),
        ({"en": "{{ code }}", "ru": "Привет"}, "template 'otp': text.ru: must hold {{ code }}"),
        (
            "{{ code }} for {{ name }}",
            "template 'otp': variables.name: is required by the template",
        ),
    ],
)
@pytest.mark.parametrize("path", ["send", "request"])
async def test_template_that_can_not_show_the_code_is_refused(
    client: httpx2.AsyncClient, ann: Any, ann_id: str, path: str, text: Any, problem: str
) -> None:
    await keep(client, key="otp", text=text)
    before = len(ann.messages)

    body = {"subscriber_id": ann_id} if path == "send" else {}
    answer = await client.post(f"/v1/otp/{path}", json=body)

    assert refusal(answer) == (400, "validation_failed")
    assert answer.json()["error"] == problem
    assert len(ann.messages) == before

"""Twelve questions with branches on every messenger, with a restart and another version in between."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms
from tests.channels.phones import MESSENGERS, Messenger, Phone, seen

#: Markup of every messenger, and of pages, in a label and in an answer.
MARKUP = "*a* _b_ `c` [d](http://e) <b>f</b> &amp; \\_ ||g|| <script>h</script>"


def ask(key: str, kind: str, label: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "type": kind, "label": label, "required": True, **more}


FIELDS = [
    ask("name", "text", f"Name? {MARKUP}"),
    ask("kind", "choice", "Kind?", options=["person", "company"]),
    ask("company", "text", "Company?"),
    ask("vat", "number", "VAT number?", min=100),
    ask("email", "email", "E-mail?"),
    ask("phone", "phone", "Phone?", required=False),
    ask("day", "date", "Day?", min="2026-01-01"),
    ask("toppings", "multichoice", "Toppings?", options=[f"{MARKUP[:20]}{n}" for n in range(8)]),
    ask("rating", "rating", "Rating?"),
    ask("why", "text", "Why so bad?"),
    ask("agree", "consent", "Do you agree?"),
    ask("note", "text", "Anything else?", required=False),
]

FORM = {
    "slug": "twelve",
    "title": f"Twelve {MARKUP}",
    "fields": FIELDS,
    "rules": [
        {
            "when": {"field": "kind", "op": "eq", "value": "person"},
            "to": {"kind": "next_field", "field": "email"},
        },
        {
            "when": {"field": "rating", "op": "gt", "value": 2},
            "to": {"kind": "next_field", "field": "agree"},
        },
        {
            "when": {"field": "rating", "op": "lt", "value": 3},
            "to": {"kind": "tag", "tag": "angry"},
        },
    ],
}


@pytest.fixture(params=MESSENGERS)
async def messenger(request: pytest.FixtureRequest) -> AsyncIterator[Messenger]:
    async with MESSENGERS[request.param]() as messenger:
        yield messenger


@pytest.fixture
def settings(messenger: Messenger) -> dict[str, Any]:
    return {
        "extra_plugins": [(messenger.name, messenger.plugin), ("forms", forms)],
        "channels": {"messenger_a": {"plugin": messenger.name, **messenger.settings}},
        "use_clock": SystemClock(),
    }


@pytest.fixture
async def service(make_service: ServiceFactory, settings: dict[str, Any]) -> Service:
    service = await make_service(**settings)
    await ready(service)
    return service


async def ready(service: Service) -> None:
    """Returns when the bot's links can be made."""

    async def linked() -> bool:
        return service.channels["messenger_a"].link("x") is not None

    await until(linked)


async def answer(phone: Phone, *steps: tuple[str, str]) -> None:
    """To each question, by its label, an answer; one in brackets is a button."""
    for label, said in steps:
        await seen(phone, label)
        if said.startswith("["):
            await phone.press(said[1:-1])
        else:
            await phone.write(said)


async def test_twelve_questions_with_branches_a_restart_and_a_new_version(
    service: Service,
    messenger: Messenger,
    tenant: Tenant,
    make_service: ServiceFactory,
    settings: dict[str, Any],
) -> None:
    await tenant.client.post("/v1/tags", json={"name": "angry"})
    made = await tenant.client.post("/v1/forms", json=FORM)
    assert made.status_code == 201, made.text
    form = made.json()
    phone = await messenger.phone(service, "en")
    await phone.open(form["links"]["messenger_a"])
    await answer(
        phone,
        (f"Name? {MARKUP}", f"Ann {MARKUP}"),
        ("Kind?", "[company]"),
        ("Company?", "Ann & Co"),
        ("VAT number?", "seven"),
        ("VAT number?", "[‹ Back]"),
        ("Current answer: Ann & Co", "[Keep]"),
        ("VAT number?", "777"),
        ("E-mail?", "ann@example.com"),
    )
    await seen(phone, "Phone?")
    # Another version in the middle, which is not theirs.
    changed = await tenant.client.patch(
        f"/v1/forms/{form['form_id']}", json={"fields": FIELDS[:1], "rules": []}
    )
    assert changed.status_code == 200, changed.text
    await service.stop()
    again = await make_service(database_url=service.settings.database_url, **settings)
    await ready(again)
    phone = phone.on(again)
    await answer(
        phone,
        ("Phone?", "[Skip]"),
        ("Day?", "31.12.2025"),
        ("not before", "2026-12-31"),
        ("Toppings?", "[2]"),
        (f"2. {MARKUP[:20]}1 ✓", "[…]"),
        (f"8. {MARKUP[:20]}7", "[8]"),
        (f"8. {MARKUP[:20]}7 ✓", "[Done]"),
        ("Rating?", "[2]"),
        ("Why so bad?", MARKUP),
        ("Do you agree?", "[I agree]"),
        ("Anything else?", "/skip"),
    )
    summary = await seen(phone, "Is everything right?")
    await phone.press("Send")
    await seen(phone, "Your answers were sent")

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=again.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    ) as client:
        path = f"/v1/forms/{form['form_id']}/submissions"
        [kept] = (await client.get(path)).json()["data"]

    assert kept["form_version"] == 1
    assert {one["key"]: one["value"] for one in kept["answers"]} == {
        "name": f"Ann {MARKUP}",
        "kind": "company",
        "company": "Ann & Co",
        "vat": 777,
        "email": "ann@example.com",
        "day": "2026-12-31",
        "toppings": [f"{MARKUP[:20]}1", f"{MARKUP[:20]}7"],
        "rating": 2,
        "why": MARKUP,
        "agree": True,
    }
    assert [(lead["kind"], lead["status"]) for lead in kept["rules"]] == [("tag", "completed")]
    assert not summary.marked_up
    assert "Ann *a* _b_ `c` [d](http://e) <b>f</b> &amp;" in summary.text

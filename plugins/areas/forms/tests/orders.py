"""A form that people order by, and what is told of it."""

from typing import Any

from msgsvc_devkit.fixtures import Tenant

ORDER: dict[str, Any] = {
    "slug": "order",
    "title": {"en": "Order", "ru": "Заказ"},
    "thanks": {"en": "We cook for you.", "ru": "Мы готовим для вас."},
    "fields": [
        {
            "key": "name",
            "type": "text",
            "label": {"en": "Your name?", "ru": "Ваше имя?"},
            "required": True,
        },
        {
            "key": "size",
            "type": "choice",
            "label": "Size?",
            "options": ["S", "M", "L"],
            "required": True,
        },
        {"key": "count", "type": "number", "label": "How many?", "min": 1, "max": 9},
    ],
}


async def made(tenant: Tenant, form: dict[str, Any]) -> str:
    answer = await tenant.client.post("/v1/forms", json=form)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["form_id"])


async def events(tenant: Tenant, name: str = "form.submitted") -> list[dict[str, Any]]:
    """The data of a project's events of this name, oldest first."""
    feed = (await tenant.client.get("/v1/events?limit=100")).json()["data"]
    return [event["data"] for event in reversed(feed) if event["event"] == name]


def values(data: dict[str, Any]) -> dict[str, Any]:
    return {answer["key"]: answer["value"] for answer in data["answers"]}

"""What the rows of a filled project belong to."""

import httpx2

from tests.api.resources import HOOK, LATER


async def ids_of(client: httpx2.AsyncClient) -> dict[str, str]:
    """Makes a form, a chain, a broadcast, a webhook, a gateway, a client and a channel; returns their ids by
    the paths' parameters."""
    field = {"key": "name", "type": "text", "label": "Name"}
    steps = [{"delay": {"days": 1}, "message": {"text": "Hi"}}]
    made = {
        "form_id": ("/v1/forms", {"slug": "form", "title": "Form", "fields": [field]}),
        "drip_id": ("/v1/drips", {"name": "Hi", "trigger": {"on": "manual"}, "steps": steps}),
        "job_id": ("/v1/broadcast", {"audience": {"all": True}, "text": "Hi", "send_at": LATER}),
        "webhook_id": ("/v1/webhooks", {"url": HOOK}),
        "gateway_id": (
            "/v1/gateways",
            {"name": "Novu", "sender": "novu", "channels": ["messenger_a"]},
        ),
        "client_id": ("/v1/oidc/clients", {"name": "Shop", "redirect_uris": [f"{HOOK}/back"]}),
    }
    ids = {}
    for name, (path, body) in made.items():
        answer = await client.post(path, json=body)
        assert answer.is_success, answer.text
        ids[name] = answer.json()[name]
    made_channel = await client.post(
        "/v1/channels", json={"name": "own_bot", "plugin": "recording"}
    )
    assert made_channel.is_success, made_channel.text
    channel = made_channel.json()
    return {**ids, "name": channel["name"], "channel_id": channel["channel_id"]}

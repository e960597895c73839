"""What platforms want of an address before they call it, or of each call."""

import hmac
import json
from hashlib import sha1

import httpx2
import pytest

from msgsvc_core.channels import (
    Capabilities,
    ChannelUser,
    InvalidWebhook,
    MessageReceived,
    Update,
    WebhookAnswer,
    WebhookCall,
)
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel

HOOK = "/hooks/messenger_a"


class Challenging(RecordingChannel):
    """Does what Slack, WhatsApp, Discord and Twilio ask for, each below an address of its own."""

    capabilities = Capabilities(hook_methods=frozenset({"GET", "POST"}))
    seen: list[WebhookCall]

    def parse_update(self, call: WebhookCall) -> list[Update]:
        self.seen = [*getattr(self, "seen", []), call]
        if call.path == "whatsapp" and call.query.get("hub.verify_token") != "right":
            raise InvalidWebhook("the token is wrong")
        if call.path == "twilio":
            signed = hmac.new(b"key", call.url.encode() + call.body, sha1).hexdigest()
            if call.headers.get("x-twilio-signature") != signed:
                raise InvalidWebhook("the signature is wrong")
            user = ChannelUser("5", "Eve")
            return [MessageReceived(update_id="t1", chat_id="c5", user=user, text="Hi")]
        return []

    def answer_webhook(self, call: WebhookCall) -> WebhookAnswer | None:
        match call.path:
            case "slack":
                return WebhookAnswer(json.loads(call.body)["challenge"].encode())
            case "whatsapp":
                return WebhookAnswer(call.query["hub.challenge"].encode())
            case "discord":
                return WebhookAnswer(b'{"type":1}', "application/json")
            case "twilio":
                return WebhookAnswer(b"<Response/>", "text/xml", 202)
        return None


@pytest.fixture
def channel(service: Service) -> RecordingChannel:
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.__class__ = Challenging
    return channel


@pytest.mark.usefixtures("channel")
async def test_challenges_are_answered_by_the_channel(client: httpx2.AsyncClient) -> None:
    slack = await client.post(f"{HOOK}/slack", json={"challenge": "3eZbrw"})
    query = {"hub.mode": "subscribe", "hub.verify_token": "right", "hub.challenge": "1158"}
    whatsapp = await client.get(f"{HOOK}/whatsapp", params=query)
    discord = await client.post(f"{HOOK}/discord", json={"type": 1})

    assert (slack.status_code, slack.text) == (200, "3eZbrw")
    assert (whatsapp.status_code, whatsapp.text) == (200, "1158")
    assert (discord.json(), discord.headers["content-type"]) == ({"type": 1}, "application/json")


async def test_a_signature_may_cover_the_address_and_the_query(
    client: httpx2.AsyncClient, service: Service, channel: RecordingChannel
) -> None:
    url = f"{service.channels.hook_url(channel)}/twilio?a=1&b=%20x"
    signed = hmac.new(b"key", url.encode() + b"Body=Hi", sha1).hexdigest()

    answer = await client.post(
        f"{HOOK}/twilio?a=1&b=%20x", content=b"Body=Hi", headers={"X-Twilio-Signature": signed}
    )

    assert (answer.status_code, answer.text) == (202, "<Response/>")
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT chat_id FROM core_chats") == "c5"


@pytest.mark.usefixtures("channel")
async def test_a_challenge_of_somebody_else_is_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.get(f"{HOOK}/whatsapp", params={"hub.challenge": "1"})

    assert answer.status_code == 401


async def test_a_channel_that_takes_no_get_is_asked_nothing(client: httpx2.AsyncClient) -> None:
    answer = await client.get(HOOK)

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.usefixtures("channel")
async def test_a_body_below_the_address_is_bounded_too(
    client: httpx2.AsyncClient, service: Service
) -> None:
    most = service.settings.server.max_body_bytes

    answer = await client.post(f"{HOOK}/slack", content=b"x" * (most + 1))

    assert answer.status_code == 413

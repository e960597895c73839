"""What the HTTP channel says to a provider, and makes of its answers and calls."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from msgsvc_core.channels import (
    Channel,
    DeliveryReported,
    InvalidWebhook,
    MessageReceived,
    OutgoingMessage,
    Reason,
    Unreadable,
    WebhookCall,
)
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_devkit.platforms.sms import FakeSmsProvider
from msgsvc_devkit.web_servers import stop
from msgsvc_sms.templates import MAX_FORM_BYTES

from .conftest import ChannelFactory, failure_of

NUMBER = "+4915120000001"
SECRET = "0123456789abcdef"

INBOUND = {"inbound_secret": SECRET}


@pytest.fixture
async def echo() -> Any:
    """A provider with another API: what it got, and its address."""
    got: list[dict[str, Any]] = []
    answer: dict[str, Any] = {"status": 200, "text": "OK: 4711"}

    async def take(request: web.Request) -> web.Response:
        got.append(
            {
                "query": dict(request.query),
                "form": dict(await request.post()),
                "authorization": request.headers.get("Authorization"),
            }
        )
        return web.Response(**answer)

    app = web.Application()
    app.add_routes([web.route("*", "/send", take)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site.port}/send", got, answer
    await stop(runner)


def settings_of(url: str, **more: Any) -> dict[str, Any]:
    return {
        "plugin": "sms_http",
        "url": url,
        "sender": "Shop",
        "message_id": "text",
        "allowed_prefixes": "+49",
        **more,
    }


async def test_a_form_with_basic_authentication(make_channel: ChannelFactory, echo: Any) -> None:
    url, got, _ = echo
    channel = await make_channel(
        settings_of(url),
        body="To={to}\nFrom={sender}\nBody={text}",
        body_format="form",
        username="AC1",
        password="pw",
    )
    ref = await channel.send(NUMBER, OutgoingMessage("a&b=c\n{to} Привет", key="k"))

    assert ref == "OK: 4711"
    assert got[0]["form"] == {"To": NUMBER, "From": "Shop", "Body": "a&b=c\n{to} Привет"}
    assert got[0]["authorization"] == "Basic QUMxOnB3"


async def test_a_get_with_everything_in_its_address(
    make_channel: ChannelFactory, echo: Any
) -> None:
    url, got, _ = echo
    channel = await make_channel(
        settings_of(url + "?key={secret}&to={digits}&msg={text}"), method="GET", secret="s3 cret"
    )
    await channel.send(NUMBER, OutgoingMessage("100% & more", key="k"))

    assert got[0]["query"] == {"key": "s3 cret", "to": NUMBER[1:], "msg": "100% & more"}


@pytest.mark.parametrize(
    ("status", "reason", "in_doubt"),
    [
        (429, Reason.RATE_LIMITED, False),
        (401, Reason.BOT_BANNED, False),
        (422, Reason.INVALID_MESSAGE, False),
        (402, Reason.BOT_BANNED, False),
        (418, Reason.UNKNOWN, False),
        (500, Reason.PLATFORM_UNAVAILABLE, True),
        (503, Reason.PLATFORM_UNAVAILABLE, False),
        (302, Reason.UNKNOWN, False),
    ],
)
async def test_a_status_has_its_meaning(
    make_channel: ChannelFactory, echo: Any, status: int, reason: Reason, in_doubt: bool
) -> None:
    url, _, answer = echo
    answer.update(status=status, text=f"no credit for {NUMBER}")
    channel = await make_channel(settings_of(url), answers="402 = bot_banned")
    error = await failure_of(channel.send(NUMBER, OutgoingMessage("Hello", key="k")))

    assert (error.reason, error.in_doubt) == (reason, in_doubt)
    assert NUMBER not in error.text


async def test_an_error_with_a_status_of_success_is_one(
    make_channel: ChannelFactory, echo: Any
) -> None:
    url, _, answer = echo
    answer.update(text='{"code": 9, "id": 5}', content_type="application/json")
    channel = await make_channel(
        settings_of(url, message_id="id"), status="code", answers="9 = chat_not_found"
    )
    error = await failure_of(channel.send(NUMBER, OutgoingMessage("Hello", key="k")))

    assert (error.reason, error.text) == (Reason.CHAT_NOT_FOUND, "the provider answered 9")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("body", '{"to": "{number}"}'),
        ("body", '{"to": {to}}'),
        ("answers", "429 = later"),
        ("inbound_secret", "short"),
        ("headers", "no header"),
        ("signature_header", "X-Signature"),
        ("allowed_prefixes", "Germany"),
        ("allowed_prefixes", ""),
        ("start_words", "STOP"),
    ],
)
async def test_settings_that_can_not_work_are_refused(
    make_channel: ChannelFactory, name: str, value: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        await make_channel({**settings_of("http://127.0.0.1:1/"), name: value})

    assert "short" not in str(caught.value)


async def test_a_call_proves_itself_by_its_address(
    make_channel: ChannelFactory, provider: FakeSmsProvider
) -> None:
    channel = await make_channel(provider.settings, **INBOUND)
    call = webhook({"from": NUMBER, "text": "Hello", "id": "7"})
    [update] = channel.parse_update(call)

    assert isinstance(update, MessageReceived)
    assert (update.update_id, update.chat_id, update.text) == ("in-7", NUMBER, "Hello")
    for other in ("", SECRET[:-1], f"{SECRET}x", "another-secret-0123"):
        with pytest.raises(InvalidWebhook):
            channel.parse_update(replace(call, path=other))


async def test_a_call_may_be_a_form_or_a_query(
    make_channel: ChannelFactory, provider: FakeSmsProvider
) -> None:
    channel = await make_channel(
        provider.settings, **INBOUND, inbound_from="From", inbound_text="Body", inbound_id="Sid"
    )
    form = WebhookCall(
        b"From=%2B4915120000001&Body=a%26b&Sid=S1",
        {"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
        path=SECRET,
    )
    query = WebhookCall(
        b"", method="GET", path=SECRET, query={"From": NUMBER, "Body": "a&b", "Sid": "S1"}
    )
    found = [channel.parse_update(each) for each in (form, query)]

    assert found[0] == found[1]
    assert [each.text for each in found[0] if isinstance(each, MessageReceived)] == ["a&b"]


@pytest.mark.parametrize(
    ("status", "state"),
    [("Delivered", "delivered"), ("UNDELIV", "failed"), ("queued", None), ("?", None)],
)
async def test_a_receipt_says_what_became_of_a_message(
    make_channel: ChannelFactory, provider: FakeSmsProvider, status: str, state: str | None
) -> None:
    channel = await make_channel(provider.settings, **INBOUND)
    updates = channel.parse_update(webhook({"message_id": "m1", "status": status}))

    states = [each.state for each in updates if isinstance(each, DeliveryReported)]
    assert states == ([] if state is None else [state])


async def test_without_a_secret_no_call_is_taken(
    make_channel: ChannelFactory, provider: FakeSmsProvider
) -> None:
    channel: Channel = await make_channel(provider.settings)

    assert channel.receiving == "nothing"
    assert channel.capabilities.buttons == "links"
    with pytest.raises(InvalidWebhook):
        channel.parse_update(replace(webhook({"from": NUMBER, "text": "Hello"}), path=""))


async def test_a_call_that_the_settings_do_not_name_is_kept_and_read_by_corrected_ones(
    make_channel: ChannelFactory, provider: FakeSmsProvider
) -> None:
    wrong = await make_channel(provider.settings, **INBOUND)
    right = await make_channel(
        provider.settings, **INBOUND, inbound_from="From", inbound_text="Body", inbound_id="Sid"
    )
    form = {"content-type": "application/x-www-form-urlencoded"}
    calls = [
        WebhookCall(b"From=%2B4915120000001&Body=Hi&Sid=1", form, path=SECRET),
        WebhookCall(
            b"", method="GET", path=SECRET, query={"From": NUMBER, "Body": "Hi", "Sid": "2"}
        ),
        webhook({"From": NUMBER, "Body": "Hi", "Sid": "3"}),
    ]
    for number, call in enumerate(calls, 1):
        [found] = wrong.parse_update(call)
        assert isinstance(found, Unreadable)
        assert found.reason == "unknown_kind"
        [taken] = await right.take_anyway(found)
        assert isinstance(taken, MessageReceived)
        assert (taken.update_id, taken.text) == (f"in-{number}", "Hi")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{", "application/json"),
        (b"\xff", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"text=" + b"%25" * (MAX_FORM_BYTES // 3), "application/x-www-form-urlencoded"),
    ],
)
async def test_a_body_that_is_no_json_or_too_long_a_form_is_kept(
    make_channel: ChannelFactory, provider: FakeSmsProvider, body: bytes, content_type: str
) -> None:
    channel = await make_channel(provider.settings, **INBOUND)
    call = WebhookCall(body, {"content-type": content_type}, path=SECRET)
    [found] = channel.parse_update(call)
    assert isinstance(found, Unreadable)
    [still] = await channel.take_anyway(found)

    assert (found.reason, found.raw) == ("malformed", body)
    assert isinstance(still, Unreadable)


async def test_a_call_without_anything_in_it_is_no_update(
    make_channel: ChannelFactory, provider: FakeSmsProvider
) -> None:
    channel = await make_channel(provider.settings, **INBOUND)

    assert channel.parse_update(WebhookCall(b"", method="GET", path=SECRET)) == []


@pytest.mark.parametrize(
    ("sender", "text", "reason"),
    [
        ("Shop", "Hello", "no_sender"),
        (NUMBER, " ", "empty"),
        (NUMBER, "start x_1", "unproven_sender"),
    ],
)
async def test_a_text_that_is_not_taken_is_kept_and_stays_so(
    make_channel: ChannelFactory, provider: FakeSmsProvider, sender: str, text: str, reason: str
) -> None:
    channel = await make_channel(provider.settings, **INBOUND)
    [found] = channel.parse_update(webhook({"from": sender, "text": text}))
    assert isinstance(found, Unreadable)
    [still] = await channel.take_anyway(found)

    assert (found.reason, json.loads(found.raw)) == (reason, {"from": sender, "text": text})
    assert isinstance(still, Unreadable)
    assert (still.reason, still.update_id) == (reason, found.update_id)


def webhook(content: object) -> WebhookCall:
    body = json.dumps(content).encode()
    return WebhookCall(body, {"content-type": "application/json"}, path=SECRET)

"""The bot's token is in the header of its calls, and nowhere that anybody looks."""

import logging
import traceback
from typing import Any

import pytest
import structlog
from pydantic import ValidationError

from msgsvc_core.channels import DeliveryError, InvalidMiniApp, Media, OutgoingMessage
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_devkit.platforms.max import Refused
from msgsvc_max.plugin import register_channel_kinds
from msgsvc_max.settings import MaxSettings

TOKEN = "f9LHodD0cOI-fake-token"


async def test_no_failure_shows_the_token(channel, platform, ann, media_host, caplog):
    caplog.set_level(logging.DEBUG)
    media = Media("video", f"{media_host.url}/v.mp4")
    calls = [
        lambda: channel.send(str(ann.chat_id), OutgoingMessage("Hello")),
        lambda: channel.send(str(ann.chat_id), OutgoingMessage("Hello", media=media)),
        lambda: channel.edit(str(ann.chat_id), "mid.1", OutgoingMessage("Hello")),
        lambda: channel.poll_updates(None),
        lambda: channel.set_webhook("http://127.0.0.1:1/hooks/a", "5ec2e7" * 10),
    ]
    shown: list[str] = []
    with structlog.testing.capture_logs() as logs:
        for call in calls:
            for fault in ("reset", "garbage", "away", "refused", "revoked"):
                shown += await failing(platform, call, fault)
        with pytest.raises(InvalidMiniApp) as caught:
            channel.verify_mini_app("user=1&hash=2")
        shown += traceback.format_exception(caught.value)

    assert len(shown) > 50
    everything = "\n".join([*shown, repr(logs), caplog.text, repr(channel), repr(vars(channel))])
    assert TOKEN not in everything
    assert TOKEN in platform.calls[0].headers["Authorization"]


async def failing(platform: Any, call: Any, fault: str) -> list[str]:
    """What the error of one call shows, with all that led to it."""
    if fault == "away":
        port = int(platform.url.rpartition(":")[2])
        await platform.stop()
    elif fault == "refused":
        platform.faults.fail_next(Refused(400, "proto.payload", "no"))
    elif fault == "revoked":
        platform.revoked = True
    else:
        platform.faults.break_next(fault)
    with pytest.raises(DeliveryError) as caught:
        await call()
    if fault == "away":
        await platform.start(port)
    platform.revoked = False
    return [*traceback.format_exception(caught.value), repr(caught.value), caught.value.text]


def test_settings_do_not_show_secrets() -> None:
    settings = MaxSettings(token=TOKEN, proxy="http://user:pa55word@proxy.example:3128")

    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert TOKEN not in shown
    assert "pa55word" not in shown


@pytest.mark.parametrize("token", ["", " ", f"{TOKEN}\r\nX: y", f"Bearer {TOKEN}", "тoken"])
async def test_what_is_no_token_is_refused_without_being_shown(make_channel, token):
    with pytest.raises(
        SettingsError, match=r"channels\.messenger_a\.token: .*without spaces"
    ) as caught:
        await make_channel(token=token)

    assert TOKEN not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "platform-api.max.ru"},
        {"base_url": "https://platform-api.max.ru/?x=1"},
        {"receiving": "sometimes"},
        {"proxy": "socks5://proxy.example"},
        {"proxy": "proxy.example:3128"},
        {"ca_file": "/nowhere/ca.pem"},
        {"timeout_s": 0},
        {"per_bot_s": 0},
        {"tokken": "x"},
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MaxSettings.model_validate({"token": TOKEN, **options})


def test_where_calls_go_is_the_operators() -> None:
    (kind,) = register_channel_kinds()

    assert kind.operator_settings == {"base_url", "proxy", "ca_file"}
    assert kind.operator_settings <= set(MaxSettings.model_fields)

"""The token is part of every address, and is never shown."""

import asyncio
import json
import logging
import traceback
from urllib.parse import quote

import pytest
from pydantic import ValidationError

from msgsvc_core.channels import DeliveryError, Media, OutgoingMessage
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.services import SECRET_KEY
from msgsvc_telegram import plugin
from msgsvc_telegram.client import BotApi
from msgsvc_telegram.settings import TelegramSettings

HELLO = OutgoingMessage("Hello")

PROXY = "http://operator:proxy-password@127.0.0.1:9"


def forms_of(token: str) -> list[str]:
    """The secret, and ways in which it could stand somewhere all the same."""
    secret = token.partition(":")[2]
    return [token, secret, quote(token, safe=""), "proxy-password"]


def hidden(token: str, text: str) -> bool:
    return not any(form in text for form in forms_of(token))


def refused_with_token(telegram) -> None:
    said = f"Bad Request: https://api.telegram.org/bot{telegram.bot.token}/sendMessage is odd"
    telegram.fail_next("sendMessage", 400, said)


def echoed_with_token(telegram) -> None:
    page = f"<h1>404</h1> /bot{telegram.bot.token}/sendMessage was not found"
    telegram.answer_next("sendMessage", 404, page.encode())


def redirected(telegram) -> None:
    telegram.answer_next("sendMessage", 302, b"elsewhere")


def reset(telegram) -> None:
    telegram.faults.resets = 1.0


def lost(telegram) -> None:
    telegram.faults.lost_answers = 1.0


def limited(telegram) -> None:
    telegram.fail_next("sendMessage", 429, "Too Many Requests", parameters={"retry_after": 1})


def revoked(telegram) -> None:
    telegram.bot.revoked = True


def nonsense(telegram) -> None:
    telegram.answer_next("sendMessage", 200, b"\xff" * 10)


@pytest.mark.parametrize(
    "fault",
    [
        refused_with_token,
        echoed_with_token,
        redirected,
        reset,
        lost,
        limited,
        revoked,
        nonsense,
    ],
)
async def test_no_failure_shows_the_token(channel, telegram, anna, caplog, capsys, fault):
    caplog.set_level(logging.DEBUG)
    fault(telegram)

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)

    error = failed.value
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    said = caplog.text + "".join(capsys.readouterr())
    assert hidden(telegram.bot.token, told + said)
    # Nor does what a debugger or an error tracker goes back to.
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "http://127.0.0.1:9"},
        {"base_url": "http://no-such-host.invalid"},
        {"base_url": "https://127.0.0.1:1"},
        {"proxy": PROXY},
        {"timeout_s": 0.000_001},
    ],
    ids=lambda settings: next(iter(settings.values())),
)
async def test_no_address_shows_it_that_does_not_answer(
    make_channel, telegram, anna, caplog, settings
):
    caplog.set_level(logging.DEBUG)
    channel = make_channel(**settings)

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), HELLO)
    health = await channel.check()

    told = "".join(traceback.format_exception(failed.value)) + health.detail + caplog.text
    assert not health.ok
    assert hidden(telegram.bot.token, told)


async def test_an_upload_that_fails_does_not_show_it(channel, telegram, anna, caplog):
    telegram.reaches_files = False
    url = telegram.host_file("cup.png", b"\x89PNG\r\n\x1a\n", "image/png")
    telegram.fail_next("sendPhoto", 400, "Bad Request: failed to get HTTP URL content")
    telegram.answer_next("sendPhoto", 502, telegram.bot.token.encode())

    with pytest.raises(DeliveryError) as failed:
        await channel.send(str(anna.user_id), OutgoingMessage("", media=Media("image", url)))

    assert hidden(telegram.bot.token, "".join(traceback.format_exception(failed.value)))


def test_nothing_that_holds_the_token_shows_it(make_channel, telegram):
    channel = make_channel(proxy=PROXY)
    settings = channel._settings

    shown = [repr(channel), str(channel), repr(channel._api), repr(channel._api._http)]
    shown += [repr(settings), str(settings), settings.model_dump_json()]

    assert hidden(telegram.bot.token, "".join(shown))


def test_settings_that_are_refused_do_not_show_it():
    token = "no token, but a secret of 123456"
    values = {
        "secret_keys": (SECRET_KEY,),
        "plugins": (),
        "channels": {"messenger_a": {"plugin": "telegram", "token": token}},
    }

    with pytest.raises(SettingsError) as failed:
        Service(Settings.model_validate(values), extra_plugins=[("telegram", plugin)])
    with pytest.raises(ValidationError) as wrong:
        TelegramSettings(token=token)

    assert "channels.messenger_a.token" in str(failed.value)
    assert "123456:ABC" in str(failed.value)  # what one looks like
    assert token not in str(failed.value)
    assert token not in str(wrong.value)


@pytest.mark.parametrize("receiving", ["poll", "webhook"])
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_service_whose_bot_does_not_answer_does_not_log_it(
    make_site, telegram, anna, caplog, capsys, receiving
):
    caplog.set_level(logging.DEBUG)
    site = await make_site(receiving)
    telegram.faults.methods = ("",)
    telegram.faults.server_errors = 0.5
    telegram.faults.resets = 0.5
    before = len(telegram.calls)
    channel = site.service.channels["messenger_a"]

    await channel.check()
    await anna.write("Hello?")
    await until(lambda: _called(telegram, before))
    ready = await site.client.get("/readyz")

    said = caplog.text + "".join(capsys.readouterr()) + ready.text + json.dumps(site.url)
    assert hidden(telegram.bot.token, said)


async def test_a_cancelled_call_does_not_show_it(make_channel, telegram):
    channel = make_channel()
    api: BotApi = channel._api
    asking = asyncio.create_task(api.call("getUpdates", {"timeout": 20}))
    await until(lambda: _called(telegram, 0))

    asking.cancel()
    with pytest.raises(asyncio.CancelledError) as ended:
        await asking

    assert hidden(telegram.bot.token, "".join(traceback.format_exception(ended.value)))


async def _called(telegram, before: int) -> bool:
    return len(telegram.calls) > before

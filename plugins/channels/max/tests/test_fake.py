"""The fake is as strict as the schema, and keeps the platform's limits."""

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from msgsvc_devkit.platforms.max import FakeMax, Faults, Person, Refused

TEXT = {"text": "Hello"}


def keyboard(*rows: Any) -> dict[str, Any]:
    return {**TEXT, "attachments": [{"type": "inline_keyboard", "payload": {"buttons": [*rows]}}]}


def callback(**fields: Any) -> dict[str, Any]:
    return {"type": "callback", "text": "Yes", "payload": "y", **fields}


def link(**fields: Any) -> dict[str, Any]:
    return {"type": "link", "text": "Site", "url": "https://shop.example", **fields}


def files(*attachments: Any) -> dict[str, Any]:
    return {**TEXT, "attachments": [*attachments]}


@pytest.fixture
async def http(platform: FakeMax) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": platform.token}
    async with aiohttp.ClientSession(platform.url, headers=headers) as session:
        yield session


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"text": 1},
        {"text": ""},
        {"text": "x" * 4001},
        {"text": "😀" * 2001},
        {"txt": "Hello"},
        {**TEXT, "parse_mode": "HTML"},
        {**TEXT, "format": "HTML"},
        {**TEXT, "notify": "no"},
        {**TEXT, "attachments": {}},
        {"text": "a < b", "format": "html"},
        {"text": "a & b", "format": "html"},
        {"text": "<b>a", "format": "html"},
        {"text": "<b><i>a</b></i>", "format": "html"},
        {"text": "<span>a</span>", "format": "html"},
        {"text": "<a>a</a>", "format": "html"},
        {"text": "<B>a</B>", "format": "html"},
        keyboard(),
        keyboard([]),
        keyboard(*[[callback()]] * 31),
        keyboard([callback()] * 8),
        keyboard([callback()] * 3 + [link()]),
        keyboard([callback(text="")]),
        keyboard([callback(text="x" * 129)]),
        keyboard([callback(payload="x" * 1025)]),
        keyboard([callback(callback_data="y")]),
        keyboard([link(url="shop.example")]),
        keyboard([link(url="https://" + "x" * 2048)]),
        keyboard([{"type": "callback", "text": "Yes"}]),
        keyboard([{"type": "button", "text": "Yes"}]),
        files({"type": "image", "payload": {}}),
        files({"type": "image", "payload": {"url": "https://x", "token": "y"}}),
        files({"type": "video", "payload": {"url": "https://x"}}),
        files({"type": "file", "payload": {"token": "unknown"}}),
        files({"type": "image", "payload": {"token": "x"}, "size": 1}),
        files({"type": "photo", "payload": {"token": "x"}}),
        files(*[{"type": "file", "payload": {"token": "x"}}] * 2),
    ],
)
async def test_a_message_that_is_not_the_schemas_is_refused(http, ann, body):
    answer = await http.post("/messages", params={"chat_id": str(ann.chat_id)}, json=body)

    assert answer.status == 400
    assert (await answer.json())["code"] == "proto.payload"
    assert ann.messages == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/messages"),
        ("POST", "/messages?chat_id=1&user_id=2"),
        ("POST", "/messages?chat_id=abc"),
        ("POST", "/messages?chat_id=1&silent=true"),
        ("PUT", "/messages"),
        ("DELETE", "/messages?message_id="),
        ("POST", "/answers?callback_id=%20"),
        ("GET", "/updates?limit=1001"),
        ("GET", "/updates?timeout=91"),
        ("GET", "/updates?marker=x"),
        ("GET", "/updates?types=message"),
        ("GET", "/updates?offset=1"),
        ("GET", "/me?v=1"),
        ("POST", "/uploads?type=photo"),
        ("DELETE", "/subscriptions"),
    ],
)
async def test_a_call_that_is_not_the_schemas_is_refused(http, method, path):
    body = {"json": TEXT} if method in {"POST", "PUT"} else {}

    answer = await http.request(method, path, **body)

    assert answer.status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://shop.example/hook"},
        {"url": "https://shop.example:8443/hook"},
        {"url": "https://shop.example/hook", "secret": "shrt"},
        {"url": "https://shop.example/hook", "secret": "with space"},
        {"url": "https://shop.example/hook", "update_types": ["message"]},
        {"url": "https://shop.example/hook", "update_types": ["bot_started"] * 2},
        {"url": "https://shop.example/hook", "version": "1"},
        {"secret": "secret"},
    ],
)
async def test_a_subscription_that_is_not_the_schemas_is_refused(http, platform, body):
    answer = await http.post("/subscriptions", json=body)

    assert answer.status == 400
    assert platform.updates.subscriptions == {}


@pytest.mark.parametrize(
    "body",
    [
        None,
        {"commands": None},
        {"commands": [{"name": "stop", "description": "x"}], "name": "Bot"},
        {"commands": [{"name": "", "description": "x"}]},
        {"commands": [{"name": "x" * 65, "description": "x"}]},
        {"commands": [{"name": "stop", "description": ""}]},
        {"commands": [{"name": "stop", "description": "x" * 129}]},
        {"commands": [{"name": "stop", "about": "x"}]},
        {"commands": [{"name": f"c{n}", "description": "x"} for n in range(33)]},
    ],
)
async def test_commands_that_are_not_the_schemas_are_refused(http, platform, body):
    answer = await http.patch("/me/commands", json=body)

    assert answer.status == 400
    assert platform.menu == {}


async def test_commands_are_not_changed_by_the_call_of_before_september_2026(http):
    answer = await http.patch("/me", json={"commands": []})

    assert not answer.ok


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer f9LHodD0cOI-fake-token"}])
async def test_the_token_is_wanted_in_the_header(platform, headers):
    async with aiohttp.ClientSession(platform.url, headers=headers) as http:
        answer = await http.get("/me", params={"access_token": platform.token})

    assert answer.status == 401
    assert (await answer.json())["code"] == "verify.token"


async def test_who_never_started_cannot_be_written_to_by_either_id(http, platform, ann):
    bob = platform.person("Bob")
    answers = [
        await http.post("/messages", params=params, json=TEXT)
        for params in (
            {"chat_id": str(bob.chat_id)},
            {"user_id": str(bob.user_id)},
            {"user_id": str(ann.user_id)},
        )
    ]

    assert [answer.status for answer in answers] == [404, 404, 200]


async def test_polling_while_there_is_a_webhook_is_refused(http):
    await http.post("/subscriptions", json={"url": "https://shop.example/hook"})

    answer = await http.get("/updates")

    assert answer.status == 405


def test_no_more_than_thirty_calls_a_second_are_taken() -> None:
    faults = Faults()

    for number in range(30):
        faults.of_call(now=number / 100)
    with pytest.raises(Refused, match="429"):
        faults.of_call(now=0.999)
    faults.of_call(now=1.0)


def test_no_more_than_two_messages_a_second_are_taken_in_a_chat() -> None:
    faults = Faults()

    for chat_id in (1, 2):
        faults.of_chat(chat_id, now=0.0)
        faults.of_chat(chat_id, now=0.5)
    with pytest.raises(Refused, match="429"):
        faults.of_chat(1, now=0.9)
    faults.of_chat(1, now=1.0)


async def test_rates_of_faults_are_what_they_are_set_to(http, platform):
    platform.faults.rate_429, platform.faults.rate_5xx = 0.5, 0.4

    statuses = [(await http.get("/me")).status for _ in range(400)]

    assert 150 < statuses.count(429) < 250
    assert 50 < statuses.count(503) < 120
    assert statuses.count(200) > 80


async def test_a_person_presses_only_what_is_there(platform: FakeMax, ann: Person) -> None:
    with pytest.raises(LookupError):
        await ann.press("Yes")
    with pytest.raises(ValueError, match="does not lead"):
        await ann.open("https://max.ru/another_bot?start=x")
    with pytest.raises(TimeoutError, match="Hello"):
        await ann.wait_for("Hello", timeout_s=0.01)


def test_it_runs_by_hand() -> None:
    commands = "start auth_1\nwrite Hello\npress Yes\nopen nowhere\nblock\nwhat?\nquit\n"

    ended = subprocess.run(
        [sys.executable, "-m", "msgsvc_devkit.platforms.max", "--port", "0"],
        input=commands,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert 'plugin = "max"' in ended.stdout
    assert "no button 'Yes'" in ended.stdout
    assert "does not lead to fake_bot" in ended.stdout
    assert ended.stderr == ""

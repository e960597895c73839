"""The fake is as strict as Meta's OpenAPI document."""

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp, Person, Refused

MESSAGES = "/v25.0/106540352242922/messages"
TEXT = {"type": "text", "text": {"body": "Hello"}}


def interactive(action: Any, kind: str = "button", **fields: Any) -> dict[str, Any]:
    body = {"type": kind, "body": {"text": "Choose"}, "action": action, **fields}
    return {"type": "interactive", "interactive": body}


def buttons(*replies: Any) -> dict[str, Any]:
    return interactive({"buttons": [{"type": "reply", "reply": reply} for reply in replies]})


def rows(*given: Any, button: str = "Open") -> dict[str, Any]:
    return interactive({"button": button, "sections": [{"rows": [*given]}]}, "list")


def reply(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": f"i{number}", "title": f"T{number}", **fields}


def template(text: str, name: str = "notice") -> dict[str, Any]:
    body = {"type": "body", "parameters": [{"type": "text", "text": text}]}
    given = {"name": name, "language": {"code": "en"}, "components": [body]}
    return {"type": "template", "template": given}


@pytest.fixture
async def http(platform: FakeWhatsApp) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {platform.token}"}
    async with aiohttp.ClientSession(platform.url, headers=headers) as session:
        yield session


async def answer_to(http: aiohttp.ClientSession, person: Person, body: Any) -> dict[str, Any]:
    to = {"messaging_product": "whatsapp", "recipient": person.user_id}
    async with http.post(
        MESSAGES, json={**to, **body} if isinstance(body, dict) else body
    ) as answer:
        found: dict[str, Any] = await answer.json()
        return found


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"type": "poll", "poll": {}},
        {**TEXT, "messaging_product": "sms"},
        {**TEXT, "recipient_type": "group"},
        {**TEXT, "to": "16505550001"},
        {**TEXT, "recipient": "ann"},
        {**TEXT, "silent": True},
        {"type": "text", "text": {"body": ""}},
        {"type": "text", "text": {"body": "x" * 4097}},
        {"type": "text", "text": {"body": "😀" * 2049}},
        {"type": "text", "text": {"body": "x", "preview_url": "yes"}},
        {"type": "text", "text": {"text": "x"}},
        {"type": "image", "image": {}},
        {"type": "image", "image": {"id": "1", "link": "https://x"}},
        {"type": "image", "image": {"id": "unknown"}},
        {"type": "image", "image": {"link": "https://x", "caption": "x" * 1025}},
        buttons(),
        buttons(*map(reply, range(4))),
        buttons(reply(title="")),
        buttons(reply(title="x" * 21)),
        buttons(reply(id="x" * 257)),
        buttons(reply(id=" x")),
        buttons(reply(), reply(2, title="T1")),
        buttons(reply(), reply(2, id="i1")),
        buttons(reply(url="https://x")),
        rows(),
        rows(*map(reply, range(11))),
        rows(reply(title="x" * 25)),
        rows(reply(description="x" * 73)),
        rows(reply(id="x" * 201)),
        rows(reply(), button="x" * 21),
        {**interactive({}, "carousel")},
        interactive({"buttons": []}, body={"text": "x" * 1025}),
        interactive(
            {"name": "cta_url", "parameters": {"display_text": "x", "url": "x"}}, "cta_url"
        ),
        template("two\nlines"),
        template("x", name="gone"),
    ],
)
async def test_what_the_document_does_not_contain_is_refused(http, platform, ann, body):
    answer = await answer_to(http, ann, body)

    assert answer["error"]["type"] == "OAuthException"
    assert ann.messages == []


@pytest.mark.parametrize(
    "body",
    [
        TEXT,
        {"type": "text", "text": {"body": "x" * 4096, "preview_url": True}},
        buttons(*map(reply, range(3))),
        rows(*[reply(number, title="x" * 24, description="y" * 72) for number in range(10)]),
        template("one line"),
    ],
)
async def test_what_it_contains_is_shown(http, platform, ann, body):
    answer = await answer_to(http, ann, body)

    assert answer["messages"] == [{"id": ann.messages[0].ref}]
    assert answer["contacts"] == [{"input": ann.user_id, "user_id": ann.user_id}]


async def test_a_wrong_token_is_refused(platform, ann):
    async with aiohttp.ClientSession(platform.url) as session:
        answer = await answer_to(session, ann, TEXT)

    assert answer["error"]["code"] == 190


async def test_files_have_to_be_of_a_type_that_the_platform_takes(http):
    codes = []
    for mime_type in ("image/gif", "image/png"):
        form = aiohttp.FormData({"messaging_product": "whatsapp", "type": mime_type})
        form.add_field("file", b"x", filename="f", content_type=mime_type)
        async with http.post("/v25.0/106540352242922/media", data=form) as answer:
            codes.append(answer.status)

    assert codes == [400, 200]


async def test_who_blocked_the_business_gets_nothing_and_nobody_is_told_at_once(
    http, platform, ann
):
    await ann.block()
    answer = await answer_to(http, ann, TEXT)

    assert answer["messages"]
    assert ann.messages == []


async def test_a_marketing_template_does_not_reach_who_opted_out(http, platform, ann):
    await ann.opt_out()
    await answer_to(http, ann, template("utility"))
    platform.marketing.add("notice")
    await answer_to(http, ann, template("marketing"))

    assert [one.text for one in ann.messages] == ["News for you: utility. Answer to write with us."]


@pytest.mark.parametrize(
    "link",
    [
        "https://wa.me/15550783881",
        "https://wa.me/16505550000?text=start",
        "https://wa.me.example/15550783881?text=start",
        "https://wa.me/15550783881?text=a&text=b",
    ],
)
async def test_only_links_with_a_text_to_this_number_can_be_opened(platform, ann, link):
    with pytest.raises(ValueError):  # noqa: PT011 - reading an address may fail in many ways
        await ann.open(link)


async def test_it_is_wrong_to_press_what_is_not_there(ann):
    with pytest.raises(LookupError):
        await ann.press("Yes")


async def test_waiting_in_vain_ends(ann):
    with pytest.raises(TimeoutError):
        await ann.wait_for("never", timeout_s=0.01)


def test_a_refusal_says_what_it_is():
    assert str(Refused(400, 100, "Invalid parameter", "text")) == "400 100: Invalid parameter text"


def test_it_runs_by_hand():
    command = [sys.executable, "-m", "msgsvc_devkit.platforms.whatsapp", "--port", "0"]
    lines = "write Hello\npress Yes\nwait 25\nnonsense\nquit\n"
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=60, check=True
    )

    assert 'plugin = "whatsapp"' in done.stdout
    assert "no button 'Yes'" in done.stdout

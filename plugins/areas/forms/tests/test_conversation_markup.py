"""Markup in labels and answers is text in the messenger: nothing of it is ever taken for a look."""

import pytest

from msgsvc_core.channels.markup import to_spans
from msgsvc_core.service import Service

from .conftest import Desk
from .talker import Talker

PAYLOADS = [
    "<script>alert(1)</script>",
    "<b>bold</b><i>it",
    "</b></i></a>",
    '<a href="javascript:alert(1)">x</a>',
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt;&amp;amp;",
    "*bold* _it_ ~strike~ `code`",
    "**bold** __bold__ ~~strike~~",
    "```\npre\n```",
    "[link](https://evil.example)",
    "[x](javascript:alert(1))",
    "\\*\\_\\[\\]\\(\\)",
    "||spoiler|| >quote",
    "{{ first_name }} {% raw %}",
    "{label} {0} %s %(x)d ${x}",
    '=HYPERLINK("http://x")',
    "@everyone #tag /start",
    "\u202egnp.exe\u202c \u2066x\u2069",
    "a\u0301\u200d\u200b\ufeff",
    "👩‍👩‍👧‍👦" * 20,
]


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_a_payload_is_shown_as_it_was_written(
    service: Service, desk: Desk, payload: str
) -> None:
    options = [{"value": "a", "label": payload[:100]}, {"value": "b", "label": "B"}]
    form = await desk.form(
        {"key": "name", "type": "text", "label": f"Name {payload}"},
        {"key": "pick", "type": "choice", "label": payload, "options": options},
        title=f"Title {payload}",
        thanks=f"Thanks {payload}",
    )
    ann = Talker(service)
    await ann.open("contact")
    await ann.say(payload)
    question = ann.text
    await ann.say("1")
    await ann.say("/send")
    said = [one.message for one in ann.shown]

    assert payload.strip() in question
    assert said[-1].text == f"Thanks {payload}"
    assert {message.format for message in said} == {"plain"}
    assert all(to_spans(one.text, one.format)[0].marks == () for one in said)
    [kept] = await desk.submissions(form)
    assert [one["value"] for one in kept["answers"]] == [payload.strip().replace("\n", " "), "a"]

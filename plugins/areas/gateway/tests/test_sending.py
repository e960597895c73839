"""Messages of senders: who gets them, on which channel, once."""

import hashlib
import hmac
import json
from typing import Any

import pytest
from httpx2 import AsyncClient

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_gateway.senders import LOGTO_PURPOSES
from plugins.areas.gateway.tests.conftest import (
    EMAIL,
    PHONE,
    Join,
    Make,
    Post,
    events,
    messages,
    recorded,
    refusal,
)


def logto(code: str = "402913", to: str = PHONE, **more: Any) -> bytes:
    body = {"to": to, "type": "SignIn", "payload": {"code": code, **more}}
    return json.dumps(body).encode()


def refused(reason: Reason = Reason.USER_BLOCKED_BOT, **more: Any) -> DeliveryError:
    return DeliveryError(reason, "no", **more)


async def test_zitadel_sends_in_its_own_words(
    make: Make, post: Post, join: Join, first: RecordingChannel, client: AsyncClient
) -> None:
    ann = await join("messenger_a", phone=PHONE)
    gateway = await make("zitadel")

    answer = await post(gateway, recorded("zitadel-sms"))

    assert answer.status_code == 200, answer.text
    [sent] = first.sent
    # The names of texts that ZITADEL does not have are not shown.
    assert sent.message.text.startswith("402913 is your one-time password")
    [[button]] = sent.message.buttons
    assert (button.text, button.url) == (
        "Open",
        "https://id.shop.example/otp/verify?loginName=ann&code=402913",
    )
    [message] = await messages(client, gateway)
    assert (message["to"], message["status"], message["channel"], message["subscriber_id"]) == (
        "+12•••••0123",
        "sent",
        "messenger_a",
        ann,
    )
    [(event, data)] = await events(client)
    assert (event, data["message_id"], data["subscriber_id"]) == (
        "gateway.sent",
        message["message_id"],
        ann,
    )


async def test_a_code_for_which_zitadel_has_no_text_goes_in_our_words(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    body = json.loads(recorded("zitadel-sms"))
    body["templateData"]["text"] = "VerifySMSOTP.Text"
    gateway = await make("zitadel")

    answer = await post(gateway, json.dumps(body).encode())
    body["args"] = {}
    without = await post(gateway, json.dumps(body).encode())

    assert answer.status_code == 200, answer.text
    [sent] = first.sent
    assert "402913" in sent.message.text
    assert "VerifySMSOTP" not in sent.message.text
    assert refusal(without) == (400, "validation_failed")


async def test_an_email_of_zitadels_has_no_escapes_of_html(
    make: Make, post: Post, mail: RecordingChannel
) -> None:
    await post(await make("zitadel"), recorded("zitadel-email"))

    [sent] = mail.sent
    assert sent.message.text.startswith("Hello Ann O'Neil,\n\nWe received a password reset")
    [[button]] = sent.message.buttons
    assert button.text == "Reset password"


async def keep(client: AsyncClient, **template: Any) -> None:
    answer = await client.post("/v1/templates", json=template)
    assert answer.status_code == 201, answer.text


@pytest.mark.both_databases
async def test_a_template_of_the_project_comes_before_the_words_of_both(
    make: Make, post: Post, join: Join, first: RecordingChannel, client: AsyncClient
) -> None:
    await join("messenger_a", phone=PHONE)
    await keep(client, key="gateway", text={"en": "EN {{ code }}", "ru": "RU {{ code }}"})
    await keep(client, key="gateway_mfa_verification", text="{{ project }}: {{ code }}")
    gateway = await make("logto")

    await post(gateway, logto("111111"))
    await post(gateway, logto("222222", locale="ru-RU"))
    await post(await make("zitadel"), recorded("zitadel-sms"))
    await post(await make("novu"), recorded("novu"))

    assert [sent.message.text for sent in first.sent] == [
        "EN 111111",
        "RU 222222",
        "Shop: 402913",
        # Not a code.
        "Your order 1207 is on its way.",
    ]
    # The link stays, in words of ours where ZITADEL has none.
    assert [len(sent.message.buttons) for sent in first.sent] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Hello", "template 'gateway': text: must hold {{ code }}"),
        (
            "{{ code }} {{ name }}",
            "template 'gateway': variables.name: is required by the template",
        ),
    ],
)
async def test_a_template_that_does_not_show_the_code_is_refused(
    make: Make, post: Post, join: Join, client: AsyncClient, text: str, problem: str
) -> None:
    await join("messenger_a", phone=PHONE)
    await keep(client, key="gateway", text=text)

    answer = await post(await make("logto"), logto())

    assert (answer.status_code, answer.json()["error"]) == (400, problem)


async def test_every_type_of_logtos_has_words(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("logto")

    for kind in (*LOGTO_PURPOSES, "Generic", "AddedLater"):
        body = {"to": PHONE, "type": kind, "payload": {"code": "402913"}}
        answer = await post(gateway, json.dumps(body).encode())
        assert answer.status_code == 200, answer.text

    heads = [sent.message.text.partition("\n\n")[0] for sent in first.sent]
    assert len(heads) == 10
    assert len(set(heads)) == 8
    assert all("402913" in sent.message.text.split("\n\n") for sent in first.sent)


async def test_logto_leaves_the_words_to_us(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("logto")

    await post(gateway, recorded("logto"))
    await post(gateway, logto("222222", locale="ru-RU"))

    english, russian = (sent.message.text.split("\n\n") for sent in first.sent)
    assert english[0].startswith("Your code to sign in to ")
    assert english[1] == "402913"
    assert russian[0].startswith("Ваш код для входа в ")


async def test_any_program_sends_a_code_by_a_body_of_its_own_making(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("generic")

    def body(**more: Any) -> bytes:
        return json.dumps({"to": PHONE, "text": None, "link": None, **more}).encode()

    code = body(code="402913", purpose="register", text=" ")
    answers = [await post(gateway, each) for each in (code, code, body(text="Hi"), body(text="Hi"))]
    named = [await post(gateway, body(text=text, id="1")) for text in ("Ho", "Ho!")]

    assert [answer.status_code for answer in (*answers, *named)] == [200] * 6
    ids = [answer.json()["id"] for answer in answers]
    # A code that is posted again is one message; a text may be meant twice; an id decides.
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert named[0].json()["id"] == named[1].json()["id"]
    texts = [sent.message.text for sent in first.sent]
    assert texts[0].startswith("Your code to register with")
    assert "402913" in texts[0]
    assert texts[1:] == ["Hi", "Hi", "Ho"]


async def test_novu_is_told_an_id_and_a_date_where_it_looks_for_them(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)

    answer = await post(await make("novu"), recorded("novu"))

    body = answer.json()
    assert body["id"].startswith("gwm_")
    assert body["data"] == {"id": body["id"], "date": body["date"]}
    assert [sent.message.text for sent in first.sent] == ["Your order 1207 is on its way."]


async def test_a_repeated_request_is_sent_once_and_gets_the_same_answer(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    for sender, body in (("zitadel", "zitadel-sms"), ("logto", "logto"), ("novu", "novu")):
        gateway = await make(sender)
        first.sent.clear()

        before, after = [await post(gateway, recorded(body)) for _ in range(2)]

        assert before.json() == after.json()
        assert len(first.sent) == 1


async def test_the_next_channel_is_tried_if_one_refuses(
    make: Make,
    post: Post,
    join: Join,
    first: RecordingChannel,
    second: RecordingChannel,
    client: AsyncClient,
) -> None:
    blocked = await join("messenger_a", phone=PHONE)
    ann = await join("messenger_b", "1002", phone=PHONE)
    first.failures.append(refused())
    gateway = await make("logto")

    await post(gateway, logto())

    assert [len(one.sent) for one in (first, second)] == [0, 1]
    [message] = await messages(client, gateway)
    assert (message["status"], message["subscriber_id"], message["reason"]) == ("sent", ann, None)
    assert [event for event, _ in await events(client)] == ["gateway.sent"]
    person = (await client.get(f"/v1/subscribers/{blocked}")).json()
    assert person["status"] == "blocked"


async def test_it_fails_once_no_channel_took_it_and_its_text_is_gone(
    make: Make,
    post: Post,
    join: Join,
    service: Service,
    first: RecordingChannel,
    second: RecordingChannel,
    client: AsyncClient,
) -> None:
    await join("messenger_a", phone=PHONE)
    await join("messenger_b", "1002", phone=PHONE)
    first.failures.append(refused(Reason.INVALID_MESSAGE))
    second.failures.append(refused(Reason.CHAT_NOT_FOUND))
    gateway = await make("logto")

    answer = await post(gateway, logto())

    assert answer.status_code == 200
    [message] = await messages(client, gateway)
    assert (message["status"], message["reason"]) == ("failed", "chat_not_found")
    [(event, data)] = await events(client)
    assert (event, data["reason"]) == ("gateway.failed", "chat_not_found")
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM gateway_messages")
    assert [row["sealed"] for row in rows] == [None]


async def test_a_former_owner_of_a_number_never_gets_its_codes(
    make: Make, post: Post, join: Join, first: RecordingChannel, clock: FakeClock
) -> None:
    await join("messenger_a", "1001", phone=PHONE)
    clock.advance(60)
    await join("messenger_a", "1002", phone=PHONE)
    gateway = await make("logto")

    for code in ("111111", "222222"):
        await post(gateway, logto(code))
    first.failures.append(refused())
    await post(gateway, logto("333333"))
    answer = await post(gateway, logto("444444"))

    assert [sent.chat_id for sent in first.sent] == ["chat-1002", "chat-1002"]
    assert refusal(answer) == (422, "gateway_recipient_unreachable")


@pytest.mark.parametrize("locale", ["ru_RU", "RU", "x", "\0", "pt-BR"])
async def test_any_tag_of_a_language_comes_to_one_of_ours(
    make: Make, post: Post, mail: RecordingChannel, client: AsyncClient, locale: str
) -> None:
    answer = await post(await make("logto"), logto(to=EMAIL, locale=locale))

    people = await client.get("/v1/subscribers")
    assert (answer.status_code, people.status_code) == (200, 200)
    assert people.json()["data"][0]["lang"] in {"en", "ru"}


async def test_a_call_whose_fate_is_unknown_goes_on(
    make: Make, post: Post, join: Join, first: RecordingChannel, second: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    await join("messenger_b", "1002", phone=PHONE)
    first.failures.append(refused(Reason.UNKNOWN, in_doubt=True))

    await post(await make("logto"), logto())

    assert len(second.sent) == 1


async def test_who_asks_for_another_code_gets_it_on_the_next_channel(
    make: Make,
    post: Post,
    join: Join,
    clock: FakeClock,
    first: RecordingChannel,
    second: RecordingChannel,
) -> None:
    await join("messenger_a", phone=PHONE)
    await join("messenger_b", "1002", phone=PHONE)
    gateway = await make("logto")

    def seen() -> list[int]:
        return [len(one.sent) for one in (first, second)]

    await post(gateway, logto("111111"))
    assert seen() == [1, 0]
    await post(gateway, logto("222222"))
    assert seen() == [1, 1]
    await post(gateway, logto("333333"))
    assert seen() == [2, 1]
    clock.advance(301)
    await post(gateway, logto("444444"))
    assert seen() == [3, 1]


async def test_an_email_address_that_nobody_knew_gets_codes_alone(
    make: Make, post: Post, mail: RecordingChannel, client: AsyncClient
) -> None:
    gateway = await make("logto")

    await post(gateway, logto(to="Ann@Shop.example"))

    [sent] = mail.sent
    assert sent.chat_id == EMAIL
    [message] = await messages(client, gateway)
    assert message["to"] == "a•••@shop.example"
    [person] = (await client.get("/v1/subscribers")).json()["data"]
    assert (person["status"], person["channel"]) == ("unsubscribed", "messenger_b")


@pytest.mark.parametrize("to", [PHONE, EMAIL])
async def test_a_project_may_name_people_by_their_number_or_address(
    make: Make, post: Post, join: Join, client: AsyncClient, first: RecordingChannel, to: str
) -> None:
    ann = await join("messenger_a")
    await client.patch(f"/v1/subscribers/{ann}", json={"external_id": to})

    await post(await make("logto"), logto(to=to))

    assert [sent.chat_id for sent in first.sent] == ["chat-1001"]


async def test_a_phone_number_is_no_email_address(
    make: Make, post: Post, mail: RecordingChannel, client: AsyncClient
) -> None:
    answer = await post(await make("logto"), logto())

    assert refusal(answer) == (422, "gateway_recipient_unreachable")
    assert (await client.get("/v1/subscribers")).json()["data"] == []
    assert mail.sent == []


async def test_only_the_channels_of_the_gateway_and_those_who_did_not_leave(
    make: Make, post: Post, join: Join, client: AsyncClient, first: RecordingChannel
) -> None:
    ann = await join("messenger_a", phone=PHONE)
    answers = [await post(await make("logto", "messenger_b"), logto())]
    await client.delete(f"/v1/subscribers/{ann}")
    answers.append(await post(await make("logto"), logto()))

    assert {refusal(answer) for answer in answers} == {(422, "gateway_recipient_unreachable")}
    assert first.sent == []


async def test_limits_of_a_recipient_and_of_a_gateway(
    make: Make, post: Post, join: Join, clock: FakeClock, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("logto")

    answers = [await post(gateway, logto(f"{number:06}")) for number in range(11)]

    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert refusal(answers[-1]) == (429, "gateway_rate_limited")
    assert answers[-1].headers["Retry-After"] == "3600"
    clock.advance(3600)
    assert (await post(gateway, logto("999999"))).status_code == 200
    assert len(first.sent) == 11


def signature(body: bytes, key: str, at_s: int) -> str:
    mac = hmac.new(key.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={mac}"


async def test_zitadels_signature_is_checked_if_its_key_is_known(
    make: Make, post: Post, join: Join, service: Service, client: AsyncClient
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("zitadel", signing_key="zitadel-key")
    body, now_s = recorded("zitadel-sms"), service.clock.now_ms() // 1000
    right = signature(body, "zitadel-key", now_s)

    for wrong in (
        "",
        "t=,v1=",
        f"v1={right.partition('v1=')[2]}",
        signature(body, "another", now_s),
        signature(body + b" ", "zitadel-key", now_s),
        signature(body, "zitadel-key", now_s - 301),
        signature(body, "zitadel-key", now_s + 301),
    ):
        answer = await post(gateway, body, **{"ZITADEL-Signature": wrong})
        assert refusal(answer) == (401, "gateway_signature_invalid"), wrong
    assert await messages(client, gateway) == []

    other = signature(body, "another", now_s).partition(",")[2]
    answer = await post(gateway, body, **{"ZITADEL-Signature": f"{right},{other}"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("sender", "body", "code"),
    [
        ("zitadel", b"{}", "validation_failed"),
        ("zitadel", b"", "validation_failed"),
        ("zitadel", b'{"contextInfo":{},"templateData":{"text":"x"}}', "validation_failed"),
        (
            "zitadel",
            b'{"contextInfo":{"recipientPhoneNumber":"+12025550123"},"templateData":{"text":" "}}',
            "validation_failed",
        ),
        (
            "zitadel",
            b'{"contextInfo":{"recipientPhoneNumber":"+12025550123"},"templateData":{"text":"x","url":"javascript:x"}}',
            "validation_failed",
        ),
        ("logto", b'{"to":"+12025550123","type":"SignIn","payload":{}}', "validation_failed"),
        ("logto", b'{"to":"nobody","type":"SignIn","payload":{"code":"1"}}', "validation_failed"),
        ("logto", b'{"to":["x"],"type":"SignIn","payload":{"code":"1"}}', "validation_failed"),
        ("novu", b'{"to":"+12025550123","content":""}', "validation_failed"),
        ("generic", b'{"to":"+12025550123","text":" ","code":null}', "validation_failed"),
        ("generic", b'{"to":"+12025550123","code":"1","link":"javascript:x"}', "validation_failed"),
        ("novu", b"[]", "validation_failed"),
        ("novu", b"not json", "validation_failed"),
    ],
)
async def test_what_can_not_be_read_is_refused(
    make: Make, post: Post, sender: str, body: bytes, code: str
) -> None:
    assert refusal(await post(await make(sender), body)) == (400, code)


async def test_nothing_that_was_sent_is_readable_in_the_database(
    make: Make, web: AsyncClient, join: Join, service: Service
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("logto")

    await web.post(
        gateway["url"], content=logto("739164"), headers={"Content-Type": "application/json"}
    )

    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM gateway_messages")
        jobs = await tx.fetch_all("SELECT payload FROM core_jobs")
        gateways = await tx.fetch_all("SELECT * FROM gateway_gateways")
    stored = str([dict(row) for row in (*rows, *jobs, *gateways)])
    assert len(rows) == 1
    assert "739164" not in stored
    assert PHONE not in stored
    assert gateway["url"].rpartition("/")[2] not in stored
    await settled(service)


async def test_an_erased_person_takes_their_messages_along(
    make: Make, post: Post, join: Join, client: AsyncClient, service: Service
) -> None:
    ann = await join("messenger_a", phone=PHONE)
    gateway = await make("logto")
    await post(gateway, logto())

    await client.delete(f"/v1/subscribers/{ann}?erase=true")
    await settled(service)

    assert await messages(client, gateway) == []

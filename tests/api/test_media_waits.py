"""A slow host of files holds up its own chats alone, and is asked once however many messages need it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Media
from msgsvc_core.files import media_checks
from msgsvc_core.files.media_checks import FIT_S, MOST_OPEN_OF_HOST, UNFIT_S
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Send, Subscribe
from tests.api.file_host import File, FileHost, serving
from tests.api.reading import events_named, message_of

MEDIA: dict[str, Any] = {"allow_cidrs": ("127.0.0.0/8",), "check_wait_s": 10}

#: Messages that need a picture go back at once.
IMPATIENT: dict[str, Any] = {**MEDIA, "check_wait_s": 0}


@pytest.fixture
async def service(make_service: ServiceFactory, request: pytest.FixtureRequest) -> Service:
    return await make_service(media=getattr(request, "param", MEDIA))


@pytest.fixture
async def host() -> AsyncIterator[FileHost]:
    async for host in serving():
        yield host


impatient = pytest.mark.parametrize("service", [IMPATIENT], indirect=True)


def image(url: str) -> dict[str, Any]:
    return {"type": "image", "url": url}


@pytest.mark.both_databases
async def test_a_hundred_messages_with_one_picture_ask_for_it_once(
    service: Service, tenant: Tenant, host: FileHost, subscribe: Subscribe
) -> None:
    people = [await subscribe(name) for name in ("Ann", "Ben", "Cat")]
    url = host.put("x.png")
    async with service.db.transaction() as tx:
        for number in range(100):
            fields = {"subscriber_id": people[number % 3], "text": "Hi", "media": image(url)}
            body = SendBody.model_validate(fields)
            await service.messages.queue(tx, tenant.project.project_id, body)
    await settled(service)

    page = (await tenant.client.get("/v1/messages?status=sent&limit=100")).json()["data"]
    assert (len(page), host.asked) == (100, ["x.png"])


@pytest.mark.parametrize(("status", "kept_s"), [(200, FIT_S), (404, UNFIT_S)])
async def test_the_answer_holds_for_some_minutes(
    service: Service, send: Send, host: FileHost, clock: FakeClock, status: int, kept_s: float
) -> None:
    url = host.put("x.png", File(status=status))
    for _ in range(2):
        await send(media=image(url))
        await settled(service)
    clock.advance(kept_s - 0.1)
    await send(media=image(url))
    await settled(service)
    before = len(host.asked)
    clock.advance(0.2)
    await send(media=image(url))
    await settled(service)

    assert (before, len(host.asked)) == (1, 2)


async def test_one_file_as_picture_and_as_document_is_two_questions(
    service: Service, client: httpx2.AsyncClient, send: Send, host: FileHost
) -> None:
    url = host.put("x.pdf", File(b"%PDF-1.7"))
    picture = await send(media=image(url))
    document = await send(media={"type": "document", "url": url})
    await settled(service)

    assert (await message_of(client, picture))["status"] == "failed"
    assert (await message_of(client, document))["status"] == "sent"


@impatient
async def test_others_do_not_wait_for_a_slow_host(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    subscribe: Subscribe,
    host: FileHost,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    ben = await subscribe("Ben")
    file = File()
    file.may_answer.clear()
    channel.sent.clear()
    slow = await send(media=image(host.put("x.png", file)), text="picture")
    await send(text="behind it in its chat")
    await send(subscriber_id=ben, text="to somebody else")
    await settled(service)
    at_first = await message_of(client, slow)
    texts = list(channel.texts)
    file.may_answer.set()
    await until(lambda: _answered(service))
    clock.advance(5)
    await settled(service)

    assert texts == ["to somebody else"]
    # It was not tried, so nothing is counted.
    assert (at_first["status"], at_first["attempts"], at_first["error"]) == ("queued", 0, None)
    assert channel.texts == ["to somebody else", "picture", "behind it in its chat"]
    assert len(host.asked) == 1


async def test_who_must_wait_does_so_once_for_a_slow_host(
    make_service: ServiceFactory, host: FileHost
) -> None:
    service = await make_service(media={**MEDIA, "check_wait_s": 0.5}, jobs={"runner": "none"})
    checks = service.media.checks
    for number in range(20):
        file = File()
        file.may_answer.clear()
        host.put(f"{number}.png", file)
    loop = asyncio.get_running_loop()

    async def waited_s(number: int) -> float:
        began = loop.time()
        await checks.wait(checks.get([Media("image", f"{host.url}/{number}.png")]))
        return loop.time() - began

    first_s = await waited_s(0)
    # Twenty more waits would take ten seconds.
    more_s = [await waited_s(number) for number in range(20)]

    assert first_s >= 0.49
    assert sum(more_s) < 8


async def test_a_host_that_does_not_answer_is_asked_about_so_many_files_at_most(
    make_service: ServiceFactory, host: FileHost
) -> None:
    service = await make_service(media=IMPATIENT, jobs={"runner": "none"})
    checks = service.media.checks
    file = File()
    file.may_answer.clear()
    for number in range(10):
        host.put(f"{number}.png", file)
    files = [Media("image", f"{host.url}/{number}.png") for number in range(2000)]
    asked = checks.get(files)
    other = checks.get([Media("image", "http://127.0.0.1:9/x.png")])

    open_ = [check for check in asked if check.task is not None]
    put_off = asked[len(open_)]
    assert len(open_) == MOST_OPEN_OF_HOST
    assert (put_off.done, put_off.may_wait) == (False, False)
    assert put_off.retry_in_s == service.settings.media.check_timeout_s
    assert other[0].task is not None


async def test_what_there_was_no_room_to_ask_about_is_sent_later(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    host: FileHost,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(media_checks, "MOST_OPEN", 0)
    message_id = await send(media=image(host.put("x.png")))
    await settled(service)
    at_first = await message_of(client, message_id)
    monkeypatch.undo()
    clock.advance(service.settings.media.check_timeout_s)
    await settled(service)

    assert (at_first["status"], at_first["attempts"]) == ("queued", 0)
    assert (await message_of(client, message_id))["status"] == "sent"


@pytest.mark.both_databases
@pytest.mark.parametrize("service", [{**MEDIA, "check_timeout_s": 0.05}], indirect=True)
async def test_a_host_that_takes_too_long_is_away(
    service: Service, client: httpx2.AsyncClient, send: Send, host: FileHost
) -> None:
    file = File()
    file.may_answer.clear()
    message_id = await send(media=image(host.put("x.png", file)))
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["attempts"]) == ("queued", 1)
    assert message["error"] == "media.url: its host took more than 0.05 s"


@impatient
async def test_what_expires_while_its_host_is_slow_is_skipped(
    service: Service, client: httpx2.AsyncClient, send: Send, host: FileHost, clock: FakeClock
) -> None:
    file = File()
    file.may_answer.clear()
    message_id = await send(media=image(host.put("x.png", file)), expires_in=1)
    await settled(service)
    clock.advance(2)
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["error"]) == ("skipped", "expired")


@pytest.mark.parametrize("new_picture", [False, True])
async def test_an_edit_between_reading_and_sending_a_message_is_not_lost(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    host: FileHost,
    channel: RecordingChannel,
    new_picture: bool,
) -> None:
    file = File()
    file.may_answer.clear()
    message_id = await send(text="old", media=image(host.put("1.png", file)))
    await until(lambda: _asked(host))  # the delivery has read the message, and waits for its file
    body: dict[str, Any] = {"text": "new"}
    if new_picture:
        body["media"] = image(host.put("2.png"))
    answer = await client.post(f"/v1/messages/{message_id}/edit", json=body)
    file.may_answer.set()
    await settled(service)

    sent = channel.sent[-1].message
    assert answer.json()["status"] == "queued"
    assert (sent.text, sent.media and sent.media.url) == (
        "new",
        f"{host.url}/{2 if new_picture else 1}.png",
    )
    assert host.asked == (["1.png", "2.png"] if new_picture else ["1.png"])
    assert channel.edited == []
    message = await message_of(client, message_id)
    assert (message["status"], message["attempts"]) == ("sent", 1)


async def test_a_deletion_between_reading_and_sending_a_message_is_not_lost(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    host: FileHost,
    channel: RecordingChannel,
) -> None:
    file = File()
    file.may_answer.clear()
    message_id = await send(text="never", media=image(host.put("1.png", file)))
    await until(lambda: _asked(host))
    await client.delete(f"/v1/messages/{message_id}")
    await send(text="behind it")
    file.may_answer.set()
    await settled(service)

    assert channel.texts[1:] == ["behind it"]
    assert (await message_of(client, message_id))["status"] == "skipped"


async def test_an_edit_while_a_bad_file_is_looked_at_is_sent_with_its_own_file(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    host: FileHost,
    channel: RecordingChannel,
) -> None:
    file = File(status=404)
    file.may_answer.clear()
    message_id = await send(text="old", media=image(host.put("1.png", file)))
    await until(lambda: _asked(host))
    body = {"text": "new", "media": image(host.put("2.png"))}
    await client.post(f"/v1/messages/{message_id}/edit", json=body)
    file.may_answer.set()
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["error"], message["attempts"]) == ("sent", None, 1)
    assert channel.texts[1:] == ["new"]
    assert await events_named(client, "delivery.failed") == []


async def test_a_message_deleted_while_a_bad_file_is_looked_at_is_not_told_as_failed(
    service: Service, client: httpx2.AsyncClient, send: Send, host: FileHost
) -> None:
    file = File(status=404)
    file.may_answer.clear()
    message_id = await send(media=image(host.put("1.png", file)))
    await until(lambda: _asked(host))
    await client.delete(f"/v1/messages/{message_id}")
    file.may_answer.set()
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["error"]) == ("skipped", "deleted")
    told = await events_named(client, "delivery.failed")
    assert [(each["status"], each["reason"]) for each in told] == [("skipped", "cancelled")]


async def _asked(host: FileHost) -> bool:
    return bool(host.asked)


async def _answered(service: Service) -> bool:
    return all(check.done for check in service.media.checks._known.values())


@pytest.mark.parametrize("service", [{**MEDIA, "check_wait_s": 1}, IMPATIENT], indirect=True)
async def test_a_message_is_taken_back_while_its_edit_waits_for_a_host(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    host: FileHost,
    channel: RecordingChannel,
    check_error: CheckError,
) -> None:
    channel.capabilities = replace(channel.capabilities, edit_media=True)
    message_id = await send(text="old")
    await settled(service)
    file = File()
    file.may_answer.clear()
    edit = f"/v1/messages/{message_id}/edit"
    edited = await client.post(edit, json={"media": image(host.put("2.png", file))})
    assert edited.status_code < 300, edited.text
    await until(lambda: _asked(host))

    await client.delete(f"/v1/messages/{message_id}")
    # No time passes, and the host still does not answer.
    await until(lambda: _deleted(channel))
    late = await client.post(edit, json={"text": "new"})
    file.may_answer.set()
    await settled(service)

    check_error(late, 409, "conflict")
    assert channel.edited == []
    message = await message_of(client, message_id)
    assert (message["text"], message["deleted_at"] is not None) == ("old", True)


async def _deleted(channel: RecordingChannel) -> bool:
    return bool(channel.deleted)

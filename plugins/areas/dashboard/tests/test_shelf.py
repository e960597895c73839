"""Pages of what channels could not read."""

import re
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import (
    ChannelUser,
    InboundContext,
    InboundRule,
    MessageReceived,
    Unreadable,
    UnreadableReason,
)
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.developers.shelf import reasons, text_of
from msgsvc_devkit import RecordingChannel
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory

RAW = b"From: <script>alert(1)</script>\r\nSubject: \x1b[31mred\r\n\r\nHello"
ITEM = Unreadable(
    update_id="u1",
    raw=RAW,
    reason=UnreadableReason.UNPROVEN_SENDER,
    detail="nothing proves that it is from its sender",
    kind="email",
)
HELLO = MessageReceived(update_id="1", chat_id="7", user=ChannelUser("7", "Ann"), text="hello")


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


async def own_bot(service: Service, who: Visitor) -> RecordingChannel:
    """A bot of the project's own, `support`."""
    made = await who.post("/channels/new", {"name": "support", "plugin": "recording"})
    assert made.status_code == 303, made.text
    found = service.channels.resolve(who.project_id, "support")
    assert isinstance(found, RecordingChannel)
    return found


def only_item(html: str) -> str:
    [found] = set(re.findall(r"shelf(?:/messenger_a)?/(shf_\w+)", html))
    return found


async def test_an_owner_looks_at_an_item_downloads_it_and_has_it_taken(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    bot = await own_bot(service, owner)
    await service.inbound.receive(bot.key, ITEM)
    channel = await owner.get("/channels/support")
    listed = await owner.get("/channels/support/shelf")
    item_id = only_item(listed.text)
    here = f"/channels/support/shelf/{item_id}"
    shown = await owner.get(here)
    content = await owner.get(f"{here}/content")
    refused = await owner.post(f"{here}/take")
    after = await owner.get(here)
    bot.readable[RAW] = [HELLO]
    taken = await owner.post(f"{here}/take")
    empty = await owner.get("/channels/support/shelf")
    await owner.client.aclose()

    assert "/channels/support/shelf" in channel.text
    assert "Nothing proves who sent it." in listed.text
    assert "<script>alert" not in shown.text
    assert "\x1b" not in shown.text
    assert "nothing proves that it is from its sender" in shown.text
    assert content.content == RAW
    assert content.headers["content-disposition"].startswith("attachment")
    assert content.headers["content-type"] == "application/octet-stream"
    assert refused.headers["location"].endswith(here)
    assert "it still has no form" in after.text
    assert taken.headers["location"].endswith("/channels/support/shelf")
    assert "Nothing is set aside" in empty.text


async def test_an_item_is_deleted_and_a_form_without_the_token_deletes_nothing(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    bot = await own_bot(service, owner)
    await service.inbound.receive(bot.key, ITEM)
    item_id = only_item((await owner.get("/channels/support/shelf")).text)
    here = f"/channels/support/shelf/{item_id}"
    forged = await owner.client.post(owner.url(f"{here}/delete"), data={})
    still = await owner.get(here)
    deleted = await owner.post(f"{here}/delete")
    gone = await owner.get(here)
    await owner.client.aclose()

    assert forged.status_code == 403
    assert still.status_code == 200
    assert deleted.status_code == 303
    assert gone.status_code == 404


async def test_who_took_an_item_is_in_the_audit_log_by_page_and_by_api(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    bot = await own_bot(service, owner)
    _, key = await service.projects.create_key(project.project_id, "site")
    for number in range(2):
        await service.inbound.receive(bot.key, replace(ITEM, update_id=f"u{number}"))
    shelf = await owner.get("/channels/support/shelf")
    first, second = dict.fromkeys(re.findall(r"shelf/(shf_\w+)", shelf.text))
    kept = await owner.post(f"/channels/support/shelf/{first}/take")
    bot.readable[RAW] = [HELLO]
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "take-it-once"}
    path = f"/v1/channels/support/shelf/{second}/take"
    taken = [await owner.client.post(path, headers=headers) for _ in range(2)]
    async with service.db.read() as tx:
        entries = await tx.fetch_all(
            "SELECT action, target, account_id FROM dashboard_audit WHERE action LIKE '%take%'"
            " ORDER BY entry_id"
        )
    log = await owner.get("/audit")
    await owner.client.aclose()

    assert kept.status_code == 303
    assert [each.json()["outcome"] for each in taken] == ["taken", "taken"]
    assert taken[1].headers["idempotent-replayed"] == "true"
    assert [(each["action"], each["target"]) for each in entries] == [
        ("developers.take_shelved_item", f"support {first}"),
        ("channels.take_shelved_item", f"support {second}"),
    ]
    assert log.text.count("Item set aside taken") >= 2


async def test_another_project_takes_nothing_by_the_api(service: Service) -> None:
    project = await service.projects.create("Shop")
    other = await service.projects.create("Other")
    owner = await visitor(service, project.project_id)
    bot = await own_bot(service, owner)
    _, key = await service.projects.create_key(other.project_id, "site")
    await service.inbound.receive(bot.key, ITEM)
    item_id = only_item((await owner.get("/channels/support/shelf")).text)
    answers = [
        await owner.client.post(
            f"/v1/channels/{name}/shelf/{item_id}/take",
            headers={"Authorization": f"Bearer {key}"},
        )
        for name in ("support", bot.key, "messenger_a")
    ]
    await owner.client.aclose()

    assert [each.status_code for each in answers] == [404, 404, 404]


async def test_what_people_sent_is_for_those_who_manage_the_project(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    viewer = await visitor(service, project.project_id, "viewer")
    bot = await own_bot(service, owner)
    await service.inbound.receive(bot.key, ITEM)
    item_id = only_item((await owner.get("/channels/support/shelf")).text)
    channel = await viewer.get("/channels/support")
    answers = [
        await viewer.get("/channels/support/shelf"),
        await viewer.get(f"/channels/support/shelf/{item_id}/content"),
        await viewer.post(f"/channels/support/shelf/{item_id}/take"),
    ]
    for each in (owner, viewer):
        await each.client.aclose()

    assert "/channels/support/shelf" not in channel.text
    assert [each.status_code for each in answers] == [403, 403, 403]


async def test_shared_channels_are_the_operators(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    operator = await stranger(service, project.project_id, is_operator=True)
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.readable[RAW] = [HELLO]
    await service.inbound.receive("messenger_a", ITEM)
    await service.inbound.receive("messenger_a", replace(ITEM, update_id="u2", raw=b"x"))
    root = "/dashboard/operator/shelf"
    listed = await operator.get(root)
    shelf = await operator.get(f"{root}/messenger_a")
    newer, older = list(dict.fromkeys(re.findall(r"/(shf_\w+)", shelf.text)))
    here = f"{root}/messenger_a/{older}"
    shown = await operator.get(here)
    taken = await operator.post(f"{here}/take")
    deleted = await operator.post(f"{root}/messenger_a/{newer}/delete")
    empty = await operator.get(f"{root}/messenger_a")
    nowhere = await operator.get(f"{root}/nothing")
    refused = await owner.get(root)
    for each in (owner, operator):
        await each.client.aclose()

    assert f"{root}/messenger_a" in listed.text
    assert "Hello" in shown.text
    assert (taken.status_code, deleted.status_code) == (303, 303)
    assert "Nothing is set aside" in empty.text
    assert nowhere.status_code == 404
    assert refused.status_code in {403, 404}


class Failing:
    """A plugin whose handler of texts fails the first two times."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @hookimpl
    def register_inbound(self) -> Any:
        async def handle(ctx: InboundContext) -> None:
            assert isinstance(ctx.update, MessageReceived)
            self.texts.append(ctx.update.text)
            if len(self.texts) <= 2:
                raise RuntimeError("not now")

        return [InboundRule("message", handle, priority=1)]


async def test_an_operator_has_a_message_processed_again_whose_handler_failed(
    make_service: ServiceFactory,
) -> None:
    failing = Failing()
    service = await make_service(extra_plugins=[("dashboard", plugin), ("failing", failing)])
    project = await service.projects.create("Shop")
    operator = await stranger(service, project.project_id, is_operator=True)
    await service.inbound.receive("messenger_a", HELLO)
    root = "/dashboard/operator/shelf/messenger_a"
    here = f"{root}/{only_item((await operator.get(root)).text)}"
    shown = await operator.get(here)
    content = await operator.get(f"{here}/content")
    failed = await operator.post(f"{here}/take")
    after = await operator.get(failed.headers["location"])
    taken = await operator.post(f"{here}/take")
    empty = await operator.get(taken.headers["location"])
    await operator.client.aclose()

    assert "The service failed on it." in shown.text
    assert "(RuntimeError)" in shown.text
    assert "It is processed like any other, although late" in shown.text
    assert '.json"' in content.headers["content-disposition"]
    assert content.json()["text"] == "hello"
    assert "It could not be processed: The service failed on it." in after.text
    assert "Nothing is set aside" in empty.text
    assert failing.texts == ["hello"] * 3


def test_every_reason_has_its_words() -> None:
    class Page:
        @staticmethod
        def _(text: str) -> str:
            return text

    page: Any = Page()

    assert set(reasons(page)) == set(UnreadableReason)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b"a\r\nb\tc", "a\nb\tc"), (b"\xff\x00\x1b", "\ufffd\ufffd\ufffd"), (b"x" * 9000, "x" * 4000)],
)
def test_an_item_is_shown_as_text_without_characters_that_control(raw: bytes, shown: str) -> None:
    assert text_of(raw) == shown

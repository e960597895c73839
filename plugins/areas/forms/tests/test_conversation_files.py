"""Files as answers in the messenger."""

from typing import Any

import pytest

from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant

from .conftest import Desk
from .talker import Talker

FILE = {"key": "plan", "type": "file", "label": "A plan?", "required": True}
NOTE = {"key": "note", "type": "text", "label": "A note?"}


async def stored(desk: Desk, file_id: str) -> dict[str, Any]:
    answer = await desk.client.get(f"/v1/files/{file_id}")
    found: dict[str, Any] = answer.json()
    return found


async def test_a_file_is_an_answer_with_what_is_known_of_it(desk: Desk, ann: Talker) -> None:
    form = await desk.form(FILE, NOTE)
    asked = await ann.open("contact")
    refused = await ann.say("here it is")
    await ann.send_file(b"the plan", "<b>plan</b>.txt")
    summary = await ann.say("/skip")
    await ann.say("/send")

    assert "A plan?" in asked
    assert "A plan?" in refused
    assert "plan" in summary
    [kept] = await desk.submissions(form)
    [answer] = kept["answers"]
    [file] = answer["value"]
    assert (file["size"], file["type"]) == (8, "document")
    found = await stored(desk, file["file_id"])
    assert (found["status"], found["size"]) == ("ready", 8)


async def test_several_files_are_one_answer_until_done(desk: Desk, ann: Talker) -> None:
    form = await desk.form({**FILE, "max": 3}, NOTE)
    await ann.open("contact")
    await ann.send_file(b"one", "one.txt")
    more = await ann.send_file(b"two", "two.txt")
    await ann.press("Done")
    await ann.say("/skip", "/send")

    assert "Current files: one.txt, two.txt" in more
    [kept] = await desk.submissions(form)
    assert [file["filename"] for file in kept["answers"][0]["value"]] == ["one.txt", "two.txt"]


@pytest.mark.both_databases
async def test_a_file_that_can_not_be_fetched_is_asked_for_again(desk: Desk, ann: Talker) -> None:
    form = await desk.form(FILE, NOTE)
    await ann.open("contact")
    held = ann.channel.contents
    await ann.send_file(b"lost", "lost.txt")
    held.clear()
    await ann.press("‹ Back")
    await ann.send_file(b"<!doctype html><html></html>", "page.pdf")
    again = ann.text
    await ann.send_file(b"good", "good.txt")
    await ann.say("/skip", "/send")

    assert "Your file was not accepted" in again
    assert "A plan?" in again
    [kept] = await desk.submissions(form)
    assert [file["filename"] for file in kept["answers"][0]["value"]] == ["good.txt"]


async def test_the_files_of_what_is_cancelled_are_removed(desk: Desk, ann: Talker) -> None:
    await desk.form(FILE, NOTE)
    await ann.open("contact")
    await ann.send_file(b"the plan")
    async with desk.service.db.read() as tx:
        before = await tx.fetch_val("SELECT COUNT(*) FROM core_files")
    await ann.say("/cancel", "/cancel")
    await settled(desk.service)
    async with desk.service.db.read() as tx:
        after = await tx.fetch_val("SELECT COUNT(*) FROM core_files")

    assert (before, after) == (1, 0)


async def test_a_file_that_is_not_sent_in_the_end_is_removed(desk: Desk, ann: Talker) -> None:
    form = await desk.form({**FILE, "required": False}, NOTE)
    await ann.open("contact")
    await ann.send_file(b"the plan")
    await ann.say("/back", "/skip", "Without a plan", "/send")
    async with desk.service.db.read() as tx:
        left = await tx.fetch_val("SELECT COUNT(*) FROM core_files")

    [kept] = await desk.submissions(form)
    assert [(one["key"], one["value"]) for one in kept["answers"]] == [("note", "Without a plan")]
    assert left == 0


async def test_a_file_is_no_answer_to_another_question(
    desk: Desk, ann: Talker, tenant: Tenant
) -> None:
    await desk.form()
    await ann.open("contact")
    told = await ann.send_file(b"me")

    assert told == "A file can't be used as an answer here. Please write your answer.\n\nName"


async def test_whoever_is_erased_takes_what_they_were_filling_in_along(
    desk: Desk, ann: Talker
) -> None:
    await desk.form(FILE, NOTE)
    await ann.open("contact")
    await ann.send_file(b"the plan")
    [person] = (await desk.client.get("/v1/subscribers")).json()["data"]
    erased = await desk.client.delete(f"/v1/subscribers/{person['subscriber_id']}?erase=true")
    await settled(desk.service)
    shown = len(ann.shown)
    await ann.say("/skip")
    async with desk.service.db.read() as tx:
        left = [
            await tx.fetch_val(f"SELECT COUNT(*) FROM {table}")
            for table in ("forms_dialogues", "core_files")
        ]

    assert erased.is_success
    assert left == [0, 0]
    assert len(ann.shown) == shown

"""Pictures, videos and files: fetched by the platform, or given to it once."""

import asyncio

import pytest

from msgsvc_core.channels import Button, Media, Reason
from msgsvc_devkit.platforms.max import Refused
from msgsvc_max.uploads import KEPT_S

from .conftest import MP4, PDF, PNG, failure_of, send_to


async def test_a_picture_is_fetched_by_the_platform(channel, platform, ann, media_host):
    await send_to(channel, ann, media=Media("image", f"{media_host.url}/p.png"))

    assert ann.messages[0].media == "image"
    assert media_host.hits == ["p.png"]
    assert platform.calls_of("POST /uploads") == []


async def test_a_picture_that_the_platform_cannot_fetch_is_uploaded(
    channel, platform, ann, media_host
):
    media_host.hidden.add("p.png")

    await send_to(channel, ann, media=Media("image", f"{media_host.url}/p.png"))

    assert len(ann.messages) == 1
    assert ann.messages[0].media == "image"
    assert [file.content for file in platform.files.by_token.values()] == [PNG]


@pytest.mark.parametrize(
    ("kind", "name", "shown", "content"),
    [("video", "v.mp4", "video", MP4), ("document", "d.pdf", "file", PDF)],
    ids=["video", "document"],
)
async def test_other_files_are_uploaded_with_their_names(
    channel, platform, ann, media_host, kind, name, shown, content
):
    media = Media(kind, f"{media_host.url}/{name}", "Счёт\r\n №1.bin")

    await send_to(channel, ann, "Look", media=media, buttons=((Button("Yes", data="y"),),))

    (message,) = ann.messages
    (file,) = platform.files.by_token.values()
    assert (message.text, message.media, len(message.buttons)) == ("Look", shown, 1)
    assert (file.content, file.filename) == (content, "Счёт №1.bin")


async def test_the_host_for_files_is_not_shown_the_token(channel, platform, ann, media_host):
    await send_to(channel, ann, media=Media("document", f"{media_host.url}/d.pdf"))

    (upload,) = platform.calls_of("POST /upload.do")
    assert "Authorization" not in upload.headers
    assert platform.token not in str(upload)


async def test_a_file_that_is_not_ready_is_waited_for(channel, platform, ann, media_host):
    platform.files.not_ready = 2

    await send_to(channel, ann, media=Media("video", f"{media_host.url}/v.mp4"))

    assert len(ann.messages) == 1
    assert [call.status for call in platform.calls_of("POST /messages")] == [400, 400, 200]
    assert len(platform.calls_of("POST /uploads")) == 1


async def test_one_upload_serves_all_who_get_the_file(channel, platform, media_host):
    people = [platform.person(f"P{number}") for number in range(10)]
    for person in people:
        await person.start()
    media = Media("video", f"{media_host.url}/v.mp4")

    await asyncio.gather(*(send_to(channel, person, media=media) for person in people))

    assert [person.messages[0].media for person in people] == ["video"] * 10
    assert len(platform.calls_of("POST /uploads")) == 1
    assert media_host.hits == ["v.mp4"]


async def test_a_file_is_looked_at_anew_after_a_while(channel, platform, ann, media_host, clock):
    media = Media("video", f"{media_host.url}/v.mp4")
    await send_to(channel, ann, media=media)
    clock.advance(KEPT_S)

    await send_to(channel, ann, media=media)

    assert len(platform.calls_of("POST /uploads")) == 2


async def test_an_upload_that_failed_is_tried_anew(channel, platform, ann, media_host):
    media = Media("video", f"{media_host.url}/v.mp4")
    platform.faults.fail_next(Refused(503, "service.unavailable", ""))
    error = await failure_of(send_to(channel, ann, media=media))

    await send_to(channel, ann, media=media)

    assert error.reason is Reason.PLATFORM_UNAVAILABLE
    assert len(ann.messages) == 1


async def test_a_message_whose_upload_broke_is_not_in_doubt(channel, platform, ann, media_host):
    media = Media("video", f"{media_host.url}/v.mp4")
    platform.faults.break_next("reset")
    at_first = await failure_of(send_to(channel, ann, media=media))
    platform.files.breaks = True
    in_the_middle = await failure_of(send_to(channel, ann, media=media))
    platform.files.breaks = False

    await send_to(channel, ann, media=media)

    for error in (at_first, in_the_middle):
        assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
    assert len(ann.messages) == 1


async def test_what_is_no_picture_is_refused(channel, ann, media_host):
    error = await failure_of(send_to(channel, ann, media=Media("image", f"{media_host.url}/t.txt")))

    assert error.reason is Reason.INVALID_MESSAGE
    assert error.text.startswith("media.url")
    assert ann.messages == []


async def test_a_refusal_that_is_not_about_the_picture_costs_no_upload(
    channel, platform, ann, media_host
):
    platform.faults.fail_next(Refused(400, "proto.payload", "text: too long"))

    await failure_of(send_to(channel, ann, media=Media("image", f"{media_host.url}/p.png")))

    assert [call.name for call in platform.calls] == ["POST /messages"]

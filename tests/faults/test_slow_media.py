"""A host of files that takes its time: the bot's other messages and its pace don't feel it."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels import OutgoingMessage, Pace
from msgsvc_core.db import WriteBatch
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.file_host import File, FileHost, serving
from tests.faults.conftest import Figure, Rounds
from tests.faults.recorder import Recorder, queue, subscribed

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"), [("sqlite", "embedded"), ("postgresql", "embedded")], indirect=True
    ),
]

#: Seconds by which other messages may end later: one wait for files, and what a loaded machine adds. In the
#: short form more is added; who waited for the host would wait for ever.
LATE_S, SHORT_LATE_S = 1.5, 15.0

#: In the short form, how many times as long paced messages may take beside pictures that wait. Were the pace
#: spent on those too, it would be twice as long at least.
MOST_TIMES_LONGER = 1.8


@pytest.fixture
async def host() -> AsyncIterator[FileHost]:
    async for host in serving():
        yield host


@pytest.mark.parametrize("paced", [False, True], ids=["no pace", "paced"])
@pytest.mark.parametrize("pictures", ["one", "each its own"])
async def test_others_are_not_held_up_by_a_slow_host_of_files(
    make_service: ServiceFactory,
    rounds: Rounds,
    figure: Figure,
    host: FileHost,
    pictures: str,
    paced: bool,
) -> None:
    count, per_s = rounds(short=150, long=600), rounds(short=30, long=60) if paced else None
    recorder = Recorder(Pace(per_bot_s=per_s, per_chat_s=None if per_s is None else 20))
    service = await make_service(
        extra_plugins=[("recorder", recorder)],
        use_clock=SystemClock(),
        channels={"messenger_a": {"plugin": "recorder"}},
        media={"allow_cidrs": ("127.0.0.0/8",)},
    )
    project_id = (await service.projects.create("Shop")).project_id
    people = await subscribed(service, project_id, 2 * count)
    alone_s = await plain_alone(service, recorder, project_id, people[:count])
    files = [slow(host, f"{number if pictures != 'one' else 0}.png") for number in range(count)]

    await queue_mixed(service, project_id, people, files)
    began_s = time.monotonic()
    async with service.db.transaction() as tx:
        question = OutgoingMessage("Sign in?")
        await service.outbox.send(tx, "messenger_a", "chat-login", question)
    asked_s = time.monotonic()
    await until(lambda: _ended(recorder, count, "plain"), timeout_s=60 + alone_s)
    plain_s = last_of(recorder, "plain") - began_s
    login_s = last_of(recorder, "Sign in?") - began_s
    before = sum(asked_s < call.came_s < began_s + login_s for call in recorder.taken())
    early = texts_of(recorder, "picture")
    for file in host.files.values():
        file.may_answer.set()
    released_s = time.monotonic()
    await until(lambda: _ended(recorder, 2 * count, "picture", "behind"), timeout_s=120)
    pictures_s = last_of(recorder, "picture", "behind") - released_s

    most = recorder.most_in(1.0)
    figure(
        f"a slow host of files, pictures: {pictures}, pace: {per_s} ({service.db.dialect})",
        f"{count} others in {plain_s:.2f} s (alone {alone_s:.2f}), a login after {login_s:.2f} s and"
        f" {before} calls,"
        f" {len(host.asked)} questions for {count} pictures, at most {most} in a second,"
        f" the pictures and what was behind them {pictures_s:.2f} s after the host answered",
        alone_s=alone_s,
        others_s=plain_s,
        login_s=login_s,
        pictures_s=pictures_s,
    )
    assert early == []
    if per_s:
        assert plain_s <= rounds(short=MOST_TIMES_LONGER * alone_s, long=alone_s + LATE_S)
        assert most <= per_s
        # A full window must empty before any call; else nothing goes before a login.
        assert before <= 2 * per_s
    else:
        # It is our own work that takes time, and three times as many messages are looked at.
        assert plain_s <= 3 * alone_s + rounds(short=SHORT_LATE_S, long=LATE_S)
    assert login_s <= rounds(short=SHORT_LATE_S, long=LATE_S)
    assert len(host.asked) == len(set(files))
    assert in_order(recorder)


def slow(host: FileHost, name: str) -> str:
    """The address of a picture that comes when the test says so."""
    if name not in host.files:
        file = File()
        file.may_answer.clear()
        host.put(name, file)
    return f"{host.url}/{name}"


async def plain_alone(
    service: Service, recorder: Recorder, project_id: str, people: list[str]
) -> float:
    """Seconds that the other messages take without any files."""
    await queue(service, project_id, people, len(people))
    began_s = time.monotonic()
    await until(lambda: _count(recorder, len(people)), timeout_s=120)
    took_s = recorder.calls[-1].answered_s - began_s
    recorder.calls.clear()
    return took_s


async def queue_mixed(
    service: Service, project_id: str, people: list[str], files: list[str]
) -> None:
    """In turn one with a file and one without; then one behind each file, to the same person."""
    unit = WriteBatch()
    half = len(people) // 2
    for number, url in enumerate(files):
        for to, text, media in (
            (people[number], "picture", {"type": "image", "url": url}),
            (people[half + number], "plain", None),
        ):
            body = SendBody.model_validate({"subscriber_id": to, "text": text, "media": media})
            await service.messages.add(unit, project_id, body)
    for number in range(len(files)):
        body = SendBody(subscriber_id=people[number], text="behind")
        await service.messages.add(unit, project_id, body)
    await service.db.write(unit)


def texts_of(recorder: Recorder, *texts: str) -> list[str]:
    return [call.text for call in recorder.taken() if call.text in texts]


def last_of(recorder: Recorder, *texts: str) -> float:
    return max(call.answered_s for call in recorder.taken() if call.text in texts)


def in_order(recorder: Recorder) -> bool:
    """Whether nobody got what was behind their picture before it."""
    by_chat: dict[str, list[str]] = defaultdict(list)
    for call in recorder.calls:
        by_chat[call.chat_id].append(call.text)
    return all(texts == ["picture", "behind"] for texts in by_chat.values() if "picture" in texts)


async def _ended(recorder: Recorder, count: int, *texts: str) -> bool:
    return len(texts_of(recorder, *texts)) >= count


async def _count(recorder: Recorder, count: int) -> bool:
    return len(recorder.taken()) >= count

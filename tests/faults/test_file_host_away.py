"""A host of files that is away: what needs its files waits in order, all else goes on, nothing is lost."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels import Pace
from msgsvc_core.db import WriteBatch
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.messages.bodies import SendBody
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, tenant_of
from msgsvc_devkit.work import PATIENCE_S
from tests.api.file_host import FileHost, serving
from tests.contracts.proxy import Proxy
from tests.faults.conftest import Figure, Rounds
from tests.faults.names import Names
from tests.faults.outage import MODES, Mode, away
from tests.faults.recorder import Recorder, subscribed

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"),
        [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
        indirect=True,
    ),
]

#: Seconds in which what needs no file is shown.
OTHERS_S = 10.0

TEXTS = ("before", "picture", "behind")


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@pytest.fixture
async def host() -> AsyncIterator[FileHost]:
    async for host in serving():
        yield host


@pytest.fixture
async def proxy(host: FileHost) -> AsyncIterator[Proxy]:
    async with Proxy(host.url).running() as running:
        yield running
        running.go_on()


@pytest.mark.parametrize("mode", MODES)
async def test_pictures_wait_in_order_for_their_host_and_nothing_else_does(
    make_service: ServiceFactory,
    names: Names,
    host: FileHost,
    proxy: Proxy,
    rounds: Rounds,
    figure: Figure,
    mode: Mode,
) -> None:
    count, each_s = rounds(short=20, long=200), rounds(short=3, long=30)
    recorder = Recorder(Pace())
    service = await make_service(
        extra_plugins=[("recorder", recorder)],
        use_clock=SystemClock(),
        channels={"messenger_a": {"plugin": "recorder"}},
        media={"allow_cidrs": ("127.0.0.0/8",), "check_wait_s": 0.1, "check_timeout_s": 0.5},
    )
    tenant = await tenant_of(service, "Shop")
    project_id = tenant.project.project_id
    people = await subscribed(service, project_id, 2 * count)
    async with away(proxy, names, mode):
        await queue(service, project_id, people[:count], TEXTS, host, proxy)
        await queue(service, project_id, people[count:], ("other",), host, proxy)
        began_s = time.monotonic()
        patience_s = rounds(short=PATIENCE_S, long=OTHERS_S)
        await until(lambda: have_come(recorder, 2 * count), timeout_s=patience_s)
        others_s = time.monotonic() - began_s
        await asyncio.sleep(each_s)  # the outage lasts so long, whatever happens meanwhile
        meanwhile = Counter(call.text for call in recorder.calls)
        # Whoever looks at a message that waits sees what for.
        await until(lambda: says_why(service))
    back_at_s = time.monotonic()
    await until(lambda: have_come(recorder, 4 * count), timeout_s=60 + 5 * each_s)
    back_s = time.monotonic() - back_at_s
    await until(lambda: has_ended(service))
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status FROM core_messages")
    await tenant.client.aclose()
    statuses = Counter(row["status"] for row in rows)
    by_chat: dict[str, list[str]] = defaultdict(list)
    for call in recorder.calls:
        by_chat[call.chat_id].append(call.text)

    figure(
        f"a host of files away for {each_s} s, {mode} ({service.db.dialect})",
        f"{count} pictures: {dict(statuses)}, {len(recorder.calls) - 4 * count} shown twice; others"
        f" within {others_s:.2f} s, all within {back_s:.1f} s of its return",
        pictures=count,
        failed=statuses["failed"],
        twice=len(recorder.calls) - 4 * count,
        back_s=round(back_s, 2),
    )
    assert meanwhile == Counter(before=count, other=count)
    assert statuses == Counter(sent=4 * count)
    assert Counter(map(tuple, by_chat.values())) == {TEXTS: count, ("other",): count}
    assert mode != "unresolved" or names.failed > 0


async def queue(
    service: Service,
    project_id: str,
    people: list[str],
    texts: tuple[str, ...],
    host: FileHost,
    proxy: Proxy,
) -> None:
    unit = WriteBatch()
    for number, person in enumerate(people):
        for text in texts:
            path = f"{number}.png"
            host.put(path)
            url = f"{proxy.url_by('files.test')}/{path}"
            media = {"type": "image", "url": url} if text == "picture" else None
            body = SendBody.model_validate({"subscriber_id": person, "text": text, "media": media})
            await service.messages.add(unit, project_id, body)
    await service.db.write(unit)


async def have_come(recorder: Recorder, count: int) -> bool:
    return len(recorder.calls) >= count


async def has_ended(service: Service) -> bool:
    async with service.db.read() as tx:
        left = "SELECT COUNT(*) AS count FROM core_jobs WHERE lane LIKE 'channel:%'"
        return not await tx.fetch_val(left)


async def says_why(service: Service) -> bool:
    """Whether a message that waits names what it waits for."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT error FROM core_messages WHERE status = 'queued'")
    return any("media.url" in (row["error"] or "") for row in rows)

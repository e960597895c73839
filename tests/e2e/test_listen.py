"""`msgsvc listen`: what happens reaches a program that the service can't call."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core.http_client.connecting import trust
from msgsvc_core.security import new_secret
from msgsvc_core.security.signing import verify, verify_standard
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.webhooks import WebhookReceiver
from tests.forking import ForkedProcess
from tests.ports import free_ports
from tests.process import Deployment

PATIENCE_S = patient(60)

CONFIG = """\
plugins = ["sandbox", "webhooks"]
[limits]
requests_per_minute = 100000
[webhooks]
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
"""

#: Texts and numbers that another serializer could write in another way.
PROPERTIES = {
    "text": 'Ёж "🦔" </script>\u2028',
    "price": 1.0,
    "small": 1e-7,
    "big": 2**60,
    "no": None,
}


@dataclass(frozen=True, slots=True)
class Project:
    """A project on a running service, with one subscriber."""

    url: str
    key: str
    subscriber_id: str = ""

    async def call(self, method: str, path: str, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=60, verify=trust()
        ) as client:
            answer = await client.request(method, path, **request)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def track(self, name: str, **properties: Any) -> str:
        """Has `event.tracked` happen; returns its id."""
        body = {"subscriber_id": self.subscriber_id, "name": name, "properties": properties}
        return str((await self.call("POST", "/v1/events", json=body))["event_id"])


async def with_subscriber(url: str, key: str) -> Project:
    project = Project(url, key)
    ann = await project.call("POST", "/sandbox/api/people", json={"name": "Ann"})
    link = await project.call("POST", "/v1/subscribers/links", json={})
    opened = {"link": link["links"]["messenger_a"]}
    await project.call("POST", f"/sandbox/api/people/{ann['person_id']}/open", json=opened)
    (subscriber,) = (await project.call("GET", "/v1/subscribers"))["data"]
    return Project(url, key, subscriber["subscriber_id"])


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    made = Deployment(tmp_path_factory.mktemp("listen"))
    made.configure(CONFIG, port=free_ports())
    return made


@pytest.fixture(scope="module")
def url(deployment: Deployment) -> Iterator[str]:
    with deployment.serving() as server:
        yield server.url


@pytest.fixture
async def project(deployment: Deployment, url: str) -> Project:
    return await with_subscriber(url, await asyncio.to_thread(deployment.create_key))


class Listening:
    """A running `msgsvc listen`, and what it says."""

    def __init__(self, errors: Path, project: Project, *arguments: str) -> None:
        self._errors = errors
        errors.write_text("")
        env = {"MSGSVC_URL": project.url, "MSGSVC_API_KEY": project.key}
        self.process = ForkedProcess(["listen", *arguments], env, errors)

    @property
    def notes(self) -> str:
        return self._errors.read_text("utf-8")

    @property
    def secret(self) -> str:
        return self.notes.partition("signing secret: ")[2].partition("\n")[0]

    async def note(self, text: str, times: int = 1) -> None:
        """Waits until it has said that."""
        async with asyncio.timeout(PATIENCE_S):
            while self.notes.count(text) < times:
                assert self.process.poll() is None, self.notes
                await asyncio.sleep(0.01)  # polled: it is another process that writes

    async def line(self) -> str:
        """The next line of its output."""
        printed: str = await asyncio.to_thread(self.process.stdout.readline)
        assert printed, self.notes
        return printed

    async def json_line(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.line())
        return found

    async def ended(self) -> tuple[str, int]:
        """What else it prints, and its exit code, once it ends."""
        printed = await asyncio.to_thread(self.process.stdout.read)
        return printed, await asyncio.to_thread(self.process.wait, PATIENCE_S)


@asynccontextmanager
async def listening(
    folder: Path, project: Project, *arguments: str, ready: str = "Ctrl-C ends it"
) -> AsyncIterator[Listening]:
    started = Listening(folder / "listen.txt", project, *arguments)
    try:
        await started.note(ready)
        yield started
    finally:
        started.process.kill()
        await asyncio.to_thread(started.process.wait, PATIENCE_S)
        started.process.stdout.close()


async def run(folder: Path, project: Project, *arguments: str) -> tuple[str, str, int]:
    """Output, notes and exit code of one that ends by itself."""
    started = Listening(folder / "run.txt", project, *arguments)
    printed, code = await started.ended()
    started.process.stdout.close()
    return printed, started.notes, code


async def test_a_request_is_what_a_webhook_would_carry_byte_for_byte(
    project: Project, tmp_path: Path
) -> None:
    async with WebhookReceiver() as hook, WebhookReceiver() as receiver:
        made = await project.call("POST", "/v1/webhooks", json={"url": hook.url})
        hook.secret = made["secret"]
        async with listening(tmp_path, project, receiver.url, "--json") as listener:
            receiver.secret = listener.secret
            event_id = await project.track("bought", **PROPERTIES)
            line = await listener.json_line()
        await hook.next("event.tracked")
        await receiver.next("event.tracked")
    (ours,), (theirs,) = receiver.requests, hook.requests

    assert ours.body == theirs.body
    assert json.loads(ours.body)["data"]["event_id"] == event_id == line["event_id"]
    assert {*ours.headers} == {*theirs.headers}
    assert verify(ours.body, ours.headers["X-Service-Signature"], listener.secret)
    assert verify_standard(ours.headers, ours.body, listener.secret)
    assert ours.headers["X-Service-Delivery-Id"] == line["delivery_id"]
    assert ours.headers["X-Service-Event-Id"] == event_id
    assert (line["event"], line["status_code"], line["error"]) == ("event.tracked", 200, None)


async def test_events_come_once_and_in_their_order(project: Project, tmp_path: Path) -> None:
    await project.track("before")
    async with (
        WebhookReceiver() as receiver,
        listening(tmp_path, project, receiver.url, "--json") as listener,
    ):
        made = [await project.track("now", number=number) for number in range(5)]
        shown = [(await listener.json_line())["event_id"] for _ in made]
        last = await project.track("last")
        shown.append((await listener.json_line())["event_id"])

        assert shown == [*made, last]
        assert len(receiver.requests) == 6


async def test_a_failure_is_shown_and_the_next_event_comes(
    project: Project, tmp_path: Path
) -> None:
    async with (
        WebhookReceiver() as receiver,
        listening(tmp_path, project, receiver.url) as listener,
    ):
        receiver.fail(503)
        receiver.hang_up()
        made = [await project.track("now") for _ in range(3)]
        lines = [await listener.line() for _ in made]

    assert [event_id in line for event_id, line in zip(made, lines, strict=True)] == [True] * 3
    assert ["  503  " in lines[0], "closed before" in lines[1], "  200  " in lines[2]] == [True] * 3
    assert "\x1b" not in "".join(lines), "colours are for terminals"
    assert len(receiver.requests) == 3, "none is repeated"


async def test_a_receiver_that_is_not_there_is_named(project: Project, tmp_path: Path) -> None:
    target = f"http://localhost:{free_ports()}/hook"
    async with listening(tmp_path, project, target, "--json") as listener:
        await project.track("now")
        line = await listener.json_line()

    assert line["status_code"] is None
    assert line["error"].startswith("could not connect")


async def test_only_the_events_that_are_named_come(project: Project, tmp_path: Path) -> None:
    async with (
        WebhookReceiver() as receiver,
        listening(
            tmp_path,
            project,
            receiver.url,
            "--json",
            "--since",
            "1h",
            "--events",
            "x.y, subscription.created",
        ) as listener,
    ):
        line = await listener.json_line()
        await project.track("ignored")
        await listener.note("Ctrl-C ends it")

        assert line["event"] == "subscription.created"
        assert [one.headers["X-Service-Event"] for one in receiver.requests] == [line["event"]]


async def test_since_begins_in_the_past_over_several_pages(
    project: Project, tmp_path: Path
) -> None:
    made = [await project.track("past", number=number) for number in range(210)]
    async with (
        WebhookReceiver() as receiver,
        listening(tmp_path, project, receiver.url, "--json", "--since", "10m") as listener,
    ):
        shown = [(await listener.json_line())["event_id"] for _ in range(211)]

    assert shown[1:] == made, "the subscription came before"


async def test_one_event_is_replayed_by_its_id(project: Project, tmp_path: Path) -> None:
    made = [await project.track("past", number=number) for number in range(3)]
    async with WebhookReceiver() as receiver:
        done = await run(tmp_path, project, receiver.url, "--json", "--replay", made[1])
        again = await run(tmp_path, project, receiver.url, "--json", "--replay", made[1])
    bodies = [json.loads(one.body) for one in receiver.requests]

    assert (done[1], done[2], again[2]) == ("", 0, 0)
    assert [body["data"]["properties"] for body in bodies] == [{"number": 1}] * 2
    deliveries = {one.headers["X-Service-Delivery-Id"] for one in receiver.requests}
    assert len(deliveries) == 2, "a program that handles each delivery once handles both"


async def test_a_replay_that_fails_says_so_by_its_exit_code(
    project: Project, tmp_path: Path
) -> None:
    event_id = await project.track("past")
    async with WebhookReceiver() as receiver:
        receiver.fail(500)
        printed, _, code = await run(tmp_path, project, receiver.url, "--replay", event_id)

    assert "  500  " in printed
    assert code == 1


async def test_what_was_replayed_before_an_unknown_id_is_shown(
    project: Project, tmp_path: Path
) -> None:
    event_id = await project.track("past")
    unknown = "evt_0354Q06BNiSMPOemgj7eMz"
    async with WebhookReceiver() as receiver:
        printed, noted, code = await run(
            tmp_path, project, receiver.url, "--replay", event_id, "--replay", unknown
        )

    assert len(receiver.requests) == 1
    assert event_id in printed
    assert (unknown in noted, code) == (True, 1)


async def test_it_survives_a_restart_of_the_service(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    deployment.configure(CONFIG, port=free_ports())
    first = await asyncio.to_thread(deployment.start)
    key = await asyncio.to_thread(deployment.create_key)
    project = await with_subscriber(first.url, key)
    async with (
        WebhookReceiver() as receiver,
        listening(tmp_path, project, receiver.url, "--json") as listener,
    ):
        before = await project.track("before")
        shown = [(await listener.json_line())["event_id"]]
        await asyncio.to_thread(first.end)
        await listener.note("trying again")
        second = await asyncio.to_thread(deployment.start)
        try:
            after = await project.track("after")
            shown.append((await listener.json_line())["event_id"])
        finally:
            await asyncio.to_thread(second.end)

        assert shown == [before, after]
        assert listener.notes.count("the service answers again") == 1


async def test_it_waits_for_a_service_that_does_not_run_yet(tmp_path: Path) -> None:
    project = Project(f"http://127.0.0.1:{free_ports()}", "msk_any")
    async with listening(
        tmp_path, project, "http://localhost:3000", ready="trying again"
    ) as listener:
        notes = listener.notes

    assert "no connection to 127.0.0.1" in notes
    assert "Ctrl-C ends it" not in notes


async def test_ctrl_c_ends_it_quietly(project: Project, tmp_path: Path) -> None:
    async with listening(tmp_path, project, "http://localhost:3000") as listener:
        listener.process.send_signal(signal.SIGINT)
        printed, code = await listener.ended()

        assert (printed, code) == ("", 0)
        assert "Traceback" not in listener.notes


async def test_a_wrong_key_ends_it(url: str, tmp_path: Path) -> None:
    _, notes, code = await run(tmp_path, Project(url, "msk_wrong"), "http://localhost:3000")

    assert code == 1
    assert "does not take this API key (401)" in notes


async def test_the_secret_of_a_key_stays_the_same_and_one_may_be_given(
    project: Project, tmp_path: Path
) -> None:
    given = new_secret()
    secrets = []
    for arguments in ((), (), ("--secret", given)):
        async with listening(tmp_path, project, "http://localhost:3000", *arguments) as listener:
            secrets.append(listener.secret)

    assert secrets[0] == secrets[1] != secrets[2] == given


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["localhost:3000"], "must begin with"),
        (["http://localhost:3000", "--secret", "whsec_c2hvcnQ="], "at least 24 bytes"),
        (["http://localhost:3000", "--since", "yesterday"], "must be a time"),
        (["http://localhost:3000", "--replay", "17"], "not the id of an event"),
        (["http://localhost:3000", "--replay", "evt_0354Q06BNiSMPOemgj7eMz"], "has no event"),
        (["http://localhost:3000", "--service", "127.0.0.1:8000"], "URL"),
    ],
)
async def test_a_mistake_is_named(
    project: Project, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    _, notes, code = await run(tmp_path, project, *arguments)

    assert code in {1, 2}
    assert complaint in " ".join(notes.split())
    assert "Traceback" not in notes


async def test_a_key_is_needed(tmp_path: Path) -> None:
    _, notes, code = await run(tmp_path, Project("http://127.0.0.1:1", ""), "http://localhost:3000")

    assert code == 2
    assert "MSGSVC_API_KEY" in notes

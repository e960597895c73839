"""`msgsvc serve --ephemeral`: a service for tests, which leaves nothing behind."""

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_devkit.ephemeral.folder import IN_MEMORY
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_devkit.webhooks import WebhookReceiver
from tests.forking import ForkedProcess
from tests.process import until

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """A running one, and the line that it printed."""

    process: ForkedProcess
    facts: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.facts["base_url"])

    def client(self) -> httpx2.AsyncClient:
        headers = {"Authorization": f"Bearer {self.facts['api_key']}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60)

    def folders(self) -> set[Path]:
        """The folders that it has open files in."""
        files = Path(f"/proc/{self.process.pid}/fd").iterdir()
        return {found.parent for file in files if (found := file.resolve()).name == "msgsvc.db"}


def begin(arguments: list[str], errors: Path, **env: str) -> ForkedProcess:
    return ForkedProcess(["serve", "--ephemeral", *arguments], env, errors)


@contextmanager
def serving(folder: Path, **env: str) -> Iterator[Ephemeral]:
    errors = folder / "serve.log"
    process = begin(["--port", "0", "--json"], errors, **env)
    try:
        line = process.stdout.readline()
        assert line, errors.read_text()
        yield Ephemeral(process, json.loads(line))
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def ephemeral(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ephemeral]:
    with serving(tmp_path_factory.mktemp("ephemeral")) as found:
        yield found


async def test_a_person_signs_in_and_a_webhook_on_this_machine_receives_it(
    ephemeral: Ephemeral,
) -> None:
    async with (
        ephemeral.client() as client,
        WebhookReceiver() as receiver,
        Sandbox.over_http(ephemeral.url) as sandbox,
    ):
        created = await client.post("/v1/webhooks", json={"url": receiver.url})
        receiver.secret = created.json()["secret"]
        session = (await client.post("/v1/auth/session", json={})).json()
        ann = await sandbox.person("Ann")
        await ann.open(session["links"]["messenger_a"])
        await ann.press("Yes")
        delivery = await receiver.next("auth.completed")

        assert delivery.data["session_id"] == session["session_id"]


async def test_moving_the_clock_does_what_is_due_by_then(ephemeral: Ephemeral) -> None:
    async with ephemeral.client() as client, Sandbox.over_http(ephemeral.url) as sandbox:
        ann = await sandbox.person("Ann")
        subscriber_id = await subscribed(client, ann)
        before = (await client.get("/sandbox/api/clock")).json()
        steps = [
            {"delay": {"hours": hours}, "message": {"text": f"{hours} hours later"}}
            for hours in (1, 24)
        ]
        drip = {"name": "Greeting", "trigger": {"on": "manual"}, "steps": steps}
        drip_id = (await client.post("/v1/drips", json=drip)).json()["drip_id"]
        body = {"subscriber_id": subscriber_id}
        enrolled = await client.post(f"/v1/drips/{drip_id}/enroll", json=body)
        assert enrolled.status_code == 201, enrolled.text
        moved = await client.post("/sandbox/api/clock", json={"advance_s": 2 * 86400})

        assert moved.status_code == 200
        assert moved.json()["ahead_s"] == before["ahead_s"] + 2 * 86400
        texts = [message.text for message in await ann.messages()]
        assert texts[-2:] == ["1 hours later", "24 hours later"]


async def subscribed(client: httpx2.AsyncClient, person: Any) -> str:
    link = (await client.post("/v1/subscribers/links", json={})).json()
    await person.open(link["links"]["messenger_a"])
    found = (await client.get("/v1/subscribers")).json()["data"]
    return str(found[0]["subscriber_id"])


@pytest.mark.parametrize("advance_s", [0, -1, 366 * 86400 + 1, "600"])
async def test_the_clock_moves_forward_up_to_a_year(
    ephemeral: Ephemeral, advance_s: object
) -> None:
    async with ephemeral.client() as client:
        answer = await client.post("/sandbox/api/clock", json={"advance_s": advance_s})

    assert answer.status_code == 400
    assert answer.json()["code"] == "validation_failed"


async def test_a_page_of_another_site_can_t_move_the_clock(ephemeral: Ephemeral) -> None:
    async with ephemeral.client() as client:
        answer = await client.post(
            "/sandbox/api/clock",
            json={"advance_s": 1},
            headers={"Origin": "https://evil.example"},
        )

    assert answer.json()["code"] == "forbidden"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as ephemeral:
        (folder,) = ephemeral.folders()
        assert folder.stat().st_mode & 0o077 == 0
        assert folder.is_relative_to(IN_MEMORY)
        ephemeral.process.send_signal(number)
        code = ephemeral.process.wait(60)

    until(lambda: not folder.exists())
    assert code == (-number if number == signal.SIGKILL else 0)


async def test_variables_change_its_settings(tmp_path: Path) -> None:
    with serving(tmp_path, MSGSVC_LIMITS__REQUESTS_PER_MINUTE="1") as ephemeral:
        async with ephemeral.client() as client:
            statuses = [(await client.get("/v1/subscribers")).status_code for _ in range(2)]

    assert statuses == [200, 429]


@pytest.mark.parametrize(
    ("arguments", "env", "named"),
    [
        (["--config", "msgsvc.toml"], {}, "msgsvc.toml"),
        ([], {"MSGSVC_CONFIG": "/etc/msgsvc.toml"}, "/etc/msgsvc.toml"),
        ([], {"MSGSVC_DATABASE_URL": "postgresql://db/msgsvc"}, "MSGSVC_DATABASE_URL"),
        ([], {"MSGSVC_REDIS_URL": "redis://cache"}, "MSGSVC_REDIS_URL"),
        ([], {"MSGSVC_SECRET_KEYS": '["k"]'}, "MSGSVC_SECRET_KEYS"),
        ([], {"MSGSVC_JOBS__RUNNER": "none"}, "MSGSVC_JOBS__RUNNER"),
    ],
)
def test_a_deployment_s_configuration_is_refused(
    tmp_path: Path, arguments: list[str], env: Mapping[str, str], named: str
) -> None:
    errors = tmp_path / "errors.txt"
    process = begin([*arguments, "--port", "0"], errors, **env)
    code = process.wait(60)
    process.stdout.close()

    assert code == 2
    assert "--ephemeral" in errors.read_text()
    assert named in errors.read_text()


def test_json_alone_is_refused(tmp_path: Path) -> None:
    process = ForkedProcess(["serve", "--json"], {}, tmp_path / "errors.txt")
    code = process.wait(60)
    process.stdout.close()

    assert code == 2
    assert "--ephemeral" in (tmp_path / "errors.txt").read_text()


def test_people_are_shown_the_key_and_the_addresses(tmp_path: Path) -> None:
    process = begin(["--port", "0"], tmp_path / "errors.txt")
    lines = [process.stdout.readline() for _ in range(7)]
    process.terminate()
    process.wait(60)
    process.stdout.close()

    text = "".join(lines)
    assert lines[0].startswith("msgsvc listens on http://127.0.0.1:")
    assert "msk_" in text
    assert "/sandbox/api/clock" in text
    assert lines[-1] == "Ctrl-C ends it\n"


def test_nothing_that_serves_knows_of_a_clock_to_move() -> None:
    """What moves it is in a distribution that no server imports, and in no entry point of plugins."""
    names = {point.name for point in entry_points(group="msgsvc.plugins")}
    named = [
        path.name
        for folder in ("msgsvc_core", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        if "sandbox/api/clock" in path.read_text("utf-8")
    ]

    assert "ephemeral" not in names
    assert named == []

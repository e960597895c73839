"""A disk that is full: a clear answer, nothing half-written, reads go on, and it mends itself.

A small file system of our own is filled where we may mount one, which takes root. Everywhere, the size
that the process's files may have is limited, which SQLite meets in the same place.
"""

import resource
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from tests.faults import slow_outbox
from tests.faults.conftest import Figure, Rounds
from tests.process import Deployment, Server, install_module, until

pytestmark = pytest.mark.faults

#: Bytes of the small disk: a fresh database and its log take a tenth of it.
DISK_BYTES = 8 << 20

#: Messages that a full disk may still take: into what its log had already, say.
MOST_MORE = 3000

#: Seconds in which service must be back once there is room; what does not mend itself never is.
BACK_S, SHORT_BACK_S = 5.0, 30.0

FINAL = {"sent", "unknown"}


class SmallDisk:
    """A file system in memory, and a file that takes all the room there is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, _server: Server) -> None:
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def free(self, _server: Server) -> None:
        self._ballast.unlink()


class SmallFiles:
    """A limit on the size of the server's files, a little above that of its largest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: Server) -> None:
        largest = max(path.stat().st_size for path in self.folder.iterdir())
        self._limit(server, largest + (64 << 10))

    def free(self, server: Server) -> None:
        self._limit(server, resource.RLIM_INFINITY)

    def _limit(self, server: Server, soft: int) -> None:
        limits = (soft, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)


@pytest.fixture(params=["full disk", "files at their limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk | SmallFiles]:
    """Where the database is."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if request.param == "files at their limit":
        yield SmallFiles(folder)
        return
    options = f"size={DISK_BYTES}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system takes root")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


@dataclass
class Sender:
    """A project's own program, which remembers what it was promised."""

    client: httpx2.Client
    path: Path
    subscriber_id: str
    accepted: dict[str, str] = field(default_factory=dict)

    def send(self, text: str, key: str | None = None) -> httpx2.Response:
        answer = self.client.post(
            "/v1/send",
            json={"subscriber_id": self.subscriber_id, "text": text},
            headers={} if key is None else {"Idempotency-Key": key},
        )
        if answer.status_code == 202:
            self.accepted[answer.json()["message_id"]] = text
        return answer

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()

    def statuses(self) -> dict[str, str]:
        return dict(self.query("SELECT message_id, status FROM core_messages"))


@pytest.fixture
def deployment(disk: SmallDisk | SmallFiles, tmp_path: Path) -> Deployment:
    made = Deployment(
        tmp_path, [install_module(tmp_path / "installed", Path(slow_outbox.__file__))]
    )
    made.configure(
        'plugins = ["slow_outbox"]\n'
        '[channels.messenger_a]\nplugin = "slow_outbox"\n'
        f'outbox = "{tmp_path / "outbox.jsonl"}"\ndelay_s = 0.0\n'
        "[limits]\nrequests_per_minute = 1000000\n"
        '[jobs]\nlease_s = 1.0\nsweep_s = 0.1\n[log]\nlevel = "warning"\n',
        database_url=f"sqlite:///{disk.folder / 'msgsvc.db'}",
    )
    return made


@pytest.fixture
async def subscriber(deployment: Deployment) -> tuple[str, str]:
    """An API key, and the id of somebody who subscribed."""
    settings = load_settings(deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("slow_outbox", slow_outbox)])
    await service.open_database()
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "test")
    async with service.db.transaction() as tx:
        made = await service.subscribers.ensure(
            tx, project.project_id, "messenger_a", ChannelUser("u", "Ann"), "chat", source="api"
        )
    await service.db.disconnect()
    return key, made.subscriber_id


def check_unavailable(answer: httpx2.Response) -> None:
    fields = answer.json()
    assert answer.status_code == 503, answer.text
    assert set(fields) == {"error", "code", "retryable", "docs_url"}
    assert (fields["code"], fields["retryable"]) == ("unavailable", True)
    assert answer.headers["Retry-After"] == "1"


def test_a_full_disk_is_said_survived_and_got_over(
    deployment: Deployment,
    disk: SmallDisk | SmallFiles,
    subscriber: tuple[str, str],
    rounds: Rounds,
    figure: Figure,
) -> None:
    key, subscriber_id = subscriber
    with (
        deployment.serving() as server,
        httpx2.Client(
            base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=30
        ) as client,
    ):
        sender = Sender(client, disk.folder / "msgsvc.db", subscriber_id)
        assert sender.send("before").status_code == 202
        until(lambda: set(sender.statuses().values()) == {"sent"})

        disk.fill(server)
        answers = []
        for number in range(MOST_MORE):
            answers.append(sender.send(f"{number} " + "x" * 3000))
            if answers[-1].status_code != 202:
                break
        more = len(answers) - 1
        check_unavailable(answers[-1])
        # One unit of the group, one with a key, and one transaction of its own.
        refused = Counter[int]()
        for number in range(20):
            refused[sender.send(f"again {number} " + "x" * 3000).status_code] += 1
        keyed = sender.send("with a key " + "x" * 3000, key="one-and-only")
        linked = client.post("/v1/subscribers/links", json={"external_id": "x" * 128})
        reads = [
            client.get(path).status_code
            for path in ("/v1/messages", f"/v1/subscribers/{subscriber_id}", "/healthz", "/metrics")
        ]
        ready_full = [client.get("/readyz").status_code for _ in range(3)]
        promised = set(sender.accepted)
        kept = set(sender.statuses())
        whole = sender.query("PRAGMA integrity_check")

        disk.free(server)
        began = time.monotonic()
        until(lambda: sender.send("after").status_code == 202)
        back_s = time.monotonic() - began
        ready_again = client.get("/readyz").status_code
        repeated = sender.send("with a key " + "x" * 3000, key="one-and-only")
        until(lambda: set(sender.statuses().values()) <= FINAL, timeout_s=60)
        with_key = [text for text in sender.accepted.values() if text.startswith("with a key")]
        code = server.end()
    unknown = Counter(sender.statuses().values())["unknown"]

    figure(
        f"disk full on SQLite, {type(disk).__name__}",
        f"{refused[503]} of {refused.total()} refused with 503, {len(kept ^ promised)} lost or "
        f"half-written, back after {back_s:.2f} s, {unknown} in doubt",
        refused=refused[503],
        lost=len(kept ^ promised),
        back_s=back_s,
        in_doubt=unknown,
    )
    assert more < MOST_MORE
    assert set(refused) <= {202, 503}
    assert refused[503] > 0
    assert reads == [200] * 4
    assert (ready_full, ready_again) == ([503] * 3, 200)
    for answer in (keyed, linked):
        if answer.status_code >= 300:
            check_unavailable(answer)
    assert kept == promised
    assert whole == [("ok",)]
    assert back_s < rounds(short=SHORT_BACK_S, long=BACK_S)
    assert repeated.status_code == 202
    assert len(with_key) == 1
    assert set(sender.statuses()) == set(sender.accepted)
    assert code == 0
    log = (deployment.folder / "serve.log").read_text()
    # Each was known for what it was, and none became a 500.
    assert "database_unavailable" in log
    assert "request_failed" not in log

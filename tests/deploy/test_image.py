"""The image: built from the tree without a registry, and run as operators run it."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest

from msgsvc_devkit.databases import PostgresDatabases, postgres_answers, postgres_url
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.sandbox import Sandbox
from msgsvc_devkit.runners import redis_url
from tests.deploy.podman import BASE, IMAGE, Podman, build_base, build_image, find_podman
from tests.deploy.tools import DEPLOY, SECRETS
from tests.ports import free_ports
from tests.process import PATIENCE_S, until

#: MB beyond the base: today 187. More than this was put in by mistake.
MOST_MB = 230

#: Seconds from SIGTERM to the end of a process without work, on a busy machine. Its jobs would get 30.
SOON_S = patient(25.0)

HEALTH = ("/opt/msgsvc/bin/python", "-I", "/opt/msgsvc/health.py")


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    if not postgres_answers(postgres_url()):
        pytest.skip("needs a PostgreSQL and a Redis for containers to share")
    # Podman takes paths of 50 characters at most, which a worker's temporary folders are longer than.
    found = find_podman(Path(tempfile.mkdtemp(prefix="podman-", dir="/var/tmp")))
    try:
        build_base(found)
        build_image(found)
        yield found
    finally:
        found.remove_all()


def options(folder: Path, secrets: dict[str, str], **settings: str) -> list[str]:
    """Secrets as files and other settings as variables, as compose.yaml gives them to a container."""
    folder.mkdir()
    found = [f"--volume={folder}:/run/secrets:ro"]
    for name, value in secrets.items():
        (folder / name).write_text(value, "utf-8")
        found.append(f"--env=MSGSVC_{name.upper()}__FILE=/run/secrets/{name}")
    return [*found, *(f"--env=MSGSVC_{name}={value}" for name, value in settings.items())]


def check_what_it_is(podman: Podman) -> None:
    config = podman.image(IMAGE)["Config"]
    healthcheck = podman.image(IMAGE)["Healthcheck"]
    beyond_mb = (podman.image(IMAGE)["Size"] - podman.image(BASE)["Size"]) / 1e6

    # Exec forms: no shell stands between the runtime's signals and the process.
    assert config["Entrypoint"] == ["/opt/msgsvc/bin/msgsvc"]
    assert config["Cmd"] == ["serve"]
    assert config["StopSignal"] == "SIGTERM"
    assert healthcheck["Test"] == ["CMD", *HEALTH]
    assert config["User"] == "10001:10001"
    assert beyond_mb < MOST_MB


def key_of_a_project(podman: Podman, name: str) -> str:
    project = podman.exec(name, "msgsvc", "project", "create", "Shop", "--json")
    project_id = json.loads(project.stdout)["project_id"]
    key = podman.exec(name, "msgsvc", "key", "create", project_id, "--json")
    return str(json.loads(key.stdout)["key"])


async def send_a_message(url: str, key: str) -> str:
    """What Ann reads in the sandbox after a message was sent to her."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
        Sandbox.over_http(url) as sandbox,
    ):
        links = (await client.post("/v1/subscribers/links", json={})).json()["links"]
        ann = await sandbox.person("Ann")
        await ann.open(links["messenger_a"])
        await ann.wait_for(text="subscribed", timeout_s=PATIENCE_S)
        (subscriber,) = (await client.get("/v1/subscribers")).json()["data"]
        body = {"subscriber_id": subscriber["subscriber_id"], "text": "It is here"}
        sent = await client.post("/v1/send", json=body)
        assert sent.status_code == 202, sent.text
        return (await ann.wait_for(text="It is here", timeout_s=PATIENCE_S)).text


def is_healthy(podman: Podman, name: str) -> bool:
    """Asks what the runtime asks. Raises `AssertionError` with the log when the container has ended."""
    state = podman.run("inspect", "--format={{.State.Status}}", name).strip()
    assert state == "running", podman.logs(name)
    return podman.exec(name, *HEALTH).returncode == 0


def check_end(podman: Podman, name: str) -> None:
    began_s = time.monotonic()
    code = podman.stop(name)
    took_s = time.monotonic() - began_s

    assert code == 0, podman.logs(name)
    assert took_s < SOON_S
    assert "Traceback" not in podman.logs(name)


def check_one_container(podman: Podman, folder: Path) -> None:
    """SQLite in a volume, as the guide tries it."""
    port = free_ports()
    url = f"http://127.0.0.1:{port}"
    secrets = {"secret_keys": SECRETS["secret_keys"]}
    given = options(folder, secrets, SERVER__PORT=str(port), BASE_URL=url)
    without_volume = podman.run_once(given)
    podman.start("serve", ["--volume=data:/var/lib/msgsvc", *given])
    until(lambda: is_healthy(podman, "serve"))
    key = key_of_a_project(podman, "serve")
    read = asyncio.run(send_a_message(url, key))
    ready = httpx2.get(f"{url}/readyz").json()
    who = podman.exec("serve", "id", "-u").stdout.strip()
    first = podman.exec("serve", "cat", "/proc/1/cmdline").stdout.split("\0")
    writes = podman.exec("serve", "touch", "/opt/msgsvc/written")

    assert without_volume.returncode == 2
    assert "can't be used" in without_volume.stderr
    assert read == "It is here"
    assert ready["status"] == "ok", ready
    assert who == "10001"
    assert first[1:3] == ["/opt/msgsvc/bin/msgsvc", "serve"]
    assert "Read-only file system" in writes.stderr
    check_end(podman, "serve")


@asynccontextmanager
async def new_database() -> AsyncIterator[str]:
    databases = PostgresDatabases(postgres_url())
    try:
        yield await databases.empty()
    finally:
        await databases.drop_all()


async def check_processes_apart(podman: Podman, folder: Path) -> None:
    """`migrate`, `serve` and `worker` of compose.yaml, on this machine's PostgreSQL and Redis."""
    port = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    async with new_database() as database_url:
        secrets = {"secret_keys": SECRETS["secret_keys"], "database_url": database_url}
        given = [
            f"--volume={DEPLOY / 'msgsvc.toml'}:/etc/msgsvc/msgsvc.toml:ro",
            "--env=MSGSVC_CONFIG=/etc/msgsvc/msgsvc.toml",
            *options(
                folder,
                secrets,
                REDIS_URL=redis_url(),
                JOBS__BROKER_NAMESPACE=f"containers-{os.getpid()}",
                SERVER__PORT=str(port),
                METRICS__WORKER_PORT=str(port + 1),
                BASE_URL=url,
            ),
        ]
        migrated = podman.run_once(given, "migrate", "--phase", "expand")
        podman.start("api", given)
        podman.start("worker", given, "worker")
        for name in ("api", "worker"):
            until(partial(is_healthy, podman, name))
        key = key_of_a_project(podman, "api")
        read = await send_a_message(url, key)
        contracted = podman.exec("api", "msgsvc", "migrate", "--phase", "contract")
        figures = httpx2.get(f"http://127.0.0.1:{port + 1}/metrics").text

        assert migrated.returncode == 0, migrated.stderr
        assert "applied" in migrated.stdout
        assert contracted.returncode == 0, contracted.stderr
        assert read == "It is here"
        assert "msgsvc_deliveries_total" in figures
        check_end(podman, "worker")
        check_end(podman, "api")


# All in one test: each worker of the suite would build the image for itself.
@pytest.mark.timeout(2400)
def test_the_image_serves_works_and_migrates_without_writing_to_itself(
    podman: Podman, tmp_path: Path
) -> None:
    check_what_it_is(podman)
    check_one_container(podman, tmp_path / "one")
    asyncio.run(check_processes_apart(podman, tmp_path / "apart"))

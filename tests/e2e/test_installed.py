"""A release in an environment that holds nothing else, away from the clone: from wheels to a sign-in."""

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest

from contrib.release.build import build_wheels
from contrib.release.distributions import ROOT, released_version
from contrib.release.environments import install, new_environment
from msgsvc_devkit.platforms.sandbox import Sandbox
from tests.ports import free_ports
from tests.process import start_server

pytestmark = pytest.mark.slow

#: An operator's shell, with nothing of the tester's.
ENVIRONMENT = {"PATH": os.defpath}

#: What the meta package can do without: only extras bring it.
OPTIONAL = ("aiohttp", "asyncpg", "dramatiq", "pika", "redis", "msgsvc_devkit", "msgsvc_telegram")


def installed(folder: Path) -> Path:
    """The folder with `msgsvc` in an environment that `pip install msgsvc` has filled."""
    build_wheels(folder / "wheels")
    programs = new_environment(folder / "environment")
    wanted = f"msgsvc=={released_version()}"
    install(programs, [wanted], folder / "wheels", is_compiled=False)
    return programs


def run(
    programs: Path, folder: Path, *arguments: str, env: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    command = [programs / "msgsvc", *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60
    )


def answered(programs: Path, folder: Path, *arguments: str) -> dict[str, str]:
    """What a command answers with `--json`."""
    done = run(programs, folder, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def check_what_is_there(programs: Path, folder: Path) -> None:
    """Nothing comes from the clone, and nothing optional was installed."""
    program = (
        "import importlib.util as u, json, msgsvc_core, sys;"
        "print(json.dumps([msgsvc_core.__file__, [n for n in sys.argv[1:] if u.find_spec(n)]]))"
    )
    command = [programs / "python", "-c", program, *OPTIONAL]
    said = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    path, found = json.loads(said.stdout)

    assert not Path(path).is_relative_to(ROOT)
    assert found == []


def check_postgresql_names_its_extra(programs: Path, folder: Path) -> None:
    env = {
        **ENVIRONMENT,
        "MSGSVC_SECRET_KEYS": json.dumps(["k" * 43]),
        "MSGSVC_DATABASE_URL": "postgresql://127.0.0.1/msgsvc",
    }
    refused = run(programs, folder, "migrate", env=env)

    assert refused.returncode == 2
    assert "pip install 'msgsvc-core[postgres]'" in refused.stderr
    assert "Traceback" not in refused.stderr


async def sign_in(url: str, key: str) -> tuple[httpx2.Response, httpx2.Response]:
    """The answers to the code of somebody who pressed Yes, and of the page about the API."""
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
        Sandbox.over_http(url) as sandbox,
    ):
        session = (await client.post("/v1/auth/session", json={})).json()
        ann = await sandbox.person("Ann")
        await ann.open(session["links"]["messenger_a"])
        await ann.press("Yes")
        status = f"/v1/auth/session/{session['session_id']}/status?wait=25"
        confirmed = (await client.get(status)).json()
        verified = await client.post("/v1/auth/verify", json={"code": confirmed["code"]})
        return verified, await client.get("/docs")


# All in one test: each worker of the suite would install for itself.
def test_a_person_signs_in_to_an_installed_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = installed(tmp_path)
    check_what_is_there(programs, tmp_path)
    check_postgresql_names_its_extra(programs, tmp_path)
    monkeypatch.chdir(tmp_path)
    port = free_ports()
    made = run(programs, tmp_path, "init", "--yes", "--base-url", f"http://127.0.0.1:{port}")
    assert made.returncode == 0, made.stderr
    command = [programs / "msgsvc", "serve", "--port", str(port)]
    server = start_server(command, tmp_path / "serve.log", ENVIRONMENT)
    try:
        project = answered(programs, tmp_path, "project", "create", "Shop")
        key = answered(programs, tmp_path, "key", "create", project["project_id"])
        verified, docs = asyncio.run(sign_in(server.url, key["key"]))
    finally:
        code = server.end()

    assert verified.status_code == 200, verified.text
    assert docs.status_code == 200
    assert code == 0, (tmp_path / "serve.log").read_text()

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
from contrib.release.distributions import ROOT
from contrib.release.environments import install, new_environment
from msgsvc_devkit.platforms.sandbox import Sandbox
from tests.ports import free_ports
from tests.process import start_server

#: An operator's shell, with nothing of the tester's.
ENVIRONMENT = {"PATH": os.defpath}

#: What the meta package can do without: only extras bring it.
OPTIONAL = ("aiohttp", "asyncpg", "dramatiq", "pika", "redis", "msgsvc_devkit", "msgsvc_telegram")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with `msgsvc` in an environment that `pip install msgsvc` has filled."""
    folder = tmp_path_factory.mktemp("installed")
    build_wheels(folder / "wheels")
    made = new_environment(folder / "environment")
    install(made, ["msgsvc"], folder / "wheels", is_compiled=False)
    return made


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


async def test_a_person_signs_in_to_an_installed_release(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = free_ports()
    address = f"http://127.0.0.1:{port}"
    made = await asyncio.to_thread(run, programs, tmp_path, "init", "--yes", "--base-url", address)
    assert made.returncode == 0, made.stderr
    command = [programs / "msgsvc", "serve", "--port", str(port)]
    server = await asyncio.to_thread(start_server, command, tmp_path / "serve.log", ENVIRONMENT)
    try:
        project = await asyncio.to_thread(answered, programs, tmp_path, "project", "create", "Shop")
        key = await asyncio.to_thread(
            answered, programs, tmp_path, "key", "create", project["project_id"]
        )
        headers = {"Authorization": f"Bearer {key['key']}"}
        async with (
            httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client,
            Sandbox.over_http(server.url) as sandbox,
        ):
            session = (await client.post("/v1/auth/session", json={})).json()
            ann = await sandbox.person("Ann")
            await ann.open(session["links"]["messenger_a"])
            await ann.press("Yes")
            status = f"/v1/auth/session/{session['session_id']}/status?wait=25"
            confirmed = (await client.get(status)).json()
            signed_in = await client.post("/v1/auth/verify", json={"code": confirmed["code"]})
            docs = await client.get("/docs")
    finally:
        code = await asyncio.to_thread(server.end)

    assert signed_in.status_code == 200, signed_in.text
    assert docs.status_code == 200
    assert code == 0, (tmp_path / "serve.log").read_text()


def test_nothing_comes_from_the_clone_and_nothing_optional_is_there(
    programs: Path, tmp_path: Path
) -> None:
    program = (
        "import importlib.util as u, json, msgsvc_core, sys;"
        "print(json.dumps([msgsvc_core.__file__, [n for n in sys.argv[1:] if u.find_spec(n)]]))"
    )
    said = subprocess.run(
        [programs / "python", "-c", program, *OPTIONAL],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )

    path, found = json.loads(said.stdout)
    assert not Path(path).is_relative_to(ROOT)
    assert found == []


def test_postgresql_without_its_driver_names_the_extra(programs: Path, tmp_path: Path) -> None:
    env = {
        **ENVIRONMENT,
        "MSGSVC_SECRET_KEYS": json.dumps(["k" * 43]),
        "MSGSVC_DATABASE_URL": "postgresql://127.0.0.1/msgsvc",
    }

    refused = run(programs, tmp_path, "migrate", env=env)

    assert refused.returncode == 2
    assert "pip install 'msgsvc-core[postgres]'" in refused.stderr
    assert "Traceback" not in refused.stderr

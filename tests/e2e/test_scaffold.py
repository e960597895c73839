"""What `msgsvc plugin new` writes: it installs, passes its own tests, and works in a service."""

import asyncio
import importlib.util
import os
import subprocess
import sys
import zipfile
from dataclasses import fields
from itertools import combinations, product
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_devkit.scaffold.packages import (
    MAX_NAME_LENGTH,
    TEMPLATES,
    AddressKind,
    NewPlugin,
    Platform,
    write_file,
    write_package,
)
from tests.e2e.guide_blocks import KEPT_TYPES
from tests.process import Deployment, until

pytestmark = pytest.mark.slow

DEVKIT = Path(__file__).parents[2] / "contrib" / "devkit"
PLUGINS = (
    NewPlugin("channel", "dove", author="Ann"),
    NewPlugin(
        "channel",
        "raven",
        author="Ann",
        platform=Platform(no_buttons=True, no_start_links=True, repeatable=True, threads=True),
    ),
    NewPlugin(
        "channel",
        "swift",
        author="Ann",
        platform=Platform(
            no_buttons=True, no_edits=True, reports=True, webhook=True, addresses="phone"
        ),
    ),
    NewPlugin(
        "channel",
        "heron",
        author="Ann",
        platform=Platform(no_start_links=True, upload=True, threads=True, identity="homeserver"),
    ),
    NewPlugin("area", "survey", author="Ann"),
)

ADDRESSES: tuple[AddressKind | None, ...] = (None, "email", "phone")

#: Nothing is fetched: the build backend is here, and so is what the plugins depend on.
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
OFFLINE = ["--no-index", "--no-deps", "--no-build-isolation"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages, as they were written."""
    folder = tmp_path_factory.mktemp("sources")
    for plugin in PLUGINS:
        write_package(plugin, folder / plugin.name)
    return folder


@pytest.fixture(scope="module")
def installed(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has put them."""
    folder = tmp_path_factory.mktemp("installed")
    paths = [sources / plugin.name for plugin in PLUGINS]
    subprocess.run([*PIP, "install", *OFFLINE, "--target", folder, *paths], check=True)
    return folder


def run_in(folder: Path, *command: str | Path, packages: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_a_new_plugin_passes_its_tests(plugin: NewPlugin, sources: Path, installed: Path) -> None:
    done = run_in(sources / plugin.name, sys.executable, "-m", "pytest", "-q", packages=installed)

    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


def test_new_plugins_are_formatted_and_typed(sources: Path, installed: Path) -> None:
    _check_formatting(sources)
    for plugin in PLUGINS:
        typed: list[str | Path] = [
            Path(sys.executable).with_name("mypy"),
            "--strict",
            "--exclude",
            "migrations",
            *KEPT_TYPES,
        ]
        done = run_in(sources / plugin.name, *typed, plugin.package, "tests", packages=installed)
        assert done.returncode == 0, done.stdout + done.stderr


def test_channels_of_any_two_options_are_formatted(tmp_path: Path) -> None:
    flags = [field.name for field in fields(Platform) if field.default is False]
    chosen = [*combinations(flags, 2), tuple(flags)]
    for number, (names, addresses) in enumerate(product(chosen, ADDRESSES)):
        values: dict[str, Any] = dict.fromkeys(names, True)
        platform = Platform(**values, addresses=addresses)
        write_package(NewPlugin("channel", "dove", platform=platform), tmp_path / str(number))
    longest = NewPlugin("channel", "a" * MAX_NAME_LENGTH, platform=Platform(webhook=True))
    write_package(longest, tmp_path / longest.name)

    _check_formatting(tmp_path)


def test_minimal_plugins_are_formatted_and_typed(tmp_path: Path) -> None:
    for plugin in (NewPlugin("channel", "lark"), NewPlugin("area", "feedback")):
        write_file(plugin, tmp_path)
    (tmp_path / "ruff.toml").write_text("line-length = 100\n")

    _check_formatting(tmp_path)
    mypy = [Path(sys.executable).with_name("mypy"), "--strict", *KEPT_TYPES, "."]
    done = run_in(tmp_path, *mypy, packages=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


async def test_a_service_works_with_the_new_plugins(
    sources: Path, installed: Path, tmp_path: Path
) -> None:
    fake = _module(sources / "dove" / "tests" / "fake_platform.py")
    deployment = Deployment(tmp_path, [installed])
    async with fake.FakePlatform().running() as platform:
        deployment.configure(
            'plugins = ["dove", "survey"]\n'
            "[channels.messenger_a]\n"
            'plugin = "dove"\n'
            f'token = "{fake.TOKEN}"\n'
            f'base_url = "{platform.base_url}"\n'
        )
        server = await asyncio.to_thread(deployment.start)
        try:
            key = await asyncio.to_thread(deployment.create_key)
            await asyncio.to_thread(_open_an_entry, server.url, key, platform)
            await asyncio.to_thread(until, lambda: platform.messages)
        finally:
            await asyncio.to_thread(server.end)

    assert [message["text"] for message in platform.messages.values()] == ["First, от Shop"]


def _check_formatting(folder: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    checks: list[list[str | Path]] = [
        [ruff, "format", "--check", "."],
        [ruff, "check", "--select", "E,F,I,B,UP,RUF", "--ignore", "RUF001", "."],
    ]
    for check in checks:
        done = run_in(folder, *check, packages=folder)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def _open_an_entry(url: str, key: str, platform: Any) -> None:
    """Makes an entry over the API, and presses Start behind its link."""
    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
        # Until the bot has said its name there are no links.
        until(lambda: client.post("/v1/survey", json={"title": "First"}).status_code in {201, 409})
        link = client.get("/v1/survey").json()["data"][0]["links"]["messenger_a"]
    platform.tell("start", payload=link.partition("?start=")[2])


async def test_somebody_signs_in_on_a_messenger_without_buttons_and_start_links(
    sources: Path, installed: Path, tmp_path: Path
) -> None:
    fake = _module(sources / "raven" / "tests" / "fake_platform.py")
    deployment = Deployment(tmp_path, [installed])
    async with fake.FakePlatform().running() as platform:
        deployment.configure(
            'plugins = ["raven", "auth"]\n'
            "[channels.raven]\n"
            'plugin = "raven"\n'
            f'token = "{fake.TOKEN}"\n'
            f'base_url = "{platform.base_url}"\n'
        )
        server = await asyncio.to_thread(deployment.start)
        try:
            key = await asyncio.to_thread(deployment.create_key)
            await asyncio.to_thread(_sign_in, server.url, key, platform)
        finally:
            await asyncio.to_thread(server.end)


def _sign_in(url: str, key: str, platform: Any) -> None:
    """As the demo does it, with nothing but what a person can write."""

    def write(text: str, number: str) -> None:
        platform.tell("text", text=text, message=number, files=[], answers=None)

    def last_text() -> str:
        texts = [str(message["text"]) for message in platform.messages.values()]
        return texts[-1] if texts else ""

    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
        body = {"state": "cart-17", "lang": "en", "number_matching": True}
        until(lambda: client.get("/v1/project").json()["channels"][0]["link"])
        session = client.post("/v1/auth/session", json=body).json()
        write(session["start_messages"]["raven"], "m1")
        until(lambda: "Sign in to Shop?" in last_text())
        question = last_text()
        write(str(session["match_number"]), "m2")
        until(lambda: "You are signed in to Shop." in last_text())
        status = client.get(f"/v1/auth/session/{session['session_id']}/status").json()
        verified = client.post("/v1/auth/verify", json={"code": status["code"]})
        again = client.post("/v1/auth/verify", json={"code": status["code"]})

    assert str(session["match_number"]) in question
    assert (status["status"], verified.json()["first_name"]) == ("confirmed", "Ann")
    assert (verified.json()["state"], again.status_code) == ("cart-17", 409)


def test_the_templates_are_in_the_wheel(tmp_path: Path) -> None:
    subprocess.run([*PIP, "wheel", *OFFLINE, "--wheel-dir", tmp_path, DEVKIT], check=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())

    for template in TEMPLATES.rglob("*.jinja"):
        assert template.relative_to(DEVKIT).as_posix() in packed


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""The guide to the first installation, followed with Python and a browser alone: no clone, no index."""

import asyncio
import json
import os
import re
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from contrib.release.build import build_wheels, download_others, write_pins, write_sums
from contrib.release.distributions import released_version
from msgsvc_devkit import until
from tests.e2e.guide_blocks import Block, blocks_of
from tests.e2e.test_tutorial import SERVICE_PORT, SITE_PORT, Reader
from tests.e2e.windows import NewWindow, open_on_phone, picture
from tests.ports import free_ports

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "first-install.md"

#: Where the seconds of each step are left, and those of its processors, for the guide's table.
TIMES = ROOT / "build" / "first-install.json"


def release(folder: Path) -> Path:
    """What `make dist-offline` leaves, but built once."""
    dist = folder / "dist"
    build_wheels(dist)
    write_pins(dist, released_version())
    download_others(dist)
    write_sums(dist)
    return dist


def empty_machine(folder: Path) -> dict[str, str]:
    """The environment of somebody who has Python and the system's own programs, and nothing of ours."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.executable).resolve())
    return {"PATH": f"{programs}{os.pathsep}{os.defpath}", "HOME": str(folder)}


def processor_s() -> float:
    """Seconds of processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_times(times: Mapping[str, tuple[float, float]]) -> None:
    steps = {name: [round(each, 1) for each in seconds] for name, seconds in times.items()}
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps({**steps, "load": os.getloadavg()[0]}, indent=2))


async def sign_in(reader: Reader, block: Block, phone: Page) -> None:
    """Runs the program, and does in the browser what the guide says below it."""
    running = asyncio.create_task(reader.follow(Block("sh", "", block.code, "", block.line)))

    async def link() -> str:
        assert not running.done(), reader.printed
        found = re.search(r"Open in a browser: (\S+)", reader.so_far())
        return found[1] if found else ""

    await open_on_phone(phone, await until(link), "Ann")
    await picture(phone, "first-install-question")
    await phone.get_by_role("button", name="Yes", exact=True).click()
    await running
    await expect(phone.get_by_role("log")).to_contain_text("signed in")


# Most of it is pip's: some forty packages, twice.
@pytest.mark.timeout(900)
@pytest.mark.browser
async def test_whoever_follows_the_guide_installs_a_release_and_signs_in(
    new_window: NewWindow, tmp_path: Path
) -> None:
    await asyncio.to_thread(release, tmp_path)
    ports = {SERVICE_PORT: str(free_ports()), SITE_PORT: "9000"}
    reader = Reader(tmp_path, ports, environment=empty_machine(tmp_path))
    phone = await new_window(390, 800)
    times: dict[str, tuple[float, float]] = {}
    try:
        for block in blocks_of(GUIDE):
            began, used = time.monotonic(), processor_s()
            if block.what == "person":
                await sign_in(reader, block, phone)
            else:
                await reader.follow(block)
            name = block.code.strip().splitlines()[-1].split(" --")[0]
            if block.language == "sh":
                times[name] = (time.monotonic() - began, processor_s() - used)
    finally:
        reader.close()

    assert "Signed in: Ann sub_" in reader.printed
    await asyncio.to_thread(write_times, times)

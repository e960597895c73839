"""The guide on testing: its program and its tests run as they are printed, as a user's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.guide_blocks import blocks_of
from tests.e2e.test_messages_guide import GUIDES, TIMEOUT_S, compare

pytestmark = pytest.mark.slow

GUIDE = GUIDES / "testing.md"

#: A user's configuration of pytest, without plugins of ours by name; whatever warns fails.
CONFIG = "[pytest]\nfilterwarnings = error\naddopts = -p no:asyncio -p no:cacheprovider\n"


def test_the_shop_is_tested_as_the_guide_says(tmp_path: Path) -> None:
    blocks = list(blocks_of(GUIDE))
    for block in blocks:
        if block.language == "python" and block.what:
            assert f"`{block.what}`" in block.before, f"line {block.line}: name {block.what} before"
            (tmp_path / block.what).write_text(block.code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(CONFIG)
    (wanted,) = [block.code for block in blocks if block.language == "text"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_shop.py"],
        cwd=tmp_path,
        # What a user has: no path of this repository.
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    compare(wanted, done.stdout)

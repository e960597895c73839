"""The guide of accounts, beside a running service, and the link that it prints, opened."""

import os
import re
from pathlib import Path

import httpx2
import pytest

from tests.e2e.guide_blocks import blocks_of, run_in_a_shell
from tests.e2e.test_messages_guide import GUIDES, TIMEOUT_S, compare
from tests.process import MSGSVC, Deployment

pytestmark = pytest.mark.slow

CONFIG = 'plugins = ["sandbox", "dashboard"]\n[channels.messenger_a]\nplugin = "sandbox"\n'


def test_the_guide_of_accounts_does_what_it_says(tmp_path: Path) -> None:
    blocks = [b for b in blocks_of(GUIDES / "accounts.md") if b.language in ("sh", "text")]
    deployment = Deployment(tmp_path)
    deployment.configure(CONFIG)
    environment = {
        **os.environ,
        "PATH": f"{MSGSVC.parent}:{os.environ['PATH']}",
        "MSGSVC_CONFIG": str(deployment.config),
    }
    with deployment.serving() as server:
        done = run_in_a_shell(blocks, tmp_path, environment, TIMEOUT_S)
        link = re.search(r"(/dashboard/link/\w+)", done.stdout)
        opened = httpx2.get(server.url + link[1]) if link else None

    assert done.returncode == 0, done.stdout[-4000:]
    for place, block in enumerate(blocks):
        if block.language == "text":
            printed = done.stdout.partition(f"== {place - 1}\n")[2].partition("\n== ")[0]
            compare(block.code, printed)
    assert opened is not None
    assert "Welcome, Ann Lee" in opened.text

"""The guide of billing, beside a running service with its own configuration."""

import json
import os
from pathlib import Path

import pytest

from tests.e2e.guide_blocks import blocks_of, run_in_a_shell
from tests.e2e.test_messages_guide import GUIDES, TIMEOUT_S, compare
from tests.process import MSGSVC, Deployment

pytestmark = pytest.mark.slow


def test_the_guide_of_billing_does_what_it_says(tmp_path: Path) -> None:
    blocks = list(blocks_of(GUIDES / "billing.md"))
    [configuration] = [block for block in blocks if block.language == "toml"]
    followed = [block for block in blocks if block.language in ("sh", "text")]
    deployment = Deployment(tmp_path)
    messengers = "".join(f'[channels.messenger_{one}]\nplugin = "sandbox"\n' for one in ("a", "b"))
    deployment.configure(f"{configuration.code}\n{messengers}")
    deployment.run("account", "create", "ann@shop.example", "--name", "Ann")
    project = json.loads(deployment.run("project", "create", "My site", "--json"))["project_id"]
    deployment.run("project", "give", project, "ann@shop.example")
    with deployment.serving() as server:
        done = run_in_a_shell(
            followed,
            tmp_path,
            {
                **os.environ,
                "PATH": f"{MSGSVC.parent}:{os.environ['PATH']}",
                "MSGSVC_CONFIG": str(deployment.config),
                "BASE": server.url,
                "KEY": json.loads(deployment.run("key", "create", project, "--json"))["key"],
            },
            TIMEOUT_S,
        )

    assert done.returncode == 0, done.stdout[-4000:]
    for place, block in enumerate(followed):
        if block.language == "text":
            printed = done.stdout.partition(f"== {place - 1}\n")[2].partition("\n== ")[0]
            compare(block.code, printed)

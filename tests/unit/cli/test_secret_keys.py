"""`msgsvc secrets`: which keys the database needs, and their rotation."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.config.settings import load_settings
from msgsvc_core.security import SecretBox
from msgsvc_core.service import Service

OLD = "kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU"
NEW = "Vb8Rm3Xz6Tq1Wc9Ny4Lk7Ph2Jd5Gf0Sa"
OLD_ID, NEW_ID = SecretBox([NEW, OLD]).key_ids[::-1]


def set_keys(config: Path, *keys: str) -> None:
    text = config.read_text("utf-8").splitlines()
    config.write_text("\n".join([f"secret_keys = {json.dumps(keys)}", *text[1:], ""]), "utf-8")


async def _fill(config: Path) -> None:
    """Starts the service, which writes the text that its keys are tried with, and adds three codes."""
    async with Service(load_settings(config, env={})) as service, service.db.transaction() as tx:
        for number in range(3):
            payload = f"a-start-payload-that-is-too-long-to-be-typed-{number}"
            await service.get(StartCodes).remember(tx, payload, 2**53)


def test_a_rotation_says_what_it_did_and_which_key_is_not_needed_any_more(
    run: Any, config: Path
) -> None:
    asyncio.run(_fill(config))
    set_keys(config, NEW, OLD)
    before = run("secrets", "status").stdout
    rotated = run("secrets", "rotate")
    set_keys(config, NEW)
    after = run("secrets", "status")

    assert f"key 1 ({NEW_ID})" in before
    assert f"key 2 ({OLD_ID})" in before
    assert rotated.exit_code == 0
    assert "core_start_codes.sealed: 3 re-encrypted" in rotated.stdout
    assert "core_key_canary.sealed: 1 re-encrypted" in rotated.stdout
    assert f"4 value(s) re-encrypted, 4 are under key 1 ({NEW_ID})" in rotated.stdout
    assert f"no value is under key 2 ({OLD_ID}) any more" in rotated.stdout
    assert after.exit_code == 0
    assert OLD_ID not in after.output
    assert OLD not in rotated.output + before


def test_a_rotation_waits_for_processes_that_could_not_read_it(run: Any, config: Path) -> None:
    asyncio.run(_fill(config))

    async def rotate_beside(*keys: str) -> Any:
        set_keys(config, *keys)
        async with Service(load_settings(config, env={})):
            set_keys(config, NEW, OLD)
            return await asyncio.to_thread(run, "secrets", "rotate")

    refused = asyncio.run(rotate_beside(OLD))
    rotated = asyncio.run(rotate_beside(OLD, NEW))

    assert refused.exit_code == 1
    assert f"running processes do not know key {NEW_ID}: " in refused.stderr
    assert f":{os.getpid()}\n-> restart them" in refused.stderr
    assert (rotated.exit_code, f"are under key 1 ({NEW_ID})" in rotated.stdout) == (0, True)


def test_a_rotation_without_a_key_that_is_needed_is_refused(run: Any, config: Path) -> None:
    asyncio.run(_fill(config))
    set_keys(config, NEW)
    status = run("secrets", "status")
    refused = run("secrets", "rotate")
    skipped = run("secrets", "rotate", "--skip-lost")
    set_keys(config, NEW, OLD)

    assert status.exit_code == 1
    assert f"missing ({OLD_ID})" in status.stdout
    assert refused.exit_code == 1
    assert "nothing was changed: a key is missing in secret_keys" in refused.stderr
    assert (
        "no key reads the 3 code(s) that people type to start a bot (core_start_codes), which need key"
        f" {OLD_ID}" in refused.stderr
    )
    assert skipped.exit_code == 0
    assert "core_start_codes.sealed: 3 value(s) are read by none of the keys" in skipped.stderr
    # They were left as they are: with the key they are there again.
    assert run("secrets", "rotate").exit_code == 0


def test_programs_read_the_counts_as_json(run: Any, config: Path) -> None:
    asyncio.run(_fill(config))
    set_keys(config, NEW, OLD)
    before = json.loads(run("secrets", "status", "--json").stdout)
    rotated = json.loads(run("secrets", "rotate", "--json").stdout)

    assert before["keys"] == [NEW_ID, OLD_ID]
    assert before["values"]["core_start_codes.sealed"] == {OLD_ID: 3}
    assert before["lost"] == []
    assert rotated["renewed"] == {"core_start_codes.sealed": 3, "core_key_canary.sealed": 1}
    assert rotated["values"]["core_start_codes.sealed"] == {NEW_ID: 3}
    assert rotated["unused_keys"] == [OLD_ID]
    assert rotated["unreadable"] == {}

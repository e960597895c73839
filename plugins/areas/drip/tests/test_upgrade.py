"""What people keep who were in a chain before its pauses were kept with it."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgsvc_core.db import Database, MigrationSource, migrate
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_devkit import FakeClock
from msgsvc_drip import plugin

from .conftest import HOUR, WITH_DRIP, Shop


async def test_who_was_held_by_a_pause_keeps_what_was_left(
    backend: Any, make_service: Any, make_tenant: Any, clock: FakeClock, tmp_path: Path
) -> None:
    url, before = await backend.empty(), tmp_path / "before"
    before.mkdir()
    shutil.copy(Path(plugin.__file__).parent / "migrations" / "0001_drip.py", before)
    built = await make_service(**WITH_DRIP, database_url=url, start=False)
    old = [
        MigrationSource("drip", before) if source.owner == "drip" else source
        for source in built.migrations
    ]
    await migrate(url, old)
    await _write(url, built.channels["messenger_a"].key, clock.now_ms())
    await migrate(url, built.migrations)
    service = await make_service(**WITH_DRIP, database_url=url)
    tenant = await make_tenant(service)
    secret = (await service.projects.create_key("prj_old", "test"))[1]
    tenant.client.headers["Authorization"] = f"Bearer {secret}"
    shop = Shop(service, replace(tenant, key=secret), clock)

    assert await shop.after(5 * HOUR) == ["going"]
    await shop.call("/drips/drp_held/resume")
    assert await shop.after(29 * 60) == ["going"]
    assert await shop.after(60) == ["going", "held"]
    await shop.call("/drips/enrollments/enr_both/resume")
    assert await shop.after(29 * 60) == ["going", "held"]
    assert await shop.after(60) == ["going", "held", "held"]


async def _write(url: str, bot: str, now_ms: int) -> None:
    """A chain that goes on, and a paused one with two people in it, one of them paused as well."""
    database = Database(url)
    await database.connect()
    key = {"project_id": "prj_old"}
    async with database.transaction() as tx:
        await tx.insert(
            "core_projects", {**key, "name": "Old", "status": "active", "created_at_ms": now_ms}
        )
        for number, (drip_id, status) in enumerate(
            (("drp_going", "active"), ("drp_held", "paused"))
        ):
            text = drip_id.removeprefix("drp_")
            await tx.insert(
                "drip_chains",
                {
                    **key,
                    "drip_id": drip_id,
                    "name": text,
                    "status": status,
                    "reentry": "never",
                    "trigger_on": "manual",
                    "trigger_value": "",
                    "version": 1,
                    "created_at_ms": now_ms,
                    "updated_at_ms": now_ms - number * MINUTE_MS,
                },
            )
            content = f'{{"steps":[{{"delay":{{"hours":1}},"message":{{"text":"{text}"}}}}]}}'
            await tx.insert(
                "drip_versions",
                {
                    **key,
                    "drip_id": drip_id,
                    "version": 1,
                    "content": content,
                    "created_at_ms": now_ms,
                },
            )
        due, left = {"due_at_ms": now_ms + MINUTE_MS}, {"left_ms": 30 * MINUTE_MS}
        await _enroll(tx, bot, now_ms, "going", "going", "active", **due)
        await _enroll(tx, bot, now_ms, "held", "held", "active", **left)
        await _enroll(tx, bot, now_ms, "both", "held", "paused", **left)
    await database.disconnect()


async def _enroll(
    tx: Any, bot: str, now_ms: int, who: str, chain: str, status: str, **when: int
) -> None:
    person = {"project_id": "prj_old", "subscriber_id": f"sub_{who}"}
    await tx.insert(
        "core_subscribers",
        {
            **person,
            "channel": "messenger_a",
            "bot": bot,
            "user_id": who,
            "chat_id": f"chat-{who}",
            "first_name": who,
            "lang": "en",
            "status": "active",
            "source": "api",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
        },
    )
    await tx.insert(
        "drip_enrollments",
        {
            **person,
            "enrollment_id": f"enr_{who}",
            "drip_id": f"drp_{chain}",
            "version": 1,
            "status": status,
            "next_step": 0,
            "created_at_ms": now_ms,
            **when,
        },
    )

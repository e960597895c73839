"""People for broadcasts, added by the database alone: so many that the API would take minutes."""

from msgsvc_core.service import Service

#: Rows of a statement.
STEP = 5000


async def add_audience(service: Service, project_id: str, count: int) -> str:
    """Adds the people that are not there yet; returns a tag that `count` of them carry."""
    tag = f"first-{count}"
    now_ms = service.clock.now_ms()
    async with service.db.read() as tx:
        known = await tx.fetch_val("SELECT COUNT(*) FROM core_subscribers WHERE source = 'form'")
    for start in range(known, count, STEP):
        rows = [
            {
                "project_id": project_id,
                "subscriber_id": f"sub_{number:09d}",
                "channel": "messenger_a",
                "bot": "messenger_a",
                "user_id": f"of-many-{number}",
                "chat_id": f"of-many-{number}",
                "first_name": "Ann",
                "lang": "en",
                "status": "active",
                "source": "form",
                "created_at_ms": now_ms,
                "last_seen_at_ms": now_ms,
            }
            for number in range(start, min(count, start + STEP))
        ]
        async with service.db.transaction() as tx:
            await tx.insert_many("core_subscribers", rows)
    async with service.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO core_tags (project_id, tag_id, name, created_at_ms) VALUES"
            " (:project_id, :tag, :tag, :now_ms) ON CONFLICT (project_id, name) DO NOTHING",
            {"project_id": project_id, "tag": tag, "now_ms": now_ms},
        )
        await tx.execute(
            "INSERT INTO core_subscriber_tags (project_id, subscriber_id, tag_id)"
            " SELECT project_id, subscriber_id, CAST(:tag AS text) FROM core_subscribers"
            " WHERE source = 'form' AND subscriber_id < :end"
            " ON CONFLICT (project_id, subscriber_id, tag_id) DO NOTHING",
            {"tag": tag, "end": f"sub_{count:09d}"},
        )
    return tag

"""The SQL of branding."""

import base64
from dataclasses import asdict

from msgsvc_core.db import Tx
from msgsvc_core.kernel.json import to_json
from msgsvc_core.projects.branding.logos import CheckedLogo
from msgsvc_core.projects.branding.models import Branding


async def find_branding(tx: Tx, project_id: str) -> Branding:
    return Branding.read(
        await tx.fetch_val(
            "SELECT branding FROM core_projects WHERE project_id = :project_id",
            {"project_id": project_id},
        )
    )


async def set_branding(tx: Tx, project_id: str, branding: Branding) -> None:
    await tx.execute(
        "UPDATE core_projects SET branding = :branding WHERE project_id = :project_id",
        {"project_id": project_id, "branding": to_json(asdict(branding))},
    )


async def insert_logo(
    tx: Tx, project_id: str, logo_id: str, logo: CheckedLogo, *, now_ms: int
) -> None:
    await tx.insert(
        "core_logos",
        {
            "project_id": project_id,
            "logo_id": logo_id,
            "media_type": logo.media_type,
            # Text, which both databases and copies between them keep alike.
            "content": base64.b64encode(logo.content).decode(),
            "created_at_ms": now_ms,
        },
    )


async def delete_logos(tx: Tx, project_id: str) -> None:
    await tx.execute(
        "DELETE FROM core_logos WHERE project_id = :project_id", {"project_id": project_id}
    )


async def find_public_logo(tx: Tx, logo_id: str) -> tuple[str, bytes] | None:
    """Media type and content. Of any project: pages of all of them show their logos to everybody."""
    row = await tx.fetch_one(
        "SELECT media_type, content FROM core_logos WHERE logo_id = :logo_id", {"logo_id": logo_id}
    )
    return None if row is None else (row["media_type"], base64.b64decode(row["content"]))

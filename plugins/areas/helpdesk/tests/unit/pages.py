"""A page of the dashboard that somebody has open."""

from zoneinfo import ZoneInfo

from msgsvc_core.dashboard import PageContext
from msgsvc_core.dashboard.access import Viewer
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.db import Tx
from msgsvc_core.members import Member
from msgsvc_core.members.models import Role
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.core import PROJECT


async def open_page(
    core: MemoryCore,
    tx: Tx,
    *,
    role: Role = "agent",
    member: Member | None = None,
    **query: str,
) -> PageContext:
    """By Mia's account, as this member if there is one."""
    return PageContext(
        viewer=Viewer("acc_mia", "mia@shop.example", "Mia", is_operator=False),
        project=await core.projects.get(tx, PROJECT),
        role=role,
        member=member,
        plan=None,
        lang="en",
        languages=("en", "ru"),
        timezone=ZoneInfo("UTC"),
        clock=core.clock,
        _=core.texts.into("en"),
        params={},
        query=query,
        form=PostedForm(),
        root="/dashboard",
        ip="127.0.0.1",
        optional_tx=tx,
    )

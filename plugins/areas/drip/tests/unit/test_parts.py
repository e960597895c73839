"""The plugin's objects, built from fakes."""

import pytest

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_drip.checks import DefinitionChecks


async def test_a_campaign_goes_by_permissions_that_the_project_has() -> None:
    core, tx = plugin_context(), FakeTx()
    checks = DefinitionChecks(
        permissions=core.permissions,
        templates=core.templates,
        channels=core.channels,
        messages=core.messages,
        routes=core.routes,
        settings=core.config,
    )
    await core.permissions.create(tx, PROJECT, CreatePermissionBody(key="news", title="News"))

    await checks.check_permission(tx, PROJECT, "news")
    with pytest.raises(ValidationFailed, match="permission: there is no permission 'ads'"):
        await checks.check_permission(tx, PROJECT, "ads")

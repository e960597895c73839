"""Changes of a project's branding."""

from collections.abc import Callable
from dataclasses import replace

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.projects.branding import store
from msgsvc_core.projects.branding.logos import check_logo
from msgsvc_core.projects.branding.models import Branding, Logo, UpdateBrandingBody


class ProjectBranding:
    """`service.projects.branding`.

    `check_name` refuses a name that is not shown to people; `on_changed` is called after the commit.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        max_bytes: int,
        check_name: Callable[[str, str], None],
        on_changed: Callable[[], None],
    ) -> None:
        self._clock = clock
        self.max_bytes = max_bytes
        self._check_name = check_name
        self._on_changed = on_changed

    async def get(self, tx: Tx, project_id: str) -> Branding:
        """The current branding; that of `Project` may be a second old."""
        return await store.find_branding(tx, project_id)

    async def update(self, tx: Tx, project_id: str, body: UpdateBrandingBody) -> Branding:
        """Changes the fields set in `body`. Raises `ValidationFailed`."""
        changed = {name: getattr(body, name) for name in body.model_fields_set}
        if changed.get("sender_name") is not None:
            self._check_name("sender_name", changed["sender_name"])
        if changed.get("accent") is not None:
            changed["accent"] = changed["accent"].lower()
        known = await self._locked(tx, project_id)
        return await self._set(tx, project_id, replace(known, **changed))

    async def set_logo(self, tx: Tx, project_id: str, content: bytes) -> Branding:
        """Replaces the logo. Raises `LogoRefused`."""
        logo = check_logo(content, max_bytes=self.max_bytes)
        known = await self._locked(tx, project_id)
        await store.delete_logos(tx, project_id)
        logo_id = new_id("lgo")
        await store.insert_logo(tx, project_id, logo_id, logo, now_ms=self._clock.now_ms())
        shown = Logo(logo_id, logo.width, logo.height)
        return await self._set(tx, project_id, replace(known, logo=shown))

    async def remove_logo(self, tx: Tx, project_id: str) -> Branding:
        """Does nothing without a logo."""
        known = await self._locked(tx, project_id)
        await store.delete_logos(tx, project_id)
        return await self._set(tx, project_id, replace(known, logo=None))

    async def _locked(self, tx: Tx, project_id: str) -> Branding:
        await tx.lock(f"branding of {project_id}")
        return await store.find_branding(tx, project_id)

    async def _set(self, tx: Tx, project_id: str, branding: Branding) -> Branding:
        await store.set_branding(tx, project_id, branding)
        tx.on_commit(self._on_changed)
        return branding

"""Projects and API keys in memory."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import InvalidApiKey, NotFound, Unauthorized
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.projects.models import ApiKey, ListedKey, Project, ProjectBody, ProjectTexts
from msgsvc_core.projects.service import Projects, check_expiry, check_name, check_text
from msgsvc_core.security.api_keys import new_api_key
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.database import FakeDatabase, FakeTx

#: The project that every test has.
PROJECT = "prj_1"


class FakeProjects(Projects):
    """Contains the project `prj_1`, named Shop, from the start."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(FakeDatabase(), clock or FakeClock())
        self.by_id: dict[str, Project] = {}
        #: The account that owns a project; other projects have no owner.
        self.owners: dict[str, str] = {}
        self._texts: dict[str, ProjectTexts] = {}
        #: Listed keys by their secret.
        self._listed: dict[str, ListedKey] = {}
        self._put(Project(PROJECT, "Shop", "active", self._clock.now_ms()))

    async def create(self, name: str) -> Project:
        return await self.add(FakeTx(), name)

    async def add(self, tx: Tx, name: str) -> Project:
        check_name(name)
        return self._put(Project(new_id("prj"), name, "active", self._clock.now_ms()))

    async def list(self) -> list[Project]:
        return [*self.by_id.values()]

    async def list_all(self, tx: Tx) -> Sequence[Project]:
        return [*self.by_id.values()]

    async def get(self, tx: Tx, project_id: str) -> Project:
        if project_id not in self.by_id:
            raise NotFound("there is no project {project_id!r}", project_id=project_id)
        return self.by_id[project_id]

    async def get_many(self, tx: Tx, project_ids: Collection[str]) -> dict[str, Project]:
        return {each: self.by_id[each] for each in project_ids if each in self.by_id}

    async def find_owners(self, tx: Tx, project_ids: Collection[str]) -> dict[str, str]:
        return {each: self.owners[each] for each in project_ids if each in self.owners}

    async def find_disabled(self, tx: Tx, project_ids: Collection[str] | None = None) -> set[str]:
        disabled = {each.project_id for each in self.by_id.values() if each.status != "active"}
        return disabled if project_ids is None else disabled & set(project_ids)

    async def list_newest(
        self, tx: Tx, after: str | None, limit: int, prefix: str = ""
    ) -> Sequence[tuple[Project, str | None]]:
        found = [
            (project, self.owners.get(project_id))
            for project_id, project in sorted(self.by_id.items(), reverse=True)
            if (after is None or project_id < after)
            and (project_id.startswith(prefix) or project.name.lower().startswith(prefix.lower()))
        ]
        return found[:limit]

    async def owner_of(self, tx: Tx, project_id: str) -> str | None:
        return self.owners.get(project_id)

    async def set_owner(self, tx: Tx, project_id: str, account_id: str | None) -> None:
        await self.get(tx, project_id)
        self.owners.pop(project_id, None)
        if account_id is not None:
            self.owners[project_id] = account_id

    async def count_owned(self, tx: Tx, account_id: str) -> int:
        return list(self.owners.values()).count(account_id)

    async def texts(self, tx: Tx, project_id: str) -> ProjectTexts:
        return self._texts.get(project_id, ProjectTexts())

    async def update(self, tx: Tx, project_id: str, body: ProjectBody) -> None:
        given = {name: getattr(body, name) for name in body.model_fields_set}
        if name := given.pop("name", None):
            check_name(name)
            self._put(replace(await self.get(tx, project_id), name=name))
        if (is_on := given.pop("link_tracking", None)) is not None:
            self._put(replace(await self.get(tx, project_id), link_tracking=is_on))
        for field, text in given.items():
            check_text(field, text)
        self._texts[project_id] = replace(await self.texts(tx, project_id), **given)

    async def set_active(self, project_id: str, active: bool) -> None:
        await self.switch(FakeTx(), project_id, active=active)

    async def switch(self, tx: Tx, project_id: str, *, active: bool) -> None:
        project = await self.get(tx, project_id)
        self._put(replace(project, status="active" if active else "disabled"))

    async def create_key(
        self,
        project_id: str,
        name: str,
        scopes: Sequence[str] = ("*",),
        *,
        expires_at_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        return await self.add_key(FakeTx(), project_id, name, scopes, expires_at_ms=expires_at_ms)

    async def add_key(
        self,
        tx: Tx,
        project_id: str,
        name: str,
        scopes: Sequence[str] = ("*",),
        *,
        expires_at_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        check_name(name)
        check_expiry(expires_at_ms, self._clock.now_ms())
        await self.get(tx, project_id)
        made = new_api_key()
        key = ApiKey(new_id("key"), project_id, name, made.prefix, tuple(scopes), expires_at_ms)
        self._listed[made.secret] = ListedKey(key, self._clock.now_ms(), None, None)
        return key, made.secret

    async def list_keys(self, project_id: str) -> Sequence[ListedKey]:
        return await self.keys_of(FakeTx(), project_id)

    async def keys_of(self, tx: Tx, project_id: str) -> Sequence[ListedKey]:
        await self.get(tx, project_id)
        return [each for each in self._listed.values() if each.key.project_id == project_id]

    async def find_expiring(self, tx: Tx) -> Sequence[ListedKey]:
        now_ms = self._clock.now_ms()
        soon = [
            each
            for each in self._listed.values()
            if each.expires_soon(now_ms) and self.by_id[each.key.project_id].status == "active"
        ]
        return sorted(soon, key=lambda each: each.key.expires_at_ms or 0)

    async def revoke_key(self, project_id: str, key_id: str) -> None:
        await self.revoke_key_in(FakeTx(), project_id, key_id)

    async def revoke_key_in(self, tx: Tx, project_id: str, key_id: str) -> None:
        for secret, listed in self._listed.items():
            in_use = listed.revoked_at_ms is None
            if in_use and (listed.key.project_id, listed.key.key_id) == (project_id, key_id):
                self._listed[secret] = replace(listed, revoked_at_ms=self._clock.now_ms())
                return
        raise NotFound("the project has no key {key_id!r} in use", key_id=key_id)

    async def authenticate(self, secret: str | None) -> tuple[Project, ApiKey]:
        if not secret:
            raise Unauthorized("an API key is needed")
        listed = self._listed.get(secret)
        if listed is None or listed.revoked_at_ms is not None:
            raise InvalidApiKey("the API key is unknown or revoked")
        if listed.key.has_expired(self._clock.now_ms()):
            raise InvalidApiKey("the API key has expired")
        return self.by_id[listed.key.project_id], listed.key

    def _put(self, project: Project) -> Project:
        self.by_id[project.project_id] = project
        return project

"""Projects and API keys."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from msgsvc_core.content.substitution import TemplateError, names_in, plain_template
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import (
    InvalidApiKey,
    NotFound,
    ProjectInactive,
    Unauthorized,
    ValidationFailed,
)
from msgsvc_core.kernel.i18n import Localized
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.visible_text import has_visible
from msgsvc_core.projects import store
from msgsvc_core.projects.branding.service import ProjectBranding
from msgsvc_core.projects.key_uses import KeyUses
from msgsvc_core.projects.models import (
    EXPIRES_SOON_MS,
    TEXT_VARIABLES,
    ApiKey,
    ListedKey,
    Project,
    ProjectTexts,
    UpdateProjectBody,
)
from msgsvc_core.security.api_keys import digest, looks_like_key, new_api_key

#: Milliseconds for which a valid key is cached. If another process revokes the key or disables the project,
#: this process accepts it for as long.
KNOWN_FOR_MS = 1000

#: Maximum number of cached keys.
MOST_KNOWN = 10_000

#: Maximum characters of the name of a key or a project, which is shown within a line of a message.
MAX_NAME_LENGTH = 64


class Projects:
    """`service.projects`."""

    def __init__(self, db: Database, clock: Clock, *, logo_bytes: int = 65536) -> None:
        self._db = db
        self._clock = clock
        self.key_uses = KeyUses(db, clock)
        self._keys = DataLoader(db, store.find_keys)
        #: The cached keys: the time of the lookup, in Unix milliseconds, and its result; by the key's digest.
        self._known_keys: dict[str, tuple[int, tuple[Project, ApiKey]]] = {}
        self.branding = ProjectBranding(
            clock=clock,
            max_bytes=logo_bytes,
            check_name=lambda field, name: check_name(name, field=field),
            on_changed=self._clear_cache,
        )
        #: Increases whenever the cache may be stale.
        self._epoch = 0

    async def create(self, name: str) -> Project:
        """Creates an active project.

        Raises `ValidationFailed` unless the name has 1-64 printable characters: it is shown in messages,
        where a newline or a change of text direction could change their meaning.
        """
        async with self._db.transaction() as tx:
            return await self.add(tx, name)

    async def add(self, tx: Tx, name: str) -> Project:
        """Like `create`, in the caller's transaction."""
        check_name(name)
        project = Project(new_id("prj"), name, "active", self._clock.now_ms())
        await store.insert_project(tx, project)
        return project

    async def list(self) -> list[Project]:
        """All projects, oldest first."""
        async with self._db.read() as tx:
            return await store.list_projects(tx)

    async def list_all(self, tx: Tx) -> Sequence[Project]:
        """All projects, oldest first, in the caller's transaction."""
        return await store.list_projects(tx)

    async def get(self, tx: Tx, project_id: str) -> Project:
        """Raises `NotFound`."""
        project = await store.find_project(tx, project_id)
        if project is None:
            raise NotFound("there is no project {project_id!r}", project_id=project_id)
        return project

    async def list_newest(
        self, tx: Tx, after: str | None, limit: int, prefix: str = ""
    ) -> Sequence[tuple[Project, str | None]]:
        """Projects with the account that owns each, newest first, from before the project `after`, whose
        name or id begins with `prefix`."""
        return await store.list_newest(tx, after, limit, prefix)

    async def owner_of(self, tx: Tx, project_id: str) -> str | None:
        """The id of the account that owns a project; None if it belongs to the operator.

        Accounts are a plugin's (hook `register_accounts`); the core stores their ids.
        """
        return await store.find_owner(tx, project_id)

    async def set_owner(self, tx: Tx, project_id: str, account_id: str | None) -> None:
        """Makes an account the owner of a project. Raises `NotFound`."""
        if not await store.set_owner(tx, project_id, account_id):
            raise NotFound("there is no project {project_id!r}", project_id=project_id)

    async def find_owners(self, tx: Tx, project_ids: Collection[str]) -> dict[str, str]:
        """Account ids by project; projects without an account are left out."""
        return await store.find_owners(tx, sorted(set(project_ids))) if project_ids else {}

    async def count_owned(self, tx: Tx, account_id: str) -> int:
        """The number of projects that an account owns."""
        return await store.count_owned(tx, account_id)

    async def get_many(self, tx: Tx, project_ids: Collection[str]) -> dict[str, Project]:
        """Existing projects by id."""
        return await store.get_many(tx, sorted(set(project_ids))) if project_ids else {}

    async def find_disabled(self, tx: Tx, project_ids: Collection[str] | None = None) -> set[str]:
        """Ids of the disabled projects, among all or `project_ids`."""
        return await store.find_disabled(
            tx, None if project_ids is None else sorted(set(project_ids))
        )

    async def texts(self, tx: Tx, project_id: str) -> ProjectTexts:
        """The project's texts for system messages."""
        return await store.find_texts(tx, project_id)

    async def update(self, tx: Tx, project_id: str, body: UpdateProjectBody) -> None:
        """Changes the fields set in `body`. Raises `ValidationFailed` as `create` does."""
        given = body.model_fields_set
        if body.name is not None:
            check_name(body.name)
            await store.set_name(tx, project_id, body.name)
            tx.on_commit(self._clear_cache)
        if body.link_tracking is not None:
            await store.set_link_tracking(tx, project_id, is_on=body.link_tracking)
            tx.on_commit(self._clear_cache)
        if texts := {name: getattr(body, name) for name in given & {"welcome", "farewell"}}:
            for field, text in texts.items():
                check_text(field, text)
            # Locked, so that the other fields are not changed concurrently.
            await tx.lock(f"texts of {project_id}")
            known = await store.find_texts(tx, project_id)
            await store.set_texts(tx, project_id, replace(known, **texts))

    async def set_active(self, project_id: str, active: bool) -> None:
        """Enables or disables a project; requests of a disabled one get 403.

        In other processes this takes effect within a second.
        """
        async with self._db.transaction() as tx:
            await self.switch(tx, project_id, active=active)

    async def switch(self, tx: Tx, project_id: str, *, active: bool) -> None:
        """`set_active` in the caller's transaction."""
        if not await store.set_status(tx, project_id, "active" if active else "disabled"):
            raise NotFound("there is no project {project_id!r}", project_id=project_id)
        tx.on_commit(self._clear_cache)

    async def create_key(
        self,
        project_id: str,
        name: str,
        scopes: Sequence[str] = ("*",),
        *,
        expires_at_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        """Creates a key; returns it with its secret, which can't be read again.

        From `expires_at_ms` on, in Unix milliseconds, it is refused; None for never. Raises `NotFound`,
        and `ValidationFailed` unless the name has 1-64 printable characters and the expiry lies ahead.
        """
        async with self._db.transaction() as tx:
            return await self.add_key(tx, project_id, name, scopes, expires_at_ms=expires_at_ms)

    async def add_key(
        self,
        tx: Tx,
        project_id: str,
        name: str,
        scopes: Sequence[str] = ("*",),
        *,
        expires_at_ms: int | None = None,
    ) -> tuple[ApiKey, str]:
        """`create_key` in the caller's transaction."""
        check_name(name)
        now_ms = self._clock.now_ms()
        check_expiry(expires_at_ms, now_ms)
        made = new_api_key()
        key = ApiKey(new_id("key"), project_id, name, made.prefix, tuple(scopes), expires_at_ms)
        await self.get(tx, project_id)
        await store.insert_key(tx, key, made.digest, now_ms)
        return key, made.secret

    async def list_keys(self, project_id: str) -> Sequence[ListedKey]:
        """A project's keys, including revoked and expired ones, oldest first. Raises `NotFound`."""
        async with self._db.read() as tx:
            return await self.keys_of(tx, project_id)

    async def keys_of(self, tx: Tx, project_id: str) -> Sequence[ListedKey]:
        """`list_keys` on the caller's connection."""
        await self.get(tx, project_id)
        return await store.list_keys(tx, project_id)

    async def find_expiring(self, tx: Tx) -> Sequence[ListedKey]:
        """Keys of all active projects that expire within `EXPIRES_SOON_MS`, soonest first."""
        now_ms = self._clock.now_ms()
        return await store.find_expiring(tx, now_ms, now_ms + EXPIRES_SOON_MS)

    async def revoke_key(self, project_id: str, key_id: str) -> None:
        """Revokes a key; other processes accept it for up to a second. Raises `NotFound`."""
        async with self._db.transaction() as tx:
            await self.revoke_key_in(tx, project_id, key_id)

    async def revoke_key_in(self, tx: Tx, project_id: str, key_id: str) -> None:
        """`revoke_key` in the caller's transaction."""
        if not await store.revoke_key(tx, project_id, key_id, self._clock.now_ms()):
            raise NotFound("the project has no key {key_id!r} in use", key_id=key_id)
        tx.on_commit(self._clear_cache)

    async def authenticate(self, secret: str | None) -> tuple[Project, ApiKey]:
        """The project of an API key, which may be disabled: see `check_active`.

        Raises `Unauthorized` without a key, `InvalidApiKey` for one that is unknown or has expired.
        """
        if not secret:
            raise Unauthorized("an API key is needed: Authorization: Bearer msk_...")
        found = await self._find_key(secret) if looks_like_key(secret) else None
        if found is None:
            raise InvalidApiKey("the API key is unknown or revoked")
        project, key = found
        # Asked at every use and not of the cache, so a key expires on the millisecond in each process.
        if key.expires_at_ms is not None and key.has_expired(self._clock.now_ms()):
            raise InvalidApiKey("the API key expired at {time}", time=to_rfc3339(key.expires_at_ms))
        if project.status == "active":
            self.key_uses.record(key)
        return project, key

    @staticmethod
    def check_active(project: Project) -> None:
        """Raises `ProjectInactive` if it is disabled."""
        if project.status != "active":
            raise ProjectInactive("the project {name!r} is disabled", name=project.name)

    async def _find_key(self, secret: str) -> tuple[Project, ApiKey] | None:
        hashed = digest(secret)
        now_ms = self._clock.now_ms()
        known = self._known_keys.get(hashed)
        if known is not None and 0 <= now_ms - known[0] < KNOWN_FOR_MS:
            return known[1]
        epoch = self._epoch
        found = await self._keys.get(hashed)
        # The key may have been revoked during the lookup.
        if found is not None and epoch == self._epoch:
            if len(self._known_keys) >= MOST_KNOWN:
                self._known_keys.clear()
            self._known_keys[hashed] = (now_ms, found)
        return found

    def _clear_cache(self) -> None:
        self._known_keys.clear()
        self._epoch += 1


def check_text(field: str, text: Localized | None) -> None:
    """Raises `ValidationFailed` for a text with an unknown variable."""
    texts = {field: text} if isinstance(text, str) else dict(text or {})
    for lang, each in texts.items():
        where = field if lang == field else f"{field}.{lang}"
        try:
            names = names_in([plain_template(each)])
        except TemplateError as error:
            raise ValidationFailed.because(error, field=where) from None
        for name in names:
            if name not in TEXT_VARIABLES:
                known = " and ".join(TEXT_VARIABLES)
                raise ValidationFailed(
                    "there is no {name!r} here, but {choices}",
                    field=where,
                    name=name,
                    choices=known,
                )


def check_expiry(expires_at_ms: int | None, now_ms: int) -> None:
    """Raises `ValidationFailed` for the expiry of a new key unless it lies ahead."""
    if expires_at_ms is not None and expires_at_ms <= now_ms:
        raise ValidationFailed("must be in the future", field="expires_at")


def check_name(name: str, *, field: str = "name") -> None:
    """Raises `ValidationFailed` for an invalid name of a project, a sender or a key."""
    is_plain = name.isprintable() and name == name.strip() and has_visible(name)
    if not (0 < len(name) <= MAX_NAME_LENGTH and is_plain):
        raise ValidationFailed(
            "must be 1-{limit} printable characters without spaces at its ends",
            field=field,
            limit=MAX_NAME_LENGTH,
        )

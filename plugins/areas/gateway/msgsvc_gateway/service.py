"""Gateways: who may send through them, and on which channels."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id, new_token
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import SecretBox, digest
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.signing import is_standard_secret
from msgsvc_gateway import store
from msgsvc_gateway.models import (
    SIGNING,
    CreateGatewayBody,
    Gateway,
    GatewayMessage,
    GatewayPaths,
    Sender,
    UpdateGatewayBody,
)
from msgsvc_gateway.senders import SUPABASE_VERSION
from msgsvc_gateway.settings import GatewaySettings

SIGNING_KEYS = SealedColumn(
    table="gateway_gateways",
    column="signing_key",
    key=("project_id", "gateway_id"),
    bound_to=("project_id", "gateway_id"),
    holds="{count} key(s) with which ZITADEL or Supabase signs its requests",
    if_lost="requests to these gateways are refused; enter the keys again",
)

#: For how long the URL before the last is accepted.
OLD_SECRET_MS = DAY_MS


class Gateways:
    """The plugin's in-process API: `service.get(Gateways)`."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        channels: Channels,
        settings: GatewaySettings,
        base_url: str,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._channels = channels
        self._settings = settings
        self._base_url = base_url

    async def create(self, tx: Tx, project_id: str, body: CreateGatewayBody) -> tuple[Gateway, str]:
        """A new gateway and its URL, which can't be read again.

        Raises `ValidationFailed` for an unknown channel, or one that is named twice, for a signing key of a
        sender that does not sign, and for paths of one whose body is known; `Conflict` at the limit.
        """
        self._check(project_id, body.channels)
        signing_key = _read_key(body.sender, body.signing_key)
        paths = _read_paths(body.sender, body.paths)
        await tx.lock(f"gateways of {project_id}")
        limit = self._settings.gateways_per_project
        if await store.count(tx, project_id) >= limit:
            raise Conflict("a project has at most {limit} gateways; delete one first", limit=limit)
        gateway_id, now_ms = new_id("gtw"), self._clock.now_ms()
        gateway = Gateway(
            project_id=project_id,
            gateway_id=gateway_id,
            name=body.name,
            sender=body.sender,
            channels=tuple(body.channels),
            signing_key=self._seal(project_id, gateway_id, signing_key),
            paths=paths,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        secret = new_token()
        await store.insert(tx, gateway, digest(secret))
        return gateway, self._url(gateway, secret)

    async def get(self, tx: Tx, project_id: str, gateway_id: str) -> Gateway:
        """Raises `NotFound`, for another project's id as well."""
        return _known(await store.find(tx, project_id, gateway_id), gateway_id)

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Gateway]:
        """Newest first; one more than `query.limit` where there is."""
        return await store.list_page(tx, project_id, query.begin("gtw"), query.fetch_limit)

    async def messages(
        self, tx: Tx, project_id: str, gateway_id: str, query: PageQuery
    ) -> list[GatewayMessage]:
        """Newest first; one more than `query.limit` where there is. Raises `NotFound`."""
        await self.get(tx, project_id, gateway_id)
        return await store.list_messages(
            tx, project_id, gateway_id, query.begin("gwm"), query.fetch_limit
        )

    async def last_messages(
        self, tx: Tx, project_id: str, gateway_ids: Sequence[str]
    ) -> dict[str, GatewayMessage]:
        """The last message of each gateway that has one, by the gateway's id."""
        found = await store.list_last(tx, project_id, gateway_ids)
        return {message.gateway_id: message for message in found}

    async def update(
        self, tx: Tx, project_id: str, gateway_id: str, body: UpdateGatewayBody
    ) -> Gateway:
        """The gateway after the change. Raises `NotFound`, and `ValidationFailed` as `create`."""
        changes: dict[str, Any] = body.model_dump(include=body.model_fields_set)
        if "channels" in changes:
            self._check(project_id, changes["channels"])
            changes["channels"] = to_json(changes["channels"])
        sender = (await self.get(tx, project_id, gateway_id)).sender
        if "signing_key" in changes:
            key = _read_key(sender, body.signing_key)
            changes["signing_key"] = self._seal(project_id, gateway_id, key)
        if "paths" in changes:
            changes["paths"] = to_json(_read_paths(sender, body.paths))
        now_ms = self._clock.now_ms()
        return _known(await store.update(tx, project_id, gateway_id, changes, now_ms), gateway_id)

    async def rotate_url(
        self, tx: Tx, project_id: str, gateway_id: str
    ) -> tuple[Gateway, str, int]:
        """The gateway, its new URL, and the Unix milliseconds until which the one before is accepted.

        Raises `NotFound`.
        """
        secret, now_ms = new_token(), self._clock.now_ms()
        until_ms = now_ms + OLD_SECRET_MS
        changed = await store.replace_secret(
            tx, project_id, gateway_id, digest(secret), old_until_ms=until_ms, now_ms=now_ms
        )
        gateway = _known(changed, gateway_id)
        return gateway, self._url(gateway, secret), until_ms

    async def delete(self, tx: Tx, project_id: str, gateway_id: str) -> None:
        """Deletes a gateway and its messages. What a bot has queued may still go out for some minutes; no
        further channel is tried. Raises `NotFound`."""
        if not await store.delete(tx, project_id, gateway_id):
            raise _not_found(gateway_id)

    async def open(self, tx: Tx, sender: Sender, secret: str) -> Gateway:
        """The gateway whose URL has the secret. Raises `NotFound`."""
        found = await store.find_by_secret(tx, sender, digest(secret), now_ms=self._clock.now_ms())
        if found is None:
            raise NotFound("there is no gateway with this URL")
        return found

    @property
    def most(self) -> int:
        """Gateways that a project may have."""
        return self._settings.gateways_per_project

    def address(self, gateway: Gateway) -> str:
        """The gateway's URL without the secret at its end."""
        return f"{self._base_url}/compat/{gateway.sender}"

    def signing_key(self, gateway: Gateway) -> str | None:
        """The key that a gateway's requests are signed with, if there is one. Raises `DecryptionError`."""
        if gateway.signing_key is None:
            return None
        row = (SIGNING_KEYS.name, gateway.project_id, gateway.gateway_id)
        return self._secrets.decrypt(gateway.signing_key, row)

    def _check(self, project_id: str, channels: list[str]) -> None:
        for position, name in enumerate(channels):
            if name in channels[:position]:
                raise ValidationFailed("{name!r} is named twice", field="channels", name=name)
            self._channels.check_name(project_id, name)

    def _seal(self, project_id: str, gateway_id: str, key: str | None) -> str | None:
        if key is None:
            return None
        return self._secrets.encrypt(key, (SIGNING_KEYS.name, project_id, gateway_id))

    def _url(self, gateway: Gateway, secret: str) -> str:
        return f"{self.address(gateway)}/{secret}"


def _read_key(sender: Sender, key: str | None) -> str | None:
    """The key as it is stored: Supabase's without the version before it."""
    if key is None:
        return None
    if sender not in SIGNING:
        raise ValidationFailed("only ZITADEL and Supabase sign their requests", field="signing_key")
    if sender != "supabase":
        return key
    secret = key.strip().removeprefix(SUPABASE_VERSION)
    if not is_standard_secret(secret):
        raise ValidationFailed("must be a secret such as v1,whsec_...", field="signing_key")
    return secret


def _read_paths(sender: Sender, paths: GatewayPaths | None) -> dict[str, str]:
    found = {} if paths is None else paths.model_dump(exclude_none=True)
    if found and sender != "generic":
        raise ValidationFailed("only a generic gateway has paths", field="paths")
    return found


def _known(gateway: Gateway | None, gateway_id: str) -> Gateway:
    if gateway is None:
        raise _not_found(gateway_id)
    return gateway


def _not_found(gateway_id: str) -> NotFound:
    return NotFound("there is no gateway {gateway_id!r}", gateway_id=gateway_id)

"""Takes in one row of a file: what it says is checked, and a person is added or completed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import ApiError, Conflict, InvalidValue, ValidationFailed
from msgsvc_core.kernel.i18n import canonical_tag
from msgsvc_core.kernel.json import from_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.imports.models import (
    ImportNote,
    ImportOptions,
    ImportRow,
    Outcome,
    PeopleImport,
)
from msgsvc_core.subscribers.imports.parsing import MOST_CELL, NOT_UTF_8, TOO_LONG, UNREADABLE
from msgsvc_core.subscribers.models import (
    GivenFirstName,
    PermissionKey,
    Subscriber,
    TagName,
    UpdateSubscriberBody,
)
from msgsvc_core.subscribers.people.models import Consent
from msgsvc_core.subscribers.service import Subscribers, check_external_id
from msgsvc_core.subscribers.subscribing import Subscribing, lock_external_id
from msgsvc_core.subscribers.tags.service import Tags

#: What a column `consent` may say.
_CONSENT: dict[str, Consent] = {
    **dict.fromkeys(("subscribed", "active", "true", "yes", "1"), "subscribed"),
    **dict.fromkeys(("unsubscribed", "blocked", "false", "no", "0"), "unsubscribed"),
}


#: Names in one cell: more than a subscriber can have. They are locked before a row is looked at.
MOST_NAMES = 200


class _RowBody(RequestModel):
    """The cells of a row that other requests take too."""

    first_name: GivenFirstName = ""
    tags: list[TagName] = Field(default=[])
    permissions: list[PermissionKey] = Field(default=[])
    attributes: dict[str, Any] = Field(default={})


@value_object
class _Person:
    """What a row says. `consent` is None if it does not say so itself."""

    channel: Channel
    address: str
    external_id: str | None
    lang: str | None
    consent: Consent | None
    body: _RowBody


class _Undo(Exception):
    """Ends a savepoint whose changes were only made to see whether they can be made."""


class RowImporter:
    """Takes in slices of rows. Each row is taken in as a whole or refused."""

    def __init__(
        self,
        *,
        channels: Channels,
        subscribers: Subscribers,
        subscribing: Subscribing,
        tags: Tags,
    ) -> None:
        self._channels = channels
        self._subscribers = subscribers
        self._subscribing = subscribing
        self._tags = tags

    def check_channel(self, project_id: str, name: str) -> None:
        """Raises `ValidationFailed` if the project does not have a channel of this name."""
        self._channels.check_name(project_id, name)

    async def take_in(
        self, tx: Tx, work: PeopleImport, rows: Sequence[ImportRow]
    ) -> tuple[dict[str, int], list[ImportNote]]:
        """How many rows have each outcome, and what is to be reported of them. Of a dry run nothing stays."""
        if not work.dry_run:
            return await self._take_in(tx, work, rows)
        outcome: tuple[dict[str, int], list[ImportNote]] = {}, []
        try:
            async with tx.savepoint():
                outcome = await self._take_in(tx, work, rows)
                raise _Undo
        except _Undo:
            return outcome

    async def _take_in(
        self, tx: Tx, work: PeopleImport, rows: Sequence[ImportRow]
    ) -> tuple[dict[str, int], list[ImportNote]]:
        await self._lock(tx, work.project_id, rows)
        counts: Counter[str] = Counter()
        notes: list[ImportNote] = []
        for row in rows:
            try:
                async with tx.savepoint():
                    done, said = await self._take_in_one(tx, work, row)
            except ApiError as error:
                done, said = "refused", [("refused", str(error))]
            counts[done] += 1
            counts["must_start"] += sum(outcome == "must_start" for outcome, _ in said)
            notes += [
                ImportNote(line=row.line, outcome=outcome, reason=reason)
                for outcome, reason in said
            ]
        return dict(counts), notes

    async def _lock(self, tx: Tx, project_id: str, rows: Sequence[ImportRow]) -> None:
        """Locks what comes before subscribers in the order of others: tags, then ids. Rows with a null
        character are refused one by one."""
        rows = [row for row in rows if not any("\0" in cell for cell in row.cells.values())]
        cells = (row.cells.get("tags", "") for row in rows)
        names = {name for cell in cells if _is_short(cell) for name in _split(cell)}
        existing = sorted(names)
        if existing:
            await self._tags.lock_missing(tx, project_id, existing)
        ids = {row.cells["external_id"] for row in rows if "external_id" in row.cells}
        for external_id in sorted(ids):
            await lock_external_id(tx, project_id, external_id)

    async def _take_in_one(
        self, tx: Tx, work: PeopleImport, row: ImportRow
    ) -> tuple[str, list[tuple[Outcome, str]]]:
        person = self._read(work.project_id, work.options, row)
        known = await self._subscribers.find_by_user(
            tx, work.project_id, person.channel.name, person.address
        )
        if known is not None:
            return await self._complete(tx, known, person, work.options)
        return await self._add(tx, work.project_id, person, work.options)

    async def _add(
        self, tx: Tx, project_id: str, person: _Person, options: ImportOptions
    ) -> tuple[str, list[tuple[Outcome, str]]]:
        channel, body = person.channel, person.body
        reached = channel.capabilities.addresses or (
            # Of a shared bot, nobody can say who has started it for their project.
            options.same_bot and channel.identity.project_id == project_id
        )
        consent = person.consent or options.consent
        added, _ = await self._subscribing.register(
            tx,
            project_id,
            channel,
            person.address,
            source="api",
            status="active" if consent == "subscribed" and reached else "unsubscribed",
            first_name=body.first_name,
            lang=person.lang,
        )
        details: dict[str, Any] = {
            "external_id": person.external_id,
            "tags": body.tags,
            "attributes": body.attributes,
        }
        added = await self._change(tx, added, details)
        if added.status == "active":
            await self._subscribing.announce(tx, added)
        for key in dict.fromkeys(body.permissions):
            await self._subscribers.set_permission(tx, project_id, added.subscriber_id, key, True)
        if reached:
            return "added", []
        return "added", [
            ("must_start", "known; a bot can write only to people who have started it: send a link")
        ]

    async def _complete(
        self, tx: Tx, known: Subscriber, person: _Person, options: ImportOptions
    ) -> tuple[str, list[tuple[Outcome, str]]]:
        """Adds what is missing. What the person decides, as messages and their language, stays."""
        if person.external_id is not None and known.external_id not in {None, person.external_id}:
            raise Conflict(
                "{subscriber_id} has this address, and another external_id",
                field="external_id",
                subscriber_id=known.subscriber_id,
            )
        body, details = person.body, dict[str, Any]()
        if known.external_id is None and person.external_id is not None:
            details["external_id"] = person.external_id
        if not set(body.tags) <= set(known.tags):
            details["tags"] = [*known.tags, *(tag for tag in body.tags if tag not in known.tags)]
        before = known.attributes or {}
        if {**before, **body.attributes} != before:
            details["attributes"] = {**before, **body.attributes}
        await self._change(tx, known, details)
        notes: list[tuple[Outcome, str]] = []
        consent = person.consent or options.consent
        if consent == "subscribed" and known.status != "active":
            notes.append(("consent_kept", f"is {known.status}: an import subscribes nobody again"))
        elif person.consent == "unsubscribed" and known.status == "active":
            notes.append(("consent_kept", "is active: an import unsubscribes nobody"))
        return ("updated" if details else "unchanged"), notes

    async def _change(self, tx: Tx, subscriber: Subscriber, details: dict[str, Any]) -> Subscriber:
        given = {name: value for name, value in details.items() if value}
        if not given:
            return subscriber
        body = UpdateSubscriberBody.model_validate(given)
        return await self._subscribers.change(
            tx, subscriber.project_id, subscriber.subscriber_id, body
        )

    def _read(self, project_id: str, options: ImportOptions, row: ImportRow) -> _Person:
        """What the row says. Raises `ApiError`."""
        cells = row.cells
        _check_readable(cells)
        for column in ("tags", "permissions"):
            if not _is_short(cells.get(column, "")):
                raise ValidationFailed("names more than {limit}", field=column, limit=MOST_NAMES)
        name = cells.get("channel") or options.channel
        if name is None:
            raise ValidationFailed("give it in the file or for all rows", field="channel")
        if "address" not in cells:
            raise ValidationFailed("is empty", field="address")
        self._channels.check_name(project_id, name)
        channel = self._channels.resolve(project_id, name)
        assert channel is not None, "its name was checked"
        external_id = cells.get("external_id")
        if external_id is not None:
            check_external_id(external_id)
        return _Person(
            channel=channel,
            address=self._address(channel, cells["address"]),
            external_id=external_id,
            lang=_language(cells.get("language")),
            consent=_consent(cells.get("consent")),
            body=validate(
                _RowBody,
                {
                    "first_name": cells.get("first_name", ""),
                    "tags": _split(cells.get("tags", "")),
                    "permissions": _split(cells.get("permissions", "")),
                    "attributes": _attributes(cells.get("attributes")),
                },
            ),
        )

    def _address(self, channel: Channel, text: str) -> str:
        if channel.capabilities.addresses:
            return self._channels.parse_address(channel, text)
        try:
            return channel.parse_chat_id(text)
        except InvalidValue as error:
            raise ValidationFailed.because(error, field="address") from None


def _language(tag: str | None) -> str | None:
    """The canonical form of a tag, which other providers also write as `pt_BR`."""
    if tag is None:
        return None
    try:
        return canonical_tag(tag.replace("_", "-"))
    except InvalidValue as error:
        raise ValidationFailed.because(error, field="language") from None


def _check_readable(cells: Mapping[str, str]) -> None:
    """Raises `ValidationFailed` for a row whose cells could not be read."""
    if cells.get("") == UNREADABLE:
        raise ValidationFailed(
            "the row can't be read: a quote in it is not closed, or is not doubled"
        )
    if cells.get("") == NOT_UTF_8:
        raise ValidationFailed("the row is not UTF-8: save the file in this encoding")
    if TOO_LONG in cells:
        raise ValidationFailed(
            "a cell is longer than {limit} characters", field="file", limit=MOST_CELL
        )
    if "" in cells:
        raise ValidationFailed("the row has {count} cells, more than the header", count=cells[""])
    if any("\0" in cell for cell in cells.values()):
        raise ValidationFailed("the row has a null character")


def _is_short(cell: str) -> bool:
    return cell.count(",") + cell.count(";") < MOST_NAMES


def _split(cell: str) -> list[str]:
    """Names between commas or semicolons."""
    return _names(re.split(r"[,;]", cell))


def _names(parts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _consent(cell: str | None) -> Consent | None:
    if cell is None:
        return None
    found = _CONSENT.get(cell.lower())
    if found is None:
        raise ValidationFailed("must be subscribed or unsubscribed", field="consent")
    return found


def _attributes(cell: str | None) -> object:
    if cell is None:
        return {}
    try:
        return from_json(cell)
    except ValueError:
        raise ValidationFailed("must be a JSON object", field="attributes") from None

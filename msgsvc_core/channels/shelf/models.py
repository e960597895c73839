"""Items that could not be read or processed: internal, and of the API."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import Time
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.updates import ItemKind, UnreadableReason
from msgsvc_core.kernel.clock import to_rfc3339

EXAMPLE_ID = "shf_032PUt3EK71lpZghhd5Udy"

#: An item in a path.
ShelvedItemId = Annotated[
    str, Field(description="The item on the channel's shelf.", examples=[EXAMPLE_ID])
]


@dataclass(frozen=True, slots=True)
class ShelvedItem:
    """A row, without the item itself. `channel` is the channel's key; `kept` are the bytes of the item's
    `size` that are stored; `tried_at_ms` is when somebody had it taken anyway, in vain. `update_kind` is set
    for an update that the channel could read, and whose handler failed: see `failed_updates`."""

    item_id: str
    channel: str
    update_id: str
    kind: ItemKind
    reason: UnreadableReason
    detail: str
    origin: str
    user_id: str | None
    size: int
    kept: int
    received_at_ms: int
    tried_at_ms: int | None = None
    update_kind: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept."""
        return self.kept >= self.size

    def can_be_taken(self, channel: Channel | None) -> bool:
        """Whether it can be taken anyway, by its channel if that is needed; None for one that is gone."""
        if channel is None or not self.is_whole:
            return False
        return self.update_kind is not None or channel.takes_anyway

    @property
    def filename(self) -> str:
        """The name of a file with the item."""
        if self.update_kind is not None:
            return f"{self.item_id}.json"
        return f"{self.item_id}.{'eml' if self.kind == 'email' else 'bin'}"


class ShelvedItemAnswer(ResponseModel):
    """An item that arrived on a channel and could not be read or processed."""

    item_id: str = Field(description="Id of the item.", examples=[EXAMPLE_ID])
    kind: ItemKind = Field(
        description="What it is: an email, an update of a messenger, or a report on sent messages.",
        examples=["email"],
    )
    reason: UnreadableReason = Field(
        description="Why it could not be read or processed, for programs.",
        examples=["unproven_sender"],
    )
    detail: str = Field(
        description="`reason` as a sentence for people.",
        examples=["nothing proves that it is from its sender"],
    )
    size: int = Field(description="Bytes of the item.", examples=[4182])
    kept: int = Field(
        description="Bytes of it that are kept; an item that is not whole can't be taken anyway.",
        examples=[4182],
    )
    received_at: Time = Field(description="When it arrived.")
    tried_at: Time | None = Field(
        description="When somebody last had it taken anyway, in vain; null if nobody did.",
        examples=[None],
    )

    @classmethod
    def of(cls, item: ShelvedItem) -> "ShelvedItemAnswer":
        return cls(
            item_id=item.item_id,
            kind=item.kind,
            reason=item.reason,
            detail=item.detail,
            size=item.size,
            kept=item.kept,
            received_at=to_rfc3339(item.received_at_ms),
            tried_at=None if item.tried_at_ms is None else to_rfc3339(item.tried_at_ms),
        )


class ShelvedItemList(ResponseModel):
    """A page of items, newest first."""

    data: list[ShelvedItemAnswer] = Field(description="The page's items.")
    next_cursor: NextCursor


class TakenAnswer(ResponseModel):
    """What became of an item that was taken anyway."""

    outcome: Literal["taken", "kept"] = Field(
        description="`taken`: it was processed like any other, and is no longer on the shelf. `kept`: it"
        " still can't be read or processed, see `item`.",
        examples=["taken"],
    )
    item: ShelvedItemAnswer | None = Field(
        description="The item with its new reason, if it was `kept`; null otherwise."
    )

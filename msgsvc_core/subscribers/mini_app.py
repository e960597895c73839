"""Subscribing in a mini app, whose user is identified by data signed by the platform."""

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.channels import chats
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import InvalidMiniApp
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import MiniAppUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Conflict, ValidationFailed
from msgsvc_core.subscribers.models import Subscriber, SubscriberAnswer, TagName
from msgsvc_core.subscribers.service import Subscribers, check_external_id
from msgsvc_core.subscribers.tags.service import Tags

#: Maximum characters of `init_data`; platforms send a few hundred.
MAX_INIT_DATA_LENGTH = 16_384


class SubscribeInMiniAppBody(RequestModel):
    """What the mini app's page was given by the messenger, and what the person shall carry."""

    channel: str = Field(
        description="Channel whose bot the mini app belongs to.", examples=[examples.CHANNEL]
    )
    init_data: str = Field(
        max_length=MAX_INIT_DATA_LENGTH,
        description="The signed data, unchanged, as the page finds it, e.g. in `Telegram.WebApp.initData`.",
        examples=[examples.INIT_DATA],
    )
    tags: list[TagName] = Field(
        default=[],
        max_length=20,
        description="Tags added to the person; missing ones are created.",
        examples=[[examples.TAG]],
    )
    external_id: str | None = Field(
        None,
        description="Your own id of this person, 1-128 printable characters, if you know who they are.",
        examples=[examples.EXTERNAL_ID],
    )


class MiniAppSubscriptionAnswer(SubscriberAnswer):
    """The subscriber."""

    created: bool = Field(
        description="Whether this call subscribed them: they were new, or unsubscribed before.",
        examples=[True],
    )

    @classmethod
    def after(cls, subscriber: Subscriber, *, created: bool) -> "MiniAppSubscriptionAnswer":
        return cls(**SubscriberAnswer.of(subscriber).model_dump(), created=created)


class MiniAppSubscribing:
    """Subscribes users of mini apps. Signed data is valid for `max_age_hours`."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        subscribers: Subscribers,
        tags: Tags,
        max_age_hours: int,
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._subscribers = subscribers
        self._tags = tags
        self._max_age_hours = max_age_hours

    async def subscribe(
        self, tx: Tx, project_id: str, body: SubscribeInMiniAppBody
    ) -> tuple[Subscriber, bool]:
        """Subscribes the user of a mini app; True if they are newly subscribed.

        Raises `ValidationFailed` for data that is expired or not signed for this bot, `InvalidExternalId`,
        and `Conflict` if the bot has no chat with the user yet, and beyond the limit of tags.
        """
        if body.external_id is not None:
            check_external_id(body.external_id)
        self._channels.check_name(project_id, body.channel)
        channel = self._channels.resolve(project_id, body.channel)
        assert channel is not None, "its name was checked"
        minutes, now_ms = self._max_age_hours * 60, self._clock.now_ms()
        opened = verify(channel, body.init_data, max_age_minutes=minutes, now_ms=now_ms)
        # Before writing the chat and the subscriber: see there.
        await self._tags.ensure(tx, project_id, body.tags)
        chat_id = await enter(tx, project_id, channel, opened, now_ms=self._clock.now_ms())
        return await self._subscribers.subscribe(
            tx,
            project_id,
            channel.key,
            opened.user,
            chat_id,
            source="mini_app",
            tags=body.tags,
            external_id=body.external_id,
        )


def verify(channel: Channel, init_data: str, *, max_age_minutes: int, now_ms: int) -> MiniAppUser:
    """The user of the mini app of `channel`'s bot, from the signed data.

    Raises `ValidationFailed` for data of another bot, and for expired data.
    """
    if not channel.capabilities.mini_app:
        raise ValidationFailed("{name} has no mini apps", field="channel", name=channel.name)
    try:
        opened = channel.verify_mini_app(init_data)
    except InvalidMiniApp as error:
        raise ValidationFailed.because(error, field="init_data") from None
    if now_ms - opened.signed_at_ms > max_age_minutes * 60 * 1000:
        raise ValidationFailed(
            "signed more than {duration} ago; have the mini app opened again",
            field="init_data",
            duration=_duration(max_age_minutes),
        )
    return opened


async def enter(
    tx: Tx, project_id: str, channel: Channel, opened: MiniAppUser, *, now_ms: int
) -> str:
    """The bot's chat with the mini app's user; it belongs to the project from now on.

    Raises `Conflict` if the bot has no chat with the user yet.
    """
    chat_id = opened.chat_id or await chats.find_latest(tx, channel.key, opened.user.user_id)
    if chat_id is None:
        raise Conflict(
            "the bot can't write to this person yet; have them start it first", field="init_data"
        )
    await chats.enter(tx, channel.key, chat_id, opened.user.user_id, project_id, now_ms)
    return chat_id


def _duration(minutes: int) -> str:
    return f"{minutes} minutes" if minutes % 60 else f"{minutes // 60} hours"

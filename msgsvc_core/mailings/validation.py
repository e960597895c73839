"""Validates mailings when they are accepted, and the audience again when they start."""

import json
import re
from collections.abc import Mapping, Sequence

from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import WrongVariable, sample_values
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock, check_within_reach
from msgsvc_core.kernel.errors import InvalidValue, NotFound, ValidationFailed
from msgsvc_core.kernel.values import value_object
from msgsvc_core.mailings import audience_store, route_ledger
from msgsvc_core.mailings.audience import MOST_BROKEN_DOWN, Audience, AudienceBreakdown
from msgsvc_core.mailings.content import (
    ALWAYS,
    MailingContent,
    read_column,
    to_column,
    with_preferences_link,
)
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.models import MailingMessage, NewMailing
from msgsvc_core.messages.fields import METADATA_BYTES
from msgsvc_core.messages.limits import MessageLimits, exceeded_limit
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.routing import Route, Routes
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.tags.service import Tags

#: The format of subscribers' ids (decision 0075).
_SUBSCRIBER_ID = re.compile(r"sub_[0-9A-Za-z]{1,64}", re.ASCII)


@value_object
class PreparedMailing:
    """A validated mailing: its content in stored form, its recipients per bot, and the number of those
    given by id who would be skipped."""

    content: str
    counts: dict[str, int]
    unreachable: int
    #: The contents of the variants, of which the first is `content`.
    variants: Sequence[str] = ()
    #: The route by which it is sent.
    route: Route | None = None

    @property
    def reachable(self) -> int:
        return sum(self.counts.values())

    @property
    def total(self) -> int:
        return self.reachable + self.unreachable


@value_object
class _SampleMessage:
    """A message of some recipient, and the same with the addresses of its tracked links."""

    message: OutgoingMessage
    tracked: OutgoingMessage


class AudienceNames:
    """Checks which names in an audience exist in a project, and finds its route."""

    def __init__(self, *, tags: Tags, permissions: Permissions, routes: Routes) -> None:
        self._routes = routes
        self._tags = tags
        self._permissions = permissions

    async def find_missing(
        self, tx: Tx, project_id: str, audience: Audience
    ) -> ValidationFailed | None:
        """The first name in an audience that the project does not have; None if it has all.

        Without this check, the audience would be nobody, or everybody.
        """
        for field in ("tags_any", "tags_all", "tags_none"):
            tags: Sequence[str] = getattr(audience, field) or ()
            if tags and (missing := await self._tags.lock_missing(tx, project_id, tags)):
                return ValidationFailed(
                    "this project has no tag {name!r}", field=f"audience.{field}", name=missing[0]
                )
        if audience.permission is not None:
            return await self.find_missing_permission(
                tx, project_id, "audience.permission", audience.permission
            )
        return None

    async def find_missing_permission(
        self, tx: Tx, project_id: str, field: str, key: str
    ) -> ValidationFailed | None:
        """The same for a permission that the request names in `field`."""
        if await self._permissions.exists(tx, project_id, key):
            return None
        return ValidationFailed("this project has no permission {key!r}", field=field, key=key)

    async def find_route(
        self, tx: Tx, project_id: str, route_id: str | None, audience: Audience
    ) -> Route | None:
        """The route that is named; None if none is. Raises `NotFound`, and `ValidationFailed` for one by
        which an audience can't be sent to."""
        if route_id is None:
            return None
        if audience.channels:
            raise ValidationFailed(
                "can't be combined with route_id, which has channels", field="audience.channels"
            )
        try:
            route = await self._routes.get(tx, project_id, route_id)
        except NotFound as error:
            raise error.at("route_id") from None
        for step in route.steps[:-1]:
            if step.until != "sent":
                raise ValidationFailed(
                    "a message to an audience goes on after a failure alone, and this route waits for more"
                    " on {channel}",
                    field="route_id",
                    channel=step.channel,
                )
        return route


class MailingValidation:
    """Validates mailings, and counts their recipients."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        templates: Templates,
        names: AudienceNames,
        limits: LimitSettings,
        links: LinkTracking,
        languages: tuple[str, ...],
        default_lang: str,
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._templates = templates
        self._names = names
        self._limits = limits
        self._message_limits = MessageLimits.of(limits)
        self._links = links
        self.languages = languages
        self.default_lang = default_lang

    def _check_time(self, send_at_ms: int) -> None:
        now_ms = self._clock.now_ms()
        if send_at_ms < now_ms:
            raise ValidationFailed("is in the past", field="send_at")
        try:
            check_within_reach(send_at_ms, now_ms)
        except InvalidValue as error:
            raise ValidationFailed.because(error, field="send_at") from None

    async def prepare(self, tx: Tx, project_id: str, new: NewMailing) -> PreparedMailing:
        """Raises `ValidationFailed` for an invalid message, `NotFound` for an unknown template."""
        if new.send_at_ms is not None:
            self._check_time(new.send_at_ms)
        self._check_sizes(new)
        await self._check_names(tx, project_id, new)
        route = await self._names.find_route(tx, project_id, new.route_id, new.audience)
        counts = await self._counts(tx, project_id, new.audience, route)
        content, variants = await self._contents(tx, project_id, new, counts)
        if route is not None:
            # Those whom it can't reach are no recipients.
            return PreparedMailing(content, counts, 0, variants, route)
        reachable = sum(counts.values())
        unreachable = await audience_store.count_unreachable(
            tx, project_id, new.audience, reachable
        )
        return PreparedMailing(content, counts, unreachable, variants)

    async def _contents(
        self, tx: Tx, project_id: str, new: NewMailing, counts: dict[str, int]
    ) -> tuple[str, list[str]]:
        """The content, and that of each variant. Raises what `prepare` does."""
        if new.experiment is None:
            content = await self._content(
                tx, project_id, new.message, counts, tracks_links=new.tracks_links
            )
            return content, []
        variants: list[str] = []
        for number, variant in enumerate(new.experiment.variants):
            try:
                content = await self._content(
                    tx, project_id, variant.message, counts, tracks_links=new.tracks_links
                )
                variants.append(content)
            except (ValidationFailed, NotFound) as error:
                raise error.at(f"variants[{number}]", joined=True) from None
        return variants[0], variants

    async def _content(
        self,
        tx: Tx,
        project_id: str,
        message: MailingMessage,
        counts: dict[str, int],
        *,
        tracks_links: bool,
    ) -> str:
        column = await self.content_of(tx, project_id, message, tracks_links=tracks_links)
        content = read_column(column)
        self.check_values(content)
        await self._check_channels(self._rendered(content), counts)
        return column

    async def break_down(
        self,
        tx: Tx,
        project_id: str,
        audience: Audience,
        permission: str | None,
        route_id: str | None = None,
    ) -> AudienceBreakdown:
        """Who would get a message that needs a `permission`. Raises `ValidationFailed` for unknown names,
        and if more than the limit are found."""
        await self._check_audience(tx, project_id, audience, permission)
        route = await self._names.find_route(tx, project_id, route_id, audience)
        if route is not None:
            counts = await self._counts(tx, project_id, audience, route)
            return AudienceBreakdown(sum(counts.values()), {})
        limit = self._limits.broadcast_recipients
        bots = [channel.key for channel in self._channels.list_for_project(project_id)]
        found = await audience_store.break_down(
            tx, project_id, audience, permission, bots, MOST_BROKEN_DOWN
        )
        if found.reached > limit:
            raise ValidationFailed("more than {limit:,} subscribers", field="audience", limit=limit)
        return found

    async def content_of(
        self, tx: Tx, project_id: str, message: MailingMessage, *, tracks_links: bool = False
    ) -> str:
        """The content in stored form; later changes of a template don't affect it.

        Raises `ValidationFailed` for an invalid template, `NotFound` for an unknown one.
        """
        content = await self._templates.content_of_message(tx, project_id, message)
        if self._limits.preferences_in_broadcasts:
            content = with_preferences_link(content)
        return to_column(
            content, message.variables or {}, silent=message.silent, tracks_links=tracks_links
        )

    def _check_sizes(self, new: NewMailing) -> None:
        limit = self._limits.broadcast_ids
        if len(new.audience.subscriber_ids or ()) > limit:
            raise ValidationFailed(
                "at most {limit:,}", field="audience.subscriber_ids", limit=limit
            )
        # Here and not in the type, which older mailings are parsed with; and not for those accepted before.
        for number, subscriber_id in enumerate(new.audience.subscriber_ids or ()):
            if not new.was_kept and not _SUBSCRIBER_ID.fullmatch(subscriber_id):
                raise ValidationFailed(
                    "must be the id of a subscriber, sub_...",
                    field=f"audience.subscriber_ids[{number}]",
                )
        metadata = new.message.metadata
        if metadata is not None and len(json.dumps(metadata)) > METADATA_BYTES:
            raise ValidationFailed(
                "must be at most {limit} bytes as JSON", field="metadata", limit=METADATA_BYTES
            )

    async def _check_names(self, tx: Tx, project_id: str, new: NewMailing) -> None:
        await self._check_audience(tx, project_id, new.audience, new.message.permission)

    async def _check_audience(
        self, tx: Tx, project_id: str, audience: Audience, permission: str | None
    ) -> None:
        missing = await self._names.find_missing(tx, project_id, audience)
        if missing is None and permission is not None:
            missing = await self._names.find_missing_permission(
                tx, project_id, "permission", permission
            )
        if missing is not None:
            raise missing
        self._check_channel_names(project_id, audience)

    def _check_channel_names(self, project_id: str, audience: Audience) -> None:
        for channel in audience.channels or ():
            if self._channels.resolve(project_id, channel) is None:
                raise ValidationFailed(
                    "there is no channel {channel!r}", field="audience.channels", channel=channel
                )

    async def _counts(
        self, tx: Tx, project_id: str, audience: Audience, route: Route | None
    ) -> dict[str, int]:
        """Recipients per bot; with a route people, per bot that is the first for them. Raises
        `ValidationFailed` if there are more than the limit."""
        limit = self._limits.broadcast_recipients
        if route is not None:
            counts = await route_ledger.count_by_bot(
                tx, project_id, audience, route.steps, limit + 1
            )
        else:
            counts = await audience_store.count_by_bot(tx, project_id, audience, None, limit + 1)
        if sum(counts.values()) > limit:
            raise ValidationFailed("more than {limit:,} subscribers", field="audience", limit=limit)
        return counts

    def check_values(self, content: MailingContent) -> None:
        """Raises `ValidationFailed` for content that lacks values for some recipients."""
        for name in content.unknown:
            raise ValidationFailed(
                "is required, or needs a default for who lacks it; every recipient has {names}",
                field=f"variables.{name}",
                names=", ".join(ALWAYS),
            )

    def _rendered(self, content: MailingContent) -> list[_SampleMessage]:
        """The message of a sample recipient in each language. Raises `ValidationFailed` for content that
        could never be sent."""
        values = sample_values(content.personal)
        rendered = []
        for lang in self.languages:
            message = self.render(content, lang, values)
            self._message_limits.check_size(message)
            tracked = self._links.sample_of(content, message)
            if self._message_limits.is_too_long(tracked):
                raise ValidationFailed(
                    "must be at most {limit} characters with the addresses of its tracked links",
                    field="text",
                    limit=exceeded_limit(
                        len(tracked.text), tracked.format, self._message_limits.text_length
                    ),
                )
            rendered.append(_SampleMessage(message, tracked))
        return rendered

    async def _check_channels(
        self, rendered: Sequence[_SampleMessage], counts: dict[str, int]
    ) -> None:
        """Raises `ValidationFailed` for content that the channel of some recipients does not support."""
        for bot in counts:
            channel = await self._channels.find(bot)
            if channel is None:
                continue
            for sample in rendered:
                if problem := channel.problem(sample.message):
                    raise ValidationFailed(
                        "on {name}: {problem}", name=channel.name, problem=problem
                    )
                if sample.tracked is sample.message:
                    continue
                if problem := channel.problem(sample.tracked):
                    raise ValidationFailed(
                        "on {name}, with the addresses of its tracked links: {problem}",
                        name=channel.name,
                        problem=problem,
                    )

    def render(
        self, content: MailingContent, lang: str, values: Mapping[str, str]
    ) -> OutgoingMessage:
        """The message for a reader of `lang`. Raises `ValidationFailed` for an invalid variable."""
        limit = self._message_limits.text_length
        try:
            return content.render(lang, self.default_lang, values, limit)
        except WrongVariable as error:
            raise ValidationFailed.because(error, field="variables", joined=True) from None

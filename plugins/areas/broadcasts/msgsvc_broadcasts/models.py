"""Models of broadcasts in the API."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_broadcasts.variants import (
    MAX_VARIANTS,
    MIN_VARIANTS,
    VARIANT_CONTENT,
    BroadcastExperimentAnswer,
    BroadcastExperimentBody,
    BroadcastVariantBody,
)
from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, MomentMs, SubscriberId, Time, Url
from msgsvc_core.channels.failures import Reason as FailureReason
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_core.mailings import (
    Audience,
    Mailing,
    MailingMessage,
    NewExperiment,
    NewVariant,
    Recipient,
)
from msgsvc_core.mailings.audience import AudienceAnswer
from msgsvc_core.mailings.models import (
    STATUS,
    Eta,
    Failed,
    MailingStatus,
    MessageSource,
    PartOutcomes,
    Progress,
    RecipientStatus,
    Sent,
    Skipped,
    StopCause,
    StopCode,
    Total,
    Unknown,
)
from msgsvc_core.mailings.service import ALL_PERCENT
from msgsvc_core.routing.models import ROUTE_ID

#: What marks the mailings that are broadcasts.
SOURCE = "broadcasts"

BroadcastId = Annotated[str, Field(description="The broadcast's id.", examples=[examples.JOB_ID])]

NAME = "What you call it, for lists; recipients don't see it."
ROUTE = (
    "Id of a route of `POST /v1/routes`. Subscribers with one `external_id` are one person then, who gets one"
    " message: by the first channel of the route that works. Goes with any filters of `audience` but"
    " `channels`."
)


BroadcastName = Annotated[
    str,
    Field(max_length=100, description=NAME, examples=["Spring sale"]),
    AfterValidator(one_line),
    AfterValidator(check_visible),
]


class CreateBroadcastBody(MailingMessage):
    """A message to an audience, or several `variants` of it, now or at `send_at`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Spring sale",
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                    "audience": {"tags_any": [examples.TAG], "langs": ["en"]},
                    "permission": examples.PERMISSION,
                    "messages_per_minute": 600,
                    "metadata": {"campaign": "spring"},
                },
                {
                    "template": "spring-sale",
                    "variables": {"discount": "10 %"},
                    "audience": {"all": True},
                    "send_at": examples.LATER,
                },
                {
                    "variants": [
                        {"text": "The spring sale has begun."},
                        {"text": "{{ first_name }}, 10 % off until Sunday."},
                    ],
                    "experiment": {"share_percent": 20, "winner": "clicks", "after_seconds": 3600},
                    "audience": {"all": True},
                },
            ]
        }
    )

    name: BroadcastName | None = Field(None, description=NAME, examples=["Spring sale"])
    variants: list[BroadcastVariantBody] | None = Field(
        None,
        min_length=MIN_VARIANTS,
        max_length=MAX_VARIANTS,
        description="Messages to compare, in place of template, variables, text, format, media and"
        " buttons.",
    )
    experiment: BroadcastExperimentBody | None = Field(
        None, description="How `variants` are compared; the defaults if it is left out."
    )
    audience: Audience = Field(description="Who gets it.")
    route_id: str | None = Field(None, description=ROUTE, examples=[ROUTE_ID])
    send_at: MomentMs | None = Field(
        None,
        description="When it starts; left out: at once. A time in the past is refused.",
        examples=[examples.LATER],
    )
    messages_per_minute: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Messages per minute at most, evenly spread. By default as fast as the messengers"
        " allow.",
        examples=[600],
    )
    dry_run: bool = Field(
        False,
        description="Validates only, and returns the number of recipients and the credits that it would"
        " cost.",
    )

    @model_validator(mode="after")
    def _text_or_template(self) -> Self:
        """Either `text`, `template` or `variants` is given. `experiment` needs `variants`, whose names
        differ."""
        if self.variants is None:
            if self.experiment is not None:
                raise InvalidValue("needs variants", field="experiment")
            self.check_source()
            return self
        for field in MessageSource.model_fields:
            value = getattr(self, field)
            # A default that is written out counts as omitted.
            if value and (field, value) != ("format", "plain"):
                raise InvalidValue(
                    "can't be combined with variants, which have their own", field=field
                )
        names = self.variant_names
        if len(set(names)) < len(names):
            raise InvalidValue("each variant needs a name of its own", field="variants")
        experiment = self.experiment or BroadcastExperimentBody()
        if (
            experiment.share_percent < ALL_PERCENT
            and self.expires_in is not None
            and self.expires_in <= experiment.after_seconds
        ):
            raise InvalidValue(
                "ends before the winner is chosen: it must be more than experiment.after_seconds",
                field="expires_in",
            )
        return self

    @property
    def variant_names(self) -> list[str]:
        return [
            each.name or chr(ord("A") + place) for place, each in enumerate(self.variants or ())
        ]

    def to_message(self) -> MailingMessage:
        """What everybody gets, without how and when; the first of several variants."""
        return self.to_messages()[0]

    def to_messages(self) -> list[MailingMessage]:
        """The message, or each of its variants."""
        given = self.model_dump(
            include=set(MailingMessage.model_fields), exclude_unset=True, exclude_none=True
        )
        if self.variants is None:
            return [MailingMessage.model_validate(given)]
        common = {name: each for name, each in given.items() if name not in VARIANT_CONTENT}
        return [
            MailingMessage.model_validate(
                {
                    **common,
                    **each.model_dump(
                        include=VARIANT_CONTENT, exclude_unset=True, exclude_none=True
                    ),
                }
            )
            for each in self.variants
        ]

    def to_experiment(self) -> NewExperiment | None:
        """How its variants are tried; None without variants."""
        if self.variants is None:
            return None
        experiment = self.experiment or BroadcastExperimentBody()
        return NewExperiment(
            [
                NewVariant(name, message)
                for name, message in zip(self.variant_names, self.to_messages(), strict=True)
            ],
            experiment.share_percent,
            {"winner": experiment.winner, "after_s": experiment.after_seconds},
        )


class SendBroadcastTestBody(MailingMessage):
    """The message of a broadcast, and the subscriber who gets it as a test."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Hi {{ first_name }}, the spring sale has begun.",
                    "buttons": [[{"text": "To the shop", "url": f"{examples.SITE_URL}/sale"}]],
                }
            ]
        }
    )

    subscriber_id: SubscriberId


class BroadcastAccepted(ResponseModel):
    """The accepted broadcast; `total` is how many would get it now.

    With `dry_run` there are only `total` and `credits`: nothing was accepted.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"job_id": examples.JOB_ID, "status": "scheduled", "total": 1200},
                {"total": 1200, "credits": 1200},
            ]
        }
    )
    leave_out_none = frozenset({"job_id", "status", "credits"})

    job_id: str | None = Field(
        None,
        description="Id for `GET /v1/broadcast/{job_id}`; absent with `dry_run`.",
        examples=[examples.JOB_ID],
    )
    status: MailingStatus | None = Field(
        None,
        description="`scheduled`, until its recipients are being sent to; absent with `dry_run`.",
        examples=["scheduled"],
    )
    total: int = Field(description="Recipients that the audience has now.", examples=[1200])
    credits: int | None = Field(
        None,
        description="Credits that it would cost now, 0 where usage is not charged; only with `dry_run`.",
        examples=[1200],
    )


class ChannelFigures(ResponseModel):
    """A channel of a broadcast's route, and its people. Each person counts once: on the channel that
    reached them, is being tried, or was tried last."""

    channel: str = Field(description="The channel.", examples=["messenger_a"])
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(
        description="The people on this channel, with those who wait for it.", examples=[3]
    )

    @classmethod
    def of(cls, outcomes: PartOutcomes) -> "ChannelFigures":
        return cls(
            channel=outcomes.name,
            sent=outcomes.sent,
            failed=outcomes.failed,
            unknown=outcomes.unknown,
            skipped=outcomes.skipped,
            total=outcomes.total,
        )


class BroadcastChannels(ResponseModel):
    """The channels of a broadcast's route, side by side."""

    channels: list[ChannelFigures] = Field(
        description="In the order of the route; empty without one, and after `recipients_until`"
        " with zeros."
    )


@value_object
class Link:
    """A tracked link of a broadcast."""

    project_id: str
    job_id: str
    link_id: str
    url: str


class LinkClicks(ResponseModel):
    """A tracked link of a broadcast, and how many opened it."""

    url: Url = Field(
        description="The page that it leads to.", examples=[f"{examples.SITE_URL}/sale"]
    )
    people: int = Field(
        description="Recipients who opened it, each counted once; of the first 10,000 clicks on links of"
        " the broadcast.",
        examples=[240],
    )


class ButtonClicks(ResponseModel):
    """A button of a broadcast that sends `data`, and how many pressed it."""

    data: str = Field(description="The button's `data`.", examples=["call"])
    people: int = Field(
        description="Recipients who pressed it, each counted once; of the first 10,000 presses of the"
        " broadcast's buttons.",
        examples=[35],
    )


class BroadcastAnswer(ResponseModel):
    """A broadcast and how far it is."""

    job_id: BroadcastId
    name: str | None = Field(description=NAME, examples=["Spring sale"])
    source: str = Field(
        description="Which area started it: `broadcasts`; `scheduled` for `/v1/scheduled` and"
        " `/v1/recurring`; `forms` for a form's rule to a tag; or another plugin."
        " `broadcast.completed` is emitted only for `broadcasts`.",
        examples=["broadcasts"],
    )
    status: MailingStatus = Field(description=STATUS, examples=["completed"])
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total
    progress: Progress
    eta_seconds: Eta
    code: StopCode
    error: StopCause
    audience: AudienceAnswer = Field(
        description="Who gets it.", examples=[{"tags_any": [examples.TAG], "langs": ["en"]}]
    )
    route_id: str | None = Field(
        description="The route by which each person is reached; null for the channel of each subscriber.",
        examples=[None],
    )
    messages_per_minute: int | None = Field(
        description="Messages per minute at most; null for as fast as the messengers allow.",
        examples=[600],
    )
    metadata: dict[str, Any] | None = Field(
        description="Your own data, from the request.", examples=[{"campaign": "spring"}]
    )
    resend_of: str | None = Field(
        description="The broadcast whose recipients with an unknown outcome get this one; null unless it"
        " is a resend.",
        examples=[None],
    )
    experiment: BroadcastExperimentAnswer | None = Field(
        description="How its variants are tried; null for one message."
    )
    send_at: Time | None = Field(
        description="The requested start time; null for at once.", examples=[None]
    )
    created_at: CreatedAt = Field(examples=[examples.TIME])
    started_at: Time | None = Field(description="When it began; null before.")
    finished_at: Time | None = Field(
        description="When the last delivery ended; null before, also while a cancelled one has deliveries"
        " in progress.",
        examples=["2026-03-01T09:32:00.000Z"],
    )
    recipients_until: Time | None = Field(
        description="Until when `GET /v1/broadcast/{job_id}/recipients` lists them; null before the end.",
        examples=["2026-03-31T09:30:00.000Z"],
    )
    links: list[LinkClicks] | None = Field(
        None,
        description="Clicks on its links, in the order of the message; empty unless the project's"
        " `link_tracking` was on when it was accepted. Null in all but `GET /v1/broadcast/{job_id}`.",
    )
    buttons: list[ButtonClicks] | None = Field(
        None,
        description="Presses of its buttons that send `data`, the most pressed first. Null in all but"
        " `GET /v1/broadcast/{job_id}`.",
    )

    @classmethod
    def of(cls, mailing: Mailing, now_ms: int, until_ms: int | None) -> "BroadcastAnswer":
        return cls(
            **mailing.event_fields(),
            name=mailing.name,
            source=mailing.source,
            status=mailing.status,
            progress=mailing.progress(),
            eta_seconds=mailing.eta_seconds(now_ms),
            code=mailing.stop_code,
            error=mailing.error,
            audience=mailing.shown_audience,
            route_id=mailing.route_id,
            messages_per_minute=mailing.per_minute,
            metadata=mailing.metadata,
            resend_of=mailing.resend_of,
            experiment=BroadcastExperimentAnswer.of(mailing),
            send_at=optional_rfc3339(mailing.send_at_ms),
            created_at=to_rfc3339(mailing.created_at_ms),
            started_at=optional_rfc3339(mailing.started_at_ms),
            finished_at=optional_rfc3339(mailing.finished_at_ms),
            recipients_until=optional_rfc3339(until_ms),
        )


class BroadcastList(ResponseModel):
    """A page of broadcasts, newest first."""

    data: list[BroadcastAnswer] = Field(description="The broadcasts of this page.")
    next_cursor: NextCursor


class BroadcastQuery(PageQuery):
    """Filters and paging."""

    status: MailingStatus | None = Field(
        None, description="Only broadcasts with this status.", examples=["running"]
    )


class BroadcastRecipientAnswer(ResponseModel):
    """A person of the audience and the outcome for them."""

    subscriber_id: SubscriberId
    channel: str | None = Field(
        description="The channel of the route by which they were reached, or were tried last; null without a"
        " `route_id`.",
        examples=[None],
    )
    status: RecipientStatus = Field(
        description="`queued` until there is an outcome; `unknown` if the service can't tell whether they"
        " got it.",
        examples=["sent"],
    )
    reason: FailureReason | None = Field(
        description="Why the last attempt failed; null if it did not.", examples=[None]
    )
    error: str | None = Field(
        description="The cause for people: why the last attempt failed, or why they were skipped. Null"
        " if there is none.",
        examples=[None],
    )
    attempts: int = Field(description="How often sending was tried.", examples=[1])
    message_id: str | None = Field(
        description="Id of their message, for `GET /v1/messages/{message_id}`; null before the last"
        " attempt.",
        examples=[examples.MESSAGE_ID],
    )

    @classmethod
    def of(cls, recipient: Recipient, mailing: Mailing) -> "BroadcastRecipientAnswer":
        step = recipient.step
        return cls(
            subscriber_id=recipient.subscriber_id,
            channel=None if step is None or not mailing.steps else mailing.steps[step].channel,
            status=recipient.status,
            reason=recipient.reason and FailureReason(recipient.reason),
            error=recipient.error,
            attempts=recipient.attempts,
            message_id=recipient.message_id,
        )


class BroadcastRecipientList(ResponseModel):
    """A page of recipients, those who subscribed last first."""

    data: list[BroadcastRecipientAnswer] = Field(description="The recipients of this page.")
    next_cursor: NextCursor


class RecipientQuery(PageQuery):
    """Filters and paging."""

    created_after: MomentMs | None = Field(
        None,
        description="Only recipients who first subscribed after this time.",
        examples=["2026-01-01T00:00:00Z"],
    )
    created_before: MomentMs | None = Field(
        None,
        description="Only recipients who first subscribed before this time.",
        examples=["2026-04-01T00:00:00Z"],
    )

    status: RecipientStatus | None = Field(
        None, description="Only recipients with this status.", examples=["failed"]
    )
    reason: FailureReason | None = Field(
        None,
        description="Only recipients who did not get it for this reason.",
        examples=["user_blocked_bot"],
    )
